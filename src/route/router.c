// SPDX-License-Identifier: BSD-2-Clause
#include "route/router.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "route/fast.h"
#include "route/worker.h"

#define ICMP_RATE  1000u /* a second; as Linux's icmp_msgs_per_sec */
#define ICMP_BURST 50u   /* as its icmp_msgs_burst */

struct ro_router {
	struct ro_router_config config;
	struct ro_port port[RO_PORTS_MAX];
	struct pk_flowhash hash;
	struct ro_order_queue *orders;
	uint64_t orders_lost;
	struct ro_worker **worker;
	unsigned workers;
};

static int make_worker(struct ro_router *r, unsigned i, struct ho_err *err)
{
	const struct ro_router_config *c = &r->config;
	uint64_t rate = c->icmp_rate ? c->icmp_rate : ICMP_RATE;
	struct ro_worker *w =
		aligned_alloc(HO_CACHE_LINE, HO_ALIGN_UP(sizeof(*w), (size_t)HO_CACHE_LINE));
	int rc;

	if (!w)
		return ho_err_set(err, -ENOMEM, "out of memory for a worker");
	memset(w, 0, sizeof(*w));
	r->worker[r->workers++] = w;
	w->view = ro_tables_view(c->tables);
	w->cache = c->cache[i];
	w->arena = w->cache->arena;
	w->rt = c->rt;
	w->router = r;
	w->index = i;
	w->ports = c->ports;
	w->own_stack = c->own_stack;
	w->to_host = c->to_host;
	w->to_host_arg = c->to_host_arg;
	w->slow_only = c->slow_only;
	w->hash = &r->hash;
	w->fast = ro_fast_choose();
	w->orders = i == 0 ? r->orders : NULL;
	w->count = c->count / c->workers + (i < c->count % c->workers);
	w->end_ns = c->end_ns;
	w->done_event = c->done_event;
	w->icmp_gap_ns = 1000000000u / rate;
	w->icmp_room_ns = w->icmp_gap_ns * (c->icmp_burst ? c->icmp_burst : ICMP_BURST);
	ho_hist_init(&w->full_turn_ticks);
	for (unsigned p = 0; p < c->ports; p++) {
		struct port *rx = r->port[p].rx, *tx = r->port[p].tx;

		w->rxq[p] = rx && i < rx->n_rxq ? rx->rxq[i] : NULL;
		w->txq[p] = tx && i < tx->n_txq ? tx->txq[i] : NULL;
		w->list[p] = w->txq[p] ? &w->out[p] : NULL;
		if (tx && !w->txq[p])
			return ho_err_set(err, -EINVAL,
					  "%s has %u transmit queues; %u workers need as many",
					  tx->name, tx->n_txq, c->workers);
	}
	w->wishes = ro_tables_queue(c->tables, i);
	if (!w->wishes)
		return ho_err_set(err, -ENOMEM, "out of memory for a worker's queue");
	rc = tr_stop_init(&w->stop, c->rt, err);
	return rc;
}

int ro_router_create(const struct ro_router_config *config, struct ro_router **out,
		     struct ho_err *err)
{
	struct ro_router *r;
	int rc = -ENOMEM;

	if (config->ports > RO_PORTS_MAX)
		return ho_err_set(err, -EINVAL, "%u ports: at most %d", config->ports,
				  RO_PORTS_MAX);
	r = calloc(1, sizeof(*r));
	if (!r)
		return ho_err_set(err, -ENOMEM, "out of memory for a router");
	r->config = *config;
	memcpy(r->port, config->port, config->ports * sizeof(r->port[0]));
	r->config.port = r->port;
	pk_flowhash_init(&r->hash, pk_flowhash_default_key);
	r->worker = calloc(config->workers, sizeof(struct ro_worker *));
	r->orders = aligned_alloc(HO_CACHE_LINE,
				  HO_ALIGN_UP(sizeof(*r->orders), (size_t)HO_CACHE_LINE));
	if (!r->worker || !r->orders) {
		ho_err_set(err, -ENOMEM, "out of memory for a router");
		goto fail;
	}
	port_spsc_init(&r->orders->idx, RO_ORDERS);
	for (unsigned i = 0; i < config->workers; i++) {
		rc = make_worker(r, i, err);
		if (rc < 0)
			goto fail;
	}
	*out = r;
	return 0;
fail:
	ro_router_destroy(r);
	return rc;
}

void ro_router_destroy(struct ro_router *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->workers; i++) {
		tr_stop_fini(&r->worker[i]->stop);
		free(r->worker[i]);
	}
	free(r->worker);
	free(r->orders);
	free(r);
}

struct ro_worker *ro_router_worker(struct ro_router *r, unsigned i)
{
	return r->worker[i];
}

void ro_router_stop(struct ro_router *r)
{
	for (unsigned i = 0; i < r->workers; i++)
		tr_stop_ask(&r->worker[i]->stop);
}

bool ro_router_done(const struct ro_router *r)
{
	for (unsigned i = 0; i < r->workers; i++) {
		if (!__atomic_load_n(&r->worker[i]->done, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

int ro_router_order(struct ro_router *r, const struct ro_order *order)
{
	struct ro_order_queue *q = r->orders;
	uint32_t head;

	if (!port_spsc_space(&q->idx, 1, &head)) {
		r->orders_lost++;
		return -ENOSPC;
	}
	q->order[head & q->idx.mask] = *order;
	port_spsc_put(&q->idx, 1);
	return 0;
}

/* --- counters ------------------------------------------------------------------------------- */

void ro_worker_counters(const struct ro_worker *w, struct ro_counters *out)
{
	const uint64_t *from = (const uint64_t *)&w->ctr;
	uint64_t *to = (uint64_t *)out;

	for (size_t i = 0; i < sizeof(*out) / sizeof(*to); i++)
		to[i] = ho_ctr_read(&from[i]);
}

void ro_router_counters(const struct ro_router *r, struct ro_counters *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned w = 0; w < r->workers; w++) {
		struct ro_counters one;

		ro_worker_counters(r->worker[w], &one);
		for (size_t i = 0; i < sizeof(one) / sizeof(uint64_t); i++)
			((uint64_t *)out)[i] += ((uint64_t *)&one)[i];
	}
	out->orders_lost = r->orders_lost;
}

double ro_router_full_turn_ticks(const struct ro_router *r)
{
	struct ho_hist all;

	ho_hist_init(&all);
	for (unsigned w = 0; w < r->workers; w++)
		ho_hist_merge(&all, &r->worker[w]->full_turn_ticks);
	return (double)ho_hist_quantile(&all, 0.5) / PK_BURST;
}

int ro_router_check(const struct ro_router *r, struct ho_err *err)
{
	struct ro_counters c;
	uint64_t in, out;

	ro_router_counters(r, &c);
	in = c.received + c.generated;
	out = c.sent + c.local + ro_drops_sum(c.drops);
	if (in == out)
		return 0;
	return ho_err_set(err, -EBADE,
			  "%" PRIu64 " packets received and %" PRIu64 " made, but %" PRIu64
			  " sent, %" PRIu64 " used and %" PRIu64 " dropped: %" PRId64
			  " without an explanation",
			  c.received, c.generated, c.sent, c.local, ro_drops_sum(c.drops),
			  (int64_t)(in - out));
}
