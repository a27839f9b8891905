// SPDX-License-Identifier: BSD-2-Clause
/* The writer's side of what bulk lookups of IPv4 read first. */
#include "route/fib4_front.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "route/fib4_impl.h"

#define TOP_BYTES     (FIB4_FRONTS * sizeof(uint32_t))
#define BLOCK_UNITS   ((uint32_t)(FIB4_FRONT_SLOTS / sizeof(uint32_t)) + FIB4_FRONT_LOCALS + 1)
#define ROOTS_A_FRONT (FIB4_ROOTS / FIB4_FRONTS)

/* A block: the bytes of a /16 and the entries behind them. */
struct block {
	uint8_t byte[FIB4_FRONT_SLOTS];
	uint32_t entry[FIB4_FRONT_LOCALS];
	uint32_t used; /* entries; for the writer */
};

static_assert(sizeof(struct block) == BLOCK_UNITS * sizeof(uint32_t) &&
		      BLOCK_UNITS % FIB_POOL_LINE == 0,
	      "a block is whole lines");

int fib4_front_init(struct fib4_front *front, const struct fib_reclaim *reclaim)
{
	uint8_t *shared;

	fib_numbers_init(&front->numbers, reclaim);
	for (unsigned number = FIB4_FRONT_LOCAL; number < FIB_NUMBERS; number++)
		front->numbers.answer[number] = FIB_CHILD | number;
	front->top = fib_map(TOP_BYTES);
	if (!front->top ||
	    fib_pool_init(&front->blocks, FIB4_FRONT_SHARED / sizeof(uint32_t), reclaim))
		return -ENOMEM;
	shared = (uint8_t *)front->blocks.base;
	for (unsigned number = 0; number < FIB_NUMBERS; number++)
		memset(shared + number * FIB4_FRONT_SLOTS, (int)number, FIB4_FRONT_SLOTS);
	return 0;
}

void fib4_front_exit(struct fib4_front *front)
{
	fib_pool_exit(&front->blocks);
	fib_unmap(front->top, TOP_BYTES);
}

int fib4_front_reserve(struct fib4_front *front, size_t count)
{
	/* One for each /16 with a longer route: a new cover can tell apart what was the same all
	 * over before. */
	size_t blocks = HO_MIN(count + 1, (size_t)FIB4_FRONTS);

	fib_numbers_refill(&front->numbers);
	return fib_pool_reserve(&front->blocks, blocks * BLOCK_UNITS);
}

size_t fib4_front_bytes(const struct fib4_front *front)
{
	return TOP_BYTES + FIB4_FRONT_SHARED + fib_pool_bytes(&front->blocks);
}

/* Of a shared one only the bytes may be looked at. */
static struct block *block_at(struct fib4_front *front, uint32_t at)
{
	return (struct block *)(void *)((char *)front->blocks.base + at);
}

static bool is_shared(uint32_t at)
{
	return at < FIB4_FRONT_SHARED;
}

/* n numbers become others; n is a multiple of 8. */
static void count(struct fib_numbers *numbers, const uint8_t *old, const uint8_t *now, unsigned n)
{
	for (unsigned i = 0; i < n; i += 8) {
		if (!memcmp(old + i, now + i, 8))
			continue;
		for (unsigned k = i; k < i + 8; k++) {
			if (old[k] == now[k])
				continue;
			if (old[k] < FIB_NUMBERS_END)
				fib_numbers_use(numbers, old[k], -1);
			if (now[k] < FIB_NUMBERS_END)
				fib_numbers_use(numbers, now[k], 1);
		}
	}
}

