/* SPDX-License-Identifier: BSD-2-Clause */
/* The shipped scenarios beside what they must show, faults and recovery, and the same digest in
 * every build. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lab/run.h"

static struct lab_scenario *load(const char *name)
{
	struct lab_scenario *s;
	struct ho_err err = { 0 };

	if (lab_scenario_load(name, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* Full rings of jumbo frames take a minute under a sanitizer, and run no code that the others do
 * not. */
#if defined(__SANITIZE_ADDRESS__)
#define LAB_RUNS_SHORT
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LAB_RUNS_SHORT
#endif
#endif

static void set(struct lab_scenario *s, const char *path, const char *value)
{
	struct ho_err err = { 0 };

	if (lab_scenario_set(s, path, value, &err))
		fail_msg("%s", err.text);
}

static void run(struct lab_scenario *s, struct lab_result *result)
{
	struct ho_err err = { 0 };

	if (lab_run(s, NULL, result, &err))
		fail_msg("%s", err.text);
}

static double value(const struct lab_result *result, const char *word)
{
	struct ho_err err = { 0 };
	double v = 0;

	if (lab_result_value(result, word, &v, &err))
		fail_msg("%s", err.text);
	return v;
}

/* --- ring-drain ------------------------------------------------------------------------------ */

#define BUFFER_NS (160 * 1024 * 0.8) /* the chip's transmit packet buffer at 10 Gbit/s */
#define RESERVE   21                 /* descriptors that the driver keeps free */
#define WAKE_GAP  21                 /* more of them must be free before it goes on */

static void probe(const char *series, const char *tx, const char *warmup, const char *duration,
		  struct lab_result *result)
{
	struct lab_scenario *s = load("ring-drain");
	struct ho_err err = { 0 };

	if (lab_scenario_set_series(s, series, &err))
		fail_msg("%s", err.text);
	set(s, "tx", tx);
	set(s, "warmup", warmup);
	set(s, "duration", duration);
	run(s, result);
	assert_in_range(result->workload[2].latency.n, 5, 1000);
	lab_scenario_free(s);
}

#ifndef LAB_RUNS_SHORT
static void near(const char *what, double got, double expected, double percent)
{
	double error = (got / expected - 1) * 100;

	print_message("%s: %.0f ns beside %.0f: %+.2f %%\n", what, got, expected, error);
	assert_true(error >= -percent && error <= percent);
}

/*
 * A probe that comes when the ring has just become full waits until the queue is woken, WAKE_GAP
 * frames later, and then stands behind a ring that is full but for the reserve: the ring's size in
 * all. One that comes at any moment waits for half of that gap. The driver sees a frame done at the
 * next interrupt, up to 10.24 us later. Probes that stand in the ring as well, 211 a second, take
 * the places of bulk's frames, and no time on the wire to speak of. Behind the ring is the chip's
 * packet buffer.
 */
static void a_full_ring_drains(void **state)
{
	static const struct {
		const char *series, *tx, *warmup;
		double published_ns;
		unsigned ring;
		double wire_bytes;
	} rows[] = {
		{ "jumbo", "1024", "15ms", 7.37e6, 1024, 9000 + 24 },
		{ "jumbo", "512", "15ms", 3.69e6, 512, 9000 + 24 },
		{ "standard", "1024", "15ms", 1.25e6, 1024, 1538 },
		{ "segmented", "1024", "110ms", 55e6, 1024, 44 * 1538 },
	};
	static struct lab_result r;

	for (unsigned i = 0; i < 4; i++) {
		double frame_ns = rows[i].wire_bytes * 0.8, longest, mean;

		frame_ns /= 1 + 211e-9 * frame_ns;

		probe(rows[i].series, rows[i].tx, rows[i].warmup, "300ms", &r);
		longest = value(&r, "drain_max_ns");
		mean = value(&r, "drain_mean_ns");
		near(rows[i].series, longest, (rows[i].ring - RESERVE + WAKE_GAP) * frame_ns, 1);
		near("  published", longest, rows[i].published_ns, 2);
		near("  mean", mean, (rows[i].ring - RESERVE + WAKE_GAP / 2.0) * frame_ns, 1);
		near("  arrival", value(&r, "arrival_mean_ns"), mean + BUFFER_NS, 1);
	}
}
#endif

