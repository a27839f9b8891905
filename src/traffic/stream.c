// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/stream.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/headers.h"
#include "traffic/stamp.h"

#define SIZE_DEFAULT 60 /* the shortest Ethernet frame, without FCS */

enum proto_class { PROTO_NONE, PROTO_UDP, PROTO_TCP, PROTO_ICMP, PROTO_OTHER };

/* A stream in the making. */
struct builder {
	struct tr_stream *s;
	const struct tr_stream_text *text;
	enum proto_class class;
	uint64_t seed;
	struct ho_err *err;
};

static const char *key_of(size_t offset)
{
	for (const struct tr_stream_field *f = tr_stream_fields; f->key; f++) {
		if (f->offset == offset)
			return f->key;
	}
	return "?";
}

#define FIELD(member) offsetof(struct tr_stream_text, member)

static const char *text_of(const struct builder *b, size_t field)
{
	return *(const char *const *)((const char *)b->text + field);
}

static int parse(struct builder *b, size_t field, const struct tr_domain *domain,
		 struct tr_vary *out)
{
	int rc = tr_vary_parse(text_of(b, field), domain, out, b->err);

	if (rc)
		ho_err_prefix(b->err, "%s", key_of(field));
	out->salt = tr_mix(b->seed + field);
	return rc;
}

/* A field that must not vary. */
static int parse_fixed(struct builder *b, size_t field, uint64_t max, uint64_t initial,
		       uint64_t *out)
{
	const struct tr_domain domain = { TR_VALUE_NUMBER, 0, max };
	struct tr_vary v;
	int rc;

	*out = initial;
	if (!text_of(b, field))
		return 0;
	rc = parse(b, field, &domain, &v);
	if (rc)
		return rc;
	if (v.span)
		rc = ho_err_set(b->err, -EINVAL, "%s: '%s': this field cannot vary", key_of(field),
				text_of(b, field));
	*out = v.first;
	tr_vary_free(&v);
	return rc;
}

static int parse_yes(struct builder *b, size_t field, bool initial, bool *out)
{
	const char *text = text_of(b, field);

	*out = initial;
	if (!text)
		return 0;
	*out = !strcmp(text, "yes");
	if (*out || !strcmp(text, "no"))
		return 0;
	return ho_err_set(b->err, -EINVAL, "%s: '%s' is neither yes nor no", key_of(field), text);
}

/* Ors a value into the big-endian word of `width` bytes at off. */
static void put(uint8_t *frame, unsigned off, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		frame[off + i] |= (uint8_t)(value >> 8 * (width - 1 - i));
}

/* Where a field is in the frame. */
struct place {
	unsigned off, width, shift, sums;
};

static void patch(struct builder *b, unsigned vary, const struct place *at, bool high)
{
	b->s->patch[b->s->n_patches++] = (struct tr_patch){
		.off = (uint16_t)at->off,
		.width = (uint8_t)at->width,
		.shift = (uint8_t)at->shift,
		.sums = (uint8_t)at->sums,
		.high = high,
		.vary = (uint8_t)vary,
	};
}

/* Takes a value over: into the template if it is fixed, else as a patch. */
static void place_value(struct builder *b, struct tr_vary *v, const struct place *at)
{
	struct tr_stream *s = b->s;

	if (!v->span) {
		put(s->image, at->off, at->width, v->first << at->shift);
		return;
	}
	s->vary[s->n_vary] = *v;
	patch(b, s->n_vary, at, false);
	s->n_vary++;
}

static int number(struct builder *b, size_t field, uint64_t max, uint64_t initial,
		  const struct place *at)
{
	const struct tr_domain domain = { TR_VALUE_NUMBER, 0, max };
	struct tr_vary v = tr_vary_fixed(initial, 0);
	int rc = text_of(b, field) ? parse(b, field, &domain, &v) : 0;

	if (!rc)
		place_value(b, &v, at);
	return rc;
}

static int mac(struct builder *b, size_t field, uint64_t initial, unsigned off)
{
	/* The word reaches two bytes beyond the address: they are the shift's zeros. */
	const struct place at = { off, 8, 16, 0 };
	const struct tr_domain domain = { TR_VALUE_MAC, 0, 0 };
	struct tr_vary v = tr_vary_fixed(initial, 0);
	int rc = text_of(b, field) ? parse(b, field, &domain, &v) : 0;

	if (!rc)
		place_value(b, &v, &at);
	return rc;
}

