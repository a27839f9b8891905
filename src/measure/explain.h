/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What limits, why, and what to do about it: from evidence (measure/evidence.h) alone.
 *
 *   evidence --> view: what the numbers imply --> causes, a table: who applies? --> verdict
 *                      |                                                             |
 *                      +--> law: what other settings would give  ---------------> advice
 *
 * The table of causes (causes.c) is the document: symptom, evidence, arithmetic and remedy of each,
 * in the order in which they are looked for. The law (law.c) turns the evidence into a price of a
 * frame and of an interrupt, and those into what another setting would give.
 */
#ifndef HOLDOFF_MEASURE_EXPLAIN_H
#define HOLDOFF_MEASURE_EXPLAIN_H

#include "measure/evidence.h"

/* What is to be more: the objective that the evidence is about. */
enum ms_aim {
	MS_AIM_NOTHING, /* there is no traffic */
	MS_AIM_SEND,    /* frames sent a second */
	MS_AIM_RECEIVE, /* frames received a second, by the program if there is one */
	MS_AIM_REQUEST, /* transactions a second, so latency */
};

/* Where the vectors interrupt, seen from the programs. */
enum ms_place {
	MS_PLACE_ZERO, /* all on one CPU, that of the first program */
	MS_PLACE_APPS, /* vector i where program i is; without programs on all CPUs in turns */
	MS_PLACE_AWAY, /* on the CPUs that have no program, in turns */
	MS_PLACE_ELSE, /* otherwise */
};

/* A setting that the owner could choose. */
struct ms_choice {
	unsigned ring;  /* of the direction that counts */
	unsigned usecs; /* 1 = adaptive */
	enum ms_ev_mode mode;
	enum ms_place place;
};

/* The view: what the numbers imply. NAN = cannot be told. */
struct ms_view {
	const struct ms_evidence *ev;
	enum ms_aim aim;
	double rate;    /* of the objective, now */
	double arrives; /* receiving: frames that come, drops included */
	double lost;    /* receiving: a second, by us */
	double behind;  /* receiving: a second, more that wait in the chip */
	double bytes;   /* of a frame, without FCS */
	double wire;    /* shares used, 0 to 1 */
	double pci;
	unsigned apps;   /* CPUs with a program */
	unsigned spare;  /* CPUs without program and nearly idle, or only polling */
	int hot;         /* the busiest CPU, -1 = none */
	double hot_busy; /* its share; programs that wait for the ring do not count as busy */
	double hot_irq;  /* of that: interrupts and softirqs */
	double app_busy; /* the same for the busiest CPU with a program */
	double app_irq;
	double irq_busy;  /* the busiest CPU that the vectors interrupt */
	double irq_irq;   /* most of interrupts and softirqs on one CPU */
	double imbalance; /* share of the busiest queue times queues: 1 = even */
	double waits;     /* of senders, for the ring */
	bool stops;       /* sending, waits unknown: the queue is stopped at every third interrupt,
			   * or more often */
	double gate;      /* interrupts a second x moderation interval: 1 = always waits for it */
	/* prices in ns, of the law */
	double round; /* requests, s: of one, without the client's pause; unknown outstanding = 1 */
	double outstanding;
	double work;      /* of this box for one transaction, s */
	double app_ns;    /* a frame or transaction, in programs */
	double soft_ns;   /* the same in softirqs, without the interrupt's own */
	double irq_ns;    /* an interrupt with all that it begins */
	double hard_ns;   /* of that: in hard interrupts */
	double in_flight; /* sending: frames that the ring can hold */
	double cleanings; /* sending: a second and queue */
	struct ms_choice now;
};

void ms_view_make(const struct ms_evidence *ev, struct ms_view *view);

/* What the law says that the objective would be with this choice. */
double ms_law(const struct ms_view *view, const struct ms_choice *choice);

#define MS_FINDING_TEXT 640

struct ms_finding {
	double certainty;                 /* 0 to 1; 0 = does not apply */
	char sentence[MS_FINDING_TEXT];   /* the verdict */
	char arithmetic[MS_FINDING_TEXT]; /* with this box's numbers */
};

/* A row of the table. */
struct ms_cause {
	const char *name;  /* "tx-ring": stable, for JSON */
	const char *title; /* "the transmit ring" */
	const char *symptom, *evidence, *arithmetic, *remedy;
	void (*judge)(const struct ms_view *view, struct ms_finding *finding);
};

extern const struct ms_cause ms_causes[]; /* ends with a NULL name */

/* The settings that advice may choose from. */
#define MS_CHOICES_MAX 256
struct ms_choices {
	struct ms_choice choice[MS_CHOICES_MAX];
	unsigned n;
};

/* All that make sense on this box: rings, moderation, rx-modes, places. */
void ms_choices_list(const struct ms_view *view, struct ms_choices *out);
/* Those of them that a live interface has: what is unknown of it cannot be set, and its driver's
 * rx-mode is not ours to choose. */
void ms_choices_live(const struct ms_view *view, struct ms_choices *out);

struct ms_verdict {
	struct ms_view view;
	const struct ms_cause *cause;
	struct ms_finding finding;
	const struct ms_cause *also[4]; /* that apply as well, by certainty */
	double also_certainty[4];
	unsigned n_also;
	bool advises;              /* another setting is worth it */
	struct ms_choice advice;   /* else the present one */
	double expects;            /* the objective with it */
	bool unknown[MS_EV_COUNT]; /* could not be read, and would have told something */
};

/* choices may be NULL: all that make sense. */
void ms_explain(const struct ms_evidence *ev, const struct ms_choices *choices,
		struct ms_verdict *out);

/* CPUs for the place, "2,3"; "" if it cannot be. */
const char *ms_place_cpus(const struct ms_evidence *ev, enum ms_place place, char *buf,
			  size_t bytes);

#endif
