// SPDX-License-Identifier: BSD-2-Clause
/* What a scenario's words mean: names resolved, values checked. */
#include "lab/scenario.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/document.h"
#include "lab/datadir.h"
#include "lab/run.h"
#include "lab/scenario_file.h"

#define NODE_TEXT 128

/* Who resolves, and where it is, for messages. */
struct resolver {
	struct lab_scenario *s;
	const struct ho_doc
		*doc; /* NULL after lab_scenario_set: the file's places are not at fault */
	struct ho_err *err;
	char node[NODE_TEXT];
};

static void at(struct resolver *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct resolver *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void at(struct resolver *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->node, sizeof(r->node), fmt, ap);
	va_end(ap);
}

/* The error is set: says where. */
static int blame(struct resolver *r)
{
	return ho_doc_blame(r->doc, r->node, r->err);
}

static int bad(struct resolver *r, const char *fmt, ...)
{
	char text[HO_ERR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ho_err_set(r->err, -EINVAL, "%s", text);
	return blame(r);
}

static int out_of_memory(struct ho_err *err)
{
	return ho_err_set(err, -ENOMEM, "out of memory");
}

/* --- parameters --------------------------------------------------------------------------- */

static int read_params(struct resolver *r, struct lab_params *params, const char *fmt, unsigned i,
		       unsigned j)
{
	char node[NODE_TEXT];

	snprintf(node, sizeof(node), fmt, i, j);
	return ho_doc_entries(r->doc, node, lab_params_add, params, r->err);
}

/* The mappings that the schema leaves out; once, after reading. */
static int read_free_keys(struct resolver *r)
{
	struct lab_scenario *s = r->s;
	int rc = 0;

	for (unsigned i = 0; !rc && i < s->series_count; i++)
		rc = read_params(r, &s->series[i].set, "series/%u/set", i, 0);
	for (unsigned i = 0; !rc && i < s->hosts_count; i++) {
		struct lab_host_spec *h = &s->hosts[i];

		rc = read_params(r, &h->constants, "hosts/%u/constants", i, 0);
		for (unsigned j = 0; !rc && j < h->chips_count; j++)
			rc = read_params(r, &h->chips[j].params, "hosts/%u/chips/%u/params", i, j);
		for (unsigned j = 0; !rc && j < h->workloads_count; j++)
			rc = read_params(r, &h->workloads[j].params, "hosts/%u/workloads/%u/params",
					 i, j);
	}
	return rc;
}

/* --- names -------------------------------------------------------------------------------- */

/* `first` is who has the name first: itself, if the name is used once. */
static int check_name(struct resolver *r, const char *name, const void *self, const void *first)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
			return bad(r, "'%s': a name is made of letters, digits, '-' and '_'", name);
	if (self != first)
		return bad(r, "'%s' is named twice", name);
	return 0;
}

/* --- resolving ---------------------------------------------------------------------------- */

static int to_time(struct resolver *r, const char *text, sim_ps *out)
{
	uint64_t ns = 0;

	*out = 0;
	if (text && ho_parse_time_ns(text, &ns, r->err))
		return blame(r);
	if (ns > SIM_NEVER / SIM_PS_PER_NS / 4)
		return bad(r, "%s: longer than virtual time lasts (53 days)", text);
	*out = ns * SIM_PS_PER_NS;
	return 0;
}

/* A path with a slash is meant from the scenario's own folder. */
static int beside(struct resolver *r, const char *name, char **out)
{
	const char *file = ho_doc_name(r->s->doc), *slash = strrchr(file, '/');

	if (!strchr(name, '/') || *name == '/' || !slash)
		*out = strdup(name);
	else if (asprintf(out, "%.*s/%s", (int)(slash - file), file, name) < 0)
		*out = NULL;
	return *out ? 0 : out_of_memory(r->err);
}

