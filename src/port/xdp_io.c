// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets through the rings of an AF_XDP socket.
 *
 * System calls: one sendto() after each port_tx whose ring asks for it, none for receiving unless
 * the kernel asks for it (need_wakeup) or the queue is to be busy-polled.
 *
 * In copy mode sendto() sends frame by frame through the driver and stops at the first one that
 * the driver drops (the peer's ring is full, there is no carrier) with EBUSY; that frame's buffer
 * is completed like any other (net/xdp/xsk.c, "SKB completed but not sent"). So each EBUSY is one
 * named drop, and one completion that is no sent frame.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "packet/csum.h"
#include "packet/parse.h"
#include "port/xdp.h"

#define REAP_MAX       PK_CACHE_BULK
#define HUGE_PAGE_LOG2 21
#define ETHERNET_BYTES 14
#define VLAN_BYTES     4
#define ETHERTYPE_VLAN 0x8100

/* Which buffer an address in the arena is in. Strides are multiples of 64: 32 bits hold both. */
static inline uint32_t buffer_at(uint64_t addr, uint32_t stride)
{
	return (uint32_t)(addr / HO_CACHE_LINE) / (stride / HO_CACHE_LINE);
}

/* Zero-copy: physical memory is contiguous only within a huge page, and a buffer must be. */
static inline bool crosses_page(uint64_t from, uint64_t bytes)
{
	return (from >> HUGE_PAGE_LOG2) != ((from + bytes - 1) >> HUGE_PAGE_LOG2);
}

/* --- receive -------------------------------------------------------------------------------- */

void xdp_fill(struct xdp_rxq *q)
{
	while (q->outstanding < q->target) {
		uint32_t bufs[PK_CACHE_BULK], n, idx;

		n = HO_MIN(q->target - q->outstanding, (uint32_t)PK_CACHE_BULK);
		n = HO_MIN(n, xsk_prod_nb_free(&q->fill, n));
		n = n ? pk_alloc(q->base.cache, bufs, n) : 0;
		if (!n || !xsk_ring_prod__reserve(&q->fill, n, &idx))
			break;
		for (uint32_t i = 0, put = 0; i < n; i++) {
			uint64_t addr = (uint64_t)bufs[i] * q->stride;

			q->given[bufs[i]] = 1;
			q->outstanding++;
			if (ho_unlikely(q->zero_copy && crosses_page(addr, q->stride))) {
				/* Stays here until the port is closed: there are few of them. */
				q->target++;
				q->fill.cached_prod--;
				continue;
			}
			*xsk_ring_prod__fill_addr(&q->fill, idx + put++) = addr;
		}
		__atomic_store_n(q->fill.producer, q->fill.cached_prod, __ATOMIC_RELEASE);
	}
}

/* Nothing there: perhaps the kernel waits for us. */
static void rx_idle(struct xdp_rxq *q)
{
	xdp_fill(q);
	if (!q->busy_poll && !xsk_ring_prod__needs_wakeup(&q->fill))
		return;
	recvfrom(q->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	ho_ctr_add(&q->base.ctr.kicks, 1);
}

/*
 * A virtual interface does not complete the checksums that a sender on this machine left to the
 * wire, and AF_XDP does not say which these are. Such a frame's field holds the sum of the pseudo
 * header. That of a right frame can be the same number by chance: then the whole is summed up.
 */
static void find_partial(const struct pk_arena *arena, struct pk_slot *slots, unsigned n)
{
	const uint8_t *data = pk_data(arena, slots), *ip;
	struct pk_headers h;
	uint16_t field;
	uint64_t sum;

	if (pk_parse(data, slots->len, n == 1 ? slots->len : pk_frame_bytes(slots, n), &h) !=
		    PK_PARSE_OK ||
	    (h.l4 != PK_L4_TCP && h.l4 != PK_L4_UDP) || h.fragment || h.routed)
		return;
	ip = data + h.l3_off;
	if (h.l3 == PK_L3_IPV4) {
		uint32_t src, dst;

		memcpy(&src, ip + 12, sizeof(src));
		memcpy(&dst, ip + 16, sizeof(dst));
		sum = pk_csum_pseudo4(src, dst, h.proto, (uint16_t)(h.end - h.l4_off));
	} else {
		sum = pk_csum_pseudo6(ip + 8, ip + 24, h.proto, h.end - h.l4_off);
	}
	memcpy(&field, data + pk_csum_field(&h), sizeof(field));
	if (ho_likely(field != pk_csum_fold(sum)))
		return;
	if (pk_csum_verify(arena, slots, n) != PK_CSUM_RESULT_OK)
		slots->flags |= PK_CSUM_PARTIAL;
}

unsigned xdp_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct xdp_rxq *q = (struct xdp_rxq *)base;
	uint32_t idx, ready = xsk_ring_cons__peek(&q->rx, n, &idx), more = 0, whole;
	uint64_t bytes = 0;

	if (!ready) {
		rx_idle(q);
		return 0;
	}
	for (uint32_t i = 0; i < ready; i++) {
		const struct xdp_desc *desc = xsk_ring_cons__rx_desc(&q->rx, idx + i);
		uint64_t addr = xsk_umem__add_offset_to_addr(desc->addr);
		uint32_t buf = buffer_at(addr, q->stride);

		slots[i] = (struct pk_slot){
			.buf = buf,
			.off = (uint16_t)(addr - (uint64_t)buf * q->stride),
			.len = (uint16_t)desc->len,
			.flags = desc->options & XDP_PKT_CONTD ? PK_MORE : 0,
		};
	}
	/* The kernel shows whole frames only; but n may have cut one. */
	whole = port_whole_frames(slots, ready + 1, ready);
	xsk_ring_cons__cancel(&q->rx, ready - whole);
	for (uint32_t i = 0; i < whole; i++) {
		q->given[slots[i].buf] = 0;
		bytes += slots[i].len;
		more += slots[i].flags & PK_MORE;
	}
	static_assert(PK_MORE == 1, "counted by adding the flag up");
	xsk_ring_cons__release(&q->rx, whole);
	q->outstanding -= whole;
	for (uint32_t i = 0, used; q->completes && i < whole; i += used) {
		used = pk_frame_slots(slots + i, whole - i);
		find_partial(base->arena, slots + i, used);
	}
	port_count(&base->ctr, whole - more, bytes);
	if (q->target - q->outstanding >= PK_BURST)
		xdp_fill(q);
	return whole;
}

void xdp_take_back_rx(struct xdp_rxq *q)
{
	for (uint32_t buf = 0; q->outstanding && buf < q->base.arena->buffers; buf++) {
		if (!q->given[buf])
			continue;
		q->given[buf] = 0;
		q->outstanding--;
		pk_free(q->base.cache, &buf, 1);
	}
}

/* --- transmit ------------------------------------------------------------------------------- */

unsigned xdp_reap(struct port_txq *base)
{
	struct xdp_txq *q = (struct xdp_txq *)base;
	uint32_t idx, n, bufs[REAP_MAX], more = 0;
	uint64_t bytes = 0, frames, not_sent;

	n = xsk_ring_cons__peek(&q->comp, REAP_MAX, &idx);
	if (!n)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = *xsk_ring_cons__comp_addr(&q->comp, idx + i);
		uint32_t buf = buffer_at(xsk_umem__add_offset_to_addr(addr), q->stride);

		bufs[i] = buf;
		bytes += q->given[buf] >> 1;
		more += q->given[buf] & 1;
		q->given[buf] = 0;
	}
	xsk_ring_cons__release(&q->comp, n);
	q->in_ring -= n;
	pk_free(base->cache, bufs, n);
	frames = n - more;
	not_sent = HO_MIN(frames, q->dropped_frames);
	q->dropped_frames -= not_sent;
	frames -= not_sent;
	not_sent = HO_MIN(bytes, q->dropped_bytes);
	q->dropped_bytes -= not_sent;
	port_count(&base->ctr, frames, bytes - not_sent);
	return (unsigned)frames;
}

