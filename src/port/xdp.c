// SPDX-License-Identifier: BSD-2-Clause
/*
 * xdp:IFACE: an interface by AF_XDP. The kernel's driver stays in charge, and the kernel keeps
 * what is not ours; see port/xdp.h for the pieces.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "linux/caps.h"
#include "linux/xdpdev.h"
#include "port/kinds.h"
#include "port/xdp.h"
#include "port/xdp_shared.h"

#define RING_DEFAULT 2048
#define RING_MIN     64
#define RING_MAX     32768
#define RING_UNUSED  64 /* a ring that the kernel wants although nobody uses it */
/* Ethernet header and one VLAN tag, which the MTU does not count. */
#define LINK_BYTES 18
/* What XDP itself takes of a buffer when a frame may go on in another one, and then some. */
static_assert(XDP_COUNTS <= HO_ARRAY_LEN(((struct xdp_port *)0)->at_start.program),
	      "all the program's counters have a place");

static const struct {
	const char *says;
	uint16_t bind_flags;
	bool generic;
} modes[XDP_MODES] = {
	[XDP_MODE_ZERO_COPY] = { "zero-copy in the driver", XDP_ZEROCOPY, false },
	[XDP_MODE_COPY] = { "copy mode in the driver", XDP_COPY, false },
	[XDP_MODE_GENERIC] = { "copy mode in the kernel's generic XDP", XDP_COPY, true },
};

/* --- counters ------------------------------------------------------------------------------- */

static void read_stats(const struct xdp_rxq *q, struct xdp_statistics *out)
{
	socklen_t len = sizeof(*out);

	if (q->fd < 0 || getsockopt(q->fd, SOL_XDP, XDP_STATISTICS, out, &len) < 0)
		*out = q->last;
}

/* What only the kernel counts, as it is now. */
static void read_kernel(const struct xdp_port *port, struct xdp_kernel_counts *out)
{
	const char *name = port->iface.name;
	struct rtnl_link_stats64 link;

	memset(out, 0, sizeof(*out));
	if (!strcmp(port->iface.kind, "veth")) {
		/* The link's own rx_dropped counts what the sender was told and counts as well. */
		lx_driver_stat_sum(name, "_drops", &out->rx_lost);
	} else if (lx_iface_stats(port->iface.index, &link, NULL) == 0) {
		out->rx_lost = link.rx_missed_errors;
		if (!strcmp(port->iface.kind, "tun"))
			out->rx_lost += link.rx_dropped;
	}
	if (port->live) {
		lx_driver_stat_sum(name, "_xdp_xmit", &out->xmit);
		lx_driver_stat_sum(name, "_xdp_xmit_errors", &out->xmit_errors);
	}
	for (unsigned i = 0; port->prog && i < XDP_COUNTS; i++)
		out->program[i] = xdp_prog_count(port->prog, i);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void xdp_external_drops(struct port *base, uint64_t *drops)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const struct xdp_kernel_counts *from = &port->at_start;
	struct xdp_kernel_counts now;
	uint64_t of_sockets = 0, sent = 0, not_xmit;

	if (base->stopped)
		now = port->at_stop;
	else
		read_kernel(port, &now);
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct xdp_statistics s = { 0 };
		uint64_t fill;

		read_stats((struct xdp_rxq *)base->rxq[i], &s);
		/* A frame that finds the fill ring empty counts as dropped, too. */
		fill = HO_MIN((uint64_t)s.rx_fill_ring_empty_descs, (uint64_t)s.rx_dropped);
		drops[PORT_DROP_RX_RING_FULL] += s.rx_ring_full;
		drops[PORT_DROP_RX_XDP_FILL] += fill;
		drops[PORT_DROP_RX_XDP_DROPPED] += s.rx_dropped - fill;
		of_sockets += s.rx_ring_full + s.rx_dropped;
	}
	if (port->rx) {
		drops[PORT_DROP_RX_LINK] += less(less(now.rx_lost, from->rx_lost), of_sockets);
		drops[PORT_DROP_RX_FILTERED] += now.program[XDP_COUNT_STAMPED_UNMATCHED] -
						from->program[XDP_COUNT_STAMPED_UNMATCHED] +
						now.program[XDP_COUNT_STAMPED_KEPT] -
						from->program[XDP_COUNT_STAMPED_KEPT];
		drops[PORT_DROP_RX_NO_QUEUE] += now.program[XDP_COUNT_STAMPED_NO_SOCKET] -
						from->program[XDP_COUNT_STAMPED_NO_SOCKET];
	}
	if (!port->live || !now.xmit)
		return;
	/* Of what was redirected to the interface, the peer's ring refused some; and all of it is
	 * lost while the peer is not set up to take redirected frames. */
	for (unsigned i = 0; i < base->n_txq; i++)
		sent += ho_ctr_read(&base->txq[i]->ctr.packets);
	not_xmit = less(sent, now.xmit - from->xmit);
	drops[PORT_DROP_TX_PEER_FULL] += HO_MIN(not_xmit, now.xmit_errors - from->xmit_errors);
	drops[PORT_DROP_TX_LINK_DOWN] += less(not_xmit, now.xmit_errors - from->xmit_errors);
}

