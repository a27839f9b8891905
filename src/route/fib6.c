// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib6.h"

#include <errno.h>
#include <stdlib.h>

#include "route/fib_trie.h"

struct fib6 {
	struct fib_trie *trie;
};

int fib6_create(struct fib6 **out, const struct fib_config *cfg, struct ho_err *err)
{
	struct fib6 *fib = calloc(1, sizeof(*fib));

	if (!fib || fib_trie_create(&fib->trie)) {
		free(fib);
		return ho_err_set(err, -ENOMEM, "no memory for an IPv6 forwarding table");
	}
	*out = fib;
	return 0;
}

void fib6_destroy(struct fib6 *fib)
{
	if (fib)
		fib_trie_destroy(fib->trie);
	free(fib);
}

int fib6_set(struct fib6 *fib, const uint8_t addr[16], unsigned len, uint32_t nh,
	     struct ho_err *err)
{
	if (len > 128)
		return ho_err_set(err, -EINVAL, "prefix length %u: IPv6 has 0 to 128", len);
	if (nh == 0 || nh > FIB_NH_MAX)
		return ho_err_set(err, -EINVAL, "next hop %u: it must be 1 to %u", nh, FIB_NH_MAX);
	if (fib_trie_set(fib->trie, addr, len, nh))
		return ho_err_set(err, -ENOMEM, "no memory for another IPv6 route");
	return 0;
}

int fib6_del(struct fib6 *fib, const uint8_t addr[16], unsigned len)
{
	return len <= 128 ? fib_trie_del(fib->trie, addr, len) : -EINVAL;
}

uint32_t fib6_get(const struct fib6 *fib, const uint8_t addr[16], unsigned len)
{
	return len <= 128 ? fib_trie_get(fib->trie, addr, len) : 0;
}

uint32_t fib6_lookup(const struct fib6 *fib, const uint8_t addr[16])
{
	return fib_trie_lookup(fib->trie, addr, 128);
}

void fib6_lookup_bulk(const struct fib6 *fib, const struct fib6_addr *addrs, uint32_t *nh,
		      unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		nh[i] = fib6_lookup(fib, addrs[i].byte);
}

int fib6_walk(const struct fib6 *fib,
	      int (*fn)(void *ctx, const uint8_t addr[16], unsigned len, uint32_t nh), void *ctx)
{
	return fib_trie_walk(fib->trie, fn, ctx);
}

size_t fib6_count(const struct fib6 *fib)
{
	return fib_trie_count(fib->trie);
}

size_t fib6_memory_bytes(const struct fib6 *fib)
{
	return sizeof(*fib) + fib_trie_bytes(fib->trie);
}
