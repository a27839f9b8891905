// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path as it is for each kind of CPU: bursts of good, odd and malformed frames go through
 * all that this CPU can run, and through the slow path. What comes out, what is dropped and why,
 * and how many took the fast path must be the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "route/fast.h"
#include "route_rig.h"

#define BURSTS 2000

enum { SLOW, SCALAR, AVX2, AVX512, VARIANTS };
static const char *const level[VARIANTS] = { "scalar", "scalar", "avx2", "avx512" };
static const char *const name[VARIANTS] = { "slow", "sc", "ax", "zm" };

static struct rig rig[VARIANTS];
static struct pk_arena *arena;
static struct rt *rt;

static uint64_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* --- frames ---------------------------------------------------------------------------------- */

struct frame {
	uint8_t byte[2000];
	uint32_t bytes; /* in the slot */
	uint16_t off, flags, vlan;
};

static void ip_sum(uint8_t *ip)
{
	uint16_t csum;

	memset(ip + 10, 0, 2);
	csum = pk_csum_finish(pk_csum(ip, PK_IPV4_BYTES));
	memcpy(ip + 10, &csum, 2);
}

/* Nobody of these has to be asked for, so that nothing waits and order does not matter. */
static const char *const dst4[] = { "10.1.0.2",  "172.16.3.4",     "10.9.0.2", "10.0.0.2",
				    "10.0.0.1",  "10.1.0.255",     "8.8.8.8",  "224.0.0.1",
				    "127.0.0.1", "255.255.255.255" };
static const char *const dst6[] = { "2001:db8:1::2", "2001:db8:9::2", "2001:db8::2", "2001:db8::1",
				    "2a00::1",       "ff02::1",       "fe80::1",     "::1" };

enum to { ANY, REACHED, ONE_PORT };

/* A good packet. To one port: one that fits its MTU. */
static void good(struct frame *f, bool v6, enum to to)
{
	static const uint32_t sizes[] = { 0, 0, 0, 1, 18, 500, 1460, 1472, 1473, 1480 };
	uint32_t payload = sizes[rnd(to == ONE_PORT ? 7 : HO_ARRAY_LEN(sizes))];
	uint8_t *ip = f->byte + PK_ETH_BYTES;

	if (v6) {
		f->bytes =
			rig_udp(f->byte, 0, "2001:db8::2",
				dst6[rnd((unsigned[]){ HO_ARRAY_LEN(dst6), 3, 1 }[to])], payload);
		ip[7] = (uint8_t)(2 + rnd(254));
		if (rnd(2)) {
			pk_store32(ip + 8, 0x20000000 + rnd(1 << 28));
			pk_store32(ip + 12, rnd(4));
			pk_store32(ip + 20, rnd(1 << 20));
		}
		ip[1] = (uint8_t)rnd(256);
	} else {
		f->bytes =
			rig_udp(f->byte, 0, "10.0.0.2",
				dst4[rnd((unsigned[]){ HO_ARRAY_LEN(dst4), 4, 2 }[to])], payload);
		ip[1] = (uint8_t)rnd(256);
		pk_store16(ip + 4, (uint16_t)rnd(65536));
		ip[8] = (uint8_t)(2 + rnd(254));
		if (rnd(2))
			pk_store32(ip + 12, 0x0b000000 + rnd(100u << 24));
		ip_sum(ip);
		if (!rnd(4)) {
			/* A checksum from which counting on is not just one more. */
			uint32_t sum = (uint32_t[]){ 0xfffe, 0xfffd, 0xfeff, 0xfdff, 0 }[rnd(5)];

			pk_store16(ip + 4, (uint16_t)((pk_load16(ip + 4) + pk_load16(ip + 10) +
						       65535 - sum) %
						      65535));
			ip_sum(ip);
		}
		/* The other zero is right, too. */
		if (!rnd(4) && !pk_load16(ip + 10))
			memset(ip + 10, 0xff, 2);
	}
	if (!rnd(4))
		f->bytes += rnd(40); /* padding */
	f->off = PK_HEADROOM_BYTES;
	if (!rnd(20))
		f->off = (uint16_t)(64 + rnd(PK_STRIDE_BYTES - 64 - f->bytes));
	f->flags = f->vlan = 0;
}

