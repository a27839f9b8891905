/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The highest rate at which no more than a given part is lost (as RFC 2544's throughput, with a
 * loss that may be above 0): binary search over trials, and confirmation of what it finds.
 *
 * Real trials are noisy. A trial that loses too much is run twice more before it is believed
 * (unless it loses very much), so that a stall does not halve the result; and the rate found must
 * hold in `confirm` further trials in a row, or the search goes on below it.
 */
#ifndef HOLDOFF_TRAFFIC_SEARCH_H
#define HOLDOFF_TRAFFIC_SEARCH_H

#include <stdbool.h>

#include "base/error.h"

struct tr_search_config {
	double loss;      /* 0 to 1: this much may be lost */
	double precision; /* relative width at which the search ends; 0.01 */
	unsigned confirm; /* trials that the rate must hold in at the end */
	unsigned trials_max;
};

/* What one trial gave. */
struct tr_search_trial {
	double asked_pps;    /* 0 = as fast as possible */
	double achieved_pps; /* sent */
	double loss;         /* 0 to 1 */
	bool confirming;     /* one of the last ones */
	bool good;           /* filled in by the search: no more than the loss allowed */
};

/* Runs one trial at trial->asked_pps and fills achieved_pps and loss. Negative errno ends the
 * search. */
typedef int (*tr_search_run)(void *arg, struct tr_search_trial *trial);
/* Told of each trial when it has been judged; may be NULL. */
typedef void (*tr_search_note)(void *arg, const struct tr_search_trial *trial);

struct tr_search_result {
	bool found;
	bool sender_limited; /* it holds even as fast as we can send: the device can do more */
	double pps;          /* achieved in the confirmed trials, their lowest */
	double loss;         /* in these, their highest */
	unsigned trials;
};

/* 0 (also when no rate was found), or the error of run. */
int tr_search(const struct tr_search_config *config, tr_search_run run, tr_search_note note,
	      void *arg, struct tr_search_result *out);

#endif
