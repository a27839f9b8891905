/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of another source, marked so that the port cuts them into segments (PK_TSO): what a TCP
 * sender's stack hands to a controller that can do it.
 */
#ifndef HOLDOFF_TRAFFIC_TSO_H
#define HOLDOFF_TRAFFIC_TSO_H

#include "traffic/source.h"

/*
 * `inner` must build TCP frames; it is destroyed with the new source (not when this fails). mss:
 * bytes of payload of a segment, from 64 to 9600.
 */
int tr_tso_create(struct tr_source *inner, uint32_t mss, struct tr_source **out,
		  struct ho_err *err);

#endif
