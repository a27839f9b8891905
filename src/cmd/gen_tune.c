// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/gen_tune.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "measure/tune_live.h"
#include "port/port.h"

#define LOAD_MS      500
#define SETTLE_NS    200000000u
#define LOAD_MOST_NS 60000000000u
#define COMMAND_MAX  3500

struct gen_tune {
	char ifname[LX_IF_BYTES];
	struct ms_live *live;
	struct ms_tune_live search;
	bool set; /* the best settings are in place */
};

/* " 'word'", for the shell. */
static size_t quote(char *buf, size_t at, const char *word)
{
	if (at + 4 * strlen(word) + 4 > COMMAND_MAX)
		return SIZE_MAX;
	buf[at++] = ' ';
	buf[at++] = '\'';
	for (; *word; word++) {
		if (*word == '\'') {
			memcpy(buf + at, "'\\'", 3);
			at += 3;
		}
		buf[at++] = *word;
	}
	buf[at++] = '\'';
	buf[at] = '\0';
	return at;
}

static int make_command(const struct gen_tune_config *c, char buf[COMMAND_MAX], struct ho_err *err)
{
	char load[64];
	size_t at;

	snprintf(load, sizeof(load), "--" GEN_LOAD_OPTION "=%dms", LOAD_MS);
	at = (size_t)snprintf(buf, COMMAND_MAX, "gen");
	at = quote(buf, at, load);
	/* Behind a lone "--" the options that are added would be ports. */
	for (unsigned i = 0; at != SIZE_MAX && i < c->n_args; i++)
		if (strcmp(c->arg[i], "--") != 0)
			at = quote(buf, at, c->arg[i]);
	return at != SIZE_MAX ? 0
			      : ho_err_set(err, -E2BIG,
					   "--tune: the command line is too long to be "
					   "run again");
}

static void progress(void *ctx, const struct ms_tune_live *s, unsigned cell, double score)
{
	const struct gen_tune *t = ctx;
	char name[256];

	ms_tune_live_name(s, cell, name, sizeof(name));
	fprintf(stderr, "tuning %s, run %u: %s: %.5g frames/s\n", t->ifname, s->runs,
		*name ? name : "as it is", score);
}

/* The result in words: "tx 1024: 1.2e+06 instead of 8.1e+05 frames/s, +48 %". */
static void sentence(const struct gen_tune *t, char *buf, size_t bytes)
{
	const struct ms_tune_live *s = &t->search;
	char name[256];

	ms_tune_live_name(s, s->best, name, sizeof(name));
	if (t->set)
		snprintf(buf, bytes, "%s set to %s for the run: %.4g frames/s instead of %.4g",
			 t->ifname, name, s->after.mean, s->before.mean);
	else if (s->best)
		snprintf(buf, bytes,
			 "%s left as it is: %s gave %.4g frames/s instead of %.4g, which is not "
			 "significant at 95 %%",
			 t->ifname, name, s->after.mean, s->before.mean);
	else
		snprintf(buf, bytes, "%s left as it is: nothing of %u settings was better",
			 t->ifname, s->cells);
}

static int search(struct gen_tune *t, struct ho_err *err)
{
	struct ms_tune_live *s = &t->search;
	char text[512];
	int rc = ms_tune_live(s, err);

	if (rc == 0 && s->best && s->significant) {
		rc = ms_tune_live_set(s, s->best, err);
		t->set = rc == 0;
	} else if (rc == 0) {
		/* What was tried last is not what was. */
		rc = ms_live_restore(t->live, NULL, err);
	}
	if (rc == 0)
		rc = ms_live_settle(t->live, err);
	if (rc < 0)
		return rc;
	sentence(t, text, sizeof(text));
	ho_note("%s (%u runs)", text, s->runs);
	return 0;
}

int gen_tune_begin(const struct gen_tune_config *config, struct gen_tune **out, struct ho_err *err)
{
	struct ms_live_config live = {
		.force = config->force,
		.workload = { .kind = MS_HOLDOFF,
			      .metric = config->receives ? "rx_pps" : "tx_pps",
			      .limit_ns = LOAD_MOST_NS },
		.settle_ns = SETTLE_NS,
		.stop_fd = config->stop_fd,
	};
	struct gen_tune *t = calloc(1, sizeof(*t));
	struct ho_err closing = { 0 };
	struct lx_restored left = { 0 };
	char command[COMMAND_MAX];
	int rc, closed;

	*out = NULL;
	if (!t)
		return ho_err_set(err, -ENOMEM, "out of memory for tuning");
	rc = port_interface(config->port, t->ifname, sizeof(t->ifname), err);
	if (rc < 0)
		ho_err_prefix(err, "--tune");
	if (rc == 0)
		rc = make_command(config, command, err);
	live.ifname = t->ifname;
	live.workload.command = command;
	if (rc == 0)
		rc = ms_live_open(&live, &t->live, &left, err);
	if (rc < 0)
		goto fail;
	if (left.changed)
		ho_note("%s: a run before this one was killed; put back: %s", t->ifname, left.text);
	t->search = (struct ms_tune_live){
		.live = t->live,
		.what = MS_FOR_PPS,
		.most = config->runs,
		.no_deferral = true,
		.progress = !config->quiet && isatty(STDERR_FILENO) ? progress : NULL,
		.ctx = t,
	};
	rc = ms_tune_live_knobs(&t->search, err);
	if (rc == -EOPNOTSUPP) {
		ho_note("--tune: nothing to tune: %s", err->text);
		*err = (struct ho_err){ 0 };
		rc = ms_live_close(t->live, err);
		free(t);
		return rc;
	}
	if (rc == 0)
		rc = search(t, err);
	if (rc < 0)
		goto fail;
	*out = t;
	return 0;
fail:
	closed = ms_live_close(t->live, &closing);
	if (closed < 0)
		rc = ho_err_set(err, closed, "%s", closing.text);
	free(t);
	return rc;
}

void gen_tune_print(const struct gen_tune *t, FILE *out)
{
	char text[512];

	if (!t)
		return;
	sentence(t, text, sizeof(text));
	fprintf(out, "%-10s %s\n", "tuned", text);
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

void gen_tune_json(const struct gen_tune *t, json_t *object)
{
	const struct ms_tune_live *s = &t->search;
	json_t *set = json_object();

	for (unsigned k = 0; t->set && k < s->knobs; k++) {
		unsigned at = s->cell[s->best].at[k];

		if (at != s->knob[k].now)
			json_object_set_new(set, s->knob[k].name,
					    json_integer((json_int_t)s->knob[k].value[at]));
	}
	json_object_set_new(object, "tuned",
			    json_pack("{s:s, s:o, s:i, s:i, s:o, s:o, s:b}", "interface", t->ifname,
				      "set", set, "runs", (int)s->runs, "settings", (int)s->cells,
				      "before_pps", number(s->before.mean), "after_pps",
				      number(s->after.mean), "significant", s->significant));
}

int gen_tune_end(struct gen_tune *t, struct ho_err *err)
{
	int rc;

	if (!t)
		return 0;
	rc = ms_live_close(t->live, err);
	if (rc == 0 && t->set)
		ho_note("%s: its settings are put back", t->ifname);
	free(t);
	return rc;
}
