// SPDX-License-Identifier: BSD-2-Clause
/* holdoff rr: requests and replies; a client, a server, or both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "cmd/frame_options.h"
#include "cmd/session.h"
#include "traffic/rr.h"

#define DRAIN_NS 1000000000u
/* Requests and replies that are under way at the end arrive within this, or not at all. */
#define QUIET_NS      100000000u
#define QUIET_LOOK_NS 1000000u
/* And however much still comes, of others perhaps, this is the end. */
#define QUIET_MOST_NS 2000000000u

struct rr_options {
	struct cmd_options common;
	struct cmd_frame_options frames;
	const char *client_port, *server_port;
	uint64_t think_ns, timeout_ns;
	unsigned reply_bytes, outstanding, tries;
	struct ho_err *err;
};

struct rr {
	struct cmd_session session;
	struct ms_report report;
	struct port *client_port, *server_port; /* NULL = that side is elsewhere */
	struct tr_source **source;
	struct tr_rr_client **client;
	struct tr_rr_server **server;
	unsigned n_clients, n_servers;
	/* The results. */
	struct tr_rr_client_stats sum;
	uint64_t served, refused, foreign;
	uint64_t counted; /* requests that came to all servers, towards the --count of a server
			     alone */
	double elapsed;   /* s, from the first request to the last reply */
	struct ms_rates rates;
};

enum {
	OPT_SERVE = 0x300,
	OPT_REPLY,
	OPT_OUTSTANDING,
	OPT_THINK,
	OPT_TIMEOUT,
	OPT_TRIES,
};

static const struct argp_option rr_table[] = {
	{ "serve", OPT_SERVE, "PORT", 0, "Answer requests there; alone: be a server only", 1 },
	{ "reply", OPT_REPLY, "BYTES", 0,
	  "Size of the server's replies, without FCS [as the "
	  "request, whose size is --size]",
	  1 },
	{ "outstanding", OPT_OUTSTANDING, "N", 0, "Transactions at once, for each queue [1]", 1 },
	{ "think", OPT_THINK, "TIME", 0, "From a reply to the next request in its place [0]", 1 },
	{ "timeout", OPT_TIMEOUT, "TIME", 0, "Before a request is sent again [100ms]", 1 },
	{ "tries", OPT_TRIES, "N", 0, "Requests before a transaction is given up [5]", 1 },
	{ 0 },
};

static error_t parse_rr(int key, char *arg, struct argp_state *state)
{
	struct rr_options *o = state->input;
	int rc = 0;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->frames;
		state->child_inputs[1] = &o->common;
		break;
	case ARGP_KEY_ARG:
		if (o->client_port)
			rc = ho_err_set(o->err, -EINVAL,
					"'%s': one port sends requests; --serve names the one that "
					"answers",
					arg);
		o->client_port = arg;
		break;
	case ARGP_KEY_END:
		if (!o->client_port && !o->server_port)
			rc = ho_err_set(o->err, -EINVAL,
					"rr needs a port for its client, a --serve PORT, or both: "
					"mem:a --serve mem:a");
		break;
	case OPT_SERVE:
		o->server_port = arg;
		break;
	case OPT_REPLY:
		rc = cmd_parse_number("reply", arg, 60, PK_ROOM_BYTES, &o->reply_bytes, o->err);
		break;
	case OPT_OUTSTANDING:
		rc = cmd_parse_number("outstanding", arg, 1, TR_RR_OUTSTANDING_MAX, &o->outstanding,
				      o->err);
		break;
	case OPT_THINK:
		rc = cmd_parse_time("think", arg, &o->think_ns, o->err);
		break;
	case OPT_TIMEOUT:
		rc = cmd_parse_time("timeout", arg, &o->timeout_ns, o->err);
		if (rc == 0 && o->timeout_ns < 1000)
			rc = ho_err_set(o->err, -ERANGE, "--timeout %s is less than 1us", arg);
		break;
	case OPT_TRIES:
		rc = cmd_parse_number("tries", arg, 1, 1000, &o->tries, o->err);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

static void sum_clients(const struct rr *r, struct tr_rr_client_stats *sum)
{
	*sum = (struct tr_rr_client_stats){ 0 };
	for (unsigned i = 0; i < r->n_clients; i++) {
		struct tr_rr_client_stats s;

		tr_rr_client_stats(r->client[i], &s);
		sum->requests += s.requests;
		sum->replies += s.replies;
		sum->transactions += s.transactions;
		sum->latency_sum += s.latency_sum;
		sum->retries += s.retries;
		sum->late += s.late;
		sum->failed += s.failed;
		sum->others += s.others;
	}
}

static uint64_t requests_served(const struct rr *r)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < r->n_servers; i++)
		n += ho_ctr_read(&r->server[i]->requests);
	return n;
}

