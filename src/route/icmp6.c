// SPDX-License-Identifier: BSD-2-Clause
/* ICMPv6 errors (RFC 4443). */
#include <string.h>

#include "packet/csum.h"
#include "route/worker.h"

#define ERROR_BYTES 1280 /* 2.4(c): as much of the packet as fits the least MTU */
#define OWN_LIMIT   64
#define EXT_MAX     16

enum { REDIRECT = 137 };

/*
 * Type of the ICMPv6 message that a packet carries behind its extension headers; -1 = none, -2 =
 * perhaps: a later fragment, or cut off.
 */
static int icmp_type(const struct ro_pkt *p)
{
	uint32_t at = PK_IPV6_BYTES, end = HO_MIN(p->have, p->ip_bytes);
	uint8_t next = p->ip[6];

	for (unsigned i = 0; i < EXT_MAX; i++) {
		switch (next) {
		case PK_IP_ICMPV6:
			return at < end ? p->ip[at] : -2;
		case PK_IP_HOPOPTS:
		case PK_IP_ROUTING:
		case PK_IP_DSTOPTS:
			if (at + 8 > end)
				return -2;
			next = p->ip[at];
			at += (p->ip[at + 1] + 1u) * 8;
			break;
		case PK_IP_FRAGMENT:
			if (at + 8 > end)
				return -2;
			next = p->ip[at];
			if (pk_load16(p->ip + at + 2) & 0xfff8)
				return next == PK_IP_ICMPV6 ? -2 : -1;
			at += 8;
			break;
		default:
			return -1;
		}
	}
	return -2;
}

static bool is_zero(const uint8_t *a)
{
	static const uint8_t zero[16];

	return !memcmp(a, zero, 16);
}

/* RFC 4443 2.4(e). */
static bool allowed(const struct ro_pkt *p, uint8_t type, uint8_t code)
{
	const uint8_t *src = p->ip + 8, *dst = p->ip + 24;
	/* (e.3): packet too big, and an unknown option that asks for it, are answered to a group
	 * as well. */
	bool group_too = type == 2 || (type == 4 && code == 2);
	int t = icmp_type(p);

	if (t == -2 || t == REDIRECT || (t >= 0 && t < 128))
		return false;
	if ((p->group || dst[0] == 0xff) && !group_too)
		return false;
	return src[0] != 0xff && !is_zero(src);
}

static bool link_local(const uint8_t *a)
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

void ro_icmp6_error(struct ro_worker *w, const struct ro_pkt *about, uint8_t type, uint8_t code,
		    uint32_t rest)
{
	uint8_t m[ERROR_BYTES] = { [0] = 0x60, [6] = PK_IP_ICMPV6, [7] = OWN_LIMIT };
	uint32_t quote = HO_MIN(about->ip_bytes, (uint32_t)ERROR_BYTES - PK_IPV6_BYTES - 8);
	uint32_t l2_bytes = (uint32_t)(about->ip - about->l2), l4 = 8 + quote;
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	struct ro_pkt p = { .ip = m, .have = sizeof(m), .family = RO_IPV6 };
	const struct ro_nh *nh = NULL;
	const uint8_t *src;
	uint16_t csum;
	bool local;

	if (!about->in || !allowed(about, type, code)) {
		ho_ctr_add(&w->ctr.icmp_suppressed, 1);
		return;
	}
	pk_frame_to_bytes(w->arena, about->slot, about->n, w->scratch, l2_bytes + quote);
	memcpy(m + PK_IPV6_BYTES + 8, w->scratch + l2_bytes, quote);
	memcpy(m + 24, about->ip + 8, 16);
	local = ro_iface_owns(about->in, RO_IPV6, about->ip + 24) ||
		ro_nh_at(w->view, fib6_lookup(w->view->fib6, about->ip + 24))->kind == RO_NH_LOCAL;
	/* A link-local source is on the link that the packet came from. */
	if (link_local(m + 24)) {
		src = ro_source_on(w, about->in, RO_IPV6, m + 24);
	} else {
		nh = ro_route_of(w, &p);
		src = ro_source(w, nh, RO_IPV6, m + 24);
		if (nh->kind != RO_NH_ETHER && nh->kind != RO_NH_RESOLVE && nh->kind != RO_NH_GLEAN)
			src = NULL;
	}
	/* 2.2(a): what was for the router is answered by the address that it was for. */
	if (src && local)
		src = about->ip + 24;
	if (!src) {
		ho_ctr_add(&w->ctr.icmp_suppressed, 1);
		return;
	}
	if (!ro_icmp_token(w))
		return;
	memcpy(m + 8, src, 16);
	pk_store16(m + 4, (uint16_t)l4);
	m[PK_IPV6_BYTES] = type;
	m[PK_IPV6_BYTES + 1] = code;
	pk_store32(m + PK_IPV6_BYTES + 4, rest);
	csum = pk_csum_finish(pk_csum_pseudo6(m + 8, m + 24, PK_IP_ICMPV6, l4) +
			      pk_csum(m + PK_IPV6_BYTES, l4));
	memcpy(m + PK_IPV6_BYTES + 2, &csum, 2);
	if (!ro_make(w, m, PK_IPV6_BYTES + l4, RO_IPV6, slots, &p))
		return;
	if (nh)
		ro_transmit(w, &p, nh);
	else
		ro_transmit_on(w, &p, about->in);
}
