// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/headers.h"
#include "traffic/frame.h"
#include "traffic/stream.h"

#define STREAMS_MAX  256
#define SEED_DEFAULT 1

const struct tr_stream_field tr_stream_fields[] = {
#define TR_STREAM_ROW(member, key, arg, help) \
	{ key, arg, help, offsetof(struct tr_stream_text, member) },
	TR_STREAM_FIELDS(TR_STREAM_ROW)
#undef TR_STREAM_ROW
		{ NULL },
};

static int parse_seed(const char *text, uint64_t *seed, struct ho_err *err)
{
	static const struct tr_domain domain = { TR_VALUE_NUMBER, 0, UINT64_MAX };
	struct tr_vary v;
	int rc;

	*seed = SEED_DEFAULT;
	if (!text)
		return 0;
	rc = tr_vary_parse(text, &domain, &v, err);
	if (!rc && v.span)
		rc = ho_err_set(err, -EINVAL, "'%s' is not one number", text);
	*seed = v.first;
	tr_vary_free(&v);
	if (rc)
		ho_err_prefix(err, "seed");
	return rc;
}

static int parse_stamp(const char *text, enum tr_stamp_wish *wish, struct ho_err *err)
{
	*wish = TR_STAMP_AUTO;
	if (!text || !strcmp(text, "auto"))
		return 0;
	*wish = !strcmp(text, "yes") ? TR_STAMP_YES : TR_STAMP_NO;
	if (*wish == TR_STAMP_YES || !strcmp(text, "no"))
		return 0;
	return ho_err_set(err, -EINVAL, "stamp: '%s' is none of yes, no, auto", text);
}

/* The order of the streams in a round. */
static int set_turns(struct tr_spec *spec, uint64_t *weights, struct ho_err *err)
{
	uint32_t *reduced = calloc(spec->n_streams, sizeof(*reduced)), *order = NULL;
	int rc = -ENOMEM;

	if (!reduced)
		goto out;
	rc = tr_reduce_weights(weights, spec->n_streams, reduced, &spec->n_turns, err);
	if (rc)
		goto out;
	rc = -ENOMEM;
	order = calloc(spec->n_turns, sizeof(*order));
	spec->turns = calloc(spec->n_turns, sizeof(*spec->turns));
	if (!order || !spec->turns || tr_interleave(reduced, spec->n_streams, spec->n_turns, order))
		goto out;
	for (uint32_t i = 0; i < spec->n_turns; i++) {
		struct tr_stream *stream = &spec->streams[order[i]];

		spec->turns[i] = (struct tr_turn){ order[i], stream->weight++ };
	}
	rc = 0;
out:
	free(order);
	free(reduced);
	return rc == -ENOMEM ? ho_err_set(err, rc, "out of memory") : rc;
}

static int build_streams(struct tr_spec *spec, const struct tr_spec_text *text,
			 enum tr_stamp_wish wish, uint64_t *weights, struct tr_spec_fault *fault,
			 struct ho_err *err)
{
	static const struct tr_stream_text defaults;
	int rc = 0;

	for (unsigned i = 0; i < spec->n_streams && !rc; i++) {
		const struct tr_stream_text *t = text->n_streams ? &text->streams[i] : &defaults;

		rc = tr_stream_build(&spec->streams[i], t, i, spec->seed, wish, &weights[i],
				     &fault->key, err);
		fault->stream = i;
		if (rc && (spec->n_streams > 1 || t->name))
			ho_err_prefix(err, "%s", spec->streams[i].name);
	}
	return rc;
}

int tr_spec_create_at(const struct tr_spec_text *text, struct tr_spec **out,
		      struct tr_spec_fault *fault, struct ho_err *err)
{
	struct tr_spec *spec = calloc(1, sizeof(*spec));
	uint64_t *weights = NULL;
	enum tr_stamp_wish wish;
	int rc = -ENOMEM;

