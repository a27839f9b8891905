// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib_gen.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "packet/parse.h"

#define ROUTES_MAX ((size_t)4000000)

/* Prefixes of each length, of a thousand. */
struct share {
	uint8_t len;
	uint16_t share;
};

static const struct share shares4[] = {
	{ 8, 1 },    { 10, 1 },   { 12, 1 },   { 13, 1 },  { 14, 1 },  { 15, 2 },
	{ 16, 14 },  { 17, 9 },   { 18, 15 },  { 19, 26 }, { 20, 46 }, { 21, 54 },
	{ 22, 115 }, { 23, 105 }, { 24, 606 }, { 25, 1 },  { 26, 1 },  { 29, 1 },
};
static const struct share shares6[] = {
	{ 20, 1 },  { 24, 1 },   { 28, 3 },  { 29, 30 }, { 30, 4 },  { 31, 3 },  { 32, 125 },
	{ 33, 30 }, { 34, 18 },  { 35, 12 }, { 36, 60 }, { 37, 7 },  { 38, 14 }, { 39, 7 },
	{ 40, 98 }, { 41, 6 },   { 42, 14 }, { 43, 6 },  { 44, 90 }, { 45, 10 }, { 46, 16 },
	{ 47, 17 }, { 48, 424 }, { 56, 1 },  { 64, 3 },
};
/* Where the registries' blocks are (IANA's registry of IPv6 global unicast assignments). */
static const uint16_t blocks6[] = { 0x2001, 0x2001, 0x2400, 0x2400, 0x2600,
				    0x2800, 0x2a00, 0x2a00, 0x2a00, 0x2c00 };

/* A 128-bit address as two numbers, so that both families are one code: IPv4 at the top. */
struct addr {
	uint64_t high, low;
};

struct gen {
	uint64_t state;
	struct fib_gen_route *routes;
	size_t n;
	uint32_t *set; /* open hash of indexes into routes, plus 1 */
	size_t mask;
	uint32_t hops;
	unsigned bits;
};

static uint64_t rnd64(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint32_t below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((rnd64(state) >> 32) * n >> 32);
}

static struct addr mask_of(unsigned len)
{
	return (struct addr){ len == 0 ? 0 : ~0ull << (64 - HO_MIN(len, 64u)),
			      len <= 64 ? 0 : ~0ull << (128 - len) };
}

static void store(struct fib6_addr *out, struct addr a)
{
	pk_store32(out->byte, (uint32_t)(a.high >> 32));
	pk_store32(out->byte + 4, (uint32_t)a.high);
	pk_store32(out->byte + 8, (uint32_t)(a.low >> 32));
	pk_store32(out->byte + 12, (uint32_t)a.low);
}

static struct addr load(const struct fib6_addr *a)
{
	return (struct addr){ (uint64_t)pk_load32(a->byte) << 32 | pk_load32(a->byte + 4),
			      (uint64_t)pk_load32(a->byte + 8) << 32 | pk_load32(a->byte + 12) };
}

/* Adds a prefix unless it is there. */
static bool add(struct gen *g, struct addr a, unsigned len)
{
	struct addr mask = mask_of(len);
	struct fib_gen_route *r = &g->routes[g->n];
	uint64_t hash;

	a.high &= mask.high;
	a.low &= mask.low;
	memset(r, 0, sizeof(*r));
	store(&r->addr, a);
	r->len = (uint8_t)len;
	hash = (a.high * 0x9e3779b97f4a7c15u ^ a.low * 0xbf58476d1ce4e5b9u) + len;
	for (size_t i = (hash ^ hash >> 29) * 0x94d049bb133111ebu >> 20;; i++) {
		uint32_t *at = &g->set[i & g->mask];

		if (!*at) {
			r->nh = 1 + below(&g->state, g->hops);
			*at = (uint32_t)++g->n;
			return true;
		}
		if (g->routes[*at - 1].len == len &&
		    !memcmp(&g->routes[*at - 1].addr, &r->addr, sizeof(r->addr)))
			return false;
	}
}

