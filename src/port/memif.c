// SPDX-License-Identifier: BSD-2-Clause
/*
 * memif:SOCKET: packets through memory shared with another process, by the memif protocol of VPP
 * and DPDK, without the kernel and without privileges.
 *
 * The client (the default role, as in DPDK) connects and provides the memory, the server listens
 * on the socket. Connecting starts when the port is opened and goes on for as long as it is open:
 * a peer may come, go and come back. While there is none, frames are tx_link_down.
 *
 * Receiving polls until a queue is armed; only then the peer writes to the queue's event
 * descriptor.
 *
 * With zero_copy=yes the peer can read and write the whole packet arena: it must be trusted.
 */
#include "port/memif.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "linux/caps.h"
#include "port/kinds.h"

#define RING_DEFAULT  1024
#define RING_MAX      (1u << MEMIF_RING_LOG2_MAX)
#define BSIZE_DEFAULT 2048
#define WAIT_DEFAULT  3000000000ull
#define LINGER_NS     200000000ull /* stop waits so long for a client to take the last frames */
#define LINGER_IDLE   20000000ull  /* but no longer than this without progress */

struct memif_opts {
	unsigned role;
	uint64_t id;
	uint64_t ring;
	uint64_t bsize;
	const char *secret;
	bool zero_copy;
	bool sealed;
	uint64_t wait_ns;
};

enum role { ROLE_CLIENT, ROLE_SERVER };

/* A frame is at most what the client's ring can hold. */
static uint32_t max_frame(const struct memif_offer *offer)
{
	uint64_t ring = (uint64_t)offer->bsize << offer->log2_ring;

	if (!offer->client || offer->zero_copy || ring > PK_FRAME_MAX_BYTES)
		return PK_FRAME_MAX_BYTES;
	return (uint32_t)ring;
}

void memif_why(struct memif_port *port, char out[MEMIF_REASON_BYTES])
{
	pthread_mutex_lock(&port->lock);
	memcpy(out, port->why, MEMIF_REASON_BYTES);
	pthread_mutex_unlock(&port->lock);
}

static int memif_start(struct port *base, struct ho_err *err)
{
	struct memif_port *port = memif_port_of(base);
	uint64_t deadline = rt_now_ns(base->rt) + port->wait_ns;
	char text[HO_UNIT_TEXT], why[MEMIF_REASON_BYTES];
	int rc = 0;

	while (port->wait_ns && !__atomic_load_n(&port->conn, __ATOMIC_ACQUIRE)) {
		uint64_t now = rt_now_ns(base->rt);

		if (now >= deadline) {
			rc = -ETIMEDOUT;
			break;
		}
		rc = rt_wait(base->rt, &port->up, 1, HO_MIN(deadline, now + RT_OS_SIGNAL_SLICE_NS));
		if (rt_os_signal_pending())
			rc = -EINTR;
		if (rc < 0 && rc != -ETIMEDOUT)
			break;
		rc = 0;
	}
	if (rc == -ETIMEDOUT) {
		memif_why(port, why);
		ho_note("%s: no peer after %s (%s); goes on without, and waits for one", base->name,
			ho_format_ns((double)port->wait_ns, text), why[0] ? why : "none came");
		rc = 0;
	}
	return rc < 0 ? ho_err_set(err, rc, "interrupted while waiting for a peer") : 0;
}

static bool memif_link_missing(struct port *base, char *out, size_t bytes)
{
	struct memif_port *port = memif_port_of(base);
	char why[MEMIF_REASON_BYTES];

	memif_why(port, why);
	snprintf(out, bytes, "no peer came%s%s%s", why[0] ? " (" : "", why, why[0] ? ")" : "");
	return true;
}

static bool memif_link_up(struct port *base)
{
	return __atomic_load_n(&memif_port_of(base)->conn, __ATOMIC_RELAXED) != NULL;
}

