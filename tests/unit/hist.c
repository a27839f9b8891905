// SPDX-License-Identifier: BSD-2-Clause
/* The histogram: bucket edges over the whole range, quantiles against a sorted array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/hist.h"

static struct ho_hist hist;

static void test_edges(void **state)
{
	for (unsigned i = 0; i < HO_HIST_BUCKETS; i++) {
		uint64_t low = ho_hist_bucket_low(i);

		assert_int_equal(ho_hist_index(low), i);
		if (i)
			assert_int_equal(ho_hist_index(low - 1), i - 1);
	}
	assert_int_equal(ho_hist_index(0), 0);
	assert_int_equal(ho_hist_index(UINT64_MAX), HO_HIST_BUCKETS - 1);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_quantiles(void **state)
{
	enum { N = 20000 };
	static uint64_t values[N];
	const double qs[] = { 0.01, 0.5, 0.9, 0.99, 0.999 };
	double sum = 0;

	srand(3);
	ho_hist_init(&hist);
	for (unsigned i = 0; i < N; i++) {
		values[i] = ((uint64_t)rand() << 16 ^ (uint64_t)rand()) >> (rand() % 40);
		sum += (double)values[i];
		ho_hist_add(&hist, values[i]);
	}
	qsort(values, N, sizeof(values[0]), by_value);
	assert_int_equal(ho_hist_quantile(&hist, 0), values[0]);
	assert_int_equal(ho_hist_quantile(&hist, 1), values[N - 1]);
	for (unsigned i = 0; i < 5; i++) {
		double want = (double)values[(unsigned)(qs[i] * N) - 1];
		double got = (double)ho_hist_quantile(&hist, qs[i]);

		assert_true(got >= want * (1 - 1.0 / 64) - 1 && got <= want * (1 + 1.0 / 64) + 1);
	}
	assert_true(ho_hist_mean(&hist) > sum / N * 0.999999);
	assert_true(ho_hist_mean(&hist) < sum / N * 1.000001);
}

static void test_empty_and_merge(void **state)
{
	static struct ho_hist other;

	ho_hist_init(&hist);
	ho_hist_init(&other);
	assert_int_equal(ho_hist_quantile(&hist, 0.5), 0);
	assert_true(ho_hist_mean(&hist) == 0);
	ho_hist_add(&other, 7);
	ho_hist_merge(&hist, &other);
	ho_hist_add(&other, 9);
	ho_hist_merge(&hist, &other);
	assert_int_equal(hist.count, 3);
	assert_int_equal(hist.min, 7);
	assert_int_equal(hist.max, 9);
	assert_int_equal(ho_hist_quantile(&hist, 0.5), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_empty_and_merge),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
