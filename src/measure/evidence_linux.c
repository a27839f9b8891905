// SPDX-License-Identifier: BSD-2-Clause
/* A live box as evidence: what the sampler saw of an interface over an interval. */
#include <stdio.h>
#include <string.h>

#include "measure/evidence.h"

/* A counter of the driver; NAN if it has none of these names. */
static double driver(const struct lx_ifdata *i, const char *const *names, double s)
{
	for (; *names; names++) {
		const struct lx_counter *c = lx_counter_find(i, *names);

		if (c && !c->backwards)
			return (double)c->value / s;
	}
	return NAN;
}

static double setting(const struct lx_ifdata *i, const char *name)
{
	const struct lx_setting *p = lx_setting_find(i, name);

	return p ? (double)p->value : NAN;
}

static int cpu_index(const struct lx_host *h, unsigned id)
{
	for (unsigned i = 0; i < h->n_cpus; i++)
		if (h->cpu[i].id == id)
			return (int)i;
	return -1;
}

static void cpus(const struct lx_delta *d, struct ms_evidence *ev)
{
	const struct lx_host *h = &d->host;
	double dropped = 0, squeezed = 0, processed = 0;

	ev->n_cpus = HO_MIN(h->n_cpus, (unsigned)MS_EV_CPUS);
	for (unsigned i = 0; i < ev->n_cpus; i++) {
		const struct lx_cpu *c = &h->cpu[i];

		ev->cpu[i] = (struct ms_ev_cpu){
			.user = lx_cpu_share(c, LX_TIME_USER) + lx_cpu_share(c, LX_TIME_NICE),
			.system = lx_cpu_share(c, LX_TIME_SYSTEM),
			.irq = lx_cpu_share(c, LX_TIME_IRQ),
			.softirq = lx_cpu_share(c, LX_TIME_SOFTIRQ),
			.idle = lx_cpu_share(c, LX_TIME_IDLE) + lx_cpu_share(c, LX_TIME_IOWAIT),
		};
		/* Which program uses the interface is not to be seen: whoever has much of a CPU is
		 * taken for one. */
		ev->cpu[i].app = ev->cpu[i].user + ev->cpu[i].system > 0.25;
		dropped += (double)c->softnet.dropped;
		squeezed += (double)c->softnet.squeezed;
		processed += (double)c->softnet.processed;
	}
	if (h->has & LX_HOST_SOFTNET) {
		ev->value[MS_EV_BACKLOG_DROPS] = dropped / ev->seconds;
		ev->value[MS_EV_SQUEEZED] = squeezed / ev->seconds;
		ev->value[MS_EV_SOFTNET] = processed / ev->seconds;
	}
	if (h->has & LX_HOST_TASKS)
		ev->value[MS_EV_SWITCHES] =
			(double)(h->tasks.voluntary + h->tasks.involuntary) / ev->seconds;
	if (h->netcore.budget)
		ev->value[MS_EV_BUDGET] = h->netcore.budget;
	if (h->has & LX_HOST_PROTO) {
		const struct lx_proto *p = &h->proto;

		ev->value[MS_EV_SOCKET_DROPS] = (double)p->udp_rcvbuf_errors / ev->seconds;
		ev->value[MS_EV_SOCKET_PPS] =
			(double)(p->udp_in + p->udp_rcvbuf_errors) / ev->seconds;
		ev->value[MS_EV_NO_PORT] = (double)p->udp_no_ports / ev->seconds;
		ev->value[MS_EV_TCP_PPS] = (double)(p->tcp_in + p->tcp_out) / ev->seconds;
		ev->value[MS_EV_LOST_BEFORE] = (double)p->tcp_retransmits / ev->seconds;
		ev->value[MS_EV_FORWARDED] = (double)p->ip_forwarded / ev->seconds;
	}
}

static void queues(const struct lx_delta *d, const struct lx_ifdata *i, struct ms_evidence *ev)
{
	unsigned n = HO_MAX(i->facts.rx_queues, i->facts.tx_queues);

	ev->n_queues = HO_MIN(HO_MAX(n, 1u), (unsigned)MS_EV_QUEUES);
	for (unsigned q = 0; q < ev->n_queues; q++)
		ev->queue[q].irq_cpu = -1;
	for (unsigned v = 0; v < i->n_irqs; v++) {
		const struct lx_irq *irq = &i->irq[v];

		if (irq->queue < 0 || irq->queue >= (int)ev->n_queues)
			continue;
		if (ev->n_vectors < MS_EV_VECTORS)
			ev->vector[ev->n_vectors++] = irq->irq;
		ev->busiest_vector = fmax(ev->busiest_vector, (double)irq->count / ev->seconds);
		ev->queue[irq->queue].irqs += (double)irq->count / ev->seconds;
		ev->queue[irq->queue].irq_cpu = cpu_index(&d->host, irq->busiest);
	}
	for (unsigned k = 0; k < i->n_queues; k++) {
		const struct lx_queue *q = &i->queue[k];

		if (q->id < ev->n_queues && q->counted)
			*(q->dir == LX_RX ? &ev->queue[q->id].rx_pps : &ev->queue[q->id].tx_pps) =
				(double)q->packets / ev->seconds;
	}
}

/* Drivers of Intel's chips at 1 Gbit/s to which rx-usecs 1 and 3 are names of adaptive moderation
 * (e1000e_set_coalesce and its likes). */
static bool adaptive_by_number(const char *name, double usecs)
{
	static const char *const drivers[] = { "e1000", "e1000e", "igb", "igbvf", "igc" };

	for (unsigned i = 0; i < HO_ARRAY_LEN(drivers); i++)
		if (!strcmp(name, drivers[i]))
			return usecs == 1 || usecs == 3;
	return false;
}

