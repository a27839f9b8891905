// SPDX-License-Identifier: BSD-2-Clause
#include "measure/evidence.h"

#include <string.h>

const struct ms_evidence_info ms_evidence_info[MS_EV_COUNT] = {
#define MS_EVIDENCE_ROW(id, key, unit, where, hides) { key, unit, where, hides },
	MS_EVIDENCE(MS_EVIDENCE_ROW)
#undef MS_EVIDENCE_ROW
};

const char *const ms_mode_names[] = { "unknown", "napi", "direct", "poll", "other" };

void ms_evidence_init(struct ms_evidence *ev)
{
	memset(ev, 0, sizeof(*ev));
	for (unsigned i = 0; i < MS_EV_COUNT; i++)
		ev->value[i] = NAN;
	ev->busiest_vector = NAN;
}

double ms_ev_busy(const struct ms_ev_cpu *cpu)
{
	return cpu->user + cpu->system + cpu->irq + cpu->softirq;
}
