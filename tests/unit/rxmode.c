// SPDX-License-Identifier: BSD-2-Clause
/* rx-modes in the lab's clock, over the ixgbe driver and a chip that does what it is told to. */
#include "ixgbe_fake.h"

#include "lab/exec.h"
#include "lab/sim.h"
#include "mac/rxmode.h"

#define US 1000ull

struct box {
	struct sim *sim;
	struct rt *rt;
	struct pk_arena *arena;
	struct fake *chip;
	struct port *port;
	struct mac_rx *rx;
	struct ho_err err;
	uint64_t consumed, bytes, calls;
	unsigned longest;
};

static void consume(void *arg, struct pk_cache *cache, struct pk_slot *slots, unsigned n)
{
	struct box *b = arg;

	b->calls++;
	b->longest = HO_MAX(b->longest, n);
	for (unsigned i = 0; i < n; i++) {
		b->consumed += !(slots[i].flags & PK_MORE);
		b->bytes += slots[i].len;
	}
	pk_free_slots(cache, slots, n);
}

static void box_up(struct box *b, struct mac_rx_config rc, struct nic_ixgbe_config nc)
{
	struct pk_arena_config arena = { .buffers = 8000, .no_huge = true };
	struct lab_machine machine;
	struct port_config config;

	memset(b, 0, sizeof(*b));
	lab_machine_defaults(&machine);
	machine.cpus = 2;
	machine.cost[RT_COST_RX_FRAME] = 100 * SIM_PS_PER_NS;
	machine.cost[RT_COST_TX_CLEAN] = 50 * SIM_PS_PER_NS;
	machine.cost[RT_COST_POLL] = 200 * SIM_PS_PER_NS;
	machine.cost[RT_COST_RELAX] = 20 * SIM_PS_PER_NS;
	assert_int_equal(sim_create(&b->sim), 0);
	assert_int_equal(lab_exec_create(b->sim, "box", &machine, NULL, &b->rt, &b->err), 0);
	assert_int_equal(pk_arena_create(&arena, &b->arena, &b->err), 0);
	b->chip = fake_create(b->rt);
	nc.no_watchdog = true;
	config = (struct port_config){
		.rt = b->rt, .arena = b->arena, .rx_ring = 1024, .tx_ring = 1024
	};
	assert_int_equal(nic_ixgbe_open(&b->chip->bus, &config, &nc, &b->port, &b->err), 0);
	rc.port = b->port;
	rc.consume = consume;
	rc.arg = b;
	assert_int_equal(mac_rx_open(&rc, &b->rx, &b->err), 0);
	assert_int_equal(port_start(b->port, &b->err), 0);
	assert_int_equal(mac_rx_start(b->rx, &b->err), 0);
}

static void box_down(struct box *b)
{
	mac_rx_stop(b->rx);
	mac_rx_stop(b->rx);
	port_close(b->port);
	mac_rx_close(b->rx);
	b->chip->bus.ops->close(&b->chip->bus);
	assert_int_equal(pk_arena_missing(b->arena), 0);
	pk_arena_destroy(b->arena);
	rt_destroy(b->rt);
	sim_destroy(b->sim);
}

static void arrive(struct box *b, unsigned n)
{
	uint8_t frame[60] = { 0 };

	while (n--)
		assert_true(fake_receive(b->chip, 0, frame, 60, 0, 0, 0, 0));
}

/* The interrupt, if it is unmasked: the chip masks it as it fires (EIAM). */
static bool fire(struct box *b)
{
	uint32_t *eims = fake_reg(b->chip, IXGBE_EIMS_EX(0));

	if (!(*eims & 1))
		return false;
	*eims = 0;
	rt_event_signal(b->rt, b->chip->event[0]);
	return true;
}

static void run_us(struct box *b, uint64_t us)
{
	rt_sleep_until(b->rt, rt_now_ns(b->rt) + us * US);
}

/* Hands n frames to the transmit queue and has the chip send them. */
static void send(struct box *b, unsigned n)
{
	struct pk_slot s = { .off = PK_HEADROOM_BYTES, .len = 60 };

	while (n--) {
		assert_int_equal(pk_alloc(b->rx->cache, &s.buf, 1), 1);
		assert_int_equal(port_tx(b->port->txq[0], &s, 1), 1);
	}
	fake_transmit(b->chip, 0, 5000);
}

