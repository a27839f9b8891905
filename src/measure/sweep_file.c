// SPDX-License-Identifier: BSD-2-Clause
/* A sweep as JSON and CSV, and shards of it read back and joined. */
#include <errno.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "measure/sweep.h"
#include "measure/sweep_effect.h"

/* --- out ------------------------------------------------------------------------------------ */

/* A plain number as a number, anything else as text. */
static json_t *value_json(const char *text)
{
	size_t n = strspn(text, "0123456789");

	if (n && n < 16 && !text[n] && (n == 1 || *text != '0'))
		return json_integer(strtoll(text, NULL, 10));
	return json_string(text);
}

static json_t *point_json(const struct ms_sweep *s, unsigned point)
{
	struct ms_set set[MS_AXES_MAX];
	struct ms_point p = ms_axes_point(&s->axes, point, set);
	json_t *object = json_object();

	for (unsigned i = 0; i < p.n; i++)
		json_object_set_new(object, p.set[i].key, value_json(p.set[i].value));
	return object;
}

/* Counts as integers: rates are whole often enough that a reader would be surprised by 1.0. */
static json_t *metric_json(double value)
{
	if (isnan(value))
		return json_null();
	if (value == floor(value) && fabs(value) < 1e15)
		return json_integer((json_int_t)value);
	return json_real(value);
}

static json_t *cell_json(const struct ms_sweep *s, unsigned point)
{
	const struct ms_cell *c = &s->cell[point];
	json_t *object = json_object();
	char digest[17];

	json_object_set_new(object, "point", json_integer(point));
	json_object_set_new(object, "set", point_json(s, point));
	for (unsigned m = 0; m < s->kind->n_metrics; m++)
		json_object_set_new(object, s->kind->metric[m].name, metric_json(c->value[m]));
	if (c->rounds) {
		json_t *low = json_object(), *high = json_object();

		for (unsigned m = 0; m < s->kind->n_metrics; m++) {
			json_object_set_new(low, s->kind->metric[m].name, metric_json(c->low[m]));
			json_object_set_new(high, s->kind->metric[m].name, metric_json(c->high[m]));
		}
		json_object_set_new(object, "rounds", json_integer(c->rounds));
		json_object_set_new(object, "low", low);
		json_object_set_new(object, "high", high);
	}
	json_object_set_new(object, "limit", json_string(s->kind->limit_name(c->limit)));
	json_object_set_new(object, "limit_used", metric_json(c->used));
	json_object_set_new(object, "limit_text", json_string(c->text));
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)c->digest);
	json_object_set_new(object, "digest", json_string(digest));
	return object;
}

/* What each axis does to each metric that was measured in rounds. */
static json_t *effects_json(const struct ms_sweep *s)
{
	json_t *list = json_array();

	for (unsigned a = 0; a < s->axes.n; a++) {
		for (unsigned m = 0; m < s->kind->n_metrics; m++) {
			const struct ms_axis *axis = &s->axes.axis[a];
			struct ms_effect e;

			ms_sweep_effect(s, a, m, &e);
			if (e.known)
				json_array_append_new(
					list,
					json_pack("{s:s, s:s, s:b, s:f, s:f, s:s, s:s}", "axis",
						  axis->name, "metric", s->kind->metric[m].name,
						  "stands_out", e.stands_out, "between_percent",
						  100 * e.between, "noise_percent", 100 * e.noise,
						  "least_at", axis->value[e.least], "most_at",
						  axis->value[e.most]));
		}
	}
	return list;
}

