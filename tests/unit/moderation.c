// SPDX-License-Identifier: BSD-2-Clause
/* Moderation rules against numbers worked out by hand from their definitions. */
#include "mac/moderation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void test_names(void **state)
{
	struct ho_err err;
	enum mac_mod_kind kind;

	for (int i = 0; i < MAC_MOD_KINDS; i++) {
		assert_int_equal(mac_mod_from_name(mac_mod_name((enum mac_mod_kind)i), &kind, &err),
				 0);
		assert_int_equal(kind, i);
	}
	assert_true(mac_mod_from_name("adaptive", &kind, &err) < 0);
}

static void test_fixed(void **state)
{
	struct mac_mod_sample s = { .rx_packets = 1000, .rx_bytes = 1000000 };
	struct mac_moderation m;

	mac_moderation_init(&m, MAC_MOD_FIXED, 30000, 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(mac_moderation_update(&m, &s), 30000);
}

/* A full ring of 60-byte frames each interrupt: bulk, and the way there in integers. */
static void test_2_6_sticks_at_490(void **state)
{
	/* 10*500*itr / (4500+itr), itr from 200 on, after one step in class low (200). */
	static const uint32_t way[] = { 200, 212, 224, 237, 250, 263, 276, 288, 300, 312 };
	struct mac_mod_sample s = { .tx_packets = 491, .tx_bytes = 491 * 60 };
	struct mac_moderation m;
	uint32_t eitr;

	mac_moderation_init(&m, MAC_MOD_ADAPTIVE_2_6, 0, 0);
	assert_int_equal(m.spacing_ns, 50000);
	for (unsigned i = 0; i < HO_ARRAY_LEN(way); i++) {
		assert_int_equal(mac_moderation_update(&m, &s), way[i] * 250);
		assert_int_equal(m.a26.itr, way[i]);
	}
	for (unsigned i = 0; i < 200; i++)
		mac_moderation_update(&m, &s);
	assert_int_equal(m.a26.itr, 490);
	/* What the chip makes of it: 124.928 us, 8,005 interrupts a second. */
	eitr = (m.spacing_ns / 250) & 0xFF8;
	assert_int_equal(eitr * 256, 124928);
	assert_int_equal((1000000000 + eitr * 128) / (eitr * 256), 8005);
}

/* One direction's way through the classes: 10 and 20 bytes a microsecond are the borders. */
static void test_2_6_classes(void **state)
{
	struct mac_moderation m;
	struct mac_mod_sample s = { .rx_packets = 1 };

	mac_moderation_init(&m, MAC_MOD_ADAPTIVE_2_6, 0, 0);
	s.rx_bytes = 50 * 11 - 1; /* 50 us: 10.98 is 10, not above 10 */
	assert_int_equal(mac_moderation_update(&m, &s), 10 * 40 * 200 / (360 + 200) * 250);
	assert_int_equal(m.a26.rx, MAC_MOD_LOWEST);
	assert_int_equal(m.a26.itr, 142);
	s.rx_bytes = 35 * 11; /* 142 / 4 = 35 us */
	mac_moderation_update(&m, &s);
	assert_int_equal(m.a26.rx, MAC_MOD_LOW);
	s.rx_bytes = m.a26.itr / 4 * 21;
	mac_moderation_update(&m, &s);
	assert_int_equal(m.a26.rx, MAC_MOD_BULK);
	s.rx_bytes = m.a26.itr / 4 * 21;
	mac_moderation_update(&m, &s);
	assert_int_equal(m.a26.rx, MAC_MOD_BULK);
	s.rx_bytes = m.a26.itr / 4 * 20;
	mac_moderation_update(&m, &s);
	assert_int_equal(m.a26.rx, MAC_MOD_LOW);
	s.rx_bytes = m.a26.itr / 4 * 10;
	mac_moderation_update(&m, &s);
	assert_int_equal(m.a26.rx, MAC_MOD_LOWEST);
	/* No packets: no opinion. The slower direction decides. */
	m.a26.tx = MAC_MOD_BULK;
	m.a26.itr = 490;
	memset(&s, 0, sizeof(s));
	mac_moderation_update(&m, &s);
	assert_int_equal(m.a26.tx, MAC_MOD_BULK);
	assert_int_equal(m.a26.itr, 490);
}

static uint32_t once_2017(uint32_t itr, uint32_t packets, uint32_t bytes, uint64_t bps)
{
	struct mac_mod_sample s = { .rx_packets = packets, .rx_bytes = bytes };
	struct mac_moderation m;

	mac_moderation_init(&m, MAC_MOD_ADAPTIVE_2017, 0, bps);
	m.a2017.itr = itr;
	mac_moderation_update(&m, &s);
	/* Of this direction alone: the quiet other one has an opinion as well. */
	return (m.a2017.rx.usecs & 0x7fu) * 1000;
}

static void test_2017_rows(void **state)
{
	static const struct {
		uint32_t itr, packets, bytes, usecs;
	} rows[] = {
		/* by size, 256 frames and more: 2 * ceil(x / 512) */
		{ 200, 256, 256 * 60, 20 },    /* 5120 */
		{ 200, 300, 300 * 61, 22 },    /* 5160 */
		{ 200, 300, 300 * 316, 60 },   /* 15360 */
		{ 200, 300, 300 * 317, 64 },   /* 16207 */
		{ 200, 300, 300 * 1084, 110 }, /* 27712 */
		{ 200, 300, 300 * 1085, 110 }, /* 27845 */
		{ 200, 300, 300 * 1514, 118 }, /* 29990 */
		{ 200, 300, 300 * 1967, 126 }, /* 32255 */
		{ 200, 300, 300 * 9000, 126 }, /* 32256 */
		/* 96 to 255: half, at least 10 */
		{ 200, 96, 5760, 25 },
		{ 200, 255, 15300, 25 },
		{ 40, 100, 6000, 10 },
		/* 48 to 95: as it is */
		{ 200, 48, 2880, 50 },
		{ 200, 95, 5700, 50 },
		/* 4 to 47: 2 more, at most 126 */
		{ 200, 4, 240, 52 },
		{ 200, 47, 2820, 52 },
		{ 504, 47, 2820, 126 },
		{ 500, 47, 2820, 126 },
		/* under 4 and 9000 bytes: half of by size */
		{ 200, 3, 180, 10 },  /* 2560 */
		{ 200, 1, 1514, 60 }, /* 14995 */
		{ 200, 3, 9000, 52 }, /* not under 9000 bytes */
	};

	for (unsigned i = 0; i < HO_ARRAY_LEN(rows); i++)
		assert_int_equal(once_2017(rows[i].itr, rows[i].packets, rows[i].bytes, 0),
				 rows[i].usecs * 1000);
	/* 1 Gbit/s: 2 * ceil(min(x, 8064) / 128). */
	assert_int_equal(once_2017(200, 256, 256 * 60, 1000000000), 80000);
	assert_int_equal(once_2017(200, 256, 256 * 1514, 1000000000), 126000);
}

static void test_2017_quiet_and_late(void **state)
{
	struct mac_moderation m;
	struct mac_mod_sample s = { .now_ns = 0 };

	mac_moderation_init(&m, MAC_MOD_ADAPTIVE_2017, 0, 0);
	/* Nothing in either direction: 2 us more each time, up to 126, still in latency mode. */
	assert_int_equal(mac_moderation_update(&m, &s), 52000);
	assert_true(m.a2017.rx.usecs & 0x80);
	for (unsigned i = 0; i < 100; i++)
		mac_moderation_update(&m, &s);
	assert_int_equal(m.spacing_ns, 126000);
	/* Two ticks without an update: start over at 10 us, whatever came. */
	s.now_ns = 2000000;
	s.rx_packets = 500;
	s.rx_bytes = 500 * 1514;
	assert_int_equal(mac_moderation_update(&m, &s), 10000);
	/* In time again. */
	assert_int_equal(mac_moderation_update(&m, &s), 118000);
}

/* A direction in latency mode yields to one that is not, even if its time is shorter. */
static void test_2017_mode_bit_decides(void **state)
{
	struct mac_moderation m;
	struct mac_mod_sample s = {
		.rx_packets = 1, .rx_bytes = 60, .tx_packets = 300, .tx_bytes = 300 * 1514
	};

	mac_moderation_init(&m, MAC_MOD_ADAPTIVE_2017, 0, 0);
	assert_int_equal(mac_moderation_update(&m, &s), 118000);
}

/* --- DIM ------------------------------------------------------------------------------------ */

/* 64 events, `gap` ns apart, with so many packets of `size` bytes each. */
static void measure(struct mac_moderation *m, uint64_t *now, uint64_t gap, uint32_t packets,
		    uint32_t size)
{
	struct mac_mod_sample s = { .rx_packets = packets,
				    .rx_bytes = packets * size,
				    .tx_packets = packets,
				    .tx_bytes = packets * size };
	unsigned events = m->dim.measuring ? 64 : 65;

	for (unsigned i = 0; i < events; i++) {
		*now += gap;
		s.now_ns = *now;
		mac_moderation_update(m, &s);
	}
}

static void test_dim_profiles(void **state)
{
	static const struct {
		enum mac_mod_kind kind;
		uint32_t usecs[5], frames[5];
	} rows[] = {
		{ MAC_MOD_DIM_RX_EQE, { 1, 8, 64, 128, 256 }, { 256, 256, 256, 256, 256 } },
		{ MAC_MOD_DIM_RX_CQE, { 2, 8, 16, 32, 64 }, { 256, 128, 64, 64, 64 } },
		{ MAC_MOD_DIM_TX_EQE, { 1, 8, 32, 64, 128 }, { 128, 128, 128, 128, 128 } },
		{ MAC_MOD_DIM_TX_CQE, { 5, 8, 16, 32, 64 }, { 128, 64, 32, 32, 32 } },
	};

	for (unsigned k = 0; k < HO_ARRAY_LEN(rows); k++) {
		struct mac_moderation m;
		uint64_t now = 0;
		bool seen[5] = { false };

		mac_moderation_init(&m, rows[k].kind, 0, 0);
		assert_int_equal(m.dim.profile, 1);
		for (unsigned i = 0; i < 400; i++) {
			unsigned p = m.dim.profile;

			seen[p] = true;
			assert_int_equal(m.spacing_ns, rows[k].usecs[p] * 1000);
			assert_int_equal(m.frames, rows[k].frames[p]);
			/* Throughput grows with time: the ladder is climbed to its end, then the
			 * other way round. */
			measure(&m, &now, 10000,
				(uint32_t)(i / 40 % 2 ? 500 - p * 100 : 10 + p * 100), 1000);
		}
		for (unsigned p = 0; p < 5; p++)
			assert_true(seen[p]);
	}
}

/* Better to the right up to profile 3, worse behind it: DIM must park on 3. */
static void test_dim_finds_the_top(void **state)
{
	static const uint32_t packets[] = { 100, 200, 300, 400, 250 };
	struct mac_moderation m;
	uint64_t now = 0;
	unsigned parked = 0;

	mac_moderation_init(&m, MAC_MOD_DIM_RX_EQE, 0, 0);
	/* The first measurement compares with nothing: better, so it leaves to the left. */
	measure(&m, &now, 10000, packets[1], 1000);
	assert_int_equal(m.dim.profile, 0);
	assert_int_equal(m.dim.tune, MAC_DIM_LEFT);
	/* Worse there: turn. */
	measure(&m, &now, 10000, packets[0], 1000);
	assert_int_equal(m.dim.profile, 1);
	assert_int_equal(m.dim.tune, MAC_DIM_RIGHT);
	for (unsigned want = 2; want <= 4; want++) {
		measure(&m, &now, 10000, packets[want - 1], 1000);
		assert_int_equal(m.dim.profile, want);
	}
	/* 4 is worse: back to 3; 3 is better than 4: one step left after more than one right. */
	measure(&m, &now, 10000, packets[4], 1000);
	assert_int_equal(m.dim.profile, 3);
	assert_int_equal(m.dim.tune, MAC_DIM_LEFT);
	for (unsigned i = 0; i < 50; i++) {
		measure(&m, &now, 10000, packets[m.dim.profile], 1000);
		parked += m.dim.tune == MAC_DIM_ON_TOP && m.dim.profile == 3;
	}
	assert_int_equal(parked, 50);
	/* 10 % less is no reason to leave; 11 % is. */
	measure(&m, &now, 10000, 360, 1000);
	assert_int_equal(m.dim.tune, MAC_DIM_ON_TOP);
	measure(&m, &now, 10000, 355, 1000);
	assert_int_not_equal(m.dim.tune, MAC_DIM_ON_TOP);
}

/* Same bytes and packets, fewer events: better. */
static void test_dim_events_break_ties(void **state)
{
	struct mac_moderation m;
	uint64_t now = 0;

	mac_moderation_init(&m, MAC_MOD_DIM_RX_EQE, 0, 0);
	measure(&m, &now, 10000, 100, 1000);
	assert_int_equal(m.dim.profile, 0);
	measure(&m, &now, 5000, 50, 1000); /* twice the events */
	assert_int_equal(m.dim.tune, MAC_DIM_RIGHT);
	assert_int_equal(m.dim.profile, 1);
	measure(&m, &now, 10000, 100, 1000);
	assert_int_equal(m.dim.tune, MAC_DIM_RIGHT);
	assert_int_equal(m.dim.profile, 2);
}

/* Worse at every step, so it turns each time: after ten steps it rests for ten measurements. */
static void test_dim_gets_tired(void **state)
{
	struct mac_moderation m;
	uint32_t packets = 4000000;
	uint64_t now = 0;

	mac_moderation_init(&m, MAC_MOD_DIM_RX_EQE, 0, 0);
	for (unsigned i = 0; i < 10; i++, packets -= packets / 5) {
		measure(&m, &now, 10000, packets, 100);
		assert_int_equal(m.dim.profile, i % 2);
		assert_int_equal(m.dim.tired, i + 1);
	}
	measure(&m, &now, 10000, packets, 100);
	assert_int_equal(m.dim.tune, MAC_DIM_TIRED);
	for (unsigned i = 0; i < 9; i++) {
		measure(&m, &now, 10000, packets, 100);
		assert_int_equal(m.dim.tune, MAC_DIM_TIRED);
	}
	measure(&m, &now, 10000, packets, 100);
	assert_int_equal(m.dim.tune, MAC_DIM_LEFT);
}

/* 63 events decide nothing. */
static void test_dim_counts_64(void **state)
{
	struct mac_moderation m;
	struct mac_mod_sample s = { .rx_packets = 10, .rx_bytes = 1000 };

	mac_moderation_init(&m, MAC_MOD_DIM_RX_EQE, 0, 0);
	for (unsigned i = 0; i < 64; i++) {
		s.now_ns += 10000;
		mac_moderation_update(&m, &s);
	}
	assert_int_equal(m.dim.profile, 1);
	s.now_ns += 10000;
	mac_moderation_update(&m, &s);
	assert_int_equal(m.dim.profile, 0);
}

/* Whatever happens, every rule stays within its range. */
static void test_ranges(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t r = seed * 0x9e3779b97f4a7c15ull;
		enum mac_mod_kind kind = (enum mac_mod_kind)(seed % MAC_MOD_KINDS);
		struct mac_mod_sample s = { 0 };
		struct mac_moderation m;
		uint32_t lo = 0, hi = 0;

		mac_moderation_init(&m, kind, 40000, seed % 2 ? 1000000000 : 0);
		switch (kind) {
		case MAC_MOD_FIXED:
			lo = hi = 40000;
			break;
		case MAC_MOD_ADAPTIVE_2_6:
			lo = 40 * 250;
			hi = 500 * 250;
			break;
		case MAC_MOD_ADAPTIVE_2017:
			lo = 10000;
			hi = 126000;
			break;
		default:
			lo = 1000;
			hi = 256000;
		}
		for (unsigned i = 0; i < 3000; i++) {
			uint32_t ns;

			s.now_ns += rnd(&r) % (i % 100 ? 200000 : 5000000);
			s.rx_packets = rnd(&r) % 3 ? (uint32_t)(rnd(&r) % 400) : 0;
			s.rx_bytes = s.rx_packets * (uint32_t)(60 + rnd(&r) % 9000);
			s.tx_packets = rnd(&r) % 3 ? (uint32_t)(rnd(&r) % 4) : 0;
			s.tx_bytes = s.tx_packets * (uint32_t)(60 + rnd(&r) % 65000);
			ns = mac_moderation_update(&m, &s);
			assert_int_equal(ns, m.spacing_ns);
			assert_in_range(ns, lo, hi);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_2_6_sticks_at_490),
		cmocka_unit_test(test_2_6_classes),
		cmocka_unit_test(test_2017_rows),
		cmocka_unit_test(test_2017_quiet_and_late),
		cmocka_unit_test(test_2017_mode_bit_decides),
		cmocka_unit_test(test_dim_profiles),
		cmocka_unit_test(test_dim_finds_the_top),
		cmocka_unit_test(test_dim_events_break_ties),
		cmocka_unit_test(test_dim_gets_tired),
		cmocka_unit_test(test_dim_counts_64),
		cmocka_unit_test(test_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
