/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Part of xdp.bpf.c: the router's shortcut. A packet that needs nothing but a look-up is forwarded
 * here, by the kernel's own table (bpf_fib_lookup), on the CPU where it arrived, and is never
 * copied. All that is not plain goes on to the socket and the router behind it, which knows what
 * to answer: options, fragments, the end of a TTL, wrong headers, odd addresses, a route that is
 * not unicast or leaves by no port, a neighbour that is not known, more than the MTU.
 *
 * What is taken here must come out as the router would send it. So the checks are those of the
 * router's own fast path (route/fast.c), and the table is "main" alone, without the host's rules.
 */
#ifndef HOLDOFF_PORT_XDP_SHORTCUT_BPF_H
#define HOLDOFF_PORT_XDP_SHORTCUT_BPF_H

/* What user space sets at any time. */
__u32 shortcut_longest = ~0u;     /* bytes of a packet */
bool shortcut4, shortcut6;        /* for packets of this family */
struct xdp_exit exits[XDP_EXITS]; /* by which interfaces packets may leave: XDP_EXIT_AT */

/* May frames arrive with a checksum that their sender left to the wire? */
const volatile bool completes = false;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XDP_SHORTCUT_PORTS);
	__type(key, __u32);
	__type(value, struct xdp_shortcut_count);
} shortcut_counts SEC(".maps");

/* Where the parts of a frame are. */
struct place {
	void *data, *end, *l3;
	__be16 type;
	bool tagged;
};

#define FAMILY4       2
#define FAMILY6       10
#define FRAGMENT      0x3fff /* IPv4: more fragments, or an offset */
#define SRC_FIRST_OCT 223
#define TAG_BYTES     4

/* Is it divisible by 65535? It is not 0. As in route/fast.c. */
static __always_inline bool ones(__u64 sum)
{
	return sum * 0xfffefffefffeffffull <= ~0ull / 65535;
}

static __always_inline bool maybe_own(__u32 word)
{
	__u32 bit = XDP_OWN_BIT(word);

	return host_bits[bit / 64 & (XDP_OWN_BITS / 64 - 1)] >> (bit % 64) & 1;
}

/*
 * The ports, for the kernel's choice among several paths. False: for the router, because the
 * header is cut off, or its checksum is not complete: the field holds the pseudo header's sum.
 */
static __always_inline bool transport(const struct place *at, void *l4, __u8 proto, __u32 bytes,
				      __u64 pseudo, struct bpf_fib_lookup *fib)
{
	__u16 field;

	if (proto == IPPROTO_UDP) {
		if (l4 + 8 > at->end || bytes < 8)
			return false;
		field = *(__u16 *)(l4 + 6);
	} else if (proto == IPPROTO_TCP) {
		if (l4 + 20 > at->end || bytes < 20)
			return false;
		field = *(__u16 *)(l4 + 16);
	} else {
		return true;
	}
	fib->sport = *(__be16 *)l4;
	fib->dport = *(__be16 *)(l4 + 2);
	if (!completes)
		return true;
	pseudo += (__u64)bpf_htons(proto) + bpf_htons((__u16)bytes);
	return !ones(pseudo + 0xffff - field);
}

/* RFC 1812 5.2.2, 5.3.7. False: not for here. */
static __always_inline bool plain4(const struct place *at, struct bpf_fib_lookup *fib, __u32 *bytes)
{
	struct iphdr *ip = at->l3;
	__u32 *word = at->l3, src, dst;
	__u64 sum;

	if ((void *)(ip + 1) > at->end)
		return false;
	*bytes = bpf_ntohs(ip->tot_len);
	if (*(__u8 *)ip != 0x45 || ip->ttl <= 1 || ip->frag_off & bpf_htons(FRAGMENT) ||
	    *bytes < sizeof(*ip) || *bytes > at->end - at->l3)
		return false;
	sum = (__u64)word[0] + word[1] + word[2] + word[3] + word[4];
	if (!ones(sum))
		return false;
	src = ip->saddr;
	dst = ip->daddr;
	/* 0/8, 127/8, groups and above, 169.254/16; groups as destinations are the host's. */
	if ((__u8)(src - 1) >= SRC_FIRST_OCT || (__u8)src == 127 || (__u16)src == 0xfea9 ||
	    !(__u8)dst || (__u8)dst == 127 || (__u16)dst == 0xfea9 || maybe_own(src))
		return false;
	fib->family = FAMILY4;
	fib->l4_protocol = ip->protocol;
	fib->tot_len = *bytes;
	fib->ipv4_src = src;
	fib->ipv4_dst = dst;
	return transport(at, ip + 1, ip->protocol, *bytes - sizeof(*ip), (__u64)src + dst, fib);
}

/* Extension headers that may stand between the header and what a flow is known by. */
static __always_inline bool is_extension(__u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_FRAGMENT ||
	       next == IPPROTO_DSTOPTS || next == IPPROTO_MH || next == IPPROTO_AH;
}

