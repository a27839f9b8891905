// SPDX-License-Identifier: BSD-2-Clause
/* holdoff lab list and show: what there is, and what a scenario says, in words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/screen.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/lab.h"
#include "cmd/session.h"
#include "lab/datadir.h"

int cmd_lab_list(const struct cmd_lab *lab, struct ho_err *err)
{
	json_t *list = lab->json ? json_array() : NULL;
	char **names;
	size_t n;
	int rc = lab_data_list("scenarios", ".yaml", &names, &n, err);

	if (rc < 0)
		return cmd_status_of(rc);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct lab_scenario *s;

		rc = lab_scenario_load(names[i], &s, err);
		if (rc < 0)
			break;
		if (lab->json)
			json_array_append_new(list,
					      json_pack("{s:s, s:s, s:i}", "name", names[i],
							"title", s->title, "published_rows",
							s->table ? (int)s->table->n_rows : 0));
		else if (s->table)
			printf("%-20s %s (%u published rows)\n", names[i], s->title,
			       s->table->n_rows);
		else
			printf("%-20s %s\n", names[i], s->title);
		lab_scenario_free(s);
	}
	lab_data_list_free(names, n);
	if (lab->json) {
		json_t *object = ho_json_begin("lab");

		json_object_set_new(object, "scenarios", list);
		ho_json_print(stdout, object);
	}
	fflush(stdout);
	return cmd_status_of(rc);
}

/* --- show ------------------------------------------------------------------------------------- */

static void print_constant(const char *key, const struct lab_constant *c, enum lab_unit unit)
{
	char value[32];

	switch (unit) {
	case LAB_UNIT_NS:
		snprintf(value, sizeof(value), "%g", (double)c->value / SIM_PS_PER_NS);
		break;
	case LAB_UNIT_GBPS:
		snprintf(value, sizeof(value), "%g", (double)c->value / 1e9);
		break;
	case LAB_UNIT_BYTES:
	case LAB_UNIT_COUNT:
		snprintf(value, sizeof(value), "%llu", (unsigned long long)c->value);
		break;
	}
	printf("    %-22s %10s  %-9s  %s", key, value, lab_kind_name(c->kind),
	       c->source ? c->source : "");
	for (unsigned i = 0; i < c->n_rows; i++)
		printf("%s%s", i ? ", " : " [fitted to ", c->rows[i]);
	printf("%s\n", c->n_rows ? "]" : "");
}

static void print_profile(const struct lab_profile *p)
{
	char key[64], text[HO_UNIT_TEXT];

	printf("  profile %s: %s\n", p->name, p->title);
	printf("    %-22s %10s\n", "cpu_hz", ho_format_si((double)p->cpu_hz, text));
	for (unsigned i = 0; i < LAB_CONSTANT_COUNT; i++)
		print_constant(lab_constant_info[i].key, &p->constant[i],
			       lab_constant_info[i].unit);
	for (unsigned i = 0; i < p->machine.cache.n_levels; i++) {
		const struct lab_cache_level *level = &p->machine.cache.level[i];

		printf("    %s: %llu KB, %u ways of %u bytes\n", p->cache_name[i],
		       (unsigned long long)level->bytes / 1024, level->ways, level->line);
		snprintf(key, sizeof(key), "%s_miss_ns", p->cache_name[i]);
		print_constant(key, &p->cache_miss[i], LAB_UNIT_NS);
	}
}

static void print_params(const struct lab_params *params)
{
	for (unsigned i = 0; i < params->n; i++)
		printf("%s%s %s", i ? ", " : "; ", params->param[i].name, params->param[i].text);
}

static void print_host(const struct lab_host_spec *h)
{
	printf("host %s: %u CPUs\n", h->name, h->profile->machine.cpus);
	for (uint32_t i = 0; i < h->chips_count; i++) {
		const struct lab_chip_spec *c = &h->chips[i];

		printf("  %s: an %s, rx-mode %s", c->name, c->model, lab_rx_mode_name(c->rx_mode));
		if (c->queues)
			printf(", %u queue pair%s", c->queues, c->queues == 1 ? "" : "s");
		for (uint32_t k = 0; k < c->irq_cpus_count; k++)
			printf("%s%u", k ? "," : ", interrupts on CPU ", c->irq_cpus[k]);
		print_params(&c->params);
		printf("\n");
	}
	for (uint32_t i = 0; i < h->workloads_count; i++) {
		const struct lab_workload_spec *w = &h->workloads[i];

		printf("  %s: %s on CPU %u, %s queue %u, %s%s, rate %s", w->name,
		       lab_workload_kind_name(w->kind), w->cpu, w->chip, w->queue,
		       w->sizes ? "frames of " : "frames of the kind's size",
		       w->sizes ? w->sizes : "", w->rate_text ? w->rate_text : "max");
		print_params(&w->params);
		printf("\n");
	}
}

