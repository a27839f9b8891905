// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receiving on a memif ring. There are three ways to it:
 *
 *   server           frames lie where the client says: copied to fresh arena buffers
 *   client, copying  frames lie in our own region: copied, the descriptor is offered again
 *   client, zero copy  frames lie in arena buffers that we offered: the slot is the buffer
 *
 * A descriptor is in memory that the peer can change at any time: it is read once, into locals, and
 * only checked values are used. What does not hold (region, bounds, length, an endless chain) is a
 * rx_malformed frame; impossible ring indices close the connection.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "port/memif.h"
#include "port/memif_copy.h"

/* How far ahead of reading them descriptors are fetched; four to a cache line. */
#define DESC_AHEAD 32

/* --- the connection under the queue ------------------------------------------------------- */

int memif_rxq_init(struct memif_rxq *q, struct rt *rt, struct ho_err *err)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	q->epfd = epoll_create1(EPOLL_CLOEXEC);
	q->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->epfd < 0 || q->kick_fd < 0 || epoll_ctl(q->epfd, EPOLL_CTL_ADD, q->kick_fd, &ev) < 0)
		return ho_err_set(err, -errno, "cannot make event descriptors: %s",
				  ho_strerror(errno));
	return rt_event_from_fd(rt, q->epfd, &q->event, err);
}

void memif_rxq_free(struct memif_rxq *q, struct rt *rt)
{
	rt_event_destroy(rt, q->event);
	memif_conn_close_fd(q->epfd);
	memif_conn_close_fd(q->kick_fd);
}

void memif_rxq_kick(struct memif_rxq *q)
{
	uint64_t one = 1;
	ssize_t n = write(q->kick_fd, &one, sizeof(one));

	(void)n;
}

static void impossible(struct memif_rxq *q)
{
	q->broken = true;
	port_drop(&q->base.ctr, PORT_DROP_RX_MALFORMED, 1);
	memif_ctrl_broken(memif_port_of(q->base.port), q->conn);
}

/* Descriptors of frames that wait from q->next on. The peer's index is read again, which takes a
 * cache line from it, only when fewer than `want` are known of. */
static uint32_t rx_ready(struct memif_rxq *q, uint32_t want)
{
	uint16_t seen, ready, limit;

	if (ho_unlikely(!q->ring || q->broken))
		return 0;
	if (ho_unlikely(q->withdrawn))
		return (uint16_t)(q->end - q->next);
	ready = (uint16_t)(q->seen - q->next);
	if (ready >= want)
		return ready;
	if (q->conn->client) {
		seen = __atomic_load_n(&q->ring->tail, __ATOMIC_ACQUIRE);
		limit = (uint16_t)(q->fill - q->next);
	} else {
		seen = __atomic_load_n(&q->ring->head, __ATOMIC_ACQUIRE);
		limit = (uint16_t)q->size;
	}
	ready = (uint16_t)(seen - q->next);
	if (ho_likely(ready <= limit)) {
		q->seen = seen;
		return ready;
	}
	impossible(q);
	return 0;
}

/* Client: offers empty buffers, as many as the ring takes. */
static void refill(struct memif_rxq *q)
{
	uint32_t room = q->size - (uint16_t)(q->fill - q->next);
	const uint32_t at = q->fill & q->mask;

	if (q->bufs) {
		const uint32_t offset_in = PK_HEADROOM_BYTES;
		uint32_t want = HO_MIN(room, q->size - at);

		want = HO_MIN(want, (uint32_t)PK_CACHE_BULK);
		/* Few at a time would only bounce the index's cache line. */
		if (want < HO_MIN(q->size / 2, 32u) && at + want < q->size)
			return;
		room = pk_alloc(q->base.cache, q->bufs + at, want);
		for (uint32_t i = 0; i < room; i++)
			q->ring->desc[at + i] = (struct memif_desc){
				.region = 1,
				.length = q->base.arena->stride_bytes - offset_in,
				.offset = q->bufs[at + i] * q->base.arena->stride_bytes + offset_in,
			};
	} else {
		/* The offset is ours for good, but the peer wrote the length of its frame. */
		for (uint32_t i = 0; i < room; i++) {
			struct memif_desc *d = &q->ring->desc[(at + i) & q->mask];

			d->length = q->conn->bsize;
			d->flags = 0;
		}
	}
	if (!room)
		return;
	q->fill = (uint16_t)(q->fill + room);
	__atomic_store_n(&q->ring->head, q->fill, __ATOMIC_RELEASE);
}

