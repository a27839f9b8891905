// SPDX-License-Identifier: BSD-2-Clause
/* holdoff ports: what can stand where a command wants a port. */
#include <argp.h>
#include <stdio.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "port/port.h"

static void print_kind(const struct port_kind *kind)
{
	printf("%s:%s\n    %s\n", kind->name, kind->target, kind->help);
	for (const struct port_opt *o = kind->opts; o && o->key; o++) {
		const char *values = o->type == PORT_OPT_CHOICE ? o->choices : "";

		printf("      %-12s %s%s%s%s\n", o->key, o->help, *values ? " [" : "", values,
		       *values ? "]" : "");
	}
}

int cmd_ports(int argc, char **argv, struct ho_err *err)
{
	static const struct argp argp = {
		.doc = "Lists the kinds of ports, written KIND:TARGET[,OPTION=VALUE...], and the "
		       "options of each. A comma in a target is written \\,.",
	};

	if (cmd_parse(&argp, argc, argv, NULL, err) != CMD_DONE)
		return CMD_USAGE;
	for (const struct port_kind *const *k = port_kinds; *k; k++)
		print_kind(*k);
	return CMD_DONE;
}
