/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for what the compiler can be told, and counters that another thread may read. */
#ifndef HOLDOFF_BASE_COMPILER_H
#define HOLDOFF_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define HO_CACHE_LINE 64 /* bytes; every x86-64 and most arm64 */

#define ho_likely(x)   __builtin_expect(!!(x), 1)
#define ho_unlikely(x) __builtin_expect(!!(x), 0)
#define ho_prefetch(p) __builtin_prefetch(p)

#define HO_ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define HO_ALIGN_UP(x, a)                  (((x) + (a)-1) / (a) * (a))
#define HO_CACHE_ALIGNED                   __attribute__((aligned(HO_CACHE_LINE)))
#define HO_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Each argument is evaluated once; not for constant expressions. */
#define HO_MIN(a, b)          HO_PICK_(a, b, <, __COUNTER__)
#define HO_MAX(a, b)          HO_PICK_(a, b, >, __COUNTER__)
#define HO_PICK_(a, b, op, n) HO_PICK2_(a, b, op, n)
#define HO_PICK2_(a, b, op, n)                              \
	({                                                  \
		__auto_type ho_a_##n = (a);                 \
		__auto_type ho_b_##n = (b);                 \
		ho_a_##n op ho_b_##n ? ho_a_##n : ho_b_##n; \
	})

/*
 * Fetches a line that will be written: other CPUs lose it now and not when the store has to wait
 * for it. The compiler would make a prefetch for reading of it, because the oldest CPUs of x86-64
 * have no other; to those this instruction does nothing.
 */
static inline void ho_prefetchw(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/*
 * A counter has one writer and any readers. The relaxed store compiles to the plain add that a
 * data race would be, without being one.
 */
static inline void ho_ctr_add(uint64_t *ctr, uint64_t n)
{
	__atomic_store_n(ctr, *ctr + n, __ATOMIC_RELAXED);
}

static inline uint64_t ho_ctr_read(const uint64_t *ctr)
{
	return __atomic_load_n(ctr, __ATOMIC_RELAXED);
}

#endif
