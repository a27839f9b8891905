// SPDX-License-Identifier: BSD-2-Clause
#include "measure/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

void ms_sweep_fini(struct ms_sweep *s)
{
	ms_axes_fini(&s->set);
	ms_axes_fini(&s->axes);
	free(s->target);
	free(s->title);
	free(s->version);
	free(s->cell);
	memset(s, 0, sizeof(*s));
}

int ms_sweep_metric(struct ms_sweep *s, const char *name, struct ho_err *err)
{
	char list[256] = "";
	size_t at = 0;

	for (unsigned m = 0; m < s->kind->n_metrics; m++) {
		if (!strcmp(s->kind->metric[m].name, name)) {
			s->metric = m;
			s->less = s->kind->metric[m].less;
			return 0;
		}
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", m ? ", " : "",
					       s->kind->metric[m].name);
	}
	return ho_err_set(err, -EINVAL, "--metric %s: there are %s", name, list);
}

int ms_sweep_axis_known(const struct ms_target_kind *kind, struct ms_target *target,
			const char *name, struct ho_err *err)
{
	const char *const *values;
	const char *axis;
	char list[256] = "";
	size_t at = 0;
	unsigned n;

	for (unsigned i = 0; kind->axis(target, i, &axis, &values, &n); i++) {
		if (!strcmp(axis, name))
			return 0;
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s--%s",
					       i ? ", " : "", axis);
	}
	return ho_err_set(err, -EINVAL,
			  "--%s is neither an option nor an axis of the target, which are %s; "
			  "--axis PATH=VALUES takes anything that can be set",
			  name, list);
}

static bool has_values(const struct ms_axes *axes)
{
	for (unsigned i = 0; i < axes->n; i++)
		if (axes->axis[i].n > 1)
			return true;
	return false;
}

/* One value of another list. */
static int copy_axis(struct ms_axes *to, const char *name, const char *const *value, unsigned n,
		     struct ho_err *err)
{
	struct ms_axis *axis;

	if (to->n == MS_AXES_MAX)
		return ho_err_set(err, -EINVAL, "%s: there can be %d axes", name, MS_AXES_MAX);
	axis = &to->axis[to->n++];
	*axis = (struct ms_axis){ .name = strdup(name), .value = calloc(n, sizeof(char *)) };
	if (!axis->name || !axis->value)
		return ho_err_set(err, -ENOMEM, "out of memory for the values of a grid");
	for (; axis->n < n; axis->n++) {
		axis->value[axis->n] = strdup(value[axis->n]);
		if (!axis->value[axis->n])
			return ho_err_set(err, -ENOMEM, "out of memory for the values of a grid");
	}
	return 0;
}

static int choose_axes(struct ms_sweep *s, struct ms_target *target, const struct ms_axes *given,
		       struct ho_err *err)
{
	const char *const *values;
	const char *name;
	unsigned n;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < given->n; i++) {
		const struct ms_axis *axis = &given->axis[i];

		rc = copy_axis(axis->n > 1 ? &s->axes : &s->set, axis->name,
			       (const char *const *)axis->value, axis->n, err);
	}
	if (has_values(given))
		return rc;
	for (unsigned i = 0; rc == 0 && s->kind->axis(target, i, &name, &values, &n); i++) {
		if (n && !ms_axes_get(&s->set, name))
			rc = copy_axis(&s->axes, name, values, n, err);
	}
	if (rc == 0 && !s->axes.n && !s->set.n)
		rc = ho_err_set(err, -EINVAL,
				"%s has no axes with values of its own; give some: --axis "
				"PATH=VALUES",
				s->target);
	return rc;
}

int ms_sweep_init(struct ms_sweep *s, const char *target, const struct ms_axes *given,
		  const char *metric, const struct ms_target_options *options, const char *version,
		  struct ms_target **open, struct ho_err *err)
{
	const char *rest;
	int rc;

	memset(s, 0, sizeof(*s));
	s->shards = 1;
	*open = NULL;
	rc = ms_target_kind_of(target, &s->kind, &rest, err);
	if (rc == 0 && metric)
		rc = ms_sweep_metric(s, metric, err);
	if (rc == 0)
		rc = s->kind->open(rest, options, open, err);
	if (rc < 0)
		return rc;
	s->target = strdup(target);
	s->title = strdup(s->kind->title(*open));
	s->version = strdup(version);
	if (!s->target || !s->title || !s->version)
		return ho_err_set(err, -ENOMEM, "out of memory for a sweep");
	rc = choose_axes(s, *open, given, err);
	if (rc == 0)
		rc = ms_axes_points(&s->axes, &s->points, err);
	if (rc == 0)
		rc = s->kind->digest(*open, &s->set, &s->axes, &s->digest, err);
	if (rc < 0)
		return rc;
	s->cell = calloc(s->points, sizeof(*s->cell));
	return s->cell ? 0 : ho_err_set(err, -ENOMEM, "out of memory for %u points", s->points);
}

