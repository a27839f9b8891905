// SPDX-License-Identifier: BSD-2-Clause
/*
 * xdp:IFACE: an interface by AF_XDP. The kernel's driver stays in charge, and the kernel keeps
 * what is not ours; see port/xdp.h for the pieces.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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
/* Ethernet header and one VLAN tag, which the MTU does not count. */
#define LINK_BYTES 18

/* For loading and attaching an XDP program. */
#define CAPS_PROGRAM (LX_CAP(CAP_NET_ADMIN) | LX_CAP(CAP_BPF))

static const struct {
	const char *says;
	uint16_t bind_flags;
	bool generic;
} modes[XDP_MODES] = {
	[XDP_MODE_ZERO_COPY] = { "zero-copy in the driver", XDP_ZEROCOPY, false },
	[XDP_MODE_COPY] = { "copy mode in the driver", XDP_COPY, false },
	[XDP_MODE_GENERIC] = { "copy mode in the kernel's generic XDP", XDP_COPY, true },
};

static int check_ring(const char *name, uint64_t size, struct ho_err *err)
{
	if (size < RING_MIN || size > RING_MAX || (size & (size - 1)))
		return ho_err_set(err, -EINVAL, "%s=%llu: a power of two from %u to %u is needed",
				  name, (unsigned long long)size, RING_MIN, RING_MAX);
	return 0;
}

/* May the arena be pinned as it is? What others of the user's have pinned is not known. */
static bool may_pin(const struct pk_arena *arena)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_max == RLIM_INFINITY ||
	       arena->size_bytes <= limit.rlim_max;
}

static int require_caps(const struct xdp_port *port, lx_capset also, struct ho_err *err)
{
	lx_capset need = LX_CAP(CAP_NET_RAW) | also;

	if (port->rx || port->live)
		need |= CAPS_PROGRAM;
	/* Without it the verifier wants no pointers compared or subtracted: so do the programs for
	 * live frames, of a filter and of a router's host. */
	if (port->live || (port->rx && (port->filter || port->opts.keep == XDP_KEEP_HOST)))
		need |= LX_CAP(CAP_PERFMON);
	if ((port->rx || !port->live) && !may_pin(port->base.arena))
		need |= LX_CAP(CAP_IPC_LOCK);
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
		.fill_size = rxq ? 2 * (uint32_t)port->opts.rx_ring : XDP_RING_UNUSED,
		.comp_size = txq ? (uint32_t)port->opts.tx_ring : XDP_RING_UNUSED,
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
	xdp_close_socks(port);
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
		/* Drivers want a program there, even to send only. */
		if (lx_caps_missing(CAPS_PROGRAM))
			return "zero-copy needs cap_net_admin and cap_bpf, too";
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
	/* A mode that did not work is said, but is no failure once another one does. */
	struct ho_err tried;
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
		tried = (struct ho_err){ 0 };
		rc = try_mode(port, mode, &hopeless, &tried);
		if (rc == 0) {
			if (!port->live || port->rx)
				ho_note("%s: %s", name, modes[mode].says);
			return 0;
		}
		if (hopeless || rc == -EBUSY || rc == -EPERM || rc == -ENODEV || rc == -ENOBUFS ||
		    mode == to)
			return ho_err_set(err, rc, "%s", tried.text);
		ho_note("%s: no %s: %s", name, modes[mode].says, tried.text);
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
		q->completes = port->iface.kind[0] && !config->count_only;
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
	port->base.ifindex = iface.index;
	port->rx = rx;
	port->tx = tx;
	port->live = tx && opts.tx == XDP_TX_LIVE;
	memcpy(port->base.mac, iface.mac, sizeof(iface.mac));
	port->base.mtu = iface.mtu;
	port->base.link_bps = iface.link_bps;
	port->base.max_frame = iface.mtu + LINK_BYTES;
	if (port->live)
		port->base.max_frame = HO_MIN(port->base.max_frame, xdp_live_max_frame());
	port->filter = join_filters(config->filter, opts.filter);
	if (!port->filter) {
		rc = ho_err_set(err, -ENOMEM, "out of memory");
		goto fail;
	}
	if (!*port->filter) {
		free(port->filter);
		port->filter = NULL;
	}
	rc = require_caps(port, 0, err);
	if (rc == 0 && !iface.up)
		rc = ho_err_set(err, -ENETDOWN, "it is down; 'ip link set dev %s up'", target);
	if (rc == 0)
		rc = choose_sg(port, err);
	if (rc < 0)
		goto fail;
	xdp_quiet_libbpf();
	rc = make_queues(port, config, err);
	if (rc == 0)
		rc = choose_mode(port, err);
	/* Verifiers differ in what they want it for. */
	if ((rc == -EACCES || rc == -EPERM) && lx_caps_missing(LX_CAP(CAP_PERFMON)))
		rc = require_caps(port, LX_CAP(CAP_PERFMON), err);
	if (rc == 0)
		rc = finish_queues(port, err);
	if (rc < 0)
		goto fail;
	warn_queues(port, queues);
	*out = &port->base;
	return 0;
fail:
	xdp_ops.close(&port->base);
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
	.on_interface = true,
	.opts = xdp_options,
	.opts_bytes = sizeof(struct xdp_opts),
	.opts_default = &xdp_defaults,
	.open = xdp_open,
};
