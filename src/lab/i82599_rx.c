// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receive, datasheet 7.1.
 *
 *   wire --> MAC: FCS, length --> filters --> packet buffer --> queue's descriptors --> memory
 *            CRCERRS, ROC, RUC    (silent)    RXMPC             QPRDC
 *
 * Descriptors are fetched when a frame needs them, for all frames of the queue that wait (7.1.5.1),
 * and written back together behind the data. The packet buffer is one queue: a frame whose queue
 * has no descriptors holds up all behind it, unless SRRCTL.Drop_En drops it.
 */
#include "lab/i82599_impl.h"

/* --- descriptors -------------------------------------------------------------------------- */

static inline uint32_t waiting_in_ring(const struct rx_queue *q)
{
	return q->tail >= q->next_fetch ? q->tail - q->next_fetch
					: q->tail + q->count - q->next_fetch;
}

static void fetch(struct rx_queue *q)
{
	struct i82599 *c = q->chip;
	uint32_t cached = q->c_fetch - q->c_use, n;

	if (!q->enabled || q->fetching || c->hung || cached >= q->wanted)
		return;
	if (reg_of(c, R_CTRL) & CTRL_MASTER_DISABLE)
		return;
	n = HO_MIN(q->wanted - cached, RX_CACHE - cached);
	n = HO_MIN(n, waiting_in_ring(q));
	n = HO_MIN(n, q->count - q->next_fetch);
	if (!n)
		return;
	q->fetching = true;
	q->fetch_n = n;
	lab_trace_instant(c->chip.trace, c->chip.trace_rx, "ring", "fetch", now_of(c));
	sim_schedule(c->chip.sim, &q->fetched, lab_pci_read(c->chip.pci, n * DESC_BYTES));
}

/* Descriptors that were used since the last time, in one write or, at the ring's end, two. */
static void write_back(struct rx_queue *q)
{
	struct i82599 *c = q->chip;
	struct lab_pci *pci = c->chip.pci;
	uint32_t left = q->staged, from = 0;

	if (!left || now_of(c) < q->held_until)
		return;
	while (left) {
		uint32_t part = HO_MIN(left, q->count - q->head);
		uint8_t *to = lab_pci_write_begin(pci, q->base + (uint64_t)q->head * DESC_BYTES,
						  part * DESC_BYTES);

		memcpy(to, q->stage[from], (size_t)part * DESC_BYTES);
		lab_pci_write_end(pci, false);
		left -= part;
		from += part;
		q->head = q->head + part == q->count ? 0 : q->head + part;
	}
	lab_trace_instant(c->chip.trace, c->chip.trace_rx, "ring", "write-back", now_of(c));
	c->n.rx_desc_done += q->staged;
	q->staged = 0;
	i82599_raise_rx(c, q->index);
}

static void stage(struct rx_queue *q, const struct rx_frame *frame, uint32_t bytes, bool last)
{
	uint32_t *d = q->stage[q->staged++];
	uint32_t status = frame->status | RXD_DONE | (last ? RXD_EOP : 0);

	if (!q->strip)
		status &= ~(uint32_t)RXD_VLAN;
	if (q->legacy) {
		/* 7.1.6.1: length, sum; status, errors, tag */
		d[0] = d[1] = 0;
		d[2] = bytes;
		d[3] = (status & 0xff) | (status >> 30) << 14 |
		       (uint32_t)(q->strip ? frame->vlan : 0) << 16;
		return;
	}
	d[0] = frame->type;
	d[1] = frame->hash;
	d[2] = status;
	d[3] = bytes | (uint32_t)(q->strip ? frame->vlan : 0) << 16;
}

/* --- out of the packet buffer ------------------------------------------------------------- */

static void count_delivered(struct rx_queue *q, const struct rx_frame *frame)
{
	struct i82599 *c = q->chip;
	uint32_t map = reg_of(c, R_RQSMR + q->index / 4 * 4) >> (8 * (q->index % 4)) & 15;

	c->n.rx_delivered++;
	count(c, R_RXQ + map * QUEUE_STRIDE + RXQ_QPRC, 1);
	c->queue_rx_bytes[map] += frame->bytes + LAB_FCS_BYTES;
}

