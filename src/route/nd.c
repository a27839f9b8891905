// SPDX-License-Identifier: BSD-2-Clause
/*
 * Neighbour Discovery (RFC 4861), as the workers do it: what must be discarded is, solicitations
 * for the router's addresses are answered at once, those of duplicate address detection among them
 * (RFC 4862 5.4.3), and what was said about neighbours is passed on to the control plane. Router
 * advertisements are neither sent nor listened to, nor are redirects.
 */
#include <string.h>

#include "packet/csum.h"
#include "route/worker.h"

enum { ROUTER_SOLICIT = 133, SOLICIT = 135, ADVERT = 136 };
enum { OPT_SOURCE = 1, OPT_TARGET = 2 };
enum {
	HEAD_BYTES = 24,
	OPTION_BYTES = 8,
	MESSAGE_BYTES = PK_IPV6_BYTES + HEAD_BYTES + OPTION_BYTES
};

static const uint8_t unspecified[16];
static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

/* RFC 4291 2.7.1. */
static void solicited_node(const uint8_t *target, uint8_t *group)
{
	static const uint8_t prefix[13] = { 0xff, 0x02, [11] = 1, [12] = 0xff };

	memcpy(group, prefix, sizeof(prefix));
	memcpy(group + 13, target + 13, 3);
}

/* A solicitation or advertisement with our link-layer address in it. */
static void build(uint8_t *m, uint8_t type, uint8_t flags, const uint8_t *src, const uint8_t *dst,
		  const uint8_t *target, const uint8_t *mac)
{
	uint8_t *icmp = m + PK_IPV6_BYTES;
	uint16_t csum;

	memset(m, 0, MESSAGE_BYTES);
	m[0] = 0x60;
	pk_store16(m + 4, HEAD_BYTES + OPTION_BYTES);
	m[6] = PK_IP_ICMPV6;
	m[7] = 255;
	memcpy(m + 8, src, 16);
	memcpy(m + 24, dst, 16);
	icmp[0] = type;
	icmp[4] = flags;
	memcpy(icmp + 8, target, 16);
	icmp[24] = type == SOLICIT ? OPT_SOURCE : OPT_TARGET;
	icmp[25] = 1;
	memcpy(icmp + 26, mac, 6);
	csum = pk_csum_finish(
		pk_csum_pseudo6(m + 8, m + 24, PK_IP_ICMPV6, HEAD_BYTES + OPTION_BYTES) +
		pk_csum(icmp, HEAD_BYTES + OPTION_BYTES));
	memcpy(icmp + 2, &csum, 2);
}

/* To a link-layer address that is known without asking. */
static void send(struct ro_worker *w, const struct ro_iface *iface, const uint8_t *mac,
		 const uint8_t *message)
{
	struct ro_nh nh = { .kind = RO_NH_ETHER,
			    .eth_bytes = iface->vlan ? RO_ETH_MAX : PK_ETH_BYTES,
			    .port = iface->port,
			    .mtu = iface->mtu,
			    .iface = iface->slot };
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	struct ro_pkt p;

	memcpy(nh.eth, mac, 6);
	memcpy(nh.eth + 6, iface->mac, 6);
	if (iface->vlan) {
		pk_store16(nh.eth + 12, PK_ETH_VLAN);
		pk_store16(nh.eth + 14, iface->vlan);
	}
	if (iface->up && w->txq[iface->port] &&
	    ro_make(w, message, MESSAGE_BYTES, RO_IPV6, slots, &p))
		ro_emit(w, &p, &nh);
}

static void group_mac(const uint8_t *group, uint8_t *mac)
{
	mac[0] = mac[1] = 0x33; /* RFC 2464 7 */
	memcpy(mac + 2, group + 12, 4);
}

static void tell(struct ro_worker *w, const struct ro_pkt *p, uint8_t kind, const uint8_t *addr,
		 const uint8_t *mac, uint8_t flags)
{
	struct ro_wish wish = { .kind = kind, .flags = flags, .ifindex = p->in->ifindex };

	wish.addr.family = RO_IPV6;
	memcpy(wish.addr.byte, addr, 16);
	if (mac)
		memcpy(wish.mac, mac, 6);
	else
		wish.flags |= RO_ND_NO_MAC;
	ro_wish_put(w->wishes, &wish);
}

/* Finds the link-layer address in the options from `at` on. false: they are not sound. */
static bool options(const struct ro_pkt *p, uint32_t at, uint8_t which, const uint8_t **mac)
{
	uint32_t end = HO_MIN(p->have, p->ip_bytes);

	*mac = NULL;
	while (at < end) {
		uint32_t bytes;

		if (at + 2 > end)
			return false;
		bytes = p->ip[at + 1] * 8u;
		if (!bytes || at + bytes > end)
			return false;
		if (p->ip[at] == which && !*mac)
			*mac = p->ip + at + 2;
		at += bytes;
	}
	return true;
}

