// SPDX-License-Identifier: BSD-2-Clause
#include "measure/report_html.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "linux/machine.h"

/* report.html, as a string. Made by the build. */
static const char page[] =
#include "measure/report_page.h"
	;

#define MARK "@DATA@"

static int add_machine(json_t *result, const char *ifname)
{
	struct lx_machine machine;
	json_t *object = json_object();

	lx_machine_describe(ifname, &machine);
	for (unsigned i = 0; i < machine.n; i++) {
		/* What a file of the kernel's holds need not be UTF-8. */
		json_t *text = json_string(machine.fact[i].text);

		json_object_set_new(object, machine.fact[i].name, text ? text : json_string("?"));
	}
	return json_object_set_new(result, "machine", object) < 0 ? -ENOMEM : 0;
}

/* JSON inside of a script element: "</" would end the element, "<!--" would change its meaning. */
static int put(const char *text, size_t n, void *arg)
{
	FILE *out = arg;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == '<')
			fputs("\\u003c", out);
		else
			putc(text[i], out);
	}
	return ferror(out) ? -1 : 0;
}

static int write_page(FILE *out, const json_t *result)
{
	const char *mark = strstr(page, MARK);

	errno = 0;
	fwrite(page, 1, (size_t)(mark - page), out);
	if (json_dump_callback(result, put, out, JSON_COMPACT) < 0)
		return errno ? -errno : -EIO;
	fputs(mark + strlen(MARK), out);
	return fflush(out) == 0 && !ferror(out) ? 0 : errno ? -errno : -EIO;
}

int ms_report_html(const char *file, json_t *result, const char *ifname, struct ho_err *err)
{
	bool standard = !strcmp(file, "-");
	char *temporary = NULL;
	FILE *out = stdout;
	int rc = ifname ? add_machine(result, ifname) : 0;

	if (rc == 0 && !standard && asprintf(&temporary, "%s.%d.tmp", file, (int)getpid()) < 0) {
		temporary = NULL;
		rc = -ENOMEM;
	}
	if (rc == 0 && !standard) {
		out = fopen(temporary, "wxe");
		if (!out)
			rc = -errno;
	}
	if (rc == 0) {
		rc = write_page(out, result);
		if (!standard && fclose(out) != 0 && rc == 0)
			rc = -errno;
		if (!standard && rc == 0 && rename(temporary, file) < 0)
			rc = -errno;
		if (!standard && rc < 0)
			unlink(temporary);
	}
	free(temporary);
	return rc < 0 ? ho_err_set(err, rc, "--html %s: %s", file, ho_strerror(rc)) : 0;
}
