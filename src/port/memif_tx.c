// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sending on a memif ring. There are three ways to it:
 *
 *   server           into the buffers that the client offered; sent when the index is published
 *   client, copying  into our own region, one frame behind the other
 *   client, zero copy  the descriptor points at the arena buffer, which is ours again when the
 *                      server has moved its index past it
 *
 * A client knows what the server has taken: its frames count as sent only then, and what was not
 * taken when the link went is a named loss.
 *
 * The copying client does not give each descriptor a buffer of its own, as its peers do. Frames lie
 * packed in the ring's area, beginning at its start whenever the ring does, so a full ring of
 * small frames is 64 KB that stay in both sides' caches and not 2 MB:
 *
 *   descriptors  | 0 | 1 | 2 | 3 |  ...        a frame of descriptor i lies at or before
 *   area         |f0|f1|  f2  |f3| ...free...| i * stride, so it always fits behind the last;
 *                                              before the oldest one in use it may not fit yet
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "port/memif.h"
#include "port/memif_copy.h"

/* --- the connection under the queue ------------------------------------------------------- */

static void impossible(struct memif_txq *q)
{
	q->broken = true;
	memif_ctrl_broken(memif_port_of(q->base.port), q->conn);
}

/*
 * Client, zero copy: the server has read these frames, and has their lines. Whoever gets the
 * buffers next will write to them, so the lines are put out of all caches as long as streaming is
 * faster.
 */
static void flush_taken(const struct memif_txq *q, uint16_t tail)
{
	const struct pk_arena *arena = q->base.arena;

	for (uint16_t i = q->done; i != tail; i++) {
		uint32_t bytes = q->sent[i & q->mask].bytes - q->sent[(i - 1u) & q->mask].bytes;

		/* Where a frame usually begins; a first line is never fewer than one. */
		memif_flush(pk_buffer(arena, q->where[i & q->mask]) + PK_HEADROOM_BYTES,
			    HO_MIN(bytes, arena->stride_bytes - PK_HEADROOM_BYTES));
	}
}

/* Client: counts what the server has taken, and takes zero-copy buffers back. */
static void complete(struct memif_txq *q)
{
	uint16_t tail = __atomic_load_n(&q->ring->tail, __ATOMIC_ACQUIRE);
	uint16_t n = (uint16_t)(tail - q->done);
	const struct memif_sent *s = &q->sent[(tail - 1u) & q->mask];

	if (!n || ho_unlikely(q->broken))
		return;
	if (ho_unlikely(n > (uint16_t)(q->next - q->done))) {
		impossible(q);
		return;
	}
	port_count(&q->base.ctr, s->frames - q->completed.frames, s->bytes - q->completed.bytes);
	q->completed = *s;
	if (q->conn->zero_copy && q->flushes && q->tune.stream)
		flush_taken(q, tail);
	while (q->conn->zero_copy && n) {
		uint32_t at = q->done & q->mask;
		uint32_t part = HO_MIN((uint32_t)n, q->size - at);

		part = HO_MIN(part, (uint32_t)PK_CACHE_BULK);
		pk_free(q->base.cache, q->where + at, part);
		q->done = (uint16_t)(q->done + part);
		n = (uint16_t)(n - part);
	}
	q->done = tail;
}

void memif_txq_detach(struct memif_txq *q, enum port_drop why)
{
	if (!q->conn)
		return;
	if (q->ring && q->conn->client) {
		complete(q);
		for (uint16_t i = q->done; q->conn->zero_copy && i != q->next; i++)
			pk_free(q->base.cache, &q->where[i & q->mask], 1);
		port_drop(&q->base.ctr, why, q->total.frames - q->completed.frames);
	}
	free(q->sent);
	free(q->where);
	q->sent = NULL;
	q->where = NULL;
	q->ring = NULL;
	memif_conn_release(memif_port_of(q->base.port), q->conn);
	q->conn = NULL;
}

