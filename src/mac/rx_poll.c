// SPDX-License-Identifier: BSD-2-Clause
/* rx-mode poll: a task that never waits. It does not look at the clock, so that the lab can skip
 * turns which find nothing. */
#include "mac/rxmodes.h"

static void poll(void *arg)
{
	struct mac_rx *rx = arg;

	while (!__atomic_load_n(&rx->quit, __ATOMIC_RELAXED) && !rt_stopping(rx->rt)) {
		const uint32_t tx_before = rx->since.tx_packets;

		if (mac_rx_pass(rx, rx->config.weight) == 0 && rx->since.tx_packets == tx_before)
			rt_relax(rx->rt);
	}
}

static int start(struct mac_rx *rx, struct ho_err *err)
{
	struct rt_task_attr attr = { .name = rx->task_name,
				     .cpu = rx->config.cpu,
				     .prio = RT_PRIO_HIGH };

	return rt_spawn(rx->rt, &attr, poll, rx, &rx->task, err);
}

static void stop(struct mac_rx *rx)
{
	rt_join(rx->rt, rx->task);
	rx->task = NULL;
}

const struct mac_rxmode mac_rxmode_poll = {
	.name = "poll",
	.help = "a task that never stops looking; no interrupt",
	.start = start,
	.stop = stop,
};
