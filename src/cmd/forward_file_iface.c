// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cmd/forward_file_impl.h"

/* --- ports and interfaces ------------------------------------------------------------------- */

int ff_take_ports(struct load *l)
{
	for (unsigned i = 0; i < l->raw->ports; i++) {
		const struct raw_port *r = &l->raw->port[i];

		NODE(l, "ports/%u/name", i);
		if (ff_find_port(l, r->name) >= 0)
			return COMPLAIN(l, "a second port '%s'", r->name);
		NODE(l, "ports/%u", i);
		if (r->open && (r->receive || r->send))
			return COMPLAIN(l, "port '%s': either 'open' or 'receive' and 'send'",
					r->name);
		l->file->port[l->file->ports++] = (struct forward_port){
			.name = r->name, .open = r->open, .receive = r->receive, .send = r->send
		};
	}
	return 0;
}

int ff_take_iface(struct load *l, unsigned i)
{
	const struct raw_iface *r = &l->raw->iface[i];
	struct ro_iface_config *c = &l->file->iface[i].config;
	int port = ff_find_port(l, r->port), rc;

	NODE(l, "interfaces/%u/port", i);
	if (port < 0)
		return COMPLAIN(l, "no port '%s' above", r->port);
	c->port = (unsigned)port;
	c->ifindex = i + 1;
	c->up = true;
	NODE(l, "interfaces/%u/vlan", i);
	if (r->vlan > 4094)
		return COMPLAIN(l, "VLAN %u: from 1 to 4094 is possible, 0 is untagged", r->vlan);
	c->vlan = (uint16_t)r->vlan;
	NODE(l, "interfaces/%u/mtu", i);
	if (r->mtu && (r->mtu < RO_MTU4_MIN || r->mtu > 65535))
		return COMPLAIN(l, "MTU %u: from 68 to 65535 is possible", r->mtu);
	c->mtu = r->mtu;
	NODE(l, "interfaces/%u", i);
	for (unsigned k = 0; k < i; k++) {
		const struct ro_iface_config *o = &l->file->iface[k].config;

		if (o->port == c->port && o->vlan == c->vlan)
			return COMPLAIN(l, "port '%s', VLAN %u is interface '%s' already", r->port,
					c->vlan, o->name);
	}
	if (r->name)
		snprintf(c->name, sizeof(c->name), "%s", r->name);
	else if (c->vlan)
		snprintf(c->name, sizeof(c->name), "%.24s.%u", r->port, c->vlan);
	else
		snprintf(c->name, sizeof(c->name), "%.31s", r->port);
	if (ff_find_iface(l, c->name) && ff_find_iface(l, c->name) != c->ifindex)
		return COMPLAIN(l, "a second interface '%s'", c->name);
	NODE(l, "interfaces/%u/mac", i);
	rc = r->mac ? ff_parse_mac(l, r->mac, c->mac) : 0;
	if (rc == 0 && r->mac && !memcmp(c->mac, "\0\0\0\0\0", 6))
		return COMPLAIN(l, "'%s' is no interface's address", r->mac);
	l->file->ifaces = i + 1;
	return rc;
}

/* The address that was taken before for which there is something wrong with this one: the same, or
 * the same link on another interface (a route has one). NULL = nothing. Link-local ones are each
 * interface's own. */
static const struct forward_addr *in_the_way(const struct load *l, const struct forward_addr *a)
{
	for (unsigned i = 0; i < l->file->addrs; i++) {
		const struct forward_addr *o = &l->file->addr[i];

		if (ff_link_local(&a->addr) && o->ifindex != a->ifindex)
			continue;
		if (!memcmp(&o->addr, &a->addr, sizeof(a->addr)) ||
		    (o->ifindex != a->ifindex && o->len == a->len &&
		     ff_inside(&o->addr, o->len, &a->addr)))
			return o;
	}
	return NULL;
}

