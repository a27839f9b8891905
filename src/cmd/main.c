// SPDX-License-Identifier: BSD-2-Clause
/* holdoff COMMAND [TARGET] [options]: finds the command and prints what failed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Started without one of the three, the next file that is opened would take its place, and what is
 * printed would go there. */
static void have_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* What was printed has arrived, or somebody must be told. A reader who has gone wanted no more. */
static int close_output(int status, struct ho_err *err)
{
	struct pollfd out = { .fd = STDOUT_FILENO };
	bool failed = ferror(stdout);

	errno = 0;
	if (fflush(stdout) == 0 && !failed)
		return status;
	failed = errno != EPIPE && !(poll(&out, 1, 0) > 0 && (out.revents & POLLERR));
	if (!failed || (status != CMD_DONE && status != CMD_THRESHOLD))
		return status;
	ho_err_set(err, errno ? -errno : -EIO, "not all results could be written: %s",
		   errno ? ho_strerror(errno) : "standard output took no more; is a disk full?");
	return CMD_FAILED;
}

/* Bytes of the character that a text begins with: one that can be shown, or 0. UTF-8's two-byte
 * forms of control characters cannot. */
static size_t shown_bytes(const unsigned char *text)
{
	size_t n = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;

	if (n == 1)
		return (*text >= ' ' && *text != 0x7f) || *text == '\n';
	if (*text > 0xf4 || (*text == 0xc2 && text[1] < 0xa0))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (text[i] >> 6 != 2)
			return 0;
	}
	return n;
}

/* A message may quote a file of any bytes: what a terminal would act on becomes \xNN. */
static void print_error(const char *text)
{
	fputs("holdoff: ", stderr);
	while (*text) {
		size_t n = shown_bytes((const unsigned char *)text);

		if (n)
			fprintf(stderr, "%.*s", (int)n, text);
		else
			fprintf(stderr, "\\x%02x", (unsigned char)*text);
		text += n ? n : 1;
	}
	fputc('\n', stderr);
}

int main(int argc, char **argv)
{
	struct ho_err err = { 0 };
	const struct cmd *c = cmd_table;
	int status;

	have_standard_files();
	if (argc < 2) {
		print_usage(stderr);
		return CMD_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_usage(stdout);
		return close_output(CMD_DONE, &err);
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
	status = close_output(c->run(argc - 1, argv + 1, &err), &err);
	if (err.text[0])
		print_error(err.text);
	return status;
}
