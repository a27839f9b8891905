// SPDX-License-Identifier: BSD-2-Clause
/*
 * packet:IFACE: a kernel interface through packet sockets: no XDP, no driver of ours, any
 * interface. The kernel's stack keeps seeing everything that we receive.
 *
 * Receive sockets are bound at open with a filter that takes nothing, joined to one fanout group if
 * there are several, and opened all at start: no frame is seen by two queues, none counted before
 * start. Promiscuous mode ends with the socket, even if we are killed.
 *
 * Losses that only the kernel counts: rx_socket (PACKET_STATISTICS, exact), rx_link and tx_link
 * (the interface's counters since start, which other users of the interface move as well).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linux/caps.h"
#include "port/bpf.h"
#include "port/kinds.h"
#include "port/packet_port.h"
#include "port/vnet.h"

#define PACKET_QUEUES_MAX 64
#define PACKET_CHECK_NS   100000000u
#define FANOUT_TYPE_SHIFT 16

static struct packet_rxq *rxq_of(struct port *port, unsigned i)
{
	return (struct packet_rxq *)port->rxq[i];
}

static struct packet_txq *txq_of(struct port *port, unsigned i)
{
	return (struct packet_txq *)port->txq[i];
}

static struct rt_event *packet_rx_event(struct port_rxq *base)
{
	return ((struct packet_rxq *)base)->event;
}

static void packet_disarm(struct port_rxq *base)
{
}

/* Was the interface removed? Looks at most every PACKET_CHECK_NS. */
static bool packet_rx_ended(struct port_rxq *base)
{
	struct packet_rxq *q = (struct packet_rxq *)base;
	struct packet_port *port = (struct packet_port *)base->port;
	uint64_t now = rt_now_ns(base->port->rt);
	struct ifreq ifr = { .ifr_ifindex = (int)port->iface.index };

	if (now >= q->check_ns) {
		q->check_ns = now + PACKET_CHECK_NS;
		if (ioctl(q->fd, SIOCGIFNAME, &ifr) < 0 && errno == ENODEV)
			__atomic_store_n(&port->gone, true, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(&port->gone, __ATOMIC_RELAXED) && !packet_arm(base);
}

static int packet_late_error(struct port *base, struct ho_err *err)
{
	if (!__atomic_load_n(&((struct packet_port *)base)->gone, __ATOMIC_RELAXED))
		return 0;
	/* Not -ENODEV, which says that a wrong name was given. */
	return ho_err_set(err, -ENETDOWN, "the interface was removed");
}

static bool packet_link_up(struct port *base)
{
	struct packet_port *port = (struct packet_port *)base;
	int fd = port->tx ? txq_of(base, 0)->fd : rxq_of(base, 0)->fd;
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, port->iface.name, IFNAMSIZ);
	return ioctl(fd, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_UP) &&
	       (ifr.ifr_flags & IFF_RUNNING);
}

static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/*
 * Frames that the kernel dropped because a CPU's queue of received frames was full, on any
 * interface: second column of /proc/net/softnet_stat, a line a CPU, hexadecimal. 0 if unreadable.
 */
static uint64_t backlog_drops(void)
{
	FILE *file = fopen("/proc/net/softnet_stat", "re");
	unsigned processed, dropped;
	uint64_t sum = 0;

	while (file && fscanf(file, "%x %x%*[^\n]", &processed, &dropped) == 2)
		sum += dropped;
	if (file)
		fclose(file);
	return sum;
}

static void packet_external_drops(struct port *base, uint64_t *drops)
{
	struct packet_port *port = (struct packet_port *)base;
	struct rtnl_link_stats64 now;
	uint64_t refused = 0;

	for (unsigned i = 0; port->rx && i < base->n_rxq; i++) {
		struct packet_rxq *q = rxq_of(base, i);

		packet_rx_stats(q);
		pthread_mutex_lock(&q->stats_lock);
		drops[PORT_DROP_RX_SOCKET] += q->kernel_drops;
		pthread_mutex_unlock(&q->stats_lock);
	}
	for (unsigned i = 0; port->tx && i < base->n_txq; i++)
		refused += ho_ctr_read(&txq_of(base, i)->refused);
	if (lx_iface_stats(port->iface.index, &now, NULL) < 0)
		return;
	/* rx_dropped counts also what we did receive but the stack has no use for (unknown VLANs):
	 * of it, only as much as the CPUs' queues lost. */
	if (port->rx)
		drops[PORT_DROP_RX_LINK] +=
			HO_MIN(above(now.rx_dropped, port->before.rx_dropped),
			       above(backlog_drops(), port->backlog_before)) +
			above(now.rx_missed_errors, port->before.rx_missed_errors);
	/* What the interface dropped and sendmmsg told us about is a tx_kernel drop already. */
	if (port->tx)
		drops[PORT_DROP_TX_LINK] +=
			above(now.tx_dropped, port->before.tx_dropped + refused);
}

static unsigned packet_params(struct port *base, struct port_param *out, unsigned max)
{
	struct packet_port *port = (struct packet_port *)base;
	struct port_param params[4];
	unsigned n = 0;

	params[n++] = (struct port_param){ "combined", base->n_rxq, 0 };
	if (port->rx)
		params[n++] = (struct port_param){ "rx",
						   port->opts.rx == PACKET_RX_V3
							   ? rxq_of(base, 0)->ring_bytes /
								     PACKET_V3_FRAME_BYTES
							   : rxq_of(base, 0)->frames,
						   0 };
	if (port->tx && port->opts.tx == PACKET_TX_BY_RING)
		params[n++] = (struct port_param){ "tx", txq_of(base, 0)->size, 0 };
	params[n++] = (struct port_param){ "mtu", base->mtu, 0 };
	memcpy(out, params, HO_MIN(max, n) * sizeof(*out));
	return n;
}

/* A program that takes no frame. */
static int attach_nothing(int fd)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = { .len = 1, .filter = &code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ? -errno : 0;
}

/* Lets the frames in: those that the user's filter takes, or all. */
static int attach_wanted(const struct packet_port *port, int fd)
{
	struct sock_fprog prog;
	int none = 0;

	if (!port->filter)
		return setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)) < 0
			       ? -errno
			       : 0;
	prog.len = (unsigned short)port->filter->bf_len;
	/* libpcap's struct bpf_insn is the kernel's struct sock_filter. */
	prog.filter = (struct sock_filter *)port->filter->bf_insns;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ? -errno : 0;
}

