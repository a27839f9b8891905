/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture file as a source of frames (traffic/source.h), each due at its recorded time. Reads
 * pcap and pcapng, micro- and nanoseconds, as a stream: memory does not grow with the file.
 *
 * With several workers each reads the whole file and takes every W-th frame of it; all share the
 * time of the file's first frame.
 */
#ifndef HOLDOFF_TRAFFIC_REPLAY_H
#define HOLDOFF_TRAFFIC_REPLAY_H

#include "runtime/rt.h"
#include "traffic/source.h"

/* What to do with a frame of which the file holds only the beginning. */
enum tr_replay_short {
	TR_REPLAY_PAD,  /* send it in full length, the missing bytes zero */
	TR_REPLAY_SKIP, /* leave it out */
};

struct tr_replay_config {
	struct rt *rt;    /* whose stop ends a wait for a silent pipe; may be NULL for a file */
	const char *path; /* "-" = standard input */
	double speed;     /* 2 = twice as fast as recorded; 0 = no times: as fast as asked for */
	uint64_t loops;   /* how often; 0 = for ever */
	enum tr_replay_short truncated;
};

/* Of one source so far. Records that are left out count for one of the workers each, so that the
 * workers' counts add up to those of the file. */
struct tr_replay_counts {
	uint64_t frames;    /* built (those unsent count once) */
	uint64_t loops;     /* completed passes over the file, as far as it was read */
	uint64_t padded;    /* captured only in part and filled up */
	uint64_t truncated; /* left out: captured only in part */
	uint64_t too_long;  /* left out: longer than a frame can be */
	uint64_t too_short; /* left out: shorter than an Ethernet header */
	uint64_t time_back; /* time stamp before an earlier frame's: due at once */
};

/*
 * Opens the file and reads up to this worker's first frame. -EINVAL with file and cause if it is
 * not a capture of Ethernet frames, is broken before that frame, holds no frame that can be sent,
 * or is a pipe that would have to be read twice; -EINTR if the wait for a silent pipe was ended
 * (port/pcap_in.h); its errno if it cannot be read.
 */
int tr_replay_create(const struct tr_replay_config *config, unsigned worker, unsigned workers,
		     struct tr_source **out, struct ho_err *err);

/* From another task: the source ends instead of waiting for more bytes of a silent pipe. Nothing
 * happens to a source that is no replay. */
void tr_replay_ask_stop(struct tr_source *source);

/*
 * A source that ended (tr_source_due_ns() == RT_FOREVER) because the file is broken: negative
 * errno and file, record number, byte offset and cause in err; 0 if nothing is wrong. A source
 * that is no replay is never wrong.
 */
int tr_replay_error(const struct tr_source *source, struct ho_err *err);

void tr_replay_counts(const struct tr_source *source, struct tr_replay_counts *out);

#endif
