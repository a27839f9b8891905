// SPDX-License-Identifier: BSD-2-Clause
#include "measure/sweep_effect.h"

#include <math.h>
#include <string.h>

/* Mean of the metric, and of the range of its rounds, over the cells of one value of the axis. */
static bool mean_of(const struct ms_sweep *s, unsigned axis, unsigned value, unsigned metric,
		    double *mean, double *range, unsigned *cells)
{
	*mean = *range = 0;
	*cells = 0;
	for (unsigned i = 0; i < s->points; i++) {
		const struct ms_cell *c = &s->cell[i];
		unsigned at[MS_AXES_MAX];

		ms_axes_at(&s->axes, i, at);
		if (at[axis] != value)
			continue;
		if (!c->present || c->rounds < 2 || isnan(c->value[metric]))
			return false;
		*mean += c->value[metric];
		*range += c->high[metric] - c->low[metric];
		++*cells;
	}
	if (!*cells)
		return false;
	*mean /= *cells;
	*range /= *cells;
	return true;
}

void ms_sweep_effect(const struct ms_sweep *s, unsigned axis, unsigned metric,
		     struct ms_effect *out)
{
	double least = INFINITY, most = -INFINITY, ranges = 0, middle;
	unsigned cells = 0;

	memset(out, 0, sizeof(*out));
	for (unsigned v = 0; v < s->axes.axis[axis].n; v++) {
		double mean, range;

		if (!mean_of(s, axis, v, metric, &mean, &range, &cells))
			return;
		ranges += range;
		if (mean < least) {
			least = mean;
			out->least = v;
		}
		if (mean > most) {
			most = mean;
			out->most = v;
		}
	}
	out->known = s->axes.axis[axis].n > 1;
	middle = (least + most) / 2;
	if (!out->known || !(middle > 0))
		return;
	out->between = (most - least) / middle;
	out->noise = ranges / s->axes.axis[axis].n / sqrt(cells) / middle;
	out->stands_out = out->between > out->noise;
}
