/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bench/forward.c and bench/peer_l3fwd.c share, so that both route the same packets by the
 * same routes: ROUTES prefixes by 16 gateways in turns, and 64 K frames of 60 bytes (64 with FCS)
 * to random addresses inside of them. Each program loads its table once, and then measures when it
 * is told to, so that a script can let them take turns.
 */
#ifndef HOLDOFF_BENCH_FORWARD_STREAM_H
#define HOLDOFF_BENCH_FORWARD_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "packet/csum.h"
#include "packet/headers.h"
#include "packet/parse.h"
#include "runtime/tsc.h"

#define STREAM_CIRCLE    65536u /* buffers that go round, of each worker */
#define STREAM_TEMPLATES 65536u
#define STREAM_FRAME     60u
#define STREAM_GATEWAYS  16u
#define STREAM_BURST     64u

static uint8_t (*stream_template)[64];

static inline uint32_t stream_random(uint32_t n)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(((state >> 32) * n) >> 32);
}

/* Route i: 20.0.0.0 + i * 256 /24, or 2a00:x:x::/48, each its own and spread evenly. Returns the
 * length. */
static inline uint8_t stream_route(bool v6, uint32_t i, uint8_t addr[16])
{
	memset(addr, 0, 16);
	if (!v6) {
		pk_store32(addr, 0x14000000u + (i << 8));
		return 24;
	}
	pk_store16(addr, 0x2a00);
	pk_store32(addr + 2, i * 2654435761u);
	return 48;
}

/* The address that frames by gateway i get. */
static inline void stream_gateway(uint32_t i, uint8_t mac[6])
{
	memcpy(mac, (uint8_t[6]){ 2, 0, 0, 1, 0, (uint8_t)(i % STREAM_GATEWAYS) }, 6);
}

static inline void stream_fill(bool v6, uint32_t routes)
{
	stream_template = aligned_alloc(64, STREAM_TEMPLATES * sizeof(*stream_template));
	if (!stream_template)
		abort();
	memset(stream_template, 0, STREAM_TEMPLATES * sizeof(*stream_template));
	for (uint32_t i = 0; i < STREAM_TEMPLATES; i++) {
		uint8_t *f = stream_template[i], *ip = f + PK_ETH_BYTES, addr[16];
		uint16_t csum;

		stream_route(v6, stream_random(routes), addr);
		f[0] = 2;
		f[5] = 1;
		f[6] = 2;
		f[11] = 9;
		if (v6) {
			pk_store16(f + 12, PK_ETH_IPV6);
			ip[0] = 0x60;
			pk_store16(ip + 4, STREAM_FRAME - PK_ETH_BYTES - PK_IPV6_BYTES);
			ip[6] = PK_IP_NONE;
			ip[7] = 64;
			ip[8] = 0x20;
			ip[9] = 1;
			ip[23] = 1;
			memcpy(ip + 24, addr, 16);
			pk_store32(ip + 32, stream_random(UINT32_MAX));
			continue;
		}
		pk_store16(f + 12, PK_ETH_IPV4);
		ip[0] = 0x45;
		pk_store16(ip + 2, STREAM_FRAME - PK_ETH_BYTES);
		ip[8] = 64;
		ip[9] = PK_IP_UDP;
		pk_store32(ip + 12, 0x0b000001);
		memcpy(ip + 16, addr, 4);
		ip[19] = (uint8_t)stream_random(256);
		csum = pk_csum_finish(pk_csum(ip, PK_IPV4_BYTES));
		memcpy(ip + 10, &csum, 2);
	}
}

/* A number that says where a frame was sent and that TTL and checksum are right: the sum over a
 * stream is the same for all that route alike. */
static inline uint64_t stream_answer(bool v6, const uint8_t *f)
{
	const uint8_t *ip = f + PK_ETH_BYTES;

	if (v6)
		return (uint64_t)(f[5] + 1) * (ip[35] + 1u) * ip[7];
	return (uint64_t)(f[5] + 1) * (ip[19] + 1u) * ip[8] +
	       (pk_csum_finish(pk_csum(ip, PK_IPV4_BYTES)) ? 1u << 24 : 0);
}

struct stream_result {
	uint64_t ticks; /* with source, forwarding and sink */
	uint64_t base;  /* with source and sink alone */
	uint64_t packets;
};

static inline double stream_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Says that the table is there and what the stream's answers add up to; then, for each line that
 * comes in (the way to measure, where there are several), measures and prints cycles a packet in
 * all, of forwarding alone, and, of all workers, packets per 1000 cycles. Returns the exit status.
 */
static inline int stream_serve(uint64_t answers, unsigned workers,
			       void (*measure)(const char *way, double seconds,
					       struct stream_result *r),
			       double seconds)
{
	char line[64];

	printf("ready %llu\n", (unsigned long long)answers);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct stream_result r[8] = { 0 };
		double rate = 0, all = 0, net = 0;

		measure(line, seconds, r);
		for (unsigned i = 0; i < workers; i++) {
			double n = (double)r[i].packets;

			rate += 1000 * n / (double)r[i].ticks;
			all += (double)r[i].ticks / n / workers;
			net += ((double)r[i].ticks - (double)r[i].base) / n / workers;
		}
		printf("%.2f %.2f %.4f\n", all, net, rate);
		fflush(stdout);
	}
	return 0;
}

#endif
