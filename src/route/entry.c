// SPDX-License-Identifier: BSD-2-Clause
/* Prefixes: which of several routes is used, and what the FIBs hold. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "route/tables_impl.h"

static size_t entry_hash(uint8_t family, const uint8_t *addr, unsigned len)
{
	uint64_t a, b;

	memcpy(&a, addr, 8);
	memcpy(&b, addr + 8, 8);
	a = (a ^ (uint64_t)len << 3 ^ family) * 0x9e3779b97f4a7c15u;
	a = (a ^ a >> 29 ^ b) * 0xbf58476d1ce4e5b9u;
	return a ^ a >> 32;
}

static struct ro_entry **bucket_of(struct ro_tables *t, uint8_t family, const uint8_t *addr,
				   unsigned len)
{
	return &t->bucket[entry_hash(family, addr, len) & (t->buckets - 1)];
}

struct ro_entry *ro_entry_find(struct ro_tables *t, uint8_t family, const uint8_t *addr,
			       unsigned len)
{
	struct ro_entry *e = *bucket_of(t, family, addr, len);

	while (e && (e->family != family || e->len != len || memcmp(e->addr, addr, 16)))
		e = e->next;
	return e;
}

static void grow(struct ro_tables *t)
{
	size_t n = 2 * t->buckets, before = t->buckets;
	struct ro_entry **grown = calloc(n, sizeof(*grown)), **old = t->bucket;

	if (!grown)
		return; /* chains get longer instead */
	t->bucket = grown;
	t->buckets = n;
	for (size_t b = 0; b < before; b++) {
		while (old[b]) {
			struct ro_entry *e = old[b], **place;

			old[b] = e->next;
			place = bucket_of(t, e->family, e->addr, e->len);
			e->next = *place;
			*place = e;
		}
	}
	free(old);
}

struct ro_entry *ro_entry_get(struct ro_tables *t, uint8_t family, const uint8_t *addr,
			      unsigned len)
{
	struct ro_entry *e = ro_entry_find(t, family, addr, len), **place;

	if (e)
		return e;
	if (t->entries >= t->buckets)
		grow(t);
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->family = family;
	e->len = (uint8_t)len;
	memcpy(e->addr, addr, 16);
	place = bucket_of(t, family, addr, len);
	e->next = *place;
	*place = e;
	t->entries++;
	t->by_len[ro_fam(family)][len]++;
	return e;
}

static void entry_free(struct ro_tables *t, struct ro_entry *e)
{
	struct ro_entry **link = bucket_of(t, e->family, e->addr, e->len);

	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	t->entries--;
	t->by_len[ro_fam(e->family)][e->len]--;
	free(e);
}

/* The route that is used: of the least metric among those that can be. */
static const struct ro_hopset *best(const struct ro_entry *e)
{
	for (const struct ro_rt *r = e->routes; r; r = r->next) {
		if (r->set->usable)
			return r->set;
	}
	return NULL;
}

static uint32_t wanted(struct ro_tables *t, const struct ro_entry *e)
{
	const struct ro_hopset *set;
	uint32_t nh;

	if (ro_is_reserved(e->family, e->addr, e->len))
		return 0;
	if (e->local)
		return RO_NH_NUM_LOCAL;
	if (e->broadcast)
		return RO_NH_NUM_BROADCAST;
	if (e->len == ro_bits(e->family)) {
		nh = ro_neigh_host_nh(t, e->family, e->addr);
		if (nh)
			return nh;
	}
	set = best(e);
	return set ? set->nh : 0;
}

static int fib_change(struct ro_tables *t, const struct ro_entry *e, uint32_t nh,
		      struct ho_err *err)
{
	uint32_t addr4;

	memcpy(&addr4, e->addr, sizeof(addr4));
	addr4 = ntohl(addr4);
	if (e->family == RO_IPV4)
		return nh ? fib4_set(t->view.fib4, addr4, e->len, nh, err)
			  : fib4_del(t->view.fib4, addr4, e->len);
	return nh ? fib6_set(t->view.fib6, e->addr, e->len, nh, err)
		  : fib6_del(t->view.fib6, e->addr, e->len);
}

