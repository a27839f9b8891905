// SPDX-License-Identifier: BSD-2-Clause
#include "linux/nlsock.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

static int socket_failed(struct ho_err *err, const char *what)
{
	int code = -errno;

	return ho_err_set(err, code, "netlink: %s: %s", what, ho_strerror(code));
}

struct ask {
	mnl_cb_t on_message;
	void *arg;
	char *says;
	size_t bytes;
};

static int on_data(const struct nlmsghdr *msg, void *arg)
{
	struct ask *ask = arg;

	return ask->on_message ? ask->on_message(msg, ask->arg) : MNL_CB_OK;
}

/* The text among the attributes that begin at `skip` of a control message. */
static void take_text(const struct nlmsghdr *msg, size_t skip, struct ask *ask)
{
	const struct nlattr *attr;

	if (!ask->says || !(msg->nlmsg_flags & NLM_F_ACK_TLVS) ||
	    mnl_nlmsg_get_payload_len(msg) < skip)
		return;
	mnl_attr_for_each(attr, msg, skip)
	{
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG)
			snprintf(ask->says, ask->bytes, "%.*s", (int)mnl_attr_get_payload_len(attr),
				 mnl_attr_get_str(attr));
	}
}

static int on_error(const struct nlmsghdr *msg, void *arg)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(msg);
	size_t skip = sizeof(*e);

	if (mnl_nlmsg_get_payload_len(msg) < sizeof(*e)) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	/* The request follows, unless it is cut off. */
	if (!(msg->nlmsg_flags & NLM_F_CAPPED) && e->msg.nlmsg_len >= sizeof(e->msg))
		skip += MNL_ALIGN(e->msg.nlmsg_len) - sizeof(e->msg);
	take_text(msg, skip, arg);
	errno = e->error < 0 ? -e->error : e->error;
	return e->error == 0 ? MNL_CB_STOP : MNL_CB_ERROR;
}

/* The end of a dump carries its error. */
static int on_done(const struct nlmsghdr *msg, void *arg)
{
	int code = 0;

	if (mnl_nlmsg_get_payload_len(msg) >= sizeof(code))
		memcpy(&code, mnl_nlmsg_get_payload(msg), sizeof(code));
	take_text(msg, MNL_ALIGN(sizeof(code)), arg);
	if (code >= 0)
		return MNL_CB_STOP;
	errno = -code;
	return MNL_CB_ERROR;
}

int lx_netlink_ask(int family, struct nlmsghdr *request, mnl_cb_t on_message, void *arg,
		   struct ho_err *err)
{
	return lx_netlink_ask_why(family, request, on_message, arg, NULL, 0, err);
}

int lx_netlink_ask_why(int family, struct nlmsghdr *request, mnl_cb_t on_message, void *arg,
		       char *says, size_t bytes, struct ho_err *err)
{
	struct ask ask = { on_message, arg, says, bytes };
	mnl_cb_t on_control[] = { [NLMSG_ERROR] = on_error, [NLMSG_DONE] = on_done };
	int on = 1;
	/* The kernel sizes dump messages by the buffer of the first receive call. */
	union {
		char bytes[32768];
		struct nlmsghdr align;
	} answer;
	struct mnl_socket *nl = mnl_socket_open2(family, SOCK_CLOEXEC);
	const unsigned seq = 1;
	unsigned port_id;
	int rc;

	if (says && bytes)
		says[0] = '\0';
	if (!nl)
		return socket_failed(err, "cannot open a socket");
	/* Kernels before 4.12 have no such text: then there is none. */
	if (says)
		mnl_socket_setsockopt(nl, NETLINK_EXT_ACK, &on, sizeof(on));
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
		rc = mnl_cb_run2(answer.bytes, (size_t)n, seq, port_id, on_data, &ask, on_control,
				 HO_ARRAY_LEN(on_control));
		if (rc < 0)
			rc = -errno;
		if (rc <= MNL_CB_STOP)
			break;
	}
close:
	mnl_socket_close(nl);
	return rc;
}
