/* SPDX-License-Identifier: BSD-2-Clause */
/* What the program says beside its data: notes and warnings, on standard error. */
#ifndef HOLDOFF_BASE_LOG_H
#define HOLDOFF_BASE_LOG_H

enum ho_log_level {
	HO_LOG_QUIET,   /* only what fails */
	HO_LOG_WARN,    /* a fallback that costs something, a result that may mislead */
	HO_LOG_NOTE,    /* which of several ways was taken */
	HO_LOG_VERBOSE, /* each step */
};

/* Process-wide; the default is HO_LOG_NOTE. */
void ho_log_set_level(enum ho_log_level level);

/* Prints "holdoff: " and the message with a newline. Never called for a packet. */
void ho_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ho_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ho_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
