// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/machine_clock.h"

#include <time.h>

#define TRIES 5

void rt_machine_clock_sync(struct rt_machine_clock *clock)
{
	uint64_t best = UINT64_MAX, now = 0;

	/* We may be interrupted between the readings: the closest pair of several is right. */
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = rt_now_ns(clock->rt), after;
		struct timespec ts;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		after = rt_now_ns(clock->rt);
		if (after - before < best) {
			best = after - before;
			clock->offset_ns = (uint64_t)ts.tv_sec * 1000000000u +
					   (uint64_t)ts.tv_nsec - (before + best / 2);
			now = after;
		}
	}
	clock->until_ns = now + RT_MACHINE_SYNC_NS;
}

void rt_machine_clock_init(struct rt_machine_clock *clock, struct rt *rt)
{
	*clock = (struct rt_machine_clock){ .rt = rt, .until_ns = RT_FOREVER };
	if (!rt->is_virtual)
		rt_machine_clock_sync(clock);
}
