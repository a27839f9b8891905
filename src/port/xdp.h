/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside port xdp: what its files share. One concern each:
 *
 *   xdp.c         the port: options, modes, opening
 *   xdp_run.c     counters, start, stop, close
 *   xdp_sock.c    an AF_XDP socket: its memory, rings, binding
 *   xdp_io.c      the rings in use: receive, fill, send, complete
 *   xdp_prog.c    the XDP program and the link that attaches it
 *   xdp_filter.c  a libpcap expression as a program in front of the sockets
 *   xdp_live.c    sending by live frames instead of by a socket
 *   xdp_host.c    what the program leaves to the host of a router: port/host.h
 *   xdp_shortcut.c  what the program forwards by itself: port/shortcut.h
 *   xdp_punt.c    frames handed back to the kernel's stack: port/host.h
 *
 * The whole arena is the UMEM of every socket: a buffer received on one port is sent on another
 * without being copied by us. Each port registers the arena once, its queues share that
 * registration, and each queue has fill and completion rings of its own. Ports do not share a
 * registration: the kernel keeps one alive only through a bound socket, so a port could not be
 * closed before those that came after it.
 *
 *          fill  (free buffers)  ------>  kernel  ------> rx   (frames)      socket A of a queue
 *          tx    (frames)        ------>  kernel  ------> comp (sent buffers) socket B (or A)
 *
 * A queue that both receives and sends has two sockets. poll() on a socket that has a TX ring
 * transmits too, and loses what that transmission had to say about dropped frames.
 */
#ifndef HOLDOFF_PORT_XDP_H
#define HOLDOFF_PORT_XDP_H

#include <xdp/xsk.h>

#include "linux/iface.h"
#include "port/port.h"

/* Of kernels newer than the oldest headers that this builds with (include/uapi/linux/if_xdp.h). */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4) /* bind: frames of several descriptors; 6.6 */
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0) /* descriptor option: the frame goes on in the next one */
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9 /* setsockopt: frames one sendto() may send, else 32; 6.18 */
#endif
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#endif
#ifndef SO_BUSY_POLL_BUDGET
#define SO_BUSY_POLL_BUDGET 70
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif

/* Descriptors of one frame that is sent in copy mode: MAX_SKB_FRAGS (17) and the linear part. */
#define XDP_TX_SLOTS_MAX 18

enum xdp_mode { XDP_MODE_AUTO, XDP_MODE_ZERO_COPY, XDP_MODE_COPY, XDP_MODE_GENERIC, XDP_MODES };
enum xdp_tri { XDP_TRI_AUTO, XDP_TRI_YES, XDP_TRI_NO };
enum xdp_tx { XDP_TX_AUTO, XDP_TX_SOCKET, XDP_TX_LIVE };

struct xdp_opts {
	unsigned mode; /* enum xdp_mode */
	unsigned tx;   /* enum xdp_tx */
	unsigned keep; /* enum xdp_keep */
	unsigned sg;   /* enum xdp_tri: multi-buffer */
	uint64_t queues, rx_ring, tx_ring;
	bool need_wakeup;
	uint64_t busy_poll_ns; /* 0 = off */
	uint64_t busy_budget;
	const char *filter;
};

/* One AF_XDP socket and its mapped rings. */
struct xdp_sock {
	int fd; /* -1 = none */
	struct xdp_map {
		void *at;
		size_t bytes;
	} maps[4];
};

/* How a socket is made. */
struct xdp_sock_config {
	unsigned ifindex, queue;
	uint16_t bind_flags; /* XDP_COPY or XDP_ZEROCOPY, XDP_USE_SG, XDP_USE_NEED_WAKEUP */
	int share_fd;        /* -1 = registers the arena itself */
	bool same_queue; /* share_fd is of the same queue: its fill and completion rings serve */
	uint32_t rx_size, tx_size;     /* entries; 0 = no such ring */
	uint32_t fill_size, comp_size; /* not used with same_queue */
	uint64_t busy_poll_ns, busy_budget;
};

