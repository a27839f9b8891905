// SPDX-License-Identifier: BSD-2-Clause
/* holdoff gen: generates traffic, and measures what becomes of it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stop_signals.h"
#include "base/units.h"
#include "cmd/frame_options.h"
#include "cmd/gen_run.h"
#include "cmd/gen_tune.h"
#include "linux/caps.h"
#include "port/pcap_in.h"
#include "traffic/filter.h"
#include "traffic/search.h"

#define SEARCH_SECONDS 1u
/* What a recorded frame is taken for until the first one is sent. */
#define REPLAY_MEAN_BYTES 500

struct gen_options {
	struct cmd_options common;
	struct cmd_frame_options frames;
	const char *tx_port, *rx_port, *filter;
	struct ho_rate rate;
	bool rate_set, timed;
	unsigned burst, workers;
	struct tr_replay_config replay;
	bool speed_set, loops_set, search;
	unsigned tune_runs;     /* of --tune; 0 = it was not asked for */
	uint64_t load_ns;       /* we are the load of a tuning, for so long */
	const char *const *arg; /* the command line, without the name */
	unsigned n_args;
	double search_loss;
	struct ho_err *err;
};

enum {
	OPT_RATE = 0x300,
	OPT_BURST,
	OPT_WORKERS,
	OPT_REPLAY,
	OPT_SPEED,
	OPT_LOOP,
	OPT_RECV,
	OPT_FILTER,
	OPT_SEARCH,
	OPT_TUNE,
	OPT_LOAD,
};

static const struct argp_option gen_table[] = {
	{ NULL, 0, NULL, 0, "Traffic:", 1 },
	{ "rate", OPT_RATE, "RATE", 0,
	  "max, 10mpps, 5gbps (layer 2), 5gbps-l1, 50% of the link, or a gap such as 20us "
	  "(default: max)",
	  1 },
	{ "burst", OPT_BURST, "N", 0, "Frames sent at once (default: by the rate)", 1 },
	{ "workers", OPT_WORKERS, "N", 0, "Sending tasks (default: one for each queue)", 1 },
	{ "replay", OPT_REPLAY, "FILE", 0, "Send the frames of a capture file, at its times", 1 },
	{ "speed", OPT_SPEED, "X", 0, "Replay X times as fast (1)", 1 },
	{ "loop", OPT_LOOP, "N", 0, "Replay the file N times; 0 = for ever (1)", 1 },
	{ "tune", OPT_TUNE, "RUNS", OPTION_ARG_OPTIONAL,
	  "Tune the port's interface first, with at most so many runs (20) of this traffic as fast "
	  "as it goes, and put its settings back at the end",
	  1 },
	{ GEN_LOAD_OPTION, OPT_LOAD, "TIME", OPTION_HIDDEN, NULL, 1 },
	{ NULL, 0, NULL, 0, "Measuring:", 2 },
	{ "recv", OPT_RECV, "PORT", 0, "Receive there what was sent: loss, order, latency", 2 },
	{ "filter", OPT_FILTER, "EXPR", 0, "Receive only what this libpcap expression matches", 2 },
	{ "search", OPT_SEARCH, "loss=X", 0,
	  "Find the highest rate with no more than this loss: loss=0.1%. --duration is that of "
	  "one trial (1s)",
	  2 },
	{ 0 },
};

