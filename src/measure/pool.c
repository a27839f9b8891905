// SPDX-License-Identifier: BSD-2-Clause
/*
 * Workers and the caller talk over one socket each: the caller sends an index, the worker answers
 * with a reply and, if it went well, the result. A worker has one item at a time.
 */
#include "measure/pool.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"

#define IDLE UINT32_MAX

struct reply {
	uint32_t item;
	struct ho_err err; /* code 0 = a result follows */
};

struct worker {
	pid_t pid;
	int fd;        /* -1 once it is gone */
	uint32_t item; /* IDLE while it has none */
	size_t got;    /* bytes of the answer so far */
	char *answer;  /* struct reply and the result */
};

struct run {
	const struct ms_pool *pool;
	struct worker *worker;
	unsigned n;
	void **ready; /* results that wait for their turn */
	unsigned given, delivered, done;
	unsigned failed;   /* the lowest item that failed; items = none */
	struct ho_err why; /* of that */
	int signals;       /* signalfd */
	sigset_t old;
	struct pollfd *poll;
};

unsigned ms_pool_cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return (unsigned)HO_MIN(HO_MAX(n, 1), MS_POOL_JOBS_MAX);
}

/* --- a worker ------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

static void be_worker(const struct ms_pool *pool, int fd) __attribute__((noreturn));
static void be_worker(const struct ms_pool *pool, int fd)
{
	void *result = malloc(pool->result_bytes);
	uint32_t item;

	while (result && recv(fd, &item, sizeof(item), MSG_WAITALL) == (ssize_t)sizeof(item)) {
		struct reply reply = { .item = item };

		memset(result, 0, pool->result_bytes);
		reply.err.code = pool->work(pool->ctx, item, result, &reply.err);
		if (!write_all(fd, &reply, sizeof(reply)))
			break;
		if (!reply.err.code && !write_all(fd, result, pool->result_bytes))
			break;
	}
	/* No exit handlers and no flush: those, and what is buffered, are the caller's. */
	_exit(result ? 0 : 1);
}

