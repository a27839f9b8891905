// SPDX-License-Identifier: BSD-2-Clause
/* The JSON objects of holdoff lab run. Both kinds have `rows`; a single run has one. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "cmd/lab.h"

/* "rx-usecs" -> "rx_usecs" */
static const char *key_of(const char *name, char key[64])
{
	size_t i = 0;

	for (; name[i] && i < 63; i++)
		key[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
	key[i] = 0;
	return key;
}

static json_t *number_or_text(const char *text)
{
	uint64_t n;

	return ho_parse_count(text, &n, NULL) == 0 ? json_integer((json_int_t)n)
						   : json_string(text);
}

/* pps and interrupts have no use for fractions. */
static json_t *value_json(double value)
{
	return fabs(value) >= 1000 ? json_integer((json_int_t)llround(value)) : json_real(value);
}

static json_t *knobs_json(const struct lab_limiter *l)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < HO_ARRAY_LEN(l->knob) && l->knob[i].name; i++)
		json_array_append_new(list, json_pack("{s:s, s:f, s:I}", "name", l->knob[i].name,
						      "value", l->knob[i].value, "predicted_pps",
						      (json_int_t)llround(l->knob[i].pps)));
	return list;
}

static json_t *limiter_json(const struct lab_limiter *l)
{
	return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:o}", "what",
			 lab_limit_name(l->what), "text", l->text, "used", l->used, "in_flight",
			 l->in_flight, "cleanings_per_s", l->cleanings_per_s, "frame_ns",
			 l->frame_ns, "interrupt_ns", l->interrupt_ns, "knobs", knobs_json(l));
}

static void parameters_json(json_t *object, const struct ms_compare *c,
			    const struct ms_compare_row *row)
{
	const struct lab_published_spec *p = c->scenario->published;
	json_t *named = json_object();
	char key[64];

	for (uint32_t i = 0; i < p->parameters_count; i++) {
		const struct lab_published_parameter *param = &p->parameters[i];
		int column = lab_table_column(c->scenario->table, param->column);
		const char *cell = lab_table_cell(c->scenario->table, row->row, (unsigned)column);

		json_object_set_new(object, key_of(param->axis, key), number_or_text(cell));
		/* By the table's own word as well, so that rows can be joined with the file. */
		json_object_set_new(object, key_of(param->column, key), number_or_text(cell));
		json_object_set_new(named, param->axis, number_or_text(cell));
	}
	json_object_set_new(object, "parameters", named);
}

static json_t *row_json(const struct ms_compare *c, const struct ms_compare_row *row)
{
	const struct lab_published_spec *p = c->scenario->published;
	json_t *object = json_object();
	char name[128], key[64];

	json_object_set_new(
		object, "row",
		json_string(ms_compare_row_name(c->scenario, row->row, name, sizeof(name))));
	if (p->series_column) {
		int column = lab_table_column(c->scenario->table, p->series_column);

		json_object_set_new(object, "series",
				    json_string(lab_table_cell(c->scenario->table, row->row,
							       (unsigned)column)));
	}
	parameters_json(object, c, row);
	for (unsigned r = 0; r < c->n_results; r++) {
		const struct ms_compare_value *v = &row->value[r];
		const char *word = p->results[r].result;

		json_object_set_new(object, key_of(word, key), value_json(v->simulated));
		if (!p->results[r].column)
			continue;
		snprintf(key, sizeof(key), "published_%s", word);
		json_object_set_new(object, key,
				    v->published ? value_json(v->reference) : json_null());
		/* The first result is the one that the table is about. */
		if (r)
			snprintf(key, sizeof(key), "error_percent_%s", word);
		else
			snprintf(key, sizeof(key), "error_percent");
		json_object_set_new(object, key,
				    v->published ? json_real(v->error_percent) : json_null());
	}
	json_object_set_new(object, "fitted", json_boolean(row->fitted));
	json_object_set_new(object, "limiter", json_string(lab_limit_name(row->limiter.what)));
	json_object_set_new(object, "limiter_detail", limiter_json(&row->limiter));
	json_object_set_new(object, "sim_frames", json_integer((json_int_t)row->sim_frames));
	snprintf(name, sizeof(name), "%016llx", (unsigned long long)row->digest);
	json_object_set_new(object, "digest", json_string(name));
	return object;
}

static json_t *fitted_json(const struct ms_fitted *fitted, unsigned n)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:f, s:s}", "profile",
						fitted[i].profile, "constant", fitted[i].key,
						"value", fitted[i].value, "rows", fitted[i].rows));
	return list;
}

