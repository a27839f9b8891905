// SPDX-License-Identifier: BSD-2-Clause
#include "base/compiler.h"
#include "base/cpu.h"
#include "route/fib4_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/*
 * First without `front`. Addresses are taken in groups. Nothing in a group depends on another
 * address of it, so that the CPU has the loads of several groups under way at once; whether one of
 * the answers is a node is asked once a group, since such routes are rare and the branch would be
 * guessed wrong.
 */
#define GROUP   16u
#define VECTORS 4u /* of 16 addresses, whose loads are under way together */

static void finish(const uint32_t *base, const uint32_t *addrs, uint32_t *nh, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (nh[i] & FIB_CHILD)
			nh[i] = fib_node_entry(base, nh[i] & ~FIB_CHILD, addrs[i] & 0xff);
	}
}

#define BULK_BODY(POPCOUNT)                                                                   \
	const uint64_t *root = fib->root;                                                     \
	const uint32_t *base = fib->nodes.blocks.base;                                        \
	unsigned i = 0;                                                                       \
                                                                                              \
	while (i < n) {                                                                       \
		unsigned end = n - i < GROUP ? n : i + GROUP, begin = i;                      \
		uint32_t any = 0;                                                             \
                                                                                              \
		for (; i < end; i++) {                                                        \
			uint32_t a = addrs[i];                                                \
			uint64_t word = __atomic_load_n(&root[a >> (32 - FIB4_ROOT_BITS)],    \
							__ATOMIC_ACQUIRE);                    \
			uint32_t at = (uint32_t)(word >> 32) +                                \
				      (uint32_t)POPCOUNT((uint32_t)word << (~(a >> 8) & 31)); \
                                                                                              \
			nh[i] = __atomic_load_n(&base[at], __ATOMIC_ACQUIRE);                 \
			any |= nh[i];                                                         \
		}                                                                             \
		if (any & FIB_CHILD)                                                          \
			finish(base, addrs + begin, nh + begin, end - begin);                 \
	}

static void bulk_scalar(const struct fib4 *fib, const uint32_t *addrs, uint32_t *nh, unsigned n)
{
	BULK_BODY(fib_popcount)
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2,popcnt"))) static void bulk_popcnt(const struct fib4 *fib,
									const uint32_t *addrs,
									uint32_t *nh, unsigned n)
{
	BULK_BODY(__builtin_popcount)
}

__attribute__((
	target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi,bmi2,popcnt"))) static void
bulk_avx512(const struct fib4 *fib, const uint32_t *addrs, uint32_t *nh, unsigned n)
{
	const void *root = fib->root;
	const uint32_t *base = fib->nodes.blocks.base;
	const __m512i low =
		_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
	const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(1));
	const __m512i slots = _mm512_set1_epi32(31);
	unsigned i = 0;

	while (i + GROUP <= n) {
		unsigned vectors = (n - i) / GROUP < VECTORS ? (n - i) / GROUP : VECTORS;
		__m512i a[VECTORS], first[VECTORS], second[VECTORS];

		for (unsigned v = 0; v < vectors; v++) {
			__m512i index;

			a[v] = _mm512_loadu_si512(addrs + i + v * GROUP);
			index = _mm512_srli_epi32(a[v], 32 - FIB4_ROOT_BITS);
			first[v] = _mm512_i32gather_epi64(_mm512_castsi512_si256(index), root, 8);
			second[v] = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(index, 1),
							   root, 8);
		}
		for (unsigned v = 0; v < vectors; v++, i += GROUP) {
			__m512i bits = _mm512_permutex2var_epi32(first[v], low, second[v]);
			__m512i at = _mm512_permutex2var_epi32(first[v], high, second[v]);
			__m512i shift = _mm512_andnot_si512(_mm512_srli_epi32(a[v], 8), slots);
			__m512i answer;

			bits = _mm512_popcnt_epi32(_mm512_sllv_epi32(bits, shift));
			answer = _mm512_i32gather_epi32(_mm512_add_epi32(at, bits), base, 4);
			_mm512_storeu_si512(nh + i, answer);
			if (_mm512_movepi32_mask(answer))
				finish(base, addrs + i, nh + i, GROUP);
		}
	}
	if (i < n)
		bulk_popcnt(fib, addrs + i, nh + i, n - i);
}
#endif

