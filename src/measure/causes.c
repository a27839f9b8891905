// SPDX-License-Identifier: BSD-2-Clause
/*
 * The causes, one table for live boxes and for the lab. It is a document: `holdoff explain --list`
 * prints it. The order is that of looking: a queue before a busy wire is full as well, but the wire
 * is the reason; a lost frame tells more than a busy CPU. The first that is certain enough is
 * the verdict; what else applies is said after it.
 *
 * judge sees the view only (explain.h). Unknown numbers are NAN, and no comparison with NAN is
 * true, so a cause whose evidence is not there does not apply.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/units.h"
#include "measure/explain.h"

#define FULL  0.96  /* a resource is used up: the rest is edges of the interval */
#define BUSY  0.97  /* a CPU has no time left */
#define LOSES 0.004 /* of what arrives; less is not what limits */
#define MUCH  0.06  /* of a CPU: worth being moved away */
#define FEW   5     /* events that may be chance */

static void say(char text[MS_FINDING_TEXT], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void say(char text[MS_FINDING_TEXT], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, MS_FINDING_TEXT, fmt, ap);
	va_end(ap);
}

/* 1883345 -> "1.883 M". */
struct si {
	char text[HO_UNIT_TEXT];
};

static const char *si(double value, struct si *buf)
{
	return ho_format_si(value, buf->text);
}

static bool loses(const struct ms_view *v, double lost)
{
	return lost > LOSES * v->arrives;
}

static double ring_losses(const struct ms_view *v)
{
	return ms_ev0(v->ev, MS_EV_RX_MISSED) + ms_ev0(v->ev, MS_EV_RX_NO_DESC) + v->behind;
}

/* --- judges --------------------------------------------------------------------------------- */

static void idle(const struct ms_view *v, struct ms_finding *f)
{
	if (v->aim != MS_AIM_NOTHING)
		return;
	f->certainty = 1;
	say(f->sentence, "nothing is sent and nothing arrives on %s", v->ev->name);
	say(f->arithmetic, "0 frames in %.3g s", v->ev->seconds);
}

static void lost_before(const struct ms_view *v, struct ms_finding *f)
{
	double lost = ms_ev(v->ev, MS_EV_LOST_BEFORE), bad = ms_ev(v->ev, MS_EV_RX_ERRORS);
	struct si a, b, c;

	if (!(lost > LOSES * v->arrives) && !(bad > LOSES * v->arrives))
		return;
	if (fmax(lost, bad) * v->ev->seconds < FEW)
		return;
	f->certainty = 0.8;
	say(f->sentence, "frames are lost before they reach %s", v->ev->name);
	say(f->arithmetic,
	    "%sframes/s are missing that this box did not drop, %sframes/s arrived spoilt, of %s/s",
	    si(isnan(lost) ? 0 : lost, &a), si(isnan(bad) ? 0 : bad, &b), si(v->arrives, &c));
}

static void wire(const struct ms_view *v, struct ms_finding *f)
{
	struct si a, b;

	/* A nearly full wire with all that was asked for is not, and neither is a full one whose
	 * frames are lost here. */
	if (v->aim == MS_AIM_SEND && v->wire < 0.99 &&
	    v->rate > 0.99 * ms_ev(v->ev, MS_EV_OFFERED_PPS))
		return;
	/* All that arrives is taken: then there is room for more until the very end. */
	if (v->aim == MS_AIM_RECEIVE && v->wire < 0.985 && !loses(v, v->lost))
		return;
	if (!(v->wire >= FULL) || (v->aim == MS_AIM_RECEIVE && loses(v, v->lost)))
		return;
	f->certainty = 0.98;
	say(f->sentence, "the wire of %s is full", v->ev->name);
	say(f->arithmetic,
	    "%sframes/s of %.0f bytes and 24 more for preamble, checksum and gap: %.1f %% of "
	    "%sbit/s",
	    si(v->aim == MS_AIM_RECEIVE ? v->arrives : v->rate, &a), v->bytes, v->wire * 100,
	    si(ms_ev(v->ev, MS_EV_LINK_BPS), &b));
}