static int resolve_profile(struct resolver *r, struct lab_host_spec *h, unsigned i)
{
	char *name;
	int rc;

	if (h->profile)
		return 0; /* nothing that it depends on was changed */
	rc = beside(r, h->profile_name, &name);
	if (rc)
		return rc;
	at(r, "hosts/%u/profile", i);
	rc = lab_profile_load(name, &h->profile, r->err);
	free(name);
	if (rc)
		return blame(r);
	for (unsigned j = 0; j < h->constants.n; j++) {
		const struct lab_param *k = &h->constants.param[j];

		at(r, "hosts/%u/constants/%s", i, k->name);
		if (lab_profile_set(h->profile, k->name, k->text, r->err))
			return blame(r);
	}
	at(r, "hosts/%u/cpus", i);
	if (h->cpus > 1024)
		return bad(r, "%u CPUs: a host has 1 to 1024", h->cpus);
	if (h->cpus)
		h->profile->machine.cpus = h->cpus;
	return 0;
}

static int resolve_chip(struct resolver *r, struct lab_host_spec *h, unsigned i, unsigned j)
{
	struct lab_chip_spec *chip = &h->chips[j];
	int rc;

	at(r, "hosts/%u/chips/%u/name", i, j);
	rc = check_name(r, chip->name, chip, lab_chip_named(h, chip->name));
	if (rc)
		return rc;
	if (!chip->irq_cpus_count) {
		free(chip->irq_cpus);
		chip->irq_cpus = calloc(1, sizeof(*chip->irq_cpus));
		if (!chip->irq_cpus)
			return out_of_memory(r->err);
		chip->irq_cpus_count = 1;
	}
	for (unsigned k = 0; k < chip->irq_cpus_count; k++) {
		at(r, "hosts/%u/chips/%u/irq-cpus/%u", i, j, k);
		if (chip->irq_cpus[k] >= h->profile->machine.cpus)
			return bad(r, "CPU %u: host %s has %u", chip->irq_cpus[k], h->name,
				   h->profile->machine.cpus);
	}
	return 0;
}

static int resolve_workload(struct resolver *r, struct lab_host_spec *h, unsigned i, unsigned j)
{
	struct lab_workload_spec *w = &h->workloads[j];
	const struct lab_chip_spec *chip = lab_chip_named(h, w->chip);
	const struct lab_workload_spec *first = h->workloads;
	int rc;

	while (strcmp(first->name, w->name))
		first++;
	at(r, "hosts/%u/workloads/%u/name", i, j);
	rc = check_name(r, w->name, w, first);
	if (rc)
		return rc;
	at(r, "hosts/%u/workloads/%u/chip", i, j);
	if (!chip)
		return bad(r, "host %s has no chip '%s'", h->name, w->chip);
	w->chip_index = (unsigned)(chip - h->chips);
	at(r, "hosts/%u/workloads/%u/cpu", i, j);
	if (w->cpu >= h->profile->machine.cpus)
		return bad(r, "CPU %u: host %s has %u", w->cpu, h->name, h->profile->machine.cpus);
	at(r, "hosts/%u/workloads/%u/queue", i, j);
	if (chip->queues && w->queue >= chip->queues)
		return bad(r, "queue %u: chip %s has %u", w->queue, chip->name, chip->queues);
	at(r, "hosts/%u/workloads/%u/rate", i, j);
	w->rate = (struct ho_rate){ .unit = HO_RATE_MAX };
	if (w->rate_text && ho_parse_rate(w->rate_text, &w->rate, r->err))
		return blame(r);
	return 0;
}

static int resolve_host(struct resolver *r, unsigned i)
{
	struct lab_scenario *s = r->s;
	struct lab_host_spec *h = &s->hosts[i];
	int rc;

	at(r, "hosts/%u/name", i);
	rc = check_name(r, h->name, h, lab_host_named(s, h->name, strlen(h->name)));
	if (!rc)
		rc = resolve_profile(r, h, i);
	for (unsigned j = 0; !rc && j < h->chips_count; j++)
		rc = resolve_chip(r, h, i, j);
	for (unsigned j = 0; !rc && j < h->workloads_count; j++)
		rc = resolve_workload(r, h, i, j);
	return rc;
}

