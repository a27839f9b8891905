// SPDX-License-Identifier: BSD-2-Clause
#include "lab/limiter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* A resource counts as used up from this share on: the rest is edges of the interval. */
#define USED_UP 0.985
/* So much of its CPU's time a sender must wait for its ring before the ring is the reason. */
#define WAITS 0.02
/* So many frames lost on the way in, of all, are the receiver's doing. */
#define LOSES 0.001
/* A rate is reached when it is missed by no more than this. */
#define REACHED 0.005
/* A knob that gives less than this is not worth a word. */
#define WORTH 0.005

static const struct {
	const char *name, *title;
} limits[LAB_LIMIT_COUNT] = {
	[LAB_LIMIT_NONE] = { "none", "nothing" },
	[LAB_LIMIT_RX_RING] = { "rx-ring", "the receive ring" },
	[LAB_LIMIT_RX_CPU] = { "rx-cpu", "the receiving CPU" },
	[LAB_LIMIT_OFFERED] = { "offered", "the offered rate" },
	[LAB_LIMIT_WIRE] = { "wire", "the wire" },
	[LAB_LIMIT_PCI] = { "pci", "the chip's bus" },
	[LAB_LIMIT_RING] = { "ring", "the transmit ring" },
	[LAB_LIMIT_CPU] = { "cpu", "the sending CPU" },
};

const char *lab_limit_name(enum lab_limit limit)
{
	return limits[limit].name;
}

const char *lab_limit_title(enum lab_limit limit)
{
	return limits[limit].title;
}

/* --- the numbers ---------------------------------------------------------------------------- */

/* What the judgement is made from. */
struct view {
	const struct lab_scenario *scenario;
	const struct lab_result *result;
	const struct lab_workload_result *work; /* the sender, or the only workload */
	const struct lab_workload_spec *spec;   /* of it */
	const struct lab_chip_result *chip;     /* it sends there */
	const struct lab_chip_result *peer; /* and this one receives; NULL = a sink, or nobody */
	const struct lab_chip_spec *peer_spec;
	const struct lab_cpu_stats *cpu;   /* the sender's */
	const struct lab_machine *machine; /* the sender's */
	double seconds;
	double spins; /* share of the time in which the sender's CPU waits for its queue */
};

static const struct lab_chip_spec *chip_spec(const struct lab_scenario *s,
					     const struct lab_chip_result *chip)
{
	const struct lab_host_spec *host = &s->hosts[chip->host];
	unsigned i = 0;

	while (strcmp(host->chips[i].name, chip->name))
		i++;
	return &host->chips[i];
}

/* The chip at the other end of the cable. */
static const struct lab_chip_result *peer_of(const struct view *v)
{
	const struct lab_scenario *s = v->scenario;
	const struct lab_chip_spec *mine = chip_spec(s, v->chip);

	for (uint32_t w = 0; w < s->wires_count; w++) {
		for (unsigned e = 0; e < 2; e++) {
			const struct lab_wire_end *here = &s->wires[w].end[e];
			const struct lab_wire_end *there = &s->wires[w].end[!e];

			if (s->wires[w].sink || here->host != v->chip->host ||
			    &s->hosts[here->host].chips[here->chip] != mine)
				continue;
			for (unsigned i = 0; i < v->result->n_chips; i++) {
				const struct lab_chip_result *c = &v->result->chip[i];

				if (c->host == there->host &&
				    !strcmp(c->name, s->hosts[there->host].chips[there->chip].name))
					return c;
			}
		}
	}
	return NULL;
}

static bool look(const struct lab_scenario *scenario, const struct lab_result *result,
		 struct view *v)
{
	const struct lab_host_spec *host;
	uint32_t i = 0;

	memset(v, 0, sizeof(*v));
	v->scenario = scenario;
	v->result = result;
	v->work = lab_result_sender(result);
	if (!v->work)
		return false;
	v->chip = &result->chip[v->work->chip];
	host = &scenario->hosts[v->work->host];
	while (strcmp(host->workloads[i].name, v->work->name))
		i++;
	v->spec = &host->workloads[i];
	v->machine = &host->profile->machine;
	v->cpu = &result->host[v->work->host].cpu[v->work->cpu];
	v->peer = peer_of(v);
	v->peer_spec = v->peer ? chip_spec(scenario, v->peer) : NULL;
	v->seconds = (double)result->interval / (double)SIM_PS_PER_S;
	return true;
}

static double ns(sim_ps ps)
{
	return (double)ps / SIM_PS_PER_NS;
}

/*
 * c and k from the CPU's accounts. An interrupt's share: all of the time in hard interrupts, and
 * of softirq time what does not depend on the number of frames: its start, and the calls of
 * polls. A frame's share: everything else that the CPU did, but for spinning in front of a stopped
 * queue. While the sender waits, interrupts are taken as well and are not spinning: those that end
 * a wait, one a stop.
 */
