/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of 'holdoff lab'. */
#ifndef HOLDOFF_CMD_LAB_H
#define HOLDOFF_CMD_LAB_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "lab/limiter.h"
#include "measure/compare.h"

#define CMD_LAB_SETS 64

struct cmd_lab {
	const char *scenario; /* name or path */
	struct ms_set set[CMD_LAB_SETS];
	unsigned n_set;
	const char *series, *trace;
	unsigned jobs;
	bool json, quiet;
};

/* "KEY=VALUE", one more to set; text is kept, and cut at the "=". -EINVAL, -E2BIG. */
int cmd_lab_add_set(struct cmd_lab *lab, char *text, struct ho_err *err);

/* The scenario with the series and everything set, for lab_scenario_free. */
int cmd_lab_load(const struct cmd_lab *lab, struct lab_scenario **out, struct ho_err *err);

/* Each returns an exit status. */
int cmd_lab_list(const struct cmd_lab *lab, struct ho_err *err);
int cmd_lab_show(const struct cmd_lab *lab, struct ho_err *err);
/* One run, of the scenario as it is set. */
int cmd_lab_single(const struct cmd_lab *lab, struct ho_err *err);
/* The scenario's published table, row by row. */
int cmd_lab_table(const struct cmd_lab *lab, struct ho_err *err);
/* 'lab exam' has options of its own; argv[0] is "exam". */
int cmd_lab_exam(int argc, char **argv, struct ho_err *err);

/* Print one object. 0, or what ho_json_print returns. */
int cmd_lab_table_json(const struct ms_compare *compare);
int cmd_lab_single_json(const struct cmd_lab *lab, const struct lab_scenario *scenario,
			const struct lab_result *result, const struct lab_limiter *limiter);

#endif
