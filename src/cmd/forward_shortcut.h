/* SPDX-License-Identifier: BSD-2-Clause */
/* holdoff forward with the kernel: when packets may take the shortcut of port/shortcut.h. */
#ifndef HOLDOFF_CMD_FORWARD_SHORTCUT_H
#define HOLDOFF_CMD_FORWARD_SHORTCUT_H

#include "cmd/forward.h"
#include "route/kernel.h"

struct shortcut;

/*
 * Before the ports start. *out is NULL when there is to be none. With --shortcut=yes an error says
 * why there can be none.
 */
int shortcut_create(struct forward *f, struct shortcut **out, struct ho_err *err);
/* NULL is allowed, here and below. */
void shortcut_destroy(struct shortcut *s);

/* Opens and closes it as links, peers and the kernel's settings are now. About every 10 ms. */
void shortcut_poll(struct shortcut *s, const struct ro_kernel *kernel, uint64_t now_ns);

/* Says what is possible, after the first poll. */
void shortcut_say(const struct shortcut *s);

/* Closes it for good: what was under way has arrived when this returns. */
void shortcut_stop(struct shortcut *s);

#endif
