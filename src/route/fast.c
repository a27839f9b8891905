// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path. A burst of one port is sorted, all its destinations are looked up together, then
 * each packet gets its new header:
 *
 *   fetch    addresses of all frames, their headers on the way to the cache
 *   sort     checks; each good packet becomes a draft of the slot that it will leave in
 *   look up  fib4.h, fib6.h: 64 at a time
 *   send     next hop, TTL, checksum, Ethernet; the draft goes into the list of the port
 *
 * What does not fit is set aside and goes through ro_slow afterwards, which looks at it anew and
 * names what is wrong with it.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "base/cpu.h"
#include "route/fib4.h"
#include "route/fib6.h"
#include "route/fast.h"

#define ALWAYS static inline __attribute__((always_inline))

/* A slot in a register; number 2 is `off`, number 3 `len`, 4 the flags, 5 the tag. */
typedef uint16_t slot_words __attribute__((vector_size(16)));
_Static_assert(offsetof(struct pk_slot, off) == 4 && offsetof(struct pk_slot, len) == 6 &&
		       offsetof(struct pk_slot, flags) == 8 &&
		       offsetof(struct pk_slot, vlan) == 10 && sizeof(struct pk_slot) == 16,
	       "a slot's words");
_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "headers are read in words");
enum { OFF = 2, LEN = 3 };

/* The first bytes behind the addresses: an Ethernet type, then the first two of a packet. */
#define IS_IPV4   0x450008u /* without options; the second byte is the type of service */
#define IPV4_MASK 0xffffffu
#define IS_IPV6   0x60dd86u
#define IPV6_MASK 0xf0ffffu

ALWAYS uint64_t load64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

ALWAYS uint32_t load32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

ALWAYS uint16_t load16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* --- sort ----------------------------------------------------------------------------------- */

/* Is it divisible by 65535? Not 0: a header has its version. (A number is divisible by an odd one
 * if its product with the inverse of that modulo 2^64 is no greater than the greatest quotient.) */
ALWAYS bool sum_right(uint64_t sum)
{
	return sum * 0xfffefffefffeffffu <= UINT64_MAX / 65535;
}

/* RFC 1812 5.2.2 and 5.3.7, for a header without options. */
ALWAYS bool good4(const struct ro_own *own, const uint8_t *ip, uint32_t bytes, uint32_t have)
{
	uint32_t src = load32(ip + 12), bit = ro_own_bit4(src);
	uint64_t sum = (uint64_t)src + load32(ip + 16) + load32(ip + 8), first = load64(ip);

	if (ho_unlikely(bytes - PK_IPV4_BYTES > have - PK_IPV4_BYTES || ip[8] <= 1))
		return false;
	sum += first;
	sum += sum < first; /* modulo 65535, 2^64 is 1 */
	if (ho_unlikely(!sum_right(sum)))
		return false;
	/* 0/8, groups and above; 127/8; 169.254/16 */
	if (ho_unlikely((uint8_t)(src - 1) >= 223 || (uint8_t)src == 127 ||
			(uint16_t)src == 0xfea9))
		return false;
	return !(own->v4[bit / 64] >> (bit % 64) & 1);
}

ALWAYS bool good6(const struct ro_own *own, const uint8_t *ip, uint32_t bytes, uint32_t have)
{
	uint32_t bit = ro_own_bit6(ip + 8);

	if (ho_unlikely(bytes > have || ip[6] == PK_IP_HOPOPTS || ip[7] <= 1))
		return false;
	/* ::, ::1, mapped and such begin with zeros; groups and link-local with fe or ff. */
	if (ho_unlikely(load64(ip + 8) == 0 || ip[8] >= 0xfe))
		return false;
	return !(own->v6[bit / 64] >> (bit % 64) & 1);
}

/* The Ethernet destination of frames for an interface, as the upper 48 bits of a word. */
ALWAYS uint64_t expected(const struct ro_iface *in)
{
	return in && in->up ? in->mac_word << 16 : RO_NOBODY;
}

