// SPDX-License-Identifier: BSD-2-Clause
#include "linux/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_ether.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "base/compiler.h"
#include "linux/rtnl_attr.h"

/* --- attributes ----------------------------------------------------------------------------- */

unsigned lx_family_bytes(uint8_t family)
{
	return family == AF_INET ? 4 : family == AF_INET6 ? 16 : 0;
}

bool lx_attrs_whole(const void *at, size_t bytes)
{
	const struct nlattr *attr = at;
	int left = (int)bytes;

	while (left > 0) {
		int used;

		if (!mnl_attr_ok(attr, left))
			return false;
		used = MNL_ALIGN(attr->nla_len);
		/* The last one's padding may be left out. */
		if (used >= left)
			return true;
		left -= used;
		attr = mnl_attr_next(attr);
	}
	return true;
}

void lx_attr_text(const struct nlattr *attr, char *out, size_t bytes)
{
	size_t n = strnlen(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));

	n = HO_MIN(n, bytes - 1);
	memcpy(out, mnl_attr_get_payload(attr), n);
	out[n] = '\0';
}

int lx_attr_ip(const struct nlattr *attr, uint8_t family, struct lx_ip *out)
{
	unsigned bytes = lx_family_bytes(family);

	if (!bytes || mnl_attr_get_payload_len(attr) != bytes)
		return -EBADMSG;
	*out = (struct lx_ip){ .family = family };
	memcpy(out->byte, mnl_attr_get_payload(attr), bytes);
	return 0;
}

int lx_attr_via(const struct nlattr *attr, struct lx_ip *out)
{
	const uint8_t *payload = mnl_attr_get_payload(attr);
	uint16_t family;
	unsigned bytes;

	if (lx_attr_copy(attr, &family, sizeof(family)) < 0)
		return -EBADMSG;
	bytes = lx_family_bytes((uint8_t)family);
	if (family > UINT8_MAX || !bytes ||
	    mnl_attr_get_payload_len(attr) != sizeof(family) + bytes)
		return -EBADMSG;
	*out = (struct lx_ip){ .family = (uint8_t)family };
	memcpy(out->byte, payload + sizeof(family), bytes);
	return 0;
}

const char *lx_ip_text(const struct lx_ip *ip, char *buf, unsigned bytes)
{
	if (!lx_family_bytes(ip->family) || !inet_ntop(ip->family, ip->byte, buf, bytes))
		buf[0] = '\0';
	return buf;
}

/* --- links ---------------------------------------------------------------------------------- */

static int parse_vlan(const struct nlattr *data, struct lx_link *out)
{
	const struct nlattr *attr;
	int rc = 0;

	mnl_attr_for_each_nested(attr, data)
	{
		uint16_t protocol;

		switch (mnl_attr_get_type(attr)) {
		case IFLA_VLAN_ID:
			rc = lx_attr_u16(attr, &out->vlan);
			break;
		case IFLA_VLAN_PROTOCOL:
			rc = lx_attr_u16(attr, &protocol);
			if (rc == 0)
				out->vlan_protocol = ntohs(protocol);
			break;
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int parse_linkinfo(const struct nlattr *info, struct lx_link *out)
{
	const struct nlattr *attr, *data = NULL;

	if (!lx_attrs_whole(mnl_attr_get_payload(info), mnl_attr_get_payload_len(info)))
		return -EBADMSG;
	mnl_attr_for_each_nested(attr, info)
	{
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			lx_attr_text(attr, out->kind, sizeof(out->kind));
		else if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
			data = attr;
	}
	if (!data || strcmp(out->kind, "vlan") != 0)
		return 0;
	if (!lx_attrs_whole(mnl_attr_get_payload(data), mnl_attr_get_payload_len(data)))
		return -EBADMSG;
	return parse_vlan(data, out);
}

static int parse_link(const struct nlmsghdr *nlh, struct lx_link *out)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	int rc = 0;

	*out = (struct lx_link){
		.index = (uint32_t)ifi->ifi_index,
		.up = ifi->ifi_flags & IFF_UP,
		/* IFF_RUNNING is the operational state (RFC 2863): a carrier, and not dormant. */
		.carrier = (ifi->ifi_flags & IFF_UP) && (ifi->ifi_flags & IFF_RUNNING),
	};
	/* The bridge speaks of its ports on the same group. */
	if (ifi->ifi_family != AF_UNSPEC)
		return 0;
	if (ifi->ifi_index <= 0)
		return -EBADMSG;
	mnl_attr_for_each(attr, nlh, sizeof(*ifi))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			lx_attr_text(attr, out->name, sizeof(out->name));
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(attr) == sizeof(out->mac)) {
				memcpy(out->mac, mnl_attr_get_payload(attr), sizeof(out->mac));
				out->has_mac = true;
			}
			break;
		case IFLA_MTU:
			rc = lx_attr_u32(attr, &out->mtu);
			break;
		case IFLA_LINK:
			rc = lx_attr_u32(attr, &out->lower);
			break;
		case IFLA_LINK_NETNSID:
			out->elsewhere = true;
			break;
		case IFLA_MASTER:
			rc = lx_attr_u32(attr, &out->master);
			break;
		case IFLA_LINKINFO:
			rc = parse_linkinfo(attr, out);
			break;
		}
		if (rc < 0)
			return rc;
	}
	return 1;
}

