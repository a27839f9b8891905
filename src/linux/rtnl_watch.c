// SPDX-License-Identifier: BSD-2-Clause
#include "linux/rtnl_watch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/compiler.h"

#ifndef NETLINK_GET_STRICT_CHK
#define NETLINK_GET_STRICT_CHK 12 /* 4.20 */
#endif

/* A route's message takes about 1 KB of it: room for what comes while a dump is read. */
#define RCVBUF_BYTES (64 << 20)
#define READ_BATCH   32
/* Events are smaller than a page; only a link with hundreds of virtual functions is larger. */
#define EVENT_BYTES 16384
#define DUMP_BYTES  (256 << 10)
/* A dump during which the tables changed is repeated so often. */
#define DUMP_TRIES 6

struct lx_watch {
	int event_fd, dump_fd, ask_fd;
	lx_watch_fn fn;
	void *arg;
	uint32_t seq;
	struct lx_watch_stats stats;
	struct lx_rtnl message;
	struct mmsghdr msg[READ_BATCH];
	struct iovec iov[READ_BATCH];
	struct sockaddr_nl from[READ_BATCH];
	uint8_t *events; /* READ_BATCH x EVENT_BYTES */
	uint8_t *dump;   /* DUMP_BYTES */
};

static int nl_socket(struct ho_err *err)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	int one = 1, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), rc;

	if (fd < 0)
		return ho_err_set(err, -errno, "netlink: cannot open a socket: %s",
				  ho_strerror(errno));
	if (bind(fd, (struct sockaddr *)&self, sizeof(self)) < 0) {
		rc = ho_err_set(err, -errno, "netlink: cannot bind a socket: %s",
				ho_strerror(errno));
		close(fd);
		return rc;
	}
	/* Without strict checking a dump of one table is one of all tables. */
	setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	return fd;
}

static int subscribe(int fd, struct ho_err *err)
{
	static const int groups[] = {
		RTNLGRP_LINK,       RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_RULE,  RTNLGRP_IPV6_RULE,   RTNLGRP_NEXTHOP,
		RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,  RTNLGRP_NEIGH,
	};
	int bytes = RCVBUF_BYTES;

	/* Beyond the system's limit if we may. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	for (unsigned i = 0; i < HO_ARRAY_LEN(groups); i++) {
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])) == 0)
			continue;
		/* A kernel before 5.3 has no next hop objects. */
		if (groups[i] == RTNLGRP_NEXTHOP)
			continue;
		return ho_err_set(err, -errno, "netlink: cannot follow group %d: %s", groups[i],
				  ho_strerror(errno));
	}
	return 0;
}

int lx_watch_open(lx_watch_fn fn, void *arg, struct lx_watch **out, struct ho_err *err)
{
	struct lx_watch *w = calloc(1, sizeof(*w));
	int rc = 0;

	if (!w)
		return ho_err_set(err, -ENOMEM, "out of memory for following the kernel's tables");
	w->event_fd = w->dump_fd = w->ask_fd = -1;
	w->fn = fn;
	w->arg = arg;
	w->events = malloc((size_t)READ_BATCH * EVENT_BYTES);
	w->dump = malloc(DUMP_BYTES);
	if (!w->events || !w->dump) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for following the kernel's tables");
		goto fail;
	}
	for (unsigned i = 0; i < READ_BATCH; i++)
		w->iov[i] = (struct iovec){ w->events + (size_t)i * EVENT_BYTES, EVENT_BYTES };
	int *const fds[] = { &w->event_fd, &w->dump_fd, &w->ask_fd };
	for (unsigned i = 0; rc == 0 && i < HO_ARRAY_LEN(fds); i++) {
		*fds[i] = nl_socket(err);
		rc = HO_MIN(*fds[i], 0);
	}
	if (rc == 0)
		rc = subscribe(w->event_fd, err);
	if (rc < 0)
		goto fail;
	*out = w;
	return 0;
fail:
	lx_watch_close(w);
	return rc;
}

void lx_watch_close(struct lx_watch *w)
{
	if (!w)
		return;
	if (w->event_fd >= 0)
		close(w->event_fd);
	if (w->dump_fd >= 0)
		close(w->dump_fd);
	if (w->ask_fd >= 0)
		close(w->ask_fd);
	free(w->events);
	free(w->dump);
	free(w);
}

int lx_watch_fd(const struct lx_watch *w)
{
	return w->event_fd;
}

void lx_watch_read_stats(const struct lx_watch *w, struct lx_watch_stats *out)
{
	*out = w->stats;
}

