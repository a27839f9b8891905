// SPDX-License-Identifier: BSD-2-Clause
/* Cases of the examination: drawing them, writing them as scenarios, running them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/limiter.h"
#include "measure/exam.h"

const char *const ms_exam_load_names[MS_LOADS] = { "pktgen", "gen",    "sink",
						   "socket", "server", "client" };

#define PROFILE "e5-2630"

/* --- drawing -------------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static unsigned below(uint64_t *state, unsigned n)
{
	return (unsigned)(draw(state) % n);
}

/* Evenly on a logarithmic scale. */
static double between(uint64_t *state, double low, double high)
{
	double u = (double)(draw(state) >> 11) / 9007199254740992.0;

	return low * exp(u * log(high / low));
}

#define PICK(state, list) ((list)[below(state, HO_ARRAY_LEN(list))])

static const unsigned rings[] = { 64, 256, 1024, 4096 };
static const unsigned usecs[] = { 0, 1, 10, 30, 100 };

static bool sends(const struct ms_exam_case *c)
{
	return c->load == MS_LOAD_PKTGEN || c->load == MS_LOAD_GEN;
}

static bool answers(const struct ms_exam_case *c)
{
	return c->load == MS_LOAD_SERVER || c->load == MS_LOAD_CLIENT;
}

/* Could somebody in his right mind set this? A thread that never sleeps needs a CPU without a
 * program. */
static bool possible(const struct ms_exam_case *c, const struct ms_exam_set *s)
{
	if (s->place == MS_PLACE_AWAY && c->cpus <= c->apps)
		return false;
	if (s->place == MS_PLACE_APPS && c->cpus == 1)
		return false;
	if (c->apps == 1 && c->queues == 1 && s->place == MS_PLACE_APPS)
		return false; /* the same as ZERO */
	if (!c->apps && s->place == MS_PLACE_AWAY)
		return false; /* the same as APPS */
	if (s->mode != LAB_RX_POLL)
		return true;
	if (s->usecs || (c->apps && s->place != MS_PLACE_AWAY))
		return false;
	/* Two that never sleep on one CPU would keep each other away. */
	return c->queues <= (s->place == MS_PLACE_ZERO   ? 1
			     : s->place == MS_PLACE_AWAY ? c->cpus - c->apps
							 : c->cpus);
}

static void list_cells(struct ms_exam_case *c)
{
	static const enum lab_rx_mode modes[] = { LAB_RX_NAPI, LAB_RX_DIRECT, LAB_RX_POLL };
	unsigned first = answers(c) ? 2 : 1, last = answers(c) ? 3 : HO_ARRAY_LEN(rings);

	/* The smallest ring is something that one has, not something that one chooses. */
	for (unsigned r = first; r < last; r++) {
		for (unsigned u = 0; u < HO_ARRAY_LEN(usecs); u++) {
			for (unsigned m = 0; m < HO_ARRAY_LEN(modes); m++) {
				for (unsigned p = 0; p <= MS_PLACE_AWAY; p++) {
					const struct ms_exam_set s = { rings[r], usecs[u], modes[m],
								       (enum ms_place)p };

					if (possible(c, &s) && c->cells < MS_EXAM_CELLS)
						c->cell[c->cells++] = s;
				}
			}
		}
	}
}

