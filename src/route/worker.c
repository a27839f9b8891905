// SPDX-License-Identifier: BSD-2-Clause
/*
 * A worker's loop, and the fast path: a burst of one port is sorted, all its destinations are
 * looked up together, then each packet gets its new header. What does not fit the fast path is set
 * aside and goes through ro_slow afterwards.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>

#include "packet/csum.h"
#include "route/fib4.h"
#include "route/fib6.h"
#include "route/worker.h"
#include "traffic/rxwait.h"

/* Frames that are more than one plain buffer. */
#define NOT_PLAIN (PK_MORE | PK_TSO | PK_VLAN)
/* What stays of a frame's flags when it is sent on. */
#define FLAGS_KEPT (PK_MORE | PK_CSUM_OK | PK_CSUM_PARTIAL | PK_TSO)

#define MAC_MASK 0xffffffffffffu

/* Packets of a burst that the fast path takes, of one family. */
struct lane {
	unsigned n;
	uint8_t slot[PK_BURST]; /* which of the burst */
	uint8_t *ip[PK_BURST];
	uint32_t nh[PK_BURST];
};

static inline uint64_t load64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t load32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint16_t load16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* RFC 1812 5.2.2 and 5.3.7; whatever fails is looked at again, and named, by the slow path. */
static inline bool good4(const struct ro_view *v, const uint8_t *ip, uint32_t have)
{
	uint32_t src = load32(ip + 12);
	uint64_t sum;
	uint8_t high = ip[12];

	if (ho_unlikely(have < PK_IPV4_BYTES || ip[0] != 0x45 || ip[8] <= 1))
		return false;
	if (ho_unlikely((uint32_t)ntohs(load16(ip + 2)) - PK_IPV4_BYTES > have - PK_IPV4_BYTES))
		return false;
	sum = load64(ip) + (uint64_t)0;
	sum = (sum & 0xffffffff) + (sum >> 32) + load32(ip + 8) + src + load32(ip + 16);
	if (ho_unlikely(pk_csum_fold(sum) != 0xffff))
		return false;
	/* 0/8, 127/8, groups and above; 169.254/16 */
	if (ho_unlikely(high == 0 || high == 127 || high >= 224 || (high == 169 && ip[13] == 254)))
		return false;
	return !ro_own_maybe4(v, src);
}

static inline bool good6(const struct ro_view *v, const uint8_t *ip, uint32_t have)
{
	uint64_t src = load64(ip + 8);

	if (ho_unlikely(have < PK_IPV6_BYTES || ip[0] >> 4 != 6 || ip[6] == PK_IP_HOPOPTS ||
			ip[7] <= 1))
		return false;
	if (ho_unlikely((uint32_t)ntohs(load16(ip + 4)) + PK_IPV6_BYTES > have))
		return false;
	/* ::, ::1, mapped and such begin with zeros; groups and link-local with fe or ff. */
	if (ho_unlikely(src == 0 || ip[8] >= 0xfe))
		return false;
	return !ro_own_maybe6(v, ip + 8);
}

static inline void prefetch_headers(const struct ro_worker *w, const struct pk_slot *s, unsigned n)
{
	uint8_t *const base = w->arena->base;
	const size_t stride = w->arena->stride_bytes;

	for (unsigned i = 0; i < n; i++)
		ho_prefetchw(base + s[i].buf * stride + s[i].off);
}

/* Puts Ethernet in front: two overlapping words, or with a tag two that overlap by none. */
static inline void write_eth(uint8_t *ip, const struct ro_nh *nh, uint16_t type)
{
	uint64_t a = load64(nh->eth), b;

	if (ho_likely(nh->eth_bytes == PK_ETH_BYTES)) {
		uint32_t c = load32(nh->eth + 8);

		memcpy(ip - 14, &a, 8);
		memcpy(ip - 6, &c, 4);
	} else {
		b = load64(nh->eth + 8);
		memcpy(ip - 18, &a, 8);
		memcpy(ip - 10, &b, 8);
	}
	memcpy(ip - 2, &type, 2);
}

static inline struct pk_slot *out_slot(struct ro_worker *w, unsigned port)
{
	struct ro_out *out = &w->out[port];

	/* A burst finds room for all of it: see ro_worker_input. */
	w->touched |= 1ull << port;
	return &out->slot[out->n++];
}

