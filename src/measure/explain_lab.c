// SPDX-License-Identifier: BSD-2-Clause
#include "measure/explain_lab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The surer, of verdicts that name something of the box. */
static double weight(const struct ms_lab_iface *i)
{
	const char *name = i->verdict.cause->name;

	if (!strcmp(name, "idle"))
		return -1;
	if (!strcmp(name, "offered") || !strcmp(name, "asked"))
		return 0;
	return i->verdict.finding.certainty;
}

int ms_lab_explain(const struct lab_scenario *s, const struct lab_result *r, const char *only,
		   struct ms_lab_explained *out, struct ho_err *err)
{
	bool found = !only;

	out->n = out->main = 0;
	for (unsigned i = 0; i < r->n_chips && out->n < MS_LAB_IFACES; i++) {
		struct ms_lab_iface *f = &out->iface[out->n];

		f->chip = i;
		f->host = r->chip[i].host_name;
		f->name = r->chip[i].name;
		ms_evidence_lab(s, r, i, &f->evidence);
		ms_explain(&f->evidence, NULL, &f->verdict);
		if (only && !strcmp(only, f->evidence.name)) {
			out->main = out->n;
			found = true;
		} else if (!only && weight(f) > weight(&out->iface[out->main])) {
			out->main = out->n;
		}
		out->n++;
	}
	if (!found || !out->n)
		return ho_err_set(err, -EINVAL, "scenario %s has no interface '%s'", s->name,
				  only ? only : "");
	return 0;
}

static void add(struct ms_lab_sets *out, const struct ms_lab_iface *i, const char *key,
		const char *value)
{
	snprintf(out->key[out->n], sizeof(out->key[0]), "hosts.%s.chips.%s.%s", i->host, i->name,
		 key);
	snprintf(out->value[out->n++], sizeof(out->value[0]), "%s", value);
}

void ms_lab_sets(const struct ms_lab_iface *i, const struct ms_choice *from,
		 const struct ms_choice *to, struct ms_lab_sets *out)
{
	char text[160];

	out->n = 0;
	if (from->ring != to->ring) {
		snprintf(text, sizeof(text), "%u", to->ring);
		add(out, i, i->verdict.view.aim == MS_AIM_SEND ? "tx" : "rx", text);
	}
	if (from->usecs != to->usecs && to->mode != MS_MODE_POLL) {
		snprintf(text, sizeof(text), "%u", to->usecs);
		add(out, i, "rx-usecs", text);
	}
	if (from->mode != to->mode)
		add(out, i, "rx-mode", ms_mode_names[to->mode]);
	if (from->place != to->place)
		add(out, i, "irq-cpus", ms_place_cpus(&i->evidence, to->place, text, sizeof(text)));
}

static void more(char *text, size_t bytes, const char *command)
{
	size_t at = strlen(text);

	snprintf(text + at, bytes - at, "%s%s", at ? "; " : "", command);
}

/* With the vectors' numbers, where they are known. */
static void affinity_command(const struct ms_evidence *ev, const char *cpus, char *line,
			     size_t bytes)
{
	char list[MS_EV_VECTORS * 8];
	size_t at = 0;

	for (unsigned i = 0; i < ev->n_vectors && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, " %u", ev->vector[i]);
	if (!ev->n_vectors)
		snprintf(line, bytes, "echo %s > /proc/irq/N/smp_affinity_list", cpus);
	else if (ev->n_vectors == 1)
		snprintf(line, bytes, "echo %s > /proc/irq/%u/smp_affinity_list", cpus,
			 ev->vector[0]);
	else
		snprintf(line, bytes,
			 "for i in%s; do echo %s > /proc/irq/$i/smp_affinity_list; done", list,
			 cpus);
}

void ms_linux_commands(const struct ms_evidence *ev, const char *iface, enum ms_aim aim,
		       const struct ms_choice *from, const struct ms_choice *to, char *text,
		       size_t bytes)
{
	char line[512], cpus[160];

	text[0] = '\0';
	if (from->ring != to->ring) {
		snprintf(line, sizeof(line), "ethtool -G %s %s %u", iface,
			 aim == MS_AIM_SEND ? "tx" : "rx", to->ring);
		more(text, bytes, line);
	}
	if (from->usecs != to->usecs && to->mode != MS_MODE_POLL) {
		if (to->usecs == 1)
			snprintf(line, sizeof(line), "ethtool -C %s adaptive-rx on", iface);
		else
			snprintf(line, sizeof(line), "ethtool -C %s %srx-usecs %u", iface,
				 isnan(ms_ev(ev, MS_EV_ADAPTIVE)) ? "" : "adaptive-rx off ",
				 to->usecs);
		more(text, bytes, line);
	}
	if (from->mode != to->mode && to->mode == MS_MODE_POLL)
		more(text, bytes, "sysctl net.core.busy_poll=50 net.core.busy_read=50");
	if (from->place != to->place) {
		ms_place_cpus(ev, to->place, cpus, sizeof(cpus));
		affinity_command(ev, cpus, line, sizeof(line));
		more(text, bytes, line);
	}
}

