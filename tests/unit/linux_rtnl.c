// SPDX-License-Identifier: BSD-2-Clause
/* rtnetlink messages as the kernel builds them, and as it would never build them. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <libmnl/libmnl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "linux/rtnl.h"
#include "linux/rtnl_watch.h"

static union {
	struct nlmsghdr nlh;
	char room[8192];
} buf;

static void *begin(uint16_t type, size_t header)
{
	struct nlmsghdr *nlh;

	memset(&buf, 0, sizeof(buf));
	nlh = mnl_nlmsg_put_header(&buf);
	nlh->nlmsg_type = type;
	return mnl_nlmsg_put_extra_header(nlh, header);
}

static void put_ip(uint16_t type, const char *text)
{
	uint8_t byte[16];
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;

	assert_int_equal(inet_pton(family, text, byte), 1);
	mnl_attr_put(&buf.nlh, type, family == AF_INET ? 4 : 16, byte);
}

static struct lx_rtnl m;

static void must_parse(enum lx_rtnl_kind kind)
{
	memset(&m, 0x5a, sizeof(m));
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), 1);
	assert_int_equal(m.kind, kind);
}

static void assert_ip(const struct lx_ip *ip, const char *text)
{
	char got[64];

	assert_string_equal(lx_ip_text(ip, got, sizeof(got)), text);
}

static void put_link(uint16_t type, int index, unsigned flags)
{
	struct ifinfomsg *ifi = begin(type, sizeof(*ifi));

	ifi->ifi_index = index;
	ifi->ifi_flags = flags;
	mnl_attr_put_strz(&buf.nlh, IFLA_IFNAME, "eth1.100");
	mnl_attr_put_u32(&buf.nlh, IFLA_MTU, 1496);
	mnl_attr_put(&buf.nlh, IFLA_ADDRESS, 6, "\x02\x00\x00\x00\x00\x05");
}

static void put_vlan(uint16_t id, uint16_t protocol)
{
	struct nlattr *info = mnl_attr_nest_start(&buf.nlh, IFLA_LINKINFO), *data;

	mnl_attr_put_str(&buf.nlh, IFLA_INFO_KIND,
			 "vlan"); /* the kernel's ends with a zero, or not */
	data = mnl_attr_nest_start(&buf.nlh, IFLA_INFO_DATA);
	mnl_attr_put_u16(&buf.nlh, IFLA_VLAN_ID, id);
	mnl_attr_put_u16(&buf.nlh, IFLA_VLAN_PROTOCOL, htons(protocol));
	mnl_attr_nest_end(&buf.nlh, data);
	mnl_attr_nest_end(&buf.nlh, info);
}

static void test_link(void **state)
{
	put_link(RTM_NEWLINK, 7, IFF_UP | IFF_RUNNING);
	mnl_attr_put_u32(&buf.nlh, IFLA_LINK, 3);
	put_vlan(100, 0x8100);
	must_parse(LX_LINK);
	assert_false(m.gone);
	assert_int_equal(m.link.index, 7);
	assert_string_equal(m.link.name, "eth1.100");
	assert_string_equal(m.link.kind, "vlan");
	assert_int_equal(m.link.mtu, 1496);
	assert_int_equal(m.link.lower, 3);
	assert_int_equal(m.link.vlan, 100);
	assert_int_equal(m.link.vlan_protocol, 0x8100);
	assert_true(m.link.has_mac && m.link.mac[5] == 5);
	assert_true(m.link.up && m.link.carrier);
	assert_false(m.link.elsewhere);
	assert_int_equal(m.link.master, 0);

	put_link(RTM_DELLINK, 7, IFF_UP);
	mnl_attr_put_u32(&buf.nlh, IFLA_MASTER, 9);
	mnl_attr_put_u32(&buf.nlh, IFLA_LINK_NETNSID, 0);
	must_parse(LX_LINK);
	assert_true(m.gone && m.link.up && !m.link.carrier && m.link.elsewhere);
	assert_int_equal(m.link.master, 9);
	assert_string_equal(m.link.kind, "");

	/* The bridge's message about its port, and an interface that is not Ethernet. */
	put_link(RTM_NEWLINK, 7, IFF_UP);
	((struct ifinfomsg *)mnl_nlmsg_get_payload(&buf.nlh))->ifi_family = AF_BRIDGE;
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), 0);
	begin(RTM_NEWLINK, sizeof(struct ifinfomsg));
	((struct ifinfomsg *)mnl_nlmsg_get_payload(&buf.nlh))->ifi_index = 2;
	put_ip(IFLA_ADDRESS, "192.0.2.1");
	must_parse(LX_LINK);
	assert_false(m.link.has_mac);
}

