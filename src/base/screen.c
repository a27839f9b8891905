// SPDX-License-Identifier: BSD-2-Clause
#include "base/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/compiler.h"

/* What can be read well. */
#define WORDS_COLUMNS 100

unsigned ho_screen_lines(FILE *out)
{
	struct winsize size;

	if (!isatty(fileno(out)))
		return 0;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) < 0 || size.ws_row < 4)
		return 24;
	return size.ws_row;
}

unsigned ho_screen_columns(FILE *out)
{
	const char *says = getenv("COLUMNS");
	struct winsize size;

	if (!isatty(fileno(out)))
		return 0;
	if (says && atoi(says) >= 20)
		return (unsigned)atoi(says);
	if (ioctl(fileno(out), TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return 80;
	return size.ws_col;
}

void ho_print_words_behind(FILE *out, const char *head, const char *text, unsigned indent)
{
	unsigned screen = ho_screen_columns(out);
	size_t width = screen ? HO_MIN(screen, (unsigned)WORDS_COLUMNS) : WORDS_COLUMNS, at = 0;

	while (*text) {
		size_t word = strcspn(text, " \n");

		if (word && at && at + 1 + word > width) {
			fputc('\n', out);
			at = 0;
		}
		if (word) {
			size_t blanks = at ? 1 : indent;

			fprintf(out, "%-*s%.*s", (int)blanks, at ? "" : head, (int)word, text);
			at += blanks + word;
			head = "";
		}
		text += word;
		text += strspn(text, " \n");
	}
	if (at)
		fputc('\n', out);
}

void ho_print_words(FILE *out, const char *text, unsigned indent)
{
	ho_print_words_behind(out, "", text, indent);
}

const char *ho_list_line(const char *list, const char *between, unsigned room, size_t *bytes)
{
	size_t kept = strlen(between);
	const char *entry = list;

	while (kept && between[kept - 1] == ' ')
		kept--;
	*bytes = 0;
	for (;;) {
		const char *end = strstr(entry, between);
		size_t length = end ? (size_t)(end - list) + kept : strlen(list);

		if (*bytes && room && length > room)
			return entry;
		*bytes = length;
		if (!end)
			return NULL;
		entry = end + strlen(between);
	}
}

unsigned ho_print_list(FILE *out, const char *list, const char *between, unsigned indent)
{
	unsigned screen = ho_screen_columns(out), lines = 0;
	size_t bytes;

	while (list && *list) {
		const char *line = list;

		list = ho_list_line(line, between, screen > indent ? screen - indent : screen,
				    &bytes);
		fprintf(out, "%*s%.*s\n", (int)indent, "", (int)bytes, line);
		lines++;
	}
	return lines;
}
