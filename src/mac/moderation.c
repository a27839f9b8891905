// SPDX-License-Identifier: BSD-2-Clause
#include "mac/moderation.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"

#define QUARTER_NS 250u
#define TICK_NS    1000000u /* Linux's jiffy at HZ=1000 */

static const char *const names[MAC_MOD_KINDS] = {
	[MAC_MOD_FIXED] = "fixed",
	[MAC_MOD_ADAPTIVE_2_6] = "adaptive-2.6",
	[MAC_MOD_ADAPTIVE_2017] = "adaptive-2017",
	[MAC_MOD_DIM_RX_EQE] = "dim-rx-eqe",
	[MAC_MOD_DIM_RX_CQE] = "dim-rx-cqe",
	[MAC_MOD_DIM_TX_EQE] = "dim-tx-eqe",
	[MAC_MOD_DIM_TX_CQE] = "dim-tx-cqe",
};

const char *mac_mod_name(enum mac_mod_kind kind)
{
	return names[kind];
}

int mac_mod_from_name(const char *name, enum mac_mod_kind *out, struct ho_err *err)
{
	for (unsigned i = 0; i < MAC_MOD_KINDS; i++) {
		if (!strcmp(name, names[i])) {
			*out = (enum mac_mod_kind)i;
			return 0;
		}
	}
	return ho_err_set(err, -EINVAL,
			  "'%s' is no moderation; there are fixed, adaptive-2.6, adaptive-2017, "
			  "dim-rx-eqe, dim-rx-cqe, dim-tx-eqe and dim-tx-cqe",
			  name);
}

/* --- adaptive-2.6 --------------------------------------------------------------------------- */

/* The class of one direction, from its bytes per microsecond over the last interval. */
static void classify(enum mac_mod_class *class, uint32_t itr, uint32_t packets, uint32_t bytes)
{
	const uint32_t usecs = itr / 4;
	uint32_t rate;

	if (!packets || !usecs)
		return;
	rate = bytes / usecs;
	switch (*class) {
	case MAC_MOD_LOWEST:
		if (rate > 10)
			*class = MAC_MOD_LOW;
		break;
	case MAC_MOD_LOW:
		if (rate > 20)
			*class = MAC_MOD_BULK;
		else if (rate <= 10)
			*class = MAC_MOD_LOWEST;
		break;
	case MAC_MOD_BULK:
		if (rate <= 20)
			*class = MAC_MOD_LOW;
		break;
	}
}

static void update_2_6(struct mac_moderation *m, const struct mac_mod_sample *s)
{
	/* 100,000, 20,000 and 8,000 interrupts a second. */
	static const uint32_t targets[] = { 40, 200, 500 };
	uint32_t itr = m->a26.itr, target;

	classify(&m->a26.tx, itr, s->tx_packets, s->tx_bytes);
	classify(&m->a26.rx, itr, s->rx_packets, s->rx_bytes);
	target = targets[HO_MAX(m->a26.rx, m->a26.tx)];
	if (target == itr)
		return;
	/*
	 * A weighted harmonic mean, in integers: on the way to 500 it ends at 490, because
	 * 2,450,000 / 4990 is 490 again.
	 */
	m->a26.itr = 10 * target * itr / (9 * target + itr);
	m->spacing_ns = m->a26.itr * QUARTER_NS;
}

/* --- adaptive-2017 -------------------------------------------------------------------------- */

#define MIN_USECS 10u
#define MAX_USECS 126u
#define INCREMENT 2u
#define LATENCY   0x80u

/* From the mean frame size to microseconds, for when the number of frames says nothing. */
static uint32_t usecs_by_size(uint32_t size, bool latency, uint64_t link_bps)
{
	uint32_t x;

	if (size <= 60)
		x = 5120;
	else if (size <= 316)
		x = size * 40 + 2720;
	else if (size <= 1084)
		x = size * 15 + 11452;
	else if (size < 1968)
		x = size * 5 + 22420;
	else
		x = 32256;
	if (latency)
		x /= 2;
	if (link_bps && link_bps <= 2500000000ull && link_bps != 100000000ull) {
		x = HO_MIN(x, 8064u);
		return (x + INCREMENT * 64 - 1) / (INCREMENT * 64) * INCREMENT;
	}
	return (x + INCREMENT * 256 - 1) / (INCREMENT * 256) * INCREMENT;
}

