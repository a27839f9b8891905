/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A full duplex Ethernet link between two ends, 0 and 1.
 *
 *            begin, send                                       receive
 *   end 0 ---------------> [ serialise: rate ] [ propagate ] ----------> end 1   and back
 *
 * A frame is its bytes from the destination address on, without the FCS. On the wire it takes the
 * FCS (4), preamble and start delimiter (8) and the gap (12) more, and no less than 64 + 20 bytes
 * (IEEE 802.3 clauses 3 and 4): 67.2 ns at 10 Gbit/s for the smallest one.
 *
 * Conservation, in each direction: sent = delivered + lost to a dead link + in flight.
 */
#ifndef HOLDOFF_LAB_WIRE_H
#define HOLDOFF_LAB_WIRE_H

#include <stdbool.h>

#include "base/error.h"
#include "lab/fifo.h"
#include "lab/rate.h"
#include "lab/sim.h"

#define LAB_FCS_BYTES       4u
#define LAB_FRAME_MIN_BYTES 60u /* without the FCS */
#define LAB_WIRE_GAP_BYTES  20u /* preamble, start delimiter and inter-frame gap */

enum lab_frame_flags {
	LAB_FRAME_BAD_FCS = 1 << 0, /* damaged on the way, or sent so */
};

struct lab_frame {
	sim_ps at;      /* when its last bit arrived */
	uint32_t bytes; /* without the FCS */
	uint32_t flags; /* enum lab_frame_flags */
	uint8_t data[];
};

struct lab_wire_config {
	uint64_t bps;        /* bits a second; 0 = 10 Gbit/s */
	sim_ps propagation;  /* first bit out to first bit in; 5 ns a metre */
};

/* What is behind an end. Functions are called from sim events; either may be NULL. */
struct lab_wire_user {
	/* The frame is the wire's and good until the return. */
	void (*receive)(void *arg, const struct lab_frame *frame);
	void (*link)(void *arg, bool up);
	void *arg;
	/* receive may be called up to so much later than frame->at says: then many frames come at
	 * once, which is faster for an end that only counts. */
	sim_ps slack;
	/* All that receive changes is of this host; NULL = not known. */
	struct sim_host *host;
};

struct lab_wire_stats {
	uint64_t frames, bytes;  /* sent; bytes without FCS */
	uint64_t delivered;      /* frames that the other end got */
	uint64_t lost_link_down; /* frames sent into, or caught by, a dead link */
	sim_ps busy;             /* time in which the direction was carrying bits, up to now */
};

struct lab_wire;

int lab_wire_create(struct sim *sim, const struct lab_wire_config *config, struct lab_wire **out,
                    struct ho_err *err);
/* NULL is allowed. */
void lab_wire_destroy(struct lab_wire *wire);

/* Who is at end `end`; user is copied. The link callback is called at once if the link is up. */
void lab_wire_attach(struct lab_wire *wire, unsigned end, const struct lab_wire_user *user);

/*
 * Room for a frame of up to max_bytes at the sender's end; fill data (and flags), then call
 * lab_wire_send. One frame at a time.
 */
struct lab_frame *lab_wire_begin(struct lab_wire *wire, unsigned end, uint32_t max_bytes);

/*
 * Sends the frame that lab_wire_begin gave, with `bytes` bytes of data, not before `ready` (the
 * future is allowed) nor before earlier frames of this end. Returns when its last bit has left.
 * Without a link the frame is lost and counted, and takes no time.
 */
sim_ps lab_wire_send(struct lab_wire *wire, unsigned end, uint32_t bytes, sim_ps ready);

/* When the next frame of this end could begin; may be past. */
sim_ps lab_wire_free_at(const struct lab_wire *wire, unsigned end);

struct lab_rate lab_wire_rate(const struct lab_wire *wire);
uint64_t lab_wire_bps(const struct lab_wire *wire);
bool lab_wire_link(const struct lab_wire *wire);
/* Frames in flight when it goes down are lost. */
void lab_wire_set_link(struct lab_wire *wire, bool up);

/* Calls fn for each frame as it is sent, with its end and the time its first bit leaves. NULL
 * takes the tap off. */
void lab_wire_tap(struct lab_wire *wire,
                  void (*fn)(void *arg, unsigned end, sim_ps start, const struct lab_frame *frame),
                  void *arg);

void lab_wire_stats(const struct lab_wire *wire, unsigned end, struct lab_wire_stats *out);

/* 0, or -EPROTO with a sentence when frames are not conserved. */
int lab_wire_check(const struct lab_wire *wire, struct ho_err *err);

#endif
