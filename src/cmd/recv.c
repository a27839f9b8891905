// SPDX-License-Identifier: BSD-2-Clause
/* holdoff recv: receives, counts, follows streams, captures. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/session.h"
#include "traffic/pacer.h"
#include "traffic/receiver.h"

struct recv_options {
	struct cmd_options common;
	const char *port, *filter, *write;
	bool no_stamps;
	struct ho_err *err;
};

struct recv {
	struct cmd_session session;
	struct ms_report report;
	struct port *port;
	struct tr_receiver **receiver;
	unsigned n;
	uint64_t counted; /* by all receivers, towards --count */
	uint64_t captured;
	unsigned idle_seconds; /* since the last frame */
	bool no_stamps;
};

enum { OPT_FILTER = 0x300, OPT_WRITE, OPT_STAMPS };

static const struct argp_option recv_table[] = {
	{ "filter", OPT_FILTER, "EXPR", 0, "Only what this libpcap expression matches", 1 },
	{ "write", OPT_WRITE, "FILE", 0, "Capture what is received (pcap); - is standard output",
	  1 },
	{ "stamps", OPT_STAMPS, "yes|no", 0,
	  "Look for the stamps of 'holdoff gen' (yes); no only counts, without reading the frames",
	  1 },
	{ 0 },
};