/* --- addresses ------------------------------------------------------------------------------ */

static int parse_addr(const struct nlmsghdr *nlh, struct lx_addr *out)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct lx_ip local = { 0 }, address = { 0 };
	uint32_t flags = ifa->ifa_flags;
	const struct nlattr *attr;
	int rc = 0;

	*out = (struct lx_addr){ .index = ifa->ifa_index, .len = ifa->ifa_prefixlen };
	if (!lx_family_bytes(ifa->ifa_family))
		return 0;
	if (ifa->ifa_prefixlen > 8 * lx_family_bytes(ifa->ifa_family))
		return -EBADMSG;
	mnl_attr_for_each(attr, nlh, sizeof(*ifa))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFA_LOCAL:
			rc = lx_attr_ip(attr, ifa->ifa_family, &local);
			break;
		case IFA_ADDRESS:
			rc = lx_attr_ip(attr, ifa->ifa_family, &address);
			break;
		case IFA_FLAGS:
			rc = lx_attr_u32(attr, &flags);
			break;
		}
		if (rc < 0)
			return rc;
	}
	/* IFA_ADDRESS is the peer's where both are there and differ. */
	out->addr = local.family ? local : address;
	if (!out->addr.family)
		return -EBADMSG;
	out->peer = local.family && address.family && memcmp(&local, &address, sizeof(local)) != 0;
	out->tentative = (flags & IFA_F_DADFAILED) ||
			 ((flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC));
	return 1;
}

/* --- neighbours ----------------------------------------------------------------------------- */

static int parse_neigh(const struct nlmsghdr *nlh, struct lx_neigh *out)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	int rc = 0;

	*out = (struct lx_neigh){
		.index = (uint32_t)ndm->ndm_ifindex,
		.state = ndm->ndm_state,
		.proxy = ndm->ndm_flags & NTF_PROXY,
	};
	/* Bridges' forwarding tables come by the same message. */
	if (!lx_family_bytes(ndm->ndm_family))
		return 0;
	mnl_attr_for_each(attr, nlh, sizeof(*ndm))
	{
		switch (mnl_attr_get_type(attr)) {
		case NDA_DST:
			rc = lx_attr_ip(attr, ndm->ndm_family, &out->addr);
			break;
		case NDA_LLADDR:
			out->has_mac = mnl_attr_get_payload_len(attr) == sizeof(out->mac);
			if (out->has_mac)
				memcpy(out->mac, mnl_attr_get_payload(attr), sizeof(out->mac));
			break;
		}
		if (rc < 0)
			return rc;
	}
	return out->addr.family ? 1 : -EBADMSG;
}

/* --- rules ---------------------------------------------------------------------------------- */

