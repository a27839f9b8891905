/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command is: a file of its own in this folder and a row in cmd_table. */
#ifndef HOLDOFF_CMD_CMD_H
#define HOLDOFF_CMD_CMD_H

#include "base/error.h"

/* Exit statuses of every command. */
enum cmd_status {
	CMD_DONE = 0,      /* did what it should */
	CMD_USAGE = 1,     /* the command line or an input file is wrong */
	CMD_FAILED = 2,    /* the operation failed, or packets are unaccounted for */
	CMD_THRESHOLD = 3, /* a threshold that was asked for was missed */
};

struct cmd {
	const char *name;
	const char *help; /* one line */
	/* argv[0] is the command's name. Puts into err what the user must be told on failure. */
	int (*run)(int argc, char **argv, struct ho_err *err);
};

extern const struct cmd cmd_table[]; /* ends with a NULL name */

int cmd_explain(int argc, char **argv, struct ho_err *err);
int cmd_fib(int argc, char **argv, struct ho_err *err);
int cmd_forward(int argc, char **argv, struct ho_err *err);
int cmd_gen(int argc, char **argv, struct ho_err *err);
int cmd_lab(int argc, char **argv, struct ho_err *err);
int cmd_patch(int argc, char **argv, struct ho_err *err);
int cmd_ports(int argc, char **argv, struct ho_err *err);
int cmd_recv(int argc, char **argv, struct ho_err *err);
int cmd_restore(int argc, char **argv, struct ho_err *err);
int cmd_rr(int argc, char **argv, struct ho_err *err);
int cmd_stat(int argc, char **argv, struct ho_err *err);
int cmd_sweep(int argc, char **argv, struct ho_err *err);
int cmd_tune(int argc, char **argv, struct ho_err *err);

#endif
