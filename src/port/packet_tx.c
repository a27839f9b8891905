// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sending through a packet socket, in one of two ways.
 *
 * mmsg (default): sendmmsg straight from the packet buffers. The kernel copies, so a frame is sent
 * or refused when the call returns, each refusal with its reason.
 *
 * ring: frames are copied into a TPACKET_V2 ring and one send() a burst tells the kernel.
 *
 *      tail                 head
 *   ....|sent|sending|asked  |......     tp_status: AVAILABLE, SENDING, SEND_REQUEST
 *
 * The kernel takes frames in order, at its own position, which stays where a frame could not be
 * sent. So what it has not taken is the end of tail..head; there a frame can be withdrawn only by
 * moving those behind it forward.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/csum.h"
#include "port/packet_port.h"
#include "port/vnet.h"

#define TX_FRAMES_DEFAULT 1024
#define TX_FRAMES_MAX     (1u << 16)
#define TX_FRAMES_LONG    256 /* with offloads an entry takes 64 KB */
#define TX_SNDBUF_BYTES   (8 << 20)
#define FRAME_MIN_BYTES   14
#define TX_DATA_OFFSET    (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
#define IOV_PER_BURST     (PK_BURST * 4) /* slots, and header, head with tag and rest of each */

/* May this frame go? Completes its checksum if nobody behind us does. PORT_DROP_COUNT = yes. */
static enum port_drop check_frame(const struct packet_txq *q, struct pk_slot *slots, unsigned n,
				  uint32_t len)
{
	uint16_t flags = slots[0].flags;
	const uint8_t *data = pk_data(q->base.arena, slots);

	if (ho_unlikely(len < FRAME_MIN_BYTES || slots[0].len < 12))
		return PORT_DROP_TX_TOO_SHORT;
	if (ho_unlikely(len > q->mtu_frame)) {
		/* A tag more is not counted, neither beside the frame nor in it. */
		bool tagged = !(flags & PK_VLAN) && slots[0].len >= FRAME_MIN_BYTES &&
			      data[12] == ETH_P_8021Q >> 8 && data[13] == (ETH_P_8021Q & 0xff);
		bool cut = (flags & PK_TSO) && q->opts->offload;

		if (!cut && !(tagged && len <= q->mtu_frame + PORT_VLAN_TAG_BYTES))
			return PORT_DROP_TX_TOO_LONG;
		if (len > PK_FRAME_MAX_BYTES)
			return PORT_DROP_TX_TOO_LONG;
	}
	if (ho_likely(q->opts->offload || !(flags & (PK_CSUM_PARTIAL | PK_TSO))))
		return PORT_DROP_COUNT;
	/* It fits, so there is nothing to cut. */
	slots[0].flags = (uint16_t)((flags & ~PK_TSO) | PK_CSUM_PARTIAL);
	return pk_csum_complete(q->base.arena, slots, n) < 0 ? PORT_DROP_TX_BAD_FRAME
							     : PORT_DROP_COUNT;
}

static void free_frames(struct port_txq *base, const struct pk_slot *slots, unsigned n)
{
	for (unsigned i = 0; i < n; i += PK_CACHE_BULK)
		pk_free_slots(base->cache, slots + i, HO_MIN(n - i, (unsigned)PK_CACHE_BULK));
}

/* --- sendmmsg ------------------------------------------------------------------------------ */

/* A burst on its way into the kernel: message i is the frame of slots first[i]..first[i + 1]. */
struct batch {
	unsigned n; /* messages */
	unsigned n_iov;
	struct mmsghdr msg[PK_BURST];
	uint16_t slots[PK_BURST]; /* of the frame */
	uint32_t bytes[PK_BURST]; /* with its tag */
	struct virtio_net_hdr vnet[PK_BURST];
	uint8_t head[PK_BURST][16];
	struct iovec iov[IOV_PER_BURST];
};

static void add_iov(struct batch *b, const void *base, size_t len)
{
	b->iov[b->n_iov++] = (struct iovec){ (void *)base, len };
}

