// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receive. The chip fills the buffers of the descriptors between head and tail in order and writes
 * each descriptor back (7.1.6.2): DD means that it is done, EOP that the frame ends here. A frame
 * is taken only when all its descriptors are there.
 *
 *             next (looked at next)                    use_at (filled next) = RDT
 *        +-----v--------------------------------------------v-------+
 *        |     | written back | posted: the chip's          | empty |
 *        +----------------------------------------------------------+
 *
 * Empty descriptors get fresh buffers 32 at a time, with one doorbell. One descriptor always stays
 * empty: head = tail means that the chip has none (7.1.9).
 */
#include <errno.h>
#include <string.h>

#include "nic/ixgbe_dev.h"

static inline uint32_t next_index(const struct ixgbe_rxq *r, uint32_t at)
{
	return ho_unlikely(++at == r->size) ? 0 : at;
}

static inline void post(struct ixgbe_rxq *r, uint32_t at, uint32_t buf)
{
	union ixgbe_rx_desc *d = &r->ring[at];

	r->bufs[at] = buf;
	d->read.addr = r->dev->arena_iova + (uint64_t)buf * r->q.arena->stride_bytes + r->off;
	d->read.hdr_addr = 0; /* and with it the DD bit of the last round */
}

/* Posts up to n buffers; how many. */
static uint32_t post_some(struct ixgbe_rxq *r, uint32_t n)
{
	uint32_t bufs[IXGBE_RX_REFILL];
	uint32_t got = pk_alloc(r->q.cache, bufs, HO_MIN(n, (uint32_t)IXGBE_RX_REFILL));

	for (uint32_t i = 0; i < got; i++) {
		post(r, r->use_at, bufs[i]);
		r->use_at = next_index(r, r->use_at);
	}
	r->posted += got;
	return got;
}

static void refill(struct ixgbe_rxq *r)
{
	const uint32_t before = r->use_at;

	while (r->size - 1 - r->posted >= IXGBE_RX_REFILL) {
		if (post_some(r, IXGBE_RX_REFILL) < IXGBE_RX_REFILL) {
			ho_ctr_add(&r->alloc_failed, 1);
			break;
		}
	}
	if (r->use_at != before) {
		nic_wmb();
		nic_write32(r->dev->bus, r->tail, r->use_at);
	}
}

int ixgbe_rx_fill(struct ixgbe_rxq *r)
{
	while (r->posted < r->size - 1 && post_some(r, r->size - 1 - r->posted))
		;
	return r->posted ? 0 : -ENOBUFS;
}

void ixgbe_rx_restart(struct ixgbe_rxq *r)
{
	uint32_t at = r->next, lost = 0;

	/* `next` to `use_at` moves down to 0: first to its place in a list, then to the ring. */
	for (uint32_t i = 0; i < r->posted; i++) {
		uint32_t status = r->ring[at].wb.status;

		lost += (status & IXGBE_RXD_DD) && (status & IXGBE_RXD_EOP);
		r->spare[i] = r->bufs[at];
		at = next_index(r, at);
	}
	for (uint32_t i = 0; i < r->posted; i++)
		post(r, i, r->spare[i]);
	r->next = 0;
	r->use_at = r->posted;
	port_drop(&r->q.ctr, PORT_DROP_RX_RESET, lost);
}

void ixgbe_rx_empty(struct ixgbe_rxq *r)
{
	uint64_t lost = 0;

	for (; r->posted; r->posted--) {
		uint32_t status = r->ring[r->next].wb.status;

		lost += (status & IXGBE_RXD_DD) && (status & IXGBE_RXD_EOP);
		pk_free(r->q.cache, &r->bufs[r->next], 1);
		r->next = next_index(r, r->next);
	}
	port_drop(&r->q.ctr, PORT_DROP_RX_CLOSED, lost);
}

bool ixgbe_rx_pending(const struct ixgbe_rxq *r)
{
	uint32_t next = __atomic_load_n(&r->next, __ATOMIC_RELAXED);

	if (__atomic_load_n(&r->posted, __ATOMIC_RELAXED) < IXGBE_RX_REFILL)
		return true;
	return __atomic_load_n(&r->ring[next].wb.status, __ATOMIC_RELAXED) & IXGBE_RXD_DD;
}

