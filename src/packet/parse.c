// SPDX-License-Identifier: BSD-2-Clause
#include "packet/parse.h"

#include <string.h>

/* What is being parsed. Nothing at or behind `have` may be read, nothing behind `end` belongs to
 * the datagram. */
struct view {
	const uint8_t *data;
	uint32_t have;
	uint32_t frame;
};

/*
 * May `bytes` bytes at off be read, out of a unit (frame or datagram) that ends at `limit`? If not,
 * why: the unit is too short, or the rest is in another buffer.
 */
static enum pk_parse_result reach(const struct view *v, uint32_t off, uint32_t bytes,
				  uint32_t limit, enum pk_parse_result too_short)
{
	if (off > limit || bytes > limit - off)
		return too_short;
	if (off + bytes > v->have)
		return PK_PARSE_SPLIT;
	return PK_PARSE_OK;
}

static enum pk_parse_result parse_l4(const struct view *v, struct pk_headers *h)
{
	const uint8_t *at = v->data + h->l4_off;
	enum pk_parse_result rc;
	uint32_t left = h->end - h->l4_off, len;

	h->payload_off = h->l4_off;
	switch (h->proto) {
	case PK_IP_UDP:
		rc = reach(v, h->l4_off, PK_UDP_BYTES, h->end, PK_PARSE_L4_SHORT);
		if (rc)
			return rc;
		len = pk_load16(at + 4);
		/* The first fragment holds only part of what the length counts. */
		if (len < PK_UDP_BYTES || (len > left && !h->fragment))
			return PK_PARSE_UDP_LEN;
		h->l4 = PK_L4_UDP;
		h->payload_off += PK_UDP_BYTES;
		break;
	case PK_IP_TCP:
		rc = reach(v, h->l4_off, PK_TCP_BYTES, h->end, PK_PARSE_L4_SHORT);
		if (rc)
			return rc;
		len = (at[12] >> 4) * 4u;
		if (len < PK_TCP_BYTES || len > left)
			return PK_PARSE_TCP_HEADER_LEN;
		rc = reach(v, h->l4_off, len, h->end, PK_PARSE_TCP_HEADER_LEN);
		if (rc)
			return rc;
		h->l4 = PK_L4_TCP;
		h->payload_off += len;
		break;
	case PK_IP_ICMP:
	case PK_IP_ICMPV6:
		/* Each belongs to its own IP version only. */
		if ((h->proto == PK_IP_ICMP) != (h->l3 == PK_L3_IPV4))
			return PK_PARSE_OK;
		rc = reach(v, h->l4_off, PK_ICMP_BYTES, h->end, PK_PARSE_L4_SHORT);
		if (rc)
			return rc;
		h->l4 = h->proto == PK_IP_ICMP ? PK_L4_ICMP : PK_L4_ICMPV6;
		h->payload_off += PK_ICMP_BYTES;
		return PK_PARSE_OK;
	default:
		return PK_PARSE_OK;
	}
	h->src_port = pk_load16(at);
	h->dst_port = pk_load16(at + 2);
	return PK_PARSE_OK;
}

static enum pk_parse_result parse_ipv4(const struct view *v, struct pk_headers *h)
{
	const uint8_t *at = v->data + h->l3_off;
	uint32_t header, total, frag;
	enum pk_parse_result rc;

	rc = reach(v, h->l3_off, PK_IPV4_BYTES, v->frame, PK_PARSE_IPV4_SHORT);
	if (rc)
		return rc;
	if (at[0] >> 4 != 4)
		return PK_PARSE_IPV4_VERSION;
	header = (at[0] & 15) * 4u;
	if (header < PK_IPV4_BYTES)
		return PK_PARSE_IPV4_HEADER_LEN;
	rc = reach(v, h->l3_off, header, v->frame, PK_PARSE_IPV4_SHORT);
	if (rc)
		return rc;
	total = pk_load16(at + 2);
	if (total < header || total > v->frame - h->l3_off)
		return PK_PARSE_IPV4_TOTAL_LEN;
	h->l3 = PK_L3_IPV4;
	h->proto = at[9];
	h->end = h->l3_off + total;
	h->l4_off = h->payload_off = h->l3_off + header;
	frag = pk_load16(at + 6);
	h->fragment = frag & (PK_IPV4_MF | PK_IPV4_FRAG_OFFSET);
	h->first = !(frag & PK_IPV4_FRAG_OFFSET);
	h->fragment_id = h->fragment ? pk_load16(at + 4) : 0;
	return h->first ? parse_l4(v, h) : PK_PARSE_OK;
}

/* Walks the extension headers (RFC 8200 section 4) to what IP carries. */
static enum pk_parse_result parse_ipv6(const struct view *v, struct pk_headers *h)
{
	const uint8_t *at = v->data + h->l3_off;
	enum pk_parse_result rc;
	uint32_t off, len;
	uint8_t next;

