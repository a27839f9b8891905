// SPDX-License-Identifier: BSD-2-Clause
/* holdoff stat's tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/screen.h"
#include "cmd/stat.h"

/* What goes first when the terminal is too narrow. */
static const char *const *less_important(enum stat_view view)
{
	static const char *const rows[] = { "squeezed", "softnet/s", "invol/s", "vol/s", "ctxt/s",
					    "%usr",     "%sys",      "%irq",    "%soak", "%idle",
					    "%soft",    "err/s",     "hot CPU", "irq/s", "txdrop/s",
					    "rxdrop/s", NULL };
	static const char *const cpus[] = { "%guest",   "%steal",    "%nice",    "backlog",
					    "net_rx/s", "%iowait",   "squeezed", "ctxt/s",
					    "dropped",  "softnet/s", "intr/s",   NULL };
	static const char *const queues[] = { "name",    "flush us", "defer",   "NAPI",
					      "stops/s", "errors/s", "vector",  "may run on",
					      "pkt/irq", "on CPU",   "drops/s", "Mbit/s",
					      NULL };
	static const char *const none[] = { NULL };

	return view == STAT_ROWS     ? rows
	       : view == STAT_CPU    ? cpus
	       : view == STAT_QUEUES ? queues
				     : none;
}

/* Before `lines` lines are printed that belong together. */
static void header(struct stat_text *t, unsigned lines)
{
	unsigned screen = ho_screen_lines(t->out);

	if (t->begun && (!screen || t->lines + lines < screen)) {
		t->lines += lines;
		return;
	}
	/* It may have another size now. */
	ho_table_fit(&t->table, ho_screen_columns(t->out), less_important(t->view));
	ho_table_header(&t->table);
	t->begun = true;
	t->lines = 1 + lines;
}

static void cell_percent(struct ho_table *table, const struct lx_cpu *cpu, enum lx_time time)
{
	ho_table_cell(table, "%.1f", 100 * lx_cpu_share(cpu, time));
}

/* Over the interval and the CPUs that had a soaker. */
static void cell_soaked(struct ho_table *table, const struct lx_delta *delta,
			const struct lx_cpu *cpu, unsigned cpus)
{
	if (delta->interval_ns && cpus)
		ho_table_cell(table, "%.1f",
			      100 * (double)cpu->soaked_ns / ((double)delta->interval_ns * cpus));
	else
		ho_table_cell(table, "-");
}

/* Ends a row with what has no column. */
static int end_row(struct stat_text *t, const char *rest)
{
	unsigned lines;
	int rc = ho_table_row_list(&t->table, rest ? rest : "", STAT_BETWEEN, &lines);

	t->lines += lines - 1; /* one was counted with the header */
	return rc;
}

/* ---- A row for each interface ---- */

static void rows_columns(struct stat_text *t, const struct lx_delta *delta)
{
	static const struct {
		const char *title;
		int width;
	} columns[] = {
		{ "iface", -9 },    { "rx pkt/s", 9 }, { "rx Mbit/s", 9 }, { "tx pkt/s", 9 },
		{ "tx Mbit/s", 9 }, { "err/s", 5 },    { "rxdrop/s", 8 },  { "txdrop/s", 8 },
		{ "irq/s", 7 },     { "%usr", 5 },     { "%sys", 5 },      { "%irq", 5 },
		{ "%soft", 5 },     { "%idle", 5 },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(columns); i++)
		ho_table_column(&t->table, columns[i].title, columns[i].width);
	if (delta->host.has & LX_HOST_SOAK)
		ho_table_column(&t->table, "%soak", 5);
	ho_table_column(&t->table, "hot CPU", 8);
	ho_table_column(&t->table, "ctxt/s", 7);
	if (t->tasks) {
		ho_table_column(&t->table, "vol/s", 7);
		ho_table_column(&t->table, "invol/s", 7);
	}
	ho_table_column(&t->table, "softnet/s", 9);
	ho_table_column(&t->table, "squeezed", 8);
	ho_table_column(&t->table, "named, a second", -15);
}

