/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the ixgbe driver share.
 *
 *   ixgbe.c     the port: open, start, close, parameters, counters
 *   ixgbe_hw.c  the chip: reset and initialisation, interrupts, statistics
 *   ixgbe_tx.c  transmit: descriptors, stop and wake, cleaning
 *   ixgbe_rx.c  receive: descriptors, refill
 *   ixgbe_wd.c  the watchdog: link, lost interrupts, hangs, reset
 *
 * A ring's indices, for transmit (free-running 32 bit counters, so that wrapping needs no care):
 *
 *      cleaned <= queued,  in flight = queued - cleaned,  unused = ring - 1 - in flight
 *                  +--------------------------------------------+
 *                  | free |  sent  |  on the chip  |    free    |
 *                  +------^--------------------------^----------+
 *                      clean_at (cleaner's)        use_at (tx's)
 */
#ifndef HOLDOFF_NIC_IXGBE_DEV_H
#define HOLDOFF_NIC_IXGBE_DEV_H

#include "nic/bus.h"
#include "nic/ixgbe.h"
#include "nic/ixgbe_regs.h"
#include "port/port.h"

/* A Linux frame of 17 fragments, its head, a context descriptor and two to keep tail off head. */
#define IXGBE_DESC_NEEDED NIC_IXGBE_TX_RESERVE
#define IXGBE_WAKE_AT     (2 * IXGBE_DESC_NEEDED)
/* Longest frame of slots and its context must fit behind a wake-up. */
static_assert(PK_FRAME_MAX_SLOTS + 1 <= IXGBE_WAKE_AT, "a woken queue takes any frame");
static_assert(IXGBE_RING_MIN - 1 >= IXGBE_WAKE_AT, "an empty ring can wake");

/* TXDCTL (7.2.3.4): Linux's values. Prefetch at 32 keeps the chip from starving; write-back of 8
 * fills a 128 byte write. */
#define IXGBE_PTHRESH 32
#define IXGBE_HTHRESH 1
#define IXGBE_WTHRESH 8
/* Intervals under 2 us (8 quarters): write back one by one, or cleaning would lag interrupts. */
#define IXGBE_WTHRESH_1_BELOW_NS 2000

#define IXGBE_RX_REFILL         32    /* buffers given to the chip at a time: one doorbell each */
#define IXGBE_ADAPTIVE_START_NS 50000 /* 20,000 a second: where adaptive starts */

/* A transmit descriptor's software state: 8 bytes, so that a ring's worth stays in the L1 cache
 * as long as can be. */
struct ixgbe_txbuf {
	uint32_t buf;        /* buffer to free; IXGBE_NO_BUF for contexts and PK_KEEP */
	uint32_t bytes : 24; /* first descriptor of a frame: what it adds to the byte counter */
	uint32_t descs : 8;  /* first descriptor of a frame: how many it has, context included */
};
#define IXGBE_NO_BUF UINT32_MAX

/* The two contexts that a queue of the chip remembers (7.2.3.2.3): one for plain frames with
 * offloads, one for segmentation, so that a mix does not reload them at each frame. */
#define IXGBE_CONTEXTS 2
struct ixgbe_ctx {
	uint32_t vlan_macip, type, mss_l4;
	bool valid;
};

/* Bits of port_txq.stopped; both are set and cleared atomically. */
#define IXGBE_STOP_FULL   1u /* too little room: the cleaner wakes */
#define IXGBE_STOP_FROZEN 2u /* tx and clean keep off the ring: the watchdog resets the chip */

/* Buffers of frames that tx refused for good: the cleaner owns the cache, so it frees them. */
#define IXGBE_REFUSED_MAX 128
static_assert(IXGBE_REFUSED_MAX >= 2 * PK_FRAME_MAX_SLOTS, "room for any frame");

struct ixgbe_txq {
	struct port_txq q; /* first: the port's users see this */
	struct ixgbe_dev *dev;
	union ixgbe_tx_desc *ring;
	struct ixgbe_txbuf *state;
	struct nic_dma dma;
	uint32_t size;    /* descriptors */
	uint32_t tail;    /* TDT's register offset */
	uint32_t wthresh; /* TXDCTL: descriptors written back at a time */

	/* tx writes these */
	uint32_t use_at HO_CACHE_ALIGNED;
	uint32_t queued;       /* released after the descriptors' state */
	uint32_t cleaned_seen; /* tx's last look at `cleaned`: saves the cache line */
	uint32_t in_tx;        /* the watchdog waits for 0 before it resets */
	uint32_t refused_put;
	struct ixgbe_ctx ctx[IXGBE_CONTEXTS];
	struct ixgbe_txbuf refused[IXGBE_REFUSED_MAX];
	uint64_t busy;        /* tx_busy: asked to send while stopped */
	uint64_t restarts_tx; /* stops that tx itself took back */

	/* the cleaner writes these */
	uint32_t clean_at HO_CACHE_ALIGNED;
	uint32_t cleaned;
	uint32_t in_clean;
	uint32_t refused_take;
	uint64_t restarts; /* wake-ups by the cleaner */

	/* the watchdog writes these */
	uint32_t purge HO_CACHE_ALIGNED; /* the chip forgot the ring: the cleaner gives all back */
	uint32_t seen_cleaned, seen_head;
	bool seen_pending;
};

