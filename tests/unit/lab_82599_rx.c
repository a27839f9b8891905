/* SPDX-License-Identifier: BSD-2-Clause */
/* The 82599's receive side, by registers. */
#include "lab_82599_rig.h"

#define ADV_2K (1u << 25 | 2)
#define DROP   (1u << 28)

static const uint8_t plain[100] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0xb5, 1, 2, 3 };

static void frames_reach_memory(void **state)
{
	struct rig *r = rig_new();

	rig_irq(r, 0, 1, 0);
	rig_rx(r, 0, 64, 63, ADV_2K, 0);
	for (unsigned i = 0; i < 40; i++) {
		uint8_t data[100];

		memcpy(data, plain, 100);
		data[50] = (uint8_t)i;
		send_frame(r, data, 60 + i);
	}
	rig_run(r, 100 * US);
	for (unsigned i = 0; i < 40; i++) {
		const uint32_t *d = rx_desc(r, 0, i);

		assert_int_equal(d[2] & 3, 3); /* DD, EOP */
		assert_int_equal(d[3], 60 + i);
		assert_int_equal(r->mem[RX_DATA + i * 2048 + 50], i);
		assert_memory_equal(r->mem + RX_DATA + i * 2048, plain, 17);
	}
	assert_int_equal(rx_desc(r, 0, 40)[2] & 3, 0);
	assert_true(r->irqs > 0);
	for (unsigned i = 0; i < r->irqs; i++)
		assert_int_equal(r->irq[i].vector, 0);
	assert_int_equal(rd(r, rxq(0, 0x10)), 40);
	assert_int_equal(rd(r, 0x4074), 40);
	assert_int_equal(rd(r, rxq(0, 0x30)), 40); /* QPRC[0] */
	assert_int_equal(rd(r, 0x4088), 40 * 64 + 39 * 40 / 2);
	assert_int_equal(rd(r, 0x408C), 0);
	rig_free(r);
}

/* When the descriptor says so, the data is there: looked at each 10 ns. */
static void data_is_there_before_done(void **state)
{
	struct rig *r = rig_new();
	uint8_t data[1514];
	unsigned next = 0;

	memset(data, 0xa5, sizeof(data));
	data[0] = 2;
	rig_rx(r, 0, 64, 63, ADV_2K, 0);
	for (unsigned i = 0; i < 20; i++)
		send_frame(r, data, 1514);
	for (unsigned t = 0; t < 10000 && next < 20; t++) {
		rig_run(r, 10 * NS);
		while (next < 20 && rx_desc(r, 0, next)[2] & 1) {
			assert_memory_equal(r->mem + RX_DATA + next * 2048, data, 1514);
			next++;
		}
	}
	assert_int_equal(next, 20);
	rig_free(r);
}

static void long_frames_take_several_descriptors(void **state)
{
	struct rig *r = rig_new();
	uint8_t data[9015];

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11 >> 2);
	data[0] = 2;
	wr(r, 0x4240, 1 | 2 | 4 | 1u << 10);
	wr(r, 0x4268, 9018u << 16);
	rig_rx(r, 0, 64, 7, ADV_2K, 0);
	send_frame(r, data, 9014);
	send_frame(r, data, 9014); /* two descriptors of it, then none */
	send_frame(r, data, 9015);
	rig_run(r, 100 * US);
	for (unsigned i = 0; i < 7; i++) {
		const uint32_t *d = rx_desc(r, 0, i);

		assert_int_equal(d[2] & 3, i == 4 ? 3 : 1);
		assert_int_equal(d[3] & 0xffff, i == 4 ? 9014 - 4 * 2048 : 2048);
		assert_memory_equal(r->mem + RX_DATA + i * 2048, data + i % 5 * 2048,
				    d[3] & 0xffff);
	}
	wr(r, rxq(0, 0x18), 20);
	rig_run(r, 100 * US);
	assert_int_equal(rx_desc(r, 0, 9)[2] & 3, 3);
	assert_int_equal(rx_desc(r, 0, 10)[2] & 3, 0);
	assert_int_equal(rd(r, 0x40AC), 1); /* ROC */
	rig_free(r);
}

