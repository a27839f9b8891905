// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/pacer.h"

#include <errno.h>
#include <math.h>

#include "packet/slot.h"

#define FP_BITS 32
/* Below this a sleep would come back too late to be worth it. */
#define SLEEP_MIN_NS (TR_PACER_EARLY_NS + 50000u)
/* An hour: a rate below is a typing error. */
#define GAP_MAX_NS 3600e9

/* 2^-32 ns of error in a gap of 5 ns are 2^-34 of the rate. */
static unsigned __int128 to_fp(double ns)
{
	double whole = floor(ns);

	return ((unsigned __int128)(uint64_t)whole << FP_BITS) +
	       (uint64_t)llround((ns - whole) * 0x1p32);
}

int tr_pacer_init(struct tr_pacer *pacer, struct rt *rt, struct tr_stop *stop,
		  const struct tr_pacer_config *config, uint32_t frame_bytes, struct ho_err *err)
{
	double bps = config->rate.value, workers = config->workers ? config->workers : 1;
	unsigned beside = TR_FCS_BYTES; /* bytes of a frame that we do not see */

	*pacer = (struct tr_pacer){ .rt = rt,
				    .stop = stop,
				    .burst = HO_MIN(config->burst, (unsigned)PK_BURST),
				    .timed = config->timed };
	ho_hist_init(&pacer->error_ns);
	if (config->timed)
		return 0;
	switch (config->rate.unit) {
	case HO_RATE_MAX:
		pacer->unpaced = true;
		return 0;
	case HO_RATE_PPS:
		pacer->frame_ns = 1e9 / config->rate.value;
		break;
	case HO_RATE_GAP:
		pacer->frame_ns = config->rate.value * 1e9;
		break;
	case HO_RATE_PERCENT:
		if (!config->link_bps)
			return ho_err_set(err, -EINVAL,
					  "a rate in percent needs a link with a known speed; give "
					  "it as pps or bps");
		bps = (double)config->link_bps * config->rate.value / 100;
		beside += TR_WIRE_BYTES;
		break;
	case HO_RATE_L1_BPS:
		beside += TR_WIRE_BYTES;
		break;
	case HO_RATE_L2_BPS:
		break;
	}
	if (pacer->frame_ns == 0) {
		pacer->byte_ns = 8e9 / bps;
		pacer->frame_ns = beside * pacer->byte_ns;
	}
	pacer->frame_ns *= workers;
	pacer->byte_ns *= workers;
	pacer->gap_ns = pacer->frame_ns + pacer->byte_ns * frame_bytes;
	if (pacer->gap_ns > GAP_MAX_NS)
		return ho_err_set(err, -EINVAL, "less than one frame an hour is no rate");
	pacer->frame_fp = to_fp(pacer->frame_ns);
	pacer->byte_fp = to_fp(pacer->byte_ns);
	/* Worker w's first frame: w of W parts of its gap after the start. */
	pacer->due = (unsigned __int128)llround(pacer->gap_ns * config->worker / workers)
		     << FP_BITS;
	return 0;
}

void tr_pacer_start(struct tr_pacer *pacer, uint64_t start_ns)
{
	pacer->start_ns = start_ns;
	pacer->due += (unsigned __int128)start_ns << FP_BITS;
	pacer->not_before_ns = start_ns;
}

void tr_pacer_due_at(struct tr_pacer *pacer, uint64_t after_ns)
{
	/* A broken time stamp may say that it is never due. */
	after_ns = HO_MIN(after_ns, RT_FOREVER - 1 - pacer->start_ns);
	pacer->due = (unsigned __int128)(pacer->start_ns + after_ns) << FP_BITS;
}

static uint64_t due_ns(const struct tr_pacer *pacer)
{
	return (uint64_t)(pacer->due >> FP_BITS);
}

