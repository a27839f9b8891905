// SPDX-License-Identifier: BSD-2-Clause
/* holdoff lab run, for one run: what happened, and what limited it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/screen.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/lab.h"
#include "cmd/session.h"
#include "lab/trace.h"

static void print_delay(const char *name, const struct lab_delay *d)
{
	char text[HO_UNIT_TEXT];

	if (!d->n)
		return;
	printf("; %s %s", name, ho_format_ns((double)d->p50_ns, text));
	printf(", 99 %% below %s", ho_format_ns((double)d->p99_ns, text));
	printf(", at most %s", ho_format_ns((double)d->max_ns, text));
}

static void print_workloads(const struct lab_result *r)
{
	char text[HO_UNIT_TEXT];

	for (unsigned i = 0; i < r->n_workloads; i++) {
		const struct lab_workload_result *w = &r->workload[i];

		printf("%s.%s: %s frames a second", w->host_name, w->name,
		       ho_format_count((uint64_t)llround(lab_per_second(r, w->packets)), text));
		printf(", %.3f Gbit/s", lab_per_second(r, w->bytes) * 8 / 1e9);
		if (w->waiting > 0)
			printf(", %.1f %% of the time waiting for its ring", w->waiting * 100);
		if (w->kind == LAB_WORK_RECV)
			printf(", %llu lost, %llu out of order", (unsigned long long)w->lost,
			       (unsigned long long)w->reordered);
		print_delay("latency", &w->latency);
		print_delay("in its queue", &w->drain);
		printf("\n");
	}
}

static void add(char *text, size_t bytes, uint64_t n, const char *one, const char *many)
{
	char number[HO_UNIT_TEXT];
	size_t at = strlen(text);

	if (n)
		snprintf(text + at, bytes - at, "%s%s %s", at ? ", " : "",
			 ho_format_count(n, number), n == 1 ? one : many);
}

/* What was made to go wrong, and what the driver did about it. */
static void print_faults(const struct lab_chip_result *c)
{
	char faults[256] = "", driver[256] = "", time[HO_UNIT_TEXT];

	add(faults, sizeof(faults), c->faults.lost_irqs, "interrupt lost", "interrupts lost");
	add(faults, sizeof(faults), c->faults.late, "write-back late", "write-backs late");
	add(faults, sizeof(faults), c->faults.flaps, "time the link down", "times the link down");
	add(faults, sizeof(faults), c->faults.hangs, "hang", "hangs");
	if (!*faults)
		return;
	add(driver, sizeof(driver), c->irqs_rearmed, "interrupt set off again",
	    "interrupts set off again");
	add(driver, sizeof(driver), c->link_changes, "link change seen", "link changes seen");
	add(driver, sizeof(driver), c->tx_timeouts, "hang seen", "hangs seen");
	add(driver, sizeof(driver), c->resets, "reset", "resets");
	printf("    faults: %s; driver: %s; longest stall %s\n", faults,
	       *driver ? driver : "nothing to do",
	       ho_format_ns((double)(c->longest_stall / SIM_PS_PER_NS), time));
}

static void print_chips(const struct lab_result *r)
{
	char text[HO_UNIT_TEXT];

	for (unsigned i = 0; i < r->n_chips; i++) {
		const struct lab_chip_result *c = &r->chip[i];

		printf("%s.%s: %s interrupts a second; ", c->host_name, c->name,
		       ho_format_count((uint64_t)llround(lab_per_second(r, c->interrupts)), text));
		if (c->completes && c->tx_packets)
			printf("%.0f frames cleaned at a time, the ring of %llu stopped %s times; ",
			       (double)c->tx_packets / (double)c->completes,
			       (unsigned long long)c->tx_ring, ho_format_count(c->tx_stops, text));
		printf("wire busy %.1f %% out, %.1f %% in; bus %.1f %% to the chip, %.1f %% back\n",
		       c->wire_tx_busy * 100, c->wire_rx_busy * 100, c->pci_down_busy * 100,
		       c->pci_up_busy * 100);
		for (unsigned d = 0; d < PORT_DROP_COUNT; d++) {
			if (c->drops[d])
				printf("    %s: %s\n", port_drop_name((enum port_drop)d),
				       ho_format_count(c->drops[d], text));
		}
		print_faults(c);
	}
}

