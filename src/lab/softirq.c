// SPDX-License-Identifier: BSD-2-Clause
/*
 * NAPI polls as softirqs, by the rules of Linux's __do_softirq (kernel/softirq.c) and
 * net_rx_action (net/core/dev.c):
 *
 *  1. A scheduled poll runs when the outermost interrupt ends. Scheduled by a task, it runs when
 *     that task next lets time pass, which is where local_bh_enable would run it.
 *  2. A round polls from the front of the list, each poll with its weight, until the list is empty,
 *     `poll_budget` frames are done or `poll_limit` has passed. A poll that used its weight goes to
 *     the back.
 *  3. If polls are left, another round follows, unless `softirq_rounds` are over, `softirq_limit`
 *     has passed or a task of higher priority waits for the CPU. Then ksoftirqd, a normal task,
 *     goes on when the scheduler lets it.
 *  4. The next interrupt runs softirqs again although ksoftirqd is awake, unless `ksoftirqd_owns`.
 *
 * The price of a poll (RT_COST_POLL and what it finds) is spent by the poll function.
 */
#include "lab/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/trace.h"

static void list_append(struct lab_cpu *c, struct rt_napi *napi)
{
	napi->next = NULL;
	*c->poll_tail = napi;
	c->poll_tail = &napi->next;
}

static void list_remove(struct lab_cpu *c, struct rt_napi *napi)
{
	struct rt_napi **at = &c->poll_head;

	while (*at && *at != napi)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = napi->next;
	if (!napi->next)
		c->poll_tail = at;
}

static void raise_softirq(struct lab_cpu *c)
{
	if (c->ksoftirqd_awake && c->exec->machine.ksoftirqd_owns)
		return;
	lab_cpu_want(c, LAB_WANT_SOFTIRQ);
}

static void schedule_here(struct rt_napi *napi)
{
	if (napi->dying)
		return;
	if (napi->scheduled) {
		napi->again = napi->polling;
		return;
	}
	napi->scheduled = true;
	list_append(napi->cpu, napi);
	raise_softirq(napi->cpu);
}

static void kick_irq(void *arg)
{
	schedule_here(arg);
}

void lab_napi_schedule(struct rt *rt, struct rt_napi *napi)
{
	if (lab_exec_of(rt)->cur == napi->cpu)
		schedule_here(napi);
	else
		lab_cpu_raise(&napi->kick);
}

/* Polls the first of the list once; returns the frames it did. */
static int poll_first(struct lab_cpu *c)
{
	struct rt_napi *napi = c->poll_head;
	int done;

	c->stats.polls++;
	napi->polling = true;
	napi->again = false;
	done = napi->poll(napi->arg, napi->weight);
	napi->polling = false;
	list_remove(c, napi);
	if ((done >= napi->weight || napi->again) && !napi->dying)
		list_append(c, napi);
	else
		napi->scheduled = false;
	return done;
}

static void poll_round(struct lab_cpu *c)
{
	struct lab_exec *x = c->exec;
	int budget = x->machine.poll_budget;
	sim_ps limit = sim_now(x->sim) + x->machine.poll_limit;

	while (c->poll_head) {
		if (budget <= 0 || sim_now(x->sim) > limit) {
			c->stats.squeezed++;
			return;
		}
		budget -= poll_first(c);
	}
}

static void wake_ksoftirqd(struct lab_cpu *c)
{
	if (c->ksoftirqd_awake)
		return;
	c->ksoftirqd_awake = true;
	c->stats.ksoftirqd++;
	lab_task_wake(c->ksoftirqd);
}

void lab_softirq_run(struct lab_cpu *c)
{
	struct lab_exec *x = c->exec;
	const uint8_t *buckets = c->buckets;
	sim_ps begin = sim_now(x->sim), limit = begin + x->machine.softirq_limit;
	unsigned rounds = x->machine.softirq_rounds;

	if (!c->poll_head)
		return;
	c->stats.softirqs++;
	lab_cpu_enter_context(c, LAB_IN_SOFTIRQ, lab_buckets_softirq);
	lab_cpu_pass(c, x->machine.softirq, LAB_SOFTIRQ);
	do {
		poll_round(c);
	} while (c->poll_head && --rounds && sim_now(x->sim) < limit &&
		 !(c->wants & LAB_WANT_RESCHED));
	lab_trace_slice(x->trace, c->track, "softirq", "softirq", begin, sim_now(x->sim));
	c->wants &= ~LAB_WANT_SOFTIRQ;
	if (c->poll_head)
		wake_ksoftirqd(c);
	lab_cpu_enter_context(c, LAB_IN_TASK, buckets);
}

void lab_softirq_after_irq(struct lab_cpu *c)
{
	if (c->poll_head && c->context == LAB_IN_TASK)
		raise_softirq(c);
}

static void ksoftirqd_main(void *arg)
{
	struct lab_cpu *c = arg;

	lab_exec_kernel_thread(&c->exec->rt);
	for (;;) {
		while (c->poll_head) {
			lab_softirq_run(c);
			/* cond_resched() */
			lab_cpu_pass(c, 0, LAB_SYSTEM);
		}
		c->ksoftirqd_awake = false;
		lab_task_block(c, false);
	}
}

int lab_softirq_init_cpu(struct lab_cpu *c, struct ho_err *err)
{
	char name[32];
	struct rt_task_attr attr = {
		.name = name,
		.cpu = (int)c->index,
		.prio = RT_PRIO_NORMAL,
	};

	snprintf(name, sizeof(name), "ksoftirqd/%u", c->index);
	return lab_task_create(c->exec, &attr, ksoftirqd_main, c, &c->ksoftirqd, err);
}

int lab_napi_create(struct rt *rt, const struct rt_task_attr *attr, int weight,
		    int (*poll)(void *arg, int budget), void *arg, struct rt_napi **out,
		    struct ho_err *err)
{
	struct lab_exec *x = lab_exec_of(rt);
	struct rt_napi *napi;
	struct lab_cpu *c;
	int rc = lab_exec_cpu_of(x, attr, 0, &c, err);

	if (rc)
		return rc;
	if (weight < 1)
		return ho_err_set(err, -EINVAL, "%s: NAPI weight %d: must be at least 1", x->name,
				  weight);
	napi = calloc(1, sizeof(*napi));
	if (!napi)
		return ho_err_set(err, -ENOMEM, "out of memory");
	napi->exec = x;
	napi->cpu = c;
	napi->poll = poll;
	napi->arg = arg;
	napi->weight = weight;
	snprintf(napi->name, sizeof(napi->name), "%s", attr->name ? attr->name : "napi");
	napi->kick =
		(struct lab_source){ .cpu = c, .name = napi->name, .fn = kick_irq, .arg = napi };
	*out = napi;
	return 0;
}

void lab_napi_destroy(struct rt *rt, struct rt_napi *napi)
{
	/* From here on no poll begins; one that is under way, and its interrupt, must come back. */
	napi->dying = true;
	lab_cpu_unraise(&napi->kick);
	lab_cpu_await(napi->exec, &napi->kick.running);
	lab_cpu_await(napi->exec, &napi->polling);
	list_remove(napi->cpu, napi);
	free(napi);
}
