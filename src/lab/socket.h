/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's way to the network through a host's protocol stack: a socket over a modelled chip,
 * with the prices of stack, system calls and copies. To the program it is a port of one receive and
 * one transmit queue, so the engine's generator, receiver and request/response run over it
 * unchanged, as over a packet socket.
 *
 *   chip -> rx-mode -> lab_socket_deliver -> queue of `limit` frames -> port_rx   (program's CPU)
 *                      stack_rx; full: rx_socket     system call, copy
 *   chip <- ring <- seat of a share <------------------------------ port_tx: system call,
 *                                                                   stack_tx, copy
 */
#ifndef HOLDOFF_LAB_SOCKET_H
#define HOLDOFF_LAB_SOCKET_H

#include "mac/txshare.h"
#include "port/port.h"

#define LAB_SOCKET_LIMIT 256 /* frames that wait, if nothing else is said */

struct lab_socket;

/* The share is that of the transmit queue that it sends on; `cleans` as for mac_txshare_seat. */
int lab_socket_create(struct rt *rt, struct pk_arena *arena, struct port *chip,
		      struct mac_txshare *share, bool cleans, uint32_t limit,
		      struct lab_socket **out, struct ho_err *err);
/* What still waits in it is dropped as rx_closed; nobody uses it any more. */
void lab_socket_close(struct lab_socket *socket);
/* Closes as well. NULL is allowed. */
void lab_socket_destroy(struct lab_socket *socket);

/* For an rx-mode's consume function; the socket owns the buffers afterwards. */
void lab_socket_deliver(struct lab_socket *socket, struct pk_cache *cache, struct pk_slot *slots,
			unsigned n);

struct port_rxq *lab_socket_rxq(struct lab_socket *socket);
struct port_txq *lab_socket_txq(struct lab_socket *socket);
/* The program's cache: where it frees what it received and takes what it sends. */
struct pk_cache *lab_socket_cache(struct lab_socket *socket);
/* The program has ended: it waits for no turn on the transmit queue. */
void lab_socket_leave(struct lab_socket *socket);

/* Frames that the stack gave to it, all in all, and those lost because it was full. */
uint64_t lab_socket_delivered(const struct lab_socket *socket);
uint64_t lab_socket_dropped(const struct lab_socket *socket);
/* 0 when delivered = received + dropped + still waiting. */
int64_t lab_socket_missing(const struct lab_socket *socket);

#endif
