/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bulk lookups of IPv4 read first: for each /24 one byte, the number of its next hop
 * (fib_numbers.h). `top` says for each /16 where the 256 bytes of its /24s are, so a lookup is
 * three loads: of 256 KB, of one byte for each /24 of those /16s that are not the same all over,
 * and of 1 KB. A /16 that is the same all over shares 256 bytes with all that have this answer.
 *
 * What has no number of the whole table has one of its /16: numbers FIB4_FRONT_LOCAL on stand for
 * the entries behind the 256 bytes, which are next hops or nodes, as in the other table
 * (fib4_impl.h). FIB_NUMBER_NONE sends the reader there.
 *
 * Of a block bytes change one by one, and entries only if no byte of another /24 has their number;
 * else a new block takes its place.
 */
#ifndef HOLDOFF_ROUTE_FIB4_FRONT_H
#define HOLDOFF_ROUTE_FIB4_FRONT_H

#include "base/compiler.h"
#include "route/fib_node.h"
#include "route/fib_numbers.h"

#define FIB4_FRONTS       (1u << 16)
#define FIB4_FRONT_SLOTS  256u
#define FIB4_FRONT_SHARED (FIB_NUMBERS * FIB4_FRONT_SLOTS) /* bytes, the first of `blocks` */
#define FIB4_FRONT_LOCAL  FIB_NUMBERS_END
#define FIB4_FRONT_LOCALS (FIB_NUMBER_NONE - FIB4_FRONT_LOCAL)

struct fib4_front {
	uint32_t *top; /* FIB4_FRONTS; bytes from the beginning of `blocks` */
	struct fib_pool blocks;
	struct fib_numbers numbers;
};

struct fib4;

/* -ENOMEM. fib4_front_exit can be called in any case. */
int fib4_front_init(struct fib4_front *front, const struct fib_reclaim *reclaim);
void fib4_front_exit(struct fib4_front *front);

/* Before an update of a table with `count` routes: it cannot fail then. -ENOMEM, -ENOSPC. */
int fib4_front_reserve(struct fib4_front *front, size_t count);
/* The other table's answers have changed in n /19s from the one with index `first` on; n is a power
 * of two, first a multiple of it. */
void fib4_front_paint(struct fib4 *fib, uint32_t first, uint32_t n);
/* The node of a /24 has become another one. */
void fib4_front_node(struct fib4 *fib, uint32_t addr, uint32_t entry);

size_t fib4_front_bytes(const struct fib4_front *front);

/* Where the byte of an address is, from the beginning of `blocks`. */
static inline uint32_t fib4_front_at(const uint32_t *top, uint32_t addr)
{
	return __atomic_load_n(&top[addr >> 16], __ATOMIC_ACQUIRE) + (addr >> 8 & 0xff);
}

/* Asks for the line of an address early: an update needs it when the rest is done. */
static inline void fib4_front_prefetch(const struct fib4_front *front, uint32_t addr)
{
	ho_prefetch((const uint8_t *)front->blocks.base + fib4_front_at(front->top, addr));
}

/* The entry that a number from FIB4_FRONT_LOCAL on but FIB_NUMBER_NONE stands for. */
static inline uint32_t *fib4_front_local(const struct fib4_front *front, uint32_t at, uint32_t addr,
					 unsigned number)
{
	return front->blocks.base +
	       (at - (addr >> 8 & 0xff) + FIB4_FRONT_SLOTS) / sizeof(uint32_t) + number -
	       FIB4_FRONT_LOCAL;
}

#endif
