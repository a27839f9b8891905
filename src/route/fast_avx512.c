// SPDX-License-Identifier: BSD-2-Clause
/*
 * The checks of the fast path, 16 frames at a time. Their headers are turned, so that a register
 * has the same word of all of them and a check is one instruction for 16 packets:
 *
 *   frame 0    w0 w1 w2 ...         w0   of frames 0, 1, ... 15
 *   frame 1    w0 w1 w2 ...   -->   w1   of frames 0, 1, ... 15
 *   ...                             ...
 *
 * Which bytes of a frame make the eight words is in pick4 and pick6. Each check is that of take4
 * and take6 in fast.c, which says why.
 */
#include "route/fast.h"

#if defined(__x86_64__)
#include <endian.h>
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,popcnt")))
#define ALWAYS TARGET static inline __attribute__((always_inline))
/* Arrays of registers must be indexed by constants. */
#define UNROLL _Pragma("GCC unroll 8")

#define GROUP RO_GROUP_AVX512
#define ALL   0xffffu
#define MANY  4 /* packets of the other family, for which a second look pays */

ALWAYS __m512i all_of(uint32_t v)
{
	return _mm512_set1_epi32((int)v);
}

/* --- slots ---------------------------------------------------------------------------------- */

/* Of eight slots the first 64 bits: buffer, offset, length. */
ALWAYS __m512i first_words(const struct pk_slot *s)
{
	return _mm512_permutex2var_epi64(_mm512_loadu_si512(s),
					 _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14),
					 _mm512_loadu_si512(s + 4));
}

TARGET void ro_fast_fetch_avx512(const struct pk_arena *arena, const struct pk_slot *slots,
				 unsigned n, struct ro_burst *b)
{
	const __m512i base = _mm512_set1_epi64((long long)(uintptr_t)arena->base);
	const __m512i stride = _mm512_set1_epi64(arena->stride_bytes);
	__m512i bytes = _mm512_setzero_si512();
	uint64_t rest = 0;
	unsigned i = 0;

	for (; i + 8 <= n; i += 8) {
		__m512i words = first_words(slots + i), data;

		data = _mm512_add_epi64(_mm512_mul_epu32(words, stride), base);
		data = _mm512_add_epi64(data, _mm512_and_si512(_mm512_srli_epi64(words, 32),
							       _mm512_set1_epi64(0xffff)));
		bytes = _mm512_add_epi64(bytes, _mm512_srli_epi64(words, 48));
		_mm512_store_si512(b->data + i, data);
		UNROLL
		for (unsigned k = 0; k < 8; k++)
			ho_prefetchw(b->data[i + k]);
	}
	for (; i < n; i++) {
		b->data[i] = pk_data(arena, &slots[i]);
		rest += slots[i].len;
		ho_prefetchw(b->data[i]);
	}
	b->bytes = rest + (uint64_t)_mm512_reduce_add_epi64(bytes);
}

struct slots {
	__m512i slot[4]; /* four in each */
	__m512i off_len; /* of each, the offset in the lower half */
};

/* Are all of them simple frames, untagged and no shorter than a good one can be? */
ALWAYS bool load_slots(struct slots *s, const struct pk_slot *slots, uint32_t stride)
{
	const __m512i odd =
		_mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
	const __m512i flags =
		_mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, RO_NOT_SIMPLE | PK_VLAN, 0));
	const __m512i most = all_of(0xffff0000 | (stride - RO_FAST_LOADED));
	const __m512i least = all_of((PK_ETH_BYTES + PK_IPV4_BYTES) << 16);
	__m512i any;

	UNROLL
	for (unsigned i = 0; i < 4; i++)
		s->slot[i] = _mm512_loadu_si512(slots + 4 * i);
	any = _mm512_or_si512(_mm512_or_si512(s->slot[0], s->slot[1]),
			      _mm512_or_si512(s->slot[2], s->slot[3]));
	s->off_len = _mm512_permutex2var_epi32(first_words(slots), odd, first_words(slots + 8));
	return !(_mm512_cmpgt_epu16_mask(s->off_len, most) |
		 _mm512_cmplt_epu16_mask(s->off_len, least) | _mm512_test_epi32_mask(any, flags));
}

