/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the kernel's part of a router's control plane: what its files share.
 *
 *   kernel.c         making it, dumps and events, what is due when
 *   kernel_links.c   interfaces and addresses, and what the ports leave to the host
 *   kernel_routes.c  routes and next hop objects, from the mirror into the tables
 *   kernel_neigh.c   neighbours, asking for them
 *   kernel_rib.c     the mirror
 */
#ifndef HOLDOFF_ROUTE_KERNEL_IMPL_H
#define HOLDOFF_ROUTE_KERNEL_IMPL_H

#include <sys/socket.h>

#include "linux/rtnl_watch.h"
#include "port/host.h"
#include "route/kernel.h"
#include "route/kernel_rib.h"
#include "route/router.h"

#define KERN_LINK_BUCKETS 1024
#define KERN_NH_BUCKETS   4096
#define KERN_STALE_MAX    4096 /* neighbours that wait to be verified; a power of two */

/* An interface of the kernel's, ours or not. */
struct kern_link {
	struct kern_link *next; /* of its bucket */
	struct lx_link link;
	bool seen;
	bool ours; /* in the tables */
	bool said; /* why it is not ours */
	unsigned port;
	uint16_t vlan;
};

struct kern_addr {
	uint32_t index;
	uint8_t len;
	bool seen;
	struct lx_ip addr;
};

/* A next hop object. */
struct kern_nexthop {
	struct kern_nexthop *next; /* of its bucket */
	uint32_t id;
	bool seen, blackhole;
	struct lx_hop hop;
	unsigned members; /* 0 = the hop is its own */
	struct lx_member member[];
};

struct kern_stale {
	uint32_t index;
	struct lx_ip addr;
};

struct ro_kernel {
	struct rt *rt;
	struct ro_tables *tables;
	struct lx_watch *watch;
	unsigned ports;
	struct port *port[RO_PORTS_MAX];
	unsigned ifindex[RO_PORTS_MAX];
	bool shared[RO_PORTS_MAX]; /* what is the host's must be handed back */

	struct kern_link *link[KERN_LINK_BUCKETS];
	struct kern_addr *addr;
	unsigned n_addr, addr_room;
	struct kern_nexthop *nexthop[KERN_NH_BUCKETS];
	struct rib rib;
	unsigned odd_rules;
	uint32_t least_mtu; /* of all routes so far; UINT32_MAX = none had one */

	bool dumping;     /* messages are a dump's */
	bool resyncing;   /* ... of everything: all is set again */
	bool host_dirty;  /* the host's addresses changed: the ports do not know yet */
	bool paths_dirty; /* some rib_paths are to be looked at again */
	bool resync_due, redump_due, neighs_due;
	uint64_t resync_ns, redump_ns; /* when */
	uint64_t now_ns;

	/* Ring of neighbours that are to be verified. */
	struct kern_stale stale[KERN_STALE_MAX];
	uint32_t stale_head, stale_tail;

	bool said_source, said_mixed, said_rules, said_cut, said_full, said_space;
	struct ro_kernel_stats stats;
	struct ro_route scratch; /* of which the hops are most */
};

static inline struct ro_addr kern_addr_of(const struct lx_ip *ip)
{
	struct ro_addr addr = { .family = ip->family == AF_INET    ? RO_IPV4
					  : ip->family == AF_INET6 ? RO_IPV6
								   : 0 };

	__builtin_memcpy(addr.byte, ip->byte, sizeof(addr.byte));
	return addr;
}

/* Counts and says what the tables did not take. */
void kern_refused(struct ro_kernel *k, int rc, const struct ho_err *err);
/* Everything is to be read again, after `ns`; or only routes and next hop objects. */
void kern_want_resync(struct ro_kernel *k, uint64_t ns);
void kern_want_redump(struct ro_kernel *k, uint64_t ns);

/* kernel_links.c */
struct kern_link *kern_link_find(const struct ro_kernel *k, uint32_t index);
void kern_on_link(struct ro_kernel *k, const struct lx_link *link, bool gone);
void kern_on_addr(struct ro_kernel *k, const struct lx_addr *addr, bool gone);
void kern_links_begin(struct ro_kernel *k);
void kern_links_end(struct ro_kernel *k); /* of a resynchronisation */
void kern_links_free(struct ro_kernel *k);
/* Tells the ports which addresses are the host's, if they changed. */
void kern_tell_ports(struct ro_kernel *k);

/* kernel_routes.c */
void kern_on_route(struct ro_kernel *k, const struct lx_route *route, bool gone);
void kern_on_nexthop(struct ro_kernel *k, const struct lx_nexthop *nexthop, bool gone);
void kern_routes_begin(struct ro_kernel *k);
void kern_routes_end(struct ro_kernel *k);
/* Looks again at the routes whose paths changed (next hop objects), or at all of them. */
void kern_routes_refresh(struct ro_kernel *k, bool all);
void kern_nexthops_free(struct ro_kernel *k);
/* How many are by interfaces that are not ours. */
unsigned kern_routes_elsewhere(const struct ro_kernel *k);

/* kernel_neigh.c */
void kern_on_neigh(struct ro_kernel *k, const struct lx_neigh *neigh, bool gone);
/* Verifies some of the stale ones. */
void kern_neigh_poll(struct ro_kernel *k);
void kern_resolve(void *arg, uint32_t ifindex, const struct ro_addr *addr);

#endif
