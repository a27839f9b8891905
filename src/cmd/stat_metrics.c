// SPDX-License-Identifier: BSD-2-Clause
/*
 * A sample as OpenMetrics text: counters since boot, which a scraper makes rates of. A family's
 * lines must stand together, so each is written for all interfaces or CPUs before the next.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cmd/stat.h"

#define LABELS_BYTES 512

static void family(FILE *out, const char *name, const char *type, const char *unit,
		   const char *help)
{
	fprintf(out, "# TYPE holdoff_%s %s\n", name, type);
	if (unit)
		fprintf(out, "# UNIT holdoff_%s %s\n", name, unit);
	fprintf(out, "# HELP holdoff_%s %s\n", name, help);
}

/* A label's value with what the format wants escaped; bytes that are no ASCII become '?'. */
static void label(FILE *out, const char *name, const char *value, bool first)
{
	fprintf(out, "%s%s=\"", first ? "" : ",", name);
	for (const char *p = value; *p; p++) {
		if (*p == '\\' || *p == '"')
			fprintf(out, "\\%c", *p);
		else if (*p == '\n')
			fputs("\\n", out);
		else
			fputc((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f ? '?' : *p, out);
	}
	fputc('"', out);
}

static void label_number(FILE *out, const char *name, uint64_t value, bool first)
{
	fprintf(out, "%s%s=\"%" PRIu64 "\"", first ? "" : ",", name, value);
}

static void interfaces(FILE *out, const struct lx_sample *s)
{
	family(out, "interface", "info", NULL, "Interfaces that are looked at.");
	for (unsigned i = 0; i < s->n_ifaces; i++) {
		if (!s->iface[i].index)
			continue;
		fputs("holdoff_interface_info{", out);
		label(out, "interface", s->iface[i].name, true);
		label(out, "driver", s->iface[i].facts.driver, false);
		label(out, "bus", s->iface[i].facts.bus, false);
		fputs("} 1\n", out);
	}
	family(out, "interface_present", "gauge", NULL, "Whether the interface is there.");
	for (unsigned i = 0; i < s->n_ifaces; i++) {
		fputs("holdoff_interface_present{", out);
		label(out, "interface", s->iface[i].name, true);
		fprintf(out, "} %d\n", s->iface[i].index != 0);
	}
	family(out, "interface_link_bits_per_second", "gauge", NULL, "Speed of the link.");
	for (unsigned i = 0; i < s->n_ifaces; i++) {
		if (!s->iface[i].index || !s->iface[i].facts.link_bps)
			continue;
		fputs("holdoff_interface_link_bits_per_second{", out);
		label(out, "interface", s->iface[i].name, true);
		fprintf(out, "} %" PRIu64 "\n", s->iface[i].facts.link_bps);
	}
	for (const struct lx_field *f = lx_link_fields; f->name; f++) {
		char name[64];

		snprintf(name, sizeof(name), "interface_%s", f->name);
		family(out, name, "counter", NULL, f->help);
		for (unsigned i = 0; i < s->n_ifaces; i++) {
			if (!(s->iface[i].has & LX_IF_LINK))
				continue;
			fprintf(out, "holdoff_%s_total{", name);
			label(out, "interface", s->iface[i].name, true);
			fprintf(out, "} %" PRIu64 "\n", lx_field_get(&s->iface[i].link, f));
		}
	}
}

static void queues(FILE *out, const struct lx_sample *s)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} what[] = {
		{ "queue_packets", "Packets of a queue.", offsetof(struct lx_queue, packets) },
		{ "queue_bytes", "Bytes of a queue.", offsetof(struct lx_queue, bytes) },
		{ "queue_drops", "Packets that a queue dropped.",
		  offsetof(struct lx_queue, drops) },
		{ "queue_errors", "Errors of a queue.", offsetof(struct lx_queue, errors) },
		{ "queue_stops", "Times that a transmit queue was full and stopped.",
		  offsetof(struct lx_queue, stops) },
	};

	for (size_t k = 0; k < HO_ARRAY_LEN(what); k++) {
		family(out, what[k].name, "counter", NULL, what[k].help);
		for (unsigned i = 0; i < s->n_ifaces; i++) {
			for (unsigned j = 0; j < s->iface[i].n_queues; j++) {
				const struct lx_queue *q = &s->iface[i].queue[j];

				if (!q->counted)
					continue;
				fprintf(out, "holdoff_%s_total{", what[k].name);
				label(out, "interface", s->iface[i].name, true);
				label(out, "direction", q->dir == LX_RX ? "rx" : "tx", false);
				label_number(out, "queue", q->id, false);
				fprintf(out, "} %" PRIu64 "\n",
					*(const uint64_t *)((const char *)q + what[k].offset));
			}
		}
	}
	family(out, "interrupts", "counter", NULL, "Interrupts of a vector, all CPUs.");
	for (unsigned i = 0; i < s->n_ifaces; i++) {
		for (unsigned j = 0; j < s->iface[i].n_irqs; j++) {
			const struct lx_irq *irq = &s->iface[i].irq[j];

			fputs("holdoff_interrupts_total{", out);
			label(out, "interface", s->iface[i].name, true);
			label_number(out, "irq", irq->irq, false);
			label(out, "name", irq->name, false);
			fprintf(out, "} %" PRIu64 "\n", irq->count);
		}
	}
}

