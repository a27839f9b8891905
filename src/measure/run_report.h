/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What became of every packet of a run, in the same words for every command: docs/accounting.md
 * says what offered and delivered mean for each.
 *
 * The balance: offered = delivered + the sum of the drops. Losses that only the kernel or the chip
 * counts (struct port_ops external_drops) may contain packets that were not ours: then they explain
 * more than is missing, and the surplus is shown as drops_of_others. More missing than explained
 * is always an error.
 */
#ifndef HOLDOFF_MEASURE_RUN_REPORT_H
#define HOLDOFF_MEASURE_RUN_REPORT_H

#include <stdio.h>

#include "base/hist.h"
#include "base/json.h"
#include "measure/counters.h"
#include "port/port.h"
#include "traffic/track.h"

/* Median of a second's rates. */
struct ms_rates {
	double *rate;
	size_t n, room;
};

struct ms_report {
	const char *command;
	double seconds; /* that traffic was made or received */
	uint64_t offered, delivered;
	uint64_t drops[PORT_DROP_COUNT];
	uint64_t external;   /* of these: counted by the kernel or chip, for anybody's packets */
	bool tx, rx, stamps; /* which of the following there are */
	uint64_t tx_packets, tx_bytes, ring_full, kicks;
	double tx_seconds;
	uint64_t rx_packets, rx_bytes, wakeups;
	double rx_seconds;  /* from the first to the last */
	uint64_t unstamped; /* received frames without a stamp */
	struct tr_track_sum tracks;
	struct ho_hist latency_ns;
	struct ms_rates tx_rates, rx_rates; /* packets/s, second by second */
	uint32_t buffers_missing;           /* packet buffers that did not come back */
	struct ms_counters counters;        /* of each port and queue that was added */
	bool list_counters;                 /* print them, and the streams one by one */
};

void ms_report_init(struct ms_report *report, const char *command);
void ms_report_fini(struct ms_report *report);

/* Adds queue i's counters of a stopped or drained port. */
void ms_report_add_tx(struct ms_report *report, const struct port_txq *q);
void ms_report_add_rx(struct ms_report *report, const struct port_rxq *q);
/* Adds what only the kernel or the chip counted, of the directions wanted; returns how many. */
uint64_t ms_report_add_external(struct ms_report *report, struct port *port, bool rx, bool tx);

void ms_rates_add(struct ms_rates *rates, double rate);
/* 0 while there are none. */
double ms_rates_median(struct ms_rates *rates);

/* Packets that are missing without an explanation (positive), or more explained than missing
 * (negative), after drops_of_others was taken off. 0 = balanced. */
int64_t ms_report_missing(const struct ms_report *report);
/* External drops beyond what is missing. */
uint64_t ms_report_drops_of_others(const struct ms_report *report);

/* 0, or -EBADE and the difference in a sentence: the balance is broken or buffers are missing. */
int ms_report_check(const struct ms_report *report, struct ho_err *err);

/* The object with all that is above; a command adds its own keys. NULL when out of memory. */
json_t *ms_report_json(struct ms_report *report);

/* The same for people, some lines. -EPIPE when the reader has gone. */
int ms_report_print(struct ms_report *report, FILE *out);

#endif
