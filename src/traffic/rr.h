/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests and replies: a client that keeps N transactions outstanding, a server that answers.
 *
 * A request is a stamped frame of the client's source (UDP over IPv4 or IPv6). The reply is the
 * same frame with addresses and ports exchanged, in the server's size, with the request's stamp at
 * its end and TR_RR_REPLY set in the stamp's stream. A transaction begins when its first request is
 * handed to the port and ends with the first reply to any of its requests. A request that is not
 * answered in time is followed by another one of the same transaction, with a number of its own: a
 * reply to an older one counts as late.
 */
#ifndef HOLDOFF_TRAFFIC_RR_H
#define HOLDOFF_TRAFFIC_RR_H

#include "base/hist.h"
#include "port/port.h"
#include "runtime/machine_clock.h"
#include "traffic/source.h"
#include "traffic/stamp.h"
#include "traffic/stop.h"

/* In a stamp's stream: this is a reply. */
#define TR_RR_REPLY 0x8000u
/* Transactions outstanding at once, of one client. */
#define TR_RR_OUTSTANDING_MAX 4096u

struct tr_rr_client_config {
	struct rt *rt;
	struct port_rxq *rxq; /* bound to caches of the task's own */
	struct port_txq *txq;
	struct tr_source *source; /* of stamped UDP frames */
	unsigned outstanding;     /* 1 to TR_RR_OUTSTANDING_MAX */
	uint64_t think_ns;        /* from a reply to the next request in its place */
	uint64_t timeout_ns;      /* of a request */
	unsigned tries;           /* requests of one transaction before it is given up */
	uint64_t count;           /* transactions; 0 = no limit */
	uint64_t end_ns;          /* no transaction begins from here on; RT_FOREVER = no limit */
	bool block; /* sleep as soon as there is nothing, as in a blocking system call */
	struct rt_event *done_event; /* signalled when it has quiesced; may be NULL */
};

struct tr_rr_client;

int tr_rr_client_create(const struct tr_rr_client_config *config, struct tr_rr_client **out,
			struct ho_err *err);
/* The task must have ended. NULL is allowed. */
void tr_rr_client_destroy(struct tr_rr_client *client);

/*
 * The task: give it to rt_spawn with the client. When no transaction may begin any more (count,
 * end time, tr_rr_client_finish) and none is outstanding it has quiesced; it goes on receiving late
 * replies until it is asked to stop.
 */
void tr_rr_client_run(void *client);

/* No transaction begins any more; from any task. */
void tr_rr_client_finish(struct tr_rr_client *client);
bool tr_rr_client_quiesced(const struct tr_rr_client *client);
/* Ends the task; from any task. */
void tr_rr_client_stop(struct tr_rr_client *client);

/* Each may be read at any time by any task, but the histogram only when the task has ended. */
struct tr_rr_client_stats {
	uint64_t requests;     /* handed to the port */
	uint64_t replies;      /* frames that were one, the late ones among them */
	uint64_t transactions; /* completed */
	uint64_t latency_sum;  /* ns, of these */
	uint64_t retries;      /* requests beyond a transaction's first */
	uint64_t late;         /* replies to a request that was given up or answered */
	uint64_t failed;       /* transactions given up */
	uint64_t others;       /* received frames that are no reply */
};
void tr_rr_client_stats(const struct tr_rr_client *client, struct tr_rr_client_stats *out);
/* Of whole transactions, ns. */
const struct ho_hist *tr_rr_client_latency(const struct tr_rr_client *client);
/* The same, to be emptied by who measures an interval, while the task does not run. */
struct ho_hist *tr_rr_client_histogram(struct tr_rr_client *client);
/* Executor's time from the first request to the last reply, ns. */
uint64_t tr_rr_client_elapsed(const struct tr_rr_client *client);

struct tr_rr_server_config {
	struct rt *rt;
	struct port_rxq *rxq;
	struct port_txq *txq;
	struct pk_cache *cache; /* of the task; what is not answered is freed to it */
	uint32_t reply_bytes;   /* without FCS; 0 = the request's */
	uint64_t count;         /* requests to be answered; 0 = no limit */
	/* Set by all of a run's servers as each adds to it: `count` is of all together. NULL
	 * without a count. */
	uint64_t *shared_count;
	bool block; /* sleep as soon as there is nothing */
	struct rt_event *done_event;
};

struct tr_rr_server {
	struct tr_rr_server_config config;
	struct tr_stop stop;
	/* Read by other tasks with ho_ctr_read. */
	uint64_t requests; /* received */
	uint64_t replies;  /* handed to the port */
	uint64_t refused;  /* requests that cannot be answered: no UDP, reply does not fit */
	uint64_t others;   /* received frames that are no request */
	uint64_t unwanted; /* requests that came behind the last one of `count` */
	bool done;         /* atomic: the task has ended or is about to */
};

int tr_rr_server_create(const struct tr_rr_server_config *config, struct tr_rr_server **out,
			struct ho_err *err);
/* The task must have ended. NULL is allowed. */
void tr_rr_server_destroy(struct tr_rr_server *server);
/* The task. Ends when asked to stop, or when the queue has ended. */
void tr_rr_server_run(void *server);

/*
 * Makes a request at `slot` (one slot) the reply of `bytes` bytes, 0 = as long as it is, in place.
 * -EBADMSG if it is no UDP datagram in sound headers, -EMSGSIZE if the reply has no room in its
 * buffer or is shorter than headers and stamp.
 */
int tr_rr_make_reply(const struct pk_arena *arena, struct pk_slot *slot, uint32_t bytes,
		     const struct tr_stamp *stamp);

#endif
