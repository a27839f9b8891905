// SPDX-License-Identifier: BSD-2-Clause
/* What must hold in any run, whatever stands in it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lab/i82599.h"
#include "lab/stage.h"

uint64_t lab_stage_stat(struct port *port, const char *name)
{
	struct port_stat stats[64];
	unsigned n = HO_MIN(port->ops->stats(port, stats, 64), 64u);

	for (unsigned i = 0; i < n; i++) {
		if (!strcmp(stats[i].name, name))
			return stats[i].value;
	}
	return 0;
}

int lab_stage_check_cpus(const struct lab_stage *stage, struct ho_err *err)
{
	for (unsigned h = 0; h < stage->n_hosts; h++) {
		const struct lab_machine *m = lab_exec_machine(stage->host[h].rt);

		for (unsigned c = 0; c < m->cpus; c++) {
			struct lab_cpu_stats s;
			sim_ps sum;

			lab_exec_cpu_stats(stage->host[h].rt, c, &s);
			sum = s.user + s.system + s.irq + s.softirq + s.idle;
			if (sum != sim_now(stage->sim))
				return ho_err_set(
					err, -EPROTO,
					"CPU %u of %s accounts for %" PRIu64 " ps of %" PRIu64, c,
					stage->host[h].spec->name, sum, sim_now(stage->sim));
		}
		if (lab_exec_deadlocked(stage->host[h].rt))
			return ho_err_set(err, -EPROTO, "all tasks of %s wait for ever",
					  stage->host[h].spec->name);
	}
	return 0;
}

/* Two counts of the same frames. */
static int same(const struct lab_stage_chip *c, const char *what, uint64_t a, const char *than,
		uint64_t b, struct ho_err *err)
{
	if (a == b)
		return 0;
	return ho_err_set(err, -EPROTO, "%s.%s: %s %" PRIu64 ", but %s %" PRIu64,
			  c->host->spec->name, c->spec->name, what, a, than, b);
}

/* The frames that a port's counters account for, in the order of the way. */
struct way {
	uint64_t offered;  /* by workloads */
	uint64_t accepted; /* by the port */
	uint64_t sent;
	uint64_t taken;          /* received by a user */
	uint64_t consumed;       /* as users count it */
	bool segmented;          /* frames on the wire are not those of the ring */
	bool tx_taken, rx_taken; /* the caller of the stage counts what it offers or takes */
};

/* Frames that a client or server without a socket took. */
static uint64_t rr_received(const struct lab_stage_work *work)
{
	struct tr_rr_client_stats s;

	if (work->server)
		return work->server->requests + work->server->others;
	if (!work->client)
		return 0;
	tr_rr_client_stats(work->client, &s);
	return s.replies + s.others;
}

static struct way count_way(const struct lab_stage *stage, const struct lab_stage_chip *c)
{
	struct way way = { 0 };

	for (unsigned q = 0; q < c->queues; q++) {
		way.accepted += c->port->txq[q]->accepted;
		way.sent += c->port->txq[q]->ctr.packets;
		way.taken += c->port->rxq[q]->ctr.packets;
		way.consumed += c->sink[q].frames;
	}
	way.tx_taken = stage->take.tx && stage->take.tx_end.host == c->host->index &&
		       stage->take.tx_end.chip == c->index;
	way.rx_taken = stage->take.rx && stage->take.rx_end.host == c->host->index &&
		       stage->take.rx_end.chip == c->index;
	for (unsigned w = 0; w < stage->n_work; w++) {
		const struct lab_stage_work *work = &stage->work[w];
		struct lab_work_counts n = lab_work_counts(work);

		if (work->chip != c)
			continue;
		/* What came through the stack is counted where the stack got it. */
		if (work->receiver && !work->socket)
			way.consumed += n.packets;
		else if (!work->receiver)
			way.offered += n.packets;
		if (!work->socket)
			way.consumed += rr_received(work);
		if (work->sender && lab_params_get(&work->spec->params, "tso"))
			way.segmented = true;
	}
	return way;
}

static uint64_t drop_sum(const struct lab_stage_chip *c, enum port_drop d)
{
	uint64_t n = 0;

	for (unsigned q = 0; q < c->queues; q++)
		n += c->port->txq[q]->ctr.drops[d] + c->port->rxq[q]->ctr.drops[d];
	return n;
}

