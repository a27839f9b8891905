/* SPDX-License-Identifier: BSD-2-Clause */
/* 'holdoff fib': what its files share. */
#ifndef HOLDOFF_CMD_FIB_H
#define HOLDOFF_CMD_FIB_H

#include <stdbool.h>
#include <stdio.h>

#include "route/fib4.h"
#include "route/fib6.h"
#include "route/fib_gen.h"

struct cmd_fib_route {
	struct fib6_addr addr; /* network order; IPv4 in the first four bytes */
	uint8_t len;
	bool v6;
	uint32_t nh; /* index into cmd_fib_routes.nexthop */
};

/* What a file of routes says. The first line of a prefix counts. */
struct cmd_fib_routes {
	struct cmd_fib_route *route;
	size_t n, room;
	size_t repeated; /* lines with a prefix that was there before */
	char **nexthop;  /* texts; [0] is NULL, next hop 0 being none */
	size_t nexthops, nexthop_room;
	struct fib4 *fib4; /* the routes in tables */
	struct fib6 *fib6;
	double load_ns;
};

/*
 * Reads "PREFIX NEXTHOP" lines and what 'ip route' prints, and makes the tables; path "-" is
 * standard input. -EINVAL: the error begins with file, line and column. To be freed in any case.
 */
int cmd_fib_read(struct cmd_fib_routes *out, const char *path, struct ho_err *err);
void cmd_fib_free(struct cmd_fib_routes *routes);

/* The longest prefix of the tables for an address, and its next hop; 0: none. */
uint32_t cmd_fib_match(const struct cmd_fib_routes *routes, const struct fib6_addr *addr, bool v6,
		       unsigned *len);

int cmd_fib_bench(int argc, char **argv, struct ho_err *err);

#endif
