// SPDX-License-Identifier: BSD-2-Clause
#include "linux/params.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "linux/genl.h"
#include "linux/iface.h"
#include "linux/napi.h"
#include "linux/textfile.h"

#define FEATURES_OF_ONE 3
#define FEATURE_BYTES   32 /* ETH_GSTRING_LEN */

/* How a parameter is reached: beside lx_params, row by row. */
struct way {
	uint16_t attr, attr_max; /* of ethtool netlink; attr_max 0: it has none */
	uint8_t bytes;           /* of the attribute: 4, or 1 for switches */
	uint64_t min, max;       /* where the kernel does not tell */
	/* Features: the kernel's names. NAPI: the file in sysfs. Else ethtool's word, if it is not
	 * the parameter's name. */
	const char *name[FEATURES_OF_ONE];
	int napi; /* enum lx_napi_setting; -1: sysfs only */
};

#define RING(id, A, help)                                          \
	X(id, RINGS, "entries", help, .attr = ETHTOOL_A_RINGS_##A, \
	  .attr_max = ETHTOOL_A_RINGS_##A##_MAX, .bytes = 4, .min = 1)
#define COALESCE(id, unit, A, help) \
	X(id, COALESCE, unit, help, .attr = ETHTOOL_A_COALESCE_##A, .bytes = 4, .max = UINT32_MAX)
#define COALESCE_SWITCH(id, A, help) \
	X(id, COALESCE, "0/1", help, .attr = ETHTOOL_A_COALESCE_##A, .bytes = 1, .max = 1)
#define CHANNEL(id, word, A, least, help)                                       \
	X(id, CHANNELS, "queues", help, .attr = ETHTOOL_A_CHANNELS_##A##_COUNT, \
	  .attr_max = ETHTOOL_A_CHANNELS_##A##_MAX, .bytes = 4, .min = least, .name = { word })
#define FEATURE(param, help, ...) X(param, FEATURES, "0/1", help, .max = 1, .name = { __VA_ARGS__ })
#define NAPI(param, unit, which, most, file, help) \
	X(param, NAPI, unit, help, .max = most, .name = { file }, .napi = which)

#define PARAMS                                                                                     \
	RING("rx", RX, "receive ring")                                                             \
	RING("rx-mini", RX_MINI, "receive ring of small frames")                                   \
	RING("rx-jumbo", RX_JUMBO, "receive ring of jumbo frames")                                 \
	RING("tx", TX, "transmit ring")                                                            \
	COALESCE("rx-usecs", "us", RX_USECS, "delay of receive interrupts")                        \
	COALESCE("rx-frames", "frames", RX_MAX_FRAMES, "frames before a receive interrupt")        \
	COALESCE("rx-usecs-irq", "us", RX_USECS_IRQ, "the same while one is handled")              \
	COALESCE("rx-frames-irq", "frames", RX_MAX_FRAMES_IRQ, "the same while one is handled")    \
	COALESCE("tx-usecs", "us", TX_USECS, "delay of transmit interrupts")                       \
	COALESCE("tx-frames", "frames", TX_MAX_FRAMES, "frames before a transmit interrupt")       \
	COALESCE("tx-usecs-irq", "us", TX_USECS_IRQ, "the same while one is handled")              \
	COALESCE("tx-frames-irq", "frames", TX_MAX_FRAMES_IRQ, "the same while one is handled")    \
	COALESCE("stats-block-usecs", "us", STATS_BLOCK_USECS, "how often statistics are written") \
	COALESCE_SWITCH("adaptive-rx", USE_ADAPTIVE_RX, "the driver chooses rx-usecs")             \
	COALESCE_SWITCH("adaptive-tx", USE_ADAPTIVE_TX, "the driver chooses tx-usecs")             \
	COALESCE("pkt-rate-low", "pps", PKT_RATE_LOW, "below this rate the -low values hold")      \
	COALESCE("rx-usecs-low", "us", RX_USECS_LOW, "rx-usecs at a low rate")                     \
	COALESCE("rx-frames-low", "frames", RX_MAX_FRAMES_LOW, "rx-frames at a low rate")          \
	COALESCE("tx-usecs-low", "us", TX_USECS_LOW, "tx-usecs at a low rate")                     \
	COALESCE("tx-frames-low", "frames", TX_MAX_FRAMES_LOW, "tx-frames at a low rate")          \
	COALESCE("pkt-rate-high", "pps", PKT_RATE_HIGH, "above this rate the -high values hold")   \
	COALESCE("rx-usecs-high", "us", RX_USECS_HIGH, "rx-usecs at a high rate")                  \
	COALESCE("rx-frames-high", "frames", RX_MAX_FRAMES_HIGH, "rx-frames at a high rate")       \
	COALESCE("tx-usecs-high", "us", TX_USECS_HIGH, "tx-usecs at a high rate")                  \
	COALESCE("tx-frames-high", "frames", TX_MAX_FRAMES_HIGH, "tx-frames at a high rate")       \
	COALESCE("sample-interval", "s", RATE_SAMPLE_INTERVAL, "how often the rate is looked at")  \
	COALESCE_SWITCH("cqe-mode-rx", USE_CQE_MODE_RX, "rx-usecs counts from a completion")       \
	COALESCE_SWITCH("cqe-mode-tx", USE_CQE_MODE_TX, "tx-usecs counts from a completion")       \
	CHANNEL("combined", NULL, COMBINED, 1, "queues for both directions")                       \
	CHANNEL("rx-queues", "rx", RX, 0, "queues for receiving only")                             \
	CHANNEL("tx-queues", "tx", TX, 0, "queues for sending only")                               \
	FEATURE("gro", "received frames are joined", "rx-gro")                                     \
	FEATURE("rx-gro-hw", "the chip joins received frames", "rx-gro-hw")                        \
	FEATURE("rx-gro-list", "joined as a list of frames", "rx-gro-list")                        \
	FEATURE("rx-udp-gro-forwarding", "forwarded UDP is joined", "rx-udp-gro-forwarding")       \
	FEATURE("lro", "received frames are joined for good", "rx-lro")                            \
	FEATURE("gso", "segmentation is put off to the driver", "tx-generic-segmentation")         \
	FEATURE("tso", "the chip segments TCP", "tx-tcp-segmentation", "tx-tcp6-segmentation")     \
	FEATURE("tx-udp-segmentation", "the chip segments UDP", "tx-udp-segmentation")             \
	FEATURE("sg", "frames of several buffers are sent", "tx-scatter-gather")                   \
	FEATURE("rx-checksumming", "the chip checks checksums", "rx-checksum")                     \
	FEATURE("tx-checksumming", "the chip makes checksums", "tx-checksum-ip-generic",           \
		"tx-checksum-ipv4", "tx-checksum-ipv6")                                            \
	FEATURE("rxhash", "the chip's flow hash is used", "rx-hashing")                            \
	FEATURE("ntuple", "the chip steers by rules", "rx-ntuple-filter")                          \
	FEATURE("rxvlan", "the chip takes VLAN tags out", "rx-vlan-hw-parse")                      \
	FEATURE("txvlan", "the chip puts VLAN tags in", "tx-vlan-hw-insert")                       \
	FEATURE("tx-nocache-copy", "sent data does not go through the cache", "tx-nocache-copy")   \
	NAPI("defer-hard-irqs", "polls", LX_NAPI_DEFER_HARD_IRQS, INT32_MAX,                       \
	     "napi_defer_hard_irqs", "empty polls before the interrupt is unmasked")               \
	NAPI("gro-flush-timeout", "ns", LX_NAPI_GRO_FLUSH_TIMEOUT, UINT64_MAX,                     \
	     "gro_flush_timeout", "timer between polls while the interrupt stays masked")          \
	NAPI("irq-suspend-timeout", "ns", LX_NAPI_IRQ_SUSPEND_TIMEOUT, UINT64_MAX, NULL,           \
	     "interrupts stay masked so long while the application polls")                         \
	NAPI("threaded", "0/1", -1, 1, "threaded", "polls in threads of their own")

#define X(param, of, in, what, ...) { param, LX_PARAM_##of, in, what },
const struct lx_param lx_params[] = { PARAMS{ NULL, LX_PARAM_GROUPS, NULL, NULL } };
#undef X
#define X(param, of, in, what, ...) { __VA_ARGS__ },
static const struct way ways[] = { PARAMS };
#undef X

_Static_assert(HO_ARRAY_LEN(ways) <= LX_PARAMS_MAX, "LX_PARAMS_MAX is too small");
_Static_assert(HO_ARRAY_LEN(ways) <= 64, "a mask of all is kept in 64 bits");

/* By group. */
static const struct {
	uint8_t get, set;
	const char *command; /* of ethtool */
} groups[LX_PARAM_GROUPS] = {
	[LX_PARAM_RINGS] = { ETHTOOL_MSG_RINGS_GET, ETHTOOL_MSG_RINGS_SET, "-G" },
	[LX_PARAM_COALESCE] = { ETHTOOL_MSG_COALESCE_GET, ETHTOOL_MSG_COALESCE_SET, "-C" },
	[LX_PARAM_CHANNELS] = { ETHTOOL_MSG_CHANNELS_GET, ETHTOOL_MSG_CHANNELS_SET, "-L" },
	[LX_PARAM_FEATURES] = { ETHTOOL_MSG_FEATURES_GET, ETHTOOL_MSG_FEATURES_SET, "-K" },
};

/* A feature bit in its sets. */
enum { IN_HW = 1, IN_ACTIVE = 2, IN_NOCHANGE = 4 };

/* What a reading found, for each row. */
struct found {
	struct lx_setting setting[HO_ARRAY_LEN(ways)];
	uint64_t there, mixed; /* masks of rows */
	uint8_t feature[HO_ARRAY_LEN(ways)][FEATURES_OF_ONE];
};

const struct lx_param *lx_param_of(const char *name)
{
	for (const struct lx_param *p = lx_params; p->name; p++) {
		if (!strcmp(p->name, name))
			return p;
	}
	return NULL;
}

/* ---- ethtool netlink ---- */

static struct nlmsghdr *begin(char *buf, int family, uint8_t command, const char *ifname)
{
	struct nlmsghdr *msg = lx_genl_begin(buf, family, command);
	/* The header is attribute 1 of every message. */
	struct nlattr *header = mnl_attr_nest_start(msg, ETHTOOL_A_RINGS_HEADER);

	mnl_attr_put_strz(msg, ETHTOOL_A_HEADER_DEV_NAME, ifname);
	mnl_attr_nest_end(msg, header);
	return msg;
}

struct reading {
	struct found *found;
	enum lx_param_group group;
};

/* Numbers: an attribute that is not there is not supported. */
static int on_numbers(const struct nlmsghdr *msg, void *arg)
{
	struct reading *reading = arg;
	struct found *found = reading->found;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
	{
		uint16_t type = mnl_attr_get_type(attr);

		for (size_t i = 0; i < HO_ARRAY_LEN(ways); i++) {
			if (lx_params[i].group != reading->group)
				continue;
			if (ways[i].attr == type) {
				found->setting[i].value = lx_attr_uint(attr);
				found->there |= 1ull << i;
			} else if (ways[i].attr_max == type) {
				found->setting[i].max = lx_attr_uint(attr);
			}
		}
	}
	return MNL_CB_OK;
}

static void mark_feature(struct found *found, const char *name, uint8_t in)
{
	for (size_t i = 0; i < HO_ARRAY_LEN(ways); i++) {
		for (size_t j = 0; lx_params[i].group == LX_PARAM_FEATURES && j < FEATURES_OF_ONE;
		     j++) {
			if (ways[i].name[j] && !strcmp(ways[i].name[j], name))
				found->feature[i][j] |= in;
		}
	}
}

/* A bitset with names. Without a mask those in it are set; else those that have a value. */
static void take_bitset(const struct nlattr *set, struct found *found, uint8_t in)
{
	const struct nlattr *part, *bit, *attr;
	bool nomask = false;

	mnl_attr_for_each_nested(part, set)
	{
		nomask = nomask || mnl_attr_get_type(part) == ETHTOOL_A_BITSET_NOMASK;
	}

	mnl_attr_for_each_nested(part, set)
	{
		if (mnl_attr_get_type(part) != ETHTOOL_A_BITSET_BITS)
			continue;
		mnl_attr_for_each_nested(bit, part)
		{
			const char *name = NULL;
			bool on = nomask;

			mnl_attr_for_each_nested(attr, bit)
			{
				on = on || mnl_attr_get_type(attr) == ETHTOOL_A_BITSET_BIT_VALUE;
				if (mnl_attr_get_type(attr) == ETHTOOL_A_BITSET_BIT_NAME &&
				    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
					name = mnl_attr_get_str(attr);
			}
			if (name && on)
				mark_feature(found, name, in);
		}
	}
}

static int on_features(const struct nlmsghdr *msg, void *arg)
{
	struct reading *reading = arg;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
	{
		switch (mnl_attr_get_type(attr)) {
		case ETHTOOL_A_FEATURES_HW:
			take_bitset(attr, reading->found, IN_HW);
			break;
		case ETHTOOL_A_FEATURES_ACTIVE:
			take_bitset(attr, reading->found, IN_ACTIVE);
			break;
		case ETHTOOL_A_FEATURES_NOCHANGE:
			take_bitset(attr, reading->found, IN_NOCHANGE);
			break;
		}
	}
	return MNL_CB_OK;
}

static bool changeable(uint8_t feature)
{
	return (feature & IN_HW) && !(feature & IN_NOCHANGE);
}

/* A parameter of several features has the value of those that can be changed. */
static void sum_features(struct found *found)
{
	for (size_t i = 0; i < HO_ARRAY_LEN(ways); i++) {
		unsigned on = 0, off = 0, can = 0;

		if (lx_params[i].group != LX_PARAM_FEATURES)
			continue;
		for (unsigned j = 0; j < FEATURES_OF_ONE; j++)
			can += changeable(found->feature[i][j]);
		for (unsigned j = 0; j < FEATURES_OF_ONE && ways[i].name[j]; j++) {
			if (can && !changeable(found->feature[i][j]))
				continue;
			if (found->feature[i][j] & IN_ACTIVE)
				on++;
			else
				off++;
		}
		/* Off, and not to be changed: it is as if there were none. */
		if (!can && !on)
			continue;
		found->there |= 1ull << i;
		found->setting[i].value = on > 0;
		found->setting[i].fixed = !can;
		if (can && on && off)
			found->mixed |= 1ull << i;
	}
}

static int read_ethtool(const char *ifname, enum lx_param_group group, struct found *found)
{
	struct reading reading = { found, group };
	int family = lx_genl_family("ethtool"), rc;
	char buf[LX_NL_REQUEST_BYTES];

	if (family < 0)
		return -EOPNOTSUPP;
	rc = lx_netlink_ask(NETLINK_GENERIC, begin(buf, family, groups[group].get, ifname),
			    group == LX_PARAM_FEATURES ? on_features : on_numbers, &reading, NULL);
	if (rc >= 0 && group == LX_PARAM_FEATURES)
		sum_features(found);
	for (size_t i = 0; i < HO_ARRAY_LEN(ways); i++) {
		/* A ring or a kind of channels of which there can be none. */
		if (lx_params[i].group == group && ways[i].attr_max && !found->setting[i].max)
			found->there &= ~(1ull << i);
	}
	return rc < 0 ? rc : 0;
}

/* ---- NAPI ---- */

/* Does /sys show this interface, and not another one's namespace? Puts its file into path. */
static bool sysfs_file(const char *ifname, unsigned ifindex, const char *file, char *path,
		       size_t bytes)
{
	uint64_t index;

	snprintf(path, bytes, "sys/class/net/%s/ifindex", ifname);
	if (!file || !lx_file_u64(NULL, path, &index) || index != ifindex)
		return false;
	snprintf(path, bytes, "sys/class/net/%s/%s", ifname, file);
	return true;
}

static uint64_t napi_value(const struct lx_napi *napi, int what)
{
	switch (what) {
	case LX_NAPI_DEFER_HARD_IRQS:
		return napi->defer_hard_irqs;
	case LX_NAPI_GRO_FLUSH_TIMEOUT:
		return napi->gro_flush_timeout_ns;
	default:
		return napi->irq_suspend_timeout_ns;
	}
}

static void read_napi(const char *ifname, unsigned ifindex, struct found *found)
{
	struct lx_napi *napi = NULL;
	unsigned n = 0;
	bool settings = false;

	if (lx_napi_list(ifindex, &napi, &n, &settings) < 0 || !settings)
		n = 0;
	for (size_t i = 0; i < HO_ARRAY_LEN(ways); i++) {
		char path[PATH_MAX];
		uint64_t value = 0;
		bool known, differ = false;

		if (lx_params[i].group != LX_PARAM_NAPI)
			continue;
		known = sysfs_file(ifname, ifindex, ways[i].name[0], path, sizeof(path)) &&
			lx_file_u64(NULL, path, &value);
		for (unsigned j = 0; j < n && ways[i].napi >= 0; j++) {
			uint64_t one = napi_value(&napi[j], ways[i].napi);

			differ = differ || (known && one != value);
			value = one;
			known = true;
		}
		if (!known)
			continue;
		found->there |= 1ull << i;
		found->setting[i].value = value;
		if (differ)
			found->mixed |= 1ull << i;
	}
	free(napi);
}

static int write_napi(const char *ifname, unsigned ifindex, const struct way *way, uint64_t value,
		      char *says, size_t bytes)
{
	char path[PATH_MAX], text[24];
	struct lx_napi *napi = NULL;
	int rc = -EOPNOTSUPP;
	unsigned n = 0;

	/* The file is for all contexts, and for those that a later change of rings makes. */
	if (sysfs_file(ifname, ifindex, way->name[0], path, sizeof(path))) {
		snprintf(text, sizeof(text), "%" PRIu64, value);
		rc = lx_file_write(NULL, path, text);
	}
	if (way->napi < 0 || rc == 0)
		return rc;
	/* A read-only /sys, say. */
	if (lx_napi_list(ifindex, &napi, &n, NULL) < 0)
		n = 0;
	for (unsigned i = 0; i < n; i++) {
		rc = lx_napi_set(napi[i].id, (enum lx_napi_setting)way->napi, value, says, bytes);
		if (rc < 0)
			break;
	}
	free(napi);
	return rc;
}

/* ---- All of them ---- */

static int ifindex_of(const char *ifname, unsigned *ifindex, struct ho_err *err)
{
	struct lx_iface iface;
	struct ho_err local = { 0 };
	int rc = lx_iface_look(ifname, &iface, NULL, &local);

	if (rc == -ENODEV || rc == -EINVAL)
		return ho_err_set(err, -ENODEV, "no such interface '%s'; 'ip link' lists them",
				  ifname);
	if (rc < 0)
		return ho_err_set(err, rc, "cannot look at interface '%s': %s", ifname,
				  local.text[0] ? local.text : ho_strerror(rc));
	*ifindex = iface.index;
	return 0;
}

static void clear(struct found *found)
{
	*found = (struct found){ 0 };
	for (size_t i = 0; i < HO_ARRAY_LEN(ways); i++) {
		found->setting[i] = (struct lx_setting){
			.name = lx_params[i].name,
			.min = ways[i].min,
			.max = ways[i].max,
		};
	}
}

static int read_group(const char *ifname, unsigned ifindex, enum lx_param_group group,
		      struct found *found)
{
	if (group != LX_PARAM_NAPI)
		return read_ethtool(ifname, group, found);
	read_napi(ifname, ifindex, found);
	return 0;
}

int lx_param_list(const char *ifname, struct lx_setting *out, unsigned room, struct ho_err *err)
{
	struct found found;
	unsigned ifindex, n = 0;
	int rc = ifindex_of(ifname, &ifindex, err);

	if (rc < 0)
		return rc;
	clear(&found);
	for (unsigned group = 0; group < LX_PARAM_GROUPS; group++) {
		rc = read_group(ifname, ifindex, (enum lx_param_group)group, &found);
		if (rc == -ENODEV)
			return ho_err_set(err, rc, "interface '%s' has gone", ifname);
	}
	for (size_t i = 0; i < HO_ARRAY_LEN(ways) && n < room; i++) {
		if (found.there & (1ull << i))
			out[n++] = found.setting[i];
	}
	return (int)n;
}

/* Reads the one that is row i. */
static int get_row(const char *ifname, unsigned ifindex, size_t i, struct found *found,
		   struct ho_err *err)
{
	const struct lx_param *param = &lx_params[i];
	char command[200];
	int rc;

	clear(found);
	rc = read_group(ifname, ifindex, param->group, found);
	if (rc < 0 && rc != -EOPNOTSUPP)
		return ho_err_set(err, rc, "%s: cannot read %s: %s", ifname, param->name,
				  ho_strerror(rc));
	if (!(found->there & (1ull << i)))
		return ho_err_set(err, -EOPNOTSUPP,
				  "%s has no %s (%s): its driver%s does not "
				  "offer it",
				  ifname, param->name, param->help,
				  param->group == LX_PARAM_NAPI ? " or this kernel" : "");
	if (found->mixed & (1ull << i))
		return ho_err_set(err, -ENOTUNIQ,
				  "%s: %s is not one value: %s, so that it could "
				  "not be put back; set it to one value first: '%s'",
				  ifname, param->name,
				  param->group == LX_PARAM_NAPI
					  ? "its NAPI contexts have different ones"
					  : "it is on for some protocols and off for others",
				  lx_param_command(ifname, param, found->setting[i].value, command,
						   sizeof(command)));
	return 0;
}

static int row_of(const char *name, size_t *row, struct ho_err *err)
{
	const struct lx_param *param = lx_param_of(name);

	if (!param)
		return ho_err_set(err, -ENOENT,
				  "'%s' is not a parameter of interfaces: names are "
				  "those of ethtool's -g, -c, -l and -k, such as rx, rx-usecs, "
				  "combined, gro",
				  name);
	*row = (size_t)(param - lx_params);
	return 0;
}

int lx_param_get(const char *ifname, const char *name, struct lx_setting *out, struct ho_err *err)
{
	struct found found;
	unsigned ifindex;
	size_t row = 0;
	int rc = row_of(name, &row, err);

	if (rc == 0)
		rc = ifindex_of(ifname, &ifindex, err);
	if (rc == 0)
		rc = get_row(ifname, ifindex, row, &found, err);
	if (rc == 0)
		*out = found.setting[row];
	return rc;
}

/* Puts the change into a request. */
static void put_value(struct nlmsghdr *msg, size_t row, uint64_t value, const struct found *found)
{
	const struct way *way = &ways[row];
	struct nlattr *wanted, *bits;

	if (lx_params[row].group != LX_PARAM_FEATURES) {
		if (way->bytes == 1)
			mnl_attr_put_u8(msg, way->attr, (uint8_t)value);
		else
			mnl_attr_put_u32(msg, way->attr, (uint32_t)value);
		return;
	}
	wanted = mnl_attr_nest_start(msg, ETHTOOL_A_FEATURES_WANTED);
	bits = mnl_attr_nest_start(msg, ETHTOOL_A_BITSET_BITS);
	for (unsigned j = 0; j < FEATURES_OF_ONE && way->name[j]; j++) {
		struct nlattr *bit;

		if (!changeable(found->feature[row][j]))
			continue;
		bit = mnl_attr_nest_start(msg, ETHTOOL_A_BITSET_BITS_BIT);
		mnl_attr_put_strz(msg, ETHTOOL_A_BITSET_BIT_NAME, way->name[j]);
		if (value)
			mnl_attr_put(msg, ETHTOOL_A_BITSET_BIT_VALUE, 0, NULL);
		mnl_attr_nest_end(msg, bit);
	}
	mnl_attr_nest_end(msg, bits);
	mnl_attr_nest_end(msg, wanted);
}

static int set_row(const char *ifname, unsigned ifindex, size_t row, uint64_t value,
		   const struct found *found, char *says, size_t bytes)
{
	enum lx_param_group group = lx_params[row].group;
	int family = lx_genl_family("ethtool");
	char buf[LX_NL_REQUEST_BYTES];
	struct nlmsghdr *msg;

	says[0] = '\0';
	if (group == LX_PARAM_NAPI)
		return write_napi(ifname, ifindex, &ways[row], value, says, bytes);
	if (family < 0)
		return -EOPNOTSUPP;
	msg = begin(buf, family, groups[group].set, ifname);
	put_value(msg, row, value, found);
	return lx_netlink_ask_why(NETLINK_GENERIC, msg, NULL, NULL, says, bytes, NULL);
}

int lx_param_set(const char *ifname, const char *name, uint64_t value, uint64_t *got,
		 struct ho_err *err)
{
	struct found found;
	struct lx_setting *was;
	char says[200];
	unsigned ifindex;
	size_t row = 0;
	int rc = row_of(name, &row, err);

	if (rc == 0)
		rc = ifindex_of(ifname, &ifindex, err);
	if (rc < 0)
		return rc;
	rc = get_row(ifname, ifindex, row, &found, err);
	/* One value for all is just what is missing. */
	if (rc < 0 && rc != -ENOTUNIQ)
		return rc;
	was = &found.setting[row];
	if (value < was->min || value > was->max)
		return ho_err_set(err, -ERANGE,
				  "%s: %s %" PRIu64 " is not possible: from %" PRIu64
				  " to %" PRIu64,
				  ifname, name, value, was->min, was->max);
	if (was->fixed && value != was->value)
		return ho_err_set(err, -EOPNOTSUPP, "%s: %s is fixed at %" PRIu64 " by the driver",
				  ifname, name, was->value);
	rc = set_row(ifname, ifindex, row, value, &found, says, sizeof(says));
	/* ethtool netlink itself refuses a request that changes nothing on some kernels. */
	if (rc < 0 && value == was->value && rc != -EPERM && rc != -ENODEV && rc != -ENOTUNIQ)
		rc = 0;
	if (rc == -EPERM || rc == -EACCES)
		return ho_err_set(err, -EPERM,
				  "%s: may not set %s to %" PRIu64 ": it needs "
				  "cap_net_admin; run it as root",
				  ifname, name, value);
	if (rc < 0)
		return ho_err_set(err, rc, "%s: cannot set %s to %" PRIu64 ": %s%s%s", ifname, name,
				  value, ho_strerror(rc), says[0] ? "; the kernel says: " : "",
				  says);
	if (!got)
		return 0;
	rc = get_row(ifname, ifindex, row, &found, err);
	if (rc == 0)
		*got = found.setting[row].value;
	return rc < 0 ? ho_err_prefix(err, "after setting it") : 0;
}

const char *lx_param_command(const char *ifname, const struct lx_param *param, uint64_t value,
			     char *buf, size_t bytes)
{
	size_t row = (size_t)(param - lx_params);
	const struct way *way = &ways[row];
	size_t used;

	switch (param->group) {
	case LX_PARAM_FEATURES:
		used = (size_t)snprintf(buf, bytes, "ethtool -K %s", ifname);
		for (unsigned j = 0; j < FEATURES_OF_ONE && way->name[j] && used < bytes; j++)
			used += (size_t)snprintf(buf + used, bytes - used, " %s %s", way->name[j],
						 value ? "on" : "off");
		break;
	case LX_PARAM_NAPI:
		if (way->name[0])
			snprintf(buf, bytes, "echo %" PRIu64 " > /sys/class/net/%s/%s", value,
				 ifname, way->name[0]);
		else
			snprintf(buf, bytes,
				 "ynl --family netdev --do napi-set --json "
				 "'{\"id\": ID, \"%s\": %" PRIu64 "}'",
				 param->name, value);
		break;
	default:
		if (way->bytes == 1)
			snprintf(buf, bytes, "ethtool %s %s %s %s", groups[param->group].command,
				 ifname, param->name, value ? "on" : "off");
		else
			snprintf(buf, bytes, "ethtool %s %s %s %" PRIu64,
				 groups[param->group].command, ifname,
				 way->name[0] ? way->name[0] : param->name, value);
	}
	return buf;
}
