/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the fast path: a burst between its stages, and the stages that exist several times, for
 * what vector instructions the CPU has.
 */
#ifndef HOLDOFF_ROUTE_FAST_H
#define HOLDOFF_ROUTE_FAST_H

#include "route/worker.h"

/* Frames of several buffers, or that become several. */
#define RO_NOT_SIMPLE (PK_MORE | PK_TSO)
/* What stays of a frame's flags when it is sent on. */
#define RO_FLAGS_KEPT (PK_MORE | PK_CSUM_OK | PK_CSUM_PARTIAL | PK_TSO)

/* Packets of a burst that the fast path takes, of one family. */
struct ro_lane {
	unsigned n;
	uint32_t longest;       /* bytes of the longest frame, as it leaves untagged */
	uint8_t slot[PK_BURST]; /* which of the burst */
	uint8_t *ip[PK_BURST] HO_CACHE_ALIGNED;
	/* As they leave untagged: 14 bytes of Ethernet, and nothing behind the packet. */
	struct pk_slot draft[PK_BURST] HO_CACHE_ALIGNED;
	uint32_t nh[PK_BURST] HO_CACHE_ALIGNED;
};

struct ro_burst {
	uint8_t *data[PK_BURST] HO_CACHE_ALIGNED; /* the frames */
	struct ro_lane v4, v6;
	uint32_t dst4[PK_BURST] HO_CACHE_ALIGNED; /* of v4's packets, host order */
	uint32_t counted[PK_BURST]; /* of v4's: bytes 8 to 11 of the header as it leaves */
	struct fib6_addr dst6[PK_BURST] HO_CACHE_ALIGNED;
	unsigned slow;
	uint8_t slow_at[PK_BURST];
	uint64_t bytes;
	unsigned more; /* slots that are not the last of their frame */
};

/* What the checks of a burst compare with. */
struct ro_sorter {
	const struct ro_own *own;
	/* The Ethernet destination of untagged frames, as the upper 48 bits of a word. */
	uint64_t untagged;
	uint32_t stride_bytes;
};
#define RO_NOBODY 1ull /* no address, shifted to the upper end of a word, is equal to it */

/* Addresses of all frames to b->data, their headers on the way to the cache; b->bytes. */
typedef void ro_fetch_fn(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
			 struct ro_burst *b);
/*
 * Looks at a group of frames, slots i and following of the burst, of which all are there. Good
 * untagged packets are added to their lanes, in order. Returns a bit for each of those, the lowest
 * one for slot i; the others are to be looked at one by one, and may be good as well. The
 * sorter's destination is not RO_NOBODY.
 */
typedef unsigned ro_group_fn(struct ro_burst *b, const struct ro_sorter *sorter,
			     const struct pk_slot *slots, unsigned i);

struct ro_fast {
	ro_fetch_fn *fetch;
	ro_group_fn *group;
	unsigned width; /* frames of a group; 0: there is no such function */
};

/* Of the widest instructions that the CPU and HOLDOFF_SIMD allow. */
const struct ro_fast *ro_fast_choose(void);

#if defined(__x86_64__)
#define RO_GROUP_AVX2   8u
#define RO_GROUP_AVX512 16u
ro_group_fn ro_fast_group_avx2, ro_fast_group_avx512;
ro_fetch_fn ro_fast_fetch_avx512;
#endif

/* Bytes that these load of a frame, however short it is: if there are fewer up to the buffer's end,
 * they leave it alone. */
#define RO_FAST_LOADED 64u

/* Bytes 8 to 11 of an IPv4 header with one hop less. TTL is the low byte of the word, the checksum
 * its upper half (RFC 1624): one less in the low byte of a word of the header is one more in the
 * checksum, which never becomes 0xffff. */
static inline uint32_t ro_count_down4(uint32_t word)
{
	return word + (word >= 0xfffe0000 ? 0x1ffff : 0xffff);
}

#endif
