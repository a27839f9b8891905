// SPDX-License-Identifier: BSD-2-Clause
#include "base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum ho_simd ho_simd_level(void)
{
	enum ho_simd level = HO_SIMD_SCALAR, limit = HO_SIMD_AVX512;
	const char *env = getenv("HOLDOFF_SIMD");

#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2"))
		level = HO_SIMD_AVX2;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		level = HO_SIMD_AVX512;
#endif
	if (env && !strcmp(env, "scalar"))
		limit = HO_SIMD_SCALAR;
	else if (env && !strcmp(env, "avx2"))
		limit = HO_SIMD_AVX2;
	return level < limit ? level : limit;
}

const char *ho_simd_name(enum ho_simd level)
{
	static const char *const names[] = { "scalar", "avx2", "avx512" };

	return names[level];
}

bool ho_cpu_flushes(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	/* CPUID leaf 7, EBX bit 23: Intel's manual, volume 2, CPUID. */
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 23 & 1;
#else
	return false;
#endif
}

static bool usable_set(cpu_set_t *set)
{
	return sched_getaffinity(0, sizeof(*set), set) == 0;
}

unsigned ho_cpu_count(void)
{
	cpu_set_t set;

	return usable_set(&set) ? (unsigned)CPU_COUNT(&set) : 1;
}

bool ho_cpu_usable(int cpu)
{
	cpu_set_t set;

	return cpu >= 0 && cpu < CPU_SETSIZE && usable_set(&set) && CPU_ISSET(cpu, &set);
}

int ho_cpu_nth(unsigned n)
{
	cpu_set_t set;

	if (!usable_set(&set))
		return 0;
	n %= (unsigned)CPU_COUNT(&set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && n-- == 0)
			return cpu;
	}
	return 0;
}
