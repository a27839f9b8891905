// SPDX-License-Identifier: BSD-2-Clause
/*
 * The job of bench/forward.c in DPDK: a small l3fwd over rte_lpm, rte_fib or rte_fib6, between the
 * same kind of source and sink.
 *
 *   peer_l3fwd 4|6 lpm|fib ROUTES SECONDS [EAL options]
 *   peer_l3fwd ports lpm|fib plain|checked SECONDS [EAL options]
 *
 * It is told which of two ways to measure: `plain` checks version, length and TTL and counts TTL
 * and checksum, as DPDK's own l3fwd does, which leaves the header's checksum to the hardware;
 * `checked` also does what RFC 1812 5.2.2 and 5.3.7 ask of a router, as holdoff does: header
 * checksum and source address.
 *
 * With `ports` it routes IPv4 between DPDK's ports 0 and 1, which the EAL options make, in place of
 * source and sink: 16 prefixes of 64 addresses each from 10.253.0.0 on, by one neighbour behind
 * each port in turns. The second of the logical cores works; when the time is up or a signal comes
 * it says what it counted.
 *
 * Built by bench/forward.sh and bench/forward_memif.sh, once for each DPDK.
 */
#include <signal.h>

#include <rte_byteorder.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_lpm.h>
#include <rte_mbuf.h>

#include "forward_stream.h"

#define BURST_TICKS 8192u /* quarters of a cycle a packet that are told apart */

enum method { LPM, FIB };

struct hop {
	uint8_t eth[14];
	uint16_t port;
};

/* What goes to a port: gathered, and sent a burst at a time by a pointer, as rte_eth_tx_burst. */
struct out {
	unsigned n;
	struct rte_mbuf *m[STREAM_BURST];
	void (*send)(struct rte_mbuf **m, unsigned n);
};

static struct rte_mbuf *circle[STREAM_CIRCLE];
static uint32_t head, tail, next;
static uint64_t sent, dropped, answers, received, ring_full;
static bool v6, checking, with_ports, ending;
static struct rte_lpm *lpm;
static struct rte_fib *fib;
static struct rte_fib6 *fib6;
static uint64_t bursts[BURST_TICKS];
static struct hop hops[STREAM_GATEWAYS + 1];
static struct out outs[2];
static void (*forward)(struct rte_mbuf **m);

static void sink(struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		circle[head++ % STREAM_CIRCLE] = m[i];
	if (unlikely(checking)) {
		for (unsigned i = 0; i < n; i++)
			answers += stream_answer(v6, rte_pktmbuf_mtod(m[i], uint8_t *));
	}
	sent += n;
}

/* Writes of an mbuf what a driver's receive does. */
static inline void take(struct rte_mbuf **m)
{
	for (unsigned i = 0; i < STREAM_BURST; i++) {
		struct rte_mbuf *b = m[i] = circle[tail++ % STREAM_CIRCLE];

		b->data_off = RTE_PKTMBUF_HEADROOM;
		rte_mbuf_refcnt_set(b, 1);
		b->nb_segs = 1;
		b->port = 0;
		b->ol_flags = 0;
		b->packet_type = 0;
		b->pkt_len = b->data_len = STREAM_FRAME;
		memcpy(rte_pktmbuf_mtod(b, uint8_t *), stream_template[next++ % STREAM_TEMPLATES],
		       64);
	}
}

static inline uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static inline bool good4(const struct rte_mbuf *m, const uint8_t *ip, bool checked)
{
	uint32_t bytes = pk_load16(ip + 2);
	uint64_t sum;

	if (ip[0] != 0x45 || ip[8] <= 1 || bytes < PK_IPV4_BYTES ||
	    bytes > m->pkt_len - PK_ETH_BYTES)
		return false;
	if (!checked)
		return true;
	sum = (uint64_t)word(ip) + word(ip + 4) + word(ip + 8) + word(ip + 12) + word(ip + 16);
	return pk_csum_fold(sum) == 0xffff && ip[12] != 0 && ip[12] != 127 && ip[12] < 224 &&
	       !(ip[12] == 169 && ip[13] == 254);
}