static error_t parse_recv(int key, char *arg, struct argp_state *state)
{
	struct recv_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		return 0;
	case ARGP_KEY_ARG:
		if (o->port) {
			ho_err_set(o->err, -EINVAL, "'%s': one port is received from", arg);
			return EINVAL;
		}
		o->port = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		ho_err_set(o->err, -EINVAL,
			   "recv needs a port, such as packet:eth1; 'holdoff "
			   "ports' lists what there is");
		return EINVAL;
	case OPT_FILTER:
		o->filter = arg;
		return 0;
	case OPT_WRITE:
		o->write = arg;
		return 0;
	case OPT_STAMPS:
		o->no_stamps = !strcmp(arg, "no");
		if (o->no_stamps || !strcmp(arg, "yes"))
			return 0;
		ho_err_set(o->err, -EINVAL, "--stamps=%s: yes or no", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

struct totals {
	uint64_t packets, bytes, drops, stamped, latency_sum, filtered;
};

static void read_totals(const struct recv *r, struct totals *t)
{
	*t = (struct totals){ 0 };
	for (unsigned i = 0; i < r->port->n_rxq; i++) {
		const struct port_rxq *q = r->port->rxq[i];

		t->packets += ho_ctr_read(&q->ctr.packets);
		t->bytes += ho_ctr_read(&q->ctr.bytes);
		t->drops += port_drops_sum(q->ctr.drops);
	}
	for (unsigned i = 0; i < r->n; i++) {
		t->stamped += ho_ctr_read(&r->receiver[i]->stamped);
		t->latency_sum += ho_ctr_read(&r->receiver[i]->latency_sum);
		t->filtered += ho_ctr_read(&r->receiver[i]->filtered);
	}
}

static void columns(struct recv *r)
{
	struct ho_table *t = &r->session.table;

	ho_table_column(t, "second", 6);
	ho_table_column(t, "rx Mpps", 10);
	ho_table_column(t, "rx Gbit/s", 10);
	ho_table_column(t, "filtered", 10);
	ho_table_column(t, "latency us", 10);
	ho_table_column(t, "drops", 10);
}

/*
 * Seconds before anything comes and after all has come say nothing of the rate, nor do those in
 * which it began or ended. n came in this one.
 */
static void note_rate(struct recv *r, uint64_t n, bool began, double rate)
{
	if (!began)
		return;
	if (!n) {
		r->idle_seconds++;
		return;
	}
	/* It has not ended after all. */
	for (; r->idle_seconds; r->idle_seconds--)
		ms_rates_add(&r->report.rx_rates, 0);
	ms_rates_add(&r->report.rx_rates, rate);
}

static void row(struct recv *r, const struct totals *now, const struct totals *before)
{
	double seconds = cmd_session_row_seconds(&r->session);
	uint64_t n = now->packets - before->packets, bytes = now->bytes - before->bytes;
	uint64_t stamped = now->stamped - before->stamped;
	struct ho_table *t = &r->session.table;

	note_rate(r, n, before->packets != 0, (double)n / seconds);
	ho_table_cell(t, "%u", r->session.rows + 1);
	ho_table_cell(t, "%.6f", (double)n / seconds / 1e6);
	ho_table_cell(t, "%.4f", 8e-9 * (double)(bytes + TR_FCS_BYTES * n) / seconds);
	ho_table_cell(t, "%llu", (unsigned long long)(now->filtered - before->filtered));
	if (stamped && !r->port->recorded)
		ho_table_cell(t, "%.2f",
			      (double)(now->latency_sum - before->latency_sum) / (double)stamped /
				      1e3);
	else
		ho_table_cell(t, "-");
	ho_table_cell(t, "%llu", (unsigned long long)(now->drops - before->drops));
	cmd_session_row(&r->session);
}

static bool all_done(const struct recv *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (!__atomic_load_n(&r->receiver[i]->done, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

/* The count is of all receivers together: the one that reached it ends the others. */
static bool any_done(const struct recv *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (__atomic_load_n(&r->receiver[i]->done, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

/* Receivers see to the duration themselves, unless they wait for the capture's reader. In the lab
 * who sends ends first, at end_ns, so that nothing is left under way. */
static void watch(struct recv *r, bool counting, uint64_t end_ns, struct tr_capture *capture)
{
	struct totals before, now;
	bool asked = false;

	read_totals(r, &before);
	cmd_session_rows_begin(&r->session);
	while (!all_done(r)) {
		if (cmd_session_wait(&r->session, asked ? RT_FOREVER : end_ns)) {
			read_totals(r, &now);
			row(r, &now, &before);
			before = now;
		}
		if (!asked && (r->session.interrupted || (counting && any_done(r)) ||
			       rt_now_ns(r->session.rt) >= end_ns)) {
			tr_capture_ask_stop(capture);
			cmd_session_quiesce(&r->session);
			for (unsigned i = 0; i < r->n; i++)
				tr_stop_ask(&r->receiver[i]->stop);
			asked = true;
		}
	}
	if (cmd_session_last_row(&r->session)) {
		read_totals(r, &now);
		row(r, &now, &before);
	}
}

static int run(struct recv *r, const struct recv_options *o, const struct tr_filter *filter,
	       struct tr_capture *capture, struct ho_err *err)
{
	const struct cmd_options *common = &o->common;
	uint64_t start = rt_now_ns(r->session.rt), duration = cmd_session_duration_ns(&r->session);
	uint64_t end_ns = duration ? start + duration : RT_FOREVER;
	int rc = 0;

	r->receiver = calloc(r->port->n_rxq, sizeof(r->receiver[0]));
	if (!r->receiver)
		return ho_err_set(err, -ENOMEM, "out of memory for receivers");
	for (unsigned i = 0; i < r->port->n_rxq; i++) {
		struct tr_receiver_config config = {
			.rt = r->port->rt,
			.rxq = r->port->rxq[i],
			.cache = r->port->rxq[i]->cache,
			.filter = filter,
			.capture = capture,
			.no_stamps = o->no_stamps,
			.count = common->count,
			.shared_count = common->count ? &r->counted : NULL,
			.end_ns = r->session.lab ? RT_FOREVER : end_ns,
			.done_event = r->session.done_event,
		};

		rc = tr_receiver_create(&config, &r->receiver[i], err);
		if (rc < 0)
			return rc;
		r->n++;
	}
	columns(r);
	r->session.tasks_planned = r->n;
	for (unsigned i = 0; rc == 0 && i < r->n; i++)
		rc = cmd_session_spawn(&r->session, r->port, i, "recv", tr_receiver_run,
				       r->receiver[i], err);
	if (rc == 0)
		watch(r, common->count != 0, end_ns, capture);
	for (unsigned i = 0; i < r->n; i++)
		tr_stop_ask(&r->receiver[i]->stop);
	cmd_session_join(&r->session);
	r->report.seconds = (double)(rt_now_ns(r->session.rt) - start) / 1e9;
	return rc;
}

/* The ports are stopped: puts counters and receivers together. */
static int finish_report(struct recv *r, struct ho_err *err)
{
	struct tr_tracks **views = calloc(r->n + 1, sizeof(views[0]));
	struct ms_report *report = &r->report;
	uint64_t first = UINT64_MAX, last = 0, frames = 0, stamped = 0, arrived, drops;
	int rc;

	if (!views)
		return ho_err_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < r->port->n_rxq; i++)
		ms_report_add_rx(report, r->port->rxq[i]);
	drops = port_drops_sum(report->drops);
	drops += ms_report_add_external(report, r->port, true, false);
	/* Whatever explains a loss here was counted by the port itself: the balance is between
	 * what the port says and what the receivers saw. */
	report->external = 0;
	arrived = report->rx_packets + drops;
	for (unsigned i = 0; i < r->n; i++) {
		const struct tr_receiver *rx = r->receiver[i];

		views[i] = &r->receiver[i]->tracks;
		frames += rx->frames;
		stamped += rx->stamped;
		report->drops[PORT_DROP_RX_FILTERED] += rx->filtered;
		report->drops[PORT_DROP_RX_CLOSED] += rx->unwanted;
		if (!r->port->recorded)
			ho_hist_merge(&report->latency_ns, &rx->latency_ns);
		if (rx->first_ns) {
			first = HO_MIN(first, rx->first_ns);
			last = HO_MAX(last, rx->last_ns);
		}
	}
	rc = tr_tracks_sum(views, r->n, &report->tracks);
	free(views);
	if (r->idle_seconds && report->rx_rates.n)
		report->rx_rates.n--;
	report->offered = arrived;
	report->delivered = frames;
	report->unstamped = r->no_stamps ? 0 : frames - stamped;
	report->stamps = stamped > 0;
	report->rx_seconds = last > first ? (double)(last - first) / 1e9 : 0;
	return rc < 0 ? ho_err_set(err, rc, "out of memory") : 0;
}

static void publish(struct recv *r, const struct recv_options *o)
{
	FILE *out = r->session.out;
	char text[HO_UNIT_TEXT];

	if (o->common.json) {
		json_t *object = ms_report_json(&r->report);

		if (o->write)
			json_object_set_new(object, "captured",
					    json_integer((json_int_t)r->captured));
		cmd_session_json(&r->session, object);
		ho_json_print(out, object);
		return;
	}
	ms_report_print(&r->report, out);
	if (o->write)
		fprintf(out, "%-10s %s frames\n", "captured", ho_format_count(r->captured, text));
	fflush(out);
}

static int recv_main(struct recv *r, const struct recv_options *o, const struct tr_filter *filter,
		     struct ho_err *err)
{
	struct tr_capture *capture = NULL;
	struct ho_err late = { 0 };
	bool started;
	int rc, late_rc;

	ms_report_init(&r->report, "recv");
	r->report.list_counters = o->common.counters;
	r->no_stamps = o->no_stamps;
	rc = cmd_session_open(&r->session, &o->common, o->port, CMD_LAB_RECEIVES, err);
	/* A capture has the checksums as they would be on a wire. */
	r->session.count_only = o->no_stamps && !o->write;
	if (rc == 0)
		rc = cmd_session_port(&r->session, o->port, true, false, o->filter, &r->port, err);
	if (rc == 0)
		rc = cmd_session_bind(&r->session, r->port, true, false, err);
	if (rc == 0 && o->write && !strcmp(o->write, "-"))
		rc = cmd_session_give_stdout(&r->session, "--write -", err);
	/* Before privileges are given up. */
	if (rc == 0 && o->write)
		rc = tr_capture_open(r->session.rt, o->write,
				     o->common.duration_ns
					     ? rt_now_ns(r->session.rt) + o->common.duration_ns
					     : RT_FOREVER,
				     &capture, err);
	if (rc == 0)
		rc = cmd_session_start(&r->session, err);
	started = r->port && r->port->started;
	if (rc == 0)
		rc = run(r, o, filter, capture, err);
	tr_capture_ask_stop(capture);
	late_rc = tr_capture_close(capture, &r->captured, &late);
	if (!started || rc == -EINTR) {
		cmd_session_close(&r->session, NULL);
		return rc == -EINTR ? CMD_DONE : cmd_status_of(rc);
	}
	if (late_rc == 0)
		late_rc = cmd_session_stop(&r->session, &late);
	else
		cmd_session_stop(&r->session, NULL);
	if (rc == 0)
		rc = finish_report(r, err);
	for (unsigned i = 0; i < r->n; i++)
		tr_receiver_destroy(r->receiver[i]);
	free(r->receiver);
	cmd_session_close(&r->session, &r->report.buffers_missing);
	if (rc == 0)
		publish(r, o);
	if (rc == 0 && late_rc < 0) {
		rc = late_rc;
		*err = late;
	}
	if (rc < 0)
		return cmd_status_of(rc);
	return ms_report_check(&r->report, err) < 0 ? CMD_FAILED : CMD_DONE;
}

int cmd_recv(int argc, char **argv, struct ho_err *err)
{
	struct recv_options o = { .common = CMD_OPTIONS_INIT, .err = err };
	const struct argp_child children[] = { { &cmd_options_argp, 0, NULL, 90 }, { 0 } };
	const struct argp argp = {
		.options = recv_table,
		.parser = parse_recv,
		.args_doc = "PORT",
		.doc = "Receives from a port: counts, and for frames that 'holdoff gen' stamped "
		       "loss, order, duplicates and latency.",
		.children = children,
	};
	struct tr_filter *filter = NULL;
	struct recv r = { 0 };
	int status;

	o.common.err = err;
	status = cmd_parse(&argp, argc, argv, &o, err);
	if (status != CMD_DONE)
		return status;
	if (o.filter && tr_filter_create(o.filter, &filter, err) < 0)
		return CMD_USAGE;
	status = recv_main(&r, &o, filter, err);
	ms_report_fini(&r.report);
	tr_filter_destroy(filter);
	return status;
}
