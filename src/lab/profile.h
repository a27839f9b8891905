/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine profiles: what things cost on one machine, each constant with where it is from. The
 * file format is described in docs/lab-files.md; this table is its list of constants.
 *
 * A profile may inherit from another one. Constants that it does not give come from there; those
 * that are a CPU's work are scaled by the ratio of the clocks and become `derived`. So a profile
 * can be written from a handful of facts: number of CPUs, clock, caches.
 */
#ifndef HOLDOFF_LAB_PROFILE_H
#define HOLDOFF_LAB_PROFILE_H

#include "base/error.h"
#include "lab/exec.h"
#include "lab/pci.h"

enum lab_unit {
	LAB_UNIT_NS, /* in the file; picoseconds in memory */
	LAB_UNIT_BYTES,
	LAB_UNIT_GBPS, /* in the file; bits a second in memory */
	LAB_UNIT_COUNT,
};

/* Beside the costs of runtime/cost.h, whose keys get "_ns" and which are all a CPU's work:
 *      name, key in the file, unit, a CPU's work?, meaning */
#define LAB_CONSTANTS(X)                                                                           \
	X(IRQ_ENTRY, "irq_entry_ns", NS, 1, "interrupt: from the CPU's notice to the handler")     \
	X(IRQ_EXIT, "irq_exit_ns", NS, 1, "interrupt: from the handler to what was interrupted")   \
	X(SOFTIRQ, "softirq_ns", NS, 1, "softirqs begin to run")                                   \
	X(WAKEUP, "wakeup_ns", NS, 1, "a task is woken, on the waker's CPU")                       \
	X(CONTEXT_SWITCH, "context_switch_ns", NS, 1,                                              \
	  "from a task to another, or to or from idle")                                            \
	X(TIME_SLICE, "time_slice_ns", NS, 0, "a task's turn among equals")                        \
	X(SOFTIRQ_LIMIT, "softirq_limit_ns", NS, 0, "softirqs run so long before ksoftirqd")       \
	X(SOFTIRQ_ROUNDS, "softirq_rounds", COUNT, 0, "or so many rounds")                         \
	X(POLL_LIMIT, "poll_limit_ns", NS, 0, "a round of polls lasts so long")                    \
	X(POLL_BUDGET, "poll_budget", COUNT, 0, "or so many frames (net.core.netdev_budget)")      \
	X(KSOFTIRQD_OWNS, "ksoftirqd_owns", COUNT, 0,                                              \
	  "1: while ksoftirqd is awake no softirq runs after interrupts (Linux since 4.9)")        \
	X(CACHE_OTHER, "cache_other_bytes", BYTES, 0, "touched beside the rings in the same time") \
	X(MMIO_WRITE, "mmio_write_ns", NS, 0, "a posted register write, for the CPU")              \
	X(PCI_LATENCY, "pci_latency_ns", NS, 0, "one way between CPU and chip, without the bytes") \
	X(REGISTER_READ, "register_read_ns", NS, 0, "a register read, inside the chip")            \
	X(MEMORY_READ, "memory_read_ns", NS, 0, "a chip's memory read, inside the host")           \
	X(MEMORY_WRITE, "memory_write_ns", NS, 0, "a chip's memory write, from arrival to sight")  \
	X(PCI_RATE, "pci_gbps", GBPS, 0, "of the chip's link, each way, after line coding")        \
	X(PCI_HEADER, "pci_header_bytes", BYTES, 0, "of a packet: header, framing, CRC")           \
	X(PCI_PAYLOAD, "pci_payload_bytes", BYTES, 0, "the longest payload of a write")            \
	X(PCI_COMPLETION, "pci_completion_bytes", BYTES, 0, "the payload of a completion")         \
	X(PCI_REQUEST, "pci_request_bytes", BYTES, 0, "the longest read request")                  \
	X(PCI_TAGS, "pci_tags", COUNT, 0, "read requests in flight at once")

enum lab_constant_id {
#define LAB_CONSTANT_COST(name, key, unit) LAB_COST_##name,
	RT_COSTS(LAB_CONSTANT_COST)
#undef LAB_CONSTANT_COST
#define LAB_CONSTANT_ID(name, key, unit, scales, meaning) LAB_##name##_CONSTANT,
		LAB_CONSTANTS(LAB_CONSTANT_ID)
#undef LAB_CONSTANT_ID
			LAB_CONSTANT_COUNT,
};

enum lab_kind {
	LAB_MEASURED,  /* on such a machine, as the source says */
	LAB_PUBLISHED, /* in a manual, a paper, a kernel's source */
	LAB_DERIVED,   /* by arithmetic from others */
	LAB_FITTED,    /* so that the rows named come out right */
	LAB_CHOSEN,    /* by who runs it: lab_profile_set */
};

struct lab_constant_info {
	const char *key;
	const char *meaning;
	enum lab_unit unit;
	bool scales; /* with the CPU's clock */
};

extern const struct lab_constant_info lab_constant_info[LAB_CONSTANT_COUNT];
const char *lab_kind_name(enum lab_kind kind);

struct lab_constant {
	uint64_t value; /* ps, bytes, bit/s or a number */
	enum lab_kind kind;
	char *source;
	char **rows; /* of a published table, if fitted */
	unsigned n_rows;
};

struct lab_profile {
	char *name, *title;
	uint64_t cpu_hz;
	struct lab_constant constant[LAB_CONSTANT_COUNT];
	struct lab_constant cache_miss[LAB_CACHE_LEVELS_MAX]; /* of machine.cache.level[] */
	char *cache_name[LAB_CACHE_LEVELS_MAX];
	struct lab_machine machine; /* ready for lab_exec_create; machine.cpus as the file says */
	struct lab_pci_config pci;  /* ready for lab_pci_create */
};

/* `name` is that of a profile (lab_data_find) or a path. Errors name file, line and column. */
int lab_profile_load(const char *name, struct lab_profile **out, struct ho_err *err);
/* From memory: `file` stands for it in messages. */
int lab_profile_parse(const char *file, const char *text, size_t bytes, struct lab_profile **out,
		      struct ho_err *err);
/* NULL is allowed. */
void lab_profile_free(struct lab_profile *profile);

/* Changes a constant, in the file's unit: "irq_entry_ns", "250.5". Also "cpu_hz" (nothing is
 * scaled) and "NAME_miss_ns" of a cache. -EINVAL for an unknown key or a bad value. */
int lab_profile_set(struct lab_profile *profile, const char *key, const char *value,
		    struct ho_err *err);

/* Fitted constants, caches included: how many, and so how many rows a fit may claim. */
unsigned lab_profile_fitted(const struct lab_profile *profile);

#endif