static void without_descriptors_the_buffer_fills(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;

	wr(r, 0x3C00, 16u << 10); /* RXPBSIZE: 16 KB */
	rig_rx(r, 0, 64, 10, ADV_2K, 0);
	for (unsigned i = 0; i < 500; i++)
		send_frame(r, plain, 64);
	rig_run(r, 1000 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.rx_delivered, 10);
	assert_in_range(n.rx_missed, 500 - 10 - 256 - 10, 500 - 256 - 10);
	assert_int_equal(rd(r, 0x3FA0), n.rx_missed);
	assert_int_equal(rd(r, 0x3FA0), 0);
	assert_int_equal(rd(r, 0x1430), 0);
	/* New descriptors: what is in the buffer comes out. */
	wr(r, rxq(0, 0x18), 9);
	rig_run(r, 100 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.rx_delivered, 73);
	rig_free(r);
}

static void with_drop_enabled_the_queue_drops(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;

	rig_rx(r, 0, 64, 10, ADV_2K | DROP, 0);
	for (unsigned i = 0; i < 500; i++)
		send_frame(r, plain, 64);
	rig_run(r, 1000 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.rx_delivered, 10);
	assert_int_equal(n.rx_no_descriptor, 490);
	assert_int_equal(rd(r, 0x1430), 490); /* QPRDC[0] */
	assert_int_equal(rd(r, 0x1430), 0);
	assert_int_equal(rd(r, 0x3FA0), 0);
	rig_free(r);
}

static void line_rate_is_received(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;
	unsigned tail = 511;

	rig_rx(r, 0, 512, tail, ADV_2K, 0);
	for (unsigned i = 0; i < 5000; i++)
		send_frame(r, plain, 60);
	for (unsigned i = 0; i < 40; i++) {
		rig_run(r, 10 * US);
		tail = (rd(r, rxq(0, 0x10)) + 511) % 512;
		wr(r, rxq(0, 0x18), tail);
	}
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.rx_delivered, 5000);
	rig_free(r);
}

/* --- RSS ---------------------------------------------------------------------------------- */

static const uint8_t rss_key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct {
	uint8_t src[4], dst[4];
	uint16_t sport, dport;
	uint32_t hash2, hash4;
} vectors[] = {
	{ { 66, 9, 149, 187 }, { 161, 142, 100, 80 }, 2794, 1766, 0x323e8fc2, 0x51ccc178 },
	{ { 199, 92, 111, 2 }, { 65, 69, 140, 83 }, 14230, 4739, 0xd718262a, 0xc626b0ea },
	{ { 24, 19, 198, 95 }, { 12, 22, 207, 184 }, 12898, 38024, 0xd2d0a5de, 0x5c2b394a },
	{ { 38, 27, 205, 30 }, { 209, 142, 163, 6 }, 48228, 2217, 0x82989176, 0xafc7327f },
	{ { 153, 39, 163, 191 }, { 202, 188, 127, 2 }, 44251, 1303, 0x5d1809c5, 0x10e828a2 },
};

static uint32_t ip_frame(uint8_t *p, unsigned i, uint8_t protocol)
{
	memset(p, 0, 80);
	memcpy(p, "\x02\0\0\0\0\x01\x02\0\0\0\0\x09\x08\x00\x45\0\0\x32\0\0\0\0\x40", 23);
	p[23] = protocol;
	memcpy(p + 26, vectors[i].src, 4);
	memcpy(p + 30, vectors[i].dst, 4);
	p[34] = (uint8_t)(vectors[i].sport >> 8);
	p[35] = (uint8_t)vectors[i].sport;
	p[36] = (uint8_t)(vectors[i].dport >> 8);
	p[37] = (uint8_t)vectors[i].dport;
	return 64;
}

