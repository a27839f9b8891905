// SPDX-License-Identifier: BSD-2-Clause
/*
 * forward FAMILY ROUTES SECONDS [WORKERS [CPU]]: cycles a packet of the router's workers alone,
 * with the routes, packets and turns of forward_stream.h. Each worker is a thread on a CPU of its
 * own (CPU, or the last one, and downwards), with a circle of 64 K buffers: a source that copies a
 * template into each buffer, as a replay from memory does, and a sink that puts the buffers back;
 * what both cost together is measured apart.
 *
 *   circle of buffers --> template copied --> ro_worker_input --> sink --> circle
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "forward_stream.h"
#include "port/port.h"
#include "route/worker.h"

#define WORKERS_MAX 8u

/* A worker with its source and its sink; both ports have the same transmit queue. */
struct lane {
	struct port_txq txq;
	struct ro_worker *worker;
	uint32_t *circle;
	uint32_t head, tail, next;
	uint64_t answers;
	bool checking;
	unsigned cpu;
	double end;
	struct stream_result result;
} HO_CACHE_ALIGNED;

static struct pk_arena *arena;
static struct lane lane[WORKERS_MAX];
static unsigned workers = 1, last_cpu;
static bool v6;
static pthread_barrier_t barrier;

static unsigned sink(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	struct lane *l = HO_CONTAINER_OF(q, struct lane, txq);

	for (unsigned i = 0; i < n; i++)
		l->circle[l->head++ % STREAM_CIRCLE] = slots[i].buf;
	if (ho_unlikely(l->checking)) {
		for (unsigned i = 0; i < n; i++)
			l->answers += stream_answer(v6, pk_data(arena, &slots[i]));
	}
	q->accepted += n;
	port_count(&q->ctr, n, (uint64_t)n * STREAM_FRAME);
	return n;
}

static void fill_tables(struct ro_tables *t, uint32_t routes)
{
	static struct ro_route r;
	struct ro_iface_config c = {
		.ifindex = 1, .mac = { 2, 0, 0, 0, 0, 1 }, .mtu = 1500, .up = true
	};

	if (ro_iface_set(t, &c, NULL))
		abort();
	c.ifindex = 2;
	c.port = 1;
	if (ro_iface_set(t, &c, NULL))
		abort();
	r = (struct ro_route){ .kind = RO_UNICAST, .hops = 1 };
	r.dst.addr.family = v6 ? RO_IPV6 : RO_IPV4;
	for (uint32_t i = 0; i < routes; i++) {
		const uint8_t host = (uint8_t)(1 + i % STREAM_GATEWAYS);
		uint8_t mac[6];

		r.dst.len = stream_route(v6, i, r.dst.addr.byte);
		r.hop[0] = (struct ro_hop){ .ifindex = 2, .weight = 1 };
		r.hop[0].via = (struct ro_addr){ .family = RO_IPV4, .byte = { 10, 0, 0, host } };
		if (v6)
			r.hop[0].via = (struct ro_addr){ .family = RO_IPV6,
							 .byte = { 0x2a, 1, [15] = host } };
		if (ro_route_set(t, &r, NULL))
			abort();
		stream_gateway(i, mac);
		if (i < STREAM_GATEWAYS)
			ro_neigh_set(t, 2, &r.hop[0].via, mac, NULL);
	}
}

static inline void take(struct lane *l, struct pk_slot *s)
{
	for (unsigned i = 0; i < STREAM_BURST; i++) {
		s[i] = (struct pk_slot){ .buf = l->circle[l->tail++ % STREAM_CIRCLE],
					 .off = PK_HEADROOM_BYTES,
					 .len = STREAM_FRAME };
		memcpy(pk_data(arena, &s[i]), stream_template[l->next++ % STREAM_TEMPLATES], 64);
	}
}

static inline void forward_burst(struct lane *l, struct pk_slot *s)
{
	take(l, s);
	ro_worker_input(l->worker, 0, s, STREAM_BURST);
	ro_flush(l->worker);
}

