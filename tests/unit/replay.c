// SPDX-License-Identifier: BSD-2-Clause
/* Capture files as sources: times, loops, workers, damaged files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "traffic/replay.h"
#include "traffic/spec.h"

/* A capture in the making. */
struct capture {
	uint8_t bytes[400000];
	uint32_t used;
};

static struct capture capture;
static char path[] = "/tmp/holdoff-replay-XXXXXX";

static void put32(uint32_t value)
{
	memcpy(capture.bytes + capture.used, &value, 4);
	capture.used += 4;
}

static void begin(uint32_t magic, uint32_t link)
{
	capture.used = 0;
	put32(magic);
	put32(2 | 4 << 16);
	put32(0);
	put32(0);
	put32(262144);
	put32(link);
}

#define NANO  0xa1b23c4d
#define MICRO 0xa1b2c3d4

/* A record whose bytes all hold `mark`. */
static void record(uint32_t sec, uint32_t frac, uint32_t caplen, uint32_t len, uint8_t mark)
{
	put32(sec);
	put32(frac);
	put32(caplen);
	put32(len);
	memset(capture.bytes + capture.used, mark, caplen);
	capture.used += caplen;
}

static void save(void)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(capture.bytes, 1, capture.used, file), capture.used);
	assert_int_equal(fclose(file), 0);
}

struct pool {
	struct pk_arena *arena;
	struct pk_cache *cache;
};

static int set_up(void **state)
{
	struct pk_arena_config config = { .buffers = 1024, .no_huge = true };
	struct pool *pool = calloc(1, sizeof(*pool));

	assert_int_equal(pk_arena_create(&config, &pool->arena, NULL), 0);
	assert_int_equal(pk_cache_create(pool->arena, &pool->cache, NULL), 0);
	*state = pool;
	return 0;
}

static int tear_down(void **state)
{
	struct pool *pool = *state;

	pk_cache_destroy(pool->cache);
	assert_int_equal(pk_arena_missing(pool->arena), 0);
	pk_arena_destroy(pool->arena);
	free(pool);
	return 0;
}

static struct tr_source *open_with(struct tr_replay_config config, unsigned worker,
				   unsigned workers)
{
	struct tr_source *source;
	struct ho_err err;

	config.path = path;
	save();
	if (tr_replay_create(&config, worker, workers, &source, &err))
		fail_msg("%s", err.text);
	return source;
}

/* The next frame's first byte, or -1 at the end; its length and its time. */
static int take(struct pool *pool, struct tr_source *source, uint32_t *bytes, uint64_t *due)
{
	struct pk_slot slots[PK_BURST];
	unsigned built, n;
	int mark;

	*due = tr_source_due_ns(source);
	n = tr_source_next(source, pool->cache, 0, slots, PK_BURST, 1, &built);
	if (!built) {
		assert_int_equal(n, 0);
		return -1;
	}
	*bytes = pk_frame_bytes(slots, n);
	mark = pk_data(pool->arena, slots)[0];
	pk_free_slots(pool->cache, slots, n);
	return mark;
}

static void expect(struct pool *pool, struct tr_source *source, int mark, uint32_t bytes,
		   uint64_t due)
{
	uint32_t have_bytes = 0;
	uint64_t have_due;

	assert_int_equal(take(pool, source, &have_bytes, &have_due), mark);
	assert_int_equal(have_due, due);
	if (mark >= 0)
		assert_int_equal(have_bytes, bytes);
}

static void test_times(void **state)
{
	struct tr_source *source;

	begin(NANO, 1);
	record(100, 999999999, 60, 60, 1);
	record(101, 0, 1514, 1514, 2);
	record(102, 500, 14, 14, 3);
	source = open_with((struct tr_replay_config){ .speed = 1, .loops = 1 }, 0, 1);
	expect(*state, source, 1, 60, 0);
	expect(*state, source, 2, 1514, 1);
	expect(*state, source, 3, 14, 1000000501);
	expect(*state, source, -1, 0, RT_FOREVER);
	assert_int_equal(tr_replay_error(source, NULL), 0);
	tr_source_destroy(source);

	source = open_with((struct tr_replay_config){ .speed = 2.5, .loops = 1 }, 0, 1);
	expect(*state, source, 1, 60, 0);
	expect(*state, source, 2, 1514, 0);
	expect(*state, source, 3, 14, 400000200);
	tr_source_destroy(source);

	source = open_with((struct tr_replay_config){ .speed = 0, .loops = 1 }, 0, 1);
	expect(*state, source, 1, 60, 0);
	expect(*state, source, 2, 1514, 0);
	expect(*state, source, 3, 14, 0);
	expect(*state, source, -1, 0, RT_FOREVER);
	tr_source_destroy(source);

	begin(MICRO, 1);
	record(7, 10, 60, 60, 1);
	record(7, 13, 60, 60, 2);
	source = open_with((struct tr_replay_config){ .speed = 1, .loops = 1 }, 0, 1);
	expect(*state, source, 1, 60, 0);
	expect(*state, source, 2, 60, 3000);
	tr_source_destroy(source);
}

