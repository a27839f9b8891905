// SPDX-License-Identifier: BSD-2-Clause
#include "lab/socket.h"

#include <errno.h>
#include <stdlib.h>

/* A frame may be a chain: room beyond the limit in frames. */
#define SLOTS_A_FRAME 4

struct lab_socket {
	struct port port;
	struct rt_event *event;
	bool armed;
	struct mac_txseat *seat;
	struct pk_cache *cache;
	struct pk_slot *slot; /* a ring: [head .. head + waiting) */
	uint32_t room, head, waiting;
	uint32_t limit, frames; /* that wait */
	uint64_t delivered;
};

static unsigned socket_rx(struct port_rxq *q, struct pk_slot *slots, unsigned n)
{
	struct lab_socket *s = (struct lab_socket *)q->port;
	unsigned got = 0, frames = 0;
	uint64_t bytes = 0;

	while (got < n && s->waiting) {
		unsigned used = 1;

		while (s->slot[(s->head + used - 1) % s->room].flags & PK_MORE)
			used++;
		if (got + used > n)
			break;
		for (unsigned i = 0; i < used; i++) {
			slots[got] = s->slot[s->head];
			bytes += slots[got++].len;
			s->head = (s->head + 1) % s->room;
		}
		s->waiting -= used;
		s->frames--;
		frames++;
	}
	port_count(&q->ctr, frames, bytes);
	/* Only now: while time passes, a softirq may deliver more. */
	rt_spend(s->port.rt, RT_COST_SYSCALL, 1);
	rt_spend(s->port.rt, RT_COST_RX_BYTE, (uint32_t)bytes);
	return got;
}

static unsigned socket_tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	struct lab_socket *s = (struct lab_socket *)q->port;
	unsigned frames = 0, taken;
	uint64_t bytes = 0;

	rt_spend(s->port.rt, RT_COST_SYSCALL, 1);
	taken = port_tx(&s->seat->q, slots, n);
	for (unsigned i = 0; i < taken; i++) {
		bytes += slots[i].len;
		frames += !(slots[i].flags & PK_MORE);
	}
	q->accepted += frames;
	port_count(&q->ctr, frames, bytes);
	rt_spend(s->port.rt, RT_COST_STACK_TX, frames);
	rt_spend(s->port.rt, RT_COST_TX_BYTE, (uint32_t)bytes);
	return taken;
}

static unsigned socket_reap(struct port_txq *q)
{
	return port_reap(&((struct lab_socket *)q->port)->seat->q);
}

static struct rt_event *socket_event(struct port_rxq *q)
{
	return ((struct lab_socket *)q->port)->event;
}

static bool socket_arm(struct port_rxq *q)
{
	struct lab_socket *s = (struct lab_socket *)q->port;

	s->armed = true;
	return s->waiting != 0;
}

static void socket_disarm(struct port_rxq *q)
{
	((struct lab_socket *)q->port)->armed = false;
}

static const struct port_ops socket_ops = {
	.rx_event = socket_event,
	.arm = socket_arm,
	.disarm = socket_disarm,
};

static const struct port_kind socket_kind = {
	.name = "socket",
	.help = "a socket over a modelled chip",
	.target = "CHIP",
};

int lab_socket_create(struct rt *rt, struct pk_arena *arena, struct port *chip,
		      struct mac_txshare *share, bool cleans, uint32_t limit,
		      struct lab_socket **out, struct ho_err *err)
{
	const struct port_config config = { .rt = rt, .arena = arena };
	struct port *port = port_new(sizeof(struct lab_socket), &socket_kind, chip->name, &config,
				     1, sizeof(struct port_rxq), 1, sizeof(struct port_txq));
	struct lab_socket *s = (struct lab_socket *)port;
	int rc;

	if (!port)
		return ho_err_set(err, -ENOMEM, "out of memory for a socket");
	port->ops = &socket_ops;
	port->max_frame = chip->max_frame;
	port->mtu = chip->mtu;
	s->limit = limit;
	s->room = limit * SLOTS_A_FRAME + 1;
	s->slot = calloc(s->room, sizeof(*s->slot));
	s->seat = mac_txshare_seat(share, cleans);
	rc = s->slot && s->seat
		     ? pk_cache_create(arena, &s->cache, err)
		     : ho_err_set(err, -ENOMEM, "%s: no memory or turn for a socket", chip->name);
	if (rc == 0)
		rc = rt_event_create(rt, &s->event, err);
	if (rc < 0) {
		lab_socket_destroy(s);
		return rc;
	}
	port->rxq[0]->rx = socket_rx;
	port->txq[0]->tx = socket_tx;
	if (cleans)
		port->txq[0]->reap = socket_reap;
	port_bind_rx(port, 0, s->cache);
	port_bind_tx(port, 0, s->cache);
	*out = s;
	return 0;
}

void lab_socket_close(struct lab_socket *s)
{
	port_drop(&s->port.rxq[0]->ctr, PORT_DROP_RX_CLOSED, s->frames);
	for (; s->waiting; s->waiting--, s->head = (s->head + 1) % s->room)
		pk_free_slots(s->cache, &s->slot[s->head], 1);
	s->frames = 0;
}

void lab_socket_destroy(struct lab_socket *s)
{
	if (!s)
		return;
	if (s->waiting)
		lab_socket_close(s);
	if (s->event)
		rt_event_destroy(s->port.rt, s->event);
	pk_cache_destroy(s->cache);
	free(s->slot);
	port_free(&s->port);
}

void lab_socket_deliver(struct lab_socket *s, struct pk_cache *cache, struct pk_slot *slots,
			unsigned n)
{
	bool any = false;

	for (unsigned i = 0, used; i < n; i += used) {
		used = pk_frame_slots(slots + i, n - i);
		rt_spend(s->port.rt, RT_COST_STACK_RX, 1);
		s->delivered++;
		if (s->frames >= s->limit || s->waiting + used > s->room) {
			port_drop(&s->port.rxq[0]->ctr, PORT_DROP_RX_SOCKET, 1);
			pk_free_slots(cache, slots + i, used);
			continue;
		}
		for (unsigned k = 0; k < used; k++)
			s->slot[(s->head + s->waiting++) % s->room] = slots[i + k];
		s->frames++;
		any = true;
	}
	if (any && s->armed) {
		s->armed = false;
		rt_event_signal(s->port.rt, s->event);
	}
}

struct port_rxq *lab_socket_rxq(struct lab_socket *s)
{
	return s->port.rxq[0];
}

struct port_txq *lab_socket_txq(struct lab_socket *s)
{
	return s->port.txq[0];
}

struct pk_cache *lab_socket_cache(struct lab_socket *s)
{
	return s->cache;
}

void lab_socket_leave(struct lab_socket *s)
{
	mac_txseat_leave(s->seat);
}

uint64_t lab_socket_delivered(const struct lab_socket *s)
{
	return s->delivered;
}

uint64_t lab_socket_dropped(const struct lab_socket *s)
{
	return s->port.rxq[0]->ctr.drops[PORT_DROP_RX_SOCKET];
}

int64_t lab_socket_missing(const struct lab_socket *s)
{
	const struct port_counters *ctr = &s->port.rxq[0]->ctr;

	return (int64_t)(s->delivered - ctr->packets - ctr->drops[PORT_DROP_RX_SOCKET] -
			 ctr->drops[PORT_DROP_RX_CLOSED] - s->frames);
}