static void measure(struct view *v, struct lab_limiter *out)
{
	const struct lab_cpu_stats *cpu = v->cpu;
	double frames = (double)v->work->packets, cleanings = (double)v->chip->completes;
	double interval = ns(v->result->interval);
	double irq = ns(cpu->irq), softirq = ns(cpu->softirq);
	double start = (double)cpu->softirqs * ns(v->machine->softirq) +
		       (double)cpu->polls * ns(v->machine->cost[RT_COST_POLL]);
	double per_interrupt = irq + fmin(start, softirq);
	double spins = v->work->waiting * interval;

	out->pps = frames / v->seconds;
	if (frames <= 0)
		return;
	if (cleanings > 0) {
		double ending = fmin(1, (double)v->chip->tx_stops / cleanings);

		out->cleanings_per_s = cleanings / v->seconds;
		out->in_flight = (double)v->chip->tx_packets / cleanings;
		spins -= fmin(spins, (irq + softirq) * ending);
		if (cpu->irq)
			out->interrupt_ns = per_interrupt / cleanings;
	}
	v->spins = spins / interval;
	out->frame_ns =
		(ns(cpu->user) + ns(cpu->system) + irq + softirq - spins - per_interrupt) / frames;
}

/* What the cache adds to a frame's price when so many are in flight between fill and drain. */
static double cache_ns(const struct view *v, double in_flight)
{
	double sum = 0;

	for (unsigned i = 0; i < v->machine->n_reuse; i++) {
		const struct lab_reuse *r = &v->machine->reuse[i];

		if (r->fill == RT_COST_TX_FRAME)
			sum += ns(lab_cache_touch(&v->machine->cache,
						  (uint64_t)(in_flight * r->bytes), r->bytes));
	}
	return sum;
}

/*
 * The law, with n frames at most in flight and f cleanings a second. What is in flight decides
 * about the cache term and the cache term about what is in flight: a few rounds settle it. An even
 * share of the present batch is what the run itself had.
 */
static double law(const struct view *v, const struct lab_limiter *l, double n, double f)
{
	double now = cache_ns(v, l->in_flight), pps = l->pps;
	double cpu = fmax(0, 1 - l->interrupt_ns * 1e-9 * f);

	for (int i = 0; i < 8; i++) {
		double batch = fmin(n, pps / f);

		pps = cpu / ((l->frame_ns - now + cache_ns(v, batch)) * 1e-9);
		if (pps > n * f)
			return n * f;
	}
	return pps;
}

/* 33.4 -> 30, 334 -> 300, 7.8 -> 7: what a person would set, not above. */
static double round_down(double value)
{
	double step = 1;

	while (value >= step * 10)
		step *= 10;
	return floor(value / step) * step;
}

static double power_of_two(double at_least)
{
	double value = 64;

	while (value < at_least)
		value *= 2;
	return value;
}

static void offer(struct lab_limiter *out, const char *name, double value, double pps)
{
	unsigned i = out->knob[0].name != NULL;

	if (pps < out->pps * (1 + WORTH))
		return;
	out->knob[i] = (struct lab_limit_knob){ .name = name, .value = value, .pps = pps };
}

/* Interval and ring at which the CPU, not the ring, is the limit: n / T = (1 - k / T) / c. */
static void knobs(const struct view *v, struct lab_limiter *out)
{
	double n = (double)v->chip->tx_usable, f = out->cleanings_per_s;
	double wire = v->chip->wire_bps && v->work->frame_bytes
			      ? (double)v->chip->wire_bps /
					(8.0 * (fmax(v->work->frame_bytes, 60) + 4 + 20))
			      : INFINITY;
	double usecs = round_down((out->frame_ns * n + out->interrupt_ns) / 1000);
	double cpu = (1 - out->interrupt_ns * 1e-9 * f) / (out->frame_ns * 1e-9);
	double ring;

	if (f <= 0 || n <= 0 || out->frame_ns <= 0)
		return;
	out->law_pps = law(v, out, n, f);
	if (usecs >= 1 && fabs(usecs * f / 1e6 - 1) > 0.05)
		offer(out, "rx-usecs", usecs, fmin(wire, law(v, out, n, 1e6 / usecs)));
	if (out->what != LAB_LIMIT_RING)
		return;
	ring = power_of_two(cpu / f + (double)(v->chip->tx_ring - v->chip->tx_usable));
	if (ring > (double)v->chip->tx_ring && ring <= 4096)
		offer(out, "tx", ring,
		      fmin(wire,
			   law(v, out, ring - (double)(v->chip->tx_ring - v->chip->tx_usable), f)));
}

