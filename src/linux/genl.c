// SPDX-License-Identifier: BSD-2-Clause
#include "linux/genl.h"

#include <errno.h>
#include <linux/genetlink.h>

uint64_t lx_attr_uint(const struct nlattr *attr)
{
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		return mnl_attr_get_u8(attr);
	case 2:
		return mnl_attr_get_u16(attr);
	case 4:
		return mnl_attr_get_u32(attr);
	case 8:
		return mnl_attr_get_u64(attr);
	default:
		return 0;
	}
}

static int take_id(const struct nlmsghdr *msg, void *arg)
{
	int *id = arg;
	struct nlattr *attr;

	mnl_attr_for_each(attr, msg, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			*id = (int)lx_attr_uint(attr);
	}
	return MNL_CB_OK;
}

struct nlmsghdr *lx_genl_begin(char *buf, int family, uint8_t command)
{
	struct nlmsghdr *msg = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	msg->nlmsg_type = (uint16_t)family;
	genl = mnl_nlmsg_put_extra_header(msg, sizeof(*genl));
	genl->cmd = command;
	genl->version = LX_GENL_VERSION;
	return msg;
}

int lx_genl_family(const char *name)
{
	char buf[LX_NL_REQUEST_BYTES];
	struct nlmsghdr *msg = lx_genl_begin(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	int id = 0, rc;

	mnl_attr_put_strz(msg, CTRL_ATTR_FAMILY_NAME, name);
	rc = lx_netlink_ask(NETLINK_GENERIC, msg, take_id, &id, NULL);
	if (rc < 0)
		return rc;
	return id > 0 ? id : -ENOENT;
}
