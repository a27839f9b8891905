/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt moderation: how long to wait between two interrupts of a queue pair, decided from what
 * the last ones brought. Pure code: it is told what happened and when, and answers with a time.
 *
 *   fixed           always the same
 *   adaptive-2.6    what ixgbe of the Linux 2.6 and 3.x era does for `rx-usecs 1`: three classes
 *                   by bytes per microsecond, approached smoothly
 *   adaptive-2017   the rule that replaced it: aims at 48 to 95 frames an interrupt
 *   dim-*           Linux's dynamic interrupt moderation (lib/dim): climbs a ladder of profiles
 *                   while throughput gets better; profiles for receive or transmit, for timers
 *                   that start at the last event (eqe) or at the completion (cqe)
 *
 * Times are what is asked of the chip; chips round (ixgbe's microsecond is 1.024 long).
 */
#ifndef HOLDOFF_MAC_MODERATION_H
#define HOLDOFF_MAC_MODERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum mac_mod_kind {
	MAC_MOD_FIXED,
	MAC_MOD_ADAPTIVE_2_6,
	MAC_MOD_ADAPTIVE_2017,
	MAC_MOD_DIM_RX_EQE,
	MAC_MOD_DIM_RX_CQE,
	MAC_MOD_DIM_TX_EQE,
	MAC_MOD_DIM_TX_CQE,
	MAC_MOD_KINDS,
};

/* "adaptive-2.6". */
const char *mac_mod_name(enum mac_mod_kind kind);
/* -EINVAL for a name that is none; err lists them. */
int mac_mod_from_name(const char *name, enum mac_mod_kind *out, struct ho_err *err);

/* What happened since the last update of the pair: one interrupt and its polls. */
struct mac_mod_sample {
	uint64_t now_ns;
	uint32_t rx_packets, rx_bytes;
	uint32_t tx_packets, tx_bytes;
};

/* Byte rate classes of adaptive-2.6. */
enum mac_mod_class { MAC_MOD_LOWEST, MAC_MOD_LOW, MAC_MOD_BULK };

/* adaptive-2017: of one direction. */
struct mac_mod_2017 {
	uint8_t usecs;      /* bit 7: latency mode */
	uint64_t next_tick; /* an update later than this tick starts over */
};

enum mac_dim_tune { MAC_DIM_ON_TOP, MAC_DIM_TIRED, MAC_DIM_RIGHT, MAC_DIM_LEFT };

struct mac_dim_rates {
	uint64_t bytes, packets, events; /* each per millisecond, rounded up */
};

struct mac_dim {
	enum mac_dim_tune tune;
	bool measuring;
	unsigned profile; /* 0 .. 4 */
	unsigned steps_right, steps_left, tired;
	struct mac_dim_rates prev;
	uint64_t start_ns;
	uint64_t bytes, packets; /* since start_ns */
	unsigned events;
};

struct mac_moderation {
	enum mac_mod_kind kind;
	uint64_t link_bps;
	uint32_t spacing_ns; /* the answer: time between two interrupts */
	uint32_t frames;     /* DIM: or so many frames, where a chip counts them; 0 = no limit */
	union {
		struct {
			uint32_t itr; /* quarters of a microsecond */
			enum mac_mod_class rx, tx;
		} a26;
		struct {
			uint32_t itr; /* quarters of a microsecond */
			struct mac_mod_2017 rx, tx;
		} a2017;
		struct mac_dim dim;
	};
};

/* spacing_ns counts for fixed only; the others start where Linux starts them. link_bps is used by
 * adaptive-2017 (10 or 1 Gbit/s; 0 = 10). */
void mac_moderation_init(struct mac_moderation *m, enum mac_mod_kind kind, uint32_t spacing_ns,
			 uint64_t link_bps);

/* One more interrupt's work is complete. Returns the spacing to use from now on, in ns. */
uint32_t mac_moderation_update(struct mac_moderation *m, const struct mac_mod_sample *sample);

#endif
