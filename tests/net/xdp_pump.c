// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends or receives stamped frames through one port and checks every byte, for the tests of port
 * xdp. What it prints is NAME=VALUE words on one line, for a shell.
 *
 *   xdp_pump send PORT COUNT [BYTES [QUEUES [USECS]]]   USECS: a pause after each burst
 *   xdp_pump recv PORT IDLE_MS [QUEUES]                 until SIGTERM, or, once SIGUSR1 has told
 * that all is sent, nothing came for IDLE_MS
 *
 * Frame i of stream (queue) s: Ethernet, IPv4, UDP with checksum, a pattern that depends on i and
 * s, and the stamp. BYTES of 0 means lengths from 60 to 1514 in turns. HOLDOFF_WAIT=1: recv waits
 * for its event instead of polling.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "packet/csum.h"
#include "packet/headers.h"
#include "port/port.h"
#include "traffic/stamp.h"

#define STREAMS 64

static struct rt *rt;

static void on_signal(int sig)
{
	rt_stop(rt);
}

static volatile sig_atomic_t all_sent;

static void on_all_sent(int sig)
{
	all_sent = 1;
}

static uint32_t frame_bytes(uint32_t fixed, uint32_t i)
{
	return fixed ? fixed : 60 + i * 7 % 1455;
}

static unsigned build(struct pk_cache *cache, uint16_t stream, uint32_t i, uint32_t bytes,
		      struct pk_slot *slots)
{
	static uint8_t frame[PK_FRAME_MAX_BYTES];
	static const uint8_t head[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0 };
	uint16_t ip_len = htobe16((uint16_t)(bytes - 14)),
		 udp_len = htobe16((uint16_t)(bytes - 34));
	uint16_t sum;
	uint32_t src = htobe32(0xc6120001), dst = htobe32(0xc6120002);

	memset(frame, (int)(i * 31 + stream), bytes);
	memcpy(frame, head, sizeof(head));
	memcpy(frame + 16, &ip_len, 2);
	memset(frame + 18, 0, 4);
	memcpy(frame + 22, (uint8_t[]){ 64, 17, 0, 0 }, 4);
	memcpy(frame + 26, &src, 4);
	memcpy(frame + 30, &dst, 4);
	sum = pk_csum_finish(pk_csum(frame + 14, 20));
	memcpy(frame + 24, &sum, 2);
	memcpy(frame + 34, (uint8_t[]){ 0x13, 0x88, 0, 9 }, 4);
	memcpy(frame + 38, &udp_len, 2);
	memset(frame + 40, 0, 2);
	tr_stamp_write(frame + bytes - TR_STAMP_BYTES, stream, i, rt_now_ns(rt));
	sum = pk_csum_finish_udp(pk_csum(frame + 34, bytes - 34) +
				 pk_csum_pseudo4(src, dst, 17, (uint16_t)(bytes - 34)));
	memcpy(frame + 40, &sum, 2);
	return pk_frame_from_bytes(cache, frame, bytes, slots, PK_FRAME_MAX_SLOTS);
}

static void print_drops(struct port *port)
{
	uint64_t drops[PORT_DROP_COUNT] = { 0 }, sum = 0;

	for (unsigned q = 0; q < port->n_rxq; q++)
		for (unsigned d = 0; d < PORT_DROP_COUNT; d++)
			drops[d] += port->rxq[q]->ctr.drops[d];
	for (unsigned q = 0; q < port->n_txq; q++)
		for (unsigned d = 0; d < PORT_DROP_COUNT; d++)
			drops[d] += port->txq[q]->ctr.drops[d];
	if (port->ops->external_drops)
		port->ops->external_drops(port, drops);
	for (unsigned d = 0; d < PORT_DROP_COUNT; d++) {
		sum += drops[d];
		if (drops[d])
			printf(" %s=%llu", port_drop_name(d), (unsigned long long)drops[d]);
	}
	printf(" drops=%llu", (unsigned long long)sum);
}

