// SPDX-License-Identifier: BSD-2-Clause
#include "route/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "route/kernel_impl.h"

/* Messages taken in one call, so that wishes of workers do not wait long. */
#define READ_LIMIT 512
/* After an overrun the storm goes on; and an unfinished dump is not repeated at once. */
#define AFTER_OVERRUN_NS 100000000u
#define DUMP_AGAIN_NS    1000000000u

void kern_refused(struct ro_kernel *k, int rc, const struct ho_err *err)
{
	k->stats.refused++;
	/* Without memory nothing is right until all is read again. */
	if (rc == -ENOMEM)
		kern_want_resync(k, DUMP_AGAIN_NS);
	ho_verbose("%s", err->text);
}

static void want(bool *due, uint64_t *at_ns, uint64_t when_ns)
{
	*at_ns = *due ? HO_MIN(*at_ns, when_ns) : when_ns;
	*due = true;
}

void kern_want_resync(struct ro_kernel *k, uint64_t ns)
{
	want(&k->resync_due, &k->resync_ns, rt_now_ns(k->rt) + ns);
}

void kern_want_redump(struct ro_kernel *k, uint64_t ns)
{
	/* The last event counts, not the first: until then the kernel may be at it. */
	k->redump_due = true;
	k->redump_ns = rt_now_ns(k->rt) + ns;
}

static void on_rule(struct ro_kernel *k, const struct lx_rule *rule, bool gone)
{
	if (rule->standard)
		return;
	if (gone) {
		k->stats.rules -= k->stats.rules > 0;
		return;
	}
	k->stats.rules++;
	if (!k->said_rules)
		ho_warn("there are rules beside the kernel's own (priority %u): only the table "
			"main is followed; 'ip rule' shows them",
			rule->priority);
	k->said_rules = true;
}

static void on_message(void *arg, const struct lx_rtnl *m)
{
	struct ro_kernel *k = arg;

	switch (m->kind) {
	case LX_LINK:
		kern_on_link(k, &m->link, m->gone);
		break;
	case LX_ADDR:
		kern_on_addr(k, &m->addr, m->gone);
		break;
	case LX_ROUTE:
		kern_on_route(k, &m->route, m->gone);
		break;
	case LX_NEXTHOP:
		kern_on_nexthop(k, &m->nexthop, m->gone);
		break;
	case LX_NEIGH:
		kern_on_neigh(k, &m->neigh, m->gone);
		break;
	case LX_RULE:
		on_rule(k, &m->rule, m->gone);
		break;
	}
}

/* --- dumps ---------------------------------------------------------------------------------- */

/* Reads everything. Packets flow by the old state meanwhile. */
static int resync(struct ro_kernel *k, struct ho_err *err)
{
	int rc;

	k->resync_due = k->redump_due = k->neighs_due = false;
	k->dumping = k->resyncing = true;
	k->stats.resyncs++;
	k->stats.rules = k->stats.ignored = 0;
	lx_watch_discard(k->watch);
	ro_tables_resync_begin(k->tables);
	kern_links_begin(k);
	kern_routes_begin(k);
	rc = lx_watch_dump(k->watch, LX_DUMP_ALL, err);
	/* What an unfinished dump did not show is not gone for that: it stays until the next. */
	if (rc == 0) {
		kern_links_end(k);
		kern_routes_end(k);
		ro_tables_resync_end(k->tables);
	}
	k->dumping = k->resyncing = false;
	kern_routes_refresh(k, false);
	kern_tell_ports(k);
	if (rc == -EAGAIN) {
		kern_want_resync(k, DUMP_AGAIN_NS);
		return 0;
	}
	return rc;
}

/* Reads routes and next hop objects. */
static int redump(struct ro_kernel *k, struct ho_err *err)
{
	int rc;

	k->redump_due = false;
	k->dumping = true;
	k->stats.redumps++;
	k->stats.ignored = 0;
	kern_routes_begin(k);
	rc = lx_watch_dump(k->watch, LX_DUMP_NEXTHOPS | LX_DUMP_ROUTES, err);
	if (rc == 0)
		kern_routes_end(k);
	k->dumping = false;
	if (rc == -EAGAIN) {
		kern_want_redump(k, DUMP_AGAIN_NS);
		return 0;
	}
	return rc;
}

/* --- the whole ------------------------------------------------------------------------------ */

void ro_kernel_resolver(struct ro_kernel **kernel, struct ro_resolver *out)
{
	*out = (struct ro_resolver){ .resolve = kern_resolve, .arg = kernel };
}

int ro_kernel_create(const struct ro_kernel_config *config, struct ro_kernel **out,
		     struct ho_err *err)
{
	struct ro_kernel *k = calloc(1, sizeof(*k));
	int rc = -ENOMEM;

