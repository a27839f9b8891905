// SPDX-License-Identifier: BSD-2-Clause
/*
 * rx-mode napi, as Linux has it.
 *
 *   interrupt: masks itself -> schedules the poll
 *   poll:      a pass of at most `weight` frames
 *                at a limit    -> polled again, the interrupt stays masked
 *                complete      -> moderation; then one of
 *                                   deferral  -> timer, which schedules the poll
 *                                   unmask
 */
#include "mac/rxmodes.h"

static void interrupt(void *arg)
{
	struct mac_rx *rx = arg;

	mac_rx_interrupted(rx);
	rt_napi_schedule(rx->rt, rx->napi);
}

static void timer_expired(void *arg)
{
	struct mac_rx *rx = arg;

	rt_napi_schedule(rx->rt, rx->napi);
}

/* Look again later instead of unmasking? Received frames refill the patience. */
static bool defers(struct mac_rx *rx, int frames)
{
	const struct mac_rx_config *c = &rx->config;

	if (!c->gro_flush_timeout_ns || !c->defer_hard_irqs)
		return false;
	if (frames)
		rx->defer_left = c->defer_hard_irqs;
	if (!rx->defer_left)
		return false;
	rx->defer_left--;
	ho_ctr_add(&rx->stats.deferrals, 1);
	rt_event_arm(rx->rt, rx->timer, rt_now_ns(rx->rt) + c->gro_flush_timeout_ns);
	return true;
}

static int poll(void *arg, int budget)
{
	struct mac_rx *rx = arg;
	int frames = mac_rx_pass(rx, budget);

	if (frames >= budget)
		return budget;
	mac_rx_complete(rx);
	if (!defers(rx, frames) && mac_rx_arm(rx))
		rt_napi_schedule(rx->rt, rx->napi);
	return frames;
}

static void stop(struct mac_rx *rx)
{
	rt_irq_detach(rx->rt, rx->irq);
	rt_irq_detach(rx->rt, rx->timer_irq);
	rt_napi_destroy(rx->rt, rx->napi);
	rt_event_destroy(rx->rt, rx->timer);
	if (rx->port->ops->disarm)
		rx->port->ops->disarm(rx->rxq);
	rx->irq = rx->timer_irq = NULL;
	rx->napi = NULL;
	rx->timer = NULL;
}

static int start(struct mac_rx *rx, struct ho_err *err)
{
	struct rt_task_attr attr = { .name = rx->task_name,
				     .cpu = rx->config.cpu,
				     .prio = RT_PRIO_NORMAL };
	int rc;

	rc = rt_napi_create(rx->rt, &attr, rx->config.weight, poll, rx, &rx->napi, err);
	if (rc < 0)
		goto fail;
	if (rx->config.gro_flush_timeout_ns) {
		rc = rt_event_create(rx->rt, &rx->timer, err);
		if (rc < 0)
			goto fail;
		rc = rt_irq_attach(rx->rt, rx->timer, &attr, timer_expired, rx, &rx->timer_irq,
				   err);
		if (rc < 0)
			goto fail;
	}
	rc = rt_irq_attach(rx->rt, rx->port->ops->rx_event(rx->rxq), &attr, interrupt, rx, &rx->irq,
			   err);
	if (rc < 0)
		goto fail;
	if (mac_rx_arm(rx))
		rt_napi_schedule(rx->rt, rx->napi);
	return 0;
fail:
	stop(rx);
	return rc;
}

const struct mac_rxmode mac_rxmode_napi = {
	.name = "napi",
	.help = "the interrupt masks itself, polls by weight until idle, then unmasks",
	.start = start,
	.stop = stop,
};
