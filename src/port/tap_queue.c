// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames through a tap's descriptor: one system call each. The virtio header lies in the headroom,
 * right before the frame, so that both are one piece: read() and write() cost less than readv() and
 * writev(), and these less with up to UIO_FASTIOV (8) pieces, which the kernel keeps on its stack.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "packet/csum.h"
#include "port/tap_port.h"

#define TAP_IOV_MAX (PK_FRAME_MAX_SLOTS + 3) /* header, head with tag, rest */
/* Reads with all the buffers' own pieces after one that had more of them than fit the few. */
#define TAP_LONG_READS 64

static_assert(PORT_VNET_BYTES <= PK_HEADROOM_BYTES, "the header has room before the frame");

/* --- receiving ----------------------------------------------------------------------------- */

/* Where the bytes of the waiting buffer in place i go; the header before those of the first. */
static void place(struct tap_rxq *q, unsigned i)
{
	const struct pk_arena *arena = q->base.arena;
	unsigned before = i == 0 ? q->header : 0;

	q->iov[i] = (struct iovec){ pk_buffer(arena, q->buf[i]) + PK_HEADROOM_BYTES - before,
				    arena->stride_bytes - PK_HEADROOM_BYTES + before };
}

/* Fills up the waiting buffers. False when there is not a single frame's worth. */
static bool fill(struct tap_rxq *q)
{
	unsigned have = q->n_buf;

	q->n_buf += pk_alloc(q->base.cache, q->buf + have, q->want_buf - have);
	for (unsigned i = have; i < q->n_buf; i++)
		place(q, i);
	return q->n_buf == q->want_buf;
}

/* The end of a frame that had no piece of its own, into the buffers it belongs to. */
static void from_tail(struct tap_rxq *q, size_t bytes)
{
	const struct pk_arena *arena = q->base.arena;
	const size_t room = arena->stride_bytes - PK_HEADROOM_BYTES;

	for (unsigned i = TAP_FEW - 1, at = 0; at < bytes; i++, at += room)
		memcpy(pk_buffer(arena, q->buf[i]) + PK_HEADROOM_BYTES, q->tail + at,
		       HO_MIN(room, bytes - at));
}

/* One frame into the first buffers, as readv. Long ones are rare: until one comes, all that does
 * not fit a few pieces goes to one place. */
static ssize_t read_frame(struct tap_rxq *q)
{
	const size_t room = q->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	const size_t few = q->header + (TAP_FEW - 1) * room;
	struct iovec last;
	ssize_t len;

	if (q->n_buf == 1)
		return read(q->fd, q->iov[0].iov_base, q->iov[0].iov_len);
	if (q->n_buf <= TAP_FEW || q->long_reads) {
		q->long_reads -= q->long_reads > 0;
		len = readv(q->fd, q->iov, (int)q->n_buf);
		if (q->n_buf > TAP_FEW && len > (ssize_t)few)
			q->long_reads = TAP_LONG_READS;
		return len;
	}
	last = q->iov[TAP_FEW - 1];
	q->iov[TAP_FEW - 1] = (struct iovec){ q->tail, (q->n_buf - (TAP_FEW - 1)) * room };
	len = readv(q->fd, q->iov, TAP_FEW);
	q->iov[TAP_FEW - 1] = last;
	if (ho_unlikely(len > (ssize_t)few)) {
		from_tail(q, (size_t)len - few);
		q->long_reads = TAP_LONG_READS;
	}
	return len;
}

/* Makes slots of the first buffers, which hold a frame of `len` bytes; slots used. */
static unsigned to_slots(struct tap_rxq *q, uint32_t len, struct pk_slot *slots)
{
	const uint32_t room = q->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	unsigned n = 0;

	do {
		uint32_t part = HO_MIN(len, room);

		slots[n] = (struct pk_slot){ .buf = q->buf[n],
					     .off = PK_HEADROOM_BYTES,
					     .len = (uint16_t)part,
					     .flags = len > part ? PK_MORE : 0 };
		len -= part;
		n++;
	} while (len);
	/* The last buffers take the places of the used ones: few move. */
	for (unsigned i = 0; i < n; i++) {
		unsigned last = --q->n_buf;

		if (last > i) {
			q->buf[i] = q->buf[last];
			place(q, i);
		}
	}
	return n;
}

/* What a failed read means. */
static void read_failed(struct tap_rxq *q, int error)
{
	struct tap_port *port = (struct tap_port *)q->base.port;

	/* EBADFD: the interface was removed. EIO, EAGAIN: down, or nothing there. */
	if (error == EBADFD) {
		q->ended = true;
		__atomic_store_n(&port->gone, true, __ATOMIC_RELAXED);
	}
}

