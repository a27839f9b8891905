/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the IPv4 table is laid out.
 *
 * The table proper, which the writer goes by and lookups of one address use, is `root` and what it
 * points to. Bulk lookups read the bytes of fib4_front.h first, which say the same.
 *
 * `root` has one word of 64 bits for each /19. The lower half has a bit for each of its 32 /24s
 * (bit s: /24 s has another answer than /24 s - 1; bit 0 is 0), the upper half says where in the
 * pool its answers begin, one for each run of equal /24s. So the answer for a /24 is two loads
 * away: 4 MB that stay in the third-level cache at the worst, and 4 bytes a run. A word is replaced
 * by one store, together with what it points to. An answer with FIB_CHILD is a node (fib_node.h)
 * for the last eight bits.
 *
 * The pool begins with answers n = n: a /19 of one answer points there, and so needs neither a
 * block nor a branch. Of those, memory is only where next hops in use are.
 */
#ifndef HOLDOFF_ROUTE_FIB4_IMPL_H
#define HOLDOFF_ROUTE_FIB4_IMPL_H

#include "route/fib4.h"
#include "route/fib4_front.h"
#include "route/fib_node.h"

#define FIB4_ROOT_BITS 19
#define FIB4_ROOTS     (1u << FIB4_ROOT_BITS)
#define FIB4_SLOTS     32u
#define FIB4_SAME      (FIB_NH_MAX + 1) /* answers at the pool's beginning */

/* Routes of 20 to 24 bits in one /19: a heap of 62 prefixes (2 and 3, 4 to 7, ... 32 to 63), a bit
 * each, and the next hops of those that exist. */
struct fib4_owner {
	uint64_t present;
	uint32_t nhs;      /* array in the routes' pool */
	uint32_t cover;    /* next hop of the longest prefix up to /19 */
	uint32_t children; /* /24s with a node */
	uint32_t reserved;
};

typedef void fib4_bulk_fn(const struct fib4 *fib, const uint32_t *addrs, uint32_t *nh, unsigned n);

struct fib4 {
	struct fib4_front front;
	uint64_t *root; /* FIB4_ROOTS */
	struct fib_nodes nodes;
	fib4_bulk_fn *bulk;       /* all that a bulk lookup does */
	fib4_bulk_fn *root_bulk;  /* without `front` */
	struct fib4_owner *owner; /* FIB4_ROOTS */
	uint32_t *upper;          /* heap of the prefixes of 0 to 19 bits: next hops */
	uint32_t same;            /* the highest of the answers n = n that was ever written */
	size_t count;
};

/* Index in the pool of the answer for a /24. */
static inline uint32_t fib4_answer_at(uint64_t word, unsigned slot)
{
	return (uint32_t)(word >> 32) + fib_popcount((uint32_t)word << (31 - slot));
}

/* Of the widest instructions that the CPU and HOLDOFF_SIMD allow. */
void fib4_choose_bulk(struct fib4 *fib);

#endif
