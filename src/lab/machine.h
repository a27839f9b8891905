/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the executor: the state of a host's CPUs, tasks and interrupts, shared by exec.c, cpu.c,
 * sched.c, event.c and softirq.c. Nobody else includes it.
 *
 * A CPU always has a coroutine: that of its running task or of its idle loop. Interrupt handlers
 * and softirqs run on that stack, called from lab_cpu_pass, the one place where time passes. So
 * the nesting of contexts on a CPU is the nesting of calls on its stack, as on hardware.
 *
 *     task or idle --- lab_cpu_pass ---> softirq --- lab_cpu_pass ---> hard interrupt
 *
 * While time passes on a CPU, it either runs due events itself (sim_advance) or, when the next
 * event belongs to another CPU, parks: it schedules `resume` and leaves to the outer loop.
 */
#ifndef HOLDOFF_LAB_MACHINE_H
#define HOLDOFF_LAB_MACHINE_H

#include "lab/coro.h"
#include "lab/exec.h"

enum lab_bucket {
	LAB_USER,
	LAB_SYSTEM,
	LAB_IRQ,
	LAB_SOFTIRQ,
	LAB_IDLE,
	LAB_BUCKETS,
};

/* Who runs on a CPU, and so what may interrupt it. */
enum lab_context {
	LAB_IN_TASK,    /* a task or the idle loop: everything may */
	LAB_IN_SOFTIRQ, /* hard interrupts may */
	LAB_IN_IRQ,     /* nothing may; also while switching tasks and while stalled */
};

/* What wants a CPU's attention. */
#define LAB_WANT_IRQ     1u
#define LAB_WANT_SOFTIRQ 2u
#define LAB_WANT_RESCHED 4u
#define LAB_WANT_TIME    8u /* it is behind the clock and must get even first */

enum lab_task_state {
	LAB_TASK_READY, /* runs, or is in a run queue */
	LAB_TASK_WAITS, /* for events, a time or another task */
	LAB_TASK_ENDED, /* its function returned */
	LAB_TASK_GONE,  /* and nothing uses its stack any more */
};

#define LAB_TASK_NAME 16
#define LAB_PRIOS     3 /* enum rt_prio */
#define LAB_WAIT_MAX  64

/* Something that interrupts a CPU. */
struct lab_source {
	struct lab_cpu *cpu;
	struct lab_source *next; /* in the CPU's queue */
	bool pending;
	bool running; /* its handler, entry and exit included */
	const char *name;
	void (*fn)(void *arg); /* runs in interrupt context */
	void *arg;
};

struct rt_task {
	struct lab_exec *exec;
	struct lab_cpu *cpu;
	struct rt_task *next; /* in a run queue */
	struct rt_task *all_next, **all_prev;
	struct lab_coro *coro;
	char name[LAB_TASK_NAME];
	uint64_t id; /* order of creation */
	int prio;    /* enum rt_prio; -1 for the idle loop */
	enum lab_task_state state;
	const uint8_t *buckets; /* where its costs go */
	void (*fn)(void *arg);
	void *arg;
	struct rt_task *joiner; /* a task that waits for its end */
	bool main_joins;

	bool interruptible; /* rt_stop ends this wait */
	bool timed_out;     /* set by `timer` */
	struct sim_event timer;
	struct lab_source timer_irq;

	/* busy loops: see exec.h */
	bool saw_clock; /* since the last relax */
	bool turn_known;
	bool calm;               /* no event from the start of the turn before to the last relax */
	sim_ps turn_start, turn; /* end of the last relax; length of the turn before, without it */
	sim_ps empty_turn;       /* length of one that found nothing; 0 = not known */
	uint64_t turn_events;    /* lab_cpu_seen at turn_start */
	sim_ps turn_user, turn_system; /* the CPU's accounts at turn_start */

	sim_ps run;        /* without the present run */
	sim_ps slice_left; /* of a task that was pushed aside: what its turn still has; 0 = all */
	sim_ps run_base;   /* the CPU's user + system at the start of the present run */
	uint64_t voluntary, involuntary;
};

struct rt_event {
	struct lab_exec *exec;
	bool latched;
	bool main_waits;
	struct rt_task *waiter;
	struct rt_irq *irq;
	struct sim_event timer;
	struct lab_source wake_irq; /* wakes the waiter when hardware signals */
};

struct rt_irq {
	struct lab_exec *exec;
	struct rt_event *event;
	struct lab_source source;
	char name[LAB_TASK_NAME];
};

