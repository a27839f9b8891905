/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters in libpcap's language, run here: compiled once, interpreted for each frame. A filter is
 * read-only after it was made and may be shared by all tasks.
 */
#ifndef HOLDOFF_TRAFFIC_FILTER_H
#define HOLDOFF_TRAFFIC_FILTER_H

#include <stdbool.h>

#include "packet/arena.h"

struct tr_filter;

/* For Ethernet frames. -EINVAL with libpcap's sentence when the expression is wrong. */
int tr_filter_create(const char *expression, struct tr_filter **out, struct ho_err *err);
/* NULL is allowed. */
void tr_filter_destroy(struct tr_filter *filter);

/*
 * Does the frame at `slot` match? `bytes` is its whole length; the filter looks at what the first
 * slot holds, which is more than all headers. A tag that travels beside the frame (PK_VLAN) is put
 * back into it first, so that "vlan 7" finds it: the slot's off, len and flags may change.
 */
bool tr_filter_match(const struct tr_filter *filter, const struct pk_arena *arena,
		     struct pk_slot *slot, uint32_t bytes);

/* Puts a tag that travels beside the frame into it, as it was on the wire. The buffer must have 4
 * bytes before the data (always so behind a port). */
void tr_vlan_into_frame(const struct pk_arena *arena, struct pk_slot *slot);

#endif
