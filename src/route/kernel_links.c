// SPDX-License-Identifier: BSD-2-Clause
/* Which of the kernel's interfaces are the router's, their addresses, and the host's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "packet/headers.h"
#include "packet/parse.h"
#include "route/kernel_impl.h"

#define VLAN_8021Q 0x8100
/* After a link went down the kernel removes routes without a word, a moment later. */
#define AFTER_DOWN_NS 50000000u

struct kern_link *kern_link_find(const struct ro_kernel *k, uint32_t index)
{
	struct kern_link *l = k->link[index % KERN_LINK_BUCKETS];

	while (l && l->link.index != index)
		l = l->next;
	return l;
}

/* --- addresses ------------------------------------------------------------------------------ */

static void set_addr(struct ro_kernel *k, const struct kern_addr *a)
{
	struct ro_addr addr = kern_addr_of(&a->addr);
	struct ho_err err = { 0 };
	int rc = ro_addr_set(k->tables, a->index, &addr, a->len, &err);

	if (rc < 0)
		kern_refused(k, rc, &err);
}

static void del_addr(struct ro_kernel *k, const struct kern_addr *a)
{
	struct ro_addr addr = kern_addr_of(&a->addr);

	ro_addr_del(k->tables, a->index, &addr, a->len);
}

static bool link_is_ours(const struct ro_kernel *k, uint32_t index)
{
	const struct kern_link *l = kern_link_find(k, index);

	return l && l->ours;
}

static struct kern_addr *find_addr(struct ro_kernel *k, const struct kern_addr *like)
{
	for (unsigned i = 0; i < k->n_addr; i++) {
		struct kern_addr *a = &k->addr[i];

		if (a->index == like->index && a->len == like->len &&
		    !memcmp(&a->addr, &like->addr, sizeof(a->addr)))
			return a;
	}
	return NULL;
}

static void remove_addr(struct ro_kernel *k, struct kern_addr *a)
{
	if (link_is_ours(k, a->index))
		del_addr(k, a);
	*a = k->addr[--k->n_addr];
	k->host_dirty = true;
}

void kern_on_addr(struct ro_kernel *k, const struct lx_addr *m, bool gone)
{
	/* With a peer, the prefix is that of the peer; ours is the address alone. */
	struct kern_addr like = {
		.index = m->index,
		.len = m->peer ? (uint8_t)(8 * lx_family_bytes(m->addr.family)) : m->len,
		.addr = m->addr,
	};
	struct kern_addr *a = find_addr(k, &like);

	if (gone || m->tentative) {
		if (a)
			remove_addr(k, a);
		/* Routes that had it as their source, or the interface as their only one, went
		 * with it. */
		if (gone && m->addr.family == AF_INET)
			kern_want_redump(k, AFTER_DOWN_NS);
		return;
	}
	if (!a) {
		if (k->n_addr == k->addr_room) {
			unsigned room = k->addr_room ? 2 * k->addr_room : 64;
			struct kern_addr *grown = realloc(k->addr, room * sizeof(*grown));

			if (!grown) {
				kern_want_resync(k, 1000000000u);
				return;
			}
			k->addr = grown;
			k->addr_room = room;
		}
		a = &k->addr[k->n_addr++];
		*a = like;
		k->host_dirty = true;
	}
	a->seen = true;
	if (link_is_ours(k, a->index))
		set_addr(k, a);
}

/* The highest address of the prefix of an IPv4 address, as tables.c has it. False: there is none.
 */
static bool broadcast_of(const struct kern_addr *a, uint8_t out[4])
{
	if (a->addr.family != AF_INET || a->len > 30)
		return false;
	pk_store32(out, pk_load32(a->addr.byte) | UINT32_MAX >> a->len);
	return true;
}

