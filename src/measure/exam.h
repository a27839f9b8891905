/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The examination of explain and tune: random machines under random loads, in the lab, where the
 * truth can be had by turning every knob and running again.
 *
 *   case       drawn from a seed: a box under test ("dut") with a CPU speed, prices of interrupts
 * and switches, a bus, a wire, rings, moderation, an rx-mode, places of interrupts and programs;
 * and a load: pktgen, a generator, frames to receive in the kernel or through a socket, requests to
 * answer or to make objective  frames or transactions a second, at the program that counts cells
 * the settings that an owner of the box could choose: rings, moderation, rx-mode, places of
 * interrupts; every combination is run levers     one thing each that limits less than in the case:
 * a larger ring, other moderation, a faster CPU, wire or bus, cheaper interrupts, ...; each is run
 * alone. A lever that raises the objective by MS_EXAM_GAIN or more is a true limiter. If none does,
 * not even more that is offered, two limits coincide: then two levers at a time are turned, and
 * both of a pair that raises it are true limiters
 *
 * The truth knows nothing of causes or laws: it is objectives of runs. What is examined sees the
 * evidence of one run (measure/evidence.h) and nothing else.
 */
#ifndef HOLDOFF_MEASURE_EXAM_H
#define HOLDOFF_MEASURE_EXAM_H

#include "lab/scenario.h"
#include "measure/explain.h"

#define MS_EXAM_GAIN 0.03

enum ms_exam_load {
	MS_LOAD_PKTGEN, /* the dut sends: Linux's pktgen */
	MS_LOAD_GEN,    /* the dut sends: the engine's generator */
	MS_LOAD_SINK,   /* the dut receives, in the kernel alone */
	MS_LOAD_SOCKET, /* the dut receives, a program reads a socket */
	MS_LOAD_SERVER, /* the dut answers requests */
	MS_LOAD_CLIENT, /* the dut makes requests */
	MS_LOADS,
};
extern const char *const ms_exam_load_names[MS_LOADS];

/* What an owner can set. */
struct ms_exam_set {
	unsigned ring; /* tx when it sends, rx when it receives */
	unsigned usecs;
	enum lab_rx_mode mode;
	enum ms_place place;
};

#define MS_EXAM_CELLS 160

struct ms_exam_case {
	unsigned number;
	uint64_t seed; /* of the run */
	enum ms_exam_load load;
	unsigned cpus, apps, queues;
	double slow;         /* times the profile's prices of a CPU's work */
	double irq_price;    /* times those of interrupts */
	double switch_price; /* times those of wake-ups and switches */
	double pci_gbps, wire_gbps;
	unsigned bytes;   /* of a frame, without FCS */
	double rate_mpps; /* offered to it, or by it; 0 = as fast as possible */
	unsigned flows;   /* 1 = all frames go to one queue */
	unsigned outstanding;
	unsigned rcvbuf, budget;
	double peer_slow;
	unsigned think_us;      /* of the peer */
	struct ms_exam_set set; /* as it is now */
	struct ms_exam_set cell[MS_EXAM_CELLS];
	unsigned cells;
};

/* Case `number` of the series `seed`. */
void ms_exam_case(uint64_t seed, unsigned number, struct ms_exam_case *c);

/* One thing changed: what a lever of the truth is. */
enum ms_lever {
	MS_LEVER_WIRE,
	MS_LEVER_PCI,
	MS_LEVER_CPU,     /* all prices of the CPU's work lower */
	MS_LEVER_RING,    /* larger */
	MS_LEVER_SOONER,  /* less moderation: the best of the cells' */
	MS_LEVER_LATER,   /* more moderation */
	MS_LEVER_MODE,    /* the other rx-mode with interrupts */
	MS_LEVER_POLL,    /* polling instead of interrupts, or the other way */
	MS_LEVER_PLACE,   /* the best other place of interrupts */
	MS_LEVER_IRQ,     /* cheaper interrupts */
	MS_LEVER_SWITCH,  /* cheaper wake-ups and switches */
	MS_LEVER_SOCKET,  /* more room in the socket */
	MS_LEVER_BUDGET,  /* more frames a softirq round */
	MS_LEVER_FLOWS,   /* spread evenly over the queues */
	MS_LEVER_OFFERED, /* more is offered, or the other end is faster */
	MS_LEVERS,
};
extern const char *const ms_lever_names[MS_LEVERS];

