// SPDX-License-Identifier: BSD-2-Clause
#include "measure/tune_live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/units.h"

#define RUNS_MOST     40
#define RUNS_BASELINE 3
/* Kept for telling the best from the present one at the end: this part, and at most so many. */
#define RUNS_END_PART 3
#define RUNS_END_MOST 12
/* A difference that is not worth a change, however sure. */
#define WORTH 0.005

/* --- knobs --------------------------------------------------------------------------------- */

static void add_value(struct ms_knob *k, uint64_t value)
{
	unsigned at = 0;

	while (at < k->n && k->value[at] < value)
		at++;
	if ((at < k->n && k->value[at] == value) || k->n == MS_KNOB_VALUES_MAX)
		return;
	memmove(&k->value[at + 1], &k->value[at], (k->n - at) * sizeof(k->value[0]));
	memmove(&k->with_value[at + 1], &k->with_value[at], (k->n - at) * sizeof(k->with_value[0]));
	k->value[at] = value;
	k->with_value[at] = 0;
	k->n++;
}

static void find_now(struct ms_knob *k, uint64_t value)
{
	for (k->now = 0; k->now + 1 < k->n && k->value[k->now] != value;)
		k->now++;
}

static struct ms_knob *new_knob(struct ms_tune_live *t, const struct lx_setting *s)
{
	struct ms_knob *k;

	if (t->knobs == MS_KNOBS_MAX)
		return NULL;
	k = &t->knob[t->knobs++];
	memset(k, 0, sizeof(*k));
	snprintf(k->name, sizeof(k->name), "%s", s->name);
	add_value(k, s->value);
	return k;
}

static void ring(struct ms_tune_live *t, const struct lx_setting *s)
{
	struct ms_knob *k;

	if (!s || s->fixed || s->max == UINT64_MAX || s->max < 64)
		return;
	k = new_knob(t, s);
	for (uint64_t v = 64; k && v <= s->max && v <= 8192; v *= 2)
		if (v >= s->min)
			add_value(k, v);
	if (k) {
		add_value(k, s->max);
		find_now(k, s->value);
	}
}

static void listed(struct ms_tune_live *t, const struct lx_setting *s, const uint64_t *value,
		   unsigned n)
{
	struct ms_knob *k;

	if (!s || s->fixed)
		return;
	k = new_knob(t, s);
	for (unsigned i = 0; k && i < n; i++)
		if (value[i] >= s->min && value[i] <= s->max)
			add_value(k, value[i]);
	if (k)
		find_now(k, s->value);
}

int ms_tune_live_knobs(struct ms_tune_live *t, struct ho_err *err)
{
	static const uint64_t usecs[] = { 0, 3, 10, 20, 50, 100 }, flag[] = { 0, 1 };
	static const uint64_t timeout[] = { 0, 20000, 50000, 200000 };
	struct lx_setting now[LX_PARAMS_MAX];
	int n = ms_live_settings(t->live, now, LX_PARAMS_MAX, err);
	const struct lx_setting *by[6] = { NULL };
	static const char *const names[] = { "rx",          "tx",       "rx-usecs",
					     "adaptive-rx", "tx-usecs", "gro-flush-timeout" };
	bool rings_first = t->what == MS_FOR_PPS;
	const struct lx_setting *defer = NULL;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		for (unsigned k = 0; k < HO_ARRAY_LEN(names); k++)
			if (!strcmp(now[i].name, names[k]))
				by[k] = &now[i];
		if (!strcmp(now[i].name, "defer-hard-irqs"))
			defer = &now[i];
	}
	t->knobs = 0;
	for (int round = 0; round < 2; round++) {
		if ((round == 0) == rings_first) {
			ring(t, by[1]);
			ring(t, by[0]);
		} else {
			listed(t, by[3], flag, HO_ARRAY_LEN(flag));
			listed(t, by[2], usecs, HO_ARRAY_LEN(usecs));
			listed(t, by[4], usecs, HO_ARRAY_LEN(usecs));
		}
	}
	if (!t->no_deferral && by[5] && defer && !defer->fixed) {
		listed(t, by[5], timeout, HO_ARRAY_LEN(timeout));
		if (t->knobs) {
			struct ms_knob *k = &t->knob[t->knobs - 1];

			snprintf(k->with, sizeof(k->with), "%s", defer->name);
			for (unsigned i = 0; i < k->n; i++)
				k->with_value[i] = i == k->now ? defer->value : k->value[i] ? 2 : 0;
		}
	}
	return t->knobs ? 0
			: ho_err_set(
				  err, -EOPNOTSUPP,
				  "%s: its driver lets neither rings nor moderation%s be changed%s",
				  ms_live_ifname(t->live), t->no_deferral ? "" : " nor deferral",
				  t->no_deferral ? ""
						 : "; --knob NAME=VALUES names other "
						   "settings");
}

