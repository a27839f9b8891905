/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of a frame: where they begin and what they are. Reads no byte outside of what it is
 * given, believes no length field, and says what is wrong with a bad frame.
 *
 *   | Ethernet | VLAN | VLAN | IPv4+options or IPv6+extensions | UDP/TCP/ICMP | payload | padding |
 *   0                        l3_off                            l4_off         payload_off   end
 */
#ifndef HOLDOFF_PACKET_PARSE_H
#define HOLDOFF_PACKET_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/headers.h"

/* What is wrong: enumerator, name, meaning. */
#define PK_PARSE_RESULTS(X)                                                               \
	X(OK, "ok", "all headers are there and agree")                                    \
	X(SPLIT, "split", "the headers go on in the frame's next buffer")                 \
	X(ETH_SHORT, "eth_short", "shorter than an Ethernet header")                      \
	X(VLAN_SHORT, "vlan_short", "ends inside a VLAN tag")                             \
	X(ARP_SHORT, "arp_short", "ends inside the ARP message")                          \
	X(ARP_BAD, "arp_bad", "an ARP message for other than IPv4 over Ethernet")         \
	X(IPV4_SHORT, "ipv4_short", "ends inside the IPv4 header")                        \
	X(IPV4_VERSION, "ipv4_version", "the type says IPv4, the header another version") \
	X(IPV4_HEADER_LEN, "ipv4_header_len", "IPv4 header length below 20 bytes")        \
	X(IPV4_TOTAL_LEN, "ipv4_total_len",                                               \
	  "IPv4 total length below the header's or above the "                            \
	  "frame's")                                                                      \
	X(IPV6_SHORT, "ipv6_short", "ends inside the IPv6 header")                        \
	X(IPV6_VERSION, "ipv6_version", "the type says IPv6, the header another version") \
	X(IPV6_PAYLOAD_LEN, "ipv6_payload_len", "IPv6 payload length above the frame's")  \
	X(IPV6_EXT_SHORT, "ipv6_ext_short", "ends inside an IPv6 extension header")       \
	X(IPV6_EXT_MANY, "ipv6_ext_many",                                                 \
	  "more IPv6 extension headers than any sender has use "                          \
	  "for")                                                                          \
	X(L4_SHORT, "l4_short", "the datagram ends inside the UDP, TCP or ICMP header")   \
	X(UDP_LEN, "udp_len", "UDP length below 8 or above the datagram's")               \
	X(TCP_HEADER_LEN, "tcp_header_len", "TCP header length below 20 or above the segment's")

enum pk_parse_result {
#define PK_PARSE_ENUM(id, name, text) PK_PARSE_##id,
	PK_PARSE_RESULTS(PK_PARSE_ENUM)
#undef PK_PARSE_ENUM
		PK_PARSE_COUNT,
};

enum pk_l3 { PK_L3_NONE, PK_L3_IPV4, PK_L3_IPV6, PK_L3_ARP };
enum pk_l4 { PK_L4_NONE, PK_L4_UDP, PK_L4_TCP, PK_L4_ICMP, PK_L4_ICMPV6 };

/* Extension headers walked before giving up (a chain of empty ones could fill a jumbo frame). */
#define PK_IPV6_EXT_MAX 16

struct pk_headers {
	uint16_t ethertype; /* behind the tags, host order; below 0x600 an 802.3 length */
	uint16_t vlan[2];   /* tag control information, outer first, host order */
	uint16_t tpid[2];   /* the tags' own types */
	uint8_t vlans;      /* tags in the frame, at most 2 are looked at */
	uint8_t l3;         /* enum pk_l3 */
	uint8_t l4;         /* enum pk_l4; NONE as well behind a later fragment */
	uint8_t proto;      /* IP protocol behind all extension headers */
	bool fragment;      /* part of a fragmented datagram */
	bool first;         /* ... its first part (offset 0): has the layer-4 header */
	bool routed;        /* IPv6 with a routing header that is not used up: the pseudo header
			       has another destination than the IP header */
	uint32_t l3_off;
	uint32_t l4_off;      /* of what IP carries; 0 without IP */
	uint32_t payload_off; /* behind the last known header */
	uint32_t end;         /* of the IP datagram or ARP message; Ethernet padding follows */
	uint32_t fragment_id; /* if fragment */
	uint16_t src_port;    /* UDP, TCP, host order; 0 without */
	uint16_t dst_port;
};

/*
 * Parses the frame of `frame_bytes` bytes whose first `have` are at data (have < frame_bytes for a
 * frame of several buffers). On an error the members up to the header at fault are set, and l3 and
 * l4 name only headers that are sound.
 */
enum pk_parse_result pk_parse(const uint8_t *data, uint32_t have, uint32_t frame_bytes,
			      struct pk_headers *out);

/* "ipv4_total_len"; what it means. */
const char *pk_parse_name(enum pk_parse_result result);
const char *pk_parse_meaning(enum pk_parse_result result);

/* Big-endian values at any address. */
static inline uint16_t pk_load16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t pk_load32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void pk_store16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void pk_store32(uint8_t *at, uint32_t value)
{
	pk_store16(at, (uint16_t)(value >> 16));
	pk_store16(at + 2, (uint16_t)value);
}

#endif
