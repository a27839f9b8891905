// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames of a specification. A run of frames of one stream is built step by step for all of them:
 * copy the template, or each varying field in, finish the checksums, stamp. So each step is a short
 * loop with its constants in registers, over headers that are in the first-level cache. Nothing
 * depends on the frame's length but the copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/frame.h"
#include "traffic/source_kind.h"
#include "traffic/spec.h"
#include "traffic/stamp.h"

/* Frames of a run: their headers take 4 KB of the first-level cache. */
#define RUN_MAX 64
/* How many frames ahead a buffer is fetched into the cache: some 50 ns of work. */
#define PREFETCH_AHEAD 8

/* Where a counting field stands: its index for the stream's frame k, kept up by addition, since a
 * division for each field and frame would cost more than all the rest. */
struct vary_state {
	uint64_t index;
	uint64_t sub; /* frames since the index changed, below vary->every */
};

struct stream_state {
	const struct tr_stream *s;
	uint64_t k; /* frame of the stream that the states belong to */
	struct vary_state size;
	struct vary_state vary[TR_VARY_MAX];
};

struct generator {
	struct tr_source base;
	const struct tr_spec *spec;
	uint64_t built; /* frames of this worker */
	unsigned worker, workers;
	bool synced;   /* what follows is that of frame `built` */
	uint32_t turn; /* the frame's place in its round */
	uint64_t round;
	struct stream_state state[];
};

/* --- where the sequence is ------------------------------------------------------------------ */

static void vary_set(struct vary_state *state, const struct tr_vary *v, uint64_t k)
{
	state->sub = k % v->every;
	if (!v->random)
		state->index = tr_vary_index(v, k);
}

/* Indices for the frames k, k + step, ... of the stream; the state is left at the last one. */
static void vary_fill(struct vary_state *state, const struct tr_vary *v, uint64_t k, uint64_t step,
		      uint64_t *index, unsigned n)
{
	const uint64_t span = v->span, every = v->every;
	uint64_t at = state->index, sub = state->sub, turns = step;

	if (v->random) {
		for (unsigned j = 0; j < n; j++, k += step)
			index[j] = tr_vary_random(v, every == 1 ? k : k / every);
		return;
	}
	index[0] = at;
	for (unsigned j = 1; j < n; j++) {
		if (every != 1) {
			sub += step;
			turns = sub / every;
			sub %= every;
		}
		/* The span is below 2^63, or all ones, in which case the sum wraps as it should. */
		at += turns;
		if (ho_unlikely(at > span)) {
			at -= span + 1;
			if (at > span)
				at %= span + 1;
		}
		index[j] = at;
	}
	state->index = at;
	state->sub = sub;
}

static void stream_set(struct stream_state *state, uint64_t k)
{
	const struct tr_stream *s = state->s;

	state->k = k;
	vary_set(&state->size, &s->size, k);
	for (unsigned i = 0; i < s->n_vary; i++)
		vary_set(&state->vary[i], &s->vary[i], k);
}

/* From the frame that the state stands at to the stream's frame k. */
static inline void stream_advance(struct stream_state *state, uint64_t k)
{
	const struct tr_stream *s = state->s;
	uint64_t step = k - state->k, index[2];

	if (!step)
		return;
	if (s->size.span)
		vary_fill(&state->size, &s->size, state->k, step, index, 2);
	for (unsigned i = 0; i < s->n_vary; i++)
		vary_fill(&state->vary[i], &s->vary[i], state->k, step, index, 2);
	state->k = k;
}

static void sync_states(struct generator *g)
{
	const struct tr_spec *spec = g->spec;
	uint64_t i = g->worker + g->built * g->workers;

	g->turn = (uint32_t)(i % spec->n_turns);
	g->round = i / spec->n_turns;
	/* Of each stream the state is that of its first frame in the round: not a later one than
	 * its next, which is all that matters. */
	for (unsigned n = 0; n < spec->n_streams; n++) {
		if (spec->streams[n].weight)
			stream_set(&g->state[n], g->round * spec->streams[n].weight);
	}
	g->synced = true;
}

/* The stream of the frame to build now, brought up to it. */
static inline struct stream_state *current_stream(struct generator *g)
{
	const struct tr_turn *turn = &g->spec->turns[g->turn];
	struct stream_state *state = &g->state[turn->stream];

	stream_advance(state, g->round * state->s->weight + turn->rank);
	return state;
}