static void attach(struct memif_txq *q)
{
	struct memif_conn *conn = memif_conn_hold(memif_port_of(q->base.port));
	struct memif_lane *lane;

	q->conn = conn;
	q->next = q->done = q->limit = q->widest = 0;
	q->at = 0;
	q->broken = false;
	q->flushes = ho_cpu_flushes();
	memif_tune_init(&q->tune);
	q->total = q->completed = (struct memif_sent){ 0 };
	if (!conn || q->base.index >= conn->n_tx)
		return;
	lane = &conn->tx[q->base.index];
	if (conn->client) {
		q->sent = malloc(lane->size * sizeof(q->sent[0]));
		q->where = malloc(lane->size * sizeof(q->where[0]));
		if (!q->sent || !q->where)
			return;
	}
	q->ring = lane->ring;
	q->size = lane->size;
	q->mask = lane->size - 1;
	q->event_fd = lane->event_fd;
	q->area_offset = lane->area_offset;
	q->area = conn->region[0].addr + lane->area_offset;
	q->stride = conn->stride;
}

/* Wakes the peer if it sleeps. The fence orders the index before the look at the flag; the peer
 * clears the flag, then looks at the index. */
static void kick(struct memif_txq *q)
{
	uint64_t one = 1;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ho_likely(__atomic_load_n(&q->ring->flags, __ATOMIC_RELAXED) & MEMIF_RING_MASK_INT))
		return;
	if (write(q->event_fd, &one, sizeof(one)) == sizeof(one))
		ho_ctr_add(&q->base.ctr.kicks, 1);
}

static inline void put_desc(struct memif_desc *to, const struct memif_desc *d, bool stream)
{
	if (stream)
		memif_stream_desc(to, d);
	else
		*to = *d;
}

/*
 * Copies a frame of one slot to a place with `room` bytes. What is streamed are whole cache lines,
 * and the source is read a little beyond its end.
 */
static inline void put_frame(const struct memif_txq *q, uint8_t *to, uint32_t room,
			     const struct pk_slot *s, bool stream)
{
	const uint8_t *from = pk_data(q->base.arena, s);

	if (stream && ho_likely((uintptr_t)to % HO_CACHE_LINE == 0 &&
				HO_ALIGN_UP((uint32_t)s->len, HO_CACHE_LINE) <= room &&
				(uint32_t)s->off + s->len + MEMIF_STREAM_SLACK <=
					q->base.arena->stride_bytes))
		memif_stream(to, from, s->len);
	else
		memif_copy(to, from, s->len);
}

/* --- client ------------------------------------------------------------------------------- */

static inline void send_desc(struct memif_txq *q, bool stream, uint32_t index, bool more,
			     uint16_t region, uint32_t offset, uint32_t length)
{
	const struct memif_desc d = {
		.flags = more ? MEMIF_DESC_NEXT : 0,
		.region = region,
		.length = length,
		.offset = offset,
	};

	put_desc(&q->ring->desc[index], &d, stream);
}

/* Records that descriptor `index` was used for `bytes` bytes; `ends` = with it a frame ends. */
static inline void record(struct memif_txq *q, uint32_t index, uint32_t where, uint32_t bytes,
			  bool ends)
{
	q->where[index] = where;
	q->total.frames += ends;
	q->total.bytes += bytes;
	q->sent[index] = q->total;
}

/* Room in the area for `size` bytes of descriptor q->next: their offset, or UINT32_MAX. */
static inline uint32_t place(struct memif_txq *q, uint32_t size)
{
	uint32_t head = q->next & q->mask, tail = q->done & q->mask;

	if (head == 0)
		q->at = 0;
	/* The oldest frame in use is of the lap before: what follows it is not free yet. */
	if (ho_unlikely(tail > head && q->next != q->done && q->at + size > q->where[tail]))
		return UINT32_MAX;
	return q->at;
}

/*
 * A frame that is chained, or longer than a buffer. Each of its descriptors uses the place that
 * a fixed assignment would give it: then it fits into an empty ring wherever it begins. Returns
 * false, with nothing done, when the ring is too full.
 */
