// SPDX-License-Identifier: BSD-2-Clause
#include "route/kernel_rib.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/compiler.h"

#define BUCKETS_FIRST 1024

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* Of up to 16 bytes. */
static uint64_t mix_bytes(uint64_t h, const uint8_t *bytes, size_t n)
{
	uint64_t word[2] = { 0 };

	memcpy(word, bytes, n);
	return mix(mix(h, word[0]), word[1]);
}

int rib_init(struct rib *rib)
{
	*rib = (struct rib){ .buckets = BUCKETS_FIRST, .path_buckets = BUCKETS_FIRST };
	rib->bucket = calloc(rib->buckets, sizeof(rib->bucket[0]));
	rib->paths = calloc(rib->path_buckets, sizeof(rib->paths[0]));
	if (rib->bucket && rib->paths)
		return 0;
	rib_fini(rib);
	return -ENOMEM;
}

void rib_fini(struct rib *rib)
{
	for (size_t b = 0; rib->bucket && b < rib->buckets; b++) {
		while (rib->bucket[b]) {
			struct rib_route *r = rib->bucket[b];

			rib->bucket[b] = r->next;
			free(r);
		}
	}
	for (size_t b = 0; rib->paths && b < rib->path_buckets; b++) {
		while (rib->paths[b]) {
			struct rib_paths *p = rib->paths[b];

			rib->paths[b] = p->next;
			free(p);
		}
	}
	free(rib->bucket);
	free(rib->paths);
	*rib = (struct rib){ 0 };
}

/* --- paths ---------------------------------------------------------------------------------- */

static bool same_ip(const struct lx_ip *a, const struct lx_ip *b)
{
	return a->family == b->family && !memcmp(a->byte, b->byte, sizeof(a->byte));
}

static bool same_hop(const struct lx_hop *a, const struct lx_hop *b)
{
	return a->index == b->index && a->weight == b->weight &&
	       a->encapsulated == b->encapsulated && same_ip(&a->via, &b->via);
}

static uint32_t paths_hash(uint8_t kind, uint32_t mtu, uint32_t nexthop, const struct lx_hop *hop,
			   unsigned hops)
{
	uint64_t h = mix(mix(kind, mtu), nexthop);

	for (unsigned i = 0; i < hops; i++)
		h = mix_bytes(mix(h, (uint64_t)hop[i].index << 16 | hop[i].weight), hop[i].via.byte,
			      sizeof(hop[i].via.byte));
	return (uint32_t)(h ^ h >> 32);
}

static void grow_paths(struct rib *rib)
{
	size_t n = 2 * rib->path_buckets;
	struct rib_paths **grown = calloc(n, sizeof(*grown));

	if (!grown)
		return; /* chains get longer instead */
	for (size_t b = 0; b < rib->path_buckets; b++) {
		while (rib->paths[b]) {
			struct rib_paths *p = rib->paths[b];

			rib->paths[b] = p->next;
			p->next = grown[p->hash & (n - 1)];
			grown[p->hash & (n - 1)] = p;
		}
	}
	free(rib->paths);
	rib->paths = grown;
	rib->path_buckets = n;
}

/* The paths with this content, with one reference more. NULL: no memory. */
static struct rib_paths *get_paths(struct rib *rib, uint8_t kind, uint32_t mtu, uint32_t nexthop,
				   const struct lx_ip *prefsrc, const struct lx_hop *hop,
				   unsigned hops)
{
	uint32_t hash = paths_hash(kind, mtu, nexthop, hop, hops);
	struct rib_paths *p = rib->paths[hash & (rib->path_buckets - 1)];

	for (; p; p = p->next) {
		unsigned i = 0;

		if (p->hash != hash || p->kind != kind || p->mtu != mtu || p->nexthop != nexthop ||
		    p->hops != hops || !same_ip(&p->prefsrc, prefsrc))
			continue;
		while (i < hops && same_hop(&p->hop[i], &hop[i]))
			i++;
		if (i == hops) {
			p->refs++;
			return p;
		}
	}
	p = calloc(1, sizeof(*p) + hops * sizeof(p->hop[0]));
	if (!p)
		return NULL;
	*p = (struct rib_paths){ .refs = 1,
				 .hash = hash,
				 .kind = kind,
				 .mtu = mtu,
				 .nexthop = nexthop,
				 .prefsrc = *prefsrc,
				 .hops = hops };
	if (hops)
		memcpy(p->hop, hop, hops * sizeof(hop[0]));
	if (++rib->n_paths > rib->path_buckets)
		grow_paths(rib);
	p->next = rib->paths[hash & (rib->path_buckets - 1)];
	rib->paths[hash & (rib->path_buckets - 1)] = p;
	return p;
}

