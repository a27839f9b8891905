// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sending to a tap's descriptor, which takes a frame a write: several of them in one system call of
 * io_uring where that is to be had, else a system call each. The virtio header lies in the
 * headroom, right before the frame, so that both are one piece: write() costs less than writev().
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "packet/csum.h"
#include "port/tap_port.h"

#define TAP_IOV_MAX   (PK_FRAME_MAX_SLOTS + 3) /* header, head with tag, rest */
#define IOV_PER_BURST (PK_BURST * 2 + TAP_IOV_MAX)

static_assert(PORT_VNET_BYTES <= PK_HEADROOM_BYTES, "the header has room before the frame");

/* Frames on their way into the kernel. */
struct batch {
	unsigned n; /* frames */
	unsigned n_iov;
	uint16_t slots[PK_BURST];
	uint16_t first[PK_BURST + 1]; /* of its iov entries */
	uint32_t bytes[PK_BURST];     /* with its tag */
	struct virtio_net_hdr vnet[PK_BURST];
	uint8_t head[PK_BURST][16];
	struct iovec iov[IOV_PER_BURST];
};

static bool has_tag(const struct pk_arena *arena, const struct pk_slot *slots)
{
	const uint8_t *type = pk_data(arena, slots) + 12;

	return slots[0].len >= 14 &&
	       ((type[0] == 0x81 && type[1] == 0x00) || (type[0] == 0x88 && type[1] == 0xa8));
}

/* May this frame go? PORT_DROP_COUNT = yes. */
static enum port_drop check_frame(struct tap_txq *q, struct pk_slot *slots, unsigned n,
				  uint32_t len)
{
	bool cut = (slots[0].flags & PK_TSO) && q->opts->offload;

	if (ho_unlikely(len < TAP_FRAME_MIN_BYTES || slots[0].len < 12))
		return PORT_DROP_TX_TOO_SHORT;
	/* A tag in the frame is not counted; the kernel itself would take any length. */
	if (ho_unlikely((len > q->mtu_frame && !cut &&
			 len > q->mtu_frame + (has_tag(q->base.arena, slots) ? PORT_VLAN_TAG_BYTES
									     : 0u)) ||
			len + PORT_VLAN_TAG_BYTES > PK_FRAME_MAX_BYTES || n > PK_FRAME_MAX_SLOTS))
		return PORT_DROP_TX_TOO_LONG;
	if (ho_likely(q->opts->offload || !(slots[0].flags & (PK_CSUM_PARTIAL | PK_TSO))))
		return PORT_DROP_COUNT;
	/* It fits, so there is nothing to cut. */
	slots[0].flags = (uint16_t)((slots[0].flags & ~PK_TSO) | PK_CSUM_PARTIAL);
	return pk_csum_complete(q->base.arena, slots, n) < 0 ? PORT_DROP_TX_BAD_FRAME
							     : PORT_DROP_COUNT;
}

static void add_iov(struct batch *b, const void *base, size_t len)
{
	b->iov[b->n_iov++] = (struct iovec){ (void *)base, len };
}

/* Appends a frame; false when its offload request makes no sense. */
static bool add_frame(struct batch *b, const struct tap_txq *q, const struct pk_slot *slots,
		      unsigned n, uint32_t len)
{
	const struct pk_arena *arena = q->base.arena;
	struct virtio_net_hdr *vnet = &b->vnet[b->n];
	unsigned before = 0;

	b->first[b->n] = (uint16_t)b->n_iov;
	if (q->opts->offload) {
		if (port_vnet_from_slots(arena, slots, n, vnet) < 0)
			return false;
		if (ho_likely(slots[0].off >= PORT_VNET_BYTES && !(slots[0].flags & PK_VLAN))) {
			before = PORT_VNET_BYTES;
			memcpy(pk_data(arena, slots) - before, vnet, before);
		} else {
			add_iov(b, vnet, sizeof(*vnet));
		}
	}
	if (ho_unlikely(slots[0].flags & PK_VLAN)) {
		port_vlan_head(arena, slots, b->head[b->n]);
		add_iov(b, b->head[b->n], sizeof(b->head[0]));
		add_iov(b, pk_data(arena, slots) + 12, slots[0].len - 12u);
		len += PORT_VLAN_TAG_BYTES;
	} else {
		add_iov(b, pk_data(arena, slots) - before, slots[0].len + (size_t)before);
	}
	for (unsigned i = 1; i < n; i++)
		add_iov(b, pk_data(arena, &slots[i]), slots[i].len);
	b->slots[b->n] = (uint16_t)n;
	b->bytes[b->n++] = len;
	return true;
}

