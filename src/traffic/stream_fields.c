// SPDX-License-Identifier: BSD-2-Clause
/* A stream's fields: from text to value, and from value into the template or a patch. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "packet/headers.h"
#include "traffic/stream_impl.h"

/* --- texts --------------------------------------------------------------------------------- */

static const char *key_of(size_t offset)
{
	for (const struct tr_stream_field *f = tr_stream_fields; f->key; f++) {
		if (f->offset == offset)
			return f->key;
	}
	return "?";
}

int tr_field_bad(struct tr_builder *b, size_t field, const char *fmt, ...)
{
	char text[HO_ERR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	b->fault = key_of(field);
	return ho_err_set(b->err, -EINVAL, "%s: %s", b->fault, text);
}

int tr_field_parse(struct tr_builder *b, size_t field, const struct tr_domain *domain,
		   struct tr_vary *out)
{
	int rc = tr_vary_parse(tr_field_text(b, field), domain, out, b->err);

	if (rc) {
		b->fault = key_of(field);
		ho_err_prefix(b->err, "%s", b->fault);
	}
	out->salt = tr_mix(b->seed + field);
	return rc;
}

/* A field that must not vary. */
int tr_field_fixed(struct tr_builder *b, size_t field, uint64_t max, uint64_t initial,
		   uint64_t *out)
{
	const struct tr_domain domain = { TR_VALUE_NUMBER, 0, max };
	struct tr_vary v;
	int rc;

	*out = initial;
	if (!tr_field_text(b, field))
		return 0;
	rc = tr_field_parse(b, field, &domain, &v);
	if (rc)
		return rc;
	if (v.span)
		rc = tr_field_bad(b, field, "'%s': this field cannot vary",
				  tr_field_text(b, field));
	*out = v.first;
	tr_vary_free(&v);
	return rc;
}

int tr_field_yes(struct tr_builder *b, size_t field, bool initial, bool *out)
{
	const char *text = tr_field_text(b, field);

	*out = initial;
	if (!text)
		return 0;
	*out = !strcmp(text, "yes");
	if (*out || !strcmp(text, "no"))
		return 0;
	return tr_field_bad(b, field, "'%s' is neither yes nor no", text);
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

static void patch(struct tr_builder *b, unsigned vary, const struct place *at, bool high)
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
static void place_value(struct tr_builder *b, struct tr_vary *v, const struct place *at)
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

static int number(struct tr_builder *b, size_t field, uint64_t max, uint64_t initial,
		  const struct place *at)
{
	const struct tr_domain domain = { TR_VALUE_NUMBER, 0, max };
	struct tr_vary v = tr_vary_fixed(initial, 0);
	int rc = tr_field_text(b, field) ? tr_field_parse(b, field, &domain, &v) : 0;

	if (!rc)
		place_value(b, &v, at);
	return rc;
}

static int mac(struct tr_builder *b, size_t field, uint64_t initial, unsigned off)
{
	/* The word reaches two bytes beyond the address: they are the shift's zeros. */
	const struct place at = { off, 8, 16, 0 };
	const struct tr_domain domain = { TR_VALUE_MAC, 0, 0 };
	struct tr_vary v = tr_vary_fixed(initial, 0);
	int rc = tr_field_text(b, field) ? tr_field_parse(b, field, &domain, &v) : 0;

	if (!rc)
		place_value(b, &v, &at);
	return rc;
}

static int address4(struct tr_builder *b, size_t field, uint32_t initial, unsigned off,
		    unsigned sums)
{
	const struct place at = { off, 4, 0, sums };
	const struct tr_domain domain = { TR_VALUE_IPV4, 0, 0 };
	struct tr_vary v = tr_vary_fixed(initial, 0);
	int rc = tr_field_text(b, field) ? tr_field_parse(b, field, &domain, &v) : 0;

	if (!rc)
		place_value(b, &v, &at);
	return rc;
}

static int address6(struct tr_builder *b, size_t field, uint64_t initial_low, unsigned off,
		    unsigned sums)
{
	const struct place high = { off, 8, 0, sums }, low = { off + 8, 8, 0, sums };
	const struct tr_domain domain = { TR_VALUE_IPV6, 0, 0 };
	struct tr_vary v = tr_vary_fixed(initial_low, 0x2001000200000000u);
	int rc = tr_field_text(b, field) ? tr_field_parse(b, field, &domain, &v) : 0;

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

/* --- headers and payload ------------------------------------------------------------------- */

static int fill_ethernet(struct tr_builder *b)
{
	struct tr_stream *s = b->s;
	uint64_t type = s->ip_version == 4 ? PK_ETH_IPV4 : PK_ETH_IPV6, tpid;
	unsigned off = 12;
	int rc;

	rc = mac(b, FIELD(eth_dst), 0x020000000002, 0);
	if (!rc)
		rc = mac(b, FIELD(eth_src), 0x020000000001, 6);
	s->source_open = !b->text->eth_src;
	if (!rc && b->text->vlan)
		rc = tr_field_fixed(b, FIELD(vlan_tpid), 0xffff,
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
		rc = tr_field_fixed(b, FIELD(ethertype), 0xffff, 0, &type);
	if (rc)
		return rc;
	if (type < PK_ETH_TYPE_MIN)
		return tr_field_bad(b, FIELD(ethertype),
				    "'%s' is below 0x600, where it would be a length",
				    b->text->ethertype);
	put(s->image, off, 2, type);
	return 0;
}

static int fill_ipv4(struct tr_builder *b)
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
		rc = tr_field_yes(b, FIELD(df), false, &df);
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

static int fill_ipv6(struct tr_builder *b)
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

static int fill_tcp_flags(struct tr_builder *b, uint8_t *out)
{
	static const char letters[] = "fsrpauec";
	const char *text = b->text->tcp_flags ? b->text->tcp_flags : "a";

	*out = 0;
	for (const char *p = text; *p; p++) {
		const char *at = strchr(letters, tolower((unsigned char)*p));

		if (!at)
			return tr_field_bad(b, FIELD(tcp_flags),
					    "'%s': '%c' is none of the flags %s", text, *p,
					    letters);
		*out |= (uint8_t)(1u << (at - letters));
	}
	return 0;
}

static int fill_l4(struct tr_builder *b)
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

static int fill_hex(struct tr_builder *b, const char *hex, uint8_t *to, uint32_t left)
{
	size_t n = strlen(hex);

	if (!n || n % 2 || strspn(hex, "0123456789abcdefABCDEF") != n)
		return tr_field_bad(b, FIELD(payload),
				    "'hex:%s' is not pairs of hexadecimal digits", hex);
	for (uint32_t i = 0; i < left; i++) {
		unsigned byte;

		sscanf(hex + 2 * (i % (n / 2)), "%2x", &byte);
		to[i] = (uint8_t)byte;
	}
	return 0;
}

static int fill_payload(struct tr_builder *b)
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
	return tr_field_bad(b, FIELD(payload),
			    "'%s' is none of zero, counting, random, text:TEXT, hex:DIGITS", text);
}

int tr_stream_fill(struct tr_builder *b)
{
	int rc = fill_ethernet(b);

	if (!rc && b->s->ip_version)
		rc = b->s->ip_version == 4 ? fill_ipv4(b) : fill_ipv6(b);
	if (!rc)
		rc = fill_l4(b);
	if (!rc)
		rc = fill_payload(b);
	return rc;
}
