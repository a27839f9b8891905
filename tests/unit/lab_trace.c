// SPDX-License-Identifier: BSD-2-Clause
/* The trace is JSON that viewers take: what happened on a CPU, nested, with the right times. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lab/exec.h"
#include "lab/trace.h"

static struct rt *rt;
static struct rt_event *vector;

static void work(void *arg)
{
	lab_exec_spend_ps(rt, 10 * SIM_PS_PER_US);
}

static void handler(void *arg)
{
	lab_exec_spend_ps(rt, SIM_PS_PER_US);
}

static void fire(void *arg)
{
	rt_event_signal(rt, vector);
}

static void write_trace(const char *path)
{
	struct rt_task_attr attr = { .name = "the \"task\"", .cpu = 1 };
	struct rt_task_attr irq_attr = { .name = "vector 0", .cpu = 1 };
	struct lab_machine machine;
	struct lab_trace *trace;
	struct sim_event hardware;
	struct rt_task *task;
	struct rt_irq *irq;
	struct sim *sim;
	uint32_t track;

	lab_machine_defaults(&machine);
	machine.cpus = 2;
	assert_int_equal(lab_trace_open(path, &trace, NULL), 0);
	assert_int_equal(sim_create(&sim), 0);
	assert_int_equal(lab_exec_create(sim, "host", &machine, trace, &rt, NULL), 0);
	track = lab_trace_track(trace, "chip\n", "queue 0");
	lab_trace_instant(trace, track, "pci", "doorbell", 1234567);
	lab_trace_counter(trace, track, "ring", 2000000, 17);
	assert_int_equal(rt_event_create(rt, &vector, NULL), 0);
	assert_int_equal(rt_irq_attach(rt, vector, &irq_attr, handler, NULL, &irq, NULL), 0);
	assert_int_equal(rt_spawn(rt, &attr, work, NULL, &task, NULL), 0);
	sim_event_init(&hardware, fire, NULL);
	sim_schedule(sim, &hardware, 3 * SIM_PS_PER_US);
	rt_join(rt, task);
	rt_irq_detach(rt, irq);
	rt_event_destroy(rt, vector);
	rt_destroy(rt);
	sim_destroy(sim);
	assert_int_equal(lab_trace_close(trace, NULL), 0);
}

static json_t *event(json_t *events, const char *phase, const char *name)
{
	size_t i;
	json_t *e;

	json_array_foreach (events, i, e) {
		if (!strcmp(json_string_value(json_object_get(e, "ph")), phase) &&
		    !strcmp(json_string_value(json_object_get(e, "name")), name))
			return e;
	}
	fail_msg("no event %s %s", phase, name);
	return NULL;
}

static double number(json_t *e, const char *key)
{
	return json_number_value(json_object_get(e, key));
}

static void test_trace(void **state)
{
	char path[] = "/tmp/lab-trace-XXXXXX";
	int fd = mkstemp(path);
	json_t *root, *events, *e, *irq;
	json_error_t error;

	assert_true(fd >= 0);
	close(fd);
	write_trace(path);
	root = json_load_file(path, 0, &error);
	if (!root)
		fail_msg("line %d: %s", error.line, error.text);
	events = json_object_get(root, "traceEvents");
	e = event(events, "X", "the \"task\"");
	irq = event(events, "X", "vector 0");
	assert_true(json_equal(json_object_get(e, "pid"), json_object_get(irq, "pid")));
	assert_true(json_equal(json_object_get(e, "tid"), json_object_get(irq, "tid")));
	assert_float_equal(number(event(events, "i", "doorbell"), "ts"), 1.234567, 1e-9);
	e = event(events, "C", "ring");
	assert_float_equal(number(e, "ts"), 2.0, 1e-9);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(e, "args"), "value")),
			 17);
	/* One process for the host, with a thread for each CPU; one for the chip. */
	e = event(events, "M", "process_name");
	assert_string_equal(json_string_value(json_object_get(json_object_get(e, "args"), "name")),
			    "host");
	json_decref(root);
	unlink(path);
}

/* The slices of a track nest: interrupts lie within the task that they interrupted. */
static void test_nesting(void **state)
{
	char path[] = "/tmp/lab-trace-XXXXXX";
	int fd = mkstemp(path);
	json_t *root, *events, *e;
	double task_ts = -1, task_end = 0, irq_ts = -1, irq_end = 0;
	size_t i;

	assert_true(fd >= 0);
	close(fd);
	write_trace(path);
	root = json_load_file(path, 0, NULL);
	assert_non_null(root);
	events = json_object_get(root, "traceEvents");
	json_array_foreach (events, i, e) {
		const char *category = json_string_value(json_object_get(e, "cat"));
		double ts = number(e, "ts"), end = ts + number(e, "dur");

		if (category && !strcmp(category, "task")) {
			task_ts = ts;
			task_end = end;
		} else if (category && !strcmp(category, "irq")) {
			irq_ts = ts;
			irq_end = end;
		}
	}
	assert_float_equal(task_ts, 0, 1e-9);
	assert_float_equal(task_end, 11, 1e-9);
	assert_float_equal(irq_ts, 3, 1e-9);
	assert_float_equal(irq_end, 4, 1e-9);
	json_decref(root);
	unlink(path);
}

static void test_errors(void **state)
{
	struct lab_trace *trace;
	struct ho_err err;

	assert_int_equal(lab_trace_open("/nowhere/t.json", &trace, &err), -ENOENT);
	assert_string_equal(err.text, "trace /nowhere/t.json: No such file or directory");
	assert_int_equal(lab_trace_close(NULL, NULL), 0);
	/* Without a trace nothing happens. */
	lab_trace_slice(NULL, lab_trace_track(NULL, "a", "b"), "c", "d", 1, 2);
	/* A full disk is told at the end. */
	assert_int_equal(lab_trace_open("/dev/full", &trace, NULL), 0);
	for (int i = 0; i < 10000; i++)
		lab_trace_slice(trace, lab_trace_track(trace, "p", "t"), "c", "name", 1, 2);
	assert_int_equal(lab_trace_close(trace, &err), -ENOSPC);
	assert_string_equal(err.text, "trace /dev/full: could not be written: No space left on "
				      "device");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("lab_trace", tests, NULL, NULL);
}
