/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How one task of the traffic engine is asked to end, while others go on: a flag for its busy
 * loops and an event for its sleeps. Each task has its own, since one task waits for an event.
 */
#ifndef HOLDOFF_TRAFFIC_STOP_H
#define HOLDOFF_TRAFFIC_STOP_H

#include "runtime/rt.h"

struct tr_stop {
	struct rt *rt;
	bool asked; /* atomic */
	struct rt_event *event;
};

static inline int tr_stop_init(struct tr_stop *stop, struct rt *rt, struct ho_err *err)
{
	*stop = (struct tr_stop){ .rt = rt };
	return rt_event_create(rt, &stop->event, err);
}

/* Safe on one that was zeroed and never made. */
static inline void tr_stop_fini(struct tr_stop *stop)
{
	if (stop->rt)
		rt_event_destroy(stop->rt, stop->event);
	*stop = (struct tr_stop){ 0 };
}

/* From any task. */
static inline void tr_stop_ask(struct tr_stop *stop)
{
	__atomic_store_n(&stop->asked, true, __ATOMIC_RELEASE);
	rt_event_signal(stop->rt, stop->event);
}

/* Has this task, or the whole executor, been asked to end? */
static inline bool tr_stop_asked(const struct tr_stop *stop)
{
	return __atomic_load_n(&stop->asked, __ATOMIC_ACQUIRE) || rt_stopping(stop->rt);
}

#endif
