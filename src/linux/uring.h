/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several operations on file descriptors by one system call (io_uring(7), by liburing), each of
 * which the kernel ends before the call returns: for descriptors that take or give one frame a
 * call, where the system call is what costs.
 *
 *   for (i < n) fill *lx_uring_entry(u)    n at most the entries it was opened with
 *   lx_uring_run(u, res)                   res[i]: what read() or write() would have returned, or
 *                                          a negative errno
 *
 * The operations are begun in order. They must not wait: RWF_NOWAIT in rw_flags. By one thread at a
 * time.
 */
#ifndef HOLDOFF_LINUX_URING_H
#define HOLDOFF_LINUX_URING_H

#include <liburing.h>
#include <stdint.h>

#include "base/error.h"

struct lx_uring {
	struct io_uring ring;
	unsigned filled; /* entries of the next run */
};

/* `entries` a power of two. Negative errno when the kernel has none (-ENOSYS) or forbids it
 * (-EPERM); *out is NULL then. */
int lx_uring_open(unsigned entries, struct lx_uring **out, struct ho_err *err);

/* NULL is allowed. */
void lx_uring_close(struct lx_uring *u);

/* The next entry of the next run, for io_uring_prep_read() and the like. */
struct io_uring_sqe *lx_uring_entry(struct lx_uring *u);

/* Runs what was filled and waits for the end of all. One that the kernel did not take for lack of
 * memory has the result -EAGAIN. Returns the system calls made. */
unsigned lx_uring_run(struct lx_uring *u, int32_t *res);

#endif
