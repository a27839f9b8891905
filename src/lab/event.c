// SPDX-License-Identifier: BSD-2-Clause
/* Events, the waits for them, and interrupts attached to them. */
#include "lab/machine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void wake_for(struct rt_task *task)
{
	struct lab_cpu *c = task->exec->cur;

	lab_task_wake(task);
	lab_cpu_pass(c, c->exec->machine.wakeup, lab_cpu_other(c));
}

/* Interrupt context: hardware signalled an event that a task waits for, or did. */
static void wake_irq(void *arg)
{
	struct rt_event *event = arg;

	if (event->latched && event->waiter)
		wake_for(event->waiter);
}

static void event_timer(void *arg)
{
	struct rt_event *event = arg;

	lab_event_signal(&event->exec->rt, event);
}

int lab_event_create(struct rt *rt, struct rt_event **out, struct ho_err *err)
{
	struct rt_event *event = calloc(1, sizeof(*event));

	if (!event)
		return ho_err_set(err, -ENOMEM, "out of memory");
	event->exec = lab_exec_of(rt);
	event->wake_irq = (struct lab_source){ .name = "wake-up", .fn = wake_irq, .arg = event };
	sim_event_init_at(&event->timer, &event->exec->host, event_timer, event);
	*out = event;
	return 0;
}

int lab_event_from_fd(struct rt *rt, int fd, struct rt_event **out, struct ho_err *err)
{
	return ho_err_set(err, -ENOTSUP,
			  "%s: a file descriptor cannot be waited for in virtual time",
			  lab_exec_of(rt)->name);
}

void lab_event_destroy(struct rt *rt, struct rt_event *event)
{
	sim_cancel(lab_exec_of(rt)->sim, &event->timer);
	lab_cpu_unraise(&event->wake_irq);
	free(event);
}

void lab_event_signal(struct rt *rt, struct rt_event *event)
{
	struct lab_exec *x = lab_exec_of(rt);
	struct rt_task *task = event->waiter;

	if (event->irq) {
		lab_cpu_raise(&event->irq->source);
		return;
	}
	event->latched = true;
	if (event->main_waits)
		sim_schedule(event->exec->sim, &event->exec->to_main, sim_now(x->sim));
	if (!task || task->state != LAB_TASK_WAITS)
		return;
	if (x->cur) {
		wake_for(task);
		return;
	}
	if (event->wake_irq.cpu != task->cpu)
		lab_cpu_unraise(&event->wake_irq);
	event->wake_irq.cpu = task->cpu;
	lab_cpu_raise(&event->wake_irq);
}

void lab_event_arm(struct rt *rt, struct rt_event *event, uint64_t at_ns)
{
	struct lab_exec *x = lab_exec_of(rt);
	sim_ps at = lab_at(x, at_ns);

	if (at == SIM_NEVER)
		sim_cancel(x->sim, &event->timer);
	else
		sim_schedule(x->sim, &event->timer, at);
}

/* --- waiting ------------------------------------------------------------------------------ */

static void task_timer_irq(void *arg)
{
	struct rt_task *task = arg;

	if (task->timed_out)
		wake_for(task);
}

static void task_timer(void *arg)
{
	struct rt_task *task = arg;

	task->timed_out = true;
	lab_cpu_raise(&task->timer_irq);
}

void lab_task_timer_init(struct rt_task *task)
{
	sim_event_init_at(&task->timer, &task->exec->host, task_timer, task);
	task->timer_irq = (struct lab_source){
		.cpu = task->cpu,
		.name = "timer",
		.fn = task_timer_irq,
		.arg = task,
	};
}

/* The lowest signalled event is taken; -1 if there is none. */
static int take(struct rt_event *const *events, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (events[i]->latched) {
			events[i]->latched = false;
			return (int)i;
		}
	}
	return -1;
}

static void block_until(struct lab_cpu *c, sim_ps at)
{
	struct rt_task *task = c->running;

	task->timed_out = false;
	if (at != SIM_NEVER)
		sim_schedule(c->exec->sim, &task->timer, at);
	lab_task_block(c, true);
	sim_cancel(c->exec->sim, &task->timer);
	lab_cpu_unraise(&task->timer_irq);
}