static void test_addr(void **state)
{
	struct ifaddrmsg *ifa = begin(RTM_NEWADDR, sizeof(*ifa));

	ifa->ifa_family = AF_INET;
	ifa->ifa_prefixlen = 24;
	ifa->ifa_index = 3;
	put_ip(IFA_ADDRESS, "192.0.2.1");
	put_ip(IFA_LOCAL, "192.0.2.1");
	must_parse(LX_ADDR);
	assert_ip(&m.addr.addr, "192.0.2.1");
	assert_int_equal(m.addr.len, 24);
	assert_int_equal(m.addr.index, 3);
	assert_false(m.addr.peer || m.addr.tentative || m.gone);

	/* Point to point: the prefix is the peer's. */
	ifa = begin(RTM_DELADDR, sizeof(*ifa));
	ifa->ifa_family = AF_INET;
	ifa->ifa_prefixlen = 32;
	put_ip(IFA_ADDRESS, "192.0.2.2");
	put_ip(IFA_LOCAL, "192.0.2.1");
	must_parse(LX_ADDR);
	assert_ip(&m.addr.addr, "192.0.2.1");
	assert_true(m.addr.peer && m.gone);

	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t flags[] = { IFA_F_TENTATIVE,
						  IFA_F_TENTATIVE | IFA_F_OPTIMISTIC,
						  IFA_F_DADFAILED };

		ifa = begin(RTM_NEWADDR, sizeof(*ifa));
		ifa->ifa_family = AF_INET6;
		ifa->ifa_prefixlen = 64;
		put_ip(IFA_ADDRESS, "2001:db8::1");
		mnl_attr_put_u32(&buf.nlh, IFA_FLAGS, flags[i]);
		must_parse(LX_ADDR);
		assert_ip(&m.addr.addr, "2001:db8::1");
		assert_int_equal(m.addr.tentative, i != 1);
	}
}

static struct rtmsg *put_route(uint16_t type, uint8_t family, uint8_t len, const char *dst)
{
	struct rtmsg *rtm = begin(type, sizeof(*rtm));

	rtm->rtm_family = family;
	rtm->rtm_dst_len = len;
	rtm->rtm_table = LX_TABLE_MAIN;
	rtm->rtm_type = RTN_UNICAST;
	if (dst)
		put_ip(RTA_DST, dst);
	return rtm;
}

