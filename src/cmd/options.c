// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/units.h"

int cmd_status_of(int rc)
{
	switch (rc) {
	case 0:
	case -EINTR: /* the user's wish */
		return CMD_DONE;
	case -EINVAL:
	case -ERANGE:
	case -ENODEV:
	case -ENOENT:
	case -ENAMETOOLONG:
	case -EMSGSIZE:
	case -EISDIR:
	case -EEXIST:
		return CMD_USAGE;
	default:
		return CMD_FAILED;
	}
}

int cmd_parse(const struct argp *argp, int argc, char **argv, void *input, struct ho_err *err)
{
	return cmd_parse_sub(NULL, argp, argc, argv, input, err);
}

int cmd_parse_sub(const char *of, const struct argp *argp, int argc, char **argv, void *input,
		  struct ho_err *err)
{
	static char name[64];

	/* argp's own exit status for a wrong option, which is otherwise EX_USAGE; and the name that
	 * it calls us. */
	argp_err_exit_status = CMD_USAGE;
	snprintf(name, sizeof(name), "holdoff %s%s%s", of ? of : "", of ? " " : "", argv[0]);
	argv[0] = name;
	if (argp_parse(argp, argc, argv, 0, NULL, input) != 0) {
		if (!err->text[0])
			ho_err_set(err, -EINVAL, "the options of '%s' cannot be read", argv[0]);
		return CMD_USAGE;
	}
	return CMD_DONE;
}

enum {
	OPT_RX_RING = 0x200,
	OPT_TX_RING,
	OPT_BUFFERS,
	OPT_WAIT,
	OPT_FORCE,
	OPT_CPU,
	OPT_COUNTERS,
};

static const struct argp_option options_table[] = {
	{ NULL, 0, NULL, 0, "Running:", 90 },
	{ "count", 'c', "N", 0, "End after N packets", 90 },
	{ "duration", 'd', "TIME", 0, "End after this time: 10s, 500ms", 90 },
	{ "queues", 'q', "N", 0, "Queues of each port, a task for each", 90 },
	{ "cpu", OPT_CPU, "LIST", 0, "CPUs for the tasks in turn: 2,3 or 4-7 (default: spread)",
	  90 },
	{ "rx-ring", OPT_RX_RING, "N", 0, "Entries of each receive ring", 90 },
	{ "tx-ring", OPT_TX_RING, "N", 0, "Entries of each transmit ring", 90 },
	{ "buffers", OPT_BUFFERS, "N", 0, "Packet buffers in all (65536)", 90 },
	{ "wait", OPT_WAIT, "TIME", 0, "For a link or a peer to come up (5s)", 90 },
	{ "counters", OPT_COUNTERS, NULL, 0,
	  "Summary with the counters of each port and queue, and each stream", 90 },
	{ "force", OPT_FORCE, NULL, 0, "Use even the interface of the default route", 90 },
	{ "json", 'j', NULL, 0, "Print one JSON object at the end and nothing else", 90 },
	{ "quiet", 'Q', NULL, 0, "No row a second, only the summary", 90 },
	{ 0 },
};

int cmd_parse_count(const char *option, const char *arg, uint64_t *out, struct ho_err *err)
{
	int rc = ho_parse_count(arg, out, err);

	return rc < 0 && err ? ho_err_prefix(err, "--%s", option) : rc;
}

int cmd_parse_time(const char *option, const char *arg, uint64_t *out_ns, struct ho_err *err)
{
	int rc = ho_parse_time_ns(arg, out_ns, err);

	return rc < 0 && err ? ho_err_prefix(err, "--%s", option) : rc;
}

int cmd_parse_number(const char *option, const char *arg, unsigned min, unsigned max, unsigned *out,
		     struct ho_err *err)
{
	uint64_t value;
	int rc = cmd_parse_count(option, arg, &value, err);

	if (rc < 0)
		return rc;
	if (value < min || value > max)
		return ho_err_set(err, -ERANGE, "--%s %s: from %u to %u are possible", option, arg,
				  min, max);
	*out = (unsigned)value;
	return 0;
}

/* "0,2,4-7" */
static int parse_cpus(const char *arg, struct cmd_options *o, struct ho_err *err)
{
	const char *p = arg;

	o->n_cpu = 0;
	do {
		char *end;
		long first = strtol(p, &end, 10), last = first;

		if (end != p && *end == '-') {
			p = end + 1;
			last = strtol(p, &end, 10);
		}
		if (end == p || first < 0 || last < first || (*end && *end != ','))
			return ho_err_set(err, -EINVAL,
					  "--cpu %s: a list such as 2,3 or 4-7 is needed", arg);
		for (long cpu = first; cpu <= last; cpu++) {
			if (cpu > 1 << 20)
				return ho_err_set(err, -EINVAL, "--cpu %s: CPU %ld is not there",
						  arg, cpu);
			if (o->n_cpu == CMD_CPUS_MAX)
				return ho_err_set(err, -E2BIG, "--cpu %s: more than %d CPUs", arg,
						  CMD_CPUS_MAX);
			o->cpu[o->n_cpu++] = (int)cpu;
		}
		p = end + 1;
		if (!*end)
			break;
	} while (*p);
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct cmd_options *o = state->input;
	unsigned buffers = 0;
	int rc = 0;

	switch (key) {
	case 'c':
		rc = cmd_parse_count("count", arg, &o->count, o->err);
		if (rc == 0 && o->count == 0)
			rc = ho_err_set(o->err, -EINVAL,
					"--count 0 leaves nothing to do; leave it out to go on "
					"until interrupted");
		break;
	case 'd':
		rc = cmd_parse_time("duration", arg, &o->duration_ns, o->err);
		if (rc == 0 && o->duration_ns == 0)
			rc = ho_err_set(o->err, -EINVAL,
					"--duration %s leaves nothing to do; leave it out to go on "
					"until interrupted",
					arg);
		break;
	case 'q':
		rc = cmd_parse_number("queues", arg, 1, CMD_QUEUES_MAX, &o->queues, o->err);
		break;
	case OPT_CPU:
		rc = parse_cpus(arg, o, o->err);
		break;
	case OPT_RX_RING:
		rc = cmd_parse_number("rx-ring", arg, 1, 1u << 24, &o->rx_ring, o->err);
		break;
	case OPT_TX_RING:
		rc = cmd_parse_number("tx-ring", arg, 1, 1u << 24, &o->tx_ring, o->err);
		break;
	case OPT_BUFFERS:
		rc = cmd_parse_number("buffers", arg, 1, 1u << 24, &buffers, o->err);
		o->buffers = buffers;
		break;
	case OPT_WAIT:
		rc = cmd_parse_time("wait", arg, &o->wait_ns, o->err);
		break;
	case OPT_COUNTERS:
		o->counters = true;
		return 0;
	case OPT_FORCE:
		o->force = true;
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

const struct argp cmd_options_argp = { .options = options_table, .parser = parse_option };