static unsigned xdp_stats(struct port *base, struct port_stat *out, unsigned max)
{
	struct xdp_port *port = (struct xdp_port *)base;
	struct xdp_kernel_counts now;
	struct xdp_statistics sum = { 0 };

	if (base->stopped)
		now = port->at_stop;
	else
		read_kernel(port, &now);
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct xdp_statistics s = { 0 };

		read_stats((struct xdp_rxq *)base->rxq[i], &s);
		sum.rx_fill_ring_empty_descs += s.rx_fill_ring_empty_descs;
		sum.rx_invalid_descs += s.rx_invalid_descs;
	}
	const struct port_stat stats[] = {
		{ "zero_copy", port->mode == XDP_MODE_ZERO_COPY },
		{ "generic", port->mode == XDP_MODE_GENERIC },
		{ "rx_to_kernel_kept", now.program[XDP_COUNT_KEPT] },
		{ "rx_to_kernel_unmatched", now.program[XDP_COUNT_UNMATCHED] },
		{ "rx_to_kernel_no_socket", now.program[XDP_COUNT_NO_SOCKET] },
		{ "rx_fill_ring_empty_descs", sum.rx_fill_ring_empty_descs },
		{ "rx_invalid_descs", sum.rx_invalid_descs },
	};

	memcpy(out, stats, HO_MIN((size_t)max, HO_ARRAY_LEN(stats)) * sizeof(*out));
	return HO_ARRAY_LEN(stats);
}

static unsigned xdp_params(struct port *base, struct port_param *out, unsigned max)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const struct port_param params[] = {
		{ "combined", HO_MAX(base->n_rxq, base->n_txq), 0 },
		{ "rx", port->opts.rx_ring, 0 },
		{ "tx", port->opts.tx_ring, 0 },
		{ "mtu", base->mtu, 0 },
	};

	memcpy(out, params, HO_MIN((size_t)max, HO_ARRAY_LEN(params)) * sizeof(*out));
	return HO_ARRAY_LEN(params);
}

/* --- while it runs -------------------------------------------------------------------------- */

static struct rt_event *xdp_rx_event(struct port_rxq *base)
{
	return ((struct xdp_rxq *)base)->event;
}

/* The socket is readable while its ring holds something: nothing has to be armed. */
static bool xdp_arm(struct port_rxq *base)
{
	struct xdp_rxq *q = (struct xdp_rxq *)base;

	xdp_fill(q);
	return __atomic_load_n(q->rx.producer, __ATOMIC_ACQUIRE) != q->rx.cached_cons;
}

static void xdp_disarm(struct port_rxq *base)
{
}