/* Calls for each run of a /19: its slots in the /16 and its entry. */
#define for_each_run(fib, index, slot, after, value)                                            \
	for (uint64_t word_ = (fib)->root[index], left_ = (word_ & 0xffffffff) | 1, run_ = 0;   \
	     left_ &&                                                                           \
	     ((slot) = (index) % ROOTS_A_FRONT * FIB4_SLOTS + (unsigned)__builtin_ctzll(left_), \
	     left_ &= left_ - 1,                                                                \
	     (after) = (index) % ROOTS_A_FRONT * FIB4_SLOTS +                                   \
		       (left_ ? (unsigned)__builtin_ctzll(left_) : FIB4_SLOTS),                 \
	     (value) = (fib)->nodes.blocks.base[(word_ >> 32) + run_++], true);)

/* The number among a block's entries, FIB_NUMBER_NONE if it is not there and cannot be added. */
static unsigned local_number(struct block *b, uint32_t value)
{
	for (unsigned i = 0; i < b->used; i++) {
		if (b->entry[i] == value)
			return FIB4_FRONT_LOCAL + i;
	}
	if (b->used == FIB4_FRONT_LOCALS)
		return FIB_NUMBER_NONE;
	__atomic_store_n(&b->entry[b->used], value, __ATOMIC_RELEASE);
	return FIB4_FRONT_LOCAL + b->used++;
}

static void expand(struct fib4 *fib, uint32_t at, struct block *b)
{
	unsigned slot, after, number;
	uint32_t value;

	for (uint32_t i = at * ROOTS_A_FRONT; i < (at + 1) * ROOTS_A_FRONT; i++) {
		for_each_run(fib, i, slot, after, value)
		{
			number = value & FIB_CHILD ? FIB_NUMBER_NONE
						   : fib_numbers_of(&fib->front.numbers, value);
			if (number == FIB_NUMBER_NONE)
				number = local_number(b, value);
			memset(b->byte + slot, (int)number, after - slot);
		}
	}
}

/* From here on readers find the bytes at `to`. */
static void move(struct fib4_front *front, uint32_t at, uint32_t to)
{
	uint32_t from = front->top[at];

	count(&front->numbers, block_at(front, from)->byte, block_at(front, to)->byte,
	      FIB4_FRONT_SLOTS);
	__atomic_store_n(&front->top[at], to, __ATOMIC_RELEASE);
	if (!is_shared(from))
		fib_pool_retire(&front->blocks, from / sizeof(uint32_t), BLOCK_UNITS);
}

static void share(struct fib4_front *front, uint32_t at, unsigned number)
{
	uint32_t to = number * FIB4_FRONT_SLOTS, from = front->top[at];

	if (from == to)
		return;
	if (is_shared(from)) {
		unsigned old = from / FIB4_FRONT_SLOTS;

		if (old < FIB_NUMBERS_END)
			fib_numbers_use(&front->numbers, old, -(int)FIB4_FRONT_SLOTS);
		if (number < FIB_NUMBERS_END)
			fib_numbers_use(&front->numbers, number, FIB4_FRONT_SLOTS);
		__atomic_store_n(&front->top[at], to, __ATOMIC_RELEASE);
	} else {
		move(front, at, to);
	}
}

static bool is_uniform(const uint8_t *byte)
{
	return byte[0] < FIB4_FRONT_LOCAL && byte[0] == byte[FIB4_FRONT_SLOTS / 2] &&
	       !memcmp(byte, byte + 1, FIB4_FRONT_SLOTS - 1);
}

/* Makes a /16 anew. */
static void rebuild(struct fib4 *fib, uint32_t at)
{
	struct fib4_front *front = &fib->front;
	struct block now = { .used = 0 };
	uint32_t to;

	expand(fib, at, &now);
	if (is_uniform(now.byte)) {
		share(front, at, now.byte[0]);
		return;
	}
	to = fib_pool_alloc(&front->blocks, BLOCK_UNITS) * (uint32_t)sizeof(uint32_t);
	*block_at(front, to) = now;
	move(front, at, to);
}

/*
 * The number that the /24s of a run can get in a block as it is; FIB_NUMBER_NONE: a new block is
 * needed. An entry may change if it was a node, since a node belongs to one /24.
 */
