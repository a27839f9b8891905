// SPDX-License-Identifier: BSD-2-Clause
/* holdoff explain: what limits, why, and what to do about it. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/screen.h"
#include "base/units.h"
#include "cmd/lab.h"
#include "cmd/session.h"
#include "measure/explain_lab.h"
#include "measure/explain_live.h"

enum {
	OPT_SET = 's',
	OPT_JSON = 'j',
	OPT_DURATION = 'd',
	OPT_SERIES = 0x100,
	OPT_LIST,
	OPT_IFACE,
};

static const struct argp_option options[] = {
	{ "list", OPT_LIST, NULL, 0, "Print the table of causes as a document", 1 },
	{ "duration", OPT_DURATION, "TIME", 0, "So long is a live interface looked at [3s]", 1 },
	{ "set", OPT_SET, "KEY=VALUE", 0, "Change a value of the scenario", 1 },
	{ "series", OPT_SERIES, "NAME", 0, "The variant of machine or software", 1 },
	{ "interface", OPT_IFACE, "HOST.CHIP", 0,
	  "The interface that it is about; the one with the surest verdict if not given", 1 },
	{ "json", OPT_JSON, NULL, 0, "Print one JSON object", 1 },
	{ 0 },
};

struct args {
	struct cmd_lab lab;
	const char *target, *iface;
	uint64_t duration_ns; /* that a live interface is looked at */
	bool list;
	struct ho_err *err;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	int rc = 0;

	switch (key) {
	case ARGP_KEY_ARG:
		if (a->target)
			rc = ho_err_set(a->err, -EINVAL, "'%s': explain takes one target", arg);
		a->target = arg;
		break;
	case OPT_SET:
		rc = cmd_lab_add_set(&a->lab, arg, a->err);
		break;
	case OPT_DURATION:
		rc = ho_parse_time_ns(arg, &a->duration_ns, a->err);
		if (rc == 0 && (a->duration_ns < 10000000u || a->duration_ns > 3600000000000u))
			rc = ho_err_set(a->err, -ERANGE, "--duration %s: 10ms to 1 hour", arg);
		break;
	case OPT_SERIES:
		a->lab.series = arg;
		break;
	case OPT_IFACE:
		a->iface = arg;
		break;
	case OPT_LIST:
		a->list = true;
		break;
	case OPT_JSON:
		a->lab.json = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

/* --- the table ------------------------------------------------------------------------------ */

static int list_json(void)
{
	json_t *o = ho_json_begin("explain"), *list = json_array();

	for (const struct ms_cause *c = ms_causes; c->name; c++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "cause", c->name, "title",
					c->title, "symptom", c->symptom, "evidence", c->evidence,
					"arithmetic", c->arithmetic, "remedy", c->remedy));
	json_object_set_new(o, "causes", list);
	return ho_json_print(stdout, o);
}

static void list(void)
{
	printf("Causes, in the order in which they are looked for.\n");
	for (const struct ms_cause *c = ms_causes; c->name; c++) {
		printf("\n%s: %s\n", c->name, c->title);
		ho_print_words_behind(stdout, "    symptom", c->symptom, 16);
		ho_print_words_behind(stdout, "    evidence", c->evidence, 16);
		ho_print_words_behind(stdout, "    arithmetic", c->arithmetic, 16);
		ho_print_words_behind(stdout, "    remedy", c->remedy, 16);
	}
}

/* --- a verdict ------------------------------------------------------------------------------ */

static const char *sure(double certainty)
{
	return certainty >= 0.9 ? "nearly certain" : certainty >= 0.7 ? "likely" : "a guess";
}

static const char *what_is(enum ms_aim aim)
{
	return aim == MS_AIM_REQUEST ? "transactions" : "frames";
}

static json_t *evidence_json(const struct ms_evidence *ev)
{
	json_t *o = json_object(), *cpus = json_array();

	for (unsigned i = 0; i < MS_EV_COUNT; i++) {
		double value = ev->value[i];

		json_object_set_new(o, ms_evidence_info[i].key,
				    isfinite(value) ? json_real(value) : json_null());
	}
	json_object_set_new(o, "rx_mode", json_string(ms_mode_names[ev->mode]));
	for (unsigned i = 0; i < ev->n_cpus; i++)
		json_array_append_new(cpus, json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:b}", "cpu",
						      (int)i, "user", ev->cpu[i].user, "system",
						      ev->cpu[i].system, "irq", ev->cpu[i].irq,
						      "softirq", ev->cpu[i].softirq, "idle",
						      ev->cpu[i].idle, "program", ev->cpu[i].app));
	json_object_set_new(o, "cpus", cpus);
	return o;
}