static void host_cells(struct stat_text *t, const struct lx_delta *delta)
{
	const struct lx_host *host = &delta->host;
	const struct lx_cpu *hot = stat_hot_cpu(host);
	struct lx_cpu mean;

	stat_mean_cpu(host, &mean);
	cell_percent(&t->table, &mean, LX_TIME_USER);
	cell_percent(&t->table, &mean, LX_TIME_SYSTEM);
	cell_percent(&t->table, &mean, LX_TIME_IRQ);
	cell_percent(&t->table, &mean, LX_TIME_SOFTIRQ);
	cell_percent(&t->table, &mean, LX_TIME_IDLE);
	if (host->has & LX_HOST_SOAK)
		cell_soaked(&t->table, delta, &mean, host->n_cpus);
	if (hot)
		ho_table_cell(&t->table, "%u:%.0f%%", hot->id,
			      100 - 100 * lx_cpu_share(hot, LX_TIME_IDLE));
	else
		ho_table_cell(&t->table, "-");
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, host->switches));
	if (t->tasks) {
		ho_table_cell(&t->table, "%.0f", stat_rate(delta, host->tasks.voluntary));
		ho_table_cell(&t->table, "%.0f", stat_rate(delta, host->tasks.involuntary));
	}
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, mean.softnet.processed));
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, mean.softnet.squeezed));
}

static const char *state_of(const struct lx_ifdata *iface)
{
	if (iface->vanished)
		return "has vanished";
	if (iface->appeared)
		return "has appeared";
	if (iface->replaced)
		return "is another interface of this name now";
	if (!iface->index)
		return "is not there";
	if (iface->backwards)
		return "counters were reset";
	return NULL;
}

static int show_rows(struct stat_text *t, const struct lx_delta *delta)
{
	int rc = 0;

	header(t, HO_MAX(delta->n_ifaces, 1u));
	for (unsigned i = 0; rc == 0 && i < delta->n_ifaces; i++) {
		const struct lx_ifdata *iface = &delta->iface[i];
		const struct rtnl_link_stats64 *link = &iface->link;
		const char *state = state_of(iface);
		char named[STAT_NAMED_BYTES];

		ho_table_cell(&t->table, "%s", iface->name);
		if (iface->has & LX_IF_LINK) {
			ho_table_cell(&t->table, "%.0f", stat_rate(delta, link->rx_packets));
			ho_table_cell(&t->table, "%.2f", 8e-6 * stat_rate(delta, link->rx_bytes));
			ho_table_cell(&t->table, "%.0f", stat_rate(delta, link->tx_packets));
			ho_table_cell(&t->table, "%.2f", 8e-6 * stat_rate(delta, link->tx_bytes));
			ho_table_cell(&t->table, "%.0f", stat_rate(delta, stat_errors(link)));
			ho_table_cell(&t->table, "%.0f",
				      stat_rate(delta, stat_drops(link, LX_FIELD_RX)));
			ho_table_cell(&t->table, "%.0f",
				      stat_rate(delta, stat_drops(link, LX_FIELD_TX)));
		} else {
			for (unsigned c = 0; c < 7; c++)
				ho_table_cell(&t->table, "-");
		}
		if (iface->has & LX_IF_IRQS)
			ho_table_cell(&t->table, "%.0f", stat_rate(delta, lx_irqs_sum(iface)));
		else
			ho_table_cell(&t->table, "-");
		/* The machine is one: said once. */
		if (i == 0) {
			host_cells(t, delta);
		} else {
			while (t->table.filled + 1 < t->table.n)
				ho_table_cell(&t->table, "%s", "");
		}
		if (!state)
			state = stat_named(delta, iface, i == 0, named, sizeof(named));
		rc = end_row(t, state);
	}
	return rc;
}

/* ---- CPUs ---- */

static const enum lx_time mpstat_order[] = {
	LX_TIME_USER,    LX_TIME_NICE,  LX_TIME_SYSTEM, LX_TIME_IOWAIT, LX_TIME_IRQ,
	LX_TIME_SOFTIRQ, LX_TIME_STEAL, LX_TIME_GUEST,  LX_TIME_IDLE,
};

static void cpu_columns(struct stat_text *t, const struct lx_delta *delta)
{
	static const char *const titles[] = { "%usr",  "%nice",  "%sys",   "%iowait", "%irq",
					      "%soft", "%steal", "%guest", "%idle" };

	ho_table_column(&t->table, "CPU", -4);
	for (size_t i = 0; i < HO_ARRAY_LEN(titles); i++)
		ho_table_column(&t->table, titles[i], 7);
	if (delta->host.has & LX_HOST_SOAK)
		ho_table_column(&t->table, "%soak", 6);
	ho_table_column(&t->table, "intr/s", 8);
	ho_table_column(&t->table, "ctxt/s", 8);
	ho_table_column(&t->table, "net_rx/s", 8);
	ho_table_column(&t->table, "softnet/s", 9);
	ho_table_column(&t->table, "dropped", 8);
	ho_table_column(&t->table, "squeezed", 8);
	ho_table_column(&t->table, "backlog", 7);
}