static void test_route(void **state)
{
	struct nlattr *metrics;

	put_route(RTM_NEWROUTE, AF_INET, 24, "198.51.100.0");
	buf.nlh.nlmsg_flags = NLM_F_REPLACE;
	mnl_attr_put_u32(&buf.nlh, RTA_TABLE, 254);
	put_ip(RTA_GATEWAY, "192.0.2.9");
	mnl_attr_put_u32(&buf.nlh, RTA_OIF, 4);
	mnl_attr_put_u32(&buf.nlh, RTA_PRIORITY, 100);
	put_ip(RTA_PREFSRC, "192.0.2.1");
	metrics = mnl_attr_nest_start(&buf.nlh, RTA_METRICS);
	mnl_attr_put_u32(&buf.nlh, RTAX_HOPLIMIT, 9);
	mnl_attr_put_u32(&buf.nlh, RTAX_MTU, 1400);
	mnl_attr_nest_end(&buf.nlh, metrics);
	must_parse(LX_ROUTE);
	assert_ip(&m.route.dst, "198.51.100.0");
	assert_int_equal(m.route.len, 24);
	assert_int_equal(m.route.kind, RTN_UNICAST);
	assert_int_equal(m.route.table, 254);
	assert_int_equal(m.route.metric, 100);
	assert_int_equal(m.route.mtu, 1400);
	assert_ip(&m.route.prefsrc, "192.0.2.1");
	assert_int_equal(m.route.hops, 1);
	assert_ip(&m.route.hop[0].via, "192.0.2.9");
	assert_int_equal(m.route.hop[0].index, 4);
	assert_int_equal(m.route.hop[0].weight, 1);
	assert_true(m.route.replaced && !m.route.appended && !m.route.cloned && !m.gone);

	/* The default route, and one by a next hop of the other family (RFC 8950). */
	put_route(RTM_DELROUTE, AF_INET6, 0, NULL);
	mnl_attr_put_u32(&buf.nlh, RTA_OIF, 4);
	put_ip(RTA_GATEWAY, "fe80::1");
	must_parse(LX_ROUTE);
	assert_ip(&m.route.dst, "::");
	assert_ip(&m.route.hop[0].via, "fe80::1");
	assert_true(m.gone);
	put_route(RTM_NEWROUTE, AF_INET, 8, "10.0.0.0");
	mnl_attr_put(&buf.nlh, RTA_VIA, 18, "\x0a\x00\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x07");
	mnl_attr_put_u32(&buf.nlh, RTA_OIF, 4);
	must_parse(LX_ROUTE);
	assert_ip(&m.route.hop[0].via, "fe80::7");

	/* One that a router advertised, with its preference (RFC 4191 2.1); 2 is reserved. */
	for (unsigned value = 0; value < 4; value++) {
		static const uint8_t rank[] = { 1, 0, 1, 2 };

		put_route(RTM_NEWROUTE, AF_INET6, 0, NULL)->rtm_protocol = RTPROT_RA;
		mnl_attr_put_u8(&buf.nlh, RTA_PREF, (uint8_t)value);
		must_parse(LX_ROUTE);
		assert_true(m.route.advertised);
		assert_int_equal(m.route.rank, rank[value]);
	}
	put_route(RTM_NEWROUTE, AF_INET6, 0, NULL);
	must_parse(LX_ROUTE);
	assert_true(!m.route.advertised);
	assert_int_equal(m.route.rank, 1);

	/* Without an interface there is no path. */
	put_route(RTM_NEWROUTE, AF_INET, 8, "10.0.0.0")->rtm_type = RTN_BLACKHOLE;
	must_parse(LX_ROUTE);
	assert_int_equal(m.route.hops, 0);
	assert_int_equal(m.route.kind, RTN_BLACKHOLE);
	/* One of a cache, one for a type of service, one with MPLS, one of another protocol. */
	put_route(RTM_NEWROUTE, AF_INET, 8, "10.0.0.0")->rtm_flags = RTM_F_CLONED;
	must_parse(LX_ROUTE);
	assert_true(m.route.cloned);
	put_route(RTM_NEWROUTE, AF_INET, 8, "10.0.0.0")->rtm_tos = 4;
	must_parse(LX_ROUTE);
	assert_true(m.route.selective);
	put_route(RTM_NEWROUTE, AF_INET, 8, "10.0.0.0");
	mnl_attr_put_u32(&buf.nlh, RTA_OIF, 4);
	mnl_attr_put_u32(&buf.nlh, RTA_ENCAP, 4);
	must_parse(LX_ROUTE);
	assert_true(m.route.hop[0].encapsulated);
	put_route(RTM_NEWROUTE, 128, 0, NULL);
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), 0);
}

