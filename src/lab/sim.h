/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lab's event queue: what happens when, in virtual time. Time is integer picoseconds, so that
 * a bit at 100 Gbit/s (10 ps) is exact; 64 bits last 213 days.
 *
 * Events at the same time run in the order in which they were scheduled: the same seed gives the
 * same run.
 *
 * Two things drive it. The outer loop (sim_run_until, sim_step) runs events one after another.
 * Code on a modelled CPU, which itself runs inside an event of the outer loop, lets its time pass
 * with sim_try_advance and sim_advance: these run the events that come due on the way, so a CPU
 * that is alone with its chip never goes back to the outer loop. A CPU that spins without finding
 * anything is left out until something happens that it could see (struct sim_spin).
 */
#ifndef HOLDOFF_LAB_SIM_H
#define HOLDOFF_LAB_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

typedef uint64_t sim_ps;

#define SIM_PS_PER_NS 1000ull
#define SIM_PS_PER_US 1000000ull
#define SIM_PS_PER_MS 1000000000ull
#define SIM_PS_PER_S  1000000000000ull
#define SIM_NEVER     UINT64_MAX

/* What can see each other without an event between: a machine's CPUs, memory and devices. */
struct sim_host {
	uint64_t steps; /* events of this host only that have run */
};

/* Embedded by its owner; the queue allocates nothing per event. */
struct sim_event {
	sim_ps at;             /* when it runs */
	uint64_t seq;          /* order among equals */
	uint32_t pos;          /* the queue's; 0 = not scheduled */
	bool outer;            /* only the outer loop may run it: it enters a coroutine */
	struct sim_host *host; /* all that it changes, but for scheduling others, is of this host;
				* NULL = anything */
	void (*fn)(void *arg); /* may schedule and cancel; may not let time pass unless `outer` */
	void *arg;
};

static inline void sim_event_init(struct sim_event *ev, void (*fn)(void *arg), void *arg)
{
	*ev = (struct sim_event){ .fn = fn, .arg = arg };
}

/* The same for an event of one host only; NULL = it may change anything. */
static inline void sim_event_init_at(struct sim_event *ev, struct sim_host *host,
				     void (*fn)(void *arg), void *arg)
{
	*ev = (struct sim_event){ .host = host, .fn = fn, .arg = arg };
}

static inline bool sim_scheduled(const struct sim_event *ev)
{
	return ev->pos != 0;
}

/* Something that wants to hear of sim_poke. Embedded by its owner. */
struct sim_poke {
	void (*fn)(void *arg);
	void *arg;
	struct sim_poke *next;
};

/*
 * A CPU in a busy loop, turn after turn the same, until an event that is not of another host only.
 * Such events make `resume` due at the beginning of the turn in which they happen.
 * Embedded by its owner.
 */
struct sim_spin {
	struct sim_host *host;    /* whose CPU it is */
	sim_ps begin;             /* of the first turn that may be left out */
	sim_ps turn;              /* from one beginning to the next */
	sim_ps behind;            /* set when `resume` runs: how long ago its turn began */
	struct sim_event *resume; /* may be scheduled: then that is the latest */
	struct sim_spin *next, **prev;
};

/* An entry of the queue. */
struct sim_slot {
	sim_ps at;
	uint64_t seq;
	struct sim_event *ev;
};

#define SIM_FRONT 8 /* earliest events kept sorted */

/* Private to sim.c and the inline functions below. */
struct sim {
	sim_ps now;
	sim_ps quiet;   /* nothing happens before this: the next event, or just past horizon */
	sim_ps horizon; /* the outer loop is to come back at this time */
	uint32_t depth; /* of calls of events; 0 = nothing runs the clock */
	int poked;      /* sim_poke was called */
	uint32_t n, room;
	struct sim_slot *heap;
	uint32_t n_front;
	struct sim_slot front[SIM_FRONT]; /* the last is the earliest */
	uint64_t seq;
	uint64_t digest;
	uint64_t events; /* run so far */
	uint64_t steps;  /* of which those of one host only */
	uint64_t others; /* changes of which no event tells */
	struct sim_poke *pokes;
	struct lab_store *store; /* of the stacks on its CPUs; NULL = each has a mapping */
	struct sim_spin *spins;
};

int sim_create(struct sim **out);
/* Scheduled events are forgotten. NULL is allowed. */
void sim_destroy(struct sim *sim);

