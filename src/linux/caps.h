/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Privileges: which capabilities something needs, the sentence when they are missing, and giving
 * up the others (libcap-ng).
 *
 * Capabilities belong to a thread and are inherited by those that it makes. So a command opens its
 * ports, calls lx_caps_keep in its main thread, and only then starts workers.
 */
#ifndef HOLDOFF_LINUX_CAPS_H
#define HOLDOFF_LINUX_CAPS_H

#include <linux/capability.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A set of capabilities. */
typedef uint64_t lx_capset;
#define LX_CAP(cap) ((lx_capset)1 << (cap))

/* Which of `need` this thread may not use. */
lx_capset lx_caps_missing(lx_capset need);

/*
 * 0 when this thread may use all of `need`. Otherwise -EPERM, and err says that `what` ("sending
 * raw packets") needs them and which setcap line gives them to this program.
 */
int lx_caps_require(const char *what, lx_capset need, struct ho_err *err);

/* Gives up, for this thread and those it will make, all capabilities but `keep` for good. What is
 * in `keep` but was not held stays missing. */
int lx_caps_keep(lx_capset keep, struct ho_err *err);

/* "cap_net_raw,cap_bpf" into buf; returns buf. */
const char *lx_caps_text(lx_capset set, char *buf, size_t bytes);

#endif
