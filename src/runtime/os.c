// SPDX-License-Identifier: BSD-2-Clause
/* The real clock: time is the TSC, tasks are pinned threads. Events are in os_event.c, interrupts
 * and NAPI in os_irq.c. */
#include "runtime/os.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"

#define NICE_HIGH (-10)

struct rt_task {
	pthread_t thread;
	enum rt_prio prio;
	char name[16];
	void (*fn)(void *arg);
	void *arg;
};

static uint64_t os_now_ns(struct rt *rt)
{
	return rt_tsc_to_ns(&rt->tsc, rt_tsc_read() - rt->tsc_start);
}

static void os_spend(struct rt *rt, enum rt_cost cost, uint32_t n)
{
	/* Real time passes by itself. */
}

static void os_relax(struct rt *rt)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void os_yield(struct rt *rt)
{
	sched_yield();
}

static int os_sleep_until(struct rt *rt, uint64_t at_ns)
{
	int rc = os_wait(rt, NULL, 0, at_ns ? at_ns : 1);

	return rc == -ETIMEDOUT ? 0 : rc;
}

static void *task_main(void *arg)
{
	struct rt_task *task = arg;

	pthread_setname_np(pthread_self(), task->name);
	/* Best effort: without CAP_SYS_NICE a task keeps the normal priority. */
	if (task->prio == RT_PRIO_HIGH)
		setpriority(PRIO_PROCESS, (id_t)gettid(), NICE_HIGH);
	else if (task->prio == RT_PRIO_IDLE)
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	task->fn(task->arg);
	return NULL;
}

static int os_spawn(struct rt *rt, const struct rt_task_attr *attr, void (*fn)(void *arg),
		    void *arg, struct rt_task **out, struct ho_err *err)
{
	struct rt_task *task;
	pthread_attr_t pattr;
	cpu_set_t set;
	int rc;

	if (attr->cpu >= 0 && !ho_cpu_usable(attr->cpu))
		return ho_err_set(err, -EINVAL,
				  "CPU %d is not there or not allowed for this process; %u are "
				  "('taskset -p $$' shows which)",
				  attr->cpu, ho_cpu_count());
	task = malloc(sizeof(*task));
	if (!task)
		return ho_err_set(err, -ENOMEM, "out of memory for a task");
	*task = (struct rt_task){ .prio = attr->prio, .fn = fn, .arg = arg };
	snprintf(task->name, sizeof(task->name), "%s", attr->name ? attr->name : "holdoff");
	pthread_attr_init(&pattr);
	if (attr->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(attr->cpu, &set);
		pthread_attr_setaffinity_np(&pattr, sizeof(set), &set);
	}
	rc = -pthread_create(&task->thread, &pattr, task_main, task);
	pthread_attr_destroy(&pattr);
	if (rc < 0) {
		free(task);
		return ho_err_set(err, rc, "cannot start thread '%s': %s", attr->name,
				  ho_strerror(rc));
	}
	*out = task;
	return 0;
}

static void os_join(struct rt *rt, struct rt_task *task)
{
	pthread_join(task->thread, NULL);
	free(task);
}

static void os_stop(struct rt *rt)
{
	uint64_t one = 1;
	ssize_t n;

	__atomic_store_n(&rt->stopping, true, __ATOMIC_RELAXED);
	n = write(rt_os_of(rt)->stop_fd, &one, sizeof(one));
	(void)n;
}

static void os_destroy(struct rt *rt)
{
	struct rt_os *os = rt_os_of(rt);

	close(os->stop_fd);
	free(os);
}

static const struct rt_ops os_ops = {
	.now_ns = os_now_ns,
	.spend = os_spend,
	.relax = os_relax,
	.yield = os_yield,
	.sleep_until = os_sleep_until,
	.spawn = os_spawn,
	.join = os_join,
	.event_create = os_event_create,
	.event_from_fd = os_event_from_fd,
	.event_destroy = os_event_destroy,
	.event_signal = os_event_signal,
	.event_arm = os_event_arm,
	.wait = os_wait,
	.irq_attach = os_irq_attach,
	.irq_detach = os_irq_detach,
	.napi_create = os_napi_create,
	.napi_schedule = os_napi_schedule,
	.napi_destroy = os_napi_destroy,
	.stop = os_stop,
	.destroy = os_destroy,
};

int rt_os_create(struct rt **out, struct ho_err *err)
{
	struct rt_os *os = calloc(1, sizeof(*os));

	if (!os)
		return ho_err_set(err, -ENOMEM, "out of memory for the executor");
	os->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (os->stop_fd < 0) {
		int rc = -errno;

		free(os);
		return ho_err_set(err, rc, "cannot make an event: %s", ho_strerror(rc));
	}
	os->base.ops = &os_ops;
	rt_tsc_calibrate(&os->base.tsc);
	os->base.tsc_start = rt_tsc_read();
	*out = &os->base;
	return 0;
}

bool rt_os_signal_pending(void)
{
	static const int asked[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t pending;

	if (sigpending(&pending) < 0)
		return false;
	for (unsigned i = 0; i < HO_ARRAY_LEN(asked); i++) {
		if (sigismember(&pending, asked[i]) == 1)
			return true;
	}
	return false;
}