ALWAYS void draft(struct ro_lane *l, unsigned n, const struct pk_slot *s, unsigned i, uint8_t *ip,
		  uint32_t before, uint32_t bytes)
{
	const slot_words kept = { 0xffff, 0xffff, 0xffff, 0, RO_FLAGS_KEPT, 0, 0xffff, 0xffff };
	slot_words words;

	l->slot[n] = (uint8_t)i;
	l->ip[n] = ip;
	l->longest = HO_MAX(l->longest, bytes + PK_ETH_BYTES);
	memcpy(&words, s, sizeof(words));
	words &= kept;
	words[OFF] = (uint16_t)(words[OFF] + before - PK_ETH_BYTES);
	words[LEN] = (uint16_t)(bytes + PK_ETH_BYTES);
	memcpy(&l->draft[n], &words, sizeof(words));
}

/* The packet of a frame that begins `before` bytes behind d, if it is IPv4 and good. */
ALWAYS bool take4(struct ro_burst *b, unsigned n, const struct ro_own *own, const struct pk_slot *s,
		  unsigned i, uint8_t *d, uint64_t mac, const uint32_t before)
{
	uint8_t *ip = d + before;
	uint32_t have = s->len - before, bytes = ntohs(load16(ip + 2));

	if (ho_unlikely((load32(ip - 2) & IPV4_MASK) != IS_IPV4 || load64(d) << 16 != mac))
		return false;
	if (before != PK_ETH_BYTES && have < PK_IPV4_BYTES)
		return false;
	if (!good4(own, ip, bytes, have))
		return false;
	b->dst4[n] = ntohl(load32(ip + 16));
	b->counted[n] = ro_count_down4(load32(ip + 8));
	draft(&b->v4, n, s, i, ip, before, bytes);
	return true;
}

ALWAYS bool take6(struct ro_burst *b, unsigned n, const struct ro_own *own, const struct pk_slot *s,
		  unsigned i, uint8_t *d, uint64_t mac, const uint32_t before)
{
	uint8_t *ip = d + before;
	uint32_t have = s->len - before, bytes = ntohs(load16(ip + 4)) + PK_IPV6_BYTES;

	if (ho_unlikely((load32(ip - 2) & IPV6_MASK) != IS_IPV6 || load64(d) << 16 != mac))
		return false;
	if (have < PK_IPV6_BYTES || !good6(own, ip, bytes, have))
		return false;
	memcpy(&b->dst6[n], ip + 24, 16);
	draft(&b->v6, n, s, i, ip, before, bytes);
	return true;
}

ALWAYS bool simple(const struct pk_slot *s, uint16_t flags)
{
	return ho_likely(s->len >= PK_ETH_BYTES + PK_IPV4_BYTES && !(s->flags & flags));
}

/*
 * Frames from i on, as long as they are untagged, of the family and good; returns the first one
 * that is not. A loop of its own for each family, so that what it needs stays in registers.
 */
static __attribute__((noinline)) unsigned run4(struct ro_burst *b, const struct ro_own *own,
					       const struct pk_slot *slots, unsigned i, unsigned n,
					       uint64_t mac)
{
	unsigned n4 = b->v4.n;

	for (; i < n; i++, n4++) {
		if (!simple(&slots[i], RO_NOT_SIMPLE | PK_VLAN) ||
		    !take4(b, n4, own, &slots[i], i, b->data[i], mac, PK_ETH_BYTES))
			break;
	}
	b->v4.n = n4;
	return i;
}

static __attribute__((noinline)) unsigned run6(struct ro_burst *b, const struct ro_own *own,
					       const struct pk_slot *slots, unsigned i, unsigned n,
					       uint64_t mac)
{
	unsigned n6 = b->v6.n;

	for (; i < n; i++, n6++) {
		if (!simple(&slots[i], RO_NOT_SIMPLE | PK_VLAN) ||
		    !take6(b, n6, own, &slots[i], i, b->data[i], mac, PK_ETH_BYTES))
			break;
	}
	b->v6.n = n6;
	return i;
}

