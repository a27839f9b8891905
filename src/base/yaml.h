/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * YAML files read by schema (libcyaml), with errors that say file, line, column and cause. The
 * caller gives the cyaml schema of its own struct and frees the result with ho_yaml_free.
 */
#ifndef HOLDOFF_BASE_YAML_H
#define HOLDOFF_BASE_YAML_H

#include <cyaml/cyaml.h>

#include "base/error.h"

/* Reads a file's text into *out (as cyaml_load_data does); `name` stands for the file in messages.
 * Unknown keys, missing keys, values out of range and syntax errors give -EINVAL. */
int ho_yaml_load(const char *name, const void *text, size_t bytes,
		 const struct cyaml_schema_value *schema, void **out, struct ho_err *err);

/* NULL is allowed. */
void ho_yaml_free(const struct cyaml_schema_value *schema, void *data);

#endif
