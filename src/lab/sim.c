// SPDX-License-Identifier: BSD-2-Clause
/*
 * A 4-ary heap: half as deep as a binary one, and the four children of an entry lie in two cache
 * lines. Keys are copied into the heap, so sifting touches the events only to tell them their
 * new place.
 */
#include "lab/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct sim_slot {
	sim_ps at;
	uint64_t seq;
	struct sim_event *ev;
};

#define SIM_ARITY 4

static inline bool earlier(const struct sim_slot *a, const struct sim_slot *b)
{
	return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

static inline void place(struct sim *sim, uint32_t i, const struct sim_slot *slot)
{
	sim->heap[i] = *slot;
	slot->ev->pos = i + 1;
}

static void sift_up(struct sim *sim, uint32_t i, const struct sim_slot *slot)
{
	while (i) {
		uint32_t parent = (i - 1) / SIM_ARITY;

		if (!earlier(slot, &sim->heap[parent]))
			break;
		place(sim, i, &sim->heap[parent]);
		i = parent;
	}
	place(sim, i, slot);
}

static void sift_down(struct sim *sim, uint32_t i, const struct sim_slot *slot)
{
	for (;;) {
		uint32_t first = i * SIM_ARITY + 1, best = first;
		uint32_t end = HO_MIN(first + SIM_ARITY, sim->n);

		if (first >= sim->n)
			break;
		for (uint32_t child = first + 1; child < end; child++)
			if (earlier(&sim->heap[child], &sim->heap[best]))
				best = child;
		if (!earlier(&sim->heap[best], slot))
			break;
		place(sim, i, &sim->heap[best]);
		i = best;
	}
	place(sim, i, slot);
}

static inline void refresh_quiet(struct sim *sim)
{
	sim_ps next = sim->n ? sim->heap[0].at : SIM_NEVER;
	sim_ps past = sim->horizon == SIM_NEVER ? SIM_NEVER : sim->horizon + 1;

	sim->quiet = HO_MIN(next, past);
}

int sim_create(struct sim **out)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	if (!sim)
		return -ENOMEM;
	sim->room = 64;
	sim->heap = malloc(sim->room * sizeof(*sim->heap));
	if (!sim->heap) {
		free(sim);
		return -ENOMEM;
	}
	sim->digest = 0x243f6a8885a308d3ull;
	sim->horizon = SIM_NEVER;
	sim->quiet = SIM_NEVER;
	*out = sim;
	return 0;
}

void sim_destroy(struct sim *sim)
{
	if (!sim)
		return;
	for (uint32_t i = 0; i < sim->n; i++)
		sim->heap[i].ev->pos = 0;
	free(sim->heap);
	free(sim);
}

/* The heap holds one entry for each event that somebody embedded: it grows while the lab is built
 * and then no more. There is no caller who could go on without it. */
static void grow(struct sim *sim)
{
	struct sim_slot *heap = realloc(sim->heap, 2 * sim->room * sizeof(*heap));

	if (!heap)
		abort();
	sim->heap = heap;
	sim->room *= 2;
}

void sim_schedule(struct sim *sim, struct sim_event *ev, sim_ps at)
{
	struct sim_slot slot = { .at = HO_MAX(at, sim->now), .seq = ++sim->seq, .ev = ev };

	ev->at = slot.at;
	ev->seq = slot.seq;
	if (ev->pos) {
		uint32_t i = ev->pos - 1;

		/* The sequence number is new, so at the same time it moves back. */
		if (slot.at < sim->heap[i].at)
			sift_up(sim, i, &slot);
		else
			sift_down(sim, i, &slot);
	} else {
		if (ho_unlikely(sim->n == sim->room))
			grow(sim);
		sift_up(sim, sim->n++, &slot);
	}
	refresh_quiet(sim);
}

static void take_out(struct sim *sim, uint32_t i)
{
	struct sim_slot last = sim->heap[--sim->n];

	if (i == sim->n)
		return;
	if (i && earlier(&last, &sim->heap[(i - 1) / SIM_ARITY]))
		sift_up(sim, i, &last);
	else
		sift_down(sim, i, &last);
}

void sim_cancel(struct sim *sim, struct sim_event *ev)
{
	if (!ev->pos)
		return;
	take_out(sim, ev->pos - 1);
	ev->pos = 0;
	refresh_quiet(sim);
}

sim_ps sim_next(const struct sim *sim)
{
	return sim->n ? sim->heap[0].at : SIM_NEVER;
}

/* Calls the function last: it may switch to another stack and come back much later. */
static inline void run_first(struct sim *sim)
{
	struct sim_event *ev = sim->heap[0].ev;

	sim->now = sim->heap[0].at;
	take_out(sim, 0);
	ev->pos = 0;
	refresh_quiet(sim);
	sim->events++;
	sim_digest_add(sim, ev->at ^ ev->seq << 40);
	sim->depth++;
	ev->fn(ev->arg);
	sim->depth--;
}

static void run_pokes(struct sim *sim)
{
	struct sim_poke *poke, *next;

	if (ho_likely(!__atomic_load_n(&sim->poked, __ATOMIC_ACQUIRE)))
		return;
	__atomic_store_n(&sim->poked, 0, __ATOMIC_RELAXED);
	for (poke = sim->pokes; poke; poke = next) {
		next = poke->next;
		poke->fn(poke->arg);
	}
}

void sim_run_until(struct sim *sim, sim_ps until)
{
	sim->horizon = until;
	refresh_quiet(sim);
	run_pokes(sim);
	while (sim->n && sim->heap[0].at <= until) {
		run_first(sim);
		run_pokes(sim);
	}
	sim->now = HO_MAX(sim->now, until);
	sim->horizon = SIM_NEVER;
	refresh_quiet(sim);
}

bool sim_step(struct sim *sim)
{
	run_pokes(sim);
	if (!sim->n)
		return false;
	run_first(sim);
	return true;
}

enum sim_advance sim_advance(struct sim *sim, sim_ps target, const uint32_t *stop)
{
	sim_ps limit = HO_MIN(target, sim->horizon);

	for (;;) {
		run_pokes(sim);
		if (*stop)
			return SIM_STOPPED;
		if (!sim->n || sim->heap[0].at > limit)
			break;
		if (sim->heap[0].ev->outer)
			return SIM_BLOCKED;
		run_first(sim);
	}
	if (target > sim->horizon || target == SIM_NEVER)
		return SIM_BLOCKED;
	sim->now = target;
	return SIM_REACHED;
}

void sim_poke_add(struct sim *sim, struct sim_poke *poke)
{
	poke->next = sim->pokes;
	sim->pokes = poke;
}

void sim_poke_remove(struct sim *sim, struct sim_poke *poke)
{
	struct sim_poke **at = &sim->pokes;

	while (*at && *at != poke)
		at = &(*at)->next;
	if (*at)
		*at = poke->next;
}
