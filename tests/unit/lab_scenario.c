// SPDX-License-Identifier: BSD-2-Clause
/* Scenario files: what they mean, what can be set, what is refused and where. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lab/datadir.h"
#include "lab/scenario.h"

static struct lab_scenario *load_shipped(void)
{
	struct lab_scenario *s;
	struct ho_err err;

	if (lab_scenario_load("ixgbe-txring", &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static void test_shipped(void **state)
{
	struct lab_scenario *s = load_shipped();
	const struct lab_host_spec *h = &s->hosts[0];
	const struct lab_chip_spec *chip = &h->chips[0];
	double number;

	assert_int_equal(s->seed, 1);
	assert_int_equal(s->warmup, 20 * SIM_PS_PER_MS);
	assert_int_equal(s->duration, 200 * SIM_PS_PER_MS);
	assert_int_equal(s->hosts_count, 1);
	assert_string_equal(h->profile->name, "e5-2630");
	assert_int_equal(chip->rx_mode, LAB_RX_NAPI);
	assert_int_equal(chip->irq_cpus_count, 1);
	assert_int_equal(lab_params_get(&chip->params, "tx")->value, 512);
	assert_true(lab_params_get(&chip->params, "tx")->numeric);
	assert_null(lab_params_get(&chip->params, "no-such"));
	assert_int_equal(h->workloads[0].kind, LAB_WORK_PKTGEN);
	assert_int_equal(h->workloads[0].rate.unit, HO_RATE_MAX);
	assert_int_equal(s->wires[0].bits_per_s, 10000000000u);
	assert_int_equal(s->wires[0].propagation, 25 * SIM_PS_PER_NS);
	assert_true(s->wires[0].sink);
	assert_int_equal(s->axes_count, 2);
	assert_string_equal(s->axes[0].values[2], "1024");
	assert_int_equal(s->published->parameters_count, 2);
	assert_true(s->published->results[1].background > 0);
	assert_non_null(strstr(s->published_path, "ixgbe-txring.csv"));
	assert_int_equal(s->table->n_rows, 24);
	assert_string_equal(lab_table_cell(s->table, 0, 0), "v1");
	assert_int_equal(
		lab_table_number(s->table, 1, (unsigned)lab_table_column(s->table, "pps"), &number),
		0);
	assert_float_equal(number, 6684612, 0.5);
	assert_int_equal(lab_table_number(s->table, 23, 4, &number), -ENODATA);
	assert_int_equal(lab_table_number(s->table, 0, 0, &number), -EINVAL);
	lab_scenario_free(s);
}

static int set(struct lab_scenario *s, const char *path, const char *value)
{
	struct ho_err err = { 0 };
	int rc = lab_scenario_set(s, path, value, &err);

	if (rc)
		fail_msg("%s", err.text);
	return rc;
}

static void test_set(void **state)
{
	struct lab_scenario *s = load_shipped();
	struct lab_host_spec *h = &s->hosts[0];
	struct lab_chip_spec *chip = &h->chips[0];
	struct ho_err err;
	sim_ps frame;

	set(s, "tx", "2k");
	assert_int_equal(lab_params_get(&chip->params, "tx")->value, 2000);
	set(s, "hosts.dut.chips.eth0.bql", "on");
	assert_int_equal(lab_params_get(&chip->params, "bql")->value, 1);
	set(s, "hosts.dut.chips.eth0.rx-mode", "poll");
	assert_int_equal(chip->rx_mode, LAB_RX_POLL);
	set(s, "hosts.dut.chips.eth0.irq-cpus", "0,3,5");
	assert_int_equal(chip->irq_cpus_count, 3);
	assert_int_equal(chip->irq_cpus[1], 3);
	set(s, "hosts.dut.cpus", "8");
	assert_int_equal(h->profile->machine.cpus, 8);
	set(s, "hosts.dut.constants.irq_entry_ns", "111.5");
	assert_int_equal(h->profile->machine.irq_entry, 111500);
	frame = h->profile->machine.cost[RT_COST_GEN_FRAME];
	/* It stays when the profile changes. */
	assert_int_equal(lab_scenario_set_series(s, "base", &err), 0);
	assert_string_equal(h->profile->name, "e5-2630-base");
	assert_int_equal(h->profile->machine.irq_entry, 111500);
	assert_true(h->profile->machine.cost[RT_COST_GEN_FRAME] > frame);
	set(s, "hosts.dut.workloads.sender.rate", "1mpps");
	assert_int_equal(h->workloads[0].rate.unit, HO_RATE_PPS);
	set(s, "hosts.dut.workloads.sender.kind", "gen");
	set(s, "hosts.dut.workloads.sender.burst", "32");
	assert_int_equal(lab_params_get(&h->workloads[0].params, "burst")->value, 32);
	set(s, "wires.cable.rate", "40gbps");
	assert_int_equal(s->wires[0].bits_per_s, 40000000000u);
	set(s, "seed", "99");
	set(s, "duration", "3s");
	assert_int_equal(s->seed, 99);
	assert_int_equal(s->duration, 3 * SIM_PS_PER_S);
	lab_scenario_free(s);
}