/* Appends one struct rtnexthop with its gateway. */
static void put_path(unsigned index, uint8_t weight, const char *via)
{
	struct rtnexthop *nh = mnl_nlmsg_get_payload_tail(&buf.nlh);

	memset(nh, 0, sizeof(*nh));
	nh->rtnh_hops = (uint8_t)(weight - 1);
	nh->rtnh_ifindex = (int)index;
	buf.nlh.nlmsg_len += sizeof(*nh);
	if (via)
		put_ip(RTA_GATEWAY, via);
	nh->rtnh_len = (unsigned short)((char *)mnl_nlmsg_get_payload_tail(&buf.nlh) - (char *)nh);
}

static void test_multipath(void **state)
{
	struct nlattr *paths;

	put_route(RTM_NEWROUTE, AF_INET, 16, "10.1.0.0");
	paths = mnl_attr_nest_start(&buf.nlh, RTA_MULTIPATH);
	put_path(3, 1, "192.0.2.2");
	put_path(4, 200, "192.0.2.3");
	put_path(5, 10, NULL);
	mnl_attr_nest_end(&buf.nlh, paths);
	mnl_attr_put_u32(&buf.nlh, RTA_NH_ID, 77);
	must_parse(LX_ROUTE);
	assert_int_equal(m.route.hops, 3);
	assert_ip(&m.route.hop[0].via, "192.0.2.2");
	assert_int_equal(m.route.hop[1].weight, 200);
	assert_int_equal(m.route.hop[1].index, 4);
	assert_int_equal(m.route.hop[2].via.family, 0);
	assert_int_equal(m.route.nexthop, 77);
	assert_false(m.route.cut);

	put_route(RTM_NEWROUTE, AF_INET, 16, "10.1.0.0");
	paths = mnl_attr_nest_start(&buf.nlh, RTA_MULTIPATH);
	for (unsigned i = 0; i < LX_HOPS_MAX + 3; i++)
		put_path(i + 1, 1, "192.0.2.2");
	mnl_attr_nest_end(&buf.nlh, paths);
	must_parse(LX_ROUTE);
	assert_int_equal(m.route.hops, LX_HOPS_MAX);
	assert_true(m.route.cut);
}

static void test_nexthop(void **state)
{
	static const uint8_t group[] = { 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 1, 0, 0 };
	struct nhmsg *nhm = begin(RTM_NEWNEXTHOP, sizeof(*nhm));

	nhm->nh_family = AF_INET6;
	mnl_attr_put_u32(&buf.nlh, NHA_ID, 5);
	mnl_attr_put_u32(&buf.nlh, NHA_OIF, 3);
	put_ip(NHA_GATEWAY, "fe80::1");
	must_parse(LX_NEXTHOP);
	assert_int_equal(m.nexthop.id, 5);
	assert_int_equal(m.nexthop.hop.index, 3);
	assert_ip(&m.nexthop.hop.via, "fe80::1");
	assert_int_equal(m.nexthop.members, 0);
	assert_false(m.nexthop.blackhole);

	begin(RTM_DELNEXTHOP, sizeof(*nhm));
	mnl_attr_put_u32(&buf.nlh, NHA_ID, 6);
	mnl_attr_put(&buf.nlh, NHA_GROUP, sizeof(group), group);
	must_parse(LX_NEXTHOP);
	assert_true(m.gone);
	assert_int_equal(m.nexthop.members, 2);
	assert_int_equal(m.nexthop.member[0].id, 1);
	assert_int_equal(m.nexthop.member[0].weight, 1);
	assert_int_equal(m.nexthop.member[1].id, 2);
	assert_int_equal(m.nexthop.member[1].weight, 266);

	begin(RTM_NEWNEXTHOP, sizeof(*nhm));
	mnl_attr_put_u32(&buf.nlh, NHA_ID, 8);
	mnl_attr_put(&buf.nlh, NHA_BLACKHOLE, 0, "");
	must_parse(LX_NEXTHOP);
	assert_true(m.nexthop.blackhole);
	begin(RTM_NEWNEXTHOP, sizeof(*nhm));
	mnl_attr_put_u32(&buf.nlh, NHA_ID, 8);
	mnl_attr_put(&buf.nlh, NHA_FDB, 0, "");
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), 0);
	begin(RTM_NEWNEXTHOP, sizeof(*nhm));
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), -EBADMSG);
}