/* One thing about it is at, or beyond, the edge of what is good. */
static void spoil4(struct frame *f)
{
	static const uint32_t src[] = { 0x00000000, 0x00ffffff, 0x01000000, 0x7effffff,
					0x7f000001, 0x80000000, 0xa9fdffff, 0xa9fe0000,
					0xa9feffff, 0xa9ff0000, 0xdfffffff, 0xe0000000,
					0xffffffff, 0x0a000001, 0x0a0100ff, 0x0a090001 };
	uint8_t *ip = f->byte + PK_ETH_BYTES;
	bool sum = true;

	switch (rnd(9)) {
	case 0:
		ip[0] = (uint8_t)(rnd(2) ? 0x40 + rnd(16) : rnd(256));
		break;
	case 1:
		pk_store16(ip + 2, (uint16_t)(f->bytes - PK_ETH_BYTES - 1 + rnd(3)));
		break;
	case 2:
		pk_store16(ip + 2, (uint16_t)(18 + rnd(4)));
		break;
	case 3:
		ip[8] = (uint8_t)rnd(3);
		break;
	case 4:
		ip[10 + rnd(2)] ^= (uint8_t)(1 << rnd(8));
		sum = false;
		break;
	case 5:
		pk_store16(ip + 10, rnd(2) ? 0 : 0xffff);
		sum = false;
		break;
	case 6:
		ip[2 * rnd(10) + 1]++;
		sum = false;
		break;
	default:
		pk_store32(ip + 12, src[rnd(HO_ARRAY_LEN(src))]);
		break;
	}
	if (sum)
		ip_sum(ip);
}

static void spoil6(struct frame *f)
{
	static const char *const src[] = { "::",          "::1",          "::2001",
					   "0:0:0:1::1",  "0:1::1",       "::ffff:10.0.0.2",
					   "fdff::1",     "fe00::1",      "fe80::1",
					   "feff::1",     "ff02::1",      "ffff::1",
					   "2001:db8::1", "2001:db8:1::1" };
	uint8_t *ip = f->byte + PK_ETH_BYTES;
	struct ro_addr a;

	switch (rnd(6)) {
	case 0:
		ip[0] ^= (uint8_t)(1 << rnd(8));
		break;
	case 1:
		pk_store16(ip + 4,
			   (uint16_t)(f->bytes - PK_ETH_BYTES - PK_IPV6_BYTES - 1 + rnd(3)));
		break;
	case 2:
		ip[6] = PK_IP_HOPOPTS;
		break;
	case 3:
		ip[7] = (uint8_t)rnd(3);
		break;
	default:
		a = rig_addr(src[rnd(HO_ARRAY_LEN(src))]);
		memcpy(ip + 8, a.byte, 16);
		break;
	}
}

/* The frame around it. */
static void spoil_frame(struct frame *f)
{
	switch (rnd(6)) {
	case 0:
		f->byte[rnd(6)] ^= (uint8_t)(1 << rnd(8));
		break;
	case 1:
		f->byte[12 + rnd(2)] ^= (uint8_t)(1 << rnd(8));
		break;
	case 2:
		f->bytes = PK_ETH_BYTES + rnd(60);
		break;
	case 3:
		f->flags = PK_VLAN;
		f->vlan = (uint16_t)(rnd(2) ? 0 : RIG_VLAN);
		break;
	case 4:
		f->flags = rnd(2) ? PK_CSUM_PARTIAL : PK_CSUM_OK | PK_HASH;
		break;
	default:
		f->off = (uint16_t)(PK_STRIDE_BYTES - f->bytes);
		break;
	}
}

/* Of one kind, of both, with some odd ones, with many. */
static unsigned make(struct frame *f, bool *uniform)
{
	unsigned n = rnd(3) ? PK_BURST : 1 + rnd(PK_BURST);
	unsigned both = rnd(3), odd = (unsigned[]){ 0, 40, 3 }[rnd(3)];
	enum to to = rnd(3);
	bool v6 = rnd(2);

	*uniform = both != 0 && !odd && to != ANY;
	for (unsigned i = 0; i < n; i++) {
		bool six = both == 0 ? rnd(2) : v6;

		good(&f[i], six, to);
		if (odd && !rnd(odd)) {
			if (rnd(4) == 0)
				spoil_frame(&f[i]);
			else if (six)
				spoil6(&f[i]);
			else
				spoil4(&f[i]);
		}
	}
	return n;
}

