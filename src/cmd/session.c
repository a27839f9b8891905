// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/session.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "base/units.h"
#include "cmd/session_lab.h"
#include "linux/caps.h"

#define ROW_NS    1000000000u
#define HEADER_AT 20u /* rows on a terminal from one header to the next */
/* A run of whole seconds began a little before its first row did. */
#define ROW_SLACK_NS 50000000u
/* How often the link is looked at while we wait for it, and whether anybody still reads us. */
#define LOOK_NS 10000000u
/* In the lab: virtual time between two looks at signals. */
#define LAB_LOOK_NS 10000000u

/* --cpu: of this machine; a lab's CPUs are its hosts'. */
static int check_cpus(const struct cmd_options *o, struct ho_err *err)
{
	for (unsigned i = 0; i < o->n_cpu; i++)
		if (!ho_cpu_usable(o->cpu[i]))
			return ho_err_set(err, -EINVAL,
					  "--cpu: CPU %d is not there or not allowed for this "
					  "process, which may use %u",
					  o->cpu[i], ho_cpu_count());
	return 0;
}

/* Signals become readable; blocked before any thread is made, so in all of them. */
static int catch_signals(struct cmd_session *s, struct ho_err *err)
{
	struct ho_stop_signals stop;
	int rc = ho_stop_signals_open(&stop, err);

	/* They stay blocked to the end: what follows a run is its report. */
	s->signal_fd = stop.fd;
	return rc;
}

int cmd_session_open(struct cmd_session *s, const struct cmd_options *options, const char *spec,
		     enum cmd_lab_use use, struct ho_err *err)
{
	struct pk_arena_config arena = { .buffers = (uint32_t)options->buffers };
	int rc;

	*s = (struct cmd_session){ .options = options, .signal_fd = -1, .out = stdout };
	s->show_rows = !options->json && !options->quiet;
	ho_table_init(&s->table, stdout);
	if (cmd_lab_is(spec)) {
		if (use == CMD_REAL)
			return ho_err_set(err, -EINVAL,
					  "%s: of the commands that move packets only gen and recv "
					  "run in the lab",
					  spec);
		rc = catch_signals(s, err);
		return rc < 0 ? rc : cmd_lab_open(s, spec, use == CMD_LAB_SENDS, err);
	}
	rc = check_cpus(options, err);
	if (rc == 0)
		rc = rt_os_create(&s->rt, err);
	if (rc == 0)
		rc = catch_signals(s, err);
	if (rc == 0)
		rc = rt_event_from_fd(s->rt, s->signal_fd, &s->signal_event, err);
	if (rc == 0)
		rc = rt_event_create(s->rt, &s->done_event, err);
	if (rc == 0)
		rc = pk_arena_create(&arena, &s->arena, err);
	return rc;
}

uint64_t cmd_session_duration_ns(const struct cmd_session *s)
{
	if (s->lab && !s->options->duration_ns && !s->options->count)
		return lab_live_duration_ns(s->lab);
	return s->options->duration_ns;
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

int cmd_session_give_stdout(struct cmd_session *s, const char *owner, struct ho_err *err)
{
	if (s->stdout_owner)
		return ho_err_set(err, -EINVAL,
				  "%s: standard output has the capture of %s already; give one of "
				  "them a file",
				  owner, s->stdout_owner);
	s->stdout_owner = owner;
	s->out = stderr;
	s->show_rows = false;
	return 0;
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
		.count_only = s->count_only,
		.wait_ns = s->options->wait_ns,
	};
	int rc;

	if (s->n_ports == CMD_PORTS_MAX)
		return ho_err_set(err, -E2BIG, "%s: more than %d ports", spec, CMD_PORTS_MAX);
	if (s->lab)
		return cmd_lab_port(s, tx, out, err);
	if (cmd_lab_is(spec))
		return ho_err_set(err, -EINVAL,
				  "%s: a port on the real clock and one in the lab cannot meet",
				  spec);
	rc = port_open(spec, &config, out, err);
	if (rc < 0)
		return rc;
	s->port[s->n_ports++] = *out;
	return (*out)->on_stdout ? cmd_session_give_stdout(s, (*out)->name, err) : 0;
}

