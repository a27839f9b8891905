// SPDX-License-Identifier: BSD-2-Clause
/* Machine profiles: what is read, inherited and refused; the cache term. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lab/cache.h"
#include "lab/profile.h"

static int parse(const char *text, struct lab_profile **p, struct ho_err *err)
{
	*err = (struct ho_err){ 0 };
	return lab_profile_parse("mine.yaml", text, strlen(text), p, err);
}

static void test_shipped(void **state)
{
	struct lab_profile *p;
	struct ho_err err;
	int rc = lab_profile_load("e5-2630", &p, &err);

	if (rc)
		fail_msg("%s", err.text);
	assert_int_equal(p->machine.cpus, 6);
	assert_int_equal(p->machine.poll_budget, 300);
	assert_int_equal(p->machine.cost[RT_COST_RELAX], 4300);
	assert_int_equal(p->pci.up_bps, 32000000000u);
	assert_int_equal(p->machine.cache.n_levels, 3);
	assert_int_equal(p->machine.reuse[0].bytes, 64);
	assert_true(lab_profile_fitted(p) <= 5);
	for (int id = 0; id < LAB_CONSTANT_COUNT; id++) {
		assert_non_null(p->constant[id].source);
		assert_true((p->constant[id].kind == LAB_FITTED) == (p->constant[id].n_rows > 0));
	}
	lab_profile_free(p);
}

static void test_handful_of_facts(void **state)
{
	static const char text[] =
		"name: mine\n"
		"title: my machine\n"
		"inherits: e5-2630\n"
		"cpus: 2\n"
		"cpu_hz: 4600000000\n"
		"constants:\n"
		"  register_read_ns: {value: 512.5, kind: measured, source: bench}\n"
		"caches:\n"
		"  - name: L1D\n"
		"    bytes: 49152\n"
		"    ways: 12\n"
		"    miss_ns: {value: 3, kind: published, source: manual}\n";
	struct lab_profile *p, *base;
	struct ho_err err;

	if (parse(text, &p, &err))
		fail_msg("%s", err.text);
	assert_int_equal(lab_profile_load("e5-2630", &base, &err), 0);
	assert_int_equal(p->machine.cpus, 2);
	assert_int_equal(p->pci.register_read, 512500);
	/* Twice the clock halves what the CPU does; the bus stays. */
	assert_int_equal(p->machine.irq_entry, base->machine.irq_entry / 2);
	assert_int_equal(p->constant[LAB_IRQ_ENTRY_CONSTANT].kind, LAB_DERIVED);
	assert_non_null(strstr(p->constant[LAB_IRQ_ENTRY_CONSTANT].source, "2.3/4.6 GHz"));
	assert_int_equal(p->pci.memory_read, base->pci.memory_read);
	assert_int_equal(p->machine.cache.n_levels, 1);
	assert_int_equal(p->machine.n_reuse, 1);
	assert_int_equal(lab_profile_fitted(p), 0);

	assert_int_equal(lab_profile_set(p, "irq_entry_ns", "250.5", &err), 0);
	assert_int_equal(p->machine.irq_entry, 250500);
	assert_int_equal(lab_profile_set(p, "L1D_miss_ns", "7", &err), 0);
	assert_int_equal(p->machine.cache.level[0].miss, 7000);
	assert_int_equal(lab_profile_set(p, "L2_miss_ns", "7", &err), -EINVAL);
	assert_string_equal(
		err.text,
		"profile mine has no constant 'L2_miss_ns'; docs/lab-files.md lists them");
	assert_int_equal(lab_profile_set(p, "irq_entry_ns", "2us", &err), -EINVAL);
	assert_int_equal(lab_profile_set(p, "irq_entry_ns", "-1", &err), -EINVAL);
	assert_int_equal(lab_profile_set(p, "poll_budget", "0", &err), -EINVAL);
	lab_profile_free(p);
	lab_profile_free(base);
}

#define HEAD "name: mine\ntitle: t\ninherits: e5-2630\n"

