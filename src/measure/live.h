/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A live interface as something to turn and to measure: settings by linux/params.h, noted in a
 * journal before they are changed; a workload (measure/workload.h); and what the machine shows of
 * the interface meanwhile (linux/sample.h).
 *
 *   ms_live_open     claims the interface; nothing is changed yet
 *   ms_live_set      a setting, read back
 *   ms_live_measure  the workload once, and the counters around it
 *   ms_live_close    everything back, unless ms_live_keep
 */
#ifndef HOLDOFF_MEASURE_LIVE_H
#define HOLDOFF_MEASURE_LIVE_H

#include "linux/journal.h"
#include "measure/workload.h"

struct ms_live_config {
	const char *ifname;
	bool force; /* even if it carries the default route */
	struct ms_workload_config workload;
	uint64_t settle_ns;  /* after a change, before anything is counted: links come up again,
			      rings fill */
	uint64_t measure_ns; /* how long to observe, when the workload is MS_OBSERVE */
	int stop_fd;         /* readable when the run is to end early; -1 = never */
};

enum ms_live_metric {
	MS_LIVE_PPS, /* received and sent, a second */
	MS_LIVE_RX_PPS,
	MS_LIVE_TX_PPS,
	MS_LIVE_GBPS,     /* both, without FCS */
	MS_LIVE_IRQS,     /* of the interface's vectors, a second */
	MS_LIVE_CPU,      /* percent of the busiest CPU's time that was not idle */
	MS_LIVE_SOFTIRQ,  /* percent of the busiest CPU's time, irq and softirq */
	MS_LIVE_SWITCHES, /* context switches of the machine, a second */
	MS_LIVE_DROPS,    /* frames lost at the interface, a second */
	MS_LIVE_VALUE,    /* what the workload measured */
	MS_LIVE_METRICS,
};

#define MS_LIVE_WHY 400

struct ms_live_result {
	double value[MS_LIVE_METRICS]; /* NAN: this machine or workload does not tell */
	double seconds;                /* that were counted */
	/* What limited meanwhile (explain_live.h): index into ms_causes, and the verdict with its
	 * arithmetic. */
	unsigned cause;
	double certainty;
	char why[MS_LIVE_WHY];
};

struct ms_live;

/* Claims it (see lx_journal_open for the errors). *left: what a dead owner's journal held. */
int ms_live_open(const struct ms_live_config *config, struct ms_live **out,
		 struct lx_restored *left, struct ho_err *err);

/* Settings as they are now; see lx_param_list. */
int ms_live_settings(struct ms_live *live, struct lx_setting *out, unsigned room,
		     struct ho_err *err);

/* Sets and reads back. Waits for the link to come back when the setting took it down, at most
 * some seconds (-ENETDOWN). */
int ms_live_set(struct ms_live *live, const char *name, uint64_t value, uint64_t *got,
		struct ho_err *err);

/* After changes, without a measurement: waits for the link and for as long as is asked to settle.
 * Errors of ms_live_set; -EINTR by stop_fd. */
int ms_live_settle(struct ms_live *live, struct ho_err *err);

/* Settles if anything was set since the last measurement, then measures. -EINTR by stop_fd. */
int ms_live_measure(struct ms_live *live, struct ms_live_result *out, struct ho_err *err);

/* Everything back now; ms_live_keep: what is set now stays. */
int ms_live_restore(struct ms_live *live, struct lx_restored *done, struct ho_err *err);
int ms_live_keep(struct ms_live *live, struct ho_err *err);
const char *ms_live_ifname(const struct ms_live *live);

/* NULL is allowed. Failing to restore is an error whose text has the way out. */
int ms_live_close(struct ms_live *live, struct ho_err *err);

#endif
