// SPDX-License-Identifier: BSD-2-Clause
/* The ixgbe driver against a chip that does only what it is told to. */
#include "ixgbe_fake.h"

struct box {
	struct rt *rt;
	struct pk_arena *arena;
	struct pk_cache *cache;
	struct fake *chip;
	struct port *port;
	struct ixgbe_dev *dev;
	struct ho_err err;
};

static void box_init(struct box *b)
{
	struct pk_arena_config config = { .buffers = 20000, .no_huge = true };

	memset(b, 0, sizeof(*b));
	assert_int_equal(rt_os_create(&b->rt, &b->err), 0);
	assert_int_equal(pk_arena_create(&config, &b->arena, &b->err), 0);
	assert_int_equal(pk_cache_create(b->arena, &b->cache, &b->err), 0);
	b->chip = fake_create(b->rt);
}

static int box_open(struct box *b, unsigned queues, unsigned rx, unsigned tx,
		    const struct nic_ixgbe_config *nc)
{
	struct port_config config = {
		.rt = b->rt, .arena = b->arena, .queues = queues, .rx_ring = rx, .tx_ring = tx
	};
	int rc = nic_ixgbe_open(&b->chip->bus, &config, nc, &b->port, &b->err);

	b->dev = (struct ixgbe_dev *)b->port;
	return rc;
}

static int box_start(struct box *b)
{
	for (unsigned i = 0; i < b->port->n_rxq; i++) {
		port_bind_rx(b->port, i, b->cache);
		port_bind_tx(b->port, i, b->cache);
	}
	return port_start(b->port, &b->err);
}

/* An open and started port with one pair and no watchdog. */
static void box_up(struct box *b, unsigned rx, unsigned tx, struct nic_ixgbe_config nc)
{
	nc.no_watchdog = true;
	box_init(b);
	assert_int_equal(box_open(b, 1, rx, tx, &nc), 0);
	assert_int_equal(box_start(b), 0);
}

/* Everything is given back, whatever happened. */
static void box_down(struct box *b)
{
	port_close(b->port);
	b->chip->bus.ops->close(&b->chip->bus);
	assert_int_equal(pk_arena_missing(b->arena), 0);
	pk_cache_destroy(b->cache);
	pk_arena_destroy(b->arena);
	rt_destroy(b->rt);
}

static uint64_t stat(struct box *b, const char *name)
{
	struct port_stat s[32];
	unsigned n = b->port->ops->stats(b->port, s, 32);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(s[i].name, name))
			return s[i].value;
	fail_msg("no counter %s", name);
	return 0;
}

static struct pk_slot make(struct box *b, uint16_t len, uint8_t fill)
{
	struct pk_slot s = { .off = PK_HEADROOM_BYTES, .len = len };

	assert_int_equal(pk_alloc(b->cache, &s.buf, 1), 1);
	memset(pk_data(b->arena, &s), fill, len);
	return s;
}

static unsigned send(struct box *b, unsigned n, uint16_t len)
{
	struct port_txq *q = b->port->txq[0];
	unsigned i;

	for (i = 0; i < n; i++) {
		struct pk_slot s = make(b, len, (uint8_t)i);

		if (!port_tx(q, &s, 1)) {
			pk_free(b->cache, &s.buf, 1);
			break;
		}
	}
	return i;
}

static uint32_t in_flight(struct box *b)
{
	return ixgbe_tx_in_flight(b->dev->txq[0]);
}

/* --- transmit ------------------------------------------------------------------------------- */

static void test_stops_at_ring_minus_21(void **state)
{
	static const unsigned rings[] = { 64, 72, 256, 512, 1024, 4096 };

	for (unsigned i = 0; i < HO_ARRAY_LEN(rings); i++) {
		struct box b;

		box_up(&b, 64, rings[i], (struct nic_ixgbe_config){ 0 });
		assert_int_equal(send(&b, 5000, 60), rings[i] - 21);
		assert_int_equal(in_flight(&b), rings[i] - 21);
		assert_true(port_tx_stopped(b.port->txq[0]));
		/* Refused, and counted as such. */
		assert_int_equal(stat(&b, "tx_busy"), 1);
		assert_int_equal(b.chip->doorbells, rings[i] - 21);
		box_down(&b);
	}
}

static void test_wakes_at_42(void **state)
{
	struct box b;

	box_up(&b, 64, 256, (struct nic_ixgbe_config){ 0 });
	assert_int_equal(send(&b, 300, 60), 235);
	/* 20 are unused now; 42 are after 22 more. tx itself does not wake. */
	assert_int_equal(fake_transmit(b.chip, 0, 21), 21);
	assert_int_equal(send(&b, 1, 60), 0);
	assert_int_equal(port_reap(b.port->txq[0]), 21);
	assert_true(port_tx_stopped(b.port->txq[0]));
	assert_int_equal(send(&b, 1, 60), 0);
	assert_int_equal(fake_transmit(b.chip, 0, 1), 1);
	assert_true(port_tx_stopped(b.port->txq[0]));
	assert_int_equal(port_reap(b.port->txq[0]), 1);
	assert_false(port_tx_stopped(b.port->txq[0]));
	assert_int_equal(stat(&b, "tx_restart_queue"), 1);
	assert_int_equal(send(&b, 300, 60), 22);
	box_down(&b);
}

static void test_ring_wraps(void **state)
{
	struct box b;
	uint64_t sent = 0;

	box_up(&b, 64, 72, (struct nic_ixgbe_config){ 0 });
	for (unsigned round = 0; round < 200; round++) {
		struct pk_slot s = make(&b, (uint16_t)(60 + round), (uint8_t)round);

		assert_int_equal(port_tx(b.port->txq[0], &s, 1), 1);
		assert_int_equal(fake_transmit(b.chip, 0, 9), 1);
		assert_int_equal(b.chip->frame_len, 60 + round);
		assert_int_equal(b.chip->frame[59], (uint8_t)round);
		assert_int_equal(b.chip->frame_olinfo, (60 + round) << 14);
		sent += port_reap(b.port->txq[0]);
	}
	assert_int_equal(sent, 200);
	assert_int_equal(b.port->txq[0]->ctr.packets, 200);
	assert_int_equal(b.port->txq[0]->ctr.bytes, 200 * 60 + 199 * 200 / 2);
	assert_int_equal(port_tx_in_flight(b.port->txq[0]), 0);
	box_down(&b);
}

