// SPDX-License-Identifier: BSD-2-Clause
/*
 * The router's tables against a model that knows nothing of FIBs: lists, searched from end to end.
 * Random changes of everything, in any order; after each, random addresses must lead to the same
 * place.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "route/fib4.h"
#include "route/fib6.h"
#include "route/nexthop.h"
#include "route/wish.h"
#include "packet/parse.h"

#define PORTS  3
#define IFACES 5
#define ROUTES 40
#define NEIGHS 24
#define ADDRS  8

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* --- the model ------------------------------------------------------------------------------ */

struct m_iface {
	bool there, up;
	unsigned port;
	uint16_t vlan;
	uint8_t mac;
	uint32_t mtu;
};

struct m_route {
	bool there;
	struct ro_route r;
};

struct m_neigh {
	bool there;
	uint32_t ifindex;
	struct ro_addr addr;
	uint8_t mac;
};

struct m_addr {
	bool there;
	uint32_t ifindex;
	struct ro_addr addr;
	uint8_t len;
};

struct model {
	struct m_iface iface[IFACES + 1];
	struct m_route route[ROUTES];
	struct m_neigh neigh[NEIGHS];
	struct m_addr addr[ADDRS];
};

/* Few addresses, so that things meet: 10.0.0.0/26 and 2001:db8::/122. */
static struct ro_addr some_addr(uint8_t family)
{
	struct ro_addr a = { .family = family };

	if (family == RO_IPV4) {
		a.byte[0] = 10;
		a.byte[3] = (uint8_t)rnd(64);
	} else {
		a.byte[0] = 0x20;
		a.byte[1] = 1;
		a.byte[2] = 0xd;
		a.byte[3] = 0xb8;
		a.byte[15] = (uint8_t)rnd(64);
	}
	return a;
}

static bool in_prefix(const struct ro_addr *p, unsigned len, const struct ro_addr *a)
{
	if (p->family != a->family)
		return false;
	for (unsigned i = 0; i < len; i++) {
		if ((p->byte[i / 8] ^ a->byte[i / 8]) >> (7 - i % 8) & 1)
			return false;
	}
	return true;
}

static bool usable(const struct model *m, const struct ro_route *r)
{
	if (r->kind != RO_UNICAST)
		return true;
	for (unsigned i = 0; i < r->hops; i++) {
		const struct m_iface *f = &m->iface[r->hop[i].ifindex];

		if (f->there && f->up)
			return true;
	}
	return false;
}

static const struct m_neigh *neigh_of(const struct model *m, uint32_t ifindex,
				      const struct ro_addr *a)
{
	for (unsigned i = 0; i < NEIGHS; i++) {
		const struct m_neigh *n = &m->neigh[i];

		if (n->there && n->ifindex == ifindex && !memcmp(&n->addr, a, sizeof(*a)))
			return n;
	}
	return NULL;
}

/* Where a packet goes. */
struct verdict {
	uint8_t kind; /* enum ro_nh_kind */
	uint32_t ifindex;
	uint8_t mac; /* last byte */
	uint32_t mtu;
};

static struct verdict by_hop(const struct model *m, const struct ro_route *r,
			     const struct ro_hop *h, const struct ro_addr *dst)
{
	const struct m_iface *f = &m->iface[h->ifindex];
	struct verdict v = { .ifindex = h->ifindex, .mtu = f->mtu };
	const struct m_neigh *n = neigh_of(m, h->ifindex, h->via.family ? &h->via : dst);

	if (r->mtu && r->mtu < v.mtu)
		v.mtu = r->mtu;
	v.kind = n ? RO_NH_ETHER : h->via.family ? RO_NH_RESOLVE : RO_NH_GLEAN;
	v.mac = n ? n->mac : 0;
	return v;
}