/* Offers all that the ring takes: at the beginning, where refill's portions are too small. */
static void fill_up(struct memif_rxq *q)
{
	uint16_t before;

	do {
		before = q->fill;
		refill(q);
	} while (q->fill != before);
}

void memif_rxq_detach(struct memif_rxq *q)
{
	struct epoll_event ev = { 0 };
	uint32_t ready, frames = 0;

	if (!q->conn)
		return;
	ready = rx_ready(q, UINT16_MAX);
	for (uint32_t i = 0; i < ready; i++)
		frames += !(q->ring->desc[(q->next + i) & q->mask].flags & MEMIF_DESC_NEXT);
	port_drop(&q->base.ctr, PORT_DROP_RX_CLOSED, frames);
	for (uint16_t i = q->next; q->bufs && i != q->fill; i++)
		pk_free(q->base.cache, &q->bufs[i & q->mask], 1);
	free(q->bufs);
	q->bufs = NULL;
	q->ring = NULL;
	if (q->base.index < q->conn->n_rx)
		epoll_ctl(q->epfd, EPOLL_CTL_DEL, q->conn->rx[q->base.index].event_fd, &ev);
	memif_conn_release(memif_port_of(q->base.port), q->conn);
	q->conn = NULL;
}

static void attach(struct memif_rxq *q)
{
	struct memif_conn *conn = memif_conn_hold(memif_port_of(q->base.port));
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	struct memif_lane *lane;

	q->conn = conn;
	q->next = q->seen = q->fill = 0;
	q->plan_at = q->plan_end = 0;
	q->withdrawn = q->broken = false;
	if (!conn || q->base.index >= conn->n_rx)
		return;
	lane = &conn->rx[q->base.index];
	if (conn->zero_copy) {
		q->bufs = malloc(lane->size * sizeof(q->bufs[0]));
		if (!q->bufs)
			return;
	}
	q->ring = lane->ring;
	q->size = lane->size;
	q->mask = lane->size - 1;
	q->area = conn->region[0].addr + lane->area_offset;
	q->stride = conn->stride;
	epoll_ctl(q->epfd, EPOLL_CTL_ADD, lane->event_fd, &ev);
	if (conn->client)
		fill_up(q);
}

/*
 * The port's connection is not the one that the queue works with. What the old peer had sent
 * before it went is still received; then the queue takes the new one. Returns whether there is a
 * ring to look at.
 */
static bool change_over(struct memif_rxq *q)
{
	if (q->conn && !q->withdrawn) {
		/* Fixed now: a peer that goes on writing cannot keep us here. */
		q->end = (uint16_t)(q->next + rx_ready(q, UINT16_MAX));
		q->withdrawn = true;
	}
	if (q->conn && !q->broken && q->ring && q->end != q->next)
		return true;
	memif_rxq_detach(q);
	attach(q);
	return q->ring != NULL;
}

/* --- copying ------------------------------------------------------------------------------ */

/* Where the bytes of a descriptor lie; NULL when it is broken. */
static inline const uint8_t *source(const struct memif_rxq *q, uint32_t index,
				    const struct memif_desc *d, bool client)
{
	const struct memif_region *r;

	if (client)
		return d->length <= q->conn->bsize ? q->area + (size_t)index * q->stride : NULL;
	if (ho_unlikely(d->region >= q->conn->n_regions))
		return NULL;
	r = &q->conn->region[d->region];
	if (ho_unlikely((uint64_t)d->offset + d->length > r->bytes))
		return NULL;
	return r->addr + d->offset;
}

/* Appends the bytes of one descriptor to a frame under construction. Returns false when buffers or
 * slots do not suffice. */
static bool append(struct memif_rxq *q, struct pk_slot *slots, unsigned max, unsigned *n,
		   const uint8_t *from, uint32_t len)
{
	const uint32_t room = q->base.arena->stride_bytes - PK_HEADROOM_BYTES;

	while (len) {
		struct pk_slot *s = *n ? &slots[*n - 1] : NULL;
		uint32_t part;

		if (!s || s->len == room) {
			uint32_t buf;

			if (*n == max || !pk_alloc(q->base.cache, &buf, 1))
				return false;
			if (s)
				s->flags |= PK_MORE;
			s = &slots[(*n)++];
			*s = (struct pk_slot){ .buf = buf, .off = PK_HEADROOM_BYTES };
		}
		part = HO_MIN(len, room - s->len);
		memcpy(pk_data(q->base.arena, s) + s->len, from, part);
		s->len = (uint16_t)(s->len + part);
		from += part;
		len -= part;
	}
	return true;
}

