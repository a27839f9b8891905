/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables for people: columns of fixed width, so that a row can be printed a second without
 * knowing the later ones. The header is repeated on request.
 */
#ifndef HOLDOFF_BASE_TABLE_H
#define HOLDOFF_BASE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define HO_TABLE_COLUMNS 24
#define HO_TABLE_CELL    48

struct ho_table {
	FILE *out;
	unsigned n;                                 /* columns */
	const char *title[HO_TABLE_COLUMNS];        /* not copied */
	int width[HO_TABLE_COLUMNS];                /* negative = left aligned */
	char cell[HO_TABLE_COLUMNS][HO_TABLE_CELL]; /* of the row being filled */
	unsigned filled;
	unsigned line;                 /* no line is longer; 0 = they may be */
	bool hidden[HO_TABLE_COLUMNS]; /* columns for which there is no room */
};

void ho_table_init(struct ho_table *table, FILE *out);
/* width as in printf: negative aligns left. At most HO_TABLE_COLUMNS. */
void ho_table_column(struct ho_table *table, const char *title, int width);
/* For a screen of so many columns (0 = all the room there is): hides what stands in `first`, a list
 * that ends with NULL, from its beginning on, until the rest fits; cuts lines that are longer
 * still. Cells of hidden columns are filled as ever. */
void ho_table_fit(struct ho_table *table, unsigned screen, const char *const *first);
void ho_table_header(struct ho_table *table);
/* Sets the next cell of the row. */
void ho_table_cell(struct ho_table *table, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints the row and begins the next; flushes, so that a reader at the other end of a pipe sees
 * each second as it happens. -EPIPE when the reader has gone. */
int ho_table_row(struct ho_table *table);
/* The same, with a list (its entries with `between` in between) behind the last cell that is set;
 * where that line has no room for all of it, on lines of its own below, which begin under the
 * second column. *lines: how many were printed. */
int ho_table_row_list(struct ho_table *table, const char *list, const char *between,
		      unsigned *lines);

#endif
