// SPDX-License-Identifier: BSD-2-Clause
/*
 * When packets may take the shortcut: the kernel must forward by the interface they come in by
 * (bpf_fib_lookup refuses otherwise), the interface that they leave by must be up and take frames
 * that are redirected to it. Whatever does not hold, the router does.
 */
#include "cmd/forward_shortcut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "port/shortcut.h"

/* Between two looks at what the kernel does not tell by itself. */
#define LOOK_NS 100000000u
/* No program has room for more. */
#define EXITS_MAX 256

struct shortcut {
	struct forward *f;
	struct port *port[RO_PORTS_MAX]; /* NULL = not part of it */
	struct ho_err why[RO_PORTS_MAX]; /* not */
	enum port_shortcut_takes says[RO_PORTS_MAX];
	bool takes[RO_PORTS_MAX]; /* redirected frames */
	bool ip4[RO_PORTS_MAX], ip6[RO_PORTS_MAX];
	uint64_t look_ns; /* when next */
	/* By which interfaces packets may leave: those that the programs know, and a spare. */
	struct exits {
		unsigned n;
		struct ro_kernel_iface iface[EXITS_MAX];
	} exits[2];
	unsigned at; /* which of them the programs know */
	bool said_room;
};

int shortcut_create(struct forward *f, struct shortcut **out, struct ho_err *err)
{
	const bool must = f->shortcut == FORWARD_SHORTCUT_YES;
	struct shortcut *s;
	unsigned parts = 0;
	int rc;

	*out = NULL;
	if (f->shortcut == FORWARD_SHORTCUT_NO)
		return 0;
	if (f->common.count && must)
		return ho_err_set(err, -EINVAL,
				  "--count counts packets that the router receives, and those that "
				  "take the shortcut are none: --shortcut=no or no --count");
	/* It would end late. */
	if (f->common.count)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return ho_err_set(err, -ENOMEM, "out of memory");
	s->f = f;
	for (unsigned i = 0; i < f->ports; i++) {
		rc = port_shortcut_possible(f->port[i].rx, &s->why[i]);
		if (rc == 0) {
			s->port[i] = f->port[i].rx;
			parts++;
		} else if (must) {
			ho_err_set(err, rc, "no shortcut: %s", s->why[i].text);
			goto fail;
		}
	}
	rc = parts ? port_shortcut_join(s->port, f->ports, err) : 0;
	if (rc < 0)
		goto fail;
	if (parts)
		*out = s;
	else
		free(s);
	return 0;
fail:
	free(s);
	return rc;
}

void shortcut_destroy(struct shortcut *s)
{
	free(s);
}

/* Does the kernel forward what comes in by this interface? */
static bool forwards(const struct port *port, const char *family)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/conf/%s/forwarding", family, strchr(port->name, ':') + 1);
	return forward_setting(path) == 1;
}

/* Looks at settings and peers. The programs look into the table main only: with more in the table
 * local than the addresses, which they know, the router must look, as with routes there that it
 * does not follow. */
static void look(struct shortcut *s, const struct ro_kernel *kernel)
{
	for (unsigned i = 0; i < s->f->ports; i++) {
		const struct port *port = s->port[i];

		if (!port)
			continue;
		s->says[i] = port_shortcut_takes(port);
		s->takes[i] =
			s->says[i] == PORT_SHORTCUT_YES || (s->says[i] == PORT_SHORTCUT_UNKNOWN &&
							    s->f->shortcut == FORWARD_SHORTCUT_YES);
		s->ip4[i] = forwards(port, "ipv4") && !ro_kernel_knows_more(kernel, false);
		s->ip6[i] = forwards(port, "ipv6") && !ro_kernel_knows_more(kernel, true);
		port_shortcut_set(s->port[i], s->ip4[i], s->ip6[i]);
	}
}

