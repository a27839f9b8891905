// SPDX-License-Identifier: BSD-2-Clause
/*
 * Interrupts, datasheet 7.3.
 *
 *   queue --IVAR--> EICR bit v --EIMS--> vector v --EITR--> MSI-X message v
 *   link ..------> EICR bit 20 --EIMS--> vector of IVAR_MISC
 *
 * A cause sets its EICR bit and makes its vector pending. A pending vector that is not masked sends
 * its message when its interval since the last one is over. Sending clears EICR bits that EIAC
 * names, and masks (clears EIMS bits) those that EIAM names if GPIE.EIAME is set. A masked cause
 * stays in EICR; unmasking makes its vector pending again.
 *
 * Without GPIE.MSIX all causes share vector 0 and the interrupt line, which is asserted while an
 * unmasked bit is in EICR.
 */
#include "lab/i82599_impl.h"

#define EITR_UNIT (256 * SIM_PS_PER_NS) /* of the value with its three low bits cleared */

static inline bool msix(const struct i82599 *c)
{
	return reg_of(c, R_GPIE) & GPIE_MSIX;
}

static inline uint32_t cause_low(const struct i82599 *c)
{
	return (uint32_t)(c->eicr_vectors & CAUSE_QUEUES) | c->eicr_others;
}

static unsigned vector_of_others(const struct i82599 *c)
{
	return reg_of(c, R_IVAR_MISC) >> 8 & (VECTORS - 1);
}

/* Does anything that vector v announces stand unmasked in EICR? */
static bool wants(const struct i82599 *c, unsigned v)
{
	if (!msix(c))
		return v == 0 && ((c->eicr_vectors & c->eims_vectors & CAUSE_QUEUES) ||
				  (c->eicr_others & c->eims_others));
	if (c->eicr_vectors & c->eims_vectors & 1ull << v)
		return true;
	return (c->eicr_others & c->eims_others) && vector_of_others(c) == v;
}

static void set_line(struct i82599 *c, bool asserted)
{
	if (c->line == asserted)
		return;
	c->line = asserted;
	lab_pci_line(c->chip.pci, asserted);
}

static void send(struct i82599 *c, struct vector *v)
{
	uint64_t bit = 1ull << v->index;
	bool others = (c->eicr_others & c->eims_others) && vector_of_others(c) == v->index;

	v->pending = false;
	v->allowed_at = now_of(c) + v->interval;
	c->n.irq_sent++;
	lab_trace_instant(c->chip.trace, c->chip.trace_irq, "irq", "interrupt", now_of(c));
	if (!msix(c)) {
		set_line(c, true);
		return;
	}
	if (ho_unlikely(c->chip.fault) &&
	    lab_fault_draw(c->chip.fault, c->chip.fault->config.lose_irq_ppm))
		c->chip.fault->counts.lost_irqs++;
	else
		lab_pci_message(c->chip.pci, v->index);
	c->eicr_vectors &= ~(bit & c->eiac_vectors);
	if (reg_of(c, R_GPIE) & GPIE_AUTO_MASK) {
		c->eims_vectors &= ~(bit & c->eiam_vectors);
		if (others)
			c->eims_others &= ~c->eiam_others;
	}
}

static void try_send(struct i82599 *c, struct vector *v)
{
	if (!v->pending || v->flushing || !wants(c, v->index))
		return;
	if (now_of(c) >= v->allowed_at)
		send(c, v);
	else if (!sim_scheduled(&v->timer))
		sim_schedule(c->chip.sim, &v->timer, v->allowed_at);
}

/* The interval is over. Batches of descriptors of all the vector's queues go first, so that the
 * message announces them. */
static void flush_and_send(struct i82599 *c, struct vector *v)
{
	uint64_t queues = v->tx_queues;

	v->flushing = true; /* causes from it join the interrupt */
	while (queues) {
		i82599_tx_flush(c, (unsigned)__builtin_ctzll(queues));
		queues &= queues - 1;
	}
	v->flushing = false;
	try_send(c, v);
}

static void timer_over(void *arg)
{
	struct vector *v = arg;

	if (now_of(v->chip) < v->allowed_at)
		try_send(v->chip, v);
	else
		flush_and_send(v->chip, v);
}

static void raise_vector(struct i82599 *c, unsigned index)
{
	struct vector *v = &c->vector[msix(c) ? index : 0];

	c->n.irq_raised++;
	if (v->pending)
		c->n.irq_coalesced++;
	v->pending = true;
	try_send(c, v);
}

static void raise_queue(struct i82599 *c, unsigned queue, unsigned tx)
{
	uint32_t ivar = reg_of(c, R_IVAR + queue / 2 * 4) >> (16 * (queue & 1) + 8 * tx);
	unsigned v = ivar & (VECTORS - 1);

	if (!(ivar & IVAR_VALID))
		return;
	c->eicr_vectors |= 1ull << v;
	raise_vector(c, v);
}

void i82599_raise_rx(struct i82599 *c, unsigned queue)
{
	raise_queue(c, queue, 0);
}

void i82599_raise_tx(struct i82599 *c, unsigned queue)
{
	raise_queue(c, queue, 1);
}