int ms_tune_live_knob(struct ms_tune_live *t, const char *name, const char *values,
		      struct ho_err *err)
{
	struct lx_setting now[LX_PARAMS_MAX];
	const struct lx_setting *s = NULL;
	struct ms_knob *k = NULL;
	int n = ms_live_settings(t->live, now, LX_PARAMS_MAX, err);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++)
		if (!strcmp(now[i].name, name))
			s = &now[i];
	if (!s || s->fixed)
		return ho_err_set(err, -EINVAL, "--knob %s: %s cannot be changed here", name, name);
	for (unsigned i = 0; i < t->knobs; i++)
		if (!strcmp(t->knob[i].name, name))
			k = &t->knob[i];
	if (k) {
		k->n = 0;
		k->with[0] = 0;
		add_value(k, s->value);
	} else {
		k = new_knob(t, s);
		if (!k)
			return ho_err_set(err, -E2BIG, "--knob %s: %d knobs at most", name,
					  MS_KNOBS_MAX);
	}
	for (const char *at = values; *at;) {
		size_t length = strcspn(at, ",");
		char word[32];
		uint64_t value;
		int rc;

		if (!length || length >= sizeof(word))
			return ho_err_set(err, -EINVAL, "--knob %s=%s: a list of numbers is needed",
					  name, values);
		memcpy(word, at, length);
		word[length] = 0;
		at += length + (at[length] == ',');
		if (!strcmp(word, "on") || !strcmp(word, "off")) {
			value = !strcmp(word, "on");
		} else {
			rc = ho_parse_count(word, &value, err);
			if (rc < 0)
				return ho_err_prefix(err, "--knob %s", name);
		}
		if (value < s->min || value > s->max)
			return ho_err_set(
				err, -ERANGE, "--knob %s=%s: from %llu to %llu are possible", name,
				word, (unsigned long long)s->min, (unsigned long long)s->max);
		add_value(k, value);
	}
	find_now(k, s->value);
	return k->n > 1 ? 0
			: ho_err_set(err, -EINVAL,
				     "--knob %s=%s: that is what it is now; give it a choice", name,
				     values);
}

/* --- runs ---------------------------------------------------------------------------------- */

double ms_tune_live_score(const struct ms_tune_live *t, const struct ms_live_result *r)
{
	double value = r->value[MS_LIVE_VALUE], rate;
	double busy = fmax(r->value[MS_LIVE_CPU] / 100, 0.01);

	if (t->latency)
		value = value > 0 ? 1 / value : NAN;
	rate = isnan(value) ? r->value[MS_LIVE_PPS] : value;
	switch (t->what) {
	case MS_FOR_CPU:
		return rate / busy;
	case MS_FOR_BALANCED:
		return rate / sqrt(busy);
	default:
		return rate;
	}
}

static unsigned cell_of(struct ms_tune_live *t, const unsigned char *at)
{
	unsigned i;

	for (i = 0; i < t->cells; i++)
		if (!memcmp(t->cell[i].at, at, sizeof(t->cell[i].at)))
			return i;
	if (i == MS_LIVE_CELLS_MAX)
		return i - 1;
	memcpy(t->cell[i].at, at, sizeof(t->cell[i].at));
	t->cell[i].score = (struct ms_mean){ 0 };
	return t->cells++;
}

const char *ms_tune_live_name(const struct ms_tune_live *t, unsigned cell, char *buf, size_t bytes)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned k = 0; k < t->knobs && at < bytes; k++) {
		unsigned value = t->cell[cell].at[k];

		if (value != t->knob[k].now)
			at += (size_t)snprintf(buf + at, bytes - at, "%s%s %" PRIu64,
					       at ? ", " : "", t->knob[k].name,
					       t->knob[k].value[value]);
	}
	return buf;
}

