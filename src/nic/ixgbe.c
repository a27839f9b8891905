// SPDX-License-Identifier: BSD-2-Clause
/* The ixgbe driver as a port: opening, starting, stopping, parameters and counters. */
#include "nic/ixgbe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/ixgbe_dev.h"
#include "port/kinds.h"

#define RING_DEFAULT     512
#define MTU_DEFAULT      1500
#define MTU_MAX          (IXGBE_FRAME_MAX - 14 - 4 - 4)
#define WATCHDOG_DEFAULT 2000000000ull
#define RX_HEADROOM_MIN  64 /* what forwarding may put before a frame; one cache line */

/* The key of the verification suite that the RSS specification gives; also datasheet 7.1.2.8.3. */
static const uint8_t rss_key_default[IXGBE_RSS_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const uint16_t known_devices[] = {
	IXGBE_DEV_82599_KX4,    IXGBE_DEV_82599_KR,     IXGBE_DEV_82599_CX4,
	IXGBE_DEV_82599_SFP,    IXGBE_DEV_82599_XAUI,   IXGBE_DEV_82599_SFP_EM,
	IXGBE_DEV_82599_SFP_FC, IXGBE_DEV_82599_SFP_2,  IXGBE_DEV_82599_SF_QP,
	IXGBE_DEV_82599EN_SFP,  IXGBE_DEV_82599_T3_LOM, IXGBE_DEV_X540T,
	IXGBE_DEV_X540T1,
};

static bool is_known(const struct nic_bus *bus)
{
	if (bus->vendor_id != IXGBE_VENDOR_INTEL)
		return false;
	for (unsigned i = 0; i < HO_ARRAY_LEN(known_devices); i++)
		if (bus->device_id == known_devices[i])
			return true;
	return false;
}

static uint32_t usecs_to_spacing(uint32_t usecs)
{
	return usecs == NIC_IXGBE_USECS_ADAPTIVE ? IXGBE_ADAPTIVE_START_NS : usecs * 1000;
}

/* --- rings ---------------------------------------------------------------------------------- */

static void free_rings(struct ixgbe_dev *dev)
{
	for (unsigned i = 0; i < dev->queues; i++) {
		struct ixgbe_txq *t = dev->txq[i];
		struct ixgbe_rxq *r = dev->rxq[i];

		if (r->dma.va)
			dev->bus->ops->dma_free(dev->bus, &r->dma);
		if (t->dma.va)
			dev->bus->ops->dma_free(dev->bus, &t->dma);
		r->dma.va = t->dma.va = NULL;
		free(r->bufs);
		free(r->spare);
		free(t->state);
		r->bufs = r->spare = NULL;
		t->state = NULL;
	}
}

static int alloc_rings(struct ixgbe_dev *dev, struct ho_err *err)
{
	for (unsigned i = 0; i < dev->queues; i++) {
		struct ixgbe_txq *t = dev->txq[i];
		struct ixgbe_rxq *r = dev->rxq[i];
		int rc;

		t->size = dev->tx_ring;
		r->size = dev->rx_ring;
		t->state = calloc(t->size, sizeof(t->state[0]));
		r->bufs = calloc(r->size, sizeof(r->bufs[0]));
		r->spare = calloc(r->size, sizeof(r->spare[0]));
		if (!t->state || !r->bufs || !r->spare)
			return ho_err_set(err, -ENOMEM, "out of memory for rings of %u and %u",
					  r->size, t->size);
		rc = dev->bus->ops->dma_alloc(dev->bus, t->size * sizeof(t->ring[0]), &t->dma, err);
		if (rc == 0)
			rc = dev->bus->ops->dma_alloc(dev->bus, r->size * sizeof(r->ring[0]),
						      &r->dma, err);
		if (rc < 0)
			return rc;
		t->ring = t->dma.va;
		r->ring = r->dma.va;
	}
	return 0;
}

/* --- port operations ------------------------------------------------------------------------ */

static struct ixgbe_dev *dev_of(struct port *port)
{
	return (struct ixgbe_dev *)port;
}

/* After a start that failed halfway, and after stop: every buffer goes back. */
static void empty_rings(struct ixgbe_dev *dev)
{
	for (unsigned i = 0; i < dev->queues; i++) {
		struct port_work done = { 0 };

		if (dev->txq[i]->q.cache) {
			/* What the chip did finish was sent; only the rest is lost. */
			__atomic_store_n(&dev->txq[i]->q.stopped, 0, __ATOMIC_RELAXED);
			ixgbe_clean(&dev->txq[i]->q, UINT32_MAX, &done);
			ixgbe_tx_purge(dev->txq[i], PORT_DROP_TX_CLOSED, &done);
		}
		if (dev->rxq[i]->q.cache)
			ixgbe_rx_empty(dev->rxq[i]);
	}
}

static int start(struct port *port, struct ho_err *err)
{
	struct ixgbe_dev *dev = dev_of(port);
	int rc = alloc_rings(dev, err);

	if (rc < 0)
		goto rings;
	for (unsigned i = 0; i < dev->queues; i++) {
		struct ixgbe_rxq *r = dev->rxq[i];

		/* An unbound queue stays empty: what RSS sends there is dropped and counted. */
		if (r->q.cache && ixgbe_rx_fill(r) < 0) {
			rc = ho_err_set(err, -ENOBUFS,
					"no packet buffers for receive queue %u; the arena has %u",
					i, port->arena->buffers);
			goto buffers;
		}
	}
	ixgbe_hw_init(dev);
	if (!dev->no_watchdog) {
		rc = ixgbe_wd_start(dev, err);
		if (rc < 0)
			goto buffers;
	}
	rc = ixgbe_hw_start(dev, err);
	if (rc < 0)
		goto watchdog;
	dev->started = true;
	__atomic_store_n(&port->link_bps, ixgbe_hw_link(dev), __ATOMIC_RELAXED);
	return 0;
watchdog:
	ixgbe_wd_stop(dev);
	ixgbe_hw_stop(dev);
buffers:
	empty_rings(dev);
rings:
	free_rings(dev);
	return rc;
}

static void stop(struct port *port)
{
	struct ixgbe_dev *dev = dev_of(port);

	ixgbe_wd_stop(dev);
	if (!dev->dead)
		ixgbe_hw_stats(dev);
	ixgbe_hw_stop(dev);
	empty_rings(dev);
	for (unsigned i = 0; i < dev->queues; i++) {
		/* A late call by a user finds closed doors instead of a freed ring. */
		dev->txq[i]->q.stopped = IXGBE_STOP_FROZEN;
		dev->rxq[i]->frozen = 1;
	}
	dev->started = false;
}

static void close_port(struct port *port)
{
	struct ixgbe_dev *dev = dev_of(port);

	free_rings(dev);
	if (dev->mapped)
		dev->bus->ops->dma_unmap(dev->bus, port->arena->base, port->arena->size_bytes);
	port_free(port);
}

static struct rt_event *rx_event(struct port_rxq *q)
{
	return dev_of(q->port)->irq[q->index];
}

static bool arm(struct port_rxq *q)
{
	struct ixgbe_dev *dev = dev_of(q->port);

	if (ho_unlikely(!__atomic_load_n(&dev->rxq[q->index]->armed_once, __ATOMIC_RELAXED)))
		__atomic_store_n(&dev->rxq[q->index]->armed_once, 1, __ATOMIC_RELAXED);
	/*
	 * A frame that arrived while the vector was masked left its cause in EICR: the interrupt
	 * comes as soon as the mask opens and EITR allows (7.3.1.3). So nothing need be looked at.
	 */
	nic_write32(dev->bus, IXGBE_EIMS_EX(0), 1u << q->index);
	return false;
}

static void disarm(struct port_rxq *q)
{
	nic_write32(dev_of(q->port)->bus, IXGBE_EIMC_EX(0), 1u << q->index);
}

static void spacing(struct port_rxq *q, uint32_t ns)
{
	struct ixgbe_dev *dev = dev_of(q->port);

	/* Batches of descriptors are flushed by the interval's timer: there must be one. */
	if (!ns && dev->txq[q->index]->wthresh > 1)
		ns = IXGBE_WTHRESH_1_BELOW_NS;
	if (dev->spacing_ns[q->index] == ns)
		return;
	dev->spacing_ns[q->index] = ns;
	ixgbe_hw_spacing(dev, q->index, ns);
}

static bool link_up(struct port *port)
{
	return __atomic_load_n(&port->link_bps, __ATOMIC_RELAXED) != 0;
}

static void external_drops(struct port *port, uint64_t *drops)
{
	struct ixgbe_dev *dev = dev_of(port);

	if (dev->started && !dev->dead)
		ixgbe_hw_stats(dev);
	for (unsigned i = 0; i < dev->queues; i++)
		drops[PORT_DROP_RX_RING_FULL] += ho_ctr_read(&dev->hw.no_dma[i]);
	drops[PORT_DROP_RX_LINK] += ho_ctr_read(&dev->hw.missed) +
				    ho_ctr_read(&dev->hw.crc_errors) +
				    ho_ctr_read(&dev->hw.length_errors);
}

static unsigned stats(struct port *port, struct port_stat *out, unsigned max)
{
	struct ixgbe_dev *dev = dev_of(port);
	uint64_t restart = 0, busy = 0, no_dma = 0, csum = 0, alloc = 0, non_eop = 0;

	if (dev->started && !dev->dead)
		ixgbe_hw_stats(dev);
	for (unsigned i = 0; i < dev->queues; i++) {
		restart += ho_ctr_read(&dev->txq[i]->restarts) +
			   ho_ctr_read(&dev->txq[i]->restarts_tx);
		busy += ho_ctr_read(&dev->txq[i]->busy);
		no_dma += ho_ctr_read(&dev->hw.no_dma[i]);
		csum += ho_ctr_read(&dev->rxq[i]->csum_errors);
		alloc += ho_ctr_read(&dev->rxq[i]->alloc_failed);
		non_eop += ho_ctr_read(&dev->rxq[i]->non_eop);
	}
	const struct port_stat all[] = {
		{ "tx_restart_queue", restart },
		{ "tx_busy", busy },
		{ "tx_timeout_count", ho_ctr_read(&dev->hangs) },
		{ "rx_no_dma_resources", no_dma },
		{ "rx_missed_errors", ho_ctr_read(&dev->hw.missed) },
		{ "rx_crc_errors", ho_ctr_read(&dev->hw.crc_errors) },
		{ "rx_length_errors", ho_ctr_read(&dev->hw.length_errors) },
		{ "rx_csum_offload_errors", csum },
		{ "alloc_rx_buff_failed", alloc },
		{ "non_eop_descs", non_eop },
		{ "rx_pkts_nic", ho_ctr_read(&dev->hw.good_rx) },
		{ "tx_pkts_nic", ho_ctr_read(&dev->hw.good_tx) },
		{ "lsc_int", ho_ctr_read(&dev->link_changes) },
		{ "irq_rearmed", ho_ctr_read(&dev->rearmed) },
		{ "hw_resets", ho_ctr_read(&dev->resets) },
	};

	memcpy(out, all, HO_MIN(max, (unsigned)HO_ARRAY_LEN(all)) * sizeof(*out));
	return HO_ARRAY_LEN(all);
}

static unsigned params(struct port *port, struct port_param *out, unsigned max)
{
	struct ixgbe_dev *dev = dev_of(port);
	const struct port_param all[] = {
		{ "rx-usecs", dev->rx_usecs, NIC_IXGBE_USECS_MAX },
		/* A pair has one vector, so one interval: it is set by rx-usecs. */
		{ "tx-usecs", dev->rx_usecs, 0 },
		{ "rx", dev->rx_ring, dev->started ? 0 : IXGBE_RING_MAX },
		{ "tx", dev->tx_ring, dev->started ? 0 : IXGBE_RING_MAX },
		{ "combined", dev->queues, 0 },
		{ "mtu", port->mtu, 0 },
	};

	memcpy(out, all, HO_MIN(max, (unsigned)HO_ARRAY_LEN(all)) * sizeof(*out));
	return HO_ARRAY_LEN(all);
}

static int check_ring(const char *name, uint64_t entries, struct ho_err *err)
{
	if (entries < IXGBE_RING_MIN || entries > IXGBE_RING_MAX || entries % IXGBE_RING_STEP)
		return ho_err_set(err, -EINVAL,
				  "%s ring of %llu: the chip takes %u to %u descriptors in steps "
				  "of %u",
				  name, (unsigned long long)entries, IXGBE_RING_MIN, IXGBE_RING_MAX,
				  IXGBE_RING_STEP);
	return 0;
}

static int check_usecs(uint64_t usecs, struct ho_err *err)
{
	if (usecs > NIC_IXGBE_USECS_MAX)
		return ho_err_set(err, -EINVAL,
				  "rx-usecs %llu: the chip can wait at most %u us between two "
				  "interrupts",
				  (unsigned long long)usecs, NIC_IXGBE_USECS_MAX);
	return 0;
}

static int set_param(struct port *port, const char *name, uint64_t value, struct ho_err *err)
{
	struct ixgbe_dev *dev = dev_of(port);
	int rc;

	if (!strcmp(name, "rx-usecs")) {
		rc = check_usecs(value, err);
		if (rc < 0)
			return rc;
		if (!value && dev->started && dev->txq[0]->wthresh > 1)
			return ho_err_set(err, -EBUSY,
					  "rx-usecs 0 needs descriptors written back singly: open "
					  "the port with it, or use 2");
		dev->rx_usecs = (uint32_t)value;
		for (unsigned i = 0; i < dev->queues; i++)
			spacing(&dev->rxq[i]->q, usecs_to_spacing(dev->rx_usecs));
		return 0;
	}
	if (!strcmp(name, "rx") || !strcmp(name, "tx")) {
		if (dev->started)
			return ho_err_set(err, -EBUSY,
					  "%s: the ring size can be set only before the port is "
					  "started",
					  name);
		rc = check_ring(name, value, err);
		if (rc == 0)
			*(name[0] == 'r' ? &dev->rx_ring : &dev->tx_ring) = (uint32_t)value;
		return rc;
	}
	if (!strcmp(name, "tx-usecs"))
		return ho_err_set(err, -EOPNOTSUPP,
				  "tx-usecs: a queue pair has one interrupt; set rx-usecs");
	return ho_err_set(err, -EOPNOTSUPP, "%s: this port cannot set it", name);
}

static const struct port_ops ixgbe_ops = {
	.start = start,
	.rx_event = rx_event,
	.arm = arm,
	.disarm = disarm,
	.clean = ixgbe_clean,
	.spacing = spacing,
	.link_up = link_up,
	.external_drops = external_drops,
	.stats = stats,
	.params = params,
	.set_param = set_param,
	.stop = stop,
	.close = close_port,
};

/* --- opening -------------------------------------------------------------------------------- */

static const struct port_kind kind = {
	.name = "nic",
	.help = "a network controller under a driver of this program",
	.target = "PCI-ADDRESS",
};

/* Everything that can be refused without touching the chip. */
static int check(const struct nic_bus *bus, const struct port_config *cfg,
		 const struct nic_ixgbe_config *nc, struct ho_err *err)
{
	unsigned queues = cfg->queues ? cfg->queues : 1;
	unsigned vectors = bus->ops->irq_vectors((struct nic_bus *)bus);
	int rc;

	if (!is_known(bus))
		return ho_err_set(err, -ENOTSUP,
				  "%s: device %04x:%04x is not an 82599 or X540 of Intel",
				  bus->name, bus->vendor_id, bus->device_id);
	if (queues > IXGBE_QUEUES_MAX)
		return ho_err_set(err, -EINVAL, "%u queues: RSS of this chip spreads over %u",
				  queues, IXGBE_QUEUES_MAX);
	if (vectors < queues + 1)
		return ho_err_set(err, -EINVAL,
				  "%s: %u queue pairs need %u MSI-X vectors, there are %u",
				  bus->name, queues, queues + 1, vectors);
	if (nc->mtu > MTU_MAX || (nc->mtu && nc->mtu < 68))
		return ho_err_set(err, -EINVAL, "mtu %u: 68 to %u are possible", nc->mtu, MTU_MAX);
	if (cfg->arena->stride_bytes < 1024 + RX_HEADROOM_MIN)
		return ho_err_set(err, -EINVAL,
				  "packet buffers of %u bytes: the chip fills whole KB, so at "
				  "least %u are needed",
				  cfg->arena->stride_bytes, 1024 + RX_HEADROOM_MIN);
	rc = check_usecs(nc->rx_usecs, err);
	if (rc == 0 && cfg->rx_ring)
		rc = check_ring("rx", cfg->rx_ring, err);
	if (rc == 0 && cfg->tx_ring)
		rc = check_ring("tx", cfg->tx_ring, err);
	return rc;
}

static void set_queues(struct ixgbe_dev *dev)
{
	const uint32_t stride = dev->port.arena->stride_bytes;

	/* SRRCTL counts whole KB, 16 at most (8.2.3.8.7); the rest of a buffer is headroom. */
	dev->buffer_kb = HO_MIN((stride - RX_HEADROOM_MIN) / 1024, 16u);
	for (unsigned i = 0; i < dev->queues; i++) {
		struct ixgbe_txq *t = (struct ixgbe_txq *)dev->port.txq[i];
		struct ixgbe_rxq *r = (struct ixgbe_rxq *)dev->port.rxq[i];

		dev->txq[i] = t;
		dev->rxq[i] = r;
		t->dev = r->dev = dev;
		t->tail = IXGBE_TDT(i);
		r->tail = IXGBE_RDT(i);
		t->q.tx = ixgbe_tx;
		t->q.reap = ixgbe_reap;
		r->q.rx = ixgbe_rx;
		r->off = (uint16_t)HO_MIN(stride - dev->buffer_kb * 1024,
					  (uint32_t)PK_HEADROOM_BYTES);
		dev->spacing_ns[i] = usecs_to_spacing(dev->rx_usecs);
	}
}

int nic_ixgbe_open(struct nic_bus *bus, const struct port_config *cfg,
		   const struct nic_ixgbe_config *nc, struct port **out, struct ho_err *err)
{
	static const struct nic_ixgbe_config defaults = { .watchdog_cpu = -1 };
	unsigned queues = cfg->queues ? cfg->queues : 1;
	struct ixgbe_dev *dev;
	int rc;

	if (!nc)
		nc = &defaults;
	rc = check(bus, cfg, nc, err);
	if (rc < 0)
		return rc;
	dev = (struct ixgbe_dev *)port_new(sizeof(*dev), &kind, bus->name, cfg, queues,
					   sizeof(struct ixgbe_rxq), queues,
					   sizeof(struct ixgbe_txq));
	if (!dev)
		return ho_err_set(err, -ENOMEM, "out of memory for %s", bus->name);
	if (nc->name)
		snprintf(dev->port.name, sizeof(dev->port.name), "%s", nc->name);
	dev->port.ops = &ixgbe_ops;
	dev->port.mtu = nc->mtu ? nc->mtu : MTU_DEFAULT;
	dev->port.max_frame = dev->port.mtu + 14 + 4;
	dev->port.honours_keep = true;
	dev->port.irq_self_masks = true;
	dev->bus = bus;
	dev->rt = cfg->rt;
	dev->queues = queues;
	dev->rx_ring = cfg->rx_ring ? cfg->rx_ring : RING_DEFAULT;
	dev->tx_ring = cfg->tx_ring ? cfg->tx_ring : RING_DEFAULT;
	dev->rx_usecs = nc->rx_usecs;
	dev->promiscuous = nc->promiscuous;
	dev->vlan_strip = !nc->no_vlan_strip;
	dev->no_watchdog = nc->no_watchdog;
	dev->wd_cpu = nc->watchdog_cpu;
	dev->wd_ns = nc->watchdog_ns ? nc->watchdog_ns : WATCHDOG_DEFAULT;
	memcpy(dev->rss_key, nc->rss_key ? nc->rss_key : rss_key_default, IXGBE_RSS_KEY_BYTES);
	set_queues(dev);
	rc = bus->ops->dma_map(bus, cfg->arena->base, cfg->arena->size_bytes, &dev->arena_iova,
			       err);
	if (rc < 0)
		goto free_port;
	dev->mapped = true;
	for (unsigned i = 0; i < queues; i++) {
		rc = bus->ops->irq_event(bus, i, &dev->irq[i], err);
		if (rc < 0)
			goto unmap;
	}
	rc = ixgbe_hw_reset(dev, err);
	if (rc < 0)
		goto unmap;
	*out = &dev->port;
	return 0;
unmap:
	bus->ops->dma_unmap(bus, cfg->arena->base, cfg->arena->size_bytes);
free_port:
	port_free(&dev->port);
	return rc;
}
