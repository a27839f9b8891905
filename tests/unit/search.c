// SPDX-License-Identifier: BSD-2-Clause
/* The search for the highest rate, on simulated devices with and without noise. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "traffic/search.h"

/* A device that forwards `capacity` frames/s and loses the rest, tested by a sender that makes at
 * most `sender`. */
struct device {
	double capacity, sender;
	double noise;      /* relative, of the capacity */
	unsigned stalls;   /* of 100 trials so many lose 5 % whatever the rate is */
	double least_loss; /* that it always has */
	uint64_t random;
	unsigned trials;
	int fail_at; /* trial that cannot be run; -1 = none */
	unsigned bad_confirmations;
};

static double uniform(struct device *d)
{
	d->random = d->random * 6364136223846793005u + 1442695040888963407u;
	return (double)(d->random >> 11) * 0x1p-53;
}

static int run(void *arg, struct tr_search_trial *trial)
{
	struct device *d = arg;
	double offered = trial->asked_pps > 0 ? fmin(trial->asked_pps, d->sender) : d->sender;
	double capacity = d->capacity * (1 + d->noise * (2 * uniform(d) - 1));

	if ((int)d->trials++ == d->fail_at)
		return -EIO;
	trial->achieved_pps = offered;
	trial->loss = fmax(d->least_loss, offered > capacity ? 1 - capacity / offered : 0);
	if (uniform(d) * 100 < d->stalls)
		trial->loss = fmax(trial->loss, 0.05);
	return 0;
}

static void note(void *arg, const struct tr_search_trial *trial)
{
	struct device *d = arg;

	if (trial->confirming && !trial->good)
		d->bad_confirmations++;
}

static const struct tr_search_config exact = {
	.loss = 0, .precision = 0.01, .confirm = 3, .trials_max = 200
};

static void test_exact(void **state)
{
	for (double capacity = 37; capacity < 5e7; capacity *= 7.3) {
		struct device d = { .capacity = capacity, .sender = 6e7, .fail_at = -1 };
		struct tr_search_result result;

		assert_int_equal(tr_search(&exact, run, note, &d, &result), 0);
		assert_true(result.found);
		assert_false(result.sender_limited);
		/* Never above, and within the precision below. */
		assert_true(result.pps <= capacity);
		assert_true(result.pps >= capacity * 0.985);
		assert_true(result.loss == 0);
		assert_int_equal(result.trials, d.trials);
	}
}

static void test_allowed_loss(void **state)
{
	struct tr_search_config config = exact;
	struct device d = { .capacity = 1e6, .sender = 2e6, .fail_at = -1 };
	struct tr_search_result result;

	config.loss = 0.1;
	assert_int_equal(tr_search(&config, run, note, &d, &result), 0);
	/* A tenth may be lost: 1/0.9 of the capacity. */
	assert_true(result.pps <= 1e6 / 0.9 && result.pps >= 0.985 * 1e6 / 0.9);
}

static void test_sender_is_the_limit(void **state)
{
	struct device d = { .capacity = 1e9, .sender = 2e6, .fail_at = -1 };
	struct tr_search_result result;

	assert_int_equal(tr_search(&exact, run, note, &d, &result), 0);
	assert_true(result.found && result.sender_limited);
	assert_true(result.pps == 2e6);
	assert_int_equal(result.trials, 1 + exact.confirm);
}

static void test_nothing_found(void **state)
{
	struct device d = { .capacity = 1e6, .sender = 2e6, .least_loss = 0.01, .fail_at = -1 };
	struct tr_search_result result;

	assert_int_equal(tr_search(&exact, run, note, &d, &result), 0);
	assert_false(result.found);
	assert_true(result.trials <= exact.trials_max);
}

static void test_noise(void **state)
{
	unsigned found = 0, bad_confirmations = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		/* A capacity that moves by 2 %, and a stall in 5 of 100 trials. */
		struct device d = { .capacity = 1.2e6,
				    .sender = 5e6,
				    .noise = 0.02,
				    .stalls = 5,
				    .random = seed * 977,
				    .fail_at = -1 };
		struct tr_search_result result;

		assert_int_equal(tr_search(&exact, run, note, &d, &result), 0);
		if (!result.found)
			continue;
		found++;
		bad_confirmations += d.bad_confirmations;
		/* Not above what can be had with luck, and not ruined by a stall. */
		assert_true(result.pps <= 1.2e6 * 1.02);
		assert_true(result.pps >= 1.2e6 * 0.80);
	}
	assert_true(found >= 198);
	/* The confirmations are there for a reason. */
	assert_true(bad_confirmations > 0);
}

static void test_failure(void **state)
{
	for (int at = 0; at < 12; at++) {
		struct device d = { .capacity = 1e6, .sender = 2e6, .fail_at = at };
		struct tr_search_result result;

		assert_int_equal(tr_search(&exact, run, note, &d, &result), -EIO);
		assert_int_equal(d.trials, at + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_allowed_loss),
		cmocka_unit_test(test_sender_is_the_limit),
		cmocka_unit_test(test_nothing_found),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
