/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the netdev netlink family tells of an interface's queues and NAPI contexts, and setting
 * the latter. Documentation/netlink/specs/netdev.yaml: napi-get and queue-get since 6.8, qstats-get
 * since 6.10, napi-set since 6.13.
 */
#ifndef HOLDOFF_LINUX_NAPI_H
#define HOLDOFF_LINUX_NAPI_H

#include "linux/sample.h"

/*
 * The interface's contexts, by rising id, into *out (reallocated; *n of them). A context that is
 * not enabled (interface down) is not among them. -ENOENT, -EOPNOTSUPP: the kernel does not tell.
 * settings, if not NULL: were there deferral settings in the answers (6.13)?
 */
int lx_napi_list(unsigned ifindex, struct lx_napi **out, unsigned *n, bool *settings);

/* Which of a context's settings. */
enum lx_napi_setting {
	LX_NAPI_DEFER_HARD_IRQS,
	LX_NAPI_GRO_FLUSH_TIMEOUT,
	LX_NAPI_IRQ_SUSPEND_TIMEOUT,
};

/* Sets one on one context; says: what the kernel said of it, "" if nothing. Negative errno. */
int lx_napi_set(uint32_t id, enum lx_napi_setting what, uint64_t value, char *says, size_t bytes);

/*
 * All queues that the interface has in use, receive queues first, each by rising id, with their
 * contexts; counters 0. Into *out, reallocated. Errors as lx_napi_list.
 */
int lx_napi_queues(unsigned ifindex, struct lx_queue **out, unsigned *n);

/*
 * Adds the counters of the queues, for drivers that keep them so, to (sorted) queue[], and says
 * which are counted. Returns how many queues had some; queues that are not in the array are left
 * out.
 */
int lx_napi_qstats(unsigned ifindex, struct lx_queue *queue, unsigned n);

/* Order of struct lx_queue: receive queues first, by id. For qsort. */
int lx_queue_order(const void *a, const void *b);

#endif
