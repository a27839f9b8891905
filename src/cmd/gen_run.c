// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/gen_run.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "traffic/receiver.h"

/* Senders begin together, when all of them are there. */
#define START_AFTER_NS 2000000u
/* What is under way when the senders have ended arrives within this, or not at all. */
#define QUIET_NS      100000000u
#define QUIET_LOOK_NS 1000000u
/* And however much still comes, of others perhaps, this is the end. */
#define QUIET_MOST_NS 5000000000u
#define DRAIN_NS      1000000000u

struct tasks {
	struct tr_source **source;
	struct tr_sender **sender;
	struct tr_receiver **receiver;
	unsigned n_senders, n_receivers;
};

/* What rows are made of. */
struct totals {
	uint64_t tx_packets, tx_bytes, ring_full, rx_packets, rx_bytes, drops;
	uint64_t stamped, latency_sum;
};

void gen_columns(struct gen *g)
{
	struct ho_table *t = &g->session.table;

	ho_table_column(t, "second", 6);
	ho_table_column(t, "tx Mpps", 10);
	ho_table_column(t, "tx Gbit/s", 10);
	ho_table_column(t, "ring full", 10);
	if (g->rx) {
		ho_table_column(t, "rx Mpps", 10);
		ho_table_column(t, "rx Gbit/s", 10);
		ho_table_column(t, "latency us", 10);
	}
	ho_table_column(t, "drops", 10);
}

static void read_totals(const struct gen *g, const struct tasks *tasks, struct totals *t)
{
	*t = (struct totals){ 0 };
	for (unsigned i = 0; i < g->tx->n_txq; i++) {
		const struct port_txq *q = g->tx->txq[i];

		t->tx_packets += ho_ctr_read(&q->ctr.packets);
		t->tx_bytes += ho_ctr_read(&q->ctr.bytes);
		t->ring_full += ho_ctr_read(&q->ctr.ring_full);
		t->drops += port_drops_sum(q->ctr.drops);
	}
	for (unsigned i = 0; g->rx && i < g->rx->n_rxq; i++) {
		const struct port_rxq *q = g->rx->rxq[i];

		t->rx_packets += ho_ctr_read(&q->ctr.packets);
		t->rx_bytes += ho_ctr_read(&q->ctr.bytes);
		t->drops += port_drops_sum(q->ctr.drops);
	}
	for (unsigned i = 0; i < tasks->n_receivers; i++) {
		t->stamped += ho_ctr_read(&tasks->receiver[i]->stamped);
		t->latency_sum += ho_ctr_read(&tasks->receiver[i]->latency_sum);
	}
}

static double gbps(uint64_t packets, uint64_t bytes, double seconds)
{
	return 8e-9 * (double)(bytes + TR_FCS_BYTES * packets) / seconds;
}

static void fill_row(struct gen *g, const struct totals *now, const struct totals *before)
{
	double seconds = cmd_session_row_seconds(&g->session);
	uint64_t tx = now->tx_packets - before->tx_packets,
		 rx = now->rx_packets - before->rx_packets;
	struct ho_table *t = &g->session.table;

	ms_rates_add(&g->report.tx_rates, (double)tx / seconds);
	ho_table_cell(t, "%u", g->session.rows + 1);
	ho_table_cell(t, "%.6f", (double)tx / seconds / 1e6);
	ho_table_cell(t, "%.4f", gbps(tx, now->tx_bytes - before->tx_bytes, seconds));
	ho_table_cell(t, "%llu", (unsigned long long)(now->ring_full - before->ring_full));
	if (g->rx) {
		uint64_t stamped = now->stamped - before->stamped;

		ms_rates_add(&g->report.rx_rates, (double)rx / seconds);
		ho_table_cell(t, "%.6f", (double)rx / seconds / 1e6);
		ho_table_cell(t, "%.4f", gbps(rx, now->rx_bytes - before->rx_bytes, seconds));
		if (stamped)
			ho_table_cell(t, "%.2f",
				      (double)(now->latency_sum - before->latency_sum) /
					      (double)stamped / 1e3);
		else
			ho_table_cell(t, "-");
	}
	ho_table_cell(t, "%llu", (unsigned long long)(now->drops - before->drops));
}

