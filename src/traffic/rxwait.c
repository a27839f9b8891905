// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/rxwait.h"

/* A queue without an event: the longest sleep between two looks. */
#define LAZY_NS 100000u

bool tr_rx_wait(struct tr_stop *stop, struct port_rxq *const *queues, unsigned n,
		uint64_t deadline_ns)
{
	struct rt_event *events[TR_RX_WAIT_MAX + 1] = { stop->event };
	unsigned n_events = 1, armed = 0;
	bool ready = false;

	for (; armed < n && !ready; armed++) {
		struct port_rxq *q = queues[armed];
		const struct port_ops *ops = q->port->ops;
		struct rt_event *event = ops->rx_event ? ops->rx_event(q) : NULL;

		if (event) {
			events[n_events++] = event;
			ready = ops->arm(q);
		} else {
			deadline_ns = HO_MIN(deadline_ns, rt_now_ns(stop->rt) + LAZY_NS);
		}
	}
	if (!ready)
		rt_wait(stop->rt, events, n_events, deadline_ns);
	while (armed--) {
		struct port_rxq *q = queues[armed];

		if (q->port->ops->rx_event && q->port->ops->rx_event(q))
			q->port->ops->disarm(q);
	}
	return !ready;
}

bool tr_rx_ended(struct port_rxq *const *queues, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		bool (*ended)(struct port_rxq * q) = queues[i]->port->ops->rx_ended;

		if (!ended || !ended(queues[i]))
			return false;
	}
	return true;
}