static void test_errors(void **state)
{
	static const struct {
		const char *text;
		const char *message; /* a part of it */
	} cases[] = {
		{ HEAD "constants:\n  irq_entri_ns: {value: 1, kind: fitted, source: x}\n",
		  "mine.yaml:5:3: " },
		{ HEAD "constants:\n  irq_entry_ns: {value: x, kind: measured, source: x}\n",
		  "mine.yaml:5:25: " },
		{ HEAD "constants:\n  irq_entry_ns: {value: 1, kind: guessed, source: x}\n",
		  "mine.yaml:5:34: " },
		{ HEAD "constants:\n  irq_entry_ns: {value: 1, kind: measured}\n", "mine.yaml:5:" },
		{ HEAD "constants:\n  irq_entry_ns:\n    value: -4\n    kind: measured\n"
		       "    source: x\n",
		  "mine.yaml:6:12: -4: a value from 0" },
		{ HEAD "constants:\n  irq_entry_ns: {value: 1, kind: fitted, source: x}\n",
		  "mine.yaml:5:3: a fitted constant must say to which rows" },
		{ HEAD "constants:\n  poll_budget: {value: 2.5, kind: measured, source: x}\n",
		  "mine.yaml:5:24: 2.5: a whole number is needed" },
		{ HEAD "constants:\n  pci_gbps: {value: 0, kind: measured, source: x}\n",
		  "mine.yaml:5:21: pci_gbps must not be 0" },
		{ HEAD
		  "caches:\n  - {name: L1, bytes: 1000, ways: 8,\n     miss_ns: {value: 1, kind: "
		  "measured, source: x}}\n",
		  "mine.yaml:4:1: cache level 1: 1000 bytes" },
		{ "name: mine\ntitle: t\ncpus: 1\ncpu_hz: 1000\n",
		  "mine.yaml:1:1: constant gen_frame_ns is missing" },
		{ "name: mine\ntitle: t\ninherits: nowhere\n",
		  "mine.yaml:3:11: nowhere: there is no" },
		{ "name: mine\ntitle: [\n", "mine.yaml:" },
		{ HEAD "cpus: 5000\n", "mine.yaml:4:7: cpus: a machine has 1 to 1024" },
	};
	struct lab_profile *p;
	struct ho_err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(parse(cases[i].text, &p, &err) < 0);
		if (strncmp(err.text, cases[i].message, strlen(cases[i].message)))
			fail_msg("case %zu: '%s' does not begin with '%s'", i, err.text,
				 cases[i].message);
	}
	assert_int_equal(lab_profile_load("/nowhere/x.yaml", &p, &err), -ENOENT);
}

/* --- the cache term ----------------------------------------------------------------------- */

#define SHARE(x) ((double)(x) / 4294967296.0)

static struct lab_cache l1(uint64_t other)
{
	struct lab_cache cache = {
		.n_levels = 1,
		.level[0] = { .bytes = 32768, .ways = 8, .line = 64, .miss = 10000 },
		.other_bytes = other,
	};

	assert_int_equal(lab_cache_prepare(&cache, NULL), 0);
	return cache;
}

static void test_cache_without_others(void **state)
{
	struct lab_cache cache = l1(0);

	/* Plain LRU: all there up to 7 ways, all gone from 8 on, in between set by set. */
	assert_int_equal(lab_cache_lost(&cache.level[0], 0), 0);
	assert_int_equal(lab_cache_lost(&cache.level[0], 28672), 0);
	assert_int_equal(lab_cache_lost(&cache.level[0], 30720), 1ull << 31);
	assert_int_equal(lab_cache_lost(&cache.level[0], 32768), 1ull << 32);
	assert_int_equal(lab_cache_lost(&cache.level[0], 1ull << 40), 1ull << 32);
	assert_int_equal(lab_cache_touch(&cache, 1 << 20, 64), 10000);
	assert_int_equal(lab_cache_touch(&cache, 1 << 20, 16), 2500);
	assert_int_equal(lab_cache_touch(&cache, 1 << 10, 64), 0);
}

