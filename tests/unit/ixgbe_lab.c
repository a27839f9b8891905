// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ixgbe driver over the lab's model of its chip: two ports and a wire, one host.
 *
 *    sender (CPU 0) --> port 0 -- PCI -- 82599 ==== wire ==== 82599 -- PCI -- port 1 --> consumer
 *                       napi, CPU 0                                          napi, CPU 1
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/bus.h"
#include "lab/exec.h"
#include "lab/fault.h"
#include "lab/i82599.h"
#include "lab/pci.h"
#include "lab/wire.h"
#include "mac/rxmode.h"
#include "nic/ixgbe.h"
#include "packet/csum.h"
#include "packet/parse.h"
#include "traffic/pktgen.h"

#define MS     1000000ull
#define QUEUES 16
#define SEQ_AT 60 /* where frames carry their number */

struct side {
	struct lab_pci *pci;
	struct lab_chip *chip;
	struct nic_bus *bus;
	struct port *port;
	struct mac_rx *rx[QUEUES];
};

struct box;

struct sink {
	struct box *box;
	unsigned queue;
	uint64_t frames;
};

struct box {
	struct sim *sim;
	struct rt *rt;
	struct lab_wire *wire;
	struct pk_arena *arena;
	struct pk_cache *cache; /* the sender's */
	struct side side[2];
	struct ho_err err;
	/* what came out */
	struct sink sink[2][QUEUES];
	uint64_t frames, bytes, csum_ok, csum_bad, vlan, hashed, out_of_order;
	uint32_t next_seq;
	bool in_order; /* look at sequence numbers */
	uint16_t last_vlan;
	uint8_t last[16384];
	/* the sender's work */
	unsigned (*make)(struct box *b, uint64_t i, struct pk_slot *slots);
	uint64_t to_send, made;
	bool batch; /* several frames a call */
};

static void consume(void *arg, struct pk_cache *cache, struct pk_slot *slots, unsigned n)
{
	struct sink *sink = arg;
	struct box *b = sink->box;

	for (unsigned i = 0; i < n;) {
		unsigned k = pk_frame_slots(slots + i, n - i);
		const struct pk_slot *s = &slots[i];
		uint32_t seq;

		sink->frames++;
		b->frames++;
		b->bytes += pk_frame_bytes(s, k);
		b->csum_ok += !!(s->flags & PK_CSUM_OK);
		b->csum_bad += !!(s->flags & PK_CSUM_BAD);
		b->hashed += !!(s->flags & PK_HASH);
		if (s->flags & PK_VLAN) {
			b->vlan++;
			b->last_vlan = s->vlan;
		}
		pk_frame_to_bytes(b->arena, s, k, b->last, sizeof(b->last));
		if (b->in_order) {
			memcpy(&seq, b->last + SEQ_AT, 4);
			b->out_of_order += seq != b->next_seq;
			b->next_seq = seq + 1;
		}
		i += k;
	}
	pk_free_slots(cache, slots, n);
}

static void side_up(struct box *b, unsigned end, unsigned queues, unsigned ring,
		    struct nic_ixgbe_config nc)
{
	struct side *s = &b->side[end];
	struct lab_i82599_config chip = { .name = end ? "b" : "a", .mac = { 2, 0, 0, 0, 0, end } };
	struct port_config config = {
		.rt = b->rt, .arena = b->arena, .queues = queues, .rx_ring = ring, .tx_ring = ring
	};

