// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib4.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "packet/parse.h"
#include "route/fib4_impl.h"
#include "route/fib_paint.h"

#define ROOT_BYTES  (FIB4_ROOTS * sizeof(uint64_t))
#define OWNER_BYTES (FIB4_ROOTS * sizeof(struct fib4_owner))
#define UPPER_BYTES (2 * FIB4_ROOTS * sizeof(uint32_t))

int fib4_create(struct fib4 **out, const struct fib_config *cfg, struct ho_err *err)
{
	struct fib4 *fib = calloc(1, sizeof(*fib));

	if (!fib)
		goto no_memory;
	fib->root = fib_map(ROOT_BYTES);
	fib->owner = fib_map(OWNER_BYTES);
	fib->upper = fib_map(UPPER_BYTES);
	if (!fib->root || !fib->owner || !fib->upper ||
	    fib_pool_init(&fib->nodes.blocks, FIB4_SAME, cfg ? cfg->reclaim : NULL) ||
	    fib_pool_init(&fib->nodes.routes, 0, NULL) ||
	    fib4_front_init(&fib->front, cfg ? cfg->reclaim : NULL))
		goto no_memory;
	fib4_choose_bulk(fib);
	*out = fib;
	return 0;

no_memory:
	fib4_destroy(fib);
	return ho_err_set(err, -ENOMEM, "no memory for an IPv4 forwarding table");
}

void fib4_destroy(struct fib4 *fib)
{
	if (!fib)
		return;
	fib_pool_exit(&fib->nodes.blocks);
	fib_pool_exit(&fib->nodes.routes);
	fib4_front_exit(&fib->front);
	fib_unmap(fib->root, ROOT_BYTES);
	fib_unmap(fib->owner, OWNER_BYTES);
	fib_unmap(fib->upper, UPPER_BYTES);
	free(fib);
}

static uint32_t *answers(struct fib4 *fib)
{
	return fib->nodes.blocks.base;
}

/* Units that a word's answers occupy; 0 where it points to the answers n = n. */
static unsigned block_units(uint64_t word)
{
	return word >> 32 < FIB4_SAME ? 0 : (unsigned)__builtin_popcountll(word & 0xffffffff) + 1;
}

static uint64_t make_word(struct fib4 *fib, uint32_t bits, const uint32_t *run, unsigned n)
{
	uint32_t at;

	if (n == 1) { /* not a node: that is one slot of 32 */
		at = run[0];
		__atomic_store_n(&answers(fib)[at], at, __ATOMIC_RELAXED);
		fib->same = HO_MAX(fib->same, at);
	} else {
		at = fib_pool_alloc(&fib->nodes.blocks, n);
		memcpy(answers(fib) + at, run, n * sizeof(*run));
	}
	return (uint64_t)at << 32 | bits;
}

/*
 * Makes the answers of a /19 anew from its routes, its nodes and one /24 that is given (node, or
 * with child 0: not a node any more).
 */
static void rebuild(struct fib4 *fib, uint32_t index, unsigned given, uint32_t child)
{
	struct fib4_owner *o = &fib->owner[index];
	const uint32_t *nh = fib->nodes.routes.base + o->nhs;
	uint64_t old = fib->root[index], word, bits;
	uint32_t run[FIB4_SLOTS];
	struct fib_paint paint;
	unsigned n;

	fib_paint_begin(&paint, o->cover);
	for (uint64_t left = o->present; left; left &= left - 1) {
		unsigned pos = (unsigned)__builtin_ctzll(left);
		unsigned len = 31 - (unsigned)__builtin_clz(pos), length = FIB4_SLOTS >> len;

		fib_paint_range(&paint, (pos - (1u << len)) * length, length, FIB4_SLOTS, *nh++);
	}
	if (o->children) {
		unsigned i = 0;

		for (uint64_t left = (old & 0xffffffff) | 1; left; left &= left - 1, i++) {
			unsigned slot = (unsigned)__builtin_ctzll(left);
			uint32_t entry = answers(fib)[(old >> 32) + i], cover;

			if (!(entry & FIB_CHILD) || slot == given)
				continue;
			cover = fib_paint_at(&paint, slot);
			if (fib_node_cover(&fib->nodes, entry) != cover)
				entry = fib_node_set_cover(&fib->nodes, entry, cover);
			fib_paint_range(&paint, slot, 1, FIB4_SLOTS, entry);
		}
	}
	if (child)
		fib_paint_range(&paint, given, 1, FIB4_SLOTS, child);
	n = fib_paint_runs(&paint, 1, &bits, run);
	if (n > 1 && bits == (old & 0xffffffff)) {
		/* Same runs: each answer is one store that readers see whole. */
		for (unsigned i = 0; i < n; i++)
			__atomic_store_n(&answers(fib)[(old >> 32) + i], run[i], __ATOMIC_RELEASE);
		return;
	}
	word = make_word(fib, (uint32_t)bits, run, n);
	__atomic_store_n(&fib->root[index], word, __ATOMIC_RELEASE);
	if (block_units(old))
		fib_pool_retire(&fib->nodes.blocks, (uint32_t)(old >> 32), block_units(old));
}

