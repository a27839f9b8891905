/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PCI Express link between a host and one chip.
 *
 *   down (host to chip)   register writes, posted: in order, some time later
 *                         register reads: behind the writes before them
 *                         completions of the chip's memory reads
 *   up (chip to host)     memory writes and interrupt messages, posted: in order
 *                         requests of memory reads
 *                         completions of register reads: behind the writes before them
 *
 * That order is what drivers rely on (PCI Express Base Specification, transaction ordering): an
 * interrupt message never overtakes the data it announces, and a register read pushes everything
 * that is on its way to memory in front of it.
 *
 * A transaction occupies its direction for its payload and tlp_bytes for each packet it is cut
 * into. Memory reads are split: the chip may have `tags` requests outstanding; completions use the
 * down direction one after another. Small traffic against the flow (read requests, register
 * accesses) takes its share of the bandwidth but does not wait for a turn.
 *
 * Memory that a chip may reach is mapped first. IO addresses are given out in order with holes
 * between them: an access outside is a counted fault, reads as ones and writes nothing.
 *
 * Host memory changes at the time a write arrives. Writes that are marked quiet (frame data, which
 * nobody may look at before its descriptor says so) change it at the latest with the next write
 * that is not.
 */
#ifndef HOLDOFF_LAB_PCI_H
#define HOLDOFF_LAB_PCI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "lab/chip.h"
#include "lab/sim.h"

/* Zero means the default. Times in ps. */
struct lab_pci_config {
	struct sim_host *host;         /* whose link and chip it is; NULL = not known */
	uint64_t down_bps, up_bps;     /* bits a second after line coding: 32 Gbit/s (gen 2, x8) */
	uint32_t tlp_bytes;            /* header, framing, CRC, sequence number of a packet: 24 */
	uint32_t max_payload;          /* bytes of a write packet: 256 */
	uint32_t completion_payload;   /* bytes of a completion packet: 256 */
	uint32_t max_read_request;     /* bytes a read request may ask for: 512 */
	uint32_t tags;                 /* read requests outstanding: 32, at most LAB_PCI_TAGS */
	sim_ps latency;                /* one way, besides the bytes' own time: 150 ns */
	sim_ps memory_read;            /* the host's memory until it answers: 230 ns */
	sim_ps memory_write;           /* until a write that arrived can be seen: 20 ns */
	sim_ps register_read;          /* in the chip: 550 ns */
	sim_ps cpu_write;              /* what a posted write costs the CPU: none */
};

#define LAB_PCI_TAGS 256

struct lab_pci_stats {
	uint64_t register_writes, register_reads;
	uint64_t reads, read_bytes;      /* memory, by the chip */
	uint64_t writes, write_bytes;
	uint64_t messages;               /* interrupts, lines included */
	uint64_t up_bytes, down_bytes;   /* all, packets' overhead included */
	sim_ps up_busy, down_busy;       /* time of the directions occupied */
	uint64_t faults;                 /* accesses outside of mapped memory */
	uint64_t posted_full;            /* register writes that found the posted buffer full */
};

/* Where interrupts go; called from sim events at the time of their arrival. */
struct lab_pci_host {
	void (*message)(void *arg, unsigned vector); /* MSI-X */
	void (*line)(void *arg, bool asserted);      /* INTx */
	void *arg;
};

int lab_pci_create(struct sim *sim, const struct lab_pci_config *config, struct lab_pci **out,
                   struct ho_err *err);
/* NULL is allowed. */
void lab_pci_destroy(struct lab_pci *pci);

void lab_pci_set_chip(struct lab_pci *pci, struct lab_chip *chip);
void lab_pci_set_host(struct lab_pci *pci, const struct lab_pci_host *host);
const struct lab_pci_config *lab_pci_config(const struct lab_pci *pci);
void lab_pci_stats(const struct lab_pci *pci, struct lab_pci_stats *out);

/* --- host memory -------------------------------------------------------------------------- */

/* Lets the chip reach [va, va + bytes); *iova is where it sees the first byte. */
int lab_pci_map(struct lab_pci *pci, void *va, size_t bytes, uint64_t *iova, struct ho_err *err);
/* No effect if va was not mapped. */
void lab_pci_unmap(struct lab_pci *pci, const void *va);

/*
 * The host's address of [iova, iova + bytes); NULL and a counted fault if that is not mapped. *hint
 * is the caller's, one for each kind of memory it uses, 0 at first: the region found last.
 */
void *lab_pci_memory(struct lab_pci *pci, uint64_t iova, size_t bytes, unsigned *hint);

/* --- by the CPU --------------------------------------------------------------------------- */

/* Posts a register write; returns false, and does nothing, when the buffer is full: retry at
 * lab_pci_posted_at(). */
bool lab_pci_register_write(struct lab_pci *pci, uint32_t reg, uint32_t value, unsigned width);
/* When the oldest posted write arrives; SIM_NEVER if there is none. */
sim_ps lab_pci_posted_at(const struct lab_pci *pci);
/* Lets all posted writes arrive now: for accesses from outside of virtual time. */
void lab_pci_posted_flush(struct lab_pci *pci);

/* A register read under way; lives on the reader's stack until done. */
struct lab_pci_register_read {
	struct sim_event arrival;
	struct lab_pci *pci;
	uint32_t reg;
	unsigned width;
	bool arrived;
	uint32_t value; /* valid once arrived */
	sim_ps back;    /* when the CPU has it; valid once arrived */
};

/* Sends the request; returns when it arrives. The reader lets time pass until then and after that
 * until read->back. */
sim_ps lab_pci_register_read(struct lab_pci *pci, struct lab_pci_register_read *read, uint32_t reg,
                             unsigned width);
/* For a reader outside of virtual time: posted writes and the read arrive now. */
void lab_pci_register_read_now(struct lab_pci_register_read *read);

/* --- by the chip -------------------------------------------------------------------------- */

/*
 * Reads `bytes` bytes of memory: only the time; returns when the last of them is in the chip. The
 * caller takes the bytes with lab_pci_memory at any moment between now and then, during which the
 * host must not change them anyway.
 */
sim_ps lab_pci_read(struct lab_pci *pci, uint32_t bytes);
/* When the next read would get its tag; a past time means now. */
sim_ps lab_pci_read_at(const struct lab_pci *pci);

/*
 * Writes `bytes` bytes to iova: fill what lab_pci_write_begin returns, then lab_pci_write_end,
 * which returns the time of arrival.
 */
void *lab_pci_write_begin(struct lab_pci *pci, uint64_t iova, uint32_t bytes);
sim_ps lab_pci_write_end(struct lab_pci *pci, bool quiet);

/* An interrupt message, or the line's change, behind all writes so far. Returns its arrival. */
sim_ps lab_pci_message(struct lab_pci *pci, unsigned vector);
sim_ps lab_pci_line(struct lab_pci *pci, bool asserted);

#endif
