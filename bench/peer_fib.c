// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lookups and updates of holdoff's forwarding tables and of DPDK's, in one process: the same
 * routes, the same addresses, in turns, the answers compared.
 *
 *   peer_fib FAMILY ROUTES SHAPE BULK ROUNDS [EAL options]
 *
 * FAMILY 4 or 6; SHAPE uniform or internet. Prints lines of
 *   memory METHOD MB | update METHOD ns | lookup METHOD ADDRESSES ns
 * where ns are medians of the rounds. `update` is the mean of taking a route away and of adding it
 * again, over a tenth of the routes in random order.
 *
 * Built by bench/fib.sh, once for each DPDK.
 */
#include <rte_eal.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "packet/parse.h"
#include "route/fib4.h"
#include "route/fib6.h"
#include "route/fib_gen.h"

#define ADDRESSES  (1u << 20)
#define BULK_MAX   1024u
#define ROUNDS_MAX 51

struct bench {
	unsigned family, bulk, rounds;
	size_t n;
	struct fib_gen_route *routes;
	uint32_t *addr4; /* host order */
	struct fib6_addr *addr6;
	unsigned addresses; /* of the stream; it is gone through until ADDRESSES are done */
};

/* One way to look up: `run` goes through the stream once and returns the sum of the answers. */
struct method {
	const char *name;
	void *table;
	uint64_t (*run)(const struct bench *b, void *table);
	double ns[ROUNDS_MAX];
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare_double);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/*
 * LOOKUP(from, to, n) for the whole stream. The answers are summed only where they are compared
 * (BULK_MAX at a time stay in the cache): a benchmark that reads each would measure that.
 */
#define RUN(NH_TYPE, LOOKUP)                                          \
	static NH_TYPE nh[BULK_MAX];                                  \
	uint64_t sum = 0;                                             \
                                                                      \
	for (unsigned i = 0; i < b->addresses; i += b->bulk) {        \
		LOOKUP;                                               \
		if (b->rounds == 0) {                                 \
			for (unsigned k = 0; k < b->bulk; k++)        \
				sum += (uint64_t)nh[k] * (i + k + 1); \
		}                                                     \
	}                                                             \
	return sum;

static uint64_t run_holdoff4(const struct bench *b, void *table)
{
	RUN(uint32_t, fib4_lookup_bulk(table, b->addr4 + i, nh, b->bulk))
}

static uint64_t run_holdoff6(const struct bench *b, void *table)
{
	RUN(uint32_t, fib6_lookup_bulk(table, b->addr6 + i, nh, b->bulk))
}

static uint64_t run_fib(const struct bench *b, void *table)
{
	RUN(uint64_t, rte_fib_lookup_bulk(table, b->addr4 + i, nh, (int)b->bulk))
}

static uint64_t run_fib6(const struct bench *b, void *table)
{
	RUN(uint64_t, rte_fib6_lookup_bulk(table, (uint8_t(*)[16])(uintptr_t)(b->addr6 + i), nh,
					   (int)b->bulk))
}

static uint64_t run_lpm6(const struct bench *b, void *table)
{
	RUN(int32_t, {
		rte_lpm6_lookup_bulk_func(table, (uint8_t(*)[16])(uintptr_t)(b->addr6 + i), nh,
					  b->bulk);
		if (b->rounds == 0)
			for (unsigned k = 0; k < b->bulk; k++)
				nh[k] = nh[k] < 0 ? 0 : nh[k];
	})
}

static uint64_t run_lpm_single(const struct bench *b, void *table)
{
	RUN(
		uint32_t, for (unsigned k = 0; k < b->bulk; k++) {
			if (rte_lpm_lookup(table, b->addr4[i + k], &nh[k]))
				nh[k] = 0;
		})
}

static uint64_t run_lpm_x4(const struct bench *b, void *table)
{
	RUN(
		uint32_t, for (unsigned k = 0; k < b->bulk; k += 4) {
			rte_lpm_lookupx4(table,
					 _mm_loadu_si128((const __m128i *)(b->addr4 + i + k)),
					 nh + k, 0);
		})
}

static uint64_t run_lpm_bulk(const struct bench *b, void *table)
{
	RUN(uint32_t, {
		rte_lpm_lookup_bulk(table, b->addr4 + i, nh, b->bulk);
		if (b->rounds == 0)
			for (unsigned k = 0; k < b->bulk; k++)
				nh[k] = nh[k] & RTE_LPM_LOOKUP_SUCCESS ? nh[k] & 0xffffff : 0;
	})
}

/* Adding and taking away, of each kind of table. */
struct updates {
	const char *name;
	void *table;
	int (*add)(void *table, const struct fib_gen_route *r);
	int (*del)(void *table, const struct fib_gen_route *r);
};

