/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mark that a generator leaves in its frames, so that the receiver can tell loss, order and
 * delay: the last 16 bytes of the frame, whatever the headers are.
 *
 *   0      2      4             8                        16
 *   +------+------+-------------+------------------------+
 *   | magic| strm | sequence    | time of sending, ns    |   big endian
 *   +------+------+-------------+------------------------+
 *
 * The smallest UDP over IPv4 frame (60 bytes) has 18 bytes of payload: it just fits.
 */
#ifndef HOLDOFF_TRAFFIC_STAMP_H
#define HOLDOFF_TRAFFIC_STAMP_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TR_STAMP_BYTES 16
#define TR_STAMP_MAGIC 0x686f /* "ho" */

struct tr_stamp {
	uint16_t magic;
	uint16_t stream;   /* one per worker of the generator */
	uint32_t sequence; /* of the stream, from 0, wraps */
	uint64_t time_ns;  /* of the sender's clock */
};

static inline void tr_stamp_write(uint8_t *at, uint16_t stream, uint32_t sequence, uint64_t time_ns)
{
	struct tr_stamp wire = {
		.magic = htobe16(TR_STAMP_MAGIC),
		.stream = htobe16(stream),
		.sequence = htobe32(sequence),
		.time_ns = htobe64(time_ns),
	};

	memcpy(at, &wire, sizeof(wire));
}

/* Reads the stamp at `at` in host order; false if there is none. */
static inline bool tr_stamp_read(const uint8_t *at, struct tr_stamp *out)
{
	struct tr_stamp wire;

	memcpy(&wire, at, sizeof(wire));
	if (wire.magic != htobe16(TR_STAMP_MAGIC))
		return false;
	out->magic = TR_STAMP_MAGIC;
	out->stream = be16toh(wire.stream);
	out->sequence = be32toh(wire.sequence);
	out->time_ns = be64toh(wire.time_ns);
	return true;
}

#endif
