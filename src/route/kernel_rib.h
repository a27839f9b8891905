/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's routes as it has them: a mirror, so that what a message means can be told.
 *
 * ro_tables knows one route for a prefix and a metric. The kernel may have several: IPv4's are
 * alternatives, of which the first is used (`ip route append`); IPv6's are paths of one route,
 * belong to different interfaces, or are what several routers advertise, of which that with the
 * best preference is used; and the table local comes before main. When the one in use is
 * deleted the next one takes its place, and only the mirror knows which that is.
 *
 * A route is some 50 bytes; what it says beyond its prefix (paths) is kept once however many
 * routes say the same.
 */
#ifndef HOLDOFF_ROUTE_KERNEL_RIB_H
#define HOLDOFF_ROUTE_KERNEL_RIB_H

#include <stddef.h>

#include "linux/rtnl.h"

/* What a route says beside its prefix and metric. */
struct rib_paths {
	struct rib_paths *next; /* of its bucket */
	uint32_t refs;          /* routes */
	uint32_t hash;
	bool dirty;   /* routes with it must be looked at again */
	uint8_t kind; /* RTN_*; UNICAST with a next hop object */
	uint32_t mtu;
	uint32_t nexthop; /* id of an object, which has the hops; 0 = they are here */
	struct lx_ip prefsrc;
	unsigned hops;
	struct lx_hop hop[];
};

struct rib_route {
	struct rib_route *next; /* of its bucket; those of one key in the order of preference */
	struct rib_paths *paths;
	uint32_t metric;
	uint8_t family, len;
	bool local;      /* of the table local */
	bool by_hand;    /* of that, and not the kernel's own */
	bool advertised; /* by a router */
	uint8_t rank;    /* of its preference; the least one is used */
	uint8_t seen;    /* mark of the dump that showed it last */
	uint8_t dst[];   /* 4 or 16 bytes */
};

struct rib {
	struct rib_route **bucket;
	size_t buckets, routes;
	struct rib_paths **paths;
	size_t path_buckets, n_paths;
	size_t by_family[2]; /* IPv4, IPv6 */
	size_t by_hand[2];
	uint8_t mark;
};

int rib_init(struct rib *rib);
void rib_fini(struct rib *rib);

/* The first of the routes to this prefix with this metric: the one in use. NULL = none. */
struct rib_route *rib_first(const struct rib *rib, uint8_t family, const uint8_t *dst, uint8_t len,
			    uint32_t metric);

/*
 * Takes in a message about a route of the tables main or local. dump: it is of a dump, whose order
 * is that of preference. 0; -ENOMEM; -ENOENT for a deletion of what is not there (an old event
 * after a dump); -ESTALE when it cannot be told which of several is deleted: the mirror is wrong
 * and must be read anew.
 */
int rib_update(struct rib *rib, const struct lx_route *route, bool gone, bool dump);

/* A dump begins: what it does not show is gone when rib_sweep is called. */
void rib_mark(struct rib *rib);
/* Removes what was not shown; calls changed for each removed route (still readable, no longer
 * found). */
void rib_sweep(struct rib *rib, void (*changed)(void *arg, const struct rib_route *gone),
	       void *arg);

/* Calls fn for each route; it must not change the mirror. */
void rib_each(const struct rib *rib, void (*fn)(void *arg, const struct rib_route *route),
	      void *arg);

/* Removes the routes by a next hop object that is gone; changed as for rib_sweep. */
void rib_drop_nexthop(struct rib *rib, uint32_t id,
		      void (*changed)(void *arg, const struct rib_route *gone), void *arg);

#endif
