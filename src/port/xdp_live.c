// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sending by live frames: BPF_PROG_TEST_RUN with BPF_F_TEST_XDP_LIVE_FRAMES
 * (Documentation/bpf/bpf_prog_run.rst) runs a program on pages of a page pool and transmits what
 * it redirects, without an skb a frame. On an interface without zero-copy that is faster than a
 * socket.
 *
 *   port_tx --copy--> frames map (mmap) --+
 *                     length[] (bss) -----+--> run: next = 0, count = n, repeat = n
 *                                                each run copies frame `next` into its page,
 *                                                sets the length, redirects; next++
 *
 * So any frames can be sent, in order, each exactly as it was given: there is no template whose
 * fields would have to be rewritten. A run costs tens of microseconds to set up; so frames are
 * collected until there are XDP_LIVE_FRAMES or until a port_tx or port_reap comes HOLD_NS or more
 * after the last run. Whoever sends slowly sees each port_tx sent at once; who sends as fast as
 * it can gets large runs.
 *
 * What the peer then refuses (its ring is full) is counted by the driver only.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "port/xdp.h"
#include "port/xdp_live_skel.h"
#include "port/xdp_shared.h"

#define HOLD_NS 100000
/*
 * Frames between two flushes to the interface. A veth peer's ring holds 256 and is emptied only
 * between batches.
 */
#define BATCH 64
/*
 * A live frame is one page with a head of the test run's (struct xdp_page_head), the kernel's
 * headroom of 256 and the room of a struct skb_shared_info behind it: 4096 - 256 - 320 - 192, with
 * some to spare.
 */
#define FRAME_MAX 3200

#ifndef BPF_F_TEST_XDP_LIVE_FRAMES
#define BPF_F_TEST_XDP_LIVE_FRAMES (1U << 1)
#endif

struct xdp_live {
	struct xdp_live_skel *skel;
	int ioctl_fd; /* to ask for the link */
	struct xdp_settled settled;
	char ifname[IFNAMSIZ];
	uint8_t *frames; /* the mapped array */
	size_t map_bytes;
	uint32_t stride, frame_max;
	uint32_t pending, longest; /* frames collected, and the longest of them */
	uint64_t pending_bytes;
	uint64_t last_run_ns;
	uint8_t page[FRAME_MAX]; /* what the kernel fills the pages with, once */
};

uint32_t xdp_live_max_frame(void)
{
	return FRAME_MAX;
}

static bool is_up(struct xdp_live *live)
{
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, live->ifname, sizeof(ifr.ifr_name));
	return ioctl(live->ioctl_fd, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_UP) &&
	       (ifr.ifr_flags & IFF_RUNNING);
}

/*
 * Each test run of more than one frame makes the program known to the kernel's XDP dispatcher and
 * takes it away afterwards (kernel/bpf/dispatcher.c): twice kernel text is patched and an RCU
 * grace period awaited, a millisecond or more. A program that is attached anywhere is known
 * already. So it is attached to a tap interface of its own, which is never set up and goes away
 * with its descriptor. Without one (no /dev/net/tun) all works, but slower.
 */
void xdp_settle(struct xdp_settled *s, int prog_fd)
{
	struct ifreq ifr = { .ifr_name = "hxlive%d", .ifr_flags = IFF_TAP | IFF_NO_PI };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_SKB_MODE);
	unsigned index;

	s->tap_fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (s->tap_fd >= 0 && ioctl(s->tap_fd, TUNSETIFF, &ifr) == 0) {
		index = if_nametoindex(ifr.ifr_name);
		s->link_fd = bpf_link_create(prog_fd, (int)index, BPF_XDP, &opts);
	}
	if (s->link_fd < 0)
		ho_note("live frames: no tap interface to keep their program in the kernel (%s): "
			"each batch costs a millisecond more",
			ho_strerror(errno));
}

void xdp_unsettle(struct xdp_settled *s)
{
	if (s->link_fd >= 0)
		close(s->link_fd);
	if (s->tap_fd >= 0)
		close(s->tap_fd);
	*s = XDP_SETTLED_INIT;
}

/* Sends what was collected. */
static void run(struct xdp_txq *q)
{
	struct xdp_live *live = q->live;
	struct xdp_live_skel__bss *shared = live->skel->bss;
	uint32_t sent, frames = live->pending;
	int rc = 0;

	if (!frames)
		return;
	if (!is_up(live)) {
		port_drop(&q->base.ctr, PORT_DROP_TX_LINK_DOWN, frames);
		goto done;
	}
	shared->next = 0;
	shared->count = frames;
	shared->refused = 0;
	while (shared->next < frames) {
		uint32_t left = frames - shared->next;
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = live->page,
			    .data_size_in = live->longest, .repeat = (int)left,
			    .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
			    .batch_size = HO_MIN(left, (uint32_t)BATCH));

		rc = bpf_prog_test_run_opts(bpf_program__fd(live->skel->progs.xdp_live), &opts);
		ho_ctr_add(&q->base.ctr.kicks, 1);
		/* A signal ends a run between two batches. */
		if (rc < 0 && errno != EINTR)
			break;
	}
	sent = shared->next - shared->refused;
	if (sent < frames) {
		port_drop(&q->base.ctr, PORT_DROP_TX_KERNEL, frames - sent);
		/* Which ones is not known: their share of the bytes. */
		live->pending_bytes = live->pending_bytes * sent / frames;
	}
	port_count(&q->base.ctr, sent, live->pending_bytes);
