/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the XDP programs and the port that loads them agree on. Included from both sides. */
#ifndef HOLDOFF_PORT_XDP_SHARED_H
#define HOLDOFF_PORT_XDP_SHARED_H

#include <linux/types.h>

#define XDP_QUEUES_MAX 64 /* receive queues with a socket: entries of the XSKMAP */

/* What the kernel keeps although no filter says so. */
enum xdp_keep {
	XDP_KEEP_LOCAL,     /* ARP, ND, and ICMP to this host's own addresses */
	XDP_KEEP_NEIGHBOUR, /* ARP and ND */
	XDP_KEEP_NOTHING,
	XDP_KEEP_HOST, /* all that a router's host needs: port/host.h */
};

/* Addresses of this host that the program can know; more are found by the router. */
#define XDP_OWN_MAX 1024

/*
 * "Surely none of ours, nor a broadcast of our links" for one load instead of a look-up: a bit for
 * each address. The last four bytes, as a number of this machine, select it; they are what differs
 * most.
 */
#define XDP_OWN_BITS      4096
#define XDP_OWN_BIT(word) (((word)*0x9e3779b1u) >> 20)
#define XDP_VLANS         4096

/* Counters of the program, one per CPU each. */
enum xdp_count {
	XDP_COUNT_KEPT,         /* left to the kernel: ARP, ND, ICMP to us */
	XDP_COUNT_UNMATCHED,    /* left to the kernel: the filter does not want it */
	XDP_COUNT_NO_SOCKET,    /* left to the kernel: no socket on its queue */
	XDP_COUNT_STAMPED_KEPT, /* of these three: frames of a generator of ours */
	XDP_COUNT_STAMPED_UNMATCHED,
	XDP_COUNT_STAMPED_NO_SOCKET,
	XDP_COUNTS,
};

/* Entries of the program array. */
enum xdp_step {
	XDP_STEP_FILTER,    /* the translated filter; absent without one */
	XDP_STEP_TAKE,      /* it matched: to the socket */
	XDP_STEP_UNMATCHED, /* it did not: to the kernel */
	XDP_STEPS,
};

/*
 * The generator's mark (traffic/stamp.h): the first two of the last 16 bytes. A frame that carries
 * it and goes to the kernel is missing in somebody's balance, so it is counted apart.
 */
#define XDP_STAMP_BYTES 16
#define XDP_STAMP_MAGIC 0x686f

/*
 * The shortcut of a router (xdp_shortcut.bpf.h): by which of the kernel's interfaces packets may
 * leave. The number of the interface selects the entry; of two that meet there only the first is
 * in, and packets for the other one take the way of the router.
 */
#define XDP_EXITS            256
#define XDP_EXIT_AT(ifindex) ((ifindex) % XDP_EXITS)
#define XDP_SHORTCUT_PORTS   64 /* of one router */
struct xdp_exit {
	struct xdp_exit_where {
		__u32 ifindex; /* of the port */
		__u16 vlan;    /* 0 = without a tag */
		__u16 port;    /* its number among the router's */
	} where __attribute__((aligned(8)));
	__u32 ifindex; /* of the interface, a VLAN's say; 0 = no entry */
	__u32 unused;
};

/* Forwarded by the shortcut, by the port they leave by; a CPU each. */
struct xdp_shortcut_count {
	__u64 packets, in_bytes, out_bytes;
};

/* Frames that the live-frames program can be handed at once; a power of two. */
#define XDP_LIVE_FRAMES 2048

#endif