static void columns(struct rr *r)
{
	struct ho_table *t = &r->session.table;

	ho_table_column(t, "second", 6);
	ho_table_column(t, "per second", 12);
	if (r->n_clients) {
		ho_table_column(t, "mean us", 10);
		ho_table_column(t, "retries", 10);
		ho_table_column(t, "given up", 10);
	}
}

struct totals {
	struct tr_rr_client_stats c;
	uint64_t served;
};

static void row(struct rr *r, const struct totals *now, const struct totals *before)
{
	double seconds = cmd_session_row_seconds(&r->session);
	uint64_t n = r->n_clients ? now->c.transactions - before->c.transactions
				  : now->served - before->served;
	struct ho_table *t = &r->session.table;

	ms_rates_add(&r->rates, (double)n / seconds);
	ho_table_cell(t, "%u", r->session.rows + 1);
	ho_table_cell(t, "%.0f", (double)n / seconds);
	if (r->n_clients) {
		if (n)
			ho_table_cell(t, "%.2f",
				      (double)(now->c.latency_sum - before->c.latency_sum) /
					      (double)n / 1e3);
		else
			ho_table_cell(t, "-");
		ho_table_cell(t, "%llu", (unsigned long long)(now->c.retries - before->c.retries));
		ho_table_cell(t, "%llu", (unsigned long long)(now->c.failed - before->c.failed));
	}
	cmd_session_row(&r->session);
}

/* Clients end by themselves; a server alone when its ports do, at the end time, or when asked. */
static bool is_over(const struct rr *r, uint64_t end_ns, uint64_t count)
{
	if (!r->n_clients) {
		bool all = true;

		for (unsigned i = 0; i < r->n_servers; i++)
			all = all && __atomic_load_n(&r->server[i]->done, __ATOMIC_ACQUIRE);
		return all || r->session.interrupted || rt_now_ns(r->session.rt) >= end_ns ||
		       (count && requests_served(r) >= count);
	}
	for (unsigned i = 0; i < r->n_clients; i++) {
		if (!tr_rr_client_quiesced(r->client[i]))
			return false;
	}
	return true;
}

static void watch(struct rr *r, const struct rr_options *o, uint64_t end_ns)
{
	struct totals before = { 0 }, now;
	bool asked = false;

	cmd_session_rows_begin(&r->session);
	while (!is_over(r, end_ns, o->common.count)) {
		/* A server that counts tells nobody when it is there. */
		uint64_t deadline = r->n_clients || !o->common.count
					    ? end_ns
					    : rt_now_ns(r->session.rt) + 10 * QUIET_LOOK_NS;

		if (r->n_clients)
			deadline = RT_FOREVER;
		if (cmd_session_wait(&r->session, deadline)) {
			sum_clients(r, &now.c);
			now.served = requests_served(r);
			row(r, &now, &before);
			before = now;
		}
		if (r->session.interrupted && !asked) {
			for (unsigned i = 0; i < r->n_clients; i++)
				tr_rr_client_finish(r->client[i]);
			asked = true;
		}
	}
	if (cmd_session_last_row(&r->session)) {
		sum_clients(r, &now.c);
		now.served = requests_served(r);
		row(r, &now, &before);
	}
}

static uint64_t packets_in(const struct port *port)
{
	uint64_t n = 0;

	for (unsigned i = 0; port && i < port->n_rxq; i++)
		n += ho_ctr_read(&port->rxq[i]->ctr.packets);
	return n;
}

/* Until nothing has come for a while: what is under way at the end is counted where it arrives. */
static void await_quiet(struct rr *r)
{
	uint64_t seen = UINT64_MAX, since = 0;
	struct rt *rt = r->session.rt;
	const uint64_t end = rt_now_ns(rt) + QUIET_MOST_NS;

	for (;;) {
		uint64_t now = rt_now_ns(rt),
			 n = packets_in(r->client_port) + packets_in(r->server_port);
		struct tr_rr_client_stats sum;

		if (n != seen) {
			seen = n;
			since = now;
		}
		sum_clients(r, &sum);
		if ((sum.requests == sum.replies && r->n_clients) || now - since >= QUIET_NS ||
		    now >= end || !cmd_session_pause(&r->session, QUIET_LOOK_NS))
			return;
	}
}