static __attribute__((noinline)) bool copy_chain(struct memif_txq *q, const struct pk_slot *slots,
						 unsigned n)
{
	const uint32_t bytes = pk_frame_bytes(slots, n), bsize = q->conn->bsize;
	const uint32_t need = (bytes + bsize - 1) / bsize, at = q->at;
	const struct memif_sent total = q->total;
	const uint16_t first = q->next;
	uint32_t left = bytes;
	unsigned s = 0, from = 0;

	if (need > q->size - (uint16_t)(q->next - q->done))
		return false;
	for (uint32_t i = 0; i < need; i++) {
		uint32_t index = q->next & q->mask, len = HO_MIN(left, bsize), put = 0;

		q->at = index * q->stride;
		if (place(q, q->stride) == UINT32_MAX) {
			q->next = first;
			q->at = at;
			q->total = total;
			return false;
		}
		while (put < len) {
			uint32_t part = HO_MIN(len - put, slots[s].len - from);

			memcpy(q->area + q->at + put, pk_data(q->base.arena, &slots[s]) + from,
			       part);
			put += part;
			from += part;
			if (from == slots[s].len) {
				s++;
				from = 0;
			}
		}
		left -= len;
		send_desc(q, false, index, left != 0, 0, q->area_offset + q->at, len);
		record(q, index, q->at, len, left == 0);
		q->at += q->stride;
		q->next++;
	}
	return true;
}

/* Returns how many slots were taken. Their buffers are free again afterwards. */
static inline __attribute__((always_inline)) unsigned tx_copy(struct memif_txq *q,
							      const struct pk_slot *slots,
							      unsigned n, bool stream)
{
	const uint32_t bsize = q->conn->bsize;
	unsigned i = 0;

	while (i < n && (uint16_t)(q->next - q->done) < q->size) {
		uint32_t index = q->next & q->mask, len = slots[i].len, size, at;

		if (ho_unlikely((slots[i].flags & PK_MORE) || len > bsize)) {
			unsigned k = pk_frame_slots(slots + i, n - i);

			if (!copy_chain(q, slots + i, k))
				break;
			i += k;
			continue;
		}
		size = memif_stride(len);
		at = place(q, size);
		if (at == UINT32_MAX)
			break;
		put_frame(q, q->area + at, size, &slots[i], stream);
		send_desc(q, stream, index, false, 0, q->area_offset + at, len);
		record(q, index, at, len, true);
		q->at = at + size;
		q->next++;
		i++;
	}
	return i;
}

static inline __attribute__((always_inline)) unsigned tx_zero_copy(struct memif_txq *q,
								   const struct pk_slot *slots,
								   unsigned n, bool stream)
{
	const uint32_t stride = q->base.arena->stride_bytes;
	unsigned room = q->size - (uint16_t)(q->next - q->done);

	n = port_whole_frames(slots, n, room);
	for (unsigned i = 0; i < n; i++) {
		uint32_t index = q->next & q->mask;
		bool more = slots[i].flags & PK_MORE;

		send_desc(q, stream, index, more, 1, slots[i].buf * stride + slots[i].off,
			  slots[i].len);
		record(q, index, slots[i].buf, slots[i].len, !more);
		q->next++;
	}
	return n;
}

static unsigned tx_client(struct memif_txq *q, struct pk_slot *slots, unsigned n)
{
	const uint16_t first = q->next;
	const uint32_t frames = q->total.frames;
	unsigned taken;
	bool stream;

	if ((uint16_t)(q->next - q->done) + n > q->size / 2)
		complete(q);
	if (ho_unlikely(q->broken))
		return 0;
	stream = memif_tune_begin(&q->tune, n);
	if (q->conn->zero_copy) {
		taken = stream ? tx_zero_copy(q, slots, n, true) : tx_zero_copy(q, slots, n, false);
	} else {
		taken = stream ? tx_copy(q, slots, n, true) : tx_copy(q, slots, n, false);
		for (unsigned i = 0; i < taken; i += PK_CACHE_BULK)
			pk_free_slots(q->base.cache, slots + i,
				      HO_MIN(taken - i, (unsigned)PK_CACHE_BULK));
	}
	if (q->next == first)
		return taken;
	q->base.accepted += q->total.frames - frames;
	if (stream)
		memif_stream_end();
	__atomic_store_n(&q->ring->head, q->next, __ATOMIC_RELEASE);
	kick(q);
	memif_tune_end(&q->tune, taken, n);
	return taken;
}

/* --- server ------------------------------------------------------------------------------- */

/* The place that an empty buffer's descriptor, read into *d, describes, with d->length bytes of
 * room; NULL when the client broke it. */
