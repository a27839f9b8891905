/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The axes of a grid, as people write them. Values are texts with commas between; each is
 *
 *   512  1gbps  napi          itself; "\," is a comma in it
 *   10..50                    10, 11, 12 ... 50
 *   10..50 step 10            10, 20 ... 50: never beyond the end
 *   64..4096 step x2          64, 128, 256 ... 4096
 *   1gbps..10gbps step 1gbps  a unit is that of both ends
 *
 * The grid is all combinations, the last axis fastest.
 */
#ifndef HOLDOFF_MEASURE_AXIS_H
#define HOLDOFF_MEASURE_AXIS_H

#include "measure/grid.h"

#define MS_AXES_MAX   16
#define MS_VALUES_MAX 4096   /* of an axis */
#define MS_POINTS_MAX 100000 /* of a grid */

struct ms_axis {
	char *name;
	char **value;
	unsigned n;
};

struct ms_axes {
	struct ms_axis axis[MS_AXES_MAX];
	unsigned n;
};

/* Adds an axis. -EINVAL with a message that begins with its name: a value that cannot be, one
 * given twice, an axis given twice, more than MS_AXES_MAX. */
int ms_axes_add(struct ms_axes *axes, const char *name, const char *values, struct ho_err *err);
/* NULL if there is none. */
struct ms_axis *ms_axes_get(struct ms_axes *axes, const char *name);
void ms_axes_fini(struct ms_axes *axes);

/* How many points. -ERANGE above MS_POINTS_MAX. */
int ms_axes_points(const struct ms_axes *axes, unsigned *points, struct ho_err *err);

/* Which value of each axis point i has. */
void ms_axes_at(const struct ms_axes *axes, unsigned i, unsigned at[MS_AXES_MAX]);

/* The sets of point i, one for each axis, into set; their texts are those of the axes. */
struct ms_point ms_axes_point(const struct ms_axes *axes, unsigned i,
			      struct ms_set set[MS_AXES_MAX]);

#endif