static void pci(const struct ms_view *v, struct ms_finding *f)
{
	struct si a, b;

	if (!(v->pci >= (v->aim == MS_AIM_SEND && v->waits > 0.3 ? 0.925 : 0.93)) ||
	    v->aim == MS_AIM_REQUEST)
		return;
	/* In front of a full bus the ring is full and its sender waits; a short ring that is empty
	 * again and again is the reason itself. */
	if (v->aim == MS_AIM_SEND && v->pci < 0.98 &&
	    ((v->waits < 0.005 && v->app_busy >= BUSY) ||
	     (v->waits > 0.9 &&
	      fabs(v->rate / (v->in_flight * v->cleanings * v->ev->n_queues) - 1) < 0.02)))
		return;
	/* All that arrives goes through. */
	if (v->aim == MS_AIM_RECEIVE && v->pci < 0.985 && !loses(v, v->lost))
		return;
	f->certainty = 0.9;
	say(f->sentence, "the bus between %s and memory is full", v->ev->name);
	say(f->arithmetic,
	    "%sframes/s of %.0f bytes, in packets of %.0f bytes with 24 of header each, with "
	    "descriptors and doorbells: %.0f %% of %sbit/s",
	    si(v->rate, &a), v->bytes, ms_ev(v->ev, MS_EV_PCI_PAYLOAD), v->pci * 100,
	    si(ms_ev(v->ev, MS_EV_PCI_BPS), &b));
}

static void backlog(const struct ms_view *v, struct ms_finding *f)
{
	double drops = ms_ev(v->ev, MS_EV_BACKLOG_DROPS);
	struct si a, b;

	if (!(drops > LOSES * v->arrives) || drops < v->lost / 2)
		return;
	f->certainty = 0.9;
	say(f->sentence, "the backlog of a CPU overflows");
	say(f->arithmetic, "%sframes/s are dropped by the backlog, of %s/s: %.1f %%", si(drops, &a),
	    si(v->arrives, &b), drops / v->arrives * 100);
}

static void hot_queue(const struct ms_view *v, struct ms_finding *f)
{
	unsigned n = v->ev->n_queues;

	/* Where interrupts never end, the program's CPU is the reason, and not the share. */
	if (v->apps && v->spare && v->app_irq > 0.97)
		return;
	if (v->aim != MS_AIM_RECEIVE || n < 2 || v->imbalance < 1.5 || !loses(v, ring_losses(v)) ||
	    v->irq_busy < BUSY || v->ev->mode == MS_MODE_POLL)
		return;
	f->certainty = 0.85;
	say(f->sentence, "one queue of %s gets most of the frames, and its CPU has no time left",
	    v->ev->name);
	say(f->arithmetic,
	    "the busiest of %u queues has %.0f %% of the frames, its CPU is busy %.0f %% of the "
	    "time",
	    n, v->imbalance / n * 100, v->irq_busy * 100);
}

/* Interrupts and program on one CPU, and another one has time. */
static void hot_cpu(const struct ms_view *v, struct ms_finding *f)
{
	struct ms_choice away = v->now;
	double gain;

	if (v->app_busy < BUSY || v->app_irq < MUCH || !v->spare || v->waits > 0.3 ||
	    v->ev->mode == MS_MODE_POLL)
		return;
	if (v->aim == MS_AIM_RECEIVE && !loses(v, v->lost))
		return;
	away.place = MS_PLACE_AWAY;
	gain = ms_law(v, &away) / v->rate;
	if (!(gain > 1.05))
		return;
	f->certainty = 0.8;
	say(f->sentence, "one CPU does both the interrupts of %s and the program", v->ev->name);
	say(f->arithmetic,
	    "it is busy %.0f %% of the time, %.0f %% of it in interrupts and softirqs, and %u "
	    "other "
	    "CPUs are nearly idle; without them the program could do %.2f times as much",
	    v->app_busy * 100, v->app_irq * 100, v->spare, gain);
}

/* Several queues on one CPU. */
static void one_irq_cpu(const struct ms_view *v, struct ms_finding *f)
{
	if (v->aim == MS_AIM_REQUEST || v->now.place != MS_PLACE_ZERO || v->ev->n_queues < 2 ||
	    v->ev->n_cpus < 2 || v->irq_busy < BUSY || v->irq_irq < 0.7 || v->imbalance > 1.5)
		return;
	if (v->aim == MS_AIM_RECEIVE ? !loses(v, v->lost) : v->waits < 0.02)
		return;
	f->certainty = 0.8;
	say(f->sentence, "the interrupts of all %u queues of %s go to one CPU", v->ev->n_queues,
	    v->ev->name);
	say(f->arithmetic, "it is busy %.0f %% of the time, %.0f %% in interrupts and softirqs",
	    v->irq_busy * 100, v->hot_irq * 100);
}

