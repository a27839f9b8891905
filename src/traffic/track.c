// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (TR_TRACK_WINDOW / 64)

void tr_tracks_init(struct tr_tracks *tracks)
{
	memset(tracks, 0, sizeof(*tracks));
}

void tr_tracks_fini(struct tr_tracks *tracks)
{
	for (unsigned i = 0; i < tracks->n; i++) {
		free(tracks->track[i]->run);
		free(tracks->track[i]);
	}
	tr_tracks_init(tracks);
}

struct tr_track *tr_tracks_find(struct tr_tracks *tracks, uint16_t id)
{
	struct tr_track *track;

	for (unsigned i = 0; i < tracks->n; i++) {
		if (tracks->track[i]->id == id)
			return tracks->track[i];
	}
	if (tracks->n == TR_TRACKS_MAX)
		return NULL;
	track = calloc(1, sizeof(*track));
	if (!track)
		return NULL;
	track->run = calloc(TR_TRACK_RUNS_MAX, sizeof(track->run[0]));
	if (!track->run) {
		free(track);
		return NULL;
	}
	track->id = id;
	track->runs = 1;
	tracks->track[tracks->n++] = track;
	return track;
}

static bool test_and_set(struct tr_track *track, uint64_t number)
{
	uint64_t *word = &track->seen[number / 64 % WORDS], bit = (uint64_t)1 << (number & 63);
	bool was = *word & bit;

	*word |= bit;
	return was;
}

/* The highest number moves up to `to`: what lies between was not seen. */
static void advance(struct tr_track *track, uint64_t from, uint64_t to)
{
	if (to - from >= TR_TRACK_WINDOW) {
		memset(track->seen, 0, sizeof(track->seen));
	} else {
		/* Words are cleared when their first number is passed, as in tr_tracks_add. */
		for (uint64_t word = from / 64 + 1; word <= to / 64; word++)
			track->seen[word % WORDS] = 0;
	}
	test_and_set(track, to);
}

static void begin_run(struct tr_track *track, const struct tr_stamp *stamp)
{
	struct tr_run *run = &track->run[track->runs - 1];
	uint64_t number = TR_TRACK_ORIGIN + stamp->sequence;

	*run = (struct tr_run){
		.lowest = number,
		.highest = number,
		.received = 1,
		.first_time = stamp->time_ns,
		.last_time = stamp->time_ns,
	};
	memset(track->seen, 0, sizeof(track->seen));
	test_and_set(track, number);
}

void tr_track_odd(struct tr_track *track, const struct tr_stamp *stamp)
{
	struct tr_run *run = &track->run[track->runs - 1];
	/* Serial number arithmetic (RFC 1982): the difference modulo 2^32, as a signed number. */
	int32_t ahead = (int32_t)(stamp->sequence - (uint32_t)run->highest);
	uint64_t number = run->highest + (uint64_t)(int64_t)ahead;

	if (!run->received) {
		begin_run(track, stamp);
		return;
	}
	if (ahead > 0) {
		advance(track, run->highest, number);
		run->highest = number;
		run->last_time = stamp->time_ns;
		run->received++;
		return;
	}
	if (stamp->time_ns > run->last_time + TR_TRACK_RESTART_NS &&
	    track->runs < TR_TRACK_RUNS_MAX) {
		track->runs++;
		begin_run(track, stamp);
		return;
	}
	run->received++;
	/* The window holds whole words: the oldest one may be cleared in part. */
	if ((uint64_t) - (int64_t)ahead < TR_TRACK_WINDOW - 64 && test_and_set(track, number)) {
		run->duplicates++;
		return;
	}
	if (ahead == 0) {
		run->duplicates++;
		return;
	}
	run->reordered++;
	if (number < run->lowest) {
		run->lowest = number;
		run->first_time = HO_MIN(run->first_time, stamp->time_ns);
	}
}

/* A run as one receiver saw it, of which stream. */
struct view {
	uint16_t id;
	const struct tr_run *run;
};

