// SPDX-License-Identifier: BSD-2-Clause
/* One run of a scenario: warm-up, measured interval, invariants. */
#include "lab/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/i82599.h"
#include "lab/stage.h"
#include "lab/trace.h"
#include "nic/ixgbe.h"

/* Counters at one moment; a result is the difference of two. */
struct snapshot {
	sim_ps at; /* its beginning: reading a chip's counters takes time */
	struct lab_cpu_stats cpu[LAB_RUN_HOSTS][LAB_RUN_CPUS];
	struct lab_chip_result chip[LAB_RUN_CHIPS];
	struct {
		sim_ps tx, rx;
	} wire[LAB_RUN_CHIPS];
	struct lab_pci_stats pci[LAB_RUN_CHIPS];
	struct lab_work_counts work[LAB_RUN_WORKLOADS];
	uint64_t switches[LAB_RUN_WORKLOADS]; /* of its task */
};

static void snap_chip(const struct lab_stage_chip *c, struct snapshot *s, unsigned i)
{
	struct lab_chip_result *r = &s->chip[i];
	struct lab_wire_stats out, in;
	struct lab_i82599_counters n;

	for (unsigned q = 0; q < c->queues; q++) {
		const struct port_counters *tx = &c->port->txq[q]->ctr;
		const struct port_counters *rx = &c->port->rxq[q]->ctr;

		r->tx_packets += ho_ctr_read(&tx->packets);
		r->tx_bytes += ho_ctr_read(&tx->bytes);
		r->rx_packets += ho_ctr_read(&rx->packets);
		r->rx_bytes += ho_ctr_read(&rx->bytes);
		if (c->rx[q]) {
			struct mac_rx_stats m = mac_rx_stats(c->rx[q]);

			r->interrupts += m.interrupts;
			r->completes += m.completes;
			r->queue[q].interrupts = m.interrupts;
		}
		r->queue[q].tx_packets = ho_ctr_read(&tx->packets);
		r->queue[q].rx_packets = ho_ctr_read(&rx->packets);
		r->tx_full += ho_ctr_read(&tx->ring_full);
	}
	/* The model's own, for reading a register takes time and would change the run. */
	lab_i82599_counters(c->chip, &n);
	r->tx_sent = n.tx_frames;
	r->rx_arrived = n.rx_frames;
	r->rx_missed = n.rx_missed;
	r->rx_no_descriptor = n.rx_no_descriptor;
	if (c->socket) {
		r->socket_packets = lab_socket_delivered(c->socket);
		r->socket_drops = lab_socket_dropped(c->socket);
	}
	r->tx_stops = lab_stage_stat(c->port, "tx_restart_queue");
	lab_pci_stats(c->pci, &s->pci[i]);
	if (c->wire) {
		lab_wire_stats(c->wire, c->end, &out);
		lab_wire_stats(c->wire, !c->end, &in);
		s->wire[i].tx = out.busy;
		s->wire[i].rx = in.busy;
	}
}

static struct snapshot *snap(const struct lab_stage *stage)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->at = sim_now(stage->sim);
	for (unsigned h = 0; h < stage->n_hosts; h++) {
		const struct lab_machine *m = lab_exec_machine(stage->host[h].rt);

		for (unsigned c = 0; c < m->cpus && c < LAB_RUN_CPUS; c++)
			lab_exec_cpu_stats(stage->host[h].rt, c, &s->cpu[h][c]);
	}
	for (unsigned i = 0; i < stage->n_chips; i++)
		snap_chip(&stage->chip[i], s, i);
	for (unsigned w = 0; w < stage->n_work; w++)
		s->work[w] = lab_work_counts(&stage->work[w]);
	for (unsigned w = 0; w < stage->n_work; w++) {
		struct lab_task_stats task = { 0 };

		if (stage->work[w].task)
			lab_exec_task_stats(stage->work[w].task, &task);
		s->switches[w] = task.voluntary + task.involuntary;
	}
	return s;
}

