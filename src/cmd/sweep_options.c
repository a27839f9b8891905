// SPDX-License-Identifier: BSD-2-Clause
/*
 * argp knows its options when it is compiled, but a target's axes are known when it is opened. So
 * every --NAME that is none of argp's is taken out, with its values, before argp sees the rest.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/options.h"
#include "cmd/sweep.h"
#include "measure/pool.h"

enum {
	OPT_SET = 0x300,
	OPT_AXIS,
	OPT_METRIC,
	OPT_CSV,
	OPT_COLOUR,
	OPT_SHARD,
	OPT_MERGE,
	OPT_ROUNDS,
	OPT_LESS,
	OPT_HTML,
};

static const struct argp_option sweep_table[] = {
	{ NULL, 0, NULL, 0, "The grid:", 1 },
	{ "--NAME VALUES", 0, NULL, OPTION_DOC, "An axis of the target", 1 },
	{ "set", OPT_SET, "PATH=VALUES", 0, "Anything else that can be set", 1 },
	{ "axis", OPT_AXIS, NULL, OPTION_ALIAS, NULL, 1 },
	{ NULL, 0, NULL, 0, "Running:", 2 },
	{ "jobs", 'J', "N", 0, "Processes [as many as CPUs]; results do not depend on it", 2 },
	{ "shard", OPT_SHARD, "I/N", 0, "Only every N-th point, beginning with the I-th", 2 },
	{ "merge", OPT_MERGE, NULL, 0,
	  "Join what shards printed with -j: arguments are files, - is standard input", 2 },
	{ "rounds", OPT_ROUNDS, "N", 0, "Of a live interface: measurements of each point [3]", 2 },
	{ NULL, 0, NULL, 0, "Results:", 4 },
	{ "metric", OPT_METRIC, "NAME", 0, "What the grid shows, and is the best by [pps]", 4 },
	{ "less", OPT_LESS, NULL, 0, "Less of the metric is better", 4 },
	{ "json", 'j', NULL, 0, "One JSON object instead of the grid", 4 },
	{ "csv", OPT_CSV, "FILE", 0,
	  "A line for each point to FILE; -: to standard output instead of the grid", 4 },
	{ "html", OPT_HTML, "FILE", 0,
	  "A page with the grid, curves and all data; -: to standard output", 4 },
	{ "color", OPT_COLOUR, "WHEN", 0,
	  "always, never, or auto: on a terminal unless NO_COLOR is set", 4 },
	{ "quiet", 'Q', NULL, 0, "No progress on standard error", 4 },
	{ 0 },
};

/* --- axes ----------------------------------------------------------------------------------- */

static int give(struct cmd_sweep_options *o, const char *name, const char *values, bool option)
{
	int rc = ms_axes_add(&o->given, name, values, o->err);

	if (rc == 0)
		o->by_option[o->given.n - 1] = option;
	return rc;
}

/* "PATH=VALUES" */
static int give_path(struct cmd_sweep_options *o, const char *option, char *arg)
{
	char *equals = strchr(arg, '=');

	if (!equals || equals == arg)
		return ho_err_set(o->err, -EINVAL, "--%s %s: PATH=VALUES is needed", option, arg);
	*equals = '\0';
	return give(o, arg, equals + 1, false);
}

/* The row of a long option "--NAME" or "--NAME=..."; NULL if argp has none. */
static const struct argp_option *known(const char *arg, size_t length)
{
	static const struct argp_option help[] = { { "help", '?', NULL, 0, NULL, 0 },
						   { "usage", 1, NULL, 0, NULL, 0 } };
	const struct argp_option *const tables[] = { sweep_table, cmd_workload_table };

	for (size_t i = 0; i < HO_ARRAY_LEN(help); i++)
		if (strlen(help[i].name) == length && !memcmp(help[i].name, arg, length))
			return &help[i];
	for (size_t t = 0; t < HO_ARRAY_LEN(tables); t++)
		for (const struct argp_option *o = tables[t]; o->name || o->doc; o++)
			if (o->name && !(o->flags & OPTION_DOC) && strlen(o->name) == length &&
			    !memcmp(o->name, arg, length))
				return o;
	return NULL;
}

