/* SPDX-License-Identifier: BSD-2-Clause */
/* The 82599's transmit side and its interrupts, by registers. */
#include "lab_82599_rig.h"

#include "lab/fault.h"

static void ring_tail(struct rig *r)
{
	wr(r, txq(0, 0x18), r->tail);
}

static void fill(struct rig *r, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		r->mem[TX_DATA + i] = (uint8_t)(i * 7 + 1);
	memcpy(r->mem + TX_DATA, "\x02\0\0\0\0\x09\x02\0\0\0\0\x01\x88\xb5", 14);
}

static void frames_leave_in_order(void **state)
{
	struct rig *r = rig_new();

	rig_tx(r, 512, 0);
	fill(r, 200);
	for (uint32_t i = 0; i < 300; i++) {
		r->mem[TX_DATA + i * 256 + 20] = (uint8_t)i;
		tx_put(r, i * 256, 60 + i % 100, 60 + i % 100, EOP | RS, 0);
	}
	ring_tail(r);
	rig_run(r, 1000 * US);
	assert_int_equal(r->frames, 300);
	for (uint32_t i = 0; i < 300; i++) {
		assert_int_equal(r->frame[i].bytes, 60 + i % 100);
		assert_int_equal(r->frame[i].data[20], (uint8_t)i);
		assert_int_equal(tx_status(r, i), 1);
	}
	assert_int_equal(tx_status(r, 300), 0);
	assert_int_equal(rd(r, txq(0, 0x10)), 300); /* TDH */
	assert_int_equal(rd(r, 0x4080), 300);       /* GPTC, */
	assert_int_equal(rd(r, 0x4080), 0);         /* cleared by reading */
	assert_int_equal(rd(r, 0x4090), 300 * 64 + 3 * 4950);
	assert_int_equal(rd(r, 0x4094), 0);
	assert_int_equal(rd(r, 0x4090), 0);
	rig_free(r);
}

static void back_to_back_at_line_rate(void **state)
{
	struct rig *r = rig_new();

	rig_tx(r, 512, 8);
	fill(r, 60);
	for (unsigned i = 0; i < 400; i++)
		tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 1000 * US);
	assert_int_equal(r->frames, 400);
	for (unsigned i = 40; i < 400; i++)
		assert_int_equal(r->frame[i].at - r->frame[i - 1].at, 67200);
	rig_free(r);
}

static void the_ring_wraps(void **state)
{
	struct rig *r = rig_new();
	unsigned sent = 0;

	rig_tx(r, 64, 8);
	fill(r, 60);
	while (sent < 1000) {
		for (unsigned i = 0; i < 24; i++, sent++) {
			r->tail %= 64;
			tx_put(r, 0, 60, 60, EOP | RS, 0);
		}
		r->tail %= 64;
		ring_tail(r);
		rig_run(r, 10 * US);
		assert_int_equal(rd(r, txq(0, 0x10)), sent % 64);
	}
	assert_int_equal(r->frames, sent);
	rig_free(r);
}

static void descriptors_behind_the_tail_stay_untouched(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;

	rig_tx(r, 512, 0);
	fill(r, 60);
	for (unsigned i = 0; i < 100; i++)
		tx_put(r, 0, 60, 60, EOP | RS, 0);
	wr(r, txq(0, 0x18), 50);
	rig_run(r, 100 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(r->frames, 50);
	assert_int_equal(n.tx_desc_fetched, 50);
	assert_int_equal(tx_status(r, 49), 1);
	assert_int_equal(tx_status(r, 50), 0);
	rig_free(r);
}

static void wthresh_writes_back_in_batches(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;

	rig_tx(r, 512, 8); /* no vector, so no timer: an incomplete batch stays */
	fill(r, 60);
	for (unsigned i = 0; i < 30; i++)
		tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 100 * US);
	assert_int_equal(r->frames, 30);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.tx_desc_done, 24);
	assert_int_equal(n.tx_writebacks, 3);
	assert_int_equal(tx_status(r, 23), 1);
	assert_int_equal(tx_status(r, 24), 0);
	wr(r, txq(0, 0x28), 1u << 26 | 1u << 25 | 8u << 16 | 1u << 8 | 32); /* SWFLSH */
	rig_run(r, 10 * US);
	assert_int_equal(tx_status(r, 29), 1);
	rig_free(r);
}