/* What the runs of cases share, so that each is cheap: the scenario of one case, of which only the
 * settings change; the profile; memory. What comes out is the same as if each run was alone. */
struct ms_exam_ground {
	const struct ms_exam_case *c; /* whose scenario it is; NULL = none yet */
	struct lab_scenario *scenario;
	struct lab_profile *profile;
	struct lab_store *store;
};

/* All zero before; *c is the case that most runs are of, and must stay as it is. To be called again
 * for the next one. */
int ms_exam_ground(struct ms_exam_ground *ground, const struct ms_exam_case *c, struct ho_err *err);
void ms_exam_ground_fini(struct ms_exam_ground *ground);

/* The case with these settings, as a scenario. */
int ms_exam_scenario(const struct ms_exam_case *c, const struct ms_exam_set *set,
		     const struct lab_profile *profile, struct lab_scenario **out,
		     struct ho_err *err);
/* Runs it: the objective, and what the dut shows (ev may be NULL). If c is the ground's own case,
 * its scenario is used, else one is made. */
int ms_exam_run(struct ms_exam_ground *ground, const struct ms_exam_case *c,
		const struct ms_exam_set *set, double *objective, struct ms_evidence *ev,
		struct ho_err *err);

/* The truth of a case. */
struct ms_exam_truth {
	double objective;           /* as it is */
	double cell[MS_EXAM_CELLS]; /* of each cell */
	unsigned best;              /* cell */
	double lever[MS_LEVERS];    /* objective with it; 0 = there is no such lever here */
	unsigned pairs; /* if none raises it: those that do together with another one; bit l */
	struct ms_evidence evidence; /* of the case as it is */
};

int ms_exam_truth(struct ms_exam_ground *ground, const struct ms_exam_case *c,
		  struct ms_exam_truth *out, struct ho_err *err);

/* --- the examination (exam.c) --------------------------------------------------------------- */

#define MS_EXAM_CAUSES 32 /* at least as many as there are */

/* What became of a case. */
struct ms_exam_outcome {
	struct ms_exam_case c; /* without its cells */
	unsigned cause;        /* index into ms_causes */
	bool right;            /* it is true that it limits; or nothing here does */
	unsigned truths;       /* levers that raise the objective: bit l */
	unsigned pairs;        /* or two of them together */
	int main;              /* the one that raises it most, but what is offered; -1 = none */
	double main_gain;
	double objective, best; /* as it is; of the best cell */
	double advised;         /* with the first advice */
	double tuned;           /* where tune ended */
	unsigned tune_runs;
	struct ms_exam_set best_set, advice_set;
};

struct ms_exam {
	unsigned cases, jobs, first; /* the config: cases first .. first + cases - 1 */
	uint64_t seed;
	void (*progress)(void *ctx, unsigned done, unsigned cases);
	void *ctx;
	/* the result */
	struct ms_exam_ground ground;    /* a worker's own */
	struct ms_exam_outcome *outcome; /* of each; freed by ms_exam_fini */
	double explain_right, advice_reaches_90, tune_reaches_98; /* shares of the cases */
	double tune_median_ratio, tune_median_runs;
	/* [main lever + 1][cause]: cases; [0] = none */
	unsigned confusion[MS_LEVERS + 1][MS_EXAM_CAUSES];
	unsigned by_load[MS_LOADS], right_by_load[MS_LOADS], reaches_by_load[MS_LOADS];
};

/* Errors as those of ms_pool_run. */
int ms_exam(struct ms_exam *exam, struct ho_err *err);
void ms_exam_fini(struct ms_exam *exam);

/* One case, with its truth; for tests of cases that were once wrong. */
int ms_exam_one(struct ms_exam_ground *ground, uint64_t seed, unsigned number,
		struct ms_exam_outcome *out, struct ho_err *err);

#endif