static void solicited(struct ro_worker *w, struct ro_pkt *p, uint32_t l4)
{
	const uint8_t *target = p->ip + l4 + 8, *src = p->ip + 8, *dst = p->ip + 24, *mac;
	bool probe = !memcmp(src, unspecified, 16);
	uint8_t message[MESSAGE_BYTES], to[6], flags, group[16];

	/* RFC 4861 7.1.1 */
	solicited_node(target, group);
	if (target[0] == 0xff || !options(p, l4 + HEAD_BYTES, OPT_SOURCE, &mac) ||
	    (probe && (memcmp(dst, group, 13) != 0 || mac)) || (mac && mac[0] & 1)) {
		ro_drop(w, p, RO_DROP_ND_BAD);
		return;
	}
	if (!ro_iface_owns(p->in, RO_IPV6, target)) {
		ro_drop(w, p, RO_DROP_ND_OTHER);
		return;
	}
	if (!probe && ro_iface_owns(p->in, RO_IPV6, src)) {
		ro_drop(w, p, RO_DROP_CONFLICT);
		return;
	}
	flags = RO_ND_ROUTER | RO_ND_OVERRIDE | (probe ? 0 : RO_ND_SOLICITED);
	if (probe) {
		group_mac(all_nodes, to);
	} else {
		/* Without the option the frame says where the asker is (7.2.4 lets us reply by
		 * what we know; this is what we know). */
		memcpy(to, mac ? mac : p->l2 + 6, 6);
		if (mac)
			tell(w, p, RO_WISH_SEEN, src, mac, 0);
	}
	build(message, ADVERT, flags, target, probe ? all_nodes : src, target, p->in->mac);
	send(w, p->in, to, message);
	ro_used(w, p);
}

static void advertised(struct ro_worker *w, struct ro_pkt *p, uint32_t l4)
{
	const uint8_t *icmp = p->ip + l4, *target = icmp + 8, *mac;
	uint8_t flags = icmp[4] & (RO_ND_ROUTER | RO_ND_SOLICITED | RO_ND_OVERRIDE);

	/* RFC 4861 7.1.2 */
	if (target[0] == 0xff || (p->ip[24] == 0xff && flags & RO_ND_SOLICITED) ||
	    !options(p, l4 + HEAD_BYTES, OPT_TARGET, &mac) || (mac && mac[0] & 1)) {
		ro_drop(w, p, RO_DROP_ND_BAD);
		return;
	}
	if (ro_iface_owns(p->in, RO_IPV6, target)) {
		/* RFC 4862 5.4.4 */
		tell(w, p, RO_WISH_CONFLICT, target, mac, flags);
		ro_drop(w, p, RO_DROP_CONFLICT);
		return;
	}
	tell(w, p, RO_WISH_ANSWER, target, mac, flags);
	ro_used(w, p);
}

void ro_nd_input(struct ro_worker *w, struct ro_pkt *p, uint32_t l4)
{
	uint8_t type = p->ip[l4];
	uint32_t end = HO_MIN(p->have, p->ip_bytes);

	/* A message that crossed a router is not from the link; one in pieces or with a routing
	 * header is refused (RFC 6980) with the length of what is left. */
	if (p->ip[7] != 255 || p->ip[l4 + 1] != 0 || l4 != PK_IPV6_BYTES ||
	    ((type == SOLICIT || type == ADVERT) && l4 + HEAD_BYTES > end)) {
		ro_drop(w, p, RO_DROP_ND_BAD);
		return;
	}
	if (type == SOLICIT)
		solicited(w, p, l4);
	else if (type == ADVERT)
		advertised(w, p, l4);
	else
		ro_used(w, p);
}

void ro_nd_order(struct ro_worker *w, const struct ro_iface *iface, const struct ro_order *order)
{
	static const uint8_t none[6];
	const uint8_t *target = order->addr.byte, *src;
	uint8_t message[MESSAGE_BYTES], group[16], to[6];

	if (order->kind == RO_ORDER_ANNOUNCE) {
		/* 7.2.6: unsolicited; the others are to override what they know. */
		group_mac(all_nodes, to);
		build(message, ADVERT, RO_ND_ROUTER | RO_ND_OVERRIDE, target, all_nodes, target,
		      iface->mac);
		send(w, iface, to, message);
		return;
	}
	src = ro_source_on(w, iface, RO_IPV6, target);
	if (!src)
		return;
	solicited_node(target, group);
	group_mac(group, to);
	if (memcmp(order->mac, none, 6) != 0) {
		memcpy(group, target, 16);
		memcpy(to, order->mac, 6);
	}
	build(message, SOLICIT, 0, src, group, target, iface->mac);
	send(w, iface, to, message);
}