/* All verdicts that are right for an address (several with ECMP). */
static unsigned expected(const struct model *m, const struct ro_addr *dst, struct verdict *out)
{
	static const uint8_t kinds[] = { [RO_BLACKHOLE] = RO_NH_BLACKHOLE,
					 [RO_UNREACHABLE] = RO_NH_UNREACHABLE,
					 [RO_PROHIBIT] = RO_NH_PROHIBIT,
					 [RO_THROW] = RO_NH_NO_ROUTE };
	const struct ro_route *best = NULL;
	unsigned bits = dst->family == RO_IPV4 ? 32 : 128, n = 0;

	for (unsigned i = 0; i < ADDRS; i++) {
		const struct m_addr *a = &m->addr[i];
		bool edge = true;

		if (!a->there || a->addr.family != dst->family)
			continue;
		if (!memcmp(&a->addr, dst, sizeof(*dst))) {
			out[0] = (struct verdict){ .kind = RO_NH_LOCAL };
			return 1;
		}
		if (a->len + 1u >= bits || !in_prefix(&a->addr, a->len, dst))
			continue;
		for (unsigned b = a->len; b < bits; b++)
			edge = edge &&
			       (dst->byte[b / 8] >> (7 - b % 8) & 1) == (dst->family == RO_IPV4);
		if (edge && dst->family == RO_IPV6) {
			out[0] = (struct verdict){ .kind = RO_NH_LOCAL };
			return 1;
		}
		n = n || edge;
	}
	if (n) {
		out[0] = (struct verdict){ .kind = RO_NH_BROADCAST };
		return 1;
	}
	for (unsigned i = 0; i < ROUTES; i++) {
		const struct ro_route *r = &m->route[i].r;

		if (!m->route[i].there || !usable(m, r) ||
		    !in_prefix(&r->dst.addr, r->dst.len, dst))
			continue;
		if (!best || r->dst.len > best->dst.len ||
		    (r->dst.len == best->dst.len && r->metric < best->metric))
			best = r;
	}
	if (!best) {
		out[0] = (struct verdict){ .kind = RO_NH_NO_ROUTE };
		return 1;
	}
	if (best->kind != RO_UNICAST) {
		out[0] = (struct verdict){ .kind = kinds[best->kind] };
		return 1;
	}
	for (unsigned i = 0; i < best->hops; i++) {
		const struct m_iface *f = &m->iface[best->hop[i].ifindex];

		if (f->there && f->up)
			out[n++] = by_hop(m, best, &best->hop[i], dst);
	}
	/* On-link paths of an ECMP route find their neighbour themselves. */
	for (unsigned i = 0; best->hops > 1 && i < n; i++) {
		if (out[i].kind == RO_NH_ETHER && !best->hop[0].via.family)
			out[i].kind = RO_NH_GLEAN;
	}
	return n;
}

static bool same(const struct model *m, const struct ro_view *v, const struct ro_nh *nh,
		 const struct verdict *e)
{
	const struct m_iface *f = &m->iface[e->ifindex];

	if (nh->kind != e->kind)
		return false;
	if (nh->kind != RO_NH_ETHER && nh->kind != RO_NH_RESOLVE && nh->kind != RO_NH_GLEAN)
		return true;
	if (nh->mtu != e->mtu || nh->port != f->port ||
	    ro_iface_at(v, nh->iface)->ifindex != e->ifindex)
		return false;
	if (nh->kind != RO_NH_ETHER)
		return true;
	return nh->eth[5] == e->mac && nh->eth[11] == f->mac &&
	       nh->eth_bytes == (f->vlan ? 18 : 14) &&
	       (!f->vlan || pk_load16(nh->eth + 14) == f->vlan);
}

static bool agrees(const struct model *m, const struct ro_view *v, const struct ro_addr *dst)
{
	uint32_t number = dst->family == RO_IPV4 ? fib4_lookup(v->fib4, pk_load32(dst->byte))
						 : fib6_lookup(v->fib6, dst->byte);
	const struct ro_nh *nh = ro_nh_at(v, number);
	struct verdict e[RO_HOPS_MAX];
	unsigned n = expected(m, dst, e), buckets = nh->kind == RO_NH_ECMP ? 64 : 1;

	for (unsigned b = 0; b < buckets; b++) {
		const struct ro_nh *one = nh;
		bool found = false;

		if (nh->kind == RO_NH_ECMP)
			one = ro_nh_at(v, nh->ecmp->nh[nh->ecmp->bucket[b]]);
		for (unsigned i = 0; i < n && !found; i++)
			found = same(m, v, one, &e[i]);
		if (!found) {
			print_error(
				"kind %u (ECMP %d), port %u, mtu %u, MAC %02x; expected kind %u, "
				"interface %u, mtu %u, MAC %02x or %u others\n",
				one->kind, nh->kind == RO_NH_ECMP, one->port, one->mtu, one->eth[5],
				e[0].kind, e[0].ifindex, e[0].mtu, e[0].mac, n - 1);
			return false;
		}
	}
	return true;
}

/* --- changes -------------------------------------------------------------------------------- */

