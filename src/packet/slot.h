/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet is one slot, or a chain of slots for a frame that does not fit one buffer.
 *
 *   slot (16 bytes, passed by value in bursts)
 *   +------+-----+-----+-------+------+------+
 *   | buf  | off | len | flags | vlan | meta |      arena
 *   +--|---+--|--+--|--+-------+------+------+     +--------------------------------- - -
 *      |      |     |                              | buffer 0 | buffer 1 | buffer 2 |
 *      |      |     +-- bytes of data here         +--------------------------------- - -
 *      |      +-- of the first data byte, from the       ^headroom^data.....^tailroom
 *      |          buffer's start
 *      +-- which buffer
 *
 * There is no other per-packet state. Who holds the slot owns the buffer; handing the slot to a
 * queue hands over the buffer. A frame of several slots sits in consecutive array elements, each
 * but the last with PK_MORE; bursts never split a frame.
 */
#ifndef HOLDOFF_PACKET_SLOT_H
#define HOLDOFF_PACKET_SLOT_H

#include <assert.h>
#include <stdint.h>

enum pk_flags {
	PK_MORE = 1 << 0,         /* the frame goes on in the next slot */
	PK_VLAN = 1 << 1,         /* `vlan` holds a tag that is not in the frame */
	PK_CSUM_OK = 1 << 2,      /* receive: somebody verified the layer-4 checksum */
	PK_CSUM_BAD = 1 << 3,     /* receive: somebody found it wrong */
	PK_CSUM_PARTIAL = 1 << 4, /* the layer-4 field holds the pseudo-header sum; who sends the
				     frame to a wire completes it (both directions, as virtio) */
	PK_TSO = 1 << 5,          /* `meta` of the first slot is the segment size (MSS) in bytes;
				     implies PK_CSUM_PARTIAL */
	PK_HASH = 1 << 6,         /* `meta` is the Toeplitz flow hash */
	PK_TIME = 1 << 7,         /* the 8 bytes before the data are the receive time, ns (pcap) */
	PK_KEEP = 1 << 8,         /* transmit: the buffer stays its sender's: it is not freed when
				     sent, may be in the ring many times at once, and must not
				     change until the queue has nothing in flight. On every slot
				     of the frame; only where port->honours_keep is set */
};

struct pk_slot {
	uint32_t buf;   /* index into the arena */
	uint16_t off;   /* first data byte, from the buffer's start */
	uint16_t len;   /* data bytes in this slot */
	uint16_t flags; /* enum pk_flags; those of the frame are on its first slot */
	uint16_t vlan;  /* tag control information, host order, if PK_VLAN */
	uint32_t meta;  /* flow hash, next hop or segment size: see flags */
};
static_assert(sizeof(struct pk_slot) == 16, "a slot is 16 bytes: four to a cache line");

/* The longest frame: 64 KB of IP and 18 bytes of Ethernet with one tag more. */
#define PK_FRAME_MAX_BYTES 65557
/* Slots such a frame can take, with the default buffers; a burst array holds at least this. */
#define PK_FRAME_MAX_SLOTS 40
/* The usual burst. At least PK_FRAME_MAX_SLOTS. */
#define PK_BURST 64
static_assert(PK_BURST >= PK_FRAME_MAX_SLOTS, "a burst holds any frame");

/* Slots of the frame that begins at s; n slots are there, so the result is at most n. */
static inline unsigned pk_frame_slots(const struct pk_slot *s, unsigned n)
{
	unsigned i = 0;

	while (i + 1 < n && (s[i].flags & PK_MORE))
		i++;
	return i + 1;
}

/* Bytes of the frame of `slots` slots at s. */
static inline uint32_t pk_frame_bytes(const struct pk_slot *s, unsigned slots)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < slots; i++)
		bytes += s[i].len;
	return bytes;
}

#endif