static void test_neigh(void **state)
{
	struct ndmsg *ndm = begin(RTM_NEWNEIGH, sizeof(*ndm));

	ndm->ndm_family = AF_INET;
	ndm->ndm_ifindex = 3;
	ndm->ndm_state = NUD_STALE;
	put_ip(NDA_DST, "192.0.2.9");
	mnl_attr_put(&buf.nlh, NDA_LLADDR, 6, "\x02\x00\x00\x00\x00\x09");
	must_parse(LX_NEIGH);
	assert_ip(&m.neigh.addr, "192.0.2.9");
	assert_int_equal(m.neigh.index, 3);
	assert_int_equal(m.neigh.state, NUD_STALE);
	assert_true(m.neigh.has_mac && m.neigh.mac[5] == 9 && !m.neigh.proxy);

	ndm = begin(RTM_NEWNEIGH, sizeof(*ndm));
	ndm->ndm_family = AF_INET6;
	ndm->ndm_flags = NTF_PROXY;
	put_ip(NDA_DST, "2001:db8::9");
	must_parse(LX_NEIGH);
	assert_true(m.neigh.proxy && !m.neigh.has_mac);
	ndm = begin(RTM_NEWNEIGH, sizeof(*ndm));
	ndm->ndm_family = AF_BRIDGE;
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), 0);
}

