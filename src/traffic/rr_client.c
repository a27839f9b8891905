// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/rr.h"
#include "traffic/rxwait.h"

#define OWNERS 65536u /* a power of two, far above what is outstanding */

enum state {
	FREE,    /* in the queue of those that may begin a transaction */
	WAITING, /* for a reply */
};

/* A place for one transaction. */
struct place {
	enum state state;
	unsigned tries;    /* requests sent so far */
	uint32_t sequence; /* of the last one */
	uint64_t begin_ns; /* first request */
	uint64_t due_ns;   /* WAITING: give up the request; FREE: may begin */
};

struct tr_rr_client {
	struct tr_rr_client_config config;
	struct tr_stop stop;
	struct rt_machine_clock clock;
	struct tr_rr_client_stats stats;
	struct ho_hist latency_ns;
	uint64_t first_ns, last_ns;
	uint64_t begun;        /* transactions */
	uint64_t next_look_ns; /* at the timeouts */
	unsigned waiting;
	bool finishing;  /* atomic */
	bool quiesced;   /* atomic */
	uint16_t stream; /* that the source stamps; learned from its frames */
	/* Free places in the order in which they may begin: think time is the same for all. */
	uint16_t *queue;
	unsigned head, n_free;
	/* Which place a request's number belongs to, if that place says so too. */
	uint16_t owner[OWNERS];
	struct place place[];
};

int tr_rr_client_create(const struct tr_rr_client_config *config, struct tr_rr_client **out,
			struct ho_err *err)
{
	struct tr_rr_client *c = calloc(1, sizeof(*c) + config->outstanding * sizeof(c->place[0]));
	int rc;

	if (!c)
		return ho_err_set(err, -ENOMEM, "out of memory for a client");
	c->config = *config;
	c->queue = calloc(config->outstanding, sizeof(c->queue[0]));
	if (!c->queue) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for a client");
		goto free_client;
	}
	for (unsigned i = 0; i < config->outstanding; i++)
		c->queue[i] = (uint16_t)i;
	c->n_free = config->outstanding;
	rc = tr_stop_init(&c->stop, config->rt, err);
	if (rc < 0)
		goto free_client;
	rt_machine_clock_init(&c->clock, config->rt);
	ho_hist_init(&c->latency_ns);
	*out = c;
	return 0;
free_client:
	free(c->queue);
	free(c);
	return rc;
}

void tr_rr_client_destroy(struct tr_rr_client *client)
{
	if (!client)
		return;
	tr_stop_fini(&client->stop);
	free(client->queue);
	free(client);
}

static void put_free(struct tr_rr_client *c, unsigned at, uint64_t may_begin_ns)
{
	c->place[at].state = FREE;
	c->place[at].due_ns = may_begin_ns;
	c->queue[(c->head + c->n_free++) % c->config.outstanding] = (uint16_t)at;
	c->waiting--;
}

/* A transaction is complete, or given up. */
static void take_reply(struct tr_rr_client *c, const struct tr_stamp *stamp, uint64_t now)
{
	unsigned at = c->owner[stamp->sequence % OWNERS];
	struct place *p = &c->place[at];

	ho_ctr_add(&c->stats.replies, 1);
	if (p->state != WAITING || p->sequence != stamp->sequence) {
		ho_ctr_add(&c->stats.late, 1);
		return;
	}
	ho_hist_add(&c->latency_ns, now - p->begin_ns);
	ho_ctr_add(&c->stats.latency_sum, now - p->begin_ns);
	ho_ctr_add(&c->stats.transactions, 1);
	c->last_ns = now;
	put_free(c, at, now + c->config.think_ns);
}