static bool xdp_link_up(struct port *base)
{
	struct lx_iface iface;

	return lx_iface_get(((struct xdp_port *)base)->iface.name, &iface, NULL) == 0 &&
	       iface.running;
}

static int xdp_start(struct port *base, struct ho_err *err)
{
	struct xdp_port *port = (struct xdp_port *)base;

	read_kernel(port, &port->at_start);
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct xdp_rxq *q = (struct xdp_rxq *)base->rxq[i];
		int rc;

		if (!q->base.cache)
			continue;
		xdp_fill(q);
		rc = xdp_prog_add(port->prog, i, q->fd, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* What nobody will receive any more. */
static void discard_received(struct xdp_rxq *q)
{
	struct pk_slot slots[PK_BURST];
	unsigned n;

	q->target = 0; /* no refill */
	while ((n = xdp_rx(&q->base, slots, PK_BURST)) > 0) {
		uint64_t frames = 0, bytes = 0;

		for (unsigned i = 0; i < n; i++) {
			frames += !(slots[i].flags & PK_MORE);
			bytes += slots[i].len;
		}
		/* They were counted as received, but nobody will see them. */
		q->base.ctr.packets -= frames;
		q->base.ctr.bytes -= bytes;
		port_drop(&q->base.ctr, PORT_DROP_RX_CLOSED, frames);
		pk_free_slots(q->base.cache, slots, n);
	}
}

static void close_socks(struct xdp_port *port)
{
	for (unsigned i = 0; i < port->n_socks; i++)
		xdp_sock_close(&port->socks[i]);
	for (unsigned i = 0; i < port->base.n_rxq; i++)
		((struct xdp_rxq *)port->base.rxq[i])->fd = -1;
	for (unsigned i = 0; i < port->base.n_txq; i++)
		((struct xdp_txq *)port->base.txq[i])->fd = -1;
}

/* In zero-copy the hardware may write into buffers until the kernel has let go of the queue. */
static void await_release(const struct xdp_port *port)
{
	if (port->mode != XDP_MODE_ZERO_COPY)
		return;
	for (unsigned i = 0; i < HO_MAX(port->base.n_rxq, port->base.n_txq); i++) {
		const struct xdp_sock_config probe = {
			.ifindex = port->iface.index,
			.queue = i,
			.bind_flags = XDP_COPY,
			.share_fd = -1,
			.rx_size = RING_UNUSED,
			.fill_size = RING_UNUSED,
			.comp_size = RING_UNUSED,
		};
		struct xsk_ring_cons rx;
		struct xdp_sock sock;

		if (xdp_sock_open(&sock, port->base.arena, &probe, &rx, NULL, NULL, NULL, NULL) ==
		    0)
			xdp_sock_close(&sock);
	}
}

static void xdp_stop(struct port *base)
{
	struct xdp_port *port = (struct xdp_port *)base;

	if (port->prog)
		xdp_prog_detach(port->prog);
	for (unsigned i = 0; i < base->n_txq; i++) {
		struct xdp_txq *q = (struct xdp_txq *)base->txq[i];

		if (q->live && q->base.cache)
			xdp_live_flush(q);
		else if (q->fd >= 0 && q->base.cache)
			while (xdp_reap(&q->base))
				;
	}
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct xdp_rxq *q = (struct xdp_rxq *)base->rxq[i];

		if (q->base.cache)
			discard_received(q);
		read_stats(q, &q->last);
	}
	read_kernel(port, &port->at_stop);
	close_socks(port);
	await_release(port);
	for (unsigned i = 0; i < base->n_rxq; i++) {
		if (base->rxq[i]->cache)
			xdp_take_back_rx((struct xdp_rxq *)base->rxq[i]);
	}
	for (unsigned i = 0; i < base->n_txq; i++) {
		struct xdp_txq *q = (struct xdp_txq *)base->txq[i];

		q->base.reap = NULL;
		if (q->base.cache && !q->live)
			port_drop(&q->base.ctr, PORT_DROP_TX_CLOSED,
				  HO_MIN(xdp_take_back_tx(q), port_tx_in_flight(&q->base)));
	}
}

static void xdp_close(struct port *base)
{
	struct xdp_port *port = (struct xdp_port *)base;

	xdp_prog_destroy(port->prog);
	close_socks(port);
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct xdp_rxq *q = (struct xdp_rxq *)base->rxq[i];

		/* Of a start that failed half way. */
		if (q->base.cache && q->given)
			xdp_take_back_rx(q);
		rt_event_destroy(base->rt, q->event);
		free(q->given);
	}
	for (unsigned i = 0; i < base->n_txq; i++) {
		struct xdp_txq *q = (struct xdp_txq *)base->txq[i];

		xdp_live_destroy(q->live);
		free(q->given);
	}
	free(port->socks);
	free(port->filter);
	port_free(base);
}