static void print_stats(struct port *port)
{
	struct port_stat stats[32];
	unsigned n = port->ops->stats ? port->ops->stats(port, stats, 32) : 0;

	for (unsigned i = 0; i < HO_MIN(n, 32u); i++)
		printf(" %s=%llu", stats[i].name, (unsigned long long)stats[i].value);
}

static int send_all(struct port *port, struct pk_cache *cache, uint64_t count, uint32_t bytes,
		    unsigned pause_us)
{
	struct pk_slot slots[PK_BURST * PK_FRAME_MAX_SLOTS];
	uint32_t next[STREAMS] = { 0 };
	uint64_t built = 0, sent = 0, kicks = 0, sent_bytes = 0, start = rt_now_ns(rt), ns;
	unsigned q = 0;

	while (built < count && !rt_stopping(rt)) {
		unsigned n = 0, done = 0, frames = (unsigned)HO_MIN(count - built, (uint64_t)32);

		for (unsigned f = 0; f < frames; f++) {
			uint32_t i = next[q];
			unsigned used;

			while (!(used = build(cache, (uint16_t)q, i, frame_bytes(bytes, i),
					      slots + n)))
				port_reap(port->txq[q]);
			n += used;
			next[q]++;
		}
		built += frames;
		while (done < n) {
			done += port_tx(port->txq[q], slots + done, n - done);
			if (rt_stopping(rt) && done < n) {
				pk_free_slots(cache, slots + done, n - done);
				break;
			}
		}
		q = (q + 1) % port->n_txq;
		if (pause_us)
			rt_sleep_until(rt, rt_now_ns(rt) + pause_us * 1000u);
	}
	int rc = port_drain(port, 2000000000);
	ns = rt_now_ns(rt) - start;
	port_stop(port);
	for (unsigned i = 0; i < port->n_txq; i++) {
		sent += port->txq[i]->ctr.packets;
		sent_bytes += port->txq[i]->ctr.bytes;
		kicks += port->txq[i]->ctr.kicks;
	}
	printf("built=%llu sent=%llu bytes=%llu drained=%s kicks=%llu mpps=%.3f",
	       (unsigned long long)built, (unsigned long long)sent, (unsigned long long)sent_bytes,
	       rc ? "no" : "yes", (unsigned long long)kicks, (double)sent * 1e3 / (double)ns);
	print_drops(port);
	print_stats(port);
	printf("\n");
	return 0;
}

/* Is it, byte for byte, frame i of its stream? (The time and thus the checksum are its own.) */
static bool right(const uint8_t *frame, uint32_t bytes, const struct tr_stamp *stamp)
{
	uint8_t fill = (uint8_t)(stamp->sequence * 31 + stamp->stream);
	uint32_t src, dst;

	memcpy(&src, frame + 26, 4);
	memcpy(&dst, frame + 30, 4);
	for (uint32_t at = 42; at < bytes - TR_STAMP_BYTES; at++) {
		if (frame[at] != fill)
			return false;
	}
	return pk_csum_fold(pk_csum(frame + 14, 20)) == 0xffff &&
	       pk_csum_fold(pk_csum(frame + 34, bytes - 34) +
			    pk_csum_pseudo4(src, dst, 17, (uint16_t)(bytes - 34))) == 0xffff;
}