static int address4(struct builder *b, size_t field, uint32_t initial, unsigned off, unsigned sums)
{
	const struct place at = { off, 4, 0, sums };
	const struct tr_domain domain = { TR_VALUE_IPV4, 0, 0 };
	struct tr_vary v = tr_vary_fixed(initial, 0);
	int rc = text_of(b, field) ? parse(b, field, &domain, &v) : 0;

	if (!rc)
		place_value(b, &v, &at);
	return rc;
}

static int address6(struct builder *b, size_t field, uint64_t initial_low, unsigned off,
		    unsigned sums)
{
	const struct place high = { off, 8, 0, sums }, low = { off + 8, 8, 0, sums };
	const struct tr_domain domain = { TR_VALUE_IPV6, 0, 0 };
	struct tr_vary v = tr_vary_fixed(initial_low, 0x2001000200000000u);
	int rc = text_of(b, field) ? parse(b, field, &domain, &v) : 0;

	if (rc)
		return rc;
	/* Both halves share the value, so that a random choice is the same for both. */
	if (v.list_high)
		patch(b, b->s->n_vary, &high, true);
	else
		put(b->s->image, off, 8, v.high);
	place_value(b, &v, &low);
	return 0;
}

/* --- layout -------------------------------------------------------------------------------- */

static int refuse(struct builder *b, const size_t *fields, unsigned n, const char *why)
{
	for (unsigned i = 0; i < n; i++) {
		if (text_of(b, fields[i]))
			return ho_err_set(b->err, -EINVAL, "%s: %s", key_of(fields[i]), why);
	}
	return 0;
}

static int choose_ip(struct builder *b)
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
		return ho_err_set(b->err, -EINVAL,
				  "ip-src '%s' and ip-dst '%s' are not of the same IP version", src,
				  dst);
	b->s->ip_version = src6 || dst6 ? 6 : 4;
	if (b->s->ip_version == 6)
		return refuse(b, v4_fields, HO_ARRAY_LEN(v4_fields), "only IPv4 has this field");
	return refuse(b, v6_fields, HO_ARRAY_LEN(v6_fields),
		      "only IPv6 has this field; give IPv6 addresses with it");
}

static int choose_proto(struct builder *b)
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
		rc = parse_fixed(b, FIELD(proto), domain.max, 0, &value);
		if (rc)
			return ho_err_set(b->err, rc,
					  "proto: '%s' is not udp, tcp, icmp or a number to 255",
					  text);
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
static int lay_out(struct builder *b)
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
		rc = parse_yes(b, FIELD(udp_checksum), true, &udp_checksum);
	if (rc)
		return rc;
	if (!udp_checksum && s->ip_version == 6)
		return ho_err_set(b->err, -EINVAL, "udp-checksum: IPv6 requires one (RFC 8200)");
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

static int set_size(struct builder *b, enum tr_stamp_wish stamp)
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
		rc = parse(b, FIELD(size), &domain, &s->size);
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
		return ho_err_set(b->err, -EINVAL,
				  "size: frames of %u bytes: the headers alone take %u",
				  s->min_bytes, s->payload_off);
	if (stamp == TR_STAMP_YES && s->min_bytes < least)
		return ho_err_set(b->err, -EINVAL,
				  "size: frames of %u bytes: headers and stamp take %u; larger "
				  "frames or no stamp fit",
				  s->min_bytes, least);
	if (s->max_bytes > most)
		return ho_err_set(b->err, -EINVAL,
				  "size: frames of %u bytes: with these headers %u is the most",
				  s->max_bytes, most);
	s->image = aligned_alloc(HO_CACHE_LINE, HO_ALIGN_UP(s->max_bytes, TR_COPY_UNIT));
	if (!s->image)
		return ho_err_set(b->err, -ENOMEM, "out of memory");
	memset(s->image, 0, HO_ALIGN_UP(s->max_bytes, TR_COPY_UNIT));
	return 0;
}

/* --- fields -------------------------------------------------------------------------------- */

