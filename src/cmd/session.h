/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every command that moves packets has in common: executor, buffers, ports, tasks on CPUs,
 * signals, a row a second, and taking all of it down in the right order.
 *
 *   cmd_session_open    executor, buffer arena, signals blocked and turned into an event; for
 *                       lab:SCENARIO the executor is virtual and the scenario is built
 *   cmd_session_port    a port
 *   cmd_session_bind    its queues bound to caches
 *   cmd_session_start   ports started, privileges given up, link awaited
 *   cmd_session_spawn   tasks
 *   cmd_session_wait    ... until the run is over
 *   cmd_session_drain   what was sent has left
 *   cmd_session_quiesce who else sends in a scenario has ended
 *   cmd_session_join    tasks ended
 *   cmd_session_stop    ports stopped: counters are final
 *   cmd_session_close   ports, caches, arena, executor
 */
#ifndef HOLDOFF_CMD_SESSION_H
#define HOLDOFF_CMD_SESSION_H

#include "base/table.h"
#include "cmd/options.h"
#include "lab/live.h"
#include "measure/run_report.h"
#include "port/port.h"

#define CMD_PORTS_MAX 128
#define CMD_TASKS_MAX 256

struct cmd_session {
	const struct cmd_options *options;
	struct rt *rt;
	struct lab_live *lab;   /* lab:SCENARIO, whose the ports are; NULL = the real clock */
	struct pk_arena *arena; /* NULL in the lab: its hosts have theirs */
	struct port *port[CMD_PORTS_MAX];
	unsigned n_ports;
	struct pk_cache **cache;
	unsigned n_caches;
	struct rt_task *task[CMD_TASKS_MAX];
	struct rt *task_rt[CMD_TASKS_MAX]; /* whose it is */
	unsigned n_tasks;
	unsigned tasks_planned; /* CPUs are given out when they suffice for so many */
	unsigned cpus_given;
	int signal_fd;
	struct rt_event *signal_event;
	struct rt_event *done_event;   /* for the tasks to signal when they end */
	char lab_name[64];             /* kept until after the close: the scenario, "" = none, */
	uint64_t lab_digest;           /* and its run's digest */
	struct rt_event *also;         /* ends cmd_session_wait as well; NULL = nothing */
	bool count_only;               /* port_config's, for the ports opened from now on */
	uint64_t caps_keep;            /* that the command still needs when all has started */
	bool links_may_be_down;        /* they are not waited for */
	bool interrupted;              /* by a signal, or because nobody reads our output or an
					* interface is gone */
	const struct port *gone;       /* the port whose interface it was */
	bool link_gone[CMD_PORTS_MAX]; /* said of port[i] */
	FILE *out;                     /* for rows and results: stdout, or stderr beside a capture;
					* still there when the session is closed */
	const char *stdout_owner;      /* what writes a capture to standard output, or NULL */
	struct ho_table table;         /* for the command's columns */
	unsigned rows;
	bool show_rows;    /* neither -j nor -q */
	uint64_t row_ns;   /* when the next one is due */
	uint64_t row_last; /* when the last one was */
};

/*
 * `spec` is the command's first port, "" if it has many on the real clock. If it begins with
 * "lab:", what the command does with it says which of the scenario's ports are its own
 * (lab/live.h). CMD_REAL: the command does not run there.
 */
enum cmd_lab_use { CMD_REAL, CMD_LAB_SENDS, CMD_LAB_RECEIVES };
int cmd_session_open(struct cmd_session *session, const struct cmd_options *options,
		     const char *spec, enum cmd_lab_use use, struct ho_err *err);

/* How long the command is to run: what was asked for, 0 = no limit. In the lab, if neither a time
 * nor a count was given, as long as the scenario says. */
uint64_t cmd_session_duration_ns(const struct cmd_session *session);

/* Opens a port for the directions wanted; neither = what it has. */
int cmd_session_port(struct cmd_session *session, const char *spec, bool rx, bool tx,
		     const char *filter, struct port **out, struct ho_err *err);

/* Standard output is for a capture, that of `owner`: its reader gets nothing else; results go to
 * standard error, rows nowhere. -EINVAL when it has an owner already. Ports see to it themselves.
 */
int cmd_session_give_stdout(struct cmd_session *session, const char *owner, struct ho_err *err);

/* Binds each queue of these directions to a cache of its own. -EINVAL if the port has none. */
int cmd_session_bind(struct cmd_session *session, struct port *port, bool rx, bool tx,
		     struct ho_err *err);

/* One more cache; it lives as long as the session. */
int cmd_session_cache(struct cmd_session *session, struct pk_cache **out, struct ho_err *err);

/* Starts the ports, gives privileges up, waits for their links. -EINTR when interrupted. */
int cmd_session_start(struct cmd_session *session, struct ho_err *err);

/* Starts a task of a port's queue (NULL: of several), on the port's executor, on the next CPU (of
 * --cpu, or spread; not pinned when there are fewer CPUs than planned tasks). */
int cmd_session_spawn(struct cmd_session *session, struct port *port, unsigned queue,
		      const char *name, void (*fn)(void *arg), void *arg, struct ho_err *err);

/* Where a task sends on a port's queue, and its cache. Counters are those of port->txq[queue]. */
struct port_txq *cmd_session_txq(struct cmd_session *session, struct port *port, unsigned queue);
struct pk_cache *cmd_session_tx_cache(struct cmd_session *session, struct port *port,
				      unsigned queue);

/* Rows begin now: the first one is due in a second. */
void cmd_session_rows_begin(struct cmd_session *session);

/*
 * Waits until a row is due (returns true: fill in the table's cells and call cmd_session_row), or
 * until a task has ended, deadline_ns, or an interruption (false).
 */
bool cmd_session_wait(struct cmd_session *session, uint64_t deadline_ns);

/* A pause without rows. False when the run is to end at once: at the second signal. */
bool cmd_session_pause(struct cmd_session *session, uint64_t ns);

/* After the last cmd_session_wait: did the run end when a row was as good as due? Then it is to be
 * filled in and printed like the others. */
bool cmd_session_last_row(const struct cmd_session *session);

/* Seconds since the last row, or since the rows began: for rates. */
double cmd_session_row_seconds(const struct cmd_session *session);

/* Prints the row that was filled in, with the header where it belongs. */
void cmd_session_row(struct cmd_session *session);

/* Waits up to timeout_ns until nothing is in flight on the port's transmit queues. */
int cmd_session_drain(struct cmd_session *session, struct port *port, uint64_t timeout_ns);

/* In the lab: ends the scenario's own senders and lets what they sent arrive. */
void cmd_session_quiesce(struct cmd_session *session);

/* The run is to end: no port waits any longer for whoever does not take what it sends. An
 * interruption does so by itself; for a duration that is over. */
void cmd_session_hurry(struct cmd_session *session);

/* Joins all tasks; they must have been asked to stop. */
void cmd_session_join(struct cmd_session *session);

/* Stops the ports: counters are final. Returns the first port's late error; in the lab -EPROTO if
 * an invariant is broken. */
int cmd_session_stop(struct cmd_session *session, struct ho_err *err);

/* In the lab, after the stop: adds to the report what was lost between two ports of it. */
void cmd_session_report(const struct cmd_session *session, struct ms_report *report);
/* And to the JSON object, even after the close: the scenario and the run's digest. */
void cmd_session_json(const struct cmd_session *session, json_t *object);

/* Takes everything down. *buffers_missing, if not NULL, is how many buffers did not come back. */
void cmd_session_close(struct cmd_session *session, uint32_t *buffers_missing);

#endif