static error_t parse_gen(int key, char *arg, struct argp_state *state)
{
	struct gen_options *o = state->input;
	int rc = 0;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->frames;
		state->child_inputs[1] = &o->common;
		break;
	case ARGP_KEY_ARG:
		if (o->tx_port)
			return ho_err_set(o->err, -EINVAL,
					  "'%s': one port sends; --recv names the receiving one",
					  arg),
			       EINVAL;
		o->tx_port = arg;
		break;
	case ARGP_KEY_NO_ARGS:
		ho_err_set(o->err, -EINVAL,
			   "gen needs a port, such as mem:a --recv mem:a; "
			   "'holdoff ports' lists what there is");
		return EINVAL;
	case OPT_RATE:
		rc = ho_parse_rate(arg, &o->rate, o->err);
		if (rc < 0)
			ho_err_prefix(o->err, "--rate");
		o->rate_set = true;
		break;
	case OPT_BURST:
		rc = cmd_parse_number("burst", arg, 1, PK_BURST, &o->burst, o->err);
		break;
	case OPT_WORKERS:
		rc = cmd_parse_number("workers", arg, 1, CMD_QUEUES_MAX, &o->workers, o->err);
		break;
	case OPT_REPLAY:
		o->replay.path = arg;
		break;
	case OPT_SPEED: {
		char *end;

		o->replay.speed = strtod(arg, &end);
		o->speed_set = true;
		if (end == arg || *end || !(o->replay.speed > 0) || o->replay.speed > 1e9)
			rc = ho_err_set(o->err, -EINVAL, "--speed %s: a number above 0 is needed",
					arg);
		break;
	}
	case OPT_LOOP:
		rc = cmd_parse_count("loop", arg, &o->replay.loops, o->err);
		o->loops_set = true;
		break;
	case OPT_RECV:
		o->rx_port = arg;
		break;
	case OPT_FILTER:
		o->filter = arg;
		break;
	case OPT_SEARCH:
		o->search = true;
		if (strncmp(arg, "loss=", 5)) {
			rc = ho_err_set(o->err, -EINVAL, "--search %s: write loss=0.1%%", arg);
			break;
		}
		rc = ho_parse_fraction(arg + 5, &o->search_loss, o->err);
		if (rc < 0)
			ho_err_prefix(o->err, "--search");
		break;
	case OPT_TUNE:
		o->tune_runs = GEN_TUNE_RUNS;
		if (arg)
			rc = cmd_parse_number("tune", arg, 6, 200, &o->tune_runs, o->err);
		break;
	case OPT_LOAD:
		rc = cmd_parse_time(GEN_LOAD_OPTION, arg, &o->load_ns, o->err);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

/* As the load of a tuning: the same traffic, for a time and as fast as it goes. */
static void be_a_load(struct gen_options *o)
{
	o->tune_runs = 0;
	o->search = o->rate_set = false;
	o->rate = (struct ho_rate){ 0 };
	o->common.count = 0;
	o->common.duration_ns = o->load_ns;
}

/* Options that exclude or need each other. */
static int check_options(struct gen_options *o)
{
	struct ho_err *err = o->err;

	if (o->tune_runs && !strncmp(o->tx_port, "lab:", 4))
		return ho_err_set(err, -EINVAL,
				  "--tune: %s is in the lab; 'holdoff tune %s' finds its best "
				  "settings",
				  o->tx_port, o->tx_port);
	if (o->tune_runs && o->replay.path)
		return ho_err_set(err, -EINVAL,
				  "--tune is for frames that are sent as fast as it goes; --replay "
				  "has its own times");
	if (o->replay.path && o->frames.given)
		return ho_err_set(err, -EINVAL,
				  "--replay sends the file's frames as they are; it takes no file "
				  "(-f) or option that describes frames");
	if (!o->replay.path && (o->speed_set || o->loops_set))
		return ho_err_set(err, -EINVAL, "--speed and --loop belong to --replay FILE");
	if (o->speed_set && o->rate_set)
		return ho_err_set(err, -EINVAL,
				  "--rate sends at its own times, --speed at those of the file: "
				  "only one of them can hold");
	if (o->filter && !o->rx_port && strncmp(o->tx_port, "lab:", 4))
		return ho_err_set(err, -EINVAL, "--filter belongs to --recv PORT");
	if (!o->search)
		return 0;
	if (!o->rx_port && strncmp(o->tx_port, "lab:", 4))
		return ho_err_set(err, -EINVAL,
				  "--search needs --recv PORT: what arrives there is "
				  "what was not lost");
	if (o->rate_set || o->replay.path || o->common.count)
		return ho_err_set(err, -EINVAL,
				  "--search chooses the rate itself; --rate, --replay and --count "
				  "do not go with it");
	return 0;
}

/* --- search ------------------------------------------------------------------------------- */

struct searching {
	struct gen *gen;
	const struct gen_options *options;
	struct ho_err *err;
};

static int search_run(void *arg, struct tr_search_trial *trial)
{
	struct searching *s = arg;
	struct gen_run run = {
		.rate = { trial->asked_pps > 0 ? HO_RATE_PPS : HO_RATE_MAX, trial->asked_pps },
		.burst = s->options->burst,
		.duration_ns = s->options->common.duration_ns,
	};
	int rc = gen_run(s->gen, &run, s->err);

	if (rc < 0)
		return rc;
	if (s->gen->session.interrupted)
		return -EINTR;
	trial->achieved_pps = run.tx_seconds > 0 ? (double)run.offered / run.tx_seconds : 0;
	trial->loss = run.offered ? 1 - (double)run.received / (double)run.offered : 1;
	return 0;
}

static void search_note(void *arg, const struct tr_search_trial *trial)
{
	struct searching *s = arg;
	struct ho_table *t = &s->gen->session.table;

	ho_table_cell(t, "%u", s->gen->session.rows + 1);
	if (trial->asked_pps > 0)
		ho_table_cell(t, "%.6f", trial->asked_pps / 1e6);
	else
		ho_table_cell(t, "max");
	ho_table_cell(t, "%.6f", trial->achieved_pps / 1e6);
	ho_table_cell(t, "%.4f", 100 * trial->loss);
	ho_table_cell(t, "%s%s", trial->good ? "good" : "too much",
		      trial->confirming ? ", confirming" : "");
	cmd_session_row(&s->gen->session);
}

static int do_search(struct gen *g, const struct gen_options *o, struct tr_search_result *result,
		     struct ho_err *err)
{
	const struct tr_search_config config = {
		.loss = o->search_loss, .precision = 0.01, .confirm = 3, .trials_max = 80
	};
	struct searching searching = { g, o, err };
	struct ho_table *t = &g->session.table;
	int rc;

	ho_table_column(t, "trial", 5);
	ho_table_column(t, "asked Mpps", 11);
	ho_table_column(t, "sent Mpps", 11);
	ho_table_column(t, "loss %", 9);
	ho_table_column(t, "verdict", -20);
	rc = tr_search(&config, search_run, search_note, &searching, result);
	return rc == -EINTR ? 0 : rc;
}

/* --- results ------------------------------------------------------------------------------ */

/* Reads the ports' counters: they are final. */
static void finish_report(struct gen *g)
{
	struct ms_report *r = &g->report;

	for (unsigned i = 0; i < g->tx->n_txq; i++)
		ms_report_add_tx(r, g->tx->txq[i]);
	for (unsigned i = 0; g->rx && i < g->rx->n_rxq; i++)
		ms_report_add_rx(r, g->rx->rxq[i]);
	if (g->rx) {
		r->stamps = g->stamped;
		r->delivered = g->stamped ? r->tracks.received - r->tracks.duplicates : g->frames;
		ms_report_add_external(r, g->tx, false, true);
		ms_report_add_external(r, g->rx, true, false);
		cmd_session_report(&g->session, r);
		/* A worker numbers the frames of its queue, from 0 on: what is lost before the
		 * first or behind the last one seen counts too. */
		for (unsigned i = 0; g->stamped && i < g->workers; i++) {
			uint64_t sent = ho_ctr_read(&g->tx->txq[i]->ctr.packets), got;
			struct tr_stream_sum *s =
				sent ? tr_track_sum_of(&r->tracks, (uint16_t)i) : NULL;

			if (!s)
				continue;
			got = s->received - s->duplicates;
			s->lost = sent > got ? sent - got : 0;
		}
	} else {
		uint64_t lost = ms_report_add_external(r, g->tx, false, true);

		/* Sent, as far as the port knows, and dropped behind it. */
		r->delivered = r->tx_packets - HO_MIN(lost, r->tx_packets);
	}
}

static json_t *json_of_run(const struct gen_options *o, const struct gen_run *run)
{
	json_t *pace = json_object();

	if (run->paced) {
		json_object_set_new(pace, "rate_error",
				    run->has_mean ? json_real(run->rate_error) : json_null());
		json_object_set_new(pace, "slipped_ns", json_integer((json_int_t)run->slipped_ns));
		json_object_set_new(pace, "gap_error", ho_json_hist_ns(&run->gap_error));
	}
	json_object_set_new(pace, "ring_full_ns", json_integer((json_int_t)run->full_ns));
	json_object_set_new(pace, "pool_empty_events", json_integer((json_int_t)run->pool_empty));
	if (o->replay.path)
		json_object_set_new(pace, "replay",
				    json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "loops",
					      (json_int_t)run->replay.loops, "padded",
					      (json_int_t)run->replay.padded, "truncated",
					      (json_int_t)run->replay.truncated, "too_long",
					      (json_int_t)run->replay.too_long, "too_short",
					      (json_int_t)run->replay.too_short, "time_back",
					      (json_int_t)run->replay.time_back));
	return pace;
}

