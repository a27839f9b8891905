// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames of a specification, one after the other: copy the template, or the varying fields in,
 * finish the checksums, stamp. Nothing here depends on the frame's length but the copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/frame.h"
#include "traffic/source_kind.h"
#include "traffic/spec.h"
#include "traffic/stamp.h"

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

/* From frame k - step to frame k. */
static inline void vary_advance(struct vary_state *state, const struct tr_vary *v, uint64_t k,
				uint64_t step)
{
	uint64_t index, turns = step;

	if (ho_unlikely(v->every != 1)) {
		state->sub += step;
		turns = state->sub / v->every;
		state->sub %= v->every;
	}
	if (v->random) {
		state->index = tr_vary_random(v, v->every == 1 ? k : k / v->every);
		return;
	}
	/* The span is below 2^63, or all ones, in which case the sum wraps as it should. */
	index = state->index + turns;
	if (ho_unlikely(index > v->span)) {
		index -= v->span + 1;
		if (index > v->span)
			index %= v->span + 1;
	}
	state->index = index;
}

static void stream_set(struct stream_state *state, uint64_t k)
{
	const struct tr_stream *s = state->s;

	state->k = k;
	vary_set(&state->size, &s->size, k);
	vary_advance(&state->size, &s->size, k, 0);
	for (unsigned i = 0; i < s->n_vary; i++) {
		vary_set(&state->vary[i], &s->vary[i], k);
		vary_advance(&state->vary[i], &s->vary[i], k, 0);
	}
}

