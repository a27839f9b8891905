// SPDX-License-Identifier: BSD-2-Clause
/* holdoff forward: routes IPv4 and IPv6 between ports. */
#include "cmd/forward.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/pacer.h"

#define DRAIN_NS 1000000000u
#define POLL_NS  10000000u /* between two looks of the control plane */

static const struct argp_option forward_table[] = {
	{ "file", 'f', "FILE", 0,
	  "Ports, addresses, routes and neighbours from this file (docs/router.md)", 1 },
	{ "shortcut", 's', "auto|yes|no", 0,
	  "With the kernel's tables: its XDP programs forward plain packets by themselves. auto "
	  "does where the kernel forwards (ip_forward) and says what an interface takes",
	  1 },
	{ 0 },
};

static error_t parse_shortcut(struct forward *f, const char *arg)
{
	static const char *const words[] = {
		[FORWARD_SHORTCUT_AUTO] = "auto",
		[FORWARD_SHORTCUT_YES] = "yes",
		[FORWARD_SHORTCUT_NO] = "no",
	};

	for (unsigned i = 0; i < HO_ARRAY_LEN(words); i++) {
		if (!strcmp(arg, words[i])) {
			f->shortcut = (enum forward_shortcut)i;
			return 0;
		}
	}
	ho_err_set(f->err, -EINVAL, "--shortcut: '%s' is none of auto, yes, no", arg);
	return EINVAL;
}