static void test_loops(void **state)
{
	struct tr_replay_counts counts;
	struct tr_source *source;

	begin(NANO, 1);
	record(1, 0, 60, 60, 1);
	record(1, 100, 60, 60, 2);
	record(1, 300, 60, 60, 3);
	source = open_with((struct tr_replay_config){ .speed = 1, .loops = 2 }, 0, 1);
	expect(*state, source, 1, 60, 0);
	expect(*state, source, 2, 60, 100);
	expect(*state, source, 3, 60, 300);
	/* 300 and the mean gap of 150. */
	expect(*state, source, 1, 60, 450);
	expect(*state, source, 2, 60, 550);
	expect(*state, source, 3, 60, 750);
	expect(*state, source, -1, 0, RT_FOREVER);
	tr_replay_counts(source, &counts);
	assert_int_equal(counts.frames, 6);
	assert_int_equal(counts.loops, 2);
	tr_source_destroy(source);

	/* For ever, in more workers than there are frames: each gets its share. */
	source = open_with((struct tr_replay_config){ .speed = 1 }, 3, 5);
	for (unsigned i = 0; i < 3000; i++)
		expect(*state, source, (int)((3 + 5 * i) % 3 + 1), 60,
		       (3 + 5 * i) / 3 * 450 + (uint64_t[]){ 0, 100, 300 }[(3 + 5 * i) % 3]);
	tr_source_destroy(source);
}

/* Times that 64 bits of nanoseconds cannot hold neither wrap nor end the replay. */
static void test_far_times(void **state)
{
	struct tr_source *source;
	uint64_t last = 0, due;
	uint32_t bytes;

	begin(NANO, 1);
	record(0, 0, 60, 60, 1);
	record(0x7fffffff, 999999999, 60, 60, 2);
	source = open_with((struct tr_replay_config){ .speed = 0.1, .loops = 20 }, 0, 1);
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(take(*state, source, &bytes, &due), i % 2 + 1);
		assert_true(due >= last && due != RT_FOREVER);
		last = due;
	}
	expect(*state, source, -1, 0, RT_FOREVER);
	tr_source_destroy(source);
}

static void test_unsend(void **state)
{
	struct pool *pool = *state;
	struct pk_slot slots[PK_BURST];
	struct tr_source *source;
	unsigned next = 0, built;

	begin(NANO, 1);
	for (unsigned i = 0; i < 250; i++)
		record(1, i, 60 + i * 5, 60 + i * 5, (uint8_t)i);
	source = open_with((struct tr_replay_config){ .speed = 1, .loops = 8 }, 0, 1);
	srand(1);
	while (next < 2000) {
		unsigned used = tr_source_next(source, pool->cache, 0, slots, PK_BURST,
					       1 + (unsigned)rand() % 64, &built);
		unsigned back = (unsigned)rand() % (built + 1);

		assert_true(built > 0);
		for (unsigned i = 0; i < built; i++) {
			assert_int_equal(pk_data(pool->arena, &slots[i])[7], (next + i) % 250);
			assert_int_equal(slots[i].len, 60 + (next + i) % 250 * 5);
		}
		pk_free_slots(pool->cache, slots, used);
		tr_source_unsend(source, back);
		next += built - back;
	}
	assert_int_equal(tr_source_due_ns(source), RT_FOREVER);
	tr_source_destroy(source);
}

/* What cannot be sent as it is. */
static void test_odd_records(void **state)
{
	struct tr_replay_counts counts, sum = { 0 };
	struct tr_source *source;

	begin(NANO, 1);
	record(1, 0, 60, 60, 1);
	record(1, 10, 60, 9000, 2); /* captured in part */
	record(1, 5, 60, 60, 3);    /* earlier than its predecessor */
	record(1, 20, 13, 13, 4);
	record(1, 30, 65558, 65558, 5);
	record(1, 40, 65557, 65557, 6);
	record(1, 50, 0, 4000000000, 7);
	source = open_with((struct tr_replay_config){ .speed = 1, .loops = 1 }, 0, 1);
	expect(*state, source, 1, 60, 0);
	expect(*state, source, 2, 9000, 10);
	expect(*state, source, 3, 60, 10);
	expect(*state, source, 6, 65557, 40);
	expect(*state, source, -1, 0, RT_FOREVER);
	tr_replay_counts(source, &counts);
	assert_int_equal(counts.frames, 4);
	assert_int_equal(counts.padded, 1);
	assert_int_equal(counts.truncated, 0);
	assert_int_equal(counts.too_short, 1);
	assert_int_equal(counts.too_long, 2);
	assert_int_equal(counts.time_back, 1);
	tr_source_destroy(source);

	for (unsigned w = 0; w < 3; w++) {
		source = open_with((struct tr_replay_config){ .speed = 1,
							      .loops = 1,
							      .truncated = TR_REPLAY_SKIP },
				   w, 3);
		expect(*state, source, (int[]){ 1, 3, 6 }[w], (uint32_t[]){ 60, 60, 65557 }[w],
		       (uint64_t[]){ 0, 5, 40 }[w]);
		expect(*state, source, -1, 0, RT_FOREVER);
		tr_replay_counts(source, &counts);
		sum.frames += counts.frames;
		sum.truncated += counts.truncated;
		sum.too_short += counts.too_short;
		sum.too_long += counts.too_long;
		tr_source_destroy(source);
	}
	assert_int_equal(sum.frames, 3);
	assert_int_equal(sum.truncated, 1);
	assert_int_equal(sum.too_short, 1);
	assert_int_equal(sum.too_long, 2);
}

