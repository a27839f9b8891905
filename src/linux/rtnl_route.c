// SPDX-License-Identifier: BSD-2-Clause
/* Routes and next hop objects: what rtnl.c leaves to a file of its own. */
#include <errno.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "base/compiler.h"
#include "linux/rtnl_attr.h"

static int parse_metrics(const struct nlattr *metrics, struct lx_route *out)
{
	const struct nlattr *attr;
	int rc = 0;

	if (!lx_attrs_whole(mnl_attr_get_payload(metrics), mnl_attr_get_payload_len(metrics)))
		return -EBADMSG;
	mnl_attr_for_each_nested(attr, metrics)
	{
		if (mnl_attr_get_type(attr) == RTAX_MTU)
			rc = lx_attr_u32(attr, &out->mtu);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* RFC 4191 2.1: two bits with a sign; what is reserved counts as medium. */
static int parse_preference(const struct nlattr *attr, uint8_t *rank)
{
	uint8_t value;

	if (mnl_attr_get_payload_len(attr) < sizeof(value))
		return -EBADMSG;
	value = mnl_attr_get_u8(attr);
	*rank = value == 1 ? 0 : value == 3 ? 2 : 1;
	return 0;
}

/* An attribute that a path of a route has, be it the route's only one or one of several. */
static int parse_hop_attr(const struct nlattr *attr, uint8_t family, struct lx_hop *hop)
{
	switch (mnl_attr_get_type(attr)) {
	case RTA_GATEWAY:
		return lx_attr_ip(attr, family, &hop->via);
	case RTA_VIA:
		return lx_attr_via(attr, &hop->via);
	case RTA_ENCAP:
		hop->encapsulated = true;
		return 0;
	default:
		return 0;
	}
}

/* RTA_MULTIPATH: structs rtnexthop, each with attributes of its own behind it. */
static int parse_multipath(const struct nlattr *multipath, struct lx_route *out)
{
	const uint8_t *at = mnl_attr_get_payload(multipath);
	size_t left = mnl_attr_get_payload_len(multipath);

	out->hops = 0;
	while (left > 0) {
		struct rtnexthop nh;
		struct nlattr *attr;
		struct lx_hop hop = { 0 };
		size_t used;

		if (left < sizeof(nh))
			return -EBADMSG;
		memcpy(&nh, at, sizeof(nh));
		if (nh.rtnh_len < sizeof(nh) || nh.rtnh_len > left ||
		    !lx_attrs_whole(at + sizeof(nh), nh.rtnh_len - sizeof(nh)))
			return -EBADMSG;
		hop.index = (uint32_t)nh.rtnh_ifindex;
		hop.weight = (uint16_t)(nh.rtnh_hops + 1);
		mnl_attr_for_each_payload((void *)(at + sizeof(nh)), nh.rtnh_len - sizeof(nh))
		{
			int rc = parse_hop_attr(attr, out->family, &hop);

			if (rc < 0)
				return rc;
		}
		if (out->hops < LX_HOPS_MAX)
			out->hop[out->hops++] = hop;
		else
			out->cut = true;
		used = HO_MIN((size_t)RTNH_ALIGN(nh.rtnh_len), left);
		at += used;
		left -= used;
	}
	return 0;
}

/* Host bits are zero in what the kernel says; if not, it is no prefix. */
static bool host_bits_zero(const struct lx_ip *ip, unsigned len)
{
	for (unsigned bit = len; bit < 8 * lx_family_bytes(ip->family); bit++) {
		if (ip->byte[bit / 8] & (0x80 >> bit % 8))
			return false;
	}
	return true;
}

int lx_parse_route(const struct nlmsghdr *nlh, struct lx_route *out)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct lx_hop single = { .weight = 1 };
	const struct nlattr *attr;
	bool has_dst = false;
	int rc = 0;

	/* Not the array of hops, which is most of it. */
	memset(out, 0, offsetof(struct lx_route, hop));
	out->kind = rtm->rtm_type;
	out->family = rtm->rtm_family;
	out->len = rtm->rtm_dst_len;
	out->table = rtm->rtm_table;
	out->selective = rtm->rtm_src_len || rtm->rtm_tos;
	out->cloned = rtm->rtm_flags & RTM_F_CLONED;
	out->replaced = nlh->nlmsg_flags & NLM_F_REPLACE;
	out->appended = nlh->nlmsg_flags & NLM_F_APPEND;
	out->kernels = rtm->rtm_protocol == RTPROT_KERNEL;
	out->advertised = rtm->rtm_protocol == RTPROT_RA;
	out->rank = 1;
	/* Multicast routes (RTNL_FAMILY_IPMR) and MPLS come by the same message. */
	if (!lx_family_bytes(rtm->rtm_family))
		return 0;
	if (rtm->rtm_dst_len > 8 * lx_family_bytes(rtm->rtm_family))
		return -EBADMSG;
	out->dst.family = rtm->rtm_family;
	mnl_attr_for_each(attr, nlh, sizeof(*rtm))
	{
		switch (mnl_attr_get_type(attr)) {
		case RTA_DST:
			has_dst = true;
			rc = lx_attr_ip(attr, rtm->rtm_family, &out->dst);
			break;
		case RTA_PREFSRC:
			/* An IPv4 route by an IPv6 next hop may have one of either family. */
			rc = lx_attr_ip(attr,
					mnl_attr_get_payload_len(attr) == 16 ? AF_INET6 : AF_INET,
					&out->prefsrc);
			break;
		case RTA_OIF:
			rc = lx_attr_u32(attr, &single.index);
			break;
		case RTA_PRIORITY:
			rc = lx_attr_u32(attr, &out->metric);
			break;
		case RTA_TABLE:
			rc = lx_attr_u32(attr, &out->table);
			break;
		case RTA_NH_ID:
			rc = lx_attr_u32(attr, &out->nexthop);
			break;
		case RTA_METRICS:
			rc = parse_metrics(attr, out);
			break;
		case RTA_PREF:
			rc = parse_preference(attr, &out->rank);
			break;
		case RTA_MULTIPATH:
			rc = parse_multipath(attr, out);
			break;
		default:
			rc = parse_hop_attr(attr, rtm->rtm_family, &single);
		}
		if (rc < 0)
			return rc;
	}
	if ((out->len && !has_dst) || !host_bits_zero(&out->dst, out->len))
		return -EBADMSG;
	if (!out->hops && single.index) {
		out->hop[0] = single;
		out->hops = 1;
	}
	return 1;
}

/* --- next hop objects ------------------------------------------------------------------------ */

/* struct nexthop_grp; its third member was reserved before 6.12. */
struct member {
	uint32_t id;
	uint8_t weight, weight_high;
	uint16_t reserved;
};

static int parse_group(const struct nlattr *group, struct lx_nexthop *out)
{
	const uint8_t *at = mnl_attr_get_payload(group);
	size_t bytes = mnl_attr_get_payload_len(group);

	if (!bytes || bytes % sizeof(struct member))
		return -EBADMSG;
	for (; bytes; at += sizeof(struct member), bytes -= sizeof(struct member)) {
		struct member m;
		uint32_t weight;

		if (out->members == LX_HOPS_MAX) {
			out->cut = true;
			break;
		}
		memcpy(&m, at, sizeof(m));
		weight = ((uint32_t)m.weight_high << 8 | m.weight) + 1;
		out->member[out->members++] = (struct lx_member){
			.id = m.id, .weight = (uint16_t)HO_MIN(weight, (uint32_t)UINT16_MAX)
		};
	}
	return 0;
}

int lx_parse_nexthop(const struct nlmsghdr *nlh, struct lx_nexthop *out)
{
	const struct nhmsg *nhm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	bool bridge = false;
	int rc = 0;

	memset(out, 0, offsetof(struct lx_nexthop, member));
	out->hop.weight = 1;
	mnl_attr_for_each(attr, nlh, sizeof(*nhm))
	{
		switch (mnl_attr_get_type(attr)) {
		case NHA_ID:
			rc = lx_attr_u32(attr, &out->id);
			break;
		case NHA_GROUP:
			rc = parse_group(attr, out);
			break;
		case NHA_BLACKHOLE:
			out->blackhole = true;
			break;
		case NHA_OIF:
			rc = lx_attr_u32(attr, &out->hop.index);
			break;
		case NHA_GATEWAY:
			rc = lx_attr_ip(attr, nhm->nh_family, &out->hop.via);
			break;
		case NHA_ENCAP:
			out->hop.encapsulated = true;
			break;
		case NHA_FDB:
			bridge = true;
			break;
		}
		if (rc < 0)
			return rc;
	}
	if (!out->id)
		return -EBADMSG;
	return !bridge;
}
