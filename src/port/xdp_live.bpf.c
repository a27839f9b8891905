// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The program that BPF_PROG_TEST_RUN runs on live frames: each run takes the next frame that user
 * space left in the map, whole, and sends it out of the interface, or, for ifindex 0, gives it to
 * the kernel's stack as received.
 *
 * The kernel hands the same few pages out again and again, as whoever received them left them
 * behind; so nothing of an old frame is relied on: length and every byte are set anew.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

#include "xdp_shared.h"

const volatile __u32 ifindex;   /* 0 = pass */
const volatile __u32 frame_max; /* bytes in an entry of the map */

/* Shared with user space, which writes them only while no run is under way. */
__u32 next;                    /* frame of the next run */
__u32 count;                   /* frames there are */
__u32 refused;                 /* that could not be built or redirected */
__u16 length[XDP_LIVE_FRAMES]; /* of each frame, bytes */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XDP_LIVE_FRAMES);
	__uint(key_size, 4);
	__uint(value_size, 2048); /* set anew before loading, by the interface's MTU */
} frames SEC(".maps");

SEC("xdp")
int xdp_live(struct xdp_md *ctx)
{
	__u32 i = next, have;
	__u64 len; /* 64 bits: what is compared is then the register that is used */
	void *frame;

	if (i >= count)
		return XDP_DROP;
	next = i + 1;
	frame = bpf_map_lookup_elem(&frames, &i);
	if (!frame)
		goto refuse;
	len = length[i & (XDP_LIVE_FRAMES - 1)];
	/* Less cannot be built. Two checks, on the variable itself: older verifiers do not carry
	 * what is known of len - ETH_HLEN over to len, nor learn from a comparison with 0. */
	if (len < ETH_HLEN)
		goto refuse;
	barrier_var(len);
	if (len > frame_max)
		goto refuse;
	have = ctx->data_end - ctx->data;
	if (have != len && bpf_xdp_adjust_tail(ctx, (int)len - (int)have) < 0)
		goto refuse;
	if (bpf_xdp_store_bytes(ctx, 0, frame, len) < 0)
		goto refuse;
	if (!ifindex)
		return XDP_PASS;
	if (bpf_redirect(ifindex, 0) == XDP_REDIRECT)
		return XDP_REDIRECT;
refuse:
	refused++;
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