static struct lab_cpu_stats cpu_between(const struct lab_cpu_stats *a,
					const struct lab_cpu_stats *b)
{
	return (struct lab_cpu_stats){
		.user = b->user - a->user,
		.system = b->system - a->system,
		.irq = b->irq - a->irq,
		.softirq = b->softirq - a->softirq,
		.idle = b->idle - a->idle,
		.interrupts = b->interrupts - a->interrupts,
		.voluntary = b->voluntary - a->voluntary,
		.involuntary = b->involuntary - a->involuntary,
		.softirqs = b->softirqs - a->softirqs,
		.polls = b->polls - a->polls,
		.squeezed = b->squeezed - a->squeezed,
		.ksoftirqd = b->ksoftirqd - a->ksoftirqd,
	};
}

static void chip_between(const struct lab_stage *stage, unsigned i, const struct snapshot *a,
			 const struct snapshot *b, double interval, struct lab_chip_result *out)
{
	const struct lab_stage_chip *c = &stage->chip[i];
	const struct lab_chip_result *x = &a->chip[i], *y = &b->chip[i];

	*out = (struct lab_chip_result){
		.host = c->host->index,
		.host_name = c->host->spec->name,
		.name = c->spec->name,
		.queues = c->queues,
		.rx_ring = c->rx_ring,
		.tx_ring = c->tx_ring,
		.rx_usecs = c->rx_usecs,
		.tx_usable = c->tx_ring - NIC_IXGBE_TX_RESERVE,
		.tx_packets = y->tx_packets - x->tx_packets,
		.tx_bytes = y->tx_bytes - x->tx_bytes,
		.rx_packets = y->rx_packets - x->rx_packets,
		.rx_bytes = y->rx_bytes - x->rx_bytes,
		.interrupts = y->interrupts - x->interrupts,
		.completes = y->completes - x->completes,
		.tx_stops = y->tx_stops - x->tx_stops,
		.wire_tx_busy = (double)(b->wire[i].tx - a->wire[i].tx) / interval,
		.wire_rx_busy = (double)(b->wire[i].rx - a->wire[i].rx) / interval,
		.pci_up_busy = (double)(b->pci[i].up_busy - a->pci[i].up_busy) / interval,
		.pci_down_busy = (double)(b->pci[i].down_busy - a->pci[i].down_busy) / interval,
		.wire_bps = c->wire ? lab_wire_bps(c->wire) : 0,
		.tx_sent = y->tx_sent - x->tx_sent,
		.rx_arrived = y->rx_arrived - x->rx_arrived,
		.rx_missed = y->rx_missed - x->rx_missed,
		.rx_no_descriptor = y->rx_no_descriptor - x->rx_no_descriptor,
		.socket_packets = y->socket_packets - x->socket_packets,
		.socket_drops = y->socket_drops - x->socket_drops,
		.tx_full = y->tx_full - x->tx_full,
		.register_reads = b->pci[i].register_reads - a->pci[i].register_reads,
		.register_writes = b->pci[i].register_writes - a->pci[i].register_writes,
	};
	for (unsigned q = 0; q < c->queues && q < LAB_RUN_QUEUES; q++)
		out->queue[q] = (struct lab_queue_result){
			.irq_cpu = c->spec->irq_cpus[q % c->spec->irq_cpus_count],
			.interrupts = y->queue[q].interrupts - x->queue[q].interrupts,
			.tx_packets = y->queue[q].tx_packets - x->queue[q].tx_packets,
			.rx_packets = y->queue[q].rx_packets - x->queue[q].rx_packets,
		};
}

