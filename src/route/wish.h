/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker tells the control plane: neighbours that packets wait for, and what ARP and
 * Neighbour Discovery messages said. A lock-free queue from one worker to one reader; when it is
 * full the message is not sent, and is said again by the next packet.
 */
#ifndef HOLDOFF_ROUTE_WISH_H
#define HOLDOFF_ROUTE_WISH_H

#include "port/spsc.h"
#include "route/tables.h"

enum ro_wish_kind {
	RO_WISH_RESOLVE, /* packets wait for this neighbour */
	RO_WISH_SEEN,    /* it asked for our address and said its own: a request or solicitation */
	RO_WISH_ANSWER,  /* ARP reply to us; neighbour advertisement: flags */
	RO_WISH_GRATUITOUS, /* it announced itself without being asked (ARP) */
	RO_WISH_CONFLICT,   /* another one uses our address */
};

enum ro_wish_flags {
	RO_ND_ROUTER = 0x80, /* as in the advertisement's first byte */
	RO_ND_SOLICITED = 0x40,
	RO_ND_OVERRIDE = 0x20,
	RO_ND_NO_MAC = 1, /* there was no link-layer address in it */
};

struct ro_wish {
	uint8_t kind; /* enum ro_wish_kind */
	uint8_t flags;
	uint8_t mac[6];
	uint32_t ifindex;
	struct ro_addr addr;
};

#define RO_WISHES 256
struct ro_wish_queue {
	struct port_spsc idx;
	struct ro_wish wish[RO_WISHES];
};

/* By the worker. false: it is full. */
static inline bool ro_wish_put(struct ro_wish_queue *q, const struct ro_wish *wish)
{
	uint32_t head;

	if (!port_spsc_space(&q->idx, 1, &head))
		return false;
	q->wish[head & q->idx.mask] = *wish;
	port_spsc_put(&q->idx, 1);
	return true;
}

/* By the reader. false: it is empty. */
static inline bool ro_wish_take(struct ro_wish_queue *q, struct ro_wish *wish)
{
	uint32_t tail;

	if (!port_spsc_ready(&q->idx, 1, &tail))
		return false;
	*wish = q->wish[tail & q->idx.mask];
	port_spsc_take(&q->idx, 1);
	return true;
}

/* What workers read of the tables. */
struct ro_view;
struct ro_view *ro_tables_view(struct ro_tables *t);

/* The queue of a worker (0 to 255), made when it is asked for first; NULL when out of memory. By
 * the control plane. */
struct ro_wish_queue *ro_tables_queue(struct ro_tables *t, unsigned worker);

/* Who is told, from ro_tables_poll, what is not a wish for resolution. NULL = nobody. */
void ro_tables_hear(struct ro_tables *t, void (*hear)(void *arg, const struct ro_wish *wish),
		    void *arg);

/* Who resolves neighbours from now on, instead of whom ro_tables_create was given. */
void ro_tables_resolver(struct ro_tables *t, const struct ro_resolver *resolver);

#endif
