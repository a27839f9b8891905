// SPDX-License-Identifier: BSD-2-Clause
/* Tasks: run queues, switches, waiting for one another. */
#include "lab/machine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "lab/trace.h"

#define PRIO_IDLE_LOOP (-1)

static void queue_tail(struct lab_run_queue *q, struct rt_task *task)
{
	task->next = NULL;
	*q->tail = task;
	q->tail = &task->next;
}

static void queue_head(struct lab_run_queue *q, struct rt_task *task)
{
	if (!q->head)
		q->tail = &task->next;
	task->next = q->head;
	q->head = task;
}

static struct rt_task *queue_take(struct lab_run_queue *q)
{
	struct rt_task *task = q->head;

	q->head = task->next;
	if (!q->head)
		q->tail = &q->head;
	return task;
}

/* The highest priority that waits to run; PRIO_IDLE_LOOP if none. */
static int queued_prio(const struct lab_cpu *c)
{
	int prio = LAB_PRIOS - 1;

	while (prio >= 0 && !c->queue[prio].head)
		prio--;
	return prio;
}

static void slice_over(void *arg)
{
	struct lab_cpu *c = arg;

	c->slice_over = true;
	lab_cpu_want(c, LAB_WANT_RESCHED);
}

static void enqueue(struct rt_task *task)
{
	struct lab_cpu *c = task->cpu;
	struct lab_exec *x = c->exec;

	queue_tail(&c->queue[task->prio], task);
	if (task->prio > c->running->prio)
		lab_cpu_want(c, LAB_WANT_RESCHED);
	else if (task->prio == c->running->prio && !sim_scheduled(&c->slice))
		sim_schedule(x->sim, &c->slice, c->slice_end);
}

void lab_task_wake(struct rt_task *task)
{
	if (task->state != LAB_TASK_WAITS)
		return;
	task->state = LAB_TASK_READY;
	enqueue(task);
}

/* The new running task's first steps, on its own stack. */
static void switched(struct lab_cpu *c)
{
	struct lab_exec *x = c->exec;
	struct rt_task *task = c->running, *ended = c->ended;

	if (ended) {
		c->ended = NULL;
		c->tasks--;
		ended->state = LAB_TASK_GONE;
		if (ended->joiner)
			lab_task_wake(ended->joiner);
		if (ended->main_joins)
			sim_schedule(x->sim, &x->to_main, sim_now(x->sim));
	}
	task->turn_known = false;
	task->empty_turn = 0;
	task->run_base = c->time[LAB_USER] + c->time[LAB_SYSTEM];
	c->run_start = sim_now(x->sim);
	c->slice_end = c->run_start + (task->slice_left ? task->slice_left : x->machine.time_slice);
	task->slice_left = 0;
	c->slice_over = false;
	if (task != &c->idle && c->queue[task->prio].head)
		sim_schedule(x->sim, &c->slice, c->slice_end);
	lab_cpu_enter_context(c, LAB_IN_TASK, task->buckets);
}

static void switch_to(struct lab_cpu *c, struct rt_task *next, bool voluntary)
{
	struct lab_exec *x = c->exec;
	struct rt_task *prev = c->running;

	if (voluntary) {
		c->stats.voluntary++;
		prev->voluntary++;
	} else {
		c->stats.involuntary++;
		prev->involuntary++;
	}
	sim_digest_add(x->sim, next->id << 16 | c->index);
	prev->run += c->time[LAB_USER] + c->time[LAB_SYSTEM] - prev->run_base;
	if (prev != &c->idle)
		lab_trace_slice(x->trace, c->track, "task", prev->name, c->run_start,
				sim_now(x->sim));
	c->running = next;
	sim_cancel(x->sim, &c->slice);
	lab_cpu_enter_context(c, LAB_IN_IRQ, lab_buckets_system);
	lab_cpu_pass(c, x->machine.context_switch, LAB_SYSTEM);
	c->coro = next->coro;
	if (prev->state == LAB_TASK_ENDED) {
		c->ended = prev;
		lab_coro_end(prev->coro, next->coro);
	}
	lab_coro_switch(prev->coro, next->coro);
	switched(c);
}

static struct rt_task *take_next(struct lab_cpu *c)
{
	int prio = queued_prio(c);

	return prio < 0 ? &c->idle : queue_take(&c->queue[prio]);
}

void lab_sched_preempt(struct lab_cpu *c)
{
	struct rt_task *task = c->running;
	int prio = queued_prio(c);
	bool over = c->slice_over;

	c->slice_over = false;
	if (prio < 0 || prio < task->prio || (prio == task->prio && !over))
		return;
	if (task == &c->idle) {
		switch_to(c, take_next(c), true);
		return;
	}
	/* Who was pushed aside goes on before its equals, with what is left of its turn: a whole
	 * new one would keep them away for ever. Who used up its time stands behind them. */
	if (prio > task->prio) {
		struct rt_task *next = take_next(c);

		if (c->slice_end > sim_now(c->exec->sim)) {
			task->slice_left = c->slice_end - sim_now(c->exec->sim);
			queue_head(&c->queue[task->prio], task);
		} else {
			queue_tail(&c->queue[task->prio], task);
		}
		switch_to(c, next, false);
	} else {
		queue_tail(&c->queue[task->prio], task);
		switch_to(c, take_next(c), false);
	}
}

void lab_task_block(struct lab_cpu *c, bool interruptible)
{
	struct rt_task *task = c->running;

	assert(c->context == LAB_IN_TASK && task != &c->idle);
	task->state = LAB_TASK_WAITS;
	task->interruptible = interruptible;
	switch_to(c, take_next(c), true);
}

