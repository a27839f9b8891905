/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tuning a live interface: any of its settings as knobs, few runs, noise taken seriously.
 *
 *   1. the present settings are measured some times: their spread is the noise
 *   2. knob by knob, values away from the present one are tried as long as they are better by more
 *      than the noise; what is better is run again before it is believed
 *   3. another round, until one brings nothing or the runs are used up
 *   4. the present and the best settings are run afresh, in turns, a number of times that is fixed
 *      before: the search picked the best for its luck as well, and looking after each run whether
 *      it is significant yet would find chance significant sooner or later. Then Welch's test tells
 *      them apart at 95 %, or it is said that it does not.
 *
 * What a knob does is not known beforehand: drivers and loads differ too much. Order matters only
 * for how soon the best is found: the objective says which knobs come first.
 */
#ifndef HOLDOFF_MEASURE_TUNE_LIVE_H
#define HOLDOFF_MEASURE_TUNE_LIVE_H

#include "measure/live.h"
#include "measure/significance.h"
#include "measure/tune.h"

#define MS_KNOBS_MAX       16
#define MS_KNOB_VALUES_MAX 16
#define MS_LIVE_CELLS_MAX  128

/* A setting and the values to choose from, rising; values[now] is the present one. */
struct ms_knob {
	char name[LX_COUNTER_BYTES];
	unsigned n, now;
	uint64_t value[MS_KNOB_VALUES_MAX];
	/* A second setting that goes with it: gro-flush-timeout does nothing unless
	 * defer-hard-irqs is above 0. "" = none. */
	char with[LX_COUNTER_BYTES];
	uint64_t with_value[MS_KNOB_VALUES_MAX];
};

/* A combination that was run. */
struct ms_live_cell {
	unsigned char at[MS_KNOBS_MAX]; /* index into each knob's values */
	struct ms_mean score;
	/* What limited in its last run: index into ms_causes, and why. */
	unsigned cause;
	char why[MS_LIVE_WHY];
};

struct ms_tune_live {
	/* The caller's: */
	struct ms_live *live;
	enum ms_tune_for what;
	bool latency;     /* the workload's number is a time: less is better */
	bool no_deferral; /* ms_tune_live_knobs leaves deferral out: a sender's frames do not wait
			   * for it */
	unsigned most;    /* runs at most; 0 = 40 */
	struct ms_knob knob[MS_KNOBS_MAX];
	unsigned knobs;
	void (*progress)(void *ctx, const struct ms_tune_live *t, unsigned cell, double score);
	void *ctx;
	/* The result: */
	struct ms_live_cell cell[MS_LIVE_CELLS_MAX];
	unsigned cells, runs, best;   /* cell 0 is the present one */
	struct ms_mean before, after; /* of the last, fresh runs; all of cell 0 if it is the best */
	bool significant;
	double t;
};

/* The knobs that this interface has, with values worth trying: rings, moderation, deferral. 0, or
 * -EOPNOTSUPP when it has none of them. */
int ms_tune_live_knobs(struct ms_tune_live *t, struct ho_err *err);

/* One more knob, or other values for one: "512,1024". -EINVAL with a sentence. */
int ms_tune_live_knob(struct ms_tune_live *t, const char *name, const char *values,
		      struct ho_err *err);

/*
 * Searches. The interface is left with whatever was run last; ms_tune_live_apply sets the best,
 * ms_live_restore (or close) the former. -EINTR by the live target's stop_fd.
 */
int ms_tune_live(struct ms_tune_live *t, struct ho_err *err);

/* Sets the cell's settings. */
int ms_tune_live_set(struct ms_tune_live *t, unsigned cell, struct ho_err *err);

/* "rx 512, rx-usecs 10": what the cell has otherwise than before; "" if nothing. Cut off to `bytes`. */
const char *ms_tune_live_name(const struct ms_tune_live *t, unsigned cell, char *buf,
			      size_t bytes);

/* What a measurement is worth; larger is better. NAN if it was not measured. */
double ms_tune_live_score(const struct ms_tune_live *t, const struct ms_live_result *r);

#endif
