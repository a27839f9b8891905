// SPDX-License-Identifier: BSD-2-Clause
/* A worker's loop, and what it does beside packets. */
#include <urcu/urcu-qsbr.h>

#include "route/worker.h"
#include "traffic/rxwait.h"

/* --- beside packets ------------------------------------------------------------------------- */

static void obey(struct ro_worker *w)
{
	struct ro_order_queue *q = w->orders;
	uint32_t tail;

	while (q && port_spsc_ready(&q->idx, 1, &tail)) {
		struct ro_order order = q->order[tail & q->idx.mask];

		port_spsc_take(&q->idx, 1);
		for (unsigned i = 0; i < RO_IFACES_MAX; i++) {
			const struct ro_iface *iface = ro_iface_at(w->view, i);

			if (!iface || iface->ifindex != order.ifindex)
				continue;
			if (order.addr.family == RO_IPV4)
				ro_arp_order(w, iface, &order);
			else
				ro_nd_order(w, iface, &order);
			break;
		}
	}
}

void ro_worker_housekeep(struct ro_worker *w)
{
	w->now_ns = rt_now_ns(w->rt);
	obey(w);
	if (ho_unlikely(w->holding))
		ro_hold_look(w);
	if (ho_unlikely(w->host.n))
		ro_host_flush(w);
	ro_flush(w);
}

void ro_worker_finish(struct ro_worker *w)
{
	ro_host_flush(w);
	ro_hold_close(w);
	ro_flush(w);
}

/* --- the loop ------------------------------------------------------------------------------- */

/* How often a worker that always has packets looks at orders and at what it holds. */
#define HOUSEKEEP_TURNS 64

static inline uint64_t ticks_since(const struct ro_worker *w, uint64_t *then)
{
	uint64_t now = w->rt->is_virtual ? 0 : rt_tsc_read(), ticks = now - *then;

	*then = now;
	return ticks;
}

/* All ports once. Returns the slots received; *full says that there was one full burst alone. */
static inline unsigned turn(struct ro_worker *w, bool *full)
{
	struct pk_slot slots[PK_BURST];
	unsigned got = 0, bursts = 0;

	for (unsigned p = 0; p < w->ports; p++) {
		unsigned n = w->rxq[p] ? port_rx(w->rxq[p], slots, PK_BURST) : 0;

		if (!n)
			continue;
		ro_worker_input(w, p, slots, n);
		got += n;
		bursts++;
	}
	if (w->touched)
		ro_flush(w);
	if (ho_unlikely(w->host.n))
		ro_host_flush(w);
	*full = bursts && got == bursts * PK_BURST;
	if (*full && bursts > 1)
		got = bursts * PK_BURST;
	return got;
}

static unsigned queues_of(struct ro_worker *w, struct port_rxq **out)
{
	unsigned n = 0;

	for (unsigned p = 0; p < w->ports; p++) {
		if (w->rxq[p])
			out[n++] = w->rxq[p];
	}
	return n;
}

static void idle(struct ro_worker *w, struct port_rxq *const *rxq, unsigned n_rxq,
		 uint64_t *idle_since)
{
	uint64_t now = rt_now_ns(w->rt);

	for (unsigned p = 0; p < w->ports; p++) {
		if (w->txq[p])
			port_reap(w->txq[p]);
	}
	*idle_since = *idle_since ? *idle_since : now;
	if (now - *idle_since < TR_RX_SPIN_NS || n_rxq > TR_RX_WAIT_MAX) {
		rt_relax(w->rt);
		return;
	}
	urcu_qsbr_thread_offline();
	/* Orders and held packets are looked at even without traffic. */
	if (tr_rx_wait(&w->stop, rxq, n_rxq, HO_MIN(w->end_ns, now + 10000000u)))
		ho_ctr_add(&w->ctr.sleeps, 1);
	urcu_qsbr_thread_online();
}

static bool over(const struct ro_worker *w)
{
	return tr_stop_asked(&w->stop) || (w->count && w->ctr.received >= w->count) ||
	       (w->end_ns != RT_FOREVER && rt_now_ns(w->rt) >= w->end_ns);
}

static void loop(struct ro_worker *w)
{
	struct port_rxq *rxq[RO_PORTS_MAX];
	unsigned n_rxq = queues_of(w, rxq), turns = 0;
	uint64_t then = 0, idle_since = 0;

	ticks_since(w, &then);
	ro_worker_housekeep(w);
	for (;;) {
		bool full;
		unsigned got = turn(w, &full);
		uint64_t ticks = ticks_since(w, &then);

		urcu_qsbr_quiescent_state();
		rt_spend(w->rt, RT_COST_POLL, 1);
		rt_spend(w->rt, RT_COST_LOOKUP, got);
		rt_spend(w->rt, RT_COST_TX_FRAME, got);
		if (ho_likely(got)) {
			ho_ctr_add(&w->ctr.turns, 1);
			ho_ctr_add(&w->ctr.busy_ticks, ticks);
			if (full)
				ho_hist_add(&w->full_turn_ticks, ticks * PK_BURST / got);
			idle_since = 0;
			if (ho_unlikely(++turns % HOUSEKEEP_TURNS == 0))
				ro_worker_housekeep(w);
			if (ho_unlikely(over(w)))
				break;
			continue;
		}
		ro_worker_housekeep(w);
		if (over(w) || (!w->holding && tr_rx_ended(rxq, n_rxq)))
			break;
		idle(w, rxq, n_rxq, &idle_since);
		ticks_since(w, &then);
	}
}

/*
 * Tasks of the virtual clock share one thread, and none of them keeps a pointer into the tables
 * while another one runs: time passes between bursts alone. So that thread is registered once for
 * all of them.
 */
static __thread unsigned registered;

void ro_worker_run(void *arg)
{
	struct ro_worker *w = arg;

	if (registered++ == 0)
		urcu_qsbr_register_thread();
	loop(w);
	ro_worker_finish(w);
	if (--registered == 0)
		urcu_qsbr_unregister_thread();
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	if (w->done_event)
		rt_event_signal(w->rt, w->done_event);
}