static void draw_load(uint64_t *state, struct ms_exam_case *c)
{
	static const unsigned sizes[] = { 60, 60, 60, 124, 252, 508, 1020, 1514 };

	c->load = (enum ms_exam_load)below(state, MS_LOADS);
	c->bytes = PICK(state, sizes);
	c->flows = below(state, 4) ? 64 : 1;
	switch (c->load) {
	case MS_LOAD_PKTGEN:
	case MS_LOAD_GEN:
		c->apps = 1 + below(state, c->cpus);
		c->queues = c->apps;
		if (c->load == MS_LOAD_GEN && below(state, 4) == 0)
			c->rate_mpps = between(state, 0.1, 8);
		break;
	case MS_LOAD_SINK:
		c->queues = 1 + below(state, c->cpus);
		c->rate_mpps = between(state, 0.3, 12);
		break;
	case MS_LOAD_SOCKET:
		c->apps = 1;
		c->queues = 1 + below(state, c->cpus);
		c->rate_mpps = between(state, 0.05, 1.5);
		break;
	default:
		c->apps = 1;
		c->queues = 1;
		c->flows = 1;
		c->bytes = (unsigned)HO_MIN(c->bytes, 508u);
		c->outstanding = below(state, 3) ? 1 : 1u << below(state, 7);
		c->think_us = below(state, 4) ? 0 : 5 + below(state, 200);
		break;
	}
}

void ms_exam_case(uint64_t seed, unsigned number, struct ms_exam_case *c)
{
	static const double pci[] = { 4, 8, 16, 32, 32 };
	static const double wire[] = { 1, 10, 10, 10 };
	static const unsigned budgets[] = { 300, 300, 64 };
	static const unsigned sockets[] = { 256, 256, 32, 1024 };
	static const enum lab_rx_mode modes[] = { LAB_RX_NAPI, LAB_RX_NAPI, LAB_RX_NAPI,
						  LAB_RX_DIRECT, LAB_RX_POLL };
	uint64_t state = seed * 0x100000001b3 + number;

	memset(c, 0, sizeof(*c));
	c->number = number;
	c->seed = draw(&state) % 1000000;
	c->cpus = 1 + below(&state, 4);
	c->slow = between(&state, 0.5, 2);
	c->irq_price = between(&state, 0.5, 3);
	c->switch_price = between(&state, 0.5, 3);
	c->pci_gbps = PICK(&state, pci);
	c->wire_gbps = PICK(&state, wire);
	c->rcvbuf = PICK(&state, sockets);
	c->budget = PICK(&state, budgets);
	c->peer_slow = between(&state, 0.3, 2);
	draw_load(&state, c);
	do {
		c->set.ring = PICK(&state, rings);
		c->set.usecs = PICK(&state, usecs);
		c->set.mode = PICK(&state, modes);
		c->set.place = (enum ms_place)below(&state, MS_PLACE_AWAY + 1);
		if (c->set.mode == LAB_RX_POLL)
			c->set.usecs = 0;
		if (answers(c))
			c->set.ring = 1024;
	} while (!possible(c, &c->set));
	list_cells(c);
}

/* --- a case as a scenario ------------------------------------------------------------------- */

struct text {
	char *at;
	size_t left;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	n = (int)HO_MIN((size_t)HO_MAX(n, 0), t->left - 1);
	t->at += n;
	t->left -= (size_t)n;
}

static bool is_irq(unsigned id)
{
	return id == LAB_IRQ_ENTRY_CONSTANT || id == LAB_IRQ_EXIT_CONSTANT ||
	       id == LAB_SOFTIRQ_CONSTANT;
}

static bool is_switch(unsigned id)
{
	return id == LAB_WAKEUP_CONSTANT || id == LAB_CONTEXT_SWITCH_CONSTANT;
}

static void put_constants(struct text *t, const struct lab_profile *p, const struct ms_exam_case *c,
			  double slow, bool dut)
{
	/* A turn of a busy loop as on processors since Skylake, where PAUSE takes 140 cycles; the
	 * other end's is longer still: what it does beside sending is of no interest. */
	put(t, "    constants:\n      relax_ns: %.1f\n", dut ? 61 * slow : 200);
	for (unsigned i = 0; i < LAB_CONSTANT_COUNT; i++) {
		const struct lab_constant_info *info = &lab_constant_info[i];
		double value = (double)p->constant[i].value / 1000 * slow;

		if (!info->scales || i == LAB_COST_RELAX)
			continue;
		if (dut && is_irq(i))
			value *= c->irq_price;
		if (dut && is_switch(i))
			value *= c->switch_price;
		put(t, "      %s: %.3f\n", info->key, value);
	}
	if (dut)
		put(t, "      pci_gbps: %g\n      poll_budget: %u\n", c->pci_gbps, c->budget);
}

