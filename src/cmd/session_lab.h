/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session on the virtual clock: the command's port is one of a scenario's (lab/live.h). session.c
 * asks here where a port is the lab's; a session has ports of one clock only.
 */
#ifndef HOLDOFF_CMD_SESSION_LAB_H
#define HOLDOFF_CMD_SESSION_LAB_H

#include <string.h>

#include "cmd/session.h"

#define CMD_LAB_PREFIX "lab:"

static inline bool cmd_lab_is(const char *spec)
{
	return !strncmp(spec, CMD_LAB_PREFIX, sizeof(CMD_LAB_PREFIX) - 1);
}

/* Builds and starts the scenario; the session's executor is that of the command's port. */
int cmd_lab_open(struct cmd_session *session, const char *spec, bool sends, struct ho_err *err);

/* The port for this direction. */
int cmd_lab_port(struct cmd_session *session, bool tx, struct port **out, struct ho_err *err);

#endif
