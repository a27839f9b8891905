// SPDX-License-Identifier: BSD-2-Clause
/*
 * The forwarding tables against the definition of longest-prefix match, under random operations.
 *
 *   HOLDOFF_FIB_OPS   operations of each random test (25000)
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "fib_model.h"
#include "route/fib_numbers.h"

static uint64_t random_state = 1;

static uint32_t rnd(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 32) * below >> 32);
}

static unsigned operations(void)
{
	const char *env = getenv("HOLDOFF_FIB_OPS");

	return env ? (unsigned)strtoul(env, NULL, 0) : 25000;
}

/* Keys that share beginnings, so that prefixes nest and nodes fill. */
static void random_key(uint8_t *key, unsigned bits)
{
	unsigned same = rnd(bits + 1);

	for (unsigned i = 0; i < 16; i++)
		key[i] = (uint8_t)(0x20 + i * 0x35);
	key[0] ^= (uint8_t)(rnd(2) << 6);
	for (unsigned i = same; i < bits; i++)
		key[i / 8] ^= (uint8_t)(rnd(2) << (7 - i % 8));
	if (bits == 32)
		memset(key + 4, 0, 12);
}

static unsigned random_len(unsigned bits)
{
	static const uint8_t edges[] = { 0, 1, 15, 16, 17, 18, 19, 20, 23, 24, 25, 31, 32 };
	static const uint8_t edges6[] = { 0, 1, 16, 17, 24, 25, 32, 33, 48, 64, 65, 127, 128 };

	if (rnd(3))
		return rnd(bits + 1);
	return bits == 32 ? edges[rnd(sizeof(edges))] : edges6[rnd(sizeof(edges6))];
}

static void step_key(uint8_t *key, unsigned bits, int by)
{
	for (int i = (int)bits / 8 - 1; i >= 0; i--) {
		key[i] = (uint8_t)(key[i] + by);
		if (key[i] != (by > 0 ? 0 : 0xff))
			return;
	}
}

/* The addresses where an answer can change at a prefix: first, last, and one beyond each. */
static unsigned edges_of(uint8_t (*out)[16], const uint8_t *key, unsigned len, unsigned bits)
{
	model_mask(out[0], key, len);
	memcpy(out[1], out[0], 16);
	for (unsigned i = len; i < bits; i++)
		out[1][i / 8] |= (uint8_t)(1 << (7 - i % 8));
	memcpy(out[2], out[0], 16);
	step_key(out[2], bits, -1);
	memcpy(out[3], out[1], 16);
	step_key(out[3], bits, 1);
	return 4;
}

static void check_lookup(struct table *t, struct model *m, const uint8_t *key)
{
	uint32_t want = model_lookup(m, key), have = table_lookup(t, key);

	if (want != have)
		print_error("%02x%02x:%02x%02x:%02x%02x...: %u, should be %u\n", key[0], key[1],
			    key[2], key[3], key[4], key[5], have, want);
	assert_int_equal(have, want);
}

struct walked {
	struct model *m;
	uint8_t last[17]; /* key and length of the route before */
	size_t n;
};

static int walk6(void *ctx, const uint8_t key[16], unsigned len, uint32_t nh)
{
	struct walked *w = ctx;
	uint8_t now[17];

	memcpy(now, key, 16);
	now[16] = (uint8_t)len;
	assert_int_equal(model_get(w->m, key, len), nh);
	assert_true(w->n == 0 || memcmp(w->last, now, 17) < 0);
	memcpy(w->last, now, 17);
	w->n++;
	return 0;
}

static int walk4(void *ctx, uint32_t addr, unsigned len, uint32_t nh)
{
	uint8_t key[16] = { 0 };

	pk_store32(key, addr);
	return walk6(ctx, key, len, nh);
}

