// SPDX-License-Identifier: BSD-2-Clause
/*
 * tap:NAME: an interface of the kernel whose other end we are
 * (Documentation/networking/tuntap.rst).
 *
 *      kernel's stack              us
 *   NAME  transmit  ----------->  rxq     read: one frame each
 *   NAME  receive   <-----------  txq     write: one frame each
 *
 * The interface is made if it is not there and goes when the port closes (persist=yes: stays). One
 * that was there keeps its settings: what is changed is put back. The file descriptor of a queue
 * carries both directions.
 *
 * With offload (default) a virtio header stands before each frame and unfinished checksums and TCP
 * segments of up to 64 KB cross in one piece, both ways; without, the kernel finishes what it gives
 * us, and we finish what we give it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "linux/caps.h"
#include "port/kinds.h"
#include "port/tap_port.h"

#define TAP_QUEUES_MAX 64
#define TAP_MTU_MAX    65521 /* the kernel's limit for a tap */

static struct tap_rxq *rxq_of(struct port *port, unsigned i)
{
	return (struct tap_rxq *)port->rxq[i];
}

static struct tap_txq *txq_of(struct port *port, unsigned i)
{
	return (struct tap_txq *)port->txq[i];
}

static struct rt_event *tap_rx_event(struct port_rxq *base)
{
	return ((struct tap_rxq *)base)->event;
}

/* The descriptor is readable while a frame waits: there is nothing to arm. */
static bool tap_arm(struct port_rxq *base)
{
	const struct tap_rxq *q = (const struct tap_rxq *)base;

	return q->ended || tap_rx_waits(q);
}

static void tap_disarm(struct port_rxq *base)
{
}

static bool tap_rx_ended(struct port_rxq *base)
{
	const struct tap_rxq *q = (const struct tap_rxq *)base;

	return q->ended && !tap_rx_waits(q);
}

static int tap_late_error(struct port *base, struct ho_err *err)
{
	if (!__atomic_load_n(&((struct tap_port *)base)->gone, __ATOMIC_RELAXED))
		return 0;
	/* Not -ENODEV, which says that a wrong name was given. */
	return ho_err_set(err, -ENETDOWN, "the interface was removed");
}

