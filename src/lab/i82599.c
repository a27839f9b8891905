// SPDX-License-Identifier: BSD-2-Clause
/*
 * The chip as a whole: its registers, reset, link and EEPROM. Registers without an effect keep what
 * is written to them.
 */
#include "lab/i82599.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lab/i82599_impl.h"

static struct i82599 *of(struct lab_chip *chip)
{
	return HO_CONTAINER_OF(chip, struct i82599, chip);
}

/* --- reads -------------------------------------------------------------------------------- */

static uint32_t read_links(const struct i82599 *c)
{
	uint64_t bps = c->chip.wire ? lab_wire_bps(c->chip.wire) : 0;
	uint32_t speed = bps >= 10000000000ull ? 3 : bps >= 1000000000ull ? 2 : 1;

	return c->link ? LINKS_UP | speed << LINKS_SPEED_SHIFT : 0;
}

/* Words 0 to 2 are the address, word 3f makes the sum of words 0 to 3f baba (6.3.2). */
static uint16_t eeprom_word(const struct i82599 *c, unsigned word)
{
	uint16_t sum = 0;

	if (word < 3)
		return (uint16_t)(c->config.mac[2 * word] | c->config.mac[2 * word + 1] << 8);
	if (word != 0x3f)
		return 0;
	for (unsigned i = 0; i < 3; i++)
		sum = (uint16_t)(sum + eeprom_word(c, i));
	return (uint16_t)(0xbaba - sum);
}

/* Counters of 36 bits: the low half first, the high half clears both. */
static bool read_octets(struct i82599 *c, uint32_t reg, uint32_t *value)
{
	uint64_t *total;

	switch (reg & ~4u) {
	case R_GORC & ~4u:
		total = &c->good_rx_bytes;
		break;
	case R_GOTC & ~4u:
		total = &c->good_tx_bytes;
		break;
	case R_TOR & ~4u:
		total = &c->total_rx_bytes;
		break;
	default:
		if (reg < R_QBTC || reg >= R_QBTC + 16 * 8)
			return false;
		total = &c->queue_tx_bytes[(reg - R_QBTC) / 8];
	}
	*value = (uint32_t)*total;
	if (reg & 4) {
		*value = (uint32_t)(*total >> 32) & 15;
		*total = 0;
	}
	return true;
}

static bool clears_on_read(uint32_t reg)
{
	return (reg >= R_CRCERRS && reg < R_STAT_END) || (reg >= R_RXMPC && reg < R_RXMPC + 32);
}

static uint32_t read_register(struct i82599 *c, uint32_t reg)
{
	uint32_t value;

	if (reg >= R_TXQ && reg < R_TXQ + QUEUES * QUEUE_STRIDE)
		return i82599_tx_queue_read(c, (reg - R_TXQ) / QUEUE_STRIDE, reg % QUEUE_STRIDE);
	if (reg >= R_RXQ && reg < R_RXQ + QUEUES * QUEUE_STRIDE)
		return i82599_rx_queue_read(c, (reg - R_RXQ) / QUEUE_STRIDE, reg % QUEUE_STRIDE);
	if (i82599_irq_read(c, reg, &value) || read_octets(c, reg, &value))
		return value;
	value = reg_of(c, reg);
	if (clears_on_read(reg)) {
		c->reg[reg / 4] = 0;
		return value;
	}
	switch (reg) {
	case R_STATUS:
		value = c->link ? STATUS_LINK_UP : 0;
		return reg_of(c, R_CTRL) & CTRL_MASTER_DISABLE ? value
							       : value | STATUS_MASTER_ENABLED;
	case R_LINKS:
		return read_links(c);
	}
	return value;
}

/* Some registers have an older second address. */
static uint32_t main_address(uint32_t reg)
{
	if (reg >= R_SRRCTL_OLD && reg < R_SRRCTL_OLD + 16 * 4)
		return R_RXQ + (reg - R_SRRCTL_OLD) / 4 * QUEUE_STRIDE + RXQ_SRRCTL;
	if (reg >= R_RAL_OLD && reg < R_RAL_OLD + 16 * 8)
		return reg - R_RAL_OLD + R_RAL;
	if (reg >= R_QPTC_OTHER && reg < R_QPTC_OTHER + 16 * 4)
		return R_TXQ + (reg - R_QPTC_OTHER) / 4 * QUEUE_STRIDE + TXQ_QPTC;
	return reg;
}

