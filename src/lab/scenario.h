/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios: what stands in a lab run and what happens in it. The file format is described in
 * docs/lab-files.md; these structs are that file with every name resolved and every value checked.
 * Who builds a run (chips, drivers, ports, workloads) reads them and changes nothing.
 *
 * Text fields are the file's words; the fields below "resolved" are what they mean.
 */
#ifndef HOLDOFF_LAB_SCENARIO_H
#define HOLDOFF_LAB_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/units.h"
#include "lab/profile.h"
#include "lab/published.h"

/* A free key and its value. */
struct lab_param {
	char *name;
	char *text;
	bool numeric;   /* a count ("512", "64k") or a switch ("on", "off") */
	uint64_t value; /* if numeric; switches are 1 and 0 */
};

struct lab_params {
	struct lab_param *param;
	unsigned n;
};

/* NULL if it is not given. */
const struct lab_param *lab_params_get(const struct lab_params *params, const char *name);

enum lab_rx_mode {
	LAB_RX_NAPI, /* if none is given */
	LAB_RX_DIRECT,
	LAB_RX_DEFERRED,
	LAB_RX_SRS,
	LAB_RX_POLL,
	LAB_RX_HOLDOFF,
};

#define LAB_IRQ_CPUS_MAX 128

struct lab_chip_spec {
	char *name;  /* "eth0" */
	char *model; /* "82599" */
	enum lab_rx_mode rx_mode;
	uint32_t queues;         /* pairs; 0 = the model's default */
	uint32_t *irq_cpus;      /* of vector i: irq_cpus[i % irq_cpus_count] */
	uint32_t irq_cpus_count; /* at least 1 when resolved */
	/* resolved */
	struct lab_params params; /* ethtool's names: tx, rx, rx-usecs, ... */
};

enum lab_workload_kind {
	LAB_WORK_PKTGEN, /* as Linux's pktgen: one frame again and again, spins while stopped */
	LAB_WORK_GEN,    /* the engine's generator */
	LAB_WORK_RECV,   /* the engine's receiver */
	LAB_WORK_RR,     /* request and response */
};

struct lab_workload_spec {
	char *name;
	enum lab_workload_kind kind;
	char *chip; /* of this host */
	uint32_t queue;
	uint32_t cpu;
	char *sizes;     /* frame sizes, as `gen --size` takes them; NULL = the kind's default */
	char *rate_text; /* NULL = max */
	/* resolved */
	unsigned chip_index;
	struct ho_rate rate;
	struct lab_params params;
};

struct lab_host_spec {
	char *name;
	char *profile_name;
	uint32_t cpus; /* 0 in the file = the profile's */
	struct lab_chip_spec *chips;
	uint32_t chips_count;
	struct lab_workload_spec *workloads;
	uint32_t workloads_count;
	/* resolved */
	struct lab_params constants; /* that differ from the profile's */
	struct lab_profile *profile; /* with those, and cpus, put in */
};

struct lab_wire_end {
	unsigned host, chip; /* indices */
};

struct lab_wire_spec {
	char *name;
	char *from, *to;        /* "host.chip"; to = NULL: a sink that takes every frame */
	char *rate_text;        /* "10gbps" */
	char *propagation_text; /* NULL = 0 */
	/* resolved */
	struct lab_wire_end end[2];
	bool sink; /* there is no end[1] */
	uint64_t bits_per_s;
	sim_ps propagation;
};

/* Something that can be set from outside (lab_scenario_set) under a short name. */
struct lab_axis_spec {
	char *name;    /* "tx" */
	char *path;    /* "hosts.dut.chips.eth0.tx" */
	char **values; /* for a sweep; may be none */
	uint32_t values_count;
};

/* A variant of the machine or its software: published series differ in it. */
struct lab_series_spec {
	char *name;
	/* resolved */
	struct lab_params set; /* path and value */
};

struct lab_published_parameter {
	char *column; /* of the CSV file */
	char *axis;   /* which axis its values set */
};

struct lab_published_result {
	char *column; /* NULL: nothing was published, the result is shown alone */
	char *result;          /* what of the run stands beside it: "pps", "irqs_per_s", ... */
	double background;     /* is in the published values, but not of the run: subtracted */
	char *background_from; /* why; needed if background is not 0 */
	double within_percent; /* a larger error is a failure; 0 = not checked */
};

struct lab_published_spec {
	char *file;          /* in data/published, or a path beside the scenario's file */
	char *series_column; /* NULL: there is but one series */
	struct lab_published_parameter *parameters;
	uint32_t parameters_count;
	struct lab_published_result *results;
	uint32_t results_count;
	char **fitted; /* rows used to fit constants: "v1/1024/50", by series and parameters */
	uint32_t fitted_count;
};

struct lab_scenario {
	char *name, *title, *text;
	uint64_t seed;
	char *warmup_text, *duration_text;
	struct lab_host_spec *hosts;
	uint32_t hosts_count;
	struct lab_wire_spec *wires;
	uint32_t wires_count;
	struct lab_axis_spec *axes;
	uint32_t axes_count;
	struct lab_series_spec *series;
	uint32_t series_count;
	struct lab_published_spec *published; /* NULL if there is none */
	/* resolved */
	sim_ps warmup, duration;
	char *published_path;
	struct lab_table *table; /* that file; all columns named above are in it */
	struct ho_doc *doc;     /* for lab_scenario_blame */
};

/* `name` is that of a scenario (lab_data_find) or a path. Errors name file, line and column. */
int lab_scenario_load(const char *name, struct lab_scenario **out, struct ho_err *err);
/* From memory: `file` stands for it in messages. */
int lab_scenario_parse(const char *file, const char *text, size_t bytes, struct lab_scenario **out,
		       struct ho_err *err);
/* NULL is allowed. */
void lab_scenario_free(struct lab_scenario *scenario);

/*
 * Changes one value, as the file would have given it, and resolves everything again. `path` is
 * the name of an axis or one of
 *
 *   seed, warmup, duration
 *   hosts.HOST.profile, .cpus, .constants.KEY
 *   hosts.HOST.chips.CHIP.model, .rx-mode, .queues, .irq-cpus (as "0,1"), or any parameter
 *   hosts.HOST.workloads.NAME.kind, .chip, .queue, .cpu, .sizes, .rate, or any parameter
 *   wires.WIRE.from, .to, .rate, .propagation
 *
 * -EINVAL with a message; the scenario can then only be freed.
 */
int lab_scenario_set(struct lab_scenario *scenario, const char *path, const char *value,
		     struct ho_err *err);

/* Sets everything that the series of that name sets. -EINVAL if there is none. */
int lab_scenario_set_series(struct lab_scenario *scenario, const char *series, struct ho_err *err);

/* Puts "FILE:LINE:COLUMN: " of a node ("hosts/0/chips/0/model") before err's message, for who
 * finds out later that a value cannot be. Returns err's code. */
int lab_scenario_blame(const struct lab_scenario *scenario, struct ho_err *err, const char *node,
		       ...) __attribute__((format(printf, 3, 4)));

const char *lab_rx_mode_name(enum lab_rx_mode mode);
const char *lab_workload_kind_name(enum lab_workload_kind kind);

#endif