static void test_napi(void **state)
{
	struct mac_rx_stats st;
	struct box b;

	box_up(&b, (struct mac_rx_config){ .mode = "napi" }, (struct nic_ixgbe_config){ 0 });
	assert_int_equal(b.chip->unmasks, 1);
	arrive(&b, 200);
	assert_true(fire(&b));
	run_us(&b, 100);
	st = mac_rx_stats(b.rx);
	assert_int_equal(b.consumed, 200);
	assert_int_equal(st.packets, 200);
	assert_int_equal(st.interrupts, 1);
	/* 64, 64, 64 and 8: three at their limit, one that completes and unmasks. */
	assert_int_equal(st.passes, 4);
	assert_int_equal(st.exhausted, 3);
	assert_int_equal(st.completes, 1);
	assert_int_equal(b.chip->unmasks, 2);
	assert_int_equal(b.longest, 64);
	/* Exactly the weight is at the limit as well: one more pass finds nothing. */
	arrive(&b, 64);
	assert_true(fire(&b));
	run_us(&b, 100);
	st = mac_rx_stats(b.rx);
	assert_int_equal(st.passes, 6);
	assert_int_equal(st.completes, 2);
	assert_int_equal(b.consumed, 264);
	box_down(&b);
}

static void test_napi_transmit_limit(void **state)
{
	struct mac_rx_stats st;
	struct box b;

	box_up(&b, (struct mac_rx_config){ .mode = "napi" }, (struct nic_ixgbe_config){ 0 });
	send(&b, 600);
	assert_true(fire(&b));
	run_us(&b, 200);
	st = mac_rx_stats(b.rx);
	/* 256, 256, 88. */
	assert_int_equal(st.passes, 3);
	assert_int_equal(st.exhausted, 2);
	assert_int_equal(st.completes, 1);
	assert_int_equal(b.port->txq[0]->ctr.packets, 600);
	box_down(&b);
}

/* What one napi interrupt costs, to the nanosecond: polls and frames, nothing else. */
static void test_napi_time(void **state)
{
	struct lab_cpu_stats before, after;
	struct box b;

	box_up(&b, (struct mac_rx_config){ .mode = "napi", .cpu = 1 },
	       (struct nic_ixgbe_config){ 0 });
	lab_exec_cpu_stats(b.rt, 1, &before);
	arrive(&b, 100);
	fire(&b);
	run_us(&b, 100);
	lab_exec_cpu_stats(b.rt, 1, &after);
	assert_int_equal(after.softirq - before.softirq, (100 * 100 + 2 * 200) * SIM_PS_PER_NS);
	assert_int_equal(after.interrupts - before.interrupts, 1);
	box_down(&b);
}

static void test_deferral(void **state)
{
	struct mac_rx_stats st;
	struct box b;

	box_up(&b,
	       (struct mac_rx_config){
		       .mode = "napi", .defer_hard_irqs = 3, .gro_flush_timeout_ns = 20 * US },
	       (struct nic_ixgbe_config){ 0 });
	arrive(&b, 10);
	assert_true(fire(&b));
	run_us(&b, 15);
	assert_int_equal(mac_rx_stats(b.rx).deferrals, 1);
	/* Masked: arrivals wait for the timer, and refill the patience. */
	assert_false(fire(&b));
	arrive(&b, 10);
	run_us(&b, 15);
	assert_int_equal(b.consumed, 20);
	assert_int_equal(mac_rx_stats(b.rx).interrupts, 1);
	/* Silence: two more deferrals, the fourth look unmasks. */
	run_us(&b, 200);
	st = mac_rx_stats(b.rx);
	assert_int_equal(st.deferrals, 4);
	assert_int_equal(st.completes, 5);
	assert_true(fire(&b));
	run_us(&b, 10);
	/* An interrupt without frames does not defer. */
	assert_int_equal(mac_rx_stats(b.rx).deferrals, 4);
	box_down(&b);
}