static int packet_start(struct port *base, struct ho_err *err)
{
	struct packet_port *port = (struct packet_port *)base;
	int rc = lx_iface_stats(port->iface.index, &port->before, err);

	port->backlog_before = backlog_drops();
	for (unsigned i = 0; rc == 0 && port->rx && i < base->n_rxq; i++) {
		struct packet_rxq *q = rxq_of(base, i);

		/* A queue without a user takes nothing; its share of the frames is lost. */
		if (!q->base.cache)
			continue;
		packet_rx_stats(q);
		q->kernel_packets = q->kernel_drops = 0;
		rc = attach_wanted(port, q->fd);
		if (rc < 0)
			ho_err_set(err, rc, "the kernel refuses the filter: %s", ho_strerror(rc));
	}
	return rc;
}

static void packet_stop(struct port *base)
{
	struct packet_port *port = (struct packet_port *)base;

	for (unsigned i = 0; port->rx && i < base->n_rxq; i++)
		attach_nothing(rxq_of(base, i)->fd);
	for (unsigned i = 0; port->rx && i < base->n_rxq; i++)
		packet_rx_stop(rxq_of(base, i));
	for (unsigned i = 0; port->tx && i < base->n_txq; i++)
		packet_tx_stop(txq_of(base, i));
}

static void packet_close(struct port *base)
{
	struct packet_port *port = (struct packet_port *)base;

	for (unsigned i = 0; i < base->n_rxq; i++) {
		packet_rx_close(rxq_of(base, i));
		pthread_mutex_destroy(&rxq_of(base, i)->stats_lock);
	}
	for (unsigned i = 0; i < base->n_txq; i++)
		packet_tx_close(txq_of(base, i));
	if (port->filter)
		pcap_freecode(port->filter);
	free(port->filter);
	port_free(base);
}

static const struct port_ops packet_ops = {
	.start = packet_start,
	.rx_event = packet_rx_event,
	.arm = packet_arm,
	.disarm = packet_disarm,
	.rx_ended = packet_rx_ended,
	.link_up = packet_link_up,
	.external_drops = packet_external_drops,
	.late_error = packet_late_error,
	.params = packet_params,
	.stop = packet_stop,
	.close = packet_close,
};