static inline sim_ps sim_now(const struct sim *sim)
{
	return sim->now;
}

/* Runs ev->fn(ev->arg) at `at` (not before now: an earlier time means now). Moves it if it is
 * already scheduled. */
void sim_schedule(struct sim *sim, struct sim_event *ev, sim_ps at);
/* No effect if it is not scheduled. */
void sim_cancel(struct sim *sim, struct sim_event *ev);

/* When the next event is due; SIM_NEVER if none. */
sim_ps sim_next(const struct sim *sim);

/* --- the outer loop ----------------------------------------------------------------------- */

/* Runs all events up to and including `until`, then sets the time to `until`. Not from an event. */
void sim_run_until(struct sim *sim, sim_ps until);
/* Runs the next event, and on modelled CPUs whatever follows without the outer loop. False if
 * there is no event. Not from an event. */
bool sim_step(struct sim *sim);

/* Is this called from outside of all events and CPUs, so that it may run the clock? */
static inline bool sim_outside(const struct sim *sim)
{
	return !sim->depth;
}

/* --- from code on a modelled CPU ---------------------------------------------------------- */

/* If nothing happens in the next `ps` (the end included), lets that time pass and returns true. */
static inline bool sim_try_advance(struct sim *sim, sim_ps ps)
{
	sim_ps end = sim->now + ps;

	if (ho_unlikely(end >= sim->quiet || sim->poked))
		return false;
	sim->now = end;
	return true;
}

enum sim_advance {
	SIM_REACHED, /* it is `target`, and all events up to it have run */
	SIM_STOPPED, /* *stop became true at or before `target` */
	SIM_BLOCKED, /* the outer loop must run: schedule an event and go back to it */
};

/* Lets time pass until `target`, running the events that come due. Looks at *stop before each.
 * With SIM_NEVER, who waits for nothing but *stop, it ends with SIM_BLOCKED when no event is left.
 */
enum sim_advance sim_advance(struct sim *sim, sim_ps target, const uint32_t *stop);

/* --- busy loops --------------------------------------------------------------------------- */

/* Puts the CPU to rest; it must leave to the outer loop now, until its resume event runs. */
void sim_spin_add(struct sim *sim, struct sim_spin *spin);
/* Ends the rest at the next beginning of a turn from now on: something changed of which no event
 * told. No effect if it does not rest. */
void sim_spin_end(struct sim *sim, struct sim_spin *spin);
/* Forgets it: its CPU goes away. */
void sim_spin_remove(struct sim_spin *spin);
/* sim_spin_end for all, and no turn that is under way counts as one that found nothing: for who runs
 * the clock and may have changed something that a busy loop looks at. */
void sim_spin_end_all(struct sim *sim);

static inline bool sim_spinning(const struct sim_spin *spin)
{
	return spin->prev != NULL;
}

/* Is the next event a step of another host? */
static inline bool sim_next_is_foreign(const struct sim *sim, const struct sim_host *host)
{
	const struct sim_event *ev = sim->n_front ? sim->front[sim->n_front - 1].ev : NULL;

	return ev && ev->host && ev->host != host;
}

/* --- from anywhere ------------------------------------------------------------------------ */

/* Has every registered `fn` called soon, from an event or just before one. The only call that is
 * safe from a signal handler and from another thread. */
static inline void sim_poke(struct sim *sim)
{
	__atomic_store_n(&sim->poked, 1, __ATOMIC_RELEASE);
}

void sim_poke_add(struct sim *sim, struct sim_poke *poke);
void sim_poke_remove(struct sim *sim, struct sim_poke *poke);

/* A number that depends on the time and order of every event so far: equal runs, equal digest. */
static inline uint64_t sim_digest(const struct sim *sim)
{
	return sim->digest;
}

/* Mixes a value of the caller's into it. */
static inline void sim_digest_add(struct sim *sim, uint64_t value)
{
	sim->digest = (sim->digest ^ value) * 0x9e3779b97f4a7c15ull;
	sim->digest ^= sim->digest >> 29;
}

/* Events run so far. */
static inline uint64_t sim_events(const struct sim *sim)
{
	return sim->events;
}

/* Of those, and of other changes, all but what is of other hosts only. */
static inline uint64_t sim_events_seen(const struct sim *sim, const struct sim_host *host)
{
	return sim->events - sim->steps + sim->others + host->steps;
}

#endif
