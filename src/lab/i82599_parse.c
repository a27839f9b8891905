// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the receive path finds out about a frame: address and VLAN filters (7.1.1), packet type,
 * RSS hash and queue (7.1.2.8), checksums (7.1.11).
 */
#include "lab/i82599_impl.h"

static inline uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* --- filters ------------------------------------------------------------------------------ */

static bool exact_match(const struct i82599 *c, const uint8_t *mac)
{
	uint32_t low, high;

	memcpy(&low, mac, 4);
	high = (uint32_t)mac[4] | (uint32_t)mac[5] << 8;
	for (unsigned i = 0; i < 128; i++) {
		uint32_t rah = reg_of(c, R_RAL + 8 * i + 4);

		if (rah & RAH_VALID && reg_of(c, R_RAL + 8 * i) == low && (rah & 0xffff) == high)
			return true;
	}
	return false;
}

/* Twelve bits of the address, which ones MCSTCTRL.MO says, choose a bit of the table. */
static bool hash_match(const struct i82599 *c, const uint8_t *mac)
{
	static const unsigned shift[4] = { 4, 3, 2, 0 };
	uint32_t control = reg_of(c, R_MCSTCTRL);
	uint32_t bit = ((uint32_t)mac[4] | (uint32_t)mac[5] << 8) >> shift[control & 3] & 0xfff;

	return control & MCSTCTRL_ENABLE && reg_of(c, R_MTA + bit / 32 * 4) >> bit % 32 & 1;
}

bool i82599_filter(const struct i82599 *c, const uint8_t *data, uint32_t bytes, bool *inexact)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };
	uint32_t control = reg_of(c, R_FCTRL), vlan = reg_of(c, R_VLNCTRL);
	bool pass;

	*inexact = false;
	if (!(data[0] & 1)) {
		pass = exact_match(c, data);
		if (!pass && control & FCTRL_UNICAST_ALL)
			pass = *inexact = true;
	} else if (!memcmp(data, broadcast, 6)) {
		pass = control & FCTRL_BROADCAST;
	} else {
		pass = exact_match(c, data);
		if (!pass)
			pass = *inexact = control & FCTRL_MULTICAST_ALL || hash_match(c, data);
	}
	if (pass && vlan & VLNCTRL_FILTER && bytes >= 18 && get16(data + 12) == (vlan & 0xffff)) {
		uint32_t id = get16(data + 14) & 0xfff;

		pass = reg_of(c, R_VFTA + id / 32 * 4) >> id % 32 & 1;
	}
	return pass;
}

/* --- RSS ---------------------------------------------------------------------------------- */

