// SPDX-License-Identifier: BSD-2-Clause
/*
 * The forwarding path over mem: ports, burst by burst: what capture files cannot hold (tags beside
 * the frame, frames of several buffers, offloads), the fast path against the slow one, and
 * neighbours over virtual time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lab/exec.h"
#include "route_rig.h"

static struct sim *sim;
static struct rt *rt;
static struct pk_arena *arena;
static uint8_t frame[PK_FRAME_MAX_BYTES], out[PK_FRAME_MAX_BYTES];

static int setup(void **state)
{
	struct pk_arena_config config = { .buffers = 16384, .no_huge = true };
	struct lab_machine machine;

	lab_machine_defaults(&machine);
	machine.cpus = 2;
	machine.cost[RT_COST_RELAX] = 1000 * SIM_PS_PER_NS;
	machine.cost[RT_COST_POLL] = 100 * SIM_PS_PER_NS;
	return sim_create(&sim) || lab_exec_create(sim, "host", &machine, NULL, &rt, NULL) ||
	       pk_arena_create(&config, &arena, NULL);
}

static int teardown(void **state)
{
	int missing = (int)pk_arena_missing(arena);

	pk_arena_destroy(arena);
	rt_destroy(rt);
	sim_destroy(sim);
	return missing;
}

static void rig_ready(struct rig *r, const char *name, bool slow)
{
	rig_open(r, rt, arena, name, slow);
	rig_ifaces(r);
	rig_neigh(r, 2, "10.1.0.2", 0x12);
	rig_neigh(r, 2, "2001:db8:1::2", 0x12);
	rig_neigh(r, RIG_PORTS + 1, "10.9.0.2", 0x92);
	rig_neigh(r, 1, "10.0.0.2", 0x02);
	rig_route(r, "172.16.0.0", 12, RO_UNICAST, 2, "10.1.0.2");
}

static void check_balance(struct rig *r)
{
	struct ho_err err = { 0 };

	ro_worker_finish(r->worker);
	if (ro_router_check(r->router, &err) < 0) {
		print_error("%s\n", err.text);
		fail();
	}
}

static void test_tag_beside(void **state)
{
	struct rig r;
	uint32_t n;

	rig_ready(&r, "tag", false);
	/* In by a tag in the slot, out without one. */
	n = rig_udp(frame, RIG_PORTS - 1, "10.9.0.7", "10.1.0.2", 20);
	rig_in(&r, RIG_PORTS - 1, frame, n, PK_VLAN, RIG_VLAN | 5 << PK_VLAN_PCP_SHIFT, 0);
	assert_int_equal(rig_out(&r, 1, out, NULL), n);
	assert_int_equal(pk_load16(out + 12), PK_ETH_IPV4);
	/* Priority tag: as without. */
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 20);
	rig_in(&r, 0, frame, n, PK_VLAN, 0, 0);
	assert_int_equal(rig_out(&r, 1, out, NULL), n);
	/* Out with a tag: in the frame. */
	n = rig_udp(frame, 0, "10.0.0.7", "10.9.0.2", 20);
	rig_in(&r, 0, frame, n, 0, 0, 0);
	assert_int_equal(rig_out(&r, RIG_PORTS - 1, out, NULL), n + 4);
	assert_int_equal(pk_load16(out + 12), PK_ETH_VLAN);
	assert_int_equal(pk_load16(out + 14), RIG_VLAN);
	assert_int_equal(out[5], 0x92);
	/* A tag that nobody has. */
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 20);
	rig_in(&r, 0, frame, n, PK_VLAN, 77, 0);
	assert_int_equal(rig_drops(&r, RO_DROP_NO_INTERFACE), 1);
	check_balance(&r);
	rig_close(&r);
}

