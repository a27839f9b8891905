// SPDX-License-Identifier: BSD-2-Clause
/* One interval as JSON: counts of that interval, raw; what is no counter as it was at its end. */
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "cmd/stat.h"

static void put(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void put_text(json_t *object, const char *key, const char *text)
{
	/* The kernel's and drivers' texts need not be UTF-8: then only what is ASCII is left. */
	json_t *string = json_string(text);
	char ascii[128];
	size_t n = 0;

	if (!string) {
		for (const char *p = text; *p && n < sizeof(ascii) - 1; p++)
			ascii[n++] = (unsigned char)*p < 0x80 ? *p : '?';
		ascii[n] = '\0';
		string = json_string(ascii);
	}
	json_object_set_new(object, key, string);
}

static void put_key(json_t *object, const char *name, uint64_t value)
{
	if (json_object_set_new(object, name, json_integer((json_int_t)value)) == 0)
		return;
	/* A key that is not UTF-8. */
	json_object_set_new_nocheck(object, "?", json_integer((json_int_t)value));
}

static void put_fields(json_t *object, const struct lx_field *field, const void *of)
{
	for (; field->name; field++)
		put(object, field->name, lx_field_get(of, field));
}

static json_t *cpu_json(const struct lx_host *host, const struct lx_cpu *cpu)
{
	json_t *object = json_object();

	put(object, "cpu", cpu->id);
	json_object_set_new(object, "online", json_boolean(cpu->online));
	for (unsigned i = 0; i < LX_TIMES && (host->has & LX_HOST_TIMES); i++) {
		char key[24];

		snprintf(key, sizeof(key), "%s_ns", lx_time_names[i]);
		put(object, key, cpu->time_ns[i]);
	}
	if (host->has & LX_HOST_SOAK)
		put(object, "soaked_ns", cpu->soaked_ns);
	if (host->has & LX_HOST_IRQS)
		put(object, "interrupts", cpu->interrupts);
	if (host->has & LX_HOST_SCHED)
		put(object, "schedules", cpu->schedules);
	if (host->has & LX_HOST_SOFTIRQS) {
		put(object, "net_rx_softirqs", cpu->net_rx);
		put(object, "net_tx_softirqs", cpu->net_tx);
	}
	if (host->has & LX_HOST_SOFTNET) {
		put(object, "softnet_processed", cpu->softnet.processed);
		put(object, "softnet_dropped", cpu->softnet.dropped);
		put(object, "softnet_squeezed", cpu->softnet.squeezed);
		put(object, "softnet_rps", cpu->softnet.rps);
		put(object, "softnet_flow_limit", cpu->softnet.flow_limit);
		put(object, "softnet_backlog", cpu->softnet.backlog);
	}
	return object;
}

static json_t *queues_json(const struct lx_ifdata *iface)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < iface->n_queues; i++) {
		const struct lx_queue *q = &iface->queue[i];
		json_t *object = json_object();

		put_text(object, "direction", q->dir == LX_RX ? "rx" : "tx");
		put(object, "queue", q->id);
		if (q->counted) {
			put(object, "packets", q->packets);
			put(object, "bytes", q->bytes);
			put(object, "drops", q->drops);
			put(object, "errors", q->errors);
			put(object, "stops", q->stops);
		}
		if (q->irq >= 0)
			put(object, "irq", (uint64_t)q->irq);
		if (q->napi_id)
			put(object, "napi_id", q->napi_id);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *irqs_json(const struct lx_ifdata *iface, const struct lx_host *host)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < iface->n_irqs; i++) {
		const struct lx_irq *irq = &iface->irq[i];
		json_t *object = json_object(), *on = json_object();

		put(object, "irq", irq->irq);
		put_text(object, "name", irq->name);
		if (irq->queue >= 0)
			put(object, "queue", (uint64_t)irq->queue);
		json_object_set_new(object, "rx", json_boolean(irq->rx));
		json_object_set_new(object, "tx", json_boolean(irq->tx));
		put(object, "interrupts", irq->count);
		put_text(object, "affinity", irq->affinity);
		for (unsigned c = 0; c < host->n_cpus; c++) {
			char key[16];

			if (!irq->on_cpu[c])
				continue;
			snprintf(key, sizeof(key), "%u", host->cpu[c].id);
			put(on, key, irq->on_cpu[c]);
		}
		json_object_set_new(object, "by_cpu", on);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *napis_json(const struct lx_ifdata *iface)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < iface->n_napis; i++) {
		const struct lx_napi *napi = &iface->napi[i];
		json_t *object = json_object();

		put(object, "napi_id", napi->id);
		if (napi->irq >= 0)
			put(object, "irq", (uint64_t)napi->irq);
		put(object, "thread_pid", napi->thread_pid);
		put(object, "defer_hard_irqs", napi->defer_hard_irqs);
		put(object, "gro_flush_timeout_ns", napi->gro_flush_timeout_ns);
		put(object, "irq_suspend_timeout_ns", napi->irq_suspend_timeout_ns);
		json_array_append_new(array, object);
	}
	return array;
}

