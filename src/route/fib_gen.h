/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables and addresses for tests and benches, from a seed: the same seed gives the same ones.
 *
 * FIB_GEN_INTERNET has the shape of the global routing tables: how many prefixes there are of each
 * length (IPv4: six of ten are /24; IPv6: nearly half are /48, the mean length is 43, as in the
 * public reports at bgp.potaroo.net), that they lie close together in the blocks that the
 * registries give out, and that more than half are inside of another one. Next hops are drawn
 * independently for each route, which is harder than the real ones, where neighbours agree.
 */
#ifndef HOLDOFF_ROUTE_FIB_GEN_H
#define HOLDOFF_ROUTE_FIB_GEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "route/fib6.h"

enum fib_gen_shape {
	FIB_GEN_UNIFORM,  /* IPv4 /8 to /28, IPv6 2000::/3 with /16 to /64, anywhere */
	FIB_GEN_INTERNET, /* see above */
};

enum fib_gen_addresses {
	FIB_GEN_ANYWHERE, /* uniform; IPv6 in 2000::/3 */
	FIB_GEN_INSIDE,   /* a route at random, in it an address at random */
	FIB_GEN_ZIPF,     /* the same, but the route of rank k is chosen in proportion to 1/k */
	FIB_GEN_HOT,      /* 1024 addresses inside of routes, over and over */
};

#define FIB_GEN_HOT_ADDRESSES 1024u

/* A route of either family; IPv4 in the first four bytes, the rest zero. Bits beyond len are 0. */
struct fib_gen_route {
	struct fib6_addr addr;
	uint32_t nh;
	uint8_t len;
};

/*
 * n different prefixes of family 4 or 6 in random order, with next hops 1 to `hops`. The array is
 * the caller's to free. -ENOMEM; -EINVAL: no such family, or more routes than 4 million (the
 * shape has no room for them).
 */
int fib_gen_routes(struct fib_gen_route **out, size_t n, unsigned family, enum fib_gen_shape shape,
		   uint32_t hops, uint64_t seed, struct ho_err *err);

/* n addresses of the same family in network order (IPv4: the first four bytes). */
void fib_gen_addresses(struct fib6_addr *out, size_t n, unsigned family,
		       enum fib_gen_addresses kind, const struct fib_gen_route *routes,
		       size_t n_routes, uint64_t seed);

#endif