static int cpu_row(struct stat_text *t, const struct lx_delta *delta, const char *name,
		   const struct lx_cpu *cpu, unsigned cpus)
{
	ho_table_cell(&t->table, "%s", name);
	for (size_t i = 0; i < HO_ARRAY_LEN(mpstat_order); i++)
		ho_table_cell(&t->table, "%.2f", 100 * lx_cpu_share(cpu, mpstat_order[i]));
	if (delta->host.has & LX_HOST_SOAK)
		cell_soaked(&t->table, delta, cpu, cpus);
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, cpu->interrupts));
	if (cpus > 1 || delta->host.n_cpus == 1)
		ho_table_cell(&t->table, "%.0f", stat_rate(delta, delta->host.switches));
	else if (delta->host.has & LX_HOST_SCHED)
		ho_table_cell(&t->table, "%.0f", stat_rate(delta, cpu->schedules));
	else
		ho_table_cell(&t->table, "-");
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, cpu->net_rx));
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, cpu->softnet.processed));
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, cpu->softnet.dropped));
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, cpu->softnet.squeezed));
	ho_table_cell(&t->table, "%u", cpu->softnet.backlog);
	return ho_table_row(&t->table);
}

static int show_cpus(struct stat_text *t, const struct lx_delta *delta)
{
	const struct lx_host *host = &delta->host;
	struct lx_cpu mean;
	char name[16];
	int rc;

	header(t, host->n_cpus + 1);
	stat_mean_cpu(host, &mean);
	rc = cpu_row(t, delta, "all", &mean, HO_MAX(host->n_cpus, 2u));
	for (unsigned i = 0; rc == 0 && i < host->n_cpus; i++) {
		snprintf(name, sizeof(name), "%u%s", host->cpu[i].id,
			 host->cpu[i].online ? "" : " off");
		rc = cpu_row(t, delta, name, &host->cpu[i], 1);
	}
	return rc;
}

/* ---- Queues ---- */

static void queue_columns(struct stat_text *t)
{
	static const struct {
		const char *title;
		int width;
	} columns[] = {
		{ "iface", -9 },  { "queue", -6 },   { "pkt/s", 10 },   { "Mbit/s", 9 },
		{ "drops/s", 8 }, { "errors/s", 8 }, { "stops/s", 8 },  { "vector", 6 },
		{ "irq/s", 8 },   { "pkt/irq", 8 },  { "on CPU", 6 },   { "may run on", -10 },
		{ "NAPI", 6 },    { "defer", 5 },    { "flush us", 8 }, { "name", -16 },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(columns); i++)
		ho_table_column(&t->table, columns[i].title, columns[i].width);
}

static void napi_cells(struct stat_text *t, const struct lx_ifdata *iface, uint32_t id)
{
	for (unsigned i = 0; i < iface->n_napis && id; i++) {
		const struct lx_napi *napi = &iface->napi[i];

		if (napi->id != id)
			continue;
		ho_table_cell(&t->table, "%u", id);
		ho_table_cell(&t->table, "%u", napi->defer_hard_irqs);
		ho_table_cell(&t->table, "%.1f", 1e-3 * (double)napi->gro_flush_timeout_ns);
		return;
	}
	for (unsigned i = 0; i < 3; i++)
		ho_table_cell(&t->table, "-");
}

static void irq_cells(struct stat_text *t, const struct lx_delta *delta, const struct lx_irq *irq,
		      const struct lx_queue *queue)
{
	if (!irq) {
		for (unsigned i = 0; i < 5; i++)
			ho_table_cell(&t->table, "%s", i == 4 ? "" : "-");
		return;
	}
	ho_table_cell(&t->table, "%u", irq->irq);
	ho_table_cell(&t->table, "%.0f", stat_rate(delta, irq->count));
	if (queue && queue->counted && irq->count)
		ho_table_cell(&t->table, "%.1f", (double)queue->packets / (double)irq->count);
	else
		ho_table_cell(&t->table, "-");
	if (irq->count)
		ho_table_cell(&t->table, "%u", irq->busiest);
	else
		ho_table_cell(&t->table, "-");
	ho_table_cell(&t->table, "%s", irq->affinity);
}

