/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Published tables: comma-separated values as data/published/ has them. Lines that begin with '#'
 * are remarks, the first other line names the columns, a cell may be empty; nothing is quoted.
 */
#ifndef HOLDOFF_LAB_PUBLISHED_H
#define HOLDOFF_LAB_PUBLISHED_H

#include "base/error.h"

struct lab_table {
	char *text;          /* what the cells point into */
	const char **column; /* n_columns names */
	const char **cell;   /* n_rows * n_columns, row by row; "" if empty */
	unsigned n_columns, n_rows;
};

/* Errors name file and line. */
int lab_table_read(const char *path, struct lab_table **out, struct ho_err *err);
/* NULL is allowed. */
void lab_table_free(struct lab_table *table);

/* Index of the column; -1 if there is none. */
int lab_table_column(const struct lab_table *table, const char *name);

static inline const char *lab_table_cell(const struct lab_table *table, unsigned row,
					 unsigned column)
{
	return table->cell[row * table->n_columns + column];
}

/* The cell as a number: 0, -ENODATA if it is empty, -EINVAL if it is no number. */
int lab_table_number(const struct lab_table *table, unsigned row, unsigned column, double *out);

#endif
