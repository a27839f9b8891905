// SPDX-License-Identifier: BSD-2-Clause
/* Frame specifications in YAML: whatever is accepted must give sound frames, the same ones from
 * the generator and from the slow way. */
#include <stdlib.h>
#include <string.h>

#include "packet/csum.h"
#include "traffic/source.h"
#include "traffic/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct pk_arena *arena;
static struct pk_cache *cache;
static uint8_t want[PK_FRAME_MAX_BYTES], have[PK_FRAME_MAX_BYTES];

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void open_pool(void)
{
	struct pk_arena_config config = { .buffers = 512, .no_huge = true };

	must(pk_arena_create(&config, &arena, NULL) == 0);
	must(pk_cache_create(arena, &cache, NULL) == 0);
}

static void build(const struct tr_spec *spec)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS * 4];
	struct tr_source *source;
	struct tr_spec_info info;
	unsigned built, used, at = 0;
	char text[256];

	tr_spec_info(spec, &info);
	tr_spec_describe(spec, 0, text, sizeof(text));
	must(info.min_bytes >= PK_ETH_BYTES && info.max_bytes <= PK_FRAME_MAX_BYTES);
	must(info.mean_bytes >= info.min_bytes - 1e-6 && info.mean_bytes <= info.max_bytes + 1e-6);
	must(tr_source_create(spec, 1, 3, &source, NULL) == 0);
	used = tr_source_next(source, cache, 1, slots, HO_ARRAY_LEN(slots), 4, &built);
	must(built > 0);
	for (unsigned i = 0; i < built; i++) {
		unsigned n = pk_frame_slots(slots + at, used - at);
		uint32_t length = tr_spec_frame(spec, 1 + 3 * i, want);
		enum pk_csum_result csum = pk_csum_verify(arena, slots + at, n);

		must(pk_frame_to_bytes(arena, slots + at, n, have, sizeof(have)) == length);
		must(info.stamped || !memcmp(want, have, length));
		/* A strange ethertype may make the rest look like a bad header. */
		must(csum != PK_CSUM_RESULT_BAD_IP && csum != PK_CSUM_RESULT_BAD_L4);
		pk_free_slots(cache, slots + at, n);
		at += n;
	}
	must(at == used && pk_arena_missing(arena) == 0);
	tr_source_destroy(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tr_spec *spec;
	struct ho_err err = { 0 };

	if (!arena)
		open_pool();
	if (tr_spec_load_text("fuzz", data, bytes, NULL, &spec, &err)) {
		/* A reason each. */
		must(err.text[0]);
		return 0;
	}
	/* With an ethertype of IP and headers as payload there is no promise. */
	if (!memmem(data, bytes, "ethertype", 9) && !memmem(data, bytes, "tpid", 4))
		build(spec);
	tr_spec_destroy(spec);
	return 0;
}
