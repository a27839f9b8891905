// SPDX-License-Identifier: BSD-2-Clause
/*
 * The watchdog: a task that looks at what no interrupt tells.
 *
 *   link         on a link status interrupt, and every period
 *   lost irq     work has waited a whole period without progress, although somebody uses the
 *                interrupt: the mask is opened again and the cause set by software (EICS)
 *   hang         descriptors wait, the head has not moved for a period, the link is up: reset
 *
 * Reset, with users on other threads. The watchdog sets FROZEN on every queue; users then leave
 * at once. Each user has a flag that it sets before it looks at FROZEN and clears when it leaves.
 * The flag costs no fence in the fast path, so the watchdog sleeps a millisecond first: far longer
 * than any store stays unseen. Then it waits for the flags, owns all rings, and starts over.
 * Buffers are given back by their cache's owner: the next clean.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "nic/ixgbe_dev.h"

#define MS 1000000ull

static void look_at_link(struct ixgbe_dev *dev)
{
	uint64_t bps = ixgbe_hw_link(dev);

	if (bps == __atomic_load_n(&dev->port.link_bps, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&dev->port.link_bps, bps, __ATOMIC_RELAXED);
	ho_ctr_add(&dev->link_changes, 1);
	if (bps)
		ho_verbose("%s: link up at %llu Mbit/s", dev->port.name,
			   (unsigned long long)bps / 1000000);
	else
		ho_verbose("%s: link down", dev->port.name);
}

/* Receive work that waited for a whole period. */
static bool rx_stuck(struct ixgbe_rxq *r)
{
	bool pending = r->q.cache && ixgbe_rx_pending(r);
	uint64_t taken = ho_ctr_read(&r->taken);
	bool stuck = pending && r->seen_pending && taken == r->seen_taken;

	r->seen_pending = pending;
	r->seen_taken = taken;
	return stuck;
}

/* Sent frames that were not cleaned for a whole period; *hang when the chip does not send them. */
static bool tx_stuck(struct ixgbe_dev *dev, struct ixgbe_txq *t, unsigned i, bool *hang)
{
	bool pending = t->q.cache &&
		       (ixgbe_tx_in_flight(t) || __atomic_load_n(&t->purge, __ATOMIC_RELAXED));
	uint32_t cleaned = __atomic_load_n(&t->cleaned, __ATOMIC_RELAXED);
	uint32_t head = pending ? nic_read32(dev->bus, IXGBE_TDH(i)) : 0;
	bool stuck = pending && t->seen_pending && cleaned == t->seen_cleaned;

	if (stuck && head == t->seen_head && head != nic_read32(dev->bus, IXGBE_TDT(i)) &&
	    dev->port.link_bps)
		*hang = true;
	t->seen_pending = pending;
	t->seen_cleaned = cleaned;
	t->seen_head = head;
	return stuck;
}

/* Waits until no user is inside any queue. */
static void freeze(struct ixgbe_dev *dev)
{
	for (unsigned i = 0; i < dev->queues; i++) {
		__atomic_fetch_or(&dev->txq[i]->q.stopped, IXGBE_STOP_FULL | IXGBE_STOP_FROZEN,
				  __ATOMIC_SEQ_CST);
		__atomic_store_n(&dev->rxq[i]->frozen, 1, __ATOMIC_SEQ_CST);
	}
	ixgbe_hw_delay(dev, MS);
	for (unsigned i = 0; i < dev->queues; i++)
		while (__atomic_load_n(&dev->txq[i]->in_tx, __ATOMIC_ACQUIRE) ||
		       __atomic_load_n(&dev->txq[i]->in_clean, __ATOMIC_ACQUIRE) ||
		       __atomic_load_n(&dev->rxq[i]->in_rx, __ATOMIC_ACQUIRE))
			ixgbe_hw_delay(dev, MS / 100);
}

static void thaw(struct ixgbe_dev *dev)
{
	for (unsigned i = 0; i < dev->queues; i++) {
		__atomic_store_n(&dev->rxq[i]->frozen, 0, __ATOMIC_RELEASE);
		/* FULL stays: the cleaner takes it away when it has given the ring back. */
		__atomic_fetch_and(&dev->txq[i]->q.stopped, ~IXGBE_STOP_FROZEN, __ATOMIC_SEQ_CST);
	}
}

static void reset(struct ixgbe_dev *dev)
{
	struct ho_err err = { 0 };

	freeze(dev);
	/* What the chip counted until now would be lost with the reset. */
	ixgbe_hw_stats(dev);
	if (ixgbe_hw_reset(dev, &err) < 0)
		goto failed;
	ixgbe_hw_init(dev);
	for (unsigned i = 0; i < dev->queues; i++) {
		struct ixgbe_txq *t = dev->txq[i];

		if (dev->rxq[i]->q.cache)
			ixgbe_rx_restart(dev->rxq[i]);
		__atomic_store_n(&t->purge, 1, __ATOMIC_RELEASE);
		t->seen_pending = false;
		dev->rxq[i]->seen_pending = false;
	}
	if (ixgbe_hw_start(dev, &err) < 0)
		goto failed;
	ho_ctr_add(&dev->resets, 1);
	thaw(dev);
	look_at_link(dev);
	return;
failed:
	/* The queues stay frozen: nothing is sent or received, and nobody touches the chip. */
	ho_warn("%s: reset failed, the port is dead: %s", dev->port.name, err.text);
	__atomic_store_n(&dev->port.link_bps, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&dev->dead, 1, __ATOMIC_RELEASE);
}

