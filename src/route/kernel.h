/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel as a router's control plane: `ip`, FRR and BIRD set the kernel's tables, and the
 * router follows them.
 *
 *   rtnetlink --> linux/rtnl_watch.h --> ro_kernel --> ro_tables --> workers
 *                        ^                  |  |
 *                        |                  |  +--> port/host.h: what stays with the kernel
 *                        +---- "find this neighbour", from the workers' wishes
 *
 * What is followed: the interfaces of the router's ports and 802.1Q sub-interfaces of them; their
 * addresses; the routes of the tables main and local, next hop objects included; neighbours.
 *
 * What is not ours. A route that leaves by another interface (the management network, a tunnel)
 * becomes RO_HOST: its packets go to the kernel, which forwards them as it always would. Of a
 * route of several paths only those by our interfaces are used, if there are any. Routes for a
 * type of service or a source prefix and rules beyond the kernel's own are not followed; they are
 * counted, and said once.
 *
 * Neighbours are resolved by the kernel. It does not see that they are used, so each that becomes
 * stale is verified on its behalf (a unicast request about every half minute); what does not answer
 * goes away.
 *
 * All by one thread, the control plane's.
 */
#ifndef HOLDOFF_ROUTE_KERNEL_H
#define HOLDOFF_ROUTE_KERNEL_H

#include "port/port.h"
#include "route/tables.h"

struct ro_kernel;

struct ro_kernel_config {
	struct rt *rt;
	struct ro_tables *tables; /* whose resolver must be ro_kernel_resolver's */
	struct port *const *port; /* the router's ports by number; copied */
	unsigned ports;
};

struct ro_kernel_stats {
	uint64_t messages; /* changes read */
	uint64_t broken;   /* that could not be parsed */
	uint64_t overruns; /* times the kernel had to drop messages */
	uint64_t resyncs;  /* full dumps, the first one included */
	uint64_t redumps;  /* of routes alone: the kernel removes some without a word */
	uint64_t resolves; /* neighbours asked for */
	uint64_t verified; /* stale ones that were asked again */
	uint64_t refused;  /* routes, addresses, ... that the tables did not take */
	/* as of now */
	unsigned interfaces, addresses;
	unsigned routes4, routes6; /* of the tables main and local */
	unsigned elsewhere;        /* of these: by interfaces that are not ours */
	unsigned ignored;          /* routes for a source or a type of service */
	unsigned rules;            /* that are not followed */
};

/*
 * Opens netlink, attaches to the ports (port/host.h) and reads everything there is. From then on
 * ro_kernel_poll follows. -EOPNOTSUPP or -EINVAL with a sentence for a port that is not an
 * interface shared with the kernel.
 */
int ro_kernel_create(const struct ro_kernel_config *config, struct ro_kernel **out,
		     struct ho_err *err);
/* NULL is allowed. */
void ro_kernel_destroy(struct ro_kernel *kernel);

/* To be given to ro_tables_create before there is a ro_kernel: arg is where its address will be.
 * struct ro_kernel *kernel = NULL; ro_kernel_resolver(&kernel, &resolver); */
void ro_kernel_resolver(struct ro_kernel **kernel, struct ro_resolver *out);

/* Readable when ro_kernel_poll has something to do at once. */
int ro_kernel_fd(const struct ro_kernel *kernel);

/*
 * Takes in what changed, and does what is due. To be called when the descriptor is readable and
 * about every 10 ms. Returns 1 when more waits, 0 when not; a negative errno with a sentence when
 * the kernel cannot be followed any longer.
 */
int ro_kernel_poll(struct ro_kernel *kernel, uint64_t now_ns, struct ho_err *err);

void ro_kernel_read_stats(const struct ro_kernel *kernel, struct ro_kernel_stats *out);

/* The least MTU that a route had so far or an interface has, in bytes (the kernel takes a route's
 * for more than its interface's); UINT32_MAX when no route had one. */
uint32_t ro_kernel_least_mtu(const struct ro_kernel *kernel);

/* Would the kernel's table main send otherwise than the router? With addresses that the ports have
 * no room for (port_host_addrs), at any time; with routes of the table local that somebody made
 * (`ip route add local PREFIX dev lo`); with routes that are not followed (stats.ignored). */
bool ro_kernel_knows_more(const struct ro_kernel *kernel, bool ip6);

/* The interfaces that are routed, at most max of them, always in the same order: returns how many.
 */
struct ro_kernel_iface {
	uint32_t ifindex;
	uint32_t port;
	uint32_t vlan; /* 0 = without a tag */
	uint32_t up;
};
unsigned ro_kernel_ifaces(const struct ro_kernel *kernel, struct ro_kernel_iface *out,
			  unsigned max);

/* Interface number i (from 0) that is routed: its name into buf; NULL behind the last one. */
const char *ro_kernel_iface_name(const struct ro_kernel *kernel, unsigned i);

#endif
