// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receiving from a tap's descriptor, which gives a frame a read.
 *
 *   by turns    the first read of an idle queue, and all where io_uring is not to be had or frames
 *               of many buffers come: a system call each, straight into the buffers of the frame
 *   by batches  as many reads as the last batch found frames, and more, in one system call of
 *               io_uring: into a buffer each, what does not fit it into one place (q->tail), from
 *               which it is copied. Frames that the caller had no room for wait in the queue
 *
 * The virtio header lies in the headroom, right before the frame, so that both are one piece:
 * read() costs less than readv(), and this less with up to UIO_FASTIOV (8) pieces, which the kernel
 * keeps on its stack.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "port/tap_port.h"

/* Reads with all the buffers' own pieces after one that had more of them than fit the few. */
#define TAP_LONG_READS 64
/* Reads of the first batch after a single one found a frame. */
#define TAP_READS_MORE 3

static_assert(PORT_VNET_BYTES <= PK_HEADROOM_BYTES, "the header has room before the frame");

/* --- by turns ------------------------------------------------------------------------------ */

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

/* Finishes a frame of k slots behind its virtio header; false when it was dropped. */
static bool finish(struct tap_rxq *q, const uint8_t *header, struct pk_slot *slots, unsigned k)
{
	struct virtio_net_hdr vnet;

	if (!q->header)
		return true;
	memcpy(&vnet, header, sizeof(vnet));
	if (ho_likely(port_vnet_to_slots(&vnet, q->base.arena, slots, k) == 0))
		return true;
	pk_free_slots(q->base.cache, slots, k);
	port_drop(&q->base.ctr, PORT_DROP_RX_MALFORMED, 1);
	return false;
}

/* Reads frame by frame, at most `most` of them; slots used. */
static unsigned rx_turns(struct tap_rxq *q, struct pk_slot *slots, unsigned n, unsigned most,
			 unsigned *frames, uint64_t *bytes)
{
	unsigned used = 0;

	/* Frames of unknown length: read only while the longest one has room. */
	while (n - used >= q->want_buf && *frames < most) {
		const uint8_t *header;
		ssize_t len;
		unsigned k;

		/* Without buffers nothing is read; the kernel's queue waits, and says so when it
		 * is full. */
		if (q->n_buf < q->want_buf && !fill(q))
			break;
		header = q->iov[0].iov_base;
		len = read_frame(q);
		if (len < 0) {
			if (errno != EAGAIN && errno != EINTR)
				read_failed(q, errno);
			break;
		}
		len -= q->header;
		if (len < TAP_FRAME_MIN_BYTES) {
			port_drop(&q->base.ctr, PORT_DROP_RX_MALFORMED, 1);
			continue;
		}
		k = to_slots(q, (uint32_t)len, slots + used);
		if (!finish(q, header, slots + used, k))
			continue;
		used += k;
		++*frames;
		*bytes += (uint64_t)len;
	}
	return used;
}

/* --- by batches ---------------------------------------------------------------------------- */

static uint8_t *first_byte(const struct tap_rxq *q, uint32_t buf)
{
	return pk_buffer(q->base.arena, buf) + PK_HEADROOM_BYTES;
}

static uint8_t *tail_of(const struct tap_rxq *q, unsigned i)
{
	return q->tail + (size_t)i * TAP_TAIL_BYTES;
}

/* Asks for n frames at once. What came waits in q->got. */
static void read_batch(struct tap_rxq *q, unsigned n)
{
	const uint32_t room = q->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	int32_t res[PK_BURST];
	uint32_t buf[PK_BURST];
	unsigned unused = 0;

	n = pk_alloc(q->base.cache, buf, n);
	for (unsigned i = 0; i < n; i++) {
		struct io_uring_sqe *e = lx_uring_entry(q->uring);
		uint8_t *to = first_byte(q, buf[i]) - q->header;

		if (q->want_buf == 1) {
			io_uring_prep_read(e, q->fd, to, room + q->header, 0);
		} else {
			q->piece[i][0] = (struct iovec){ to, room + q->header };
			q->piece[i][1] = (struct iovec){ tail_of(q, i), TAP_TAIL_BYTES };
			io_uring_prep_readv(e, q->fd, q->piece[i], 2, 0);
		}
		e->rw_flags = RWF_NOWAIT;
	}
	lx_uring_run(q->uring, res);
	q->got_at = q->got_n = 0;
	for (unsigned i = 0; i < n; i++) {
		if (res[i] >= 0) {
			q->got[q->got_n++] = (struct tap_got){ .buf = buf[i],
							       .len = (uint32_t)res[i],
							       .tail = i };
			continue;
		}
		if (res[i] != -EAGAIN && res[i] != -EINTR)
			read_failed(q, -res[i]);
		buf[unused++] = buf[i];
	}
	pk_free(q->base.cache, buf, unused);
	/* More than came, so that a queue that fills faster is followed. */
	q->reads = HO_MIN(2 * q->got_n + 1, (unsigned)PK_BURST);
}