/* All of it: each route, its edges by single and bulk lookups of odd sizes, and the walk. */
static void check_all(struct table *t, struct model *m)
{
	struct walked w = { m, { 0 }, 0 };
	static uint8_t key[256][16];
	uint32_t nh[256];
	unsigned n = 0, bulk = 1 + rnd(200);

	for (unsigned i = 0; i < MODEL_SLOTS; i++) {
		struct model_route *r = &m->slot[i];

		if (r->used) {
			assert_int_equal(table_get(t, r->key, r->len), r->nh);
		}
		if (r->nh) {
			n += edges_of(key + n, r->key, r->len, t->bits);
		}
		if (n >= bulk || i == MODEL_SLOTS - 1) {
			table_bulk(t, key, nh, n);
			for (unsigned k = 0; k < n; k++) {
				check_lookup(t, m, key[k]);
				assert_int_equal(nh[k], table_lookup(t, key[k]));
			}
			n = 0;
			bulk = 1 + rnd(200);
		}
	}
	if (t->v4)
		assert_int_equal(fib4_walk(t->v4, walk4, &w), 0);
	else
		assert_int_equal(fib6_walk(t->v6, walk6, &w), 0);
	assert_int_equal(w.n, m->count);
	assert_int_equal(table_count(t), m->count);
}

/* A grace period that ends when the test says so. */
struct held {
	struct fib_deferred *first, **last;
};

static void hold(void *ctx, struct fib_deferred *d)
{
	struct held *h = ctx;

	d->next = NULL;
	*h->last = d;
	h->last = &d->next;
}

static void let_go(void *ctx)
{
	struct held *h = ctx;

	while (h->first) {
		struct fib_deferred *d = h->first;

		h->first = d->next;
		d->done(d);
	}
	h->last = &h->first;
}

static void random_operations(unsigned bits, bool deferred, uint64_t seed)
{
	struct held held = { NULL, &held.first };
	struct fib_reclaim reclaim = { hold, let_go, &held };
	struct model *m = calloc(1, sizeof(*m));
	unsigned ops = operations(), grow = 60;
	uint8_t key[16], edge[5][16];
	uint32_t answer[5];
	struct table t;
	size_t empty;

	random_state = seed;
	assert_int_equal(table_create(&t, bits, deferred ? &reclaim : NULL), 0);
	/* Once the highest next hop: what IPv4's answers n = n occupy stays. */
	memset(key, 0, sizeof(key));
	assert_int_equal(table_set(&t, key, 0, FIB_NH_MAX), 0);
	assert_int_equal(table_del(&t, key, 0), 0);
	empty = table_bytes(&t);
	for (unsigned i = 0; i < ops; i++) {
		unsigned len = random_len(bits);
		uint32_t nh = rnd(8) ? 1 + rnd(5) : 1 + rnd(FIB_NH_MAX);

		/* Grow and shrink in turns. */
		if (i % 4096 == 0)
			grow = rnd(2) ? 75 : 35;
		random_key(key, bits);
		if (rnd(100) < grow) {
			assert_int_equal(table_set(&t, key, len, nh), 0);
			model_set(m, key, len, nh);
		} else {
			/* Deleting what is there is likelier a short way along in the hash. */
			struct model_route *r = &m->slot[rnd(MODEL_SLOTS)];

			for (unsigned k = 0; k < 400 && !r->nh; k++)
				r = &m->slot[rnd(MODEL_SLOTS)];
			if (r->nh && rnd(8)) {
				memcpy(key, r->key, 16);
				len = r->len;
			}
			assert_int_equal(table_del(&t, key, len),
					 model_get(m, key, len) ? 0 : -ENOENT);
			if (model_get(m, key, len))
				model_set(m, key, len, 0);
		}
		assert_int_equal(table_get(&t, key, len), model_get(m, key, len));
		edges_of(edge, key, len, bits);
		random_key(edge[4], bits);
		table_bulk(&t, edge, answer, 5);
		for (unsigned k = 0; k < 5; k++) {
			check_lookup(&t, m, edge[k]);
			assert_int_equal(answer[k], table_lookup(&t, edge[k]));
		}
		if (rnd(500) == 0)
			let_go(&held);
		if (i % 16384 == 0)
			check_all(&t, m);
		if (m->used > MODEL_SLOTS / 2)
			model_sweep(m);
	}
	check_all(&t, m);
	for (unsigned i = 0; i < MODEL_SLOTS; i++) {
		struct model_route *r = &m->slot[i];

		if (r->nh) {
			assert_int_equal(table_del(&t, r->key, r->len), 0);
			model_set(m, r->key, r->len, 0);
		}
	}
	check_all(&t, m);
	if (!deferred)
		assert_int_equal(table_bytes(&t), empty);
	table_destroy(&t);
	free(m);
}

