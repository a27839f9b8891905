// SPDX-License-Identifier: BSD-2-Clause
/*
 * Neighbours, and their host routes. A neighbour's host route is in the FIB while the neighbour is
 * resolved and the route to its address says "on that link": a neighbour that a more specific
 * route leads elsewhere has none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "route/tables_impl.h"

/* What was asked for and failed is forgotten after this time: the next packet asks again. */
#define FORGET_NS 3000000000u
/* How often we look for those. */
#define LOOK_NS 250000000u

static unsigned bucket_of(uint32_t ifindex, const struct ro_addr *addr)
{
	uint64_t a = 0, b = 0;

	memcpy(&a, addr->byte, 8);
	memcpy(&b, addr->byte + 8, 8);
	a = (a ^ b << 1 ^ ifindex) * 0x9e3779b97f4a7c15u;
	return (unsigned)(a >> 52) % RO_NEIGH_BUCKETS;
}

const struct ro_neigh *ro_neigh_find(const struct ro_view *v, uint32_t ifindex,
				     const struct ro_addr *addr)
{
	const struct ro_neigh *n = RO_RCU_GET(v->neigh[bucket_of(ifindex, addr)]);

	while (n && (n->ifindex != ifindex || !ro_addr_eq(&n->addr, addr)))
		n = RO_RCU_GET(n->next);
	return n;
}

static int order(const struct ro_neigh *n, const uint8_t *addr, uint32_t ifindex)
{
	int c = memcmp(n->addr.byte, addr, 16);

	return c ? c : n->ifindex < ifindex ? -1 : n->ifindex > ifindex;
}

