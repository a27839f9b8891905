// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/sender.h"

#include <errno.h>
#include <stdlib.h>

/* While the ring is full and no end is near: turns between two looks at the clock. The lab can let
 * turns pass at once that do not look at it. */
#define CLOCK_TURNS 64
#define END_NEAR_NS 10000000u
/* While the ring is full: how often the link is looked at, and the longest sleep if it is down. */
#define LINK_LOOK_NS 1000000u
/* Turns with a full ring after which others may have the CPU: the receiver may need this one. */
#define PATIENCE_TURNS 64u

int tr_sender_create(const struct tr_sender_config *config, struct tr_sender **out,
		     struct ho_err *err)
{
	struct tr_sender *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return ho_err_set(err, -ENOMEM, "out of memory for a sender");
	s->config = *config;
	rc = tr_stop_init(&s->stop, config->rt, err);
	if (rc < 0)
		goto free_sender;
	rc = tr_pacer_init(&s->pacer, config->rt, &s->stop, &config->pace, config->mean_bytes, err);
	if (rc < 0)
		goto fini_stop;
	rt_machine_clock_init(&s->clock, config->rt);
	*out = s;
	return 0;
fini_stop:
	tr_stop_fini(&s->stop);
free_sender:
	free(s);
	return rc;
}

void tr_sender_destroy(struct tr_sender *sender)
{
	if (!sender)
		return;
	tr_stop_fini(&sender->stop);
	free(sender);
}

/* The frames that wait to be handed over: slot[at..n). */
struct batch {
	struct pk_slot slot[PK_BURST];
	unsigned at, n;
};

static unsigned frames_in(const struct pk_slot *slots, unsigned n)
{
	unsigned frames = 0;

	for (unsigned i = 0; i < n; i++)
		frames += !(slots[i].flags & PK_MORE);
	return frames;
}

static bool link_is_up(struct port *port)
{
	return !port->ops->link_up || port->ops->link_up(port);
}

/* Hands over what the ring has room for; counts it. */
static unsigned push(struct tr_sender *s, struct batch *b)
{
	unsigned sent = port_tx(s->config.txq, b->slot + b->at, b->n - b->at);
	unsigned frames = 0;
	uint64_t bytes = 0;

	for (unsigned i = b->at; i < b->at + sent; i++) {
		bytes += b->slot[i].len;
		frames += !(b->slot[i].flags & PK_MORE);
	}
	b->at += sent;
	ho_ctr_add(&s->offered, frames);
	ho_ctr_add(&s->bytes, bytes);
	rt_spend(s->config.rt, RT_COST_TX_FRAME, frames);
	return frames;
}

/* The ring is full: tries until everything is handed over. false when it is time to end. */
static bool push_rest(struct tr_sender *s, struct batch *b)
{
	struct rt *rt = s->config.rt;
	uint64_t began = rt_now_ns(rt), now = began, looked = began, down_since = 0;
	unsigned idle = 0, turn = 0;

	while (b->at < b->n) {
		if (tr_stop_asked(&s->stop) || now >= s->end_ns)
			break;
		if (port_reap(s->config.txq) == 0) {
			if (idle < PATIENCE_TURNS)
				rt_relax(rt);
			else
				rt_yield(rt);
		}
		idle = push(s, b) ? 0 : idle + 1;
		if (++turn % CLOCK_TURNS && s->end_ns - now > END_NEAR_NS)
			continue;
		now = rt_now_ns(rt);
		if (now - looked < LINK_LOOK_NS)
			continue;
		looked = now;
		if (link_is_up(s->config.txq->port)) {
			down_since = 0;
			continue;
		}
		down_since = down_since ? down_since : now;
		if (now - down_since >= TR_SENDER_LINK_NS) {
			s->link_lost = true;
			break;
		}
		rt_wait(rt, &s->stop.event, 1, now + LINK_LOOK_NS);
	}
	ho_ctr_add(&s->full_ns, rt_now_ns(rt) - began);
	return b->at == b->n;
}

/* Builds the next frames. False when there are none now; then *ended says whether ever again. */
static bool build(struct tr_sender *s, struct batch *b, unsigned frames, uint64_t now, bool *ended)
{
	struct tr_source *source = s->config.source;
	unsigned built = 0;

	b->at = 0;
	b->n = tr_source_next(source, s->config.cache, rt_machine_ns(&s->clock, now), b->slot,
			      PK_BURST, frames, &built);
	rt_spend(s->config.rt, RT_COST_GEN_FRAME, built);
	*ended = false;
	if (ho_likely(b->n))
		return true;
	if (tr_source_due_ns(source) == RT_FOREVER) {
		*ended = s->source_ended = true;
		return false;
	}
	ho_ctr_add(&s->pool_empty, 1);
	return false;
}

void tr_sender_run(void *arg)
{
	struct tr_sender *s = arg;
	struct rt *rt = s->config.rt;
	const bool timed = s->config.pace.timed;
	struct batch b;
	bool ended = false;

	/* A pace begins by itself; one as fast as possible would begin before the others' and have
	 * more than its time. */
	while (s->pacer.unpaced && rt_now_ns(rt) < s->config.start_ns && !tr_stop_asked(&s->stop))
		rt_relax(rt);
	s->first_ns = HO_MAX(s->config.start_ns, rt_now_ns(rt));
	s->end_ns = s->config.duration_ns ? s->first_ns + s->config.duration_ns : RT_FOREVER;
	tr_pacer_start(&s->pacer, s->first_ns);
	while (!ended) {
		uint64_t left = s->config.count ? s->config.count - s->offered : UINT64_MAX, now;
		unsigned frames;
		uint64_t before, bytes_before;

		if (!left)
			break;
		if (timed) {
			uint64_t due = tr_source_due_ns(s->config.source);

			if (due == RT_FOREVER) {
				s->source_ended = true;
				break;
			}
			tr_pacer_due_at(&s->pacer, due);
		}
		port_reap(s->config.txq);
		frames = tr_pacer_wait(&s->pacer, s->end_ns, &now);
		if (!frames)
			break;
		if (!build(s, &b, (unsigned)HO_MIN(left, (uint64_t)frames), now, &ended)) {
			rt_relax(rt);
			continue;
		}
		before = s->offered;
		bytes_before = s->bytes;
		push(s, &b);
		if (ho_unlikely(b.at < b.n) && !push_rest(s, &b)) {
			tr_source_unsend(s->config.source, frames_in(b.slot + b.at, b.n - b.at));
			pk_free_slots(s->config.cache, b.slot + b.at, b.n - b.at);
			ended = true;
		}
		tr_pacer_sent(&s->pacer, now, (unsigned)(s->offered - before),
			      s->bytes - bytes_before);
	}
	s->last_ns = rt_now_ns(rt);
	__atomic_store_n(&s->done, true, __ATOMIC_RELEASE);
	if (s->config.done_event)
		rt_event_signal(rt, s->config.done_event);
}
