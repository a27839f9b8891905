// SPDX-License-Identifier: BSD-2-Clause
/*
 * memif against a hostile peer. The first byte chooses what the rest is:
 *
 *   0, 1  messages to the server's and to the client's state machine: a byte that says which
 *         descriptor comes along, then the 128 bytes of the message
 *   2     a server's view of shared memory: steps that write a descriptor or an index into the
 *         rings, or have the server receive or send
 *   3, 4  the same for a client, copying and zero copy
 *
 * After each run all packet buffers must be back.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "port/kinds.h"
#include "port/memif.h"

#define LOG2 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pk_arena *arena;
static struct pk_cache *cache;
static struct rt *rt;

static void begin(void)
{
	struct pk_arena_config config = { .buffers = 1024, .no_huge = true };

	if (arena)
		return;
	ho_log_set_level(HO_LOG_QUIET);
	if (rt_os_create(&rt, NULL) || pk_arena_create(&config, &arena, NULL) ||
	    pk_cache_create(arena, &cache, NULL))
		abort();
}

static struct memif_offer offer_of(bool client, bool zero_copy)
{
	return (struct memif_offer){ .client = client,
				     .zero_copy = zero_copy,
				     .queues = 2,
				     .log2_ring = LOG2,
				     .bsize = 256,
				     .arena = arena };
}

static const struct memif_offer *find(void *arg, uint32_t id, const char **why)
{
	return id ? NULL : arg;
}

static int some_fd(unsigned kind)
{
	int fd = -1;

	if (kind % 4 == 1)
		return eventfd(0, EFD_NONBLOCK);
	if (kind % 4 > 1) {
		fd = memfd_create("fuzz", MFD_ALLOW_SEALING);
		/* Some regions hold a ring where the cookie is right. */
		if (ftruncate(fd, 8192) < 0 ||
		    pwrite(fd, &(uint32_t){ MEMIF_COOKIE }, 4, kind & 4 ? 0 : 4096) != 4)
			abort();
		if (kind & 8)
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	}
	return fd;
}

static void messages(bool client, const uint8_t *data, size_t size)
{
	struct memif_offer offer = offer_of(client, false);
	struct memif_chan chan;
	struct memif_out out = { 0 };

	offer.sealed = size & 1;
	if (client)
		memif_chan_client(&chan, &offer);
	else
		memif_chan_server(&chan, find, &offer, LOG2, &out);
	while (size && chan.state != MEMIF_CLOSED && chan.state != MEMIF_UP) {
		struct memif_msg msg = { 0 };
		unsigned kind = *data++;

		size--;
		memcpy(&msg, data, size < sizeof(msg) ? size : sizeof(msg));
		data += size < sizeof(msg) ? size : sizeof(msg);
		size -= size < sizeof(msg) ? size : sizeof(msg);
		memif_chan_input(&chan, &msg, some_fd(kind), &out);
	}
	memif_conn_free(chan.conn);
}

/* A server's connection to the memory of a client's. */
static struct memif_conn *join(const struct memif_conn *client, const struct memif_offer *offer)
{
	struct memif_conn *conn = memif_conn_new(false);

	for (unsigned i = 0; i < client->n_regions; i++) {
		struct memif_add_region msg = { (uint16_t)i, client->region[i].bytes };

		if (memif_conn_add_region(conn, offer, &msg, dup(client->region[i].fd)))
			abort();
	}
	for (unsigned i = 0; i < 2 * client->n_tx; i++) {
		bool c2s = i < client->n_tx;
		const struct memif_lane *l = c2s ? &client->tx[i] : &client->rx[i - client->n_tx];
		struct memif_add_ring msg = { .flags = c2s ? MEMIF_ADD_RING_C2S : 0,
					      .index = (uint16_t)(i % client->n_tx),
					      .region = l->region,
					      .offset = l->offset,
					      .log2_ring_size = LOG2 };

		if (memif_conn_add_ring(conn, offer, &msg, dup(l->event_fd)))
			abort();
	}
	if (memif_conn_complete(conn))
		abort();
	return conn;
}