static void socket(const struct ms_view *v, struct ms_finding *f)
{
	double drops = ms_ev(v->ev, MS_EV_SOCKET_DROPS);
	struct si a;

	if (!(drops > LOSES * v->arrives) || drops < v->lost / 2)
		return;
	f->certainty = 0.8;
	say(f->sentence, "the program's socket overflows");
	say(f->arithmetic,
	    "%sframes/s are dropped there, %.1f %% of what arrives; the %sprogram's CPU is busy "
	    "%.0f %%, %.0f %% of it in interrupts and softirqs, which come first",
	    si(drops, &a), drops / v->arrives * 100, v->ev->shared_cpus ? "busiest " : "",
	    v->app_busy * 100, v->app_irq * 100);
}

static void no_port(const struct ms_view *v, struct ms_finding *f)
{
	double drops = ms_ev(v->ev, MS_EV_NO_PORT);
	struct si a, b;

	if (v->aim == MS_AIM_SEND || !(drops > LOSES * v->arrives) || drops * v->ev->seconds < FEW)
		return;
	f->certainty = drops > v->arrives / 2 ? 0.8 : 0.4;
	say(f->sentence, "datagrams arrive for a port on which no program listens");
	say(f->arithmetic,
	    "%sdatagrams/s of %sframes/s are for no program: each is looked up, "
	    "dropped, and answered by an ICMP message as far as its rate limit allows",
	    si(drops, &a), si(v->arrives, &b));
}

static void rx_ring(const struct ms_view *v, struct ms_finding *f)
{
	double lost = ring_losses(v), t = v->now.usecs == 1 ? 125 : v->now.usecs * 1.024;
	struct si a, b;

	if (v->aim != MS_AIM_RECEIVE || !loses(v, lost) || lost < v->lost / 2)
		return;
	if (v->irq_busy >= BUSY && v->now.mode != MS_MODE_POLL)
		return;
	if (v->now.mode == MS_MODE_POLL && v->now.ring > 256)
		return;
	f->certainty = 0.9;
	say(f->sentence, "the receive ring of %s overflows between two polls", v->ev->name);
	say(f->arithmetic,
	    "%sframes/s are lost although the CPU is busy only %.0f %%: %s/s fill %.0f of the "
	    "ring's %u descriptors in the %.0f us of moderation",
	    si(lost, &a), v->irq_busy * 100, si(v->arrives, &b), v->arrives * t * 1e-6, v->now.ring,
	    t);
}

static void tx_ring(const struct ms_view *v, struct ms_finding *f)
{
	struct ms_choice larger = v->now;
	struct si a, b, c, d;

	if (v->aim != MS_AIM_SEND || !(v->waits >= 0.02 || v->stops) || v->now.ring >= 4096)
		return;
	larger.ring *= 4;
	f->certainty = v->irq_busy < BUSY || v->hot_irq <= 0.5 ? 0.85 : v->waits > 0.4 ? 0.5 : 0.4;
	say(f->sentence, "the transmit ring of %s is full until the next cleaning", v->ev->name);
	if (v->stops) {
		say(f->arithmetic,
		    "%.0f frames in flight x %scleanings/s x %u queue%s = %sframes/s at most; a "
		    "queue was stopped and woken %s/s, with %s interrupts/s",
		    v->in_flight, si(v->cleanings, &a), v->ev->n_queues,
		    v->ev->n_queues == 1 ? "" : "s",
		    si(v->in_flight * v->cleanings * v->ev->n_queues, &b),
		    si(ms_ev(v->ev, MS_EV_TX_RESTART), &c), si(ms_ev(v->ev, MS_EV_IRQS), &d));
		return;
	}
	say(f->arithmetic,
	    "%.0f frames in flight x %scleanings/s x %u queue%s = %sframes/s at most; the senders "
	    "wait %.0f %% of their time; a ring of %u would allow %sframes/s",
	    v->in_flight, si(v->cleanings, &a), v->ev->n_queues, v->ev->n_queues == 1 ? "" : "s",
	    si(v->in_flight * v->cleanings * v->ev->n_queues, &b), v->waits * 100, larger.ring,
	    si(ms_law(v, &larger), &c));
}

/* Adaptive moderation of ixgbe's kind keeps 10.24, 51.2 or 124.9 us, or takes turns between the
 * first two, whose smoothing then settles at means of 11.94, 21.69 or 42.44 us, whatever the box:
 * such a rate is the timer's. */
static bool at_a_class(double irqs)
{
	static const double us[] = { 10.24, 11.94, 21.69, 42.44, 51.2, 124.928 };

	for (unsigned i = 0; i < HO_ARRAY_LEN(us); i++)
		if (fabs(irqs * us[i] * 1e-6 - 1) < 0.012)
			return true;
	return false;
}