/* "FROM..TO step N" need not be one word. Returns how many words of argv were taken. */
static int take_values(struct cmd_sweep_options *o, const char *name, const char *first, int argc,
		       char **argv)
{
	char range[128];

	if (!argc || strcmp(argv[0], "step"))
		return give(o, name, first, true) < 0 ? -1 : 0;
	if (argc == 1) {
		ho_err_set(o->err, -EINVAL, "--%s %s step: a number is needed after it", name,
			   first);
		return -1;
	}
	if (snprintf(range, sizeof(range), "%s step %s", first, argv[1]) >= (int)sizeof(range)) {
		ho_err_set(o->err, -EINVAL, "--%s: the range is too long", name);
		return -1;
	}
	return give(o, name, range, true) < 0 ? -1 : 2;
}

/* Takes the axes out of argv. Returns how many words are left, negative on failure. */
static int take_axes(struct cmd_sweep_options *o, int argc, char **argv)
{
	int left = 1;

	for (int i = 1; i < argc; i++) {
		const struct argp_option *option = NULL;
		char *word = argv[i], *values;
		size_t length;
		int taken;

		if (!strcmp(word, "--")) {
			while (i < argc)
				argv[left++] = argv[i++];
			break;
		}
		if (strncmp(word, "--", 2)) {
			argv[left++] = word;
			continue;
		}
		length = strcspn(word + 2, "=");
		option = known(word + 2, length);
		if (option) {
			argv[left++] = word;
			if ((option->arg || option->flags & OPTION_ALIAS) && !word[2 + length] &&
			    i + 1 < argc)
				argv[left++] = argv[++i];
			continue;
		}
		values = word[2 + length] ? word + 2 + length + 1 : argv[++i];
		word[2 + length] = '\0';
		if (!values || !strncmp(values, "--", 2)) {
			ho_err_set(o->err, -EINVAL,
				   "%s needs values: %s 1,2,5 or %s 10..50 step 10", word, word,
				   word);
			return -1;
		}
		taken = take_values(o, word + 2, values, argc - i - 1, argv + i + 1);
		if (taken < 0)
			return -1;
		i += taken;
	}
	argv[left] = NULL;
	return left;
}

/* --- the rest ------------------------------------------------------------------------------- */

static int parse_shard(struct cmd_sweep_options *o, const char *arg)
{
	unsigned number, of;
	int end = 0;

	if (sscanf(arg, "%u/%u%n", &number, &of, &end) != 2 || arg[end] || *arg == '-' || !number ||
	    number > of || of > MS_POINTS_MAX)
		return ho_err_set(o->err, -EINVAL, "--shard %s: from 1/N to N/N are possible", arg);
	o->shard = number - 1;
	o->shards = of;
	return 0;
}

static int parse_colour(struct cmd_sweep_options *o, const char *arg)
{
	static const char *const words[] = {
		[CMD_COLOUR_AUTO] = "auto",
		[CMD_COLOUR_ALWAYS] = "always",
		[CMD_COLOUR_NEVER] = "never",
	};

	for (unsigned i = 0; i < HO_ARRAY_LEN(words); i++) {
		if (!strcmp(arg, words[i])) {
			o->colour = (enum cmd_colour)i;
			return 0;
		}
	}
	return ho_err_set(o->err, -EINVAL, "--color %s: always, never or auto is possible", arg);
}

/* --- the load of a live interface ------------------------------------------------------------ */

static bool is_live_metric(const char *name)
{
	for (unsigned m = 0; m < ms_target_live.n_metrics; m++)
		if (!strcmp(ms_target_live.metric[m].name, name))
			return true;
	return false;
}

/* With a workload, --metric is one of the target's or says how to read the workload's number. */
static int finish_workload(struct cmd_sweep_options *o)
{
	bool reads, own = o->metric && o->workload.chosen && !is_live_metric(o->metric);
	int rc = cmd_workload_finish(&o->workload, own ? o->metric : NULL, &reads);

	if (own || (!o->metric && reads))
		o->metric = "value";
	o->target.live = o->workload.live;
	return rc;
}

