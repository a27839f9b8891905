// SPDX-License-Identifier: BSD-2-Clause
/* holdoff forward PORT...: the kernel is the control plane, and keeps what is for the host. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/forward_shortcut.h"
#include "linux/caps.h"
#include "linux/xdpdev.h"
#include "port/host.h"
#include "route/kernel.h"
#include "route/wish.h"

/* So long at a time netlink's messages are taken in; then rows, signals and wishes have a turn. */
#define READ_NS 8000000u

struct kern {
	struct ro_kernel *kernel;
	struct rt_event *event;
	bool shared[RO_PORTS_MAX];
	struct port_punt **punt; /* of each worker */
	struct shortcut *shortcut;
	struct ho_err failed; /* why the kernel could not be followed any longer */
	struct ro_kernel_stats stats;
};

/* --- what the kernel is set to ---------------------------------------------------------------- */

/* The number in a file of /proc/sys/net, -1 if there is none. */
int forward_setting(const char *path)
{
	char name[128];
	FILE *file;
	int value = -1;

	snprintf(name, sizeof(name), "/proc/sys/net/%s", path);
	file = fopen(name, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

static const char *iface_of(const struct port *port)
{
	return strchr(port->name, ':') + 1;
}

/* What a router needs of the kernel although it forwards by itself. */
static void say_settings(struct forward *f)
{
	struct kern *k = f->state;
	bool forwards = forward_setting("ipv4/ip_forward") == 1;
	struct ro_kernel_stats s;
	char path[96];

	ro_kernel_read_stats(k->kernel, &s);
	if (s.elsewhere && !forwards)
		ho_note("%u routes leave by interfaces that are no ports: their packets go to the "
			"kernel, which drops them until 'sysctl net.ipv4.ip_forward=1'",
			s.elsewhere);
	for (unsigned p = 0; p < f->ports; p++) {
		const char *name = iface_of(f->port[p].rx);

		if (!k->shared[p] && forwards)
			ho_warn("%s: the kernel sees these packets too and forwards them once "
				"more; "
				"'sysctl net.ipv4.ip_forward=0' leaves them to us, and so does "
				"xdp:%s",
				f->port[p].rx->name, name);
		snprintf(path, sizeof(path), "ipv6/conf/%s/forwarding", name);
		if (k->shared[p] && forward_setting(path) == 0)
			ho_note("%s: the kernel does not tell its neighbours that this is an IPv6 "
				"router; 'sysctl net.ipv6.conf.%s.forwarding=1' makes it",
				name, name);
	}
}

static void say_vlan_offload(const char *name)
{
	char driver[32];

	if (!lx_strips_vlan_tags(name))
		return;
	/* A veth hands over what its peer left beside the frame. */
	if (!strcmp(lx_driver_name(name, driver, sizeof(driver)), "veth"))
		ho_note("%s: XDP does not see VLAN tags that the veth's other end sends beside the "
			"frame; 'ethtool -K PEER txvlan off' there puts them into it",
			name);
	else
		ho_warn("%s takes VLAN tags off before XDP sees them: tagged packets are taken for "
			"untagged ones until 'ethtool -K %s rxvlan off'",
			name, name);
}

static void say_start(struct forward *f)
{
	struct kern *k = f->state;
	struct ro_kernel_stats s;
	char names[256] = "";
	const char *name;
	size_t used = 0;

	ro_kernel_read_stats(k->kernel, &s);
	for (unsigned i = 0; (name = ro_kernel_iface_name(k->kernel, i)); i++) {
		if (used + strlen(name) + 6 > sizeof(names)) {
			used += (size_t)snprintf(names + used, sizeof(names) - used, ", ...");
			break;
		}
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
					 used ? ", " : "", name);
	}
	ho_note("routing between %s: %u IPv4 and %u IPv6 routes, %u of them by other interfaces",
		used ? names : "no interface yet", s.routes4, s.routes6, s.elsewhere);
	/* More interfaces than ports: there are VLANs. */
	for (unsigned p = 0; s.interfaces > f->ports && p < f->ports; p++) {
		if (k->shared[p])
			say_vlan_offload(iface_of(f->port[p].rx));
	}
}

/* --- the control plane ------------------------------------------------------------------------ */

/* Called by the workers. */
static unsigned to_host(void *arg, unsigned worker, unsigned port, struct pk_slot *slots,
			unsigned n)
{
	struct forward *f = arg;
	struct kern *k = f->state;
	unsigned frames = 0;

	if (k->shared[port])
		return port_punt_frames(k->punt[worker], f->port[port].rx, slots, n);
	/* It has its own copy. */
	for (unsigned i = 0; i < n; i++)
		frames += !(slots[i].flags & PK_MORE);
	return frames;
}

static int prepare(struct forward *f, struct ho_err *err)
{
	struct kern *k = f->state;
	bool any = false;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < f->ports; i++) {
		rc = port_host_attach(f->port[i].rx, &k->shared[i], err);
		any = any || k->shared[i];
	}
	k->punt = calloc(f->workers, sizeof(k->punt[0]));
	if (rc == 0 && !k->punt)
		rc = ho_err_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; rc == 0 && any && i < f->workers; i++)
		rc = port_punt_create(f->session.arena, &k->punt[i], err);
	if (rc == 0)
		rc = shortcut_create(f, &k->shortcut, err);
	return rc;
}