static void moderation(const struct ms_view *v, struct ms_finding *f)
{
	double round = v->round * 1e6, work = v->work * 1e6;
	double interval = v->now.usecs * 1.024;
	/* A round that is just one interval long waits, however busy the CPU is meanwhile. */
	bool one = v->now.usecs > 1 && fabs(round / interval - 1) < 0.003;
	bool adaptive = v->now.usecs == 1, few, gated, rests;
	struct si a;

	if (v->aim != MS_AIM_REQUEST || !v->now.usecs || v->now.mode == MS_MODE_POLL ||
	    (v->hot_busy >= BUSY && !one))
		return;
	/* Unhindered, a transaction has two interrupts: its frame, and the sent one's cleaning. */
	few = v->cleanings < 1.5 * v->rate / (isnan(v->outstanding) ? 1 : v->outstanding) ||
	      at_a_class(v->cleanings);
	/* A server's interrupts that are as many as its answers, but at no such rate, follow the
	 * client's pauses; so do a client's of a round that is shorter than between two of them. */
	if (isnan(v->outstanding)
		    ? v->cleanings > 0.45 * v->rate && !at_a_class(v->cleanings)
		    : v->cleanings > 1.9 * v->rate && round * 1e-6 * v->cleanings < 0.9)
		few = false;
	/* At the longest class, with pauses between: the rounds of several outstanding. */
	if (v->outstanding > 1 && v->cleanings > 1 / 140e-6 && v->cleanings < 1 / 118e-6 &&
	    round > 100)
		few = true;
	/* Two interrupts that wait for the timer make a round of two intervals, not a bit less;
	 * else the round happens to be about as long. */
	gated = v->gate > (v->cleanings > 1.9 * v->rate ? 0.995 : 0.8);
	/* A client that pauses leaves out some. */
	if (v->outstanding > 1 && v->gate > 0.5 && round > interval)
		gated = true;
	if (v->outstanding == 1 && v->gate > 0.74 &&
	    ms_ev0(v->ev, MS_EV_THINK) / 1e3 < 2 * interval)
		gated = true;
	/* Of a server that serves several at a time one does not know how many: that its CPUs rest
	 * between two interrupts for many tells as much. */
	rests = round > 1.5 * work ||
		(isnan(v->outstanding) && v->cleanings < 0.3 * v->rate && v->hot_busy < 0.6);
	/* Two interrupts a round, each at one of the two shortest means: the round is two of them.
	 */
	if (v->cleanings > 1.9 * v->rate && (fabs(v->cleanings * 10.24e-6 - 1) < 0.005 ||
					     fabs(v->cleanings * 11.94e-6 - 1) < 0.005))
		rests = true;
	if (!gated && !(adaptive && rests && few))
		return;
	f->certainty = adaptive ? 0.6 : 0.9;
	say(f->sentence, "requests wait for the interrupt moderation of %s", v->ev->name);
	if (adaptive)
		say(f->arithmetic,
		    "a round takes %.1f us, of which this box works %.1f us; %s interrupts/s, "
		    "spaced by adaptive moderation",
		    round, work, si(v->cleanings, &a));
	else
		say(f->arithmetic,
		    "%s interrupts/s x %.1f us = %.0f %%: every interrupt waits for the timer; a "
		    "round takes %.1f us, of which this box works %.1f us",
		    si(v->cleanings, &a), v->now.usecs * 1.024, v->gate * 100, round, work);
}

/*
 * A request waits for an interrupt, but not because of its timer alone: the way over interrupts
 * takes as long as the timer does, and without a timer there would be more of them. Only polling
 * leaves out both.
 */
static void interrupts(const struct ms_view *v, struct ms_finding *f)
{
	struct ms_choice poll = v->now, at_once = v->now;
	double interval = 1e6 / v->cleanings, alone, all;
	struct si a;

	if (v->aim != MS_AIM_REQUEST || v->now.mode == MS_MODE_POLL || !v->spare ||
	    v->hot_busy >= BUSY || !v->now.usecs || ms_ev0(v->ev, MS_EV_THINK) > 0)
		return;
	poll.mode = MS_MODE_POLL;
	poll.usecs = 0;
	poll.place = MS_PLACE_AWAY;
	at_once.usecs = 0;
	all = ms_law(v, &poll) / v->rate;
	alone = ms_law(v, &at_once) / v->rate;
	/* One round an interrupt, the shortest that adaptive moderation makes or that is set. */
	if (!(v->cleanings < 1.1 * v->rate) || !(v->cleanings > 0.9 * v->rate) ||
	    !(fabs(interval / (v->now.usecs == 1 ? 10.24 : v->now.usecs * 1.024) - 1) < 0.02) ||
	    alone > 1.05 || all < 1.1)
		return;
	f->certainty = 0.7;
	say(f->sentence, "every request waits for an interrupt of %s, and for its timer",
	    v->ev->name);
	say(f->arithmetic,
	    "%s interrupts/s, one a round of %.1f us, of which this box works %.1f us: without the "
	    "timer there would be more interrupts and %.2f times as many rounds, with polling "
	    "%.2f times",
	    si(v->cleanings, &a), v->round * 1e6, v->work * 1e6, alone, all);
}

