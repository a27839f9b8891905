// SPDX-License-Identifier: BSD-2-Clause
#include "linux/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

#define FIRST_ROOM 8192u

static int open_below(const char *root, const char *path, int flags)
{
	char full[PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s/%s", root ? root : "", path), fd;

	if (n < 0 || (size_t)n >= sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Reads to the end: such files tell no size. */
static int read_all(struct lx_text *text, int fd)
{
	for (;;) {
		ssize_t got;

		/* One more for the zero byte. */
		if (text->room - text->n < FIRST_ROOM / 2) {
			size_t room = text->room ? 2 * text->room : FIRST_ROOM;
			char *grown;

			if (room > LX_TEXT_MAX)
				return -EFBIG;
			grown = realloc(text->at, room);
			if (!grown)
				return -ENOMEM;
			text->at = grown;
			text->room = room;
		}
		got = read(fd, text->at + text->n, text->room - text->n - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		text->n += (size_t)got;
	}
}

int lx_text_read(struct lx_text *text, const char *root, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int n, fd, rc;

	text->n = 0;
	if (text->at)
		text->at[0] = '\0';
	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open_below(root, path, O_RDONLY);
	if (fd < 0)
		return fd;
	rc = read_all(text, fd);
	close(fd);
	if (rc < 0)
		text->n = 0;
	if (text->at) {
		for (char *p = text->at; (p = memchr(p, 0, text->n - (size_t)(p - text->at)));)
			*p = ' ';
		text->at[text->n] = '\0';
	}
	return rc;
}

void lx_text_fini(struct lx_text *text)
{
	free(text->at);
	*text = (struct lx_text){ 0 };
}

bool lx_file_line(const char *root, const char *path, char *buf, size_t bytes)
{
	int fd = open_below(root, path, O_RDONLY);
	ssize_t n;

	buf[0] = '\0';
	if (fd < 0)
		return false;
	n = read(fd, buf, bytes - 1);
	close(fd);
	if (n <= 0) {
		buf[0] = '\0';
		return false;
	}
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

bool lx_file_u64(const char *root, const char *path, uint64_t *out)
{
	char line[64], *end;

	if (!lx_file_line(root, path, line, sizeof(line)) || line[0] < '0' || line[0] > '9')
		return false;
	errno = 0;
	*out = strtoull(line, &end, 0);
	return errno == 0 && *end == '\0';
}

int lx_file_write(const char *root, const char *path, const char *text)
{
	int fd = open_below(root, path, O_WRONLY), rc = 0;
	size_t n = strlen(text);
	ssize_t put;

	if (fd < 0)
		return fd;
	put = write(fd, text, n);
	if (put < 0)
		rc = -errno;
	else if ((size_t)put != n)
		rc = -EIO;
	close(fd);
	return rc;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct lx_scan *scan)
{
	while (scan->p < scan->end && blank(*scan->p))
		scan->p++;
}

bool lx_scan_line(struct lx_scan *scan, struct lx_scan *line)
{
	const char *nl;

	if (scan->p >= scan->end)
		return false;
	nl = memchr(scan->p, '\n', (size_t)(scan->end - scan->p));
	*line = (struct lx_scan){ scan->p, nl ? nl : scan->end };
	scan->p = nl ? nl + 1 : scan->end;
	return true;
}

bool lx_scan_word(struct lx_scan *scan, const char **word, size_t *n)
{
	skip_blanks(scan);
	*word = scan->p;
	while (scan->p < scan->end && !blank(*scan->p))
		scan->p++;
	*n = (size_t)(scan->p - *word);
	return *n > 0;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return INT_MAX;
}

bool lx_scan_u64(struct lx_scan *scan, int base, uint64_t *out)
{
	struct lx_scan at = *scan;
	const char *word;
	uint64_t value = 0;
	size_t n;

	if (!lx_scan_word(&at, &word, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		int digit = digit_of(word[i]);

		if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*scan = at;
	*out = value;
	return true;
}

bool lx_scan_take(struct lx_scan *scan, const char *text)
{
	size_t n = strlen(text);

	skip_blanks(scan);
	if ((size_t)(scan->end - scan->p) < n || memcmp(scan->p, text, n))
		return false;
	scan->p += n;
	return true;
}

void lx_scan_rest(struct lx_scan *scan, char *buf, size_t bytes)
{
	const char *end = scan->end;
	size_t n;

	skip_blanks(scan);
	while (end > scan->p && blank(end[-1]))
		end--;
	n = HO_MIN((size_t)(end - scan->p), bytes - 1);
	for (size_t i = 0; i < n; i++)
		buf[i] = scan->p[i];
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)buf[i] < ' ' || buf[i] == 0x7f)
			buf[i] = '?';
	}
	buf[n] = '\0';
	scan->p = scan->end;
}

bool lx_word_is(const char *word, size_t n, const char *text)
{
	return strlen(text) == n && !memcmp(word, text, n);
}
