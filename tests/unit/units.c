// SPDX-License-Identifier: BSD-2-Clause
/* Numbers with units: what is read, what is refused, how they are written. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/units.h"

static void test_counts(void **state)
{
	static const struct {
		const char *text;
		int rc;
		uint64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "10", 0, 10 },
		{ "10k", 0, 10000 },
		{ "1.5K", 0, 1500 },
		{ "64M", 0, 64000000 },
		{ "2g", 0, 2000000000 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "9007199254740993", 0, 9007199254740993u },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99t", 0, 99000000000000u },
		{ "1e3", 0, 1000 },
		{ "1.5", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "10 k", -EINVAL, 0 },
		{ "10q", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct ho_err err = { 0 };
		uint64_t value = 0;

		assert_int_equal(ho_parse_count(cases[i].text, &value, &err), cases[i].rc);
		if (cases[i].rc == 0)
			assert_true(value == cases[i].value);
		else
			assert_non_null(strstr(err.text, cases[i].text));
	}
}

static void test_times(void **state)
{
	uint64_t ns;

	assert_int_equal(ho_parse_time_ns("20us", &ns, NULL), 0);
	assert_int_equal(ns, 20000);
	assert_int_equal(ho_parse_time_ns("1.5ms", &ns, NULL), 0);
	assert_int_equal(ns, 1500000);
	assert_int_equal(ho_parse_time_ns("2min", &ns, NULL), 0);
	assert_true(ns == 120000000000u);
	assert_int_equal(ho_parse_time_ns("0", &ns, NULL), 0);
	assert_int_equal(ho_parse_time_ns("20", &ns, NULL), -EINVAL);
	assert_int_equal(ho_parse_time_ns("us", &ns, NULL), -EINVAL);
	assert_int_equal(ho_parse_time_ns("1.5ns", &ns, NULL), -EINVAL);
}

static void test_rates(void **state)
{
	static const struct {
		const char *text;
		enum ho_rate_unit unit;
		double value;
	} cases[] = {
		{ "max", HO_RATE_MAX, 0 },           { "10mpps", HO_RATE_PPS, 1e7 },
		{ "1pps", HO_RATE_PPS, 1 },          { "2.5Kpps", HO_RATE_PPS, 2500 },
		{ "5gbps", HO_RATE_L2_BPS, 5e9 },    { "5Gbit", HO_RATE_L2_BPS, 5e9 },
		{ "9gbps-l1", HO_RATE_L1_BPS, 9e9 }, { "50%", HO_RATE_PERCENT, 50 },
		{ "20us", HO_RATE_GAP, 20e-6 },
	};
	static const char *const bad[] = {
		"", "5", "5g", "0pps", "101%", "fast", "-5pps", "5xpps"
	};
	struct ho_rate rate;

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		assert_int_equal(ho_parse_rate(cases[i].text, &rate, NULL), 0);
		assert_int_equal(rate.unit, cases[i].unit);
		assert_true(rate.value > cases[i].value * 0.999999 - 1e-12 &&
			    rate.value < cases[i].value * 1.000001 + 1e-12);
	}
	for (size_t i = 0; i < HO_ARRAY_LEN(bad); i++)
		assert_int_equal(ho_parse_rate(bad[i], &rate, NULL), -EINVAL);
}

static void test_fractions(void **state)
{
	double f;

	assert_int_equal(ho_parse_fraction("0.1%", &f, NULL), 0);
	assert_true(f > 0.000999 && f < 0.001001);
	assert_int_equal(ho_parse_fraction("0.5", &f, NULL), 0);
	assert_int_equal(ho_parse_fraction("101%", &f, NULL), -EINVAL);
	assert_int_equal(ho_parse_fraction("1x", &f, NULL), -EINVAL);
}

static void test_formats(void **state)
{
	char buf[HO_UNIT_TEXT];

	assert_string_equal(ho_format_count(0, buf), "0");
	assert_string_equal(ho_format_count(999, buf), "999");
	assert_string_equal(ho_format_count(8917043, buf), "8,917,043");
	assert_string_equal(ho_format_count(UINT64_MAX, buf), "18,446,744,073,709,551,615");
	assert_string_equal(ho_format_si(8917043, buf), "8.917 M");
	assert_string_equal(ho_format_si(999999.9, buf), "1.000 M");
	assert_string_equal(ho_format_si(42, buf), "42 ");
	assert_string_equal(ho_format_ns(12345, buf), "12.35 us");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),  cmocka_unit_test(test_times),
		cmocka_unit_test(test_rates),   cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_formats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