static void test_random4(void **state)
{
	random_operations(32, false, 4);
}

static void test_random4_deferred(void **state)
{
	random_operations(32, true, 44);
}

static void test_random6(void **state)
{
	random_operations(128, false, 6);
}

static void test_random6_deferred(void **state)
{
	random_operations(128, true, 66);
}

/* All kinds of bulk lookup give what the single one gives, for every size of bulk. */
static void test_levels(void **state)
{
	static const char *const levels[] = { "scalar", "avx2", "avx512" };
	const char *before = getenv("HOLDOFF_SIMD");
	char *kept = before ? strdup(before) : NULL;

	for (unsigned l = 0; l < HO_ARRAY_LEN(levels); l++) {
		for (unsigned bits = 32; bits <= 128; bits += 96) {
			static uint8_t key[256][16];
			uint32_t nh[257];
			struct table t;

			setenv("HOLDOFF_SIMD", levels[l], 1);
			random_state = 7;
			assert_int_equal(table_create(&t, bits, NULL), 0);
			for (unsigned i = 0; i < 20000; i++) {
				random_key(key[0], bits);
				table_set(&t, key[0], random_len(bits), 1 + rnd(FIB_NH_MAX));
			}
			for (unsigned n = 0; n <= 256; n++) {
				for (unsigned i = 0; i < n; i++)
					random_key(key[i], bits);
				nh[n] = 12345;
				table_bulk(&t, key, nh, n);
				for (unsigned i = 0; i < n; i++)
					assert_int_equal(nh[i], table_lookup(&t, key[i]));
				assert_int_equal(nh[n], 12345);
			}
			table_destroy(&t);
		}
	}
	if (kept)
		setenv("HOLDOFF_SIMD", kept, 1);
	else
		unsetenv("HOLDOFF_SIMD");
	free(kept);
}

/* Full nodes: each /24 and each /32 of a range with a next hop of its own, then none again. */
static void test_full_nodes(void **state)
{
	for (unsigned len = 20; len <= 32; len += 4) {
		struct fib4 *fib;
		size_t empty;

		assert_int_equal(fib4_create(&fib, NULL, NULL), 0);
		assert_int_equal(fib4_set(fib, 0, 0, 100000 + 4096, NULL), 0);
		assert_int_equal(fib4_del(fib, 0, 0), 0);
		empty = fib4_memory_bytes(fib);
		for (uint32_t i = 0; i < 4096; i++)
			assert_int_equal(fib4_set(fib, i << (32 - len), len, 100000 + i, NULL), 0);
		for (uint32_t i = 0; i < 4096; i++)
			assert_int_equal(fib4_lookup(fib, i << (32 - len)), 100000 + i);
		assert_int_equal(fib4_lookup(fib, 4096u << (32 - len)), 0);
		assert_int_equal(fib4_set(fib, 0, 0, 5, NULL), 0);
		assert_int_equal(fib4_lookup(fib, 4096u << (32 - len)), 5);
		assert_int_equal(fib4_del(fib, 0, 0), 0);
		assert_int_equal(fib4_count(fib), 4096);
		for (uint32_t i = 0; i < 4096; i++)
			assert_int_equal(fib4_del(fib, i << (32 - len), len), 0);
		assert_int_equal(fib4_count(fib), 0);
		assert_int_equal(fib4_memory_bytes(fib), empty);
		fib4_destroy(fib);
	}
}

