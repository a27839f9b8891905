/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the packet: port (AF_PACKET, packet(7)): what its files share.
 *
 *   packet.c      options, opening, starting, losses that the kernel counts, stopping
 *   packet_rx.c   the receive queue: a TPACKET_V3 ring of blocks or a TPACKET_V2 ring of frames
 *   packet_tx.c   the transmit queue: a TPACKET_V2 ring, or sendmmsg
 *
 * Each queue has a socket of its own. Facts about the rings: Documentation/networking/
 * packet_mmap.rst and net/packet/af_packet.c of the Linux kernel.
 */
#ifndef HOLDOFF_PORT_PACKET_PORT_H
#define HOLDOFF_PORT_PACKET_PORT_H

#include <linux/if_packet.h>
#include <pcap/pcap.h>
#include <pthread.h>

#include "linux/iface.h"
#include "port/port.h"

enum packet_fanout { PACKET_BY_HASH, PACKET_BY_CPU, PACKET_BY_TURNS, PACKET_BY_QUEUE };
enum packet_rx_way { PACKET_RX_V3, PACKET_RX_V2 };
enum packet_tx_way { PACKET_TX_BY_MMSG, PACKET_TX_BY_RING };

struct packet_opts {
	unsigned fanout; /* enum packet_fanout */
	unsigned rx;     /* enum packet_rx_way */
	unsigned tx;     /* enum packet_tx_way */
	bool bypass;     /* the queueing discipline */
	bool offload;    /* checksum and segmentation state travels with the frames */
	bool promisc;
};

#define PACKET_RX_BLOCK_BYTES (256u << 10) /* holds the longest frame, and many short ones */
#define PACKET_RX_RETIRE_MS   1            /* a block that is not full is handed over then */
#define PACKET_V3_FRAME_BYTES 2048u        /* what a frame of a V3 ring stands for in memory */

/*
 * Rings of frames (V2): entries of an odd number of cache lines, so that headers spread over the
 * cache, and 64 of them to a block, which makes a block whole pages and the ring one array.
 */
#define PACKET_FRAME_BYTES(longest) (HO_ALIGN_UP(longest, 64u) | 64u)
#define PACKET_FRAMES_PER_BLOCK     64u

struct packet_rxq {
	struct port_rxq base;
	const struct packet_opts *opts;
	int fd;
	uint8_t *ring; /* mapped */
	size_t ring_bytes;
	/* V3 */
	uint32_t blocks, block; /* how many, the next one */
	uint32_t left;          /* frames of it not yet given */
	uint8_t *at;            /* the next of them */
	/* V2 */
	uint32_t frames, frame, frame_bytes;
	uint64_t taken; /* frames that left the ring, dropped ones included */
	struct rt_event *event;
	uint64_t check_ns; /* when to look again whether the interface is still there */
	/* The kernel's counters are cleared by reading: what was read so far. */
	pthread_mutex_t stats_lock;
	uint64_t kernel_packets; /* put into the ring */
	uint64_t kernel_drops;
};

struct packet_txq {
	struct port_txq base;
	const struct packet_opts *opts;
	int fd;
	uint32_t mtu_frame; /* the longest frame without a tag */
	/* Ring. */
	uint8_t *ring;
	size_t ring_bytes;
	uint32_t size;        /* frames, a power of two */
	uint32_t head, tail;  /* free running: tail..head are in flight */
	uint32_t frame_bytes; /* from one to the next */
	uint32_t *bytes;      /* of each, as counted */
	bool unkicked;        /* the kernel has not been told of all, or could not take all */
	uint64_t refused;     /* frames that the kernel refused for want of room (mmsg) */
};

struct packet_port {
	struct port base;
	struct packet_opts opts;
	struct lx_iface iface;
	bool rx, tx;                     /* the directions that are used */
	struct bpf_program *filter;      /* NULL = none */
	struct rtnl_link_stats64 before; /* the interface's, at start */
	uint64_t backlog_before;
	bool gone; /* the interface was removed */
};

/* Makes the ring of q on its socket. `frames`: how many of them it should hold. */
int packet_rx_open(struct packet_rxq *q, uint32_t frames, struct ho_err *err);
void packet_rx_close(struct packet_rxq *q);
/* Reads the kernel's counters. Any thread. */
void packet_rx_stats(struct packet_rxq *q);
/* Counts what is still in the ring as rx_closed. The socket must not take new frames any more. */
void packet_rx_stop(struct packet_rxq *q);
bool packet_arm(struct port_rxq *base);

int packet_tx_open(struct packet_txq *q, uint32_t frames, struct ho_err *err);
void packet_tx_close(struct packet_txq *q);
void packet_tx_stop(struct packet_txq *q);

#endif