/* In the ring stays what the wire sends in a few interrupt intervals of 10.24 us, and the wire
 * is as busy as without a limit. */
static void bql_keeps_what_the_wire_needs(void **state)
{
	static struct lab_result r;
	double off, p50, drain;

	probe("jumbo", "512", "15ms", "50ms", &r);
	off = value(&r, "gbps");
	/* The limit shrinks once a second at most, by the least slack of that second. */
	probe("jumbo-bql", "512", "2100ms", "50ms", &r);
	p50 = value(&r, "arrival_mean_ns");
	drain = value(&r, "drain_mean_ns");
	print_message(
		"bql: %.0f ns in the ring, %.0f until arrival, %.3f Gbit/s beside %.3f without\n",
		drain, p50, value(&r, "gbps"), off);
	assert_true(value(&r, "gbps") > off * 0.999);
	assert_true(drain > 7219 && drain < 6 * 10240);
	assert_true(p50 - BUFFER_NS < 6 * 10240);
}

/* A full ring on a slow wire takes 275 ms to send: longer than a stop waits for a ring of which
 * nothing leaves. Frames that still leave are waited for. */
static void a_slow_wire_is_waited_for(void **state)
{
	struct lab_scenario *s = load("ixgbe-txring");
	static struct lab_result r;

	set(s, "tx", "4096");
	set(s, "wires.cable.rate", "10mbps");
	set(s, "warmup", "20ms");
	set(s, "duration", "5ms");
	run(s, &r);
	assert_in_range(r.workload[0].packets, 60, 75); /* whole write-backs of 74.4 frames */
	lab_scenario_free(s);
}

/* --- two hosts -------------------------------------------------------------------------------- */

static void every_frame_arrives_in_order(void **state)
{
	struct lab_scenario *s = load("two-hosts");
	static struct lab_result r;
	const struct lab_workload_result *recv = &r.workload[1];

	run(s, &r);
	print_message("two-hosts: p50 %llu ns, p99 %llu, max %llu, %llu of %llu\n",
		      (unsigned long long)recv->latency.p50_ns,
		      (unsigned long long)recv->latency.p99_ns,
		      (unsigned long long)recv->latency.max_ns, (unsigned long long)recv->packets,
		      (unsigned long long)r.workload[0].packets);
	assert_int_equal(recv->lost + recv->reordered + recv->duplicates, 0);
	/* What is under way at the ends of the interval may differ by a frame or two. */
	assert_in_range(recv->packets, r.workload[0].packets - 4, r.workload[0].packets + 4);
	assert_in_range(recv->packets, 7980, 8020);
	/* From PCI, both ways, and the wire: 1.2 us of it for the longest frame. The receiver
	 * polls, so that moderation adds nothing. */
	assert_in_range(recv->latency.p50_ns, 1500, 6000);
	assert_in_range(recv->latency.max_ns, recv->latency.p50_ns, 20000);
	assert_int_equal(recv->latency.n, recv->packets);
	lab_scenario_free(s);
}

/* A receiver that sleeps between frames is woken by interrupts: now they are in its delays. */
static void moderation_is_in_the_delay(void **state)
{
	struct lab_scenario *s = load("two-hosts");
	static struct lab_result r;

	set(s, "rate", "5kpps");
	set(s, "rx-usecs", "100");
	run(s, &r);
	print_message("5 kpps: p50 %llu ns\n", (unsigned long long)r.workload[1].latency.p50_ns);
	assert_int_equal(r.workload[1].lost, 0);
	assert_in_range(r.workload[1].latency.p50_ns, 3000, 110000);
	lab_scenario_free(s);
}

/* --- faults ----------------------------------------------------------------------------------- */

#define A "hosts.a.chips.eth0."
#define B "hosts.b.chips.eth0."

static struct lab_scenario *faulty(const char *chip, const char *first, const char *one,
				   const char *second, const char *two)
{
	struct lab_scenario *s = load("two-hosts");
	char path[64];

	set(s, A "watchdog", "1ms");
	set(s, B "watchdog", "1ms");
	snprintf(path, sizeof(path), "%s%s", chip, first);
	set(s, path, one);
	snprintf(path, sizeof(path), "%s%s", chip, second);
	set(s, path, two);
	return s;
}

