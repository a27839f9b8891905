// SPDX-License-Identifier: BSD-2-Clause
/*
 * null: is a source without a wire and a sink without a wire, to measure everything else.
 *
 * It is a source of the same frame again and again, in buffers that go round in a queue of `set`
 * entries: what is sent to the port comes back as received frames `set` buffers later, as on a NIC
 * whose ring is that long. So the memory that a bench touches is its choice and not an accident
 * of the pool's order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/kinds.h"
#include "port/spsc.h"

#define NULL_FRAME_MIN  60
#define NULL_FRAME_MAX  1518
#define NULL_QUEUES_MAX 64

struct null_opts {
	uint64_t size;
	uint64_t set;
	uint64_t count;
};

/* The circle of buffers of one queue pair: the transmit queue puts, the receive queue takes. */
struct null_circle {
	struct port_spsc idx;
	uint32_t *bufs;
};

struct null_port {
	struct port base;
	struct null_opts opts;
	uint8_t frame[NULL_FRAME_MAX];
	struct null_circle *circle;
};

struct null_rxq {
	struct port_rxq base;
	struct null_circle *circle;
	uint16_t size;
	uint64_t left; /* frames still to come */
};

struct null_txq {
	struct port_txq base;
	struct null_circle *circle;
	bool sink; /* nothing is received from this number */
};

/* Ethernet II, IPv4, UDP to the discard port; addresses from the documentation ranges. */
static void build_frame(uint8_t *frame, uint16_t size)
{
	static const uint8_t headers[42] = {
		0x02, 0, 0, 0, 0,   2,  0x02, 0, 0,  0,  0, 1, 0x08, 0x00, /* Ethernet */
		0x45, 0, 0, 0, 0,   0,  0,    0, 64, 17, 0, 0,             /* IPv4 */
		192,  0, 2, 1, 198, 51, 100,  1,                           /* addresses */
		0x04, 0, 0, 9, 0,   0,  0,    0,                           /* UDP, no checksum */
	};
	uint16_t ip_len = (uint16_t)(size - 14), udp_len = (uint16_t)(size - 34);
	uint32_t sum = 0;

	memset(frame, 0, size);
	memcpy(frame, headers, sizeof(headers));
	frame[16] = (uint8_t)(ip_len >> 8);
	frame[17] = (uint8_t)ip_len;
	frame[38] = (uint8_t)(udp_len >> 8);
	frame[39] = (uint8_t)udp_len;
	for (unsigned i = 14; i < 34; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	frame[24] = (uint8_t)(sum >> 8);
	frame[25] = (uint8_t)sum;
}

/* The circle ran dry because its buffers went elsewhere: take others. */
static unsigned rx_fresh(struct null_rxq *q, struct pk_slot *slots, unsigned n)
{
	const struct null_port *port = (const struct null_port *)q->base.port;
	uint32_t bufs[PK_BURST];

	n = pk_alloc(q->base.cache, bufs, HO_MIN(n, (unsigned)PK_BURST));
	for (unsigned i = 0; i < n; i++) {
		slots[i] = (struct pk_slot){ .buf = bufs[i],
					     .off = PK_HEADROOM_BYTES,
					     .len = q->size };
		memcpy(pk_data(q->base.arena, &slots[i]), port->frame, q->size);
	}
	return n;
}

static unsigned null_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct null_rxq *q = (struct null_rxq *)base;
	struct null_circle *circle = q->circle;
	const uint32_t mask = circle->idx.mask;
	uint32_t tail, ready;

	if (ho_unlikely(n > q->left))
		n = (unsigned)q->left;
	ready = port_spsc_ready(&circle->idx, n, &tail);
	for (uint32_t i = 0; i < ready; i++)
		slots[i] = (struct pk_slot){ .buf = circle->bufs[(tail + i) & mask],
					     .off = PK_HEADROOM_BYTES,
					     .len = q->size };
	port_spsc_take(&circle->idx, ready);
	if (ho_unlikely(!ready && n))
		ready = rx_fresh(q, slots, n);
	q->left -= ready;
	port_count(&base->ctr, ready, (uint64_t)ready * q->size);
	return ready;
}

static unsigned null_tx(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct null_txq *q = (struct null_txq *)base;
	struct null_circle *circle = q->circle;
	const uint32_t mask = circle->idx.mask;
	uint32_t head, room = port_spsc_space(&circle->idx, n, &head);
	uint64_t bytes = 0;
	unsigned more = 0;

	/* Without a source nobody would take them out again. */
	if (q->sink)
		room = 0;
	for (uint32_t i = 0; i < room; i++)
		circle->bufs[(head + i) & mask] = slots[i].buf;
	port_spsc_put(&circle->idx, room);
	for (unsigned i = room; i < n; i += PK_CACHE_BULK)
		pk_free_slots(base->cache, slots + i, HO_MIN(n - i, (unsigned)PK_CACHE_BULK));
	for (unsigned i = 0; i < n; i++) {
		bytes += slots[i].len;
		more += slots[i].flags & PK_MORE;
	}
	base->accepted += n - more;
	port_count(&base->ctr, n - more, bytes);
	return n;
}

static bool null_rx_ended(struct port_rxq *base)
{
	return ((struct null_rxq *)base)->left == 0;
}