/* --- tuning --------------------------------------------------------------------------------- */

struct tuner {
	const struct ms_grid *grid;
	struct ms_lab_iface *iface;
	struct ms_choice now;
	void (*progress)(void *ctx, unsigned run, const struct ms_choice *choice, double score);
};

static int run_scenario(const struct ms_grid *grid, const struct ms_lab_sets *sets, unsigned repeat,
			struct lab_scenario **out, struct lab_result *r, struct ho_err *err)
{
	char seed[24];
	int rc = ms_grid_scenario(grid, 0, out, err);

	for (unsigned i = 0; rc == 0 && sets && i < sets->n; i++)
		rc = lab_scenario_set(*out, sets->key[i], sets->value[i], err);
	if (rc == 0 && repeat) {
		snprintf(seed, sizeof(seed), "%llu", (unsigned long long)(*out)->seed + repeat);
		rc = lab_scenario_set(*out, "seed", seed, err);
	}
	return rc == 0 ? lab_run(*out, NULL, r, err) : rc;
}

static int tune_run(void *ctx, const struct ms_choice *choice, unsigned repeat,
		    struct ms_tune_run *out, struct ho_err *err)
{
	const struct tuner *t = ctx;
	struct lab_result *r = malloc(sizeof(*r));
	struct lab_scenario *s = NULL;
	struct ms_lab_sets sets;
	struct ms_view view;
	int rc;

	if (!r)
		return ho_err_set(err, -ENOMEM, "out of memory for a run");
	ms_lab_sets(t->iface, &t->now, choice, &sets);
	rc = run_scenario(t->grid, &sets, repeat, &s, r, err);
	if (rc == 0) {
		ms_evidence_lab(s, r, t->iface->chip, &out->evidence);
		ms_view_make(&out->evidence, &view);
		out->rate = view.rate;
		out->latency_ns = ms_ev0(&out->evidence, MS_EV_LATENCY);
		out->busy = 0;
		for (unsigned i = 0; i < out->evidence.n_cpus; i++)
			out->busy += ms_ev_busy(&out->evidence.cpu[i]);
	}
	lab_scenario_free(s);
	free(r);
	return rc;
}

static void tune_progress(void *ctx, unsigned run, const struct ms_choice *choice, double score)
{
	const struct tuner *t = ctx;

	if (t->progress)
		t->progress(NULL, run, choice, score);
}

int ms_lab_tune(const struct ms_grid *grid, const char *only, struct ms_tune *tune,
		struct ms_lab_iface *iface,
		void (*progress)(void *ctx, unsigned run, const struct ms_choice *choice,
				 double score),
		struct ho_err *err)
{
	struct tuner t = { .grid = grid, .iface = iface, .progress = progress };
	struct ms_lab_explained *all = calloc(1, sizeof(*all));
	struct lab_result *r = malloc(sizeof(*r));
	struct lab_scenario *s = NULL;
	int rc = all && r ? 0 : ho_err_set(err, -ENOMEM, "out of memory for a run");

	/* Which interface is it about? */
	if (rc == 0)
		rc = run_scenario(grid, NULL, 0, &s, r, err);
	if (rc == 0)
		rc = ms_lab_explain(s, r, only, all, err);
	if (rc == 0) {
		struct ms_tune_target target = { .ctx = &t,
						 .run = tune_run,
						 .progress = tune_progress };

		*iface = all->iface[all->main];
		/* Names that outlive this run. */
		iface->host = grid->scenario->hosts[r->chip[iface->chip].host].name;
		for (unsigned h = 0; h < grid->scenario->hosts_count; h++) {
			const struct lab_host_spec *host = &grid->scenario->hosts[h];

			for (unsigned c = 0;
			     h == r->chip[iface->chip].host && c < host->chips_count; c++)
				if (!strcmp(host->chips[c].name, iface->name)) {
					iface->name = host->chips[c].name;
					break;
				}
		}
		t.now = target.now = iface->verdict.view.now;
		rc = ms_tune(tune, &target, err);
	}
	lab_scenario_free(s);
	free(r);
	free(all);
	return rc;
}
