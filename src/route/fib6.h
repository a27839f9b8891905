/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IPv6 forwarding table: longest-prefix match from a 128-bit address, in network order, to a
 * next hop. Readers and the writer as in fib4.h.
 */
#ifndef HOLDOFF_ROUTE_FIB6_H
#define HOLDOFF_ROUTE_FIB6_H

#include "route/fib.h"

struct fib6;

/* An address as it stands in a packet; any alignment. */
struct fib6_addr {
	uint8_t byte[16];
};

/* cfg may be NULL. -ENOMEM. */
int fib6_create(struct fib6 **out, const struct fib_config *cfg, struct ho_err *err);
/* No reader may be left. NULL is allowed. */
void fib6_destroy(struct fib6 *fib);

/*
 * Adds addr/len or replaces its next hop. Bits of addr beyond len are ignored. -EINVAL: len above
 * 128, or nh not 1 to FIB_NH_MAX; -ENOMEM, -ENOSPC: the table is as before.
 */
int fib6_set(struct fib6 *fib, const uint8_t addr[16], unsigned len, uint32_t nh,
	     struct ho_err *err);
/* -ENOENT: there is no such prefix; -EINVAL; -ENOMEM: the table is as before. */
int fib6_del(struct fib6 *fib, const uint8_t addr[16], unsigned len);
/* The next hop of exactly addr/len, 0 if there is none. For the writer. */
uint32_t fib6_get(const struct fib6 *fib, const uint8_t addr[16], unsigned len);

/* The next hop of the longest prefix that holds addr, 0 if there is none. */
uint32_t fib6_lookup(const struct fib6 *fib, const uint8_t addr[16]);
/* The same for n addresses; much faster each, from 8 on. */
void fib6_lookup_bulk(const struct fib6 *fib, const struct fib6_addr *addrs, uint32_t *nh,
		      unsigned n);

/* As fib4_walk. */
int fib6_walk(const struct fib6 *fib,
	      int (*fn)(void *ctx, const uint8_t addr[16], unsigned len, uint32_t nh), void *ctx);

size_t fib6_count(const struct fib6 *fib);
/* Bytes of memory that the table occupies, what is waiting for a grace period included. */
size_t fib6_memory_bytes(const struct fib6 *fib);

#endif
