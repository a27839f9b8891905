// SPDX-License-Identifier: BSD-2-Clause
/* Loss, order and duplicates against a model that remembers every number. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "traffic/track.h"

#define FRAMES 300000u

/* What arrives: numbers in the order of arrival. */
struct arrival {
	uint32_t number; /* from 0, as sent */
	unsigned view;   /* at which receiver */
};

/* The definitions, written down with unlimited memory. */
struct model {
	uint8_t *seen;
	int64_t highest[4], lowest, top;
	uint64_t received, different, reordered, duplicates;
};

static void model_add(struct model *m, const struct arrival *a)
{
	m->received++;
	if (m->seen[a->number] & (1u << a->view)) {
		m->duplicates++;
	} else {
		if ((int64_t)a->number < m->highest[a->view])
			m->reordered++;
		m->different += m->seen[a->number] == 0;
	}
	m->seen[a->number] |= (uint8_t)(1u << a->view);
	m->highest[a->view] = HO_MAX(m->highest[a->view], (int64_t)a->number);
	m->lowest = HO_MIN(m->lowest, (int64_t)a->number);
	m->top = HO_MAX(m->top, (int64_t)a->number);
}

static uint64_t random_state;

static uint32_t rnd(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

/*
 * Numbers 0.. with loss, duplicates and displacement by up to `far`; number n goes to receiver
 * hash(n) of `views`, as a flow hash would spread them (and a duplicate goes where the first one
 * went).
 */
static unsigned make(struct arrival *out, unsigned n, unsigned views, uint32_t far)
{
	unsigned k = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct arrival a = { i, (i * 2654435761u >> 16) % views };

		if (rnd(100) < 3)
			continue;
		out[k++] = a;
		if (rnd(100) < 2)
			out[k++] = a;
	}
	/* Within blocks, so that no frame moves farther than that. */
	for (unsigned i = 0; far && i < k; i++) {
		unsigned end = HO_MIN((i / far + 1) * far, k);

		if (rnd(100) < 5) {
			unsigned j = i + rnd(end - i);
			struct arrival keep = out[i];

			out[i] = out[j];
			out[j] = keep;
		}
	}
	return k;
}

static void add(struct tr_tracks *t, uint16_t stream, uint32_t sequence, uint64_t time)
{
	struct tr_stamp stamp = { .stream = stream, .sequence = sequence, .time_ns = time };

	tr_tracks_add(t, &stamp);
}

/* Puts them together; what is said of each stream must sum up to what is said of all. */
static void sum_up(struct tr_tracks *const *views, unsigned n, struct tr_track_sum *sum)
{
	struct tr_stream_sum all = { 0 };

	assert_int_equal(tr_tracks_sum(views, n, sum), 0);
	assert_int_equal(sum->n_each, sum->streams);
	for (unsigned i = 0; i < sum->n_each; i++) {
		assert_true(!i || sum->each[i].id > sum->each[i - 1].id);
		all.received += sum->each[i].received;
		all.lost += sum->each[i].lost;
		all.reordered += sum->each[i].reordered;
		all.duplicates += sum->each[i].duplicates;
	}
	assert_int_equal(all.received, sum->received);
	assert_int_equal(all.lost, sum->lost);
	assert_int_equal(all.reordered, sum->reordered);
	assert_int_equal(all.duplicates, sum->duplicates);
	tr_track_sum_fini(sum);
}

/* Loss belongs to the stream that had it. */
static void test_each(void **state)
{
	struct tr_tracks a, b, *both[] = { &a, &b };
	struct tr_track_sum sum;

	tr_tracks_init(&a);
	tr_tracks_init(&b);
	for (uint32_t i = 0; i < 100; i++) {
		add(&a, 7, i, i);
		if (i < 40 || i >= 43)
			add(i % 2 ? &a : &b, 2, i, i);
	}
	add(&b, 2, 98, 98);
	assert_int_equal(tr_tracks_sum(both, 2, &sum), 0);
	assert_int_equal(sum.n_each, 2);
	assert_int_equal(sum.each[0].id, 2);
	assert_int_equal(sum.each[0].lost, 3);
	assert_int_equal(sum.each[0].received, 98);
	assert_int_equal(sum.each[0].duplicates, 1);
	assert_int_equal(sum.each[1].id, 7);
	assert_int_equal(sum.each[1].lost, 0);
	assert_int_equal(sum.each[1].received, 100);
	/* Also after more were put in between. */
	assert_int_equal(tr_track_sum_of(&sum, 5)->id, 5);
	assert_int_equal(tr_track_sum_of(&sum, 7)->received, 100);
	assert_int_equal(sum.n_each, 3);
	tr_track_sum_fini(&sum);
	tr_tracks_fini(&a);
	tr_tracks_fini(&b);
}

