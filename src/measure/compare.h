/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario beside its published table: one run for each row of the table, with the row's series
 * and parameters set, and each result beside the published one.
 *
 *   error_percent = 100 * (simulated / (published - background) - 1)
 *
 * background is what the published numbers hold that the run does not have (lab/scenario.h).
 */
#ifndef HOLDOFF_MEASURE_COMPARE_H
#define HOLDOFF_MEASURE_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "lab/limiter.h"
#include "lab/scenario.h"
#include "measure/grid.h"

#define MS_COMPARE_RESULTS 4
#define MS_COMPARE_FITTED  16

struct ms_compare_config {
	const char *scenario;     /* name or path */
	const struct ms_set *set; /* what is to be so in every run */
	unsigned n_set;
	const char *series; /* only rows of this one; NULL = all */
	unsigned jobs;      /* processes; 0 = as many as CPUs; the results do not depend on it */
	void (*progress)(void *arg, unsigned done, unsigned rows);
	void *arg;
};

struct ms_compare_value {
	bool published; /* the table has a value here */
	bool exceeds;   /* and the error is larger than the scenario allows */
	double simulated;
	double reference; /* as published, background included */
	double error_percent;
};

struct ms_compare_row {
	unsigned row; /* of the table */
	bool fitted;  /* a constant was fitted to it */
	struct ms_compare_value value[MS_COMPARE_RESULTS];
	struct lab_limiter limiter;
	uint64_t tx_ring, tx_usable; /* of the sender's chip */
	uint64_t sim_frames, digest;
	double cpu_seconds;
};

/* A constant that somebody fitted. */
struct ms_fitted {
	char profile[32], key[48], rows[128]; /* rows: names with ", " between */
	double value;                         /* in the unit that the key ends in */
};

struct ms_compare {
	struct lab_scenario
		*scenario; /* with the config's settings; series and axes as in the file */
	struct ms_compare_row *row;
	unsigned n_rows, n_results;
	struct ms_fitted fitted[MS_COMPARE_FITTED];
	unsigned n_fitted;
	unsigned fitted_rows; /* different rows that the constants were fitted to */
	uint64_t sim_frames, digest;
	double wall_seconds, cpu_seconds;
	void (*progress)(void *arg, unsigned done, unsigned rows); /* the config's */
	void *arg;
};

/*
 * Runs the rows. -EINVAL for a scenario without a published table, or settings that it does not
 * take; what lab_run returns, with the row's name. *out is to be freed in any case.
 */
int ms_compare_run(const struct ms_compare_config *config, struct ms_compare *out,
		   struct ho_err *err);
void ms_compare_free(struct ms_compare *compare);

/* "v1/1024/50": series and parameters of a row, as the scenario names fitted ones. */
const char *ms_compare_row_name(const struct lab_scenario *scenario, unsigned row, char *text,
				size_t bytes);

/* Does the path (or axis name) set what the table's rows set? */
bool ms_compare_sets_row(const struct lab_scenario *scenario, const char *path);

/* Rows beyond what the scenario allows. */
unsigned ms_compare_exceeding(const struct ms_compare *compare);

/* The largest error of a result, in percent without sign, of fitted or of predicted rows; *row is
 * its index in compare->row. -1 if there is no such row. */
double ms_compare_worst(const struct ms_compare *compare, unsigned result, bool fitted,
			unsigned *row);

/* What the table shows, in sentences, from the rows' limiters. */
#define MS_VERDICT_TEXT 1200
void ms_compare_verdict(const struct ms_compare *compare, char text[MS_VERDICT_TEXT]);

/* The constants fitted in the profiles of a scenario's hosts, each once; adds to a list of at
 * most MS_COMPARE_FITTED. */
void ms_fitted_add(const struct lab_scenario *scenario, struct ms_fitted *list, unsigned *n);

#endif
