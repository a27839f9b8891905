/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a sweep can run over. A kind of target says what can be set on it, what a point of a grid
 * yields and what can limit it; the grid, its table and its files know nothing else of it.
 */
#ifndef HOLDOFF_MEASURE_TARGET_H
#define HOLDOFF_MEASURE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "measure/axis.h"
#include "measure/live.h"

#define MS_METRICS_MAX 12
#define MS_REPEATS_MAX 100

struct ms_metric {
	const char *name; /* "pps": key in JSON and CSV, and what --metric takes */
	const char *what; /* "frames sent a second" */
	const char *unit; /* for people: "pps", "%", "us" */
	bool less;        /* is better */
	bool si;          /* may be shown in k and M */
};

/* What a point yields. Values have 9 significant digits, so that they survive files. */
struct ms_cell {
	bool present;
	double value[MS_METRICS_MAX]; /* of the kind's metrics; NAN = it has none */
	/* Of several rounds, value is the median and these the least and the most. */
	unsigned rounds; /* 0 = one, which says it all */
	double low[MS_METRICS_MAX], high[MS_METRICS_MAX];
	unsigned limit;              /* index into the kind's limit_letters */
	double used;                 /* of what limits, 0 to 1 */
	char text[LAB_LIMITER_TEXT]; /* the arithmetic behind it */
	uint64_t digest;             /* equal runs, equal digest; 0 = cannot be told */
};

struct ms_target;

/* What the kinds need to know beside the target's name. */
struct ms_target_options {
	struct ms_live_config live; /* of a live interface; ifname and stop_fd are the kind's */
	unsigned repeats;           /* of a live interface: rounds, at most MS_REPEATS_MAX */
};

/* A job for a target. */
struct ms_target_run {
	const struct ms_point *point;
	unsigned n;
	unsigned jobs; /* at once, where the kind can; 0 = it decides */
	void *ctx;
	int (*cell)(void *ctx, unsigned point, const struct ms_cell *cell, struct ho_err *err);
	void (*progress)(void *ctx, unsigned done, unsigned points); /* may be NULL */
};

struct ms_target_kind {
	const char *name;   /* "lab"; "" if the target stands alone, without a colon */
	const char *target; /* what follows the colon: "SCENARIO" */
	const char *help;
	const struct ms_metric *metric; /* the first one is the default */
	unsigned n_metrics;
	const char *limit_letters;                  /* of what can limit, in cells of the table */
	const char *(*limit_name)(unsigned limit);  /* in JSON and CSV: "ring" */
	const char *(*limit_title)(unsigned limit); /* "the transmit ring" */

	bool live; /* it takes real time and changes settings: one point at a time, no shards */

	int (*open)(const char *target, const struct ms_target_options *options,
		    struct ms_target **out, struct ho_err *err);
	void (*close)(struct ms_target *target);
	const char *(*title)(struct ms_target *target);
	/* Name and values of its own i-th axis; false after the last. NULL values: it has a name
	 * but must be given values. */
	bool (*axis)(struct ms_target *target, unsigned i, const char **name,
		     const char *const **values, unsigned *n);
	/* Must this name be set before all others? */
	bool (*first)(const char *name);
	/* Whatever decides about results beside these values: equal digests, equal results. */
	int (*digest)(struct ms_target *target, const struct ms_axes *set,
		      const struct ms_axes *axes, uint64_t *out, struct ho_err *err);
	/* Runs all points, cells in order. Errors as those of ms_grid_run. */
	int (*run)(struct ms_target *target, const struct ms_target_run *run, struct ho_err *err);
};

extern const struct ms_target_kind *const ms_target_kinds[]; /* ends with NULL */
extern const struct ms_target_kind ms_target_lab;
extern const struct ms_target_kind ms_target_live;

/* "lab:ixgbe-txring": its kind and, in *rest, what follows the colon. -EINVAL with what there is.
 */
int ms_target_kind_of(const char *spec, const struct ms_target_kind **kind, const char **rest,
		      struct ho_err *err);

#endif
