// SPDX-License-Identifier: BSD-2-Clause
/*
 * port_peer: drives ports straight through port.h, for the namespace tests and the benches of the
 * ports themselves.
 *
 *   port_peer tx PORT [key=value...]       sends UDP frames with a sequence number
 *   port_peer rx PORT [key=value...]       receives and checks them
 *   port_peer patch PORT PORT [...]        moves frames both ways until SIGTERM
 *
 *   queues=1 count=1000 size=60 gap=0 (ns between bursts) burst=64 seconds=290
 *   idle=2000: rx ends after so many ms without a frame; with wait_for_end=yes only once SIGUSR1
 *   has told that nothing more is sent, since a sender may come to a halt on a busy machine
 *   wait=yes (rx sleeps when idle) vlan=TCI dst=MAC filter=EXPR ring=N verify=no (rx: any frame
 *   counts) csum=partial (tx: leave the UDP checksum to the port)
 *
 * Prints "ready" when started and a line "key=value ..." for each port at the end. Exit status 2
 * when packets are unaccounted for, buffers are missing or the port reports a late error.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/csum.h"
#include "port/port.h"

#define SEQ_OFFSET     42 /* behind the UDP header */
#define FLOWS          64 /* source ports, so that queues are spread */
#define DRAIN_NS       2000000000u
#define FRAME_SIZE_MAX PK_FRAME_MAX_BYTES

static const char *const keys[] = { "queues", "count", "size",  "gap",          "burst",  "seconds",
				    "idle",   "wait",  "vlan",  "dst",          "filter", "ring",
				    "verify", "csum",  "force", "wait_for_end", NULL };
static int args;
static char **arg;

static const char *option(const char *key, const char *otherwise)
{
	size_t len = strlen(key);

	for (int i = 0; i < args; i++) {
		if (!strncmp(arg[i], key, len) && arg[i][len] == '=')
			return arg[i] + len + 1;
	}
	return otherwise;
}

static uint64_t number(const char *key, const char *otherwise)
{
	return strtoull(option(key, otherwise), NULL, 0);
}

static struct rt *rt;
static struct pk_arena *arena;
static struct pk_cache *cache;

static void on_signal(int sig)
{
	rt_stop(rt);
}

static volatile sig_atomic_t all_sent;

static void on_all_sent(int sig)
{
	all_sent = 1;
}

static void die(const struct ho_err *err)
{
	fprintf(stderr, "port_peer: %s\n", err->text);
	exit(1);
}

static struct port *open_port(const char *spec, bool rx, bool tx)
{
	struct port_config config = {
		.rt = rt,
		.arena = arena,
		.queues = (unsigned)number("queues", "0"),
		.rx_ring = (unsigned)number("ring", "0"),
		.tx_ring = (unsigned)number("ring", "0"),
		.rx = rx,
		.tx = tx,
		.filter = option("filter", NULL),
		.force = !strcmp(option("force", "no"), "yes"),
	};
	struct ho_err err = { 0 };
	struct port *port;

	if (port_open(spec, &config, &port, &err) < 0)
		die(&err);
	for (unsigned i = 0; rx && i < port->n_rxq; i++)
		port_bind_rx(port, i, cache);
	for (unsigned i = 0; tx && i < port->n_txq; i++)
		port_bind_tx(port, i, cache);
	if (port_start(port, &err) < 0)
		die(&err);
	return port;
}