static const struct port_ops xdp_ops = {
	.start = xdp_start,
	.rx_event = xdp_rx_event,
	.arm = xdp_arm,
	.disarm = xdp_disarm,
	.link_up = xdp_link_up,
	.external_drops = xdp_external_drops,
	.stats = xdp_stats,
	.params = xdp_params,
	.stop = xdp_stop,
	.close = xdp_close,
};

/* --- opening -------------------------------------------------------------------------------- */

static int check_ring(const char *name, uint64_t size, struct ho_err *err)
{
	if (size < RING_MIN || size > RING_MAX || (size & (size - 1)))
		return ho_err_set(err, -EINVAL, "%s=%llu: a power of two from %u to %u is needed",
				  name, (unsigned long long)size, RING_MIN, RING_MAX);
	return 0;
}

static int require_caps(const struct xdp_port *port, struct ho_err *err)
{
	lx_capset need = LX_CAP(CAP_NET_RAW);

	if (port->rx || port->live)
		need |= LX_CAP(CAP_NET_ADMIN) | LX_CAP(CAP_BPF);
	return lx_caps_require(port->rx ? "receiving by AF_XDP" : "sending by AF_XDP", need, err);
}

/* The sockets of queue i and what its queues need. */
static int open_queue(struct xdp_port *port, unsigned i, uint16_t bind_flags, struct ho_err *err)
{
	struct port *base = &port->base;
	struct xdp_rxq *rxq = i < base->n_rxq ? (struct xdp_rxq *)base->rxq[i] : NULL;
	struct xdp_txq *txq =
		i < base->n_txq && !port->live ? (struct xdp_txq *)base->txq[i] : NULL;
	struct xdp_sock *first = &port->socks[2 * i], *second = &port->socks[2 * i + 1];
	struct xdp_sock_config c = {
		.ifindex = port->iface.index,
		.queue = i,
		.bind_flags = bind_flags,
		.share_fd = i ? port->socks[0].fd : -1,
		.rx_size = rxq ? (uint32_t)port->opts.rx_ring : 0,
		.tx_size = !rxq && txq ? (uint32_t)port->opts.tx_ring : 0,
		.fill_size = rxq ? 2 * (uint32_t)port->opts.rx_ring : RING_UNUSED,
		.comp_size = txq ? (uint32_t)port->opts.tx_ring : RING_UNUSED,
		.busy_poll_ns = port->opts.busy_poll_ns,
		.busy_budget = port->opts.busy_budget,
	};
	int rc;

	if (!rxq && !txq)
		return 0;
	rc = xdp_sock_open(first, base->arena, &c, rxq ? &rxq->rx : NULL, txq ? &txq->tx : NULL,
			   rxq ? &rxq->fill : NULL, txq ? &txq->comp : NULL, err);
	if (rc < 0)
		return rc;
	if (rxq)
		rxq->fd = first->fd;
	if (txq)
		txq->fd = first->fd;
	if (!rxq || !txq)
		return 0;
	c.share_fd = first->fd;
	c.same_queue = true;
	c.rx_size = 0;
	c.tx_size = (uint32_t)port->opts.tx_ring;
	rc = xdp_sock_open(second, base->arena, &c, NULL, &txq->tx, NULL, NULL, err);
	if (rc == 0)
		txq->fd = second->fd;
	return rc;
}

