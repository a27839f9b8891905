/* SPDX-License-Identifier: BSD-2-Clause */
/* What limits a live interface, from what the sampler saw of it over an interval. */
#ifndef HOLDOFF_MEASURE_EXPLAIN_LIVE_H
#define HOLDOFF_MEASURE_EXPLAIN_LIVE_H

#include "linux/sample.h"
#include "measure/explain.h"

/* Of interface `iface` (index into delta->iface). No advice where nothing on this box limits: to
 * turn a knob then is to hope. verdict->view.ev is evidence. */
void ms_explain_live(const struct lx_delta *delta, unsigned iface, struct ms_evidence *evidence,
		     struct ms_verdict *verdict);

#endif
