// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets for the router itself, where it has a stack of its own: it answers echo requests, says
 * that UDP ports and other protocols are not there, and listens to Neighbour Discovery. Where the
 * kernel has that stack, the kernel gets them before we do.
 */
#include <string.h>

#include "packet/csum.h"
#include "route/worker.h"

enum { ECHO_REPLY4 = 0, ECHO4 = 8, ECHO6 = 128, ECHO_REPLY6 = 129 };
enum { UNREACH4 = 3, PROTO4 = 2, PORT4 = 3 };
enum { UNREACH6 = 1, PORT6 = 4, PARAMETER6 = 4, BAD_FIELD = 0, UNKNOWN_NEXT = 1 };
enum { ND_FIRST = 133, ND_LAST = 137 };

#define OWN_TTL 64

/* The reply goes back in the request's buffers: one packet used, one made. */
static void reply(struct ro_worker *w, struct ro_pkt *p)
{
	const struct ro_iface *in = p->in;
	bool on_link = p->family == RO_IPV6 && p->ip[24] == 0xfe && (p->ip[25] & 0xc0) == 0x80;

	ho_ctr_add(&w->ctr.local, 1);
	ho_ctr_add(&w->ctr.generated, 1);
	p->in = NULL;
	p->forward = false;
	if (on_link)
		ro_transmit_on(w, p, in);
	else
		ro_originate(w, p);
}

/* Replaces a 16-bit word at `at` and keeps the checksum at `csum_at`. */
static void replace16(uint8_t *at, uint16_t value, uint8_t *csum_at)
{
	uint16_t old, csum;

	memcpy(&old, at, 2);
	memcpy(&csum, csum_at, 2);
	csum = pk_csum_update16(csum, old, value);
	memcpy(at, &value, 2);
	memcpy(csum_at, &csum, 2);
}

/* Takes the options out: the reply is a packet of our own. */
static void strip_options(struct ro_pkt *p)
{
	uint32_t header = (p->ip[0] & 15u) * 4, extra = header - PK_IPV4_BYTES;

	if (!extra)
		return;
	memmove(p->ip + extra, p->ip, PK_IPV4_BYTES);
	p->ip += extra;
	p->have -= extra;
	p->ip_bytes -= extra;
	p->ip[0] = 0x45;
	pk_store16(p->ip + 2, (uint16_t)p->ip_bytes);
}

static void echo4(struct ro_worker *w, struct ro_pkt *p)
{
	uint32_t header = (p->ip[0] & 15u) * 4;
	uint8_t *icmp = p->ip + header, swap[4];
	uint16_t csum;

	replace16(icmp, 0, icmp + 2);
	strip_options(p);
	memcpy(swap, p->ip + 12, 4);
	memcpy(p->ip + 12, p->ip + 16, 4);
	memcpy(p->ip + 16, swap, 4);
	p->ip[8] = OWN_TTL;
	pk_store16(p->ip + 4, ++w->ip_id);
	memset(p->ip + 6, 0, 2);
	memset(p->ip + 10, 0, 2);
	csum = pk_csum_finish(pk_csum(p->ip, PK_IPV4_BYTES));
	memcpy(p->ip + 10, &csum, 2);
	reply(w, p);
}

/* Is the layer-4 checksum right, and the header there? */
static bool verified(struct ro_worker *w, struct ro_pkt *p)
{
	enum pk_csum_result r;

	if (p->slot[0].flags & PK_CSUM_PARTIAL && pk_csum_complete(w->arena, p->slot, p->n) < 0)
		return false;
	r = pk_csum_verify(w->arena, p->slot, p->n);
	return r == PK_CSUM_RESULT_OK || r == PK_CSUM_RESULT_NONE;
}

void ro_local4(struct ro_worker *w, struct ro_pkt *p)
{
	uint32_t header = (p->ip[0] & 15u) * 4;
	uint8_t proto = p->ip[9];

	if (!w->own_stack) {
		ro_to_host(w, p);
		return;
	}
	if (p->group) {
		ro_drop(w, p, RO_DROP_L2_BROADCAST);
		return;
	}
	if (pk_load16(p->ip + 6) & (PK_IPV4_MF | PK_IPV4_FRAG_OFFSET)) {
		ro_drop(w, p, RO_DROP_LOCAL_FRAGMENT);
		return;
	}
	if (proto != PK_IP_ICMP && proto != PK_IP_UDP) {
		ro_icmp4_error(w, p, UNREACH4, PROTO4, 0);
		ro_drop(w, p, RO_DROP_LOCAL_PROTO);
		return;
	}
	if (!verified(w, p) || header + 8 > p->ip_bytes || header + 8 > p->have) {
		ro_drop(w, p, RO_DROP_LOCAL_BAD);
		return;
	}
	if (proto == PK_IP_UDP) {
		ro_icmp4_error(w, p, UNREACH4, PORT4, 0);
		ro_drop(w, p, RO_DROP_LOCAL_PORT);
	} else if (p->ip[header] == ECHO4 && p->ip[header + 1] == 0) {
		echo4(w, p);
	} else {
		ro_used(w, p);
	}
}

/* --- IPv6 ----------------------------------------------------------------------------------- */

