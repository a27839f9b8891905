// SPDX-License-Identifier: BSD-2-Clause
/*
 * The checks of the fast path, eight frames at a time, for a CPU with AVX2. As in fast_avx512.c
 * headers are turned, so that a check is one instruction for all of them. A group is taken as a
 * whole or not at all: without masks it does not pay to pick the good ones.
 */
#include "route/fast.h"

#if defined(__x86_64__)
#include <endian.h>
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define ALWAYS TARGET static inline __attribute__((always_inline))
/* Arrays of registers must be indexed by constants. */
#define UNROLL _Pragma("GCC unroll 8")

#define GROUP RO_GROUP_AVX2
#define ALL   0xffu

ALWAYS __m256i all_of(uint32_t v)
{
	return _mm256_set1_epi32((int)v);
}

ALWAYS bool zero(__m256i v)
{
	return _mm256_testz_si256(v, v);
}

/* Ones where a is no less than b. */
ALWAYS __m256i at_least(__m256i a, __m256i b)
{
	return _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
}

struct slots {
	__m256i slot[4]; /* two in each */
	__m256i off_len; /* of each, the offset in the lower half */
};

/* Dword 1 of four times two slots. */
ALWAYS __m256i second_words(const __m256i s[4])
{
	__m256 a = _mm256_shuffle_ps(_mm256_castsi256_ps(s[0]), _mm256_castsi256_ps(s[1]), 0x55);
	__m256 b = _mm256_shuffle_ps(_mm256_castsi256_ps(s[2]), _mm256_castsi256_ps(s[3]), 0x55);

	/* 0, 2, 4, 6, 1, 3, 5, 7 */
	return _mm256_permutevar8x32_epi32(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)),
					   _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Are all of them simple frames, untagged and no shorter than a good one can be? */
ALWAYS bool load_slots(struct slots *s, const struct pk_slot *slots, uint32_t stride)
{
	const __m256i flags = _mm256_setr_epi32(0, 0, RO_NOT_SIMPLE | PK_VLAN, 0, 0, 0,
						RO_NOT_SIMPLE | PK_VLAN, 0);
	const __m256i most = all_of(0xffff0000 | (stride - RO_FAST_LOADED));
	const __m256i least = all_of((PK_ETH_BYTES + PK_IPV4_BYTES) << 16);
	__m256i bad;

	UNROLL
	for (unsigned i = 0; i < 4; i++)
		s->slot[i] = _mm256_loadu_si256((const void *)(slots + 2 * i));
	bad = _mm256_or_si256(_mm256_or_si256(s->slot[0], s->slot[1]),
			      _mm256_or_si256(s->slot[2], s->slot[3]));
	bad = _mm256_and_si256(bad, flags);
	s->off_len = second_words(s->slot);
	bad = _mm256_or_si256(bad, _mm256_subs_epu16(s->off_len, most));
	return zero(_mm256_or_si256(bad, _mm256_subs_epu16(least, s->off_len)));
}

/* --- headers -------------------------------------------------------------------------------- */

/* in: eight words of each of eight frames; out: words 0, 1, ... of all. */
ALWAYS void turn(const __m256i in[8], __m256i out[8])
{
	__m256i two[8], four[8];

	/* In each half of a register: words 0 and 1 of two frames, words 2 and 3. */
	UNROLL
	for (unsigned i = 0; i < 4; i++) {
		two[2 * i] = _mm256_unpacklo_epi32(in[2 * i], in[2 * i + 1]);
		two[2 * i + 1] = _mm256_unpackhi_epi32(in[2 * i], in[2 * i + 1]);
	}
	/* Word 0 of four frames, word 1, 2, 3; in the upper halves words 4 to 7. */
	UNROLL
	for (unsigned i = 0; i < 4; i++) {
		const __m256i *t = &two[i / 2 * 4 + i % 2];

		four[i / 2 * 4 + i % 2 * 2] = _mm256_unpacklo_epi64(t[0], t[2]);
		four[i / 2 * 4 + i % 2 * 2 + 1] = _mm256_unpackhi_epi64(t[0], t[2]);
	}
	UNROLL
	for (unsigned i = 0; i < 4; i++) {
		out[i] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x20);
		out[i + 4] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x31);
	}
}

/* A length in network order in the upper half of each word, as a number. */
ALWAYS __m256i lengths(__m256i words)
{
	return _mm256_shuffle_epi8(words, _mm256_setr_epi8(3, 2, -1, -1, 7, 6, -1, -1, 11, 10, -1,
							   -1, 15, 14, -1, -1, 3, 2, -1, -1, 7, 6,
							   -1, -1, 11, 10, -1, -1, 15, 14, -1, -1));
}