/* A frame of several buffers, and one whose headers are cut into small ones. */
static void test_chain(void **state)
{
	struct ro_iface_config c = {
		.ifindex = 1, .port = 0, .mac = { 2, 0, 0, 0, 1, 0 }, .mtu = 9000, .up = true
	};
	struct pk_slot slots[4];
	struct rig r;
	uint32_t n;

	rig_ready(&r, "chain", false);
	assert_int_equal(ro_iface_set(r.tables, &c, NULL), 0);
	c.ifindex = 2;
	c.port = 1;
	c.mac[5] = 1;
	assert_int_equal(ro_iface_set(r.tables, &c, NULL), 0);
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 8000);
	for (uint32_t i = 42; i < n; i++)
		frame[i] = (uint8_t)i;
	rig_in(&r, 0, frame, n, 0, 0, 0);
	assert_int_equal(rig_out(&r, 1, out, NULL), n);
	assert_memory_equal(out + 42, frame + 42, n - 42);
	/* 20 bytes a buffer, with padding behind. */
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 10);
	memset(frame + n, 0xaa, 28);
	for (unsigned i = 0; i < 4; i++) {
		pk_frame_from_bytes(r.cache, frame + 20 * i, 20, &slots[i], 1);
		slots[i].flags = i < 3 ? PK_MORE : 0;
	}
	ro_worker_input(r.worker, 0, slots, 4);
	ro_worker_housekeep(r.worker);
	assert_int_equal(rig_out(&r, 1, out, NULL), n);
	assert_memory_equal(out + 42, frame + 42, n - 42);
	check_balance(&r);
	rig_close(&r);
}

static void test_offloads(void **state)
{
	struct pk_slot first = { 0 };
	struct rig r;
	uint32_t n;
	uint16_t csum;

	rig_ready(&r, "off", false);
	/* The pseudo-header sum goes on as it is. */
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 20);
	pk_store16(frame + 40, 0x1234);
	rig_in(&r, 0, frame, n, PK_CSUM_PARTIAL, 0, 0);
	assert_int_equal(rig_out(&r, 1, out, &first), n);
	assert_true(first.flags & PK_CSUM_PARTIAL);
	assert_int_equal(pk_load16(out + 40), 0x1234);
	/* A TCP frame of 4000 bytes that will be cut to 1000 fits an MTU of 1500... */
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 4000);
	frame[14 + 9] = PK_IP_TCP;
	frame[14 + 6] = 0x40; /* DF */
	frame[34 + 12] = 0x50;
	memset(frame + 24, 0, 2);
	csum = pk_csum_finish(pk_csum(frame + 14, 20));
	memcpy(frame + 24, &csum, 2);
	rig_in(&r, 0, frame, n, PK_TSO | PK_CSUM_PARTIAL, 0, 1000);
	assert_int_equal(rig_out(&r, 1, out, &first), n);
	assert_true(first.flags & PK_TSO);
	assert_int_equal(first.meta, 1000);
	assert_int_equal(out[14 + 8], 63);
	/* ... and cut to 1461 does not: the sender is told. */
	rig_in(&r, 0, frame, n, PK_TSO | PK_CSUM_PARTIAL, 0, 1461);
	assert_int_equal(rig_out(&r, 1, out, NULL), 0);
	assert_int_equal(rig_drops(&r, RO_DROP_TOO_BIG), 1);
	/* A fragment's checksum cannot be left for later. */
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 1400);
	pk_store16(frame + 40, 0);
	csum = pk_csum_fold(pk_csum_pseudo4(htonl(0x0a000007), htonl(0x0a010002), PK_IP_UDP, 1408));
	memcpy(frame + 40, &csum, 2);
	{
		struct ro_iface_config c = { .ifindex = 2,
					     .port = 1,
					     .mac = { 2, 0, 0, 0, 1, 1 },
					     .mtu = 1000,
					     .up = true };
		uint8_t all[2000];
		uint64_t sum;

		assert_int_equal(ro_iface_set(r.tables, &c, NULL), 0);
		rig_in(&r, 0, frame, n, PK_CSUM_PARTIAL, 0, 0);
		{
			struct pk_slot s[8];
			unsigned k = port_rx(r.far[1]->rxq[0], s, PK_FRAME_MAX_SLOTS);
			uint32_t got = 0;

			assert_int_equal(k, 2);
			for (unsigned i = 0; i < k; i++) {
				uint8_t *d = pk_data(arena, &s[i]);

				assert_false(s[i].flags & PK_CSUM_PARTIAL);
				memcpy(all + got, d + 34, s[i].len - 34u);
				got += s[i].len - 34u;
			}
			assert_int_equal(got, 1408);
			sum = pk_csum_pseudo4(htonl(0x0a000007), htonl(0x0a010002), PK_IP_UDP,
					      1408) +
			      pk_csum(all, got);
			assert_int_equal(pk_csum_fold(sum), 0xffff);
			pk_free_slots(r.far_cache, s, k);
		}
	}
	check_balance(&r);
	rig_close(&r);
}

