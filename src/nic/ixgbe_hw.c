// SPDX-License-Identifier: BSD-2-Clause
/*
 * The chip: reset, initialisation, start and stop, in the order of section 4.6 of the 82599
 * datasheet. Where the order or a bit is odd, the reason stands beside it.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "nic/ixgbe_dev.h"

#define US 1000ull
#define MS 1000000ull

static uint32_t rd(struct ixgbe_dev *dev, uint32_t reg)
{
	return nic_read32(dev->bus, reg);
}

static void wr(struct ixgbe_dev *dev, uint32_t reg, uint32_t value)
{
	nic_write32(dev->bus, reg, value);
}

static void set(struct ixgbe_dev *dev, uint32_t reg, uint32_t bits)
{
	wr(dev, reg, rd(dev, reg) | bits);
}

static void clear(struct ixgbe_dev *dev, uint32_t reg, uint32_t bits)
{
	wr(dev, reg, rd(dev, reg) & ~bits);
}

void ixgbe_hw_delay(struct ixgbe_dev *dev, uint64_t ns)
{
	const uint64_t until = rt_now_ns(dev->rt) + ns;

	/* A sleep ends early when the executor is stopping, but the chip needs its time. */
	if (rt_sleep_until(dev->rt, until) < 0)
		while (rt_now_ns(dev->rt) < until)
			rt_relax(dev->rt);
}

/* Waits until the bits under `mask` read as `want`; `tries` looks, `pause` ns apart. */
static bool wait_bits(struct ixgbe_dev *dev, uint32_t reg, uint32_t mask, uint32_t want,
		      unsigned tries, uint64_t pause)
{
	while (tries--) {
		if ((rd(dev, reg) & mask) == want)
			return true;
		ixgbe_hw_delay(dev, pause);
	}
	return false;
}

/* 4.6.3.1: before anything else, and again after the reset, which unmasks nothing but may have
 * left causes behind. */
static void mask_all(struct ixgbe_dev *dev)
{
	wr(dev, IXGBE_EIMC, 0x7FFFFFFF); /* bit 31 is reserved here (8.2.3.5.6) */
	wr(dev, IXGBE_EIMC_EX(0), 0xFFFFFFFF);
	wr(dev, IXGBE_EIMC_EX(1), 0xFFFFFFFF);
	rd(dev, IXGBE_EICR); /* clears causes, flushes the writes */
}

void ixgbe_hw_stop(struct ixgbe_dev *dev)
{
	mask_all(dev);
	clear(dev, IXGBE_RXCTRL, IXGBE_RXCTRL_RXEN);
	for (unsigned i = 0; i < dev->queues; i++) {
		clear(dev, IXGBE_RXDCTL(i), IXGBE_RXDCTL_ENABLE);
		wr(dev, IXGBE_TXDCTL(i), IXGBE_TXDCTL_SWFLSH);
	}
	clear(dev, IXGBE_DMATXCTL, IXGBE_DMATXCTL_TE);
	/*
	 * 5.2.5.3.2, master disable: after GIO_DIS the chip finishes what it began on the bus;
	 * 800 us is the time that Linux gives it. A chip that hangs never says so; the reset
	 * below ends it all the same, which is why nothing depends on the answer.
	 */
	set(dev, IXGBE_CTRL, IXGBE_CTRL_GIO_DIS);
	if (!wait_bits(dev, IXGBE_STATUS, IXGBE_STATUS_GIO, 0, 8, 100 * US))
		ho_verbose("%s: bus mastering did not end in 800 us; resetting anyway",
			   dev->bus->name);
	set(dev, IXGBE_CTRL, IXGBE_CTRL_RST);
	/* The registers may not be touched for 1 ms after RST (8.2.3.1.1). */
	ixgbe_hw_delay(dev, MS);
	wait_bits(dev, IXGBE_CTRL, IXGBE_CTRL_RST, 0, 10, MS);
}

/* The EEPROM's address is in the first receive address register after reset (8.2.3.7.9). */
static void read_address(struct ixgbe_dev *dev)
{
	uint32_t lo = rd(dev, IXGBE_RAL(0)), hi = rd(dev, IXGBE_RAH(0));

	for (unsigned i = 0; i < 6; i++)
		dev->port.mac[i] = (uint8_t)(i < 4 ? lo >> (8 * i) : hi >> (8 * (i - 4)));
}

