// SPDX-License-Identifier: BSD-2-Clause
/* holdoff fib bench: how fast the tables are on this machine, with generated routes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/cpu.h"
#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/fib.h"
#include "cmd/options.h"
#include "packet/parse.h"
#include "runtime/tsc.h"

#define STREAM     (1u << 20) /* addresses that are gone through */
#define BULK_MAX   1024u
#define ROUNDS_MAX 101u

struct fib_bench {
	uint64_t n;
	unsigned family, bulk, rounds;
	enum fib_gen_shape shape;
	int addresses; /* enum fib_gen_addresses; negative: all kinds */
	uint64_t seed;
	bool json;
	struct ho_err *err;

	struct rt_tsc tsc;
	struct fib_gen_route *routes;
	struct fib4 *fib4;
	struct fib6 *fib6;
	uint32_t *addr4, nh[BULK_MAX];
	struct fib6_addr *addr6;
};

enum { OPT_ROUTES = 0x300, OPT_FAMILY, OPT_SHAPE, OPT_ADDRESSES, OPT_BULK, OPT_ROUNDS, OPT_SEED };

static const struct argp_option bench_table[] = {
	{ "routes", OPT_ROUTES, "N", 0, "Routes [950k of IPv4, 200k of IPv6]", 1 },
	{ "family", OPT_FAMILY, "4|6", 0, "IPv4 or IPv6 [4]", 1 },
	{ "shape", OPT_SHAPE, "SHAPE", 0,
	  "uniform or internet: lengths and places as in the global tables [internet]", 1 },
	{ "addresses", OPT_ADDRESSES, "KIND", 0,
	  "uniform, inside of routes, internet (few routes get most), hot (1024 addresses) [all]",
	  1 },
	{ "bulk", OPT_BULK, "N", 0, "Addresses a call, 1 to 1024 [64]", 1 },
	{ "rounds", OPT_ROUNDS, "N", 0, "Figures are medians of N [5]", 1 },
	{ "seed", OPT_SEED, "N", 0, "Of routes and addresses [1]", 1 },
	{ "json", 'j', NULL, 0, "One JSON object", 1 },
	{ 0 },
};

static const char *const kinds[] = {
	[FIB_GEN_ANYWHERE] = "uniform",
	[FIB_GEN_INSIDE] = "inside",
	[FIB_GEN_ZIPF] = "internet",
	[FIB_GEN_HOT] = "hot",
};