void i82599_raise_other(struct i82599 *c, uint32_t cause)
{
	c->eicr_others |= cause;
	if (!msix(c) || reg_of(c, R_IVAR_MISC) >> 8 & IVAR_VALID)
		raise_vector(c, vector_of_others(c));
}

/* Which vector a transmit queue's IVAR names; NULL if it is not valid. */
static struct vector *vector_of_tx(struct i82599 *c, unsigned queue)
{
	uint32_t ivar = reg_of(c, R_IVAR + queue / 2 * 4) >> (16 * (queue & 1) + 8);

	return ivar & IVAR_VALID ? &c->vector[msix(c) ? ivar & (VECTORS - 1) : 0] : NULL;
}

void i82599_irq_flush(struct i82599 *c, unsigned queue)
{
	struct vector *v = vector_of_tx(c, queue);

	/* Several queues' batches may be due at the same moment as the timer. Whoever comes first
	 * acts for all of them, or the message would go before what the others have done. */
	if (v && !v->flushing)
		flush_and_send(c, v);
}

sim_ps i82599_irq_flush_time(struct i82599 *c, unsigned queue, sim_ps since)
{
	const struct vector *v = vector_of_tx(c, queue);

	/* The first descriptor of a batch starts the timer if it does not run. Without an
	 * interval there is no timer, and a started batch waits for the next frames. */
	if (!v || !v->interval)
		return SIM_NEVER;
	return v->allowed_at > since ? v->allowed_at : since + v->interval;
}

/* EICR bits went, or a mask came: is what was pending still wanted? */
static void settle(struct i82599 *c)
{
	for (unsigned i = 0; i < VECTORS; i++) {
		struct vector *v = &c->vector[i];
		bool unmasked_or_not = msix(c) ? (c->eicr_vectors >> i &
						  1) || (c->eicr_others && vector_of_others(c) == i)
					       : (c->eicr_vectors || c->eicr_others);

		if (v->pending && !unmasked_or_not) {
			v->pending = false;
			c->n.irq_cleared++;
		}
	}
	if (c->line && !wants(c, 0))
		set_line(c, false);
}

static void clear(struct i82599 *c, uint32_t bits)
{
	c->eicr_vectors &= ~(uint64_t)(bits & CAUSE_QUEUES);
	c->eicr_others &= ~(bits & CAUSE_OTHERS);
	settle(c);
}

/* A cause that was masked while it came, or whose message went but which nobody cleared. */
static void unmask(struct i82599 *c, uint64_t vectors, uint32_t others)
{
	uint64_t bits;

	c->eims_vectors |= vectors;
	c->eims_others |= others;
	bits = c->eicr_vectors & vectors;
	if (!msix(c))
		bits = (bits || (c->eicr_others & others)) ? 1 : 0;
	else if (c->eicr_others & others)
		bits |= 1ull << vector_of_others(c);
	while (bits) {
		struct vector *v = &c->vector[__builtin_ctzll(bits)];

		bits &= bits - 1;
		if (!v->pending) {
			c->n.irq_raised++;
			v->pending = true;
		}
		try_send(c, v);
	}
}

static void mask(struct i82599 *c, uint64_t vectors, uint32_t others)
{
	c->eims_vectors &= ~vectors;
	c->eims_others &= ~others;
	if (c->line && !wants(c, 0))
		set_line(c, false);
}

/* EICS: software sets causes; GPIE.EIMEN makes them ignore EITR. */
static void software_cause(struct i82599 *c, uint64_t vectors, uint32_t others)
{
	c->eicr_vectors |= vectors;
	if (others)
		i82599_raise_other(c, others);
	while (vectors) {
		unsigned v = (unsigned)__builtin_ctzll(vectors);

		vectors &= vectors - 1;
		if (reg_of(c, R_GPIE) & GPIE_SOFTWARE_IMMEDIATE)
			c->vector[msix(c) ? v : 0].allowed_at = now_of(c);
		raise_vector(c, v);
	}
}

static void write_eitr(struct i82599 *c, unsigned index, uint32_t value)
{
	struct vector *v = &c->vector[index];

	v->interval = (value & EITR_INTERVAL) * EITR_UNIT;
	/* Bit 31, CNT_WDIS: the counter goes on. Without it bits 27:21 are its new value, the
	 * upper seven of nine bits of 2.048 us (8.2.3.5.12). */
	if (value >> 31)
		return;
	v->allowed_at = now_of(c) + (value >> 21 & 0x7f) * 4 * 8 * EITR_UNIT;
	sim_cancel(c->chip.sim, &v->timer);
	try_send(c, v);
}

static void map_queues(struct i82599 *c)
{
	for (unsigned v = 0; v < VECTORS; v++)
		c->vector[v].tx_queues = 0;
	for (unsigned q = 0; q < QUEUES; q++) {
		uint32_t ivar = reg_of(c, R_IVAR + q / 2 * 4) >> (16 * (q & 1) + 8);

		if (ivar & IVAR_VALID)
			c->vector[msix(c) ? ivar & (VECTORS - 1) : 0].tx_queues |= 1ull << q;
	}
}