int ff_take_addresses(struct load *l, unsigned i)
{
	const struct raw_iface *r = &l->raw->iface[i];
	struct forward_addr *grown = realloc(l->file->addr, (l->file->addrs + r->addresses + 1) *
								    sizeof(l->file->addr[0]));

	if (!grown)
		return ho_err_set(l->err, -ENOMEM, "out of memory");
	l->file->addr = grown;
	for (unsigned k = 0; k < r->addresses; k++) {
		struct forward_addr *a = &l->file->addr[l->file->addrs];
		const struct forward_addr *other;
		int rc;

		NODE(l, "interfaces/%u/addresses/%u", i, k);
		a->ifindex = i + 1;
		rc = ff_parse_prefix(l, r->address[k], &a->addr, &a->len);
		if (rc < 0)
			return rc;
		if (ff_unusable(a))
			return COMPLAIN(l, "'%s' is %s", r->address[k], ff_unusable(a));
		other = in_the_way(l, a);
		if (other && !memcmp(&other->addr, &a->addr, sizeof(a->addr)))
			return COMPLAIN(l, "'%s' is used twice", r->address[k]);
		if (other)
			return COMPLAIN(l, "'%s': its link is that of interface '%s' already",
					r->address[k],
					l->file->iface[other->ifindex - 1].config.name);
		if (a->addr.family == RO_IPV6 && r->mtu && r->mtu < RO_MTU6_MIN)
			return COMPLAIN(l, "'%s': IPv6 needs an MTU of %d at least", r->address[k],
					RO_MTU6_MIN);
		l->file->addrs++;
	}
	return 0;
}

/* Is it one of those that count up from the neighbour's? */
static bool is_among(const struct forward_neigh *n, const struct ro_addr *a)
{
	if (n->count == 1 || a->family != n->addr.family)
		return !memcmp(a, &n->addr, sizeof(*a));
	return ff_number_of(a, ff_bits_of(a)) - ff_number_of(&n->addr, ff_bits_of(a)) < n->count;
}

/* What neighbour k of interface i counts up to is nobody else's: the k before it are in front of
 * it. */
static int check_counted(struct load *l, const struct forward_neigh *n, unsigned k, unsigned i)
{
	const char *text = l->raw->iface[i].neigh[k].address;

	NODE(l, "interfaces/%u/neighbours/%u/address", i, k);
	for (unsigned j = 1; j <= k; j++) {
		if (is_among(n - j, &n->addr) || is_among(n, &(n - j)->addr))
			return COMPLAIN(l, "a second neighbour %s'%s'",
					n->count > 1 || (n - j)->count > 1 ? "from " : "", text);
	}
	for (unsigned j = 0; j < l->file->addrs; j++) {
		const struct forward_addr *o = &l->file->addr[j];
		struct ro_addr top = o->addr;

		if (is_among(n, &o->addr))
			return COMPLAIN(l, "'%s' counts up to the router's own address", text);
		for (unsigned b = o->len; b < ff_bits_of(&top); b++)
			top.byte[b / 8] |= (uint8_t)(0x80 >> b % 8);
		if (ff_is_broadcast(&top, o->len) && is_among(n, &top))
			return COMPLAIN(l, "'%s' counts up to the broadcast of a link", text);
	}
	return 0;
}

int ff_take_neighbours(struct load *l, unsigned i)
{
	const struct raw_iface *r = &l->raw->iface[i];
	struct forward_neigh *grown = realloc(l->file->neigh, (l->file->neighs + r->neighs + 1) *
								      sizeof(l->file->neigh[0]));

	if (!grown)
		return ho_err_set(l->err, -ENOMEM, "out of memory");
	l->file->neigh = grown;
	for (unsigned k = 0; k < r->neighs; k++) {
		struct forward_neigh *n = &l->file->neigh[l->file->neighs];
		int rc;

		n->ifindex = i + 1;
		NODE(l, "interfaces/%u/neighbours/%u/address", i, k);
		rc = ff_parse_addr(l, r->neigh[k].address, &n->addr);
		if (rc == 0 && ff_is_own(l, &n->addr))
			return COMPLAIN(l, "'%s' is the router's own address", r->neigh[k].address);
		if (rc == 0 && ff_not_a_host(l, &n->addr))
			return COMPLAIN(l, "'%s' is %s", r->neigh[k].address,
					ff_not_a_host(l, &n->addr));
		NODE(l, "interfaces/%u/neighbours/%u/mac", i, k);
		if (rc == 0)
			rc = ff_parse_mac(l, r->neigh[k].mac, n->mac);
		if (rc < 0)
			return rc;
		NODE(l, "interfaces/%u/neighbours/%u/count", i, k);
		n->count = r->neigh[k].count ? r->neigh[k].count : 1;
		if (n->count > 65536)
			return COMPLAIN(l, "%u neighbours: at most 65536", n->count);
		if (rc == 0)
			rc = check_counted(l, n, k, i);
		if (rc < 0)
			return rc;
		l->file->neighs++;
	}
	return 0;
}
