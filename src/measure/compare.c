// SPDX-License-Identifier: BSD-2-Clause
#include "measure/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/run.h"

/* --- rows ----------------------------------------------------------------------------------- */

static const char *series_of(const struct lab_scenario *s, unsigned row)
{
	const char *column = s->published->series_column;

	return column ? lab_table_cell(s->table, row, (unsigned)lab_table_column(s->table, column))
		      : NULL;
}

static const char *parameter_of(const struct lab_scenario *s, unsigned row, unsigned parameter)
{
	const char *column = s->published->parameters[parameter].column;

	return lab_table_cell(s->table, row, (unsigned)lab_table_column(s->table, column));
}

const char *ms_compare_row_name(const struct lab_scenario *s, unsigned row, char *text,
				size_t bytes)
{
	const char *series = series_of(s, row);
	size_t at = 0;

	text[0] = 0;
	if (series)
		at = (size_t)snprintf(text, bytes, "%s", series);
	for (unsigned i = 0; i < s->published->parameters_count && at < bytes; i++)
		at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? "/" : "",
				       parameter_of(s, row, i));
	return text;
}

bool ms_compare_sets_row(const struct lab_scenario *s, const char *path)
{
	for (unsigned i = 0; s->published && i < s->published->parameters_count; i++) {
		const char *name = s->published->parameters[i].axis;

		if (!strcmp(path, name))
			return true;
		for (uint32_t a = 0; a < s->axes_count; a++) {
			if (!strcmp(s->axes[a].name, name) && !strcmp(s->axes[a].path, path))
				return true;
		}
	}
	return false;
}

static bool is_fitted(const struct lab_scenario *s, unsigned row)
{
	char name[128];

	ms_compare_row_name(s, row, name, sizeof(name));
	for (uint32_t i = 0; i < s->published->fitted_count; i++) {
		if (!strcmp(s->published->fitted[i], name))
			return true;
	}
	return false;
}

static int take_value(const struct lab_scenario *s, unsigned row, unsigned result,
		      const struct lab_result *r, struct ms_compare_value *out, struct ho_err *err)
{
	const struct lab_published_result *spec = &s->published->results[result];
	int rc = lab_result_value(r, spec->result, &out->simulated, err);

	if (rc < 0)
		return rc;
	if (!spec->column)
		return 0;
	rc = lab_table_number(s->table, row, (unsigned)lab_table_column(s->table, spec->column),
			      &out->reference);
	if (rc == -ENODATA)
		return 0;
	if (rc < 0 || out->reference - spec->background <= 0)
		return ho_err_set(err, -EINVAL, "%s: column %s holds no number above %g",
				  s->published_path, spec->column, spec->background);
	out->published = true;
	out->error_percent = 100 * (out->simulated / (out->reference - spec->background) - 1);
	out->exceeds = spec->within_percent > 0 && fabs(out->error_percent) > spec->within_percent;
	return 0;
}

/* --- fitted constants ----------------------------------------------------------------------- */

static double in_unit(uint64_t value, enum lab_unit unit)
{
	switch (unit) {
	case LAB_UNIT_NS:
		return (double)value / SIM_PS_PER_NS;
	case LAB_UNIT_GBPS:
		return (double)value / 1e9;
	case LAB_UNIT_BYTES:
	case LAB_UNIT_COUNT:
		break;
	}
	return (double)value;
}

static void add_fitted(struct ms_fitted *list, unsigned *n, const char *profile, const char *key,
		       const struct lab_constant *c, enum lab_unit unit)
{
	struct ms_fitted f = { .value = in_unit(c->value, unit) };
	size_t at = 0;

	if (c->kind != LAB_FITTED)
		return;
	snprintf(f.profile, sizeof(f.profile), "%s", profile);
	snprintf(f.key, sizeof(f.key), "%s", key);
	for (unsigned i = 0; i < c->n_rows && at < sizeof(f.rows); i++)
		at += (size_t)snprintf(f.rows + at, sizeof(f.rows) - at, "%s%s", i ? ", " : "",
				       c->rows[i]);
	/* One that was inherited is not fitted again. */
	for (unsigned i = 0; i < *n; i++) {
		if (!strcmp(list[i].key, f.key) && !strcmp(list[i].rows, f.rows) &&
		    list[i].value == f.value)
			return;
	}
	if (*n < MS_COMPARE_FITTED)
		list[(*n)++] = f;
}

