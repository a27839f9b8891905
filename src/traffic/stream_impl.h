/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by stream.c (what a frame consists of) and stream_fields.c (the fields' values). */
#ifndef HOLDOFF_TRAFFIC_STREAM_IMPL_H
#define HOLDOFF_TRAFFIC_STREAM_IMPL_H

#include <stddef.h>

#include "traffic/frame.h"
#include "traffic/spec.h"

enum tr_proto_class { PROTO_NONE, PROTO_UDP, PROTO_TCP, PROTO_ICMP, PROTO_OTHER };

/* A stream in the making. */
struct tr_builder {
	struct tr_stream *s;
	const struct tr_stream_text *text;
	enum tr_proto_class class;
	uint64_t seed;
	const char *fault; /* key of the field that the last complaint is about, or NULL */
	struct ho_err *err;
};

/* A field by the offset of its text. */
#define FIELD(member) offsetof(struct tr_stream_text, member)

/* NULL = not given. */
static inline const char *tr_field_text(const struct tr_builder *b, size_t field)
{
	return *(const char *const *)((const char *)b->text + field);
}

/* Complains about a field's text: -EINVAL, "KEY: " and the message. */
int tr_field_bad(struct tr_builder *b, size_t field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads a field's text, which is given. As tr_vary_parse. */
int tr_field_parse(struct tr_builder *b, size_t field, const struct tr_domain *domain,
		   struct tr_vary *out);

/* Reads a number to `max` that must not vary; `initial` if it is not given. */
int tr_field_fixed(struct tr_builder *b, size_t field, uint64_t max, uint64_t initial,
		   uint64_t *out);

/* Reads yes or no. */
int tr_field_yes(struct tr_builder *b, size_t field, bool initial, bool *out);

/* Puts all values into the template or into patches, once offsets and lengths are known. -EINVAL.
 */
int tr_stream_fill(struct tr_builder *b);

#endif
