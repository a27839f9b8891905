// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receiving from a packet socket's ring. Frames are copied into packet buffers: the ring is the
 * kernel's memory and goes back to it in order.
 *
 * V3 (default): the kernel packs frames into blocks and hands over whole blocks, when full or
 * after PACKET_RX_RETIRE_MS. Fewest cache misses and wake-ups; adds up to that time of latency.
 * V2: a slot a frame, handed over at once: for request/response work.
 *
 * The kernel counts what it put into the ring. A stop can therefore wait until everything that was
 * counted has come out: conservation is exact.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/parse.h"
#include "port/packet_port.h"
#include "port/vnet.h"

#define RX_FRAMES_DEFAULT 4096
#define RX_FRAMES_LONG    512
#define RX_FRAMES_MAX     (1u << 18)
#define RX_FRAME_OVERHEAD 128u       /* V2's header, address and alignment before a frame */
#define RX_STOP_NS        200000000u /* blocks that the kernel still holds come within this */

/* A frame of either ring version. */
struct ring_frame {
	const uint8_t *data;
	uint32_t len, snaplen;
	uint32_t status;
	uint16_t tci, tpid;
	uint64_t time_ns;
};

/* Puts a tag that is not 802.1Q into the frame: a slot has no place for its type. */
static void insert_tag(const struct pk_arena *arena, struct pk_slot *slot, uint16_t tpid,
		       uint16_t tci)
{
	uint8_t *data;

	slot->off -= PORT_VLAN_TAG_BYTES;
	slot->len += PORT_VLAN_TAG_BYTES;
	data = pk_data(arena, slot);
	memmove(data, data + PORT_VLAN_TAG_BYTES, 12);
	pk_store16(data + 12, tpid);
	pk_store16(data + 14, tci);
}

/* Copies one frame out. Slots used, 0 if it was dropped, -1 when it does not fit into `room`. */
static int take_frame(struct packet_rxq *q, const struct ring_frame *f, struct pk_slot *slots,
		      unsigned room, uint64_t *bytes)
{
	const struct pk_arena *arena = q->base.arena;
	const uint32_t buf_room = arena->stride_bytes - PK_HEADROOM_BYTES;
	unsigned used = 1;

	if (ho_unlikely(f->len + PORT_VLAN_TAG_BYTES > PK_FRAME_MAX_BYTES)) {
		port_drop(&q->base.ctr, PORT_DROP_RX_TOO_LONG, 1);
		return 0;
	}
	if (ho_unlikely(f->snaplen < f->len)) {
		port_drop(&q->base.ctr, PORT_DROP_RX_TRUNCATED, 1);
		return 0;
	}
	if (f->len <= buf_room) {
		uint32_t buf;

		if (ho_unlikely(!pk_alloc(q->base.cache, &buf, 1))) {
			port_drop(&q->base.ctr, PORT_DROP_RX_NO_BUFFER, 1);
			return 0;
		}
		slots[0] = (struct pk_slot){ .buf = buf,
					     .off = PK_HEADROOM_BYTES,
					     .len = (uint16_t)f->len };
		memcpy(pk_data(arena, slots), f->data, f->len);
	} else {
		if ((f->len + buf_room - 1) / buf_room > room)
			return -1;
		used = pk_frame_from_bytes(q->base.cache, f->data, f->len, slots, room);
		if (!used) {
			port_drop(&q->base.ctr, PORT_DROP_RX_NO_BUFFER, 1);
			return 0;
		}
	}
	*bytes += f->len;
	if (f->status & TP_STATUS_CSUM_VALID)
		slots[0].flags |= PK_CSUM_OK;
	if (q->opts->offload) {
		struct virtio_net_hdr header;

		memcpy(&header, f->data - sizeof(header), sizeof(header));
		if (port_vnet_to_slots(&header, arena, slots, used) < 0) {
			pk_free_slots(q->base.cache, slots, used);
			*bytes -= f->len;
			port_drop(&q->base.ctr, PORT_DROP_RX_MALFORMED, 1);
			return 0;
		}
	} else if (f->status & TP_STATUS_CSUMNOTREADY) {
		slots[0].flags |= PK_CSUM_PARTIAL;
	}
	if (ho_unlikely(f->status & TP_STATUS_VLAN_VALID)) {
		*bytes += PORT_VLAN_TAG_BYTES;
		if ((f->status & TP_STATUS_VLAN_TPID_VALID) && f->tpid != ETH_P_8021Q) {
			insert_tag(arena, slots, f->tpid, f->tci);
		} else {
			slots[0].flags |= PK_VLAN;
			slots[0].vlan = f->tci;
		}
	}
	slots[0].flags |= PK_TIME;
	memcpy(pk_data(arena, slots) - sizeof(uint64_t), &f->time_ns, sizeof(uint64_t));
	return (int)used;
}