/* Index of the first neighbour that is not before (addr, ifindex). */
static size_t lower_bound(const struct ro_tables *t, uint8_t family, const uint8_t *addr,
			  uint32_t ifindex)
{
	struct ro_neigh *const *sorted = t->sorted[ro_fam(family)];
	size_t low = 0, high = t->n_neigh[ro_fam(family)];

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (order(sorted[mid], addr, ifindex) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint32_t ro_neigh_host_nh(struct ro_tables *t, uint8_t family, const uint8_t *addr)
{
	unsigned f = ro_fam(family);

	for (size_t i = lower_bound(t, family, addr, 0);
	     i < t->n_neigh[f] && !memcmp(t->sorted[f][i]->addr.byte, addr, 16); i++) {
		if (t->sorted[f][i]->active)
			return t->sorted[f][i]->nh;
	}
	return 0;
}

static int insert_sorted(struct ro_tables *t, struct ro_neigh *n)
{
	unsigned f = ro_fam(n->addr.family);
	size_t at;

	if (t->n_neigh[f] == RO_NEIGHS_MAX)
		return -ENOSPC;
	if (t->n_neigh[f] == t->room[f]) {
		size_t room = t->room[f] ? 2 * t->room[f] : 64;
		struct ro_neigh **grown = realloc(t->sorted[f], room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->sorted[f] = grown;
		t->room[f] = room;
	}
	at = lower_bound(t, n->addr.family, n->addr.byte, n->ifindex);
	memmove(&t->sorted[f][at + 1], &t->sorted[f][at],
		(t->n_neigh[f] - at) * sizeof(t->sorted[f][0]));
	t->sorted[f][at] = n;
	t->n_neigh[f]++;
	return 0;
}

struct ro_neigh *ro_neigh_get(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr)
{
	struct ro_neigh *n = (struct ro_neigh *)ro_neigh_find(&t->view, ifindex, addr), **bucket;

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->addr.family = addr->family;
	memcpy(n->addr.byte, addr->byte, ro_addr_bytes(addr->family));
	n->ifindex = ifindex;
	n->changed_ns = t->now_ns;
	n->nh = ro_nh_alloc(t);
	if (!n->nh || insert_sorted(t, n) < 0) {
		if (n->nh)
			ro_nh_release(t, n->nh);
		free(n);
		return NULL;
	}
	ro_neigh_build(t, n);
	bucket = &t->view.neigh[bucket_of(ifindex, &n->addr)];
	n->next = *bucket;
	RO_RCU_SET(*bucket, n);
	return n;
}

/* Is the address on the neighbour's link, by the routes? */
static const struct ro_hopset *on_link(struct ro_tables *t, const struct ro_neigh *n)
{
	const struct ro_hopset *set = ro_cover(t, &n->addr);

	if (!set || set->kind != RO_UNICAST || set->n != 1 || set->hop[0].via.family ||
	    set->hop[0].ifindex != n->ifindex || !set->usable)
		return NULL;
	return set;
}

/* Its host route comes, goes, or changes MTU. */
static void host_route(struct ro_tables *t, struct ro_neigh *n)
{
	const struct ro_hopset *set = n->state == RO_NEIGH_RESOLVED ? on_link(t, n) : NULL;
	bool active = set != NULL;
	struct ro_entry *e;

	if (set && (n->route_mtu != set->mtu || !ro_addr_eq(&n->route_src, &set->prefsrc))) {
		n->route_mtu = set->mtu;
		n->route_src = set->prefsrc;
		ro_neigh_build(t, n);
	}
	if (active == n->active)
		return;
	e = ro_entry_get(t, n->addr.family, n->addr.byte, ro_bits(n->addr.family));
	if (!e)
		return; /* no memory: packets go the slow way */
	n->active = active;
	if (ro_entry_publish(t, e, NULL) < 0)
		n->active = !active;
}

void ro_neighs_covered(struct ro_tables *t, uint8_t family, const uint8_t *addr, unsigned len)
{
	unsigned f = ro_fam(family), bits = ro_bits(family);
	uint8_t last[16];
	size_t i;

	if (!t->n_neigh[f])
		return;
	memcpy(last, addr, sizeof(last));
	for (unsigned b = len; b < bits; b++)
		last[b / 8] |= (uint8_t)(0x80 >> b % 8);
	for (i = lower_bound(t, family, addr, 0);
	     i < t->n_neigh[f] && memcmp(t->sorted[f][i]->addr.byte, last, 16) <= 0; i++)
		host_route(t, t->sorted[f][i]);
}

void ro_neighs_refresh(struct ro_tables *t)
{
	for (unsigned f = 0; f < 2; f++) {
		for (size_t i = 0; i < t->n_neigh[f]; i++) {
			ro_neigh_build(t, t->sorted[f][i]);
			host_route(t, t->sorted[f][i]);
		}
	}
}

void ro_neigh_put(struct ro_tables *t, struct ro_neigh *n)
{
	unsigned f = ro_fam(n->addr.family);
	struct ro_neigh **link = &t->view.neigh[bucket_of(n->ifindex, &n->addr)];
	size_t at;

	if (n->refs || n->known || n->active)
		return;
	while (*link != n)
		link = &(*link)->next;
	RO_RCU_SET(*link, n->next);
	at = lower_bound(t, n->addr.family, n->addr.byte, n->ifindex);
	memmove(&t->sorted[f][at], &t->sorted[f][at + 1],
		(t->n_neigh[f] - at - 1) * sizeof(t->sorted[f][0]));
	t->n_neigh[f]--;
	ro_nh_release(t, n->nh);
	ro_retire(t, n, 0);
}

static void set_state(struct ro_tables *t, struct ro_neigh *n, enum ro_neigh_state state)
{
	__atomic_store_n(&n->state, (uint8_t)state, __ATOMIC_RELEASE);
	n->changed_ns = t->now_ns;
	ro_neigh_build(t, n);
	host_route(t, n);
	__atomic_store_n(&t->view.neigh_changes, t->view.neigh_changes + 1, __ATOMIC_RELEASE);
}

int ro_neigh_set(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr,
		 const uint8_t mac[6], struct ho_err *err)
{
	char text[RO_ADDR_TEXT];
	struct ro_neigh *n;

	if (addr->family != RO_IPV4 && addr->family != RO_IPV6)
		return ho_err_set(err, -EINVAL, "address family %u: 4 or 6 is needed",
				  addr->family);
	if (mac[0] & 1)
		return ho_err_set(err, -EINVAL, "%s: a neighbour's address cannot be a group's",
				  ro_addr_text(addr, text));
	n = ro_neigh_get(t, ifindex, addr);
	if (!n)
		return ho_err_set(err, -ENOMEM, "%s: out of memory, or more than %d neighbours",
				  ro_addr_text(addr, text), RO_NEIGHS_MAX);
	n->known = true;
	n->seen = t->seen;
	if (n->state == RO_NEIGH_RESOLVED && !memcmp(n->mac, mac, 6))
		return 0;
	memcpy(n->mac, mac, 6);
	set_state(t, n, RO_NEIGH_RESOLVED);
	ro_reclaim_some(t);
	return 0;
}

static void forget(struct ro_tables *t, struct ro_neigh *n)
{
	n->known = false;
	n->asked_ns = 0;
	if (n->state != RO_NEIGH_UNRESOLVED)
		set_state(t, n, RO_NEIGH_UNRESOLVED);
	ro_neigh_put(t, n);
	ro_reclaim_some(t);
}

int ro_neigh_del(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr)
{
	struct ro_neigh *n = (struct ro_neigh *)ro_neigh_find(&t->view, ifindex, addr);

	if (!n || !n->known)
		return -ENOENT;
	forget(t, n);
	return 0;
}

int ro_neigh_fail(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr)
{
	struct ro_neigh *n = ro_neigh_get(t, ifindex, addr);

	if (!n)
		return -ENOMEM;
	n->known = true;
	n->seen = t->seen;
	set_state(t, n, RO_NEIGH_FAILED);
	ro_reclaim_some(t);
	return 0;
}

void ro_neighs_of_iface(struct ro_tables *t, uint32_t ifindex)
{
	for (unsigned f = 0; f < 2; f++) {
		for (size_t i = t->n_neigh[f]; i-- > 0;) {
			if (t->sorted[f][i]->ifindex == ifindex)
				forget(t, t->sorted[f][i]);
		}
	}
}

void ro_neighs_sweep(struct ro_tables *t)
{
	for (unsigned f = 0; f < 2; f++) {
		for (size_t i = t->n_neigh[f]; i-- > 0;) {
			struct ro_neigh *n = t->sorted[f][i];

			if (n->known && n->seen != t->seen)
				forget(t, n);
		}
	}
}

void ro_neighs_expire(struct ro_tables *t)
{
	if (t->now_ns < t->expire_ns)
		return;
	t->expire_ns = t->now_ns + LOOK_NS;
	for (unsigned f = 0; f < 2; f++) {
		for (size_t i = t->n_neigh[f]; i-- > 0;) {
			struct ro_neigh *n = t->sorted[f][i];

			if (n->state != RO_NEIGH_RESOLVED && !n->refs &&
			    t->now_ns - n->changed_ns >= FORGET_NS)
				forget(t, n);
			else if (n->state == RO_NEIGH_FAILED &&
				 t->now_ns - n->changed_ns >= FORGET_NS)
				forget(t, n);
		}
	}
}

void ro_neighs_free(struct ro_tables *t)
{
	for (unsigned f = 0; f < 2; f++) {
		for (size_t i = 0; i < t->n_neigh[f]; i++)
			free(t->sorted[f][i]);
		free(t->sorted[f]);
	}
}
