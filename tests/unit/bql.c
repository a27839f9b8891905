// SPDX-License-Identifier: BSD-2-Clause
/* Queue limits against a second, straightforward model of the algorithm, and over a port. */
#include "mac/bql.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* The algorithm in signed 64-bit numbers that never wrap, as its description reads. */
struct model {
	int64_t queued, completed, limit, prev_over, prev_queued, last, prev_last, lowest;
	uint64_t slack_start;
};

static int64_t pos(int64_t x)
{
	return x > 0 ? x : 0;
}

static void model_completed(struct model *m, int64_t bytes, uint64_t now)
{
	int64_t over = pos(m->queued - m->completed - m->limit);
	int64_t completed = m->completed + bytes;
	int64_t left = m->queued - completed;
	int64_t limit = m->limit;

	if ((over && !left) || (m->prev_over && completed > m->prev_queued)) {
		limit += pos(completed - m->prev_queued) + m->prev_over;
		m->slack_start = now;
		m->lowest = INT64_MAX;
	} else if (left && m->prev_queued != m->completed && completed <= m->prev_queued) {
		int64_t a = pos(limit + m->prev_over - 2 * bytes);
		int64_t b = m->prev_over ? pos(m->prev_last - m->prev_over) : 0;

		m->lowest = m->lowest < (a > b ? a : b) ? m->lowest : a > b ? a : b;
		if (now > m->slack_start + MAC_DQL_HOLD_NS) {
			limit = pos(limit - m->lowest);
			m->slack_start = now;
			m->lowest = INT64_MAX;
		}
	}
	m->prev_over = limit == m->limit ? over : 0;
	m->limit = limit;
	m->prev_last = m->last;
	m->completed = completed;
	m->prev_queued = m->queued;
}

/* Random queueing and completing, with counts that wrap: both agree at every step. */
static void test_against_model(void **state)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t r = seed * 0x9e3779b97f4a7c15ull, now = 0;
		struct model m = { .lowest = INT64_MAX };
		struct mac_dql d;
		/* Start just below the wrap of the 32-bit counts. */
		uint32_t base = (uint32_t)(0u - rnd(&r) % 3000000);

		mac_dql_init(&d, MAC_DQL_HOLD_NS, 0);
		d.queued = d.completed = d.prev_queued = d.adj_limit = base;
		for (unsigned step = 0; step < 4000; step++) {
			now += rnd(&r) % 2000000;
			while (rnd(&r) % 4 && mac_dql_avail(&d) >= 0) {
				uint32_t bytes = 60 + (uint32_t)(rnd(&r) % 1500);

				if (rnd(&r) % 50 == 0)
					bytes = 65000;
				mac_dql_queued(&d, bytes);
				m.queued += bytes;
				m.last = bytes;
			}
			if (m.queued > m.completed && rnd(&r) % 2) {
				int64_t left = m.queued - m.completed;
				int64_t done = rnd(&r) % 3 ? (int64_t)(rnd(&r) % (uint64_t)left) + 1
							   : left;

				mac_dql_completed(&d, (uint32_t)done, now);
				model_completed(&m, done, now);
			}
			assert_int_equal(d.limit, m.limit);
			assert_int_equal((uint32_t)(d.queued - base), m.queued);
			assert_int_equal((uint32_t)(d.completed - base), m.completed);
			assert_int_equal(mac_dql_avail(&d), m.limit + m.completed - m.queued);
		}
		assert_true(m.queued > 3000000);
	}
}

/* The first object passes at limit 0, the second does not; completing the first raises the limit.
 */
static void test_first_steps(void **state)
{
	struct mac_dql d;

	mac_dql_init(&d, MAC_DQL_HOLD_NS, 0);
	assert_int_equal(mac_dql_avail(&d), 0);
	mac_dql_queued(&d, 1000);
	assert_int_equal(mac_dql_avail(&d), -1000);
	mac_dql_completed(&d, 1000, 1);
	/* Over the limit by 1000, nothing left: starved; 1000 were queued and done. */
	assert_int_equal(d.limit, 1000);
	assert_int_equal(mac_dql_avail(&d), 1000);
}

/*
 * A wire that takes `rate` bytes per interval and a sender that always has more: the queue must
 * never run empty for long, and settle at about what two intervals need.
 */
static void test_converges(void **state)
{
	const uint32_t rate = 62500, frame = 1500;
	uint32_t queued = 0, idle_late = 0;
	uint64_t now = 0;
	struct mac_dql d;

	mac_dql_init(&d, MAC_DQL_HOLD_NS, 0);
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t done;

		while (mac_dql_avail(&d) >= 0) {
			mac_dql_queued(&d, frame);
			queued += frame;
		}
		now += 50000;
		done = HO_MIN(queued, rate / frame * frame);
		if (done < rate / frame * frame && i > 100000)
			idle_late++;
		queued -= done;
		mac_dql_completed(&d, done, now);
	}
	assert_int_equal(idle_late, 0);
	assert_in_range(d.limit, rate / 2, 2 * rate + 2 * frame);
}

