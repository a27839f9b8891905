// SPDX-License-Identifier: BSD-2-Clause
#include "linux/nlsock.h"

#include <errno.h>
#include <stdint.h>

static int socket_failed(struct ho_err *err, const char *what)
{
	int code = -errno;

	return ho_err_set(err, code, "netlink: %s: %s", what, ho_strerror(code));
}

int lx_netlink_ask(int family, struct nlmsghdr *request, mnl_cb_t on_message, void *arg,
		   struct ho_err *err)
{
	/* The kernel sizes dump messages by the buffer of the first receive call. */
	union {
		char bytes[32768];
		struct nlmsghdr align;
	} answer;
	struct mnl_socket *nl = mnl_socket_open2(family, SOCK_CLOEXEC);
	const unsigned seq = 1;
	unsigned port_id;
	int rc;

	if (!nl)
		return socket_failed(err, "cannot open a socket");
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
		rc = socket_failed(err, "cannot bind a socket");
		goto close;
	}
	port_id = mnl_socket_get_portid(nl);
	request->nlmsg_flags |= NLM_F_REQUEST;
	if (!(request->nlmsg_flags & NLM_F_DUMP))
		request->nlmsg_flags |= NLM_F_ACK;
	request->nlmsg_seq = seq;
	if (mnl_socket_sendto(nl, request, request->nlmsg_len) < 0) {
		rc = socket_failed(err, "cannot send");
		goto close;
	}
	for (;;) {
		ssize_t n = mnl_socket_recvfrom(nl, answer.bytes, sizeof(answer.bytes));

		if (n < 0) {
			rc = socket_failed(err, "cannot receive");
			break;
		}
		rc = mnl_cb_run(answer.bytes, (size_t)n, seq, port_id, on_message, arg);
		if (rc < 0)
			rc = -errno;
		if (rc <= MNL_CB_STOP)
			break;
	}
close:
	mnl_socket_close(nl);
	return rc;
}
