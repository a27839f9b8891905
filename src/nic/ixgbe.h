/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver for Intel's 82599 and X540 10 Gbit/s controllers, in user space over nic/bus.h. It is a
 * port (port/port.h) with as many receive as transmit queues; receive and transmit queue i share
 * MSI-X vector i, one more vector carries link changes.
 *
 * Counters, parameters and limits have ethtool's names and the Linux driver's meaning, so that
 * what is known about that driver's tuning holds here.
 *
 * Threads: as port.h says, and a transmit queue's clean may run beside its tx. The driver has one
 * task of its own, the watchdog, which looks at the link and for lost interrupts and hangs.
 */
#ifndef HOLDOFF_NIC_IXGBE_H
#define HOLDOFF_NIC_IXGBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "nic/bus.h"
#include "port/port.h"

/* rx-usecs with this value means: start at 20,000 interrupts a second, somebody moderates. */
#define NIC_IXGBE_USECS_ADAPTIVE 1
#define NIC_IXGBE_USECS_MAX      1022

/* A transmit queue stops when fewer descriptors than this are unused beside the one that never is
 * used: at most ring - 21 frames of one descriptor are in flight. */
#define NIC_IXGBE_TX_RESERVE 21

struct nic_ixgbe_config {
	const char *name;       /* of the port, "nic:0000:01:00.0"; NULL = "nic:" and the bus's */
	uint32_t rx_usecs;      /* microseconds between interrupts of a pair; 0 = no moderation,
				   1 = adaptive */
	uint32_t mtu;           /* bytes behind the Ethernet header; 0 = 1500; up to 15850 */
	bool promiscuous;       /* also frames for others */
	bool no_vlan_strip;     /* leave received tags in the frame */
	const uint8_t *rss_key; /* 40 bytes; NULL = the well-known key of the RSS specification */
	bool no_watchdog;       /* no task of its own: no link, hang and lost interrupt checks */
	int watchdog_cpu;       /* where that task runs; -1 = anywhere */
	uint64_t watchdog_ns;   /* how often it looks; 0 = 2 s, as Linux */
};

/*
 * Resets the chip and builds a stopped port with cfg->queues pairs (0 = 1; at most 16) of rings of
 * cfg->rx_ring and cfg->tx_ring descriptors (0 = 512; 64..4096 in steps of 8). The bus stays the
 * caller's and must outlive the port. -ENOTSUP for another chip, -EINVAL for an impossible
 * parameter, -EIO when the chip does not come out of reset; nothing is left behind then.
 */
int nic_ixgbe_open(struct nic_bus *bus, const struct port_config *cfg,
		   const struct nic_ixgbe_config *nc, struct port **out, struct ho_err *err);

#endif
