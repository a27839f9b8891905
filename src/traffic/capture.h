/* SPDX-License-Identifier: BSD-2-Clause */
/* Received frames written to a capture file (pcap, nanoseconds), by any number of tasks. */
#ifndef HOLDOFF_TRAFFIC_CAPTURE_H
#define HOLDOFF_TRAFFIC_CAPTURE_H

#include "packet/arena.h"
#include "runtime/rt.h"

struct tr_capture;

/* Makes or overwrites the file; "-" is standard output. Negative errno with a sentence; a named
 * pipe is waited for as pcap_out_open_path does. */
int tr_capture_open(struct rt *rt, const char *path, uint64_t deadline_ns, struct tr_capture **out,
		    struct ho_err *err);

/* Writes the frames of n slots, all at real time time_ns (CLOCK_REALTIME). Tasks take turns, burst
 * by burst. A frame that cannot be written is counted, not retried. */
void tr_capture_write(struct tr_capture *capture, const struct pk_arena *arena,
		      struct pk_slot *slots, unsigned n, uint64_t time_ns);

/* From any task: the end is near, so that a pipe whose reader does not read is waited for a second
 * more at most. NULL is allowed. */
void tr_capture_ask_stop(struct tr_capture *capture);

/* Closes it; *written frames are in the file. -EIO and a sentence when not all of them could be
 * written. The capture is gone in any case. NULL is allowed. */
int tr_capture_close(struct tr_capture *capture, uint64_t *written, struct ho_err *err);

#endif
