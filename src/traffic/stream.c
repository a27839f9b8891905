// SPDX-License-Identifier: BSD-2-Clause
/* What a stream's frames consist of: which headers, where, how long, and their sums. */
#include "traffic/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "packet/headers.h"
#include "traffic/stamp.h"
#include "traffic/stream_impl.h"

#define SIZE_DEFAULT 60 /* the shortest Ethernet frame, without FCS */

/* --- layout -------------------------------------------------------------------------------- */

static int refuse(struct tr_builder *b, const size_t *fields, unsigned n, const char *why)
{
	for (unsigned i = 0; i < n; i++) {
		if (tr_field_text(b, fields[i]))
			return tr_field_bad(b, fields[i], "%s", why);
	}
	return 0;
}

static int choose_ip(struct tr_builder *b)
{
	static const size_t ip_fields[] = {
		FIELD(ip_src),    FIELD(ip_dst),   FIELD(ttl),          FIELD(tos),
		FIELD(ip_id),     FIELD(df),       FIELD(flow_label),   FIELD(proto),
		FIELD(src_port),  FIELD(dst_port), FIELD(udp_checksum), FIELD(tcp_flags),
		FIELD(tcp_seq),   FIELD(tcp_ack),  FIELD(tcp_window),   FIELD(icmp_type),
		FIELD(icmp_code), FIELD(icmp_id),  FIELD(icmp_seq),
	};
	static const size_t v4_fields[] = { FIELD(ip_id), FIELD(df) };
	static const size_t v6_fields[] = { FIELD(flow_label) };
	const char *src = b->text->ip_src, *dst = b->text->ip_dst;
	bool src6 = src && strchr(src, ':'), dst6 = dst && strchr(dst, ':');

	if (b->text->ethertype) {
		b->s->ip_version = 0;
		return refuse(b, ip_fields, HO_ARRAY_LEN(ip_fields),
			      "a stream with ethertype has no IP header; leave one of both out");
	}
	if (src && dst && src6 != dst6)
		return tr_field_bad(b, FIELD(ip_dst),
				    "'%s' and ip-src '%s' are not of the same IP version", dst,
				    src);
	b->s->ip_version = src6 || dst6 ? 6 : 4;
	if (b->s->ip_version == 6)
		return refuse(b, v4_fields, HO_ARRAY_LEN(v4_fields), "only IPv4 has this field");
	return refuse(b, v6_fields, HO_ARRAY_LEN(v6_fields),
		      "only IPv6 has this field; give IPv6 addresses with it");
}

static int choose_proto(struct tr_builder *b)
{
	static const size_t udp_fields[] = { FIELD(udp_checksum) };
	static const size_t port_fields[] = { FIELD(src_port), FIELD(dst_port) };
	static const size_t tcp_fields[] = { FIELD(tcp_flags), FIELD(tcp_seq), FIELD(tcp_ack),
					     FIELD(tcp_window) };
	static const size_t icmp_fields[] = { FIELD(icmp_type), FIELD(icmp_code), FIELD(icmp_id),
					      FIELD(icmp_seq) };
	const struct tr_domain domain = { TR_VALUE_NUMBER, 0, 255 };
	const char *text = b->text->proto ? b->text->proto : "udp";
	struct tr_stream *s = b->s;
	uint64_t value;
	int rc;

	if (!s->ip_version) {
		b->class = PROTO_NONE;
		return 0;
	}
	if (!strcmp(text, "udp")) {
		value = PK_IP_UDP;
	} else if (!strcmp(text, "tcp")) {
		value = PK_IP_TCP;
	} else if (!strcmp(text, "icmp")) {
		value = s->ip_version == 4 ? PK_IP_ICMP : PK_IP_ICMPV6;
	} else {
		rc = tr_field_fixed(b, FIELD(proto), domain.max, 0, &value);
		if (rc == -EINVAL)
			return tr_field_bad(b, FIELD(proto),
					    "'%s' is not udp, tcp, icmp or a number to 255", text);
	}
	s->proto = (uint8_t)value;
	if (value == PK_IP_UDP)
		b->class = PROTO_UDP;
	else if (value == PK_IP_TCP)
		b->class = PROTO_TCP;
	else if (value == (s->ip_version == 4 ? PK_IP_ICMP : PK_IP_ICMPV6))
		b->class = PROTO_ICMP;
	else
		b->class = PROTO_OTHER;
	rc = 0;
	if (b->class != PROTO_UDP)
		rc = refuse(b, udp_fields, HO_ARRAY_LEN(udp_fields),
			    "only proto udp has this field");
	if (!rc && b->class != PROTO_UDP && b->class != PROTO_TCP)
		rc = refuse(b, port_fields, HO_ARRAY_LEN(port_fields),
			    "only proto udp and tcp have this field");
	if (!rc && b->class != PROTO_TCP)
		rc = refuse(b, tcp_fields, HO_ARRAY_LEN(tcp_fields),
			    "only proto tcp has this field");
	if (!rc && b->class != PROTO_ICMP)
		rc = refuse(b, icmp_fields, HO_ARRAY_LEN(icmp_fields),
			    "only proto icmp has this field");
	return rc;
}

