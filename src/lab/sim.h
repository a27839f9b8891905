/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lab's event queue: what happens when, in virtual time. Time is integer picoseconds, so that
 * a bit at 100 Gbit/s (10 ps) is exact; 64 bits last 213 days.
 *
 * Events at the same time run in the order in which they were scheduled: the same seed gives the
 * same run.
 */
#ifndef HOLDOFF_LAB_SIM_H
#define HOLDOFF_LAB_SIM_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t sim_ps;

#define SIM_PS_PER_NS 1000ull
#define SIM_PS_PER_US 1000000ull
#define SIM_PS_PER_MS 1000000000ull
#define SIM_PS_PER_S  1000000000000ull
#define SIM_NEVER     UINT64_MAX

struct sim;

/* Embedded by its owner; the queue allocates nothing per event. */
struct sim_event {
	sim_ps at;             /* when it runs */
	uint64_t seq;          /* order among equals */
	uint32_t pos;          /* place in the queue + 1; 0 = not scheduled */
	void (*fn)(void *arg); /* runs outside any coroutine; may schedule and cancel */
	void *arg;
};

static inline void sim_event_init(struct sim_event *ev, void (*fn)(void *arg), void *arg)
{
	*ev = (struct sim_event){ .fn = fn, .arg = arg };
}

static inline bool sim_scheduled(const struct sim_event *ev)
{
	return ev->pos != 0;
}

int sim_create(struct sim **out);
/* Scheduled events are forgotten. NULL is allowed. */
void sim_destroy(struct sim *sim);

sim_ps sim_now(const struct sim *sim);

/* Runs ev->fn(ev->arg) at `at` (not before now: an earlier time means now). Moves it if it is
 * already scheduled. */
void sim_schedule(struct sim *sim, struct sim_event *ev, sim_ps at);
/* No effect if it is not scheduled. */
void sim_cancel(struct sim *sim, struct sim_event *ev);

/* When the next event is due; SIM_NEVER if none. */
sim_ps sim_next(const struct sim *sim);
/* Runs all events up to and including `until`, then sets the time to `until`. */
void sim_run_until(struct sim *sim, sim_ps until);

#endif