int cmd_session_bind(struct cmd_session *s, struct port *port, bool rx, bool tx, struct ho_err *err)
{
	struct pk_cache *cache;
	int rc;

	if (s->lab)
		return 0; /* the scenario did */
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

void cmd_session_hurry(struct cmd_session *s)
{
	for (unsigned i = 0; i < s->n_ports; i++)
		port_hurry(s->port[i]);
}

/* Takes a signal off its descriptor, if one came. */
static void look_at_signals(struct cmd_session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		/* The second one does not wait for anything to be drained. */
		if (s->interrupted && s->lab)
			lab_live_interrupt(s->lab);
		else if (s->interrupted)
			rt_stop(s->rt);
		s->interrupted = true;
	}
	if (reader_gone())
		s->interrupted = true;
	if (s->interrupted)
		cmd_session_hurry(s);
}

/* There is no link: what the port knows of it, or what to do. Does waiting help? */
static bool link_missing(const struct cmd_session *s, struct port *port, bool waited,
			 struct ho_err *err)
{
	char why[256] = "", text[HO_UNIT_TEXT];
	bool helps = !port->ops->link_missing || port->ops->link_missing(port, why, sizeof(why));

	if (!helps)
		ho_err_set(err, -ENOLINK, "%s: %s", port->name, why);
	else if (waited)
		ho_err_set(err, -ENOLINK,
			   "%s: %s within %s; --wait changes how long it is waited for", port->name,
			   why[0] ? why : "no link or no peer",
			   ho_format_ns((double)s->options->wait_ns, text));
	return helps;
}

static int wait_for_link(struct cmd_session *s, struct port *port, struct ho_err *err)
{
	uint64_t deadline = rt_now_ns(s->rt) + s->options->wait_ns;
	bool said = false;

	while (port->ops->link_up && !port->ops->link_up(port)) {
		uint64_t now = rt_now_ns(s->rt);

		if (!link_missing(s, port, now >= deadline, err) || now >= deadline)
			return -ENOLINK;
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
	uint64_t keep = s->caps_keep;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < s->n_ports; i++) {
		rc = port_start(s->port[i], err);
		keep |= s->port[i]->kind->caps_keep;
	}
	if (rc == 0)
		rc = lx_caps_keep(keep, err);
	for (unsigned i = 0; rc == 0 && !s->links_may_be_down && i < s->n_ports; i++)
		rc = wait_for_link(s, s->port[i], err);
	return rc;
}

