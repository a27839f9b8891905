// SPDX-License-Identifier: BSD-2-Clause
/* holdoff tune: the best setting with few runs. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/units.h"
#include "cmd/lab.h"
#include "cmd/session.h"
#include "cmd/tune.h"
#include "measure/explain_lab.h"

enum {
	OPT_SET = 's',
	OPT_JSON = 'j',
	OPT_QUIET = 'q',
	OPT_SERIES = 0x100,
	OPT_FOR,
	OPT_RUNS,
	OPT_IFACE,
	OPT_METRIC,
	OPT_LESS,
	OPT_KNOB,
	OPT_APPLY,
	OPT_HTML,
};

static const struct argp_option options[] = {
	{ "for", OPT_FOR, "WHAT", 0, "pps, latency, cpu (frames a busy CPU) or balanced [pps]", 1 },
	{ "runs", OPT_RUNS, "N", 0, "At most so many [15; 40 on a live interface]", 1 },
	{ "json", OPT_JSON, NULL, 0, "Print one JSON object", 1 },
	{ "quiet", OPT_QUIET, NULL, 0, "No progress on the terminal", 1 },
	{ NULL, 0, NULL, 0, "Of the lab:", 2 },
	{ "set", OPT_SET, "KEY=VALUE", 0, "Change a value of the scenario", 2 },
	{ "series", OPT_SERIES, "NAME", 0, "The variant of machine or software", 2 },
	{ "interface", OPT_IFACE, "HOST.CHIP", 0, "The interface to be tuned", 2 },
	{ NULL, 0, NULL, 0, "Of a live interface:", 3 },
	{ "knob", OPT_KNOB, "NAME=VALUES", 0,
	  "A setting to turn, with the values to choose from [rings, moderation, deferral]", 3 },
	{ "apply", OPT_APPLY, NULL, 0,
	  "Leave the best setting, if it is significantly better [everything is put back]", 3 },
	{ "metric", OPT_METRIC, "NAME", 0, "How to read the load's number: see the loads", 3 },
	{ "less", OPT_LESS, NULL, 0, "Less of it is better, as of a time", 3 },
	{ "html", OPT_HTML, "FILE", 0, "A page with before and after, all runs, the machine", 3 },
	{ 0 },
};

static int parse_for(struct cmd_tune_args *a, const char *word)
{
	for (unsigned i = 0; i < MS_FORS; i++) {
		if (!strcmp(word, ms_tune_for_names[i])) {
			a->what = (enum ms_tune_for)i;
			return 0;
		}
	}
	return ho_err_set(a->err, -EINVAL, "--for %s: there are pps, latency, cpu and balanced",
			  word);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cmd_tune_args *a = state->input;
	uint64_t n = 0;
	int rc = 0;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->workload;
		break;
	case OPT_METRIC:
		a->metric = arg;
		break;
	case OPT_LESS:
		a->less = true;
		break;
	case OPT_APPLY:
		a->apply = true;
		break;
	case OPT_HTML:
		a->html = arg;
		break;
	case OPT_KNOB:
		if (!strchr(arg, '=') || *arg == '=')
			rc = ho_err_set(a->err, -EINVAL, "--knob %s: NAME=VALUES is needed", arg);
		else if (a->knobs == CMD_TUNE_KNOBS)
			rc = ho_err_set(a->err, -E2BIG, "more than %d --knob", CMD_TUNE_KNOBS);
		else
			a->knob[a->knobs++] = arg;
		break;
	case ARGP_KEY_ARG:
		if (a->target)
			rc = ho_err_set(a->err, -EINVAL, "'%s': tune takes one target", arg);
		a->target = arg;
		break;
	case OPT_FOR:
		rc = parse_for(a, arg);
		break;
	case OPT_RUNS:
		rc = ho_parse_count(arg, &n, a->err);
		if (rc == 0 && (n < 4 || n > MS_TUNE_CELLS))
			rc = ho_err_set(a->err, -ERANGE, "--runs %s: 4 to %u are possible", arg,
					MS_TUNE_CELLS);
		a->most = (unsigned)n;
		break;
	case OPT_SET:
		rc = cmd_lab_add_set(&a->lab, arg, a->err);
		break;
	case OPT_SERIES:
		a->lab.series = arg;
		break;
	case OPT_IFACE:
		a->iface = arg;
		break;
	case OPT_JSON:
		a->json = true;
		break;
	case OPT_QUIET:
		a->quiet = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

static void progress(void *ctx, unsigned run, const struct ms_choice *c, double score)
{
	static const char *const places[] = { "on one CPU", "with programs", "away",
					      "as they are" };

	fprintf(stderr, "run %2u: ring %u, rx-usecs %u, %s, interrupts %s: %.5g\n", run, c->ring,
		c->usecs, ms_mode_names[c->mode], places[c->place], score);
}

static const char *unit(enum ms_tune_for what, const struct ms_lab_iface *f)
{
	bool request = f->verdict.view.aim == MS_AIM_REQUEST;

	switch (what) {
	case MS_FOR_LATENCY:
		return "1/s, of the latency";
	case MS_FOR_CPU:
		return request ? "transactions/s a busy CPU" : "frames/s a busy CPU";
	case MS_FOR_BALANCED:
		return request ? "transactions/s a square root of busy CPUs"
			       : "frames/s a square root of busy CPUs";
	default:
		return request ? "transactions/s" : "frames/s";
	}
}

static void with_ci(char text[64], double value, double ci)
{
	if (isfinite(ci))
		snprintf(text, 64, "%.5g +- %.2g", value, ci);
	else
		snprintf(text, 64, "%.5g (one run)", value);
}

static void print(const struct ms_tune *t, const struct ms_lab_iface *f)
{
	const struct ms_choice *now = &t->cell[t->now].choice, *best = &t->cell[t->best].choice;
	char before[64], after[64], commands[512];
	struct ms_lab_sets sets;

	with_ci(before, t->before, t->before_ci);
	with_ci(after, t->after, t->after_ci);
	printf("%s, tuned for %s with %u runs of %u settings\n\n", f->evidence.name,
	       ms_tune_for_names[t->what], t->runs, t->cells);
	printf("before  %s %s\n", before, unit(t->what, f));
	if (t->best == t->now) {
		printf("\nNo setting that was tried is better than the present one.\n");
		return;
	}
	printf("after   %s, %+.1f %%, %s\n\n", after, (t->after / t->before - 1) * 100,
	       t->significant ? "significant at 95 %" : "not significant");
	ms_lab_sets(f, now, best, &sets);
	for (unsigned i = 0; i < sets.n; i++)
		printf("    --set %s=%s\n", sets.key[i], sets.value[i]);
	ms_linux_commands(&f->evidence, f->name, f->verdict.view.aim, now, best, commands,
			  sizeof(commands));
	if (commands[0])
		printf("    on a live box: %s\n", commands);
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static int print_json(const struct cmd_tune_args *a, const struct ms_tune *t,
		      const struct ms_lab_iface *f)
{
	json_t *o = ho_json_begin("tune"), *set = json_object(), *runs = json_array();
	struct ms_lab_sets sets;

	json_object_set_new(o, "target", json_string(a->target));
	json_object_set_new(o, "interface", json_string(f->evidence.name));
	json_object_set_new(o, "for", json_string(ms_tune_for_names[t->what]));
	json_object_set_new(o, "unit", json_string(unit(t->what, f)));
	json_object_set_new(o, "runs", json_integer(t->runs));
	json_object_set_new(o, "before", number(t->before));
	json_object_set_new(o, "before_ci95", number(t->before_ci));
	json_object_set_new(o, "after", number(t->after));
	json_object_set_new(o, "after_ci95", number(t->after_ci));
	json_object_set_new(o, "significant", json_boolean(t->significant));
	ms_lab_sets(f, &t->cell[t->now].choice, &t->cell[t->best].choice, &sets);
	for (unsigned i = 0; i < sets.n; i++)
		json_object_set_new(set, sets.key[i], json_string(sets.value[i]));
	json_object_set_new(o, "set", set);
	for (unsigned i = 0; i < t->cells; i++) {
		const struct ms_tune_cell *c = &t->cell[i];

		json_array_append_new(runs, json_pack("{s:i, s:i, s:s, s:i, s:i, s:f}", "ring",
						      (int)c->choice.ring, "rx_usecs",
						      (int)c->choice.usecs, "rx_mode",
						      ms_mode_names[c->choice.mode], "place",
						      (int)c->choice.place, "runs", (int)c->score.n,
						      "score", c->score.mean));
	}
	json_object_set_new(o, "settings", runs);
	return ho_json_print(stdout, o);
}

static int tune_lab(struct cmd_tune_args *a)
{
	const struct ms_set series = { "series", a->lab.series };
	const struct ms_point point = { a->lab.set, a->lab.n_set };
	struct ms_grid grid = {
		.common = &series, .n_common = a->lab.series != NULL, .point = &point, .n = 1
	};
	struct ms_lab_iface *f = calloc(1, sizeof(*f));
	struct ms_tune *t = calloc(1, sizeof(*t));
	struct lab_scenario *s = NULL;
	bool show = !a->quiet && isatty(STDERR_FILENO);
	int rc = f && t ? lab_scenario_load(a->target + strlen("lab:"), &s, a->err)
			: ho_err_set(a->err, -ENOMEM, "out of memory for tuning");

	grid.scenario = s;
	if (rc == 0) {
		t->what = a->what;
		t->most = a->most;
		rc = ms_lab_tune(&grid, a->iface, t, f, show ? progress : NULL, a->err);
	}
	if (rc == 0 && a->json)
		rc = print_json(a, t, f);
	else if (rc == 0)
		print(t, f);
	free(t);
	lab_scenario_free(s);
	free(f);
	return cmd_status_of(rc);
}

/* Options that go with the other kind of target. */
static int check(const struct cmd_tune_args *a)
{
	bool lab = a->target && !strncmp(a->target, "lab:", 4);

	if (!a->target)
		return ho_err_set(
			a->err, -EINVAL,
			"tune needs a target: an interface, or lab:SCENARIO ('holdoff lab "
			"list' names them)");
	if (!lab && strchr(a->target, ':'))
		return ho_err_set(a->err, -EINVAL,
				  "'%s' is not a target for tuning; there are lab:SCENARIO and the "
				  "names of interfaces",
				  a->target);
	if (lab && (a->workload.given || a->knobs || a->apply || a->metric || a->less || a->html))
		return ho_err_set(a->err, -EINVAL,
				  "%s runs in virtual time: a load, --knob, --apply, --metric and "
				  "--html go with a live interface",
				  a->target);
	if (!lab && (a->lab.n_set || a->lab.series || a->iface))
		return ho_err_set(a->err, -EINVAL,
				  "%s is a live interface: --set, --series and --interface go with "
				  "lab:SCENARIO",
				  a->target);
	return 0;
}

