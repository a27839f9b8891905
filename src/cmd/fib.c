// SPDX-License-Identifier: BSD-2-Clause
/* holdoff fib load FILE | lookup ADDR... | bench: the router's forwarding tables by themselves. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/units.h"
#include "cmd/fib.h"
#include "cmd/options.h"
#include "packet/parse.h"

struct fib_options {
	const char *file;
	char **address; /* lookup's arguments */
	unsigned addresses;
	bool lookup, json;
	struct ho_err *err;
};

static const struct argp_option load_table[] = {
	{ "json", 'j', NULL, 0, "One JSON object", 1 },
	{ 0 },
};

static const struct argp_option lookup_table[] = {
	{ "file", 'f', "FILE", 0, "The routes [standard input]", 1 },
	{ "json", 'j', NULL, 0, "One JSON object", 1 },
	{ 0 },
};

static error_t parse_fib(int key, char *arg, struct argp_state *state)
{
	struct fib_options *o = state->input;
	int rc = 0;

	switch (key) {
	case 'f':
		o->file = arg;
		break;
	case 'j':
		o->json = true;
		break;
	case ARGP_KEY_ARG:
		if (o->lookup)
			return ARGP_ERR_UNKNOWN; /* all of them at once */
		if (o->file)
			rc = ho_err_set(o->err, -EINVAL, "'%s': load reads one file", arg);
		o->file = arg;
		break;
	case ARGP_KEY_ARGS:
		o->address = state->argv + state->next;
		o->addresses = (unsigned)(state->argc - state->next);
		break;
	case ARGP_KEY_END:
		if (o->lookup && !o->addresses)
			rc = ho_err_set(o->err, -EINVAL, "fib lookup needs an address");
		else if (!o->lookup && !o->file)
			rc = ho_err_set(o->err, -EINVAL,
					"fib load needs a file of routes; - is standard input");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Takes each route away and adds it again, for at most a second. Nanoseconds an update. */
static double update_ns(struct cmd_fib_routes *routes)
{
	double start = now_ns();
	size_t done = 0;

	for (size_t i = 0; i < routes->n; i++) {
		const struct cmd_fib_route *r = &routes->route[i];
		uint32_t addr4 = pk_load32(r->addr.byte);

		if (r->v6) {
			fib6_del(routes->fib6, r->addr.byte, r->len);
			fib6_set(routes->fib6, r->addr.byte, r->len, r->nh, NULL);
		} else {
			fib4_del(routes->fib4, addr4, r->len);
			fib4_set(routes->fib4, addr4, r->len, r->nh, NULL);
		}
		done += 2;
		if (i % 256 == 255 && now_ns() - start > 1e9)
			break;
	}
	return done ? (now_ns() - start) / (double)done : 0;
}

static int load(const struct fib_options *o, struct cmd_fib_routes *routes)
{
	size_t v4 = fib4_count(routes->fib4), v6 = fib6_count(routes->fib6);
	size_t bytes4 = fib4_memory_bytes(routes->fib4), bytes6 = fib6_memory_bytes(routes->fib6);
	double update = update_ns(routes);

	if (o->json) {
		json_t *json = ho_json_begin("fib load");

		json_object_set_new(json, "ipv4_routes", json_integer((json_int_t)v4));
		json_object_set_new(json, "ipv6_routes", json_integer((json_int_t)v6));
		json_object_set_new(json, "repeated", json_integer((json_int_t)routes->repeated));
		json_object_set_new(json, "next_hops",
				    json_integer((json_int_t)routes->nexthops - 1));
		json_object_set_new(json, "ipv4_bytes", json_integer((json_int_t)bytes4));
		json_object_set_new(json, "ipv6_bytes", json_integer((json_int_t)bytes6));
		json_object_set_new(json, "load_ns", json_integer((json_int_t)routes->load_ns));
		json_object_set_new(json, "update_ns", json_real(update));
		return ho_json_print(stdout, json) ? CMD_FAILED : CMD_DONE;
	}
	printf("%zu IPv4 and %zu IPv6 routes to %zu next hops", v4, v6, routes->nexthops - 1);
	if (routes->repeated)
		printf("; %zu lines repeat a prefix and do not count", routes->repeated);
	printf("\nmemory   %.1f MB for IPv4, %.1f MB for IPv6\n", (double)bytes4 / 1048576,
	       (double)bytes6 / 1048576);
	printf("load     %.1f ms, reading the file included\n", routes->load_ns / 1e6);
	if (update > 0)
		printf("updates  %.2f million a second, %.0f ns each\n", 1e3 / update, update);
	return fflush(stdout) ? CMD_FAILED : CMD_DONE;
}

static int lookup(const struct fib_options *o, const struct cmd_fib_routes *routes)
{
	json_t *results = json_array(), *json;

	for (unsigned i = 0; i < o->addresses; i++) {
		bool v6 = strchr(o->address[i], ':') != NULL;
		struct fib6_addr addr = { { 0 } }, masked;
		char text[INET6_ADDRSTRLEN], prefix[INET6_ADDRSTRLEN + 4] = "";
		unsigned len = 0;
		uint32_t nh;

		if (inet_pton(v6 ? AF_INET6 : AF_INET, o->address[i], addr.byte) != 1) {
			json_decref(results);
			ho_err_set(o->err, -EINVAL, "'%s' is no IPv4 or IPv6 address",
				   o->address[i]);
			return CMD_USAGE;
		}
		nh = cmd_fib_match(routes, &addr, v6, &len);
		masked = addr;
		for (unsigned bit = len; bit < 128; bit++)
			masked.byte[bit / 8] &= (uint8_t) ~(1u << (7 - bit % 8));
		inet_ntop(v6 ? AF_INET6 : AF_INET, masked.byte, text, sizeof(text));
		if (nh)
			snprintf(prefix, sizeof(prefix), "%s/%u", text, len);
		if (o->json)
			json_array_append_new(results,
					      json_pack("{s:s, s:s?, s:s?}", "address",
							o->address[i], "prefix", nh ? prefix : NULL,
							"next_hop", routes->nexthop[nh]));
		else if (nh)
			printf("%s %s %s\n", o->address[i], prefix, routes->nexthop[nh]);
		else
			printf("%s no route\n", o->address[i]);
	}
	if (!o->json) {
		json_decref(results);
		return fflush(stdout) ? CMD_FAILED : CMD_DONE;
	}
	json = ho_json_begin("fib lookup");
	json_object_set_new(json, "results", results);
	return ho_json_print(stdout, json) ? CMD_FAILED : CMD_DONE;
}

static const char usage_text[] =
	"Usage: holdoff fib load FILE [-j]\n"
	"  or:  holdoff fib lookup ADDRESS... [-f FILE] [-j]\n"
	"  or:  holdoff fib bench [OPTION...]\n"
	"The router's forwarding tables by themselves.\n\n"
	"  load      reads routes: how many, memory, time, updates a second\n"
	"  lookup    the longest prefix for each address, and its next hop\n"
	"  bench     lookups and updates of generated tables\n\n"
	"'holdoff fib load --help' and so on show the options.\n";

int cmd_fib(int argc, char **argv, struct ho_err *err)
{
	static const struct argp load_argp = {
		load_table,
		parse_fib,
		"FILE",
		"Reads routes, a line each: PREFIX NEXTHOP, or as 'ip route' prints them. Prints "
		"how many, the memory, the time, and updates a second.",
		NULL,
		NULL,
		NULL
	};
	static const struct argp lookup_argp = {
		lookup_table,
		parse_fib,
		"ADDRESS...",
		"Prints for each address the longest prefix that holds it, and its next hop.",
		NULL,
		NULL,
		NULL
	};
	struct fib_options o = { .err = err };
	struct cmd_fib_routes routes;
	int status, rc;

	if (argc >= 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?"))) {
		fputs(usage_text, stdout);
		return CMD_DONE;
	}
	if (argc >= 2 && !strcmp(argv[1], "bench"))
		return cmd_fib_bench(argc - 1, argv + 1, err);
	if (argc < 2 || (strcmp(argv[1], "load") && strcmp(argv[1], "lookup"))) {
		ho_err_set(err, -EINVAL, "fib needs one of load, lookup and bench%s%s%s",
			   argc < 2 ? "" : ", not '", argc < 2 ? "" : argv[1], argc < 2 ? "" : "'");
		return CMD_USAGE;
	}
	o.lookup = !strcmp(argv[1], "lookup");
	if (cmd_parse_sub("fib", o.lookup ? &lookup_argp : &load_argp, argc - 1, argv + 1, &o, err))
		return CMD_USAGE;
	rc = cmd_fib_read(&routes, o.file ? o.file : "-", err);
	if (rc)
		status = rc == -ENOMEM ? CMD_FAILED : CMD_USAGE;
	else
		status = o.lookup ? lookup(&o, &routes) : load(&o, &routes);
	cmd_fib_free(&routes);
	return status;
}