static unsigned memif_stats(struct port *base, struct port_stat *out, unsigned max)
{
	struct memif_port *port = memif_port_of(base);
	const struct port_stat stats[] = {
		{ "link_up", memif_link_up(base) },
		{ "connects", ho_ctr_read(&port->connects) },
		{ "disconnects", ho_ctr_read(&port->disconnects) },
		{ "zero_copy", port->offer.zero_copy },
	};
	const unsigned n = HO_ARRAY_LEN(stats);

	memcpy(out, stats, HO_MIN(max, n) * sizeof(*out));
	return n;
}

static unsigned memif_params(struct port *base, struct port_param *out, unsigned max)
{
	struct memif_port *port = memif_port_of(base);
	struct memif_conn *conn = memif_conn_hold(port);
	uint64_t rx = 1u << port->offer.log2_ring, tx = rx;

	if (conn) {
		rx = conn->n_rx ? conn->rx[0].size : 0;
		tx = conn->n_tx ? conn->tx[0].size : 0;
		memif_conn_release(port, conn);
	}
	const struct port_param params[] = {
		{ "combined", base->n_rxq, 0 },
		{ "rx", rx, 0 },
		{ "tx", tx, 0 },
	};
	const unsigned n = HO_ARRAY_LEN(params);

	memcpy(out, params, HO_MIN(max, n) * sizeof(*out));
	return n;
}

static bool all_taken(struct memif_port *port)
{
	for (unsigned i = 0; i < port->base.n_txq; i++) {
		if (!memif_txq_taken((struct memif_txq *)port->base.txq[i]))
			return false;
	}
	return true;
}

/* What a server has sent is lost when it disconnects before the client has taken it, and the
 * protocol tells it only indirectly what was taken: give the client a moment. */
static void linger(struct memif_port *port)
{
	uint64_t deadline = rt_now_ns(port->base.rt) + LINGER_NS;
	uint64_t idle = rt_now_ns(port->base.rt) + LINGER_IDLE, before = 0;

	while (memif_link_up(&port->base) && !all_taken(port)) {
		uint64_t now = rt_now_ns(port->base.rt), heads = 0;

		for (unsigned i = 0; i < port->base.n_txq; i++) {
			struct memif_txq *q = (struct memif_txq *)port->base.txq[i];

			if (q->ring)
				heads += __atomic_load_n(&q->ring->head, __ATOMIC_RELAXED);
		}
		if (heads != before)
			idle = now + LINGER_IDLE;
		before = heads;
		if (now >= deadline || now >= idle)
			return;
		rt_relax(port->base.rt);
	}
}

/* Leaves the socket, then takes everything back from the queues. */
static void shut(struct memif_port *port)
{
	bool had_link = memif_link_up(&port->base);

	if (port->shut)
		return;
	port->shut = true;
	if (had_link && !port->offer.client)
		linger(port);
	memif_ctrl_leave(port, "Port closed");
	for (unsigned i = 0; i < port->base.n_rxq; i++)
		memif_rxq_detach((struct memif_rxq *)port->base.rxq[i]);
	for (unsigned i = 0; i < port->base.n_txq; i++)
		memif_txq_detach((struct memif_txq *)port->base.txq[i],
				 had_link ? PORT_DROP_TX_CLOSED : PORT_DROP_TX_LINK_DOWN);
}

static void memif_stop(struct port *base)
{
	shut(memif_port_of(base));
}

static void memif_close(struct port *base)
{
	struct memif_port *port = memif_port_of(base);

	shut(port);
	for (unsigned i = 0; i < base->n_rxq; i++)
		memif_rxq_free((struct memif_rxq *)base->rxq[i], base->rt);
	rt_event_destroy(base->rt, port->up);
	pthread_mutex_destroy(&port->lock);
	port_free(base);
}

static const struct port_ops memif_ops = {
	.start = memif_start,
	.rx_event = memif_rx_event,
	.arm = memif_arm,
	.disarm = memif_disarm,
	.link_up = memif_link_up,
	.link_missing = memif_link_missing,
	.stats = memif_stats,
	.params = memif_params,
	.stop = memif_stop,
	.close = memif_close,
};

