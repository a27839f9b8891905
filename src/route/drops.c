// SPDX-License-Identifier: BSD-2-Clause
#include "route/drops.h"

static const struct {
	const char *name, *meaning;
} drops[] = {
#define RO_DROP_ROW(id, name, text) { name, text },
	RO_DROPS(RO_DROP_ROW)
#undef RO_DROP_ROW
};

const char *ro_drop_name(enum ro_drop drop)
{
	return drops[drop].name;
}

const char *ro_drop_meaning(enum ro_drop drop)
{
	return drops[drop].meaning;
}

uint64_t ro_drops_sum(const uint64_t d[RO_DROP_COUNT])
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < RO_DROP_COUNT; i++)
		sum += __atomic_load_n(&d[i], __ATOMIC_RELAXED);
	return sum;
}
