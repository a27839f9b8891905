// SPDX-License-Identifier: BSD-2-Clause
/* The generator: the same frames whatever bursts and workers are, checksums right, stamps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "packet/csum.h"
#include "traffic/source.h"
#include "traffic/spec.h"
#include "traffic/stamp.h"

/* One stream each; together they make every kind of frame and field. */
static const struct tr_stream_text kinds[] = {
	{ .size = "60" },
	{ .size = "60", .src_port = "1000-2000", .udp_checksum = "no" },
	{ .size = "61-131", .src_port = "1000-2000", .payload = "random" },
	{ .size = "random 60-1514", .dst_port = "random 1-65535 every 3", .payload = "counting" },
	{ .size = "imix", .ip_dst = "10.0.0.0/24", .ip_src = "10.1.0.1-10.1.3.0 step 7" },
	{ .size = "random imix", .ip_dst = "random 10.0.0.0/8" },
	{ .ip_src = "2001:db8::/64 every 2", .ip_dst = "random 2001:db8:1::/64" },
	{ .ip_src = "2001:db8::1,2001:db8:1::2,fe80::3", .payload = "text:odd", .size = "99" },
	{ .ip_dst = "random 2001:db8::1,2001:db8:1::2,fe80::3", .flow_label = "0-1048575 step 3" },
	{ .vlan = "100", .size = "64-80" },
	{ .vlan = "1-4094", .vlan2 = "random 5,6,7", .vlan_pcp = "0-7", .vlan2_dei = "0,1" },
	{ .proto = "tcp",
	  .tcp_seq = "0-4294967295 step 1460",
	  .tcp_flags = "sa",
	  .size = "70-100" },
	{ .proto = "tcp", .ip_src = "fd00::1", .tcp_window = "random 0-65535", .tcp_ack = "5-1" },
	{ .proto = "icmp", .icmp_seq = "0-65535", .icmp_id = "1,2,3 every 10" },
	{ .proto = "icmp", .ip_dst = "fd00::1", .icmp_seq = "0-65535", .size = "80,81" },
	{ .proto = "253", .ttl = "1-255", .tos = "0-255 step 4", .ip_id = "0-65535", .df = "yes" },
	{ .ethertype = "0x88b5",
	  .eth_dst = "02:00:00:00:01:00-02:00:00:00:02:00",
	  .eth_src = "random 02:00:00:00:01:00-02:00:00:00:02:00",
	  .payload = "hex:dead01" },
	{ .size = "9000-9018", .payload = "random", .src_port = "1-9" },
	{ .size = "1500-4000", .payload = "random", .ip_src = "fd00::1-fd00::ffff" },
	{ .size = "65549", .payload = "random", .src_port = "1-65535", .proto = "tcp" },
};

struct fixture {
	struct pk_arena *arena;
	struct pk_cache *cache;
};

