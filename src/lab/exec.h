/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executor (runtime/rt.h) in virtual time: a host with modelled CPUs. Several hosts may share
 * one event queue; each has an executor of its own.
 *
 *   code on a CPU           a coroutine; its time passes only in spend, relax, stall, switch
 *   rt_event_signal         from a sim event = from hardware: an rt_irq attached to the event
 *                           becomes a hard interrupt of its CPU; a task that waits for it is woken
 *                           by an interrupt of the task's CPU
 *   hard interrupt          preempts at the picosecond whatever spends there with interrupts on:
 *                           tasks, softirqs, idle; entry cost, handler, exit cost
 *   softirq                 NAPI polls, after the outermost interrupt or when a task next spends,
 *                           as Linux's __do_softirq and net_rx_action do it, with ksoftirqd
 *   scheduler               per CPU, three priorities, a time slice among equals
 *
 * Every picosecond of every CPU is accounted to exactly one of user, system, irq, softirq and
 * idle; the sum is the time since the executor was made.
 */
#ifndef HOLDOFF_LAB_EXEC_H
#define HOLDOFF_LAB_EXEC_H

#include "base/error.h"
#include "lab/cache.h"
#include "lab/sim.h"
#include "runtime/rt.h"

struct lab_trace;

/* Two costs that touch the same memory: what `fill` wrote, `drain` reads again. */
#define LAB_REUSE_MAX 4
struct lab_reuse {
	enum rt_cost fill, drain;
	uint32_t bytes; /* a unit */
};

/* What a modelled machine is made of; a profile (lab/profile.h) fills it. All times in ps. */
struct lab_machine {
	unsigned cpus;
	sim_ps cost[RT_COST_COUNT];
	sim_ps irq_entry, irq_exit; /* a hard interrupt, around its handler */
	sim_ps softirq;             /* each time softirqs begin to run */
	sim_ps wakeup;              /* on the CPU that wakes a task */
	sim_ps context_switch;      /* to and from the idle loop as well */
	sim_ps time_slice;          /* among runnable tasks of one priority */
	sim_ps softirq_limit;       /* softirqs give way to ksoftirqd after this ... */
	unsigned softirq_rounds;    /* ... or after so many rounds ... */
	sim_ps poll_limit;          /* a round of polls ends after this ... */
	int poll_budget;            /* ... or after so many frames */
	bool ksoftirqd_owns;        /* no softirq after an interrupt while ksoftirqd is runnable
				       (Linux since 4.9) */
	struct lab_cache cache;     /* no levels: no term */
	struct lab_reuse reuse[LAB_REUSE_MAX];
	unsigned n_reuse;
};

/* Linux's limits (300 frames, 2 jiffies of 1 ms, 10 rounds, 2 ms), 4 ms slices, no cost at all. */
void lab_machine_defaults(struct lab_machine *machine);

/*
 * Makes a host's executor. sim must outlive it. `name` is for messages and traces (copied).
 * machine is copied; trace may be NULL. rt_destroy frees it, not the sim.
 */
int lab_exec_create(struct sim *sim, const char *name, const struct lab_machine *machine,
		    struct lab_trace *trace, struct rt **out, struct ho_err *err);

struct sim *lab_exec_sim(struct rt *rt);
/* For the events of its devices that change nothing but this host. */
struct sim_host *lab_exec_host(struct rt *rt);
const struct lab_machine *lab_exec_machine(struct rt *rt);

/* --- for models of hardware --------------------------------------------------------------- */

/*
 * Lets `ps` pass on the CPU whose code is running, as rt_spend does: interrupts and preemption
 * happen there. Outside any CPU's code (main, a sim event) it does nothing.
 */
void lab_exec_spend_ps(struct rt *rt, sim_ps ps);

/*
 * The running CPU hangs until `until`, for instance in a register read: nothing preempts it,
 * interrupts stay pending. Past times do nothing. Main waits as well: the clock runs until then.
 * From a sim event it does nothing.
 */
void lab_exec_stall(struct rt *rt, sim_ps until);

/* Is this called from code on one of the host's CPUs (else from a sim event, or from main)? */
bool lab_exec_on_cpu(struct rt *rt);

/* --- for builders of runs ----------------------------------------------------------------- */

/* The running task is a kernel thread from here on: all its time is system time. Else only what
 * it spends for system calls and the protocol stack is. Outside a task it does nothing. */
void lab_exec_kernel_thread(struct rt *rt);

struct lab_cpu_stats {
	sim_ps user, system, irq, softirq, idle; /* their sum is the time since creation */
	uint64_t interrupts;                     /* hard interrupts taken */
	uint64_t voluntary;   /* context switches because the running task waited or ended; from the
				 idle loop to a task as well */
	uint64_t involuntary; /* because another one was to run */
	uint64_t softirqs;    /* runs of the softirq loop */
	uint64_t polls;       /* calls of NAPI polls */
	uint64_t squeezed;    /* rounds that ended with work left, as /proc/net/softnet_stat says */
	uint64_t ksoftirqd;   /* times that ksoftirqd had to take over */
};

/* Exact at the current time, whatever the CPU is in the middle of. */
void lab_exec_cpu_stats(struct rt *rt, unsigned cpu, struct lab_cpu_stats *out);

struct lab_task_stats {
	sim_ps run; /* on its CPU, without interrupts and softirqs on top of it */
	uint64_t voluntary, involuntary;
};

void lab_exec_task_stats(struct rt_task *task, struct lab_task_stats *out);

/*
 * True after all tasks waited for things that can never happen (no event was left) while main
 * waited in rt_join; the executor then stops, as after rt_stop.
 */
bool lab_exec_deadlocked(struct rt *rt);

/*
 * Busy loops. A loop that polls, finds nothing and calls rt_relax, turn after turn without
 * looking at the clock, cannot find anything before the next sim event: rt_relax then lets as
 * many whole turns pass at once as fit before it; events of other hosts only (struct sim_host) do
 * not count, so that two hosts that spin do not stop each other. Times and accounts are those of
 * the single turns, but for the order of what happens at the same picosecond on two hosts; only
 * side effects of the skipped turns (a count of empty polls) are missing. A loop that limits itself
 * by counting turns must look at the clock instead (rt_now_ns), which forbids skipping, unless it
 * says with rt_relax_until which time it looks for: then turns are skipped up to that time as well.
 */

#endif
