/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a reader of a measurement must know of the machine that it was made on: kernel, processor,
 * how its clock is governed and how deep it sleeps, the interface's driver. For reports.
 */
#ifndef HOLDOFF_LINUX_MACHINE_H
#define HOLDOFF_LINUX_MACHINE_H

#include <stdbool.h>

#define LX_MACHINE_FACTS 24
#define LX_MACHINE_TEXT  192

struct lx_machine_fact {
	const char *name; /* static text: "kernel", "cpu", "governor" */
	char text[LX_MACHINE_TEXT];
};

struct lx_machine {
	unsigned n;
	struct lx_machine_fact fact[LX_MACHINE_FACTS];
};

/* What cannot be read is left out. ifname may be NULL. */
void lx_machine_describe(const char *ifname, struct lx_machine *out);

#endif
