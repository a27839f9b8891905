// SPDX-License-Identifier: BSD-2-Clause
/* holdoff sweep: a grid of values, how good each point is, and what limits it. */
#include "cmd/sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cmd/session.h"
#include "measure/report_html.h"
#include "measure/sweep.h"

struct progress {
	bool shown;
	double began; /* s */
};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void progress(void *ctx, unsigned done, unsigned points)
{
	struct progress *p = ctx;
	double left = (seconds() - p->began) / done * (points - done);

	fprintf(stderr, "\r\033[K%u of %u points", done, points);
	if (done < points)
		fprintf(stderr, ", %.0f s left", left);
	p->shown = true;
}

static void end_progress(const struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
}

static bool colour(enum cmd_colour when)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (when != CMD_COLOUR_AUTO)
		return when == CMD_COLOUR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

/* Of the terminal; 0 when the output is none. */
static int width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

static int write_csv(const struct ms_sweep *s, const char *file, struct ho_err *err)
{
	bool standard = !strcmp(file, "-");
	FILE *out = standard ? stdout : fopen(file, "we");
	int rc;

	if (!out)
		return ho_err_set(err, -errno, "--csv %s: %s", file, ho_strerror(errno));
	rc = ms_sweep_csv(s, out);
	if (!standard && fclose(out) != 0 && rc == 0)
		rc = -errno;
	return rc < 0 ? ho_err_set(err, rc, "--csv %s: %s", file, ho_strerror(rc)) : 0;
}

static int write_html(const struct ms_sweep *s, const char *file, struct ho_err *err)
{
	json_t *object = ms_sweep_json(s);
	int rc = object ? ms_report_html(file, object, s->kind->live ? s->target : NULL, err)
			: ho_err_set(err, -ENOMEM, "out of memory for a page");

	json_decref(object);
	return rc;
}

static int publish(const struct ms_sweep *s, const struct cmd_sweep_options *o, struct ho_err *err)
{
	int rc = 0;

	if (o->csv)
		rc = write_csv(s, o->csv, err);
	if (rc == 0 && o->html)
		rc = write_html(s, o->html, err);
	if (rc < 0 || (o->csv && !strcmp(o->csv, "-")) || (o->html && !strcmp(o->html, "-")))
		return rc;
	if (o->json)
		rc = ho_json_print(stdout, ms_sweep_json(s));
	else
		rc = ms_sweep_table(s, stdout, colour(o->colour), width());
	return rc < 0 ? ho_err_set(err, rc, "standard output: %s", ho_strerror(rc)) : 0;
}

static int run(struct ms_sweep *s, const struct cmd_sweep_options *o, struct ho_err *err)
{
	struct progress p = { .began = seconds() };
	struct ms_target *target;
	int rc = ms_sweep_init(s, o->argument[0], &o->given, o->metric, &o->target, HOLDOFF_VERSION,
			       &target, err);

	if (rc == 0 && o->less)
		s->less = true;
	if (rc == 0 && s->kind->live && s->shards > 1)
		rc = ho_err_set(err, -EINVAL, "--shard: a live interface is measured in one run");
	if (rc == 0 && !s->kind->live && o->workload.given)
		rc = ho_err_set(err, -EINVAL,
				"%s runs in virtual time: a workload, rounds and times go with a "
				"live interface",
				s->target);

	for (unsigned i = 0; rc == 0 && i < o->given.n; i++) {
		if (o->by_option[i])
			rc = ms_sweep_axis_known(s->kind, target, o->given.axis[i].name, err);
	}
	if (rc == 0) {
		bool show = !o->quiet && isatty(STDERR_FILENO);

		s->shard = o->shard;
		s->shards = o->shards;
		rc = ms_sweep_run(s, target, o->jobs, show ? progress : NULL, &p, err);
		end_progress(&p);
	}
	if (target)
		s->kind->close(target);
	return rc;
}

static int merge(struct ms_sweep *s, const struct cmd_sweep_options *o, struct ho_err *err)
{
	int rc = ms_sweep_merge(s, o->argument, o->n_arguments, err);

	return rc == 0 && o->metric ? ms_sweep_metric(s, o->metric, err) : rc;
}

int cmd_sweep(int argc, char **argv, struct ho_err *err)
{
	struct cmd_sweep_options o;
	struct ms_sweep sweep = { 0 };
	int status = cmd_sweep_parse(argc, argv, &o, err), rc;

	if (status == CMD_DONE) {
		rc = o.merge ? merge(&sweep, &o, err) : run(&sweep, &o, err);
		if (rc == 0)
			rc = publish(&sweep, &o, err);
		/* Unlike traffic that is ended, an interrupted grid is no result. */
		status = rc == -EINTR ? CMD_FAILED : cmd_status_of(rc);
		ms_sweep_fini(&sweep);
	}
	cmd_sweep_options_fini(&o);
	return status;
}