/* Offsets of all headers. */
static int lay_out(struct tr_builder *b)
{
	static const size_t vlan_fields[] = { FIELD(vlan_pcp), FIELD(vlan_dei), FIELD(vlan_tpid),
					      FIELD(vlan2) };
	static const size_t vlan2_fields[] = { FIELD(vlan2_pcp), FIELD(vlan2_dei) };
	struct tr_stream *s = b->s;
	bool udp_checksum = true;
	int rc = choose_ip(b);

	if (!rc)
		rc = choose_proto(b);
	if (!rc && !b->text->vlan)
		rc = refuse(b, vlan_fields, HO_ARRAY_LEN(vlan_fields),
			    "belongs to a VLAN tag: give vlan, the outer one's id");
	if (!rc && !b->text->vlan2)
		rc = refuse(b, vlan2_fields, HO_ARRAY_LEN(vlan2_fields),
			    "belongs to the inner VLAN tag: give vlan2, its id");
	if (!rc)
		rc = tr_field_yes(b, FIELD(udp_checksum), true, &udp_checksum);
	if (rc)
		return rc;
	if (!udp_checksum && s->ip_version == 6)
		return tr_field_bad(b, FIELD(udp_checksum), "IPv6 requires one (RFC 8200)");
	s->l3_off = PK_ETH_BYTES;
	if (b->text->vlan)
		s->l3_off += PK_VLAN_BYTES * (b->text->vlan2 ? 2 : 1);
	s->l4_off = s->payload_off = s->l3_off;
	if (s->ip_version == 4) {
		s->l4_off += PK_IPV4_BYTES;
		s->ip_len_off = s->l3_off + offsetof(struct pk_ipv4, total_len);
		s->ip_csum_off = s->l3_off + offsetof(struct pk_ipv4, csum);
	} else if (s->ip_version == 6) {
		s->l4_off += PK_IPV6_BYTES;
		s->ip_len_off = s->l3_off + offsetof(struct pk_ipv6, payload_len);
	}
	s->payload_off = s->l4_off;
	switch (b->class) {
	case PROTO_UDP:
		s->payload_off += PK_UDP_BYTES;
		s->udp = true;
		s->udp_len_off = s->l4_off + offsetof(struct pk_udp, len);
		s->l4_csum_off = udp_checksum ? s->l4_off + offsetof(struct pk_udp, csum) : 0;
		break;
	case PROTO_TCP:
		s->payload_off += PK_TCP_BYTES;
		s->l4_csum_off = s->l4_off + offsetof(struct pk_tcp, csum);
		break;
	case PROTO_ICMP:
		s->payload_off += PK_ICMP_BYTES;
		s->l4_csum_off = s->l4_off + offsetof(struct pk_icmp, csum);
		break;
	default:
		break;
	}
	return 0;
}

/* --- length -------------------------------------------------------------------------------- */

