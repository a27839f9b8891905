// SPDX-License-Identifier: BSD-2-Clause
/*
 * An interface of this machine as a target: each point is a combination of its settings, measured
 * several times. Rounds go over the whole grid, every other one backwards, so that what drifts
 * (a neighbour's load, temperature) does not favour a point.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "base/units.h"
#include "measure/explain.h"
#include "measure/target.h"

static const struct ms_metric metrics[MS_LIVE_METRICS] = {
	[MS_LIVE_PPS] = { "pps", "frames received and sent a second", "pps", .si = true },
	[MS_LIVE_RX_PPS] = { "rx_pps", "frames received a second", "pps", .si = true },
	[MS_LIVE_TX_PPS] = { "tx_pps", "frames sent a second", "pps", .si = true },
	[MS_LIVE_GBPS] = { "gbps", "received and sent, without FCS", "Gbit/s" },
	[MS_LIVE_IRQS] = { "irqs_per_s", "interrupts of the interface a second", "/s", .less = true,
			   .si = true },
	[MS_LIVE_CPU] = { "cpu_percent", "of the busiest CPU's time", "%", .less = true },
	[MS_LIVE_SOFTIRQ] = { "softirq_percent",
			      "of the busiest CPU's time, interrupts and softirq", "%",
			      .less = true },
	[MS_LIVE_SWITCHES] = { "switches_per_s", "context switches of the machine a second", "/s",
			       .less = true, .si = true },
	[MS_LIVE_DROPS] = { "drops_per_s", "frames lost at the interface a second", "/s",
			    .less = true, .si = true },
	[MS_LIVE_VALUE] = { "value", "what the workload measured", "", .si = true },
};
static_assert(MS_LIVE_METRICS <= MS_METRICS_MAX, "a cell has room for all of them");

enum live_limit {
	LIMIT_NONE,
	LIMIT_ROUNDED, /* no limit: the driver took another value than it was asked to */
	LIMIT_CAUSES,  /* and from here on ms_causes, in its order */
};
/* Of the causes: idle, lost-before, wire, asked, pci, backlog, hot-queue, hot-cpu, irq-affinity,
 * socket, no-port, rx-ring, tx-ring, interrupts, moderation, irq-rate, segmentation, offload, cpu,
 * path, budget, cache, switches, offered. */
static const char letters[] = "-~.LWABbQHIsnrRwMiSoCPumxO";

static const char *limit_name(unsigned limit)
{
	return limit >= LIMIT_CAUSES    ? ms_causes[limit - LIMIT_CAUSES].name
	       : limit == LIMIT_ROUNDED ? "other_value"
					: "unknown";
}

static const char *limit_title(unsigned limit)
{
	return limit >= LIMIT_CAUSES    ? ms_causes[limit - LIMIT_CAUSES].title
	       : limit == LIMIT_ROUNDED ? "another value than asked for"
					: "nothing that was looked for";
}

struct ms_target {
	struct ms_live *live;
	char title[160];
	unsigned repeats;
	struct lx_setting setting[LX_PARAMS_MAX]; /* when it was opened */
	unsigned n_settings;
	struct ho_stop_signals stop;
	struct lx_restored left;
};

static const struct lx_setting *setting_of(const struct ms_target *t, const char *name)
{
	for (unsigned i = 0; i < t->n_settings; i++)
		if (!strcmp(t->setting[i].name, name))
			return &t->setting[i];
	return NULL;
}

static void live_close(struct ms_target *t)
{
	if (!t)
		return;
	/* Everything is back already (live_run); this is for runs that never came to that. */
	ms_live_close(t->live, NULL);
	ho_stop_signals_close(&t->stop);
	free(t);
}

static int live_open(const char *name, const struct ms_target_options *options,
		     struct ms_target **out, struct ho_err *err)
{
	struct ms_live_config config = options->live;
	struct ms_target *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return ho_err_set(err, -ENOMEM, "out of memory for a target");
	t->repeats = HO_MAX(options->repeats, 1u);
	/* A signal ends the run between two measurements, with everything put back. */
	rc = ho_stop_signals_open(&t->stop, err);
	if (rc < 0) {
		free(t);
		return rc;
	}
	config.ifname = name;
	config.stop_fd = t->stop.fd;
	rc = ms_live_open(&config, &t->live, &t->left, err);
	if (rc == 0 && (t->left.changed || t->left.obsolete))
		ho_note("%s: a run before this one was killed; put back: %s", name,
			t->left.changed ? t->left.text : "nothing");
	if (rc == 0) {
		rc = ms_live_settings(t->live, t->setting, LX_PARAMS_MAX, err);
		t->n_settings = rc > 0 ? (unsigned)rc : 0;
	}
	if (rc < 0) {
		live_close(t);
		return rc;
	}
	snprintf(t->title, sizeof(t->title), "%s of this machine, %u round%s%s%.60s", name,
		 t->repeats, t->repeats > 1 ? "s" : "",
		 config.workload.kind == MS_OBSERVE ? ", whatever traffic there is" : " of ",
		 config.workload.kind == MS_OBSERVE ? "" : config.workload.command);
	*out = t;
	return 0;
}

