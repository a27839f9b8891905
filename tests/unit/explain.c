// SPDX-License-Identifier: BSD-2-Clause
/* Verdicts on evidence made by hand, and on cases of the examination. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>

#include "measure/exam.h"
#include "measure/explain_lab.h"
#include "measure/explain_live.h"
#include "measure/target.h"
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

/* A live box of two CPUs over 2 s, with an interface that idles. */
struct live_box {
	struct lx_cpu cpu[2];
	struct lx_irq irq[2];
	struct lx_setting setting[2];
	struct lx_ifdata iface;
	struct lx_delta delta;
};

static void live_box(struct live_box *b)
{
	memset(b, 0, sizeof(*b));
	for (unsigned i = 0; i < 2; i++) {
		b->cpu[i].id = i;
		b->cpu[i].online = true;
		b->cpu[i].time_ns[LX_TIME_IDLE] = 1900000000;
		b->cpu[i].time_ns[LX_TIME_SYSTEM] = 100000000;
		b->irq[i] = (struct lx_irq){ .irq = 24 + i, .queue = 0 };
	}
	b->setting[0] = (struct lx_setting){ .name = "rx-usecs", .value = 1000 };
	b->setting[1] = (struct lx_setting){ .name = "rx", .value = 256 };
	snprintf(b->iface.name, sizeof(b->iface.name), "nic");
	b->iface.has = LX_IF_LINK | LX_IF_IRQS;
	b->iface.facts.link_bps = 1000000000;
	b->iface.facts.rx_queues = b->iface.facts.tx_queues = 1;
	b->iface.irq = b->irq;
	b->iface.n_irqs = 2;
	b->iface.setting = b->setting;
	b->iface.n_settings = 2;
	b->delta.interval_ns = 2000000000;
	b->delta.iface = &b->iface;
	b->delta.n_ifaces = 1;
	b->delta.host.cpu = b->cpu;
	b->delta.host.n_cpus = 2;
	b->delta.host.has = LX_HOST_TIMES | LX_HOST_SOFTNET | LX_HOST_PROTO;
}

static void live_frames(struct live_box *b, uint64_t rx, uint64_t tx, uint64_t bytes)
{
	b->iface.link.rx_packets = rx;
	b->iface.link.rx_bytes = rx * bytes;
	b->iface.link.tx_packets = tx;
	b->iface.link.tx_bytes = tx * bytes;
}

static const struct ms_verdict *live_verdict(const struct live_box *b)
{
	static struct ms_evidence ev;
	static struct ms_verdict v;

	ms_explain_live(&b->delta, 0, &ev, &v);
	return &v;
}

/* What a live box shows, and the verdict that follows. */
static void test_live(void **state)
{
	const struct ms_verdict *v;
	struct live_box b;
	char text[512];
	uint64_t bps;

	live_box(&b);
	assert_string_equal(live_verdict(&b)->cause->name, "idle");
	/* Everything is taken: a busy CPU alone is no limit, whatever else runs on it. */
	live_frames(&b, 200000, 0, 60);
	assert_string_equal(live_verdict(&b)->cause->name, "offered");
	b.cpu[0].time_ns[LX_TIME_USER] = 1900000000;
	b.cpu[0].time_ns[LX_TIME_IDLE] = 0;
	v = live_verdict(&b);
	assert_string_equal(v->cause->name, "offered");
	assert_false(v->advises);
	assert_true(v->unknown[MS_EV_RX_NIC] && !v->unknown[MS_EV_SENDER_WAITS]);
	/* The speed of a link that is down is not known. */
	assert_non_null(strstr(v->finding.arithmetic, ", the wire "));
	bps = b.iface.facts.link_bps;
	b.iface.facts.link_bps = 0;
	assert_null(strstr(live_verdict(&b)->finding.arithmetic, "wire"));
	b.iface.facts.link_bps = bps;
	/* The larger of two losses names it. */
	b.delta.host.proto.udp_rcvbuf_errors = 150000;
	b.cpu[1].softnet.dropped = 2000;
	assert_string_equal(live_verdict(&b)->cause->name, "socket");
	b.cpu[1].softnet.dropped = 400000;
	assert_string_equal(live_verdict(&b)->cause->name, "backlog");
	b.cpu[1].softnet.dropped = b.delta.host.proto.udp_rcvbuf_errors = 0;
	b.delta.host.proto.udp_no_ports = 199000;
	assert_string_equal(live_verdict(&b)->cause->name, "no-port");

	/* Requests of the stack, one at a time, each waiting for a timer of 1 ms. */
	live_box(&b);
	live_frames(&b, 1900, 1900, 98);
	b.delta.host.proto.ip_in = b.delta.host.proto.ip_out = 1900;
	b.irq[0].count = 1900;
	b.irq[1].count = 1850;
	v = live_verdict(&b);
	assert_string_equal(v->cause->name, "moderation");
	assert_true(v->advises && v->advice.usecs == 0);
	ms_linux_commands(v->view.ev, "nic", v->view.aim, &v->view.now, &v->advice, text,
			  sizeof(text));
	/* adaptive-rx is not there, so it is not in the command. */
	assert_string_equal(text, "ethtool -C nic rx-usecs 0");
	/* Two streams of somebody else's are none, and neither are large frames. */
	b.delta.host.proto.ip_out = 0;
	assert_string_not_equal(live_verdict(&b)->cause->name, "moderation");
	b.delta.host.proto.ip_out = 1900;
	live_frames(&b, 1900, 1900, 1500);
	assert_string_not_equal(live_verdict(&b)->cause->name, "moderation");

	/* Two lost frames are chance. */
	live_box(&b);
	live_frames(&b, 4, 0, 60);
	b.iface.link.rx_errors = 2;
	assert_string_equal(live_verdict(&b)->cause->name, "offered");
	b.iface.link.rx_errors = 200;
	assert_string_equal(live_verdict(&b)->cause->name, "lost-before");

	/* TCP in pieces of 58 KB is not frame by frame, although GRO is off. */
	live_box(&b);
	b.setting[0] = (struct lx_setting){ .name = "gro", .value = 0 };
	b.iface.facts.link_bps = 10000000000;
	live_frames(&b, 8000, 4000, 58000);
	b.delta.host.proto.tcp_in = 8000;
	b.cpu[0].time_ns[LX_TIME_IDLE] = 0;
	assert_string_equal(live_verdict(&b)->cause->name, "offered");
	live_frames(&b, 200000, 100000, 1448);
	b.delta.host.proto.tcp_in = 200000;
	assert_string_equal(live_verdict(&b)->cause->name, "segmentation");
}

