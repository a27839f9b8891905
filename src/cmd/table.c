// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/cmd.h"

#include <stddef.h>

const struct cmd cmd_table[] = {
	{ "explain", "say what limits, why, and which knob to turn", cmd_explain },
	{ "fib", "forwarding tables by themselves: load, look up, measure", cmd_fib },
	{ "forward", "route IPv4 and IPv6 between ports", cmd_forward },
	{ "gen", "send generated or recorded frames, and measure what becomes of them", cmd_gen },
	{ "lab", "run modelled machines in virtual time, beside published numbers", cmd_lab },
	{ "patch", "forward frames between two ports, both ways", cmd_patch },
	{ "ports", "list the kinds of ports and their options", cmd_ports },
	{ "recv", "receive: counts, loss, order, latency, capture", cmd_recv },
	{ "restore", "put back settings that a killed run had changed", cmd_restore },
	{ "rr", "requests and replies: transactions a second, latency", cmd_rr },
	{ "stat", "what the kernel counts of interfaces, queues, CPUs: a row a second", cmd_stat },
	{ "sweep", "run a grid of values: how good each point is, and what limits it", cmd_sweep },
	{ "tune", "find the best setting with few runs", cmd_tune },
	{ NULL, NULL, NULL },
};
