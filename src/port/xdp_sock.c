// SPDX-License-Identifier: BSD-2-Clause
/* An AF_XDP socket by the kernel's own interface: Documentation/networking/af_xdp.rst. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "port/xdp.h"

/*
 * The kernel frees a queue in a work item some time after the socket is closed (300 ms were seen);
 * until then binding to it fails with EBUSY.
 */
#define BUSY_TRIES   60
#define BUSY_WAIT_NS 20000000 /* 60 x 20 ms */

enum { MAP_RX, MAP_TX, MAP_FILL, MAP_COMP };

void xdp_sock_close(struct xdp_sock *sock)
{
	for (unsigned i = 0; i < HO_ARRAY_LEN(sock->maps); i++) {
		if (sock->maps[i].at)
			munmap(sock->maps[i].at, sock->maps[i].bytes);
	}
	if (sock->fd >= 0)
		close(sock->fd);
	*sock = (struct xdp_sock){ .fd = -1 };
}

static int set_option(int fd, int option, const void *value, size_t bytes, const char *what,
		      struct ho_err *err)
{
	if (setsockopt(fd, SOL_XDP, option, value, (socklen_t)bytes) == 0)
		return 0;
	return ho_err_set(err, -errno, "AF_XDP: the kernel refuses %s: %s", what,
			  ho_strerror(errno));
}

/* Makes the arena the socket's UMEM. */
static int register_arena(int fd, const struct pk_arena *arena, struct ho_err *err)
{
	struct xdp_umem_reg reg = {
		.addr = (uintptr_t)arena->base,
		.len = arena->size_bytes,
		.chunk_size = arena->stride_bytes,
		/* The stride is no power of two, on purpose: packet/arena.h. */
		.flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG,
	};
	struct rlimit limit;
	int rc;

	if (arena->stride_bytes < 2048 || arena->stride_bytes > 4096)
		return ho_err_set(err, -EINVAL,
				  "AF_XDP needs packet buffers of 2048 to 4096 bytes, not %u",
				  arena->stride_bytes);
	/* Without CAP_IPC_LOCK pinned memory is limited; what the hard limit allows may be used. */
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
	rc = set_option(fd, XDP_UMEM_REG, &reg, sizeof(reg), "the packet buffers", err);
	if (rc == -ENOBUFS || rc == -ENOMEM)
		ho_err_set(err, rc,
			   "AF_XDP cannot pin %zu MB of packet buffers: %s; 'ulimit -l' limits it "
			   "unless the program has cap_ipc_lock",
			   arena->size_bytes >> 20, ho_strerror(rc));
	return rc;
}

static int set_ring(int fd, int option, uint32_t size, const char *what, struct ho_err *err)
{
	return size ? set_option(fd, option, &size, sizeof(size), what, err) : 0;
}

static void *map_ring(struct xdp_sock *sock, unsigned which, uint32_t size, size_t entry,
		      const struct xdp_ring_offset *off, uint64_t page_offset)
{
	struct xdp_map *map = &sock->maps[which];
	void *at;

	map->bytes = off->desc + size * entry;
	at = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, sock->fd,
		  (off_t)page_offset);
	if (at == MAP_FAILED)
		return NULL;
	map->at = at;
	return at;
}

/* Both ring structs of xsk.h have the same members. */
#define SET_RING(ring_, base, size_, off)                               \
	do {                                                            \
		(ring_)->mask = (size_)-1;                              \
		(ring_)->size = (size_);                                \
		(ring_)->producer = (void *)((base) + (off)->producer); \
		(ring_)->consumer = (void *)((base) + (off)->consumer); \
		(ring_)->flags = (void *)((base) + (off)->flags);       \
		(ring_)->ring = (void *)((base) + (off)->desc);         \
		(ring_)->cached_prod = *(ring_)->producer;              \
		(ring_)->cached_cons = *(ring_)->consumer;              \
	} while (0)

/* xsk.h keeps the consumer's place of a producer ring one ring size ahead. */
static void set_prod(struct xsk_ring_prod *ring, char *base, uint32_t size,
		     const struct xdp_ring_offset *off)
{
	SET_RING(ring, base, size, off);
	ring->cached_cons += size;
}

static void set_cons(struct xsk_ring_cons *ring, char *base, uint32_t size,
		     const struct xdp_ring_offset *off)
{
	SET_RING(ring, base, size, off);
}

static int map_rings(struct xdp_sock *sock, const struct xdp_sock_config *c,
		     struct xsk_ring_cons *rx, struct xsk_ring_prod *tx, struct xsk_ring_prod *fill,
		     struct xsk_ring_cons *comp, struct ho_err *err)
{
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof(off);
	char *at;