/* Fills the circles; here and not at open, because only now the queues have caches. */
static int null_start(struct port *base, struct ho_err *err)
{
	struct null_port *port = (struct null_port *)base;

	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct null_circle *circle = &port->circle[i];
		struct pk_cache *cache = base->rxq[i]->cache;

		/* A queue that is only a sink needs no buffers of its own. */
		((struct null_txq *)base->txq[i])->sink = !cache;
		while (cache && circle->idx.prod.head < circle->idx.size) {
			uint32_t *buf = &circle->bufs[circle->idx.prod.head];
			struct pk_slot slot = { .off = PK_HEADROOM_BYTES };

			if (!pk_alloc(cache, buf, 1))
				return ho_err_set(err, -ENOBUFS,
						  "set=%u needs more packet buffers than there "
						  "are (%u in all); --buffers gives more",
						  circle->idx.size, base->arena->buffers);
			slot.buf = *buf;
			memcpy(pk_data(base->arena, &slot), port->frame, port->opts.size);
			port_spsc_put(&circle->idx, 1);
		}
	}
	return 0;
}

static unsigned null_params(struct port *base, struct port_param *out, unsigned max)
{
	const struct port_param params[] = { { "combined", base->n_rxq, 0 } };

	memcpy(out, params, HO_MIN(max, 1u) * sizeof(*out));
	return 1;
}

static void null_close(struct port *base)
{
	struct null_port *port = (struct null_port *)base;

	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct null_circle *circle = &port->circle[i];
		struct pk_cache *cache =
			base->rxq[i]->cache ? base->rxq[i]->cache : base->txq[i]->cache;
		uint32_t tail;

		while (cache && port_spsc_ready(&circle->idx, 1, &tail)) {
			pk_free(cache, &circle->bufs[tail & circle->idx.mask], 1);
			port_spsc_take(&circle->idx, 1);
		}
		free(circle->bufs);
	}
	free(port->circle);
	port_free(base);
}

static const struct port_ops null_ops = {
	.start = null_start,
	.rx_ended = null_rx_ended,
	.params = null_params,
	.close = null_close,
};

static int null_open(const char *target, const void *opts_void, const struct port_config *config,
		     struct port **out, struct ho_err *err)
{
	const struct null_opts *opts = opts_void;
	unsigned queues = config->queues ? config->queues : 1;
	struct null_port *port;

	if (*target)
		return ho_err_set(err, -EINVAL,
				  "nothing may follow the colon but options: null:,%s", target);
	if (queues > NULL_QUEUES_MAX)
		return ho_err_set(err, -EINVAL, "%u queues: at most %u", queues, NULL_QUEUES_MAX);
	if (opts->set & (opts->set - 1))
		return ho_err_set(err, -EINVAL, "set=%llu is not a power of two",
				  (unsigned long long)opts->set);
	port = (struct null_port *)port_new(sizeof(*port), &port_kind_null, target, config, queues,
					    sizeof(struct null_rxq), queues,
					    sizeof(struct null_txq));
	if (!port)
		goto nomem;
	port->base.ops = &null_ops;
	port->opts = *opts;
	build_frame(port->frame, (uint16_t)opts->size);
	port->circle = aligned_alloc(HO_CACHE_LINE, queues * sizeof(port->circle[0]));
	if (!port->circle)
		goto free_port;
	memset(port->circle, 0, queues * sizeof(port->circle[0]));
	for (unsigned i = 0; i < queues; i++) {
		struct null_circle *circle = &port->circle[i];
		struct null_rxq *rxq = (struct null_rxq *)port->base.rxq[i];
		struct null_txq *txq = (struct null_txq *)port->base.txq[i];

		port_spsc_init(&circle->idx, (uint32_t)opts->set);
		circle->bufs = malloc(opts->set * sizeof(circle->bufs[0]));
		if (!circle->bufs)
			goto free_circles;
		rxq->base.rx = null_rx;
		rxq->circle = circle;
		rxq->size = (uint16_t)opts->size;
		rxq->left = opts->count ? opts->count : UINT64_MAX;
		txq->base.tx = null_tx;
		txq->circle = circle;
	}
	*out = &port->base;
	return 0;
free_circles:
	for (unsigned i = 0; i < queues; i++)
		free(port->circle[i].bufs);
	free(port->circle);
free_port:
	port_free(&port->base);
nomem:
	return ho_err_set(err, -ENOMEM, "out of memory");
}

static const struct port_opt null_options[] = {
	{ "size", PORT_OPT_COUNT, .help = "bytes of the frames it makes, without FCS (60)",
	  .min = NULL_FRAME_MIN, .max = NULL_FRAME_MAX,
	  .offset = offsetof(struct null_opts, size) },
	{ "set", PORT_OPT_COUNT, .help = "buffers that go round, a power of two (1024)", .min = 64,
	  .max = 1u << 20, .offset = offsetof(struct null_opts, set) },
	{ "count", PORT_OPT_COUNT, .help = "frames it makes on each queue (no end)",
	  .offset = offsetof(struct null_opts, count) },
	{ 0 },
};

static const struct null_opts null_defaults = { .size = NULL_FRAME_MIN, .set = 1024 };

const struct port_kind port_kind_null = {
	.name = "null",
	.help = "a source of frames and a sink for them, without a wire",
	.target = "",
	.opts = null_options,
	.opts_bytes = sizeof(struct null_opts),
	.opts_default = &null_defaults,
	.open = null_open,
};
