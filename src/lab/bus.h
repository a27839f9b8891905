/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bus interface of drivers (nic/bus.h) over a modelled PCI link and chip. A register write
 * is posted; a read stalls the CPU until its value is back.
 */
#ifndef HOLDOFF_LAB_BUS_H
#define HOLDOFF_LAB_BUS_H

#include "lab/chip.h"
#include "lab/pci.h"
#include "nic/bus.h"

struct lab_bus_config {
	struct rt *rt;
	struct lab_pci *pci;
	struct lab_chip *chip;
	/* The running CPU hangs until `until`; no effect outside of any CPU's code (then accesses
	 * happen at once): lab_exec_stall. NULL = always at once. */
	void (*stall)(struct rt *rt, sim_ps until);
	/* The running CPU spends ps: lab_exec_spend_ps. NULL if writes cost the CPU nothing. */
	void (*spend)(struct rt *rt, sim_ps ps);
};

struct lab_bus_stats {
	uint64_t messages;  /* interrupts that arrived, MSI-X */
	uint64_t lines;     /* and those of the line */
	uint64_t stray;     /* messages for a vector that nobody asked the event of */
};

/* The chip and the link stay the caller's; bus->ops->close frees the bus. */
int lab_bus_create(const struct lab_bus_config *config, struct nic_bus **out, struct ho_err *err);

void lab_bus_stats(const struct nic_bus *bus, struct lab_bus_stats *out);

#endif
