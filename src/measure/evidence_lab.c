// SPDX-License-Identifier: BSD-2-Clause
/* A run in the lab, seen as Linux on the modelled box would show it. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "measure/evidence.h"

static const struct lab_chip_spec *chip_spec(const struct lab_scenario *s,
					     const struct lab_chip_result *chip)
{
	const struct lab_host_spec *host = &s->hosts[chip->host];
	unsigned i = 0;

	while (strcmp(host->chips[i].name, chip->name))
		i++;
	return &host->chips[i];
}

static const struct lab_workload_spec *work_spec(const struct lab_scenario *s,
						 const struct lab_workload_result *work)
{
	const struct lab_host_spec *host = &s->hosts[work->host];
	unsigned i = 0;

	while (strcmp(host->workloads[i].name, work->name))
		i++;
	return &host->workloads[i];
}

static void cpus(const struct lab_result *r, unsigned host, struct ms_evidence *ev)
{
	const struct lab_host_result *h = &r->host[host];
	double squeezed = 0;

	ev->n_cpus = HO_MIN(h->cpus, (unsigned)MS_EV_CPUS);
	for (unsigned i = 0; i < ev->n_cpus; i++) {
		const struct lab_cpu_stats *c = &h->cpu[i];
		double interval = (double)r->interval;

		ev->cpu[i] = (struct ms_ev_cpu){
			.user = (double)c->user / interval,
			.system = (double)c->system / interval,
			.irq = (double)c->irq / interval,
			.softirq = (double)c->softirq / interval,
			.idle = (double)c->idle / interval,
		};
		squeezed += (double)c->squeezed;
	}
	ev->value[MS_EV_SQUEEZED] = squeezed / ev->seconds;
}

static enum ms_ev_mode mode_of(enum lab_rx_mode mode)
{
	switch (mode) {
	case LAB_RX_NAPI:
		return MS_MODE_NAPI;
	case LAB_RX_DIRECT:
		return MS_MODE_DIRECT;
	case LAB_RX_POLL:
		return MS_MODE_POLL;
	default:
		return MS_MODE_OTHER;
	}
}

static double number(const struct lab_params *params, const char *name, double otherwise)
{
	const struct lab_param *p = lab_params_get(params, name);

	return p && p->numeric ? (double)p->value : otherwise;
}

/* What ethtool, lspci, sysctl and lscpu say. */
static void settings(const struct lab_scenario *s, const struct lab_chip_result *c,
		     struct ms_evidence *ev)
{
	const struct lab_chip_spec *spec = chip_spec(s, c);
	const struct lab_profile *p = s->hosts[c->host].profile;

	ev->mode = mode_of(spec->rx_mode);
	ev->value[MS_EV_LINK_BPS] = c->wire_bps ? (double)c->wire_bps : NAN;
	ev->value[MS_EV_PCI_BPS] = (double)p->constant[LAB_PCI_RATE_CONSTANT].value;
	ev->value[MS_EV_PCI_PAYLOAD] = (double)p->constant[LAB_PCI_PAYLOAD_CONSTANT].value;
	ev->value[MS_EV_BUDGET] = p->machine.poll_budget;
	if (p->machine.cache.n_levels)
		ev->value[MS_EV_L1D_BYTES] = (double)p->machine.cache.level[0].bytes;
	ev->value[MS_EV_TX_RING] = (double)c->tx_ring;
	ev->value[MS_EV_RX_RING] = (double)c->rx_ring;
	ev->value[MS_EV_TX_RESERVED] = (double)(c->tx_ring - c->tx_usable);
	ev->value[MS_EV_RX_USECS] = (double)c->rx_usecs;
	ev->value[MS_EV_ADAPTIVE] = c->rx_usecs == 1 || lab_params_get(&spec->params, "moderation");
	ev->value[MS_EV_BQL] = number(&spec->params, "bql", 0);
}

static void counters(const struct lab_chip_result *c, struct ms_evidence *ev)
{
	double s = ev->seconds;

	/* tx_pkts_nic, the controller's own count, which no cleaning delays. Bytes are counted when
	 * frames are cleaned: their mean is as good. */
	ev->value[MS_EV_TX_PPS] = (double)c->tx_sent / s;
	ev->value[MS_EV_TX_BYTES] =
		c->tx_packets ? (double)c->tx_bytes / (double)c->tx_packets * (double)c->tx_sent / s
			      : 0;
	ev->value[MS_EV_RX_PPS] = (double)c->rx_packets / s;
	ev->value[MS_EV_RX_BYTES] = (double)c->rx_bytes / s;
	ev->value[MS_EV_IRQS] = (double)c->interrupts / s;
	ev->value[MS_EV_TX_RESTART] = (double)c->tx_stops / s;
	ev->value[MS_EV_RX_NIC] = (double)c->rx_arrived / s;
	ev->value[MS_EV_RX_MISSED] = (double)c->rx_missed / s;
	ev->value[MS_EV_RX_NO_DESC] = (double)c->rx_no_descriptor / s;
	ev->value[MS_EV_RX_ERRORS] = 0;
	ev->value[MS_EV_BACKLOG_DROPS] = 0;
	if (c->socket_packets) {
		ev->value[MS_EV_SOCKET_PPS] = (double)c->socket_packets / s;
		ev->value[MS_EV_SOCKET_DROPS] = (double)c->socket_drops / s;
	}
	ev->n_queues = HO_MIN(c->queues, (unsigned)MS_EV_QUEUES);
	for (unsigned q = 0; q < ev->n_queues; q++)
		ev->queue[q] = (struct ms_ev_queue){
			.irq_cpu = (int)c->queue[q].irq_cpu,
			.irqs = (double)c->queue[q].interrupts / s,
			.rx_pps = (double)c->queue[q].rx_packets / s,
			.tx_pps = (double)c->queue[q].tx_packets / s,
		};
}

