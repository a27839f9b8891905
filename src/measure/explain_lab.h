/* SPDX-License-Identifier: BSD-2-Clause */
/* A scenario of the lab to be explained and tuned: its interfaces, and how its settings are said.
 */
#ifndef HOLDOFF_MEASURE_EXPLAIN_LAB_H
#define HOLDOFF_MEASURE_EXPLAIN_LAB_H

#include "measure/grid.h"
#include "measure/tune.h"

#define MS_LAB_IFACES LAB_RUN_CHIPS

struct ms_lab_iface {
	unsigned chip; /* index into the result */
	const char *host, *name;
	struct ms_evidence evidence;
	struct ms_verdict verdict;
};

struct ms_lab_explained {
	struct ms_lab_iface iface[MS_LAB_IFACES];
	unsigned n;
	unsigned main; /* the one whose verdict is the scenario's */
};

/* Explains every interface of a run. Names are the scenario's. `only`, "host.chip", may be NULL:
 * then the surest verdict that names something to do is the scenario's. -EINVAL if there is none.
 */
int ms_lab_explain(const struct lab_scenario *scenario, const struct lab_result *result,
		   const char *only, struct ms_lab_explained *out, struct ho_err *err);

/* What has to be set to come from `from` to `to`: at most 4 keys and values, as --set takes them.
 */
struct ms_lab_sets {
	char key[4][160], value[4][160];
	unsigned n;
};
void ms_lab_sets(const struct ms_lab_iface *iface, const struct ms_choice *from,
		 const struct ms_choice *to, struct ms_lab_sets *out);

/* The same as ethtool and /proc say it on a live box. */
void ms_linux_commands(const struct ms_evidence *ev, const char *iface, enum ms_aim aim,
		       const struct ms_choice *from, const struct ms_choice *to, char *text,
		       size_t bytes);

/* Tunes the scenario's interface. grid->scenario is as loaded, grid->common and its first point
 * what is set in all runs. */
int ms_lab_tune(const struct ms_grid *grid, const char *only, struct ms_tune *tune,
		struct ms_lab_iface *iface,
		void (*progress)(void *ctx, unsigned run, const struct ms_choice *choice,
				 double score),
		struct ho_err *err);

#endif