/* A frame whose tag is in the frame or in the slot. false: for the slow path. */
static __attribute__((noinline)) bool tagged(struct ro_burst *b, const struct ro_own *own,
					     const struct pk_slot *s, unsigned i,
					     struct ro_iface *const *row)
{
	uint8_t *d = b->data[i];
	const bool inside = !(s->flags & PK_VLAN);
	uint64_t mac;

	if (!row || !simple(s, RO_NOT_SIMPLE) || (load16(d + 12) == htobe16(PK_ETH_VLAN)) != inside)
		return false;
	mac = expected(RO_RCU_GET(row[(inside ? ntohs(load16(d + 14)) : s->vlan) & PK_VLAN_ID]));
	if (inside ? take4(b, b->v4.n, own, s, i, d, mac, PK_ETH_BYTES + PK_VLAN_BYTES)
		   : take4(b, b->v4.n, own, s, i, d, mac, PK_ETH_BYTES))
		b->v4.n++;
	else if (inside ? take6(b, b->v6.n, own, s, i, d, mac, PK_ETH_BYTES + PK_VLAN_BYTES)
			: take6(b, b->v6.n, own, s, i, d, mac, PK_ETH_BYTES))
		b->v6.n++;
	else
		return false;
	return true;
}

/* Frames from i on, up to `end` or the end of a chain that is longer; returns the next one. */
static unsigned one_by_one(struct ro_burst *b, const struct ro_sorter *o,
			   struct ro_iface *const *row, const struct pk_slot *slots, unsigned i,
			   unsigned end, unsigned n)
{
	while (i < end) {
		unsigned begin;

		do {
			begin = i;
			i = run4(b, o->own, slots, i, end, o->untagged);
			i = run6(b, o->own, slots, i, end, o->untagged);
			while (i < end && tagged(b, o->own, &slots[i], i, row))
				i++;
		} while (i > begin && i < end);
		if (i == end)
			break;
		b->slow_at[b->slow++] = (uint8_t)i;
		/* The rest of its slots are not frames. */
		for (; i + 1 < n && (slots[i].flags & PK_MORE); i++)
			b->more++;
		i++;
	}
	return i;
}

static void sort(const struct ro_worker *w, unsigned port, const struct pk_slot *slots, unsigned n,
		 struct ro_burst *b)
{
	const struct ro_view *v = w->view;
	struct ro_iface *const *row = RO_RCU_GET(v->by_vlan[port]);
	const struct ro_sorter o = { .own = RO_RCU_GET(v->own),
				     .untagged = expected(row ? RO_RCU_GET(row[0]) : NULL),
				     .stride_bytes = w->arena->stride_bytes };
	const struct ro_fast *fast = w->fast;
	const unsigned all = (unsigned)((1ull << fast->width) - 1);
	unsigned i = 0;

	while (o.untagged != RO_NOBODY && fast->width && i + fast->width <= n) {
		unsigned taken = fast->group(b, &o, slots, i), end = i + fast->width;

		if (ho_likely(taken == all)) {
			i = end;
			continue;
		}
		while (i < end) {
			unsigned run = taken ? (unsigned)__builtin_ctz(taken) : end - i;

			if (run) {
				unsigned next = one_by_one(b, &o, row, slots, i, i + run, n);

				/* A chain's slots are not taken, wherever it ends. */
				taken >>= run;
				i = next;
			} else {
				taken >>= 1;
				i++;
			}
		}
	}
	one_by_one(b, &o, row, slots, i, n, n);
}

static void fetch(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
		  struct ro_burst *b)
{
	uint8_t *const base = arena->base;
	const size_t stride = arena->stride_bytes;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n; i++) {
		uint8_t *data = base + slots[i].buf * stride + slots[i].off;

		b->data[i] = data;
		bytes += slots[i].len;
		ho_prefetchw(data);
	}
	b->bytes = bytes;
}

static const struct ro_fast scalar = { .fetch = fetch };