/* Appends the frame; false when its offload request makes no sense. */
static bool add_frame(struct batch *b, const struct packet_txq *q, const struct pk_slot *slots,
		      unsigned n, uint32_t len)
{
	const struct pk_arena *arena = q->base.arena;
	unsigned first = b->n_iov, i = 0;

	if (q->opts->offload) {
		if (port_vnet_from_slots(arena, slots, n, &b->vnet[b->n]) < 0)
			return false;
		add_iov(b, &b->vnet[b->n], PORT_VNET_BYTES);
	}
	if (ho_unlikely(slots[0].flags & PK_VLAN)) {
		port_vlan_head(arena, slots, b->head[b->n]);
		add_iov(b, b->head[b->n], 16);
		if (slots[0].len > 12)
			add_iov(b, pk_data(arena, slots) + 12, slots[0].len - 12u);
		len += PORT_VLAN_TAG_BYTES;
		i = 1;
	}
	for (; i < n; i++)
		add_iov(b, pk_data(arena, &slots[i]), slots[i].len);
	b->msg[b->n] = (struct mmsghdr){
		.msg_hdr = { .msg_iov = b->iov + first, .msg_iovlen = b->n_iov - first },
	};
	b->slots[b->n] = (uint16_t)n;
	b->bytes[b->n++] = len;
	return true;
}

/* Why a frame was refused; PORT_DROP_COUNT = not refused, no room now. */
static enum port_drop refusal(int error)
{
	switch (error) {
	case EAGAIN:
	case EINTR:
	case ENOMEM:
		return PORT_DROP_COUNT;
	case ENETDOWN:
	case ENXIO:
	case ENODEV:
		return PORT_DROP_TX_LINK_DOWN;
	case EMSGSIZE:
		return PORT_DROP_TX_TOO_LONG;
	default:
		return PORT_DROP_TX_KERNEL;
	}
}

/* Sends the batch; messages that are finished with (sent or counted as dropped). */
static unsigned send_batch(struct packet_txq *q, struct batch *b)
{
	uint64_t frames = 0, bytes = 0;
	unsigned done = 0;
	bool stopped = false;

	while (done < b->n) {
		int asked = (int)(b->n - done);
		int rc = sendmmsg(q->fd, b->msg + done, (unsigned)asked, MSG_DONTWAIT);
		enum port_drop why;

		ho_ctr_add(&q->base.ctr.kicks, 1);
		/* Where it stopped before the end a frame was refused, without a reason, and gets
		 * a second chance. The interface counts both. */
		if (stopped && (rc > 0 || errno != EAGAIN))
			ho_ctr_add(&q->refused, 1);
		stopped = rc > 0 && rc < asked;
		if (rc > 0) {
			for (unsigned end = done + (unsigned)rc; done < end; done++) {
				frames++;
				bytes += b->bytes[done];
			}
			continue;
		}
		why = refusal(errno);
		if (why == PORT_DROP_COUNT)
			break;
		if (errno == ENOBUFS)
			ho_ctr_add(&q->refused, 1);
		/* A link that is down is so for all of them. */
		rc = why == PORT_DROP_TX_LINK_DOWN ? (int)(b->n - done) : 1;
		port_drop(&q->base.ctr, why, (uint64_t)rc);
		done += (unsigned)rc;
	}
	port_count(&q->base.ctr, frames, bytes);
	return done;
}