	if (getsockopt(sock->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) < 0)
		goto fail;
	if (len != sizeof(off)) {
		errno = EOPNOTSUPP; /* before 5.4: no need_wakeup */
		goto fail;
	}
	if (c->rx_size) {
		at = map_ring(sock, MAP_RX, c->rx_size, sizeof(struct xdp_desc), &off.rx,
			      XDP_PGOFF_RX_RING);
		if (!at)
			goto fail;
		set_cons(rx, at, c->rx_size, &off.rx);
	}
	if (c->tx_size) {
		at = map_ring(sock, MAP_TX, c->tx_size, sizeof(struct xdp_desc), &off.tx,
			      XDP_PGOFF_TX_RING);
		if (!at)
			goto fail;
		set_prod(tx, at, c->tx_size, &off.tx);
	}
	if (c->same_queue)
		return 0;
	at = map_ring(sock, MAP_FILL, c->fill_size, sizeof(uint64_t), &off.fr,
		      XDP_UMEM_PGOFF_FILL_RING);
	if (!at)
		goto fail;
	if (fill)
		set_prod(fill, at, c->fill_size, &off.fr);
	at = map_ring(sock, MAP_COMP, c->comp_size, sizeof(uint64_t), &off.cr,
		      XDP_UMEM_PGOFF_COMPLETION_RING);
	if (!at)
		goto fail;
	if (comp)
		set_cons(comp, at, c->comp_size, &off.cr);
	return 0;
fail:
	return ho_err_set(err, -errno, "AF_XDP: cannot map the rings: %s", ho_strerror(errno));
}

/* Busy polling is a wish: the note says when the kernel does not grant it. */
static void set_busy_poll(int fd, const struct xdp_sock_config *c)
{
	int yes = 1, usecs = (int)((c->busy_poll_ns + 999) / 1000), budget = (int)c->busy_budget;

	if (setsockopt(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &yes, sizeof(yes)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &usecs, sizeof(usecs)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof(budget)) < 0)
		ho_warn("busy polling is refused on queue %u: %s; it needs cap_net_admin and "
			"CONFIG_NET_RX_BUSY_POLL",
			c->queue, ho_strerror(errno));
}

static int try_open(struct xdp_sock *sock, const struct pk_arena *arena,
		    const struct xdp_sock_config *c, struct xsk_ring_cons *rx,
		    struct xsk_ring_prod *tx, struct xsk_ring_prod *fill,
		    struct xsk_ring_cons *comp, struct ho_err *err)
{
	struct sockaddr_xdp addr = {
		.sxdp_family = AF_XDP,
		.sxdp_ifindex = c->ifindex,
		.sxdp_queue_id = c->queue,
		.sxdp_flags = c->share_fd >= 0 ? XDP_SHARED_UMEM : c->bind_flags,
		.sxdp_shared_umem_fd = c->share_fd >= 0 ? (uint32_t)c->share_fd : 0,
	};
	uint32_t budget = c->tx_size;
	int rc = 0;

	*sock = (struct xdp_sock){ .fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0) };
	if (sock->fd < 0)
		return ho_err_set(
			err, -errno, "cannot make an AF_XDP socket: %s%s", ho_strerror(errno),
			errno == EAFNOSUPPORT ? "; the kernel lacks CONFIG_XDP_SOCKETS" : "");
	if (c->share_fd < 0)
		rc = register_arena(sock->fd, arena, err);
	if (rc == 0 && !c->same_queue) {
		rc = set_ring(sock->fd, XDP_UMEM_FILL_RING, c->fill_size, "the fill ring", err);
		if (rc == 0)
			rc = set_ring(sock->fd, XDP_UMEM_COMPLETION_RING, c->comp_size,
				      "the completion ring", err);
	}
	if (rc == 0)
		rc = set_ring(sock->fd, XDP_RX_RING, c->rx_size, "the receive ring", err);
	if (rc == 0)
		rc = set_ring(sock->fd, XDP_TX_RING, c->tx_size, "the transmit ring", err);
	if (rc == 0)
		rc = map_rings(sock, c, rx, tx, fill, comp, err);
	if (rc < 0)
		goto fail;
	/* Where the kernel does not know the option, 32 a call it is. */
	if (c->tx_size)
		setsockopt(sock->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
	if (c->busy_poll_ns)
		set_busy_poll(sock->fd, c);
	if (bind(sock->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		rc = ho_err_set(err, -errno, "AF_XDP cannot use queue %u: %s", c->queue,
				ho_strerror(errno));
		goto fail;
	}
	return 0;
fail:
	xdp_sock_close(sock);
	return rc;
}

int xdp_sock_open(struct xdp_sock *sock, const struct pk_arena *arena,
		  const struct xdp_sock_config *config, struct xsk_ring_cons *rx,
		  struct xsk_ring_prod *tx, struct xsk_ring_prod *fill, struct xsk_ring_cons *comp,
		  struct ho_err *err)
{
	const struct timespec wait = { .tv_nsec = BUSY_WAIT_NS };
	int rc;

	for (unsigned i = 0; i < BUSY_TRIES; i++) {
		rc = try_open(sock, arena, config, rx, tx, fill, comp, err);
		if (rc != -EBUSY)
			return rc;
		nanosleep(&wait, NULL);
	}
	return ho_err_set(err, -EBUSY,
			  "queue %u has an AF_XDP socket already, of another program or another "
			  "port of this one; 'ss --xdp -p' shows whose",
			  config->queue);
}

bool xdp_sock_zero_copy(const struct xdp_sock *sock)
{
	struct xdp_options options = { 0 };
	socklen_t len = sizeof(options);

	return getsockopt(sock->fd, SOL_XDP, XDP_OPTIONS, &options, &len) == 0 &&
	       (options.flags & XDP_OPTIONS_ZEROCOPY);
}
