// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib_node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "route/fib_paint.h"

/*
 * A route of a node: `pos` is its place in a heap of the prefixes of 1 to 8 bits (2 and 3, 4 to 7,
 * ... 256 to 511), so that ascending order is from the shortest to the longest.
 */
struct route {
	uint32_t pos, nh;
};

struct fib_owner {
	uint32_t block;    /* what readers see; 0 = not made yet */
	uint32_t cover;    /* next hop of shorter prefixes */
	uint32_t routes;   /* sorted array in the routes' pool */
	uint32_t n, room;  /* routes, and for how many there is room */
	uint32_t children; /* slots that have a node below */
};

#define OWNER_UNITS ((uint32_t)sizeof(struct fib_owner) / 4)
#define ROUTE_UNITS ((uint32_t)sizeof(struct route) / 4)
#define NO_SLOT     FIB_SLOTS
#define DEEPEST     16 /* nodes from a root to the longest route */

static struct fib_owner *owner_at(const struct fib_nodes *t, uint32_t index)
{
	return (struct fib_owner *)(void *)(t->routes.base + index);
}

static uint32_t owner_index(const struct fib_nodes *t, uint32_t entry)
{
	return t->blocks.base[(entry & ~FIB_CHILD) + FIB_BLOCK_OWNER];
}

static struct fib_owner *owner_of(const struct fib_nodes *t, uint32_t entry)
{
	return owner_at(t, owner_index(t, entry));
}

static struct route *routes_of(const struct fib_nodes *t, const struct fib_owner *o)
{
	return (struct route *)(void *)(t->routes.base + o->routes);
}

static unsigned block_runs(const uint32_t *b)
{
	return ((const uint8_t *)(b + FIB_BLOCK_BEFORE))[7] +
	       (unsigned)__builtin_popcount(b[FIB_BLOCK_BITS + 7]) + 1;
}

uint32_t fib_node_cover(const struct fib_nodes *t, uint32_t entry)
{
	return entry & FIB_CHILD ? owner_of(t, entry)->cover : entry;
}

int fib_node_reserve(struct fib_nodes *t, size_t count)
{
	/* A new cover can split each run where a route begins and where it ends; and blocks are
	 * rounded up to lines, which is less than what was there before or than the routes. */
	size_t blocks = 3 * (size_t)t->blocks.live + 8 * count +
			DEEPEST * (FIB_BLOCK_ENTRY + FIB_SLOTS + FIB_POOL_LINE);
	int rc = fib_pool_reserve(&t->blocks, blocks);

	return rc ? rc
		  : fib_pool_reserve(&t->routes,
				     DEEPEST * (OWNER_UNITS + FIB_POOL_LINE) + FIB_POOL_BLOCK_MAX);
}

/* The slot of each run that is a child, by walking the bits of a block. */
#define for_each_child(b, slot, entry)                                             \
	for (unsigned w_ = 0, run_ = 0; w_ < 8; w_++)                              \
		for (uint64_t left_ = (b)[FIB_BLOCK_BITS + w_] | (w_ == 0); left_; \
		     left_ &= left_ - 1, run_++)                                   \
			if ((slot) = w_ * 32 + (unsigned)__builtin_ctzll(left_),   \
			    (entry) = (b)[FIB_BLOCK_ENTRY + run_], (entry)&FIB_CHILD)

static void write_block(uint32_t *b, uint32_t owner, const uint64_t *bits, const uint32_t *entry,
			unsigned runs)
{
	uint8_t *before = (uint8_t *)(b + FIB_BLOCK_BEFORE);
	unsigned sum = 0;

	b[FIB_BLOCK_OWNER] = owner;
	for (unsigned w = 0; w < 8; w++) {
		uint32_t half = (uint32_t)(bits[w / 2] >> (w % 2 * 32));

		b[FIB_BLOCK_BITS + w] = half;
		before[w] = (uint8_t)sum;
		sum += fib_popcount(half);
	}
	memcpy(b + FIB_BLOCK_ENTRY, entry, runs * sizeof(*entry));
}

/* Same runs, other values: each entry is one store that readers see whole. */
static bool change_in_place(uint32_t *b, const uint64_t *bits, const uint32_t *entry, unsigned runs)
{
	for (unsigned w = 0; w < 8; w++) {
		if (b[FIB_BLOCK_BITS + w] != (uint32_t)(bits[w / 2] >> (w % 2 * 32)))
			return false;
	}
	for (unsigned i = 0; i < runs; i++) {
		if (b[FIB_BLOCK_ENTRY + i] != entry[i])
			__atomic_store_n(&b[FIB_BLOCK_ENTRY + i], entry[i], __ATOMIC_RELEASE);
	}
	return true;
}

