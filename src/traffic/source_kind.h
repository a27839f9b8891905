/* SPDX-License-Identifier: BSD-2-Clause */
/* What a kind of source implements: generated frames (generator.c), a capture file (replay.c). */
#ifndef HOLDOFF_TRAFFIC_SOURCE_KIND_H
#define HOLDOFF_TRAFFIC_SOURCE_KIND_H

#include "traffic/source.h"

/* Each as the function of the same name in traffic/source.h. */
struct tr_source_ops {
	unsigned (*next)(struct tr_source *source, struct pk_cache *cache, uint64_t now_ns,
			 struct pk_slot *slots, unsigned n, unsigned frames, unsigned *built);
	void (*unsend)(struct tr_source *source, unsigned frames);
	uint64_t (*due_ns)(struct tr_source *source); /* NULL = no times of its own */
	void (*destroy)(struct tr_source *source);
};

/* Embedded in the kind's own struct. */
struct tr_source {
	const struct tr_source_ops *ops;
};

#endif
