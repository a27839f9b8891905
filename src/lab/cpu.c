// SPDX-License-Identifier: BSD-2-Clause
/* Time on a modelled CPU, and what interrupts it. */
#include "lab/machine.h"

#include "lab/trace.h"

/* A user-space program's costs, but for those that are the kernel's by their nature. */
const uint8_t lab_buckets_user[RT_COST_COUNT + 1] = {
	[RT_COST_STACK_RX] = LAB_SYSTEM,
	[RT_COST_STACK_TX] = LAB_SYSTEM,
	[RT_COST_SYSCALL] = LAB_SYSTEM,
};

#define ALL_COSTS(bucket)                        \
	{                                        \
		[0 ... RT_COST_COUNT] = (bucket) \
	}
const uint8_t lab_buckets_system[RT_COST_COUNT + 1] = ALL_COSTS(LAB_SYSTEM);
const uint8_t lab_buckets_irq[RT_COST_COUNT + 1] = ALL_COSTS(LAB_IRQ);
const uint8_t lab_buckets_softirq[RT_COST_COUNT + 1] = ALL_COSTS(LAB_SOFTIRQ);

static const uint32_t context_allows[] = {
	[LAB_IN_TASK] = LAB_WANT_TIME | LAB_WANT_IRQ | LAB_WANT_SOFTIRQ | LAB_WANT_RESCHED,
	[LAB_IN_SOFTIRQ] = LAB_WANT_TIME | LAB_WANT_IRQ,
	[LAB_IN_IRQ] = LAB_WANT_TIME,
};

static void resume(void *arg)
{
	struct lab_cpu *c = arg;

	c->resumes++;
	lab_coro_enter(c->coro);
}

void lab_cpu_init(struct lab_exec *x, unsigned index)
{
	struct lab_cpu *c = &x->cpu[index];

	c->exec = x;
	c->index = index;
	c->irq_tail = &c->irq_head;
	c->poll_tail = &c->poll_head;
	c->context = LAB_IN_TASK;
	c->buckets = lab_buckets_system;
	sim_event_init(&c->resume, resume, c);
	c->resume.outer = true;
	c->resume.host = &x->host;
	c->spin = (struct sim_spin){ .host = &x->host, .resume = &c->resume };
}

void lab_cpu_enter_context(struct lab_cpu *c, enum lab_context context, const uint8_t *buckets)
{
	c->context = context;
	c->buckets = buckets;
	c->stop = c->wants & context_allows[context];
}

static void unwant(struct lab_cpu *c, uint32_t wants)
{
	c->wants &= ~wants;
	c->stop &= ~wants;
}

void lab_cpu_want(struct lab_cpu *c, uint32_t wants)
{
	c->wants |= wants;
	c->stop = c->wants & context_allows[c->context];
	if (sim_spinning(&c->spin))
		sim_spin_end(c->exec->sim, &c->spin);
	else if (c->stop && c->parked)
		sim_schedule(c->exec->sim, &c->resume, sim_now(c->exec->sim));
}

void lab_cpu_raise(struct lab_source *source)
{
	struct lab_cpu *c = source->cpu;

	if (source->pending)
		return;
	source->pending = true;
	source->next = NULL;
	*c->irq_tail = source;
	c->irq_tail = &source->next;
	lab_cpu_want(c, LAB_WANT_IRQ);
}

void lab_cpu_await(struct lab_exec *x, const bool *flag)
{
	while (*flag) {
		sim_ps next = sim_next(x->sim);

		/* Stepping would not do: once the handler is done, its CPU idles, and an idle CPU
		 * runs the others' events until somebody else's turn comes or the horizon. */
		if (x->cur)
			rt_relax(&x->rt);
		else if (next == SIM_NEVER)
			return;
		else
			sim_run_until(x->sim, next);
	}
}

void lab_cpu_unraise(struct lab_source *source)
{
	struct lab_cpu *c = source->cpu;
	struct lab_source **at;

	if (!source->pending)
		return;
	source->pending = false;
	at = &c->irq_head;
	while (*at != source)
		at = &(*at)->next;
	*at = source->next;
	if (!source->next)
		c->irq_tail = at;
	if (!c->irq_head)
		unwant(c, LAB_WANT_IRQ);
}

