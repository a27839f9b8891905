/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run is made of while it exists. stage.c builds and takes down hosts, chips and wires,
 * work.c the workloads; run.c measures.
 */
#ifndef HOLDOFF_LAB_STAGE_H
#define HOLDOFF_LAB_STAGE_H

#include "lab/bus.h"
#include "lab/fault.h"
#include "lab/pci.h"
#include "lab/run.h"
#include "lab/socket.h"
#include "lab/store.h"
#include "lab/wire.h"
#include "mac/rxmode.h"
#include "mac/txshare.h"
#include "traffic/pktgen.h"
#include "traffic/receiver.h"
#include "traffic/rr.h"
#include "traffic/sender.h"
#include "traffic/spec.h"

#define LAB_STAGE_QUEUES LAB_RUN_QUEUES

struct lab_stage;
struct lab_stage_chip;

/* Where the frames of a queue pair go that no workload receives. */
struct lab_stage_sink {
	struct rt *rt;
	uint64_t frames, bytes;
	struct lab_socket *socket; /* they go there; NULL = they are counted and freed */
};

struct lab_stage_chip {
	const struct lab_chip_spec *spec;
	struct lab_stage_host *host;
	unsigned index; /* in its host's spec */
	struct lab_pci *pci;
	struct lab_chip *chip;
	struct nic_bus *bus;
	struct port *port;
	struct lab_wire *wire; /* NULL: no cable */
	unsigned end;
	unsigned queues;
	uint32_t rx_ring, tx_ring, rx_usecs;
	struct mac_rx *rx[LAB_STAGE_QUEUES]; /* NULL where a receiver polls by itself */
	struct mac_bql bql[LAB_STAGE_QUEUES];
	struct mac_txshare share[LAB_STAGE_QUEUES]; /* for the senders of the queue */
	struct lab_socket *socket; /* of the workload that receives through the stack; NULL */
	struct lab_stage_sink sink[LAB_STAGE_QUEUES];
	/* of those: the receiver's, and that of who cleans */
	struct pk_cache *receiver_cache[LAB_STAGE_QUEUES], *clean_cache[LAB_STAGE_QUEUES];
	bool faulty; /* something goes wrong in the chip on purpose */
	struct lab_fault_config fault_config;
	struct lab_fault fault;
	uint64_t seen_done; /* of lab_stage_watch: frames sent and received, and since when */
	sim_ps seen_at, longest_stall;
};

struct lab_stage_host {
	const struct lab_host_spec *spec;
	unsigned index;
	struct rt *rt;
	struct pk_arena *arena;
	void *memory; /* the arena's */
	size_t memory_bytes;
};

struct lab_stage_work {
	const struct lab_workload_spec *spec;
	struct lab_stage_host *host;
	struct lab_stage_chip *chip;
	unsigned chip_index; /* in the stage */
	/* one of these, by kind */
	struct tr_pktgen *pktgen;
	struct tr_sender *sender;
	struct mac_txseat *seat;
	struct tr_receiver *receiver;
	struct tr_rr_client *client;
	struct tr_rr_server *server;
	struct lab_socket *socket; /* the chip's, or of a sender alone */
	bool own_socket;
	/* and what the engine's sender needs */
	struct tr_spec *frames;
	struct tr_source *source;
	struct pk_cache *cache;
	struct ho_hist *drain_ns; /* of its frames: until the driver has their descriptors back */
	struct rt_task *task;
	uint32_t frame_bytes;
	bool stamps; /* a sender's frames carry number and time */
};

/* What a caller does itself instead of the scenario's workloads (lab/live.h). */
struct lab_stage_take {
	bool tx, rx; /* sends from all queues of tx_end, receives from all of rx_end */
	struct lab_wire_end tx_end, rx_end;
	uint32_t spare_buffers; /* of a host, beside what its rings hold; 0 = default */
};

struct lab_stage {
	const struct lab_scenario *scenario;
	struct lab_stage_take take;
	struct sim *sim;
	struct lab_store *store; /* set before lab_stage_build; NULL = nothing is kept */
	struct lab_trace *trace;
	unsigned n_hosts, n_wires, n_chips, n_work;
	struct lab_stage_host host[LAB_RUN_HOSTS];
	struct lab_wire *wire[LAB_RUN_CHIPS];
	struct lab_stage_chip chip[LAB_RUN_CHIPS];
	struct lab_stage_work work[LAB_RUN_WORKLOADS];
	struct sim_event watch;
};

