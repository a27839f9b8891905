/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss, order and duplicates of numbered streams (traffic/stamp.h), as one receiver sees them.
 *
 * A frame is a duplicate if its number was seen among the last TR_TRACK_WINDOW numbers, and
 * reordered if a higher number was seen before it (RFC 4737, section 3). What is older than the
 * window counts as reordered, never as a duplicate. Numbers are 32 bits on the wire and wrap; here
 * they are 64 bits, from TR_TRACK_ORIGIN on so that a frame may come before the first one seen.
 *
 * A generator that is started again begins at 0: a number that is not above the highest seen, but
 * was sent TR_TRACK_RESTART_NS or more after it, begins a new run of the stream. Loss is reckoned
 * for each run.
 *
 * Loss is not a sum of gaps: when the queues of a port share a stream (by flow hash), each queue's
 * receiver sees gaps that are none. tr_tracks_sum puts the receivers together first: lost is the
 * span of numbers seen by any of them, less the different ones received.
 */
#ifndef HOLDOFF_TRAFFIC_TRACK_H
#define HOLDOFF_TRAFFIC_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "traffic/stamp.h"

#define TR_TRACK_WINDOW     65536u /* numbers; a power of two */
#define TR_TRACK_ORIGIN     ((uint64_t)1 << 40)
#define TR_TRACK_RESTART_NS 1000000u
/* Streams that one receiver follows; more are only counted. */
#define TR_TRACKS_MAX 256u
/* Runs of one stream that are told apart; the last one goes on for ever. */
#define TR_TRACK_RUNS_MAX 64u

/* One run of one stream. */
struct tr_run {
	uint64_t lowest, highest;       /* numbers seen */
	uint64_t received;              /* frames, duplicates among them */
	uint64_t duplicates, reordered; /* of these */
	uint64_t first_time, last_time; /* sending times of the first and the highest */
};

struct tr_track {
	uint16_t id;
	unsigned runs; /* >= 1; run[runs - 1] is the current one */
	struct tr_run *run;
	uint64_t seen[TR_TRACK_WINDOW / 64]; /* a bit for each number up to the highest */
};

struct tr_tracks {
	unsigned n;
	uint64_t untracked;    /* frames of streams beyond TR_TRACKS_MAX */
	struct tr_track *last; /* the frame before was of this one: so is the next, most likely */
	struct tr_track *track[TR_TRACKS_MAX];
};

void tr_tracks_init(struct tr_tracks *tracks);
void tr_tracks_fini(struct tr_tracks *tracks);

/* Slow path: finds or makes it; NULL when there are too many or memory is out. */
struct tr_track *tr_tracks_find(struct tr_tracks *tracks, uint16_t id);
/* Slow path: a number that is not the next one. */
void tr_track_odd(struct tr_track *track, const struct tr_stamp *stamp);

/* One frame more. */
static inline void tr_tracks_add(struct tr_tracks *tracks, const struct tr_stamp *stamp)
{
	struct tr_track *track = tracks->last;
	struct tr_run *run;
	uint64_t next;

	if (ho_unlikely(!track || track->id != stamp->stream)) {
		track = tr_tracks_find(tracks, stamp->stream);
		if (!track) {
			tracks->untracked++;
			return;
		}
		tracks->last = track;
	}
	run = &track->run[track->runs - 1];
	next = run->highest + 1;
	if (ho_unlikely(stamp->sequence != (uint32_t)next || !run->received)) {
		tr_track_odd(track, stamp);
		return;
	}
	run->highest = next;
	run->received++;
	run->last_time = stamp->time_ns;
	/* The first number of a word clears what the word held a window ago. */
	if ((next & 63) == 0)
		track->seen[next / 64 % (TR_TRACK_WINDOW / 64)] = 1;
	else
		track->seen[next / 64 % (TR_TRACK_WINDOW / 64)] |= (uint64_t)1 << (next & 63);
}

/* One stream, all runs of it. */
struct tr_stream_sum {
	uint16_t id;
	uint64_t received, duplicates, reordered, lost;
};

/* All streams and runs of several receivers. */
struct tr_track_sum {
	unsigned streams, runs;
	uint64_t received, duplicates, reordered, lost;
	uint64_t untracked;
	struct tr_stream_sum *each; /* by id; freed by tr_track_sum_fini */
	unsigned n_each;
};

/* Puts n receivers' views together. They must be at rest. -ENOMEM. */
int tr_tracks_sum(struct tr_tracks *const *views, unsigned n, struct tr_track_sum *out);
void tr_track_sum_fini(struct tr_track_sum *sum);

/* The stream's entry in sum->each, made if need be; NULL when out of memory. */
struct tr_stream_sum *tr_track_sum_of(struct tr_track_sum *sum, uint16_t id);

#endif