static void test_burst_is_one_doorbell(void **state)
{
	struct pk_slot s[64];
	struct box b;

	box_up(&b, 64, 128, (struct nic_ixgbe_config){ 0 });
	for (unsigned i = 0; i < 64; i++)
		s[i] = make(&b, 60, (uint8_t)i);
	assert_int_equal(port_tx(b.port->txq[0], s, 64), 64);
	assert_int_equal(b.chip->doorbells, 1);
	for (unsigned i = 0; i < 64; i++)
		s[i] = make(&b, 60, (uint8_t)i);
	/* 43 more, then the queue stops: the rest stays ours. */
	assert_int_equal(port_tx(b.port->txq[0], s, 64), 43);
	assert_int_equal(b.chip->doorbells, 2);
	assert_int_equal(b.port->txq[0]->ctr.ring_full, 1);
	pk_free_slots(b.cache, s + 43, 21);
	box_down(&b);
}

static void test_clean_limit(void **state)
{
	struct port_work done = { 0 };
	struct box b;

	box_up(&b, 64, 1024, (struct nic_ixgbe_config){ 0 });
	assert_int_equal(send(&b, 600, 100), 600);
	assert_int_equal(fake_transmit(b.chip, 0, 600), 600);
	assert_true(b.port->ops->clean(b.port->txq[0], 256, &done));
	assert_int_equal(done.packets, 256);
	assert_int_equal(done.bytes, 25600);
	assert_true(b.port->ops->clean(b.port->txq[0], 256, &done));
	assert_int_equal(done.packets, 512);
	assert_false(b.port->ops->clean(b.port->txq[0], 256, &done));
	assert_int_equal(done.packets, 600);
	/* Exactly the limit and nothing behind it: not "more". */
	assert_int_equal(send(&b, 256, 100), 256);
	assert_int_equal(fake_transmit(b.chip, 0, 256), 256);
	assert_false(b.port->ops->clean(b.port->txq[0], 256, &done));
	box_down(&b);
}

static void test_frames_of_many_slots(void **state)
{
	struct pk_slot s[PK_FRAME_MAX_SLOTS];
	uint32_t bytes = 0;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ .mtu = 15000 });
	for (unsigned round = 0; round < 40; round++) {
		unsigned n = 1 + round % 8;

		bytes = 0;
		for (unsigned i = 0; i < n; i++) {
			s[i] = make(&b, (uint16_t)(1000 + 17 * i), (uint8_t)(round + i));
			s[i].flags = i + 1 < n ? PK_MORE : 0;
			bytes += s[i].len;
		}
		assert_int_equal(port_tx(b.port->txq[0], s, n), n);
		assert_int_equal(fake_transmit(b.chip, 0, 1), 1);
		assert_int_equal(b.chip->frame_len, bytes);
		assert_int_equal(b.chip->frame[bytes - 1], (uint8_t)(round + n - 1));
		assert_int_equal(b.chip->frame_olinfo, bytes << 14);
		assert_int_equal(port_reap(b.port->txq[0]), 1);
	}
	box_down(&b);
}

static void test_large_frame_waits_for_room(void **state)
{
	struct pk_slot s[37];
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ .mtu = 15000 });
	assert_int_equal(send(&b, 40, 60), 40);
	for (unsigned i = 0; i < 37; i++) {
		s[i] = make(&b, 100, (uint8_t)i);
		s[i].flags = i < 36 ? PK_MORE : 0;
	}
	/* 23 unused: not stopped, but too few; refusing stops the queue so that it is woken. */
	assert_false(port_tx_stopped(b.port->txq[0]));
	assert_int_equal(port_tx(b.port->txq[0], s, 37), 0);
	assert_true(port_tx_stopped(b.port->txq[0]));
	assert_int_equal(fake_transmit(b.chip, 0, 40), 40);
	assert_int_equal(port_reap(b.port->txq[0]), 40);
	assert_false(port_tx_stopped(b.port->txq[0]));
	assert_int_equal(port_tx(b.port->txq[0], s, 37), 37);
	box_down(&b);
}

/* Exactly as many descriptors as slots are unused: one is missing, for the context. */
static void test_room_for_the_context(void **state)
{
	struct pk_slot s[30];
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ .mtu = 15000 });
	assert_int_equal(send(&b, 33, 60), 33);
	for (unsigned i = 0; i < 30; i++) {
		s[i] = make(&b, 100, (uint8_t)i);
		s[i].flags = i < 29 ? PK_MORE : 0;
	}
	s[0].flags |= PK_VLAN;
	assert_int_equal(port_tx(b.port->txq[0], s, 30), 0);
	assert_true(port_tx_stopped(b.port->txq[0]));
	assert_int_equal(fake_transmit(b.chip, 0, 33), 33);
	assert_int_equal(port_reap(b.port->txq[0]), 33);
	assert_int_equal(port_tx(b.port->txq[0], s, 30), 30);
	assert_int_equal(in_flight(&b), 31);
	box_down(&b);
}

static void test_keep(void **state)
{
	struct pk_slot s;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	s = make(&b, 60, 7);
	s.flags = PK_KEEP;
	for (unsigned i = 0; i < 500; i++) {
		struct pk_slot again = s;

		assert_int_equal(port_tx(b.port->txq[0], &again, 1), 1);
		if (i % 8 == 7) {
			assert_int_equal(fake_transmit(b.chip, 0, 8), 8);
			assert_int_equal(port_reap(b.port->txq[0]), 8);
		}
	}
	/* Also in flight at the end: still ours. */
	b.port->ops->stop(b.port);
	b.port->stopped = true;
	assert_int_equal(b.port->txq[0]->ctr.drops[PORT_DROP_TX_CLOSED], 4);
	pk_free(b.cache, &s.buf, 1);
	box_down(&b);
}

