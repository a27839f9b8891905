// SPDX-License-Identifier: BSD-2-Clause
#include "mac/txshare.h"

#include <string.h>

/* Is somebody in the line before this seat, or, if it is not in the line, anybody? */
static bool others_first(const struct mac_txshare *share, const struct mac_txseat *seat)
{
	for (unsigned i = 0; i < share->seats; i++) {
		uint32_t ticket = share->seat[i].ticket;

		if (!ticket || &share->seat[i] == seat)
			continue;
		/* Tickets wrap; the line is far shorter. */
		if (!seat->ticket || (int32_t)(ticket - seat->ticket) < 0)
			return true;
	}
	return false;
}

static void to_the_end(struct mac_txshare *share, struct mac_txseat *seat)
{
	if (!++share->next_ticket)
		share->next_ticket++;
	seat->ticket = share->next_ticket;
}

static unsigned frames_in(const struct pk_slot *slots, unsigned n)
{
	unsigned frames = 0;

	for (unsigned i = 0; i < n; i++)
		frames += !(slots[i].flags & PK_MORE);
	return frames;
}

/* To be called before the frames are handed over: the cleaner may have them at once. NULL when too
 * many are under way. */
static struct mac_txmark *put_mark(struct mac_txseat *seat, unsigned frames)
{
	struct mac_txmark *mark = &seat->mark[seat->put % MAC_TXSEAT_MARKS];

	if (seat->put - __atomic_load_n(&seat->take, __ATOMIC_ACQUIRE) == MAC_TXSEAT_MARKS)
		return NULL;
	mark->frame = seat->share->accepted + frames;
	mark->since_ns = seat->offered_ns;
	__atomic_store_n(&seat->put, seat->put + 1, __ATOMIC_RELEASE);
	return mark;
}

/* Not all were taken: those that were are a smaller number, which the cleaner cannot have reached
 * with the old one. */
static void correct_mark(struct mac_txseat *seat, struct mac_txmark *mark, unsigned frames)
{
	if (frames)
		__atomic_store_n(&mark->frame, seat->share->accepted + frames, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&seat->put, seat->put - 1, __ATOMIC_RELEASE);
}

static unsigned send(struct mac_txseat *seat, struct pk_slot *slots, unsigned n)
{
	struct mac_txshare *share = seat->share;
	unsigned frames = frames_in(slots, n), taken, taken_frames;
	struct mac_txmark *mark = seat->drain_ns ? put_mark(seat, frames) : NULL;

	taken = mac_bql_tx(share->bql, slots, n);
	taken_frames = taken == n ? frames : frames_in(slots, taken);
	if (mark && taken_frames < frames)
		correct_mark(seat, mark, taken_frames);
	share->accepted += taken_frames;
	return taken;
}

/* The cleaner: which of the marked frames are done? */
static void cleaned(void *arg, uint32_t frames)
{
	struct mac_txshare *share = arg;

	share->done += frames;
	for (unsigned i = 0; i < share->seats; i++) {
		struct mac_txseat *seat = &share->seat[i];
		uint32_t put = __atomic_load_n(&seat->put, __ATOMIC_ACQUIRE), take = seat->take;

		for (; take != put; take++) {
			const struct mac_txmark *mark = &seat->mark[take % MAC_TXSEAT_MARKS];
			uint64_t frame = __atomic_load_n(&mark->frame, __ATOMIC_RELAXED);

			if (frame > share->done)
				break;
			ho_hist_add(seat->drain_ns,
				    rt_now_ns(share->bql->q->port->rt) - mark->since_ns);
		}
		__atomic_store_n(&seat->take, take, __ATOMIC_RELEASE);
	}
}

static unsigned tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	struct mac_txseat *seat = (struct mac_txseat *)q;
	struct mac_txshare *share = seat->share;
	unsigned taken = 0;

	if (seat->drain_ns && !seat->offering) {
		seat->offering = true;
		seat->offered_ns = rt_now_ns(q->port->rt);
	}
	if (__atomic_exchange_n(&share->inside, 1, __ATOMIC_ACQUIRE))
		return 0;
	if (others_first(share, seat)) {
		if (!seat->ticket)
			to_the_end(share, seat);
	} else {
		taken = send(seat, slots, n);
		if (taken == n) {
			seat->ticket = 0;
			seat->offering = false;
		} else if (taken || !seat->ticket) {
			to_the_end(share, seat);
		}
	}
	__atomic_store_n(&share->inside, 0, __ATOMIC_RELEASE);
	return taken;
}

static unsigned reap(struct port_txq *q)
{
	struct mac_txshare *share = ((struct mac_txseat *)q)->share;
	struct port_txq *ring = share->bql->q;
	struct port_work done = { 0 };

	if (__atomic_exchange_n(&share->cleaning, 1, __ATOMIC_ACQUIRE))
		return 0;
	ring->port->ops->clean(ring, UINT32_MAX, &done);
	mac_bql_completed(share->bql, &done);
	__atomic_store_n(&share->cleaning, 0, __ATOMIC_RELEASE);
	return done.packets;
}

void mac_txshare_init(struct mac_txshare *share, struct mac_bql *bql)
{
	memset(share, 0, sizeof(*share));
	share->bql = bql;
	bql->cleaned = cleaned;
	bql->cleaned_arg = share;
}

struct mac_txseat *mac_txshare_seat(struct mac_txshare *share, bool cleans)
{
	struct port_txq *ring = share->bql->q;
	struct mac_txseat *seat;

	if (share->seats == MAC_TXSHARE_SEATS)
		return NULL;
	seat = &share->seat[share->seats++];
	seat->share = share;
	seat->q = (struct port_txq){ .tx = tx,
				     .reap = cleans ? reap : NULL,
				     .cache = ring->cache,
				     .arena = ring->arena,
				     .port = ring->port,
				     .index = ring->index };
	return seat;
}

void mac_txseat_measure(struct mac_txseat *seat, struct ho_hist *drain_ns)
{
	ho_hist_init(drain_ns);
	seat->drain_ns = drain_ns;
}

void mac_txseat_leave(struct mac_txseat *seat)
{
	seat->ticket = 0;
	seat->offering = false;
}
