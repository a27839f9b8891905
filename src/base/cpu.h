/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPUs of this machine: which there are, pinning, and which vector instructions to use. */
#ifndef HOLDOFF_BASE_CPU_H
#define HOLDOFF_BASE_CPU_H

#include <stdbool.h>

#include "base/error.h"

enum ho_simd {
	HO_SIMD_SCALAR, /* what every CPU of the architecture has */
	HO_SIMD_AVX2,
	HO_SIMD_AVX512, /* F, BW, DQ and VL */
};

/*
 * The widest level that both the CPU and the environment variable HOLDOFF_SIMD (scalar, avx2,
 * avx512) allow. Valgrind does not know AVX-512: the variable is the way to run under it.
 */
enum ho_simd ho_simd_level(void);
const char *ho_simd_name(enum ho_simd level);

/* Has this CPU the instruction CLFLUSHOPT, which puts a line out of all caches without waiting? */
bool ho_cpu_flushes(void);

/* CPUs that this process may run on. */
unsigned ho_cpu_count(void);
bool ho_cpu_usable(int cpu);

/* Of the nth (modulo their count) usable CPU, for spreading workers. */
int ho_cpu_nth(unsigned n);

#endif