/*
 * One frame of any shape from `ready` descriptors. Returns how many of them it took, 0 when it
 * must wait (for the rest of the chain, for buffers, for slots). *n is the number of slots filled,
 * 0 when the frame was dropped.
 */
static __attribute__((noinline)) uint32_t rx_frame(struct memif_rxq *q, uint32_t ready,
						   struct pk_slot *slots, unsigned max, unsigned *n)
{
	enum port_drop why = PORT_DROP_RX_MALFORMED;
	bool bad = false, done = false;
	uint32_t used = 0;
	uint64_t bytes = 0;

	*n = 0;
	while (used < ready && !done) {
		uint32_t index = (q->next + used++) & q->mask;
		struct memif_desc d = memif_read_desc(&q->ring->desc[index]);
		const uint8_t *from = source(q, index, &d, q->conn->client);

		done = !(d.flags & MEMIF_DESC_NEXT);
		bytes += d.length;
		if (!from && !bad)
			bad = true;
		if (bytes > PK_FRAME_MAX_BYTES && !bad) {
			bad = true;
			why = PORT_DROP_RX_TOO_LONG;
		}
		if (!bad && !append(q, slots, max, n, from, d.length)) {
			/* It fits next time, unless the peer made it of more than any frame. */
			if (max < PK_FRAME_MAX_SLOTS || *n < max)
				goto wait;
			bad = true;
			why = PORT_DROP_RX_TOO_LONG;
		}
	}
	if (!done && ready < q->size && !q->withdrawn)
		goto wait;
	if (!bad && done && bytes)
		return used;
	port_drop(&q->base.ctr, why, 1);
	pk_free_slots(q->base.cache, slots, *n);
	*n = 0;
	return used;
wait:
	pk_free_slots(q->base.cache, slots, *n);
	*n = 0;
	return 0;
}

/*
 * Looks at the descriptors from q->next on: those that are frames of one descriptor and fit one
 * buffer are put into the plan, and their bytes begin to come.
 */
static inline void make_plan(struct memif_rxq *q, uint32_t ready, bool client)
{
	const uint32_t room = q->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	const uint32_t want = HO_MIN(ready, (uint32_t)PK_BURST);
	uint32_t i;

	for (i = 0; i < want; i++) {
		uint32_t index = (q->next + i) & q->mask;
		struct memif_desc d = memif_read_desc(&q->ring->desc[index]);
		const uint8_t *from = source(q, index, &d, client);

		if (ho_unlikely(!from || (d.flags & MEMIF_DESC_NEXT) || d.length - 1 >= room))
			break;
		q->plan[i] = (struct memif_source){ from, d.length };
		ho_prefetch(from);
	}
	q->plan_at = 0;
	q->plan_end = i;
}

/*
 * The next burst is planned when this one has been copied: its bytes are fetched while the user
 * works on this one.
 */
static inline __attribute__((always_inline)) unsigned rx_copy(struct memif_rxq *q,
							      struct pk_slot *slots, unsigned n,
							      uint32_t ready, bool client)
{
	uint64_t bytes = 0, frames = 0;
	uint32_t bufs[PK_BURST];
	unsigned made = 0;

	if (q->plan_at == q->plan_end)
		make_plan(q, ready, client);
	while (made < n && ready) {
		const struct memif_source *plan = q->plan + q->plan_at;
		unsigned k = HO_MIN(n - made, q->plan_end - q->plan_at), used = 0, more;

		k = pk_alloc(q->base.cache, bufs, k);
		for (unsigned i = 0; i < k; i++) {
			struct pk_slot s = { .buf = bufs[i],
					     .off = PK_HEADROOM_BYTES,
					     .len = (uint16_t)plan[i].len };

			memif_copy(pk_data(q->base.arena, &s), plan[i].from, plan[i].len);
			slots[made + i] = s;
			bytes += plan[i].len;
		}
		q->plan_at += k;
		made += k;
		frames += k;
		if (ho_unlikely(!k)) {
			used = rx_frame(q, ready, slots + made, n - made, &more);
			if (!used)
				break;
			q->plan_at = q->plan_end = 0;
			frames += more != 0;
			bytes += more ? pk_frame_bytes(slots + made, more) : 0;
			made += more;
		}
		ready -= k + used;
		q->next = (uint16_t)(q->next + k + used);
		if (q->plan_at == q->plan_end && ready)
			make_plan(q, ready, client);
	}
	port_count(&q->base.ctr, frames, bytes);
	return made;
}

/* --- zero copy ---------------------------------------------------------------------------- */