static unsigned receive(struct tr_rr_client *c)
{
	const struct pk_arena *arena = c->config.rxq->arena;
	struct pk_slot slots[PK_BURST];
	unsigned n = port_rx(c->config.rxq, slots, PK_BURST);
	uint64_t now = rt_now_ns(c->config.rt);

	rt_spend(c->config.rt, RT_COST_POLL, 1);
	for (unsigned i = 0, used; i < n; i += used) {
		const struct pk_slot *last;
		struct tr_stamp stamp;

		used = pk_frame_slots(slots + i, n - i);
		last = &slots[i + used - 1];
		if (last->len >= TR_STAMP_BYTES &&
		    tr_stamp_read(pk_data(arena, last) + last->len - TR_STAMP_BYTES, &stamp) &&
		    stamp.stream == (c->stream | TR_RR_REPLY))
			take_reply(c, &stamp, now);
		else
			ho_ctr_add(&c->stats.others, 1);
	}
	rt_spend(c->config.rt, RT_COST_RECV_FRAME, n);
	pk_free_slots(c->config.rxq->cache, slots, n);
	return n;
}

/*
 * Sends the next frames of the source as requests of the places at[0..n). Returns how many were
 * taken by the port.
 */
static unsigned request(struct tr_rr_client *c, const uint16_t *at, unsigned n, uint64_t now)
{
	const struct pk_arena *arena = c->config.txq->arena;
	struct pk_slot slots[PK_BURST];
	unsigned built = 0, sent_slots, sent = 0;
	unsigned used = tr_source_next(c->config.source, c->config.txq->cache,
				       rt_machine_ns(&c->clock, now), slots, PK_BURST, n, &built);

	if (!used)
		return 0;
	rt_spend(c->config.rt, RT_COST_GEN_FRAME, built);
	/* The numbers are read before the port takes the frames away. */
	uint32_t sequence[PK_BURST];
	for (unsigned i = 0, k = 0; i < used; k++) {
		unsigned frame = pk_frame_slots(slots + i, used - i);
		const struct pk_slot *last = &slots[i + frame - 1];
		struct tr_stamp stamp = { 0 };

		tr_stamp_read(pk_data(arena, last) + last->len - TR_STAMP_BYTES, &stamp);
		sequence[k] = stamp.sequence;
		c->stream = stamp.stream;
		i += frame;
	}
	sent_slots = port_tx(c->config.txq, slots, used);
	for (unsigned i = 0; i < sent_slots; i++)
		sent += !(slots[i].flags & PK_MORE);
	if (sent < built) {
		tr_source_unsend(c->config.source, built - sent);
		pk_free_slots(c->config.txq->cache, slots + sent_slots, used - sent_slots);
	}
	rt_spend(c->config.rt, RT_COST_TX_FRAME, sent);
	for (unsigned k = 0; k < sent; k++) {
		struct place *p = &c->place[at[k]];

		if (p->state != WAITING) {
			p->state = WAITING;
			p->begin_ns = now;
			p->tries = 0;
			c->waiting++;
			c->begun++;
		} else {
			ho_ctr_add(&c->stats.retries, 1);
		}
		p->tries++;
		p->sequence = sequence[k];
		p->due_ns = now + c->config.timeout_ns;
		c->owner[sequence[k] % OWNERS] = at[k];
	}
	ho_ctr_add(&c->stats.requests, sent);
	if (sent && !c->first_ns)
		c->first_ns = now;
	return sent;
}

/* May a new transaction begin? */
static bool open_for_more(const struct tr_rr_client *c, uint64_t now)
{
	return !__atomic_load_n(&c->finishing, __ATOMIC_RELAXED) && now < c->config.end_ns &&
	       (!c->config.count || c->begun < c->config.count);
}

/* Begins transactions in the places whose think time is over. */
static unsigned begin_some(struct tr_rr_client *c, uint64_t now)
{
	unsigned n = 0, sent;
	uint16_t at[PK_BURST];
	uint64_t left = c->config.count ? c->config.count - c->begun : UINT64_MAX;

	while (n < c->n_free && n < PK_BURST && n < left) {
		at[n] = c->queue[(c->head + n) % c->config.outstanding];
		if (c->place[at[n]].due_ns > now)
			break;
		n++;
	}
	if (!n)
		return 0;
	sent = request(c, at, n, now);
	c->head = (c->head + sent) % c->config.outstanding;
	c->n_free -= sent;
	return sent;
}

