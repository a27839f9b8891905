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
	struct ho_hist *latency[LAB_RUN_WORKLOADS]; /* of receivers, before the interval only */
};

static void snap_free(struct snapshot *s)
{
	for (unsigned w = 0; s && w < LAB_RUN_WORKLOADS; w++)
		free(s->latency[w]);
	free(s);
}

static void snap_chip(const struct lab_stage_chip *c, struct snapshot *s, unsigned i)
{
	struct lab_chip_result *r = &s->chip[i];
	struct lab_wire_stats out, in;

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
		}
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

static struct snapshot *snap(const struct lab_stage *stage, bool delays)
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
	for (unsigned w = 0; delays && w < stage->n_work; w++) {
		const struct tr_receiver *r = stage->work[w].receiver;

		if (!r)
			continue;
		s->latency[w] = malloc(sizeof(*s->latency[w]));
		if (!s->latency[w]) {
			snap_free(s);
			return NULL;
		}
		memcpy(s->latency[w], &r->latency_ns, sizeof(*s->latency[w]));
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
		.register_reads = b->pci[i].register_reads - a->pci[i].register_reads,
		.register_writes = b->pci[i].register_writes - a->pci[i].register_writes,
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
			.cpu = work->spec->cpu,
			.chip = work->chip_index,
			.frame_bytes = work->frame_bytes,
			.packets = b->work[w].packets - a->work[w].packets,
			.bytes = b->work[w].bytes - a->work[w].bytes,
			.waiting = (double)((b->work[w].waiting_ns - a->work[w].waiting_ns) *
					    SIM_PS_PER_NS) /
				   interval,
		};
	}
}

/* The delays of the frames that arrived in the interval, now: the receivers' histograms less what
 * they held before. */
static void delays(const struct lab_stage *stage, const struct snapshot *before,
		   struct lab_result *out)
{
	for (unsigned w = 0; before && w < stage->n_work; w++) {
		const struct tr_receiver *r = stage->work[w].receiver;
		struct lab_workload_result *work = &out->workload[w];
		struct ho_hist *h = before->latency[w];
		unsigned low = HO_HIST_BUCKETS, high = 0;

		if (!r)
			continue;
		h->count = r->latency_ns.count - h->count;
		h->sum = r->latency_ns.sum - h->sum;
		for (unsigned i = 0; i < HO_HIST_BUCKETS; i++) {
			h->bucket[i] = r->latency_ns.bucket[i] - h->bucket[i];
			if (!h->bucket[i])
				continue;
			low = HO_MIN(low, i);
			high = i;
		}
		if (!h->count)
			continue;
		/* Least and greatest are known to a bucket, unless they are those of all time. */
		h->min = HO_MAX(r->latency_ns.min, ho_hist_bucket_low(low));
		h->max = HO_MIN(r->latency_ns.max, ho_hist_bucket_low(high + 1) - 1);
		work->stamped = h->count;
		work->latency_mean_ns = (uint64_t)ho_hist_mean(h);
		work->latency_p50_ns = ho_hist_quantile(h, 0.5);
		work->latency_p99_ns = ho_hist_quantile(h, 0.99);
		work->latency_max_ns = h->max;
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

int lab_run(const struct lab_scenario *scenario, struct lab_trace *trace, struct lab_result *out,
	    struct ho_err *err)
{
	double wall = real_seconds(CLOCK_MONOTONIC);
	double cpu = real_seconds(CLOCK_PROCESS_CPUTIME_ID);
	struct lab_stage *stage = calloc(1, sizeof(*stage));
	struct snapshot *before = NULL, *after = NULL;
	int rc;

	memset(out, 0, sizeof(*out));
	if (!stage)
		return ho_err_set(err, -ENOMEM, "out of memory for a run");
	lab_trace_pause(trace, true, 0);
	rc = lab_stage_build(stage, scenario, trace, err);
	if (rc < 0)
		goto free_stage;
	lab_stage_watch(stage);
	sim_run_until(stage->sim, sim_now(stage->sim) + scenario->warmup);
	before = snap(stage, true);
	lab_trace_pause(trace, false, sim_now(stage->sim));
	sim_run_until(stage->sim, sim_now(stage->sim) + scenario->duration);
	lab_trace_pause(trace, true, sim_now(stage->sim));
	after = snap(stage, false);
	if (!before || !after) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for a run's counters");
		goto free_stage;
	}
	out->interval = after->at - before->at;
	between(stage, before, after, out);
	delays(stage, before, out);
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
	snap_free(before);
	snap_free(after);
	free(stage);
	out->wall_seconds = real_seconds(CLOCK_MONOTONIC) - wall;
	out->cpu_seconds = real_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (rc == -EPROTO)
		ho_err_prefix(err, "%s: an invariant of the lab is broken", scenario->name);
	return rc;
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

/* The first workload that received stamped frames in the interval. */
static const struct lab_workload_result *probed(const struct lab_result *result)
{
	for (unsigned w = 0; w < result->n_workloads; w++)
		if (result->workload[w].stamped)
			return &result->workload[w];
	return NULL;
}

int lab_result_value(const struct lab_result *result, const char *word, double *out,
		     struct ho_err *err)
{
	const struct lab_workload_result *sender = lab_result_sender(result);
	const struct lab_workload_result *probe = probed(result);

	if (!strcmp(word, "pps"))
		*out = sender ? lab_per_second(result, sender->packets) : 0;
	else if (!strcmp(word, "gbps"))
		*out = sender ? lab_per_second(result, sender->bytes) * 8 / 1e9 : 0;
	else if (!strcmp(word, "irqs_per_s"))
		*out = lab_per_second(result, result->chip[0].interrupts);
	else if (!strcmp(word, "probe_mean_ns"))
		*out = probe ? (double)probe->latency_mean_ns : 0;
	else if (!strcmp(word, "probe_p50_ns"))
		*out = probe ? (double)probe->latency_p50_ns : 0;
	else if (!strcmp(word, "probe_p99_ns"))
		*out = probe ? (double)probe->latency_p99_ns : 0;
	else if (!strcmp(word, "probe_max_ns"))
		*out = probe ? (double)probe->latency_max_ns : 0;
	else
		return ho_err_set(err, -EINVAL,
				  "'%s' is not a result of a run; pps, gbps, irqs_per_s and "
				  "probe_mean_ns, probe_p50_ns, probe_p99_ns, probe_max_ns are",
				  word);
	return 0;
}