static void leave(struct i82599 *c, struct rx_queue *q, const struct rx_frame *frame)
{
	uint32_t needed = (frame->bytes - frame->done + q->buffer - 1) / q->buffer;

	q->wanted -= HO_MIN(q->wanted, needed);
	c->rx_used -= frame->bytes;
	lab_fifo_pop(&c->rx_buffer);
}

static void drop(struct i82599 *c, struct rx_queue *q, const struct rx_frame *frame)
{
	uint32_t map = reg_of(c, R_RQSMR + q->index / 4 * 4) >> (8 * (q->index % 4)) & 15;

	c->n.rx_no_descriptor++;
	count(c, R_RXQ + (16 + map) * QUEUE_STRIDE + RXQ_QPRC, 1);
	leave(c, q, frame);
}

/* Moves the first frame as far as there are descriptors. True when it is gone. */
static bool move_frame(struct i82599 *c, struct rx_queue *q, struct rx_frame *frame)
{
	while (frame->done < frame->bytes) {
		uint32_t part = HO_MIN(frame->bytes - frame->done, q->buffer);

		if (q->c_use == q->c_fetch || q->staged == CACHE_SLOTS)
			return false;
		memcpy(lab_pci_write_begin(c->chip.pci, q->cache[q->c_use++ % CACHE_SLOTS], part),
		       frame->data + frame->done, part);
		lab_pci_write_end(c->chip.pci, true);
		frame->done += part;
		q->wanted--;
		stage(q, frame, part, frame->done == frame->bytes);
	}
	count_delivered(q, frame);
	leave(c, q, frame);
	return true;
}

static void pump(struct i82599 *c)
{
	struct rx_frame *frame;
	uint64_t touched = 0;

	if (c->hung || c->in_reset)
		return;
	while ((frame = lab_fifo_head(&c->rx_buffer)) != NULL) {
		struct rx_queue *q = &c->rx[frame->queue];

		if (ho_unlikely(!q->enabled)) {
			c->n.rx_queue_off++;
			leave(c, q, frame);
			continue;
		}
		touched |= 1ull << q->index;
		if (move_frame(c, q, frame))
			continue;
		if (q->staged == CACHE_SLOTS) {
			write_back(q);
			if (q->staged)
				break;
			continue;
		}
		fetch(q);
		if (q->drop && !q->fetching && !frame->done) {
			drop(c, q, frame);
			continue;
		}
		break;
	}
	while (touched) {
		struct rx_queue *q = &c->rx[__builtin_ctzll(touched)];
		struct lab_fault *fault = c->chip.fault;

		touched &= touched - 1;
		if (ho_unlikely(fault) && q->staged && q->held_until < now_of(c) &&
		    lab_fault_draw(fault, fault->config.late_ppm)) {
			fault->counts.late++;
			q->held_until = now_of(c) + fault->config.late_ps;
			sim_schedule(c->chip.sim, &q->held, q->held_until);
		}
		write_back(q);
	}
}

static void fetched(void *arg)
{
	struct rx_queue *q = arg;
	struct i82599 *c = q->chip;
	const uint8_t *from =
		lab_pci_memory(c->chip.pci, q->base + (uint64_t)q->next_fetch * DESC_BYTES,
			       (size_t)q->fetch_n * DESC_BYTES, &q->ring_hint);

	q->fetching = false;
	if (!from || !q->enabled)
		return;
	for (uint32_t i = 0; i < q->fetch_n; i++)
		memcpy(&q->cache[q->c_fetch++ % CACHE_SLOTS], from + (size_t)i * DESC_BYTES, 8);
	c->n.rx_desc_fetched += q->fetch_n;
	q->next_fetch += q->fetch_n;
	if (q->next_fetch == q->count)
		q->next_fetch = 0;
	pump(c);
	fetch(q);
}

static void hold_over(void *arg)
{
	struct rx_queue *q = arg;

	write_back(q);
	pump(q->chip);
}

