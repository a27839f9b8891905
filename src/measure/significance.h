/* SPDX-License-Identifier: BSD-2-Clause */
/* Means of noisy runs, how sure they are, and whether two of them differ. */
#ifndef HOLDOFF_MEASURE_SIGNIFICANCE_H
#define HOLDOFF_MEASURE_SIGNIFICANCE_H

#include <stdbool.h>

/* Of some runs: Welford's running mean and sum of squared differences. */
struct ms_mean {
	unsigned n;
	double mean, squares;
};

void ms_mean_add(struct ms_mean *m, double value);
/* Of a single run; 0 with fewer than two. */
double ms_mean_variance(const struct ms_mean *m);
/* Half the width of the mean's 95 % confidence interval, by Student's t; NAN with fewer than two.
 */
double ms_mean_ci95(const struct ms_mean *m);
/* How much a single run scatters, relative to its mean, pooled over several means. */
struct ms_noise {
	double squares;
	unsigned degrees;
};
void ms_noise_add(struct ms_noise *noise, const struct ms_mean *m);
/* Standard deviation; 0 while nothing was run twice. */
double ms_noise_of(const struct ms_noise *noise);

/* Two-sided 95 % of Student's t. */
double ms_student95(double degrees);

/* Welch's test: b's mean less a's, in standard errors; *significant: beyond chance at 95 %. With
 * fewer than two runs of either, never. */
double ms_welch(const struct ms_mean *a, const struct ms_mean *b, bool *significant);

#endif
