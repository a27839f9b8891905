/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the scenario reader: what scenario_file.c (the schema), scenario.c and
 * scenario_set.c share. */
#ifndef HOLDOFF_LAB_SCENARIO_FILE_H
#define HOLDOFF_LAB_SCENARIO_FILE_H

#include "base/yaml.h"
#include "lab/scenario.h"

extern const struct cyaml_schema_value lab_scenario_schema;

struct ho_doc;

/* Resolves names and checks values, again after changes. doc is for places in messages: NULL when
 * the file is not at fault. */
int lab_scenario_resolve(struct lab_scenario *scenario, const struct ho_doc *doc,
			 struct ho_err *err);

/* Adds a parameter or changes it. */
int lab_params_set(struct lab_params *params, const char *name, const char *text,
		   struct ho_err *err);
/* Adds one to the struct lab_params at arg; -EINVAL if it is there already. */
int lab_params_add(void *arg, const char *key, const char *value, struct ho_err *err);
void lab_params_free(struct lab_params *params);

/* NULL if there is none. The name of a host may be part of a longer text. */
struct lab_host_spec *lab_host_named(struct lab_scenario *scenario, const char *name,
				     size_t length);
struct lab_chip_spec *lab_chip_named(struct lab_host_spec *host, const char *name);
const struct lab_axis_spec *lab_axis_named(const struct lab_scenario *scenario, const char *name);

/* The enumerations' words, for lab_scenario_set. -1 if there is no such word. */
int lab_rx_mode_of(const char *word);
int lab_workload_kind_of(const char *word);

#endif