/* Interrupts take what the work could have. */
static void irq_rate(const struct ms_view *v, struct ms_finding *f)
{
	double share = v->irq_ns * 1e-9 * ms_ev0(v->ev, MS_EV_IRQS) /
		       fmax(1, fmin(v->ev->n_queues, v->ev->n_cpus));
	struct si a;

	if (v->aim == MS_AIM_REQUEST || !(share > MUCH) || v->now.mode == MS_MODE_POLL ||
	    v->now.place == MS_PLACE_AWAY)
		return;
	if (v->aim == MS_AIM_SEND ? v->app_busy < BUSY || v->waits > 0.02
				  : v->irq_busy < BUSY || !loses(v, v->lost))
		return;
	f->certainty = v->aim == MS_AIM_SEND ? 0.7 : 0.4;
	say(f->sentence, "interrupts take the CPU's time");
	say(f->arithmetic, "%s interrupts/s of %.0f ns each take %.0f %% of a CPU",
	    si(ms_ev0(v->ev, MS_EV_IRQS), &a), v->irq_ns, share * 100);
}

static void budget(const struct ms_view *v, struct ms_finding *f)
{
	double squeezed = ms_ev(v->ev, MS_EV_SQUEEZED);
	struct si a;

	if (v->aim != MS_AIM_RECEIVE || !(squeezed > 100) || !loses(v, ring_losses(v)))
		return;
	f->certainty = 0.3;
	say(f->sentence, "softirq rounds end with work left");
	say(f->arithmetic, "time_squeeze rises by %s/s: rounds of %.0f frames are not enough",
	    si(squeezed, &a), ms_ev(v->ev, MS_EV_BUDGET));
}

static void offload(const struct ms_view *v, struct ms_finding *f)
{
	bool off = ms_ev(v->ev, MS_EV_CSUM) == 0, falls = ms_ev(v->ev, MS_EV_CSUM_ERRORS) > 10;

	if ((!off && !falls) || v->hot_busy < BUSY)
		return;
	f->certainty = 0.5;
	say(f->sentence, "checksums are made by the CPU%s",
	    falls ? ": the interface's are often wrong" : ": the offload is off");
	say(f->arithmetic, "a CPU is busy %.0f %% of the time; %.3g checksum errors/s",
	    v->hot_busy * 100, ms_ev0(v->ev, MS_EV_CSUM_ERRORS));
}

static void segmentation(const struct ms_view *v, struct ms_finding *f)
{
	/* Longer than a jumbo frame: it came in one piece, from a neighbour that has no wire. */
	bool whole = v->bytes > 9100, off = v->aim == MS_AIM_SEND ? ms_ev(v->ev, MS_EV_TSO) == 0
								  : ms_ev(v->ev, MS_EV_GRO) == 0;

	if (!off || whole || !(ms_ev(v->ev, MS_EV_TCP_PPS) > v->rate / 2) || v->hot_busy < BUSY)
		return;
	f->certainty = 0.6;
	say(f->sentence, "TCP goes through the stack frame by frame");
	say(f->arithmetic, "%.3g segments/s of %.0f bytes, and a CPU is busy %.0f %% of the time",
	    ms_ev(v->ev, MS_EV_TCP_PPS), v->bytes, v->hot_busy * 100);
}

static void cache(const struct ms_view *v, struct ms_finding *f)
{
	double misses = ms_ev(v->ev, MS_EV_CACHE_MISSES);

	if (!(misses > 4 * (v->rate + 1)) || v->hot_busy < BUSY)
		return;
	f->certainty = 0.4;
	say(f->sentence, "the CPU waits for memory");
	say(f->arithmetic, "%.1f cache misses a frame, about %.0f ns%s", misses / v->rate,
	    misses / v->rate * 60,
	    ms_ev0(v->ev, MS_EV_FORWARDED) > 0 ? "; route look-ups are among them" : "");
}