	assert_int_equal(lab_pci_create(b->sim, &(struct lab_pci_config){ 0 }, &s->pci, &b->err),
			 0);
	assert_int_equal(lab_i82599_create(b->sim, s->pci, &chip, &s->chip, &b->err), 0);
	lab_chip_attach(s->chip, b->wire, end);
	assert_int_equal(lab_bus_create(b->rt, s->chip, &s->bus, &b->err), 0);
	nc.promiscuous = true;
	if (nic_ixgbe_open(s->bus, &config, &nc, &s->port, &b->err))
		fail_msg("%s", b->err.text);
	assert_memory_equal(s->port->mac, chip.mac, 6);
	for (unsigned q = 0; q < queues; q++) {
		struct mac_rx_config rc = { .mode = "napi",
					    .port = s->port,
					    .queue = q,
					    .cpu = (int)end,
					    .consume = consume,
					    .arg = &b->sink[end][q] };

		b->sink[end][q] = (struct sink){ .box = b, .queue = q };
		assert_int_equal(mac_rx_open(&rc, &s->rx[q], &b->err), 0);
	}
	if (port_start(s->port, &b->err))
		fail_msg("%s", b->err.text);
	for (unsigned q = 0; q < queues; q++)
		assert_int_equal(mac_rx_start(s->rx[q], &b->err), 0);
}

static void run_ms(struct box *b, uint64_t ms)
{
	rt_sleep_until(b->rt, rt_now_ns(b->rt) + ms * MS);
}

static void box_up(struct box *b, unsigned queues, unsigned ring, struct nic_ixgbe_config nc)
{
	struct pk_arena_config arena = { .buffers = 65536, .no_huge = true };
	struct lab_machine machine;

	memset(b, 0, sizeof(*b));
	lab_machine_defaults(&machine);
	machine.cpus = 2;
	machine.cost[RT_COST_GEN_FRAME] = 42 * SIM_PS_PER_NS;
	machine.cost[RT_COST_TX_FRAME] = 55 * SIM_PS_PER_NS;
	machine.cost[RT_COST_TX_CLEAN] = 28 * SIM_PS_PER_NS;
	machine.cost[RT_COST_RX_FRAME] = 60 * SIM_PS_PER_NS;
	machine.cost[RT_COST_POLL] = 200 * SIM_PS_PER_NS;
	machine.cost[RT_COST_RELAX] = 10 * SIM_PS_PER_NS;
	assert_int_equal(sim_create(&b->sim), 0);
	assert_int_equal(lab_exec_create(b->sim, "box", &machine, NULL, &b->rt, &b->err), 0);
	assert_int_equal(lab_wire_create(b->sim, &(struct lab_wire_config){ 0 }, &b->wire, &b->err),
			 0);
	assert_int_equal(pk_arena_create(&arena, &b->arena, &b->err), 0);
	assert_int_equal(pk_cache_create(b->arena, &b->cache, &b->err), 0);
	nc.watchdog_cpu = 1;
	side_up(b, 0, queues, ring, nc);
	side_up(b, 1, queues, ring, nc);
	run_ms(b, 1);
	assert_true(b->side[0].port->ops->link_up(b->side[0].port));
}

static uint64_t stat(struct box *b, unsigned end, const char *name)
{
	struct port_stat s[32];
	struct port *port = b->side[end].port;
	unsigned n = port->ops->stats(port, s, 32);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(s[i].name, name))
			return s[i].value;
	fail_msg("no counter %s", name);
	return 0;
}

/* Everything that went into a port came out or is a named drop; chips and wire agree. */
static void box_down(struct box *b)
{
	for (unsigned end = 0; end < 2; end++)
		for (unsigned q = 0; q < b->side[end].port->n_rxq; q++)
			mac_rx_stop(b->side[end].rx[q]);
	for (unsigned end = 0; end < 2; end++)
		port_stop(b->side[end].port);
	for (unsigned end = 0; end < 2; end++) {
		struct side *s = &b->side[end];
		struct lab_i82599_counters n;

		for (unsigned q = 0; q < s->port->n_txq; q++)
			assert_int_equal(port_tx_in_flight(s->port->txq[q]), 0);
		lab_i82599_counters(s->chip, &n);
		assert_int_equal(n.ownership, 0);
		assert_int_equal(n.tx_bad, 0);
		if (s->chip->ops->check(s->chip, &b->err))
			fail_msg("%s", b->err.text);
	}
	assert_int_equal(lab_wire_check(b->wire, &b->err), 0);
	for (unsigned end = 0; end < 2; end++) {
		struct side *s = &b->side[end];
		unsigned queues = s->port->n_rxq;

		port_close(s->port);
		for (unsigned q = 0; q < queues; q++)
			mac_rx_close(s->rx[q]);
		s->bus->ops->close(s->bus);
		lab_chip_destroy(s->chip);
		lab_pci_destroy(s->pci);
	}
	lab_wire_destroy(b->wire);
	assert_int_equal(pk_arena_missing(b->arena), 0);
	pk_cache_destroy(b->cache);
	pk_arena_destroy(b->arena);
	rt_destroy(b->rt);
	sim_destroy(b->sim);
}