/* Main waits: the clock runs until one of the events is signalled, or until `at`. False when
 * nothing can come any more. */
static bool run_clock(struct lab_exec *x, struct rt_event *const *events, unsigned n, sim_ps at)
{
	bool signalled = false, stepped = true;

	assert(sim_outside(x->sim));
	sim_spin_end_all(x->sim);
	for (unsigned i = 0; i < n; i++)
		events[i]->main_waits = true;
	if (at != SIM_NEVER)
		sim_schedule(x->sim, &x->to_main, at);
	while (!signalled && sim_now(x->sim) < at && !rt_stopping(&x->rt) && stepped) {
		stepped = sim_step(x->sim);
		for (unsigned i = 0; i < n; i++)
			signalled |= events[i]->latched;
	}
	/* What else is to happen at this moment. */
	if (!signalled && sim_now(x->sim) == at)
		sim_run_until(x->sim, at);
	sim_cancel(x->sim, &x->to_main);
	for (unsigned i = 0; i < n; i++)
		events[i]->main_waits = false;
	return stepped;
}

int lab_wait(struct rt *rt, struct rt_event *const *events, unsigned n, uint64_t deadline_ns)
{
	struct lab_exec *x = lab_exec_of(rt);
	sim_ps at = lab_at(x, deadline_ns);

	assert(n <= LAB_WAIT_MAX);
	for (;;) {
		struct lab_cpu *c = x->cur;
		int index;

		if (rt_stopping(rt))
			return -EINTR;
		index = take(events, n);
		if (index >= 0)
			return index;
		if (at <= sim_now(x->sim))
			return -ETIMEDOUT;
		if (!c) {
			if (!run_clock(x, events, n, at))
				return -ETIMEDOUT;
			continue;
		}
		for (unsigned i = 0; i < n; i++) {
			assert(!events[i]->waiter && !events[i]->irq);
			events[i]->waiter = c->running;
		}
		block_until(c, at);
		for (unsigned i = 0; i < n; i++)
			events[i]->waiter = NULL;
	}
}

int lab_sleep_until(struct rt *rt, uint64_t at_ns)
{
	struct lab_exec *x = lab_exec_of(rt);
	sim_ps at = lab_at(x, at_ns);

	if (!x->cur) {
		sim_run_until(x->sim, at);
		return rt_stopping(rt) ? -EINTR : 0;
	}
	while (!rt_stopping(rt) && at > sim_now(x->sim))
		block_until(x->cur, at);
	return rt_stopping(rt) ? -EINTR : 0;
}

/* --- interrupts --------------------------------------------------------------------------- */

int lab_irq_attach(struct rt *rt, struct rt_event *event, const struct rt_task_attr *attr,
		   void (*handler)(void *arg), void *arg, struct rt_irq **out, struct ho_err *err)
{
	struct lab_exec *x = lab_exec_of(rt);
	struct lab_cpu *c;
	struct rt_irq *irq;
	int rc = lab_exec_cpu_of(x, attr, 0, &c, err);

	if (rc)
		return rc;
	if (event->irq)
		return ho_err_set(err, -EBUSY,
				  "%s: the event of interrupt %s has a handler already", x->name,
				  attr->name);
	irq = calloc(1, sizeof(*irq));
	if (!irq)
		return ho_err_set(err, -ENOMEM, "out of memory");
	irq->exec = x;
	irq->event = event;
	snprintf(irq->name, sizeof(irq->name), "%s", attr->name ? attr->name : "irq");
	irq->source = (struct lab_source){ .cpu = c, .name = irq->name, .fn = handler, .arg = arg };
	event->irq = irq;
	if (event->latched) {
		event->latched = false;
		lab_cpu_raise(&irq->source);
	}
	*out = irq;
	return 0;
}

void lab_irq_detach(struct rt *rt, struct rt_irq *irq)
{
	lab_cpu_unraise(&irq->source);
	irq->event->irq = NULL;
	/* A handler that was entered must have come back: it and the caller's state are in use. */
	lab_cpu_await(irq->exec, &irq->source.running);
	free(irq);
}