struct rt_napi {
	struct lab_exec *exec;
	struct lab_cpu *cpu;
	struct rt_napi *next; /* in the CPU's poll list */
	int (*poll)(void *arg, int budget);
	void *arg;
	int weight;
	bool scheduled, polling, again;
	bool dying;             /* is being destroyed: never polled again */
	struct lab_source kick; /* schedules it on its CPU, from elsewhere */
	char name[LAB_TASK_NAME];
};

struct lab_run_queue {
	struct rt_task *head, **tail;
};

/* What the cache term knows of a pair of costs. */
struct lab_reuse_state {
	uint64_t outstanding; /* units filled and not drained */
	uint64_t at_fill;     /* how many there were after the last fill */
};

struct lab_cpu {
	uint32_t stop; /* wants & what its context allows */
	uint32_t wants;
	enum lab_context context;
	const uint8_t
		*buckets; /* of the context: lab_bucket of each cost; [RT_COST_COUNT] = other */
	sim_ps time[LAB_BUCKETS];
	struct lab_exec *exec;

	bool passing; /* time passes: `since` and `bucket` say what is not in `time` yet */
	enum lab_bucket bucket;
	sim_ps since;
	bool parked; /* left to the outer loop; `resume` brings it back */
	struct sim_event resume;
	uint64_t resumes;     /* times that it ran */
	struct sim_spin spin; /* a busy loop that rests */
	sim_ps behind;        /* the clock: time that passed while it rested */

	struct rt_task *running; /* or &idle */
	struct rt_task *ended;   /* the task whose stack was left for the last time */
	struct lab_coro *coro;   /* whose stack the CPU is on; not running's during a switch */
	struct rt_task idle;
	struct lab_run_queue queue[LAB_PRIOS];
	sim_ps run_start, slice_end;
	struct sim_event slice;
	bool slice_over;
	unsigned tasks; /* pinned here */

	struct lab_source *irq_head, **irq_tail;

	struct rt_napi *poll_head, **poll_tail;
	struct rt_task *ksoftirqd;
	bool ksoftirqd_awake;

	struct lab_reuse_state reuse[LAB_REUSE_MAX];
	struct lab_cpu_stats stats; /* counts only */
	uint32_t track;             /* in the trace */
	unsigned index;
};

struct lab_price {
	sim_ps ps;
	uint8_t fills, drains; /* index + 1 into the machine's reuse pairs; 0 = none */
};

struct lab_exec {
	struct rt rt;
	struct sim *sim;
	struct lab_cpu *cur; /* whose code is running now; NULL in events and in main */
	struct lab_price price[RT_COST_COUNT];
	struct lab_machine machine;
	struct lab_trace *trace;
	struct lab_coro_hub *hub;
	struct rt_task *tasks, **tasks_tail; /* all but the idle loops, in order of creation */
	uint64_t task_ids;
	sim_ps created;
	bool stop_seen, deadlocked;
	struct sim_host host;
	struct sim_event to_main; /* makes the CPUs leave to the outer loop */
	struct sim_poke poke;
	char name[32];
	struct lab_cpu cpu[]; /* machine.cpus */
};

static inline struct lab_exec *lab_exec_of(struct rt *rt)
{
	return HO_CONTAINER_OF(rt, struct lab_exec, rt);
}

/* Nanoseconds since the executor was made -> the queue's picoseconds; SIM_NEVER if too far. */
static inline sim_ps lab_at(const struct lab_exec *x, uint64_t ns)
{
	return ns > (SIM_NEVER - x->created) / SIM_PS_PER_NS - 1 ? SIM_NEVER
								 : x->created + ns * SIM_PS_PER_NS;
}

/* --- cpu.c: time and interrupts ----------------------------------------------------------- */

extern const uint8_t lab_buckets_user[RT_COST_COUNT + 1];
extern const uint8_t lab_buckets_system[RT_COST_COUNT + 1];
extern const uint8_t lab_buckets_irq[RT_COST_COUNT + 1];
extern const uint8_t lab_buckets_softirq[RT_COST_COUNT + 1];