static json_t *iface_json(const struct ms_lab_iface *f)
{
	const struct ms_verdict *v = &f->verdict;
	json_t *o = json_object(), *also = json_array(), *unknown = json_array(),
	       *set = json_object();
	struct ms_lab_sets sets;
	char commands[512];

	json_object_set_new(o, "interface", json_string(f->evidence.name));
	json_object_set_new(o, "cause", json_string(v->cause->name));
	json_object_set_new(o, "certainty", json_real(v->finding.certainty));
	json_object_set_new(o, "verdict", json_string(v->finding.sentence));
	json_object_set_new(o, "arithmetic", json_string(v->finding.arithmetic));
	json_object_set_new(o, "remedy", json_string(v->cause->remedy));
	json_object_set_new(o, "per_s", json_real(v->view.rate));
	for (unsigned i = 0; i < v->n_also; i++)
		json_array_append_new(also, json_string(v->also[i]->name));
	json_object_set_new(o, "also", also);
	if (v->advises) {
		ms_lab_sets(f, &v->view.now, &v->advice, &sets);
		for (unsigned i = 0; i < sets.n; i++)
			json_object_set_new(set, sets.key[i], json_string(sets.value[i]));
		ms_linux_commands(&f->evidence, f->name, v->view.aim, &v->view.now, &v->advice,
				  commands, sizeof(commands));
		json_object_set_new(o, "advice", set);
		json_object_set_new(o, "commands", json_string(commands));
		json_object_set_new(o, "expects_per_s", json_real(v->expects));
	} else {
		json_decref(set);
		json_object_set_new(o, "advice", json_null());
	}
	for (unsigned i = 0; i < MS_EV_COUNT; i++)
		if (v->unknown[i])
			json_array_append_new(unknown, json_string(ms_evidence_info[i].key));
	json_object_set_new(o, "unknown", unknown);
	json_object_set_new(o, "evidence", evidence_json(&f->evidence));
	return o;
}

/* Options of 'lab run': none is broken. */
static void print_sets(const struct ms_lab_sets *sets)
{
	unsigned screen = ho_screen_columns(stdout), at = 0;

	for (unsigned i = 0; i < sets->n; i++) {
		unsigned bytes = (unsigned)(strlen(sets->key[i]) + strlen(sets->value[i])) + 8;

		if (at && screen && at + bytes > screen) {
			printf(" \\\n");
			at = 0;
		}
		at += (unsigned)printf("%s--set %s=%s", at ? " " : "    ", sets->key[i],
				       sets->value[i]);
	}
	if (at)
		printf("\n");
}

static void print_advice(const struct ms_lab_iface *f)
{
	const struct ms_verdict *v = &f->verdict;
	struct ms_lab_sets sets;
	char commands[512], text[sizeof(commands) + 32];

	printf("\nWhat to do\n");
	if (!v->advises) {
		printf("    No setting here promises more.\n");
		ho_print_words(stdout, v->cause->remedy, 4);
		return;
	}
	ms_lab_sets(f, &v->view.now, &v->advice, &sets);
	if (!f->host[0])
		sets.n = 0; /* a live box has commands only */
	ms_linux_commands(&f->evidence, f->name, v->view.aim, &v->view.now, &v->advice, commands,
			  sizeof(commands));
	print_sets(&sets);
	if (commands[0]) {
		snprintf(text, sizeof(text), "%s%s", f->host[0] ? "on a live box: " : "", commands);
		ho_print_list(stdout, text, "; ", 4);
	}
	printf("    expected: %.4g %s/s instead of %.4g, %+.0f %%\n", v->expects,
	       what_is(v->view.aim), v->view.rate, (v->expects / v->view.rate - 1) * 100);
}

static void print_unknown(const struct ms_lab_iface *f)
{
	unsigned n = 0;
	char key[64];

	for (unsigned i = 0; i < MS_EV_COUNT; i++) {
		if (!f->verdict.unknown[i])
			continue;
		if (!n++)
			printf("\nWhat could not be read, and what that hides\n");
		snprintf(key, sizeof(key), "    %s", ms_evidence_info[i].key);
		ho_print_words_behind(stdout, key, ms_evidence_info[i].hides, 27);
	}
}

static void print(const struct ms_lab_explained *all)
{
	const struct ms_lab_iface *f = &all->iface[all->main];
	const struct ms_verdict *v = &f->verdict;
	char text[MS_FINDING_TEXT + 128];

	snprintf(text, sizeof(text), "%s: %s (%s).", f->evidence.name, v->finding.sentence,
		 sure(v->finding.certainty));
	ho_print_words(stdout, text, 0);
	printf("\nThe arithmetic\n");
	ho_print_words(stdout, v->finding.arithmetic, 4);
	for (unsigned i = 0; i < v->n_also; i++) {
		snprintf(text, sizeof(text), "also seen: %s (%s)", v->also[i]->title,
			 sure(v->also_certainty[i]));
		ho_print_words(stdout, text, 4);
	}
	print_advice(f);
	print_unknown(f);
	for (unsigned i = 0; i < all->n; i++) {
		if (i == all->main)
			continue;
		if (i == (all->main == 0))
			printf("\nOther interfaces\n");
		snprintf(text, sizeof(text), "%s: %s", all->iface[i].evidence.name,
			 all->iface[i].verdict.finding.sentence);
		ho_print_words(stdout, text, 4);
	}
}

