// SPDX-License-Identifier: BSD-2-Clause
#include "base/table.h"

#include <errno.h>
#include <stdarg.h>
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

static void print_line(struct ho_table *table, const char *(*text)(struct ho_table *, unsigned))
{
	char line[HO_TABLE_COLUMNS * (HO_TABLE_CELL + 2) + 1];
	size_t used = 0;

	for (unsigned i = 0; i < table->n && used < sizeof(line); i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%*s", i ? "  " : "",
					 table->width[i], text(table, i));
	used = used < sizeof(line) ? used : sizeof(line) - 1;
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