static void test_direct(void **state)
{
	struct lab_cpu_stats cpu;
	struct mac_rx_stats st;
	struct box b;

	box_up(&b, (struct mac_rx_config){ .mode = "direct", .cpu = 1 },
	       (struct nic_ixgbe_config){ 0 });
	arrive(&b, 500);
	send(&b, 300);
	assert_true(fire(&b));
	run_us(&b, 200);
	st = mac_rx_stats(b.rx);
	assert_int_equal(b.consumed, 500);
	assert_int_equal(b.port->txq[0]->ctr.packets, 300);
	assert_int_equal(st.interrupts, 1);
	assert_int_equal(st.completes, 1);
	/* All of it in interrupt context. */
	lab_exec_cpu_stats(b.rt, 1, &cpu);
	assert_int_equal(cpu.softirq, 0);
	assert_int_equal(cpu.irq, (500 * 100 + 300 * 50 + st.passes * 200) * SIM_PS_PER_NS);
	assert_true(fire(&b));
	box_down(&b);
}

static void test_poll(void **state)
{
	struct mac_rx_stats st;
	struct box b;

	box_up(&b, (struct mac_rx_config){ .mode = "poll", .cpu = 1 },
	       (struct nic_ixgbe_config){ 0 });
	assert_int_equal(b.chip->unmasks, 0);
	for (unsigned i = 0; i < 50; i++) {
		arrive(&b, 20);
		send(&b, 10);
		run_us(&b, 20);
		assert_int_equal(b.consumed, 20 * (i + 1));
		assert_int_equal(b.port->txq[0]->ctr.packets, 10 * (i + 1));
	}
	st = mac_rx_stats(b.rx);
	assert_int_equal(st.interrupts, 0);
	assert_int_equal(st.completes, 0);
	box_down(&b);
}

/* rx-usecs 1: the rule runs as code, once for each completed poll and not for each pass. */
static void test_adaptive(void **state)
{
	struct box b;
	uint32_t after_one;

	box_up(&b, (struct mac_rx_config){ .mode = "napi" },
	       (struct nic_ixgbe_config){ .rx_usecs = 1 });
	assert_int_equal(*fake_reg(b.chip, IXGBE_EITR(0)), 0x80000000 | 200);
	/* 491 frames of 60 bytes at once: 8 passes, but one decision. */
	send(&b, 491);
	arrive(&b, 491);
	fire(&b);
	run_us(&b, 200);
	after_one = b.rx->moderation.a26.itr;
	assert_int_equal(mac_rx_stats(b.rx).completes, 1);
	/* What was decided on is not counted again. */
	assert_int_equal(b.rx->since.tx_packets + b.rx->since.rx_packets, 0);
	assert_int_equal(after_one, 200); /* from class lowest to low: the target is 200 */
	for (unsigned i = 0; i < 100; i++) {
		send(&b, 491);
		assert_true(fire(&b));
		run_us(&b, 200);
	}
	assert_int_equal(*fake_reg(b.chip, IXGBE_EITR(0)), 0x80000000 | 488);
	box_down(&b);
}

static void test_moderation_by_name(void **state)
{
	struct mac_rx_config rc = { .mode = "napi", .moderation = "fixed", .spacing_ns = 30000 };
	struct box b;

	box_up(&b, rc, (struct nic_ixgbe_config){ 0 });
	assert_int_equal(*fake_reg(b.chip, IXGBE_EITR(0)), 0x80000000 | 120);
	box_down(&b);
	rc.moderation = "dim-rx-cqe";
	box_up(&b, rc, (struct nic_ixgbe_config){ 0 });
	assert_int_equal(*fake_reg(b.chip, IXGBE_EITR(0)), 0x80000000 | 32);
	box_down(&b);
}

static void test_bql_is_told(void **state)
{
	struct mac_bql bql;
	struct pk_slot s[8];
	uint32_t bufs[8];
	struct box b;

	box_up(&b, (struct mac_rx_config){ .mode = "napi", .bql = &bql },
	       (struct nic_ixgbe_config){ 0 });
	mac_bql_init(&bql, b.port->txq[0], true);
	for (unsigned sent = 0, round = 0; sent < 8; round++) {
		assert_int_equal(pk_alloc(b.rx->cache, bufs, 8 - sent), 8 - sent);
		for (unsigned i = 0; i < 8 - sent; i++)
			s[i] = (struct pk_slot){ .buf = bufs[i], .off = 64, .len = 1000 };
		unsigned n = mac_bql_tx(&bql, s, 8 - sent);

		assert_true(n > 0);
		pk_free_slots(b.rx->cache, s + n, 8 - sent - n);
		sent += n;
		assert_int_equal(bql.dql.queued - bql.dql.completed, n * 1000);
		fake_transmit(b.chip, 0, 100);
		assert_true(fire(&b));
		run_us(&b, 50);
		assert_int_equal(bql.dql.queued, bql.dql.completed);
		assert_true(round < 8);
	}
	box_down(&b);
}