static void only_rs_is_written_back_without_wthresh(void **state)
{
	struct rig *r = rig_new();

	rig_tx(r, 512, 0);
	fill(r, 60);
	for (unsigned i = 0; i < 64; i++)
		tx_put(r, 0, 60, 60, EOP | (i % 16 == 15 ? RS : 0), 0);
	ring_tail(r);
	rig_run(r, 100 * US);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(tx_status(r, i), i % 16 == 15);
	assert_int_equal(rd(r, txq(0, 0x10)), 64);
	/* A queue without any RS goes on all the same. */
	for (unsigned i = 0; i < 200; i++)
		tx_put(r, 0, 60, 60, EOP, 0);
	ring_tail(r);
	rig_run(r, 100 * US);
	assert_int_equal(r->frames, 264);
	rig_free(r);
}

static void the_head_goes_to_memory(void **state)
{
	struct rig *r = rig_new();
	uint32_t head;

	wr(r, txq(0, 0x38), (uint32_t)(r->iova + HEAD_WB) | 1);
	wr(r, txq(0, 0x3C), (uint32_t)((r->iova + HEAD_WB) >> 32));
	rig_tx(r, 512, 0);
	fill(r, 60);
	for (unsigned i = 0; i < 10; i++)
		tx_put(r, 0, 60, 60, EOP | (i == 6 ? RS : 0), 0);
	ring_tail(r);
	rig_run(r, 100 * US);
	memcpy(&head, r->mem + HEAD_WB, 4);
	assert_int_equal(head, 7);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(tx_status(r, i), 0);
	rig_free(r);
}

/* mechanisms of EITR: T = (value & 0xff8) x 256 ns */
static void eitr_spaces_interrupts(void **state)
{
	static const struct {
		unsigned usecs;
		sim_ps interval;
	} rows[] = {
		{ 10, 10240 * NS }, { 20, 20480 * NS }, { 30, 30720 * NS },
		{ 40, 40960 * NS }, { 50, 51200 * NS }, { 122, 124928 * NS },
	};

	for (unsigned row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct rig *r = rig_new();

		rig_irq(r, 0, 1, rows[row].usecs << 2);
		rig_tx(r, 4096, 8);
		fill(r, 60);
		for (unsigned i = 0; i < 4000; i++)
			tx_put(r, 0, 60, 60, EOP | RS, 0);
		rig_run(r, 200 * US); /* the last interrupt is long ago */
		ring_tail(r);
		rig_run(r, 400 * US);
		assert_true(r->irqs > 2);
		/* At once with the first batch: not an interval after it. */
		for (unsigned i = 0; i < r->irqs && i < 6; i++)
			assert_int_equal(r->irq[i].vector, 1);
		for (unsigned i = 1; i < r->irqs && r->irq[i].at < r->frame[3000].at; i++) {
			/* Messages queue behind other traffic on the link, but that does not
			 * add up. */
			sim_ps want = r->irq[0].at + i * rows[row].interval;

			assert_in_range(r->irq[i].at, want - 250 * NS, want + 250 * NS);
		}
		rig_free(r);
	}
}

static void spacing_is_exact_on_an_idle_link(void **state)
{
	struct rig *r = rig_new();

	rig_irq(r, 0, 1, 40);
	rig_run(r, 100 * US);
	for (unsigned i = 0; i < 100; i++) {
		wr(r, 0x808, 2); /* EICS */
		rig_run(r, 1 * US);
	}
	rig_run(r, 100 * US);
	/* 100 causes in about 101 us: the first at once, then one in 10.24 us */
	assert_int_equal(r->irqs, 11);
	for (unsigned i = 1; i < r->irqs; i++)
		assert_int_equal(r->irq[i].at - r->irq[i - 1].at, 10240 * NS);
	rig_free(r);
}

