/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bus interface of drivers (nic/bus.h) over a modelled PCI link and chip. A register write
 * is posted; a read stalls the CPU until its value is back. Accesses from outside of any modelled
 * CPU's code (main, while it builds a run) happen at once and take no time.
 */
#ifndef HOLDOFF_LAB_BUS_H
#define HOLDOFF_LAB_BUS_H

#include "lab/chip.h"
#include "lab/pci.h"
#include "nic/bus.h"

struct lab_bus_stats {
	uint64_t messages;  /* interrupts that arrived, MSI-X */
	uint64_t lines;     /* and those of the line */
	uint64_t stray;     /* messages for a vector that nobody asked the event of */
};

/* rt is an executor of lab/exec.h. The chip and its link stay the caller's; bus->ops->close frees
 * the bus. */
int lab_bus_create(struct rt *rt, struct lab_chip *chip, struct nic_bus **out, struct ho_err *err);

void lab_bus_stats(const struct nic_bus *bus, struct lab_bus_stats *out);

#endif