static uint64_t lost(const struct lab_result *r)
{
	return r->workload[1].lost;
}

/* All that did not arrive has a name. */
static void check_named(const struct lab_result *r)
{
	uint64_t named = 0;

	for (unsigned c = 0; c < r->n_chips; c++)
		for (unsigned d = 0; d < PORT_DROP_COUNT; d++)
			named += r->chip[c].drops[d];
	assert_int_equal(named, lost(r));
}

static void lost_interrupts_are_recovered(void **state)
{
	struct lab_scenario *s = faulty(A, "fault-lost-irq-ppm", "20000", "tx", "64");
	static struct lab_result r;

	run(s, &r);
	print_message("%llu interrupts lost, %llu set off again, longest stall %llu us\n",
		      (unsigned long long)r.chip[0].faults.lost_irqs,
		      (unsigned long long)r.chip[0].irqs_rearmed,
		      (unsigned long long)(r.chip[0].longest_stall / SIM_PS_PER_US));
	assert_true(r.chip[0].faults.lost_irqs > 0);
	assert_true(r.chip[0].irqs_rearmed > 0);
	assert_int_equal(r.chip[0].resets, 0);
	assert_int_equal(lost(&r), 0);
	check_named(&r);
	/* Two looks of the watchdog, a period apart. */
	assert_in_range(r.chip[0].longest_stall, 100 * SIM_PS_PER_US, 2200 * SIM_PS_PER_US);
	lab_scenario_free(s);
}

static void late_write_backs_delay_only(void **state)
{
	struct lab_scenario *s = faulty(A, "fault-late-ppm", "50000", "fault-late-for", "200us");
	static struct lab_result r;

	run(s, &r);
	assert_true(r.chip[0].faults.late > 0);
	assert_int_equal(r.chip[0].resets, 0);
	assert_int_equal(lost(&r) + r.workload[1].reordered, 0);
	check_named(&r);
	assert_in_range(r.chip[0].longest_stall, 100 * SIM_PS_PER_US, 450 * SIM_PS_PER_US);
	lab_scenario_free(s);
}

static void a_hung_chip_is_reset(void **state)
{
	struct lab_scenario *s = faulty(A, "fault-hang-at", "5ms", "tx", "512");
	static struct lab_result r;

	set(s, "duration", "40ms");
	run(s, &r);
	print_message("hang: %llu frames lost, %llu of them in the ring; back after %llu us\n",
		      (unsigned long long)lost(&r),
		      (unsigned long long)r.chip[0].drops[PORT_DROP_TX_RESET],
		      (unsigned long long)(r.chip[0].longest_stall / SIM_PS_PER_US));
	assert_int_equal(r.chip[0].faults.hangs, 1);
	assert_int_equal(r.chip[0].tx_timeouts, 1);
	assert_int_equal(r.chip[0].resets, 1);
	assert_true(r.chip[0].drops[PORT_DROP_TX_RESET] > 0);
	check_named(&r);
	assert_int_equal(r.workload[1].reordered + r.workload[1].duplicates, 0);
	/* Two to three looks a period apart, 1 ms until nobody is in the rings, and the 10 ms and
	 * more that the chip's reset takes by the datasheet. */
	assert_in_range(r.chip[0].longest_stall, 12 * SIM_PS_PER_MS, 16 * SIM_PS_PER_MS);
	/* The sender has caught up since: 40 ms' frames but for those. */
	assert_in_range(r.workload[1].packets, 15000, 16000);
	lab_scenario_free(s);
}

static void a_link_comes_back(void **state)
{
	struct lab_scenario *s = faulty(A, "fault-flap-at", "5ms", "fault-flap-for", "1ms");
	static struct lab_result r;

	run(s, &r);
	print_message("flap: %llu lost, longest stall %llu us\n", (unsigned long long)lost(&r),
		      (unsigned long long)(r.chip[0].longest_stall / SIM_PS_PER_US));
	assert_int_equal(r.chip[0].faults.flaps, 1);
	check_named(&r);
	assert_true(r.chip[0].link_changes >= 2);
	assert_int_equal(r.chip[0].resets, 0);
	assert_in_range(r.chip[0].longest_stall, 900 * SIM_PS_PER_US, 1500 * SIM_PS_PER_US);
	assert_true(r.workload[1].packets > 7000);
	lab_scenario_free(s);
}