static void check(unsigned views, uint32_t far, uint32_t first_number, uint64_t seed)
{
	struct arrival *arrivals = calloc(2 * FRAMES, sizeof(*arrivals));
	struct model m = { .seen = calloc(FRAMES, 1),
			   .highest = { -1, -1, -1, -1 },
			   .lowest = INT64_MAX };
	struct tr_tracks tracks[4], *all[4];
	struct tr_track_sum sum;
	unsigned n;

	random_state = seed;
	n = make(arrivals, FRAMES, views, far);
	for (unsigned v = 0; v < views; v++) {
		tr_tracks_init(&tracks[v]);
		all[v] = &tracks[v];
	}
	for (unsigned i = 0; i < n; i++) {
		struct tr_stamp stamp = { .stream = 3,
					  .sequence = first_number + arrivals[i].number,
					  .time_ns = 1000u * arrivals[i].number };

		model_add(&m, &arrivals[i]);
		tr_tracks_add(&tracks[arrivals[i].view], &stamp);
	}
	sum_up(all, views, &sum);
	assert_int_equal(sum.streams, 1);
	assert_int_equal(sum.runs, 1);
	assert_int_equal(sum.received, m.received);
	assert_int_equal(sum.duplicates, m.duplicates);
	assert_int_equal(sum.reordered, m.reordered);
	assert_int_equal(sum.lost, (uint64_t)(m.top - m.lowest + 1) - m.different);
	assert_int_equal(sum.untracked, 0);
	for (unsigned v = 0; v < views; v++)
		tr_tracks_fini(&tracks[v]);
	free(m.seen);
	free(arrivals);
}

static void test_against_model(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		for (unsigned views = 1; views <= 4; views++) {
			check(views, 0, 0, seed);
			check(views, 50, 0, seed);
			/* Displaced by nearly all of the window. */
			check(views, 30000, 0, seed);
		}
	}
}

static void test_wrap(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		check(1, 0, UINT32_MAX - 1000, seed);
		check(1, 5000, UINT32_MAX - 100000, seed);
		check(3, 5000, UINT32_MAX - 150000, seed);
	}
}

static void test_restart(void **state)
{
	struct tr_tracks a, b, *both[] = { &a, &b };
	struct tr_track_sum sum;
	const uint64_t ms = 1000000;

	tr_tracks_init(&a);
	tr_tracks_init(&b);
	/* Ten frames, one lost; a second run five minutes later, whose first two are lost. */
	for (uint32_t i = 0; i < 10; i++) {
		if (i != 5)
			add(i % 2 ? &a : &b, 0, i, i * ms);
	}
	for (uint32_t i = 2; i < 8; i++)
		add(i % 3 ? &a : &b, 0, i, 300000 * ms + i * ms);
	sum_up(both, 2, &sum);
	assert_int_equal(sum.streams, 1);
	assert_int_equal(sum.runs, 2);
	assert_int_equal(sum.received, 15);
	assert_int_equal(sum.duplicates, 0);
	assert_int_equal(sum.reordered, 0);
	/* What is missing before the first number seen cannot be known here. */
	assert_int_equal(sum.lost, 1);
	tr_tracks_fini(&a);
	tr_tracks_fini(&b);
}

static void test_old_and_many(void **state)
{
	struct tr_tracks t, *one[] = { &t };
	struct tr_track_sum sum;

	tr_tracks_init(&t);
	/* Far behind the window: reordered, and not known to be a duplicate. */
	add(&t, 9, 200000, 5);
	add(&t, 9, 100000, 4);
	add(&t, 9, 200000, 5);
	sum_up(one, 1, &sum);
	assert_int_equal(sum.reordered, 1);
	assert_int_equal(sum.duplicates, 1);
	assert_int_equal(sum.lost, 200000 - 100000 + 1 - 2);
	/* A jump over the whole window forgets it. */
	add(&t, 9, 400000, 6);
	add(&t, 9, 400000 - 65536 + 200, 5);
	sum_up(one, 1, &sum);
	assert_int_equal(sum.reordered, 2);
	tr_tracks_fini(&t);
	tr_tracks_init(&t);
	for (uint32_t s = 0; s < TR_TRACKS_MAX + 50; s++)
		add(&t, (uint16_t)s, 0, 0);
	sum_up(one, 1, &sum);
	assert_int_equal(sum.streams, TR_TRACKS_MAX);
	assert_int_equal(sum.untracked, 50);
	tr_tracks_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model), cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_restart),       cmocka_unit_test(test_each),
		cmocka_unit_test(test_old_and_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
