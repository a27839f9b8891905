// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets that wait for a neighbour: at most RO_HOLD_PACKETS for each of RO_HOLD_NEIGHS, the newest
 * (RFC 1122 2.3.2.2 wants the last one kept, RFC 4861 7.2.2 a small queue). They leave when the
 * neighbour is there, are answered with "unreachable" when it does not come, and wait for
 * HOLD_NS at most.
 */
#include <string.h>

#include "route/worker.h"

#define HOLD_NS 4000000000u /* longer than three attempts a second apart */
#define ASK_NS  1000000000u
/* The longest time between two looks when nothing is known to have changed. */
#define LOOK_NS 100000000u

static void unreachable(struct ro_worker *w, struct ro_pkt *p, enum ro_drop why)
{
	/* RFC 1812 5.2.7.1: host unreachable; RFC 4443 3.1: address unreachable. */
	if (p->family == RO_IPV4)
		ro_icmp4_error(w, p, 3, 1, 0);
	else
		ro_icmp6_error(w, p, 1, 3, 0);
	ro_drop(w, p, why);
}

static void ask(struct ro_worker *w, struct ro_hold *h)
{
	struct ro_wish wish = { .kind = RO_WISH_RESOLVE, .ifindex = h->ifindex, .addr = h->addr };

	if (ro_wish_put(w->wishes, &wish))
		h->asked_ns = w->now_ns;
}

static struct ro_hold *find(struct ro_worker *w, uint32_t ifindex, const struct ro_addr *addr)
{
	struct ro_hold *spare = NULL;

	for (unsigned i = 0; i < RO_HOLD_NEIGHS; i++) {
		struct ro_hold *h = &w->hold[i];

		if (!h->used)
			spare = spare ? spare : h;
		else if (h->ifindex == ifindex && h->addr.family == addr->family &&
			 !memcmp(h->addr.byte, addr->byte, ro_addr_bytes(addr->family)))
			return h;
	}
	if (!spare)
		return NULL;
	spare->used = true;
	spare->ifindex = ifindex;
	spare->addr = *addr;
	spare->since_ns = w->now_ns;
	spare->packets = 0;
	w->holding++;
	ask(w, spare);
	return spare;
}

static void restore(struct ro_worker *w, struct ro_held *held, struct ro_pkt *p)
{
	*p = (struct ro_pkt){
		.slot = held->slot, .n = held->n, .family = held->family, .group = held->group
	};
	p->in = held->own ? NULL : ro_iface_at(w->view, held->in);
	p->l2 = pk_data(w->arena, &held->slot[0]);
	p->ip = p->l2 + held->l2_bytes;
	p->have = held->slot[0].len - held->l2_bytes;
	p->ip_bytes = held->family == RO_IPV4 ? pk_load16(p->ip + 2)
					      : PK_IPV6_BYTES + (uint32_t)pk_load16(p->ip + 4);
}

static void drop_oldest(struct ro_worker *w, struct ro_hold *h)
{
	struct ro_pkt p;

	restore(w, &h->packet[0], &p);
	ro_drop(w, &p, RO_DROP_HOLD_FULL);
	h->packets--;
	memmove(&h->packet[0], &h->packet[1], h->packets * sizeof(h->packet[0]));
}

void ro_hold(struct ro_worker *w, struct ro_pkt *p, uint32_t ifindex, const struct ro_addr *addr,
	     uint32_t mtu)
{
	const struct ro_neigh *n = ro_neigh_find(w->view, ifindex, addr);
	struct ro_held *held;
	struct ro_hold *h;

	/* It did not answer a moment ago. */
	if (n && __atomic_load_n(&n->state, __ATOMIC_ACQUIRE) == RO_NEIGH_FAILED) {
		unreachable(w, p, RO_DROP_NEIGH_FAILED);
		return;
	}
	h = find(w, ifindex, addr);
	if (!h) {
		ro_drop(w, p, RO_DROP_HOLD_FULL);
		return;
	}
	if (h->packets == RO_HOLD_PACKETS)
		drop_oldest(w, h);
	held = &h->packet[h->packets++];
	held->n = p->n;
	held->l2_bytes = (uint16_t)(p->ip - p->l2);
	held->family = p->family;
	held->own = !p->in;
	held->group = p->group;
	held->mtu = mtu;
	held->in = p->in ? p->in->slot : 0;
	memcpy(held->slot, p->slot, p->n * sizeof(p->slot[0]));
	ho_ctr_add(&w->ctr.held, 1);
}

/* By the neighbour's next hop, as long as the packet's own route lets it be. The neighbour's MTU is
 * that of the route to the neighbour. */
static void leave(struct ro_worker *w, const struct ro_held *held, struct ro_pkt *p,
		  const struct ro_nh *nh)
{
	const struct ro_iface *iface = ro_iface_at(w->view, nh->iface);
	uint32_t mtu = iface ? HO_MIN(held->mtu, iface->mtu) : held->mtu;

	/* It was short enough when it came; the interface may have changed since. */
	if (held->own || !ro_too_big(w, p, mtu))
		ro_send(w, p, nh, mtu);
}

/* All that wait for it leave: by nh, or as dropped. What is made of that may wait itself, in the
 * place that becomes free. */
static void release(struct ro_worker *w, struct ro_hold *h, const struct ro_nh *nh,
		    enum ro_drop why)
{
	struct ro_hold was = *h;
	struct ro_pkt p;

	h->packets = 0;
	h->used = false;
	w->holding--;
	for (unsigned i = 0; i < was.packets; i++) {
		restore(w, &was.packet[i], &p);
		if (nh)
			leave(w, &was.packet[i], &p, nh);
		else if (why == RO_DROP_NEIGH_FAILED)
			unreachable(w, &p, why);
		else
			ro_drop(w, &p, why);
	}
}

static void look_at(struct ro_worker *w, struct ro_hold *h)
{
	const struct ro_neigh *n = ro_neigh_find(w->view, h->ifindex, &h->addr);
	uint8_t state = n ? __atomic_load_n(&n->state, __ATOMIC_ACQUIRE) : RO_NEIGH_UNRESOLVED;
	const struct ro_nh *nh = n ? ro_nh_at(w->view, n->nh) : NULL;

	if (state == RO_NEIGH_RESOLVED && nh && nh->kind == RO_NH_ETHER)
		release(w, h, nh, RO_DROP_COUNT);
	else if (state == RO_NEIGH_FAILED || w->now_ns - h->since_ns >= HOLD_NS)
		release(w, h, NULL, RO_DROP_NEIGH_FAILED);
	else if (w->now_ns - h->asked_ns >= ASK_NS)
		ask(w, h);
}

void ro_hold_look(struct ro_worker *w)
{
	uint32_t changes = __atomic_load_n(&w->view->neigh_changes, __ATOMIC_ACQUIRE);

	if (changes == w->neigh_changes && w->now_ns < w->hold_look_ns)
		return;
	w->neigh_changes = changes;
	w->hold_look_ns = w->now_ns + LOOK_NS;
	for (unsigned i = 0; i < RO_HOLD_NEIGHS; i++) {
		if (w->hold[i].used)
			look_at(w, &w->hold[i]);
	}
}

void ro_hold_close(struct ro_worker *w)
{
	for (unsigned i = 0; i < RO_HOLD_NEIGHS; i++) {
		if (w->hold[i].used)
			release(w, &w->hold[i], NULL, RO_DROP_HOLD_CLOSED);
	}
}
