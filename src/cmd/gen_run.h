/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of generated traffic over a session's ports: senders, and receivers if there are any. */
#ifndef HOLDOFF_CMD_GEN_RUN_H
#define HOLDOFF_CMD_GEN_RUN_H

#include "cmd/session.h"
#include "traffic/replay.h"
#include "traffic/sender.h"
#include "traffic/spec.h"

struct gen_tune;

struct gen {
	struct cmd_session session;
	struct ms_report report; /* over all runs */
	struct port *tx, *rx;    /* rx: NULL without a receiving side */
	struct gen_tune *tune;   /* of the tx port's interface; NULL = none */
	unsigned workers;        /* senders */
	struct tr_spec *spec;
	const struct tr_replay_config *replay; /* instead of spec; NULL = none */
	const struct tr_filter *filter;        /* of the receiving side; NULL = none */
	bool stamped;
	uint64_t frames; /* that receivers took, in all runs */
	double mean_bytes;
};

/* What a run is asked to do and what came of it. */
struct gen_run {
	struct ho_rate rate;
	unsigned burst;       /* 0 = the pacer's choice */
	bool timed;           /* replay at the file's times */
	uint64_t count;       /* 0 = no limit */
	uint64_t duration_ns; /* 0 = no limit */
	bool rows;            /* a row a second */

	uint64_t offered, sent, received; /* received: the right ones, without duplicates */
	double tx_seconds;
	bool paced;
	bool has_mean;            /* the schedule had a mean rate */
	double rate_error;        /* relative, of the mean rate; 0 without one */
	uint64_t slipped_ns;      /* the most of a worker */
	uint64_t full_ns;         /* with a full ring, all workers' */
	uint64_t pool_empty;      /* times without a buffer */
	struct ho_hist gap_error; /* ns */
	struct tr_replay_counts replay;
};

/* Sets the session's table up for gen_run's rows. */
void gen_columns(struct gen *gen);

/* Runs it; adds to gen->report what is not in the ports' counters (those are read at the end). 0
 * also when it was interrupted. */
int gen_run(struct gen *gen, struct gen_run *run, struct ho_err *err);

#endif
