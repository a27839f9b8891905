// SPDX-License-Identifier: BSD-2-Clause
/* Sending: which path, which source address, the link layer's header, the ports' queues. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "packet/csum.h"
#include "route/fib4.h"
#include "route/fib6.h"
#include "route/worker.h"

/* --- queues --------------------------------------------------------------------------------- */

static void flush_port(struct ro_worker *w, unsigned port)
{
	struct ro_out *out = &w->out[port];
	struct port_txq *txq = w->txq[port];
	unsigned sent;

	if (!out->n)
		return;
	sent = port_tx(txq, out->slot, out->n);
	if (ho_unlikely(sent < out->n)) {
		port_reap(txq);
		sent += port_tx(txq, out->slot + sent, out->n - sent);
		if (sent < out->n)
			port_tx_discard(txq, out->slot + sent, out->n - sent,
					PORT_DROP_TX_RING_FULL);
	}
	out->n = 0;
}

void ro_flush(struct ro_worker *w)
{
	for (uint64_t ports = w->touched; ports; ports &= ports - 1)
		flush_port(w, (unsigned)__builtin_ctzll(ports));
	w->touched = 0;
}

static void append(struct ro_worker *w, unsigned port, const struct pk_slot *slots, unsigned n)
{
	struct ro_out *out = &w->out[port];

	if (out->n + n > RO_OUT)
		flush_port(w, port);
	memcpy(out->slot + out->n, slots, n * sizeof(slots[0]));
	out->n += n;
	w->touched |= 1ull << port;
}

void ro_emit_raw(struct ro_worker *w, unsigned port, struct pk_slot *slots, unsigned n)
{
	append(w, port, slots, n);
}

/* --- the link layer's header ---------------------------------------------------------------- */

/* The frame in fresh buffers, with room in front. Its flags stay. false: no buffers. */
static bool copy_frame(struct ro_worker *w, struct ro_pkt *p)
{
	uint32_t l2_bytes = (uint32_t)(p->ip - p->l2), bytes;
	struct pk_slot fresh[PK_FRAME_MAX_SLOTS], first = p->slot[0];
	unsigned n;

	bytes = pk_frame_to_bytes(w->arena, p->slot, p->n, w->scratch, sizeof(w->scratch));
	n = pk_frame_from_bytes(w->cache, w->scratch, bytes, fresh, PK_FRAME_MAX_SLOTS);
	/* The list has room for as many slots as there were. */
	if (!n || n > p->n) {
		if (n)
			pk_free_slots(w->cache, fresh, n);
		return false;
	}
	pk_free_slots(w->cache, p->slot, p->n);
	memcpy(p->slot, fresh, n * sizeof(fresh[0]));
	p->slot[0].flags |= first.flags & (uint16_t)~PK_MORE;
	p->slot[0].vlan = first.vlan;
	p->slot[0].meta = first.meta;
	p->n = n;
	p->l2 = pk_data(w->arena, &p->slot[0]);
	p->ip = p->l2 + l2_bytes;
	p->have = p->slot[0].len - l2_bytes;
	return true;
}

/* Takes padding behind the packet off. */
static void trim(struct ro_worker *w, struct ro_pkt *p, uint32_t frame_bytes)
{
	uint32_t left = frame_bytes;
	unsigned n = 0;

	while (n < p->n && left > p->slot[n].len)
		left -= p->slot[n++].len;
	if (n == p->n)
		return;
	p->slot[n].len = (uint16_t)left;
	p->slot[n].flags &= (uint16_t)~PK_MORE;
	if (n + 1 < p->n)
		pk_free_slots(w->cache, p->slot + n + 1, p->n - n - 1);
	p->n = n + 1;
}

bool ro_put(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh)
{
	const uint16_t keep = PK_MORE | PK_CSUM_OK | PK_CSUM_PARTIAL | PK_TSO;
	uint32_t l2_bytes = (uint32_t)(p->ip - p->l2);

	trim(w, p, l2_bytes + p->ip_bytes);
	if (p->slot[0].off + l2_bytes < nh->eth_bytes && !copy_frame(w, p))
		return false;
	memcpy(p->ip - nh->eth_bytes, nh->eth, nh->eth_bytes);
	pk_store16(p->ip - 2, p->family == RO_IPV4 ? PK_ETH_IPV4 : PK_ETH_IPV6);
	p->slot[0].off = (uint16_t)(p->slot[0].off + l2_bytes - nh->eth_bytes);
	p->slot[0].len = (uint16_t)(p->slot[0].len - l2_bytes + nh->eth_bytes);
	p->slot[0].flags &= keep;
	p->slot[0].vlan = 0;
	append(w, nh->port, p->slot, p->n);
	return true;
}

