/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of a text fits the terminal, and where its lines break. */
#ifndef HOLDOFF_BASE_SCREEN_H
#define HOLDOFF_BASE_SCREEN_H

#include <stddef.h>
#include <stdio.h>

/* Lines of the terminal that is written to; 0 when it is none. */
unsigned ho_screen_lines(FILE *out);

/* Its columns, or what COLUMNS says of it; 0 when it is none: then everything is printed as it is.
 */
unsigned ho_screen_columns(FILE *out);

/* Prints words, broken at blanks, each line behind `indent` blanks: 100 columns at most, and never
 * more than the terminal has. Ends with a new line, if there is a word. */
void ho_print_words(FILE *out, const char *text, unsigned indent);
/* The same; `head` stands in the first of these blanks. */
void ho_print_words_behind(FILE *out, const char *head, const char *text, unsigned indent);

/*
 * The first line of a list whose entries stand with `between` (", ") in between: as many whole
 * entries as fit `room` columns (0: all), one at least; the blanks at its end are left out. *bytes:
 * its length. Returns where the next line begins, NULL when that is all.
 */
const char *ho_list_line(const char *list, const char *between, unsigned room, size_t *bytes);

/* Prints the list, each line behind `indent` blanks and no longer than the terminal is wide, if an
 * entry is not. Returns how many lines that were. */
unsigned ho_print_list(FILE *out, const char *list, const char *between, unsigned indent);

#endif
