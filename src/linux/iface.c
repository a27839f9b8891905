// SPDX-License-Identifier: BSD-2-Clause
#include "linux/iface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "linux/nlsock.h"

/* What an interface lies on top of, for the question of what carries the default route. */
struct link {
	unsigned index;
	unsigned master; /* bond, bridge, VRF that it belongs to */
	unsigned lower;  /* of a VLAN, macvlan, ...: the interface below */
	bool carries;
};

struct links {
	struct link *link;
	size_t n, room;
};

/* The kind in IFLA_LINKINFO, "" if there is none. */
static void read_kind(const struct nlattr *linkinfo, char *kind)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, linkinfo)
	{
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND) {
			strncpy(kind, mnl_attr_get_str(attr), LX_NAME_BYTES - 1);
			kind[LX_NAME_BYTES - 1] = '\0';
		}
	}
}

struct link_answer {
	struct lx_iface *iface;
	struct rtnl_link_stats64 *stats;
};

static int on_link(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct link_answer *to = arg;
	struct lx_iface *iface = to->iface;
	const struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	iface->index = (unsigned)ifi->ifi_index;
	iface->up = ifi->ifi_flags & IFF_UP;
	iface->running = ifi->ifi_flags & IFF_RUNNING;
	mnl_attr_for_each(attr, nlh, sizeof(*ifi))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			strncpy(iface->name, mnl_attr_get_str(attr), sizeof(iface->name) - 1);
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(attr) == sizeof(iface->mac))
				memcpy(iface->mac, mnl_attr_get_payload(attr), sizeof(iface->mac));
			break;
		case IFLA_MTU:
			iface->mtu = mnl_attr_get_u32(attr);
			break;
		case IFLA_NUM_RX_QUEUES:
			iface->rx_queues = mnl_attr_get_u32(attr);
			break;
		case IFLA_NUM_TX_QUEUES:
			iface->tx_queues = mnl_attr_get_u32(attr);
			break;
		case IFLA_LINKINFO:
			read_kind(attr, iface->kind);
			break;
		case IFLA_STATS64:
			if (to->stats)
				/* An older kernel's may be shorter. */
				memcpy(to->stats, mnl_attr_get_payload(attr),
				       HO_MIN(sizeof(*to->stats),
					      (size_t)mnl_attr_get_payload_len(attr)));
			break;
		}
	}
	return MNL_CB_OK;
}

/* By index, or by name when index is 0. */
static int ask_link(const char *name, unsigned index, struct link_answer *answer,
		    struct ho_err *err)
{
	char buf[LX_NL_REQUEST_BYTES];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = RTM_GETLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_UNSPEC;
	ifi->ifi_index = (int)index;
	if (!index)
		mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	return lx_netlink_ask(NETLINK_ROUTE, nlh, on_link, answer, err);
}

static int ethtool_ioctl(int fd, const char *name, void *request)
{
	struct ifreq ifr = { .ifr_data = request };

	memcpy(ifr.ifr_name, name, strnlen(name, sizeof(ifr.ifr_name) - 1));
	return ioctl(fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
}

/* Speed and queues in use: what a driver does not tell stays as it is. */
void lx_iface_ask_ethtool(struct lx_iface *iface)
{
	/* The masks follow; link_mode_masks_nwords is at most 127. */
	union {
		struct ethtool_link_settings base;
		char room[sizeof(struct ethtool_link_settings) + 3 * 127 * sizeof(uint32_t)];
	} link = { .base.cmd = ETHTOOL_GLINKSETTINGS };
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (ethtool_ioctl(fd, iface->name, &channels) == 0) {
		unsigned rx = channels.combined_count + channels.rx_count;
		unsigned tx = channels.combined_count + channels.tx_count;

		iface->rx_queues = rx ? rx : iface->rx_queues;
		iface->tx_queues = tx ? tx : iface->tx_queues;
	}
	/* The first call is answered with the size of the masks, negated. */
	if (ethtool_ioctl(fd, iface->name, &link) == 0 && link.base.link_mode_masks_nwords < 0) {
		link.base.cmd = ETHTOOL_GLINKSETTINGS;
		link.base.link_mode_masks_nwords = (int8_t)-link.base.link_mode_masks_nwords;
		if (ethtool_ioctl(fd, iface->name, &link) == 0 && link.base.speed != 0 &&
		    link.base.speed != (uint32_t)SPEED_UNKNOWN)
			iface->link_bps = (uint64_t)link.base.speed * 1000000u;
	}
	close(fd);
}

static int on_each_link(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct links *all = arg;
	struct link link = { .index = (unsigned)ifi->ifi_index };
	char kind[LX_NAME_BYTES] = "";
	bool elsewhere = false;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(*ifi))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_MASTER:
			link.master = mnl_attr_get_u32(attr);
			break;
		case IFLA_LINK:
			link.lower = mnl_attr_get_u32(attr);
			break;
		case IFLA_LINK_NETNSID:
			elsewhere = true;
			break;
		case IFLA_LINKINFO:
			read_kind(attr, kind);
			break;
		}
	}
	/* A veth's "link" is its peer, not what it lies on. */
	if (elsewhere || !strcmp(kind, "veth"))
		link.lower = 0;
	if (all->n == all->room) {
		size_t room = all->room ? 2 * all->room : 32;
		struct link *grown = realloc(all->link, room * sizeof(*grown));

		if (!grown) {
			errno = ENOMEM;
			return MNL_CB_ERROR;
		}
		all->link = grown;
		all->room = room;
	}
	all->link[all->n++] = link;
	return MNL_CB_OK;
}