int ms_tune_live_set(struct ms_tune_live *t, unsigned cell, struct ho_err *err)
{
	struct lx_setting now[LX_PARAMS_MAX];
	int n = ms_live_settings(t->live, now, LX_PARAMS_MAX, err);

	if (n < 0)
		return n;
	for (unsigned k = 0; k < t->knobs; k++) {
		const struct ms_knob *knob = &t->knob[k];
		unsigned at = t->cell[cell].at[k];
		const char *name[2] = { knob->with, knob->name };
		uint64_t value[2] = { knob->with_value[at], knob->value[at] };

		for (unsigned i = 0; i < 2; i++) {
			bool same = !*name[i];
			int rc;

			for (int s = 0; s < n && !same; s++)
				same = !strcmp(now[s].name, name[i]) && now[s].value == value[i];
			if (same)
				continue;
			rc = ms_live_set(t->live, name[i], value[i], NULL, err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static int run(struct ms_tune_live *t, unsigned cell, struct ho_err *err)
{
	struct ms_live_result r;
	double score;
	int rc = ms_tune_live_set(t, cell, err);

	if (rc == 0)
		rc = ms_live_measure(t->live, &r, err);
	if (rc < 0)
		return rc;
	score = ms_tune_live_score(t, &r);
	if (isnan(score))
		return ho_err_set(
			err, -ENODATA,
			"%s: nothing was measured that could be tuned for; give it a load "
			"(--gen, --rr, --run with --metric)",
			ms_live_ifname(t->live));
	ms_mean_add(&t->cell[cell].score, score);
	t->cell[cell].cause = r.cause;
	memcpy(t->cell[cell].why, r.why, sizeof(r.why));
	t->runs++;
	if (t->progress)
		t->progress(t->ctx, t, cell, score);
	return 0;
}

/* Of a single run, relative: pooled over what was run more than once. */
static double noise(const struct ms_tune_live *t)
{
	struct ms_noise all = { 0 };

	for (unsigned i = 0; i < t->cells; i++)
		ms_noise_add(&all, &t->cell[i].score);
	return ms_noise_of(&all);
}

static bool room(const struct ms_tune_live *t)
{
	return t->runs + HO_MIN(t->most / RUNS_END_PART, (unsigned)RUNS_END_MOST) < t->most;
}

/* Tries one value of a knob in the best's company. *better: it is the best now. */
static int try_value(struct ms_tune_live *t, unsigned knob, unsigned value, bool *better,
		     struct ho_err *err)
{
	unsigned char at[MS_KNOBS_MAX];
	unsigned cell;
	int rc = 0;

	*better = false;
	memcpy(at, t->cell[t->best].at, sizeof(at));
	at[knob] = (unsigned char)value;
	cell = cell_of(t, at);
	if (t->cell[cell].score.n)
		return 0;
	/* The second run is made only of what the first found better: one lucky run is no proof. */
	for (unsigned i = 0; rc == 0 && i < 2; i++) {
		rc = run(t, cell, err);
		*better = t->cell[cell].score.mean >
			  t->cell[t->best].score.mean * (1 + fmax(noise(t), WORTH));
		if (!*better || !room(t))
			break;
	}
	if (rc == 0 && *better)
		t->best = cell;
	return rc;
}

/* Along one knob from where the best is, up and then down, as far as it gets better; one miss on
 * the way is forgiven. */
static int climb(struct ms_tune_live *t, unsigned knob, bool *gained, struct ho_err *err)
{
	for (int step = 1; step >= -1; step -= 2) {
		int at = t->cell[t->best].at[knob] + step;
		unsigned misses = 0;

		while (at >= 0 && at < (int)t->knob[knob].n && misses < 2 && room(t)) {
			bool better;
			int rc = try_value(t, knob, (unsigned)at, &better, err);

			if (rc < 0)
				return rc;
			misses = better ? 0 : misses + 1;
			*gained |= better;
			at += step;
		}
	}
	return 0;
}

/* One fresh run of a cell, into *mean as well. */
static int run_again(struct ms_tune_live *t, unsigned cell, struct ms_mean *mean,
		     struct ho_err *err)
{
	/* Its score so far was chosen for being good: what counts now is only what comes. */
	const struct ms_mean old = t->cell[cell].score;
	int rc;

	t->cell[cell].score = *mean;
	rc = run(t, cell, err);
	*mean = t->cell[cell].score;
	t->cell[cell].score = old;
	return rc;
}

/* The present and the best afresh, in turns. */
static int confirm(struct ms_tune_live *t, struct ho_err *err)
{
	unsigned pairs = HO_MIN(t->most - HO_MIN(t->runs, t->most), (unsigned)RUNS_END_MOST) / 2;
	int rc = 0;

	t->before = t->after = (struct ms_mean){ 0 };
	for (unsigned i = 0; rc == 0 && i < pairs; i++) {
		rc = run_again(t, t->best, &t->after, err);
		if (rc == 0)
			rc = run_again(t, 0, &t->before, err);
	}
	if (rc == 0)
		t->t = ms_welch(&t->before, &t->after, &t->significant);
	return rc;
}

int ms_tune_live(struct ms_tune_live *t, struct ho_err *err)
{
	unsigned char now[MS_KNOBS_MAX] = { 0 };
	bool gained = true;
	int rc = 0;

	t->cells = t->runs = t->best = 0;
	t->significant = false;
	t->most = t->most ? t->most : RUNS_MOST;
	for (unsigned k = 0; k < t->knobs; k++)
		now[k] = (unsigned char)t->knob[k].now;
	cell_of(t, now);
	for (unsigned i = 0; rc == 0 && i < RUNS_BASELINE; i++)
		rc = run(t, 0, err);
	while (rc == 0 && gained && room(t)) {
		gained = false;
		for (unsigned k = 0; rc == 0 && k < t->knobs; k++)
			rc = climb(t, k, &gained, err);
	}
	if (rc == 0 && t->best)
		rc = confirm(t, err);
	/* Told apart the wrong way round: the present one is the best. */
	if (rc == 0 && t->best && !(t->after.mean > t->before.mean))
		t->best = 0;
	if (t->best == 0) {
		t->before = t->after = t->cell[0].score;
		t->significant = false;
	}
	return rc;
}
