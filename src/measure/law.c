// SPDX-License-Identifier: BSD-2-Clause
/*
 * The law: what another setting would give, from the prices in the view.
 *
 *   sending     pps of a queue = min(n f, room on the sender's CPU / c), n frames in flight at
 * most, f cleanings a second; all queues together no more than wire and bus let through receiving
 * the same number that arrives, unless a ring overflows between two polls, or the CPU that polls,
 * or that of the program, has no time left requests    transactions = outstanding / time of a
 * round; that time is the present one with the wait for moderation, and the price of interrupts,
 * exchanged; no more than the CPUs can do
 */
#include <string.h>

#include "measure/explain.h"

/* Adaptive moderation settles at 8,000 interrupts a second under bulk load, and takes turns between
 * 10 and 50 us for a few frames. */
#define ADAPTIVE_BULK_S 125e-6
#define ADAPTIVE_FEW_S  30e-6

static double interval(const struct ms_choice *c, bool bulk)
{
	if (c->mode == MS_MODE_POLL)
		return 0;
	if (c->usecs == 1)
		return bulk ? ADAPTIVE_BULK_S : ADAPTIVE_FEW_S;
	return c->usecs * 1.024e-6;
}

/* ns of an interrupt with what it begins. Direct begins no softirqs. */
static double irq_price(const struct ms_view *v, const struct ms_choice *c)
{
	/* Polling shows no interrupts: the price of one is a guess then. */
	double irq = isnan(v->irq_ns) ? 900 : v->irq_ns;
	double hard = isnan(v->hard_ns) ? 600 : v->hard_ns;

	if (c->mode == MS_MODE_POLL)
		return 0;
	if (c->mode == MS_MODE_DIRECT)
		return v->now.mode == MS_MODE_DIRECT ? irq : hard;
	return v->now.mode == MS_MODE_DIRECT ? irq * 1.5 : irq;
}

/* CPUs that the vectors interrupt. */
static unsigned irq_cpus(const struct ms_view *v, enum ms_place place)
{
	unsigned n = v->ev->n_cpus, queues = HO_MAX(v->ev->n_queues, 1u);

	if (place == MS_PLACE_ZERO)
		return 1;
	if (place == MS_PLACE_AWAY)
		n -= v->apps;
	else if (v->apps)
		n = v->apps;
	return HO_MAX(1u, HO_MIN(n, queues));
}

/* What a frame costs more when so many are in flight that they leave the first cache before they
 * are cleaned: 64 bytes each. */
static double spill_ns(const struct ms_view *v, double batch)
{
	double l1 = ms_ev(v->ev, MS_EV_L1D_BYTES);

	return !isnan(l1) && batch * 64 > l1 * 0.9 ? fmin(0.08 * (v->app_ns + v->soft_ns), 20) : 0;
}

static double send(const struct ms_view *v, const struct ms_choice *c)
{
	unsigned queues = HO_MAX(v->ev->n_queues, 1u), cpus = irq_cpus(v, c->place);
	double reserved = ms_ev0(v->ev, MS_EV_TX_RESERVED), n = c->ring - reserved;
	double t = interval(c, true), k = irq_price(v, c) * 1e-9;
	double app = fmax(v->app_ns, 20) * 1e-9,
	       soft = fmax(isnan(v->soft_ns) ? 0 : v->soft_ns, 1) * 1e-9;
	bool shared = c->place != MS_PLACE_AWAY;
	bool known = !v->now.usecs && v->now.mode != MS_MODE_POLL && v->cleanings > 0;
	double all = ms_ev(v->ev, MS_EV_OFFERED_PPS), r = v->rate / queues, sum = 0;

	for (unsigned round = 0; round < 30; round++) {
		double f = c->mode == MS_MODE_POLL ? 0
			   : t > 0                 ? fmin(1 / t, r)
			   : known                 ? r / fmax(1, v->rate / queues / v->cleanings)
						   : fmin(r / 4, 1 / (0.5e-6 + k));
		double batch = f > 0 ? fmin(n, r / f) : 64;
		double cost = app + spill_ns(v, batch) * 1e-9, here = soft * r + k * f;
		double per_cpu = here * queues / cpus, slow, other;

		/* On a CPU with the interrupts, and on one without. */
		slow = fmax(0, 1 - (shared ? fmin(per_cpu, 0.95) : 0)) / cost;
		other = 1 / cost;
		if (f > 0) {
			slow = fmin(slow, n * f);
			other = fmin(other, n * f);
		}
		/* Nobody sends more than is cleaned. */
		if (per_cpu > 1) {
			slow = fmin(slow, r / per_cpu);
			other = fmin(other, r / per_cpu);
		}
		sum = shared ? slow * cpus + other * (queues - HO_MIN(cpus, queues))
			     : other * queues;
		r = (r + sum / queues) / 2;
	}
	sum = r * queues;
	if (!isnan(all))
		sum = fmin(sum, all);
	if (v->wire > 0)
		sum = fmin(sum, v->rate / v->wire);
	if (v->pci > 0)
		sum = fmin(sum, v->rate / v->pci);
	return sum;
}

