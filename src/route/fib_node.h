/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node resolves eight bits of the address. What readers see of it is a block:
 *
 *   owner | 256 bits, one a slot | runs before each 32 bits | one entry a run
 *
 * Bit s says that slot s differs from slot s - 1, so that the number of bits set up to s is the
 * index of the slot's entry. An entry is a next hop (0 = none), or FIB_CHILD and the index of the
 * node for the next eight bits. A small node is one cache line.
 *
 * A block is never changed but for single entries, each a store of 32 bits; else a new block takes
 * its place in the entry that points to it, again one store. Next hops of shorter prefixes are
 * pushed down ("cover"), so that a lookup ends where it finds one.
 *
 * What the writer needs, the routes themselves, is in a pool of its own (struct fib_owner).
 */
#ifndef HOLDOFF_ROUTE_FIB_NODE_H
#define HOLDOFF_ROUTE_FIB_NODE_H

#include "route/fib_pool.h"

#define FIB_CHILD (1u << 31)

enum { /* units from a block's beginning */
       FIB_BLOCK_OWNER = 0,
       FIB_BLOCK_BITS = 1,
       FIB_BLOCK_BEFORE = 9, /* bytes */
       FIB_BLOCK_ENTRY = 11,
};

/* Without the popcnt instruction, which not every x86-64 has. */
static inline unsigned fib_popcount(uint32_t x)
{
	x -= x >> 1 & 0x55555555;
	x = (x & 0x33333333) + (x >> 2 & 0x33333333);
	x = (x + (x >> 4)) & 0x0f0f0f0f;
	return x * 0x01010101 >> 24;
}

/* Where the entry of a slot is; block is FIB_CHILD's index. */
static inline uint32_t fib_node_at(const uint32_t *base, uint32_t block, unsigned slot)
{
	const uint32_t *b = base + block;
	unsigned w = slot >> 5;

	return block + FIB_BLOCK_ENTRY + ((const uint8_t *)(b + FIB_BLOCK_BEFORE))[w] +
	       fib_popcount(b[FIB_BLOCK_BITS + w] << (31 - (slot & 31)));
}

static inline uint32_t fib_node_entry(const uint32_t *base, uint32_t block, unsigned slot)
{
	return __atomic_load_n(&base[fib_node_at(base, block, slot)], __ATOMIC_ACQUIRE);
}

/* From an entry on, until it is a next hop. key: the bytes of the address that come now. */
static inline uint32_t fib_node_lookup(const uint32_t *base, uint32_t entry, const uint8_t *key)
{
	while (entry & FIB_CHILD)
		entry = fib_node_entry(base, entry & ~FIB_CHILD, *key++);
	return entry;
}

struct fib_nodes {
	struct fib_pool blocks; /* what readers see */
	struct fib_pool routes; /* what only the writer sees */
};

/* For the entry of a slot: the next hop that shorter prefixes give it. */
uint32_t fib_node_cover(const struct fib_nodes *t, uint32_t entry);

/* Makes sure that a set, a del or a change of all covers cannot fail half way. `count`: routes in
 * the table. -ENOMEM, -ENOSPC. */
int fib_node_reserve(struct fib_nodes *t, size_t count);

/*
 * Sets the route of len more bits (1 on) of key below an entry, and returns the entry as it must be
 * now, to be stored where the old one was. *added: it was not there. To be reserved before.
 */
uint32_t fib_node_set(struct fib_nodes *t, uint32_t entry, const uint8_t *key, unsigned len,
		      uint32_t nh, bool *added);
/* The same for taking a route away; it must be there. */
uint32_t fib_node_del(struct fib_nodes *t, uint32_t entry, const uint8_t *key, unsigned len);
uint32_t fib_node_get(const struct fib_nodes *t, uint32_t entry, const uint8_t *key, unsigned len);
/* The shorter prefixes' next hop for a child has changed. */
uint32_t fib_node_set_cover(struct fib_nodes *t, uint32_t entry, uint32_t cover);

/*
 * Calls fn for the routes below an entry in order of address; key holds `depth` bytes that lead
 * there and room for the rest.
 */
int fib_node_walk(const struct fib_nodes *t, uint32_t entry, uint8_t *key, unsigned depth,
		  int (*fn)(void *ctx, const uint8_t *key, unsigned len, uint32_t nh), void *ctx);

#endif
