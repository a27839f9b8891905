/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The buffer arena: one block of memory cut into equal buffers, and the pool of free ones.
 *
 * One arena per process is shared by all ports, so that moving a packet between ports moves a slot
 * and no bytes. It lives in a memfd, on 2 MB huge pages where the system has them free: the same
 * memory can be an AF_XDP UMEM, a memif region and a DMA area.
 *
 * The stride between buffers is an odd number of cache lines. With a power of two all headers fall
 * into a few cache sets and touching a header costs ten times as much.
 *
 * Each worker has a pk_cache of its own: allocation and freeing touch shared memory only once in
 * PK_CACHE_BULK buffers. All buffers are accounted for: pk_arena_missing() is 0 at exit or there is
 * a bug.
 */
#ifndef HOLDOFF_PACKET_ARENA_H
#define HOLDOFF_PACKET_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "packet/slot.h"

#define PK_STRIDE_BYTES   2112 /* 33 cache lines */
#define PK_HEADROOM_BYTES 256  /* what AF_XDP keeps before a frame (XDP_PACKET_HEADROOM) */
/* Data bytes of a buffer with the default stride and headroom. */
#define PK_ROOM_BYTES (PK_STRIDE_BYTES - PK_HEADROOM_BYTES)

#define PK_CACHE_SIZE 512
#define PK_CACHE_BULK 256

struct pk_arena_config {
	uint32_t buffers;      /* how many; 0 = 65536 */
	uint32_t stride_bytes; /* 0 = PK_STRIDE_BYTES; an odd multiple of 64 */
	bool no_huge;          /* do not even try huge pages */
	bool sparse;           /* pages come when they are touched: for the lab, where a ring is
				  often far larger than what a run needs. No other process can
				  map it: there is no memfd */
	void *memory; /* sparse: these pk_arena_bytes() of the caller's, who also frees them, rather
		       than a mapping of its own. NULL = a mapping */
};

struct pk_arena {
	bool lent;             /* the memory is the caller's */
	uint8_t *base;         /* of buffer 0 */
	uint32_t stride_bytes; /* from one buffer to the next */
	uint32_t buffers;      /* in all */
	size_t size_bytes;     /* of the mapping */
	int memfd;             /* sealed against shrinking; others may map it. -1 if sparse */
	bool huge;             /* on huge pages */
	struct pk_pool *pool;  /* the free buffers */
};

/*
 * Maps the memory and makes all buffers free. On success *out is the caller's, to be destroyed with
 * pk_arena_destroy() after every cache and port that uses it. -EINVAL for an impossible
 * configuration, -ENOMEM when neither huge nor normal pages suffice.
 */
int pk_arena_create(const struct pk_arena_config *config, struct pk_arena **out,
		    struct ho_err *err);

/* The length of the mapping that pk_arena_create would make. */
size_t pk_arena_bytes(const struct pk_arena_config *config);

/* NULL is allowed. */
void pk_arena_destroy(struct pk_arena *arena);

/* Buffers that are neither free nor in a cache: in the hands of a port or a user. */
uint32_t pk_arena_missing(struct pk_arena *arena);

/* First byte of buffer buf. */
static inline uint8_t *pk_buffer(const struct pk_arena *arena, uint32_t buf)
{
	return arena->base + (size_t)buf * arena->stride_bytes;
}

/* First data byte of a slot. */
static inline uint8_t *pk_data(const struct pk_arena *arena, const struct pk_slot *slot)
{
	return pk_buffer(arena, slot->buf) + slot->off;
}

/* Which buffer an address (offset from arena->base) lies in. */
static inline uint32_t pk_buffer_at(const struct pk_arena *arena, size_t offset)
{
	return (uint32_t)(offset / arena->stride_bytes);
}

/* A worker's stock of free buffers. Used by one thread at a time. */
struct pk_cache {
	uint32_t n; /* free ones in buf[0..n) */
	struct pk_arena *arena;
	uint32_t buf[PK_CACHE_SIZE];
	uint64_t alloc_failed; /* allocations that found the pool empty: a drop's cause */
} HO_CACHE_ALIGNED;

int pk_cache_create(struct pk_arena *arena, struct pk_cache **out, struct ho_err *err);

/* Gives its buffers back to the pool. NULL is allowed. */
void pk_cache_destroy(struct pk_cache *cache);

/* Slow path of pk_alloc: fills the cache up to at least want, as far as the pool goes. */
void pk_cache_refill(struct pk_cache *cache, uint32_t want);
/* Slow path of pk_free: hands PK_CACHE_BULK or more buffers to the pool. */
void pk_cache_spill(struct pk_cache *cache);

#ifdef HO_POOL_CHECK
/* Aborts when a buffer is allocated or freed twice. */
void pk_check_alloc(struct pk_arena *arena, const uint32_t *bufs, uint32_t n);
void pk_check_free(struct pk_arena *arena, const uint32_t *bufs, uint32_t n);
#else
#define pk_check_alloc(arena, bufs, n) ((void)0)
#define pk_check_free(arena, bufs, n)  ((void)0)
#endif

/* Takes up to n (at most PK_CACHE_BULK) buffers; returns how many, less than n only when the pool
 * is empty. */
static inline uint32_t pk_alloc(struct pk_cache *cache, uint32_t *bufs, uint32_t n)
{
	if (ho_unlikely(cache->n < n)) {
		pk_cache_refill(cache, n);
		if (ho_unlikely(cache->n < n)) {
			cache->alloc_failed++;
			n = cache->n;
		}
	}
	cache->n -= n;
	for (uint32_t i = 0; i < n; i++)
		bufs[i] = cache->buf[cache->n + i];
	pk_check_alloc(cache->arena, bufs, n);
	return n;
}

/* Gives back n (at most PK_CACHE_BULK) buffers. */
static inline void pk_free(struct pk_cache *cache, const uint32_t *bufs, uint32_t n)
{
	pk_check_free(cache->arena, bufs, n);
	if (ho_unlikely(cache->n + n > PK_CACHE_SIZE))
		pk_cache_spill(cache);
	for (uint32_t i = 0; i < n; i++)
		cache->buf[cache->n + i] = bufs[i];
	cache->n += n;
}

/* Gives back the buffers of n slots (at most PK_CACHE_BULK). */
static inline void pk_free_slots(struct pk_cache *cache, const struct pk_slot *slots, uint32_t n)
{
	if (ho_unlikely(cache->n + n > PK_CACHE_SIZE))
		pk_cache_spill(cache);
	for (uint32_t i = 0; i < n; i++) {
		pk_check_free(cache->arena, &slots[i].buf, 1);
		cache->buf[cache->n + i] = slots[i].buf;
	}
	cache->n += n;
}

/*
 * Copies `bytes` bytes at `frame` into fresh buffers as one frame of at most `max` slots. Returns
 * the slots used, 0 when buffers or slots do not suffice (nothing is kept then).
 */
unsigned pk_frame_from_bytes(struct pk_cache *cache, const void *frame, uint32_t bytes,
			     struct pk_slot *slots, unsigned max);

/* Copies a frame of n slots to `out` (at most max bytes); returns the frame's length in bytes. */
uint32_t pk_frame_to_bytes(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
			   void *out, uint32_t max);

#endif
