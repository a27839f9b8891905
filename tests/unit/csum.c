// SPDX-License-Identifier: BSD-2-Clause
/* The Internet checksum: vectors, properties, frames of several buffers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "packet/csum.h"

/* As RFC 1071 defines it, byte by byte, big endian. */
static uint16_t slow_sum(const uint8_t *data, size_t bytes)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < bytes; i++) {
		sum += i & 1 ? data[i] : (uint32_t)data[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static void fill_random(uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(rand() >> 7);
}

static void test_vectors(void **state)
{
	/* RFC 1071 section 3, and the header of many textbooks (checksum b861). */
	static const uint8_t rfc[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };
	static const uint8_t header[] = { 0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40,
					  0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8,
					  0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7 };

	assert_int_equal(be16toh(pk_csum_fold(pk_csum(rfc, sizeof(rfc)))), 0xddf2);
	assert_int_equal(be16toh(pk_csum_finish(pk_csum(header, sizeof(header)))), 0xb861);
	assert_int_equal(pk_csum(rfc, 0), 0);
	/* RFC 1624 section 4: old 0x5555, new 0x3285, checksum dd2f -> 0000. */
	assert_int_equal(
		be16toh(pk_csum_update16(htobe16(0xdd2f), htobe16(0x5555), htobe16(0x3285))),
		0x0000);
	assert_int_equal(pk_csum_finish_udp(0xffff), 0xffff);
}

static void test_all_lengths(void **state)
{
	static uint8_t data[1024];

	srand(1);
	for (size_t bytes = 0; bytes < 600; bytes++) {
		for (size_t off = 0; off < 9; off++) {
			fill_random(data, sizeof(data));
			assert_int_equal(be16toh(pk_csum_fold(pk_csum(data + off, bytes))),
					 slow_sum(data + off, bytes));
		}
	}
	/* The largest sums there are. */
	static uint8_t ones[PK_FRAME_MAX_BYTES];
	memset(ones, 0xff, sizeof(ones));
	assert_int_equal(pk_csum_fold(pk_csum(ones, sizeof(ones) - 1)), 0xffff);
}

static void test_fold(void **state)
{
	srand(2);
	for (unsigned i = 0; i < 1000000; i++) {
		uint64_t sum =
			((uint64_t)rand() << 40) ^ ((uint64_t)rand() << 20) ^ (uint64_t)rand();

		sum >>= rand() % 64;
		assert_int_equal(pk_csum_fold(sum) % 65535, sum % 65535);
		assert_int_equal(pk_csum_fold(sum) == 0, sum == 0);
		/* Shifted by a byte. */
		assert_int_equal(pk_csum_fold(pk_csum_odd(sum)),
				 __builtin_bswap16(pk_csum_fold(sum)));
	}
	assert_int_equal(pk_csum_fold(UINT64_MAX), 0xffff);
	assert_int_equal(pk_csum_fold(0xffffffff00000001), 1);
}

/* Any edit, by any of the three ways, gives what a full sum gives. */
static void test_incremental(void **state)
{
	uint8_t data[128], old[16];
	uint16_t csum, full;

	srand(3);
	fill_random(data, sizeof(data));
	csum = pk_csum_finish(pk_csum(data, sizeof(data)));
	for (unsigned i = 0; i < 200000; i++) {
		unsigned bytes = i % 3 == 0 ? 2 : i % 3 == 1 ? 4 : 2 * (1 + (unsigned)rand() % 8);
		unsigned at = 2 * ((unsigned)rand() % ((sizeof(data) - bytes) / 2 + 1));
		uint16_t old2, new2;
		uint32_t old4, new4;

		memcpy(old, data + at, bytes);
		if (rand() % 4 == 0)
			memset(data + at, rand() % 2 ? 0xff : 0, bytes);
		else
			fill_random(data + at, bytes);
		if (bytes == 2) {
			memcpy(&old2, old, 2);
			memcpy(&new2, data + at, 2);
			csum = pk_csum_update16(csum, old2, new2);
		} else if (bytes == 4) {
			memcpy(&old4, old, 4);
			memcpy(&new4, data + at, 4);
			csum = pk_csum_update32(csum, old4, new4);
		} else {
			csum = pk_csum_update(csum, old, data + at, bytes);
		}
		full = pk_csum_finish(pk_csum(data, sizeof(data)));
		assert_int_equal(csum, full);
	}
}

struct pool {
	struct pk_arena *arena;
	struct pk_cache *cache;
};

static void open_pool(struct pool *pool)
{
	struct pk_arena_config config = { .buffers = 256, .no_huge = true };

	assert_int_equal(pk_arena_create(&config, &pool->arena, NULL), 0);
	assert_int_equal(pk_cache_create(pool->arena, &pool->cache, NULL), 0);
}

static void close_pool(struct pool *pool)
{
	pk_cache_destroy(pool->cache);
	assert_int_equal(pk_arena_missing(pool->arena), 0);
	pk_arena_destroy(pool->arena);
}

/* Cuts a frame into slots of odd and even lengths; the first holds at least `head` bytes. */
static unsigned cut(struct pool *pool, const uint8_t *frame, uint32_t bytes, uint32_t head,
		    struct pk_slot *slots)
{
	unsigned n = 0;

	for (uint32_t at = 0; at < bytes; n++) {
		uint32_t len = n ? 1 + (uint32_t)rand() % 300 : head + (uint32_t)rand() % 20;

		len = HO_MIN(len, bytes - at);
		if (n == PK_FRAME_MAX_SLOTS - 1)
			len = bytes - at;
		assert_int_equal(pk_frame_from_bytes(pool->cache, frame + at, len, &slots[n], 1),
				 1);
		at += len;
		slots[n].flags = at < bytes ? PK_MORE : 0;
	}
	return n;
}

static void test_slots(void **state)
{
	static uint8_t frame[3000];
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	struct pool pool;

	srand(4);
	open_pool(&pool);
	for (unsigned i = 0; i < 3000; i++) {
		uint32_t bytes = 1 + (uint32_t)rand() % sizeof(frame);
		uint32_t off = (uint32_t)rand() % bytes, len = (uint32_t)rand() % (bytes - off + 1);
		unsigned n;

		fill_random(frame, bytes);
		n = cut(&pool, frame, bytes, 1, slots);
		assert_int_equal(
			be16toh(pk_csum_fold(pk_csum_slots(pool.arena, slots, n, off, len))),
			slow_sum(frame + off, len));
		pk_free_slots(pool.cache, slots, n);
	}
	close_pool(&pool);
}

/* A frame of either IP version with UDP, TCP or ICMP; all checksums 0. Returns its length. */
static uint32_t make_frame(uint8_t *f, unsigned version, uint8_t proto, uint32_t payload)
{
	uint32_t l4 = proto == PK_IP_TCP ? PK_TCP_BYTES : PK_UDP_BYTES, l3 = version == 4 ? 20 : 40;

	memset(f, 0, 14 + l3 + l4);
	pk_store16(f + 12, version == 4 ? PK_ETH_IPV4 : PK_ETH_IPV6);
	fill_random(f + 14 + l3 + l4, payload);
	f += 14;
	if (version == 4) {
		f[0] = 0x45;
		pk_store16(f + 2, (uint16_t)(l3 + l4 + payload));
		f[9] = proto;
		fill_random(f + 12, 8);
	} else {
		f[0] = 0x60;
		pk_store16(f + 4, (uint16_t)(l4 + payload));
		f[6] = proto;
		fill_random(f + 8, 32);
	}
	f += l3;
	fill_random(f, 4);
	if (proto == PK_IP_UDP)
		pk_store16(f + 4, (uint16_t)(l4 + payload));
	if (proto == PK_IP_TCP)
		f[12] = 0x50;
	if (proto == PK_IP_ICMP || proto == PK_IP_ICMPV6)
		memset(f + 2, 0, 2);
	return 14 + l3 + l4 + payload;
}

/* As a sender with checksum offload leaves it: the IPv4 checksum right, in the layer-4 field the
 * pseudo header's sum. Returns the field's offset. */
static uint32_t make_partial(uint8_t *frame, uint32_t bytes, unsigned version, uint8_t proto)
{
	uint32_t l3 = version == 4 ? 20 : 40, l4 = 14 + l3, addr[2], field;
	uint16_t csum;
	uint64_t sum;

	if (version == 4) {
		csum = pk_csum_finish(pk_csum(frame + 14, 20));
		memcpy(frame + 24, &csum, 2);
		memcpy(addr, frame + 26, 8);
		sum = proto == PK_IP_ICMP
			      ? 0
			      : pk_csum_pseudo4(addr[0], addr[1], proto, (uint16_t)(bytes - l4));
	} else {
		sum = pk_csum_pseudo6(frame + 22, frame + 38, proto, bytes - l4);
	}
	field = l4 + (proto == PK_IP_UDP ? 6 : proto == PK_IP_TCP ? 16 : 2);
	csum = pk_csum_fold(sum);
	memcpy(frame + field, &csum, 2);
	return field;
}

static void test_frames(void **state)
{
	static const struct {
		unsigned version;
		uint8_t proto;
	} kinds[] = {
		{ 4, PK_IP_UDP }, { 4, PK_IP_TCP }, { 4, PK_IP_ICMP },
		{ 6, PK_IP_UDP }, { 6, PK_IP_TCP }, { 6, PK_IP_ICMPV6 },
	};
	static uint8_t frame[2000], flat[2000];
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	struct pool pool;

	srand(5);
	open_pool(&pool);
	for (unsigned i = 0; i < 6000; i++) {
		unsigned version = kinds[i % 6].version, n;
		uint8_t proto = kinds[i % 6].proto;
		uint32_t bytes = make_frame(frame, version, proto, (uint32_t)rand() % 1800), field;
		uint32_t padding = i % 3 ? 0 : (uint32_t)rand() % 40, victim;
		uint16_t csum;

		field = make_partial(frame, bytes, version, proto);
		fill_random(frame + bytes, padding);
		n = cut(&pool, frame, bytes + padding, 80, slots);
		slots[0].flags |= PK_CSUM_PARTIAL;
		assert_int_equal(pk_csum_verify(pool.arena, slots, n), PK_CSUM_RESULT_OK);
		assert_int_equal(pk_csum_complete(pool.arena, slots, n), 0);
		assert_false(slots[0].flags & PK_CSUM_PARTIAL);
		assert_int_equal(pk_csum_verify(pool.arena, slots, n), PK_CSUM_RESULT_OK);
		/* The field is what a sum over everything, done otherwise, gives. */
		pk_frame_to_bytes(pool.arena, slots, n, flat, sizeof(flat));
		memcpy(&csum, flat + field, 2);
		assert_true(csum || proto != PK_IP_UDP);
		/* One flipped bit behind the field must show. */
		victim = field + 2 + (uint32_t)rand() % HO_MAX(1u, bytes - field - 2);
		if (victim < bytes && victim > 14 + 40 + 20) {
			uint32_t at = victim;
			unsigned s = 0;

			while (at >= slots[s].len)
				at -= slots[s++].len;
			pk_data(pool.arena, &slots[s])[at] ^= (uint8_t)(1u << rand() % 8);
			assert_int_equal(pk_csum_verify(pool.arena, slots, n),
					 PK_CSUM_RESULT_BAD_L4);
		}
		pk_free_slots(pool.cache, slots, n);
	}
	close_pool(&pool);
}

static void test_refusals(void **state)
{
	static uint8_t frame[200];
	struct pk_slot slot;
	struct pool pool;
	uint8_t *data;
	uint32_t bytes;

	open_pool(&pool);
	bytes = make_frame(frame, 4, PK_IP_UDP, 30);
	make_partial(frame, bytes, 4, PK_IP_UDP);
	assert_int_equal(pk_frame_from_bytes(pool.cache, frame, bytes, &slot, 1), 1);
	data = pk_data(pool.arena, &slot);
	/* Not completed: wrong. */
	assert_int_equal(pk_csum_verify(pool.arena, &slot, 1), PK_CSUM_RESULT_BAD_L4);
	/* UDP without a checksum. */
	memset(data + 40, 0, 2);
	assert_int_equal(pk_csum_verify(pool.arena, &slot, 1), PK_CSUM_RESULT_NONE);
	/* A header bit. */
	data[22] ^= 1;
	assert_int_equal(pk_csum_verify(pool.arena, &slot, 1), PK_CSUM_RESULT_BAD_IP);
	data[22] ^= 1;
	/* A fragment has nothing to complete. */
	data[20] = 0x20;
	slot.flags = PK_CSUM_PARTIAL;
	assert_int_equal(pk_csum_complete(pool.arena, &slot, 1), -EBADMSG);
	assert_true(slot.flags & PK_CSUM_PARTIAL);
	/* Nor another protocol, nor a broken header. */
	data[20] = 0;
	data[23] = PK_IP_ESP;
	assert_int_equal(pk_csum_complete(pool.arena, &slot, 1), -EBADMSG);
	data[14] = 0x55;
	assert_int_equal(pk_csum_complete(pool.arena, &slot, 1), -EBADMSG);
	assert_int_equal(pk_csum_verify(pool.arena, &slot, 1), PK_CSUM_RESULT_MALFORMED);
	pk_free_slots(pool.cache, &slot, 1);
	/* IPv6 may not do without. */
	bytes = make_frame(frame, 6, PK_IP_UDP, 30);
	assert_int_equal(pk_frame_from_bytes(pool.cache, frame, bytes, &slot, 1), 1);
	assert_int_equal(pk_csum_verify(pool.arena, &slot, 1), PK_CSUM_RESULT_BAD_L4);
	pk_free_slots(pool.cache, &slot, 1);
	assert_string_equal(pk_csum_name(PK_CSUM_RESULT_BAD_L4), "bad_l4");
	close_pool(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),  cmocka_unit_test(test_all_lengths),
		cmocka_unit_test(test_fold),     cmocka_unit_test(test_incremental),
		cmocka_unit_test(test_slots),    cmocka_unit_test(test_frames),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
