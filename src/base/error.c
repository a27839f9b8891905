// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int ho_err_set(struct ho_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int ho_err_prefix(struct ho_err *err, const char *fmt, ...)
{
	char old[HO_ERR_TEXT];
	va_list ap;
	int n;

	if (!err)
		return 0;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->text))
		snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", old);
	return err->code;
}

const char *ho_strerror(int code)
{
	const char *text = strerrordesc_np(code < 0 ? -code : code);

	return text ? text : "unknown error";
}
