/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A result as one self-contained page: what a command prints with -j, the machine's description,
 * and the script that draws it (report.html). It needs no network and sends nothing anywhere.
 */
#ifndef HOLDOFF_MEASURE_REPORT_HTML_H
#define HOLDOFF_MEASURE_REPORT_HTML_H

#include <jansson.h>

#include "base/error.h"

/*
 * Writes the page to `file` ("-" = standard output), by way of a temporary file beside it, so that
 * there is a whole page or none. Adds "machine" to the object, which stays the caller's. ifname: of
 * the interface that was measured, NULL for the lab: then there is no machine to describe.
 */
int ms_report_html(const char *file, json_t *result, const char *ifname, struct ho_err *err);

#endif
