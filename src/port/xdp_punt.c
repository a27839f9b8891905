// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames handed to the kernel's stack as if they had arrived on an interface: live frames
 * (xdp_live.c) whose program says XDP_PASS (Documentation/bpf/bpf_prog_run.rst: they are "injected
 * into the normal networking stack", with the interface that the context names).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "packet/csum.h"
#include "packet/headers.h"
#include "port/host.h"
#include "port/vnet.h"
#include "port/xdp.h"
#include "port/xdp_live_skel.h"
#include "port/xdp_shared.h"

#ifndef BPF_F_TEST_XDP_LIVE_FRAMES
#define BPF_F_TEST_XDP_LIVE_FRAMES (1U << 1)
#endif
#define ETHERNET_BYTES 14

struct port_punt {
	struct pk_arena *arena;
	struct xdp_live_skel *skel;
	struct xdp_settled settled;
	uint8_t *frames; /* the mapped array */
	size_t map_bytes;
	uint32_t stride, frame_max;
	uint8_t *page; /* what the kernel fills the pages with */
};

int port_punt_create(struct pk_arena *arena, struct port_punt **out, struct ho_err *err)
{
	struct port_punt *punt = calloc(1, sizeof(*punt));
	struct xdp_live_skel *skel;
	void *at;
	int rc;

	if (!punt)
		return ho_err_set(err, -ENOMEM, "out of memory for the way to the kernel");
	punt->arena = arena;
	punt->settled = XDP_SETTLED_INIT;
	punt->frame_max = xdp_live_max_frame();
	punt->stride = HO_ALIGN_UP(punt->frame_max, (uint32_t)HO_CACHE_LINE);
	punt->page = calloc(1, punt->frame_max);
	punt->skel = skel = xdp_live_skel__open();
	if (!skel || !punt->page) {
		rc = ho_err_set(err, -errno, "cannot open the live-frames program: %s",
				ho_strerror(errno));
		goto fail;
	}
	skel->rodata->ifindex = 0;
	skel->rodata->frame_max = punt->frame_max;
	bpf_map__set_value_size(skel->maps.frames, punt->stride);
	bpf_map__set_max_entries(skel->maps.frames, PORT_PUNT_BURST);
	rc = xdp_live_skel__load(skel);
	if (rc < 0) {
		ho_err_set(err, rc, "the kernel refuses the live-frames program: %s%s",
			   ho_strerror(rc),
			   rc == -EPERM ? "; it needs cap_bpf and cap_net_admin" : "");
		goto fail;
	}
	punt->map_bytes =
		HO_ALIGN_UP((size_t)punt->stride * PORT_PUNT_BURST, (size_t)sysconf(_SC_PAGESIZE));
	at = mmap(NULL, punt->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		  bpf_map__fd(skel->maps.frames), 0);
	if (at == MAP_FAILED) {
		rc = ho_err_set(err, -errno, "cannot map the live frames: %s", ho_strerror(errno));
		goto fail;
	}
	punt->frames = at;
	xdp_settle(&punt->settled, bpf_program__fd(skel->progs.xdp_live));
	*out = punt;
	return 0;
fail:
	port_punt_destroy(punt);
	return rc;
}

void port_punt_destroy(struct port_punt *punt)
{
	if (!punt)
		return;
	if (punt->frames)
		munmap(punt->frames, punt->map_bytes);
	xdp_unsettle(&punt->settled);
	xdp_live_skel__destroy(punt->skel);
	free(punt->page);
	free(punt);
}

/* Copies one frame, whole as a wire would carry it. Returns its length, 0 if it cannot be. */
static uint32_t copy(const struct port_punt *punt, struct pk_slot *slots, unsigned n, uint8_t *to)
{
	uint32_t bytes = pk_frame_bytes(slots, n), tag = slots->flags & PK_VLAN ? 4 : 0;

	if (bytes < ETHERNET_BYTES || bytes + tag > punt->frame_max || slots->flags & PK_TSO)
		return 0;
	if (slots->flags & PK_CSUM_PARTIAL && pk_csum_complete(punt->arena, slots, n) < 0)
		return 0;
	pk_frame_to_bytes(punt->arena, slots, n, to + tag, bytes);
	if (tag)
		port_vlan_head(punt->arena, slots, to);
	return bytes + tag;
}

/* Passes the frames that are in the map. Returns how many the kernel took. */
static unsigned run(struct port_punt *punt, unsigned ifindex, uint32_t frames, uint32_t longest)
{
	struct xdp_live_skel__bss *shared = punt->skel->bss;

	shared->next = 0;
	shared->count = frames;
	shared->refused = 0;
	while (shared->next < frames) {
		uint32_t left = frames - shared->next;
		struct xdp_md ctx = { .data_end = longest, .ingress_ifindex = ifindex };
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = punt->page, .data_size_in = longest,
			    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx), .repeat = (int)left,
			    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = left);

		if (bpf_prog_test_run_opts(bpf_program__fd(punt->skel->progs.xdp_live), &opts) <
			    0 &&
		    errno != EINTR)
			break;
	}
	return shared->next - shared->refused;
}

unsigned port_punt_frames(struct port_punt *punt, const struct port *port, struct pk_slot *slots,
			  unsigned n)
{
	unsigned ifindex = port_host_ifindex(port), passed = 0;
	uint32_t pending = 0, longest = 0;

	if (!ifindex)
		return 0;
	for (unsigned i = 0, used; i < n; i += used) {
		uint32_t bytes;

		used = pk_frame_slots(slots + i, n - i);
		bytes = copy(punt, slots + i, used, punt->frames + (size_t)pending * punt->stride);
		if (!bytes)
			continue;
		punt->skel->bss->length[pending++] = (uint16_t)bytes;
		longest = HO_MAX(longest, bytes);
		if (pending == PORT_PUNT_BURST) {
			passed += run(punt, ifindex, pending, longest);
			pending = longest = 0;
		}
	}
	return pending ? passed + run(punt, ifindex, pending, longest) : passed;
}