static int parse_rule(const struct nlmsghdr *nlh, struct lx_rule *out)
{
	const struct fib_rule_hdr *rule = mnl_nlmsg_get_payload(nlh);
	bool narrow = rule->src_len || rule->dst_len || rule->tos || rule->flags & FIB_RULE_INVERT;
	uint32_t table = rule->table;
	const struct nlattr *attr;
	int rc = 0;

	*out = (struct lx_rule){ .family = rule->family };
	if (!lx_family_bytes(rule->family))
		return 0;
	mnl_attr_for_each(attr, nlh, sizeof(*rule))
	{
		uint32_t number;

		switch (mnl_attr_get_type(attr)) {
		case FRA_PRIORITY:
			rc = lx_attr_u32(attr, &out->priority);
			break;
		case FRA_TABLE:
			rc = lx_attr_u32(attr, &table);
			break;
		case FRA_SUPPRESS_PREFIXLEN:
		case FRA_SUPPRESS_IFGROUP:
			/* -1 is "not": it is always there. */
			rc = lx_attr_u32(attr, &number);
			narrow = narrow || (rc == 0 && number != UINT32_MAX);
			break;
		case FRA_PROTOCOL:
		case FRA_UNSPEC:
		case FRA_PAD:
			break;
		default:
			narrow = true;
		}
		if (rc < 0)
			return rc;
	}
	out->standard = !narrow && rule->action == FR_ACT_TO_TBL &&
			((table == RT_TABLE_LOCAL && out->priority == 0) ||
			 (table == RT_TABLE_MAIN && out->priority == 32766) ||
			 (table == RT_TABLE_DEFAULT && out->priority == 32767));
	return 1;
}

/* --- messages ------------------------------------------------------------------------------- */

static const struct {
	uint16_t add, del;
	enum lx_rtnl_kind kind;
	uint16_t header; /* bytes of the fixed part */
} messages[] = {
	{ RTM_NEWLINK, RTM_DELLINK, LX_LINK, sizeof(struct ifinfomsg) },
	{ RTM_NEWADDR, RTM_DELADDR, LX_ADDR, sizeof(struct ifaddrmsg) },
	{ RTM_NEWROUTE, RTM_DELROUTE, LX_ROUTE, sizeof(struct rtmsg) },
	{ RTM_NEWNEXTHOP, RTM_DELNEXTHOP, LX_NEXTHOP, sizeof(struct nhmsg) },
	{ RTM_NEWNEIGH, RTM_DELNEIGH, LX_NEIGH, sizeof(struct ndmsg) },
	{ RTM_NEWRULE, RTM_DELRULE, LX_RULE, sizeof(struct fib_rule_hdr) },
};

int lx_rtnl_parse(const struct nlmsghdr *nlh, struct lx_rtnl *out)
{
	unsigned i = 0, body;
	size_t offset;

	while (i < HO_ARRAY_LEN(messages) && nlh->nlmsg_type != messages[i].add &&
	       nlh->nlmsg_type != messages[i].del)
		i++;
	if (i == HO_ARRAY_LEN(messages))
		return 0;
	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN)
		return -EBADMSG;
	body = nlh->nlmsg_len - MNL_NLMSG_HDRLEN;
	if (body < messages[i].header)
		return -EBADMSG;
	offset = MNL_ALIGN(messages[i].header);
	if (body > offset &&
	    !lx_attrs_whole(mnl_nlmsg_get_payload_offset(nlh, offset), body - offset))
		return -EBADMSG;
	out->kind = messages[i].kind;
	out->gone = nlh->nlmsg_type == messages[i].del;
	switch (out->kind) {
	case LX_LINK:
		return parse_link(nlh, &out->link);
	case LX_ADDR:
		return parse_addr(nlh, &out->addr);
	case LX_ROUTE:
		return lx_parse_route(nlh, &out->route);
	case LX_NEXTHOP:
		return lx_parse_nexthop(nlh, &out->nexthop);
	case LX_NEIGH:
		return parse_neigh(nlh, &out->neigh);
	case LX_RULE:
		return parse_rule(nlh, &out->rule);
	}
	return 0;
}
