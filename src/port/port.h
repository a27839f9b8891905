/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port: something that packets come from and go to. It has receive and transmit queues that
 * work on bursts of slots (packet/slot.h), counters with a name for every lost packet, an
 * interrupt that can be armed, and parameters with ethtool's names.
 *
 *                +--------------------- port ----------------------+
 *   user  <----- | rxq: port_rx()   fresh buffers from its cache   | <---- wire, kernel, peer
 *   user  -----> | txq: port_tx()   sent ones go back to its cache | ---->
 *                +-------------------------------------------------+
 *
 * Ownership. port_rx gives the buffers of the slots it returns to the caller. port_tx takes those
 * of the slots it accepts, whether the frame is sent or dropped; the others stay the caller's.
 * What is on the wire or in the kernel belongs to the port until port_reap or port_close.
 *
 * Threads. A queue is used by one thread at a time, and so is the cache it is bound to. Different
 * queues, and the receive and transmit queue of one number, may be used by different threads
 * (with different caches). Counters may be read by any thread at any time.
 *
 * Conservation. For each receive queue, packets that reached it = rx_packets + its rx drops; for
 * each transmit queue, packets accepted by port_tx = tx_packets + its tx drops + those in flight
 * (port_tx_in_flight), which is 0 after a successful port_drain. What is lost before or behind
 * the queue and only counted elsewhere (by the kernel, by the chip) is a drop of the port, read
 * by ops->external_drops.
 */
#ifndef HOLDOFF_PORT_PORT_H
#define HOLDOFF_PORT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "packet/arena.h"
#include "packet/slot.h"
#include "runtime/rt.h"

/*
 * Why a packet was lost: enumerator, name that users see, meaning. One list for all kinds of
 * ports. `rx_` = on the way to the user, `tx_` = on the way to the wire.
 */
#define PORT_DROPS(X)                                                                             \
	X(RX_NO_BUFFER, "rx_no_buffer", "no free packet buffer when the frame arrived")           \
	X(RX_RING_FULL, "rx_ring_full", "the receive ring was full: the receiver was too slow")   \
	X(RX_MALFORMED, "rx_malformed",                                                           \
	  "the peer or file broke the format of a descriptor or record")                          \
	X(RX_TOO_LONG, "rx_too_long", "longer than a frame can be here")                          \
	X(RX_TRUNCATED, "rx_truncated", "captured only in part")                                  \
	X(RX_SOCKET, "rx_socket", "the kernel dropped it at the socket: its queue was full")      \
	X(RX_XDP_FILL, "rx_xdp_fill", "AF_XDP: the fill ring was empty")                          \
	X(RX_XDP_INVALID, "rx_xdp_invalid", "AF_XDP: the kernel refused the frame (too long)")    \
	X(RX_XDP_DROPPED, "rx_xdp_dropped", "AF_XDP: the kernel dropped it before the socket")    \
	X(RX_LINK, "rx_link", "the interface counted it as dropped or missed on receive")         \
	X(RX_FILTERED, "rx_filtered", "a filter that was asked for did not match")                \
	X(RX_NO_QUEUE, "rx_no_queue",                                                             \
	  "arrived on a queue that this port does not use; the kernel has it")                    \
	X(RX_CLOSED, "rx_closed", "still queued when the port was closed")                        \
	X(RX_RESET, "rx_reset", "received but not yet taken when the chip was reset")             \
	X(TX_RING_FULL, "tx_ring_full", "the transmit ring was full and the sender did not wait") \
	X(TX_TOO_LONG, "tx_too_long", "longer than the port can send")                            \
	X(TX_TOO_SHORT, "tx_too_short", "shorter than an Ethernet header")                        \
	X(TX_NO_BUFFER, "tx_no_buffer", "no buffer to build the frame in")                        \
	X(TX_BAD_FRAME, "tx_bad_frame", "an offload was asked for that the headers do not allow") \
	X(TX_PEER_FULL, "tx_peer_full", "the peer's ring had no room")                            \
	X(TX_MALFORMED, "tx_malformed", "the peer broke the format of a buffer's descriptor")     \
	X(TX_LINK_DOWN, "tx_link_down", "no peer, or the link is down")                           \
	X(TX_KERNEL, "tx_kernel", "the kernel refused to send it")                                \
	X(TX_XDP_INVALID, "tx_xdp_invalid", "AF_XDP: the kernel found the descriptor invalid")    \
	X(TX_LINK, "tx_link", "the interface counted it as dropped on transmit")                  \
	X(TX_CLOSED, "tx_closed", "not yet sent when the port was closed")                        \
	X(TX_RESET, "tx_reset", "in the transmit ring when the chip was reset")                   \
	X(TX_WRITE, "tx_write", "writing it to the file failed")