static void test_refuses_what_cannot_be_sent(void **state)
{
	struct pk_slot s;
	struct box b;
	struct port_work done = { 0 };
	struct port_counters *c;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	c = &b.port->txq[0]->ctr;
	s = make(&b, 16, 0);
	assert_int_equal(port_tx(b.port->txq[0], &s, 1), 1);
	s = make(&b, 1519, 0);
	assert_int_equal(port_tx(b.port->txq[0], &s, 1), 1);
	s = make(&b, 100, 0); /* no IP in it */
	s.flags = PK_CSUM_PARTIAL;
	assert_int_equal(port_tx(b.port->txq[0], &s, 1), 1);
	assert_int_equal(c->drops[PORT_DROP_TX_TOO_SHORT], 1);
	assert_int_equal(c->drops[PORT_DROP_TX_TOO_LONG], 1);
	assert_int_equal(c->drops[PORT_DROP_TX_BAD_FRAME], 1);
	assert_int_equal(port_tx_in_flight(b.port->txq[0]), 0);
	assert_int_equal(b.chip->doorbells, 0);
	/* For who limits bytes in the queue they are done. */
	b.port->ops->clean(b.port->txq[0], 64, &done);
	assert_int_equal(done.packets, 3);
	assert_int_equal(done.bytes, 16 + 1519 + 100);
	/* Their buffers come back through the cleaner; until then there is only so much room. */
	for (unsigned i = 0; i < 1000; i++) {
		s = make(&b, 16, 0);
		if (!port_tx(b.port->txq[0], &s, 1)) {
			assert_true(b.chip->eics > 0);
			port_reap(b.port->txq[0]);
			assert_int_equal(port_tx(b.port->txq[0], &s, 1), 1);
		}
	}
	assert_int_equal(c->drops[PORT_DROP_TX_TOO_SHORT], 1001);
	box_down(&b);
}

/* --- offloads ------------------------------------------------------------------------------- */

static const uint8_t tcp4[] = {
	2,    0,    0, 0,  0,  1, 2, 0, 0,  0, 0,    2,    0x08, 0x00,       /* Ethernet */
	0x45, 0,    0, 40, 0,  0, 0, 0, 64, 6, 0xaa, 0xbb,                   /* IPv4 */
	10,   0,    0, 1,  10, 0, 0, 2,                                      /* addresses */
	0x12, 0x34, 0, 80, 0,  0, 0, 1, 0,  0, 0,    2,    0x50, 0x10, 1, 0, /* TCP */
	0x14, 0x1c, 0, 0,
};

static struct pk_slot make_tcp4(struct box *b, uint16_t len, uint16_t flags)
{
	struct pk_slot s = make(b, len, 0x5a);

	memcpy(pk_data(b->arena, &s), tcp4, sizeof(tcp4));
	s.flags = flags;
	return s;
}

static void test_vlan_context(void **state)
{
	struct pk_slot s;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	for (unsigned i = 0; i < 3; i++) {
		s = make(&b, 60, 1);
		s.flags = PK_VLAN;
		s.vlan = i < 2 ? 0x6123 : 0x0456;
		assert_int_equal(port_tx(b.port->txq[0], &s, 1), 1);
		assert_int_equal(fake_transmit(b.chip, 0, 1), 1);
		assert_true(b.chip->frame_cmd & IXGBE_TXD_VLE);
		assert_int_equal(b.chip->frame_ctx.ctx.vlan_macip >> 16, s.vlan);
		/* The chip keeps a context: the second frame needs none of its own. */
		assert_int_equal(b.chip->contexts_loaded, i < 2 ? 1 : 2);
	}
	assert_int_equal(port_reap(b.port->txq[0]), 3);
	assert_int_equal(b.port->txq[0]->ctr.bytes, 3 * 64);
	box_down(&b);
}

static void test_csum_context(void **state)
{
	struct pk_slot s;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	s = make_tcp4(&b, 60, PK_CSUM_PARTIAL);
	assert_int_equal(port_tx(b.port->txq[0], &s, 1), 1);
	assert_int_equal(fake_transmit(b.chip, 0, 1), 1);
	/* 7.2.3.2.3: IPLEN 20, MACLEN 14; DTYP 2, DEXT, TUCMD IPv4 and TCP; index 0, no MSS. */
	assert_int_equal(b.chip->frame_ctx.ctx.vlan_macip, 14 << 9 | 20);
	assert_int_equal(b.chip->frame_ctx.ctx.seq, 0);
	assert_int_equal(b.chip->frame_ctx.ctx.type, 0x20200C00);
	assert_int_equal(b.chip->frame_ctx.ctx.mss_l4, 0);
	/* TXSM, not IXSM; PAYLEN is the whole frame. */
	assert_int_equal(b.chip->frame_olinfo, 60 << 14 | 1 << 9);
	/* The field with the pseudo header's sum goes as it is. */
	assert_memory_equal(b.chip->frame, tcp4, sizeof(tcp4));
	assert_int_equal(port_reap(b.port->txq[0]), 1);
	box_down(&b);
}

