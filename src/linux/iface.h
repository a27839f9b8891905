/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel knows of a network interface of our network namespace: read over rtnetlink and
 * ethtool's ioctl, so that it is right inside a namespace too, where /sys shows another one.
 */
#ifndef HOLDOFF_LINUX_IFACE_H
#define HOLDOFF_LINUX_IFACE_H

#include <linux/if_link.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define LX_NAME_BYTES 16 /* IFNAMSIZ */

struct lx_iface {
	unsigned index;
	char name[LX_NAME_BYTES];
	char kind[LX_NAME_BYTES]; /* "veth", "tun", ...; "" for hardware */
	uint8_t mac[6];           /* zero if it has none */
	uint32_t mtu;             /* bytes */
	bool up;                  /* set up by the administrator */
	bool running;             /* and there is a carrier */
	uint64_t link_bps;        /* speed; 0 = unknown */
	unsigned rx_queues;       /* in use now, as ethtool -l says; at least 1 */
	unsigned tx_queues;
	bool default_route; /* it, or an interface on top of it, carries a default route */
};

/* Fills *out. -ENODEV with a sentence when there is no such interface; -EINVAL for a name that
 * cannot be one. */
int lx_iface_get(const char *name, struct lx_iface *out, struct ho_err *err);

/*
 * One question only, for those who ask often: link_bps is 0, the queues are those allocated, and
 * default_route is false. stats may be NULL. -ENODEV, without a sentence.
 */
int lx_iface_look(const char *name, struct lx_iface *out, struct rtnl_link_stats64 *stats,
		  struct ho_err *err);

/* Puts in what ethtool says: link_bps, and the queues in use. */
void lx_iface_ask_ethtool(struct lx_iface *iface);

/*
 * The same as lx_iface_get for somebody who is about to take the interface over or flood it: -EBUSY
 * when it carries the default route, unless force. Warns when forced.
 */
int lx_iface_claim(const char *name, bool force, struct lx_iface *out, struct ho_err *err);

/* The kernel's statistics. Negative errno. */
int lx_iface_stats(unsigned index, struct rtnl_link_stats64 *out, struct ho_err *err);

#endif
