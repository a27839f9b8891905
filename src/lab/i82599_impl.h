/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the 82599 model share. */
#ifndef HOLDOFF_LAB_I82599_IMPL_H
#define HOLDOFF_LAB_I82599_IMPL_H

#include <string.h>

#include "base/compiler.h"
#include "lab/fault.h"
#include "lab/fifo.h"
#include "lab/i82599.h"
#include "lab/i82599_regs.h"
#include "lab/pci.h"

#define QUEUES       64
#define VECTORS      64
#define TX_CACHE     40    /* descriptors on chip for a queue: 7.2.3.3 */
#define CACHE_SLOTS  64    /* a power of two for the modulo */
#define RX_CACHE     64    /* receive descriptors that one fetch on demand may take */
#define REG_BYTES    0x20000
#define TX_MAX_BYTES (256 * 1024 + 256) /* PAYLEN has 18 bits; and the headers */
#define DESC_BYTES   16

struct i82599;

struct tx_desc {
	uint64_t addr;
	uint32_t cmd, info; /* dwords 2 and 3 */
	sim_ps done_at;     /* once issued: when its data is in the packet buffer */
};

struct tx_context {
	uint32_t vlan_lengths; /* VLAN, MACLEN, IPLEN */
	uint32_t type;
	uint32_t mss_l4len;
};

/*
 * Descriptors pass the cache in order; the counters run on and on:
 *   written back <= c_back <= c_issue <= c_fetch
 */
struct tx_queue {
	struct i82599 *chip;
	unsigned index;
	bool enabled, fetching;
	uint64_t base, head_address;   /* head_address 0: descriptors are written back */
	uint32_t count;                /* of the ring */
	uint32_t tail, next_fetch;     /* indices in the ring */
	uint32_t head;                 /* index of c_back */
	uint32_t c_back, c_issue, c_fetch;
	uint32_t fetch_n;              /* being fetched */
	uint32_t prefetch, host, writeback; /* PTHRESH, HTHRESH, WTHRESH */
	sim_ps last_done;              /* done_at never decreases */
	sim_ps flush_at;               /* a started batch goes then; SIM_NEVER if full or none */
	sim_ps held_until;             /* fault: no write-back before */
	struct tx_context context[2];
	struct sim_event fetched, writeback_due;
	unsigned ring_hint, data_hint;
	struct tx_desc cache[CACHE_SLOTS];
};

struct rx_queue {
	struct i82599 *chip;
	unsigned index;
	bool enabled, fetching, drop, strip, legacy;
	uint64_t base;
	uint32_t count, tail, next_fetch;
	uint32_t head;              /* index of the next to be written back */
	uint32_t c_use, c_fetch;    /* in the cache: c_fetch - c_use */
	uint32_t fetch_n;
	uint32_t wanted;            /* descriptors that frames in the packet buffer need */
	uint32_t buffer;            /* bytes */
	uint32_t staged;            /* descriptors used, not yet written back */
	sim_ps held_until;
	struct sim_event fetched, held;
	unsigned ring_hint;
	uint64_t cache[CACHE_SLOTS];          /* buffer addresses */
	uint32_t stage[CACHE_SLOTS][4];       /* write-back descriptors, from head on */
};

/* A frame in the receive packet buffer. */
struct rx_frame {
	uint32_t bytes, done; /* of it, already written to memory */
	uint32_t type;        /* RSS and packet type: dword 0 of the write-back */
	uint32_t hash;        /* dword 1 */
	uint32_t status;      /* dword 2, without DD and EOP */
	uint16_t vlan;
	uint16_t queue;
	uint8_t data[];
};

struct vector {
	struct i82599 *chip;
	unsigned index;
	bool pending;          /* a cause waits for its interrupt */
	bool flushing;         /* batches of descriptors go first */
	sim_ps interval;       /* 0 = none */
	sim_ps allowed_at;     /* the next interrupt may go */
	uint64_t tx_queues;    /* transmit queues that it serves */
	struct sim_event timer;
};

struct i82599 {
	struct lab_chip chip;
	struct lab_i82599_config config;
	struct lab_i82599_counters n;
	uint32_t reg[REG_BYTES / 4];
	uint64_t eicr_vectors, eims_vectors, eiac_vectors, eiam_vectors;
	uint32_t eicr_others, eims_others, eiam_others;
	bool line;             /* as last told to the host */
	uint64_t good_rx_bytes, good_tx_bytes, total_rx_bytes;
	uint64_t queue_rx_bytes[16], queue_tx_bytes[16];
	bool hung, in_reset, link;
	struct sim_event reset_done, link_done;

