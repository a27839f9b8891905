/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What loads a live interface while it is measured: nothing of ours (whatever traffic is there), a
 * command of the user's, or another run of this program. A command is run by the shell in a
 * process group of its own; a number is read from what it prints.
 *
 *   kind      command                              number
 *   observe   none                                 none
 *   run       the user's: "iperf3 -c ..."          the last match of a regular expression
 *   holdoff   "gen packet:eth1 --rate 1mpps"       a key of the object that -j prints
 */
#ifndef HOLDOFF_MEASURE_WORKLOAD_H
#define HOLDOFF_MEASURE_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum ms_workload_kind { MS_OBSERVE, MS_RUN, MS_HOLDOFF };

struct ms_workload_config {
	enum ms_workload_kind kind;
	const char *command; /* for the shell; or words after "holdoff", without -j */
	/* MS_RUN: POSIX extended regular expression; its first group, or all of it, is the number,
	 * which may carry k, M or G behind it. MS_HOLDOFF: a key ("tx_pps", or "latency.p50_ns"
	 * for one in an object). NULL: no number. */
	const char *metric;
	uint64_t limit_ns; /* the command is killed after this and the run has failed */
};

struct ms_workload;

/* Checks the expression and copies the config. -EINVAL with the place of the fault. */
int ms_workload_create(const struct ms_workload_config *config, struct ms_workload **out,
		       struct ho_err *err);
/* Kills what still runs. NULL is allowed. */
void ms_workload_destroy(struct ms_workload *w);

/* Starts the command. Nothing for MS_OBSERVE. */
int ms_workload_start(struct ms_workload *w, struct ho_err *err);

/*
 * Waits until the command has ended, at most until its limit, or until deadline_ns of
 * CLOCK_MONOTONIC when the kind is MS_OBSERVE, or until stop_fd is readable (-EINTR; the command
 * is killed). *number is what was read, NAN without a metric. Failures name the command, its exit
 * status and the last line it printed: -EIO; -ENODATA: nothing it printed matches.
 */
int ms_workload_wait(struct ms_workload *w, uint64_t deadline_ns, int stop_fd, double *number,
		     struct ho_err *err);

#endif