/*
 * Who asks and who answers is not to be seen from outside. But requests and answers are as many
 * packets each way, made by the stack, small, and not passed on. Streams are uneven (TCP
 * acknowledges every other segment) or large.
 */
static double transactions(const struct lx_delta *d, const struct ms_evidence *ev)
{
	const struct lx_proto *p = &d->host.proto;
	double tx = ms_ev(ev, MS_EV_TX_PPS), rx = ms_ev(ev, MS_EV_RX_PPS);
	double longest = fmax(ms_ev(ev, MS_EV_TX_BYTES) / tx, ms_ev(ev, MS_EV_RX_BYTES) / rx);
	double ours = (double)HO_MIN(p->ip_in, p->ip_out) / ev->seconds;

	if (!(d->host.has & LX_HOST_PROTO))
		return NAN;
	if (!(fmin(tx, rx) > 4) || fmin(tx, rx) < 0.8 * fmax(tx, rx) || longest > 1000 ||
	    ours < 0.5 * fmin(tx, rx) || ms_ev(ev, MS_EV_FORWARDED) > 0.1 * rx)
		return 0;
	return fmin(tx, rx);
}

void ms_evidence_linux(const struct lx_delta *d, unsigned iface, struct ms_evidence *ev)
{
	static const char *const restart[] = { "tx_restart_queue", "tx_restart", NULL };
	static const char *const missed[] = { "rx_missed_errors", "rx_missed", "rx_missed_packets",
					      NULL };
	static const char *const no_desc[] = { "rx_no_dma_resources", "rx_no_buffer_count",
					       "rx_out_of_buffer", NULL };
	static const char *const no_buffer[] = { "alloc_rx_buff_failed", "alloc_rx_page_failed",
						 NULL };
	static const char *const nic[] = { "rx_pkts_nic", NULL };
	static const char *const csum[] = { "rx_csum_offload_errors", "rx_csum_bad", NULL };
	const struct lx_ifdata *i = &d->iface[iface];
	double s = (double)d->interval_ns / 1e9, adaptive, rx_csum, tx_csum;

	ms_evidence_init(ev);
	ev->seconds = s;
	ev->shared_cpus = true;
	snprintf(ev->name, sizeof(ev->name), "%s", i->name);
	cpus(d, ev);
	queues(d, i, ev);
	if (i->has & LX_IF_LINK) {
		const struct rtnl_link_stats64 *l = &i->link;

		ev->value[MS_EV_TX_PPS] = (double)l->tx_packets / s;
		ev->value[MS_EV_TX_BYTES] = (double)l->tx_bytes / s;
		ev->value[MS_EV_RX_PPS] = (double)l->rx_packets / s;
		ev->value[MS_EV_RX_BYTES] = (double)l->rx_bytes / s;
		ev->value[MS_EV_RX_ERRORS] = (double)l->rx_errors / s;
		ev->value[MS_EV_RX_MISSED] = (double)l->rx_missed_errors / s;
	}
	if (i->has & LX_IF_IRQS)
		ev->value[MS_EV_IRQS] = (double)lx_irqs_sum(i) / s;
	ev->value[MS_EV_TX_RESTART] = driver(i, restart, s);
	if (isnan(ev->value[MS_EV_RX_MISSED]))
		ev->value[MS_EV_RX_MISSED] = driver(i, missed, s);
	ev->value[MS_EV_RX_NO_DESC] = driver(i, no_desc, s);
	ev->value[MS_EV_RX_NO_BUFFER] = driver(i, no_buffer, s);
	ev->value[MS_EV_CSUM_ERRORS] = driver(i, csum, s);
	ev->value[MS_EV_RX_NIC] = driver(i, nic, s);
	if (i->facts.link_bps)
		ev->value[MS_EV_LINK_BPS] = (double)i->facts.link_bps;
	/* 8b/10b up to 5 GT/s, 128b/130b from 8 on. */
	if (i->facts.pcie_lanes && i->facts.pcie_mtps)
		ev->value[MS_EV_PCI_BPS] = (double)i->facts.pcie_lanes * i->facts.pcie_mtps * 1e6 *
					   (i->facts.pcie_mtps > 5000 ? 128.0 / 130 : 0.8);
	ev->value[MS_EV_TX_RING] = setting(i, "tx");
	ev->value[MS_EV_RX_RING] = setting(i, "rx");
	ev->value[MS_EV_RX_USECS] = setting(i, "rx-usecs");
	adaptive = setting(i, "adaptive-rx");
	ev->value[MS_EV_ADAPTIVE] = adaptive;
	if (adaptive == 1 || adaptive_by_number(i->facts.driver, ms_ev(ev, MS_EV_RX_USECS)))
		ev->value[MS_EV_RX_USECS] = 1;
	ev->value[MS_EV_TRANSACTIONS] = transactions(d, ev);
	ev->value[MS_EV_TSO] = setting(i, "tso");
	ev->value[MS_EV_GRO] = setting(i, "gro");
	rx_csum = setting(i, "rx-checksumming");
	tx_csum = setting(i, "tx-checksumming");
	ev->value[MS_EV_CSUM] = isnan(rx_csum) || isnan(tx_csum) ? NAN : fmin(rx_csum, tx_csum);
	ev->mode = MS_MODE_NAPI;
	for (unsigned k = 0; k < i->n_napis; k++)
		if (i->napi[k].thread_pid)
			ev->mode = MS_MODE_OTHER;
}
