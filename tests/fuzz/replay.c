// SPDX-License-Identifier: BSD-2-Clause
/* Capture files for replay: any bytes as the file, with what follows from its first byte as
 * options. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "traffic/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define FRAMES_MAX 300

static struct pk_arena *arena;
static struct pk_cache *cache;

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

static void replay(struct tr_source *source)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	struct tr_replay_counts counts;
	uint64_t last = 0, due;
	unsigned frames = 0, built;
	struct ho_err err = { 0 };

	while (frames < FRAMES_MAX && (due = tr_source_due_ns(source)) != RT_FOREVER) {
		unsigned used =
			tr_source_next(source, cache, 0, slots, PK_FRAME_MAX_SLOTS, 1, &built);

		must(built == 1 && due >= last);
		must(pk_frame_bytes(slots, used) >= 14);
		pk_free_slots(cache, slots, used);
		last = due;
		frames++;
	}
	must(tr_replay_error(source, &err) == 0 || err.text[0]);
	tr_replay_counts(source, &counts);
	must(counts.frames == frames);
	must(pk_arena_missing(arena) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tr_replay_config config = { .loops = 2 };
	struct tr_source *source;
	struct ho_err err = { 0 };
	char path[64];
	unsigned workers;
	int fd;

	if (!arena)
		open_pool();
	if (!bytes)
		return 0;
	config.speed = data[0] & 1 ? 1 : 0.3;
	config.truncated = data[0] & 2 ? TR_REPLAY_SKIP : TR_REPLAY_PAD;
	workers = (data[0] >> 2 & 3) + 1;
	fd = memfd_create("replay", MFD_CLOEXEC);
	must(fd >= 0 && write(fd, data + 1, bytes - 1) == (ssize_t)bytes - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	config.path = path;
	if (tr_replay_create(&config, workers - 1, workers, &source, &err) == 0) {
		replay(source);
		tr_source_destroy(source);
	} else {
		must(err.text[0]);
	}
	close(fd);
	return 0;
}
