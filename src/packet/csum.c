// SPDX-License-Identifier: BSD-2-Clause
#include "packet/csum.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

/* Portable vectors of GCC and clang: one SIMD register on any 64-bit CPU. */
typedef uint64_t v2u64 __attribute__((vector_size(16)));

/*
 * 32-bit words are added into 64-bit lanes: no carry gets lost in 2^32 additions, and modulo 65535
 * a 32-bit word is the sum of its halves. Four independent sums keep the adders busy.
 */
static uint64_t sum_blocks(const uint8_t *at, size_t blocks)
{
	const v2u64 low = { 0xffffffff, 0xffffffff };
	v2u64 a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, w, x, y, z;

	for (; blocks; blocks--, at += 64) {
		memcpy(&w, at, sizeof(w));
		memcpy(&x, at + 16, sizeof(x));
		memcpy(&y, at + 32, sizeof(y));
		memcpy(&z, at + 48, sizeof(z));
		a += (w & low) + (w >> 32);
		b += (x & low) + (x >> 32);
		c += (y & low) + (y >> 32);
		d += (z & low) + (z >> 32);
	}
	a += b + c + d;
	return a[0] + a[1];
}

uint64_t pk_csum(const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t sum = 0;

	if (bytes >= 64) {
		sum = sum_blocks(at, bytes / 64);
		at += bytes / 64 * 64;
		bytes %= 64;
	}
	for (; bytes >= 8; bytes -= 8, at += 8) {
		uint64_t x;

		memcpy(&x, at, 8);
		sum += (x & 0xffffffff) + (x >> 32);
	}
	/* Word by word: a copy of variable length would be a call. */
	if (bytes & 4) {
		uint32_t x;

		memcpy(&x, at, 4);
		sum += x;
		at += 4;
	}
	if (bytes & 2) {
		uint16_t x;

		memcpy(&x, at, 2);
		sum += x;
		at += 2;
	}
	if (bytes & 1)
		sum += htobe16((uint16_t)(*at << 8));
	return sum;
}

uint16_t pk_csum_update(uint16_t csum, const void *old, const void *new, size_t bytes)
{
	return pk_csum_finish((uint64_t)(uint16_t)~csum +
			      (uint16_t)~pk_csum_fold(pk_csum(old, bytes)) + pk_csum(new, bytes));
}

uint64_t pk_csum_slots(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
		       uint32_t off, uint32_t bytes)
{
	uint64_t sum = 0;
	uint32_t done = 0;

	for (unsigned i = 0; i < n && done < bytes; i++) {
		uint32_t len = slots[i].len;

		if (off >= len) {
			off -= len;
			continue;
		}
		len = HO_MIN(len - off, bytes - done);
		uint64_t part = pk_csum(pk_data(arena, &slots[i]) + off, len);
		sum += done & 1 ? pk_csum_odd(part) : part;
		done += len;
		off = 0;
	}
	return sum;
}

uint32_t pk_csum_field(const struct pk_headers *h)
{
	switch (h->l4) {
	case PK_L4_UDP:
		return h->l4_off + offsetof(struct pk_udp, csum);
	case PK_L4_TCP:
		return h->l4_off + offsetof(struct pk_tcp, csum);
	case PK_L4_ICMP:
	case PK_L4_ICMPV6:
		return h->l4_off + offsetof(struct pk_icmp, csum);
	default:
		return 0;
	}
}

/* Layer-4 bytes that the checksum covers. UDP's own length rules; it may leave a rest. */
static uint32_t l4_bytes(const uint8_t *data, const struct pk_headers *h)
{
	if (h->l4 == PK_L4_UDP)
		return pk_load16(data + h->l4_off + offsetof(struct pk_udp, len));
	return h->end - h->l4_off;
}

enum pk_csum_result pk_csum_verify(const struct pk_arena *arena, const struct pk_slot *slots,
				   unsigned n)
{
	const uint8_t *data = pk_data(arena, &slots[0]), *l3;
	struct pk_headers h;
	uint32_t bytes, field;
	uint64_t sum = 0;
	uint16_t have;

	if (pk_parse(data, slots[0].len, pk_frame_bytes(slots, n), &h))
		return PK_CSUM_RESULT_MALFORMED;
	l3 = data + h.l3_off;
	if (h.l3 == PK_L3_IPV4 && pk_csum_finish(pk_csum(l3, (l3[0] & 15) * 4u)))
		return PK_CSUM_RESULT_BAD_IP;
	field = pk_csum_field(&h);
	if (!field || h.fragment || h.routed)
		return PK_CSUM_RESULT_NONE;
	if (slots[0].flags & PK_CSUM_PARTIAL)
		return PK_CSUM_RESULT_OK;
	memcpy(&have, data + field, sizeof(have));
	if (h.l4 == PK_L4_UDP && !have)
		return h.l3 == PK_L3_IPV4 ? PK_CSUM_RESULT_NONE : PK_CSUM_RESULT_BAD_L4;
	bytes = l4_bytes(data, &h);
	if (h.l3 == PK_L3_IPV6) {
		sum = pk_csum_pseudo6(l3 + offsetof(struct pk_ipv6, src),
				      l3 + offsetof(struct pk_ipv6, dst), h.proto, bytes);
	} else if (h.l4 != PK_L4_ICMP) {
		uint32_t addr[2];

		memcpy(addr, l3 + offsetof(struct pk_ipv4, src), sizeof(addr));
		sum = pk_csum_pseudo4(addr[0], addr[1], h.proto, (uint16_t)bytes);
	}
	sum += pk_csum_slots(arena, slots, n, h.l4_off, bytes);
	return pk_csum_finish(sum) ? PK_CSUM_RESULT_BAD_L4 : PK_CSUM_RESULT_OK;
}

int pk_csum_complete(const struct pk_arena *arena, struct pk_slot *slots, unsigned n)
{
	uint8_t *data = pk_data(arena, &slots[0]);
	struct pk_headers h;
	uint32_t field;
	uint16_t csum;
	uint64_t sum;

	if (pk_parse(data, slots[0].len, pk_frame_bytes(slots, n), &h))
		return -EBADMSG;
	field = pk_csum_field(&h);
	if (!field || h.fragment)
		return -EBADMSG;
	sum = pk_csum_slots(arena, slots, n, h.l4_off, l4_bytes(data, &h));
	csum = h.l4 == PK_L4_UDP ? pk_csum_finish_udp(sum) : pk_csum_finish(sum);
	memcpy(data + field, &csum, sizeof(csum));
	slots[0].flags &= (uint16_t)~PK_CSUM_PARTIAL;
	return 0;
}

const char *pk_csum_name(enum pk_csum_result result)
{
	static const char *const names[] = {
#define PK_CSUM_ROW(id, name, text) [PK_CSUM_RESULT_##id] = name,
		PK_CSUM_RESULTS(PK_CSUM_ROW)
#undef PK_CSUM_ROW
	};

	return (unsigned)result < HO_ARRAY_LEN(names) ? names[result] : "?";
}