/* --- into the packet buffer --------------------------------------------------------------- */

static bool mac_accepts(struct i82599 *c, const struct lab_frame *frame)
{
	uint32_t with_fcs = frame->bytes + LAB_FCS_BYTES, limit = 1518;

	if (frame->bytes >= 14 && frame->data[12] == 0x81 && frame->data[13] == 0)
		limit += 4;
	if (reg_of(c, R_HLREG0) & HLREG0_JUMBO)
		limit = reg_of(c, R_MAXFRS) >> 16;
	count(c, R_TPR, 1);
	c->total_rx_bytes += with_fcs;
	if (frame->flags & LAB_FRAME_BAD_FCS)
		count(c, R_CRCERRS, 1);
	else if (with_fcs > limit)
		count(c, R_ROC, 1);
	else if (with_fcs < 64)
		count(c, R_RUC, 1);
	else
		return true;
	c->n.rx_error++;
	return false;
}

static void count_good(struct i82599 *c, const uint8_t *data, uint32_t with_fcs)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

	count(c, R_GPRC, 1);
	c->good_rx_bytes += with_fcs;
	count(c, R_PRC64 + 4 * size_class(with_fcs), 1);
	if (data[0] & 1)
		count(c, memcmp(data, broadcast, 6) ? R_MPRC : R_BPRC, 1);
}

void i82599_receive(struct lab_chip *chip, const struct lab_frame *frame)
{
	struct i82599 *c = HO_CONTAINER_OF(chip, struct i82599, chip);
	struct rx_frame *to;
	struct rx_queue *q;
	bool inexact;

	c->n.rx_frames++;
	if (c->in_reset || c->hung || !c->link || !(reg_of(c, R_RXCTRL) & RXCTRL_ENABLE)) {
		c->n.rx_off++;
		return;
	}
	if (!mac_accepts(c, frame))
		return;
	if (!i82599_filter(c, frame->data, frame->bytes, &inexact)) {
		c->n.rx_filtered++;
		return;
	}
	count_good(c, frame->data, frame->bytes + LAB_FCS_BYTES);
	if (c->rx_used + frame->bytes > c->rx_size) {
		c->n.rx_missed++;
		count(c, R_RXMPC, 1);
		i82599_raise_other(c, CAUSE_RX_MISS);
		return;
	}
	to = lab_fifo_put(&c->rx_buffer, (uint32_t)sizeof(*to) + frame->bytes);
	to->bytes = frame->bytes;
	to->done = 0;
	to->status = inexact ? RXD_INEXACT : 0;
	memcpy(to->data, frame->data, frame->bytes);
	i82599_parse(c, to);
	q = &c->rx[to->queue];
	if (q->strip && to->status & RXD_VLAN) {
		memmove(to->data + 12, to->data + 16, frame->bytes - 16);
		to->bytes -= 4;
	}
	lab_fifo_keep(&c->rx_buffer, (uint32_t)sizeof(*to) + to->bytes);
	c->rx_used += to->bytes;
	q->wanted += (to->bytes + q->buffer - 1) / q->buffer;
	if (q->enabled && q->c_use == q->c_fetch && waiting_in_ring(q))
		fetch(q); /* nothing can move before that is here */
	else
		pump(c);
}

/* --- registers ---------------------------------------------------------------------------- */

static inline uint32_t *queue_reg(struct i82599 *c, unsigned queue, uint32_t offset)
{
	return &c->reg[(R_RXQ + queue * QUEUE_STRIDE + offset) / 4];
}

static void drop_cache(struct rx_queue *q)
{
	struct i82599 *c = q->chip;

	c->n.rx_desc_lost += q->c_fetch - q->c_use + q->staged;
	q->c_use = q->c_fetch = q->staged = 0;
	q->enabled = q->fetching = false;
	sim_cancel(c->chip.sim, &q->fetched);
	sim_cancel(c->chip.sim, &q->held);
}

