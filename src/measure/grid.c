// SPDX-License-Identifier: BSD-2-Clause
#include "measure/grid.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/document.h"
#include "measure/pool.h"

struct outcome {
	struct lab_result run;
	struct lab_limiter limiter;
};

const char *ms_point_name(const struct ms_point *point, char *buf, size_t bytes)
{
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < point->n && used < bytes; i++)
		used += (size_t)snprintf(buf + used, bytes - used, "%s%s=%s", i ? " " : "",
					 point->set[i].key, point->set[i].value);
	return buf;
}

static int apply(struct lab_scenario *s, const struct ms_set *set, unsigned n, struct ho_err *err)
{
	for (unsigned i = 0; i < n; i++) {
		int rc = !strcmp(set[i].key, "series")
				 ? lab_scenario_set_series(s, set[i].value, err)
				 : lab_scenario_set(s, set[i].key, set[i].value, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

int ms_grid_scenario(const struct ms_grid *grid, unsigned point, struct lab_scenario **out,
		     struct ho_err *err)
{
	const struct ms_point *p = &grid->point[point];
	struct lab_scenario *s;
	int rc = lab_scenario_load(ho_doc_name(grid->scenario->doc), &s, err);

	if (rc < 0)
		return rc;
	rc = apply(s, grid->common, grid->n_common, err);
	if (rc == 0)
		rc = apply(s, p->set, p->n, err);
	if (rc < 0) {
		lab_scenario_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

static int work(void *ctx, unsigned i, void *result, struct ho_err *err)
{
	const struct ms_grid *grid = ctx;
	struct outcome *o = result;
	struct lab_scenario *s;
	char name[256];
	int rc = ms_grid_scenario(grid, i, &s, err);

	if (rc < 0)
		return rc;
	rc = lab_run(s, NULL, &o->run, err);
	if (rc == 0)
		lab_limiter(s, &o->run, &o->limiter);
	else
		ho_err_prefix(err, "%s", ms_point_name(&grid->point[i], name, sizeof(name)));
	lab_scenario_free(s);
	return rc;
}

/* Names in a result are those of the worker's scenario, which is in another process. Hosts, chips
 * and workloads have the order of the scenario in both, and cannot be set. */
static void rename_all(const struct lab_scenario *s, struct lab_result *r)
{
	unsigned chip = 0, workload = 0;

	for (unsigned h = 0; h < r->n_hosts; h++) {
		const struct lab_host_spec *host = &s->hosts[h];

		r->host[h].name = host->name;
		for (unsigned i = 0; i < host->chips_count && chip < r->n_chips; i++, chip++) {
			r->chip[chip].host_name = host->name;
			r->chip[chip].name = host->chips[i].name;
		}
		for (unsigned i = 0; i < host->workloads_count && workload < r->n_workloads;
		     i++, workload++) {
			r->workload[workload].host_name = host->name;
			r->workload[workload].name = host->workloads[i].name;
		}
	}
}

static int result(void *ctx, unsigned i, const void *data, struct ho_err *err)
{
	const struct ms_grid *grid = ctx;
	struct outcome o = *(const struct outcome *)data;

	rename_all(grid->scenario, &o.run);
	return grid->result(grid->ctx, i, &o.run, &o.limiter, err);
}

static void progress(void *ctx, unsigned done, unsigned items)
{
	const struct ms_grid *grid = ctx;

	if (grid->progress)
		grid->progress(grid->ctx, done, items);
}

static const char *name(void *ctx, unsigned i, char *buf, size_t bytes)
{
	const struct ms_grid *grid = ctx;

	return ms_point_name(&grid->point[i], buf, bytes);
}

int ms_grid_run(const struct ms_grid *grid, struct ho_err *err)
{
	const struct ms_pool pool = {
		.items = grid->n,
		.jobs = grid->jobs ? grid->jobs : ms_pool_cpus(),
		.result_bytes = sizeof(struct outcome),
		.ctx = (void *)grid,
		.work = work,
		.result = result,
		.progress = progress,
		.name = name,
	};

	return ms_pool_run(&pool, err);
}
