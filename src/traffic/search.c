// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/search.h"

#include <math.h>

#include "base/compiler.h"

/* Below this nothing is searched for any more. */
#define LOWEST_PPS 1.0
/* Trials of one rate before it is believed to be too much, and a loss that needs no second look. */
#define ATTEMPTS   3u
#define CLEAR_LOSS 0.2

struct search {
	const struct tr_search_config *config;
	tr_search_run run;
	tr_search_note note;
	void *arg;
	struct tr_search_result *out;
};

static int one_trial(struct search *s, double pps, bool confirming, struct tr_search_trial *trial)
{
	int rc;

	*trial = (struct tr_search_trial){ .asked_pps = pps, .confirming = confirming };
	rc = s->run(s->arg, trial);
	if (rc < 0)
		return rc;
	s->out->trials++;
	trial->good = trial->loss <= s->config->loss;
	if (s->note)
		s->note(s->arg, trial);
	return 0;
}

static bool exhausted(const struct search *s)
{
	return s->out->trials >= s->config->trials_max;
}

/* A trial that counts: repeated while it is bad, but not so bad that no stall can be the cause. */
static int judge(struct search *s, double pps, struct tr_search_trial *trial)
{
	int rc;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		rc = one_trial(s, pps, false, trial);
		if (rc < 0 || trial->good || trial->loss > s->config->loss + CLEAR_LOSS ||
		    exhausted(s))
			break;
	}
	return rc;
}

/* Does the rate of a good trial hold? The results go to s->out. */
static int confirm(struct search *s, const struct tr_search_trial *good, bool *holds)
{
	double pps = good->achieved_pps, loss = good->loss;

	*holds = true;
	for (unsigned i = 0; i < s->config->confirm; i++) {
		struct tr_search_trial trial;
		int rc = one_trial(s, good->asked_pps, true, &trial);

		if (rc < 0)
			return rc;
		if (!trial.good) {
			*holds = false;
			return 0;
		}
		pps = fmin(pps, trial.achieved_pps);
		loss = fmax(loss, trial.loss);
	}
	s->out->found = true;
	s->out->sender_limited = good->asked_pps == 0;
	s->out->pps = pps;
	s->out->loss = loss;
	return 0;
}

int tr_search(const struct tr_search_config *config, tr_search_run run, tr_search_note note,
	      void *arg, struct tr_search_result *out)
{
	struct search s = { config, run, note, arg, out };
	struct tr_search_trial trial, best = { 0 };
	double low = 0, high, next, step = 0;
	bool holds = false;
	int rc;

	*out = (struct tr_search_result){ 0 };
	rc = judge(&s, 0, &trial);
	if (rc < 0)
		return rc;
	if (trial.good) {
		rc = confirm(&s, &trial, &holds);
		if (rc < 0 || holds)
			return rc;
	}
	high = trial.achieved_pps;
	/* What got through at full speed is a good first guess of what can. */
	next = high * (1 - trial.loss);
	while (!exhausted(&s) && high > LOWEST_PPS) {
		if (!(next > low && next < high))
			next = (low + high) / 2;
		if (low > 0 && high - low <= config->precision * high) {
			rc = confirm(&s, &best, &holds);
			if (rc < 0 || holds)
				return rc;
			/* It did not hold: go on below it, not too far. */
			high = low;
			low = 0;
			step = 2 * config->precision;
			next = high * (1 - step);
			continue;
		}
		rc = judge(&s, next, &trial);
		if (rc < 0)
			return rc;
		if (trial.good) {
			low = next;
			best = trial;
			step = 0;
			/* A sender that cannot keep up has shown all it can do. */
			if (trial.achieved_pps < next * (1 - 2 * config->precision))
				high = next;
		} else {
			high = next;
			step = HO_MIN(2 * step, 0.5);
		}
		/* Below a rate that did not hold: wider and wider steps down to one that does. */
		next = step > 0 ? high * (1 - step) : (low + high) / 2;
	}
	return 0;
}