const struct ro_fast *ro_fast_choose(void)
{
#if defined(__x86_64__)
	static const struct ro_fast avx2 = { fetch, ro_fast_group_avx2, RO_GROUP_AVX2 };
	static const struct ro_fast avx512 = { ro_fast_fetch_avx512, ro_fast_group_avx512,
					       RO_GROUP_AVX512 };
	enum ho_simd level = ho_simd_level();

	if (level >= HO_SIMD_AVX512)
		return &avx512;
	if (level >= HO_SIMD_AVX2 && __builtin_cpu_supports("bmi2"))
		return &avx2;
#endif
	return &scalar;
}

/* --- send ----------------------------------------------------------------------------------- */

static const struct ro_nh *path(const struct ro_worker *w, const struct ro_nh *nh,
				const uint8_t *ip, uint32_t bytes, uint8_t family)
{
	const struct ro_ecmp *e = nh->ecmp;
	uint32_t h = ro_flow_hash(w->hash, ip, bytes, family);

	return ro_nh_at(w->view, e->nh[e->bucket[h % RO_ECMP_BUCKETS]]);
}

/* One hop less, and the checksum right again (RFC 1624). */
ALWAYS void count_down(uint8_t *ip, const uint8_t family)
{
	uint32_t v;

	if (family == RO_IPV6) {
		ip[7]--;
		return;
	}
	v = ro_count_down4(load32(ip + 8));
	memcpy(ip + 8, &v, 4);
}

#define PLAIN_NH (RO_NH_ETHER | PK_ETH_BYTES << 8)
_Static_assert(offsetof(struct ro_nh, kind) == 0 && offsetof(struct ro_nh, eth_bytes) == 1,
	       "kind and length in one word");

/* Does the packet fit the MTU? One comparison of two words, the upper 16 bits of which count. */
ALWAYS bool fits(const struct ro_nh *nh, const struct pk_slot *draft)
{
	return load64(draft) <= nh->longest;
}

/* The path of a flow, an Ethernet header with a tag. false: for the slow path. */
static __attribute__((noinline)) bool send_other(struct ro_worker *w, const struct ro_nh *nh,
						 uint8_t *ip, const struct pk_slot *draft,
						 uint8_t family)
{
	struct pk_slot *to;
	struct ro_out *out;
	unsigned tag;

	if (nh->kind == RO_NH_ECMP)
		nh = path(w, nh, ip, draft->len - PK_ETH_BYTES, family);
	out = w->list[nh->port];
	tag = nh->eth_bytes - PK_ETH_BYTES;
	if (ho_unlikely(nh->kind != RO_NH_ETHER || !fits(nh, draft) || !out || draft->off < tag))
		return false;
	if (family == RO_IPV4)
		count_down(ip, RO_IPV4);
	else
		count_down(ip, RO_IPV6);
	if (!tag)
		memcpy(ip - PK_ETH_BYTES, nh->eth, 12);
	else
		memcpy(ip - RO_ETH_MAX, nh->eth, 16);
	w->touched |= 1ull << nh->port;
	to = &out->slot[out->n++];
	*to = *draft;
	to->off = (uint16_t)(to->off - tag);
	to->len = (uint16_t)(to->len + tag);
	return true;
}

/*
 * Next hops of a lane to hop[]. Returns the one of the first packet if all leave by the same port
 * as it, untagged and within its MTU, so that nothing is left to ask of any; else NULL.
 */
ALWAYS const struct ro_nh *look_ahead(const struct ro_worker *w, const struct ro_lane *l,
				      const struct ro_nh **hop)
{
	struct ro_nh *const *nhs = w->view->nh;
	const struct ro_nh *first = RO_RCU_GET(nhs[l->nh[0]]);
	const uint64_t same = load64(first);
	uint64_t differ = 0;

	for (unsigned i = 0; i < l->n; i++) {
		const struct ro_nh *nh = RO_RCU_GET(nhs[l->nh[i]]);

		hop[i] = nh;
		differ |= load64(nh) ^ same;
	}
	if (differ || load16(first) != PLAIN_NH || l->longest > first->mtu + PK_ETH_BYTES ||
	    !w->list[first->port])
		return NULL;
	return first;
}