done:
	live->pending = live->longest = 0;
	live->pending_bytes = 0;
	live->last_run_ns = rt_now_ns(q->base.port->rt);
}

static void run_if_due(struct xdp_txq *q)
{
	if (q->live->pending && rt_now_ns(q->base.port->rt) - q->live->last_run_ns >= HOLD_NS)
		run(q);
}

unsigned xdp_live_tx(struct port_txq *base, struct pk_slot *slots, unsigned n)
{
	struct xdp_txq *q = (struct xdp_txq *)base;
	struct xdp_live *live = q->live;

	n = port_whole_frames(slots, n, n);
	for (unsigned i = 0, used; i < n; i += used) {
		enum port_drop why;
		uint32_t bytes;

		used = slots[i].flags & PK_MORE ? pk_frame_slots(slots + i, n - i) : 1;
		why = xdp_finish_frame(base, slots + i, used, &bytes);
		if (ho_unlikely(why != PORT_DROP_COUNT)) {
			port_tx_discard(base, slots + i, used, why);
			continue;
		}
		if (live->pending == XDP_LIVE_FRAMES)
			run(q);
		pk_frame_to_bytes(base->arena, slots + i, used,
				  live->frames + (size_t)live->pending * live->stride, bytes);
		live->skel->bss->length[live->pending++] = (uint16_t)bytes;
		live->longest = HO_MAX(live->longest, bytes);
		live->pending_bytes += bytes;
		pk_free_slots(base->cache, slots + i, used);
		base->accepted++;
	}
	if (live->pending == XDP_LIVE_FRAMES)
		run(q);
	else
		run_if_due(q);
	return n;
}

unsigned xdp_live_reap(struct port_txq *base)
{
	struct xdp_txq *q = (struct xdp_txq *)base;
	uint64_t before = base->ctr.packets;

	run_if_due(q);
	return (unsigned)(base->ctr.packets - before);
}

void xdp_live_flush(struct xdp_txq *q)
{
	run(q);
}

int xdp_live_create(const struct xdp_port *port, struct xdp_live **out, struct ho_err *err)
{
	struct xdp_live *live = calloc(1, sizeof(*live));
	struct xdp_live_skel *skel;
	void *at;
	int rc;

	if (!live)
		return ho_err_set(err, -ENOMEM, "out of memory for live frames");
	live->ioctl_fd = -1;
	live->settled = XDP_SETTLED_INIT;
	live->frame_max = HO_MIN(port->base.max_frame, (uint32_t)FRAME_MAX);
	/* An odd number of cache lines, so that headers spread over the cache. */
	live->stride = (uint32_t)(HO_ALIGN_UP(live->frame_max, HO_CACHE_LINE) / HO_CACHE_LINE | 1) *
		       HO_CACHE_LINE;
	memcpy(live->ifname, port->iface.name, sizeof(port->iface.name));
	live->skel = skel = xdp_live_skel__open();
	if (!skel) {
		rc = ho_err_set(err, -errno, "cannot open the live-frames program: %s",
				ho_strerror(errno));
		goto fail;
	}
	skel->rodata->ifindex = port->iface.index;
	skel->rodata->frame_max = live->frame_max;
	bpf_map__set_value_size(skel->maps.frames, live->stride);
	rc = xdp_live_skel__load(skel);
	if (rc < 0) {
		ho_err_set(err, rc, "the kernel refuses the live-frames program: %s%s",
			   ho_strerror(rc),
			   rc == -EPERM ? "; it needs cap_bpf and cap_net_admin" : "");
		goto fail;
	}
	live->map_bytes =
		HO_ALIGN_UP((size_t)live->stride * XDP_LIVE_FRAMES, (size_t)sysconf(_SC_PAGESIZE));
	at = mmap(NULL, live->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		  bpf_map__fd(skel->maps.frames), 0);
	live->ioctl_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (at == MAP_FAILED || live->ioctl_fd < 0) {
		rc = ho_err_set(err, -errno, "cannot map the live frames: %s", ho_strerror(errno));
		goto fail;
	}
	live->frames = at;
	xdp_settle(&live->settled, bpf_program__fd(skel->progs.xdp_live));
	*out = live;
	return 0;
fail:
	xdp_live_destroy(live);
	return rc;
}

void xdp_live_destroy(struct xdp_live *live)
{
	if (!live)
		return;
	if (live->frames)
		munmap(live->frames, live->map_bytes);
	xdp_unsettle(&live->settled);
	if (live->ioctl_fd >= 0)
		close(live->ioctl_fd);
	xdp_live_skel__destroy(live->skel);
	free(live);
}
