// SPDX-License-Identifier: BSD-2-Clause
/* Routes: from the mirror of the kernel's into the tables. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "route/kernel_impl.h"

/* --- next hop objects ------------------------------------------------------------------------ */

static struct kern_nexthop *find_nexthop(const struct ro_kernel *k, uint32_t id)
{
	struct kern_nexthop *n = k->nexthop[id % KERN_NH_BUCKETS];

	while (n && n->id != id)
		n = n->next;
	return n;
}

static struct kern_nexthop **nexthop_place(struct ro_kernel *k, uint32_t id)
{
	struct kern_nexthop **at = &k->nexthop[id % KERN_NH_BUCKETS];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* Does the object lead to this one? */
static bool leads_to(const struct ro_kernel *k, uint32_t id, uint32_t to)
{
	const struct kern_nexthop *n = find_nexthop(k, id);

	if (id == to)
		return true;
	for (unsigned i = 0; n && i < n->members; i++) {
		if (n->member[i].id == to)
			return true;
	}
	return false;
}

/* The routes by this object are to be looked at again. */
static void touch(struct ro_kernel *k, uint32_t id)
{
	for (size_t b = 0; b < k->rib.path_buckets; b++) {
		for (struct rib_paths *p = k->rib.paths[b]; p; p = p->next) {
			if (p->nexthop && leads_to(k, p->nexthop, id))
				p->dirty = k->paths_dirty = true;
		}
	}
}

static void route_gone(void *arg, const struct rib_route *gone);

static void nexthop_gone(struct ro_kernel *k, struct kern_nexthop **at)
{
	struct kern_nexthop *n = *at;

	*at = n->next;
	/* Its routes went with it, those of IPv4 without a word. */
	rib_drop_nexthop(&k->rib, n->id, route_gone, k);
	touch(k, n->id);
	free(n);
}

void kern_on_nexthop(struct ro_kernel *k, const struct lx_nexthop *m, bool gone)
{
	struct kern_nexthop **at = nexthop_place(k, m->id), *n = *at, *fresh;
	size_t bytes = sizeof(*n) + m->members * sizeof(m->member[0]);

	if (gone) {
		if (n)
			nexthop_gone(k, at);
		return;
	}
	if (m->cut && !k->said_cut) {
		k->said_cut = true;
		ho_warn("next hop group %u has more than %d members; the others are not used",
			m->id, LX_HOPS_MAX);
	}
	fresh = calloc(1, bytes);
	if (!fresh) {
		kern_want_resync(k, 1000000000u);
		return;
	}
	*fresh = (struct kern_nexthop){ .id = m->id,
					.seen = true,
					.blackhole = m->blackhole,
					.hop = m->hop,
					.members = m->members };
	memcpy(fresh->member, m->member, m->members * sizeof(m->member[0]));
	if (n) {
		fresh->next = n->next;
		*at = fresh;
		free(n);
	} else {
		*at = fresh;
	}
	touch(k, m->id);
}

void kern_nexthops_free(struct ro_kernel *k)
{
	for (unsigned b = 0; b < KERN_NH_BUCKETS; b++) {
		while (k->nexthop[b]) {
			struct kern_nexthop *n = k->nexthop[b];

			k->nexthop[b] = n->next;
			free(n);
		}
	}
}

/* --- one route ------------------------------------------------------------------------------- */

static struct ro_prefix prefix_of(const struct rib_route *r)
{
	struct ro_prefix prefix = { .len = r->len };

