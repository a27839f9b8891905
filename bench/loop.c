// SPDX-License-Identifier: BSD-2-Clause
/*
 * The forwarder of `holdoff patch` between two ports that have no source of their own: the two
 * ends of a mem: wire, in which N frames go round for ever, as testpmd's --tx-first does with
 * net_ring.
 *
 *   bench_loop PORT1 PORT2 io|mac|macswap FRAMES SECONDS     prints packets a second
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port.h"
#include "traffic/forwarder.h"

static int fail(const struct ho_err *err)
{
	fprintf(stderr, "bench_loop: %s\n", err->text);
	return 1;
}

static int inject(struct port *port, struct pk_cache *cache, unsigned frames)
{
	uint8_t frame[60] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 };
	struct pk_slot slot;

	for (unsigned i = 0; i < frames; i++) {
		if (!pk_frame_from_bytes(cache, frame, sizeof(frame), &slot, 1))
			return -1;
		if (!port_tx(port->txq[0], &slot, 1)) {
			pk_free_slots(cache, &slot, 1);
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "io", "mac", "macswap" };
	struct pk_arena_config arena = { .buffers = 262144 };
	struct port_config config = { 0 };
	struct tr_forwarder_config fc = { .mode = TR_FORWARD_IO };
	struct tr_forwarder *forwarder;
	struct ho_err err = { 0 };
	struct pk_cache *cache;
	struct port *port[2];
	uint64_t start, packets;
	double seconds;

	if (argc != 6) {
		fprintf(stderr, "Usage: bench_loop PORT1 PORT2 io|mac|macswap FRAMES SECONDS\n");
		return 1;
	}
	while (strcmp(modes[fc.mode], argv[3])) {
		if (fc.mode++ == TR_FORWARD_MACSWAP)
			return 1;
	}
	if (rt_os_create(&config.rt, &err) || pk_arena_create(&arena, &config.arena, &err) ||
	    pk_cache_create(config.arena, &cache, &err))
		return fail(&err);
	for (unsigned i = 0; i < 2; i++) {
		if (port_open(argv[1 + i], &config, &port[i], &err))
			return fail(&err);
		port_bind_rx(port[i], 0, cache);
		port_bind_tx(port[i], 0, cache);
	}
	for (unsigned i = 0; i < 2; i++) {
		if (port_start(port[i], &err))
			return fail(&err);
	}
	if (inject(port[0], cache, (unsigned)atoi(argv[4])) ||
	    inject(port[1], cache, (unsigned)atoi(argv[4]))) {
		fprintf(stderr, "bench_loop: %s frames do not fit the ring\n", argv[4]);
		return 1;
	}
	fc.rt = config.rt;
	for (unsigned i = 0; i < 2; i++)
		fc.path[i] = (struct tr_forward_path){ .rxq = port[i]->rxq[0],
						       .txq = port[!i]->txq[0],
						       .dst = { 2, 1 },
						       .src = { 2, 2 } };
	start = rt_now_ns(config.rt);
	fc.end_ns = start + (uint64_t)(atof(argv[5]) * 1e9);
	if (tr_forwarder_create(&fc, &forwarder, &err))
		return fail(&err);
	tr_forwarder_run(forwarder);
	seconds = (double)(rt_now_ns(config.rt) - start) / 1e9;
	packets = port[0]->rxq[0]->ctr.packets + port[1]->rxq[0]->ctr.packets;
	printf("%.0f\n", (double)packets / seconds);
	tr_forwarder_destroy(forwarder);
	port_close(port[0]);
	port_close(port[1]);
	pk_cache_destroy(cache);
	packets = pk_arena_missing(config.arena);
	pk_arena_destroy(config.arena);
	rt_destroy(config.rt);
	return packets != 0;
}
