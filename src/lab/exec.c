// SPDX-License-Identifier: BSD-2-Clause
#include "lab/exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/machine.h"
#include "lab/trace.h"

/* --- costs -------------------------------------------------------------------------------- */

/*
 * The cache term. Rings are drained in the order in which they were filled, so between the fill
 * and the drain of a unit, whatever the batches, exactly the units that were outstanding at the
 * last fill were touched: their bytes are the reuse distance.
 */
static sim_ps reuse_cost(struct lab_exec *x, struct lab_cpu *c, const struct lab_price *price,
			 uint32_t n)
{
	if (price->fills) {
		struct lab_reuse_state *state = &c->reuse[price->fills - 1];

		state->outstanding += n;
		state->at_fill = state->outstanding;
	}
	if (price->drains) {
		struct lab_reuse_state *state = &c->reuse[price->drains - 1];
		uint64_t bytes = x->machine.reuse[price->drains - 1].bytes;

		state->outstanding -= HO_MIN(n, state->outstanding);
		return lab_cache_touch(&x->machine.cache, state->at_fill * bytes, n * bytes);
	}
	return 0;
}

static void exec_spend(struct rt *rt, enum rt_cost cost, uint32_t n)
{
	struct lab_exec *x = lab_exec_of(rt);
	struct lab_cpu *c = x->cur;
	const struct lab_price *price = &x->price[cost];
	enum lab_bucket bucket;
	sim_ps ps;

	if (!c)
		return;
	ps = price->ps * n;
	if (ho_unlikely(price->fills | price->drains))
		ps += reuse_cost(x, c, price, n);
	bucket = (enum lab_bucket)c->buckets[cost];
	if (ho_likely(!c->stop && sim_try_advance(x->sim, ps))) {
		c->time[bucket] += ps;
		return;
	}
	lab_cpu_pass(c, ps, bucket);
}

void lab_exec_spend_ps(struct rt *rt, sim_ps ps)
{
	struct lab_exec *x = lab_exec_of(rt);
	struct lab_cpu *c = x->cur;

	if (!c)
		return;
	if (ho_likely(!c->stop && sim_try_advance(x->sim, ps))) {
		c->time[lab_cpu_other(c)] += ps;
		return;
	}
	lab_cpu_pass(c, ps, lab_cpu_other(c));
}

void lab_exec_stall(struct rt *rt, sim_ps until)
{
	struct lab_exec *x = lab_exec_of(rt);
	struct lab_cpu *c = x->cur;
	enum lab_context context;

	if (until <= sim_now(x->sim))
		return;
	if (!c) {
		if (sim_outside(x->sim))
			sim_run_until(x->sim, until);
		return;
	}
	context = c->context;
	lab_cpu_enter_context(c, LAB_IN_IRQ, c->buckets);
	lab_cpu_pass(c, until - sim_now(x->sim), lab_cpu_other(c));
	lab_cpu_enter_context(c, context, c->buckets);
}

/* --- busy loops --------------------------------------------------------------------------- */

/*
 * The turn that just ended began at turn_start. If no event ran in it, nothing that it looked at
 * can have changed since. If it was as long as one that found nothing, it found nothing either: one
 * that does takes longer. And if the task did not look at the clock, or only to see whether `at`
 * has come, the next turns will do the same until an event comes. The last turn skipped must end
 * before that event, and the turn that sees `at` is never skipped. One found nothing for certain
 * when neither in it nor in the turn before, as long as it, there was an event: whoever relaxes has
 * taken all that there was.
 */
static bool turn_was_empty(const struct lab_cpu *c, sim_ps at)
{
	struct rt_task *task = c->running;
	sim_ps turn = lab_cpu_now(c) - task->turn_start, spent;

	if (!task->turn_known || c->stop)
		return false;
	if (turn != task->empty_turn && (!task->calm || turn != task->turn))
		return false;
	if (task->turn_events != lab_cpu_seen(c) || (at == SIM_NEVER && task->saw_clock))
		return false;
	/* All of it this task's own: softirqs may have been run by the loop itself. */
	spent = c->time[LAB_USER] - task->turn_user + c->time[LAB_SYSTEM] - task->turn_system;
	if (spent != turn)
		return false;
	task->turn = task->empty_turn = turn;
	return true;
}

/* How many whole turns fit between the end of the relax that begins now and `until`. */
static uint64_t turns_before(sim_ps now, sim_ps relax, sim_ps turn, sim_ps until)
{
	return until > now + relax ? (until - 1 - now - relax) / (turn + relax) : 0;
}

