/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte queue limits: no more bytes in a transmit ring than the wire needs to stay busy, so that a
 * new frame does not stand behind a full ring.
 *
 *   sender --> mac_bql_tx --> port_tx --> ring --> wire
 *                  ^                        |
 *                  +-- mac_bql_completed <--+  the cleaner says how much was done
 *
 * The limit is Linux's dynamic queue limit (lib/dynamic_queue_limits): it grows when the queue ran
 * empty although more could have been queued, and shrinks by the least slack seen in a second.
 *
 * Threads: mac_bql_tx on one, mac_bql_completed on one, which may be another.
 */
#ifndef HOLDOFF_MAC_BQL_H
#define HOLDOFF_MAC_BQL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "port/port.h"

#define MAC_DQL_MAX_LIMIT (UINT32_MAX / 2 - UINT32_MAX / 16)
#define MAC_DQL_HOLD_NS   1000000000ull

/* Counts of bytes wrap; only differences count. */
struct mac_dql {
	/* the sender's */
	uint32_t queued;
	uint32_t last_queued; /* bytes of its last queueing */
	/* the cleaner's; adj_limit is read by the sender */
	uint32_t adj_limit HO_CACHE_ALIGNED; /* limit + completed: room while queued <= it */
	uint32_t completed;
	uint32_t limit;
	uint32_t prev_over, prev_queued, prev_last; /* at the last completion */
	uint32_t lowest_slack;
	uint64_t slack_start_ns, hold_ns;
	uint32_t min_limit, max_limit;
};

void mac_dql_init(struct mac_dql *dql, uint64_t hold_ns, uint64_t now_ns);

/* `bytes` (all at once one object, as the algorithm calls it) were queued. */
static inline void mac_dql_queued(struct mac_dql *dql, uint32_t bytes)
{
	dql->last_queued = bytes;
	__atomic_store_n(&dql->queued, dql->queued + bytes, __ATOMIC_RELEASE);
}

/* Bytes that may still be queued; negative = over the limit. */
static inline int32_t mac_dql_avail(const struct mac_dql *dql)
{
	return (int32_t)(__atomic_load_n(&dql->adj_limit, __ATOMIC_RELAXED) -
			 __atomic_load_n(&dql->queued, __ATOMIC_RELAXED));
}

/* `bytes` (at most what is queued) were completed at now_ns: recalculates the limit. */
void mac_dql_completed(struct mac_dql *dql, uint32_t bytes, uint64_t now_ns);

/* The limit of one transmit queue. */
struct mac_bql {
	struct mac_dql dql;
	struct port_txq *q;
	uint32_t on;
	uint32_t stopped HO_CACHE_ALIGNED; /* over the limit: the cleaner restarts */
	uint64_t stops;
	/* Told how many frames each cleaning took back, on or off; NULL = nobody listens. */
	void (*cleaned)(void *arg, uint32_t frames);
	void *cleaned_arg;
};

/* Off: mac_bql_tx is port_tx. */
void mac_bql_init(struct mac_bql *bql, struct port_txq *q, bool on);

/* Like port_tx, but takes nothing while the queue is over its limit. A frame that passes the limit
 * is still taken. */
unsigned mac_bql_tx(struct mac_bql *bql, struct pk_slot *slots, unsigned n);

/* Would mac_bql_tx take nothing just now? */
static inline bool mac_bql_stopped(const struct mac_bql *bql)
{
	return __atomic_load_n(&bql->stopped, __ATOMIC_RELAXED) || port_tx_stopped(bql->q);
}

/* The cleaner's report; called after each cleaning, 0 packets is allowed. */
void mac_bql_completed(struct mac_bql *bql, const struct port_work *done);

#endif
