// SPDX-License-Identifier: BSD-2-Clause
#include "measure/explain_live.h"

#include <string.h>

static bool elsewhere(const struct ms_cause *cause)
{
	static const char *const names[] = { "idle", "lost-before", "asked", "offered", "no-port" };

	for (unsigned i = 0; i < HO_ARRAY_LEN(names); i++)
		if (!strcmp(cause->name, names[i]))
			return true;
	return false;
}

void ms_explain_live(const struct lx_delta *delta, unsigned iface, struct ms_evidence *evidence,
		     struct ms_verdict *verdict)
{
	struct ms_choices choices;
	struct ms_view view;

	ms_evidence_linux(delta, iface, evidence);
	ms_view_make(evidence, &view);
	ms_choices_live(&view, &choices);
	ms_explain(evidence, &choices, verdict);
	if (elsewhere(verdict->cause)) {
		verdict->advises = false;
		verdict->advice = verdict->view.now;
		verdict->expects = verdict->view.rate;
	}
}
