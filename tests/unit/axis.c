// SPDX-License-Identifier: BSD-2-Clause
/* Values as people write them, and the points that they make. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "measure/axis.h"

static const char *joined(const struct ms_axis *axis, char buf[256])
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < axis->n && at < 256; i++)
		at += (size_t)snprintf(buf + at, 256 - at, "%s%s", i ? "|" : "", axis->value[i]);
	return buf;
}

static void test_values(void **state)
{
	static const struct {
		const char *text, *values;
	} cases[] = {
		{ "512", "512" },
		{ "256,512,1024", "256|512|1024" },
		{ " 256 , 512 ", "256|512" },
		{ "10..13", "10|11|12|13" },
		{ "7..7", "7" },
		{ "10..50 step 10", "10|20|30|40|50" },
		{ "10..55 step 10", "10|20|30|40|50" },
		{ "10..55  step\t20", "10|30|50" },
		{ "64..4096 step x2", "64|128|256|512|1024|2048|4096" },
		{ "1..100 step x10", "1|10|100" },
		{ "1,10..30 step 10,napi", "1|10|20|30|napi" },
		{ "1gbps..3gbps", "1gbps|2gbps|3gbps" },
		{ "10us..30us step 10us", "10us|20us|30us" },
		{ "10us..30us step 10", "10us|20us|30us" },
		{ "0..2", "0|1|2" },
		/* Ends at the last one that a number can be. */
		{ "18446744073709551614..18446744073709551615",
		  "18446744073709551614|18446744073709551615" },
		{ "0\\,1,2\\,3", "0,1|2,3" },
		{ "../a.yaml,e5-2630", "../a.yaml|e5-2630" },
		{ "60-64,imix", "60-64|imix" },
	};
	char buf[256];

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct ms_axes axes = { 0 };
		struct ho_err err = { 0 };

		if (ms_axes_add(&axes, "tx", cases[i].text, &err) < 0)
			fail_msg("'%s': %s", cases[i].text, err.text);
		assert_string_equal(joined(&axes.axis[0], buf), cases[i].values);
		ms_axes_fini(&axes);
	}
}

static void test_bad_values(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "a value is empty" },
		{ "1,,2", "a value is empty" },
		{ "1,", "a value is empty" },
		{ "256,512,256", "256 is given twice" },
		{ "10..12,11", "11 is given twice" },
		{ "50..10", "50..10 goes downwards" },
		{ "10..", "a range is FROM..TO" },
		{ "10..x", "a range is FROM..TO" },
		{ "10us..20ms", "a range is FROM..TO" },
		{ "1.5..2.5", "a range is FROM..TO" },
		{ "10..20 step", "after a range" },
		{ "10..20 stop 2", "after a range" },
		{ "10..20 step 2 3", "after a range" },
		{ "10..20 step y", "after a range" },
		{ "10..20 step 2us", "after a range" },
		{ "10us..20us step x2us", "after a range" },
		{ "10..20 step 0", "no end" },
		{ "10..20 step x1", "no end" },
		{ "0..20 step x2", "no end" },
		{ "0..18446744073709551615", "more than 4096 values" },
		{ "99999999999999999999..99999999999999999999", "a range is FROM..TO" },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct ms_axes axes = { 0 };
		struct ho_err err = { 0 };

		if (ms_axes_add(&axes, "tx", cases[i].text, &err) >= 0)
			fail_msg("'%s' was taken", cases[i].text);
		if (strncmp(err.text, "tx: ", 4) || !strstr(err.text, cases[i].why))
			fail_msg("'%s': %s", cases[i].text, err.text);
		ms_axes_fini(&axes);
	}
}

static void test_points(void **state)
{
	struct ms_axes axes = { 0 };
	struct ms_set set[MS_AXES_MAX];
	struct ho_err err = { 0 };
	struct ms_point point;
	char name[64];
	unsigned n;

	assert_int_equal(ms_axes_points(&axes, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(ms_axes_add(&axes, "a", "1,2", &err), 0);
	assert_int_equal(ms_axes_add(&axes, "b", "x", &err), 0);
	assert_int_equal(ms_axes_add(&axes, "c", "7,8,9", &err), 0);
	assert_int_equal(ms_axes_points(&axes, &n, &err), 0);
	assert_int_equal(n, 6);
	/* The last one is the fastest. */
	point = ms_axes_point(&axes, 0, set);
	assert_string_equal(ms_point_name(&point, name, sizeof(name)), "a=1 b=x c=7");
	point = ms_axes_point(&axes, 1, set);
	assert_string_equal(ms_point_name(&point, name, sizeof(name)), "a=1 b=x c=8");
	point = ms_axes_point(&axes, 5, set);
	assert_string_equal(ms_point_name(&point, name, sizeof(name)), "a=2 b=x c=9");
	assert_int_equal(ms_axes_add(&axes, "a", "3", &err), -EINVAL);
	assert_string_equal(err.text, "a is given twice");
	assert_int_equal(ms_axes_add(&axes, "d", "1..4096", &err), 0);
	assert_int_equal(ms_axes_points(&axes, &n, &err), 0);
	assert_int_equal(n, 6 * 4096);
	assert_int_equal(ms_axes_add(&axes, "e", "1..4096", &err), 0);
	assert_int_equal(ms_axes_points(&axes, &n, &err), -ERANGE);
	ms_axes_fini(&axes);
}

static void test_too_many(void **state)
{
	struct ms_axes axes = { 0 };
	struct ho_err err = { 0 };

	for (unsigned i = 0; i < MS_AXES_MAX; i++) {
		char name[8];

		snprintf(name, sizeof(name), "a%u", i);
		assert_int_equal(ms_axes_add(&axes, name, "1", &err), 0);
	}
	assert_int_equal(ms_axes_add(&axes, "b", "1", &err), -EINVAL);
	ms_axes_fini(&axes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
