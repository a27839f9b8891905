/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the frames of a recorded file are due: recorded time stamps to times after a start, for
 * whoever replays a file.
 *
 *  1. The first frame of the first pass is due at 0; gaps are the file's, divided by the speed.
 *  2. A frame older than one before it is due together with that one. One that is more than
 *     PCAP_CLOCK_SET_NS older shows that the file's clock was set: time goes on from there.
 *  3. Between two passes lies the file's mean gap, so that the rate does not change.
 *  4. Broken stamps cannot make a sum wrap: times end at PCAP_TIME_MAX_NS.
 */
#ifndef HOLDOFF_PORT_PCAP_SCHEDULE_H
#define HOLDOFF_PORT_PCAP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define PCAP_CLOCK_SET_NS UINT64_C(1000000000)
#define PCAP_TIME_MAX_NS  (UINT64_C(1) << 62) /* 146 years */

/* All zero in the beginning, but for the speed. */
struct pcap_schedule {
	double speed;     /* 2 = twice as fast; above 0 */
	uint64_t frames;  /* of this pass */
	uint64_t pass_ns; /* where this pass begins, in recorded time */
	uint64_t at_ns;   /* of the latest frame, from there; never goes back */
	__int128 zero_ns; /* the stamp that is at 0 of this pass: pcapng has 64 bits of seconds */
};

/* The next frame's due time, in ns after the start: at most PCAP_TIME_MAX_NS. *back: its stamp is
 * older than the one before. */
uint64_t pcap_schedule_frame(struct pcap_schedule *schedule, __int128 stamp_ns, bool *back);

/* The file begins anew. */
void pcap_schedule_pass(struct pcap_schedule *schedule);

#endif