static void a_late_cause_fires_at_once(void **state)
{
	struct rig *r = rig_new();
	sim_ps at;

	rig_irq(r, 0, 1, 40);
	rig_run(r, 50 * US);
	for (unsigned i = 0; i < 5; i++) {
		at = sim_now(r->sim);
		wr(r, 0x808, 2);
		rig_run(r, 20 * US);
		assert_int_equal(r->irqs, i + 1);
		/* 157 ns there, 177 ns back */
		assert_in_range(r->irq[i].at - at, 330 * NS, 345 * NS);
	}
	rig_free(r);
}

static void an_open_batch_goes_with_the_interval(void **state)
{
	struct rig *r = rig_new();
	sim_ps first;

	rig_irq(r, 0, 1, 40);
	rig_tx(r, 512, 8);
	fill(r, 60);
	for (unsigned i = 0; i < 11; i++)
		tx_put(r, 0, 60, 60, EOP | RS, 0);
	rig_run(r, 100 * US);
	ring_tail(r);
	rig_run(r, 5 * US);
	assert_int_equal(r->irqs, 1);
	assert_int_equal(tx_status(r, 7), 1);
	assert_int_equal(tx_status(r, 8), 0);
	first = r->irq[0].at;
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 2);
	/* One write-back of 3 descriptors is in front of the second message, one of 8 was in front
	 * of the first. */
	assert_in_range(r->irq[1].at - first, 10220 * NS, 10260 * NS);
	for (unsigned i = 8; i < 11; i++)
		assert_int_equal(tx_status(r, i), 1);
	rig_free(r);
}

static void the_interrupt_announces_what_is_flushed(void **state)
{
	struct rig *r = rig_new();

	/* 235 frames: 29 batches and 3 more. At the end of the interval all of them are there. */
	rig_irq(r, 0, 1, 488);
	rig_tx(r, 256, 8);
	fill(r, 60);
	for (unsigned i = 0; i < 235; i++)
		tx_put(r, 0, 60, 60, EOP | RS, 0);
	rig_run(r, 200 * US);
	ring_tail(r);
	while (r->irqs < 2)
		rig_run(r, 1 * NS);
	for (unsigned i = 0; i < 235; i++)
		assert_int_equal(tx_status(r, i), 1);
	assert_in_range(r->irq[1].at - r->irq[0].at, 124900 * NS, 124950 * NS);
	rig_run(r, 300 * US);
	assert_int_equal(r->irqs, 2);
	rig_free(r);
}

/*
 * Several queues on one vector: the message that ends an interval stands behind what all of them
 * have done by then, whichever of them is looked at first.
 */
static void the_interrupt_announces_all_its_queues(void **state)
{
	enum { QUEUES = 5 };
	/* Turns: which queue's batch begins to wait first. */
	for (unsigned turn = 0; turn < QUEUES; turn++) {
		struct rig *r = rig_new();
		sim_ps last;

		rig_irq(r, 0, 1, 40);
		wr(r, 0x4A80, 1);
		for (unsigned q = 0; q < QUEUES; q += 2)
			wr(r, 0x900 + q / 2 * 4, 0x81008100); /* transmit to vector 1 */
		for (unsigned q = 0; q < QUEUES; q++) {
			wr(r, txq(q, 0x00), (uint32_t)(r->iova + TX_BASE + q * 0x1000));
			wr(r, txq(q, 0x04), (uint32_t)((r->iova + TX_BASE) >> 32));
			wr(r, txq(q, 0x08), 64 * 16);
			wr(r, txq(q, 0x28), 1u << 25 | 8 << 16 | 1u << 8 | 32);
		}
		fill(r, 60);
		for (unsigned q = 0; q < QUEUES; q++)
			for (unsigned i = 0; i < 11; i++)
				put_desc(r, TX_BASE + q * 0x1000, i, r->iova + TX_DATA,
					 60 | 3u << 20 | DEXT | IFCS | EOP | RS, 60 << 14);
		rig_run(r, 100 * US);
		for (unsigned i = 0; i < QUEUES; i++)
			wr(r, txq((turn + i) % QUEUES, 0x18), 11);
		while (r->irqs < 2)
			rig_run(r, 1 * NS);
		/* 3 of each queue were waiting for a batch to be full. */
		for (unsigned q = 0; q < QUEUES; q++)
			for (unsigned i = 0; i < 11; i++)
				assert_int_equal(tx_status(r, q * 0x100 + i), 1);
		assert_in_range(r->irq[1].at - r->irq[0].at, 10200 * NS, 10300 * NS);
		last = r->irq[1].at;
		rig_run(r, 100 * US);
		assert_int_equal(r->irqs, 2);
		assert_int_equal(r->irq[1].at, last);
		rig_free(r);
	}
}

