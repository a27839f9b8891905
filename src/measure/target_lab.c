// SPDX-License-Identifier: BSD-2-Clause
/* lab:SCENARIO as a target: each point is a run in virtual time. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/document.h"
#include "measure/target.h"

enum {
	PPS,
	GBPS,
	IRQS,
	CPU,
	WIRE,
	DROPPED,
	P50,
	P99,
	N_METRICS,
};

static const struct ms_metric metrics[N_METRICS] = {
	[PPS] = { "pps", "frames sent a second", "pps", .si = true },
	[GBPS] = { "gbps", "of the frames sent, without FCS", "Gbit/s" },
	[IRQS] = { "irqs_per_s", "interrupts of the first chip a second", "/s", .less = true,
		   .si = true },
	[CPU] = { "cpu_percent", "of the busiest CPU's time", "%", .less = true },
	[WIRE] = { "wire_percent", "of the busiest wire's time", "%" },
	[DROPPED] = { "dropped", "frames, by ports and chips, since the start", "frames",
		      .less = true, .si = true },
	[P50] = { "p50_us", "latency of stamped frames, median", "us", .less = true },
	[P99] = { "p99_us", "latency of stamped frames, 99th percentile", "us", .less = true },
};
static_assert(N_METRICS <= MS_METRICS_MAX, "a cell has room for all of them");

/* By enum lab_limit; small letters: the receiving side. */
static const char letters[] = {
	[LAB_LIMIT_NONE] = '-',    [LAB_LIMIT_RX_RING] = 'r', [LAB_LIMIT_RX_CPU] = 'c',
	[LAB_LIMIT_OFFERED] = 'O', [LAB_LIMIT_WIRE] = 'W',    [LAB_LIMIT_PCI] = 'B',
	[LAB_LIMIT_RING] = 'R',    [LAB_LIMIT_CPU] = 'C',     [LAB_LIMIT_COUNT] = '\0',
};

static const char *limit_name(unsigned limit)
{
	return lab_limit_name((enum lab_limit)limit);
}

static const char *limit_title(unsigned limit)
{
	return lab_limit_title((enum lab_limit)limit);
}

struct ms_target {
	struct lab_scenario *scenario;
	const char **series; /* names, for the axis of that name */
};

static void lab_close(struct ms_target *t)
{
	if (!t)
		return;
	lab_scenario_free(t->scenario);
	free(t->series);
	free(t);
}

static int lab_open(const char *name, const struct ms_target_options *options,
		    struct ms_target **out, struct ho_err *err)
{
	struct ms_target *t = calloc(1, sizeof(*t));
	int rc;

	(void)options;
	if (!t)
		return ho_err_set(err, -ENOMEM, "out of memory for a target");
	rc = lab_scenario_load(name, &t->scenario, err);
	if (rc == 0) {
		t->series = calloc(t->scenario->series_count + 1, sizeof(*t->series));
		if (!t->series)
			rc = ho_err_set(err, -ENOMEM, "out of memory for a target");
	}
	if (rc < 0) {
		lab_close(t);
		return rc;
	}
	for (unsigned i = 0; i < t->scenario->series_count; i++)
		t->series[i] = t->scenario->series[i].name;
	*out = t;
	return 0;
}

static const char *lab_title(struct ms_target *t)
{
	return t->scenario->title;
}

static bool lab_axis(struct ms_target *t, unsigned i, const char **name, const char *const **values,
		     unsigned *n)
{
	/* Of every scenario. */
	static const char *const others[] = { "seed", "warmup", "duration" };
	const struct lab_scenario *s = t->scenario;

	*values = NULL;
	*n = 0;
	if (i < s->axes_count) {
		*name = s->axes[i].name;
		*values = (const char *const *)s->axes[i].values;
		*n = s->axes[i].values_count;
		return true;
	}
	i -= s->axes_count;
	if (s->series_count && i-- == 0) {
		*name = "series";
		return true;
	}
	if (i >= HO_ARRAY_LEN(others))
		return false;
	*name = others[i];
	return true;
}

/* A series sets several values; who sets one of these as well means that. */
static bool lab_first(const char *name)
{
	return !strcmp(name, "series");
}

/* --- what decides about results ------------------------------------------------------------- */

static uint64_t fnv(uint64_t hash, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	/* FNV-1a, 64 bits. */
	while (bytes--)
		hash = (hash ^ *at++) * 0x100000001b3;
	return hash;
}

static uint64_t hash_number(uint64_t hash, uint64_t value)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	return fnv(hash, bytes, sizeof(bytes));
}

static uint64_t hash_profiles(uint64_t hash, const struct lab_scenario *s)
{
	for (unsigned h = 0; h < s->hosts_count; h++) {
		const struct lab_profile *p = s->hosts[h].profile;

		hash = hash_number(hash, p->cpu_hz);
		hash = hash_number(hash, p->machine.cpus);
		for (unsigned i = 0; i < LAB_CONSTANT_COUNT; i++)
			hash = hash_number(hash, p->constant[i].value);
		for (unsigned i = 0; i < p->machine.cache.n_levels; i++) {
			const struct lab_cache_level *level = &p->machine.cache.level[i];

			hash = hash_number(hash, level->bytes);
			hash = hash_number(hash, level->ways);
			hash = hash_number(hash, level->line);
			hash = hash_number(hash, level->miss);
		}
		for (unsigned i = 0; i < p->machine.n_reuse; i++) {
			hash = hash_number(hash, p->machine.reuse[i].fill);
			hash = hash_number(hash, p->machine.reuse[i].drain);
			hash = hash_number(hash, p->machine.reuse[i].bytes);
		}
	}
	return hash;
}

