/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire and memory format of memif 2.0, the shared-memory packet interface of VPP (its
 * plugins/memif/memif.h) and DPDK (doc/guides/nics/memif.rst). Only names and layouts; who does
 * what with them is in memif_chan.c (control) and memif_rx.c, memif_tx.c (packets).
 *
 * Control: a SOCK_SEQPACKET unix socket; each message is 128 bytes, a descriptor may ride along
 * (SCM_RIGHTS). The server listens; the client provides all memory.
 *
 *   client                          server
 *          <---- HELLO              versions and limits
 *   INIT ---->                      interface id, secret
 *          <---- ACK
 *   ADD_REGION (memory fd) ---->    once per region, an ACK each
 *   ADD_RING (event fd) ---->       once per ring, an ACK each
 *   CONNECT ---->
 *          <---- CONNECTED          both sides have zeroed the indices of all rings: link is up
 *   DISCONNECT <--->                at any time, with a reason
 *
 * A ring lies in a region: a header of two cache lines, then 2^n descriptors. Indices are free
 * running 16-bit counters.
 *
 *   C2S (client sends):  client puts filled buffers at head, server takes them at tail
 *   S2C (server sends):  client puts empty buffers at head, server fills them at tail
 */
#ifndef HOLDOFF_PORT_MEMIF_PROTO_H
#define HOLDOFF_PORT_MEMIF_PROTO_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define MEMIF_COOKIE        0x3E31F20u /* begins every ring */
#define MEMIF_VERSION       0x0200u    /* 2.0 */
#define MEMIF_RING_LOG2_MAX 14         /* what DPDK and VPP take at most */
#define MEMIF_NAME_BYTES    32
#define MEMIF_SECRET_BYTES  24
#define MEMIF_REASON_BYTES  96

enum memif_msg_type {
	MEMIF_MSG_NONE,
	MEMIF_MSG_ACK,
	MEMIF_MSG_HELLO,
	MEMIF_MSG_INIT,
	MEMIF_MSG_ADD_REGION,
	MEMIF_MSG_ADD_RING,
	MEMIF_MSG_CONNECT,
	MEMIF_MSG_CONNECTED,
	MEMIF_MSG_DISCONNECT,
};

enum memif_mode {
	MEMIF_MODE_ETHERNET,
	MEMIF_MODE_IP,
	MEMIF_MODE_PUNT_INJECT,
};

struct memif_hello {
	uint8_t name[MEMIF_NAME_BYTES]; /* of the program */
	uint16_t min_version;
	uint16_t max_version;
	uint16_t max_region;   /* highest index */
	uint16_t max_s2c_ring; /* highest index */
	uint16_t max_c2s_ring;
	uint8_t max_log2_ring_size;
} __attribute__((packed));

struct memif_init {
	uint16_t version;
	uint32_t id;  /* which of the interfaces behind the server's socket */
	uint8_t mode; /* enum memif_mode */
	uint8_t secret[MEMIF_SECRET_BYTES];
	uint8_t name[MEMIF_NAME_BYTES];
} __attribute__((packed));

struct memif_add_region {
	uint16_t index; /* in sequence from 0 */
	uint64_t bytes;
} __attribute__((packed));

#define MEMIF_ADD_RING_C2S 1 /* flag: the client sends on it */

struct memif_add_ring {
	uint16_t flags;
	uint16_t index; /* within its direction */
	uint16_t region;
	uint32_t offset; /* of the ring header in the region */
	uint8_t log2_ring_size;
	uint16_t private_hdr_bytes;
} __attribute__((packed));

/* CONNECT and CONNECTED. */
struct memif_connect {
	uint8_t if_name[MEMIF_NAME_BYTES];
} __attribute__((packed));

struct memif_disconnect {
	uint32_t code;
	uint8_t reason[MEMIF_REASON_BYTES];
} __attribute__((packed));

struct memif_msg {
	uint16_t type; /* enum memif_msg_type */
	union {
		struct memif_hello hello;
		struct memif_init init;
		struct memif_add_region add_region;
		struct memif_add_ring add_ring;
		struct memif_connect connect;
		struct memif_disconnect disconnect;
		uint8_t bytes[126];
	};
} __attribute__((packed));

static_assert(sizeof(struct memif_hello) == 43, "as on the wire");
static_assert(sizeof(struct memif_init) == 63, "as on the wire");
static_assert(sizeof(struct memif_add_region) == 10, "as on the wire");
static_assert(sizeof(struct memif_add_ring) == 13, "as on the wire");
static_assert(sizeof(struct memif_disconnect) == 100, "as on the wire");
static_assert(sizeof(struct memif_msg) == 128, "every message is 128 bytes");

#define MEMIF_DESC_NEXT 1 /* flag: the frame goes on in the next descriptor */

struct memif_desc {
	uint16_t flags;
	uint16_t region;
	uint32_t length; /* bytes of data, or of room in an empty buffer */
	uint32_t offset; /* of the buffer in the region */
	uint32_t metadata;
};
static_assert(sizeof(struct memif_desc) == 16, "as in shared memory");

#define MEMIF_RING_MASK_INT 1 /* flag: the receiver polls, do not write to its event fd */

struct memif_ring {
	uint32_t cookie;
	uint16_t flags; /* written by the receiver */
	uint16_t head;  /* written by the client */
	uint8_t pad0[56];
	uint16_t tail; /* written by the server */
	uint8_t pad1[62];
	struct memif_desc desc[];
};
static_assert(sizeof(struct memif_ring) == 128, "as in shared memory");
static_assert(offsetof(struct memif_ring, tail) == 64, "as in shared memory");

/* Bytes of a ring of 2^log2 descriptors. */
static inline uint32_t memif_ring_bytes(unsigned log2)
{
	return (uint32_t)(sizeof(struct memif_ring) + (sizeof(struct memif_desc) << log2));
}

#endif