/* --- what comes out ----------------------------------------------------------------------------
 */

struct out {
	uint32_t port, bytes, flags, meta;
	uint8_t byte[2100];
};

struct outs {
	unsigned n;
	struct out out[4 * PK_BURST];
};

static void collect(struct rig *r, struct outs *o)
{
	o->n = 0;
	for (unsigned p = 0; p < RIG_PORTS; p++) {
		struct pk_slot s[PK_BURST];
		unsigned n;

		while ((n = port_rx(r->far[p]->rxq[0], s, PK_BURST)) > 0) {
			for (unsigned i = 0; i < n; i++) {
				struct out *out = &o->out[o->n++];
				uint8_t *ip = out->byte + PK_ETH_BYTES;

				assert_true(o->n <= HO_ARRAY_LEN(o->out));
				memset(out, 0, sizeof(*out));
				out->port = p;
				out->bytes = s[i].len;
				out->flags = s[i].flags;
				assert_true(s[i].len <= sizeof(out->byte));
				memcpy(out->byte, pk_data(arena, &s[i]), s[i].len);
				/* Errors are numbered as they are made. */
				if (ip[0] == 0x45 && ip[9] == PK_IP_ICMP)
					memset(ip + 4, 0, 2), memset(ip + 10, 0, 2);
			}
			pk_free_slots(r->far_cache, s, n);
		}
	}
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct out));
}

/* The same frames, in whatever order. */
static bool same_set(const struct outs *a, const struct outs *b)
{
	static struct outs x, y;

	x = *a;
	y = *b;
	qsort(x.out, x.n, sizeof(x.out[0]), compare);
	qsort(y.out, y.n, sizeof(y.out[0]), compare);
	return x.n == y.n && !memcmp(x.out, y.out, x.n * sizeof(x.out[0]));
}

static bool same_order(const struct outs *a, const struct outs *b)
{
	return a->n == b->n && !memcmp(a->out, b->out, a->n * sizeof(a->out[0]));
}

static struct pk_slot slot_of(struct rig *r, const struct frame *f)
{
	struct pk_slot s = {
		.off = f->off, .len = (uint16_t)f->bytes, .flags = f->flags, .vlan = f->vlan
	};

	if (!pk_alloc(r->cache, &s.buf, 1))
		abort();
	memcpy(pk_data(arena, &s), f->byte, f->bytes);
	return s;
}

static void input(struct rig *r, const struct frame *f, unsigned n)
{
	struct pk_slot s[PK_BURST];

	for (unsigned i = 0; i < n; i++) {
		s[i] = slot_of(r, &f[i]);
		s[i].meta = i;
	}
	ro_worker_input(r->worker, 0, s, n);
	ro_worker_housekeep(r->worker);
}

static void restore(char *kept)
{
	if (kept)
		setenv("HOLDOFF_SIMD", kept, 1);
	else
		unsetenv("HOLDOFF_SIMD");
	free(kept);
}

/* --- the test ----------------------------------------------------------------------------------
 */

static int setup(void **state)
{
	struct pk_arena_config config = { .buffers = 32768, .no_huge = true };
	const char *before = getenv("HOLDOFF_SIMD");
	char *kept = before ? strdup(before) : NULL;

	if (rt_os_create(&rt, NULL) || pk_arena_create(&config, &arena, NULL))
		return -1;
	for (unsigned v = 0; v < VARIANTS; v++) {
		struct rig *r = &rig[v];

		setenv("HOLDOFF_SIMD", level[v], 1);
		rig_open(r, rt, arena, name[v], v == SLOW);
		rig_ifaces(r);
		rig_neigh(r, 1, "10.0.0.2", 0x02);
		rig_neigh(r, 2, "10.1.0.2", 0x12);
		rig_neigh(r, RIG_PORTS + 1, "10.9.0.2", 0x92);
		rig_neigh(r, 1, "2001:db8::2", 0x02);
		rig_neigh(r, 1, "fe80::1", 0x03);
		rig_neigh(r, 2, "2001:db8:1::2", 0x12);
		rig_neigh(r, RIG_PORTS + 1, "2001:db8:9::2", 0x92);
		rig_route(r, "172.16.0.0", 12, RO_UNICAST, 2, "10.1.0.2");
	}
	restore(kept);
	return 0;
}

