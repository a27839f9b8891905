// SPDX-License-Identifier: BSD-2-Clause
/* The slow path's beginning: one frame, whatever it is. */
#include <string.h>

#include "packet/csum.h"
#include "route/worker.h"

/* So much of a frame is brought into its first buffer: all headers that anybody sends. */
#define HEADERS_BYTES 1024u

void ro_drop(struct ro_worker *w, struct ro_pkt *p, enum ro_drop why)
{
	pk_free_slots(w->cache, p->slot, p->n);
	ro_count_drop(w, why);
}

void ro_used(struct ro_worker *w, struct ro_pkt *p)
{
	pk_free_slots(w->cache, p->slot, p->n);
	ho_ctr_add(&w->ctr.local, 1);
}

bool ro_make(struct ro_worker *w, const void *ip, uint32_t bytes, uint8_t family,
	     struct pk_slot *slots, struct ro_pkt *out)
{
	unsigned n = pk_frame_from_bytes(w->cache, ip, bytes, slots, PK_FRAME_MAX_SLOTS);

	if (!n)
		return false;
	*out = (struct ro_pkt){ .slot = slots, .n = n, .ip_bytes = bytes, .family = family };
	out->l2 = out->ip = pk_data(w->arena, &slots[0]);
	out->have = slots[0].len;
	ho_ctr_add(&w->ctr.generated, 1);
	return true;
}

/* The frame once more, with as much as possible in its first buffer. false: no buffers. */
static bool gather(struct ro_worker *w, struct ro_pkt *p, struct pk_slot *fresh)
{
	struct pk_slot first = p->slot[0];
	uint32_t bytes = pk_frame_to_bytes(w->arena, p->slot, p->n, w->scratch, sizeof(w->scratch));
	unsigned n = pk_frame_from_bytes(w->cache, w->scratch, bytes, fresh, PK_FRAME_MAX_SLOTS);

	if (!n)
		return false;
	for (unsigned i = 0; i < p->n; i++)
		pk_free_slots(w->cache, p->slot + i, 1);
	fresh[0].flags |= first.flags & (uint16_t)~PK_MORE;
	fresh[0].vlan = first.vlan;
	fresh[0].meta = first.meta;
	p->slot = fresh;
	p->n = n;
	return true;
}

/* The tag's id, beside or inside of the frame, and the type behind it. Returns bytes of layer 2, 0
 * if the frame is too short, 1 if it has more tags than we have interfaces for. */
static unsigned look_at_tag(const struct ro_pkt *p, unsigned *vid, unsigned *type)
{
	uint32_t len = p->slot[0].len;

	*vid = p->slot[0].flags & PK_VLAN ? p->slot[0].vlan & PK_VLAN_ID : 0;
	if (len < PK_ETH_BYTES)
		return 0;
	*type = pk_load16(p->l2 + 12);
	if (*type != PK_ETH_VLAN)
		return PK_ETH_BYTES;
	if (*vid)
		return 1;
	if (len < PK_ETH_BYTES + PK_VLAN_BYTES)
		return 0;
	*vid = pk_load16(p->l2 + 14) & PK_VLAN_ID;
	*type = pk_load16(p->l2 + 16);
	return *type == PK_ETH_VLAN ? 1 : PK_ETH_BYTES + PK_VLAN_BYTES;
}

static void layer2(struct ro_worker *w, unsigned port, struct ro_pkt *p)
{
	struct ro_iface *const *row = RO_RCU_GET(w->view->by_vlan[port]);
	unsigned vid, type = 0, l2_bytes;

	p->l2 = pk_data(w->arena, &p->slot[0]);
	l2_bytes = look_at_tag(p, &vid, &type);
	if (l2_bytes < PK_ETH_BYTES) {
		ro_drop(w, p, l2_bytes ? RO_DROP_ETHERTYPE : RO_DROP_ETH_SHORT);
		return;
	}
	p->in = row ? RO_RCU_GET(row[vid]) : NULL;
	if (!p->in || !p->in->up) {
		ro_drop(w, p, p->in ? RO_DROP_INTERFACE_DOWN : RO_DROP_NO_INTERFACE);
		return;
	}
	p->group = p->l2[0] & 1;
	if (!p->group && memcmp(p->l2, p->in->mac, 6) != 0) {
		ro_drop(w, p, RO_DROP_NOT_OURS);
		return;
	}
	p->ip = p->l2 + l2_bytes;
	p->have = p->slot[0].len - l2_bytes;
	switch (type) {
	case PK_ETH_IPV4:
		p->family = RO_IPV4;
		ro_ip4_input(w, p);
		break;
	case PK_ETH_IPV6:
		p->family = RO_IPV6;
		ro_ip6_input(w, p);
		break;
	case PK_ETH_ARP:
		ro_arp_input(w, p, l2_bytes);
		break;
	default:
		ro_drop(w, p, RO_DROP_ETHERTYPE);
	}
}

void ro_slow(struct ro_worker *w, unsigned port, struct pk_slot *slots, unsigned n)
{
	struct ro_pkt p = { .slot = slots, .n = n };
	struct pk_slot fresh[PK_FRAME_MAX_SLOTS];

	if (n > 1 && slots[0].len < HEADERS_BYTES && !gather(w, &p, fresh)) {
		ro_drop(w, &p, RO_DROP_NO_BUFFER);
		return;
	}
	layer2(w, port, &p);
}