static int make_servers(struct rr *r, const struct rr_options *o, struct ho_err *err)
{
	r->server = calloc(r->server_port->n_rxq, sizeof(r->server[0]));
	if (!r->server)
		return ho_err_set(err, -ENOMEM, "out of memory for servers");
	for (unsigned i = 0; i < r->server_port->n_rxq; i++) {
		struct tr_rr_server_config config = {
			.rt = r->session.rt,
			.rxq = r->server_port->rxq[i],
			.txq = r->server_port->txq[i % r->server_port->n_txq],
			.cache = r->server_port->rxq[i]->cache,
			.reply_bytes = o->reply_bytes,
			/* With a client, transactions are counted. */
			.count = r->client_port ? 0 : o->common.count,
			.shared_count = &r->counted,
			.done_event = r->session.done_event,
		};
		int rc = tr_rr_server_create(&config, &r->server[i], err);

		if (rc < 0)
			return rc;
		r->n_servers++;
	}
	return 0;
}

static int make_clients(struct rr *r, const struct rr_options *o, const struct tr_spec *spec,
			uint64_t end_ns, struct ho_err *err)
{
	unsigned n = r->client_port->n_rxq;

	if (o->common.count && o->common.count < n)
		n = (unsigned)o->common.count;
	r->source = calloc(n, sizeof(r->source[0]));
	r->client = calloc(n, sizeof(r->client[0]));
	if (!r->source || !r->client)
		return ho_err_set(err, -ENOMEM, "out of memory for clients");
	for (unsigned i = 0; i < n; i++) {
		struct tr_rr_client_config config = {
			.rt = r->session.rt,
			.rxq = r->client_port->rxq[i],
			.txq = r->client_port->txq[i],
			.outstanding = o->outstanding,
			.think_ns = o->think_ns,
			.timeout_ns = o->timeout_ns,
			.tries = o->tries,
			.count = o->common.count / n + (i < o->common.count % n),
			.end_ns = end_ns,
			.done_event = r->session.done_event,
		};
		int rc = tr_source_create(spec, i, n, &r->source[i], err);

		if (rc < 0)
			return rc;
		config.source = r->source[i];
		rc = tr_rr_client_create(&config, &r->client[i], err);
		if (rc < 0) {
			tr_source_destroy(r->source[i]);
			return rc;
		}
		r->n_clients++;
	}
	return 0;
}

static int run(struct rr *r, const struct rr_options *o, const struct tr_spec *spec,
	       struct ho_err *err)
{
	uint64_t start = rt_now_ns(r->session.rt);
	uint64_t end = o->common.duration_ns ? start + o->common.duration_ns : RT_FOREVER;
	int rc = r->server_port ? make_servers(r, o, err) : 0;

	if (rc == 0 && r->client_port)
		rc = make_clients(r, o, spec, end, err);
	if (rc < 0)
		return rc;
	columns(r);
	r->session.tasks_planned = r->n_clients + r->n_servers;
	for (unsigned i = 0; rc == 0 && i < r->n_servers; i++)
		rc = cmd_session_spawn(&r->session, r->server_port, i, "rr-server",
				       tr_rr_server_run, r->server[i], err);
	for (unsigned i = 0; rc == 0 && i < r->n_clients; i++)
		rc = cmd_session_spawn(&r->session, r->client_port, i, "rr-client",
				       tr_rr_client_run, r->client[i], err);
	if (rc == 0) {
		watch(r, o, end);
		await_quiet(r);
	}
	for (unsigned i = 0; i < r->n_clients; i++)
		tr_rr_client_stop(r->client[i]);
	for (unsigned i = 0; i < r->n_servers; i++)
		tr_stop_ask(&r->server[i]->stop);
	cmd_session_join(&r->session);
	r->report.seconds = (double)(rt_now_ns(r->session.rt) - start) / 1e9;
	for (unsigned i = 0; i < r->session.n_ports; i++)
		port_drain(r->session.port[i], DRAIN_NS);
	return rc;
}

static void add_port(struct ms_report *report, struct port *port, bool both)
{
	for (unsigned i = 0; i < port->n_txq; i++) {
		ms_report_add_tx(report, port->txq[i]);
		report->offered += port->txq[i]->accepted;
	}
	for (unsigned i = 0; i < port->n_rxq; i++) {
		ms_report_add_rx(report, port->rxq[i]);
		/* The other side is not ours: what reached the port counts as offered. */
		if (!both)
			report->offered += ho_ctr_read(&port->rxq[i]->ctr.packets) +
					   port_drops_sum(port->rxq[i]->ctr.drops);
	}
	if (both) {
		ms_report_add_external(report, port, true, true);
		return;
	}
	report->offered += ms_report_add_external(report, port, true, false);
	report->external = 0;
}

