// SPDX-License-Identifier: BSD-2-Clause
/*
 * IPv4 (RFC 1812 section 5): what is checked, what is for the router, and how all other packets of
 * either family leave.
 */
#include <string.h>

#include "packet/csum.h"
#include "route/worker.h"

enum { UNREACH = 3, EXCEEDED = 11, PARAMETER = 12, PACKET_TOO_BIG6 = 2 };
/* Codes of ICMP destination unreachable (RFC 792, RFC 1812 5.2.7.1). */
enum { NET = 0, HOST = 1, NEED_FRAG = 4, SOURCE_ROUTE = 5, ADMIN = 13 };
/* Codes of ICMPv6 destination unreachable (RFC 4443 3.1). */
enum { NO_ROUTE6 = 0, ADMIN6 = 1, UNREACH6 = 1, EXCEEDED6 = 3 };

/* RFC 1812 5.2.2. */
static bool sound(struct ro_worker *w, struct ro_pkt *p)
{
	enum ro_drop why;
	uint32_t header, total, frame;

	if (p->have < PK_IPV4_BYTES) {
		why = RO_DROP_IP4_SHORT;
		goto bad;
	}
	header = (p->ip[0] & 15u) * 4;
	total = pk_load16(p->ip + 2);
	frame = pk_frame_bytes(p->slot, p->n) - (uint32_t)(p->ip - p->l2);
	if (p->ip[0] >> 4 != 4)
		why = RO_DROP_IP4_VERSION;
	else if (header < PK_IPV4_BYTES)
		why = RO_DROP_IP4_HEADER_LEN;
	else if (header > p->have)
		why = RO_DROP_IP4_SHORT;
	else if (total < header || total > frame)
		why = RO_DROP_IP4_TOTAL_LEN;
	else if (pk_csum_fold(pk_csum(p->ip, header)) != 0xffff)
		why = RO_DROP_IP4_CHECKSUM;
	else {
		p->ip_bytes = total;
		return true;
	}
bad:
	ro_drop(w, p, why);
	return false;
}

static bool link_local4(const uint8_t *a)
{
	return a[0] == 169 && a[1] == 254;
}

/* RFC 1812 5.3.7, RFC 6890. */
static bool martian_source(const uint8_t *a)
{
	return a[0] == 0 || a[0] == 127 || a[0] >= 224;
}

static uint8_t kind_of(struct ro_worker *w, const uint8_t *addr)
{
	return ro_nh_at(w->view, fib4_lookup(w->view->fib4, pk_load32(addr)))->kind;
}

/* The source may be refused; RO_DROP_COUNT = it is good. */
static enum ro_drop source_fault(struct ro_worker *w, const uint8_t *src)
{
	uint32_t word;

	if (martian_source(src))
		return RO_DROP_MARTIAN_SRC;
	memcpy(&word, src, sizeof(word));
	if (ro_own_maybe4(w->view, word)) {
		uint8_t kind = kind_of(w, src);

		if (kind == RO_NH_LOCAL)
			return RO_DROP_OWN_SRC;
		if (kind == RO_NH_BROADCAST)
			return RO_DROP_MARTIAN_SRC;
	}
	return RO_DROP_COUNT;
}

/* false: the packet has been dropped for its options. */
static bool options_good(struct ro_worker *w, struct ro_pkt *p)
{
	unsigned pointer;

	switch (ro_ip4_options_check(p->ip, &pointer)) {
	case RO_OPTIONS_BAD:
		ro_icmp4_error(w, p, PARAMETER, 0, pointer << 24);
		ro_drop(w, p, RO_DROP_IP4_OPTION);
		return false;
	case RO_OPTIONS_SOURCE_ROUTE:
		ro_icmp4_error(w, p, UNREACH, SOURCE_ROUTE, 0);
		ro_drop(w, p, RO_DROP_SOURCE_ROUTE);
		return false;
	case RO_OPTIONS_OK:
		break;
	}
	return true;
}

