// SPDX-License-Identifier: BSD-2-Clause
#include "measure/axis.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static int out_of_memory(struct ho_err *err)
{
	return ho_err_set(err, -ENOMEM, "out of memory for the values of a grid");
}

static int add_value(struct ms_axis *axis, const char *text, size_t length, struct ho_err *err)
{
	char **grown;

	if (!length)
		return ho_err_set(err, -EINVAL, "%s: a value is empty", axis->name);
	if (axis->n == MS_VALUES_MAX)
		return ho_err_set(err, -ERANGE, "%s: more than %d values", axis->name,
				  MS_VALUES_MAX);
	for (unsigned i = 0; i < axis->n; i++)
		if (strlen(axis->value[i]) == length && !memcmp(axis->value[i], text, length))
			return ho_err_set(err, -EINVAL, "%s: %s is given twice", axis->name,
					  axis->value[i]);
	grown = realloc(axis->value, (axis->n + 1) * sizeof(*grown));
	if (!grown)
		return out_of_memory(err);
	axis->value = grown;
	axis->value[axis->n] = strndup(text, length);
	if (!axis->value[axis->n])
		return out_of_memory(err);
	axis->n++;
	return 0;
}

/* "10gbps" -> 10 and "gbps". */
static bool number(const char *text, uint64_t *value, const char **unit)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	*unit = end;
	while (isalpha((unsigned char)*end))
		end++;
	return !errno && !*end;
}

/* "A..B", then perhaps "step N" or "step xN". Cuts text into pieces. */
static int add_range(struct ms_axis *axis, char *text, char *dots, struct ho_err *err)
{
	const char *whole = axis->name, *unit, *unit_to, *unit_step = "";
	uint64_t from, to, step = 1;
	bool times = false;
	const char *end;
	char *word;

	*dots = '\0';
	end = word = strtok_r(dots + 2, " \t", &dots);
	if (!word || !number(text, &from, &unit) || !number(word, &to, &unit_to) ||
	    strcmp(unit, unit_to))
		return ho_err_set(err, -EINVAL,
				  "%s: a range is FROM..TO, whole numbers with the same unit, "
				  "and perhaps ' step N' or ' step xN' after it",
				  whole);
	word = strtok_r(NULL, " \t", &dots);
	if (word) {
		const char *by = strcmp(word, "step") ? NULL : strtok_r(NULL, " \t", &dots);

		times = by && *by == 'x';
		if (!by || strtok_r(NULL, " \t", &dots) || !number(by + times, &step, &unit_step) ||
		    (*unit_step && (times || strcmp(unit_step, unit))))
			return ho_err_set(err, -EINVAL,
					  "%s: after a range, ' step N' (to add) or ' step xN' "
					  "(to multiply) may follow",
					  whole);
	}
	if (from > to)
		return ho_err_set(err, -EINVAL, "%s: %s..%s goes downwards", whole, text, end);
	if (step < 1u + times || (times && !from))
		return ho_err_set(err, -EINVAL, "%s: with a step of %s%llu the range has no end",
				  whole, times ? "x" : "", (unsigned long long)step);
	if (!times && (to - from) / step >= MS_VALUES_MAX)
		return ho_err_set(err, -ERANGE, "%s: a range of more than %d values", whole,
				  MS_VALUES_MAX);
	while (from <= to) {
		char value[64];
		uint64_t next;
		int rc, n = snprintf(value, sizeof(value), "%llu%s", (unsigned long long)from,
				     unit);

		if ((size_t)n >= sizeof(value))
			return ho_err_set(err, -EINVAL, "%s: '%s' is no unit", whole, unit);
		rc = add_value(axis, value, (size_t)n, err);
		if (rc < 0)
			return rc;
		if (times ? __builtin_mul_overflow(from, step, &next)
			  : __builtin_add_overflow(from, step, &next))
			break;
		from = next;
	}
	return 0;
}

static char *trim(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	n = strlen(text);
	while (n && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	return text;
}

static int add_values(struct ms_axis *axis, const char *values, struct ho_err *err)
{
	size_t bytes = strlen(values) + 1;
	char *element = malloc(bytes), *out = element;
	int rc = 0;

	if (!element)
		return out_of_memory(err);
	for (const char *in = values; rc == 0; in++) {
		char *dots, *text;

		if (in[0] == '\\' && in[1] == ',') {
			*out++ = *++in;
			continue;
		}
		if (*in && *in != ',') {
			*out++ = *in;
			continue;
		}
		*out = '\0';
		out = element;
		text = trim(element);
		dots = strstr(text, "..");
		rc = dots && isdigit((unsigned char)*text)
			     ? add_range(axis, text, dots, err)
			     : add_value(axis, text, strlen(text), err);
		if (!*in)
			break;
	}
	free(element);
	return rc;
}

int ms_axes_add(struct ms_axes *axes, const char *name, const char *values, struct ho_err *err)
{
	struct ms_axis *axis;

	if (ms_axes_get(axes, name))
		return ho_err_set(err, -EINVAL, "%s is given twice", name);
	if (axes->n == MS_AXES_MAX)
		return ho_err_set(err, -EINVAL, "%s: there can be %d axes and settings", name,
				  MS_AXES_MAX);
	axis = &axes->axis[axes->n++];
	*axis = (struct ms_axis){ .name = strdup(name) };
	if (!axis->name)
		return out_of_memory(err);
	return add_values(axis, values, err);
}

struct ms_axis *ms_axes_get(struct ms_axes *axes, const char *name)
{
	for (unsigned i = 0; i < axes->n; i++)
		if (!strcmp(axes->axis[i].name, name))
			return &axes->axis[i];
	return NULL;
}

void ms_axes_fini(struct ms_axes *axes)
{
	for (unsigned i = 0; i < axes->n; i++) {
		for (unsigned j = 0; j < axes->axis[i].n; j++)
			free(axes->axis[i].value[j]);
		free(axes->axis[i].value);
		free(axes->axis[i].name);
	}
	axes->n = 0;
}

int ms_axes_points(const struct ms_axes *axes, unsigned *points, struct ho_err *err)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < axes->n; i++) {
		n *= axes->axis[i].n;
		if (n > MS_POINTS_MAX)
			return ho_err_set(err, -ERANGE, "the grid has more than %d points",
					  MS_POINTS_MAX);
	}
	*points = (unsigned)n;
	return 0;
}

void ms_axes_at(const struct ms_axes *axes, unsigned i, unsigned at[MS_AXES_MAX])
{
	for (unsigned a = axes->n; a-- > 0;) {
		at[a] = i % axes->axis[a].n;
		i /= axes->axis[a].n;
	}
}

struct ms_point ms_axes_point(const struct ms_axes *axes, unsigned i,
			      struct ms_set set[MS_AXES_MAX])
{
	unsigned at[MS_AXES_MAX];

	ms_axes_at(axes, i, at);
	for (unsigned a = 0; a < axes->n; a++)
		set[a] = (struct ms_set){ axes->axis[a].name, axes->axis[a].value[at[a]] };
	return (struct ms_point){ set, axes->n };
}