/* Attaches the program and binds all sockets in this mode, or leaves nothing behind; *hopeless: no
 * other mode can help. */
static int try_mode(struct xdp_port *port, enum xdp_mode mode, bool *hopeless, struct ho_err *err)
{
	uint16_t flags = modes[mode].bind_flags;
	unsigned queues = HO_MAX(port->base.n_rxq, port->base.n_txq);
	bool program = port->rx || mode == XDP_MODE_ZERO_COPY;
	int rc = 0;

	if (port->opts.need_wakeup)
		flags |= XDP_USE_NEED_WAKEUP;
	if (port->sg)
		flags |= XDP_USE_SG;
	if (program) {
		rc = xdp_prog_load(port, port->rx ? port->filter : NULL, &port->prog, err);
		if (rc < 0) {
			/* In another mode it would be the same. */
			*hopeless = true;
			return rc;
		}
	}
	if (program)
		rc = xdp_prog_attach(port->prog, port, modes[mode].generic, err);
	for (unsigned i = 0; rc == 0 && i < queues; i++)
		rc = open_queue(port, i, flags, err);
	if (rc == 0) {
		port->mode = mode;
		return 0;
	}
	close_socks(port);
	xdp_prog_destroy(port->prog);
	port->prog = NULL;
	return rc;
}

/* Why a mode need not be tried, or NULL. */
static const char *cannot(const struct xdp_port *port, enum xdp_mode mode, uint32_t features)
{
	if (mode == XDP_MODE_GENERIC || features & LX_XDP_UNKNOWN)
		return NULL;
	if (mode == XDP_MODE_ZERO_COPY) {
		if (!(features & LX_XDP_ZEROCOPY))
			return "its driver has no zero-copy";
		if (!port->base.arena->huge)
			return "zero-copy needs packet buffers on huge pages ('sysctl "
			       "vm.nr_hugepages=N' provides them)";
	}
	if (!port->rx)
		return NULL;
	if (!(features & LX_XDP_BASIC) || !(features & LX_XDP_REDIRECT))
		return "its driver has no native XDP";
	if (port->sg && !(features & LX_XDP_RX_SG))
		return "its driver's native XDP takes no frames of several buffers, which its MTU "
		       "needs";
	return NULL;
}

/* The best mode that works, or the one that was asked for. */
static int choose_mode(struct xdp_port *port, struct ho_err *err)
{
	uint32_t features = lx_xdp_features(port->iface.index);
	const char *name = port->base.name;
	enum xdp_mode want = port->opts.mode;
	enum xdp_mode from = want == XDP_MODE_AUTO ? XDP_MODE_ZERO_COPY : want;
	enum xdp_mode to = want == XDP_MODE_AUTO ? XDP_MODE_GENERIC : want;
	bool hopeless = false;
	int rc = 0;

	if (port->live && !(features & (LX_XDP_NDO_XMIT | LX_XDP_UNKNOWN)))
		return ho_err_set(err, -EOPNOTSUPP,
				  "tx=live: the interface takes no redirected frames now; a veth "
				  "does when its peer runs an XDP program or has GRO on ('ethtool "
				  "-K PEER gro on')");
	for (enum xdp_mode mode = from; mode <= to; mode++) {
		const char *why = cannot(port, mode, features);

		if (why && want != XDP_MODE_AUTO)
			return ho_err_set(err, -EOPNOTSUPP, "%s is not possible: %s",
					  modes[mode].says, why);
		if (why) {
			/* That most drivers cannot do zero-copy is not worth a line each time. */
			(mode == XDP_MODE_COPY ? ho_note : ho_verbose)("%s: %s", name, why);
			continue;
		}
		rc = try_mode(port, mode, &hopeless, err);
		if (rc == 0) {
			if (!port->live || port->rx)
				ho_note("%s: %s", name, modes[mode].says);
			return 0;
		}
		if (hopeless || rc == -EBUSY || rc == -EPERM || rc == -ENODEV || mode == to)
			return rc;
		ho_note("%s: no %s: %s", name, modes[mode].says, err->text);
	}
	return rc;
}

