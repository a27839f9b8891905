/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A router's configuration file, for ports that the kernel does not own (docs/router.md). It is
 * read and checked as a whole before anything of it takes effect.
 */
#ifndef HOLDOFF_CMD_FORWARD_FILE_H
#define HOLDOFF_CMD_FORWARD_FILE_H

#include <stdbool.h>

#include "base/error.h"
#include "route/discovery.h"
#include "route/router.h"
#include "route/tables.h"

/* A port of the file. */
struct forward_port {
	const char *name;    /* what interfaces call it */
	const char *open;    /* "mem:a", both directions; NULL: given on the command line */
	const char *receive; /* instead of open: two ports, one for each direction */
	const char *send;
};

struct forward_neigh {
	uint32_t ifindex;
	struct ro_addr addr;
	uint8_t mac[6];
	uint32_t count; /* addresses counting up from addr, with MACs counting up from mac */
};

struct forward_addr {
	uint32_t ifindex;
	struct ro_addr addr;
	uint8_t len;
};

struct forward_iface {
	struct ro_iface_config
		config; /* port's index; mac all zero = the port's, mtu 0 = the port's */
};

struct forward_file {
	struct forward_port *port;
	struct forward_iface *iface;
	struct forward_addr *addr;
	struct forward_neigh *neigh;
	struct ro_route **route; /* with `repeat` behind each */
	uint32_t *repeat;
	unsigned ports, ifaces, addrs, neighs, routes;
	uint32_t icmp_rate, icmp_burst;
	bool announce;
	void *raw; /* what the texts point into */
};

/* -EINVAL with FILE:LINE:COLUMN and the cause. */
int forward_file_load(const char *path, struct forward_file *out, struct ho_err *err);
void forward_file_free(struct forward_file *file);

/* Fills the tables: interfaces, addresses with their connected routes, routes. `port` are the
 * router's, for MAC addresses and MTUs. */
int forward_file_apply(const struct forward_file *file, const struct ro_port *port,
		       struct ro_tables *tables, struct ho_err *err);
/* The static neighbours. */
int forward_file_neighbours(const struct forward_file *file, struct ro_discovery *discovery,
			    struct ho_err *err);
/* Announces the router's addresses on its links. */
void forward_file_announce(const struct forward_file *file, struct ro_router *router);

#endif