static int set_size(struct tr_builder *b, enum tr_stamp_wish stamp)
{
	static const struct tr_domain domain = { TR_VALUE_SIZE, 0, PK_FRAME_MAX_BYTES };
	struct tr_stream *s = b->s;
	uint32_t least = s->payload_off + (stamp == TR_STAMP_NO ? 0 : TR_STAMP_BYTES);
	uint32_t most = PK_FRAME_MAX_BYTES;
	int rc;

	if (s->ip_version)
		most = HO_MIN(most, s->l3_off + (s->ip_version == 6 ? PK_IPV6_BYTES : 0u) + 65535u);
	s->size = tr_vary_fixed(HO_MAX(least, (uint32_t)SIZE_DEFAULT), 0);
	if (b->text->size) {
		rc = tr_field_parse(b, FIELD(size), &domain, &s->size);
		if (rc)
			return rc;
	}
	s->min_bytes = UINT32_MAX;
	s->lengths = calloc(s->size.span + 1, sizeof(*s->lengths));
	if (!s->lengths)
		return ho_err_set(b->err, -ENOMEM, "out of memory");
	for (uint64_t i = 0; i <= s->size.span; i++) {
		uint32_t bytes = (uint32_t)tr_vary_value(&s->size, i);

		s->lengths[i].bytes = bytes;
		s->min_bytes = HO_MIN(s->min_bytes, bytes);
		s->max_bytes = HO_MAX(s->max_bytes, bytes);
	}
	if (s->min_bytes < s->payload_off)
		return tr_field_bad(b, FIELD(size), "frames of %u bytes: the headers alone take %u",
				    s->min_bytes, s->payload_off);
	if (stamp == TR_STAMP_YES && s->min_bytes < least)
		return tr_field_bad(b, FIELD(size),
				    "frames of %u bytes: headers and stamp take %u; larger "
				    "frames or no stamp fit",
				    s->min_bytes, least);
	if (s->max_bytes > most)
		return tr_field_bad(b, FIELD(size),
				    "frames of %u bytes: with these headers %u is the most",
				    s->max_bytes, most);
	s->image = aligned_alloc(HO_CACHE_LINE, HO_ALIGN_UP(s->max_bytes, TR_COPY_UNIT));
	if (!s->image)
		return ho_err_set(b->err, -ENOMEM, "out of memory");
	memset(s->image, 0, HO_ALIGN_UP(s->max_bytes, TR_COPY_UNIT));
	return 0;
}

int tr_stream_build(struct tr_stream *out, const struct tr_stream_text *text, unsigned index,
		    uint64_t seed, enum tr_stamp_wish stamp, uint64_t *weight, const char **fault,
		    struct ho_err *err)
{
	/* Streams of the same fields are to be random in different ways. */
	struct tr_builder b = {
		.s = out, .text = text, .err = err, .seed = tr_mix(seed) + index * 4096
	};
	int rc;

	memset(out, 0, sizeof(*out));
	if (text->name)
		snprintf(out->name, sizeof(out->name), "%s", text->name);
	else
		snprintf(out->name, sizeof(out->name), "stream %u", index + 1);
	rc = tr_field_fixed(&b, FIELD(weight), UINT32_MAX, 1, weight);
	if (!rc)
		rc = lay_out(&b);
	if (!rc)
		rc = set_size(&b, stamp);
	if (!rc)
		rc = tr_stream_fill(&b);
	*fault = b.fault;
	return rc;
}

bool tr_stream_has_room(const struct tr_stream *stream)
{
	return stream->min_bytes >= (uint32_t)stream->payload_off + TR_STAMP_BYTES;
}

/* --- sums ---------------------------------------------------------------------------------- */

/* Sum of the pseudo header's fixed part: addresses and protocol. */
static uint64_t pseudo_sum(const struct tr_stream *s)
{
	const uint8_t *l3 = s->image + s->l3_off;

	if (s->ip_version == 6)
		return pk_csum(l3 + offsetof(struct pk_ipv6, src), 32) + pk_csum_word(s->proto);
	if (s->proto == PK_IP_ICMP)
		return 0;
	return pk_csum(l3 + offsetof(struct pk_ipv4, src), 8) + pk_csum_word(s->proto);
}