static uint32_t chip_read(struct lab_chip *chip, uint32_t reg, unsigned width)
{
	uint32_t value;

	if (reg >= REG_BYTES)
		return 0xffffffffu >> (32 - 8 * width);
	value = read_register(of(chip), main_address(reg & ~3u));
	return value >> (8 * (reg & 3)) & 0xffffffffu >> (32 - 8 * width);
}

/* --- writes ------------------------------------------------------------------------------- */

static void start_reset(struct i82599 *c);

static void write_control(struct i82599 *c, uint32_t value)
{
	c->reg[R_CTRL / 4] = value;
	if (value & (CTRL_DEVICE_RESET | CTRL_LINK_RESET))
		start_reset(c);
}

static void chip_write(struct lab_chip *chip, uint32_t reg, uint32_t value, unsigned width)
{
	struct i82599 *c = of(chip);

	/* Registers are written whole (8.1); nothing but the reset ends while one goes on. */
	if (reg >= REG_BYTES || width != 4 || c->in_reset)
		return;
	reg = main_address(reg & ~3u);
	if (reg >= R_TXQ && reg < R_TXQ + QUEUES * QUEUE_STRIDE) {
		i82599_tx_queue_write(c, (reg - R_TXQ) / QUEUE_STRIDE, reg % QUEUE_STRIDE, value);
		return;
	}
	if (reg >= R_RXQ && reg < R_RXQ + QUEUES * QUEUE_STRIDE) {
		i82599_rx_queue_write(c, (reg - R_RXQ) / QUEUE_STRIDE, reg % QUEUE_STRIDE, value);
		return;
	}
	if (i82599_irq_write(c, reg, value))
		return;
	if (clears_on_read(reg))
		return;
	switch (reg) {
	case R_CTRL:
		write_control(c, value);
		return;
	case R_STATUS:
	case R_LINKS:
	case R_EEC:
		return;
	case R_EERD:
		c->reg[reg / 4] = value;
		if (value & EERD_START)
			c->reg[reg / 4] = (value & 0xfffc) | EERD_DONE |
					  (uint32_t)eeprom_word(c, value >> 2 & 0x3fff) << 16;
		return;
	case R_DMATXCTL:
		c->reg[reg / 4] = value;
		i82599_tx_enable(c);
		return;
	case R_RXPBSIZE:
		c->reg[reg / 4] = value;
		c->rx_size = value & 0xffc00; /* in KB from bit 10 on: bytes as they stand */
		return;
	case R_RDRXCTL:
		c->reg[reg / 4] = value | RDRXCTL_DMA_INIT_DONE;
		return;
	case R_TXPBTHRESH:
		c->reg[reg / 4] = value;
		if (c->chip.wire)
			c->tx_room = lab_rate_time(lab_wire_rate(c->chip.wire),
						   (value & 0x3ff) * 1024ull);
		return;
	}
	c->reg[reg / 4] = value;
}

/* --- reset and link ----------------------------------------------------------------------- */

static void set_defaults(struct i82599 *c)
{
	memset(c->reg, 0, sizeof(c->reg));
	c->reg[R_EEC / 4] = EEC_PRESENT | EEC_AUTO_READ_DONE;
	c->reg[R_RDRXCTL / 4] = RDRXCTL_DMA_INIT_DONE;
	c->reg[R_HLREG0 / 4] = HLREG0_TX_CRC | HLREG0_RX_CRC_STRIP | HLREG0_TX_PAD;
	c->reg[R_MAXFRS / 4] = 1518u << 16;
	c->reg[R_VLNCTRL / 4] = 0x8100;
	c->reg[R_RXPBSIZE / 4] = 512u << 10;
	c->reg[R_TXPBSIZE / 4] = 160u << 10;
	c->reg[R_TXPBTHRESH / 4] = 150;
	c->reg[R_SECRXSTAT / 4] = 1;
	c->reg[R_SECTXSTAT / 4] = 1;
	memcpy(&c->reg[R_RAL / 4], c->config.mac, 4);
	c->reg[R_RAL / 4 + 1] = (uint32_t)(c->config.mac[4] | c->config.mac[5] << 8) | RAH_VALID;
	c->rx_size = 512 * 1024;
	c->tx_room = lab_rate_time(c->chip.wire ? lab_wire_rate(c->chip.wire)
						: lab_rate_of(10000000000ull),
				   150 * 1024);
}