json_t *ms_sweep_json(const struct ms_sweep *s)
{
	json_t *object = ho_json_begin("sweep"), *axes = json_array(), *set = json_object(),
	       *cells = json_array();
	unsigned best = ms_sweep_best(s);
	char digest[17];

	for (unsigned a = 0; a < s->axes.n; a++) {
		json_t *values = json_array();

		for (unsigned v = 0; v < s->axes.axis[a].n; v++)
			json_array_append_new(values, json_string(s->axes.axis[a].value[v]));
		json_array_append_new(axes, json_pack("{s:s, s:o}", "name", s->axes.axis[a].name,
						      "values", values));
	}
	for (unsigned i = 0; i < s->set.n; i++)
		json_object_set_new(set, s->set.axis[i].name, json_string(s->set.axis[i].value[0]));
	for (unsigned i = 0; i < s->points; i++)
		if (s->cell[i].present)
			json_array_append_new(cells, cell_json(s, i));
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)s->digest);
	json_object_set_new(object, "target", json_string(s->target));
	json_object_set_new(object, "title", json_string(s->title));
	json_object_set_new(object, "version", json_string(s->version));
	json_object_set_new(object, "digest", json_string(digest));
	json_object_set_new(object, "set", set);
	json_object_set_new(object, "axes", axes);
	json_object_set_new(object, "points", json_integer(s->points));
	if (s->shards > 1)
		json_object_set_new(
			object, "shard",
			json_pack("{s:i, s:i}", "number", (int)s->shard + 1, "of", (int)s->shards));
	json_object_set_new(object, "metric", json_string(s->kind->metric[s->metric].name));
	json_object_set_new(object, "better", json_string(s->less ? "less" : "more"));
	json_object_set_new(object, "best", best < s->points ? cell_json(s, best) : json_null());
	json_object_set_new(object, "cells", cells);
	if (s->kind->live)
		json_object_set_new(object, "effects", effects_json(s));
	return object;
}