static void mark(struct links *all, unsigned index)
{
	for (size_t i = 0; index && i < all->n; i++) {
		if (all->link[i].index == index)
			all->link[i].carries = true;
	}
}

static int on_each_route(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;

	if (rtm->rtm_dst_len != 0 || rtm->rtm_type != RTN_UNICAST ||
	    (rtm->rtm_flags & RTM_F_CLONED))
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(*rtm))
	{
		if (mnl_attr_get_type(attr) == RTA_OIF) {
			mark(arg, mnl_attr_get_u32(attr));
		} else if (mnl_attr_get_type(attr) == RTA_MULTIPATH) {
			const struct rtnexthop *hop = mnl_attr_get_payload(attr);
			int left = mnl_attr_get_payload_len(attr);

			for (; RTNH_OK(hop, left);
			     left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
				mark(arg, (unsigned)hop->rtnh_ifindex);
		}
	}
	return MNL_CB_OK;
}

static int dump(uint16_t type, uint8_t family, mnl_cb_t on_message, void *arg, struct ho_err *err)
{
	char buf[LX_NL_REQUEST_BYTES];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_DUMP;
	/* Both headers begin with the family. */
	if (type == RTM_GETLINK)
		((struct ifinfomsg *)mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg)))
			->ifi_family = family;
	else
		((struct rtmsg *)mnl_nlmsg_put_extra_header(nlh, sizeof(struct rtmsg)))
			->rtm_family = family;
	return lx_netlink_ask(NETLINK_ROUTE, nlh, on_message, arg, err);
}

/* Does the default route leave by this interface, directly or through one on top of it? */
static int ask_default_route(unsigned index, bool *out, struct ho_err *err)
{
	struct links all = { 0 };
	bool again = true;
	int rc = dump(RTM_GETLINK, AF_UNSPEC, on_each_link, &all, err);

	if (rc == 0)
		rc = dump(RTM_GETROUTE, AF_INET, on_each_route, &all, err);
	/* A kernel without IPv6 has no such routes. */
	if (rc == 0 && dump(RTM_GETROUTE, AF_INET6, on_each_route, &all, NULL) == -EINTR)
		rc = -EINTR;
	while (again && rc == 0) {
		again = false;
		for (size_t i = 0; i < all.n; i++) {
			struct link *l = &all.link[i];

			for (size_t j = 0; j < all.n && !l->carries; j++) {
				const struct link *over = &all.link[j];

				if (over->carries &&
				    (over->index == l->master || over->lower == l->index))
					l->carries = again = true;
			}
		}
	}
	*out = false;
	for (size_t i = 0; i < all.n; i++) {
		if (all.link[i].index == index)
			*out = all.link[i].carries;
	}
	free(all.link);
	return rc;
}

int lx_iface_look(const char *name, struct lx_iface *out, struct rtnl_link_stats64 *stats,
		  struct ho_err *err)
{
	struct link_answer answer = { .iface = out, .stats = stats };
	int rc;

	*out = (struct lx_iface){ 0 };
	if (stats)
		memset(stats, 0, sizeof(*stats));
	if (!*name || strlen(name) >= LX_NAME_BYTES)
		return -ENODEV;
	rc = ask_link(name, 0, &answer, err);
	if (rc == -EINVAL)
		rc = -ENODEV;
	out->rx_queues = HO_MAX(out->rx_queues, 1u);
	out->tx_queues = HO_MAX(out->tx_queues, 1u);
	return rc < 0 ? rc : 0;
}

int lx_iface_get(const char *name, struct lx_iface *out, struct ho_err *err)
{
	struct link_answer answer = { .iface = out };
	struct ho_err local = { 0 };
	int rc;

	*out = (struct lx_iface){ 0 };
	if (!*name || strlen(name) >= LX_NAME_BYTES)
		return ho_err_set(err, -EINVAL,
				  "'%s' cannot be an interface: names have 1 to %d characters",
				  name, LX_NAME_BYTES - 1);
	rc = ask_link(name, 0, &answer, &local);
	if (rc == -ENODEV || rc == -EINVAL)
		return ho_err_set(err, -ENODEV, "no such interface '%s'; 'ip link' lists them",
				  name);
	if (rc == 0) {
		lx_iface_ask_ethtool(out);
		out->rx_queues = HO_MAX(out->rx_queues, 1u);
		out->tx_queues = HO_MAX(out->tx_queues, 1u);
		rc = ask_default_route(out->index, &out->default_route, &local);
	}
	if (rc < 0)
		return ho_err_set(err, rc, "cannot read interface '%s': %s", name,
				  local.text[0] ? local.text : ho_strerror(rc));
	return 0;
}

int lx_iface_claim(const char *name, bool force, struct lx_iface *out, struct ho_err *err)
{
	int rc = lx_iface_get(name, out, err);

	if (rc < 0 || !out->default_route)
		return rc;
	if (!force)
		return ho_err_set(err, -EBUSY,
				  "%s carries the default route: using it may cut this machine off "
				  "the network; take another interface, or --force if you mean it",
				  name);
	ho_warn("%s carries the default route and is used because of --force", name);
	return 0;
}

int lx_iface_stats(unsigned index, struct rtnl_link_stats64 *out, struct ho_err *err)
{
	struct lx_iface iface = { 0 };
	struct link_answer answer = { .iface = &iface, .stats = out };
	int rc;

	memset(out, 0, sizeof(*out));
	rc = ask_link(NULL, index, &answer, err);
	return rc < 0 ? ho_err_set(err, rc, "cannot read the statistics of interface %u: %s", index,
				   ho_strerror(rc))
		      : 0;
}