/* Makes the pair's interrupt happen, whatever was lost: the message, or the unmasking. */
static void rearm(struct ixgbe_dev *dev, unsigned i)
{
	nic_write32(dev->bus, IXGBE_EIMS_EX(0), 1u << i);
	nic_write32(dev->bus, IXGBE_EICS_EX(0), 1u << i);
	ho_ctr_add(&dev->rearmed, 1);
}

void ixgbe_wd_look(struct ixgbe_dev *dev)
{
	bool hang = false;

	if (dev->dead)
		return;
	look_at_link(dev);
	for (unsigned i = 0; i < dev->queues; i++) {
		bool rx = rx_stuck(dev->rxq[i]);
		bool tx = tx_stuck(dev, dev->txq[i], i, &hang);

		if ((rx || tx) && __atomic_load_n(&dev->rxq[i]->armed_once, __ATOMIC_RELAXED))
			rearm(dev, i);
	}
	if (!hang)
		return;
	ho_ctr_add(&dev->hangs, 1);
	ho_warn("%s: the transmitter hangs, resetting the chip", dev->port.name);
	reset(dev);
	/* Somebody must clean what was in the rings, or senders would wait for ever. */
	for (unsigned i = 0; i < dev->queues && !dev->dead; i++)
		if (__atomic_load_n(&dev->rxq[i]->armed_once, __ATOMIC_RELAXED))
			rearm(dev, i);
}

/* Vector `queues`: with GPIE.OCD reading clears these causes and leaves the pairs' alone. */
static void other_irq(void *arg)
{
	struct ixgbe_dev *dev = arg;
	uint32_t cause = nic_read32(dev->bus, IXGBE_EICR);

	if (cause & IXGBE_EICR_LSC)
		rt_event_signal(dev->rt, dev->wd_event);
	nic_write32(dev->bus, IXGBE_EIMS, IXGBE_EICR_LSC);
}

static void watchdog(void *arg)
{
	struct ixgbe_dev *dev = arg;
	uint64_t next = rt_now_ns(dev->rt) + dev->wd_ns;

	for (;;) {
		int rc = rt_wait(dev->rt, &dev->wd_event, 1, next);

		if (rc == -EINTR || __atomic_load_n(&dev->closing, __ATOMIC_ACQUIRE))
			return;
		if (rc == 0) {
			if (!dev->dead)
				look_at_link(dev);
			continue;
		}
		ixgbe_wd_look(dev);
		next = rt_now_ns(dev->rt) + dev->wd_ns;
	}
}

int ixgbe_wd_start(struct ixgbe_dev *dev, struct ho_err *err)
{
	struct rt_task_attr attr = { .name = "ixgbe-wd",
				     .cpu = dev->wd_cpu,
				     .prio = RT_PRIO_NORMAL };
	int rc;

	dev->closing = 0;
	rc = rt_event_create(dev->rt, &dev->wd_event, err);
	if (rc < 0)
		return rc;
	rc = dev->bus->ops->irq_event(dev->bus, dev->queues, &dev->other_event, err);
	if (rc < 0)
		goto destroy_event;
	rc = rt_spawn(dev->rt, &attr, watchdog, dev, &dev->wd_task, err);
	if (rc < 0)
		goto destroy_event;
	attr.name = "ixgbe-link";
	rc = rt_irq_attach(dev->rt, dev->other_event, &attr, other_irq, dev, &dev->other_irq, err);
	if (rc < 0)
		goto end_task;
	return 0;
end_task:
	__atomic_store_n(&dev->closing, 1, __ATOMIC_RELEASE);
	rt_event_signal(dev->rt, dev->wd_event);
	rt_join(dev->rt, dev->wd_task);
	dev->wd_task = NULL;
destroy_event:
	rt_event_destroy(dev->rt, dev->wd_event);
	dev->wd_event = NULL;
	return rc;
}

void ixgbe_wd_stop(struct ixgbe_dev *dev)
{
	if (!dev->wd_event)
		return;
	rt_irq_detach(dev->rt, dev->other_irq);
	dev->other_irq = NULL;
	__atomic_store_n(&dev->closing, 1, __ATOMIC_RELEASE);
	rt_event_signal(dev->rt, dev->wd_event);
	rt_join(dev->rt, dev->wd_task);
	dev->wd_task = NULL;
	rt_event_destroy(dev->rt, dev->wd_event);
	dev->wd_event = NULL;
}