static const char *mode_name(enum lab_rx_mode mode)
{
	return lab_rx_mode_name(mode);
}

/* "0,1" */
static void put_irq_cpus(struct text *t, const struct ms_exam_case *c, enum ms_place place)
{
	unsigned first = place == MS_PLACE_AWAY ? c->apps : 0;
	unsigned n = place == MS_PLACE_AWAY ? c->cpus - c->apps : c->apps ? c->apps : c->cpus;

	if (place == MS_PLACE_ZERO)
		n = 1;
	for (unsigned i = 0; i < n; i++)
		put(t, "%s%u", i ? "," : "", first + i);
}

static void put_dut_work(struct text *t, const struct ms_exam_case *c)
{
	put(t, "    workloads:\n");
	for (unsigned i = 0; i < c->apps; i++) {
		put(t, "      - {name: app%u, chip: eth0, cpu: %u, ", i, i);
		switch (c->load) {
		case MS_LOAD_PKTGEN:
			put(t, "kind: pktgen, queue: %u, sizes: \"%u\"}\n", i, c->bytes);
			break;
		case MS_LOAD_GEN:
			put(t, "kind: gen, queue: %u, sizes: \"%u\", params: {stamp: no}", i,
			    c->bytes);
			if (c->rate_mpps > 0)
				put(t, ", rate: %.0fpps", c->rate_mpps * 1e6 / c->apps);
			put(t, "}\n");
			break;
		case MS_LOAD_SOCKET:
			put(t, "kind: recv, params: {via: socket, rcvbuf: %u}}\n", c->rcvbuf);
			break;
		case MS_LOAD_SERVER:
			put(t, "kind: rr, params: {side: server, rcvbuf: %u}}\n", c->rcvbuf);
			break;
		default:
			put(t,
			    "kind: rr, sizes: \"%u\", params: {side: client, outstanding: %u, "
			    "rcvbuf: %u, think: %uus}}\n",
			    HO_MAX(c->bytes, 100u), c->outstanding, c->rcvbuf, c->think_us);
			break;
		}
	}
}

static void put_dut(struct text *t, const struct lab_profile *p, const struct ms_exam_case *c,
		    const struct ms_exam_set *s)
{
	put(t, "  - name: dut\n    profile: " PROFILE "\n    cpus: %u\n", c->cpus);
	put_constants(t, p, c, c->slow, true);
	put(t,
	    "    chips:\n      - {name: eth0, model: \"82599\", rx-mode: %s, queues: %u, irq-cpus: "
	    "[",
	    mode_name(s->mode), c->queues);
	put_irq_cpus(t, c, s->place);
	put(t, "], params: {tx: %u, rx: %u, rx-usecs: %u}}\n", sends(c) ? s->ring : 1024,
	    sends(c) ? 64 : s->ring, s->usecs);
	if (c->apps)
		put_dut_work(t, c);
}

