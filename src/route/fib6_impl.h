/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the IPv6 table is laid out: an entry for each /16, and from there nodes of eight bits
 * (fib_node.h), so that the usual lengths /32, /40 and /48 end where a node ends. A lookup is as
 * many steps deep as the routes around the address are long.
 *
 * Of 2000::/3, where all global unicast addresses are (RFC 4291 and IANA's registry), `global` has
 * an entry for each /24, which saves the first step. It has what the nodes of the /16s have, and is
 * brought up to date by the same update. Lookups look at the entry of the /16 first, and there only
 * if it is a node: the /16s of 2000::/3 are 32 KB, and few have routes.
 */
#ifndef HOLDOFF_ROUTE_FIB6_IMPL_H
#define HOLDOFF_ROUTE_FIB6_IMPL_H

#include "base/compiler.h"
#include "route/fib6.h"
#include "route/fib_node.h"

#define FIB6_ROOT_BITS 16
#define FIB6_ROOTS     (1u << FIB6_ROOT_BITS)

#define FIB6_GLOBALS (1u << 21)

typedef void fib6_bulk_fn(const struct fib6 *fib, const struct fib6_addr *addrs, uint32_t *nh,
			  unsigned n);

struct fib6 {
	uint32_t *global; /* FIB6_GLOBALS entries */
	uint32_t *root;   /* FIB6_ROOTS entries */
	struct fib_nodes nodes;
	fib6_bulk_fn *bulk;
	uint32_t *upper; /* heap of the prefixes of 0 to 16 bits: next hops */
	size_t count;
};

static inline bool fib6_is_global(uint32_t first)
{
	return first >> 29 == 1;
}

/* The entry of a /24; first: the first four bytes of the address. */
static inline uint32_t fib6_entry(const struct fib6 *fib, uint32_t first)
{
	uint32_t entry = __atomic_load_n(&fib->root[first >> 16], __ATOMIC_ACQUIRE);

	if (!(entry & FIB_CHILD))
		return entry;
	if (ho_likely(fib6_is_global(first)))
		return __atomic_load_n(&fib->global[first >> 8 & (FIB6_GLOBALS - 1)],
				       __ATOMIC_ACQUIRE);
	return fib_node_entry(fib->nodes.blocks.base, entry & ~FIB_CHILD, first >> 8 & 0xff);
}

/* Of the widest instructions that the CPU and HOLDOFF_SIMD allow. */
fib6_bulk_fn *fib6_choose_bulk(void);

#endif