static int resolve_end(struct resolver *r, const char *text, struct lab_wire_end *end)
{
	struct lab_scenario *s = r->s;
	const char *dot = strchr(text, '.');
	struct lab_host_spec *h = dot ? lab_host_named(s, text, (size_t)(dot - text)) : NULL;
	struct lab_chip_spec *chip = h ? lab_chip_named(h, dot + 1) : NULL;

	if (!chip)
		return bad(r, "'%s': a wire's end is HOST.CHIP, and there is no such one", text);
	*end = (struct lab_wire_end){ (unsigned)(h - s->hosts), (unsigned)(chip - h->chips) };
	return 0;
}

/* A chip has one wire. */
static int check_free(struct resolver *r, const struct lab_wire_spec *w, unsigned side)
{
	const struct lab_wire_end *end = &w->end[side];

	for (const struct lab_wire_spec *other = r->s->wires; other <= w; other++) {
		unsigned sides = other == w ? side : other->sink ? 1 : 2;

		for (unsigned k = 0; k < sides; k++)
			if (other->end[k].host == end->host && other->end[k].chip == end->chip)
				return bad(r, "this chip is at an end of wire %s already",
					   other->name);
	}
	return 0;
}

static int resolve_wire(struct resolver *r, unsigned i)
{
	struct lab_wire_spec *w = &r->s->wires[i];
	const struct lab_wire_spec *first = r->s->wires;
	struct ho_rate rate;
	int rc;

	while (strcmp(first->name, w->name))
		first++;
	at(r, "wires/%u/name", i);
	rc = check_name(r, w->name, w, first);
	if (rc)
		return rc;
	w->sink = !w->to;
	at(r, "wires/%u/from", i);
	rc = resolve_end(r, w->from, &w->end[0]);
	if (!rc)
		rc = check_free(r, w, 0);
	at(r, "wires/%u/to", i);
	if (!rc && w->to)
		rc = resolve_end(r, w->to, &w->end[1]);
	if (!rc && w->to)
		rc = check_free(r, w, 1);
	if (rc)
		return rc;
	at(r, "wires/%u/rate", i);
	if (ho_parse_rate(w->rate_text, &rate, r->err))
		return blame(r);
	if (rate.unit != HO_RATE_L2_BPS || rate.value < 1e6 || rate.value > 1e12)
		return bad(r, "%s: a wire's rate is from 1mbps to 1000gbps", w->rate_text);
	w->bits_per_s = (uint64_t)llround(rate.value);
	at(r, "wires/%u/propagation", i);
	return to_time(r, w->propagation_text, &w->propagation);
}

static int check_column(struct resolver *r, const char *name)
{
	if (lab_table_column(r->s->table, name) >= 0)
		return 0;
	return bad(r, "%s has no column '%s'", r->s->published_path, name);
}

static int resolve_published(struct resolver *r)
{
	const struct lab_published_spec *p = r->s->published;
	char *file;
	int rc;

	if (!p)
		return 0;
	rc = beside(r, p->file, &file);
	if (rc)
		return rc;
	free(r->s->published_path);
	r->s->published_path = NULL;
	at(r, "published/file");
	rc = lab_data_find("published", file, ".csv", &r->s->published_path, r->err);
	free(file);
	if (rc)
		return blame(r);
	lab_table_free(r->s->table);
	r->s->table = NULL;
	if (lab_table_read(r->s->published_path, &r->s->table, r->err))
		return blame(r);
	at(r, "published/series-column");
	if (p->series_column && !r->s->series_count)
		return bad(r, "series-column needs a list 'series'");
	if (p->series_column && check_column(r, p->series_column))
		return -EINVAL;
	for (unsigned i = 0; i < p->parameters_count; i++) {
		at(r, "published/parameters/%u/axis", i);
		if (!lab_axis_named(r->s, p->parameters[i].axis))
			return bad(r, "there is no axis '%s'", p->parameters[i].axis);
		at(r, "published/parameters/%u/column", i);
		if (check_column(r, p->parameters[i].column))
			return -EINVAL;
	}
	for (unsigned i = 0; i < p->results_count; i++) {
		at(r, "published/results/%u/column", i);
		if (p->results[i].column && check_column(r, p->results[i].column))
			return -EINVAL;
		at(r, "published/results/%u/result", i);
		if (lab_result_check(p->results[i].result, r->err))
			return blame(r);
		at(r, "published/results/%u/background", i);
		if (!isfinite(p->results[i].background) || p->results[i].background < 0)
			return bad(r, "a background is a rate, from 0");
		if (p->results[i].background > 0 && !p->results[i].background_from)
			return bad(r, "a background must say what it is: 'background-from: ...'");
	}
	return 0;
}