static int fill_ethernet(struct builder *b)
{
	struct tr_stream *s = b->s;
	uint64_t type = s->ip_version == 4 ? PK_ETH_IPV4 : PK_ETH_IPV6, tpid;
	unsigned off = 12;
	int rc;

	rc = mac(b, FIELD(eth_dst), 0x020000000002, 0);
	if (!rc)
		rc = mac(b, FIELD(eth_src), 0x020000000001, 6);
	if (!rc && b->text->vlan)
		rc = parse_fixed(b, FIELD(vlan_tpid), 0xffff,
				 b->text->vlan2 ? PK_ETH_QINQ : PK_ETH_VLAN, &tpid);
	if (!rc && b->text->vlan) {
		put(s->image, off, 2, tpid);
		off += 2;
		rc = number(b, FIELD(vlan), PK_VLAN_ID_MAX, 0, &(struct place){ off, 2, 0, 0 });
		if (!rc)
			rc = number(b, FIELD(vlan_pcp), 7, 0, &(struct place){ off, 2, 13, 0 });
		if (!rc)
			rc = number(b, FIELD(vlan_dei), 1, 0, &(struct place){ off, 2, 12, 0 });
		off += 2;
	}
	if (!rc && b->text->vlan2) {
		put(s->image, off, 2, PK_ETH_VLAN);
		off += 2;
		rc = number(b, FIELD(vlan2), PK_VLAN_ID_MAX, 0, &(struct place){ off, 2, 0, 0 });
		if (!rc)
			rc = number(b, FIELD(vlan2_pcp), 7, 0, &(struct place){ off, 2, 13, 0 });
		if (!rc)
			rc = number(b, FIELD(vlan2_dei), 1, 0, &(struct place){ off, 2, 12, 0 });
		off += 2;
	}
	if (!rc && !s->ip_version)
		rc = parse_fixed(b, FIELD(ethertype), 0xffff, 0, &type);
	if (rc)
		return rc;
	if (type < PK_ETH_TYPE_MIN)
		return ho_err_set(b->err, -EINVAL,
				  "ethertype: '%s' is below 0x600, where it would be a length",
				  b->text->ethertype);
	put(s->image, off, 2, type);
	return 0;
}

static int fill_ipv4(struct builder *b)
{
	/* The addresses are in the pseudo header too, for all but ICMP. */
	unsigned both = TR_SUM_IP | (b->class == PROTO_ICMP ? 0 : TR_SUM_L4);
	unsigned l3 = b->s->l3_off;
	bool df;
	int rc;

	b->s->image[l3] = 0x45;
	b->s->image[l3 + 9] = b->s->proto;
	rc = number(b, FIELD(tos), 255, 0, &(struct place){ l3, 2, 0, TR_SUM_IP });
	if (!rc)
		rc = number(b, FIELD(ip_id), 65535, 0, &(struct place){ l3 + 4, 2, 0, TR_SUM_IP });
	if (!rc)
		rc = parse_yes(b, FIELD(df), false, &df);
	if (!rc && df)
		put(b->s->image, l3 + 6, 2, PK_IPV4_DF);
	if (!rc)
		rc = number(b, FIELD(ttl), 255, 64, &(struct place){ l3 + 8, 2, 8, TR_SUM_IP });
	if (!rc)
		rc = address4(b, FIELD(ip_src), 0xc6120001, l3 + 12, both);
	if (!rc)
		rc = address4(b, FIELD(ip_dst), 0xc6120002, l3 + 16, both);
	return rc;
}

static int fill_ipv6(struct builder *b)
{
	unsigned l3 = b->s->l3_off;
	int rc;

	b->s->image[l3] = 0x60;
	b->s->image[l3 + 6] = b->s->proto;
	rc = number(b, FIELD(tos), 255, 0, &(struct place){ l3, 4, 20, 0 });
	if (!rc)
		rc = number(b, FIELD(flow_label), 0xfffff, 0, &(struct place){ l3, 4, 0, 0 });
	if (!rc)
		rc = number(b, FIELD(ttl), 255, 64, &(struct place){ l3 + 6, 2, 0, 0 });
	if (!rc)
		rc = address6(b, FIELD(ip_src), 1, l3 + 8, TR_SUM_L4);
	if (!rc)
		rc = address6(b, FIELD(ip_dst), 2, l3 + 24, TR_SUM_L4);
	return rc;
}

static int fill_tcp_flags(struct builder *b, uint8_t *out)
{
	static const char letters[] = "fsrpauec";
	const char *text = b->text->tcp_flags ? b->text->tcp_flags : "a";

	*out = 0;
	for (const char *p = text; *p; p++) {
		const char *at = strchr(letters, tolower((unsigned char)*p));

		if (!at)
			return ho_err_set(b->err, -EINVAL,
					  "tcp-flags: '%s': '%c' is none of the flags %s", text, *p,
					  letters);
		*out |= (uint8_t)(1u << (at - letters));
	}
	return 0;
}

