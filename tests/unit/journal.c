// SPDX-License-Identifier: BSD-2-Clause
/* The journal of changed settings, over a modelled driver on the loopback interface's name. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "linux/journal.h"

/*
 * The driver: shared between processes. Adaptive moderation and rx-usecs depend on each other as
 * in many drivers: while it is on, rx-usecs is refused; turning it on changes rx-usecs. A change
 * of the channels resets the ring.
 */
struct driver {
	uint64_t rx, usecs, adaptive, combined;
	bool stuck; /* the ring can no more be changed */
};
static struct driver *driver;
static char dir[] = "/tmp/holdoff-journal-XXXXXX";

static int drv_list(const char *ifname, struct lx_setting *out, unsigned room, struct ho_err *err)
{
	const struct lx_setting now[] = {
		{ .name = "rx", .value = driver->rx, .min = 64, .max = 4096 },
		{ .name = "rx-usecs", .value = driver->usecs, .max = 1000 },
		{ .name = "adaptive-rx", .value = driver->adaptive, .max = 1 },
		{ .name = "combined", .value = driver->combined, .min = 1, .max = 8 },
		{ .name = "tso", .value = 1, .max = 1, .fixed = true },
	};

	(void)err;
	assert_string_equal(ifname, "lo");
	assert_true(room >= 5);
	memcpy(out, now, sizeof(now));
	return 5;
}

static int drv_set(const char *ifname, const char *name, uint64_t value, uint64_t *got,
		   struct ho_err *err)
{
	assert_string_equal(ifname, "lo");
	if (!strcmp(name, "rx")) {
		if (driver->stuck)
			return ho_err_set(err, -EBUSY, "stuck");
		driver->rx = value;
	} else if (!strcmp(name, "rx-usecs")) {
		if (driver->adaptive)
			return ho_err_set(err, -EINVAL, "adaptive");
		driver->usecs = value;
	} else if (!strcmp(name, "adaptive-rx")) {
		driver->adaptive = value;
		if (value)
			driver->usecs = 50;
	} else if (!strcmp(name, "combined")) {
		driver->combined = value;
		driver->rx = 512;
	} else {
		return ho_err_set(err, -EOPNOTSUPP, "%s", name);
	}
	if (got)
		*got = value;
	return 0;
}

static const struct lx_journal_backend backend = { drv_list, drv_set };
static const struct driver fresh = { .rx = 256, .usecs = 3, .adaptive = 0, .combined = 2 };

static int setup(void **state)
{
	(void)state;
	*driver = fresh;
	return 0;
}

static void assert_fresh(void)
{
	assert_memory_equal(driver, &fresh, sizeof(fresh));
}

static unsigned files(void)
{
	char command[128];
	unsigned n = 99;
	FILE *f;

	snprintf(command, sizeof(command), "ls %s | wc -l", dir);
	f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &n), 1);
	pclose(f);
	return n;
}

static void must_set(struct lx_journal *j, const char *name, uint64_t value)
{
	struct ho_err err = { 0 };

	if (lx_journal_set(j, name, value, NULL, &err) < 0)
		fail_msg("%s", err.text);
}

static struct lx_journal *must_open(struct lx_restored *left)
{
	struct lx_journal *j = NULL;
	struct ho_err err = { 0 };

	if (lx_journal_open("lo", true, &backend, &j, left, &err) < 0)
		fail_msg("%s", err.text);
	return j;
}

static void change_all(struct lx_journal *j)
{
	must_set(j, "rx", 1024);
	must_set(j, "combined", 4);
	must_set(j, "rx-usecs", 20);
	must_set(j, "adaptive-rx", 1);
	assert_int_equal(driver->rx, 512);
}

static void close_restores(void **state)
{
	struct lx_journal *j = must_open(NULL);
	struct ho_err err = { 0 };
	uint64_t before = 0;

	(void)state;
	change_all(j);
	assert_true(lx_journal_before(j, "rx", &before));
	assert_int_equal(before, 256);
	assert_false(lx_journal_before(j, "tso", &before)); /* fixed */
	assert_int_equal(lx_journal_close(j, &err), 0);
	assert_fresh();
	assert_int_equal(files(), 0);
}

static void keep_keeps(void **state)
{
	struct lx_journal *j = must_open(NULL);
	struct ho_err err = { 0 };

	(void)state;
	must_set(j, "rx", 1024);
	assert_int_equal(lx_journal_keep(j, &err), 0);
	assert_int_equal(lx_journal_close(j, &err), 0);
	assert_int_equal(driver->rx, 1024);
	assert_int_equal(files(), 0);

	/* Kept, then changed again: the second change revokes it. */
	*driver = fresh;
	j = must_open(NULL);
	must_set(j, "rx", 1024);
	assert_int_equal(lx_journal_keep(j, &err), 0);
	must_set(j, "rx", 2048);
	assert_int_equal(lx_journal_close(j, &err), 0);
	assert_fresh();
}

/* In a child: changes, then dies by kill -9, as the caller likes before or after `keep`. */
static void die_in_the_middle(bool kept)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct lx_journal *j = must_open(NULL);
		struct ho_err err = { 0 };

		change_all(j);
		if (kept && lx_journal_keep(j, &err) < 0)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(driver->combined, 4);
	assert_int_equal(files(), 1);
}

