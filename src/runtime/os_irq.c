// SPDX-License-Identifier: BSD-2-Clause
/* Interrupts and NAPI of the real clock: a thread each. */
#include <errno.h>
#include <stdlib.h>

#include "runtime/os.h"

struct rt_irq {
	struct rt *rt;
	struct rt_event *event; /* the interrupt; its owner's */
	struct rt_event *quit;
	struct rt_task *task;
	void (*handler)(void *arg);
	void *arg;
};

static void irq_thread(void *arg)
{
	struct rt_irq *irq = arg;
	struct rt_event *events[] = { irq->quit, irq->event };

	while (rt_wait(irq->rt, events, 2, RT_FOREVER) == 1)
		irq->handler(irq->arg);
}

int os_irq_attach(struct rt *rt, struct rt_event *event, const struct rt_task_attr *attr,
		  void (*handler)(void *arg), void *arg, struct rt_irq **out, struct ho_err *err)
{
	struct rt_irq *irq = malloc(sizeof(*irq));
	struct rt_task_attr high = *attr;
	int rc;

	if (!irq)
		return ho_err_set(err, -ENOMEM, "out of memory for an interrupt");
	*irq = (struct rt_irq){ .rt = rt, .event = event, .handler = handler, .arg = arg };
	rc = rt_event_create(rt, &irq->quit, err);
	if (rc < 0)
		goto free_irq;
	high.prio = RT_PRIO_HIGH;
	rc = rt_spawn(rt, &high, irq_thread, irq, &irq->task, err);
	if (rc < 0)
		goto destroy_quit;
	*out = irq;
	return 0;
destroy_quit:
	rt_event_destroy(rt, irq->quit);
free_irq:
	free(irq);
	return rc;
}

void os_irq_detach(struct rt *rt, struct rt_irq *irq)
{
	rt_event_signal(rt, irq->quit);
	rt_join(rt, irq->task);
	rt_event_destroy(rt, irq->quit);
	free(irq);
}

enum napi_state {
	NAPI_IDLE,
	NAPI_SCHEDULED, /* will be polled */
	NAPI_POLLING,
	NAPI_AGAIN, /* scheduled while polling */
};

struct rt_napi {
	struct rt *rt;
	int state; /* enum napi_state, atomic */
	int weight;
	bool quit; /* atomic */
	struct rt_event *wake;
	struct rt_task *task;
	int (*poll)(void *arg, int budget);
	void *arg;
};

static void napi_thread(void *arg)
{
	struct rt_napi *napi = arg;

	while (!__atomic_load_n(&napi->quit, __ATOMIC_ACQUIRE)) {
		int state = NAPI_SCHEDULED;

		if (!__atomic_compare_exchange_n(&napi->state, &state, NAPI_POLLING, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			if (rt_wait(napi->rt, &napi->wake, 1, RT_FOREVER) < 0)
				return;
			continue;
		}
		if (napi->poll(napi->arg, napi->weight) >= napi->weight) {
			__atomic_store_n(&napi->state, NAPI_SCHEDULED, __ATOMIC_RELEASE);
			if (rt_stopping(napi->rt))
				return;
			continue;
		}
		state = NAPI_POLLING;
		if (!__atomic_compare_exchange_n(&napi->state, &state, NAPI_IDLE, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			__atomic_store_n(&napi->state, NAPI_SCHEDULED, __ATOMIC_RELEASE);
	}
}

int os_napi_create(struct rt *rt, const struct rt_task_attr *attr, int weight,
		   int (*poll)(void *arg, int budget), void *arg, struct rt_napi **out,
		   struct ho_err *err)
{
	struct rt_napi *napi = malloc(sizeof(*napi));
	int rc;

	if (!napi)
		return ho_err_set(err, -ENOMEM, "out of memory for a NAPI instance");
	*napi = (struct rt_napi){ .rt = rt, .weight = weight, .poll = poll, .arg = arg };
	rc = rt_event_create(rt, &napi->wake, err);
	if (rc < 0)
		goto free_napi;
	rc = rt_spawn(rt, attr, napi_thread, napi, &napi->task, err);
	if (rc < 0)
		goto destroy_wake;
	*out = napi;
	return 0;
destroy_wake:
	rt_event_destroy(rt, napi->wake);
free_napi:
	free(napi);
	return rc;
}

void os_napi_schedule(struct rt *rt, struct rt_napi *napi)
{
	int state = __atomic_load_n(&napi->state, __ATOMIC_ACQUIRE);

	for (;;) {
		int next;

		if (state == NAPI_SCHEDULED || state == NAPI_AGAIN)
			return;
		next = state == NAPI_IDLE ? NAPI_SCHEDULED : NAPI_AGAIN;
		if (__atomic_compare_exchange_n(&napi->state, &state, next, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
			if (next == NAPI_SCHEDULED)
				rt_event_signal(rt, napi->wake);
			return;
		}
	}
}

void os_napi_destroy(struct rt *rt, struct rt_napi *napi)
{
	__atomic_store_n(&napi->quit, true, __ATOMIC_RELEASE);
	rt_event_signal(rt, napi->wake);
	rt_join(rt, napi->task);
	rt_event_destroy(rt, napi->wake);
	free(napi);
}