static void echo6(struct ro_worker *w, struct ro_pkt *p, uint32_t l4)
{
	uint8_t *icmp = p->ip + l4, old[32];
	const uint8_t *src = p->ip + 24;
	uint16_t csum, word;

	/* RFC 4443 4.2: a request to a group is answered by an address of the interface. */
	if (src[0] == 0xff)
		src = ro_source_on(w, p->in, RO_IPV6, p->ip + 8);
	if (!src || l4 != PK_IPV6_BYTES) {
		/* A reply carries no extension headers, so it would be another packet: nobody
		 * sends such requests, and nobody need be answered. */
		ro_used(w, p);
		return;
	}
	memcpy(&word, icmp, 2);
	word = (uint16_t)((word & 0xff00) | ECHO_REPLY6);
	replace16(icmp, word, icmp + 2);
	memcpy(old, p->ip + 8, 32);
	memmove(p->ip + 8, src, 16);
	memcpy(p->ip + 24, old, 16);
	memcpy(&csum, icmp + 2, 2);
	csum = pk_csum_update(csum, old, p->ip + 8, 32);
	memcpy(icmp + 2, &csum, 2);
	p->ip[7] = OWN_TTL;
	reply(w, p);
}

static void icmp6(struct ro_worker *w, struct ro_pkt *p, uint32_t l4)
{
	uint8_t type;

	if (l4 + 4 > p->ip_bytes || l4 + 4 > p->have || !verified(w, p)) {
		ro_drop(w, p, RO_DROP_LOCAL_BAD);
		return;
	}
	type = p->ip[l4];
	if (type >= ND_FIRST && type <= ND_LAST)
		ro_nd_input(w, p, l4);
	else if (type == ECHO6 && l4 + 8 <= p->ip_bytes)
		echo6(w, p, l4);
	else
		ro_used(w, p);
}

static bool zero16(const uint8_t *a)
{
	static const uint8_t zero[16];

	return !memcmp(a, zero, 16);
}

/* What the headers behind IPv6's lead to. */
static void upper(struct ro_worker *w, struct ro_pkt *p, uint8_t next, uint32_t at,
		  uint32_t next_at)
{
	switch (next) {
	case PK_IP_ICMPV6:
		icmp6(w, p, at);
		return;
	case PK_IP_UDP:
		if (at + PK_UDP_BYTES > p->ip_bytes || !verified(w, p)) {
			ro_drop(w, p, RO_DROP_LOCAL_BAD);
			return;
		}
		ro_icmp6_error(w, p, UNREACH6, PORT6, 0);
		ro_drop(w, p, RO_DROP_LOCAL_PORT);
		return;
	case PK_IP_NONE:
		ro_used(w, p);
		return;
	default:
		ro_icmp6_error(w, p, PARAMETER6, UNKNOWN_NEXT, next_at);
		ro_drop(w, p, RO_DROP_LOCAL_PROTO);
	}
}

/* One extension header at `at`, whose type is `next`; RO_DROP_COUNT: go on. */
static enum ro_drop extension(struct ro_worker *w, struct ro_pkt *p, uint8_t next, uint32_t at,
			      uint32_t bytes)
{
	if (next == PK_IP_DSTOPTS)
		return ro_ip6_options(w, p, at + 2, bytes - 2);
	/* RFC 8200 4.4: types that we do not know, and RFC 5095 for type 0. */
	if (next == PK_IP_ROUTING && p->ip[at + 3] != 0) {
		ro_icmp6_error(w, p, PARAMETER6, BAD_FIELD, at + 2);
		return RO_DROP_IP6_ROUTING;
	}
	/* A fragment that is a whole packet is one (RFC 6946). */
	if (next == PK_IP_FRAGMENT && pk_load16(p->ip + at + 2) & 0xfff9)
		return RO_DROP_LOCAL_FRAGMENT;
	return RO_DROP_COUNT;
}

void ro_local6(struct ro_worker *w, struct ro_pkt *p)
{
	uint32_t at = PK_IPV6_BYTES, end = HO_MIN(p->have, p->ip_bytes), next_at = 6;
	uint8_t next = p->ip[6];
	bool unspecified = zero16(p->ip + 8);

	if (!w->own_stack) {
		ro_to_host(w, p);
		return;
	}
	/* Only Neighbour Discovery has an excuse for no source (RFC 4291 2.5.2). */
	if (unspecified && next != PK_IP_ICMPV6) {
		ro_drop(w, p, RO_DROP_MARTIAN_SRC);
		return;
	}
	for (unsigned i = 0; next == PK_IP_HOPOPTS || next == PK_IP_ROUTING ||
			     next == PK_IP_FRAGMENT || next == PK_IP_DSTOPTS;
	     i++) {
		uint32_t bytes;
		enum ro_drop why;

		/* RFC 8200 4.3: a hop-by-hop header is the first one or wrong. */
		if (next == PK_IP_HOPOPTS && at != PK_IPV6_BYTES) {
			ro_icmp6_error(w, p, PARAMETER6, UNKNOWN_NEXT, next_at);
			ro_drop(w, p, RO_DROP_IP6_EXT);
			return;
		}
		bytes = at + 8 > end ? 0 : next == PK_IP_FRAGMENT ? 8 : (p->ip[at + 1] + 1u) * 8;
		if (!bytes || at + bytes > end || i == 16) {
			ro_drop(w, p, RO_DROP_IP6_EXT);
			return;
		}
		why = extension(w, p, next, at, bytes);
		if (why != RO_DROP_COUNT) {
			ro_drop(w, p, why);
			return;
		}
		next_at = at;
		next = p->ip[at];
		at += bytes;
	}
	upper(w, p, next, at, next_at);
}