static void uniform(struct gen *g, size_t want)
{
	while (g->n < want) {
		struct addr a = { rnd64(&g->state), rnd64(&g->state) };

		if (g->bits == 32) {
			a = (struct addr){ a.high & 0xffffffff00000000u, 0 };
			add(g, a, 8 + below(&g->state, 21));
		} else {
			a.high = a.high >> 3 | 1ull << 61;
			add(g, a, 16 + below(&g->state, 49));
		}
	}
}

static unsigned draw_len(struct gen *g, const struct share *shares, unsigned n)
{
	unsigned sum = 0, at;

	for (unsigned i = 0; i < n; i++)
		sum += shares[i].share;
	at = below(&g->state, sum);
	for (unsigned i = 0; i < n; i++) {
		if (at < shares[i].share)
			return shares[i].len;
		at -= shares[i].share;
	}
	return shares[n - 1].len;
}

/* A place for a prefix that is not inside of another: registries fill their blocks in runs. */
static struct addr fresh_place(struct gen *g, unsigned len, uint64_t *cursor, unsigned cursors)
{
	uint64_t *at = &cursor[below(&g->state, cursors)];
	struct addr a;

	if (g->bits == 32) {
		/* Sixteenths of the /8s 1 to 223 without 10 and 127, some fuller than others. */
		if (below(&g->state, 40) == 0 || *at == 0) {
			uint32_t top = 1 + below(&g->state, 223);

			while (top == 10 || top == 127)
				top = 1 + below(&g->state, 223);
			*at = (uint64_t)top << 56 | rnd64(&g->state) >> 8;
		}
	} else if (below(&g->state, 40) == 0 || *at == 0) {
		/* In a /12 of a registry, or anywhere in the old 2001::/16. */
		uint64_t block = blocks6[below(&g->state, HO_ARRAY_LEN(blocks6))];

		*at = block == 0x2001 ? block << 48 | rnd64(&g->state) >> 16
				      : block << 48 | rnd64(&g->state) >> 12;
	}
	a = (struct addr){ *at, 0 };
	a.high &= mask_of(len).high;
	/* The next one comes directly behind, or leaves a gap to grow into. */
	*at = a.high + (1ull << (64 - len)) * (below(&g->state, 3) ? 1 : 1 + below(&g->state, 8));
	if (g->bits == 32 && (*at >> 56 >= 224 || *at >> 56 == 127 || *at >> 56 == 10))
		*at = 0;
	return a;
}

static void internet(struct gen *g, size_t want)
{
	uint64_t cursor[64] = { 0 };
	struct addr last = { 0, 0 };
	unsigned last_len = 0;

	while (g->n < want) {
		bool v4 = g->bits == 32;
		unsigned len = v4 ? draw_len(g, shares4, HO_ARRAY_LEN(shares4))
				  : draw_len(g, shares6, HO_ARRAY_LEN(shares6));
		unsigned alone = v4 ? 24 : 48; /* longer ones are always inside of another */
		unsigned choice = below(&g->state, 100);
		struct addr a;

		if (g->n && (choice < 55 || len > alone)) {
			const struct fib_gen_route *in =
				&g->routes[below(&g->state, (uint32_t)g->n)];
			struct addr base, mask;

			/* Inside of a shorter one; or beside the last, as whole blocks are split.
			 */
			if (choice < 25 && last_len == len) {
				a = last;
				a.high += 1ull << (64 - HO_MIN(len, 64u));
			} else {
				for (unsigned tries = 0; in->len >= len && tries < 64; tries++)
					in = &g->routes[below(&g->state, (uint32_t)g->n)];
				if (in->len >= len)
					continue;
				base = load(&in->addr);
				mask = mask_of(in->len);
				/* Most are near the beginning of the block. */
				a.high = rnd64(&g->state) & ~mask.high;
				if (below(&g->state, 2))
					a.high >>=
						below(&g->state, HO_MIN(len, 64u) - in->len + 1u);
				a.high = base.high | (a.high & ~mask.high);
				a.low = 0;
			}
		} else {
			a = fresh_place(g, HO_MIN(len, 64u), cursor, HO_ARRAY_LEN(cursor));
		}
		if (v4 && (a.high >> 56 == 0 || a.high >> 56 >= 224))
			continue;
		if (v4)
			a.high &= 0xffffffff00000000u;
		last = a;
		last.high &= mask_of(len).high;
		last_len = len;
		add(g, a, len);
	}
}