/* Adds to a port's drops what only the lab can see: frames lost on a dead link, or in a chip that
 * was reset or not yet started. Frames that a reset gave up in the ring, but that had left the
 * chip, are taken off: they are not lost. A chip that cuts frames into segments sends more than it
 * was given, so there the second kind stays. */
void lab_stage_tx_losses(const struct lab_stage_chip *c, uint64_t *drops);
void lab_stage_rx_losses(const struct lab_stage_chip *c, uint64_t *drops);

/* Builds everything up to started ports and, with links up, running workloads, without those that
 * `take` takes over (NULL = none). On failure what was built is still to be taken down. */
int lab_stage_build(struct lab_stage *stage, const struct lab_scenario *scenario,
		    const struct lab_stage_take *take, struct lab_trace *trace, struct ho_err *err);
/* Ends the senders and lets what they sent arrive, as far as anybody takes it. */
void lab_stage_quiesce(struct lab_stage *stage);
/* Ends workloads and rx-modes and lets what is in flight come to rest: counters are final. */
void lab_stage_stop(struct lab_stage *stage);
/* From now on a look every LAB_STAGE_WATCH at how long a chip with frames in its transmit rings has
 * brought nothing to an end. */
#define LAB_STAGE_WATCH (50 * SIM_PS_PER_US)
void lab_stage_watch(struct lab_stage *stage);
/* Frees all; accepts a stage that was built in part. */
void lab_stage_free(struct lab_stage *stage);

/* A parameter as a number; `otherwise` if it is not given. -EINVAL when it is no number. */
int lab_stage_param(const struct lab_params *params, const char *name, uint64_t otherwise,
		    uint32_t *out, struct ho_err *err);
/* A parameter that is a time with unit; 0 if it is not given. */
int lab_stage_time(const struct lab_params *params, const char *name, uint64_t *ns,
		   struct ho_err *err);

/* What must hold at the end of any run, after lab_stage_stop (check.c): 0, or -EPROTO. */
int lab_stage_check(struct lab_stage *stage, struct ho_err *err);
/* The same at any moment: each CPU's times sum to the time passed. */
int lab_stage_check_cpus(const struct lab_stage *stage, struct ho_err *err);
/* The port's own counter of that name; 0 if there is none. */
uint64_t lab_stage_stat(struct port *port, const char *name);

/* Workloads (work.c). */
int lab_work_create(struct lab_stage *stage, struct lab_stage_work *work, struct ho_err *err);
int lab_work_start(struct lab_stage_work *work, struct ho_err *err);
/* Asks its task to end; lab_work_stop waits for it as well. */
void lab_work_ask(struct lab_stage_work *work);
void lab_work_stop(struct lab_stage_work *work);
void lab_work_free(struct lab_stage_work *work);
/* A client begins no more transactions, and has none left. */
void lab_work_finish(struct lab_stage_work *work);
bool lab_work_finished(const struct lab_stage_work *work);
/* A sender that cleans its queue itself and has ended still takes back what it sent. */
void lab_work_reap(struct lab_stage_work *work);
/* Does a workload of the scenario take the received frames of this pair itself? */
bool lab_work_receives(const struct lab_scenario *scenario, unsigned host, unsigned chip,
		       unsigned queue);
/* Does the stage's caller stand in for it? */
bool lab_work_taken(const struct lab_stage_take *take, unsigned host,
		    const struct lab_workload_spec *work);
/* The workload that receives through the chip's protocol stack, whatever the queue; NULL if there
 * is none. */
const struct lab_workload_spec *lab_work_of_socket(const struct lab_scenario *scenario,
						   unsigned host, unsigned chip);
/* Makes the socket of a workload that has one (param via: socket); the queue's share is ready. */
int lab_work_socket(struct lab_stage_chip *chip, const struct lab_workload_spec *spec,
		    struct lab_socket **out, struct ho_err *err);
/* Frames, bytes and waiting time since its start. */
struct lab_work_counts {
	uint64_t packets, bytes, waiting_ns;
	uint64_t transactions, latency_sum_ns; /* of an rr client */
};
struct lab_work_counts lab_work_counts(const struct lab_stage_work *work);

#endif
