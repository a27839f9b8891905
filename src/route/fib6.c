// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib6.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "packet/parse.h"
#include "route/fib6_impl.h"

#define ROOT_BYTES   (FIB6_ROOTS * sizeof(uint32_t))
#define UPPER_BYTES  (2 * FIB6_ROOTS * sizeof(uint32_t))
#define GLOBAL_BYTES (FIB6_GLOBALS * sizeof(uint32_t))

int fib6_create(struct fib6 **out, const struct fib_config *cfg, struct ho_err *err)
{
	struct fib6 *fib = calloc(1, sizeof(*fib));

	if (!fib)
		goto no_memory;
	fib->root = fib_map(ROOT_BYTES);
	fib->upper = fib_map(UPPER_BYTES);
	fib->global = fib_map(GLOBAL_BYTES);
	if (!fib->root || !fib->upper || !fib->global ||
	    fib_pool_init(&fib->nodes.blocks, 0, cfg ? cfg->reclaim : NULL) ||
	    fib_pool_init(&fib->nodes.routes, 0, NULL))
		goto no_memory;
	fib->bulk = fib6_choose_bulk();
	*out = fib;
	return 0;

no_memory:
	fib6_destroy(fib);
	return ho_err_set(err, -ENOMEM, "no memory for an IPv6 forwarding table");
}

void fib6_destroy(struct fib6 *fib)
{
	if (!fib)
		return;
	fib_pool_exit(&fib->nodes.blocks);
	fib_pool_exit(&fib->nodes.routes);
	fib_unmap(fib->root, ROOT_BYTES);
	fib_unmap(fib->upper, UPPER_BYTES);
	fib_unmap(fib->global, GLOBAL_BYTES);
	free(fib);
}

static uint32_t upper_at(const uint8_t *addr, unsigned len)
{
	return (1u << len) + ((uint32_t)pk_load16(addr) >> (16 - len));
}

/* A new next hop for what lies below a place of `upper`, as far as no longer prefix covers it. */
static void set_cover(struct fib6 *fib, uint32_t at, uint32_t nh)
{
	if (at >= FIB6_ROOTS) {
		uint32_t *entry = &fib->root[at - FIB6_ROOTS];

		if (*entry & FIB_CHILD)
			nh = fib_node_set_cover(&fib->nodes, *entry, nh);
		if (*entry != nh)
			__atomic_store_n(entry, nh, __ATOMIC_RELEASE);
		return;
	}
	for (uint32_t below = 2 * at; below <= 2 * at + 1; below++) {
		if (!fib->upper[below])
			set_cover(fib, below, nh);
	}
}

static uint32_t cover_above(const struct fib6 *fib, uint32_t at)
{
	while ((at /= 2)) {
		if (fib->upper[at])
			return fib->upper[at];
	}
	return 0;
}

/* The n /24s from the one with index `first` on, of a /16 whose entry is a node. */
static void fill_global(struct fib6 *fib, uint32_t first, uint32_t n, uint32_t node)
{
	uint32_t *global = &fib->global[first & (FIB6_GLOBALS - 1)], entry;

	for (uint32_t i = 0; i < n; i++) {
		entry = fib_node_entry(fib->nodes.blocks.base, node & ~FIB_CHILD,
				       (first + i) & 0xff);
		if (global[i] != entry)
			__atomic_store_n(&global[i], entry, __ATOMIC_RELEASE);
	}
}

/* Brings `global` up to date where a route of len bits has changed something and readers look. */
static void update_global(struct fib6 *fib, const uint8_t *addr, unsigned len)
{
	uint32_t first = pk_load32(addr) >> 8, n = 1, step;

	if (len < 24) {
		n = 1u << (24 - len);
		first &= ~(n - 1);
	}
	/* Of what the route covers, the part in 2000::/3: /24s 2^21 to 2^22 - 1. */
	if (first + n <= FIB6_GLOBALS || first >= 2 * FIB6_GLOBALS)
		return;
	if (n > FIB6_GLOBALS) {
		first = FIB6_GLOBALS;
		n = FIB6_GLOBALS;
	}
	step = HO_MIN(n, 256u);
	for (uint32_t i = first; i < first + n; i += step) {
		if (fib->root[i >> 8] & FIB_CHILD)
			fill_global(fib, i, step, fib->root[i >> 8]);
	}
}

int fib6_set(struct fib6 *fib, const uint8_t addr[16], unsigned len, uint32_t nh,
	     struct ho_err *err)
{
	bool added;
	int rc;