static void set_enable(struct rx_queue *q)
{
	struct i82599 *c = q->chip;
	uint32_t control = *queue_reg(c, q->index, RXQ_RXDCTL);
	bool want = control & RXDCTL_ENABLE && !c->in_reset;

	q->strip = control & RXDCTL_VLAN_STRIP;
	if (want == q->enabled)
		return;
	drop_cache(q);
	if (!want) {
		pump(c); /* frames for it leave the buffer */
		return;
	}
	q->base = ((uint64_t)*queue_reg(c, q->index, RXQ_RDBAH) << 32 |
		   *queue_reg(c, q->index, RXQ_RDBAL)) &
		  ~0x7full;
	q->count = *queue_reg(c, q->index, RXQ_RDLEN) / DESC_BYTES;
	if (!q->count)
		return;
	q->head = q->next_fetch = *queue_reg(c, q->index, RXQ_RDH) % q->count;
	q->tail = *queue_reg(c, q->index, RXQ_RDT) % q->count;
	q->enabled = true;
}

static void take_srrctl(struct rx_queue *q)
{
	uint32_t value = *queue_reg(q->chip, q->index, RXQ_SRRCTL);

	/* A size of 0 is not allowed (8.2.3.8.7); take the reset value for it. */
	q->buffer = (value & SRRCTL_BUFFER_KB ? value & SRRCTL_BUFFER_KB : 2) * 1024;
	q->drop = value & SRRCTL_DROP;
	q->legacy = !(value >> 25 & 7);
}

void i82599_rx_queue_write(struct i82599 *c, unsigned queue, uint32_t offset, uint32_t value)
{
	struct rx_queue *q = &c->rx[queue];

	*queue_reg(c, queue, offset) = value;
	switch (offset) {
	case RXQ_RDT:
		if (!q->enabled)
			return;
		if (value >= q->count) {
			c->n.ownership++;
			return;
		}
		q->tail = value;
		lab_trace_instant(c->chip.trace, c->chip.trace_rx, "ring", "tail", now_of(c));
		if (q->wanted)
			pump(c);
		return;
	case RXQ_SRRCTL:
		if (!q->enabled)
			take_srrctl(q);
		return;
	case RXQ_RXDCTL:
		set_enable(q);
		return;
	}
}

uint32_t i82599_rx_queue_read(struct i82599 *c, unsigned queue, uint32_t offset)
{
	struct rx_queue *q = &c->rx[queue];
	uint32_t value = *queue_reg(c, queue, offset);

	switch (offset) {
	case RXQ_RDH:
		return q->enabled ? q->head : value;
	case RXQ_RXDCTL:
		return q->enabled ? value : value & ~RXDCTL_ENABLE;
	case RXQ_QPRC: /* or QPRDC */
		*queue_reg(c, queue, offset) = 0;
		return value;
	case RXQ_QBRC_L:
	case RXQ_QBRC_H:
		if (queue >= 16)
			return value;
		if (offset == RXQ_QBRC_L)
			return (uint32_t)c->queue_rx_bytes[queue];
		value = (uint32_t)(c->queue_rx_bytes[queue] >> 32) & 15;
		c->queue_rx_bytes[queue] = 0;
		return value;
	}
	return value;
}

void i82599_rx_init(struct i82599 *c)
{
	struct sim_host *host = lab_pci_config(c->chip.pci)->host;

	for (unsigned i = 0; i < QUEUES; i++) {
		struct rx_queue *q = &c->rx[i];

		q->chip = c;
		q->index = i;
		sim_event_init_at(&q->fetched, host, fetched, q);
		sim_event_init_at(&q->held, host, hold_over, q);
	}
}

void i82599_rx_reset(struct i82599 *c)
{
	c->n.rx_lost += c->rx_buffer.records;
	lab_fifo_clear(&c->rx_buffer);
	c->rx_used = 0;
	for (unsigned i = 0; i < QUEUES; i++) {
		drop_cache(&c->rx[i]);
		c->rx[i].wanted = 0;
		c->rx[i].held_until = 0;
		c->rx[i].strip = false;
		*queue_reg(c, i, RXQ_SRRCTL) = 2;
		take_srrctl(&c->rx[i]);
	}
}
