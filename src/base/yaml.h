/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * YAML files read by schema (libcyaml), with errors that say file, line, column and cause. The
 * caller gives the cyaml schema of its own struct and frees the result with ho_yaml_free.
 */
#ifndef HOLDOFF_BASE_YAML_H
#define HOLDOFF_BASE_YAML_H

#include <cyaml/cyaml.h>

#include "base/error.h"

/* Reads the file into *out (as cyaml_load_file does). Unknown keys, missing keys, values out of
 * range and syntax errors give -EINVAL; an unreadable file its errno. */
int ho_yaml_load_file(const char *path, const struct cyaml_schema_value *schema, void **out,
		      struct ho_err *err);

/* The same from memory; `name` stands for the file in messages. */
int ho_yaml_load(const char *name, const void *text, size_t bytes,
		 const struct cyaml_schema_value *schema, void **out, struct ho_err *err);

/* NULL is allowed. */
void ho_yaml_free(const struct cyaml_schema_value *schema, void *data);

#endif