static void test_rule(void **state)
{
	static const struct {
		uint32_t priority, table;
		uint16_t more;
		bool standard;
	} cases[] = {
		{ 0, 255, 0, true },
		{ 32766, 254, 0, true },
		{ 32767, 253, 0, true },
		{ 100, 254, 0, false },
		{ 32766, 253, 0, false },
		{ 32766, 254, FRA_FWMARK, false },
		{ 32766, 254, FRA_IIFNAME, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fib_rule_hdr *rule = begin(RTM_NEWRULE, sizeof(*rule));

		rule->family = AF_INET;
		rule->action = FR_ACT_TO_TBL;
		mnl_attr_put_u32(&buf.nlh, FRA_TABLE, cases[i].table);
		mnl_attr_put_u32(&buf.nlh, FRA_SUPPRESS_PREFIXLEN, UINT32_MAX);
		mnl_attr_put_u8(&buf.nlh, FRA_PROTOCOL, 2);
		if (cases[i].priority)
			mnl_attr_put_u32(&buf.nlh, FRA_PRIORITY, cases[i].priority);
		if (cases[i].more)
			mnl_attr_put_u32(&buf.nlh, cases[i].more, 1);
		must_parse(LX_RULE);
		assert_int_equal(m.rule.standard, cases[i].standard);
	}
}

/* In memory of exactly its length, so that a read beyond it is seen. */
static int parse_alone(size_t bytes)
{
	struct nlmsghdr *copy = malloc(bytes);
	int rc;

	memcpy(copy, &buf, bytes);
	copy->nlmsg_len = (uint32_t)bytes;
	rc = lx_rtnl_parse(copy, &m);
	free(copy);
	return rc;
}

static void test_broken(void **state)
{
	struct nlattr *paths, *attr;
	struct rtmsg *rtm;
	uint32_t whole;

	/* Cut off at each length. Attributes are whole only where one ends. */
	put_route(RTM_NEWROUTE, AF_INET, 16, "10.1.0.0");
	paths = mnl_attr_nest_start(&buf.nlh, RTA_MULTIPATH);
	put_path(3, 1, "192.0.2.2");
	mnl_attr_nest_end(&buf.nlh, paths);
	whole = buf.nlh.nlmsg_len;
	for (uint32_t n = sizeof(struct nlmsghdr); n < whole; n++) {
		bool ends = n == MNL_NLMSG_HDRLEN + sizeof(*rtm) + 8;

		assert_int_equal(parse_alone(n), ends ? 1 : -EBADMSG);
		buf.nlh.nlmsg_len = whole;
	}
	assert_int_equal(parse_alone(whole), 1);
	buf.nlh.nlmsg_len = whole;

	/* A path that claims more than there is, or less than its own header. */
	for (unsigned len = 0; len < 100; len++) {
		struct rtnexthop *nh = mnl_attr_get_payload(paths);
		unsigned is = nh->rtnh_len;
		int rc;

		nh->rtnh_len = (unsigned short)len;
		rc = parse_alone(whole);
		/* At 8 its gateway is taken for a path of its own, which it could be. */
		assert_int_equal(rc, len == is || len == 8 ? 1 : -EBADMSG);
		nh->rtnh_len = (unsigned short)is;
	}
	/* Prefix too long, host bits, attributes of wrong lengths. */
	put_route(RTM_NEWROUTE, AF_INET, 33, NULL);
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), -EBADMSG);
	put_route(RTM_NEWROUTE, AF_INET, 15, "10.1.0.0");
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), -EBADMSG);
	put_route(RTM_NEWROUTE, AF_INET, 16, "2001::");
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), -EBADMSG);
	put_route(RTM_NEWROUTE, AF_INET, 16, "10.1.0.0");
	mnl_attr_put_u16(&buf.nlh, RTA_OIF, 1);
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), -EBADMSG);
	put_route(RTM_NEWROUTE, AF_INET, 16, "10.1.0.0");
	mnl_attr_put(&buf.nlh, RTA_VIA, 17, "\x0a\x00\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0");
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), -EBADMSG);
	put_route(RTM_NEWROUTE, AF_INET, 16, "10.1.0.0");
	attr = mnl_nlmsg_get_payload_tail(&buf.nlh);
	mnl_attr_put_u32(&buf.nlh, RTA_OIF, 1);
	attr->nla_len = 3;
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), -EBADMSG);
	/* Of another kind: not ours, whatever is in it. */
	buf.nlh.nlmsg_type = RTM_NEWQDISC;
	assert_int_equal(lx_rtnl_parse(&buf.nlh, &m), 0);
}

/* --- with a kernel -------------------------------------------------------------------------- */

struct seen {
	unsigned links, addrs, routes, gone, neighs, nexthops, rules;
	bool odd_rule, failed_neigh;
	struct lx_route last;
	struct lx_nexthop nexthop;
	uint32_t loopback;
};

static void on_message(void *arg, const struct lx_rtnl *msg)
{
	struct seen *s = arg;

	s->gone += msg->gone;
	switch (msg->kind) {
	case LX_LINK:
		s->links++;
		if (!strcmp(msg->link.name, "hov0"))
			s->loopback = msg->link.index;
		break;
	case LX_ADDR:
		s->addrs++;
		break;
	case LX_ROUTE:
		s->routes++;
		s->last = msg->route;
		break;
	case LX_NEIGH:
		s->neighs++;
		s->failed_neigh = s->failed_neigh || (msg->neigh.state & NUD_FAILED);
		break;
	case LX_NEXTHOP:
		s->nexthops++;
		s->nexthop = msg->nexthop;
		break;
	case LX_RULE:
		s->rules++;
		s->odd_rule = s->odd_rule || !msg->rule.standard;
		break;
	}
}

/* Reads until nothing comes for 100 ms. */
static int settle(struct lx_watch *w)
{
	struct pollfd pfd = { .fd = lx_watch_fd(w), .events = POLLIN };
	int sum = 0;

	while (poll(&pfd, 1, 100) > 0) {
		int rc = lx_watch_read(w, 1000, NULL);

		if (rc < 0)
			return rc;
		sum += rc;
	}
	return sum;
}