static double receive(const struct ms_view *v, const struct ms_choice *c)
{
	unsigned queues = HO_MAX(v->ev->n_queues, 1u), cpus = irq_cpus(v, c->place);
	double uneven = fmin(v->imbalance, (double)queues);
	double most = v->arrives * uneven / queues; /* of the busiest queue */
	double soft = fmax(isnan(v->soft_ns) ? 100 : v->soft_ns, 5) * 1e-9;
	double app = isnan(v->app_ns) ? 0 : v->app_ns * 1e-9;
	double t = interval(c, true), k = irq_price(v, c) * 1e-9;
	double room = t > 0 ? c->ring / (t + 3e-6) : INFINITY; /* what a ring takes a second */
	double kept = v->arrives, load, got;

	if (most > room)
		kept -= most - room;
	/* The busiest CPU: its queues' share. While it is behind, interrupts stay off. */
	load = (uneven > 1.3 ? most : v->arrives / cpus) * soft;
	if (load > 1)
		kept = fmin(kept, v->arrives / load);
	got = kept;
	if (v->apps && app > 0) {
		bool shared = c->place != MS_PLACE_AWAY;
		double f = t > 0 ? fmin(1 / t, kept / cpus) : kept / cpus / 2;
		double left = shared ? 1 - fmin(1, kept / cpus * soft + k * f) : 1;

		got = fmin(kept, left / app);
	}
	if (v->wire > 1)
		got = fmin(got, v->arrives / v->wire);
	return got;
}

static double request(const struct ms_view *v, const struct ms_choice *c)
{
	double t_now = interval(&v->now, false), t = interval(c, false);
	double n = isnan(v->outstanding) ? 1 : v->outstanding;
	double think = ms_ev0(v->ev, MS_EV_THINK) * 1e-9;
	double round = v->round, soft = (isnan(v->soft_ns) ? 0 : v->soft_ns) * 1e-9;
	double k_now = irq_price(v, &v->now) * 1e-9, k = irq_price(v, c) * 1e-9;
	double app = (isnan(v->app_ns) ? 0 : v->app_ns) * 1e-9;
	double shared_now =
		v->now.place == MS_PLACE_AWAY ? fmax(app, soft + k_now) : app + soft + k_now;
	double work = fmax(app + soft + 2 * k_now, n * shared_now * 0.9), wait, shared, cap;
	bool gated = v->gate > 0.8 || (v->now.usecs == 1 && v->now.mode != MS_MODE_POLL);

	/* The part of the round that is neither ours nor the timer's. */
	wait = fmax(round - work, 0);
	if (gated)
		wait = fmax(fmin(wait, work * 0.6), wait - 2 * t_now);
	round = app + soft + 2 * k + wait;
	/* A timer longer than the round makes the round its own length. */
	if (t > 0)
		round = fmax(round + t * 0.3, t);
	/* All that are outstanding may come at once: then they wait for each other. */
	shared = c->place == MS_PLACE_AWAY ? fmax(app, soft + k) : app + soft + k;
	cap = shared > 0 ? 1 / shared : INFINITY;
	round = fmax(round, n * shared * 0.9);
	return fmin(n / (round + think), cap);
}

double ms_law(const struct ms_view *v, const struct ms_choice *c)
{
	switch (v->aim) {
	case MS_AIM_SEND:
		return send(v, c);
	case MS_AIM_RECEIVE:
		return receive(v, c);
	case MS_AIM_REQUEST:
		return request(v, c);
	case MS_AIM_NOTHING:
		break;
	}
	return 0;
}

/* --- the choices ---------------------------------------------------------------------------- */

static bool possible(const struct ms_view *v, const struct ms_choice *c)
{
	unsigned queues = HO_MAX(v->ev->n_queues, 1u), free = v->ev->n_cpus - v->apps;

	if (c->place == MS_PLACE_AWAY && (!v->apps || !free))
		return false;
	if (c->place == MS_PLACE_APPS && v->apps == 1)
		return false; /* the same as ZERO */
	if (c->mode != MS_MODE_POLL)
		return true;
	if (c->usecs)
		return false;
	/* A thread that never sleeps needs a CPU for itself. */
	if (v->apps)
		return c->place == MS_PLACE_AWAY && queues <= free;
	return queues <= (c->place == MS_PLACE_ZERO ? 1 : v->ev->n_cpus);
}

void ms_choices_list(const struct ms_view *v, struct ms_choices *out)
{
	static const unsigned rings[] = { 256, 1024, 4096 }, usecs[] = { 0, 1, 10, 30, 100 };
	static const enum ms_ev_mode modes[] = { MS_MODE_NAPI, MS_MODE_DIRECT, MS_MODE_POLL };

	out->n = 0;
	for (unsigned r = 0; r < HO_ARRAY_LEN(rings); r++) {
		for (unsigned u = 0; u < HO_ARRAY_LEN(usecs); u++) {
			for (unsigned m = 0; m < HO_ARRAY_LEN(modes); m++) {
				for (unsigned p = MS_PLACE_ZERO; p <= MS_PLACE_AWAY; p++) {
					const struct ms_choice c = { rings[r], usecs[u], modes[m],
								     (enum ms_place)p };

					if (v->aim == MS_AIM_REQUEST && r)
						continue;
					if (possible(v, &c) && out->n < MS_CHOICES_MAX)
						out->choice[out->n++] = c;
				}
			}
		}
	}
}

void ms_choices_live(const struct ms_view *v, struct ms_choices *out)
{
	struct ms_choices all;

	ms_choices_list(v, &all);
	out->n = 0;
	for (unsigned i = 0; i < all.n; i++) {
		struct ms_choice c = all.choice[i];

		if (c.mode != MS_MODE_NAPI)
			continue;
		c.mode = v->now.mode;
		if (!v->now.ring)
			c.ring = 0;
		if (isnan(ms_ev(v->ev, MS_EV_RX_USECS)))
			c.usecs = v->now.usecs;
		if (c.usecs == 1 && isnan(ms_ev(v->ev, MS_EV_ADAPTIVE)) && v->now.usecs != 1)
			continue;
		if (v->now.place == MS_PLACE_ELSE)
			c.place = MS_PLACE_ELSE;
		out->choice[out->n++] = c;
	}
}