static void test_set_errors(void **state)
{
	static const struct {
		const char *path, *value, *message;
	} cases[] = {
		{ "nonsense", "1", "nonsense=1: nothing that can be set" },
		{ "hosts.other.cpus", "1", "hosts.other.cpus=1: there is no host 'other'" },
		{ "hosts.dut.chips.eth9.tx", "1",
		  "hosts.dut.chips.eth9.tx=1: host dut has no chip" },
		{ "hosts.dut.cpus", "x", "hosts.dut.cpus=x: " },
		{ "hosts.dut.constants.nonsense_ns", "1",
		  "hosts.dut.constants.nonsense_ns=1: profile e5-2630 has no constant" },
		{ "hosts.dut.chips.eth0.rx-mode", "fast",
		  "hosts.dut.chips.eth0.rx-mode=fast: there is no rx-mode 'fast'" },
		{ "hosts.dut.chips.eth0.irq-cpus", "0,,1", "hosts.dut.chips.eth0.irq-cpus=0,,1: " },
		{ "hosts.dut.chips.eth0.irq-cpus", "17",
		  "hosts.dut.chips.eth0.irq-cpus=17: CPU 17: host dut has 6" },
		{ "wires.cable.rate", "10mpps", "wires.cable.rate=10mpps: 10mpps: a wire's rate" },
		{ "wires.cable.to", "dut.eth0",
		  "wires.cable.to=dut.eth0: this chip is at an end of wire cable already" },
		{ "duration", "0", "duration=0: the duration must not be 0" },
		{ "wires.cable.rate", "", "wires.cable.rate=: a value is needed" },
	};
	struct ho_err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lab_scenario *s = load_shipped();

		assert_true(lab_scenario_set(s, cases[i].path, cases[i].value, &err) < 0);
		if (strncmp(err.text, cases[i].message, strlen(cases[i].message)))
			fail_msg("case %zu: '%s' does not begin with '%s'", i, err.text,
				 cases[i].message);
		lab_scenario_free(s);
	}
}

#define HEAD "name: x\ntitle: t\nduration: 1ms\nhosts:\n"
#define HOST HEAD "  - name: a\n    profile: e5-2630\n"
#define CHIP HOST "    chips:\n      - {name: eth0, model: m, queues: 2}\n"