static void warn_queues(const struct xdp_port *port, unsigned queues)
{
	const struct lx_iface *iface = &port->iface;

	if (!port->rx || queues >= iface->rx_queues)
		return;
	if (!strcmp(iface->kind, "veth"))
		ho_warn("%s: %u of %u receive queues are used; frames that arrive on the others "
			"stay with the kernel. 'ethtool -L %s rx %u' leaves only these",
			port->base.name, queues, iface->rx_queues, iface->name, queues);
	else
		ho_warn("%s: %u of %u receive queues are used; frames that arrive on the others "
			"stay with the kernel. 'ethtool -L %s combined %u' leaves only these",
			port->base.name, queues, iface->rx_queues, iface->name, queues);
}

/* Does a frame of the interface's MTU fit a buffer, or must it be cut? */
static int choose_sg(struct xdp_port *port, struct ho_err *err)
{
	uint32_t room = port->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	bool fits = port->iface.mtu + LINK_BYTES <= room;

	port->sg = port->opts.sg == XDP_TRI_YES || (port->opts.sg == XDP_TRI_AUTO && !fits);
	if (fits || port->sg)
		return 0;
	return ho_err_set(err, -EMSGSIZE,
			  "frames of its MTU of %u do not fit a buffer of %u bytes; leave "
			  "multi-buffer on or lower the MTU to %u",
			  port->iface.mtu, room, room - LINK_BYTES);
}

static int make_queues(struct xdp_port *port, const struct port_config *config, struct ho_err *err)
{
	struct port *base = &port->base;
	const uint32_t buffers = base->arena->buffers;

	port->socks = calloc(2 * XDP_QUEUES_MAX, sizeof(*port->socks));
	if (!port->socks)
		goto nomem;
	port->n_socks = 2 * XDP_QUEUES_MAX;
	for (unsigned i = 0; i < port->n_socks; i++)
		port->socks[i].fd = -1;
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct xdp_rxq *q = (struct xdp_rxq *)base->rxq[i];

		q->base.rx = xdp_rx;
		q->fd = -1;
		q->stride = base->arena->stride_bytes;
		/* A burst more than the receive ring: a receiver that is too slow fills the ring
		 * before it starves the kernel of buffers. */
		q->target =
			HO_MIN((uint32_t)port->opts.rx_ring + PK_BURST, buffers / 4 / base->n_rxq);
		q->busy_poll = port->opts.busy_poll_ns;
		/* A chip, or the driver of one, hands up frames as they came from a wire. */
		q->completes = port->iface.kind[0];
		q->given = calloc(buffers, sizeof(*q->given));
		if (!q->given)
			goto nomem;
	}
	for (unsigned i = 0; i < base->n_txq; i++) {
		struct xdp_txq *q = (struct xdp_txq *)base->txq[i];
		int rc = port->live ? xdp_live_create(port, &q->live, err) : 0;

		if (rc < 0)
			return rc;
		q->base.tx = port->live ? xdp_live_tx : xdp_tx;
		q->base.reap = port->live ? xdp_live_reap : xdp_reap;
		q->fd = -1;
		q->stride = base->arena->stride_bytes;
		q->max_slots = port->sg ? XDP_TX_SLOTS_MAX : 1;
		q->need_wakeup = port->opts.need_wakeup;
		q->given = port->live ? NULL : calloc(buffers, sizeof(*q->given));
		if (!port->live && !q->given)
			goto nomem;
	}
	return 0;