/* What passed between the two moments. */
static void between(const struct lab_stage *stage, const struct snapshot *a,
		    const struct snapshot *b, struct lab_result *out)
{
	double interval = (double)out->interval;

	out->n_hosts = stage->n_hosts;
	out->n_chips = stage->n_chips;
	out->n_workloads = stage->n_work;
	for (unsigned h = 0; h < stage->n_hosts; h++) {
		const struct lab_machine *m = lab_exec_machine(stage->host[h].rt);

		out->host[h].name = stage->host[h].spec->name;
		out->host[h].cpus = HO_MIN(m->cpus, (unsigned)LAB_RUN_CPUS);
		for (unsigned c = 0; c < out->host[h].cpus; c++)
			out->host[h].cpu[c] = cpu_between(&a->cpu[h][c], &b->cpu[h][c]);
	}
	for (unsigned i = 0; i < stage->n_chips; i++)
		chip_between(stage, i, a, b, interval, &out->chip[i]);
	for (unsigned w = 0; w < stage->n_work; w++) {
		const struct lab_stage_work *work = &stage->work[w];

		out->workload[w] = (struct lab_workload_result){
			.host = work->host->index,
			.host_name = work->host->spec->name,
			.name = work->spec->name,
			.kind = work->spec->kind,
			.stamps = work->stamps,
			.cpu = work->spec->cpu,
			.chip = work->chip_index,
			.frame_bytes = work->frame_bytes,
			.packets = b->work[w].packets - a->work[w].packets,
			.bytes = b->work[w].bytes - a->work[w].bytes,
			.transactions = b->work[w].transactions - a->work[w].transactions,
			.context_switches = b->switches[w] - a->switches[w],
			.waiting = (double)((b->work[w].waiting_ns - a->work[w].waiting_ns) *
					    SIM_PS_PER_NS) /
				   interval,
		};
	}
}

/* Where a workload's delays are collected: of arrivals, or of its queue. */
static struct ho_hist *delays_of(const struct lab_stage_work *work)
{
	if (work->client)
		return tr_rr_client_histogram(work->client);
	return work->receiver ? &work->receiver->latency_ns : work->drain_ns;
}

/* Of the interval, which begins now, and of nothing before it. */
static void forget_delays(const struct lab_stage *stage)
{
	for (unsigned w = 0; w < stage->n_work; w++) {
		struct ho_hist *h = delays_of(&stage->work[w]);

		if (h)
			ho_hist_init(h);
	}
}

static struct lab_delay delay_of(const struct ho_hist *h)
{
	if (!h->count)
		return (struct lab_delay){ 0 };
	return (struct lab_delay){ .n = h->count,
				   .mean_ns = (uint64_t)ho_hist_mean(h),
				   .p50_ns = ho_hist_quantile(h, 0.5),
				   .p99_ns = ho_hist_quantile(h, 0.99),
				   .max_ns = h->max };
}

static void delays(const struct lab_stage *stage, struct lab_result *out)
{
	for (unsigned w = 0; w < stage->n_work; w++) {
		const struct ho_hist *h = delays_of(&stage->work[w]);
		struct lab_workload_result *work = &out->workload[w];

		if (h)
			*(stage->work[w].receiver || stage->work[w].client ? &work->latency
									   : &work->drain) =
				delay_of(h);
	}
}

