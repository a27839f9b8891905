/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a driver reaches its chip: registers, DMA memory, interrupts. The same driver file runs over
 * VFIO on hardware and over the lab's chip models.
 *
 * Registers are little endian, as PCI is. Over VFIO `bar` is the mapped region and an access is a
 * volatile load or store; in the lab `bar` is NULL and the access is a priced PCI transaction:
 * writes are posted (they return at once and arrive in order), reads wait and flush them.
 *
 * DMA memory is the process's own memory; the chip sees it at the IO address (`iova`) that the bus
 * gave. The driver makes descriptors visible with nic_wmb() before it rings a doorbell, and reads
 * nothing of a descriptor before nic_rmb() after it saw its done bit.
 */
#ifndef HOLDOFF_NIC_BUS_H
#define HOLDOFF_NIC_BUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "runtime/rt.h"

struct nic_bus;

/* Memory that CPU and chip share: rings, write-back areas. */
struct nic_dma {
	void *va;      /* the CPU's address */
	uint64_t iova; /* the chip's address */
	size_t bytes;
};

struct nic_bus_ops {
	/* width is 1, 2 or 4 bytes */
	uint32_t (*read)(struct nic_bus *bus, uint32_t reg, unsigned width);
	void (*write)(struct nic_bus *bus, uint32_t reg, uint32_t value, unsigned width);
	uint16_t (*config_read16)(struct nic_bus *bus, unsigned offset);
	void (*config_write16)(struct nic_bus *bus, unsigned offset, uint16_t value);
	/* Zeroed memory, aligned to 4096, physically contiguous as far as the chip sees. */
	int (*dma_alloc)(struct nic_bus *bus, size_t bytes, struct nic_dma *out,
			 struct ho_err *err);
	void (*dma_free)(struct nic_bus *bus, struct nic_dma *dma);
	/* Makes existing memory (the packet arena) reachable: iova of its first byte. */
	int (*dma_map)(struct nic_bus *bus, void *va, size_t bytes, uint64_t *iova,
		       struct ho_err *err);
	void (*dma_unmap)(struct nic_bus *bus, void *va, size_t bytes);
	/*
	 * The event that vector `vector` signals: MSI-X vector number, or 0 for a chip with a
	 * single line. The bus owns it. A line interrupt is masked by the bus when it fires;
	 * irq_unmask arms it again. For MSI-X irq_unmask does nothing.
	 */
	int (*irq_event)(struct nic_bus *bus, unsigned vector, struct rt_event **out,
			 struct ho_err *err);
	void (*irq_unmask)(struct nic_bus *bus, unsigned vector);
	unsigned (*irq_vectors)(struct nic_bus *bus); /* how many there are */
	void (*close)(struct nic_bus *bus);
};

struct nic_bus {
	const struct nic_bus_ops *ops;
	struct rt *rt;         /* whose clock the chip lives in */
	volatile uint8_t *bar; /* the registers, mapped; NULL in the lab */
	size_t bar_bytes;
	uint16_t vendor_id, device_id; /* from configuration space */
	const char *name;              /* for messages: "0000:01:00.0" or "lab:dut/ixgbe0" */
};

static inline uint32_t nic_read32(struct nic_bus *bus, uint32_t reg)
{
	if (ho_likely(bus->bar))
		return *(volatile uint32_t *)(bus->bar + reg);
	return bus->ops->read(bus, reg, 4);
}

static inline void nic_write32(struct nic_bus *bus, uint32_t reg, uint32_t value)
{
	if (ho_likely(bus->bar))
		*(volatile uint32_t *)(bus->bar + reg) = value;
	else
		bus->ops->write(bus, reg, value, 4);
}

static inline uint16_t nic_read16(struct nic_bus *bus, uint32_t reg)
{
	if (ho_likely(bus->bar))
		return *(volatile uint16_t *)(bus->bar + reg);
	return (uint16_t)bus->ops->read(bus, reg, 2);
}

static inline void nic_write16(struct nic_bus *bus, uint32_t reg, uint16_t value)
{
	if (ho_likely(bus->bar))
		*(volatile uint16_t *)(bus->bar + reg) = value;
	else
		bus->ops->write(bus, reg, value, 2);
}

static inline uint8_t nic_read8(struct nic_bus *bus, uint32_t reg)
{
	if (ho_likely(bus->bar))
		return *(bus->bar + reg);
	return (uint8_t)bus->ops->read(bus, reg, 1);
}

static inline void nic_write8(struct nic_bus *bus, uint32_t reg, uint8_t value)
{
	if (ho_likely(bus->bar))
		*(bus->bar + reg) = value;
	else
		bus->ops->write(bus, reg, value, 1);
}

/* x86 keeps stores in order and loads in order: only the compiler must be held back. */
#if defined(__x86_64__)
#define nic_wmb() __asm__ volatile("" ::: "memory")
#define nic_rmb() __asm__ volatile("" ::: "memory")
#else
#define nic_wmb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define nic_rmb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

#endif
