// SPDX-License-Identifier: BSD-2-Clause
#include "measure/explain.h"

#include <string.h>

/* What another setting must promise to be worth a change, and each further knob turned. */
#define WORTH    1.04
#define PER_KNOB 0.02

static unsigned turned(const struct ms_choice *a, const struct ms_choice *b)
{
	return (a->ring != b->ring) + (a->usecs != b->usecs) + (a->mode != b->mode) +
	       (a->place != b->place);
}

static void advise(struct ms_verdict *out, const struct ms_choices *choices)
{
	const struct ms_view *v = &out->view;
	double now = ms_law(v, &v->now), best = 1, most = INFINITY;

	out->advice = v->now;
	out->expects = v->rate;
	if (v->aim == MS_AIM_NOTHING || isnan(now))
		return;
	/* A box that does nothing at all can only gain. */
	now = fmax(now, 0.01 * fmax(v->arrives, 1));
	/* Nobody takes more than arrives. */
	if (v->aim == MS_AIM_RECEIVE)
		most = v->arrives / v->rate;
	for (unsigned i = 0; i < choices->n; i++) {
		double gain = ms_law(v, &choices->choice[i]) / now;
		double worth = gain - PER_KNOB * turned(&v->now, &choices->choice[i]);

		if (fmin(gain, most) < WORTH || worth <= best)
			continue;
		best = worth;
		out->advises = true;
		out->advice = choices->choice[i];
		out->expects = v->rate * fmin(gain, most);
	}
}

/* Would the number have told anything about such a load? */
static bool matters(enum ms_evidence_id id, enum ms_aim aim)
{
	switch (id) {
	case MS_EV_TX_RESTART:
	case MS_EV_SENDER_WAITS:
	case MS_EV_OFFERED_PPS:
	case MS_EV_TX_RING:
	case MS_EV_TX_RESERVED:
	case MS_EV_BQL:
	case MS_EV_TSO:
		return aim == MS_AIM_SEND;
	case MS_EV_RX_NO_DESC:
	case MS_EV_RX_NO_BUFFER:
	case MS_EV_RX_NIC:
	case MS_EV_RX_RING:
	case MS_EV_LOST_BEFORE:
	case MS_EV_BACKLOG_DROPS:
	case MS_EV_SQUEEZED:
	case MS_EV_BUDGET:
	case MS_EV_SOCKET_PPS:
	case MS_EV_SOCKET_DROPS:
	case MS_EV_NO_PORT:
	case MS_EV_GRO:
		return aim == MS_AIM_RECEIVE;
	case MS_EV_OUTSTANDING:
	case MS_EV_THINK:
	case MS_EV_LATENCY:
	case MS_EV_SWITCHES:
		return aim == MS_AIM_REQUEST;
	case MS_EV_TX_PPS:
	case MS_EV_RX_PPS:
	case MS_EV_RX_MISSED:
	case MS_EV_RX_ERRORS:
	case MS_EV_LINK_BPS:
		return true;
	default:
		return aim != MS_AIM_NOTHING;
	}
}

void ms_explain(const struct ms_evidence *ev, const struct ms_choices *choices,
		struct ms_verdict *out)
{
	struct ms_choices all;
	const struct ms_cause *best = NULL;
	struct ms_finding found;

	memset(out, 0, sizeof(*out));
	ms_view_make(ev, &out->view);
	for (const struct ms_cause *c = ms_causes; c->name; c++) {
		memset(&found, 0, sizeof(found));
		c->judge(&out->view, &found);
		if (found.certainty <= 0)
			continue;
		if (!best && found.certainty >= 0.5) {
			best = c;
			out->finding = found;
		} else if (out->n_also < HO_ARRAY_LEN(out->also) && strcmp(c->name, "offered") &&
			   strcmp(c->name, "asked")) {
			out->also[out->n_also] = c;
			out->also_certainty[out->n_also++] = found.certainty;
		}
	}
	out->cause = best;
	if (!choices) {
		ms_choices_list(&out->view, &all);
		choices = &all;
	}
	advise(out, choices);
	for (unsigned i = 0; i < MS_EV_COUNT; i++)
		out->unknown[i] =
			isnan(ev->value[i]) && matters((enum ms_evidence_id)i, out->view.aim);
}
