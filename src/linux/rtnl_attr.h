/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the rtnetlink parser: attributes whose lengths are checked before they are read. */
#ifndef HOLDOFF_LINUX_RTNL_ATTR_H
#define HOLDOFF_LINUX_RTNL_ATTR_H

#include <libmnl/libmnl.h>
#include <string.h>

#include "linux/rtnl.h"

/*
 * Is the block of `bytes` bytes at `at` a row of whole attributes, with nothing behind them? Their
 * loops stop at the first that is none: this tells that they would stop at the end only.
 */
bool lx_attrs_whole(const void *at, size_t bytes);

/* The payload into *out, or -EBADMSG when it is shorter than that. Longer is a newer kernel's. */
static inline int lx_attr_copy(const struct nlattr *attr, void *out, size_t bytes)
{
	if (mnl_attr_get_payload_len(attr) < bytes)
		return -EBADMSG;
	memcpy(out, mnl_attr_get_payload(attr), bytes);
	return 0;
}

static inline int lx_attr_u32(const struct nlattr *attr, uint32_t *out)
{
	return lx_attr_copy(attr, out, sizeof(*out));
}

static inline int lx_attr_u16(const struct nlattr *attr, uint16_t *out)
{
	return lx_attr_copy(attr, out, sizeof(*out));
}

/* Text of at most `bytes` - 1 characters, whether it ends with a zero or not. */
void lx_attr_text(const struct nlattr *attr, char *out, size_t bytes);

/* An address of that family, exactly as long as it must be. */
int lx_attr_ip(const struct nlattr *attr, uint8_t family, struct lx_ip *out);

/* RTA_VIA: a family of its own before the address. */
int lx_attr_via(const struct nlattr *attr, struct lx_ip *out);

int lx_parse_route(const struct nlmsghdr *nlh, struct lx_route *out);
int lx_parse_nexthop(const struct nlmsghdr *nlh, struct lx_nexthop *out);

#endif