	*fault = (struct tr_spec_fault){ NULL, 0 };
	if (!spec)
		goto out;
	if (text->n_streams > STREAMS_MAX) {
		rc = ho_err_set(err, -EINVAL, "%u streams; at most %u are possible",
				text->n_streams, STREAMS_MAX);
		goto out;
	}
	spec->n_streams = text->n_streams ? text->n_streams : 1;
	spec->streams = calloc(spec->n_streams, sizeof(*spec->streams));
	weights = calloc(spec->n_streams, sizeof(*weights));
	if (!spec->streams || !weights)
		goto out;
	fault->key = "seed";
	rc = parse_seed(text->seed, &spec->seed, err);
	if (rc)
		goto out;
	fault->key = "stamp";
	rc = parse_stamp(text->stamp, &wish, err);
	if (rc)
		goto out;
	rc = build_streams(spec, text, wish, weights, fault, err);
	if (rc)
		goto out;
	*fault = (struct tr_spec_fault){ "weight", 0 };
	rc = set_turns(spec, weights, err);
	if (rc)
		goto out;
	spec->stamped = wish != TR_STAMP_NO;
	spec->min_bytes = UINT32_MAX;
	for (unsigned i = 0; i < spec->n_streams; i++) {
		const struct tr_stream *s = &spec->streams[i];

		if (!s->weight)
			continue;
		spec->stamped &= tr_stream_has_room(s);
		spec->min_bytes = HO_MIN(spec->min_bytes, s->min_bytes);
		spec->max_bytes = HO_MAX(spec->max_bytes, s->max_bytes);
	}
	for (unsigned i = 0; i < spec->n_streams && !rc; i++) {
		if (spec->streams[i].weight)
			rc = tr_stream_seal(&spec->streams[i], spec->stamped);
	}
out:
	free(weights);
	if (rc) {
		tr_spec_destroy(spec);
		return rc == -ENOMEM ? ho_err_set(err, rc, "out of memory for the frames") : rc;
	}
	*out = spec;
	return 0;
}

int tr_spec_create(const struct tr_spec_text *text, struct tr_spec **out, struct ho_err *err)
{
	struct tr_spec_fault fault;

	return tr_spec_create_at(text, out, &fault, err);
}

void tr_spec_destroy(struct tr_spec *spec)
{
	if (!spec)
		return;
	for (unsigned i = 0; spec->streams && i < spec->n_streams; i++)
		tr_stream_free(&spec->streams[i]);
	free(spec->streams);
	free(spec->turns);
	free(spec);
}

int tr_spec_fits(const struct tr_spec *spec, uint32_t max_frame, uint32_t tag_room,
		 const char *port, struct ho_err *err)
{
	for (unsigned i = 0; i < spec->n_streams; i++) {
		const struct tr_stream *s = &spec->streams[i];
		uint32_t most = max_frame + (s->l3_off > PK_ETH_BYTES ? tag_room : 0);

		if (s->weight && s->max_bytes > most)
			return ho_err_set(err, -EMSGSIZE,
					  "%s: frames of %u bytes (%s) are longer than it can send "
					  "(%u); a smaller size or a larger MTU fits",
					  port, s->max_bytes, s->name, most);
	}
	return 0;
}

void tr_spec_set_source(struct tr_spec *spec, const uint8_t mac[6])
{
	static const uint8_t none[6];

	if (!memcmp(mac, none, sizeof(none)))
		return;
	/* No checksum covers it. A stream without weight has no template. */
	for (unsigned i = 0; i < spec->n_streams; i++) {
		struct tr_stream *s = &spec->streams[i];

		if (s->image && s->source_open)
			memcpy(s->image + 6, mac, 6);
	}
}

void tr_spec_info(const struct tr_spec *spec, struct tr_spec_info *out)
{
	double total = 0;

	*out = (struct tr_spec_info){
		.streams = spec->n_streams,
		.stamped = spec->stamped,
		.udp = true,
		.min_bytes = spec->min_bytes,
		.max_bytes = spec->max_bytes,
		.max_slots = (spec->max_bytes + PK_ROOM_BYTES - 1) / PK_ROOM_BYTES,
	};
	for (unsigned i = 0; i < spec->n_streams; i++) {
		const struct tr_stream *s = &spec->streams[i];
		double sum = 0;

		for (uint64_t k = 0; k <= s->size.span; k++)
			sum += s->lengths[k].bytes;
		out->udp &= !s->weight || s->udp_len_off;
		total += sum / ((double)s->size.span + 1) * s->weight;
	}
	out->mean_bytes = total / spec->n_turns;
}

