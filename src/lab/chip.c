// SPDX-License-Identifier: BSD-2-Clause
#include "lab/chip.h"

#include "lab/pci.h"

static void receive(void *arg, const struct lab_frame *frame)
{
	struct lab_chip *chip = arg;

	chip->ops->receive(chip, frame);
}

static void link_changed(void *arg, bool up)
{
	struct lab_chip *chip = arg;

	chip->ops->link(chip, up);
}

void lab_chip_attach(struct lab_chip *chip, struct lab_wire *wire, unsigned end)
{
	chip->wire = wire;
	chip->end = end;
	lab_wire_attach(wire, end,
			&(struct lab_wire_user){ .receive = receive,
						 .link = link_changed,
						 .arg = chip,
						 .host = lab_pci_config(chip->pci)->host });
}

void lab_chip_set_trace(struct lab_chip *chip, struct lab_trace *trace)
{
	chip->trace = trace;
	chip->trace_tx = lab_trace_track(trace, chip->name, "transmit");
	chip->trace_rx = lab_trace_track(trace, chip->name, "receive");
	chip->trace_irq = lab_trace_track(trace, chip->name, "interrupts");
}
