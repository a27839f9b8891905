/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of 'holdoff sweep': fixed options, and one for each axis of the target. */
#ifndef HOLDOFF_CMD_SWEEP_H
#define HOLDOFF_CMD_SWEEP_H

#include <stdbool.h>

#include "cmd/workload_options.h"
#include "measure/target.h"

enum cmd_colour {
	CMD_COLOUR_AUTO, /* on a terminal, unless NO_COLOR is set */
	CMD_COLOUR_ALWAYS,
	CMD_COLOUR_NEVER,
};

struct cmd_sweep_options {
	char **argument; /* the target, or with merge the files; from argv */
	unsigned n_arguments;
	struct ms_axes given; /* names and values */
	/* Of those: given as --NAME, so that it must be an axis of the target. */
	bool by_option[MS_AXES_MAX];
	const char *metric, *csv;
	unsigned jobs;                   /* 0 = as many as CPUs */
	struct ms_target_options target; /* of a live interface */
	bool less;                       /* of the metric is better */
	struct cmd_workload workload;
	const char *html;
	unsigned shard, shards; /* from 0; shards = 1: the whole */
	bool merge, json, quiet;
	enum cmd_colour colour;
	struct ho_err *err;
};

/* Returns CMD_DONE or CMD_USAGE; never returns for --help. */
int cmd_sweep_parse(int argc, char **argv, struct cmd_sweep_options *options, struct ho_err *err);
void cmd_sweep_options_fini(struct cmd_sweep_options *options);

#endif