/* A new cover for what lies below a place of `upper`, as far as no longer prefix covers it. */
static void set_cover(struct fib4 *fib, uint32_t at, uint32_t nh)
{
	if (at >= FIB4_ROOTS) {
		fib->owner[at - FIB4_ROOTS].cover = nh;
		rebuild(fib, at - FIB4_ROOTS, FIB4_SLOTS, 0);
		return;
	}
	for (uint32_t below = 2 * at; below <= 2 * at + 1; below++) {
		if (!fib->upper[below])
			set_cover(fib, below, nh);
	}
}

static uint32_t upper_at(uint32_t addr, unsigned len)
{
	return (1u << len) + (uint32_t)((uint64_t)addr >> (32 - len));
}

/* Of the longest prefix above a place of `upper`. */
static uint32_t cover_above(const struct fib4 *fib, uint32_t at)
{
	while ((at /= 2)) {
		if (fib->upper[at])
			return fib->upper[at];
	}
	return 0;
}

/* A route of 20 to 24 bits: its place in the heap of its /19, and in the array of next hops. */
static unsigned owner_pos(uint32_t addr, unsigned len)
{
	unsigned beyond = len - FIB4_ROOT_BITS;

	return (1u << beyond) + (addr >> (32 - len) & ((1u << beyond) - 1));
}

static unsigned owner_rank(const struct fib4_owner *o, unsigned pos)
{
	return (unsigned)__builtin_popcountll(o->present & ((1ull << pos) - 1));
}

/* Puts n next hops into an array of another size, with room for one more or one less at `rank`. */
static void resize_nhs(struct fib4 *fib, struct fib4_owner *o, unsigned n, unsigned rank, int by)
{
	struct fib_pool *pool = &fib->nodes.routes;
	uint32_t *old = pool->base + o->nhs, at = o->nhs;
	unsigned after = (unsigned)((int)n + by);

	/* Blocks have an even number of units. */
	if ((n + 1) / 2 != (after + 1) / 2)
		at = after ? fib_pool_alloc(pool, after) : 0;
	if (at != o->nhs && after && n)
		memcpy(pool->base + at, old, rank * sizeof(*old));
	if (by > 0)
		memmove(pool->base + at + rank + 1, old + rank, (n - rank) * sizeof(*old));
	else if (after)
		memmove(pool->base + at + rank, old + rank + 1, (n - rank - 1) * sizeof(*old));
	if (at != o->nhs && n)
		fib_pool_free(pool, o->nhs, n);
	o->nhs = at;
}

static bool put_owned(struct fib4 *fib, uint32_t addr, unsigned len, uint32_t nh)
{
	struct fib4_owner *o = &fib->owner[addr >> (32 - FIB4_ROOT_BITS)];
	unsigned pos = owner_pos(addr, len), rank = owner_rank(o, pos);
	bool added = !(o->present >> pos & 1);

	if (added) {
		resize_nhs(fib, o, (unsigned)__builtin_popcountll(o->present), rank, 1);
		o->present |= 1ull << pos;
	}
	fib->nodes.routes.base[o->nhs + rank] = nh;
	return added;
}

static void take_owned(struct fib4 *fib, uint32_t addr, unsigned len)
{
	struct fib4_owner *o = &fib->owner[addr >> (32 - FIB4_ROOT_BITS)];
	unsigned pos = owner_pos(addr, len);

	resize_nhs(fib, o, (unsigned)__builtin_popcountll(o->present), owner_rank(o, pos), -1);
	o->present &= ~(1ull << pos);
}

