// SPDX-License-Identifier: BSD-2-Clause
#include "measure/significance.h"

#include <math.h>

void ms_mean_add(struct ms_mean *m, double value)
{
	double off = value - m->mean;

	m->n++;
	m->mean += off / m->n;
	m->squares += off * (value - m->mean);
}

double ms_mean_variance(const struct ms_mean *m)
{
	return m->n > 1 ? m->squares / (m->n - 1) : 0;
}

void ms_noise_add(struct ms_noise *noise, const struct ms_mean *m)
{
	if (m->n < 2 || !(m->mean > 0))
		return;
	noise->squares += m->squares / (m->mean * m->mean);
	noise->degrees += m->n - 1;
}

double ms_noise_of(const struct ms_noise *noise)
{
	return noise->degrees ? sqrt(noise->squares / noise->degrees) : 0;
}

double ms_student95(double degrees)
{
	static const double table[] = { 12.706, 4.303, 3.182, 2.776, 2.571,
					2.447,  2.365, 2.306, 2.262, 2.228 };

	if (!(degrees >= 1))
		return table[0];
	/* Rounded down: rather too wide. From 11 on within 1 % of the exact value. */
	return degrees < 11 ? table[(unsigned)degrees - 1] : 1.96 + 2.7 / degrees;
}

double ms_mean_ci95(const struct ms_mean *m)
{
	return m->n > 1 ? ms_student95(m->n - 1) * sqrt(ms_mean_variance(m) / m->n) : NAN;
}

double ms_welch(const struct ms_mean *a, const struct ms_mean *b, bool *significant)
{
	double va, vb, t, degrees;

	*significant = false;
	if (a->n < 2 || b->n < 2)
		return 0;
	va = ms_mean_variance(a) / a->n;
	vb = ms_mean_variance(b) / b->n;
	if (!(va + vb > 0)) {
		*significant = a->mean != b->mean;
		return *significant ? (b->mean > a->mean ? INFINITY : -INFINITY) : 0;
	}
	t = (b->mean - a->mean) / sqrt(va + vb);
	degrees = (va + vb) * (va + vb) / (va * va / (a->n - 1) + vb * vb / (b->n - 1));
	*significant = fabs(t) > ms_student95(degrees);
	return t;
}
