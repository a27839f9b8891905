/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of ports as a run left them, under names as `ethtool -S` has them and the same for
 * all kinds of ports:
 *
 *   tx_queue_0_packets, _bytes                 frames sent
 *   tx_queue_0_ring_full_events, _kicks        the port took less than it was offered; system calls
 *   rx_queue_0_packets, _bytes, _wakeups       received; interrupts or wake-ups taken
 *   rx_queue_0_ring_full                       a drop that happened, by its name in PORT_DROPS
 *   rx_link                                    a drop of the port, that no queue counted
 *   rx_to_kernel_kept                          what else this kind counts (port_ops.stats)
 */
#ifndef HOLDOFF_MEASURE_COUNTERS_H
#define HOLDOFF_MEASURE_COUNTERS_H

#include <stdio.h>

#include "base/json.h"
#include "port/port.h"

#define MS_COUNTERS_PORTS 128

struct ms_counters {
	const struct port *port[MS_COUNTERS_PORTS]; /* whose entry of the list is number i */
	unsigned n;
	json_t *list; /* [{"name": ..., "counters": {...}}]; NULL while there are none */
};

/* Adds a queue of a port. Without memory, or beyond MS_COUNTERS_PORTS ports, it is left out. */
void ms_counters_rx(struct ms_counters *counters, const struct port_rxq *q);
void ms_counters_tx(struct ms_counters *counters, const struct port_txq *q);
/* Adds losses that only the kernel or the chip counted, and the kind's own counters. */
void ms_counters_port(struct ms_counters *counters, struct port *port, const uint64_t *drops);

/* All of them, a line each. */
void ms_counters_print(const struct ms_counters *counters, FILE *out);

void ms_counters_fini(struct ms_counters *counters);

#endif