static void *run(void *arg)
{
	struct lane *l = arg;
	struct pk_slot s[STREAM_BURST];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(l->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	pthread_barrier_wait(&barrier);
	l->result = (struct stream_result){ 0 };
	while (stream_now() < l->end) {
		/* Alternately without and with the router between source and sink. */
		uint64_t t0 = rt_tsc_read(), t1, t2;

		for (unsigned i = 0; i < 64; i++) {
			take(l, s);
			sink(&l->txq, s, STREAM_BURST);
		}
		t1 = rt_tsc_read();
		for (unsigned i = 0; i < 64; i++)
			forward_burst(l, s);
		t2 = rt_tsc_read();
		l->result.base += t1 - t0;
		l->result.ticks += t2 - t1;
		l->result.packets += 64 * STREAM_BURST;
	}
	return NULL;
}

static void measure(const char *way, double seconds, struct stream_result *r)
{
	pthread_t thread[WORKERS_MAX];
	double end = stream_now() + seconds;

	(void)way; /* there is one */
	for (unsigned i = 0; i < workers; i++) {
		lane[i].end = end;
		if (pthread_create(&thread[i], NULL, run, &lane[i]))
			abort();
	}
	for (unsigned i = 0; i < workers; i++) {
		pthread_join(thread[i], NULL);
		r[i] = lane[i].result;
	}
}

/* The stream once, its answers added up; all of it must have gone the fast path. */
static uint64_t check(struct lane *l, struct ro_router *router)
{
	struct pk_slot s[STREAM_BURST];
	struct ro_counters before, after;

	ro_router_counters(router, &before);
	l->checking = true;
	for (unsigned i = 0; i < STREAM_TEMPLATES / STREAM_BURST; i++)
		forward_burst(l, s);
	l->checking = false;
	ro_router_counters(router, &after);
	if (after.fast - before.fast != STREAM_TEMPLATES) {
		fprintf(stderr, "forward: %llu of %u packets took the fast path\n",
			(unsigned long long)(after.fast - before.fast), STREAM_TEMPLATES);
		exit(2);
	}
	return l->answers;
}

static void lane_init(struct lane *l, unsigned i, struct pk_cache *cache)
{
	l->txq.tx = sink;
	l->cpu = last_cpu - i;
	l->next = i * (STREAM_TEMPLATES / WORKERS_MAX);
	l->head = STREAM_CIRCLE;
	l->circle = malloc(STREAM_CIRCLE * sizeof(*l->circle));
	for (uint32_t k = 0; k < STREAM_CIRCLE; k++) {
		if (!l->circle || !pk_alloc(cache, &l->circle[k], 1))
			abort();
		/* No page is to come while the clock runs. */
		memset(pk_buffer(arena, l->circle[k]), 0, PK_STRIDE_BYTES);
	}
}

int main(int argc, char **argv)
{
	struct pk_arena_config ac = { 0 };
	uint32_t routes = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	double seconds = argc > 3 ? atof(argv[3]) : 0;
	struct pk_cache *cache[WORKERS_MAX];
	struct port_txq *txqs[WORKERS_MAX];
	struct port port = { .txq = txqs };
	struct ro_port ports[2] = { { NULL, &port }, { NULL, &port } };
	struct ro_router_config c = {
		.port = ports, .ports = 2, .cache = cache, .end_ns = RT_FOREVER
	};
	struct ro_router *router;

	if (argc > 4)
		workers = (unsigned)atoi(argv[4]);
	/* The last CPU first: interrupts usually go to the first one. */
	last_cpu = argc > 5 ? (unsigned)atoi(argv[5]) : (unsigned)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	if (argc < 4 || routes < STREAM_GATEWAYS || seconds <= 0 || workers < 1 ||
	    workers > WORKERS_MAX || last_cpu + 1 < workers) {
		fprintf(stderr,
			"usage: forward 4|6 ROUTES SECONDS [WORKERS [CPU]]; routes from %u, no "
			"more workers than CPUs\n",
			STREAM_GATEWAYS);
		return 1;
	}
	v6 = argv[1][0] == '6';
	ac.buffers = workers * (STREAM_CIRCLE + 4096);
	if (rt_os_create(&c.rt, NULL) || pk_arena_create(&ac, &arena, NULL) ||
	    ro_tables_create(2, NULL, &c.tables, NULL) ||
	    pthread_barrier_init(&barrier, NULL, workers))
		return 2;
	stream_fill(v6, routes);
	for (unsigned i = 0; i < workers; i++) {
		if (pk_cache_create(arena, &cache[i], NULL))
			return 2;
		lane_init(&lane[i], i, cache[i]);
		txqs[i] = &lane[i].txq;
	}
	port.n_txq = c.workers = workers;
	if (ro_router_create(&c, &router, NULL))
		return 2;
	for (unsigned i = 0; i < workers; i++)
		lane[i].worker = ro_router_worker(router, i);
	fill_tables(c.tables, routes);
	ro_tables_poll(c.tables, 1);
	return stream_serve(check(&lane[0], router), workers, measure, seconds);
}