static void put_paths(struct rib *rib, struct rib_paths *p)
{
	struct rib_paths **place = &rib->paths[p->hash & (rib->path_buckets - 1)];

	if (--p->refs)
		return;
	while (*place != p)
		place = &(*place)->next;
	*place = p->next;
	rib->n_paths--;
	free(p);
}

static struct rib_paths *paths_of(struct rib *rib, const struct lx_route *r)
{
	/* The object's hops are its own; those that the message repeats may be older. */
	if (r->nexthop)
		return get_paths(rib, RTN_UNICAST, r->mtu, r->nexthop, &r->prefsrc, NULL, 0);
	return get_paths(rib, r->kind, r->mtu, 0, &r->prefsrc, r->hop, r->hops);
}

/* --- routes --------------------------------------------------------------------------------- */

static size_t bucket_of(const struct rib *rib, uint8_t family, const uint8_t *dst, uint8_t len,
			uint32_t metric)
{
	uint64_t h = mix(mix(family, len), metric);

	h = mix_bytes(h, dst, lx_family_bytes(family));
	return (h ^ h >> 32) & (rib->buckets - 1);
}

static bool has_key(const struct rib_route *r, uint8_t family, const uint8_t *dst, uint8_t len,
		    uint32_t metric)
{
	return r->family == family && r->len == len && r->metric == metric &&
	       !memcmp(r->dst, dst, lx_family_bytes(family));
}

struct rib_route *rib_first(const struct rib *rib, uint8_t family, const uint8_t *dst, uint8_t len,
			    uint32_t metric)
{
	struct rib_route *r = rib->bucket[bucket_of(rib, family, dst, len, metric)];

	while (r && !has_key(r, family, dst, len, metric))
		r = r->next;
	return r;
}

static void grow(struct rib *rib)
{
	size_t n = 2 * rib->buckets, before = rib->buckets;
	struct rib_route **grown = calloc(n, sizeof(*grown)), **old = rib->bucket;

	if (!grown)
		return;
	rib->bucket = grown;
	rib->buckets = n;
	for (size_t b = 0; b < before; b++) {
		while (old[b]) {
			struct rib_route *r = old[b], **place;

			old[b] = r->next;
			/* To the end: those of one key keep their order. */
			place = &grown[bucket_of(rib, r->family, r->dst, r->len, r->metric)];
			while (*place)
				place = &(*place)->next;
			r->next = NULL;
			*place = r;
		}
	}
	free(old);
}

static void unlink_route(struct rib *rib, struct rib_route **place)
{
	struct rib_route *r = *place;

	*place = r->next;
	rib->routes--;
	rib->by_family[r->family == AF_INET6]--;
	rib->by_hand[r->family == AF_INET6] -= r->by_hand;
}

static void free_route(struct rib *rib, struct rib_route *r)
{
	put_paths(rib, r->paths);
	free(r);
}

/* Takes over the reference to paths. last: behind those of its key, table and rank, else before
 * them. */