static inline const struct ro_nh *path(const struct ro_worker *w, const struct ro_nh *nh,
				       const uint8_t *ip, uint32_t have, uint8_t family)
{
	const struct ro_ecmp *e = nh->ecmp;
	uint32_t h = ro_flow_hash(w->hash, ip, have, family);

	return ro_nh_at(w->view, e->nh[e->bucket[h % RO_ECMP_BUCKETS]]);
}

/* One packet of the fast path with its next hop; false: the slow path is to take it. */
static inline bool send_fast(struct ro_worker *w, const struct pk_slot *in, uint8_t *ip,
			     uint32_t number, const uint8_t family)
{
	const struct ro_nh *nh = ro_nh_at(w->view, number);
	uint16_t type = family == RO_IPV4 ? htobe16(PK_ETH_IPV4) : htobe16(PK_ETH_IPV6);
	uint8_t *l2 = pk_data(w->arena, in);
	uint32_t len = ntohs(load16(ip + (family == RO_IPV4 ? 2 : 4))), l2_bytes;
	struct pk_slot *s;

	if (family == RO_IPV6)
		len += PK_IPV6_BYTES;
	if (ho_unlikely(nh->kind == RO_NH_ECMP))
		nh = path(w, nh, ip, in->len - (uint32_t)(ip - l2), family);
	if (ho_unlikely(nh->kind != RO_NH_ETHER || len > nh->mtu))
		return false;
	l2_bytes = (uint32_t)(ip - l2);
	if (ho_unlikely(in->off + l2_bytes < nh->eth_bytes || !w->txq[nh->port]))
		return false;
	if (family == RO_IPV4) {
		/* One less in the low byte of a word of the header is one more in the checksum. */
		uint32_t sum = load16(ip + 10) + 1u;
		uint16_t csum = (uint16_t)(sum + (sum >= 0xffff));

		ip[8]--;
		memcpy(ip + 10, &csum, 2);
	} else {
		ip[7]--;
	}
	write_eth(ip, nh, type);
	s = out_slot(w, nh->port);
	s->buf = in->buf;
	s->off = (uint16_t)(in->off + l2_bytes - nh->eth_bytes);
	s->len = (uint16_t)(len + nh->eth_bytes);
	s->flags = in->flags & FLAGS_KEPT;
	s->vlan = 0;
	s->meta = in->meta;
	return true;
}

static inline void flush_full(struct ro_worker *w)
{
	for (uint64_t ports = w->touched; ports; ports &= ports - 1) {
		unsigned p = (unsigned)__builtin_ctzll(ports);

		if (w->out[p].n + PK_BURST > RO_OUT) {
			ro_flush(w);
			return;
		}
	}
}

struct burst {
	struct lane v4, v6;
	uint32_t dst4[PK_BURST];
	struct fib6_addr dst6[PK_BURST];
	unsigned slow;
	uint8_t slow_at[PK_BURST];
};

static inline void sort_in(struct ro_worker *w, unsigned port, const struct pk_slot *slots,
			   unsigned n, struct burst *b)
{
	const struct ro_view *v = w->view;
	struct ro_iface *const *row = RO_RCU_GET(v->by_vlan[port]);
	const struct ro_iface *untagged = row ? RO_RCU_GET(row[0]) : NULL;

	b->v4.n = b->v6.n = b->slow = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct pk_slot *s = &slots[i];
		uint8_t *d = pk_data(w->arena, s), *ip = d + PK_ETH_BYTES;
		const struct ro_iface *in = untagged;
		uint32_t have;
		uint16_t type;

		if (ho_unlikely(s->len < PK_ETH_BYTES + PK_IPV4_BYTES || s->flags & NOT_PLAIN))
			goto other;
		type = load16(d + 12);
		if (type == htobe16(PK_ETH_VLAN)) {
			unsigned vid = ntohs(load16(d + 14)) & PK_VLAN_ID;

			in = row ? RO_RCU_GET(row[vid]) : NULL;
			type = load16(d + 16);
			ip += PK_VLAN_BYTES;
		}
	tagged:
		if (ho_unlikely(!in || !in->up || (load64(d) & MAC_MASK) != in->mac_word))
			goto slow;
		have = s->len - (uint32_t)(ip - d);
		if (type == htobe16(PK_ETH_IPV4) && good4(v, ip, have)) {
			b->dst4[b->v4.n] = ntohl(load32(ip + 16));
			b->v4.slot[b->v4.n] = (uint8_t)i;
			b->v4.ip[b->v4.n++] = ip;
			continue;
		}
		if (type == htobe16(PK_ETH_IPV6) && good6(v, ip, have)) {
			memcpy(&b->dst6[b->v6.n], ip + 24, 16);
			b->v6.slot[b->v6.n] = (uint8_t)i;
			b->v6.ip[b->v6.n++] = ip;
			continue;
		}
		goto slow;
	other:
		if (s->len >= PK_ETH_BYTES + PK_IPV4_BYTES && (s->flags & NOT_PLAIN) == PK_VLAN) {
			in = row ? RO_RCU_GET(row[s->vlan & PK_VLAN_ID]) : NULL;
			type = load16(d + 12);
			if (type != htobe16(PK_ETH_VLAN))
				goto tagged;
		}
	slow:
		b->slow_at[b->slow++] = (uint8_t)i;
		/* The rest of its slots are not frames. */
		while (i + 1 < n && (slots[i].flags & PK_MORE))
			i++;
	}
}

