// SPDX-License-Identifier: BSD-2-Clause
/* The rtnetlink parser on any bytes: a row of messages as a socket would give them. */
#include <libmnl/libmnl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "linux/rtnl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_ip(const struct lx_ip *ip)
{
	must(!ip->family || lx_family_bytes(ip->family));
}

static void check(const struct lx_rtnl *m)
{
	switch (m->kind) {
	case LX_LINK:
		must(m->link.index && memchr(m->link.name, 0, sizeof(m->link.name)) &&
		     memchr(m->link.kind, 0, sizeof(m->link.kind)));
		break;
	case LX_ADDR:
		must(m->addr.addr.family &&
		     m->addr.len <= 8 * lx_family_bytes(m->addr.addr.family));
		break;
	case LX_ROUTE:
		must(m->route.dst.family == m->route.family && m->route.hops <= LX_HOPS_MAX);
		must(m->route.len <= 8 * lx_family_bytes(m->route.family));
		for (unsigned i = 0; i < m->route.hops; i++) {
			must(m->route.hop[i].weight > 0);
			check_ip(&m->route.hop[i].via);
		}
		check_ip(&m->route.prefsrc);
		break;
	case LX_NEXTHOP:
		must(m->nexthop.id && m->nexthop.members <= LX_HOPS_MAX);
		for (unsigned i = 0; i < m->nexthop.members; i++)
			must(m->nexthop.member[i].weight > 0);
		check_ip(&m->nexthop.hop.via);
		break;
	case LX_NEIGH:
		must(m->neigh.addr.family);
		break;
	case LX_RULE:
		must(lx_family_bytes(m->rule.family));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct lx_rtnl message;
	char *copy;
	const struct nlmsghdr *nlh;
	size_t left = bytes;

	if (!bytes)
		return 0;
	/* Of exactly that size, and aligned. */
	copy = malloc(bytes);
	memcpy(copy, data, bytes);
	nlh = (const struct nlmsghdr *)copy;
	for (; lx_nlmsg_whole(nlh, left); nlh = lx_nlmsg_next(nlh, &left)) {
		if (lx_rtnl_parse(nlh, &message) > 0)
			check(&message);
	}
	free(copy);
	return 0;
}