static int check(const struct cmd_sweep_options *o)
{
	if (!o->n_arguments)
		return ho_err_set(o->err, -EINVAL, "%s",
				  o->merge ? "--merge needs files that 'holdoff sweep -j' printed"
					   : "sweep needs a target: lab:SCENARIO or an interface");
	if (o->merge && (o->given.n || o->shards > 1))
		return ho_err_set(o->err, -EINVAL,
				  "--merge runs nothing: no axes, values or shards go with it");
	if (!o->merge && o->n_arguments > 1)
		return ho_err_set(o->err, -EINVAL, "'%s': there is one target, which is %s",
				  o->argument[1], o->argument[0]);
	if ((o->json || (o->csv && !strcmp(o->csv, "-"))) && o->html && !strcmp(o->html, "-"))
		return ho_err_set(o->err, -EINVAL,
				  "--html - wants standard output for itself; give it a file");
	if (o->json && o->csv && !strcmp(o->csv, "-"))
		return ho_err_set(o->err, -EINVAL,
				  "-j and --csv - both want standard output; give --csv a file");
	return 0;
}

static error_t parse_sweep(int key, char *arg, struct argp_state *state)
{
	struct cmd_sweep_options *o = state->input;
	int rc = 0;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->workload;
		break;
	case ARGP_KEY_ARG:
		o->argument[o->n_arguments++] = arg;
		break;
	case ARGP_KEY_END:
		rc = check(o);
		if (rc == 0)
			rc = finish_workload(o);
		break;
	case OPT_SET:
	case OPT_AXIS:
		rc = give_path(o, key == OPT_SET ? "set" : "axis", arg);
		break;
	case OPT_METRIC:
		o->metric = arg;
		break;
	case OPT_HTML:
		o->html = arg;
		break;
	case OPT_LESS:
		o->less = true;
		break;
	case OPT_ROUNDS:
		rc = cmd_parse_number("rounds", arg, 1, MS_REPEATS_MAX, &o->target.repeats, o->err);
		o->workload.given = true;
		break;
	case OPT_CSV:
		o->csv = arg;
		break;
	case OPT_COLOUR:
		rc = parse_colour(o, arg);
		break;
	case OPT_SHARD:
		rc = parse_shard(o, arg);
		break;
	case OPT_MERGE:
		o->merge = true;
		break;
	case 'J':
		rc = cmd_parse_number("jobs", arg, 1, MS_POOL_JOBS_MAX, &o->jobs, o->err);
		break;
	case 'j':
		o->json = true;
		break;
	case 'Q':
		o->quiet = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

int cmd_sweep_parse(int argc, char **argv, struct cmd_sweep_options *o, struct ho_err *err)
{
	static const struct argp_child children[] = {
		{ &cmd_workload_argp, 0, "Load of a live interface:", 3 }, { 0 }
	};
	static const struct argp argp = {
		.options = sweep_table,
		.children = children,
		.parser = parse_sweep,
		.args_doc = "lab:SCENARIO\nIFACE\n--merge FILE...",
		.doc = "Runs a grid of all combinations of some values, and shows how good each is "
		       "and what limits it. Values are lists and ranges: --tx 256,512 "
		       "--rx-usecs 10..50 step 10, --tx 64..4096 step x2. Without axes, the "
		       "scenario's own are swept; 'holdoff lab show SCENARIO' tells them. Axes of "
		       "a "
		       "live interface are its settings by ethtool's names; they are put back "
		       "when the run ends, however it does.",
	};

	memset(o, 0, sizeof(*o));
	o->err = err;
	o->shards = 1;
	o->target.repeats = 3;
	o->workload = (struct cmd_workload)CMD_WORKLOAD_INIT;
	o->workload.err = err;
	o->argument = calloc((size_t)argc, sizeof(*o->argument));
	if (!o->argument) {
		ho_err_set(err, -ENOMEM, "out of memory for arguments");
		return CMD_USAGE;
	}
	argc = take_axes(o, argc, argv);
	return argc < 0 ? CMD_USAGE : cmd_parse(&argp, argc, argv, o, err);
}

void cmd_sweep_options_fini(struct cmd_sweep_options *o)
{
	ms_axes_fini(&o->given);
	free(o->argument);
	cmd_workload_fini(&o->workload);
}