static void take_irq(struct lab_cpu *c)
{
	struct lab_exec *x = c->exec;
	struct lab_source *source = c->irq_head;
	enum lab_context context = c->context;
	const uint8_t *buckets = c->buckets;
	sim_ps begin = sim_now(x->sim);
	const char *name = source->name;

	c->irq_head = source->next;
	if (!c->irq_head) {
		c->irq_tail = &c->irq_head;
		unwant(c, LAB_WANT_IRQ);
	}
	source->pending = false;
	source->running = true;
	c->stats.interrupts++;
	sim_digest_add(x->sim, c->index | 0x100);
	lab_cpu_enter_context(c, LAB_IN_IRQ, lab_buckets_irq);
	lab_cpu_pass(c, x->machine.irq_entry, LAB_IRQ);
	source->fn(source->arg);
	lab_cpu_pass(c, x->machine.irq_exit, LAB_IRQ);
	lab_trace_slice(x->trace, c->track, "irq", name, begin, sim_now(x->sim));
	source->running = false;
	lab_cpu_enter_context(c, context, buckets);
	lab_softirq_after_irq(c);
}

static void attend(struct lab_cpu *c)
{
	while (c->stop) {
		if (c->stop & LAB_WANT_IRQ)
			take_irq(c);
		else if (c->stop & LAB_WANT_SOFTIRQ) {
			unwant(c, LAB_WANT_SOFTIRQ);
			lab_softirq_run(c);
		} else {
			unwant(c, LAB_WANT_RESCHED);
			lab_sched_preempt(c);
		}
	}
}

/* Lets time pass until `target` or until c->stop. */
static void advance(struct lab_cpu *c, sim_ps target)
{
	struct lab_exec *x = c->exec;

	x->cur = NULL;
	if (sim_advance(x->sim, target, &c->stop) == SIM_BLOCKED) {
		c->parked = true;
		if (target != SIM_NEVER)
			sim_schedule(x->sim, &c->resume, target);
		lab_coro_leave(c->coro);
		c->parked = false;
	}
	x->cur = c;
}

/* Returns what is left of `ps` when the CPU is even with the clock. */
static sim_ps get_even(struct lab_cpu *c, sim_ps ps, enum lab_bucket bucket)
{
	sim_ps passed = HO_MIN(ps, c->behind);

	c->time[bucket] += passed;
	c->behind -= passed;
	if (!c->behind)
		unwant(c, LAB_WANT_TIME);
	return ps - passed;
}

void lab_cpu_rest(struct lab_cpu *c, sim_ps latest, enum lab_bucket bucket)
{
	struct lab_exec *x = c->exec;

	/* For whoever looks at the accounts meanwhile. */
	c->bucket = bucket;
	c->since = sim_now(x->sim);
	c->passing = true;
	c->parked = true;
	if (latest != SIM_NEVER)
		sim_schedule(x->sim, &c->resume, latest);
	sim_spin_add(x->sim, &c->spin);
	x->cur = NULL;
	lab_coro_leave(c->coro);
	x->cur = c;
	c->parked = false;
	c->passing = false;
	c->behind = c->spin.behind;
	if (c->behind)
		lab_cpu_want(c, LAB_WANT_TIME);
}

void lab_cpu_pass(struct lab_cpu *c, sim_ps ps, enum lab_bucket bucket)
{
	struct sim *sim = c->exec->sim;

	if (ho_unlikely(c->behind)) {
		ps = get_even(c, ps, bucket);
		if (c->behind)
			return;
		/* What is due now comes before what the code does next, as it does after any
		 * pass. */
		if (!ps)
			advance(c, sim_now(sim));
	}
	for (;;) {
		sim_ps start, passed;

		if (c->stop)
			attend(c);
		if (!ps)
			return;
		start = sim_now(sim);
		c->bucket = bucket;
		c->since = start;
		c->passing = true;
		advance(c, ps > SIM_NEVER - start ? SIM_NEVER : start + ps);
		c->passing = false;
		passed = sim_now(sim) - start;
		c->time[bucket] += passed;
		ps -= passed;
	}
}
