/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON output (jansson). Every object that a command prints begins with "schema" and "command";
 * keys are stable, in the order of insertion, integers raw, the unit in the key.
 */
#ifndef HOLDOFF_BASE_JSON_H
#define HOLDOFF_BASE_JSON_H

#include <jansson.h>
#include <stdio.h>

#include "base/hist.h"

#define HO_JSON_SCHEMA 1

/* {"schema": 1, "command": command}; NULL when out of memory. */
json_t *ho_json_begin(const char *command);

/* Prints the object on one line, flushes and frees it. 0, or -EPIPE and the like. */
int ho_json_print(FILE *out, json_t *object);

/* {"count": …, "min_ns": …, "mean_ns": …, "p50_ns": … "p9999_ns": …, "max_ns": …} */
json_t *ho_json_hist_ns(const struct ho_hist *hist);

#endif