/* RFC 4180: quoted where it must be. */
static void csv_text(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

int ms_sweep_csv(const struct ms_sweep *s, FILE *out)
{
	struct ms_set set[MS_AXES_MAX];

	errno = 0;
	fputs("point", out);
	for (unsigned a = 0; a < s->axes.n; a++) {
		putc(',', out);
		csv_text(out, s->axes.axis[a].name);
	}
	for (unsigned m = 0; m < s->kind->n_metrics; m++)
		fprintf(out, ",%s", s->kind->metric[m].name);
	fputs(",limit,limit_used,limit_text\r\n", out);
	for (unsigned i = 0; i < s->points; i++) {
		const struct ms_cell *c = &s->cell[i];
		struct ms_point p = ms_axes_point(&s->axes, i, set);

		if (!c->present)
			continue;
		fprintf(out, "%u", i);
		for (unsigned a = 0; a < p.n; a++) {
			putc(',', out);
			csv_text(out, p.set[a].value);
		}
		for (unsigned m = 0; m < s->kind->n_metrics; m++) {
			putc(',', out);
			if (!isnan(c->value[m]))
				fprintf(out, "%.9g", c->value[m]);
		}
		fprintf(out, ",%s,", s->kind->limit_name(c->limit));
		if (!isnan(c->used))
			fprintf(out, "%.9g", c->used);
		putc(',', out);
		csv_text(out, c->text);
		fputs("\r\n", out);
	}
	return fflush(out) == 0 && !ferror(out) ? 0 : errno ? -errno : -EIO;
}

/* --- in ------------------------------------------------------------------------------------- */

/* What is being joined; `first` is the file that the sweep's description is from. */
struct merge {
	struct ms_sweep *sweep;
	const char *first;
	const char **from; /* of each point that is there */
	unsigned shards;   /* as the first file says; 0 = it is no shard */
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static int not_ours(const char *file, const char *what, struct ho_err *err)
{
	return ho_err_set(err, -EINVAL, "%s: not what 'holdoff sweep -j' prints: %s", file, what);
}

/* Values as they are: no separators, no ranges. */
static int add_axis(struct ms_axes *axes, const char *name, const json_t *values,
		    struct ho_err *err)
{
	struct ms_axis *axis;

	if (axes->n == MS_AXES_MAX || !json_array_size(values) ||
	    json_array_size(values) > MS_VALUES_MAX)
		return -EINVAL;
	axis = &axes->axis[axes->n++];
	*axis = (struct ms_axis){ .name = strdup(name),
				  .value = calloc(json_array_size(values), sizeof(char *)) };
	if (!axis->name || !axis->value)
		return ho_err_set(err, -ENOMEM, "out of memory for the values of a grid");
	for (size_t v = 0; v < json_array_size(values); v++) {
		const char *text = json_string_value(json_array_get(values, v));

		axis->value[v] = text ? strdup(text) : NULL;
		if (!axis->value[v])
			return -EINVAL;
		axis->n++;
	}
	return 0;
}

static int read_axes(struct ms_sweep *s, const char *file, const json_t *object, struct ho_err *err)
{
	json_t *axes = json_object_get(object, "axes"), *set = json_object_get(object, "set");
	const char *key;
	json_t *value;
	size_t i;
	int rc = 0;

	json_array_foreach (axes, i, value) {
		rc = add_axis(&s->axes, text_of(value, "name"), json_object_get(value, "values"),
			      err);
		if (rc < 0)
			return rc == -EINVAL ? not_ours(file, "its axes", err) : rc;
	}
	json_object_foreach (set, key, value) {
		json_t *one = json_pack("[O]", value);

		rc = add_axis(&s->set, key, one, err);
		json_decref(one);
		if (rc < 0)
			return rc == -EINVAL ? not_ours(file, "its settings", err) : rc;
	}
	return 0;
}

/* What the sweep is, from one of its files. */
static int read_head(struct ms_sweep *s, const char *file, const json_t *object, struct ho_err *err)
{
	const char *rest, *digest = text_of(object, "digest");
	char *end;
	int rc;

	s->shards = 1;
	s->target = strdup(text_of(object, "target"));
	s->title = strdup(text_of(object, "title"));
	s->version = strdup(text_of(object, "version"));
	if (!s->target || !s->title || !s->version)
		return ho_err_set(err, -ENOMEM, "out of memory for a sweep");
	rc = ms_target_kind_of(s->target, &s->kind, &rest, err);
	if (rc == 0)
		rc = ms_sweep_metric(s, text_of(object, "metric"), err);
	s->less = !strcmp(text_of(object, "better"), "less");
	if (rc < 0) {
		ho_err_prefix(err, "%s", file);
		return rc;
	}
	s->digest = strtoull(digest, &end, 16);
	if (!*digest || *end)
		return not_ours(file, "its digest", err);
	rc = read_axes(s, file, object, err);
	if (rc == 0)
		rc = ms_axes_points(&s->axes, &s->points, err);
	if (rc < 0)
		return rc;
	if (json_integer_value(json_object_get(object, "points")) != (json_int_t)s->points)
		return not_ours(file, "its number of points", err);
	s->cell = calloc(s->points, sizeof(*s->cell));
	return s->cell ? 0 : ho_err_set(err, -ENOMEM, "out of memory for %u points", s->points);
}

static bool same_axes(const struct ms_axes *a, const struct ms_axes *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		if (strcmp(a->axis[i].name, b->axis[i].name) || a->axis[i].n != b->axis[i].n)
			return false;
		for (unsigned v = 0; v < a->axis[i].n; v++)
			if (strcmp(a->axis[i].value[v], b->axis[i].value[v]))
				return false;
	}
	return true;
}

/* Does another file's description say the same? */
static int compare(const struct ms_sweep *s, const char *first, const struct ms_sweep *o,
		   const char *file, struct ho_err *err)
{
	const char *what = NULL;

	if (strcmp(s->target, o->target))
		return ho_err_set(err, -EINVAL, "%s is a sweep of %s, %s one of %s", first,
				  s->target, file, o->target);
	if (strcmp(s->version, o->version))
		return ho_err_set(err, -EINVAL, "%s was made by holdoff %s, %s by %s", first,
				  s->version, file, o->version);
	if (!same_axes(&s->axes, &o->axes))
		what = "have other axes or values";
	else if (!same_axes(&s->set, &o->set))
		what = "have other values set";
	else if (s->digest != o->digest)
		what = "were made with different scenarios or machine profiles";
	if (!what)
		return 0;
	return ho_err_set(err, -EINVAL, "%s and %s %s: they are not shards of one sweep", first,
			  file, what);
}

static int read_cell(struct merge *m, const char *file, const json_t *object, struct ho_err *err)
{
	struct ms_sweep *s = m->sweep;
	json_t *index = json_object_get(object, "point");
	json_int_t i = json_is_integer(index) ? json_integer_value(index) : -1;
	const char *limit = text_of(object, "limit");
	struct ms_cell c = { .present = true };
	char name[256];
	json_t *used;

	if (i < 0 || i >= (json_int_t)s->points)
		return not_ours(file, "the number of a point", err);
	if (s->cell[i].present)
		return ho_err_set(err, -EINVAL, "point %d (%s) is in %s and in %s", (int)i,
				  ms_sweep_point_name(s, (unsigned)i, name, sizeof(name)),
				  m->from[i], file);
	for (unsigned k = 0; k < s->kind->n_metrics; k++) {
		json_t *value = json_object_get(object, s->kind->metric[k].name);

		if (!value || !(json_is_number(value) || json_is_null(value)))
			return not_ours(file, s->kind->metric[k].name, err);
		c.value[k] = json_is_null(value) ? NAN : json_number_value(value);
	}
	while (s->kind->limit_letters[c.limit] && strcmp(s->kind->limit_name(c.limit), limit))
		c.limit++;
	if (!s->kind->limit_letters[c.limit])
		return not_ours(file, "what limits a point", err);
	c.rounds = (unsigned)json_integer_value(json_object_get(object, "rounds"));
	for (unsigned k = 0; c.rounds && k < s->kind->n_metrics; k++) {
		const char *key = s->kind->metric[k].name;
		json_t *low = json_object_get(json_object_get(object, "low"), key);
		json_t *high = json_object_get(json_object_get(object, "high"), key);

		c.low[k] = json_is_number(low) ? json_number_value(low) : NAN;
		c.high[k] = json_is_number(high) ? json_number_value(high) : NAN;
	}
	used = json_object_get(object, "limit_used");
	c.used = json_is_number(used) ? json_number_value(used) : NAN;
	c.digest = strtoull(text_of(object, "digest"), NULL, 16);
	snprintf(c.text, sizeof(c.text), "%s", text_of(object, "limit_text"));
	s->cell[i] = c;
	m->from[i] = file;
	return 0;
}

static int merge_object(struct merge *m, const char *file, const json_t *object, struct ho_err *err)
{
	struct ms_sweep other = { 0 };
	json_t *cells, *cell;
	size_t i;
	int rc;

	if (strcmp(text_of(object, "command"), "sweep") ||
	    json_integer_value(json_object_get(object, "schema")) != HO_JSON_SCHEMA)
		return not_ours(file, "its command or schema", err);
	if (!m->first) {
		rc = read_head(m->sweep, file, object, err);
		m->first = file;
		m->shards = (unsigned)json_integer_value(
			json_object_get(json_object_get(object, "shard"), "of"));
		m->from = rc == 0 ? calloc(m->sweep->points, sizeof(*m->from)) : NULL;
		if (rc == 0 && !m->from)
			rc = ho_err_set(err, -ENOMEM, "out of memory for a sweep");
	} else {
		rc = read_head(&other, file, object, err);
		if (rc == 0)
			rc = compare(m->sweep, m->first, &other, file, err);
		ms_sweep_fini(&other);
	}
	if (rc < 0)
		return rc;
	cells = json_object_get(object, "cells");
	if (!json_is_array(cells))
		return not_ours(file, "its cells", err);
	json_array_foreach (cells, i, cell) {
		rc = read_cell(m, file, cell, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Is something but white space left? */
static bool more(FILE *in)
{
	int c;

	do
		c = getc(in);
	while (c != EOF && isspace(c));
	if (c != EOF)
		ungetc(c, in);
	return c != EOF;
}

static int merge_file(struct merge *m, const char *file, struct ho_err *err)
{
	bool standard = !strcmp(file, "-");
	const char *name = standard ? "standard input" : file;
	FILE *in = stdin;
	int rc = standard ? 0 : ho_file_open(file, &in, err);

	if (rc < 0)
		return rc;
	if (!more(in))
		rc = not_ours(name, "it is empty", err);
	while (rc == 0 && more(in)) {
		json_error_t why;
		json_t *object =
			json_loadf(in, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &why);

		if (!object)
			rc = not_ours(name, why.text, err);
		else
			rc = merge_object(m, name, object, err);
		json_decref(object);
	}
	if (!standard)
		fclose(in);
	return rc;
}

static int check_complete(const struct merge *m, struct ho_err *err)
{
	const struct ms_sweep *s = m->sweep;
	unsigned missing = 0, first = 0;
	char name[256], shard[64] = "";

	for (unsigned i = s->points; i-- > 0;) {
		if (s->cell[i].present)
			continue;
		missing++;
		first = i;
	}
	if (!missing)
		return 0;
	if (m->shards)
		snprintf(shard, sizeof(shard), ", of shard %u/%u", first % m->shards + 1,
			 m->shards);
	return ho_err_set(err, -EINVAL, "%u of %u points are missing; the first is point %u (%s)%s",
			  missing, s->points, first,
			  ms_sweep_point_name(s, first, name, sizeof(name)), shard);
}

int ms_sweep_merge(struct ms_sweep *s, char *const *file, unsigned n, struct ho_err *err)
{
	struct merge m = { .sweep = s };
	int rc = 0;

	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = merge_file(&m, file[i], err);
	if (rc == 0)
		rc = check_complete(&m, err);
	free(m.from);
	return rc;
}
