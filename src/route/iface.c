// SPDX-License-Identifier: BSD-2-Clause
/* Interfaces and the router's own addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "route/tables_impl.h"

#define VLANS 4096

struct ro_if *ro_if_find(struct ro_tables *t, uint32_t ifindex)
{
	for (unsigned i = 0; i < t->ifaces; i++) {
		if (t->iface[i] && t->iface[i]->config.ifindex == ifindex)
			return t->iface[i];
	}
	return NULL;
}

/* --- as workers see it ---------------------------------------------------------------------- */

static struct ro_iface *make_view(const struct ro_if *i)
{
	struct ro_iface *v = calloc(1, sizeof(*v) + i->n_addr * sizeof(v->addr[0]));
	uint8_t word[8] = { 0 };
	unsigned n = 0;

	if (!v)
		return NULL;
	v->ifindex = i->config.ifindex;
	v->slot = i->slot;
	v->port = (uint16_t)i->config.port;
	v->vlan = i->config.vlan;
	memcpy(v->mac, i->config.mac, sizeof(v->mac));
	memcpy(word, i->config.mac, 6);
	memcpy(&v->mac_word, word, sizeof(v->mac_word));
	v->mtu = i->config.mtu;
	v->up = i->config.up;
	memcpy(v->name, i->config.name, sizeof(v->name));
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned a = 0; a < i->n_addr; a++) {
			if (ro_fam(i->addr[a].addr.family) != pass)
				continue;
			memcpy(v->addr[n].byte, i->addr[a].addr.byte, 16);
			v->addr[n++].len = i->addr[a].len;
		}
		if (pass == 0)
			v->n4 = n;
	}
	v->n6 = n - v->n4;
	return v;
}

/* Publishes a new view (NULL = the interface is gone) in its slot and for its port and VLAN. */
static void publish_view(struct ro_tables *t, struct ro_if *i, struct ro_iface *view)
{
	struct ro_iface **place = &t->view.iface[i->slot], *old = *place;

	if (old && (!view || old->port != view->port || old->vlan != view->vlan))
		RO_RCU_SET(t->view.by_vlan[old->port][old->vlan], NULL);
	RO_RCU_SET(*place, view);
	if (view)
		RO_RCU_SET(t->view.by_vlan[view->port][view->vlan], view);
	ro_retire(t, old, 0);
}

static int republish(struct ro_tables *t, struct ro_if *i)
{
	struct ro_iface *view = make_view(i);

	if (!view)
		return -ENOMEM;
	publish_view(t, i, view);
	return 0;
}

bool ro_iface_owns(const struct ro_iface *iface, uint8_t family, const uint8_t *byte)
{
	unsigned first = family == RO_IPV4 ? 0 : iface->n4;
	unsigned n = family == RO_IPV4 ? iface->n4 : iface->n6;

	for (unsigned i = first; i < first + n; i++) {
		if (!memcmp(iface->addr[i].byte, byte, ro_addr_bytes(family)))
			return true;
	}
	return false;
}

static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned len)
{
	unsigned whole = len / 8, rest = len % 8;

	return !memcmp(a, b, whole) && (!rest || !((a[whole] ^ b[whole]) >> (8 - rest)));
}

bool ro_iface_on_link(const struct ro_iface *iface, uint8_t family, const uint8_t *byte)
{
	unsigned first = family == RO_IPV4 ? 0 : iface->n4;
	unsigned n = family == RO_IPV4 ? iface->n4 : iface->n6;

	for (unsigned i = first; i < first + n; i++) {
		if (same_prefix(iface->addr[i].byte, byte, iface->addr[i].len))
			return true;
	}
	return false;
}

/* --- interfaces ----------------------------------------------------------------------------- */

static int check(struct ro_tables *t, const struct ro_iface_config *c, struct ho_err *err)
{
	const struct ro_iface *there;

	if (!c->ifindex)
		return ho_err_set(err, -EINVAL, "%s: interface number 0", c->name);
	if (c->port >= t->view.ports)
		return ho_err_set(err, -EINVAL, "%s: port %u of %u", c->name, c->port,
				  t->view.ports);
	if (c->vlan > PK_VLAN_ID_MAX)
		return ho_err_set(err, -EINVAL, "%s: VLAN %u is above %d", c->name, c->vlan,
				  PK_VLAN_ID_MAX);
	if (c->mtu < RO_MTU4_MIN || c->mtu > 65535)
		return ho_err_set(err, -EINVAL, "%s: MTU %u: from 68 to 65535 is possible", c->name,
				  c->mtu);
	there = t->view.by_vlan[c->port] ? t->view.by_vlan[c->port][c->vlan] : NULL;
	if (there && there->ifindex != c->ifindex)
		return ho_err_set(err, -EEXIST, "%s: port %u and VLAN %u are already %s", c->name,
				  c->port, c->vlan, there->name);
	if (!t->view.by_vlan[c->port]) {
		struct ro_iface **row = calloc(VLANS, sizeof(struct ro_iface *));

		if (!row)
			return ho_err_set(err, -ENOMEM, "%s: out of memory", c->name);
		RO_RCU_SET(t->view.by_vlan[c->port], row);
	}
	return 0;
}