/* An ioctl on an interface name. 0 or a negative errno. */
static int iface_ioctl(const char *name, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	rc = ioctl(fd, request, ifr) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static int set_up(const char *name, bool up)
{
	struct ifreq ifr = { 0 };
	int rc = iface_ioctl(name, SIOCGIFFLAGS, &ifr);

	if (rc < 0)
		return rc;
	if (up)
		ifr.ifr_flags |= IFF_UP;
	else
		ifr.ifr_flags &= ~IFF_UP;
	return iface_ioctl(name, SIOCSIFFLAGS, &ifr);
}

static int set_mtu(const char *name, uint32_t mtu)
{
	struct ifreq ifr = { .ifr_mtu = (int)mtu };

	return iface_ioctl(name, SIOCSIFMTU, &ifr);
}

static int set_mac(const char *name, const uint8_t mac[6])
{
	struct ifreq ifr = { .ifr_hwaddr.sa_family = ARPHRD_ETHER };

	memcpy(ifr.ifr_hwaddr.sa_data, mac, 6);
	return iface_ioctl(name, SIOCSIFHWADDR, &ifr);
}

static bool tap_link_up(struct port *base)
{
	struct ifreq ifr = { 0 };

	return iface_ioctl(((struct tap_port *)base)->name, SIOCGIFFLAGS, &ifr) == 0 &&
	       (ifr.ifr_flags & IFF_UP);
}

static void tap_external_drops(struct port *base, uint64_t *drops)
{
	struct tap_port *port = (struct tap_port *)base;
	struct rtnl_link_stats64 now;

	/* What the kernel sent on the interface and found our queue full. */
	if (lx_iface_stats(port->index, &now, NULL) == 0 &&
	    now.tx_dropped > port->before.tx_dropped)
		drops[PORT_DROP_RX_SOCKET] += now.tx_dropped - port->before.tx_dropped;
}

static unsigned tap_params(struct port *base, struct port_param *out, unsigned max)
{
	const struct port_param params[] = {
		{ "combined", base->n_rxq, 0 },
		{ "mtu", base->mtu, TAP_MTU_MAX },
	};

	memcpy(out, params, HO_MIN(max, 2u) * sizeof(*out));
	return 2;
}

/* Buffers for the longest frame that can come, and the limits of sending. */
static void apply_mtu(struct tap_port *port, uint32_t mtu)
{
	const uint32_t room = port->base.arena->stride_bytes - PK_HEADROOM_BYTES;
	uint32_t longest = port->opts.offload ? PK_FRAME_MAX_BYTES
					      : mtu + TAP_FRAME_MIN_BYTES + 2 * PORT_VLAN_TAG_BYTES;

	port->base.mtu = mtu;
	port->base.max_frame = mtu + TAP_FRAME_MIN_BYTES;
	port->base.tag_room = PORT_VLAN_TAG_BYTES;
	for (unsigned i = 0; i < port->base.n_rxq; i++) {
		rxq_of(&port->base, i)->want_buf =
			HO_MIN((longest + room - 1) / room, (uint32_t)PK_FRAME_MAX_SLOTS);
		txq_of(&port->base, i)->mtu_frame = mtu + TAP_FRAME_MIN_BYTES;
	}
}

static int tap_set_param(struct port *base, const char *name, uint64_t value, struct ho_err *err)
{
	struct tap_port *port = (struct tap_port *)base;
	int rc;

	if (strcmp(name, "mtu"))
		return ho_err_set(err, -EOPNOTSUPP, "%s cannot be set on a tap", name);
	if (base->started)
		return ho_err_set(err, -EBUSY, "mtu can be set only before packets flow");
	rc = value <= TAP_MTU_MAX ? set_mtu(port->name, (uint32_t)value) : -ERANGE;
	if (rc < 0)
		return ho_err_set(err, rc, "an MTU of %llu: %s", (unsigned long long)value,
				  ho_strerror(rc));
	port->changed_mtu = true;
	apply_mtu(port, (uint32_t)value);
	return 0;
}

static int tap_start(struct port *base, struct ho_err *err)
{
	struct tap_port *port = (struct tap_port *)base;
	uint8_t junk[64];

	/* What the kernel sent before somebody listened did not reach a started port. */
	for (unsigned i = 0; i < base->n_rxq; i++) {
		while (base->rxq[i]->cache && read(rxq_of(base, i)->fd, junk, sizeof(junk)) > 0)
			;
	}
	return lx_iface_stats(port->index, &port->before, err);
}

static void tap_stop(struct port *base)
{
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct tap_rxq *q = rxq_of(base, i);
		uint8_t junk[64];
		unsigned most = 100000; /* the kernel may go on filling it */

		tap_rx_discard(q);
		/* A short read takes the whole frame. */
		while (q->base.cache && most-- && read(q->fd, junk, sizeof(junk)) > 0)
			port_drop(&q->base.ctr, PORT_DROP_RX_CLOSED, 1);
	}
}

static void restore_settings(struct tap_port *port)
{
	if (port->changed_up)
		set_up(port->name, port->before_up);
	if (port->changed_mtu)
		set_mtu(port->name, port->before_mtu);
	if (port->changed_mac)
		set_mac(port->name, port->before_mac);
}

static void tap_close(struct port *base)
{
	struct tap_port *port = (struct tap_port *)base;

	if (port->existed)
		restore_settings(port);
	for (unsigned i = 0; i < base->n_rxq; i++) {
		struct tap_rxq *q = rxq_of(base, i);

		if (q->n_buf)
			pk_free(q->base.cache, q->buf, q->n_buf);
		rt_event_destroy(base->rt, q->event);
		lx_uring_close(q->uring);
		lx_uring_close(txq_of(base, i)->uring);
		free(q->tail);
		/* The last descriptor takes the interface with it, unless it is persistent. */
		if (q->fd >= 0)
			close(q->fd);
	}
	port_free(base);
}