static int add_holdoff4(void *t, const struct fib_gen_route *r)
{
	return fib4_set(t, pk_load32(r->addr.byte), r->len, r->nh, NULL);
}

static int del_holdoff4(void *t, const struct fib_gen_route *r)
{
	return fib4_del(t, pk_load32(r->addr.byte), r->len);
}

static int add_holdoff6(void *t, const struct fib_gen_route *r)
{
	return fib6_set(t, r->addr.byte, r->len, r->nh, NULL);
}

static int del_holdoff6(void *t, const struct fib_gen_route *r)
{
	return fib6_del(t, r->addr.byte, r->len);
}

static int add_fib(void *t, const struct fib_gen_route *r)
{
	return rte_fib_add(t, pk_load32(r->addr.byte), r->len, r->nh);
}

static int del_fib(void *t, const struct fib_gen_route *r)
{
	return rte_fib_delete(t, pk_load32(r->addr.byte), r->len);
}

static int add_lpm(void *t, const struct fib_gen_route *r)
{
	return rte_lpm_add(t, pk_load32(r->addr.byte), r->len, r->nh);
}

static int del_lpm(void *t, const struct fib_gen_route *r)
{
	return rte_lpm_delete(t, pk_load32(r->addr.byte), r->len);
}

static int add_fib6(void *t, const struct fib_gen_route *r)
{
	return rte_fib6_add(t, r->addr.byte, r->len, r->nh);
}

static int del_fib6(void *t, const struct fib_gen_route *r)
{
	return rte_fib6_delete(t, r->addr.byte, r->len);
}

static int add_lpm6(void *t, const struct fib_gen_route *r)
{
	return rte_lpm6_add(t, r->addr.byte, r->len, r->nh);
}

static int del_lpm6(void *t, const struct fib_gen_route *r)
{
	return rte_lpm6_delete(t, r->addr.byte, r->len);
}

static void *need(void *table, const char *what)
{
	if (!table) {
		fprintf(stderr, "peer_fib: %s: no table; more memory for DPDK?\n", what);
		exit(2);
	}
	return table;
}

static void fill(const struct bench *b, const struct updates *u)
{
	double start = now_ns();

	for (size_t i = 0; i < b->n; i++) {
		int rc = u->add(u->table, &b->routes[i]);

		if (rc) {
			fprintf(stderr, "peer_fib: %s: route %zu: error %d\n", u->name, i, rc);
			exit(2);
		}
	}
	printf("load %s %.0f ns\n", u->name, (now_ns() - start) / (double)b->n);
}

/* Tables whose updates take microseconds get fewer; each kind gets the same ones first. */
static double update_cost(const struct bench *b, const struct updates *u)
{
	double start = now_ns();
	size_t done = 0;

	for (size_t i = 0; i < b->n / 10; i++) {
		if (u->del(u->table, &b->routes[i * 10]) || u->add(u->table, &b->routes[i * 10])) {
			fprintf(stderr, "peer_fib: %s: update failed\n", u->name);
			exit(2);
		}
		done += 2;
		if (i % 1024 == 1023 && now_ns() - start > 1e9)
			break;
	}
	return (now_ns() - start) / (double)done;
}

static struct rte_fib *make_fib(const char *name, enum rte_fib_dir24_8_nh_sz size, size_t routes)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = 0,
		.max_routes = (int)routes + 1000,
		.dir24_8 = { .nh_sz = size, .num_tbl8 = 32000 },
	};

	return need(rte_fib_create(name, 0, &conf), name);
}

static struct rte_fib6 *make_fib6(const char *name, enum rte_fib_trie_nh_sz size, size_t routes)
{
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE,
		.default_nh = 0,
		.max_routes = (int)routes + 1000,
		.trie = { .nh_sz = size, .num_tbl8 = size == RTE_FIB6_TRIE_2B ? 32000 : 400000 },
	};

	return need(rte_fib6_create(name, 0, &conf), name);
}

static bool select_fib(struct rte_fib *fib, enum rte_fib_lookup_type type)
{
	return rte_fib_select_lookup(fib, type) == 0;
}

static void compare_all(struct bench *b, struct method *m, unsigned n, const char *stream)
{
	unsigned rounds = b->rounds;
	uint64_t first = 0;

	b->rounds = 0;
	for (unsigned i = 0; i < n; i++) {
		uint64_t sum = m[i].run(b, m[i].table);

		if (i == 0)
			first = sum;
		else if (sum != first) {
			fprintf(stderr, "peer_fib: %s and %s differ on %s addresses\n", m[0].name,
				m[i].name, stream);
			exit(2);
		}
	}
	b->rounds = rounds;
}

