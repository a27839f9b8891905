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

static unsigned tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	struct mac_txseat *seat = (struct mac_txseat *)q;
	struct mac_txshare *share = seat->share;
	unsigned taken = 0;

	if (__atomic_exchange_n(&share->inside, 1, __ATOMIC_ACQUIRE))
		return 0;
	if (others_first(share, seat)) {
		if (!seat->ticket)
			to_the_end(share, seat);
	} else {
		taken = mac_bql_tx(share->bql, slots, n);
		if (taken == n)
			seat->ticket = 0;
		else if (taken || !seat->ticket)
			to_the_end(share, seat);
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

void mac_txseat_leave(struct mac_txseat *seat)
{
	seat->ticket = 0;
}
