/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the routes of one node to runs of equal slots. The routes are painted from the shortest to
 * the longest. Since prefixes nest, no edge of what was painted before lies inside of a later one,
 * so that painting costs the same for any length: two edges.
 */
#ifndef HOLDOFF_ROUTE_FIB_PAINT_H
#define HOLDOFF_ROUTE_FIB_PAINT_H

#include <stdint.h>

#define FIB_SLOTS 256

struct fib_paint {
	uint64_t edge[FIB_SLOTS / 64]; /* where a run begins; slot 0 always is one */
	uint32_t value[FIB_SLOTS];     /* defined at edges */
};

static inline void fib_paint_begin(struct fib_paint *p, uint32_t cover)
{
	p->edge[0] = 1;
	p->edge[1] = p->edge[2] = p->edge[3] = 0;
	p->value[0] = cover;
}

static inline uint32_t fib_paint_at(const struct fib_paint *p, unsigned slot)
{
	unsigned w = slot / 64;
	uint64_t at = p->edge[w] & ~0ull >> (63 - slot % 64);

	while (!at)
		at = p->edge[--w];
	return p->value[w * 64 + 63 - (unsigned)__builtin_clzll(at)];
}

/* The 2^k slots from first on, a multiple of that; `slots` is how many the node has. */
static inline void fib_paint_range(struct fib_paint *p, unsigned first, unsigned length,
				   unsigned slots, uint32_t value)
{
	unsigned after = first + length;
	uint32_t under = fib_paint_at(p, first);

	if (after < slots && !(p->edge[after / 64] >> after % 64 & 1)) {
		p->edge[after / 64] |= 1ull << after % 64;
		p->value[after] = under;
	}
	p->edge[first / 64] |= 1ull << first % 64;
	p->value[first] = value;
}

/*
 * Writes the runs' values to out and bit s of bits for each slot s that differs from the slot
 * before; bit 0 stays 0. Neighbours of equal value become one run. Returns how many runs.
 */
static inline unsigned fib_paint_runs(const struct fib_paint *p, unsigned words, uint64_t *bits,
				      uint32_t *out)
{
	uint32_t last = p->value[0];
	unsigned n = 1;

	out[0] = last;
	for (unsigned w = 0; w < words; w++) {
		uint64_t left = w ? p->edge[w] : p->edge[0] & ~1ull;

		bits[w] = 0;
		while (left) {
			unsigned slot = (unsigned)__builtin_ctzll(left);
			uint32_t value = p->value[w * 64 + slot];
			uint64_t differs = value != last;

			bits[w] |= differs << slot;
			out[n] = value;
			n += (unsigned)differs;
			last = value;
			left &= left - 1;
		}
	}
	return n;
}

#endif
