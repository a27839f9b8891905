/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executor: time, tasks, events and costs. Everything above it runs on either of two clocks
 * and does not know which.
 *
 *   real clock (runtime/os.c)              virtual clock (lab/)
 *   task      pinned thread                coroutine that occupies a modelled CPU
 *   wait      poll(2) on eventfds          the lab's scheduler, with wake-up and switch costs
 *   irq       a thread waiting on an fd    preempts whatever the modelled CPU does, at its spend
 *   spend     nothing                      that CPU's time passes; the only place where it does
 *
 * The contract, for users of the interface and for a second implementation of it:
 *
 *  1. Time is nanoseconds since the executor was made; it never goes back. Between two calls of
 *     this interface no time is guaranteed to pass, and in the lab none does.
 *  2. A task runs on its CPU until it waits, sleeps, relaxes, spends or returns. On the virtual
 *     clock at most one piece of code runs at any moment, so data that tasks share needs the same
 *     locking as on the real clock but never shows a race.
 *  3. A loop without rt_wait, rt_sleep_until, rt_relax or rt_spend in each turn stops the virtual
 *     clock: a busy loop calls rt_relax when a turn found nothing to do. One that waits for a time
 *     says so with rt_relax_until or rt_spin_until, or the lab must run each turn of it.
 *  4. An event is a latch: signals collapse into one until a wait takes it. A signal before the
 *     wait is not lost. Any task, and an interrupt handler, may signal; a single task at a time
 *     waits for an event.
 *  5. rt_wait takes exactly one event and returns its index; the lowest index wins when several
 *     are signalled.
 *  6. rt_stop asks all tasks to end: it wakes every wait and sleep, which return -EINTR from then
 *     on. Tasks look at rt_stopping, finish what they hold and return.
 *  7. An interrupt handler and a NAPI poll must not wait, sleep or relax; they may spend and
 *     signal. A handler runs with its own vector masked against itself: it never nests.
 *  8. Costs are named (runtime/cost.h), not numbers: a machine profile gives the number.
 */
#ifndef HOLDOFF_RUNTIME_RT_H
#define HOLDOFF_RUNTIME_RT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "runtime/cost.h"
#include "runtime/tsc.h"

struct rt;
struct rt_task;
struct rt_event;
struct rt_irq;
struct rt_napi;

#define RT_FOREVER UINT64_MAX /* a deadline that never comes */

enum rt_prio {
	RT_PRIO_IDLE,   /* runs only when nothing else wants the CPU */
	RT_PRIO_NORMAL, /* time-shared */
	RT_PRIO_HIGH,   /* before normal tasks: poll threads, soft-ring workers */
};

struct rt_task_attr {
	const char *name;  /* seen in top and in traces; at most 15 characters; copied */
	int cpu;           /* pinned there; -1 = wherever the executor likes */
	enum rt_prio prio; /* on the real clock best effort: needs CAP_SYS_NICE */
};

/* What an executor implements. Users call the inline functions below. */
struct rt_ops {
	uint64_t (*now_ns)(struct rt *rt);
	void (*spend)(struct rt *rt, enum rt_cost cost, uint32_t n);
	void (*relax)(struct rt *rt);
	/* NULL = relax does either */
	void (*relax_until)(struct rt *rt, uint64_t at_ns);
	void (*spin_until)(struct rt *rt, uint64_t at_ns);
	void (*yield)(struct rt *rt); /* NULL = relax does it */
	int (*sleep_until)(struct rt *rt, uint64_t at_ns);
	int (*spawn)(struct rt *rt, const struct rt_task_attr *attr, void (*fn)(void *arg),
		     void *arg, struct rt_task **out, struct ho_err *err);
	void (*join)(struct rt *rt, struct rt_task *task);
	int (*event_create)(struct rt *rt, struct rt_event **out, struct ho_err *err);
	int (*event_from_fd)(struct rt *rt, int fd, struct rt_event **out, struct ho_err *err);
	void (*event_destroy)(struct rt *rt, struct rt_event *event);
	void (*event_signal)(struct rt *rt, struct rt_event *event);
	void (*event_arm)(struct rt *rt, struct rt_event *event, uint64_t at_ns);
	int (*wait)(struct rt *rt, struct rt_event *const *events, unsigned n,
		    uint64_t deadline_ns);
	int (*irq_attach)(struct rt *rt, struct rt_event *event, const struct rt_task_attr *attr,
			  void (*handler)(void *arg), void *arg, struct rt_irq **out,
			  struct ho_err *err);
	void (*irq_detach)(struct rt *rt, struct rt_irq *irq);
	int (*napi_create)(struct rt *rt, const struct rt_task_attr *attr, int weight,
			   int (*poll)(void *arg, int budget), void *arg, struct rt_napi **out,
			   struct ho_err *err);
	void (*napi_schedule)(struct rt *rt, struct rt_napi *napi);
	void (*napi_destroy)(struct rt *rt, struct rt_napi *napi);
	void (*stop)(struct rt *rt);
	void (*destroy)(struct rt *rt);
};