static void test_errors(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ HEAD "  - name: a\n    profil: x\n", "s.yaml:6:5: Unexpected key: profil" },
		{ "name: x\ntitle: t\nduration: 10\n", "s.yaml:" },
		{ "", "s.yaml:1:1: there is nothing in it" },
		{ "# nothing\n", "s.yaml:1:1: there is nothing in it" },
		{ "name: x\ntitle: \"a\n", "s.yaml:2:8: libyaml: found unexpected end" },
		{ HEAD "  - name: a\n    name: b\n",
		  "s.yaml:6:5: 'name' is given twice, first in line 5" },
		{ HEAD "  - name: a\n---\nname: y\n", "s.yaml:6:1: a second document" },
		{ "name: &x y\ntitle: *x\n", "s.yaml:2:8: aliases" },
		{ "name: x\n\ttitle: y\n",
		  "s.yaml:2:1: libyaml: found a tab character" },
		{ "name: x\n\001: t\n", "s.yaml:" },
		{ HEAD "  - name: a.b\n    profile: e5-2630\n",
		  "s.yaml:5:11: 'a.b': a name is made" },
		{ HOST "  - name: a\n    profile: e5-2630\n", "s.yaml:7:11: 'a' is named twice" },
		{ HEAD "  - name: a\n    profile: nope\n", "s.yaml:6:14: nope: there is no" },
		{ HOST "    cpus: 4000\n", "s.yaml:7:11: 4000 CPUs" },
		{ HOST "    constants:\n      irq_entry_ns: fast\n",
		  "s.yaml:8:21: irq_entry_ns: 'fast' is not a number" },
		{ HOST "    constants: [1]\n", "s.yaml:7:16: this must be a mapping" },
		{ HOST "    chips:\n      - name: eth0\n        model: m\n        params:\n"
		       "          tx: [1, 2]\n",
		  "s.yaml:11:15: a single value" },
		{ HOST
		  "    chips:\n      - name: eth0\n        model: m\n        params: {tx: 1, tx: "
		  "2}\n",
		  "s.yaml:10:25: 'tx' is given twice" },
		{ HOST "    chips:\n      - name: eth0\n        model: m\n        rx-mode: quick\n",
		  "s.yaml:10:18: " },
		{ HOST
		  "    chips:\n      - name: eth0\n        model: m\n        irq-cpus: [0, 6]\n",
		  "s.yaml:10:23: CPU 6: host a has 6" },
		{ CHIP "    workloads:\n      - {name: w, kind: gen, chip: eth1, cpu: 0}\n",
		  "s.yaml:10:36: host a has no chip 'eth1'" },
		{ CHIP
		  "    workloads:\n      - {name: w, kind: gen, chip: eth0, cpu: 0, queue: 2}\n",
		  "s.yaml:10:57: queue 2: chip eth0 has 2" },
		{ CHIP
		  "    workloads:\n      - {name: w, kind: gen, chip: eth0, cpu: 0, rate: quick}\n",
		  "s.yaml:10:56: " },
		{ CHIP "wires:\n  - {name: w, from: a.eth1, rate: 10gbps}\n",
		  "s.yaml:10:21: 'a.eth1': a wire's end" },
		{ CHIP "wires:\n  - {name: w, from: a.eth0, rate: 10gbps}\n"
		       "  - {name: v, from: a.eth0, rate: 10gbps}\n",
		  "s.yaml:11:21: this chip is at an end of wire w already" },
		{ CHIP "wires:\n  - {name: w, from: a.eth0, rate: fast}\n", "s.yaml:10:35: " },
		{ CHIP "wires:\n  - {name: w, from: a.eth0, rate: 1gbps, propagation: 5}\n",
		  "s.yaml:10:55: " },
		{ HOST "published: {file: ixgbe-txring, series-column: series}\n",
		  "s.yaml:7:48: series-column needs" },
		{ HOST "published: {file: nope}\n", "s.yaml:7:19: nope: there is no published" },
		{ HOST "published: {file: ixgbe-txring, parameters: [{column: tx, axis: tx}]}\n",
		  "s.yaml:7:65: there is no axis 'tx'" },
		{ HOST "published: {file: ixgbe-txring, results: [{column: pps, result: pps, "
		       "background: 3}]}\n",
		  "s.yaml:7:82: a background must say" },
		{ HOST "published: {file: ixgbe-txring, results: [{column: pps, result: b}]}\n",
		  "s.yaml:7:65: 'b' is not a result of a run" },
		{ HOST "published: {file: ixgbe-txring, results: [{column: mpps, result: b}]}\n",
		  "s.yaml:7:52: " },
	};
	struct lab_scenario *s;
	struct ho_err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = lab_scenario_parse("s.yaml", cases[i].text, strlen(cases[i].text), &s,
					    &err);

		if (rc >= 0)
			fail_msg("case %zu is taken", i);
		if (strncmp(err.text, cases[i].message, strlen(cases[i].message)))
			fail_msg("case %zu: '%s' does not begin with '%s'", i, err.text,
				 cases[i].message);
	}
	assert_int_equal(lab_scenario_load("nope", &s, &err), -ENOENT);
}

