/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside memif: what its files share.
 *
 *   memif.c       the kind: options, open, start, stop, close
 *   memif_ctrl.c  sockets: listening, connecting and reconnecting, in a task of its own
 *   memif_chan.c  the control conversation (a state machine)
 *   memif_conn.c  shared memory: made, checked, mapped
 *   memif_rx.c, memif_tx.c  packets
 *
 * The control task publishes a connection in port->conn and withdraws it when the peer is gone. A
 * queue compares that pointer with the connection that it works with once per burst, and changes
 * over in its own thread: it accounts for what was in flight and gives the buffers back to its own
 * cache.
 */
#ifndef HOLDOFF_PORT_MEMIF_H
#define HOLDOFF_PORT_MEMIF_H

#include <pthread.h>
#include <sys/un.h>

#include "port/memif_chan.h"
#include "port/memif_tune.h"
#include "port/port.h"

struct memif_hub;
struct memif_peer;

struct memif_port {
	struct port base;
	struct memif_conn *conn; /* atomic; NULL = link down */
	struct memif_offer offer;
	char address[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "@name" is abstract */
	uint64_t wait_ns; /* how long start waits for a peer */
	pthread_mutex_t lock;
	struct rt_event *up; /* signalled when the link comes up */
	bool shut;
	uint64_t connects, disconnects; /* atomic */
	char why[MEMIF_REASON_BYTES];   /* why there is no link; under lock */
	/* The control side's, under the hub's lock. */
	struct memif_hub *hub;
	struct memif_peer *peer;
	struct memif_port *next;
};

/* Where a frame of one descriptor lies. */
struct memif_source {
	const uint8_t *from;
	uint32_t len;
};

struct memif_rxq {
	struct port_rxq base;
	struct memif_conn *conn; /* that it works with; NULL = none */
	struct memif_ring *ring; /* NULL = the peer gave this queue no ring */
	uint32_t size, mask;
	uint16_t next; /* descriptor to be read next */
	uint16_t seen; /* the peer's index when it was last read and checked */
	uint16_t fill; /* client: empty buffers are put up to here */
	uint16_t end;  /* once withdrawn: there are no more frames from here on */
	bool withdrawn;
	bool broken;     /* indices were impossible: the ring is not looked at any more */
	bool flushes;    /* lines that were read go out of the caches: memif_copy.h */
	uint8_t *area;   /* client, copying: buffer of descriptor 0 */
	uint32_t stride; /* client, copying: to the next buffer */
	uint32_t *bufs;  /* client, zero copy: the arena buffer of each descriptor */
	/* Copying: frames from q->next on that were checked and are being fetched: plan[at..end).
	 */
	struct memif_source plan[PK_BURST];
	unsigned plan_at, plan_end;
	int epfd;               /* readable when the peer or the control task signals */
	int kick_fd;            /* the control task's */
	struct rt_event *event; /* of epfd */
};

/* Client: what was sent up to and including a descriptor, to count it when the peer has it. */
struct memif_sent {
	uint32_t frames;
	uint32_t bytes;
};

struct memif_txq {
	struct port_txq base;
	struct memif_conn *conn;
	struct memif_ring *ring;
	uint32_t size, mask;
	uint16_t next;   /* descriptor to be written next */
	uint16_t done;   /* client: descriptors before this one have been consumed by the peer */
	uint16_t limit;  /* server: there are empty buffers up to here */
	uint16_t widest; /* server: most empty buffers ever seen */
	bool broken;
	bool flushes; /* the CPU can */
	int event_fd;
	struct memif_tune tune;
	struct memif_sent total;     /* client: of all accepted on this connection */
	struct memif_sent completed; /* client: of these, counted */
	struct memif_sent *sent;     /* client: per descriptor */
	uint32_t *where; /* client: per descriptor the arena buffer, or the offset in the area */
	uint8_t *area;   /* client, copying: where frames lie, one behind the other */
	uint32_t area_offset; /* of it in region 0 */
	uint32_t stride;
	uint32_t at; /* client, copying: next free byte of the area */
};

/* A connection that no queue and no control task uses any more is freed. */
struct memif_conn *memif_conn_hold(struct memif_port *port);
void memif_conn_release(struct memif_port *port, struct memif_conn *conn);

/* Why there is no link, "" if there is one or nothing was tried yet. */
void memif_why(struct memif_port *port, char out[MEMIF_REASON_BYTES]);

/* The control side. memif_ctrl_join makes or joins the listener, or begins to connect; leave
 * disconnects, saying `why` to the peer. */
int memif_ctrl_join(struct memif_port *port, struct ho_err *err);
void memif_ctrl_leave(struct memif_port *port, const char *why);
/* A queue found the connection's shared memory inconsistent: the control task will close it. */
void memif_ctrl_broken(struct memif_port *port, struct memif_conn *conn);

/* Packets. The detach functions account for everything and hand all buffers to the queue's cache;
 * `why` names the loss of what was in flight. */
int memif_rxq_init(struct memif_rxq *q, struct rt *rt, struct ho_err *err);
void memif_rxq_free(struct memif_rxq *q, struct rt *rt);
/* Frames that were not yet received are counted as rx_closed. */
void memif_rxq_detach(struct memif_rxq *q);
void memif_rxq_kick(struct memif_rxq *q);
unsigned memif_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n);
struct rt_event *memif_rx_event(struct port_rxq *base);
bool memif_arm(struct port_rxq *base);
void memif_disarm(struct port_rxq *base);

void memif_txq_detach(struct memif_txq *q, enum port_drop why);
/* Server: has the client taken what was sent, as far as can be seen? */
bool memif_txq_taken(struct memif_txq *q);
unsigned memif_tx(struct port_txq *base, struct pk_slot *slots, unsigned n);
unsigned memif_tx_reap(struct port_txq *base);

static inline struct memif_port *memif_port_of(struct port *port)
{
	return HO_CONTAINER_OF(port, struct memif_port, base);
}

#endif
