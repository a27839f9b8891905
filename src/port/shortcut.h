/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shortcut of a router whose control plane is the kernel: packets that need nothing but a
 * look-up are forwarded by the XDP program of the port they arrive on, by the kernel's own table,
 * and never come to the router. What the program does not take comes as ever.
 *
 *   wire --> XDP ---- plain, route and neighbour known ----> another port's wire
 *                \--- everything else --> port_rx --> router
 *
 * Of ports of kind xdp that are shared with the host (port/host.h). By one thread, the control
 * plane's, unless it says otherwise.
 */
#ifndef HOLDOFF_PORT_SHORTCUT_H
#define HOLDOFF_PORT_SHORTCUT_H

#include "port/port.h"

/* 0, or -EOPNOTSUPP with the reason why this port can be no part of a shortcut. */
int port_shortcut_possible(const struct port *port, struct ho_err *err);

/*
 * May packets leave by this port now? No: its interface takes no redirected frames. Unknown: the
 * kernel (before 6.3) cannot tell, or the driver does not count those that it drops, so that they
 * would be missing without a name. Some system calls.
 */
enum port_shortcut_takes { PORT_SHORTCUT_NO, PORT_SHORTCUT_UNKNOWN, PORT_SHORTCUT_YES };
enum port_shortcut_takes port_shortcut_takes(const struct port *port);

/*
 * These are the ports of one router, by number: before they are started. Those that cannot be part
 * of it are passed over. All must be there until the last one is stopped. -E2BIG, -ENOMEM.
 */
int port_shortcut_join(struct port *const *port, unsigned n, struct ho_err *err);

/*
 * Packets of the kernel's interface `ifindex`, which is VLAN `vlan` (0: no tag) of port number
 * `to` of these ports, may leave by it from now on, or not. False when there is no room for it:
 * its packets take the way of the router.
 */
bool port_shortcut_exit(struct port *const *port, unsigned n, unsigned to, unsigned ifindex,
			uint16_t vlan, bool open);

/* Longer packets are the router's from now on: the kernel does not say which routes have an MTU. */
void port_shortcut_longest(struct port *port, uint32_t bytes);

/* Packets of these families that arrive on the port take the shortcut from now on. */
void port_shortcut_set(struct port *port, bool ip4, bool ip6);

/* Returns when no packet that a program saw before is still on its way: a millisecond or more. */
void port_shortcut_settle(void);

/* Forwarded by the programs: what arrived on the port, and what left by it. Any thread. */
struct port_shortcut_counts {
	uint64_t in_packets, in_bytes, out_packets, out_bytes;
};
void port_shortcut_read(const struct port *port, struct port_shortcut_counts *out);

#endif
