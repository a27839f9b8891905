// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The XDP program of port xdp: frames go to the socket of their queue, except those that the
 * kernel keeps.
 *
 *   xdp_main --- ARP, ND, ICMP to us; for a router, all that is -----> kernel
 *      |         not to be routed
 *      +-- of a router, and plain: xdp_shortcut.bpf.h --------------> another interface
 *      +-- no filter --> take() --+-- socket on this queue ---------> XSKMAP
 *      |                          +-- none -------------------------> kernel
 *      +-- tail call --> filter (xdp_filter.c) --+-- match: xdp_take (as take())
 *                                                +-- else: xdp_unmatched --> kernel
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp_shared.h"

#define VLAN_TAGS_MAX 2
#define ND_FIRST      133 /* router solicitation; RFC 4861 section 4 */
#define ND_LAST       137 /* redirect */

const volatile __u32 keep = XDP_KEEP_LOCAL;
const volatile bool filtered = false;

/* With XDP_KEEP_HOST; user space changes them at any time. */
__u8 host_mac[8];                   /* the interface's address, two zero bytes behind it */
__u64 host_vlans[XDP_VLANS / 64];   /* a bit for each VLAN that is routed; 0 = without a tag */
__u64 host_bits[XDP_OWN_BITS / 64]; /* XDP_OWN_BIT of each own address */

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XDP_QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, XDP_STEPS);
	__type(key, __u32);
	__type(value, __u32);
} steps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XDP_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/* This host's addresses; an IPv4 address has 12 zero bytes in front. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XDP_OWN_MAX);
	__type(key, struct in6_addr);
	__type(value, __u8);
} own_addresses SEC(".maps");

#include "xdp_shortcut.bpf.h"

/* Does the frame carry the mark of our generator? Only asked of frames that are not taken. */
static bool stamped(struct xdp_md *ctx)
{
	__u64 len = bpf_xdp_get_buff_len(ctx);
	__be16 magic = 0;

	if (len < ETH_HLEN + XDP_STAMP_BYTES || len > 65600)
		return false;
	if (bpf_xdp_load_bytes(ctx, len - XDP_STAMP_BYTES, &magic, sizeof(magic)) < 0)
		return false;
	return magic == bpf_htons(XDP_STAMP_MAGIC);
}

static int leave(enum xdp_count why, bool is_stamped)
{
	__u32 key = why;
	__u64 *count = bpf_map_lookup_elem(&counts, &key);

	if (count)
		++*count;
	if (is_stamped) {
		key += XDP_COUNT_STAMPED_KEPT - XDP_COUNT_KEPT;
		count = bpf_map_lookup_elem(&counts, &key);
		if (count)
			++*count;
	}
	return XDP_PASS;
}

/* The socket of the queue, or the kernel when there is none. */
static __always_inline int take(struct xdp_md *ctx)
{
	long verdict = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);

	if (verdict == XDP_REDIRECT)
		return verdict;
	return leave(XDP_COUNT_NO_SOCKET, stamped(ctx));
}

/* ICMP to one of our addresses is the kernel's, unless a generator of ours made it. */
static bool is_own(struct xdp_md *ctx, const struct in6_addr *address)
{
	return keep == XDP_KEEP_LOCAL && bpf_map_lookup_elem(&own_addresses, address) &&
	       !stamped(ctx);
}

static __always_inline bool kernel_keeps(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	void *l3 = eth + 1;
	__be16 type;

	if (l3 > end)
		return false;
	type = eth->h_proto;
#pragma unroll
	for (int i = 0; i < VLAN_TAGS_MAX; i++) {
		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		if (l3 + 4 > end)
			return false;
		type = *(__be16 *)(l3 + 2);
		l3 += 4;
	}
	if (type == bpf_htons(ETH_P_ARP))
		return true;
	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = l3;
		struct in6_addr address = { 0 };

		if ((void *)(ip + 1) > end || ip->protocol != IPPROTO_ICMP)
			return false;
		address.in6_u.u6_addr32[3] = ip->daddr;
		return is_own(ctx, &address);
	}
	if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = l3;
		struct in6_addr address;
		__u8 *icmp = (__u8 *)(ip + 1);

		if ((void *)(icmp + 1) > end || ip->nexthdr != IPPROTO_ICMPV6)
			return false;
		if (*icmp >= ND_FIRST && *icmp <= ND_LAST)
			return true;
		address = ip->daddr;
		return is_own(ctx, &address);
	}
	return false;
}

