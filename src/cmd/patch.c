// SPDX-License-Identifier: BSD-2-Clause
/* holdoff patch: forwards frames between two ports, both ways. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/session.h"
#include "traffic/forwarder.h"
#include "traffic/pacer.h"

#define DRAIN_NS 1000000000u

struct patch_options {
	struct cmd_options common;
	const char *port[2];
	unsigned n_ports;
	enum tr_forward_mode mode;
	struct ho_err *err;
};

struct patch {
	struct cmd_session session;
	struct ms_report report;
	struct port *port[2];
	struct tr_forwarder **worker;
	unsigned n;
	uint64_t counted; /* by all workers, towards --count */
};

enum { OPT_MODE = 0x300 };

static const char *const mode_names[] = { "io", "mac", "macswap" };

static const struct argp_option patch_table[] = {
	{ "mode", OPT_MODE, "io|mac|macswap", 0,
	  "Leave frames as they are; give them the outgoing port's and its peer's address; "
	  "exchange their addresses (io)",
	  1 },
	{ 0 },
};

static error_t parse_patch(int key, char *arg, struct argp_state *state)
{
	struct patch_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		return 0;
	case ARGP_KEY_ARG:
		if (o->n_ports == 2) {
			ho_err_set(o->err, -EINVAL, "'%s': patch joins two ports, not more", arg);
			return EINVAL;
		}
		o->port[o->n_ports++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->n_ports != 2) {
			ho_err_set(o->err, -EINVAL,
				   "patch needs two ports, such as xdp:eth1 "
				   "xdp:eth2; 'holdoff ports' lists what there is");
			return EINVAL;
		}
		return 0;
	case OPT_MODE:
		for (unsigned i = 0; i < HO_ARRAY_LEN(mode_names); i++) {
			if (!strcmp(arg, mode_names[i])) {
				o->mode = (enum tr_forward_mode)i;
				return 0;
			}
		}
		ho_err_set(o->err, -EINVAL, "--mode %s: io, mac or macswap is needed", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

struct totals {
	uint64_t packets[2], bytes[2]; /* sent on port 0 and 1 */
	uint64_t ring_full, drops;
};

static void read_totals(const struct patch *p, struct totals *t)
{
	*t = (struct totals){ 0 };
	for (unsigned e = 0; e < 2; e++) {
		const struct port *port = p->port[e];

		for (unsigned i = 0; i < port->n_txq; i++) {
			t->packets[e] += ho_ctr_read(&port->txq[i]->ctr.packets);
			t->bytes[e] += ho_ctr_read(&port->txq[i]->ctr.bytes);
			t->ring_full += ho_ctr_read(&port->txq[i]->ctr.ring_full);
			t->drops += port_drops_sum(port->txq[i]->ctr.drops);
		}
		for (unsigned i = 0; i < port->n_rxq; i++)
			t->drops += port_drops_sum(port->rxq[i]->ctr.drops);
	}
}

static void columns(struct patch *p)
{
	struct ho_table *t = &p->session.table;

	ho_table_column(t, "second", 6);
	ho_table_column(t, "-> Mpps", 10);
	ho_table_column(t, "<- Mpps", 10);
	ho_table_column(t, "Gbit/s", 10);
	ho_table_column(t, "ring full", 10);
	ho_table_column(t, "drops", 10);
}

static void row(struct patch *p, const struct totals *now, const struct totals *before)
{
	double seconds = cmd_session_row_seconds(&p->session), mpps[2], bytes = 0;
	struct ho_table *t = &p->session.table;

	for (unsigned e = 0; e < 2; e++) {
		uint64_t n = now->packets[e] - before->packets[e];

		mpps[e] = (double)n / seconds / 1e6;
		bytes += (double)(now->bytes[e] - before->bytes[e] + TR_FCS_BYTES * n);
	}
	ms_rates_add(&p->report.tx_rates, 1e6 * (mpps[0] + mpps[1]));
	ho_table_cell(t, "%u", p->session.rows + 1);
	ho_table_cell(t, "%.6f", mpps[1]);
	ho_table_cell(t, "%.6f", mpps[0]);
	ho_table_cell(t, "%.4f", 8e-9 * bytes / seconds);
	ho_table_cell(t, "%llu", (unsigned long long)(now->ring_full - before->ring_full));
	ho_table_cell(t, "%llu", (unsigned long long)(now->drops - before->drops));
	cmd_session_row(&p->session);
}

static bool all_done(const struct patch *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (!__atomic_load_n(&p->worker[i]->done, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

/* The count is of all workers together: the one that reached it ends the others. */
static bool any_done(const struct patch *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (__atomic_load_n(&p->worker[i]->done, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

/* Workers see to the duration themselves, unless they wait for a pipe's reader. */
static void watch(struct patch *p, bool counting, uint64_t end_ns)
{
	struct totals before, now;
	bool asked = false, over = false;

	read_totals(p, &before);
	cmd_session_rows_begin(&p->session);
	while (!all_done(p)) {
		if (cmd_session_wait(&p->session, over ? RT_FOREVER : end_ns)) {
			read_totals(p, &now);
			row(p, &now, &before);
			before = now;
		}
		if (!over && (p->session.interrupted || rt_now_ns(p->session.rt) >= end_ns)) {
			over = true;
			cmd_session_hurry(&p->session);
		}
		if (!asked && (over || (counting && any_done(p)))) {
			for (unsigned i = 0; i < p->n; i++)
				tr_stop_ask(&p->worker[i]->stop);
			asked = true;
		}
	}
	if (cmd_session_last_row(&p->session)) {
		read_totals(p, &now);
		row(p, &now, &before);
	}
}

/* From port e to the other one. A port without an address uses, as destination, locally
 * administered ones. */
static struct tr_forward_path make_path(const struct patch *p, unsigned e, unsigned queue)
{
	const struct port *from = p->port[e], *to = p->port[!e];
	static const uint8_t none[6];
	struct tr_forward_path path = {
		.dst = { 0x02, 0, 0, 0, 0, (uint8_t)(!e) },
		.src = { 0x02, 0, 0, 0, 1, (uint8_t)(!e) },
	};

	if (queue < from->n_rxq && queue < to->n_txq) {
		path.rxq = from->rxq[queue];
		path.txq = to->txq[queue];
	}
	if (memcmp(to->mac, none, sizeof(none)))
		memcpy(path.src, to->mac, sizeof(path.src));
	return path;
}

static int make_workers(struct patch *p, const struct patch_options *o, struct ho_err *err)
{
	uint64_t start = rt_now_ns(p->session.rt);
	unsigned queues = HO_MAX(p->port[0]->n_rxq, p->port[1]->n_rxq);

	p->worker = calloc(queues, sizeof(p->worker[0]));
	if (!p->worker)
		return ho_err_set(err, -ENOMEM, "out of memory for forwarders");
	for (unsigned i = 0; i < queues; i++) {
		struct tr_forwarder_config config = {
			.rt = p->session.rt,
			.path = { make_path(p, 0, i), make_path(p, 1, i) },
			.mode = o->mode,
			.count = o->common.count,
			.shared_count = &p->counted,
			.end_ns =
				o->common.duration_ns ? start + o->common.duration_ns : RT_FOREVER,
			.done_event = p->session.done_event,
		};
		int rc = tr_forwarder_create(&config, &p->worker[i], err);

		if (rc < 0)
			return rc;
		p->n++;
	}
	return 0;
}

/* All queues of worker i use one cache: what one port frees the other one's receive queue takes
 * while it is still in the CPU's cache. */
static int bind_queues(struct patch *p, struct ho_err *err)
{
	unsigned queues = HO_MAX(p->port[0]->n_rxq, p->port[1]->n_rxq);

	if (p->port[0]->n_rxq != p->port[0]->n_txq || p->port[1]->n_rxq != p->port[1]->n_txq ||
	    p->port[0]->n_rxq != p->port[1]->n_rxq)
		return ho_err_set(err, -EINVAL,
				  "%s has %u receive and %u transmit queues, %s %u and %u: both "
				  "need as many of each; --queues asks for a number",
				  p->port[0]->name, p->port[0]->n_rxq, p->port[0]->n_txq,
				  p->port[1]->name, p->port[1]->n_rxq, p->port[1]->n_txq);
	for (unsigned i = 0; i < queues; i++) {
		struct pk_cache *cache;
		int rc = cmd_session_cache(&p->session, &cache, err);

		if (rc < 0)
			return rc;
		for (unsigned e = 0; e < 2; e++) {
			port_bind_rx(p->port[e], i, cache);
			port_bind_tx(p->port[e], i, cache);
		}
	}
	return 0;
}

static int run(struct patch *p, const struct patch_options *o, struct ho_err *err)
{
	uint64_t start = rt_now_ns(p->session.rt);
	int rc = make_workers(p, o, err);

	if (rc < 0)
		return rc;
	columns(p);
	p->session.tasks_planned = p->n;
	for (unsigned i = 0; rc == 0 && i < p->n; i++)
		rc = cmd_session_spawn(&p->session, p->port[0], i, "patch", tr_forwarder_run,
				       p->worker[i], err);
	if (rc == 0)
		watch(p, o->common.count != 0,
		      o->common.duration_ns ? start + o->common.duration_ns : RT_FOREVER);
	for (unsigned i = 0; i < p->n; i++)
		tr_stop_ask(&p->worker[i]->stop);
	cmd_session_join(&p->session);
	p->report.seconds = (double)(rt_now_ns(p->session.rt) - start) / 1e9;
	for (unsigned e = 0; e < 2; e++)
		port_drain(p->port[e], DRAIN_NS);
	return rc;
}

static void finish_report(struct patch *p)
{
	struct ms_report *r = &p->report;

	for (unsigned e = 0; e < 2; e++) {
		for (unsigned i = 0; i < p->n; i++) {
			ms_report_add_rx(r, p->port[e]->rxq[i]);
			r->offered += port_drops_sum(p->port[e]->rxq[i]->ctr.drops);
			ms_report_add_tx(r, p->port[e]->txq[i]);
		}
		r->offered += ms_report_add_external(r, p->port[e], true, false);
	}
	for (unsigned i = 0; i < p->n; i++)
		r->drops[PORT_DROP_RX_CLOSED] += p->worker[i]->unwanted;
	/* These are part of what was offered: nothing of the balance hangs on whose they were. */
	r->external = 0;
	r->offered += r->rx_packets;
	r->delivered = r->tx_packets;
	r->tx_seconds = r->rx_seconds = r->seconds;
}

/* TSC ticks of turns that moved something, for each frame. */
static double ticks_per_packet(const struct patch *p)
{
	uint64_t ticks = 0;

	for (unsigned i = 0; i < p->n; i++)
		ticks += p->worker[i]->busy_ticks;
	return p->report.rx_packets ? (double)ticks / (double)p->report.rx_packets : 0;
}

/* The same of a turn that brought two full bursts, in the median: without what interrupted us. 0
 * when there was none. */
static double full_turn_ticks_per_packet(const struct patch *p)
{
	struct ho_hist all;

	ho_hist_init(&all);
	for (unsigned i = 0; i < p->n; i++)
		ho_hist_merge(&all, &p->worker[i]->full_turn_ticks);
	return (double)ho_hist_quantile(&all, 0.5) / (2 * PK_BURST);
}

static void publish(struct patch *p, const struct patch_options *o, uint64_t tsc_hz,
		    double per_packet, double per_packet_full)
{
	FILE *out = p->session.out;
	if (o->common.json) {
		json_t *object = ms_report_json(&p->report);

		json_object_set_new(object, "mode", json_string(mode_names[o->mode]));
		json_object_set_new(object, "workers", json_integer(p->n));
		json_object_set_new(object, "tsc_ticks_per_packet", json_real(per_packet));
		if (per_packet_full > 0)
			json_object_set_new(object, "tsc_ticks_per_packet_full_bursts",
					    json_real(per_packet_full));
		json_object_set_new(object, "tsc_hz", json_integer((json_int_t)tsc_hz));
		ho_json_print(out, object);
		return;
	}
	ms_report_print(&p->report, out);
	fprintf(out, "%-10s %.2f cycles a packet at %.3f GHz (time stamp counter), %u worker%s\n",
		"cost", per_packet, (double)tsc_hz / 1e9, p->n, p->n == 1 ? "" : "s");
	if (per_packet_full > 0)
		fprintf(out, "%-10s %.2f in the median of full bursts\n", "", per_packet_full);
	fflush(out);
}

static int patch_main(struct patch *p, const struct patch_options *o, struct ho_err *err)
{
	struct ho_err late = { 0 };
	uint64_t tsc_hz = 0;
	double per_packet = 0, per_packet_full = 0;
	bool started;
	int rc, late_rc = 0;

	ms_report_init(&p->report, "patch");
	p->report.list_counters = o->common.counters;
	rc = cmd_session_open(&p->session, &o->common, o->port[0], CMD_REAL, err);
	for (unsigned e = 0; rc == 0 && e < 2; e++)
		rc = cmd_session_port(&p->session, o->port[e], false, false, NULL, &p->port[e],
				      err);
	if (rc == 0)
		rc = bind_queues(p, err);
	if (rc == 0)
		rc = cmd_session_start(&p->session, err);
	started = rc == 0;
	if (rc == 0)
		rc = run(p, o, err);
	if (started) {
		late_rc = cmd_session_stop(&p->session, &late);
		finish_report(p);
		per_packet = ticks_per_packet(p);
		per_packet_full = full_turn_ticks_per_packet(p);
		tsc_hz = p->session.rt->tsc.hz;
	}
	for (unsigned i = 0; i < p->n; i++)
		tr_forwarder_destroy(p->worker[i]);
	free(p->worker);
	cmd_session_close(&p->session, &p->report.buffers_missing);
	if (rc == -EINTR)
		return CMD_DONE;
	if (started)
		publish(p, o, tsc_hz, per_packet, per_packet_full);
	if (rc == 0 && late_rc < 0) {
		rc = late_rc;
		*err = late;
	}
	if (rc < 0)
		return cmd_status_of(rc);
	return ms_report_check(&p->report, err) < 0 ? CMD_FAILED : CMD_DONE;
}

int cmd_patch(int argc, char **argv, struct ho_err *err)
{
	struct patch_options o = { .common = CMD_OPTIONS_INIT, .err = err };
	const struct argp_child children[] = { { &cmd_options_argp, 0, NULL, 90 }, { 0 } };
	const struct argp argp = {
		.options = patch_table,
		.parser = parse_patch,
		.args_doc = "PORT1 PORT2",
		.doc = "Forwards frames between two ports in both directions, one task for each "
		       "pair of queues.",
		.children = children,
	};
	struct patch p = { 0 };
	int status;

	o.common.err = err;
	status = cmd_parse(&argp, argc, argv, &o, err);
	if (status != CMD_DONE)
		return status;
	status = patch_main(&p, &o, err);
	ms_report_fini(&p.report);
	return status;
}