/* --- the two paths -------------------------------------------------------------------------- */

static uint64_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* A packet that is good in most parts. */
static uint32_t any_frame(void)
{
	static const char *const src4[] = { "10.0.0.7", "10.0.0.2",  "127.0.0.1",   "10.1.0.1",
					    "0.0.0.0",  "224.0.0.1", "169.254.1.1", "10.1.0.255" };
	static const char *const dst4[] = { "10.1.0.2",   "172.16.0.1", "10.9.0.2", "10.0.0.1",
					    "10.1.0.255", "8.8.8.8",    "10.1.0.2", "224.0.0.1" };
	static const char *const src6[] = { "2001:db8::7", "2001:db8:1::1", "::",
					    "fe80::1",     "ff02::1",       "2001:db8::9" };
	static const char *const dst6[] = { "2001:db8:1::2", "2001:db8::1", "2001:db8:ffff::1",
					    "fe80::5",       "ff02::1",     "2001:db8:1::2" };
	uint32_t n = rnd(2) ? rig_udp(frame, 0, src4[rnd(4) ? 0 : rnd(8)],
				      dst4[rnd(2) ? 0 : rnd(8)], rnd(100))
			    : rig_udp(frame, 0, src6[rnd(4) ? 0 : rnd(6)],
				      dst6[rnd(2) ? 0 : rnd(6)], rnd(100));

	/* Now and then some bytes are others; IPv4's checksum is made right again by halves. */
	for (unsigned k = rnd(3); k && !rnd(2); k--)
		frame[rnd(4) ? 14 + rnd(40) : rnd(14)] = (uint8_t)rnd(256);
	if (pk_load16(frame + 12) == PK_ETH_IPV4 && rnd(2)) {
		bool most = !rnd(16);
		uint16_t csum;

		/* Identification and fragment at their greatest: sums of words carry. */
		if (most)
			memset(frame + 18, 0xff, 4);
		memset(frame + 24, 0, 2);
		csum = pk_csum_finish(pk_csum(frame + 14, 20));
		if (most)
			csum = (uint16_t)(csum + rnd(3) - 1);
		memcpy(frame + 24, &csum, 2);
	}
	return rnd(10) ? n : 14 + rnd(n - 14);
}

static void test_same_both_ways(void **state)
{
	struct rig fast, slow;
	struct ro_counters a, b;
	static uint8_t other[PK_FRAME_MAX_BYTES];

	rig_ready(&fast, "f", false);
	rig_ready(&slow, "s", true);
	for (unsigned i = 0; i < 60000; i++) {
		uint32_t n = any_frame();

		rig_in(&fast, 0, frame, n, 0, 0, 0);
		rig_in(&slow, 0, frame, n, 0, 0, 0);
		for (unsigned p = 0; p < RIG_PORTS; p++) {
			uint32_t x = rig_out(&fast, p, out, NULL);
			uint32_t y = rig_out(&slow, p, other, NULL);

			assert_int_equal(x, y);
			if (memcmp(out, other, x) != 0) {
				print_error("packet %u differs on port %u\n", i, p);
				fail();
			}
		}
	}
	ro_router_counters(fast.router, &a);
	ro_router_counters(slow.router, &b);
	assert_memory_equal(a.drops, b.drops, sizeof(a.drops));
	assert_int_equal(a.sent, b.sent);
	assert_true(a.fast > 10000);
	assert_int_equal(b.fast, 0);
	check_balance(&fast);
	check_balance(&slow);
	rig_close(&fast);
	rig_close(&slow);
}