/* The last frame that the kernel completed was dropped: how long was it? */
static uint64_t dropped_bytes(struct xdp_txq *q)
{
	uint32_t produced = __atomic_load_n(q->comp.producer, __ATOMIC_ACQUIRE);
	uint64_t bytes = 0;

	for (uint32_t at = produced; at != q->comp.cached_cons; at--) {
		uint64_t addr = *xsk_ring_cons__comp_addr(&q->comp, at - 1);
		uint32_t given = q->given[buffer_at(addr, q->stride)];

		if (at != produced && !(given & 1))
			break; /* the end of the frame before it */
		bytes += given >> 1;
	}
	return bytes;
}

static void kick(struct xdp_txq *q)
{
	uint32_t consumed = __atomic_load_n(q->tx.consumer, __ATOMIC_RELAXED), before;
	uint64_t dropped = 0;

	if (q->need_wakeup && !xsk_ring_prod__needs_wakeup(&q->tx))
		return;
	do {
		ssize_t rc = sendto(q->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);

		ho_ctr_add(&q->base.ctr.kicks, 1);
		if (rc >= 0)
			break;
		before = consumed;
		consumed = __atomic_load_n(q->tx.consumer, __ATOMIC_RELAXED);
		if (errno == EBUSY && !q->zero_copy) {
			q->dropped_frames++;
			q->dropped_bytes += dropped_bytes(q);
			dropped++;
			/* It is gone from the ring, whether the ring shows that yet or not. */
			before = consumed - 1;
		}
		/* EAGAIN with progress: the kernel's share for one call was used up. */
	} while (consumed != before && (errno == EBUSY || errno == EAGAIN));
	if (dropped)
		port_drop(&q->base.ctr, PORT_DROP_TX_PEER_FULL, dropped);
}