static unsigned tx_mmsg(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct packet_txq *q = (struct packet_txq *)base;
	unsigned used = 0;

	while (used < n) {
		struct batch b;
		unsigned at = used, sent;

		b.n = b.n_iov = 0;
		/* A frame that is refused here ends the batch, so that order and count stay
		 * simple; there is hardly ever one. */
		while (at < n && b.n < PK_BURST &&
		       b.n_iov + PK_FRAME_MAX_SLOTS + 4 <= IOV_PER_BURST) {
			unsigned k = pk_frame_slots(slots + at, n - at);
			uint32_t len = pk_frame_bytes(slots + at, k);
			enum port_drop why = check_frame(q, slots + at, k, len);

			if (ho_unlikely(k > PK_FRAME_MAX_SLOTS))
				why = PORT_DROP_TX_TOO_LONG;
			if (why == PORT_DROP_COUNT && !add_frame(&b, q, slots + at, k, len))
				why = PORT_DROP_TX_BAD_FRAME;
			if (ho_unlikely(why != PORT_DROP_COUNT)) {
				if (b.n)
					break;
				base->accepted++;
				port_drop(&base->ctr, why, 1);
				used += k;
			}
			at += k;
		}
		sent = send_batch(q, &b);
		base->accepted += sent;
		for (unsigned i = 0; i < sent; i++)
			used += b.slots[i];
		if (sent < b.n) {
			ho_ctr_add(&base->ctr.ring_full, 1);
			break;
		}
	}
	free_frames(base, slots, used);
	return used;
}

/* --- ring ---------------------------------------------------------------------------------- */

static inline struct tpacket2_hdr *frame_at(const struct packet_txq *q, uint32_t i)
{
	return (struct tpacket2_hdr *)(q->ring + (size_t)(i & (q->size - 1)) * q->frame_bytes);
}

static inline uint32_t frame_status(const struct packet_txq *q, uint32_t i)
{
	return __atomic_load_n(&frame_at(q, i)->tp_status, __ATOMIC_ACQUIRE);
}

static inline void set_status(const struct packet_txq *q, uint32_t i, uint32_t status)
{
	__atomic_store_n(&frame_at(q, i)->tp_status, status, __ATOMIC_RELEASE);
}

/* Withdraws what the kernel has not taken. */
static void withdraw_all(struct packet_txq *q, enum port_drop why)
{
	while (q->head != q->tail &&
	       (frame_status(q, q->head - 1) & (TP_STATUS_SEND_REQUEST | TP_STATUS_WRONG_FORMAT))) {
		q->head--;
		set_status(q, q->head, TP_STATUS_AVAILABLE);
		port_drop(&q->base.ctr, why, 1);
	}
	q->unkicked = false;
}

static uint32_t interface_mtu(const struct packet_txq *q)
{
	const struct packet_port *port = (const struct packet_port *)q->base.port;
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, port->iface.name, IFNAMSIZ);
	return ioctl(q->fd, SIOCGIFMTU, &ifr) == 0 ? (uint32_t)ifr.ifr_mtu : q->mtu_frame - 14;
}

/*
 * The kernel refused the frame at its position `bad`, and waits there. That frame goes, and with it
 * those behind it that are too long for the interface's MTU of now, which must have changed: one
 * pass over the ring, not one for each.
 */
static void withdraw_refused(struct packet_txq *q, uint32_t bad)
{
	uint32_t to = bad, longest = interface_mtu(q) + 14 + PORT_VLAN_TAG_BYTES;

	for (uint32_t from = bad; from != q->head; from++) {
		const struct tpacket2_hdr *h = frame_at(q, from);
		uint32_t len = h->tp_len;

		if (from == bad || (len > longest && !q->opts->offload)) {
			port_drop(&q->base.ctr, PORT_DROP_TX_KERNEL, 1);
			set_status(q, from, TP_STATUS_AVAILABLE);
			continue;
		}
		if (to != from) {
			memcpy((uint8_t *)frame_at(q, to) + TX_DATA_OFFSET,
			       (const uint8_t *)h + TX_DATA_OFFSET, len);
			frame_at(q, to)->tp_len = len;
			q->bytes[to & (q->size - 1)] = q->bytes[from & (q->size - 1)];
			set_status(q, from, TP_STATUS_AVAILABLE);
			set_status(q, to, TP_STATUS_SEND_REQUEST);
		}
		to++;
	}
	q->unkicked = to != bad;
	q->head = to;
}

