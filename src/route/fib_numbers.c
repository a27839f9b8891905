// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib_numbers.h"

#include <assert.h>
#include <string.h>

#include "base/compiler.h"

#define HASH_BITS  10
#define HASH_SLOTS (1u << HASH_BITS)

static_assert(sizeof(((struct fib_numbers *)0)->hash) == HASH_SLOTS, "a slot for each hash");

static unsigned hash_of(uint32_t nh)
{
	return nh * 0x9e3779b1u >> (32 - HASH_BITS);
}

/* Where a next hop is or would be. */
static unsigned find(const struct fib_numbers *n, uint32_t nh)
{
	unsigned at = hash_of(nh);

	while (n->hash[at] && n->answer[n->hash[at]] != nh)
		at = (at + 1) % HASH_SLOTS;
	return at;
}

static bool any_free(const struct fib_numbers *n)
{
	return n->free[0] | n->free[1] | n->free[2] | n->free[3];
}

void fib_numbers_init(struct fib_numbers *n, const struct fib_reclaim *reclaim)
{
	memset(n, 0, sizeof(*n));
	n->reclaim = reclaim;
	for (unsigned number = 1; number < FIB_NUMBERS_END; number++)
		n->free[number / 64] |= 1ull << number % 64;
}

static void rested(struct fib_deferred *d)
{
	struct fib_numbers *n = HO_CONTAINER_OF(d, struct fib_numbers, deferred);

	__atomic_store_n(&n->rested, true, __ATOMIC_RELEASE);
}

static void wake(struct fib_numbers *n)
{
	for (unsigned w = 0; w < FIB_NUMBERS / 64; w++) {
		n->free[w] |= n->resting[w];
		n->resting[w] = 0;
	}
	n->is_resting = false;
	__atomic_store_n(&n->rested, false, __ATOMIC_RELAXED);
}

void fib_numbers_refill(struct fib_numbers *n)
{
	if (ho_likely(any_free(n)))
		return;
	if (n->is_resting) {
		if (__atomic_load_n(&n->rested, __ATOMIC_ACQUIRE))
			wake(n);
		return;
	}
	if (n->unused == 0)
		return;
	memset(n->hash, 0, sizeof(n->hash));
	for (unsigned number = 1; number < FIB_NUMBERS_END; number++) {
		if (n->uses[number])
			n->hash[find(n, n->answer[number])] = (uint8_t)number;
		else
			n->resting[number / 64] |= 1ull << number % 64;
	}
	n->unused = 0;
	n->is_resting = true;
	if (!n->reclaim) {
		wake(n);
		return;
	}
	n->deferred.done = rested;
	n->reclaim->defer(n->reclaim->ctx, &n->deferred);
}

unsigned fib_numbers_of(struct fib_numbers *n, uint32_t nh)
{
	unsigned at, number;

	if (nh == 0)
		return 0;
	at = find(n, nh);
	if (ho_likely(n->hash[at]))
		return n->hash[at];
	for (unsigned w = 0; w < FIB_NUMBERS / 64; w++) {
		if (!n->free[w])
			continue;
		number = w * 64 + (unsigned)__builtin_ctzll(n->free[w]);
		n->free[w] &= n->free[w] - 1;
		n->unused++;
		/* Before any place that readers see has the number. */
		__atomic_store_n(&n->answer[number], nh, __ATOMIC_RELEASE);
		n->hash[at] = (uint8_t)number;
		return number;
	}
	return FIB_NUMBER_NONE;
}

void fib_numbers_use(struct fib_numbers *n, unsigned number, int by)
{
	if (number == 0)
		return;
	n->unused -= n->uses[number] == 0;
	n->uses[number] += (uint32_t)by;
	n->unused += n->uses[number] == 0;
}
