// SPDX-License-Identifier: BSD-2-Clause
/* The arena: accounting, colouring, multi-slot frames, caches, errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "packet/arena.h"

static struct pk_arena *make_arena(uint32_t buffers)
{
	struct pk_arena_config config = { .buffers = buffers, .no_huge = true };
	struct pk_arena *arena;

	assert_int_equal(pk_arena_create(&config, &arena, NULL), 0);
	return arena;
}

static void test_accounting(void **state)
{
	struct pk_arena *arena = make_arena(1000);
	struct pk_cache *a, *b;
	uint32_t bufs[1000];
	unsigned n = 0;
	bool seen[1000] = { false };

	assert_int_equal(pk_cache_create(arena, &a, NULL), 0);
	assert_int_equal(pk_cache_create(arena, &b, NULL), 0);
	while (n < 1000) {
		unsigned got = pk_alloc(a, bufs + n, HO_MIN(100u, 1000 - n));

		assert_int_equal(got, 100);
		n += got;
		assert_int_equal(pk_arena_missing(arena), n);
	}
	for (unsigned i = 0; i < n; i++) {
		assert_true(bufs[i] < 1000);
		assert_false(seen[bufs[i]]);
		seen[bufs[i]] = true;
	}
	assert_int_equal(pk_alloc(a, bufs, 1), 0);
	assert_int_equal(a->alloc_failed, 1);
	/* Freed into another worker's cache: still accounted for. */
	for (unsigned i = 0; i < n; i += 200)
		pk_free(b, bufs + i, 200);
	assert_int_equal(pk_arena_missing(arena), 0);
	pk_cache_destroy(a);
	pk_cache_destroy(b);
	assert_int_equal(pk_arena_missing(arena), 0);
	pk_arena_destroy(arena);
}

static void test_random_use(void **state)
{
	struct pk_arena *arena = make_arena(4096);
	struct pk_cache *cache[3];
	uint32_t held[4096], n = 0;

	srand(1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pk_cache_create(arena, &cache[i], NULL), 0);
	for (int step = 0; step < 100000; step++) {
		struct pk_cache *c = cache[rand() % 3];
		uint32_t want = (uint32_t)rand() % 200 + 1;

		if (rand() % 2) {
			n += pk_alloc(c, held + n, HO_MIN(want, 4096 - n));
		} else {
			want = HO_MIN(want, n);
			n -= want;
			pk_free(c, held + n, want);
		}
		assert_int_equal(pk_arena_missing(arena), n);
	}
	while (n) {
		uint32_t some = HO_MIN(n, 256u);

		n -= some;
		pk_free(cache[0], held + n, some);
	}
	for (int i = 0; i < 3; i++)
		pk_cache_destroy(cache[i]);
	assert_int_equal(pk_arena_missing(arena), 0);
	pk_arena_destroy(arena);
}

static void test_frames(void **state)
{
	struct pk_arena *arena = make_arena(256);
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	static uint8_t frame[PK_FRAME_MAX_BYTES], copy[PK_FRAME_MAX_BYTES];
	static const uint32_t lengths[] = {
		0, 1, 60, 1518, PK_ROOM_BYTES, PK_ROOM_BYTES + 1, 9018, PK_FRAME_MAX_BYTES
	};
	struct pk_cache *cache;

	assert_int_equal(pk_cache_create(arena, &cache, NULL), 0);
	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t i = 0; i < HO_ARRAY_LEN(lengths); i++) {
		unsigned n =
			pk_frame_from_bytes(cache, frame, lengths[i], slots, PK_FRAME_MAX_SLOTS);

		assert_true(n >= 1);
		assert_int_equal(pk_frame_slots(slots, n), n);
		assert_int_equal(pk_frame_bytes(slots, n), lengths[i]);
		assert_int_equal(pk_frame_to_bytes(arena, slots, n, copy, sizeof(copy)),
				 lengths[i]);
		assert_memory_equal(copy, frame, lengths[i]);
		pk_free_slots(cache, slots, n);
	}
	assert_int_equal(pk_frame_from_bytes(cache, frame, 9018, slots, 2), 0);
	assert_int_equal(pk_arena_missing(arena), 0);
	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
}

static void test_no_room(void **state)
{
	struct pk_arena *arena = make_arena(3);
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	static uint8_t frame[9018];
	struct pk_cache *cache;

	assert_int_equal(pk_cache_create(arena, &cache, NULL), 0);
	assert_int_equal(pk_frame_from_bytes(cache, frame, 9018, slots, PK_FRAME_MAX_SLOTS), 0);
	assert_int_equal(pk_arena_missing(arena), 0);
	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
}

static void test_colours(void **state)
{
	/* The headers of 33 * 64 consecutive buffers must not share cache sets more than evenly. */
	struct pk_arena *arena = make_arena(4096);
	unsigned hits[64] = { 0 };

	for (uint32_t i = 0; i < 4096; i++)
		hits[((uintptr_t)pk_buffer(arena, i) / HO_CACHE_LINE) % 64]++;
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(hits[i], 64);
	assert_int_equal(pk_buffer_at(arena, 5 * (size_t)arena->stride_bytes + 300), 5);
	pk_arena_destroy(arena);
}

static void test_bad_config(void **state)
{
	const struct pk_arena_config bad[] = {
		{ .stride_bytes = 2048 },
		{ .stride_bytes = 2100 },
		{ .stride_bytes = 64 },
		{ .buffers = 1u << 30 },
	};
	struct pk_arena *arena;
	struct ho_err err;

	for (size_t i = 0; i < HO_ARRAY_LEN(bad); i++) {
		assert_int_equal(pk_arena_create(&bad[i], &arena, &err), -EINVAL);
		assert_true(strlen(err.text) > 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accounting), cmocka_unit_test(test_random_use),
		cmocka_unit_test(test_frames),     cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_colours),    cmocka_unit_test(test_bad_config),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