int cmd_lab_table_json(const struct ms_compare *c)
{
	json_t *object = ho_json_begin("lab"), *rows = json_array();
	char text[MS_VERDICT_TEXT], key[64];

	json_object_set_new(object, "scenario", json_string(c->scenario->name));
	for (unsigned i = 0; i < c->n_rows; i++)
		json_array_append_new(rows, row_json(c, &c->row[i]));
	json_object_set_new(object, "rows", rows);
	for (unsigned r = 0; r < c->n_results; r++) {
		const struct lab_published_result *p = &c->scenario->published->results[r];

		if (p->background > 0) {
			snprintf(key, sizeof(key), "background_%s", p->result);
			json_object_set_new(object, key, value_json(p->background));
		}
	}
	json_object_set_new(object, "fitted_constants", fitted_json(c->fitted, c->n_fitted));
	json_object_set_new(object, "rows_exceeding", json_integer(ms_compare_exceeding(c)));
	json_object_set_new(object, "sim_frames", json_integer((json_int_t)c->sim_frames));
	json_object_set_new(object, "wall_seconds", json_real(c->wall_seconds));
	json_object_set_new(object, "cpu_seconds", json_real(c->cpu_seconds));
	snprintf(text, sizeof(text), "%016llx", (unsigned long long)c->digest);
	json_object_set_new(object, "digest", json_string(text));
	ms_compare_verdict(c, text);
	json_object_set_new(object, "verdict", json_string(text));
	return ho_json_print(stdout, object);
}

/* --- a single run ----------------------------------------------------------------------------- */

static json_t *cpus_json(const struct lab_result *r, unsigned host)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < r->host[host].cpus; i++) {
		const struct lab_cpu_stats *c = &r->host[host].cpu[i];

		json_array_append_new(
			list, json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cpu",
					(int)i, "user_ns", (json_int_t)(c->user / SIM_PS_PER_NS),
					"system_ns", (json_int_t)(c->system / SIM_PS_PER_NS),
					"irq_ns", (json_int_t)(c->irq / SIM_PS_PER_NS),
					"softirq_ns", (json_int_t)(c->softirq / SIM_PS_PER_NS),
					"idle_ns", (json_int_t)(c->idle / SIM_PS_PER_NS),
					"interrupts", (json_int_t)c->interrupts,
					"voluntary_switches", (json_int_t)c->voluntary,
					"involuntary_switches", (json_int_t)c->involuntary));
	}
	return list;
}

static json_t *chip_json(const struct lab_chip_result *c)
{
	json_t *drops = json_object();

	for (unsigned d = 0; d < PORT_DROP_COUNT; d++) {
		if (c->drops[d])
			json_object_set_new(drops, port_drop_name((enum port_drop)d),
					    json_integer((json_int_t)c->drops[d]));
	}
	json_t *faults =
		json_pack("{s:I, s:I, s:I, s:I}", "lost_irqs", (json_int_t)c->faults.lost_irqs,
			  "late_write_backs", (json_int_t)c->faults.late, "link_flaps",
			  (json_int_t)c->faults.flaps, "hangs", (json_int_t)c->faults.hangs);
	json_t *driver =
		json_pack("{s:I, s:I, s:I, s:I, s:I}", "irqs_rearmed", (json_int_t)c->irqs_rearmed,
			  "tx_timeouts", (json_int_t)c->tx_timeouts, "resets",
			  (json_int_t)c->resets, "link_changes", (json_int_t)c->link_changes,
			  "longest_stall_ns", (json_int_t)(c->longest_stall / SIM_PS_PER_NS));

	return json_pack(
		"{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I,"
		" s:I, s:f, s:f, s:f, s:f, s:o, s:o, s:o}",
		"host", c->host_name, "chip", c->name, "queues", (int)c->queues, "tx",
		(json_int_t)c->tx_ring, "rx", (json_int_t)c->rx_ring, "rx_usecs",
		(json_int_t)c->rx_usecs, "tx_packets", (json_int_t)c->tx_packets, "tx_bytes",
		(json_int_t)c->tx_bytes, "rx_packets", (json_int_t)c->rx_packets, "rx_bytes",
		(json_int_t)c->rx_bytes, "interrupts", (json_int_t)c->interrupts, "completes",
		(json_int_t)c->completes, "tx_restart_queue", (json_int_t)c->tx_stops,
		"register_reads", (json_int_t)c->register_reads, "register_writes",
		(json_int_t)c->register_writes, "wire_bps", (json_int_t)c->wire_bps, "wire_tx_busy",
		c->wire_tx_busy, "wire_rx_busy", c->wire_rx_busy, "pci_up_busy", c->pci_up_busy,
		"pci_down_busy", c->pci_down_busy, "drops", drops, "faults", faults, "recovery",
		driver);
}

