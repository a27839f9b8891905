// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/tsc.h"

#include <pthread.h>
#include <time.h>

#define CALIBRATE_NS 20000000

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * The counter and the clock at one moment: of several tries the one with the least time between
 * the two readings of the counter, since we may be interrupted in between.
 */
static void read_both(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t before = rt_tsc_read(), now = monotonic_ns(), after = rt_tsc_read();

		if (after - before < best) {
			best = after - before;
			*tsc = before + (after - before) / 2;
			*ns = now;
		}
	}
}

/* A machine has one counter, so its rate is measured once a process. */
static struct rt_tsc measured;

static void calibrate(void)
{
	uint64_t tsc0 = 0, tsc1 = 0, ns0 = 0, ns1 = 0;

	read_both(&tsc0, &ns0);
	do {
		read_both(&tsc1, &ns1);
	} while (ns1 - ns0 < CALIBRATE_NS);
	measured.hz = (uint64_t)((unsigned __int128)(tsc1 - tsc0) * 1000000000u / (ns1 - ns0));
	measured.mult = (uint64_t)(((unsigned __int128)(ns1 - ns0) << 32) / (tsc1 - tsc0));
}

void rt_tsc_calibrate(struct rt_tsc *out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, calibrate);
	*out = measured;
}