static void test_long_frames(void **state)
{
	static uint8_t frame[9018];
	struct box b;

	box_up(&b, (struct mac_rx_config){ .mode = "napi" },
	       (struct nic_ixgbe_config){ .mtu = 9000 });
	for (unsigned i = 0; i < 150; i++)
		assert_true(fake_receive(b.chip, 0, frame, 9018, 0, 0, 0, 0));
	fire(&b);
	run_us(&b, 200);
	assert_int_equal(b.consumed, 150);
	assert_int_equal(b.bytes, 150 * 9018);
	/* Frames count against the weight, not slots. */
	assert_int_equal(mac_rx_stats(b.rx).exhausted, 2);
	box_down(&b);
}

static void test_refuses(void **state)
{
	struct mac_rx_config rc = { .mode = "napi" };
	struct mac_rx *rx;
	struct box b;

	box_up(&b, rc, (struct nic_ixgbe_config){ 0 });
	rc.port = b.port;
	rc.mode = "srs2";
	assert_int_equal(mac_rx_open(&rc, &rx, &b.err), -EINVAL);
	rc.mode = "napi";
	rc.queue = 1;
	assert_int_equal(mac_rx_open(&rc, &rx, &b.err), -EINVAL);
	rc.queue = 0;
	rc.moderation = "magic";
	assert_int_equal(mac_rx_open(&rc, &rx, &b.err), -EINVAL);
	assert_non_null(strstr(b.err.text, "adaptive-2017"));
	box_down(&b);
}

/* Random arrivals, sends and interrupts: nothing is lost, nothing waits unmasked. */
static void test_random(void **state)
{
	static const char *const modes[] = { "direct", "napi", "poll" };

	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t r = seed * 0x9e3779b97f4a7c15ull, arrived = 0, sent = 0;
		struct mac_rx_config rc = { .mode = modes[seed % 3],
					    .cpu = (int)(seed / 3 % 2),
					    .weight = 1 + (int)(seed * 7 % 100),
					    .tx_limit = 1 + (unsigned)(seed * 11 % 300),
					    .defer_hard_irqs = (unsigned)(seed % 4),
					    .gro_flush_timeout_ns = seed % 5 * 10 * US,
					    .moderation = mac_mod_name(
						    (enum mac_mod_kind)(seed % MAC_MOD_KINDS)) };
		struct box b;

		box_up(&b, rc, (struct nic_ixgbe_config){ 0 });
		for (unsigned step = 0; step < 200; step++) {
			unsigned n;

			r ^= r << 13;
			r ^= r >> 7;
			r ^= r << 17;
			n = (unsigned)(r >> 8) % 100;
			if (r % 3 == 0) {
				arrive(&b, n);
				arrived += n;
			} else if (r % 3 == 1) {
				send(&b, n);
				sent += n;
			}
			fire(&b);
			run_us(&b, 30 + r % 100);
		}
		for (unsigned i = 0; i < 20; i++) {
			fire(&b);
			run_us(&b, 100);
		}
		assert_int_equal(b.consumed, arrived);
		assert_int_equal(b.port->txq[0]->ctr.packets, sent);
		assert_int_equal(b.port->rxq[0]->ctr.packets, arrived);
		if (strcmp(rc.mode, "poll"))
			assert_true(*fake_reg(b.chip, IXGBE_EIMS_EX(0)) & 1);
		box_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_napi),        cmocka_unit_test(test_napi_transmit_limit),
		cmocka_unit_test(test_napi_time),   cmocka_unit_test(test_deferral),
		cmocka_unit_test(test_direct),      cmocka_unit_test(test_poll),
		cmocka_unit_test(test_adaptive),    cmocka_unit_test(test_moderation_by_name),
		cmocka_unit_test(test_bql_is_told), cmocka_unit_test(test_long_frames),
		cmocka_unit_test(test_refuses),     cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