static int setup(struct forward *f, struct ho_err *err)
{
	struct kern *k = f->state;
	struct port *port[RO_PORTS_MAX];
	struct ro_kernel_config config = {
		.rt = f->session.rt, .tables = f->tables, .port = port, .ports = f->ports
	};
	struct ro_resolver resolver;
	int rc;

	ro_kernel_resolver(&k->kernel, &resolver);
	ro_tables_resolver(f->tables, &resolver);
	for (unsigned i = 0; i < f->ports; i++)
		port[i] = f->port[i].rx;
	rc = ro_kernel_create(&config, &k->kernel, err);
	if (rc == 0)
		rc = rt_event_from_fd(f->session.rt, ro_kernel_fd(k->kernel), &k->event, err);
	if (rc < 0)
		return rc;
	f->session.also = k->event;
	shortcut_poll(k->shortcut, k->kernel, rt_now_ns(f->session.rt));
	say_start(f);
	say_settings(f);
	shortcut_say(k->shortcut);
	return 0;
}

static void poll(struct forward *f, uint64_t now_ns)
{
	struct kern *k = f->state;
	int rc;

	if (k->failed.code)
		return;
	do {
		rc = ro_kernel_poll(k->kernel, now_ns, &k->failed);
		ro_tables_poll(f->tables, rt_now_ns(f->session.rt));
	} while (rc > 0 && rt_now_ns(f->session.rt) - now_ns < READ_NS);
	if (rc < 0) {
		/* Packets would be sent by tables that are not true any more. */
		ho_warn("%s", k->failed.text);
		ro_router_stop(f->router);
		return;
	}
	shortcut_poll(k->shortcut, k->kernel, now_ns);
}

static void halt(struct forward *f)
{
	shortcut_stop(((struct kern *)f->state)->shortcut);
}

static int finish(struct forward *f, struct ho_err *err)
{
	struct kern *k = f->state;

	if (k->kernel)
		ro_kernel_read_stats(k->kernel, &k->stats);
	f->session.also = NULL;
	rt_event_destroy(f->session.rt, k->event);
	k->event = NULL;
	return k->failed.code ? ho_err_set(err, k->failed.code, "%s", k->failed.text) : 0;
}

static void teardown(struct forward *f)
{
	struct kern *k = f->state;

	if (!k)
		return;
	for (unsigned i = 0; k->punt && i < f->workers; i++)
		port_punt_destroy(k->punt[i]);
	free(k->punt);
	shortcut_destroy(k->shortcut);
	ro_kernel_destroy(k->kernel);
	free(k);
	f->state = NULL;
}