static void masked_causes_stay(void **state)
{
	struct rig *r = rig_new();

	rig_irq(r, 0, 1, 0);
	wr(r, 0x888, 2); /* EIMC */
	wr(r, 0x808, 2);
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 0);
	wr(r, 0x880, 2); /* EIMS: comes now, and EIAC clears it */
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 1);
	wr(r, 0x880, 2);
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 1);
	/* Without EIAC the bit stays for software, which writes 1 to clear it. */
	wr(r, 0x888, 3);
	wr(r, 0x810, 0);
	wr(r, 0x808, 2);
	rig_run(r, 20 * US);
	assert_int_equal(rd(r, 0x800) & 0xffff, 2);
	assert_int_equal(rd(r, 0x800), 2); /* OCD: reading leaves the queues' bits */
	wr(r, 0x800, 2);
	assert_int_equal(rd(r, 0x800), 0);
	wr(r, 0x880, 2);
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 1);
	rig_free(r);
}

static void auto_mask_waits_for_software(void **state)
{
	struct rig *r = rig_new();

	rig_irq(r, 0, 1, 40);
	wr(r, 0x898, 1u << 4 | 1u << 5 | 1u << 30); /* EIAME */
	wr(r, 0x890, 2);
	for (unsigned i = 0; i < 10; i++) {
		wr(r, 0x808, 2);
		rig_run(r, 20 * US);
	}
	assert_int_equal(r->irqs, 1);
	assert_int_equal(rd(r, 0x880) & 3, 1);
	wr(r, 0x880, 2);
	rig_run(r, 1 * US);
	assert_int_equal(r->irqs, 2);
	rig_free(r);
}

static void high_vectors_work_by_the_extended_registers(void **state)
{
	struct rig *r = rig_new();

	wr(r, 0x898, 1u << 4);
	wr(r, 0x900, (0x80 | 40u) << 8);
	wr(r, 0x12300 + 4 * (40 - 24), 40);
	rig_tx(r, 64, 0);
	fill(r, 60);
	tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 0);
	wr(r, 0xAA4, 1u << 8);
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 1);
	assert_int_equal(r->irq[0].vector, 40);
	rig_free(r);
}

static void the_link_interrupts(void **state)
{
	struct rig *r = rig_new();

	wr(r, 0x898, 1u << 4 | 1u << 5);
	wr(r, 0xA00, (0x80 | 7u) << 8);
	rd(r, 0x800); /* the link that came after the reset */
	wr(r, 0x880, 1u << 20);
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 0);
	lab_wire_set_link(r->wire, false);
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 1);
	assert_int_equal(r->irq[0].vector, 7);
	assert_int_equal(rd(r, 0x800), 1u << 20);
	assert_int_equal(rd(r, 0x42A4) >> 30 & 1, 0);
	lab_wire_set_link(r->wire, true);
	rig_run(r, 20 * US);
	assert_int_equal(r->irqs, 2);
	assert_int_equal(rd(r, 0x42A4) >> 30 & 1, 1);
	rig_free(r);
}

/* --- offloads ----------------------------------------------------------------------------- */

