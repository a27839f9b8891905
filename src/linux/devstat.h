/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver's own counters (ethtool -S), and which of them are of a queue. */
#ifndef HOLDOFF_LINUX_DEVSTAT_H
#define HOLDOFF_LINUX_DEVSTAT_H

#include "linux/sample.h"
#include "linux/textfile.h"

/* Memory for the questions, used again and again. Zeroed, and fd -1, at first. */
struct lx_devstat {
	int fd; /* a socket of any kind, made when needed */
	struct ethtool_gstrings *names;
	struct ethtool_stats *values;
	uint32_t n, room; /* room includes slack: see devstat.c */
	char of[LX_IF_BYTES];
};

/*
 * Reads all counters of the interface into *out, reallocated, *n of them; 0 if the driver has none.
 * The names are asked for again when their number or the interface changed, or when `again`.
 * Negative errno, -EOPNOTSUPP for drivers without counters.
 */
int lx_devstat_read(struct lx_devstat *devstat, const char *ifname, bool again,
		    struct lx_counter **out, unsigned *n);
void lx_devstat_fini(struct lx_devstat *devstat);

/* The same from the text that ethtool -S prints ("     name: value"). -ENOMEM. */
int lx_devstat_parse(const struct lx_text *text, struct lx_counter **out, unsigned *n);

enum lx_queue_counter {
	LX_Q_PACKETS,
	LX_Q_PACKETS_XDP, /* frames that the driver counts for XDP: all, where there is no other */
	LX_Q_BYTES,
	LX_Q_BYTES_XDP,
	LX_Q_DROPS,
	LX_Q_ERRORS,
	LX_Q_STOPS,
};

/*
 * Is this the name of a queue's counter, and what of? Names are each driver's own:
 * "rx_queue_0_packets" (ixgbe, virtio), "rx-0.packets" (i40e), "rx0_packets" (mlx5),
 * "queue_0_tx_cnt" (ena), "[0]: rx_ucast_packets" (bnxt), "rx_packets[0]" (gve), "rxq0: rx_pkts"
 * (be2net), "rvec_0_rx_pkts" (nfp), "q0_rx_pkt_n" (stmmac). Several that count the same (unicast,
 * multicast) are to be added up.
 */
bool lx_devstat_queue(const char *name, enum lx_dir *dir, unsigned *queue,
		      enum lx_queue_counter *what);

/*
 * Adds the counters up by queue into queue[] (sorted as lx_queue_order has it), which grows by
 * those that it lacks. Returns how many queues' packets are counted, or -ENOMEM.
 */
int lx_devstat_queues(const struct lx_counter *counter, unsigned n_counters,
		      struct lx_queue **queue, unsigned *n);

#endif