/* A route beyond /24: `now` is what its node has become; `was` what the /24's answer is. */
static void put_entry(struct fib4 *fib, uint32_t addr, uint32_t was, uint32_t now)
{
	uint32_t index = addr >> (32 - FIB4_ROOT_BITS);
	unsigned slot = addr >> 8 & (FIB4_SLOTS - 1);

	if (now == was)
		return;
	if (was & now & FIB_CHILD) {
		uint32_t at = fib4_answer_at(fib->root[index], slot);

		__atomic_store_n(&answers(fib)[at], now, __ATOMIC_RELEASE);
		fib4_front_node(fib, addr, now);
		return;
	}
	rebuild(fib, index, slot, now & FIB_CHILD ? now : 0);
	fib4_front_paint(fib, index, 1);
	if (now & FIB_CHILD)
		fib->owner[index].children++;
	else
		fib->owner[index].children--;
}

/* The answer for a /24. */
static uint32_t entry_of(const struct fib4 *fib, uint32_t addr)
{
	uint64_t word =
		__atomic_load_n(&fib->root[addr >> (32 - FIB4_ROOT_BITS)], __ATOMIC_ACQUIRE);
	uint32_t at = fib4_answer_at(word, addr >> 8 & (FIB4_SLOTS - 1));

	return __atomic_load_n(&fib->nodes.blocks.base[at], __ATOMIC_ACQUIRE);
}

static int reserve(struct fib4 *fib, uint32_t addr)
{
	int rc = fib_node_reserve(&fib->nodes, fib->count);

	fib4_front_prefetch(&fib->front, addr);
	return rc ? rc : fib4_front_reserve(&fib->front, fib->count);
}

/* A route of up to 24 bits: its /19s have other answers now. */
static void paint(struct fib4 *fib, uint32_t addr, unsigned len)
{
	unsigned beyond = len < FIB4_ROOT_BITS ? FIB4_ROOT_BITS - len : 0;

	fib4_front_paint(fib, addr >> (32 - FIB4_ROOT_BITS) >> beyond << beyond, 1u << beyond);
}

int fib4_set(struct fib4 *fib, uint32_t addr, unsigned len, uint32_t nh, struct ho_err *err)
{
	bool added;
	int rc;

	if (len > 32)
		return ho_err_set(err, -EINVAL, "prefix length %u: IPv4 has 0 to 32", len);
	if (nh == 0 || nh > FIB_NH_MAX)
		return ho_err_set(err, -EINVAL, "next hop %u: it must be 1 to %u", nh, FIB_NH_MAX);
	rc = reserve(fib, addr);
	if (rc)
		return ho_err_set(err, rc, "no room for another IPv4 route: %s", ho_strerror(rc));
	if (len <= FIB4_ROOT_BITS) {
		uint32_t at = upper_at(addr, len);

		added = fib->upper[at] == 0;
		fib->upper[at] = nh;
		set_cover(fib, at, nh);
		paint(fib, addr, len);
	} else if (len <= 24) {
		added = put_owned(fib, addr, len, nh);
		rebuild(fib, addr >> (32 - FIB4_ROOT_BITS), FIB4_SLOTS, 0);
		paint(fib, addr, len);
	} else {
		uint8_t last = (uint8_t)addr;
		uint32_t was = entry_of(fib, addr);

		put_entry(fib, addr, was,
			  fib_node_set(&fib->nodes, was, &last, len - 24, nh, &added));
	}
	fib->count += added;
	fib_pool_commit(&fib->nodes.blocks);
	return 0;
}

int fib4_del(struct fib4 *fib, uint32_t addr, unsigned len)
{
	int rc;

	if (len > 32)
		return -EINVAL;
	if (!fib4_get(fib, addr, len))
		return -ENOENT;
	rc = reserve(fib, addr);
	if (rc)
		return rc;
	if (len <= FIB4_ROOT_BITS) {
		uint32_t at = upper_at(addr, len);

		fib->upper[at] = 0;
		set_cover(fib, at, cover_above(fib, at));
		paint(fib, addr, len);
	} else if (len <= 24) {
		take_owned(fib, addr, len);
		rebuild(fib, addr >> (32 - FIB4_ROOT_BITS), FIB4_SLOTS, 0);
		paint(fib, addr, len);
	} else {
		uint8_t last = (uint8_t)addr;
		uint32_t was = entry_of(fib, addr);

		put_entry(fib, addr, was, fib_node_del(&fib->nodes, was, &last, len - 24));
	}
	fib->count--;
	fib_pool_commit(&fib->nodes.blocks);
	fib_pool_commit(&fib->nodes.routes);
	return 0;
}