static inline uint8_t *offered(const struct memif_txq *q, uint32_t index, struct memif_desc *d)
{
	const struct memif_region *r;

	*d = memif_read_desc(&q->ring->desc[index]);
	if (ho_unlikely(d->region >= q->conn->n_regions || !d->length))
		return NULL;
	r = &q->conn->region[d->region];
	if (ho_unlikely((uint64_t)d->offset + d->length > r->bytes))
		return NULL;
	return r->addr + d->offset;
}

static inline void fill_desc(struct memif_txq *q, uint32_t index, struct memif_desc d, bool more,
			     uint32_t length, bool stream)
{
	d.flags = more ? MEMIF_DESC_NEXT : 0;
	d.length = length;
	put_desc(&q->ring->desc[index], &d, stream);
}

/* What became of a frame that may need several of the client's buffers. */
enum put {
	PUT_DONE,
	PUT_WAIT,     /* too few empty buffers now */
	PUT_TOO_LONG, /* and there will never be enough */
	PUT_BROKEN,   /* a descriptor was broken; q->next has passed it */
};

static __attribute__((noinline)) enum put put_chain(struct memif_txq *q,
						    const struct pk_slot *slots, unsigned n)
{
	const uint16_t first = q->next;
	const uint16_t space = (uint16_t)(q->limit - first);
	uint32_t left = pk_frame_bytes(slots, n);
	unsigned s = 0, from = 0;

	do {
		uint32_t index = q->next & q->mask, room, put = 0;
		struct memif_desc d;
		uint8_t *to;

		if (q->next == q->limit) {
			q->next = first;
			return space == q->size ? PUT_TOO_LONG : PUT_WAIT;
		}
		to = offered(q, index, &d);
		if (!to) {
			/* Passed on empty: the client finds frames of no bytes. */
			for (uint16_t i = first; i != (uint16_t)(q->next + 1); i++) {
				d = memif_read_desc(&q->ring->desc[i & q->mask]);
				fill_desc(q, i & q->mask, d, false, 0, false);
			}
			q->next++;
			return PUT_BROKEN;
		}
		room = HO_MIN(d.length, left);
		while (put < room) {
			uint32_t part = HO_MIN(room - put, slots[s].len - from);

			memcpy(to + put, pk_data(q->base.arena, &slots[s]) + from, part);
			put += part;
			from += part;
			if (from == slots[s].len) {
				s++;
				from = 0;
			}
		}
		left -= room;
		fill_desc(q, index, d, left != 0, room, false);
		q->next++;
	} while (left);
	return PUT_DONE;
}

/* Fills the client's buffers. Returns the slots that it is done with. */
static inline __attribute__((always_inline)) unsigned fill_buffers(struct memif_txq *q,
								   const struct pk_slot *slots,
								   unsigned n, bool stream)
{
	uint64_t bytes = 0, frames = 0;
	unsigned i = 0;

	while (i < n && q->next != q->limit) {
		uint32_t index = q->next & q->mask;
		enum put put = PUT_DONE;
		struct memif_desc d;
		unsigned k = 1;
		uint8_t *to;

		if (ho_likely(!(slots[i].flags & PK_MORE)) && (to = offered(q, index, &d)) &&
		    ho_likely(slots[i].len <= d.length)) {
			put_frame(q, to, d.length, &slots[i], stream);
			fill_desc(q, index, d, false, slots[i].len, stream);
			q->next++;
		} else {
			k = pk_frame_slots(slots + i, n - i);
			put = put_chain(q, slots + i, k);
		}
		if (ho_unlikely(put == PUT_WAIT))
			break;
		if (ho_likely(put == PUT_DONE)) {
			frames++;
			bytes += pk_frame_bytes(slots + i, k);
		} else {
			port_drop(&q->base.ctr,
				  put == PUT_BROKEN ? PORT_DROP_TX_MALFORMED
						    : PORT_DROP_TX_TOO_LONG,
				  1);
			q->base.accepted++;
		}
		i += k;
	}
	q->base.accepted += frames;
	port_count(&q->base.ctr, frames, bytes);
	return i;
}