static int insert(struct rib *rib, const struct lx_route *m, struct rib_paths *paths, bool last)
{
	unsigned bytes = lx_family_bytes(m->family);
	struct rib_route *r = malloc(sizeof(*r) + bytes), **place, *at;
	bool local = m->table == LX_TABLE_LOCAL;

	if (!r) {
		put_paths(rib, paths);
		return -ENOMEM;
	}
	*r = (struct rib_route){ .paths = paths,
				 .metric = m->metric,
				 .family = m->family,
				 .len = m->len,
				 .local = local,
				 .by_hand = local && !m->kernels,
				 .advertised = m->advertised,
				 .rank = m->rank,
				 .seen = rib->mark };
	memcpy(r->dst, m->dst.byte, bytes);
	if (++rib->routes > rib->buckets)
		grow(rib);
	rib->by_family[m->family == AF_INET6]++;
	rib->by_hand[m->family == AF_INET6] += r->by_hand;
	/* In order: those of the table local, those of main; in each by rank. Routes of other keys
	 * may lie between. */
	place = &rib->bucket[bucket_of(rib, r->family, r->dst, r->len, r->metric)];
	for (struct rib_route **p = place; (at = *p) != NULL; p = &at->next) {
		if (!has_key(at, r->family, r->dst, r->len, r->metric))
			continue;
		if ((local && !at->local) ||
		    (at->local == local &&
		     (at->rank > m->rank || (!last && at->rank == m->rank)))) {
			place = p;
			break;
		}
		place = &at->next;
	}
	r->next = *place;
	*place = r;
	return 0;
}

/* Where the next route of this key and table is, from *place on; NULL = there is none. */
static struct rib_route **find(struct rib_route **place, const struct lx_route *m)
{
	bool local = m->table == LX_TABLE_LOCAL;

	for (; *place; place = &(*place)->next) {
		if (has_key(*place, m->family, m->dst.byte, m->len, m->metric) &&
		    (*place)->local == local)
			return place;
	}
	return NULL;
}

/*
 * An IPv6 route whose paths are those of one route, whatever messages they came in: by gateways,
 * without an object, not of an advertisement that the kernel heard itself (rt6_qualify_for_ecmp
 * there). It does not say of which route that is true: programs that hear advertisements in its
 * place (systemd-networkd, NetworkManager) give theirs the same protocol. But its own are one path
 * each. alone: this one would be one of those.
 */
static bool joins(const struct rib_paths *p, bool alone)
{
	bool gateways = p->hops > 0 && !p->nexthop && !(alone && p->hops == 1);

	for (unsigned i = 0; i < p->hops; i++)
		gateways = gateways && p->hop[i].via.family;
	return gateways;
}

/* Is one's first path one of the other's? */
static bool begins_in(const struct rib_paths *one, const struct rib_paths *other)
{
	for (unsigned i = 0; one->hops && i < other->hops; i++) {
		if (other->hop[i].index == one->hop[0].index &&
		    same_ip(&other->hop[i].via, &one->hop[0].via))
			return true;
	}
	return false;
}

static void replace_paths(struct rib *rib, struct rib_route *r, struct rib_paths *paths)
{
	put_paths(rib, r->paths);
	r->paths = paths;
	r->seen = rib->mark;
}

static int add(struct rib *rib, const struct lx_route *m, bool dump)
{
	struct rib_route **head =
		&rib->bucket[bucket_of(rib, m->family, m->dst.byte, m->len, m->metric)];
	struct rib_paths *paths = paths_of(rib, m);
	struct rib_route **place, *r;

	if (!paths)
		return -ENOMEM;
	/* The same once more: from a dump that shows what an event said, or the other way round. */
	for (place = find(head, m); place; place = find(&(*place)->next, m)) {
		r = *place;
		if (r->paths != paths)
			continue;
		put_paths(rib, paths);
		if (r->rank == m->rank && (!dump || r->seen == rib->mark)) {
			r->seen = rib->mark;
			return 0;
		}
		/* To where the dump has it, behind those that it showed before, or to its new
		 * rank. */
		paths = r->paths;
		paths->refs++;
		unlink_route(rib, place);
		free_route(rib, r);
		return insert(rib, m, paths, true);
	}
	place = find(head, m);
	if (place && m->replaced && !dump) {
		replace_paths(rib, *place, paths);
		return 0;
	}
	/* A message about an IPv6 route has all its paths, those from before included. */
	for (; m->family == AF_INET6 && joins(paths, m->advertised) && place;
	     place = find(&(*place)->next, m)) {
		r = *place;
		if (!joins(r->paths, r->advertised && !begins_in(r->paths, paths)) ||
		    (dump && r->seen == rib->mark))
			continue;
		replace_paths(rib, *place, paths);
		return 0;
	}
	return insert(rib, m, paths, dump || m->appended || m->family == AF_INET6);
}

/* One path of several of an IPv6 route goes: the message has only that. Returns 1 when it was
 * so. */
