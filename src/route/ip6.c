// SPDX-License-Identifier: BSD-2-Clause
/*
 * IPv6 (RFC 8200) on its way through and to the router. In transit only a hop-by-hop header is
 * looked at (RFC 8200 section 4); of its options, padding and router alert (RFC 2711) are known,
 * and the rest is treated as their type says (section 4.2).
 */
#include <string.h>

#include "route/fib6.h"
#include "route/worker.h"

enum { UNREACH = 1, PARAMETER = 4 };
enum { BEYOND_SCOPE = 2 };
enum { BAD_FIELD = 0, UNKNOWN_OPTION = 2 };

static bool sound(struct ro_worker *w, struct ro_pkt *p)
{
	enum ro_drop why;
	uint32_t frame;

	if (p->have < PK_IPV6_BYTES) {
		why = RO_DROP_IP6_SHORT;
		goto bad;
	}
	frame = pk_frame_bytes(p->slot, p->n) - (uint32_t)(p->ip - p->l2);
	p->ip_bytes = PK_IPV6_BYTES + (uint32_t)pk_load16(p->ip + 4);
	if (p->ip[0] >> 4 != 6)
		why = RO_DROP_IP6_VERSION;
	else if (p->ip_bytes > frame)
		why = RO_DROP_IP6_PAYLOAD_LEN;
	else
		return true;
bad:
	ro_drop(w, p, why);
	return false;
}

static bool is_zero(const uint8_t *a, unsigned n)
{
	while (n && !a[n - 1])
		n--;
	return !n;
}

static bool link_local6(const uint8_t *a)
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

static bool mapped(const uint8_t *a)
{
	return is_zero(a, 10) && a[10] == 0xff && a[11] == 0xff;
}

/* A source that no packet may have; :: is looked at elsewhere. */
static bool martian_source(const uint8_t *a)
{
	return a[0] == 0xff || (is_zero(a, 15) && a[15] == 1) || mapped(a);
}

static uint8_t kind_of(struct ro_worker *w, const uint8_t *addr)
{
	return ro_nh_at(w->view, fib6_lookup(w->view->fib6, addr))->kind;
}

static bool own_source(struct ro_worker *w, const struct ro_pkt *p)
{
	const uint8_t *src = p->ip + 8;

	if (!ro_own_maybe6(w->view, src))
		return false;
	return ro_iface_owns(p->in, RO_IPV6, src) || kind_of(w, src) == RO_NH_LOCAL;
}

/*
 * Options from offset `at` of the packet, `bytes` of them (RFC 8200 section 4.2). Returns
 * RO_DROP_COUNT if the packet may go on; else it has been answered as it must be, and is to be
 * dropped.
 */
enum ro_drop ro_ip6_options(struct ro_worker *w, const struct ro_pkt *p, uint32_t at,
			    uint32_t bytes)
{
	enum { PAD1 = 0 };
	const uint8_t *ip = p->ip;
	uint32_t end = at + bytes;

	while (at < end) {
		uint8_t type = ip[at];
		uint32_t len;

		if (type == PAD1) {
			at++;
			continue;
		}
		if (at + 2 > end || at + 2 + ip[at + 1] > end)
			return RO_DROP_IP6_EXT;
		len = ip[at + 1];
		/* 00: skip it. What we know is of that kind. */
		if (type >> 6 != 0) {
			if (type >> 6 == 2 || (type >> 6 == 3 && ip[24] != 0xff))
				ro_icmp6_error(w, p, PARAMETER, UNKNOWN_OPTION, at);
			return RO_DROP_IP6_OPTION;
		}
		at += 2 + len;
	}
	return RO_DROP_COUNT;
}

/* The hop-by-hop header, which every node looks at. false: dropped. */
static bool hop_by_hop(struct ro_worker *w, struct ro_pkt *p)
{
	enum ro_drop why = RO_DROP_IP6_EXT;
	uint32_t bytes;

	if (p->ip[6] != PK_IP_HOPOPTS)
		return true;
	if (p->ip_bytes >= PK_IPV6_BYTES + 8) {
		bytes = (p->ip[PK_IPV6_BYTES + 1] + 1u) * 8;
		if (PK_IPV6_BYTES + bytes <= HO_MIN(p->ip_bytes, p->have))
			why = ro_ip6_options(w, p, PK_IPV6_BYTES + 2, bytes - 2);
	}
	if (why == RO_DROP_COUNT)
		return true;
	ro_drop(w, p, why);
	return false;
}

/* A group that the router is a member of on its interfaces: all nodes, all routers, and the
 * solicited-node groups of its addresses (RFC 4291 2.8). */
static bool our_group(const struct ro_pkt *p)
{
	static const uint8_t link[15] = { 0xff, 0x02 };
	static const uint8_t solicited[13] = { 0xff, 0x02, [11] = 1, [12] = 0xff };
	const uint8_t *dst = p->ip + 24;

	if (!memcmp(dst, link, sizeof(link)) && (dst[15] == 1 || dst[15] == 2))
		return true;
	if (memcmp(dst, solicited, sizeof(solicited)) != 0)
		return false;
	for (unsigned i = p->in->n4; i < p->in->n4 + p->in->n6; i++) {
		if (!memcmp(p->in->addr[i].byte + 13, dst + 13, 3))
			return true;
	}
	return false;
}

static void not_local(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh)
{
	const uint8_t *src = p->ip + 8;

	if (is_zero(src, 16)) {
		ro_drop(w, p, RO_DROP_MARTIAN_SRC);
	} else if (own_source(w, p)) {
		ro_drop(w, p, RO_DROP_OWN_SRC);
	} else if (nh->kind == RO_NH_MULTICAST) {
		ro_drop(w, p, RO_DROP_MULTICAST);
	} else if (nh->kind == RO_NH_MARTIAN) {
		ro_drop(w, p, RO_DROP_MARTIAN_DST);
	} else if (nh->kind == RO_NH_LINK_SCOPE) {
		ro_drop(w, p, RO_DROP_LINK_SCOPE);
	} else if (p->group) {
		ro_drop(w, p, RO_DROP_L2_BROADCAST);
	} else if (link_local6(src)) {
		/* RFC 4443 3.1. */
		ro_icmp6_error(w, p, UNREACH, BEYOND_SCOPE, 0);
		ro_drop(w, p, RO_DROP_LINK_SCOPE);
	} else if (hop_by_hop(w, p)) {
		ro_forward(w, p, nh);
	}
}

void ro_ip6_input(struct ro_worker *w, struct ro_pkt *p)
{
	const struct ro_nh *nh;
	bool local;

	if (!sound(w, p))
		return;
	if (martian_source(p->ip + 8)) {
		ro_drop(w, p, RO_DROP_MARTIAN_SRC);
		return;
	}
	nh = ro_route_of(w, p);
	if (nh->kind == RO_NH_LINK_SCOPE)
		local = ro_iface_owns(p->in, RO_IPV6, p->ip + 24);
	else if (nh->kind == RO_NH_MULTICAST)
		local = our_group(p);
	else
		local = nh->kind == RO_NH_LOCAL;
	if (nh->kind == RO_NH_HOST && !p->group)
		ro_to_host(w, p);
	else if (!local)
		not_local(w, p, nh);
	else if (p->group && nh->kind != RO_NH_MULTICAST)
		ro_drop(w, p, RO_DROP_L2_BROADCAST);
	else if (hop_by_hop(w, p))
		ro_local6(w, p);
}