static void update_direction(struct mac_moderation *m, struct mac_mod_2017 *d, uint64_t tick,
			     uint32_t packets, uint32_t bytes)
{
	const uint32_t current = m->a2017.itr / 4;
	uint32_t usecs = MIN_USECS | LATENCY;

	/* Later than a tick or two: either nothing happens, or polling moderates by itself. */
	if (tick > d->next_tick)
		goto out;
	if (!packets)
		usecs = HO_MIN(current + INCREMENT, MAX_USECS) + (d->usecs & LATENCY);
	else if (packets < 4 && bytes < 9000)
		usecs = LATENCY + usecs_by_size(bytes / packets, true, m->link_bps);
	else if (packets < 48)
		usecs = HO_MIN(current + INCREMENT, MAX_USECS);
	else if (packets < 96)
		usecs = current;
	else if (packets < 256)
		usecs = HO_MAX(m->a2017.itr / 8, MIN_USECS);
	else
		usecs = usecs_by_size(bytes / packets, false, m->link_bps);
out:
	d->usecs = (uint8_t)usecs;
	d->next_tick = tick + 1;
}

static void update_2017(struct mac_moderation *m, const struct mac_mod_sample *s)
{
	const uint64_t tick = s->now_ns / TICK_NS;
	uint32_t usecs;

	update_direction(m, &m->a2017.tx, tick, s->tx_packets, s->tx_bytes);
	update_direction(m, &m->a2017.rx, tick, s->rx_packets, s->rx_bytes);
	/* Compared with the mode bit: a direction in latency mode yields to one that is not. */
	usecs = HO_MIN(m->a2017.rx.usecs, m->a2017.tx.usecs) & ~LATENCY;
	m->a2017.itr = usecs * 4;
	m->spacing_ns = usecs * 1000;
}

/* --- DIM ------------------------------------------------------------------------------------ */

#define PROFILES    5
#define FIRST       1  /* profile to begin with */
#define EVENTS      64 /* in a measurement */
#define TIRED       (2 * PROFILES)
#define SIGNIFICANT 10 /* per cent */

static const struct {
	uint16_t usecs, frames;
} profiles[][PROFILES] = {
	[MAC_MOD_DIM_RX_EQE] = { { 1, 256 }, { 8, 256 }, { 64, 256 }, { 128, 256 }, { 256, 256 } },
	[MAC_MOD_DIM_RX_CQE] = { { 2, 256 }, { 8, 128 }, { 16, 64 }, { 32, 64 }, { 64, 64 } },
	[MAC_MOD_DIM_TX_EQE] = { { 1, 128 }, { 8, 128 }, { 32, 128 }, { 64, 128 }, { 128, 128 } },
	[MAC_MOD_DIM_TX_CQE] = { { 5, 128 }, { 8, 64 }, { 16, 32 }, { 32, 32 }, { 64, 32 } },
};

static void use_profile(struct mac_moderation *m)
{
	m->spacing_ns = profiles[m->kind][m->dim.profile].usecs * 1000u;
	m->frames = profiles[m->kind][m->dim.profile].frames;
}

/* > 0 better, < 0 worse, 0 the same. */
static int compare_one(uint64_t now, uint64_t before)
{
	uint64_t diff = now > before ? now - before : before - now;

	if (diff * 100 / before <= SIGNIFICANT)
		return 0;
	return now > before ? 1 : -1;
}

static int compare(const struct mac_dim_rates *now, const struct mac_dim_rates *before)
{
	int better;

	if (!before->bytes)
		return now->bytes ? 1 : 0;
	better = compare_one(now->bytes, before->bytes);
	if (better)
		return better;
	if (!before->packets)
		return now->packets ? 1 : 0;
	better = compare_one(now->packets, before->packets);
	if (better)
		return better;
	/* Equal throughput: fewer interrupts are better. */
	return before->events ? -compare_one(now->events, before->events) : 0;
}

static void turn(struct mac_dim *d)
{
	if (d->tune == MAC_DIM_RIGHT) {
		d->tune = MAC_DIM_LEFT;
		d->steps_left = 0;
	} else if (d->tune == MAC_DIM_LEFT) {
		d->tune = MAC_DIM_RIGHT;
		d->steps_right = 0;
	}
}

static void park(struct mac_dim *d, enum mac_dim_tune where)
{
	d->steps_right = d->steps_left = 0;
	if (where == MAC_DIM_ON_TOP)
		d->tired = 0;
	d->tune = where;
}

/* Turning after several steps one way and exactly one back: the top lies between. */
static bool on_top(const struct mac_dim *d)
{
	if (d->tune == MAC_DIM_RIGHT)
		return d->steps_left > 1 && d->steps_right == 1;
	return d->steps_right > 1 && d->steps_left == 1;
}