/* Prints the sums of a port that was stopped; how many problems there are. */
static int report(struct port *port, double seconds)
{
	uint64_t rx_drops[PORT_DROP_COUNT] = { 0 }, accepted = 0, rx = 0, tx = 0, kicks = 0,
		 full = 0;
	uint64_t flight = 0;
	struct ho_err err = { 0 };
	int bad = 0;

	for (unsigned i = 0; i < port->n_rxq; i++) {
		rx += port->rxq[i]->ctr.packets;
		for (int d = 0; d < PORT_DROP_COUNT; d++)
			rx_drops[d] += port->rxq[i]->ctr.drops[d];
	}
	for (unsigned i = 0; i < port->n_txq; i++) {
		tx += port->txq[i]->ctr.packets;
		accepted += port->txq[i]->accepted;
		kicks += port->txq[i]->ctr.kicks;
		full += port->txq[i]->ctr.ring_full;
		flight += port_tx_in_flight(port->txq[i]);
		for (int d = 0; d < PORT_DROP_COUNT; d++)
			rx_drops[d] += port->txq[i]->ctr.drops[d];
	}
	if (port->ops->external_drops)
		port->ops->external_drops(port, rx_drops);
	printf("port=%s rx=%llu accepted=%llu tx=%llu kicks=%llu ring_full=%llu seconds=%.4f "
	       "mpps=%.4f",
	       port->name, (unsigned long long)rx, (unsigned long long)accepted,
	       (unsigned long long)tx, (unsigned long long)kicks, (unsigned long long)full, seconds,
	       (double)HO_MAX(rx, tx) / seconds / 1e6);
	for (int d = 0; d < PORT_DROP_COUNT; d++) {
		if (rx_drops[d])
			printf(" %s=%llu", port_drop_name(d), (unsigned long long)rx_drops[d]);
	}
	for (unsigned i = 0; port->n_rxq > 1 && i < port->n_rxq; i++)
		printf(" rx%u=%llu", i, (unsigned long long)port->rxq[i]->ctr.packets);
	printf("\n");
	if (flight) {
		printf("unaccounted=%llu\n", (unsigned long long)flight);
		bad++;
	}
	if (port_late_error(port, &err) < 0) {
		printf("late_error=%s\n", err.text);
		bad++;
	}
	return bad;
}

static void build_frame(uint8_t *f, uint32_t size, uint64_t seq)
{
	uint16_t ip_len = (uint16_t)HO_MIN(size - 14, 65535u), udp_len = (uint16_t)(ip_len - 20);
	bool partial = !strcmp(option("csum", "full"), "partial");
	uint32_t src = htonl(0xc0000201), dst = htonl(0xc0000202);
	uint64_t pseudo = pk_csum_pseudo4(src, dst, 17, udp_len);
	uint16_t csum;

	memset(f + 14, 0, 20);
	f[14] = 0x45;
	pk_store16(f + 16, ip_len);
	f[22] = 64;
	f[23] = 17;
	memcpy(f + 26, &src, 4);
	memcpy(f + 30, &dst, 4);
	csum = pk_csum_finish(pk_csum(f + 14, 20));
	memcpy(f + 24, &csum, 2);
	pk_store16(f + 34, (uint16_t)(1024 + seq % FLOWS));
	pk_store16(f + 36, 9);
	pk_store16(f + 38, udp_len);
	memset(f + 40, 0, 2);
	pk_store32(f + SEQ_OFFSET, (uint32_t)(seq >> 32));
	pk_store32(f + SEQ_OFFSET + 4, (uint32_t)seq);
	csum = partial ? pk_csum_fold(pseudo)
		       : pk_csum_finish_udp(pseudo + pk_csum(f + 34, udp_len));
	memcpy(f + 40, &csum, 2);
}

static int run_tx(const char *spec)
{
	static uint8_t frame[FRAME_SIZE_MAX];
	struct port *port = open_port(spec, false, true);
	uint64_t count = number("count", "1000"), sent = 0, gap = number("gap", "0"), start, end;
	uint32_t size = (uint32_t)number("size", "60");
	unsigned burst = (unsigned)number("burst", "64"), q = 0;
	const char *vlan = option("vlan", NULL);
	bool partial = !strcmp(option("csum", "full"), "partial");
	uint64_t deadline = number("seconds", "290") * 1000000000u;
	int bad;

	memset(frame, 0xff, 6);
	memcpy(frame + 6, "\x02\0\0\0\0\x01\x08\0", 8);
	sscanf(option("dst", ""), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", frame, frame + 1, frame + 2,
	       frame + 3, frame + 4, frame + 5);
	for (uint32_t i = 50; i < size; i++)
		frame[i] = (uint8_t)i;
	printf("ready\n");
	fflush(stdout);
	start = rt_now_ns(rt);
	deadline += start;
	while (sent < count && !rt_stopping(rt) && rt_now_ns(rt) < deadline) {
		struct pk_slot slots[PK_BURST];
		unsigned n = 0, done = 0;

		for (unsigned b = 0; b < burst && sent + b < count; b++) {
			unsigned k;

			build_frame(frame, size, sent + b);
			k = pk_frame_from_bytes(cache, frame, size, slots + n, PK_BURST - n);
			if (!k)
				break;
			if (vlan) {
				slots[n].flags |= PK_VLAN;
				slots[n].vlan = (uint16_t)strtoul(vlan, NULL, 0);
			}
			if (partial)
				slots[n].flags |= PK_CSUM_PARTIAL;
			n += k;
		}
		for (unsigned i = 0; i < n; i++)
			sent += !(slots[i].flags & PK_MORE);
		while (done < n && !rt_stopping(rt)) {
			unsigned got = port_tx(port->txq[q], slots + done, n - done);

			done += got;
			port_reap(port->txq[q]);
			if (!got)
				rt_relax(rt);
		}
		if (done < n)
			pk_free_slots(cache, slots + done, n - done);
		q = q + 1 == port->n_txq ? 0 : q + 1;
		if (gap) {
			uint64_t until = rt_now_ns(rt) + gap;

			while (rt_now_ns(rt) < until && !rt_stopping(rt)) {
				port_reap(port->txq[q]);
				rt_relax(rt);
			}
		}
	}
	end = rt_now_ns(rt);
	port_drain(port, DRAIN_NS);
	port_stop(port);
	bad = report(port, (double)(end - start) / 1e9);
	port_close(port);
	return bad;
}