static inline bool good6(const struct rte_mbuf *m, const uint8_t *ip, bool checked)
{
	if (ip[0] >> 4 != 6 || ip[7] <= 1 ||
	    (uint32_t)pk_load16(ip + 4) + PK_IPV6_BYTES > m->pkt_len - PK_ETH_BYTES)
		return false;
	return !checked || (ip[8] < 0xfe && (word(ip + 8) || word(ip + 12)));
}

static inline void drop(struct rte_mbuf *m)
{
	dropped++;
	if (with_ports)
		rte_pktmbuf_free(m);
	else
		circle[head++ % STREAM_CIRCLE] = m;
}

static inline void flush(struct out *o)
{
	if (o->n)
		o->send(o->m, o->n);
	o->n = 0;
}

static inline void send_on(struct rte_mbuf *m, uint32_t number, bool six)
{
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *), *ip = eth + PK_ETH_BYTES;
	const struct hop *h = &hops[number];
	struct out *o = &outs[h->port];

	if (unlikely(number == 0)) {
		drop(m);
		return;
	}
	if (six) {
		ip[7]--;
	} else {
		uint16_t csum;

		memcpy(&csum, ip + 10, 2);
		ip[8]--;
		csum = (uint16_t)(csum + 1 + (csum == 0xffff));
		memcpy(ip + 10, &csum, 2);
	}
	memcpy(eth, h->eth, 14);
	o->m[o->n++] = m;
	if (unlikely(o->n == STREAM_BURST))
		flush(o);
}

static inline __attribute__((always_inline)) void run4(struct rte_mbuf **in, unsigned count,
						       enum method method, bool checked)
{
	uint32_t dst[STREAM_BURST + 4], nh4[STREAM_BURST + 4];
	struct rte_mbuf *m[STREAM_BURST];
	uint64_t nh8[STREAM_BURST];
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		rte_prefetch0(rte_pktmbuf_mtod(in[i], void *));
	for (unsigned i = 0; i < count; i++) {
		const uint8_t *eth = rte_pktmbuf_mtod(in[i], uint8_t *);

		if (unlikely(pk_load16(eth + 12) != PK_ETH_IPV4 ||
			     !good4(in[i], eth + PK_ETH_BYTES, checked))) {
			drop(in[i]);
			continue;
		}
		m[n] = in[i];
		dst[n++] = pk_load32(eth + PK_ETH_BYTES + 16);
	}
	if (method == LPM) {
		for (unsigned i = 0; i < n; i += 4)
			rte_lpm_lookupx4(lpm, _mm_loadu_si128((const __m128i *)(dst + i)), nh4 + i,
					 0);
	} else {
		rte_fib_lookup_bulk(fib, dst, nh8, (int)n);
	}
	for (unsigned i = 0; i < n; i++)
		send_on(m[i], method == LPM ? nh4[i] : (uint32_t)nh8[i], false);
	flush(&outs[1]);
}

static inline __attribute__((always_inline)) void run6(struct rte_mbuf **in, bool checked)
{
	static uint8_t dst[STREAM_BURST][RTE_FIB6_IPV6_ADDR_SIZE];
	struct rte_mbuf *m[STREAM_BURST];
	uint64_t nh[STREAM_BURST];
	unsigned n = 0;

	for (unsigned i = 0; i < STREAM_BURST; i++)
		rte_prefetch0(rte_pktmbuf_mtod(in[i], void *));
	for (unsigned i = 0; i < STREAM_BURST; i++) {
		const uint8_t *eth = rte_pktmbuf_mtod(in[i], uint8_t *);

		if (unlikely(pk_load16(eth + 12) != PK_ETH_IPV6 ||
			     !good6(in[i], eth + PK_ETH_BYTES, checked))) {
			drop(in[i]);
			continue;
		}
		m[n] = in[i];
		memcpy(dst[n++], eth + PK_ETH_BYTES + 24, 16);
	}
	rte_fib6_lookup_bulk(fib6, dst, nh, (int)n);
	for (unsigned i = 0; i < n; i++)
		send_on(m[i], (uint32_t)nh[i], true);
	flush(&outs[1]);
}

