// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the transmit path puts into frames: checksums (7.2.5), VLAN tags (7.4), headers of segments
 * (7.2.4). RFC 1071 for the sum; all fields are big endian.
 */
#include <endian.h>
#include <string.h>

#include "lab/i82599_impl.h"

static inline uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint16_t fold64(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return i82599_fold((uint32_t)sum);
}

static inline void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

uint32_t i82599_sum(const uint8_t *data, uint32_t bytes, uint32_t sum)
{
	uint64_t wide = 0;

	/* In the order of this machine first, eight bytes at a time: whose bytes are swapped does
	 * not matter to the sum until it is folded (RFC 1071 section 2). */
	for (; bytes >= 8; bytes -= 8, data += 8) {
		uint64_t word;

		memcpy(&word, data, 8);
		wide += (word & 0xffffffff) + (word >> 32);
	}
	wide = be16toh(fold64(wide));
	wide += sum;
	for (; bytes >= 2; bytes -= 2, data += 2)
		wide += get16(data);
	if (bytes)
		wide += (uint32_t)data[0] << 8;
	while (wide >> 32)
		wide = (wide & 0xffffffff) + (wide >> 32);
	return (uint32_t)wide;
}

uint16_t i82599_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void sum_ip(uint8_t *header, uint32_t bytes)
{
	put16(header + 10, 0);
	put16(header + 10, (uint16_t)~i82599_fold(i82599_sum(header, bytes, 0)));
}

/* The field holds the pseudo header's sum already. `udp`: a sum of 0 is sent as ffff (RFC 768). */
static void sum_l4(uint8_t *header, uint32_t bytes, bool udp)
{
	uint16_t sum = (uint16_t)~i82599_fold(i82599_sum(header, bytes, 0));

	put16(header + (udp ? 6 : 16), udp && !sum ? 0xffff : sum);
}

bool i82599_checksums(uint8_t *frame, uint32_t bytes, const struct tx_context *context,
		      uint32_t info)
{
	uint32_t mac = context->vlan_lengths >> 9 & 0x7f, ip = context->vlan_lengths & 0x1ff;
	uint32_t l4 = context->type >> TXC_L4_SHIFT & 3;

	if (info & TXD_IP_SUM) {
		if (ip < 20 || mac + ip > bytes)
			return false;
		sum_ip(frame + mac, ip);
	}
	if (info & TXD_L4_SUM) {
		if (l4 > 1 || mac + ip + (l4 ? 20u : 8u) > bytes)
			return false;
		sum_l4(frame + mac + ip, bytes - mac - ip, !l4);
	}
	return true;
}

uint32_t i82599_insert_vlan(uint8_t *frame, uint32_t bytes, uint16_t tag)
{
	memmove(frame + 16, frame + 12, bytes - 12);
	put16(frame + 12, 0x8100);
	put16(frame + 14, tag);
	return bytes + 4;
}

void i82599_segment(uint8_t *frame, uint32_t bytes, const struct tx_context *context,
		    uint32_t headers, uint32_t n, uint32_t offset, bool first, bool last)
{
	uint32_t mac = context->vlan_lengths >> 9 & 0x7f, ip = context->vlan_lengths & 0x1ff;
	uint8_t *l3 = frame + mac, *tcp = frame + mac + ip;
	uint32_t seq = get16(tcp + 4) << 16 | get16(tcp + 6);

	if (context->type & TXC_IPV4) {
		put16(l3 + 2, bytes - mac);
		put16(l3 + 4, get16(l3 + 4) + n);
		sum_ip(l3, ip);
	} else {
		put16(l3 + 4, bytes - mac - 40);
	}
	seq += offset;
	put16(tcp + 4, seq >> 16);
	put16(tcp + 6, seq);
	/* FIN and PSH belong to the last segment, CWR to the first. */
	if (!last)
		tcp[13] &= (uint8_t)~0x09;
	if (!first)
		tcp[13] &= (uint8_t)~0x80;
	/* Software's pseudo header sum has no length in it: it differs between segments. */
	put16(tcp + 16,
	      i82599_fold(get16(tcp + 16) + bytes - headers + (context->mss_l4len >> 8 & 0xff)));
	sum_l4(tcp, bytes - mac - ip, false);
}
