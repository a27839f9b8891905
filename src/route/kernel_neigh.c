// SPDX-License-Identifier: BSD-2-Clause
/* Neighbours: what the kernel knows of them, and asking it for more. */
#include <errno.h>
#include <linux/neighbour.h>
#include <string.h>

#include "base/log.h"
#include "route/kernel_impl.h"

/* States in which the kernel itself sends to the address that it knows (NUD_CONNECTED and those
 * that are being verified). */
#define USABLE (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE)
/* Of the stale ones, so many are verified in a call: 1000 a second at 10 ms. */
#define VERIFY_BURST 10

static bool is_group(const struct lx_ip *ip)
{
	return ip->family == AF_INET ? ip->byte[0] >= 224 : ip->byte[0] == 0xff;
}

static void verify_later(struct ro_kernel *k, const struct lx_neigh *m)
{
	/* When the ring is full, the next one that becomes stale has its turn first. */
	if (k->stale_head - k->stale_tail == KERN_STALE_MAX)
		return;
	k->stale[k->stale_head++ % KERN_STALE_MAX] =
		(struct kern_stale){ .index = m->index, .addr = m->addr };
}

void kern_on_neigh(struct ro_kernel *k, const struct lx_neigh *m, bool gone)
{
	const struct kern_link *l = kern_link_find(k, m->index);
	struct ro_addr addr = kern_addr_of(&m->addr);
	struct ho_err err = { 0 };
	int rc;

	if (!l || !l->ours || m->proxy || is_group(&m->addr))
		return;
	if (!gone && m->has_mac && (m->state & USABLE)) {
		rc = ro_neigh_set(k->tables, m->index, &addr, m->mac, &err);
		if (rc < 0)
			kern_refused(k, rc, &err);
		if (m->state & NUD_STALE)
			verify_later(k, m);
		return;
	}
	if (!gone && (m->state & NUD_FAILED)) {
		ro_neigh_fail(k->tables, m->index, &addr);
		return;
	}
	/* Being asked for, or forgotten: whatever was known is not any more. */
	ro_neigh_del(k->tables, m->index, &addr);
}

static int use(struct ro_kernel *k, uint32_t index, const struct lx_ip *ip)
{
	int rc = lx_watch_use_neigh(k->watch, index, ip);

	if (rc == -ENOBUFS && !k->said_full) {
		k->said_full = true;
		ho_warn("the kernel has no room for more neighbours; 'sysctl "
			"net.%s.neigh.default.gc_thresh3' says how many it takes, gc_thresh1 from "
			"when on it forgets some",
			ip->family == AF_INET ? "ipv4" : "ipv6");
	}
	return rc;
}

void kern_neigh_poll(struct ro_kernel *k)
{
	for (unsigned i = 0; i < VERIFY_BURST && k->stale_tail != k->stale_head; i++) {
		const struct kern_stale *s = &k->stale[k->stale_tail++ % KERN_STALE_MAX];

		if (use(k, s->index, &s->addr) == 0)
			k->stats.verified++;
	}
}

void kern_resolve(void *arg, uint32_t ifindex, const struct ro_addr *addr)
{
	struct ro_kernel **kernel = arg, *k = *kernel;
	struct lx_ip ip = { .family = addr->family == RO_IPV4 ? AF_INET : AF_INET6 };

	if (!k)
		return;
	memcpy(ip.byte, addr->byte, sizeof(ip.byte));
	k->stats.resolves++;
	/* What the kernel refuses to ask for cannot be reached. */
	if (use(k, ifindex, &ip) < 0)
		ro_neigh_fail(k->tables, ifindex, addr);
}
