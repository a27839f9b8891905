// SPDX-License-Identifier: BSD-2-Clause
/* Making, checking and mapping the shared memory of a memif connection. */
#include "port/memif_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct memif_conn *memif_conn_new(bool client)
{
	struct memif_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->refs = 1;
	conn->client = client;
	for (unsigned i = 0; i < MEMIF_QUEUES_MAX; i++)
		conn->rx[i].event_fd = conn->tx[i].event_fd = -1;
	return conn;
}

void memif_conn_close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void memif_conn_free(struct memif_conn *conn)
{
	if (!conn)
		return;
	for (unsigned i = 0; i < MEMIF_QUEUES_MAX; i++) {
		memif_conn_close_fd(conn->rx[i].event_fd);
		memif_conn_close_fd(conn->tx[i].event_fd);
	}
	for (unsigned i = 0; i < conn->n_regions; i++) {
		struct memif_region *r = &conn->region[i];

		if (r->borrowed)
			continue;
		if (r->addr)
			munmap(r->addr, r->bytes);
		memif_conn_close_fd(r->fd);
	}
	free(conn);
}

uint64_t memif_client_bytes(unsigned rings, unsigned log2, uint32_t bsize, bool zero_copy)
{
	uint64_t bytes = HO_ALIGN_UP(2ull * rings * memif_ring_bytes(log2), 4096);

	if (!zero_copy)
		bytes += 2ull * rings * ((uint64_t)memif_stride(bsize) << log2);
	return bytes <= UINT32_MAX ? bytes : 0;
}

static const char *make_region(struct memif_region *r, uint64_t bytes)
{
	r->fd = memfd_create("holdoff-memif", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->fd < 0)
		return "cannot make shared memory";
	if (ftruncate(r->fd, (off_t)bytes) < 0 ||
	    fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return "cannot size and seal shared memory";
	r->addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, 0);
	if (r->addr == MAP_FAILED) {
		r->addr = NULL;
		return "cannot map shared memory";
	}
	r->bytes = bytes;
	return NULL;
}

/* Ring `index` of all: c2s first, as the regions are drawn. */
static const char *make_lane(struct memif_conn *conn, struct memif_lane *lane, unsigned index,
			     unsigned rings, unsigned log2, bool c2s)
{
	const uint32_t areas = HO_ALIGN_UP(2 * rings * memif_ring_bytes(log2), 4096u);
	struct memif_ring *ring;

	lane->offset = index * memif_ring_bytes(log2);
	lane->size = 1u << log2;
	lane->area_offset = areas + index * (conn->stride << log2);
	lane->ring = ring = (struct memif_ring *)(conn->region[0].addr + lane->offset);
	lane->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lane->event_fd < 0)
		return "cannot make an event descriptor";
	ring->cookie = MEMIF_COOKIE;
	/* Polling until somebody arms it; for c2s rings the server decides. */
	ring->flags = c2s ? 0 : MEMIF_RING_MASK_INT;
	for (uint32_t i = 0; i < lane->size && !conn->zero_copy; i++) {
		ring->desc[i].offset = lane->area_offset + i * conn->stride;
		ring->desc[i].length = conn->bsize;
	}
	return NULL;
}

struct memif_conn *memif_conn_provide(const struct memif_offer *offer, unsigned rings,
				      unsigned log2, const char **why)
{
	uint64_t bytes = memif_client_bytes(rings, log2, offer->bsize, offer->zero_copy);
	struct memif_conn *conn = memif_conn_new(true);

	*why = "out of memory";
	if (!conn)
		return NULL;
	conn->zero_copy = offer->zero_copy;
	conn->bsize = offer->bsize;
	conn->stride = memif_stride(offer->bsize);
	conn->n_regions = 1;
	*why = bytes ? make_region(&conn->region[0], bytes) : "more than 4 GB of shared memory";
	if (*why)
		goto fail;
	if (offer->zero_copy) {
		conn->n_regions = 2;
		conn->region[1] = (struct memif_region){
			.addr = offer->arena->base,
			.bytes = offer->arena->size_bytes,
			.fd = offer->arena->memfd,
			.borrowed = true,
		};
	}
	for (unsigned i = 0; i < rings; i++) {
		*why = make_lane(conn, &conn->tx[i], i, rings, log2, true);
		if (!*why)
			*why = make_lane(conn, &conn->rx[i], rings + i, rings, log2, false);
		if (*why)
			goto fail;
	}
	conn->n_tx = conn->n_rx = rings;
	return conn;
fail:
	if (!bytes)
		conn->n_regions = 0;
	memif_conn_free(conn);
	return NULL;
}

