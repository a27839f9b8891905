/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of packet data. Most frames have up to 128 bytes: for them a few 16-byte moves that
 * overlap in the middle are exact, never touch a byte beyond the frame, and take no call.
 *
 * The streaming variants write whole cache lines past the caches. For memory that the peer on
 * another core has just read this is faster: a plain store has to take the line back from that
 * core, one after the other (24 cycles a line where it was measured, whatever is prefetched), a
 * streamed line takes 4, and the peer reads it as fast as before. When it pays is what memif_tune.h
 * finds out.
 */
#ifndef HOLDOFF_PORT_MEMIF_COPY_H
#define HOLDOFF_PORT_MEMIF_COPY_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/compiler.h"
#include "port/memif_proto.h"

typedef uint8_t memif_v16 __attribute__((vector_size(16), aligned(1), may_alias));

static inline memif_v16 memif_load16(const uint8_t *p)
{
	return *(const memif_v16 *)p;
}

static inline void memif_store16(uint8_t *p, memif_v16 v)
{
	*(memif_v16 *)p = v;
}

/* 32 to 64 bytes. */
static inline void memif_copy64(uint8_t *to, const uint8_t *from, uint32_t len)
{
	memif_v16 a = memif_load16(from), b = memif_load16(from + 16);
	memif_v16 c = memif_load16(from + len - 32), d = memif_load16(from + len - 16);

	memif_store16(to, a);
	memif_store16(to + 16, b);
	memif_store16(to + len - 32, c);
	memif_store16(to + len - 16, d);
}

static inline void memif_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (ho_likely(len - 32 <= 32)) {
		memif_copy64(to, from, len);
	} else if (len - 64 <= 64) {
		memif_copy64(to, from, 64);
		memif_copy64(to + len - 64, from + len - 64, 64);
	} else {
		memcpy(to, from, len);
	}
}

/* Reads a descriptor once: the peer can change it at any time. */
static inline struct memif_desc memif_read_desc(const struct memif_desc *d)
{
	struct memif_desc copy;
	uint64_t words[2];

	words[0] = __atomic_load_n((const uint64_t *)(const void *)d, __ATOMIC_RELAXED);
	words[1] = __atomic_load_n((const uint64_t *)(const void *)d + 1, __ATOMIC_RELAXED);
	memcpy(&copy, words, sizeof(copy));
	return copy;
}

/* Bytes behind the source that memif_stream may read. */
#define MEMIF_STREAM_SLACK 15

#ifdef __SSE2__
/* The 16 bytes at p, of which the first n (0 to 15) count and the others become 0. */
static inline __m128i memif_load_part(const uint8_t *p, uint32_t n)
{
	static const uint8_t mask[32] HO_CACHE_ALIGNED = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	};

	return _mm_and_si128(_mm_loadu_si128((const __m128i *)(const void *)p),
			     _mm_loadu_si128((const __m128i *)(const void *)(mask + 16 - n)));
}

static inline void memif_stream16(void *to, __m128i v)
{
	_mm_stream_si128(to, v);
}

/*
 * Copies len bytes to `to`, which begins a cache line, past the caches, and zeroes the rest of the
 * last line.
 */
static inline void memif_stream(uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint32_t i = 0;

	for (; i + 16 <= len; i += 16)
		memif_stream16(to + i, _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
	if (len % 16) {
		memif_stream16(to + i, memif_load_part(from + i, len % 16));
		i += 16;
	}
	for (; i % HO_CACHE_LINE; i += 16)
		memif_stream16(to + i, _mm_setzero_si128());
}

static inline void memif_stream_desc(struct memif_desc *to, const struct memif_desc *d)
{
	memif_stream16(to, _mm_loadu_si128((const __m128i *)(const void *)d));
}

/* What was streamed comes before what is stored next. */
static inline void memif_stream_end(void)
{
	_mm_sfence();
}

/* Lets no cache keep the lines of len bytes; only where ho_cpu_flushes(). */
static inline void memif_flush(const uint8_t *p, uint32_t len)
{
	const uint8_t *end = p + len;

	for (p -= (uintptr_t)p % HO_CACHE_LINE; p < end; p += HO_CACHE_LINE)
		__asm__ volatile("clflushopt %0" : : "m"(*p));
}
#else
static inline void memif_stream(uint8_t *to, const uint8_t *from, uint32_t len)
{
	memcpy(to, from, len);
}

static inline void memif_stream_desc(struct memif_desc *to, const struct memif_desc *d)
{
	*to = *d;
}

static inline void memif_stream_end(void)
{
}

static inline void memif_flush(const uint8_t *p, uint32_t len)
{
}
#endif

#endif