static void seal_length(struct tr_stream *s, struct tr_length *length, uint64_t pseudo,
			uint64_t data)
{
	uint32_t l4_bytes = length->bytes - s->l4_off;
	bool pseudo_length = s->ip_version == 6 || s->proto != PK_IP_ICMP;

	if (s->ip_len_off)
		length->ip_len = htobe16(
			(uint16_t)(s->ip_version == 4 ? length->bytes - s->l3_off : l4_bytes));
	if (s->udp_len_off)
		length->udp_len = htobe16((uint16_t)l4_bytes);
	if (s->ip_csum_off)
		length->ip_sum =
			pk_csum_fold(pk_csum(s->image + s->l3_off, PK_IPV4_BYTES) + length->ip_len);
	if (s->l4_csum_off)
		length->l4_sum = pk_csum_fold(pseudo + data + length->udp_len +
					      (pseudo_length ? htobe32(l4_bytes) : 0));
}

struct by_bytes {
	uint32_t bytes, index;
};

static int compare_bytes(const void *a, const void *b)
{
	const struct by_bytes *x = a, *y = b;

	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

int tr_stream_seal(struct tr_stream *s, bool stamped)
{
	uint32_t n = (uint32_t)s->size.span + 1, tail = stamped ? TR_STAMP_BYTES : 0;
	struct by_bytes *order = calloc(n, sizeof(*order));
	uint64_t pseudo = s->l4_csum_off ? pseudo_sum(s) : 0, sum = 0;
	uint32_t at = s->l4_off;
	struct tr_length *only = &s->lengths[0];

	if (!order)
		return -ENOMEM;
	/* From the shortest to the longest, so that each byte is summed up once. */
	for (uint32_t i = 0; i < n; i++)
		order[i] = (struct by_bytes){ s->lengths[i].bytes, i };
	qsort(order, n, sizeof(*order), compare_bytes);
	for (uint32_t i = 0; i < n; i++) {
		/* Even, so that what follows begins at an even offset; an odd last byte is added
		 * for this length only. */
		uint32_t end = order[i].bytes - tail, even = end & ~1u;

		if (s->l4_csum_off && even > at) {
			sum = pk_csum_fold(sum + pk_csum(s->image + at, even - at));
			at = even;
		}
		seal_length(s, &s->lengths[order[i].index], pseudo,
			    sum + (end > even ? pk_csum(s->image + even, 1) : 0));
	}
	free(order);
	for (unsigned i = 0; i < s->n_patches; i++) {
		s->ip_dynamic |= s->ip_csum_off && (s->patch[i].sums & TR_SUM_IP);
		s->l4_dynamic |= s->l4_csum_off && (s->patch[i].sums & TR_SUM_L4);
	}
	s->ip_dynamic |= s->ip_csum_off && n > 1;
	s->l4_dynamic |= s->l4_csum_off && (n > 1 || stamped);
	if (n > 1)
		return 0;
	/* One length: what it gives is the same in all frames. */
	if (s->ip_len_off)
		memcpy(s->image + s->ip_len_off, &only->ip_len, 2);
	if (s->udp_len_off)
		memcpy(s->image + s->udp_len_off, &only->udp_len, 2);
	if (s->ip_csum_off && !s->ip_dynamic) {
		uint16_t csum = pk_csum_finish(only->ip_sum);

		memcpy(s->image + s->ip_csum_off, &csum, 2);
	}
	if (s->l4_csum_off && !s->l4_dynamic) {
		uint16_t csum =
			s->udp ? pk_csum_finish_udp(only->l4_sum) : pk_csum_finish(only->l4_sum);

		memcpy(s->image + s->l4_csum_off, &csum, 2);
	}
	return 0;
}

void tr_stream_free(struct tr_stream *stream)
{
	for (unsigned i = 0; i < stream->n_vary; i++)
		tr_vary_free(&stream->vary[i]);
	tr_vary_free(&stream->size);
	free(stream->lengths);
	free(stream->image);
	stream->lengths = NULL;
	stream->image = NULL;
}
