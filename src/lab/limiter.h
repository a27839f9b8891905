/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What limits a run: the resource that is at its end, found from what was measured, and the
 * arithmetic behind it with this run's own numbers.
 *
 * The law behind the transmit side, with a ring that only an interrupt's poll empties:
 *
 *     pps = min(n f, (1 - k f) / c)
 *
 * n frames in flight when the queue stops, f cleanings a second, k the CPU time of one interrupt
 * with its poll, c the CPU time of one frame. The left side is the ring's, the right side the
 * CPU's. n, f, k and c are all taken from the run itself, so what another value of a knob would
 * give is a prediction from this run alone.
 *
 * The order in which causes are looked for is that of the enum: a queue in front of a busy wire is
 * full as well, but the wire is the reason.
 */
#ifndef HOLDOFF_LAB_LIMITER_H
#define HOLDOFF_LAB_LIMITER_H

#include "lab/run.h"

enum lab_limit {
	LAB_LIMIT_NONE,    /* nothing is used up: the run is idle, or waits for something else */
	LAB_LIMIT_RX_RING, /* frames are lost: the receive ring fills up between two polls */
	LAB_LIMIT_RX_CPU,  /* frames are lost: the receiving CPU has no time left */
	LAB_LIMIT_OFFERED, /* no more was offered */
	LAB_LIMIT_WIRE,    /* the link is busy all the time */
	LAB_LIMIT_PCI,     /* the chip's bus is */
	LAB_LIMIT_RING,    /* the transmit ring is full until the next cleaning */
	LAB_LIMIT_CPU,     /* the sending CPU has no time left */
	LAB_LIMIT_COUNT
};

/* A value of a knob, and what the law says that it would give. */
struct lab_limit_knob {
	const char *name; /* "rx-usecs", "tx"; NULL: there is none */
	double value;
	double pps;
};

#define LAB_LIMITER_TEXT 400

struct lab_limiter {
	enum lab_limit what;
	double used; /* of the resource, 0 to 1 */
	double pps;  /* of the sender, as lab_result_value gives it */
	/* of the sender's queue; 0 where it does not apply */
	double in_flight;       /* frames that are cleaned at a time */
	double cleanings_per_s; /* polls that ended the queue's work */
	double frame_ns;        /* c */
	double interrupt_ns;    /* k */
	double law_pps;         /* the law's with these; 0 = it does not apply */
	struct lab_limit_knob knob[2];
	char text[LAB_LIMITER_TEXT]; /* one or two sentences, without a line break */
};

/* "ring": stable, for JSON and CSV. "the transmit ring": for people. */
const char *lab_limit_name(enum lab_limit limit);
const char *lab_limit_title(enum lab_limit limit);

/* Looks at the run's sender (as lab_result_value does) and who receives from it. scenario is the
 * one that was run. */
void lab_limiter(const struct lab_scenario *scenario, const struct lab_result *result,
		 struct lab_limiter *out);

#endif