static void deliver(struct lx_watch *w, const struct nlmsghdr *nlh)
{
	int rc = lx_rtnl_parse(nlh, &w->message);

	if (rc > 0)
		w->fn(w->arg, &w->message);
	else if (rc < 0)
		w->stats.broken++;
}

/* --- dumps ---------------------------------------------------------------------------------- */

/* One question: a kind of object, a family, perhaps a table. */
struct question {
	unsigned kind; /* enum lx_dump */
	uint16_t type; /* RTM_GET... */
	uint8_t family;
	uint8_t table;
	bool optional; /* not in every kernel, or not in every namespace */
};

static const struct question questions[] = {
	{ LX_DUMP_LINKS, RTM_GETLINK, AF_UNSPEC, 0, false },
	{ LX_DUMP_ADDRS, RTM_GETADDR, AF_INET, 0, false },
	{ LX_DUMP_ADDRS, RTM_GETADDR, AF_INET6, 0, true },
	{ LX_DUMP_RULES, RTM_GETRULE, AF_INET, 0, true },
	{ LX_DUMP_RULES, RTM_GETRULE, AF_INET6, 0, true },
	{ LX_DUMP_NEXTHOPS, RTM_GETNEXTHOP, AF_UNSPEC, 0, true },
	{ LX_DUMP_ROUTES, RTM_GETROUTE, AF_INET, LX_TABLE_LOCAL, true },
	{ LX_DUMP_ROUTES, RTM_GETROUTE, AF_INET, LX_TABLE_MAIN, true },
	{ LX_DUMP_ROUTES, RTM_GETROUTE, AF_INET6, LX_TABLE_LOCAL, true },
	{ LX_DUMP_ROUTES, RTM_GETROUTE, AF_INET6, LX_TABLE_MAIN, true },
	{ LX_DUMP_NEIGHS, RTM_GETNEIGH, AF_INET, 0, false },
	{ LX_DUMP_NEIGHS, RTM_GETNEIGH, AF_INET6, 0, true },
};

/* The fixed part of each request is the one of its answers. */
static size_t header_bytes(uint16_t type)
{
	switch (type) {
	case RTM_GETLINK:
		return sizeof(struct ifinfomsg);
	case RTM_GETADDR:
		return sizeof(struct ifaddrmsg);
	case RTM_GETRULE:
		return sizeof(struct fib_rule_hdr);
	case RTM_GETNEXTHOP:
		return sizeof(struct nhmsg);
	case RTM_GETROUTE:
		return sizeof(struct rtmsg);
	default:
		return sizeof(struct ndmsg);
	}
}

static int send_to_kernel(int fd, const struct nlmsghdr *nlh)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	return sendto(fd, nlh, nlh->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0
		       ? -errno
		       : 0;
}

static int ask(struct lx_watch *w, const struct question *q)
{
	union {
		struct nlmsghdr nlh;
		uint8_t room[256];
	} request = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(&request);
	uint8_t *header;

	nlh->nlmsg_type = q->type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = ++w->seq;
	header = mnl_nlmsg_put_extra_header(nlh, header_bytes(q->type));
	header[0] = q->family; /* the first member of all of them */
	if (q->type == RTM_GETROUTE)
		((struct rtmsg *)header)->rtm_table = q->table;
	return send_to_kernel(w->dump_fd, nlh);
}

/* Reads the answer to its end. 1: whole; 0: the kernel says that it changed meanwhile. */
static int read_dump(struct lx_watch *w)
{
	bool changed = false;

	for (;;) {
		struct sockaddr_nl from;
		struct iovec iov = { w->dump, DUMP_BYTES };
		struct msghdr msg = { .msg_name = &from,
				      .msg_namelen = sizeof(from),
				      .msg_iov = &iov,
				      .msg_iovlen = 1 };
		ssize_t got = recvmsg(w->dump_fd, &msg, 0);
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)w->dump;
		size_t left;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (from.nl_pid != 0)
			continue;
		left = (size_t)got;
		for (; lx_nlmsg_whole(nlh, left); nlh = lx_nlmsg_next(nlh, &left)) {
			if (nlh->nlmsg_seq != w->seq)
				continue; /* the rest of one that was given up */
			changed = changed || (nlh->nlmsg_flags & NLM_F_DUMP_INTR);
			if (nlh->nlmsg_type == NLMSG_ERROR || nlh->nlmsg_type == NLMSG_DONE) {
				int code = 0;

				/* Both begin with an errno; that of DONE came with 4.13. */
				if (nlh->nlmsg_len >= MNL_NLMSG_HDRLEN + sizeof(code))
					memcpy(&code, mnl_nlmsg_get_payload(nlh), sizeof(code));
				if (code < 0)
					return code;
				return !changed;
			}
			w->stats.dumped++;
			deliver(w, nlh);
		}
	}
}