/* The other end, out of the way: its interrupts have a CPU of their own. */
static void put_peer(struct text *t, const struct lab_profile *p, const struct ms_exam_case *c)
{
	/* Enough senders for the rate: one makes some 4 Mpps here. */
	unsigned senders = c->rate_mpps > 3 ? 3 : 1;

	put(t, "  - name: peer\n    profile: " PROFILE "\n    cpus: 4\n");
	put_constants(t, p, c, answers(c) ? c->peer_slow : 0.3, false);
	put(t,
	    "    chips:\n      - {name: eth0, model: \"82599\", rx-mode: napi, queues: %u, "
	    "irq-cpus: [3], params: {tx: 4096, rx: 1024, rx-usecs: %u}}\n    workloads:\n",
	    answers(c) ? 1 : senders, answers(c) ? 0 : 10);
	if (c->load == MS_LOAD_SERVER) {
		put(t,
		    "      - {name: client, kind: rr, chip: eth0, cpu: 0, sizes: \"%u\", params: "
		    "{side: client, outstanding: %u, think: %uus}}\n",
		    HO_MAX(c->bytes, 100u), c->outstanding, c->think_us);
		return;
	}
	if (c->load == MS_LOAD_CLIENT) {
		put(t, "      - {name: server, kind: rr, chip: eth0, cpu: 0, params: {side: "
		       "server}}\n");
		return;
	}
	for (unsigned i = 0; i < senders; i++) {
		put(t,
		    "      - {name: gen%u, kind: gen, chip: eth0, queue: %u, cpu: %u, sizes: "
		    "\"%u\", rate: %.0fpps, params: {stamp: no",
		    i, i, i, c->bytes, c->rate_mpps * 1e6 / senders);
		put(t, ", ip-src: %s}}\n", c->flows > 1 ? "10.0.0.1-10.0.0.64" : "10.0.0.1");
	}
}

/* A multiple of the cells' intervals, so that what comes in rounds is counted whole; and long
 * enough that one round more or less is no gain: with few outstanding, there are few. */
static double interval_us(const struct ms_exam_case *c, const struct ms_exam_set *set)
{
	if (answers(c))
		return c->outstanding <= 4 ? 6 * 3072 : 3072;
	return set->usecs == 1 ? 17 * 124.928 : 2150.4;
}

static unsigned warmup_us(const struct ms_exam_set *set)
{
	return set->usecs == 1 ? 3000 : 1000;
}

int ms_exam_scenario(const struct ms_exam_case *c, const struct ms_exam_set *set,
		     const struct lab_profile *p, struct lab_scenario **out, struct ho_err *err)
{
	char buf[8192];
	struct text t = { buf, sizeof(buf) };

	put(&t, "name: case-%u\ntitle: case %u of the examination\nseed: %llu\n", c->number,
	    c->number, (unsigned long long)c->seed);
	put(&t, "warmup: %uus\nduration: %.0fns\nhosts:\n", warmup_us(set),
	    interval_us(c, set) * 1000);
	put_dut(&t, p, c, set);
	if (!sends(c))
		put_peer(&t, p, c);
	put(&t, "wires:\n  - {name: cable, from: dut.eth0, %srate: %.0fmbps, propagation: 25ns}\n",
	    sends(c) ? "" : "to: peer.eth0, ", c->wire_gbps * 1000);
	return lab_scenario_parse("examination", buf, strlen(buf), out, err);
}

/* --- many runs of a case -------------------------------------------------------------------- */

