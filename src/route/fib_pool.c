// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib_pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"

#define HUGE_PAGE   ((size_t)2 << 20)
#define LIMIT_UNITS (1u << 28)             /* 1 GB of addresses, no memory */
#define STEP_UNITS  (HUGE_PAGE / 4)        /* by which the usable part grows */
#define TRIM_UNITS  ((uint32_t)STEP_UNITS) /* an empty pool gives back what is above it */
#define BATCH       500
#define SMALL_MAX   12u                   /* units; larger blocks are whole cache lines */
#define SMALL_CHUNK (16u * FIB_POOL_LINE) /* what small blocks are cut from */

struct fib_batch {
	struct fib_deferred deferred;
	struct fib_pool *pool;
	struct fib_batch *next;
	unsigned n;
	struct {
		uint32_t block, units;
	} retired[BATCH];
};

/* A mapping on a 2 MB boundary: only such is backed by huge pages from its beginning. */
static void *map_aligned(size_t bytes, int prot)
{
	size_t with_slack = bytes + HUGE_PAGE;
	char *map =
		mmap(NULL, with_slack, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at;

	if (map == MAP_FAILED)
		return NULL;
	at = (char *)HO_ALIGN_UP((uintptr_t)map, HUGE_PAGE);
	if (at > map)
		munmap(map, (size_t)(at - map));
	munmap(at + bytes, (size_t)(map + with_slack - (at + bytes)));
	madvise(at, bytes, MADV_HUGEPAGE); /* advice: a kernel without is slower, not wrong */
	return at;
}

void *fib_map(size_t bytes)
{
	return map_aligned(HO_ALIGN_UP(bytes, HUGE_PAGE), PROT_READ | PROT_WRITE);
}

void fib_unmap(void *map, size_t bytes)
{
	if (map)
		munmap(map, HO_ALIGN_UP(bytes, HUGE_PAGE));
}

int fib_pool_init(struct fib_pool *p, uint32_t fixed, const struct fib_reclaim *reclaim)
{
	memset(p, 0, sizeof(*p));
	p->base = map_aligned((size_t)LIMIT_UNITS * 4, PROT_NONE);
	if (!p->base)
		return -ENOMEM;
	p->limit = LIMIT_UNITS;
	/* No block has index 0, the end of the free lists. */
	p->fixed = p->top = HO_ALIGN_UP(fixed + 1, 16);
	p->reclaim = reclaim;
	/* The owner may use the fixed part here and there. */
	if ((size_t)p->fixed * 4 > HUGE_PAGE)
		madvise((char *)p->base + HUGE_PAGE,
			(size_t)p->fixed * 4 / HUGE_PAGE * HUGE_PAGE - HUGE_PAGE, MADV_NOHUGEPAGE);
	if (fib_pool_reserve(p, 0)) {
		munmap(p->base, (size_t)LIMIT_UNITS * 4);
		p->base = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* What a block takes. Small nodes are read in one line then, and larger blocks in as few as can be.
 */
static uint32_t size_of(uint32_t units)
{
	return units <= SMALL_MAX ? HO_ALIGN_UP(units, 2u) : HO_ALIGN_UP(units, FIB_POOL_LINE);
}

static void push_ready(struct fib_deferred *d)
{
	struct fib_batch *b = HO_CONTAINER_OF(d, struct fib_batch, deferred);
	struct fib_pool *p = b->pool;

	b->next = __atomic_load_n(&p->ready, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&p->ready, &b->next, b, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

void fib_pool_exit(struct fib_pool *p)
{
	struct fib_batch *b;

	if (!p->base)
		return;
	if (p->reclaim)
		p->reclaim->barrier(p->reclaim->ctx);
	while ((b = p->ready)) {
		p->ready = b->next;
		free(b);
	}
	while ((b = p->filling)) {
		p->filling = b->next;
		free(b);
	}
	free(p->spare);
	munmap(p->base, (size_t)p->limit * 4);
	p->base = NULL;
}

/* Nothing is allocated: whole again, and what was big goes back to the system. */
static void start_over(struct fib_pool *p)
{
	size_t keep = HO_ALIGN_UP((size_t)p->fixed * 4, HUGE_PAGE);

	if (p->top > p->fixed + TRIM_UNITS && (size_t)p->committed * 4 > keep)
		madvise((char *)p->base + keep, (size_t)p->committed * 4 - keep, MADV_DONTNEED);
	memset(p->free, 0, sizeof(p->free));
	p->top = p->fixed;
	p->small = p->small_left = 0;
}

void fib_pool_free(struct fib_pool *p, uint32_t block, uint32_t units)
{
	uint32_t size = size_of(units);

	p->live -= size;
	p->base[block] = p->free[size / 2];
	p->free[size / 2] = block;
}

static void take_ready(struct fib_pool *p)
{
	struct fib_batch *b = __atomic_exchange_n(&p->ready, NULL, __ATOMIC_ACQUIRE);

	while (b) {
		struct fib_batch *next = b->next;

		for (unsigned i = 0; i < b->n; i++) {
			uint32_t size = size_of(b->retired[i].units);

			p->waiting -= size;
			p->live += size; /* fib_pool_free takes it off */
			fib_pool_free(p, b->retired[i].block, size);
		}
		free(b);
		b = next;
	}
}

static struct fib_batch *new_batch(struct fib_pool *p)
{
	struct fib_batch *b = malloc(sizeof(*b));

	if (b) {
		b->deferred.done = push_ready;
		b->pool = p;
		b->next = NULL;
		b->n = 0;
	}
	return b;
}

void fib_pool_retire(struct fib_pool *p, uint32_t block, uint32_t units)
{
	struct fib_batch *b = p->filling;

	if (!p->reclaim) {
		fib_pool_free(p, block, units);
		return;
	}
	if (b->n == BATCH) {
		b = p->spare ? p->spare : new_batch(p);
		p->spare = NULL;
		if (!b)
			return; /* out of memory: the block is lost until the table is destroyed */
		b->next = p->filling;
		p->filling = b;
	}
	b->retired[b->n].block = block;
	b->retired[b->n++].units = units;
	p->live -= size_of(units);
	p->waiting += size_of(units);
}

void fib_pool_commit(struct fib_pool *p)
{
	struct fib_batch *b = p->filling;

	if (p->live == 0 && p->waiting == 0 && p->top > p->fixed)
		start_over(p);
	if (!b || (!b->next && b->n < BATCH))
		return;
	/* All but one that has room. */
	p->filling = NULL;
	while (b) {
		struct fib_batch *next = b->next;

		if (b->n < BATCH && !p->filling) {
			b->next = NULL;
			p->filling = b;
		} else {
			p->reclaim->defer(p->reclaim->ctx, &b->deferred);
		}
		b = next;
	}
}

void fib_pool_flush(struct fib_pool *p)
{
	struct fib_batch *b = p->filling;

	if (!p->reclaim)
		return;
	p->filling = NULL;
	while (b) {
		struct fib_batch *next = b->next;

		p->reclaim->defer(p->reclaim->ctx, &b->deferred);
		b = next;
	}
	p->reclaim->barrier(p->reclaim->ctx);
	take_ready(p);
	fib_pool_commit(p);
}

static int reserve_batches(struct fib_pool *p)
{
	if (!p->filling)
		p->filling = new_batch(p);
	if (!p->spare)
		p->spare = new_batch(p);
	return p->filling && p->spare ? 0 : -ENOMEM;
}

int fib_pool_reserve(struct fib_pool *p, size_t units)
{
	size_t want = p->top + units + SMALL_CHUNK, grown;

	if (__atomic_load_n(&p->ready, __ATOMIC_RELAXED))
		take_ready(p);
	if (p->reclaim && ho_unlikely(!p->filling || !p->spare) && reserve_batches(p))
		return -ENOMEM;
	if (ho_likely(want < p->committed))
		return 0;
	if (want >= p->limit)
		return -ENOSPC;
	grown = HO_ALIGN_UP(want + 1, STEP_UNITS);
	if (mprotect(p->base, grown * 4, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	p->committed = (uint32_t)grown;
	return 0;
}

static uint32_t take_top(struct fib_pool *p, uint32_t units)
{
	uint32_t block = p->top;

	assert(block + units <= p->committed);
	p->top += units;
	return block;
}

uint32_t fib_pool_alloc(struct fib_pool *p, uint32_t units)
{
	uint32_t size = size_of(units), block = p->free[size / 2];

	assert(units && units <= FIB_POOL_BLOCK_MAX);
	p->live += size;
	if (block) {
		p->free[size / 2] = p->base[block];
		return block;
	}
	if (size > SMALL_MAX)
		return take_top(p, size);
	if (p->small_left < size) {
		if (p->small_left) {
			p->base[p->small] = p->free[p->small_left / 2];
			p->free[p->small_left / 2] = p->small;
		}
		p->small = take_top(p, SMALL_CHUNK);
		p->small_left = SMALL_CHUNK;
	}
	block = p->small;
	p->small += size;
	p->small_left -= size;
	return block;
}

size_t fib_pool_bytes(const struct fib_pool *p)
{
	return (size_t)(p->top - p->fixed) * 4;
}
