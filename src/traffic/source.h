/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a generator's frames come from: a specification (traffic/spec.h) seen by one worker.
 *
 * The frames of one specification are a fixed sequence, given its seed: frame i is the same
 * whatever the burst sizes are. With several workers, worker w of W makes frames w, w + W, ... of
 * it, and each stamps its own stream.
 */
#ifndef HOLDOFF_TRAFFIC_SOURCE_H
#define HOLDOFF_TRAFFIC_SOURCE_H

#include "packet/arena.h"

struct tr_spec;
struct tr_source;

/* The spec must outlive the source. */
int tr_source_create(const struct tr_spec *spec, unsigned worker, unsigned workers,
		     struct tr_source **out, struct ho_err *err);
/* NULL is allowed. */
void tr_source_destroy(struct tr_source *source);

/*
 * Builds up to `frames` next frames into at most n slots, stamped with now_ns if the spec stamps.
 * Returns the slots used (whole frames); 0 when the pool is empty or the source has ended. *built
 * is the number of frames.
 */
unsigned tr_source_next(struct tr_source *source, struct pk_cache *cache, uint64_t now_ns,
			struct pk_slot *slots, unsigned n, unsigned frames, unsigned *built);

/* The last n frames built were not sent: the next call builds the same sequence numbers again. */
void tr_source_unsend(struct tr_source *source, unsigned frames);

/* For a source with times of its own (a capture file): when the next frame is due, ns after the
 * first one; RT_FOREVER when it has ended; 0 for a source without times. */
uint64_t tr_source_due_ns(struct tr_source *source);

#endif
