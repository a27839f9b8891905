// SPDX-License-Identifier: BSD-2-Clause
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

/* A process has one standard error and so one level for it. */
static enum ho_log_level log_level = HO_LOG_NOTE;

void ho_log_set_level(enum ho_log_level level)
{
	__atomic_store_n(&log_level, level, __ATOMIC_RELAXED);
}

static void log_print(enum ho_log_level level, const char *fmt, va_list ap)
{
	char line[1024];

	if (level > __atomic_load_n(&log_level, __ATOMIC_RELAXED))
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	/* One call, so that lines of several threads do not mix. */
	fprintf(stderr, "holdoff: %s\n", line);
}

#define LOG_FUNCTION(name, level)          \
	void name(const char *fmt, ...)    \
	{                                  \
		va_list ap;                \
		va_start(ap, fmt);         \
		log_print(level, fmt, ap); \
		va_end(ap);                \
	}

LOG_FUNCTION(ho_warn, HO_LOG_WARN)
LOG_FUNCTION(ho_note, HO_LOG_NOTE)
LOG_FUNCTION(ho_verbose, HO_LOG_VERBOSE)
