// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two stages. The few earliest events are in a sorted array, the others in a 4-ary heap. Most
 * events are scheduled for soon and run soon: they are put into the array and taken from its end,
 * and never see the heap. The heap is half as deep as a binary one, and the four children of an
 * entry lie in two cache lines. Keys are copied into both, so sorting touches no event but those
 * that move in the heap, to tell them their place.
 *
 * Whenever any event is scheduled, the array holds the earliest; no event of the heap is earlier
 * than any of the array.
 */
#include "lab/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define SIM_ARITY 4
#define IN_FRONT  UINT32_MAX /* `pos` of an event in the array */

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
	sim_ps next = sim->n_front ? sim->front[sim->n_front - 1].at : SIM_NEVER;
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
	for (uint32_t i = 0; i < sim->n_front; i++)
		sim->front[i].ev->pos = 0;
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

static void heap_push(struct sim *sim, const struct sim_slot *slot)
{
	if (ho_unlikely(sim->n == sim->room))
		grow(sim);
	sift_up(sim, sim->n++, slot);
}

static void heap_remove(struct sim *sim, uint32_t i)
{
	struct sim_slot last = sim->heap[--sim->n];

	if (i == sim->n)
		return;
	if (i && earlier(&last, &sim->heap[(i - 1) / SIM_ARITY]))
		sift_up(sim, i, &last);
	else
		sift_down(sim, i, &last);
}

/* The array is empty: the heap's first moves up. */
static void refill(struct sim *sim)
{
	if (!sim->n)
		return;
	sim->front[0] = sim->heap[0];
	sim->n_front = 1;
	heap_remove(sim, 0);
	sim->front[0].ev->pos = IN_FRONT;
}

/* The slot's sequence number is the highest: among equal times it is the last. */
static void insert(struct sim *sim, const struct sim_slot *slot)
{
	struct sim_slot *front = sim->front;
	uint32_t i = sim->n_front;

	if (sim->n && slot->at >= sim->heap[0].at) {
		heap_push(sim, slot);
		return;
	}
	if (i == SIM_FRONT) {
		if (slot->at >= front[0].at) {
			heap_push(sim, slot);
			return;
		}
		/* The latest of the array makes room. */
		heap_push(sim, &front[0]);
		for (i = 0; i + 1 < SIM_FRONT && front[i + 1].at > slot->at; i++)
			front[i] = front[i + 1];
	} else {
		for (; i && front[i - 1].at <= slot->at; i--)
			front[i] = front[i - 1];
		sim->n_front++;
	}
	front[i] = *slot;
	slot->ev->pos = IN_FRONT;
}

static void remove_event(struct sim *sim, struct sim_event *ev)
{
	uint32_t i = 0;

	if (ev->pos != IN_FRONT) {
		heap_remove(sim, ev->pos - 1);
		ev->pos = 0;
		return;
	}
	ev->pos = 0;
	while (sim->front[i].ev != ev)
		i++;
	sim->n_front--;
	for (; i < sim->n_front; i++)
		sim->front[i] = sim->front[i + 1];
	if (!sim->n_front)
		refill(sim);
}

void sim_schedule(struct sim *sim, struct sim_event *ev, sim_ps at)
{
	struct sim_slot slot = { .at = HO_MAX(at, sim->now), .seq = ++sim->seq, .ev = ev };

	ev->at = slot.at;
	ev->seq = slot.seq;
	if (ev->pos)
		remove_event(sim, ev);
	insert(sim, &slot);
	refresh_quiet(sim);
}

void sim_cancel(struct sim *sim, struct sim_event *ev)
{
	if (!ev->pos)
		return;
	remove_event(sim, ev);
	refresh_quiet(sim);
}

sim_ps sim_next(const struct sim *sim)
{
	return sim->n_front ? sim->front[sim->n_front - 1].at : SIM_NEVER;
}

