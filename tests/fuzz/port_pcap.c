// SPDX-License-Identifier: BSD-2-Clause
/*
 * Port pcap: on any file. The first byte chooses options, the rest is the file. However it is
 * broken, the port opens or says why, ends, says why it ended early, and no buffer is lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port/port.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define RECEIVES_MAX 100000 /* far more than the longest run of calls that a file can cause */

static struct rt *rt;
static struct pk_arena *arena;
static struct pk_cache *cache;

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void open_pool(void)
{
	struct pk_arena_config config = { .buffers = 1024, .no_huge = true };

	must(rt_os_create(&rt, NULL) == 0);
	must(pk_arena_create(&config, &arena, NULL) == 0);
	must(pk_cache_create(arena, &cache, NULL) == 0);
}

/* Everything that the port gives: each frame has a length and bytes that can be read. */
static uint64_t receive_all(struct port *port)
{
	static uint8_t copy[PK_FRAME_MAX_BYTES];
	uint64_t frames = 0;

	for (unsigned calls = 0; !port->ops->rx_ended(port->rxq[0]); calls++) {
		struct pk_slot slots[PK_BURST];
		unsigned n = port_rx(port->rxq[0], slots, PK_BURST);

		must(calls < RECEIVES_MAX);
		must(n == 0 || !(slots[n - 1].flags & PK_MORE));
		for (unsigned i = 0, k; i < n; i += k) {
			k = pk_frame_slots(slots + i, n - i);
			must(pk_frame_to_bytes(arena, slots + i, k, copy, sizeof(copy)) >= 14);
			must(slots[i].flags & PK_TIME);
			frames++;
		}
		pk_free_slots(cache, slots, n);
	}
	return frames;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char *const options[] = {
		"", ",loop=3", ",memory,loop=2", ",limit=2,loop=2", ",memory,limit=1", ",speed=1e18"
	};
	struct port_config config = { .rx = true };
	struct ho_err err = { 0 };
	struct port *port = NULL;
	char spec[64];
	int fd;

	if (!arena)
		open_pool();
	if (bytes < 1)
		return 0;
	fd = memfd_create("capture", MFD_CLOEXEC);
	must(fd >= 0 && write(fd, data + 1, bytes - 1) == (ssize_t)bytes - 1);
	snprintf(spec, sizeof(spec), "pcap:/proc/self/fd/%d%s", fd,
		 options[(data[0] >> 1) % HO_ARRAY_LEN(options)]);
	config.rt = rt;
	config.arena = arena;
	config.filter = data[0] & 1 ? "udp or vlan" : NULL;
	if (port_open(spec, &config, &port, &err) < 0) {
		must(port == NULL && err.text[0] && err.code < 0);
	} else {
		port_bind_rx(port, 0, cache);
		must(port_start(port, &err) == 0);
		must(receive_all(port) == port->rxq[0]->ctr.packets);
		port_stop(port);
		must(port_late_error(port, &err) == 0 || err.text[0]);
		port_close(port);
	}
	must(pk_arena_missing(arena) == 0);
	close(fd);
	return 0;
}