static int set_up(void **state)
{
	struct pk_arena_config config = { .buffers = 4096, .no_huge = true };
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(pk_arena_create(&config, &f->arena, NULL), 0);
	assert_int_equal(pk_cache_create(f->arena, &f->cache, NULL), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	pk_cache_destroy(f->cache);
	assert_int_equal(pk_arena_missing(f->arena), 0);
	pk_arena_destroy(f->arena);
	free(f);
	return 0;
}

static struct tr_spec *make_spec(const struct tr_stream_text *streams, unsigned n,
				 const char *stamp)
{
	struct tr_spec_text text = {
		.stamp = stamp,
		.streams = streams,
		.n_streams = n,
	};
	struct tr_spec *spec;
	struct ho_err err;

	if (tr_spec_create(&text, &spec, &err))
		fail_msg("%s", err.text);
	return spec;
}

/* Compares `frames` frames of one worker with the slow way, in bursts of random size. */
static void check_sequence(struct fixture *f, const struct tr_spec *spec, unsigned worker,
			   unsigned workers, uint64_t from, unsigned frames)
{
	static uint8_t want[PK_FRAME_MAX_BYTES], have[PK_FRAME_MAX_BYTES];
	struct pk_slot slots[PK_BURST * 2];
	struct tr_source *source;

	assert_int_equal(tr_source_create(spec, worker, workers, &source, NULL), 0);
	while (frames) {
		unsigned ask = 1 + (unsigned)rand() % PK_BURST, built, at = 0;
		unsigned used = tr_source_next(source, f->cache, 1, slots,
					       PK_FRAME_MAX_SLOTS + (unsigned)rand() % PK_BURST,
					       HO_MIN(ask, frames), &built);

		assert_true(built > 0);
		for (unsigned i = 0; i < built; i++) {
			unsigned n = pk_frame_slots(slots + at, used - at);
			uint32_t bytes = tr_spec_frame(spec, worker + from * workers, want);

			assert_int_equal(
				pk_frame_to_bytes(f->arena, slots + at, n, have, sizeof(have)),
				bytes);
			assert_memory_equal(want, have, bytes);
			pk_free_slots(f->cache, slots + at, n);
			at += n;
			from++;
		}
		assert_int_equal(at, used);
		frames -= built;
		/* Now and then some are not sent. */
		if (rand() % 4 == 0) {
			unsigned back = (unsigned)rand() % (built + 1);

			tr_source_unsend(source, back);
			from -= back;
		}
	}
	tr_source_destroy(source);
}

static void test_same_frames(void **state)
{
	srand(1);
	for (unsigned i = 0; i < HO_ARRAY_LEN(kinds); i++) {
		struct tr_spec *spec = make_spec(&kinds[i], 1, "no");

		check_sequence(*state, spec, 0, 1, 0, 300);
		check_sequence(*state, spec, 1, 3, 0, 300);
		tr_spec_destroy(spec);
	}
}

static void test_mixture(void **state)
{
	struct tr_stream_text mixed[HO_ARRAY_LEN(kinds)];
	char weight[HO_ARRAY_LEN(kinds)][8];
	struct tr_spec *spec;

	srand(2);
	memcpy(mixed, kinds, sizeof(mixed));
	for (unsigned i = 0; i < HO_ARRAY_LEN(kinds); i++) {
		snprintf(weight[i], sizeof(weight[i]), "%u", i * 7 % 5);
		mixed[i].weight = weight[i];
	}
	spec = make_spec(mixed, HO_ARRAY_LEN(mixed), "no");
	check_sequence(*state, spec, 0, 1, 0, 1000);
	check_sequence(*state, spec, 0, 2, 0, 500);
	check_sequence(*state, spec, 6, 7, 0, 500);
	tr_spec_destroy(spec);
}

/* Stamped frames: checksums by the parser, and the stamp's numbers. */
static void test_stamps(void **state)
{
	struct fixture *f = *state;

	srand(3);
	for (unsigned i = 0; i < HO_ARRAY_LEN(kinds); i++) {
		struct tr_spec *spec = make_spec(&kinds[i], 1, "auto");
		struct pk_slot slots[PK_BURST];
		struct tr_source *source;
		struct tr_spec_info info;
		uint32_t sequence = 0;

		tr_spec_info(spec, &info);
		assert_true(info.stamped);
		assert_int_equal(tr_source_create(spec, 2, 5, &source, NULL), 0);
		while (sequence < 400) {
			uint64_t now = (uint64_t)rand() << 20 | (unsigned)rand();
			unsigned built, at = 0;
			unsigned used = tr_source_next(source, f->cache, now, slots, PK_BURST,
						       1 + (unsigned)rand() % 40, &built);

			for (unsigned b = 0; b < built; b++) {
				unsigned n = pk_frame_slots(slots + at, used - at);
				const struct pk_slot *last = &slots[at + n - 1];
				enum pk_csum_result csum = pk_csum_verify(f->arena, slots + at, n);
				bool none = kinds[i].udp_checksum || kinds[i].ethertype ||
					    (kinds[i].proto && kinds[i].proto[0] == '2');
				struct tr_stamp stamp;

				assert_int_equal(csum,
						 none ? PK_CSUM_RESULT_NONE : PK_CSUM_RESULT_OK);
				assert_true(n == 1 || last->len >= TR_STAMP_BYTES);
				if (info.stamped) {
					assert_true(tr_stamp_read(pk_data(f->arena, last) +
									  last->len -
									  TR_STAMP_BYTES,
								  &stamp));
					assert_int_equal(stamp.stream, 2);
					assert_int_equal(stamp.sequence, sequence);
					assert_int_equal(stamp.time_ns, now);
				}
				sequence++;
				at += n;
			}
			pk_free_slots(f->cache, slots, used);
		}
		tr_source_destroy(source);
		tr_spec_destroy(spec);
	}
}

static void test_empty_pool(void **state)
{
	struct pk_arena_config config = { .buffers = 5, .no_huge = true };
	struct tr_spec *small = make_spec(&kinds[0], 1, "no"),
		       *large = make_spec(&kinds[17], 1, "no");
	struct pk_slot slots[PK_BURST];
	struct tr_source *source;
	struct pk_arena *arena;
	struct pk_cache *cache;
	unsigned built;

	assert_int_equal(pk_arena_create(&config, &arena, NULL), 0);
	assert_int_equal(pk_cache_create(arena, &cache, NULL), 0);
	assert_int_equal(tr_source_create(small, 0, 1, &source, NULL), 0);
	assert_int_equal(tr_source_next(source, cache, 0, slots, PK_BURST, 9, &built), 5);
	assert_int_equal(built, 5);
	assert_int_equal(tr_source_next(source, cache, 0, slots + 5, 9, 9, &built), 0);
	assert_int_equal(built, 0);
	pk_free_slots(cache, slots, 5);
	assert_int_equal(tr_source_due_ns(source), 0);
	tr_source_destroy(source);
	assert_int_equal(tr_source_create(large, 0, 1, &source, NULL), 0);
	assert_int_equal(tr_source_next(source, cache, 0, slots, 4, 2, &built), 0);
	assert_int_equal(tr_source_next(source, cache, 0, slots, PK_BURST, 2, &built), 5);
	assert_int_equal(built, 1);
	pk_free_slots(cache, slots, 5);
	tr_source_destroy(source);
	assert_int_equal(tr_source_create(small, 3, 3, &source, NULL), -EINVAL);
	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
	tr_spec_destroy(small);
	tr_spec_destroy(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_frames, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mixture, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stamps, set_up, tear_down),
		cmocka_unit_test(test_empty_pool),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
