// SPDX-License-Identifier: BSD-2-Clause
#include "packet/flowhash.h"

#include <stddef.h>
#include <string.h>

const uint8_t pk_flowhash_default_key[PK_FLOWHASH_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* The 32 bits of the key from bit `at` on. */
static uint32_t key_window(const uint8_t *key, unsigned at)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < 5; i++) {
		unsigned byte = at / 8 + i;

		bits = bits << 8 | (byte < PK_FLOWHASH_KEY_BYTES ? key[byte] : 0);
	}
	return (uint32_t)(bits >> (8 - at % 8));
}

uint32_t pk_flowhash_bitwise(const uint8_t key[PK_FLOWHASH_KEY_BYTES], const uint8_t *input,
			     unsigned bytes)
{
	uint32_t h = 0;

	for (unsigned i = 0; i < bytes * 8; i++) {
		if (input[i / 8] & 0x80 >> i % 8)
			h ^= key_window(key, i);
	}
	return h;
}

void pk_flowhash_init(struct pk_flowhash *hash, const uint8_t key[PK_FLOWHASH_KEY_BYTES])
{
	for (unsigned half = 0; half < PK_FLOWHASH_INPUT_BYTES * 2; half++) {
		for (unsigned value = 0; value < 16; value++) {
			uint32_t h = 0;

			for (unsigned bit = 0; bit < 4; bit++) {
				if (value & 8u >> bit)
					h ^= key_window(key, half * 4 + bit);
			}
			hash->table[half][value] = h;
		}
	}
}

uint32_t pk_flowhash_frame(const struct pk_flowhash *hash, const uint8_t *data,
			   const struct pk_headers *h)
{
	const uint8_t *l3 = data + h->l3_off;
	uint8_t input[PK_FLOWHASH_INPUT_BYTES];
	unsigned bytes;

	if (h->l3 == PK_L3_IPV4) {
		memcpy(input, l3 + offsetof(struct pk_ipv4, src), 8);
		bytes = 8;
	} else if (h->l3 == PK_L3_IPV6) {
		memcpy(input, l3 + offsetof(struct pk_ipv6, src), 32);
		bytes = 32;
	} else {
		return 0;
	}
	if (!h->fragment && (h->l4 == PK_L4_UDP || h->l4 == PK_L4_TCP)) {
		memcpy(input + bytes, data + h->l4_off, 4);
		bytes += 4;
	}
	return pk_flowhash(hash, input, bytes);
}
