// SPDX-License-Identifier: BSD-2-Clause
#include "packet/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

#define HUGE_PAGE_BYTES (2UL << 20)
#define DEFAULT_BUFFERS 65536
#define MAX_BUFFERS     (16u << 20)

/*
 * The free buffers: a stack, since what was freed last is the likeliest to be in a cache. The lock
 * is taken once per PK_CACHE_BULK buffers.
 */
struct pk_pool {
	pthread_mutex_t lock;
	uint32_t n;      /* free ones in buf[0..n) */
	uint32_t caches; /* alive: pk_arena_missing() counts their stock through `cached` */
	struct pk_cache **cached; /* the caches, for accounting */
	uint8_t *state;           /* one byte a buffer, 1 = in use, under HO_POOL_CHECK */
	uint32_t buf[];
};

/* Memory of this process alone, given when it is touched, 2 MB at a time where the kernel can: a
 * short run in the lab would else spend more time in page faults than in anything else. */
static void *map_sparse(size_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return NULL;
	madvise(base, bytes, MADV_HUGEPAGE);
	return base;
}

/* A number from a file's line that begins with `key`; UINT64_MAX when there is none ("max"). */
static uint64_t number_in(const char *path, const char *key)
{
	uint64_t value = UINT64_MAX;
	FILE *f = fopen(path, "re");
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		if (sscanf(line + strlen(key), "%" SCNu64, &value) != 1)
			value = UINT64_MAX;
		break;
	}
	if (f)
		fclose(f);
	return value;
}

/* Bytes that could be had now, by this machine and by the control group that we see as the root.
 * Beyond them there is no error: the kernel would kill us, or somebody else. */
static uint64_t memory_available(void)
{
	uint64_t free_kb = number_in("/proc/meminfo", "MemAvailable:");
	uint64_t max = number_in("/sys/fs/cgroup/memory.max", "");
	uint64_t used = number_in("/sys/fs/cgroup/memory.current", "");
	/* Files that the group has cached are in `used`, and in nobody's way. */
	uint64_t cached = number_in("/sys/fs/cgroup/memory.stat", "inactive_file ");
	uint64_t active = number_in("/sys/fs/cgroup/memory.stat", "active_file ");
	uint64_t bytes = free_kb == UINT64_MAX ? UINT64_MAX : free_kb << 10;

	if (max == UINT64_MAX || used == UINT64_MAX || cached == UINT64_MAX || active == UINT64_MAX)
		return bytes;
	used -= HO_MIN(used, cached + active);
	return HO_MIN(bytes, max > used ? max - used : 0);
}

static void *map_memfd(size_t bytes, bool huge, int *fd_out)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0);
	int fd = memfd_create("holdoff-arena", flags);
	void *base;

	if (fd < 0)
		return NULL;
	if (ftruncate(fd, (off_t)bytes) < 0)
		goto fail;
	/* MAP_POPULATE on a huge-page memfd reserves the pages now: a later fault cannot kill us.
	 */
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (base == MAP_FAILED)
		goto fail;
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	*fd_out = fd;
	return base;
fail:
	close(fd);
	return NULL;
}

static uint32_t buffers_of(const struct pk_arena_config *config)
{
	return config && config->buffers ? config->buffers : DEFAULT_BUFFERS;
}

static uint32_t stride_of(const struct pk_arena_config *config)
{
	return config && config->stride_bytes ? config->stride_bytes : PK_STRIDE_BYTES;
}

size_t pk_arena_bytes(const struct pk_arena_config *config)
{
	return HO_ALIGN_UP((size_t)buffers_of(config) * stride_of(config), HUGE_PAGE_BYTES);
}

