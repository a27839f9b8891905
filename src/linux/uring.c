// SPDX-License-Identifier: BSD-2-Clause
#include "linux/uring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system calls have no functions in the C library. */
static int ring_setup(unsigned entries, struct io_uring_params *params)
{
	return (int)syscall(SYS_io_uring_setup, entries, params);
}

static int ring_enter(const struct lx_uring *u, unsigned submit, unsigned wait)
{
	return (int)syscall(SYS_io_uring_enter, u->fd, submit, wait,
			    wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
}

static void *map(const struct lx_uring *u, size_t bytes, off_t what)
{
	void *at =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u->fd, what);

	return at == MAP_FAILED ? NULL : at;
}

int lx_uring_open(unsigned entries, struct lx_uring **out, struct ho_err *err)
{
	struct io_uring_params params = { 0 };
	struct lx_uring *u = calloc(1, sizeof(*u));
	uint32_t *array;
	int rc;

	*out = NULL;
	if (!u)
		return ho_err_set(err, -ENOMEM, "out of memory");
	u->fd = ring_setup(entries, &params);
	if (u->fd < 0) {
		rc = -errno;
		free(u);
		return ho_err_set(err, rc, "%s",
				  rc == -EPERM ? "io_uring is forbidden here" : ho_strerror(rc));
	}
	u->sq_bytes = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
	u->cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	u->entry_bytes = params.sq_entries * sizeof(struct io_uring_sqe);
	u->sq_map = map(u, u->sq_bytes, IORING_OFF_SQ_RING);
	u->cq_map = map(u, u->cq_bytes, IORING_OFF_CQ_RING);
	u->entry = map(u, u->entry_bytes, IORING_OFF_SQES);
	if (!u->sq_map || !u->cq_map || !u->entry) {
		rc = -errno;
		lx_uring_close(u);
		return ho_err_set(err, rc, "cannot map it: %s", ho_strerror(rc));
	}
	u->head = (uint32_t *)((char *)u->sq_map + params.sq_off.head);
	u->tail = (uint32_t *)((char *)u->sq_map + params.sq_off.tail);
	u->cq_head = (uint32_t *)((char *)u->cq_map + params.cq_off.head);
	u->cq_tail = (uint32_t *)((char *)u->cq_map + params.cq_off.tail);
	u->result = (struct io_uring_cqe *)((char *)u->cq_map + params.cq_off.cqes);
	u->mask = params.sq_entries - 1;
	u->cq_mask = params.cq_entries - 1;
	/* Entry i of the queue is always entry i of the array. */
	array = (uint32_t *)((char *)u->sq_map + params.sq_off.array);
	for (unsigned i = 0; i < params.sq_entries; i++)
		array[i] = i;
	*out = u;
	return 0;
}

void lx_uring_close(struct lx_uring *u)
{
	if (!u)
		return;
	if (u->entry)
		munmap(u->entry, u->entry_bytes);
	if (u->cq_map)
		munmap(u->cq_map, u->cq_bytes);
	if (u->sq_map)
		munmap(u->sq_map, u->sq_bytes);
	close(u->fd);
	free(u);
}

/* Takes the results that are there. */
static unsigned collect(struct lx_uring *u, int32_t *res)
{
	uint32_t head = *u->cq_head, tail = __atomic_load_n(u->cq_tail, __ATOMIC_ACQUIRE), at;

	for (at = head; at != tail; at++)
		res[u->result[at & u->cq_mask].user_data] = u->result[at & u->cq_mask].res;
	__atomic_store_n(u->cq_head, tail, __ATOMIC_RELEASE);
	return tail - head;
}

unsigned lx_uring_run(struct lx_uring *u, unsigned n, int32_t *res)
{
	unsigned taken = 0, done = 0, calls = 0;

	for (unsigned i = 0; i < n; i++)
		lx_uring_entry(u, i)->user_data = i;
	__atomic_store_n(u->tail, *u->tail + n, __ATOMIC_RELEASE);
	while (taken < n) {
		int rc = ring_enter(u, n - taken, 0);

		calls++;
		if (rc < 0 && errno == EINTR)
			continue;
		if (rc <= 0)
			break;
		taken += (unsigned)rc;
	}
	/* What it did not take is ours again. */
	if (ho_unlikely(taken < n)) {
		__atomic_store_n(u->tail, __atomic_load_n(u->head, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
		for (unsigned i = taken; i < n; i++)
			res[i] = -EAGAIN;
	}
	for (done = collect(u, res); ho_unlikely(done < taken); done += collect(u, res)) {
		ring_enter(u, 0, taken - done);
		calls++;
	}
	return calls;
}
