/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every chip model is to the rest of the lab.
 *
 *   driver -- nic_bus_ops --> bus.c -- PCI --> chip -- wire --> the other end
 *                               ^               |
 *                               +-- messages ---+
 *
 * A model embeds a struct lab_chip. Its functions run in sim events: they take no time themselves,
 * time passes on the link, on the wire and in the model's own timers.
 */
#ifndef HOLDOFF_LAB_CHIP_H
#define HOLDOFF_LAB_CHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "lab/sim.h"
#include "lab/trace.h"
#include "lab/wire.h"

struct lab_chip;
struct lab_fault;
struct lab_pci;

struct lab_chip_ops {
	const char *model; /* "82599" */
	/* A register access of 1, 2 or 4 bytes arrives. Side effects happen here. */
	uint32_t (*read)(struct lab_chip *chip, uint32_t reg, unsigned width);
	void (*write)(struct lab_chip *chip, uint32_t reg, uint32_t value, unsigned width);
	/* Power-on or bus reset: everything that was going on ends. */
	void (*reset)(struct lab_chip *chip);
	/* A frame arrives at the chip's end of the wire; the link came or went. */
	void (*receive)(struct lab_chip *chip, const struct lab_frame *frame);
	void (*link)(struct lab_chip *chip, bool up);
	/* Fault injection: the engines stop until the chip is reset. Registers still answer. */
	void (*hang)(struct lab_chip *chip);
	/* Looks at the model's invariants: 0, or -EPROTO and a sentence. */
	int (*check)(struct lab_chip *chip, struct ho_err *err);
	/* Calls fn for each counter of the model itself (not of the chip's registers). */
	void (*counters)(struct lab_chip *chip,
	                 void (*fn)(void *arg, const char *name, uint64_t value), void *arg);
	void (*destroy)(struct lab_chip *chip);
};

struct lab_chip {
	const struct lab_chip_ops *ops;
	struct sim *sim;
	struct lab_pci *pci;      /* its link to the host */
	struct lab_wire *wire;    /* NULL until attached */
	unsigned end;             /* of the wire */
	struct lab_fault *fault;  /* NULL: nothing goes wrong */
	struct lab_trace *trace;  /* NULL: none; lab_chip_set_trace */
	uint32_t trace_tx, trace_rx, trace_irq; /* its tracks */
	const char *name;         /* "dut/ixgbe0"; the creator's */
	uint16_t vendor_id, device_id, subsystem_id;
	unsigned vectors;         /* MSI-X vectors; 0 = a line only */
	uint32_t bar_bytes;       /* of the registers */
};

/* Plugs the chip into end `end` of the wire. */
void lab_chip_attach(struct lab_chip *chip, struct lab_wire *wire, unsigned end);

/* From now on doorbells, fetches, write-backs and interrupts are instants on tracks of a process
 * with the chip's name. The trace stays the caller's and must outlive the chip; NULL ends it. */
void lab_chip_set_trace(struct lab_chip *chip, struct lab_trace *trace);

/* NULL is allowed. */
static inline void lab_chip_destroy(struct lab_chip *chip)
{
	if (chip)
		chip->ops->destroy(chip);
}

#endif