void ro_emit(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh)
{
	if (!w->txq[nh->port])
		ro_drop(w, p, RO_DROP_INTERFACE_DOWN);
	else if (!ro_put(w, p, nh))
		ro_drop(w, p, RO_DROP_NO_BUFFER);
	else
		ho_ctr_add(&w->ctr.sent, 1);
}

/* --- paths ---------------------------------------------------------------------------------- */

/* Where the ports of a packet's flow are, or 0: UDP or TCP, not a fragment, no other header. */
static uint32_t ports_at(const uint8_t *ip, uint32_t have, uint8_t family)
{
	uint32_t at = family == RO_IPV4 ? (ip[0] & 15u) * 4 : PK_IPV6_BYTES;
	uint8_t proto = ip[family == RO_IPV4 ? 9 : 6];

	if ((proto != PK_IP_UDP && proto != PK_IP_TCP) || at + 4 > have)
		return 0;
	if (family == RO_IPV4 && pk_load16(ip + 6) & (PK_IPV4_MF | PK_IPV4_FRAG_OFFSET))
		return 0;
	return at;
}

/* The packet that an ICMP error is about, or NULL. */
static const uint8_t *quoted(const uint8_t *ip, uint32_t have, uint8_t family, uint32_t *left)
{
	uint32_t at = family == RO_IPV4 ? (ip[0] & 15u) * 4 : PK_IPV6_BYTES;
	uint32_t header = family == RO_IPV4 ? PK_IPV4_BYTES : PK_IPV6_BYTES;
	uint8_t type;

	if (ip[family == RO_IPV4 ? 9 : 6] != (family == RO_IPV4 ? PK_IP_ICMP : PK_IP_ICMPV6) ||
	    at + PK_ICMP_BYTES + header > have)
		return NULL;
	type = ip[at];
	if (family == RO_IPV4 ? type != 3 && type != 4 && type != 11 && type != 12 : type >= 128)
		return NULL;
	if (ip[at + PK_ICMP_BYTES] >> 4 != (family == RO_IPV4 ? 4 : 6))
		return NULL;
	*left = have - at - PK_ICMP_BYTES;
	return ip + at + PK_ICMP_BYTES;
}

uint32_t ro_flow_hash(const struct pk_flowhash *hash, const uint8_t *ip, uint32_t have,
		      uint8_t family)
{
	uint32_t left = have, at, addr_off = family == RO_IPV4 ? 12 : 8;
	unsigned bytes = ro_addr_bytes(family);
	const uint8_t *about = quoted(ip, have, family, &left);
	uint8_t input[PK_FLOWHASH_INPUT_BYTES];

	if (about)
		ip = about;
	memcpy(input, ip + addr_off, 2 * bytes);
	at = ports_at(ip, left, family);
	if (at)
		memcpy(input + 2 * bytes, ip + at, 4);
	if (about) {
		/* From the other end: what answers the packet would look like this. */
		memcpy(input, ip + addr_off + bytes, bytes);
		memcpy(input + bytes, ip + addr_off, bytes);
		if (at) {
			memcpy(input + 2 * bytes, ip + at + 2, 2);
			memcpy(input + 2 * bytes + 2, ip + at, 2);
		}
	}
	return pk_flowhash(hash, input, 2 * bytes + (at ? 4 : 0));
}

static const struct ro_nh *lookup(const struct ro_worker *w, const uint8_t *dst, uint8_t family)
{
	uint32_t nh = family == RO_IPV4 ? fib4_lookup(w->view->fib4, pk_load32(dst))
					: fib6_lookup(w->view->fib6, dst);

	return ro_nh_at(w->view, nh);
}

const struct ro_nh *ro_route_of(struct ro_worker *w, const struct ro_pkt *p)
{
	const struct ro_nh *nh = lookup(w, p->ip + (p->family == RO_IPV4 ? 16 : 24), p->family);

	if (nh->kind == RO_NH_ECMP) {
		uint32_t have = HO_MIN(p->have, p->ip_bytes); /* padding is no part of a flow */
		uint32_t h = ro_flow_hash(w->hash, p->ip, have, p->family);

		nh = ro_nh_at(w->view, nh->ecmp->nh[nh->ecmp->bucket[h % RO_ECMP_BUCKETS]]);
	}
	return nh;
}

/* --- source addresses ----------------------------------------------------------------------- */

static bool link_local6(const uint8_t *a)
{
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
}

/* Bits that two addresses have in common from the front. */
static unsigned common(const uint8_t *a, const uint8_t *b, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) {
		if (a[i] != b[i])
			return i * 8 + (unsigned)__builtin_clz((unsigned)(a[i] ^ b[i])) - 24;
	}
	return bytes * 8;
}