struct ixgbe_rxq {
	struct port_rxq q; /* first */
	struct ixgbe_dev *dev;
	union ixgbe_rx_desc *ring;
	uint32_t *bufs;  /* buffer of each descriptor that the chip owns or has filled */
	uint32_t *spare; /* as long; for ixgbe_rx_restart */
	struct nic_dma dma;
	uint32_t size;
	uint32_t tail; /* RDT's register offset */
	uint16_t off;  /* first data byte in a buffer */
	bool strip;

	uint32_t next HO_CACHE_ALIGNED; /* next descriptor to look at */
	uint32_t use_at;                /* next descriptor to fill */
	uint32_t posted;                /* descriptors between them */
	uint32_t in_rx;
	uint64_t taken; /* descriptors consumed: the watchdog sees progress */
	uint64_t csum_errors, alloc_failed, non_eop;

	uint32_t frozen HO_CACHE_ALIGNED;
	uint32_t armed_once; /* somebody uses its interrupt */
	uint64_t seen_taken;
	bool seen_pending;
};

/* Statistics registers, added up: they clear when read (8.2.3.23). */
struct ixgbe_hw_stats {
	uint64_t crc_errors, length_errors, missed;
	uint64_t good_rx, good_tx;
	uint64_t no_dma[IXGBE_QUEUES_MAX];
};

struct ixgbe_dev {
	struct port port; /* first */
	struct nic_bus *bus;
	struct rt *rt;
	uint64_t arena_iova; /* of the packet arena's first byte */
	struct ixgbe_txq *txq[IXGBE_QUEUES_MAX];
	struct ixgbe_rxq *rxq[IXGBE_QUEUES_MAX];
	struct rt_event *irq[IXGBE_QUEUES_MAX];
	unsigned queues;
	uint32_t spacing_ns[IXGBE_QUEUES_MAX]; /* what EITR was last given */
	uint32_t rx_usecs;
	uint32_t rx_ring, tx_ring;
	unsigned buffer_kb; /* SRRCTL.BSIZEPACKET */
	bool promiscuous, vlan_strip, no_watchdog, mapped, started;
	uint8_t rss_key[IXGBE_RSS_KEY_BYTES];

	struct ixgbe_hw_stats hw;
	uint32_t stats_busy; /* one reader adds the registers up at a time */

	/* watchdog */
	struct rt_task *wd_task;
	struct rt_event *wd_event; /* look now: link interrupt, or closing */
	struct rt_event *other_event;
	struct rt_irq *other_irq;
	int wd_cpu;
	uint64_t wd_ns;
	uint32_t closing;
	uint32_t dead; /* a reset failed: queues stay frozen */
	uint64_t link_changes, rearmed, hangs, resets;
};

/* --- ixgbe_hw.c: all return 0 or a negative errno ------------------------------------------- */

int ixgbe_hw_reset(struct ixgbe_dev *dev, struct ho_err *err);
/* After reset: everything but the queues' DMA. */
void ixgbe_hw_init(struct ixgbe_dev *dev);
/* Rings must be prepared; enables queues, receive, transmit and the link. */
int ixgbe_hw_start(struct ixgbe_dev *dev, struct ho_err *err);
/* Masks interrupts, stops receive and transmit DMA. Afterwards the chip touches no memory. */
void ixgbe_hw_stop(struct ixgbe_dev *dev);
void ixgbe_hw_spacing(struct ixgbe_dev *dev, unsigned vector, uint32_t ns);
void ixgbe_hw_stats(struct ixgbe_dev *dev);
/* Reads LINKS: bits a second, 0 = down. */
uint64_t ixgbe_hw_link(struct ixgbe_dev *dev);
/* Lets about ns pass. */
void ixgbe_hw_delay(struct ixgbe_dev *dev, uint64_t ns);

/* --- ixgbe_tx.c ----------------------------------------------------------------------------- */

unsigned ixgbe_tx(struct port_txq *q, struct pk_slot *slots, unsigned n);
unsigned ixgbe_reap(struct port_txq *q);
bool ixgbe_clean(struct port_txq *q, unsigned limit, struct port_work *done);
/* Gives every buffer of the ring back and counts its frames as `why`. The chip is stopped. */
void ixgbe_tx_purge(struct ixgbe_txq *q, enum port_drop why, struct port_work *done);

static inline uint32_t ixgbe_tx_in_flight(const struct ixgbe_txq *q)
{
	return __atomic_load_n(&q->queued, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&q->cleaned, __ATOMIC_RELAXED);
}

/* --- ixgbe_rx.c ----------------------------------------------------------------------------- */

unsigned ixgbe_rx(struct port_rxq *q, struct pk_slot *slots, unsigned n);
/* Fills an empty ring with buffers. 0, or -ENOBUFS when not one could be had. */
int ixgbe_rx_fill(struct ixgbe_rxq *q);
/* The chip was reset: the ring's buffers begin again at descriptor 0, frames in it are dropped. */
void ixgbe_rx_restart(struct ixgbe_rxq *q);
/* Gives every buffer back; frames not taken are drops. The chip is stopped. */
void ixgbe_rx_empty(struct ixgbe_rxq *q);
/* Is a received frame waiting, or has the ring run out of buffers? */
bool ixgbe_rx_pending(const struct ixgbe_rxq *q);

/* --- ixgbe_wd.c ----------------------------------------------------------------------------- */

int ixgbe_wd_start(struct ixgbe_dev *dev, struct ho_err *err);
void ixgbe_wd_stop(struct ixgbe_dev *dev);
/* One look; public for who has no watchdog task of its own running. */
void ixgbe_wd_look(struct ixgbe_dev *dev);

#endif