static const char *live_title(struct ms_target *t)
{
	return t->title;
}

static bool live_axis(struct ms_target *t, unsigned i, const char **name,
		      const char *const **values, unsigned *n)
{
	*values = NULL;
	*n = 0;
	for (unsigned s = 0; s < t->n_settings; s++) {
		if (t->setting[s].fixed || i-- > 0)
			continue;
		*name = t->setting[s].name;
		return true;
	}
	return false;
}

/* Changing the channels resets rings in many drivers; adaptive moderation refuses fixed values
 * while it is on. */
static bool live_first(const char *name)
{
	return !strncmp(name, "adaptive-", 9) || !strcmp(name, "combined") ||
	       !strcmp(name, "rx-channels") || !strcmp(name, "tx-channels");
}

static int live_digest(struct ms_target *t, const struct ms_axes *set, const struct ms_axes *axes,
		       uint64_t *out, struct ho_err *err)
{
	(void)t;
	(void)set;
	(void)axes;
	(void)err;
	*out = 0;
	return 0;
}

/* --- settings ------------------------------------------------------------------------------- */

/* "on", "off", "512", "4k", and for microseconds "20us". */
static int parse_value(const struct lx_param *param, const char *text, uint64_t *out,
		       struct ho_err *err)
{
	int rc;

	if (!strcasecmp(text, "on") || !strcasecmp(text, "off")) {
		*out = !strcasecmp(text, "on");
		return 0;
	}
	if (param && (!strcmp(param->unit, "us") || !strcmp(param->unit, "ns")) &&
	    strpbrk(text, "nmus")) {
		rc = ho_parse_time_ns(text, out, err);
		if (rc == 0 && !strcmp(param->unit, "us"))
			*out /= 1000;
	} else {
		rc = ho_parse_count(text, out, err);
	}
	return rc < 0 ? ho_err_prefix(err, "%s", param ? param->name : text) : 0;
}

static int check_points(const struct ms_target *t, const struct ms_target_run *run,
			struct ho_err *err)
{
	for (unsigned p = 0; p < run->n; p++) {
		for (unsigned i = 0; i < run->point[p].n; i++) {
			const struct ms_set *set = &run->point[p].set[i];
			const struct lx_setting *s = setting_of(t, set->key);
			uint64_t value;
			int rc;

			if (!s || s->fixed)
				return ho_err_set(err, -EINVAL, "%s: %s cannot be set here%s",
						  t->title, set->key,
						  s ? ": the driver has it fixed" : "");
			rc = parse_value(lx_param_of(set->key), set->value, &value, err);
			if (rc < 0)
				return rc;
			if (value < s->min || value > s->max)
				return ho_err_set(err, -ERANGE,
						  "%s %s: from %llu to %llu are possible", set->key,
						  set->value, (unsigned long long)s->min,
						  (unsigned long long)s->max);
		}
	}
	return 0;
}

/* What is set now of what the grid sets, so that only changes are made. */
struct current {
	const char *name;
	uint64_t asked, got;
};

struct runner {
	struct ms_target *target;
	const struct ms_target_run *run;
	struct current current[2 * MS_AXES_MAX];
	unsigned n_current;
	struct ms_live_result *result;  /* [point * repeats + round] */
	char (*note)[LAB_LIMITER_TEXT]; /* of each point: what the driver made of its values */
};

static struct current *current_of(struct runner *r, const char *name)
{
	for (unsigned i = 0; i < r->n_current; i++)
		if (!strcmp(r->current[i].name, name))
			return &r->current[i];
	r->current[r->n_current] = (struct current){ .name = name, .asked = UINT64_MAX };
	return &r->current[r->n_current++];
}

static int set_point(struct runner *r, unsigned p, struct ho_err *err)
{
	const struct ms_point *point = &r->run->point[p];
	char *note = r->note[p];
	size_t at = 0;

	note[0] = 0;
	for (unsigned i = 0; i < point->n; i++) {
		struct current *now = current_of(r, point->set[i].key);
		uint64_t value = 0;
		int rc = parse_value(lx_param_of(now->name), point->set[i].value, &value, err);

		if (rc == 0 && value != now->asked)
			rc = ms_live_set(r->target->live, now->name, value, &now->got, err);
		if (rc < 0)
			return rc;
		now->asked = value;
		if (now->got != value && at < LAB_LIMITER_TEXT)
			at += (size_t)snprintf(note + at, LAB_LIMITER_TEXT - at,
					       "%s%s %llu was read back as %llu", at ? ", " : "",
					       now->name, (unsigned long long)value,
					       (unsigned long long)now->got);
	}
	return 0;
}