/* Each cause has a letter of its own in the table of a sweep. */
static void test_letters(void **state)
{
	const char *letters = ms_target_live.limit_letters;
	unsigned n = 0;

	while (ms_causes[n].name)
		n++;
	assert_int_equal(strlen(letters), n + 2);
	for (unsigned i = 0; letters[i]; i++)
		assert_true(strchr(letters, letters[i]) == letters + i);
	assert_string_equal(ms_target_live.limit_name(n + 1), "offered");
}

/* One interrupt a round, in step with a timer that is no longer than the way through the box. */
static void test_interrupts(void **state)
{
	struct ms_evidence ev;

	sender(&ev);
	ev.value[MS_EV_TX_PPS] = ev.value[MS_EV_RX_PPS] = 97656;
	ev.value[MS_EV_TX_BYTES] = ev.value[MS_EV_RX_BYTES] = 97656 * 100;
	ev.value[MS_EV_TRANSACTIONS] = 97656;
	ev.value[MS_EV_OUTSTANDING] = 1;
	ev.value[MS_EV_IRQS] = 97656;
	ev.value[MS_EV_RX_USECS] = 10;
	ev.n_cpus = 2;
	ev.cpu[0] = (struct ms_ev_cpu){
		.user = 0.42, .irq = 0.06, .softirq = 0.24, .idle = 0.28, .app = true
	};
	ev.cpu[1] = (struct ms_ev_cpu){ .idle = 1 };
	assert_string_equal(cause(&ev), "interrupts");
	/* Nothing could poll. */
	ev.n_cpus = 1;
	assert_string_equal(cause(&ev), "moderation");
}

/* A program without CPU time: its socket fills, and has dropped nothing yet. */
static void test_starved(void **state)
{
	struct ms_evidence ev;

	sender(&ev);
	ev.value[MS_EV_TX_PPS] = 0;
	ev.value[MS_EV_RX_PPS] = 4e5;
	ev.value[MS_EV_RX_BYTES] = 4e5 * 60;
	ev.value[MS_EV_RX_RING] = 1024;
	ev.value[MS_EV_SOCKET_PPS] = 0;
	ev.value[MS_EV_SOCKET_DROPS] = 0;
	ev.queue[0].rx_pps = 4e5;
	ev.n_cpus = 2;
	ev.cpu[0] = (struct ms_ev_cpu){ .softirq = 1, .app = true };
	ev.cpu[1] = (struct ms_ev_cpu){ .idle = 1 };
	assert_string_equal(cause(&ev), "hot-cpu");
	/* Where it is TCP's, Linux counts it elsewhere. */
	ev.value[MS_EV_TCP_PPS] = 4e5;
	assert_string_not_equal(cause(&ev), "hot-cpu");
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
		cmocka_unit_test(test_sender),     cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_receiver),   cmocka_unit_test(test_request),
		cmocka_unit_test(test_interrupts), cmocka_unit_test(test_starved),
		cmocka_unit_test(test_table),      cmocka_unit_test(test_tune),
		cmocka_unit_test(test_case),       cmocka_unit_test(test_live),
		cmocka_unit_test(test_letters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
