/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bus and just enough of an 82599 for tests of the driver: registers are an array with a few that
 * behave, DMA addresses are the memory's own plus an offset, and the chip works only when the test
 * says so. It checks what the driver must not do.
 */
#ifndef HOLDOFF_TESTS_IXGBE_FAKE_H
#define HOLDOFF_TESTS_IXGBE_FAKE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/bus.h"
#include "nic/ixgbe.h"
#include "nic/ixgbe_dev.h"

#define FAKE_IOVA   0x100000000000ull /* so that a CPU address used as DMA address is seen */
#define FAKE_BAR    0x20000
#define FAKE_QUEUES 16

struct fake {
	struct nic_bus bus;
	uint32_t reg[FAKE_BAR / 4];
	struct rt_event *event[64];
	unsigned vectors;
	/* faults */
	bool fail_map, stuck_reset, stuck_queue, hang;
	unsigned fail_alloc_at, allocs; /* this allocation fails, counted from 1 */
	/* what happened */
	unsigned live_dma, mapped, reads, writes, doorbells, resets, unmasks, eics;
	uint32_t head[FAKE_QUEUES];  /* transmit */
	uint32_t rhead[FAKE_QUEUES]; /* receive */
	union ixgbe_tx_desc ctx[FAKE_QUEUES][2];
	unsigned contexts_loaded;
	/* last frame sent */
	uint8_t frame[PK_FRAME_MAX_BYTES];
	uint32_t frame_len, frame_cmd, frame_olinfo;
	union ixgbe_tx_desc frame_ctx;
	uint64_t sent[FAKE_QUEUES];
};

static inline uint32_t *fake_reg(struct fake *f, uint32_t reg)
{
	assert_true(reg < FAKE_BAR && reg % 4 == 0);
	return &f->reg[reg / 4];
}

static inline void fake_power_on(struct fake *f)
{
	memset(f->reg, 0, sizeof(f->reg));
	memset(f->head, 0, sizeof(f->head));
	memset(f->rhead, 0, sizeof(f->rhead));
	*fake_reg(f, IXGBE_EEC) = IXGBE_EEC_ARD;
	*fake_reg(f, IXGBE_RDRXCTL) = IXGBE_RDRXCTL_DMAIDONE;
	*fake_reg(f, IXGBE_LINKS) = IXGBE_LINKS_UP | IXGBE_LINKS_SPEED_10G;
	*fake_reg(f, IXGBE_RAL(0)) = 0x33221100;
	*fake_reg(f, IXGBE_RAH(0)) = IXGBE_RAH_AV | 0x5544;
	for (unsigned i = 0; i < FAKE_QUEUES; i++)
		*fake_reg(f, IXGBE_DCA_RXCTRL(i)) = IXGBE_DCA_RXCTRL_RSVD;
}

static inline bool fake_is_queue_reg(uint32_t reg, uint32_t base, unsigned *q)
{
	if (reg < base || reg >= base + FAKE_QUEUES * 0x40 || (reg - base) % 0x40)
		return false;
	*q = (reg - base) / 0x40;
	return true;
}

static inline uint32_t fake_read(struct nic_bus *bus, uint32_t reg, unsigned width)
{
	struct fake *f = (struct fake *)bus;
	uint32_t value = *fake_reg(f, reg);
	unsigned q;

	assert_int_equal(width, 4);
	f->reads++;
	if (fake_is_queue_reg(reg, IXGBE_TDH(0), &q))
		return f->head[q];
	if (f->stuck_queue && fake_is_queue_reg(reg, IXGBE_TXDCTL(0), &q))
		return value & ~IXGBE_TXDCTL_ENABLE;
	if ((reg >= 0x3FA0 && reg < 0x3FC0) || (reg >= 0x4000 && reg < 0x4200))
		*fake_reg(f, reg) = 0; /* statistics clear on read */
	if (fake_is_queue_reg(reg, IXGBE_QPRDC(0), &q))
		*fake_reg(f, reg) = 0;
	return value;
}