/* --- runs ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double digits(double value)
{
	char text[32];

	if (isnan(value))
		return value;
	snprintf(text, sizeof(text), "%.9g", value);
	return strtod(text, NULL);
}

/* The round whose verdict most rounds had, the surest of them. */
static const struct ms_live_result *verdict_of(const struct ms_live_result *rounds, unsigned n)
{
	const struct ms_live_result *best = rounds;
	unsigned most = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned same = 0;

		for (unsigned k = 0; k < n; k++)
			same += rounds[k].cause == rounds[i].cause;
		if (same > most || (same == most && rounds[i].certainty > best->certainty)) {
			most = same;
			best = &rounds[i];
		}
	}
	return best;
}

static void make_cell(const struct runner *r, unsigned p, struct ms_cell *cell)
{
	unsigned repeats = r->target->repeats;
	const struct ms_live_result *verdict = verdict_of(&r->result[p * repeats], repeats);
	double v[MS_REPEATS_MAX];

	*cell = (struct ms_cell){
		.present = true,
		.limit = r->note[p][0] ? LIMIT_ROUNDED : LIMIT_CAUSES + verdict->cause,
		.used = NAN,
		.rounds = repeats,
	};
	snprintf(cell->text, sizeof(cell->text), "%.99s%s%.295s", r->note[p],
		 r->note[p][0] ? "; " : "", verdict->why);
	for (unsigned m = 0; m < MS_LIVE_METRICS; m++) {
		unsigned n = 0;

		for (unsigned i = 0; i < repeats; i++) {
			double value = r->result[p * repeats + i].value[m];

			if (!isnan(value))
				v[n++] = value;
		}
		qsort(v, n, sizeof(v[0]), by_value);
		cell->value[m] = n ? digits(n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2) : NAN;
		cell->low[m] = n ? digits(v[0]) : NAN;
		cell->high[m] = n ? digits(v[n - 1]) : NAN;
	}
}

static int rounds(struct runner *r, struct ho_err *err)
{
	const struct ms_target_run *run = r->run;
	unsigned repeats = r->target->repeats, done = 0;

	for (unsigned round = 0; round < repeats; round++) {
		for (unsigned i = 0; i < run->n; i++) {
			unsigned p = round % 2 ? run->n - 1 - i : i;
			int rc = set_point(r, p, err);

			if (rc == 0)
				rc = ms_live_measure(r->target->live,
						     &r->result[p * repeats + round], err);
			if (rc < 0) {
				char name[256];

				if (rc != -EINTR)
					ho_err_prefix(
						err, "%s",
						ms_point_name(&run->point[p], name, sizeof(name)));
				return rc;
			}
			done++;
			if (run->progress)
				run->progress(run->ctx, done, run->n * repeats);
		}
	}
	for (unsigned p = 0; p < run->n; p++) {
		struct ms_cell cell;
		int rc;

		make_cell(r, p, &cell);
		rc = run->cell(run->ctx, p, &cell, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int live_run(struct ms_target *t, const struct ms_target_run *run, struct ho_err *err)
{
	struct runner r = { .target = t, .run = run };
	struct ho_err restoring = { 0 };
	int rc = check_points(t, run, err), back;

	if (rc < 0)
		return rc;
	r.result = calloc((size_t)run->n * t->repeats, sizeof(*r.result));
	r.note = calloc(run->n, sizeof(*r.note));
	if (!r.result || !r.note)
		rc = ho_err_set(err, -ENOMEM, "out of memory for %u points", run->n);
	else
		rc = rounds(&r, err);
	/* What could not be put back matters more than how the run went. */
	back = ms_live_restore(t->live, NULL, &restoring);
	if (back < 0)
		rc = ho_err_set(err, back, "%s", restoring.text);
	free(r.result);
	free(r.note);
	return rc;
}

const struct ms_target_kind ms_target_live = {
	.name = "",
	.target = "IFACE",
	.help = "an interface of this machine",
	.metric = metrics,
	.n_metrics = MS_LIVE_METRICS,
	.limit_letters = letters,
	.limit_name = limit_name,
	.limit_title = limit_title,
	.live = true,
	.open = live_open,
	.close = live_close,
	.title = live_title,
	.axis = live_axis,
	.first = live_first,
	.digest = live_digest,
	.run = live_run,
};
