// SPDX-License-Identifier: BSD-2-Clause
/* Verdicts on evidence made by hand, and on cases of the examination. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "measure/exam.h"
#include "measure/tune.h"

/* A box that sends 60-byte frames as fast as it can, with one CPU. */
static void sender(struct ms_evidence *ev)
{
	ms_evidence_init(ev);
	ev->seconds = 1;
	ev->mode = MS_MODE_NAPI;
	ev->n_cpus = 1;
	ev->n_queues = 1;
	ev->cpu[0] = (struct ms_ev_cpu){ .user = 0.7, .irq = 0.02, .softirq = 0.28, .app = true };
	ev->queue[0] = (struct ms_ev_queue){ 0, 20000, 0, 4.7e6 };
	ev->value[MS_EV_TX_PPS] = 4.7e6;
	ev->value[MS_EV_TX_BYTES] = 4.7e6 * 60;
	ev->value[MS_EV_IRQS] = 20000;
	ev->value[MS_EV_LINK_BPS] = 10e9;
	ev->value[MS_EV_TX_RING] = 256;
	ev->value[MS_EV_TX_RESERVED] = 21;
	ev->value[MS_EV_RX_USECS] = 50;
}

static const char *cause(const struct ms_evidence *ev)
{
	static struct ms_verdict v;

	ms_explain(ev, NULL, &v);
	return v.cause->name;
}

static void test_sender(void **state)
{
	struct ms_evidence ev;
	struct ms_verdict v;

	sender(&ev);
	assert_string_equal(cause(&ev), "cpu");
	ev.value[MS_EV_SENDER_WAITS] = 0.3;
	ms_explain(&ev, NULL, &v);
	assert_string_equal(v.cause->name, "tx-ring");
	assert_true(v.advises && v.expects > 4.7e6 * 1.1);
	/* 4.7 Mpps of 60 bytes and 24 more are 3.16 Gbit/s. */
	assert_true(fabs(v.view.wire - 0.3158) < 0.001);
	ev.value[MS_EV_LINK_BPS] = 3.2e9;
	assert_string_equal(cause(&ev), "wire");
	ev.value[MS_EV_LINK_BPS] = 10e9;
	ev.value[MS_EV_PCI_BPS] = 5e9;
	ev.value[MS_EV_PCI_PAYLOAD] = 256;
	assert_string_equal(cause(&ev), "pci");
}

/* What is unknown is said, and never taken for 0. */
static void test_unknown(void **state)
{
	struct ms_evidence ev;
	struct ms_verdict v;

	ms_evidence_init(&ev);
	ms_explain(&ev, NULL, &v);
	assert_string_equal(v.cause->name, "idle");
	assert_false(v.advises);
	assert_true(v.unknown[MS_EV_LINK_BPS]);
	sender(&ev);
	ms_explain(&ev, NULL, &v);
	assert_true(v.unknown[MS_EV_PCI_BPS]);
	assert_false(v.unknown[MS_EV_LINK_BPS]);
}

static void test_receiver(void **state)
{
	struct ms_evidence ev;

	sender(&ev);
	ev.value[MS_EV_TX_PPS] = 0;
	ev.value[MS_EV_RX_PPS] = 2e6;
	ev.value[MS_EV_RX_BYTES] = 2e6 * 60;
	ev.value[MS_EV_RX_RING] = 64;
	ev.queue[0].rx_pps = 2e6;
	ev.cpu[0] = (struct ms_ev_cpu){ .softirq = 0.4, .irq = 0.1, .idle = 0.5 };
	assert_string_equal(cause(&ev), "offered");
	ev.value[MS_EV_RX_NO_DESC] = 3e5;
	assert_string_equal(cause(&ev), "rx-ring");
	ev.cpu[0] = (struct ms_ev_cpu){ .softirq = 0.99, .irq = 0.01 };
	assert_string_equal(cause(&ev), "cpu");
	ev.value[MS_EV_RX_NO_DESC] = 0;
	ev.value[MS_EV_BACKLOG_DROPS] = 1e5;
	assert_string_equal(cause(&ev), "backlog");
	ev.value[MS_EV_BACKLOG_DROPS] = 0;
	ev.value[MS_EV_RX_ERRORS] = 1e5;
	assert_string_equal(cause(&ev), "lost-before");
}

static void test_request(void **state)
{
	struct ms_evidence ev;
	struct ms_verdict v;

	sender(&ev);
	ev.value[MS_EV_TX_PPS] = ev.value[MS_EV_RX_PPS] = 19500;
	ev.value[MS_EV_TX_BYTES] = ev.value[MS_EV_RX_BYTES] = 19500 * 100;
	ev.value[MS_EV_TRANSACTIONS] = 19500;
	ev.value[MS_EV_OUTSTANDING] = 1;
	ev.value[MS_EV_IRQS] = 19500;
	ev.cpu[0] = (struct ms_ev_cpu){
		.user = 0.1, .irq = 0.01, .softirq = 0.04, .idle = 0.85, .app = true
	};
	ms_explain(&ev, NULL, &v);
	assert_string_equal(v.cause->name, "moderation");
	assert_int_equal(v.advice.usecs, 0);
	ev.value[MS_EV_RX_USECS] = 0;
	assert_string_equal(cause(&ev), "offered");
	ev.cpu[0].user = 0.3;
	ev.cpu[0].idle = 0.65;
	assert_string_equal(cause(&ev), "path");
}

/* A row without words is none; names are unique. */
static void test_table(void **state)
{
	unsigned n = 0;

	for (const struct ms_cause *c = ms_causes; c->name; c++, n++) {
		assert_true(c->title && c->symptom && c->evidence && c->arithmetic && c->remedy);
		for (const struct ms_cause *d = ms_causes; d < c; d++)
			assert_string_not_equal(c->name, d->name);
	}
	assert_true(n > 15 && n <= MS_EXAM_CAUSES);
}

/* A target whose truth is known: the law is misled, noise of 1 %. */
static int noisy(void *ctx, const struct ms_choice *c, unsigned repeat, struct ms_tune_run *out,
		 struct ho_err *err)
{
	uint32_t *state = ctx;
	double rate = 1e6;

	*state = *state * 1664525 + 1013904223;
	if (c->usecs == 30)
		rate *= 1.3;
	if (c->ring == 1024)
		rate *= 1.1;
	memset(out, 0, sizeof(*out));
	sender(&out->evidence);
	out->rate = rate * (0.99 + 0.02 * (*state >> 8) / 16777216.0);
	return 0;
}

static void test_tune(void **state)
{
	uint32_t random = 1;
	struct ms_tune t = { .what = MS_FOR_PPS };
	const struct ms_tune_target target = { .ctx = &random,
					       .run = noisy,
					       .now = { 256, 50, MS_MODE_NAPI, MS_PLACE_ZERO } };

	assert_int_equal(ms_tune(&t, &target, NULL), 0);
	assert_true(t.runs <= MS_TUNE_RUNS);
	assert_int_equal(t.cell[t.best].choice.usecs, 30);
	assert_int_equal(t.cell[t.best].choice.ring, 1024);
	assert_true(t.significant);
}

/* The same case is the same everywhere. */
static void test_case(void **state)
{
	struct ms_exam_case a, b;

	ms_exam_case(7, 3, &a);
	ms_exam_case(7, 3, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	ms_exam_case(7, 4, &b);
	assert_memory_not_equal(&a, &b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sender),   cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_receiver), cmocka_unit_test(test_request),
		cmocka_unit_test(test_table),    cmocka_unit_test(test_tune),
		cmocka_unit_test(test_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
