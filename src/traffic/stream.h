/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one stream of a specification from its texts. */
#ifndef HOLDOFF_TRAFFIC_STREAM_H
#define HOLDOFF_TRAFFIC_STREAM_H

#include "traffic/frame.h"
#include "traffic/spec.h"

enum tr_stamp_wish { TR_STAMP_AUTO, TR_STAMP_YES, TR_STAMP_NO };

/*
 * Reads the texts, lays the headers out and checks that they can be sent; `number` from 0. *weight
 * is the text's. On failure (-EINVAL, -ENOMEM; err names field and text) what `out` holds is still
 * to be freed, and *fault is the key of the field at fault, or NULL. tr_stream_seal must follow.
 */
int tr_stream_build(struct tr_stream *out, const struct tr_stream_text *text, unsigned number,
		    uint64_t seed, enum tr_stamp_wish stamp, uint64_t *weight, const char **fault,
		    struct ho_err *err);

/* Does a stamp fit into every frame? */
bool tr_stream_has_room(const struct tr_stream *stream);

/* Computes the sums of every length, now that it is known whether frames are stamped. -ENOMEM. */
int tr_stream_seal(struct tr_stream *stream, bool stamped);

void tr_stream_free(struct tr_stream *stream);

#endif