/* How many descriptors the frame that begins at `at` has; 0 when its end is not there yet. */
static unsigned frame_descs(const struct ixgbe_rxq *r, uint32_t at)
{
	for (unsigned k = 1; k <= r->posted; k++) {
		uint32_t status = __atomic_load_n(&r->ring[at].wb.status, __ATOMIC_RELAXED);

		if (!(status & IXGBE_RXD_DD))
			return 0;
		if (status & IXGBE_RXD_EOP)
			return k;
		at = next_index(r, at);
	}
	return 0;
}

/* What the last descriptor's status says of the frame (7.1.6.2), as slot flags. */
static inline uint16_t frame_flags(struct ixgbe_rxq *r, uint32_t status)
{
	if (!(status & IXGBE_RXD_L4I))
		return 0;
	if (ho_likely(!(status & (IXGBE_RXD_ERR_TCPE | IXGBE_RXD_ERR_IPE))))
		return PK_CSUM_OK;
	ho_ctr_add(&r->csum_errors, 1);
	return status & IXGBE_RXD_ERR_TCPE ? PK_CSUM_BAD : 0;
}

unsigned ixgbe_rx(struct port_rxq *q, struct pk_slot *slots, unsigned n)
{
	struct ixgbe_rxq *r = (struct ixgbe_rxq *)q;
	uint32_t at, descs = 0;
	uint64_t bytes = 0, frames = 0, bad = 0;
	unsigned used = 0;

	__atomic_store_n(&r->in_rx, 1, __ATOMIC_RELAXED);
	if (ho_unlikely(__atomic_load_n(&r->frozen, __ATOMIC_ACQUIRE)))
		goto out;
	at = r->next;
	while (used < n && descs < r->posted) {
		const union ixgbe_rx_desc *d = &r->ring[at];
		uint32_t status = __atomic_load_n(&d->wb.status, __ATOMIC_RELAXED);
		struct pk_slot *s = &slots[used];
		unsigned k = 1;

		if (!(status & IXGBE_RXD_DD))
			break;
		nic_rmb();
		if (ho_unlikely(!(status & IXGBE_RXD_EOP))) {
			k = frame_descs(r, at);
			if (!k || k > n - used)
				break;
			ho_ctr_add(&r->non_eop, k - 1);
		}
		for (unsigned i = 0; i < k; i++) {
			d = &r->ring[at];
			s[i] = (struct pk_slot){
				.buf = r->bufs[at],
				.off = r->off,
				.len = d->wb.len,
				.flags = i + 1 < k ? PK_MORE : 0,
			};
			bytes += d->wb.len;
			at = next_index(r, at);
		}
		descs += k;
		/* Of the frame, valid in its last descriptor only. */
		status = d->wb.status;
		if (ho_unlikely(status & IXGBE_RXD_ERR_RXE)) {
			/* FCTRL.SBP is off, so the chip should have kept it to itself. */
			for (unsigned i = 0; i < k; i++) {
				bytes -= s[i].len;
				pk_free(q->cache, &s[i].buf, 1);
			}
			bad++;
			continue;
		}
		s->flags |= frame_flags(r, status);
		if (d->wb.info & IXGBE_RXD_RSSTYPE) {
			s->flags |= PK_HASH;
			s->meta = d->wb.hash;
		}
		if (status & IXGBE_RXD_VP) {
			s->flags |= PK_VLAN;
			s->vlan = d->wb.vlan;
			bytes += 4;
		}
		used += k;
		frames++;
	}
	if (descs) {
		__atomic_store_n(&r->next, at, __ATOMIC_RELAXED);
		__atomic_store_n(&r->posted, r->posted - descs, __ATOMIC_RELAXED);
		ho_ctr_add(&r->taken, descs);
		port_count(&q->ctr, frames, bytes);
		if (bad)
			port_drop(&q->ctr, PORT_DROP_RX_MALFORMED, bad);
		rt_spend(r->dev->rt, RT_COST_RX_FRAME, (uint32_t)frames);
	}
	if (r->size - 1 - r->posted >= IXGBE_RX_REFILL)
		refill(r);
out:
	__atomic_store_n(&r->in_rx, 0, __ATOMIC_RELEASE);
	return used;
}
