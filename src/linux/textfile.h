/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's small text files, below a root of our choice, and a reader for their words that
 * takes any text: what is not as expected is skipped, never an error.
 */
#ifndef HOLDOFF_LINUX_TEXTFILE_H
#define HOLDOFF_LINUX_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its memory is used again by the next reading. Zeroed at first. */
struct lx_text {
	char *at; /* ends with a zero byte; zero bytes inside became spaces */
	size_t n; /* without it */
	size_t room;
};

/* More than this is not read: no file of interest comes near. */
#define LX_TEXT_MAX (16u << 20)

/*
 * Reads root/path, made of printf's format; root NULL is "". -ENOENT and the like, -EFBIG,
 * -ENOMEM. On an error the text is empty.
 */
int lx_text_read(struct lx_text *text, const char *root, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void lx_text_fini(struct lx_text *text);

/* Whole small files: a number (decimal, or 0x), false if it is none; a line without its end. */
bool lx_file_u64(const char *root, const char *path, uint64_t *out);
bool lx_file_line(const char *root, const char *path, char *buf, size_t bytes);
/* Writes the text in one call. Negative errno. */
int lx_file_write(const char *root, const char *path, const char *text);

/* ---- Words ---- */

/* A place in a text. */
struct lx_scan {
	const char *p, *end;
};

static inline struct lx_scan lx_scan_text(const struct lx_text *text)
{
	const char *at = text->n ? text->at : "";

	return (struct lx_scan){ at, at + text->n };
}

/* The next line, without its end, as a scan of its own; false after the last. */
bool lx_scan_line(struct lx_scan *scan, struct lx_scan *line);

/* The next word (of anything but blanks), not terminated; false when there is none. */
bool lx_scan_word(struct lx_scan *scan, const char **word, size_t *n);

/* The next word, if it is an unsigned number of that base and nothing else; otherwise stays where
 * it is. Numbers beyond 64 bits are none. */
bool lx_scan_u64(struct lx_scan *scan, int base, uint64_t *out);

/* Takes this text if it comes next, after blanks. */
bool lx_scan_take(struct lx_scan *scan, const char *text);

/* What is left, without blanks at both ends, cut to the buffer, control characters as '?'. */
void lx_scan_rest(struct lx_scan *scan, char *buf, size_t bytes);

/* Is this word that text? */
bool lx_word_is(const char *word, size_t n, const char *text);

#endif
