// SPDX-License-Identifier: BSD-2-Clause
#include "base/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

static void print_line(struct ho_table *table, const char *(*text)(struct ho_table *, unsigned))
{
	char line[HO_TABLE_COLUMNS * (HO_TABLE_CELL + 2) + 1];
	size_t used = 0;

	for (unsigned i = 0; i < table->n && used < sizeof(line); i++)
		if (!table->hidden[i])
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%*s",
						 used ? "  " : "", table->width[i], text(table, i));
	used = used < sizeof(line) ? used : sizeof(line) - 1;
	if (table->line && used > table->line)
		used = table->line;
	while (used && line[used - 1] == ' ')
		used--;
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