static int recv_all(struct port *port, struct pk_cache *cache, uint64_t idle_ns)
{
	struct pk_slot slots[PK_BURST];
	static uint8_t frame[PK_FRAME_MAX_BYTES];
	uint32_t next[STREAMS] = { 0 };
	uint64_t got = 0, lost = 0, late = 0, wrong = 0, foreign = 0, first = 0, last = 0;
	uint64_t idle_since = rt_now_ns(rt), bytes_all = 0;
	bool waits = getenv("HOLDOFF_WAIT");

	while (!rt_stopping(rt)) {
		unsigned any = 0;

		for (unsigned q = 0; q < port->n_rxq; q++) {
			unsigned n = port_rx(port->rxq[q], slots, PK_BURST);

			any += n;
			for (unsigned i = 0, used; i < n; i += used) {
				struct tr_stamp stamp;
				uint32_t bytes;

				used = pk_frame_slots(slots + i, n - i);
				bytes = pk_frame_to_bytes(port->arena, slots + i, used, frame,
							  sizeof(frame));
				if (bytes < 58 ||
				    !tr_stamp_read(frame + bytes - TR_STAMP_BYTES, &stamp) ||
				    stamp.stream >= STREAMS) {
					foreign++;
					continue;
				}
				got++;
				bytes_all += bytes;
				wrong += !right(frame, bytes, &stamp);
				if (stamp.sequence >= next[stamp.stream]) {
					lost += stamp.sequence - next[stamp.stream];
					next[stamp.stream] = stamp.sequence + 1;
				} else {
					late++;
				}
			}
			if (n)
				pk_free_slots(cache, slots, n);
		}
		if (any) {
			last = rt_now_ns(rt);
			/* A stray frame of the kernel does not mean that the sender is ready. */
			if (!first && got)
				first = last;
			continue;
		}
		/* A sender that comes to a halt on a busy machine has not ended. */
		if (!all_sent)
			idle_since = rt_now_ns(rt);
		if (rt_now_ns(rt) - HO_MAX(last, idle_since) > idle_ns)
			break;
		if (waits) {
			struct rt_event *ev[STREAMS];
			bool ready = false;

			for (unsigned q = 0; q < port->n_rxq; q++) {
				ev[q] = port->ops->rx_event(port->rxq[q]);
				ready |= port->ops->arm(port->rxq[q]);
			}
			if (!ready)
				rt_wait(rt, ev, port->n_rxq, rt_now_ns(rt) + idle_ns / 2);
		}
	}
	port_stop(port);
	printf("got=%llu bytes=%llu lost=%llu late=%llu wrong=%llu foreign=%llu mpps=%.3f",
	       (unsigned long long)got, (unsigned long long)bytes_all, (unsigned long long)lost,
	       (unsigned long long)late, (unsigned long long)wrong, (unsigned long long)foreign,
	       last > first ? (double)got * 1e3 / (double)(last - first) : 0);
	print_drops(port);
	print_stats(port);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct port_config config = { 0 };
	struct pk_arena *arena;
	struct pk_cache *cache;
	struct port *port;
	struct ho_err err = { 0 };
	int rc = 2;
	bool tx = argc > 1 && !strcmp(argv[1], "send");

	if (argc < 4)
		return 1;
	if (rt_os_create(&rt, &err) || pk_arena_create(NULL, &arena, &err) ||
	    pk_cache_create(arena, &cache, &err))
		goto fail;
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGUSR1, on_all_sent);
	config.rt = rt;
	config.arena = arena;
	config.tx = tx;
	config.rx = !tx;
	if (tx && argc > 5)
		config.queues = (unsigned)atoi(argv[5]);
	if (!tx && argc > 4)
		config.queues = (unsigned)atoi(argv[4]);
	if (port_open(argv[2], &config, &port, &err))
		goto fail;
	for (unsigned i = 0; i < port->n_rxq; i++)
		port_bind_rx(port, i, cache);
	for (unsigned i = 0; i < port->n_txq; i++)
		port_bind_tx(port, i, cache);
	if (port_start(port, &err))
		goto fail;
	fprintf(stderr, "ready\n");
	if (tx)
		rc = send_all(port, cache, (uint64_t)atoll(argv[3]),
			      argc > 4 ? (uint32_t)atoi(argv[4]) : 60,
			      argc > 6 ? (unsigned)atoi(argv[6]) : 0);
	else
		rc = recv_all(port, cache, (uint64_t)atoll(argv[3]) * 1000000);
	port_close(port);
	if (pk_arena_missing(arena)) {
		fprintf(stderr, "%u buffers are missing\n", pk_arena_missing(arena));
		rc = 3;
	}
	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
	rt_destroy(rt);
	return rc;
fail:
	fprintf(stderr, "%s\n", err.text);
	return rc;
}