int ixgbe_hw_reset(struct ixgbe_dev *dev, struct ho_err *err)
{
	ixgbe_hw_stop(dev);
	/* Link and device together (4.2.1.6): else the link would keep its old state. */
	set(dev, IXGBE_CTRL, IXGBE_CTRL_LRST | IXGBE_CTRL_RST);
	/* 4.6.3.2: 10 ms, so that the EEPROM is read and the PHY is up again. */
	ixgbe_hw_delay(dev, 10 * MS);
	if (!wait_bits(dev, IXGBE_CTRL, IXGBE_CTRL_RST, 0, 10, MS))
		return ho_err_set(err, -EIO, "%s: the chip does not come out of reset (CTRL %08x)",
				  dev->bus->name, rd(dev, IXGBE_CTRL));
	mask_all(dev);
	if (!wait_bits(dev, IXGBE_EEC, IXGBE_EEC_ARD, IXGBE_EEC_ARD, 100, MS))
		return ho_err_set(err, -EIO, "%s: the chip does not finish reading its EEPROM",
				  dev->bus->name);
	if (!wait_bits(dev, IXGBE_RDRXCTL, IXGBE_RDRXCTL_DMAIDONE, IXGBE_RDRXCTL_DMAIDONE, 100, MS))
		return ho_err_set(err, -EIO, "%s: the chip does not finish its DMA initialisation",
				  dev->bus->name);
	read_address(dev);
	return 0;
}

/* Statistics clear when read; the time before us is not ours. */
static void forget_stats(struct ixgbe_dev *dev)
{
	struct ixgbe_hw_stats before = dev->hw;

	ixgbe_hw_stats(dev);
	dev->hw = before;
}

static void init_rss(struct ixgbe_dev *dev)
{
	uint32_t fields = IXGBE_MRQC_TCP_IPV4 | IXGBE_MRQC_IPV4 | IXGBE_MRQC_IPV6 |
			  IXGBE_MRQC_TCP_IPV6 | IXGBE_MRQC_UDP_IPV4 | IXGBE_MRQC_UDP_IPV6;

	for (unsigned i = 0; i < IXGBE_RSS_KEY_BYTES / 4; i++) {
		const uint8_t *k = dev->rss_key + i * 4;

		wr(dev, IXGBE_RSSRK(i),
		   k[0] | (uint32_t)k[1] << 8 | (uint32_t)k[2] << 16 | (uint32_t)k[3] << 24);
	}
	for (unsigned i = 0; i < IXGBE_RETA_ENTRIES; i += 4) {
		uint32_t four = 0;

		for (unsigned e = 0; e < 4; e++)
			four |= ((i + e) % dev->queues) << (8 * e);
		wr(dev, IXGBE_RETA(i / 4), four);
	}
	/* The descriptor has either the hash or the fragment checksum (7.1.6.2). */
	set(dev, IXGBE_RXCSUM, IXGBE_RXCSUM_PCSD);
	/* Also with one queue: whoever spreads in software wants the hash. */
	wr(dev, IXGBE_MRQC, IXGBE_MRQC_RSS | fields);
}

