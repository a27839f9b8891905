/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several operations on file descriptors by one system call (io_uring(7)), each of which the kernel
 * ends before the call returns: for descriptors that take or give one frame a call, where the
 * system call is what costs.
 *
 *   for (i < n) fill *lx_uring_entry(u, i)        n at most the entries it was opened with
 *   lx_uring_run(u, n, res)                       res[i]: what read() or write() would have
 * returned
 *
 * The operations are begun in order. They must not wait: RWF_NOWAIT in rw_flags. By one thread at a
 * time.
 */
#ifndef HOLDOFF_LINUX_URING_H
#define HOLDOFF_LINUX_URING_H

#include <linux/io_uring.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

struct lx_uring {
	int fd;
	uint32_t mask;    /* of the entries */
	uint32_t cq_mask; /* of the results */
	uint32_t *head;   /* of the entries, the kernel's */
	uint32_t *tail;   /* ours */
	uint32_t *cq_head, *cq_tail;
	struct io_uring_sqe *entry;
	struct io_uring_cqe *result;
	void *sq_map, *cq_map; /* mappings, and their sizes */
	size_t sq_bytes, cq_bytes, entry_bytes;
};

/* `entries` a power of two. Negative errno when the kernel has none (-ENOSYS) or forbids it
 * (-EPERM); *out is NULL then. */
int lx_uring_open(unsigned entries, struct lx_uring **out, struct ho_err *err);

/* NULL is allowed. */
void lx_uring_close(struct lx_uring *u);

/* The i-th entry of the next run: keeps what it was last filled with in no particular order, so all
 * that matters is to be set, user_data excepted. */
static inline struct io_uring_sqe *lx_uring_entry(const struct lx_uring *u, unsigned i)
{
	return &u->entry[(*u->tail + i) & u->mask];
}

/* Runs the first n entries and waits for the end of all. One that the kernel did not take for lack
 * of memory has the result -EAGAIN. Returns the system calls made. */
unsigned lx_uring_run(struct lx_uring *u, unsigned n, int32_t *res);

#endif
