// SPDX-License-Identifier: BSD-2-Clause
#include "linux/xdpdev.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linux/nlsock.h"

/* The "netdev" generic netlink family: Documentation/netlink/specs/netdev.yaml. */
#define NETDEV_FAMILY         "netdev"
#define NETDEV_VERSION        1
#define NETDEV_DEV_GET        1 /* command */
#define NETDEV_A_IFINDEX      1
#define NETDEV_A_XDP_FEATURES 3 /* u64 */

struct wanted {
	uint16_t type; /* of the attribute */
	uint64_t value;
	bool found;
};

/* Takes one number out of a generic netlink answer. */
static int take_attr(const struct nlmsghdr *msg, void *arg)
{
	struct wanted *want = arg;
	struct nlattr *attr;

	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(attr) != want->type)
			continue;
		if (mnl_attr_get_payload_len(attr) == sizeof(uint16_t))
			want->value = mnl_attr_get_u16(attr);
		else if (mnl_attr_get_payload_len(attr) == sizeof(uint64_t))
			want->value = mnl_attr_get_u64(attr);
		else
			continue;
		want->found = true;
	}
	return MNL_CB_OK;
}

static struct nlmsghdr *genl_request(char *buf, uint16_t family, uint8_t command, uint8_t version)
{
	struct nlmsghdr *msg = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	msg->nlmsg_type = family;
	genl = mnl_nlmsg_put_extra_header(msg, sizeof(*genl));
	genl->cmd = command;
	genl->version = version;
	return msg;
}

uint32_t lx_xdp_features(unsigned ifindex)
{
	struct wanted family = { .type = CTRL_ATTR_FAMILY_ID };
	struct wanted features = { .type = NETDEV_A_XDP_FEATURES };
	char buf[LX_NL_REQUEST_BYTES];
	struct nlmsghdr *msg = genl_request(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);

	mnl_attr_put_strz(msg, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY);
	if (lx_netlink_ask(NETLINK_GENERIC, msg, take_attr, &family, NULL) < 0 || !family.found)
		return LX_XDP_UNKNOWN;
	msg = genl_request(buf, (uint16_t)family.value, NETDEV_DEV_GET, NETDEV_VERSION);
	mnl_attr_put_u32(msg, NETDEV_A_IFINDEX, ifindex);
	if (lx_netlink_ask(NETLINK_GENERIC, msg, take_attr, &features, NULL) < 0 || !features.found)
		return LX_XDP_UNKNOWN;
	return (uint32_t)features.value;
}

static int ask_ethtool(const char *name, void *command)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;
	struct ifreq ifr = { .ifr_data = command };

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	rc = ioctl(fd, SIOCETHTOOL, &ifr) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

const char *lx_driver_name(const char *name, char *buf, unsigned bytes)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	buf[0] = '\0';
	if (ask_ethtool(name, &info) == 0)
		snprintf(buf, bytes, "%s", info.driver);
	return buf;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t n = strnlen(text, ETH_GSTRING_LEN), m = strlen(suffix);

	return n >= m && !memcmp(text + n - m, suffix, m);
}

bool lx_driver_stat_sum(const char *name, const char *suffix, uint64_t *out)
{
	/* One number follows, for the one bit of the mask. */
	union {
		struct ethtool_sset_info base;
		char room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
	} set = { .base = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1u << ETH_SS_STATS } };
	struct ethtool_gstrings *names = NULL;
	struct ethtool_stats *values = NULL;
	bool found = false;
	uint32_t n;

	*out = 0;
	if (ask_ethtool(name, &set) < 0 || !set.base.sset_mask)
		return false;
	n = set.base.data[0];
	if (!n)
		return false;
	names = calloc(1, sizeof(*names) + (size_t)n * ETH_GSTRING_LEN);
	values = calloc(1, sizeof(*values) + (size_t)n * sizeof(uint64_t));
	if (!names || !values)
		goto out;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_STATS;
	names->len = n;
	values->cmd = ETHTOOL_GSTATS;
	values->n_stats = n;
	if (ask_ethtool(name, names) < 0 || ask_ethtool(name, values) < 0)
		goto out;
	for (uint32_t i = 0; i < n; i++) {
		if (ends_with((char *)names->data + (size_t)i * ETH_GSTRING_LEN, suffix)) {
			*out += values->data[i];
			found = true;
		}
	}
out:
	free(names);
	free(values);
	return found;
}