static int shrink(struct rib *rib, struct rib_route *r, const struct lx_route *m)
{
	struct lx_hop left[LX_HOPS_MAX];
	struct rib_paths *old = r->paths, *paths;
	unsigned n = 0, found = 0;

	if (old->hops <= m->hops || m->hops == 0 || old->nexthop)
		return 0;
	for (unsigned i = 0; i < old->hops && i < LX_HOPS_MAX; i++) {
		bool goes = false;

		for (unsigned j = 0; j < m->hops; j++)
			goes = goes || (old->hop[i].index == m->hop[j].index &&
					same_ip(&old->hop[i].via, &m->hop[j].via));
		found += goes;
		if (!goes)
			left[n++] = old->hop[i];
	}
	if (found != m->hops || !n)
		return 0;
	paths = get_paths(rib, old->kind, old->mtu, 0, &old->prefsrc, left, n);
	if (!paths)
		return -ENOMEM;
	replace_paths(rib, r, paths);
	return 1;
}

static int del(struct rib *rib, const struct lx_route *m)
{
	struct rib_route **head =
		&rib->bucket[bucket_of(rib, m->family, m->dst.byte, m->len, m->metric)];
	struct rib_paths *paths = paths_of(rib, m);
	struct rib_route **place, **victim = NULL, *r;
	int rc = 0;

	if (!paths)
		return -ENOMEM;
	for (place = find(head, m); place && !victim; place = find(&(*place)->next, m)) {
		if ((*place)->paths == paths)
			victim = place;
	}
	put_paths(rib, paths);
	for (place = find(head, m); place && !victim && m->family == AF_INET6;
	     place = find(&(*place)->next, m)) {
		rc = shrink(rib, *place, m);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	/* The metric alone names it when only one has it: what its paths look like may differ from
	 * when it was added (an interface that went away). */
	place = find(head, m);
	if (!victim && place && !find(&(*place)->next, m))
		victim = place;
	if (!victim)
		return place ? -ESTALE : -ENOENT;
	r = *victim;
	unlink_route(rib, victim);
	free_route(rib, r);
	return 0;
}

int rib_update(struct rib *rib, const struct lx_route *route, bool gone, bool dump)
{
	return gone ? del(rib, route) : add(rib, route, dump);
}

/* --- all of them ----------------------------------------------------------------------------- */

void rib_mark(struct rib *rib)
{
	rib->mark++;
}

/* Removes those for which goes() says so. */
static void remove_those(struct rib *rib, bool (*goes)(const struct rib_route *r, uint32_t what),
			 uint32_t what, void (*changed)(void *arg, const struct rib_route *gone),
			 void *arg)
{
	for (size_t b = 0; b < rib->buckets; b++) {
		struct rib_route **place = &rib->bucket[b];

		while (*place) {
			struct rib_route *r = *place;

			if (!goes(r, what)) {
				place = &r->next;
				continue;
			}
			unlink_route(rib, place);
			changed(arg, r);
			free_route(rib, r);
		}
	}
}

static bool unseen(const struct rib_route *r, uint32_t mark)
{
	return r->seen != mark;
}

static bool by_nexthop(const struct rib_route *r, uint32_t id)
{
	return r->paths->nexthop == id;
}

void rib_sweep(struct rib *rib, void (*changed)(void *arg, const struct rib_route *gone), void *arg)
{
	remove_those(rib, unseen, rib->mark, changed, arg);
}

void rib_drop_nexthop(struct rib *rib, uint32_t id,
		      void (*changed)(void *arg, const struct rib_route *gone), void *arg)
{
	bool used = false;

	for (size_t b = 0; b < rib->path_buckets && !used; b++) {
		for (const struct rib_paths *p = rib->paths[b]; p && !used; p = p->next)
			used = p->nexthop == id;
	}
	if (used)
		remove_those(rib, by_nexthop, id, changed, arg);
}

void rib_each(const struct rib *rib, void (*fn)(void *arg, const struct rib_route *route),
	      void *arg)
{
	for (size_t b = 0; b < rib->buckets; b++) {
		for (const struct rib_route *r = rib->bucket[b]; r; r = r->next)
			fn(arg, r);
	}
}
