/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The router at work: tables, ports and workers.
 *
 *   port 0 rxq w --+                                +--> port 0 txq w
 *   port 1 rxq w --+--> worker w: look up, rewrite -+--> port 1 txq w
 *   ...                 |   ^                       +--> ...
 *                wishes v   | tables (read under RCU), orders
 *                   control plane: ro_tables_poll, ro_*_set, ro_router_order
 *
 * Worker w owns receive queue w and transmit queue w of every port that has them, and one cache.
 * Nothing that a worker writes is read by another one. Fast path: IPv4 without options and IPv6
 * without a hop-by-hop header, in one buffer, with a resolved next hop and no error. All else goes
 * through ro_slow (slow.h), which does the same and the rest, a packet at a time.
 */
#ifndef HOLDOFF_ROUTE_ROUTER_H
#define HOLDOFF_ROUTE_ROUTER_H

#include "port/port.h"
#include "route/drops.h"
#include "route/tables.h"

#define RO_PORTS_MAX 64

/* A port of the router. Most often both are the same; a pair of files has two. */
struct ro_port {
	struct port *rx; /* NULL = nothing is received here */
	struct port *tx; /* NULL = nothing can be sent here */
};

struct ro_router_config {
	struct rt *rt;
	struct ro_tables *tables;
	const struct ro_port *port; /* the tables' ports by number; copied */
	unsigned ports;
	unsigned workers;
	struct pk_cache *const *cache; /* of each worker; the queues are bound to it */
	/* The router answers ARP, Neighbour Discovery and echo itself; without it what is for the
	 * host is the kernel's, and goes to to_host when it comes here. */
	bool own_stack;
	/*
	 * Gives the host's stack the whole frames in these slots, which came in on a port; returns
	 * how many frames it took. The slots stay the caller's. Called by each worker in its task.
	 * What is not taken is dropped as local_kernel; so is all of it without the function.
	 */
	unsigned (*to_host)(void *arg, unsigned worker, unsigned port, struct pk_slot *slots,
			    unsigned n);
	void *to_host_arg;
	bool slow_only;      /* no fast path: for tests that compare both */
	uint32_t icmp_rate;  /* ICMP errors a second and worker; 0 = 1000, Linux's icmp_msgs_per_sec
			      */
	uint32_t icmp_burst; /* 0 = 50, Linux's icmp_msgs_burst */
	uint64_t count;      /* end after so many packets received, by all workers; 0 = no limit */
	uint64_t end_ns;     /* RT_FOREVER = no limit */
	struct rt_event *done_event; /* signalled when a worker ends; may be NULL */
};

/* Of one worker, or their sum. Written with ho_ctr_add, read with ho_ctr_read. */
struct ro_counters {
	uint64_t received; /* packets taken from receive queues */
	uint64_t received_bytes;
	uint64_t generated;    /* packets that the router itself made: ICMP, ARP, ... */
	uint64_t sent;         /* packets handed to transmit queues; a fragmented one counts once */
	uint64_t local;        /* packets for the router that it took and used */
	uint64_t fragmented;   /* packets sent as fragments */
	uint64_t fragments;    /* these */
	uint64_t held;         /* packets that waited for a neighbour, in all */
	uint64_t fast;         /* of those sent: by the fast path */
	uint64_t icmp_limited; /* ICMP errors not sent: rate limit */
	uint64_t icmp_suppressed; /* not sent: RFC 1812 4.3.2.7, RFC 4443 2.4(e) */
	uint64_t orders_lost;     /* of the control plane: the queue was full */
	uint64_t busy_ticks; /* TSC ticks of turns that moved something; 0 on the virtual clock */
	uint64_t turns;      /* these */
	uint64_t sleeps;
	uint64_t drops[RO_DROP_COUNT];
};

struct ro_router;
struct ro_worker;

int ro_router_create(const struct ro_router_config *config, struct ro_router **out,
		     struct ho_err *err);
/* The workers' tasks must have ended. NULL is allowed. */
void ro_router_destroy(struct ro_router *router);

/* Worker i, for ro_worker_run; 0 .. workers - 1. */
struct ro_worker *ro_router_worker(struct ro_router *router, unsigned i);
/* A task: give it to rt_spawn with the worker. Ends after count, at end_ns, when nothing can come
 * any more, when it is asked to, or when the executor stops. */
void ro_worker_run(void *worker);

/* Asks all workers to end. */
void ro_router_stop(struct ro_router *router);
/* Have all tasks ended, or are about to? */
bool ro_router_done(const struct ro_router *router);

void ro_worker_counters(const struct ro_worker *worker, struct ro_counters *out);
/* The sum over all workers. */
void ro_router_counters(const struct ro_router *router, struct ro_counters *out);
/* Median cycles a packet of turns that brought a full burst; 0 when there was none. When the tasks
 * have ended. */
double ro_router_full_turn_ticks(const struct ro_router *router);

/* After all tasks have ended: 0, or -EBADE with the difference in a sentence when packets are
 * unaccounted for. */
int ro_router_check(const struct ro_router *router, struct ho_err *err);

/*
 * What the control plane wants to be sent: worker 0 builds and sends it. -ENOSPC: its queue is
 * full.
 */
enum ro_order_kind {
	RO_ORDER_ASK, /* ARP request or neighbour solicitation for `addr`; to `mac` unless zero */
	RO_ORDER_ANNOUNCE, /* gratuitous ARP or unsolicited advertisement of our own `addr` */
};
struct ro_order {
	uint8_t kind; /* enum ro_order_kind */
	uint8_t mac[6];
	uint32_t ifindex;
	struct ro_addr addr;
};
int ro_router_order(struct ro_router *router, const struct ro_order *order);

/*
 * For tests and fuzzing: one burst of whole frames, as if received on a port, through worker w in
 * the caller's thread, and out to the ports' transmit queues.
 */
void ro_worker_input(struct ro_worker *worker, unsigned port, struct pk_slot *slots, unsigned n);
/* What the worker's loop does beside: orders, the hold queue. */
void ro_worker_housekeep(struct ro_worker *worker);
/* What still waits for neighbours becomes hold_closed; before the worker's counters are checked.
 * ro_worker_run ends with it. */
void ro_worker_finish(struct ro_worker *worker);

#endif
