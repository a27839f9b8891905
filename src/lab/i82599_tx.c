// SPDX-License-Identifier: BSD-2-Clause
/*
 * Transmit queues, datasheet 7.2: descriptors from the ring to the cache, turns between queues,
 * and back.
 *
 *   ring  --fetch-->  cache: [to be written back | issued | to do]  --> frame.c --> wire
 *                             c_back              c_issue  c_fetch
 *
 * To issue a descriptor is to request its data. The link's answer times are known then, so a frame
 * needs no event of its own: it is handed to the wire with the time at which it is complete, and
 * its descriptors carry the time at which they are done.
 */
#include "lab/i82599_impl.h"

/* Data is requested at most so far ahead of the time at which its request can go out. */
#define ISSUE_AHEAD (500 * SIM_PS_PER_NS)
/* The packet buffer is filled again when so much of it, as time on the wire, is empty. */
#define ROOM_STEP (2 * SIM_PS_PER_US)

static inline struct tx_desc *slot(struct tx_queue *q, uint32_t counter)
{
	return &q->cache[counter % CACHE_SLOTS];
}

static inline bool running(const struct i82599 *c)
{
	return !c->hung && !c->in_reset;
}

/* --- fetch -------------------------------------------------------------------------------- */

static void fetch(struct tx_queue *q)
{
	struct i82599 *c = q->chip;
	uint32_t waiting, todo = q->c_fetch - q->c_issue;
	uint32_t room = TX_CACHE - (q->c_fetch - q->c_back), n;

	if (!q->enabled || q->fetching || !running(c))
		return;
	if (reg_of(c, R_CTRL) & CTRL_MASTER_DISABLE)
		return;
	waiting = q->tail >= q->next_fetch ? q->tail - q->next_fetch
					   : q->tail + q->count - q->next_fetch;
	if (!waiting || !room)
		return;
	if (todo && (todo >= q->prefetch || waiting < q->host))
		return;
	n = HO_MIN(HO_MIN(waiting, room), q->count - q->next_fetch);
	q->fetching = true;
	q->fetch_n = n;
	lab_trace_instant(c->chip.trace, c->chip.trace_tx, "ring", "fetch", now_of(c));
	sim_schedule(c->chip.sim, &q->fetched, lab_pci_read(c->chip.pci, n * DESC_BYTES));
}

static void fetched(void *arg)
{
	struct tx_queue *q = arg;
	struct i82599 *c = q->chip;
	const uint8_t *from =
		lab_pci_memory(c->chip.pci, q->base + (uint64_t)q->next_fetch * DESC_BYTES,
			       (size_t)q->fetch_n * DESC_BYTES, &q->ring_hint);

	q->fetching = false;
	if (!from || !q->enabled)
		return;
	for (uint32_t i = 0; i < q->fetch_n; i++, from += DESC_BYTES) {
		struct tx_desc *d = slot(q, q->c_fetch++);

		memcpy(&d->addr, from, 8);
		memcpy(&d->cmd, from + 8, 4);
		memcpy(&d->info, from + 12, 4);
	}
	c->n.tx_desc_fetched += q->fetch_n;
	q->next_fetch += q->fetch_n;
	if (q->next_fetch == q->count)
		q->next_fetch = 0;
	c->tx_ready |= 1ull << q->index;
	i82599_tx_pump(c);
	fetch(q);
}

/* --- write-back --------------------------------------------------------------------------- */

static void advance(struct tx_queue *q, uint32_t n)
{
	q->c_back += n;
	q->head += n;
	if (q->head >= q->count)
		q->head -= q->count;
	q->chip->n.tx_desc_done += n;
}

static void post_writeback(struct tx_queue *q, uint32_t n)
{
	struct i82599 *c = q->chip;
	struct lab_pci *pci = c->chip.pci;
	uint32_t left = n, at = q->head;

	while (left && !q->head_address) {
		uint32_t part = HO_MIN(left, q->count - at);
		uint8_t *to = lab_pci_write_begin(pci, q->base + (uint64_t)at * DESC_BYTES,
						  part * DESC_BYTES);

		/* All but the status is reserved in what is written back (7.2.3.2.4): zeros, so
		 * that nobody relies on it. */
		memset(to, 0, (size_t)part * DESC_BYTES);
		for (uint32_t i = 0; i < part; i++)
			to[i * DESC_BYTES + 12] = TXD_DONE;
		lab_pci_write_end(pci, false);
		left -= part;
		at = at + part == q->count ? 0 : at + part;
	}
	c->n.tx_writebacks++;
	lab_trace_instant(c->chip.trace, c->chip.trace_tx, "ring", "write-back", now_of(c));
	advance(q, n);
	if (q->head_address) {
		memcpy(lab_pci_write_begin(pci, q->head_address, 4), &q->head, 4);
		lab_pci_write_end(pci, false);
	}
	i82599_raise_tx(c, q->index);
}

