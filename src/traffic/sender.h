/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A task that sends on one queue: takes frames from a source when the pacer says that they are due
 * and hands them to the port.
 *
 * What is handed to the port is offered; what the port does not take because its ring is full
 * stays here and is tried again. At the end, frames that were built and not taken go back: they
 * were never offered, and the source numbers its next frame as if they had not been built.
 */
#ifndef HOLDOFF_TRAFFIC_SENDER_H
#define HOLDOFF_TRAFFIC_SENDER_H

#include "port/port.h"
#include "runtime/machine_clock.h"
#include "traffic/pacer.h"
#include "traffic/source.h"
#include "traffic/stop.h"

/* A link that stays down for so long ends the sender. */
#define TR_SENDER_LINK_NS 5000000000u

struct tr_sender_config {
	struct rt *rt;
	struct port_txq *txq;   /* bound to `cache` */
	struct pk_cache *cache; /* of the task */
	struct tr_source *source;
	struct tr_pacer_config pace;
	uint32_t mean_bytes;  /* of the source's frames, about: a first guess for the pacer */
	uint64_t count;       /* frames; 0 = no limit */
	uint64_t start_ns;    /* executor's time of the first frame; all workers have the same */
	uint64_t duration_ns; /* no frame is handed over so long after its first one was due, or
				 after the task began if that was later; 0 = no limit */
	struct rt_event *done_event; /* signalled when the task ends; may be NULL */
};

struct tr_sender {
	struct tr_sender_config config;
	struct tr_stop stop;
	struct rt_machine_clock clock;
	struct tr_pacer pacer;
	uint64_t end_ns; /* RT_FOREVER = no limit */
	/* Read by other tasks with ho_ctr_read. */
	uint64_t offered;    /* frames that the port took */
	uint64_t bytes;      /* of these */
	uint64_t full_ns;    /* time spent with a full ring */
	uint64_t pool_empty; /* times that there was no buffer for the next frame */
	uint64_t first_ns;   /* when it began, not before start_ns, and */
	uint64_t last_ns;    /* when it ended, executor's time */
	bool link_lost;      /* ended because of TR_SENDER_LINK_NS */
	bool source_ended;   /* ended because the source has no more frames */
	bool done;           /* atomic: the task has ended or is about to */
};

int tr_sender_create(const struct tr_sender_config *config, struct tr_sender **out,
		     struct ho_err *err);
/* The task must have ended. NULL is allowed. */
void tr_sender_destroy(struct tr_sender *sender);

/* The task: give it to rt_spawn with the sender. */
void tr_sender_run(void *sender);

#endif