/* Puts the tag that travels beside the frame into it, 4 bytes further ahead in the buffer. */
static bool insert_tag(const struct pk_arena *arena, struct pk_slot *slot)
{
	uint8_t *from = pk_data(arena, slot), *to = from - VLAN_BYTES;
	uint16_t tag[2] = { htobe16(ETHERTYPE_VLAN), htobe16(slot->vlan) };

	if (slot->off < VLAN_BYTES || slot->len < ETHERNET_BYTES)
		return false;
	memmove(to, from, 12);
	memcpy(to + 12, tag, sizeof(tag));
	slot->off -= VLAN_BYTES;
	slot->len += VLAN_BYTES;
	slot->flags &= (uint16_t)~PK_VLAN;
	return true;
}

enum port_drop xdp_finish_frame(const struct port_txq *q, struct pk_slot *slots, unsigned n,
				uint32_t *bytes)
{
	if (ho_unlikely(slots->flags & (PK_TSO | PK_CSUM_PARTIAL | PK_VLAN))) {
		if (slots->flags & PK_TSO)
			return PORT_DROP_TX_BAD_FRAME;
		if (slots->flags & PK_CSUM_PARTIAL && pk_csum_complete(q->arena, slots, n) < 0)
			return PORT_DROP_TX_BAD_FRAME;
		if (slots->flags & PK_VLAN && !insert_tag(q->arena, slots))
			return PORT_DROP_TX_BAD_FRAME;
	}
	*bytes = n == 1 ? slots->len : pk_frame_bytes(slots, n);
	if (ho_unlikely(*bytes < ETHERNET_BYTES))
		return PORT_DROP_TX_TOO_SHORT;
	if (ho_unlikely(*bytes > q->port->max_frame))
		return PORT_DROP_TX_TOO_LONG;
	return PORT_DROP_COUNT;
}

