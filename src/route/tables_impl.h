/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the tables, for their own files: what the writer keeps beside the view of the workers.
 *
 *   entry   a prefix: its routes by metric, local and broadcast uses of it. What the best of these
 *           says is what the FIB holds for it.
 *   hop set the next hops of routes, each distinct one once: a million routes through one
 *           gateway are a million entries, one hop set, one next hop.
 *   single  a hop set of one path; those of several paths consist of singles.
 */
#ifndef HOLDOFF_ROUTE_TABLES_IMPL_H
#define HOLDOFF_ROUTE_TABLES_IMPL_H

#include "route/fib4.h"
#include "route/fib6.h"
#include "route/nexthop.h"
#include "route/tables.h"
#include "route/wish.h"

#define RO_WORKERS_MAX 256
#define RO_NEIGHS_MAX  65536 /* of each family */

struct ro_hopset {
	struct ro_hopset *next; /* of its bucket */
	uint32_t refs;          /* of routes, and of sets that have it as a path */
	uint32_t nh;            /* its number */
	uint32_t hash;
	uint32_t mtu;
	uint8_t kind; /* enum ro_route_kind */
	bool usable;  /* its interface, or that of a path, is there and up */
	bool was_usable;
	struct ro_addr prefsrc;
	struct ro_neigh *neigh;          /* a single with a gateway */
	struct ro_hopset *next_of_neigh; /* in that neighbour's list */
	struct ro_hopset **path;         /* several paths: the singles */
	unsigned n;
	struct ro_hop hop[];
};

struct ro_rt {
	struct ro_rt *next; /* same prefix, higher metric */
	struct ro_hopset *set;
	uint32_t metric;
	uint32_t seen;
};

struct ro_entry {
	struct ro_entry *next; /* of its bucket */
	struct ro_rt *routes;  /* by metric */
	uint32_t nh;           /* what the FIB has; 0 = nothing */
	uint16_t local, broadcast;
	uint8_t family, len;
	uint8_t addr[16];
};

struct ro_own_addr {
	struct ro_addr addr;
	uint8_t len;
	uint32_t seen;
};

struct ro_if {
	struct ro_iface_config config;
	uint16_t slot;
	uint32_t seen;
	struct ro_own_addr *addr;
	unsigned n_addr;
};

/* Freed after a grace period. */
struct ro_retired {
	struct ro_retired *next;
	void *ptr;   /* for free() */
	uint32_t nh; /* a number that may be used again; 0 = none */
};

struct ro_tables {
	struct ro_view view;
	struct ro_resolver resolver;
	uint64_t now_ns; /* of the last poll */
	uint32_t seen;   /* the current resynchronisation's mark */
	bool resyncing;
	bool rescan; /* some hop set's use changed: entries are to be looked at again */

	struct ro_entry **bucket; /* entries by prefix */
	size_t buckets, entries;
	size_t by_len[2][129]; /* entries of each length, [0] IPv4 */

	struct ro_hopset **sets; /* by content */
	size_t set_buckets, n_sets;

	struct ro_if *iface[RO_IFACES_MAX]; /* by slot */
	unsigned ifaces;                    /* slots in use, from 0 */

	struct ro_neigh **sorted[2]; /* by address, then ifindex */
	size_t n_neigh[2], room[2];
	uint64_t expire_ns; /* when they are looked through again */

	uint32_t nh_next;   /* never used so far */
	uint32_t *nh_spare; /* a stack */
	size_t nh_spares, nh_room;

	struct ro_retired *retired;
	struct fib_deferred *deferred;
	unsigned pending; /* in these */
	struct fib_reclaim reclaim;

	struct ro_wish_queue *queue[RO_WORKERS_MAX];
	unsigned queues;
	/* What is not a wish for resolution goes there. */
	void (*hear)(void *arg, const struct ro_wish *wish);
	void *hear_arg;
};

static inline unsigned ro_fam(uint8_t family)
{
	return family == RO_IPV6;
}

static inline unsigned ro_bits(uint8_t family)
{
	return family == RO_IPV4 ? 32 : 128;
}