static inline void stream_advance(struct stream_state *state, uint64_t k)
{
	const struct tr_stream *s = state->s;
	uint64_t step = k - state->k;

	if (!step)
		return;
	state->k = k;
	if (s->size.span)
		vary_advance(&state->size, &s->size, k, step);
	for (unsigned i = 0; i < s->n_vary; i++)
		vary_advance(&state->vary[i], &s->vary[i], k, step);
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

/* --- one frame ------------------------------------------------------------------------------ */

/* What is the same for all stamps of a burst. */
struct burst_stamp {
	uint64_t time_ns;
	uint64_t sum; /* of magic, stream and time */
	uint16_t stream;
};

static inline uint64_t load_word(const uint8_t *at, unsigned width)
{
	uint16_t w2;
	uint32_t w4;
	uint64_t w8;

	switch (width) {
	case 2:
		memcpy(&w2, at, 2);
		return w2;
	case 4:
		memcpy(&w4, at, 4);
		return w4;
	default:
		memcpy(&w8, at, 8);
		return w8;
	}
}

static inline void store_word(uint8_t *at, unsigned width, uint64_t word)
{
	uint16_t w2 = (uint16_t)word;
	uint32_t w4 = (uint32_t)word;

	switch (width) {
	case 2:
		memcpy(at, &w2, 2);
		break;
	case 4:
		memcpy(at, &w4, 4);
		break;
	default:
		memcpy(at, &word, 8);
	}
}

/* A value as it lies in memory in `width` bytes. */
static inline uint64_t big_endian(uint64_t value, unsigned width)
{
	switch (width) {
	case 2:
		return htobe16((uint16_t)value);
	case 4:
		return htobe32((uint32_t)value);
	default:
		return htobe64(value);
	}
}

/*
 * Puts fields, lengths and checksums into the headers, which are all in the first buffer. `stamp`
 * is the stamp's sum (0 without one).
 */
static inline void finish_headers(const struct stream_state *state, const struct tr_length *length,
				  uint8_t *frame, uint64_t stamp)
{
	const struct tr_stream *s = state->s;
	uint64_t ip_sum = length->ip_sum, l4_sum = length->l4_sum + stamp;

	for (unsigned i = 0; i < s->n_patches; i++) {
		const struct tr_patch *p = &s->patch[i];
		const struct tr_vary *v = &s->vary[p->vary];
		uint64_t index = state->vary[p->vary].index, word;

		word = p->high ? tr_vary_high(v, index) : tr_vary_value(v, index);
		word = big_endian(word << p->shift, p->width);
		store_word(frame + p->off, p->width, load_word(frame + p->off, p->width) | word);
		if (p->sums & TR_SUM_IP)
			ip_sum += tr_sum64(word);
		if (p->sums & TR_SUM_L4)
			l4_sum += tr_sum64(word);
	}
	if (s->size.span) {
		if (s->ip_len_off)
			memcpy(frame + s->ip_len_off, &length->ip_len, 2);
		if (s->udp_len_off)
			memcpy(frame + s->udp_len_off, &length->udp_len, 2);
	}
	if (s->ip_dynamic) {
		uint16_t csum = pk_csum_finish(ip_sum);

		memcpy(frame + s->ip_csum_off, &csum, 2);
	}
	if (s->l4_dynamic) {
		uint16_t csum = pk_csum_finish(l4_sum);

		if (s->udp && !csum)
			csum = 0xffff;
		memcpy(frame + s->l4_csum_off, &csum, 2);
	}
}

static inline void copy_units(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint32_t at = 0;

	do {
		memcpy(to + at, from + at, TR_COPY_UNIT);
		at += TR_COPY_UNIT;
	} while (at < bytes);
}

/* The stamp's sum, as its place in the frame counts it: behind an odd number of bytes the words
 * are shifted by a byte. */
static inline uint64_t stamp_sum(const struct burst_stamp *stamp, uint32_t sequence, uint32_t bytes)
{
	return (stamp->sum + htobe32(sequence)) << (bytes & 1 ? 8 : 0);
}

/* --- bursts --------------------------------------------------------------------------------- */

/* Frames that are all of one buffer. */
static unsigned build_single(struct generator *g, struct pk_cache *cache,
			     const struct burst_stamp *stamp, struct pk_slot *slots,
			     const uint32_t *bufs, unsigned n)
{
	const struct pk_arena *arena = cache->arena;
	const bool stamped = g->spec->stamped;

	for (unsigned j = 0; j < n && j < PREFETCH_AHEAD; j++)
		ho_prefetchw(pk_buffer(arena, bufs[j]) + PK_HEADROOM_BYTES);
	for (unsigned j = 0; j < n; j++) {
		uint8_t *frame = pk_buffer(arena, bufs[j]) + PK_HEADROOM_BYTES;
		struct stream_state *state = current_stream(g);
		const struct tr_length *length = &state->s->lengths[state->size.index];
		uint32_t bytes = length->bytes, sequence = (uint32_t)g->built;

		if (j + PREFETCH_AHEAD < n)
			ho_prefetchw(pk_buffer(arena, bufs[j + PREFETCH_AHEAD]) +
				     PK_HEADROOM_BYTES);
		copy_units(frame, state->s->image, bytes);
		finish_headers(state, length, frame,
			       stamped ? stamp_sum(stamp, sequence, bytes) : 0);
		if (stamped)
			tr_stamp_write(frame + bytes - TR_STAMP_BYTES, stamp->stream, sequence,
				       stamp->time_ns);
		slots[j] = (struct pk_slot){
			.buf = bufs[j],
			.off = PK_HEADROOM_BYTES,
			.len = (uint16_t)bytes,
		};
		next_turn(g);
	}
	return n;
}

/* The same frame again and again: one stream, nothing varies, no stamp. */
static unsigned build_same(struct generator *g, struct pk_cache *cache, struct pk_slot *slots,
			   const uint32_t *bufs, unsigned n)
{
	const struct tr_stream *s = &g->spec->streams[0];
	const struct pk_arena *arena = cache->arena;
	const uint32_t bytes = s->max_bytes;

	for (unsigned j = 0; j < n && j < PREFETCH_AHEAD; j++)
		ho_prefetchw(pk_buffer(arena, bufs[j]) + PK_HEADROOM_BYTES);
	for (unsigned j = 0; j < n; j++) {
		if (j + PREFETCH_AHEAD < n)
			ho_prefetchw(pk_buffer(arena, bufs[j + PREFETCH_AHEAD]) +
				     PK_HEADROOM_BYTES);
		copy_units(pk_buffer(arena, bufs[j]) + PK_HEADROOM_BYTES, s->image, bytes);
		slots[j] = (struct pk_slot){
			.buf = bufs[j],
			.off = PK_HEADROOM_BYTES,
			.len = (uint16_t)bytes,
		};
	}
	g->built += n;
	g->synced = false;
	return n;
}

/* One frame of any length; 0 if it takes more than n slots or the pool is empty. */
static unsigned build_chain(struct generator *g, struct pk_cache *cache,
			    const struct burst_stamp *stamp, struct pk_slot *slots, unsigned n)
{
	const struct pk_arena *arena = cache->arena;
	const uint32_t room = arena->stride_bytes - PK_HEADROOM_BYTES;
	struct stream_state *state = current_stream(g);
	const struct tr_length *length = &state->s->lengths[state->size.index];
	uint32_t bytes = length->bytes, sequence = (uint32_t)g->built, at = 0;
	uint32_t need = (bytes + room - 1) / room, last;
	uint32_t bufs[PK_CACHE_BULK], got;

	if (need > n || need > PK_CACHE_BULK)
		return 0;
	got = pk_alloc(cache, bufs, need);
	if (got < need) {
		pk_free(cache, bufs, got);
		return 0;
	}
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
		memcpy(pk_data(arena, &slots[i]), state->s->image + at, len);
		at += len;
	}
	finish_headers(state, length, pk_data(arena, &slots[0]),
		       g->spec->stamped ? stamp_sum(stamp, sequence, bytes) : 0);
	last = need - 1;
	if (g->spec->stamped)
		tr_stamp_write(pk_data(arena, &slots[last]) + slots[last].len - TR_STAMP_BYTES,
			       stamp->stream, sequence, stamp->time_ns);
	next_turn(g);
	return need;
}

