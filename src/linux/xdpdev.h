/* SPDX-License-Identifier: BSD-2-Clause */
/* What a network driver can do with XDP, and the counters that only ethtool -S shows. */
#ifndef HOLDOFF_LINUX_XDPDEV_H
#define HOLDOFF_LINUX_XDPDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Documentation/netlink/specs/netdev.yaml, "xdp-act". */
enum lx_xdp_act {
	LX_XDP_BASIC = 1 << 0,     /* native XDP: aborted, drop, pass, tx */
	LX_XDP_REDIRECT = 1 << 1,  /* native XDP can redirect */
	LX_XDP_NDO_XMIT = 1 << 2,  /* takes frames that are redirected to it, now */
	LX_XDP_ZEROCOPY = 1 << 3,  /* AF_XDP without copying */
	LX_XDP_OFFLOAD = 1 << 4,   /* runs programs itself */
	LX_XDP_RX_SG = 1 << 5,     /* frames of several buffers in native XDP */
	LX_XDP_XMIT_SG = 1 << 6,   /* and redirected to it */
	LX_XDP_UNKNOWN = 1u << 31, /* the kernel (before 6.3) does not tell */
};

/*
 * The interface's enum lx_xdp_act bits now; they change with its peer and its settings.
 * LX_XDP_UNKNOWN alone when the kernel cannot say.
 */
uint32_t lx_xdp_features(unsigned ifindex);

/*
 * Sums up the interface's ethtool -S counters whose names end with `suffix`, "_xdp_drops" say.
 * False if there are none. A system call or three: not for every packet.
 */
bool lx_driver_stat_sum(const char *name, const char *suffix, uint64_t *out);

/* Does it take VLAN tags off received frames (ethtool -K rxvlan)? XDP does not see them then. */
bool lx_strips_vlan_tags(const char *name);

/* The driver's name, "ixgbe"; "" if it has none. Returns buf. */
const char *lx_driver_name(const char *name, char *buf, unsigned bytes);

#endif