/* Some drivers give two counters one name; the format takes a series once. */
static bool is_first(const struct lx_ifdata *iface, unsigned at)
{
	return lx_counter_find(iface, iface->counter[at].name) == &iface->counter[at];
}

static void drivers(FILE *out, const struct lx_sample *s)
{
	/* Nobody but the driver knows which of them only rise. */
	family(out, "driver_counter", "unknown", NULL, "A number of ethtool -S.");
	for (unsigned i = 0; i < s->n_ifaces; i++) {
		for (unsigned j = 0; j < s->iface[i].n_counters; j++) {
			const struct lx_counter *c = &s->iface[i].counter[j];

			if (!is_first(&s->iface[i], j))
				continue;
			fputs("holdoff_driver_counter{", out);
			label(out, "interface", s->iface[i].name, true);
			label(out, "name", c->name, false);
			fprintf(out, "} %" PRIu64 "\n", c->value);
		}
	}
	family(out, "setting", "gauge", NULL, "A setting, by ethtool's name.");
	for (unsigned i = 0; i < s->n_ifaces; i++) {
		for (unsigned j = 0; j < s->iface[i].n_settings; j++) {
			fputs("holdoff_setting{", out);
			label(out, "interface", s->iface[i].name, true);
			label(out, "name", s->iface[i].setting[j].name, false);
			fprintf(out, "} %" PRIu64 "\n", s->iface[i].setting[j].value);
		}
	}
}

static void by_cpu(FILE *out, const struct lx_host *host, const char *name, size_t offset,
		   const char *help)
{
	family(out, name, "counter", NULL, help);
	for (unsigned i = 0; i < host->n_cpus; i++) {
		fprintf(out, "holdoff_%s_total{", name);
		label_number(out, "cpu", host->cpu[i].id, true);
		fprintf(out, "} %" PRIu64 "\n",
			*(const uint64_t *)((const char *)&host->cpu[i] + offset));
	}
}

#define BY_CPU(out, host, name, member, help) \
	by_cpu(out, host, name, offsetof(struct lx_cpu, member), help)

static void cpus(FILE *out, const struct lx_host *host)
{
	if (host->has & LX_HOST_TIMES) {
		family(out, "cpu_seconds", "counter", "seconds", "Time of a CPU by what it did.");
		for (unsigned i = 0; i < host->n_cpus; i++) {
			for (unsigned t = 0; t < LX_TIMES; t++) {
				uint64_t ns = host->cpu[i].time_ns[t];

				fputs("holdoff_cpu_seconds_total{", out);
				label_number(out, "cpu", host->cpu[i].id, true);
				label(out, "mode", lx_time_names[t], false);
				fprintf(out, "} %" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000u,
					ns % 1000000000u);
			}
		}
		family(out, "context_switches", "counter", NULL,
		       "Context switches of the machine.");
		fprintf(out, "holdoff_context_switches_total %" PRIu64 "\n", host->switches);
	}
	if (host->has & LX_HOST_SOFTNET) {
		BY_CPU(out, host, "softnet_processed", softnet.processed,
		       "Frames that the stack took.");
		BY_CPU(out, host, "softnet_dropped", softnet.dropped,
		       "Frames dropped because the backlog was full.");
		BY_CPU(out, host, "softnet_squeezed", softnet.squeezed,
		       "Rounds that ended by budget or time with work left.");
	}
	if (host->has & LX_HOST_SOFTIRQS) {
		BY_CPU(out, host, "net_rx_softirqs", net_rx, "Runs of NET_RX.");
		BY_CPU(out, host, "net_tx_softirqs", net_tx, "Runs of NET_TX.");
	}
	if (host->has & LX_HOST_IRQS)
		BY_CPU(out, host, "cpu_interrupts", interrupts, "Interrupts of devices.");
	if (host->has & LX_HOST_SCHED)
		BY_CPU(out, host, "schedules", schedules, "Calls of the scheduler.");
	if (host->has & LX_HOST_TASKS) {
		family(out, "tasks_voluntary_switches", "counter", NULL,
		       "Voluntary context switches of the processes asked for.");
		fprintf(out, "holdoff_tasks_voluntary_switches_total %" PRIu64 "\n",
			host->tasks.voluntary);
		family(out, "tasks_involuntary_switches", "counter", NULL,
		       "Involuntary context switches of the processes asked for.");
		fprintf(out, "holdoff_tasks_involuntary_switches_total %" PRIu64 "\n",
			host->tasks.involuntary);
	}
	for (const struct lx_field *f = lx_proto_fields; f->name && (host->has & LX_HOST_PROTO);
	     f++) {
		family(out, f->name, "counter", NULL, f->help);
		fprintf(out, "holdoff_%s_total %" PRIu64 "\n", f->name,
			lx_field_get(&host->proto, f));
	}
}

char *stat_metrics(const struct lx_sample *sample, size_t *bytes)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);

	if (!out)
		return NULL;
	interfaces(out, sample);
	queues(out, sample);
	drivers(out, sample);
	cpus(out, &sample->host);
	fputs("# EOF\n", out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
