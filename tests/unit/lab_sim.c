// SPDX-License-Identifier: BSD-2-Clause
/* The event queue against a plain sorted list, and its two ways of running. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lab/sim.h"

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* --- the model: a list sorted by time, then by order of scheduling ------------------------ */

#define EVENTS 300

struct model_event {
	struct sim_event ev;
	bool scheduled;
	sim_ps at;
	uint64_t order;
};

struct model {
	struct sim *sim;
	struct model_event event[EVENTS];
	uint64_t orders, ran;
	unsigned used; /* events of them */
	sim_ps spread; /* how far ahead they are scheduled */
	sim_ps now;
	uint64_t random;
};

static struct model model;

static struct model_event *model_first(void)
{
	struct model_event *first = NULL;

	for (int i = 0; i < EVENTS; i++) {
		struct model_event *e = &model.event[i];

		if (e->scheduled && (!first || e->at < first->at ||
				     (e->at == first->at && e->order < first->order)))
			first = e;
	}
	return first;
}

static void model_schedule(struct model_event *e, sim_ps at)
{
	sim_schedule(model.sim, &e->ev, at);
	e->scheduled = true;
	e->at = at < model.now ? model.now : at;
	e->order = ++model.orders;
	assert_int_equal(e->ev.at, e->at);
}

static void model_ran(void *arg)
{
	struct model_event *e = arg;

	assert_ptr_equal(e, model_first());
	assert_int_equal(sim_now(model.sim), e->at);
	assert_false(sim_scheduled(&e->ev));
	model.now = e->at;
	e->scheduled = false;
	model.ran++;
	/* Events schedule others, themselves too. */
	if (random_next(&model.random) % 3 == 0)
		model_schedule(&model.event[random_next(&model.random) % model.used],
			       model.now + random_next(&model.random) % 50);
	if (random_next(&model.random) % 4 == 0) {
		struct model_event *other = &model.event[random_next(&model.random) % model.used];

		sim_cancel(model.sim, &other->ev);
		other->scheduled = false;
	}
}

static void against_sorted_list(unsigned used, sim_ps spread)
{
	model = (struct model){ .random = 42 + used, .used = used, .spread = spread };
	assert_int_equal(sim_create(&model.sim), 0);
	for (int i = 0; i < EVENTS; i++)
		sim_event_init(&model.event[i].ev, model_ran, &model.event[i]);
	for (int op = 0; op < 100000; op++) {
		struct model_event *e = &model.event[random_next(&model.random) % model.used];
		struct model_event *first = model_first();

		assert_int_equal(sim_next(model.sim), first ? first->at : SIM_NEVER);
		assert_int_equal(sim_scheduled(&e->ev), e->scheduled);
		switch (random_next(&model.random) % 8) {
		case 0 ... 4:
			/* Few different times, so that many are equal; some in the past. */
			model_schedule(e, model.now + random_next(&model.random) % model.spread -
						  (model.now > 20 ? 20 : 0));
			break;
		case 5:
			sim_cancel(model.sim, &e->ev);
			e->scheduled = false;
			break;
		case 6:
			assert_int_equal(sim_step(model.sim), first != NULL);
			break;
		case 7: {
			sim_ps until = model.now + random_next(&model.random) % 30;

			sim_run_until(model.sim, until);
			model.now = until;
			assert_int_equal(sim_now(model.sim), until);
			assert_true(sim_next(model.sim) > until);
			break;
		}
		}
	}
	assert_true(model.ran > 10000);
	sim_destroy(model.sim);
}

/* Many at few different times; and so few that the earliest ones are all that is kept sorted. */
static void test_against_sorted_list(void **state)
{
	against_sorted_list(EVENTS, 200);
	against_sorted_list(40, 200);
	against_sorted_list(20, 100);
	against_sorted_list(12, 60);
	against_sorted_list(8, 60);
}

/* --- advancing from a CPU ----------------------------------------------------------------- */

static uint32_t stop;
static int ran;

static void count(void *arg)
{
	ran++;
}

static void request_stop(void *arg)
{
	ran++;
	stop = 1;
}