int cmd_session_spawn(struct cmd_session *s, struct port *port, unsigned queue, const char *name,
		      void (*fn)(void *arg), void *arg, struct ho_err *err)
{
	struct rt_task_attr attr = { .name = name, .cpu = -1, .prio = RT_PRIO_NORMAL };
	unsigned i = s->cpus_given++;

	if (s->n_tasks == CMD_TASKS_MAX)
		return ho_err_set(err, -E2BIG, "more than %d tasks", CMD_TASKS_MAX);
	if (s->options->n_cpu)
		attr.cpu = s->options->cpu[i % s->options->n_cpu];
	else if (s->lab)
		attr.cpu = lab_live_cpu(s->lab, port, queue);
	else if (s->tasks_planned <= ho_cpu_count())
		attr.cpu = ho_cpu_nth(i);
	s->task_rt[s->n_tasks] = port ? port->rt : s->rt;
	return rt_spawn(s->task_rt[s->n_tasks], &attr, fn, arg, &s->task[s->n_tasks], err) < 0
		       ? err->code
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

/* An interface that is gone does not come back: its name and number may, but not to our sockets. */
static void look_at_interfaces(struct cmd_session *s)
{
	char name[IF_NAMESIZE];

	for (unsigned i = 0; !s->gone && i < s->n_ports; i++) {
		if (s->port[i]->ifindex && !if_indextoname(s->port[i]->ifindex, name) &&
		    errno == ENXIO)
			s->gone = s->port[i];
	}
	if (!s->gone)
		return;
	s->interrupted = true;
	cmd_session_hurry(s);
}

/* Why nothing comes or goes any more. */
static void look_at_links(struct cmd_session *s)
{
	const bool looks = !s->links_may_be_down && !s->gone && !s->lab;

	for (unsigned i = 0; looks && i < s->n_ports; i++) {
		struct port *port = s->port[i];
		bool gone = port->ops->link_up && !port->ops->link_up(port);

		if (gone != s->link_gone[i])
			ho_note("%s: its link or peer is %s", port->name, gone ? "gone" : "back");
		s->link_gone[i] = gone;
	}
}

bool cmd_session_pause(struct cmd_session *s, uint64_t ns)
{
	const uint64_t until = rt_now_ns(s->rt) + ns;
	/* In the lab no event tells of signals. */
	int rc = s->lab ? rt_sleep_until(s->rt, until) : rt_wait(s->rt, &s->signal_event, 1, until);

	look_at_signals(s);
	return rc != -EINTR;
}

bool cmd_session_wait(struct cmd_session *s, uint64_t deadline_ns)
{
	struct rt_event *events[] = { s->done_event, s->signal_event, s->also };
	uint64_t until = HO_MIN(s->row_ns, deadline_ns);
	int rc;

	do {
		uint64_t look = s->lab ? rt_now_ns(s->rt) + LAB_LOOK_NS : RT_FOREVER;

		rc = rt_wait(s->rt, events, s->lab ? 1 : s->also ? 3 : 2, HO_MIN(until, look));
		look_at_signals(s);
	} while (rc == -ETIMEDOUT && !s->interrupted && rt_now_ns(s->rt) < until);
	if (rc != -ETIMEDOUT || rt_now_ns(s->rt) < s->row_ns)
		return false;
	look_at_interfaces(s);
	look_at_links(s);
	return true;
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
	while (s->n_tasks) {
		s->n_tasks--;
		rt_join(s->task_rt[s->n_tasks], s->task[s->n_tasks]);
	}
	s->cpus_given = 0;
}

struct port_txq *cmd_session_txq(struct cmd_session *s, struct port *port, unsigned queue)
{
	return s->lab ? lab_live_txq(s->lab, queue) : port->txq[queue];
}

struct pk_cache *cmd_session_tx_cache(struct cmd_session *s, struct port *port, unsigned queue)
{
	return s->lab ? lab_live_tx_cache(s->lab, queue) : port->txq[queue]->cache;
}

int cmd_session_drain(struct cmd_session *s, struct port *port, uint64_t timeout_ns)
{
	return s->lab ? lab_live_drain(s->lab, timeout_ns) : port_drain(port, timeout_ns);
}

void cmd_session_quiesce(struct cmd_session *s)
{
	if (s->lab)
		lab_live_quiesce(s->lab);
}

void cmd_session_report(const struct cmd_session *s, struct ms_report *report)
{
	if (s->lab)
		lab_live_losses(s->lab, report->drops);
}

void cmd_session_json(const struct cmd_session *s, json_t *object)
{
	char text[24];

	if (!s->lab_name[0])
		return;
	json_object_set_new(object, "scenario", json_string(s->lab_name));
	snprintf(text, sizeof(text), "%016llx", (unsigned long long)s->lab_digest);
	json_object_set_new(object, "digest", json_string(text));
}

int cmd_session_stop(struct cmd_session *s, struct ho_err *err)
{
	int rc = 0;

	if (s->lab) {
		lab_live_stop(s->lab);
		snprintf(s->lab_name, sizeof(s->lab_name), "%s", lab_live_name(s->lab));
		s->lab_digest = lab_live_digest(s->lab);
		return lab_live_check(s->lab, err);
	}
	for (unsigned i = 0; i < s->n_ports; i++)
		port_stop(s->port[i]);
	for (unsigned i = 0; rc == 0 && i < s->n_ports; i++)
		rc = port_late_error(s->port[i], err);
	if (rc == 0 && s->gone)
		rc = ho_err_set(err, -ENETDOWN, "%s: the interface was removed", s->gone->name);
	return rc;
}

void cmd_session_close(struct cmd_session *s, uint32_t *buffers_missing)
{
	char name[sizeof(s->lab_name)];

	memcpy(name, s->lab_name, sizeof(name));
	/* After a start that failed half way, too: what they count may be by all of them. */
	for (unsigned i = 0; i < s->n_ports; i++)
		port_stop(s->port[i]);
	while (s->n_ports)
		port_close(s->port[--s->n_ports]);
	if (buffers_missing && s->arena)
		*buffers_missing = pk_arena_missing(s->arena);
	if (s->lab) {
		rt_event_destroy(s->rt, s->done_event);
		s->rt = NULL;
	}
	lab_live_free(s->lab);
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
	*s = (struct cmd_session){ .signal_fd = -1, .lab_digest = s->lab_digest, .out = s->out };
	memcpy(s->lab_name, name, sizeof(name));
}