static uint16_t fold(const uint8_t *p, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	if (n & 1)
		sum += (uint32_t)p[n - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static uint16_t fold_l4(const uint8_t *ip, uint32_t l4_bytes)
{
	return fold(ip + 20, l4_bytes, fold(ip + 12, 8, ip[9] + l4_bytes));
}

/* Ethernet, IPv4, TCP or UDP, with the pseudo header's sum where it belongs. */
static void headers(uint8_t *p, bool udp, uint32_t payload, bool with_length)
{
	uint32_t l4 = (udp ? 8 : 20) + payload, total = 20 + l4;
	uint16_t sum;

	memcpy(p, "\x02\0\0\0\0\x09\x02\0\0\0\0\x01\x08\x00", 14);
	memcpy(p + 14, "\x45\0\0\0\x12\x34\0\0\x40\0\0\0\x0a\0\0\x01\x0a\0\0\x02", 20);
	p[16] = (uint8_t)(total >> 8);
	p[17] = (uint8_t)total;
	p[23] = udp ? 17 : 6;
	sum = fold(p + 26, 8, p[23] + (with_length ? l4 : 0));
	if (udp) {
		memcpy(p + 34, "\x10\x00\x20\x00\0\0\0\0", 8);
		p[38] = (uint8_t)(l4 >> 8);
		p[39] = (uint8_t)l4;
	} else {
		memcpy(p + 34,
		       "\x10\x00\x20\x00\x11\x22\xff\xf0\x55\x66\x77\x88\x50\x99\x10\0\0\0\0\0",
		       20);
	}
	p[34 + (udp ? 6 : 16)] = (uint8_t)(sum >> 8);
	p[34 + (udp ? 7 : 17)] = (uint8_t)sum;
}

static void checksums_are_inserted(void **state)
{
	struct rig *r = rig_new();

	rig_tx(r, 64, 0);
	for (unsigned udp = 0; udp < 2; udp++) {
		uint8_t *p = r->mem + TX_DATA + udp * 2048;
		uint32_t bytes = 34 + (udp ? 8 : 20) + 101;

		for (unsigned i = 0; i < 200; i++)
			p[i] = (uint8_t)(3 * i);
		headers(p, udp, 101, true);
		tx_context(r, 0, 14, 20, 1u << 10 | (udp ? 0 : 1u << 11), 0, 0);
		tx_put(r, udp * 2048, bytes, bytes, EOP | RS, 3u << 8);
	}
	ring_tail(r);
	rig_run(r, 100 * US);
	assert_int_equal(r->frames, 2);
	for (unsigned udp = 0; udp < 2; udp++) {
		const uint8_t *p = r->frame[udp].data;

		assert_int_equal(fold(p + 14, 20, 0), 0xffff);
		assert_int_equal(fold_l4(p + 14, (udp ? 8 : 20) + 101), 0xffff);
	}
	assert_int_equal(tx_status(r, 0), 0);
	assert_int_equal(tx_status(r, 1), 1);
	rig_free(r);
}

static void tags_are_inserted(void **state)
{
	struct rig *r = rig_new();

	rig_tx(r, 64, 0);
	fill(r, 100);
	tx_context(r, 0x6123, 14, 0, 0, 0, 0);
	tx_put(r, 0, 100, 100, EOP | RS | VLE, 0);
	ring_tail(r);
	rig_run(r, 100 * US);
	assert_int_equal(r->frames, 1);
	assert_int_equal(r->frame[0].bytes, 104);
	assert_memory_equal(r->frame[0].data, r->mem + TX_DATA, 12);
	assert_memory_equal(r->frame[0].data + 12, "\x81\x00\x61\x23\x88\xb5", 6);
	assert_memory_equal(r->frame[0].data + 18, r->mem + TX_DATA + 14, 86);
	rig_free(r);
}

static void large_frames_are_segmented(void **state)
{
	enum { PAYLOAD = 5000, MSS = 1448 };
	struct rig *r = rig_new();
	uint8_t *p = r->mem + TX_DATA;
	uint32_t done = 0;

	rig_tx(r, 64, 0);
	for (unsigned i = 0; i < 54 + PAYLOAD; i++)
		p[i] = (uint8_t)(i * 13 >> 3);
	headers(p, false, PAYLOAD, false);
	p[47] = 0x99; /* CWR, ACK, PSH, FIN */
	tx_context(r, 0x0007, 14, 20, 1u << 10 | 1u << 11, MSS, 20);
	put_desc(r, TX_BASE, 1, r->iova + TX_DATA, 54 | 3u << 20 | DEXT | IFCS | TSE | VLE,
		 (uint32_t)PAYLOAD << 14 | 3u << 8);
	put_desc(r, TX_BASE, 2, r->iova + TX_DATA + 54, 3000 | 3u << 20 | DEXT | IFCS | TSE | VLE,
		 0);
	put_desc(r, TX_BASE, 3, r->iova + TX_DATA + 3054,
		 2000 | 3u << 20 | DEXT | IFCS | TSE | VLE | EOP | RS, 0);
	r->tail = 4;
	ring_tail(r);
	rig_run(r, 100 * US);
	assert_int_equal(r->frames, 4);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t part = i < 3 ? MSS : PAYLOAD - 3 * MSS;
		uint8_t *f = r->frame[i].data;
		uint32_t seq;

		assert_int_equal(r->frame[i].bytes, 58 + part);
		assert_memory_equal(f + 12, "\x81\x00\x00\x07\x08\x00", 6);
		f += 4; /* as without the tag */
		assert_int_equal(f[16] << 8 | f[17], 40 + part);
		assert_int_equal(f[18] << 8 | f[19], 0x1234 + i);
		seq = (uint32_t)f[38] << 24 | (uint32_t)f[39] << 16 | (uint32_t)f[40] << 8 | f[41];
		assert_int_equal(seq, 0x1122fff0u + done);
		assert_int_equal(f[47], i == 0 ? 0x90 : i == 3 ? 0x19 : 0x10);
		assert_int_equal(fold(f + 14, 20, 0), 0xffff);
		assert_int_equal(fold_l4(f + 14, 20 + part), 0xffff);
		assert_memory_equal(f + 54, p + 54 + done, part);
		done += part;
	}
	assert_int_equal(rd(r, 0x4080), 4);
	rig_free(r);
}

/* --- what goes wrong ---------------------------------------------------------------------- */

static void bad_descriptors_are_counted(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;

	rig_tx(r, 64, 0);
	fill(r, 60);
	put_desc(r, TX_BASE, r->tail++, 0x1234, 60 | 3u << 20 | DEXT | IFCS | EOP | RS, 60u << 14);
	tx_put(r, 0, 60, 61, EOP | RS, 0); /* PAYLEN is not the frame's length */
	tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 100 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.tx_bad, 2);
	assert_int_equal(r->frames, 1);
	assert_int_equal(tx_status(r, 2), 1);
	rig_free(r);
}