static unsigned ring_reap(struct port_txq *base);

/* Tells the kernel about the frames that it has not seen. */
static void kick(struct packet_txq *q)
{
	ssize_t rc = send(q->fd, NULL, 0, MSG_DONTWAIT);

	ho_ctr_add(&q->base.ctr.kicks, 1);
	/* It takes as many as its socket buffer allows, and says so only if that is none. */
	q->unkicked = q->head != q->tail && (frame_status(q, q->head - 1) & TP_STATUS_SEND_REQUEST);
	if (rc < 0 && (errno == ENETDOWN || errno == ENXIO || errno == ENODEV))
		withdraw_all(q, PORT_DROP_TX_LINK_DOWN);
}

/* Counts what was sent, and sees to what was refused. */
static unsigned collect(struct packet_txq *q)
{
	uint64_t frames = 0, bytes = 0;

	while (q->tail != q->head) {
		uint32_t status = frame_status(q, q->tail);

		if (status & TP_STATUS_WRONG_FORMAT) {
			withdraw_refused(q, q->tail);
			continue;
		}
		if (status & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING))
			break;
		frames++;
		bytes += q->bytes[q->tail & (q->size - 1)];
		q->tail++;
	}
	port_count(&q->base.ctr, frames, bytes);
	return (unsigned)frames;
}

static unsigned ring_reap(struct port_txq *base)
{
	struct packet_txq *q = (struct packet_txq *)base;
	unsigned done = collect(q);

	if (ho_unlikely(q->unkicked)) {
		kick(q);
		done += collect(q);
	}
	return done;
}

/* Copies a frame that was checked into entry q->head. */
static enum port_drop put_frame(struct packet_txq *q, const struct pk_slot *slots, unsigned n,
				uint32_t len)
{
	const struct pk_arena *arena = q->base.arena;
	struct tpacket2_hdr *h = frame_at(q, q->head);
	uint8_t *frame = (uint8_t *)h;
	uint8_t *to = frame + TX_DATA_OFFSET;

	if (q->opts->offload) {
		struct virtio_net_hdr vnet;

		if (port_vnet_from_slots(arena, slots, n, &vnet) < 0)
			return PORT_DROP_TX_BAD_FRAME;
		memcpy(to, &vnet, sizeof(vnet));
		to += sizeof(vnet);
	}
	if (ho_unlikely(slots[0].flags & PK_VLAN)) {
		pk_frame_to_bytes(arena, slots, n, to + PORT_VLAN_TAG_BYTES, len);
		port_vlan_head(arena, slots, to);
		len += PORT_VLAN_TAG_BYTES;
	} else if (ho_likely(n == 1)) {
		memcpy(to, pk_data(arena, slots), len);
	} else {
		pk_frame_to_bytes(arena, slots, n, to, len);
	}
	h->tp_len = (uint32_t)(to - frame) - (uint32_t)TX_DATA_OFFSET + len;
	q->bytes[q->head & (q->size - 1)] = len;
	set_status(q, q->head, TP_STATUS_SEND_REQUEST);
	q->head++;
	return PORT_DROP_COUNT;
}

static unsigned tx_ring(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct packet_txq *q = (struct packet_txq *)base;
	uint32_t before = q->head;
	unsigned used = 0;

	while (used < n) {
		unsigned k = pk_frame_slots(slots + used, n - used);
		uint32_t len = pk_frame_bytes(slots + used, k);
		enum port_drop why;

		if (q->head - q->tail == q->size && !collect(q)) {
			ho_ctr_add(&base->ctr.ring_full, 1);
			break;
		}
		why = check_frame(q, slots + used, k, len);
		if (why == PORT_DROP_COUNT)
			why = put_frame(q, slots + used, k, len);
		base->accepted++;
		if (ho_unlikely(why != PORT_DROP_COUNT))
			port_drop(&base->ctr, why, 1);
		used += k;
	}
	free_frames(base, slots, used);
	if (q->head != before || q->unkicked)
		kick(q);
	return used;
}