void lab_cpu_init(struct lab_exec *x, unsigned index);
/* Lets time pass; interrupts, softirqs and preemption happen here, as the context allows. */
void lab_cpu_pass(struct lab_cpu *c, sim_ps ps, enum lab_bucket bucket);
void lab_cpu_enter_context(struct lab_cpu *c, enum lab_context context, const uint8_t *buckets);
/* Rests in a busy loop (c->spin says which) until somebody rouses it, or until `latest`. */
void lab_cpu_rest(struct lab_cpu *c, sim_ps latest, enum lab_bucket bucket);
/* From anywhere: sets LAB_WANT_ bits, and has a parked CPU look at them now. */
void lab_cpu_want(struct lab_cpu *c, uint32_t wants);
void lab_cpu_raise(struct lab_source *source);
/* Lets time pass while *flag is set, which another CPU will clear. */
void lab_cpu_await(struct lab_exec *x, const bool *flag);
void lab_cpu_unraise(struct lab_source *source);

/* Events so far that may have changed what code on this CPU sees: not its own steps. */
static inline uint64_t lab_cpu_seen(const struct lab_cpu *c)
{
	return sim_events_seen(c->exec->sim, &c->exec->host) - c->resumes;
}

/* The clock as code on this CPU sees it. */
static inline sim_ps lab_cpu_now(const struct lab_cpu *c)
{
	return sim_now(c->exec->sim) - c->behind;
}

static inline enum lab_bucket lab_cpu_other(const struct lab_cpu *c)
{
	return (enum lab_bucket)c->buckets[RT_COST_COUNT];
}

/* --- sched.c ------------------------------------------------------------------------------ */

int lab_sched_init_cpu(struct lab_cpu *c, struct ho_err *err);
void lab_sched_fini_cpu(struct lab_cpu *c);
/* A task that waits to be woken for the first time. */
int lab_task_create(struct lab_exec *x, const struct rt_task_attr *attr, void (*fn)(void *arg),
		    void *arg, struct rt_task **out, struct ho_err *err);
/* It does not run and nothing refers to it. */
void lab_task_free(struct rt_task *task);
int lab_spawn(struct rt *rt, const struct rt_task_attr *attr, void (*fn)(void *arg), void *arg,
	      struct rt_task **out, struct ho_err *err);
void lab_join(struct rt *rt, struct rt_task *task);
/* Makes a waiting task ready; without cost. */
void lab_task_wake(struct rt_task *task);
/* The running task waits until somebody wakes it. */
void lab_task_block(struct lab_cpu *c, bool interruptible);
/* LAB_WANT_RESCHED was seen in a task or the idle loop. */
void lab_sched_preempt(struct lab_cpu *c);
/* rt_stop was called: wakes all interruptible waits. */
void lab_sched_stop(struct lab_exec *x);

/* --- event.c ------------------------------------------------------------------------------ */

int lab_event_create(struct rt *rt, struct rt_event **out, struct ho_err *err);
int lab_event_from_fd(struct rt *rt, int fd, struct rt_event **out, struct ho_err *err);
void lab_event_destroy(struct rt *rt, struct rt_event *event);
void lab_event_signal(struct rt *rt, struct rt_event *event);
void lab_event_arm(struct rt *rt, struct rt_event *event, uint64_t at_ns);
int lab_wait(struct rt *rt, struct rt_event *const *events, unsigned n, uint64_t deadline_ns);
int lab_sleep_until(struct rt *rt, uint64_t at_ns);
int lab_irq_attach(struct rt *rt, struct rt_event *event, const struct rt_task_attr *attr,
		   void (*handler)(void *arg), void *arg, struct rt_irq **out, struct ho_err *err);
void lab_irq_detach(struct rt *rt, struct rt_irq *irq);
void lab_task_timer_init(struct rt_task *task);

/* --- softirq.c ---------------------------------------------------------------------------- */

int lab_softirq_init_cpu(struct lab_cpu *c, struct ho_err *err);
int lab_napi_create(struct rt *rt, const struct rt_task_attr *attr, int weight,
		    int (*poll)(void *arg, int budget), void *arg, struct rt_napi **out,
		    struct ho_err *err);
void lab_napi_schedule(struct rt *rt, struct rt_napi *napi);
void lab_napi_destroy(struct rt *rt, struct rt_napi *napi);
/* Runs polls now; the CPU is in a task or the idle loop. */
void lab_softirq_run(struct lab_cpu *c);
/* An interrupt ends: is there anything to run after it? */
void lab_softirq_after_irq(struct lab_cpu *c);

/* Checks attr->cpu; -1 becomes `any`. */
int lab_exec_cpu_of(struct lab_exec *x, const struct rt_task_attr *attr, unsigned any,
		    struct lab_cpu **out, struct ho_err *err);

#endif
