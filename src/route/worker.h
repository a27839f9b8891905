/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the router: a worker, and what its files call of one another. Everything here runs in the
 * worker's task.
 *
 *   worker.c  loop       fast.c    what most packets take, a burst at a time (fast_avx512.c,
 *                                  fast_avx2.c: its checks, a group at a time)
 *   slow.c    layer 2, a packet at a time
 *   output.c  headers, queues, paths   ip4.c, ip6.c, ip4_options.c   checks, errors, forwarding
 *   frag.c    IPv4 fragments           icmp4.c, icmp6.c   errors     local.c   echo, closed ports
 *   hold.c    waiting for neighbours   arp.c, nd.c   what neighbours say and ask
 */
#ifndef HOLDOFF_ROUTE_WORKER_H
#define HOLDOFF_ROUTE_WORKER_H

#include "base/hist.h"
#include "packet/flowhash.h"
#include "packet/headers.h"
#include "packet/parse.h"
#include "route/fib4.h"
#include "route/fib6.h"
#include "route/nexthop.h"
#include "route/router.h"
#include "route/wish.h"
#include "traffic/stop.h"

#define RO_OUT (2 * PK_BURST) /* slots that are gathered for a port; a burst and any frame */
_Static_assert(RO_OUT >= PK_BURST + PK_FRAME_MAX_SLOTS, "a frame fits beside a burst");

struct ro_out {
	unsigned n;
	struct pk_slot slot[RO_OUT] HO_CACHE_ALIGNED;
};

/* A packet on the slow path. Whoever has it ends by dropping, holding or sending it. */
struct ro_pkt {
	struct pk_slot *slot; /* of the frame */
	unsigned n;
	const struct ro_iface *in; /* where it came from; NULL = made here */
	uint8_t *l2;               /* first byte of the frame */
	uint8_t *ip;               /* of the network header */
	uint32_t have;             /* bytes from there in the first slot */
	uint32_t ip_bytes;         /* of the packet, as its header says */
	uint8_t family;            /* enum ro_family */
	bool group;                /* the Ethernet destination is a group or everybody */
	bool forward;              /* TTL is to be counted down when it is sent */
};

/* --- the hold queue ------------------------------------------------------------------------- */

#define RO_HOLD_NEIGHS  64 /* neighbours that a worker waits for */
#define RO_HOLD_PACKETS 3  /* of each */

struct ro_held {
	unsigned n;        /* slots */
	uint16_t l2_bytes; /* before the IP header */
	uint8_t family;
	bool own; /* made here: no ICMP about it */
	bool group;
	uint16_t in;  /* slot of the interface where it came from */
	uint32_t mtu; /* of its route */
	struct pk_slot slot[PK_FRAME_MAX_SLOTS];
};

struct ro_hold {
	bool used;
	uint32_t ifindex;
	struct ro_addr addr;
	uint64_t since_ns, asked_ns;
	unsigned packets;
	struct ro_held packet[RO_HOLD_PACKETS]; /* oldest first */
};

/* --- the worker ----------------------------------------------------------------------------- */

#define RO_ORDERS 256
struct ro_order_queue {
	struct port_spsc idx;
	struct ro_order order[RO_ORDERS];
};

/* Frames of one port that wait to be given to the host's stack. */
#define RO_HOST_FRAMES 64
struct ro_host {
	unsigned port, n, frames;
	struct pk_slot slot[RO_HOST_FRAMES + PK_FRAME_MAX_SLOTS];
};

struct ro_worker {
	struct ro_view *view;
	struct pk_arena *arena;
	struct pk_cache *cache;
	struct rt *rt;
	struct ro_router *router;
	unsigned index, ports;
	bool own_stack, slow_only;
	struct port_rxq *rxq[RO_PORTS_MAX]; /* NULL where the port has none for us */
	struct port_txq *txq[RO_PORTS_MAX];
	struct ro_out *list[RO_PORTS_MAX]; /* &out[port], or NULL: the port takes nothing */
	uint64_t now_ns;                   /* of this turn */
	uint64_t touched;                  /* ports with something in out[], a bit each */
	const struct pk_flowhash *hash;
	const struct ro_fast *fast; /* see fast.h */
	struct ro_wish_queue *wishes;
	struct ro_order_queue *orders;
	uint64_t count, end_ns; /* as in the configuration, our share */
	struct rt_event *done_event;
	struct tr_stop stop;
	bool done; /* atomic */

	uint64_t tokens_ns, icmp_gap_ns, icmp_room_ns; /* the token bucket, in time */
	uint16_t ip_id;
	unsigned holding; /* entries of hold[] in use */
	uint32_t neigh_changes;
	uint64_t hold_look_ns;

	struct ro_counters ctr HO_CACHE_ALIGNED;
	struct ho_hist full_turn_ticks;
	struct ro_out out[RO_PORTS_MAX];
	struct ro_hold hold[RO_HOLD_NEIGHS];
	unsigned (*to_host)(void *arg, unsigned worker, unsigned port, struct pk_slot *slots,
			    unsigned n);
	void *to_host_arg;
	struct ro_host host;
	uint8_t scratch[PK_FRAME_MAX_BYTES]; /* a frame in one piece */
};

/* --- slow.c --------------------------------------------------------------------------------- */

/* Takes one frame of n slots that came in on a port. */
void ro_slow(struct ro_worker *w, unsigned port, struct pk_slot *slots, unsigned n);
void ro_drop(struct ro_worker *w, struct ro_pkt *p, enum ro_drop why);
/* It was for the router, and has been used. */
void ro_used(struct ro_worker *w, struct ro_pkt *p);
/* An own packet of `bytes` bytes from its IP header on, copied to fresh buffers with room for an
 * Ethernet header; counted as generated. false: no buffer (nothing is counted). slots holds
 * PK_FRAME_MAX_SLOTS. */