static void stats_json(struct forward *f, json_t *object)
{
	const struct ro_kernel_stats *s = &((struct kern *)f->state)->stats;
	const struct {
		const char *key;
		uint64_t value;
	} rows[] = {
		{ "messages", s->messages },
		{ "broken", s->broken },
		{ "overruns", s->overruns },
		{ "resyncs", s->resyncs },
		{ "redumps", s->redumps },
		{ "neighbours_asked", s->resolves },
		{ "neighbours_verified", s->verified },
		{ "refused", s->refused },
		{ "interfaces", s->interfaces },
		{ "addresses", s->addresses },
		{ "routes4", s->routes4 },
		{ "routes6", s->routes6 },
		{ "routes_elsewhere", s->elsewhere },
		{ "routes_ignored", s->ignored },
		{ "rules_ignored", s->rules },
	};
	json_t *kernel = json_object();

	for (size_t i = 0; i < HO_ARRAY_LEN(rows); i++)
		json_object_set_new(kernel, rows[i].key, json_integer((json_int_t)rows[i].value));
	json_object_set_new(object, "kernel", kernel);
}

static void print(struct forward *f, FILE *out)
{
	const struct ro_kernel_stats *s = &((struct kern *)f->state)->stats;

	fprintf(out, "%-10s %llu changes, %u IPv4 and %u IPv6 routes, %llu neighbours asked for\n",
		"kernel", (unsigned long long)s->messages, s->routes4, s->routes6,
		(unsigned long long)s->resolves);
	if (s->overruns)
		fprintf(out, "%-10s its messages were lost %llu times, and all was read again\n",
			"", (unsigned long long)s->overruns);
}

static const struct forward_control kernel_control = {
	.own_stack = false,
	.to_host = to_host,
	.prepare = prepare,
	.setup = setup,
	.poll = poll,
	.halt = halt,
	.finish = finish,
	.teardown = teardown,
	.json = stats_json,
	.print = print,
};

/* -EINVAL when an earlier port is the same, whatever its options, or on the same interface. */
static int given_once(const struct forward *f, unsigned i, struct ho_err *err)
{
	size_t n = strcspn(f->port_arg[i], ",");
	char name[IF_NAMESIZE], other[IF_NAMESIZE];
	struct ho_err none;

	for (unsigned k = 0; k < i; k++) {
		if (strcspn(f->port_arg[k], ",") == n &&
		    !strncmp(f->port_arg[k], f->port_arg[i], n))
			return ho_err_set(err, -EINVAL, "%.*s is given twice", (int)n,
					  f->port_arg[i]);
		if (port_interface(f->port_arg[i], name, sizeof(name), &none) == 0 &&
		    port_interface(f->port_arg[k], other, sizeof(other), &none) == 0 &&
		    !strcmp(name, other))
			return ho_err_set(err, -EINVAL, "%s and %s are the same interface",
					  f->port_arg[k], f->port_arg[i]);
	}
	return 0;
}

int forward_kernel_open(struct forward *f, struct ho_err *err)
{
	int rc = 0;

	f->state = calloc(1, sizeof(struct kern));
	if (!f->state)
		return ho_err_set(err, -ENOMEM, "out of memory");
	f->control = &kernel_control;
	/* Asking for neighbours; and the programs' maps follow the addresses. */
	f->session.caps_keep = LX_CAP(CAP_NET_ADMIN) | LX_CAP(CAP_BPF);
	for (unsigned i = 0; rc == 0 && i < f->port_args; i++)
		rc = given_once(f, i, err);
	if (rc == 0)
		rc = lx_caps_require("following and asking the kernel", LX_CAP(CAP_NET_ADMIN), err);
	/* A router's links come and go. */
	f->session.links_may_be_down = true;
	for (unsigned i = 0; rc == 0 && i < f->port_args; i++) {
		const char *spec = f->port_arg[i];
		char with_keep[512];

		if (!strncmp(spec, "xdp:", 4) && spec[4] && !strstr(spec, ",keep=")) {
			if ((size_t)snprintf(with_keep, sizeof(with_keep), "%s,keep=host", spec) >=
			    sizeof(with_keep))
				return ho_err_set(err, -ENAMETOOLONG, "'%s' is too long", spec);
			spec = with_keep;
		}
		rc = forward_open(f, spec, NULL, NULL, err);
	}
	return rc;
}