struct rt {
	const struct rt_ops *ops;
	bool is_virtual;    /* the lab's clock: spend and now go through ops */
	bool stopping;      /* set once by rt_stop; read through rt_stopping */
	uint64_t tsc_start; /* real clock: TSC at creation */
	struct rt_tsc tsc;  /* real clock: how to turn TSC into ns */
};

/* --- time --------------------------------------------------------------------------------- */

/* Nanoseconds since the executor was made. On the real clock: one rdtsc and a multiplication. */
static inline uint64_t rt_now_ns(struct rt *rt)
{
	if (ho_unlikely(rt->is_virtual))
		return rt->ops->now_ns(rt);
	return rt_tsc_to_ns(&rt->tsc, rt_tsc_read() - rt->tsc_start);
}

/* Says that n units of `cost` were spent here. Nothing on the real clock. */
static inline void rt_spend(struct rt *rt, enum rt_cost cost, uint32_t n)
{
	if (ho_unlikely(rt->is_virtual))
		rt->ops->spend(rt, cost, n);
}

/* A turn of a busy loop that found nothing: a pause instruction, or time passing in the lab. */
static inline void rt_relax(struct rt *rt)
{
	rt->ops->relax(rt);
}

/*
 * Like rt_relax, for a loop that looks at the clock only to see whether at_ns has come (or, which is
 * the same, limits itself by that time). All its turns do the same until then, or until an event,
 * an interrupt or another task changes something. On the real clock this is rt_relax; the lab
 * passes such turns at once, with the times and accounts of the single ones.
 */
static inline void rt_relax_until(struct rt *rt, uint64_t at_ns)
{
	if (ho_unlikely(rt->ops->relax_until != NULL))
		rt->ops->relax_until(rt, at_ns);
	else
		rt->ops->relax(rt);
}

/*
 * Like rt_relax, for a loop that waits for the time at_ns and for nothing else: not even for what
 * other tasks do, but for a request to end, which it may see as late as at_ns. On the real clock
 * this is rt_relax: it comes back long before. In the lab it comes back at the end of the turn in
 * which at_ns comes; interrupts and preemption delay it as they delay every loop.
 */
static inline void rt_spin_until(struct rt *rt, uint64_t at_ns)
{
	if (ho_unlikely(rt->ops->spin_until != NULL))
		rt->ops->spin_until(rt, at_ns);
	else
		rt->ops->relax(rt);
}

/* Like rt_relax, for a loop that found nothing to do for a while: on the real clock whoever else
 * wants this CPU has it first. A system call. */
static inline void rt_yield(struct rt *rt)
{
	if (rt->ops->yield)
		rt->ops->yield(rt);
	else
		rt->ops->relax(rt);
}

/* Sleeps, not before at_ns; as exact as the system is (tens of us in a VM). 0, or -EINTR when
 * stopping. Who needs exact times spins with rt_relax for the rest. */
static inline int rt_sleep_until(struct rt *rt, uint64_t at_ns)
{
	return rt->ops->sleep_until(rt, at_ns);
}

/* --- tasks -------------------------------------------------------------------------------- */

/* Starts fn(arg) as a task. -EINVAL for a CPU that is not there. *out goes to rt_join once. */
static inline int rt_spawn(struct rt *rt, const struct rt_task_attr *attr, void (*fn)(void *arg),
			   void *arg, struct rt_task **out, struct ho_err *err)
{
	return rt->ops->spawn(rt, attr, fn, arg, out, err);
}

/* Waits until the task has returned and frees it. NULL is allowed. In the lab, called from
 * outside any task, it runs the virtual clock until then. */
static inline void rt_join(struct rt *rt, struct rt_task *task)
{
	if (task)
		rt->ops->join(rt, task);
}

