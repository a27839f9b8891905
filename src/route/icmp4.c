// SPDX-License-Identifier: BSD-2-Clause
/* ICMP errors (RFC 792, RFC 1812 section 4.3), and how many of them. */
#include <string.h>

#include "packet/csum.h"
#include "route/worker.h"

#define ERROR_BYTES 576  /* RFC 1812 4.3.2.3: as much of the packet as fits */
#define ERROR_TOS   0xc0 /* 4.3.2.5: precedence of internetwork control */
#define OWN_TTL     64

/*
 * A bucket of time (RFC 1812 4.3.2.8, RFC 4443 2.4(f)): tokens_ns is when the next message would be
 * due at the mean rate; it may lie ahead of now by a burst's worth of gaps.
 */
bool ro_icmp_token(struct ro_worker *w)
{
	uint64_t at = HO_MAX(w->tokens_ns, w->now_ns);

	if (at + w->icmp_gap_ns > w->now_ns + w->icmp_room_ns) {
		ho_ctr_add(&w->ctr.icmp_limited, 1);
		return false;
	}
	w->tokens_ns = at + w->icmp_gap_ns;
	return true;
}

static bool is_error(uint8_t type)
{
	/* Unreachable, source quench, redirect, time exceeded, parameter problem. */
	return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

/* RFC 1812 4.3.2.7. */
static bool allowed(const struct ro_pkt *p)
{
	uint32_t header = (p->ip[0] & 15u) * 4;
	const uint8_t *src = p->ip + 12, *dst = p->ip + 16;

	if (p->group || dst[0] >= 224)
		return false;
	if (pk_load16(p->ip + 6) & PK_IPV4_FRAG_OFFSET)
		return false;
	if (src[0] == 0 || src[0] == 127 || src[0] >= 224)
		return false;
	/* An ICMP message without its type could be an error as well. */
	if (p->ip[9] == PK_IP_ICMP &&
	    (p->ip_bytes <= header || header >= p->have || is_error(p->ip[header])))
		return false;
	return true;
}

void ro_icmp4_error(struct ro_worker *w, const struct ro_pkt *about, uint8_t type, uint8_t code,
		    uint32_t rest)
{
	uint8_t m[ERROR_BYTES] = { [0] = 0x45, [1] = ERROR_TOS, [8] = OWN_TTL, [9] = PK_IP_ICMP };
	uint32_t quote = HO_MIN(about->ip_bytes, (uint32_t)ERROR_BYTES - PK_IPV4_BYTES - 8);
	uint32_t l2_bytes = (uint32_t)(about->ip - about->l2), bytes = PK_IPV4_BYTES + 8 + quote;
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	struct ro_pkt p = { .ip = m, .have = sizeof(m), .family = RO_IPV4 };
	const struct ro_nh *nh;
	const uint8_t *src;
	uint16_t csum;

	if (!about->in || !allowed(about)) {
		ho_ctr_add(&w->ctr.icmp_suppressed, 1);
		return;
	}
	pk_frame_to_bytes(w->arena, about->slot, about->n, w->scratch, l2_bytes + quote);
	memcpy(m + PK_IPV4_BYTES + 8, w->scratch + l2_bytes, quote);
	memcpy(m + 16, about->ip + 12, 4);
	nh = ro_route_of(w, &p);
	/* What was for the router is answered by the address that it was for. */
	src = ro_nh_at(w->view, fib4_lookup(w->view->fib4, pk_load32(about->ip + 16)))->kind ==
			      RO_NH_LOCAL
		      ? about->ip + 16
		      : ro_source(w, nh, RO_IPV4, m + 16);
	if (!src ||
	    (nh->kind != RO_NH_ETHER && nh->kind != RO_NH_RESOLVE && nh->kind != RO_NH_GLEAN)) {
		ho_ctr_add(&w->ctr.icmp_suppressed, 1);
		return;
	}
	if (!ro_icmp_token(w))
		return;
	memcpy(m + 12, src, 4);
	pk_store16(m + 2, (uint16_t)bytes);
	pk_store16(m + 4, ++w->ip_id);
	csum = pk_csum_finish(pk_csum(m, PK_IPV4_BYTES));
	memcpy(m + 10, &csum, 2);
	m[PK_IPV4_BYTES] = type;
	m[PK_IPV4_BYTES + 1] = code;
	pk_store32(m + PK_IPV4_BYTES + 4, rest);
	csum = pk_csum_finish(pk_csum(m + PK_IPV4_BYTES, bytes - PK_IPV4_BYTES));
	memcpy(m + PK_IPV4_BYTES + 2, &csum, 2);
	if (ro_make(w, m, bytes, RO_IPV4, slots, &p))
		ro_transmit(w, &p, nh);
}