/* May one of these be an address of the router? product: see ro_own_bit4. */
ALWAYS bool near_own(__m256i product, const uint32_t *filter)
{
	__m256i at = _mm256_srli_epi32(product, 28), words, shift;
	__m256i low = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const void *)filter), at);
	__m256i high =
		_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const void *)(filter + 8)), at);

	/* Its uppermost bit says which half of the filter; bits 23 to 27 which bit of the word. */
	words = _mm256_castps_si256(_mm256_blendv_ps(
		_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), _mm256_castsi256_ps(product)));
	shift = _mm256_andnot_si256(_mm256_srli_epi32(product, 23), all_of(31));
	return _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(words, shift)));
}

/* The bits in which an Ethernet destination is another one. */
ALWAYS uint64_t destinations(uint8_t *const *data, uint64_t expected)
{
	uint64_t differ = 0;

	UNROLL
	for (unsigned k = 0; k < GROUP; k++) {
		uint64_t mac;

		memcpy(&mac, data[k], sizeof(mac));
		differ |= mac << 16 ^ expected;
	}
	return differ;
}

/* Adds a group to a lane. len: bytes of their frames, as they leave untagged. */
ALWAYS void add(struct ro_lane *l, const struct slots *s, uint8_t *const *data, unsigned i,
		__m256i len)
{
	const __m256i kept =
		_mm256_setr_epi32(-1, -1, RO_FLAGS_KEPT, -1, -1, -1, RO_FLAGS_KEPT, -1);
	const __m256i own = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
	const uint64_t slot = 0x0706050403020100 + i * 0x0101010101010101;
	__m256i off_len = _mm256_blend_epi16(s->off_len, _mm256_slli_epi32(len, 16), 0xaa);
	__m128i most = _mm_max_epu32(_mm256_castsi256_si128(len), _mm256_extracti128_si256(len, 1));
	unsigned n = l->n;

	most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0x4e));
	most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0xb1));
	l->longest = HO_MAX(l->longest, (uint32_t)_mm_cvtsi128_si32(most));
	memcpy(&l->slot[n], &slot, sizeof(slot));
	UNROLL
	for (unsigned k = 0; k < 2; k++)
		_mm256_storeu_si256(
			(void *)(l->ip + n + 4 * k),
			_mm256_add_epi64(_mm256_loadu_si256((const void *)(data + 4 * k)),
					 _mm256_set1_epi64x(PK_ETH_BYTES)));
	UNROLL
	for (unsigned k = 0; k < 4; k++) {
		__m256i two =
			_mm256_permutevar8x32_epi32(off_len, _mm256_add_epi32(own, all_of(2 * k)));

		_mm256_storeu_si256(
			(void *)&l->draft[n + 2 * k],
			_mm256_blend_epi32(_mm256_and_si256(s->slot[k], kept), two, 0x22));
	}
	l->n = n + GROUP;
}

/* Are all of them good IPv4? Words: bytes 2 to 33 of a frame. */
ALWAYS bool group4(struct ro_burst *b, const struct ro_sorter *o, const struct slots *s, unsigned i)
{
	const __m256i swap = _mm256_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12,
					      3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
	const __m256i half = all_of(0xffff);
	uint8_t *const *data = b->data + i;
	__m256i frame[8], w[8], bytes, have, bad, sum, upper, first, counted;

	UNROLL
	for (unsigned k = 0; k < GROUP; k++)
		frame[k] = _mm256_loadu_si256((const void *)(data[k] + 2));
	turn(frame, w);
	/* What is no type, version or length of header, is shifted out. */
	bad = _mm256_slli_epi32(_mm256_xor_si256(w[3], all_of(0x45)), 24);
	bad = _mm256_or_si256(
		bad, _mm256_xor_si256(_mm256_srli_epi32(w[2], 16), all_of(htobe16(PK_ETH_IPV4))));
	bytes = lengths(w[3]);
	have = _mm256_srli_epi32(s->off_len, 16);
	bad = _mm256_or_si256(
		bad, _mm256_xor_si256(
			     at_least(_mm256_sub_epi32(have, all_of(PK_ETH_BYTES + PK_IPV4_BYTES)),
				      _mm256_sub_epi32(bytes, all_of(PK_IPV4_BYTES))),
			     all_of(UINT32_MAX)));
	/* TTL above 1 */
	bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(_mm256_and_si256(w[5], all_of(0xfe)),
						      _mm256_setzero_si256()));
	/* As in fast_avx512.c. */
	upper = _mm256_srli_epi32(w[3], 16);
	sum = w[3];
	UNROLL
	for (unsigned k = 4; k < 8; k++) {
		upper = _mm256_add_epi32(upper, _mm256_srli_epi32(w[k], 16));
		sum = _mm256_add_epi32(sum, w[k]);
	}
	sum = _mm256_add_epi32(_mm256_sub_epi32(sum, _mm256_slli_epi32(upper, 16)), upper);
	sum = _mm256_add_epi32(_mm256_and_si256(sum, half), _mm256_srli_epi32(sum, 16));
	bad = _mm256_or_si256(bad, _mm256_xor_si256(sum, half));
	/* The source: 0/8, groups and above; 127/8; 169.254/16. */
	first = _mm256_slli_epi32(w[6], 24);
	bad = _mm256_or_si256(
		bad, at_least(_mm256_sub_epi32(first, all_of(1u << 24)), all_of(223u << 24)));
	bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(first, all_of(127u << 24)));
	bad = _mm256_or_si256(
		bad, _mm256_cmpeq_epi32(_mm256_slli_epi32(w[6], 16), all_of(0xfea9u << 16)));
	if (!zero(bad) || destinations(data, o->untagged) ||
	    near_own(_mm256_mullo_epi32(w[6], all_of(RO_OWN_FACTOR)), o->own->near4))
		return false;
	/* ro_count_down4: all ones are -1, and twice the upper half. */
	counted = at_least(w[5], all_of(0xfffeu << 16));
	counted = _mm256_add_epi32(_mm256_add_epi32(w[5], half),
				   _mm256_and_si256(counted, all_of(1u << 16)));
	_mm256_storeu_si256((void *)&b->dst4[b->v4.n], _mm256_shuffle_epi8(w[7], swap));
	_mm256_storeu_si256((void *)&b->counted[b->v4.n], counted);
	add(&b->v4, s, data, i, _mm256_add_epi32(bytes, all_of(PK_ETH_BYTES)));
	return true;
}

