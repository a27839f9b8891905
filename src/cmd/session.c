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
	int rc;

	if (s->n_ports == CMD_PORTS_MAX)
		return ho_err_set(err, -E2BIG, "%s: more than %d ports", spec, CMD_PORTS_MAX);
	rc = port_open(spec, &config, out, err);
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
