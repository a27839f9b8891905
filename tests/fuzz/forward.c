// SPDX-License-Identifier: BSD-2-Clause
/*
 * The whole router: frames of any bytes in, frames out. The input is a list of frames:
 *
 *   port (1 byte: low 2 bits port, bit 2 tag beside the frame, bit 3 cut into small buffers, bit 4
 *   CSUM_PARTIAL, bit 5 TSO, bit 6: let time pass, bit 7: a crowd), bytes (2, big endian), the
 * frame
 *
 * Of the first frame bit 7 chooses the router, with or without the fast path. A crowd is the frame
 * CROWD times, each copy with another byte changed: the fast path looks at that many at once.
 *
 * Checked: no memory fault, every packet accounted for, every frame that comes out has an
 * Ethernet header of the router's and a sound IP header, every buffer comes back.
 */
#include "../unit/route_rig.h"

#define CROWD 21 /* whole groups of 8 and of 16, and a rest */

static struct rt *rt;
static struct pk_arena *arena;

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

static void check_out(struct rig *r, unsigned port)
{
	struct pk_slot s[PK_BURST];
	unsigned n;

	while ((n = port_rx(r->far[port]->rxq[0], s, PK_BURST)) > 0) {
		for (unsigned i = 0; i < n;) {
			unsigned k = pk_frame_slots(s + i, n - i);
			const uint8_t *d = pk_data(r->arena, &s[i]);
			uint32_t bytes = pk_frame_bytes(s + i, k), l2 = PK_ETH_BYTES;
			unsigned type;

			if (s[i].len < PK_ETH_BYTES + 20)
				fail("a frame out is too short");
			type = pk_load16(d + 12);
			if (type == PK_ETH_VLAN) {
				l2 += PK_VLAN_BYTES;
				type = pk_load16(d + 16);
			}
			if (d[6] != 2 || d[10] != 1 || d[11] != port)
				fail("a frame out is not from the router");
			if (type == PK_ETH_IPV4 &&
			    (pk_load16(d + l2 + 2) != bytes - l2 ||
			     pk_csum_fold(pk_csum(d + l2, (d[l2] & 15u) * 4)) != 0xffff))
				fail("an IPv4 packet out is not sound");
			if (type == PK_ETH_IPV6 &&
			    pk_load16(d + l2 + 4) + PK_IPV6_BYTES != bytes - l2)
				fail("an IPv6 packet out is not sound");
			for (unsigned c = 0; c < k; c++)
				pk_free_slots(r->far_cache, &s[i + c], 1);
			i += k;
		}
	}
}

static unsigned frame_slots(struct rig *r, uint8_t how, const uint8_t *data, uint32_t bytes,
			    struct pk_slot *slots)
{
	uint32_t piece = how & 8 ? 1 + bytes / 30 : PK_ROOM_BYTES, at = 0;
	unsigned n = 0;

	while (at < bytes) {
		uint32_t len = bytes - at < piece ? bytes - at : piece;

		if (!pk_frame_from_bytes(r->cache, data + at, len, &slots[n], 1))
			fail("no buffer");
		slots[n++].flags = PK_MORE;
		at += len;
	}
	slots[n - 1].flags = 0;
	if (how & 4) {
		slots[0].flags |= PK_VLAN;
		slots[0].vlan = bytes & 1 ? RIG_VLAN : 0;
	}
	if (how & 16)
		slots[0].flags |= PK_CSUM_PARTIAL;
	if (how & 32) {
		slots[0].flags |= PK_CSUM_PARTIAL | PK_TSO;
		slots[0].meta = 500 + bytes % 1000;
	}
	return n;
}

static void in(struct rig *r, uint8_t how, bool crowd, const uint8_t *data, uint32_t bytes)
{
	struct pk_slot slots[PK_BURST];
	unsigned k = frame_slots(r, how, data, bytes, slots), n = k;

	for (unsigned i = 1; crowd && i < CROWD && n + k <= PK_BURST; i++) {
		uint32_t at = (i - 1) * 3 % bytes;

		frame_slots(r, how, data, bytes, slots + n);
		at %= slots[n].len;
		pk_data(r->arena, &slots[n])[at] ^= (uint8_t)(1u << i % 8);
		n += k;
	}
	ro_worker_input(r->worker, (how & 3) % RIG_PORTS, slots, n);
	if (how & 64)
		ro_tables_poll(r->tables, rt_now_ns(r->rt));
	ro_worker_housekeep(r->worker);
	for (unsigned p = 0; p < RIG_PORTS; p++)
		check_out(r, p);
}

static void fill(struct rig *r)
{
	rig_ifaces(r);
	rig_neigh(r, 2, "10.1.0.2", 0x12);
	rig_neigh(r, 2, "2001:db8:1::2", 0x12);
	rig_neigh(r, RIG_PORTS + 1, "10.9.0.2", 0x92);
	rig_route(r, "172.16.0.0", 12, RO_UNICAST, 2, "10.1.0.2");
	rig_route(r, "172.16.0.0", 16, RO_PROHIBIT, 0, NULL);
	rig_route(r, "2001:db8:aa::", 48, RO_UNICAST, 3, "2001:db8:2::9");
}

/* One router with the fast path and one without; to make them takes longer than a run. */
static struct rig rigs[2];

/* What the tables hold in mapped memory, the leak checker does not see: all is freed. */
static void stop(void)
{
	for (unsigned i = 0; i < 2; i++)
		rig_close(&rigs[i]);
	if (pk_arena_missing(arena))
		fail("buffers are missing");
	pk_arena_destroy(arena);
	rt_destroy(rt);
}

static void start(void)
{
	struct pk_arena_config config = { .buffers = 8192, .no_huge = true };

	if (rt_os_create(&rt, NULL) || pk_arena_create(&config, &arena, NULL))
		abort();
	for (unsigned i = 0; i < 2; i++) {
		rig_open(&rigs[i], rt, arena, i ? "y" : "z", i);
		fill(&rigs[i]);
	}
	atexit(stop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ro_discovery *d;
	struct ho_err err = { 0 };
	struct rig *r = &rigs[size && data[0] & 128 ? 1 : 0];
	uint32_t missing;
	bool first = true;

	if (!arena)
		start();
	missing = pk_arena_missing(arena);
	if (ro_discovery_create(r->tables, r->router, &d, NULL))
		abort();
	while (size > 3) {
		uint32_t bytes = pk_load16(data + 1);

		bytes = bytes > size - 3 ? (uint32_t)(size - 3) : bytes;
		if (bytes > 16384)
			bytes = 16384;
		if (bytes)
			in(r, data[0], !first && data[0] & 128, data + 3, bytes);
		first = false;
		data += 3 + bytes;
		size -= 3 + bytes;
	}
	ro_worker_finish(r->worker);
	for (unsigned p = 0; p < RIG_PORTS; p++)
		check_out(r, p);
	if (ro_router_check(r->router, &err) < 0)
		fail(err.text);
	if (pk_arena_missing(arena) != missing)
		fail("buffers are missing");
	/* What was learned is forgotten, so that a run does not hang on those before it. */
	ro_tables_hear(r->tables, NULL, NULL);
	ro_tables_resolver(r->tables, &(struct ro_resolver){ 0 });
	ro_discovery_destroy(d);
	ro_tables_poll(r->tables, rt_now_ns(rt));
	ro_tables_resync_begin(r->tables);
	fill(r);
	ro_tables_resync_end(r->tables);
	return 0;
}