static inline void send_lane(struct ro_worker *w, const struct pk_slot *slots, struct burst *b,
			     struct lane *lane, const uint8_t family)
{
	unsigned sent = 0;

	for (unsigned i = 0; i < lane->n; i++)
		ho_prefetch(ro_nh_at(w->view, lane->nh[i]));
	for (unsigned i = 0; i < lane->n; i++) {
		if (ho_likely(
			    send_fast(w, &slots[lane->slot[i]], lane->ip[i], lane->nh[i], family)))
			sent++;
		else
			b->slow_at[b->slow++] = lane->slot[i];
	}
	ho_ctr_add(&w->ctr.sent, sent);
	ho_ctr_add(&w->ctr.fast, sent);
}

/* Frames and bytes of a burst. */
static inline unsigned measure(const struct pk_slot *slots, unsigned n, uint64_t *bytes)
{
	unsigned more = 0;

	for (unsigned i = 0; i < n; i++) {
		*bytes += slots[i].len;
		more += slots[i].flags & PK_MORE;
	}
	return n - more;
}

void ro_worker_input(struct ro_worker *w, unsigned port, struct pk_slot *slots, unsigned n)
{
	struct burst b;
	uint64_t bytes = 0;
	unsigned frames = measure(slots, n, &bytes);

	ho_ctr_add(&w->ctr.received, frames);
	ho_ctr_add(&w->ctr.received_bytes, bytes);
	flush_full(w);
	if (ho_unlikely(w->slow_only)) {
		for (unsigned i = 0; i < n;) {
			unsigned k = pk_frame_slots(slots + i, n - i);

			ro_slow(w, port, slots + i, k);
			i += k;
		}
		return;
	}
	prefetch_headers(w, slots, n);
	sort_in(w, port, slots, n, &b);
	if (b.v4.n) {
		fib4_lookup_bulk(w->view->fib4, b.dst4, b.v4.nh, b.v4.n);
		send_lane(w, slots, &b, &b.v4, RO_IPV4);
	}
	if (b.v6.n) {
		fib6_lookup_bulk(w->view->fib6, b.dst6, b.v6.nh, b.v6.n);
		send_lane(w, slots, &b, &b.v6, RO_IPV6);
	}
	for (unsigned i = 0; ho_unlikely(i < b.slow); i++) {
		unsigned at = b.slow_at[i];

		ro_slow(w, port, slots + at, pk_frame_slots(slots + at, n - at));
	}
}

/* --- beside packets ------------------------------------------------------------------------- */

static void obey(struct ro_worker *w)
{
	struct ro_order_queue *q = w->orders;
	uint32_t tail;

	while (q && port_spsc_ready(&q->idx, 1, &tail)) {
		struct ro_order order = q->order[tail & q->idx.mask];

		port_spsc_take(&q->idx, 1);
		for (unsigned i = 0; i < RO_IFACES_MAX; i++) {
			const struct ro_iface *iface = ro_iface_at(w->view, i);

			if (!iface || iface->ifindex != order.ifindex)
				continue;
			if (order.addr.family == RO_IPV4)
				ro_arp_order(w, iface, &order);
			else
				ro_nd_order(w, iface, &order);
			break;
		}
	}
}

void ro_worker_housekeep(struct ro_worker *w)
{
	w->now_ns = rt_now_ns(w->rt);
	obey(w);
	if (ho_unlikely(w->holding))
		ro_hold_look(w);
	if (ho_unlikely(w->host.n))
		ro_host_flush(w);
	ro_flush(w);
}

void ro_worker_finish(struct ro_worker *w)
{
	ro_host_flush(w);
	ro_hold_close(w);
	ro_flush(w);
}

/* --- the loop ------------------------------------------------------------------------------- */

/* How often a worker that always has packets looks at orders and at what it holds. */
#define HOUSEKEEP_TURNS 64