void ro_ip4_input(struct ro_worker *w, struct ro_pkt *p)
{
	const struct ro_nh *nh;
	enum ro_drop fault;

	if (!sound(w, p))
		return;
	fault = source_fault(w, p->ip + 12);
	if (fault != RO_DROP_COUNT) {
		ro_drop(w, p, fault);
		return;
	}
	nh = ro_route_of(w, p);
	if (nh->kind == RO_NH_LINK_SCOPE && ro_iface_owns(p->in, RO_IPV4, p->ip + 16)) {
		ro_local4(w, p);
		return;
	}
	if (nh->kind == RO_NH_MULTICAST || nh->kind == RO_NH_BROADCAST ||
	    nh->kind == RO_NH_MARTIAN || nh->kind == RO_NH_LINK_SCOPE) {
		ro_drop(w, p,
			nh->kind == RO_NH_MULTICAST   ? RO_DROP_MULTICAST
			: nh->kind == RO_NH_BROADCAST ? RO_DROP_BROADCAST
			: nh->kind == RO_NH_MARTIAN   ? RO_DROP_MARTIAN_DST
						      : RO_DROP_LINK_SCOPE);
		return;
	}
	/* RFC 1812 5.3.4: not for us in a frame to everybody. */
	if (p->group) {
		ro_drop(w, p, RO_DROP_L2_BROADCAST);
		return;
	}
	if ((p->ip[0] & 15) > 5 && !options_good(w, p))
		return;
	if (nh->kind == RO_NH_HOST) {
		ro_to_host(w, p);
		return;
	}
	if (nh->kind == RO_NH_LOCAL) {
		ro_local4(w, p);
		return;
	}
	if (link_local4(p->ip + 12)) {
		ro_drop(w, p, RO_DROP_LINK_SCOPE);
		return;
	}
	ro_forward(w, p, nh);
}

/* --- forwarding, both families -------------------------------------------------------------- */

static void unreachable(struct ro_worker *w, struct ro_pkt *p, uint8_t code4, uint8_t code6,
			enum ro_drop why)
{
	if (p->family == RO_IPV4)
		ro_icmp4_error(w, p, UNREACH, code4, 0);
	else
		ro_icmp6_error(w, p, UNREACH6, code6, 0);
	ro_drop(w, p, why);
}

/* Bytes of the longest packet that this one will be on the wire: of a frame that is still to be
 * cut, a segment's. */
static uint32_t wire_bytes(const struct ro_pkt *p)
{
	const struct pk_slot *s = &p->slot[0];
	uint32_t l4 = p->family == RO_IPV4 ? (p->ip[0] & 15u) * 4 : PK_IPV6_BYTES;

	if (!(s->flags & PK_TSO) || l4 + PK_TCP_BYTES > p->have)
		return p->ip_bytes;
	return HO_MIN(p->ip_bytes, l4 + (p->ip[l4 + 12] >> 4) * 4u + s->meta);
}

bool ro_too_big(struct ro_worker *w, struct ro_pkt *p, uint32_t mtu)
{
	if (wire_bytes(p) <= mtu)
		return false;
	if (p->family == RO_IPV6) {
		ro_icmp6_error(w, p, PACKET_TOO_BIG6, 0, mtu);
	} else if (pk_load16(p->ip + 6) & PK_IPV4_DF) {
		ro_icmp4_error(w, p, UNREACH, NEED_FRAG, mtu);
	} else if (!(p->slot[0].flags & PK_TSO)) {
		return false; /* to be fragmented */
	}
	ro_drop(w, p, RO_DROP_TOO_BIG);
	return true;
}

void ro_forward(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh)
{
	const struct ro_iface *out;
	const uint8_t *addr;

	if (p->ip[p->family == RO_IPV4 ? 8 : 7] <= 1) {
		if (p->family == RO_IPV4)
			ro_icmp4_error(w, p, EXCEEDED, 0, 0);
		else
			ro_icmp6_error(w, p, EXCEEDED6, 0, 0);
		ro_drop(w, p, RO_DROP_TTL);
		return;
	}
	switch (nh->kind) {
	case RO_NH_BLACKHOLE:
		ro_drop(w, p, RO_DROP_BLACKHOLE);
		return;
	case RO_NH_UNREACHABLE:
		unreachable(w, p, HOST, NO_ROUTE6, RO_DROP_UNREACHABLE);
		return;
	case RO_NH_PROHIBIT:
		unreachable(w, p, ADMIN, ADMIN6, RO_DROP_PROHIBITED);
		return;
	case RO_NH_ETHER:
	case RO_NH_RESOLVE:
	case RO_NH_GLEAN:
		break;
	default:
		unreachable(w, p, NET, NO_ROUTE6, RO_DROP_NO_ROUTE);
		return;
	}
	if (ro_too_big(w, p, nh->mtu))
		return;
	if (p->family == RO_IPV4 && (p->ip[0] & 15) > 5) {
		out = ro_iface_at(w->view, nh->iface);
		addr = out ? ro_source_on(w, out, RO_IPV4, p->ip + 12) : NULL;
		ro_ip4_options_forward(p->ip, addr, (uint32_t)(w->now_ns / 1000000));
	}
	p->forward = true;
	ro_transmit(w, p, nh);
}