static int check_ring(struct memif_offer *offer, const struct memif_opts *opts,
		      const struct port_config *config, struct ho_err *err)
{
	uint64_t ring = opts->ring ? opts->ring : HO_MAX(config->rx_ring, config->tx_ring);

	if (!ring)
		ring = offer->client ? RING_DEFAULT : RING_MAX;
	if (ring < 2 || ring > RING_MAX || (ring & (ring - 1)))
		return ho_err_set(err, -EINVAL,
				  "a ring of %llu descriptors: a power of two from 2 to %u is "
				  "needed",
				  (unsigned long long)ring, RING_MAX);
	offer->log2_ring = (unsigned)__builtin_ctzll(ring);
	return 0;
}

static int check_client(const struct memif_offer *offer, const struct pk_arena *arena,
			struct ho_err *err)
{
	if (offer->sealed)
		return ho_err_set(err, -EINVAL,
				  "sealed= is for role=server: the client provides the memory");
	if (!memif_client_bytes(offer->queues, offer->log2_ring, offer->bsize, offer->zero_copy))
		return ho_err_set(
			err, -EINVAL,
			"%u queues of %u buffers of %u bytes need more than the 4 GB that "
			"a memif region can have; make ring= or bsize= smaller",
			offer->queues, 1u << offer->log2_ring, offer->bsize);
	if (offer->zero_copy && arena->size_bytes > UINT32_MAX)
		return ho_err_set(err, -EINVAL,
				  "zero_copy=yes: the packet arena has %zu MB, a memif region at "
				  "most 4096; take fewer buffers or zero_copy=no",
				  arena->size_bytes >> 20);
	return 0;
}

static int fill_offer(struct memif_offer *offer, const struct memif_opts *opts,
		      const struct port_config *config, struct ho_err *err)
{
	int rc;

	*offer = (struct memif_offer){
		.client = opts->role == ROLE_CLIENT,
		.zero_copy = opts->zero_copy,
		.sealed = opts->sealed,
		.id = (uint32_t)opts->id,
		.queues = config->queues ? config->queues : 1,
		.bsize = (uint32_t)(opts->bsize ? opts->bsize : BSIZE_DEFAULT),
		.arena = config->arena,
	};
	snprintf(offer->if_name, sizeof(offer->if_name), "holdoff/%u", offer->id);
	if (opts->secret && strlen(opts->secret) >= MEMIF_SECRET_BYTES)
		return ho_err_set(err, -EINVAL, "the secret is longer than %u characters",
				  MEMIF_SECRET_BYTES - 1);
	if (opts->secret)
		memcpy(offer->secret, opts->secret, strlen(opts->secret));
	if (offer->queues > MEMIF_QUEUES_MAX)
		return ho_err_set(err, -EINVAL, "%u queues: at most %u", offer->queues,
				  MEMIF_QUEUES_MAX);
	rc = check_ring(offer, opts, config, err);
	if (rc < 0)
		return rc;
	if (offer->client)
		return check_client(offer, config->arena, err);
	if (offer->zero_copy || opts->bsize)
		return ho_err_set(err, -EINVAL,
				  "%s= is for role=client: the client provides the memory",
				  opts->bsize ? "bsize" : "zero_copy");
	return 0;
}

static int memif_open(const char *target, const void *opts_void, const struct port_config *config,
		      struct port **out, struct ho_err *err)
{
	const struct memif_opts *opts = opts_void;
	struct memif_offer offer;
	struct memif_port *port;
	int rc = fill_offer(&offer, opts, config, err);
	unsigned i;