	if (len > 128)
		return ho_err_set(err, -EINVAL, "prefix length %u: IPv6 has 0 to 128", len);
	if (nh == 0 || nh > FIB_NH_MAX)
		return ho_err_set(err, -EINVAL, "next hop %u: it must be 1 to %u", nh, FIB_NH_MAX);
	rc = fib_node_reserve(&fib->nodes, fib->count);
	if (rc)
		return ho_err_set(err, rc, "no room for another IPv6 route: %s", ho_strerror(rc));
	if (len <= FIB6_ROOT_BITS) {
		uint32_t at = upper_at(addr, len);

		added = fib->upper[at] == 0;
		fib->upper[at] = nh;
		set_cover(fib, at, nh);
	} else {
		uint32_t *entry = &fib->root[pk_load16(addr)], now;

		now = fib_node_set(&fib->nodes, *entry, addr + 2, len - FIB6_ROOT_BITS, nh, &added);
		/* From now on readers look there: all of it must be right before. */
		if (!(*entry & FIB_CHILD) && fib6_is_global(pk_load32(addr)))
			fill_global(fib, pk_load32(addr) >> 16 << 8, 256, now);
		if (now != *entry)
			__atomic_store_n(entry, now, __ATOMIC_RELEASE);
	}
	fib->count += added;
	update_global(fib, addr, len);
	fib_pool_commit(&fib->nodes.blocks);
	return 0;
}

int fib6_del(struct fib6 *fib, const uint8_t addr[16], unsigned len)
{
	int rc;

	if (len > 128)
		return -EINVAL;
	if (!fib6_get(fib, addr, len))
		return -ENOENT;
	rc = fib_node_reserve(&fib->nodes, fib->count);
	if (rc)
		return rc;
	if (len <= FIB6_ROOT_BITS) {
		uint32_t at = upper_at(addr, len);

		fib->upper[at] = 0;
		set_cover(fib, at, cover_above(fib, at));
	} else {
		uint32_t *entry = &fib->root[pk_load16(addr)], now;

		now = fib_node_del(&fib->nodes, *entry, addr + 2, len - FIB6_ROOT_BITS);
		if (now != *entry)
			__atomic_store_n(entry, now, __ATOMIC_RELEASE);
	}
	fib->count--;
	update_global(fib, addr, len);
	fib_pool_commit(&fib->nodes.blocks);
	fib_pool_commit(&fib->nodes.routes);
	return 0;
}

uint32_t fib6_get(const struct fib6 *fib, const uint8_t addr[16], unsigned len)
{
	if (len > 128)
		return 0;
	if (len <= FIB6_ROOT_BITS)
		return fib->upper[upper_at(addr, len)];
	return fib_node_get(&fib->nodes, fib->root[pk_load16(addr)], addr + 2,
			    len - FIB6_ROOT_BITS);
}

uint32_t fib6_lookup(const struct fib6 *fib, const uint8_t addr[16])
{
	return fib_node_lookup(fib->nodes.blocks.base, fib6_entry(fib, pk_load32(addr)), addr + 3);
}

void fib6_lookup_bulk(const struct fib6 *fib, const struct fib6_addr *addrs, uint32_t *nh,
		      unsigned n)
{
	fib->bulk(fib, addrs, nh, n);
}

struct walk6 {
	int (*fn)(void *ctx, const uint8_t addr[16], unsigned len, uint32_t nh);
	void *ctx;
};

static int walk_upper(const struct fib6 *fib, const struct walk6 *w, uint32_t at)
{
	unsigned len = 31 - (unsigned)__builtin_clz(at);
	uint8_t key[16] = { 0 };
	int rc = 0;

	pk_store16(key, (uint16_t)((at - (1u << len)) << (16 - len)));
	if (fib->upper[at])
		rc = w->fn(w->ctx, key, len, fib->upper[at]);
	if (rc)
		return rc;
	if (len == FIB6_ROOT_BITS)
		return fib_node_walk(&fib->nodes, fib->root[at - FIB6_ROOTS], key, 2, w->fn,
				     w->ctx);
	for (unsigned side = 0; !rc && side < 2; side++)
		rc = walk_upper(fib, w, 2 * at + side);
	return rc;
}

int fib6_walk(const struct fib6 *fib,
	      int (*fn)(void *ctx, const uint8_t addr[16], unsigned len, uint32_t nh), void *ctx)
{
	struct walk6 w = { fn, ctx };

	return walk_upper(fib, &w, 1);
}

size_t fib6_count(const struct fib6 *fib)
{
	return fib->count;
}

size_t fib6_memory_bytes(const struct fib6 *fib)
{
	return sizeof(*fib) + ROOT_BYTES + UPPER_BYTES + GLOBAL_BYTES +
	       fib_pool_bytes(&fib->nodes.blocks) + fib_pool_bytes(&fib->nodes.routes);
}