static error_t parse_forward(int key, char *arg, struct argp_state *state)
{
	struct forward *f = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &f->common;
		return 0;
	case ARGP_KEY_ARG:
		if (f->port_args == RO_PORTS_MAX) {
			ho_err_set(f->err, -EINVAL, "'%s': at most %d ports", arg, RO_PORTS_MAX);
			return EINVAL;
		}
		f->port_arg[f->port_args++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (!f->file && f->port_args < 1) {
			ho_err_set(f->err, -EINVAL,
				   "forward needs ports whose addresses and routes the kernel has, "
				   "such as xdp:eth1 xdp:eth2, or -f FILE; docs/router.md explains "
				   "both");
			return EINVAL;
		}
		if (f->file && f->shortcut == FORWARD_SHORTCUT_YES) {
			ho_err_set(f->err, -EINVAL,
				   "--shortcut is by the kernel's tables: not with a file");
			return EINVAL;
		}
		return 0;
	case 'f':
		f->file = arg;
		return 0;
	case 's':
		return parse_shortcut(f, arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int forward_open(struct forward *f, const char *both, const char *receive, const char *send,
		 struct ho_err *err)
{
	struct ro_port *p = &f->port[f->ports];
	int rc = 0;

	if (both) {
		rc = cmd_session_port(&f->session, both, false, false, NULL, &p->rx, err);
		p->tx = p->rx;
	}
	if (rc == 0 && receive)
		rc = cmd_session_port(&f->session, receive, true, false, NULL, &p->rx, err);
	if (rc == 0 && send)
		rc = cmd_session_port(&f->session, send, false, true, NULL, &p->tx, err);
	if (rc == 0)
		f->ports++;
	return rc;
}

/* All queues of worker i use one cache: what one port frees the other one's receive queue takes
 * while it is still in the CPU's cache. */
static int bind_queues(struct forward *f, struct ho_err *err)
{
	for (unsigned p = 0; p < f->ports; p++) {
		if (f->port[p].rx)
			f->workers = HO_MAX(f->workers, f->port[p].rx->n_rxq);
	}
	f->cache = calloc(f->workers + 1, sizeof(struct pk_cache *));
	if (!f->cache)
		return ho_err_set(err, -ENOMEM, "out of memory");
	if (!f->workers)
		return ho_err_set(err, -EINVAL, "none of the ports receives anything");
	for (unsigned i = 0; i < f->workers; i++) {
		int rc = cmd_session_cache(&f->session, &f->cache[i], err);

		if (rc < 0)
			return rc;
		for (unsigned p = 0; p < f->ports; p++) {
			struct port *rx = f->port[p].rx, *tx = f->port[p].tx;

			if (rx && i < rx->n_rxq)
				port_bind_rx(rx, i, f->cache[i]);
			if (tx && i < tx->n_txq)
				port_bind_tx(tx, i, f->cache[i]);
		}
	}
	return 0;
}

static int make_router(struct forward *f, struct ho_err *err)
{
	struct ro_router_config config = {
		.rt = f->session.rt,
		.port = f->port,
		.ports = f->ports,
		.workers = f->workers,
		.cache = f->cache,
		.own_stack = f->control->own_stack,
		.to_host = f->control->to_host,
		.to_host_arg = f,
		.icmp_rate = f->icmp_rate,
		.icmp_burst = f->icmp_burst,
		.count = f->common.count,
		.end_ns = RT_FOREVER,
		.done_event = f->session.done_event,
	};
	int rc = ro_tables_create(f->ports, NULL, &f->tables, err);

	if (rc < 0)
		return rc;
	config.tables = f->tables;
	if (f->common.duration_ns)
		config.end_ns = rt_now_ns(f->session.rt) + f->common.duration_ns;
	return ro_router_create(&config, &f->router, err);
}

static void watch(struct forward *f)
{
	struct rt *rt = f->session.rt;
	bool asked = false;

	cmd_session_rows_begin(&f->session);
	while (!ro_router_done(f->router)) {
		uint64_t now = rt_now_ns(rt);

		if (cmd_session_wait(&f->session, now + POLL_NS))
			forward_report_row(f);
		f->control->poll(f, rt_now_ns(rt));
		if (f->session.interrupted && !asked) {
			ro_router_stop(f->router);
			asked = true;
		}
	}
	if (cmd_session_last_row(&f->session))
		forward_report_row(f);
}

static int run(struct forward *f, struct ho_err *err)
{
	uint64_t start;
	int rc = make_router(f, err);

	if (rc == 0)
		rc = f->control->setup(f, err);
	if (rc < 0)
		return rc;
	start = rt_now_ns(f->session.rt);
	forward_report_columns(f);
	f->session.tasks_planned = f->workers;
	for (unsigned i = 0; rc == 0 && i < f->workers; i++)
		rc = cmd_session_spawn(&f->session, NULL, i, "forward", ro_worker_run,
				       ro_router_worker(f->router, i), err);
	if (rc == 0)
		watch(f);
	if (f->control->halt)
		f->control->halt(f);
	ro_router_stop(f->router);
	cmd_session_join(&f->session);
	f->report.seconds = (double)(rt_now_ns(f->session.rt) - start) / 1e9;
	for (unsigned p = 0; p < f->ports; p++) {
		if (f->port[p].tx)
			port_drain(f->port[p].tx, DRAIN_NS);
	}
	return rc;
}

static int forward_main(struct forward *f, struct ho_err *err)
{
	struct ho_err late = { 0 };
	int rc, late_rc = 0, status;
	bool started = false;

	ms_report_init(&f->report, "forward");
	f->report.list_counters = f->common.counters;
	rc = cmd_session_open(&f->session, &f->common, "", CMD_REAL, err);
	if (rc == 0)
		rc = f->file ? forward_own_open(f, err) : forward_kernel_open(f, err);
	if (rc == 0)
		rc = bind_queues(f, err);
	if (rc == 0 && f->control->prepare)
		rc = f->control->prepare(f, err);
	if (rc == 0)
		rc = cmd_session_start(&f->session, err);
	if (rc == 0) {
		rc = run(f, err);
		started = rc == 0;
		f->tsc_hz = f->session.rt->tsc.hz;
	}
	if (started) {
		late_rc = cmd_session_stop(&f->session, &late);
		forward_report_finish(f);
	}
	if (f->control && f->control->finish) {
		int failed = f->control->finish(f, rc == 0 && late_rc == 0 ? &late : NULL);

		if (late_rc == 0)
			late_rc = failed;
	}
	ro_router_destroy(f->router);
	cmd_session_close(&f->session, &f->report.buffers_missing);
	if (started)
		forward_report_publish(f);
	if (rc == 0 && late_rc < 0) {
		rc = late_rc;
		*err = late;
	}
	status = cmd_status_of(rc);
	if (rc == 0 && started)
		status = forward_report_check(f, err) < 0 ? CMD_FAILED : CMD_DONE;
	if (f->control)
		f->control->teardown(f);
	ro_tables_destroy(f->tables);
	free(f->cache);
	return status;
}

int cmd_forward(int argc, char **argv, struct ho_err *err)
{
	const struct argp_child children[] = { { &cmd_options_argp, 0, NULL, 90 }, { 0 } };
	const struct argp argp = {
		.options = forward_table,
		.parser = parse_forward,
		.args_doc = "[PORT...]",
		.doc = "Routes IPv4 and IPv6 between ports, a task for each of their queues. "
		       "Without a file it follows the kernel: the addresses, routes and neighbours "
		       "of xdp: and packet: ports. Ports on the command line stand for those of "
		       "the "
		       "file, in its order.",
		.children = children,
	};
	struct forward *f = calloc(1, sizeof(*f));
	int status;

	if (!f) {
		ho_err_set(err, -ENOMEM, "out of memory");
		return CMD_FAILED;
	}
	f->common = (struct cmd_options)CMD_OPTIONS_INIT;
	f->common.err = err;
	f->err = err;
	status = cmd_parse(&argp, argc, argv, f, err);
	if (status == CMD_DONE) {
		status = forward_main(f, err);
		ms_report_fini(&f->report);
		free(f->rates.rate);
	}
	free(f);
	return status;
}
