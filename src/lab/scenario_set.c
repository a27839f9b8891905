// SPDX-License-Identifier: BSD-2-Clause
/* Parameters with free names, and changing a scenario value by value. */
#include <errno.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/scenario_file.h"

static int out_of_memory(struct ho_err *err)
{
	return ho_err_set(err, -ENOMEM, "out of memory");
}

/* --- parameters --------------------------------------------------------------------------- */

const struct lab_param *lab_params_get(const struct lab_params *params, const char *name)
{
	for (unsigned i = 0; i < params->n; i++)
		if (!strcmp(params->param[i].name, name))
			return &params->param[i];
	return NULL;
}

void lab_params_free(struct lab_params *params)
{
	for (unsigned i = 0; i < params->n; i++) {
		free(params->param[i].name);
		free(params->param[i].text);
	}
	free(params->param);
	*params = (struct lab_params){ 0 };
}

static void param_value(struct lab_param *param)
{
	static const char *const words[2][4] = { { "off", "no", "false", NULL },
						 { "on", "yes", "true", NULL } };

	param->numeric = !ho_parse_count(param->text, &param->value, NULL);
	for (unsigned value = 0; value < 2 && !param->numeric; value++) {
		for (const char *const *word = words[value]; *word; word++) {
			if (!strcmp(param->text, *word)) {
				param->numeric = true;
				param->value = value;
			}
		}
	}
}

int lab_params_set(struct lab_params *params, const char *name, const char *text,
		   struct ho_err *err)
{
	struct lab_param *param = (struct lab_param *)lab_params_get(params, name), *grown;
	char *copy = strdup(text);

	if (!copy)
		return out_of_memory(err);
	if (!param) {
		grown = realloc(params->param, (params->n + 1) * sizeof(*grown));
		if (!grown) {
			free(copy);
			return out_of_memory(err);
		}
		params->param = grown;
		param = &grown[params->n];
		*param = (struct lab_param){ .name = strdup(name) };
		if (!param->name) {
			free(copy);
			return out_of_memory(err);
		}
		params->n++;
	}
	free(param->text);
	param->text = copy;
	param_value(param);
	return 0;
}

int lab_params_add(void *arg, const char *key, const char *value, struct ho_err *err)
{
	struct lab_params *params = arg;

	if (lab_params_get(params, key))
		return ho_err_set(err, -EINVAL, "'%s' is given twice", key);
	return lab_params_set(params, key, value, err);
}

/* --- names -------------------------------------------------------------------------------- */

struct lab_host_spec *lab_host_named(struct lab_scenario *s, const char *name, size_t length)
{
	for (unsigned i = 0; i < s->hosts_count; i++)
		if (strlen(s->hosts[i].name) == length && !memcmp(s->hosts[i].name, name, length))
			return &s->hosts[i];
	return NULL;
}

struct lab_chip_spec *lab_chip_named(struct lab_host_spec *h, const char *name)
{
	for (unsigned i = 0; i < h->chips_count; i++)
		if (!strcmp(h->chips[i].name, name))
			return &h->chips[i];
	return NULL;
}

const struct lab_axis_spec *lab_axis_named(const struct lab_scenario *s, const char *name)
{
	for (unsigned i = 0; i < s->axes_count; i++)
		if (!strcmp(s->axes[i].name, name))
			return &s->axes[i];
	return NULL;
}

/* --- setting ------------------------------------------------------------------------------ */

static int replace(char **text, const char *value, struct ho_err *err)
{
	char *copy = *value ? strdup(value) : NULL;

	if (*value && !copy)
		return out_of_memory(err);
	if (!copy)
		return ho_err_set(err, -EINVAL, "a value is needed");
	free(*text);
	*text = copy;
	return 0;
}

static int set_number(uint32_t *number, const char *value, struct ho_err *err)
{
	uint64_t n;
	int rc = ho_parse_count(value, &n, err);

	if (rc)
		return rc;
	if (n > UINT32_MAX)
		return ho_err_set(err, -ERANGE, "%s is too large", value);
	*number = (uint32_t)n;
	return 0;
}

