/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender that behaves as Linux's in-kernel pktgen does with one frame cloned for ever: it hands
 * the same buffer to the driver again and again, one frame a call, spins while the queue is
 * stopped, and goes past byte queue limits. It measures what a driver's transmit path and the
 * cleaning of its ring can do, and nothing else.
 *
 * The queue must belong to a port that honours PK_KEEP, and somebody else must clean it (an
 * rx-mode): pktgen itself never does.
 */
#ifndef HOLDOFF_TRAFFIC_PKTGEN_H
#define HOLDOFF_TRAFFIC_PKTGEN_H

#include "base/error.h"
#include "port/port.h"

struct tr_pktgen_config {
	struct port *port;
	unsigned queue;
	uint32_t frame_bytes; /* without FCS; 0 = 60. 42 at least, for its headers */
	uint64_t count;       /* frames; 0 = until stopped */
	uint8_t dst[6];       /* Ethernet destination; all zero = broadcast */
	int cpu;              /* -1 = anywhere */
};

/* Read while it runs, or after. */
struct tr_pktgen_counts {
	uint64_t sofar;  /* frames that the driver took */
	uint64_t errors; /* calls that the driver refused although its queue was not stopped */
	uint64_t bytes;
	uint64_t stops;      /* times that it found the queue stopped */
	uint64_t stopped_ns; /* and how long it spun there, all together */
	uint64_t at_ns;      /* when these were read */
};

struct tr_pktgen;

/*
 * Allocates its buffer from a cache of its own. The port must be open; it may be started later.
 * -ENOTSUP if the port does not honour PK_KEEP; -EINVAL for a frame that it cannot send.
 */
int tr_pktgen_create(const struct tr_pktgen_config *config, struct tr_pktgen **out,
		     struct ho_err *err);
/* Starts the task. The port has been started. */
int tr_pktgen_start(struct tr_pktgen *pg, struct ho_err *err);
/* Ends the task and waits for it. Frames may still be in the ring. A second call does nothing. */
/* Asks the task to end, without waiting for it. */
void tr_pktgen_ask(struct tr_pktgen *pg);
void tr_pktgen_stop(struct tr_pktgen *pg);
/* Has it sent its count? */
bool tr_pktgen_done(const struct tr_pktgen *pg);
/* After the port was stopped: until then the chip may read the buffer. NULL is allowed. */
void tr_pktgen_destroy(struct tr_pktgen *pg);

struct tr_pktgen_counts tr_pktgen_counts(const struct tr_pktgen *pg);

/* Frames a second between two readings, rounded down; 0 when no time has passed. */
uint64_t tr_pktgen_pps(const struct tr_pktgen_counts *from, const struct tr_pktgen_counts *to);

#endif
