/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An 82599 on a bench: its link, a wire with the test at the other end, and memory, all driven by
 * registers only. Register numbers here are the datasheet's, written out once more.
 */
#ifndef HOLDOFF_TESTS_LAB_82599_RIG_H
#define HOLDOFF_TESTS_LAB_82599_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/chip.h"
#include "lab/i82599.h"
#include "lab/pci.h"
#include "lab/wire.h"

#define US       SIM_PS_PER_US
#define NS       SIM_PS_PER_NS
#define RIG_MEM  (4u << 20)
#define RIG_SEEN 4096

#define TX_BASE 0x000000u /* where things are in the rig's memory */
#define RX_BASE 0x010000u
#define TX_DATA 0x100000u
#define RX_DATA 0x200000u
#define HEAD_WB 0x0f0000u

struct rig {
	struct sim *sim;
	struct lab_pci *pci;
	struct lab_wire *wire;
	struct lab_chip *chip;
	uint8_t *mem;
	uint64_t iova;
	unsigned frames, irqs;
	struct {
		sim_ps at;
		uint32_t bytes;
		uint8_t data[2048];
	} frame[RIG_SEEN];
	struct {
		sim_ps at;
		unsigned vector;
	} irq[RIG_SEEN];
	uint32_t tail;
};

static inline void rig_frame(void *arg, const struct lab_frame *f)
{
	struct rig *r = arg;

	if (r->frames < RIG_SEEN) {
		r->frame[r->frames].at = f->at;
		r->frame[r->frames].bytes = f->bytes;
		memcpy(r->frame[r->frames].data, f->data, f->bytes < 2048 ? f->bytes : 2048);
	}
	r->frames++;
}

static inline void rig_message(void *arg, unsigned vector)
{
	struct rig *r = arg;

	if (r->irqs < RIG_SEEN) {
		r->irq[r->irqs].at = sim_now(r->sim);
		r->irq[r->irqs].vector = vector;
	}
	r->irqs++;
}

static inline void rig_run(struct rig *r, sim_ps time)
{
	sim_run_until(r->sim, sim_now(r->sim) + time);
}

static inline void wr(struct rig *r, uint32_t reg, uint32_t value)
{
	while (!lab_pci_register_write(r->pci, reg, value, 4))
		sim_run_until(r->sim, lab_pci_posted_at(r->pci));
}

static inline uint32_t rd(struct rig *r, uint32_t reg)
{
	struct lab_pci_register_read read;

	sim_run_until(r->sim, lab_pci_register_read(r->pci, &read, reg, 4));
	assert_true(read.arrived);
	sim_run_until(r->sim, read.back);
	return read.value;
}

static inline void rig_check(struct rig *r)
{
	struct ho_err err = { 0 };

	if (r->chip->ops->check(r->chip, &err) || lab_wire_check(r->wire, &err))
		fail_msg("%s", err.text);
}

static inline uint32_t txq(unsigned q, uint32_t reg)
{
	return 0x6000 + q * 0x40 + reg;
}

static inline uint32_t rxq(unsigned q, uint32_t reg)
{
	return 0x1000 + q * 0x40 + reg;
}

static inline struct rig *rig_new(void)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	struct rig *r = calloc(1, sizeof(*r));

	assert_int_equal(sim_create(&r->sim), 0);
	assert_int_equal(lab_pci_create(r->sim, &(struct lab_pci_config){ 0 }, &r->pci, NULL), 0);
	assert_int_equal(lab_wire_create(r->sim, &(struct lab_wire_config){ 0 }, &r->wire, NULL),
			 0);
	struct lab_i82599_config config = { .name = "rig" };
	memcpy(config.mac, mac, 6);
	assert_int_equal(lab_i82599_create(r->sim, r->pci, &config, &r->chip, NULL), 0);
	lab_chip_attach(r->chip, r->wire, 0);
	lab_wire_attach(r->wire, 1, &(struct lab_wire_user){ .receive = rig_frame, .arg = r });
	lab_pci_set_host(r->pci, &(struct lab_pci_host){ .message = rig_message, .arg = r });
	r->mem = aligned_alloc(4096, RIG_MEM);
	memset(r->mem, 0, RIG_MEM);
	assert_int_equal(lab_pci_map(r->pci, r->mem, RIG_MEM, &r->iova, NULL), 0);
	wr(r, 0x0, 1u << 26);
	rig_run(r, 20 * US);
	assert_int_equal(rd(r, 0x0) & 1u << 26, 0);
	assert_int_equal(rd(r, 0x42A4) >> 28, 7); /* up, 10 Gbit/s */
	return r;
}