/* The buffers of `used` descriptors from q->next on belong to a frame that is not good. */
static void recycle(struct memif_rxq *q, uint32_t used, enum port_drop why)
{
	port_drop(&q->base.ctr, why, 1);
	for (uint32_t i = 0; i < used; i++)
		pk_free(q->base.cache, &q->bufs[(q->next + i) & q->mask], 1);
}

static unsigned rx_zero_copy(struct memif_rxq *q, struct pk_slot *slots, unsigned n, uint32_t ready)
{
	const uint32_t room = q->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	uint64_t bytes = 0, frames = 0;
	unsigned made = 0;

	ho_prefetch(&q->ring->desc[(q->next + DESC_AHEAD) & q->mask]);
	while (ready) {
		unsigned used = 0, max = HO_MIN(n - made, ready);
		uint64_t frame_bytes = 0;
		bool bad = false, more = true;

		/* A chain longer than any frame is walked to its end to be dropped. */
		while (more && used < ready && (used < max || max >= PK_FRAME_MAX_SLOTS)) {
			uint32_t index = (q->next + used) & q->mask;
			struct memif_desc d = memif_read_desc(&q->ring->desc[index]);

			more = d.flags & MEMIF_DESC_NEXT;
			bad |= d.length - 1 >= room;
			frame_bytes += d.length;
			if (used < max)
				slots[made + used] = (struct pk_slot){
					.buf = q->bufs[index],
					.off = PK_HEADROOM_BYTES,
					.len = (uint16_t)d.length,
					.flags = more ? PK_MORE : 0,
				};
			used++;
		}
		if (more && !(used == ready && (ready == q->size || q->withdrawn)))
			break; /* the rest of the chain, or slots for it, come later */
		if (more || bad) {
			recycle(q, used, PORT_DROP_RX_MALFORMED);
		} else if (used > max || frame_bytes > PK_FRAME_MAX_BYTES) {
			recycle(q, used, PORT_DROP_RX_TOO_LONG);
		} else {
			ho_prefetch(pk_data(q->base.arena, &slots[made]));
			made += used;
			frames++;
			bytes += frame_bytes;
		}
		q->next = (uint16_t)(q->next + used);
		ready -= used;
		if (made == n)
			break;
	}
	port_count(&q->base.ctr, frames, bytes);
	return made;
}

/* --- operations --------------------------------------------------------------------------- */

unsigned memif_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct memif_rxq *q = HO_CONTAINER_OF(base, struct memif_rxq, base);
	struct memif_port *port = memif_port_of(base->port);
	uint32_t ready;
	uint16_t before;
	unsigned made;

	if (ho_unlikely(__atomic_load_n(&port->conn, __ATOMIC_RELAXED) != q->conn) &&
	    !change_over(q))
		return 0;
	ready = rx_ready(q, n);
	if (!ready) {
		/* The pool was empty when buffers should have been offered: try again. */
		if (q->ring && q->conn->client && !q->withdrawn &&
		    (uint16_t)(q->fill - q->next) < q->size / 2)
			fill_up(q);
		return 0;
	}
	before = q->next;
	if (!q->conn->client) {
		made = rx_copy(q, slots, n, ready, false);
		if (q->next != before)
			__atomic_store_n(&q->ring->tail, q->next, __ATOMIC_RELEASE);
	} else {
		made = q->bufs ? rx_zero_copy(q, slots, n, ready)
			       : rx_copy(q, slots, n, ready, true);
		if (!q->withdrawn)
			refill(q);
	}
	return made;
}

struct rt_event *memif_rx_event(struct port_rxq *base)
{
	return HO_CONTAINER_OF(base, struct memif_rxq, base)->event;
}

/* Set = the peer does not write to the event descriptor. */
static void mask_interrupt(struct memif_rxq *q, bool mask)
{
	if (q->ring && !q->withdrawn)
		__atomic_store_n(&q->ring->flags, mask ? MEMIF_RING_MASK_INT : 0, __ATOMIC_RELAXED);
}

bool memif_arm(struct port_rxq *base)
{
	struct memif_rxq *q = HO_CONTAINER_OF(base, struct memif_rxq, base);
	struct memif_port *port = memif_port_of(base->port);
	struct epoll_event got[2];

	/* Takes old signals. They are edges: nothing is read from a descriptor of the peer's. */
	while (epoll_wait(q->epfd, got, 2, 0) > 0)
		ho_ctr_add(&base->ctr.wakeups, 1);
	mask_interrupt(q, false);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&port->conn, __ATOMIC_RELAXED) != q->conn || rx_ready(q, 1) != 0;
}

void memif_disarm(struct port_rxq *base)
{
	mask_interrupt(HO_CONTAINER_OF(base, struct memif_rxq, base), true);
}