static void a_hung_chip_needs_a_reset(void **state)
{
	struct rig *r = rig_new();

	rig_tx(r, 64, 0);
	fill(r, 60);
	r->chip->ops->hang(r->chip);
	tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 100 * US);
	assert_int_equal(r->frames, 0);
	wr(r, 0, 1u << 26);
	rig_run(r, 20 * US);
	rig_tx(r, 64, 0);
	tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 100 * US);
	assert_int_equal(r->frames, 1);
	rig_free(r);
}

static void faults_are_drawn_and_counted(void **state)
{
	struct rig *r = rig_new();
	struct lab_fault fault;

	rig_irq(r, 0, 1, 0);
	rig_run(r, 10 * US);
	lab_fault_start(&fault,
			&(struct lab_fault_config){ .seed = 1,
						    .lose_irq_ppm = 500000,
						    .flap_at = sim_now(r->sim) + 300 * US,
						    .flap_for = 50 * US,
						    .hang_at = sim_now(r->sim) + 500 * US },
			r->chip);
	for (unsigned i = 0; i < 100; i++) {
		wr(r, 0x808, 2);
		rig_run(r, 1 * US);
	}
	assert_int_equal(fault.counts.lost_irqs + r->irqs, 100);
	assert_in_range(r->irqs, 30, 70);
	rig_run(r, 225 * US);
	assert_int_equal(rd(r, 0x42A4) >> 30 & 1, 0);
	rig_run(r, 50 * US);
	assert_int_equal(rd(r, 0x42A4) >> 30 & 1, 1);
	rig_run(r, 200 * US);
	assert_int_equal(fault.counts.flaps, 1);
	assert_int_equal(fault.counts.hangs, 1);
	lab_fault_stop(&fault);
	rig_free(r);
}

