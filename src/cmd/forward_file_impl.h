/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the reading of a router's file: what its files share.
 *
 *   forward_file.c         the schema, the file as a whole
 *   forward_file_value.c   addresses, prefixes and names that a value says
 *   forward_file_iface.c   ports, interfaces, their addresses and neighbours
 *   forward_file_route.c   routes, and that none is there twice
 */
#ifndef HOLDOFF_CMD_FORWARD_FILE_IMPL_H
#define HOLDOFF_CMD_FORWARD_FILE_IMPL_H

#include <errno.h>
#include <stdio.h>

#include "base/document.h"
#include "cmd/forward_file.h"

/* What a count may be. */
#define REPEAT_MAX (1u << 24)

/* As the file has it. */
struct raw_port {
	const char *name, *open, *receive, *send;
};

struct raw_neigh {
	const char *address, *mac;
	uint32_t count;
};

struct raw_iface {
	const char *name, *port, *mac;
	uint32_t vlan, mtu;
	const char **address;
	uint32_t addresses;
	struct raw_neigh *neigh;
	uint32_t neighs;
};

struct raw_path {
	const char *via, *dev;
	uint32_t weight;
};

struct raw_route {
	const char *to, *via, *dev, *source;
	int kind;
	uint32_t metric, mtu, count, weight;
	struct raw_path *path;
	uint32_t paths;
};

struct raw_file {
	uint32_t icmp_rate, icmp_burst;
	bool announce;
	struct raw_port *port;
	struct raw_iface *iface;
	struct raw_route *route;
	uint32_t ports, ifaces, routes;
};

struct load {
	struct forward_file *file;
	struct raw_file *raw;
	struct ho_doc *doc;
	struct ho_err *err;
	char node[128]; /* which value is looked at */
};

/* A complaint about the node. */
#define COMPLAIN(l, ...)                                                                          \
	(ho_err_set((l)->err, -EINVAL, __VA_ARGS__), ho_doc_blame((l)->doc, (l)->node, (l)->err), \
	 -EINVAL)
#define NODE(l, ...) snprintf((l)->node, sizeof((l)->node), __VA_ARGS__)

/* --- values: 0, or a complaint about the node ----------------------------------------------- */

int ff_parse_addr(struct load *l, const char *text, struct ro_addr *out);
int ff_parse_prefix(struct load *l, const char *text, struct ro_addr *addr, uint8_t *len);
int ff_parse_mac(struct load *l, const char *text, uint8_t mac[6]);
/* The port's index; -1 = there is none. */
int ff_find_port(const struct load *l, const char *name);
/* Its ifindex; 0 = there is none. */
uint32_t ff_find_iface(const struct load *l, const char *name);

/* --- addresses ------------------------------------------------------------------------------ */

/* Is it the highest address of an IPv4 prefix that has one for everybody (RFC 3021)? */
bool ff_is_broadcast(const struct ro_addr *a, unsigned len);
/* What no interface can have for an address (RFC 1122 3.2.1.3, RFC 4291 2.5), or NULL. */
const char *ff_unusable(const struct forward_addr *a);
/* What no neighbour can have for an address, or NULL: nobody's, everybody's. */
const char *ff_not_a_host(const struct load *l, const struct ro_addr *a);
/* Does the router have it? */
bool ff_is_own(const struct load *l, const struct ro_addr *addr);
bool ff_link_local(const struct ro_addr *a);
bool ff_inside(const struct ro_addr *prefix, unsigned len, const struct ro_addr *addr);

typedef unsigned __int128 wide;

/* The first bits of an address. */
wide ff_number_of(const struct ro_addr *addr, unsigned len);
unsigned ff_bits_of(const struct ro_addr *addr);

/* --- what becomes part of the file, in this order ------------------------------------------- */

int ff_take_ports(struct load *l);
int ff_take_iface(struct load *l, unsigned i);
int ff_take_addresses(struct load *l, unsigned i);
int ff_take_neighbours(struct load *l, unsigned i);
int ff_take_route(struct load *l, unsigned i);
/* No destination is there twice with the same metric. */
int ff_check_once(struct load *l);

#endif