static __always_inline bool host_owns(const struct in6_addr *address)
{
	__u32 bit = XDP_OWN_BIT(address->in6_u.u6_addr32[3]);

	return (host_bits[bit / 64 & (XDP_OWN_BITS / 64 - 1)] >> (bit % 64) & 1) &&
	       bpf_map_lookup_elem(&own_addresses, address);
}

/*
 * A router takes IP packets that were sent to its interface's address and are for somebody else,
 * without a tag or with that of one of its VLANs. All else is the host's: its own addresses,
 * groups, broadcasts, link-local destinations, ARP, LLDP, macvlans, bridged and unknown VLANs.
 */
static __always_inline bool host_keeps(struct xdp_md *ctx, struct place *at)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	void *l3 = eth + 1;
	struct in6_addr to = { 0 };
	__u32 vlan = 0;
	__be16 type;

	if (l3 > end)
		return true;
	if (*(__u32 *)eth->h_dest != *(__u32 *)host_mac ||
	    *(__u16 *)(eth->h_dest + 4) != *(__u16 *)(host_mac + 4))
		return true;
	type = eth->h_proto;
	if (type == bpf_htons(ETH_P_8021Q)) {
		if (l3 + 4 > end)
			return true;
		vlan = bpf_ntohs(*(__be16 *)l3) & (XDP_VLANS - 1);
		type = *(__be16 *)(l3 + 2);
		l3 += 4;
	}
	if (!(host_vlans[vlan / 64] >> (vlan % 64) & 1))
		return true;
	*at = (struct place){ data, end, l3, type, l3 != eth + 1 };
	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = l3;

		if ((void *)(ip + 1) > end)
			return false; /* cut off: the router says so */
		to.in6_u.u6_addr32[3] = ip->daddr;
		/* Groups, and 255.255.255.255. */
		return (bpf_ntohl(ip->daddr) >> 28) >= 14 || host_owns(&to);
	}
	if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = l3;

		if ((void *)(ip + 1) > end)
			return false;
		to = ip->daddr;
		/* ff00::/8, fe80::/10 */
		return to.in6_u.u6_addr8[0] == 0xff ||
		       (to.in6_u.u6_addr8[0] == 0xfe && (to.in6_u.u6_addr8[1] & 0xc0) == 0x80) ||
		       host_owns(&to);
	}
	return true;
}

SEC("xdp")
int xdp_main(struct xdp_md *ctx)
{
	if (keep == XDP_KEEP_HOST) {
		struct place at;
		int verdict;

		if (host_keeps(ctx, &at))
			return leave(XDP_COUNT_KEPT, stamped(ctx));
		verdict = shortcut(ctx, &at);
		if (verdict)
			return verdict;
	} else if (keep != XDP_KEEP_NOTHING && kernel_keeps(ctx)) {
		return leave(XDP_COUNT_KEPT, stamped(ctx));
	}
	/* Goes on here when the filter is not there. */
	if (filtered)
		bpf_tail_call(ctx, &steps, XDP_STEP_FILTER);
	return take(ctx);
}

SEC("xdp")
int xdp_take(struct xdp_md *ctx)
{
	return take(ctx);
}

SEC("xdp")
int xdp_unmatched(struct xdp_md *ctx)
{
	return leave(XDP_COUNT_UNMATCHED, stamped(ctx));
}

char _license[] SEC("license") = "Dual BSD/GPL";