/* `skip` turns of the running task, of `turn` + `relax` each, have passed. */
static void account_turns(struct lab_cpu *c, uint64_t skip, sim_ps relax)
{
	const struct rt_task *task = c->running;
	sim_ps user = c->time[LAB_USER] - task->turn_user;
	sim_ps system = c->time[LAB_SYSTEM] - task->turn_system;

	c->time[LAB_USER] += skip * user;
	c->time[LAB_SYSTEM] += skip * system;
	c->time[c->buckets[RT_COST_RELAX]] += skip * relax;
}

/*
 * The turn that just ended was empty, and the next thing to come is a step of another host's CPU,
 * which this one cannot see: lets turns pass at once, whatever the other hosts do meanwhile, until
 * something comes that it can see. False if there is nothing to gain.
 */
static bool rest(struct lab_exec *x, struct lab_cpu *c, sim_ps relax, sim_ps at)
{
	const struct rt_task *task = c->running;
	sim_ps now = sim_now(x->sim);
	sim_ps limit = HO_MIN(at, x->sim->horizon == SIM_NEVER ? SIM_NEVER : x->sim->horizon + 1);
	sim_ps latest = SIM_NEVER;
	enum lab_bucket bucket = (enum lab_bucket)c->buckets[RT_COST_RELAX];
	uint64_t skip;

	c->spin.begin = now + relax;
	c->spin.turn = task->turn + relax;
	if (limit != SIM_NEVER) {
		skip = turns_before(now, relax, task->turn, limit);
		if (!skip)
			return false;
		latest = c->spin.begin + skip * c->spin.turn;
	}
	lab_cpu_rest(c, latest, bucket);
	if (lab_cpu_now(c) < c->spin.begin) {
		/* An interrupt, in this relax. */
		c->time[bucket] += lab_cpu_now(c) - now;
		lab_cpu_pass(c, c->spin.begin - lab_cpu_now(c), bucket);
		return true;
	}
	account_turns(c, (lab_cpu_now(c) - c->spin.begin) / c->spin.turn, relax);
	/* Somebody outside of the clock may have interrupted a turn. */
	c->time[bucket] += relax + (lab_cpu_now(c) - c->spin.begin) % c->spin.turn;
	return true;
}

/* at: the loop looks at the clock for this time only; SIM_NEVER: for anything. */
static void relax_before(struct rt *rt, sim_ps at)
{
	struct lab_exec *x = lab_exec_of(rt);
	struct lab_cpu *c = x->cur;
	/* Even a machine without costs must get past a busy loop. */
	sim_ps relax = HO_MAX(x->price[RT_COST_RELAX].ps, SIM_PS_PER_NS);
	struct rt_task *task;

	if (!c && sim_outside(x->sim))
		sim_run_until(x->sim, sim_now(x->sim) + relax);
	if (!c || c->context != LAB_IN_TASK)
		return;
	task = c->running;
	if (turn_was_empty(c, at) && x->sim->quiet != SIM_NEVER && !c->behind) {
		sim_ps now = sim_now(x->sim);
		uint64_t skip;

		if (sim_next_is_foreign(x->sim, &x->host) && rest(x, c, relax, at))
			goto turned;
		skip = turns_before(now, relax, task->turn, HO_MIN(x->sim->quiet, at));
		x->sim->now += skip * (task->turn + relax);
		account_turns(c, skip, relax);
	} else {
		task->turn = lab_cpu_now(c) - task->turn_start;
	}
	lab_cpu_pass(c, relax, (enum lab_bucket)c->buckets[RT_COST_RELAX]);
turned:
	task->calm = task->turn_known && task->turn_events == lab_cpu_seen(c);
	task->turn_known = true;
	task->saw_clock = false;
	task->turn_start = lab_cpu_now(c);
	task->turn_events = lab_cpu_seen(c);
	task->turn_user = c->time[LAB_USER];
	task->turn_system = c->time[LAB_SYSTEM];
}

static void exec_relax(struct rt *rt)
{
	relax_before(rt, SIM_NEVER);
}

static void exec_relax_until(struct rt *rt, uint64_t at_ns)
{
	relax_before(rt, lab_at(lab_exec_of(rt), at_ns));
}

