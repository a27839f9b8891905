/* SPDX-License-Identifier: BSD-2-Clause */
/* One question to the kernel over a netlink socket, and its answers (libmnl). */
#ifndef HOLDOFF_LINUX_NLSOCK_H
#define HOLDOFF_LINUX_NLSOCK_H

#include <libmnl/libmnl.h>
#include <stddef.h>

#include "base/error.h"

/* Room for a request; answers use MNL_SOCKET_BUFFER_SIZE, which holds any message. */
#define LX_NL_REQUEST_BYTES 1024

/*
 * Sends the request to a netlink family (NETLINK_ROUTE, NETLINK_GENERIC, ...) on a socket of its
 * own, calls on_message for each message of the answer, and returns 0 when the answer is complete.
 * NLM_F_REQUEST and a sequence number are added; NLM_F_DUMP in nlmsg_flags asks for all objects,
 * otherwise the kernel's acknowledgement is awaited. on_message returns MNL_CB_OK or MNL_CB_ERROR
 * with errno set. Negative errno of the kernel's refusal; err is set for failures of the socket
 * only, since what a refusal means depends on the question. on_message may be NULL.
 */
int lx_netlink_ask(int family, struct nlmsghdr *request, mnl_cb_t on_message, void *arg,
		   struct ho_err *err);

/*
 * The same, and what the kernel says beside an error or a success (its extended acknowledgement,
 * "requested ring size exceeds maximum"), for a reader: put into `says`, "" when it says nothing.
 */
int lx_netlink_ask_why(int family, struct nlmsghdr *request, mnl_cb_t on_message, void *arg,
		       char *says, size_t bytes, struct ho_err *err);

#endif
