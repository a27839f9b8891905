/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why the router did not send a packet on: enumerator, name that users see, meaning. For every
 * worker, packets received and made by the router itself = packets handed to transmit queues +
 * packets for the router itself + these.
 */
#ifndef HOLDOFF_ROUTE_DROPS_H
#define HOLDOFF_ROUTE_DROPS_H

#include <stdint.h>

#define RO_DROPS(X)                                                                                \
	X(ETH_SHORT, "eth_short", "shorter than an Ethernet header and its tags")                  \
	X(NO_INTERFACE, "no_interface", "no interface of the router for this port and VLAN")       \
	X(INTERFACE_DOWN, "interface_down",                                                        \
	  "arrived at, or would leave by, an interface that is down")                              \
	X(NOT_OURS, "not_ours", "the Ethernet destination is another station's")                   \
	X(ETHERTYPE, "ethertype", "neither IPv4, IPv6 nor ARP")                                    \
	X(IP4_SHORT, "ip4_short", "ends inside the IPv4 header")                                   \
	X(IP4_VERSION, "ip4_version", "the type says IPv4, the header another version")            \
	X(IP4_HEADER_LEN, "ip4_header_len", "IPv4 header length below 20 bytes")                   \
	X(IP4_TOTAL_LEN, "ip4_total_len",                                                          \
	  "IPv4 total length below the header's or above the frame's")                             \
	X(IP4_CHECKSUM, "ip4_checksum", "the checksum of the IPv4 header is wrong")                \
	X(IP4_OPTION, "ip4_option", "an IPv4 option's length or pointer is wrong")                 \
	X(SOURCE_ROUTE, "source_route", "IPv4 source route: not followed")                         \
	X(IP6_SHORT, "ip6_short", "ends inside the IPv6 header")                                   \
	X(IP6_VERSION, "ip6_version", "the type says IPv6, the header another version")            \
	X(IP6_PAYLOAD_LEN, "ip6_payload_len", "IPv6 payload length above the frame's")             \
	X(IP6_EXT, "ip6_ext", "an IPv6 extension header is cut off, or there are too many")        \
	X(IP6_OPTION, "ip6_option", "a hop-by-hop option that says: discard what you do not know") \
	X(IP6_ROUTING, "ip6_routing", "an IPv6 routing header for the router: not followed")       \
	X(MARTIAN_SRC, "martian_src", "a source address that may not be on a wire")                \
	X(MARTIAN_DST, "martian_dst", "a destination address that may not be on a wire")           \
	X(OWN_SRC, "own_src", "the source address is the router's own")                            \
	X(LINK_SCOPE, "link_scope", "a link-local address: never leaves its link")                 \
	X(L2_BROADCAST, "l2_broadcast", "a unicast IP packet in a broadcast or multicast frame")   \
	X(BROADCAST, "broadcast", "to an IPv4 broadcast address: not forwarded")                   \
	X(MULTICAST, "multicast", "to a group: not forwarded")                                     \
	X(NO_ROUTE, "no_route", "no route to the destination")                                     \
	X(BLACKHOLE, "blackhole", "a blackhole route")                                             \
	X(UNREACHABLE, "unreachable", "an unreachable route")                                      \
	X(PROHIBITED, "prohibited", "a prohibit route")                                            \
	X(TTL, "ttl", "TTL or hop limit used up")                                                  \
	X(TOO_BIG, "too_big", "longer than the next hop's MTU, and not to be fragmented")          \
	X(NO_BUFFER, "no_buffer", "no packet buffer for a fragment or for a message of our own")   \
	X(HOLD_FULL, "hold_full", "too many packets wait for this neighbour, or for neighbours")   \
	X(NEIGH_FAILED, "neigh_failed", "the neighbour did not answer")                            \
	X(HOLD_CLOSED, "hold_closed", "still waiting for a neighbour at the end")                  \
	X(ARP_BAD, "arp_bad",                                                                      \
	  "an ARP message that is cut off, or not IPv4 over Ethernet, or senseless")               \
	X(ARP_OTHER, "arp_other", "an ARP message that is not for the router")                     \
	X(ND_BAD, "nd_bad", "Neighbour Discovery that RFC 4861 says to discard")                   \
	X(ND_OTHER, "nd_other", "Neighbour Discovery that is not for the router")                  \
	X(CONFLICT, "conflict", "another station uses an address of the router's")                 \
	X(LOCAL_BAD, "local_bad", "for the router, malformed or with a wrong checksum")            \
	X(LOCAL_FRAGMENT, "local_fragment", "a fragment for the router: not put together")         \
	X(LOCAL_PORT, "local_port", "UDP for the router: nobody listens")                          \
	X(LOCAL_PROTO, "local_proto", "a protocol that the router does not have")                  \
	X(LOCAL_KERNEL, "local_kernel", "for the host's own stack, which could not be given it")

enum ro_drop {
#define RO_DROP_ENUM(id, name, text) RO_DROP_##id,
	RO_DROPS(RO_DROP_ENUM)
#undef RO_DROP_ENUM
		RO_DROP_COUNT,
};

/* "no_route"; what it means, in a sentence. */
const char *ro_drop_name(enum ro_drop drop);
const char *ro_drop_meaning(enum ro_drop drop);

uint64_t ro_drops_sum(const uint64_t drops[RO_DROP_COUNT]);

#endif