static void test_tso_context(void **state)
{
	struct pk_slot s[3];
	uint32_t sum = 6 + 0x0a00 + 1 + 0x0a00 + 2;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	for (unsigned round = 0; round < 2; round++) {
		s[0] = make_tcp4(&b, 1800, PK_TSO | PK_CSUM_PARTIAL | PK_MORE);
		s[0].meta = 1448;
		s[1] = make(&b, 1800, 2);
		s[1].flags = PK_MORE;
		s[2] = make(&b, 1000, 3);
		assert_int_equal(port_tx(b.port->txq[0], s, 3), 3);
		assert_int_equal(fake_transmit(b.chip, 0, 1), 1);
		assert_int_equal(b.chip->frame_len, 4600);
		assert_int_equal(b.chip->frame_ctx.ctx.vlan_macip, 14 << 9 | 20);
		assert_int_equal(b.chip->frame_ctx.ctx.type, 0x20200C00);
		assert_int_equal(b.chip->frame_ctx.ctx.mss_l4, 1448u << 16 | 20 << 8 | 1 << 4);
		assert_true(b.chip->frame_cmd & IXGBE_TXD_TSE);
		/* PAYLEN without headers, IXSM and TXSM, index 1. */
		assert_int_equal(b.chip->frame_olinfo, (4600 - 54) << 14 | 3 << 8 | 1 << 4);
		assert_int_equal(b.chip->frame[24] | b.chip->frame[25], 0);
		assert_int_equal(b.chip->frame[50] << 8 | b.chip->frame[51], sum);
		assert_int_equal(port_reap(b.port->txq[0]), 1);
	}
	assert_int_equal(b.chip->contexts_loaded, 1);
	box_down(&b);
}

/* A burst of frames with and without offloads, one doorbell, right contexts. */
static void test_mixed_burst(void **state)
{
	struct pk_slot s[8];
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	for (unsigned i = 0; i < 8; i++)
		s[i] = make_tcp4(&b, 60, i % 2 ? PK_CSUM_PARTIAL : 0);
	assert_int_equal(port_tx(b.port->txq[0], s, 8), 8);
	assert_int_equal(b.chip->doorbells, 1);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(fake_transmit(b.chip, 0, 1), 1);
		assert_int_equal(b.chip->frame_olinfo, 60 << 14 | (i % 2) << 9);
	}
	assert_int_equal(in_flight(&b), 9);
	assert_int_equal(port_reap(b.port->txq[0]), 8);
	assert_int_equal(in_flight(&b), 0);
	box_down(&b);
}

/* --- receive -------------------------------------------------------------------------------- */

static void test_receive_and_refill(void **state)
{
	uint8_t frame[1500];
	struct pk_slot s[PK_BURST];
	unsigned got = 0;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	assert_int_equal(*fake_reg(b.chip, IXGBE_RDT(0)), 63);
	for (unsigned i = 0; i < 500; i++) {
		memset(frame, (int)i, sizeof(frame));
		assert_true(fake_receive(b.chip, 0, frame, 60 + i, 0, 0, 0, 0));
		if (i % 5 != 4)
			continue;
		assert_int_equal(port_rx(b.port->rxq[0], s, PK_BURST), 5);
		for (unsigned k = 0; k < 5; k++, got++) {
			assert_int_equal(s[k].len, 60 + got);
			assert_int_equal(s[k].flags, 0);
			assert_int_equal(pk_data(b.arena, &s[k])[59 + got], (uint8_t)got);
		}
		pk_free_slots(b.cache, s, 5);
	}
	assert_int_equal(b.port->rxq[0]->ctr.packets, 500);
	/* Nobody takes: the ring runs dry and the chip counts. */
	for (unsigned i = 0; i < 100; i++)
		fake_receive(b.chip, 0, frame, 60, 0, 0, 0, 0);
	assert_true(stat(&b, "rx_no_dma_resources") >= 37);
	b.port->ops->stop(b.port);
	b.port->stopped = true;
	assert_int_equal(b.port->rxq[0]->ctr.drops[PORT_DROP_RX_CLOSED] + b.dev->hw.no_dma[0], 100);
	box_down(&b);
}

static void test_receive_flags(void **state)
{
	uint8_t frame[60] = { 0 };
	struct pk_slot s[PK_BURST];
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	fake_receive(b.chip, 0, frame, 60, IXGBE_RXD_L4I, 1, 0x51ccc178, 0);
	fake_receive(b.chip, 0, frame, 60, IXGBE_RXD_L4I | IXGBE_RXD_ERR_TCPE, 0, 0, 0);
	fake_receive(b.chip, 0, frame, 60, IXGBE_RXD_VP, 0, 0, 0x2005);
	fake_receive(b.chip, 0, frame, 60, IXGBE_RXD_ERR_RXE, 0, 0, 0);
	assert_int_equal(port_rx(b.port->rxq[0], s, PK_BURST), 3);
	assert_int_equal(s[0].flags, PK_CSUM_OK | PK_HASH);
	assert_int_equal(s[0].meta, 0x51ccc178);
	assert_int_equal(s[1].flags, PK_CSUM_BAD);
	assert_int_equal(s[2].flags, PK_VLAN);
	assert_int_equal(s[2].vlan, 0x2005);
	assert_int_equal(stat(&b, "rx_csum_offload_errors"), 1);
	assert_int_equal(b.port->rxq[0]->ctr.drops[PORT_DROP_RX_MALFORMED], 1);
	pk_free_slots(b.cache, s, 3);
	box_down(&b);
}