static int open_ring(struct packet_txq *q, uint32_t frames, struct ho_err *err)
{
	uint32_t longest = (q->opts->offload ? PK_FRAME_MAX_BYTES : q->mtu_frame) +
			   PORT_VLAN_TAG_BYTES + PORT_VNET_BYTES;
	uint32_t frame_bytes = PACKET_FRAME_BYTES((uint32_t)TX_DATA_OFFSET + longest);
	int version = TPACKET_V2;
	struct tpacket_req req = { 0 };

	q->size = frames ? frames : q->opts->offload ? TX_FRAMES_LONG : TX_FRAMES_DEFAULT;
	if (q->size < PK_BURST || q->size > TX_FRAMES_MAX || (q->size & (q->size - 1)))
		return ho_err_set(err, -EINVAL,
				  "a transmit ring of %u frames: a power of two from %u to %u is "
				  "needed",
				  q->size, PK_BURST, TX_FRAMES_MAX);
	req = (struct tpacket_req){
		.tp_block_size = PACKET_FRAMES_PER_BLOCK * frame_bytes,
		.tp_block_nr = q->size / PACKET_FRAMES_PER_BLOCK,
		.tp_frame_size = frame_bytes,
		.tp_frame_nr = q->size,
	};
	q->frame_bytes = frame_bytes;
	q->ring_bytes = (size_t)q->size * frame_bytes;
	q->bytes = calloc(q->size, sizeof(q->bytes[0]));
	if (!q->bytes)
		return ho_err_set(err, -ENOMEM, "out of memory for the transmit ring");
	if (setsockopt(q->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(q->fd, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)) < 0)
		return ho_err_set(err, -errno,
				  "cannot make a transmit ring of %u frames (%zu KB): %s; a "
				  "smaller ring or tx=mmsg may do",
				  q->size, q->ring_bytes >> 10, ho_strerror(errno));
	q->ring = mmap(NULL, q->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		       q->fd, 0);
	if (q->ring == MAP_FAILED) {
		q->ring = NULL;
		return ho_err_set(err, -errno, "cannot map the transmit ring of %zu KB: %s",
				  q->ring_bytes >> 10, ho_strerror(errno));
	}
	q->base.tx = tx_ring;
	q->base.reap = ring_reap;
	return 0;
}

int packet_tx_open(struct packet_txq *q, uint32_t frames, struct ho_err *err)
{
	int one = 1, sndbuf = TX_SNDBUF_BYTES, rc;

	q->mtu_frame = q->base.port->mtu + 14;
	/* Without the privilege the socket's default stays, which is only slower. */
	if (setsockopt(q->fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf)) < 0)
		setsockopt(q->fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	if (q->opts->bypass &&
	    setsockopt(q->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) < 0)
		return ho_err_set(err, -errno,
				  "cannot bypass the queueing discipline: %s; bypass=no",
				  ho_strerror(errno));
	if (q->opts->offload &&
	    setsockopt(q->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) < 0)
		return ho_err_set(err, -errno, "no offloads on a packet socket: %s",
				  ho_strerror(errno));
	q->base.tx = tx_mmsg;
	rc = q->opts->tx == PACKET_TX_BY_RING ? open_ring(q, frames, err) : 0;
	return rc;
}

void packet_tx_stop(struct packet_txq *q)
{
	if (!q->ring)
		return;
	ring_reap(&q->base);
	withdraw_all(q, PORT_DROP_TX_CLOSED);
	/* What is left is the kernel's: on the interface's queue or in a receiver's. */
	while (q->tail != q->head) {
		port_count(&q->base.ctr, 1, q->bytes[q->tail & (q->size - 1)]);
		q->tail++;
	}
}

void packet_tx_close(struct packet_txq *q)
{
	if (q->ring)
		munmap(q->ring, q->ring_bytes);
	free(q->bytes);
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
	q->ring = NULL;
	q->bytes = NULL;
}