uint32_t fib4_get(const struct fib4 *fib, uint32_t addr, unsigned len)
{
	uint8_t last = (uint8_t)addr;
	const struct fib4_owner *o;
	unsigned pos;

	if (len > 32)
		return 0;
	if (len <= FIB4_ROOT_BITS)
		return fib->upper[upper_at(addr, len)];
	if (len > 24)
		return fib_node_get(&fib->nodes, entry_of(fib, addr), &last, len - 24);
	o = &fib->owner[addr >> (32 - FIB4_ROOT_BITS)];
	pos = owner_pos(addr, len);
	return o->present >> pos & 1 ? fib->nodes.routes.base[o->nhs + owner_rank(o, pos)] : 0;
}

uint32_t fib4_lookup(const struct fib4 *fib, uint32_t addr)
{
	uint8_t last = (uint8_t)addr;

	return fib_node_lookup(fib->nodes.blocks.base, entry_of(fib, addr), &last);
}

void fib4_lookup_bulk(const struct fib4 *fib, const uint32_t *addrs, uint32_t *nh, unsigned n)
{
	fib->bulk(fib, addrs, nh, n);
}

struct walk4 {
	int (*fn)(void *ctx, uint32_t addr, unsigned len, uint32_t nh);
	void *ctx;
};

static int walk_deep(void *ctx, const uint8_t *key, unsigned len, uint32_t nh)
{
	struct walk4 *w = ctx;

	return w->fn(w->ctx, pk_load32(key), len, nh);
}

static int walk_owner(const struct fib4 *fib, uint32_t index, struct walk4 *w, unsigned pos)
{
	const struct fib4_owner *o = &fib->owner[index];
	unsigned len = 31 - (unsigned)__builtin_clz(pos);
	uint32_t addr = index << (32 - FIB4_ROOT_BITS);
	int rc = 0;

	addr |= (pos - (1u << len)) << (32 - FIB4_ROOT_BITS - len);
	if (o->present >> pos & 1)
		rc = w->fn(w->ctx, addr, FIB4_ROOT_BITS + len,
			   fib->nodes.routes.base[o->nhs + owner_rank(o, pos)]);
	if (!rc && len == 24 - FIB4_ROOT_BITS) {
		uint8_t key[4];

		pk_store32(key, addr);
		return fib_node_walk(&fib->nodes, entry_of(fib, addr), key, 3, walk_deep, w);
	}
	for (unsigned side = 0; !rc && side < 2; side++)
		rc = walk_owner(fib, index, w, 2 * pos + side);
	return rc;
}

static int walk_upper(const struct fib4 *fib, struct walk4 *w, uint32_t at)
{
	unsigned len = 31 - (unsigned)__builtin_clz(at);
	int rc = 0;

	if (fib->upper[at])
		rc = w->fn(w->ctx, (uint32_t)((uint64_t)(at - (1u << len)) << (32 - len)), len,
			   fib->upper[at]);
	if (len == FIB4_ROOT_BITS) {
		const struct fib4_owner *o = &fib->owner[at - FIB4_ROOTS];

		for (unsigned side = 2; !rc && side < 4 && (o->present || o->children); side++)
			rc = walk_owner(fib, at - FIB4_ROOTS, w, side);
		return rc;
	}
	for (unsigned side = 0; !rc && side < 2; side++)
		rc = walk_upper(fib, w, 2 * at + side);
	return rc;
}

int fib4_walk(const struct fib4 *fib,
	      int (*fn)(void *ctx, uint32_t addr, unsigned len, uint32_t nh), void *ctx)
{
	struct walk4 w = { fn, ctx };

	return walk_upper(fib, &w, 1);
}

size_t fib4_count(const struct fib4 *fib)
{
	return fib->count;
}

size_t fib4_memory_bytes(const struct fib4 *fib)
{
	return sizeof(*fib) + ROOT_BYTES + OWNER_BYTES + UPPER_BYTES +
	       fib4_front_bytes(&fib->front) + (fib->same + 1) * sizeof(uint32_t) +
	       fib_pool_bytes(&fib->nodes.blocks) + fib_pool_bytes(&fib->nodes.routes);
}