/* One long pass instead of many turns: other CPUs that spin do not stop it at each of theirs. */
static void exec_spin_until(struct rt *rt, uint64_t at_ns)
{
	struct lab_exec *x = lab_exec_of(rt);
	struct lab_cpu *c = x->cur;
	sim_ps relax = HO_MAX(x->price[RT_COST_RELAX].ps, SIM_PS_PER_NS);
	sim_ps now = sim_now(x->sim), at = lab_at(x, at_ns);

	/* Outside of tasks, or without an end: a turn. */
	if (!c || c->context != LAB_IN_TASK || at <= now || at == SIM_NEVER) {
		exec_relax(rt);
		return;
	}
	c->running->turn_known = false;
	lab_cpu_pass(c, (at - now + relax - 1) / relax * relax,
		     (enum lab_bucket)c->buckets[RT_COST_RELAX]);
}

static uint64_t exec_now_ns(struct rt *rt)
{
	struct lab_exec *x = lab_exec_of(rt);

	if (x->cur)
		x->cur->running->saw_clock = true;
	return ((x->cur ? lab_cpu_now(x->cur) : sim_now(x->sim)) - x->created) / SIM_PS_PER_NS;
}

/* --- the executor ------------------------------------------------------------------------- */

static void exec_stop(struct rt *rt)
{
	__atomic_store_n(&rt->stopping, true, __ATOMIC_RELAXED);
	sim_poke(lab_exec_of(rt)->sim);
}

static void poked(void *arg)
{
	struct lab_exec *x = arg;

	if (rt_stopping(&x->rt) && !x->stop_seen)
		lab_sched_stop(x);
}

/* Runs in the outer loop only; that it had to is all. */
static void to_main(void *arg)
{
}

static void exec_destroy(struct rt *rt)
{
	struct lab_exec *x = lab_exec_of(rt);

	while (x->tasks)
		lab_task_free(x->tasks);
	for (unsigned i = 0; i < x->machine.cpus; i++)
		lab_sched_fini_cpu(&x->cpu[i]);
	sim_cancel(x->sim, &x->to_main);
	sim_poke_remove(x->sim, &x->poke);
	lab_coro_hub_destroy(x->hub);
	free(x);
}

static const struct rt_ops exec_ops = {
	.now_ns = exec_now_ns,
	.spend = exec_spend,
	.relax = exec_relax,
	.relax_until = exec_relax_until,
	.spin_until = exec_spin_until,
	.sleep_until = lab_sleep_until,
	.spawn = lab_spawn,
	.join = lab_join,
	.event_create = lab_event_create,
	.event_from_fd = lab_event_from_fd,
	.event_destroy = lab_event_destroy,
	.event_signal = lab_event_signal,
	.event_arm = lab_event_arm,
	.wait = lab_wait,
	.irq_attach = lab_irq_attach,
	.irq_detach = lab_irq_detach,
	.napi_create = lab_napi_create,
	.napi_schedule = lab_napi_schedule,
	.napi_destroy = lab_napi_destroy,
	.stop = exec_stop,
	.destroy = exec_destroy,
};

void lab_machine_defaults(struct lab_machine *machine)
{
	*machine = (struct lab_machine){
		.cpus = 1,
		.time_slice = 4 * SIM_PS_PER_MS,
		.softirq_limit = 2 * SIM_PS_PER_MS,
		.softirq_rounds = 10,
		.poll_limit = 2 * SIM_PS_PER_MS,
		.poll_budget = 300,
	};
}

static int set_machine(struct lab_exec *x, const struct lab_machine *machine, struct ho_err *err)
{
	x->machine = *machine;
	if (machine->poll_budget < 1 || !machine->softirq_rounds || !machine->time_slice)
		return ho_err_set(err, -EINVAL,
				  "%s: the NAPI budget, the rounds of a softirq and the time slice "
				  "must not be 0",
				  x->name);
	for (int cost = 0; cost < RT_COST_COUNT; cost++)
		x->price[cost].ps = machine->cost[cost];
	for (unsigned i = 0; i < machine->n_reuse; i++) {
		x->price[machine->reuse[i].fill].fills = (uint8_t)(i + 1);
		x->price[machine->reuse[i].drain].drains = (uint8_t)(i + 1);
	}
	return lab_cache_prepare(&x->machine.cache, err);
}

int lab_exec_create(struct sim *sim, const char *name, const struct lab_machine *machine,
		    struct lab_trace *trace, struct rt **out, struct ho_err *err)
{
	struct lab_exec *x;
	int rc;