static void finish_report(struct rr *r)
{
	const bool both = r->client_port && r->server_port;
	struct ms_report *report = &r->report;
	uint64_t unwanted = 0;

	sum_clients(r, &r->sum);
	r->served = requests_served(r);
	for (unsigned i = 0; i < r->n_servers; i++) {
		r->refused += r->server[i]->refused;
		r->foreign += r->server[i]->others;
		unwanted += r->server[i]->unwanted;
	}
	r->foreign += r->sum.others;
	for (unsigned i = 0; i < r->n_clients; i++) {
		ho_hist_merge(&report->latency_ns, tr_rr_client_latency(r->client[i]));
		r->elapsed = HO_MAX(r->elapsed, (double)tr_rr_client_elapsed(r->client[i]) / 1e9);
	}
	if (r->client_port)
		add_port(report, r->client_port, both);
	if (r->server_port)
		add_port(report, r->server_port, both);
	if (both)
		report->delivered = r->sum.replies + r->served;
	else
		report->delivered = report->tx_packets + report->rx_packets - unwanted;
	report->drops[PORT_DROP_RX_CLOSED] += unwanted;
	report->tx_seconds = report->rx_seconds = report->seconds;
}

static void publish(struct rr *r, const struct rr_options *o)
{
	FILE *out = r->session.out;
	double rate = r->elapsed > 0 ? (double)r->sum.transactions / r->elapsed : 0;
	char a[HO_UNIT_TEXT], b[HO_UNIT_TEXT], c[HO_UNIT_TEXT], d[HO_UNIT_TEXT];

	if (o->common.json) {
		json_t *object = ms_report_json(&r->report);

		if (r->n_clients) {
			json_object_set_new(object, "transactions",
					    json_integer((json_int_t)r->sum.transactions));
			json_object_set_new(object, "transactions_per_second", json_real(rate));
			json_object_set_new(object, "requests",
					    json_integer((json_int_t)r->sum.requests));
			json_object_set_new(object, "retries",
					    json_integer((json_int_t)r->sum.retries));
			json_object_set_new(object, "late_replies",
					    json_integer((json_int_t)r->sum.late));
			json_object_set_new(object, "given_up",
					    json_integer((json_int_t)r->sum.failed));
			json_object_set_new(object, "latency",
					    ho_json_hist_ns(&r->report.latency_ns));
		}
		if (r->n_servers) {
			json_object_set_new(object, "served",
					    json_integer((json_int_t)(r->served - r->refused)));
			json_object_set_new(object, "refused",
					    json_integer((json_int_t)r->refused));
		}
		json_object_set_new(object, "foreign", json_integer((json_int_t)r->foreign));
		ho_json_print(out, object);
		return;
	}
	ms_report_print(&r->report, out);
	if (r->n_clients) {
		fprintf(out, "%-10s %s transactions in %.3f s: %s/s", "client",
			ho_format_count(r->sum.transactions, a), r->elapsed, ho_format_si(rate, b));
		if (r->rates.n)
			fprintf(out, "; median of %zu s %s/s", r->rates.n,
				ho_format_si(ms_rates_median(&r->rates), c));
		fprintf(out, "\n%-10s %s retries, %s late replies, %s given up\n", "",
			ho_format_count(r->sum.retries, a), ho_format_count(r->sum.late, b),
			ho_format_count(r->sum.failed, c));
	}
	if (r->n_servers)
		fprintf(out, "%-10s %s requests answered, %s refused\n", "server",
			ho_format_count(r->served - r->refused, c), ho_format_count(r->refused, d));
	if (r->foreign)
		fprintf(out, "%-10s %s received frames were neither request nor reply\n", "",
			ho_format_count(r->foreign, a));
	fflush(out);
}

static int open_ports(struct rr *r, const struct rr_options *o, struct tr_spec *spec,
		      struct ho_err *err)
{
	struct {
		const char *name;
		struct port **port;
	} side[] = { { o->client_port, &r->client_port }, { o->server_port, &r->server_port } };

	for (unsigned i = 0; i < HO_ARRAY_LEN(side); i++) {
		int rc;

		if (!side[i].name)
			continue;
		rc = cmd_session_port(&r->session, side[i].name, true, true, NULL, side[i].port,
				      err);
		if (rc == 0)
			rc = cmd_session_bind(&r->session, *side[i].port, true, true, err);
		if (rc < 0)
			return rc;
		if ((*side[i].port)->n_rxq != (*side[i].port)->n_txq)
			return ho_err_set(err, -EINVAL,
					  "%s has %u receive and %u transmit queues: as many of "
					  "each are needed; --queues asks for a number",
					  (*side[i].port)->name, (*side[i].port)->n_rxq,
					  (*side[i].port)->n_txq);
	}
	if (!spec)
		return 0;
	tr_spec_set_source(spec, r->client_port->mac);
	return tr_spec_fits(spec, r->client_port->max_frame, r->client_port->tag_room,
			    r->client_port->name, err);
}