static int try_watch(void)
{
	struct ho_err err = { 0 };
	struct lx_watch_stats stats;
	struct seen seen = { 0 };
	struct lx_watch *w;
	struct lx_ip ip = { .family = AF_INET, .byte = { 192, 0, 2, 77 } };

	if (unshare(CLONE_NEWNET) < 0)
		return 77;
	/* IPv6 gives itself addresses, and routes to them, seconds after a link has come up. */
	if (system("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; "
		   "ip link set lo up && ip link add hov0 type veth peer name hov1 && "
		   "ip link set hov0 up && ip link set hov1 up && "
		   "ip addr add 192.0.2.1/24 dev hov0 && "
		   "ip route add 10.0.0.0/8 via 192.0.2.9 && "
		   "ip route add blackhole 10.9.0.0/16") != 0)
		return 77;
	if (lx_watch_open(on_message, &seen, &w, &err) < 0)
		return 1;
	if (lx_watch_dump(w, LX_DUMP_ALL, &err) < 0)
		return 2;
	if (seen.links < 3 || seen.addrs < 2 || seen.rules < 3 || seen.routes < 5 ||
	    seen.odd_rule || seen.gone || !seen.loopback)
		return 3;
	/* What changes from now on comes by itself. */
	settle(w);
	seen.routes = 0;
	if (system("ip route add 10.8.0.0/16 metric 5 mtu 1300 nexthop via 192.0.2.2 weight 3 "
		   "nexthop via 192.0.2.3") != 0 ||
	    settle(w) <= 0 || seen.routes != 1 || seen.last.hops != 2 ||
	    seen.last.hop[0].weight != 3 || seen.last.metric != 5 || seen.last.mtu != 1300)
		return 4;
	if (system("ip route del 10.8.0.0/16 metric 5 && ip rule add fwmark 1 table 5") != 0 ||
	    settle(w) <= 0 || !seen.gone || !seen.odd_rule)
		return 5;
	if (system("ip nexthop add id 9 via 192.0.2.2 dev hov0 && "
		   "ip nexthop add id 10 group 9,4 2>/dev/null || ip nexthop add id 10 group 9") ==
	    0) {
		if (settle(w) <= 0 || seen.nexthops != 2 || seen.nexthop.members != 1 ||
		    seen.nexthop.member[0].id != 9)
			return 6;
		if (system("ip route add 10.7.0.0/16 nhid 10") != 0 || settle(w) <= 0 ||
		    seen.last.nexthop != 10)
			return 7;
	}
	/* Nobody answers for this neighbour: it fails after three requests, a second apart. */
	if (lx_watch_use_neigh(w, seen.loopback, &ip) < 0)
		return 8;
	for (unsigned i = 0; i < 600 && !seen.failed_neigh; i++)
		settle(w);
	if (!seen.failed_neigh)
		return 9;
	if (lx_watch_use_neigh(w, 999999, &ip) >= 0)
		return 10;
	/* A dump of one kind only. */
	memset(&seen, 0, sizeof(seen));
	if (lx_watch_dump(w, LX_DUMP_ROUTES, &err) < 0 || !seen.routes || seen.links || seen.neighs)
		return 11;
	lx_watch_discard(w);
	lx_watch_read_stats(w, &stats);
	if (stats.broken || stats.overruns)
		return 12;
	lx_watch_close(w);
	return 0;
}

static void test_watch(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(try_watch());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link),    cmocka_unit_test(test_addr),
		cmocka_unit_test(test_route),   cmocka_unit_test(test_multipath),
		cmocka_unit_test(test_nexthop), cmocka_unit_test(test_neigh),
		cmocka_unit_test(test_rule),    cmocka_unit_test(test_broken),
		cmocka_unit_test(test_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