static void expect_error(struct tr_replay_config config, unsigned workers, const char *words)
{
	struct tr_source *source;
	struct ho_err err = { 0 };

	config.path = config.path ? config.path : path;
	assert_true(tr_replay_create(&config, 0, workers, &source, &err) < 0);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

static void test_bad_files(void **state)
{
	const struct tr_replay_config once = { .speed = 1, .loops = 1 };

	expect_error((struct tr_replay_config){ .path = "/nonexistent.pcap" }, 1,
		     "/nonexistent.pcap: No such file or directory");
	begin(0x12345678, 1);
	save();
	expect_error(once, 1, "unknown file format");
	capture.used = 0;
	save();
	expect_error(once, 1, "is empty");
	begin(NANO, 1);
	capture.used = 20;
	save();
	expect_error(once, 1, "truncated");
	begin(NANO, 105);
	save();
	expect_error(once, 1, "IEEE802_11");
	begin(NANO, 1);
	save();
	expect_error(once, 1, "no frame that can be sent");
	record(1, 0, 5, 5, 1);
	save();
	expect_error((struct tr_replay_config){ .speed = 1 }, 1, "no frame that can be sent");
	begin(NANO, 1);
	put32(1);
	put32(0);
	put32(0xffffffff);
	put32(60);
	save();
	expect_error(once, 1, "record 1 at byte 24");
	begin(NANO, 1);
	record(1, 0, 60, 60, 1);
	save();
	expect_error((struct tr_replay_config){ .speed = -1 }, 1, "speed");
	expect_error(once, 0, "worker 0 of 0");
}

/* Broken in the middle: all frames before come, then the end with the place. */
static void test_cut(void **state)
{
	uint32_t whole;

	begin(NANO, 1);
	for (unsigned i = 0; i < 3; i++)
		record(1, i, 100, 100, (uint8_t)i);
	whole = capture.used;
	for (uint32_t cut = 24 + 116; cut < whole; cut++) {
		struct tr_source *source;
		struct ho_err err = { 0 };
		bool between = (cut - 24) % 116 == 0;

		capture.used = cut;
		source = open_with((struct tr_replay_config){ .speed = 1, .loops = 1 }, 0, 1);
		for (unsigned i = 0; i < (cut - 24) / 116; i++)
			expect(*state, source, (int)i, 100, i);
		expect(*state, source, -1, 0, RT_FOREVER);
		assert_int_equal(tr_replay_error(source, &err), between ? 0 : -EINVAL);
		if (!between) {
			char words[64];

			snprintf(words, sizeof(words), "record %u at byte %u: truncated",
				 (cut - 24) / 116 + 1, (cut - 24) / 116 * 116 + 24);
			if (!strstr(err.text, words) || !strstr(err.text, path))
				fail_msg("'%s' does not say '%s'", err.text, words);
		}
		tr_source_destroy(source);
	}
}

static void test_pipe(void **state)
{
	char fd_path[64];
	int fds[2];

	begin(NANO, 1);
	record(1, 0, 60, 60, 1);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], capture.bytes, capture.used), capture.used);
	close(fds[1]);
	snprintf(fd_path, sizeof(fd_path), "/dev/fd/%d", fds[0]);
	expect_error(
		(struct tr_replay_config){
			.rt = &(struct rt){ 0 }, .path = fd_path, .speed = 1, .loops = 2 },
		1, "read once only");
	close(fds[0]);
}

/* Asking a generator for a replay's errors and counts is no crime. */
static void test_other_source(void **state)
{
	struct tr_spec_text text = { 0 };
	struct tr_replay_counts counts;
	struct tr_source *source;
	struct tr_spec *spec;

	assert_int_equal(tr_spec_create(&text, &spec, NULL), 0);
	assert_int_equal(tr_source_create(spec, 0, 1, &source, NULL), 0);
	assert_int_equal(tr_replay_error(source, NULL), 0);
	tr_replay_counts(source, &counts);
	assert_int_equal(counts.frames, 0);
	tr_source_destroy(source);
	tr_spec_destroy(spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_loops, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_far_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unsend, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_odd_records, set_up, tear_down),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_other_source),
	};
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
