/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does turning an axis do anything? For grids of measured points (struct ms_cell's rounds): the
 * mean of the cells of each of its values, against how much the rounds of a cell differ.
 */
#ifndef HOLDOFF_MEASURE_SWEEP_EFFECT_H
#define HOLDOFF_MEASURE_SWEEP_EFFECT_H

#include "measure/sweep.h"

struct ms_effect {
	bool known;           /* the metric was measured at every value of the axis, in rounds */
	bool stands_out;      /* the difference is more than what the rounds explain */
	unsigned least, most; /* values of the axis with the least and the most */
	double between;       /* difference of these two means, relative to their mean */
	double noise;         /* what the means can differ by chance, relative as well */
};

/*
 * Of one axis on one metric. noise: the mean range of a cell's rounds, divided by the square root
 * of the number of cells that each mean is of; with two rounds or more per cell.
 */
void ms_sweep_effect(const struct ms_sweep *sweep, unsigned axis, unsigned metric,
		     struct ms_effect *out);

#endif