/* What is only known, or only final, at the end: drops, latencies, streams. */
static void finals(const struct lab_stage *stage, struct lab_result *out)
{
	for (unsigned i = 0; i < stage->n_chips; i++) {
		const struct lab_stage_chip *c = &stage->chip[i];

		for (unsigned q = 0; q < c->queues; q++) {
			for (unsigned d = 0; d < PORT_DROP_COUNT; d++)
				out->chip[i].drops[d] += c->port->txq[q]->ctr.drops[d] +
							 c->port->rxq[q]->ctr.drops[d];
		}
		if (c->port->ops->external_drops)
			c->port->ops->external_drops(c->port, out->chip[i].drops);
		lab_stage_tx_losses(c, out->chip[i].drops);
		lab_stage_rx_losses(c, out->chip[i].drops);
		out->chip[i].tx_timeouts = lab_stage_stat(c->port, "tx_timeout_count");
		out->chip[i].irqs_rearmed = lab_stage_stat(c->port, "irq_rearmed");
		out->chip[i].resets = lab_stage_stat(c->port, "hw_resets");
		out->chip[i].link_changes = lab_stage_stat(c->port, "lsc_int");
		out->chip[i].faults = c->fault.counts;
		out->chip[i].longest_stall = c->longest_stall;
	}
	for (unsigned w = 0; w < stage->n_work; w++) {
		struct tr_receiver *r = stage->work[w].receiver;
		struct lab_workload_result *work = &out->workload[w];
		struct tr_tracks *tracks = r ? &r->tracks : NULL;
		struct tr_track_sum sum = { 0 };

		if (!r)
			continue;
		if (tr_tracks_sum(&tracks, 1, &sum) < 0)
			continue;
		work->lost = sum.lost;
		work->reordered = sum.reordered;
		work->duplicates = sum.duplicates;
		tr_track_sum_fini(&sum);
	}
	for (unsigned w = 0; w < stage->n_wires; w++) {
		for (unsigned e = 0; e < 2; e++) {
			struct lab_wire_stats s;

			lab_wire_stats(stage->wire[w], e, &s);
			out->sim_frames += s.frames;
		}
	}
}

static double real_seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int run(const struct lab_scenario *scenario, struct lab_store *store,
	       struct lab_trace *trace, struct lab_result *out, struct ho_err *err)
{
	double wall = real_seconds(CLOCK_MONOTONIC);
	double cpu = real_seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct lab_stage *stage = calloc(1, sizeof(*stage));
	struct snapshot *before = NULL, *after = NULL;
	int rc;

	memset(out, 0, sizeof(*out));
	if (!stage)
		return ho_err_set(err, -ENOMEM, "out of memory for a run");
	stage->store = store;
	lab_trace_pause(trace, true, 0);
	rc = lab_stage_build(stage, scenario, NULL, trace, err);
	if (rc < 0)
		goto free_stage;
	lab_stage_watch(stage);
	sim_run_until(stage->sim, sim_now(stage->sim) + scenario->warmup);
	before = snap(stage);
	forget_delays(stage);
	lab_trace_pause(trace, false, sim_now(stage->sim));
	sim_run_until(stage->sim, sim_now(stage->sim) + scenario->duration);
	lab_trace_pause(trace, true, sim_now(stage->sim));
	after = snap(stage);
	if (!before || !after) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for a run's counters");
		goto free_stage;
	}
	out->interval = after->at - before->at;
	between(stage, before, after, out);
	delays(stage, out);
	rc = lab_stage_check_cpus(stage, err);
	if (rc < 0)
		goto free_stage;
	lab_stage_stop(stage);
	finals(stage, out);
	out->digest = sim_digest(stage->sim);
	out->sim_events = sim_events(stage->sim);
	rc = lab_stage_check(stage, err);
free_stage:
	lab_stage_free(stage);
	free(before);
	free(after);
	free(stage);
	out->wall_seconds = real_seconds(CLOCK_MONOTONIC) - wall;
	out->cpu_seconds = real_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (rc == -EPROTO)
		ho_err_prefix(err, "%s: an invariant of the lab is broken", scenario->name);
	return rc;
}

int lab_run(const struct lab_scenario *scenario, struct lab_trace *trace, struct lab_result *out,
	    struct ho_err *err)
{
	return run(scenario, NULL, trace, out, err);
}

int lab_run_again(const struct lab_scenario *scenario, struct lab_store *store,
		  struct lab_result *out, struct ho_err *err)
{
	return run(scenario, store, NULL, out, err);
}

double lab_cpu_busy(const struct lab_cpu_stats *cpu)
{
	double busy = (double)(cpu->user + cpu->system + cpu->irq + cpu->softirq);

	return busy / (busy + (double)cpu->idle);
}

double lab_per_second(const struct lab_result *result, uint64_t count)
{
	return (double)count * (double)SIM_PS_PER_S / (double)result->interval;
}

