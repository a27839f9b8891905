/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long bytes take at a rate: picoseconds a byte in 48.16 fixed point. Exact for all Ethernet
 * rates (10 Gbit/s is 800 ps a byte); within a part in 10^7 for the odd ones of PCI Express.
 */
#ifndef HOLDOFF_LAB_RATE_H
#define HOLDOFF_LAB_RATE_H

#include "lab/sim.h"

struct lab_rate {
	uint64_t ps_per_byte_16; /* picoseconds a byte, times 65536 */
};

/* bps is bits a second, at least 1 Mbit/s. */
static inline struct lab_rate lab_rate_of(uint64_t bps)
{
	uint64_t whole = 8 * SIM_PS_PER_S / bps, rest = 8 * SIM_PS_PER_S % bps;

	return (struct lab_rate){ (whole << 16) + ((unsigned __int128)rest << 16) / bps };
}

/* bytes up to some 100 MB */
static inline sim_ps lab_rate_time(struct lab_rate rate, uint64_t bytes)
{
	return (bytes * rate.ps_per_byte_16) >> 16;
}

/* The bytes that pass in `time` (up to some seconds), rounded down. */
static inline uint64_t lab_rate_bytes(struct lab_rate rate, sim_ps time)
{
	return (uint64_t)(((unsigned __int128)time << 16) / rate.ps_per_byte_16);
}

#endif
