// SPDX-License-Identifier: BSD-2-Clause
/* The truth of a case: every cell, every lever alone, and if none helps, two levers together.
 * Nothing here knows a cause. */
#include <string.h>

#include "measure/exam.h"

const char *const ms_lever_names[MS_LEVERS] = {
	"wire",  "pci", "cpu",    "ring",   "sooner", "later", "mode",    "poll",
	"place", "irq", "switch", "socket", "budget", "flows", "offered",
};

/* The case with one resource less scarce. False: this case has no such lever. */
static bool relax(struct ms_exam_case *c, enum ms_lever lever)
{
	bool request = c->load == MS_LOAD_SERVER || c->load == MS_LOAD_CLIENT;
	bool socket = request || c->load == MS_LOAD_SOCKET;

	switch (lever) {
	case MS_LEVER_WIRE:
		c->wire_gbps *= 1.5;
		return true;
	case MS_LEVER_PCI:
		c->pci_gbps *= 1.5;
		return true;
	case MS_LEVER_CPU:
		c->slow /= 1.25;
		return true;
	case MS_LEVER_RING:
		if (request || c->set.ring >= 4096)
			return false;
		c->set.ring *= 4;
		return true;
	case MS_LEVER_IRQ:
		c->irq_price /= 2;
		return true;
	case MS_LEVER_SWITCH:
		c->switch_price /= 2;
		return c->apps && c->load != MS_LOAD_PKTGEN;
	case MS_LEVER_SOCKET:
		c->rcvbuf *= 8;
		return socket;
	case MS_LEVER_BUDGET:
		c->budget *= 5;
		return true;
	case MS_LEVER_FLOWS:
		if (c->flows > 1 || c->queues < 2)
			return false;
		c->flows = 64;
		return true;
	case MS_LEVER_OFFERED:
		c->rate_mpps *= 1.3;
		c->peer_slow /= 1.5;
		c->think_us /= 2;
		return request || c->rate_mpps > 0;
	default:
		return false;
	}
}

/* The cell differs from the case's settings in that one of them alone. */
static bool lever_of(const struct ms_exam_set *a, const struct ms_exam_set *b, enum ms_lever *lever)
{
	bool ring = a->ring != b->ring, usecs = a->usecs != b->usecs, mode = a->mode != b->mode,
	     place = a->place != b->place;

	/* Polling has no moderation, and needs a CPU for itself. */
	if (mode && !ring && (b->mode == LAB_RX_POLL || a->mode == LAB_RX_POLL))
		*lever = MS_LEVER_POLL;
	else if (mode && !ring && !usecs && !place)
		*lever = MS_LEVER_MODE;
	else if (place && !ring && !usecs && !mode)
		*lever = MS_LEVER_PLACE;
	else if (usecs && !ring && !mode && !place && a->mode != LAB_RX_POLL)
		*lever = b->usecs == 1 || (a->usecs != 1 && b->usecs < a->usecs) ? MS_LEVER_SOONER
										 : MS_LEVER_LATER;
	else
		return false;
	return true;
}

static void take_lever(const struct ms_exam_case *c, const struct ms_exam_set *set,
		       double objective, struct ms_exam_truth *out)
{
	enum ms_lever lever, other;

	if (!lever_of(&c->set, set, &lever))
		return;
	out->lever[lever] = fmax(out->lever[lever], objective);
	/* From adaptive moderation one does not know which way is more. */
	if ((lever == MS_LEVER_SOONER || lever == MS_LEVER_LATER) &&
	    (c->set.usecs == 1 || set->usecs == 1)) {
		other = lever == MS_LEVER_SOONER ? MS_LEVER_LATER : MS_LEVER_SOONER;
		out->lever[other] = fmax(out->lever[other], objective);
	}
}

/* Nobody chooses the smallest ring, so no cell has it: who has it turns the other knobs with it. */
static int with_own_ring(struct ms_exam_ground *g, const struct ms_exam_case *c,
			 struct ms_exam_truth *out, struct ho_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < c->cells; i++)
		if (c->cell[i].ring == c->set.ring)
			return 0;
	for (unsigned i = 0; rc == 0 && i < c->cells; i++) {
		struct ms_exam_set set = c->cell[i];
		enum ms_lever lever;
		double objective;

		if (set.ring != c->cell[0].ring)
			continue;
		set.ring = c->set.ring;
		if (!lever_of(&c->set, &set, &lever))
			continue;
		rc = ms_exam_run(g, c, &set, &objective, NULL, err);
		if (rc == 0)
			take_lever(c, &set, objective, out);
	}
	return rc;
}

/*
 * No lever alone raises the objective, not even more to do: then two limits coincide, and each is
 * one. Turns two at a time.
 */
static int find_pairs(struct ms_exam_ground *g, const struct ms_exam_case *c,
		      struct ms_exam_truth *out, struct ho_err *err)
{
	double enough = out->objective * (1 + MS_EXAM_GAIN);
	int rc = 0;

	for (unsigned l = 0; l < MS_LEVERS; l++)
		if (out->lever[l] >= enough)
			return 0;
	for (unsigned l = 0; rc == 0 && l < MS_LEVERS; l++) {
		struct ms_exam_case one = *c;

		if (!relax(&one, (enum ms_lever)l))
			continue;
		for (unsigned k = 0; rc == 0 && k < l; k++) {
			struct ms_exam_case two = one;
			double objective;

			if (!relax(&two, (enum ms_lever)k))
				continue;
			rc = ms_exam_run(g, &two, &two.set, &objective, NULL, err);
			if (rc == 0 && objective >= enough)
				out->pairs |= 1u << l | 1u << k;
		}
	}
	return rc;
}

int ms_exam_truth(struct ms_exam_ground *g, const struct ms_exam_case *c, struct ms_exam_truth *out,
		  struct ho_err *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = ms_exam_run(g, c, &c->set, &out->objective, &out->evidence, err);
	for (unsigned i = 0; rc == 0 && i < c->cells; i++) {
		rc = ms_exam_run(g, c, &c->cell[i], &out->cell[i], NULL, err);
		if (rc < 0)
			return rc;
		if (out->cell[i] > out->cell[out->best])
			out->best = i;
		take_lever(c, &c->cell[i], out->cell[i], out);
	}
	if (rc == 0)
		rc = with_own_ring(g, c, out, err);
	for (unsigned l = 0; rc == 0 && l < MS_LEVERS; l++) {
		struct ms_exam_case changed = *c;

		if (relax(&changed, (enum ms_lever)l))
			rc = ms_exam_run(g, &changed, &changed.set, &out->lever[l], NULL, err);
	}
	return rc == 0 ? find_pairs(g, c, out, err) : rc;
}