static void rss_on(struct rig *r, uint32_t fields)
{
	for (unsigned i = 0; i < 10; i++) {
		uint32_t word;

		memcpy(&word, rss_key + 4 * i, 4);
		wr(r, 0x5C80 + 4 * i, word);
	}
	for (unsigned i = 0; i < 32; i++) /* entry n: queue n mod 8 */
		wr(r, 0x5C00 + 4 * i, i % 2 ? 0x07060504 : 0x03020100);
	wr(r, 0x5818, 1 | fields);
	for (unsigned q = 0; q < 8; q++)
		rig_rx(r, q, 64, 63, ADV_2K, 0);
}

static void rss_hashes_and_chooses(void **state)
{
	struct rig *r = rig_new();
	unsigned used[8] = { 0 };
	uint8_t data[128];

	rss_on(r, 1u << 16 | 1u << 17);
	for (unsigned i = 0; i < 5; i++) {
		send_frame(r, data, ip_frame(data, i, 6));
		send_frame(r, data, ip_frame(data, i, 17)); /* UDP not enabled: 2-tuple */
	}
	rig_run(r, 100 * US);
	for (unsigned i = 0; i < 10; i++) {
		uint32_t hash = i % 2 ? vectors[i / 2].hash2 : vectors[i / 2].hash4;
		unsigned q = hash % 8;
		const uint32_t *d = rx_desc(r, q, used[q]++);

		assert_int_equal(d[2] & 3, 3);
		assert_int_equal(d[1], hash);
		assert_int_equal(d[0] & 15, i % 2 ? 2 : 1);
		assert_int_equal(d[0] & 0x300, i % 2 ? 0x200 : 0x100);
	}
	rig_free(r);
}

static void rss_hashes_ipv6(void **state)
{
	static const uint8_t addresses[32] = {
		0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7,
		0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1,
	};
	struct rig *r = rig_new();
	uint8_t data[128] = { 0 };

	rss_on(r, 1u << 20 | 1u << 21);
	memcpy(data, "\x02\0\0\0\0\x01\x02\0\0\0\0\x09\x86\xdd\x60\0\0\0\0\x14\x06\x40", 22);
	memcpy(data + 22, addresses, 32);
	memcpy(data + 54, "\x0a\xea\x06\xe6", 4); /* 2794, 1766 */
	send_frame(r, data, 74);
	data[20] = 59; /* no next header */
	send_frame(r, data, 74);
	rig_run(r, 100 * US);
	assert_int_equal(rx_desc(r, 0x40207d3d % 8, 0)[1], 0x40207d3d);
	assert_int_equal(rx_desc(r, 0x40207d3d % 8, 0)[0] & 0x1ff, 0x143);
	assert_int_equal(rx_desc(r, 0x2cc18cd5 % 8, 1)[1], 0x2cc18cd5); /* the same queue: 5 */
	rig_free(r);
}

/* --- checksums, tags, filters ------------------------------------------------------------- */