static void measure(struct bench *b, struct method *m, unsigned n)
{
	static const struct {
		const char *name;
		enum fib_gen_addresses kind;
	} streams[] = {
		{ "uniform", FIB_GEN_ANYWHERE },
		{ "inside", FIB_GEN_INSIDE },
		{ "zipf", FIB_GEN_ZIPF },
		{ "hot", FIB_GEN_HOT },
	};

	for (unsigned s = 0; s < sizeof(streams) / sizeof(streams[0]); s++) {
		unsigned passes;

		fib_gen_addresses(b->addr6, ADDRESSES, b->family, streams[s].kind, b->routes, b->n,
				  99);
		for (unsigned i = 0; i < ADDRESSES; i++)
			b->addr4[i] = pk_load32(b->addr6[i].byte);
		b->addresses = streams[s].kind == FIB_GEN_HOT ? FIB_GEN_HOT_ADDRESSES : ADDRESSES;
		passes = ADDRESSES / b->addresses;
		compare_all(b, m, n, streams[s].name);
		for (unsigned round = 0; round < b->rounds; round++) {
			for (unsigned i = 0; i < n; i++) {
				double start;

				/* Once for the caches: the method before had them. */
				m[i].run(b, m[i].table);
				start = now_ns();
				for (unsigned p = 0; p < passes; p++)
					m[i].run(b, m[i].table);
				m[i].ns[round] = (now_ns() - start) / ADDRESSES;
			}
		}
		for (unsigned i = 0; i < n; i++) {
			double middle = median(m[i].ns, b->rounds);

			printf("lookup %s %s %.2f ns (%.2f..%.2f)\n", m[i].name, streams[s].name,
			       middle, m[i].ns[0], m[i].ns[b->rounds - 1]);
		}
		fflush(stdout);
	}
}

static void measure_updates(struct bench *b, struct updates *u, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		double ns[ROUNDS_MAX];

		for (unsigned round = 0; round < b->rounds; round++)
			ns[round] = update_cost(b, &u[i]);
		printf("update %s %.0f ns\n", u[i].name, median(ns, b->rounds));
		fflush(stdout);
	}
}

/* The tables are made with each limit in turn, since it counts when a table is made. */
static void *make_holdoff(const struct bench *b, const char *level)
{
	struct fib4 *v4 = NULL;
	struct fib6 *v6 = NULL;

	if (level)
		setenv("HOLDOFF_SIMD", level, 1);
	if (b->family == 4 ? fib4_create(&v4, NULL, NULL) : fib6_create(&v6, NULL, NULL))
		need(NULL, "holdoff");
	unsetenv("HOLDOFF_SIMD");
	return b->family == 4 ? (void *)v4 : (void *)v6;
}

static void bench4(struct bench *b)
{
	struct rte_lpm_config lpm_conf = { .max_rules = (uint32_t)b->n + 1000, .number_tbl8s = 40000 };
	struct rte_fib *fib2 = make_fib("fib2", RTE_FIB_DIR24_8_2B, b->n);
	struct rte_fib *fib2v = make_fib("fib2v", RTE_FIB_DIR24_8_2B, b->n);
	struct rte_fib *fib4v = make_fib("fib4v", RTE_FIB_DIR24_8_4B, b->n);
	struct rte_lpm *lpm = need(rte_lpm_create("lpm", 0, &lpm_conf), "rte_lpm");
	struct updates u[] = {
		{ "holdoff", make_holdoff(b, NULL), add_holdoff4, del_holdoff4 },
		{ "holdoff/avx2", make_holdoff(b, "avx2"), add_holdoff4, del_holdoff4 },
		{ "rte_fib/2B/scalar", fib2, add_fib, del_fib },
		{ "rte_fib/2B/avx512", fib2v, add_fib, del_fib },
		{ "rte_fib/4B/avx512", fib4v, add_fib, del_fib },
		{ "rte_lpm", lpm, add_lpm, del_lpm },
	};
	struct method m[10] = {
		{ "holdoff", u[0].table, run_holdoff4, { 0 } },
		{ "holdoff/avx2", u[1].table, run_holdoff4, { 0 } },
		{ "rte_lpm/single", lpm, run_lpm_single, { 0 } },
		{ "rte_lpm/x4", lpm, run_lpm_x4, { 0 } },
		{ "rte_lpm/bulk", lpm, run_lpm_bulk, { 0 } },
		{ "rte_fib/2B/scalar", fib2, run_fib, { 0 } },
	};
	unsigned n = 6;

	select_fib(fib2, RTE_FIB_LOOKUP_DIR24_8_SCALAR_INLINE);
	if (select_fib(fib2v, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512) &&
	    select_fib(fib4v, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512)) {
		m[n++] = (struct method){ "rte_fib/2B/avx512", fib2v, run_fib, { 0 } };
		m[n++] = (struct method){ "rte_fib/4B/avx512", fib4v, run_fib, { 0 } };
	}
	for (unsigned i = 0; i < sizeof(u) / sizeof(u[0]); i++)
		fill(b, &u[i]);
	printf("memory holdoff %.1f MB\n", (double)fib4_memory_bytes(u[0].table) / 1048576);
	measure(b, m, n);
	measure_updates(b, u, sizeof(u) / sizeof(u[0]));
}