static int make_receivers(struct gen *g, struct tasks *tasks, struct ho_err *err)
{
	tasks->receiver = calloc(g->rx->n_rxq, sizeof(tasks->receiver[0]));
	if (!tasks->receiver)
		return ho_err_set(err, -ENOMEM, "out of memory for receivers");
	for (unsigned i = 0; i < g->rx->n_rxq; i++) {
		struct tr_receiver_config config = {
			.rt = g->rx->rt,
			.rxq = g->rx->rxq[i],
			.cache = g->rx->rxq[i]->cache,
			.filter = g->filter,
			.end_ns = RT_FOREVER,
		};
		int rc = tr_receiver_create(&config, &tasks->receiver[i], err);

		if (rc < 0)
			return rc;
		tasks->n_receivers++;
	}
	return 0;
}

static int make_senders(struct gen *g, const struct gen_run *run, struct tasks *tasks,
			struct ho_err *err)
{
	const unsigned workers =
		run->count ? (unsigned)HO_MIN((uint64_t)g->workers, run->count) : g->workers;
	uint64_t start = rt_now_ns(g->session.rt) + START_AFTER_NS;

	tasks->source = calloc(workers, sizeof(tasks->source[0]));
	tasks->sender = calloc(workers, sizeof(tasks->sender[0]));
	if (!tasks->source || !tasks->sender)
		return ho_err_set(err, -ENOMEM, "out of memory for senders");
	for (unsigned i = 0; i < workers; i++) {
		struct tr_sender_config config = {
			.rt = g->tx->rt,
			.txq = cmd_session_txq(&g->session, g->tx, i),
			.cache = cmd_session_tx_cache(&g->session, g->tx, i),
			.pace = { .rate = run->rate,
				  .link_bps = g->tx->link_bps,
				  .burst = run->burst,
				  .worker = i,
				  .workers = workers,
				  .timed = run->timed },
			.mean_bytes = (uint32_t)g->mean_bytes,
			.count = run->count / workers + (i < run->count % workers),
			.start_ns = start,
			.duration_ns = run->duration_ns,
			.done_event = g->session.done_event,
		};
		int rc = g->replay ? tr_replay_create(g->replay, i, workers, &tasks->source[i], err)
				   : tr_source_create(g->spec, i, workers, &tasks->source[i], err);

		if (rc < 0)
			return rc;
		config.source = tasks->source[i];
		rc = tr_sender_create(&config, &tasks->sender[i], err);
		if (rc < 0) {
			tr_source_destroy(tasks->source[i]);
			return rc;
		}
		tasks->n_senders++;
	}
	return 0;
}

static void destroy_tasks(struct tasks *tasks)
{
	for (unsigned i = 0; i < tasks->n_senders; i++) {
		tr_sender_destroy(tasks->sender[i]);
		tr_source_destroy(tasks->source[i]);
	}
	for (unsigned i = 0; i < tasks->n_receivers; i++)
		tr_receiver_destroy(tasks->receiver[i]);
	free(tasks->sender);
	free(tasks->source);
	free(tasks->receiver);
}