static inline struct tpacket_block_desc *block_at(const struct packet_rxq *q)
{
	return (struct tpacket_block_desc *)(q->ring + (size_t)q->block * PACKET_RX_BLOCK_BYTES);
}

/* Is there a frame at q->at? Takes the next block when this one is used up. */
static bool v3_next(struct packet_rxq *q)
{
	while (!q->left) {
		struct tpacket_block_desc *block = block_at(q);

		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) &
		      TP_STATUS_USER))
			return false;
		q->left = block->hdr.bh1.num_pkts;
		q->at = (uint8_t *)block + block->hdr.bh1.offset_to_first_pkt;
		if (q->left)
			return true;
		__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		q->block = q->block + 1 == q->blocks ? 0 : q->block + 1;
	}
	return true;
}

static void v3_done(struct packet_rxq *q)
{
	q->taken++;
	q->at += ((const struct tpacket3_hdr *)q->at)->tp_next_offset;
	if (--q->left)
		return;
	__atomic_store_n(&block_at(q)->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	q->block = q->block + 1 == q->blocks ? 0 : q->block + 1;
}

static unsigned rx_v3(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct packet_rxq *q = (struct packet_rxq *)base;
	uint64_t frames = 0, bytes = 0;
	unsigned used = 0;

	while (used < n && v3_next(q)) {
		const struct tpacket3_hdr *h = (const void *)q->at;
		const struct ring_frame f = {
			.data = q->at + h->tp_mac,
			.len = h->tp_len,
			.snaplen = h->tp_snaplen,
			.status = h->tp_status,
			.tci = (uint16_t)h->hv1.tp_vlan_tci,
			.tpid = h->hv1.tp_vlan_tpid,
			.time_ns = h->tp_sec * 1000000000ull + h->tp_nsec,
		};
		int got;

		ho_prefetch(q->at + h->tp_next_offset);
		got = take_frame(q, &f, slots + used, n - used, &bytes);
		if (got < 0)
			break;
		used += (unsigned)got;
		frames += got > 0;
		v3_done(q);
	}
	port_count(&base->ctr, frames, bytes);
	return used;
}

static inline struct tpacket2_hdr *v2_at(const struct packet_rxq *q)
{
	return (struct tpacket2_hdr *)(q->ring + (size_t)q->frame * q->frame_bytes);
}

static unsigned rx_v2(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct packet_rxq *q = (struct packet_rxq *)base;
	uint64_t frames = 0, bytes = 0;
	unsigned used = 0;

	while (used < n) {
		struct tpacket2_hdr *h = v2_at(q);
		uint32_t status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
		const struct ring_frame f = {
			.data = (const uint8_t *)h + h->tp_mac,
			.len = h->tp_len,
			.snaplen = h->tp_snaplen,
			.status = status,
			.tci = h->tp_vlan_tci,
			.tpid = h->tp_vlan_tpid,
			.time_ns = h->tp_sec * 1000000000ull + h->tp_nsec,
		};
		int got;

		if (!(status & TP_STATUS_USER))
			break;
		got = take_frame(q, &f, slots + used, n - used, &bytes);
		if (got < 0)
			break;
		used += (unsigned)got;
		frames += got > 0;
		q->taken++;
		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		q->frame = q->frame + 1 == q->frames ? 0 : q->frame + 1;
	}
	port_count(&base->ctr, frames, bytes);
	return used;
}

static bool frame_waits(struct packet_rxq *q)
{
	return q->opts->rx == PACKET_RX_V3
		       ? v3_next(q)
		       : (__atomic_load_n(&v2_at(q)->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER);
}

bool packet_arm(struct port_rxq *base)
{
	struct packet_rxq *q = (struct packet_rxq *)base;
	socklen_t size = sizeof(int);
	int error;

	/* The socket's fd is readable while the ring has something: nothing to arm. But an
	 * interface that went down left an error that would wake us for ever: take it. */
	getsockopt(q->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return frame_waits(q);
}

void packet_rx_stats(struct packet_rxq *q)
{
	struct tpacket_stats_v3 stats = { 0 };
	socklen_t size = sizeof(stats);

	pthread_mutex_lock(&q->stats_lock);
	/* tp_packets includes the dropped ones. */
	if (getsockopt(q->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
		q->kernel_packets += stats.tp_packets - stats.tp_drops;
		q->kernel_drops += stats.tp_drops;
	}
	pthread_mutex_unlock(&q->stats_lock);
}

void packet_rx_stop(struct packet_rxq *q)
{
	struct rt *rt = q->base.port->rt;
	uint64_t deadline = rt_now_ns(rt) + RX_STOP_NS;

	for (;;) {
		while (frame_waits(q)) {
			port_drop(&q->base.ctr, PORT_DROP_RX_CLOSED, 1);
			if (q->opts->rx == PACKET_RX_V3) {
				v3_done(q);
				continue;
			}
			__atomic_store_n(&v2_at(q)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
			q->frame = q->frame + 1 == q->frames ? 0 : q->frame + 1;
			q->taken++;
		}
		packet_rx_stats(q);
		if (q->taken >= q->kernel_packets || rt_now_ns(rt) >= deadline)
			return;
		rt_relax(rt);
	}
}

static int set_version(struct packet_rxq *q, struct ho_err *err)
{
	int version = q->opts->rx == PACKET_RX_V3 ? TPACKET_V3 : TPACKET_V2, one = 1;

	if (setsockopt(q->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0)
		return ho_err_set(err, -errno, "the kernel has no %s: %s; try rx=%s",
				  version == TPACKET_V3 ? "TPACKET_V3" : "TPACKET_V2",
				  ho_strerror(errno), version == TPACKET_V3 ? "v2" : "v3");
	if (q->opts->offload &&
	    setsockopt(q->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) < 0)
		return ho_err_set(err, -errno, "no offloads on a packet socket: %s",
				  ho_strerror(errno));
	return 0;
}

static int map_ring(struct packet_rxq *q, size_t bytes, struct ho_err *err)
{
	q->ring_bytes = bytes;
	q->ring = mmap(NULL, q->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		       q->fd, 0);
	if (q->ring == MAP_FAILED) {
		q->ring = NULL;
		return ho_err_set(err, -errno, "cannot map the receive ring of %zu KB: %s",
				  q->ring_bytes >> 10, ho_strerror(errno));
	}
	return 0;
}

int packet_rx_open(struct packet_rxq *q, uint32_t frames, struct ho_err *err)
{
	const struct port *port = q->base.port;
	struct tpacket_req3 req = { 0 };
	socklen_t size = sizeof(struct tpacket_req);
	uint32_t block_bytes = PACKET_RX_BLOCK_BYTES;
	int rc = set_version(q, err);

	if (rc < 0)
		return rc;
	/* V2 reserves the longest frame's room for each, and with offloads that is 64 KB. */
	if (!frames)
		frames = q->opts->rx == PACKET_RX_V2 && q->opts->offload ? RX_FRAMES_LONG
									 : RX_FRAMES_DEFAULT;
	if (frames < PK_BURST || frames > RX_FRAMES_MAX)
		return ho_err_set(err, -EINVAL,
				  "a receive ring of %u frames: %u to %u are possible", frames,
				  PK_BURST, RX_FRAMES_MAX);
	if (q->opts->rx == PACKET_RX_V3) {
		req.tp_frame_size = PACKET_V3_FRAME_BYTES;
		/* Two, so that one fills while the other is read. */
		q->blocks = HO_MAX(frames / (PACKET_RX_BLOCK_BYTES / PACKET_V3_FRAME_BYTES), 2u);
		req.tp_block_nr = q->blocks;
		req.tp_retire_blk_tov = PACKET_RX_RETIRE_MS;
		size = sizeof(req);
		q->base.rx = rx_v3;
	} else {
		uint32_t frame = q->opts->offload ? PK_FRAME_MAX_BYTES : port->mtu + 22;

		q->frame_bytes = PACKET_FRAME_BYTES(frame + PORT_VNET_BYTES + RX_FRAME_OVERHEAD);
		block_bytes = PACKET_FRAMES_PER_BLOCK * q->frame_bytes;
		q->frames = HO_ALIGN_UP(frames, PACKET_FRAMES_PER_BLOCK);
		req.tp_frame_size = q->frame_bytes;
		req.tp_block_nr = q->frames / PACKET_FRAMES_PER_BLOCK;
		q->base.rx = rx_v2;
	}
	req.tp_block_size = block_bytes;
	req.tp_frame_nr = req.tp_block_nr * (req.tp_block_size / req.tp_frame_size);
	if (setsockopt(q->fd, SOL_PACKET, PACKET_RX_RING, &req, size) < 0)
		return ho_err_set(err, -errno,
				  "cannot make a receive ring of %u frames (%u KB): %s; a smaller "
				  "ring may do",
				  frames,
				  (unsigned)(((uint64_t)req.tp_block_nr * block_bytes) >> 10),
				  ho_strerror(errno));
	rc = map_ring(q, (size_t)req.tp_block_nr * block_bytes, err);
	if (rc == 0)
		rc = rt_event_from_fd(port->rt, q->fd, &q->event, err);
	return rc;
}

void packet_rx_close(struct packet_rxq *q)
{
	rt_event_destroy(q->base.port->rt, q->event);
	if (q->ring)
		munmap(q->ring, q->ring_bytes);
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
	q->ring = NULL;
}
