// SPDX-License-Identifier: BSD-2-Clause
#include "mac/bql.h"

#include <string.h>

/* a - b if that is positive, in wrapping counts. */
static inline uint32_t posdiff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0 ? a - b : 0;
}

void mac_dql_init(struct mac_dql *dql, uint64_t hold_ns, uint64_t now_ns)
{
	memset(dql, 0, sizeof(*dql));
	dql->hold_ns = hold_ns;
	dql->slack_start_ns = now_ns;
	dql->lowest_slack = UINT32_MAX;
	dql->max_limit = MAC_DQL_MAX_LIMIT;
}

void mac_dql_completed(struct mac_dql *dql, uint32_t bytes, uint64_t now_ns)
{
	const uint32_t queued = __atomic_load_n(&dql->queued, __ATOMIC_ACQUIRE);
	const uint32_t completed = dql->completed + bytes;
	const uint32_t inprogress = queued - completed;
	const uint32_t prev_inprogress = dql->prev_queued - dql->completed;
	const uint32_t all_prev_completed = posdiff(completed, dql->prev_queued);
	uint32_t limit = dql->limit;
	uint32_t over = posdiff(queued - dql->completed, limit);

	if ((over && !inprogress) || (dql->prev_over && all_prev_completed)) {
		/* Starved: over the limit, and yet the wire ran dry, now or since the last time.
		 * What was queued and done in this interval is missing from the limit. */
		limit += all_prev_completed + dql->prev_over;
		dql->slack_start_ns = now_ns;
		dql->lowest_slack = UINT32_MAX;
	} else if (inprogress && prev_inprogress && !all_prev_completed) {
		/* Busy the whole time: is there more in the queue than is needed for that? Two
		 * intervals' completions are an upper bound; the part of the last object that was
		 * within the limit is slack as well. */
		uint32_t slack = posdiff(limit + dql->prev_over, 2 * (completed - dql->completed));
		uint32_t slack_last = dql->prev_over ? posdiff(dql->prev_last, dql->prev_over) : 0;

		slack = HO_MAX(slack, slack_last);
		if (slack < dql->lowest_slack)
			dql->lowest_slack = slack;
		if (now_ns > dql->slack_start_ns + dql->hold_ns) {
			limit = posdiff(limit, dql->lowest_slack);
			dql->slack_start_ns = now_ns;
			dql->lowest_slack = UINT32_MAX;
		}
	}
	limit = HO_MIN(HO_MAX(limit, dql->min_limit), dql->max_limit);
	if (limit != dql->limit) {
		dql->limit = limit;
		over = 0;
	}
	__atomic_store_n(&dql->adj_limit, limit + completed, __ATOMIC_RELEASE);
	dql->prev_over = over;
	dql->prev_last = __atomic_load_n(&dql->last_queued, __ATOMIC_RELAXED);
	dql->completed = completed;
	dql->prev_queued = queued;
}

void mac_bql_init(struct mac_bql *bql, struct port_txq *q, bool on)
{
	memset(bql, 0, sizeof(*bql));
	bql->q = q;
	bql->on = on;
	mac_dql_init(&bql->dql, MAC_DQL_HOLD_NS, rt_now_ns(q->port->rt));
}

static uint32_t frame_bytes(const struct pk_slot *s, unsigned slots)
{
	/* As the port counts it: with a tag that travels beside the frame. */
	return pk_frame_bytes(s, slots) + (s->flags & PK_VLAN ? 4 : 0);
}

unsigned mac_bql_tx(struct mac_bql *bql, struct pk_slot *slots, unsigned n)
{
	struct mac_dql *dql = &bql->dql;
	uint32_t bytes = 0, last = 0;
	unsigned offered = 0, taken;
	int32_t avail;

	if (!bql->on)
		return port_tx(bql->q, slots, n);
	if (__atomic_load_n(&bql->stopped, __ATOMIC_RELAXED))
		return 0;
	avail = mac_dql_avail(dql);
	while (offered < n && avail - (int32_t)bytes >= 0) {
		unsigned k = pk_frame_slots(slots + offered, n - offered);

		last = frame_bytes(slots + offered, k);
		bytes += last;
		offered += k;
	}
	if (!offered)
		return 0;
	/*
	 * Counted before the port has them: the cleaner may report them at once. What the port
	 * does not take is uncounted; the cleaner cannot have completed that.
	 */
	mac_dql_queued(dql, bytes);
	dql->last_queued = last;
	taken = port_tx(bql->q, slots, offered);
	if (taken < offered) {
		uint32_t back = 0;

		for (unsigned i = 0; i < offered;) {
			unsigned k = pk_frame_slots(slots + i, offered - i);
			uint32_t size = frame_bytes(slots + i, k);

			if (i < taken)
				dql->last_queued = size;
			else
				back += size;
			i += k;
		}
		__atomic_store_n(&dql->queued, dql->queued - back, __ATOMIC_RELEASE);
	}
	if (mac_dql_avail(dql) < 0) {
		__atomic_store_n(&bql->stopped, 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		/* The cleaner may have looked just before: then nobody would restart. */
		if (mac_dql_avail(dql) >= 0)
			__atomic_store_n(&bql->stopped, 0, __ATOMIC_RELAXED);
		else
			ho_ctr_add(&bql->stops, 1);
	}
	return taken;
}

void mac_bql_completed(struct mac_bql *bql, const struct port_work *done)
{
	if (ho_unlikely(bql->cleaned != NULL) && done->packets)
		bql->cleaned(bql->cleaned_arg, done->packets);
	if (!bql->on || !done->bytes)
		return;
	mac_dql_completed(&bql->dql, done->bytes, rt_now_ns(bql->q->port->rt));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (mac_dql_avail(&bql->dql) >= 0)
		__atomic_store_n(&bql->stopped, 0, __ATOMIC_RELAXED);
}