	prefix.addr.family = r->family == AF_INET ? RO_IPV4 : RO_IPV6;
	memcpy(prefix.addr.byte, r->dst, lx_family_bytes(r->family));
	return prefix;
}

/* What is being put together: paths by our interfaces, and whether there are others. */
struct gather {
	struct ro_route *to;
	unsigned elsewhere, blackholes, blackhole_weight;
	uint32_t weight[RO_HOPS_MAX], most;
};

static void gather_hop(struct ro_kernel *k, struct gather *g, const struct lx_hop *hop,
		       uint32_t weight)
{
	const struct kern_link *l = kern_link_find(k, hop->index);
	struct ro_route *to = g->to;

	if (!l || !l->ours || hop->encapsulated) {
		g->elsewhere++;
		return;
	}
	if (to->hops == RO_HOPS_MAX)
		return;
	to->hop[to->hops] =
		(struct ro_hop){ .ifindex = hop->index, .via = kern_addr_of(&hop->via) };
	g->weight[to->hops++] = weight;
	g->most = HO_MAX(g->most, weight);
}

static void gather_nexthop(struct ro_kernel *k, struct gather *g, uint32_t id, uint32_t weight,
			   bool member)
{
	const struct kern_nexthop *n = find_nexthop(k, id);

	if (!n)
		return;
	if (n->blackhole) {
		g->blackholes++;
	} else if (!n->members) {
		gather_hop(k, g, &n->hop, weight);
	} else if (!member) {
		/* A group has no groups in it. */
		for (unsigned i = 0; i < n->members; i++)
			gather_nexthop(k, g, n->member[i].id, n->member[i].weight, true);
	}
}

/* Fills k->scratch. false: nothing for the tables (multicast, a link-local prefix). */
static bool build(struct ro_kernel *k, const struct rib_route *r)
{
	const struct rib_paths *p = r->paths;
	struct ro_route *to = &k->scratch;
	struct gather g = { .to = to };

	to->dst = prefix_of(r);
	to->metric = r->metric;
	/* The kernel takes any number. */
	to->mtu = p->mtu ? HO_MIN(HO_MAX(p->mtu, ro_mtu_min(to->dst.addr.family)), 65535u) : 0;
	to->prefsrc =
		p->prefsrc.family == r->family ? kern_addr_of(&p->prefsrc) : (struct ro_addr){ 0 };
	to->hops = 0;
	/* fe80::/10 is on every interface, ff00::/8 is no route: the host's, both. */
	if (r->family == AF_INET6 && r->len >= 8 &&
	    (r->dst[0] == 0xff || (r->dst[0] == 0xfe && (r->dst[1] & 0xc0) == 0x80)))
		return false;
	switch (p->kind) {
	case RTN_UNICAST:
		if (p->nexthop)
			gather_nexthop(k, &g, p->nexthop, 1, false);
		for (unsigned i = 0; i < p->hops; i++)
			gather_hop(k, &g, &p->hop[i], p->hop[i].weight);
		break;
	case RTN_LOCAL:
	case RTN_ANYCAST:
		to->kind = RO_LOCAL;
		return true;
	case RTN_BROADCAST:
		to->kind = RO_BROADCAST;
		return true;
	case RTN_BLACKHOLE:
		to->kind = RO_BLACKHOLE;
		return true;
	case RTN_THROW: /* what the table default says then is not followed */
		to->kind = RO_THROW;
		return true;
	case RTN_UNREACHABLE:
		to->kind = RO_UNREACHABLE;
		return true;
	case RTN_PROHIBIT:
		to->kind = RO_PROHIBIT;
		return true;
	default:
		return false;
	}
	if (!to->hops) {
		to->kind = g.blackholes && !g.elsewhere ? RO_BLACKHOLE : RO_HOST;
		return true;
	}
	if (g.elsewhere && !k->said_mixed) {
		k->said_mixed = true;
		ho_note("a route has paths by our interfaces and by others: only ours are used");
	}
	to->kind = RO_UNICAST;
	for (unsigned i = 0; i < to->hops; i++) {
		uint32_t w = g.most > 256 ? g.weight[i] * 256 / g.most : g.weight[i];

		to->hop[i].weight = (uint16_t)HO_MAX(w, 1u);
	}
	return true;
}

/* The tables get what is in use for this prefix and metric now. */
static void publish(struct ro_kernel *k, uint8_t family, const uint8_t *dst, uint8_t len,
		    uint32_t metric)
{
	const struct rib_route *r = rib_first(&k->rib, family, dst, len, metric);
	struct ho_err err = { 0 };
	int rc;

	if (r && build(k, r)) {
		rc = ro_route_set(k->tables, &k->scratch, &err);
		if (rc < 0)
			kern_refused(k, rc, &err);
	} else {
		struct ro_prefix prefix = { .addr.family = family == AF_INET ? RO_IPV4 : RO_IPV6,
					    .len = len };

		memcpy(prefix.addr.byte, dst, lx_family_bytes(family));
		ro_route_del(k->tables, &prefix, metric);
	}
}

static void route_gone(void *arg, const struct rib_route *gone)
{
	publish(arg, gone->family, gone->dst, gone->len, gone->metric);
}

void kern_on_route(struct ro_kernel *k, const struct lx_route *m, bool gone)
{
	const struct rib_route *before, *after;
	const struct rib_paths *paths;
	int rc;

	if ((m->table != LX_TABLE_MAIN && m->table != LX_TABLE_LOCAL) || m->cloned ||
	    m->kind == RTN_MULTICAST)
		return;
	if (m->selective) {
		if (gone)
			k->stats.ignored -= k->stats.ignored > 0;
		else
			k->stats.ignored++;
		if (!k->said_source)
			ho_warn("routes for a source prefix or a type of service are not followed");
		k->said_source = true;
		return;
	}
	if (m->cut && !k->said_cut) {
		k->said_cut = true;
		ho_warn("a route has more than %d paths; the others are not used", LX_HOPS_MAX);
	}
	if (!gone && m->mtu)
		k->least_mtu = HO_MIN(k->least_mtu, m->mtu);
	before = rib_first(&k->rib, m->family, m->dst.byte, m->len, m->metric);
	paths = before ? before->paths : NULL;
	rc = rib_update(&k->rib, m, gone, k->dumping);
	if (rc == -ENOMEM)
		kern_want_resync(k, 1000000000u);
	if (rc == -ESTALE)
		kern_want_redump(k, 0);
	after = rib_first(&k->rib, m->family, m->dst.byte, m->len, m->metric);
	/* In a resynchronisation all that is true is set again. */
	if (k->resyncing || (after ? after->paths : NULL) != paths)
		publish(k, m->family, m->dst.byte, m->len, m->metric);
}

/* --- many ------------------------------------------------------------------------------------ */

struct refresh {
	struct ro_kernel *k;
	bool all;
};

static void refresh_route(void *arg, const struct rib_route *r)
{
	struct refresh *f = arg;

	if ((f->all || r->paths->dirty) && r->paths->kind == RTN_UNICAST)
		publish(f->k, r->family, r->dst, r->len, r->metric);
}

void kern_routes_refresh(struct ro_kernel *k, bool all)
{
	struct refresh f = { k, all };

	if (!all && !k->paths_dirty)
		return;
	rib_each(&k->rib, refresh_route, &f);
	for (size_t b = 0; b < k->rib.path_buckets; b++) {
		for (struct rib_paths *p = k->rib.paths[b]; p; p = p->next)
			p->dirty = false;
	}
	k->paths_dirty = false;
}

void kern_routes_begin(struct ro_kernel *k)
{
	rib_mark(&k->rib);
	for (unsigned b = 0; b < KERN_NH_BUCKETS; b++) {
		for (struct kern_nexthop *n = k->nexthop[b]; n; n = n->next)
			n->seen = false;
	}
}

void kern_routes_end(struct ro_kernel *k)
{
	for (unsigned b = 0; b < KERN_NH_BUCKETS; b++) {
		struct kern_nexthop **at = &k->nexthop[b];

		while (*at) {
			if ((*at)->seen)
				at = &(*at)->next;
			else
				nexthop_gone(k, at);
		}
	}
	rib_sweep(&k->rib, route_gone, k);
	kern_routes_refresh(k, false);
}

struct count {
	const struct ro_kernel *k;
	unsigned elsewhere;
};

static bool hop_is_ours(const struct ro_kernel *k, const struct lx_hop *hop)
{
	const struct kern_link *l = kern_link_find(k, hop->index);

	return l && l->ours && !hop->encapsulated;
}

static void count_elsewhere(void *arg, const struct rib_route *r)
{
	struct count *c = arg;
	const struct kern_nexthop *n =
		r->paths->nexthop ? find_nexthop(c->k, r->paths->nexthop) : NULL;
	bool ours = n && n->blackhole;

	if (r->paths->kind != RTN_UNICAST)
		return;
	for (unsigned i = 0; i < r->paths->hops; i++)
		ours = ours || hop_is_ours(c->k, &r->paths->hop[i]);
	if (n && !n->members)
		ours = ours || hop_is_ours(c->k, &n->hop);
	for (unsigned i = 0; n && i < n->members; i++) {
		const struct kern_nexthop *member = find_nexthop(c->k, n->member[i].id);

		ours = ours || (member && hop_is_ours(c->k, &member->hop));
	}
	c->elsewhere += !ours;
}

unsigned kern_routes_elsewhere(const struct ro_kernel *k)
{
	struct count c = { .k = k };

	rib_each(&k->rib, count_elsewhere, &c);
	return c.elsewhere;
}
