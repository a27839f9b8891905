// SPDX-License-Identifier: BSD-2-Clause
/* holdoff tune IFACE: the best settings of a live interface, and everything put back. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/screen.h"
#include "base/stop_signals.h"
#include "cmd/session.h"
#include "cmd/tune.h"
#include "measure/explain.h"
#include "measure/report_html.h"
#include "measure/tune_live.h"

#define COMMANDS (2 * MS_KNOBS_MAX)

struct run {
	const struct cmd_tune_args *args;
	struct ms_tune_live tune;
	char unit[64];
	bool applied;
	unsigned commands;
	char command[COMMANDS][128];
};

static void progress(void *ctx, const struct ms_tune_live *t, unsigned cell, double score)
{
	char name[256];

	(void)ctx;
	ms_tune_live_name(t, cell, name, sizeof(name));
	fprintf(stderr, "run %2u: %s: %.5g\n", t->runs, *name ? name : "as it is", score);
}

static void make_unit(struct run *r, bool reads)
{
	const struct cmd_tune_args *a = r->args;
	const char *what = !reads            ? "frames/s"
			   : r->tune.latency ? "1 by the load's number"
					     : "the load's number";

	snprintf(r->unit, sizeof(r->unit), "%s%s", what,
		 a->what == MS_FOR_CPU        ? " a busy CPU"
		 : a->what == MS_FOR_BALANCED ? " a square root of busy CPUs"
					      : "");
}

/* The shell commands that make the best of what was. */
static void make_commands(struct run *r)
{
	const struct ms_tune_live *t = &r->tune;

	for (unsigned k = 0; k < t->knobs; k++) {
		const struct ms_knob *knob = &t->knob[k];
		unsigned at = t->cell[t->best].at[k];

		if (at == knob->now)
			continue;
		if (knob->with[0] && knob->with_value[at] != knob->with_value[knob->now])
			lx_param_command(r->args->target, lx_param_of(knob->with),
					 knob->with_value[at], r->command[r->commands++], 128);
		lx_param_command(r->args->target, lx_param_of(knob->name), knob->value[at],
				 r->command[r->commands++], 128);
	}
}

static void with_ci(char text[64], const struct ms_mean *m)
{
	double ci = ms_mean_ci95(m);

	if (isfinite(ci))
		snprintf(text, 64, "%.5g +- %.2g (%u runs)", m->mean, ci, m->n);
	else
		snprintf(text, 64, "%.5g (one run)", m->mean);
}

/* The result in a sentence. */
static void verdict(const struct run *r, char *buf, size_t bytes)
{
	const struct ms_tune_live *t = &r->tune;
	double gain = (t->after.mean / t->before.mean - 1) * 100;

	if (!t->best)
		snprintf(buf, bytes, "No setting that was tried is better than the present one.");
	else if (t->significant)
		snprintf(buf, bytes, "%+.1f %%, significant at 95 %%%s.", gain,
			 r->applied ? "; the settings are left so" : "; everything is put back");
	else
		snprintf(buf, bytes,
			 "%+.1f %%, but not significant at 95 %%: more runs may tell (--runs), or "
			 "the "
			 "difference is chance; everything is put back.",
			 gain);
}