static inline void fake_write(struct nic_bus *bus, uint32_t reg, uint32_t value, unsigned width)
{
	struct fake *f = (struct fake *)bus;
	unsigned q;

	assert_int_equal(width, 4);
	f->writes++;
	if (reg == IXGBE_CTRL && (value & IXGBE_CTRL_RST)) {
		f->resets++;
		fake_power_on(f);
		*fake_reg(f, IXGBE_CTRL) = f->stuck_reset ? IXGBE_CTRL_RST : 0;
		return;
	}
	*fake_reg(f, reg) = value;
	if (reg == IXGBE_EIMS_EX(0))
		f->unmasks++;
	if (reg == IXGBE_EICS_EX(0))
		f->eics++;
	if (fake_is_queue_reg(reg, IXGBE_TDT(0), &q) && value) {
		f->doorbells++;
		assert_true(value < *fake_reg(f, IXGBE_TDLEN(q)) / 16);
		assert_true(*fake_reg(f, IXGBE_TXDCTL(q)) & IXGBE_TXDCTL_ENABLE);
	}
	if (fake_is_queue_reg(reg, IXGBE_RDT(0), &q) && value)
		assert_true(value < *fake_reg(f, IXGBE_RDLEN(q)) / 16);
	if (fake_is_queue_reg(reg, IXGBE_TDH(0), &q))
		f->head[q] = value;
}

static inline uint16_t fake_config_read(struct nic_bus *bus, unsigned offset)
{
	return 0;
}

static inline void fake_config_write(struct nic_bus *bus, unsigned offset, uint16_t value)
{
}

static inline int fake_dma_alloc(struct nic_bus *bus, size_t bytes, struct nic_dma *out,
				 struct ho_err *err)
{
	struct fake *f = (struct fake *)bus;

	if (++f->allocs == f->fail_alloc_at)
		return ho_err_set(err, -ENOMEM, "no DMA memory");
	out->va = aligned_alloc(4096, HO_ALIGN_UP(bytes, (size_t)4096));
	memset(out->va, 0, bytes);
	out->bytes = bytes;
	out->iova = (uintptr_t)out->va + FAKE_IOVA;
	f->live_dma++;
	return 0;
}

static inline void fake_dma_free(struct nic_bus *bus, struct nic_dma *dma)
{
	free(dma->va);
	((struct fake *)bus)->live_dma--;
}

static inline int fake_dma_map(struct nic_bus *bus, void *va, size_t bytes, uint64_t *iova,
			       struct ho_err *err)
{
	struct fake *f = (struct fake *)bus;

	if (f->fail_map)
		return ho_err_set(err, -EPERM, "cannot map");
	f->mapped++;
	*iova = (uintptr_t)va + FAKE_IOVA;
	return 0;
}

static inline void fake_dma_unmap(struct nic_bus *bus, void *va, size_t bytes)
{
	((struct fake *)bus)->mapped--;
}

static inline int fake_irq_event(struct nic_bus *bus, unsigned vector, struct rt_event **out,
				 struct ho_err *err)
{
	struct fake *f = (struct fake *)bus;

	if (!f->event[vector] && rt_event_create(bus->rt, &f->event[vector], err) < 0)
		return -ENOMEM;
	*out = f->event[vector];
	return 0;
}

static inline void fake_irq_unmask(struct nic_bus *bus, unsigned vector)
{
}

static inline unsigned fake_irq_vectors(struct nic_bus *bus)
{
	return ((struct fake *)bus)->vectors;
}

static inline void fake_close(struct nic_bus *bus)
{
	struct fake *f = (struct fake *)bus;

	assert_int_equal(f->live_dma, 0);
	assert_int_equal(f->mapped, 0);
	for (unsigned i = 0; i < 64; i++)
		rt_event_destroy(bus->rt, f->event[i]);
	free(f);
}

static inline struct fake *fake_create(struct rt *rt)
{
	static const struct nic_bus_ops ops = {
		.read = fake_read,
		.write = fake_write,
		.config_read16 = fake_config_read,
		.config_write16 = fake_config_write,
		.dma_alloc = fake_dma_alloc,
		.dma_free = fake_dma_free,
		.dma_map = fake_dma_map,
		.dma_unmap = fake_dma_unmap,
		.irq_event = fake_irq_event,
		.irq_unmask = fake_irq_unmask,
		.irq_vectors = fake_irq_vectors,
		.close = fake_close,
	};
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->bus = (struct nic_bus){ .ops = &ops,
				   .rt = rt,
				   .vendor_id = IXGBE_VENDOR_INTEL,
				   .device_id = IXGBE_DEV_82599_SFP,
				   .name = "fake" };
	f->vectors = 64;
	fake_power_on(f);
	return f;
}

