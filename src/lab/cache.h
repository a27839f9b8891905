/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What data caches cost: the term that depends on how much other memory was touched between two
 * touches of the same line, its reuse distance.
 *
 * The price of a line that is found is part of the costs of the profile (runtime/cost.h); this
 * term adds what a line costs more when it fell out of a level in between.
 *
 * The model. A level has bytes / (line * ways) sets of `ways` lines with LRU replacement. Rings
 * and buffers are walked in order, so D bytes of them lay D / (line * sets) lines into every set,
 * rounded down in some and up in the others. Everything else the CPU touches in that time (code's
 * data, stack, the frame) is `other_bytes`, spread at random: the number of its lines in a set is
 * Poisson distributed. A line is lost when at least `ways` other lines went into its set. The
 * share of lost lines, as a function of D, is a smooth step below the capacity:
 *
 *   share
 *   1 |                ______
 *     |              /
 *     |            /           32 KB, 8 ways, 1 KB of other data:
 *   0 |__________/             0.2 % at 20 KB, 2.6 % at 24, 22 % at 28, 61 % at 30, all from 32
 *     +----------------------- distance
 *
 * It is computed in integers, so that every machine gets the same picoseconds.
 */
#ifndef HOLDOFF_LAB_CACHE_H
#define HOLDOFF_LAB_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "lab/sim.h"

#define LAB_CACHE_LEVELS_MAX 4
#define LAB_CACHE_WAYS_MAX   32

struct lab_cache_level {
	uint64_t bytes; /* capacity for one CPU */
	uint32_t ways;
	uint32_t line; /* bytes of a line */
	sim_ps miss;   /* what a line lost here costs more than one found here, if the next level
			  has it: how far a walk in order is ahead of that is in the number */
	/* Filled by lab_cache_prepare: share lost, in 2^-32, if exactly so many other lines of the
	 * walk went into the set; 1 from `ways` on. */
	uint64_t lost[LAB_CACHE_WAYS_MAX + 1];
};

struct lab_cache {
	struct lab_cache_level level[LAB_CACHE_LEVELS_MAX]; /* from the CPU outwards */
	unsigned n_levels;
	uint64_t other_bytes; /* touched beside the walks, in the same time */
};

/* Checks it (powers of two, ways, growing levels) and computes the tables. -EINVAL. */
int lab_cache_prepare(struct lab_cache *cache, struct ho_err *err);

/* The share of lines, in 2^-32, that a level lost when they are touched again after `distance`
 * bytes of other memory walked in order. */
uint64_t lab_cache_lost(const struct lab_cache_level *level, uint64_t distance);

/* What touching one line costs more, in units of 2^-32 ps, over all levels. */
unsigned __int128 lab_cache_line_cost(const struct lab_cache *cache, uint64_t distance);

/* What touching `bytes` bytes again costs more, in ps, when `distance` bytes were touched since:
 * bytes / line lines, in fractions (two 16-byte descriptors share a line's cost). */
sim_ps lab_cache_touch(const struct lab_cache *cache, uint64_t distance, uint64_t bytes);

#endif