int cmd_tune(int argc, char **argv, struct ho_err *err)
{
	struct cmd_tune_args *a = calloc(1, sizeof(*a));
	static const struct argp_child children[] = {
		{ &cmd_workload_argp, 0, "Load of a live interface:", 4 }, { 0 }
	};
	const struct argp argp = {
		.options = options,
		.children = children,
		.parser = parse,
		.args_doc = "lab:SCENARIO\nIFACE",
		.doc = "Finds the best settings with few runs, and shows before and after with "
		       "confidence intervals: of a scenario of the lab rings, moderation, rx-mode "
		       "and places of interrupts; of a live interface whatever ethtool can set. "
		       "Every "
		       "setting is put back, however the run ends.",
	};
	int status;

	if (!a) {
		ho_err_set(err, -ENOMEM, "out of memory");
		return CMD_FAILED;
	}
	a->err = err;
	a->workload = (struct cmd_workload)CMD_WORKLOAD_INIT;
	a->workload.err = err;
	status = cmd_parse(&argp, argc, argv, a, err);
	if (status == CMD_DONE && check(a) < 0)
		status = CMD_USAGE;
	if (status == CMD_DONE)
		status = strncmp(a->target, "lab:", 4) ? cmd_tune_live(a) : tune_lab(a);
	cmd_workload_fini(&a->workload);
	free(a);
	return status;
}