static json_t *json_of_search(const struct gen_options *o, const struct tr_search_result *result)
{
	return json_pack("{s:f, s:b, s:I, s:f, s:b, s:i}", "loss_allowed", o->search_loss, "found",
			 result->found, "pps", (json_int_t)llround(result->pps), "loss",
			 result->loss, "sender_limited", result->sender_limited, "trials",
			 (int)result->trials);
}

static void print_run(const struct gen_run *run, FILE *out)
{
	char a[HO_UNIT_TEXT], b[HO_UNIT_TEXT], c[HO_UNIT_TEXT], d[HO_UNIT_TEXT];
	char mean[64];

	if (run->paced && run->gap_error.count && run->has_mean)
		snprintf(mean, sizeof(mean), "mean off by %+.4f %%; each frame",
			 100 * run->rate_error);
	else
		snprintf(mean, sizeof(mean), "no mean rate: all were due at once; frames");
	if (run->paced && run->gap_error.count)
		fprintf(out, "%-10s %s off by %s (median), %s (p99), %s (most)\n", "pace", mean,
			ho_format_ns((double)ho_hist_quantile(&run->gap_error, 0.5), a),
			ho_format_ns((double)ho_hist_quantile(&run->gap_error, 0.99), b),
			ho_format_ns((double)run->gap_error.max, c));
	if (run->slipped_ns)
		fprintf(out, "%-10s the rate is more than could be sent: %s behind the schedule\n",
			"", ho_format_ns((double)run->slipped_ns, d));
	if (run->pool_empty)
		fprintf(out, "%-10s %s times no packet buffer was free; --buffers gives more\n", "",
			ho_format_count(run->pool_empty, a));
}