	if (!machine->cpus || machine->cpus > 1024 || machine->n_reuse > LAB_REUSE_MAX)
		return ho_err_set(err, -EINVAL, "%s: %u CPUs: a host has 1 to 1024", name,
				  machine->cpus);
	x = calloc(1, sizeof(*x) + machine->cpus * sizeof(x->cpu[0]));
	if (!x)
		return ho_err_set(err, -ENOMEM, "out of memory");
	x->rt.ops = &exec_ops;
	x->rt.is_virtual = true;
	x->sim = sim;
	x->trace = trace;
	x->created = sim_now(sim);
	x->tasks_tail = &x->tasks;
	snprintf(x->name, sizeof(x->name), "%s", name);
	sim_event_init(&x->to_main, to_main, NULL);
	x->to_main.outer = true;
	x->poke = (struct sim_poke){ .fn = poked, .arg = x };
	sim_poke_add(sim, &x->poke);
	rc = set_machine(x, machine, err);
	if (rc)
		goto err_free;
	if (lab_coro_hub_create(sim->store, &x->hub)) {
		rc = ho_err_set(err, -ENOMEM, "out of memory");
		goto err_free;
	}
	for (unsigned i = 0; i < machine->cpus; i++) {
		struct lab_cpu *c = &x->cpu[i];
		char cpu[16];

		lab_cpu_init(x, i);
		snprintf(cpu, sizeof(cpu), "CPU %u", i);
		c->track = lab_trace_track(trace, x->name, cpu);
		rc = lab_sched_init_cpu(c, err);
		if (!rc)
			rc = lab_softirq_init_cpu(c, err);
		if (rc) {
			x->machine.cpus = i + 1;
			exec_destroy(&x->rt);
			return rc;
		}
	}
	*out = &x->rt;
	return 0;

err_free:
	sim_poke_remove(sim, &x->poke);
	free(x);
	return rc;
}

struct sim *lab_exec_sim(struct rt *rt)
{
	return lab_exec_of(rt)->sim;
}

struct sim_host *lab_exec_host(struct rt *rt)
{
	return &lab_exec_of(rt)->host;
}

const struct lab_machine *lab_exec_machine(struct rt *rt)
{
	return &lab_exec_of(rt)->machine;
}

bool lab_exec_on_cpu(struct rt *rt)
{
	return lab_exec_of(rt)->cur != NULL;
}

bool lab_exec_deadlocked(struct rt *rt)
{
	return lab_exec_of(rt)->deadlocked;
}

int lab_exec_cpu_of(struct lab_exec *x, const struct rt_task_attr *attr, unsigned any,
		    struct lab_cpu **out, struct ho_err *err)
{
	if (attr->cpu >= (int)x->machine.cpus)
		return ho_err_set(err, -EINVAL, "%s: %s wants CPU %d; the host has %u", x->name,
				  attr->name ? attr->name : "a task", attr->cpu, x->machine.cpus);
	*out = &x->cpu[attr->cpu < 0 ? any : (unsigned)attr->cpu];
	return 0;
}

/* --- accounts ----------------------------------------------------------------------------- */

void lab_exec_kernel_thread(struct rt *rt)
{
	struct lab_cpu *c = lab_exec_of(rt)->cur;

	if (!c || c->context != LAB_IN_TASK)
		return;
	c->running->buckets = lab_buckets_system;
	c->buckets = lab_buckets_system;
}

void lab_exec_cpu_stats(struct rt *rt, unsigned cpu, struct lab_cpu_stats *out)
{
	struct lab_exec *x = lab_exec_of(rt);
	const struct lab_cpu *c = &x->cpu[cpu];
	sim_ps time[LAB_BUCKETS];

	memcpy(time, c->time, sizeof(time));
	if (c->passing)
		time[c->bucket] += sim_now(x->sim) - c->since;
	*out = c->stats;
	out->user = time[LAB_USER];
	out->system = time[LAB_SYSTEM];
	out->irq = time[LAB_IRQ];
	out->softirq = time[LAB_SOFTIRQ];
	out->idle = time[LAB_IDLE];
}

void lab_exec_task_stats(struct rt_task *task, struct lab_task_stats *out)
{
	const struct lab_cpu *c = task->cpu;

	*out = (struct lab_task_stats){
		.run = task->run,
		.voluntary = task->voluntary,
		.involuntary = task->involuntary,
	};
	if (c->running != task || c->coro != task->coro)
		return;
	out->run += c->time[LAB_USER] + c->time[LAB_SYSTEM] - task->run_base;
	if (c->passing && (c->bucket == LAB_USER || c->bucket == LAB_SYSTEM))
		out->run += sim_now(task->exec->sim) - c->since;
}