enum port_drop {
#define PORT_DROP_ENUM(id, name, text) PORT_DROP_##id,
	PORT_DROPS(PORT_DROP_ENUM)
#undef PORT_DROP_ENUM
		PORT_DROP_COUNT,
};

/* "rx_ring_full"; what it means, in a sentence. */
const char *port_drop_name(enum port_drop drop);
const char *port_drop_meaning(enum port_drop drop);

/* Of one queue. Written by the queue's thread with ho_ctr_add, read with ho_ctr_read. */
struct port_counters {
	uint64_t packets;   /* frames given to the user, or completely sent */
	uint64_t bytes;     /* of these, without FCS, with tags that travel beside the frame */
	uint64_t ring_full; /* port_tx calls that accepted less than was offered */
	uint64_t kicks;     /* system calls or doorbells to get the other side going */
	uint64_t wakeups;   /* interrupts or wake-ups taken */
	uint64_t drops[PORT_DROP_COUNT];
};

/* What one pass over a queue did; for moderation and queue limits. Frames that a reset lost count
 * as done: their room in the queue is free. */
struct port_work {
	uint32_t packets;
	uint32_t bytes;
};

struct port;
struct port_rxq;
struct port_txq;

/* Receive queue; embedded in the kind's own. */
struct port_rxq {
	/* Up to n slots (n >= PK_FRAME_MAX_SLOTS), whole frames; see port_rx. */
	unsigned (*rx)(struct port_rxq *q, struct pk_slot *slots, unsigned n);
	struct pk_cache *cache; /* fresh buffers come from here */
	struct pk_arena *arena;
	struct port *port;
	uint16_t index;
	struct port_counters ctr;
};

/* Transmit queue; embedded in the kind's own. */
struct port_txq {
	unsigned (*tx)(struct port_txq *q, struct pk_slot *slots, unsigned n);
	unsigned (*reap)(struct port_txq *q); /* NULL where sending is complete at once */
	struct pk_cache *cache;               /* sent buffers go back there */
	struct pk_arena *arena;
	struct port *port;
	uint16_t index;
	uint64_t accepted; /* frames taken by tx so far */
	uint32_t stopped;  /* kinds that stop like a Linux queue: tx takes nothing until the cleaner
			      has made room and clears it; see port_tx_stopped */
	struct port_counters ctr;
};

/* What a port was opened with. */
struct port_config {
	struct rt *rt;
	struct pk_arena *arena; /* shared by all ports of the process */
	unsigned queues;        /* of each direction; 0 = the kind's default */
	unsigned rx_ring;       /* entries; 0 = the kind's default */
	unsigned tx_ring;
	bool rx, tx;        /* directions that the user wants; neither = both */
	bool force;         /* even if it carries the default route */
	const char *filter; /* libpcap expression: only these frames are wanted; may be NULL */
	/* The user only counts what it receives. A port that would look into frames to find out
	 * more about them need not: PK_CSUM_PARTIAL may be missing. */
	bool count_only;
	/* So long the user waits, once the port is started, for a link or peer; 0 = unknown. A port
	 * that would itself wait longer leaves it to the user. */
	uint64_t wait_ns;
};