static inline uint64_t ticks_since(const struct ro_worker *w, uint64_t *then)
{
	uint64_t now = w->rt->is_virtual ? 0 : rt_tsc_read(), ticks = now - *then;

	*then = now;
	return ticks;
}

/* All ports once. Returns the slots received; *full says that there was one full burst alone. */
static inline unsigned turn(struct ro_worker *w, bool *full)
{
	struct pk_slot slots[PK_BURST];
	unsigned got = 0, bursts = 0;

	for (unsigned p = 0; p < w->ports; p++) {
		unsigned n = w->rxq[p] ? port_rx(w->rxq[p], slots, PK_BURST) : 0;

		if (!n)
			continue;
		ro_worker_input(w, p, slots, n);
		got += n;
		bursts++;
	}
	if (w->touched)
		ro_flush(w);
	if (ho_unlikely(w->host.n))
		ro_host_flush(w);
	*full = bursts && got == bursts * PK_BURST;
	if (*full && bursts > 1)
		got = bursts * PK_BURST;
	return got;
}

static unsigned queues_of(struct ro_worker *w, struct port_rxq **out)
{
	unsigned n = 0;

	for (unsigned p = 0; p < w->ports; p++) {
		if (w->rxq[p])
			out[n++] = w->rxq[p];
	}
	return n;
}

static void idle(struct ro_worker *w, struct port_rxq *const *rxq, unsigned n_rxq,
		 uint64_t *idle_since)
{
	uint64_t now = rt_now_ns(w->rt);

	for (unsigned p = 0; p < w->ports; p++) {
		if (w->txq[p])
			port_reap(w->txq[p]);
	}
	*idle_since = *idle_since ? *idle_since : now;
	if (now - *idle_since < TR_RX_SPIN_NS || n_rxq > TR_RX_WAIT_MAX) {
		rt_relax(w->rt);
		return;
	}
	urcu_qsbr_thread_offline();
	/* Orders and held packets are looked at even without traffic. */
	if (tr_rx_wait(&w->stop, rxq, n_rxq, HO_MIN(w->end_ns, now + 10000000u)))
		ho_ctr_add(&w->ctr.sleeps, 1);
	urcu_qsbr_thread_online();
}

static bool over(const struct ro_worker *w)
{
	return tr_stop_asked(&w->stop) || (w->count && w->ctr.received >= w->count) ||
	       (w->end_ns != RT_FOREVER && rt_now_ns(w->rt) >= w->end_ns);
}

static void loop(struct ro_worker *w)
{
	struct port_rxq *rxq[RO_PORTS_MAX];
	unsigned n_rxq = queues_of(w, rxq), turns = 0;
	uint64_t then = 0, idle_since = 0;

	ticks_since(w, &then);
	ro_worker_housekeep(w);
	for (;;) {
		bool full;
		unsigned got = turn(w, &full);
		uint64_t ticks = ticks_since(w, &then);

		urcu_qsbr_quiescent_state();
		rt_spend(w->rt, RT_COST_POLL, 1);
		rt_spend(w->rt, RT_COST_LOOKUP, got);
		rt_spend(w->rt, RT_COST_TX_FRAME, got);
		if (ho_likely(got)) {
			ho_ctr_add(&w->ctr.turns, 1);
			ho_ctr_add(&w->ctr.busy_ticks, ticks);
			if (full)
				ho_hist_add(&w->full_turn_ticks, ticks * PK_BURST / got);
			idle_since = 0;
			if (ho_unlikely(++turns % HOUSEKEEP_TURNS == 0))
				ro_worker_housekeep(w);
			if (ho_unlikely(over(w)))
				break;
			continue;
		}
		ro_worker_housekeep(w);
		if (over(w) || (!w->holding && tr_rx_ended(rxq, n_rxq)))
			break;
		idle(w, rxq, n_rxq, &idle_since);
		ticks_since(w, &then);
	}
}

/*
 * Tasks of the virtual clock share one thread, and none of them keeps a pointer into the tables
 * while another one runs: time passes between bursts alone. So that thread is registered once for
 * all of them.
 */
static __thread unsigned registered;

void ro_worker_run(void *arg)
{
	struct ro_worker *w = arg;

	if (registered++ == 0)
		urcu_qsbr_register_thread();
	loop(w);
	ro_worker_finish(w);
	if (--registered == 0)
		urcu_qsbr_unregister_thread();
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	if (w->done_event)
		rt_event_signal(w->rt, w->done_event);
}