struct xdp_prog;
struct xdp_skel;
struct xdp_live;

struct xdp_rxq {
	struct port_rxq base;
	int fd;
	struct xsk_ring_cons rx;
	struct xsk_ring_prod fill;
	uint32_t stride;      /* of the arena */
	uint32_t outstanding; /* buffers given to the kernel and not come back */
	uint32_t target;      /* how many it should have */
	bool busy_poll;       /* the application polls the driver by system calls */
	bool zero_copy;
	bool completes; /* frames may come with a checksum that their sender left to the wire */
	uint8_t *given; /* one a buffer of the arena: 1 = the kernel has it */
	struct rt_event *event;
	struct xdp_statistics last; /* when the socket was closed */
};

struct xdp_txq {
	struct port_txq base;
	int fd;
	struct xsk_ring_prod tx;
	struct xsk_ring_cons comp;
	uint32_t stride;
	uint32_t max_slots; /* of one frame */
	bool need_wakeup;   /* the kernel says when it wants a kick */
	bool zero_copy;
	uint32_t in_ring; /* slots given to the kernel and not come back */
	/* Frames that the kernel took and dropped: counted already, their completions must not. */
	uint64_t dropped_frames, dropped_bytes;
	uint32_t *
		given; /* one a buffer: 2 * bytes + "frame goes on" while the kernel has it, or 0 */
	struct xdp_live *live; /* or NULL: frames go this way instead */
};

struct xdp_port {
	struct port base;
	struct xdp_opts opts;
	struct lx_iface iface;
	enum xdp_mode mode; /* the one that works */
	bool rx, tx, sg, live;
	char *filter;           /* or NULL */
	struct xdp_sock *socks; /* two a queue: receiving, sending */
	unsigned n_socks;
	struct xdp_prog *prog; /* NULL while nothing is received */
	/* With a shortcut: the router's ports, this one's number among them. Else NULL. */
	struct xdp_port **joined;
	unsigned n_joined, number;
	struct xdp_kernel_counts {
		uint64_t rx_lost;           /* by the interface, those of the sockets included */
		bool counts_xmit;           /* the driver counts these: */
		uint64_t xmit, xmit_errors; /* frames redirected to it: taken and refused */
		uint64_t redirected; /* frames that arrived here and were redirected anywhere */
		uint64_t shortcut_in, shortcut_out; /* frames of port/shortcut.h */
		uint64_t program[8];                /* enum xdp_count */
	} at_start, at_stop;
};

/* Entries of a ring that the kernel wants although nobody uses it. */
#define XDP_RING_UNUSED 64

/* --- xdp_run.c ---------------------------------------------------------------------------- */

extern const struct port_ops xdp_ops;

/* Closes those that are open; the queues have none any more. */
void xdp_close_socks(struct xdp_port *port);

/* --- xdp_sock.c --------------------------------------------------------------------------- */

/*
 * Makes and binds the socket and fills in the rings it has (those not asked for are left alone).
 * -EBUSY after a second of trying: another socket has the queue. Other errors are the kernel's,
 * with a sentence in err. xdp_sock_close takes it back.
 */
int xdp_sock_open(struct xdp_sock *sock, const struct pk_arena *arena,
		  const struct xdp_sock_config *config, struct xsk_ring_cons *rx,
		  struct xsk_ring_prod *tx, struct xsk_ring_prod *fill, struct xsk_ring_cons *comp,
		  struct ho_err *err);
/* Allowed on one that was never opened, if fd is -1. */
void xdp_sock_close(struct xdp_sock *sock);

/* Did the kernel give it zero-copy? */
bool xdp_sock_zero_copy(const struct xdp_sock *sock);

/* --- xdp_io.c ----------------------------------------------------------------------------- */

