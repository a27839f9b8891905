// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "traffic/rxwait.h"

int tr_receiver_create(const struct tr_receiver_config *config, struct tr_receiver **out,
		       struct ho_err *err)
{
	struct tr_receiver *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return ho_err_set(err, -ENOMEM, "out of memory for a receiver");
	r->config = *config;
	rc = tr_stop_init(&r->stop, config->rt, err);
	if (rc < 0) {
		free(r);
		return rc;
	}
	rt_machine_clock_init(&r->clock, config->rt);
	tr_tracks_init(&r->tracks);
	ho_hist_init(&r->latency_ns);
	*out = r;
	return 0;
}

void tr_receiver_destroy(struct tr_receiver *receiver)
{
	if (!receiver)
		return;
	tr_stop_fini(&receiver->stop);
	tr_tracks_fini(&receiver->tracks);
	free(receiver);
}

/* The stamp of a frame, wherever its last bytes lie. */
static bool read_stamp(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
		       struct tr_stamp *stamp)
{
	const struct pk_slot *last = &slots[n - 1];
	uint8_t bytes[TR_STAMP_BYTES];
	unsigned have;

	if (ho_likely(last->len >= TR_STAMP_BYTES))
		return tr_stamp_read(pk_data(arena, last) + last->len - TR_STAMP_BYTES, stamp);
	if (n < 2 || last->len + slots[n - 2].len < TR_STAMP_BYTES)
		return false;
	have = TR_STAMP_BYTES - last->len;
	memcpy(bytes, pk_data(arena, last - 1) + last[-1].len - have, have);
	memcpy(bytes + have, pk_data(arena, last), last->len);
	return tr_stamp_read(bytes, stamp);
}

static uint64_t real_time_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Drops what does not match; returns the slots left, in order. */
static unsigned apply_filter(struct tr_receiver *r, struct pk_slot *slots, unsigned n)
{
	const struct pk_arena *arena = r->config.rxq->arena;
	unsigned kept = 0;
	uint64_t filtered = 0;

	for (unsigned i = 0, used; i < n; i += used) {
		used = pk_frame_slots(slots + i, n - i);
		if (tr_filter_match(r->config.filter, arena, &slots[i],
				    pk_frame_bytes(slots + i, used))) {
			memmove(slots + kept, slots + i, used * sizeof(*slots));
			kept += used;
		} else {
			pk_free_slots(r->config.cache, slots + i, used);
			filtered++;
		}
	}
	ho_ctr_add(&r->filtered, filtered);
	return kept;
}

/* Of the frames in n slots, takes as many as are still wanted; the slots of those. */
static unsigned apply_count(struct tr_receiver *r, struct pk_slot *slots, unsigned n)
{
	uint64_t frames = 0, before, wanted;
	unsigned end = 0;

	for (unsigned i = 0; i < n; i++)
		frames += !(slots[i].flags & PK_MORE);
	before = r->config.shared_count
			 ? __atomic_fetch_add(r->config.shared_count, frames, __ATOMIC_RELAXED)
			 : r->frames;
	wanted = before < r->config.count ? r->config.count - before : 0;
	if (frames < wanted)
		return n;
	for (uint64_t k = 0; k < wanted; k++)
		end += pk_frame_slots(slots + end, n - end);
	pk_free_slots(r->config.cache, slots + end, n - end);
	ho_ctr_add(&r->unwanted, frames - wanted);
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
	return end;
}

static void take_burst(struct tr_receiver *r, struct pk_slot *slots, unsigned n)
{
	struct rt *rt = r->config.rt;
	const struct pk_arena *arena = r->config.rxq->arena;
	uint64_t frames = 0, bytes = 0, stamped = 0, latency = 0;
	uint64_t seen = rt_now_ns(rt), now = rt_machine_ns(&r->clock, seen);

	if (r->config.filter)
		n = apply_filter(r, slots, n);
	if (r->config.count)
		n = apply_count(r, slots, n);
	for (unsigned i = 0; !r->config.no_stamps && i < n; i++)
		ho_prefetch(pk_data(arena, &slots[i]) + slots[i].len - TR_STAMP_BYTES);
	for (unsigned i = 0, used; i < n; i += used) {
		struct tr_stamp stamp;
		uint64_t delay;

		used = pk_frame_slots(slots + i, n - i);
		frames++;
		bytes += pk_frame_bytes(slots + i, used);
		if (r->config.no_stamps || !read_stamp(arena, slots + i, used, &stamp))
			continue;
		stamped++;
		tr_tracks_add(&r->tracks, &stamp);
		/* Another process's clock may be some ns ahead of ours. */
		delay = now > stamp.time_ns ? now - stamp.time_ns : 0;
		latency += delay;
		ho_hist_add(&r->latency_ns, delay);
	}
	rt_spend(rt, RT_COST_RECV_FRAME, (uint32_t)frames);
	if (r->config.capture)
		tr_capture_write(r->config.capture, arena, slots, n, real_time_ns());
	pk_free_slots(r->config.cache, slots, n);
	if (ho_unlikely(!r->first_ns))
		r->first_ns = seen;
	r->last_ns = seen;
	ho_ctr_add(&r->bytes, bytes);
	ho_ctr_add(&r->latency_sum, latency);
	ho_ctr_add(&r->stamped, stamped);
	ho_ctr_add(&r->frames, frames);
}

void tr_receiver_run(void *arg)
{
	struct tr_receiver *r = arg;
	struct rt *rt = r->config.rt;
	struct port_rxq *q = r->config.rxq;
	struct pk_slot slots[PK_BURST];
	uint64_t idle_since = 0;

	while (!__atomic_load_n(&r->done, __ATOMIC_RELAXED)) {
		unsigned n = port_rx(q, slots, PK_BURST);
		uint64_t now;

		rt_spend(rt, RT_COST_POLL, 1);
		if (ho_likely(n)) {
			take_burst(r, slots, n);
			idle_since = 0;
			/* Under a load that never pauses, the end must be seen too. */
			if (ho_unlikely(tr_stop_asked(&r->stop)) ||
			    (r->config.end_ns != RT_FOREVER && rt_now_ns(rt) >= r->config.end_ns))
				break;
			continue;
		}
		now = rt_now_ns(rt);
		if (tr_stop_asked(&r->stop) || now >= r->config.end_ns || tr_rx_ended(&q, 1) ||
		    (r->config.shared_count &&
		     __atomic_load_n(r->config.shared_count, __ATOMIC_RELAXED) >= r->config.count))
			break;
		if (!idle_since)
			idle_since = now;
		if (!r->config.block && now - idle_since < TR_RX_SPIN_NS)
			rt_relax_until(rt, HO_MIN(idle_since + TR_RX_SPIN_NS, r->config.end_ns));
		else if (tr_rx_wait(&r->stop, &q, 1, r->config.end_ns))
			ho_ctr_add(&r->waits, 1);
	}
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
	if (r->config.done_event)
		rt_event_signal(rt, r->config.done_event);
}
