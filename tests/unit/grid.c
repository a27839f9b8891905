// SPDX-License-Identifier: BSD-2-Clause
/* A scenario's points in several processes: the same as one run at a time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "measure/grid.h"

static const struct ms_set common[] = { { "warmup", "1ms" }, { "duration", "2ms" } };
static const struct ms_set sets[][3] = {
	{ { "tx", "256" }, { "rx-usecs", "10" } },
	{ { "tx", "1024" }, { "rx-usecs", "50" }, { "series", "base" } },
	{ { "tx", "512" }, { "rx-usecs", "1" } },
};
static const struct ms_point points[] = { { sets[0], 2 }, { sets[1], 3 }, { sets[2], 2 } };

struct seen {
	unsigned n;
	struct lab_result result[3];
	struct lab_limiter limiter[3];
};

static int result(void *ctx, unsigned i, const struct lab_result *r, const struct lab_limiter *l,
		  struct ho_err *err)
{
	struct seen *seen = ctx;

	assert_int_equal(i, seen->n);
	seen->result[i] = *r;
	seen->result[i].wall_seconds = seen->result[i].cpu_seconds = 0;
	seen->limiter[i] = *l;
	seen->n++;
	return 0;
}

static struct lab_scenario *load(void)
{
	struct lab_scenario *s;

	assert_int_equal(lab_scenario_load("ixgbe-txring", &s, NULL), 0);
	return s;
}

static struct ms_grid grid_of(struct lab_scenario *s, struct seen *seen)
{
	return (struct ms_grid){
		.scenario = s,
		.common = common,
		.n_common = 2,
		.point = points,
		.n = 3,
		.ctx = seen,
		.result = result,
	};
}

static struct seen one, many;

static void test_same(void **state)
{
	struct lab_scenario *s = load();
	struct ms_grid grid = grid_of(s, &one);

	memset(&one, 0, sizeof(one));
	memset(&many, 0, sizeof(many));
	grid.jobs = 1;
	assert_int_equal(ms_grid_run(&grid, NULL), 0);
	grid.jobs = 3;
	grid.ctx = &many;
	assert_int_equal(ms_grid_run(&grid, NULL), 0);
	assert_int_equal(one.n, 3);
	assert_memory_equal(&one, &many, sizeof(one));
	for (unsigned i = 0; i < 3; i++) {
		struct lab_result direct;
		struct lab_scenario *p;

		assert_int_equal(ms_grid_scenario(&grid, i, &p, NULL), 0);
		assert_int_equal(lab_run(p, NULL, &direct, NULL), 0);
		assert_int_equal(direct.digest, one.result[i].digest);
		assert_int_equal(direct.workload[0].packets, one.result[i].workload[0].packets);
		assert_true(direct.workload[0].packets > 0);
		lab_scenario_free(p);
	}
	assert_int_equal(one.result[0].chip[0].tx_ring, 256);
	assert_int_equal(one.result[1].chip[0].tx_ring, 1024);
	/* Names are those of the scenario here. */
	assert_ptr_equal(one.result[2].chip[0].name, s->hosts[0].chips[0].name);
	assert_ptr_equal(one.result[2].workload[0].host_name, s->hosts[0].name);
	assert_string_equal(one.result[2].workload[0].name, "sender");
	assert_true(one.limiter[0].text[0] != '\0');
	lab_scenario_free(s);
}

static void test_bad_value(void **state)
{
	static const struct ms_set bad[] = { { "tx", "many" } };
	const struct ms_point with[] = { points[0], { bad, 1 } };
	struct lab_scenario *s = load();
	struct ms_grid grid = grid_of(s, &one);
	struct ho_err err = { 0 };

	memset(&one, 0, sizeof(one));
	grid.point = with;
	grid.n = 2;
	assert_int_equal(ms_grid_run(&grid, &err), -EINVAL);
	assert_memory_equal(err.text, "tx=many: ", 9);
	assert_int_equal(one.n, 1);
	lab_scenario_free(s);
}

static void test_name(void **state)
{
	char buf[64];

	assert_string_equal(ms_point_name(&points[0], buf, sizeof(buf)), "tx=256 rx-usecs=10");
	assert_string_equal(ms_point_name(&points[0], buf, 8), "tx=256 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_bad_value),
		cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