/* 4.6.7, but for the queues. */
static void init_rx(struct ixgbe_dev *dev)
{
	const uint32_t frame = dev->port.mtu + 14 + 4 + 4; /* Ethernet, FCS, a tag */
	uint32_t fctrl = IXGBE_FCTRL_BAM;

	clear(dev, IXGBE_RXCTRL, IXGBE_RXCTRL_RXEN);
	if (dev->promiscuous)
		fctrl |= IXGBE_FCTRL_UPE | IXGBE_FCTRL_MPE;
	wr(dev, IXGBE_FCTRL, fctrl);
	/* One packet buffer, all of the 512 KB: no DCB. */
	wr(dev, IXGBE_RXPBSIZE(0), IXGBE_RXPBSIZE_512KB);
	for (unsigned i = 1; i < 8; i++)
		wr(dev, IXGBE_RXPBSIZE(i), 0);
	/* The MAC and the DMA must agree on who strips the FCS (8.2.3.8.8). */
	set(dev, IXGBE_HLREG0, IXGBE_HLREG0_RXCRCSTRP);
	wr(dev, IXGBE_RDRXCTL,
	   (rd(dev, IXGBE_RDRXCTL) & ~IXGBE_RDRXCTL_RSCFRSTSIZE) | IXGBE_RDRXCTL_CRCSTRIP |
		   IXGBE_RDRXCTL_RSCACKC | IXGBE_RDRXCTL_FCOE_WRFIX);
	/* MAXFRS only counts with JUMBOEN; else it is 1518 and a tag (8.2.3.22.13). */
	wr(dev, IXGBE_MAXFRS, frame << IXGBE_MAXFRS_SHIFT);
	if (frame > 1522)
		set(dev, IXGBE_HLREG0, IXGBE_HLREG0_JUMBOEN);
	else
		clear(dev, IXGBE_HLREG0, IXGBE_HLREG0_JUMBOEN);
	clear(dev, IXGBE_VLNCTRL, IXGBE_VLNCTRL_VFE);
	init_rss(dev);
	/* The last words of 4.6.7: no snooping tricks, and a reserved bit that resets to 1. */
	set(dev, IXGBE_CTRL_EXT, IXGBE_CTRL_EXT_NS_DIS);
	for (unsigned i = 0; i < dev->queues; i++)
		clear(dev, IXGBE_DCA_RXCTRL(i), IXGBE_DCA_RXCTRL_RSVD);
}

/* 4.6.8, but for the queues. */
static void init_tx(struct ixgbe_dev *dev)
{
	set(dev, IXGBE_HLREG0, IXGBE_HLREG0_TXCRCEN | IXGBE_HLREG0_TXPADEN);
	/* MTQC may change only while the arbiter is off (4.6.11.3). */
	set(dev, IXGBE_RTTDCS, IXGBE_RTTDCS_ARBDIS);
	wr(dev, IXGBE_MTQC, 0); /* no DCB, no virtualisation: 64 queues, one buffer */
	wr(dev, IXGBE_TXPBSIZE(0), IXGBE_TXPBSIZE_160KB);
	wr(dev, IXGBE_TXPBTHRESH(0), 0xA0);
	for (unsigned i = 1; i < 8; i++) {
		wr(dev, IXGBE_TXPBSIZE(i), 0);
		wr(dev, IXGBE_TXPBTHRESH(i), 0);
	}
	wr(dev, IXGBE_DTXMXSZRQ, 0xFFF); /* without DCB: no limit (8.2.3.9.1) */
	clear(dev, IXGBE_RTTDCS, IXGBE_RTTDCS_ARBDIS);
}

/* 4.6.6 and 7.3: MSI-X, pair i on vector i, everything else on vector `queues`. */
static void init_irq(struct ixgbe_dev *dev)
{
	const uint32_t pairs = (1u << dev->queues) - 1;

	wr(dev, IXGBE_GPIE,
	   IXGBE_GPIE_MSIX_MODE | IXGBE_GPIE_PBA_SUPPORT | IXGBE_GPIE_OCD | IXGBE_GPIE_EIAME);
	/*
	 * A pair's cause and mask clear themselves when the message goes out, so a handler needs
	 * no register at all. "Other" causes do not: their handler must read which it was.
	 */
	wr(dev, IXGBE_EIAC, pairs);
	wr(dev, IXGBE_EIAM, pairs);
	wr(dev, IXGBE_EIAM_EX(0), pairs);
	for (unsigned i = 0; i < dev->queues; i += 2) {
		uint32_t ivar = 0;

		for (unsigned q = i; q < i + 2 && q < dev->queues; q++)
			for (unsigned tx = 0; tx < 2; tx++)
				ivar |= (IXGBE_IVAR_VALID | q) << IXGBE_IVAR_SHIFT(q, tx);
		wr(dev, IXGBE_IVAR(i / 2), ivar);
	}
	wr(dev, IXGBE_IVAR_MISC, (IXGBE_IVAR_VALID | dev->queues) << 8);
	for (unsigned i = 0; i < dev->queues; i++)
		ixgbe_hw_spacing(dev, i, dev->spacing_ns[i]);
	wr(dev, IXGBE_EITR(dev->queues), IXGBE_EITR_CNT_WDIS | (1950 & IXGBE_EITR_INTERVAL));
}