static int vary(struct lab_scenario *s, const char *path, struct ho_err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int vary(struct lab_scenario *s, const char *path, struct ho_err *err, const char *fmt, ...)
{
	char value[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	return lab_scenario_set(s, path, value, err);
}

/* What put_dut and ms_exam_scenario make of the settings. */
static int vary_set(struct lab_scenario *s, const struct ms_exam_case *c,
		    const struct ms_exam_set *set, struct ho_err *err)
{
	char cpus[64] = "";
	struct text t = { cpus, sizeof(cpus) };
	int rc;

	put_irq_cpus(&t, c, set->place);
	rc = vary(s, "hosts.dut.chips.eth0.irq-cpus", err, "%s", cpus);
	if (rc == 0)
		rc = vary(s, "hosts.dut.chips.eth0.rx-mode", err, "%s", mode_name(set->mode));
	if (rc == 0)
		rc = vary(s, "hosts.dut.chips.eth0.rx-usecs", err, "%u", set->usecs);
	if (rc == 0)
		rc = vary(s, sends(c) ? "hosts.dut.chips.eth0.tx" : "hosts.dut.chips.eth0.rx", err,
			  "%u", set->ring);
	if (rc == 0)
		rc = vary(s, "warmup", err, "%uus", warmup_us(set));
	if (rc == 0)
		rc = vary(s, "duration", err, "%.0fns", interval_us(c, set) * 1000);
	return rc;
}

int ms_exam_ground(struct ms_exam_ground *g, const struct ms_exam_case *c, struct ho_err *err)
{
	int rc = g->profile ? 0 : lab_profile_load(PROFILE, &g->profile, err);

	lab_scenario_free(g->scenario);
	g->scenario = NULL;
	g->c = c;
	if (rc == 0 && !g->store && lab_store_create(&g->store) < 0)
		rc = ho_err_set(err, -ENOMEM, "out of memory for runs");
	return rc < 0 ? rc : ms_exam_scenario(c, &c->set, g->profile, &g->scenario, err);
}

void ms_exam_ground_fini(struct ms_exam_ground *g)
{
	lab_scenario_free(g->scenario);
	lab_profile_free(g->profile);
	lab_store_destroy(g->store);
	memset(g, 0, sizeof(*g));
}

/* --- running it ----------------------------------------------------------------------------- */

static bool saturated(const struct lab_result *r)
{
	for (unsigned i = 0; i < r->host[0].cpus; i++)
		if (lab_cpu_busy(&r->host[0].cpu[i]) > 0.97)
			return true;
	return false;
}

/* By the dut's programs. */
static uint64_t taken(const struct lab_result *r)
{
	uint64_t n = 0;

	for (unsigned w = 0; w < r->n_workloads; w++)
		if (!r->workload[w].host)
			n += r->workload[w].packets;
	return n;
}

static double objective(const struct ms_exam_case *c, const struct lab_result *r)
{
	double n = 0;

	/* Between two polls frames wait in the ring, and which side of the interval's ends they are
	 * on is chance: while every CPU has time left, what arrived and was not dropped counts. */
	if (c->load == MS_LOAD_SINK || c->load == MS_LOAD_SOCKET) {
		const struct lab_chip_result *chip = &r->chip[0];
		double kept = lab_per_second(
			r, chip->rx_arrived - HO_MIN(chip->rx_arrived,
						     chip->rx_missed + chip->rx_no_descriptor +
							     chip->socket_drops));

		n = lab_per_second(r, c->load == MS_LOAD_SINK ? chip->rx_packets : taken(r));
		return saturated(r) || n < 0.85 * kept ? fmin(n, kept) : kept;
	}
	switch (c->load) {
	case MS_LOAD_SERVER:
	case MS_LOAD_CLIENT:
		for (unsigned w = 0; w < r->n_workloads; w++)
			n += (double)r->workload[w].transactions;
		return n * (double)SIM_PS_PER_S / (double)r->interval;
	/* A sender that still fills a long ring is faster than what it gets rid of, and so is a
	 * controller that still fills its buffer in front of a full wire. */
	default:
		return fmin(lab_per_second(r, r->chip[0].tx_sent),
			    c->wire_gbps * 1e9 / 8 / (c->bytes + 24));
	}
}

int ms_exam_run(struct ms_exam_ground *g, const struct ms_exam_case *c,
		const struct ms_exam_set *set, double *value, struct ms_evidence *ev,
		struct ho_err *err)
{
	struct lab_result *r = malloc(sizeof(*r));
	struct lab_scenario *s = c == g->c ? g->scenario : NULL;
	int rc = r ? 0 : ho_err_set(err, -ENOMEM, "out of memory for a run");

	if (rc == 0)
		rc = s ? vary_set(s, c, set, err) : ms_exam_scenario(c, set, g->profile, &s, err);
	if (rc == 0)
		rc = lab_run_again(s, g->store, r, err);
	if (rc == 0) {
		*value = objective(c, r);
		if (ev)
			ms_evidence_lab(s, r, 0, ev);
	} else {
		ho_err_prefix(err, "case %u (%s)", c->number, ms_exam_load_names[c->load]);
	}
	if (s != g->scenario)
		lab_scenario_free(s);
	free(r);
	return rc;
}
