// SPDX-License-Identifier: BSD-2-Clause
/* holdoff stat: what the kernel shows of interfaces, a row a second. */
#include "cmd/stat.h"

#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "base/units.h"
#include "cmd/session.h"
#include "linux/iface.h"
#include "linux/soaker.h"

#define REFRESH_NS     10000000000u
#define INTERVAL_LEAST 10000000u
#define INTERVAL_MOST  3600000000000u
/* Scrapes that come closer together get the same answer. */
#define SCRAPE_FRESH_NS 250000000u

struct stat_options {
	const char *iface[LX_IFACES_MAX];
	unsigned n_ifaces;
	enum stat_view view;
	bool json, live, soak, all_tasks;
	const char *openmetrics, *root;
	int pid[LX_PIDS_MAX];
	unsigned n_pids;
	uint64_t interval_ns, count;
	struct ho_err *err;
};

enum {
	OPT_CPU = 0x300,
	OPT_QUEUES,
	OPT_DRIVER,
	OPT_LIVE,
	OPT_OPENMETRICS,
	OPT_SOAK,
	OPT_PID,
	OPT_ROOT
};

static const struct argp_option stat_table[] = {
	{ NULL, 0, NULL, 0, "What to show:", 1 },
	{ "cpu", OPT_CPU, NULL, 0, "A table of CPUs", 1 },
	{ "queues", OPT_QUEUES, NULL, 0, "A table of queues and their interrupts", 1 },
	{ "driver", OPT_DRIVER, NULL, 0, "The driver's own counters that moved", 1 },
	{ "live", OPT_LIVE, NULL, 0, "The whole screen, with sparklines; q quits", 1 },
	{ "json", 'j', NULL, 0, "A JSON object for each interval, on a line", 1 },
	{ "openmetrics", OPT_OPENMETRICS, "[ADDR:]PORT", 0,
	  "Serve all of it to Prometheus at /metrics (address: 127.0.0.1)", 1 },
	{ NULL, 0, NULL, 0, "How:", 2 },
	{ "interval", 'i', "TIME", 0, "Between two rows (1s)", 2 },
	{ "count", 'c', "N", 0, "End after N intervals", 2 },
	{ "soak", OPT_SOAK, NULL, 0,
	  "Measure idle time by using it up, beside the kernel's word for it", 2 },
	{ "pid", OPT_PID, "LIST|all", 0,
	  "Voluntary and involuntary context switches of these processes", 2 },
	{ "root", OPT_ROOT, "DIR", 0, "Read DIR/proc and DIR/sys instead of this machine's", 2 },
	{ 0 },
};

static int parse_pids(const char *arg, struct stat_options *o)
{
	const char *p = arg;

	if (!strcmp(arg, "all")) {
		o->all_tasks = true;
		return 0;
	}
	for (;;) {
		char *end;
		long pid = strtol(p, &end, 10);

		if (!isdigit((unsigned char)*p) || pid < 1 || pid > INT32_MAX ||
		    (*end && *end != ','))
			return ho_err_set(o->err, -EINVAL,
					  "--pid %s: numbers of processes such as 12,345, or all, "
					  "are needed",
					  arg);
		if (o->n_pids == LX_PIDS_MAX)
			return ho_err_set(o->err, -EINVAL, "--pid %s: more than %d processes", arg,
					  LX_PIDS_MAX);
		o->pid[o->n_pids++] = (int)pid;
		if (!*end)
			return 0;
		p = end + 1;
	}
}

