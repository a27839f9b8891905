/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the tap: port: what its files share.
 *
 *   tap.c         options, the interface and its settings, open and close
 *   tap_rx.c      receiving
 *   tap_tx.c      sending
 */
#ifndef HOLDOFF_PORT_TAP_PORT_H
#define HOLDOFF_PORT_TAP_PORT_H

#include <sys/uio.h>

#include "linux/iface.h"
#include "linux/uring.h"
#include "port/port.h"
#include "port/vnet.h"

#define TAP_FRAME_MIN_BYTES 14 /* an Ethernet header */
#define TAP_FEW             8  /* pieces that one read has at no further cost */
/* What follows the first buffer of the longest frame; no power of two, so that the tails of a batch
 * do not meet in the cache. */
#define TAP_TAIL_BYTES (PK_FRAME_MAX_BYTES + 107)

struct tap_opts {
	uint64_t mtu; /* 0 = as it is */
	const char *mac;
	bool up;
	bool offload;
	bool persist;
	bool uring;
};

/* A frame that was read and waits to be delivered. */
struct tap_got {
	uint32_t buf;  /* its first bytes, the virtio header before them */
	uint32_t len;  /* header and all */
	unsigned tail; /* where the rest is */
};

struct tap_rxq {
	struct port_rxq base;
	const struct tap_opts *opts;
	int fd; /* of the transmit queue as well */
	bool ended;
	struct rt_event *event;
	unsigned header; /* bytes of the virtio header before each frame; 0 without offloads */
	/* Buffers that wait for a frame; iov[i] is of buf[i], the header in front of buf[0]. */
	unsigned n_buf, want_buf;
	uint32_t buf[PK_FRAME_MAX_SLOTS];
	struct iovec iov[PK_FRAME_MAX_SLOTS];
	unsigned long_reads; /* reads still to be made with all pieces */
	uint8_t *tail;       /* where the ends of long frames go otherwise, TAP_TAIL_BYTES each */
	/* Batches; NULL without. */
	struct lx_uring *uring;
	unsigned reads;                  /* of the next batch */
	unsigned got_at, got_n;          /* frames that wait: got[got_at..got_n) */
	struct tap_got got[PK_BURST];    /* of the last batch */
	struct iovec piece[PK_BURST][2]; /* its buffer, its tail */
};

struct tap_txq {
	struct port_txq base;
	const struct tap_opts *opts;
	int fd;
	uint32_t mtu_frame;
	struct lx_uring *uring; /* NULL: one write a system call */
};

struct tap_port {
	struct port base;
	struct tap_opts opts;
	char name[LX_NAME_BYTES];
	unsigned index;
	bool existed;   /* before us */
	bool gone;      /* removed by somebody else */
	bool before_up; /* what it was set to, if it existed */
	uint32_t before_mtu;
	uint8_t before_mac[6];
	bool changed_up, changed_mtu, changed_mac;
	struct rtnl_link_stats64 before;
};

unsigned tap_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n);
/* Do frames wait that were read already? */
static inline bool tap_rx_waits(const struct tap_rxq *q)
{
	return q->got_at < q->got_n;
}
/* Counts them as lost when the port closed. */
void tap_rx_discard(struct tap_rxq *q);
unsigned tap_tx(struct port_txq *base, struct pk_slot *slots, unsigned n);

#endif