static void set_iface(struct ro_tables *t, const struct model *m, unsigned i)
{
	const struct m_iface *f = &m->iface[i];
	struct ro_iface_config c = { .ifindex = i,
				     .port = f->port,
				     .vlan = f->vlan,
				     .mac = { 2, 0, 0, 0, 0, f->mac },
				     .mtu = f->mtu,
				     .up = f->up };

	snprintf(c.name, sizeof(c.name), "i%u", i);
	assert_int_equal(ro_iface_set(t, &c, NULL), 0);
}

static void set_neigh(struct ro_tables *t, const struct m_neigh *n)
{
	const uint8_t mac[6] = { 2, 0, 0, 0, 9, n->mac };

	assert_int_equal(ro_neigh_set(t, n->ifindex, &n->addr, mac, NULL), 0);
}

static void change_iface(struct ro_tables *t, struct model *m)
{
	unsigned i = 1 + rnd(IFACES);
	struct m_iface *f = &m->iface[i];

	if (f->there && rnd(4) == 0) {
		f->there = false;
		assert_int_equal(ro_iface_del(t, i), 0);
		for (unsigned k = 0; k < NEIGHS; k++)
			m->neigh[k].there = m->neigh[k].there && m->neigh[k].ifindex != i;
		for (unsigned k = 0; k < ADDRS; k++)
			m->addr[k].there = m->addr[k].there && m->addr[k].ifindex != i;
		return;
	}
	*f = (struct m_iface){ .there = true,
			       .up = rnd(3) != 0,
			       .port = i % PORTS,
			       .vlan = (uint16_t)(i < 3 ? 0 : i),
			       .mac = (uint8_t)rnd(200),
			       .mtu = 1000 + rnd(600) };
	set_iface(t, m, i);
}

static void change_route(struct ro_tables *t, struct model *m)
{
	struct m_route *old = &m->route[rnd(ROUTES)];
	struct ro_route r = { 0 };
	bool same_family;

	if (old->there && rnd(2)) {
		old->there = false;
		assert_int_equal(ro_route_del(t, &old->r.dst, old->r.metric), 0);
		return;
	}
	r.dst.addr = some_addr(rnd(2) ? RO_IPV4 : RO_IPV6);
	r.dst.len = (uint8_t)((r.dst.addr.family == RO_IPV4 ? 26 : 122) + rnd(7));
	for (unsigned b = r.dst.len; b < (r.dst.addr.family == RO_IPV4 ? 32u : 128u); b++)
		r.dst.addr.byte[b / 8] &= (uint8_t) ~(0x80 >> b % 8);
	r.metric = rnd(3);
	r.mtu = rnd(3) ? 0 : HO_MAX(ro_mtu_min(r.dst.addr.family), 900u) + rnd(300);
	r.kind = rnd(4) ? RO_UNICAST : (enum ro_route_kind)(RO_BLACKHOLE + rnd(4));
	same_family = rnd(4) != 0 || r.dst.addr.family == RO_IPV6;
	if (r.kind == RO_UNICAST) {
		bool on_link = rnd(2);

		r.hops = rnd(4) ? 1 : 2 + rnd(3);
		for (unsigned i = 0; i < r.hops; i++) {
			r.hop[i] = (struct ro_hop){ .ifindex = 1 + rnd(IFACES),
						    .weight = (uint16_t)(1 + rnd(5)) };
			if (!on_link)
				r.hop[i].via = some_addr(same_family ? r.dst.addr.family : RO_IPV6);
		}
	}
	assert_int_equal(ro_route_set(t, &r, NULL), 0);
	for (unsigned i = 0; i < ROUTES; i++) {
		struct m_route *o = &m->route[i];

		if (o->there && !memcmp(&o->r.dst, &r.dst, sizeof(r.dst)) &&
		    o->r.metric == r.metric) {
			o->r = r;
			return;
		}
	}
	if (old->there)
		assert_int_equal(ro_route_del(t, &old->r.dst, old->r.metric), 0);
	*old = (struct m_route){ .there = true, .r = r };
}

