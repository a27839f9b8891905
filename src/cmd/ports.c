// SPDX-License-Identifier: BSD-2-Clause
/* holdoff ports: what can stand where a command wants a port. */
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "port/port.h"
#include "route/drops.h"

static void print_kind(const struct port_kind *kind)
{
	printf("%s:%s\n    %s\n", kind->name, kind->target, kind->help);
	for (const struct port_opt *o = kind->opts; o && o->key; o++) {
		const char *values = o->type == PORT_OPT_CHOICE ? o->choices : "";

		printf("      %-12s %s%s%s%s\n", o->key, o->help, *values ? " [" : "", values,
		       *values ? "]" : "");
	}
}

static json_t *json_of_kind(const struct port_kind *kind)
{
	json_t *opts = json_array();

	for (const struct port_opt *o = kind->opts; o && o->key; o++) {
		json_t *opt = json_pack("{s:s, s:s}", "name", o->key, "help", o->help);

		if (o->type == PORT_OPT_CHOICE)
			json_object_set_new(opt, "choices", json_string(o->choices));
		json_array_append_new(opts, opt);
	}
	return json_pack("{s:s, s:s, s:s, s:o}", "kind", kind->name, "target", kind->target, "help",
			 kind->help, "options", opts);
}

/* What can become of a packet: of the ports, then of the router. */
static void each_drop(void (*fn)(void *arg, const char *name, const char *meaning), void *arg)
{
	for (unsigned i = 0; i < PORT_DROP_COUNT; i++)
		fn(arg, port_drop_name((enum port_drop)i), port_drop_meaning((enum port_drop)i));
	for (unsigned i = 0; i < RO_DROP_COUNT; i++)
		fn(arg, ro_drop_name((enum ro_drop)i), ro_drop_meaning((enum ro_drop)i));
}

static void print_drop(void *arg, const char *name, const char *meaning)
{
	printf("%-20s %s\n", name, meaning);
}

static void json_of_drop(void *arg, const char *name, const char *meaning)
{
	json_object_set_new(arg, name, json_string(meaning));
}

static int print_json(void)
{
	json_t *object = ho_json_begin("ports"), *kinds = json_array(), *drops = json_object();

	for (const struct port_kind *const *k = port_kinds; *k; k++)
		json_array_append_new(kinds, json_of_kind(*k));
	each_drop(json_of_drop, drops);
	json_object_set_new(object, "kinds", kinds);
	json_object_set_new(object, "drops", drops);
	return ho_json_print(stdout, object);
}

struct ports_options {
	bool drops, json;
};

enum { OPT_DROPS = 0x300 };

static const struct argp_option ports_table[] = {
	{ "drops", OPT_DROPS, NULL, 0, "The names of drops and what they mean, instead", 1 },
	{ "json", 'j', NULL, 0, "Both, as one JSON object", 1 },
	{ 0 },
};

static error_t parse_ports(int key, char *arg, struct argp_state *state)
{
	struct ports_options *o = state->input;

	switch (key) {
	case OPT_DROPS:
		o->drops = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_ports(int argc, char **argv, struct ho_err *err)
{
	static const struct argp argp = {
		.options = ports_table,
		.parser = parse_ports,
		.doc = "Lists the kinds of ports, written KIND:TARGET[,OPTION=VALUE...], and the "
		       "options of each. A comma in a target is written \\,.",
	};
	struct ports_options o = { 0 };

	if (cmd_parse(&argp, argc, argv, &o, err) != CMD_DONE)
		return CMD_USAGE;
	if (o.json) {
		print_json();
		return CMD_DONE;
	}
	if (o.drops) {
		each_drop(print_drop, NULL);
		return CMD_DONE;
	}
	for (const struct port_kind *const *k = port_kinds; *k; k++)
		print_kind(*k);
	return CMD_DONE;
}
