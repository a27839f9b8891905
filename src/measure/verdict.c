// SPDX-License-Identifier: BSD-2-Clause
/* What a table shows, in words, from what limits its rows. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "measure/compare.h"

struct text {
	char *at;
	size_t left;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	n = (size_t)n < t->left ? n : (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
}

static unsigned count(const struct ms_compare *c, enum lab_limit what)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n_rows; i++)
		n += c->row[i].limiter.what == what;
	return n;
}

/* Rows that stop at the ring: how far are they from a full ring at each cleaning? */
static void ring_rows(const struct ms_compare *c, struct text *t)
{
	double worst = 0;

	for (unsigned i = 0; i < c->n_rows; i++) {
		const struct ms_compare_row *row = &c->row[i];
		double law = (double)row->tx_usable * row->limiter.cleanings_per_s;

		if (row->limiter.what == LAB_LIMIT_RING && law > 0)
			worst = fmax(worst, fabs(row->limiter.pps / law - 1));
	}
	add(t,
	    "%u of %u rows send as many frames as the ring holds each time that it is cleaned "
	    "(within %.2f %%): a ring smaller than what the CPU sends in one interrupt interval "
	    "stops until the next interrupt. ",
	    count(c, LAB_LIMIT_RING), c->n_rows, 100 * worst);
}

/* Rows that the CPU limits, and that have the same interrupt rate: what does the ring change? */
static void cpu_rows(const struct ms_compare *c, struct text *t)
{
	const struct ms_compare_row *a = NULL, *b = NULL;
	double most = 0, widest = 0;

	for (unsigned i = 0; i < c->n_rows; i++) {
		const struct ms_compare_row *x = &c->row[i];

		if (x->limiter.what != LAB_LIMIT_CPU)
			continue;
		most = fmax(most, x->limiter.in_flight);
		for (unsigned j = i + 1; j < c->n_rows; j++) {
			const struct ms_compare_row *y = &c->row[j];
			double ratio = x->limiter.cleanings_per_s / y->limiter.cleanings_per_s;
			double gain = fabs(x->limiter.pps / y->limiter.pps - 1);

			/* The software must be the same as well: c tells. */
			if (y->limiter.what != LAB_LIMIT_CPU || x->tx_ring == y->tx_ring ||
			    fabs(ratio - 1) > 0.01 ||
			    fabs(x->limiter.frame_ns / y->limiter.frame_ns - 1) > 0.02)
				continue;
			if (!a || gain > widest) {
				widest = gain;
				a = x;
				b = y;
			}
		}
	}
	add(t, "In %u rows the CPU is the limit, with at most %.0f frames cleaned at a time",
	    count(c, LAB_LIMIT_CPU), most);
	if (a)
		add(t,
		    ": there a larger ring gains nothing (rings of %llu and %llu descriptors "
		    "differ by %.2f %% at most)",
		    (unsigned long long)(a->tx_ring < b->tx_ring ? a->tx_ring : b->tx_ring),
		    (unsigned long long)(a->tx_ring < b->tx_ring ? b->tx_ring : a->tx_ring),
		    100 * widest);
	add(t, ". ");
}

/* What matters then: the best row, and how it compares with the same ring's worst. */
static void best_row(const struct ms_compare *c, struct text *t)
{
	const struct ms_compare_row *best = &c->row[0], *worst = NULL;
	char name[128], other[128];

	for (unsigned i = 1; i < c->n_rows; i++) {
		if (c->row[i].limiter.pps > best->limiter.pps)
			best = &c->row[i];
	}
	for (unsigned i = 0; i < c->n_rows; i++) {
		const struct ms_compare_row *row = &c->row[i];

		if (row->tx_ring == best->tx_ring && row->limiter.what == LAB_LIMIT_CPU &&
		    row->limiter.in_flight > best->limiter.in_flight &&
		    (!worst || row->limiter.pps < worst->limiter.pps) &&
		    row->limiter.interrupt_ns < 4 * best->limiter.interrupt_ns &&
		    row->limiter.frame_ns > best->limiter.frame_ns * 1.02 &&
		    row->limiter.frame_ns < best->limiter.frame_ns * 1.2)
			worst = row;
	}
	add(t, "The best row is %s",
	    ms_compare_row_name(c->scenario, best->row, name, sizeof(name)));
	if (worst)
		add(t,
		    "; %s has fewer interrupts but touches %.0f descriptors before it cleans them, "
		    "more than the first cache holds: %.1f ns a frame instead of %.1f",
		    ms_compare_row_name(c->scenario, worst->row, other, sizeof(other)),
		    worst->limiter.in_flight, worst->limiter.frame_ns, best->limiter.frame_ns);
	add(t, ".");
}

void ms_compare_verdict(const struct ms_compare *c, char text[MS_VERDICT_TEXT])
{
	struct text t = { .at = text, .left = MS_VERDICT_TEXT };

	text[0] = 0;
	if (!c->n_rows)
		return;
	if (count(c, LAB_LIMIT_RING))
		ring_rows(c, &t);
	if (count(c, LAB_LIMIT_CPU))
		cpu_rows(c, &t);
	for (unsigned i = 0; i < LAB_LIMIT_COUNT; i++) {
		unsigned n = count(c, (enum lab_limit)i);

		if (n && i != LAB_LIMIT_RING && i != LAB_LIMIT_CPU)
			add(&t, "In %u of %u rows the limit is %s. ", n, c->n_rows,
			    lab_limit_title((enum lab_limit)i));
	}
	best_row(c, &t);
}