static int resolve_all(struct resolver *r)
{
	struct lab_scenario *s = r->s;
	int rc;

	at(r, "warmup");
	rc = to_time(r, s->warmup_text, &s->warmup);
	if (rc)
		return rc;
	at(r, "duration");
	rc = to_time(r, s->duration_text, &s->duration);
	if (rc)
		return rc;
	if (!s->duration)
		return bad(r, "the duration must not be 0");
	for (unsigned i = 0; !rc && i < s->hosts_count; i++)
		rc = resolve_host(r, i);
	for (unsigned i = 0; !rc && i < s->wires_count; i++)
		rc = resolve_wire(r, i);
	for (unsigned i = 0; !rc && i < s->axes_count; i++) {
		at(r, "axes/%u/name", i);
		rc = check_name(r, s->axes[i].name, &s->axes[i],
				lab_axis_named(s, s->axes[i].name));
	}
	return rc ? rc : resolve_published(r);
}

int lab_scenario_resolve(struct lab_scenario *s, const struct ho_doc *doc, struct ho_err *err)
{
	struct resolver r = { .s = s, .doc = doc, .err = err };

	return resolve_all(&r);
}

/* --- reading ------------------------------------------------------------------------------ */

static int build(struct lab_scenario *s, struct ho_doc *doc, struct lab_scenario **out,
		 struct ho_err *err)
{
	struct resolver r = { .s = s, .doc = doc, .err = err };
	int rc;

	s->doc = doc;
	rc = read_free_keys(&r);
	if (!rc)
		rc = resolve_all(&r);
	if (rc) {
		lab_scenario_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int lab_scenario_load(const char *name, struct lab_scenario **out, struct ho_err *err)
{
	struct ho_doc *doc;
	void *s;
	char *path;
	int rc = lab_data_find("scenarios", name, ".yaml", &path, err);

	if (rc)
		return rc;
	rc = ho_doc_load(path, &lab_scenario_schema, &s, &doc, err);
	free(path);
	return rc ? rc : build(s, doc, out, err);
}

int lab_scenario_parse(const char *file, const char *text, size_t bytes, struct lab_scenario **out,
		       struct ho_err *err)
{
	struct ho_doc *doc;
	void *s;
	int rc = ho_doc_parse(file, text, bytes, &lab_scenario_schema, &s, &doc, err);

	return rc ? rc : build(s, doc, out, err);
}

void lab_scenario_free(struct lab_scenario *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->hosts_count; i++) {
		struct lab_host_spec *h = &s->hosts[i];

		for (unsigned j = 0; j < h->chips_count; j++)
			lab_params_free(&h->chips[j].params);
		for (unsigned j = 0; j < h->workloads_count; j++)
			lab_params_free(&h->workloads[j].params);
		lab_params_free(&h->constants);
		lab_profile_free(h->profile);
	}
	for (unsigned i = 0; i < s->series_count; i++)
		lab_params_free(&s->series[i].set);
	free(s->published_path);
	lab_table_free(s->table);
	ho_doc_free(s->doc);
	ho_yaml_free(&lab_scenario_schema, s);
}

int lab_scenario_blame(const struct lab_scenario *s, struct ho_err *err, const char *node, ...)
{
	char path[NODE_TEXT];
	va_list ap;

	va_start(ap, node);
	vsnprintf(path, sizeof(path), node, ap);
	va_end(ap);
	return ho_doc_blame(s->doc, path, err);
}
