/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every command that moves packets has in common: executor, buffers, ports, tasks on CPUs,
 * signals, a row a second, and taking all of it down in the right order.
 *
 *   cmd_session_open    executor, buffer arena, signals blocked and turned into an event
 *   cmd_session_port    a port
 *   cmd_session_bind    its queues bound to caches
 *   cmd_session_start   ports started, privileges given up, link awaited
 *   cmd_session_spawn   tasks
 *   cmd_session_wait    ... until the run is over
 *   cmd_session_join    tasks ended
 *   cmd_session_stop    ports stopped: counters are final
 *   cmd_session_close   ports, caches, arena, executor
 */
#ifndef HOLDOFF_CMD_SESSION_H
#define HOLDOFF_CMD_SESSION_H

#include "base/table.h"
#include "cmd/options.h"
#include "measure/run_report.h"
#include "port/port.h"

#define CMD_PORTS_MAX 128
#define CMD_TASKS_MAX 256

struct cmd_session {
	const struct cmd_options *options;
	struct rt *rt;
	struct pk_arena *arena;
	struct port *port[CMD_PORTS_MAX];
	unsigned n_ports;
	struct pk_cache **cache;
	unsigned n_caches;
	struct rt_task *task[CMD_TASKS_MAX];
	unsigned n_tasks;
	unsigned tasks_planned; /* CPUs are given out when they suffice for so many */
	unsigned cpus_given;
	int signal_fd;
	struct rt_event *signal_event;
	struct rt_event *done_event; /* for the tasks to signal when they end */
	bool interrupted;            /* by a signal or because nobody reads our output */
	struct ho_table table;       /* for the command's columns */
	unsigned rows;
	bool show_rows;    /* neither -j nor -q */
	uint64_t row_ns;   /* when the next one is due */
	uint64_t row_last; /* when the last one was */
};

int cmd_session_open(struct cmd_session *session, const struct cmd_options *options,
		     struct ho_err *err);

/* Opens a port for the directions wanted; neither = what it has. */
int cmd_session_port(struct cmd_session *session, const char *spec, bool rx, bool tx,
		     const char *filter, struct port **out, struct ho_err *err);

/* Binds each queue of these directions to a cache of its own. -EINVAL if the port has none. */
int cmd_session_bind(struct cmd_session *session, struct port *port, bool rx, bool tx,
		     struct ho_err *err);

/* One more cache; it lives as long as the session. */
int cmd_session_cache(struct cmd_session *session, struct pk_cache **out, struct ho_err *err);

/* Starts the ports, gives privileges up, waits for their links. -EINTR when interrupted. */
int cmd_session_start(struct cmd_session *session, struct ho_err *err);

/* Starts a task on the next CPU (of --cpu, or spread; not pinned when there are fewer CPUs than
 * planned tasks). */
int cmd_session_spawn(struct cmd_session *session, const char *name, void (*fn)(void *arg),
		      void *arg, struct ho_err *err);

/* Rows begin now: the first one is due in a second. */
void cmd_session_rows_begin(struct cmd_session *session);

/*
 * Waits until a row is due (returns true: fill in the table's cells and call cmd_session_row), or
 * until a task has ended, deadline_ns, or an interruption (false).
 */
bool cmd_session_wait(struct cmd_session *session, uint64_t deadline_ns);

/* After the last cmd_session_wait: did the run end when a row was as good as due? Then it is to be
 * filled in and printed like the others. */
bool cmd_session_last_row(const struct cmd_session *session);

/* Seconds since the last row, or since the rows began: for rates. */
double cmd_session_row_seconds(const struct cmd_session *session);

/* Prints the row that was filled in, with the header where it belongs. */
void cmd_session_row(struct cmd_session *session);

/* Joins all tasks; they must have been asked to stop. */
void cmd_session_join(struct cmd_session *session);

/* Stops the ports: counters are final. Returns the first port's late error. */
int cmd_session_stop(struct cmd_session *session, struct ho_err *err);

/* Takes everything down. *buffers_missing, if not NULL, is how many buffers did not come back. */
void cmd_session_close(struct cmd_session *session, uint32_t *buffers_missing);

#endif