/* Calls the function last: it may switch to another stack and come back much later. */
static inline void run_first(struct sim *sim)
{
	const struct sim_slot *first = &sim->front[--sim->n_front];
	struct sim_event *ev = first->ev;

	sim->now = first->at;
	ev->pos = 0;
	if (!sim->n_front)
		refill(sim);
	refresh_quiet(sim);
	sim->events++;
	if (ev->host) {
		ev->host->steps++;
		sim->steps++;
	}
	sim_digest_add(sim, ev->at ^ ev->seq << 40);
	sim->depth++;
	ev->fn(ev->arg);
	sim->depth--;
}

/* --- busy loops --------------------------------------------------------------------------- */

void sim_spin_add(struct sim *sim, struct sim_spin *spin)
{
	spin->behind = 0;
	spin->next = sim->spins;
	spin->prev = &sim->spins;
	if (spin->next)
		spin->next->prev = &spin->next;
	sim->spins = spin;
}

static void unlink_spin(struct sim_spin *spin)
{
	*spin->prev = spin->next;
	if (spin->next)
		spin->next->prev = spin->prev;
	spin->prev = NULL;
}

/* Something happens at `at`: goes on with the last turn that begins before. That may have been
 * before now, when others went on meanwhile whose steps it could not see. */
static void rouse(struct sim *sim, struct sim_spin *spin, sim_ps at)
{
	sim_ps begin = spin->begin;

	if (at > begin)
		begin += (at - 1 - begin) / spin->turn * spin->turn;
	unlink_spin(spin);
	spin->behind = sim->now > begin ? sim->now - begin : 0;
	sim_schedule(sim, spin->resume, HO_MAX(begin, sim->now));
}

void sim_spin_end(struct sim *sim, struct sim_spin *spin)
{
	if (sim_spinning(spin))
		rouse(sim, spin, sim->now + spin->turn);
}

void sim_spin_remove(struct sim_spin *spin)
{
	if (sim_spinning(spin))
		unlink_spin(spin);
}

void sim_spin_end_all(struct sim *sim)
{
	sim->others++;
	while (sim->spins)
		sim_spin_end(sim, sim->spins);
}

/* Does anything that the CPU can see happen up to `at`? */
static bool sees(const struct sim *sim, const struct sim_spin *spin, sim_ps at)
{
	uint32_t i = sim->n_front;

	for (; i && sim->front[i - 1].at <= at; i--) {
		const struct sim_event *ev = sim->front[i - 1].ev;

		if (ev != spin->resume && (!ev->host || ev->host == spin->host))
			return true;
	}
	/* There may be more at that time than the array holds. */
	return !i && sim->n && sim->heap[0].at <= at;
}

/* Before the next event, and all others at its time: those that can see what they do go on before
 * them. True if there are any: then it is not the next one any more. */
static bool rouse_for_next(struct sim *sim)
{
	const struct sim_event *ev = sim->front[sim->n_front - 1].ev;
	struct sim_spin *spin, *next, *ends = NULL;
	sim_ps at = ev->at;
	bool any = false;

	for (spin = sim->spins; spin; spin = next) {
		next = spin->next;
		if (sees(sim, spin, at)) {
			rouse(sim, spin, at);
			any = true;
		} else if (ev == spin->resume) {
			ends = spin;
		}
	}
	if (ends && !any)
		unlink_spin(ends);
	return any;
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
	sim_spin_end_all(sim);
}

void sim_run_until(struct sim *sim, sim_ps until)
{
	sim->horizon = until;
	refresh_quiet(sim);
	run_pokes(sim);
	sim_spin_end_all(sim);
	while (sim_next(sim) <= until && sim->n_front) {
		if (ho_unlikely(sim->spins) && rouse_for_next(sim))
			continue;
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
	if (!sim->n_front)
		sim_spin_end_all(sim);
	if (!sim->n_front)
		return false;
	while (ho_unlikely(sim->spins) && rouse_for_next(sim))
		;
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
		if (!sim->n_front || sim->front[sim->n_front - 1].at > limit)
			break;
		if (sim->front[sim->n_front - 1].ev->outer)
			return SIM_BLOCKED;
		if (ho_unlikely(sim->spins) && rouse_for_next(sim))
			continue;
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