static void test_cache_is_poisson(void **state)
{
	struct lab_cache cache = l1(4096);
	const uint64_t *lost = cache.level[0].lost;
	uint64_t last = 0;

	/* One line a set on average: P(X >= 1) = 1 - 1/e, P(X >= 2) = 1 - 2/e, ... */
	assert_float_equal(SHARE(lost[8]), 1.0, 1e-9);
	assert_float_equal(SHARE(lost[7]), 0.6321205588, 1e-9);
	assert_float_equal(SHARE(lost[6]), 0.2642411177, 1e-9);
	assert_float_equal(SHARE(lost[5]), 0.0803013971, 1e-9);
	assert_float_equal(SHARE(lost[4]), 0.0189881569, 1e-9);
	for (uint64_t d = 0; d < 40000; d += 16) {
		uint64_t share = lab_cache_lost(&cache.level[0], d);

		assert_true(share >= last);
		assert_true(share - last < 1ull << 23); /* smooth */
		last = share;
	}
	/* The figures of cache.h. */
	cache = l1(1024);
	assert_float_equal(SHARE(lab_cache_lost(&cache.level[0], 20 << 10)), 0.0022, 0.0005);
	assert_float_equal(SHARE(lab_cache_lost(&cache.level[0], 24 << 10)), 0.0265, 0.0005);
	assert_float_equal(SHARE(lab_cache_lost(&cache.level[0], 28 << 10)), 0.2212, 0.0005);
	assert_float_equal(SHARE(lab_cache_lost(&cache.level[0], 30 << 10)), 0.6106, 0.0005);
	assert_int_equal(lab_cache_lost(&cache.level[0], 32 << 10), 1ull << 32);
	/* Much else: never there. */
	cache = l1(1 << 20);
	assert_float_equal(SHARE(lab_cache_lost(&cache.level[0], 0)), 1.0, 1e-6);
}

static void test_cache_errors(void **state)
{
	struct lab_cache cache = l1(0);
	struct ho_err err;

	cache.level[0].ways = 0;
	assert_int_equal(lab_cache_prepare(&cache, &err), -EINVAL);
	cache = l1(0);
	cache.level[0].line = 48;
	assert_int_equal(lab_cache_prepare(&cache, &err), -EINVAL);
	cache = l1(0);
	cache.n_levels = 2;
	cache.level[1] = cache.level[0];
	assert_int_equal(lab_cache_prepare(&cache, &err), -EINVAL);
	assert_string_equal(err.text,
			    "cache level 2: 32768 bytes: not larger than the level before");
}

/* The executor's use of it: what was outstanding at the last fill is the distance. */
static struct rt *rt;
static sim_ps clean_costs[3];

static void fill_and_drain(void *arg)
{
	struct sim *sim = arg;
	sim_ps begin;

	rt_spend(rt, RT_COST_TX_FRAME, 100);
	begin = sim_now(sim);
	rt_spend(rt, RT_COST_TX_CLEAN, 100);
	clean_costs[0] = sim_now(sim) - begin;
	rt_spend(rt, RT_COST_TX_FRAME, 843);
	begin = sim_now(sim);
	for (int i = 0; i < 843; i++)
		rt_spend(rt, RT_COST_TX_CLEAN, 1);
	clean_costs[1] = sim_now(sim) - begin;
	rt_spend(rt, RT_COST_TX_FRAME, 843);
	begin = sim_now(sim);
	rt_spend(rt, RT_COST_TX_CLEAN, 843);
	clean_costs[2] = sim_now(sim) - begin;
}

static void test_reuse_in_exec(void **state)
{
	struct rt_task_attr attr = { .name = "filler", .cpu = 0 };
	struct lab_machine machine;
	struct rt_task *task;
	struct sim *sim;

	lab_machine_defaults(&machine);
	machine.cost[RT_COST_TX_CLEAN] = 20000;
	machine.cache = l1(0);
	machine.reuse[0] = (struct lab_reuse){ RT_COST_TX_FRAME, RT_COST_TX_CLEAN, 64 };
	machine.n_reuse = 1;
	assert_int_equal(sim_create(&sim), 0);
	assert_int_equal(lab_exec_create(sim, "host", &machine, NULL, &rt, NULL), 0);
	assert_int_equal(rt_spawn(rt, &attr, fill_and_drain, sim, &task, NULL), 0);
	rt_join(rt, task);
	assert_int_equal(clean_costs[0], 100 * 20000);
	/* The same whether cleaned one by one or all at once. */
	assert_int_equal(clean_costs[1], 843 * 30000);
	assert_int_equal(clean_costs[2], 843 * 30000);
	rt_destroy(rt);
	sim_destroy(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_handful_of_facts),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_cache_without_others),
		cmocka_unit_test(test_cache_is_poisson),
		cmocka_unit_test(test_cache_errors),
		cmocka_unit_test(test_reuse_in_exec),
	};

	return cmocka_run_group_tests_name("lab_profile", tests, NULL, NULL);
}
