/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be set on a network interface, by ethtool's names, in one table: rings, coalescing,
 * channels, offloads, and how its NAPI contexts wait. Nothing here asks whether the interface may
 * be touched: lx_iface_claim does, before.
 *
 * ethtool netlink (Documentation/networking/ethtool-netlink.rst) for the first four; for NAPI's
 * settings sysfs where it shows our namespace, since it sets those of later contexts as well, else
 * the netdev netlink family (Documentation/netlink/specs/netdev.yaml, 6.13).
 */
#ifndef HOLDOFF_LINUX_PARAMS_H
#define HOLDOFF_LINUX_PARAMS_H

#include "linux/sample.h"

enum lx_param_group {
	LX_PARAM_RINGS,    /* ethtool -g, -G */
	LX_PARAM_COALESCE, /* -c, -C */
	LX_PARAM_CHANNELS, /* -l, -L */
	LX_PARAM_FEATURES, /* -k, -K; values 0 and 1 */
	LX_PARAM_NAPI,     /* sysfs, or netdev's napi-set */
	LX_PARAM_GROUPS,
};

struct lx_param {
	const char *name; /* "rx", "tx-usecs", "gro", "defer-hard-irqs" */
	enum lx_param_group group;
	const char *unit; /* "entries", "us", "frames", "ns", "0/1", ... */
	const char *help;
};

/* Ends with a NULL name; in the order of groups. */
extern const struct lx_param lx_params[];

/* NULL: there is no parameter of that name. */
const struct lx_param *lx_param_of(const char *name);

/*
 * All that the interface has now, into out[]: at most `room`, which LX_PARAMS_MAX is enough for.
 * Returns how many. What a driver does not support is not among them, so 0 is "nothing can be set
 * here". -ENODEV.
 */
#define LX_PARAMS_MAX 80
int lx_param_list(const char *ifname, struct lx_setting *out, unsigned room, struct ho_err *err);

/*
 * One of them. -ENOENT: no parameter has that name; -EOPNOTSUPP: the driver or the kernel has
 * none; -ENODEV; -ENOTUNIQ: it is not one value (the NAPI contexts of this interface differ, or
 * segmentation is on for one version of IP only), so that it could not be put back.
 */
int lx_param_get(const char *ifname, const char *name, struct lx_setting *out, struct ho_err *err);

/*
 * Sets one and reads it back into *got (may be NULL). 0 also when *got differs from value: a driver
 * may round, or keep what it had. Errors of lx_param_get; -ERANGE and -EINVAL: beyond its limits;
 * -EPERM; others as the driver gives them. err names interface, parameter, value and what the
 * kernel said.
 */
int lx_param_set(const char *ifname, const char *name, uint64_t value, uint64_t *got,
		 struct ho_err *err);

/* The shell command that does what lx_param_set does: "ethtool -G eth0 rx 512". For what
 * only netlink can set, ynl's with ID for the number of each NAPI context. Returns buf. */
const char *lx_param_command(const char *ifname, const struct lx_param *param, uint64_t value,
			     char *buf, size_t bytes);

#endif
