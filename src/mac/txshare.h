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
 *
 * A seat can measure how long its frames stand behind the queue: from the moment at which the
 * sender first offers them until the cleaner takes them back, so waiting for a full ring and for a
 * turn counts, what is behind the ring (the chip's buffer, the wire) does not. Frames leave a ring
 * in the order in which they came: the n-th that was accepted is done when n are.
 */
#ifndef HOLDOFF_MAC_TXSHARE_H
#define HOLDOFF_MAC_TXSHARE_H

#include "base/hist.h"
#include "mac/bql.h"

#define MAC_TXSHARE_SEATS 8
#define MAC_TXSEAT_MARKS  32 /* frames of a seat under way that are measured at a time */

struct mac_txshare;

struct mac_txseat {
	struct port_txq q; /* first: the sender's */
	struct mac_txshare *share;
	uint32_t ticket; /* place in the line; 0 = not in it */
	/* Measuring; NULL = not. The sender puts marks, the cleaner takes them. */
	struct ho_hist *drain_ns;
	bool offering; /* what was offered at offered_ns waits still */
	uint64_t offered_ns;
	uint32_t put, take;
	struct mac_txmark {
		uint64_t frame; /* done when so many of the queue are */
		uint64_t since_ns;
	} mark[MAC_TXSEAT_MARKS];
};

struct mac_txshare {
	struct mac_bql *bql;
	uint32_t inside; /* atomic: a sender is in tx */
	uint32_t cleaning;
	uint32_t next_ticket;
	uint64_t accepted; /* frames of all seats; the sender's */
	uint64_t done;     /* of these; the cleaner's */
	unsigned seats;
	struct mac_txseat seat[MAC_TXSHARE_SEATS];
};

void mac_txshare_init(struct mac_txshare *share, struct mac_bql *bql);

/*
 * A seat for one more sender, NULL when all are taken. `cleans`: no cleaner attends to the queue,
 * so the senders' port_reap must clean (and report to BQL); without it port_reap does nothing.
 */
struct mac_txseat *mac_txshare_seat(struct mac_txshare *share, bool cleans);

/*
 * From now on adds to *drain_ns how long the seat's frames take: the last one of each burst, while
 * fewer than MAC_TXSEAT_MARKS are under way. To be called before the seat's first frame, or when
 * nothing is in flight. drain_ns is written by the cleaner.
 */
void mac_txseat_measure(struct mac_txseat *seat, struct ho_hist *drain_ns);

/* The sender has ended: nobody waits for its turn any more. */
void mac_txseat_leave(struct mac_txseat *seat);

#endif