static void lpm_plain(struct rte_mbuf **m)
{
	run4(m, STREAM_BURST, LPM, false);
}
static void lpm_checked(struct rte_mbuf **m)
{
	run4(m, STREAM_BURST, LPM, true);
}
static void fib_plain(struct rte_mbuf **m)
{
	run4(m, STREAM_BURST, FIB, false);
}
static void fib_checked(struct rte_mbuf **m)
{
	run4(m, STREAM_BURST, FIB, true);
}
static void fib6_plain(struct rte_mbuf **m)
{
	run6(m, false);
}
static void fib6_checked(struct rte_mbuf **m)
{
	run6(m, true);
}

static void select_way(bool lookup_lpm, bool checked)
{
	if (v6)
		forward = checked ? fib6_checked : fib6_plain;
	else if (lookup_lpm)
		forward = checked ? lpm_checked : lpm_plain;
	else
		forward = checked ? fib_checked : fib_plain;
}

static void measure(const char *way, double seconds, struct stream_result *r)
{
	double end = stream_now() + seconds;
	struct rte_mbuf *m[STREAM_BURST];

	select_way(lpm != NULL, way[0] == 'c');
	while (stream_now() < end) {
		uint64_t t0 = rt_tsc_read(), t1, t2;

		for (unsigned i = 0; i < 64; i++) {
			take(m);
			sink(m, STREAM_BURST);
		}
		t1 = rt_tsc_read();
		for (unsigned i = 0; i < 64; i++) {
			take(m);
			forward(m);
		}
		t2 = rt_tsc_read();
		r->base += t1 - t0;
		r->ticks += t2 - t1;
		r->packets += 64 * STREAM_BURST;
	}
}

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "peer_l3fwd: %s: more memory for DPDK?\n", what);
	exit(2);
}

static void fill_lpm(uint32_t routes)
{
	struct rte_lpm_config conf = { .max_rules = routes + 16, .number_tbl8s = 256 };

	lpm = rte_lpm_create("lpm", 0, &conf);
	need(lpm, "no rte_lpm");
	for (uint32_t i = 0; i < routes; i++) {
		uint8_t addr[16], len = stream_route(false, i, addr);
		uint32_t nh = 1 + i % STREAM_GATEWAYS;

		/* rte_lpm_add looks through all rules of a length for each new one: the table's
		 * entry for a /24 is written as it would write it. */
		if (routes > 10000)
			lpm->tbl24[pk_load32(addr) >> 8] = (struct rte_lpm_tbl_entry){
				.next_hop = nh & 0xffffff, .valid = 1, .depth = 24
			};
		else
			need(!rte_lpm_add(lpm, pk_load32(addr), len, nh), "a route of rte_lpm");
	}
}

static void fill_fib(uint32_t routes)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.max_routes = (int)routes + 1000,
		.dir24_8 = { .nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = 256 },
	};

	fib = rte_fib_create("fib", 0, &conf);
	need(fib, "no rte_fib");
	for (uint32_t i = 0; i < routes; i++) {
		uint8_t addr[16], len = stream_route(false, i, addr);

		need(!rte_fib_add(fib, pk_load32(addr), len, 1 + i % STREAM_GATEWAYS),
		     "a route of rte_fib");
	}
	if (rte_fib_select_lookup(fib, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512))
		rte_fib_select_lookup(fib, RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
}

static void fill_fib6(uint32_t routes)
{
	bool many = routes > 10000;
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE,
		.max_routes = (int)routes + 1000,
		/* For a /48 three tables of 256 are set aside, however many it shares with others;
		 * the narrow kind has 32767 at most. */
		.trie = { .nh_sz = many ? RTE_FIB6_TRIE_4B : RTE_FIB6_TRIE_2B,
			  .num_tbl8 = many ? 3 * routes + 1000 : 32000 },
	};

	fib6 = rte_fib6_create("fib6", 0, &conf);
	need(fib6, "no rte_fib6");
	for (uint32_t i = 0; i < routes; i++) {
		uint8_t addr[16], len = stream_route(true, i, addr);

		need(!rte_fib6_add(fib6, addr, len, 1 + i % STREAM_GATEWAYS),
		     "a route of rte_fib6");
	}
	if (rte_fib6_select_lookup(fib6, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512))
		rte_fib6_select_lookup(fib6, RTE_FIB6_LOOKUP_TRIE_SCALAR);
}