static const char *state_name(const struct lx_ifdata *iface)
{
	return iface->vanished   ? "vanished"
	       : iface->appeared ? "appeared"
	       : iface->replaced ? "replaced"
	       : iface->index    ? "present"
				 : "absent";
}

static json_t *iface_json(const struct lx_ifdata *iface, const struct lx_host *host)
{
	json_t *object = json_object(), *part;

	put_text(object, "interface", iface->name);
	put_text(object, "state", state_name(iface));
	if (!iface->index)
		return object;
	put(object, "ifindex", iface->index);
	put_text(object, "driver", iface->facts.driver);
	put_text(object, "bus", iface->facts.bus);
	json_object_set_new(object, "running", json_boolean(iface->facts.running));
	put(object, "mtu_bytes", iface->facts.mtu);
	put(object, "link_bits_per_second", iface->facts.link_bps);
	json_object_set_new(object, "counters_reset", json_boolean(iface->backwards));
	if (iface->has & LX_IF_LINK)
		put_fields(object, lx_link_fields, &iface->link);
	json_object_set_new(object, "queues", queues_json(iface));
	json_object_set_new(object, "irqs", irqs_json(iface, host));
	json_object_set_new(object, "napis", napis_json(iface));
	part = json_object();
	for (unsigned i = 0; i < iface->n_counters; i++) {
		if (iface->counter[i].value)
			put_key(part, iface->counter[i].name, iface->counter[i].value);
	}
	json_object_set_new(object, "driver_counters", part);
	part = json_object();
	for (unsigned i = 0; i < iface->n_settings; i++)
		put(part, iface->setting[i].name, iface->setting[i].value);
	json_object_set_new(object, "settings", part);
	return object;
}

json_t *stat_json(const struct lx_delta *delta)
{
	const struct lx_host *host = &delta->host;
	json_t *object = ho_json_begin("stat"), *array, *part;
	struct timespec ts;

	if (!object)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &ts);
	put(object, "time_unix_ns", (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
	put(object, "interval_ns", delta->interval_ns);
	array = json_array();
	for (unsigned i = 0; i < delta->n_ifaces; i++)
		json_array_append_new(array, iface_json(&delta->iface[i], host));
	json_object_set_new(object, "interfaces", array);
	array = json_array();
	for (unsigned i = 0; i < host->n_cpus; i++)
		json_array_append_new(array, cpu_json(host, &host->cpu[i]));
	json_object_set_new(object, "cpus", array);
	if (host->has & LX_HOST_TIMES) {
		put(object, "context_switches", host->switches);
		put(object, "forks", host->forks);
	}
	if (host->has & LX_HOST_TASKS) {
		part = json_object();
		put(part, "threads", host->tasks.threads);
		put(part, "voluntary_switches", host->tasks.voluntary);
		put(part, "involuntary_switches", host->tasks.involuntary);
		put(part, "user_ns", host->tasks.user_ns);
		put(part, "system_ns", host->tasks.system_ns);
		json_object_set_new(object, "tasks", part);
	}
	if (host->has & LX_HOST_PROTO) {
		part = json_object();
		put_fields(part, lx_proto_fields, &host->proto);
		json_object_set_new(object, "protocols", part);
	}
	return object;
}