	if (!k)
		return ho_err_set(err, -ENOMEM, "out of memory for the kernel's tables");
	k->rt = config->rt;
	k->tables = config->tables;
	k->ports = config->ports;
	k->least_mtu = UINT32_MAX;
	if (rib_init(&k->rib) < 0) {
		ho_err_set(err, rc, "out of memory for the kernel's tables");
		goto fail;
	}
	for (unsigned i = 0; i < k->ports; i++) {
		k->port[i] = config->port[i];
		rc = port_host_attach(k->port[i], &k->shared[i], err);
		if (rc < 0)
			goto fail;
		k->ifindex[i] = port_host_ifindex(k->port[i]);
		for (unsigned j = 0; j < i; j++) {
			if (k->ifindex[j] != k->ifindex[i])
				continue;
			rc = ho_err_set(err, -EINVAL, "%s and %s are the same interface",
					k->port[j]->name, k->port[i]->name);
			goto fail;
		}
	}
	rc = lx_watch_open(on_message, k, &k->watch, err);
	if (rc == 0)
		rc = resync(k, err);
	if (rc < 0)
		goto fail;
	*out = k;
	return 0;
fail:
	ro_kernel_destroy(k);
	return rc;
}

void ro_kernel_destroy(struct ro_kernel *k)
{
	if (!k)
		return;
	lx_watch_close(k->watch);
	rib_fini(&k->rib);
	kern_nexthops_free(k);
	kern_links_free(k);
	free(k);
}

int ro_kernel_fd(const struct ro_kernel *k)
{
	return lx_watch_fd(k->watch);
}

int ro_kernel_poll(struct ro_kernel *k, uint64_t now_ns, struct ho_err *err)
{
	uint64_t began = rt_now_ns(k->rt);
	int rc = lx_watch_read(k->watch, READ_LIMIT, err);
	bool more = rc >= READ_LIMIT;

	if (rc == -ENOBUFS) {
		kern_want_resync(k, AFTER_OVERRUN_NS);
		rc = 0;
	}
	if (rc < 0)
		return rc;
	kern_routes_refresh(k, false);
	kern_tell_ports(k);
	kern_neigh_poll(k);
	if (k->resync_due && began >= k->resync_ns) {
		uint64_t lost = k->stats.overruns;
		struct lx_watch_stats stats;

		rc = resync(k, err);
		lx_watch_read_stats(k->watch, &stats);
		k->stats.overruns = stats.overruns;
		if (rc == 0)
			(stats.overruns > lost ? ho_note : ho_verbose)(
				"%s: read the kernel's tables again, %zu routes in %.0f ms",
				stats.overruns > lost ? "the kernel dropped messages" : "resync",
				k->rib.routes, (double)(rt_now_ns(k->rt) - began) / 1e6);
	} else if (k->neighs_due) {
		k->neighs_due = false;
		rc = lx_watch_dump(k->watch, LX_DUMP_NEIGHS, err);
		if (rc == -EAGAIN) {
			k->neighs_due = true;
			rc = 0;
		}
	} else if (k->redump_due && began >= k->redump_ns) {
		rc = redump(k, err);
	}
	return rc < 0 ? rc : more;
}

static unsigned count_ours(const struct ro_kernel *k)
{
	unsigned n = 0;

	while (ro_kernel_iface_name(k, n))
		n++;
	return n;
}

uint32_t ro_kernel_least_mtu(const struct ro_kernel *k)
{
	uint32_t least = k->least_mtu;

	for (unsigned b = 0; least != UINT32_MAX && b < KERN_LINK_BUCKETS; b++) {
		for (const struct kern_link *l = k->link[b]; l; l = l->next) {
			if (l->ours)
				least = HO_MIN(least, l->link.mtu);
		}
	}
	return least;
}

bool ro_kernel_knows_more(const struct ro_kernel *k, bool ip6)
{
	return k->said_space || k->rib.by_hand[ip6] > 0 || k->stats.ignored > 0;
}

void ro_kernel_read_stats(const struct ro_kernel *k, struct ro_kernel_stats *out)
{
	struct lx_watch_stats watch;

	lx_watch_read_stats(k->watch, &watch);
	*out = k->stats;
	out->messages = watch.messages;
	out->broken = watch.broken;
	out->overruns = watch.overruns;
	out->interfaces = count_ours(k);
	out->addresses = k->n_addr;
	out->routes4 = (unsigned)k->rib.by_family[0];
	out->routes6 = (unsigned)k->rib.by_family[1];
	out->elsewhere = kern_routes_elsewhere(k);
}
