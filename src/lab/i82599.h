/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model of the Intel 82599 10 GbE controller, one port, after its datasheet.
 *
 * Transmit (7.2)   Up to 128 queues are in the chip, 64 here. A queue's on-chip cache holds 40
 *                  descriptors, those waiting for write-back included. They are fetched when the
 *                  cache has none to do, or fewer than PTHRESH and the host at least HTHRESH. A
 *                  frame is done when its data is in the packet buffer. Descriptors with RS are
 *                  written back at once (WTHRESH 0) or WTHRESH at a time; a started batch is
 *                  flushed when the vector's interval timer runs out.
 * Receive (7.1)    Filters, RSS, packet buffer, then descriptors are fetched on demand, for all
 *                  frames that wait for the queue at once, and written back together after the
 *                  data.
 * Interrupts (7.3) Causes are mapped to vectors by IVAR. EITR is a least spacing: an interrupt
 *                  goes out at once if the vector's last is longer ago than the interval of
 *                  (value & 0xff8) x 256 ns, else when that is over.
 *
 * Not modelled: flow director, RSC, header split, DCB, virtualisation, flow control, LinkSec,
 * IPsec, IEEE 1588, SCTP checksums. Registers of those keep what is written to them.
 */
#ifndef HOLDOFF_LAB_I82599_H
#define HOLDOFF_LAB_I82599_H

#include "base/error.h"
#include "lab/chip.h"

struct lab_i82599_config {
	const char *name;     /* "dut/ixgbe0"; must outlive the chip */
	uint8_t mac[6];       /* in its EEPROM */
	sim_ps reset_time;    /* of a device reset: 0 = 2 us */
	sim_ps link_time;     /* from reset, or from the cable, to a link: 0 = 10 us */
};

/* The link is the caller's and outlives the chip. */
int lab_i82599_create(struct sim *sim, struct lab_pci *pci, const struct lab_i82599_config *config,
                      struct lab_chip **out, struct ho_err *err);

/* What happened in the chip, for invariants and reports. Never reset. */
#define LAB_I82599_COUNTERS(X)                                                                     \
	X(tx_desc_fetched, "transmit descriptors fetched")                                         \
	X(tx_desc_done, "transmit descriptors written back or retired without")                    \
	X(tx_desc_lost, "transmit descriptors in the chip when it or the queue was reset")         \
	X(tx_writebacks, "writes of transmit descriptors or heads")                                \
	X(tx_frames, "frames put on the wire, segments counted singly")                            \
	X(tx_bad, "frames dropped for malformed descriptors or unmapped memory")                   \
	X(rx_frames, "frames that arrived from the wire")                                          \
	X(rx_delivered, "frames written to host memory")                                           \
	X(rx_off, "frames dropped because the receiver was off or hung")                           \
	X(rx_error, "frames dropped for a bad FCS or a bad length")                                \
	X(rx_filtered, "frames dropped by the address or VLAN filter")                             \
	X(rx_missed, "frames dropped because the packet buffer was full")                          \
	X(rx_no_descriptor, "frames dropped because the queue had no descriptor")                  \
	X(rx_queue_off, "frames dropped because their queue was off")                              \
	X(rx_lost, "frames in the packet buffer when the chip was reset")                          \
	X(rx_desc_fetched, "receive descriptors fetched")                                          \
	X(rx_desc_done, "receive descriptors written back")                                        \
	X(rx_desc_lost, "receive descriptors in the chip when it or the queue was reset")          \
	X(irq_raised, "interrupt causes raised for a vector")                                      \
	X(irq_sent, "interrupts sent")                                                             \
	X(irq_coalesced, "causes that found an interrupt of their vector pending")                 \
	X(irq_cleared, "pending interrupts that software cleared")                                 \
	X(ownership, "descriptors touched outside of head and tail: must be 0")

struct lab_i82599_counters {
#define LAB_I82599_FIELD(name, text) uint64_t name;
	LAB_I82599_COUNTERS(LAB_I82599_FIELD)
#undef LAB_I82599_FIELD
};

void lab_i82599_counters(const struct lab_chip *chip, struct lab_i82599_counters *out);

#endif
