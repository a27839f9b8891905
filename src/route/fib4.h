/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IPv4 forwarding table: longest-prefix match from a 32-bit address to a next hop. Addresses
 * are in host order throughout.
 *
 * One writer, any readers. A lookup never waits, and gives for each address the answer before or
 * the answer after each change that runs at the same time, nothing else: while a /24 below a /16
 * is deleted, its addresses have the /24's or the /16's next hop. With readers in other threads the
 * table needs a fib_reclaim.
 */
#ifndef HOLDOFF_ROUTE_FIB4_H
#define HOLDOFF_ROUTE_FIB4_H

#include "route/fib.h"

struct fib4;

/* cfg may be NULL. -ENOMEM. */
int fib4_create(struct fib4 **out, const struct fib_config *cfg, struct ho_err *err);
/* No reader may be left. NULL is allowed. */
void fib4_destroy(struct fib4 *fib);

/*
 * Adds addr/len or replaces its next hop. Bits of addr beyond len are ignored. -EINVAL: len above
 * 32, or nh not 1 to FIB_NH_MAX; -ENOMEM, -ENOSPC: the table is as before.
 */
int fib4_set(struct fib4 *fib, uint32_t addr, unsigned len, uint32_t nh, struct ho_err *err);
/* -ENOENT: there is no such prefix; -EINVAL; -ENOMEM: the table is as before. */
int fib4_del(struct fib4 *fib, uint32_t addr, unsigned len);
/* The next hop of exactly addr/len, 0 if there is none. For the writer. */
uint32_t fib4_get(const struct fib4 *fib, uint32_t addr, unsigned len);

/* The next hop of the longest prefix that holds addr, 0 if there is none. */
uint32_t fib4_lookup(const struct fib4 *fib, uint32_t addr);
/* The same for n addresses; much faster each, from 8 on. */
void fib4_lookup_bulk(const struct fib4 *fib, const uint32_t *addrs, uint32_t *nh, unsigned n);

/*
 * Calls fn for each route, in order of address, the shorter prefix first; stops when fn returns
 * other than 0 and returns that, else 0. For the writer; fn must not change the table.
 */
int fib4_walk(const struct fib4 *fib,
	      int (*fn)(void *ctx, uint32_t addr, unsigned len, uint32_t nh), void *ctx);

size_t fib4_count(const struct fib4 *fib);
/* Bytes of memory that the table occupies, what is waiting for a grace period included. */
size_t fib4_memory_bytes(const struct fib4 *fib);

#endif
