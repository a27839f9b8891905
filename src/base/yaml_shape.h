/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What no YAML file may have, whatever its schema: bad syntax, more than one document, aliases (a
 * file that refers to itself could grow without bound), a key twice in one mapping, or so many
 * levels that reading them would take the stack.
 */
#ifndef HOLDOFF_BASE_YAML_SHAPE_H
#define HOLDOFF_BASE_YAML_SHAPE_H

#include <stddef.h>

#include "base/error.h"

#define HO_YAML_DEPTH_MAX 64

/* 0; -EINVAL with file, line, column and cause; -ENOMEM. `name` stands for the file. */
int ho_yaml_check_shape(const char *name, const void *text, size_t bytes, struct ho_err *err);

#endif
