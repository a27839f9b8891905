/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * holdoff forward: what its control planes (a file; the kernel) have in common.
 *
 *   read      the configuration, before anything is opened
 *   prepare   what needs privileges that are given up when packets begin to flow
 *   setup     the tables filled, when the ports are open and the router is made
 *   poll      about every 10 ms while packets flow
 *   teardown  the workers have ended
 */
#ifndef HOLDOFF_CMD_FORWARD_H
#define HOLDOFF_CMD_FORWARD_H

#include "cmd/session.h"
#include "route/router.h"

struct forward;

enum forward_shortcut { FORWARD_SHORTCUT_AUTO, FORWARD_SHORTCUT_YES, FORWARD_SHORTCUT_NO };

struct forward_control {
	bool own_stack; /* see struct ro_router_config */
	/* As there, with the struct forward; may be NULL. */
	unsigned (*to_host)(void *forward, unsigned worker, unsigned port, struct pk_slot *slots,
			    unsigned n);
	/* The number of workers is known, privileges are not given up yet. May be NULL. */
	int (*prepare)(struct forward *f, struct ho_err *err);
	int (*setup)(struct forward *f, struct ho_err *err);
	void (*poll)(struct forward *f, uint64_t now_ns);
	/* The workers are about to be told to end: nothing may pass by them from now on. May be
	 * NULL. */
	void (*halt)(struct forward *f);
	/* The workers have ended, the router is still there: 0, or what the control plane failed
	 * of. May be NULL. */
	int (*finish)(struct forward *f, struct ho_err *err);
	void (*teardown)(struct forward *f);
	/* Its own keys and lines of the summary, when the router is gone; may be NULL. */
	void (*json)(struct forward *f, json_t *object);
	void (*print)(struct forward *f, FILE *out);
};

/* Counters of all ports and workers, by direction. */
struct forward_side {
	uint64_t packets, errors, drops, bytes;
};

struct forward_sample {
	struct forward_side in, out;
};

struct forward {
	struct cmd_options common;
	const char *file; /* -f */
	enum forward_shortcut shortcut;
	const char *port_arg[RO_PORTS_MAX];
	unsigned port_args;

	struct cmd_session session;
	const struct forward_control *control;
	void *state; /* the control plane's */
	struct ro_port port[RO_PORTS_MAX];
	unsigned ports;
	uint32_t icmp_rate, icmp_burst; /* 0 = default */
	struct pk_cache **cache;        /* one for each worker */
	unsigned workers;
	struct ro_tables *tables;
	struct ro_router *router;
	struct ms_report report;
	struct ms_rates rates;      /* packets sent a second */
	struct forward_sample last; /* at the last row */
	uint64_t tsc_hz;
	/* Of the router, when its tasks have ended: it is gone when they are shown. */
	struct ro_counters counters;
	uint64_t shortcut_packets, shortcut_bytes; /* sent by it: port/shortcut.h */
	double full_turn_ticks;
	struct ho_err unbalanced;
	struct ho_err *err;
};

/* A router's port: opens `both`, or `receive` and `send` (either may be NULL). */
int forward_open(struct forward *f, const char *both, const char *receive, const char *send,
		 struct ho_err *err);

/* forward_own.c: from a file, with the router's own ARP and Neighbour Discovery. Opens the ports.
 */
int forward_own_open(struct forward *f, struct ho_err *err);

/* The number in a file of /proc/sys/net, -1 if there is none. */
int forward_setting(const char *path);

/* forward_kernel.c: the kernel's tables are followed. Opens the ports of the command line. */
int forward_kernel_open(struct forward *f, struct ho_err *err);

/* forward_report.c */
void forward_report_columns(struct forward *f);
/* One row of what happened since the last call. */
void forward_report_row(struct forward *f);
/* When the ports are stopped. */
void forward_report_finish(struct forward *f);
void forward_report_publish(struct forward *f);
/* 0, or -EBADE with the sentence. */
int forward_report_check(struct forward *f, struct ho_err *err);

#endif