static void test_receive_long_frames(void **state)
{
	static uint8_t frame[9018];
	struct pk_slot s[PK_BURST];
	struct box b;
	unsigned n;

	box_up(&b, 128, 64, (struct nic_ixgbe_config){ .mtu = 9000 });
	assert_true(*fake_reg(b.chip, IXGBE_HLREG0) & IXGBE_HLREG0_JUMBOEN);
	assert_int_equal(*fake_reg(b.chip, IXGBE_MAXFRS) >> 16, 9022);
	for (unsigned i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 7);
	for (unsigned round = 0; round < 60; round++) {
		assert_true(fake_receive(b.chip, 0, frame, 9018, IXGBE_RXD_L4I, 0, 0, 0));
		n = port_rx(b.port->rxq[0], s, PK_BURST);
		assert_int_equal(n, 5);
		assert_int_equal(pk_frame_slots(s, n), 5);
		assert_int_equal(pk_frame_bytes(s, n), 9018);
		assert_int_equal(s[0].flags, PK_MORE | PK_CSUM_OK);
		assert_int_equal(s[4].flags, 0);
		assert_int_equal(pk_data(b.arena, &s[4])[s[4].len - 1], frame[9017]);
		pk_free_slots(b.cache, s, n);
	}
	/* A frame whose end has not been written back yet is not touched. */
	assert_true(fake_receive(b.chip, 0, frame, 9018, 0, 0, 0, 0));
	{
		union ixgbe_rx_desc *ring = fake_ring(b.chip, IXGBE_RDBAL(0));
		union ixgbe_rx_desc *last = &ring[(b.chip->rhead[0] + 127) % 128];
		uint32_t status = last->wb.status;

		last->wb.status = 0;
		assert_int_equal(port_rx(b.port->rxq[0], s, PK_BURST), 0);
		last->wb.status = status;
		assert_int_equal(port_rx(b.port->rxq[0], s, PK_BURST), 5);
		pk_free_slots(b.cache, s, 5);
	}
	/* Nor one that does not fit the caller's array any more. */
	for (unsigned i = 0; i < 9; i++)
		assert_true(fake_receive(b.chip, 0, frame, 9018, 0, 0, 0, 0));
	assert_int_equal(port_rx(b.port->rxq[0], s, 42), 40);
	pk_free_slots(b.cache, s, 40);
	assert_int_equal(port_rx(b.port->rxq[0], s, 42), 5);
	pk_free_slots(b.cache, s, 5);
	box_down(&b);
}

static void test_pool_runs_dry(void **state)
{
	static uint32_t held[20000];
	uint8_t frame[60] = { 0 };
	struct pk_slot s[PK_BURST];
	unsigned n_held = 0, got = 0, n;
	struct box b;

	box_up(&b, 256, 64, (struct nic_ixgbe_config){ 0 });
	while (pk_alloc(b.cache, &held[n_held], 1))
		n_held++;
	for (unsigned i = 0; i < 400; i++)
		fake_receive(b.chip, 0, frame, 60, 0, 0, 0, 0);
	while ((n = port_rx(b.port->rxq[0], s, PK_BURST))) {
		for (unsigned i = 0; i < n; i++)
			held[n_held++] = s[i].buf;
		got += n;
	}
	assert_int_equal(got, 255);
	assert_true(stat(&b, "alloc_rx_buff_failed") > 0);
	/* The watchdog sees a ring without buffers as work that waits. */
	assert_true(ixgbe_rx_pending(b.dev->rxq[0]));
	for (unsigned i = 0; i < n_held; i++)
		pk_free(b.cache, &held[i], 1);
	/* The next look refills. */
	assert_int_equal(port_rx(b.port->rxq[0], s, PK_BURST), 0);
	assert_true(fake_receive(b.chip, 0, frame, 60, 0, 0, 0, 0));
	assert_int_equal(port_rx(b.port->rxq[0], s, PK_BURST), 1);
	pk_free_slots(b.cache, s, 1);
	box_down(&b);
}

/* --- set-up --------------------------------------------------------------------------------- */

static void test_registers_after_start(void **state)
{
	struct box b;
	struct fake *f;

	box_init(&b);
	f = b.chip;
	assert_int_equal(box_open(&b, 4, 256, 512,
				  &(struct nic_ixgbe_config){ .rx_usecs = 30,
							      .no_watchdog = true,
							      .promiscuous = true }),
			 0);
	assert_int_equal(box_start(&b), 0);
	for (unsigned i = 0; i < 4; i++) {
		/* PTHRESH 32, HTHRESH 1, WTHRESH 8. */
		assert_int_equal(*fake_reg(f, IXGBE_TXDCTL(i)), 0x02080120);
		assert_int_equal(*fake_reg(f, IXGBE_TDLEN(i)), 512 * 16);
		assert_int_equal(*fake_reg(f, IXGBE_RDLEN(i)), 256 * 16);
		assert_int_equal(*fake_reg(f, IXGBE_RDT(i)), 255);
		/* 2 KB buffers, one-buffer descriptors, drop when empty. */
		assert_int_equal(*fake_reg(f, IXGBE_SRRCTL(i)), 0x12000002);
		assert_int_equal(*fake_reg(f, IXGBE_RXDCTL(i)), 0x42000000);
		/* 30 us: 120 quarters, which are 30.72. */
		assert_int_equal(*fake_reg(f, IXGBE_EITR(i)), 0x80000078);
		assert_int_equal(*fake_reg(f, IXGBE_DCA_RXCTRL(i)), 0);
	}
	/* Written back in batches: only an interval's timer flushes them, so 0 is refused. */
	assert_int_equal(b.port->ops->set_param(b.port, "rx-usecs", 0, &b.err), -EBUSY);
	b.port->ops->spacing(b.port->rxq[0], 0);
	assert_int_equal(*fake_reg(f, IXGBE_EITR(0)), 0x80000008);
	assert_int_equal(*fake_reg(f, IXGBE_IVAR(0)), 0x81818080);
	assert_int_equal(*fake_reg(f, IXGBE_IVAR(1)), 0x83838282);
	assert_int_equal(*fake_reg(f, IXGBE_IVAR_MISC), 0x8400);
	assert_int_equal(*fake_reg(f, IXGBE_EIAC), 0xf);
	assert_int_equal(*fake_reg(f, IXGBE_EIAM_EX(0)), 0xf);
	assert_int_equal(*fake_reg(f, IXGBE_GPIE), 0xC0000030);
	assert_int_equal(*fake_reg(f, IXGBE_RETA(0)), 0x03020100);
	assert_int_equal(*fake_reg(f, IXGBE_RETA(31)), 0x03020100);
	assert_int_equal(*fake_reg(f, IXGBE_RSSRK(0)), 0xda565a6d);
	assert_int_equal(*fake_reg(f, IXGBE_RSSRK(9)), 0xfa01acbe);
	assert_int_equal(*fake_reg(f, IXGBE_MRQC) & 0xf, 1);
	assert_int_equal(*fake_reg(f, IXGBE_FCTRL), 0x700);
	assert_int_equal(*fake_reg(f, IXGBE_RQSMR(0)), 0x03020100);
	assert_memory_equal(b.port->mac, "\x00\x11\x22\x33\x44\x55", 6);
	assert_int_equal(b.port->link_bps, 10000000000ull);
	assert_true(b.port->ops->link_up(b.port));
	box_down(&b);
}