static int rr_main(struct rr *r, const struct rr_options *o, struct tr_spec *spec,
		   struct ho_err *err)
{
	struct ho_err late = { 0 };
	int rc, late_rc = 0;
	bool started;

	ms_report_init(&r->report, "rr");
	r->report.list_counters = o->common.counters;
	rc = cmd_session_open(&r->session, &o->common,
			      o->client_port ? o->client_port : o->server_port, CMD_REAL, err);
	if (rc == 0)
		rc = open_ports(r, o, spec, err);
	if (rc == 0)
		rc = cmd_session_start(&r->session, err);
	started = rc == 0;
	if (rc == 0)
		rc = run(r, o, spec, err);
	if (started) {
		late_rc = cmd_session_stop(&r->session, &late);
		finish_report(r);
	}
	for (unsigned i = 0; i < r->n_clients; i++) {
		tr_rr_client_destroy(r->client[i]);
		tr_source_destroy(r->source[i]);
	}
	for (unsigned i = 0; i < r->n_servers; i++)
		tr_rr_server_destroy(r->server[i]);
	free(r->client);
	free(r->source);
	free(r->server);
	cmd_session_close(&r->session, &r->report.buffers_missing);
	if (rc == -EINTR)
		return CMD_DONE;
	if (started)
		publish(r, o);
	if (rc == 0 && late_rc < 0) {
		rc = late_rc;
		*err = late;
	}
	if (rc < 0)
		return cmd_status_of(rc);
	if (ms_report_check(&r->report, err) < 0)
		return CMD_FAILED;
	if (r->sum.failed && !r->sum.transactions) {
		ho_err_set(err, -ETIMEDOUT, "no request was answered%s",
			   r->refused ? ": the server answers UDP only, and its --reply must hold "
					"headers and stamp"
				      : "");
		return CMD_FAILED;
	}
	return CMD_DONE;
}

/* The client's frames: stamped, UDP, in one buffer. */
static int make_spec(struct rr_options *o, struct tr_spec **out)
{
	struct tr_spec_info info;
	int rc;

	if (o->frames.spec.stamp)
		return ho_err_set(o->err, -EINVAL, "--stamp: requests are always stamped");
	o->frames.spec.stamp = (char *)"yes";
	rc = cmd_frame_spec(&o->frames, out, o->err);
	if (rc < 0)
		return rc;
	tr_spec_info(*out, &info);
	if (!info.udp)
		return ho_err_set(
			o->err, -EINVAL,
			"%s: requests are UDP over IPv4 or IPv6, to which alone the server "
			"replies",
			o->frames.stream.ethertype ? "--ethertype"
			: o->frames.stream.proto   ? "--proto"
						   : o->frames.file);
	if (info.max_slots > 1)
		return ho_err_set(o->err, -EMSGSIZE,
				  "--size: requests of %u bytes: at most %u are possible here",
				  info.max_bytes, PK_ROOM_BYTES);
	return 0;
}

int cmd_rr(int argc, char **argv, struct ho_err *err)
{
	struct rr_options o = {
		.common = CMD_OPTIONS_INIT,
		.outstanding = 1,
		.tries = 5,
		.timeout_ns = 100000000,
		.err = err,
	};
	const struct argp_child children[] = { { &cmd_frame_argp, 0, NULL, 50 },
					       { &cmd_options_argp, 0, NULL, 90 },
					       { 0 } };
	const struct argp argp = {
		.options = rr_table,
		.parser = parse_rr,
		.args_doc = "[PORT]",
		.doc = "Sends requests from PORT and waits for the replies, N at a time: "
		       "transactions a second and their latency. --serve PORT2 answers in the "
		       "same process, or alone in another one.",
		.children = children,
	};
	struct tr_spec *spec = NULL;
	struct rr r = { 0 };
	int status;

	o.common.err = err;
	status = cmd_parse(&argp, argc, argv, &o, err);
	if (status != CMD_DONE)
		return status;
	if (o.client_port && make_spec(&o, &spec) < 0)
		status = CMD_USAGE;
	else
		status = rr_main(&r, &o, spec, err);
	ms_report_fini(&r.report);
	free(r.rates.rate);
	tr_spec_destroy(spec);
	return status;
}
