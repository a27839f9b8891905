/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time that all processes of this machine agree on: what a stamp in a frame is made of, so that
 * another process can tell the frame's delay.
 *
 * It is CLOCK_MONOTONIC, reached from rt_now_ns by an offset that is measured anew every
 * RT_MACHINE_SYNC_NS: two processes measure the counter's rate each for itself and would drift
 * apart by microseconds a second. On the virtual clock there is one process and one time: it is
 * rt_now_ns itself.
 *
 * Each task has its own; a step back of some tens of nanoseconds at a synchronisation is possible.
 */
#ifndef HOLDOFF_RUNTIME_MACHINE_CLOCK_H
#define HOLDOFF_RUNTIME_MACHINE_CLOCK_H

#include "runtime/rt.h"

#define RT_MACHINE_SYNC_NS 10000000u

struct rt_machine_clock {
	struct rt *rt;
	uint64_t offset_ns; /* machine time = executor's time + this, modulo 2^64 */
	uint64_t until_ns;  /* executor's time from which the offset is out of date */
};

void rt_machine_clock_init(struct rt_machine_clock *clock, struct rt *rt);
/* Slow path of rt_machine_ns. */
void rt_machine_clock_sync(struct rt_machine_clock *clock);

/* Machine time at the executor's time now_ns, which must be a recent one. */
static inline uint64_t rt_machine_ns(struct rt_machine_clock *clock, uint64_t now_ns)
{
	if (ho_unlikely(now_ns >= clock->until_ns))
		rt_machine_clock_sync(clock);
	return now_ns + clock->offset_ns;
}

#endif
