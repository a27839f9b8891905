/* SPDX-License-Identifier: BSD-2-Clause */
/* gen --tune: the interface that gen sends from is tuned for the run, and put back after it. */
#ifndef HOLDOFF_CMD_GEN_TUNE_H
#define HOLDOFF_CMD_GEN_TUNE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"

/* Runs at most, if nothing else is asked for: some 15 s. */
#define GEN_TUNE_RUNS 20

struct gen_tune_config {
	const char *port;       /* "packet:eth1" */
	const char *const *arg; /* gen's own command line, without its name: the load */
	unsigned n_args;
	unsigned runs; /* at most */
	bool receives; /* what arrives counts, not what is sent */
	bool force;    /* even the interface of the default route */
	int stop_fd;   /* readable when the search is to end; -1 = never */
	bool quiet;    /* no line for each run on the terminal */
};

struct gen_tune;

/* The option that makes gen a load for so long a time: as fast as it goes, whatever else its
 * command line says of rate, count and tuning. */
#define GEN_LOAD_OPTION "load-of-tuning"

/*
 * Claims the port's interface (its settings are in the journal before anything is changed), tunes
 * it with gen's own traffic at the highest rate, and leaves the best settings if they are
 * significantly better. Says so. *out is NULL if the interface has nothing to tune, which is said
 * as well. -EINVAL: the port is on no interface. Else the errors of ms_live_open. -EINTR: a signal;
 * everything is put back.
 */
int gen_tune_begin(const struct gen_tune_config *config, struct gen_tune **out, struct ho_err *err);

/* What was set and what it gained: a line; the key "tuned". Nothing for NULL. */
void gen_tune_print(const struct gen_tune *tune, FILE *out);
void gen_tune_json(const struct gen_tune *tune, json_t *object);

/* Everything back, and frees; NULL is allowed. Needs CAP_NET_ADMIN. Failing to restore is an error
 * whose text has the way out. */
int gen_tune_end(struct gen_tune *tune, struct ho_err *err);

#endif