	if (rc < 0)
		return rc;
	if (strlen(target) >= sizeof(port->address) || !strcmp(target, "@"))
		return ho_err_set(err, -ENAMETOOLONG,
				  "the socket's name has to have 1 to %zu characters",
				  sizeof(port->address) - 1);
	port = (struct memif_port *)port_new(sizeof(*port), &port_kind_memif, target, config,
					     offer.queues, sizeof(struct memif_rxq), offer.queues,
					     sizeof(struct memif_txq));
	if (!port)
		return ho_err_set(err, -ENOMEM, "out of memory");
	port->base.ops = &memif_ops;
	port->base.max_frame = max_frame(&offer);
	port->offer = offer;
	/* Who waits less for a peer does so himself. */
	port->wait_ns = config->wait_ns && config->wait_ns < opts->wait_ns ? 0 : opts->wait_ns;
	strcpy(port->address, target);
	pthread_mutex_init(&port->lock, NULL);
	for (i = 0; i < offer.queues; i++) {
		struct memif_rxq *rxq = (struct memif_rxq *)port->base.rxq[i];
		struct memif_txq *txq = (struct memif_txq *)port->base.txq[i];

		rxq->base.rx = memif_rx;
		rxq->epfd = rxq->kick_fd = -1;
		txq->base.tx = memif_tx;
		txq->base.reap = memif_tx_reap;
	}
	for (i = 0; i < offer.queues && rc == 0; i++)
		rc = memif_rxq_init((struct memif_rxq *)port->base.rxq[i], config->rt, err);
	if (rc == 0)
		rc = rt_event_create(config->rt, &port->up, err);
	if (rc == 0)
		rc = memif_ctrl_join(port, err);
	if (rc < 0)
		memif_close(&port->base);
	else
		*out = &port->base;
	return rc;
}

static const struct port_opt memif_options[] = {
	{ "role", PORT_OPT_CHOICE, "client|server",
	  "client connects and provides the memory, server listens (client)",
	  .offset = offsetof(struct memif_opts, role) },
	{ "id", PORT_OPT_COUNT,
	  .help = "which interface behind the socket; the same at both ends (0)", .max = UINT32_MAX,
	  .offset = offsetof(struct memif_opts, id) },
	{ "ring", PORT_OPT_COUNT,
	  .help = "client: descriptors in each ring, a power of two (1024); server: at most "
		  "(16384)",
	  .min = 2, .max = RING_MAX, .offset = offsetof(struct memif_opts, ring) },
	{ "bsize", PORT_OPT_COUNT, .help = "client: bytes of a buffer (2048)", .min = 64,
	  .max = UINT16_MAX, .offset = offsetof(struct memif_opts, bsize) },
	{ "secret", PORT_OPT_STRING, .help = "what the peer must know, up to 23 characters (none)",
	  .offset = offsetof(struct memif_opts, secret) },
	{ "zero_copy", PORT_OPT_BOOL,
	  .help = "client: give the peer, which must be trusted, our packet memory itself (no)",
	  .offset = offsetof(struct memif_opts, zero_copy) },
	{ "sealed", PORT_OPT_BOOL,
	  .help = "server: refuse memory that the client could take away while it is in use (no)",
	  .offset = offsetof(struct memif_opts, sealed) },
	{ "wait", PORT_OPT_TIME, .help = "how long to wait for a peer at the start (3s)",
	  .offset = offsetof(struct memif_opts, wait_ns) },
	{ 0 },
};

static const struct memif_opts memif_defaults = { .role = ROLE_CLIENT, .wait_ns = WAIT_DEFAULT };

const struct port_kind port_kind_memif = {
	.name = "memif",
	.help = "memory shared with another process: DPDK, VPP, another holdoff; no privileges",
	.target = "SOCKET",
	.opts = memif_options,
	.opts_bytes = sizeof(struct memif_opts),
	.opts_default = &memif_defaults,
	/* The socket may lie in a directory that only its owner may write to: removing it at the
	 * end, and connecting again to a server that was restarted, then need what root had. */
	.caps_keep = LX_CAP(CAP_DAC_OVERRIDE),
	.open = memif_open,
};
