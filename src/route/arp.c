// SPDX-License-Identifier: BSD-2-Clause
/*
 * ARP (RFC 826), as the workers do it: requests for the router's addresses are answered at once,
 * probes among them (RFC 5227), and what the messages say about neighbours is passed on to the
 * control plane, which alone changes the tables.
 */
#include <string.h>

#include "route/worker.h"

enum { REQUEST = 1, REPLY = 2, ETHERNET = 1 };

static void build(uint8_t *a, uint16_t op, const uint8_t *sha, const uint8_t *spa,
		  const uint8_t *tha, const uint8_t *tpa)
{
	pk_store16(a, ETHERNET);
	pk_store16(a + 2, PK_ETH_IPV4);
	a[4] = 6;
	a[5] = 4;
	pk_store16(a + 6, op);
	memcpy(a + 8, sha, 6);
	memcpy(a + 14, spa, 4);
	memcpy(a + 18, tha, 6);
	memcpy(a + 24, tpa, 4);
}

/* Sends an ARP message in a fresh frame. */
static void send(struct ro_worker *w, const struct ro_iface *iface, const uint8_t *dst,
		 const uint8_t *arp)
{
	uint8_t frame[RO_ETH_MAX + PK_ARP_BYTES];
	unsigned n = 12, slots;
	struct pk_slot slot[PK_FRAME_MAX_SLOTS];

	memcpy(frame, dst, 6);
	memcpy(frame + 6, iface->mac, 6);
	if (iface->vlan) {
		pk_store16(frame + n, PK_ETH_VLAN);
		pk_store16(frame + n + 2, iface->vlan);
		n += PK_VLAN_BYTES;
	}
	pk_store16(frame + n, PK_ETH_ARP);
	memcpy(frame + n + 2, arp, PK_ARP_BYTES);
	if (!iface->up || !w->txq[iface->port])
		return;
	slots = pk_frame_from_bytes(w->cache, frame, n + 2 + PK_ARP_BYTES, slot,
				    PK_FRAME_MAX_SLOTS);
	if (!slots)
		return;
	ho_ctr_add(&w->ctr.generated, 1);
	ho_ctr_add(&w->ctr.sent, 1);
	ro_emit_raw(w, iface->port, slot, slots);
}

static void tell(struct ro_worker *w, const struct ro_pkt *p, uint8_t kind, const uint8_t *arp)
{
	struct ro_wish wish = { .kind = kind, .ifindex = p->in->ifindex };

	wish.addr.family = RO_IPV4;
	memcpy(wish.addr.byte, arp + 14, 4);
	memcpy(wish.mac, arp + 8, 6);
	/* Said again by the next message if there is no room now. */
	ro_wish_put(w->wishes, &wish);
}

static bool zero(const uint8_t *a, unsigned n)
{
	while (n && !a[n - 1])
		n--;
	return !n;
}

/* A sender that can be: not a group's address, not nobody's. */
static bool sound(const struct ro_pkt *p, const uint8_t *a)
{
	unsigned op;

	if (p->have < PK_ARP_BYTES)
		return false;
	op = pk_load16(a + 6);
	return pk_load16(a) == ETHERNET && pk_load16(a + 2) == PK_ETH_IPV4 && a[4] == 6 &&
	       a[5] == 4 && (op == REQUEST || op == REPLY) && !(a[8] & 1) && !zero(a + 8, 6) &&
	       a[14] < 224 && a[14] != 127;
}

void ro_arp_input(struct ro_worker *w, struct ro_pkt *p, uint32_t l2_bytes)
{
	const struct ro_iface *in = p->in;
	const uint8_t *a = p->l2 + l2_bytes;
	uint8_t answer[PK_ARP_BYTES], to[6];
	bool probe, ours;

	if (!w->own_stack) {
		ro_to_host(w, p);
		return;
	}
	if (!sound(p, a)) {
		ro_drop(w, p, RO_DROP_ARP_BAD);
		return;
	}
	probe = zero(a + 14, 4);
	ours = ro_iface_owns(in, RO_IPV4, a + 24);
	if (!probe && ro_iface_owns(in, RO_IPV4, a + 14)) {
		/* RFC 5227 2.4. Our own frames do not come back to us. */
		tell(w, p, RO_WISH_CONFLICT, a);
		ro_drop(w, p, RO_DROP_CONFLICT);
		return;
	}
	if (!probe && !ro_iface_on_link(in, RO_IPV4, a + 14)) {
		ro_drop(w, p, RO_DROP_ARP_OTHER);
		return;
	}
	if (!ours) {
		/* An announcement, or somebody else's business; either can tell us that a
		 * neighbour's address has changed. */
		if (!probe && !memcmp(a + 14, a + 24, 4)) {
			tell(w, p, RO_WISH_GRATUITOUS, a);
			ro_used(w, p);
		} else {
			ro_drop(w, p, RO_DROP_ARP_OTHER);
		}
		return;
	}
	if (!probe)
		tell(w, p, pk_load16(a + 6) == REPLY ? RO_WISH_ANSWER : RO_WISH_SEEN, a);
	if (pk_load16(a + 6) == REQUEST) {
		build(answer, REPLY, in->mac, a + 24, a + 8, a + 14);
		memcpy(to, a + 8, 6);
		send(w, in, to, answer);
	}
	ro_used(w, p);
}

void ro_arp_order(struct ro_worker *w, const struct ro_iface *iface, const struct ro_order *order)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, none[6];
	bool directed = memcmp(order->mac, none, 6) != 0;
	const uint8_t *src = order->kind == RO_ORDER_ANNOUNCE
				     ? order->addr.byte
				     : ro_source_on(w, iface, RO_IPV4, order->addr.byte);
	uint8_t arp[PK_ARP_BYTES];

	if (!src)
		return;
	build(arp, REQUEST, iface->mac, src, none, order->addr.byte);
	send(w, iface, directed ? order->mac : broadcast, arp);
}
