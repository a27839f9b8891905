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

#include "linux/genl.h"

/* The "netdev" generic netlink family: Documentation/netlink/specs/netdev.yaml. */
#define NETDEV_FAMILY         "netdev"
#define NETDEV_DEV_GET        1 /* command */
#define NETDEV_A_IFINDEX      1
#define NETDEV_A_XDP_FEATURES 3 /* u64 */

static int take_features(const struct nlmsghdr *msg, void *arg)
{
	uint32_t *features = arg;
	struct nlattr *attr;

	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(attr) == NETDEV_A_XDP_FEATURES)
			*features = (uint32_t)lx_attr_uint(attr);
	}
	return MNL_CB_OK;
}

uint32_t lx_xdp_features(unsigned ifindex)
{
	int family = lx_genl_family(NETDEV_FAMILY);
	uint32_t features = LX_XDP_UNKNOWN;
	char buf[LX_NL_REQUEST_BYTES];
	struct nlmsghdr *msg;

	if (family < 0)
		return LX_XDP_UNKNOWN;
	msg = lx_genl_begin(buf, family, NETDEV_DEV_GET);
	mnl_attr_put_u32(msg, NETDEV_A_IFINDEX, ifindex);
	if (lx_netlink_ask(NETLINK_GENERIC, msg, take_features, &features, NULL) < 0)
		return LX_XDP_UNKNOWN;
	return features;
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

bool lx_strips_vlan_tags(const char *name)
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };

	return ask_ethtool(name, &flags) == 0 && (flags.data & ETH_FLAG_RXVLAN);
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