/* Looks for requests that were not answered in time: sends them anew or gives up. */
static void look_at_timeouts(struct tr_rr_client *c, uint64_t now)
{
	c->next_look_ns = now + c->config.timeout_ns / 8 + 1;
	if (!c->waiting)
		return;
	for (unsigned i = 0; i < c->config.outstanding; i++) {
		struct place *p = &c->place[i];
		uint16_t at = (uint16_t)i;

		if (p->state != WAITING || p->due_ns > now)
			continue;
		if (p->tries < c->config.tries) {
			request(c, &at, 1, now);
			continue;
		}
		ho_ctr_add(&c->stats.failed, 1);
		put_free(c, i, now + c->config.think_ns);
	}
}

/* When something is to be done although nothing arrives. */
static uint64_t next_deadline(const struct tr_rr_client *c, uint64_t now)
{
	uint64_t at = c->waiting ? c->next_look_ns : RT_FOREVER;

	if (c->n_free && open_for_more(c, now))
		at = HO_MIN(at, c->place[c->queue[c->head]].due_ns);
	/* At the end time it may be that there is nothing more to wait for. */
	return c->quiesced || now >= c->config.end_ns ? at : HO_MIN(at, c->config.end_ns);
}

void tr_rr_client_run(void *arg)
{
	struct tr_rr_client *c = arg;
	struct rt *rt = c->config.rt;
	const uint64_t spin_ns = c->config.block ? 0 : TR_RX_SPIN_NS;
	uint64_t idle_since = 0;

	while (!tr_stop_asked(&c->stop)) {
		unsigned moved = receive(c);
		uint64_t now = rt_now_ns(rt), deadline;

		if (now >= c->next_look_ns)
			look_at_timeouts(c, now);
		if (open_for_more(c, now))
			moved += begin_some(c, now);
		else if (!c->waiting && !c->quiesced) {
			__atomic_store_n(&c->quiesced, true, __ATOMIC_RELEASE);
			if (c->config.done_event)
				rt_event_signal(rt, c->config.done_event);
		}
		if (moved) {
			idle_since = 0;
			continue;
		}
		port_reap(c->config.txq);
		idle_since = idle_since ? idle_since : now;
		deadline = next_deadline(c, now);
		/* A wake-up is late by as much as we spin: short waits are spun. */
		if (now - idle_since < spin_ns || deadline < now + spin_ns)
			rt_relax(rt);
		else
			tr_rx_wait(&c->stop, &c->config.rxq, 1,
				   deadline == RT_FOREVER ? deadline : deadline - spin_ns);
	}
	__atomic_store_n(&c->quiesced, true, __ATOMIC_RELEASE);
}

void tr_rr_client_finish(struct tr_rr_client *client)
{
	__atomic_store_n(&client->finishing, true, __ATOMIC_RELAXED);
	rt_event_signal(client->config.rt, client->stop.event);
}

bool tr_rr_client_quiesced(const struct tr_rr_client *client)
{
	return __atomic_load_n(&client->quiesced, __ATOMIC_ACQUIRE);
}

void tr_rr_client_stop(struct tr_rr_client *client)
{
	tr_stop_ask(&client->stop);
}

void tr_rr_client_stats(const struct tr_rr_client *client, struct tr_rr_client_stats *out)
{
	const struct tr_rr_client_stats *s = &client->stats;

	out->requests = ho_ctr_read(&s->requests);
	out->replies = ho_ctr_read(&s->replies);
	out->transactions = ho_ctr_read(&s->transactions);
	out->latency_sum = ho_ctr_read(&s->latency_sum);
	out->retries = ho_ctr_read(&s->retries);
	out->late = ho_ctr_read(&s->late);
	out->failed = ho_ctr_read(&s->failed);
	out->others = ho_ctr_read(&s->others);
}

struct ho_hist *tr_rr_client_histogram(struct tr_rr_client *client)
{
	return &client->latency_ns;
}

const struct ho_hist *tr_rr_client_latency(const struct tr_rr_client *client)
{
	return &client->latency_ns;
}

uint64_t tr_rr_client_elapsed(const struct tr_rr_client *client)
{
	return client->last_ns > client->first_ns ? client->last_ns - client->first_ns : 0;
}