static unsigned no_rx(struct port_rxq *q, struct pk_slot *slots, unsigned n)
{
	return 0;
}

static unsigned no_tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	port_tx_discard(q, slots, n, PORT_DROP_TX_LINK_DOWN);
	return n;
}

static int open_socket(struct ho_err *err)
{
	/* Protocol 0: receives nothing until it is bound to one. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0)
		return fd;
	if (errno == EPERM) {
		int rc = lx_caps_require("opening a packet socket", LX_CAP(CAP_NET_RAW), err);

		if (rc < 0)
			return rc;
		errno = EPERM;
	}
	return ho_err_set(err, -errno, "cannot open a packet socket: %s", ho_strerror(errno));
}

static int bind_socket(int fd, unsigned index, int protocol, struct ho_err *err)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons((uint16_t)protocol),
		.sll_ifindex = (int)index,
	};

	/* ENETDOWN is reported although it is bound: frames will come when it goes up. */
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 && errno != ENETDOWN)
		return ho_err_set(err, -errno, "cannot bind a packet socket: %s",
				  ho_strerror(errno));
	return 0;
}

static int join_fanout(const struct packet_opts *opts, int fd, int *group, struct ho_err *err)
{
	static const int types[] = {
		[PACKET_BY_HASH] = PACKET_FANOUT_HASH,
		[PACKET_BY_CPU] = PACKET_FANOUT_CPU,
		[PACKET_BY_TURNS] = PACKET_FANOUT_LB,
		[PACKET_BY_QUEUE] = PACKET_FANOUT_QM,
	};
	int type = types[opts->fanout];
	int arg = *group < 0 ? (type | PACKET_FANOUT_FLAG_UNIQUEID) << FANOUT_TYPE_SHIFT
			     : *group | type << FANOUT_TYPE_SHIFT;
	socklen_t size = sizeof(arg);

	if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg)) < 0 ||
	    getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, &size) < 0)
		return ho_err_set(
			err, -errno, "cannot spread frames over several queues: %s%s",
			ho_strerror(errno),
			errno == ENETDOWN || errno == EINVAL ? "; the interface must be up" : "");
	*group = arg & 0xffff;
	return 0;
}

static int open_rxq(struct packet_port *port, struct packet_rxq *q, uint32_t frames, int *group,
		    struct ho_err *err)
{
	struct packet_mreq promisc = { .mr_ifindex = (int)port->iface.index,
				       .mr_type = PACKET_MR_PROMISC };
	int one = 1, rc;

	q->fd = rc = open_socket(err);
	if (rc < 0)
		return rc;
	if (setsockopt(q->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) < 0)
		return ho_err_set(err, -errno, "cannot leave out our own frames: %s",
				  ho_strerror(errno));
	rc = packet_rx_open(q, frames, err);
	if (rc < 0)
		return rc;
	rc = attach_nothing(q->fd);
	if (rc < 0)
		return ho_err_set(err, rc, "cannot set a filter: %s", ho_strerror(rc));
	rc = bind_socket(q->fd, port->iface.index, ETH_P_ALL, err);
	if (rc == 0 && port->base.n_rxq > 1)
		rc = join_fanout(&port->opts, q->fd, group, err);
	if (rc == 0 && port->opts.promisc &&
	    setsockopt(q->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc)) < 0)
		rc = ho_err_set(err, -errno, "cannot set promiscuous mode: %s; promisc=no",
				ho_strerror(errno));
	return rc;
}

static int open_txq(struct packet_port *port, struct packet_txq *q, uint32_t frames,
		    struct ho_err *err)
{
	int rc = open_socket(err);

	q->fd = rc;
	if (rc >= 0)
		rc = packet_tx_open(q, frames, err);
	return rc < 0 ? rc : bind_socket(q->fd, port->iface.index, 0, err);
}

static int compile_filter(struct packet_port *port, const char *text, struct ho_err *err)
{
	int rc;

	port->filter = calloc(1, sizeof(*port->filter));
	if (!port->filter)
		return ho_err_set(err, -ENOMEM, "out of memory for the filter");
	rc = port_bpf_compile_live(port->iface.name, text, port->filter, err);
	if (rc < 0) {
		free(port->filter);
		port->filter = NULL;
	}
	return rc;
}