static inline void next_turn(struct generator *g)
{
	uint64_t turn = (uint64_t)g->turn + g->workers;

	g->built++;
	if (turn >= g->spec->n_turns) {
		if (g->spec->n_turns == 1) {
			g->round += g->workers;
			return;
		}
		g->round += turn / g->spec->n_turns;
		turn %= g->spec->n_turns;
	}
	g->turn = (uint32_t)turn;
}

/* --- a run of frames ------------------------------------------------------------------------ */

/* What is the same for all stamps of a burst. */
struct burst_stamp {
	uint64_t time_ns;
	uint64_t sum; /* of magic, stream and time */
	uint16_t stream;
};

/* Frames k, k + step, ... of one stream. */
struct run {
	const struct tr_stream *s;
	struct stream_state *state;
	uint64_t k, step;
	unsigned n;
	const struct tr_length *length[RUN_MAX];
	uint8_t *frame[RUN_MAX]; /* the first buffer's data: all headers are there */
	uint8_t *stamp[RUN_MAX];
	uint64_t ip_sum[RUN_MAX], l4_sum[RUN_MAX];
};

static void run_lengths(struct run *run)
{
	const struct tr_length *lengths = run->s->lengths;
	uint64_t index[RUN_MAX];

	if (!run->s->size.span) {
		for (unsigned j = 0; j < run->n; j++)
			run->length[j] = lengths;
		return;
	}
	vary_fill(&run->state->size, &run->s->size, run->k, run->step, index, run->n);
	for (unsigned j = 0; j < run->n; j++)
		run->length[j] = &lengths[index[j]];
}

/* Ors the values into the frames, `width` (a constant) bytes wide, and adds them to the sums. */
static inline __attribute__((always_inline)) void put_words(struct run *run,
							    const struct tr_patch *p,
							    const uint64_t *value,
							    const unsigned width)
{
	const uint64_t ip = p->sums & TR_SUM_IP ? UINT64_MAX : 0;
	const uint64_t l4 = p->sums & TR_SUM_L4 ? UINT64_MAX : 0;
	const unsigned off = p->off, shift = p->shift, n = run->n;

	for (unsigned j = 0; j < n; j++) {
		uint8_t *at = run->frame[j] + off;
		uint64_t word = htobe64(value[j] << shift << (64 - 8 * width)), old = 0, sum;

		memcpy(&old, at, width);
		if (__BYTE_ORDER == __BIG_ENDIAN)
			word >>= 64 - 8 * width;
		old |= word;
		memcpy(at, &old, width);
		sum = tr_sum64(word);
		run->ip_sum[j] += sum & ip;
		run->l4_sum[j] += sum & l4;
	}
}

static void run_patches(struct run *run)
{
	const struct tr_stream *s = run->s;
	uint64_t index[RUN_MAX], value[RUN_MAX];
	unsigned n = run->n;

	for (unsigned i = 0; i < s->n_patches; i++) {
		const struct tr_patch *p = &s->patch[i];
		const struct tr_vary *v = &s->vary[p->vary];

		/* The two halves of an address have one index. */
		if (!i || p->vary != p[-1].vary)
			vary_fill(&run->state->vary[p->vary], v, run->k, run->step, index, n);
		if (v->list) {
			const uint64_t *list = p->high ? v->list_high : v->list;

			for (unsigned j = 0; j < n; j++)
				value[j] = list[index[j]];
		} else {
			uint64_t first = v->first, step = v->step;

			for (unsigned j = 0; j < n; j++)
				value[j] = first + index[j] * step;
		}
		switch (p->width) {
		case 2:
			put_words(run, p, value, 2);
			break;
		case 4:
			put_words(run, p, value, 4);
			break;
		default:
			put_words(run, p, value, 8);
		}
	}
}

/* Stamps the frames, whose sequence numbers are `sequence` and those that follow. Behind an odd
 * number of bytes the words of the sum are shifted by a byte. */
static void run_stamps(struct run *run, const struct burst_stamp *stamp, uint32_t sequence)
{
	const struct burst_stamp b = *stamp;
	unsigned n = run->n;

	for (unsigned j = 0; j < n; j++) {
		unsigned shift = (run->length[j]->bytes & 1) << 3;

		run->l4_sum[j] += (b.sum + htobe32(sequence + j)) << shift;
		tr_stamp_write(run->stamp[j], b.stream, sequence + j, b.time_ns);
	}
}