static void task_main(void *arg)
{
	struct rt_task *task = arg;
	struct lab_cpu *c = task->cpu;

	switched(c);
	task->fn(task->arg);
	if (task->joiner)
		lab_cpu_pass(c, c->exec->machine.wakeup, LAB_SYSTEM);
	task->state = LAB_TASK_ENDED;
	switch_to(c, take_next(c), true);
}

/* Entered for the first time by `resume`, when something wants the CPU. */
static void idle_main(void *arg)
{
	struct lab_cpu *c = arg;

	c->exec->cur = c;
	c->parked = false;
	c->passing = false;
	c->time[LAB_IDLE] += sim_now(c->exec->sim) - c->since;
	switched(c);
	for (;;)
		lab_cpu_pass(c, SIM_NEVER, LAB_IDLE);
}

int lab_sched_init_cpu(struct lab_cpu *c, struct ho_err *err)
{
	struct lab_exec *x = c->exec;

	for (int prio = 0; prio < LAB_PRIOS; prio++)
		c->queue[prio].tail = &c->queue[prio].head;
	sim_event_init_at(&c->slice, &x->host, slice_over, c);
	c->idle = (struct rt_task){
		.exec = x,
		.cpu = c,
		.prio = PRIO_IDLE_LOOP,
		.buckets = lab_buckets_system,
	};
	snprintf(c->idle.name, sizeof(c->idle.name), "idle");
	if (lab_coro_create(x->hub, idle_main, c, &c->idle.coro))
		return ho_err_set(err, -ENOMEM, "%s: no memory for the stack of CPU %u", x->name,
				  c->index);
	c->running = &c->idle;
	c->coro = c->idle.coro;
	c->parked = true;
	c->passing = true;
	c->bucket = LAB_IDLE;
	c->since = x->created;
	return 0;
}

void lab_sched_fini_cpu(struct lab_cpu *c)
{
	struct sim *sim = c->exec->sim;

	sim_cancel(sim, &c->slice);
	sim_cancel(sim, &c->resume);
	sim_spin_remove(&c->spin);
	lab_coro_destroy(c->idle.coro);
}

static const struct lab_cpu *least_used(struct lab_exec *x)
{
	const struct lab_cpu *best = &x->cpu[0];

	for (unsigned i = 1; i < x->machine.cpus; i++)
		if (x->cpu[i].tasks < best->tasks)
			best = &x->cpu[i];
	return best;
}

int lab_task_create(struct lab_exec *x, const struct rt_task_attr *attr, void (*fn)(void *arg),
		    void *arg, struct rt_task **out, struct ho_err *err)
{
	struct lab_cpu *c;
	struct rt_task *task;
	int rc = lab_exec_cpu_of(x, attr, least_used(x)->index, &c, err);

	if (rc)
		return rc;
	task = calloc(1, sizeof(*task));
	if (!task)
		return ho_err_set(err, -ENOMEM, "out of memory");
	task->exec = x;
	task->cpu = c;
	task->prio = (int)attr->prio;
	task->state = LAB_TASK_WAITS;
	task->buckets = lab_buckets_user;
	task->fn = fn;
	task->arg = arg;
	task->id = ++x->task_ids;
	snprintf(task->name, sizeof(task->name), "%s", attr->name ? attr->name : "task");
	if (lab_coro_create(x->hub, task_main, task, &task->coro)) {
		free(task);
		return ho_err_set(err, -ENOMEM, "%s: no memory for the stack of task %s", x->name,
				  attr->name);
	}
	lab_task_timer_init(task);
	task->all_prev = x->tasks_tail;
	*x->tasks_tail = task;
	x->tasks_tail = &task->all_next;
	c->tasks++;
	*out = task;
	return 0;
}

int lab_spawn(struct rt *rt, const struct rt_task_attr *attr, void (*fn)(void *arg), void *arg,
	      struct rt_task **out, struct ho_err *err)
{
	int rc = lab_task_create(lab_exec_of(rt), attr, fn, arg, out, err);

	if (!rc)
		lab_task_wake(*out);
	return rc;
}

void lab_task_free(struct rt_task *task)
{
	struct lab_exec *x = task->exec;

	*task->all_prev = task->all_next;
	if (task->all_next)
		task->all_next->all_prev = task->all_prev;
	else
		x->tasks_tail = task->all_prev;
	sim_cancel(x->sim, &task->timer);
	lab_coro_destroy(task->coro);
	free(task);
}

/* Nothing can ever happen again and a task still waits: stops, so that it can end. */
static bool ran_dry(struct lab_exec *x, const struct rt_task *task)
{
	if (x->stop_seen)
		return false;
	ho_warn("%s: task %s waits for something that cannot happen: no event is left", x->name,
		task->name);
	x->deadlocked = true;
	rt_stop(&x->rt);
	return true;
}

static void join_from_main(struct lab_exec *x, struct rt_task *task)
{
	task->main_joins = true;
	sim_spin_end_all(x->sim);
	while (task->state != LAB_TASK_GONE)
		if (!sim_step(x->sim) && !ran_dry(x, task))
			break;
	sim_cancel(x->sim, &x->to_main);
}

void lab_join(struct rt *rt, struct rt_task *task)
{
	struct lab_exec *x = lab_exec_of(rt);

	if (!x->cur)
		join_from_main(x, task);
	while (x->cur && task->state != LAB_TASK_GONE) {
		task->joiner = x->cur->running;
		lab_task_block(x->cur, false);
	}
	lab_task_free(task);
}

void lab_sched_stop(struct lab_exec *x)
{
	x->stop_seen = true;
	for (struct rt_task *task = x->tasks; task; task = task->all_next)
		if (task->interruptible)
			lab_task_wake(task);
}
