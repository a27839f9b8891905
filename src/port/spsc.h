/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Indices of a single-producer single-consumer ring; the elements are the user's array of
 * `size` entries (a power of two).
 *
 *   element i is at array[i & mask]
 *        tail                     head
 *   ......|#######################|.......
 *         consumer takes here     producer puts here
 *
 * Producer and consumer each own a cache line, which also holds their last view of the other's
 * index: the shared line is read only when that view says full or empty. Indices are free running
 * 32-bit counters; they wrap correctly because size is at most 2^31.
 */
#ifndef HOLDOFF_PORT_SPSC_H
#define HOLDOFF_PORT_SPSC_H

#include <stdint.h>

#include "base/compiler.h"

struct port_spsc {
	struct {
		uint32_t head;      /* written by the producer */
		uint32_t seen_tail; /* producer's view of tail */
	} prod HO_CACHE_ALIGNED;
	struct {
		uint32_t tail;      /* written by the consumer */
		uint32_t seen_head; /* consumer's view of head */
	} cons HO_CACHE_ALIGNED;
	uint32_t size HO_CACHE_ALIGNED;
	uint32_t mask;
};

static inline void port_spsc_init(struct port_spsc *ring, uint32_t size)
{
	*ring = (struct port_spsc){ .size = size, .mask = size - 1 };
}

/* Producer: entries that can be put from *head on, at most want. */
static inline uint32_t port_spsc_space(struct port_spsc *ring, uint32_t want, uint32_t *head)
{
	uint32_t h = ring->prod.head;
	uint32_t space = ring->size - (h - ring->prod.seen_tail);

	if (space < want) {
		ring->prod.seen_tail = __atomic_load_n(&ring->cons.tail, __ATOMIC_ACQUIRE);
		space = ring->size - (h - ring->prod.seen_tail);
	}
	*head = h;
	return HO_MIN(space, want);
}

/* Producer: n entries are written. */
static inline void port_spsc_put(struct port_spsc *ring, uint32_t n)
{
	__atomic_store_n(&ring->prod.head, ring->prod.head + n, __ATOMIC_RELEASE);
}

/* Consumer: entries that can be taken from *tail on, at most want. */
static inline uint32_t port_spsc_ready(struct port_spsc *ring, uint32_t want, uint32_t *tail)
{
	uint32_t t = ring->cons.tail;
	uint32_t ready = ring->cons.seen_head - t;

	if (ready < want) {
		ring->cons.seen_head = __atomic_load_n(&ring->prod.head, __ATOMIC_ACQUIRE);
		ready = ring->cons.seen_head - t;
	}
	*tail = t;
	return HO_MIN(ready, want);
}

/* Consumer: n entries are read and may be overwritten. */
static inline void port_spsc_take(struct port_spsc *ring, uint32_t n)
{
	__atomic_store_n(&ring->cons.tail, ring->cons.tail + n, __ATOMIC_RELEASE);
}

#endif