static inline uint32_t key_word(const struct i82599 *c, unsigned byte)
{
	const uint8_t *key = (const uint8_t *)&c->reg[R_RSSRK / 4] + byte;

	return (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
}

/* Toeplitz: for each set bit of the input the 32 bits of the key from there on. */
static uint32_t toeplitz(const struct i82599 *c, const uint8_t *input, unsigned bytes)
{
	uint32_t hash = 0;

	for (unsigned i = 0; i < bytes; i++) {
		uint64_t window = (uint64_t)key_word(c, i) << 8 |
				  ((const uint8_t *)&c->reg[R_RSSRK / 4])[i + 4];

		for (uint8_t bits = input[i]; bits; bits &= (uint8_t)(bits - 1)) {
			unsigned from_top = 7 - (unsigned)__builtin_ctz(bits);

			hash ^= (uint32_t)(window >> (8 - from_top));
		}
	}
	return hash;
}

struct layers {
	const uint8_t *l3, *l4; /* NULL if absent; l4 of an unfragmented packet only */
	uint32_t l3_bytes;      /* as the header says, at most what is there */
	uint32_t l4_bytes;
	uint8_t protocol;
	bool v6;
};

static void hash(const struct i82599 *c, struct rx_frame *frame, const struct layers *l)
{
	uint32_t control = reg_of(c, R_MRQC), type = RXD_RSS_NONE;
	unsigned addresses = l->v6 ? 32 : 8;
	bool tcp = l->l4 && l->protocol == 6 && l->l4_bytes >= 20;
	bool udp = l->l4 && l->protocol == 17 && l->l4_bytes >= 8;
	uint8_t input[36];
	unsigned bytes = addresses;

	if (!(control & 0xf))
		return;
	if (l->l3) {
		if (tcp && control & (l->v6 ? MRQC_TCP6 : MRQC_TCP4))
			type = l->v6 ? RXD_RSS_TCP6 : RXD_RSS_TCP4;
		else if (udp && control & (l->v6 ? MRQC_UDP6 : MRQC_UDP4))
			type = l->v6 ? RXD_RSS_UDP6 : RXD_RSS_UDP4;
		else if (control & (l->v6 ? MRQC_IP6 : MRQC_IP4))
			type = l->v6 ? RXD_RSS_IP6 : RXD_RSS_IP4;
	}
	if (type != RXD_RSS_NONE) {
		memcpy(input, l->l3 + (l->v6 ? 8 : 12), addresses);
		if (type != RXD_RSS_IP4 && type != RXD_RSS_IP6) {
			memcpy(input + addresses, l->l4, 4);
			bytes += 4;
		}
		frame->hash = toeplitz(c, input, bytes);
		frame->queue = ((const uint8_t *)&c->reg[R_RETA / 4])[frame->hash & 127] & 15;
	}
	frame->type |= type;
}

/* --- checksums ---------------------------------------------------------------------------- */

static uint32_t pseudo_sum(const struct layers *l)
{
	uint32_t sum = i82599_sum(l->l3 + (l->v6 ? 8 : 12), l->v6 ? 32 : 8, l->protocol);

	return i82599_sum((const uint8_t[2]){ (uint8_t)(l->l4_bytes >> 8), (uint8_t)l->l4_bytes },
			  2, sum);
}

static void verify(struct rx_frame *frame, const struct layers *l, uint32_t header_bytes)
{
	if (!l->v6) {
		frame->status |= RXD_IP_SUM;
		if (i82599_fold(i82599_sum(l->l3, header_bytes, 0)) != 0xffff)
			frame->status |= RXD_IP_ERROR;
	}
	if (!l->l4 || (l->protocol != 6 && l->protocol != 17))
		return;
	if (l->protocol == 17) {
		if (l->l4_bytes < 8 || !get16(l->l4 + 6))
			return; /* the sender made none */
		frame->status |= RXD_UDP_SUM | RXD_UDP_VALID;
	} else if (l->l4_bytes < 20) {
		return;
	}
	frame->status |= RXD_L4_SUM;
	if (i82599_fold(i82599_sum(l->l4, l->l4_bytes, pseudo_sum(l))) != 0xffff)
		frame->status |= RXD_L4_ERROR;
}

/* --- all together ------------------------------------------------------------------------- */

static void find_ipv4(struct rx_frame *frame, struct layers *l, uint32_t left)
{
	uint32_t header = (uint32_t)(l->l3[0] & 15) * 4, total = get16(l->l3 + 2);

	if (l->l3[0] >> 4 != 4 || header < 20 || total < header || total > left) {
		l->l3 = NULL;
		return;
	}
	frame->type |= header > 20 ? RXD_TYPE_IP4 | RXD_TYPE_IP4_OPTIONS : RXD_TYPE_IP4;
	l->protocol = l->l3[9];
	if (!(get16(l->l3 + 6) & 0x3fff)) {
		l->l4 = l->l3 + header;
		l->l4_bytes = total - header;
	}
	verify(frame, l, header);
}

static void find_ipv6(struct rx_frame *frame, struct layers *l, uint32_t left)
{
	uint32_t payload = get16(l->l3 + 4), at = 40;
	uint8_t next = l->l3[6];

	if (l->l3[0] >> 4 != 6 || payload + 40 > left) {
		l->l3 = NULL;
		return;
	}
	l->v6 = true;
	/* Hop-by-hop, routing and destination options are stepped over; a fragment is not. */
	while ((next == 0 || next == 43 || next == 60) && at + 8 <= payload + 40) {
		next = l->l3[at];
		at += 8u * (l->l3[at + 1] + 1u);
	}
	frame->type |= at > 40 ? RXD_TYPE_IP6_EXT : RXD_TYPE_IP6;
	if (at > payload + 40 || next == 44)
		return;
	l->protocol = next;
	l->l4 = l->l3 + at;
	l->l4_bytes = payload + 40 - at;
	verify(frame, l, 0);
}

void i82599_parse(const struct i82599 *c, struct rx_frame *frame)
{
	uint32_t at = 12, ethertype = get16(frame->data + at);
	struct layers l = { .l3 = NULL };

	frame->type = frame->hash = 0;
	frame->queue = 0;
	frame->vlan = 0;
	if (ethertype == (reg_of(c, R_VLNCTRL) & 0xffff) && frame->bytes >= 18) {
		frame->vlan = (uint16_t)get16(frame->data + 14);
		frame->status |= RXD_VLAN;
		at = 16;
		ethertype = get16(frame->data + at);
	}
	at += 2;
	if (ethertype == 0x0800 && frame->bytes >= at + 20) {
		l.l3 = frame->data + at;
		find_ipv4(frame, &l, frame->bytes - at);
	} else if (ethertype == 0x86dd && frame->bytes >= at + 40) {
		l.l3 = frame->data + at;
		find_ipv6(frame, &l, frame->bytes - at);
	}
	if (l.l4)
		frame->type |= l.protocol == 6     ? RXD_TYPE_TCP
			       : l.protocol == 17  ? RXD_TYPE_UDP
			       : l.protocol == 132 ? RXD_TYPE_SCTP
						   : 0;
	hash(c, frame, &l);
}