void kern_tell_ports(struct ro_kernel *k)
{
	uint8_t(*list)[16];
	unsigned broadcasts = 0;

	if (!k->host_dirty)
		return;
	list = calloc(2 * k->n_addr + 1, sizeof(*list));
	if (!list)
		return; /* once more next time */
	for (unsigned i = 0; i < k->n_addr; i++) {
		const struct lx_ip *ip = &k->addr[i].addr;

		memcpy(ip->family == AF_INET ? list[i] + 12 : list[i], ip->byte,
		       lx_family_bytes(ip->family));
	}
	for (unsigned i = 0; i < k->n_addr; i++) {
		if (broadcast_of(&k->addr[i], list[k->n_addr + broadcasts] + 12))
			broadcasts++;
	}
	for (unsigned p = 0; p < k->ports; p++) {
		if (port_host_addrs(k->port[p], list, k->n_addr, broadcasts) < 0 &&
		    !k->said_space) {
			k->said_space = true;
			ho_note("this host has more addresses than its XDP programs can know; "
				"packets to the others reach the kernel by way of the router, "
				"more slowly");
		}
	}
	free(list);
	k->host_dirty = false;
}

/* --- interfaces ----------------------------------------------------------------------------- */

/* Which port and VLAN it is. false: not one of the router's; *why says why if one could think that
 * it should be. */
static bool place(const struct ro_kernel *k, const struct lx_link *link, unsigned *port,
		  uint16_t *vlan, const char **why)
{
	bool is_vlan = !strcmp(link->kind, "vlan") && !link->elsewhere;
	uint32_t on = is_vlan ? link->lower : link->index;
	const struct kern_link *below = is_vlan ? kern_link_find(k, on) : NULL;
	unsigned p = 0;

	*why = NULL;
	while (p < k->ports && k->ifindex[p] != on)
		p++;
	if (p == k->ports)
		return false;
	*port = p;
	*vlan = is_vlan ? link->vlan : 0;
	if (link->master)
		*why = "it belongs to a bridge, a bond or a VRF";
	else if (!link->has_mac)
		*why = "it has no Ethernet address";
	else if (is_vlan && link->vlan_protocol && link->vlan_protocol != VLAN_8021Q)
		*why = "its tags are not those of 802.1Q";
	else if (is_vlan && (!below || memcmp(below->link.mac, link->mac, sizeof(link->mac))))
		*why = "its address is not that of the interface below";
	else if (is_vlan && below->link.master)
		*why = "the interface below belongs to a bridge, a bond or a VRF";
	return !*why;
}

static void set_iface(struct ro_kernel *k, struct kern_link *l)
{
	struct port *port = k->port[l->port];
	struct ro_iface_config config = {
		.ifindex = l->link.index,
		.port = l->port,
		.vlan = l->vlan,
		.mtu = l->link.mtu,
		.up = l->link.carrier,
	};
	struct ho_err err = { 0 };
	int rc;

	memcpy(config.name, l->link.name, sizeof(l->link.name));
	memcpy(config.mac, l->link.mac, sizeof(config.mac));
	if (port->mtu && config.mtu > port->mtu) {
		if (!l->said)
			ho_warn("%s: its MTU of %u is more than the %u that the port was opened "
				"with, which goes on; start again to use it",
				l->link.name, config.mtu, port->mtu);
		l->said = true;
		config.mtu = port->mtu;
	}
	rc = ro_iface_set(k->tables, &config, &err);
	if (rc < 0)
		kern_refused(k, rc, &err);
	if (!l->vlan)
		port_host_mac(port, l->link.mac);
	port_host_vlan(port, l->vlan, rc == 0);
}

static void drop_iface(struct ro_kernel *k, struct kern_link *l)
{
	if (!l->ours)
		return;
	l->ours = false;
	port_host_vlan(k->port[l->port], l->vlan, false);
	ro_iface_del(k->tables, l->link.index);
}

/* Brings the tables up to date with what the link is now. */
static void evaluate(struct ro_kernel *k, struct kern_link *l)
{
	const char *why;
	unsigned port;
	uint16_t vlan;
	bool ours = place(k, &l->link, &port, &vlan, &why);

	if (!ours && why && !l->said) {
		ho_warn("%s is not routed: %s; the kernel has its packets", l->link.name, why);
		l->said = true;
	}
	if (l->ours && (!ours || l->port != port || l->vlan != vlan)) {
		drop_iface(k, l);
		k->paths_dirty = true;
		kern_routes_refresh(k, true);
	}
	if (!ours)
		return;
	l->port = port;
	l->vlan = vlan;
	set_iface(k, l);
	if (l->ours)
		return;
	l->ours = true;
	for (unsigned i = 0; i < k->n_addr; i++) {
		if (k->addr[i].index == l->link.index)
			set_addr(k, &k->addr[i]);
	}
	kern_routes_refresh(k, true);
	/* Its neighbours were not of interest when the kernel told them. */
	k->neighs_due = !k->resyncing;
}