static void next_open_restores(void **state)
{
	struct lx_restored left;
	struct lx_journal *j;
	struct ho_err err = { 0 };

	(void)state;
	die_in_the_middle(false);
	j = must_open(&left);
	assert_string_equal(left.ifname, "lo");
	assert_true(left.changed >= 4);
	assert_non_null(strstr(left.text, "combined 4 -> 2"));
	assert_fresh();
	assert_int_equal(lx_journal_close(j, &err), 0);
	assert_fresh();
	assert_int_equal(files(), 0);
}

struct seen {
	unsigned n;
	struct lx_restored last;
};

static void seen(void *arg, const struct lx_restored *restored)
{
	struct seen *s = arg;

	s->n++;
	s->last = *restored;
}

static void recover_restores(void **state)
{
	struct seen s = { 0 };
	struct ho_err err = { 0 };

	(void)state;
	die_in_the_middle(false);
	assert_int_equal(lx_journal_recover(NULL, &backend, seen, &s, &err), 1);
	assert_int_equal(s.n, 1);
	assert_fresh();
	assert_int_equal(lx_journal_recover(NULL, &backend, seen, &s, &err), 0);

	/* Settings that were to stay do, although their owner died. */
	die_in_the_middle(true);
	s = (struct seen){ 0 };
	assert_int_equal(lx_journal_recover("lo", &backend, seen, &s, &err), 1);
	assert_true(s.last.obsolete);
	assert_int_equal(driver->combined, 4);
	assert_int_equal(files(), 0);
}

static void second_owner_is_refused(void **state)
{
	struct lx_journal *j = must_open(NULL), *second = NULL;
	struct ho_err err = { 0 };
	char pid[16];

	(void)state;
	assert_int_equal(lx_journal_open("lo", true, &backend, &second, NULL, &err), -EBUSY);
	must_set(j, "rx", 1024);
	assert_int_equal(lx_journal_open("lo", true, &backend, &second, NULL, &err), -EBUSY);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_non_null(strstr(err.text, pid));
	assert_int_equal(lx_journal_recover("lo", &backend, NULL, NULL, &err), -EBUSY);
	assert_int_equal(lx_journal_recover(NULL, &backend, NULL, NULL, &err), 0);
	assert_int_equal(driver->rx, 1024);
	assert_int_equal(lx_journal_close(j, &err), 0);
	assert_fresh();
}

static void failure_is_said_and_kept(void **state)
{
	struct lx_journal *j = must_open(NULL);
	struct ho_err err = { 0 };
	struct seen s = { 0 };

	(void)state;
	must_set(j, "rx", 1024);
	driver->stuck = true;
	assert_int_equal(lx_journal_close(j, &err), -EIO);
	assert_non_null(strstr(err.text, "rx is 1024"));
	assert_non_null(strstr(err.text, "256"));
	assert_int_equal(files(), 1);
	assert_int_equal(lx_journal_recover("lo", &backend, seen, &s, &err), -EIO);
	driver->stuck = false;
	assert_int_equal(lx_journal_recover("lo", &backend, seen, &s, &err), 1);
	assert_fresh();
	assert_int_equal(files(), 0);
}

/* A journal of another boot, of another card, cut short, of something else altogether. */
static void strange_journals(void **state)
{
	static const struct {
		const char *edit; /* sed's */
		int rc;           /* of recover */
		bool changed;     /* are settings still as the dead owner left them? */
	} cases[] = {
		{ "s/^boot .*/boot 00000000-0000/", 1, true },
		{ "s/^mac .*/mac 02:00:00:00:00:99/", 1, true },
		{ "/^end/d", 1, true },
		{ "s/^holdoff-journal 1/holdoff-journal 9/", -EBADMSG, true },
		{ "s/^was rx .*/was rx many/", -EBADMSG, true },
		{ "s/^was rx .*/was no-such-thing 3/", 1, false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ho_err err = { 0 };
		char command[256];

		*driver = fresh;
		die_in_the_middle(false);
		snprintf(command, sizeof(command), "sed -i '%s' %s/*", cases[i].edit, dir);
		assert_int_equal(system(command), 0);
		assert_int_equal(lx_journal_recover(NULL, &backend, NULL, NULL, &err), cases[i].rc);
		assert_int_equal(driver->combined, cases[i].changed ? 4 : 2);
		snprintf(command, sizeof(command), "rm -f %s/*", dir);
		assert_int_equal(system(command), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(close_restores, setup),
		cmocka_unit_test_setup(keep_keeps, setup),
		cmocka_unit_test_setup(next_open_restores, setup),
		cmocka_unit_test_setup(recover_restores, setup),
		cmocka_unit_test_setup(second_owner_is_refused, setup),
		cmocka_unit_test_setup(failure_is_said_and_kept, setup),
		cmocka_unit_test_setup(strange_journals, setup),
	};
	int rc;

	driver = mmap(NULL, sizeof(*driver), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (driver == MAP_FAILED || !mkdtemp(dir))
		return 1;
	setenv("HOLDOFF_RUN_DIR", dir, 1);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return rc;
}
