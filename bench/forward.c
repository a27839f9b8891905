// SPDX-License-Identifier: BSD-2-Clause
/*
 * forward FAMILY ROUTES [SECONDS]: cycles a packet of the router's worker alone: 64-byte frames
 * (60 without FCS) with random destinations inside of ROUTES routes by 16 gateways, in a circle of
 * 64 K buffers. A source that copies a template into each buffer, as a replay from memory does,
 * and a sink that puts the buffers back; what both cost together is measured apart and said.
 *
 *   circle of buffers --> template copied --> ro_worker_input --> sink --> circle
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/csum.h"
#include "packet/headers.h"
#include "packet/parse.h"
#include "port/port.h"
#include "route/router.h"

#define CIRCLE    65536u
#define TEMPLATES 65536u
#define FRAME     60u
#define GATEWAYS  16u

static struct pk_arena *arena;
static struct pk_cache *cache;
static uint32_t circle[CIRCLE];
static uint32_t head, tail;
static uint8_t (*template)[64];

static unsigned sink(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		circle[head++ % CIRCLE] = slots[i].buf;
	q->accepted += n;
	port_count(&q->ctr, n, (uint64_t)n * FRAME);
	return n;
}

static uint64_t random_state = 1;

static uint32_t rnd(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(((random_state >> 32) * n) >> 32);
}

/* Route i: 20.0.0.0 + i * 256 /24, or 2001:(i >> 16):(i & 65535)::/48. */
static void route_of(unsigned family, uint32_t i, struct ro_prefix *p)
{
	memset(p, 0, sizeof(*p));
	p->addr.family = (uint8_t)family;
	if (family == RO_IPV4) {
		pk_store32(p->addr.byte, 0x14000000u + (i << 8));
		p->len = 24;
	} else {
		pk_store16(p->addr.byte, 0x2a00);
		pk_store32(p->addr.byte + 2, i * 2654435761u);
		p->len = 48;
	}
}

static void fill_tables(struct ro_tables *t, unsigned family, uint32_t routes)
{
	static struct ro_route r;
	struct ro_iface_config c = {
		.ifindex = 1, .mac = { 2, 0, 0, 0, 0, 1 }, .mtu = 1500, .up = true
	};

	if (ro_iface_set(t, &c, NULL))
		abort();
	c.ifindex = 2;
	c.port = 1;
	if (ro_iface_set(t, &c, NULL))
		abort();
	r = (struct ro_route){ .kind = RO_UNICAST, .hops = 1 };
	for (uint32_t i = 0; i < routes; i++) {
		const uint8_t mac[6] = { 2, 0, 0, 1, 0, (uint8_t)(i % GATEWAYS) };

		route_of(family, i, &r.dst);
		r.hop[0] = (struct ro_hop){ .ifindex = 2, .weight = 1 };
		r.hop[0].via =
			(struct ro_addr){ .family = RO_IPV4,
					  .byte = { 10, 0, 0, (uint8_t)(1 + i % GATEWAYS) } };
		if (family == RO_IPV6)
			r.hop[0].via = (struct ro_addr){
				.family = RO_IPV6, .byte = { 0x2a, 1, [15] = (uint8_t)(1 + i % 16) }
			};
		if (ro_route_set(t, &r, NULL))
			abort();
		if (i < GATEWAYS)
			ro_neigh_set(t, 2, &r.hop[0].via, mac, NULL);
	}
}

static void make_templates(unsigned family, uint32_t routes)
{
	for (uint32_t i = 0; i < TEMPLATES; i++) {
		uint8_t *f = template[i], *ip = f + 14;
		struct ro_prefix p;
		uint16_t csum;

		route_of(family, rnd(routes), &p);
		f[0] = 2;
		f[5] = 1;
		f[6] = 2;
		f[11] = 9;
		if (family == RO_IPV4) {
			pk_store16(f + 12, PK_ETH_IPV4);
			ip[0] = 0x45;
			pk_store16(ip + 2, FRAME - 14);
			ip[8] = 64;
			ip[9] = PK_IP_UDP;
			pk_store32(ip + 12, 0x0b000001);
			memcpy(ip + 16, p.addr.byte, 4);
			ip[19] = (uint8_t)rnd(256);
			csum = pk_csum_finish(pk_csum(ip, 20));
			memcpy(ip + 10, &csum, 2);
		} else {
			pk_store16(f + 12, PK_ETH_IPV6);
			ip[0] = 0x60;
			pk_store16(ip + 4, FRAME - 54);
			ip[6] = PK_IP_NONE;
			ip[7] = 64;
			ip[8] = 0x20;
			ip[9] = 1;
			ip[23] = 1;
			memcpy(ip + 24, p.addr.byte, 16);
			pk_store32(ip + 32, rnd(UINT32_MAX));
		}
	}
}