static void evaluate_above(struct ro_kernel *k, uint32_t index)
{
	for (unsigned b = 0; b < KERN_LINK_BUCKETS; b++) {
		for (struct kern_link *l = k->link[b]; l; l = l->next) {
			if (l->link.lower == index && l->link.index != index &&
			    !strcmp(l->link.kind, "vlan"))
				evaluate(k, l);
		}
	}
}

static void remove_link(struct ro_kernel *k, struct kern_link **at)
{
	struct kern_link *l = *at;
	bool was_ours = l->ours;

	for (unsigned p = 0; p < k->ports; p++) {
		if (k->ifindex[p] == l->link.index)
			ho_warn("%s is gone: nothing comes from it or goes to it any more; start "
				"again when it is back",
				l->link.name);
	}
	drop_iface(k, l);
	*at = l->next;
	free(l);
	if (was_ours)
		kern_routes_refresh(k, true);
}

static struct kern_link **link_place(struct ro_kernel *k, uint32_t index)
{
	struct kern_link **at = &k->link[index % KERN_LINK_BUCKETS];

	while (*at && (*at)->link.index != index)
		at = &(*at)->next;
	return at;
}

void kern_on_link(struct ro_kernel *k, const struct lx_link *m, bool gone)
{
	struct kern_link **at = link_place(k, m->index), *l = *at;
	struct lx_link before;

	if (gone) {
		if (!l)
			return;
		remove_link(k, at);
		kern_want_redump(k, AFTER_DOWN_NS);
		return;
	}
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l) {
			kern_want_resync(k, 1000000000u);
			return;
		}
		*at = l;
	}
	before = l->link;
	l->link = *m;
	l->seen = true;
	evaluate(k, l);
	/* VLANs may have been told before what they lie on. */
	if (!before.index || before.master != m->master ||
	    memcmp(before.mac, m->mac, sizeof(m->mac)))
		evaluate_above(k, m->index);
	if (before.index && ((before.up && !m->up) || (before.carrier && !m->carrier)))
		kern_want_redump(k, AFTER_DOWN_NS);
}

/* --- resynchronisation ----------------------------------------------------------------------- */

void kern_links_begin(struct ro_kernel *k)
{
	for (unsigned b = 0; b < KERN_LINK_BUCKETS; b++) {
		for (struct kern_link *l = k->link[b]; l; l = l->next)
			l->seen = false;
	}
	for (unsigned i = 0; i < k->n_addr; i++)
		k->addr[i].seen = false;
}

void kern_links_end(struct ro_kernel *k)
{
	for (unsigned i = 0; i < k->n_addr;) {
		if (k->addr[i].seen)
			i++;
		else
			remove_addr(k, &k->addr[i]);
	}
	for (unsigned b = 0; b < KERN_LINK_BUCKETS; b++) {
		struct kern_link **at = &k->link[b];

		while (*at) {
			if ((*at)->seen)
				at = &(*at)->next;
			else
				remove_link(k, at);
		}
	}
}

void kern_links_free(struct ro_kernel *k)
{
	for (unsigned b = 0; b < KERN_LINK_BUCKETS; b++) {
		while (k->link[b]) {
			struct kern_link *l = k->link[b];

			k->link[b] = l->next;
			free(l);
		}
	}
	free(k->addr);
}

unsigned ro_kernel_ifaces(const struct ro_kernel *k, struct ro_kernel_iface *out, unsigned max)
{
	unsigned n = 0;

	for (unsigned b = 0; b < KERN_LINK_BUCKETS; b++) {
		for (const struct kern_link *l = k->link[b]; l && n < max; l = l->next) {
			if (l->ours)
				out[n++] = (struct ro_kernel_iface){ l->link.index, l->port,
								     l->vlan, l->link.carrier };
		}
	}
	return n;
}

const char *ro_kernel_iface_name(const struct ro_kernel *k, unsigned i)
{
	for (unsigned b = 0; b < KERN_LINK_BUCKETS; b++) {
		for (const struct kern_link *l = k->link[b]; l; l = l->next) {
			if (l->ours && i-- == 0)
				return l->link.name;
		}
	}
	return NULL;
}
