/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a queue writes what the peer will read: plainly, or past the caches (memif_copy.h).
 *
 * Which one is faster depends on where the two CPUs are, and by more than a factor of two either
 * way: apart, a plain store has to take each line back from the other CPU's cache; as hyperthreads
 * of one core they share that cache, and streaming goes to memory for nothing. On a virtual machine
 * this changes while it runs, and nobody says so. So it is measured: from time to time some bursts
 * are written in turns and timed until their stores are done, and who wins most pairs is taken.
 */
#ifndef HOLDOFF_PORT_MEMIF_TUNE_H
#define HOLDOFF_PORT_MEMIF_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/tsc.h"

#define MEMIF_TUNE_PAIRS    8    /* of bursts in one comparison */
#define MEMIF_TUNE_MAJORITY 6    /* pairs that change it */
#define MEMIF_TUNE_SLOTS    8    /* a shorter burst is not streamed: it is latency that counts */
#define MEMIF_TUNE_PERIOD   4096 /* bursts between comparisons */
#define MEMIF_TUNE_FIRST    64   /* bursts before the first */

struct memif_tune {
	bool stream;    /* what won */
	uint8_t turn;   /* 0 = none is compared now, else 1 + number of bursts timed */
	uint8_t wins;   /* pairs in which streaming was cheaper */
	uint32_t wait;  /* bursts until the next comparison */
	uint64_t start; /* of the burst that is being timed */
	uint64_t plain; /* what the pair's first burst cost: ticks a slot, times 256 */
};

static inline void memif_tune_init(struct memif_tune *t)
{
	*t = (struct memif_tune){ .wait = MEMIF_TUNE_FIRST };
}

/* Before a burst of n slots is written. Returns whether to stream it. */
static inline bool memif_tune_begin(struct memif_tune *t, unsigned n)
{
	if (n < MEMIF_TUNE_SLOTS)
		return false;
	if (t->wait) {
		t->wait--;
		return t->stream;
	}
	if (!t->turn)
		t->turn = 1;
	t->start = rt_tsc_read();
	return !(t->turn & 1);
}

/* After its stores are done, behind a fence. `done` of n slots were written. */
static inline void memif_tune_end(struct memif_tune *t, unsigned done, unsigned n)
{
	uint64_t cost;

	if (!t->turn || n < MEMIF_TUNE_SLOTS || done < n)
		return;
	cost = ((rt_tsc_read() - t->start) << 8) / done;
	if (t->turn & 1)
		t->plain = cost;
	else
		t->wins += cost < t->plain;
	if (t->turn++ < 2 * MEMIF_TUNE_PAIRS)
		return;
	if (t->wins >= MEMIF_TUNE_MAJORITY)
		t->stream = true;
	else if (t->wins <= MEMIF_TUNE_PAIRS - MEMIF_TUNE_MAJORITY)
		t->stream = false;
	t->turn = t->wins = 0;
	t->wait = MEMIF_TUNE_PERIOD;
}

#endif