static void test_moderation_units(void **state)
{
	static const struct {
		uint32_t usecs, eitr;
	} rows[] = {
		{ 10, 40 }, { 20, 80 }, { 30, 120 }, { 40, 160 },     { 50, 200 },
		{ 0, 0 },   { 1, 200 }, { 2, 8 },    { 1022, 0xFF8 }, { 11, 40 },
	};
	struct ho_err err;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	/* Without moderation descriptors are written back one by one. */
	assert_int_equal(*fake_reg(b.chip, IXGBE_TXDCTL(0)), 0x02010120);
	for (unsigned i = 0; i < HO_ARRAY_LEN(rows); i++) {
		assert_int_equal(b.port->ops->set_param(b.port, "rx-usecs", rows[i].usecs, &err),
				 0);
		assert_int_equal(*fake_reg(b.chip, IXGBE_EITR(0)), 0x80000000 | rows[i].eitr);
	}
	/* Where the 2.6 rule ends: 490 quarters, 124.928 us. */
	b.port->ops->spacing(b.port->rxq[0], 490 * 250);
	assert_int_equal(*fake_reg(b.chip, IXGBE_EITR(0)), 0x80000000 | 488);
	assert_int_equal(b.port->ops->set_param(b.port, "rx-usecs", 1023, &err), -EINVAL);
	assert_int_equal(b.port->ops->set_param(b.port, "tx-usecs", 10, &err), -EOPNOTSUPP);
	assert_int_equal(b.port->ops->set_param(b.port, "rx", 128, &err), -EBUSY);
	box_down(&b);
}

static void test_open_refuses(void **state)
{
	struct box b;

	box_init(&b);
	assert_int_equal(box_open(&b, 17, 0, 0, NULL), -EINVAL);
	assert_int_equal(box_open(&b, 1, 63, 0, NULL), -EINVAL);
	assert_int_equal(box_open(&b, 1, 68, 0, NULL), -EINVAL);
	assert_int_equal(box_open(&b, 1, 0, 4104, NULL), -EINVAL);
	assert_int_equal(box_open(&b, 1, 0, 0, &(struct nic_ixgbe_config){ .mtu = 16000 }),
			 -EINVAL);
	assert_int_equal(box_open(&b, 1, 0, 0, &(struct nic_ixgbe_config){ .rx_usecs = 2000 }),
			 -EINVAL);
	b.chip->vectors = 4;
	assert_int_equal(box_open(&b, 4, 0, 0, NULL), -EINVAL);
	b.chip->vectors = 64;
	b.chip->bus.device_id = 0x100e;
	assert_int_equal(box_open(&b, 1, 0, 0, NULL), -ENOTSUP);
	b.chip->bus.device_id = IXGBE_DEV_X540T;
	/* None of this touched the chip. */
	assert_int_equal(b.chip->writes, 0);
	b.chip->fail_map = true;
	assert_int_equal(box_open(&b, 1, 0, 0, NULL), -EPERM);
	b.chip->fail_map = false;
	b.chip->stuck_reset = true;
	assert_int_equal(box_open(&b, 1, 0, 0, NULL), -EIO);
	assert_non_null(strstr(b.err.text, "reset"));
	b.chip->stuck_reset = false;
	b.port = NULL;
	box_down(&b);
}

/* Each allocation in start fails once: everything is unwound, and the port can start afterwards. */
static void test_start_unwinds(void **state)
{
	struct box b;

	box_init(&b);
	assert_int_equal(box_open(&b, 2, 64, 64, &(struct nic_ixgbe_config){ .no_watchdog = true }),
			 0);
	for (unsigned i = 1; i <= 4; i++) {
		b.chip->allocs = 0;
		b.chip->fail_alloc_at = i;
		assert_int_equal(box_start(&b), -ENOMEM);
		assert_int_equal(b.chip->live_dma, 0);
		assert_int_equal(pk_arena_missing(b.arena), 0);
	}
	b.chip->fail_alloc_at = 0;
	b.chip->stuck_queue = true;
	assert_int_equal(box_start(&b), -EIO);
	assert_int_equal(b.chip->live_dma, 0);
	assert_int_equal(pk_arena_missing(b.arena), 0);
	b.chip->stuck_queue = false;
	assert_int_equal(box_start(&b), 0);
	box_down(&b);
}

/* --- watchdog ------------------------------------------------------------------------------- */

static void test_lost_interrupt(void **state)
{
	uint8_t frame[60] = { 0 };
	struct pk_slot s[PK_BURST];
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	assert_false(b.port->ops->arm(b.port->rxq[0]));
	fake_receive(b.chip, 0, frame, 60, 0, 0, 0, 0);
	ixgbe_wd_look(b.dev);
	assert_int_equal(b.chip->eics, 0);
	ixgbe_wd_look(b.dev);
	assert_int_equal(b.chip->eics, 1);
	assert_int_equal(*fake_reg(b.chip, IXGBE_EICS_EX(0)), 1);
	assert_int_equal(b.chip->unmasks, 2);
	assert_int_equal(stat(&b, "irq_rearmed"), 1);
	/* Progress, and then nothing to do: quiet. */
	assert_int_equal(port_rx(b.port->rxq[0], s, PK_BURST), 1);
	pk_free_slots(b.cache, s, 1);
	for (unsigned i = 0; i < 5; i++)
		ixgbe_wd_look(b.dev);
	assert_int_equal(b.chip->eics, 1);
	/* Frames sent and written back, never cleaned: the same. */
	assert_int_equal(send(&b, 3, 60), 3);
	fake_transmit(b.chip, 0, 3);
	ixgbe_wd_look(b.dev);
	ixgbe_wd_look(b.dev);
	assert_int_equal(b.chip->eics, 2);
	assert_int_equal(stat(&b, "tx_timeout_count"), 0);
	box_down(&b);
}