static struct ro_if *new_if(struct ro_tables *t)
{
	struct ro_if *i;
	unsigned slot = 0;

	while (slot < t->ifaces && t->iface[slot])
		slot++;
	if (slot == RO_IFACES_MAX)
		return NULL;
	i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	i->slot = (uint16_t)slot;
	t->iface[slot] = i;
	t->ifaces = HO_MAX(t->ifaces, slot + 1);
	return i;
}

int ro_iface_set(struct ro_tables *t, const struct ro_iface_config *c, struct ho_err *err)
{
	struct ro_if *i = ro_if_find(t, c->ifindex);
	struct ro_iface_config before = { 0 };
	bool made = !i;
	int rc = check(t, c, err);

	if (rc < 0)
		return rc;
	if (!i)
		i = new_if(t);
	if (!i)
		return ho_err_set(err, -ENOMEM, "%s: out of memory, or more than %d interfaces",
				  c->name, RO_IFACES_MAX);
	before = i->config;
	i->seen = t->seen;
	i->config = *c;
	i->config.name[sizeof(i->config.name) - 1] = 0;
	if (!made && !memcmp(&before, &i->config, sizeof(before)))
		return 0;
	if (republish(t, i) < 0) {
		i->config = before;
		if (made) {
			t->iface[i->slot] = NULL;
			free(i);
		}
		return ho_err_set(err, -ENOMEM, "%s: out of memory", c->name);
	}
	ro_tables_refresh(t);
	ro_reclaim_some(t);
	return 0;
}

static void own_filter(struct ro_tables *t);
static void addr_uses(struct ro_tables *t, const struct ro_own_addr *a, int by);

int ro_iface_del(struct ro_tables *t, uint32_t ifindex)
{
	struct ro_if *i = ro_if_find(t, ifindex);

	if (!i)
		return -ENOENT;
	for (unsigned a = 0; a < i->n_addr; a++)
		addr_uses(t, &i->addr[a], -1);
	publish_view(t, i, NULL);
	t->iface[i->slot] = NULL;
	while (t->ifaces && !t->iface[t->ifaces - 1])
		t->ifaces--;
	free(i->addr);
	free(i);
	own_filter(t);
	ro_neighs_of_iface(t, ifindex);
	ro_tables_refresh(t);
	ro_reclaim_some(t);
	return 0;
}

/* --- addresses ------------------------------------------------------------------------------ */

static void own_bit(uint64_t *words, uint32_t *near, unsigned bit)
{
	words[bit / 64] |= 1ull << (bit % 64);
	near[bit / 256] |= 1u << (bit / 8 % 32);
}

/* Makes the filter of all own addresses anew. Without memory the old one stays, with every bit of
 * the new ones missing: so it is made of ones then. */
static void own_filter(struct ro_tables *t)
{
	struct ro_own *own = calloc(1, sizeof(*own)), *old = (struct ro_own *)t->view.own;

	if (!own) {
		/* Bits may be added in place: a reader sees an address as own too early. */
		own = old;
		old = NULL;
	}
	for (unsigned s = 0; s < t->ifaces; s++) {
		const struct ro_if *i = t->iface[s];

		for (unsigned a = 0; i && a < i->n_addr; a++) {
			const struct ro_addr *addr = &i->addr[a].addr;
			uint32_t word;

			if (addr->family == RO_IPV6) {
				own_bit(own->v6, own->near6, ro_own_bit6(addr->byte));
				continue;
			}
			/* Its link's broadcast address is no source either. */
			memcpy(&word, addr->byte, sizeof(word));
			own_bit(own->v4, own->near4, ro_own_bit4(word));
			if (i->addr[a].len < 31)
				own_bit(own->v4, own->near4,
					ro_own_bit4(word | htonl(0xffffffffu >> i->addr[a].len)));
		}
	}
	RO_RCU_SET(t->view.own, own);
	ro_retire(t, old, 0);
}

