// SPDX-License-Identifier: BSD-2-Clause
/* The pacer on the virtual clock: exact means, bounded catching up, what it reports. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "lab/exec.h"
#include "packet/slot.h"
#include "traffic/pacer.h"

#define SECOND 1000000000u

static struct sim *sim;
static struct rt *rt;
static struct tr_stop stop;

static double rate_error(const struct tr_pacer *pacer)
{
	double error;

	if (!tr_pacer_rate_error(pacer, &error))
		fail_msg("no mean rate");
	return error;
}

static int setup(void **state)
{
	struct lab_machine machine;

	lab_machine_defaults(&machine);
	machine.cpus = 1;
	machine.cost[RT_COST_RELAX] = 10 * SIM_PS_PER_NS;
	machine.cost[RT_COST_GEN_FRAME] = 20 * SIM_PS_PER_NS;
	if (sim_create(&sim) || lab_exec_create(sim, "host", &machine, NULL, &rt, NULL))
		return -1;
	return tr_stop_init(&stop, rt, NULL);
}

static int teardown(void **state)
{
	tr_stop_fini(&stop);
	rt_destroy(rt);
	sim_destroy(sim);
	return 0;
}

/* A sender without frames. */
struct run {
	struct tr_pacer_config config;
	uint64_t duration_ns;
	uint32_t (*size)(uint64_t frame);
	uint64_t stall_at_ns, stall_ns; /* once, from the start */
	/* Results. */
	struct tr_pacer pacer;
	uint64_t frames, bytes, begin_ns, end_ns;
	unsigned most_at_once;
	double fastest; /* frames/s over any 20 bursts */
};

static uint32_t size_60(uint64_t frame)
{
	return 60;
}

static uint32_t size_mixed(uint64_t frame)
{
	static const uint32_t sizes[] = { 60, 1514, 590, 60, 60 };

	return sizes[frame % HO_ARRAY_LEN(sizes)];
}

static void send(void *arg)
{
	struct run *r = arg;
	uint64_t times[20] = { 0 }, counts[20] = { 0 }, burst = 0, now;
	bool stalled = r->stall_ns == 0;

	r->begin_ns = rt_now_ns(rt);
	tr_pacer_start(&r->pacer, r->begin_ns);
	for (;;) {
		unsigned n = tr_pacer_wait(&r->pacer, r->begin_ns + r->duration_ns, &now);
		uint64_t bytes = 0, *then = &times[burst % 20], *before = &counts[burst % 20];

		if (!n)
			break;
		for (unsigned i = 0; i < n; i++)
			bytes += r->size(r->frames + i);
		rt_spend(rt, RT_COST_GEN_FRAME, n);
		tr_pacer_sent(&r->pacer, now, n, bytes);
		if (burst++ >= 20)
			r->fastest = fmax(r->fastest, (double)(r->frames - *before) * 1e9 /
							      (double)(now - *then));
		*then = now;
		*before = r->frames;
		r->frames += n;
		r->bytes += bytes;
		r->most_at_once = HO_MAX(r->most_at_once, n);
		if (!stalled && now >= r->begin_ns + r->stall_at_ns) {
			stalled = true;
			rt_sleep_until(rt, now + r->stall_ns);
		}
	}
	r->end_ns = rt_now_ns(rt);
}

