/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When memory that readers of a FIB may still look at can be used again. The FIB hands over what
 * it retired in batches; the hook calls back after a grace period: a time after which no reader is
 * inside of a lookup that began before. Without a hook (NULL) there is no reader while the writer
 * writes, as in a program of one thread and in the lab, and memory is used again at once.
 */
#ifndef HOLDOFF_ROUTE_FIB_RECLAIM_H
#define HOLDOFF_ROUTE_FIB_RECLAIM_H

#include <stdint.h>

/* A batch. It belongs to the hook from defer() until the hook calls done(). */
struct fib_deferred {
	void (*done)(struct fib_deferred *d);
	struct fib_deferred *next; /* the hook may link batches by it */
	uintptr_t hook[4];         /* the hook's own, say a struct rcu_head */
};

struct fib_reclaim {
	/*
	 * Called by the writer, never blocks. Must call d->done(d) once, from any thread, when each
	 * lookup that runs now has ended; not from inside of this call.
	 */
	void (*defer)(void *ctx, struct fib_deferred *d);
	/* Returns when done() of every batch handed over before has returned. */
	void (*barrier)(void *ctx);
	void *ctx;
};

/*
 * liburcu's quiescent-state flavour: call_rcu and rcu_barrier of <urcu/urcu-qsbr.h>. Readers are
 * threads registered with urcu_qsbr_register_thread(), each bulk lookup lies between two quiescent
 * states. The writer must be registered as well.
 */
extern const struct fib_reclaim fib_reclaim_qsbr;

#endif
