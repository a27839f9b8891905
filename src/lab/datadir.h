/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where profiles, scenarios and published tables lie. In this order: the directory that the
 * environment variable HOLDOFF_DATA names; data/ of the source tree or share/holdoff/ of the
 * prefix that the running program belongs to; the directory given at build time.
 */
#ifndef HOLDOFF_LAB_DATADIR_H
#define HOLDOFF_LAB_DATADIR_H

#include <stddef.h>

#include "base/error.h"

/*
 * The file that `name` means: a path if it holds a slash or ends in `suffix`, else name + suffix
 * in folder `kind` ("profiles", "scenarios", "published") of the first directory that has it.
 * *path is malloced. -ENOENT with the directories searched.
 */
int lab_data_find(const char *kind, const char *name, const char *suffix, char **path,
		  struct ho_err *err);

/* Names (without suffix) in the kind's folders, sorted, each once. *names is malloced, and so is
 * each of the *n names. */
int lab_data_list(const char *kind, const char *suffix, char ***names, size_t *n,
		  struct ho_err *err);
void lab_data_list_free(char **names, size_t n);

#endif