bool ro_make(struct ro_worker *w, const void *ip, uint32_t bytes, uint8_t family,
	     struct pk_slot *slots, struct ro_pkt *out);

/* --- host.c --------------------------------------------------------------------------------- */

/* It is for the host's own stack: the frame goes there as it came. */
void ro_to_host(struct ro_worker *w, struct ro_pkt *p);
/* What was gathered for it goes now. */
void ro_host_flush(struct ro_worker *w);

/* --- ip4.c, ip6.c, ip4_options.c ------------------------------------------------------------- */

void ro_ip4_input(struct ro_worker *w, struct ro_pkt *p);
void ro_ip6_input(struct ro_worker *w, struct ro_pkt *p);
/* The route of a packet: not an ECMP record, but the path of its flow. */
const struct ro_nh *ro_route_of(struct ro_worker *w, const struct ro_pkt *p);
/* Sends it by the route, or says why not. */
void ro_forward(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh);
/* Longer than mtu and not to be fragmented: it is answered and dropped, and this is true. */
bool ro_too_big(struct ro_worker *w, struct ro_pkt *p, uint32_t mtu);

/* Options of a hop-by-hop or destination header: see ip6.c. */
enum ro_drop ro_ip6_options(struct ro_worker *w, const struct ro_pkt *p, uint32_t at,
			    uint32_t bytes);

enum ro_option_verdict { RO_OPTIONS_OK, RO_OPTIONS_BAD, RO_OPTIONS_SOURCE_ROUTE };
/* Are the options sound? *pointer: the byte at fault, from the header's start. */
enum ro_option_verdict ro_ip4_options_check(const uint8_t *ip, unsigned *pointer);
/* Record route and time stamp, as the packet leaves; addr: of the interface, NULL if it has none.
 * The header's checksum is kept right. */
void ro_ip4_options_forward(uint8_t *ip, const uint8_t *addr, uint32_t ms);

/* --- output.c ------------------------------------------------------------------------------- */

/* Puts the link layer's header in front and the frame into the list of the port, which must have a
 * transmit queue. Counts nothing; false: no buffers, and the packet is still the caller's. */
bool ro_put(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh);
/* The same, counted as sent or dropped. */
void ro_emit(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh);
/* For ARP: the frame is complete. */
void ro_emit_raw(struct ro_worker *w, unsigned port, struct pk_slot *slots, unsigned n);
void ro_flush(struct ro_worker *w);
/* Counts TTL or hop limit down if it is to be forwarded; fragments, sends or holds. */
void ro_transmit(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh);
/* By nh, which is RO_NH_ETHER; no IPv4 packet longer than mtu. */
void ro_send(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh, uint32_t mtu);
/* ro_transmit on an interface, to the packet's destination as a neighbour on it. */
void ro_transmit_on(struct ro_worker *w, struct ro_pkt *p, const struct ro_iface *iface);
/* Packets of our own: by the routes. */
void ro_originate(struct ro_worker *w, struct ro_pkt *p);
/* Hash of a packet's flow; that of an ICMP error is the one of the flow it is about, seen from the
 * other end (RFC 7690). */
uint32_t ro_flow_hash(const struct pk_flowhash *hash, const uint8_t *ip, uint32_t have,
		      uint8_t family);
/* A source address for a packet to dst by nh; NULL when the router has none. */
const uint8_t *ro_source(const struct ro_worker *w, const struct ro_nh *nh, uint8_t family,
			 const uint8_t *dst);
const uint8_t *ro_source_on(const struct ro_worker *w, const struct ro_iface *iface, uint8_t family,
			    const uint8_t *dst);

/* frag.c: sends it as fragments no longer than mtu; nh is RO_NH_ETHER. */
void ro_fragment(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh, uint32_t mtu);

/* --- icmp4.c, icmp6.c: errors. The packet stays the caller's. -------------------------------- */

bool ro_icmp_token(struct ro_worker *w);
/* rest: the second word (pointer, MTU), host order. */
void ro_icmp4_error(struct ro_worker *w, const struct ro_pkt *about, uint8_t type, uint8_t code,
		    uint32_t rest);
void ro_icmp6_error(struct ro_worker *w, const struct ro_pkt *about, uint8_t type, uint8_t code,
		    uint32_t rest);

/* --- local.c, arp.c, nd.c -------------------------------------------------------------------- */

void ro_local4(struct ro_worker *w, struct ro_pkt *p);
void ro_local6(struct ro_worker *w, struct ro_pkt *p);
void ro_arp_input(struct ro_worker *w, struct ro_pkt *p, uint32_t l2_bytes);
/* ICMPv6 133 to 137 with a right checksum; icmp at offset l4 of the packet. */
void ro_nd_input(struct ro_worker *w, struct ro_pkt *p, uint32_t l4);
void ro_arp_order(struct ro_worker *w, const struct ro_iface *iface, const struct ro_order *order);
void ro_nd_order(struct ro_worker *w, const struct ro_iface *iface, const struct ro_order *order);

/* --- hold.c --------------------------------------------------------------------------------- */

/* Waits for the neighbour; says so to the control plane. mtu: of the packet's route. */
void ro_hold(struct ro_worker *w, struct ro_pkt *p, uint32_t ifindex, const struct ro_addr *addr,
	     uint32_t mtu);
/* Sends what can be sent now, answers what cannot be. */
void ro_hold_look(struct ro_worker *w);
void ro_hold_close(struct ro_worker *w);

static inline void ro_count_drop(struct ro_worker *w, enum ro_drop why)
{
	ho_ctr_add(&w->ctr.drops[why], 1);
}

#endif