static void print_axes(const struct lab_scenario *s)
{
	for (uint32_t i = 0; i < s->axes_count; i++) {
		printf("axis %s sets %s:", s->axes[i].name, s->axes[i].path);
		for (uint32_t k = 0; k < s->axes[i].values_count; k++)
			printf(" %s", s->axes[i].values[k]);
		printf("\n");
	}
	for (uint32_t i = 0; i < s->series_count; i++) {
		printf("series %s:", s->series[i].name);
		for (unsigned k = 0; k < s->series[i].set.n; k++)
			printf(" %s = %s", s->series[i].set.param[k].name,
			       s->series[i].set.param[k].text);
		printf("\n");
	}
}

static void print_published(const struct lab_scenario *s)
{
	const struct lab_published_spec *p = s->published;

	printf("published: %s, %u rows\n", s->published_path, s->table->n_rows);
	for (uint32_t i = 0; i < p->results_count; i++) {
		printf("  column %s beside %s", p->results[i].column, p->results[i].result);
		if (p->results[i].within_percent > 0)
			printf(", to be within %g %%", p->results[i].within_percent);
		if (p->results[i].background > 0)
			printf(", less %g: %s", p->results[i].background,
			       p->results[i].background_from);
		printf("\n");
	}
	for (uint32_t i = 0; i < p->fitted_count; i++)
		printf("%s%s", i ? ", " : "  constants were fitted to ", p->fitted[i]);
	printf("%s", p->fitted_count ? "\n" : "");
}

/* The profiles of the hosts and of the series, each once. */
static int print_profiles(const struct lab_scenario *s, const char *name, struct ho_err *err)
{
	const char *seen[64];
	unsigned n = 0;

	for (uint32_t i = 0; i <= s->series_count; i++) {
		struct lab_scenario *variant;
		int rc = lab_scenario_load(name, &variant, err);

		if (rc == 0 && i < s->series_count)
			rc = lab_scenario_set_series(variant, s->series[i].name, err);
		if (rc < 0)
			return rc;
		for (uint32_t h = 0; h < variant->hosts_count; h++) {
			const struct lab_profile *p = variant->hosts[h].profile;
			unsigned k = 0;

			while (k < n && strcmp(seen[k], p->name))
				k++;
			if (k < n || n == HO_ARRAY_LEN(seen))
				continue;
			seen[n++] = strdup(p->name);
			printf("\n");
			print_profile(p);
		}
		lab_scenario_free(variant);
	}
	while (n)
		free((char *)seen[--n]);
	return 0;
}

int cmd_lab_show(const struct cmd_lab *lab, struct ho_err *err)
{
	struct lab_scenario *s;
	int rc = cmd_lab_load(lab, &s, err);

	if (rc < 0)
		return cmd_status_of(rc);
	printf("%s: %s\n", s->name, s->title);
	if (s->text)
		ho_print_words(stdout, s->text, 0);
	printf("\nmeasured for %g ms after a warm-up of %g ms; seed %llu\n",
	       (double)s->duration / 1e9, (double)s->warmup / 1e9, (unsigned long long)s->seed);
	for (uint32_t i = 0; i < s->hosts_count; i++)
		print_host(&s->hosts[i]);
	for (uint32_t i = 0; i < s->wires_count; i++)
		printf("wire %s: %s to %s, %s, %g ns\n", s->wires[i].name, s->wires[i].from,
		       s->wires[i].to ? s->wires[i].to : "a sink", s->wires[i].rate_text,
		       (double)s->wires[i].propagation / SIM_PS_PER_NS);
	print_axes(s);
	if (s->published)
		print_published(s);
	rc = print_profiles(s, lab->scenario, err);
	fflush(stdout);
	lab_scenario_free(s);
	return cmd_status_of(rc);
}
