// SPDX-License-Identifier: BSD-2-Clause
/* From evidence to what it implies: shares, prices, where the work is done. */
#include <stdio.h>
#include <string.h>

#include "measure/explain.h"

/* A CPU with less to do than this has room for the interrupts. */
#define NEARLY_IDLE 0.15
/* What an interrupt begins beside its handler, as a share of the handler: the start of softirqs and
 * a poll. No counter tells it apart from the frames' work; this is Linux's on many machines. */
#define BEGINS 0.55
/* Events that may be chance. */
#define FEW 5

static double divide(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

/* Frames a second that no program read, and no socket dropped yet: a socket fills up because its
 * program gets no time. Not where frames have other ways to go. */
static double unread(const struct ms_evidence *ev, double rx)
{
	double left = rx - ms_ev(ev, MS_EV_SOCKET_PPS);
	bool full = false;

	for (unsigned i = 0; i < ev->n_cpus; i++)
		full |= ev->cpu[i].app && ev->cpu[i].irq + ev->cpu[i].softirq > 0.9;
	if (!full || !(left > 0.12 * rx) ||
	    ms_ev0(ev, MS_EV_TCP_PPS) + ms_ev0(ev, MS_EV_FORWARDED) > 0.05 * rx)
		return 0;
	return left;
}

static void aim(struct ms_view *v)
{
	const struct ms_evidence *ev = v->ev;
	double tx = ms_ev0(ev, MS_EV_TX_PPS), rx = ms_ev0(ev, MS_EV_RX_PPS), stuck = 0;

	v->lost = ms_ev0(ev, MS_EV_RX_MISSED) + ms_ev0(ev, MS_EV_RX_NO_DESC) +
		  ms_ev0(ev, MS_EV_RX_NO_BUFFER) + ms_ev0(ev, MS_EV_BACKLOG_DROPS) +
		  ms_ev0(ev, MS_EV_SOCKET_DROPS);
	if (ms_ev0(ev, MS_EV_TRANSACTIONS) > 0) {
		v->aim = MS_AIM_REQUEST;
		v->rate = ms_ev(ev, MS_EV_TRANSACTIONS);
		v->bytes = divide(ms_ev0(ev, MS_EV_TX_BYTES), tx);
	} else if (tx >= rx && tx > 0) {
		v->aim = MS_AIM_SEND;
		v->rate = tx;
		v->bytes = divide(ms_ev0(ev, MS_EV_TX_BYTES), tx);
	} else if (rx + v->lost > 0) {
		v->aim = MS_AIM_RECEIVE;
		stuck = unread(ev, rx);
		v->lost += stuck;
		v->rate = rx - stuck - ms_ev0(ev, MS_EV_SOCKET_DROPS) -
			  ms_ev0(ev, MS_EV_BACKLOG_DROPS);
		v->bytes = divide(ms_ev0(ev, MS_EV_RX_BYTES), rx);
	}
	v->arrives = v->rate + v->lost;
	/* What the controller took from the wire and neither gave on nor dropped fills its buffer,
	 * and will be lost when that is full. A batch at the interval's end is no sign of it. */
	v->behind = ms_ev0(ev, MS_EV_RX_NIC) - rx - ms_ev0(ev, MS_EV_RX_MISSED) -
		    ms_ev0(ev, MS_EV_RX_NO_DESC);
	if (v->aim == MS_AIM_RECEIVE && v->behind > 0.12 * v->arrives) {
		v->lost += v->behind;
		v->arrives += v->behind;
	} else {
		v->behind = 0;
	}
	if (v->aim != MS_AIM_NOTHING)
		v->rate = fmax(v->rate, 1);
}

/* Preamble, FCS and gap are 24 bytes; no frame is shorter than 60. */
static double wire_share(double pps, double bytes, double bps)
{
	return pps * (fmax(bytes, 60) + 24) * 8 / bps;
}

/*
 * The bus: what a frame needs in its heavier direction. Sending, the data comes as completions of
 * at most `payload` bytes with 24 of header each, a descriptor of 16 bytes with its share of a
 * header, and a doorbell of 28 bytes; so long is the write that unmasks after an interrupt, too.
 * Receiving, the data goes as writes of the same form, and so does the descriptor's write-back.
 */
static double pci_share(const struct ms_view *v)
{
	double payload = ms_ev(v->ev, MS_EV_PCI_PAYLOAD), bps = ms_ev(v->ev, MS_EV_PCI_BPS);
	double data = v->bytes + 24 * ceil(v->bytes / payload);

	switch (v->aim) {
	case MS_AIM_SEND:
		return (v->rate * (data + 19 + 28) + ms_ev0(v->ev, MS_EV_IRQS) * 28) * 8 / bps;
	case MS_AIM_RECEIVE:
		return (v->rate + ms_ev0(v->ev, MS_EV_SOCKET_DROPS)) * (data + 22) * 8 / bps;
	default:
		return v->rate * 2 * data * 8 / bps;
	}
}

static bool interrupted(const struct ms_evidence *ev, unsigned cpu)
{
	for (unsigned q = 0; q < ev->n_queues; q++)
		if (ev->queue[q].irq_cpu == (int)cpu)
			return true;
	return false;
}

/* A polling thread keeps its CPU busy whether it finds something or not. */
static bool polls_only(const struct ms_evidence *ev, unsigned cpu)
{
	return ev->mode == MS_MODE_POLL && !ev->cpu[cpu].app && interrupted(ev, cpu);
}

static void cpus(struct ms_view *v)
{
	const struct ms_evidence *ev = v->ev;

	v->hot = -1;
	for (unsigned i = 0; i < ev->n_cpus; i++) {
		const struct ms_ev_cpu *c = &ev->cpu[i];
		double busy = ms_ev_busy(c), irq = c->irq + c->softirq;

		if (c->app) {
			v->apps++;
			if (busy > v->app_busy || (busy == v->app_busy && irq > v->app_irq)) {
				v->app_busy = busy;
				v->app_irq = irq;
			}
		} else if (busy < NEARLY_IDLE || polls_only(ev, i)) {
			v->spare++;
		}
		v->irq_irq = fmax(v->irq_irq, irq);
		if (interrupted(ev, i))
			v->irq_busy = fmax(v->irq_busy, busy);
		if (polls_only(ev, i))
			continue;
		if (busy > v->hot_busy) {
			v->hot = (int)i;
			v->hot_busy = busy;
			v->hot_irq = irq;
		}
	}
}

static void queues(struct ms_view *v)
{
	const struct ms_evidence *ev = v->ev;
	double sum = 0, most = 0;

	for (unsigned q = 0; q < ev->n_queues; q++) {
		double n = v->aim == MS_AIM_SEND ? ev->queue[q].tx_pps : ev->queue[q].rx_pps;

		sum += n;
		most = fmax(most, n);
	}
	v->imbalance = sum > 0 ? most / sum * ev->n_queues : 1;
}

static void prices(struct ms_view *v)
{
	const struct ms_evidence *ev = v->ev;
	double irqs = ms_ev0(ev, MS_EV_IRQS), hard = 0, soft = 0, app = 0;
	double frames = v->aim == MS_AIM_RECEIVE ? ms_ev0(ev, MS_EV_RX_PPS) : v->rate;

	for (unsigned i = 0; i < ev->n_cpus; i++) {
		hard += ev->cpu[i].irq;
		soft += ev->cpu[i].softirq;
		if (polls_only(ev, i))
			soft += ev->cpu[i].user + ev->cpu[i].system;
		else if (ev->cpu[i].app || ev->mode != MS_MODE_POLL)
			app += ev->cpu[i].user + ev->cpu[i].system;
	}
	app -= fmin(app, v->waits * v->apps);
	v->hard_ns = irqs > 0 ? hard / irqs * 1e9 : NAN;
	if (ev->mode == MS_MODE_DIRECT) {
		/* One account for all: what an interrupt costs without frames is a guess. */
		double guess = fmin(v->hard_ns * 0.8, 800);

		v->irq_ns = irqs > 0 ? guess : NAN;
		v->soft_ns = divide(hard - guess * irqs * 1e-9, frames) * 1e9;
		v->hard_ns = v->irq_ns;
	} else {
		double begins = irqs > 0 ? fmin(BEGINS * v->hard_ns, soft / irqs * 0.7e9) : 0;

		v->irq_ns = irqs > 0 ? v->hard_ns + begins : NAN;
		v->soft_ns = divide(soft - begins * irqs * 1e-9, frames) * 1e9;
	}
	v->app_ns = divide(app, v->rate) * 1e9;
	/* A program that gets nothing has no price: it reads faster than the stack works. */
	if (v->aim == MS_AIM_RECEIVE && v->rate < 0.01 * v->arrives)
		v->app_ns = 0.3 * v->soft_ns;
	/* Little is left of a CPU that mostly waits, and that little is uncertain: building and
	 * queueing a frame costs more than cleaning it. */
	if (v->waits > 0.5 && v->soft_ns > 0)
		v->app_ns = fmax(v->app_ns, 3.5 * v->soft_ns);
}

static enum ms_place place_now(const struct ms_evidence *ev)
{
	bool away = true, apps = true, zero = true;
	int first = -1;

	for (unsigned i = 0; i < ev->n_cpus && first < 0; i++)
		if (ev->cpu[i].app)
			first = (int)i;
	for (unsigned q = 0; q < ev->n_queues; q++) {
		int cpu = ev->queue[q].irq_cpu;

		if (cpu < 0 || cpu >= (int)ev->n_cpus)
			return MS_PLACE_ELSE;
		zero &= cpu == (first < 0 ? 0 : first);
		away &= !ev->cpu[cpu].app;
		apps &= first < 0 || ev->cpu[cpu].app;
	}
	if (zero)
		return MS_PLACE_ZERO;
	if (first >= 0 && away)
		return MS_PLACE_AWAY;
	return apps ? MS_PLACE_APPS : MS_PLACE_ELSE;
}

void ms_view_make(const struct ms_evidence *ev, struct ms_view *v)
{
	double interval;

	memset(v, 0, sizeof(*v));
	v->ev = ev;
	v->waits = ms_ev0(ev, MS_EV_SENDER_WAITS);
	aim(v);
	v->wire = wire_share(v->aim == MS_AIM_RECEIVE ? v->arrives : v->rate, v->bytes,
			     ms_ev(ev, MS_EV_LINK_BPS));
	v->pci = pci_share(v);
	cpus(v);
	queues(v);
	prices(v);
	v->now = (struct ms_choice){
		.ring = (unsigned)ms_ev0(ev, v->aim == MS_AIM_SEND ? MS_EV_TX_RING : MS_EV_RX_RING),
		.usecs = (unsigned)ms_ev0(ev, MS_EV_RX_USECS),
		.mode = ev->mode,
		.place = place_now(ev),
	};
	interval = v->now.usecs == 1 ? NAN : v->now.usecs * 1.024e-6;
	v->cleanings = ms_ev0(ev, MS_EV_IRQS) / fmax(1, ev->n_queues);
	/* A request and its answer have one vector, and other queues have nothing to do with it. */
	if (v->aim == MS_AIM_REQUEST && !isnan(ev->busiest_vector))
		v->cleanings = ev->busiest_vector;
	v->gate = v->now.usecs ? v->cleanings * interval : 0;
	if (v->aim == MS_AIM_REQUEST) {
		double n = ms_ev(ev, MS_EV_OUTSTANDING);

		v->outstanding = n;
		v->round = (isnan(n) ? 1 : n) / v->rate - ms_ev0(ev, MS_EV_THINK) * 1e-9;
		v->work = (isnan(v->app_ns) ? 0 : v->app_ns) +
			  (isnan(v->soft_ns) ? 0 : v->soft_ns) + (isnan(v->irq_ns) ? 0 : v->irq_ns);
		v->work *= 1e-9;
	}
	/* How long a sender waits is its own affair. That a queue was stopped shows as well. */
	v->stops = v->aim == MS_AIM_SEND && isnan(ms_ev(ev, MS_EV_SENDER_WAITS)) &&
		   ms_ev(ev, MS_EV_TX_RESTART) > 0.3 * ms_ev0(ev, MS_EV_IRQS) &&
		   ms_ev(ev, MS_EV_TX_RESTART) * ev->seconds > FEW;
	v->in_flight = ms_ev(ev, MS_EV_TX_RING) - ms_ev0(ev, MS_EV_TX_RESERVED);
}

const char *ms_place_cpus(const struct ms_evidence *ev, enum ms_place place, char *buf,
			  size_t bytes)
{
	size_t at = 0;
	unsigned programs = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < ev->n_cpus; i++)
		programs += ev->cpu[i].app;
	for (unsigned i = 0; i < ev->n_cpus && at < bytes; i++) {
		bool take = place == MS_PLACE_AWAY ? !ev->cpu[i].app : ev->cpu[i].app || !programs;

		if (!take)
			continue;
		at += (size_t)snprintf(buf + at, bytes - at, "%s%u", at ? "," : "", i);
		if (place == MS_PLACE_ZERO)
			break;
	}
	return buf;
}