/* The stream once, its answers added up. */
static uint64_t check(bool checked)
{
	struct rte_mbuf *m[STREAM_BURST];

	select_way(lpm != NULL, checked);
	checking = true;
	sent = answers = 0;
	for (unsigned i = 0; i < STREAM_TEMPLATES / STREAM_BURST; i++) {
		take(m);
		forward(m);
	}
	checking = false;
	if (sent != STREAM_TEMPLATES || dropped) {
		fprintf(stderr, "peer_l3fwd: %llu of %u packets were sent\n",
			(unsigned long long)sent, STREAM_TEMPLATES);
		exit(2);
	}
	return answers;
}

static void transmit(uint16_t port, struct rte_mbuf **m, unsigned n)
{
	unsigned done = rte_eth_tx_burst(port, 0, m, (uint16_t)n);

	sent += done;
	ring_full += n - done;
	rte_pktmbuf_free_bulk(m + done, n - done);
}

static void transmit0(struct rte_mbuf **m, unsigned n)
{
	transmit(0, m, n);
}
static void transmit1(struct rte_mbuf **m, unsigned n)
{
	transmit(1, m, n);
}

/* The cost is that of full bursts: their median leaves out those in which something else ran. */
static inline __attribute__((always_inline)) int work(enum method method, bool checked)
{
	struct rte_mbuf *m[STREAM_BURST];

	while (!__atomic_load_n(&ending, __ATOMIC_RELAXED)) {
		for (uint16_t port = 0; port < 2; port++) {
			uint64_t t0 = rt_tsc_read();
			unsigned n = rte_eth_rx_burst(port, 0, m, STREAM_BURST);

			if (!n)
				continue;
			run4(m, n, method, checked);
			flush(&outs[0]);
			received += n;
			if (n == STREAM_BURST)
				bursts[RTE_MIN((rt_tsc_read() - t0) / (STREAM_BURST / 4),
					       BURST_TICKS - 1)]++;
		}
	}
	return 0;
}

static double median_ticks(void)
{
	uint64_t all = 0, below = 0;
	unsigned i;

	for (i = 0; i < BURST_TICKS; i++)
		all += bursts[i];
	for (i = 0; i < BURST_TICKS - 1 && 2 * (below + bursts[i]) < all; i++)
		below += bursts[i];
	return i / 4.0;
}

static int work_lpm_plain(void *unused)
{
	return work(LPM, false);
}
static int work_lpm_checked(void *unused)
{
	return work(LPM, true);
}
static int work_fib_plain(void *unused)
{
	return work(FIB, false);
}
static int work_fib_checked(void *unused)
{
	return work(FIB, true);
}

static void start_port(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { 0 };

	need(!rte_eth_dev_configure(port, 1, 1, &conf), "a port is not configured");
	need(!rte_eth_rx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL, pool), "no receive queue");
	need(!rte_eth_tx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL), "no transmit queue");
	need(!rte_eth_dev_start(port), "a port does not start");
}

static void on_signal(int sig)
{
	__atomic_store_n(&ending, true, __ATOMIC_RELAXED);
}

/* Frames between two ports. The addresses are those that testpmd's flowgen sends to and holdoff
 * gets from bench/forward_memif.sh. */