/* What rx has seen. */
struct seen {
	uint64_t frames, foreign, bad_csum, wrong, top;
	uint8_t *map; /* a bit a sequence number */
	uint64_t count, twice;
};

static void check_frame(struct seen *s, const struct pk_slot *slots, unsigned n)
{
	const uint8_t *f = pk_data(arena, slots);
	enum pk_csum_result csum;
	uint64_t seq;

	if (slots[0].len < SEQ_OFFSET + 8 || pk_load16(f + 36) != 9 || f[23] != 17) {
		s->foreign++;
		return;
	}
	csum = pk_csum_verify(arena, slots, n);
	s->bad_csum += csum != PK_CSUM_RESULT_OK;
	seq = (uint64_t)pk_load32(f + SEQ_OFFSET) << 32 | pk_load32(f + SEQ_OFFSET + 4);
	s->frames++;
	if (seq >= s->count) {
		s->wrong++;
	} else {
		s->twice += s->map[seq / 8] >> seq % 8 & 1;
		s->map[seq / 8] |= (uint8_t)(1 << seq % 8);
	}
}

static int run_rx(const char *spec)
{
	struct port *port = open_port(spec, true, false);
	struct seen seen = { .count = number("count", "1000") };
	uint64_t idle = number("idle", "2000") * 1000000u, seconds = number("seconds", "290");
	uint64_t first = 0, last, started = rt_now_ns(rt), all = 0;
	bool wait = !strcmp(option("wait", "yes"), "yes") && port->ops->rx_event, ended = false;
	bool verify = !strcmp(option("verify", "yes"), "yes");
	bool wait_for_end = !strcmp(option("wait_for_end", "no"), "yes"), told = false;
	int bad;

	seen.map = calloc(seen.count / 8 + 1, 1);
	printf("ready\n");
	fflush(stdout);
	last = started;
	while (!rt_stopping(rt) && !ended && (verify ? seen.frames : all) < seen.count) {
		struct pk_slot slots[PK_BURST];
		unsigned got = 0;

		ended = true;
		for (unsigned q = 0; q < port->n_rxq; q++) {
			unsigned n = port_rx(port->rxq[q], slots, PK_BURST);

			for (unsigned i = 0, k; i < n; i += k) {
				k = pk_frame_slots(slots + i, n - i);
				all++;
				if (verify)
					check_frame(&seen, slots + i, k);
			}
			pk_free_slots(cache, slots, n);
			got += n;
			ended = ended && !n && port->ops->rx_ended &&
				port->ops->rx_ended(port->rxq[q]);
		}
		if (got) {
			last = rt_now_ns(rt);
			first = first ? first : last;
			continue;
		}
		if (all_sent && !told) {
			told = true;
			last = rt_now_ns(rt);
		}
		if (((wait_for_end ? told : first) && rt_now_ns(rt) - last > idle) ||
		    rt_now_ns(rt) - started > seconds * 1000000000u)
			break;
		if (wait) {
			struct rt_event *events[64];
			bool there = false;

			for (unsigned q = 0; q < port->n_rxq; q++) {
				events[q] = port->ops->rx_event(port->rxq[q]);
				there = port->ops->arm(port->rxq[q]) || there;
			}
			if (!there)
				rt_wait(rt, events, port->n_rxq, rt_now_ns(rt) + 100000000u);
			for (unsigned q = 0; q < port->n_rxq; q++)
				port->ops->disarm(port->rxq[q]);
		} else {
			rt_relax(rt);
		}
	}
	port_stop(port);
	printf("frames=%llu foreign=%llu bad_csum=%llu wrong=%llu twice=%llu\n",
	       (unsigned long long)seen.frames, (unsigned long long)seen.foreign,
	       (unsigned long long)seen.bad_csum, (unsigned long long)seen.wrong,
	       (unsigned long long)seen.twice);
	bad = report(port, first && last > first ? (double)(last - first) / 1e9 : 1e-9);
	bad += seen.wrong || seen.twice;
	port_close(port);
	free(seen.map);
	return bad;
}

