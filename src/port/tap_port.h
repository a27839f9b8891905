/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the tap: port: what its files share.
 *
 *   tap.c         options, the interface and its settings, open and close
 *   tap_queue.c   receiving and sending
 */
#ifndef HOLDOFF_PORT_TAP_PORT_H
#define HOLDOFF_PORT_TAP_PORT_H

#include <sys/uio.h>

#include "linux/iface.h"
#include "port/port.h"
#include "port/vnet.h"

#define TAP_FRAME_MIN_BYTES 14 /* an Ethernet header */
#define TAP_FEW             8  /* pieces that one read has at no further cost */

struct tap_opts {
	uint64_t mtu; /* 0 = as it is */
	const char *mac;
	bool up;
	bool offload;
	bool persist;
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
	uint8_t *tail;       /* where the end of a long frame goes otherwise */
};

struct tap_txq {
	struct port_txq base;
	const struct tap_opts *opts;
	int fd;
	uint32_t mtu_frame;
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
unsigned tap_tx(struct port_txq *base, struct pk_slot *slots, unsigned n);

#endif
