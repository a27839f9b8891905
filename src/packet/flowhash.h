/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow hash of receive-side scaling: Toeplitz over addresses and ports as Microsoft's RSS
 * documents define it and the 82599 datasheet repeats it (7.1.2.8).
 *
 * The hash is the exclusive or of a 32-bit window of the key for every set bit of the input. The
 * fast form looks the windows up for four input bits at a time: 24 loads from 1.5 KB for an IPv4
 * flow with ports.
 */
#ifndef HOLDOFF_PACKET_FLOWHASH_H
#define HOLDOFF_PACKET_FLOWHASH_H

#include <stdint.h>

#include "packet/parse.h"

#define PK_FLOWHASH_KEY_BYTES   40
#define PK_FLOWHASH_INPUT_BYTES 36 /* two IPv6 addresses and two ports */

struct pk_flowhash {
	uint32_t table[PK_FLOWHASH_INPUT_BYTES * 2]
		      [16]; /* of each half byte, the upper one first */
};

/* The key of Microsoft's verification suite, which most drivers use by default. */
extern const uint8_t pk_flowhash_default_key[PK_FLOWHASH_KEY_BYTES];

void pk_flowhash_init(struct pk_flowhash *hash, const uint8_t key[PK_FLOWHASH_KEY_BYTES]);

/* Hash of `bytes` (a multiple of 4, at most PK_FLOWHASH_INPUT_BYTES) of input as on the wire:
 * source address, destination address, source port, destination port. */
static inline uint32_t pk_flowhash(const struct pk_flowhash *hash, const uint8_t *input,
				   unsigned bytes)
{
	const uint32_t(*t)[16] = hash->table;
	uint32_t a = 0, b = 0;

	for (unsigned i = 0; i < bytes; i += 4, t += 8) {
		uint32_t w = pk_load32(input + i);

		a ^= t[0][w >> 28] ^ t[1][w >> 24 & 15] ^ t[2][w >> 20 & 15] ^ t[3][w >> 16 & 15];
		b ^= t[4][w >> 12 & 15] ^ t[5][w >> 8 & 15] ^ t[6][w >> 4 & 15] ^ t[7][w & 15];
	}
	return a ^ b;
}

/* The definition, bit by bit: the reference. */
uint32_t pk_flowhash_bitwise(const uint8_t key[PK_FLOWHASH_KEY_BYTES], const uint8_t *input,
			     unsigned bytes);

/*
 * Hash of a parsed frame: with ports for UDP and TCP, addresses only for other protocols and all
 * fragments (so that the parts of a datagram stay together), 0 without IP.
 */
uint32_t pk_flowhash_frame(const struct pk_flowhash *hash, const uint8_t *data,
			   const struct pk_headers *headers);

#endif