static void set_exit(struct shortcut *s, const struct ro_kernel_iface *i, bool open)
{
	if (port_shortcut_exit(s->port, s->f->ports, i->port, i->ifindex, i->vlan, open) ||
	    s->said_room)
		return;
	s->said_room = true;
	ho_note("some interfaces are left by way of the router: the shortcut has no room for them");
}

static bool has(const struct exits *e, const struct ro_kernel_iface *i)
{
	for (unsigned k = 0; k < e->n; k++) {
		if (!memcmp(&e->iface[k], i, sizeof(*i)))
			return true;
	}
	return false;
}

/* Closes what may not be left by any more, then opens what may; mostly, nothing has changed. */
static void update(struct shortcut *s, const struct ro_kernel *kernel)
{
	struct exits *now = &s->exits[!s->at], *before = &s->exits[s->at];
	unsigned all = ro_kernel_ifaces(kernel, now->iface, EXITS_MAX);

	now->n = 0;
	for (unsigned k = 0; k < all; k++) {
		const struct ro_kernel_iface *i = &now->iface[k];

		if (i->up && s->takes[i->port])
			now->iface[now->n++] = *i;
	}
	if (now->n == before->n && !memcmp(now->iface, before->iface, now->n * sizeof(*now->iface)))
		return;
	for (unsigned k = 0; k < before->n; k++) {
		if (!has(now, &before->iface[k]))
			set_exit(s, &before->iface[k], false);
	}
	for (unsigned k = 0; k < now->n; k++)
		set_exit(s, &now->iface[k], true);
	s->at = !s->at;
}

/* The kernel forwards by a route's MTU only if it is locked; the router always heeds it. */
static void heed_mtu(struct shortcut *s, const struct ro_kernel *kernel)
{
	for (unsigned i = 0; i < s->f->ports; i++) {
		if (s->port[i])
			port_shortcut_longest(s->port[i], ro_kernel_least_mtu(kernel));
	}
}

void shortcut_poll(struct shortcut *s, const struct ro_kernel *kernel, uint64_t now_ns)
{
	if (!s)
		return;
	heed_mtu(s, kernel);
	if (now_ns >= s->look_ns) {
		look(s, kernel);
		s->look_ns = now_ns + LOOK_NS;
	}
	update(s, kernel);
}

void shortcut_say(const struct shortcut *s)
{
	bool any = false;

	for (unsigned i = 0; s && i < s->f->ports; i++)
		any |= s->ip4[i] || s->ip6[i];
	if (!s)
		return;
	if (!any && s->f->shortcut == FORWARD_SHORTCUT_YES)
		ho_warn("no packet takes the shortcut until the kernel forwards as well: 'sysctl "
			"net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1'");
	for (unsigned i = 0; any && i < s->f->ports; i++) {
		const char *name = s->f->port[i].rx->name;

		if (!s->port[i])
			ho_note("%s is no part of the shortcut: %s", name, s->why[i].text);
		else if (s->says[i] == PORT_SHORTCUT_NO)
			ho_note("%s: what leaves by it goes by way of the router: the interface "
				"takes no "
				"redirected frames now; a veth does when its peer runs an XDP "
				"program "
				"or has GRO on ('ethtool -K PEER gro on')",
				name);
		else if (s->says[i] == PORT_SHORTCUT_UNKNOWN && s->takes[i])
			ho_note("%s: frames that it drops on the shortcut may go uncounted: the "
				"kernel "
				"(before 6.3) or its driver does not say",
				name);
		else if (s->says[i] == PORT_SHORTCUT_UNKNOWN)
			ho_note("%s: what leaves by it goes by way of the router: the kernel "
				"(before 6.3) "
				"does not tell whether the interface takes redirected frames, or "
				"the "
				"driver does not count those it drops; --shortcut=yes does without",
				name);
	}
}

void shortcut_stop(struct shortcut *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->f->ports; i++) {
		if (s->port[i])
			port_shortcut_set(s->port[i], false, false);
	}
	port_shortcut_settle();
}