/* All /24s of some /16s, with more next hops than there are numbers, in one /16 and in all. */
static void test_many_hops(void **state)
{
	static uint32_t addr[4096], want[4096], have[4096];
	struct held held = { NULL, &held.first };
	struct fib_reclaim reclaim = { hold, let_go, &held };
	struct fib_config config = { 0, &reclaim };
	struct fib4 *fib;

	random_state = 9;
	assert_int_equal(fib4_create(&fib, &config, NULL), 0);
	for (unsigned hops = 1; hops <= 4000; hops = hops * 5 / 2 + 1) {
		for (unsigned i = 0; i < HO_ARRAY_LEN(addr); i++) {
			addr[i] = 0x0a000000 + (i << 8) + rnd(256);
			want[i] = 1 + hops * 7 + rnd(hops);
			/* Of half, one address has another one. */
			assert_int_equal(fib4_set(fib, addr[i], 24, i % 2 ? want[i] : 5, NULL), 0);
			if (i % 2 == 0)
				assert_int_equal(fib4_set(fib, addr[i], 32, want[i], NULL), 0);
		}
		fib4_lookup_bulk(fib, addr, have, HO_ARRAY_LEN(addr));
		assert_memory_equal(have, want, sizeof(have));
		for (unsigned i = 0; i < HO_ARRAY_LEN(addr); i += 2) {
			assert_int_equal(fib4_del(fib, addr[i], 32), 0);
			want[i] = 5;
		}
		fib4_lookup_bulk(fib, addr, have, HO_ARRAY_LEN(addr));
		assert_memory_equal(have, want, sizeof(have));
		if (hops % 2)
			let_go(&held);
	}
	fib4_destroy(fib);
}

/* Routes that say what the default route says, in many /16s, and then another default route. */
static void test_new_default(void **state)
{
	static uint32_t addr[30000], want[30000], have[30000];
	struct fib4 *fib;
	size_t empty;

	assert_int_equal(fib4_create(&fib, NULL, NULL), 0);
	for (unsigned pass = 0; pass < 2; pass++) {
		assert_int_equal(fib4_set(fib, 0, 0, 5, NULL), 0);
		if (pass == 0)
			empty = fib4_memory_bytes(fib);
		for (unsigned i = 0; i < HO_ARRAY_LEN(addr); i++)
			assert_int_equal(fib4_set(fib, i << 16, 24, 5, NULL), 0);
		assert_int_equal(fib4_set(fib, 0, 0, 7, NULL), 0);
		for (unsigned inside = 0; inside < 2; inside++) {
			for (unsigned i = 0; i < HO_ARRAY_LEN(addr); i++) {
				addr[i] = (i << 16) + (inside ? 9 : 1 << 8);
				want[i] = inside ? 5 : 7;
			}
			fib4_lookup_bulk(fib, addr, have, HO_ARRAY_LEN(addr));
			assert_memory_equal(have, want, sizeof(have));
		}
		assert_int_equal(fib4_del(fib, 0, 0), 0);
		for (unsigned i = 0; i < HO_ARRAY_LEN(addr); i++)
			assert_int_equal(fib4_del(fib, i << 16, 24), 0);
		assert_int_equal(fib4_set(fib, 0, 0, 5, NULL), 0);
		assert_true(fib4_memory_bytes(fib) <= empty + 8);
	}
	fib4_destroy(fib);
}

