/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbours by the router's own ARP (RFC 826, 5227) and Neighbour Discovery (RFC 4861), where the
 * kernel does not do it: which are known, in what state, when they are asked again.
 *
 *              asked for              answer              30 s (ND), 60 s (ARP), +- half
 *   (nothing) ---------> INCOMPLETE ----------> REACHABLE ------------+
 *                          | 3 requests,            ^                 v  5 s after other news
 *                          v 1 s apart              +--- answer --- PROBE <--------- STALE
 *                        failed                                       | 3 unicast requests
 *                                                                     v
 *                                                                  forgotten
 *
 * Every neighbour is asked again when its time is over, whether packets go to it or not: to see use
 * would be a write for each packet. Packets go to it until the probes have failed. Entries of the
 * configuration file never change.
 *
 * All functions are the control plane's, on its thread.
 */
#ifndef HOLDOFF_ROUTE_DISCOVERY_H
#define HOLDOFF_ROUTE_DISCOVERY_H

#include "route/router.h"
#include "route/tables.h"

struct ro_discovery;

struct ro_discovery_stats {
	uint64_t resolved, failed, changed, probes, conflicts;
};

/* Becomes the resolver of the tables, and hears what the workers say. */
int ro_discovery_create(struct ro_tables *tables, struct ro_router *router,
			struct ro_discovery **out, struct ho_err *err);
void ro_discovery_destroy(struct ro_discovery *d);

/* A neighbour of the configuration: also set in the tables. */
int ro_discovery_static(struct ro_discovery *d, uint32_t ifindex, const struct ro_addr *addr,
			const uint8_t mac[6], struct ho_err *err);

/* Timers; behind ro_tables_poll, as often. */
void ro_discovery_poll(struct ro_discovery *d, uint64_t now_ns);

void ro_discovery_stats(const struct ro_discovery *d, struct ro_discovery_stats *out);

#endif