/* Of each checksum that a header can have the next one is right. */
static void test_every_checksum(void **state)
{
	struct rig r;
	uint32_t n;

	rig_ready(&r, "sum", false);
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 20);
	for (unsigned id = 0; id < 65536; id++) {
		uint16_t csum;

		pk_store16(frame + 18, (uint16_t)id);
		memset(frame + 24, 0, 2);
		csum = pk_csum_finish(pk_csum(frame + 14, 20));
		memcpy(frame + 24, &csum, 2);
		rig_in(&r, 0, frame, n, 0, 0, 0);
		if (rig_out(&r, 1, out, NULL) != n || out[22] != frame[22] - 1 ||
		    pk_csum_fold(pk_csum(out + 14, 20)) != 0xffff ||
		    pk_load16(out + 24) == 0xffff) {
			print_error("checksum %04x becomes %04x\n", pk_load16(frame + 24),
				    pk_load16(out + 24));
			fail();
		}
	}
	check_balance(&r);
	rig_close(&r);
}

/* An interface that is down takes nothing. */
static void test_down(void **state)
{
	struct ro_iface_config c = { .ifindex = 1, .mac = { 2, 0, 0, 0, 1, 0 }, .mtu = 1500 };
	struct rig r;
	uint32_t n;

	rig_ready(&r, "down", false);
	assert_int_equal(ro_iface_set(r.tables, &c, NULL), 0);
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.2", 20);
	rig_in(&r, 0, frame, n, 0, 0, 0);
	assert_int_equal(rig_out(&r, 1, out, NULL), 0);
	assert_int_equal(rig_drops(&r, RO_DROP_INTERFACE_DOWN), 1);
	c.up = true;
	assert_int_equal(ro_iface_set(r.tables, &c, NULL), 0);
	rig_in(&r, 0, frame, n, 0, 0, 0);
	assert_int_equal(rig_out(&r, 1, out, NULL), n);
	check_balance(&r);
	rig_close(&r);
}

/* --- neighbours over time ------------------------------------------------------------------- */

struct timeline {
	struct rig *r;
	struct ro_discovery *d;
	uint64_t until;
	unsigned asked, directed; /* ARP requests seen on port 1: to all, to one */
	bool answer;              /* the neighbour does */
};

static void arp_reply(struct timeline *t, const uint8_t *request)
{
	uint8_t f[60] = { 0 };

	memcpy(f, request + 6, 6);
	f[6] = 2;
	f[11] = 0x77;
	pk_store16(f + 12, PK_ETH_ARP);
	memcpy(f + 14, request + 14, 28);
	f[21] = 2;
	memcpy(f + 22, f + 6, 6);
	memcpy(f + 28, request + 38, 4);
	memcpy(f + 32, request + 22, 6);
	memcpy(f + 38, request + 28, 4);
	rig_in(t->r, 1, f, 42, 0, 0, 0);
}

static void live(void *arg)
{
	struct timeline *t = arg;

	while (rt_now_ns(rt) < t->until) {
		struct pk_slot s[PK_FRAME_MAX_SLOTS];
		unsigned n;

		ro_tables_poll(t->r->tables, rt_now_ns(rt));
		ro_discovery_poll(t->d, rt_now_ns(rt));
		ro_worker_housekeep(t->r->worker);
		n = port_rx(t->r->far[1]->rxq[0], s, PK_FRAME_MAX_SLOTS);
		for (unsigned i = 0; i < n; i++) {
			uint8_t *d = pk_data(arena, &s[i]);

			if (pk_load16(d + 12) != PK_ETH_ARP || d[21] != 1)
				continue;
			t->asked += d[0] == 0xff;
			t->directed += d[0] != 0xff;
			if (t->answer)
				arp_reply(t, d);
		}
		pk_free_slots(t->r->far_cache, s, n);
		rt_sleep_until(rt, rt_now_ns(rt) + 10000000);
	}
}

static void run_until(struct timeline *t, double seconds)
{
	struct rt_task_attr attr = { .name = "live", .cpu = 0 };
	struct rt_task *task;

	t->until = rt_now_ns(rt) + (uint64_t)(seconds * 1e9);
	assert_int_equal(rt_spawn(rt, &attr, live, t, &task, NULL), 0);
	rt_join(rt, task);
}

static void send_to_77(struct rig *r)
{
	uint32_t n = rig_udp(frame, 0, "10.0.0.2", "10.1.0.77", 20);

	rig_in(r, 0, frame, n, 0, 0, 0);
}

