/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors: a negative errno for the program, a sentence for the person.
 *
 * A function that can fail for a reason a user must understand takes a `struct ho_err *` as its
 * last parameter and returns ho_err_set(err, -EINVAL, "..."). Nobody but the command's top level
 * prints it. Messages name the thing, the value and the way out, begin in lower case and end
 * without a full stop: "xdp:eth7: no such interface; 'ip link' lists them".
 */
#ifndef HOLDOFF_BASE_ERROR_H
#define HOLDOFF_BASE_ERROR_H

#define HO_ERR_TEXT 512

struct ho_err {
	int code;               /* negative errno, 0 while nothing failed */
	char text[HO_ERR_TEXT]; /* one sentence, "" while nothing failed */
};

/*
 * Records code and message (printf format) and returns code. err may be NULL: then only the code
 * is passed on. A later call overwrites an earlier one.
 */
int ho_err_set(struct ho_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Puts "prefix: " before the message that err already holds, so that a caller can say in which
 * file or port it happened. Returns err's code; err may be NULL (returns 0).
 */
int ho_err_prefix(struct ho_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "Operation not permitted" for -EPERM; accepts either sign. Never NULL. */
const char *ho_strerror(int code);

#endif