int pk_arena_create(const struct pk_arena_config *config, struct pk_arena **out, struct ho_err *err)
{
	uint32_t buffers = buffers_of(config), stride = stride_of(config);
	struct pk_arena *arena;
	struct pk_pool *pool;
	int rc = -ENOMEM;

	if (buffers > MAX_BUFFERS)
		return ho_err_set(err, -EINVAL, "%u packet buffers: at most %u are possible",
				  buffers, MAX_BUFFERS);
	if (stride % HO_CACHE_LINE || (stride / HO_CACHE_LINE) % 2 == 0 ||
	    stride < PK_HEADROOM_BYTES + 256 || stride > 65536)
		return ho_err_set(
			err, -EINVAL,
			"buffer stride of %u bytes: an odd multiple of 64 from 576 to 65472 "
			"is needed, so that headers spread over the cache",
			stride);
	arena = calloc(1, sizeof(*arena));
	pool = calloc(1, sizeof(*pool) + (size_t)buffers * sizeof(pool->buf[0]));
	if (!arena || !pool)
		goto fail;
	pthread_mutex_init(&pool->lock, NULL);
#ifdef HO_POOL_CHECK
	pool->state = calloc(buffers, 1);
	if (!pool->state)
		goto fail;
#endif
	arena->pool = pool;
	arena->stride_bytes = stride;
	arena->buffers = buffers;
	arena->size_bytes = pk_arena_bytes(config);
	arena->memfd = -1;
	if (config && config->sparse) {
		arena->lent = config->memory != NULL;
		arena->base = arena->lent ? config->memory : map_sparse(arena->size_bytes);
	} else if (!config || !config->no_huge) {
		arena->base = map_memfd(arena->size_bytes, true, &arena->memfd);
		arena->huge = arena->base != NULL;
		if (!arena->huge)
			ho_verbose("no %zu free huge pages of 2 MB: packet buffers use normal "
				   "pages ('sysctl vm.nr_hugepages=%zu' would provide them)",
				   arena->size_bytes / HUGE_PAGE_BYTES,
				   arena->size_bytes / HUGE_PAGE_BYTES);
	}
	if (!arena->base && !(config && config->sparse) && arena->size_bytes > memory_available()) {
		rc = ho_err_set(err, -ENOBUFS,
				"%zu MB for %u packet buffers, but only %" PRIu64
				" MB of memory are free; --buffers takes fewer",
				arena->size_bytes >> 20, buffers, memory_available() >> 20);
		goto fail;
	}
	if (!arena->base && !(config && config->sparse))
		arena->base = map_memfd(arena->size_bytes, false, &arena->memfd);
	if (!arena->base) {
		rc = -errno;
		ho_err_set(err, rc, "cannot map %zu MB for %u packet buffers: %s",
			   arena->size_bytes >> 20, buffers, ho_strerror(rc));
		goto fail;
	}
	pool->n = buffers;
	/* Lowest index on top, so that a small run touches the low end of the arena only. */
	for (uint32_t i = 0; i < buffers; i++)
		pool->buf[i] = buffers - 1 - i;
	*out = arena;
	return 0;
fail:
	if (pool)
		free(pool->state);
	free(pool);
	free(arena);
	return rc == -ENOMEM ? ho_err_set(err, rc, "out of memory for %u packet buffers", buffers)
			     : rc;
}

void pk_arena_destroy(struct pk_arena *arena)
{
	if (!arena)
		return;
	if (!arena->lent)
		munmap(arena->base, arena->size_bytes);
	if (arena->memfd >= 0)
		close(arena->memfd);
	pthread_mutex_destroy(&arena->pool->lock);
	free(arena->pool->cached);
	free(arena->pool->state);
	free(arena->pool);
	free(arena);
}

uint32_t pk_arena_missing(struct pk_arena *arena)
{
	struct pk_pool *pool = arena->pool;
	uint32_t have;

	pthread_mutex_lock(&pool->lock);
	have = pool->n;
	for (uint32_t i = 0; i < pool->caches; i++)
		have += pool->cached[i]->n;
	pthread_mutex_unlock(&pool->lock);
	return arena->buffers - have;
}

int pk_cache_create(struct pk_arena *arena, struct pk_cache **out, struct ho_err *err)
{
	struct pk_pool *pool = arena->pool;
	struct pk_cache *cache = aligned_alloc(HO_CACHE_LINE, sizeof(*cache));
	struct pk_cache **list;

	if (!cache)
		return ho_err_set(err, -ENOMEM, "out of memory for a buffer cache");
	memset(cache, 0, sizeof(*cache));
	cache->arena = arena;
	pthread_mutex_lock(&pool->lock);
	list = realloc(pool->cached, (pool->caches + 1) * sizeof(struct pk_cache *));
	if (list) {
		pool->cached = list;
		pool->cached[pool->caches++] = cache;
	}
	pthread_mutex_unlock(&pool->lock);
	if (!list) {
		free(cache);
		return ho_err_set(err, -ENOMEM, "out of memory for a buffer cache");
	}
	*out = cache;
	return 0;
}