static void retire_block(struct fib_nodes *t, uint32_t block)
{
	fib_pool_retire(&t->blocks, block, FIB_BLOCK_ENTRY + block_runs(t->blocks.base + block));
}

/*
 * Makes the block anew from the routes, the children of the old block and one slot that is given:
 * a child, or no child any more (child 0).
 */
static void rebuild(struct fib_nodes *t, uint32_t index, unsigned given, uint32_t child)
{
	struct fib_owner *o = owner_at(t, index);
	const struct route *route = routes_of(t, o);
	uint32_t old = o->block, entry, runs[FIB_SLOTS];
	uint64_t bits[FIB_SLOTS / 64];
	struct fib_paint paint;
	unsigned n, slot;

	fib_paint_begin(&paint, o->cover);
	for (unsigned i = 0; i < o->n; i++) {
		unsigned len = 31 - (unsigned)__builtin_clz(route[i].pos);
		unsigned length = FIB_SLOTS >> len;

		fib_paint_range(&paint, (route[i].pos - (1u << len)) * length, length, FIB_SLOTS,
				route[i].nh);
	}
	if (old && o->children) {
		for_each_child(t->blocks.base + old, slot, entry)
		{
			uint32_t cover = fib_paint_at(&paint, slot);

			if (slot == given)
				continue;
			if (owner_of(t, entry)->cover != cover)
				entry = fib_node_set_cover(t, entry, cover);
			fib_paint_range(&paint, slot, 1, FIB_SLOTS, entry);
		}
	}
	if (child)
		fib_paint_range(&paint, given, 1, FIB_SLOTS, child);
	n = fib_paint_runs(&paint, FIB_SLOTS / 64, bits, runs);
	if (old && change_in_place(t->blocks.base + old, bits, runs, n))
		return;
	o->block = fib_pool_alloc(&t->blocks, FIB_BLOCK_ENTRY + n);
	write_block(t->blocks.base + o->block, index, bits, runs, n);
	if (old)
		retire_block(t, old);
}

uint32_t fib_node_set_cover(struct fib_nodes *t, uint32_t entry, uint32_t cover)
{
	uint32_t index = owner_index(t, entry);
	struct fib_owner *o = owner_at(t, index);

	o->cover = cover;
	rebuild(t, index, NO_SLOT, 0);
	return FIB_CHILD | o->block;
}