void ms_fitted_add(const struct lab_scenario *s, struct ms_fitted *list, unsigned *n)
{
	for (uint32_t h = 0; h < s->hosts_count; h++) {
		const struct lab_profile *p = s->hosts[h].profile;
		char key[48];

		for (unsigned i = 0; i < LAB_CONSTANT_COUNT; i++)
			add_fitted(list, n, p->name, lab_constant_info[i].key, &p->constant[i],
				   lab_constant_info[i].unit);
		for (unsigned i = 0; i < p->machine.cache.n_levels; i++) {
			snprintf(key, sizeof(key), "%s_miss_ns", p->cache_name[i]);
			add_fitted(list, n, p->name, key, &p->cache_miss[i], LAB_UNIT_NS);
		}
	}
}

/* Those of every series, in the order of the table. */
static int collect_fitted(const struct ms_grid *grid, struct ms_compare *out, struct ho_err *err)
{
	const char *last = "";

	for (unsigned i = 0; i < out->n_rows; i++) {
		const char *series = series_of(out->scenario, out->row[i].row);
		struct lab_scenario *s;
		int rc;

		if (i && (!series || !strcmp(series, last)))
			continue;
		last = series;
		rc = ms_grid_scenario(grid, i, &s, err);
		if (rc < 0)
			return rc;
		ms_fitted_add(s, out->fitted, &out->n_fitted);
		lab_scenario_free(s);
	}
	out->fitted_rows = out->scenario->published->fitted_count;
	return 0;
}

/* --- the whole table ------------------------------------------------------------------------ */

static double wall_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The rows wanted. */
static int plan(const struct ms_compare_config *config, struct ms_compare *out, struct ho_err *err)
{
	struct lab_scenario *s;
	int rc = lab_scenario_load(config->scenario, &out->scenario, err);

	if (rc < 0)
		return rc;
	s = out->scenario;
	if (!s->published)
		return ho_err_set(err, -EINVAL, "%s has no published table", s->name);
	if (s->published->results_count > MS_COMPARE_RESULTS)
		return ho_err_set(err, -EINVAL, "%s: more than %u published results", s->name,
				  MS_COMPARE_RESULTS);
	out->n_results = s->published->results_count;
	out->row = calloc(s->table->n_rows ? s->table->n_rows : 1, sizeof(out->row[0]));
	if (!out->row)
		return ho_err_set(err, -ENOMEM, "out of memory for the rows");
	for (unsigned i = 0; i < s->table->n_rows; i++) {
		const char *series = series_of(s, i);

		if (config->series && (!series || strcmp(series, config->series)))
			continue;
		out->row[out->n_rows].row = i;
		out->row[out->n_rows++].fitted = is_fitted(s, i);
	}
	if (!out->n_rows)
		return ho_err_set(err, -EINVAL, "%s has no rows%s%s", s->published_path,
				  config->series ? " of series " : "",
				  config->series ? config->series : "");
	return 0;
}

/* A grid's point for each row: series, parameters, and the config's settings. */
static int points(const struct ms_compare_config *config, const struct ms_compare *c,
		  struct ms_point **point, struct ms_set **set, struct ho_err *err)
{
	const struct lab_published_spec *p = c->scenario->published;
	unsigned each = 1 + p->parameters_count + config->n_set;
	struct ms_set *at;

