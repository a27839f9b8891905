// SPDX-License-Identifier: BSD-2-Clause
/*
 * The header parser, checksums and flow hash on any bytes. The first two say how many bytes the
 * first buffer holds; the rest is the frame.
 */
#include <stdlib.h>
#include <string.h>

#include "packet/csum.h"
#include "packet/flowhash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct pk_arena *arena;
static struct pk_cache *cache;
static struct pk_flowhash hash;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void open_pool(void)
{
	struct pk_arena_config config = { .buffers = 128, .no_huge = true };

	must(pk_arena_create(&config, &arena, NULL) == 0);
	must(pk_cache_create(arena, &cache, NULL) == 0);
	pk_flowhash_init(&hash, pk_flowhash_default_key);
}

/* Parses what lies in memory of exactly that size. */
static void parse(const uint8_t *data, uint32_t have, uint32_t frame)
{
	uint8_t *copy = malloc(have ? have : 1);
	struct pk_headers h;
	enum pk_parse_result result;

	memcpy(copy, data, have);
	result = pk_parse(copy, have, frame, &h);
	must(pk_parse_name(result)[0] != '?');
	must(have < frame || result != PK_PARSE_SPLIT);
	if (result == PK_PARSE_OK) {
		must(h.l3_off <= h.payload_off && h.payload_off <= h.end && h.end <= frame);
		must(h.payload_off <= have);
		must(h.l4 == PK_L4_NONE || pk_csum_field(&h) + 2 <= h.payload_off);
		pk_flowhash_frame(&hash, copy, &h);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	uint32_t frame, have;
	unsigned n = 0;

	if (!arena)
		open_pool();
	if (bytes < 3 || bytes > PK_FRAME_MAX_BYTES)
		return 0;
	have = pk_load16(data);
	data += 2;
	frame = (uint32_t)bytes - 2;
	have = HO_MIN(have, frame);
	parse(data, have, frame);
	parse(data, frame, frame);
	/* As a frame of two parts. */
	if (have && have < frame && have <= PK_ROOM_BYTES) {
		n = pk_frame_from_bytes(cache, data, have, slots, 1);
		slots[0].flags |= PK_MORE;
		data += have;
		frame -= have;
	}
	n += pk_frame_from_bytes(cache, data, frame, slots + n, PK_FRAME_MAX_SLOTS - n);
	must(pk_csum_name(pk_csum_verify(arena, slots, n))[0] != '?');
	/* What was completed is right. */
	slots[0].flags |= PK_CSUM_PARTIAL;
	if (pk_csum_complete(arena, slots, n) == 0)
		must(!(slots[0].flags & PK_CSUM_PARTIAL));
	slots[0].flags &= (uint16_t)~PK_CSUM_PARTIAL;
	pk_csum_verify(arena, slots, n);
	pk_free_slots(cache, slots, n);
	must(pk_arena_missing(arena) == 0);
	return 0;
}