static bool senders_done(const struct tasks *tasks)
{
	for (unsigned i = 0; i < tasks->n_senders; i++) {
		if (!__atomic_load_n(&tasks->sender[i]->done, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

static void ask_senders(const struct gen *g, const struct tasks *tasks)
{
	for (unsigned i = 0; i < tasks->n_senders; i++) {
		tr_stop_ask(&tasks->sender[i]->stop);
		/* It may be waiting for a pipe and not for the stop. */
		if (g->replay)
			tr_replay_ask_stop(tasks->source[i]);
	}
}

/* A row a second until all senders have ended; asks them to when we are interrupted. */
static void watch(struct gen *g, const struct gen_run *run, const struct tasks *tasks)
{
	/* Senders see to the duration themselves, unless they wait for a pipe to give or to take.
	 */
	const uint64_t end_ns =
		(g->replay || g->tx->ops->hurry) && run->duration_ns
			? rt_now_ns(g->session.rt) + START_AFTER_NS + run->duration_ns
			: RT_FOREVER;
	struct totals before, now;
	bool asked = false;

	read_totals(g, tasks, &before);
	cmd_session_rows_begin(&g->session);
	while (!senders_done(tasks)) {
		if (cmd_session_wait(&g->session, asked ? RT_FOREVER : end_ns)) {
			read_totals(g, tasks, &now);
			if (run->rows) {
				fill_row(g, &now, &before);
				cmd_session_row(&g->session);
			} else {
				cmd_session_rows_begin(&g->session);
			}
			before = now;
		}
		if (!asked && (g->session.interrupted || rt_now_ns(g->session.rt) >= end_ns)) {
			cmd_session_hurry(&g->session);
			ask_senders(g, tasks);
			asked = true;
		}
	}
	if (run->rows && cmd_session_last_row(&g->session)) {
		read_totals(g, tasks, &now);
		fill_row(g, &now, &before);
		cmd_session_row(&g->session);
	}
}

/* Until all that was sent has arrived, or nothing has come for a while. */
static void await_arrivals(struct gen *g, const struct tasks *tasks, uint64_t rx_before,
			   uint64_t tx_before)
{
	struct rt *rt = g->session.rt;
	const uint64_t end = rt_now_ns(rt) + QUIET_MOST_NS;
	uint64_t seen = UINT64_MAX, since = 0;

	for (;;) {
		uint64_t now = rt_now_ns(rt), arrived;
		struct totals t;

		read_totals(g, tasks, &t);
		arrived = g->stamped ? t.stamped : t.rx_packets - rx_before;
		if (arrived != seen) {
			seen = arrived;
			since = now;
		}
		if (arrived >= t.tx_packets - tx_before || now - since >= QUIET_NS || now >= end ||
		    !cmd_session_pause(&g->session, QUIET_LOOK_NS))
			return;
	}
}

static void sum_senders(struct gen *g, struct gen_run *run, const struct tasks *tasks,
			struct ho_err *err, int *rc)
{
	uint64_t first = UINT64_MAX, last = 0;
	double error = 0;
	unsigned means = 0;

	for (unsigned i = 0; i < tasks->n_senders; i++) {
		const struct tr_sender *s = tasks->sender[i];
		struct tr_replay_counts counts;
		double of_sender;

		run->offered += s->offered;
		run->full_ns += s->full_ns;
		run->pool_empty += s->pool_empty;
		run->slipped_ns = HO_MAX(run->slipped_ns, s->pacer.slipped_ns);
		run->paced = !s->pacer.unpaced;
		first = HO_MIN(first, s->first_ns);
		last = HO_MAX(last, s->last_ns);
		means += tr_pacer_rate_error(&s->pacer, &of_sender);
		error += of_sender;
		ho_hist_merge(&run->gap_error, &s->pacer.error_ns);
		if (s->link_lost)
			*rc = ho_err_set(err, -ENOLINK, "%s: the link or the peer is gone",
					 g->tx->name);
		if (!g->replay)
			continue;
		if (tr_replay_error(tasks->source[i], err) < 0)
			*rc = err->code;
		tr_replay_counts(tasks->source[i], &counts);
		run->replay.frames += counts.frames;
		run->replay.loops = HO_MAX(run->replay.loops, counts.loops);
		run->replay.padded += counts.padded;
		run->replay.truncated += counts.truncated;
		run->replay.too_long += counts.too_long;
		run->replay.too_short += counts.too_short;
		run->replay.time_back += counts.time_back;
	}
	run->has_mean = means > 0;
	run->rate_error = means ? error / means : 0;
	run->tx_seconds = last > first ? (double)(last - first) / 1e9 : 0;
}

static int sum_receivers(struct gen *g, struct gen_run *run, const struct tasks *tasks,
			 struct ho_err *err)
{
	struct tr_tracks **views = calloc(tasks->n_receivers + 1, sizeof(views[0]));
	uint64_t first = UINT64_MAX, last = 0, frames = 0, stamped = 0, filtered = 0;
	struct tr_track_sum sum;
	int rc;

	if (!views)
		return ho_err_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < tasks->n_receivers; i++) {
		struct tr_receiver *r = tasks->receiver[i];

		views[i] = &r->tracks;
		frames += r->frames;
		stamped += r->stamped;
		filtered += r->filtered;
		ho_hist_merge(&g->report.latency_ns, &r->latency_ns);
		if (r->first_ns) {
			first = HO_MIN(first, r->first_ns);
			last = HO_MAX(last, r->last_ns);
		}
	}
	rc = tr_tracks_sum(views, tasks->n_receivers, &sum);
	free(views);
	if (rc < 0)
		return ho_err_set(err, rc, "out of memory");
	g->report.tracks.streams = HO_MAX(g->report.tracks.streams, sum.streams);
	g->report.tracks.received += sum.received;
	g->report.tracks.duplicates += sum.duplicates;
	g->report.tracks.reordered += sum.reordered;
	for (unsigned i = 0; i < sum.n_each; i++) {
		struct tr_stream_sum *s = tr_track_sum_of(&g->report.tracks, sum.each[i].id);

		if (!s)
			continue;
		s->received += sum.each[i].received;
		s->duplicates += sum.each[i].duplicates;
		s->reordered += sum.each[i].reordered;
	}
	tr_track_sum_fini(&sum);
	run->received = g->stamped ? stamped - sum.duplicates : frames;
	/* All numbers from 0 on were ours: what is lost before the first or behind the last one
	 * seen counts too. */
	g->report.tracks.lost += run->sent > run->received ? run->sent - run->received : 0;
	/* What the port's own filter dropped is in its counters and never reached the receivers. */
	g->report.drops[PORT_DROP_RX_FILTERED] += filtered;
	g->frames += frames;
	g->report.unstamped += frames - stamped;
	g->report.rx_seconds += last > first ? (double)(last - first) / 1e9 : 0;
	return 0;
}

int gen_run(struct gen *g, struct gen_run *run, struct ho_err *err)
{
	struct tasks tasks = { 0 };
	struct totals before, after;
	int rc = 0;

	ho_hist_init(&run->gap_error);
	run->offered = run->sent = run->received = 0;
	if (g->rx)
		rc = make_receivers(g, &tasks, err);
	if (rc == 0)
		rc = make_senders(g, run, &tasks, err);
	if (rc < 0)
		goto destroy;
	read_totals(g, &tasks, &before);
	g->session.tasks_planned = tasks.n_senders + tasks.n_receivers;
	for (unsigned i = 0; rc == 0 && i < tasks.n_receivers; i++)
		rc = cmd_session_spawn(&g->session, g->rx, i, "recv", tr_receiver_run,
				       tasks.receiver[i], err);
	for (unsigned i = 0; rc == 0 && i < tasks.n_senders; i++)
		rc = cmd_session_spawn(&g->session, g->tx, i, "gen", tr_sender_run, tasks.sender[i],
				       err);
	if (rc == 0)
		watch(g, run, &tasks);
	ask_senders(g, &tasks);
	/* The senders have ended, or were never started: their queues are ours. */
	if (rc == 0 && cmd_session_drain(&g->session, g->tx, DRAIN_NS) < 0)
		ho_verbose("%s: not all frames left within a second", g->tx->name);
	if (rc == 0 && g->rx)
		await_arrivals(g, &tasks, before.rx_packets, before.tx_packets);
	for (unsigned i = 0; i < tasks.n_receivers; i++)
		tr_stop_ask(&tasks.receiver[i]->stop);
	cmd_session_join(&g->session);
	read_totals(g, &tasks, &after);
	run->sent = after.tx_packets - before.tx_packets;
	sum_senders(g, run, &tasks, err, &rc);
	if (g->rx) {
		int sum_rc = sum_receivers(g, run, &tasks, err);

		rc = rc < 0 ? rc : sum_rc;
	}
	g->report.offered += run->offered;
	g->report.tx_seconds += run->tx_seconds;
	g->report.seconds += run->tx_seconds;
destroy:
	destroy_tasks(&tasks);
	return rc;
}
