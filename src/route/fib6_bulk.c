// SPDX-License-Identifier: BSD-2-Clause
#include "base/compiler.h"
#include "base/cpu.h"
#include "packet/parse.h"
#include "route/fib6_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/*
 * Addresses are taken in groups, a level of nodes at a time for the whole group. Those that still
 * have a node below are kept in a list that is written without a branch, since how deep an address
 * goes cannot be guessed; and the loads of a level do not depend on each other, so that the CPU has
 * many under way.
 */
#define GROUP 64

#define STEP_BODY(POPCOUNT)                                                                    \
	unsigned keep = 0;                                                                     \
                                                                                               \
	for (unsigned k = 0; k < active; k++) {                                                \
		unsigned i = list[k], slot = addrs[i].byte[level], w = slot >> 5;              \
		const uint32_t *b = base + (nh[i] & ~FIB_CHILD);                               \
		uint32_t run = ((const uint8_t *)(b + FIB_BLOCK_BEFORE))[w] +                  \
			       (uint32_t)POPCOUNT(b[FIB_BLOCK_BITS + w] << (~slot & 31));      \
		uint32_t entry = __atomic_load_n(&b[FIB_BLOCK_ENTRY + run], __ATOMIC_ACQUIRE); \
                                                                                               \
		nh[i] = entry;                                                                 \
		ho_prefetch(base + (entry & ~FIB_CHILD));                                      \
		list[keep] = (uint8_t)i;                                                       \
		keep += entry >> 31;                                                           \
	}                                                                                      \
	return keep;

typedef unsigned step_fn(const uint32_t *base, const struct fib6_addr *addrs, uint32_t *nh,
			 uint8_t *list, unsigned active, unsigned level);

static inline __attribute__((always_inline)) void bulk(const struct fib6 *fib,
						       const struct fib6_addr *addrs, uint32_t *nh,
						       unsigned n, step_fn *step)
{
	const uint32_t *base = fib->nodes.blocks.base;
	uint8_t list[GROUP + 1];

	for (unsigned done = 0; done < n; done += GROUP, addrs += GROUP, nh += GROUP) {
		unsigned group = HO_MIN(n - done, (unsigned)GROUP), active = 0;

		for (unsigned i = 0; i < group; i++) {
			uint32_t entry = fib6_entry(fib, pk_load32(addrs[i].byte));

			nh[i] = entry;
			list[active] = (uint8_t)i;
			active += entry >> 31;
		}
		for (unsigned level = 3; active; level++)
			active = step(base, addrs, nh, list, active, level);
	}
}

static inline unsigned step_scalar(const uint32_t *base, const struct fib6_addr *addrs,
				   uint32_t *nh, uint8_t *list, unsigned active, unsigned level)
{
	STEP_BODY(fib_popcount)
}

static void bulk_scalar(const struct fib6 *fib, const struct fib6_addr *addrs, uint32_t *nh,
			unsigned n)
{
	bulk(fib, addrs, nh, n, step_scalar);
}

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))

TARGET static unsigned step_popcnt(const uint32_t *base, const struct fib6_addr *addrs,
				   uint32_t *nh, uint8_t *list, unsigned active, unsigned level)
{
	STEP_BODY(__builtin_popcount)
}

static void bulk_popcnt(const struct fib6 *fib, const struct fib6_addr *addrs, uint32_t *nh,
			unsigned n)
{
	bulk(fib, addrs, nh, n, step_popcnt);
}

/*
 * With 512 bits a level of 16 addresses is three gathers. Four such vectors go side by side, so
 * that the gathers of one do not wait for those of another.
 */
