// SPDX-License-Identifier: BSD-2-Clause
/* Commands as workloads: the number read from what they print, and every way to fail. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "measure/workload.h"

#define LIMIT_NS 100000000000u /* for what ends at once, but on a busy machine */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int run(const char *command, const char *metric, uint64_t limit_ns, double *number,
	       struct ho_err *err)
{
	const struct ms_workload_config config = {
		.kind = MS_RUN, .command = command, .metric = metric, .limit_ns = limit_ns
	};
	struct ms_workload *w = NULL;
	int rc = ms_workload_create(&config, &w, err);

	if (rc == 0)
		rc = ms_workload_start(w, err);
	if (rc == 0)
		rc = ms_workload_wait(w, 0, -1, number, err);
	ms_workload_destroy(w);
	return rc;
}

static void numbers_are_read(void **state)
{
	static const struct {
		const char *command, *metric;
		double number;
	} cases[] = {
		{ "echo 'rate 12.5'", "rate ([0-9.]+)", 12.5 },
		{ "echo rate 1; echo rate 2", "rate ([0-9.]+)", 2 },      /* the last one */
		{ "echo '3.2 Gbits/sec'", "([0-9.]+ [KMG])bits", 3.2e9 }, /* prefix in the group */
		{ "echo 40k", "[0-9]+k", 40e3 },                          /* no group: all of it */
		{ "echo 5 >&2", "[0-9]+", 5 },                            /* standard error too */
		{ "printf '7\\n8x'", "^([0-9]+)", 8 },
		{ "seq 1 200000", "^([0-9]+)$", 200000 }, /* more than is kept */
		{ "echo aaa", "a*", NAN },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ho_err err = { 0 };
		double number;
		int rc = run(cases[i].command, cases[i].metric, LIMIT_NS, &number, &err);

		if (isnan(cases[i].number)) {
			assert_int_equal(rc, -ENODATA);
			continue;
		}
		if (rc < 0)
			fail_msg("%s: %s", cases[i].command, err.text);
		assert_true(number == cases[i].number);
	}
}

static void failures_are_said(void **state)
{
	struct ho_err err = { 0 };
	double number;

	(void)state;
	assert_int_equal(run("echo trouble; exit 3", "x", LIMIT_NS, &number, &err), -EIO);
	assert_non_null(strstr(err.text, "status 3"));
	assert_non_null(strstr(err.text, "trouble"));
	assert_int_equal(run("kill -9 $$", "x", LIMIT_NS, &number, &err), -EIO);
	assert_non_null(strstr(err.text, "signal 9"));
	assert_int_equal(run("echo nothing here", "([0-9]+)", LIMIT_NS, &number, &err), -ENODATA);
	assert_non_null(strstr(err.text, "nothing here"));
	assert_int_equal(run("true", "((", LIMIT_NS, &number, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'(('"));
	assert_int_equal(run("true", NULL, LIMIT_NS, &number, &err), 0);
	assert_true(isnan(number));
}

/* A command that does not end is killed with all that it started. */
static void overdue_commands_are_killed(void **state)
{
	struct ho_err err = { 0 };
	uint64_t began = now_ns();
	double number;

	(void)state;
	assert_int_equal(run("sleep 1000 & sleep 1000", "x", 200000000, &number, &err), -ETIMEDOUT);
	assert_true(now_ns() - began < 100000000000);
	/* One that closed its output but goes on. */
	assert_int_equal(run("exec >/dev/null 2>&1; sleep 1000", "x", 200000000, &number, &err),
			 -ETIMEDOUT);
}

static void a_stop_ends_it(void **state)
{
	const struct ms_workload_config config = { .kind = MS_RUN,
						   .command = "sleep 1000",
						   .limit_ns = 100000000000 };
	struct ms_workload *w = NULL;
	struct ho_err err = { 0 };
	double number;
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	assert_int_equal(ms_workload_create(&config, &w, &err), 0);
	assert_int_equal(ms_workload_start(w, &err), 0);
	assert_int_equal(ms_workload_wait(w, 0, pipes[0], &number, &err), -EINTR);
	ms_workload_destroy(w);
	close(pipes[0]);
	close(pipes[1]);
}

static void observing_takes_its_time(void **state)
{
	const struct ms_workload_config config = { .kind = MS_OBSERVE };
	struct ms_workload *w = NULL;
	struct ho_err err = { 0 };
	uint64_t until;
	double number;

	(void)state;
	assert_int_equal(ms_workload_create(&config, &w, &err), 0);
	assert_int_equal(ms_workload_start(w, &err), 0);
	until = now_ns() + 50000000;
	assert_int_equal(ms_workload_wait(w, until, -1, &number, &err), 0);
	assert_true(now_ns() >= until);
	ms_workload_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read),
		cmocka_unit_test(failures_are_said),
		cmocka_unit_test(overdue_commands_are_killed),
		cmocka_unit_test(a_stop_ends_it),
		cmocka_unit_test(observing_takes_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