static int hash_file(const char *path, uint64_t *hash, struct ho_err *err)
{
	FILE *in = fopen(path, "re");
	char buf[4096];
	size_t n;
	int rc = 0;

	if (!in)
		return ho_err_set(err, -errno, "%s: %s", path, ho_strerror(errno));
	while ((n = fread(buf, 1, sizeof(buf), in)) > 0)
		*hash = fnv(*hash, buf, n);
	if (ferror(in))
		rc = ho_err_set(err, -EIO, "%s: cannot be read", path);
	fclose(in);
	return rc;
}

/* The profiles that the values bring in. */
static uint64_t hash_values(uint64_t hash, const struct ms_target *t, const struct ms_axes *axes)
{
	for (unsigned a = 0; a < axes->n; a++) {
		const struct ms_axis *axis = &axes->axis[a];

		for (unsigned v = 0; v < axis->n; v++) {
			const struct ms_set set = { axis->name, axis->value[v] };
			const struct ms_point point = { &set, 1 };
			const struct ms_grid grid = { .scenario = t->scenario, .point = &point };
			struct lab_scenario *s;

			/* Values that only go together with others are not looked at here. */
			if (ms_grid_scenario(&grid, 0, &s, NULL) < 0)
				continue;
			hash = hash_profiles(hash, s);
			lab_scenario_free(s);
		}
	}
	return hash;
}

static int lab_digest(struct ms_target *t, const struct ms_axes *set, const struct ms_axes *axes,
		      uint64_t *out, struct ho_err *err)
{
	uint64_t hash = 0xcbf29ce484222325;
	int rc = hash_file(ho_doc_name(t->scenario->doc), &hash, err);

	if (rc < 0)
		return rc;
	hash = hash_profiles(hash, t->scenario);
	hash = hash_values(hash, t, set);
	*out = hash_values(hash, t, axes);
	return 0;
}

/* --- runs ----------------------------------------------------------------------------------- */

static double digits(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", value);
	return strtod(text, NULL);
}

static double busiest_cpu(const struct lab_result *r)
{
	double busy = 0;

	for (unsigned h = 0; h < r->n_hosts; h++)
		for (unsigned c = 0; c < r->host[h].cpus; c++)
			busy = HO_MAX(busy, lab_cpu_busy(&r->host[h].cpu[c]));
	return busy * 100;
}

static void chips(const struct lab_result *r, double *value)
{
	for (unsigned i = 0; i < r->n_chips; i++) {
		const struct lab_chip_result *c = &r->chip[i];
		double busy = HO_MAX(c->wire_tx_busy, c->wire_rx_busy) * 100;

		value[WIRE] = HO_MAX(value[WIRE], busy);
		for (unsigned d = 0; d < PORT_DROP_COUNT; d++)
			value[DROPPED] += (double)c->drops[d];
	}
}

static void latency(const struct lab_result *r, double *value)
{
	value[P50] = value[P99] = NAN;
	for (unsigned w = 0; w < r->n_workloads; w++) {
		if (!r->workload[w].latency.n)
			continue;
		value[P50] = (double)r->workload[w].latency.p50_ns / 1e3;
		value[P99] = (double)r->workload[w].latency.p99_ns / 1e3;
		return;
	}
}

static int result(void *ctx, unsigned i, const struct lab_result *r,
		  const struct lab_limiter *limiter, struct ho_err *err)
{
	static const unsigned by_word[] = { PPS, GBPS, IRQS };
	const struct ms_target_run *run = ctx;
	struct ms_cell cell = {
		.present = true,
		.limit = limiter->what,
		.used = digits(limiter->used),
		.digest = r->digest,
	};

	for (unsigned m = 0; m < HO_ARRAY_LEN(by_word); m++) {
		int rc =
			lab_result_value(r, metrics[by_word[m]].name, &cell.value[by_word[m]], err);

		if (rc < 0)
			return rc;
	}
	cell.value[CPU] = busiest_cpu(r);
	chips(r, cell.value);
	latency(r, cell.value);
	for (unsigned m = 0; m < N_METRICS; m++)
		if (!isnan(cell.value[m]))
			cell.value[m] = digits(cell.value[m]);
	snprintf(cell.text, sizeof(cell.text), "%s", limiter->text);
	return run->cell(run->ctx, i, &cell, err);
}

static void progress(void *ctx, unsigned done, unsigned points)
{
	const struct ms_target_run *run = ctx;

	if (run->progress)
		run->progress(run->ctx, done, points);
}

static int lab_target_run(struct ms_target *t, const struct ms_target_run *run, struct ho_err *err)
{
	const struct ms_grid grid = {
		.scenario = t->scenario,
		.point = run->point,
		.n = run->n,
		.jobs = run->jobs,
		.ctx = (void *)run,
		.result = result,
		.progress = progress,
	};

	return ms_grid_run(&grid, err);
}

const struct ms_target_kind ms_target_lab = {
	.name = "lab",
	.target = "SCENARIO",
	.help = "a scenario of the lab, by name or file",
	.metric = metrics,
	.n_metrics = N_METRICS,
	.limit_letters = letters,
	.limit_name = limit_name,
	.limit_title = limit_title,
	.open = lab_open,
	.close = lab_close,
	.title = lab_title,
	.axis = lab_axis,
	.first = lab_first,
	.digest = lab_digest,
	.run = lab_target_run,
};