static void change_neigh(struct ro_tables *t, struct model *m)
{
	struct m_neigh *n = &m->neigh[rnd(NEIGHS)];
	struct m_neigh new = { .there = true,
			       .ifindex = 1 + rnd(IFACES),
			       .addr = some_addr(rnd(2) ? RO_IPV4 : RO_IPV6),
			       .mac = (uint8_t)rnd(250) };

	if (n->there && rnd(3)) {
		n->there = false;
		assert_int_equal(rnd(2) ? ro_neigh_del(t, n->ifindex, &n->addr)
					: ro_neigh_fail(t, n->ifindex, &n->addr),
				 0);
		return;
	}
	if (!m->iface[new.ifindex].there)
		return;
	if (n->there)
		assert_int_equal(ro_neigh_del(t, n->ifindex, &n->addr), 0);
	n->there = false;
	if (neigh_of(m, new.ifindex, &new.addr))
		n = (struct m_neigh *)neigh_of(m, new.ifindex, &new.addr);
	*n = new;
	set_neigh(t, n);
}

static void change_addr(struct ro_tables *t, struct model *m)
{
	struct m_addr *a = &m->addr[rnd(ADDRS)];

	if (a->there) {
		a->there = false;
		assert_int_equal(ro_addr_del(t, a->ifindex, &a->addr, a->len), 0);
		return;
	}
	*a = (struct m_addr){ .ifindex = 1 + rnd(IFACES),
			      .addr = some_addr(rnd(2) ? RO_IPV4 : RO_IPV6) };
	a->len = (uint8_t)((a->addr.family == RO_IPV4 ? 26 : 122) + rnd(7));
	for (unsigned i = 0; i < ADDRS; i++) {
		const struct m_addr *o = &m->addr[i];

		if (o != a && o->there && o->ifindex == a->ifindex && o->len == a->len &&
		    !memcmp(&o->addr, &a->addr, sizeof(a->addr)))
			return; /* the same twice is one */
	}
	if (!m->iface[a->ifindex].there)
		return;
	a->there = true;
	assert_int_equal(ro_addr_set(t, a->ifindex, &a->addr, a->len, NULL), 0);
}

/* Everything is said again, but for some of it that is gone meanwhile. */
static void resync(struct ro_tables *t, struct model *m)
{
	ro_tables_resync_begin(t);
	for (unsigned i = 1; i <= IFACES; i++) {
		if (!m->iface[i].there)
			continue;
		if (rnd(6) == 0) {
			m->iface[i].there = false;
			for (unsigned k = 0; k < NEIGHS; k++)
				m->neigh[k].there = m->neigh[k].there && m->neigh[k].ifindex != i;
			for (unsigned k = 0; k < ADDRS; k++)
				m->addr[k].there = m->addr[k].there && m->addr[k].ifindex != i;
			continue;
		}
		set_iface(t, m, i);
	}
	for (unsigned i = 0; i < ADDRS; i++) {
		m->addr[i].there = m->addr[i].there && rnd(6);
		if (m->addr[i].there)
			ro_addr_set(t, m->addr[i].ifindex, &m->addr[i].addr, m->addr[i].len, NULL);
	}
	for (unsigned i = 0; i < ROUTES; i++) {
		m->route[i].there = m->route[i].there && rnd(6);
		if (m->route[i].there)
			assert_int_equal(ro_route_set(t, &m->route[i].r, NULL), 0);
	}
	for (unsigned i = 0; i < NEIGHS; i++) {
		m->neigh[i].there = m->neigh[i].there && rnd(6);
		if (m->neigh[i].there)
			set_neigh(t, &m->neigh[i]);
	}
	ro_tables_resync_end(t);
}

static void check_all(const struct model *m, struct ro_tables *t, unsigned step)
{
	const struct ro_view *v = ro_tables_view(t);

	for (unsigned i = 0; i < 128; i++) {
		struct ro_addr a = some_addr(i < 64 ? RO_IPV4 : RO_IPV6);

		a.byte[a.family == RO_IPV4 ? 3 : 15] = (uint8_t)(i % 64);
		if (!agrees(m, v, &a)) {
			print_error("step %u, IPv%u address .%u\n", step, a.family, i % 64);
			fail();
		}
	}
}

static void test_random(void **state)
{
	for (uint64_t run = 1; run <= 12; run++) {
		struct model *m = calloc(1, sizeof(*m));
		struct ro_tables *t;
		uint64_t now = 0;

		assert_non_null(m);
		seed = run;
		assert_int_equal(ro_tables_create(PORTS, NULL, &t, NULL), 0);
		for (unsigned step = 0; step < 1500; step++) {
			switch (rnd(12)) {
			case 0:
				change_iface(t, m);
				break;
			case 1:
			case 2:
				change_addr(t, m);
				break;
			case 3:
			case 4:
			case 5:
				change_neigh(t, m);
				break;
			case 6:
				if (rnd(20) == 0)
					resync(t, m);
				break;
			case 7:
				ro_tables_poll(t, now += 100000000);
				break;
			default:
				change_route(t, m);
			}
			if (step % 4 == 0)
				check_all(m, t, step);
		}
		ro_tables_destroy(t);
		free(m);
	}
}