/*
 * An option that may follow the port's name: "pcap:f.pcap,loop=3,speed=0.5". The kind declares
 * them in a table; the parser, `holdoff ports` and the manual use it.
 */
enum port_opt_type {
	PORT_OPT_BOOL,   /* "key" or "key=yes|no" */
	PORT_OPT_COUNT,  /* 0 .. max, with k/m/g suffixes */
	PORT_OPT_NUMBER, /* a decimal fraction */
	PORT_OPT_TIME,   /* to nanoseconds: "20us" */
	PORT_OPT_CHOICE, /* one of `choices`, to its index */
	PORT_OPT_STRING,
};

struct port_opt {
	const char *key;
	enum port_opt_type type;
	const char *choices; /* "auto|copy|zero-copy" for PORT_OPT_CHOICE */
	const char *help;    /* one line */
	uint64_t min, max;   /* for counts and times; max 0 = no limit */
	size_t offset; /* where in the kind's options struct: bool, uint64_t, double, uint64_t,
			  unsigned, const char * */
};

/* A parameter with ethtool's name. */
struct port_param {
	const char *name; /* "rx", "tx", "rx-usecs", "combined", "mtu" */
	uint64_t value;
	uint64_t max; /* 0 = not settable */
};

/* A kind-specific counter that is not a drop, as --counters shows it: "rx_to_kernel_kept". */
struct port_stat {
	const char *name;
	uint64_t value;
};

/* A kind of port: "mem", "pcap", ... */
struct port_kind {
	const char *name;
	const char *help;            /* one line: what it is */
	const char *target;          /* what stands behind the colon, "" if nothing: "IFACE" */
	bool on_interface;           /* that is an interface which a driver of the kernel drives */
	const struct port_opt *opts; /* ends with a NULL key; may be NULL */
	size_t opts_bytes;           /* size of the kind's options struct */
	const void *opts_default;    /* its initial value */
	/* Capabilities (linux/caps.h) that its ports still need once they are started; all others
	 * are given up then. What opening needs is for open to check (lx_caps_require). */
	uint64_t caps_keep;
	/*
	 * Opens it, with queues made and ready to be bound. `target` is the text between the colon
	 * and the first option; opts the filled options struct (copied by the callee if kept).
	 */
	int (*open)(const char *target, const void *opts, const struct port_config *config,
		    struct port **out, struct ho_err *err);
};