static void print(const struct run *r)
{
	const struct ms_tune_live *t = &r->tune;
	char before[64], after[64], sentence[256];

	printf("%s, tuned for %s with %u runs of %u settings\n\n", r->args->target,
	       ms_tune_for_names[t->what], t->runs, t->cells);
	with_ci(before, &t->before);
	printf("before  %s %s\n", before, r->unit);
	ho_print_words(stdout, t->cell[0].why, 8);
	if (t->best) {
		with_ci(after, &t->after);
		printf("after   %s\n", after);
		ho_print_words(stdout, t->cell[t->best].why, 8);
	}
	verdict(r, sentence, sizeof(sentence));
	printf("\n%s\n", sentence);
	for (unsigned i = 0; i < r->commands; i++)
		printf("    %s\n", r->command[i]);
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *set_json(const struct ms_tune_live *t, unsigned cell)
{
	json_t *set = json_object();

	for (unsigned k = 0; k < t->knobs; k++) {
		unsigned at = t->cell[cell].at[k];

		if (at != t->knob[k].now)
			json_object_set_new(set, t->knob[k].name,
					    json_integer((json_int_t)t->knob[k].value[at]));
	}
	return set;
}

static json_t *limit_json(const struct ms_live_cell *cell)
{
	return json_pack("{s:s, s:s}", "cause", ms_causes[cell->cause].name, "text", cell->why);
}

static json_t *to_json(const struct run *r)
{
	const struct ms_tune_live *t = &r->tune;
	json_t *o = ho_json_begin("tune"), *settings = json_array(), *commands = json_array();
	char sentence[256], title[128];

	verdict(r, sentence, sizeof(sentence));
	snprintf(title, sizeof(title), "For %s: %u runs of %u settings", ms_tune_for_names[t->what],
		 t->runs, t->cells);
	json_object_set_new(o, "target", json_string(r->args->target));
	json_object_set_new(o, "title", json_string(title));
	json_object_set_new(o, "interface", json_string(r->args->target));
	json_object_set_new(o, "for", json_string(ms_tune_for_names[t->what]));
	json_object_set_new(o, "unit", json_string(r->unit));
	json_object_set_new(o, "runs", json_integer(t->runs));
	json_object_set_new(o, "before", number(t->before.mean));
	json_object_set_new(o, "before_ci95", number(ms_mean_ci95(&t->before)));
	json_object_set_new(o, "after", number(t->after.mean));
	json_object_set_new(o, "after_ci95", number(ms_mean_ci95(&t->after)));
	json_object_set_new(o, "before_limit", limit_json(&t->cell[0]));
	json_object_set_new(o, "after_limit", limit_json(&t->cell[t->best]));
	json_object_set_new(o, "significant", json_boolean(t->significant));
	json_object_set_new(o, "applied", json_boolean(r->applied));
	json_object_set_new(o, "verdict", json_string(sentence));
	json_object_set_new(o, "set", set_json(t, t->best));
	for (unsigned i = 0; i < r->commands; i++)
		json_array_append_new(commands, json_string(r->command[i]));
	json_object_set_new(o, "commands", commands);
	for (unsigned i = 0; i < t->cells; i++) {
		const struct ms_mean *m = &t->cell[i].score;

		if (m->n)
			json_array_append_new(settings,
					      json_pack("{s:o, s:i, s:f, s:o, s:b, s:o}", "set",
							set_json(t, i), "runs", (int)m->n, "score",
							m->mean, "ci95", number(ms_mean_ci95(m)),
							"best", i == t->best, "limit",
							limit_json(&t->cell[i])));
	}
	json_object_set_new(o, "settings", settings);
	return o;
}

static int publish(const struct run *r, struct ho_err *err)
{
	json_t *o = to_json(r);
	int rc = o ? 0 : ho_err_set(err, -ENOMEM, "out of memory for a result");

	if (rc == 0 && r->args->html)
		rc = ms_report_html(r->args->html, o, r->args->target, err);
	if (rc == 0 && r->args->json)
		return ho_json_print(stdout, o);
	json_decref(o);
	if (rc == 0 && !(r->args->html && !strcmp(r->args->html, "-")))
		print(r);
	return rc;
}

static int knobs(struct run *r, struct ho_err *err)
{
	int rc = r->args->knobs ? 0 : ms_tune_live_knobs(&r->tune, err);

	for (unsigned i = 0; rc == 0 && i < r->args->knobs; i++) {
		const char *equals = strchr(r->args->knob[i], '=');
		char name[LX_COUNTER_BYTES];

		snprintf(name, sizeof(name), "%.*s", (int)(equals - r->args->knob[i]),
			 r->args->knob[i]);
		rc = ms_tune_live_knob(&r->tune, name, equals + 1, err);
	}
	return rc;
}

/* Searches, and leaves the best set if that was asked for and is sure. */
static int search(struct run *r, struct ho_err *err)
{
	struct ms_tune_live *t = &r->tune;
	int rc = knobs(r, err);

	if (rc == 0)
		rc = ms_tune_live(t, err);
	if (rc < 0)
		return rc;
	make_commands(r);
	if (!r->args->apply || !t->best || !t->significant)
		return 0;
	rc = ms_tune_live_set(t, t->best, err);
	if (rc == 0)
		rc = ms_live_keep(t->live, err);
	r->applied = rc == 0;
	return rc;
}

int cmd_tune_live(struct cmd_tune_args *a)
{
	struct run *r = calloc(1, sizeof(*r));
	struct ho_err closing = { 0 };
	struct lx_restored left;
	struct ho_stop_signals stop = { .fd = -1 };
	bool reads;
	int rc, closed;

	if (!r) {
		ho_err_set(a->err, -ENOMEM, "out of memory for tuning");
		return CMD_FAILED;
	}
	r->args = a;
	r->tune.what = a->what;
	r->tune.most = a->most;
	rc = cmd_workload_finish(&a->workload, a->metric, &reads);
	r->tune.latency = a->less;
	if (rc == 0 && a->what == MS_FOR_LATENCY && !reads)
		rc = ho_err_set(a->err, -EINVAL,
				"--for latency needs a load that measures it: --rr, or --run with "
				"--metric and --less");
	/* A signal ends the run between two measurements, with everything put back. */
	if (rc == 0)
		rc = ho_stop_signals_open(&stop, a->err);
	a->workload.live.stop_fd = stop.fd;
	a->workload.live.ifname = a->target;
	make_unit(r, reads);
	if (rc == 0)
		rc = ms_live_open(&a->workload.live, &r->tune.live, &left, a->err);
	if (rc == 0) {
		if (left.changed)
			ho_note("%s: a run before this one was killed; put back: %s", a->target,
				left.text);
		if (!a->quiet && isatty(STDERR_FILENO))
			r->tune.progress = progress;
		rc = search(r, a->err);
		closed = ms_live_close(r->tune.live, &closing);
		if (closed < 0)
			rc = ho_err_set(a->err, closed, "%s", closing.text);
	}
	if (rc == 0)
		rc = publish(r, a->err);
	ho_stop_signals_close(&stop);
	free(r);
	/* Unlike traffic that is ended, an interrupted search is no result. */
	return rc == -EINTR ? CMD_FAILED : cmd_status_of(rc);
}
