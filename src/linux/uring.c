// SPDX-License-Identifier: BSD-2-Clause
#include "linux/uring.h"

#include <errno.h>
#include <stdlib.h>

#include "base/compiler.h"

int lx_uring_open(unsigned entries, struct lx_uring **out, struct ho_err *err)
{
	struct lx_uring *u = calloc(1, sizeof(*u));
	int rc;

	*out = NULL;
	if (!u)
		return ho_err_set(err, -ENOMEM, "out of memory");
	rc = io_uring_queue_init(entries, &u->ring, 0);
	if (rc < 0) {
		free(u);
		return ho_err_set(err, rc, "%s",
				  rc == -EPERM ? "io_uring is forbidden here" : ho_strerror(rc));
	}
	*out = u;
	return 0;
}

void lx_uring_close(struct lx_uring *u)
{
	if (!u)
		return;
	io_uring_queue_exit(&u->ring);
	free(u);
}

struct io_uring_sqe *lx_uring_entry(struct lx_uring *u)
{
	struct io_uring_sqe *e = io_uring_get_sqe(&u->ring);

	e->user_data = u->filled++; /* io_uring_prep_*() leave it as it is */
	return e;
}

/* What the kernel did not take is ours again. */
static void take_back(struct io_uring_sq *sq)
{
	unsigned head = __atomic_load_n(sq->khead, __ATOMIC_ACQUIRE);

	__atomic_store_n(sq->ktail, head, __ATOMIC_RELEASE);
	sq->sqe_head = sq->sqe_tail = head;
}

unsigned lx_uring_run(struct lx_uring *u, int32_t *res)
{
	unsigned taken = 0, done = 0, calls = 0, at;

	while (taken < u->filled) {
		int rc = io_uring_submit(&u->ring);

		calls++;
		if (rc == -EINTR)
			continue;
		if (rc <= 0)
			break;
		taken += (unsigned)rc;
	}
	if (ho_unlikely(taken < u->filled)) {
		take_back(&u->ring.sq);
		for (unsigned i = taken; i < u->filled; i++)
			res[i] = -EAGAIN;
	}
	while (done < taken) {
		struct io_uring_cqe *cqe;
		unsigned n = 0;

		io_uring_for_each_cqe(&u->ring, at, cqe)
		{
			res[cqe->user_data] = cqe->res;
			n++;
		}
		io_uring_cq_advance(&u->ring, n);
		done += n;
		if (ho_unlikely(done < taken)) {
			io_uring_wait_cqe_nr(&u->ring, &cqe, 1);
			calls++;
		}
	}
	u->filled = 0;
	return calls;
}
