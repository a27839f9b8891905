// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/forwarder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/rxwait.h"

int tr_forwarder_create(const struct tr_forwarder_config *config, struct tr_forwarder **out,
			struct ho_err *err)
{
	struct tr_forwarder *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return ho_err_set(err, -ENOMEM, "out of memory for a forwarder");
	f->config = *config;
	ho_hist_init(&f->full_turn_ticks);
	rc = tr_stop_init(&f->stop, config->rt, err);
	if (rc < 0) {
		free(f);
		return rc;
	}
	*out = f;
	return 0;
}

void tr_forwarder_destroy(struct tr_forwarder *forwarder)
{
	if (!forwarder)
		return;
	tr_stop_fini(&forwarder->stop);
	free(forwarder);
}

/* A direction at work. */
struct held {
	const struct tr_forward_path *path;
	unsigned n; /* slots of the burst in hand */
	/* The new addresses, as they are stored. */
	uint64_t mac_low;
	uint32_t mac_high;
	struct pk_slot slot[PK_BURST];
};

static inline void rewrite(uint8_t *data, enum tr_forward_mode mode, const struct held *h)
{
	uint64_t low;
	uint32_t high;

	if (mode == TR_FORWARD_MAC) {
		memcpy(data, &h->mac_low, sizeof(low));
		memcpy(data + 8, &h->mac_high, sizeof(high));
	} else if (mode == TR_FORWARD_MACSWAP) {
		/* 12 bytes as a 64-bit and a 32-bit word: the second address goes first. */
		memcpy(&low, data, sizeof(low));
		memcpy(&high, data + 8, sizeof(high));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		uint64_t new_low = low << 48 | (uint64_t)high << 16 | low >> 48;
		uint32_t new_high = (uint32_t)(low >> 16);
#else
#error "the exchange of addresses is written for little-endian CPUs"
#endif
		memcpy(data, &new_low, sizeof(new_low));
		memcpy(data + 8, &new_high, sizeof(new_high));
	}
}

/*
 * All frames of a burst; only a frame's first slot has addresses. Nothing is prefetched: the stores
 * of a burst do not wait for one another, and asking for the lines first cost more than it saved,
 * in a cache (6.9 cycles a packet against 4.4) and out of it.
 */
static inline void rewrite_all(struct held *h, enum tr_forward_mode mode)
{
	uint8_t *const base = h->path->rxq->arena->base;
	const size_t stride = h->path->rxq->arena->stride_bytes;
	bool inside = false;

	if (mode == TR_FORWARD_IO)
		return;
	for (unsigned i = 0; i < h->n; i++) {
		if (ho_likely(!inside))
			rewrite(base + h->slot[i].buf * stride + h->slot[i].off, mode, h);
		inside = h->slot[i].flags & PK_MORE;
	}
}

static inline void transmit(struct held *h, enum tr_forward_mode mode)
{
	struct port_txq *txq = h->path->txq;
	unsigned sent;

	rewrite_all(h, mode);
	sent = port_tx(txq, h->slot, h->n);
	if (ho_unlikely(sent < h->n)) {
		port_reap(txq);
		sent += port_tx(txq, h->slot + sent, h->n - sent);
		if (sent < h->n)
			port_tx_discard(txq, h->slot + sent, h->n - sent, PORT_DROP_TX_RING_FULL);
	}
}

/* Of the burst in hand, keeps as many frames as are still wanted. */
static void apply_count(struct tr_forwarder *f, struct held *h)
{
	struct pk_cache *cache = h->path->rxq->cache;
	uint64_t frames = 0, before, wanted;
	unsigned end = 0;

	for (unsigned i = 0; i < h->n; i++)
		frames += !(h->slot[i].flags & PK_MORE);
	before = __atomic_fetch_add(f->config.shared_count, frames, __ATOMIC_RELAXED);
	wanted = before < f->config.count ? f->config.count - before : 0;
	if (frames <= wanted)
		return;
	for (uint64_t k = 0; k < wanted; k++)
		end += pk_frame_slots(h->slot + end, h->n - end);
	pk_free_slots(cache, h->slot + end, h->n - end);
	ho_ctr_add(&f->unwanted, frames - wanted);
	h->n = end;
}