static void test_blame(void **state)
{
	static const char text[] = CHIP;
	struct lab_scenario *s;
	struct ho_err err;

	assert_int_equal(lab_scenario_parse("s.yaml", text, strlen(text), &s, &err), 0);
	ho_err_set(&err, -EINVAL, "no such model");
	assert_int_equal(lab_scenario_blame(s, &err, "hosts/%u/chips/%u/model", 0u, 0u), -EINVAL);
	assert_string_equal(err.text, "s.yaml:8:29: no such model");
	/* What is not in the file: where it would be. */
	ho_err_set(&err, -EINVAL, "odd");
	lab_scenario_blame(s, &err, "hosts/0/chips/0/params/tx");
	assert_string_equal(err.text, "s.yaml:8:9: odd");
	lab_scenario_free(s);
}

static int read_table(const char *text, struct lab_table **t, struct ho_err *err)
{
	char path[] = "/tmp/lab-table-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = lab_table_read(path, t, err);
	unlink(path);
	return rc;
}

static void test_tables(void **state)
{
	struct lab_table *t;
	struct ho_err err;

	assert_int_equal(read_table("# remark\n\na,b\r\n1,\n# more\n,2\n3,4", &t, &err), 0);
	assert_int_equal(t->n_rows, 3);
	assert_string_equal(t->column[1], "b");
	assert_string_equal(lab_table_cell(t, 0, 1), "");
	assert_string_equal(lab_table_cell(t, 1, 1), "2");
	assert_string_equal(lab_table_cell(t, 2, 0), "3");
	assert_int_equal(lab_table_column(t, "c"), -1);
	lab_table_free(t);
	assert_int_equal(read_table("a,b\n1,2,3\n", &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":2: the table has 2 columns"));
	assert_int_equal(read_table("a,b\n1\n", &t, &err), -EINVAL);
	assert_int_equal(read_table("# nothing\n", &t, &err), -EINVAL);
	assert_int_equal(lab_table_read("/nowhere.csv", &t, &err), -ENOENT);
}

static void test_data_directory(void **state)
{
	char **names;
	size_t n;
	char *path;

	assert_int_equal(lab_data_list("scenarios", ".yaml", &names, &n, NULL), 0);
	assert_true(n >= 1);
	for (size_t i = 1; i < n; i++)
		assert_true(strcmp(names[i - 1], names[i]) < 0);
	lab_data_list_free(names, n);
	/* The environment comes first, and what it lacks is found where it always is. */
	char directory[] = "/tmp/lab-data-XXXXXX", folder[160], file[96];
	assert_non_null(mkdtemp(directory));
	snprintf(folder, sizeof(folder), "mkdir %s/profiles && : > %s/profiles/x.yaml", directory,
		 directory);
	assert_int_equal(system(folder), 0);
	snprintf(file, sizeof(file), "%s/profiles/x.yaml", directory);
	assert_int_equal(lab_data_find("profiles", "x", ".yaml", &path, NULL), -ENOENT);
	setenv("HOLDOFF_DATA", directory, 1);
	assert_int_equal(lab_data_find("profiles", "x", ".yaml", &path, NULL), 0);
	assert_string_equal(path, file);
	free(path);
	assert_int_equal(lab_data_find("profiles", "e5-2630", ".yaml", &path, NULL), 0);
	free(path);
	assert_int_equal(lab_data_find("profiles", "./y.yaml", ".yaml", &path, NULL), 0);
	assert_string_equal(path, "./y.yaml");
	free(path);
	unsetenv("HOLDOFF_DATA");
	snprintf(folder, sizeof(folder), "rm -r %s", directory);
	assert_int_equal(system(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shipped),    cmocka_unit_test(test_set),
		cmocka_unit_test(test_set_errors), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_blame),      cmocka_unit_test(test_data_directory),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests_name("lab_scenario", tests, NULL, NULL);
}