/* --- ECMP ----------------------------------------------------------------------------------- */

static void three_paths(struct ro_tables *t, const uint16_t *weight, unsigned up)
{
	struct ro_route r = { .dst = { { RO_IPV4, { 10 } }, 8 }, .kind = RO_UNICAST, .hops = 3 };

	for (unsigned i = 0; i < 3; i++) {
		struct ro_iface_config c = {
			.ifindex = i + 1, .port = i, .mac = { 2 }, .mtu = 1500, .up = up >> i & 1
		};

		assert_int_equal(ro_iface_set(t, &c, NULL), 0);
		r.hop[i] = (struct ro_hop){ .ifindex = i + 1,
					    .weight = weight[i],
					    .via = { RO_IPV4, { 192, 0, (uint8_t)i, 1 } } };
	}
	assert_int_equal(ro_route_set(t, &r, NULL), 0);
}

/* Port of each bucket. */
static void paths_now(struct ro_tables *t, uint8_t *port)
{
	const struct ro_view *v = ro_tables_view(t);
	const struct ro_nh *nh = ro_nh_at(v, fib4_lookup(v->fib4, 0x0a000001));

	assert_int_equal(nh->kind, RO_NH_ECMP);
	for (unsigned b = 0; b < RO_ECMP_BUCKETS; b++)
		port[b] = (uint8_t)ro_nh_at(v, nh->ecmp->nh[nh->ecmp->bucket[b]])->port;
}

static void test_ecmp(void **state)
{
	static const uint16_t equal[3] = { 1, 1, 1 }, weighted[3] = { 1, 2, 5 };
	uint8_t all[RO_ECMP_BUCKETS], less[RO_ECMP_BUCKETS], back[RO_ECMP_BUCKETS];
	unsigned share[3] = { 0 };
	struct ro_tables *t;

	assert_int_equal(ro_tables_create(3, NULL, &t, NULL), 0);
	three_paths(t, equal, 7);
	paths_now(t, all);
	/* A link goes: its own flows move and no others; it comes back: all as before. */
	three_paths(t, equal, 5);
	paths_now(t, less);
	for (unsigned b = 0; b < RO_ECMP_BUCKETS; b++) {
		assert_int_not_equal(less[b], 1);
		if (all[b] != 1)
			assert_int_equal(all[b], less[b]);
	}
	three_paths(t, equal, 7);
	paths_now(t, back);
	assert_memory_equal(all, back, sizeof(all));
	/* Shares by weight, within 4 standard deviations. */
	three_paths(t, weighted, 7);
	paths_now(t, all);
	for (unsigned b = 0; b < RO_ECMP_BUCKETS; b++)
		share[all[b]]++;
	assert_in_range(share[0], 256 - 60, 256 + 60);
	assert_in_range(share[1], 512 - 79, 512 + 79);
	assert_in_range(share[2], 1280 - 88, 1280 + 88);
	ro_tables_destroy(t);
}

static void test_refused(void **state)
{
	struct ro_route r = { .dst = { { RO_IPV4, { 10, 1 } }, 8 }, .kind = RO_BLACKHOLE };
	struct ro_route six = { .dst = { { RO_IPV6, { 0x20, 1 } }, 16 }, .kind = RO_BLACKHOLE };
	struct ro_iface_config c = { .ifindex = 1, .vlan = 4095, .mtu = 1500 };
	struct ro_addr a = { RO_IPV4, { 10, 0, 0, 1 } };
	struct ho_err err = { 0 };
	struct ro_tables *t;

	assert_int_equal(ro_tables_create(1, NULL, &t, NULL), 0);
	assert_int_equal(ro_route_set(t, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "10.1.0.0/8"));
	r.dst.addr.byte[1] = 0;
	r.kind = RO_UNICAST;
	assert_int_equal(ro_route_set(t, &r, &err), -EINVAL);
	/* Less than what every link carries could not be cut into fragments. */
	r.kind = RO_BLACKHOLE;
	r.mtu = 67;
	assert_int_equal(ro_route_set(t, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "MTU 67"));
	six.mtu = 1279;
	assert_int_equal(ro_route_set(t, &six, &err), -EINVAL);
	six.mtu = 1280;
	assert_int_equal(ro_route_set(t, &six, &err), 0);
	assert_int_equal(ro_iface_set(t, &c, &err), -EINVAL);
	c.vlan = 0;
	c.port = 1;
	assert_int_equal(ro_iface_set(t, &c, &err), -EINVAL);
	assert_int_equal(ro_addr_set(t, 1, &a, 24, &err), -ENOENT);
	assert_int_equal(ro_addr_del(t, 1, &a, 24), -ENOENT);
	assert_int_equal(ro_neigh_del(t, 1, &a), -ENOENT);
	assert_int_equal(ro_iface_del(t, 1), -ENOENT);
	assert_int_equal(ro_route_del(t, &r.dst, 0), -ENOENT);
	ro_tables_destroy(t);
}

