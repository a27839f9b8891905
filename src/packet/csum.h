/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Internet checksum (RFC 1071, 1624).
 *
 * Sums are kept in memory order: a 16-bit word counts as it lies in memory, whatever the CPU's byte
 * order is, so that neither loads nor stores need a swap (RFC 1071 section 2(B)). A `sum` is a
 * number of 64 bits, congruent modulo 65535 to the sum of the words: sums may simply be added
 * (some 2^31 of them before one must be folded).
 */
#ifndef HOLDOFF_PACKET_CSUM_H
#define HOLDOFF_PACKET_CSUM_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/arena.h"
#include "packet/parse.h"

/* The sum of `bytes` bytes at data, which begin at an even offset of what is summed up; an odd last
 * byte counts as if a zero followed. */
uint64_t pk_csum(const void *data, size_t bytes);

/* To 16 bits, not complemented. 0 only for a sum of 0. */
static inline uint16_t pk_csum_fold(uint64_t sum)
{
	uint32_t half;

	/* Adding a number to itself with its halves exchanged leaves the sum of both halves, end-
	 * around carry included, in the upper one. */
	sum += sum << 32 | sum >> 32;
	half = (uint32_t)(sum >> 32);
	half += half << 16 | half >> 16;
	return (uint16_t)(half >> 16);
}

/* What goes into the checksum field, as it lies in memory. */
static inline uint16_t pk_csum_finish(uint64_t sum)
{
	return (uint16_t)~pk_csum_fold(sum);
}

/* The same for UDP, where 0 means "none" (RFC 768). */
static inline uint16_t pk_csum_finish_udp(uint64_t sum)
{
	uint16_t csum = pk_csum_finish(sum);

	return csum ? csum : 0xffff;
}

/* The sum of data that were summed as if at an even offset, but lie at an odd one: bytes change
 * places, which modulo 65535 is a shift by 8. */
static inline uint64_t pk_csum_odd(uint64_t sum)
{
	return (uint64_t)pk_csum_fold(sum) << 8;
}

/* One 16-bit word in host order, as a sum. */
static inline uint64_t pk_csum_word(uint16_t value)
{
	return htobe16(value);
}

/*
 * The field's new value after a 16-bit word of the data changed from old to new (all three as they
 * lie in memory). RFC 1624, equation 3.
 */
static inline uint16_t pk_csum_update16(uint16_t csum, uint16_t old, uint16_t new)
{
	return pk_csum_finish((uint64_t)(uint16_t)~csum + (uint16_t)~old + new);
}

/* The same for 32 bits. */
static inline uint16_t pk_csum_update32(uint16_t csum, uint32_t old, uint32_t new)
{
	return pk_csum_finish((uint64_t)(uint16_t)~csum + (uint32_t)~old + new);
}

/* The same for `bytes` bytes (even) at an even offset. */
uint16_t pk_csum_update(uint16_t csum, const void *old, const void *new, size_t bytes);

/* Pseudo headers (RFC 768, 9293; RFC 8200 section 8.1); addresses as they lie in the header. */
static inline uint64_t pk_csum_pseudo4(uint32_t src, uint32_t dst, uint8_t proto, uint16_t l4_bytes)
{
	return (uint64_t)src + dst + pk_csum_word(proto) + pk_csum_word(l4_bytes);
}

static inline uint64_t pk_csum_pseudo6(const void *src, const void *dst, uint8_t proto,
				       uint32_t l4_bytes)
{
	return pk_csum(src, 16) + pk_csum(dst, 16) + pk_csum_word(proto) + htobe32(l4_bytes);
}

/* The sum of `bytes` bytes from offset off of a frame of n slots (all there). off may be odd; the
 * first byte counts as at an even offset. */
uint64_t pk_csum_slots(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
		       uint32_t off, uint32_t bytes);

/* What a frame's checksums are like: enumerator, name, meaning. */
#define PK_CSUM_RESULTS(X)                                                                      \
	X(OK, "ok", "all that are there are right")                                             \
	X(NONE, "none", "none to check: not IP, a fragment, UDP without one, another protocol") \
	X(MALFORMED, "malformed", "the headers are not sound")                                  \
	X(BAD_IP, "bad_ip", "that of the IPv4 header is wrong")                                 \
	X(BAD_L4, "bad_l4", "that of UDP, TCP or ICMP is wrong, or missing where it must not be")

enum pk_csum_result {
#define PK_CSUM_ENUM(id, name, text) PK_CSUM_RESULT_##id,
	PK_CSUM_RESULTS(PK_CSUM_ENUM)
#undef PK_CSUM_ENUM
};
const char *pk_csum_name(enum pk_csum_result result);

/*
 * Verifies the IPv4 header's checksum and that of UDP, TCP, ICMP or ICMPv6. The frame's headers
 * (layer 2 to 4) must be in its first slot. PK_CSUM_PARTIAL makes the layer-4 one right by
 * definition. For an IPv4 fragment or other protocol with a right header: NONE.
 */
enum pk_csum_result pk_csum_verify(const struct pk_arena *arena, const struct pk_slot *slots,
				   unsigned n);

/*
 * Where the layer-4 checksum field of a parsed frame is; 0 if it has none (no such protocol, later
 * fragment).
 */
uint32_t pk_csum_field(const struct pk_headers *headers);

/*
 * Completes the layer-4 checksum of a frame with PK_CSUM_PARTIAL (and no PK_TSO): sums from the
 * layer-4 header to the datagram's end, the pseudo-header sum in the field included, and clears the
 * flag. 0, or -EBADMSG if the headers do not allow it (nothing is changed).
 */
int pk_csum_complete(const struct pk_arena *arena, struct pk_slot *slots, unsigned n);

#endif