struct port_ops {
	/* After all queues are bound: packets may flow. NULL = nothing to do. */
	int (*start)(struct port *port, struct ho_err *err);
	/* The event that the receive queue signals; NULL function = poll only. */
	struct rt_event *(*rx_event)(struct port_rxq *q);
	/*
	 * Asks for a signal at the next packet. Returns true when packets are already there (do
	 * not wait then). disarm: no more signals are needed.
	 */
	bool (*arm)(struct port_rxq *q);
	void (*disarm)(struct port_rxq *q);
	/*
	 * For kinds whose queue pair number i shares one interrupt. clean: takes back up to about
	 * `limit` descriptors' worth of sent frames and adds them to *done; true when it stopped
	 * at the limit, so that more may be waiting. It may run beside tx on another thread; the
	 * bound cache is then used by the cleaner alone. spacing: the least time between two
	 * interrupts of the pair, as the chip can round it; 0 = none. NULL = no such thing.
	 */
	bool (*clean)(struct port_txq *q, unsigned limit, struct port_work *done);
	void (*spacing)(struct port_rxq *q, uint32_t ns);
	/* No more packets will ever come (end of file, peer gone for good). NULL = never so. */
	bool (*rx_ended)(struct port_rxq *q);
	/* Is there a link, or a peer? NULL = always. */
	bool (*link_up)(struct port *port);
	/*
	 * Why there is none, and the way out, as the end of a sentence in why[bytes]; "" if nothing
	 * is known. False when waiting does not help. NULL = nothing is ever known.
	 */
	bool (*link_missing)(struct port *port, char *why, size_t bytes);
	/*
	 * Adds losses that only the kernel or the chip counted since start to
	 * drops[PORT_DROP_COUNT]. NULL = none.
	 */
	void (*external_drops)(struct port *port, uint64_t *drops);
	/*
	 * What went wrong after the port was opened and cannot be seen from a counter alone: why a
	 * file ended early, why writing failed, that the interface is gone. 0 = nothing did. For
	 * the queue's thread after rx_ended, for anybody after port_stop. NULL = never. Users call
	 * port_late_error.
	 */
	int (*late_error)(struct port *port, struct ho_err *err);
	/*
	 * The run is to end: what tx or reap wait for at the other side (a pipe's reader) they wait
	 * for a second more at most. From any thread, while the queues' threads run. NULL = neither
	 * ever waits. Users call port_hurry.
	 */
	void (*hurry)(struct port *port);
	/* Fills up to max; returns how many there are. NULL = none. */
	unsigned (*stats)(struct port *port, struct port_stat *out, unsigned max);
	unsigned (*params)(struct port *port, struct port_param *out, unsigned max);
	/* -EOPNOTSUPP unless the parameter can be set; restores nothing itself. */
	int (*set_param)(struct port *port, const char *name, uint64_t value, struct ho_err *err);
	/*
	 * No more packets: what still waits to be received becomes rx_closed, what cannot be sent
	 * any more tx_closed, and counters are final. The queues' threads have ended. NULL =
	 * nothing to do.
	 */
	void (*stop)(struct port *port);
	/*
	 * Takes buffers back (queues' caches must still be there), restores what was changed,
	 * frees the port and its queues. Stops first if it was not stopped.
	 */
	void (*close)(struct port *port);
};

#define PORT_NAME_BYTES 128

struct port {
	const struct port_ops *ops;
	const struct port_kind *kind;
	char name[PORT_NAME_BYTES]; /* "xdp:eth1", without options */
	struct rt *rt;
	struct pk_arena *arena;
	/* The kernel's interface that it stands on and is gone with. 0 = none, or one that may move
	 * to another namespace while the port is open, as a tap may. */
	unsigned ifindex;
	uint8_t mac[6];     /* own address, all zero if it has none */
	uint32_t mtu;       /* bytes behind the Ethernet header; 0 = any */
	uint64_t link_bps;  /* 0 = unknown or none */
	uint32_t max_frame; /* bytes it can send in one frame, Ethernet header included; frames that
			       it is to cut (PK_TSO) may be longer */
	uint32_t tag_room;  /* so many bytes more if the frame has a VLAN tag */
	bool started, stopped;
	bool recorded;       /* what it receives was recorded: when it comes tells no delay */
	bool on_stdout;      /* what it sends goes to standard output, which is no place for more */
	bool honours_keep;   /* PK_KEEP works on its transmit queues */
	bool irq_self_masks; /* an interrupt that fires disarms itself: its handler need not */
	unsigned n_rxq, n_txq;
	struct port_rxq **rxq; /* n_rxq pointers */
	struct port_txq **txq;
};

/*
 * Opens "KIND:TARGET[,option...]". On failure err says what the user must know, and nothing is
 * changed. Bind each queue that will be used, then call port_start.
 */
int port_open(const char *spec, const struct port_config *config, struct port **out,
	      struct ho_err *err);

/* The interface that a port named so would be on; it need not be there. -EINVAL: it is on none,
 * with a sentence. */
int port_interface(const char *spec, char *name, size_t bytes, struct ho_err *err);

/* Which worker's cache a queue uses. Every queue that is to be used must be bound before start. */
void port_bind_rx(struct port *port, unsigned queue, struct pk_cache *cache);
void port_bind_tx(struct port *port, unsigned queue, struct pk_cache *cache);

