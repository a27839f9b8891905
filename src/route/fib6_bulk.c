// SPDX-License-Identifier: BSD-2-Clause
#include "base/compiler.h"
#include "base/cpu.h"
#include "packet/parse.h"
#include "route/fib6_impl.h"

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
			uint32_t entry = __atomic_load_n(&fib->root[pk_load16(addrs[i].byte)],
							 __ATOMIC_ACQUIRE);

			nh[i] = entry;
			list[active] = (uint8_t)i;
			active += entry >> 31;
		}
		for (unsigned level = 2; active; level++)
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
#endif

fib6_bulk_fn *fib6_choose_bulk(void)
{
#if defined(__x86_64__)
	if (ho_simd_level() >= HO_SIMD_AVX2 && __builtin_cpu_supports("popcnt") &&
	    __builtin_cpu_supports("bmi2"))
		return bulk_popcnt;
#endif
	return bulk_scalar;
}