unsigned tap_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct tap_rxq *q = (struct tap_rxq *)base;
	const ssize_t header = q->header;
	uint64_t frames = 0, bytes = 0;
	unsigned used = 0;

	/* Frames of unknown length: read only while the longest one has room. */
	while (n - used >= q->want_buf) {
		struct virtio_net_hdr vnet;
		ssize_t len;
		unsigned k;

		/* Without buffers nothing is read; the kernel's queue waits, and says so when it
		 * is full. */
		if (q->n_buf < q->want_buf && !fill(q))
			break;
		len = read_frame(q);
		if (len < 0) {
			if (errno != EAGAIN && errno != EINTR)
				read_failed(q, errno);
			break;
		}
		len -= header;
		if (len < TAP_FRAME_MIN_BYTES) {
			port_drop(&base->ctr, PORT_DROP_RX_MALFORMED, 1);
			continue;
		}
		if (header)
			memcpy(&vnet, q->iov[0].iov_base, sizeof(vnet));
		k = to_slots(q, (uint32_t)len, slots + used);
		if (header && port_vnet_to_slots(&vnet, base->arena, slots + used, k) < 0) {
			pk_free_slots(base->cache, slots + used, k);
			port_drop(&base->ctr, PORT_DROP_RX_MALFORMED, 1);
			continue;
		}
		used += k;
		frames++;
		bytes += (uint64_t)len;
	}
	port_count(&base->ctr, frames, bytes);
	return used;
}

/* --- sending ------------------------------------------------------------------------------- */

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

/* Writes one frame: 0, or a negative errno. */
static int write_frame(struct tap_txq *q, const struct pk_slot *slots, unsigned n)
{
	const struct pk_arena *arena = q->base.arena;
	struct iovec iov[TAP_IOV_MAX];
	struct virtio_net_hdr vnet;
	unsigned before = 0, n_iov = 0;
	uint8_t head[16];

	if (q->opts->offload) {
		if (port_vnet_from_slots(arena, slots, n, &vnet) < 0)
			return -EBADMSG;
		if (ho_likely(slots[0].off >= PORT_VNET_BYTES && !(slots[0].flags & PK_VLAN))) {
			before = PORT_VNET_BYTES;
			memcpy(pk_data(arena, slots) - before, &vnet, before);
		} else {
			iov[n_iov++] = (struct iovec){ &vnet, sizeof(vnet) };
		}
	}
	if (ho_unlikely(slots[0].flags & PK_VLAN)) {
		port_vlan_head(arena, slots, head);
		iov[n_iov++] = (struct iovec){ head, sizeof(head) };
		iov[n_iov++] = (struct iovec){ pk_data(arena, slots) + 12, slots[0].len - 12u };
	} else {
		iov[n_iov++] = (struct iovec){ pk_data(arena, slots) - before,
					       slots[0].len + (size_t)before };
	}
	for (unsigned i = 1; i < n; i++)
		iov[n_iov++] = (struct iovec){ pk_data(arena, &slots[i]), slots[i].len };
	if (ho_likely(n_iov == 1))
		return write(q->fd, iov[0].iov_base, iov[0].iov_len) < 0 ? -errno : 0;
	return writev(q->fd, iov, (int)n_iov) < 0 ? -errno : 0;
}

static enum port_drop refusal(int rc)
{
	switch (rc) {
	case -EIO: /* the interface is down */
	case -EBADFD:
	case -ENETDOWN:
		return PORT_DROP_TX_LINK_DOWN;
	case -EBADMSG: /* ours */
		return PORT_DROP_TX_BAD_FRAME;
	default:
		return PORT_DROP_TX_KERNEL;
	}
}

unsigned tap_tx(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct tap_txq *q = (struct tap_txq *)base;
	uint64_t frames = 0, bytes = 0;
	unsigned used = 0;

	while (used < n) {
		unsigned k = pk_frame_slots(slots + used, n - used);
		uint32_t len = pk_frame_bytes(slots + used, k);
		enum port_drop why = check_frame(q, slots + used, k, len);
		int rc = why == PORT_DROP_COUNT ? write_frame(q, slots + used, k) : 0;

		if (ho_unlikely(rc == -EAGAIN || rc == -EINTR)) {
			ho_ctr_add(&base->ctr.ring_full, 1);
			break;
		}
		if (ho_unlikely(rc < 0))
			why = refusal(rc);
		base->accepted++;
		if (ho_likely(why == PORT_DROP_COUNT)) {
			frames++;
			bytes += len + (slots[used].flags & PK_VLAN ? PORT_VLAN_TAG_BYTES : 0);
		} else {
			port_drop(&base->ctr, why, 1);
		}
		used += k;
	}
	port_count(&base->ctr, frames, bytes);
	ho_ctr_add(&base->ctr.kicks, frames);
	for (unsigned i = 0; i < used; i += PK_CACHE_BULK)
		pk_free_slots(base->cache, slots + i, HO_MIN(used - i, (unsigned)PK_CACHE_BULK));
	return used;
}
