// SPDX-License-Identifier: BSD-2-Clause
#include "linux/soaker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/compiler.h"
#include "base/cpu.h"
#include "runtime/tsc.h"

/* An interrupt's entry and exit alone cost more than the least gap that is not ours. */
#define GAP_NS    250u
#define GAP_LOOPS 8u
#define TRIAL     4096u
/* Readings between two looks at the stop flag, and two publications. */
#define BATCH 256u

struct worker {
	HO_CACHE_ALIGNED uint64_t ticks; /* left over; written by its thread */
	const struct lx_soaker *soaker;
	pthread_t thread;
	unsigned cpu;
	bool failed;
};

struct lx_soaker {
	struct rt_tsc tsc;
	uint64_t gap_ticks;
	int stop;
	unsigned n;
	struct worker *worker;
};

static void *soak(void *arg)
{
	struct worker *w = arg;
	const struct lx_soaker *s = w->soaker;
	const struct sched_param param = { 0 };
	uint64_t last, mine = 0;

	/* Without this it would take from others: then rather nothing. */
	if (pthread_setschedparam(pthread_self(), SCHED_IDLE, &param) != 0) {
		__atomic_store_n(&w->failed, true, __ATOMIC_RELEASE);
		return NULL;
	}
	last = rt_tsc_read();
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		for (unsigned i = 0; i < BATCH; i++) {
			uint64_t now = rt_tsc_read(), gap = now - last;

			mine += gap < s->gap_ticks ? gap : 0;
			last = now;
		}
		__atomic_store_n(&w->ticks, mine, __ATOMIC_RELAXED);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What the loop takes by itself, the median. */
static uint64_t loop_ticks(void)
{
	static const unsigned n = TRIAL;
	uint64_t *gap = malloc(n * sizeof(*gap)), last = rt_tsc_read(), median;

	if (!gap)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		uint64_t now = rt_tsc_read();

		gap[i] = now - last;
		last = now;
	}
	qsort(gap, n, sizeof(*gap), compare);
	median = gap[n / 2];
	free(gap);
	return median;
}

static int start_worker(struct lx_soaker *s, struct worker *w)
{
	pthread_attr_t attr;
	sigset_t all, before;
	cpu_set_t set;
	int rc;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	pthread_attr_init(&attr);
	rc = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (rc == 0)
		rc = pthread_create(&w->thread, &attr, soak, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

int lx_soaker_start(struct lx_soaker **out, struct ho_err *err)
{
	struct lx_soaker *s = calloc(1, sizeof(*s));
	unsigned cpus = HO_MIN(ho_cpu_count(), (unsigned)CPU_SETSIZE);
	int rc = 0;

	if (s)
		s->worker = aligned_alloc(HO_CACHE_LINE, cpus * sizeof(*s->worker));
	if (!s || !s->worker) {
		free(s);
		return ho_err_set(err, -ENOMEM, "out of memory for a cycle soaker");
	}
	rt_tsc_calibrate(&s->tsc);
	s->gap_ticks = HO_MAX(rt_ns_to_tsc(&s->tsc, GAP_NS), GAP_LOOPS * loop_ticks());
	for (unsigned i = 0; i < cpus && rc == 0; i++) {
		int cpu = ho_cpu_nth(i);

		if (cpu < 0 || cpu >= CPU_SETSIZE)
			continue;
		s->worker[i] = (struct worker){ .soaker = s, .cpu = (unsigned)cpu };
		rc = start_worker(s, &s->worker[i]);
		s->n += rc == 0;
	}
	if (rc < 0) {
		lx_soaker_stop(s);
		return ho_err_set(err, rc, "cannot start a cycle soaker on each CPU: %s",
				  ho_strerror(rc));
	}
	*out = s;
	return 0;
}

void lx_soaker_stop(struct lx_soaker *s)
{
	if (!s)
		return;
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < s->n; i++)
		pthread_join(s->worker[i].thread, NULL);
	free(s->worker);
	free(s);
}

bool lx_soaker_read(const struct lx_soaker *s, unsigned cpu, uint64_t *soaked_ns, uint64_t *used_ns)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct worker *w = &s->worker[i];
		struct timespec ts = { 0 };
		clockid_t clock;

		if (w->cpu != cpu || __atomic_load_n(&w->failed, __ATOMIC_ACQUIRE))
			continue;
		*soaked_ns = rt_tsc_to_ns(&s->tsc, __atomic_load_n(&w->ticks, __ATOMIC_RELAXED));
		if (pthread_getcpuclockid(w->thread, &clock) == 0)
			clock_gettime(clock, &ts);
		*used_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
		return true;
	}
	return false;
}
