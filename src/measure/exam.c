// SPDX-License-Identifier: BSD-2-Clause
/* The examination: explain and tune get the evidence of each case, and are held against its truth.
 */
#include "measure/exam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "measure/pool.h"
#include "measure/tune.h"

/* Whoever names a cause says that one of these levers would help. */
static const struct {
	const char *cause;
	enum ms_lever lever[4];
	unsigned n;
} claims[] = {
	{ "wire", { MS_LEVER_WIRE }, 1 },
	{ "pci", { MS_LEVER_PCI }, 1 },
	{ "hot-queue", { MS_LEVER_FLOWS }, 1 },
	{ "hot-cpu", { MS_LEVER_PLACE, MS_LEVER_MODE, MS_LEVER_POLL }, 3 },
	{ "irq-affinity", { MS_LEVER_PLACE }, 1 },
	{ "socket", { MS_LEVER_SOCKET, MS_LEVER_CPU, MS_LEVER_PLACE }, 3 },
	{ "rx-ring", { MS_LEVER_RING, MS_LEVER_SOONER }, 2 },
	{ "tx-ring", { MS_LEVER_RING }, 1 },
	{ "moderation", { MS_LEVER_SOONER }, 1 },
	{ "interrupts", { MS_LEVER_POLL }, 1 },
	{ "irq-rate", { MS_LEVER_LATER, MS_LEVER_IRQ }, 2 },
	{ "cpu", { MS_LEVER_CPU }, 1 },
	{ "path", { MS_LEVER_CPU }, 1 },
	{ "budget", { MS_LEVER_BUDGET }, 1 },
	{ "switches", { MS_LEVER_SWITCH }, 1 },
};

static bool claim_holds(const char *cause, unsigned truths, unsigned pairs)
{
	const unsigned offered = 1u << MS_LEVER_OFFERED;

	/* Nothing here: no lever of this box helps. */
	if (!strcmp(cause, "offered") || !strcmp(cause, "asked") || !strcmp(cause, "idle"))
		return !(truths & ~offered) && (!pairs || pairs & offered);
	truths |= pairs;
	for (unsigned i = 0; i < HO_ARRAY_LEN(claims); i++) {
		if (strcmp(claims[i].cause, cause))
			continue;
		for (unsigned k = 0; k < claims[i].n; k++)
			if (truths & 1u << claims[i].lever[k])
				return true;
	}
	return false;
}

static enum ms_ev_mode mode_of(enum lab_rx_mode mode)
{
	return mode == LAB_RX_DIRECT ? MS_MODE_DIRECT
	       : mode == LAB_RX_POLL ? MS_MODE_POLL
				     : MS_MODE_NAPI;
}

static struct ms_choice choice_of(const struct ms_exam_set *s)
{
	return (struct ms_choice){ s->ring, s->usecs, mode_of(s->mode), s->place };
}

static int cell_of(const struct ms_exam_case *c, const struct ms_choice *choice)
{
	for (unsigned i = 0; i < c->cells; i++) {
		struct ms_choice of = choice_of(&c->cell[i]);

		if (of.ring == choice->ring && of.usecs == choice->usecs &&
		    of.mode == choice->mode && of.place == choice->place)
			return (int)i;
	}
	return -1;
}

/* --- tune ----------------------------------------------------------------------------------- */

struct bench {
	struct ms_exam_ground *ground;
	const struct ms_exam_case *c;
	const struct ms_exam_truth *truth;
	struct ms_choice now;
};

/* The first run of a cell is the truth's own; others have another seed. */
static int bench_run(void *ctx, const struct ms_choice *choice, unsigned repeat,
		     struct ms_tune_run *out, struct ho_err *err)
{
	struct bench *b = ctx;
	struct ms_exam_case again = *b->c;
	int cell = cell_of(b->c, choice);

	memset(out, 0, sizeof(*out));
	if (!memcmp(choice, &b->now, sizeof(*choice))) {
		out->rate = b->truth->objective;
		out->evidence = b->truth->evidence;
		cell = -1;
	} else if (cell < 0) {
		return ho_err_set(err, -EINVAL, "a setting that the case does not have");
	} else {
		out->rate = b->truth->cell[cell];
	}
	if (!repeat)
		return 0;
	again.seed += repeat;
	return ms_exam_run(b->ground, &again, cell < 0 ? &again.set : &again.cell[cell], &out->rate,
			   NULL, err);
}

static int examine_tune(struct ms_exam_ground *g, const struct ms_exam_case *c,
			const struct ms_exam_truth *truth, const struct ms_choices *choices,
			struct ms_exam_outcome *out, struct ho_err *err)
{
	struct bench bench = { .ground = g, .c = c, .truth = truth, .now = choice_of(&c->set) };
	struct ms_tune_target target = {
		.ctx = &bench, .run = bench_run, .choices = choices, .now = bench.now
	};
	struct ms_tune *tune = calloc(1, sizeof(*tune));
	int rc, cell;

	if (!tune)
		return ho_err_set(err, -ENOMEM, "out of memory for tuning");
	rc = ms_tune(tune, &target, err);
	if (rc == 0) {
		cell = tune->best == tune->now ? -1 : cell_of(c, &tune->cell[tune->best].choice);
		out->tuned = cell < 0 ? truth->objective : truth->cell[cell];
		out->tune_runs = tune->runs;
	}
	free(tune);
	return rc;
}

/* --- a case --------------------------------------------------------------------------------- */