static void delay_json(json_t *object, const char *name, const struct lab_delay *d)
{
	const struct {
		const char *word;
		uint64_t value;
	} values[] = { { "mean", d->mean_ns },
		       { "p50", d->p50_ns },
		       { "p99", d->p99_ns },
		       { "max", d->max_ns } };
	char key[64];

	for (size_t i = 0; d->n && i < HO_ARRAY_LEN(values); i++) {
		snprintf(key, sizeof(key), "%s_%s_ns", name, values[i].word);
		json_object_set_new(object, key, json_integer((json_int_t)values[i].value));
	}
}

static json_t *work_json(const struct lab_result *r, const struct lab_workload_result *w)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:f, s:f}", "host", w->host_name,
				   "workload", w->name, "kind", lab_workload_kind_name(w->kind),
				   "cpu", (int)w->cpu, "packets", (json_int_t)w->packets, "bytes",
				   (json_int_t)w->bytes, "pps", lab_per_second(r, w->packets),
				   "waiting", w->waiting);

	if (w->kind == LAB_WORK_RECV) {
		json_object_set_new(object, "lost", json_integer((json_int_t)w->lost));
		json_object_set_new(object, "reordered", json_integer((json_int_t)w->reordered));
		json_object_set_new(object, "duplicates", json_integer((json_int_t)w->duplicates));
	}
	delay_json(object, "latency", &w->latency);
	delay_json(object, "drain", &w->drain);
	return object;
}

static json_t *single_row(const struct cmd_lab *lab, const struct lab_scenario *s,
			  const struct lab_result *r, const struct lab_limiter *l)
{
	static const char *const words[] = { "pps", "irqs_per_s" };
	json_t *object = json_object(), *named = json_object();
	char key[64], digest[24];
	double value;

	if (lab->series)
		json_object_set_new(object, "series", json_string(lab->series));
	for (unsigned i = 0; i < lab->n_set; i++) {
		json_object_set_new(object, key_of(lab->set[i].key, key),
				    number_or_text(lab->set[i].value));
		json_object_set_new(named, lab->set[i].key, number_or_text(lab->set[i].value));
	}
	json_object_set_new(object, "parameters", named);
	for (unsigned i = 0; i < HO_ARRAY_LEN(words); i++) {
		if (lab_result_value(r, words[i], &value, NULL) < 0)
			continue;
		json_object_set_new(object, words[i], value_json(value));
		snprintf(key, sizeof(key), "published_%s", words[i]);
		json_object_set_new(object, key, json_null());
	}
	json_object_set_new(object, "error_percent", json_null());
	json_object_set_new(object, "fitted", json_false());
	json_object_set_new(object, "limiter", json_string(lab_limit_name(l->what)));
	json_object_set_new(object, "limiter_detail", limiter_json(l));
	json_object_set_new(object, "sim_frames", json_integer((json_int_t)r->sim_frames));
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)r->digest);
	json_object_set_new(object, "digest", json_string(digest));
	return object;
}

int cmd_lab_single_json(const struct cmd_lab *lab, const struct lab_scenario *s,
			const struct lab_result *r, const struct lab_limiter *l)
{
	struct ms_fitted fitted[MS_COMPARE_FITTED];
	json_t *object = ho_json_begin("lab"), *rows = json_array(), *hosts = json_array(),
	       *chips = json_array(), *works = json_array();
	unsigned n_fitted = 0;
	char digest[24];

	ms_fitted_add(s, fitted, &n_fitted);
	json_object_set_new(object, "scenario", json_string(s->name));
	json_array_append_new(rows, single_row(lab, s, r, l));
	json_object_set_new(object, "rows", rows);
	for (unsigned h = 0; h < r->n_hosts; h++)
		json_array_append_new(hosts, json_pack("{s:s, s:o}", "host", r->host[h].name,
						       "cpus", cpus_json(r, h)));
	json_object_set_new(object, "hosts", hosts);
	for (unsigned i = 0; i < r->n_chips; i++)
		json_array_append_new(chips, chip_json(&r->chip[i]));
	json_object_set_new(object, "chips", chips);
	for (unsigned i = 0; i < r->n_workloads; i++)
		json_array_append_new(works, work_json(r, &r->workload[i]));
	json_object_set_new(object, "workloads", works);
	json_object_set_new(object, "interval_ns",
			    json_integer((json_int_t)(r->interval / SIM_PS_PER_NS)));
	json_object_set_new(object, "fitted_constants", fitted_json(fitted, n_fitted));
	json_object_set_new(object, "sim_frames", json_integer((json_int_t)r->sim_frames));
	json_object_set_new(object, "sim_events", json_integer((json_int_t)r->sim_events));
	json_object_set_new(object, "wall_seconds", json_real(r->wall_seconds));
	json_object_set_new(object, "cpu_seconds", json_real(r->cpu_seconds));
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)r->digest);
	json_object_set_new(object, "digest", json_string(digest));
	return ho_json_print(stdout, object);
}