/* Rules 2 and 3: how many frames go at once. */
static unsigned frames_now(const struct tr_pacer *pacer, uint64_t now)
{
	double overdue, allowed, ahead;

	if (pacer->timed)
		return 1;
	if (pacer->burst || pacer->unpaced)
		return pacer->burst ? pacer->burst : PK_BURST;
	ahead = TR_PACER_BURST_NS / pacer->gap_ns;
	overdue = 1 + (double)(now - due_ns(pacer)) / pacer->gap_ns;
	allowed = pacer->frames ? 2 * (double)(now - pacer->last_ns) / pacer->gap_ns : 1;
	return (unsigned)fmin(fmax(fmax(ahead, fmin(overdue, allowed)), 1), PK_BURST);
}

unsigned tr_pacer_wait(struct tr_pacer *pacer, uint64_t deadline_ns, uint64_t *now_ns)
{
	for (;;) {
		uint64_t now = rt_now_ns(pacer->rt), at;

		*now_ns = now;
		if (tr_stop_asked(pacer->stop) || now >= deadline_ns)
			return 0;
		if (pacer->unpaced)
			return frames_now(pacer, now);
		at = HO_MAX(due_ns(pacer), pacer->not_before_ns);
		if (now >= at)
			return frames_now(pacer, now);
		at = HO_MIN(at, deadline_ns);
		if (at - now < SLEEP_MIN_NS) {
			rt_spin_until(pacer->rt, at);
			continue;
		}
		pacer->sleeps++;
		rt_wait(pacer->rt, &pacer->stop->event, 1, at - TR_PACER_EARLY_NS);
	}
}

/* Adds the distance of each frame of a burst from its own time. */
static void record(struct tr_pacer *pacer, uint64_t now, uint64_t due, unsigned frames)
{
	uint64_t late = now - due;

	if (pacer->burst || frames == 1) {
		ho_hist_add(&pacer->error_ns, late);
		return;
	}
	for (unsigned i = 0; i < frames; i++) {
		int64_t error = (int64_t)late - (int64_t)(i * pacer->gap_ns);

		ho_hist_add(&pacer->error_ns, (uint64_t)(error < 0 ? -error : error));
	}
}

void tr_pacer_sent(struct tr_pacer *pacer, uint64_t now_ns, unsigned frames, uint64_t bytes)
{
	uint64_t due = due_ns(pacer), lag;

	if (!frames)
		return;
	if (pacer->unpaced) {
		pacer->frames += frames;
		return;
	}
	/* Before the first burst the schedule may not have begun: then it is not late. */
	lag = now_ns > due ? now_ns - due : 0;
	if (!pacer->frames) {
		pacer->first_ns = now_ns;
		pacer->first_due = due;
	}
	pacer->last_ns = now_ns;
	pacer->last_due = due;
	pacer->frames += frames;
	if (!pacer->timed) {
		unsigned __int128 span = pacer->frame_fp * frames + pacer->byte_fp * bytes;

		pacer->gap_ns =
			(pacer->frame_ns * frames + pacer->byte_ns * (double)bytes) / frames;
		record(pacer, now_ns, now_ns - lag, frames);
		pacer->due += span;
		if (ho_unlikely(lag > TR_PACER_LAG_MAX_NS)) {
			pacer->due += (unsigned __int128)(lag - TR_PACER_LAG_MAX_NS) << FP_BITS;
			pacer->slipped_ns += lag - TR_PACER_LAG_MAX_NS;
		}
		pacer->not_before_ns = now_ns + (uint64_t)(span >> (FP_BITS + 1));
	} else {
		ho_hist_add(&pacer->error_ns, lag);
	}
}

bool tr_pacer_rate_error(const struct tr_pacer *pacer, double *error)
{
	double actual = (double)(pacer->last_ns - pacer->first_ns);
	double planned = (double)(pacer->last_due - pacer->first_due);

	*error = 0;
	if (!pacer->frames || planned <= 0 || actual <= 0)
		return false;
	*error = (planned - (double)pacer->slipped_ns) / actual - 1;
	return true;
}