const struct lab_workload_result *lab_result_sender(const struct lab_result *result)
{
	for (unsigned w = 0; w < result->n_workloads; w++) {
		if (result->workload[w].kind != LAB_WORK_RECV)
			return &result->workload[w];
	}
	return result->n_workloads ? &result->workload[0] : NULL;
}

/* The delays of the first workload that received stamped frames, and of the first that sent some:
 * a probe is stamped, what it stands behind need not be. */
static struct lab_delay arrival_of(const struct lab_result *result)
{
	for (unsigned w = 0; w < result->n_workloads; w++)
		if (result->workload[w].latency.n)
			return result->workload[w].latency;
	return (struct lab_delay){ 0 };
}

static struct lab_delay drain_of(const struct lab_result *result)
{
	for (unsigned w = 0; w < result->n_workloads; w++)
		if (result->workload[w].stamps && result->workload[w].drain.n)
			return result->workload[w].drain;
	return (struct lab_delay){ 0 };
}

/* A result's word, taken apart. */
enum result_of { RESULT_PPS, RESULT_GBPS, RESULT_IRQS, RESULT_ARRIVAL, RESULT_DRAIN };

static const struct {
	const char *word; /* all of it, or what stands before the underscore */
	enum result_of of;
	bool delay;
} result_words[] = {
	{ "pps", RESULT_PPS, false },         { "gbps", RESULT_GBPS, false },
	{ "irqs_per_s", RESULT_IRQS, false }, { "arrival_", RESULT_ARRIVAL, true },
	{ "drain_", RESULT_DRAIN, true },
};

static const struct {
	const char *word;
	size_t offset;
} delay_words[] = {
	{ "mean_ns", offsetof(struct lab_delay, mean_ns) },
	{ "p50_ns", offsetof(struct lab_delay, p50_ns) },
	{ "p99_ns", offsetof(struct lab_delay, p99_ns) },
	{ "max_ns", offsetof(struct lab_delay, max_ns) },
};

static int find_result(const char *word, enum result_of *of, size_t *offset, struct ho_err *err)
{
	for (size_t i = 0; i < HO_ARRAY_LEN(result_words); i++) {
		size_t n = strlen(result_words[i].word);

		*of = result_words[i].of;
		*offset = 0;
		if (!result_words[i].delay && !strcmp(word, result_words[i].word))
			return 0;
		if (!result_words[i].delay || strncmp(word, result_words[i].word, n))
			continue;
		for (size_t k = 0; k < HO_ARRAY_LEN(delay_words); k++) {
			*offset = delay_words[k].offset;
			if (!strcmp(word + n, delay_words[k].word))
				return 0;
		}
	}
	return ho_err_set(err, -EINVAL,
			  "'%s' is not a result of a run; pps, gbps, irqs_per_s and arrival_ or "
			  "drain_ with mean_ns, p50_ns, p99_ns or max_ns are",
			  word);
}

int lab_result_check(const char *word, struct ho_err *err)
{
	enum result_of of;
	size_t offset;

	return find_result(word, &of, &offset, err);
}

int lab_result_value(const struct lab_result *result, const char *word, double *out,
		     struct ho_err *err)
{
	const struct lab_workload_result *sender = lab_result_sender(result);
	struct lab_delay delay;
	enum result_of of;
	size_t offset;
	int rc = find_result(word, &of, &offset, err);

	if (rc < 0)
		return rc;
	switch (of) {
	case RESULT_PPS:
		*out = sender ? lab_per_second(result, sender->packets) : 0;
		return 0;
	case RESULT_GBPS:
		*out = sender ? lab_per_second(result, sender->bytes) * 8 / 1e9 : 0;
		return 0;
	case RESULT_IRQS:
		*out = lab_per_second(result, result->chip[0].interrupts);
		return 0;
	case RESULT_ARRIVAL:
		delay = arrival_of(result);
		break;
	case RESULT_DRAIN:
		delay = drain_of(result);
		break;
	}
	*out = (double)*(const uint64_t *)((const char *)&delay + offset);
	return 0;
}