/* What a frame of a batch has behind its first buffer; false when the pool is empty. */
static bool copy_tail(struct tap_rxq *q, const struct tap_got *got, uint32_t len,
		      struct pk_slot *slots, unsigned k)
{
	const uint32_t room = q->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	uint32_t buf[PK_FRAME_MAX_SLOTS];
	unsigned have = pk_alloc(q->base.cache, buf, k - 1);

	if (have < k - 1) {
		pk_free(q->base.cache, buf, have);
		return false;
	}
	slots[0].flags = PK_MORE;
	for (unsigned i = 1; i < k; i++) {
		uint32_t at = i * room, part = HO_MIN(len - at, room);

		memcpy(first_byte(q, buf[i - 1]), tail_of(q, got->tail) + at - room, part);
		slots[i] = (struct pk_slot){ .buf = buf[i - 1],
					     .off = PK_HEADROOM_BYTES,
					     .len = (uint16_t)part,
					     .flags = i + 1 < k ? PK_MORE : 0 };
	}
	/* Such frames come in numbers, and are read without a copy by turns. */
	if (k > TAP_FEW)
		q->long_reads = TAP_LONG_READS;
	return true;
}

/* The frames that came, as far as there is room; slots used. */
static unsigned deliver(struct tap_rxq *q, struct pk_slot *slots, unsigned n, unsigned *frames,
			uint64_t *bytes)
{
	const uint32_t room = q->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	unsigned used = 0;

	for (; q->got_at < q->got_n; q->got_at++) {
		const struct tap_got *got = &q->got[q->got_at];
		uint32_t len = got->len - q->header;
		enum port_drop why = PORT_DROP_RX_MALFORMED;
		unsigned k = 1;

		if (ho_likely(got->len >= TAP_FRAME_MIN_BYTES + q->header)) {
			k = len <= room ? 1 : (len + room - 1) / room;
			if (k > n - used)
				break;
			slots[used] = (struct pk_slot){ .buf = got->buf,
							.off = PK_HEADROOM_BYTES,
							.len = (uint16_t)HO_MIN(len, room) };
			why = PORT_DROP_COUNT;
			if (ho_unlikely(k > 1) && !copy_tail(q, got, len, slots + used, k))
				why = PORT_DROP_RX_NO_BUFFER;
		}
		if (ho_unlikely(why != PORT_DROP_COUNT)) {
			pk_free(q->base.cache, &got->buf, 1);
			port_drop(&q->base.ctr, why, 1);
			continue;
		}
		if (!finish(q, first_byte(q, got->buf) - q->header, slots + used, k))
			continue;
		used += k;
		++*frames;
		*bytes += len;
	}
	return used;
}

static unsigned rx_batches(struct tap_rxq *q, struct pk_slot *slots, unsigned n, unsigned *frames,
			   uint64_t *bytes)
{
	unsigned used = deliver(q, slots, n, frames, bytes);

	if (q->got_at < q->got_n || used == n)
		return used;
	/* One read is cheaper by itself, above all the one that finds nothing. */
	if (q->reads <= 1 && !used) {
		used = rx_turns(q, slots, n, 1, frames, bytes);
		if (!used || q->long_reads)
			return used;
		q->reads = 1 + TAP_READS_MORE;
	}
	if (q->long_reads || n == used)
		return used;
	read_batch(q, HO_MIN(q->reads, n - used));
	return used + deliver(q, slots + used, n - used, frames, bytes);
}

unsigned tap_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct tap_rxq *q = (struct tap_rxq *)base;
	unsigned used, frames = 0;
	uint64_t bytes = 0;

	if (q->uring && (!q->long_reads || tap_rx_waits(q)))
		used = rx_batches(q, slots, n, &frames, &bytes);
	else
		used = rx_turns(q, slots, n, UINT_MAX, &frames, &bytes);
	port_count(&base->ctr, frames, bytes);
	return used;
}

void tap_rx_discard(struct tap_rxq *q)
{
	for (; q->got_at < q->got_n; q->got_at++) {
		pk_free(q->base.cache, &q->got[q->got_at].buf, 1);
		port_drop(&q->base.ctr, PORT_DROP_RX_CLOSED, 1);
	}
}