static void test_advance(void **state)
{
	struct sim_event plain, stops, outer;
	struct sim *sim;

	assert_int_equal(sim_create(&sim), 0);
	sim_event_init(&plain, count, NULL);
	sim_event_init(&stops, request_stop, NULL);
	sim_event_init(&outer, count, NULL);
	outer.outer = true;
	ran = 0;
	stop = 0;

	assert_true(sim_try_advance(sim, 100));
	assert_int_equal(sim_now(sim), 100);
	sim_schedule(sim, &plain, 150);
	assert_true(sim_try_advance(sim, 49));
	/* An event at the very end must run first. */
	assert_false(sim_try_advance(sim, 1));
	assert_int_equal(sim_now(sim), 149);
	assert_int_equal(sim_advance(sim, 150, &stop), SIM_REACHED);
	assert_int_equal(ran, 1);

	sim_schedule(sim, &stops, 170);
	assert_int_equal(sim_advance(sim, 200, &stop), SIM_STOPPED);
	assert_int_equal(sim_now(sim), 170);
	assert_int_equal(sim_advance(sim, 200, &stop), SIM_STOPPED);
	stop = 0;
	sim_schedule(sim, &outer, 180);
	assert_int_equal(sim_advance(sim, 200, &stop), SIM_BLOCKED);
	assert_int_equal(sim_now(sim), 170);
	assert_int_equal(ran, 2);
	sim_cancel(sim, &outer);
	/* For ever ends when there is nothing left, and does not move time. */
	assert_int_equal(sim_advance(sim, SIM_NEVER, &stop), SIM_BLOCKED);
	assert_int_equal(sim_now(sim), 170);
	sim_destroy(sim);
}

/* --- horizon, pokes, digest --------------------------------------------------------------- */

struct spender {
	struct sim *sim;
	enum sim_advance result;
	sim_ps reached;
	bool fast;
};

static void spend_past_horizon(void *arg)
{
	struct spender *s = arg;

	s->fast = sim_try_advance(s->sim, 1000);
	s->result = sim_advance(s->sim, sim_now(s->sim) + 1000, &stop);
	s->reached = sim_now(s->sim);
}

static void test_horizon(void **state)
{
	struct spender s = { 0 };
	struct sim_event ev;

	assert_int_equal(sim_create(&s.sim), 0);
	stop = 0;
	sim_event_init(&ev, spend_past_horizon, &s);
	ev.outer = true;
	sim_schedule(s.sim, &ev, 10);
	sim_run_until(s.sim, 500);
	assert_false(s.fast);
	assert_int_equal(s.result, SIM_BLOCKED);
	assert_int_equal(s.reached, 10);
	assert_int_equal(sim_now(s.sim), 500);
	/* Exactly up to it is allowed. */
	sim_schedule(s.sim, &ev, 600);
	sim_run_until(s.sim, 1600);
	assert_true(s.fast);
	sim_destroy(s.sim);
}

static void test_poke(void **state)
{
	struct sim_poke a = { .fn = count }, b = { .fn = count };
	struct sim *sim;

	assert_int_equal(sim_create(&sim), 0);
	ran = 0;
	sim_poke_add(sim, &a);
	sim_poke_add(sim, &b);
	sim_poke(sim);
	assert_false(sim_try_advance(sim, 1));
	assert_int_equal(ran, 0);
	sim_run_until(sim, 10);
	assert_int_equal(ran, 2);
	sim_poke_remove(sim, &a);
	sim_poke(sim);
	assert_false(sim_step(sim));
	assert_int_equal(ran, 3);
	sim_destroy(sim);
}

static uint64_t digest_of(sim_ps a, sim_ps b)
{
	struct sim_event ea, eb;
	struct sim *sim;
	uint64_t digest;

	assert_int_equal(sim_create(&sim), 0);
	sim_event_init(&ea, count, NULL);
	sim_event_init(&eb, count, NULL);
	sim_schedule(sim, &ea, a);
	sim_schedule(sim, &eb, b);
	sim_run_until(sim, 1000);
	digest = sim_digest(sim);
	assert_int_equal(sim_events(sim), 2);
	sim_destroy(sim);
	return digest;
}

static void test_digest(void **state)
{
	assert_true(digest_of(10, 20) == digest_of(10, 20));
	assert_true(digest_of(10, 20) != digest_of(20, 10));
	assert_true(digest_of(10, 20) != digest_of(10, 21));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_sorted_list),
		cmocka_unit_test(test_advance),
		cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_poke),
		cmocka_unit_test(test_digest),
	};

	return cmocka_run_group_tests_name("lab_sim", tests, NULL, NULL);
}