/* One use more or less of a prefix as local or broadcast. */
static void use(struct ro_tables *t, uint8_t family, const uint8_t *addr, bool broadcast, int by)
{
	struct ro_entry *e = ro_entry_get(t, family, addr, ro_bits(family));

	if (!e)
		return;
	if (broadcast)
		e->broadcast = (uint16_t)(e->broadcast + by);
	else
		e->local = (uint16_t)(e->local + by);
	ro_entry_publish(t, e, NULL);
	/* A neighbour may have had this address all the time. */
	ro_neighs_covered(t, family, addr, ro_bits(family));
}

/*
 * What an address makes of the tables: packets to it are local, so are those to the prefix's
 * subnet-router anycast address (RFC 4291 section 2.6.1; not with a /127, RFC 6164), and the
 * highest address of an IPv4 prefix is its broadcast (not with a /31, RFC 3021).
 */
static void addr_uses(struct ro_tables *t, const struct ro_own_addr *a, int by)
{
	unsigned bits = ro_bits(a->addr.family);
	uint8_t edge[16];

	use(t, a->addr.family, a->addr.byte, false, by);
	if (a->len + 1 >= (int)bits)
		return;
	memcpy(edge, a->addr.byte, sizeof(edge));
	for (unsigned i = a->len; i < bits; i++) {
		if (a->addr.family == RO_IPV4)
			edge[i / 8] |= (uint8_t)(0x80 >> i % 8);
		else
			edge[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	}
	use(t, a->addr.family, edge, a->addr.family == RO_IPV4, by);
}

int ro_addr_set(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr, uint8_t len,
		struct ho_err *err)
{
	struct ro_if *i = ro_if_find(t, ifindex);
	struct ro_own_addr *grown;
	char text[RO_ADDR_TEXT];

	if (addr->family != RO_IPV4 && addr->family != RO_IPV6)
		return ho_err_set(err, -EINVAL, "address family %u: 4 or 6 is needed",
				  addr->family);
	if (!i)
		return ho_err_set(err, -ENOENT, "%s: interface %u is not there",
				  ro_addr_text(addr, text), ifindex);
	if (len > ro_bits(addr->family))
		return ho_err_set(err, -EINVAL, "%s/%u: at most /%u", ro_addr_text(addr, text), len,
				  ro_bits(addr->family));
	for (unsigned a = 0; a < i->n_addr; a++) {
		if (ro_addr_eq(&i->addr[a].addr, addr) && i->addr[a].len == len) {
			i->addr[a].seen = t->seen;
			return 0;
		}
	}
	grown = realloc(i->addr, (i->n_addr + 1) * sizeof(*grown));
	if (!grown)
		return ho_err_set(err, -ENOMEM, "%s: out of memory", ro_addr_text(addr, text));
	i->addr = grown;
	i->addr[i->n_addr++] = (struct ro_own_addr){ .addr = *addr, .len = len, .seen = t->seen };
	if (republish(t, i) < 0) {
		i->n_addr--;
		return ho_err_set(err, -ENOMEM, "%s: out of memory", ro_addr_text(addr, text));
	}
	own_filter(t);
	addr_uses(t, &i->addr[i->n_addr - 1], 1);
	ro_reclaim_some(t);
	return 0;
}

static void addr_drop(struct ro_tables *t, struct ro_if *i, unsigned a)
{
	struct ro_own_addr gone = i->addr[a];

	memmove(&i->addr[a], &i->addr[a + 1], (i->n_addr - a - 1) * sizeof(i->addr[0]));
	i->n_addr--;
	republish(t, i);
	own_filter(t);
	addr_uses(t, &gone, -1);
}

int ro_addr_del(struct ro_tables *t, uint32_t ifindex, const struct ro_addr *addr, uint8_t len)
{
	struct ro_if *i = ro_if_find(t, ifindex);

	for (unsigned a = 0; i && a < i->n_addr; a++) {
		if (ro_addr_eq(&i->addr[a].addr, addr) && i->addr[a].len == len) {
			addr_drop(t, i, a);
			ro_reclaim_some(t);
			return 0;
		}
	}
	return -ENOENT;
}

void ro_ifaces_sweep(struct ro_tables *t)
{
	for (unsigned s = 0; s < t->ifaces; s++) {
		struct ro_if *i = t->iface[s];

		if (i && i->seen != t->seen) {
			ro_iface_del(t, i->config.ifindex);
			continue;
		}
		for (unsigned a = i ? i->n_addr : 0; a-- > 0;) {
			if (i->addr[a].seen != t->seen)
				addr_drop(t, i, a);
		}
	}
}

void ro_ifaces_free(struct ro_tables *t)
{
	for (unsigned s = 0; s < t->ifaces; s++) {
		if (!t->iface[s])
			continue;
		free(t->view.iface[s]);
		free(t->iface[s]->addr);
		free(t->iface[s]);
	}
}