static int queue_row(struct stat_text *t, const struct lx_delta *delta,
		     const struct lx_ifdata *iface, const struct lx_queue *q)
{
	const struct lx_irq *irq = q->irq >= 0 ? lx_irq_find(iface, (unsigned)q->irq) : NULL;

	ho_table_cell(&t->table, "%s", iface->name);
	ho_table_cell(&t->table, "%s%u", q->dir == LX_RX ? "rx" : "tx", q->id);
	if (q->counted) {
		ho_table_cell(&t->table, "%.0f", stat_rate(delta, q->packets));
		ho_table_cell(&t->table, "%.2f", 8e-6 * stat_rate(delta, q->bytes));
		ho_table_cell(&t->table, "%.0f", stat_rate(delta, q->drops));
		ho_table_cell(&t->table, "%.0f", stat_rate(delta, q->errors));
		ho_table_cell(&t->table, "%.0f", stat_rate(delta, q->stops));
	} else {
		for (unsigned i = 0; i < 5; i++)
			ho_table_cell(&t->table, "-");
	}
	irq_cells(t, delta, irq, q);
	napi_cells(t, iface, q->napi_id);
	ho_table_cell(&t->table, "%s", irq ? irq->name : "");
	return ho_table_row(&t->table);
}

/* A vector that serves no queue, as far as its name says. */
static int other_row(struct stat_text *t, const struct lx_delta *delta,
		     const struct lx_ifdata *iface, const struct lx_irq *irq)
{
	ho_table_cell(&t->table, "%s", iface->name);
	ho_table_cell(&t->table, "other");
	for (unsigned i = 0; i < 5; i++)
		ho_table_cell(&t->table, "%s", "");
	irq_cells(t, delta, irq, NULL);
	napi_cells(t, iface, 0);
	ho_table_cell(&t->table, "%s", irq->name);
	return ho_table_row(&t->table);
}

static int show_queues(struct stat_text *t, const struct lx_delta *delta)
{
	unsigned lines = 0;
	int rc = 0;

	for (unsigned i = 0; i < delta->n_ifaces; i++)
		lines += delta->iface[i].n_queues + delta->iface[i].n_irqs;
	header(t, lines);
	for (unsigned i = 0; i < delta->n_ifaces && rc == 0; i++) {
		const struct lx_ifdata *iface = &delta->iface[i];

		if (state_of(iface)) {
			ho_table_cell(&t->table, "%s", iface->name);
			rc = end_row(t, state_of(iface));
		}
		for (unsigned j = 0; rc == 0 && j < iface->n_queues; j++)
			rc = queue_row(t, delta, iface, &iface->queue[j]);
		for (unsigned j = 0; rc == 0 && j < iface->n_irqs; j++) {
			if (iface->irq[j].queue < 0)
				rc = other_row(t, delta, iface, &iface->irq[j]);
		}
	}
	return rc;
}

/* ---- The driver's counters ---- */

static int show_driver(struct stat_text *t, const struct lx_delta *delta)
{
	int rc = 0;

	header(t, 1);
	for (unsigned i = 0; i < delta->n_ifaces && rc == 0; i++) {
		const struct lx_ifdata *iface = &delta->iface[i];
		unsigned shown = 0;

		for (unsigned j = 0; j < iface->n_counters && rc == 0; j++) {
			const struct lx_counter *c = &iface->counter[j];

			if (!c->value && !c->backwards)
				continue;
			ho_table_cell(&t->table, "%s", iface->name);
			ho_table_cell(&t->table, "%s", c->name);
			if (c->backwards)
				ho_table_cell(&t->table, "fell");
			else
				ho_table_cell(&t->table, "%.0f", stat_rate(delta, c->value));
			rc = ho_table_row(&t->table);
			t->lines++;
			shown++;
		}
		if (!shown && rc == 0) {
			ho_table_cell(&t->table, "%s", iface->name);
			rc = end_row(t, state_of(iface)             ? state_of(iface)
					: iface->has & LX_IF_DRIVER ? "none moved"
								    : "its driver has none");
		}
	}
	return rc;
}

int stat_text_show(struct stat_text *t, const struct lx_delta *delta)
{
	if (!t->table.n) {
		ho_table_init(&t->table, t->out);
		switch (t->view) {
		case STAT_ROWS:
			rows_columns(t, delta);
			break;
		case STAT_CPU:
			cpu_columns(t, delta);
			break;
		case STAT_QUEUES:
			queue_columns(t);
			break;
		case STAT_DRIVER:
			ho_table_column(&t->table, "iface", -9);
			ho_table_column(&t->table, "counter", -31);
			ho_table_column(&t->table, "a second", 14);
			break;
		}
	}
	switch (t->view) {
	case STAT_CPU:
		return show_cpus(t, delta);
	case STAT_QUEUES:
		return show_queues(t, delta);
	case STAT_DRIVER:
		return show_driver(t, delta);
	default:
		return show_rows(t, delta);
	}
}
