// SPDX-License-Identifier: BSD-2-Clause
/*
 * mem:NAME: a wire inside the process. Opening the same name twice gives its two ends; with
 * peer=OTHER the ends have different names.
 *
 *      mem:a                                   mem:b
 *   txq[i] ---> ring[0][i] (slots, SPSC) ---> rxq[i]
 *   rxq[i] <--- ring[1][i]               <--- txq[i]
 *
 * Slots move, bytes do not. A frame is sent when it is in the ring; what is in the ring when the
 * receiving end stops is its rx_closed. With the other end not open (or gone) frames are
 * tx_link_down: a ring that nobody empties would only stall the sender.
 *
 * A sender looks whether the other end is open and puts its burst in without a lock between. So the
 * tasks that send must have ended before the receiving end is stopped, as every command sees to: a
 * burst put in behind that end's last look would belong to nobody, and its buffers be missing.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/kinds.h"
#include "port/spsc.h"

#define MEM_RING_DEFAULT 1024
#define MEM_RING_MAX     (1u << 20)
#define MEM_QUEUES_MAX   64

struct mem_ring {
	struct port_spsc idx;
	bool armed;             /* atomic: the consumer sleeps until `event` */
	struct rt_event *event; /* what the consumer waits for */
	struct pk_slot *slots;
};

struct mem_wire {
	struct mem_wire *next;
	char name[2][64]; /* of the ends */
	bool open[2];     /* ends in use, written under wires_lock, read by senders */
	bool ended[2];    /* ends that were closed: they never come back */
	unsigned ports;   /* that exist: the last one frees the wire */
	struct rt *rt;
	unsigned queues;
	uint32_t ring_size;
	struct mem_ring *ring[2]; /* ring[e][i] is filled by end e */
};

struct mem_port {
	struct port base;
	struct mem_wire *wire;
	unsigned end; /* 0 or 1 */
};

struct mem_rxq {
	struct port_rxq base;
	struct mem_ring *ring;
	struct mem_wire *wire;
	unsigned end; /* ours */
};

struct mem_txq {
	struct port_txq base;
	struct mem_ring *ring;
	const bool *peer_open;
};

struct mem_opts {
	const char *peer;
	uint64_t ring;
};

/* Names of wires are one space in a process, as interface names are in a network namespace. */
static pthread_mutex_t wires_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mem_wire *wires;

static void free_wire(struct mem_wire *wire)
{
	for (unsigned e = 0; e < 2; e++) {
		for (unsigned i = 0; wire->ring[e] && i < wire->queues; i++) {
			rt_event_destroy(wire->rt, wire->ring[e][i].event);
			free(wire->ring[e][i].slots);
		}
		free(wire->ring[e]);
	}
	free(wire);
}

/* One port less; under wires_lock. The rings and their events live as long as either end does:
 * the other end's sender may be just about to signal. */
static void put_wire(struct mem_wire *wire)
{
	struct mem_wire **link = &wires;

	if (--wire->ports)
		return;
	while (*link != wire)
		link = &(*link)->next;
	*link = wire->next;
	free_wire(wire);
}

static struct mem_wire *new_wire(struct rt *rt, const char *name, const char *peer, unsigned queues,
				 uint32_t ring_size)
{
	struct mem_wire *wire = calloc(1, sizeof(*wire));
	size_t bytes = HO_ALIGN_UP(queues * sizeof(struct mem_ring), HO_CACHE_LINE);

	if (!wire)
		return NULL;
	snprintf(wire->name[0], sizeof(wire->name[0]), "%s", name);
	snprintf(wire->name[1], sizeof(wire->name[1]), "%s", peer);
	wire->rt = rt;
	wire->queues = queues;
	wire->ring_size = ring_size;
	for (unsigned e = 0; e < 2; e++) {
		wire->ring[e] = aligned_alloc(HO_CACHE_LINE, bytes);
		if (!wire->ring[e])
			goto fail;
		memset(wire->ring[e], 0, bytes);
		for (unsigned i = 0; i < queues; i++) {
			port_spsc_init(&wire->ring[e][i].idx, ring_size);
			wire->ring[e][i].slots =
				aligned_alloc(HO_CACHE_LINE, ring_size * sizeof(struct pk_slot));
			if (!wire->ring[e][i].slots ||
			    rt_event_create(rt, &wire->ring[e][i].event, NULL) < 0)
				goto fail;
		}
	}
	wire->next = wires;
	wires = wire;
	return wire;
fail:
	free_wire(wire);
	return NULL;
}

