// SPDX-License-Identifier: BSD-2-Clause
/* Workers: order, failures that do not depend on their number, death, signals. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "measure/pool.h"

#define BIG 50000 /* more than a socket takes at once */

struct item {
	uint32_t number;
	uint8_t tail[BIG];
};

struct work {
	unsigned fail_at[2], die_at, exit_at; /* UINT_MAX = none */
	unsigned refuse_at;
	unsigned signal_at;
	pid_t self;
	unsigned got, last_progress;
};

#define NONE UINT32_MAX
#define WORK                                                                                   \
	{                                                                                      \
		.fail_at = { NONE, NONE }, .die_at = NONE, .exit_at = NONE, .refuse_at = NONE, \
		.signal_at = NONE                                                              \
	}

static int work(void *ctx, unsigned i, void *result, struct ho_err *err)
{
	struct work *w = ctx;
	struct item *item = result;

	/* Later ones are faster, so that they overtake. */
	if (i < 4)
		usleep(20000 - 5000 * i);
	if (i == w->fail_at[0] || i == w->fail_at[1])
		return ho_err_set(err, -ERANGE, "it is odd");
	if (i == w->die_at)
		raise(SIGKILL);
	if (i == w->exit_at)
		_exit(7);
	if (i == w->signal_at) {
		kill(w->self, SIGTERM);
		pause();
	}
	assert_int_equal(item->number, 0);
	assert_int_equal(item->tail[BIG - 1], 0);
	item->number = i * i;
	memset(item->tail, (int)i, BIG);
	return 0;
}

static int result(void *ctx, unsigned i, const void *data, struct ho_err *err)
{
	const struct item *item = data;
	struct work *w = ctx;

	assert_int_equal(i, w->got);
	w->got++;
	if (i == w->refuse_at)
		return ho_err_set(err, -EPIPE, "no more");
	assert_int_equal(item->number, i * i);
	assert_int_equal(item->tail[0], i & 0xff);
	assert_int_equal(item->tail[BIG - 1], i & 0xff);
	return 0;
}

static void progress(void *ctx, unsigned done, unsigned items)
{
	struct work *w = ctx;

	assert_int_equal(done, w->last_progress + 1);
	assert_true(done <= items);
	w->last_progress = done;
}

static const char *name(void *ctx, unsigned i, char *buf, size_t bytes)
{
	snprintf(buf, bytes, "item %u", i);
	return buf;
}

static int run(struct work *w, unsigned items, unsigned jobs, struct ho_err *err)
{
	struct ms_pool pool = {
		.items = items,
		.jobs = jobs,
		.result_bytes = sizeof(struct item),
		.ctx = w,
		.work = work,
		.result = result,
		.progress = progress,
		.name = name,
	};
	int rc = ms_pool_run(&pool, err);

	/* No worker is left, in whatever way it ended. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return rc;
}

static const unsigned jobs[] = { 1, 2, 3, 7, 64 };

static void test_order(void **state)
{
	for (size_t j = 0; j < HO_ARRAY_LEN(jobs); j++) {
		struct work w = WORK;
		struct ho_err err = { 0 };

		assert_int_equal(run(&w, 30, jobs[j], &err), 0);
		assert_int_equal(w.got, 30);
		assert_int_equal(w.last_progress, 30);
	}
}

static void test_nothing(void **state)
{
	struct work w = WORK;

	assert_int_equal(run(&w, 0, 2, NULL), 0);
}

/* The lowest failure is told and what came before it is delivered, although a later one fails
 * sooner. */
static void test_failure(void **state)
{
	for (size_t j = 0; j < HO_ARRAY_LEN(jobs); j++) {
		struct work w = WORK;
		struct ho_err err = { 0 };

		w.fail_at[0] = 2;
		w.fail_at[1] = 3;
		assert_int_equal(run(&w, 30, jobs[j], &err), -ERANGE);
		assert_string_equal(err.text, "it is odd");
		assert_int_equal(w.got, 2);
	}
}

static void test_death(void **state)
{
	for (size_t j = 0; j < HO_ARRAY_LEN(jobs); j++) {
		struct work w = WORK;
		struct ho_err err = { 0 };

		w.die_at = 5;
		assert_int_equal(run(&w, 9, jobs[j], &err), -ECHILD);
		assert_string_equal(err.text, "item 5: its process died of signal 9 (Killed)");
		assert_int_equal(w.got, 5);
		w = (struct work)WORK;
		w.exit_at = 8;
		assert_int_equal(run(&w, 9, jobs[j], &err), -ECHILD);
		assert_string_equal(err.text, "item 8: its process ended with status 7");
		assert_int_equal(w.got, 8);
	}
}

static void test_refused(void **state)
{
	struct work w = WORK;
	struct ho_err err = { 0 };

	w.refuse_at = 3;
	assert_int_equal(run(&w, 30, 2, &err), -EPIPE);
	assert_string_equal(err.text, "no more");
	assert_int_equal(w.got, 4);
}

static void test_signal(void **state)
{
	struct work w = WORK;
	struct ho_err err = { 0 };
	sigset_t before, after;

	w.self = getpid();
	w.signal_at = 4;
	sigprocmask(SIG_BLOCK, NULL, &before);
	assert_int_equal(run(&w, 30, 2, &err), -EINTR);
	assert_non_null(strstr(err.text, "interrupted"));
	sigprocmask(SIG_BLOCK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
	sigpending(&after);
	assert_false(sigismember(&after, SIGTERM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),   cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_failure), cmocka_unit_test(test_death),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
