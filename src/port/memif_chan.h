/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The conversation of memif's control channel as a state machine without a socket: a message in,
 * at most one message out. memif_ctrl.c moves the messages; tests and fuzzers call it directly.
 */
#ifndef HOLDOFF_PORT_MEMIF_CHAN_H
#define HOLDOFF_PORT_MEMIF_CHAN_H

#include "port/memif_conn.h"

enum memif_chan_state {
	MEMIF_WAIT_HELLO,     /* client: connected to the socket */
	MEMIF_WAIT_ACK,       /* client: `step` messages were acknowledged */
	MEMIF_WAIT_CONNECTED, /* client: CONNECT is sent */
	MEMIF_WAIT_INIT,      /* server: HELLO is sent */
	MEMIF_WAIT_CONNECT,   /* server: regions and rings come in */
	MEMIF_UP,
	MEMIF_CLOSED,
};

struct memif_chan {
	enum memif_chan_state state;
	const struct memif_offer *offer; /* server: NULL until INIT named it */
	struct memif_conn *conn;         /* being built, then in use; the channel's reference */
	unsigned step;
	unsigned rings, log2;         /* client: what will be provided */
	char why[MEMIF_REASON_BYTES]; /* why it closed, "" before */
	bool by_peer;                 /* the peer said so: it needs no DISCONNECT */
	char peer[MEMIF_NAME_BYTES + 1];
	/*
	 * Server: the interface with that id. Returns NULL and says in *why what is wrong: none
	 * such, or in use.
	 */
	const struct memif_offer *(*find)(void *arg, uint32_t id, const char **why);
	void *arg;
};

/* A message to be sent after an input. */
struct memif_out {
	bool pending;
	int fd; /* to go along, -1 = none; stays the connection's */
	struct memif_msg msg;
};

/* The client's end of a new channel, and the server's; the server's first message is in *out. */
void memif_chan_client(struct memif_chan *chan, const struct memif_offer *offer);
void memif_chan_server(struct memif_chan *chan,
		       const struct memif_offer *(*find)(void *arg, uint32_t id, const char **why),
		       void *arg, unsigned log2_max, struct memif_out *out);

/*
 * Handles one message with the descriptor that came along (-1 = none; taken over). The state says
 * what came of it: MEMIF_UP for the first time = the link is up, MEMIF_CLOSED = close it; then *out
 * may hold a DISCONNECT.
 */
void memif_chan_input(struct memif_chan *chan, const struct memif_msg *msg, int fd,
		      struct memif_out *out);

/* Closes it for a reason of ours; *out is the DISCONNECT. */
void memif_chan_close(struct memif_chan *chan, const char *why, struct memif_out *out);

#endif