/* Writes back what is due now; with flush a started batch as well. */
static void write_back(struct tx_queue *q, bool flush)
{
	sim_ps now = now_of(q->chip);

	for (;;) {
		uint32_t done = 0;

		/* What stands in front without RS is retired in silence. */
		while (q->c_back != q->c_issue && slot(q, q->c_back)->done_at <= now &&
		       !(slot(q, q->c_back)->cmd & TXD_RS))
			advance(q, 1);
		while (q->c_back + done != q->c_issue &&
		       slot(q, q->c_back + done)->done_at <= now) {
			if (!q->writeback && !(slot(q, q->c_back + done)->cmd & TXD_RS))
				break;
			done++;
		}
		if (!done)
			return;
		if (q->writeback && done >= q->writeback)
			done -= done % q->writeback;
		else if (q->writeback && !flush)
			return;
		post_writeback(q, done);
	}
}

/* Sets the timer for the next moment at which write_back has something to do. */
static void plan_write_back(struct tx_queue *q)
{
	struct i82599 *c = q->chip;
	uint32_t batch = HO_MAX(q->writeback, 1u), p = q->c_back;
	sim_ps due = SIM_NEVER;

	q->flush_at = SIM_NEVER;
	while (p != q->c_issue && !(slot(q, p)->cmd & TXD_RS))
		p++;
	if (p != q->c_issue) {
		if (q->c_issue - p >= batch)
			due = slot(q, p + batch - 1)->done_at;
		else
			due = q->flush_at = i82599_irq_flush_time(c, q->index, slot(q, p)->done_at);
	}
	/* The cache is full of descriptors that nobody wants reported: room when the last of
	 * them is done. */
	if (due == SIM_NEVER && q->c_issue != q->c_back && q->c_fetch - q->c_back == TX_CACHE &&
	    slot(q, q->c_issue - 1)->done_at > now_of(c))
		due = slot(q, q->c_issue - 1)->done_at;
	if (due == SIM_NEVER) {
		sim_cancel(c->chip.sim, &q->writeback_due);
		return;
	}
	due = HO_MAX(due, q->held_until);
	if (!sim_scheduled(&q->writeback_due) || q->writeback_due.at != due)
		sim_schedule(c->chip.sim, &q->writeback_due, due);
}

static void write_back_due(void *arg)
{
	struct tx_queue *q = arg;
	struct i82599 *c = q->chip;
	struct lab_fault *fault = c->chip.fault;

	if (!running(c))
		return;
	if (ho_unlikely(fault) && q->held_until < now_of(c) &&
	    lab_fault_draw(fault, fault->config.late_ppm)) {
		fault->counts.late++;
		q->held_until = now_of(c) + fault->config.late_ps;
		sim_schedule(c->chip.sim, &q->writeback_due, q->held_until);
		return;
	}
	if (now_of(c) >= q->flush_at)
		i82599_irq_flush(c, q->index);
	write_back(q, false);
	plan_write_back(q);
	fetch(q);
}

void i82599_tx_flush(struct i82599 *c, unsigned queue)
{
	struct tx_queue *q = &c->tx[queue];

	if (q->c_back == q->c_issue || now_of(c) < q->held_until || !running(c))
		return;
	write_back(q, true);
	plan_write_back(q);
	fetch(q);
}

/* --- turns -------------------------------------------------------------------------------- */

/*
 * Queues take turns, a frame each, while requests can go out and the packet buffer has room. What
 * is in the buffer is the time that the wire needs for it.
 */
void i82599_tx_pump(struct i82599 *c)
{
	uint64_t touched = 0;
	sim_ps now = now_of(c), wake = SIM_NEVER;

	if (!running(c) || !c->link || !c->chip.wire)
		return;
	while (c->tx_ready) {
		uint64_t later = c->tx_ready & ~((1ull << c->tx_turn) - 1);
		unsigned index = (unsigned)__builtin_ctzll(later ? later : c->tx_ready);
		struct tx_queue *q = &c->tx[index];
		sim_ps issue = lab_pci_read_at(c->chip.pci);
		sim_ps wire = lab_wire_free_at(c->chip.wire, c->chip.end);

		if (issue > now + ISSUE_AHEAD) {
			wake = issue;
			break;
		}
		if (wire > now + c->tx_room) {
			wake = wire - c->tx_room + ROOM_STEP;
			break;
		}
		c->tx_turn = (index + 1) % QUEUES;
		touched |= 1ull << index;
		if (!i82599_tx_frame(q) || q->c_issue == q->c_fetch)
			c->tx_ready &= ~(1ull << index);
	}
	if (wake != SIM_NEVER)
		sim_schedule(c->chip.sim, &c->tx_pump, wake);
	while (touched) {
		struct tx_queue *q = &c->tx[__builtin_ctzll(touched)];

		touched &= touched - 1;
		plan_write_back(q);
		fetch(q);
	}
}

static void pump_again(void *arg)
{
	i82599_tx_pump(arg);
}

/* --- registers ---------------------------------------------------------------------------- */

static inline uint32_t *queue_reg(struct i82599 *c, unsigned queue, uint32_t offset)
{
	return &c->reg[(R_TXQ + queue * QUEUE_STRIDE + offset) / 4];
}