static void cpu(const struct ms_view *v, struct ms_finding *f)
{
	double busy = fmax(v->hot_busy, v->aim == MS_AIM_RECEIVE ? v->irq_busy : 0);
	double soft = v->now.mode == MS_MODE_POLL || isnan(v->soft_ns) ? 0 : v->soft_ns;
	/* Of what comes at once, if it does: softirqs and program in turn, or beside each other. */
	double burst = v->now.place == MS_PLACE_AWAY ? fmax(v->app_ns, soft) : v->app_ns + soft;
	struct si a;

	if (v->aim == MS_AIM_REQUEST && v->outstanding > 1 && v->hot_busy > 0.6 &&
	    v->outstanding * burst * 1e-9 > 0.8 * v->round &&
	    v->outstanding * burst > 0.18 * (v->round * 1e9 + ms_ev0(v->ev, MS_EV_THINK)))
		busy = 1;
	/* A server is never quite full while clients wait for it: its requests come in bursts. With
	 * a timer it has time between them. */
	if (v->aim == MS_AIM_REQUEST && isnan(v->outstanding) &&
	    v->hot_busy > (v->now.usecs ? 0.93 : 0.85) &&
	    v->rate > 1.5 * ms_ev(v->ev, MS_EV_SWITCHES))
		busy = 1;
	if (busy < BUSY || v->aim == MS_AIM_NOTHING)
		return;
	/* Who spins in front of a full ring is not busy. */
	if (v->aim == MS_AIM_SEND && (v->waits > 0.02 || v->stops) && v->irq_irq < BUSY)
		return;
	/* Without losses yet, a full CPU that takes hardly an interrupt has fallen behind if the
	 * controller has more than it gives: the ring still fills. */
	if (v->aim == MS_AIM_RECEIVE && !loses(v, v->lost) &&
	    (v->ev->mode == MS_MODE_POLL || ms_ev0(v->ev, MS_EV_IRQS) > v->rate / 200 ||
	     !(ms_ev(v->ev, MS_EV_RX_NIC) - ms_ev(v->ev, MS_EV_RX_PPS) >= 0.015 * v->arrives)))
		return;
	f->certainty = 0.75;
	say(f->sentence, "a CPU has no time left");
	say(f->arithmetic,
	    "it is busy %.0f %% of the time; a %s costs %.0f ns in programs%s and %.0f ns in "
	    "softirqs: %s/s",
	    busy * 100, v->aim == MS_AIM_REQUEST ? "transaction" : "frame",
	    isnan(v->app_ns) ? 0 : v->app_ns,
	    v->ev->shared_cpus ? " (all that run on this box)" : "",
	    isnan(v->soft_ns) ? 0 : v->soft_ns, si(v->rate, &a));
}

/* A request's way through the box: nobody is busy, and yet its work is what takes long. */
static void path(const struct ms_view *v, struct ms_finding *f)
{
	double irq = isnan(v->irq_ns) ? 0 : v->irq_ns;
	double round = v->round * 1e6, work = v->work * 1e6;
	double sleeps = ms_ev(v->ev, MS_EV_SWITCHES);

	/* A polling thread's time is not the request's. */
	if (v->now.mode == MS_MODE_POLL && !isnan(v->app_ns))
		work = v->app_ns / 1e3;
	if (v->aim != MS_AIM_REQUEST || v->hot_busy >= BUSY ||
	    !(work > (v->now.mode == MS_MODE_POLL ? 0.2 : 0.27) *
			     (round + ms_ev0(v->ev, MS_EV_THINK) / 1e3)))
		return;
	/* On a server one does not know how many are outstanding; more than one CPU's work at a
	 * time means several, and so do several answers between two sleeps; then it is not one
	 * round that counts. */
	if (isnan(v->outstanding) &&
	    ((work > 0.8 * round && v->rate > 1.1 * sleeps) || v->rate > 1.5 * sleeps))
		return;
	f->certainty = 0.65;
	say(f->sentence, "nothing is used up: a request's way through this box is what takes time");
	say(f->arithmetic,
	    "a round takes %.1f us, of which this box works %.1f us: %.2f us for an interrupt, "
	    "%.2f us in softirqs, %.2f us in the program with system calls and wake-ups",
	    round, work, irq / 1e3, isnan(v->soft_ns) ? 0 : v->soft_ns / 1e3, v->app_ns / 1e3);
}

