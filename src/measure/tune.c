// SPDX-License-Identifier: BSD-2-Clause
#include "measure/tune.h"

#include <string.h>

/* So many runs are kept for the comparison at the end. */
#define AT_THE_END 2
/* A rival within this of the incumbent is as good: turning a knob must be worth it. */
#define AS_GOOD 0.005
/* The law is not asked about what it expects to be worse than this of its best. */
#define HOPELESS 0.6

const char *const ms_tune_for_names[MS_FORS] = { "pps", "latency", "cpu", "balanced" };

double ms_tune_score(enum ms_tune_for what, const struct ms_tune_run *run)
{
	double latency = run->latency_ns > 0 ? 1e9 / run->latency_ns : run->rate;
	double busy = fmax(run->busy, 0.01);

	switch (what) {
	case MS_FOR_LATENCY:
		return latency;
	case MS_FOR_CPU:
		return run->rate / busy;
	case MS_FOR_BALANCED:
		return run->rate / sqrt(busy);
	default:
		return run->rate;
	}
}

/* Of a single run, relative, from all settings that were run more than once. */
static double noise(const struct ms_tune *t)
{
	struct ms_noise all = { 0 };

	for (unsigned i = 0; i < t->cells; i++)
		ms_noise_add(&all, &t->cell[i].score);
	return ms_noise_of(&all);
}

static bool same(const struct ms_choice *a, const struct ms_choice *b)
{
	return a->ring == b->ring && a->usecs == b->usecs && a->mode == b->mode &&
	       a->place == b->place;
}

static struct ms_tune_cell *find(struct ms_tune *t, const struct ms_choice *c)
{
	for (unsigned i = 0; i < t->cells; i++)
		if (same(&t->cell[i].choice, c))
			return &t->cell[i];
	return NULL;
}

static int run(struct ms_tune *t, const struct ms_tune_target *target,
	       const struct ms_choice *choice, struct ms_tune_run *out, struct ho_err *err)
{
	struct ms_tune_cell *cell = find(t, choice);
	double score;
	int rc;

	if (!cell) {
		cell = &t->cell[t->cells++];
		*cell = (struct ms_tune_cell){ .choice = *choice };
	}
	rc = target->run(target->ctx, choice, cell->score.n, out, err);
	if (rc < 0)
		return rc;
	score = ms_tune_score(t->what, out);
	ms_mean_add(&cell->score, score);
	t->runs++;
	if (target->progress)
		target->progress(target->ctx, t->runs, choice, score);
	if (cell->score.mean > t->cell[t->best].score.mean * (1 + AS_GOOD + noise(t)))
		t->best = (unsigned)(cell - t->cell);
	return 0;
}

/* Knobs that differ. Polling has no moderation and needs a CPU for itself: it is one knob. */
static unsigned distance(const struct ms_choice *a, const struct ms_choice *b)
{
	if (a->mode != b->mode && (a->mode == MS_MODE_POLL || b->mode == MS_MODE_POLL))
		return 1 + (a->ring != b->ring);
	return (a->ring != b->ring) + (a->usecs != b->usecs) + (a->mode != b->mode) +
	       (a->place != b->place);
}

/* The most promising neighbour of the best that was not run yet: by the law, which is trusted in
 * the order that it gives. NULL: there is none. */
static const struct ms_choice *next(struct ms_tune *t, const struct ms_choices *choices)
{
	const struct ms_view *v = &t->verdict.view;
	const struct ms_choice *best = NULL, *at = &t->cell[t->best].choice;
	double most = -1, highest = 0;

	for (unsigned i = 0; i < choices->n; i++)
		highest = fmax(highest, ms_law(v, &choices->choice[i]));
	for (unsigned i = 0; i < choices->n; i++) {
		const struct ms_choice *c = &choices->choice[i];
		double expects = ms_law(v, c);

		if (find(t, c) || distance(c, at) != 1)
			continue;
		/* Equals by the law: rather another mode or place than a further ring. */
		if (c->mode != at->mode)
			expects *= 1.02;
		if (c->place != at->place)
			expects *= 1.015;
		if (c->usecs != at->usecs)
			expects *= 1.01;
		if (expects > most && (expects >= highest * HOPELESS || t->what != MS_FOR_PPS)) {
			most = expects;
			best = c;
		}
	}
	return best;
}

static void compare(struct ms_tune *t)
{
	const struct ms_mean *a = &t->cell[t->now].score, *b = &t->cell[t->best].score;

	t->before = a->mean;
	t->after = b->mean;
	t->before_ci = ms_mean_ci95(a);
	t->after_ci = ms_mean_ci95(b);
	t->t = ms_welch(a, b, &t->significant);
	t->significant = t->significant && t->best != t->now && t->t > 0;
}

int ms_tune(struct ms_tune *t, const struct ms_tune_target *target, struct ho_err *err)
{
	static const unsigned misses_end = 6;
	const enum ms_tune_for what = t->what;
	const unsigned most = t->most ? t->most : MS_TUNE_RUNS;
	struct ms_choices all;
	const struct ms_choices *choices = target->choices;
	struct ms_tune_run r;
	unsigned misses = 0;
	int rc;

	memset(t, 0, sizeof(*t));
	t->what = what;
	t->most = HO_MIN(most, (unsigned)MS_TUNE_CELLS);
	rc = run(t, target, &target->now, &r, err);
	if (rc < 0)
		return rc;
	ms_explain(&r.evidence, choices, &t->verdict);
	if (!choices) {
		ms_choices_list(&t->verdict.view, &all);
		choices = &all;
	}
	if (t->verdict.advises && !find(t, &t->verdict.advice))
		rc = run(t, target, &t->verdict.advice, &r, err);
	while (rc == 0 && t->runs + AT_THE_END < t->most && misses < misses_end) {
		const struct ms_choice *c = next(t, choices);
		unsigned best = t->best;

		if (!c)
			break;
		rc = run(t, target, c, &r, err);
		misses = t->best == best ? misses + 1 : 0;
	}
	while (rc == 0 && t->best != t->now) {
		struct ms_choice best = t->cell[t->best].choice;

		compare(t);
		if (t->significant || t->runs + 1 >= t->most)
			break;
		rc = run(t, target, &t->cell[t->now].choice, &r, err);
		if (rc == 0)
			rc = run(t, target, &best, &r, err);
	}
	compare(t);
	return rc;
}