	*point = calloc(c->n_rows, sizeof(**point));
	at = *set = calloc((size_t)c->n_rows * each, sizeof(**set));
	if (!*point || !*set)
		return ho_err_set(err, -ENOMEM, "out of memory for the rows");
	for (unsigned i = 0; i < c->n_rows; i++) {
		unsigned row = c->row[i].row;

		(*point)[i].set = at;
		if (p->series_column)
			*at++ = (struct ms_set){ "series", series_of(c->scenario, row) };
		for (uint32_t k = 0; k < p->parameters_count; k++)
			*at++ = (struct ms_set){ p->parameters[k].axis,
						 parameter_of(c->scenario, row, k) };
		for (unsigned k = 0; k < config->n_set; k++)
			*at++ = config->set[k];
		(*point)[i].n = (unsigned)(at - (*point)[i].set);
	}
	return 0;
}

static int take_row(void *ctx, unsigned i, const struct lab_result *r,
		    const struct lab_limiter *limiter, struct ho_err *err)
{
	struct ms_compare *c = ctx;
	struct ms_compare_row *row = &c->row[i];
	const struct lab_workload_result *sender = lab_result_sender(r);
	int rc = 0;

	for (unsigned k = 0; rc == 0 && k < c->n_results; k++)
		rc = take_value(c->scenario, row->row, k, r, &row->value[k], err);
	row->limiter = *limiter;
	if (sender) {
		row->tx_ring = r->chip[sender->chip].tx_ring;
		row->tx_usable = r->chip[sender->chip].tx_usable;
	}
	row->sim_frames = r->sim_frames;
	row->digest = r->digest;
	row->cpu_seconds = r->cpu_seconds;
	c->sim_frames += row->sim_frames;
	c->cpu_seconds += row->cpu_seconds;
	/* FNV-1a over the rows' digests, so that their order counts. */
	c->digest = (i ? c->digest : 0xcbf29ce484222325ull) ^ row->digest;
	c->digest *= 0x100000001b3ull;
	if (c->progress)
		c->progress(c->arg, i + 1, c->n_rows);
	return rc;
}

int ms_compare_run(const struct ms_compare_config *config, struct ms_compare *out,
		   struct ho_err *err)
{
	double wall = wall_now();
	struct ms_point *point = NULL;
	struct ms_set *set = NULL;
	struct ms_grid grid;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = plan(config, out, err);
	if (rc == 0)
		rc = points(config, out, &point, &set, err);
	grid = (struct ms_grid){ .scenario = out->scenario,
				 .point = point,
				 .n = out->n_rows,
				 .jobs = config->jobs,
				 .ctx = out,
				 .result = take_row };
	out->progress = config->progress;
	out->arg = config->arg;
	if (rc == 0)
		rc = collect_fitted(&grid, out, err);
	if (rc == 0)
		rc = ms_grid_run(&grid, err);
	free(point);
	free(set);
	out->wall_seconds = wall_now() - wall;
	return rc;
}

void ms_compare_free(struct ms_compare *compare)
{
	lab_scenario_free(compare->scenario);
	free(compare->row);
	memset(compare, 0, sizeof(*compare));
}

unsigned ms_compare_exceeding(const struct ms_compare *compare)
{
	unsigned n = 0;

	for (unsigned i = 0; i < compare->n_rows; i++) {
		bool exceeds = false;

		for (unsigned r = 0; r < compare->n_results; r++)
			exceeds |= compare->row[i].value[r].exceeds;
		n += exceeds;
	}
	return n;
}

double ms_compare_worst(const struct ms_compare *compare, unsigned result, bool fitted,
			unsigned *row)
{
	double worst = -1;

	for (unsigned i = 0; i < compare->n_rows; i++) {
		const struct ms_compare_value *v = &compare->row[i].value[result];

		if (!v->published || compare->row[i].fitted != fitted ||
		    fabs(v->error_percent) <= worst)
			continue;
		worst = fabs(v->error_percent);
		*row = i;
	}
	return worst;
}
