// SPDX-License-Identifier: BSD-2-Clause
/*
 * rx-mode direct: all work in the interrupt handler, until a pass finds nothing. Lowest latency
 * and, on a CPU that cannot keep up, nothing but interrupts: its livelock is what napi was made
 * against.
 */
#include "mac/rxmodes.h"

static void interrupt(void *arg)
{
	struct mac_rx *rx = arg;

	mac_rx_interrupted(rx);
	do {
		while (mac_rx_pass(rx, rx->config.weight) >= rx->config.weight)
			if (__atomic_load_n(&rx->quit, __ATOMIC_RELAXED) || rt_stopping(rx->rt))
				return;
		mac_rx_complete(rx);
	} while (mac_rx_arm(rx));
}

static int start(struct mac_rx *rx, struct ho_err *err)
{
	struct rt_event *event = rx->port->ops->rx_event(rx->rxq);
	struct rt_task_attr attr = { .name = rx->task_name,
				     .cpu = rx->config.cpu,
				     .prio = RT_PRIO_NORMAL };
	int rc = rt_irq_attach(rx->rt, event, &attr, interrupt, rx, &rx->irq, err);

	if (rc < 0)
		return rc;
	/* Frames that came before have no interrupt of their own: have the handler look. */
	if (mac_rx_arm(rx))
		rt_event_signal(rx->rt, event);
	return 0;
}

static void stop(struct mac_rx *rx)
{
	rt_irq_detach(rx->rt, rx->irq);
	rx->irq = NULL;
	if (rx->port->ops->disarm)
		rx->port->ops->disarm(rx->rxq);
}

const struct mac_rxmode mac_rxmode_direct = {
	.name = "direct",
	.help = "all work in the interrupt handler",
	.start = start,
	.stop = stop,
};