int fib_gen_routes(struct fib_gen_route **out, size_t n, unsigned family, enum fib_gen_shape shape,
		   uint32_t hops, uint64_t seed, struct ho_err *err)
{
	struct gen g = { .state = seed, .hops = HO_MAX(hops, 1u), .bits = family == 4 ? 32 : 128 };
	size_t slots = 64;

	if (family != 4 && family != 6)
		return ho_err_set(err, -EINVAL, "family %u: it must be 4 or 6", family);
	if (n > ROUTES_MAX)
		return ho_err_set(err, -EINVAL, "%zu routes: at most %zu can be generated", n,
				  ROUTES_MAX);
	while (slots < 2 * n)
		slots *= 2;
	g.mask = slots - 1;
	g.set = calloc(slots, sizeof(*g.set));
	g.routes = calloc(n + 1, sizeof(*g.routes));
	if (!g.set || !g.routes) {
		free(g.set);
		free(g.routes);
		return ho_err_set(err, -ENOMEM, "no memory for %zu routes", n);
	}
	if (shape == FIB_GEN_UNIFORM)
		uniform(&g, n);
	else
		internet(&g, n);
	free(g.set);
	for (size_t i = n; i > 1; i--) {
		size_t k = below(&g.state, (uint32_t)i);
		struct fib_gen_route swap = g.routes[i - 1];

		g.routes[i - 1] = g.routes[k];
		g.routes[k] = swap;
	}
	*out = g.routes;
	return 0;
}

static struct addr inside(uint64_t *state, const struct fib_gen_route *r)
{
	struct addr a = load(&r->addr), mask = mask_of(r->len);

	a.high |= rnd64(state) & ~mask.high;
	a.low |= rnd64(state) & ~mask.low;
	return a;
}

void fib_gen_addresses(struct fib6_addr *out, size_t n, unsigned family,
		       enum fib_gen_addresses kind, const struct fib_gen_route *routes,
		       size_t n_routes, uint64_t seed)
{
	uint64_t state = seed;

	for (size_t i = 0; i < n; i++) {
		struct addr a = { rnd64(&state), rnd64(&state) };
		size_t route = n_routes ? below(&state, (uint32_t)n_routes) : 0;

		if (kind == FIB_GEN_HOT && i >= FIB_GEN_HOT_ADDRESSES) {
			out[i] = out[i % FIB_GEN_HOT_ADDRESSES];
			continue;
		}
		if (kind == FIB_GEN_ZIPF && n_routes) {
			/* The inverse of the sum of 1/k is close to an exponential; the order of
			 * the routes is random, so the rank may be the index. */
			double u = (double)(rnd64(&state) >> 11) * 0x1p-53;

			route = (size_t)pow((double)n_routes + 1, u) - 1;
			route = HO_MIN(route, n_routes - 1);
		}
		if (kind == FIB_GEN_ANYWHERE || !n_routes)
			a.high = family == 6 ? a.high >> 3 | 1ull << 61 : a.high;
		else
			a = inside(&state, &routes[route]);
		memset(&out[i], 0, sizeof(out[i]));
		if (family == 4)
			pk_store32(out[i].byte, (uint32_t)(a.high >> 32));
		else
			store(&out[i], a);
	}
}
