// SPDX-License-Identifier: BSD-2-Clause
/*
 * What it costs to build a frame: TSC cycles and nanoseconds a frame, the median of rounds. Frames
 * are built in bursts of 64 and their buffers freed through a queue of `set` buffers, as a transmit
 * ring of that length would do, so that the memory touched is chosen.
 *
 *   source [SET [ROUNDS [FRAMES]]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "packet/csum.h"
#include "packet/flowhash.h"
#include "runtime/tsc.h"
#include "traffic/source.h"
#include "traffic/spec.h"

#define BURST 64

struct job {
	const char *name;
	const char *stamp;
	struct tr_stream_text stream;
};

static const struct job jobs[] = {
	{ "60 B, fixed", "no", { .size = "60" } },
	{ "60 B, fixed, stamp", "yes", { .size = "60" } },
	{ "60 B, one field", "no", { .src_port = "1024-65535" } },
	{ "60 B, one field, stamp", "yes", { .src_port = "1024-65535" } },
	{ "60 B, one random field, stamp", "yes", { .src_port = "random 1024-65535" } },
	{ "60 B, four fields, stamp",
	  "yes",
	  { .src_port = "1024-65535",
	    .dst_port = "1-1000",
	    .ip_src = "random 10.0.0.0/8",
	    .ip_dst = "198.18.0.0/16" } },
	{ "78 B IPv6, one field, stamp", "yes", { .ip_dst = "2001:db8::/64" } },
	{ "imix, stamp", "yes", { .size = "imix" } },
	{ "1514 B, fixed", "no", { .size = "1514" } },
	{ "1514 B, one field, stamp", "yes", { .size = "1514", .src_port = "1024-65535" } },
	{ "9014 B, one field, stamp", "yes", { .size = "9014", .src_port = "1024-65535" } },
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Cycles a frame inside tr_source_next; what the ring costs is not counted. */
static double run(struct tr_source *source, struct pk_cache *cache, struct pk_slot *ring,
		  unsigned set, unsigned frames)
{
	struct pk_slot slots[BURST * 8];
	unsigned put = 0, done = 0, built;
	uint64_t cycles = 0;

	while (done < frames) {
		uint64_t begin = rt_tsc_read();
		unsigned used =
			tr_source_next(source, cache, begin, slots, BURST * 8, BURST, &built);

		cycles += rt_tsc_read() - begin;
		for (unsigned i = 0; i < used; i++) {
			struct pk_slot old = ring[put];

			ring[put] = slots[i];
			slots[i] = old;
			put = put + 1 == set ? 0 : put + 1;
		}
		for (unsigned at = 0; at < used; at += BURST)
			pk_free_slots(cache, slots + at, HO_MIN(used - at, (unsigned)BURST));
		done += built;
	}
	return (double)cycles / done;
}

static int bench_job(const struct job *job, struct pk_cache *cache, unsigned set, unsigned rounds,
		     unsigned frames, const struct rt_tsc *tsc)
{
	struct tr_spec_text text = { .stamp = job->stamp, .streams = &job->stream, .n_streams = 1 };
	struct pk_slot *ring = calloc(set, sizeof(*ring));
	double *cycles = calloc(rounds, sizeof(*cycles));
	struct tr_source *source;
	struct tr_spec *spec;
	struct ho_err err;

	if (!ring || !cycles)
		return 1;
	for (unsigned i = 0; i < set; i++)
		pk_alloc(cache, &ring[i].buf, 1);
	if (tr_spec_create(&text, &spec, &err) || tr_source_create(spec, 0, 1, &source, &err)) {
		fprintf(stderr, "%s: %s\n", job->name, err.text);
		return 1;
	}
	run(source, cache, ring, set, frames / 4);
	for (unsigned i = 0; i < rounds; i++)
		cycles[i] = run(source, cache, ring, set, frames);
	qsort(cycles, rounds, sizeof(*cycles), compare);
	printf("%-32s %7.1f cycles %7.2f ns a frame (%.1f to %.1f cycles)\n", job->name,
	       cycles[rounds / 2], cycles[rounds / 2] * 1e9 / (double)tsc->hz, cycles[0],
	       cycles[rounds - 1]);
	for (unsigned i = 0; i < set; i++)
		pk_free(cache, &ring[i].buf, 1);
	tr_source_destroy(source);
	tr_spec_destroy(spec);
	free(ring);
	free(cycles);
	return 0;
}

/* The cost of a checksum over a buffer, and of a flow hash. */
static void bench_sums(const struct rt_tsc *tsc)
{
	static const unsigned sizes[] = { 20, 60, 1514, 9014 };
	static uint8_t data[9216];
	struct pk_flowhash hash;
	uint64_t sink = 0;
	uint64_t begin;
	double cycles;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	for (unsigned s = 0; s < HO_ARRAY_LEN(sizes); s++) {
		begin = rt_tsc_read();
		for (unsigned i = 0; i < 1000000; i++)
			sink += pk_csum(data + (i & 15) * 2, sizes[s]);
		__asm__ volatile("" : : "r"(sink));
		cycles = (double)(rt_tsc_read() - begin) / 1e6;
		printf("checksum of %5u bytes            %7.1f cycles %7.2f ns\n", sizes[s], cycles,
		       cycles * 1e9 / (double)tsc->hz);
	}
	pk_flowhash_init(&hash, pk_flowhash_default_key);
	for (unsigned bytes = 12; bytes <= 36; bytes += 24) {
		begin = rt_tsc_read();
		for (unsigned i = 0; i < 1000000; i++)
			sink += pk_flowhash(&hash, data + (i & 127), bytes);
		__asm__ volatile("" : : "r"(sink));
		cycles = (double)(rt_tsc_read() - begin) / 1e6;
		printf("flow hash of %2u bytes             %7.1f cycles %7.2f ns\n", bytes, cycles,
		       cycles * 1e9 / (double)tsc->hz);
	}
}

int main(int argc, char **argv)
{
	unsigned set = argc > 1 ? (unsigned)atoi(argv[1]) : 1024;
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 7;
	unsigned frames = argc > 3 ? (unsigned)atoi(argv[3]) : 2000000;
	struct pk_arena_config config = { .buffers = set + 4096 };
	struct pk_arena *arena;
	struct pk_cache *cache;
	struct rt_tsc tsc;
	struct ho_err err;
	int rc = 0;

	if (!set || !rounds || !frames) {
		fprintf(stderr, "usage: source [SET [ROUNDS [FRAMES]]]\n");
		return 1;
	}
	rt_tsc_calibrate(&tsc);
	if (pk_arena_create(&config, &arena, &err) || pk_cache_create(arena, &cache, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 2;
	}
	printf("%u buffers go round, %s pages, TSC %.3f GHz\n", set,
	       arena->huge ? "huge" : "normal", (double)tsc.hz / 1e9);
	for (unsigned i = 0; i < HO_ARRAY_LEN(jobs) && !rc; i++)
		rc = bench_job(&jobs[i], cache, set, rounds, frames, &tsc);
	bench_sums(&tsc);
	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
	return rc;
}
