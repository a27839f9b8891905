/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A specification made ready for building frames: what traffic/spec.c makes and traffic/source.c
 * runs through.
 *
 * A stream is a template of its longest frame in which every varying field and every checksum is
 * zero, and a list of patches that put the fields in. Checksums come from the template's sum, known
 * beforehand for each length, plus what the patches put in: no frame is summed up when it is sent.
 */
#ifndef HOLDOFF_TRAFFIC_FRAME_H
#define HOLDOFF_TRAFFIC_FRAME_H

#include "base/compiler.h"
#include "packet/csum.h"
#include "traffic/vary.h"

/* Which checksums a field counts in. */
enum {
	TR_SUM_IP = 1,
	TR_SUM_L4 = 2,
};

/*
 * A field that varies: its value, shifted, is or-ed into the big-endian word of `width` bytes at
 * `off`. Words begin at even offsets, so that they can be added to a sum as they are.
 */
struct tr_patch {
	uint16_t off;
	uint8_t width; /* 2, 4 or 8 bytes */
	uint8_t shift; /* bits */
	uint8_t sums;
	bool high;    /* upper 64 bits of the value */
	uint8_t vary; /* index into the stream's */
};

/* A frame length that the stream can have. Sums are folded, of everything but patches and stamp. */
struct tr_length {
	uint32_t bytes;
	uint16_t ip_len;  /* what IPv4's total or IPv6's payload length field holds, big endian */
	uint16_t udp_len; /* big endian */
	uint16_t ip_sum;
	uint16_t l4_sum; /* pseudo header included */
};

#define TR_VARY_MAX  32 /* fields of a stream */
#define TR_NAME_MAX  48
#define TR_COPY_UNIT 64 /* templates are copied, and allocated, in multiples of this */

struct tr_stream {
	uint8_t *image; /* the template: max_bytes, rounded up to TR_COPY_UNIT */
	uint32_t max_bytes, min_bytes;
	uint16_t l3_off, l4_off, payload_off;
	uint16_t ip_len_off;  /* of the length field; 0 without IP */
	uint16_t ip_csum_off; /* 0 = none */
	uint16_t udp_len_off; /* 0 = none */
	uint16_t l4_csum_off; /* 0 = none */
	bool udp;             /* its checksum is never 0 */
	bool ip_dynamic;      /* the IPv4 checksum changes from frame to frame */
	bool l4_dynamic;      /* so does the layer-4 one */
	uint8_t ip_version;   /* 0 without IP */
	uint8_t proto;
	bool source_open; /* no Ethernet source was given: the port's own may take its place */
	unsigned n_patches;
	struct tr_patch patch[TR_VARY_MAX];
	unsigned n_vary;
	struct tr_vary vary[TR_VARY_MAX];
	struct tr_vary size;       /* its index is that of the length */
	struct tr_length *lengths; /* size.span + 1 */
	uint32_t weight;           /* frames in a round of the specification */
	char name[TR_NAME_MAX];
};

/* A place in a round. */
struct tr_turn {
	uint32_t stream;
	uint32_t rank; /* frames of that stream earlier in the round */
};

struct tr_spec {
	uint64_t seed;
	bool stamped;
	unsigned n_streams;
	struct tr_stream *streams;
	uint32_t n_turns; /* frames in a round: the sum of the weights */
	struct tr_turn *turns;
	uint32_t min_bytes, max_bytes;
};

/* Adds a word of a patch, as it lies in memory, to a sum. */
static inline uint64_t tr_sum64(uint64_t word)
{
	return (word & 0xffffffff) + (word >> 32);
}

#endif