static int print_all(const struct args *a, const struct ms_lab_explained *all)
{
	json_t *o, *list;

	if (!a->lab.json) {
		print(all);
		return 0;
	}
	o = ho_json_begin("explain");
	list = json_array();
	json_object_set_new(o, "target", json_string(a->target));
	json_object_set_new(o, "interface", json_string(all->iface[all->main].evidence.name));
	for (unsigned i = 0; i < all->n; i++)
		json_array_append_new(list, iface_json(&all->iface[i]));
	json_object_set_new(o, "interfaces", list);
	return ho_json_print(stdout, o);
}

/* A live interface: looks twice. */
static int explain_live(struct args *a)
{
	const struct lx_sampler_config config = { .iface = &a->target, .n_ifaces = 1 };
	struct ms_lab_explained *all = calloc(1, sizeof(*all));
	struct lx_sampler *sampler = NULL;
	struct lx_sample from = { 0 }, to = { 0 };
	struct lx_delta delta = { 0 };
	const struct timespec pause = { .tv_sec = (time_t)(a->duration_ns / 1000000000u),
					.tv_nsec = (long)(a->duration_ns % 1000000000u) };
	int rc = all ? lx_sampler_open(&config, &sampler, a->err)
		     : ho_err_set(a->err, -ENOMEM, "out of memory");

	if (rc == 0)
		rc = lx_sampler_read(sampler, &from, a->err);
	if (rc == 0 && !from.iface[0].index)
		rc = ho_err_set(a->err, -EINVAL, "%s: no such interface; 'ip link' lists them",
				a->target);
	if (rc == 0) {
		nanosleep(&pause, NULL);
		rc = lx_sampler_read(sampler, &to, a->err);
	}
	if (rc == 0 && lx_delta_make(&from, &to, &delta) < 0)
		rc = ho_err_set(a->err, -ENOMEM, "out of memory");
	if (rc == 0) {
		struct ms_lab_iface *f = &all->iface[0];

		f->host = "";
		f->name = a->target;
		all->n = 1;
		ms_explain_live(&delta, 0, &f->evidence, &f->verdict);
		rc = print_all(a, all);
	}
	lx_delta_fini(&delta);
	lx_sample_fini(&from);
	lx_sample_fini(&to);
	lx_sampler_close(sampler);
	free(all);
	return cmd_status_of(rc);
}

static int explain_lab(struct args *a)
{
	struct ms_lab_explained *all = calloc(1, sizeof(*all));
	struct lab_result *r = malloc(sizeof(*r));
	struct lab_scenario *s = NULL;
	int rc = all && r ? 0 : ho_err_set(a->err, -ENOMEM, "out of memory for a run");

	a->lab.scenario = a->target + strlen("lab:");
	if (rc == 0)
		rc = cmd_lab_load(&a->lab, &s, a->err);
	if (rc == 0)
		rc = lab_run(s, NULL, r, a->err);
	if (rc == 0)
		rc = ms_lab_explain(s, r, a->iface, all, a->err);
	if (rc == 0)
		rc = print_all(a, all);
	lab_scenario_free(s);
	free(r);
	free(all);
	return cmd_status_of(rc);
}

int cmd_explain(int argc, char **argv, struct ho_err *err)
{
	struct args a = { .duration_ns = 3000000000u, .err = err };
	const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "INTERFACE\nlab:SCENARIO\n--list",
		.doc = "Says what limits throughput or latency, the arithmetic behind it, which "
		       "knob to turn and what to expect from it. It looks at nothing but what a "
		       "Linux box shows of itself.",
	};
	int status = cmd_parse(&argp, argc, argv, &a, err);

	if (status != CMD_DONE)
		return status;
	if (a.list && !a.target) {
		if (a.lab.json)
			return cmd_status_of(list_json());
		list();
		return CMD_DONE;
	}
	if (!a.target) {
		ho_err_set(err, -EINVAL,
			   "explain needs a target: an interface, lab:SCENARIO ('holdoff lab list' "
			   "names them), or --list");
		return CMD_USAGE;
	}
	return strncmp(a.target, "lab:", 4) ? explain_live(&a) : explain_lab(&a);
}