static void run_checksums(struct run *run)
{
	const unsigned n = run->n, ip_off = run->s->ip_csum_off, l4_off = run->s->l4_csum_off;
	/* What an all-zero UDP checksum becomes. */
	const uint16_t zero = run->s->udp ? 0xffff : 0;

	if (run->s->ip_dynamic) {
		for (unsigned j = 0; j < n; j++) {
			uint16_t csum = pk_csum_finish(run->ip_sum[j]);

			memcpy(run->frame[j] + ip_off, &csum, 2);
		}
	}
	if (run->s->l4_dynamic) {
		for (unsigned j = 0; j < n; j++) {
			uint16_t csum = pk_csum_finish(run->l4_sum[j]);

			csum = csum ? csum : zero;
			memcpy(run->frame[j] + l4_off, &csum, 2);
		}
	}
}

/* All that makes a copy of the template the frame that it is to be. */
static void run_finish(struct run *run, const struct burst_stamp *stamp, uint32_t sequence)
{
	const struct tr_stream *s = run->s;
	const unsigned n = run->n;

	if (s->ip_dynamic || s->l4_dynamic || s->n_patches) {
		for (unsigned j = 0; j < n; j++) {
			run->ip_sum[j] = run->length[j]->ip_sum;
			run->l4_sum[j] = run->length[j]->l4_sum;
		}
		run_patches(run);
	}
	if (s->size.span) {
		for (unsigned j = 0; j < n && s->ip_len_off; j++)
			memcpy(run->frame[j] + s->ip_len_off, &run->length[j]->ip_len, 2);
		for (unsigned j = 0; j < n && s->udp_len_off; j++)
			memcpy(run->frame[j] + s->udp_len_off, &run->length[j]->udp_len, 2);
	}
	if (stamp)
		run_stamps(run, stamp, sequence);
	run_checksums(run);
}

/* --- bursts --------------------------------------------------------------------------------- */

static inline void copy_units(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint32_t at = 0;

	do {
		memcpy(to + at, from + at, TR_COPY_UNIT);
		at += TR_COPY_UNIT;
	} while (at < bytes);
}

/* Copies the template into buffers of one frame each and makes their slots. */
static void copy_frames(struct run *run, const struct pk_arena *arena, const uint32_t *bufs,
			struct pk_slot *slots)
{
	const uint8_t *image = run->s->image;
	const unsigned n = run->n;

	for (unsigned j = 0; j < n && j < PREFETCH_AHEAD; j++)
		ho_prefetchw(pk_buffer(arena, bufs[j]) + PK_HEADROOM_BYTES);
	for (unsigned j = 0; j < n; j++) {
		uint8_t *frame = pk_buffer(arena, bufs[j]) + PK_HEADROOM_BYTES;
		uint32_t bytes = run->length[j]->bytes;

		if (j + PREFETCH_AHEAD < n)
			ho_prefetchw(pk_buffer(arena, bufs[j + PREFETCH_AHEAD]) +
				     PK_HEADROOM_BYTES);
		copy_units(frame, image, bytes);
		run->frame[j] = frame;
		run->stamp[j] = frame + bytes - TR_STAMP_BYTES;
		slots[j] = (struct pk_slot){
			.buf = bufs[j],
			.off = PK_HEADROOM_BYTES,
			.len = (uint16_t)bytes,
		};
	}
}

/* Copies the template of one frame into a chain of `need` buffers. */
static void copy_chain(struct run *run, const struct pk_arena *arena, const uint32_t *bufs,
		       uint32_t need, struct pk_slot *slots)
{
	const uint32_t room = arena->stride_bytes - PK_HEADROOM_BYTES;
	uint32_t bytes = run->length[0]->bytes, at = 0;

	for (uint32_t i = 0; i < need; i++) {
		uint32_t len = HO_MIN(bytes - at, room);

		/* The stamp is not to lie across two buffers. */
		if (i + 2 == need && bytes - at - len < TR_STAMP_BYTES)
			len -= TR_STAMP_BYTES;
		slots[i] = (struct pk_slot){
			.buf = bufs[i],
			.off = PK_HEADROOM_BYTES,
			.len = (uint16_t)len,
			.flags = i + 1 < need ? PK_MORE : 0,
		};
		memcpy(pk_data(arena, &slots[i]), run->s->image + at, len);
		at += len;
	}
	run->frame[0] = pk_data(arena, &slots[0]);
	run->stamp[0] = pk_data(arena, &slots[need - 1]) + slots[need - 1].len - TR_STAMP_BYTES;
}

/* Sets the run up: up to n frames of the stream whose turn it is. */
static void run_begin(struct run *run, struct generator *g, unsigned n)
{
	struct stream_state *state = current_stream(g);

	/* With several streams each frame is a run of its own. */
	run->n = g->spec->n_turns == 1 ? HO_MIN(n, (unsigned)RUN_MAX) : 1;
	run->s = state->s;
	run->state = state;
	run->k = state->k;
	run->step = g->workers;
	run_lengths(run);
}