static int check_way(const struct lab_stage *stage, const struct lab_stage_chip *c,
		     const struct lab_i82599_counters *n, struct ho_err *err)
{
	struct way way = count_way(stage, c);
	uint64_t given = way.taken + drop_sum(c, PORT_DROP_RX_CLOSED) +
			 drop_sum(c, PORT_DROP_RX_RESET) + drop_sum(c, PORT_DROP_RX_MALFORMED);
	int rc = 0;

	if (!way.tx_taken)
		rc = same(c, "workloads sent", way.offered, "the port took", way.accepted, err);
	if (rc == 0 && !way.rx_taken)
		rc = same(c, "users got", way.consumed, "the port gave", way.taken, err);
	/* A reset takes frames from between the chip's counting and the port's. */
	if (rc < 0 || c->faulty)
		return rc;
	if (!way.segmented)
		rc = same(c, "the port sent", way.sent, "its chip", n->tx_frames + n->tx_bad, err);
	if (rc == 0)
		rc = same(c, "the chip delivered", n->rx_delivered, "the port accounts for", given,
			  err);
	return rc;
}

/* Where nothing goes wrong on purpose, nobody may have had to be rescued. A caller that receives
 * may have ended before the others, and counts for itself what it leaves. */
static int check_calm(const struct lab_stage_chip *c, bool taken, struct ho_err *err)
{
	uint64_t closed = drop_sum(c, PORT_DROP_RX_CLOSED);
	uint64_t rearmed = lab_stage_stat(c->port, "irq_rearmed");
	uint64_t hangs = lab_stage_stat(c->port, "tx_timeout_count");

	if (rearmed || hangs)
		return ho_err_set(err, -EPROTO,
				  "%s.%s: an interrupt was lost: the watchdog set %" PRIu64
				  " off and reset the chip %" PRIu64 " times",
				  c->host->spec->name, c->spec->name, rearmed, hangs);
	if (closed && !taken)
		return ho_err_set(err, -EPROTO, "%s.%s: nobody took %" PRIu64 " received frames",
				  c->host->spec->name, c->spec->name, closed);
	return 0;
}

static bool any_fault(const struct lab_stage *stage)
{
	for (unsigned i = 0; i < stage->n_chips; i++)
		if (stage->chip[i].faulty)
			return true;
	return false;
}

/* After the stop: nothing is in flight, so all counts must agree. */
static int check_chip(const struct lab_stage *stage, const struct lab_stage_chip *c,
		      struct ho_err *err)
{
	struct lab_i82599_counters n;
	int rc;

	for (unsigned q = 0; q < c->queues; q++) {
		uint64_t left = port_tx_in_flight(c->port->txq[q]);
		uint64_t closed = c->port->txq[q]->ctr.drops[PORT_DROP_TX_CLOSED];

		if (left || (closed && !any_fault(stage)))
			return ho_err_set(err, -EPROTO,
					  "%s.%s queue %u: %" PRIu64
					  " frames neither sent nor dropped, %" PRIu64
					  " still there at the end",
					  c->host->spec->name, c->spec->name, q, left, closed);
	}
	if (c->socket && lab_socket_missing(c->socket))
		return ho_err_set(
			err, -EPROTO, "%s.%s: %" PRId64 " frames are missing in its socket",
			c->host->spec->name, c->spec->name, lab_socket_missing(c->socket));
	lab_i82599_counters(c->chip, &n);
	if (n.ownership)
		return ho_err_set(err, -EPROTO,
				  "%s.%s touched %" PRIu64 " descriptors that were not its own",
				  c->host->spec->name, c->spec->name, n.ownership);
	rc = c->chip->ops->check(c->chip, err);
	if (rc == 0)
		rc = check_way(stage, c, &n, err);
	if (rc == 0 && !any_fault(stage))
		rc = check_calm(c, stage->take.rx, err);
	return rc;
}

/* Each host's buffers, once everything that held some is closed. */
static int check_buffers(struct lab_stage *stage, struct ho_err *err)
{
	for (unsigned h = 0; h < stage->n_hosts; h++) {
		uint32_t missing = pk_arena_missing(stage->host[h].arena), held = 0;

		/* The port has given its rings back; pktgen's frame is its own until the end. */
		for (unsigned w = 0; w < stage->n_work; w++)
			held += stage->work[w].host == &stage->host[h] &&
				stage->work[w].pktgen != NULL;
		if (missing != held)
			return ho_err_set(err, -EPROTO, "%u packet buffers of %s are missing",
					  missing - held, stage->host[h].spec->name);
	}
	return 0;
}

int lab_stage_check(struct lab_stage *stage, struct ho_err *err)
{
	for (unsigned i = 0; i < stage->n_chips; i++) {
		int rc = check_chip(stage, &stage->chip[i], err);

		if (rc < 0)
			return rc;
	}
	for (unsigned w = 0; w < stage->n_wires; w++) {
		if (lab_wire_check(stage->wire[w], err) < 0)
			return -EPROTO;
	}
	return check_buffers(stage, err);
}