/* Adds frames and bytes of n slots to the counters. */
static void count_slots(struct port_counters *ctr, const struct pk_slot *slots, unsigned n)
{
	uint64_t bytes = 0;
	unsigned more = 0;

	for (unsigned i = 0; i < n; i++) {
		bytes += slots[i].len;
		more += slots[i].flags & PK_MORE;
	}
	static_assert(PK_MORE == 1, "counted by adding the flag up");
	port_count(ctr, n - more, bytes);
}

static unsigned mem_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct mem_rxq *q = (struct mem_rxq *)base;
	struct mem_ring *ring = q->ring;
	uint32_t tail, ready = port_spsc_ready(&ring->idx, n, &tail), first;

	if (!ready)
		return 0;
	first = HO_MIN(ready, ring->idx.size - (tail & ring->idx.mask));
	memcpy(slots, ring->slots + (tail & ring->idx.mask), first * sizeof(*slots));
	memcpy(slots + first, ring->slots, (ready - first) * sizeof(*slots));
	ready = port_whole_frames(slots, ready + 1, ready);
	port_spsc_take(&ring->idx, ready);
	count_slots(&base->ctr, slots, ready);
	return ready;
}

static unsigned mem_tx(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct mem_txq *q = (struct mem_txq *)base;
	struct mem_ring *ring = q->ring;
	uint32_t head, room, first;
	uint64_t before = base->ctr.packets;

	if (ho_unlikely(!__atomic_load_n(q->peer_open, __ATOMIC_RELAXED))) {
		port_tx_discard(base, slots, n, PORT_DROP_TX_LINK_DOWN);
		return n;
	}
	room = port_whole_frames(slots, n, port_spsc_space(&ring->idx, n, &head));
	if (room < n)
		ho_ctr_add(&base->ctr.ring_full, 1);
	if (!room)
		return 0;
	first = HO_MIN(room, ring->idx.size - (head & ring->idx.mask));
	memcpy(ring->slots + (head & ring->idx.mask), slots, first * sizeof(*slots));
	memcpy(ring->slots, slots + first, (room - first) * sizeof(*slots));
	port_spsc_put(&ring->idx, room);
	count_slots(&base->ctr, slots, room);
	base->accepted += base->ctr.packets - before;
	/* The consumer sets `armed` before it looks at the ring for a last time: with both sides
	 * fenced one of the two sees the other. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ho_unlikely(__atomic_load_n(&ring->armed, __ATOMIC_RELAXED))) {
		__atomic_store_n(&ring->armed, false, __ATOMIC_RELAXED);
		rt_event_signal(base->port->rt, ring->event);
		ho_ctr_add(&base->ctr.kicks, 1);
	}
	return room;
}

static struct rt_event *mem_rx_event(struct port_rxq *base)
{
	return ((struct mem_rxq *)base)->ring->event;
}

static bool mem_arm(struct port_rxq *base)
{
	struct mem_ring *ring = ((struct mem_rxq *)base)->ring;
	uint32_t tail;

	__atomic_store_n(&ring->armed, true, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return port_spsc_ready(&ring->idx, 1, &tail) != 0;
}

static void mem_disarm(struct port_rxq *base)
{
	__atomic_store_n(&((struct mem_rxq *)base)->ring->armed, false, __ATOMIC_RELAXED);
}

static bool mem_rx_ended(struct port_rxq *base)
{
	struct mem_rxq *q = (struct mem_rxq *)base;
	uint32_t tail;

	return __atomic_load_n(&q->wire->ended[!q->end], __ATOMIC_ACQUIRE) &&
	       !port_spsc_ready(&q->ring->idx, 1, &tail);
}

static bool mem_link_up(struct port *base)
{
	struct mem_port *port = (struct mem_port *)base;

	return __atomic_load_n(&port->wire->open[!port->end], __ATOMIC_RELAXED);
}

static bool mem_link_missing(struct port *base, char *why, size_t bytes)
{
	struct mem_port *port = (struct mem_port *)base;
	const char *other = port->wire->name[!port->end];

	snprintf(why, bytes,
		 "its other end, mem:%s, is not open; the same command has to open it too, as in "
		 "'gen %s --recv mem:%s'",
		 other, base->name, other);
	return false;
}

static unsigned mem_params(struct port *base, struct port_param *out, unsigned max)
{
	struct mem_port *port = (struct mem_port *)base;
	const struct port_param params[] = {
		{ "combined", base->n_rxq, 0 },
		{ "rx", port->wire->ring_size, 0 },
		{ "tx", port->wire->ring_size, 0 },
	};

	memcpy(out, params, HO_MIN(max, 3u) * sizeof(*out));
	return 3;
}

static void mem_stop(struct port *base)
{
	struct mem_port *port = (struct mem_port *)base;

	pthread_mutex_lock(&wires_lock);
	__atomic_store_n(&port->wire->open[port->end], false, __ATOMIC_RELAXED);
	__atomic_store_n(&port->wire->ended[port->end], true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&wires_lock);
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct mem_rxq *q = (struct mem_rxq *)base->rxq[i];
		struct pk_slot slots[PK_BURST];
		unsigned n;

		if (!q->base.cache)
			continue;
		while ((n = mem_rx(&q->base, slots, PK_BURST)) > 0) {
			uint64_t bytes = 0, frames = 0;

			for (unsigned s = 0; s < n; s++) {
				bytes += slots[s].len;
				frames += !(slots[s].flags & PK_MORE);
			}
			/* They were counted as received, but nobody will see them. */
			q->base.ctr.packets -= frames;
			q->base.ctr.bytes -= bytes;
			port_drop(&q->base.ctr, PORT_DROP_RX_CLOSED, frames);
			pk_free_slots(q->base.cache, slots, n);
		}
	}
}

