/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a FIB's blocks live: one range of addresses that never moves, so that a block is named by
 * a 32-bit index and a reader needs no more than the base. Units of four bytes. One thread
 * allocates and retires; a block retired while readers run comes back after a grace period.
 *
 * Blocks of 13 units or more are whole cache lines. Freed blocks are kept by size; they are neither
 * split nor merged, but when the last block is freed the pool is as new.
 */
#ifndef HOLDOFF_ROUTE_FIB_POOL_H
#define HOLDOFF_ROUTE_FIB_POOL_H

#include <stdbool.h>

#include "route/fib.h"

#define FIB_POOL_BLOCK_MAX 1024u /* units */
#define FIB_POOL_LINE      16u   /* units, a cache line */
#define FIB_POOL_CLASSES   (FIB_POOL_BLOCK_MAX / 2 + 1)

struct fib_batch;

struct fib_pool {
	uint32_t *base;
	uint32_t fixed;             /* units at the beginning that are the owner's, zero at first */
	uint32_t top;               /* units above this have never been used */
	uint32_t committed;         /* units that may be touched */
	uint32_t limit;             /* units of address space */
	uint32_t small, small_left; /* what small blocks are cut from: where it goes on, units */
	uint32_t live;              /* units in allocated blocks */
	uint32_t waiting;           /* units in retired blocks */
	uint32_t free[FIB_POOL_CLASSES]; /* heads of lists through the blocks' first unit */
	const struct fib_reclaim *reclaim;
	struct fib_batch *filling; /* retired, not handed over yet; the first has room */
	struct fib_batch *spare;
	struct fib_batch *ready; /* after their grace period: pushed by any thread */
};

/* The pool must not move afterwards. reclaim may be NULL. */
int fib_pool_init(struct fib_pool *p, uint32_t fixed, const struct fib_reclaim *reclaim);
void fib_pool_exit(struct fib_pool *p);

/* Makes sure that `units` can be allocated without failure, the blocks' sizes rounded up to what
 * they take. -ENOMEM, -ENOSPC. */
int fib_pool_reserve(struct fib_pool *p, size_t units);
/* Never fails after a fib_pool_reserve of at least as much. 1 to FIB_POOL_BLOCK_MAX units. */
uint32_t fib_pool_alloc(struct fib_pool *p, uint32_t units);
/* Of a block that no reader has ever seen, or when there are none. */
void fib_pool_free(struct fib_pool *p, uint32_t block, uint32_t units);
/* Of a block that readers may still look at. It may still be reachable until fib_pool_commit. */
void fib_pool_retire(struct fib_pool *p, uint32_t block, uint32_t units);
/* The end of an update: nothing that was retired can be reached any more by a new lookup. */
void fib_pool_commit(struct fib_pool *p);
/* Waits for a grace period, so that all retired blocks are free. */
void fib_pool_flush(struct fib_pool *p);

/* Of the blocks, those free or waiting included; not of the fixed part. */
size_t fib_pool_bytes(const struct fib_pool *p);

/* Zeroed memory in huge pages where they can be had, on a boundary of 2 MB. NULL: no memory. */
void *fib_map(size_t bytes);
void fib_unmap(void *map, size_t bytes);

#endif
