/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One transmit queue under byte queue limits, for senders that know nothing but a port's queue.
 * Each gets a seat, which is such a queue:
 *
 *   sender --> seat.q --\
 *                        share --> mac_bql_tx --> ring
 *   sender --> seat.q --/
 *
 * The senders take turns as at a lock with tickets: who was refused, or could not hand over all,
 * goes to the end of the line, and while somebody else is in front of it a seat takes nothing. So a
 * sender that always has frames cannot keep another one out.
 */
#ifndef HOLDOFF_MAC_TXSHARE_H
#define HOLDOFF_MAC_TXSHARE_H

#include "mac/bql.h"

#define MAC_TXSHARE_SEATS 8

struct mac_txshare;

struct mac_txseat {
	struct port_txq q; /* first: the sender's */
	struct mac_txshare *share;
	uint32_t ticket; /* place in the line; 0 = not in it */
};

struct mac_txshare {
	struct mac_bql *bql;
	uint32_t inside; /* atomic: a sender is in tx */
	uint32_t cleaning;
	uint32_t next_ticket;
	unsigned seats;
	struct mac_txseat seat[MAC_TXSHARE_SEATS];
};

void mac_txshare_init(struct mac_txshare *share, struct mac_bql *bql);

/*
 * A seat for one more sender, NULL when all are taken. `cleans`: no cleaner attends to the queue,
 * so the senders' port_reap must clean (and report to BQL); without it port_reap does nothing.
 */
struct mac_txseat *mac_txshare_seat(struct mac_txshare *share, bool cleans);

/* The sender has ended: nobody waits for its turn any more. */
void mac_txseat_leave(struct mac_txseat *seat);

#endif