#define TARGET512       \
	__attribute__(( \
		target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi,bmi2,popcnt")))
#define LANES   16u
#define VECTORS 4u

/* The first and the second four bytes of 16 addresses, as numbers. */
TARGET512 static inline void load_words(const struct fib6_addr *addrs, __m512i *first,
					__m512i *second)
{
	const __m512i pick =
		_mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
	const __m512i swap = _mm512_broadcast_i32x4(
		_mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
	__m512i low = _mm512_permutex2var_epi32(_mm512_loadu_si512(addrs), pick,
						_mm512_loadu_si512(addrs + 4));
	__m512i high = _mm512_permutex2var_epi32(_mm512_loadu_si512(addrs + 8), pick,
						 _mm512_loadu_si512(addrs + 12));

	*first = _mm512_shuffle_epi8(_mm512_shuffle_i64x2(low, high, 0x44), swap);
	*second = _mm512_shuffle_epi8(_mm512_shuffle_i64x2(low, high, 0xee), swap);
}

/* One level for the lanes of `mask`, whose entries are nodes. */
TARGET512 static inline __m512i step_512(const uint32_t *base, __m512i entry, __m512i slot,
					 __mmask16 mask)
{
	const __m512i zero = _mm512_setzero_si512();
	__m512i block = _mm512_and_si512(entry, _mm512_set1_epi32((int)~FIB_CHILD));
	__m512i word = _mm512_srli_epi32(slot, 5), bits, before, run;

	bits = _mm512_mask_i32gather_epi32(zero, mask, _mm512_add_epi32(block, word),
					   base + FIB_BLOCK_BITS, 4);
	before = _mm512_mask_i32gather_epi32(zero, mask,
					     _mm512_add_epi32(block, _mm512_srli_epi32(word, 2)),
					     base + FIB_BLOCK_BEFORE, 4);
	before = _mm512_srlv_epi32(
		before, _mm512_slli_epi32(_mm512_and_si512(word, _mm512_set1_epi32(3)), 3));
	run = _mm512_and_si512(before, _mm512_set1_epi32(0xff));
	bits = _mm512_sllv_epi32(bits, _mm512_andnot_si512(slot, _mm512_set1_epi32(31)));
	run = _mm512_add_epi32(run, _mm512_popcnt_epi32(bits));
	return _mm512_mask_i32gather_epi32(entry, mask, _mm512_add_epi32(block, run),
					   base + FIB_BLOCK_ENTRY, 4);
}

/* fib6_entry of 16 addresses. */
TARGET512 static inline __m512i entries_512(const struct fib6 *fib, __m512i first)
{
	const __mmask16 global =
		_mm512_cmpeq_epi32_mask(_mm512_srli_epi32(first, 29), _mm512_set1_epi32(1));
	__m512i entry = _mm512_i32gather_epi32(_mm512_srli_epi32(first, 16), fib->root, 4);
	__m512i slot = _mm512_srli_epi32(first, 8);
	__m512i at = _mm512_and_si512(slot, _mm512_set1_epi32(FIB6_GLOBALS - 1));
	__mmask16 node = _mm512_movepi32_mask(entry);

	/* `global` holds for a /16 only what was there before its entry became a node: it is to be
	 * read later. The CPU keeps the order of loads, the compiler by this. */
	__atomic_signal_fence(__ATOMIC_ACQUIRE);
	/* Where routes are, all need it: the CPU begins this load before the first has ended. */
	if ((node & global) == 0xffff)
		return _mm512_i32gather_epi32(at, fib->global, 4);
	if (!node)
		return entry;
	entry = _mm512_mask_i32gather_epi32(entry, node & global, at, fib->global, 4);
	if (ho_unlikely(node & (__mmask16)~global))
		entry = step_512(fib->nodes.blocks.base, entry,
				 _mm512_and_si512(slot, _mm512_set1_epi32(0xff)),
				 (__mmask16)(node & ~global));
	return entry;
}

TARGET512 static void bulk_avx512(const struct fib6 *fib, const struct fib6_addr *addrs,
				  uint32_t *nh, unsigned n)
{
	const uint32_t *base = fib->nodes.blocks.base;
	__m512i first[VECTORS], second[VECTORS], entry[VECTORS];

	while (n >= LANES) {
		unsigned vectors = HO_MIN(n / LANES, VECTORS), active;

		for (unsigned v = 0; v < vectors; v++) {
			load_words(addrs + v * LANES, &first[v], &second[v]);
			entry[v] = entries_512(fib, first[v]);
		}
		/* Bytes 3 to 7; few routes are longer than /64. */
		for (unsigned level = 3; level < 8; level++) {
			unsigned shift = 24 - level % 4 * 8;

			active = 0;
			for (unsigned v = 0; v < vectors; v++) {
				__mmask16 mask = _mm512_movepi32_mask(entry[v]);
				__m512i slot = level < 4 ? first[v] : second[v];

				if (!mask)
					continue;
				slot = _mm512_and_si512(
					_mm512_srl_epi32(slot, _mm_cvtsi32_si128((int)shift)),
					_mm512_set1_epi32(0xff));
				entry[v] = step_512(base, entry[v], slot, mask);
				active |= mask;
			}
			if (!active)
				break;
		}
		for (unsigned v = 0; v < vectors; v++, addrs += LANES, nh += LANES, n -= LANES) {
			unsigned left = _mm512_movepi32_mask(entry[v]);

			_mm512_storeu_si512(nh, entry[v]);
			for (; left; left &= left - 1) {
				unsigned i = (unsigned)__builtin_ctz(left);

				nh[i] = fib_node_lookup(base, nh[i], addrs[i].byte + 8);
			}
		}
	}
	bulk_popcnt(fib, addrs, nh, n);
}
#endif

fib6_bulk_fn *fib6_choose_bulk(void)
{
#if defined(__x86_64__)
	if (ho_simd_level() >= HO_SIMD_AVX512 && __builtin_cpu_supports("avx512vpopcntdq"))
		return bulk_avx512;
	if (ho_simd_level() >= HO_SIMD_AVX2 && __builtin_cpu_supports("popcnt") &&
	    __builtin_cpu_supports("bmi2"))
		return bulk_popcnt;
#endif
	return bulk_scalar;
}
