/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signals that ask a program to end (SIGINT, SIGTERM, SIGHUP) as a descriptor to wait for, so
 * that it ends between two steps of its work, with everything put back.
 */
#ifndef HOLDOFF_BASE_STOP_SIGNALS_H
#define HOLDOFF_BASE_STOP_SIGNALS_H

#include <signal.h>

#include "base/error.h"

struct ho_stop_signals {
	int fd; /* readable once one came; -1 = not open */
	sigset_t before;
};

/* Blocks them; before any thread is made, so that they are blocked in all. From then on a reader
 * that has gone (SIGPIPE) is an error of write as well, not the end of the process. */
int ho_stop_signals_open(struct ho_stop_signals *s, struct ho_err *err);

/* Takes those that came, which have done their work, and lets the signals do what they did before.
 * Nothing if it is not open. */
void ho_stop_signals_close(struct ho_stop_signals *s);

#endif
