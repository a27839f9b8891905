// SPDX-License-Identifier: BSD-2-Clause
/*
 * One end of a memif interface that does what testpmd's forwarding modes do, over the library:
 *
 *   tx PORT         sends frames of its own making, each into a fresh buffer (txonly)
 *   rx PORT         receives and frees (rxonly)
 *   io PORT         sends back what it receives, untouched (io)
 *   loop PORT PORT  sends on the first, receives on the second, in one thread
 *
 * Prints one JSON object: what was sent, received and lost, and the rate of the measured time,
 * which begins a while after the first frame went through. Exit status 2 when the balance is
 * broken.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "port/port.h"

/* Turns in which nothing moved until others may have the CPU. */
#define PATIENCE_TURNS 1024u
#define DRAIN_NS       3000000000ull

struct peer {
	const char *mode;
	const char *spec[2];
	unsigned specs;
	int cpu;
	uint64_t count;  /* frames to send, 0 = no end */
	uint64_t expect; /* frames to receive, then end; 0 = no end */
	double seconds, warmup;
	unsigned size, burst, buffers;
	bool interrupt; /* sleep when there is nothing to receive */
	bool hold;      /* when done say so, and stay connected until a signal comes */
	bool link_end;  /* end when the link was up and goes down */
	struct rt *rt;
	struct pk_arena *arena;
	struct pk_cache *cache;
	struct port *port[2];
	uint8_t frame[1518];
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

/* A UDP frame between documentation addresses; the peers do not look at it. */
static void build(struct peer *p)
{
	static const uint8_t head[42] = {
		0x02, 0, 0,   0,  0,   2, 0x02, 0, 0,  0,  0, 1,  0x08, 0x00,
		0x45, 0, 0,   46, 0,   0, 0,    0, 64, 17, 0, 0,  192,  0,
		2,    1, 198, 51, 100, 1, 4,    0, 0,  9,  0, 26, 0,    0,
	};

	memcpy(p->frame, head, sizeof(head));
}

static unsigned make(struct peer *p, struct pk_slot *slots, unsigned n)
{
	uint32_t bufs[PK_BURST];

	n = pk_alloc(p->cache, bufs, n);
	for (unsigned i = 0; i < n; i++) {
		slots[i] = (struct pk_slot){ .buf = bufs[i],
					     .off = PK_HEADROOM_BYTES,
					     .len = (uint16_t)p->size };
		memcpy(pk_data(p->arena, &slots[i]), p->frame, p->size);
	}
	return n;
}

static bool link_is_up(const struct port *port)
{
	return !port->ops->link_up || port->ops->link_up((struct port *)port);
}

static void nap(struct peer *p, struct port *port)
{
	struct rt_event *ev = port->ops->rx_event(port->rxq[0]);

	if (!port->ops->arm(port->rxq[0]))
		rt_wait(p->rt, &ev, 1, rt_now_ns(p->rt) + 100000000);
	port->ops->disarm(port->rxq[0]);
}

/* The loop: all modes are a matter of which halves of it run. */
static void run(struct peer *p, double *pps)
{
	const bool makes = !strcmp(p->mode, "tx") || !strcmp(p->mode, "loop");
	const bool takes = strcmp(p->mode, "tx") != 0, returns = !strcmp(p->mode, "io");
	struct port *out = p->port[0], *in = p->port[p->specs - 1];
	struct port_txq *tx = out->txq[0];
	struct port_rxq *rx = in->rxq[0];
	const uint64_t *counter = takes ? &rx->ctr.packets : &tx->ctr.packets;
	struct pk_slot slots[PK_BURST], held[PK_BURST];
	uint64_t left = makes ? (p->count ? p->count : UINT64_MAX) : 0;
	uint64_t begin = 0, base = 0, end = UINT64_MAX, now = 0;
	unsigned n_held = 0, at = 0, turns = 0, idle = 0;
	bool was_up = false, done = false;

	*pps = 0;
	while (!stop) {
		unsigned n = 0, sent, moved = 0;

		if (makes && at == n_held && left) {
			n_held = make(p, held, (unsigned)HO_MIN((uint64_t)p->burst, left));
			left -= n_held;
			at = 0;
		}
		if (at < n_held) {
			sent = port_tx(tx, held + at, n_held - at);
			at += sent;
			moved = sent;
		} else if (takes) {
			port_reap(tx);
		}
		if (takes) {
			n = port_rx(rx, slots, PK_BURST);
			sent = returns && n ? port_tx(tx, slots, n) : 0;
			while (returns && sent < n && !stop)
				sent += port_tx(tx, slots + sent, n - sent);
			pk_free_slots(p->cache, slots + sent, n - sent);
		}
		/* The other end may need this very CPU. */
		idle = n || moved ? 0 : idle + 1;
		if (idle >= PATIENCE_TURNS)
			rt_yield(p->rt);
		if (!n && p->interrupt && takes && !makes)
			nap(p, in);
		if (++turns % 256 && n)
			continue;
		now = rt_now_ns(p->rt);
		if (!begin && *counter) {
			begin = now + (uint64_t)(p->warmup * 1e9);
			end = p->seconds ? begin + (uint64_t)(p->seconds * 1e9) : UINT64_MAX;
		}
		if (begin && !base && now >= begin) {
			begin = now;
			base = *counter;
		}
		was_up |= link_is_up(in);
		if (now >= end || (p->expect && rx->ctr.packets >= p->expect) ||
		    (!left && at == n_held && makes && !(p->expect && takes)) ||
		    (p->link_end && was_up && !link_is_up(in) && !n)) {
			if (!p->hold)
				break;
			port_reap(tx);
			if (!done && port_tx_in_flight(tx) == 0) {
				fprintf(stderr, "done\n");
				done = true;
			}
		}
	}
	if (base && now > begin)
		*pps = (double)(*counter - base) * 1e9 / (double)(now - begin);
	pk_free_slots(p->cache, held + at, n_held - at);
}

static void print_drops(const char *name, const struct port_counters *ctr)
{
	const char *comma = "";

	printf(", \"%s\": {", name);
	for (unsigned i = 0; i < PORT_DROP_COUNT; i++) {
		if (!ctr->drops[i])
			continue;
		printf("%s\"%s\": %" PRIu64, comma, port_drop_name((enum port_drop)i),
		       ctr->drops[i]);
		comma = ", ";
	}
	printf("}");
}

static int parse(int key, char *arg, struct argp_state *state)
{
	struct peer *p = state->input;

	switch (key) {
	case 'c':
		p->cpu = atoi(arg);
		break;
	case 'n':
		p->count = strtoull(arg, NULL, 0);
		break;
	case 'e':
		p->expect = strtoull(arg, NULL, 0);
		break;
	case 't':
		p->seconds = atof(arg);
		break;
	case 'w':
		p->warmup = atof(arg);
		break;
	case 's':
		p->size = (unsigned)atoi(arg);
		break;
	case 'b':
		p->burst = (unsigned)atoi(arg);
		break;
	case 'B':
		p->buffers = (unsigned)atoi(arg);
		break;
	case 'i':
		p->interrupt = true;
		break;
	case 'H':
		p->hold = true;
		break;
	case 'l':
		p->link_end = true;
		break;
	case 'v':
		ho_log_set_level(HO_LOG_VERBOSE);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			p->mode = arg;
		else if (state->arg_num <= 2)
			p->spec[p->specs++] = arg;
		else
			argp_usage(state);
		break;
	case ARGP_KEY_END:
		if (!p->specs || (!strcmp(p->mode, "loop")) != (p->specs == 2) ||
		    (strcmp(p->mode, "tx") && strcmp(p->mode, "rx") && strcmp(p->mode, "io") &&
		     strcmp(p->mode, "loop")) ||
		    p->size < 60 || p->size > sizeof(p->frame) || !p->burst || p->burst > PK_BURST)
			argp_usage(state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int open_all(struct peer *p, struct ho_err *err)
{
	struct pk_arena_config arena = { .buffers = p->buffers };
	struct port_config config = { 0 };
	int rc = rt_os_create(&p->rt, err);

	if (rc == 0)
		rc = pk_arena_create(&arena, &p->arena, err);
	if (rc == 0)
		rc = pk_cache_create(p->arena, &p->cache, err);
	config.rt = p->rt;
	config.arena = p->arena;
	for (unsigned i = 0; i < p->specs && rc == 0; i++)
		rc = port_open(p->spec[i], &config, &p->port[i], err);
	for (unsigned i = 0; i < p->specs && rc == 0; i++) {
		port_bind_rx(p->port[i], 0, p->cache);
		port_bind_tx(p->port[i], 0, p->cache);
		rc = port_start(p->port[i], err);
	}
	return rc;
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "cpu", 'c', "CPU", 0, "pin to it", 0 },
		{ "count", 'n', "N", 0, "frames to send", 0 },
		{ "expect", 'e', "N", 0, "end after that many received", 0 },
		{ "seconds", 't', "S", 0, "measured time", 0 },
		{ "warmup", 'w', "S", 0, "before it (0.5)", 0 },
		{ "size", 's', "BYTES", 0, "of a frame (60)", 0 },
		{ "burst", 'b', "N", 0, "frames at once (64)", 0 },
		{ "buffers", 'B', "N", 0, "in the arena (16384)", 0 },
		{ "interrupt", 'i', NULL, 0, "sleep when there is nothing to receive", 0 },
		{ "hold", 'H', NULL, 0, "when done say so and stay until a signal comes", 0 },
		{ "link-end", 'l', NULL, 0, "end when the peer goes away", 0 },
		{ "verbose", 'v', NULL, 0, "say what happens", 0 },
		{ 0 },
	};
	const struct argp argp = { options, parse, "tx|rx|io PORT\nloop PORT PORT", NULL, NULL,
				   NULL,    NULL };
	struct peer p = {
		.cpu = -1, .warmup = 0.5, .size = 60, .burst = PK_BURST, .buffers = 16384
	};
	struct sigaction on = { .sa_handler = on_signal };
	uint64_t sent, received, in_flight = 0, lost = 0;
	struct ho_err err = { 0 };
	uint32_t missing;
	double pps;

	argp_parse(&argp, argc, argv, 0, NULL, &p);
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	if (p.cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(p.cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	build(&p);
	if (open_all(&p, &err) < 0) {
		fprintf(stderr, "memif_peer: %s\n", err.text);
		return 2;
	}
	run(&p, &pps);
	port_drain(p.port[0], DRAIN_NS);
	for (unsigned i = 0; i < p.specs; i++)
		port_stop(p.port[i]);
	sent = p.port[0]->txq[0]->ctr.packets;
	received = p.port[p.specs - 1]->rxq[0]->ctr.packets;
	for (unsigned i = 0; i < p.specs; i++) {
		in_flight += port_tx_in_flight(p.port[i]->txq[0]);
		lost += port_drops_sum(p.port[i]->txq[0]->ctr.drops);
	}
	printf("{\"mode\": \"%s\", \"sent\": %" PRIu64 ", \"received\": %" PRIu64
	       ", \"lost\": %" PRIu64,
	       p.mode, sent, received, lost);
	print_drops("tx_drops", &p.port[0]->txq[0]->ctr);
	print_drops("rx_drops", &p.port[p.specs - 1]->rxq[0]->ctr);
	printf(", \"ring_full\": %" PRIu64 ", \"kicks\": %" PRIu64 ", \"wakeups\": %" PRIu64,
	       p.port[0]->txq[0]->ctr.ring_full, p.port[0]->txq[0]->ctr.kicks,
	       p.port[p.specs - 1]->rxq[0]->ctr.wakeups);
	for (unsigned i = 0; i < p.specs; i++)
		port_close(p.port[i]);
	missing = pk_arena_missing(p.arena);
	printf(", \"pps\": %.0f, \"missing\": %u, \"balanced\": %s}\n", pps, missing,
	       in_flight == 0 && missing == 0 ? "true" : "false");
	pk_cache_destroy(p.cache);
	pk_arena_destroy(p.arena);
	rt_destroy(p.rt);
	return in_flight == 0 && missing == 0 ? 0 : 2;
}
