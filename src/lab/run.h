/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario brought to life: hosts, chips, drivers, rx-modes, wires and workloads are built, the
 * clock runs through the warm-up and the measured interval, everything is taken down again, and
 * what happened in the interval is the result.
 *
 * Each run also checks what must hold in any run (lab_run says which); a violation is an error,
 * not a result. Runs share nothing: several processes may run at once.
 */
#ifndef HOLDOFF_LAB_RUN_H
#define HOLDOFF_LAB_RUN_H

#include "lab/exec.h"
#include "lab/fault.h"
#include "lab/scenario.h"
#include "lab/store.h"
#include "port/port.h"

#define LAB_RUN_HOSTS     8
#define LAB_RUN_CHIPS     16 /* in all hosts */
#define LAB_RUN_WORKLOADS 32 /* in all hosts */
#define LAB_RUN_CPUS      64 /* of a host */

#define LAB_RUN_QUEUES 16 /* pairs of a chip */

/* A queue pair, in the measured interval. */
struct lab_queue_result {
	unsigned irq_cpu; /* which its vector interrupts */
	uint64_t interrupts;
	uint64_t tx_packets, rx_packets;
};

/* One chip and its driver, in the measured interval. */
struct lab_chip_result {
	unsigned host;         /* index into the scenario */
	const char *host_name; /* of the scenario, as the other names here */
	const char *name;
	unsigned queues;
	uint64_t rx_ring, tx_ring, rx_usecs; /* as set */
	uint64_t tx_usable;                  /* one-descriptor frames in flight at most */
	uint64_t tx_packets, tx_bytes;       /* completed */
	uint64_t rx_packets, rx_bytes;       /* given to their user */
	uint64_t interrupts;                 /* of queue pairs: handlers run */
	uint64_t completes;                  /* polls that ended the pair's work */
	uint64_t tx_stops;                   /* tx_restart_queue: stopped and woken again */
	uint64_t drops[PORT_DROP_COUNT];     /* since the start of the run */
	uint64_t tx_sent;                    /* in the interval: put on the wire */
	uint64_t rx_arrived;                 /* in the interval: from the wire */
	uint64_t rx_missed;                  /* in the interval: the packet buffer was full */
	uint64_t rx_no_descriptor;           /* in the interval: the ring was empty */
	uint64_t socket_packets;             /* in the interval: given to the socket by the stack */
	uint64_t socket_drops;               /* of these: it was full */
	uint64_t tx_full; /* times that a sender was turned away because the ring was full */
	struct lab_queue_result queue[LAB_RUN_QUEUES];
	double wire_tx_busy, wire_rx_busy; /* fractions of the interval */
	double pci_up_busy, pci_down_busy;
	uint64_t wire_bps;
	uint64_t register_reads, register_writes;
	/* What went wrong on purpose and what the driver did about it, since the start. */
	struct lab_fault_counts faults;
	uint64_t tx_timeouts, irqs_rearmed, resets, link_changes;
	/* The longest time, seen every 50 us, in which frames were in a transmit ring and nothing
	 * was sent or received: how long recovery took. */
	sim_ps longest_stall;
};

/* Of a number of frames in the interval; all 0 if there were none. */
struct lab_delay {
	uint64_t n, mean_ns, p50_ns, p99_ns, max_ns;
};

struct lab_workload_result {
	unsigned host;
	const char *host_name;
	const char *name;
	enum lab_workload_kind kind;
	bool stamps;          /* gen: its frames carry the time */
	unsigned cpu, chip;   /* chip: index into lab_result.chip */
	uint32_t frame_bytes; /* mean, without FCS; 0 = unknown */
	uint64_t packets, bytes;
	double waiting; /* fraction of the interval in which it spun for a stopped or full ring */
	struct lab_delay latency; /* recv: from when a stamped frame was due until it came;
				   * rr client: of transactions */
	struct lab_delay drain;   /* gen: from when a frame was offered to its queue until the
				     driver had its descriptors back */
	uint64_t lost, reordered, duplicates; /* recv: since the start */
	uint64_t transactions;                /* rr client: completed; latency as above */
	uint64_t context_switches;            /* of its task, both kinds */
};

struct lab_host_result {
	const char *name;
	unsigned cpus;
	struct lab_cpu_stats cpu[LAB_RUN_CPUS]; /* in the interval */
};

struct lab_result {
	sim_ps interval;
	unsigned n_hosts, n_chips, n_workloads;
	struct lab_host_result host[LAB_RUN_HOSTS];
	struct lab_chip_result chip[LAB_RUN_CHIPS];
	struct lab_workload_result workload[LAB_RUN_WORKLOADS];
	uint64_t sim_frames; /* that crossed a wire in the whole run, both ways */
	uint64_t sim_events;
	uint64_t digest;     /* of every event's time and order: equal runs, equal digest */
	double wall_seconds; /* of real time, building included */
	double cpu_seconds;  /* of this process's CPU time for it */
};

/* The fraction of the interval in which the CPU was not idle. */
double lab_cpu_busy(const struct lab_cpu_stats *cpu);

/* How many per second, from a count in the interval. */
double lab_per_second(const struct lab_result *result, uint64_t count);

/* The workload that the results are about: the first that sends, else the first; NULL if there is
 * none. */
const struct lab_workload_result *lab_result_sender(const struct lab_result *result);

/*
 * What stands in the scenario under `result` in a published table: "pps" (of the first workload
 * that sends, else of the first), "irqs_per_s" (of the first chip), "gbps"; "arrival_mean_ns",
 * "arrival_p50_ns", "arrival_p99_ns", "arrival_max_ns", the delay of stamped frames at the first
 * workload that received any; "drain_mean_ns" and so on, how long the first `gen` that stamps its
 * frames waited for the driver to be done with them. -EINVAL for another word.
 */
int lab_result_check(const char *word, struct ho_err *err); /* only whether there is such a word */
int lab_result_value(const struct lab_result *result, const char *word, double *out,
		     struct ho_err *err);

/*
 * Builds and runs it. trace, which may be NULL, gets the measured interval. -EINVAL for a scenario
 * that cannot be built, with its place; -EPROTO when an invariant is broken: frames conserved from
 * a sender through its port, its chip, the wire and the other chip to a receiver or a named drop;
 * descriptors owned by one side; every CPU's times sum to the time passed; interrupts raised = sent
 * + coalesced + cleared; where nothing goes wrong on purpose, no frame waits for ever and the
 * watchdog has nothing to do, so no interrupt was lost; buffers all returned.
 */
int lab_run(const struct lab_scenario *scenario, struct lab_trace *trace, struct lab_result *out,
	    struct ho_err *err);
/* The same, with memory that earlier runs left (lab/store.h): several times faster if the run is
 * short. The result is the same. */
int lab_run_again(const struct lab_scenario *scenario, struct lab_store *store,
		  struct lab_result *out, struct ho_err *err);

#endif