/* What no route changes. */
static void test_reserved(void **state)
{
	static const struct {
		struct ro_addr addr;
		uint8_t len, kind;
	} row[] = {
		{ { RO_IPV4, { 127 } }, 8, RO_NH_MARTIAN },
		{ { RO_IPV4, { 224, 1 } }, 16, RO_NH_MULTICAST },
		{ { RO_IPV4, { 169, 254 } }, 16, RO_NH_LINK_SCOPE },
		{ { RO_IPV4, { 255, 255, 255, 255 } }, 32, RO_NH_BROADCAST },
		{ { RO_IPV6, { 0xfe, 0x80 } }, 64, RO_NH_LINK_SCOPE },
		{ { RO_IPV6, { 0xff, 0x02 } }, 16, RO_NH_MULTICAST },
		{ { RO_IPV6, { [15] = 1 } }, 128, RO_NH_MARTIAN },
	};
	const struct ro_view *v;
	struct ro_tables *t;

	assert_int_equal(ro_tables_create(1, NULL, &t, NULL), 0);
	v = ro_tables_view(t);
	for (unsigned i = 0; i < HO_ARRAY_LEN(row); i++) {
		struct ro_route r = { .dst = { row[i].addr, row[i].len }, .kind = RO_BLACKHOLE };
		const struct ro_addr *a = &row[i].addr;
		uint32_t n;

		assert_int_equal(ro_route_set(t, &r, NULL), 0);
		n = a->family == RO_IPV4 ? fib4_lookup(v->fib4, pk_load32(a->byte))
					 : fib6_lookup(v->fib6, a->byte);
		assert_int_equal(ro_nh_at(v, n)->kind, row[i].kind);
		assert_int_equal(ro_route_del(t, &r.dst, 0), 0);
	}
	ro_tables_destroy(t);
}

/* What is sent to a neighbour has the source that the route to its link says. */
static void test_link_source(void **state)
{
	struct ro_iface_config c = { .ifindex = 1, .mac = { 2 }, .mtu = 1500, .up = true };
	struct ro_route r = { .dst = { { RO_IPV4, { 10, 1 } }, 16 },
			      .kind = RO_UNICAST,
			      .hops = 1,
			      .hop = { { .ifindex = 1, .weight = 1 } } };
	struct ro_addr neigh = { RO_IPV4, { 10, 1, 0, 2 } };
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	const struct ro_view *v;
	struct ro_tables *t;

	assert_int_equal(ro_tables_create(1, NULL, &t, NULL), 0);
	v = ro_tables_view(t);
	assert_int_equal(ro_iface_set(t, &c, NULL), 0);
	assert_int_equal(ro_neigh_set(t, 1, &neigh, mac, NULL), 0);
	for (unsigned last = 0; last < 3; last++) {
		struct ro_addr src = { RO_IPV4, { 10, 1, 0, (uint8_t)last } };
		const struct ro_nh *nh;

		/* At first none. */
		r.prefsrc = last ? src : (struct ro_addr){ 0 };
		assert_int_equal(ro_route_set(t, &r, NULL), 0);
		nh = ro_nh_at(v, fib4_lookup(v->fib4, 0x0a010002));
		assert_int_equal(nh->kind, RO_NH_ETHER);
		assert_int_equal(nh->prefsrc.family, last ? RO_IPV4 : 0);
		assert_int_equal(nh->prefsrc.byte[3], last);
	}
	ro_tables_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),      cmocka_unit_test(test_ecmp),
		cmocka_unit_test(test_refused),     cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_link_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
