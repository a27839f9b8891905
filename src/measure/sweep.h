/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sweep: a target, the values that are fixed, the axes, and a cell for each point of the grid,
 * or of one shard of it. Point i belongs to shard i mod N, counted from 0: neighbours, which take
 * about as long as each other, go to different shards.
 */
#ifndef HOLDOFF_MEASURE_SWEEP_H
#define HOLDOFF_MEASURE_SWEEP_H

#include <stdio.h>

#include "base/json.h"
#include "measure/target.h"

struct ms_sweep {
	char *target; /* "lab:ixgbe-txring" */
	char *title;
	char *version; /* of the program that made it */
	const struct ms_target_kind *kind;
	uint64_t digest;
	struct ms_axes set;  /* fixed: one value each */
	struct ms_axes axes; /* first = rows, last = columns */
	unsigned points;
	unsigned shard, shards; /* from 0; shards = 1: the whole */
	unsigned metric;        /* that is shown: index into kind->metric */
	bool less;              /* of it is better */
	struct ms_cell *cell;   /* of each point */
};

void ms_sweep_fini(struct ms_sweep *sweep);

/*
 * Opens nothing but the target and decides what is to be done. `given` are names and values as
 * the user gave them: those of one value become fixed; with no other, the target's own axes are
 * added (but what is fixed). metric may be NULL. -EINVAL with what there is.
 */
int ms_sweep_init(struct ms_sweep *sweep, const char *target, const struct ms_axes *given,
		  const char *metric, const struct ms_target_options *options, const char *version,
		  struct ms_target **open, struct ho_err *err);

/* The metric by its name. -EINVAL with the names. */
int ms_sweep_metric(struct ms_sweep *sweep, const char *name, struct ho_err *err);

/* "--NAME": is it an axis of the target? If not, -EINVAL with those that are. */
int ms_sweep_axis_known(const struct ms_target_kind *kind, struct ms_target *target,
			const char *name, struct ho_err *err);

/* Runs the shard's points. Errors as those of ms_grid_run. */
int ms_sweep_run(struct ms_sweep *sweep, struct ms_target *target, unsigned jobs,
		 void (*progress)(void *ctx, unsigned done, unsigned points), void *ctx,
		 struct ho_err *err);

/* The best point by the metric, the first of equals; `points` if there is none. */
unsigned ms_sweep_best(const struct ms_sweep *sweep);

/* "tx=256 rx-usecs=1": the point's values on the axes. Returns buf. */
const char *ms_sweep_point_name(const struct ms_sweep *sweep, unsigned point, char *buf,
				size_t bytes);

/* --- files (sweep_file.c) ------------------------------------------------------------------- */

/* NULL when out of memory. */
json_t *ms_sweep_json(const struct ms_sweep *sweep);
/* Header and a line for each cell that is there. 0, or -EPIPE and the like. */
int ms_sweep_csv(const struct ms_sweep *sweep, FILE *out);

/*
 * Reads what ms_sweep_json wrote, one object or several, from each file ("-" = standard input),
 * and joins them. -EINVAL if they are not of one sweep, or if points are missing or given twice.
 */
int ms_sweep_merge(struct ms_sweep *sweep, char *const *file, unsigned n, struct ho_err *err);

/* --- table (sweep_table.c) ------------------------------------------------------------------ */

/* The grid, what limits it, the best cell. width: columns of the terminal, 0 = no limit. */
int ms_sweep_table(const struct ms_sweep *sweep, FILE *out, bool colour, int width);

#endif