/* The lists have room: see flush_full. */
ALWAYS void send_lane(struct ro_worker *w, struct ro_burst *b, struct ro_lane *l,
		      const uint8_t family)
{
	const struct ro_nh *hop[PK_BURST], *first = look_ahead(w, l, hop);
	const unsigned n = l->n;
	unsigned slow = b->slow;
	uint64_t touched = 0;

	if (ho_likely(first != NULL)) {
		struct ro_out *out = w->list[first->port];

		for (unsigned i = 0; i < n; i++) {
			uint8_t *ip = l->ip[i];

			if (family == RO_IPV4)
				memcpy(ip + 8, &b->counted[i], 4);
			else
				ip[7]--;
			/* The type is there: that of the packet as it came. */
			memcpy(ip - PK_ETH_BYTES, hop[i]->eth, 12);
		}
		memcpy(&out->slot[out->n], l->draft, n * sizeof(l->draft[0]));
		out->n += n;
		w->touched |= 1ull << first->port;
		ho_ctr_add(&w->ctr.sent, n);
		ho_ctr_add(&w->ctr.fast, n);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct ro_nh *nh = hop[i];
		struct ro_out *out = w->list[nh->port];
		uint8_t *ip = l->ip[i];

		if (ho_unlikely(load16(nh) != PLAIN_NH)) {
			if (ho_likely(send_other(w, nh, ip, &l->draft[i], family)))
				continue;
			goto slow;
		}
		if (ho_unlikely(!fits(nh, &l->draft[i]) || !out))
			goto slow;
		count_down(ip, family);
		memcpy(ip - PK_ETH_BYTES, nh->eth, 12);
		touched |= 1ull << nh->port;
		out->slot[out->n++] = l->draft[i];
		continue;
	slow:
		b->slow_at[slow++] = l->slot[i];
	}
	w->touched |= touched;
	ho_ctr_add(&w->ctr.sent, n - (slow - b->slow));
	ho_ctr_add(&w->ctr.fast, n - (slow - b->slow));
	b->slow = slow;
}

static __attribute__((noinline)) void send_lane4(struct ro_worker *w, struct ro_burst *b)
{
	send_lane(w, b, &b->v4, RO_IPV4);
}

static __attribute__((noinline)) void send_lane6(struct ro_worker *w, struct ro_burst *b)
{
	send_lane(w, b, &b->v6, RO_IPV6);
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

static void all_slow(struct ro_worker *w, unsigned port, struct pk_slot *slots, unsigned n)
{
	uint64_t bytes = 0;
	unsigned frames = 0;

	for (unsigned i = 0; i < n; i++) {
		bytes += slots[i].len;
		frames += !(slots[i].flags & PK_MORE);
	}
	ho_ctr_add(&w->ctr.received, frames);
	ho_ctr_add(&w->ctr.received_bytes, bytes);
	for (unsigned i = 0; i < n;) {
		unsigned k = pk_frame_slots(slots + i, n - i);

		ro_slow(w, port, slots + i, k);
		i += k;
	}
}

void ro_worker_input(struct ro_worker *w, unsigned port, struct pk_slot *slots, unsigned n)
{
	struct ro_burst b;

	flush_full(w);
	if (ho_unlikely(w->slow_only)) {
		all_slow(w, port, slots, n);
		return;
	}
	b.v4.n = b.v6.n = b.slow = b.more = 0;
	b.v4.longest = b.v6.longest = 0;
	w->fast->fetch(w->arena, slots, n, &b);
	sort(w, port, slots, n, &b);
	ho_ctr_add(&w->ctr.received, n - b.more);
	ho_ctr_add(&w->ctr.received_bytes, b.bytes);
	if (b.v4.n) {
		fib4_lookup_bulk(w->view->fib4, b.dst4, b.v4.nh, b.v4.n);
		send_lane4(w, &b);
	}
	if (b.v6.n) {
		fib6_lookup_bulk(w->view->fib6, b.dst6, b.v6.nh, b.v6.n);
		send_lane6(w, &b);
	}
	for (unsigned i = 0; ho_unlikely(i < b.slow); i++) {
		unsigned at = b.slow_at[i];

		ro_slow(w, port, slots + at, pk_frame_slots(slots + at, n - at));
	}
}