static void take(struct pk_slot *s, uint32_t *next)
{
	for (unsigned i = 0; i < PK_BURST; i++) {
		s[i] = (struct pk_slot){ .buf = circle[tail++ % CIRCLE],
					 .off = PK_HEADROOM_BYTES,
					 .len = FRAME };
		memcpy(pk_data(arena, &s[i]), template[(*next)++ % TEMPLATES], 64);
	}
}

int main(int argc, char **argv)
{
	struct pk_arena_config ac = { .buffers = CIRCLE + 4096 };
	unsigned family = argc > 1 && argv[1][0] == '6' ? RO_IPV6 : RO_IPV4;
	uint32_t routes = argc > 2 ? (uint32_t)atoi(argv[2]) : 16, next = 0;
	double seconds = argc > 3 ? atof(argv[3]) : 2;
	struct port_txq txq = { .tx = sink }, *txqs[1] = { &txq };
	struct port port = { .n_txq = 1, .txq = txqs };
	struct ro_port ports[2] = { { NULL, &port }, { NULL, &port } };
	struct ro_router_config c = {
		.port = ports, .ports = 2, .workers = 1, .end_ns = RT_FOREVER
	};
	uint64_t ticks = 0, base = 0, packets = 0, end;
	struct ro_counters ctr;
	struct ro_router *router;
	struct pk_slot s[PK_BURST];
	struct rt *rt;

	template = aligned_alloc(64, TEMPLATES * sizeof(*template));
	if (!template || rt_os_create(&rt, NULL) || pk_arena_create(&ac, &arena, NULL) ||
	    pk_cache_create(arena, &cache, NULL) || ro_tables_create(2, NULL, &c.tables, NULL))
		return 2;
	memset(template, 0, TEMPLATES * sizeof(*template));
	c.rt = rt;
	c.cache = &cache;
	if (ro_router_create(&c, &router, NULL))
		return 2;
	fill_tables(c.tables, family, routes);
	ro_tables_poll(c.tables, 1);
	make_templates(family, routes);
	for (uint32_t i = 0; i < CIRCLE; i++) {
		if (!pk_alloc(cache, &circle[i], 1))
			return 2;
		/* No page is to come while the clock runs. */
		memset(pk_buffer(arena, circle[i]), 0, PK_STRIDE_BYTES);
	}
	head = CIRCLE;
	end = rt_now_ns(rt) + (uint64_t)(seconds * 1e9);
	while (rt_now_ns(rt) < end) {
		/* Alternately without and with the router between source and sink. */
		uint64_t t0 = rt_tsc_read(), t1, t2;

		for (unsigned i = 0; i < 64; i++) {
			take(s, &next);
			sink(&txq, s, PK_BURST);
		}
		t1 = rt_tsc_read();
		for (unsigned i = 0; i < 64; i++) {
			take(s, &next);
			ro_worker_input(ro_router_worker(router, 0), 0, s, PK_BURST);
			ro_worker_finish(ro_router_worker(router, 0));
		}
		t2 = rt_tsc_read();
		base += t1 - t0;
		ticks += t2 - t1;
		packets += 64 * PK_BURST;
	}
	ro_router_counters(router, &ctr);
	if (ctr.fast < packets * 98 / 100) {
		fprintf(stderr, "%llu of %llu packets took the fast path\n",
			(unsigned long long)ctr.fast, (unsigned long long)packets);
		return 2;
	}
	printf("IPv%u, %u routes: %.2f cycles a packet with source and sink, %.2f without; "
	       "%.1f Mpps at %.3f GHz\n",
	       family, routes, (double)ticks / (double)packets,
	       ((double)ticks - (double)base) / (double)packets,
	       (double)rt->tsc.hz * (double)packets / (double)ticks / 1e6,
	       (double)rt->tsc.hz / 1e9);
	return 0;
}