const uint8_t *ro_source_on(const struct ro_worker *w, const struct ro_iface *iface, uint8_t family,
			    const uint8_t *dst)
{
	bool local = family == RO_IPV6 && (link_local6(dst) || dst[0] == 0xff);
	unsigned first = family == RO_IPV4 ? 0 : iface->n4;
	unsigned n = family == RO_IPV4 ? iface->n4 : iface->n6;
	const uint8_t *best = NULL;
	int best_score = -1;

	/* RFC 6724, rules 2 and 8: the scope of the destination, then the longest match, in which
	 * the bits behind the prefix do not count (2.2); RFC 1812 4.3.2.4: an address of the
	 * interface that the message leaves by. */
	for (unsigned i = first; i < first + n; i++) {
		const uint8_t *a = iface->addr[i].byte;
		int score = (int)HO_MIN(common(a, dst, ro_addr_bytes(family)),
					(unsigned)iface->addr[i].len);

		if (family == RO_IPV6 && link_local6(a) == local)
			score += 256;
		if (score > best_score) {
			best_score = score;
			best = a;
		}
	}
	return best;
}

const uint8_t *ro_source(const struct ro_worker *w, const struct ro_nh *nh, uint8_t family,
			 const uint8_t *dst)
{
	const struct ro_iface *iface = ro_iface_at(w->view, nh->iface);
	const uint8_t *src = NULL;

	if (nh->prefsrc.family == family)
		return nh->prefsrc.byte;
	if (iface)
		src = ro_source_on(w, iface, family, dst);
	if (src && (family == RO_IPV4 || !link_local6(src) || link_local6(dst)))
		return src;
	/* An interface without an address of its own: any other one's (RFC 1812 2.2.7). */
	for (unsigned i = 0; i < RO_IFACES_MAX; i++) {
		const uint8_t *other;

		iface = ro_iface_at(w->view, i);
		other = iface ? ro_source_on(w, iface, family, dst) : NULL;
		if (other && (family == RO_IPV4 || !link_local6(other)))
			return other;
	}
	return src;
}

/* --- the way out ---------------------------------------------------------------------------- */

static void count_down(struct ro_pkt *p)
{
	p->forward = false;
	if (p->family == RO_IPV4) {
		uint16_t old, new, csum;

		memcpy(&old, p->ip + 8, 2);
		p->ip[8]--;
		memcpy(&new, p->ip + 8, 2);
		memcpy(&csum, p->ip + 10, 2);
		csum = pk_csum_update16(csum, old, new);
		memcpy(p->ip + 10, &csum, 2);
	} else {
		p->ip[7]--;
	}
}

void ro_send(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh, uint32_t mtu)
{
	if (p->family == RO_IPV4 && p->ip_bytes > mtu && !(p->slot[0].flags & PK_TSO))
		ro_fragment(w, p, nh, mtu);
	else
		ro_emit(w, p, nh);
}

static void wait_for(struct ro_worker *w, struct ro_pkt *p, uint32_t ifindex,
		     const struct ro_addr *addr, uint32_t mtu)
{
	const struct ro_neigh *n = ro_neigh_find(w->view, ifindex, addr);
	uint8_t state = n ? __atomic_load_n(&n->state, __ATOMIC_ACQUIRE) : RO_NEIGH_UNRESOLVED;

	if (state == RO_NEIGH_RESOLVED) {
		const struct ro_nh *nh = ro_nh_at(w->view, n->nh);

		if (nh->kind == RO_NH_ETHER) {
			ro_send(w, p, nh, mtu);
			return;
		}
	}
	ro_hold(w, p, ifindex, addr, mtu);
}

void ro_transmit(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh)
{
	struct ro_addr addr = { .family = p->family };
	const struct ro_iface *iface;

	if (p->forward)
		count_down(p);
	switch (nh->kind) {
	case RO_NH_ETHER:
		ro_send(w, p, nh, nh->mtu);
		return;
	case RO_NH_RESOLVE:
		wait_for(w, p, nh->neigh->ifindex, &nh->neigh->addr, nh->mtu);
		return;
	case RO_NH_GLEAN:
		iface = ro_iface_at(w->view, nh->iface);
		memcpy(addr.byte, p->ip + (p->family == RO_IPV4 ? 16 : 24),
		       ro_addr_bytes(p->family));
		if (iface)
			wait_for(w, p, iface->ifindex, &addr, nh->mtu);
		else
			ro_drop(w, p, RO_DROP_INTERFACE_DOWN);
		return;
	default:
		ro_drop(w, p, RO_DROP_NO_ROUTE);
	}
}

void ro_transmit_on(struct ro_worker *w, struct ro_pkt *p, const struct ro_iface *iface)
{
	struct ro_nh nh = { .kind = RO_NH_GLEAN, .iface = iface->slot, .mtu = iface->mtu };

	ro_transmit(w, p, &nh);
}

void ro_originate(struct ro_worker *w, struct ro_pkt *p)
{
	ro_transmit(w, p, ro_route_of(w, p));
}