static inline void rig_free(struct rig *r)
{
	rig_check(r);
	lab_chip_destroy(r->chip);
	lab_wire_destroy(r->wire);
	lab_pci_destroy(r->pci);
	sim_destroy(r->sim);
	free(r->mem);
	free(r);
}

/* MSI-X with auto mask off; queue 0's causes go to vector `tx` and `rx`, which are unmasked. */
static inline void rig_irq(struct rig *r, unsigned rx, unsigned tx, uint32_t eitr)
{
	wr(r, 0x898, 1u << 4 | 1u << 5);
	wr(r, 0x900, (0x80 | rx) | (0x80 | tx) << 8);
	wr(r, 0x820 + 4 * rx, eitr);
	wr(r, 0x820 + 4 * tx, eitr);
	wr(r, 0x810, 1u << rx | 1u << tx);
	wr(r, 0x880, 1u << rx | 1u << tx);
}

static inline void rig_tx(struct rig *r, unsigned count, unsigned wthresh)
{
	wr(r, 0x4A80, 1);
	wr(r, txq(0, 0x00), (uint32_t)(r->iova + TX_BASE));
	wr(r, txq(0, 0x04), (uint32_t)((r->iova + TX_BASE) >> 32));
	wr(r, txq(0, 0x08), count * 16);
	wr(r, txq(0, 0x28), 1u << 25 | wthresh << 16 | 1u << 8 | 32);
	rig_run(r, 5 * US);
	assert_true(rd(r, txq(0, 0x28)) & 1u << 25);
	r->tail = 0;
}

static inline void put_desc(struct rig *r, uint32_t base, uint32_t index, uint64_t addr,
			    uint32_t d2, uint32_t d3)
{
	uint8_t *d = r->mem + base + index * 16;

	memcpy(d, &addr, 8);
	memcpy(d + 8, &d2, 4);
	memcpy(d + 12, &d3, 4);
}

static inline uint32_t tx_status(struct rig *r, uint32_t index)
{
	return r->mem[TX_BASE + index * 16 + 12] & 1;
}

#define EOP  (1u << 24)
#define IFCS (1u << 25)
#define RS   (1u << 27)
#define DEXT (1u << 29)
#define VLE  (1u << 30)
#define TSE  (1u << 31)

/* A data descriptor for `bytes` bytes at TX_DATA + offset; `total` goes into PAYLEN. */
static inline void tx_put(struct rig *r, uint32_t offset, uint32_t bytes, uint32_t total,
			  uint32_t flags, uint32_t info)
{
	put_desc(r, TX_BASE, r->tail, r->iova + TX_DATA + offset,
		 bytes | 3u << 20 | DEXT | IFCS | flags, total << 14 | info);
	r->tail++;
}

static inline void tx_context(struct rig *r, uint32_t vlan, uint32_t mac, uint32_t ip,
			      uint32_t type, uint32_t mss, uint32_t l4)
{
	put_desc(r, TX_BASE, r->tail, vlan << 16 | mac << 9 | ip, 2u << 20 | DEXT | type,
		 mss << 16 | l4 << 8);
	r->tail++;
}

static inline void rig_rx(struct rig *r, unsigned q, unsigned count, unsigned filled,
			  uint32_t srrctl, uint32_t rxdctl)
{
	uint32_t ring = RX_BASE + q * 0x2000;

	for (unsigned i = 0; i < count; i++)
		put_desc(r, ring, i, r->iova + RX_DATA + (q * 64 + i % 64) * 2048, 0, 0);
	wr(r, rxq(q, 0x00), (uint32_t)(r->iova + ring));
	wr(r, rxq(q, 0x04), (uint32_t)((r->iova + ring) >> 32));
	wr(r, rxq(q, 0x08), count * 16);
	wr(r, rxq(q, 0x14), srrctl);
	wr(r, rxq(q, 0x28), 1u << 25 | rxdctl);
	wr(r, rxq(q, 0x18), filled);
	wr(r, 0x5080, 1u << 9 | 1u << 10); /* promiscuous, broadcast */
	wr(r, 0x3000, 1);
	rig_run(r, 5 * US);
}

static inline const uint32_t *rx_desc(struct rig *r, unsigned q, unsigned index)
{
	return (const uint32_t *)(r->mem + RX_BASE + q * 0x2000 + index * 16);
}

static inline void send_frame(struct rig *r, const void *data, uint32_t bytes)
{
	struct lab_frame *f = lab_wire_begin(r->wire, 1, bytes);

	memcpy(f->data, data, bytes);
	lab_wire_send(r->wire, 1, bytes, 0);
}

#endif