static unsigned generator_next(struct tr_source *source, struct pk_cache *cache, uint64_t now_ns,
			       struct pk_slot *slots, unsigned n, unsigned frames, unsigned *built)
{
	struct generator *g = HO_CONTAINER_OF(source, struct generator, base);
	const struct tr_stream *first = &g->spec->streams[0];
	const bool same =
		g->spec->n_streams == 1 && !first->n_vary && !first->size.span && !g->spec->stamped;
	const uint64_t time = htobe64(now_ns), before = g->built;
	const struct burst_stamp stamp = {
		.time_ns = now_ns,
		.stream = (uint16_t)g->worker,
		.sum = htobe16(TR_STAMP_MAGIC) + (uint64_t)htobe16((uint16_t)g->worker) +
		       tr_sum64(time),
	};
	unsigned used = 0;

	if (!g->synced)
		sync_states(g);
	if (g->spec->max_bytes > cache->arena->stride_bytes - PK_HEADROOM_BYTES) {
		while (frames-- && used < n) {
			unsigned slots_used = build_chain(g, cache, &stamp, slots + used, n - used);

			if (!slots_used)
				break;
			used += slots_used;
		}
		*built = (unsigned)(g->built - before);
		return used;
	}
	frames = HO_MIN(frames, n);
	while (used < frames) {
		uint32_t bufs[PK_CACHE_BULK];
		unsigned want = HO_MIN(frames - used, (unsigned)PK_CACHE_BULK);
		unsigned got = pk_alloc(cache, bufs, want);

		used += same ? build_same(g, cache, slots + used, bufs, got)
			     : build_single(g, cache, &stamp, slots + used, bufs, got);
		if (got < want)
			break;
	}
	*built = used;
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
