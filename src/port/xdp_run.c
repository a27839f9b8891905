// SPDX-License-Identifier: BSD-2-Clause
/* xdp: ports once they are open: counters, start, stop, close. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "linux/xdpdev.h"
#include "port/shortcut.h"
#include "port/xdp.h"
#include "port/xdp_shared.h"

static_assert(XDP_COUNTS <= HO_ARRAY_LEN(((struct xdp_port *)0)->at_start.program),
	      "all the program's counters have a place");

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
	if (port->live || port->joined) {
		out->counts_xmit = lx_driver_stat_sum(name, "_xdp_xmit", &out->xmit);
		lx_driver_stat_sum(name, "_xdp_xmit_errors", &out->xmit_errors);
	}
	if (port->joined) {
		struct port_shortcut_counts c;

		lx_driver_stat_sum(name, "_xdp_redirect", &out->redirected);
		port_shortcut_read(&port->base, &c);
		out->shortcut_in = c.in_packets;
		out->shortcut_out = c.out_packets;
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
	uint64_t of_sockets = 0, to_sockets = 0, sent = 0, refused = 0, not_xmit;

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
		to_sockets += ho_ctr_read(&base->rxq[i]->ctr.packets) +
			      ho_ctr_read(&base->rxq[i]->ctr.drops[PORT_DROP_RX_CLOSED]);
	}
	/* Of the shortcut's: what the other interface refused at once is lost there, as far as
	 * anybody can tell, and not on this link. */
	if (now.counts_xmit)
		refused = less(now.shortcut_in - from->shortcut_in,
			       less(now.redirected - from->redirected, to_sockets));
	if (port->rx) {
		drops[PORT_DROP_RX_LINK] +=
			less(less(now.rx_lost, from->rx_lost), of_sockets + refused);
		drops[PORT_DROP_RX_FILTERED] += now.program[XDP_COUNT_STAMPED_UNMATCHED] -
						from->program[XDP_COUNT_STAMPED_UNMATCHED] +
						now.program[XDP_COUNT_STAMPED_KEPT] -
						from->program[XDP_COUNT_STAMPED_KEPT];
		drops[PORT_DROP_RX_NO_QUEUE] += now.program[XDP_COUNT_STAMPED_NO_SOCKET] -
						from->program[XDP_COUNT_STAMPED_NO_SOCKET];
	}
	if (!now.counts_xmit)
		return;
	/* Of what was redirected to the interface, the peer's ring refused some; and all of it is
	 * lost while the peer is not set up to take redirected frames. */
	for (unsigned i = 0; port->live && i < base->n_txq; i++)
		sent += ho_ctr_read(&base->txq[i]->ctr.packets);
	sent += now.shortcut_out - from->shortcut_out;
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

void xdp_close_socks(struct xdp_port *port)
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
			.rx_size = XDP_RING_UNUSED,
			.fill_size = XDP_RING_UNUSED,
			.comp_size = XDP_RING_UNUSED,
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
	xdp_close_socks(port);
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
	xdp_close_socks(port);
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
	free(port->joined);
	port_free(base);
}

const struct port_ops xdp_ops = {
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