/* --- the sender ----------------------------------------------------------------------------- */

static void sender(void *arg)
{
	struct box *b = arg;
	struct port_txq *q = b->side[0].port->txq[0];
	struct pk_slot slots[PK_BURST];
	unsigned n = 0, taken;

	while ((b->made < b->to_send || n) && !rt_stopping(b->rt)) {
		while (b->made < b->to_send && (b->batch ? n + PK_FRAME_MAX_SLOTS <= PK_BURST : !n))
			n += b->make(b, b->made++, slots + n);
		taken = port_tx(q, slots, n);
		memmove(slots, slots + taken, (n - taken) * sizeof(slots[0]));
		n -= taken;
		if (!taken)
			rt_relax(b->rt);
	}
	if (n)
		pk_free_slots(b->cache, slots, n);
}

/* Sends `frames` frames of make() and lets all be over. */
static void send(struct box *b, uint64_t frames,
		 unsigned (*make)(struct box *b, uint64_t i, struct pk_slot *slots))
{
	struct rt_task_attr attr = { .name = "sender", .cpu = 0 };
	struct rt_task *task;

	b->make = make;
	b->made = 0;
	b->to_send = frames;
	assert_int_equal(rt_spawn(b->rt, &attr, sender, b, &task, &b->err), 0);
	rt_join(b->rt, task);
	for (unsigned ms = 0; ms < 20 && port_tx_in_flight(b->side[0].port->txq[0]); ms++)
		run_ms(b, 1);
	run_ms(b, 2);
}

static struct pk_slot room(struct box *b, uint16_t len)
{
	struct pk_slot s = { .off = PK_HEADROOM_BYTES, .len = len };

	assert_int_equal(pk_alloc(b->cache, &s.buf, 1), 1);
	memset(pk_data(b->arena, &s), 0, len);
	return s;
}