static void put(struct xdp_txq *q, const struct pk_slot *slot)
{
	uint64_t addr = (uint64_t)slot->buf * q->stride + slot->off;

	*xsk_ring_prod__tx_desc(&q->tx, q->tx.cached_prod++) = (struct xdp_desc){
		.addr = addr,
		.len = slot->len,
		.options = slot->flags & PK_MORE ? XDP_PKT_CONTD : 0,
	};
	q->given[slot->buf] = 2u * slot->len + (slot->flags & PK_MORE);
}

/* Zero-copy: moves the data to where it does not cross a huge page. False: no such buffer. */
static bool uncross(struct xdp_txq *q, struct pk_slot *slot)
{
	uint64_t addr = (uint64_t)slot->buf * q->stride + slot->off;
	uint32_t bufs[2], n, old = slot->buf;
	uint8_t *from;

	if (ho_likely(!crosses_page(addr, slot->len)))
		return true;
	/* Of two buffers at most one crosses: huge pages are far apart. */
	n = pk_alloc(q->base.cache, bufs, 2);
	if (n == 2 && crosses_page((uint64_t)bufs[0] * q->stride, q->stride)) {
		uint32_t swap = bufs[0];

		bufs[0] = bufs[1];
		bufs[1] = swap;
	}
	if (n < 2) {
		pk_free(q->base.cache, bufs, n);
		return false;
	}
	from = pk_data(q->base.arena, slot);
	slot->buf = bufs[0];
	memcpy(pk_data(q->base.arena, slot), from, slot->len);
	pk_free(q->base.cache, &bufs[1], 1);
	pk_free(q->base.cache, &old, 1);
	return true;
}

unsigned xdp_tx(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct xdp_txq *q = (struct xdp_txq *)base;
	unsigned room, frames = 0;

	while (xdp_reap(base))
		;
	/* What is in flight must fit the completion ring, or the kernel stops. */
	room = q->comp.size - q->in_ring;
	room = HO_MIN(room, xsk_prod_nb_free(&q->tx, n));
	if (ho_unlikely(room < n)) {
		/* The ring is full of frames that the kernel has not taken: it may want a kick. */
		ho_ctr_add(&base->ctr.ring_full, 1);
		kick(q);
		xdp_reap(base);
		room = HO_MIN(q->comp.size - q->in_ring, xsk_prod_nb_free(&q->tx, n));
	}
	n = port_whole_frames(slots, n, room);
	for (unsigned i = 0, used; i < n; i += used) {
		enum port_drop why;
		uint32_t bytes;

		used = slots[i].flags & PK_MORE ? pk_frame_slots(slots + i, n - i) : 1;
		why = xdp_finish_frame(base, slots + i, used, &bytes);
		if (ho_unlikely(used > q->max_slots) && why == PORT_DROP_COUNT)
			why = PORT_DROP_TX_TOO_LONG;
		for (unsigned s = i; ho_unlikely(q->zero_copy) && s < i + used; s++) {
			if (why == PORT_DROP_COUNT && !uncross(q, &slots[s]))
				why = PORT_DROP_TX_NO_BUFFER;
		}
		if (ho_unlikely(why != PORT_DROP_COUNT)) {
			port_tx_discard(base, slots + i, used, why);
			continue;
		}
		for (unsigned s = i; s < i + used; s++)
			put(q, &slots[s]);
		q->in_ring += used;
		frames++;
	}
	if (!frames)
		return n;
	base->accepted += frames;
	__atomic_store_n(q->tx.producer, q->tx.cached_prod, __ATOMIC_RELEASE);
	kick(q);
	return n;
}

uint64_t xdp_take_back_tx(struct xdp_txq *q)
{
	uint64_t frames = 0;

	for (uint32_t buf = 0; q->in_ring && buf < q->base.arena->buffers; buf++) {
		if (!q->given[buf])
			continue;
		frames += !(q->given[buf] & 1);
		q->given[buf] = 0;
		q->in_ring--;
		pk_free(q->base.cache, &buf, 1);
	}
	return frames;
}
