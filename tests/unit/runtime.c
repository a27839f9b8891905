// SPDX-License-Identifier: BSD-2-Clause
/* The executor's contract (runtime/rt.h), on the real clock. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cpu.h"
#include "runtime/rt.h"

static struct rt *rt;

static int setup(void **state)
{
	return rt_os_create(&rt, NULL);
}

static int teardown(void **state)
{
	rt_destroy(rt);
	return 0;
}

static void test_time(void **state)
{
	uint64_t last = rt_now_ns(rt), start = last;

	for (int i = 0; i < 100000; i++) {
		uint64_t now = rt_now_ns(rt);

		assert_true(now >= last);
		last = now;
	}
	assert_int_equal(rt_sleep_until(rt, start + 20000000), 0);
	assert_true(rt_now_ns(rt) >= start + 20000000);
	assert_int_equal(rt_sleep_until(rt, 0), 0);
}

static void test_events(void **state)
{
	struct rt_event *ev[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(rt_event_create(rt, &ev[i], NULL), 0);
	assert_int_equal(rt_wait(rt, ev, 3, 0), -ETIMEDOUT);
	/* A latch: two signals are one; the lowest index first. */
	rt_event_signal(rt, ev[2]);
	rt_event_signal(rt, ev[1]);
	rt_event_signal(rt, ev[1]);
	assert_int_equal(rt_wait(rt, ev, 3, 0), 1);
	assert_int_equal(rt_wait(rt, ev, 3, RT_FOREVER), 2);
	assert_int_equal(rt_wait(rt, ev, 3, rt_now_ns(rt) + 1000000), -ETIMEDOUT);
	for (int i = 0; i < 3; i++)
		rt_event_destroy(rt, ev[i]);
}

static void test_timer(void **state)
{
	uint64_t start = rt_now_ns(rt);
	struct rt_event *ev;

	assert_int_equal(rt_event_create(rt, &ev, NULL), 0);
	rt_event_arm(rt, ev, start + 5000000);
	assert_int_equal(rt_wait(rt, &ev, 1, RT_FOREVER), 0);
	assert_true(rt_now_ns(rt) >= start + 5000000);
	rt_event_arm(rt, ev, rt_now_ns(rt) + 1000000);
	rt_event_arm(rt, ev, RT_FOREVER);
	assert_int_equal(rt_wait(rt, &ev, 1, rt_now_ns(rt) + 3000000), -ETIMEDOUT);
	rt_event_arm(rt, ev, 1); /* long past */
	assert_int_equal(rt_wait(rt, &ev, 1, RT_FOREVER), 0);
	rt_event_destroy(rt, ev);
}

static void test_fd_events(void **state)
{
	struct rt_event *ev;
	int fds[2];
	char c;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(rt_event_from_fd(rt, fds[0], &ev, NULL), 0);
	assert_int_equal(rt_wait(rt, &ev, 1, 0), -ETIMEDOUT);
	assert_int_equal(write(fds[1], "x", 1), 1);
	/* Level-triggered: still there until its owner reads. */
	assert_int_equal(rt_wait(rt, &ev, 1, 0), 0);
	assert_int_equal(rt_wait(rt, &ev, 1, 0), 0);
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(rt_wait(rt, &ev, 1, 0), -ETIMEDOUT);
	rt_event_destroy(rt, ev);
	close(fds[0]);
	close(fds[1]);
}

struct ping {
	struct rt_event *there, *back;
	int rounds, seen, rc;
};

static void echo(void *arg)
{
	struct ping *p = arg;

	while ((p->rc = rt_wait(rt, &p->there, 1, RT_FOREVER)) == 0) {
		p->seen++;
		rt_event_signal(rt, p->back);
	}
}

static void test_tasks_and_stop(void **state)
{
	struct rt_task_attr attr = { .name = "echo", .cpu = ho_cpu_nth(0) };
	struct ping p = { .rounds = 200 };
	struct rt_task *task;
	struct ho_err err;

	assert_int_equal(rt_event_create(rt, &p.there, NULL), 0);
	assert_int_equal(rt_event_create(rt, &p.back, NULL), 0);
	assert_int_equal(rt_spawn(rt, &attr, echo, &p, &task, NULL), 0);
	for (int i = 0; i < p.rounds; i++) {
		rt_event_signal(rt, p.there);
		assert_int_equal(rt_wait(rt, &p.back, 1, RT_FOREVER), 0);
	}
	rt_stop(rt);
	rt_join(rt, task);
	assert_int_equal(p.rc, -EINTR);
	assert_int_equal(p.seen, p.rounds);
	assert_int_equal(rt_wait(rt, &p.back, 1, RT_FOREVER), -EINTR);
	assert_int_equal(rt_sleep_until(rt, RT_FOREVER), -EINTR);
	attr.cpu = 100000;
	assert_int_equal(rt_spawn(rt, &attr, echo, &p, &task, &err), -EINVAL);
	assert_non_null(strstr(err.text, "100000"));
	rt_event_destroy(rt, p.there);
	rt_event_destroy(rt, p.back);
}

struct chip {
	struct rt_event *irq_event, *done;
	struct rt_napi *napi;
	int irqs;
	int left; /* packets waiting */
	int polls;
};

static void on_irq(void *arg)
{
	struct chip *chip = arg;

	__atomic_add_fetch(&chip->irqs, 1, __ATOMIC_RELAXED);
	rt_napi_schedule(rt, chip->napi);
}

static int on_poll(void *arg, int budget)
{
	struct chip *chip = arg;
	int n = HO_MIN(budget, __atomic_load_n(&chip->left, __ATOMIC_ACQUIRE));

	__atomic_add_fetch(&chip->polls, 1, __ATOMIC_RELAXED);
	if (__atomic_sub_fetch(&chip->left, n, __ATOMIC_ACQ_REL) == 0)
		rt_event_signal(rt, chip->done);
	return n;
}

static void test_irq_and_napi(void **state)
{
	struct rt_task_attr attr = { .name = "napi", .cpu = -1 };
	struct chip chip = { 0 };
	struct rt_irq *irq;

	assert_int_equal(rt_event_create(rt, &chip.irq_event, NULL), 0);
	assert_int_equal(rt_event_create(rt, &chip.done, NULL), 0);
	assert_int_equal(rt_napi_create(rt, &attr, 64, on_poll, &chip, &chip.napi, NULL), 0);
	assert_int_equal(rt_irq_attach(rt, chip.irq_event, &attr, on_irq, &chip, &irq, NULL), 0);
	for (int round = 1; round <= 50; round++) {
		__atomic_store_n(&chip.left, 1000, __ATOMIC_RELEASE);
		rt_event_signal(rt, chip.irq_event);
		assert_int_equal(rt_wait(rt, &chip.done, 1, RT_FOREVER), 0);
		assert_int_equal(__atomic_load_n(&chip.irqs, __ATOMIC_RELAXED), round);
	}
	rt_irq_detach(rt, irq);
	rt_napi_destroy(rt, chip.napi);
	/* 1000 packets with a weight of 64 are 16 polls a round, and no packet twice. */
	assert_true(chip.polls >= 16 * 50);
	assert_int_equal(chip.left, 0);
	rt_event_destroy(rt, chip.irq_event);
	rt_event_destroy(rt, chip.done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fd_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tasks_and_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_irq_and_napi, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