static int open_queues(struct packet_port *port, const struct port_config *config,
		       struct ho_err *err)
{
	int group = -1, rc = 0;

	for (unsigned i = 0; rc == 0 && i < port->base.n_rxq; i++) {
		if (port->rx)
			rc = open_rxq(port, rxq_of(&port->base, i), config->rx_ring, &group, err);
		if (rc == 0 && port->tx)
			rc = open_txq(port, txq_of(&port->base, i), config->tx_ring, err);
	}
	/* The socket comes first: it is what tells about a missing privilege best. */
	if (rc == 0 && port->rx && config->filter)
		rc = compile_filter(port, config->filter, err);
	return rc;
}

static int packet_open(const char *target, const void *opts_void, const struct port_config *config,
		       struct port **out, struct ho_err *err)
{
	unsigned queues = config->queues ? config->queues : 1;
	struct packet_port *port;
	struct lx_iface iface;
	int rc;

	if (queues > PACKET_QUEUES_MAX)
		return ho_err_set(err, -EINVAL, "%u queues: at most %u", queues, PACKET_QUEUES_MAX);
	rc = lx_iface_claim(target, config->force, &iface, err);
	if (rc < 0)
		return rc;
	port = (struct packet_port *)port_new(sizeof(*port), &port_kind_packet, target, config,
					      queues, sizeof(struct packet_rxq), queues,
					      sizeof(struct packet_txq));
	if (!port)
		return ho_err_set(err, -ENOMEM, "out of memory");
	port->opts = *(const struct packet_opts *)opts_void;
	port->iface = iface;
	port->base.ifindex = iface.index;
	port->rx = config->rx || !config->tx;
	port->tx = config->tx || !config->rx;
	port->base.ops = &packet_ops;
	memcpy(port->base.mac, iface.mac, sizeof(port->base.mac));
	port->base.mtu = iface.mtu;
	port->base.link_bps = iface.link_bps;
	port->base.max_frame = iface.mtu + 14;
	port->base.tag_room = PORT_VLAN_TAG_BYTES;
	for (unsigned i = 0; i < queues; i++) {
		struct packet_rxq *rxq = rxq_of(&port->base, i);
		struct packet_txq *txq = txq_of(&port->base, i);

		pthread_mutex_init(&rxq->stats_lock, NULL);
		rxq->fd = txq->fd = -1;
		rxq->opts = txq->opts = &port->opts;
		rxq->base.rx = no_rx;
		txq->base.tx = no_tx;
	}
	rc = open_queues(port, config, err);
	if (rc < 0) {
		packet_close(&port->base);
		return rc;
	}
	*out = &port->base;
	return 0;
}

static const struct port_opt packet_options[] = {
	{ "fanout", PORT_OPT_CHOICE, "hash|cpu|lb|queue",
	  .help = "how received frames spread over several queues (hash)",
	  .offset = offsetof(struct packet_opts, fanout) },
	{ "rx", PORT_OPT_CHOICE, "v3|v2",
	  .help = "receive ring: v3 in blocks, up to 1 ms later, v2 frame by frame (v3)",
	  .offset = offsetof(struct packet_opts, rx) },
	{ "tx", PORT_OPT_CHOICE, "mmsg|ring",
	  .help = "send with sendmmsg or through a mapped ring (mmsg)",
	  .offset = offsetof(struct packet_opts, tx) },
	{ "bypass", PORT_OPT_BOOL, .help = "send past the queueing discipline (yes)",
	  .offset = offsetof(struct packet_opts, bypass) },
	{ "offload", PORT_OPT_BOOL,
	  .help = "take and send frames with checksum and segmentation to be done (no)",
	  .offset = offsetof(struct packet_opts, offload) },
	{ "promisc", PORT_OPT_BOOL, .help = "receive frames for other stations too (yes)",
	  .offset = offsetof(struct packet_opts, promisc) },
	{ 0 },
};

static const struct packet_opts packet_defaults = { .bypass = true, .promisc = true };

const struct port_kind port_kind_packet = {
	.name = "packet",
	.help = "a kernel interface through packet sockets; the kernel's stack keeps it as well",
	.target = "IFACE",
	.on_interface = true,
	.opts = packet_options,
	.opts_bytes = sizeof(struct packet_opts),
	.opts_default = &packet_defaults,
	.open = packet_open,
};
