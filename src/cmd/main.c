// SPDX-License-Identifier: BSD-2-Clause
/* holdoff COMMAND [TARGET] [options]: finds the command and prints what failed. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cmd/cmd.h"

static void print_usage(FILE *out)
{
	fprintf(out, "Usage: holdoff COMMAND [TARGET...] [options]\n\nCommands:\n");
	for (const struct cmd *c = cmd_table; c->name; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->help);
	fprintf(out,
		"\n'holdoff COMMAND --help' shows a command's options; 'man holdoff' the rest.\n");
}

int main(int argc, char **argv)
{
	struct ho_err err = { 0 };
	const struct cmd *c = cmd_table;
	int status;

	if (argc < 2) {
		print_usage(stderr);
		return CMD_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_usage(stdout);
		return CMD_DONE;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("holdoff %s\n", HOLDOFF_VERSION);
		return CMD_DONE;
	}
	while (c->name && strcmp(c->name, argv[1]))
		c++;
	if (!c->name) {
		fprintf(stderr, "holdoff: '%s' is not a command; 'holdoff --help' lists them\n",
			argv[1]);
		return CMD_USAGE;
	}
	status = c->run(argc - 1, argv + 1, &err);
	if (err.text[0])
		fprintf(stderr, "holdoff: %s\n", err.text);
	return status;
}