static void examine_explain(const struct ms_exam_case *c, const struct ms_exam_truth *truth,
			    const struct ms_choices *choices, struct ms_exam_outcome *out)
{
	struct ms_verdict *v = calloc(1, sizeof(*v));
	int cell;

	if (!v)
		return;
	ms_explain(&truth->evidence, choices, v);
	out->cause = (unsigned)(v->cause - ms_causes);
	out->right = claim_holds(v->cause->name, out->truths, out->pairs);
	cell = v->advises ? cell_of(c, &v->advice) : -1;
	out->advised = cell < 0 ? truth->objective : truth->cell[cell];
	out->advice_set = cell < 0 ? c->set : c->cell[cell];
	free(v);
}

static void weigh(const struct ms_exam_truth *truth, struct ms_exam_outcome *out)
{
	out->main = -1;
	out->pairs = truth->pairs;
	for (unsigned l = 0; l < MS_LEVERS; l++) {
		double gain = truth->lever[l] / fmax(truth->objective, 1) - 1;

		if (gain < MS_EXAM_GAIN)
			continue;
		out->truths |= 1u << l;
		if (l == MS_LEVER_OFFERED || gain <= out->main_gain)
			continue;
		out->main = (int)l;
		out->main_gain = gain;
	}
}

int ms_exam_one(struct ms_exam_ground *g, uint64_t seed, unsigned number,
		struct ms_exam_outcome *out, struct ho_err *err)
{
	struct ms_exam_case *c = calloc(1, sizeof(*c));
	struct ms_exam_truth *truth = calloc(1, sizeof(*truth));
	struct ms_choices *choices = calloc(1, sizeof(*choices));
	int rc = c && truth && choices ? 0 : ho_err_set(err, -ENOMEM, "out of memory for a case");

	memset(out, 0, sizeof(*out));
	if (rc == 0) {
		ms_exam_case(seed, number, c);
		for (; choices->n < c->cells; choices->n++)
			choices->choice[choices->n] = choice_of(&c->cell[choices->n]);
		out->c = *c;
		rc = ms_exam_ground(g, c, err);
	}
	if (rc == 0)
		rc = ms_exam_truth(g, c, truth, err);
	if (rc == 0) {
		out->objective = truth->objective;
		out->best = fmax(truth->cell[truth->best], truth->objective);
		out->best_set = c->cell[truth->best];
		weigh(truth, out);
		examine_explain(c, truth, choices, out);
		rc = examine_tune(g, c, truth, choices, out, err);
	}
	free(choices);
	free(truth);
	free(c);
	return rc;
}

/* --- all ------------------------------------------------------------------------------------ */

static int work(void *ctx, unsigned i, void *result, struct ho_err *err)
{
	struct ms_exam *e = ctx;

	return ms_exam_one(&e->ground, e->seed, e->first + i, result, err);
}

static int result(void *ctx, unsigned i, const void *data, struct ho_err *err)
{
	struct ms_exam *e = ctx;

	e->outcome[i] = *(const struct ms_exam_outcome *)data;
	return 0;
}

static void progress(void *ctx, unsigned done, unsigned items)
{
	struct ms_exam *e = ctx;

	if (e->progress)
		e->progress(e->ctx, done, items);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *value, unsigned n)
{
	qsort(value, n, sizeof(*value), by_value);
	return n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

static int sum_up(struct ms_exam *e, struct ho_err *err)
{
	double *ratio = calloc(2 * (size_t)e->cases, sizeof(*ratio)), *runs = ratio + e->cases;

	if (!ratio)
		return ho_err_set(err, -ENOMEM, "out of memory for %u cases", e->cases);
	for (unsigned i = 0; i < e->cases; i++) {
		const struct ms_exam_outcome *o = &e->outcome[i];
		bool reaches = o->advised >= 0.9 * o->best;

		ratio[i] = o->tuned / o->best;
		runs[i] = o->tune_runs;
		e->explain_right += o->right;
		e->advice_reaches_90 += reaches;
		e->tune_reaches_98 += ratio[i] >= 0.98;
		e->confusion[o->main + 1][o->cause]++;
		e->by_load[o->c.load]++;
		e->right_by_load[o->c.load] += o->right;
		e->reaches_by_load[o->c.load] += reaches;
	}
	e->explain_right /= e->cases;
	e->advice_reaches_90 /= e->cases;
	e->tune_reaches_98 /= e->cases;
	e->tune_median_ratio = median(ratio, e->cases);
	e->tune_median_runs = median(runs, e->cases);
	free(ratio);
	return 0;
}

int ms_exam(struct ms_exam *e, struct ho_err *err)
{
	struct ms_pool pool = {
		.items = e->cases,
		.jobs = e->jobs ? e->jobs : ms_pool_cpus(),
		.result_bytes = sizeof(struct ms_exam_outcome),
		.ctx = e,
		.work = work,
		.result = result,
		.progress = progress,
	};
	int rc;

	e->outcome = calloc(e->cases, sizeof(*e->outcome));
	if (!e->outcome)
		return ho_err_set(err, -ENOMEM, "out of memory for %u cases", e->cases);
	rc = ms_pool_run(&pool, err);
	return rc < 0 ? rc : sum_up(e, err);
}

void ms_exam_fini(struct ms_exam *e)
{
	ms_exam_ground_fini(&e->ground);
	free(e->outcome);
	e->outcome = NULL;
}