/* --- headers -------------------------------------------------------------------------------- */

/* Sixteen words of 16 bits of one frame, and the same of another one. */
#define PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                                       \
	_mm512_set_epi16(p + 32, o + 32, n + 32, m + 32, l + 32, k + 32, j + 32, i + 32, h + 32,   \
			 g + 32, f + 32, e + 32, d + 32, c + 32, b + 32, a + 32, p, o, n, m, l, k, \
			 j, i, h, g, f, e, d, c, b, a)

/* in: words 0 to 7 of frames 0 and 1, of 2 and 3, ... out: words 0, 1, ... of 16 frames. */
ALWAYS void turn(const __m512i in[8], __m512i out[8])
{
	const __m512i words0_3 =
		_mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
	const __m512i words4_7 = _mm512_add_epi32(words0_3, all_of(4));
	const __m512i lower = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
	const __m512i upper = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
	__m512i four[2][4], eight[4][2];

	/* Words 0 of four frames, their words 1, 2 and 3; and words 4 to 7. */
	UNROLL
	for (unsigned i = 0; i < 4; i++) {
		four[0][i] = _mm512_permutex2var_epi32(in[2 * i], words0_3, in[2 * i + 1]);
		four[1][i] = _mm512_permutex2var_epi32(in[2 * i], words4_7, in[2 * i + 1]);
	}
	/* Words 0 of eight frames, their words 1; and words 2 and 3, 4 and 5, 6 and 7. */
	UNROLL
	for (unsigned h = 0; h < 4; h++) {
		const __m512i *f = &four[h / 2][h % 2 * 2];

		eight[h / 2 * 2][h % 2] = _mm512_permutex2var_epi64(f[0], lower, f[1]);
		eight[h / 2 * 2 + 1][h % 2] = _mm512_permutex2var_epi64(f[0], upper, f[1]);
	}
	UNROLL
	for (unsigned w = 0; w < 4; w++) {
		out[2 * w] = _mm512_shuffle_i64x2(eight[w][0], eight[w][1], 0x44);
		out[2 * w + 1] = _mm512_shuffle_i64x2(eight[w][0], eight[w][1], 0xee);
	}
}

/* A length in network order in the upper half of each word, as a number. */
ALWAYS __m512i lengths(__m512i words)
{
	return _mm512_shuffle_epi8(
		words, _mm512_broadcast_i32x4(_mm_setr_epi8(3, 2, -1, -1, 7, 6, -1, -1, 11, 10, -1,
							    -1, 15, 14, -1, -1)));
}

/* May these be addresses of the router? product: see ro_own_bit4. */
ALWAYS __mmask16 near_own(__m512i product, const uint32_t *filter)
{
	__m512i words = _mm512_permutexvar_epi32(_mm512_srli_epi32(product, 28),
						 _mm512_loadu_si512(filter));

	return _mm512_test_epi32_mask(_mm512_rorv_epi32(words, _mm512_srli_epi32(product, 23)),
				      all_of(1));
}

/* Those of `near` that the full filter has, too. */
TARGET static __attribute__((noinline)) unsigned full_own(__m512i product, const uint64_t *filter,
							  unsigned near)
{
	uint32_t p[GROUP];
	unsigned own = 0;

	_mm512_storeu_si512(p, product);
	for (; near; near &= near - 1) {
		unsigned k = (unsigned)__builtin_ctz(near), bit = p[k] >> 20;

		own |= (unsigned)(filter[bit / 64] >> (bit % 64) & 1) << k;
	}
	return own;
}

/* The words that `taken` names, one behind the other; what is behind them is written, too. */
ALWAYS void put(uint32_t *to, __mmask16 taken, __m512i v)
{
	_mm512_storeu_si512(to,
			    ho_likely(taken == ALL) ? v : _mm512_maskz_compress_epi32(taken, v));
}

/* A bit for each pair of 64 bits that a slot is. */
ALWAYS __mmask8 pairs(unsigned slots)
{
	return (__mmask8)(_pdep_u32(slots, 0x55) * 3);
}

