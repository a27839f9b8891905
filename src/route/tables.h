/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a router knows: interfaces, addresses, routes and neighbours, as its control plane sets
 * them, and as its workers read them.
 *
 *   kernel's tables (netlink) --+
 *   configuration file ---------+--> ro_tables (one writer) --> FIBs, next hops --> workers
 *   own ARP and ND -------------+
 *
 * Threads. Everything that changes the tables is called by one thread, the control plane. Workers
 * read under RCU (liburcu, QSBR): each announces a quiescent state between two bursts. An update
 * never makes a worker wait, and a worker sees each object as it was before or after the change.
 *
 * Names. An interface here is an IP interface: a port, or a VLAN on a port. The control plane
 * numbers them as it likes (`ifindex`; the kernel's number where the kernel is the control
 * plane). A host route is kept per neighbour, so that the workers find a neighbour's next hop by
 * the same longest-prefix match as any other.
 */
#ifndef HOLDOFF_ROUTE_TABLES_H
#define HOLDOFF_ROUTE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum ro_family { RO_IPV4 = 4, RO_IPV6 = 6 };

/* An address of either family, in network order; IPv4 in the first four bytes, the rest zero. */
struct ro_addr {
	uint8_t family; /* enum ro_family; 0 = none */
	uint8_t byte[16];
};

struct ro_prefix {
	struct ro_addr addr; /* host bits zero */
	uint8_t len;
};

/* An IP interface. */
struct ro_iface_config {
	uint32_t ifindex; /* the control plane's number for it; not 0 */
	char name[32];    /* "eth1.100": for messages and counters */
	unsigned port;    /* index of the router's port */
	uint16_t vlan;    /* VLAN id of a tagged sub-interface; 0 = untagged frames of the port */
	uint8_t mac[6];
	uint32_t mtu; /* bytes of an IP packet */
	bool up; /* administratively up and with a carrier; its routes are not used when down */
};

/* What happens to a packet that a route matches. */
enum ro_route_kind {
	RO_UNICAST,     /* to a next hop, or to a neighbour on the link */
	RO_LOCAL,       /* for the router itself */
	RO_BROADCAST,   /* a directed broadcast: not forwarded (RFC 2644) */
	RO_BLACKHOLE,   /* dropped silently */
	RO_UNREACHABLE, /* ICMP host unreachable / no route to destination */
	RO_PROHIBIT,    /* ICMP communication administratively prohibited */
	RO_THROW,       /* as if there were no route, whatever less specific ones there are */
	RO_HOST, /* to the host's own stack, which forwards it by an interface that is no port */
};

#define RO_HOPS_MAX 64 /* paths of one route */

/* Every link carries packets of so many bytes: RFC 791 section 3.2 (a header with all its options
 * and one unit of fragmentation behind it), RFC 8200 section 5. */
#define RO_MTU4_MIN 68
#define RO_MTU6_MIN 1280

static inline uint32_t ro_mtu_min(uint8_t family)
{
	return family == RO_IPV4 ? RO_MTU4_MIN : RO_MTU6_MIN;
}

struct ro_hop {
	uint32_t ifindex;
	struct ro_addr via; /* family 0: the destination is on the link. May be IPv6 for an IPv4
			       route (RFC 8950) */
	uint16_t weight;    /* 1 .. 256; shares of the flows of an ECMP route */
};

struct ro_route {
	struct ro_prefix dst;
	enum ro_route_kind kind;
	uint32_t metric;        /* several routes to one prefix: the least one is used */
	uint32_t mtu; /* of this route; 0 = the interface's; RO_MTU4_MIN or RO_MTU6_MIN at least */
	struct ro_addr prefsrc; /* source of packets of our own along it; family 0 = choose */
	unsigned hops;          /* RO_UNICAST: 1 .. RO_HOPS_MAX; others 0 */
	struct ro_hop hop[RO_HOPS_MAX];
};

struct ro_tables;

/*
 * What the tables ask of the control plane. Called on the control plane's thread from
 * ro_tables_poll, for wishes that workers left in their queues. A neighbour is asked for at most
 * once a second while it is unresolved.
 */
struct ro_resolver {
	void (*resolve)(void *arg, uint32_t ifindex, const struct ro_addr *addr);
	void *arg;
};

int ro_tables_create(unsigned ports, const struct ro_resolver *resolver, struct ro_tables **out,
		     struct ho_err *err);
/* No worker may use them any more. NULL is allowed. */
void ro_tables_destroy(struct ro_tables *t);

/*
 * Each _set adds or replaces, each _del returns -ENOENT for what is not there. Order does not
 * matter to the result: a route whose interface is missing or down is kept and used when that
 * comes. Deleting an interface deletes its addresses and neighbours and leaves its routes unused.
 * -EINVAL with a sentence for what cannot be (host bits, family mismatch, VLAN above 4094),
 * -ENOMEM; then nothing has changed.
 */
int ro_iface_set(struct ro_tables *t, const struct ro_iface_config *iface, struct ho_err *err);
int ro_iface_del(struct ro_tables *t, uint32_t ifindex);

/* An address of the router's own: packets to it are local, and it can be the source of ICMP.
 * Makes the local route and the directed broadcast, not the connected route. */
int ro_addr_set(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr, uint8_t len,
		struct ho_err *err);
int ro_addr_del(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr, uint8_t len);

/* The key of a route is (prefix, metric). */
int ro_route_set(struct ro_tables *t, const struct ro_route *route, struct ho_err *err);
int ro_route_del(struct ro_tables *t, const struct ro_prefix *dst, uint32_t metric);

/* A resolved neighbour; _del makes it unresolved again. */
int ro_neigh_set(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr,
		 const uint8_t mac[6], struct ho_err *err);
int ro_neigh_del(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr);
/* The control plane gave up: held packets are answered with "host unreachable". */
int ro_neigh_fail(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr);

/*
 * Resynchronisation after the control plane lost messages: between begin and end everything that
 * is still true is set again; end deletes what was not. Packets flow by the old state meanwhile.
 */
void ro_tables_resync_begin(struct ro_tables *t);
void ro_tables_resync_end(struct ro_tables *t);

/* Serves what workers asked for (calls the resolver) and frees what no worker can see any more.
 * To be called by the control plane about every 10 ms or when woken. now_ns: the router's clock. */
void ro_tables_poll(struct ro_tables *t, uint64_t now_ns);

#endif