static inline void *fake_va(uint64_t iova)
{
	assert_true(iova >= FAKE_IOVA);
	return (void *)(uintptr_t)(iova - FAKE_IOVA);
}

static inline void *fake_ring(struct fake *f, uint32_t bal)
{
	return fake_va(*fake_reg(f, bal) | (uint64_t)*fake_reg(f, bal + 4) << 32);
}

/* Sends up to `frames` frames of queue q; returns how many there were. */
static inline unsigned fake_transmit(struct fake *f, unsigned q, unsigned frames)
{
	union ixgbe_tx_desc *ring = fake_ring(f, IXGBE_TDBAL(q));
	const uint32_t size = *fake_reg(f, IXGBE_TDLEN(q)) / 16;
	unsigned done = 0;

	f->frame_len = 0;
	while (done < frames && f->head[q] != *fake_reg(f, IXGBE_TDT(q)) && !f->hang) {
		union ixgbe_tx_desc *d = &ring[f->head[q]], seen = *d;

		f->head[q] = (f->head[q] + 1) % size;
		assert_true(seen.data.cmd & IXGBE_TXD_DEXT);
		if ((seen.data.cmd & (0xFu << 20)) == IXGBE_TXD_DTYP_CTX) {
			f->ctx[q][seen.ctx.mss_l4 >> 4 & 1] = seen;
			f->contexts_loaded++;
			continue;
		}
		assert_int_equal(seen.data.cmd & (0xFu << 20), IXGBE_TXD_DTYP_DATA);
		assert_true(seen.data.cmd & IXGBE_TXD_IFCS);
		assert_true(seen.data.cmd & 0xFFFF);
		assert_true(f->frame_len + (seen.data.cmd & 0xFFFF) <= sizeof(f->frame));
		memcpy(f->frame + f->frame_len, fake_va(seen.data.addr), seen.data.cmd & 0xFFFF);
		f->frame_len += seen.data.cmd & 0xFFFF;
		if (!(seen.data.cmd & IXGBE_TXD_EOP)) {
			assert_false(seen.data.cmd & IXGBE_TXD_RS);
			continue;
		}
		assert_true(seen.data.cmd & IXGBE_TXD_RS);
		f->frame_cmd = seen.data.cmd;
		f->frame_olinfo = seen.data.olinfo;
		f->frame_ctx = f->ctx[q][seen.data.olinfo >> 4 & 1];
		*d = (union ixgbe_tx_desc){ .wb = { .status = IXGBE_TXD_STAT_DD } };
		f->sent[q]++;
		done++;
		if (done < frames && f->head[q] != *fake_reg(f, IXGBE_TDT(q)))
			f->frame_len = 0;
	}
	return done;
}

/* A frame arrives. False when the ring has no descriptors for it. */
static inline bool fake_receive(struct fake *f, unsigned q, const void *frame, uint32_t len,
				uint32_t status, uint32_t info, uint32_t hash, uint16_t vlan)
{
	union ixgbe_rx_desc *ring = fake_ring(f, IXGBE_RDBAL(q));
	const uint32_t size = *fake_reg(f, IXGBE_RDLEN(q)) / 16;
	const uint32_t room = (*fake_reg(f, IXGBE_SRRCTL(q)) & 0x1F) * 1024;
	const uint32_t need = (len + room - 1) / room;
	const uint32_t have = (*fake_reg(f, IXGBE_RDT(q)) + size - f->rhead[q]) % size;

	if (have < need) {
		(*fake_reg(f, IXGBE_QPRDC(q)))++;
		return false;
	}
	for (uint32_t at = 0; at < len; at += room) {
		union ixgbe_rx_desc *d = &ring[f->rhead[q]];
		uint32_t n = HO_MIN(room, len - at);
		bool last = at + n == len;

		assert_int_equal(d->read.hdr_addr, 0);
		memcpy(fake_va(d->read.addr), (const uint8_t *)frame + at, n);
		*d = (union ixgbe_rx_desc){ .wb = {
						    .info = last ? info : 0,
						    .hash = last ? hash : 0,
						    .len = (uint16_t)n,
						    .vlan = last ? vlan : 0,
						    .status = IXGBE_RXD_DD |
							      (last ? IXGBE_RXD_EOP | status : 0),
					    } };
		f->rhead[q] = (f->rhead[q] + 1) % size;
	}
	return true;
}

#endif