/* Writes the frames; res[i]: bytes, or a negative errno. Returns the system calls. */
static unsigned write_batch(struct tap_txq *q, struct batch *b, int32_t *res)
{
	b->first[b->n] = (uint16_t)b->n_iov;
	if (b->n == 1) {
		ssize_t rc = b->n_iov == 1 ? write(q->fd, b->iov[0].iov_base, b->iov[0].iov_len)
					   : writev(q->fd, b->iov, (int)b->n_iov);

		res[0] = rc < 0 ? -errno : (int32_t)rc;
		return 1;
	}
	for (unsigned i = 0; i < b->n; i++) {
		struct io_uring_sqe *e = lx_uring_entry(q->uring);
		const struct iovec *iov = b->iov + b->first[i];
		unsigned pieces = b->first[i + 1] - b->first[i];

		if (ho_likely(pieces == 1))
			io_uring_prep_write(e, q->fd, iov->iov_base, (unsigned)iov->iov_len, 0);
		else
			io_uring_prep_writev(e, q->fd, iov, pieces, 0);
		e->rw_flags = RWF_NOWAIT;
	}
	return lx_uring_run(q->uring, res);
}

static enum port_drop refusal(int32_t rc)
{
	switch (rc) {
	case -EIO: /* the interface is down */
	case -EBADFD:
	case -ENETDOWN:
		return PORT_DROP_TX_LINK_DOWN;
	default:
		return PORT_DROP_TX_KERNEL;
	}
}

static bool no_room(int32_t res)
{
	return res == -EAGAIN || res == -EINTR;
}

/* Sends the batch; frames that are finished with (sent or counted as dropped). */
static unsigned send_batch(struct tap_txq *q, struct batch *b)
{
	struct port_counters *ctr = &q->base.ctr;
	uint64_t frames = 0, bytes = 0;
	int32_t res[PK_BURST];
	unsigned end = b->n;

	ho_ctr_add(&ctr->kicks, write_batch(q, b, res));
	/* What there was no room for at the end can be tried again. Before a frame that went it
	 * cannot, or would come behind that. */
	while (end && ho_unlikely(no_room(res[end - 1])))
		end--;
	for (unsigned i = 0; i < end; i++) {
		if (ho_unlikely(res[i] < 0)) {
			port_drop(ctr, refusal(res[i]), 1);
			continue;
		}
		frames++;
		bytes += b->bytes[i];
	}
	port_count(ctr, frames, bytes);
	return end;
}

unsigned tap_tx(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct tap_txq *q = (struct tap_txq *)base;
	const unsigned most = q->uring ? PK_BURST : 1;
	unsigned used = 0;

	while (used < n) {
		struct batch b;
		unsigned at = used, sent;

		b.n = b.n_iov = 0;
		while (at < n && b.n < most && b.n_iov + TAP_IOV_MAX <= IOV_PER_BURST) {
			unsigned k = pk_frame_slots(slots + at, n - at);
			uint32_t len = pk_frame_bytes(slots + at, k);
			enum port_drop why = check_frame(q, slots + at, k, len);

			if (why == PORT_DROP_COUNT && !add_frame(&b, q, slots + at, k, len))
				why = PORT_DROP_TX_BAD_FRAME;
			/* One that is refused here ends the batch, so that the order stays. */
			if (ho_unlikely(why != PORT_DROP_COUNT)) {
				if (b.n)
					break;
				base->accepted++;
				port_drop(&base->ctr, why, 1);
				used += k;
			}
			at += k;
		}
		if (!b.n)
			continue;
		sent = send_batch(q, &b);
		base->accepted += sent;
		for (unsigned i = 0; i < sent; i++)
			used += b.slots[i];
		if (ho_unlikely(sent < b.n)) {
			ho_ctr_add(&base->ctr.ring_full, 1);
			break;
		}
	}
	for (unsigned i = 0; i < used; i += PK_CACHE_BULK)
		pk_free_slots(base->cache, slots + i, HO_MIN(used - i, (unsigned)PK_CACHE_BULK));
	return used;
}
