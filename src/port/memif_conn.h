/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of one memif connection: regions, rings and event descriptors, as both ends see them.
 *
 *   region 0 of our client, copying        region 0 and 1 of our client, zero copy
 *   +-------+-------+--------+--------+    +-------+-------+   +------------------------+
 *   | rings | rings | bytes  | bytes  |    | rings | rings |   | the process's whole    |
 *   | c2s   | s2c   | of c2s | of s2c |    | c2s   | s2c   |   | packet arena           |
 *   +-------+-------+--------+--------+    +-------+-------+   +------------------------+
 *
 * A connection is counted: the control side holds it while the link is up, each queue while it
 * works with it. So a queue's thread never finds its ring unmapped under it, and no lock is taken
 * per burst. What the other side wrote into a message or into shared memory is checked here or at
 * each use; nothing in it is trusted.
 */
#ifndef HOLDOFF_PORT_MEMIF_CONN_H
#define HOLDOFF_PORT_MEMIF_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "packet/arena.h"
#include "port/memif_proto.h"

#define MEMIF_QUEUES_MAX  64
#define MEMIF_REGIONS_MAX 256

/* What one end of an interface is, from its options. */
struct memif_offer {
	bool client;
	bool zero_copy; /* client: the arena itself is a region */
	bool sealed;    /* server: refuse memory that the client could take away */
	uint32_t id;
	unsigned queues;                 /* of each direction, at most */
	unsigned log2_ring;              /* client: of its rings; server: at most */
	uint32_t bsize;                  /* client: bytes of a buffer */
	char secret[MEMIF_SECRET_BYTES]; /* all zero = none */
	char if_name[MEMIF_NAME_BYTES];
	struct pk_arena *arena;
};

struct memif_region {
	uint8_t *addr; /* NULL until mapped */
	uint64_t bytes;
	int fd;
	bool borrowed; /* address and fd are the arena's */
};

/* A ring as one queue uses it. */
struct memif_lane {
	struct memif_ring *ring;
	uint32_t size; /* descriptors */
	int event_fd;
	/* Until it is mapped: where the message said that it is. */
	uint16_t region;
	uint32_t offset;
	/* Our client, copying: its part of region 0. */
	uint32_t area_offset;
};

struct memif_conn {
	unsigned refs; /* under the port's lock */
	bool client, zero_copy;
	bool broken; /* atomic: a queue found the peer's indices impossible */
	unsigned n_regions;
	unsigned n_rx, n_tx;    /* rings that we receive on, send on */
	uint32_t bsize, stride; /* client: bytes of a buffer, and from one to the next */
	char peer[MEMIF_NAME_BYTES + 1];
	char peer_if[MEMIF_NAME_BYTES + 1];
	struct memif_lane rx[MEMIF_QUEUES_MAX];
	struct memif_lane tx[MEMIF_QUEUES_MAX];
	struct memif_region region[MEMIF_REGIONS_MAX];
};

/* An empty one with one reference, for the server to fill from messages. NULL: out of memory. */
struct memif_conn *memif_conn_new(bool client);

/*
 * The client's: memory made, rings initialised, event descriptors open. `rings` of each direction,
 * of 2^log2 descriptors. On failure *why is a sentence and the result NULL.
 */
struct memif_conn *memif_conn_provide(const struct memif_offer *offer, unsigned rings,
				      unsigned log2, const char **why);

/*
 * The server's, from messages. Each takes over fd (-1 = none came) whatever the result, and returns
 * NULL or why the message is refused.
 */
const char *memif_conn_add_region(struct memif_conn *conn, const struct memif_offer *offer,
				  const struct memif_add_region *msg, int fd);
const char *memif_conn_add_ring(struct memif_conn *conn, const struct memif_offer *offer,
				const struct memif_add_ring *msg, int fd);
/* All is there: maps the regions, finds and zeroes the rings. */
const char *memif_conn_complete(struct memif_conn *conn);

/* Unmaps and closes everything. NULL is allowed. */
void memif_conn_free(struct memif_conn *conn);

/* Closes a descriptor that came with a message; -1 is allowed. */
void memif_conn_close_fd(int fd);

/* Memory that region 0 of a client needs; 0 when its offsets do not fit 32 bits. */
uint64_t memif_client_bytes(unsigned rings, unsigned log2, uint32_t bsize, bool zero_copy);

/* From one buffer to the next: an odd number of cache lines, so that frames of one size do not
 * fall into few cache sets. */
static inline uint32_t memif_stride(uint32_t bytes)
{
	uint32_t lines = (bytes + HO_CACHE_LINE - 1) / HO_CACHE_LINE;

	return (lines >= 8 ? lines | 1 : lines) * HO_CACHE_LINE;
}

#endif