/* Frames from one port to the other; what does not fit is a named drop. */
static unsigned move(struct port *from, struct port *to)
{
	unsigned total = 0;

	for (unsigned q = 0; q < from->n_rxq; q++) {
		struct pk_slot slots[PK_BURST];
		unsigned n = port_rx(from->rxq[q], slots, PK_BURST), done;
		struct port_txq *txq = to->txq[q % to->n_txq];

		if (n) {
			done = port_tx(txq, slots, n);
			if (done < n)
				port_tx_discard(txq, slots + done, n - done,
						PORT_DROP_TX_RING_FULL);
		}
		port_reap(txq);
		total += n;
	}
	return total;
}

static int run_patch(const char *spec1, const char *spec2)
{
	struct port *port[2] = { open_port(spec1, true, true), open_port(spec2, true, true) };
	uint64_t start = rt_now_ns(rt);
	int bad = 0;

	printf("ready\n");
	fflush(stdout);
	while (!rt_stopping(rt)) {
		struct rt_event *events[64];
		unsigned n = 0;
		bool there = false;

		if (move(port[0], port[1]) + move(port[1], port[0]))
			continue;
		for (unsigned p = 0; p < 2; p++) {
			for (unsigned q = 0; q < port[p]->n_rxq; q++) {
				events[n++] = port[p]->ops->rx_event(port[p]->rxq[q]);
				there = port[p]->ops->arm(port[p]->rxq[q]) || there;
			}
		}
		if (!there)
			rt_wait(rt, events, n, rt_now_ns(rt) + 100000000u);
	}
	for (int p = 0; p < 2; p++)
		port_drain(port[p], DRAIN_NS);
	for (int p = 0; p < 2; p++) {
		port_stop(port[p]);
		bad += report(port[p], (double)(rt_now_ns(rt) - start) / 1e9);
	}
	port_close(port[0]);
	port_close(port[1]);
	return bad;
}

static bool known_option(const char *text)
{
	for (int i = 0; keys[i]; i++) {
		size_t len = strlen(keys[i]);

		if (!strncmp(text, keys[i], len) && text[len] == '=')
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct ho_err err = { 0 };
	int bad, ports = argc > 1 && !strcmp(argv[1], "patch") ? 2 : 1;

	if (argc < 2 + ports) {
		fprintf(stderr, "port_peer: tx|rx PORT, or patch PORT PORT\n");
		return 1;
	}
	args = argc - 2 - ports;
	arg = argv + 2 + ports;
	for (int i = 0; i < args; i++) {
		if (!known_option(arg[i])) {
			fprintf(stderr, "port_peer: no option '%s'\n", arg[i]);
			return 1;
		}
	}
	if (rt_os_create(&rt, &err) < 0 || pk_arena_create(NULL, &arena, &err) < 0 ||
	    pk_cache_create(arena, &cache, &err) < 0)
		die(&err);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGUSR1, on_all_sent);
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(argv[1], "tx"))
		bad = run_tx(argv[2]);
	else if (!strcmp(argv[1], "rx"))
		bad = run_rx(argv[2]);
	else
		bad = run_patch(argv[2], argv[3]);
	if (pk_arena_missing(arena)) {
		printf("missing_buffers=%u\n", pk_arena_missing(arena));
		bad++;
	}
	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
	rt_destroy(rt);
	return bad ? 2 : 0;
}