static const struct port_ops tap_ops = {
	.start = tap_start,
	.rx_event = tap_rx_event,
	.arm = tap_arm,
	.disarm = tap_disarm,
	.rx_ended = tap_rx_ended,
	.link_up = tap_link_up,
	.external_drops = tap_external_drops,
	.late_error = tap_late_error,
	.params = tap_params,
	.set_param = tap_set_param,
	.stop = tap_stop,
	.close = tap_close,
};

static int attach_error(const struct tap_port *port, int error, struct ho_err *err)
{
	if (error == EPERM &&
	    lx_caps_require(port->existed ? "using a tap interface" : "making a tap interface",
			    LX_CAP(CAP_NET_ADMIN), err) < 0)
		return -EPERM;
	if (error == EBUSY)
		return ho_err_set(err, -EBUSY,
				  "another program has the interface's queues; end it or take "
				  "another name");
	if (error == E2BIG)
		return ho_err_set(err, -E2BIG, "the kernel gives a tap fewer queues than %u",
				  port->base.n_rxq);
	if (error == EINVAL && port->existed)
		return ho_err_set(err, -EINVAL,
				  port->base.n_rxq > 1
					  ? "the interface exists but is not a tap with several "
					    "queues ('ip tuntap add %s mode tap multi_queue')"
					  : "the interface '%s' exists but is not a tap",
				  port->name);
	if (error == EINVAL && (strpbrk(port->name, "/: \t") || !strcmp(port->name, ".") ||
				!strcmp(port->name, "..")))
		return ho_err_set(err, -EINVAL, "'%s' cannot be an interface's name", port->name);
	return ho_err_set(err, -error, "cannot attach to the interface: %s", ho_strerror(error));
}

