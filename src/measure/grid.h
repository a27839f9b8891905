/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario run at many points, in several processes: each point is the scenario with some of its
 * values set. Results come in the order of the points and are the same for any number of jobs,
 * but for the real time that each took (wall_seconds, cpu_seconds).
 */
#ifndef HOLDOFF_MEASURE_GRID_H
#define HOLDOFF_MEASURE_GRID_H

#include "lab/limiter.h"
#include "lab/run.h"

/* One value: key is what lab_scenario_set takes, or "series". */
struct ms_set {
	const char *key, *value;
};

struct ms_point {
	const struct ms_set *set; /* done in this order */
	unsigned n;
};

/* What is to be run. Nothing is copied. */
struct ms_grid {
	const struct lab_scenario *scenario; /* as loaded from a file: each point loads it afresh */
	const struct ms_set *common;         /* before those of each point; may be NULL */
	unsigned n_common;
	const struct ms_point *point;
	unsigned n;
	unsigned jobs; /* processes; 0 = as many as there are CPUs */
	void *ctx;     /* of the functions below */
	/* For each point in order. Names in result are the grid's scenario's; the rest is valid
	 * until it returns. A failure ends the run. */
	int (*result)(void *ctx, unsigned point, const struct lab_result *result,
		      const struct lab_limiter *limiter, struct ho_err *err);
	/* Whenever a point is done. May be NULL. */
	void (*progress)(void *ctx, unsigned done, unsigned points);
};

/*
 * Runs all points. 0, -EINTR (SIGINT or SIGTERM came; the workers are gone), or the failure of the
 * first point that failed, named by its values: -EINVAL for a value that cannot be, -EPROTO for
 * a broken invariant, -ECHILD for a process that died. The caller must have no other threads.
 */
int ms_grid_run(const struct ms_grid *grid, struct ho_err *err);

/* The scenario as the point has it, for lab_scenario_free. */
int ms_grid_scenario(const struct ms_grid *grid, unsigned point, struct lab_scenario **out,
		     struct ho_err *err);

/* "tx=256 rx-usecs=1"; cut short if it does not fit. Returns buf. */
const char *ms_point_name(const struct ms_point *point, char *buf, size_t bytes);

#endif
