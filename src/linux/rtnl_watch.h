/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Following the kernel's routing state: everything there is, then every change.
 *
 *   open        a socket in the kernel's groups: from now on no change is missed
 *   sync        dumps of links, addresses, rules, next hops, routes, neighbours
 *   read        changes since, in order; those that the dumps showed already come again
 *
 * If the kernel had to drop messages (ENOBUFS), state is unknown: read reports it, and the owner
 * calls sync again. Between `begin` and `end` everything that is true comes; what does not come is
 * gone.
 *
 * One thread uses it.
 */
#ifndef HOLDOFF_LINUX_RTNL_WATCH_H
#define HOLDOFF_LINUX_RTNL_WATCH_H

#include "linux/rtnl.h"

struct lx_watch;

/* What a dump is asked for, as bits; LX_DUMP_ALL in the order in which they are needed. */
enum lx_dump {
	LX_DUMP_LINKS = 1 << 0,
	LX_DUMP_ADDRS = 1 << 1,
	LX_DUMP_RULES = 1 << 2,
	LX_DUMP_NEXTHOPS = 1 << 3,
	LX_DUMP_ROUTES = 1 << 4, /* of the tables main and local, both families */
	LX_DUMP_NEIGHS = 1 << 5,
	LX_DUMP_ALL = (1 << 6) - 1,
};

struct lx_watch_stats {
	uint64_t messages; /* read as events */
	uint64_t broken;   /* that could not be parsed */
	uint64_t overruns; /* times that the kernel dropped some */
	uint64_t dumps;    /* of one kind each, repetitions included */
	uint64_t dumped;   /* messages in them */
};

/* Where messages go. A message is valid during the call. */
typedef void (*lx_watch_fn)(void *arg, const struct lx_rtnl *message);

int lx_watch_open(lx_watch_fn fn, void *arg, struct lx_watch **out, struct ho_err *err);
/* NULL is allowed. */
void lx_watch_close(struct lx_watch *watch);

/* Readable when read has something to do. */
int lx_watch_fd(const struct lx_watch *watch);

/*
 * Asks for all objects of these kinds (enum lx_dump) and hands each to fn. -EAGAIN: the kernel's
 * tables changed so fast that no dump of them was whole; what came may be incomplete, and it must
 * be asked for again. Others: the kernel refuses, with a sentence.
 */
int lx_watch_dump(struct lx_watch *watch, unsigned kinds, struct ho_err *err);

/*
 * Throws away what waits to be read, for somebody who is about to dump everything anyway: an old
 * event would undo for a moment what the dump says.
 */
void lx_watch_discard(struct lx_watch *watch);

/*
 * Hands up to about `limit` waiting messages to fn. Returns how many, 0 when none waits. -ENOBUFS:
 * some were lost. Other errors: the socket broke, with a sentence.
 */
int lx_watch_read(struct lx_watch *watch, unsigned limit, struct ho_err *err);

void lx_watch_read_stats(const struct lx_watch *watch, struct lx_watch_stats *out);

/* --- asking the kernel to find a neighbour --------------------------------------------------- */

/*
 * Makes the kernel behave as if it had just used this neighbour: it is asked for if it is not
 * known, verified if it is stale. The answer comes as an event. Negative errno: the kernel refused
 * (no such interface, no room for entries). Does not wait; needs CAP_NET_ADMIN.
 */
int lx_watch_use_neigh(struct lx_watch *watch, uint32_t index, const struct lx_ip *addr);

#endif
