// SPDX-License-Identifier: BSD-2-Clause
#include "lab/published.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define TABLE_BYTES_MAX (1u << 20)

static int read_text(const char *path, char **text, struct ho_err *err)
{
	size_t bytes;
	int rc = ho_file_read(path, TABLE_BYTES_MAX, text, &bytes, err);

	if (rc == 0 && strlen(*text) != bytes) {
		rc = ho_err_set(err, -EINVAL, "%s: a zero byte: this is no table", path);
		free(*text);
	}
	return rc;
}

static unsigned count(const char *text, char ch)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == ch;
	return n;
}

/* Cuts a line into exactly n cells. */
static int cut(char *line, const char **cell, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		cell[i] = strsep(&line, ",");
		if (!cell[i])
			return -EINVAL;
	}
	return line ? -EINVAL : 0;
}

static int take_line(struct lab_table *t, char *line, unsigned lines, const char *path,
		     unsigned number, struct ho_err *err)
{
	if (!t->column) {
		t->n_columns = count(line, ',') + 1;
		t->column = calloc(t->n_columns, sizeof(*t->column));
		t->cell = calloc((size_t)t->n_columns * lines, sizeof(*t->cell));
		if (!t->column || !t->cell)
			return ho_err_set(err, -ENOMEM, "out of memory");
		return cut(line, t->column, t->n_columns);
	}
	if (cut(line, &t->cell[t->n_rows * t->n_columns], t->n_columns))
		return ho_err_set(err, -EINVAL, "%s:%u: the table has %u columns, this line not",
				  path, number, t->n_columns);
	t->n_rows++;
	return 0;
}

int lab_table_read(const char *path, struct lab_table **out, struct ho_err *err)
{
	struct lab_table *t = calloc(1, sizeof(*t));
	unsigned lines, number = 0;
	char *rest, *line;
	int rc;

	if (!t)
		return ho_err_set(err, -ENOMEM, "out of memory");
	rc = read_text(path, &t->text, err);
	if (rc) {
		free(t);
		return rc;
	}
	lines = count(t->text, '\n') + 1;
	rest = t->text;
	while (!rc && (line = strsep(&rest, "\n"))) {
		number++;
		line[strcspn(line, "\r")] = 0;
		if (*line && *line != '#')
			rc = take_line(t, line, lines, path, number, err);
	}
	if (!rc && !t->column)
		rc = ho_err_set(err, -EINVAL, "%s: there is no line with the columns' names", path);
	if (rc) {
		lab_table_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void lab_table_free(struct lab_table *t)
{
	if (!t)
		return;
	free(t->column);
	free(t->cell);
	free(t->text);
	free(t);
}

int lab_table_column(const struct lab_table *t, const char *name)
{
	for (unsigned i = 0; i < t->n_columns; i++)
		if (!strcmp(t->column[i], name))
			return (int)i;
	return -1;
}

int lab_table_number(const struct lab_table *t, unsigned row, unsigned column, double *out)
{
	const char *text = lab_table_cell(t, row, column);
	char *end;

	if (!*text)
		return -ENODATA;
	*out = strtod(text, &end);
	return *end ? -EINVAL : 0;
}
