// SPDX-License-Identifier: BSD-2-Clause
/* What the XDP program passes for the host of a router: its variables and its map of addresses. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "port/host.h"
#include "port/kinds.h"
#include "port/xdp.h"
#include "port/xdp_shared.h"
#include "port/xdp_skel.h"

/* The program of a port that is shared with the host, or NULL. */
static struct xdp_skel *shared_skel(struct port *port)
{
	return xdp_is_shared(port) ? xdp_prog_skel(((struct xdp_port *)port)->prog) : NULL;
}

bool xdp_is_shared(const struct port *base)
{
	const struct xdp_port *port = (const struct xdp_port *)base;

	return base->kind == &port_kind_xdp && port->opts.keep == XDP_KEEP_HOST && port->prog;
}

int port_host_attach(struct port *base, bool *shared, struct ho_err *err)
{
	*shared = xdp_is_shared(base);
	if (*shared || base->kind == &port_kind_packet)
		return 0;
	if (base->kind == &port_kind_xdp)
		return ho_err_set(err, -EINVAL,
				  "%s: a router that the kernel's tables steer needs keep=host: "
				  "otherwise the kernel would not get what is for this host",
				  base->name);
	return ho_err_set(err, -EOPNOTSUPP,
			  "%s is no interface whose addresses and routes the kernel has; xdp: and "
			  "packet: ports are, and 'holdoff forward -f FILE' routes for others",
			  base->name);
}

unsigned port_host_ifindex(const struct port *base)
{
	if (base->kind == &port_kind_xdp)
		return ((const struct xdp_port *)base)->iface.index;
	if (base->kind == &port_kind_packet)
		return if_nametoindex(strchr(base->name, ':') + 1);
	return 0;
}

static bool has(const uint8_t (*addr)[16], unsigned n, const uint8_t key[16])
{
	for (unsigned i = 0; i < n; i++) {
		if (!memcmp(addr[i], key, 16))
			return true;
	}
	return false;
}

/* Takes out of the map what is not in the list. */
static void remove_others(int map, const uint8_t (*addr)[16], unsigned n)
{
	uint8_t key[16], next[16];
	void *at = NULL;

	while (bpf_map_get_next_key(map, at, next) == 0) {
		/* The walk goes on from an entry that is still there. */
		if (has(addr, n, next)) {
			memcpy(key, next, sizeof(key));
			at = key;
		} else if (bpf_map_delete_elem(map, next) < 0) {
			return;
		}
	}
}

static void set_bit(uint64_t *bits, const uint8_t addr[16])
{
	uint32_t word;

	memcpy(&word, addr + 12, sizeof(word));
	word = XDP_OWN_BIT(word);
	bits[word / 64] |= 1ull << (word % 64);
}

int port_host_addrs(struct port *base, const uint8_t (*addr)[16], unsigned n, unsigned n_refused)
{
	struct xdp_skel *skel = shared_skel(base);
	uint64_t bits[XDP_OWN_BITS / 64] = { 0 };
	int map, rc = 0;

	if (!skel)
		return 0;
	map = bpf_map__fd(skel->maps.own_addresses);
	remove_others(map, addr, n);
	for (unsigned i = 0; i < n; i++) {
		uint8_t yes = 1;

		if (bpf_map_update_elem(map, addr[i], &yes, BPF_ANY) < 0)
			rc = -ENOSPC;
		/* No source of a packet, whether the program knows it or not. */
		set_bit(bits, addr[i]);
	}
	for (unsigned i = n; i < n + n_refused; i++)
		set_bit(bits, addr[i]);
	for (unsigned i = 0; i < HO_ARRAY_LEN(bits); i++)
		__atomic_store_n(&skel->bss->host_bits[i], bits[i], __ATOMIC_RELAXED);
	return rc;
}

void port_host_mac(struct port *base, const uint8_t mac[6])
{
	struct xdp_skel *skel = shared_skel(base);

	if (skel)
		memcpy(skel->bss->host_mac, mac, 6);
}

void port_host_vlan(struct port *base, uint16_t vlan, bool routed)
{
	struct xdp_skel *skel = shared_skel(base);
	uint64_t bit = 1ull << (vlan % 64);

	if (!skel || vlan >= XDP_VLANS)
		return;
	if (routed)
		skel->bss->host_vlans[vlan / 64] |= bit;
	else
		skel->bss->host_vlans[vlan / 64] &= ~bit;
}
