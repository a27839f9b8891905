// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A peer in bench/forward_veth.sh: forwards IPv4 and IPv6 in XDP as the kernel's helper
 * bpf_fib_lookup says. It does as little as can be called forwarding: no options, no ICMP; whatever
 * it does not forward goes to the kernel.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FAMILY4 2
#define FAMILY6 10

SEC("xdp")
int xdp_fib(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bpf_fib_lookup fib = { .ifindex = ctx->ingress_ifindex };
	struct ethhdr *eth = data;
	struct ipv6hdr *ip6 = data + sizeof(*eth);
	struct iphdr *ip = data + sizeof(*eth);

	if (data + sizeof(*eth) + sizeof(*ip) > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		if (ip->ihl != 5 || ip->ttl <= 1)
			return XDP_PASS;
		fib.family = FAMILY4;
		fib.tos = ip->tos;
		fib.l4_protocol = ip->protocol;
		fib.tot_len = bpf_ntohs(ip->tot_len);
		fib.ipv4_src = ip->saddr;
		fib.ipv4_dst = ip->daddr;
	} else if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		if (data + sizeof(*eth) + sizeof(*ip6) > end || ip6->hop_limit <= 1)
			return XDP_PASS;
		fib.family = FAMILY6;
		fib.l4_protocol = ip6->nexthdr;
		fib.tot_len = bpf_ntohs(ip6->payload_len);
		__builtin_memcpy(fib.ipv6_src, &ip6->saddr, 16);
		__builtin_memcpy(fib.ipv6_dst, &ip6->daddr, 16);
	} else {
		return XDP_PASS;
	}
	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return XDP_PASS;
	if (fib.family == FAMILY4) {
		__u32 sum = (__u32)ip->check + bpf_htons(0x0100);

		ip->check = (__u16)(sum + (sum >= 0xffff));
		ip->ttl--;
	} else {
		ip6->hop_limit--;
	}
	__builtin_memcpy(eth->h_dest, fib.dmac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, fib.smac, ETH_ALEN);
	return bpf_redirect(fib.ifindex, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
