// SPDX-License-Identifier: BSD-2-Clause
/*
 * The user's side of xdp_shortcut.bpf.h. Each port's program counts what it forwards by the port
 * that it leaves by, so what left by a port is a sum over the programs of all of them.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "linux/xdpdev.h"
#include "port/kinds.h"
#include "port/shortcut.h"
#include "port/xdp.h"
#include "port/xdp_shared.h"
#include "port/xdp_skel.h"

#define SETTLE_NS 50000000

static struct xdp_port *xdp_of(const struct port *port)
{
	return port && xdp_is_shared(port) ? (struct xdp_port *)port : NULL;
}

int port_shortcut_possible(const struct port *base, struct ho_err *err)
{
	const struct xdp_port *port = xdp_of(base);

	if (!port)
		return ho_err_set(err, -EOPNOTSUPP,
				  "%s has no XDP program that leaves the host what is its",
				  base->name);
	if (port->mode == XDP_MODE_GENERIC)
		return ho_err_set(err, -EOPNOTSUPP,
				  "%s runs in generic mode: its driver has no native XDP",
				  base->name);
	if (port->filter)
		return ho_err_set(err, -EOPNOTSUPP,
				  "%s has a filter, which only the router's packets pass",
				  base->name);
	return 0;
}

enum port_shortcut_takes port_shortcut_takes(const struct port *base)
{
	const struct xdp_port *port = xdp_of(base);
	uint32_t features = port ? lx_xdp_features(port->iface.index) : 0;
	uint64_t count;

	if (!(features & (LX_XDP_NDO_XMIT | LX_XDP_UNKNOWN)))
		return PORT_SHORTCUT_NO;
	if (features & LX_XDP_UNKNOWN ||
	    !lx_driver_stat_sum(port->iface.name, "_xdp_xmit_errors", &count))
		return PORT_SHORTCUT_UNKNOWN;
	return PORT_SHORTCUT_YES;
}

int port_shortcut_join(struct port *const *list, unsigned n, struct ho_err *err)
{
	if (n > XDP_SHORTCUT_PORTS)
		return ho_err_set(err, -E2BIG, "more than %d ports", XDP_SHORTCUT_PORTS);
	for (unsigned i = 0; i < n; i++) {
		struct xdp_port *port = xdp_of(list[i]);

		if (!port)
			continue;
		port->joined = calloc(n, sizeof(*port->joined));
		if (!port->joined)
			return ho_err_set(err, -ENOMEM, "out of memory");
		port->n_joined = n;
		port->number = i;
		for (unsigned k = 0; k < n; k++)
			port->joined[k] = xdp_of(list[k]);
	}
	return 0;
}

/* An entry of one program. The number of the interface is what its reader looks at before and after
 * the rest; it is 0 while that changes. */
static bool set_exit(struct xdp_exit *e, unsigned ifindex, const struct xdp_exit_where *where)
{
	uint32_t has = __atomic_load_n(&e->ifindex, __ATOMIC_RELAXED);
	uint64_t word = 0;

	static_assert(sizeof(word) == sizeof(*where), "read at once");
	if (has != ifindex && (has || !where))
		return !where;
	if (where)
		memcpy(&word, where, sizeof(word));
	if (where && has && !memcmp(&e->where, &word, sizeof(word)))
		return true;
	__atomic_store_n(&e->ifindex, 0, __ATOMIC_SEQ_CST);
	if (!where)
		return true;
	__atomic_store_n((uint64_t *)&e->where, word, __ATOMIC_SEQ_CST);
	__atomic_store_n(&e->ifindex, ifindex, __ATOMIC_SEQ_CST);
	return true;
}

bool port_shortcut_exit(struct port *const *list, unsigned n, unsigned to, unsigned ifindex,
			uint16_t vlan, bool open)
{
	const struct xdp_port *out = to < n ? xdp_of(list[to]) : NULL;
	bool room = true;

	if (!out || !ifindex)
		return true;
	for (unsigned i = 0; i < n; i++) {
		struct xdp_port *port = xdp_of(list[i]);
		struct xdp_exit_where where = {
			.ifindex = out->iface.index,
			.vlan = vlan,
			.port = (uint16_t)to,
		};

		if (port && port->joined)
			room &= set_exit(
				&xdp_prog_skel(port->prog)->bss->exits[XDP_EXIT_AT(ifindex)],
				ifindex, open ? &where : NULL);
	}
	return room;
}

void port_shortcut_longest(struct port *base, uint32_t bytes)
{
	struct xdp_port *port = xdp_of(base);

	if (port && port->joined)
		__atomic_store_n(&xdp_prog_skel(port->prog)->data->shortcut_longest, bytes,
				 __ATOMIC_RELAXED);
}

void port_shortcut_set(struct port *base, bool ip4, bool ip6)
{
	struct xdp_port *port = xdp_of(base);
	struct xdp_skel *skel = port && port->joined ? xdp_prog_skel(port->prog) : NULL;

	if (!skel)
		return;
	__atomic_store_n((uint8_t *)&skel->bss->shortcut4, ip4, __ATOMIC_RELAXED);
	__atomic_store_n((uint8_t *)&skel->bss->shortcut6, ip6, __ATOMIC_RELAXED);
}

/* A program runs, and what it redirected is flushed, in one poll of a driver: a section that
 * readers of RCU are in. This command waits for an RCU grace period; a kernel with CPUs that have
 * no tick (nohz_full) refuses it, and then the wait is much longer than such a poll. */
void port_shortcut_settle(void)
{
	const struct timespec polls = { .tv_nsec = SETTLE_NS };

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		nanosleep(&polls, NULL);
}

/* What `from` forwarded to port number `to`. */
static struct xdp_shortcut_count count_of(const struct xdp_port *from, uint32_t to)
{
	const int cpus = libbpf_num_possible_cpus();
	struct xdp_shortcut_count values[cpus > 0 ? cpus : 1], sum = { 0 };

	if (!from->prog || cpus < 1 ||
	    bpf_map_lookup_elem(bpf_map__fd(xdp_prog_skel(from->prog)->maps.shortcut_counts), &to,
				values) < 0)
		return sum;
	for (int i = 0; i < cpus; i++) {
		sum.packets += values[i].packets;
		sum.in_bytes += values[i].in_bytes;
		sum.out_bytes += values[i].out_bytes;
	}
	return sum;
}

void port_shortcut_read(const struct port *base, struct port_shortcut_counts *out)
{
	const struct xdp_port *port = xdp_of(base);

	*out = (struct port_shortcut_counts){ 0 };
	for (unsigned i = 0; port && i < port->n_joined; i++) {
		struct xdp_shortcut_count in = { 0 }, sent = { 0 };

		if (!port->joined[i])
			continue;
		in = count_of(port, i);
		sent = count_of(port->joined[i], port->number);
		out->in_packets += in.packets;
		out->in_bytes += in.in_bytes;
		out->out_packets += sent.packets;
		out->out_bytes += sent.out_bytes;
	}
}