static error_t parse_bench(int key, char *arg, struct argp_state *state)
{
	struct fib_bench *b = state->input;
	int rc = 0;

	switch (key) {
	case OPT_ROUTES:
		rc = ho_parse_count(arg, &b->n, b->err);
		if (!rc && b->n == 0)
			rc = ho_err_set(b->err, -EINVAL, "--routes 0: at least one is needed");
		break;
	case OPT_FAMILY:
		if (strcmp(arg, "4") && strcmp(arg, "6"))
			rc = ho_err_set(b->err, -EINVAL, "--family %s: it must be 4 or 6", arg);
		b->family = arg[0] == '6' ? 6 : 4;
		break;
	case OPT_SHAPE:
		if (strcmp(arg, "uniform") && strcmp(arg, "internet"))
			rc = ho_err_set(b->err, -EINVAL,
					"--shape %s: it must be uniform or internet", arg);
		b->shape = arg[0] == 'u' ? FIB_GEN_UNIFORM : FIB_GEN_INTERNET;
		break;
	case OPT_ADDRESSES:
		b->addresses = -1;
		for (unsigned i = 0; i < HO_ARRAY_LEN(kinds); i++) {
			if (!strcmp(arg, kinds[i]))
				b->addresses = (int)i;
		}
		if (b->addresses < 0)
			rc = ho_err_set(b->err, -EINVAL,
					"--addresses %s: uniform, inside, internet and hot exist",
					arg);
		break;
	case OPT_BULK:
		rc = cmd_parse_number("bulk", arg, 1, BULK_MAX, &b->bulk, b->err);
		break;
	case OPT_ROUNDS:
		rc = cmd_parse_number("rounds", arg, 1, ROUNDS_MAX, &b->rounds, b->err);
		break;
	case OPT_SEED:
		rc = ho_parse_count(arg, &b->seed, b->err);
		break;
	case 'j':
		b->json = true;
		break;
	case ARGP_KEY_ARG:
		rc = ho_err_set(b->err, -EINVAL, "'%s': fib bench takes options only", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

static int set_route(struct fib_bench *b, const struct fib_gen_route *r)
{
	return b->family == 4 ? fib4_set(b->fib4, pk_load32(r->addr.byte), r->len, r->nh, b->err)
			      : fib6_set(b->fib6, r->addr.byte, r->len, r->nh, b->err);
}

static int del_route(struct fib_bench *b, const struct fib_gen_route *r)
{
	return b->family == 4 ? fib4_del(b->fib4, pk_load32(r->addr.byte), r->len)
			      : fib6_del(b->fib6, r->addr.byte, r->len);
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Clock ticks a lookup, the median of the rounds. */
static double lookup_ticks(struct fib_bench *b, enum fib_gen_addresses kind)
{
	unsigned stream = kind == FIB_GEN_HOT ? FIB_GEN_HOT_ADDRESSES : STREAM;
	double ticks[ROUNDS_MAX];

	fib_gen_addresses(b->addr6, STREAM, b->family, kind, b->routes, b->n, b->seed + 1);
	for (unsigned i = 0; i < STREAM; i++)
		b->addr4[i] = pk_load32(b->addr6[i].byte);
	/* The first round fills the caches. */
	for (unsigned round = 0; round <= b->rounds; round++) {
		uint64_t start = rt_tsc_read();

		for (unsigned done = 0; done < STREAM; done += stream) {
			for (unsigned i = 0; i < stream; i += b->bulk) {
				unsigned n = HO_MIN(b->bulk, stream - i);

				if (b->family == 4)
					fib4_lookup_bulk(b->fib4, b->addr4 + i, b->nh, n);
				else
					fib6_lookup_bulk(b->fib6, b->addr6 + i, b->nh, n);
			}
		}
		if (round)
			ticks[round - 1] = (double)(rt_tsc_read() - start) / STREAM;
	}
	qsort(ticks, b->rounds, sizeof(*ticks), compare_double);
	return ticks[b->rounds / 2];
}

static double ticks_ns(const struct fib_bench *b, double ticks)
{
	return ticks * 1e9 / (double)b->tsc.hz;
}

/* Takes a tenth of the routes away, one after the other, and adds each again at once. */
static double update_ticks(struct fib_bench *b)
{
	double ticks[ROUNDS_MAX];

	for (unsigned round = 0; round < b->rounds; round++) {
		uint64_t start = rt_tsc_read();
		size_t done = 0;

		for (size_t i = round % 10; i < b->n; i += 10, done += 2) {
			del_route(b, &b->routes[i]);
			set_route(b, &b->routes[i]);
		}
		ticks[round] = done ? (double)(rt_tsc_read() - start) / (double)done : 0;
	}
	qsort(ticks, b->rounds, sizeof(*ticks), compare_double);
	return ticks[b->rounds / 2];
}

static int run(struct fib_bench *b)
{
	json_t *json = ho_json_begin("fib bench"), *lookups = json_array();
	struct ho_table table;
	uint64_t start;
	double load, update;
	size_t bytes;
	int rc;

	start = rt_tsc_read();
	for (size_t i = 0; i < b->n; i++) {
		rc = set_route(b, &b->routes[i]);
		if (rc)
			goto out;
	}
	load = ticks_ns(b, (double)(rt_tsc_read() - start) / (double)b->n);
	bytes = b->family == 4 ? fib4_memory_bytes(b->fib4) : fib6_memory_bytes(b->fib6);
	if (!b->json)
		printf("%llu IPv%u routes, %s; %s; bulk of %u\n", (unsigned long long)b->n,
		       b->family, b->shape == FIB_GEN_UNIFORM ? "uniform" : "internet",
		       ho_simd_name(ho_simd_level()), b->bulk);
	ho_table_init(&table, stdout);
	ho_table_column(&table, "addresses", -9);
	ho_table_column(&table, "Mlookups/s", 12);
	ho_table_column(&table, "ns", 8);
	ho_table_column(&table, "cycles", 8);
	if (!b->json)
		ho_table_header(&table);
	for (unsigned kind = 0; kind < HO_ARRAY_LEN(kinds); kind++) {
		double ticks, ns;

		if (b->addresses >= 0 && (unsigned)b->addresses != kind)
			continue;
		ticks = lookup_ticks(b, (enum fib_gen_addresses)kind);
		ns = ticks_ns(b, ticks);
		json_array_append_new(lookups,
				      json_pack("{s:s, s:f, s:f, s:f}", "addresses", kinds[kind],
						"lookups_per_second", 1e9 / ns, "lookup_ns", ns,
						"lookup_tsc_cycles", ticks));
		ho_table_cell(&table, "%s", kinds[kind]);
		ho_table_cell(&table, "%.1f", 1e3 / ns);
		ho_table_cell(&table, "%.2f", ns);
		ho_table_cell(&table, "%.1f", ticks);
		if (!b->json && ho_table_row(&table)) {
			rc = -EPIPE;
			goto out;
		}
	}
	update = ticks_ns(b, update_ticks(b));
	rc = 0;
	if (b->json) {
		json_object_set_new(json, "family", json_integer(b->family));
		json_object_set_new(json, "routes", json_integer((json_int_t)b->n));
		json_object_set_new(
			json, "shape",
			json_string(b->shape == FIB_GEN_UNIFORM ? "uniform" : "internet"));
		json_object_set_new(json, "simd", json_string(ho_simd_name(ho_simd_level())));
		json_object_set_new(json, "bulk", json_integer(b->bulk));
		json_object_set_new(json, "memory_bytes", json_integer((json_int_t)bytes));
		json_object_set_new(json, "load_ns_per_route", json_real(load));
		json_object_set_new(json, "update_ns", json_real(update));
		json_object_set(json, "lookups", lookups);
		rc = ho_json_print(stdout, json_incref(json));
	} else {
		printf("memory %.1f MB; loaded in %.0f ns a route; an update takes %.0f ns (%.2f "
		       "million a second)\n",
		       (double)bytes / 1048576, load, update, 1e3 / update);
		rc = fflush(stdout) ? -errno : 0;
	}
out:
	json_decref(lookups);
	json_decref(json);
	return rc;
}

int cmd_fib_bench(int argc, char **argv, struct ho_err *err)
{
	static const struct argp argp = {
		bench_table,
		parse_bench,
		"",
		"Measures lookups and updates of generated tables. Cycles are of the time stamp "
		"counter. HOLDOFF_SIMD limits the vector instructions.",
		NULL,
		NULL,
		NULL
	};
	struct fib_bench *b = calloc(1, sizeof(*b));
	int status = CMD_FAILED;

	if (!b)
		return CMD_FAILED;
	*b = (struct fib_bench){ .family = 4,
				 .bulk = 64,
				 .rounds = 5,
				 .seed = 1,
				 .addresses = -1,
				 .shape = FIB_GEN_INTERNET,
				 .err = err };
	if (cmd_parse_sub("fib", &argp, argc, argv, b, err)) {
		free(b);
		return CMD_USAGE;
	}
	if (!b->n)
		b->n = b->family == 4 ? 950000 : 200000;
	rt_tsc_calibrate(&b->tsc);
	b->addr4 = malloc(STREAM * sizeof(*b->addr4));
	b->addr6 = malloc(STREAM * sizeof(*b->addr6));
	if (!b->addr4 || !b->addr6) {
		ho_err_set(err, -ENOMEM, "no memory for the addresses");
	} else if (fib_gen_routes(&b->routes, b->n, b->family, b->shape, 200, b->seed, err)) {
		status = err->code == -EINVAL ? CMD_USAGE : CMD_FAILED;
	} else if (!(b->family == 4 ? fib4_create(&b->fib4, NULL, err)
				    : fib6_create(&b->fib6, NULL, err))) {
		status = run(b) ? CMD_FAILED : CMD_DONE;
	}
	fib4_destroy(b->fib4);
	fib6_destroy(b->fib6);
	free(b->routes);
	free(b->addr4);
	free(b->addr6);
	free(b);
	return status;
}