static int set_irq_cpus(struct lab_chip_spec *chip, const char *value, struct ho_err *err)
{
	uint32_t cpus[LAB_IRQ_CPUS_MAX], n = 0, *copy;
	const char *text = value;

	for (;;) {
		char *end;
		unsigned long cpu = strtoul(text, &end, 10);

		if (end == text || !isdigit((unsigned char)*text) || (*end && *end != ',') ||
		    cpu >= 1024 || n == LAB_IRQ_CPUS_MAX)
			return ho_err_set(err, -EINVAL, "'%s': CPU numbers with commas are needed",
					  value);
		cpus[n++] = (uint32_t)cpu;
		if (!*end)
			break;
		text = end + 1;
	}
	copy = malloc(n * sizeof(*copy));
	if (!copy)
		return out_of_memory(err);
	memcpy(copy, cpus, n * sizeof(*copy));
	free(chip->irq_cpus);
	chip->irq_cpus = copy;
	chip->irq_cpus_count = n;
	return 0;
}

static int set_chip(struct lab_chip_spec *chip, const char *key, const char *value,
		    struct ho_err *err)
{
	if (!strcmp(key, "model"))
		return replace(&chip->model, value, err);
	if (!strcmp(key, "queues"))
		return set_number(&chip->queues, value, err);
	if (!strcmp(key, "irq-cpus"))
		return set_irq_cpus(chip, value, err);
	if (!strcmp(key, "rx-mode")) {
		int mode = lab_rx_mode_of(value);

		if (mode < 0)
			return ho_err_set(err, -EINVAL, "there is no rx-mode '%s'", value);
		chip->rx_mode = (enum lab_rx_mode)mode;
		return 0;
	}
	return lab_params_set(&chip->params, key, value, err);
}

static int set_workload(struct lab_workload_spec *w, const char *key, const char *value,
			struct ho_err *err)
{
	if (!strcmp(key, "chip"))
		return replace(&w->chip, value, err);
	if (!strcmp(key, "queue"))
		return set_number(&w->queue, value, err);
	if (!strcmp(key, "cpu"))
		return set_number(&w->cpu, value, err);
	if (!strcmp(key, "sizes"))
		return replace(&w->sizes, value, err);
	if (!strcmp(key, "rate"))
		return replace(&w->rate_text, value, err);
	if (!strcmp(key, "kind")) {
		int kind = lab_workload_kind_of(value);

		if (kind < 0)
			return ho_err_set(err, -EINVAL, "there is no kind of workload '%s'", value);
		w->kind = (enum lab_workload_kind)kind;
		return 0;
	}
	return lab_params_set(&w->params, key, value, err);
}

static int set_host(struct lab_host_spec *h, char **word, unsigned n, const char *value,
		    struct ho_err *err)
{
	if (n < 3) {
		/* The profile is read and put together anew. */
		lab_profile_free(h->profile);
		h->profile = NULL;
	}
	if (n == 1 && !strcmp(word[0], "profile"))
		return replace(&h->profile_name, value, err);
	if (n == 1 && !strcmp(word[0], "cpus"))
		return set_number(&h->cpus, value, err);
	if (n == 2 && !strcmp(word[0], "constants"))
		return lab_params_set(&h->constants, word[1], value, err);
	if (n == 3 && !strcmp(word[0], "chips")) {
		struct lab_chip_spec *chip = lab_chip_named(h, word[1]);

		if (!chip)
			return ho_err_set(err, -EINVAL, "host %s has no chip '%s'", h->name,
					  word[1]);
		return set_chip(chip, word[2], value, err);
	}
	if (n == 3 && !strcmp(word[0], "workloads")) {
		for (unsigned i = 0; i < h->workloads_count; i++)
			if (!strcmp(h->workloads[i].name, word[1]))
				return set_workload(&h->workloads[i], word[2], value, err);
		return ho_err_set(err, -EINVAL, "host %s has no workload '%s'", h->name, word[1]);
	}
	return ho_err_set(err, -EINVAL,
			  "of a host profile, cpus, constants.KEY, chips.NAME.KEY and "
			  "workloads.NAME.KEY can be set");
}