/*
 * And with it. The places of the bytes are read and their lines asked for before the first byte is
 * needed, so that as many misses are under way as the CPU can have; a loop that goes all the way
 * for one address after the other fills the CPU's queues with what waits for few of them. Scalar
 * loads do as well as gathers here. The few addresses that need more are looked at when the group
 * is done: a branch for each of them would be guessed wrong, and the misses behind it not begun.
 */
#define FRONT_GROUP 64u

static void finish_front(const struct fib4 *fib, const uint32_t *addrs, uint32_t *nh,
			 const uint32_t *at, unsigned n)
{
	const uint32_t *base = fib->nodes.blocks.base;
	uint32_t addr[FRONT_GROUP], answer[FRONT_GROUP];
	uint8_t list[FRONT_GROUP + 1], rest[FRONT_GROUP];
	unsigned listed = 0, left = 0;

	for (unsigned i = 0; i < n; i++) {
		list[listed] = (uint8_t)i;
		listed += nh[i] >> 31;
	}
	for (unsigned k = 0; k < listed; k++) {
		unsigned i = list[k], number = nh[i] & ~FIB_CHILD;

		if (number == FIB_NUMBER_NONE) {
			rest[left] = (uint8_t)i;
			addr[left++] = addrs[i];
			nh[i] = 0;
			continue;
		}
		nh[i] = __atomic_load_n(fib4_front_local(&fib->front, at[i], addrs[i], number),
					__ATOMIC_ACQUIRE);
		ho_prefetch(base + (nh[i] & ~FIB_CHILD));
	}
	for (unsigned k = 0; k < listed; k++) {
		unsigned i = list[k];

		if (nh[i] & FIB_CHILD)
			nh[i] = fib_node_entry(base, nh[i] & ~FIB_CHILD, addrs[i] & 0xff);
	}
	if (!left)
		return;
	fib->root_bulk(fib, addr, answer, left);
	for (unsigned k = 0; k < left; k++)
		nh[rest[k]] = answer[k];
}

static void bulk_front(const struct fib4 *fib, const uint32_t *addrs, uint32_t *nh, unsigned n)
{
	const uint8_t *byte = (const uint8_t *)fib->front.blocks.base;
	const uint32_t *top = fib->front.top, *stands_for = fib->front.numbers.answer;
	uint32_t at[FRONT_GROUP];

	while (n) {
		unsigned group = HO_MIN(n, FRONT_GROUP);
		uint32_t any = 0;

#pragma GCC unroll 8
		for (unsigned i = 0; i < group; i++) {
			at[i] = fib4_front_at(top, addrs[i]);
			ho_prefetch(byte + at[i]);
		}
#pragma GCC unroll 8
		for (unsigned i = 0; i < group; i++) {
			unsigned number = __atomic_load_n(&byte[at[i]], __ATOMIC_ACQUIRE);
			uint32_t answer = __atomic_load_n(&stands_for[number], __ATOMIC_ACQUIRE);

			nh[i] = answer;
			any |= answer;
		}
		if (any & FIB_CHILD)
			finish_front(fib, addrs, nh, at, group);
		addrs += group;
		nh += group;
		n -= group;
	}
}

static fib4_bulk_fn *choose_root_bulk(void)
{
#if defined(__x86_64__)
	enum ho_simd level = ho_simd_level();

	if (level >= HO_SIMD_AVX512 && __builtin_cpu_supports("avx512vpopcntdq"))
		return bulk_avx512;
	if (level >= HO_SIMD_AVX2 && __builtin_cpu_supports("popcnt") &&
	    __builtin_cpu_supports("bmi2"))
		return bulk_popcnt;
#endif
	return bulk_scalar;
}

void fib4_choose_bulk(struct fib4 *fib)
{
	fib->root_bulk = choose_root_bulk();
	fib->bulk = bulk_front;
}
