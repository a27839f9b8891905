/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tuning: the best of many settings with few runs, over anything that can be run with a setting.
 *
 *   1. the present setting is run: its evidence gives the law (law.c)
 *   2. the law's favourite is run
 *   3. around the better one, one knob after the other is turned, the law's preferences first,
 *      until a whole round brings nothing or the runs are used up
 *   4. the present and the best are run in turns until their difference is significant, or it is
 *      said that it is not
 *
 * Runs are noisy. What counts is the mean of all runs of a setting; a rival must be better than the
 * incumbent by more than the noise seen so far. A difference is significant when Welch's t says so
 * at 95 %.
 */
#ifndef HOLDOFF_MEASURE_TUNE_H
#define HOLDOFF_MEASURE_TUNE_H

#include "measure/explain.h"
#include "measure/significance.h"

enum ms_tune_for { MS_FOR_PPS, MS_FOR_LATENCY, MS_FOR_CPU, MS_FOR_BALANCED, MS_FORS };
extern const char *const ms_tune_for_names[MS_FORS];

/* What one run brought. */
struct ms_tune_run {
	double rate;       /* frames or transactions a second */
	double latency_ns; /* mean; 0 = not measured */
	double busy;       /* CPUs of the box that were not idle, their shares added up */
	struct ms_evidence evidence;
};

struct ms_tune_target {
	void *ctx;
	/* Sets it, runs (the repeat-th run of this setting), measures. */
	int (*run)(void *ctx, const struct ms_choice *choice, unsigned repeat,
		   struct ms_tune_run *out, struct ho_err *err);
	/* What may be chosen; NULL: all that the evidence of the first run allows. */
	const struct ms_choices *choices;
	struct ms_choice now;
	/* After each run. May be NULL. */
	void (*progress)(void *ctx, unsigned run, const struct ms_choice *choice, double score);
};

/* A setting's runs. */
struct ms_tune_cell {
	struct ms_choice choice;
	struct ms_mean score;
};

#define MS_TUNE_CELLS 64

struct ms_tune {
	enum ms_tune_for what;
	unsigned runs; /* all in all */
	unsigned most; /* at most so many */
	struct ms_tune_cell cell[MS_TUNE_CELLS];
	unsigned cells;
	unsigned now, best;                        /* cells */
	bool significant;                          /* best against now */
	double t;                                  /* Welch's */
	struct ms_verdict verdict;                 /* of the present setting */
	double before, before_ci, after, after_ci; /* means of scores, half width of 95 % */
};

#define MS_TUNE_RUNS 15

/* Larger is better: frames a second; 1/s of latency; frames a second and busy CPU; their mean. */
double ms_tune_score(enum ms_tune_for what, const struct ms_tune_run *run);

/* tune->what and tune->most are the caller's; the rest is the result. */
int ms_tune(struct ms_tune *tune, const struct ms_tune_target *target, struct ho_err *err);

#endif
