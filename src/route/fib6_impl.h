/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the IPv6 table is laid out: an entry for each /16, and from there nodes of eight bits
 * (fib_node.h), so that the usual lengths /32, /40 and /48 end where a node ends. A lookup is as
 * many steps deep as the routes around the address are long.
 */
#ifndef HOLDOFF_ROUTE_FIB6_IMPL_H
#define HOLDOFF_ROUTE_FIB6_IMPL_H

#include "route/fib6.h"
#include "route/fib_node.h"

#define FIB6_ROOT_BITS 16
#define FIB6_ROOTS     (1u << FIB6_ROOT_BITS)

typedef void fib6_bulk_fn(const struct fib6 *fib, const struct fib6_addr *addrs, uint32_t *nh,
			  unsigned n);

struct fib6 {
	uint32_t *root; /* FIB6_ROOTS entries */
	struct fib_nodes nodes;
	fib6_bulk_fn *bulk;
	uint32_t *upper; /* heap of the prefixes of 0 to 16 bits: next hops */
	size_t count;
};

/* Of the widest instructions that the CPU and HOLDOFF_SIMD allow. */
fib6_bulk_fn *fib6_choose_bulk(void);

#endif