static void print_search(const struct gen_options *o, const struct tr_search_result *result,
			 FILE *out)
{
	char pps[HO_UNIT_TEXT];

	if (!result->found)
		fprintf(out, "%-10s no rate with a loss of at most %g %% in %u trials\n", "search",
			100 * o->search_loss, result->trials);
	else
		fprintf(out, "%-10s %spps with a loss of %.4f %% (allowed %g %%), %u trials%s\n",
			"search", ho_format_si(result->pps, pps), 100 * result->loss,
			100 * o->search_loss, result->trials,
			result->sender_limited ? "; the sender is the limit" : "");
}

static int publish(struct gen *g, const struct gen_options *o, const struct gen_run *run,
		   const struct tr_search_result *result)
{
	FILE *out = g->session.out;
	int rc;

	if (o->common.json) {
		json_t *object = ms_report_json(&g->report);

		if (o->search)
			json_object_set_new(object, "search", json_of_search(o, result));
		else
			json_object_set_new(object, "pace", json_of_run(o, run));
		cmd_session_json(&g->session, object);
		if (g->tune)
			gen_tune_json(g->tune, object);
		return ho_json_print(out, object);
	}
	rc = ms_report_print(&g->report, out);
	if (o->search)
		print_search(o, result, out);
	else
		print_run(run, out);
	gen_tune_print(g->tune, out);
	return fflush(out) == 0 ? rc : -errno;
}

