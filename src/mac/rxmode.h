/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rx-modes: how a queue pair gets attention. One pair, one mode, chosen by name; the same code on
 * the real clock and in the lab.
 *
 *   direct   all work in the interrupt handler
 *   napi     the interrupt masks itself and schedules a poll of at most `weight` frames; polls go
 *            on until one finds less than that; then the interrupt is unmasked
 *   poll     a task that never stops looking; no interrupt
 *
 *                interrupt or task                 consumer
 *      port  -->  a pass: clean sent frames,  -->  consume(slots)   owns them; may send them on
 *                 receive up to a budget
 *                     |
 *                     +-- when a mode says "complete": moderation, then the interrupt is armed
 *
 * A mode is an entry of mac_rxmodes: it decides who calls mac_rx_pass when, and when the pair is
 * complete. A further mode is a file with such an entry; what it keeps is in its own state.
 *
 * Order of calls: open (before the port starts: it binds the pair to a cache of its own), start
 * (after the port started), stop, then port_close, then close.
 */
#ifndef HOLDOFF_MAC_RXMODE_H
#define HOLDOFF_MAC_RXMODE_H

#include <stdbool.h>
#include <stdint.h>

#include "mac/bql.h"
#include "mac/moderation.h"
#include "port/port.h"
#include "runtime/rt.h"

#define MAC_WEIGHT_DEFAULT   64  /* frames a NAPI poll, as Linux */
#define MAC_TX_LIMIT_DEFAULT 256 /* sent descriptors cleaned a pass, as ixgbe */

struct mac_rx_config {
	const char *mode; /* "direct", "napi", "poll" */
	const char *name; /* of its interrupt and tasks; NULL = the mode's */
	struct port *port;
	unsigned queue;    /* of the port: receive queue, and transmit queue of that number */
	int cpu;           /* of interrupt, polls and tasks; -1 = anywhere */
	int weight;        /* frames a pass; 0 = 64 */
	unsigned tx_limit; /* sent descriptors a pass; 0 = 256 */
	/* Name of a moderation (mac/moderation.h). NULL = what the port's rx-usecs says: 1 is
	 * adaptive-2.6, any other value stands as it is. */
	const char *moderation;
	uint32_t spacing_ns; /* for "fixed" */
	/*
	 * napi: after a complete poll, look again after the timeout instead of unmasking, up to
	 * so many times in a row without a received frame (Linux's napi_defer_hard_irqs and
	 * gro_flush_timeout). 0 = off; both are needed.
	 */
	unsigned defer_hard_irqs;
	uint64_t gro_flush_timeout_ns;
	/* Receives whole frames in slots and owns them. `cache` may be used to free and allocate
	 * during the call. Must not wait. */
	void (*consume)(void *arg, struct pk_cache *cache, struct pk_slot *slots, unsigned n);
	void *arg;
	struct mac_bql *bql; /* of the transmit queue; may be NULL */
};

struct mac_rx_stats {
	uint64_t interrupts; /* handlers run */
	uint64_t passes;
	uint64_t exhausted; /* passes that ended at a limit: polled again */
	uint64_t completes; /* pair idle again */
	uint64_t deferrals; /* napi: complete, but the interrupt stayed masked for the timeout */
	uint64_t packets;
};

struct mac_rx;

struct mac_rxmode {
	const char *name;
	const char *help; /* one line */
	/* Attaches interrupts, makes tasks; on failure nothing is left. */
	int (*start)(struct mac_rx *rx, struct ho_err *err);
	/* Nothing of the pair runs any more afterwards. */
	void (*stop)(struct mac_rx *rx);
};

/* One pair under a mode. For modes; others use the functions below. */
struct mac_rx {
	const struct mac_rxmode *mode;
	struct mac_rx_config config;
	struct rt *rt;
	struct port *port;
	struct port_rxq *rxq;
	struct port_txq *txq; /* NULL unless its kind has a cleaner */
	struct pk_cache *cache;
	struct mac_moderation moderation;
	bool moderates;
	struct mac_mod_sample since; /* counts since the last complete */
	struct mac_rx_stats stats;
	uint32_t quit; /* atomic: tasks of the mode end */
	char task_name[16];

	/* what the modes here keep */
	struct rt_irq *irq;
	struct rt_napi *napi;
	struct rt_task *task;
	struct rt_event *timer; /* deferral */
	struct rt_irq *timer_irq;
	unsigned defer_left;
};

/* All modes, ending with NULL. */
extern const struct mac_rxmode *const mac_rxmodes[];

/* Makes it and binds the port's queues. -EINVAL for an unknown mode or moderation, or a mode that
 * needs an interrupt where the port has none. */
int mac_rx_open(const struct mac_rx_config *config, struct mac_rx **out, struct ho_err *err);
int mac_rx_start(struct mac_rx *rx, struct ho_err *err);
/* From outside the pair's own tasks. A second call does nothing. */
void mac_rx_stop(struct mac_rx *rx);
/* After port_close. NULL is allowed. */
void mac_rx_close(struct mac_rx *rx);

/* A copy that may be a little old. */
struct mac_rx_stats mac_rx_stats(const struct mac_rx *rx);

/* --- for modes ------------------------------------------------------------------------------ */

/*
 * One pass: cleans up to tx_limit, receives and consumes up to about `budget` frames. Returns the
 * frames received, or `budget` when it stopped at either limit, so that more may wait.
 */
int mac_rx_pass(struct mac_rx *rx, int budget);

/* The pair is complete: lets moderation decide on what came since the last time. */
void mac_rx_complete(struct mac_rx *rx);

/* Arms the interrupt; true when there is already work, which no interrupt will announce. */
bool mac_rx_arm(struct mac_rx *rx);

/* What a handler does first: masks, unless the chip did, and counts. */
void mac_rx_interrupted(struct mac_rx *rx);

#endif