static void bench6(struct bench *b)
{
	struct rte_lpm6_config lpm_conf = { .max_rules = (uint32_t)b->n + 1000,
					    .number_tbl8s = 400000 };
	struct rte_fib6 *fib4 = make_fib6("fib64", RTE_FIB6_TRIE_4B, b->n);
	struct rte_fib6 *fib4v = make_fib6("fib64v", RTE_FIB6_TRIE_4B, b->n);
	struct rte_lpm6 *lpm = need(rte_lpm6_create("lpm6", 0, &lpm_conf), "rte_lpm6");
	struct updates u[] = {
		{ "holdoff", make_holdoff(b, NULL), add_holdoff6, del_holdoff6 },
		{ "holdoff/avx2", make_holdoff(b, "avx2"), add_holdoff6, del_holdoff6 },
		{ "rte_fib6/4B/scalar", fib4, add_fib6, del_fib6 },
		{ "rte_fib6/4B/avx512", fib4v, add_fib6, del_fib6 },
		{ "rte_lpm6", lpm, add_lpm6, del_lpm6 },
	};
	struct method m[8] = {
		{ "holdoff", u[0].table, run_holdoff6, { 0 } },
		{ "holdoff/avx2", u[1].table, run_holdoff6, { 0 } },
		{ "rte_lpm6/bulk", lpm, run_lpm6, { 0 } },
		{ "rte_fib6/4B/scalar", fib4, run_fib6, { 0 } },
	};
	unsigned n = 4;

	rte_fib6_select_lookup(fib4, RTE_FIB6_LOOKUP_TRIE_SCALAR);
	if (rte_fib6_select_lookup(fib4v, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512) == 0)
		m[n++] = (struct method){ "rte_fib6/4B/avx512", fib4v, run_fib6, { 0 } };
	for (unsigned i = 0; i < sizeof(u) / sizeof(u[0]); i++)
		fill(b, &u[i]);
	printf("memory holdoff %.1f MB\n", (double)fib6_memory_bytes(u[0].table) / 1048576);
	measure(b, m, n);
	measure_updates(b, u, sizeof(u) / sizeof(u[0]));
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct ho_err err = { 0 };

	if (argc < 6) {
		fprintf(stderr, "usage: peer_fib FAMILY ROUTES uniform|internet BULK ROUNDS "
				"[EAL options]\n");
		return 1;
	}
	b.family = (unsigned)atoi(argv[1]);
	b.n = strtoul(argv[2], NULL, 10);
	b.bulk = (unsigned)atoi(argv[4]);
	b.rounds = (unsigned)atoi(argv[5]);
	if ((b.family != 4 && b.family != 6) || b.bulk % 4 || b.bulk == 0 || b.bulk > BULK_MAX ||
	    FIB_GEN_HOT_ADDRESSES % b.bulk || b.rounds == 0 || b.rounds > ROUNDS_MAX) {
		fprintf(stderr,
			"peer_fib: BULK must divide 1024 and be a multiple of 4, ROUNDS be "
			"1 to %d\n",
			ROUNDS_MAX);
		return 1;
	}
	argv[5] = argv[0];
	if (rte_eal_init(argc - 5, argv + 5) < 0) {
		fprintf(stderr, "peer_fib: DPDK does not start\n");
		return 2;
	}
	b.addr4 = malloc(ADDRESSES * sizeof(*b.addr4));
	b.addr6 = malloc(ADDRESSES * sizeof(*b.addr6));
	if (!b.addr4 || !b.addr6)
		return 2;
	if (fib_gen_routes(&b.routes, b.n, b.family,
			   argv[3][0] == 'u' ? FIB_GEN_UNIFORM : FIB_GEN_INTERNET, 200, 1, &err)) {
		fprintf(stderr, "peer_fib: %s\n", err.text);
		return 2;
	}
	if (b.family == 4)
		bench4(&b);
	else
		bench6(&b);
	rte_eal_cleanup();
	return 0;
}