/* One queue: a descriptor, or a negative errno. */
static int attach(const struct tap_port *port, short flags)
{
	struct ifreq ifr = { .ifr_flags = flags };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	static_assert(sizeof(ifr.ifr_name) == sizeof(port->name), "both IFNAMSIZ");
	memcpy(ifr.ifr_name, port->name, sizeof(ifr.ifr_name));
	if (ioctl(fd, TUNSETIFF, &ifr) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static int attach_queues(struct tap_port *port, struct ho_err *err)
{
	const unsigned offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	short flags = IFF_TAP | IFF_NO_PI | (port->opts.offload ? IFF_VNET_HDR : 0);
	unsigned queues = port->base.n_rxq;

	if (queues > 1)
		flags |= IFF_MULTI_QUEUE;
	for (unsigned i = 0; i < queues; i++) {
		struct tap_rxq *q = rxq_of(&port->base, i);

		q->fd = attach(port, flags);
		/* A persistent tap made for several queues wants the flag for a single one too. */
		if (q->fd == -EINVAL && i == 0 && queues == 1 && port->existed) {
			flags |= IFF_MULTI_QUEUE;
			q->fd = attach(port, flags);
		}
		if (q->fd == -ENOENT || q->fd == -ENXIO)
			return ho_err_set(err, q->fd,
					  "there is no /dev/net/tun: the kernel module tun is "
					  "missing ('modprobe tun')");
		if (q->fd < 0)
			return attach_error(port, -q->fd, err);
		txq_of(&port->base, i)->fd = q->fd;
		if (ioctl(q->fd, TUNSETOFFLOAD, port->opts.offload ? offloads : 0) < 0)
			return ho_err_set(err, -errno, "cannot set offloads: %s; offload=no",
					  ho_strerror(errno));
	}
	if (port->opts.persist && ioctl(rxq_of(&port->base, 0)->fd, TUNSETPERSIST, 1) < 0)
		return ho_err_set(err, -errno, "cannot make it persistent: %s", ho_strerror(errno));
	return 0;
}

static int configure(struct tap_port *port, const uint8_t *mac, struct ho_err *err)
{
	int rc = 0;

	if (mac) {
		rc = set_mac(port->name, mac);
		port->changed_mac = rc == 0;
	}
	if (rc < 0)
		return ho_err_set(err, rc, "cannot set the address %s: %s", port->opts.mac,
				  ho_strerror(rc));
	if (port->opts.mtu) {
		rc = set_mtu(port->name, (uint32_t)port->opts.mtu);
		port->changed_mtu = rc == 0;
	}
	if (rc < 0)
		return ho_err_set(err, rc, "cannot set an MTU of %llu: %s",
				  (unsigned long long)port->opts.mtu, ho_strerror(rc));
	if (port->opts.up && !port->before_up) {
		rc = set_up(port->name, true);
		port->changed_up = rc == 0;
	}
	if (rc < 0)
		return ho_err_set(err, rc, "cannot set it up: %s", ho_strerror(rc));
	return 0;
}

static int parse_mac(const char *text, uint8_t mac[6], struct ho_err *err)
{
	int n = 0;

	if (sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
		   &mac[3], &mac[4], &mac[5], &n) != 6 ||
	    text[n])
		return ho_err_set(err, -EINVAL,
				  "mac=%s: six hexadecimal numbers like "
				  "02:00:00:00:00:01 are needed",
				  text);
	if (mac[0] & 1)
		return ho_err_set(err, -EINVAL, "mac=%s is a group address", text);
	return 0;
}

/* What the interface is now; and refuses one that others depend on or own. */
static int look_before(struct tap_port *port, const struct port_config *config, struct ho_err *err)
{
	struct ho_err none;
	struct lx_iface iface;
	int rc;

	/* The kernel would put a number in its place, and the interface be of another name. */
	if (strchr(port->name, '%'))
		return ho_err_set(
			err, -EINVAL,
			"an interface's name has no '%%' here; give it a whole name, such "
			"as tap:tap0");
	port->existed = lx_iface_get(port->name, &iface, &none) == 0;
	if (!port->existed)
		return none.code == -ENODEV ? 0 : ho_err_set(err, none.code, "%s", none.text);
	rc = lx_iface_claim(port->name, config->force, &iface, err);
	if (rc < 0)
		return rc;
	/* With the multi-queue flag the kernel would let us share the frames with another owner. */
	if (iface.running && strcmp(iface.kind, "tun") == 0 && iface.up)
		return attach_error(port, EBUSY, err);
	port->before_up = iface.up;
	port->before_mtu = iface.mtu;
	memcpy(port->before_mac, iface.mac, sizeof(port->before_mac));
	return 0;
}

/*
 * io_uring for the queues, if it is to be had: not where it is forbidden (containers, the sysctl
 * kernel.io_uring_disabled), nor on a kernel whose taps do not know reads that must not wait.
 */
static void open_urings(struct tap_port *port)
{
	struct tap_rxq *first = rxq_of(&port->base, 0);
	struct ho_err err = { 0 };
	struct iovec iov = { &(uint8_t[1]){ 0 }, 1 };
	int rc = 0;

	if (preadv2(first->fd, &iov, 1, -1, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP)
		rc = ho_err_set(&err, -EOPNOTSUPP, "an old kernel");
	for (unsigned i = 0; rc == 0 && i < port->base.n_rxq; i++) {
		rc = lx_uring_open(PK_BURST, &rxq_of(&port->base, i)->uring, &err);
		if (rc == 0)
			rc = lx_uring_open(PK_BURST, &txq_of(&port->base, i)->uring, &err);
	}
	if (rc < 0)
		ho_note("tap:%s: each frame takes a system call: no io_uring (%s)", port->name,
			err.text);
}

static int open_port(struct tap_port *port, const struct port_config *config, struct ho_err *err)
{
	uint8_t mac[6];
	struct lx_iface iface;
	int rc = port->opts.mac ? parse_mac(port->opts.mac, mac, err) : 0;

	if (rc == 0)
		rc = look_before(port, config, err);
	if (rc == 0)
		rc = attach_queues(port, err);
	if (rc == 0)
		rc = configure(port, port->opts.mac ? mac : NULL, err);
	if (rc == 0)
		rc = lx_iface_get(port->name, &iface, err);
	if (rc < 0)
		return rc;
	port->index = iface.index;
	/* Our end is another station than the kernel's: its address with the last bit flipped. */
	memcpy(port->base.mac, iface.mac, sizeof(port->base.mac));
	port->base.mac[5] ^= 1;
	port->opts.mac = NULL; /* the caller's memory */
	apply_mtu(port, iface.mtu);
	for (unsigned i = 0; rc == 0 && i < port->base.n_rxq; i++) {
		struct tap_rxq *q = rxq_of(&port->base, i);

		q->header = port->opts.offload ? PORT_VNET_BYTES : 0;
		/* Hardly ever touched but for the first. */
		q->tail = malloc((size_t)PK_BURST * TAP_TAIL_BYTES);
		if (!q->tail)
			return ho_err_set(err, -ENOMEM, "out of memory");
		rc = rt_event_from_fd(port->base.rt, q->fd, &q->event, err);
	}
	if (rc == 0 && port->opts.uring)
		open_urings(port);
	return rc;
}

static int tap_open(const char *target, const void *opts_void, const struct port_config *config,
		    struct port **out, struct ho_err *err)
{
	unsigned queues = config->queues ? config->queues : 1;
	struct tap_port *port;
	int rc;

	if (strlen(target) >= LX_NAME_BYTES)
		return ho_err_set(err, -ENAMETOOLONG, "an interface's name has at most %d letters",
				  LX_NAME_BYTES - 1);
	if (queues > TAP_QUEUES_MAX)
		return ho_err_set(err, -EINVAL, "%u queues: at most %u", queues, TAP_QUEUES_MAX);
	if (config->filter)
		return ho_err_set(err, -EOPNOTSUPP, "a tap takes no filter");
	port = (struct tap_port *)port_new(sizeof(*port), &port_kind_tap, target, config, queues,
					   sizeof(struct tap_rxq), queues, sizeof(struct tap_txq));
	if (!port)
		return ho_err_set(err, -ENOMEM, "out of memory");
	port->base.ops = &tap_ops;
	port->opts = *(const struct tap_opts *)opts_void;
	strcpy(port->name, target);
	for (unsigned i = 0; i < queues; i++) {
		rxq_of(&port->base, i)->fd = txq_of(&port->base, i)->fd = -1;
		rxq_of(&port->base, i)->opts = txq_of(&port->base, i)->opts = &port->opts;
		rxq_of(&port->base, i)->base.rx = tap_rx;
		txq_of(&port->base, i)->base.tx = tap_tx;
	}
	rc = open_port(port, config, err);
	if (rc < 0) {
		tap_close(&port->base);
		return rc;
	}
	*out = &port->base;
	return 0;
}

static const struct port_opt tap_options[] = {
	{ "mtu", PORT_OPT_COUNT, .help = "MTU of the interface (as it is; 1500 for a new one)",
	  .min = 68, .max = TAP_MTU_MAX, .offset = offsetof(struct tap_opts, mtu) },
	{ "mac", PORT_OPT_STRING, .help = "address of the kernel's end",
	  .offset = offsetof(struct tap_opts, mac) },
	{ "up", PORT_OPT_BOOL, .help = "set the interface up (yes)",
	  .offset = offsetof(struct tap_opts, up) },
	{ "offload", PORT_OPT_BOOL,
	  .help = "take and give frames with checksum and segmentation to be done (yes)",
	  .offset = offsetof(struct tap_opts, offload) },
	{ "persist", PORT_OPT_BOOL, .help = "leave the interface there at the end (no)",
	  .offset = offsetof(struct tap_opts, persist) },
	{ "uring", PORT_OPT_BOOL,
	  .help = "several frames a system call, by io_uring if the kernel lets us (yes)",
	  .offset = offsetof(struct tap_opts, uring) },
	{ 0 },
};

static const struct tap_opts tap_defaults = { .up = true, .offload = true, .uring = true };

const struct port_kind port_kind_tap = {
	.name = "tap",
	.help = "a virtual interface of the kernel whose other end is the port",
	.target = "NAME",
	.opts = tap_options,
	.opts_bytes = sizeof(struct tap_opts),
	.opts_default = &tap_defaults,
	.open = tap_open,
};
