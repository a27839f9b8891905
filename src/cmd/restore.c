// SPDX-License-Identifier: BSD-2-Clause
/* holdoff restore: puts back the settings that a run which died had changed. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/session.h"
#include "linux/journal.h"

struct options {
	const char *ifname; /* NULL = all */
	bool json, quiet;
	struct ho_err *err;
};

static const struct argp_option arguments[] = {
	{ "json", 'j', NULL, 0, "one JSON object on standard output", 0 },
	{ "quiet", 'q', NULL, 0, "say nothing but errors", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'j':
		o->json = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->ifname) {
			ho_err_set(o->err, -EINVAL, "'%s': one interface, or none for all", arg);
			return EINVAL;
		}
		o->ifname = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = arguments,
	.parser = parse,
	.args_doc = "[IFACE]",
	.doc = "Puts back the settings of network interfaces that 'holdoff sweep' or 'holdoff "
	       "tune' "
	       "had changed when it was killed. Nothing to do is no error.",
};

struct report {
	const struct options *options;
	json_t *list;
};

static void restored(void *arg, const struct lx_restored *r)
{
	struct report *report = arg;

	if (report->list)
		json_array_append_new(report->list,
				      json_pack("{s:s, s:i, s:i, s:b, s:s}", "interface", r->ifname,
						"changed", (int)r->changed, "failed",
						(int)r->failed, "obsolete", r->obsolete, "text",
						r->text));
	else if (report->options->quiet)
		return;
	else if (r->obsolete)
		printf("journal removed: %s\n", *r->text ? r->text : "nothing had been changed");
	else if (!r->failed)
		printf("%s: %s\n", r->ifname, r->changed ? r->text : "everything is as it was");
}

int cmd_restore(int argc, char **argv, struct ho_err *err)
{
	struct options o = { .err = err };
	struct report report = { .options = &o };
	int status = cmd_parse(&argp, argc, argv, &o, err), rc;

	if (status != CMD_DONE)
		return status;
	if (o.json)
		report.list = json_array();
	rc = lx_journal_recover(o.ifname, NULL, restored, &report, err);
	if (report.list) {
		int printed = ho_json_print(
			stdout, json_pack("{s:i, s:s, s:i, s:o}", "schema", 1, "command", "restore",
					  "restored", rc < 0 ? 0 : rc, "journals", report.list));

		if (rc >= 0 && printed < 0)
			rc = ho_err_set(err, printed, "standard output: %s", ho_strerror(printed));
	} else if (rc == 0 && !o.quiet) {
		printf("nothing to restore%s%s\n", o.ifname ? " on " : "",
		       o.ifname ? o.ifname : "");
	}
	return rc < 0 ? cmd_status_of(rc) : CMD_DONE;
}