	struct tx_queue tx[QUEUES];
	uint64_t tx_ready;     /* queues with descriptors in the cache to look at */
	unsigned tx_turn;      /* whose turn it is */
	sim_ps tx_room;        /* the packet buffer as time on the wire */
	struct sim_event tx_pump;
	uint8_t *tx_scratch;   /* a frame to be segmented */

	struct rx_queue rx[QUEUES];
	struct lab_fifo rx_buffer;
	uint32_t rx_used, rx_size; /* bytes of the packet buffer */
	struct vector vector[VECTORS];
};

static inline uint32_t reg_of(const struct i82599 *c, uint32_t reg)
{
	return c->reg[reg / 4];
}

static inline void count(struct i82599 *c, uint32_t reg, uint32_t n)
{
	c->reg[reg / 4] += n;
}

static inline sim_ps now_of(const struct i82599 *c)
{
	return sim_now(c->chip.sim);
}

/* Which of six size classes (64, 65-127, ... 1024 and more bytes with FCS) a frame is in. */
static inline unsigned size_class(uint32_t bytes_with_fcs)
{
	unsigned class = 0;

	if (bytes_with_fcs <= 64)
		return 0;
	while (class < 5 && bytes_with_fcs >> (6 + class))
		class++;
	return class;
}

/* i82599_tx.c */
void i82599_tx_init(struct i82599 *c);
void i82599_tx_reset(struct i82599 *c);
void i82599_tx_queue_write(struct i82599 *c, unsigned queue, uint32_t offset, uint32_t value);
uint32_t i82599_tx_queue_read(struct i82599 *c, unsigned queue, uint32_t offset);
void i82599_tx_enable(struct i82599 *c); /* DMATXCTL changed */
void i82599_tx_pump(struct i82599 *c);
/* The interval of the queue's vector is over: started batches go. */
void i82599_tx_flush(struct i82599 *c, unsigned queue);
/* A batch's time is over: flushes those of all queues of this one's vector, then interrupts. */
void i82599_irq_flush(struct i82599 *c, unsigned queue);
/* When a batch that begins to wait at `since` is to be flushed. */
sim_ps i82599_irq_flush_time(struct i82599 *c, unsigned queue, sim_ps since);

/* i82599_frame.c: a frame out of issued descriptors. */
bool i82599_tx_frame(struct tx_queue *q);

/* i82599_offload.c */
uint32_t i82599_sum(const uint8_t *data, uint32_t bytes, uint32_t sum);
uint16_t i82599_fold(uint32_t sum);
/* Checksums of a frame as its descriptor and context ask for. False: impossible lengths. */
bool i82599_checksums(uint8_t *frame, uint32_t bytes, const struct tx_context *context,
                      uint32_t info);
/* Puts a tag behind the addresses; room for 4 bytes must be there. Returns the new length. */
uint32_t i82599_insert_vlan(uint8_t *frame, uint32_t bytes, uint16_t tag);
/* Headers of segment `n` of a frame: lengths, identification, sequence number, flags, sums. The
 * payload already follows the headers. */
void i82599_segment(uint8_t *frame, uint32_t bytes, const struct tx_context *context,
                    uint32_t headers, uint32_t n, uint32_t offset, bool first, bool last);

/* i82599_rx.c */
void i82599_rx_init(struct i82599 *c);
void i82599_rx_reset(struct i82599 *c);
void i82599_rx_queue_write(struct i82599 *c, unsigned queue, uint32_t offset, uint32_t value);
uint32_t i82599_rx_queue_read(struct i82599 *c, unsigned queue, uint32_t offset);
void i82599_receive(struct lab_chip *chip, const struct lab_frame *frame);

/* i82599_parse.c: type, hash, queue, checksums of a received frame. */
bool i82599_filter(const struct i82599 *c, const uint8_t *data, uint32_t bytes, bool *inexact);
void i82599_parse(const struct i82599 *c, struct rx_frame *frame);

/* i82599_irq.c */
void i82599_irq_init(struct i82599 *c);
void i82599_irq_reset(struct i82599 *c);
bool i82599_irq_write(struct i82599 *c, uint32_t reg, uint32_t value);
bool i82599_irq_read(struct i82599 *c, uint32_t reg, uint32_t *value);
void i82599_raise_rx(struct i82599 *c, unsigned queue);
void i82599_raise_tx(struct i82599 *c, unsigned queue);
void i82599_raise_other(struct i82599 *c, uint32_t cause);

#endif