	rc = reach(v, h->l3_off, PK_IPV6_BYTES, v->frame, PK_PARSE_IPV6_SHORT);
	if (rc)
		return rc;
	if (at[0] >> 4 != 6)
		return PK_PARSE_IPV6_VERSION;
	len = pk_load16(at + 4);
	off = h->l3_off + PK_IPV6_BYTES;
	/* A length of 0 with a hop-by-hop header may be a jumbogram (RFC 2675): nothing that
	 * Ethernet carries, so it is taken at its word. */
	if (len > v->frame - off)
		return PK_PARSE_IPV6_PAYLOAD_LEN;
	h->l3 = PK_L3_IPV6;
	h->end = off + len;
	h->first = true;
	next = at[6];
	for (unsigned n = 0;; n++) {
		h->proto = next;
		h->l4_off = h->payload_off = off;
		switch (next) {
		case PK_IP_HOPOPTS:
		case PK_IP_ROUTING:
		case PK_IP_DSTOPTS:
		case PK_IP_MOBILITY:
		case PK_IP_HIP:
		case PK_IP_SHIM6:
		case PK_IP_FRAGMENT:
		case PK_IP_AH:
			break;
		default:
			return h->first ? parse_l4(v, h) : PK_PARSE_OK;
		}
		if (n == PK_IPV6_EXT_MAX)
			return PK_PARSE_IPV6_EXT_MANY;
		rc = reach(v, off, 8, h->end, PK_PARSE_IPV6_EXT_SHORT);
		if (rc)
			return rc;
		at = v->data + off;
		len = 8;
		if (next == PK_IP_FRAGMENT) {
			/* Offset and the more flag both 0: an atomic fragment is no fragment
			 * (RFC 6946). */
			h->fragment = pk_load16(at + 2) & 0xfff9;
			h->first = !(pk_load16(at + 2) & 0xfff8);
			h->fragment_id = h->fragment ? pk_load32(at + 4) : 0;
		} else if (next == PK_IP_AH) {
			len = (at[1] + 2u) * 4; /* RFC 4302: words of 4 */
		} else {
			len = (at[1] + 1u) * 8;
			if (next == PK_IP_ROUTING && at[3])
				h->routed = true;
		}
		rc = reach(v, off, len, h->end, PK_PARSE_IPV6_EXT_SHORT);
		if (rc)
			return rc;
		next = at[0];
		off += len;
		/* What follows in a later fragment is the middle of something. */
		if (!h->first) {
			h->proto = next;
			h->l4_off = h->payload_off = off;
			return PK_PARSE_OK;
		}
	}
}

static enum pk_parse_result parse_arp(const struct view *v, struct pk_headers *h)
{
	const uint8_t *at = v->data + h->l3_off;
	enum pk_parse_result rc;

	rc = reach(v, h->l3_off, PK_ARP_BYTES, v->frame, PK_PARSE_ARP_SHORT);
	if (rc)
		return rc;
	if (pk_load16(at) != 1 || pk_load16(at + 2) != PK_ETH_IPV4 || at[4] != 6 || at[5] != 4)
		return PK_PARSE_ARP_BAD;
	h->l3 = PK_L3_ARP;
	h->end = h->payload_off = h->l3_off + PK_ARP_BYTES;
	return PK_PARSE_OK;
}

enum pk_parse_result pk_parse(const uint8_t *data, uint32_t have, uint32_t frame_bytes,
			      struct pk_headers *out)
{
	const struct view v = { data, have < frame_bytes ? have : frame_bytes, frame_bytes };
	struct pk_headers *h = out;
	enum pk_parse_result rc;
	uint32_t off = PK_ETH_BYTES;

	memset(h, 0, sizeof(*h));
	h->end = frame_bytes;
	rc = reach(&v, 0, PK_ETH_BYTES, frame_bytes, PK_PARSE_ETH_SHORT);
	if (rc)
		return rc;
	h->ethertype = pk_load16(data + 12);
	while (h->vlans < 2 && (h->ethertype == PK_ETH_VLAN || h->ethertype == PK_ETH_QINQ)) {
		rc = reach(&v, off, PK_VLAN_BYTES, frame_bytes, PK_PARSE_VLAN_SHORT);
		if (rc)
			return rc;
		h->tpid[h->vlans] = h->ethertype;
		h->vlan[h->vlans++] = pk_load16(data + off);
		h->ethertype = pk_load16(data + off + 2);
		off += PK_VLAN_BYTES;
	}
	h->l3_off = h->payload_off = off;
	switch (h->ethertype) {
	case PK_ETH_IPV4:
		return parse_ipv4(&v, h);
	case PK_ETH_IPV6:
		return parse_ipv6(&v, h);
	case PK_ETH_ARP:
		return parse_arp(&v, h);
	default:
		return PK_PARSE_OK;
	}
}

static const struct {
	const char *name, *meaning;
} results[PK_PARSE_COUNT] = {
#define PK_PARSE_ROW(id, name, text) [PK_PARSE_##id] = { name, text },
	PK_PARSE_RESULTS(PK_PARSE_ROW)
#undef PK_PARSE_ROW
};

const char *pk_parse_name(enum pk_parse_result result)
{
	return (unsigned)result < PK_PARSE_COUNT ? results[result].name : "?";
}

const char *pk_parse_meaning(enum pk_parse_result result)
{
	return (unsigned)result < PK_PARSE_COUNT ? results[result].meaning : "?";
}
