/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers as they are on the wire: big endian, unaligned. Sizes in bytes. */
#ifndef HOLDOFF_PACKET_HEADERS_H
#define HOLDOFF_PACKET_HEADERS_H

#include <assert.h>
#include <stdint.h>

#define PK_WIRE __attribute__((packed))

enum {
	PK_ETH_BYTES = 14,
	PK_VLAN_BYTES = 4,
	PK_IPV4_BYTES = 20, /* without options */
	PK_IPV4_MAX_BYTES = 60,
	PK_IPV6_BYTES = 40,
	PK_UDP_BYTES = 8,
	PK_TCP_BYTES = 20, /* without options */
	PK_ICMP_BYTES = 8,
	PK_ARP_BYTES = 28, /* IPv4 over Ethernet */
};

/* Ethernet types; below 0x600 the field is an IEEE 802.3 length. */
enum {
	PK_ETH_LEN_MAX = 1500,
	PK_ETH_TYPE_MIN = 0x0600,
	PK_ETH_IPV4 = 0x0800,
	PK_ETH_ARP = 0x0806,
	PK_ETH_VLAN = 0x8100, /* IEEE 802.1Q */
	PK_ETH_IPV6 = 0x86dd,
	PK_ETH_QINQ = 0x88a8,  /* IEEE 802.1ad service tag */
	PK_ETH_LOCAL = 0x88b5, /* IEEE 802 local experimental 1 */
};

/* IP protocol numbers (IANA). */
enum {
	PK_IP_HOPOPTS = 0,
	PK_IP_ICMP = 1,
	PK_IP_TCP = 6,
	PK_IP_UDP = 17,
	PK_IP_ROUTING = 43,
	PK_IP_FRAGMENT = 44,
	PK_IP_ESP = 50,
	PK_IP_AH = 51,
	PK_IP_ICMPV6 = 58,
	PK_IP_NONE = 59,
	PK_IP_DSTOPTS = 60,
	PK_IP_MOBILITY = 135,
	PK_IP_HIP = 139,
	PK_IP_SHIM6 = 140,
	PK_IP_EXPERIMENT = 253, /* RFC 3692 */
};

/* IPv4 flags and offset (RFC 791), as the 16-bit field holds them. */
enum {
	PK_IPV4_DF = 0x4000,
	PK_IPV4_MF = 0x2000,
	PK_IPV4_FRAG_OFFSET = 0x1fff, /* units of 8 bytes */
};

/* VLAN tag control information. */
enum {
	PK_VLAN_ID = 0x0fff,
	PK_VLAN_DEI = 0x1000,
	PK_VLAN_PCP_SHIFT = 13,
	PK_VLAN_ID_MAX = 4094, /* 4095 is reserved */
};

struct pk_eth {
	uint8_t dst[6];
	uint8_t src[6];
	uint16_t type;
} PK_WIRE;

struct pk_vlan {
	uint16_t tci;  /* priority 3, drop eligible 1, id 12 bits */
	uint16_t type; /* of what follows */
} PK_WIRE;

struct pk_ipv4 {
	uint8_t version_ihl; /* 4 and header length in 32-bit words */
	uint8_t tos;
	uint16_t total_len; /* header and payload */
	uint16_t id;
	uint16_t frag; /* flags and offset */
	uint8_t ttl;
	uint8_t proto;
	uint16_t csum;
	uint32_t src;
	uint32_t dst;
} PK_WIRE;

struct pk_ipv6 {
	uint32_t flow; /* version 4, traffic class 8, flow label 20 bits */
	uint16_t payload_len;
	uint8_t next;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
} PK_WIRE;

struct pk_udp {
	uint16_t src;
	uint16_t dst;
	uint16_t len; /* header and payload; 0 in jumbograms */
	uint16_t csum;
} PK_WIRE;

struct pk_tcp {
	uint16_t src;
	uint16_t dst;
	uint32_t seq;
	uint32_t ack;
	uint8_t offset; /* header length in 32-bit words, upper four bits */
	uint8_t flags;  /* CWR ECE URG ACK PSH RST SYN FIN */
	uint16_t window;
	uint16_t csum;
	uint16_t urgent;
} PK_WIRE;

struct pk_icmp {
	uint8_t type;
	uint8_t code;
	uint16_t csum;
	uint16_t id;  /* echo */
	uint16_t seq; /* echo */
} PK_WIRE;

struct pk_arp {
	uint16_t htype; /* 1 = Ethernet */
	uint16_t ptype; /* PK_ETH_IPV4 */
	uint8_t hlen;   /* 6 */
	uint8_t plen;   /* 4 */
	uint16_t op;    /* 1 request, 2 reply */
	uint8_t sha[6];
	uint32_t spa;
	uint8_t tha[6];
	uint32_t tpa;
} PK_WIRE;

static_assert(sizeof(struct pk_eth) == PK_ETH_BYTES, "Ethernet");
static_assert(sizeof(struct pk_vlan) == PK_VLAN_BYTES, "VLAN tag");
static_assert(sizeof(struct pk_ipv4) == PK_IPV4_BYTES, "IPv4");
static_assert(sizeof(struct pk_ipv6) == PK_IPV6_BYTES, "IPv6");
static_assert(sizeof(struct pk_udp) == PK_UDP_BYTES, "UDP");
static_assert(sizeof(struct pk_tcp) == PK_TCP_BYTES, "TCP");
static_assert(sizeof(struct pk_icmp) == PK_ICMP_BYTES, "ICMP");
static_assert(sizeof(struct pk_arp) == PK_ARP_BYTES, "ARP");

#endif