/* --- running -------------------------------------------------------------------------------- */

/* The points of a shard, with the sets that each needs. */
struct job {
	struct ms_sweep *sweep;
	unsigned n;
	unsigned *index; /* of each, in the sweep */
	struct ms_point *point;
	struct ms_set *set; /* of all, one after the other */
	void (*progress)(void *ctx, unsigned done, unsigned points);
	void *ctx;
};

static int cell(void *ctx, unsigned i, const struct ms_cell *c, struct ho_err *err)
{
	struct job *job = ctx;

	job->sweep->cell[job->index[i]] = *c;
	return 0;
}

static void progress(void *ctx, unsigned done, unsigned points)
{
	struct job *job = ctx;

	if (job->progress)
		job->progress(job->ctx, done, points);
}

/* Fixed values and those of the point; what must be set first comes first. */
static unsigned collect(const struct ms_sweep *s, unsigned point, struct ms_set *out)
{
	struct ms_set at[MS_AXES_MAX], all[2 * MS_AXES_MAX];
	unsigned n = 0, placed = 0;

	ms_axes_point(&s->axes, point, at);
	for (unsigned i = 0; i < s->set.n; i++)
		all[n++] = (struct ms_set){ s->set.axis[i].name, s->set.axis[i].value[0] };
	for (unsigned i = 0; i < s->axes.n; i++)
		all[n++] = at[i];
	for (unsigned first = 2; first-- > 0;) {
		for (unsigned i = 0; i < n; i++)
			if (s->kind->first(all[i].key) == (bool)first)
				out[placed++] = all[i];
	}
	return n;
}

static int make_job(struct job *job, struct ho_err *err)
{
	struct ms_sweep *s = job->sweep;
	unsigned most = s->points / s->shards + 1, sets = s->set.n + s->axes.n;

	job->index = calloc(most, sizeof(*job->index));
	job->point = calloc(most, sizeof(*job->point));
	job->set = calloc((size_t)most * sets, sizeof(*job->set));
	if (!job->index || !job->point || !job->set)
		return ho_err_set(err, -ENOMEM, "out of memory for %u points", s->points);
	for (unsigned i = s->shard; i < s->points; i += s->shards) {
		struct ms_set *set = &job->set[(size_t)job->n * sets];

		job->point[job->n] = (struct ms_point){ set, collect(s, i, set) };
		job->index[job->n++] = i;
	}
	return 0;
}

int ms_sweep_run(struct ms_sweep *s, struct ms_target *target, unsigned jobs,
		 void (*show)(void *ctx, unsigned done, unsigned points), void *ctx,
		 struct ho_err *err)
{
	struct job job = { .sweep = s, .progress = show, .ctx = ctx };
	int rc = make_job(&job, err);

	if (rc == 0) {
		struct ms_target_run run = {
			.point = job.point,
			.n = job.n,
			.jobs = jobs,
			.ctx = &job,
			.cell = cell,
			.progress = progress,
		};

		rc = s->kind->run(target, &run, err);
	}
	free(job.index);
	free(job.point);
	free(job.set);
	return rc;
}

/* --- looking -------------------------------------------------------------------------------- */

unsigned ms_sweep_best(const struct ms_sweep *s)
{
	unsigned best = s->points;

	for (unsigned i = 0; i < s->points; i++) {
		double value = s->cell[i].value[s->metric], other;

		if (!s->cell[i].present || isnan(value))
			continue;
		other = best < s->points ? s->cell[best].value[s->metric] : NAN;
		if (best == s->points || (s->less ? value < other : value > other))
			best = i;
	}
	return best;
}

const char *ms_sweep_point_name(const struct ms_sweep *s, unsigned point, char *buf, size_t bytes)
{
	struct ms_set set[MS_AXES_MAX];
	struct ms_point p = ms_axes_point(&s->axes, point, set);

	return ms_point_name(&p, buf, bytes);
}
