/* SPDX-License-Identifier: BSD-2-Clause */
/* holdoff stat: what its files share. Each way of showing takes the same differences. */
#ifndef HOLDOFF_CMD_STAT_H
#define HOLDOFF_CMD_STAT_H

#include <poll.h>
#include <stdio.h>

#include "base/json.h"
#include "base/table.h"
#include "linux/sample.h"

/* What is shown a second. */
enum stat_view {
	STAT_ROWS,   /* a row for each interface */
	STAT_CPU,    /* a table of CPUs */
	STAT_QUEUES, /* a table of queues and vectors */
	STAT_DRIVER, /* the driver's counters that moved */
};

/* ---- Sums, for all views (stat_sums.c) ---- */

/* Packets lost in that direction, as far as the interface counts them; LX_FIELD_RX or _TX. */
uint64_t stat_drops(const struct rtnl_link_stats64 *link, unsigned direction);
uint64_t stat_errors(const struct rtnl_link_stats64 *link);

/* The mean of all CPUs online. */
void stat_mean_cpu(const struct lx_host *host, struct lx_cpu *out);
/* The CPU that idled least; NULL when there is none. */
const struct lx_cpu *stat_hot_cpu(const struct lx_host *host);

/* Counters of the driver that moved and are no queue's packets and bytes, the largest first: at
 * most `room` into out[]; returns how many there are. */
unsigned stat_moved(const struct lx_ifdata *iface, const struct lx_counter **out, unsigned room);

/*
 * What has no column, in words: named drops and errors, interrupts by queue, the driver's counters,
 * each a second. A list, with STAT_BETWEEN in between. first: the machine's drops too. Returns buf.
 */
#define STAT_NAMED_BYTES 8192
#define STAT_BETWEEN     ", "
const char *stat_named(const struct lx_delta *delta, const struct lx_ifdata *iface, bool first,
		       char *buf, size_t bytes);

static inline double stat_rate(const struct lx_delta *delta, uint64_t count)
{
	return delta->interval_ns ? 1e9 * (double)count / (double)delta->interval_ns : 0;
}

/* ---- Ways of showing ---- */

struct stat_text {
	enum stat_view view;
	FILE *out;
	bool tasks;     /* their context switches have columns */
	unsigned lines; /* since the last header */
	struct ho_table table;
	bool begun;
};

/* Prints one interval, with the header where it belongs. -EPIPE when the reader has gone. */
int stat_text_show(struct stat_text *text, const struct lx_delta *delta);

/* One interval as an object; NULL when out of memory. */
json_t *stat_json(const struct lx_delta *delta);

/* All of a sample as OpenMetrics text (prometheus/OpenMetrics 1.0), into a new string. NULL when
 * out of memory. */
char *stat_metrics(const struct lx_sample *sample, size_t *bytes);

/* A server for that text: HTTP/1.1, one answer a connection. */
struct stat_http;

/* Listens on "PORT" (loopback), "ADDR:PORT" or "[ADDR6]:PORT". -EINVAL; -EADDRINUSE and others. */
int stat_http_open(const char *where, struct stat_http **out, struct ho_err *err);
void stat_http_close(struct stat_http *http);
/* The address and port that it listens on. */
const char *stat_http_where(const struct stat_http *http);

/* Fills in what is to be polled, at most `room`; returns how many. */
unsigned stat_http_poll(struct stat_http *http, struct pollfd *fds, unsigned room);
/* After the poll, with the same array: serves. text is called for the body of an answer: a new
 * string, or NULL. Gives up connections that have been open for too long. */
void stat_http_serve(struct stat_http *http, const struct pollfd *fds, unsigned n, uint64_t now_ns,
		     char *(*text)(void *arg, size_t *bytes), void *arg);
/* How many fds that may need. */
#define STAT_HTTP_FDS 65

/* The full-screen view. */
struct stat_live;

/* Takes the terminal; it is given back at any exit. -ENOTTY. */
int stat_live_open(struct stat_live **out, struct ho_err *err);
void stat_live_close(struct stat_live *live);
/* One more interval. */
void stat_live_add(struct stat_live *live, const struct lx_delta *delta);
/* Keys and changes of size; false: the user wants to quit. Draws again when needed. */
bool stat_live_input(struct stat_live *live);

#endif
