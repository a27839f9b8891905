// SPDX-License-Identifier: BSD-2-Clause
/*
 * The smallest useful program over libholdoff: opens a port, counts what arrives, gives every
 * buffer back and proves it.
 *
 *   cc count.c $(pkg-config --cflags --libs libholdoff) -o count
 *   ./count null:,count=1000000
 */
#include <stdio.h>

#include <port/port.h>

static int count(struct port *port, struct pk_cache *cache)
{
	struct port_rxq *q = port->rxq[0];
	struct pk_slot slots[PK_BURST];
	unsigned n;

	for (;;) {
		n = port_rx(q, slots, PK_BURST);
		pk_free_slots(cache, slots, n);
		if (!n && port->ops->rx_ended && port->ops->rx_ended(q))
			break;
		if (!n)
			rt_relax(port->rt);
	}
	printf("%s: %llu frames, %llu bytes\n", port->name,
	       (unsigned long long)ho_ctr_read(&q->ctr.packets),
	       (unsigned long long)ho_ctr_read(&q->ctr.bytes));
	return 0;
}

int main(int argc, char **argv)
{
	struct port_config config = { .rx = true };
	struct ho_err err = { 0 };
	struct pk_cache *cache;
	struct port *port;
	int status = 1;

	if (argc != 2) {
		fprintf(stderr, "Usage: count PORT\n");
		return 1;
	}
	if (rt_os_create(&config.rt, &err) < 0)
		goto out;
	if (pk_arena_create(NULL, &config.arena, &err) < 0)
		goto destroy_rt;
	if (pk_cache_create(config.arena, &cache, &err) < 0)
		goto destroy_arena;
	if (port_open(argv[1], &config, &port, &err) < 0)
		goto destroy_cache;
	for (unsigned i = 0; i < port->n_rxq; i++)
		port_bind_rx(port, i, cache);
	if (port_start(port, &err) == 0)
		status = count(port, cache);
	port_close(port);
destroy_cache:
	if (pk_arena_missing(config.arena)) {
		fprintf(stderr, "%u buffers are missing\n", pk_arena_missing(config.arena));
		status = 1;
	}
	pk_cache_destroy(cache);
destroy_arena:
	pk_arena_destroy(config.arena);
destroy_rt:
	rt_destroy(config.rt);
out:
	if (err.text[0])
		fprintf(stderr, "count: %s\n", err.text);
	return status;
}
