// SPDX-License-Identifier: BSD-2-Clause
#include "measure/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"

/* Of what a command prints, the last so many bytes are kept. */
#define OUTPUT_BYTES (256 * 1024)

struct ms_workload {
	enum ms_workload_kind kind;
	char *command, *metric;
	uint64_t limit_ns;
	regex_t regex;
	bool compiled;
	pid_t pid; /* of the running command, and of its group; 0 = none */
	int out;   /* its standard output and error */
	uint64_t began_ns;
	char *text; /* what it printed: OUTPUT_BYTES and a NUL */
	size_t n;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int ms_workload_create(const struct ms_workload_config *config, struct ms_workload **out,
		       struct ho_err *err)
{
	struct ms_workload *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return ho_err_set(err, -ENOMEM, "out of memory for a workload");
	w->kind = config->kind;
	w->limit_ns = config->limit_ns;
	w->out = -1;
	w->command = config->command ? strdup(config->command) : NULL;
	w->metric = config->metric ? strdup(config->metric) : NULL;
	w->text = malloc(OUTPUT_BYTES + 1);
	if ((config->command && !w->command) || (config->metric && !w->metric) || !w->text) {
		ms_workload_destroy(w);
		return ho_err_set(err, -ENOMEM, "out of memory for a workload");
	}
	if (w->kind == MS_RUN && w->metric) {
		rc = regcomp(&w->regex, w->metric, REG_EXTENDED | REG_NEWLINE);
		if (rc) {
			char why[128];

			regerror(rc, &w->regex, why, sizeof(why));
			ms_workload_destroy(w);
			return ho_err_set(err, -EINVAL,
					  "'%s' is no extended regular expression: %s",
					  config->metric, why);
		}
		w->compiled = true;
	}
	*out = w;
	return 0;
}

static void kill_group(struct ms_workload *w)
{
	if (!w->pid)
		return;
	kill(-w->pid, SIGTERM);
	/* What ignores that has a tenth of a second. */
	for (int i = 0; i < 10; i++) {
		const struct timespec pause = { .tv_nsec = 10000000 };

		if (waitpid(w->pid, NULL, WNOHANG) == w->pid) {
			w->pid = 0;
			return;
		}
		nanosleep(&pause, NULL);
	}
	kill(-w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	w->pid = 0;
}

void ms_workload_destroy(struct ms_workload *w)
{
	if (!w)
		return;
	kill_group(w);
	if (w->out >= 0)
		close(w->out);
	if (w->compiled)
		regfree(&w->regex);
	free(w->command);
	free(w->metric);
	free(w->text);
	free(w);
}

/* --- the child ----------------------------------------------------------------------------- */

static void __attribute__((noreturn)) child(const struct ms_workload *w, int out)
{
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* Signals that the parent takes through a descriptor are its own business. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (w->kind == MS_HOLDOFF) {
		/* The shell splits the words; "$0" is this program, wherever it is. */
		char self[512], line[4096];
		ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

		if (n <= 0)
			_exit(127);
		self[n] = 0;
		if (snprintf(line, sizeof(line), "exec \"$0\" %s -j", w->command) >=
		    (int)sizeof(line))
			_exit(127);
		execl("/bin/sh", "sh", "-c", line, self, (char *)NULL);
	} else {
		execl("/bin/sh", "sh", "-c", w->command, (char *)NULL);
	}
	_exit(127);
}

int ms_workload_start(struct ms_workload *w, struct ho_err *err)
{
	int pipes[2], in;

	w->n = 0;
	w->began_ns = now_ns();
	if (w->kind == MS_OBSERVE)
		return 0;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return ho_err_set(err, -errno, "a pipe: %s", ho_strerror(errno));
	in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	w->pid = fork();
	if (w->pid == 0) {
		if (in >= 0)
			dup2(in, STDIN_FILENO);
		child(w, pipes[1]);
	}
	if (in >= 0)
		close(in);
	close(pipes[1]);
	if (w->pid < 0) {
		int rc = -errno;

		w->pid = 0;
		close(pipes[0]);
		return ho_err_set(err, rc, "'%s' could not be started: %s", w->command,
				  ho_strerror(rc));
	}
	setpgid(w->pid, w->pid);
	if (w->out >= 0)
		close(w->out);
	w->out = pipes[0];
	fcntl(w->out, F_SETFL, O_NONBLOCK);
	return 0;
}

/* Keeps the last OUTPUT_BYTES. False at the end of the output. */
static bool read_output(struct ms_workload *w)
{
	char chunk[4096];

	for (;;) {
		ssize_t n = read(w->out, chunk, sizeof(chunk));
		size_t over;

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return false;
		over = w->n + (size_t)n > OUTPUT_BYTES ? w->n + (size_t)n - OUTPUT_BYTES : 0;
		if (over) {
			memmove(w->text, w->text + over, w->n - over);
			w->n -= over;
		}
		memcpy(w->text + w->n, chunk, (size_t)n);
		w->n += (size_t)n;
	}
}

/* The last line with something in it, for messages. */
static const char *last_line(struct ms_workload *w, char *buf, size_t bytes)
{
	size_t end = w->n, begin;

	while (end && (w->text[end - 1] == '\n' || w->text[end - 1] == '\r'))
		end--;
	for (begin = end; begin && w->text[begin - 1] != '\n';)
		begin--;
	snprintf(buf, bytes, "%.*s", (int)HO_MIN(end - begin, bytes - 1), w->text + begin);
	return buf;
}

/* --- the number ---------------------------------------------------------------------------- */

static double with_prefix(const char *text, const char *end)
{
	char *rest;
	double value = strtod(text, &rest);

	if (rest == text)
		return NAN;
	while (rest < end && *rest == ' ')
		rest++;
	if (rest < end) {
		switch (*rest) {
		case 'k':
		case 'K':
			return value * 1e3;
		case 'M':
			return value * 1e6;
		case 'G':
			return value * 1e9;
		default:
			break;
		}
	}
	return value;
}

static double matched(struct ms_workload *w)
{
	const char *at = w->text;
	regmatch_t m[2];
	double value = NAN;

	while (regexec(&w->regex, at, 2, m, at == w->text ? 0 : REG_NOTBOL) == 0) {
		const regmatch_t *g = m[1].rm_so >= 0 ? &m[1] : &m[0];
		double v = with_prefix(at + g->rm_so, at + g->rm_eo);

		if (!isnan(v))
			value = v;
		if (m[0].rm_eo == 0 && !*at)
			break;
		at += m[0].rm_eo > 0 ? m[0].rm_eo : 1;
	}
	return value;
}

/* "latency.p50_ns" in the last line that is an object. */
static double keyed(struct ms_workload *w)
{
	char path[128], *save = NULL;
	double value = NAN;
	size_t end = w->n;

	while (end && isnan(value)) {
		size_t begin;
		json_t *object, *at;

		while (end && w->text[end - 1] == '\n')
			end--;
		for (begin = end; begin && w->text[begin - 1] != '\n';)
			begin--;
		object = json_loadb(w->text + begin, end - begin, 0, NULL);
		at = object;
		snprintf(path, sizeof(path), "%s", w->metric);
		for (char *key = strtok_r(path, ".", &save); at && key;
		     key = strtok_r(NULL, ".", &save))
			at = json_object_get(at, key);
		if (json_is_number(at))
			value = json_number_value(at);
		json_decref(object);
		end = begin;
	}
	return value;
}

static int result(struct ms_workload *w, int status, double *number, struct ho_err *err)
{
	char line[200];

	if (WIFSIGNALED(status))
		return ho_err_set(err, -EIO, "'%s' was ended by signal %d; it printed last: %s",
				  w->command, WTERMSIG(status), last_line(w, line, sizeof(line)));
	if (WEXITSTATUS(status))
		return ho_err_set(err, -EIO, "'%s' ended with status %d; it printed last: %s",
				  w->command, WEXITSTATUS(status),
				  last_line(w, line, sizeof(line)));
	if (!w->metric)
		return 0;
	/* A NUL in the output ends it for the regular expression. */
	w->text[w->n] = 0;
	*number = w->kind == MS_RUN ? matched(w) : keyed(w);
	if (isnan(*number))
		return ho_err_set(err, -ENODATA,
				  "'%s' printed no number for '%s'; its last line: %s", w->command,
				  w->metric, last_line(w, line, sizeof(line)));
	return 0;
}

/* --- waiting ------------------------------------------------------------------------------- */

static int milliseconds(uint64_t deadline_ns)
{
	uint64_t now = now_ns();

	if (deadline_ns <= now)
		return 0;
	return (int)HO_MIN((deadline_ns - now + 999999) / 1000000, (uint64_t)60000);
}

int ms_workload_wait(struct ms_workload *w, uint64_t deadline_ns, int stop_fd, double *number,
		     struct ho_err *err)
{
	uint64_t limit = w->kind == MS_OBSERVE ? deadline_ns : w->began_ns + w->limit_ns;
	bool open = w->kind != MS_OBSERVE;
	int status;

	*number = NAN;
	while (open || w->kind == MS_OBSERVE) {
		struct pollfd fds[2] = { { .fd = stop_fd, .events = POLLIN },
					 { .fd = open ? w->out : -1, .events = POLLIN } };

		if (now_ns() >= limit)
			break;
		if (poll(fds, 2, milliseconds(limit)) < 0 && errno != EINTR)
			return ho_err_set(err, -errno, "poll: %s", ho_strerror(errno));
		if (fds[0].revents) {
			kill_group(w);
			return -EINTR;
		}
		if (fds[1].revents)
			open = read_output(w);
	}
	if (w->kind == MS_OBSERVE)
		return 0;
	if (open) {
		kill_group(w);
		return ho_err_set(err, -ETIMEDOUT, "'%s' did not end within %.0f s", w->command,
				  (double)w->limit_ns / 1e9);
	}
	/* Its output has ended; a command that closed it may still run. */
	for (;;) {
		const struct timespec pause = { .tv_nsec = 2000000 };
		pid_t ended = waitpid(w->pid, &status, WNOHANG);

		if (ended == w->pid)
			break;
		if (now_ns() >= limit) {
			kill_group(w);
			return ho_err_set(err, -ETIMEDOUT, "'%s' did not end within %.0f s",
					  w->command, (double)w->limit_ns / 1e9);
		}
		nanosleep(&pause, NULL);
	}
	w->pid = 0;
	return result(w, status, number, err);
}