int port_start(struct port *port, struct ho_err *err);

/* Waits, up to timeout_ns, until nothing is in flight on any bound transmit queue. 0 or
 * -ETIMEDOUT. The queues' threads must have stopped using them. */
int port_drain(struct port *port, uint64_t timeout_ns);

/* The run is to end: no more patience with whoever does not take what is sent. From any thread. */
static inline void port_hurry(struct port *port)
{
	if (port->ops->hurry)
		port->ops->hurry(port);
}

/* Ends the flow of packets and makes counters final. The queues' threads must have ended. A second
 * call does nothing. */
void port_stop(struct port *port);

/* What went wrong since the port was opened: 0, or a negative errno with the sentence in err. To be
 * asked after port_stop (or when rx_ended) by every command; its answer is a failure. */
int port_late_error(struct port *port, struct ho_err *err);

/* Stops it if need be, closes and frees it. The caches must still be alive. NULL is allowed. */
void port_close(struct port *port);

/* All kinds, ending with NULL: for help and documentation. */
extern const struct port_kind *const port_kinds[];

/* Receives up to n slots (n >= PK_FRAME_MAX_SLOTS). 0 = nothing there now. */
static inline unsigned port_rx(struct port_rxq *q, struct pk_slot *slots, unsigned n)
{
	return q->rx(q, slots, n);
}

/*
 * Sends up to n slots of whole frames. Returns how many slots were taken; fewer than n means the
 * ring is full now. A frame that can never be sent is taken and counted as a drop.
 */
static inline unsigned port_tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	return q->tx(q, slots, n);
}

/* Would port_tx take nothing just now, until the cleaner has made room? For senders that spin. */
static inline bool port_tx_stopped(const struct port_txq *q)
{
	return __atomic_load_n(&q->stopped, __ATOMIC_RELAXED) != 0;
}

/* Takes back buffers of sent frames; returns how many frames completed. */
static inline unsigned port_reap(struct port_txq *q)
{
	return q->reap ? q->reap(q) : 0;
}

/* Adds the transmit queue's drops up. */
uint64_t port_drops_sum(const uint64_t drops[PORT_DROP_COUNT]);

/* Frames accepted that are neither sent nor dropped yet. */
static inline uint64_t port_tx_in_flight(const struct port_txq *q)
{
	return q->accepted - q->ctr.packets - port_drops_sum(q->ctr.drops);
}

/*
 * For kinds: makes a port's base and its queues, each of the kind's own size with the base struct
 * first, zeroed and cache-line aligned; fills name, arena, rt and indices. NULL when out of
 * memory. port_free is its inverse.
 */
struct port *port_new(size_t port_bytes, const struct port_kind *kind, const char *target,
		      const struct port_config *config, unsigned n_rxq, size_t rxq_bytes,
		      unsigned n_txq, size_t txq_bytes);
void port_free(struct port *port);

/* For kinds: n slots of whole frames, of which at most `room` fit: the slots of the whole frames
 * that do. */
static inline unsigned port_whole_frames(const struct pk_slot *slots, unsigned n, unsigned room)
{
	if (n <= room)
		return n;
	while (room && (slots[room - 1].flags & PK_MORE))
		room--;
	return room;
}

/* For kinds: one packet more was lost on this queue because of `drop`. */
static inline void port_drop(struct port_counters *ctr, enum port_drop drop, uint64_t packets)
{
	ho_ctr_add(&ctr->drops[drop], packets);
}

/* For kinds: one frame sent or received. */
static inline void port_count(struct port_counters *ctr, uint64_t packets, uint64_t bytes)
{
	ho_ctr_add(&ctr->packets, packets);
	ho_ctr_add(&ctr->bytes, bytes);
}

/* Takes frames off the caller's hands that it will not retry: counts and frees them. */
void port_tx_discard(struct port_txq *q, struct pk_slot *slots, unsigned n, enum port_drop why);

#endif