/* Each queue's drops in a counter of its own; by reset all are in counter 0. */
static void init_stats(struct ixgbe_dev *dev)
{
	for (unsigned r = 0; r < 4; r++) {
		uint32_t map = 0;

		for (unsigned b = 0; b < 4; b++)
			map |= (r * 4 + b) << (8 * b);
		wr(dev, IXGBE_RQSMR(r), map);
		wr(dev, IXGBE_TQSM(r), map);
	}
}

void ixgbe_hw_init(struct ixgbe_dev *dev)
{
	init_stats(dev);
	forget_stats(dev);
	init_rx(dev);
	init_tx(dev);
	init_irq(dev);
}

void ixgbe_hw_spacing(struct ixgbe_dev *dev, unsigned vector, uint32_t ns)
{
	/*
	 * EITR counts in units that, by position, are 0.256 us: interval bits 3..11 of 2.048 us.
	 * Linux writes microseconds times 4, so its "10 us" lasts 10.24; so does ours.
	 */
	uint32_t quarters = HO_MIN(ns / 250, IXGBE_EITR_INTERVAL);

	/* An interval under one unit would be 0, no moderation at all: not what was asked. */
	if (quarters && quarters < 8)
		quarters = 8;
	wr(dev, IXGBE_EITR(vector), (quarters & IXGBE_EITR_INTERVAL) | IXGBE_EITR_CNT_WDIS);
}

static void start_txq(struct ixgbe_dev *dev, struct ixgbe_txq *t, unsigned i)
{
	/* Without moderation each frame's interrupt must find its descriptor written back. */
	t->wthresh = dev->spacing_ns[i] < IXGBE_WTHRESH_1_BELOW_NS ? 1 : IXGBE_WTHRESH;

	wr(dev, IXGBE_TDBAL(i), (uint32_t)t->dma.iova);
	wr(dev, IXGBE_TDBAH(i), (uint32_t)(t->dma.iova >> 32));
	wr(dev, IXGBE_TDLEN(i), t->size * (uint32_t)sizeof(union ixgbe_tx_desc));
	wr(dev, IXGBE_TDH(i), 0);
	wr(dev, IXGBE_TDT(i), 0);
	/* No head write-back: descriptors carry their own done bits. */
	wr(dev, IXGBE_TDWBAL(i), 0);
	wr(dev, IXGBE_TDWBAH(i), 0);
	wr(dev, IXGBE_TXDCTL(i),
	   IXGBE_TXDCTL_ENABLE | IXGBE_TXDCTL_PTHRESH(IXGBE_PTHRESH) |
		   IXGBE_TXDCTL_HTHRESH(IXGBE_HTHRESH) | IXGBE_TXDCTL_WTHRESH(t->wthresh));
}

static void start_rxq(struct ixgbe_dev *dev, struct ixgbe_rxq *r, unsigned i)
{
	uint32_t srrctl = IXGBE_SRRCTL_BSIZE_KB(dev->buffer_kb) | IXGBE_SRRCTL_ADV_ONE;

	/*
	 * One slow queue must not block the others at the head of the packet buffer: it drops.
	 * A single queue may as well use the 512 KB of buffer, as Linux does.
	 */
	if (dev->queues > 1)
		srrctl |= IXGBE_SRRCTL_DROP_EN;
	wr(dev, IXGBE_SRRCTL(i), srrctl);
	wr(dev, IXGBE_RDBAL(i), (uint32_t)r->dma.iova);
	wr(dev, IXGBE_RDBAH(i), (uint32_t)(r->dma.iova >> 32));
	wr(dev, IXGBE_RDLEN(i), r->size * (uint32_t)sizeof(union ixgbe_rx_desc));
	wr(dev, IXGBE_RDH(i), 0);
	wr(dev, IXGBE_RDT(i), 0);
	wr(dev, IXGBE_RXDCTL(i), IXGBE_RXDCTL_ENABLE | (dev->vlan_strip ? IXGBE_RXDCTL_VME : 0));
}