static void test_hang_and_reset(void **state)
{
	uint8_t frame[60] = { 0 };
	struct pk_slot s[PK_BURST];
	unsigned resets;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ .rx_usecs = 20 });
	b.port->ops->arm(b.port->rxq[0]);
	resets = b.chip->resets;
	assert_int_equal(send(&b, 9, 60), 9);
	s[0] = make(&b, 60, 0);
	s[0].flags = PK_VLAN;
	assert_int_equal(port_tx(b.port->txq[0], s, 1), 1);
	assert_int_equal(fake_transmit(b.chip, 0, 3), 3);
	assert_int_equal(port_reap(b.port->txq[0]), 3);
	for (unsigned i = 0; i < 5; i++)
		fake_receive(b.chip, 0, frame, 60, 0, 0, 0, 0);
	assert_int_equal(port_rx(b.port->rxq[0], s, 40), 5);
	pk_free_slots(b.cache, s, 5);
	for (unsigned i = 0; i < 4; i++)
		fake_receive(b.chip, 0, frame, 60, 0, 0, 0, 0);
	ixgbe_wd_look(b.dev);
	assert_int_equal(b.chip->resets, resets);
	ixgbe_wd_look(b.dev);
	assert_true(b.chip->resets > resets);
	assert_int_equal(stat(&b, "tx_timeout_count"), 1);
	assert_int_equal(stat(&b, "hw_resets"), 1);
	/* Nothing is sent until the old ring has been given back. */
	assert_true(port_tx_stopped(b.port->txq[0]));
	port_reap(b.port->txq[0]);
	assert_false(port_tx_stopped(b.port->txq[0]));
	assert_int_equal(b.port->txq[0]->ctr.drops[PORT_DROP_TX_RESET], 7);
	assert_int_equal(b.port->rxq[0]->ctr.drops[PORT_DROP_RX_RESET], 4);
	assert_int_equal(port_tx_in_flight(b.port->txq[0]), 0);
	/* And it works as before, moderation included; the chip has forgotten its contexts. */
	s[0] = make(&b, 60, 0);
	s[0].flags = PK_VLAN;
	assert_int_equal(port_tx(b.port->txq[0], s, 1), 1);
	assert_int_equal(fake_transmit(b.chip, 0, 1), 1);
	assert_int_equal(b.chip->contexts_loaded, 1);
	assert_int_equal(port_reap(b.port->txq[0]), 1);
	assert_int_equal(*fake_reg(b.chip, IXGBE_EITR(0)), 0x80000050);
	assert_int_equal(send(&b, 10, 60), 10);
	assert_int_equal(fake_transmit(b.chip, 0, 10), 10);
	assert_int_equal(port_reap(b.port->txq[0]), 10);
	for (unsigned i = 0; i < 40; i++)
		assert_true(fake_receive(b.chip, 0, frame, 60, 0, 0, 0, 0));
	assert_int_equal(port_rx(b.port->rxq[0], s, PK_BURST), 40);
	pk_free_slots(b.cache, s, 40);
	/* A link that is down is no hang. */
	*fake_reg(b.chip, IXGBE_LINKS) = 0;
	assert_int_equal(send(&b, 10, 60), 10);
	for (unsigned i = 0; i < 4; i++)
		ixgbe_wd_look(b.dev);
	assert_false(b.port->ops->link_up(b.port));
	assert_int_equal(stat(&b, "tx_timeout_count"), 1);
	box_down(&b);
}

/* A reset that fails leaves a dead port, which still closes cleanly. */
static void test_reset_fails(void **state)
{
	struct pk_slot s;
	struct box b;

	box_up(&b, 64, 64, (struct nic_ixgbe_config){ 0 });
	assert_int_equal(send(&b, 10, 60), 10);
	assert_int_equal(fake_transmit(b.chip, 0, 3), 3);
	ixgbe_wd_look(b.dev);
	b.chip->stuck_reset = true;
	ixgbe_wd_look(b.dev);
	assert_false(b.port->ops->link_up(b.port));
	s = make(&b, 60, 0);
	assert_int_equal(port_tx(b.port->txq[0], &s, 1), 0);
	assert_int_equal(port_rx(b.port->rxq[0], &s, 0), 0);
	pk_free(b.cache, &s.buf, 1);
	ixgbe_wd_look(b.dev);
	port_stop(b.port);
	/* Three had been sent before. */
	assert_int_equal(b.port->txq[0]->ctr.packets, 3);
	assert_int_equal(b.port->txq[0]->ctr.drops[PORT_DROP_TX_CLOSED], 7);
	box_down(&b);
}

static void test_link_interrupt(void **state)
{
	struct box b;
	uint64_t deadline;

	box_init(&b);
	assert_int_equal(box_open(&b, 1, 64, 64, &(struct nic_ixgbe_config){ .watchdog_cpu = -1 }),
			 0);
	assert_int_equal(box_start(&b), 0);
	assert_true(b.port->ops->link_up(b.port));
	*fake_reg(b.chip, IXGBE_LINKS) = 0;
	*fake_reg(b.chip, IXGBE_EICR) = IXGBE_EICR_LSC;
	rt_event_signal(b.rt, b.chip->event[1]);
	deadline = rt_now_ns(b.rt) + 5000000000ull;
	while (b.port->ops->link_up(b.port) && rt_now_ns(b.rt) < deadline)
		rt_relax(b.rt);
	assert_false(b.port->ops->link_up(b.port));
	box_down(&b);
}