int lx_watch_dump(struct lx_watch *w, unsigned kinds, struct ho_err *err)
{
	bool whole = true;

	for (unsigned i = 0; i < HO_ARRAY_LEN(questions); i++) {
		const struct question *q = &questions[i];
		int rc = 0;

		if (!(kinds & q->kind))
			continue;
		for (unsigned tries = 0; rc == 0 && tries < DUMP_TRIES; tries++) {
			w->stats.dumps++;
			rc = ask(w, q);
			if (rc == 0)
				rc = read_dump(w);
		}
		if (rc == 0)
			whole = false;
		/* No such table yet (ENOENT), no such protocol in this kernel. */
		if (rc < 0 && !q->optional)
			return ho_err_set(err, rc, "the kernel does not show its tables: %s",
					  ho_strerror(rc));
	}
	return whole ? 0 : -EAGAIN;
}

/* --- events --------------------------------------------------------------------------------- */

static int receive(struct lx_watch *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		w->msg[i].msg_hdr = (struct msghdr){ .msg_name = &w->from[i],
						     .msg_namelen = sizeof(w->from[i]),
						     .msg_iov = &w->iov[i],
						     .msg_iovlen = 1 };
	return recvmmsg(w->event_fd, w->msg, n, MSG_DONTWAIT, NULL);
}

void lx_watch_discard(struct lx_watch *w)
{
	for (;;) {
		int got = receive(w, READ_BATCH);

		if (got > 0)
			continue;
		/* An overrun is told once; behind it messages may wait. */
		if (got < 0 && (errno == ENOBUFS || errno == EINTR))
			continue;
		return;
	}
}

int lx_watch_read(struct lx_watch *w, unsigned limit, struct ho_err *err)
{
	unsigned done = 0;

	while (done < limit) {
		int got = receive(w, HO_MIN(limit - done, (unsigned)READ_BATCH));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (got < 0 && errno == ENOBUFS) {
			w->stats.overruns++;
			return -ENOBUFS;
		}
		if (got <= 0)
			return ho_err_set(err, got < 0 ? -errno : -EIO,
					  "netlink: cannot receive: %s",
					  ho_strerror(got < 0 ? errno : EIO));
		for (int i = 0; i < got; i++) {
			const struct nlmsghdr *nlh = w->iov[i].iov_base;
			size_t left = w->msg[i].msg_len;

			if (w->from[i].nl_pid != 0)
				continue;
			if (w->msg[i].msg_hdr.msg_flags & MSG_TRUNC) {
				/* As good as lost. */
				w->stats.overruns++;
				return -ENOBUFS;
			}
			for (; lx_nlmsg_whole(nlh, left); nlh = lx_nlmsg_next(nlh, &left)) {
				w->stats.messages++;
				deliver(w, nlh);
			}
		}
		done += (unsigned)got;
	}
	return (int)done;
}

/* --- neighbours ----------------------------------------------------------------------------- */

/* What the kernel had against the last request; it answers before sendto returns. */
static int read_refusal(int fd)
{
	union {
		struct nlmsghdr nlh;
		uint8_t room[4096];
	} answer;
	int rc = 0;

	for (;;) {
		ssize_t got = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < (ssize_t)(MNL_NLMSG_HDRLEN + sizeof(int)))
			return rc;
		if (answer.nlh.nlmsg_type == NLMSG_ERROR)
			memcpy(&rc, mnl_nlmsg_get_payload(&answer.nlh), sizeof(rc));
	}
}

int lx_watch_use_neigh(struct lx_watch *w, uint32_t index, const struct lx_ip *addr)
{
	union {
		struct nlmsghdr nlh;
		uint8_t room[256];
	} request = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(&request);
	struct ndmsg *ndm;
	int rc;

	nlh->nlmsg_type = RTM_NEWNEIGH;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE;
	nlh->nlmsg_seq = ++w->seq;
	ndm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ndm));
	ndm->ndm_family = addr->family;
	ndm->ndm_ifindex = (int)index;
	ndm->ndm_flags = NTF_USE;
	mnl_attr_put(nlh, NDA_DST, lx_family_bytes(addr->family), addr->byte);
	rc = send_to_kernel(w->ask_fd, nlh);
	return rc < 0 ? rc : read_refusal(w->ask_fd);
}