static error_t parse_stat(int key, char *arg, struct argp_state *state)
{
	struct stat_options *o = state->input;
	int rc = 0;

	switch (key) {
	case ARGP_KEY_ARG:
		if (o->n_ifaces == LX_IFACES_MAX) {
			ho_err_set(o->err, -EINVAL, "more than %d interfaces", LX_IFACES_MAX);
			return EINVAL;
		}
		o->iface[o->n_ifaces++] = arg;
		return 0;
	case OPT_CPU:
		o->view = STAT_CPU;
		break;
	case OPT_QUEUES:
		o->view = STAT_QUEUES;
		break;
	case OPT_DRIVER:
		o->view = STAT_DRIVER;
		break;
	case OPT_LIVE:
		o->live = true;
		break;
	case 'j':
		o->json = true;
		break;
	case OPT_OPENMETRICS:
		o->openmetrics = arg;
		break;
	case 'i':
		rc = ho_parse_time_ns(arg, &o->interval_ns, o->err);
		if (rc == 0 && (o->interval_ns < INTERVAL_LEAST || o->interval_ns > INTERVAL_MOST))
			rc = ho_err_set(o->err, -ERANGE,
					"--interval %s: from 10ms to 3600s are possible", arg);
		break;
	case 'c':
		rc = ho_parse_count(arg, &o->count, o->err);
		if (rc == 0 && o->count == 0)
			rc = ho_err_set(o->err, -EINVAL, "a count of 0 leaves nothing to do");
		break;
	case OPT_SOAK:
		o->soak = true;
		break;
	case OPT_PID:
		rc = parse_pids(arg, o);
		break;
	case OPT_ROOT:
		o->root = arg;
		break;
	case ARGP_KEY_END:
		if (o->live + o->json + (o->openmetrics != NULL) + (o->view != STAT_ROWS) > 1)
			rc = ho_err_set(o->err, -EINVAL,
					"one of --cpu, --queues, --driver, --live, -j and "
					"--openmetrics at a time");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return rc < 0 ? EINVAL : 0;
}

struct stat {
	const struct stat_options *o;
	struct lx_soaker *soaker;
	struct lx_sampler *sampler;
	struct lx_sample sample[2];
	unsigned newest; /* of them */
	struct lx_delta delta;
	struct stat_text text;
	struct stat_live *live;
	struct stat_http *http;
	int signal_fd;
	uint64_t shown; /* intervals */
	bool end;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Without names: all but loopback. */
static int all_interfaces(struct stat_options *o, struct if_nameindex *list, struct ho_err *err)
{
	for (struct if_nameindex *i = list; i && i->if_index && o->n_ifaces < LX_IFACES_MAX; i++) {
		if (strcmp(i->if_name, "lo") != 0)
			o->iface[o->n_ifaces++] = i->if_name;
	}
	if (!o->n_ifaces)
		return ho_err_set(err, -ENODEV,
				  "there is no interface but loopback; 'holdoff stat "
				  "lo' shows that one");
	return 0;
}

/* Says what came and went, once. */
static void say_states(const struct stat *s)
{
	for (unsigned i = 0; i < s->delta.n_ifaces; i++) {
		const struct lx_ifdata *iface = &s->delta.iface[i];

		if (iface->vanished)
			ho_warn("%s has vanished; it is shown again when it comes back",
				iface->name);
		else if (iface->appeared)
			ho_note("%s has appeared", iface->name);
		else if (iface->replaced)
			ho_note("%s is another interface of the same name now", iface->name);
	}
}

/* Of the first reading: what this machine does not show, and interfaces that are not there. */
static int say_missing(const struct stat *s, struct ho_err *err)
{
	const struct lx_sample *first = &s->sample[s->newest];
	unsigned there = 0;
	const char *missing;

	for (unsigned i = 0; i < first->n_ifaces; i++) {
		if (first->iface[i].index)
			there++;
		else if (first->n_ifaces > 1)
			ho_warn("there is no interface '%s'; it is shown when it appears",
				first->iface[i].name);
	}
	for (unsigned i = 0; (missing = lx_sampler_missing(s->sampler, i)); i++)
		ho_verbose("%s", missing);
	if (there)
		return 0;
	return ho_err_set(err, -ENODEV, "no such interface '%s'; 'ip link' lists them",
			  s->o->iface[0]);
}

static int take_sample(struct stat *s, struct ho_err *err)
{
	s->newest ^= 1;
	return lx_sampler_read(s->sampler, &s->sample[s->newest], err);
}

static int show(struct stat *s)
{
	if (s->live) {
		stat_live_add(s->live, &s->delta);
		return 0;
	}
	if (s->o->json)
		return ho_json_print(stdout, stat_json(&s->delta));
	return stat_text_show(&s->text, &s->delta);
}

static int next_interval(struct stat *s, struct ho_err *err)
{
	int rc = take_sample(s, err);

	if (rc == 0 &&
	    lx_delta_make(&s->sample[s->newest ^ 1], &s->sample[s->newest], &s->delta) < 0)
		rc = ho_err_set(err, -ENOMEM, "out of memory for counters");
	if (rc < 0)
		return rc;
	/* On its screen it says so itself. */
	if (!s->live)
		say_states(s);
	s->shown++;
	/* Nobody reads any more: that is an end, not a failure. */
	if (show(s) < 0 || (s->o->count && s->shown >= s->o->count))
		s->end = true;
	return 0;
}

/* The body of an answer to a scrape. */
static char *scrape(void *arg, size_t *bytes)
{
	struct stat *s = arg;

	if (now_ns() - s->sample[s->newest].at_ns > SCRAPE_FRESH_NS && take_sample(s, NULL) < 0)
		return NULL;
	return stat_metrics(&s->sample[s->newest], bytes);
}

/* Waits for the next row, a signal, a key, a client; at most until `until`. */
static void wait_some(struct stat *s, uint64_t until)
{
	struct pollfd fds[STAT_HTTP_FDS + 2] = { { .fd = s->signal_fd, .events = POLLIN } };
	uint64_t now = now_ns(), left = until > now ? until - now : 0;
	struct timespec timeout = { (time_t)(left / 1000000000u), (long)(left % 1000000000u) };
	struct signalfd_siginfo info;
	unsigned n = 1, http = 0;

	if (s->live)
		fds[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	else if (!s->http)
		/* To hear when the reader goes. */
		fds[n++] = (struct pollfd){ .fd = STDOUT_FILENO };
	if (s->http)
		http = stat_http_poll(s->http, fds + n, HO_ARRAY_LEN(fds) - n);
	if (ppoll(fds, n + http, &timeout, NULL) < 0 && errno != EINTR)
		s->end = true;
	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
		s->end = true;
	/* Changes of size come as a key, after an interrupted poll. */
	if (s->live && (!stat_live_input(s->live) || (fds[1].revents & (POLLHUP | POLLERR))))
		s->end = true;
	if (!s->live && !s->http && (fds[1].revents & (POLLERR | POLLNVAL)))
		s->end = true;
	if (s->http)
		stat_http_serve(s->http, fds + n, http, now_ns(), scrape, s);
}

static int run(struct stat *s, struct ho_err *err)
{
	uint64_t due = s->sample[s->newest].at_ns + s->o->interval_ns;
	int rc = 0;

	while (!s->end && rc == 0) {
		uint64_t now = now_ns();

		if (s->http) {
			/* Samples are taken when they are asked for; slow clients are looked
			 * after meanwhile. */
			wait_some(s, now + 1000000000u);
			continue;
		}
		if (now < due) {
			wait_some(s, due);
			continue;
		}
		rc = next_interval(s, err);
		/* In step; intervals that could not be met are left out. */
		do
			due += s->o->interval_ns;
		while (due <= now_ns());
	}
	return rc;
}

/* Signals become readable; blocked before any thread is made. */
static int catch_signals(struct stat *s, struct ho_err *err)
{
	struct ho_stop_signals stop;
	int rc = ho_stop_signals_open(&stop, err);

	/* They stay blocked to the end: what follows a run is its report. */
	s->signal_fd = stop.fd;
	return rc;
}

static int stat_main(struct stat *s, struct ho_err *err)
{
	struct lx_sampler_config config = {
		.iface = s->o->iface,
		.n_ifaces = s->o->n_ifaces,
		.root = s->o->root,
		.pid = s->o->pid,
		.n_pids = s->o->n_pids,
		.all_tasks = s->o->all_tasks,
		.refresh_ns = REFRESH_NS,
	};
	int rc = catch_signals(s, err);

	if (rc == 0 && s->o->soak)
		rc = lx_soaker_start(&s->soaker, err);
	config.soaker = s->soaker;
	if (rc == 0)
		rc = lx_sampler_open(&config, &s->sampler, err);
	if (rc == 0)
		rc = take_sample(s, err);
	if (rc == 0)
		rc = say_missing(s, err);
	if (rc == 0 && s->o->openmetrics) {
		rc = stat_http_open(s->o->openmetrics, &s->http, err);
		if (rc == 0)
			ho_note("serving http://%s/metrics", stat_http_where(s->http));
	}
	if (rc == 0 && s->o->live)
		rc = stat_live_open(&s->live, err);
	if (rc == 0)
		rc = run(s, err);
	stat_live_close(s->live);
	stat_http_close(s->http);
	lx_sampler_close(s->sampler);
	lx_soaker_stop(s->soaker);
	lx_sample_fini(&s->sample[0]);
	lx_sample_fini(&s->sample[1]);
	lx_delta_fini(&s->delta);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	return rc;
}

int cmd_stat(int argc, char **argv, struct ho_err *err)
{
	static const struct argp argp = {
		.options = stat_table,
		.parser = parse_stat,
		.args_doc = "[IFACE...]",
		.doc = "Shows what the kernel counts of network interfaces (all but loopback, if "
		       "none is named), of its CPUs and of its network stack, a row a second.",
	};
	struct stat_options o = { .interval_ns = 1000000000u, .err = err };
	struct if_nameindex *list = NULL;
	struct stat *s;
	int status, rc = 0;

	status = cmd_parse(&argp, argc, argv, &o, err);
	if (status != CMD_DONE)
		return status;
	if (!o.n_ifaces) {
		list = if_nameindex();
		rc = all_interfaces(&o, list, err);
	}
	s = rc == 0 ? calloc(1, sizeof(*s)) : NULL;
	if (rc == 0 && !s)
		rc = ho_err_set(err, -ENOMEM, "out of memory");
	if (rc == 0) {
		s->o = &o;
		s->signal_fd = -1;
		s->text = (struct stat_text){ .view = o.view,
					      .out = stdout,
					      .tasks = o.all_tasks || o.n_pids };
		rc = stat_main(s, err);
	}
	free(s);
	if (list)
		if_freenameindex(list);
	return cmd_status_of(rc);
}