/* --- properties ----------------------------------------------------------------------------- */

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static unsigned random_frame(struct box *b, uint64_t *seed, struct pk_slot *s)
{
	unsigned n = rnd(seed) % 4 ? 1 : 1 + (unsigned)(rnd(seed) % 8);

	for (unsigned i = 0; i < n; i++) {
		s[i] = make(b, (uint16_t)(60 + rnd(seed) % 1700), (uint8_t)i);
		s[i].flags = i + 1 < n ? PK_MORE : 0;
	}
	switch (rnd(seed) % 8) {
	case 0:
		s[0].flags |= PK_VLAN;
		s[0].vlan = (uint16_t)(rnd(seed) % 3);
		break;
	case 1:
		memcpy(pk_data(b->arena, &s[0]), tcp4, sizeof(tcp4));
		s[0].flags |= PK_CSUM_PARTIAL;
		break;
	case 2:
		memcpy(pk_data(b->arena, &s[0]), tcp4, sizeof(tcp4));
		s[0].flags |= PK_CSUM_PARTIAL | PK_TSO;
		s[0].meta = 536 + (uint32_t)(rnd(seed) % 900);
		break;
	case 3:
		s[0].flags |= rnd(seed) % 8 ? 0 : PK_CSUM_PARTIAL; /* cannot be sent */
		break;
	}
	return n;
}

/*
 * Any interleaving of sends, chip work, cleaning, arrivals, receives and resets keeps every buffer
 * accounted for, every counter in balance, and the ring's indices within the ring.
 */
static void run_random(uint64_t seed)
{
	static uint8_t frame[15000];
	struct nic_ixgbe_config nc = { .mtu = 15000, .rx_usecs = (uint32_t)(rnd(&seed) % 60) };
	unsigned rx = 64 + 8 * (unsigned)(rnd(&seed) % 30),
		 tx = 64 + 8 * (unsigned)(rnd(&seed) % 30);
	uint64_t arrived = 0, no_room = 0, received = 0, rx_lost;
	struct box b;
	struct port_txq *q;

	box_up(&b, rx, tx, nc);
	q = b.port->txq[0];
	for (unsigned step = 0; step < 3000; step++) {
		struct pk_slot s[PK_BURST];
		struct port_work done = { 0 };
		unsigned n = 0, took;

		switch (rnd(&seed) % 6) {
		case 0:
		case 1:
			while (n + 8 <= PK_BURST && rnd(&seed) % 8)
				n += random_frame(&b, &seed, s + n);
			took = n ? port_tx(q, s, n) : 0;
			assert_true(took <= n && (took == 0 || !(s[took - 1].flags & PK_MORE)));
			if (took < n)
				pk_free_slots(b.cache, s + took, n - took);
			break;
		case 2:
			fake_transmit(b.chip, 0, (unsigned)(rnd(&seed) % 40));
			break;
		case 3:
			b.port->ops->clean(q, 1 + (unsigned)(rnd(&seed) % 64), &done);
			break;
		case 4:
			for (unsigned i = (unsigned)(rnd(&seed) % 12); i > 0; i--) {
				uint32_t len =
					rnd(&seed) % 4 ? 60 : 60 + (uint32_t)(rnd(&seed) % 14900);

				if (fake_receive(b.chip, 0, frame, len, 0, 0, 0, 0))
					arrived++;
				else
					no_room++;
			}
			break;
		case 5:
			n = port_rx(b.port->rxq[0], s, 40 + (unsigned)(rnd(&seed) % 24));
			for (unsigned i = 0; i < n; i += pk_frame_slots(s + i, n - i))
				received++;
			for (unsigned i = 0; i < n; i++)
				pk_free(b.cache, &s[i].buf, 1);
			break;
		}
		assert_true(in_flight(&b) <= tx - 1);
		assert_true(port_tx_in_flight(q) <= in_flight(&b));
		assert_true(b.dev->rxq[0]->posted <= rx - 1);
		/* A frame is never cleaned before the chip has sent it. */
		assert_true(q->ctr.packets <= b.chip->sent[0]);
	}
	if (rnd(&seed) % 2) {
		/* Drain: what was accepted is sent or a named drop. */
		fake_transmit(b.chip, 0, UINT32_MAX);
		port_reap(q);
		assert_int_equal(port_tx_in_flight(q), 0);
		assert_int_equal(q->ctr.packets, b.chip->sent[0]);
	}
	ixgbe_hw_stats(b.dev);
	assert_int_equal(b.dev->hw.no_dma[0], no_room);
	port_stop(b.port);
	assert_int_equal(port_tx_in_flight(q), 0);
	rx_lost = b.port->rxq[0]->ctr.drops[PORT_DROP_RX_CLOSED];
	assert_int_equal(b.port->rxq[0]->ctr.packets, received);
	assert_int_equal(arrived, received + rx_lost);
	box_down(&b);
}

static void test_random(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		run_random(seed * 0x9e3779b97f4a7c15ull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stops_at_ring_minus_21),
		cmocka_unit_test(test_wakes_at_42),
		cmocka_unit_test(test_ring_wraps),
		cmocka_unit_test(test_burst_is_one_doorbell),
		cmocka_unit_test(test_clean_limit),
		cmocka_unit_test(test_frames_of_many_slots),
		cmocka_unit_test(test_large_frame_waits_for_room),
		cmocka_unit_test(test_room_for_the_context),
		cmocka_unit_test(test_keep),
		cmocka_unit_test(test_refuses_what_cannot_be_sent),
		cmocka_unit_test(test_vlan_context),
		cmocka_unit_test(test_csum_context),
		cmocka_unit_test(test_tso_context),
		cmocka_unit_test(test_mixed_burst),
		cmocka_unit_test(test_receive_and_refill),
		cmocka_unit_test(test_receive_flags),
		cmocka_unit_test(test_receive_long_frames),
		cmocka_unit_test(test_pool_runs_dry),
		cmocka_unit_test(test_registers_after_start),
		cmocka_unit_test(test_moderation_units),
		cmocka_unit_test(test_open_refuses),
		cmocka_unit_test(test_start_unwinds),
		cmocka_unit_test(test_lost_interrupt),
		cmocka_unit_test(test_hang_and_reset),
		cmocka_unit_test(test_reset_fails),
		cmocka_unit_test(test_link_interrupt),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