/* Adds those of `taken` to a lane. len: bytes of their frames, as they leave untagged. */
ALWAYS void add(struct ro_lane *l, __mmask16 taken, const struct slots *s, uint8_t *const *data,
		unsigned i, __m512i len)
{
	const __m512i kept = _mm512_broadcast_i32x4(_mm_setr_epi32(-1, -1, RO_FLAGS_KEPT, -1));
	const __m512i own = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
	const __m512i number =
		_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m512i slot = _mm512_add_epi32(all_of(i), number), draft[4], ip[2], off_len;
	unsigned n = l->n;

	if (_mm512_mask_cmpgt_epu32_mask(taken, len, all_of(l->longest)))
		l->longest = _mm512_mask_reduce_max_epu32(taken, len);
	off_len = _mm512_mask_blend_epi16(0xaaaaaaaa, s->off_len, _mm512_slli_epi32(len, 16));
	UNROLL
	for (unsigned k = 0; k < 4; k++)
		draft[k] = _mm512_mask_permutexvar_epi32(_mm512_and_si512(s->slot[k], kept), 0x2222,
							 _mm512_add_epi32(own, all_of(4 * k)),
							 off_len);
	UNROLL
	for (unsigned k = 0; k < 2; k++)
		ip[k] = _mm512_add_epi64(_mm512_loadu_si512(data + 8 * k),
					 _mm512_set1_epi64(PK_ETH_BYTES));
	l->n = n + (unsigned)__builtin_popcount(taken);
	if (ho_likely(taken == ALL)) {
		_mm_storeu_si128((void *)&l->slot[n], _mm512_cvtepi32_epi8(slot));
		_mm512_storeu_si512(l->ip + n, ip[0]);
		_mm512_storeu_si512(l->ip + n + 8, ip[1]);
		UNROLL
		for (unsigned k = 0; k < 4; k++)
			_mm512_storeu_si512(&l->draft[n + 4 * k], draft[k]);
		return;
	}
	slot = _mm512_maskz_compress_epi32(taken, slot);
	_mm_storeu_si128((void *)&l->slot[n], _mm512_cvtepi32_epi8(slot));
	_mm512_storeu_si512(l->ip + n, _mm512_maskz_compress_epi64((__mmask8)taken, ip[0]));
	_mm512_storeu_si512(l->ip + n + __builtin_popcount(taken & 0xff),
			    _mm512_maskz_compress_epi64((__mmask8)(taken >> 8), ip[1]));
	UNROLL
	for (unsigned k = 0; k < 4; k++) {
		unsigned few = taken >> 4 * k & 0xf;

		_mm512_storeu_si512(&l->draft[n],
				    _mm512_maskz_compress_epi64(pairs(few), draft[k]));
		n += (unsigned)__builtin_popcount(few);
	}
}

