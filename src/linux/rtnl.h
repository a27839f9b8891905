/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rtnetlink says of links, addresses, routes, next hops, neighbours and rules, as plain
 * structs. One message of a dump or of an event is one struct lx_rtnl.
 *
 *   socket ---> struct nlmsghdr --- lx_rtnl_parse ---> struct lx_rtnl ---> whoever follows
 *
 * Nothing in a message is believed: attributes that are cut off, too short for what they are, or
 * that say lengths which cannot be, make the message -EBADMSG, and nothing outside of it is read.
 *
 * Sources: rtnetlink(7), include/uapi/linux/{rtnetlink,if_link,neighbour,nexthop,fib_rules}.h.
 */
#ifndef HOLDOFF_LINUX_RTNL_H
#define HOLDOFF_LINUX_RTNL_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linux/iface.h"

/* Tables that are followed (rt_class_t). */
#define LX_TABLE_MAIN  254
#define LX_TABLE_LOCAL 255

/* Paths of a route or members of a group that are read; the kernel allows more. */
#define LX_HOPS_MAX 64

/* An address of either family, in network order; IPv4 in the first four bytes, the rest zero. */
struct lx_ip {
	uint8_t family; /* AF_INET, AF_INET6; 0 = none */
	uint8_t byte[16];
};

struct lx_link {
	uint32_t index;
	char name[LX_NAME_BYTES];
	char kind[LX_NAME_BYTES]; /* "vlan", "veth", ...; "" for hardware */
	uint8_t mac[6];
	bool has_mac;    /* an Ethernet address */
	uint32_t mtu;    /* bytes */
	uint32_t lower;  /* what it lies on (a VLAN's interface, a veth's peer); 0 = nothing */
	bool elsewhere;  /* `lower` is a number of another network namespace */
	uint32_t master; /* bridge, bond or VRF that it belongs to; 0 = none */
	uint16_t vlan;   /* of a "vlan": its id */
	uint16_t vlan_protocol; /* ... and its tag's type, host order; 0 = not said */
	bool up;                /* set up by the administrator */
	bool carrier;           /* operational: up, and there is a link */
};

struct lx_addr {
	uint32_t index;
	struct lx_ip addr; /* the interface's own */
	uint8_t len;       /* of its prefix; of the peer's on a point-to-point interface */
	bool peer;         /* there is a peer address: `len` says nothing of our own */
	bool tentative;    /* not ours yet, or never: duplicate address detection is under way or
			      has failed */
};

struct lx_hop {
	uint32_t index;    /* interface; 0 = none (a blackhole) */
	struct lx_ip via;  /* family 0: the destination is on the link */
	uint16_t weight;   /* at least 1 */
	bool encapsulated; /* MPLS, SRv6, ...: not a plain IP next hop */
};

struct lx_route {
	uint8_t kind;   /* RTN_UNICAST, ... */
	uint8_t family; /* AF_INET, AF_INET6 */
	uint8_t len;    /* of the prefix */
	uint32_t table;
	struct lx_ip dst; /* host bits zero */
	uint32_t metric;
	uint32_t mtu;         /* 0 = the interface's */
	struct lx_ip prefsrc; /* family 0 = none */
	uint32_t nexthop;     /* id of its next hop object; 0 = none */
	bool selective;       /* only for a source prefix or a type of service */
	bool cloned;          /* an exception in a cache, no route */
	bool replaced;        /* the message said: instead of the one with this key */
	bool appended;        /* ... after those with this key */
	bool cut;             /* more paths than LX_HOPS_MAX */
	bool kernels;         /* it made it by itself, for an address say */
	bool advertised;      /* by a router (RFC 4861): never a path of another one */
	uint8_t rank;         /* 0 .. 2: high, medium, low preference (RFC 4191) */
	unsigned hops;
	struct lx_hop hop[LX_HOPS_MAX];
};

/* A next hop object: a hop, or a group of others. */
struct lx_nexthop {
	uint32_t id;
	bool blackhole;
	bool cut;          /* more members than LX_HOPS_MAX */
	struct lx_hop hop; /* when members == 0 */
	unsigned members;
	struct lx_member {
		uint32_t id;
		uint16_t weight; /* at least 1 */
	} member[LX_HOPS_MAX];
};

struct lx_neigh {
	uint32_t index;
	struct lx_ip addr;
	uint8_t mac[6];
	bool has_mac;   /* an Ethernet address is known */
	uint16_t state; /* NUD_* bits */
	bool proxy;     /* an entry that we answer for, no neighbour */
};

struct lx_rule {
	uint8_t family;
	bool standard; /* one of those that the kernel makes at boot: all packets to the tables
			  local, main and default */
	uint32_t priority;
};

enum lx_rtnl_kind {
	LX_LINK,
	LX_ADDR,
	LX_ROUTE,
	LX_NEXTHOP,
	LX_NEIGH,
	LX_RULE,
};

struct lx_rtnl {
	enum lx_rtnl_kind kind;
	bool gone; /* RTM_DEL...: it is there no more */
	union {
		struct lx_link link;
		struct lx_addr addr;
		struct lx_route route;
		struct lx_nexthop nexthop;
		struct lx_neigh neigh;
		struct lx_rule rule;
	};
};

/*
 * Parses one message, whose header must lie whole within readable memory of nlmsg_len bytes.
 * 1: *out is filled. 0: nothing to follow (another type, another family). -EBADMSG: broken.
 */
int lx_rtnl_parse(const struct nlmsghdr *nlh, struct lx_rtnl *out);

/*
 * Is there a whole message at nlh, of which `left` bytes are there? To walk over what a socket
 * gave; libmnl's own check takes a length above 2^31 for a small one.
 */
static inline bool lx_nlmsg_whole(const struct nlmsghdr *nlh, size_t left)
{
	return left >= sizeof(*nlh) && nlh->nlmsg_len >= sizeof(*nlh) && nlh->nlmsg_len <= left;
}

/* The one behind it; *left counts down. */
static inline const struct nlmsghdr *lx_nlmsg_next(const struct nlmsghdr *nlh, size_t *left)
{
	size_t used = NLMSG_ALIGN((size_t)nlh->nlmsg_len);

	*left -= used < *left ? used : *left;
	return (const struct nlmsghdr *)((const char *)nlh + used);
}

/* Bytes of an address of the family: 4, 16, or 0. */
unsigned lx_family_bytes(uint8_t family);

/* "192.0.2.1" or "2001:db8::1" into buf (46 bytes suffice); returns buf. */
const char *lx_ip_text(const struct lx_ip *ip, char *buf, unsigned bytes);

#endif