/* --- the command -------------------------------------------------------------------------- */

/* Everything from the open session on; the session is closed by the caller. */
static int run_session(struct gen *g, struct gen_options *o, struct gen_run *run,
		       struct tr_search_result *result, struct ho_err *err)
{
	int rc = cmd_session_port(&g->session, o->tx_port, false, true, NULL, &g->tx, err);

	if (rc == 0)
		rc = cmd_session_bind(&g->session, g->tx, false, true, err);
	/* In the lab what is sent is received at the other end of the wire, if anybody is there. */
	if (rc == 0 && g->session.lab && o->rx_port)
		rc = ho_err_set(err, -EINVAL,
				"--recv %s: in the lab the other end of %s's wire receives",
				o->rx_port, o->tx_port);
	if (rc == 0 && g->session.lab)
		g->rx = lab_live_rx(g->session.lab);
	/* The receivers filter, not the port: what a kernel's filter drops nobody counts, and every
	 * frame that was sent is to be accounted for. */
	if (rc == 0 && o->rx_port)
		rc = cmd_session_port(&g->session, o->rx_port, true, false, NULL, &g->rx, err);
	if (rc == 0 && o->rx_port)
		rc = cmd_session_bind(&g->session, g->rx, true, false, err);
	if (rc < 0)
		return rc;
	if (g->spec) {
		tr_spec_set_source(g->spec, g->tx->mac);
		rc = tr_spec_fits(g->spec, g->tx->max_frame, g->tx->tag_room, g->tx->name, err);
	}
	if (rc < 0)
		return rc;
	g->workers = o->workers ? o->workers : g->tx->n_txq;
	if (g->workers > g->tx->n_txq)
		return ho_err_set(err, -EINVAL,
				  "%u workers, but %s has %u transmit queues: each needs its own; "
				  "--queues asks for more",
				  g->workers, g->tx->name, g->tx->n_txq);
	if (o->rate.unit == HO_RATE_PERCENT && !g->tx->link_bps)
		return ho_err_set(err, -EINVAL,
				  "%s has no link speed to take a percentage of; give the rate as "
				  "pps or bps",
				  g->tx->name);
	rc = cmd_session_start(&g->session, err);
	if (rc == -EINTR)
		return 0;
	if (rc < 0)
		return rc;
	if (o->search) {
		rc = do_search(g, o, result, err);
	} else {
		gen_columns(g);
		rc = gen_run(g, run, err);
	}
	return rc;
}

static int gen_traffic(struct gen *g, struct gen_options *o, struct ho_err *err)
{
	struct tr_search_result result = { 0 };
	struct gen_run run = {
		.rate = o->rate,
		.burst = o->burst,
		.timed = o->replay.path && !o->rate_set,
		.count = o->common.count,
		.duration_ns = o->common.duration_ns,
		.rows = true,
	};
	struct ho_err late = { 0 };
	int rc, late_rc;

	ho_hist_init(&run.gap_error);
	ms_report_init(&g->report, "gen");
	g->report.list_counters = o->common.counters;
	rc = cmd_session_open(&g->session, &o->common, o->tx_port, CMD_LAB_SENDS, err);
	/* Settings are put back when the ports are closed. */
	g->session.caps_keep = g->tune ? LX_CAP(CAP_NET_ADMIN) : 0;
	o->replay.rt = g->session.rt;
	if (rc == 0 && !o->search)
		run.duration_ns = cmd_session_duration_ns(&g->session);
	if (rc == 0)
		rc = run_session(g, o, &run, &result, err);
	if (!g->tx || !g->tx->started) {
		cmd_session_close(&g->session, NULL);
		return cmd_status_of(rc);
	}
	late_rc = cmd_session_stop(&g->session, &late);
	finish_report(g);
	if (rc == 0 && late_rc < 0) {
		rc = late_rc;
		*err = late;
	}
	cmd_session_close(&g->session, &g->report.buffers_missing);
	/* A reader that has gone is no failure of the run. */
	if (rc == 0 || g->report.offered)
		publish(g, o, &run, &result);
	if (rc < 0)
		return cmd_status_of(rc);
	if (ms_report_check(&g->report, err) < 0)
		return CMD_FAILED;
	return o->search && !result.found ? CMD_THRESHOLD : CMD_DONE;
}

