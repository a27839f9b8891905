/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping until packets come: what a polling task does when its queues have been empty for a
 * while.
 */
#ifndef HOLDOFF_TRAFFIC_RXWAIT_H
#define HOLDOFF_TRAFFIC_RXWAIT_H

#include "port/port.h"
#include "traffic/stop.h"

/* How long to poll empty queues before sleeping: about what a wake-up costs on a virtual machine,
 * so that sleeping for less does not pay. */
#define TR_RX_SPIN_NS 50000u
/* Queues in one wait. */
#define TR_RX_WAIT_MAX 8u

/*
 * Arms the queues' interrupts and sleeps until one of them has packets, the task is asked to stop,
 * or deadline_ns. With a queue that has no event it sleeps some time only. Returns true when it
 * slept, false when there was something to do at once.
 */
bool tr_rx_wait(struct tr_stop *stop, struct port_rxq *const *queues, unsigned n,
		uint64_t deadline_ns);

/* Will nothing more come from any of them? */
bool tr_rx_ended(struct port_rxq *const *queues, unsigned n);

#endif
