/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A log-linear histogram of 64-bit values (nanoseconds, bytes): 64 linear steps in each power of
 * two, so that a quantile is off by at most 1/64 (1.6 %), with exact count, sum, minimum and
 * maximum. Adding is a few instructions and no branch on the value's size.
 */
#ifndef HOLDOFF_BASE_HIST_H
#define HOLDOFF_BASE_HIST_H

#include <stdint.h>

#define HO_HIST_SUB_BITS 6
#define HO_HIST_SUB      (1u << HO_HIST_SUB_BITS)
/* Values below HO_HIST_SUB have a bucket each; above, HO_HIST_SUB for each of the other powers. */
#define HO_HIST_BUCKETS ((64 - HO_HIST_SUB_BITS + 1) * HO_HIST_SUB)

struct ho_hist {
	uint64_t count;
	uint64_t min, max; /* exact; min is UINT64_MAX while empty */
	unsigned __int128 sum;
	uint64_t bucket[HO_HIST_BUCKETS];
};

void ho_hist_init(struct ho_hist *hist);

static inline unsigned ho_hist_index(uint64_t value)
{
	/* The highest bit, but at least the one that makes the first power linear. */
	unsigned top = 63 - (unsigned)__builtin_clzll(value | HO_HIST_SUB);
	unsigned shift = top - HO_HIST_SUB_BITS;

	return (unsigned)(value >> shift) + shift * HO_HIST_SUB;
}

static inline void ho_hist_add(struct ho_hist *hist, uint64_t value)
{
	hist->count++;
	hist->sum += value;
	hist->min = value < hist->min ? value : hist->min;
	hist->max = value > hist->max ? value : hist->max;
	hist->bucket[ho_hist_index(value)]++;
}

/* Adds what `from` holds. */
void ho_hist_merge(struct ho_hist *hist, const struct ho_hist *from);

/*
 * The smallest value that at least q (0..1) of all are not above; the middle of its bucket,
 * clamped to the exact minimum and maximum. 0 while empty.
 */
uint64_t ho_hist_quantile(const struct ho_hist *hist, double q);

double ho_hist_mean(const struct ho_hist *hist);

/* Lowest value of bucket i. */
uint64_t ho_hist_bucket_low(unsigned i);

#endif