/* Those of `among` that are good IPv4. Words: destination, the rest of it and the type, header. */
ALWAYS unsigned group4(struct ro_burst *b, const struct ro_sorter *o, const struct slots *s,
		       unsigned i, __mmask16 among)
{
	const __m512i pick4 = PICK(0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16);
	const __m512i swap = _mm512_broadcast_i32x4(
		_mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
	const __m512i mac = all_of((uint32_t)(o->untagged >> 16));
	const __m512i type =
		all_of((uint32_t)(o->untagged >> 48) | (uint32_t)htobe16(PK_ETH_IPV4) << 16);
	const __m512i half = all_of(0xffff);
	uint8_t *const *data = b->data + i;
	__m512i two[8], w[8], bytes, have, differ, sum, upper, first, product, counted;
	__mmask16 good, near;

	UNROLL
	for (unsigned k = 0; k < 8; k++)
		two[k] = _mm512_permutex2var_epi16(_mm512_loadu_si512(data[2 * k]), pick4,
						   _mm512_loadu_si512(data[2 * k + 1]));
	turn(two, w);
	differ = _mm512_or_si512(_mm512_xor_si512(w[0], mac), _mm512_xor_si512(w[1], type));
	differ = _mm512_or_si512(
		differ, _mm512_and_si512(_mm512_xor_si512(w[2], all_of(0x45)), all_of(0xff)));
	good = _mm512_mask_testn_epi32_mask(among, differ, differ);
	bytes = lengths(w[2]);
	have = _mm512_srli_epi32(s->off_len, 16);
	good = _mm512_mask_cmple_epu32_mask(
		good, _mm512_sub_epi32(bytes, all_of(PK_IPV4_BYTES)),
		_mm512_sub_epi32(have, all_of(PK_ETH_BYTES + PK_IPV4_BYTES)));
	good = _mm512_mask_test_epi32_mask(good, w[4], all_of(0xfe)); /* TTL above 1 */
	/* The sum of all halves of words. That of the words has the lower ones in its lower half,
	 * with a carry in the upper one, where the upper ones are, too. */
	upper = _mm512_srli_epi32(w[2], 16);
	sum = w[2];
	UNROLL
	for (unsigned k = 3; k < 7; k++) {
		upper = _mm512_add_epi32(upper, _mm512_srli_epi32(w[k], 16));
		sum = _mm512_add_epi32(sum, w[k]);
	}
	sum = _mm512_add_epi32(_mm512_sub_epi32(sum, _mm512_slli_epi32(upper, 16)), upper);
	sum = _mm512_add_epi32(_mm512_and_si512(sum, half), _mm512_srli_epi32(sum, 16));
	good = _mm512_mask_cmpeq_epi32_mask(good, sum, half);
	/* The source: 0/8, groups and above; 127/8; 169.254/16. */
	first = _mm512_slli_epi32(w[5], 24);
	good = _mm512_mask_cmplt_epu32_mask(good, _mm512_sub_epi32(first, all_of(1u << 24)),
					    all_of(223u << 24));
	good = _mm512_mask_cmpneq_epi32_mask(good, first, all_of(127u << 24));
	good = _mm512_mask_cmpneq_epi32_mask(good, _mm512_slli_epi32(w[5], 16),
					     all_of(0xfea9u << 16));
	product = _mm512_mullo_epi32(w[5], all_of(RO_OWN_FACTOR));
	near = near_own(product, o->own->near4) & good;
	if (ho_unlikely(near))
		good &= (__mmask16)~full_own(product, o->own->v4, near);
	/* ro_count_down4 */
	counted = _mm512_add_epi32(w[4], half);
	counted =
		_mm512_mask_add_epi32(counted, _mm512_cmpge_epu32_mask(w[4], all_of(0xfffeu << 16)),
				      counted, all_of(1u << 16));
	put(&b->dst4[b->v4.n], good, _mm512_shuffle_epi8(w[6], swap));
	put(&b->counted[b->v4.n], good, counted);
	add(&b->v4, good, s, data, i, _mm512_add_epi32(bytes, all_of(PK_ETH_BYTES)));
	return good;
}

/* Those of `among` that are good IPv6. Words: destination, the rest of it and the type, version and
 * length, next header and hop limit, source. */
ALWAYS unsigned group6(struct ro_burst *b, const struct ro_sorter *o, const struct slots *s,
		       unsigned i, __mmask16 among)
{
	const __m512i pick6 = PICK(0, 1, 2, 6, 7, 9, 10, 10, 11, 12, 13, 14, 15, 16, 17, 18);
	/* The packets' destinations of two frames. */
	const __m512i pick_dst = _mm512_castsi256_si512(
		_mm256_setr_epi16(19, 20, 21, 22, 23, 24, 25, 26, 32 + 19, 32 + 20, 32 + 21,
				  32 + 22, 32 + 23, 32 + 24, 32 + 25, 32 + 26));
	const __m512i mac = all_of((uint32_t)(o->untagged >> 16));
	const __m512i type =
		all_of((uint32_t)(o->untagged >> 48) | (uint32_t)htobe16(PK_ETH_IPV6) << 16);
	uint8_t *const *data = b->data + i;
	__m512i two[8], w[8], len, differ, product;
	__m256i dst[8];
	__mmask16 good, near;
	unsigned n = b->v6.n;

	UNROLL
	for (unsigned k = 0; k < 8; k++) {
		__m512i even = _mm512_loadu_si512(data[2 * k]),
			uneven = _mm512_loadu_si512(data[2 * k + 1]);

		two[k] = _mm512_permutex2var_epi16(even, pick6, uneven);
		dst[k] = _mm512_castsi512_si256(_mm512_permutex2var_epi16(even, pick_dst, uneven));
	}
	turn(two, w);
	differ = _mm512_or_si512(_mm512_xor_si512(w[0], mac), _mm512_xor_si512(w[1], type));
	differ = _mm512_or_si512(
		differ, _mm512_and_si512(_mm512_xor_si512(w[2], all_of(0x60)), all_of(0xf0)));
	good = _mm512_mask_testn_epi32_mask(among, differ, differ);
	/* A frame with less than a header is shorter than its header says, too. */
	len = _mm512_add_epi32(lengths(w[2]), all_of(PK_ETH_BYTES + PK_IPV6_BYTES));
	good = _mm512_mask_cmple_epu32_mask(good, len, _mm512_srli_epi32(s->off_len, 16));
	good = _mm512_mask_test_epi32_mask(good, w[3], all_of(0xff));   /* no hop-by-hop options */
	good = _mm512_mask_test_epi32_mask(good, w[3], all_of(0xfe00)); /* hop limit above 1 */
	/* The source: ::/64, fe00::/8 and groups. */
	differ = _mm512_or_si512(w[4], w[5]);
	good = _mm512_mask_test_epi32_mask(good, differ, differ);
	good = _mm512_mask_cmplt_epu32_mask(good, _mm512_slli_epi32(w[4], 24), all_of(0xfeu << 24));
	product = _mm512_xor_si512(
		_mm512_add_epi32(w[4], _mm512_mullo_epi32(w[5], all_of(RO_OWN_FACTOR2))),
		_mm512_add_epi32(w[6], _mm512_mullo_epi32(w[7], all_of(RO_OWN_FACTOR4))));
	product = _mm512_mullo_epi32(product, all_of(RO_OWN_FACTOR));
	near = near_own(product, o->own->near6) & good;
	if (ho_unlikely(near))
		good &= (__mmask16)~full_own(product, o->own->v6, near);
	if (ho_likely(good == ALL)) {
		UNROLL
		for (unsigned k = 0; k < 8; k++)
			_mm256_storeu_si256((void *)&b->dst6[n + 2 * k], dst[k]);
	} else {
		for (unsigned left = good; left; left &= left - 1)
			memcpy(&b->dst6[n++], data[__builtin_ctz(left)] + PK_ETH_BYTES + 24, 16);
	}
	add(&b->v6, good, s, data, i, len);
	return good;
}

/* --- a group -------------------------------------------------------------------------------- */

/* What is left of a group that has packets of both families. */
TARGET static __attribute__((noinline)) unsigned rest4(struct ro_burst *b,
						       const struct ro_sorter *o,
						       const struct pk_slot *slots, unsigned i,
						       __mmask16 among)
{
	struct slots s;

	return load_slots(&s, slots + i, o->stride_bytes) ? group4(b, o, &s, i, among) : 0;
}

TARGET static __attribute__((noinline)) unsigned rest6(struct ro_burst *b,
						       const struct ro_sorter *o,
						       const struct pk_slot *slots, unsigned i,
						       __mmask16 among)
{
	struct slots s;

	return load_slots(&s, slots + i, o->stride_bytes) ? group6(b, o, &s, i, among) : 0;
}

TARGET unsigned ro_fast_group_avx512(struct ro_burst *b, const struct ro_sorter *o,
				     const struct pk_slot *slots, unsigned i)
{
	struct slots s;
	unsigned taken, left;
	bool four;

	if (ho_unlikely(!load_slots(&s, slots + i, o->stride_bytes)))
		return 0;
	four = b->data[i][12] == PK_ETH_IPV4 >> 8;
	taken = four ? group4(b, o, &s, i, ALL) : group6(b, o, &s, i, ALL);
	left = taken ^ ALL;
	if (ho_unlikely(__builtin_popcount(left) >= MANY))
		taken |= four ? rest6(b, o, slots, i, (__mmask16)left)
			      : rest4(b, o, slots, i, (__mmask16)left);
	return taken;
}
#endif