static int by_id_and_time(const void *a, const void *b)
{
	const struct view *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->run->first_time != y->run->first_time)
		return x->run->first_time < y->run->first_time ? -1 : 1;
	return x->run->lowest < y->run->lowest ? -1 : x->run->lowest > y->run->lowest;
}

/* Is this a piece of the run that `whole` was put together from? It is when it overlaps it in
 * time, and also when it only goes on where that one ended: a restart goes back in number. */
static bool same_run(const struct tr_run *whole, const struct tr_run *piece)
{
	return piece->first_time <= whole->last_time || piece->lowest > whole->highest;
}

static uint64_t lost_of(const struct tr_run *run)
{
	uint64_t span = run->highest - run->lowest + 1, different = run->received - run->duplicates;

	/* A frame older than the window may be a duplicate that was not recognised. */
	return span > different ? span - different : 0;
}

void tr_track_sum_fini(struct tr_track_sum *sum)
{
	free(sum->each);
	sum->each = NULL;
	sum->n_each = 0;
}

struct tr_stream_sum *tr_track_sum_of(struct tr_track_sum *sum, uint16_t id)
{
	struct tr_stream_sum *grown;
	unsigned at = 0;

	while (at < sum->n_each && sum->each[at].id < id)
		at++;
	if (at < sum->n_each && sum->each[at].id == id)
		return &sum->each[at];
	grown = realloc(sum->each, (sum->n_each + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	sum->each = grown;
	memmove(&grown[at + 1], &grown[at], (sum->n_each - at) * sizeof(*grown));
	grown[at] = (struct tr_stream_sum){ .id = id };
	sum->n_each++;
	return &grown[at];
}

int tr_tracks_sum(struct tr_tracks *const *views, unsigned n, struct tr_track_sum *out)
{
	struct tr_run whole = { 0 };
	struct tr_stream_sum *stream = NULL;
	struct view *all;
	size_t count = 0;

	*out = (struct tr_track_sum){ 0 };
	for (unsigned v = 0; v < n; v++) {
		out->untracked += views[v]->untracked;
		for (unsigned s = 0; s < views[v]->n; s++)
			count += views[v]->track[s]->runs;
	}
	if (!count)
		return 0;
	all = calloc(count, sizeof(*all));
	if (!all)
		return -ENOMEM;
	count = 0;
	for (unsigned v = 0; v < n; v++) {
		for (unsigned s = 0; s < views[v]->n; s++) {
			struct tr_track *track = views[v]->track[s];

			for (unsigned r = 0; r < track->runs; r++)
				all[count++] = (struct view){ track->id, &track->run[r] };
		}
	}
	qsort(all, count, sizeof(*all), by_id_and_time);
	for (size_t i = 0; i < count; i++) {
		const struct tr_run *run = all[i].run;
		bool same = i && all[i].id == all[i - 1].id;

		if (!(same && same_run(&whole, run)) && i)
			stream->lost += lost_of(&whole);
		if (!same)
			stream = tr_track_sum_of(out, all[i].id);
		if (!stream) {
			free(all);
			tr_track_sum_fini(out);
			return -ENOMEM;
		}
		stream->received += run->received;
		stream->duplicates += run->duplicates;
		stream->reordered += run->reordered;
		out->received += run->received;
		out->duplicates += run->duplicates;
		out->reordered += run->reordered;
		if (same && same_run(&whole, run)) {
			whole.lowest = HO_MIN(whole.lowest, run->lowest);
			whole.highest = HO_MAX(whole.highest, run->highest);
			whole.last_time = HO_MAX(whole.last_time, run->last_time);
			whole.received += run->received;
			whole.duplicates += run->duplicates;
			continue;
		}
		out->streams += !same;
		out->runs++;
		whole = *run;
	}
	stream->lost += lost_of(&whole);
	for (unsigned i = 0; i < out->n_each; i++)
		out->lost += out->each[i].lost;
	free(all);
	return 0;
}
