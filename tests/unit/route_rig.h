/* SPDX-License-Identifier: BSD-2-Clause */
/* A router over mem: ports whose other ends the test holds. */
#ifndef ROUTE_RIG_H
#define ROUTE_RIG_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/csum.h"
#include "packet/headers.h"
#include "packet/parse.h"
#include "port/port.h"
#include "route/discovery.h"
#include "route/router.h"
#include "route/wish.h"

#define RIG_PORTS 3
#define RIG_VLAN  100

struct rig {
	struct rt *rt;
	struct pk_arena *arena;
	struct pk_cache *cache, *far_cache;
	struct port *port[RIG_PORTS], *far[RIG_PORTS];
	struct ro_tables *tables;
	struct ro_router *router;
	struct ro_worker *worker;
};

static inline struct ro_addr rig_addr(const char *text)
{
	struct ro_addr a = { .family = strchr(text, ':') ? RO_IPV6 : RO_IPV4 };

	if (inet_pton(a.family == RO_IPV4 ? AF_INET : AF_INET6, text, a.byte) != 1)
		abort();
	return a;
}

static inline void rig_route(struct rig *r, const char *to, uint8_t len, enum ro_route_kind kind,
			     uint32_t ifindex, const char *via)
{
	static struct ro_route route;

	memset(&route, 0, sizeof(route));
	route.dst.addr = rig_addr(to);
	route.dst.len = len;
	route.kind = kind;
	if (kind == RO_UNICAST) {
		route.hops = 1;
		route.hop[0].ifindex = ifindex;
		route.hop[0].weight = 1;
		if (via)
			route.hop[0].via = rig_addr(via);
	}
	if (ro_route_set(r->tables, &route, NULL) < 0)
		abort();
}

/* Interface i + 1 on port i: 10.i.0.1/24, 2001:db8:i::1/64; the last port has VLAN 100 as well, as
 * interface RIG_PORTS + 1 with 10.9.0.1/24. */
static inline void rig_ifaces(struct rig *r)
{
	for (unsigned i = 0; i <= RIG_PORTS; i++) {
		bool tagged = i == RIG_PORTS;
		unsigned n = tagged ? 9 : i;
		struct ro_iface_config c = { .ifindex = i + 1,
					     .port = tagged ? RIG_PORTS - 1 : i,
					     .vlan = tagged ? RIG_VLAN : 0,
					     .mac = { 2, 0, 0, 0, 1, (uint8_t)i },
					     .mtu = 1500,
					     .up = true };
		char text[64];
		struct ro_addr a;

		if (tagged)
			c.mac[5] = RIG_PORTS - 1;
		snprintf(c.name, sizeof(c.name), "if%u", i);
		if (ro_iface_set(r->tables, &c, NULL) < 0)
			abort();
		snprintf(text, sizeof(text), "10.%u.0.1", n);
		a = rig_addr(text);
		ro_addr_set(r->tables, i + 1, &a, 24, NULL);
		snprintf(text, sizeof(text), "10.%u.0.0", n);
		rig_route(r, text, 24, RO_UNICAST, i + 1, NULL);
		snprintf(text, sizeof(text), "2001:db8:%u::1", n);
		a = rig_addr(text);
		ro_addr_set(r->tables, i + 1, &a, 64, NULL);
		snprintf(text, sizeof(text), "2001:db8:%u::", n);
		rig_route(r, text, 64, RO_UNICAST, i + 1, NULL);
	}
}

static inline void rig_neigh(struct rig *r, uint32_t ifindex, const char *text, uint8_t last)
{
	const uint8_t mac[6] = { 2, 0, 0, 0, 2, last };
	struct ro_addr a = rig_addr(text);

	if (ro_neigh_set(r->tables, ifindex, &a, mac, NULL) < 0)
		abort();
}

static inline void rig_open(struct rig *r, struct rt *rt, struct pk_arena *arena, const char *name,
			    bool slow_only)
{
	struct port_config pc = { .rt = rt, .arena = arena };
	struct ro_port ports[RIG_PORTS];
	struct ro_router_config c = {
		.rt = rt,
		.port = ports,
		.ports = RIG_PORTS,
		.workers = 1,
		.own_stack = true,
		.slow_only = slow_only,
		.end_ns = RT_FOREVER,
		.icmp_rate = 1000000000,
		.icmp_burst = 1000000,
	};

	memset(r, 0, sizeof(*r));
	r->rt = rt;
	r->arena = arena;
	if (pk_cache_create(arena, &r->cache, NULL) || pk_cache_create(arena, &r->far_cache, NULL))
		abort();
	for (unsigned i = 0; i < RIG_PORTS; i++) {
		char spec[64];

		snprintf(spec, sizeof(spec), "mem:%s%u,peer=%sfar%u,ring=1024", name, i, name, i);
		if (port_open(spec, &pc, &r->port[i], NULL) < 0)
			abort();
		snprintf(spec, sizeof(spec), "mem:%sfar%u,peer=%s%u,ring=1024", name, i, name, i);
		if (port_open(spec, &pc, &r->far[i], NULL) < 0)
			abort();
		port_bind_rx(r->port[i], 0, r->cache);
		port_bind_tx(r->port[i], 0, r->cache);
		port_bind_rx(r->far[i], 0, r->far_cache);
		port_bind_tx(r->far[i], 0, r->far_cache);
		if (port_start(r->port[i], NULL) || port_start(r->far[i], NULL))
			abort();
		ports[i] = (struct ro_port){ r->port[i], r->port[i] };
	}
	if (ro_tables_create(RIG_PORTS, NULL, &r->tables, NULL) < 0)
		abort();
	c.tables = r->tables;
	c.cache = &r->cache;
	if (ro_router_create(&c, &r->router, NULL) < 0)
		abort();
	r->worker = ro_router_worker(r->router, 0);
}