static void mem_close(struct port *base)
{
	struct mem_port *port = (struct mem_port *)base;

	pthread_mutex_lock(&wires_lock);
	/* A port that was never started still occupies its end. */
	__atomic_store_n(&port->wire->open[port->end], false, __ATOMIC_RELAXED);
	__atomic_store_n(&port->wire->ended[port->end], true, __ATOMIC_RELEASE);
	put_wire(port->wire);
	pthread_mutex_unlock(&wires_lock);
	port_free(base);
}

static const struct port_ops mem_ops = {
	.rx_event = mem_rx_event,
	.arm = mem_arm,
	.disarm = mem_disarm,
	.rx_ended = mem_rx_ended,
	.link_up = mem_link_up,
	.link_missing = mem_link_missing,
	.params = mem_params,
	.stop = mem_stop,
	.close = mem_close,
};

/* A free end called `name`, on a wire where one is open already or was made for it. */
static struct mem_wire *find_end(const char *name, unsigned *end)
{
	for (struct mem_wire *wire = wires; wire; wire = wire->next) {
		for (unsigned e = 0; e < 2; e++) {
			if (!strcmp(wire->name[e], name) && !wire->open[e] && !wire->ended[e] &&
			    !wire->ended[!e]) {
				*end = e;
				return wire;
			}
		}
	}
	return NULL;
}

static bool name_in_use(const char *name)
{
	for (struct mem_wire *wire = wires; wire; wire = wire->next) {
		for (unsigned e = 0; e < 2; e++) {
			if (!strcmp(wire->name[e], name) && wire->open[e])
				return true;
		}
	}
	return false;
}

static int join_wire(const char *name, const struct mem_opts *opts,
		     const struct port_config *config, struct mem_wire **out, unsigned *end,
		     struct ho_err *err)
{
	struct mem_wire *wire = find_end(name, end);
	uint32_t size =
		(uint32_t)(opts->ring ? opts->ring : HO_MAX(config->tx_ring, config->rx_ring));

