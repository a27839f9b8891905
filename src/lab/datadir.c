// SPDX-License-Identifier: BSD-2-Clause
#include "lab/datadir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

/* Seen from the program's own directory: build/, build/tests/unit/, and PREFIX/bin/. */
static const char *const from_program[] = {
	"../data",
	"../../../data",
	"../share/holdoff",
};

/* Calls fn for each directory in order, until it returns other than 0. */
static int each_directory(int (*fn)(void *arg, const char *directory), void *arg)
{
	char program[PATH_MAX], directory[PATH_MAX + 64];
	const char *env = getenv("HOLDOFF_DATA");
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int rc = 0;

	if (env && *env)
		rc = fn(arg, env);
	if (length > 0) {
		program[length] = 0;
		*strrchr(program, '/') = 0;
		for (size_t i = 0; !rc && i < HO_ARRAY_LEN(from_program); i++) {
			snprintf(directory, sizeof(directory), "%s/%s", program, from_program[i]);
			rc = fn(arg, directory);
		}
	}
	return rc ? rc : fn(arg, HO_DATA_DIR);
}

/* --- one file ----------------------------------------------------------------------------- */

struct search {
	const char *kind, *name, *suffix;
	char *found;
};

static int look_in(void *arg, const char *directory)
{
	struct search *s = arg;
	char *path;

	if (asprintf(&path, "%s/%s/%s%s", directory, s->kind, s->name, s->suffix) < 0)
		return -ENOMEM;
	if (access(path, R_OK)) {
		free(path);
		return 0;
	}
	s->found = path;
	return 1;
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && !strcmp(name + n - m, suffix);
}

int lab_data_find(const char *kind, const char *name, const char *suffix, char **path,
		  struct ho_err *err)
{
	struct search s = { .kind = kind, .name = name, .suffix = suffix };
	int rc;

	if (strchr(name, '/') || ends_in(name, suffix)) {
		*path = strdup(name);
		return *path ? 0 : ho_err_set(err, -ENOMEM, "out of memory");
	}
	rc = each_directory(look_in, &s);
	if (rc < 0)
		return ho_err_set(err, rc, "out of memory");
	if (!rc)
		return ho_err_set(
			err, -ENOENT,
			"%s: there is no %s/%s%s in HOLDOFF_DATA, beside the program or in "
			"%s; a file can be given by its path",
			name, kind, name, suffix, HO_DATA_DIR);
	*path = s.found;
	return 0;
}

/* --- all files ---------------------------------------------------------------------------- */

struct listing {
	const char *kind, *suffix;
	char **names;
	size_t n;
};

static int add_name(struct listing *l, const char *file)
{
	int length = (int)(strlen(file) - strlen(l->suffix));
	char **names, *name;

	for (size_t i = 0; i < l->n; i++)
		if (!strncmp(l->names[i], file, (size_t)length) && !l->names[i][length])
			return 0;
	if (asprintf(&name, "%.*s", length, file) < 0)
		return -ENOMEM;
	names = realloc(l->names, (l->n + 1) * sizeof(*names));
	if (!names) {
		free(name);
		return -ENOMEM;
	}
	l->names = names;
	l->names[l->n++] = name;
	return 0;
}

static int list_in(void *arg, const char *directory)
{
	struct listing *l = arg;
	struct dirent *entry;
	char *path;
	int rc = 0;
	DIR *dir;

	if (asprintf(&path, "%s/%s", directory, l->kind) < 0)
		return -ENOMEM;
	dir = opendir(path);
	free(path);
	if (!dir)
		return 0;
	while (!rc && (entry = readdir(dir)))
		if (ends_in(entry->d_name, l->suffix))
			rc = add_name(l, entry->d_name);
	closedir(dir);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int lab_data_list(const char *kind, const char *suffix, char ***names, size_t *n,
		  struct ho_err *err)
{
	struct listing l = { .kind = kind, .suffix = suffix };

	if (each_directory(list_in, &l)) {
		lab_data_list_free(l.names, l.n);
		return ho_err_set(err, -ENOMEM, "out of memory");
	}
	if (l.n)
		qsort(l.names, l.n, sizeof(*l.names), by_name);
	*names = l.names;
	*n = l.n;
	return 0;
}

void lab_data_list_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}
