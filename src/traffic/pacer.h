/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a generator's next frames are due.
 *
 * The schedule is arithmetic, not a timer that is set anew: frame k is due at start + k gaps,
 * counted in 2^-32 ns, so that what is sent late does not delay the frames behind it and the mean
 * rate is exact. The rules:
 *
 *  1. A gap is a fixed time a frame plus a fixed time a byte: packets/s have only the first, bit/s
 *     both (the FCS, and at layer 1 preamble and gap, are time a frame).
 *  2. Short gaps: as many frames go at once as are due within TR_PACER_BURST_NS, at most PK_BURST.
 *     With a burst size asked for, always that many, and they are all due with their first one.
 *  3. Late: what is overdue is caught up at up to twice the rate, in bursts of at most PK_BURST, so
 *     that a stall of ours does not become a flood for the receiver.
 *  4. Later than TR_PACER_LAG_MAX_NS: the schedule is moved, and the time so lost is counted
 *     (slipped_ns): the rate asked for is more than is possible here.
 *  5. Long gaps are slept, but not to the end: a wake-up comes up to 80 us late on a virtual
 *     machine, so the last TR_PACER_EARLY_NS are spun.
 *  6. With W workers each makes every Wth frame: its gaps are W times as long and its start is
 *     its part of a gap later.
 *
 * What was achieved is recorded: for each frame the distance between the time when it was handed to
 * the port and the time when it was due.
 */
#ifndef HOLDOFF_TRAFFIC_PACER_H
#define HOLDOFF_TRAFFIC_PACER_H

#include "base/hist.h"
#include "base/units.h"
#include "traffic/stop.h"

#define TR_PACER_BURST_NS   1000u
#define TR_PACER_EARLY_NS   150000u
#define TR_PACER_LAG_MAX_NS 1000000000u

/* Bytes of a frame on the wire beside those that we count: FCS; and preamble and gap. */
#define TR_FCS_BYTES  4u
#define TR_WIRE_BYTES 20u

struct tr_pacer_config {
	struct ho_rate rate;
	uint64_t link_bps; /* for HO_RATE_PERCENT; 0 = unknown */
	unsigned burst;    /* frames at once; 0 = rule 2; at most PK_BURST */
	unsigned worker, workers;
	bool timed; /* the frames have times of their own (tr_source_due_ns): the rate is unused */
};

struct tr_pacer {
	struct rt *rt;
	struct tr_stop *stop;
	bool unpaced;               /* HO_RATE_MAX */
	bool timed;                 /* due times come from tr_pacer_due_at */
	unsigned burst;             /* asked for; 0 = rule 2 */
	double frame_ns;            /* gap: of a frame */
	double byte_ns;             /* and of each of its bytes */
	unsigned __int128 frame_fp; /* the same in 2^-32 ns */
	unsigned __int128 byte_fp;
	unsigned __int128 due;  /* of the next frame, in 2^-32 ns */
	uint64_t start_ns;      /* of the schedule */
	uint64_t not_before_ns; /* rule 3 */
	double gap_ns;          /* mean of the last burst: what rule 2 reckons with */
	/* What happened. */
	uint64_t frames;     /* sent */
	uint64_t first_ns;   /* when the first frame was sent */
	uint64_t last_ns;    /* when the last burst was sent */
	uint64_t last_due;   /* and when it was due */
	uint64_t first_due;  /* when the first one was due */
	uint64_t slipped_ns; /* rule 4 */
	uint64_t sleeps;
	struct ho_hist error_ns; /* |sent - due| of each frame */
};

/* -EINVAL when the rate cannot be had: percent of a link whose speed is unknown. `frame_bytes` is
 * a first guess of the mean frame without FCS. stop must outlive the pacer. */
int tr_pacer_init(struct tr_pacer *pacer, struct rt *rt, struct tr_stop *stop,
		  const struct tr_pacer_config *config, uint32_t frame_bytes, struct ho_err *err);

/* The first frame is due at start_ns (plus this worker's part of a gap). */
void tr_pacer_start(struct tr_pacer *pacer, uint64_t start_ns);

/* For timed ones: the next frame is due so many ns after the start. */
void tr_pacer_due_at(struct tr_pacer *pacer, uint64_t after_ns);

/*
 * Waits until the next frame is due; *now_ns is the time then. Returns how many frames may be sent
 * at once, 0 when asked to stop or when deadline_ns comes first.
 */
unsigned tr_pacer_wait(struct tr_pacer *pacer, uint64_t deadline_ns, uint64_t *now_ns);

/* `frames` frames of `bytes` bytes in all were handed to the port at now_ns. */
void tr_pacer_sent(struct tr_pacer *pacer, uint64_t now_ns, unsigned frames, uint64_t bytes);

/* The mean rate's relative error: +0.001 is a tenth of a percent too fast. What slipped is an
 * error. false (and 0) when there is no mean rate: fewer than two bursts were sent, or all frames
 * were due at the same time. */
bool tr_pacer_rate_error(const struct tr_pacer *pacer, double *error);

#endif