static bool count_reached(const struct tr_forwarder *f)
{
	return f->config.count &&
	       __atomic_load_n(f->config.shared_count, __ATOMIC_RELAXED) >= f->config.count;
}

/* Both directions once. Returns the slots received. */
static inline unsigned turn(struct tr_forwarder *f, struct held *h, enum tr_forward_mode mode)
{
	unsigned got = 0;

	for (unsigned i = 0; i < 2; i++) {
		if (!h[i].path->rxq)
			continue;
		h[i].n = port_rx(h[i].path->rxq, h[i].slot, PK_BURST);
		got += h[i].n;
		if (ho_unlikely(f->config.count))
			apply_count(f, &h[i]);
		if (h[i].n)
			transmit(&h[i], mode);
	}
	return got;
}

/* What the CPU's counter has advanced since *then; on the virtual clock it means nothing. */
static inline uint64_t ticks_since(const struct rt *rt, uint64_t *then)
{
	uint64_t now = rt->is_virtual ? 0 : rt_tsc_read(), ticks = now - *then;

	*then = now;
	return ticks;
}

/* The loop, once for each mode so that the mode costs nothing in it. */
static inline void run(struct tr_forwarder *f, struct held *h, const enum tr_forward_mode mode)
{
	struct rt *rt = f->config.rt;
	struct port_rxq *rxq[2];
	unsigned n_rxq = 0;
	uint64_t idle_since = 0, then = 0;

	ticks_since(rt, &then);
	for (unsigned i = 0; i < 2; i++) {
		if (f->config.path[i].rxq)
			rxq[n_rxq++] = f->config.path[i].rxq;
	}
	for (;;) {
		unsigned got = turn(f, h, mode);
		uint64_t ticks = ticks_since(rt, &then), now;

		rt_spend(rt, RT_COST_POLL, 1);
		rt_spend(rt, RT_COST_TX_FRAME, got);
		if (ho_likely(got)) {
			ho_ctr_add(&f->turns, 1);
			ho_ctr_add(&f->busy_ticks, ticks);
			if (got == 2 * PK_BURST)
				ho_hist_add(&f->full_turn_ticks, ticks);
			idle_since = 0;
			if (ho_unlikely(tr_stop_asked(&f->stop)) || count_reached(f) ||
			    (f->config.end_ns != RT_FOREVER && rt_now_ns(rt) >= f->config.end_ns))
				break;
			continue;
		}
		ho_ctr_add(&f->idle_ticks, ticks);
		for (unsigned i = 0; i < 2; i++) {
			if (f->config.path[i].txq)
				port_reap(f->config.path[i].txq);
		}
		now = rt_now_ns(rt);
		if (tr_stop_asked(&f->stop) || now >= f->config.end_ns || count_reached(f) ||
		    tr_rx_ended(rxq, n_rxq))
			break;
		idle_since = idle_since ? idle_since : now;
		if (now - idle_since < TR_RX_SPIN_NS) {
			rt_relax(rt);
		} else if (tr_rx_wait(&f->stop, rxq, n_rxq, f->config.end_ns)) {
			ho_ctr_add(&f->sleeps, 1);
			ticks_since(rt, &then);
		}
	}
}

void tr_forwarder_run(void *arg)
{
	struct tr_forwarder *f = arg;
	struct held held[2] = { { .path = &f->config.path[0] }, { .path = &f->config.path[1] } };

	for (unsigned i = 0; i < 2; i++) {
		uint8_t both[12];

		memcpy(both, f->config.path[i].dst, 6);
		memcpy(both + 6, f->config.path[i].src, 6);
		memcpy(&held[i].mac_low, both, sizeof(held[i].mac_low));
		memcpy(&held[i].mac_high, both + 8, sizeof(held[i].mac_high));
	}
	switch (f->config.mode) {
	case TR_FORWARD_IO:
		run(f, held, TR_FORWARD_IO);
		break;
	case TR_FORWARD_MAC:
		run(f, held, TR_FORWARD_MAC);
		break;
	case TR_FORWARD_MACSWAP:
		run(f, held, TR_FORWARD_MACSWAP);
		break;
	}
	__atomic_store_n(&f->done, true, __ATOMIC_RELEASE);
	if (f->config.done_event)
		rt_event_signal(f->config.rt, f->config.done_event);
}