int ro_entry_publish(struct ro_tables *t, struct ro_entry *e, struct ho_err *err)
{
	uint32_t nh = wanted(t, e);
	int rc = 0;

	if (nh != e->nh) {
		rc = fib_change(t, e, nh, err);
		if (rc < 0)
			return rc;
		e->nh = nh;
	}
	if (!e->routes && !e->local && !e->broadcast && !e->nh)
		entry_free(t, e);
	return 0;
}

static void mask(uint8_t *addr, unsigned len, unsigned bits)
{
	for (unsigned i = len; i < bits; i++)
		addr[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
}

const struct ro_hopset *ro_cover(struct ro_tables *t, const struct ro_addr *addr)
{
	unsigned bits = ro_bits(addr->family);
	uint8_t key[16];

	memcpy(key, addr->byte, sizeof(key));
	if (ro_is_reserved(addr->family, key, bits))
		return NULL;
	for (int len = (int)bits; len >= 0; len--) {
		const struct ro_hopset *set;
		const struct ro_entry *e;

		if (!t->by_len[ro_fam(addr->family)][len])
			continue;
		mask(key, (unsigned)len, bits);
		e = ro_entry_find(t, addr->family, key, (unsigned)len);
		if (!e)
			continue;
		if (e->local || e->broadcast)
			return NULL;
		set = best(e);
		if (set)
			return set;
	}
	return NULL;
}

void ro_entries_refresh(struct ro_tables *t)
{
	for (size_t b = 0; b < t->buckets; b++) {
		for (struct ro_entry *e = t->bucket[b], *next; e; e = next) {
			next = e->next;
			ro_entry_publish(t, e, NULL);
		}
		ro_reclaim_some(t);
	}
}

/* --- routes --------------------------------------------------------------------------------- */

static int route_check(const struct ro_route *r, struct ho_err *err)
{
	char text[RO_ADDR_TEXT];
	int rc = ro_prefix_check(&r->dst, err);

	if (rc < 0)
		return rc;
	ro_addr_text(&r->dst.addr, text);
	if (r->kind > RO_HOST)
		return ho_err_set(err, -EINVAL, "%s/%u: unknown kind of route %d", text, r->dst.len,
				  (int)r->kind);
	if (r->kind == RO_UNICAST ? !r->hops || r->hops > RO_HOPS_MAX : r->hops != 0)
		return ho_err_set(err, -EINVAL,
				  "%s/%u: %u next hops; a unicast route has 1 to %d, others none",
				  text, r->dst.len, r->hops, RO_HOPS_MAX);
	if (r->mtu && (r->mtu < ro_mtu_min(r->dst.addr.family) || r->mtu > 65535))
		return ho_err_set(err, -EINVAL, "%s/%u: MTU %u: from %u to 65535 is possible", text,
				  r->dst.len, r->mtu, ro_mtu_min(r->dst.addr.family));
	if (r->prefsrc.family && r->prefsrc.family != r->dst.addr.family)
		return ho_err_set(err, -EINVAL, "%s/%u: the source is of the other family", text,
				  r->dst.len);
	for (unsigned i = 0; i < r->hops; i++) {
		const struct ro_hop *h = &r->hop[i];

		if (!h->ifindex)
			return ho_err_set(err, -EINVAL, "%s/%u: next hop %u has no interface", text,
					  r->dst.len, i + 1);
		if (h->weight < 1 || h->weight > 256)
			return ho_err_set(err, -EINVAL, "%s/%u: weight %u: 1 to 256 is possible",
					  text, r->dst.len, h->weight);
		if (r->dst.addr.family == RO_IPV6 && h->via.family == RO_IPV4)
			return ho_err_set(err, -EINVAL,
					  "%s/%u: an IPv6 route cannot go via an IPv4 gateway",
					  text, r->dst.len);
	}
	return 0;
}

int ro_route_set(struct ro_tables *t, const struct ro_route *route, struct ho_err *err)
{
	const struct ro_prefix *dst = &route->dst;
	struct ro_hopset *set, *old = NULL;
	struct ro_rt **link, *r, *made = NULL;
	struct ro_entry *e;
	uint32_t nh_before;
	int rc = route_check(route, err);

	if (rc < 0)
		return rc;
	rc = ro_hopset_get(t, route, &set, err);
	if (rc < 0)
		return rc;
	e = ro_entry_get(t, dst->addr.family, dst->addr.byte, dst->len);
	if (!e) {
		ro_hopset_put(t, set);
		return ho_err_set(err, -ENOMEM, "out of memory for a route");
	}
	link = &e->routes;
	while (*link && (*link)->metric < route->metric)
		link = &(*link)->next;
	r = *link;
	if (r && r->metric == route->metric) {
		old = r->set;
	} else {
		r = made = calloc(1, sizeof(*r));
		if (!r) {
			ro_entry_publish(t, e, NULL);
			ro_hopset_put(t, set);
			return ho_err_set(err, -ENOMEM, "out of memory for a route");
		}
		r->metric = route->metric;
		r->next = *link;
		*link = r;
	}
	r->set = set;
	r->seen = t->seen;
	nh_before = e->nh;
	rc = ro_entry_publish(t, e, err);
	if (rc < 0) {
		/* As before. */
		r->set = old;
		if (made) {
			*link = made->next;
			free(made);
		}
		ro_entry_publish(t, e, NULL);
		ro_hopset_put(t, set);
		return rc;
	}
	/* Of a host the FIB may have the neighbour's own route, whatever this one says. */
	if (e->nh != nh_before || dst->len == ro_bits(dst->addr.family))
		ro_neighs_covered(t, dst->addr.family, dst->addr.byte, dst->len);
	ro_hopset_put(t, old);
	ro_reclaim_some(t);
	return 0;
}

/* Takes the route at *link off its entry. */
static void route_drop(struct ro_tables *t, struct ro_entry *e, struct ro_rt **link)
{
	struct ro_rt *r = *link;
	uint8_t family = e->family, len = e->len, addr[16];
	uint32_t nh_before = e->nh;

	memcpy(addr, e->addr, sizeof(addr));
	*link = r->next;
	/* A FIB that cannot be changed for want of memory still holds the number: it stays. */
	if (ro_entry_publish(t, e, NULL) == 0)
		ro_hopset_put(t, r->set);
	free(r);
	e = ro_entry_find(t, family, addr, len);
	if (!e || e->nh != nh_before || len == ro_bits(family))
		ro_neighs_covered(t, family, addr, len);
	ro_reclaim_some(t);
}

int ro_route_del(struct ro_tables *t, const struct ro_prefix *dst, uint32_t metric)
{
	struct ro_entry *e = ro_entry_find(t, dst->addr.family, dst->addr.byte, dst->len);
	struct ro_rt **link;

	if (!e)
		return -ENOENT;
	link = &e->routes;
	while (*link && (*link)->metric != metric)
		link = &(*link)->next;
	if (!*link)
		return -ENOENT;
	route_drop(t, e, link);
	return 0;
}

/* The first route of the entry that was not set again, as a link to it; NULL = none. */
static struct ro_rt **stale(const struct ro_tables *t, struct ro_entry *e)
{
	for (struct ro_rt **link = &e->routes; *link; link = &(*link)->next) {
		if ((*link)->seen != t->seen)
			return link;
	}
	return NULL;
}

void ro_routes_sweep(struct ro_tables *t)
{
	for (size_t b = 0; b < t->buckets; b++) {
		struct ro_entry *e = t->bucket[b];

		while (e) {
			struct ro_rt **link = stale(t, e);

			if (link) {
				/* Entries may have gone, this one among them: begin the bucket
				 * again. */
				route_drop(t, e, link);
				e = t->bucket[b];
			} else {
				e = e->next;
			}
		}
	}
}

void ro_entries_free(struct ro_tables *t)
{
	for (size_t b = 0; t->bucket && b < t->buckets; b++) {
		while (t->bucket[b]) {
			struct ro_entry *e = t->bucket[b];

			t->bucket[b] = e->next;
			while (e->routes) {
				struct ro_rt *r = e->routes;

				e->routes = r->next;
				free(r);
			}
			free(e);
		}
	}
}