static unsigned patched_number(struct fib4_front *front, struct block *b, unsigned slot,
			       uint32_t value)
{
	unsigned number = FIB_NUMBER_NONE;

	if (!(value & FIB_CHILD))
		number = fib_numbers_of(&front->numbers, value);
	if (ho_likely(number != FIB_NUMBER_NONE))
		return number;
	number = b->byte[slot];
	if (value & FIB_CHILD && number >= FIB4_FRONT_LOCAL && number < FIB_NUMBER_NONE &&
	    b->entry[number - FIB4_FRONT_LOCAL] & FIB_CHILD) {
		__atomic_store_n(&b->entry[number - FIB4_FRONT_LOCAL], value, __ATOMIC_RELEASE);
		return number;
	}
	return local_number(b, value);
}

/* A few /19s of a /16 have changed; false: its block cannot be kept. */
static bool patch(struct fib4 *fib, uint32_t first, uint32_t n)
{
	struct fib4_front *front = &fib->front;
	struct block *b = block_at(front, front->top[first / ROOTS_A_FRONT]);
	uint8_t *byte = b->byte, now[FIB4_FRONT_SLOTS];
	uint32_t value;
	unsigned from = first % ROOTS_A_FRONT * FIB4_SLOTS, slots = n * FIB4_SLOTS, slot, after;

	for (uint32_t i = first; i < first + n; i++) {
		for_each_run(fib, i, slot, after, value)
		{
			unsigned number = patched_number(front, b, slot, value);

			if (number == FIB_NUMBER_NONE)
				return false;
			memset(now + slot, (int)number, after - slot);
		}
	}
	count(&front->numbers, byte + from, now + from, slots);
	for (slot = from; slot < from + slots; slot += 8) {
		if (!memcmp(byte + slot, now + slot, 8))
			continue;
		for (unsigned k = slot; k < slot + 8; k++) {
			if (byte[k] != now[k])
				__atomic_store_n(&byte[k], now[k], __ATOMIC_RELEASE);
		}
	}
	return true;
}

/* The number of a /16 that has one answer for all of it, or FIB_NUMBERS. */
static unsigned whole(struct fib4 *fib, uint32_t at)
{
	const uint64_t *word = &fib->root[at * ROOTS_A_FRONT];

	if (word[0] & 0xffffffff)
		return FIB_NUMBERS;
	for (unsigned i = 1; i < ROOTS_A_FRONT; i++) {
		if (word[i] != word[0])
			return FIB_NUMBERS;
	}
	return fib_numbers_of(&fib->front.numbers, (uint32_t)(word[0] >> 32));
}

static void paint_front(struct fib4 *fib, uint32_t first, uint32_t n)
{
	struct fib4_front *front = &fib->front;
	uint32_t at = first / ROOTS_A_FRONT;
	unsigned number = whole(fib, at);

	if (number < FIB_NUMBERS) {
		share(front, at, number);
		return;
	}
	if (is_shared(front->top[at]) || !patch(fib, first, n))
		rebuild(fib, at);
}

void fib4_front_paint(struct fib4 *fib, uint32_t first, uint32_t n)
{
	uint32_t step = HO_MIN(n, ROOTS_A_FRONT);

	for (uint32_t i = 0; i < n; i += step)
		paint_front(fib, first + i, step);
	fib_pool_commit(&fib->front.blocks);
}

void fib4_front_node(struct fib4 *fib, uint32_t addr, uint32_t entry)
{
	struct fib4_front *front = &fib->front;
	uint32_t at = fib4_front_at(front->top, addr);
	unsigned number = ((const uint8_t *)front->blocks.base)[at];

	if (number >= FIB4_FRONT_LOCAL && number < FIB_NUMBER_NONE)
		__atomic_store_n(fib4_front_local(front, at, addr, number), entry,
				 __ATOMIC_RELEASE);
}
