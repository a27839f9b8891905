// SPDX-License-Identifier: BSD-2-Clause
/* Frames through a tap's descriptor: one system call each, the headers in the same call. */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "packet/csum.h"
#include "port/tap_port.h"

#define TAP_IOV_MAX (PK_FRAME_MAX_SLOTS + 3) /* header, head with tag, rest */

/* --- receiving ----------------------------------------------------------------------------- */

/* Fills up the waiting buffers. False when there is not a single frame's worth. */
static bool fill(struct tap_rxq *q)
{
	const struct pk_arena *arena = q->base.arena;
	unsigned have = q->n_buf;

	q->n_buf += pk_alloc(q->base.cache, q->buf + have, q->want_buf - have);
	for (unsigned i = have; i < q->n_buf; i++)
		q->iov[1 + i] = (struct iovec){ pk_buffer(arena, q->buf[i]) + PK_HEADROOM_BYTES,
						arena->stride_bytes - PK_HEADROOM_BYTES };
	return q->n_buf == q->want_buf;
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
			q->iov[1 + i] = q->iov[1 + last];
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
	const unsigned skip = q->opts->offload ? 0 : 1;
	const ssize_t header = q->opts->offload ? PORT_VNET_BYTES : 0;
	uint64_t frames = 0, bytes = 0;
	unsigned used = 0;

	/* Frames of unknown length: read only while the longest one has room. */
	while (n - used >= q->want_buf) {
		ssize_t len;
		unsigned k;

		/* Without buffers nothing is read; the kernel's queue waits, and says so when it
		 * is full. */
		if (q->n_buf < q->want_buf && !fill(q))
			break;
		len = readv(q->fd, q->iov + skip, (int)(q->n_buf + 1 - skip));
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
		k = to_slots(q, (uint32_t)len, slots + used);
		if (header && port_vnet_to_slots(&q->vnet, base->arena, slots + used, k) < 0) {
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
	uint8_t head[16];
	unsigned n_iov = 0, i = 0;

	if (q->opts->offload) {
		if (port_vnet_from_slots(arena, slots, n, &vnet) < 0)
			return -EBADMSG;
		iov[n_iov++] = (struct iovec){ &vnet, sizeof(vnet) };
	}
	if (ho_unlikely(slots[0].flags & PK_VLAN)) {
		port_vlan_head(arena, slots, head);
		iov[n_iov++] = (struct iovec){ head, sizeof(head) };
		iov[n_iov++] = (struct iovec){ pk_data(arena, slots) + 12, slots[0].len - 12u };
		i = 1;
	}
	for (; i < n; i++)
		iov[n_iov++] = (struct iovec){ pk_data(arena, &slots[i]), slots[i].len };
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
