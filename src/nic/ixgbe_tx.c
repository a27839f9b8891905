// SPDX-License-Identifier: BSD-2-Clause
/*
 * Transmit. A frame is one data descriptor for each slot, before them a context descriptor when
 * the chip must insert something that the last context does not say (7.2.3.2.3).
 *
 * Stop and wake, as the Linux driver has it. After a frame, if fewer than 21 descriptors are
 * unused, the queue stops: at most ring - 21 one-descriptor frames are ever in flight. tx refuses
 * everything then. Only the cleaner wakes the queue, when 42 are unused. The gap keeps a full ring
 * from waking its sender for each frame.
 *
 * tx and clean may run on two threads. tx publishes `queued` with release after the software
 * state; clean publishes `cleaned` after it freed. Stopping and waking is a store and a load on
 * both sides, with a full fence between: either tx sees the room or clean sees the stop.
 */
#include <errno.h>
#include <string.h>

#include "nic/ixgbe_dev.h"

#define TX_MIN_BYTES 17 /* shorter ones the chip cannot pad (8.2.3.22.8, TXPADEN) */

static inline uint32_t unused(const struct ixgbe_txq *t, uint32_t cleaned)
{
	return t->size - 1 - (t->queued - cleaned);
}

/* Room for `need` descriptors? Looks at the cleaner's line only when its last look says no. */
static inline bool has_room(struct ixgbe_txq *t, uint32_t need)
{
	if (ho_likely(unused(t, t->cleaned_seen) >= need))
		return true;
	t->cleaned_seen = __atomic_load_n(&t->cleaned, __ATOMIC_ACQUIRE);
	return unused(t, t->cleaned_seen) >= need;
}

