// SPDX-License-Identifier: BSD-2-Clause
#include "lab/cache.h"

#include <errno.h>

#define ONE_32 (1ull << 32)

/* e^-x for x in 2^-32, as 2^-62: the alternating series of the fraction, times e^-1 for each whole.
 */
static uint64_t exp_minus(uint64_t x)
{
	const uint64_t one = 1ull << 62;
	/* e^-1 in 2^-62 */
	const uint64_t inverse_e = 1696544475317221319ull;
	uint64_t whole = x >> 32, part = x & (ONE_32 - 1);
	uint64_t even = one, odd = 0, term = one;

	for (unsigned k = 1; term; k++) {
		term = (uint64_t)(((unsigned __int128)term * part) >> 32) / k;
		if (k & 1)
			odd += term;
		else
			even += term;
	}
	term = even - odd;
	while (whole-- && term)
		term = (uint64_t)(((unsigned __int128)term * inverse_e) >> 62);
	return term;
}

/* The probability, in 2^-32, that a Poisson variable of mean `mean` (2^-32) is at least k. */
static uint64_t poisson_at_least(uint64_t mean, unsigned k)
{
	uint64_t term = exp_minus(mean), below = 0;

	for (unsigned i = 0; i < k; i++) {
		below += term;
		term = (uint64_t)(((unsigned __int128)term * mean) >> 32) / (i + 1);
	}
	below >>= 30;
	return below >= ONE_32 ? 0 : ONE_32 - below;
}

int lab_cache_prepare(struct lab_cache *cache, struct ho_err *err)
{
	uint64_t inner = 0;

	if (cache->n_levels > LAB_CACHE_LEVELS_MAX)
		return ho_err_set(err, -EINVAL, "cache: %u levels: at most %d", cache->n_levels,
				  LAB_CACHE_LEVELS_MAX);
	for (unsigned i = 0; i < cache->n_levels; i++) {
		struct lab_cache_level *level = &cache->level[i];
		uint64_t sets, mean;

		if (!level->ways || level->ways > LAB_CACHE_WAYS_MAX)
			return ho_err_set(err, -EINVAL,
					  "cache level %u: %u ways: 1 to %d are possible", i + 1,
					  level->ways, LAB_CACHE_WAYS_MAX);
		if (level->line < 8 || level->line > 1024 || level->line & (level->line - 1))
			return ho_err_set(
				err, -EINVAL,
				"cache level %u: lines of %u bytes: a power of two from 8 to "
				"1024 is needed",
				i + 1, level->line);
		sets = level->bytes / ((uint64_t)level->line * level->ways);
		if (!sets || level->bytes % ((uint64_t)level->line * level->ways))
			return ho_err_set(
				err, -EINVAL,
				"cache level %u: %llu bytes are not a multiple of %u ways of "
				"%u bytes",
				i + 1, (unsigned long long)level->bytes, level->ways, level->line);
		if (level->bytes <= inner)
			return ho_err_set(
				err, -EINVAL,
				"cache level %u: %llu bytes: not larger than the level before",
				i + 1, (unsigned long long)level->bytes);
		inner = level->bytes;
		/* In units of 2^-32 lines a set; so much that 2^32 lines is all there can be. */
		mean = (uint64_t)(((unsigned __int128)cache->other_bytes << 32) /
				  (sets * level->line));
		for (unsigned walk = 0; walk <= level->ways; walk++)
			level->lost[walk] = poisson_at_least(mean, level->ways - walk);
	}
	return 0;
}

uint64_t lab_cache_lost(const struct lab_cache_level *level, uint64_t distance)
{
	uint64_t way = level->bytes / level->ways; /* one line in every set */
	uint64_t full = distance / way, part;

	if (full >= level->ways)
		return ONE_32;
	/* Some sets got one line more than the others. */
	part = distance % way;
	return (uint64_t)(((unsigned __int128)level->lost[full] * (way - part) +
			   (unsigned __int128)level->lost[full + 1] * part) /
			  way);
}

unsigned __int128 lab_cache_line_cost(const struct lab_cache *cache, uint64_t distance)
{
	unsigned __int128 cost = 0;

	for (unsigned i = 0; i < cache->n_levels; i++)
		cost += (unsigned __int128)lab_cache_lost(&cache->level[i], distance) *
			cache->level[i].miss;
	return cost;
}

sim_ps lab_cache_touch(const struct lab_cache *cache, uint64_t distance, uint64_t bytes)
{
	if (!cache->n_levels)
		return 0;
	return (sim_ps)((lab_cache_line_cost(cache, distance) * bytes / cache->level[0].line) >>
			32);
}