static int teardown(void **state)
{
	int missing;

	for (unsigned v = 0; v < VARIANTS; v++)
		rig_close(&rig[v]);
	missing = (int)pk_arena_missing(arena);
	pk_arena_destroy(arena);
	rt_destroy(rt);
	return missing;
}

static void test_same(void **state)
{
	static struct frame frames[PK_BURST];
	static struct outs outs[VARIANTS];
	struct ro_counters count[VARIANTS];

	for (unsigned b = 0; b < BURSTS; b++) {
		bool uniform;
		unsigned n = make(frames, &uniform);

		for (unsigned v = 0; v < VARIANTS; v++) {
			struct outs *o = &outs[v];

			input(&rig[v], frames, n);
			collect(&rig[v], o);
			ro_router_counters(rig[v].router, &count[v]);
			/* What is not of the same kind may overtake. */
			if (!same_set(o, &outs[SLOW]) ||
			    (v > SCALAR && uniform && !same_order(o, &outs[SCALAR])) ||
			    memcmp(count[v].drops, count[SLOW].drops, sizeof(count[v].drops)) !=
				    0 ||
			    count[v].sent != count[SLOW].sent ||
			    count[v].received_bytes != count[SLOW].received_bytes ||
			    (v > SCALAR && count[v].fast != count[SCALAR].fast)) {
				print_error("burst %u of %u frames: %s differs\n", b, n, name[v]);
				fail();
			}
		}
	}
	assert_true(count[SCALAR].fast > BURSTS * PK_BURST / 4);
	assert_true(count[SCALAR].fast < count[SCALAR].sent);
	assert_int_equal(count[SLOW].fast, 0);
	/* What waits is asked for by the clock, in one router sooner than in the next. */
	assert_int_equal(count[SLOW].held, 0);
	for (unsigned v = 0; v < VARIANTS; v++) {
		struct ho_err err = { 0 };

		ro_worker_finish(rig[v].worker);
		if (ro_router_check(rig[v].router, &err) < 0) {
			print_error("%s: %s\n", name[v], err.text);
			fail();
		}
	}
}

/* The vector instructions really are what good packets take. */
static void test_groups(void **state)
{
	static struct frame frames[PK_BURST];
	static const struct ro_own own;
	static struct ro_burst b;
	const char *before = getenv("HOLDOFF_SIMD");
	char *kept = before ? strdup(before) : NULL;

	for (unsigned t = 0; t < 2 * (VARIANTS - SCALAR); t++) {
		struct ro_sorter o = { .own = &own, .stride_bytes = PK_STRIDE_BYTES };
		const struct ro_fast *fast;
		struct pk_slot s[PK_BURST];

		setenv("HOLDOFF_SIMD", level[SCALAR + t / 2], 1);
		fast = ro_fast_choose();
		if (!fast->width)
			continue;
		for (unsigned i = 0; i < PK_BURST; i++) {
			good(&frames[i], t % 2, REACHED);
			frames[i].off = PK_HEADROOM_BYTES;
			s[i] = slot_of(&rig[SCALAR], &frames[i]);
		}
		memcpy(&o.untagged, frames[0].byte, sizeof(o.untagged));
		o.untagged <<= 16;
		b.v4.n = b.v6.n = 0;
		fast->fetch(arena, s, PK_BURST, &b);
		for (unsigned i = 0; i < PK_BURST; i += fast->width)
			assert_int_equal(fast->group(&b, &o, s, i), (1u << fast->width) - 1);
		assert_int_equal(t % 2 ? b.v6.n : b.v4.n, PK_BURST);
		pk_free_slots(rig[SCALAR].cache, s, PK_BURST);
	}
	restore(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_same),
					    cmocka_unit_test(test_groups) };

	return cmocka_run_group_tests(tests, setup, teardown);
}