/* Asks every task to end. Safe from any thread and from a signal handler. */
static inline void rt_stop(struct rt *rt)
{
	rt->ops->stop(rt);
}

static inline bool rt_stopping(struct rt *rt)
{
	return __atomic_load_n(&rt->stopping, __ATOMIC_RELAXED);
}

/* --- events ------------------------------------------------------------------------------- */

static inline int rt_event_create(struct rt *rt, struct rt_event **out, struct ho_err *err)
{
	return rt->ops->event_create(rt, out, err);
}

/*
 * An event that is signalled while fd is readable. The fd stays the caller's; if it is an eventfd
 * or a timerfd, the wait reads it (takes the signal), any other fd is left for its owner to read:
 * level-triggered. -ENOTSUP on the virtual clock.
 */
static inline int rt_event_from_fd(struct rt *rt, int fd, struct rt_event **out, struct ho_err *err)
{
	return rt->ops->event_from_fd(rt, fd, out, err);
}

/* NULL is allowed. Nobody may be waiting. */
static inline void rt_event_destroy(struct rt *rt, struct rt_event *event)
{
	if (event)
		rt->ops->event_destroy(rt, event);
}

static inline void rt_event_signal(struct rt *rt, struct rt_event *event)
{
	rt->ops->event_signal(rt, event);
}

/* A timer: signals the event once at at_ns (at once if that is past). A later call moves it;
 * RT_FOREVER disarms it. Only for events of rt_event_create. */
static inline void rt_event_arm(struct rt *rt, struct rt_event *event, uint64_t at_ns)
{
	rt->ops->event_arm(rt, event, at_ns);
}

/* Waits for one of n (at most 64) events; takes it and returns its index. -ETIMEDOUT at the
 * deadline, -EINTR when stopping. A deadline of 0 only looks. */
static inline int rt_wait(struct rt *rt, struct rt_event *const *events, unsigned n,
			  uint64_t deadline_ns)
{
	return rt->ops->wait(rt, events, n, deadline_ns);
}

/* --- interrupts and NAPI ------------------------------------------------------------------ */

/* Calls handler(arg) for each signal of the event, as an interrupt of attr->cpu. On the real
 * clock that is a thread of its own. The event must outlive it. */
static inline int rt_irq_attach(struct rt *rt, struct rt_event *event,
				const struct rt_task_attr *attr, void (*handler)(void *arg),
				void *arg, struct rt_irq **out, struct ho_err *err)
{
	return rt->ops->irq_attach(rt, event, attr, handler, arg, out, err);
}

static inline void rt_irq_detach(struct rt *rt, struct rt_irq *irq)
{
	if (irq)
		rt->ops->irq_detach(rt, irq);
}

/*
 * Deferred polling in Linux's NAPI sense. After rt_napi_schedule, poll(arg, weight) is called on
 * attr->cpu until it returns less than its budget; then the poll is complete and must have
 * unmasked its interrupt itself. A schedule while it is scheduled does nothing; one while poll
 * runs makes it run again. In the lab it is a softirq with Linux's budget and ksoftirqd; on the
 * real clock a thread.
 */
static inline int rt_napi_create(struct rt *rt, const struct rt_task_attr *attr, int weight,
				 int (*poll)(void *arg, int budget), void *arg,
				 struct rt_napi **out, struct ho_err *err)
{
	return rt->ops->napi_create(rt, attr, weight, poll, arg, out, err);
}

static inline void rt_napi_schedule(struct rt *rt, struct rt_napi *napi)
{
	rt->ops->napi_schedule(rt, napi);
}

static inline void rt_napi_destroy(struct rt *rt, struct rt_napi *napi)
{
	if (napi)
		rt->ops->napi_destroy(rt, napi);
}

/* --- executors ---------------------------------------------------------------------------- */

/* The real clock. */
int rt_os_create(struct rt **out, struct ho_err *err);

/*
 * Does a SIGINT, SIGTERM or SIGHUP wait to be looked at? A program that blocks them to look at them
 * later cannot while it opens and starts ports: what waits there for others, waits in slices and
 * asks this between them.
 */
bool rt_os_signal_pending(void);
#define RT_OS_SIGNAL_SLICE_NS 50000000u

/* All tasks, events, irqs and napis of it must be gone. NULL is allowed. */
static inline void rt_destroy(struct rt *rt)
{
	if (rt)
		rt->ops->destroy(rt);
}

#endif