static int set_wire(struct lab_scenario *s, char **word, const char *value, struct ho_err *err)
{
	struct lab_wire_spec *w = NULL;

	for (unsigned i = 0; i < s->wires_count; i++)
		if (!strcmp(s->wires[i].name, word[0]))
			w = &s->wires[i];
	if (!w)
		return ho_err_set(err, -EINVAL, "there is no wire '%s'", word[0]);
	if (!strcmp(word[1], "from"))
		return replace(&w->from, value, err);
	if (!strcmp(word[1], "to"))
		return replace(&w->to, value, err);
	if (!strcmp(word[1], "rate"))
		return replace(&w->rate_text, value, err);
	if (!strcmp(word[1], "propagation"))
		return replace(&w->propagation_text, value, err);
	return ho_err_set(err, -EINVAL, "of a wire from, to, rate and propagation can be set");
}

#define PATH_WORDS 5 /* hosts.HOST.chips.CHIP.KEY */

static int set_words(struct lab_scenario *s, char **word, unsigned n, const char *value,
		     struct ho_err *err)
{
	if (n == 1 && !strcmp(word[0], "seed"))
		return ho_parse_count(value, &s->seed, err);
	if (n == 1 && !strcmp(word[0], "warmup"))
		return replace(&s->warmup_text, value, err);
	if (n == 1 && !strcmp(word[0], "duration"))
		return replace(&s->duration_text, value, err);
	if (n >= 3 && !strcmp(word[0], "hosts")) {
		struct lab_host_spec *h = lab_host_named(s, word[1], strlen(word[1]));

		if (!h)
			return ho_err_set(err, -EINVAL, "there is no host '%s'", word[1]);
		return set_host(h, word + 2, n - 2, value, err);
	}
	if (n == 3 && !strcmp(word[0], "wires"))
		return set_wire(s, word + 1, value, err);
	return ho_err_set(err, -EINVAL,
			  "nothing that can be set; there are the scenario's axes, seed, warmup, "
			  "duration, hosts.NAME... and wires.NAME...");
}

static int set_one(struct lab_scenario *s, const char *path, const char *value, struct ho_err *err)
{
	const struct lab_axis_spec *axis = lab_axis_named(s, path);
	char *word[PATH_WORDS], *copy = strdup(axis ? axis->path : path), *rest = copy;
	unsigned n = 0;
	int rc;

	if (!copy)
		return out_of_memory(err);
	/* The last word may hold dots. */
	while (rest && n < PATH_WORDS - 1)
		word[n++] = strsep(&rest, ".");
	if (rest)
		word[n++] = rest;
	rc = set_words(s, word, n, value, err);
	free(copy);
	if (rc && err)
		ho_err_prefix(err, "%s=%s", path, value);
	return rc;
}

int lab_scenario_set(struct lab_scenario *s, const char *path, const char *value,
		     struct ho_err *err)
{
	int rc = set_one(s, path, value, err);

	if (rc)
		return rc;
	rc = lab_scenario_resolve(s, NULL, err);
	if (rc && err)
		ho_err_prefix(err, "%s=%s", path, value);
	return rc;
}

int lab_scenario_set_series(struct lab_scenario *s, const char *name, struct ho_err *err)
{
	for (unsigned i = 0; i < s->series_count; i++) {
		const struct lab_params *set = &s->series[i].set;
		int rc = 0;

		if (strcmp(s->series[i].name, name))
			continue;
		for (unsigned j = 0; !rc && j < set->n; j++)
			rc = set_one(s, set->param[j].name, set->param[j].text, err);
		return rc ? rc : lab_scenario_resolve(s, NULL, err);
	}
	return ho_err_set(err, -EINVAL, "scenario %s has no series '%s'", s->name, name);
}