/* Is fd memory of at least `bytes`, and, if asked, sealed against becoming less? */
static const char *check_memory(int fd, uint64_t bytes, bool sealed)
{
	struct stat st;
	int seals;

	if (fd < 0)
		return "Missing region fd";
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "Region fd is not memory";
	if (!bytes || bytes > INT64_MAX || (uint64_t)st.st_size < bytes)
		return "Region is larger than its memory";
	seals = fcntl(fd, F_GET_SEALS);
	if (sealed && (seals < 0 || !(seals & F_SEAL_SHRINK)))
		return "Region is not sealed against shrinking";
	return NULL;
}

const char *memif_conn_add_region(struct memif_conn *conn, const struct memif_offer *offer,
				  const struct memif_add_region *msg, int fd)
{
	const char *why = check_memory(fd, msg->bytes, offer->sealed);

	if (!why && (msg->index != conn->n_regions || msg->index >= MEMIF_REGIONS_MAX))
		why = "Invalid region index";
	if (why) {
		memif_conn_close_fd(fd);
		return why;
	}
	conn->region[conn->n_regions++] = (struct memif_region){ .bytes = msg->bytes, .fd = fd };
	return NULL;
}

/* The peer's descriptor will be written to from the transmit path: anything but an eventfd could
 * block there, or be a file that we damage. */
static bool is_eventfd(int fd)
{
	char path[32], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return !strcmp(target, "anon_inode:[eventfd]");
}

const char *memif_conn_add_ring(struct memif_conn *conn, const struct memif_offer *offer,
				const struct memif_add_ring *msg, int fd)
{
	const bool c2s = msg->flags & MEMIF_ADD_RING_C2S;
	unsigned *n = c2s ? &conn->n_rx : &conn->n_tx;
	struct memif_lane *lane = (c2s ? conn->rx : conn->tx) + *n;
	const char *why = NULL;

	if (fd < 0)
		why = "Missing interrupt fd";
	else if (!is_eventfd(fd))
		why = "Interrupt fd is not an eventfd";
	else if (msg->index != *n || msg->index >= offer->queues)
		why = "Invalid ring index";
	else if (!msg->log2_ring_size || msg->log2_ring_size > offer->log2_ring)
		why = "Invalid ring size";
	else if (msg->private_hdr_bytes)
		why = "Private headers are not supported";
	if (why) {
		memif_conn_close_fd(fd);
		return why;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	*lane = (struct memif_lane){
		.size = 1u << msg->log2_ring_size,
		.event_fd = fd,
		.region = msg->region,
		.offset = msg->offset,
	};
	++*n;
	return NULL;
}

/* Finds a lane's ring in the mapped regions and takes it into use. */
static const char *place_ring(struct memif_conn *conn, struct memif_lane *lane, bool rx)
{
	const uint64_t bytes = sizeof(struct memif_ring) + lane->size * sizeof(struct memif_desc);
	const struct memif_region *r;

	if (lane->region >= conn->n_regions)
		return "Ring in a region that was not added";
	r = &conn->region[lane->region];
	if (lane->offset % sizeof(struct memif_desc) || lane->offset > r->bytes ||
	    bytes > r->bytes - lane->offset)
		return "Ring outside of its region";
	lane->ring = (struct memif_ring *)(r->addr + lane->offset);
	if (lane->ring->cookie != MEMIF_COOKIE)
		return "Wrong cookie";
	__atomic_store_n(&lane->ring->head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lane->ring->tail, 0, __ATOMIC_RELAXED);
	if (rx)
		__atomic_store_n(&lane->ring->flags, MEMIF_RING_MASK_INT, __ATOMIC_RELAXED);
	return NULL;
}

const char *memif_conn_complete(struct memif_conn *conn)
{
	const char *why = NULL;

	if (!conn->n_rx && !conn->n_tx)
		return "Connect without a ring";
	for (unsigned i = 0; i < conn->n_regions; i++) {
		struct memif_region *r = &conn->region[i];

		r->addr = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
		if (r->addr == MAP_FAILED) {
			r->addr = NULL;
			return "Region cannot be mapped";
		}
	}
	for (unsigned i = 0; i < conn->n_rx && !why; i++)
		why = place_ring(conn, &conn->rx[i], true);
	for (unsigned i = 0; i < conn->n_tx && !why; i++)
		why = place_ring(conn, &conn->tx[i], false);
	return why;
}
