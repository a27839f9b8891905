// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib4.h"

#include <errno.h>
#include <stdlib.h>

#include "packet/parse.h"
#include "route/fib_trie.h"

struct fib4 {
	struct fib_trie *trie;
};

int fib4_create(struct fib4 **out, const struct fib_config *cfg, struct ho_err *err)
{
	struct fib4 *fib = calloc(1, sizeof(*fib));

	if (!fib || fib_trie_create(&fib->trie)) {
		free(fib);
		return ho_err_set(err, -ENOMEM, "no memory for an IPv4 forwarding table");
	}
	*out = fib;
	return 0;
}

void fib4_destroy(struct fib4 *fib)
{
	if (fib)
		fib_trie_destroy(fib->trie);
	free(fib);
}

int fib4_set(struct fib4 *fib, uint32_t addr, unsigned len, uint32_t nh, struct ho_err *err)
{
	uint8_t key[4];

	if (len > 32)
		return ho_err_set(err, -EINVAL, "prefix length %u: IPv4 has 0 to 32", len);
	if (nh == 0 || nh > FIB_NH_MAX)
		return ho_err_set(err, -EINVAL, "next hop %u: it must be 1 to %u", nh, FIB_NH_MAX);
	pk_store32(key, addr);
	if (fib_trie_set(fib->trie, key, len, nh))
		return ho_err_set(err, -ENOMEM, "no memory for another IPv4 route");
	return 0;
}

int fib4_del(struct fib4 *fib, uint32_t addr, unsigned len)
{
	uint8_t key[4];

	if (len > 32)
		return -EINVAL;
	pk_store32(key, addr);
	return fib_trie_del(fib->trie, key, len);
}

uint32_t fib4_get(const struct fib4 *fib, uint32_t addr, unsigned len)
{
	uint8_t key[4];

	pk_store32(key, addr);
	return len <= 32 ? fib_trie_get(fib->trie, key, len) : 0;
}

uint32_t fib4_lookup(const struct fib4 *fib, uint32_t addr)
{
	uint8_t key[4];

	pk_store32(key, addr);
	return fib_trie_lookup(fib->trie, key, 32);
}

void fib4_lookup_bulk(const struct fib4 *fib, const uint32_t *addrs, uint32_t *nh, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		nh[i] = fib4_lookup(fib, addrs[i]);
}

struct walk4 {
	int (*fn)(void *ctx, uint32_t addr, unsigned len, uint32_t nh);
	void *ctx;
};

static int walk_one(void *ctx, const uint8_t key[16], unsigned len, uint32_t nh)
{
	struct walk4 *w = ctx;

	return w->fn(w->ctx, pk_load32(key), len, nh);
}

int fib4_walk(const struct fib4 *fib,
	      int (*fn)(void *ctx, uint32_t addr, unsigned len, uint32_t nh), void *ctx)
{
	struct walk4 w = { fn, ctx };

	return fib_trie_walk(fib->trie, walk_one, &w);
}

size_t fib4_count(const struct fib4 *fib)
{
	return fib_trie_count(fib->trie);
}

size_t fib4_memory_bytes(const struct fib4 *fib)
{
	return sizeof(*fib) + fib_trie_bytes(fib->trie);
}
