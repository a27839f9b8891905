// SPDX-License-Identifier: BSD-2-Clause
/* What limits a run: each cause is brought about, and what the knobs promise is tried. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "lab/limiter.h"

#define END NULL

/* Two chips of a machine with a cable between them: CPU 0 sends, CPU 1 cleans, CPU 2 receives. */
static const char two_chips[] =
	"name: pair\n"
	"title: t\n"
	"seed: 1\n"
	"warmup: 2ms\n"
	"duration: 10ms\n"
	"hosts:\n"
	"  - name: a\n"
	"    profile: e5-2630\n"
	"    chips:\n"
	"      - {name: eth0, model: \"82599\", rx-mode: napi, queues: 1,\n"
	"         irq-cpus: [1], params: {tx: 512, rx: 512, rx-usecs: 20}}\n"
	"      - {name: eth1, model: \"82599\", rx-mode: napi, queues: 1,\n"
	"         irq-cpus: [2], params: {tx: 512, rx: 512, rx-usecs: 20}}\n"
	"    workloads:\n"
	"      - {name: gen, kind: pktgen, chip: eth0, cpu: 0, sizes: \"60\"}\n"
	"wires:\n"
	"  - {name: w, from: a.eth0, to: a.eth1, rate: 10gbps}\n";

static void run(struct lab_scenario *s, struct lab_limiter *out, const char *const *set)
{
	struct lab_result *r = test_calloc(1, sizeof(*r));
	struct ho_err err = { 0 };

	for (; *set; set += 2)
		if (lab_scenario_set(s, set[0], set[1], &err) < 0)
			fail_msg("%s", err.text);
	if (lab_run(s, NULL, r, &err) < 0)
		fail_msg("%s", err.text);
	lab_limiter(s, r, out);
	assert_true(strlen(out->text) > 20);
	assert_null(strchr(out->text, '\n'));
	lab_scenario_free(s);
	test_free(r);
}

static void txring(struct lab_limiter *out, const char *tx, const char *usecs)
{
	const char *set[] = { "tx", tx, "rx-usecs", usecs, "duration", "40ms", END };
	struct lab_scenario *s;
	struct ho_err err;

	assert_int_equal(lab_scenario_load("ixgbe-txring", &s, &err), 0);
	run(s, out, set);
}

static void pair(struct lab_limiter *out, const char *const *set)
{
	struct lab_scenario *s;
	struct ho_err err;

	if (lab_scenario_parse("pair.yaml", two_chips, strlen(two_chips), &s, &err) < 0)
		fail_msg("%s", err.text);
	run(s, out, set);
}

static void test_ring(void **state)
{
	struct lab_limiter l, other;
	char usecs[16], tx[16];

	txring(&l, "256", "1");
	assert_int_equal(l.what, LAB_LIMIT_RING);
	assert_string_equal(lab_limit_name(l.what), "ring");
	assert_float_equal(l.in_flight, 235, 0.5);
	assert_float_equal(l.pps, l.in_flight * l.cleanings_per_s, l.pps * 0.002);
	assert_float_equal(l.law_pps, l.pps, l.pps * 0.005);
	assert_non_null(strstr(l.text, "235 frames in flight are cleaned "));
	assert_non_null(strstr(l.text, "would lift it to"));

	/* What the knobs promise is what they give. */
	assert_string_equal(l.knob[0].name, "rx-usecs");
	snprintf(usecs, sizeof(usecs), "%.0f", l.knob[0].value);
	txring(&other, "256", usecs);
	assert_float_equal(other.pps, l.knob[0].pps, l.knob[0].pps * 0.015);
	assert_string_equal(l.knob[1].name, "tx");
	snprintf(tx, sizeof(tx), "%.0f", l.knob[1].value);
	txring(&other, tx, "1");
	assert_float_equal(other.pps, l.knob[1].pps, l.knob[1].pps * 0.015);
}

static void test_cpu(void **state)
{
	struct lab_limiter l, other;
	char usecs[16];

	txring(&l, "512", "10");
	assert_int_equal(l.what, LAB_LIMIT_CPU);
	assert_true(l.used > 0.99);
	/* c and k of the profile: 136.5 ns and 0.90 us, the latter with two register writes. */
	assert_float_equal(l.frame_ns, 136.6, 0.5);
	assert_float_equal(l.interrupt_ns, 890, 20);
	assert_float_equal(l.law_pps, l.pps, l.pps * 0.005);
	assert_non_null(strstr(l.text, "a larger one gains nothing"));
	assert_string_equal(l.knob[0].name, "rx-usecs");
	snprintf(usecs, sizeof(usecs), "%.0f", l.knob[0].value);
	txring(&other, "512", usecs);
	assert_float_equal(other.pps, l.knob[0].pps, l.knob[0].pps * 0.015);
}

static void test_wire(void **state)
{
	const char *wire[] = { "hosts.a.workloads.gen.sizes", "1514", END };
	struct lab_limiter l;

	pair(&l, wire);
	assert_int_equal(l.what, LAB_LIMIT_WIRE);
	assert_float_equal(l.pps, 812744, 812744 * 0.01);
}

static void test_pci(void **state)
{
	const char *set[] = { "hosts.a.workloads.gen.sizes", "1514", "hosts.a.constants.pci_gbps",
			      "4", END };
	struct lab_limiter l;

	pair(&l, set);
	assert_int_equal(l.what, LAB_LIMIT_PCI);
}

static void test_receiver(void **state)
{
	const char *cpu[] = { "hosts.a.constants.rx_frame_ns", "2000", END };
	struct lab_limiter l;

	pair(&l, cpu);
	assert_int_equal(l.what, LAB_LIMIT_RX_CPU);
}

/* The same accounts read otherwise: what was asked for, and what was lost. */
static void test_judgement(void **state)
{
	struct lab_result *r = test_calloc(1, sizeof(*r));
	struct lab_scenario *s;
	struct lab_limiter l;
	struct ho_err err;

	if (lab_scenario_parse("pair.yaml", two_chips, strlen(two_chips), &s, &err) < 0)
		fail_msg("%s", err.text);
	if (lab_run(s, NULL, r, &err) < 0)
		fail_msg("%s", err.text);
	lab_limiter(s, r, &l);
	assert_int_equal(l.what, LAB_LIMIT_CPU);
	s->hosts[0].workloads[0].rate = (struct ho_rate){ HO_RATE_PPS, l.pps };
	lab_limiter(s, r, &l);
	assert_int_equal(l.what, LAB_LIMIT_OFFERED);
	r->chip[1].drops[PORT_DROP_RX_RING_FULL] = r->chip[1].rx_packets / 100;
	r->host[0].cpu[2].idle = r->host[0].cpu[2].user + r->host[0].cpu[2].softirq +
				 r->host[0].cpu[2].irq + r->host[0].cpu[2].system;
	lab_limiter(s, r, &l);
	assert_int_equal(l.what, LAB_LIMIT_RX_RING);
	lab_scenario_free(s);
	test_free(r);
}

static void test_names(void **state)
{
	for (unsigned i = 0; i < LAB_LIMIT_COUNT; i++) {
		assert_true(strlen(lab_limit_name((enum lab_limit)i)) > 1);
		assert_true(strlen(lab_limit_title((enum lab_limit)i)) > 1);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(lab_limit_name((enum lab_limit)i),
						lab_limit_name((enum lab_limit)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),     cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_wire),     cmocka_unit_test(test_pci),
		cmocka_unit_test(test_receiver), cmocka_unit_test(test_judgement),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