static void link_at(struct i82599 *c, sim_ps at)
{
	if (c->chip.wire && lab_wire_link(c->chip.wire))
		sim_schedule(c->chip.sim, &c->link_done, at);
}

static void reset_done(void *arg)
{
	struct i82599 *c = arg;

	c->in_reset = false;
	c->reg[R_CTRL / 4] &= ~(uint32_t)(CTRL_DEVICE_RESET | CTRL_LINK_RESET);
	link_at(c, now_of(c) + c->config.link_time);
}

static void start_reset(struct i82599 *c)
{
	i82599_tx_reset(c);
	i82599_irq_reset(c);
	set_defaults(c);
	i82599_rx_reset(c);
	c->good_rx_bytes = c->good_tx_bytes = c->total_rx_bytes = 0;
	memset(c->queue_rx_bytes, 0, sizeof(c->queue_rx_bytes));
	memset(c->queue_tx_bytes, 0, sizeof(c->queue_tx_bytes));
	c->hung = false;
	c->link = false;
	c->in_reset = true;
	c->reg[R_CTRL / 4] = CTRL_DEVICE_RESET;
	sim_cancel(c->chip.sim, &c->link_done);
	sim_schedule(c->chip.sim, &c->reset_done, now_of(c) + c->config.reset_time);
}

static void link_done(void *arg)
{
	struct i82599 *c = arg;

	c->link = true;
	i82599_raise_other(c, CAUSE_LINK);
	i82599_tx_pump(c);
}

static void chip_link(struct lab_chip *chip, bool up)
{
	struct i82599 *c = of(chip);

	if (up) {
		if (!c->in_reset)
			link_at(c, now_of(c) + c->config.link_time);
		return;
	}
	sim_cancel(chip->sim, &c->link_done);
	if (!c->link)
		return;
	c->link = false;
	i82599_raise_other(c, CAUSE_LINK);
}

static void chip_reset(struct lab_chip *chip)
{
	start_reset(of(chip));
}

static void chip_hang(struct lab_chip *chip)
{
	of(chip)->hung = true;
}

/* --- invariants --------------------------------------------------------------------------- */

static int check_tx(const struct i82599 *c, struct ho_err *err)
{
	uint64_t cached = 0;

	for (unsigned i = 0; i < QUEUES; i++) {
		const struct tx_queue *q = &c->tx[i];

		cached += q->c_fetch - q->c_back;
		if (q->c_fetch - q->c_back > TX_CACHE || q->c_issue - q->c_back > TX_CACHE)
			return ho_err_set(err, -EPROTO,
					  "%s: transmit queue %u holds %u descriptors; %u fit",
					  c->chip.name, i, q->c_fetch - q->c_back, TX_CACHE);
	}
	if (c->n.tx_desc_fetched != c->n.tx_desc_done + c->n.tx_desc_lost + cached)
		return ho_err_set(err, -EPROTO,
				  "%s: %" PRIu64 " transmit descriptors fetched, but %" PRIu64
				  " done, %" PRIu64 " lost and %" PRIu64 " in the chip",
				  c->chip.name, c->n.tx_desc_fetched, c->n.tx_desc_done,
				  c->n.tx_desc_lost, cached);
	return 0;
}

static int check_rx(const struct i82599 *c, struct ho_err *err)
{
	const struct lab_i82599_counters *n = &c->n;
	uint64_t cached = 0, named = n->rx_delivered + n->rx_off + n->rx_error + n->rx_filtered +
				     n->rx_missed + n->rx_no_descriptor + n->rx_queue_off +
				     n->rx_lost;

	for (unsigned i = 0; i < QUEUES; i++)
		cached += c->rx[i].c_fetch - c->rx[i].c_use + c->rx[i].staged;
	if (n->rx_desc_fetched != n->rx_desc_done + n->rx_desc_lost + cached)
		return ho_err_set(err, -EPROTO,
				  "%s: %" PRIu64 " receive descriptors fetched, but %" PRIu64
				  " done, %" PRIu64 " lost and %" PRIu64 " in the chip",
				  c->chip.name, n->rx_desc_fetched, n->rx_desc_done,
				  n->rx_desc_lost, cached);
	if (n->rx_frames != named + c->rx_buffer.records)
		return ho_err_set(err, -EPROTO,
				  "%s: %" PRIu64 " frames received, but %" PRIu64
				  " delivered or dropped with a name and %u in the packet buffer",
				  c->chip.name, n->rx_frames, named, c->rx_buffer.records);
	return 0;
}