static void print_cpus(const struct lab_result *r)
{
	struct ho_table table;

	ho_table_init(&table, stdout);
	ho_table_column(&table, "CPU", -14);
	ho_table_column(&table, "user %", 7);
	ho_table_column(&table, "sys %", 7);
	ho_table_column(&table, "irq %", 7);
	ho_table_column(&table, "soft %", 7);
	ho_table_column(&table, "idle %", 7);
	ho_table_column(&table, "irqs/s", 9);
	ho_table_column(&table, "switches/s", 10);
	ho_table_header(&table);
	for (unsigned h = 0; h < r->n_hosts; h++) {
		for (unsigned i = 0; i < r->host[h].cpus; i++) {
			const struct lab_cpu_stats *c = &r->host[h].cpu[i];
			double share = 100.0 / (double)r->interval;

			/* A CPU that nothing used is not worth a row. */
			if (lab_cpu_busy(c) < 0.0001)
				continue;
			ho_table_cell(&table, "%s/%u", r->host[h].name, i);
			ho_table_cell(&table, "%.2f", (double)c->user * share);
			ho_table_cell(&table, "%.2f", (double)c->system * share);
			ho_table_cell(&table, "%.2f", (double)c->irq * share);
			ho_table_cell(&table, "%.2f", (double)c->softirq * share);
			ho_table_cell(&table, "%.2f", (double)c->idle * share);
			ho_table_cell(&table, "%.0f", lab_per_second(r, c->interrupts));
			ho_table_cell(&table, "%.0f",
				      lab_per_second(r, c->voluntary + c->involuntary));
			ho_table_row(&table);
		}
	}
}

static void print_text(const struct cmd_lab *lab, const struct lab_scenario *s,
		       const struct lab_result *r, const struct lab_limiter *l)
{
	char text[HO_UNIT_TEXT], other[HO_UNIT_TEXT];

	printf("%s: %s\n", s->name, s->title);
	for (unsigned i = 0; i < lab->n_set; i++)
		printf("%s%s = %s", i ? ", " : "with ", lab->set[i].key, lab->set[i].value);
	printf("%s\n", lab->n_set ? "\n" : "");
	print_workloads(r);
	print_chips(r);
	printf("\n");
	print_cpus(r);
	printf("\nIt is limited by %s:\n", lab_limit_title(l->what));
	ho_print_words(stdout, l->text, 4);
	printf("\n%s frames in %.2f s of one CPU: %s frames a second; digest %016llx\n",
	       ho_format_count(r->sim_frames, text), r->cpu_seconds,
	       ho_format_si((double)r->sim_frames / r->cpu_seconds, other),
	       (unsigned long long)r->digest);
	fflush(stdout);
}

int cmd_lab_single(const struct cmd_lab *lab, struct ho_err *err)
{
	struct lab_result *r = malloc(sizeof(*r));
	struct lab_trace *trace = NULL;
	struct lab_scenario *s = NULL;
	struct ho_err late = { 0 };
	struct lab_limiter limiter;
	int rc, late_rc;

	if (!r)
		return cmd_status_of(ho_err_set(err, -ENOMEM, "out of memory for a result"));
	rc = cmd_lab_load(lab, &s, err);
	if (rc < 0)
		goto free_result;
	if (lab->trace)
		rc = lab_trace_open(lab->trace, &trace, err);
	if (rc == 0)
		rc = lab_run(s, trace, r, err);
	late_rc = lab_trace_close(trace, &late);
	if (rc == 0 && late_rc < 0) {
		rc = late_rc;
		*err = late;
	}
	if (rc < 0)
		goto free_scenario;
	lab_limiter(s, r, &limiter);
	if (lab->json)
		cmd_lab_single_json(lab, s, r, &limiter);
	else
		print_text(lab, s, r, &limiter);
free_scenario:
	lab_scenario_free(s);
free_result:
	free(r);
	return cmd_status_of(rc);
}
