// SPDX-License-Identifier: BSD-2-Clause
#include "base/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/screen.h"

void ho_table_init(struct ho_table *table, FILE *out)
{
	memset(table, 0, sizeof(*table));
	table->out = out;
}

void ho_table_column(struct ho_table *table, const char *title, int width)
{
	if (table->n == HO_TABLE_COLUMNS)
		return;
	table->title[table->n] = title;
	table->width[table->n++] = width;
}

static unsigned length(const struct ho_table *table, unsigned columns)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < columns; i++)
		if (!table->hidden[i])
			sum += (unsigned)abs(table->width[i]) + (sum ? 2 : 0);
	return sum;
}

void ho_table_fit(struct ho_table *table, unsigned screen, const char *const *first)
{
	memset(table->hidden, 0, sizeof(table->hidden));
	table->line = screen;
	for (; screen && *first && length(table, table->n) > screen; first++)
		for (unsigned i = 0; i < table->n; i++)
			if (!strcmp(table->title[i], *first))
				table->hidden[i] = true;
}

#define LINE_BYTES (HO_TABLE_COLUMNS * (HO_TABLE_CELL + 2) + 1)

/* The first `columns` of them, without blanks at the end; its length. */
static size_t make_line(struct ho_table *table, unsigned columns,
			const char *(*text)(struct ho_table *, unsigned), char line[LINE_BYTES])
{
	size_t used = 0;

	for (unsigned i = 0; i < columns && used < LINE_BYTES; i++)
		if (!table->hidden[i])
			used += (size_t)snprintf(line + used, LINE_BYTES - used, "%s%*s",
						 used ? "  " : "", table->width[i], text(table, i));
	used = used < LINE_BYTES ? used : LINE_BYTES - 1;
	if (table->line && used > table->line)
		used = table->line;
	while (used && line[used - 1] == ' ')
		used--;
	return used;
}

static void print_line(struct ho_table *table, const char *(*text)(struct ho_table *, unsigned))
{
	char line[LINE_BYTES];
	size_t used = make_line(table, table->n, text, line);

	fprintf(table->out, "%.*s\n", (int)used, line);
}

static const char *title_text(struct ho_table *table, unsigned i)
{
	return table->title[i];
}

static const char *cell_text(struct ho_table *table, unsigned i)
{
	return i < table->filled ? table->cell[i] : "";
}

void ho_table_header(struct ho_table *table)
{
	print_line(table, title_text);
}

void ho_table_cell(struct ho_table *table, const char *fmt, ...)
{
	va_list ap;

	if (table->filled == table->n)
		return;
	va_start(ap, fmt);
	vsnprintf(table->cell[table->filled++], HO_TABLE_CELL, fmt, ap);
	va_end(ap);
}

int ho_table_row(struct ho_table *table)
{
	print_line(table, cell_text);
	table->filled = 0;
	return fflush(table->out) == 0 ? 0 : -errno;
}

int ho_table_row_list(struct ho_table *table, const char *list, const char *between,
		      unsigned *lines)
{
	char line[LINE_BYTES];
	size_t used = make_line(table, table->filled, cell_text, line);
	/* Behind the last filled cell, under the next title. */
	size_t behind = HO_MAX((size_t)length(table, table->filled), used) + 2;

	table->filled = 0;
	*lines = 1;
	if (!*list)
		fprintf(table->out, "%.*s\n", (int)used, line);
	else if (!table->line || behind + strlen(list) <= table->line)
		fprintf(table->out, "%-*.*s%s\n", (int)behind, (int)used, line, list);
	else {
		fprintf(table->out, "%.*s\n", (int)used, line);
		*lines += ho_print_list(table->out, list, between,
					(unsigned)abs(table->width[0]) + 2);
	}
	return fflush(table->out) == 0 ? 0 : -errno;
}