static void test_neighbour_life(void **state)
{
	struct timeline t = { .answer = true };
	struct ro_counters c;
	struct rig r;

	rig_ready(&r, "life", false);
	assert_int_equal(ro_discovery_create(r.tables, r.router, &t.d, NULL), 0);
	t.r = &r;
	/* Four packets come before it answers: three are kept and leave when it has. */
	for (unsigned i = 0; i < 4; i++)
		send_to_77(&r);
	assert_int_equal(rig_drops(&r, RO_DROP_HOLD_FULL), 1);
	run_until(&t, 0.2);
	ro_router_counters(r.router, &c);
	assert_int_equal(t.asked, 1);
	assert_int_equal(c.held, 4);
	assert_int_equal(c.drops[RO_DROP_HOLD_FULL], 1);
	/* Known now: the fast path. */
	send_to_77(&r);
	ro_router_counters(r.router, &c);
	assert_int_equal(c.fast, 1);
	/* Asked again, directly, within 90 s; it answers and stays. */
	run_until(&t, 95);
	assert_true(t.directed >= 1);
	assert_int_equal(t.asked, 1);
	send_to_77(&r);
	ro_router_counters(r.router, &c);
	assert_int_equal(c.fast, 2);
	/* It falls silent: three probes, then it is gone, and packets wait again. */
	t.answer = false;
	t.directed = 0;
	run_until(&t, 95);
	assert_int_equal(t.directed, 3);
	send_to_77(&r);
	run_until(&t, 0.1);
	assert_int_equal(t.asked, 2);
	/* Nobody answers: host unreachable goes back, and at once for the next packet. */
	run_until(&t, 3.5);
	assert_int_equal(rig_drops(&r, RO_DROP_NEIGH_FAILED), 1);
	assert_int_equal(t.asked, 4);
	send_to_77(&r);
	assert_int_equal(rig_drops(&r, RO_DROP_NEIGH_FAILED), 2);
	/* After a while it is tried anew. */
	run_until(&t, 4);
	send_to_77(&r);
	run_until(&t, 0.1);
	assert_int_equal(t.asked, 5);
	check_balance(&r);
	ro_discovery_destroy(t.d);
	for (unsigned p = 0; p < RIG_PORTS; p++) {
		struct pk_slot s[PK_FRAME_MAX_SLOTS];
		unsigned n = port_rx(r.far[p]->rxq[0], s, PK_FRAME_MAX_SLOTS);

		pk_free_slots(r.far_cache, s, n);
	}
	rig_close(&r);
}

/* --- what waited, and how long it may be ---------------------------------------------------- */

static void route_with_mtu(struct rig *r, const char *to, uint8_t len, const char *via,
			   uint32_t mtu)
{
	static struct ro_route route;

	memset(&route, 0, sizeof(route));
	route.dst.addr = rig_addr(to);
	route.dst.len = len;
	route.kind = RO_UNICAST;
	route.mtu = mtu;
	route.hops = 1;
	route.hop[0].ifindex = 2;
	route.hop[0].weight = 1;
	if (via)
		route.hop[0].via = rig_addr(via);
	assert_int_equal(ro_route_set(r->tables, &route, NULL), 0);
}

/* The lengths of the IP packets that came out of a port, at most `room`; returns how many. */
static unsigned lengths_out(struct rig *r, unsigned port, uint32_t *length, unsigned room)
{
	struct pk_slot s[PK_BURST];
	unsigned n = port_rx(r->far[port]->rxq[0], s, PK_BURST), frames = 0;

	for (unsigned i = 0; i < n;) {
		unsigned k = pk_frame_slots(s + i, n - i);

		assert_true(frames < room);
		length[frames++] = pk_frame_bytes(s + i, k) - PK_ETH_BYTES;
		i += k;
	}
	pk_free_slots(r->far_cache, s, n);
	return frames;
}

static void set_df(uint8_t *ip)
{
	uint16_t csum;

	ip[6] = 0x40;
	memset(ip + 10, 0, 2);
	csum = pk_csum_finish(pk_csum(ip, PK_IPV4_BYTES));
	memcpy(ip + 10, &csum, 2);
}

