// SPDX-License-Identifier: BSD-2-Clause
#include "lab/fault.h"

#include "lab/chip.h"

static void flap(void *arg)
{
	struct lab_fault *fault = arg;
	struct lab_chip *chip = fault->chip;
	bool up = lab_wire_link(chip->wire);
	sim_ps now = sim_now(chip->sim);

	if (up) {
		fault->counts.flaps++;
		lab_wire_set_link(chip->wire, false);
		sim_schedule(chip->sim, &fault->flap, now + fault->config.flap_for);
		return;
	}
	lab_wire_set_link(chip->wire, true);
	if (fault->config.flap_every)
		sim_schedule(chip->sim, &fault->flap, now + fault->config.flap_every);
}

static void hang(void *arg)
{
	struct lab_fault *fault = arg;

	fault->counts.hangs++;
	fault->chip->ops->hang(fault->chip);
}

void lab_fault_start(struct lab_fault *fault, const struct lab_fault_config *config,
		     struct lab_chip *chip)
{
	*fault = (struct lab_fault){ .config = *config, .state = config->seed, .chip = chip };
	sim_event_init(&fault->flap, flap, fault);
	sim_event_init(&fault->hang, hang, fault);
	if (config->flap_at)
		sim_schedule(chip->sim, &fault->flap, config->flap_at);
	if (config->hang_at)
		sim_schedule(chip->sim, &fault->hang, config->hang_at);
	chip->fault = fault;
}

void lab_fault_stop(struct lab_fault *fault)
{
	if (!fault->chip)
		return;
	sim_cancel(fault->chip->sim, &fault->flap);
	sim_cancel(fault->chip->sim, &fault->hang);
	fault->chip->fault = NULL;
	fault->chip = NULL;
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
bool lab_fault_draw(struct lab_fault *fault, uint32_t ppm)
{
	uint64_t z;

	if (!ppm)
		return false;
	z = fault->state += 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return (z >> 32) * 1000000ull >> 32 < ppm;
}
