// SPDX-License-Identifier: BSD-2-Clause
#include "lab/bus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab/exec.h"

#define MAX_VECTORS  128
#define CONFIG_BYTES 256

struct lab_bus {
	struct nic_bus bus;
	struct lab_chip *chip;
	struct lab_pci *pci;
	struct rt_event *events[MAX_VECTORS]; /* made when asked for */
	struct lab_bus_stats stats;
	bool line;  /* is asserted */
	bool armed; /* the line may interrupt */
	uint8_t space[CONFIG_BYTES];
};

static struct lab_bus *of(struct nic_bus *bus)
{
	return HO_CONTAINER_OF(bus, struct lab_bus, bus);
}

/* --- registers ---------------------------------------------------------------------------- */

static uint32_t bus_read(struct nic_bus *bus, uint32_t reg, unsigned width)
{
	struct lab_bus *lb = of(bus);
	struct lab_pci_register_read read;
	sim_ps at = lab_pci_register_read(lb->pci, &read, reg, width);

	lab_exec_stall(bus->rt, at);
	if (!read.arrived) {
		lab_pci_register_read_now(&read);
		return read.value;
	}
	lab_exec_stall(bus->rt, read.back);
	return read.value;
}

static void bus_write(struct nic_bus *bus, uint32_t reg, uint32_t value, unsigned width)
{
	struct lab_bus *lb = of(bus);
	struct lab_pci *pci = lb->pci;
	sim_ps cost = lab_pci_config(pci)->cpu_write;

	while (!lab_pci_register_write(pci, reg, value, width)) {
		sim_ps at = lab_pci_posted_at(pci);

		lab_exec_stall(bus->rt, at);
		if (lab_pci_posted_at(pci) == at)
			lab_pci_posted_flush(pci);
	}
	if (cost)
		lab_exec_spend_ps(bus->rt, cost);
}

static uint16_t bus_config_read16(struct nic_bus *bus, unsigned offset)
{
	uint16_t value;

	if (offset > CONFIG_BYTES - 2)
		return 0xffff;
	memcpy(&value, &of(bus)->space[offset], 2);
	return value;
}

static void bus_config_write16(struct nic_bus *bus, unsigned offset, uint16_t value)
{
	/* The command register is all that a driver may change (PCI, 6.2.2). */
	if (offset == 0x04)
		memcpy(&of(bus)->space[offset], &value, 2);
}

/* --- memory ------------------------------------------------------------------------------- */

static int bus_dma_alloc(struct nic_bus *bus, size_t bytes, struct nic_dma *out, struct ho_err *err)
{
	size_t whole = HO_ALIGN_UP(HO_MAX(bytes, (size_t)1), 4096);
	int ret;

	*out = (struct nic_dma){ .va = aligned_alloc(4096, whole), .bytes = bytes };
	if (!out->va)
		return ho_err_set(err, -ENOMEM, "%s: no memory for %zu bytes of DMA memory",
				  bus->name, bytes);
	memset(out->va, 0, whole);
	ret = lab_pci_map(of(bus)->pci, out->va, bytes, &out->iova, err);
	if (ret) {
		free(out->va);
		out->va = NULL;
	}
	return ret;
}

static void bus_dma_free(struct nic_bus *bus, struct nic_dma *dma)
{
	if (!dma->va)
		return;
	lab_pci_unmap(of(bus)->pci, dma->va);
	free(dma->va);
	dma->va = NULL;
}

static int bus_dma_map(struct nic_bus *bus, void *va, size_t bytes, uint64_t *iova,
		       struct ho_err *err)
{
	return lab_pci_map(of(bus)->pci, va, bytes, iova, err);
}

static void bus_dma_unmap(struct nic_bus *bus, void *va, size_t bytes)
{
	lab_pci_unmap(of(bus)->pci, va);
}

/* --- interrupts --------------------------------------------------------------------------- */

static void message(void *arg, unsigned vector)
{
	struct lab_bus *lb = arg;

	lb->stats.messages++;
	if (vector < MAX_VECTORS && lb->events[vector])
		rt_event_signal(lb->bus.rt, lb->events[vector]);
	else
		lb->stats.stray++;
}