static int check_irq(const struct i82599 *c, struct ho_err *err)
{
	uint64_t pending = 0;

	for (unsigned i = 0; i < VECTORS; i++)
		pending += c->vector[i].pending;
	if (c->n.irq_raised != c->n.irq_sent + c->n.irq_coalesced + c->n.irq_cleared + pending)
		return ho_err_set(err, -EPROTO,
				  "%s: %" PRIu64 " causes raised, but %" PRIu64 " sent, %" PRIu64
				  " coalesced, %" PRIu64 " cleared and %" PRIu64 " pending",
				  c->chip.name, c->n.irq_raised, c->n.irq_sent, c->n.irq_coalesced,
				  c->n.irq_cleared, pending);
	return 0;
}

static int chip_check(struct lab_chip *chip, struct ho_err *err)
{
	const struct i82599 *c = of(chip);
	int ret;

	if (c->n.ownership)
		return ho_err_set(err, -EPROTO,
				  "%s: %" PRIu64 " tail writes point outside of their ring",
				  chip->name, c->n.ownership);
	ret = check_tx(c, err);
	if (!ret)
		ret = check_rx(c, err);
	if (!ret)
		ret = check_irq(c, err);
	return ret;
}

static void chip_counters(struct lab_chip *chip,
			  void (*fn)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct i82599 *c = of(chip);

#define COUNTER(name, text) fn(arg, #name, c->n.name);
	LAB_I82599_COUNTERS(COUNTER)
#undef COUNTER
}

void lab_i82599_counters(const struct lab_chip *chip, struct lab_i82599_counters *out)
{
	*out = HO_CONTAINER_OF(chip, struct i82599, chip)->n;
}

/* --- life --------------------------------------------------------------------------------- */

static void chip_destroy(struct lab_chip *chip)
{
	struct i82599 *c = of(chip);

	i82599_tx_reset(c);
	i82599_rx_reset(c);
	i82599_irq_reset(c);
	sim_cancel(chip->sim, &c->reset_done);
	sim_cancel(chip->sim, &c->link_done);
	lab_pci_set_chip(chip->pci, NULL);
	if (chip->wire)
		lab_wire_attach(chip->wire, chip->end, &(struct lab_wire_user){ .receive = NULL });
	lab_fifo_free(&c->rx_buffer);
	free(c->tx_scratch);
	free(c);
}

static const struct lab_chip_ops i82599_ops = {
	.model = "82599",
	.read = chip_read,
	.write = chip_write,
	.reset = chip_reset,
	.receive = i82599_receive,
	.link = chip_link,
	.hang = chip_hang,
	.check = chip_check,
	.counters = chip_counters,
	.destroy = chip_destroy,
};

int lab_i82599_create(struct sim *sim, struct lab_pci *pci, const struct lab_i82599_config *config,
		      struct lab_chip **out, struct ho_err *err)
{
	struct i82599 *c = calloc(1, sizeof(*c));

	if (!c)
		return ho_err_set(err, -ENOMEM, "%s: no memory for the chip", config->name);
	c->config = *config;
	if (!c->config.reset_time)
		c->config.reset_time = 2 * SIM_PS_PER_US;
	if (!c->config.link_time)
		c->config.link_time = 10 * SIM_PS_PER_US;
	c->tx_scratch = malloc(TX_MAX_BYTES);
	if (!c->tx_scratch || lab_fifo_init(&c->rx_buffer, 65536)) {
		free(c->tx_scratch);
		free(c);
		return ho_err_set(err, -ENOMEM, "%s: no memory for its packet buffers",
				  config->name);
	}
	c->chip = (struct lab_chip){
		.ops = &i82599_ops,
		.sim = sim,
		.pci = pci,
		.name = config->name,
		.vendor_id = 0x8086,
		.device_id = 0x10fb, /* SFI, SFP+ */
		.subsystem_id = 0x0003,
		.vectors = VECTORS,
		.bar_bytes = REG_BYTES,
	};
	i82599_tx_init(c);
	i82599_rx_init(c);
	i82599_irq_init(c);
	sim_event_init(&c->reset_done, reset_done, c);
	sim_event_init(&c->link_done, link_done, c);
	set_defaults(c);
	i82599_rx_reset(c);
	c->eiac_vectors = ~(uint64_t)CAUSE_QUEUES;
	lab_pci_set_chip(pci, &c->chip);
	*out = &c->chip;
	return 0;
}