unsigned xdp_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n);
unsigned xdp_tx(struct port_txq *base, struct pk_slot *slots, unsigned n);
unsigned xdp_reap(struct port_txq *base);
/*
 * Makes a frame of n slots ready for a wire that does nothing for it: puts its VLAN tag in and
 * completes its checksum. *bytes is its length. Returns why it cannot be sent, PORT_DROP_COUNT if
 * it can.
 */
enum port_drop xdp_finish_frame(const struct port_txq *q, struct pk_slot *slots, unsigned n,
				uint32_t *bytes);
/* Tops the fill ring up from the queue's cache. */
void xdp_fill(struct xdp_rxq *q);
/* After the sockets are closed: gives back what the kernel still had; of sent ones, how many
 * frames. */
void xdp_take_back_rx(struct xdp_rxq *q);
uint64_t xdp_take_back_tx(struct xdp_txq *q);

/* --- xdp_prog.c --------------------------------------------------------------------------- */

/* What libbpf has to say is for the verbose only; errors come in a sentence. */
void xdp_quiet_libbpf(void);

/* Loads the program and, if filter is not NULL, that too. mode: XDP_MODE_GENERIC or another. */
int xdp_prog_load(const struct xdp_port *port, const char *filter, struct xdp_prog **out,
		  struct ho_err *err);
/* Attaches it by a link: the kernel detaches it when this process ends, however it ends. */
int xdp_prog_attach(struct xdp_prog *prog, const struct xdp_port *port, bool generic,
		    struct ho_err *err);
/* Frames of queue `queue` go to this socket from now on. */
int xdp_prog_add(struct xdp_prog *prog, unsigned queue, int fd, struct ho_err *err);
/* The loaded program, for those who change its variables. */
struct xdp_skel *xdp_prog_skel(const struct xdp_prog *prog);
/* Detaches; counts stay readable. */
void xdp_prog_detach(struct xdp_prog *prog);
/* Sum over CPUs of one enum xdp_count. */
uint64_t xdp_prog_count(const struct xdp_prog *prog, unsigned which);
/* NULL is allowed. */
void xdp_prog_destroy(struct xdp_prog *prog);

/* --- xdp_filter.c ------------------------------------------------------------------------- */

struct bpf_insn;

/*
 * Translates a libpcap expression into an XDP program that ends with a tail call into steps_fd:
 * XDP_STEP_TAKE when the frame matches, XDP_STEP_UNMATCHED when not. *out is malloc'ed, *n its
 * length. Limits: it sees the first buffer of a frame of several, offsets below 4000 bytes, and
 * VLAN tags only where they are in the frame. -EINVAL with libpcap's complaint in err.
 */
int xdp_filter_translate(const char *expression, int steps_fd, struct bpf_insn **out, size_t *n,
			 struct ho_err *err);

/* --- xdp_live.c --------------------------------------------------------------------------- */

/* For one transmit queue; frames of up to max_frame bytes. */
int xdp_live_create(const struct xdp_port *port, struct xdp_live **out, struct ho_err *err);
void xdp_live_destroy(struct xdp_live *live);
unsigned xdp_live_tx(struct port_txq *base, struct pk_slot *slots, unsigned n);
unsigned xdp_live_reap(struct port_txq *base);
/* Sends what port_tx collected. */
void xdp_live_flush(struct xdp_txq *q);
/* The longest frame that live frames can carry. */
uint32_t xdp_live_max_frame(void);

/* Keeps the live frames' program where runs of it are cheap: xdp_live.c says how. */
struct xdp_settled {
	int tap_fd, link_fd; /* -1 = none */
};
#define XDP_SETTLED_INIT ((struct xdp_settled){ -1, -1 })
void xdp_settle(struct xdp_settled *settled, int prog_fd);
/* Allowed on one that never was. */
void xdp_unsettle(struct xdp_settled *settled);

/* --- xdp_host.c --------------------------------------------------------------------------- */

/* Is it a port of this kind whose program passes what is the host's (keep=host)? */
bool xdp_is_shared(const struct port *port);

#endif
