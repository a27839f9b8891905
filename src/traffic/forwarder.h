/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A task that moves frames between queue i of two ports, in both directions: the shortest possible
 * way through this program, and what it is compared with others by.
 *
 *   turn:  rx A --> rewrite --> tx B,  rx B --> rewrite --> tx A
 *
 * What the transmit ring has no room for is dropped (tx_ring_full): a forwarder that waits would
 * only move the loss to where nobody counts it.
 */
#ifndef HOLDOFF_TRAFFIC_FORWARDER_H
#define HOLDOFF_TRAFFIC_FORWARDER_H

#include "base/hist.h"
#include "port/port.h"
#include "traffic/stop.h"

enum tr_forward_mode {
	TR_FORWARD_IO,      /* frames as they are */
	TR_FORWARD_MAC,     /* new destination and source addresses */
	TR_FORWARD_MACSWAP, /* the two exchanged */
};

/* One direction. */
struct tr_forward_path {
	struct port_rxq *rxq; /* NULL = this direction is not used */
	struct port_txq *txq;
	uint8_t dst[6], src[6]; /* for TR_FORWARD_MAC */
};

struct tr_forwarder_config {
	struct rt *rt;
	struct tr_forward_path path[2]; /* all queues bound to one cache */
	enum tr_forward_mode mode;
	uint64_t count;  /* end after so many frames received; 0 = no limit */
	uint64_t end_ns; /* RT_FOREVER = no limit */
	/* Set by all of a run's forwarders as each adds to it: `count` is of all together. NULL
	 * without a count. */
	uint64_t *shared_count;
	struct rt_event *done_event; /* signalled when the task ends; may be NULL */
};

struct tr_forwarder {
	struct tr_forwarder_config config;
	struct tr_stop stop;
	uint64_t turns;      /* of the loop that moved something; read with ho_ctr_read */
	uint64_t busy_ticks; /* TSC ticks spent in those; 0 on the virtual clock */
	uint64_t idle_ticks; /* in the others, awake */
	uint64_t sleeps;
	uint64_t unwanted; /* frames that came behind the last one of `count`, and were dropped */
	/* Ticks of turns that brought two full bursts: what those cost that nobody interrupted is
	 * seen in its median. To be read when the task has ended. */
	struct ho_hist full_turn_ticks;
	bool done; /* atomic: the task has ended or is about to */
};

int tr_forwarder_create(const struct tr_forwarder_config *config, struct tr_forwarder **out,
			struct ho_err *err);
/* The task must have ended. NULL is allowed. */
void tr_forwarder_destroy(struct tr_forwarder *forwarder);

/* The task: give it to rt_spawn with the forwarder. */
void tr_forwarder_run(void *forwarder);

#endif
