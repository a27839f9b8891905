/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What workers read: next hops by the number that a FIB gives, interfaces, and neighbours by
 * address. All of it is immutable once published; a change publishes a new object and frees the
 * old one after a grace period (liburcu, QSBR). A pointer is good until the worker's next
 * quiescent state.
 *
 *   FIB --number--> nh[number] --> struct ro_nh (one cache line)
 *                                    ETHER    the Ethernet header to put in front, the port
 *                                    ECMP     bucket of the flow hash --> number of another one
 *                                    RESOLVE  a neighbour without an address so far
 *                                    GLEAN    the destination itself is such a neighbour
 *                                    others   why it is not forwarded
 */
#ifndef HOLDOFF_ROUTE_NEXTHOP_H
#define HOLDOFF_ROUTE_NEXTHOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "packet/headers.h"
#include "route/tables.h"

enum ro_nh_kind {
	RO_NH_NO_ROUTE,
	RO_NH_ETHER,
	RO_NH_ECMP,
	RO_NH_RESOLVE,
	RO_NH_GLEAN,
	RO_NH_LOCAL,
	RO_NH_BROADCAST,
	RO_NH_BLACKHOLE,
	RO_NH_UNREACHABLE,
	RO_NH_PROHIBIT,
	RO_NH_HOST,       /* the host's stack sends it on */
	RO_NH_MARTIAN,    /* a destination that may not be on a wire */
	RO_NH_MULTICAST,  /* not forwarded */
	RO_NH_LINK_SCOPE, /* link-local: never leaves its link */
};

#define RO_ETH_MAX 18 /* an Ethernet header with a tag */

struct ro_neigh;
struct ro_ecmp;

struct ro_nh {
	uint8_t kind;      /* enum ro_nh_kind */
	uint8_t eth_bytes; /* of eth: 14, or 18 with a tag */
	uint16_t port;     /* of the router */
	uint32_t mtu;      /* bytes of an IP packet; of all kinds that have an interface */
	uint8_t eth[RO_ETH_MAX];
	uint16_t iface;         /* slot of the interface: ro_iface_at */
	struct ro_addr prefsrc; /* for packets of our own; family 0 = choose */
	union {
		const struct ro_neigh *neigh; /* RO_NH_RESOLVE */
		const struct ro_ecmp *ecmp;   /* RO_NH_ECMP */
	};
	/* The longest slot of an untagged frame to it, where a slot's first word has `len`, the
	 * rest ones: for a single comparison in fast.c. ro_nh_publish fills it in. */
	uint64_t longest;
} HO_CACHE_ALIGNED;
_Static_assert(sizeof(struct ro_nh) == HO_CACHE_LINE, "a next hop is one cache line");

/*
 * Which path of an ECMP route a flow takes: rendezvous hashing. Each bucket belongs to the path
 * with the best score for it, whatever other paths there are; so when one goes only its own flows
 * move, and when it comes back they return.
 */
#define RO_ECMP_BUCKETS 2048
struct ro_ecmp {
	uint32_t nh[RO_HOPS_MAX]; /* numbers of the paths */
	uint8_t bucket[RO_ECMP_BUCKETS];
};

/* Numbers of next hops that are always there. The first dynamic one follows. */
enum ro_nh_fixed {
	RO_NH_NUM_NO_ROUTE,
	RO_NH_NUM_LOCAL,
	RO_NH_NUM_BROADCAST,
	RO_NH_NUM_MARTIAN,
	RO_NH_NUM_MULTICAST,
	RO_NH_NUM_LINK_SCOPE,
	RO_NH_NUM_FIRST,
};
#define RO_NH_MAX (1u << 20)

struct ro_iface_addr {
	uint8_t byte[16]; /* IPv4 in the first four */
	uint8_t len;
};

/* An interface as workers see it. */
struct ro_iface {
	uint32_t ifindex;
	uint16_t slot;
	uint16_t port;
	uint16_t vlan;
	uint8_t mac[6];
	uint64_t mac_word; /* the same, as the low 48 bits of 8 bytes loaded from a frame */
	uint32_t mtu;
	bool up;
	char name[32];
	unsigned n4, n6;
	struct ro_iface_addr addr[]; /* n4 of IPv4, then n6 of IPv6, in the order they were set */
};
#define RO_IFACES_MAX 4096

enum ro_neigh_state { RO_NEIGH_UNRESOLVED, RO_NEIGH_RESOLVED, RO_NEIGH_FAILED };

