/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to generic netlink families. */
#ifndef HOLDOFF_LINUX_GENL_H
#define HOLDOFF_LINUX_GENL_H

#include <stdint.h>

#include "linux/nlsock.h"

/* The number of a family, "netdev"; -ENOENT: this kernel has none. It does not change while the
 * family's module stays, so it may be kept. */
int lx_genl_family(const char *name);

/* Begins a request in buf (LX_NL_REQUEST_BYTES). */
struct nlmsghdr *lx_genl_begin(char *buf, int family, uint8_t command);

/* An unsigned number of 1, 2, 4 or 8 bytes, as attributes are; 0 for other sizes. */
uint64_t lx_attr_uint(const struct nlattr *attr);

/* "netdev" and "ethtool" have version 1, as all families of today. */
#define LX_GENL_VERSION 1

#endif