nomem:
	return ho_err_set(err, -ENOMEM, "out of memory for its queues");
}

/* What needs the sockets. */
static int finish_queues(struct xdp_port *port, struct ho_err *err)
{
	struct port *base = &port->base;
	bool zero_copy = port->mode == XDP_MODE_ZERO_COPY;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < base->n_rxq; i++) {
		struct xdp_rxq *q = (struct xdp_rxq *)base->rxq[i];

		q->zero_copy = zero_copy;
		rc = rt_event_from_fd(base->rt, q->fd, &q->event, err);
	}
	for (unsigned i = 0; i < base->n_txq; i++)
		((struct xdp_txq *)base->txq[i])->zero_copy = zero_copy;
	return rc;
}

/* Both the command's filter and the option's must match. */
static char *join_filters(const char *a, const char *b)
{
	char *both;

	if (!a || !*a || !b || !*b)
		return strdup(a && *a ? a : b && *b ? b : "");
	return asprintf(&both, "(%s) and (%s)", a, b) < 0 ? NULL : both;
}

static int xdp_open(const char *target, const void *opts_void, const struct port_config *config,
		    struct port **out, struct ho_err *err)
{
	struct xdp_opts opts = *(const struct xdp_opts *)opts_void;
	bool both = !config->rx && !config->tx, rx = both || config->rx, tx = both || config->tx;
	struct xdp_port *port;
	struct lx_iface iface;
	unsigned queues;
	int rc;

	if (config->rt->is_virtual)
		return ho_err_set(err, -ENOTSUP, "the lab's clock cannot drive a real interface");
	rc = lx_iface_claim(target, config->force, &iface, err);
	if (rc < 0)
		return rc;
	if (!opts.rx_ring)
		opts.rx_ring = config->rx_ring ? config->rx_ring : RING_DEFAULT;
	if (!opts.tx_ring)
		opts.tx_ring = config->tx_ring ? config->tx_ring : RING_DEFAULT;
	rc = check_ring("rx", opts.rx_ring, err);
	if (rc == 0)
		rc = check_ring("tx", opts.tx_ring, err);
	if (rc < 0)
		return rc;
	queues = opts.queues ? (unsigned)opts.queues : config->queues;
	if (!queues)
		queues = rx ? iface.rx_queues : iface.tx_queues;
	queues = config->queues || opts.queues ? queues : HO_MIN(queues, (unsigned)XDP_QUEUES_MAX);
	if (queues > XDP_QUEUES_MAX)
		return ho_err_set(err, -EINVAL, "%u queues: at most %u are possible", queues,
				  XDP_QUEUES_MAX);
	if ((rx && queues > iface.rx_queues) || (!rx && queues > iface.tx_queues))
		return ho_err_set(err, -EINVAL,
				  "%u queues, but it has %u; 'ethtool -L %s' may give it more, "
				  "'ethtool -l %s' says how many",
				  queues, rx ? iface.rx_queues : iface.tx_queues, target, target);
	port = (struct xdp_port *)port_new(sizeof(*port), &port_kind_xdp, target, config,
					   rx ? queues : 0, sizeof(struct xdp_rxq),
					   tx ? HO_MIN(queues, iface.tx_queues) : 0,
					   sizeof(struct xdp_txq));
	if (!port)
		return ho_err_set(err, -ENOMEM, "out of memory");
	port->base.ops = &xdp_ops;
	port->opts = opts;
	port->iface = iface;
	port->rx = rx;
	port->tx = tx;
	port->live = tx && opts.tx == XDP_TX_LIVE;
	memcpy(port->base.mac, iface.mac, sizeof(iface.mac));
	port->base.mtu = iface.mtu;
	port->base.link_bps = iface.link_bps;
	port->base.max_frame = iface.mtu + LINK_BYTES;
	if (port->live)
		port->base.max_frame = HO_MIN(port->base.max_frame, xdp_live_max_frame());
	rc = require_caps(port, err);
	if (rc == 0 && !iface.up)
		rc = ho_err_set(err, -ENETDOWN, "it is down; 'ip link set dev %s up'", target);
	if (rc == 0)
		rc = choose_sg(port, err);
	if (rc < 0)
		goto fail;
	port->filter = join_filters(config->filter, opts.filter);
	if (!port->filter) {
		rc = ho_err_set(err, -ENOMEM, "out of memory");
		goto fail;
	}
	if (!*port->filter) {
		free(port->filter);
		port->filter = NULL;
	}
	rc = make_queues(port, config, err);
	if (rc == 0)
		rc = choose_mode(port, err);
	if (rc == 0)
		rc = finish_queues(port, err);
	if (rc < 0)
		goto fail;
	warn_queues(port, queues);
	*out = &port->base;
	return 0;
fail:
	xdp_close(&port->base);
	return rc;
}

