// SPDX-License-Identifier: BSD-2-Clause
/* A router's file takes effect: what was read and checked goes into the tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/forward_file.h"

#define ETHERNET_MTU 1500

/* addr + 1 in its first `bits` bits. */
static void step_addr(struct ro_addr *a, unsigned bits)
{
	for (unsigned b = bits; b-- > 0;) {
		a->byte[b / 8] ^= (uint8_t)(0x80 >> b % 8);
		if (a->byte[b / 8] & (0x80 >> b % 8))
			return;
	}
}

static void step_mac(uint8_t *mac)
{
	for (unsigned i = 6; i-- > 3 && !++mac[i];)
		;
}

/* RFC 4291 appendix A: from the Ethernet address. */
static void link_local(const uint8_t *mac, struct ro_addr *out)
{
	*out = (struct ro_addr){ .family = RO_IPV6, .byte = { 0xfe, 0x80 } };
	out->byte[8] = mac[0] ^ 2;
	out->byte[9] = mac[1];
	out->byte[10] = mac[2];
	out->byte[11] = 0xff;
	out->byte[12] = 0xfe;
	memcpy(out->byte + 13, mac + 3, 3);
}

static int apply_iface(const struct forward_file *f, const struct ro_port *port,
		       const struct forward_iface *i, struct ro_tables *t, struct ho_err *err)
{
	static const uint8_t none[6];
	struct ro_iface_config c = i->config;
	const struct port *p = port[c.port].tx ? port[c.port].tx : port[c.port].rx;
	struct ro_addr local;
	int rc;

	if (!memcmp(c.mac, none, 6))
		memcpy(c.mac, p->mac, 6);
	if (!memcmp(c.mac, none, 6)) {
		/* A port without an address of its own: a locally administered one. */
		const uint8_t made[6] = { 0x02, 0, 0, 0, 1, (uint8_t)c.port };

		memcpy(c.mac, made, 6);
	}
	if (!c.mtu)
		c.mtu = p->mtu && p->mtu < ETHERNET_MTU ? p->mtu : ETHERNET_MTU;
	rc = ro_iface_set(t, &c, err);
	if (rc < 0)
		return rc;
	for (unsigned a = 0; a < f->addrs; a++) {
		if (f->addr[a].ifindex == c.ifindex && f->addr[a].addr.family == RO_IPV6) {
			link_local(c.mac, &local);
			return ro_addr_set(t, c.ifindex, &local, 64, err);
		}
	}
	return 0;
}

/* An address and the route to its link. */
static int apply_addr(const struct forward_addr *a, struct ro_tables *t, struct ro_route *route,
		      struct ho_err *err)
{
	int rc = ro_addr_set(t, a->ifindex, &a->addr, a->len, err);

	if (rc < 0)
		return rc;
	*route = (struct ro_route){ .kind = RO_UNICAST, .hops = 1 };
	route->dst.addr = a->addr;
	route->dst.len = a->len;
	for (unsigned b = a->len; b < (a->addr.family == RO_IPV4 ? 32u : 128u); b++)
		route->dst.addr.byte[b / 8] &= (uint8_t) ~(0x80 >> b % 8);
	route->hop[0] = (struct ro_hop){ .ifindex = a->ifindex, .weight = 1 };
	return ro_route_set(t, route, err);
}

int forward_file_apply(const struct forward_file *f, const struct ro_port *port,
		       struct ro_tables *t, struct ho_err *err)
{
	struct ro_route *route = malloc(sizeof(*route));
	int rc = route ? 0 : ho_err_set(err, -ENOMEM, "out of memory");

	for (unsigned i = 0; rc == 0 && i < f->ifaces; i++)
		rc = apply_iface(f, port, &f->iface[i], t, err);
	for (unsigned i = 0; rc == 0 && i < f->addrs; i++)
		rc = apply_addr(&f->addr[i], t, route, err);
	for (unsigned i = 0; rc == 0 && i < f->routes; i++) {
		*route = *f->route[i];
		for (uint32_t k = 0; rc == 0 && k < f->repeat[i]; k++) {
			rc = ro_route_set(t, route, err);
			step_addr(&route->dst.addr, route->dst.len);
		}
	}
	free(route);
	return rc;
}

int forward_file_neighbours(const struct forward_file *f, struct ro_discovery *d,
			    struct ho_err *err)
{
	for (unsigned i = 0; i < f->neighs; i++) {
		struct forward_neigh n = f->neigh[i];

		for (uint32_t k = 0; k < n.count; k++) {
			int rc = ro_discovery_static(d, n.ifindex, &n.addr, n.mac, err);

			if (rc < 0)
				return rc;
			step_addr(&n.addr, n.addr.family == RO_IPV4 ? 32 : 128);
			step_mac(n.mac);
		}
	}
	return 0;
}

void forward_file_announce(const struct forward_file *f, struct ro_router *router)
{
	for (unsigned i = 0; f->announce && i < f->addrs; i++) {
		struct ro_order order = { .kind = RO_ORDER_ANNOUNCE,
					  .ifindex = f->addr[i].ifindex,
					  .addr = f->addr[i].addr };

		ro_router_order(router, &order);
	}
}