static unsigned tx_server(struct memif_txq *q, struct pk_slot *slots, unsigned n)
{
	const uint16_t first = q->next;
	unsigned taken;
	bool stream;

	if ((uint16_t)(q->limit - q->next) < n) {
		q->limit = __atomic_load_n(&q->ring->head, __ATOMIC_ACQUIRE);
		q->widest = HO_MAX(q->widest, (uint16_t)(q->limit - q->next));
		if (ho_unlikely((uint16_t)(q->limit - q->next) > q->size)) {
			q->limit = q->next;
			impossible(q);
		}
	}
	if (ho_unlikely(q->broken))
		return 0;
	stream = memif_tune_begin(&q->tune, n);
	taken = stream ? fill_buffers(q, slots, n, true) : fill_buffers(q, slots, n, false);
	for (unsigned i = 0; i < taken; i += PK_CACHE_BULK)
		pk_free_slots(q->base.cache, slots + i, HO_MIN(taken - i, (unsigned)PK_CACHE_BULK));
	if (q->next != first) {
		if (stream)
			memif_stream_end();
		__atomic_store_n(&q->ring->tail, q->next, __ATOMIC_RELEASE);
		kick(q);
		memif_tune_end(&q->tune, taken, n);
	}
	return taken;
}

bool memif_txq_taken(struct memif_txq *q)
{
	uint16_t empty;

	if (!q->ring || q->broken)
		return true;
	empty = (uint16_t)(__atomic_load_n(&q->ring->head, __ATOMIC_ACQUIRE) - q->next);
	return empty >= q->widest;
}

/* --- operations --------------------------------------------------------------------------- */

/* The frame at the beginning cannot be sent at all: counts it. Returns its slots, 0 if it can. */
static unsigned hopeless(struct memif_txq *q, struct pk_slot *slots, unsigned n)
{
	unsigned k = pk_frame_slots(slots, n);
	uint32_t bytes = pk_frame_bytes(slots, k);
	enum port_drop why;

	if (bytes < 14)
		why = PORT_DROP_TX_TOO_SHORT;
	else if (q->conn->client &&
		 (bytes > PK_FRAME_MAX_BYTES || k > q->size ||
		  (!q->conn->zero_copy && bytes > (uint64_t)q->conn->bsize * q->size)))
		why = PORT_DROP_TX_TOO_LONG;
	else
		return 0;
	port_tx_discard(&q->base, slots, k, why);
	return k;
}

/* Slots at the beginning of frames that are neither too short nor unusually long. */
static unsigned sane(const struct memif_txq *q, const struct pk_slot *slots, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		if (ho_unlikely(slots[i].len < 14 || (slots[i].flags & PK_MORE)))
			break;
	}
	return i;
}

static unsigned tx_some(struct memif_txq *q, struct pk_slot *slots, unsigned n)
{
	return q->conn->client ? tx_client(q, slots, n) : tx_server(q, slots, n);
}

unsigned memif_tx(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct memif_txq *q = HO_CONTAINER_OF(base, struct memif_txq, base);
	struct memif_port *port = memif_port_of(base->port);
	unsigned taken = 0;

	if (ho_unlikely(__atomic_load_n(&port->conn, __ATOMIC_RELAXED) != q->conn)) {
		memif_txq_detach(q, PORT_DROP_TX_LINK_DOWN);
		attach(q);
	}
	if (ho_unlikely(!q->ring)) {
		port_tx_discard(base, slots, n, PORT_DROP_TX_LINK_DOWN);
		return n;
	}
	while (taken < n) {
		unsigned run = sane(q, slots + taken, n - taken), done;

		if (ho_unlikely(!run)) {
			done = hopeless(q, slots + taken, n - taken);
			if (done) {
				taken += done;
				continue;
			}
			run = pk_frame_slots(slots + taken, n - taken);
		}
		done = tx_some(q, slots + taken, run);
		taken += done;
		if (done < run)
			break;
	}
	if (taken < n)
		ho_ctr_add(&base->ctr.ring_full, 1);
	return taken;
}

unsigned memif_tx_reap(struct port_txq *base)
{
	struct memif_txq *q = HO_CONTAINER_OF(base, struct memif_txq, base);
	uint64_t before = base->ctr.packets;

	if (__atomic_load_n(&memif_port_of(base->port)->conn, __ATOMIC_RELAXED) != q->conn) {
		memif_txq_detach(q, PORT_DROP_TX_LINK_DOWN);
		return 0;
	}
	if (q->ring && q->conn->client)
		complete(q);
	return (unsigned)(base->ctr.packets - before);
}