/* Is it a prefix of either family with its host bits zero? */
int ro_prefix_check(const struct ro_prefix *prefix, struct ho_err *err);
/* Inside a prefix that no route changes: loopback, multicast, link-local and such? */
bool ro_is_reserved(uint8_t family, const uint8_t *addr, unsigned len);
bool ro_addr_eq(const struct ro_addr *a, const struct ro_addr *b);
/* "2001:db8::1"; buf has RO_ADDR_TEXT bytes. */
#define RO_ADDR_TEXT 64
const char *ro_addr_text(const struct ro_addr *addr, char *buf);

/* tables.c: frees after a grace period; ptr may be NULL, nh 0. */
void ro_retire(struct ro_tables *t, void *ptr, uint32_t nh);
/* Frees what can be freed when much has gathered. */
void ro_reclaim_some(struct ro_tables *t);
/* Waits for a grace period and frees all. */
void ro_reclaim_all(struct ro_tables *t);
/* After interfaces came, went or changed state: brings hop sets and FIBs up to date. */
void ro_tables_refresh(struct ro_tables *t);

/* iface.c */
struct ro_if *ro_if_find(struct ro_tables *t, uint32_t ifindex);
void ro_ifaces_sweep(struct ro_tables *t);
void ro_ifaces_free(struct ro_tables *t);

/* hopset.c: numbers and records. */
uint32_t ro_nh_alloc(struct ro_tables *t); /* 0 = none left */
/* Publishes a copy of nh under the number; -ENOMEM: nothing changed. */
int ro_nh_publish(struct ro_tables *t, uint32_t number, const struct ro_nh *nh);
void ro_nh_release(struct ro_tables *t, uint32_t number);
int ro_hopset_get(struct ro_tables *t, const struct ro_route *route, struct ro_hopset **out,
		  struct ho_err *err);
void ro_hopset_put(struct ro_tables *t, struct ro_hopset *set);
/* Makes its record anew, and finds out whether it can be used. */
void ro_hopset_build(struct ro_tables *t, struct ro_hopset *set);
void ro_hopsets_refresh(struct ro_tables *t);
void ro_hopsets_free(struct ro_tables *t);

/* entry.c: prefixes. */
struct ro_entry *ro_entry_find(struct ro_tables *t, uint8_t family, const uint8_t *addr,
			       unsigned len);
struct ro_entry *ro_entry_get(struct ro_tables *t, uint8_t family, const uint8_t *addr,
			      unsigned len);
/* Brings the FIB up to date with it; the entry is freed if nothing is left of it. */
int ro_entry_publish(struct ro_tables *t, struct ro_entry *e, struct ho_err *err);
/* The hop set that is used for an address, neighbours' host routes aside; NULL if it is not of a
 * route. */
const struct ro_hopset *ro_cover(struct ro_tables *t, const struct ro_addr *addr);
void ro_entries_refresh(struct ro_tables *t);
void ro_routes_sweep(struct ro_tables *t);
void ro_entries_free(struct ro_tables *t);

/* neigh.c */
struct ro_neigh *ro_neigh_get(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr);
/* Frees it if nobody needs it. */
void ro_neigh_put(struct ro_tables *t, struct ro_neigh *n);
/* Its next hop, those of the sets behind it, and its host route. */
void ro_neigh_build(struct ro_tables *t, struct ro_neigh *n);
/* The number of the neighbour whose host route this address has; 0 = none. */
uint32_t ro_neigh_host_nh(struct ro_tables *t, uint8_t family, const uint8_t *addr);
/* Routes of this prefix changed: looks at the host routes inside of it. */
void ro_neighs_covered(struct ro_tables *t, uint8_t family, const uint8_t *addr, unsigned len);
void ro_neighs_refresh(struct ro_tables *t);
void ro_neighs_of_iface(struct ro_tables *t, uint32_t ifindex); /* ... is gone */
void ro_neighs_sweep(struct ro_tables *t);
void ro_neighs_expire(struct ro_tables *t);
void ro_neighs_free(struct ro_tables *t);

#endif
