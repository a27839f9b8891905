/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can go wrong in a chip, on purpose: for tests of drivers. Probabilities are in parts per
 * million of the occasions, drawn from a generator with a seed: the same seed, the same faults.
 * Everything that is injected is counted.
 */
#ifndef HOLDOFF_LAB_FAULT_H
#define HOLDOFF_LAB_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "lab/sim.h"

struct lab_chip;

struct lab_fault_config {
	uint64_t seed;
	uint32_t lose_irq_ppm;     /* an interrupt message never arrives */
	uint32_t late_ppm;         /* a queue's write-backs stand still for late_ps; other queues
	                              overtake it, which hardware may do, its own order stays */
	sim_ps late_ps;
	sim_ps flap_at, flap_for;  /* the link is down from flap_at on; flap_at 0 = never */
	sim_ps flap_every;         /* and again after so long; 0 = once */
	sim_ps hang_at;            /* the engines stop until a reset; 0 = never */
};

struct lab_fault_counts {
	uint64_t lost_irqs, late, flaps, hangs;
};

struct lab_fault {
	struct lab_fault_config config;
	struct lab_fault_counts counts;
	uint64_t state;
	struct lab_chip *chip;
	struct sim_event flap, hang;
};

/* Gives the chip faults and starts their timers. The caller's struct must outlive the chip. */
void lab_fault_start(struct lab_fault *fault, const struct lab_fault_config *config,
                     struct lab_chip *chip);
/* Takes them off again. */
void lab_fault_stop(struct lab_fault *fault);

/* Does it happen this time? */
bool lab_fault_draw(struct lab_fault *fault, uint32_t ppm);

#endif
