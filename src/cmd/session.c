// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/units.h"
#include "linux/caps.h"

#define ROW_NS    1000000000u
#define HEADER_AT 20u /* rows on a terminal from one header to the next */
/* A run of whole seconds began a little before its first row did. */
#define ROW_SLACK_NS 50000000u
/* How often the link is looked at while we wait for it, and whether anybody still reads us. */
#define LOOK_NS 10000000u

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
	static char name[64];

	/* argp's own exit status for a wrong option, which is otherwise EX_USAGE; and the name that
	 * it calls us. */
	argp_err_exit_status = CMD_USAGE;
	snprintf(name, sizeof(name), "holdoff %s", argv[0]);
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
	{ "force", OPT_FORCE, NULL, 0, "Use even the interface of the default route", 90 },
	{ "json", 'j', NULL, 0, "Print one JSON object at the end and nothing else", 90 },
	{ "quiet", 'Q', NULL, 0, "No row a second, only the summary", 90 },
	{ 0 },
};

static int parse_small(const char *name, const char *arg, uint64_t max, unsigned *out,
		       struct ho_err *err)
{
	uint64_t value;
	int rc = ho_parse_count(arg, &value, err);

	if (rc < 0)
		return ho_err_prefix(err, "--%s", name);
	if (value < 1 || value > max)
		return ho_err_set(err, -ERANGE, "--%s %s: from 1 to %llu are possible", name, arg,
				  (unsigned long long)max);
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
			if (cpu > 1 << 20 || !ho_cpu_usable((int)cpu))
				return ho_err_set(err, -EINVAL,
						  "--cpu %s: CPU %ld is not there or not allowed "
						  "for this process, which may use %u",
						  arg, cpu, ho_cpu_count());
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
	unsigned buffers;
	int rc = 0;

	switch (key) {
	case 'c':
		rc = ho_parse_count(arg, &o->count, o->err);
		if (rc == 0 && o->count == 0)
			rc = ho_err_set(o->err, -EINVAL, "a count of 0 leaves nothing to do");
		break;
	case 'd':
		rc = ho_parse_time_ns(arg, &o->duration_ns, o->err);
		if (rc == 0 && o->duration_ns == 0)
			rc = ho_err_set(o->err, -EINVAL, "a duration of 0 leaves nothing to do");
		break;
	case 'q':
		rc = parse_small("queues", arg, 128, &o->queues, o->err);
		break;
	case OPT_CPU:
		rc = parse_cpus(arg, o, o->err);
		break;
	case OPT_RX_RING:
		rc = parse_small("rx-ring", arg, 1u << 24, &o->rx_ring, o->err);
		break;
	case OPT_TX_RING:
		rc = parse_small("tx-ring", arg, 1u << 24, &o->tx_ring, o->err);
		break;
	case OPT_BUFFERS:
		rc = parse_small("buffers", arg, 1u << 24, &buffers, o->err);
		o->buffers = buffers;
		break;
	case OPT_WAIT:
		rc = ho_parse_time_ns(arg, &o->wait_ns, o->err);
		break;
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

/* Signals become an event; blocked before any thread is made, so in all of them. */
static int catch_signals(struct cmd_session *s, struct ho_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	/* A reader that has gone is an error of write, not the end of the process. */
	signal(SIGPIPE, SIG_IGN);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return ho_err_set(err, -errno, "cannot catch signals: %s", ho_strerror(errno));
	return rt_event_from_fd(s->rt, s->signal_fd, &s->signal_event, err);
}

int cmd_session_open(struct cmd_session *s, const struct cmd_options *options, struct ho_err *err)
{
	struct pk_arena_config arena = { .buffers = (uint32_t)options->buffers };
	int rc;

	*s = (struct cmd_session){ .options = options, .signal_fd = -1 };
	s->show_rows = !options->json && !options->quiet;
	rc = rt_os_create(&s->rt, err);
	if (rc == 0)
		rc = catch_signals(s, err);
	if (rc == 0)
		rc = rt_event_create(s->rt, &s->done_event, err);
	if (rc == 0)
		rc = pk_arena_create(&arena, &s->arena, err);
	ho_table_init(&s->table, stdout);
	return rc;
}

int cmd_session_cache(struct cmd_session *s, struct pk_cache **out, struct ho_err *err)
{
	struct pk_cache **grown = realloc(s->cache, (s->n_caches + 1) * sizeof(*grown));
	int rc;

	if (!grown)
		return ho_err_set(err, -ENOMEM, "out of memory for a buffer cache");
	s->cache = grown;
	rc = pk_cache_create(s->arena, out, err);
	if (rc == 0)
		s->cache[s->n_caches++] = *out;
	return rc;
}

int cmd_session_port(struct cmd_session *s, const char *spec, bool rx, bool tx, const char *filter,
		     struct port **out, struct ho_err *err)
{
	struct port_config config = {
		.rt = s->rt,
		.arena = s->arena,
		.queues = s->options->queues,
		.rx_ring = s->options->rx_ring,
		.tx_ring = s->options->tx_ring,
		.rx = rx,
		.tx = tx,
		.force = s->options->force,
		.filter = filter,
	};
	int rc = port_open(spec, &config, out, err);

	if (rc == 0)
		s->port[s->n_ports++] = *out;
	return rc;
}

int cmd_session_bind(struct cmd_session *s, struct port *port, bool rx, bool tx, struct ho_err *err)
{
	struct pk_cache *cache;
	int rc;

	if (rx && !port->n_rxq)
		return ho_err_set(err, -EINVAL, "%s: nothing can be received from it", port->name);
	if (tx && !port->n_txq)
		return ho_err_set(err, -EINVAL, "%s: nothing can be sent to it", port->name);
	for (unsigned i = 0; rx && i < port->n_rxq; i++) {
		rc = cmd_session_cache(s, &cache, err);
		if (rc < 0)
			return rc;
		port_bind_rx(port, i, cache);
	}
	for (unsigned i = 0; tx && i < port->n_txq; i++) {
		rc = cmd_session_cache(s, &cache, err);
		if (rc < 0)
			return rc;
		port_bind_tx(port, i, cache);
	}
	return 0;
}

/* Is there still somebody who reads standard output? */
static bool reader_gone(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLNVAL));
}