static void switches(const struct ms_view *v, struct ms_finding *f)
{
	double n = ms_ev(v->ev, MS_EV_SWITCHES);
	double all = v->round * 1e9 + ms_ev0(v->ev, MS_EV_THINK);
	struct si a;

	if (v->aim != MS_AIM_REQUEST || !(n > 0.9 * v->rate) || v->hot_busy >= BUSY)
		return;
	/* Most of what the program needs for one is being woken; from another CPU, part of that is
	 * there. */
	if (v->now.mode != MS_MODE_POLL &&
	    v->app_ns > (v->now.place == MS_PLACE_AWAY ? 0.17 : 0.115) * all)
		f->certainty = 0.5;
	else if (n > 1.5 * v->rate)
		f->certainty = 0.3;
	else
		return;
	say(f->sentence, "every transaction wakes the program and puts it to sleep again");
	say(f->arithmetic, "%scontext switches/s: %.1f a transaction", si(n, &a), n / v->rate);
}

/* It does what it was told. */
static void asked(const struct ms_view *v, struct ms_finding *f)
{
	double rate = ms_ev(v->ev, MS_EV_OFFERED_PPS);
	struct si a, b;

	if (v->aim != MS_AIM_SEND || !(v->rate >= 0.97 * rate))
		return;
	f->certainty = 0.9;
	say(f->sentence, "nothing on this box: what it was told to send is sent");
	say(f->arithmetic, "%s/s of %s/s; the wire is busy %.0f %% of the time", si(v->rate, &a),
	    si(rate, &b), v->wire * 100);
}

static void offered(const struct ms_view *v, struct ms_finding *f)
{
	struct si a;

	f->certainty = 0.5;
	if (v->aim == MS_AIM_REQUEST)
		say(f->sentence, "nothing on this box: it waits for the other end");
	else if (v->aim == MS_AIM_SEND)
		say(f->sentence, "nothing on this box: no more is sent");
	else
		say(f->sentence, "nothing on this box: everything that arrives is taken");
	if (isnan(v->wire))
		say(f->arithmetic, "%s/s; the busiest CPU is busy %.0f %%", si(v->rate, &a),
		    v->hot_busy * 100);
	else
		say(f->arithmetic, "%s/s; the busiest CPU is busy %.0f %%, the wire %.0f %%",
		    si(v->rate, &a), v->hot_busy * 100, v->wire * 100);
}

/* --- the table ------------------------------------------------------------------------------ */