static void drop_cache(struct tx_queue *q)
{
	struct i82599 *c = q->chip;

	c->n.tx_desc_lost += q->c_fetch - q->c_back;
	q->c_back = q->c_issue = q->c_fetch = 0;
	q->enabled = q->fetching = false;
	q->flush_at = SIM_NEVER;
	c->tx_ready &= ~(1ull << q->index);
	sim_cancel(c->chip.sim, &q->fetched);
	sim_cancel(c->chip.sim, &q->writeback_due);
}

static void take_thresholds(struct tx_queue *q)
{
	uint32_t value = *queue_reg(q->chip, q->index, TXQ_TXDCTL);
	uint32_t low = *queue_reg(q->chip, q->index, TXQ_TDWBAL);

	q->prefetch = value & 0x7f;
	q->host = value >> 8 & 0x7f;
	/* More than the cache holds could never come together. */
	q->writeback = HO_MIN(value >> 16 & 0x7f, (uint32_t)TX_CACHE);
	q->head_address =
		low & TDWBAL_ENABLE
			? (uint64_t)*queue_reg(q->chip, q->index, TXQ_TDWBAH) << 32 | (low & ~3u)
			: 0;
}

/* A queue runs when it is enabled and transmission as a whole is (4.6.8). */
static void set_enable(struct tx_queue *q)
{
	struct i82599 *c = q->chip;
	bool want = *queue_reg(c, q->index, TXQ_TXDCTL) & TXDCTL_ENABLE &&
		    reg_of(c, R_DMATXCTL) & DMATXCTL_ENABLE && !c->in_reset;

	if (want == q->enabled)
		return;
	drop_cache(q);
	if (!want)
		return;
	q->base = ((uint64_t)*queue_reg(c, q->index, TXQ_TDBAH) << 32 |
		   *queue_reg(c, q->index, TXQ_TDBAL)) &
		  ~0x7full;
	q->count = *queue_reg(c, q->index, TXQ_TDLEN) / DESC_BYTES;
	if (!q->count)
		return;
	q->head = q->next_fetch = *queue_reg(c, q->index, TXQ_TDH) % q->count;
	q->tail = *queue_reg(c, q->index, TXQ_TDT) % q->count;
	q->enabled = true;
	fetch(q);
}

void i82599_tx_enable(struct i82599 *c)
{
	for (unsigned i = 0; i < QUEUES; i++)
		set_enable(&c->tx[i]);
}

void i82599_tx_queue_write(struct i82599 *c, unsigned queue, uint32_t offset, uint32_t value)
{
	struct tx_queue *q = &c->tx[queue];

	switch (offset) {
	case TXQ_TDT:
		*queue_reg(c, queue, offset) = value;
		if (!q->enabled)
			return;
		if (value >= q->count) {
			c->n.ownership++;
			return;
		}
		q->tail = value;
		lab_trace_instant(c->chip.trace, c->chip.trace_tx, "ring", "tail", now_of(c));
		fetch(q);
		return;
	case TXQ_TDH:
		if (!q->enabled)
			*queue_reg(c, queue, offset) = value;
		return;
	case TXQ_TXDCTL:
		*queue_reg(c, queue, offset) = value & ~TXDCTL_FLUSH;
		take_thresholds(q);
		set_enable(q);
		if (value & TXDCTL_FLUSH)
			i82599_tx_flush(c, queue);
		return;
	case TXQ_TDWBAL:
	case TXQ_TDWBAH:
		*queue_reg(c, queue, offset) = value;
		take_thresholds(q);
		return;
	default:
		*queue_reg(c, queue, offset) = value;
	}
}

uint32_t i82599_tx_queue_read(struct i82599 *c, unsigned queue, uint32_t offset)
{
	struct tx_queue *q = &c->tx[queue];
	uint32_t value = *queue_reg(c, queue, offset);

	switch (offset) {
	case TXQ_TDH:
		return q->enabled ? q->head : value;
	case TXQ_TXDCTL:
		return q->enabled ? value : value & ~TXDCTL_ENABLE;
	case TXQ_QPTC:
		*queue_reg(c, queue, offset) = 0;
		return value;
	}
	return value;
}

void i82599_tx_init(struct i82599 *c)
{
	struct sim_host *host = lab_pci_config(c->chip.pci)->host;

	for (unsigned i = 0; i < QUEUES; i++) {
		struct tx_queue *q = &c->tx[i];

		q->chip = c;
		q->index = i;
		q->flush_at = SIM_NEVER;
		sim_event_init_at(&q->fetched, host, fetched, q);
		sim_event_init_at(&q->writeback_due, host, write_back_due, q);
	}
	sim_event_init_at(&c->tx_pump, host, pump_again, c);
}

void i82599_tx_reset(struct i82599 *c)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		drop_cache(&c->tx[i]);
		c->tx[i].last_done = c->tx[i].held_until = 0;
	}
	c->tx_turn = 0;
	sim_cancel(c->chip.sim, &c->tx_pump);
}