static int between_ports(struct rte_mempool *pool, bool lookup_lpm, bool checked, double seconds)
{
	struct rte_lpm_config lpm_conf = { .max_rules = 256, .number_tbl8s = 256 };
	struct rte_fib_conf fib_conf = {
		.type = RTE_FIB_DIR24_8,
		.max_routes = 1000,
		.dir24_8 = { .nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = 256 },
	};
	unsigned worker = rte_get_next_lcore(-1, 1, 0);
	int (*job)(void *);

	need(rte_eth_dev_count_avail() == 2 && worker < RTE_MAX_LCORE,
	     "not two ports and two logical cores");
	with_ports = true;
	outs[0].send = transmit0;
	outs[1].send = transmit1;
	for (uint16_t port = 0; port < 2; port++) {
		hops[1 + port] = (struct hop){
			.eth = { 2, 0, 0, 0, 2, (uint8_t)port, 0, 1, 2, 3, 4, 1, 8, 0 },
			.port = port,
		};
		start_port(port, pool);
	}
	lpm = rte_lpm_create("lpm", 0, &lpm_conf);
	fib = rte_fib_create("fib", 0, &fib_conf);
	need(lpm && fib, "no table");
	for (uint32_t i = 0; i < 16; i++) {
		uint32_t addr = RTE_IPV4(10, 253, 0, 0) + i * 64;

		need(!rte_lpm_add(lpm, addr, 26, 1 + i % 2) &&
			     !rte_fib_add(fib, addr, 26, 1 + i % 2),
		     "a route");
	}
	if (rte_fib_select_lookup(fib, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512))
		rte_fib_select_lookup(fib, RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
	if (lookup_lpm)
		job = checked ? work_lpm_checked : work_lpm_plain;
	else
		job = checked ? work_fib_checked : work_fib_plain;
	need(!rte_eal_remote_launch(job, NULL, worker), "no worker");
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	for (double end = stream_now() + seconds;
	     !__atomic_load_n(&ending, __ATOMIC_RELAXED) && stream_now() < end;)
		rte_delay_us_sleep(10000);
	__atomic_store_n(&ending, true, __ATOMIC_RELAXED);
	rte_eal_wait_lcore(worker);
	printf("{\"received\": %llu, \"sent\": %llu, \"dropped\": %llu, \"ring_full\": %llu, "
	       "\"cycles\": %.2f}\n",
	       (unsigned long long)received, (unsigned long long)sent, (unsigned long long)dropped,
	       (unsigned long long)ring_full, median_ticks());
	return 0;
}

int main(int argc, char **argv)
{
	struct rte_mempool *pool;
	const char *how;
	uint32_t routes, cached = 0;
	double seconds;

	if (argc < 5) {
		fprintf(stderr, "usage: peer_l3fwd 4|6 lpm|fib ROUTES SECONDS "
				"[EAL options]\n"
				"       peer_l3fwd ports lpm|fib plain|checked SECONDS "
				"[EAL options]\n");
		return 1;
	}
	how = argv[1];
	/* Buffers that go round never come back to the pool. */
	if (!strcmp(how, "ports"))
		cached = 256;
	v6 = how[0] == '6';
	routes = (uint32_t)atoi(argv[3]);
	seconds = atof(argv[4]);
	argv[4] = argv[0];
	need(rte_eal_init(argc - 4, argv + 4) >= 0, "DPDK does not start");
	pool = rte_pktmbuf_pool_create("pool", STREAM_CIRCLE + 4096, cached, 0,
				       RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	need(pool, "no pool of buffers");
	if (!strcmp(how, "ports"))
		return between_ports(pool, argv[2][0] == 'l', argv[3][0] == 'c', seconds);
	for (uint32_t i = 0; i < STREAM_CIRCLE; i++) {
		circle[i] = rte_pktmbuf_alloc(pool);
		need(circle[i], "no buffer");
	}
	head = STREAM_CIRCLE;
	for (uint32_t i = 0; i < STREAM_GATEWAYS; i++) {
		struct hop *h = &hops[1 + i];

		stream_gateway(i, h->eth);
		memcpy(h->eth + 6, (uint8_t[6]){ 2, 0, 0, 0, 0, 1 }, 6);
		pk_store16(h->eth + 12, v6 ? PK_ETH_IPV6 : PK_ETH_IPV4);
		h->port = 1;
	}
	outs[0].send = outs[1].send = sink;
	stream_fill(v6, routes);
	if (v6)
		fill_fib6(routes);
	else if (argv[2][0] == 'l')
		fill_lpm(routes);
	else
		fill_fib(routes);
	if (check(false) != check(true)) {
		fprintf(stderr, "peer_l3fwd: the two ways differ\n");
		return 2;
	}
	return stream_serve(answers, 1, measure, seconds);
}