int ixgbe_hw_start(struct ixgbe_dev *dev, struct ho_err *err)
{
	/* DMA is on before a queue is (4.6.8). */
	set(dev, IXGBE_DMATXCTL, IXGBE_DMATXCTL_TE);
	for (unsigned i = 0; i < dev->queues; i++) {
		start_txq(dev, dev->txq[i], i);
		if (!wait_bits(dev, IXGBE_TXDCTL(i), IXGBE_TXDCTL_ENABLE, IXGBE_TXDCTL_ENABLE, 10,
			       MS))
			return ho_err_set(err, -EIO, "%s: transmit queue %u does not start",
					  dev->bus->name, i);
	}
	for (unsigned i = 0; i < dev->queues; i++) {
		start_rxq(dev, dev->rxq[i], i);
		if (!wait_bits(dev, IXGBE_RXDCTL(i), IXGBE_RXDCTL_ENABLE, IXGBE_RXDCTL_ENABLE, 10,
			       MS))
			return ho_err_set(err, -EIO, "%s: receive queue %u does not start",
					  dev->bus->name, i);
		/* The tail may move only once the queue is enabled (4.6.7). */
		nic_wmb();
		wr(dev, IXGBE_RDT(i), dev->rxq[i]->use_at);
	}
	/* RXEN may change only while nothing is on its way through the security block (4.6.7). */
	set(dev, IXGBE_SECRXCTRL, IXGBE_SECRXCTRL_RX_DIS);
	wait_bits(dev, IXGBE_SECRXSTAT, IXGBE_SECRXSTAT_RDY, IXGBE_SECRXSTAT_RDY, 40, 10 * US);
	set(dev, IXGBE_RXCTRL, IXGBE_RXCTRL_RXEN);
	clear(dev, IXGBE_SECRXCTRL, IXGBE_SECRXCTRL_RX_DIS);
	set(dev, IXGBE_CTRL_EXT, IXGBE_CTRL_EXT_DRV_LOAD);
	/* 4.6.4: mode and speed are what the EEPROM set up; only begin to negotiate. */
	set(dev, IXGBE_AUTOC, IXGBE_AUTOC_AN_RESTART);
	if (dev->other_irq)
		wr(dev, IXGBE_EIMS, IXGBE_EICR_LSC);
	return 0;
}

uint64_t ixgbe_hw_link(struct ixgbe_dev *dev)
{
	uint32_t links = rd(dev, IXGBE_LINKS);

	if (!(links & IXGBE_LINKS_UP))
		return 0;
	switch (links & IXGBE_LINKS_SPEED) {
	case IXGBE_LINKS_SPEED_10G:
		return 10000000000ull;
	case IXGBE_LINKS_SPEED_1G:
		return 1000000000ull;
	default:
		return 100000000ull;
	}
}

void ixgbe_hw_stats(struct ixgbe_dev *dev)
{
	struct ixgbe_hw_stats *s = &dev->hw;

	/* Reading clears: two readers at once would each add what the other took. */
	if (__atomic_exchange_n(&dev->stats_busy, 1, __ATOMIC_ACQUIRE))
		return;
	ho_ctr_add(&s->crc_errors, rd(dev, IXGBE_CRCERRS));
	ho_ctr_add(&s->length_errors, rd(dev, IXGBE_RLEC) + rd(dev, IXGBE_RUC) +
					      rd(dev, IXGBE_ROC) + rd(dev, IXGBE_RFC) +
					      rd(dev, IXGBE_RJC));
	for (unsigned i = 0; i < 8; i++)
		ho_ctr_add(&s->missed, rd(dev, IXGBE_RXMPC(i)));
	ho_ctr_add(&s->good_rx, rd(dev, IXGBE_GPRC));
	ho_ctr_add(&s->good_tx, rd(dev, IXGBE_GPTC));
	for (unsigned i = 0; i < dev->queues; i++)
		ho_ctr_add(&s->no_dma[i], rd(dev, IXGBE_QPRDC(i)));
	__atomic_store_n(&dev->stats_busy, 0, __ATOMIC_RELEASE);
}
