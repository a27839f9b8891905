// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib_reclaim.h"

#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "base/compiler.h"

static_assert(sizeof(struct rcu_head) <= sizeof(((struct fib_deferred *)0)->hook),
	      "a batch has room for an rcu_head");

static void qsbr_done(struct rcu_head *head)
{
	struct fib_deferred *d =
		HO_CONTAINER_OF((uintptr_t *)(void *)head, struct fib_deferred, hook[0]);

	d->done(d);
}

static void qsbr_defer(void *ctx, struct fib_deferred *d)
{
	urcu_qsbr_call_rcu((struct rcu_head *)(void *)d->hook, qsbr_done);
}

static void qsbr_barrier(void *ctx)
{
	urcu_qsbr_barrier();
}

const struct fib_reclaim fib_reclaim_qsbr = { qsbr_defer, qsbr_barrier, NULL };