static inline void rig_close(struct rig *r)
{
	ro_worker_finish(r->worker);
	ro_router_destroy(r->router);
	ro_tables_destroy(r->tables);
	for (unsigned i = 0; i < RIG_PORTS; i++) {
		port_stop(r->port[i]);
		port_stop(r->far[i]);
	}
	for (unsigned i = 0; i < RIG_PORTS; i++) {
		port_close(r->port[i]);
		port_close(r->far[i]);
	}
	pk_cache_destroy(r->cache);
	pk_cache_destroy(r->far_cache);
}

/* A UDP packet, IPv4 or IPv6 as the addresses are; returns its bytes. */
static inline uint32_t rig_udp(uint8_t *f, unsigned port, const char *src, const char *dst,
			       uint32_t payload)
{
	struct ro_addr s = rig_addr(src), d = rig_addr(dst);
	const uint8_t mac[12] = { 2, 0, 0, 0, 1, (uint8_t)port, 2, 0, 0, 0, 2, 0xee };
	uint32_t l3 = s.family == RO_IPV4 ? PK_IPV4_BYTES : PK_IPV6_BYTES;
	uint8_t *ip = f + PK_ETH_BYTES, *udp = ip + l3;
	uint16_t csum;

	memset(f, 0, PK_ETH_BYTES + l3 + PK_UDP_BYTES + payload);
	memcpy(f, mac, 12);
	pk_store16(f + 12, s.family == RO_IPV4 ? PK_ETH_IPV4 : PK_ETH_IPV6);
	pk_store16(udp, 5000);
	pk_store16(udp + 2, 6000);
	pk_store16(udp + 4, (uint16_t)(PK_UDP_BYTES + payload));
	if (s.family == RO_IPV4) {
		ip[0] = 0x45;
		pk_store16(ip + 2, (uint16_t)(l3 + PK_UDP_BYTES + payload));
		ip[8] = 64;
		ip[9] = PK_IP_UDP;
		memcpy(ip + 12, s.byte, 4);
		memcpy(ip + 16, d.byte, 4);
		csum = pk_csum_finish(pk_csum(ip, PK_IPV4_BYTES));
		memcpy(ip + 10, &csum, 2);
	} else {
		ip[0] = 0x60;
		pk_store16(ip + 4, (uint16_t)(PK_UDP_BYTES + payload));
		ip[6] = PK_IP_UDP;
		ip[7] = 64;
		memcpy(ip + 8, s.byte, 16);
		memcpy(ip + 24, d.byte, 16);
	}
	return PK_ETH_BYTES + l3 + PK_UDP_BYTES + payload;
}

/* One frame in on a port, and the worker's turn done. */
static inline void rig_in(struct rig *r, unsigned port, const uint8_t *frame, uint32_t bytes,
			  uint16_t flags, uint16_t vlan, uint32_t meta)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	unsigned n = pk_frame_from_bytes(r->cache, frame, bytes, slots, PK_FRAME_MAX_SLOTS);

	if (!n)
		abort();
	slots[0].flags |= flags;
	slots[0].vlan = vlan;
	slots[0].meta = meta;
	ro_worker_input(r->worker, port, slots, n);
	ro_worker_housekeep(r->worker);
}

/* The next frame out of a port: its bytes (0 = none); *first is its first slot. */
static inline uint32_t rig_out(struct rig *r, unsigned port, uint8_t *frame, struct pk_slot *first)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	uint32_t bytes;
	unsigned n = 0, k;

	/* One frame of a burst at a time would need a queue: bursts of one slot do not split. */
	n = port_rx(r->far[port]->rxq[0], slots, PK_FRAME_MAX_SLOTS);
	if (!n)
		return 0;
	k = pk_frame_slots(slots, n);
	if (k != n)
		abort(); /* take frames out one by one: more came than the test expects */
	bytes = pk_frame_to_bytes(r->arena, slots, k, frame, PK_FRAME_MAX_BYTES);
	if (first)
		*first = slots[0];
	pk_free_slots(r->far_cache, slots, n);
	return bytes;
}

static inline uint64_t rig_drops(struct rig *r, enum ro_drop d)
{
	struct ro_counters c;

	ro_router_counters(r->router, &c);
	return c.drops[d];
}

#endif
