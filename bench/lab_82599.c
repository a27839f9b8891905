// SPDX-License-Identifier: BSD-2-Clause
/*
 * How fast the 82599 model runs, in CPU time: a loop that only moves tail registers sends frames of
 * 60 bytes from one chip to a counter, or to a second chip. Prints nanoseconds and sim events a
 * frame.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/chip.h"
#include "lab/i82599.h"
#include "lab/pci.h"
#include "lab/wire.h"

#define RING   1024u
#define FRAMES 5000000u
#define MEM    (4u << 20)

struct host {
	struct lab_pci *pci;
	struct lab_chip *chip;
	uint8_t *mem;
	uint64_t iova;
};

static uint64_t counted;

static void count(void *arg, const struct lab_frame *frame)
{
	counted++;
}

static void wr(struct host *h, uint32_t reg, uint32_t value)
{
	if (!lab_pci_register_write(h->pci, reg, value, 4)) {
		lab_pci_posted_flush(h->pci);
		lab_pci_register_write(h->pci, reg, value, 4);
	}
}

static void check(int ret)
{
	if (ret) {
		fprintf(stderr, "lab_82599: cannot be set up\n");
		exit(2);
	}
}

static void make_host(struct sim *sim, struct host *h, struct lab_wire *wire, unsigned end)
{
	check(lab_pci_create(sim, &(struct lab_pci_config){ 0 }, &h->pci, NULL));
	check(lab_i82599_create(sim, h->pci,
				&(struct lab_i82599_config){ .name = "bench", .mac = { 2 } },
				&h->chip, NULL));
	lab_chip_attach(h->chip, wire, end);
	h->mem = aligned_alloc(4096, MEM);
	check(!h->mem);
	memset(h->mem, 0, MEM);
	check(lab_pci_map(h->pci, h->mem, MEM, &h->iova, NULL));
}

static void start_tx(struct host *h)
{
	h->mem[1u << 20] = 2;
	for (uint32_t i = 0; i < RING; i++) {
		uint64_t addr = h->iova + (1u << 20);
		uint32_t cmd = 60 | 3u << 20 | 1u << 29 | 1u << 27 | 1u << 25 | 1u << 24;
		uint32_t info = 60u << 14;

		memcpy(h->mem + i * 16, &addr, 8);
		memcpy(h->mem + i * 16 + 8, &cmd, 4);
		memcpy(h->mem + i * 16 + 12, &info, 4);
	}
	wr(h, 0x4A80, 1);
	wr(h, 0x6000, (uint32_t)h->iova);
	wr(h, 0x6004, (uint32_t)(h->iova >> 32));
	wr(h, 0x6008, RING * 16);
	wr(h, 0x898, 1u << 4);
	wr(h, 0x900, 0x80 << 8);
	wr(h, 0x820, 40);
	wr(h, 0x810, 1);
	wr(h, 0x880, 1);
	wr(h, 0x6028, 1u << 25 | 8u << 16 | 1u << 8 | 32);
}

static void start_rx(struct host *h)
{
	for (uint32_t i = 0; i < RING; i++) {
		uint64_t addr = h->iova + (1u << 20) + i * 2048;

		memcpy(h->mem + (1u << 18) + i * 16, &addr, 8);
	}
	wr(h, 0x1000, (uint32_t)(h->iova + (1u << 18)));
	wr(h, 0x1004, (uint32_t)(h->iova >> 32));
	wr(h, 0x1008, RING * 16);
	wr(h, 0x1014, 1u << 25 | 2);
	wr(h, 0x1028, 1u << 25);
	wr(h, 0x1018, RING - 1);
	wr(h, 0x5080, 1u << 9);
	wr(h, 0x3000, 1);
}

static void restore_tx(struct host *h, uint32_t i)
{
	uint64_t addr = h->iova + (1u << 20);
	uint32_t cmd = 60 | 3u << 20 | 1u << 29 | 1u << 27 | 1u << 25 | 1u << 24;
	uint32_t info = 60u << 14;

	memcpy(h->mem + i * 16, &addr, 8);
	memcpy(h->mem + i * 16 + 8, &cmd, 4);
	memcpy(h->mem + i * 16 + 12, &info, 4);
}

/* A tail write each `step` frames, `gap` apart: what a CPU would do. */
static void run(const char *name, bool to_chip, unsigned step, sim_ps gap, sim_ps slack)
{
	struct sim *sim;
	struct lab_wire *wire;
	struct host a = { 0 }, b = { 0 };
	struct timespec t0, t1;
	uint32_t tail = 0, rx_tail = RING - 1;
	uint64_t events, sent = 0;
	struct lab_i82599_counters n = { 0 };
	double ns;

	counted = 0;
	check(sim_create(&sim));
	check(lab_wire_create(sim, &(struct lab_wire_config){ 0 }, &wire, NULL));
	make_host(sim, &a, wire, 0);
	if (to_chip)
		make_host(sim, &b, wire, 1);
	else
		lab_wire_attach(wire, 1,
				&(struct lab_wire_user){ .receive = count, .slack = slack });
	sim_run_until(sim, 100 * SIM_PS_PER_US);
	start_tx(&a);
	if (to_chip)
		start_rx(&b);
	sim_run_until(sim, 200 * SIM_PS_PER_US);
	events = sim_events(sim);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
	for (; sent < FRAMES; sent += step) {
		for (unsigned i = 0; i < step; i++)
			restore_tx(&a, (tail + i) % RING);
		tail = (tail + step) % RING;
		wr(&a, 0x6018, tail);
		sim_run_until(sim, sim_now(sim) + gap);
		if (to_chip && sent && sent % 64 == 0) {
			rx_tail = (rx_tail + 64) % RING;
			wr(&b, 0x1018, rx_tail);
		}
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
	events = sim_events(sim) - events;
	sim_run_until(sim, sim_now(sim) + 1000 * SIM_PS_PER_US);
	ns = (double)(t1.tv_sec - t0.tv_sec) * 1e9 + (double)(t1.tv_nsec - t0.tv_nsec);
	if (to_chip) {
		lab_i82599_counters(b.chip, &n);
		counted = n.rx_delivered;
	}
	printf("%-44s %6.1f ns/frame  %5.2f events/frame  %.2f Mframes/s  %llu of %llu arrived\n",
	       name, ns / (double)sent, (double)events / (double)sent, (double)sent * 1e3 / ns,
	       (unsigned long long)counted, (unsigned long long)sent);
	lab_chip_destroy(a.chip);
	lab_chip_destroy(b.chip);
	lab_wire_destroy(wire);
	lab_pci_destroy(a.pci);
	lab_pci_destroy(b.pci);
	free(a.mem);
	free(b.mem);
	sim_destroy(sim);
}

int main(void)
{
	sim_ps frame = 140 * SIM_PS_PER_NS;

	run("doorbell a frame, to a counter", false, 1, frame, 0);
	run("doorbell a frame, to a counter with slack", false, 1, frame, 10 * SIM_PS_PER_US);
	run("doorbell for 32, to a counter with slack", false, 32, 32 * frame, 10 * SIM_PS_PER_US);
	run("doorbell a frame, chip to chip", true, 1, frame, 0);
	run("doorbell for 32, chip to chip", true, 32, 32 * frame, 0);
	return 0;
}