static void faults_need_their_times(void **state)
{
	struct lab_scenario *s = load("two-hosts");
	static struct lab_result r;
	struct ho_err err = { 0 };

	set(s, A "fault-late-ppm", "5");
	assert_int_equal(lab_run(s, NULL, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "fault-late-ppm and fault-late-for need each other"));
	lab_scenario_free(s);
}

static void impossible_faults_are_refused(void **state)
{
	static const struct {
		const char *name, *value, *message;
	} cases[] = {
		{ "fault-lost-irq-ppm", "1000001", "fault-lost-irq-ppm: 1000001: parts of" },
		{ "fault-lost-irq-ppm", "-1", "fault-lost-irq-ppm: '-1' is not a number" },
		{ "fault-late-ppm", "5000m", "fault-late-ppm: " },
		{ "fault-hang-at", "5", "fault-hang-at: " },
		{ "fault-hang-at", "10000000s", "fault-hang-at: 10000000s: longer than virtual" },
		{ "fault-flap-every", "1ms", "fault-flap-every: needs fault-flap-at" },
		{ "fault-flap-at", "1ms", "fault-flap-at and fault-flap-for need each other" },
		{ "fault-hung-at", "1ms", "fault-hung-at: a chip has no such parameter" },
		{ "tx", "63", "tx ring of 63" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lab_scenario *s = load("two-hosts");
		static struct lab_result r;
		struct ho_err err = { 0 };
		char path[64];

		snprintf(path, sizeof(path), A "%s", cases[i].name);
		set(s, path, cases[i].value);
		assert_int_equal(lab_run(s, NULL, &r, &err), -EINVAL);
		if (!strstr(err.text, cases[i].message))
			fail_msg("%s=%s: %s", cases[i].name, cases[i].value, err.text);
		lab_scenario_free(s);
	}
}

/* --- the same everywhere ---------------------------------------------------------------------- */

/* Of any compiler, optimisation and sanitizer. It changes with what the lab simulates, and only
 * with that. */
#define DIGEST 0x164d9b0ed74e79f2ull

static void the_digest_is_the_same(void **state)
{
	struct lab_scenario *s = load("two-hosts"), *other = load("two-hosts");
	struct lab_store *store;
	static struct lab_result r;
	uint64_t first;

	set(s, "duration", "3ms");
	set(s, A "bql", "on");
	set(other, "duration", "2ms");
	set(other, A "tx", "4096");
	run(s, &r);
	first = r.digest;
	run(s, &r);
	print_message("digest %016llx\n", (unsigned long long)r.digest);
	assert_int_equal(r.digest, first);
	assert_int_equal(r.digest, DIGEST);
	/* What another run left in the memory makes no difference. */
	assert_int_equal(lab_store_create(&store), 0);
	assert_int_equal(lab_run_again(other, store, &r, NULL), 0);
	assert_int_not_equal(r.digest, DIGEST);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(lab_run_again(s, store, &r, NULL), 0);
		assert_int_equal(r.digest, DIGEST);
	}
	lab_store_destroy(store);
	lab_scenario_free(other);
	lab_scenario_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_digest_is_the_same),
		cmocka_unit_test(every_frame_arrives_in_order),
		cmocka_unit_test(moderation_is_in_the_delay),
		cmocka_unit_test(lost_interrupts_are_recovered),
		cmocka_unit_test(late_write_backs_delay_only),
		cmocka_unit_test(a_hung_chip_is_reset),
		cmocka_unit_test(a_link_comes_back),
		cmocka_unit_test(faults_need_their_times),
		cmocka_unit_test(impossible_faults_are_refused),
		cmocka_unit_test(a_slow_wire_is_waited_for),
		cmocka_unit_test(bql_keeps_what_the_wire_needs),
#ifndef LAB_RUNS_SHORT
		cmocka_unit_test(a_full_ring_drains),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
