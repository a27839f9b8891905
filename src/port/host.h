/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a router that shares its interfaces with the host's kernel leaves to it.
 *
 *                    +-- for the host itself ----------------------> kernel's stack
 *   wire --> XDP ----+                                                    ^
 *                    +-- to be routed --> port_rx --> router              |
 *                                                       +-- port_punt ----+
 *
 * The XDP program of a port opened with "keep=host" passes what it knows to be the host's: its
 * addresses, groups, broadcasts, link-local destinations, other protocols, VLANs that are not
 * routed. It is told what these are while it runs. What only the router's tables can tell (a route
 * that leaves by an interface which is no port) comes to the router and is handed back: the kernel
 * then sees it as if it had just arrived on the interface.
 */
#ifndef HOLDOFF_PORT_HOST_H
#define HOLDOFF_PORT_HOST_H

#include "port/port.h"

/*
 * For a router's port. *shared: the kernel gets nothing but what is left or handed back to it
 * (xdp: with keep=host). When false, it sees all frames anyway (packet:). -EOPNOTSUPP with a
 * sentence for a port that is no interface of the kernel's.
 */
int port_host_attach(struct port *port, bool *shared, struct ho_err *err);

/* Number of the kernel's interface that the port is; 0 = none. */
unsigned port_host_ifindex(const struct port *port);

/*
 * The host's own addresses are these n from now on: 16 bytes each, IPv4 with 12 zero bytes in
 * front. The n_refused behind them are none, but no source of a packet either: broadcasts of its
 * links. Returns 0, or -ENOSPC when there are more than the program can know (those left out come
 * to the router, which must hand them back). Nothing for a port that is not shared. By one thread,
 * with packets flowing.
 */
int port_host_addrs(struct port *port, const uint8_t (*addr)[16], unsigned n, unsigned n_refused);

/* The interface's own Ethernet address is this from now on. */
void port_host_mac(struct port *port, const uint8_t mac[6]);

/* Frames of this VLAN (0: without a tag) are routed from now on, or are the host's. */
void port_host_vlan(struct port *port, uint16_t vlan, bool routed);

/* --- handing back ---------------------------------------------------------------------------- */

/* One worker's way back to the kernel. */
struct port_punt;

/* Needs CAP_BPF and CAP_NET_ADMIN, but only now. */
int port_punt_create(struct pk_arena *arena, struct port_punt **out, struct ho_err *err);
/* NULL is allowed. */
void port_punt_destroy(struct port_punt *punt);

/*
 * Gives copies of the frames in these n slots to the kernel, as received on the port. Returns how
 * many frames it took; others are too long, or the interface is gone. A system call for each
 * PORT_PUNT_BURST frames: not for many packets. The slots stay the caller's; a checksum that was
 * partial is complete afterwards.
 */
#define PORT_PUNT_BURST 64
unsigned port_punt_frames(struct port_punt *punt, const struct port *port, struct pk_slot *slots,
			  unsigned n);

#endif
