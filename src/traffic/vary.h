/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value that may change from frame to frame: what one field's text (traffic/spec.h) means. Its
 * value for frame k of a stream is a function of k alone.
 */
#ifndef HOLDOFF_TRAFFIC_VARY_H
#define HOLDOFF_TRAFFIC_VARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define TR_VARY_LIST_MAX 65536 /* values in a list */

enum tr_value_kind {
	TR_VALUE_NUMBER,
	TR_VALUE_MAC,
	TR_VALUE_IPV4,
	TR_VALUE_IPV6,
	TR_VALUE_SIZE, /* numbers with weights: LENGTH:WEIGHT,... or imix */
};

/* What values a field can have. */
struct tr_domain {
	enum tr_value_kind kind;
	uint64_t min, max;
};

struct tr_vary {
	uint64_t first; /* lower 64 bits of the first value */
	uint64_t high;  /* IPv6: upper 64 bits, unless there is a list */
	uint64_t step;  /* from value to value, modulo 2^64 */
	uint64_t span;  /* number of values less one; 0 = it does not vary */
	uint64_t every; /* frames that share a value, at least 1 */
	uint64_t salt;  /* of the random choice; set by the stream's builder */
	bool random;
	uint64_t *list;      /* the values, or NULL: first + index * step */
	uint64_t *list_high; /* their upper 64 bits, or NULL */
};

/* Reads a field's text. -EINVAL with the text and what would be right. Freed by tr_vary_free. */
int tr_vary_parse(const char *text, const struct tr_domain *domain, struct tr_vary *out,
		  struct ho_err *err);

/* A value that never varies. */
struct tr_vary tr_vary_fixed(uint64_t value, uint64_t high);

void tr_vary_free(struct tr_vary *vary);

/* Divides n weights by their common divisor; *places is the sum of the results, at most
 * TR_VARY_LIST_MAX. -EINVAL if they sum to 0 or to more. */
int tr_reduce_weights(uint64_t *weights, unsigned n, uint32_t *out, uint32_t *places,
		      struct ho_err *err);

/* Spreads n kinds over `places` places (the sum of the weights), each as evenly as can be:
 * out[place] = kind. -ENOMEM. */
int tr_interleave(const uint32_t *weights, unsigned n, uint32_t places, uint32_t *out);

/* A number that looks random, from 64 bits of key: the output function of splitmix64 (Steele, Lea,
 * Flood, "Fast splittable pseudorandom number generators", 2014). */
static inline uint64_t tr_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Index of the random value for turn `turn` (= frame / every). */
static inline uint64_t tr_vary_random(const struct tr_vary *vary, uint64_t turn)
{
	uint64_t r = tr_mix(vary->salt + turn * 0x9e3779b97f4a7c15u);

	/* Multiplying maps onto 0..span without a division. */
	return vary->span == UINT64_MAX ? r
					: (uint64_t)((unsigned __int128)r * (vary->span + 1) >> 64);
}

/* Index of the value for frame k: 0..span. */
static inline uint64_t tr_vary_index(const struct tr_vary *vary, uint64_t k)
{
	uint64_t turn = k / vary->every;

	if (vary->random)
		return tr_vary_random(vary, turn);
	return vary->span == UINT64_MAX ? turn : turn % (vary->span + 1);
}

static inline uint64_t tr_vary_value(const struct tr_vary *vary, uint64_t index)
{
	return vary->list ? vary->list[index] : vary->first + index * vary->step;
}

static inline uint64_t tr_vary_high(const struct tr_vary *vary, uint64_t index)
{
	return vary->list_high ? vary->list_high[index] : vary->high;
}

#endif
