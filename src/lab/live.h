/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario whose traffic is the caller's: hosts, chips, drivers, wires and all other workloads
 * are built as in lab/run.h, and instead of one sending port's senders, or one port's receivers, or
 * both ends of a wire, the caller's tasks stand there, on the hosts' executors.
 *
 *   sends      the port of the first workload that sends; its peer's receivers are the caller's too
 *   receives   the port of the first receiver, else the peer of the first sender
 *
 * The caller is outside of all tasks: its rt_wait, rt_join and rt_sleep_until run the clock.
 */
#ifndef HOLDOFF_LAB_LIVE_H
#define HOLDOFF_LAB_LIVE_H

#include "port/port.h"

struct lab_live_config {
	/* "SCENARIO[,KEY=VALUE...]": a name or path, then settings as `lab run --set` takes them;
	 * series=NAME; port=HOST.CHIP, the port to drive if it is not to be the first. */
	const char *target;
	bool sends;                        /* else it receives */
	unsigned queues, rx_ring, tx_ring; /* of the caller's ports; 0 = as in the scenario */
	uint64_t buffers;                  /* of each host, beside its rings; 0 = default */
};

struct lab_live;

/* Builds it, waits for links, starts the other workloads. -EINVAL, with file, line and column, for
 * what the scenario does not take. */
int lab_live_open(const struct lab_live_config *config, struct lab_live **out, struct ho_err *err);

/* The caller's ports, started; NULL if there is none. They are closed by lab_live_free. */
struct port *lab_live_tx(struct lab_live *live);
struct port *lab_live_rx(struct lab_live *live);

/*
 * Where to send on the port's queue i, and the cache for it. Not port->txq[i]: the scenario may
 * have a cleaner and a byte limit there. Counters are those of port->txq[i].
 */
struct port_txq *lab_live_txq(struct lab_live *live, unsigned i);
struct pk_cache *lab_live_tx_cache(struct lab_live *live, unsigned i);

/* On which CPU of the port's host the scenario has the task of queue i, or the next one to it. */
int lab_live_cpu(const struct lab_live *live, const struct port *port, unsigned i);

/* Of the scenario: how long to run if nobody says. */
uint64_t lab_live_duration_ns(const struct lab_live *live);
const char *lab_live_name(const struct lab_live *live);

/* Asks all tasks of all hosts to end, as rt_stop. */
void lab_live_interrupt(struct lab_live *live);

/* Waits up to timeout_ns until nothing is in flight on the caller's transmit queues. 0 or
 * -ETIMEDOUT. */
int lab_live_drain(struct lab_live *live, uint64_t timeout_ns);

/* Ends the scenario's own workloads and lets what they sent arrive; the caller may still receive.
 */
void lab_live_quiesce(struct lab_live *live);

/* The caller's tasks have ended: stops everything; counters are final. */
void lab_live_stop(struct lab_live *live);

/*
 * After the stop: what was lost between the caller's ports and no port counts, by a wire that was
 * down or a chip that was off, is added to drops[PORT_DROP_COUNT]; frames that a reset found in the
 * ring although they had left are taken off.
 */
void lab_live_losses(struct lab_live *live, uint64_t *drops);

/* After the stop: the invariants of lab/run.h, but for what the caller itself counts. 0 or -EPROTO.
 */
int lab_live_check(struct lab_live *live, struct ho_err *err);
uint64_t lab_live_digest(const struct lab_live *live);
/* Buffers of all hosts that did not come back. After the stop. */
uint32_t lab_live_buffers_missing(const struct lab_live *live);

/* Closes ports, frees all. NULL is allowed. */
void lab_live_free(struct lab_live *live);

#endif
