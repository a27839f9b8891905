// SPDX-License-Identifier: BSD-2-Clause
#include "base/hist.h"

#include <math.h>
#include <string.h>

void ho_hist_init(struct ho_hist *hist)
{
	memset(hist, 0, sizeof(*hist));
	hist->min = UINT64_MAX;
}

void ho_hist_merge(struct ho_hist *hist, const struct ho_hist *from)
{
	hist->count += from->count;
	hist->sum += from->sum;
	hist->min = from->min < hist->min ? from->min : hist->min;
	hist->max = from->max > hist->max ? from->max : hist->max;
	for (unsigned i = 0; i < HO_HIST_BUCKETS; i++)
		hist->bucket[i] += from->bucket[i];
}

uint64_t ho_hist_bucket_low(unsigned i)
{
	/* Inverse of ho_hist_index: from index 2 * SUB on, each power adds SUB indices. */
	unsigned shift = i < 2 * HO_HIST_SUB ? 0 : i / HO_HIST_SUB - 1;

	return (uint64_t)(i - shift * HO_HIST_SUB) << shift;
}

uint64_t ho_hist_quantile(const struct ho_hist *hist, double q)
{
	uint64_t rank, seen = 0;

	if (!hist->count)
		return 0;
	if (q <= 0)
		return hist->min;
	rank = (uint64_t)ceil(q * (double)hist->count);
	if (rank >= hist->count)
		return hist->max;
	for (unsigned i = 0; i < HO_HIST_BUCKETS; i++) {
		seen += hist->bucket[i];
		if (seen >= rank && hist->bucket[i]) {
			uint64_t low = ho_hist_bucket_low(i);
			unsigned shift = i < 2 * HO_HIST_SUB ? 0 : i / HO_HIST_SUB - 1;
			uint64_t mid = low + ((1ull << shift) >> 1);

			mid = mid < hist->min ? hist->min : mid;
			return mid > hist->max ? hist->max : mid;
		}
	}
	return hist->max;
}

double ho_hist_mean(const struct ho_hist *hist)
{
	return hist->count ? (double)hist->sum / (double)hist->count : 0;
}