/* Headers of a TCP or UDP frame whose layer-4 field has the pseudo header's sum. */
static void headers(uint8_t *p, uint8_t proto, uint32_t frame_bytes, uint32_t flow)
{
	uint8_t *ip = p + 14, *l4 = p + 34;
	uint32_t sum = 0, at = proto == 6 ? 16 : 6;

	memcpy(p, "\2\0\0\0\0\1\2\0\0\0\0\0\x08\0", 14);
	ip[0] = 0x45;
	pk_store16(ip + 2, (uint16_t)(frame_bytes - 14));
	ip[8] = 64;
	ip[9] = proto;
	pk_store32(ip + 12, 0x0a000001 + flow);
	pk_store32(ip + 16, 0x0a010001);
	for (unsigned i = 0; i < 20; i += 2)
		sum += pk_load16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	pk_store16(ip + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
	pk_store16(l4, (uint16_t)(1000 + flow));
	pk_store16(l4 + 2, 80);
	if (proto == 6)
		l4[12] = 0x50;
	else
		pk_store16(l4 + 4, (uint16_t)(frame_bytes - 34));
	sum = proto + frame_bytes - 34;
	for (unsigned i = 12; i < 20; i += 2)
		sum += pk_load16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	pk_store16(l4 + at, (uint16_t)((sum & 0xffff) + (sum >> 16)));
}

static unsigned make_plain(struct box *b, uint64_t i, struct pk_slot *s)
{
	uint32_t seq = (uint32_t)i;

	s[0] = room(b, (uint16_t)(64 + i * 37 % 1400));
	headers(pk_data(b->arena, s), 17, s[0].len, 0);
	memcpy(pk_data(b->arena, s) + SEQ_AT, &seq, 4);
	return 1;
}

static void test_10000_frames(void **state)
{
	for (unsigned round = 0; round < 2; round++) {
		struct box b;

		box_up(&b, 1, round ? 4096 : 256, (struct nic_ixgbe_config){ .rx_usecs = 20 });
		b.in_order = true;
		b.batch = round;
		send(&b, 10000, make_plain);
		assert_int_equal(b.frames, 10000);
		assert_int_equal(b.out_of_order, 0);
		assert_int_equal(b.hashed, 10000);
		assert_int_equal(b.side[0].port->txq[0]->ctr.packets, 10000);
		assert_int_equal(b.side[0].port->txq[0]->ctr.bytes, b.bytes);
		assert_int_equal(b.side[1].port->rxq[0]->ctr.packets, 10000);
		assert_int_equal(stat(&b, 0, "tx_pkts_nic"), 10000);
		assert_int_equal(stat(&b, 1, "rx_pkts_nic"), 10000);
		box_down(&b);
	}
}

/* Without moderation descriptors are written back singly: the last frame is cleaned at once. */
static void test_no_moderation(void **state)
{
	struct box b;

	box_up(&b, 1, 256, (struct nic_ixgbe_config){ .rx_usecs = 0 });
	for (unsigned i = 1; i <= 50; i++) {
		send(&b, 1, make_plain);
		assert_int_equal(b.side[0].port->txq[0]->ctr.packets, i);
	}
	assert_int_equal(b.frames, 50);
	box_down(&b);
}

static unsigned make_flows(struct box *b, uint64_t i, struct pk_slot *s)
{
	s[0] = room(b, 64);
	headers(pk_data(b->arena, s), 17, 64, (uint32_t)(i % 997));
	return 1;
}

static void test_rss_spreads(void **state)
{
	struct box b;

	box_up(&b, 8, 512, (struct nic_ixgbe_config){ .rx_usecs = 20 });
	send(&b, 8000, make_flows);
	assert_int_equal(b.frames, 8000);
	for (unsigned q = 0; q < 8; q++)
		assert_in_range(b.sink[1][q].frames, 600, 1500);
	box_down(&b);
}

static unsigned make_vlan(struct box *b, uint64_t i, struct pk_slot *s)
{
	make_plain(b, i, s);
	s[0].flags = PK_VLAN;
	s[0].vlan = (uint16_t)(0x2000 | (i & 0xfff));
	return 1;
}

static void test_vlan(void **state)
{
	struct box b;

	for (unsigned strip = 0; strip < 2; strip++) {
		box_up(&b, 1, 256,
		       (struct nic_ixgbe_config){ .rx_usecs = 20, .no_vlan_strip = !strip });
		send(&b, 500, make_vlan);
		assert_int_equal(b.frames, 500);
		assert_int_equal(b.vlan, strip ? 500 : 0);
		if (strip) {
			assert_int_equal(b.last_vlan, 0x2000 | 499);
		} else {
			assert_int_equal(pk_load16(b.last + 12), 0x8100);
			assert_int_equal(pk_load16(b.last + 14), 0x2000 | 499);
		}
		/* The tag counts as bytes on both sides, wherever it travels. */
		assert_int_equal(b.side[0].port->txq[0]->ctr.bytes,
				 b.side[1].port->rxq[0]->ctr.bytes);
		box_down(&b);
	}
}

static unsigned make_csum(struct box *b, uint64_t i, struct pk_slot *s)
{
	s[0] = room(b, (uint16_t)(64 + i * 31 % 1400));
	headers(pk_data(b->arena, s), i % 2 ? 6 : 17, s[0].len, (uint32_t)i);
	for (unsigned k = SEQ_AT; k < s[0].len; k++)
		pk_data(b->arena, s)[k] = (uint8_t)(k * i);
	s[0].flags = PK_CSUM_PARTIAL;
	return 1;
}

/* Transmit completes the sum that the receiver finds right; without it, it is wrong. */
static unsigned make_bad(struct box *b, uint64_t i, struct pk_slot *s)
{
	make_csum(b, i, s);
	s[0].flags = 0;
	return 1;
}

static void test_checksums(void **state)
{
	struct box b;

	box_up(&b, 1, 256, (struct nic_ixgbe_config){ .rx_usecs = 20 });
	send(&b, 1000, make_csum);
	assert_int_equal(b.frames, 1000);
	assert_int_equal(b.csum_ok, 1000);
	send(&b, 100, make_bad);
	assert_int_equal(b.frames, 1100);
	assert_int_equal(b.csum_bad, 100);
	assert_int_equal(stat(&b, 1, "rx_csum_offload_errors"), 100);
	box_down(&b);
}

static unsigned make_tso(struct box *b, uint64_t i, struct pk_slot *s)
{
	const uint32_t total = 54 + 30000;
	unsigned n = 0;

	for (uint32_t at = 0; at < total; n++) {
		uint32_t len = total - at < 1800 ? total - at : 1800;

		s[n] = room(b, (uint16_t)len);
		memset(pk_data(b->arena, &s[n]), (int)n + 1, len);
		at += len;
		s[n].flags = at < total ? PK_MORE : 0;
	}
	memset(pk_data(b->arena, &s[0]), 0, 54);
	headers(pk_data(b->arena, &s[0]), 6, total, (uint32_t)i);
	s[0].flags |= PK_TSO | PK_CSUM_PARTIAL;
	s[0].meta = 1448;
	return n;
}

static void test_segmentation(void **state)
{
	const uint64_t segments = (30000 + 1447) / 1448;
	struct box b;

	box_up(&b, 1, 512, (struct nic_ixgbe_config){ .rx_usecs = 20 });
	send(&b, 100, make_tso);
	assert_int_equal(b.side[0].port->txq[0]->ctr.packets, 100);
	assert_int_equal(b.frames, 100 * segments);
	assert_int_equal(b.bytes, 100 * (30000 + segments * 54));
	/* Each segment has its own right checksums. */
	assert_int_equal(b.csum_ok, 100 * segments);
	assert_int_equal(b.csum_bad, 0);
	box_down(&b);
}

static unsigned make_jumbo(struct box *b, uint64_t i, struct pk_slot *s)
{
	unsigned n = 0;

	for (uint32_t at = 0; at < 9014; n++) {
		uint32_t len = 9014 - at < 1800 ? 9014 - at : 1800;

		s[n] = room(b, (uint16_t)len);
		at += len;
		s[n].flags = at < 9014 ? PK_MORE : 0;
	}
	headers(pk_data(b->arena, &s[0]), 17, 9014, 0);
	pk_data(b->arena, &s[n - 1])[s[n - 1].len - 1] = (uint8_t)i;
	return n;
}

static void test_jumbo(void **state)
{
	struct box b;

	box_up(&b, 1, 512, (struct nic_ixgbe_config){ .rx_usecs = 20, .mtu = 9000 });
	send(&b, 500, make_jumbo);
	assert_int_equal(b.frames, 500);
	assert_int_equal(b.bytes, 500 * 9014);
	assert_int_equal(b.last[9013], (uint8_t)499);
	assert_int_equal(stat(&b, 1, "non_eop_descs"), 500 * 4);
	box_down(&b);
}

/* The cable is pulled while frames are on their way: each is delivered or has a name. */
static void test_link_flap(void **state)
{
	struct lab_wire_stats w;
	uint64_t changes;
	struct box b;

	box_up(&b, 1, 256, (struct nic_ixgbe_config){ .rx_usecs = 20, .watchdog_ns = 10 * MS });
	send(&b, 100, make_plain);
	changes = stat(&b, 0, "lsc_int");
	lab_wire_set_link(b.wire, false);
	run_ms(&b, 1);
	/* By interrupt, long before the watchdog's period is over. */
	assert_false(b.side[0].port->ops->link_up(b.side[0].port));
	send(&b, 50, make_plain);
	run_ms(&b, 50);
	/* A link that is down is no hang. */
	assert_int_equal(stat(&b, 0, "tx_timeout_count"), 0);
	lab_wire_set_link(b.wire, true);
	run_ms(&b, 1);
	assert_true(b.side[0].port->ops->link_up(b.side[0].port));
	assert_int_equal(stat(&b, 0, "lsc_int"), changes + 2);
	send(&b, 1000, make_plain);
	lab_wire_stats(b.wire, 0, &w);
	assert_int_equal(w.frames, 1150);
	assert_int_equal(b.frames, 1150 - w.lost_link_down);
	assert_true(b.frames >= 1100);
	assert_int_equal(b.side[0].port->txq[0]->ctr.packets, 1150);
	box_down(&b);
}

/* One interrupt message in five never arrives: the watchdog finds what waits. */
static void test_lost_interrupts(void **state)
{
	struct lab_fault fault[2];
	struct lab_fault_config fc = { .seed = 7, .lose_irq_ppm = 200000 };
	struct box b;

	box_up(&b, 1, 256, (struct nic_ixgbe_config){ .rx_usecs = 20, .watchdog_ns = 1 * MS });
	lab_fault_start(&fault[0], &fc, b.side[0].chip);
	lab_fault_start(&fault[1], &fc, b.side[1].chip);
	send(&b, 10000, make_plain);
	run_ms(&b, 50);
	assert_true(fault[0].counts.lost_irqs > 0);
	assert_true(stat(&b, 0, "irq_rearmed") > 0);
	/* While interrupts are lost the receive ring may run dry; the chip says so. */
	assert_int_equal(b.side[0].port->txq[0]->ctr.packets, 10000);
	assert_int_equal(b.frames + stat(&b, 1, "rx_no_dma_resources") +
				 stat(&b, 1, "rx_missed_errors"),
			 10000);
	assert_int_equal(stat(&b, 0, "tx_timeout_count"), 0);
	lab_fault_stop(&fault[0]);
	lab_fault_stop(&fault[1]);
	box_down(&b);
}

/* The engines stop: the watchdog resets the chip, what was in it has a name, traffic goes on. */
static void test_hang(void **state)
{
	uint64_t lost;
	struct box b;

	box_up(&b, 1, 256, (struct nic_ixgbe_config){ .rx_usecs = 20, .watchdog_ns = 5 * MS });
	send(&b, 1000, make_plain);
	assert_int_equal(b.frames, 1000);
	b.side[0].chip->ops->hang(b.side[0].chip);
	/* Fills the ring and stops; the sender spins until the reset lets it go on. */
	send(&b, 2000, make_plain);
	run_ms(&b, 20);
	assert_int_equal(stat(&b, 0, "tx_timeout_count"), 1);
	assert_int_equal(stat(&b, 0, "hw_resets"), 1);
	lost = b.side[0].port->txq[0]->ctr.drops[PORT_DROP_TX_RESET];
	assert_int_equal(lost, 235);
	assert_int_equal(b.side[0].port->txq[0]->ctr.packets, 3000 - lost);
	/* Frames sent before the link was up again are lost on the wire, not in the port. */
	assert_in_range(b.frames, 1000, 3000 - lost);
	send(&b, 1000, make_plain);
	assert_int_equal(b.side[0].port->txq[0]->ctr.packets, 4000 - lost);
	box_down(&b);
}

/* --- pktgen --------------------------------------------------------------------------------- */

/*
 * The law that the published ring sizes follow, in its ring-limited half: ring - 21 frames for
 * each interrupt. rx-usecs 1 ends at 124.928 us: 235 / 124.928 us and 491 / 124.928 us.
 */
static void test_pktgen_is_limited_by_the_ring(void **state)
{
	static const struct {
		unsigned ring, usecs;
		uint64_t interval_ps;
	} rows[] = {
		{ 256, 1, 124928000 }, { 512, 1, 124928000 }, { 256, 40, 40960000 },
		{ 256, 50, 51200000 }, { 64, 20, 20480000 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tr_pktgen_counts from, to;
		struct tr_pktgen *pg;
		uint64_t want, pps;
		struct box b;

		box_up(&b, 1, rows[i].ring, (struct nic_ixgbe_config){ .rx_usecs = rows[i].usecs });
		assert_int_equal(
			tr_pktgen_create(
				&(struct tr_pktgen_config){ .port = b.side[0].port, .cpu = 0 }, &pg,
				&b.err),
			0);
		assert_int_equal(tr_pktgen_start(pg, &b.err), 0);
		run_ms(&b, 20);
		from = tr_pktgen_counts(pg);
		run_ms(&b, 100);
		to = tr_pktgen_counts(pg);
		pps = tr_pktgen_pps(&from, &to);
		want = (rows[i].ring - 21) * SIM_PS_PER_S / rows[i].interval_ps;
		print_message("ring %u, rx-usecs %u: %llu pps, law %llu\n", rows[i].ring,
			      rows[i].usecs, (unsigned long long)pps, (unsigned long long)want);
		assert_in_range(pps, want - want * 3 / 1000, want + want * 3 / 1000);
		assert_int_equal(to.errors, 0);
		/* The queue was woken once an interrupt and never asked while it was stopped. */
		assert_int_equal(stat(&b, 0, "tx_busy"), 0);
		tr_pktgen_stop(pg);
		tr_pktgen_stop(pg);
		for (unsigned q = 0; q < 1; q++)
			mac_rx_stop(b.side[0].rx[q]);
		port_stop(b.side[0].port);
		tr_pktgen_destroy(pg);
		box_down(&b);
	}
}

static void test_pktgen_counts(void **state)
{
	struct tr_pktgen_config pc = { .count = 1234, .frame_bytes = 100, .cpu = 0 };
	struct tr_pktgen *pg;
	struct box b;

	box_up(&b, 1, 256, (struct nic_ixgbe_config){ .rx_usecs = 20 });
	pc.port = b.side[0].port;
	pc.frame_bytes = 41;
	assert_int_equal(tr_pktgen_create(&pc, &pg, &b.err), -EINVAL);
	pc.frame_bytes = 1600;
	assert_int_equal(tr_pktgen_create(&pc, &pg, &b.err), -EINVAL);
	pc.frame_bytes = 100;
	pc.queue = 1;
	assert_int_equal(tr_pktgen_create(&pc, &pg, &b.err), -EINVAL);
	pc.queue = 0;
	b.side[0].port->honours_keep = false;
	assert_int_equal(tr_pktgen_create(&pc, &pg, &b.err), -ENOTSUP);
	b.side[0].port->honours_keep = true;
	assert_int_equal(tr_pktgen_create(&pc, &pg, &b.err), 0);
	assert_int_equal(tr_pktgen_start(pg, &b.err), 0);
	run_ms(&b, 5);
	assert_true(tr_pktgen_done(pg));
	assert_int_equal(tr_pktgen_counts(pg).sofar, 1234);
	assert_int_equal(tr_pktgen_counts(pg).bytes, 123400);
	assert_int_equal(b.frames, 1234);
	/* A sound UDP frame to the discard port; its checksum is left out (RFC 768). */
	assert_int_equal(pk_load16(b.last + 12), 0x0800);
	assert_int_equal(pk_load16(b.last + 36), 9);
	assert_int_equal(pk_load16(b.last + 38), 66);
	assert_int_equal(pk_load16(b.last + 40), 0);
	tr_pktgen_stop(pg);
	mac_rx_stop(b.side[0].rx[0]);
	port_stop(b.side[0].port);
	tr_pktgen_destroy(pg);
	box_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_10000_frames),
		cmocka_unit_test(test_no_moderation),
		cmocka_unit_test(test_rss_spreads),
		cmocka_unit_test(test_vlan),
		cmocka_unit_test(test_checksums),
		cmocka_unit_test(test_segmentation),
		cmocka_unit_test(test_jumbo),
		cmocka_unit_test(test_link_flap),
		cmocka_unit_test(test_lost_interrupts),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_pktgen_is_limited_by_the_ring),
		cmocka_unit_test(test_pktgen_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