/* A packet that waited for its neighbour is as long as its own route allows: not as the route to
 * the neighbour does, and not as the interface did when it came. */
static void test_held_mtu(void **state)
{
	struct ro_iface_config c = {
		.ifindex = 2, .port = 1, .mac = { 2, 0, 0, 0, 1, 1 }, .mtu = 1500, .up = true
	};
	uint32_t length[4], n;
	struct rig r;

	rig_ready(&r, "heldmtu", false);
	ro_worker_housekeep(r.worker); /* it sees what time it is */
	rig_neigh(&r, 1, "2001:db8::7", 0x02);
	rig_neigh(&r, 1, "10.0.0.7", 0x02);
	/* Its route's MTU is less than the interface's. */
	route_with_mtu(&r, "172.20.0.0", 16, "10.1.0.50", 1000);
	n = rig_udp(frame, 0, "10.0.0.7", "172.20.0.1", 1172);
	rig_in(&r, 0, frame, n, 0, 0, 0);
	assert_int_equal(lengths_out(&r, 1, length, 4), 0);
	rig_neigh(&r, 2, "10.1.0.50", 0x50);
	ro_worker_housekeep(r.worker);
	assert_int_equal(lengths_out(&r, 1, length, 4), 2);
	assert_int_equal(length[0], 996);
	assert_int_equal(length[1], 224);
	/* That of the route to the neighbour is: it says nothing about what goes on from there. */
	route_with_mtu(&r, "10.1.0.0", 24, NULL, 800);
	route_with_mtu(&r, "172.21.0.0", 16, "10.1.0.51", 0);
	n = rig_udp(frame, 0, "10.0.0.7", "172.21.0.1", 1172);
	set_df(frame + PK_ETH_BYTES);
	rig_in(&r, 0, frame, n, 0, 0, 0);
	rig_neigh(&r, 2, "10.1.0.51", 0x51);
	ro_worker_housekeep(r.worker);
	assert_int_equal(lengths_out(&r, 1, length, 4), 1);
	assert_int_equal(length[0], 1200);
	/* On the link itself it holds. */
	n = rig_udp(frame, 0, "10.0.0.7", "10.1.0.52", 1172);
	rig_in(&r, 0, frame, n, 0, 0, 0);
	rig_neigh(&r, 2, "10.1.0.52", 0x52);
	ro_worker_housekeep(r.worker);
	assert_int_equal(lengths_out(&r, 1, length, 4), 2);
	assert_int_equal(length[0], 796);
	/* The interface becomes shorter while they wait: both senders are told. */
	route_with_mtu(&r, "172.22.0.0", 16, "10.1.0.53", 0);
	route_with_mtu(&r, "2001:db8:22::", 48, "2001:db8:1::53", 0);
	n = rig_udp(frame, 0, "10.0.0.7", "172.22.0.1", 1372);
	set_df(frame + PK_ETH_BYTES);
	rig_in(&r, 0, frame, n, 0, 0, 0);
	n = rig_udp(frame, 0, "2001:db8::7", "2001:db8:22::1", 1352);
	rig_in(&r, 0, frame, n, 0, 0, 0);
	assert_int_equal(rig_drops(&r, RO_DROP_TOO_BIG), 0);
	c.mtu = 1300;
	assert_int_equal(ro_iface_set(r.tables, &c, NULL), 0);
	rig_neigh(&r, 2, "10.1.0.53", 0x53);
	rig_neigh(&r, 2, "2001:db8:1::53", 0x53);
	ro_worker_housekeep(r.worker);
	assert_int_equal(lengths_out(&r, 1, length, 4), 0);
	assert_int_equal(rig_drops(&r, RO_DROP_TOO_BIG), 2);
	assert_int_equal(lengths_out(&r, 0, length, 4), 2);
	assert_int_equal(length[0], 576);
	assert_int_equal(length[1], 1280);
	check_balance(&r);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tag_beside),     cmocka_unit_test(test_chain),
		cmocka_unit_test(test_offloads),       cmocka_unit_test(test_same_both_ways),
		cmocka_unit_test(test_every_checksum), cmocka_unit_test(test_down),
		cmocka_unit_test(test_neighbour_life), cmocka_unit_test(test_held_mtu),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
