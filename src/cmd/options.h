/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines: what the commands' option parsers share, and the options of all commands that move
 * packets. */
#ifndef HOLDOFF_CMD_OPTIONS_H
#define HOLDOFF_CMD_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/cmd.h"

#define CMD_CPUS_MAX   256
#define CMD_QUEUES_MAX 128

/* Options of all commands that move packets. */
struct cmd_options {
	unsigned queues; /* of each port; 0 = the kind's default */
	unsigned rx_ring, tx_ring;
	uint64_t buffers; /* of the arena; 0 = default */
	uint64_t count;   /* packets; 0 = no limit */
	uint64_t duration_ns;
	uint64_t wait_ns; /* for the link or the peer */
	int cpu[CMD_CPUS_MAX];
	unsigned n_cpu;
	bool force, json, quiet;
	bool counters; /* in the summary, too */
	struct ho_err *err; /* where the parser reports */
};

/* A child parser for argp; its input is a struct cmd_options. Give it one that is
 * CMD_OPTIONS_INIT. A wrong value makes argp_parse return an error number and sets err. */
extern const struct argp cmd_options_argp;
#define CMD_OPTIONS_INIT               \
	{                              \
		.wait_ns = 5000000000u \
	}

/* Runs the parser; options that are unknown to argp are reported by it, and the exit status is
 * CMD_USAGE. Returns CMD_DONE or CMD_USAGE; never returns for --help. */
int cmd_parse(const struct argp *argp, int argc, char **argv, void *input, struct ho_err *err);
/* The same for a command of the command `of`, say fib: argv[0] is "load". */
int cmd_parse_sub(const char *of, const struct argp *argp, int argc, char **argv, void *input,
		  struct ho_err *err);

/* The value of --`option`: a count, a time. -EINVAL or -ERANGE, with a sentence. */
int cmd_parse_count(const char *option, const char *arg, uint64_t *out, struct ho_err *err);
int cmd_parse_time(const char *option, const char *arg, uint64_t *out_ns, struct ho_err *err);

/* The value of --`option`: a whole number from min to max. -EINVAL or -ERANGE, with a sentence. */
int cmd_parse_number(const char *option, const char *arg, unsigned min, unsigned max, unsigned *out,
		     struct ho_err *err);

/* CMD_USAGE for an error of the user's, CMD_FAILED for others, CMD_DONE for 0 and -EINTR. */
int cmd_status_of(int rc);

#endif