/* One step on the ladder; where to park when it cannot be made. */
static bool step(struct mac_dim *d, enum mac_dim_tune *parked)
{
	if (d->tired == TIRED) {
		*parked = MAC_DIM_TIRED;
		return false;
	}
	*parked = MAC_DIM_ON_TOP;
	if (d->tune == MAC_DIM_RIGHT) {
		if (d->profile == PROFILES - 1)
			return false;
		d->profile++;
		d->steps_right++;
	} else {
		if (d->profile == 0)
			return false;
		d->profile--;
		d->steps_left++;
	}
	d->tired++;
	return true;
}

static void leave_parking(struct mac_dim *d)
{
	enum mac_dim_tune ignored;

	d->tune = d->profile ? MAC_DIM_LEFT : MAC_DIM_RIGHT;
	step(d, &ignored);
}

static void decide(struct mac_dim *d, const struct mac_dim_rates *now)
{
	const enum mac_dim_tune before = d->tune;
	enum mac_dim_tune parked;

	switch (d->tune) {
	case MAC_DIM_ON_TOP:
		if (compare(now, &d->prev) != 0)
			leave_parking(d);
		break;
	case MAC_DIM_TIRED:
		if (--d->tired == 0)
			leave_parking(d);
		break;
	case MAC_DIM_RIGHT:
	case MAC_DIM_LEFT:
		/* on_top is asked of the new direction, whose last visit made one step. */
		if (compare(now, &d->prev) <= 0)
			turn(d);
		if (on_top(d))
			park(d, MAC_DIM_ON_TOP);
		else if (!step(d, &parked))
			park(d, parked);
		break;
	}
	/* While parked on top the reference stays: slow drift must not go unnoticed. */
	if (before != MAC_DIM_ON_TOP || d->tune != MAC_DIM_ON_TOP)
		d->prev = *now;
}

static uint64_t per_ms(uint64_t n, uint64_t usecs)
{
	return (n * 1000 + usecs - 1) / usecs;
}

static void update_dim(struct mac_moderation *m, const struct mac_mod_sample *s)
{
	const bool tx = m->kind == MAC_MOD_DIM_TX_EQE || m->kind == MAC_MOD_DIM_TX_CQE;
	struct mac_dim *d = &m->dim;
	const unsigned profile = d->profile;

	if (d->measuring) {
		const uint64_t usecs = (s->now_ns - d->start_ns) / 1000;
		struct mac_dim_rates now;

		d->packets += tx ? s->tx_packets : s->rx_packets;
		d->bytes += tx ? s->tx_bytes : s->rx_bytes;
		if (++d->events < EVENTS)
			return;
		if (usecs) {
			now = (struct mac_dim_rates){ .bytes = per_ms(d->bytes, usecs),
						      .packets = per_ms(d->packets, usecs),
						      .events = per_ms(EVENTS, usecs) };
			decide(d, &now);
		}
		if (d->profile != profile) {
			/* The new profile is measured from the next event on. */
			d->measuring = false;
			use_profile(m);
			return;
		}
	}
	d->measuring = true;
	d->start_ns = s->now_ns;
	d->events = 0;
	d->packets = d->bytes = 0;
}

/* --- all ------------------------------------------------------------------------------------ */

void mac_moderation_init(struct mac_moderation *m, enum mac_mod_kind kind, uint32_t spacing_ns,
			 uint64_t link_bps)
{
	*m = (struct mac_moderation){ .kind = kind, .link_bps = link_bps };
	switch (kind) {
	case MAC_MOD_ADAPTIVE_2_6:
		m->a26.itr = 200; /* 20,000 a second */
		m->spacing_ns = m->a26.itr * QUARTER_NS;
		break;
	case MAC_MOD_ADAPTIVE_2017:
		m->a2017.itr = 200;
		m->a2017.rx.usecs = m->a2017.tx.usecs = MAX_USECS | LATENCY;
		m->a2017.rx.next_tick = m->a2017.tx.next_tick = UINT64_MAX;
		m->spacing_ns = m->a2017.itr * QUARTER_NS;
		break;
	case MAC_MOD_FIXED:
	case MAC_MOD_KINDS:
		m->spacing_ns = spacing_ns;
		break;
	default:
		m->dim.profile = FIRST;
		use_profile(m);
		break;
	}
}

uint32_t mac_moderation_update(struct mac_moderation *m, const struct mac_mod_sample *sample)
{
	switch (m->kind) {
	case MAC_MOD_ADAPTIVE_2_6:
		update_2_6(m, sample);
		break;
	case MAC_MOD_ADAPTIVE_2017:
		update_2017(m, sample);
		break;
	case MAC_MOD_FIXED:
	case MAC_MOD_KINDS:
		break;
	default:
		update_dim(m, sample);
		break;
	}
	return m->spacing_ns;
}