/* The run's frames are built: on to the frame behind. */
static void run_end(struct run *run, struct generator *g)
{
	run->state->k = run->k + (run->n - 1) * run->step;
	for (unsigned j = 0; j < run->n; j++)
		next_turn(g);
}

/* Up to n frames of a buffer each; fewer only when the pool is empty. */
static unsigned build_singles(struct generator *g, struct pk_cache *cache,
			      const struct burst_stamp *stamp, struct pk_slot *slots, unsigned n)
{
	uint32_t bufs[RUN_MAX];
	unsigned used = 0;
	struct run run;

	while (used < n) {
		unsigned want = HO_MIN(n - used, (unsigned)RUN_MAX);
		unsigned got = pk_alloc(cache, bufs, want), done = 0;

		while (done < got) {
			run_begin(&run, g, got - done);
			copy_frames(&run, cache->arena, bufs + done, slots + used);
			run_finish(&run, stamp, (uint32_t)g->built);
			run_end(&run, g);
			done += run.n;
			used += run.n;
		}
		if (got < want)
			break;
	}
	return used;
}

/* One frame of any length; 0 if it takes more than n slots or the pool is empty. */
static unsigned build_chain(struct generator *g, struct pk_cache *cache,
			    const struct burst_stamp *stamp, struct pk_slot *slots, unsigned n)
{
	const uint32_t room = cache->arena->stride_bytes - PK_HEADROOM_BYTES;
	uint32_t bufs[PK_CACHE_BULK], got, need;
	struct run run;

	run_begin(&run, g, 1);
	need = (run.length[0]->bytes + room - 1) / room;
	if (need > n || need > PK_CACHE_BULK)
		return 0;
	got = pk_alloc(cache, bufs, need);
	if (got < need) {
		pk_free(cache, bufs, got);
		return 0;
	}
	copy_chain(&run, cache->arena, bufs, need, slots);
	run_finish(&run, stamp, (uint32_t)g->built);
	run_end(&run, g);
	return need;
}

static unsigned generator_next(struct tr_source *source, struct pk_cache *cache, uint64_t now_ns,
			       struct pk_slot *slots, unsigned n, unsigned frames, unsigned *built)
{
	struct generator *g = HO_CONTAINER_OF(source, struct generator, base);
	const struct burst_stamp burst = {
		.time_ns = now_ns,
		.stream = (uint16_t)g->worker,
		.sum = htobe16(TR_STAMP_MAGIC) + (uint64_t)htobe16((uint16_t)g->worker) +
		       tr_sum64(htobe64(now_ns)),
	};
	const struct burst_stamp *stamp = g->spec->stamped ? &burst : NULL;
	unsigned used = 0, some;

	if (!g->synced)
		sync_states(g);
	if (g->spec->max_bytes <= cache->arena->stride_bytes - PK_HEADROOM_BYTES) {
		*built = build_singles(g, cache, stamp, slots, HO_MIN(frames, n));
		return *built;
	}
	for (*built = 0; *built < frames; ++*built) {
		some = build_chain(g, cache, stamp, slots + used, n - used);
		if (!some)
			break;
		used += some;
	}
	return used;
}

static void generator_unsend(struct tr_source *source, unsigned frames)
{
	struct generator *g = HO_CONTAINER_OF(source, struct generator, base);

	g->built -= frames;
	g->synced = false;
}

static void generator_destroy(struct tr_source *source)
{
	free(HO_CONTAINER_OF(source, struct generator, base));
}

static const struct tr_source_ops generator_ops = {
	.next = generator_next,
	.unsend = generator_unsend,
	.destroy = generator_destroy,
};

int tr_source_create(const struct tr_spec *spec, unsigned worker, unsigned workers,
		     struct tr_source **out, struct ho_err *err)
{
	struct generator *g;

	if (!workers || worker >= workers || worker > UINT16_MAX)
		return ho_err_set(err, -EINVAL, "worker %u of %u makes no frames", worker, workers);
	g = calloc(1, sizeof(*g) + spec->n_streams * sizeof(g->state[0]));
	if (!g)
		return ho_err_set(err, -ENOMEM, "out of memory for a source of frames");
	g->base.ops = &generator_ops;
	g->spec = spec;
	g->worker = worker;
	g->workers = workers;
	for (unsigned i = 0; i < spec->n_streams; i++)
		g->state[i].s = &spec->streams[i];
	*out = &g->base;
	return 0;
}