static void late_write_backs_come(void **state)
{
	struct rig *r = rig_new();
	struct lab_fault fault;

	rig_tx(r, 512, 1);
	fill(r, 60);
	lab_fault_start(
		&fault,
		&(struct lab_fault_config){ .seed = 3, .late_ppm = 100000, .late_ps = 50 * US },
		r->chip);
	for (unsigned i = 0; i < 400; i++)
		tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 5000 * US);
	assert_int_equal(r->frames, 400);
	assert_true(fault.counts.late > 0);
	for (unsigned i = 0; i < 400; i++)
		assert_int_equal(tx_status(r, i), 1);
	lab_fault_stop(&fault);
	rig_free(r);
}

static unsigned write_backs(struct rig *r)
{
	struct lab_i82599_counters n;

	lab_i82599_counters(r->chip, &n);
	return (unsigned)n.tx_writebacks;
}

/* Frames done at once are written back in multiples of WTHRESH; the rest waits for more. */
static void write_backs_are_whole_batches(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;
	struct lab_fault fault;

	rig_tx(r, 512, 8);
	fill(r, 60);
	/* The write-backs stand still while 20 frames become done. */
	lab_fault_start(&fault,
			&(struct lab_fault_config){
				.seed = 1, .late_ppm = 1000000, .late_ps = 50 * US },
			r->chip);
	for (unsigned i = 0; i < 20; i++)
		tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 30 * US);
	assert_int_equal(write_backs(r), 0);
	lab_fault_stop(&fault);
	rig_run(r, 100 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.tx_desc_done, 16);
	assert_int_equal(n.tx_writebacks, 1);
	assert_int_equal(tx_status(r, 15), 1);
	assert_int_equal(tx_status(r, 16), 0);
	rig_free(r);
}

static uint64_t memory_reads(struct rig *r)
{
	struct lab_pci_stats s;

	lab_pci_stats(r->pci, &s);
	return s.reads;
}

/* A tail that brings nothing new is no reason to read the ring; one descriptor is read as one. */
static void nothing_waiting_is_not_fetched(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;
	uint64_t reads;

	rig_tx(r, 64, 0);
	fill(r, 60);
	reads = memory_reads(r);
	wr(r, txq(0, 0x18), 0); /* an empty ring */
	rig_run(r, 10 * US);
	assert_int_equal(memory_reads(r), reads);
	tx_put(r, 0, 60, 60, EOP | RS, 0);
	ring_tail(r);
	rig_run(r, 10 * US);
	assert_int_equal(memory_reads(r), reads + 2); /* the descriptor and its data */
	ring_tail(r);                                 /* the same once more */
	rig_run(r, 10 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.tx_desc_fetched, 1);
	assert_int_equal(memory_reads(r), reads + 2);
	assert_int_equal(r->frames, 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_leave_in_order),
		cmocka_unit_test(back_to_back_at_line_rate),
		cmocka_unit_test(the_ring_wraps),
		cmocka_unit_test(descriptors_behind_the_tail_stay_untouched),
		cmocka_unit_test(wthresh_writes_back_in_batches),
		cmocka_unit_test(only_rs_is_written_back_without_wthresh),
		cmocka_unit_test(the_head_goes_to_memory),
		cmocka_unit_test(eitr_spaces_interrupts),
		cmocka_unit_test(spacing_is_exact_on_an_idle_link),
		cmocka_unit_test(a_late_cause_fires_at_once),
		cmocka_unit_test(an_open_batch_goes_with_the_interval),
		cmocka_unit_test(the_interrupt_announces_what_is_flushed),
		cmocka_unit_test(the_interrupt_announces_all_its_queues),
		cmocka_unit_test(masked_causes_stay),
		cmocka_unit_test(auto_mask_waits_for_software),
		cmocka_unit_test(high_vectors_work_by_the_extended_registers),
		cmocka_unit_test(the_link_interrupts),
		cmocka_unit_test(checksums_are_inserted),
		cmocka_unit_test(tags_are_inserted),
		cmocka_unit_test(large_frames_are_segmented),
		cmocka_unit_test(bad_descriptors_are_counted),
		cmocka_unit_test(a_hung_chip_needs_a_reset),
		cmocka_unit_test(faults_are_drawn_and_counted),
		cmocka_unit_test(late_write_backs_come),
		cmocka_unit_test(write_backs_are_whole_batches),
		cmocka_unit_test(nothing_waiting_is_not_fetched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