/* A number is not given to another next hop before a grace period. */
static void test_numbers(void **state)
{
	struct held held = { NULL, &held.first };
	struct fib_reclaim reclaim = { hold, let_go, &held };
	static struct fib_numbers n;
	unsigned number;

	fib_numbers_init(&n, &reclaim);
	assert_int_equal(fib_numbers_of(&n, 0), 0);
	for (unsigned i = 1; i < FIB_NUMBERS_END; i++) {
		fib_numbers_refill(&n);
		number = fib_numbers_of(&n, i * 1000);
		assert_in_range(number, 1, FIB_NUMBERS_END - 1);
		assert_int_equal(n.answer[number], i * 1000);
		fib_numbers_use(&n, number, 2);
	}
	assert_int_equal(fib_numbers_of(&n, 7), FIB_NUMBER_NONE);
	number = fib_numbers_of(&n, 5000);
	fib_numbers_use(&n, number, -1);
	fib_numbers_refill(&n);
	assert_null(held.first);
	fib_numbers_use(&n, number, -1);
	/* Kept as long as nobody else wants it. */
	assert_int_equal(fib_numbers_of(&n, 5000), number);
	fib_numbers_refill(&n);
	assert_non_null(held.first);
	assert_int_equal(fib_numbers_of(&n, 5000), FIB_NUMBER_NONE);
	fib_numbers_refill(&n);
	assert_int_equal(fib_numbers_of(&n, 7), FIB_NUMBER_NONE);
	assert_int_equal(n.answer[number], 5000);
	let_go(&held);
	fib_numbers_refill(&n);
	assert_int_equal(fib_numbers_of(&n, 7), number);
	assert_int_equal(fib_numbers_of(&n, 6000), fib_numbers_of(&n, 6000));
	assert_int_equal(fib_numbers_of(&n, 8), FIB_NUMBER_NONE);
}

static void test_errors(void **state)
{
	uint8_t addr[16] = { 0x20, 1 };
	struct ho_err err = { 0 };
	struct fib4 *v4;
	struct fib6 *v6;

	assert_int_equal(fib4_create(&v4, NULL, &err), 0);
	assert_int_equal(fib4_set(v4, 0, 33, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "33"));
	assert_int_equal(fib4_set(v4, 0, 8, 0, &err), -EINVAL);
	assert_int_equal(fib4_set(v4, 0, 8, FIB_NH_MAX + 1, &err), -EINVAL);
	assert_int_equal(fib4_del(v4, 0, 33), -EINVAL);
	assert_int_equal(fib4_del(v4, 0, 8), -ENOENT);
	assert_int_equal(fib4_del(v4, 0, 24), -ENOENT);
	assert_int_equal(fib4_del(v4, 0, 32), -ENOENT);
	assert_int_equal(fib4_get(v4, 0, 33), 0);
	/* Bits beyond the length do not matter. */
	assert_int_equal(fib4_set(v4, 0x0a0b0cff, 24, FIB_NH_MAX, &err), 0);
	assert_int_equal(fib4_get(v4, 0x0a0b0c01, 24), FIB_NH_MAX);
	assert_int_equal(fib4_lookup(v4, 0x0a0b0c02), FIB_NH_MAX);
	assert_int_equal(fib4_count(v4), 1);
	fib4_destroy(v4);

	assert_int_equal(fib6_create(&v6, NULL, &err), 0);
	assert_int_equal(fib6_set(v6, addr, 129, 1, &err), -EINVAL);
	assert_int_equal(fib6_set(v6, addr, 64, 0, &err), -EINVAL);
	assert_int_equal(fib6_del(v6, addr, 129), -EINVAL);
	assert_int_equal(fib6_del(v6, addr, 64), -ENOENT);
	assert_int_equal(fib6_set(v6, addr, 128, 9, &err), 0);
	assert_int_equal(fib6_lookup(v6, addr), 9);
	addr[15] = 1;
	assert_int_equal(fib6_lookup(v6, addr), 0);
	fib6_destroy(v6);
	fib4_destroy(NULL);
	fib6_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random4), cmocka_unit_test(test_random4_deferred),
		cmocka_unit_test(test_random6), cmocka_unit_test(test_random6_deferred),
		cmocka_unit_test(test_levels),  cmocka_unit_test(test_full_nodes),
		cmocka_unit_test(test_errors),  cmocka_unit_test(test_many_hops),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_new_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