/* A limit far too high comes down by its slack once a second. */
static void test_slack_is_taken_off(void **state)
{
	struct mac_dql d;
	uint64_t now = 0;

	mac_dql_init(&d, MAC_DQL_HOLD_NS, 0);
	d.limit = d.adj_limit = 1000000;
	for (unsigned i = 0; i < 30000; i++) {
		while (mac_dql_avail(&d) >= 0)
			mac_dql_queued(&d, 1500);
		now += 100000;
		mac_dql_completed(&d, 15000, now);
		if (now < MAC_DQL_HOLD_NS)
			assert_int_equal(d.limit, 1000000);
	}
	assert_in_range(d.limit, 15000, 33000);
}

/* --- over a port ---------------------------------------------------------------------------- */

/* A transmit queue that takes what fits and completes when told. */
struct wire {
	struct port_txq q;
	struct pk_slot ring[256];
	unsigned room, n;
};

static unsigned wire_tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	struct wire *w = (struct wire *)q;
	unsigned i = 0;

	while (i < n && w->n < w->room)
		w->ring[w->n++] = slots[i++];
	return i;
}

static struct port_work wire_done(struct wire *w, unsigned frames)
{
	struct port_work done = { 0 };

	frames = HO_MIN(frames, w->n);
	for (unsigned i = 0; i < frames; i++) {
		done.packets++;
		done.bytes += w->ring[i].len;
	}
	memmove(w->ring, w->ring + frames, (w->n - frames) * sizeof(w->ring[0]));
	w->n -= frames;
	return done;
}

static void test_over_a_port(void **state)
{
	struct port_ops ops = { 0 };
	struct port port = { .ops = &ops };
	struct wire w = { .q = { .tx = wire_tx, .port = &port }, .room = 200 };
	struct pk_slot s[64];
	struct port_work done;
	struct mac_bql bql;
	struct ho_err err;

	assert_int_equal(rt_os_create(&port.rt, &err), 0);
	for (unsigned i = 0; i < 64; i++)
		s[i] = (struct pk_slot){ .len = 1000 };
	mac_bql_init(&bql, &w.q, false);
	assert_int_equal(mac_bql_tx(&bql, s, 64), 64);
	wire_done(&w, 64);

	mac_bql_init(&bql, &w.q, true);
	assert_int_equal(mac_bql_tx(&bql, s, 64), 1);
	assert_true(mac_bql_stopped(&bql));
	assert_int_equal(mac_bql_tx(&bql, s, 64), 0);
	done = wire_done(&w, 1);
	mac_bql_completed(&bql, &done);
	assert_false(mac_bql_stopped(&bql));
	/* Limit 1000: passes at 0 and at 1000. */
	assert_int_equal(mac_bql_tx(&bql, s, 64), 2);
	assert_int_equal(bql.stops, 2);

	/* What the port did not take is not counted. */
	bql.dql.limit = 50000;
	done = wire_done(&w, 2);
	mac_bql_completed(&bql, &done);
	w.room = 10;
	s[50].len = 500; /* the last that the limit allows, but the port takes only ten */
	assert_int_equal(mac_bql_tx(&bql, s, 64), 10);
	assert_int_equal(bql.dql.last_queued, 1000);
	assert_int_equal(bql.dql.queued - bql.dql.completed, 10000);
	assert_false(mac_bql_stopped(&bql));
	rt_destroy(port.rt);
}

/* Whatever is refused and completed in between, bytes in the ring = queued - completed. */
static void test_port_property(void **state)
{
	struct port_ops ops = { 0 };
	struct port port = { .ops = &ops };
	struct ho_err err;

	assert_int_equal(rt_os_create(&port.rt, &err), 0);
	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint64_t r = seed * 0x9e3779b97f4a7c15ull;
		struct wire w = { .q = { .tx = wire_tx, .port = &port },
				  .room = 1 + (unsigned)(rnd(&r) % 255) };
		struct mac_bql bql;

		mac_bql_init(&bql, &w.q, true);
		for (unsigned step = 0; step < 2000; step++) {
			struct pk_slot s[64];
			struct port_work done;
			uint32_t bytes = 0;
			unsigned n = (unsigned)(rnd(&r) % 65);

			for (unsigned i = 0; i < n; i++)
				s[i] = (struct pk_slot){ .len = (uint16_t)(60 + rnd(&r) % 1400) };
			if (n)
				mac_bql_tx(&bql, s, n);
			for (unsigned i = 0; i < w.n; i++)
				bytes += w.ring[i].len;
			assert_int_equal(bql.dql.queued - bql.dql.completed, bytes);
			done = wire_done(&w, (unsigned)(rnd(&r) % 40));
			mac_bql_completed(&bql, &done);
			/* Nobody restarts an empty queue: it must not be stopped. */
			assert_false(w.n == 0 && bql.stopped);
		}
	}
	rt_destroy(port.rt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model), cmocka_unit_test(test_first_steps),
		cmocka_unit_test(test_converges),     cmocka_unit_test(test_slack_is_taken_off),
		cmocka_unit_test(test_over_a_port),   cmocka_unit_test(test_port_property),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