static __always_inline bool plain6(const struct place *at, struct bpf_fib_lookup *fib, __u32 *bytes)
{
	struct ipv6hdr *ip = at->l3;
	const __u32 *src, *dst;
	__u64 sum = 0;

	if ((void *)(ip + 1) > at->end)
		return false;
	*bytes = bpf_ntohs(ip->payload_len) + sizeof(*ip);
	if (ip->version != 6 || ip->hop_limit <= 1 || *bytes > at->end - at->l3 ||
	    is_extension(ip->nexthdr))
		return false;
	src = ip->saddr.in6_u.u6_addr32;
	dst = ip->daddr.in6_u.u6_addr32;
	/* ::, ::1, mapped and such begin with zeros; groups and link-local with fe or ff. */
	if (!(src[0] | src[1]) || !(dst[0] | dst[1]) || (__u8)src[0] >= 0xfe ||
	    (__u8)dst[0] >= 0xfe || maybe_own(src[3]))
		return false;
	fib->family = FAMILY6;
	fib->l4_protocol = ip->nexthdr;
	fib->tot_len = *bytes > 0xffff ? 0xffff : *bytes;
	fib->flowinfo = *(__be32 *)ip & bpf_htonl(0xfffff);
#pragma unroll
	for (int i = 0; i < 4; i++) {
		fib->ipv6_src[i] = src[i];
		fib->ipv6_dst[i] = dst[i];
		sum += (__u64)src[i] + dst[i];
	}
	return transport(at, ip + 1, ip->nexthdr, *bytes - sizeof(*ip), sum, fib);
}

/* One hop less, and the checksum right again (RFC 1624). */
static __always_inline void count_down4(struct iphdr *ip)
{
	__u32 sum = (__u32)ip->check + bpf_htons(0x0100);

	ip->check = (__u16)(sum + (sum >= 0xffff));
	ip->ttl--;
}

/* XDP_REDIRECT, or 0: the packet is as it was, and is for the router. */
static __always_inline int shortcut(struct xdp_md *ctx, struct place *at)
{
	struct bpf_fib_lookup fib = { .ifindex = ctx->ingress_ifindex };
	const bool is4 = at->type == bpf_htons(ETH_P_IP);
	struct xdp_shortcut_count *count;
	struct xdp_exit exit, *e;
	__u32 bytes, arrived, l2, number;
	struct ethhdr *eth;
	void *end, *l3;
	long padding;

	if (is4 ? !shortcut4 || !plain4(at, &fib, &bytes) : !shortcut6 || !plain6(at, &fib, &bytes))
		return 0;
	if (bytes > shortcut_longest)
		return 0;
	/* Numbers: the verifier refuses what the compiler would make of the pointers otherwise. */
	arrived = at->end - at->data;
	barrier_var(arrived);
	padding = at->end - at->l3;
	barrier_var(padding);
	padding -= (long)bytes;
	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), BPF_FIB_LOOKUP_DIRECT) !=
	    BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	e = &exits[XDP_EXIT_AT(fib.ifindex)];
	/* The second look sees whether it was another one's while the rest was read. */
	if (*(volatile __u32 *)&e->ifindex != fib.ifindex)
		return 0;
	*(volatile __u64 *)&exit.where = *(volatile __u64 *)&e->where;
	if (*(volatile __u32 *)&e->ifindex != fib.ifindex)
		return 0;
	number = exit.where.port;
	count = bpf_map_lookup_elem(&shortcut_counts, &number);
	if (!count)
		return 0;
	l2 = exit.where.vlan ? ETH_HLEN + TAG_BYTES : ETH_HLEN;
	if (at->tagged != !!exit.where.vlan &&
	    bpf_xdp_adjust_head(ctx, at->tagged ? TAG_BYTES : -TAG_BYTES) < 0)
		return 0;
	/* The verifier knows nothing any more of a frame whose head moved. */
	eth = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	l3 = (void *)eth + ETH_HLEN;
	if (exit.where.vlan) {
		if (l3 + TAG_BYTES > end)
			return XDP_DROP;
		*(__be16 *)l3 = bpf_htons(exit.where.vlan);
		*(__be16 *)(l3 + 2) = at->type;
		l3 += TAG_BYTES;
	}
	if (is4) {
		if (l3 + sizeof(struct iphdr) > end)
			return XDP_DROP;
		count_down4(l3);
	} else {
		if (l3 + sizeof(struct ipv6hdr) > end)
			return XDP_DROP;
		((struct ipv6hdr *)l3)->hop_limit--;
	}
	__builtin_memcpy(eth->h_dest, fib.dmac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, fib.smac, ETH_ALEN);
	eth->h_proto = exit.where.vlan ? bpf_htons(ETH_P_8021Q) : at->type;
	/* What follows the packet was for the link it came by. */
	if (padding > 0)
		bpf_xdp_adjust_tail(ctx, (int)(l2 + bytes) - (int)bpf_xdp_get_buff_len(ctx));
	count->packets++;
	count->in_bytes += arrived;
	count->out_bytes += l2 + bytes;
	return bpf_redirect(exit.where.ifindex, 0);
}

#endif