/* --- the judgement -------------------------------------------------------------------------- */

static double rx_cpu_busy(const struct view *v)
{
	const struct lab_host_result *host = &v->result->host[v->peer->host];
	double busy = 0;

	for (uint32_t i = 0; i < v->peer_spec->irq_cpus_count; i++)
		busy = fmax(busy, lab_cpu_busy(&host->cpu[v->peer_spec->irq_cpus[i]]));
	for (unsigned w = 0; w < v->result->n_workloads; w++) {
		const struct lab_workload_result *work = &v->result->workload[w];

		if (work->kind == LAB_WORK_RECV && &v->result->chip[work->chip] == v->peer)
			busy = fmax(busy, lab_cpu_busy(&host->cpu[work->cpu]));
	}
	return busy;
}

static double rx_lost(const struct view *v)
{
	return v->peer ? (double)(v->peer->drops[PORT_DROP_RX_RING_FULL] +
				  v->peer->drops[PORT_DROP_RX_LINK] +
				  v->peer->drops[PORT_DROP_RX_NO_BUFFER])
		       : 0;
}

/* The rate that the scenario asks for, in frames a second; INFINITY = as fast as possible. */
static double asked(const struct view *v)
{
	const struct ho_rate *rate = &v->spec->rate;
	double bytes = fmax(v->work->frame_bytes, 60) + 4;

	switch (rate->unit) {
	case HO_RATE_MAX:
		return INFINITY;
	case HO_RATE_PPS:
		return rate->value;
	case HO_RATE_L2_BPS:
		return rate->value / 8 / bytes;
	case HO_RATE_L1_BPS:
		return rate->value / 8 / (bytes + 20);
	case HO_RATE_PERCENT:
		return (double)v->chip->wire_bps * rate->value / 100 / 8 / (bytes + 20);
	case HO_RATE_GAP:
		return 1 / rate->value;
	}
	return INFINITY;
}

static void judge(const struct view *v, struct lab_limiter *out)
{
	double pci = fmax(v->chip->pci_up_busy, v->chip->pci_down_busy);
	double cpu = lab_cpu_busy(v->cpu), rate = asked(v), lost = rx_lost(v);

	out->what = LAB_LIMIT_NONE;
	if (v->peer && lost > LOSES * ((double)v->peer->rx_packets + lost)) {
		out->used = rx_cpu_busy(v);
		out->what = out->used >= USED_UP ? LAB_LIMIT_RX_CPU : LAB_LIMIT_RX_RING;
		if (out->what == LAB_LIMIT_RX_RING)
			out->used = 1;
	} else if (out->pps >= rate * (1 - REACHED)) {
		out->what = LAB_LIMIT_OFFERED;
		out->used = out->pps / rate;
	} else if (v->chip->wire_tx_busy >= USED_UP) {
		out->what = LAB_LIMIT_WIRE;
		out->used = v->chip->wire_tx_busy;
	} else if (pci >= USED_UP) {
		out->what = LAB_LIMIT_PCI;
		out->used = pci;
	} else if (v->spins >= WAITS) {
		out->what = LAB_LIMIT_RING;
		out->used = 1;
	} else if (cpu >= USED_UP) {
		out->what = LAB_LIMIT_CPU;
		out->used = cpu;
	} else {
		out->used = cpu;
	}
}

/* --- the words ------------------------------------------------------------------------------ */

static void say(struct lab_limiter *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct lab_limiter *out, const char *fmt, ...)
{
	size_t at = strlen(out->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->text + at, sizeof(out->text) - at, fmt, ap);
	va_end(ap);
}

/* 1883345 -> "1.88 Mpps", 9876 -> "9.88 kpps". */
static const char *rate_text(double pps, char text[HO_UNIT_TEXT])
{
	if (pps >= 1e6)
		snprintf(text, HO_UNIT_TEXT, "%.2f Mpps", pps / 1e6);
	else if (pps >= 1e3)
		snprintf(text, HO_UNIT_TEXT, "%.2f kpps", pps / 1e3);
	else
		snprintf(text, HO_UNIT_TEXT, "%.0f pps", pps);
	return text;
}

static void say_knobs(struct lab_limiter *out)
{
	char text[HO_UNIT_TEXT];

	for (unsigned i = 0; i < 2 && out->knob[i].name; i++)
		say(out, "%s%s %.0f would %s %s", i ? "; " : ". ", out->knob[i].name,
		    out->knob[i].value, i ? "give" : "lift it to",
		    rate_text(out->knob[i].pps, text));
}