/* With the interface tuned before, if that is asked for, and put back after. */
static int gen_main(struct gen *g, struct gen_options *o, struct ho_err *err)
{
	struct gen_tune_config config = {
		.port = o->tx_port,
		.arg = o->arg,
		.n_args = o->n_args,
		.runs = o->tune_runs,
		.receives = o->rx_port != NULL,
		.force = o->common.force,
		.quiet = o->common.json || o->common.quiet,
	};
	struct ho_stop_signals stop = { .fd = -1 };
	struct ho_err restoring = { 0 };
	int rc, status;

	if (!o->tune_runs)
		return gen_traffic(g, o, err);
	/* From the first change until everything is back no signal ends us in between: it waits for
	 * whoever looks next. */
	rc = ho_stop_signals_open(&stop, err);
	config.stop_fd = stop.fd;
	if (rc == 0)
		rc = gen_tune_begin(&config, &g->tune, err);
	if (rc < 0)
		/* Interrupted traffic is a result, a search that was is none. */
		status = rc == -EINTR ? CMD_FAILED : cmd_status_of(rc);
	else
		status = gen_traffic(g, o, err);
	rc = gen_tune_end(g->tune, &restoring);
	g->tune = NULL;
	ho_stop_signals_close(&stop);
	if (rc == 0)
		return status;
	*err = restoring;
	return CMD_FAILED;
}

int cmd_gen(int argc, char **argv, struct ho_err *err)
{
	struct gen_options o = { .common = CMD_OPTIONS_INIT, .err = err };
	const struct argp_child children[] = { { &cmd_frame_argp, 0, NULL, 50 },
					       { &cmd_options_argp, 0, NULL, 90 },
					       { 0 } };
	const struct argp argp = {
		.options = gen_table,
		.parser = parse_gen,
		.args_doc = "PORT",
		.doc = "Sends generated frames, or those of a capture file, to a port, at an exact "
		       "rate; with --recv also receives them and measures loss, order and "
		       "latency.",
		.children = children,
	};
	struct tr_filter *filter = NULL;
	struct tr_spec *spec = NULL;
	struct tr_spec_info info;
	struct gen gen = { 0 };
	int status, replay_fd = -1;

	o.common.err = err;
	o.replay.speed = 1;
	o.replay.loops = 1;
	status = cmd_parse(&argp, argc, argv, &o, err);
	o.arg = (const char *const *)argv + 1;
	o.n_args = (unsigned)argc - 1;
	if (status == CMD_DONE && o.load_ns)
		be_a_load(&o);
	if (status == CMD_DONE && check_options(&o) < 0)
		status = CMD_USAGE;
	if (status != CMD_DONE)
		goto out;
	if (o.search && !o.common.duration_ns)
		o.common.duration_ns = SEARCH_SECONDS * 1000000000u;
	status = CMD_USAGE;
	if (o.filter && tr_filter_create(o.filter, &filter, err) < 0)
		goto out;
	gen.filter = filter;
	if (o.replay.path) {
		int rc = pcap_in_reserve(o.replay.path, &replay_fd, err);

		if (rc < 0) {
			status = cmd_status_of(rc);
			goto out;
		}
		if (o.rate_set)
			o.replay.speed = 0;
		gen.replay = &o.replay;
		gen.mean_bytes = REPLAY_MEAN_BYTES;
	} else {
		if (cmd_frame_spec(&o.frames, &spec, err) < 0)
			goto out;
		tr_spec_info(spec, &info);
		gen.spec = spec;
		gen.stamped = info.stamped;
		gen.mean_bytes = info.mean_bytes;
	}
	status = gen_main(&gen, &o, err);
	ms_report_fini(&gen.report);
out:
	if (replay_fd >= 0)
		close(replay_fd);
	tr_spec_destroy(spec);
	tr_filter_destroy(filter);
	return status;
}