static int fill_l4(struct builder *b)
{
	unsigned l4 = b->s->l4_off;
	uint64_t type = b->s->ip_version == 4 ? 8 : 128;
	int rc = 0;

	if (b->class == PROTO_UDP || b->class == PROTO_TCP) {
		rc = number(b, FIELD(src_port), 65535, 49152,
			    &(struct place){ l4, 2, 0, TR_SUM_L4 });
		if (!rc)
			rc = number(b, FIELD(dst_port), 65535, 9,
				    &(struct place){ l4 + 2, 2, 0, TR_SUM_L4 });
	}
	if (!rc && b->class == PROTO_TCP) {
		b->s->image[l4 + 12] = PK_TCP_BYTES / 4 << 4;
		rc = fill_tcp_flags(b, &b->s->image[l4 + 13]);
		if (!rc)
			rc = number(b, FIELD(tcp_seq), UINT32_MAX, 0,
				    &(struct place){ l4 + 4, 4, 0, TR_SUM_L4 });
		if (!rc)
			rc = number(b, FIELD(tcp_ack), UINT32_MAX, 0,
				    &(struct place){ l4 + 8, 4, 0, TR_SUM_L4 });
		if (!rc)
			rc = number(b, FIELD(tcp_window), 65535, 65535,
				    &(struct place){ l4 + 14, 2, 0, TR_SUM_L4 });
	}
	if (b->class == PROTO_ICMP) {
		rc = number(b, FIELD(icmp_type), 255, type, &(struct place){ l4, 2, 8, TR_SUM_L4 });
		if (!rc)
			rc = number(b, FIELD(icmp_code), 255, 0,
				    &(struct place){ l4, 2, 0, TR_SUM_L4 });
		if (!rc)
			rc = number(b, FIELD(icmp_id), 65535, 1,
				    &(struct place){ l4 + 4, 2, 0, TR_SUM_L4 });
		if (!rc)
			rc = number(b, FIELD(icmp_seq), 65535, 0,
				    &(struct place){ l4 + 6, 2, 0, TR_SUM_L4 });
	}
	return rc;
}

static int fill_hex(struct builder *b, const char *hex, uint8_t *to, uint32_t left)
{
	size_t n = strlen(hex);

	if (!n || n % 2 || strspn(hex, "0123456789abcdefABCDEF") != n)
		return ho_err_set(b->err, -EINVAL,
				  "payload: 'hex:%s' is not pairs of hexadecimal digits", hex);
	for (uint32_t i = 0; i < left; i++) {
		unsigned byte;

		sscanf(hex + 2 * (i % (n / 2)), "%2x", &byte);
		to[i] = (uint8_t)byte;
	}
	return 0;
}

static int fill_payload(struct builder *b)
{
	const char *text = b->text->payload ? b->text->payload : "zero";
	uint8_t *to = b->s->image + b->s->payload_off;
	uint32_t left = b->s->max_bytes - b->s->payload_off;

	if (!strcmp(text, "zero")) {
		return 0;
	} else if (!strcmp(text, "counting")) {
		for (uint32_t i = 0; i < left; i++)
			to[i] = (uint8_t)i;
		return 0;
	} else if (!strcmp(text, "random")) {
		uint64_t salt = tr_mix(b->seed + FIELD(payload));

		for (uint32_t i = 0; i < left; i++)
			to[i] = (uint8_t)tr_mix(salt + i);
		return 0;
	} else if (!strncmp(text, "text:", 5) && text[5]) {
		for (uint32_t i = 0; i < left; i++)
			to[i] = (uint8_t)text[5 + i % strlen(text + 5)];
		return 0;
	} else if (!strncmp(text, "hex:", 4)) {
		return fill_hex(b, text + 4, to, left);
	}
	return ho_err_set(b->err, -EINVAL,
			  "payload: '%s' is none of zero, counting, random, text:TEXT, hex:DIGITS",
			  text);
}

int tr_stream_build(struct tr_stream *out, const struct tr_stream_text *text, unsigned index,
		    uint64_t seed, enum tr_stamp_wish stamp, uint64_t *weight, struct ho_err *err)
{
	/* Streams of the same fields are to be random in different ways. */
	struct builder b = {
		.s = out, .text = text, .err = err, .seed = tr_mix(seed) + index * 4096
	};
	int rc;

	memset(out, 0, sizeof(*out));
	if (text->name)
		snprintf(out->name, sizeof(out->name), "%s", text->name);
	else
		snprintf(out->name, sizeof(out->name), "stream %u", index + 1);
	rc = parse_fixed(&b, FIELD(weight), UINT32_MAX, 1, weight);
	if (!rc)
		rc = lay_out(&b);
	if (!rc)
		rc = set_size(&b, stamp);
	if (!rc)
		rc = fill_ethernet(&b);
	if (!rc && out->ip_version)
		rc = out->ip_version == 4 ? fill_ipv4(&b) : fill_ipv6(&b);
	if (!rc)
		rc = fill_l4(&b);
	if (!rc)
		rc = fill_payload(&b);
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