static uint16_t fold(const uint8_t *p, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void checksums_are_verified(void **state)
{
	struct rig *r = rig_new();
	uint8_t data[128];
	uint32_t n;

	rig_rx(r, 0, 64, 63, ADV_2K, 0);
	n = ip_frame(data, 0, 6);
	put(data + 24, fold(data + 14, 20, 0));
	put(data + 50, fold(data + 34, 30, fold(data + 26, 8, 6 + 30) ^ 0xffff));
	send_frame(r, data, n); /* good */
	data[60] ^= 1;
	send_frame(r, data, n); /* bad TCP */
	data[22]--;
	data[60] ^= 1;
	send_frame(r, data, n); /* bad IP */
	n = ip_frame(data, 0, 17);
	put(data + 24, fold(data + 14, 20, 0));
	send_frame(r, data, n);   /* UDP without a sum */
	send_frame(r, plain, 64); /* no IP */
	rig_run(r, 100 * US);
	assert_int_equal(rx_desc(r, 0, 0)[2], 3 | 0x60);
	assert_int_equal(rx_desc(r, 0, 1)[2], 3 | 0x60 | 1u << 30);
	assert_int_equal(rx_desc(r, 0, 2)[2], 3 | 0x60 | 1u << 31);
	assert_int_equal(rx_desc(r, 0, 3)[2], 3 | 0x40);
	assert_int_equal(rx_desc(r, 0, 4)[2], 3);
	rig_free(r);
}

static void tags_are_stripped(void **state)
{
	struct rig *r = rig_new();
	uint8_t data[100];

	memcpy(data, plain, 12);
	memcpy(data + 12, "\x81\x00\x61\x23\x88\xb5", 6);
	memcpy(data + 18, plain + 14, 60);
	rig_rx(r, 0, 64, 63, ADV_2K, 1u << 30);
	send_frame(r, data, 78);
	rig_run(r, 10 * US);
	assert_int_equal(rx_desc(r, 0, 0)[2] & 0xb, 0xb);
	assert_int_equal(rx_desc(r, 0, 0)[3], 0x61230000 | 74);
	assert_memory_equal(r->mem + RX_DATA, plain, 74);
	wr(r, rxq(0, 0x28), 1u << 25);
	rig_run(r, 1 * US);
	send_frame(r, data, 78);
	rig_run(r, 10 * US);
	assert_int_equal(rx_desc(r, 0, 1)[3], 78);
	assert_memory_equal(r->mem + RX_DATA + 2048, data, 78);
	/* VLAN filter: 0x123 is not in the table, then it is. */
	wr(r, 0x5088, 0x8100 | 1u << 30);
	rig_run(r, 1 * US);
	send_frame(r, data, 78);
	rig_run(r, 10 * US);
	assert_int_equal(rx_desc(r, 0, 2)[2] & 1, 0);
	wr(r, 0xA000 + 0x123 / 32 * 4, 1u << 0x123 % 32);
	rig_run(r, 1 * US);
	send_frame(r, data, 78);
	rig_run(r, 10 * US);
	assert_int_equal(rx_desc(r, 0, 2)[2] & 1, 1);
	rig_free(r);
}

static void addresses_are_filtered(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;
	uint8_t data[64] = { 0 };

	rig_rx(r, 0, 64, 63, ADV_2K, 0);
	wr(r, 0x5080, 0);
	rig_run(r, 1 * US);
	memcpy(data, "\x02\0\0\0\0\x01", 6); /* the chip's own, from its EEPROM */
	send_frame(r, data, 60);
	data[5] = 2;
	send_frame(r, data, 60);
	memset(data, 255, 6);
	send_frame(r, data, 60);
	memcpy(data, "\x33\x33\0\0\0\x01", 6);
	send_frame(r, data, 60);
	rig_run(r, 10 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.rx_delivered, 1);
	assert_int_equal(n.rx_filtered, 3);
	/* bits 47:36 of the address choose the bit of the multicast table */
	wr(r, 0x5200 + (0x100 >> 4) / 32 * 4, 1u << (0x100 >> 4) % 32);
	wr(r, 0x5090, 1u << 2);
	wr(r, 0x5080, 1u << 10);
	rig_run(r, 1 * US);
	send_frame(r, data, 60);
	memset(data, 255, 6);
	send_frame(r, data, 60);
	rig_run(r, 10 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.rx_delivered, 3);
	assert_int_equal(rd(r, 0x407C), 1); /* MPRC */
	assert_int_equal(rd(r, 0x4078), 1); /* BPRC */
	rig_free(r);
}

static void damaged_frames_are_counted(void **state)
{
	struct rig *r = rig_new();
	struct lab_frame *f;

	rig_rx(r, 0, 64, 63, ADV_2K, 0);
	f = lab_wire_begin(r->wire, 1, 60);
	memcpy(f->data, plain, 60);
	f->flags = LAB_FRAME_BAD_FCS;
	lab_wire_send(r->wire, 1, 60, 0);
	send_frame(r, plain, 50);
	send_frame(r, plain, 60);
	rig_run(r, 10 * US);
	assert_int_equal(rd(r, 0x4000), 1);
	assert_int_equal(rd(r, 0x40A4), 1);
	assert_int_equal(rd(r, 0x40D0), 3);
	assert_int_equal(rd(r, 0x4074), 1);
	rig_free(r);
}

static void a_reset_forgets_frames_by_name(void **state)
{
	struct rig *r = rig_new();
	struct lab_i82599_counters n;

	rig_rx(r, 0, 64, 5, ADV_2K, 0);
	for (unsigned i = 0; i < 20; i++)
		send_frame(r, plain, 60);
	rig_run(r, 20 * US);
	rig_check(r);
	wr(r, 0, 1u << 26);
	rig_run(r, 50 * US);
	lab_i82599_counters(r->chip, &n);
	assert_int_equal(n.rx_delivered, 5);
	assert_int_equal(n.rx_lost, 15);
	rig_free(r);
}

static void the_eeprom_answers(void **state)
{
	struct rig *r = rig_new();
	uint16_t sum = 0;

	for (uint32_t word = 0; word < 0x40; word++) {
		uint32_t value;

		wr(r, 0x10014, word << 2 | 1);
		value = rd(r, 0x10014);
		assert_true(value & 2);
		sum = (uint16_t)(sum + (value >> 16));
		if (word == 2)
			assert_int_equal(value >> 16, 0x0100);
	}
	assert_int_equal(sum, 0xbaba);
	assert_int_equal(rd(r, 0x5400), 0x00000002);
	assert_int_equal(rd(r, 0xA204), 0x80000100);
	rig_free(r);
}

/* --- anything at all ---------------------------------------------------------------------- */

/* Garbage in registers and descriptors must neither crash the model nor break its accounts. */
static void garbage_is_survived(void **state)
{
	uint64_t x = 88172645463325252ull;

	for (unsigned round = 0; round < 60; round++) {
		struct rig *r = rig_new();

		rig_irq(r, 0, 1, 40);
		rig_tx(r, 128, round % 10);
		rig_rx(r, 0, 128, 100, ADV_2K | (round % 2 ? DROP : 0), 0);
		for (unsigned i = 0; i < 3000; i++) {
			uint8_t data[1600];
			uint32_t reg;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			switch (x % 6) {
			case 0:
				memcpy(r->mem + TX_BASE + (x >> 8) % 2048, &x, 8);
				break;
			case 1:
				wr(r, txq(0, 0x18), (x >> 20) % 128);
				break;
			case 2:
				reg = (x >> 20) % 0x20000 & ~3u;
				/* tails outside of the ring are counted as broken rules */
				if ((reg & 0x3f) != 0x18)
					wr(r, reg, (uint32_t)(x >> 32) & ~(1u << 26 | 8));
				break;
			case 3:
				put_desc(r, TX_BASE, (x >> 8) % 128, r->iova + TX_DATA,
					 ((uint32_t)(x >> 32) & 0xfff003ff) | 3u << 20 | DEXT,
					 (uint32_t)(x >> 16));
				break;
			case 4:
				for (unsigned k = 0; k < 200; k++)
					data[k] = (uint8_t)(x >> k % 56);
				memcpy(data + 12, x & 64 ? "\x08\x00\x45" : "\x86\xdd\x60", 3);
				send_frame(r, data, 14 + (x >> 30) % 180);
				break;
			case 5:
				rig_run(r, (x >> 20) % (2 * US));
				break;
			}
		}
		rig_run(r, 1000 * US);
		rig_check(r);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_reach_memory),
		cmocka_unit_test(data_is_there_before_done),
		cmocka_unit_test(long_frames_take_several_descriptors),
		cmocka_unit_test(without_descriptors_the_buffer_fills),
		cmocka_unit_test(with_drop_enabled_the_queue_drops),
		cmocka_unit_test(line_rate_is_received),
		cmocka_unit_test(rss_hashes_and_chooses),
		cmocka_unit_test(rss_hashes_ipv6),
		cmocka_unit_test(checksums_are_verified),
		cmocka_unit_test(tags_are_stripped),
		cmocka_unit_test(addresses_are_filtered),
		cmocka_unit_test(damaged_frames_are_counted),
		cmocka_unit_test(a_reset_forgets_frames_by_name),
		cmocka_unit_test(the_eeprom_answers),
		cmocka_unit_test(garbage_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