/* Where pos is among the routes or would be. */
static unsigned find_route(const struct fib_nodes *t, const struct fib_owner *o, uint32_t pos)
{
	const struct route *route = routes_of(t, o);
	unsigned low = 0, high = o->n;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (route[mid].pos < pos)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Gives the array room for `room` routes, with o->n kept. */
static void resize_routes(struct fib_nodes *t, struct fib_owner *o, unsigned room)
{
	uint32_t fresh = 0;

	if (room)
		fresh = fib_pool_alloc(&t->routes, room * ROUTE_UNITS);
	if (o->n)
		memcpy(t->routes.base + fresh, routes_of(t, o), o->n * sizeof(struct route));
	if (o->room)
		fib_pool_free(&t->routes, o->routes, o->room * ROUTE_UNITS);
	o->routes = fresh;
	o->room = room;
}

static bool put_route(struct fib_nodes *t, struct fib_owner *o, uint32_t pos, uint32_t nh)
{
	unsigned i = find_route(t, o, pos);
	struct route *route = routes_of(t, o);

	if (i < o->n && route[i].pos == pos) {
		route[i].nh = nh;
		return false;
	}
	if (o->n == o->room) {
		/* By one while few, as most nodes stay; by a quarter later. */
		resize_routes(t, o, HO_MIN(o->room + 1 + o->room / 4, 2u * FIB_SLOTS - 2));
		route = routes_of(t, o);
	}
	memmove(route + i + 1, route + i, (o->n - i) * sizeof(*route));
	route[i].pos = pos;
	route[i].nh = nh;
	o->n++;
	return true;
}

static void take_route(struct fib_nodes *t, struct fib_owner *o, uint32_t pos)
{
	unsigned i = find_route(t, o, pos);
	struct route *route = routes_of(t, o);

	memmove(route + i, route + i + 1, (o->n - i - 1) * sizeof(*route));
	o->n--;
	if (o->n == 0 || o->n + 1 + o->n / 2 < o->room)
		resize_routes(t, o, o->n);
}

static uint32_t pos_of(const uint8_t *key, unsigned len)
{
	return (1u << len) + (*key >> (8 - len));
}

uint32_t fib_node_set(struct fib_nodes *t, uint32_t entry, const uint8_t *key, unsigned len,
		      uint32_t nh, bool *added)
{
	uint32_t index, was, now;
	struct fib_owner *o;

	if (entry & FIB_CHILD) {
		index = owner_index(t, entry);
		o = owner_at(t, index);
	} else {
		index = fib_pool_alloc(&t->routes, OWNER_UNITS);
		o = owner_at(t, index);
		memset(o, 0, sizeof(*o));
		o->cover = entry;
	}
	if (len <= 8) {
		*added = put_route(t, o, pos_of(key, len), nh);
		rebuild(t, index, NO_SLOT, 0);
		return FIB_CHILD | o->block;
	}
	was = o->block ? fib_node_entry(t->blocks.base, o->block, *key) : o->cover;
	now = fib_node_set(t, was, key + 1, len - 8, nh, added);
	if (now == was)
		return entry;
	if (was & FIB_CHILD) {
		__atomic_store_n(&t->blocks.base[fib_node_at(t->blocks.base, o->block, *key)], now,
				 __ATOMIC_RELEASE);
		return entry;
	}
	rebuild(t, index, *key, now);
	o->children++;
	return FIB_CHILD | o->block;
}

uint32_t fib_node_del(struct fib_nodes *t, uint32_t entry, const uint8_t *key, unsigned len)
{
	uint32_t index = owner_index(t, entry), was, now;
	struct fib_owner *o = owner_at(t, index);
	unsigned given = NO_SLOT;

	if (len <= 8) {
		take_route(t, o, pos_of(key, len));
	} else {
		was = fib_node_entry(t->blocks.base, o->block, *key);
		now = fib_node_del(t, was, key + 1, len - 8);
		if (now == was)
			return entry;
		if (now & FIB_CHILD) {
			__atomic_store_n(
				&t->blocks.base[fib_node_at(t->blocks.base, o->block, *key)], now,
				__ATOMIC_RELEASE);
			return entry;
		}
		given = *key;
	}
	if (o->n == 0 && o->children == (given != NO_SLOT)) {
		uint32_t cover = o->cover;

		retire_block(t, o->block);
		fib_pool_free(&t->routes, index, OWNER_UNITS);
		return cover;
	}
	rebuild(t, index, given, 0);
	o->children -= given != NO_SLOT;
	return FIB_CHILD | o->block;
}

uint32_t fib_node_get(const struct fib_nodes *t, uint32_t entry, const uint8_t *key, unsigned len)
{
	const struct fib_owner *o;
	unsigned i;

	for (; len > 8 && entry & FIB_CHILD; len -= 8)
		entry = fib_node_entry(t->blocks.base, entry & ~FIB_CHILD, *key++);
	if (!(entry & FIB_CHILD))
		return 0;
	o = owner_of(t, entry);
	i = find_route(t, o, pos_of(key, len));
	if (i == o->n || routes_of(t, o)[i].pos != pos_of(key, len))
		return 0;
	return routes_of(t, o)[i].nh;
}

/* What a node has, by the order of its addresses: first slot, then length, then the child. */
struct item {
	uint16_t order; /* first slot * 16 + length; a child has 9 */
	uint32_t value; /* next hop or entry */
};

static int compare_items(const void *a, const void *b)
{
	return ((const struct item *)a)->order - ((const struct item *)b)->order;
}

int fib_node_walk(const struct fib_nodes *t, uint32_t entry, uint8_t *key, unsigned depth,
		  int (*fn)(void *ctx, const uint8_t *key, unsigned len, uint32_t nh), void *ctx)
{
	const struct fib_owner *o;
	struct item item[3 * FIB_SLOTS];
	unsigned n = 0, slot;
	uint32_t child;
	int rc = 0;

	if (!(entry & FIB_CHILD))
		return 0;
	o = owner_of(t, entry);
	for (unsigned i = 0; i < o->n; i++) {
		const struct route *route = routes_of(t, o) + i;
		unsigned len = 31 - (unsigned)__builtin_clz(route->pos);
		unsigned first = (route->pos - (1u << len)) << (8 - len);

		item[n++] = (struct item){ (uint16_t)(first * 16 + len), route->nh };
	}
	for_each_child(t->blocks.base + o->block, slot, child) item[n++] =
		(struct item){ (uint16_t)(slot * 16 + 9), child };
	qsort(item, n, sizeof(*item), compare_items);
	for (unsigned i = 0; i < n && !rc; i++) {
		unsigned len = item[i].order % 16;

		key[depth] = (uint8_t)(item[i].order / 16);
		if (len == 9)
			rc = fib_node_walk(t, item[i].value, key, depth + 1, fn, ctx);
		else
			rc = fn(ctx, key, depth * 8 + len, item[i].value);
	}
	key[depth] = 0;
	return rc;
}