/* One step of the peer or of us; returns the bytes of input that it took. */
static size_t step(struct port *port, struct memif_conn *client, const uint8_t *data, size_t size)
{
	struct memif_ring *ring = data[0] & 0x80 ? client->tx[0].ring : client->rx[0].ring;
	struct pk_slot slots[PK_BURST];
	unsigned n = 1 + data[1] % PK_BURST, sent;
	static const uint8_t bytes[4000];

	switch (data[0] % 6) {
	case 0:
		if (size < 2 + sizeof(struct memif_desc))
			return size;
		memcpy(&ring->desc[data[1] & 15], data + 2, sizeof(struct memif_desc));
		return 2 + sizeof(struct memif_desc);
	case 1:
		ring->head = (uint16_t)(ring->head + (int8_t)data[1]);
		return 2;
	case 2:
		ring->tail = (uint16_t)(ring->tail + (int8_t)data[1]);
		return 2;
	case 3:
		/* A frame that would do, to come past the first checks. */
		ring->desc[data[1] & 15] = (struct memif_desc){ .length = data[1] * 4u,
								.offset = 2048,
								.flags = data[1] >> 7 };
		return 2;
	case 4:
		n = memif_rx(port->rxq[0], slots, PK_BURST);
		for (unsigned i = 0; i < n; i++) {
			/* Whatever came lies within a buffer. */
			if (slots[i].off + slots[i].len > arena->stride_bytes)
				abort();
		}
		pk_free_slots(cache, slots, n);
		return 2;
	default:
		n = pk_frame_from_bytes(cache, bytes, 14 + data[1] * 15u, slots, PK_BURST);
		sent = memif_tx(port->txq[0], slots, n);
		pk_free_slots(cache, slots + sent, n - sent);
		memif_tx_reap(port->txq[0]);
		return 2;
	}
}

static void memory(bool client, bool zero_copy, const uint8_t *data, size_t size)
{
	struct port_config config = { .rt = rt, .arena = arena };
	struct memif_offer offer = offer_of(true, zero_copy);
	const char *why;
	struct memif_conn *ours = memif_conn_provide(&offer, 1, LOG2, &why), *theirs;
	struct memif_port *port;
	struct memif_rxq *rxq;
	struct memif_txq *txq;

	port = (struct memif_port *)port_new(sizeof(*port), &port_kind_memif, "fuzz", &config, 1,
					     sizeof(*rxq), 1, sizeof(*txq));
	theirs = join(ours, &offer);
	pthread_mutex_init(&port->lock, NULL);
	port->conn = client ? ours : theirs;
	rxq = (struct memif_rxq *)port->base.rxq[0];
	txq = (struct memif_txq *)port->base.txq[0];
	port_bind_rx(&port->base, 0, cache);
	port_bind_tx(&port->base, 0, cache);
	if (memif_rxq_init(rxq, rt, NULL) < 0)
		abort();
	while (size >= 2) {
		size_t used = step(&port->base, ours, data, size);

		data += used;
		size -= used;
	}
	memif_rxq_detach(rxq);
	memif_txq_detach(txq, PORT_DROP_TX_CLOSED);
	if (port_tx_in_flight(&txq->base) || pk_arena_missing(arena))
		abort();
	memif_rxq_free(rxq, rt);
	memif_conn_free(theirs);
	memif_conn_free(ours);
	pthread_mutex_destroy(&port->lock);
	port_free(&port->base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	if (!size)
		return 0;
	switch (data[0] % 5) {
	case 0:
	case 1:
		messages(data[0] & 1, data + 1, size - 1);
		break;
	default:
		memory(data[0] % 5 > 2, data[0] % 5 == 4, data + 1, size - 1);
	}
	return 0;
}
