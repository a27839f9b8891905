/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU's time stamp counter as a clock. */
#ifndef HOLDOFF_RUNTIME_TSC_H
#define HOLDOFF_RUNTIME_TSC_H

#include <stdint.h>

struct rt_tsc {
	uint64_t hz;   /* ticks a second */
	uint64_t mult; /* ns = ticks * mult >> 32 */
};

static inline uint64_t rt_tsc_read(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
#error "no time stamp counter known for this CPU"
#endif
}

static inline uint64_t rt_tsc_to_ns(const struct rt_tsc *tsc, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * tsc->mult) >> 32);
}

static inline uint64_t rt_ns_to_tsc(const struct rt_tsc *tsc, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * tsc->hz / 1000000000u);
}

/*
 * Measures the counter's rate against CLOCK_MONOTONIC_RAW for about 20 ms, once a process (later
 * calls return the first result).
 */
void rt_tsc_calibrate(struct rt_tsc *out);

#endif