/* Stops the queue. False if the cleaner made room in just that moment: nobody would wake it. */
static bool stop(struct ixgbe_txq *t, uint32_t need)
{
	__atomic_fetch_or(&t->q.stopped, IXGBE_STOP_FULL, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	t->cleaned_seen = __atomic_load_n(&t->cleaned, __ATOMIC_ACQUIRE);
	if (ho_likely(unused(t, t->cleaned_seen) < need))
		return true;
	__atomic_fetch_and(&t->q.stopped, ~IXGBE_STOP_FULL, __ATOMIC_SEQ_CST);
	ho_ctr_add(&t->restarts_tx, 1);
	return false;
}

static inline uint32_t next_index(const struct ixgbe_txq *t, uint32_t at)
{
	return ho_unlikely(++at == t->size) ? 0 : at;
}

static inline void put_data(struct ixgbe_txq *t, uint32_t at, const struct pk_slot *s, uint32_t cmd,
			    uint32_t olinfo)
{
	union ixgbe_tx_desc *d = &t->ring[at];
	const struct pk_arena *arena = t->q.arena;

	d->data.addr = t->dev->arena_iova + (uint64_t)s->buf * arena->stride_bytes + s->off;
	d->data.cmd = s->len | IXGBE_TXD_DTYP_DATA | IXGBE_TXD_DEXT | IXGBE_TXD_IFCS | cmd;
	d->data.olinfo = olinfo;
}

/* --- offloads ------------------------------------------------------------------------------- */

/* What the chip must know of a frame's headers. */
struct headers {
	uint32_t mac, ip, l4; /* bytes of each */
	bool ipv4;
	uint32_t l4type; /* IXGBE_CTX_L4_* */
};

#define L4_CSUM_TCP 16 /* where the layer-4 header has its checksum */
#define HEADER_MAX  (18 + 4 + 60 + 60)

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Finds the headers in the first `len` bytes. -EINVAL unless it is TCP, UDP or SCTP over IP,
 * unfragmented, all of it in the first slot. */
static int find_headers(const uint8_t *p, uint32_t len, struct headers *h)
{
	uint32_t at = 12, proto;

	memset(h, 0, sizeof(*h));
	/* Tags in the frame count as MAC header (7.2.3.2.3, MACLEN). */
	while (at + 6 <= len && (be16(p + at) == 0x8100 || be16(p + at) == 0x88a8))
		at += 4;
	h->mac = at + 2;
	if (h->mac > 127 || h->mac + 20 > len)
		return -EINVAL;
	if (be16(p + at) == 0x0800) {
		const uint8_t *ip = p + h->mac;

		h->ipv4 = true;
		h->ip = (ip[0] & 0xfu) * 4;
		if (ip[0] >> 4 != 4 || h->ip < 20 || (be16(ip + 6) & 0x3fff))
			return -EINVAL;
		proto = ip[9];
	} else if (be16(p + at) == 0x86dd) {
		h->ip = 40;
		if (h->mac + 40 > len)
			return -EINVAL;
		proto = p[h->mac + 6];
		/* Hop-by-hop, routing and destination options: IPLEN spans them all. */
		while (proto == 0 || proto == 43 || proto == 60) {
			const uint8_t *ext = p + h->mac + h->ip;

			if (h->mac + h->ip + 8 > len)
				return -EINVAL;
			proto = ext[0];
			h->ip += 8 + ext[1] * 8u;
		}
	} else {
		return -EINVAL;
	}
	if (h->ip > 511)
		return -EINVAL;
	at = h->mac + h->ip;
	if (proto == 6 && at + 20 <= len) {
		h->l4type = IXGBE_CTX_L4_TCP;
		h->l4 = (uint32_t)(p[at + 12] >> 4) * 4;
		return h->l4 >= 20 && at + h->l4 <= len ? 0 : -EINVAL;
	}
	if (proto == 17 && at + 8 <= len) {
		h->l4type = IXGBE_CTX_L4_UDP;
		h->l4 = 8;
		return 0;
	}
	if (proto == 132 && at + 12 <= len) {
		h->l4type = IXGBE_CTX_L4_SCTP;
		h->l4 = 12;
		return 0;
	}
	return -EINVAL;
}

/*
 * Prepares the headers of a frame that the chip will segment (7.2.4.6, 7.2.4.7): the IPv4 header
 * checksum is 0, the TCP checksum is the pseudo header's sum with a length of 0, because the chip
 * adds each segment's own. Depends on nothing that it changes: a kept frame may pass again.
 */
static void prepare_tso(uint8_t *p, const struct headers *h)
{
	uint8_t *ip = p + h->mac, *tcp = ip + h->ip;
	const uint8_t *addr = ip + (h->ipv4 ? 12 : 8);
	uint32_t sum = 6; /* the protocol */

	for (unsigned i = 0; i < (h->ipv4 ? 8u : 32u); i += 2)
		sum += be16(addr + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	if (h->ipv4)
		ip[10] = ip[11] = 0;
	tcp[L4_CSUM_TCP] = (uint8_t)(sum >> 8);
	tcp[L4_CSUM_TCP + 1] = (uint8_t)sum;
}

/* What a frame needs beside its data: in *ctx, and in the bits for its data descriptors. */
struct offload {
	struct ixgbe_ctx ctx;
	uint32_t cmd, olinfo;
	unsigned index; /* of the context */
	uint32_t paylen;
};

static int plan_offload(struct ixgbe_txq *t, const struct pk_slot *s, uint32_t bytes,
			struct offload *o)
{
	uint8_t *data = pk_data(t->q.arena, s);
	struct headers h = { .mac = 14 };

	*o = (struct offload){ .paylen = bytes };
	if (s->flags & (PK_CSUM_PARTIAL | PK_TSO)) {
		if (find_headers(data, s->len, &h) < 0)
			return -EINVAL;
		o->ctx.type = h.l4type | (h.ipv4 ? IXGBE_CTX_IPV4 : 0);
		o->olinfo = IXGBE_TXD_TXSM;
	}
	if (s->flags & PK_TSO) {
		uint32_t head = h.mac + h.ip + h.l4;

		/* MSS has 16 bits; fewer than 64 would make more segments than the wire bears. */
		if (h.l4type != IXGBE_CTX_L4_TCP || s->meta < 64 || s->meta > 9728 - head ||
		    bytes <= head)
			return -EINVAL;
		prepare_tso(data, &h);
		o->index = 1;
		o->cmd |= IXGBE_TXD_TSE;
		o->olinfo |= h.ipv4 ? IXGBE_TXD_IXSM : 0;
		o->paylen = bytes - head;
		o->ctx.mss_l4 = IXGBE_CTX_L4LEN(h.l4) | IXGBE_CTX_MSS(s->meta);
	}
	if (s->flags & PK_VLAN) {
		o->cmd |= IXGBE_TXD_VLE;
		o->ctx.vlan_macip = IXGBE_CTX_VLAN(s->vlan);
	}
	o->ctx.vlan_macip |= IXGBE_CTX_MACLEN(h.mac) | IXGBE_CTX_IPLEN(h.ip);
	o->ctx.type |= IXGBE_TXD_DTYP_CTX | IXGBE_TXD_DEXT;
	o->ctx.mss_l4 |= IXGBE_CTX_IDX(o->index);
	o->ctx.valid = true;
	o->olinfo |= IXGBE_TXD_IDX(o->index) | IXGBE_TXD_PAYLEN(o->paylen);
	return 0;
}

/* The chip still has this context: no descriptor is needed. */
static bool same_context(const struct ixgbe_ctx *have, const struct ixgbe_ctx *want)
{
	return have->valid && have->vlan_macip == want->vlan_macip && have->type == want->type &&
	       have->mss_l4 == want->mss_l4;
}

static void put_context(struct ixgbe_txq *t, uint32_t at, const struct ixgbe_ctx *c)
{
	union ixgbe_tx_desc *d = &t->ring[at];

	d->ctx.vlan_macip = c->vlan_macip;
	d->ctx.seq = 0;
	d->ctx.type = c->type;
	d->ctx.mss_l4 = c->mss_l4;
}

/* --- sending -------------------------------------------------------------------------------- */

/* Why the frame cannot ever be sent; PORT_DROP_COUNT if it can. */
static enum port_drop refuse_reason(const struct ixgbe_txq *t, const struct pk_slot *s, unsigned n,
				    uint32_t bytes)
{
	uint32_t longest = s->flags & PK_TSO ? PK_FRAME_MAX_BYTES : t->dev->port.max_frame;

	if (bytes < TX_MIN_BYTES)
		return PORT_DROP_TX_TOO_SHORT;
	if (bytes > longest || n > PK_FRAME_MAX_SLOTS)
		return PORT_DROP_TX_TOO_LONG;
	/* A data buffer of length 0 hangs the chip (7.2.3.2.4, DTALEN). */
	for (unsigned i = 0; i < n; i++)
		if (!s[i].len)
			return PORT_DROP_TX_BAD_FRAME;
	return PORT_DROP_COUNT;
}

/* What a frame adds to byte counters: with the tag that travels beside it. */
static inline uint32_t frame_bytes(const struct pk_slot *first, uint32_t bytes)
{
	return bytes + (first->flags & PK_VLAN ? 4 : 0);
}

/* Takes a frame off the sender that cannot be sent. False when there is no room for it now. */
static bool refuse(struct ixgbe_txq *t, const struct pk_slot *s, unsigned n, enum port_drop why)
{
	uint32_t used = t->refused_put - __atomic_load_n(&t->refused_take, __ATOMIC_ACQUIRE);

	if (used + n > IXGBE_REFUSED_MAX) {
		/* With nothing in flight only a software interrupt brings the cleaner. */
		nic_write32(t->dev->bus, IXGBE_EICS_EX(0), 1u << t->q.index);
		return false;
	}
	for (unsigned i = 0; i < n; i++)
		t->refused[(t->refused_put + i) % IXGBE_REFUSED_MAX] = (struct ixgbe_txbuf){
			.buf = s[i].flags & PK_KEEP ? IXGBE_NO_BUF : s[i].buf,
			.bytes = i ? 0 : frame_bytes(s, pk_frame_bytes(s, n)),
			.descs = !i,
		};
	__atomic_store_n(&t->refused_put, t->refused_put + n, __ATOMIC_RELEASE);
	t->q.accepted++;
	port_drop(&t->q.ctr, why, 1);
	return true;
}

/*
 * Any frame but the simplest, with `left` descriptors unused. Returns how many it took, 0 when it
 * was refused for good, -EAGAIN when there is no room, -ENOBUFS when it cannot even be refused now.
 */
static int put_frame(struct ixgbe_txq *t, const struct pk_slot *s, unsigned n, uint32_t left)
{
	uint32_t bytes = pk_frame_bytes(s, n), at = t->use_at, first = at;
	enum port_drop why = refuse_reason(t, s, n, bytes);
	struct offload o = { .olinfo = IXGBE_TXD_PAYLEN(bytes) };
	unsigned descs = n;

	if (why == PORT_DROP_COUNT && (s->flags & (PK_VLAN | PK_CSUM_PARTIAL | PK_TSO)) &&
	    plan_offload(t, s, bytes, &o) < 0)
		why = PORT_DROP_TX_BAD_FRAME;
	if (why != PORT_DROP_COUNT)
		return refuse(t, s, n, why) ? 0 : -ENOBUFS;
	if (left < n + 1)
		return -EAGAIN;
	if (o.ctx.valid && !same_context(&t->ctx[o.index], &o.ctx)) {
		put_context(t, at, &o.ctx);
		t->state[at].buf = IXGBE_NO_BUF;
		t->ctx[o.index] = o.ctx;
		at = next_index(t, at);
		descs++;
	}
	for (unsigned i = 0; i < n; i++) {
		uint32_t last = i + 1 == n ? IXGBE_TXD_EOP | IXGBE_TXD_RS : 0;

		put_data(t, at, &s[i], o.cmd | last, o.olinfo);
		t->state[at].buf = s[i].flags & PK_KEEP ? IXGBE_NO_BUF : s[i].buf;
		at = next_index(t, at);
	}
	t->state[first].bytes = frame_bytes(s, bytes);
	t->state[first].descs = descs;
	t->use_at = at;
	return (int)descs;
}

/* Rings the doorbell for what was put since. */
static inline void kick(struct ixgbe_txq *t, uint32_t frames, uint32_t queued)
{
	rt_spend(t->dev->rt, RT_COST_TX_FRAME, frames);
	__atomic_store_n(&t->queued, queued, __ATOMIC_RELEASE);
	t->q.accepted += frames;
	nic_wmb();
	nic_write32(t->dev->bus, t->tail, t->use_at);
	ho_ctr_add(&t->q.ctr.kicks, 1);
}

unsigned ixgbe_tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	struct ixgbe_txq *t = (struct ixgbe_txq *)q;
	const uint16_t special = PK_MORE | PK_VLAN | PK_CSUM_PARTIAL | PK_TSO;
	const uint32_t longest = t->dev->port.max_frame;
	unsigned i = 0;

	/* Before the look at `stopped`: a watchdog that has set FROZEN waits for this to be 0. */
	__atomic_store_n(&t->in_tx, 1, __ATOMIC_RELAXED);
	if (ho_unlikely(__atomic_load_n(&q->stopped, __ATOMIC_ACQUIRE))) {
		ho_ctr_add(&t->busy, 1);
		goto out;
	}
	while (i < n) {
		uint32_t frames = 0, queued = t->queued, need = IXGBE_DESC_NEEDED;
		uint32_t left = unused(t, t->cleaned_seen);
		bool looked = false;

		/* One spend and one doorbell for as much as the ring takes. */
		while (i < n) {
			const struct pk_slot *s = &slots[i];
			unsigned k;
			int descs;

			if (ho_unlikely(left < need)) {
				if (looked)
					break;
				t->cleaned_seen = __atomic_load_n(&t->cleaned, __ATOMIC_ACQUIRE);
				left = t->size - 1 - (queued - t->cleaned_seen);
				looked = true;
				continue;
			}
			if (ho_likely(!(s->flags & special) && s->len >= TX_MIN_BYTES &&
				      s->len <= longest)) {
				const uint32_t at = t->use_at;

				put_data(t, at, s, IXGBE_TXD_EOP | IXGBE_TXD_RS,
					 IXGBE_TXD_PAYLEN(s->len));
				t->state[at].buf = s->flags & PK_KEEP ? IXGBE_NO_BUF : s->buf;
				t->state[at].bytes = s->len;
				t->state[at].descs = 1;
				t->use_at = next_index(t, at);
				queued++;
				left--;
				frames++;
				i++;
				continue;
			}
			k = pk_frame_slots(s, n - i);
			descs = put_frame(t, s, k, left);
			if (descs == -EAGAIN) {
				need = k + 1;
				continue;
			}
			if (descs == -ENOBUFS)
				break;
			need = IXGBE_DESC_NEEDED;
			i += k;
			frames += descs > 0;
			queued += (uint32_t)descs;
			left -= (uint32_t)descs;
		}
		if (frames)
			kick(t, frames, queued);
		if (left >= need && i < n)
			break; /* -ENOBUFS: not the ring's fault, the queue need not stop */
		if (!has_room(t, need) && stop(t, need))
			break;
	}
out:
	if (i < n)
		ho_ctr_add(&q->ctr.ring_full, 1);
	__atomic_store_n(&t->in_tx, 0, __ATOMIC_RELEASE);
	return i;
}

/* --- cleaning ------------------------------------------------------------------------------- */

/* Buffers on their way to the cache, in bulk. */
struct batch {
	uint32_t n;
	uint32_t buf[64];
};

static inline void batch_add(struct batch *b, struct pk_cache *cache, uint32_t buf)
{
	if (buf == IXGBE_NO_BUF)
		return;
	b->buf[b->n++] = buf;
	if (b->n == HO_ARRAY_LEN(b->buf)) {
		pk_free(cache, b->buf, b->n);
		b->n = 0;
	}
}

static inline void batch_end(struct batch *b, struct pk_cache *cache)
{
	if (b->n)
		pk_free(cache, b->buf, b->n);
}

/* They are done as well, for who counts what is queued. */
static void free_refused(struct ixgbe_txq *t, struct batch *b, struct port_work *done)
{
	uint32_t put = __atomic_load_n(&t->refused_put, __ATOMIC_ACQUIRE);
	uint32_t take = t->refused_take;

	for (; take != put; take++) {
		const struct ixgbe_txbuf *st = &t->refused[take % IXGBE_REFUSED_MAX];

		batch_add(b, t->q.cache, st->buf);
		done->packets += st->descs;
		done->bytes += st->bytes;
	}
	__atomic_store_n(&t->refused_take, take, __ATOMIC_RELEASE);
}

void ixgbe_tx_purge(struct ixgbe_txq *t, enum port_drop why, struct port_work *done)
{
	struct batch b = { .n = 0 };
	uint32_t at = t->clean_at;
	uint64_t frames = 0;

	free_refused(t, &b, done);
	while (t->cleaned != t->queued) {
		const uint32_t descs = t->state[at].descs;

		frames++;
		done->packets++;
		done->bytes += t->state[at].bytes;
		for (uint32_t k = 0; k < descs; k++) {
			batch_add(&b, t->q.cache, t->state[at].buf);
			at = next_index(t, at);
		}
		t->cleaned += descs;
	}
	batch_end(&b, t->q.cache);
	port_drop(&t->q.ctr, why, frames);
	/* The chip begins at descriptor 0 again and has forgotten its contexts. */
	t->clean_at = t->use_at = 0;
	t->cleaned_seen = t->cleaned;
	memset(t->ctx, 0, sizeof(t->ctx));
}

/* After a reset: the ring that the chip forgot is given back, then the queue may go on. */
static void finish_reset(struct ixgbe_txq *t, struct port_work *done)
{
	ixgbe_tx_purge(t, PORT_DROP_TX_RESET, done);
	__atomic_store_n(&t->purge, 0, __ATOMIC_RELEASE);
	__atomic_fetch_and(&t->q.stopped, ~IXGBE_STOP_FULL, __ATOMIC_SEQ_CST);
}

/* Cleaning takes time, in which the chip goes on: it is spent so many descriptors at a time. */
#define CLEAN_STEP 32

bool ixgbe_clean(struct port_txq *q, unsigned limit, struct port_work *done)
{
	struct ixgbe_txq *t = (struct ixgbe_txq *)q;
	uint32_t at, cleaned, queued, descs_done = 0, descs_spent = 0, frames = 0;
	uint64_t bytes = 0;
	bool more = false;
	struct batch b;

	b.n = 0;
	__atomic_store_n(&t->in_clean, 1, __ATOMIC_RELAXED);
	if (ho_unlikely(__atomic_load_n(&q->stopped, __ATOMIC_ACQUIRE) & IXGBE_STOP_FROZEN))
		goto out;
	if (ho_unlikely(__atomic_load_n(&t->purge, __ATOMIC_ACQUIRE))) {
		finish_reset(t, done);
		goto out;
	}
	if (ho_unlikely(t->refused_take != __atomic_load_n(&t->refused_put, __ATOMIC_RELAXED)))
		free_refused(t, &b, done);
	at = t->clean_at;
	cleaned = t->cleaned;
	queued = __atomic_load_n(&t->queued, __ATOMIC_ACQUIRE);
	while (cleaned != queued) {
		const struct ixgbe_txbuf *st = &t->state[at];
		const uint32_t descs = st->descs;
		uint32_t last = at + descs - 1;

		if (descs_done >= limit) {
			more = true;
			break;
		}
		if (last >= t->size)
			last -= t->size;
		/* Only the last descriptor of a frame asked for a report (RS). */
		if (!(__atomic_load_n(&t->ring[last].wb.status, __ATOMIC_RELAXED) &
		      IXGBE_TXD_STAT_DD)) {
			if (descs_done == descs_spent)
				break;
			/* What was cleaned took its time; it may be done by now. */
			rt_spend(t->dev->rt, RT_COST_TX_CLEAN, descs_done - descs_spent);
			descs_spent = descs_done;
			continue;
		}
		nic_rmb();
		bytes += st->bytes;
		frames++;
		if (ho_likely(descs == 1)) {
			batch_add(&b, q->cache, st->buf);
		} else {
			for (uint32_t k = 0; k < descs; k++, at = next_index(t, at))
				batch_add(&b, q->cache, t->state[at].buf);
		}
		at = next_index(t, last);
		cleaned += descs;
		descs_done += descs;
		if (descs_done - descs_spent >= CLEAN_STEP) {
			rt_spend(t->dev->rt, RT_COST_TX_CLEAN, descs_done - descs_spent);
			descs_spent = descs_done;
		}
	}
	batch_end(&b, q->cache);
	if (!frames)
		goto out;
	rt_spend(t->dev->rt, RT_COST_TX_CLEAN, descs_done - descs_spent);
	t->clean_at = at;
	port_count(&q->ctr, frames, bytes);
	done->packets += frames;
	done->bytes += (uint32_t)bytes;
	__atomic_store_n(&t->cleaned, cleaned, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if ((__atomic_load_n(&q->stopped, __ATOMIC_RELAXED) & IXGBE_STOP_FULL) &&
	    t->size - 1 - (__atomic_load_n(&t->queued, __ATOMIC_RELAXED) - cleaned) >=
		    IXGBE_WAKE_AT) {
		__atomic_fetch_and(&q->stopped, ~IXGBE_STOP_FULL, __ATOMIC_SEQ_CST);
		ho_ctr_add(&t->restarts, 1);
	}
out:
	__atomic_store_n(&t->in_clean, 0, __ATOMIC_RELEASE);
	return more;
}

unsigned ixgbe_reap(struct port_txq *q)
{
	struct port_work done = { 0 };

	ixgbe_clean(q, UINT32_MAX, &done);
	return done.packets;
}