static const struct port_opt xdp_options[] = {
	{ "mode", PORT_OPT_CHOICE, "auto|zero-copy|copy|generic",
	  "how frames come up; auto takes the best that works and says which",
	  .offset = offsetof(struct xdp_opts, mode) },
	{ "queues", PORT_OPT_COUNT, .help = "queues to use (all)", .min = 1, .max = XDP_QUEUES_MAX,
	  .offset = offsetof(struct xdp_opts, queues) },
	{ "rx", PORT_OPT_COUNT, .help = "entries of a receive ring, a power of two (2048)",
	  .min = RING_MIN, .max = RING_MAX, .offset = offsetof(struct xdp_opts, rx_ring) },
	{ "tx-ring", PORT_OPT_COUNT, .help = "entries of a transmit ring, a power of two (2048)",
	  .min = RING_MIN, .max = RING_MAX, .offset = offsetof(struct xdp_opts, tx_ring) },
	{ "tx", PORT_OPT_CHOICE, "auto|socket|live",
	  "how frames are sent: auto by the socket; live, by XDP live frames, is faster without "
	  "zero-copy, and passes by queueing disciplines and packet taps",
	  .offset = offsetof(struct xdp_opts, tx) },
	{ "filter", PORT_OPT_STRING, .help = "libpcap expression; the kernel keeps the rest",
	  .offset = offsetof(struct xdp_opts, filter) },
	{ "keep", PORT_OPT_CHOICE, "local|neighbour|nothing|host",
	  "what the kernel keeps in any case: local is ARP, ND and ICMP to this host; neighbour "
	  "only ARP and ND; host all that a router does not route",
	  .offset = offsetof(struct xdp_opts, keep) },
	{ "multi-buffer", PORT_OPT_CHOICE, "auto|yes|no",
	  "frames longer than a buffer; auto as the MTU needs",
	  .offset = offsetof(struct xdp_opts, sg) },
	{ "need-wakeup", PORT_OPT_BOOL, .help = "call the kernel only when it asks (yes)",
	  .offset = offsetof(struct xdp_opts, need_wakeup) },
	{ "busy-poll", PORT_OPT_TIME,
	  .help = "poll the driver from the receiving thread, for so "
		  "long a call (off)",
	  .max = 1000000000, .offset = offsetof(struct xdp_opts, busy_poll_ns) },
	{ "busy-budget", PORT_OPT_COUNT, .help = "packets a busy poll may take (64)", .min = 1,
	  .max = 65535, .offset = offsetof(struct xdp_opts, busy_budget) },
	{ 0 },
};

static const struct xdp_opts xdp_defaults = { .need_wakeup = true, .busy_budget = 64 };

const struct port_kind port_kind_xdp = {
	.name = "xdp",
	.help = "an interface by AF_XDP; the kernel's driver stays and keeps what is not ours",
	.target = "IFACE",
	.opts = xdp_options,
	.opts_bytes = sizeof(struct xdp_opts),
	.opts_default = &xdp_defaults,
	.open = xdp_open,
};
