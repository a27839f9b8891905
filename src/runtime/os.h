/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the real-clock executor: what its files share. Users see runtime/rt.h. */
#ifndef HOLDOFF_RUNTIME_OS_H
#define HOLDOFF_RUNTIME_OS_H

#include <time.h>

#include "runtime/rt.h"

struct rt_os {
	struct rt base;
	int stop_fd; /* eventfd, written once by stop and never read: every poll sees it */
};

struct rt_event {
	int fd;       /* polled */
	bool owned;   /* created here, closed here */
	bool drains;  /* eventfd or timerfd: a wait reads it */
	int timer_fd; /* -1 until armed for the first time */
};

static inline struct rt_os *rt_os_of(struct rt *rt)
{
	return HO_CONTAINER_OF(rt, struct rt_os, base);
}

/* The rt_ops members, by file. */
int os_event_create(struct rt *rt, struct rt_event **out, struct ho_err *err);
int os_event_from_fd(struct rt *rt, int fd, struct rt_event **out, struct ho_err *err);
void os_event_destroy(struct rt *rt, struct rt_event *event);
void os_event_signal(struct rt *rt, struct rt_event *event);
void os_event_arm(struct rt *rt, struct rt_event *event, uint64_t at_ns);
int os_wait(struct rt *rt, struct rt_event *const *events, unsigned n, uint64_t deadline_ns);
int os_irq_attach(struct rt *rt, struct rt_event *event, const struct rt_task_attr *attr,
		  void (*handler)(void *arg), void *arg, struct rt_irq **out, struct ho_err *err);
void os_irq_detach(struct rt *rt, struct rt_irq *irq);
int os_napi_create(struct rt *rt, const struct rt_task_attr *attr, int weight,
		   int (*poll)(void *arg, int budget), void *arg, struct rt_napi **out,
		   struct ho_err *err);
void os_napi_schedule(struct rt *rt, struct rt_napi *napi);
void os_napi_destroy(struct rt *rt, struct rt_napi *napi);

/* The relative timeout until deadline_ns; false for RT_FOREVER. */
bool os_timeout(struct rt *rt, uint64_t deadline_ns, struct timespec *out);

#endif
