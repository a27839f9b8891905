/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are read: opened so that what is none is named, and a pipe that nobody writes to does
 * not hold us up without a word. */
#ifndef HOLDOFF_BASE_FILE_H
#define HOLDOFF_BASE_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Opens a file, a pipe or a device for reading; errors name it. -EISDIR for a directory. A pipe is
 * waited for until something comes or its writer has gone, and a note says so; -EINTR when a signal
 * that was blocked asks us to end meanwhile.
 */
int ho_file_open(const char *path, FILE **out, struct ho_err *err);

/* The whole of it into a new string (a zero byte is added, and not counted). Waits likewise.
 * -EINVAL: it is longer than `most` bytes. */
int ho_file_read(const char *path, size_t most, char **text, size_t *bytes, struct ho_err *err);

#endif