static int start_worker(struct run *run, struct worker *w, struct ho_err *err)
{
	pid_t parent = getpid();
	int pair[2];

	w->answer = malloc(sizeof(struct reply) + run->pool->result_bytes);
	if (!w->answer)
		return ho_err_set(err, -ENOMEM, "out of memory for workers");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return ho_err_set(err, -errno, "no socket for a worker: %s", ho_strerror(errno));
	w->pid = fork();
	if (w->pid < 0) {
		int rc = ho_err_set(err, -errno, "no process for a worker: %s", ho_strerror(errno));

		close(pair[0]);
		close(pair[1]);
		w->pid = 0;
		return rc;
	}
	if (w->pid == 0) {
		/* SIGINT of a terminal reaches all its processes, but to stop is the caller's
		 * decision: the signals stay blocked here. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		for (struct worker *o = run->worker; o < w; o++)
			close(o->fd);
		close(run->signals);
		close(pair[0]);
		be_worker(run->pool, pair[1]);
	}
	close(pair[1]);
	w->fd = pair[0];
	w->item = IDLE;
	run->n++;
	return 0;
}

/* --- the caller ----------------------------------------------------------------------------- */

static void fail(struct run *run, unsigned item, const struct ho_err *why)
{
	if (item >= run->failed)
		return;
	run->failed = item;
	run->why = *why;
}

static void give(struct run *run, struct worker *w)
{
	uint32_t item = run->given;

	if (w->fd < 0 || w->item != IDLE || run->given >= HO_MIN(run->pool->items, run->failed))
		return;
	w->item = item;
	w->got = 0;
	run->given++;
	/* Should it be dead: reading from it says so, and names the item. */
	send(w->fd, &item, sizeof(item), MSG_NOSIGNAL);
}

static void lost(struct run *run, struct worker *w)
{
	uint32_t item = w->item != IDLE ? w->item : run->given;
	const struct ms_pool *pool = run->pool;
	struct ho_err why = { 0 };
	char name[256];
	int status = 0;

	close(w->fd);
	w->fd = -1;
	waitpid(w->pid, &status, 0);
	w->pid = 0;
	if (WIFSIGNALED(status))
		ho_err_set(&why, -ECHILD, "its process died of signal %d (%s)", WTERMSIG(status),
			   strsignal(WTERMSIG(status)));
	else
		ho_err_set(&why, -ECHILD, "its process ended with status %d", WEXITSTATUS(status));
	if (pool->name && item < pool->items)
		ho_err_prefix(&why, "%s", pool->name(pool->ctx, item, name, sizeof(name)));
	if (w->item != IDLE)
		fail(run, item, &why);
	w->item = IDLE;
	/* One that dies without an item is missed by nobody, unless it was the last. */
	for (unsigned i = 0; i < run->n; i++) {
		if (run->worker[i].fd >= 0)
			return;
	}
	if (item < pool->items)
		fail(run, item, &why);
}

static int deliver(struct run *run, struct ho_err *err)
{
	const struct ms_pool *pool = run->pool;

	while (run->delivered < pool->items && run->ready[run->delivered]) {
		unsigned i = run->delivered++;
		int rc = pool->result(pool->ctx, i, run->ready[i], err);

		free(run->ready[i]);
		run->ready[i] = NULL;
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int take(struct run *run, struct worker *w, struct ho_err *err)
{
	const struct ms_pool *pool = run->pool;
	struct reply *reply = (struct reply *)w->answer;
	size_t want = sizeof(*reply);
	ssize_t n;

	if (w->got >= sizeof(*reply) && !reply->err.code)
		want += pool->result_bytes;
	n = recv(w->fd, w->answer + w->got, want - w->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		lost(run, w);
		return 0;
	}
	w->got += (size_t)n;
	if (w->got < sizeof(*reply))
		return 0;
	if (reply->err.code) {
		fail(run, w->item, &reply->err);
		w->item = IDLE;
		return 0;
	}
	if (w->got < sizeof(*reply) + pool->result_bytes)
		return 0;
	run->ready[w->item] = malloc(pool->result_bytes);
	if (!run->ready[w->item])
		return ho_err_set(err, -ENOMEM, "out of memory for results");
	memcpy(run->ready[w->item], w->answer + sizeof(*reply), pool->result_bytes);
	w->item = IDLE;
	run->done++;
	if (pool->progress)
		pool->progress(pool->ctx, run->done, pool->items);
	return deliver(run, err);
}

static bool is_over(const struct run *run)
{
	if (run->done == run->pool->items)
		return true;
	if (run->failed == run->pool->items)
		return false;
	/* Only what comes before the failure still matters. */
	for (unsigned i = 0; i < run->n; i++) {
		const struct worker *w = &run->worker[i];

		if (w->fd >= 0 && w->item != IDLE && w->item < run->failed)
			return false;
	}
	return true;
}

static int work_through(struct run *run, struct ho_err *err)
{
	while (!is_over(run)) {
		for (unsigned i = 0; i < run->n; i++) {
			give(run, &run->worker[i]);
			run->poll[i] = (struct pollfd){ run->worker[i].fd, POLLIN, 0 };
		}
		run->poll[run->n] = (struct pollfd){ run->signals, POLLIN, 0 };
		if (poll(run->poll, run->n + 1, -1) < 0 && errno != EINTR)
			return ho_err_set(err, -errno, "poll: %s", ho_strerror(errno));
		if (run->poll[run->n].revents)
			return ho_err_set(err, -EINTR, "interrupted: %u of %u were done", run->done,
					  run->pool->items);
		for (unsigned i = 0; i < run->n; i++) {
			int rc = run->poll[i].revents ? take(run, &run->worker[i], err) : 0;

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* Both become readable from run->signals instead of ending the process. */
static int take_signals(struct run *run, struct ho_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (run->signals < 0)
		return ho_err_set(err, -errno, "signalfd: %s", ho_strerror(errno));
	sigprocmask(SIG_BLOCK, &set, &run->old);
	return 0;
}

static void give_signals_back(struct run *run)
{
	struct signalfd_siginfo info;

	/* Answered by -EINTR: they must not end the process now. */
	while (read(run->signals, &info, sizeof(info)) > 0)
		;
	sigprocmask(SIG_SETMASK, &run->old, NULL);
	close(run->signals);
}

static void end_workers(struct run *run, unsigned jobs)
{
	for (unsigned i = 0; i < run->n; i++) {
		struct worker *w = &run->worker[i];

		if (w->fd >= 0)
			close(w->fd);
		if (w->pid <= 0)
			continue;
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	for (unsigned i = 0; i < jobs; i++)
		free(run->worker[i].answer);
}

int ms_pool_run(const struct ms_pool *pool, struct ho_err *err)
{
	unsigned jobs = HO_MIN(HO_MAX(pool->jobs, 1u), (unsigned)MS_POOL_JOBS_MAX);
	struct run run = { .pool = pool, .failed = pool->items };
	int rc = 0;

	if (!pool->items)
		return 0;
	jobs = HO_MIN(jobs, pool->items);
	run.worker = calloc(jobs, sizeof(*run.worker));
	run.ready = calloc(pool->items, sizeof(*run.ready));
	run.poll = calloc(jobs + 1, sizeof(*run.poll));
	if (!run.worker || !run.ready || !run.poll) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for workers");
		goto free_memory;
	}
	rc = take_signals(&run, err);
	if (rc < 0)
		goto free_memory;
	for (unsigned i = 0; rc == 0 && i < jobs; i++)
		rc = start_worker(&run, &run.worker[i], err);
	if (rc == 0)
		rc = work_through(&run, err);
	if (rc == 0 && run.failed < pool->items)
		rc = ho_err_set(err, run.why.code, "%s", run.why.text);
	end_workers(&run, jobs);
	give_signals_back(&run);
free_memory:
	for (unsigned i = 0; run.ready && i < pool->items; i++)
		free(run.ready[i]);
	free(run.poll);
	free(run.ready);
	free(run.worker);
	return rc;
}
