// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/workload_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options.h"

enum {
	OPT_RUN = 0x400,
	OPT_GEN,
	OPT_RECV,
	OPT_RR,
	OPT_OBSERVE,
	OPT_TIME,
	OPT_SETTLE,
	OPT_LIMIT,
	OPT_FORCE,
};

const struct argp_option cmd_workload_table[] = {
	{ "observe", OPT_OBSERVE, NULL, 0, "Whatever traffic there is [default]", 1 },
	{ "run", OPT_RUN, "COMMAND", 0,
	  "A command for the shell; --metric is a regular expression that finds a number in what "
	  "it prints",
	  1 },
	{ "gen", OPT_GEN, "ARGUMENTS", 0,
	  "holdoff gen with these; --metric is a key of what -j prints [tx_pps]", 1 },
	{ "recv", OPT_RECV, "ARGUMENTS", 0, "The same with holdoff recv [rx_pps]", 1 },
	{ "rr", OPT_RR, "ARGUMENTS", 0, "The same with holdoff rr [transactions_per_second]", 1 },
	{ "time", OPT_TIME, "TIME", 0, "Each measurement, unless the command ends itself [2s]", 1 },
	{ "settle", OPT_SETTLE, "TIME", 0, "Between a change and a measurement [500ms]", 1 },
	{ "run-limit", OPT_LIMIT, "TIME", 0, "A command that takes longer has failed [60s]", 1 },
	{ "force", OPT_FORCE, NULL, 0, "Even the interface of the default route", 1 },
	{ 0 },
};

static int choose(struct cmd_workload *w, enum ms_workload_kind kind, const char *command,
		  const char *metric, const char *arguments)
{
	struct ms_workload_config *load = &w->live.workload;

	if (w->chosen)
		return ho_err_set(w->err, -EINVAL,
				  "there is one load: --observe, --run, --gen, --recv or --rr");
	w->chosen = true;
	load->kind = kind;
	load->metric = metric;
	load->command = arguments;
	if (kind != MS_HOLDOFF)
		return 0;
	if (asprintf(&w->command, "%s %s", command, arguments) < 0) {
		w->command = NULL;
		return ho_err_set(w->err, -ENOMEM, "out of memory for arguments");
	}
	load->command = w->command;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cmd_workload *w = state->input;
	int rc = 0;

	switch (key) {
	case OPT_OBSERVE:
		rc = choose(w, MS_OBSERVE, NULL, NULL, NULL);
		break;
	case OPT_RUN:
		rc = choose(w, MS_RUN, NULL, NULL, arg);
		break;
	case OPT_GEN:
		rc = choose(w, MS_HOLDOFF, "gen", "tx_pps", arg);
		break;
	case OPT_RECV:
		rc = choose(w, MS_HOLDOFF, "recv", "rx_pps", arg);
		break;
	case OPT_RR:
		rc = choose(w, MS_HOLDOFF, "rr", "transactions_per_second", arg);
		break;
	case OPT_TIME:
		rc = cmd_parse_time("time", arg, &w->live.measure_ns, w->err);
		break;
	case OPT_SETTLE:
		rc = cmd_parse_time("settle", arg, &w->live.settle_ns, w->err);
		break;
	case OPT_LIMIT:
		rc = cmd_parse_time("run-limit", arg, &w->live.workload.limit_ns, w->err);
		break;
	case OPT_FORCE:
		w->live.force = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	w->given = true;
	return rc < 0 ? EINVAL : 0;
}

const struct argp cmd_workload_argp = { .options = cmd_workload_table, .parser = parse };

int cmd_workload_finish(struct cmd_workload *w, const char *metric, bool *reads)
{
	struct ms_workload_config *load = &w->live.workload;
	char *timed;

	*reads = false;
	if (load->kind == MS_OBSERVE)
		return metric ? ho_err_set(
					w->err, -EINVAL,
					"--metric %s: there is no load that it could be read from",
					metric)
			      : 0;
	if (metric)
		load->metric = metric;
	*reads = load->metric != NULL;
	if (load->kind != MS_HOLDOFF || strstr(load->command, "--duration") ||
	    strstr(load->command, "--count"))
		return 0;
	if (asprintf(&timed, "%s --duration %gs", load->command, (double)w->live.measure_ns / 1e9) <
	    0)
		return ho_err_set(w->err, -ENOMEM, "out of memory for arguments");
	free(w->command);
	load->command = w->command = timed;
	return 0;
}

void cmd_workload_fini(struct cmd_workload *w)
{
	free(w->command);
	w->command = NULL;
}
