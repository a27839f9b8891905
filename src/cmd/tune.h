/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of 'holdoff tune', for its two kinds of targets. */
#ifndef HOLDOFF_CMD_TUNE_H
#define HOLDOFF_CMD_TUNE_H

#include "cmd/lab.h"
#include "cmd/workload_options.h"
#include "measure/tune.h"

#define CMD_TUNE_KNOBS 16

struct cmd_tune_args {
	const char *target;
	enum ms_tune_for what;
	unsigned most; /* runs; 0 = the target's default */
	bool json, quiet;
	struct ho_err *err;
	/* lab: */
	struct cmd_lab lab;
	const char *iface;
	/* live: */
	struct cmd_workload workload;
	const char *metric, *html;
	bool less, apply;
	const char *knob[CMD_TUNE_KNOBS]; /* "NAME=VALUES" */
	unsigned knobs;
};

/* Tunes args->target, an interface of this machine. A status. */
int cmd_tune_live(struct cmd_tune_args *args);

#endif
