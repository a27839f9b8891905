// SPDX-License-Identifier: BSD-2-Clause
/* holdoff lab: scenarios in virtual time. */
#include "cmd/lab.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/session.h"
#include "measure/pool.h"

enum {
	OPT_SET = 's',
	OPT_JSON = 'j',
	OPT_QUIET = 'q',
	OPT_TRACE = 0x100,
	OPT_JOBS,
	OPT_SERIES,
};

static const struct argp_option lab_options[] = {
	{ "set", OPT_SET, "KEY=VALUE", 0,
	  "Change a value of the scenario: an axis (tx=256) or a path (duration=1ms, "
	  "hosts.dut.constants.irq_entry_ns=250)",
	  1 },
	{ "series", OPT_SERIES, "NAME", 0, "The variant of machine or software", 1 },
	{ "jobs", OPT_JOBS, "N", 0, "Processes for a table's rows; all CPUs if not given", 1 },
	{ "trace", OPT_TRACE, "FILE", 0,
	  "Write a time line of one run of the scenario, for ui.perfetto.dev", 1 },
	{ "json", OPT_JSON, NULL, 0, "Print one JSON object", 1 },
	{ "quiet", OPT_QUIET, NULL, 0, "No progress on the terminal", 1 },
	{ 0 },
};

struct lab_args {
	struct cmd_lab lab;
	const char *what;
	struct ho_err *err;
};

int cmd_lab_add_set(struct cmd_lab *lab, char *text, struct ho_err *err)
{
	char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return ho_err_set(err, -EINVAL, "--set %s: KEY=VALUE is needed", text);
	if (lab->n_set == CMD_LAB_SETS)
		return ho_err_set(err, -E2BIG, "more than %u --set", CMD_LAB_SETS);
	*equals = 0;
	lab->set[lab->n_set++] = (struct ms_set){ text, equals + 1 };
	return 0;
}

static error_t parse_lab(int key, char *arg, struct argp_state *state)
{
	struct lab_args *a = state->input;
	int rc = 0;

	switch (key) {
	case ARGP_KEY_ARG:
		if (!a->what)
			a->what = arg;
		else if (!a->lab.scenario)
			a->lab.scenario = arg;
		else
			rc = ho_err_set(a->err, -EINVAL,
					"'%s': lab takes one scenario; its values are changed with "
					"--set KEY=VALUE",
					arg);
		break;
	case OPT_SET:
		rc = cmd_lab_add_set(&a->lab, arg, a->err);
		break;
	case OPT_SERIES:
		a->lab.series = arg;
		break;
	case OPT_JOBS:
		rc = cmd_parse_number("jobs", arg, 1, MS_POOL_JOBS_MAX, &a->lab.jobs, a->err);
		break;
	case OPT_TRACE:
		a->lab.trace = arg;
		break;
	case OPT_JSON:
		a->lab.json = true;
		break;
	case OPT_QUIET:
		a->lab.quiet = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

int cmd_lab_load(const struct cmd_lab *lab, struct lab_scenario **out, struct ho_err *err)
{
	const struct ms_set series = { "series", lab->series };
	const struct ms_point point = { lab->set, lab->n_set };
	struct ms_grid grid = {
		.common = &series, .n_common = lab->series != NULL, .point = &point, .n = 1
	};
	struct lab_scenario *s;
	int rc = lab_scenario_load(lab->scenario, &s, err);

	if (rc < 0)
		return rc;
	grid.scenario = s;
	rc = ms_grid_scenario(&grid, 0, out, err);
	lab_scenario_free(s);
	return rc;
}

/* A table is run when there is one, and nothing was asked for that makes it a single run. */
static int run(const struct cmd_lab *lab, struct ho_err *err)
{
	struct lab_scenario *s;
	bool single = lab->trace;
	int rc = lab_scenario_load(lab->scenario, &s, err);

	if (rc < 0)
		return CMD_USAGE;
	single |= !s->published;
	for (unsigned i = 0; i < lab->n_set; i++)
		single |= ms_compare_sets_row(s, lab->set[i].key);
	lab_scenario_free(s);
	return single ? cmd_lab_single(lab, err) : cmd_lab_table(lab, err);
}

int cmd_lab(int argc, char **argv, struct ho_err *err)
{
	struct lab_args a = { .err = err };
	const struct argp argp = {
		.options = lab_options,
		.parser = parse_lab,
		.args_doc = "list\nshow SCENARIO\nrun SCENARIO\nexam [--cases N]",
		.doc = "Runs scenarios on modelled machines in virtual time. SCENARIO is a name "
		       "that 'lab list' shows, or a file. With a published table every row of it "
		       "is run and stands beside the published one, unless --set changes one of "
		       "its parameters; else it is a single run.",
	};
	int status;

	if (argc > 1 && !strcmp(argv[1], "exam"))
		return cmd_lab_exam(argc - 1, argv + 1, err);
	status = cmd_parse(&argp, argc, argv, &a, err);

	if (status != CMD_DONE)
		return status;
	if (a.what && !strcmp(a.what, "list") && !a.lab.scenario)
		return cmd_lab_list(&a.lab, err);
	if (a.what && !strcmp(a.what, "show") && a.lab.scenario)
		return cmd_lab_show(&a.lab, err);
	if (a.what && !strcmp(a.what, "run") && a.lab.scenario)
		return run(&a.lab, err);
	ho_err_set(err, -EINVAL,
		   "lab needs one of: list, show SCENARIO, run SCENARIO, exam; 'holdoff lab list' "
		   "names "
		   "the scenarios");
	return CMD_USAGE;
}