/* Takes a signal off its descriptor, if one came. */
static void look_at_signals(struct cmd_session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		/* The second one does not wait for anything to be drained. */
		if (s->interrupted)
			rt_stop(s->rt);
		s->interrupted = true;
	}
	if (reader_gone())
		s->interrupted = true;
}

static int wait_for_link(struct cmd_session *s, struct port *port, struct ho_err *err)
{
	uint64_t deadline = rt_now_ns(s->rt) + s->options->wait_ns;
	bool said = false;

	while (port->ops->link_up && !port->ops->link_up(port)) {
		char text[HO_UNIT_TEXT];
		uint64_t now = rt_now_ns(s->rt);

		if (now >= deadline)
			return ho_err_set(err, -ENOLINK,
					  "%s: no link or no peer within %s; --wait changes how "
					  "long it is waited for",
					  port->name,
					  ho_format_ns((double)s->options->wait_ns, text));
		if (!said && deadline - now + 500000000u < s->options->wait_ns)
			ho_note("%s: waiting for its link or peer", port->name);
		said = said || deadline - now + 500000000u < s->options->wait_ns;
		rt_wait(s->rt, &s->signal_event, 1, HO_MIN(now + LOOK_NS, deadline));
		look_at_signals(s);
		if (s->interrupted)
			return -EINTR;
	}
	return 0;
}

int cmd_session_start(struct cmd_session *s, struct ho_err *err)
{
	uint64_t keep = 0;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < s->n_ports; i++) {
		rc = port_start(s->port[i], err);
		keep |= s->port[i]->kind->caps_keep;
	}
	if (rc == 0)
		rc = lx_caps_keep(keep, err);
	for (unsigned i = 0; rc == 0 && i < s->n_ports; i++)
		rc = wait_for_link(s, s->port[i], err);
	return rc;
}

int cmd_session_spawn(struct cmd_session *s, const char *name, void (*fn)(void *arg), void *arg,
		      struct ho_err *err)
{
	struct rt_task_attr attr = { .name = name, .cpu = -1, .prio = RT_PRIO_NORMAL };
	unsigned i = s->cpus_given++;

	if (s->n_tasks == CMD_TASKS_MAX)
		return ho_err_set(err, -E2BIG, "more than %d tasks", CMD_TASKS_MAX);
	if (s->options->n_cpu)
		attr.cpu = s->options->cpu[i % s->options->n_cpu];
	else if (s->tasks_planned <= ho_cpu_count())
		attr.cpu = ho_cpu_nth(i);
	return rt_spawn(s->rt, &attr, fn, arg, &s->task[s->n_tasks], err) < 0 ? err->code
									      : (s->n_tasks++, 0);
}

void cmd_session_rows_begin(struct cmd_session *s)
{
	s->row_last = rt_now_ns(s->rt);
	s->row_ns = s->row_last + ROW_NS;
}

double cmd_session_row_seconds(const struct cmd_session *s)
{
	return (double)(rt_now_ns(s->rt) - s->row_last) / 1e9;
}

bool cmd_session_wait(struct cmd_session *s, uint64_t deadline_ns)
{
	struct rt_event *events[] = { s->signal_event, s->done_event };
	int rc = rt_wait(s->rt, events, 2, HO_MIN(s->row_ns, deadline_ns));

	look_at_signals(s);
	return rc == -ETIMEDOUT && rt_now_ns(s->rt) >= s->row_ns;
}

bool cmd_session_last_row(const struct cmd_session *s)
{
	return rt_now_ns(s->rt) + ROW_SLACK_NS >= s->row_ns;
}

void cmd_session_row(struct cmd_session *s)
{
	s->row_last = rt_now_ns(s->rt);
	s->row_ns += ROW_NS;
	if (s->show_rows) {
		if (s->rows == 0 || (s->rows % HEADER_AT == 0 && isatty(STDOUT_FILENO)))
			ho_table_header(&s->table);
		if (ho_table_row(&s->table) < 0)
			s->interrupted = true;
	}
	s->table.filled = 0;
	s->rows++;
}

void cmd_session_join(struct cmd_session *s)
{
	while (s->n_tasks)
		rt_join(s->rt, s->task[--s->n_tasks]);
	s->cpus_given = 0;
}

int cmd_session_stop(struct cmd_session *s, struct ho_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < s->n_ports; i++)
		port_stop(s->port[i]);
	for (unsigned i = 0; rc == 0 && i < s->n_ports; i++)
		rc = port_late_error(s->port[i], err);
	return rc;
}

void cmd_session_close(struct cmd_session *s, uint32_t *buffers_missing)
{
	while (s->n_ports)
		port_close(s->port[--s->n_ports]);
	if (buffers_missing)
		*buffers_missing = s->arena ? pk_arena_missing(s->arena) : 0;
	while (s->n_caches)
		pk_cache_destroy(s->cache[--s->n_caches]);
	free(s->cache);
	pk_arena_destroy(s->arena);
	if (s->rt) {
		rt_event_destroy(s->rt, s->done_event);
		rt_event_destroy(s->rt, s->signal_event);
	}
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	rt_destroy(s->rt);
	*s = (struct cmd_session){ .signal_fd = -1 };
}
