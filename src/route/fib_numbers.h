/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of one byte for the next hops that are in use in many places, so that a reader's table
 * can have a byte for each place. 0 is "no route". A next hop gets a number when it is asked for
 * while one is free. One that is no longer used anywhere keeps its number until another next hop
 * needs it, and then a grace period passes in between: a reader may have read the number, but not
 * yet what it stands for.
 */
#ifndef HOLDOFF_ROUTE_FIB_NUMBERS_H
#define HOLDOFF_ROUTE_FIB_NUMBERS_H

#include <stdbool.h>

#include "route/fib.h"

#define FIB_NUMBERS     256u
#define FIB_NUMBERS_END 240u /* next hops have 1 to 239; the rest is the owner's */
#define FIB_NUMBER_NONE 255u

struct fib_numbers {
	uint32_t answer[FIB_NUMBERS]; /* for readers: the next hop; of the owner's: the owner's */
	uint32_t uses[FIB_NUMBERS];
	uint8_t hash[1024]; /* numbers by next hop, open addressing, 0: empty */
	uint64_t free[FIB_NUMBERS / 64];
	uint64_t resting[FIB_NUMBERS / 64]; /* until their grace period is over */
	unsigned unused;                    /* numbers of next hops that have no use */
	bool is_resting, rested;            /* rested: set by any thread */
	const struct fib_reclaim *reclaim;
	struct fib_deferred deferred;
};

/* Must not move afterwards. reclaim may be NULL. */
void fib_numbers_init(struct fib_numbers *n, const struct fib_reclaim *reclaim);
/* Between two updates: makes numbers free if there are none but some without a use. */
void fib_numbers_refill(struct fib_numbers *n);
/* The number of a next hop, FIB_NUMBER_NONE if all are taken. 0 for 0. */
unsigned fib_numbers_of(struct fib_numbers *n, uint32_t nh);
/* A number below FIB_NUMBERS_END is used in `by` more (or, negative, fewer) places. */
void fib_numbers_use(struct fib_numbers *n, unsigned number, int by);

#endif
