// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/cmd.h"

#include <stddef.h>

const struct cmd cmd_table[] = {
	{ "ports", "list the kinds of ports and their options", cmd_ports },
	{ NULL, NULL, NULL },
};