static void fire_line(struct lab_bus *lb)
{
	if (!lb->line || !lb->armed || !lb->events[0])
		return;
	lb->armed = false;
	lb->stats.lines++;
	rt_event_signal(lb->bus.rt, lb->events[0]);
}

static void line(void *arg, bool asserted)
{
	struct lab_bus *lb = arg;

	lb->line = asserted;
	fire_line(lb);
}

static int bus_irq_event(struct nic_bus *bus, unsigned vector, struct rt_event **out,
			 struct ho_err *err)
{
	struct lab_bus *lb = of(bus);
	unsigned vectors = bus->ops->irq_vectors(bus);

	if (vector >= vectors)
		return ho_err_set(err, -EINVAL, "%s: no interrupt vector %u; there are %u",
				  bus->name, vector, vectors);
	if (!lb->events[vector]) {
		int ret = rt_event_create(bus->rt, &lb->events[vector], err);

		if (ret)
			return ret;
	}
	*out = lb->events[vector];
	fire_line(lb);
	return 0;
}

static void bus_irq_unmask(struct nic_bus *bus, unsigned vector)
{
	struct lab_bus *lb = of(bus);

	if (vector)
		return;
	lb->armed = true;
	fire_line(lb);
}

static unsigned bus_irq_vectors(struct nic_bus *bus)
{
	unsigned vectors = of(bus)->chip->vectors;

	return HO_MAX(vectors, 1u);
}

static void bus_close(struct nic_bus *bus)
{
	struct lab_bus *lb = of(bus);

	lab_pci_set_host(lb->pci, &(struct lab_pci_host){ .message = NULL });
	for (unsigned v = 0; v < MAX_VECTORS; v++)
		rt_event_destroy(bus->rt, lb->events[v]);
	free(lb);
}

static const struct nic_bus_ops lab_bus_ops = {
	.read = bus_read,
	.write = bus_write,
	.config_read16 = bus_config_read16,
	.config_write16 = bus_config_write16,
	.dma_alloc = bus_dma_alloc,
	.dma_free = bus_dma_free,
	.dma_map = bus_dma_map,
	.dma_unmap = bus_dma_unmap,
	.irq_event = bus_irq_event,
	.irq_unmask = bus_irq_unmask,
	.irq_vectors = bus_irq_vectors,
	.close = bus_close,
};

static void put16(uint8_t *space, unsigned offset, uint16_t value)
{
	memcpy(space + offset, &value, 2);
}

int lab_bus_create(struct rt *rt, struct lab_chip *chip, struct nic_bus **out, struct ho_err *err)
{
	struct lab_bus *lb = calloc(1, sizeof(*lb));

	if (!lb)
		return ho_err_set(err, -ENOMEM, "%s: no memory for its bus", chip->name);
	lb->chip = chip;
	lb->pci = chip->pci;
	lb->armed = true;
	lb->bus = (struct nic_bus){
		.ops = &lab_bus_ops,
		.rt = rt,
		.bar_bytes = chip->bar_bytes,
		.vendor_id = chip->vendor_id,
		.device_id = chip->device_id,
		.name = chip->name,
	};
	put16(lb->space, 0x00, chip->vendor_id);
	put16(lb->space, 0x02, chip->device_id);
	put16(lb->space, 0x04, 0x0006); /* memory space, bus master */
	put16(lb->space, 0x0a, 0x0200); /* class: Ethernet controller */
	put16(lb->space, 0x2c, chip->vendor_id);
	put16(lb->space, 0x2e, chip->subsystem_id);
	lab_pci_set_chip(chip->pci, chip);
	lab_pci_set_host(chip->pci,
			 &(struct lab_pci_host){ .message = message, .line = line, .arg = lb });
	*out = &lb->bus;
	return 0;
}

void lab_bus_stats(const struct nic_bus *bus, struct lab_bus_stats *out)
{
	*out = HO_CONTAINER_OF(bus, struct lab_bus, bus)->stats;
}