const char *tr_spec_describe(const struct tr_spec *spec, unsigned i, char *buf, size_t bytes)
{
	const struct tr_stream *s = &spec->streams[i];
	char proto[16], size[32];

	if (s->udp)
		strcpy(proto, " UDP");
	else if (s->ip_version && s->proto == PK_IP_TCP)
		strcpy(proto, " TCP");
	else if (s->ip_version && s->l4_csum_off)
		strcpy(proto, " ICMP");
	else if (s->ip_version)
		snprintf(proto, sizeof(proto), " proto %u", s->proto);
	else
		strcpy(proto, "");
	if (s->min_bytes == s->max_bytes)
		snprintf(size, sizeof(size), "%u", s->min_bytes);
	else
		snprintf(size, sizeof(size), "%u to %u", s->min_bytes, s->max_bytes);
	snprintf(buf, bytes, "%s: %s%s%s, %s bytes, %u varying field%s, %u of %u frames", s->name,
		 s->l3_off > PK_ETH_BYTES ? "VLAN " : "",
		 s->ip_version == 4   ? "IPv4"
		 : s->ip_version == 6 ? "IPv6"
				      : "Ethernet",
		 proto, size, s->n_vary, s->n_vary == 1 ? "" : "s", s->weight, spec->n_turns);
	return buf;
}

/* Checksums over the whole frame, nothing known beforehand. */
static void sum_frame(const struct tr_stream *s, uint8_t *frame, uint32_t bytes)
{
	const uint8_t *l3 = frame + s->l3_off;
	uint32_t l4_bytes = bytes - s->l4_off;
	uint64_t sum = 0;
	uint16_t csum;

	if (s->ip_csum_off) {
		memset(frame + s->ip_csum_off, 0, 2);
		csum = pk_csum_finish(pk_csum(l3, PK_IPV4_BYTES));
		memcpy(frame + s->ip_csum_off, &csum, 2);
	}
	if (!s->l4_csum_off)
		return;
	memset(frame + s->l4_csum_off, 0, 2);
	if (s->ip_version == 6) {
		sum = pk_csum_pseudo6(l3 + 8, l3 + 24, s->proto, l4_bytes);
	} else if (s->proto != PK_IP_ICMP) {
		uint32_t addr[2];

		memcpy(addr, l3 + 12, 8);
		sum = pk_csum_pseudo4(addr[0], addr[1], s->proto, (uint16_t)l4_bytes);
	}
	sum += pk_csum(frame + s->l4_off, l4_bytes);
	csum = s->udp ? pk_csum_finish_udp(sum) : pk_csum_finish(sum);
	memcpy(frame + s->l4_csum_off, &csum, 2);
}

uint32_t tr_spec_frame(const struct tr_spec *spec, uint64_t i, uint8_t *out)
{
	const struct tr_turn *turn = &spec->turns[i % spec->n_turns];
	const struct tr_stream *s = &spec->streams[turn->stream];
	uint64_t k = i / spec->n_turns * s->weight + turn->rank;
	const struct tr_length *length = &s->lengths[tr_vary_index(&s->size, k)];

	memcpy(out, s->image, length->bytes);
	for (unsigned p = 0; p < s->n_patches; p++) {
		const struct tr_patch *patch = &s->patch[p];
		const struct tr_vary *v = &s->vary[patch->vary];
		uint64_t index = tr_vary_index(v, k);
		uint64_t value = patch->high ? tr_vary_high(v, index) : tr_vary_value(v, index);

		value <<= patch->shift;
		for (unsigned b = 0; b < patch->width; b++)
			out[patch->off + b] |= (uint8_t)(value >> 8 * (patch->width - 1u - b));
	}
	if (s->ip_len_off)
		memcpy(out + s->ip_len_off, &length->ip_len, 2);
	if (s->udp_len_off)
		memcpy(out + s->udp_len_off, &length->udp_len, 2);
	sum_frame(s, out, length->bytes);
	return length->bytes;
}
