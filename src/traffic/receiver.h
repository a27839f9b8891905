/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A task that receives from one queue: filters, counts, follows the streams, takes the delay of
 * stamped frames, captures.
 *
 * It polls while packets come. After TR_RX_SPIN_NS without one it arms the queue's event and
 * sleeps; a queue without an event is polled on, ever more lazily.
 */
#ifndef HOLDOFF_TRAFFIC_RECEIVER_H
#define HOLDOFF_TRAFFIC_RECEIVER_H

#include "base/hist.h"
#include "port/port.h"
#include "runtime/machine_clock.h"
#include "traffic/capture.h"
#include "traffic/filter.h"
#include "traffic/stop.h"
#include "traffic/track.h"

struct tr_receiver_config {
	struct rt *rt;
	struct port_rxq *rxq;           /* bound to `cache` */
	struct pk_cache *cache;         /* of the task */
	const struct tr_filter *filter; /* NULL = all frames */
	struct tr_capture *capture;     /* NULL = none */
	uint64_t count;                 /* end after so many frames that match; 0 = no limit */
	uint64_t end_ns;                /* end at this time; RT_FOREVER = no limit */
	/* Set by all of a run's receivers as each adds to it, if not NULL: `count` is then of all
	 * of them together. */
	uint64_t *shared_count;
	bool no_stamps; /* do not look for stamps: the frames' bytes are left alone */
	bool block;     /* sleep as soon as there is nothing, as in a blocking system call */
	struct rt_event *done_event; /* signalled when the task ends; may be NULL */
};

struct tr_receiver {
	struct tr_receiver_config config;
	struct tr_stop stop;
	struct rt_machine_clock clock;
	/* What was received; other tasks read these with ho_ctr_read. */
	uint64_t frames, bytes; /* that the filter let through */
	uint64_t stamped;       /* of these: with a stamp */
	uint64_t filtered;      /* the others */
	uint64_t unwanted;      /* came behind the last one of `count` */
	uint64_t waits;         /* times that it slept */
	uint64_t latency_sum;   /* ns, of all stamped frames */
	uint64_t first_ns;      /* when the first and */
	uint64_t last_ns;       /* the last burst came, executor's time; 0 = none did */
	bool done;              /* atomic: the task has ended or is about to */
	struct tr_tracks tracks;
	struct ho_hist latency_ns; /* of stamped frames */
};

int tr_receiver_create(const struct tr_receiver_config *config, struct tr_receiver **out,
		       struct ho_err *err);
/* The task must have ended. NULL is allowed. */
void tr_receiver_destroy(struct tr_receiver *receiver);

/* The task: give it to rt_spawn with the receiver. Returns when asked to stop, at the end time,
 * when the count is reached, or when the queue has ended. */
void tr_receiver_run(void *receiver);

#endif
