/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A forwarding table by definition: a hash of all prefixes, and a lookup that tries each length
 * from the longest on. And both real tables behind one interface, with keys of 16 bytes.
 */
#ifndef HOLDOFF_TESTS_FIB_MODEL_H
#define HOLDOFF_TESTS_FIB_MODEL_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "packet/parse.h"
#include "route/fib4.h"
#include "route/fib6.h"

#define MODEL_SLOTS (1u << 17)

struct model_route {
	uint8_t key[16];
	unsigned len;
	uint32_t nh; /* 0 in a used slot: deleted */
	bool used;
};

struct model {
	struct model_route slot[MODEL_SLOTS];
	unsigned of_length[129]; /* routes of each */
	size_t count, used;
};

static inline void model_mask(uint8_t *out, const uint8_t *key, unsigned len)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned bits = len > i * 8 ? HO_MIN(len - i * 8, 8u) : 0;

		out[i] = key[i] & (uint8_t)(0xff00 >> bits);
	}
}

static inline struct model_route *model_find(struct model *m, const uint8_t *key, unsigned len)
{
	uint8_t masked[16];
	uint64_t hash, half[2];

	model_mask(masked, key, len);
	memcpy(half, masked, 16);
	hash = (half[0] * 0x9e3779b97f4a7c15u ^ half[1]) * 0xbf58476d1ce4e5b9u + len;
	hash = (hash ^ hash >> 31) * 0x94d049bb133111ebu;
	for (unsigned i = (unsigned)(hash >> 40);; i++) {
		struct model_route *r = &m->slot[i % MODEL_SLOTS];

		if (!r->used || (r->len == len && !memcmp(r->key, masked, 16)))
			return r;
	}
}

static inline void model_set(struct model *m, const uint8_t *key, unsigned len, uint32_t nh)
{
	struct model_route *r = model_find(m, key, len);

	if (!r->used) {
		model_mask(r->key, key, len);
		r->len = len;
		r->used = true;
		m->used++;
	}
	if (!r->nh && nh)
		m->of_length[len]++, m->count++;
	if (r->nh && !nh)
		m->of_length[len]--, m->count--;
	r->nh = nh;
}

static inline uint32_t model_get(struct model *m, const uint8_t *key, unsigned len)
{
	return m->of_length[len] ? model_find(m, key, len)->nh : 0;
}

static inline uint32_t model_lookup(struct model *m, const uint8_t *key)
{
	for (unsigned len = 129; len-- > 0;) {
		uint32_t nh = model_get(m, key, len);

		if (nh)
			return nh;
	}
	return 0;
}

/* Forgets deleted routes, which take space in the hash. */
static inline void model_sweep(struct model *m)
{
	struct model *old = malloc(sizeof(*old));

	*old = *m;
	memset(m, 0, sizeof(*m));
	for (unsigned i = 0; i < MODEL_SLOTS; i++) {
		if (old->slot[i].nh)
			model_set(m, old->slot[i].key, old->slot[i].len, old->slot[i].nh);
	}
	free(old);
}

struct table {
	unsigned bits; /* 32 or 128 */
	struct fib4 *v4;
	struct fib6 *v6;
};

static inline int table_create(struct table *t, unsigned bits, const struct fib_reclaim *reclaim)
{
	struct fib_config cfg = { 0, reclaim };

	*t = (struct table){ bits, NULL, NULL };
	return bits == 32 ? fib4_create(&t->v4, &cfg, NULL) : fib6_create(&t->v6, &cfg, NULL);
}

static inline void table_destroy(struct table *t)
{
	fib4_destroy(t->v4);
	fib6_destroy(t->v6);
}

static inline int table_set(struct table *t, const uint8_t *key, unsigned len, uint32_t nh)
{
	return t->v4 ? fib4_set(t->v4, pk_load32(key), len, nh, NULL)
		     : fib6_set(t->v6, key, len, nh, NULL);
}

static inline int table_del(struct table *t, const uint8_t *key, unsigned len)
{
	return t->v4 ? fib4_del(t->v4, pk_load32(key), len) : fib6_del(t->v6, key, len);
}

static inline uint32_t table_get(const struct table *t, const uint8_t *key, unsigned len)
{
	return t->v4 ? fib4_get(t->v4, pk_load32(key), len) : fib6_get(t->v6, key, len);
}

static inline uint32_t table_lookup(const struct table *t, const uint8_t *key)
{
	return t->v4 ? fib4_lookup(t->v4, pk_load32(key)) : fib6_lookup(t->v6, key);
}

/* n up to 256 */
static inline void table_bulk(const struct table *t, uint8_t (*key)[16], uint32_t *nh, unsigned n)
{
	uint32_t addr[256];

	if (!t->v4) {
		fib6_lookup_bulk(t->v6, (const struct fib6_addr *)key, nh, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		addr[i] = pk_load32(key[i]);
	fib4_lookup_bulk(t->v4, addr, nh, n);
}

static inline size_t table_count(const struct table *t)
{
	return t->v4 ? fib4_count(t->v4) : fib6_count(t->v6);
}

static inline size_t table_bytes(const struct table *t)
{
	return t->v4 ? fib4_memory_bytes(t->v4) : fib6_memory_bytes(t->v6);
}

#endif
