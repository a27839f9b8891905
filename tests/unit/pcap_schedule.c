// SPDX-License-Identifier: BSD-2-Clause
/* When recorded frames are due: speeds, clocks that go back, passes, stamps that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "port/pcap_schedule.h"

#define SECOND INT64_C(1000000000)

static uint64_t due(struct pcap_schedule *s, __int128 stamp, bool back)
{
	bool went_back;
	uint64_t ns = pcap_schedule_frame(s, stamp, &went_back);

	assert_int_equal(went_back, back);
	return ns;
}

static void test_speed(void **state)
{
	struct pcap_schedule s = { .speed = 2 }, slow = { .speed = 0.5 };

	assert_int_equal(due(&s, 5 * SECOND, false), 0);
	assert_int_equal(due(&s, 5 * SECOND + 100, false), 50);
	assert_int_equal(due(&slow, 7, false), 0);
	assert_int_equal(due(&slow, 17, false), 20);
}

static void test_back(void **state)
{
	struct pcap_schedule s = { .speed = 1 };

	/* A little: with the frame before it, and the others at their own times. */
	due(&s, 100, false);
	assert_int_equal(due(&s, 140, false), 40);
	assert_int_equal(due(&s, 120, true), 40);
	assert_int_equal(due(&s, 150, false), 50);
	/* Much: the clock was set; gaps are the file's again. */
	assert_int_equal(due(&s, 150 - 3600 * SECOND, true), 50);
	assert_int_equal(due(&s, 170 - 3600 * SECOND, false), 70);
}

static void test_passes(void **state)
{
	struct pcap_schedule s = { .speed = 1 };

	for (unsigned pass = 0; pass < 3; pass++) {
		/* Three frames in 30 ns, and 15 ns to the next pass. */
		assert_int_equal(due(&s, 1000, false), pass * 45);
		assert_int_equal(due(&s, 1010, false), pass * 45 + 10);
		assert_int_equal(due(&s, 1030, false), pass * 45 + 30);
		pcap_schedule_pass(&s);
	}
}

/* The largest stamps that a file can hold, and the slowest replay: no sum wraps. */
static void test_broken(void **state)
{
	const __int128 most = (__int128)INT64_MAX * SECOND;
	struct pcap_schedule s = { .speed = 1e-9 };
	uint64_t last = 0;

	for (unsigned i = 0; i < 1000; i++) {
		bool back;
		uint64_t ns = pcap_schedule_frame(&s, i % 2 ? most : -most, &back);

		assert_true(ns >= last);
		assert_true(ns <= PCAP_TIME_MAX_NS);
		last = ns;
		if (i % 10 == 9)
			pcap_schedule_pass(&s);
	}
	assert_int_equal(last, PCAP_TIME_MAX_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_speed),
		cmocka_unit_test(test_back),
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