static void run(struct run *r)
{
	struct rt_task_attr attr = { .name = "send", .cpu = 0 };
	struct rt_task *task;
	struct ho_err err = { 0 };

	r->size = r->size ? r->size : size_60;
	if (tr_pacer_init(&r->pacer, rt, &stop, &r->config, 60, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(rt_spawn(rt, &attr, send, r, &task, NULL), 0);
	rt_join(rt, task);
}

static void test_mean_is_exact(void **state)
{
	static const struct {
		double pps;
		uint64_t duration_ns;
	} cases[] = {
		{ 1, 5ull * SECOND },     { 7, 3ull * SECOND },  { 1000, 2ull * SECOND },
		{ 12345, SECOND },        { 1e6, SECOND / 10 },  { 1488095.2, SECOND / 10 },
		{ 3333333, SECOND / 10 }, { 20e6, SECOND / 50 }, { 31234567, SECOND / 50 },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct run r = { .config.rate = { HO_RATE_PPS, cases[i].pps },
				 .duration_ns = cases[i].duration_ns };
		double expected = cases[i].pps * (double)cases[i].duration_ns / 1e9;

		run(&r);
		/* The first frame goes at time 0: one more than whole gaps. */
		if (fabs((double)r.frames - expected) > r.most_at_once + 1)
			fail_msg("%g pps: %llu frames instead of %g", cases[i].pps,
				 (unsigned long long)r.frames, expected);
		if (fabs(rate_error(&r.pacer)) > 1e-4)
			fail_msg("%g pps: off by %g", cases[i].pps, rate_error(&r.pacer));
		/* A turn of the loop is 10 ns, a burst at most 64 frames of 20 ns. */
		assert_true(r.pacer.error_ns.max <= 64 * 20 + TR_PACER_BURST_NS + 10);
		assert_int_equal(r.pacer.error_ns.count, r.frames);
		assert_int_equal(r.pacer.slipped_ns, 0);
		assert_true(r.end_ns >= r.begin_ns + r.duration_ns);
		assert_true(cases[i].pps > 1e4 || r.pacer.sleeps > 0);
	}
}

static void test_bits(void **state)
{
	/* 5 Gbit/s at layer 1: 24 bytes a frame beside those we count; layer 2: 4. */
	static const struct {
		enum ho_rate_unit unit;
		double value;
		unsigned beside;
	} cases[] = {
		{ HO_RATE_L1_BPS, 5e9, 24 },
		{ HO_RATE_L2_BPS, 5e9, 4 },
		{ HO_RATE_PERCENT, 50, 24 },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct run r = { .config = { .rate = { cases[i].unit, cases[i].value },
					     .link_bps = 10000000000u },
				 .duration_ns = SECOND / 20,
				 .size = size_mixed };
		double bits;

		run(&r);
		bits = 8.0 * (double)(r.bytes + cases[i].beside * r.frames);
		/* The last burst is not waited for: less than 64 frames of 12 kbit. */
		if (fabs(bits / ((double)r.duration_ns / 1e9) / 5e9 - 1) > 5e-3)
			fail_msg("case %zu: %g bit/s", i, bits / ((double)r.duration_ns / 1e9));
		assert_true(fabs(rate_error(&r.pacer)) < 1e-4);
	}
}

static void test_unknown_link(void **state)
{
	struct tr_pacer_config config = { .rate = { HO_RATE_PERCENT, 50 } };
	struct ho_err err = { 0 };
	struct tr_pacer pacer;

	assert_int_equal(tr_pacer_init(&pacer, rt, &stop, &config, 60, &err), -EINVAL);
	assert_non_null(strstr(err.text, "known speed"));
	config.rate = (struct ho_rate){ HO_RATE_GAP, 7200 };
	assert_int_equal(tr_pacer_init(&pacer, rt, &stop, &config, 60, &err), -EINVAL);
}

static void test_workers_share(void **state)
{
	uint64_t frames = 0, first = UINT64_MAX;

	for (unsigned w = 0; w < 3; w++) {
		struct run r = {
			.config = { .rate = { HO_RATE_GAP, 10e-6 }, .worker = w, .workers = 3 },
			.duration_ns = SECOND / 100
		};

		run(&r);
		frames += r.frames;
		/* Worker w begins w gaps after worker 0. */
		first = r.pacer.first_due - r.begin_ns;
		assert_int_equal(first, 10000 * w);
	}
	assert_in_range(frames, 999, 1001);
}

static void test_stall(void **state)
{
	/* 1 Mpps with a stall of 3 ms: caught up at no more than twice the rate. */
	struct run r = { .config.rate = { HO_RATE_PPS, 1e6 },
			 .duration_ns = SECOND / 20,
			 .stall_at_ns = SECOND / 100,
			 .stall_ns = 3000000 };

	run(&r);
	assert_in_range(r.frames, 49990, 50001);
	assert_true(fabs(rate_error(&r.pacer)) < 1e-4);
	assert_in_range(r.pacer.error_ns.max, 2900000, 3100000);
	assert_int_equal(r.pacer.slipped_ns, 0);
	assert_true(r.most_at_once <= PK_BURST);
	assert_true(r.fastest > 1.5e6 && r.fastest < 2.2e6);
}

static void test_too_fast(void **state)
{
	/* 20 ns a frame are 50 Mpps: 100 Mpps cannot be had. */
	struct run r = { .config.rate = { HO_RATE_PPS, 100e6 }, .duration_ns = 3ull * SECOND };

	run(&r);
	assert_true(r.pacer.slipped_ns > 0);
	assert_true(rate_error(&r.pacer) < -0.45);
	assert_true((double)r.frames / 3 > 45e6);
}

static void test_bursts(void **state)
{
	struct run r = { .config = { .rate = { HO_RATE_PPS, 1e6 }, .burst = 16 },
			 .duration_ns = SECOND / 100 };

	run(&r);
	assert_int_equal(r.frames % 16, 0);
	assert_int_equal(r.most_at_once, 16);
	assert_in_range(r.frames, 10000 - 16, 10000 + 16);
	/* One entry a burst: they are due together. */
	assert_int_equal(r.pacer.error_ns.count, r.frames / 16);
	r = (struct run){ .config.rate = { HO_RATE_MAX, 0 }, .duration_ns = SECOND / 1000 };
	run(&r);
	assert_int_equal(r.most_at_once, PK_BURST);
	assert_int_equal(r.pacer.error_ns.count, 0);
	assert_in_range(r.frames, 49900, 50100);
}

static void ask_later(void *arg)
{
	rt_sleep_until(rt, *(uint64_t *)arg);
	tr_stop_ask(&stop);
}

static void test_stop(void **state)
{
	struct rt_task_attr attr = { .name = "ask", .cpu = 0 };
	struct run r = { .config.rate = { HO_RATE_PPS, 0.5 }, .duration_ns = 100ull * SECOND };
	uint64_t at = rt_now_ns(rt) + 3ull * SECOND;
	struct rt_task *task;

	assert_int_equal(rt_spawn(rt, &attr, ask_later, &at, &task, NULL), 0);
	run(&r);
	rt_join(rt, task);
	assert_int_equal(r.frames, 2);
	assert_true(r.end_ns - at < 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mean_is_exact, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_link, setup, teardown),
		cmocka_unit_test_setup_teardown(test_workers_share, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stall, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_fast, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bursts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