static double asked_pps(const struct lab_workload_spec *spec, const struct lab_chip_result *c,
			double bytes)
{
	const struct ho_rate *rate = &spec->rate;

	bytes = fmax(bytes, 60) + 4;
	switch (rate->unit) {
	case HO_RATE_PPS:
		return rate->value;
	case HO_RATE_L2_BPS:
		return rate->value / 8 / bytes;
	case HO_RATE_L1_BPS:
		return rate->value / 8 / (bytes + 20);
	case HO_RATE_PERCENT:
		return (double)c->wire_bps * rate->value / 100 / 8 / (bytes + 20);
	case HO_RATE_GAP:
		return 1 / rate->value;
	case HO_RATE_MAX:
		break;
	}
	return INFINITY;
}

static void add(double *sum, double value)
{
	*sum = isnan(*sum) ? value : *sum + value;
}

/* What the programs on the box say of themselves. */
static void programs(const struct lab_scenario *s, const struct lab_result *r, unsigned chip,
		     struct ms_evidence *ev)
{
	unsigned senders = 0;

	for (unsigned w = 0; w < r->n_workloads; w++) {
		const struct lab_workload_result *work = &r->workload[w];
		const struct lab_workload_spec *spec = work_spec(s, work);
		const struct lab_param *via = lab_params_get(&spec->params, "via");

		if (work->chip != chip)
			continue;
		if (work->cpu < ev->n_cpus)
			ev->cpu[work->cpu].app = true;
		if (work->kind != LAB_WORK_PKTGEN)
			add(&ev->value[MS_EV_SWITCHES],
			    (double)work->context_switches / ev->seconds);
		if (work->kind == LAB_WORK_PKTGEN || work->kind == LAB_WORK_GEN) {
			add(&ev->value[MS_EV_SENDER_WAITS], work->waiting);
			add(&ev->value[MS_EV_OFFERED_PPS],
			    asked_pps(spec, &r->chip[chip], work->frame_bytes));
			senders++;
		}
		/* Linux counts a datagram when the program reads it (UdpInDatagrams), or when
		 * there is no room for it; what waits in the socket is in neither. */
		if (work->kind == LAB_WORK_RECV && via && !strcmp(via->text, "socket")) {
			ev->value[MS_EV_SOCKET_DROPS] =
				(double)r->chip[chip].socket_drops / ev->seconds;
			ev->value[MS_EV_SOCKET_PPS] =
				(double)work->packets / ev->seconds + ev->value[MS_EV_SOCKET_DROPS];
		}
		if (work->kind != LAB_WORK_RR)
			continue;
		/* A server counts its replies. */
		add(&ev->value[MS_EV_TRANSACTIONS],
		    (double)(work->transactions ? work->transactions : work->packets) /
			    ev->seconds);
		if (work->transactions) {
			ev->value[MS_EV_LATENCY] = (double)work->latency.mean_ns;
			uint64_t think = 0;
			const struct lab_param *p = lab_params_get(&spec->params, "think");

			ev->value[MS_EV_OUTSTANDING] = number(&spec->params, "outstanding", 1);
			if (p)
				ho_parse_time_ns(p->text, &think, NULL);
			ev->value[MS_EV_THINK] = (double)think;
		}
	}
	if (senders)
		ev->value[MS_EV_SENDER_WAITS] /= senders;
}

void ms_evidence_lab(const struct lab_scenario *s, const struct lab_result *r, unsigned chip,
		     struct ms_evidence *ev)
{
	const struct lab_chip_result *c = &r->chip[chip];

	ms_evidence_init(ev);
	ev->seconds = (double)r->interval / (double)SIM_PS_PER_S;
	snprintf(ev->name, sizeof(ev->name), "%s.%s", c->host_name, c->name);
	cpus(r, c->host, ev);
	settings(s, c, ev);
	counters(c, ev);
	programs(s, r, chip, ev);
}