/* Are all of them good IPv6? Words: bytes 6 to 21 of a frame, and the source. */
ALWAYS bool group6(struct ro_burst *b, const struct ro_sorter *o, const struct slots *s, unsigned i)
{
	uint8_t *const *data = b->data + i;
	__m256i frame[8], w[8], len, bad, product;

	UNROLL
	for (unsigned k = 0; k < GROUP; k++)
		frame[k] = _mm256_loadu2_m128i((const void *)(data[k] + 22),
					       (const void *)(data[k] + 6));
	turn(frame, w);
	bad = _mm256_and_si256(_mm256_xor_si256(w[2], all_of(0x60)), all_of(0xf0));
	bad = _mm256_or_si256(
		bad, _mm256_xor_si256(_mm256_srli_epi32(w[1], 16), all_of(htobe16(PK_ETH_IPV6))));
	/* Length, next header, hop limit. */
	len = _mm256_and_si256(w[3], all_of(0xffff));
	len = _mm256_add_epi32(lengths(_mm256_slli_epi32(len, 16)),
			       all_of(PK_ETH_BYTES + PK_IPV6_BYTES));
	bad = _mm256_or_si256(bad,
			      _mm256_xor_si256(at_least(_mm256_srli_epi32(s->off_len, 16), len),
					       all_of(UINT32_MAX)));
	bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(_mm256_and_si256(w[3], all_of(0xffu << 16)),
						      _mm256_setzero_si256()));
	bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(_mm256_and_si256(w[3], all_of(0xfeu << 24)),
						      _mm256_setzero_si256()));
	/* The source: ::/64, fe00::/8 and groups. */
	bad = _mm256_or_si256(
		bad, _mm256_cmpeq_epi32(_mm256_or_si256(w[4], w[5]), _mm256_setzero_si256()));
	bad = _mm256_or_si256(bad, at_least(_mm256_slli_epi32(w[4], 24), all_of(0xfeu << 24)));
	product = _mm256_xor_si256(
		_mm256_add_epi32(w[4], _mm256_mullo_epi32(w[5], all_of(RO_OWN_FACTOR2))),
		_mm256_add_epi32(w[6], _mm256_mullo_epi32(w[7], all_of(RO_OWN_FACTOR4))));
	if (!zero(bad) || destinations(data, o->untagged) ||
	    near_own(_mm256_mullo_epi32(product, all_of(RO_OWN_FACTOR)), o->own->near6))
		return false;
	UNROLL
	for (unsigned k = 0; k < GROUP; k++)
		memcpy(&b->dst6[b->v6.n + k], data[k] + PK_ETH_BYTES + 24, 16);
	add(&b->v6, s, data, i, len);
	return true;
}

TARGET unsigned ro_fast_group_avx2(struct ro_burst *b, const struct ro_sorter *o,
				   const struct pk_slot *slots, unsigned i)
{
	struct slots s;

	if (ho_unlikely(!load_slots(&s, slots + i, o->stride_bytes)))
		return 0;
	if (b->data[i][12] == PK_ETH_IPV4 >> 8 ? group4(b, o, &s, i) : group6(b, o, &s, i))
		return ALL;
	return 0;
}
#endif
