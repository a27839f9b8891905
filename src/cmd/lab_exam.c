// SPDX-License-Identifier: BSD-2-Clause
/* holdoff lab exam: explain and tune held against the truth, on random machines. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/lab.h"
#include "cmd/session.h"
#include "measure/exam.h"
#include "measure/pool.h"

enum {
	OPT_CASES = 'n',
	OPT_JSON = 'j',
	OPT_QUIET = 'q',
	OPT_VERBOSE = 'v',
	OPT_SEED = 0x100,
	OPT_FIRST,
	OPT_JOBS,
	OPT_MIN_RIGHT,
	OPT_MIN_ADVICE,
	OPT_MIN_TUNE,
};

static const struct argp_option options[] = {
	{ "cases", OPT_CASES, "N", 0, "How many machines [30]", 1 },
	{ "seed", OPT_SEED, "N", 0, "Of the series of cases [1]", 1 },
	{ "first", OPT_FIRST, "N", 0, "Begin with this one of the series [0]", 1 },
	{ "jobs", OPT_JOBS, "N", 0, "Processes; all CPUs if not given", 1 },
	{ "min-right", OPT_MIN_RIGHT, "SHARE", 0,
	  "Exit with 3 if explain names a true limiter in less", 1 },
	{ "min-advice", OPT_MIN_ADVICE, "SHARE", 0,
	  "Exit with 3 if the advice reaches 90 % of the best in less", 1 },
	{ "min-tune", OPT_MIN_TUNE, "SHARE", 0,
	  "Exit with 3 if tune reaches less of the best, median", 1 },
	{ "json", OPT_JSON, NULL, 0, "Print one JSON object", 1 },
	{ "verbose", OPT_VERBOSE, NULL, 0, "Show each case that was wrong", 1 },
	{ "quiet", OPT_QUIET, NULL, 0, "No progress on the terminal", 1 },
	{ 0 },
};

struct args {
	struct ms_exam exam;
	bool json, quiet, verbose;
	double min_right, min_advice, min_tune;
	struct ho_err *err;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	uint64_t n = 0;
	int rc = 0;

	switch (key) {
	case OPT_CASES:
		rc = ho_parse_count(arg, &n, a->err);
		if (rc == 0 && (n < 1 || n > 100000))
			rc = ho_err_set(a->err, -ERANGE, "--cases %s: 1 to 100000 are possible",
					arg);
		a->exam.cases = (unsigned)n;
		break;
	case OPT_SEED:
		rc = ho_parse_count(arg, &a->exam.seed, a->err);
		break;
	case OPT_FIRST:
		rc = ho_parse_count(arg, &n, a->err);
		a->exam.first = (unsigned)n;
		break;
	case OPT_JOBS:
		rc = ho_parse_count(arg, &n, a->err);
		if (rc == 0 && (n < 1 || n > MS_POOL_JOBS_MAX))
			rc = ho_err_set(a->err, -ERANGE, "--jobs %s: from 1 to %u are possible",
					arg, MS_POOL_JOBS_MAX);
		a->exam.jobs = (unsigned)n;
		break;
	case OPT_MIN_RIGHT:
		rc = ho_parse_fraction(arg, &a->min_right, a->err);
		break;
	case OPT_MIN_ADVICE:
		rc = ho_parse_fraction(arg, &a->min_advice, a->err);
		break;
	case OPT_MIN_TUNE:
		rc = ho_parse_fraction(arg, &a->min_tune, a->err);
		break;
	case OPT_JSON:
		a->json = true;
		break;
	case OPT_VERBOSE:
		a->verbose = true;
		break;
	case OPT_QUIET:
		a->quiet = true;
		break;
	case ARGP_KEY_ARG:
		rc = ho_err_set(a->err, -EINVAL, "'%s': exam takes options only", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

static void progress(void *ctx, unsigned done, unsigned cases)
{
	fprintf(stderr, "\r\033[K%u of %u cases%s", done, cases, done == cases ? "\r\033[K" : "");
}

static const char *main_name(int lever)
{
	return lever < 0 ? "nothing" : ms_lever_names[lever];
}

static json_t *set_json(const struct ms_exam_set *s)
{
	static const char *const places[] = { "zero", "apps", "away" };

	return json_pack("{s:i, s:i, s:s, s:s}", "ring", (int)s->ring, "rx_usecs", (int)s->usecs,
			 "rx_mode", lab_rx_mode_name(s->mode), "irq_cpus", places[s->place]);
}

static json_t *wrong_json(const struct ms_exam *e)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < e->cases; i++) {
		const struct ms_exam_outcome *o = &e->outcome[i];

		if (o->right && o->advised >= 0.9 * o->best)
			continue;
		json_array_append_new(
			list,
			json_pack(
				"{s:i, s:s, s:s, s:b, s:s, s:f, s:f, s:f, s:f, s:i, s:o, s:o, s:o}",
				"case", (int)o->c.number, "load", ms_exam_load_names[o->c.load],
				"cause", ms_causes[o->cause].name, "right", o->right, "most",
				main_name(o->main), "per_s", o->objective, "best_per_s", o->best,
				"advised_per_s", o->advised, "tuned_per_s", o->tuned, "tune_runs",
				(int)o->tune_runs, "now", set_json(&o->c.set), "best",
				set_json(&o->best_set), "advice", set_json(&o->advice_set)));
	}
	return list;
}

static int print_json(const struct ms_exam *e)
{
	json_t *o = ho_json_begin("lab exam"), *table = json_object();

	json_object_set_new(o, "seed", json_integer((json_int_t)e->seed));
	json_object_set_new(o, "first", json_integer(e->first));
	json_object_set_new(o, "cases", json_integer(e->cases));
	json_object_set_new(o, "explain_right", json_real(e->explain_right));
	json_object_set_new(o, "advice_reaches_90", json_real(e->advice_reaches_90));
	json_object_set_new(o, "tune_median_ratio", json_real(e->tune_median_ratio));
	json_object_set_new(o, "tune_median_runs", json_real(e->tune_median_runs));
	json_object_set_new(o, "tune_reaches_98", json_real(e->tune_reaches_98));
	for (unsigned l = 0; l <= MS_LEVERS; l++) {
		json_t *row = json_object();

		for (unsigned c = 0; ms_causes[c].name; c++)
			if (e->confusion[l][c])
				json_object_set_new(row, ms_causes[c].name,
						    json_integer(e->confusion[l][c]));
		json_object_set_new(table, main_name((int)l - 1), row);
	}
	json_object_set_new(o, "confusion", table);
	json_object_set_new(o, "wrong", wrong_json(e));
	return ho_json_print(stdout, o);
}

static void print_confusion(const struct ms_exam *e)
{
	printf("\n%-10s", "helps most");
	for (unsigned c = 0; ms_causes[c].name; c++) {
		unsigned n = 0;

		for (unsigned l = 0; l <= MS_LEVERS; l++)
			n += e->confusion[l][c];
		if (n)
			printf(" %12s", ms_causes[c].name);
	}
	printf("\n");
	for (unsigned l = 0; l <= MS_LEVERS; l++) {
		unsigned row = 0;

		for (unsigned c = 0; ms_causes[c].name; c++)
			row += e->confusion[l][c];
		if (!row)
			continue;
		printf("%-10s", main_name((int)l - 1));
		for (unsigned c = 0; ms_causes[c].name; c++) {
			unsigned n = 0;

			for (unsigned k = 0; k <= MS_LEVERS; k++)
				n += e->confusion[k][c];
			if (n && e->confusion[l][c])
				printf(" %12u", e->confusion[l][c]);
			else if (n)
				printf(" %12s", ".");
		}
		printf("\n");
	}
}

static void print_set(const char *what, const struct ms_exam_set *s)
{
	static const char *const places[] = { "on CPU 0", "with the programs", "away" };

	printf("    %s: ring %u, rx-usecs %u, %s, interrupts %s\n", what, s->ring, s->usecs,
	       lab_rx_mode_name(s->mode), places[s->place]);
}

static void print_wrong(const struct ms_exam *e)
{
	for (unsigned i = 0; i < e->cases; i++) {
		const struct ms_exam_outcome *o = &e->outcome[i];

		if (o->right && o->advised >= 0.9 * o->best)
			continue;
		printf("\ncase %u, %s: named %s (%s), most helps %s (+%.0f %%)\n", o->c.number,
		       ms_exam_load_names[o->c.load], ms_causes[o->cause].name,
		       o->right ? "right" : "wrong", main_name(o->main), o->main_gain * 100);
		printf("    %.0f/s; best %.0f/s; advised %.0f %% of it, tuned %.0f %% in %u runs\n",
		       o->objective, o->best, o->advised / o->best * 100, o->tuned / o->best * 100,
		       o->tune_runs);
		print_set("now", &o->c.set);
		print_set("best", &o->best_set);
		print_set("advice", &o->advice_set);
	}
}

static void print_table(const struct ms_exam *e, bool verbose)
{
	printf("%u cases of seed %llu\n", e->cases, (unsigned long long)e->seed);
	printf("explain names a true limiter in          %5.1f %%\n", e->explain_right * 100);
	printf("its first advice reaches 90 %% of best in %5.1f %%\n", e->advice_reaches_90 * 100);
	printf("tune reaches, median                     %5.1f %% of best in %.0f runs\n",
	       e->tune_median_ratio * 100, e->tune_median_runs);
	printf("tune reaches 98 %% of best in             %5.1f %%\n\n", e->tune_reaches_98 * 100);
	printf("%-8s %8s %10s %10s\n", "load", "cases", "right %", "advice %");
	for (unsigned l = 0; l < MS_LOADS; l++) {
		unsigned n = e->by_load[l];

		if (n)
			printf("%-8s %8u %10.1f %10.1f\n", ms_exam_load_names[l], n,
			       100.0 * e->right_by_load[l] / n, 100.0 * e->reaches_by_load[l] / n);
	}
	print_confusion(e);
	if (verbose)
		print_wrong(e);
}

int cmd_lab_exam(int argc, char **argv, struct ho_err *err)
{
	struct args a = { .exam = { .cases = 30, .seed = 1 }, .err = err };
	const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Examines explain and tune on random machines under random loads, where "
		       "the truth is had by turning every knob. Rows of the table: what would "
		       "have helped most; columns: the cause that was named.",
	};
	int status = cmd_parse_sub("lab", &argp, argc, argv, &a, err), rc;

	if (status != CMD_DONE)
		return status;
	if (!a.quiet && isatty(STDERR_FILENO))
		a.exam.progress = progress;
	rc = ms_exam(&a.exam, err);
	if (rc == 0 && a.json)
		rc = print_json(&a.exam);
	else if (rc == 0)
		print_table(&a.exam, a.verbose);
	status = rc == -EINTR ? CMD_FAILED : cmd_status_of(rc);
	if (rc == 0 &&
	    (a.exam.explain_right < a.min_right || a.exam.advice_reaches_90 < a.min_advice ||
	     a.exam.tune_median_ratio < a.min_tune))
		status = CMD_THRESHOLD;
	ms_exam_fini(&a.exam);
	return status;
}