static inline uint64_t half(unsigned i, uint32_t value)
{
	return (uint64_t)value << (32 * i);
}

bool i82599_irq_write(struct i82599 *c, uint32_t reg, uint32_t value)
{
	if (reg >= R_EITR_LOW && reg < R_EITR_LOW + 24 * 4) {
		c->reg[reg / 4] = value;
		write_eitr(c, (reg - R_EITR_LOW) / 4, value);
		return true;
	}
	if (reg >= R_EITR_HIGH && reg < R_EITR_HIGH + (VECTORS - 24) * 4) {
		c->reg[reg / 4] = value;
		write_eitr(c, (reg - R_EITR_HIGH) / 4 + 24, value);
		return true;
	}
	if (reg >= R_IVAR && reg < R_IVAR + QUEUES / 2 * 4) {
		c->reg[reg / 4] = value;
		map_queues(c);
		return true;
	}
	switch (reg) {
	case R_EICR: /* write 1 to clear */
		clear(c, value);
		return true;
	case R_EICS:
		software_cause(c, value & CAUSE_QUEUES, value & CAUSE_OTHERS);
		return true;
	case R_EICS_X:
	case R_EICS_X + 4:
		software_cause(c, half((reg - R_EICS_X) / 4, value), 0);
		return true;
	case R_EIMS:
		unmask(c, value & CAUSE_QUEUES, value & CAUSE_OTHERS);
		return true;
	case R_EIMS_X:
	case R_EIMS_X + 4:
		unmask(c, half((reg - R_EIMS_X) / 4, value), 0);
		return true;
	case R_EIMC:
		mask(c, value & CAUSE_QUEUES, value & CAUSE_OTHERS);
		return true;
	case R_EIMC_X:
	case R_EIMC_X + 4:
		mask(c, half((reg - R_EIMC_X) / 4, value), 0);
		return true;
	case R_EIAC:
		/* It has bits for the vectors 0 to 15; EICR has none for those above, so they
		 * always clear themselves. */
		c->reg[reg / 4] = value;
		c->eiac_vectors = (value & CAUSE_QUEUES) | ~(uint64_t)CAUSE_QUEUES;
		return true;
	case R_EIAM:
		c->eiam_vectors =
			(c->eiam_vectors & ~(uint64_t)CAUSE_QUEUES) | (value & CAUSE_QUEUES);
		c->eiam_others = value & CAUSE_OTHERS;
		return true;
	case R_EIAM_X:
	case R_EIAM_X + 4: {
		uint64_t keep = half(1 - (reg - R_EIAM_X) / 4, 0xffffffff);

		c->eiam_vectors = (c->eiam_vectors & keep) | half((reg - R_EIAM_X) / 4, value);
		return true;
	}
	case R_GPIE:
		c->reg[reg / 4] = value;
		map_queues(c);
		return true;
	}
	return false;
}

bool i82599_irq_read(struct i82599 *c, uint32_t reg, uint32_t *value)
{
	switch (reg) {
	case R_EICR:
		*value = cause_low(c);
		/* Reading clears; with OCD set only the causes that are not queues (8.2.3.5.1). */
		clear(c, reg_of(c, R_GPIE) & GPIE_OTHER_CLEAR_DISABLE ? CAUSE_OTHERS : 0xffffffff);
		if (!(reg_of(c, R_GPIE) & GPIE_AUTO_MASK))
			mask(c, c->eiam_vectors & CAUSE_QUEUES & *value, c->eiam_others & *value);
		return true;
	case R_EIMS:
	case R_EIMC:
		*value = (uint32_t)(c->eims_vectors & CAUSE_QUEUES) | c->eims_others;
		return true;
	case R_EIMS_X:
	case R_EIMS_X + 4:
	case R_EIMC_X:
	case R_EIMC_X + 4:
		*value = (uint32_t)(c->eims_vectors >> (reg & 4 ? 32 : 0));
		return true;
	case R_EIAM:
		*value = (uint32_t)(c->eiam_vectors & CAUSE_QUEUES) | c->eiam_others;
		return true;
	case R_EICS:
		*value = 0;
		return true;
	}
	return false;
}

void i82599_irq_init(struct i82599 *c)
{
	for (unsigned i = 0; i < VECTORS; i++) {
		c->vector[i] = (struct vector){ .chip = c, .index = i };
		sim_event_init_at(&c->vector[i].timer, lab_pci_config(c->chip.pci)->host,
				  timer_over, &c->vector[i]);
	}
}

void i82599_irq_reset(struct i82599 *c)
{
	for (unsigned i = 0; i < VECTORS; i++) {
		if (c->vector[i].pending)
			c->n.irq_cleared++;
		sim_cancel(c->chip.sim, &c->vector[i].timer);
	}
	c->eicr_vectors = c->eims_vectors = c->eiam_vectors = 0;
	c->eiac_vectors = ~(uint64_t)CAUSE_QUEUES;
	c->eicr_others = c->eims_others = c->eiam_others = 0;
	i82599_irq_init(c);
	set_line(c, false);
}