/* A neighbour as workers see it; what else is in the object is the writer's. */
struct ro_neigh {
	struct ro_neigh *next; /* of its bucket */
	struct ro_addr addr;
	uint32_t ifindex;
	uint32_t nh;   /* number of its next hop */
	uint8_t state; /* enum ro_neigh_state, atomic */

	uint8_t mac[6];
	bool known;  /* set or failed by the control plane, not only referred to */
	bool active; /* its host route is in the FIB */
	uint32_t seen;
	uint32_t refs; /* of hop sets */
	uint32_t route_mtu;       /* of the route that says that it is on the link */
	struct ro_addr route_src; /* that one's source */
	uint64_t asked_ns, changed_ns;
	struct ro_hopset *hopsets; /* that go through it */
};

struct ro_view;

/* The view of workers on the tables; part of struct ro_tables, lives as long. */
#define RO_NEIGH_BUCKETS 4096
#define RO_OWN_WORDS     64
#define RO_OWN_NEAR      16
struct ro_own { /* Bloom filters of own addresses and broadcasts: cheap "surely not" */
	uint64_t v4[RO_OWN_WORDS], v6[RO_OWN_WORDS];
	/* The same with a bit for eight of those, which fits a vector register. */
	uint32_t near4[RO_OWN_NEAR], near6[RO_OWN_NEAR];
};

struct ro_view {
	struct fib4 *fib4;
	struct fib6 *fib6;
	struct ro_nh **nh; /* RO_NH_MAX pointers; those that a FIB holds are not NULL */
	const struct ro_own *own;
	unsigned ports;
	struct ro_iface ***by_vlan; /* [port][vlan], NULL where there is none */
	struct ro_iface *iface[RO_IFACES_MAX];
	struct ro_neigh *neigh[RO_NEIGH_BUCKETS];
	uint32_t neigh_changes; /* counts: workers look through what they hold when it moved */
};

#define RO_RCU_GET(p)      __atomic_load_n(&(p), __ATOMIC_CONSUME)
#define RO_RCU_SET(p, new) __atomic_store_n(&(p), (new), __ATOMIC_RELEASE)

static inline const struct ro_nh *ro_nh_at(const struct ro_view *v, uint32_t number)
{
	return RO_RCU_GET(v->nh[number]);
}

static inline const struct ro_iface *ro_iface_at(const struct ro_view *v, unsigned slot)
{
	return RO_RCU_GET(v->iface[slot]);
}

/* Which bit of the filters an address has is in the upper bits of a product. */
#define RO_OWN_FACTOR  0x9e3779b1u
#define RO_OWN_FACTOR2 0x85ebca6bu
#define RO_OWN_FACTOR4 0xc2b2ae35u

static inline unsigned ro_own_bit4(uint32_t addr)
{
	return (addr * RO_OWN_FACTOR) >> 20;
}

static inline unsigned ro_own_bit6(const uint8_t addr[16])
{
	uint32_t w[4];

	__builtin_memcpy(w, addr, sizeof(w));
	w[0] = (w[0] + w[1] * RO_OWN_FACTOR2) ^ (w[2] + w[3] * RO_OWN_FACTOR4);
	return (w[0] * RO_OWN_FACTOR) >> 20;
}

/* May this be an address of the router? false = certainly not. addr as it lies in the packet. */
static inline bool ro_own_maybe4(const struct ro_view *v, uint32_t addr)
{
	unsigned bit = ro_own_bit4(addr);

	return RO_RCU_GET(v->own)->v4[bit / 64] >> (bit % 64) & 1;
}

static inline bool ro_own_maybe6(const struct ro_view *v, const uint8_t addr[16])
{
	unsigned bit = ro_own_bit6(addr);

	return RO_RCU_GET(v->own)->v6[bit / 64] >> (bit % 64) & 1;
}

/* A neighbour, or NULL. */
const struct ro_neigh *ro_neigh_find(const struct ro_view *v, uint32_t ifindex,
				     const struct ro_addr *addr);

/* Is this an address of the interface? family as in ro_addr; bytes in network order. */
bool ro_iface_owns(const struct ro_iface *iface, uint8_t family, const uint8_t *byte);
/* Is it inside a prefix of one of the interface's addresses? */
bool ro_iface_on_link(const struct ro_iface *iface, uint8_t family, const uint8_t *byte);

static inline unsigned ro_addr_bytes(uint8_t family)
{
	return family == RO_IPV4 ? 4 : 16;
}

#endif