	if (wire && opts->peer && strcmp(wire->name[!*end], opts->peer))
		return ho_err_set(err, -EEXIST, "is joined to mem:%s, not to mem:%s",
				  wire->name[!*end], opts->peer);
	if (wire && config->queues && config->queues != wire->queues)
		return ho_err_set(err, -EINVAL,
				  "%u queues, but the other end has %u; both ends have the same",
				  config->queues, wire->queues);
	if (!wire && (name_in_use(name) || (opts->peer && name_in_use(opts->peer))))
		return ho_err_set(err, -EBUSY, "both ends are in use; take another name");
	if (!wire) {
		size = size ? size : MEM_RING_DEFAULT;
		if (size < PK_BURST || size > MEM_RING_MAX || (size & (size - 1)))
			return ho_err_set(err, -EINVAL,
					  "a ring of %u entries: a power of two from %u to %u is "
					  "needed",
					  size, PK_BURST, MEM_RING_MAX);
		wire = new_wire(config->rt, name, opts->peer ? opts->peer : name,
				config->queues ? config->queues : 1, size);
		*end = 0;
	}
	if (!wire)
		return ho_err_set(err, -ENOMEM, "out of memory or descriptors for its rings");
	wire->ports++;
	*out = wire;
	return 0;
}

static int mem_open(const char *target, const void *opts_void, const struct port_config *config,
		    struct port **out, struct ho_err *err)
{
	const struct mem_opts *opts = opts_void;
	struct mem_wire *wire = NULL;
	struct mem_port *port;
	unsigned end = 0;
	int rc;

	if (strlen(target) >= sizeof(wire->name[0]) ||
	    (opts->peer && strlen(opts->peer) >= sizeof(wire->name[0])))
		return ho_err_set(err, -ENAMETOOLONG, "the name is longer than %zu characters",
				  sizeof(wire->name[0]) - 1);
	if (config->queues > MEM_QUEUES_MAX)
		return ho_err_set(err, -EINVAL, "%u queues: at most %u", config->queues,
				  MEM_QUEUES_MAX);
	pthread_mutex_lock(&wires_lock);
	rc = join_wire(target, opts, config, &wire, &end, err);
	if (rc < 0)
		goto unlock;
	port = (struct mem_port *)port_new(sizeof(*port), &port_kind_mem, target, config,
					   wire->queues, sizeof(struct mem_rxq), wire->queues,
					   sizeof(struct mem_txq));
	if (!port) {
		rc = ho_err_set(err, -ENOMEM, "out of memory");
		put_wire(wire);
		goto unlock;
	}
	port->wire = wire;
	port->end = end;
	port->base.ops = &mem_ops;
	for (unsigned i = 0; i < wire->queues; i++) {
		struct mem_rxq *rxq = (struct mem_rxq *)port->base.rxq[i];
		struct mem_txq *txq = (struct mem_txq *)port->base.txq[i];

		rxq->ring = &wire->ring[!end][i];
		rxq->wire = wire;
		rxq->end = end;
		rxq->base.rx = mem_rx;
		txq->ring = &wire->ring[end][i];
		txq->peer_open = &wire->open[!end];
		txq->base.tx = mem_tx;
	}
	wire->open[end] = true;
	*out = &port->base;
unlock:
	pthread_mutex_unlock(&wires_lock);
	return rc;
}

static const struct port_opt mem_options[] = {
	{ "peer", PORT_OPT_STRING, .help = "name of the other end (default: the same name)",
	  .offset = offsetof(struct mem_opts, peer) },
	{ "ring", PORT_OPT_COUNT, .help = "slots in each ring, a power of two (1024)",
	  .min = PK_BURST, .max = MEM_RING_MAX, .offset = offsetof(struct mem_opts, ring) },
	{ 0 },
};

static const struct mem_opts mem_defaults;

const struct port_kind port_kind_mem = {
	.name = "mem",
	.help = "a wire inside the process; open a name twice for its two ends",
	.target = "NAME",
	.opts = mem_options,
	.opts_bytes = sizeof(struct mem_opts),
	.opts_default = &mem_defaults,
	.open = mem_open,
};
