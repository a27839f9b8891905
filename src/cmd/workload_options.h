/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that say how a live interface is loaded and measured: of 'sweep' and 'tune'. */
#ifndef HOLDOFF_CMD_WORKLOAD_OPTIONS_H
#define HOLDOFF_CMD_WORKLOAD_OPTIONS_H

#include <argp.h>

#include "measure/live.h"

struct cmd_workload {
	struct ms_live_config live; /* ifname and stop_fd are not this parser's */
	char *command;              /* made of --gen, --recv, --rr; freed by _fini */
	bool chosen;                /* one of --observe, --run, --gen, --recv, --rr */
	bool given;                 /* any of these options */
	struct ho_err *err;
};

#define CMD_WORKLOAD_INIT                                \
	{                                                \
		.live = {                                \
			.settle_ns = 500000000,          \
			.measure_ns = 2000000000,        \
			.stop_fd = -1,                   \
			.workload.limit_ns = 60000000000 \
		}                                        \
	}

/* A child parser for argp; its input is a struct cmd_workload. */
extern const struct argp cmd_workload_argp;
extern const struct argp_option cmd_workload_table[];

/*
 * After parsing: `metric` is how to read the workload's number, NULL for the usual one. Gives those
 * loads that do not end by themselves the time of a measurement. *reads: the load yields a number.
 */
int cmd_workload_finish(struct cmd_workload *w, const char *metric, bool *reads);
void cmd_workload_fini(struct cmd_workload *w);

#endif