void pk_cache_destroy(struct pk_cache *cache)
{
	struct pk_pool *pool;

	if (!cache)
		return;
	pool = cache->arena->pool;
	pthread_mutex_lock(&pool->lock);
	memcpy(pool->buf + pool->n, cache->buf, cache->n * sizeof(cache->buf[0]));
	pool->n += cache->n;
	for (uint32_t i = 0; i < pool->caches; i++) {
		if (pool->cached[i] == cache) {
			pool->cached[i] = pool->cached[--pool->caches];
			break;
		}
	}
	pthread_mutex_unlock(&pool->lock);
	free(cache);
}

void pk_cache_refill(struct pk_cache *cache, uint32_t want)
{
	struct pk_pool *pool = cache->arena->pool;
	uint32_t n = HO_MAX(want, (uint32_t)PK_CACHE_BULK) - cache->n;

	pthread_mutex_lock(&pool->lock);
	n = HO_MIN(n, pool->n);
	pool->n -= n;
	memcpy(cache->buf + cache->n, pool->buf + pool->n, n * sizeof(cache->buf[0]));
	/* Under the lock: pk_arena_missing() adds it up. */
	cache->n += n;
	pthread_mutex_unlock(&pool->lock);
}

void pk_cache_spill(struct pk_cache *cache)
{
	struct pk_pool *pool = cache->arena->pool;

	/* The oldest go: the top of the cache is what the CPU touched last. */
	pthread_mutex_lock(&pool->lock);
	memcpy(pool->buf + pool->n, cache->buf, PK_CACHE_BULK * sizeof(cache->buf[0]));
	pool->n += PK_CACHE_BULK;
	cache->n -= PK_CACHE_BULK;
	memmove(cache->buf, cache->buf + PK_CACHE_BULK, cache->n * sizeof(cache->buf[0]));
	pthread_mutex_unlock(&pool->lock);
}

#ifdef HO_POOL_CHECK
void pk_check_alloc(struct pk_arena *arena, const uint32_t *bufs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (bufs[i] >= arena->buffers ||
		    __atomic_exchange_n(&arena->pool->state[bufs[i]], 1, __ATOMIC_RELAXED)) {
			ho_warn("buffer %u allocated while in use", bufs[i]);
			abort();
		}
	}
}

void pk_check_free(struct pk_arena *arena, const uint32_t *bufs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (bufs[i] >= arena->buffers ||
		    !__atomic_exchange_n(&arena->pool->state[bufs[i]], 0, __ATOMIC_RELAXED)) {
			ho_warn("buffer %u freed twice or never allocated", bufs[i]);
			abort();
		}
	}
}
#endif

unsigned pk_frame_from_bytes(struct pk_cache *cache, const void *frame, uint32_t bytes,
			     struct pk_slot *slots, unsigned max)
{
	const uint32_t room = cache->arena->stride_bytes - PK_HEADROOM_BYTES;
	const uint32_t need = bytes ? (bytes + room - 1) / room : 1;
	const uint8_t *from = frame;
	uint32_t bufs[PK_CACHE_BULK], got;

	if (need > max || need > PK_CACHE_BULK)
		return 0;
	got = pk_alloc(cache, bufs, need);
	if (got < need) {
		pk_free(cache, bufs, got);
		return 0;
	}
	for (uint32_t i = 0; i < need; i++) {
		uint32_t len = HO_MIN(bytes, room);

		slots[i] = (struct pk_slot){
			.buf = bufs[i],
			.off = PK_HEADROOM_BYTES,
			.len = (uint16_t)len,
			.flags = i + 1 < need ? PK_MORE : 0,
		};
		memcpy(pk_data(cache->arena, &slots[i]), from, len);
		from += len;
		bytes -= len;
	}
	return need;
}

uint32_t pk_frame_to_bytes(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
			   void *out, uint32_t max)
{
	uint8_t *to = out;
	uint32_t total = 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t len = total < max ? HO_MIN((uint32_t)slots[i].len, max - total) : 0;

		memcpy(to, pk_data(arena, &slots[i]), len);
		to += len;
		total += slots[i].len;
	}
	return total;
}