static void say_ring(const struct view *v, struct lab_limiter *out)
{
	char count[HO_UNIT_TEXT], have[HO_UNIT_TEXT], could[HO_UNIT_TEXT];
	double f = out->cleanings_per_s;

	if (f <= 0) {
		say(out,
		    "the transmit ring of %llu is full %.0f %% of the time, and the sender "
		    "waits for it",
		    (unsigned long long)v->chip->tx_ring, v->spins * 100);
		return;
	}
	say(out, "%.0f frames in flight are cleaned %s times a second: %s", out->in_flight,
	    ho_format_count((uint64_t)llround(f), count), rate_text(out->in_flight * f, have));
	if (out->frame_ns > 0)
		say(out, ", where the CPU has time for %s",
		    rate_text((1 - out->interrupt_ns * 1e-9 * f) / (out->frame_ns * 1e-9), could));
	say_knobs(out);
}

static void say_cpu(const struct view *v, struct lab_limiter *out)
{
	char count[HO_UNIT_TEXT], have[HO_UNIT_TEXT];
	double f = out->cleanings_per_s;

	say(out, "CPU %u of %s is busy all the time: %.1f ns a frame", v->work->cpu,
	    v->work->host_name, out->frame_ns);
	if (f > 0 && out->interrupt_ns > 0)
		say(out, ", and %s interrupts a second of %.0f ns take %.1f %%: %s",
		    ho_format_count((uint64_t)llround(f), count), out->interrupt_ns,
		    f * out->interrupt_ns * 1e-7, rate_text(out->pps, have));
	else
		say(out, ": %s", rate_text(out->pps, have));
	if (f > 0)
		say(out,
		    ". Of the ring's %llu, %.0f are cleaned at a time: a larger one gains "
		    "nothing",
		    (unsigned long long)v->chip->tx_ring, out->in_flight);
	say_knobs(out);
}

static void describe(const struct view *v, struct lab_limiter *out)
{
	char text[HO_UNIT_TEXT], other[HO_UNIT_TEXT];

	switch (out->what) {
	case LAB_LIMIT_RX_RING:
		say(out,
		    "%s of %s lost %.0f frames because its receive ring of %llu fills up "
		    "between two polls, although its CPU is busy only %.0f %% of the time",
		    v->peer->name, v->peer->host_name, rx_lost(v),
		    (unsigned long long)v->peer->rx_ring, rx_cpu_busy(v) * 100);
		break;
	case LAB_LIMIT_RX_CPU:
		say(out,
		    "the CPU that receives from %s of %s is busy %.0f %% of the time and "
		    "takes %s of the %s that are sent",
		    v->peer->name, v->peer->host_name, out->used * 100,
		    rate_text((double)v->peer->rx_packets / v->seconds, text),
		    rate_text(out->pps, other));
		break;
	case LAB_LIMIT_OFFERED:
		say(out,
		    "%s is what %s was told to send; its CPU is busy %.0f %%, the wire %.0f %%",
		    rate_text(out->pps, text), v->work->name, lab_cpu_busy(v->cpu) * 100,
		    v->chip->wire_tx_busy * 100);
		break;
	case LAB_LIMIT_WIRE:
		say(out,
		    "the wire is busy %.1f %% of the time: %s of %u bytes, with 24 bytes of "
		    "preamble, checksum and gap each, fill %.0f Gbit/s",
		    out->used * 100, rate_text(out->pps, text), v->work->frame_bytes,
		    (double)v->chip->wire_bps / 1e9);
		break;
	case LAB_LIMIT_PCI:
		say(out, "the bus of %s is busy %.1f %% of the time %s: %s", v->chip->name,
		    out->used * 100,
		    v->chip->pci_down_busy >= v->chip->pci_up_busy ? "towards the chip"
								   : "towards memory",
		    rate_text(out->pps, text));
		break;
	case LAB_LIMIT_RING:
		say_ring(v, out);
		break;
	case LAB_LIMIT_CPU:
		say_cpu(v, out);
		break;
	case LAB_LIMIT_NONE:
	case LAB_LIMIT_COUNT:
		say(out, "nothing is used up: CPU %.0f %%, wire %.0f %%, bus %.0f %%",
		    lab_cpu_busy(v->cpu) * 100, v->chip->wire_tx_busy * 100,
		    fmax(v->chip->pci_up_busy, v->chip->pci_down_busy) * 100);
		break;
	}
}

void lab_limiter(const struct lab_scenario *scenario, const struct lab_result *result,
		 struct lab_limiter *out)
{
	struct view v;

	memset(out, 0, sizeof(*out));
	if (!look(scenario, result, &v)) {
		say(out, "nobody sends");
		return;
	}
	measure(&v, out);
	judge(&v, out);
	if (out->what == LAB_LIMIT_RING || out->what == LAB_LIMIT_CPU)
		knobs(&v, out);
	describe(&v, out);
}
