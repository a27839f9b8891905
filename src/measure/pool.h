/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Independent items of work in several processes, results in order: what is handed to `result` is
 * the same, in the same order, for any number of workers.
 *
 * Workers are forks of the caller, so they see what the caller has in memory and share nothing
 * afterwards; an item's result comes back as a struct of a fixed size. The caller must have no
 * other threads. Items are given out one by one, so that a slow one holds up nobody.
 *
 * After the first failure nothing more is given out, what came before it is finished, and the
 * failure of the lowest index is reported: that too does not depend on the number of workers. A
 * worker that dies is the failure of its item.
 *
 * SIGINT and SIGTERM, while ms_pool_run runs, end it with -EINTR; workers are killed on any way
 * out, and die with their parent.
 */
#ifndef HOLDOFF_MEASURE_POOL_H
#define HOLDOFF_MEASURE_POOL_H

#include <stddef.h>

#include "base/error.h"

#define MS_POOL_JOBS_MAX 256

struct ms_pool {
	unsigned items;
	unsigned jobs;       /* workers: 1 to MS_POOL_JOBS_MAX; never more than items */
	size_t result_bytes; /* of one item */
	void *ctx;           /* of the functions below */
	/* In a worker: does item i, and fills result (zeroed before). 0 or a negative errno with
	 * its sentence. */
	int (*work)(void *ctx, unsigned i, void *result, struct ho_err *err);
	/* In the caller, for each item in order; result is valid until it returns. A failure ends
	 * the run. */
	int (*result)(void *ctx, unsigned i, const void *result, struct ho_err *err);
	/* In the caller, whenever an item is done. May be NULL. */
	void (*progress)(void *ctx, unsigned done, unsigned items);
	/* What item i is, when its worker dies: "tx=256 rx-usecs=1". Returns buf. May be NULL. */
	const char *(*name)(void *ctx, unsigned i, char *buf, size_t bytes);
};

/*
 * Does all items. 0; -EINTR; what `work` returned, with its sentence; -ECHILD for a worker that
 * died; -EMFILE and the like if the workers cannot be made.
 */
int ms_pool_run(const struct ms_pool *pool, struct ho_err *err);

/* CPUs that this process may run on: a good number of jobs. */
unsigned ms_pool_cpus(void);

#endif