const struct ms_cause ms_causes[] = {
	{ "idle", "nothing: there is no traffic", "No frames.", "frames sent and received.",
	  "frames = 0", "Look at the other end, the link and the addresses.", idle },
	{ "lost-before", "loss before this box",
	  "Numbers are missing that nothing here dropped, or frames arrive spoilt.",
	  "gaps in the receiver's sequence, TcpRetransSegs, rx_errors, rx_crc_errors.",
	  "missing - own drops > 0", "Cable, optics, the switch's queues, the sender's rate.",
	  lost_before },
	{ "wire", "the wire", "Throughput stands still whatever is turned.",
	  "frames and bytes a second, the link's speed.", "pps x (bytes + 24) x 8 / speed >= 96 %",
	  "A faster link, larger frames, or several links.", wire },
	{ "asked", "nothing here: the rate that was asked for", "It sends what it was told to.",
	  "frames a second, the sender's setting.", "pps >= 97 % of the rate", "Ask for more.",
	  asked },
	{ "pci", "the bus", "As the wire, but the wire has room.",
	  "frames and bytes a second; width, speed and payload of the slot (lspci: LnkSta, "
	  "DevCtl).",
	  "pps x (bytes + 24 x packets + descriptor + doorbell) x 8 / rate >= 93 % (92.5 % if the "
	  "sender waits)",
	  "A wider slot, a larger MaxPayload, larger frames.", pci },
	{ "backlog", "the backlog",
	  "Frames are lost between driver and stack (RPS, veth, loopback).",
	  "softnet_stat: dropped.", "dropped > 0.4 % of what arrives",
	  "sysctl net.core.netdev_max_backlog; RPS to more CPUs.", backlog },
	{ "hot-queue", "one hot queue", "Losses while other queues and CPUs have nothing to do.",
	  "frames of each queue, the CPU of its vector.",
	  "share of the busiest queue x queues >= 1.5, its CPU >= 97 %",
	  "ethtool -X (indirection), -N rx-flow-hash (ports as well), or more flows.", hot_queue },
	{ "hot-cpu", "one hot CPU", "Interrupts and program share a CPU, others idle.",
	  "each CPU's times, the vectors' affinity, the program's CPU.",
	  "CPU >= 97 % with irq + softirq > 6 %: gain = what the program could do without them",
	  "Move the vectors: /proc/irq/N/smp_affinity_list; or the program: taskset.", hot_cpu },
	{ "irq-affinity", "all interrupts on one CPU", "Several queues, one busy CPU.",
	  "each CPU's times, the vectors' affinity.", "CPU >= 97 % and all vectors interrupt it",
	  "Spread the vectors: /proc/irq/N/smp_affinity_list, irqbalance.", one_irq_cpu },
	{ "socket", "the receiver's socket", "The stack has the frames, the program does not.",
	  "UdpRcvbufErrors, ss -m, the program's CPU.", "errors > 0.4 % of what arrives",
	  "A faster or further program, its CPU free of interrupts, SO_RCVBUF for bursts.",
	  socket },
	{ "no-port", "no program that listens", "Everything arrives, and no program gets it.",
	  "UdpNoPorts.", "datagrams for no program > 50 % of what arrives",
	  "Start the program (ss -lun lists who listens), or stop the sender.", no_port },
	{ "rx-ring", "the receive ring", "Losses in the chip although CPUs have time.",
	  "rx_missed_errors, rx_no_dma_resources, ring size, moderation.",
	  "arrival rate x time between two polls > ring",
	  "ethtool -G rx N; ethtool -C rx-usecs less.", rx_ring },
	{ "tx-ring", "the transmit ring", "Senders wait although CPU and wire have room.",
	  "tx_restart_queue, the sender's idle time, ring size, interrupts.",
	  "pps = frames in flight x cleanings a second",
	  "ethtool -G tx N; ethtool -C rx-usecs less.", tx_ring },
	{ "interrupts", "waiting for interrupts",
	  "Requests take the timer's time, and as long without it.",
	  "interrupts a second, rx-usecs, transactions a second, each CPU's times.",
	  "one interrupt a round; without the timer: rounds / now <= 1.05",
	  "Busy polling (net.core.busy_read, SO_BUSY_POLL, a polling thread).", interrupts },
	{ "moderation", "interrupt moderation", "Requests take the timer's time, CPUs idle.",
	  "interrupts a second, rx-usecs, transactions a second.",
	  "interrupts x interval >= 80 %: every interrupt waits",
	  "ethtool -C rx-usecs 0 (or adaptive off); busy polling.", moderation },
	{ "irq-rate", "the interrupt rate", "A CPU is full, and a part of it is interrupts.",
	  "interrupts a second, time in irq and softirq.",
	  "interrupts x price of one > 6 % of a CPU", "ethtool -C rx-usecs more.", irq_rate },
	{ "segmentation", "segmentation", "TCP at small frames, a full CPU.",
	  "ethtool -k, TcpOutSegs, frame sizes.", "frames/s = segments/s and TSO or GRO is off",
	  "ethtool -K tso on gso on gro on.", segmentation },
	{ "offload", "checksum offload", "Checksums in software, or offload that falls back.",
	  "ethtool -k, rx_csum_offload_errors.", "offload off, or errors a second > 10",
	  "ethtool -K rx on tx on.", offload },
	{ "cpu", "a CPU", "One CPU is full.", "each CPU's times, frames a second.",
	  "busy >= 97 % (a server of requests 85 %, 93 % with rx-usecs; several outstanding 60 %); "
	  "ns a frame = time / frames",
	  "Fewer ns a frame, more queues, a faster CPU.", cpu },
	{ "path", "the way through the box", "A request waits for nobody, and yet takes long.",
	  "transactions a second, each CPU's times.",
	  "our work of a round / round >= 27 % (20 % when polling)",
	  "Busy polling, a faster CPU, no deep C-states; program near the interrupts.", path },
	{ "budget", "the softirq budget", "time_squeeze rises.", "softnet_stat: time_squeeze.",
	  "squeezed > 100/s together with ring losses",
	  "sysctl net.core.netdev_budget; only if the CPU has time.", budget },
	{ "cache", "cache misses", "A frame costs more than it did.", "perf stat -e cache-misses.",
	  "misses a frame > 4, about 60 ns each",
	  "Smaller rings, fewer routes, huge pages, NUMA locality.", cache },
	{ "switches", "context switches", "The program sleeps between any two frames.",
	  "ctxt_switches of the program.",
	  "switches a transaction > 0.9, and being woken is most of the program's time or they are "
	  "> 1.5",
	  "Busy polling (net.core.busy_read, SO_BUSY_POLL).", switches },
	{ "offered", "nothing here", "Nothing is full and nothing is lost.", "all of the above.",
	  "none of the above", "More must be asked of it.", offered },
	{ 0 },
};
