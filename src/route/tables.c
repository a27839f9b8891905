// SPDX-License-Identifier: BSD-2-Clause
/* The tables as a whole: making them, resynchronisation, what is freed after a grace period. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <urcu/urcu-qsbr.h>

#include "route/tables_impl.h"

/* So much waits for a grace period at most while the control plane does many changes at once. */
#define PENDING_MAX 4096

/* Prefixes that no route changes. */
static const struct reserved {
	uint8_t family, len, nh;
	uint8_t addr[16];
} reserved[] = {
	{ RO_IPV4, 8, RO_NH_NUM_MARTIAN, { 0 } },                         /* RFC 1122 3.2.1.3 */
	{ RO_IPV4, 8, RO_NH_NUM_MARTIAN, { 127 } },                       /* the same */
	{ RO_IPV4, 16, RO_NH_NUM_LINK_SCOPE, { 169, 254 } },              /* RFC 3927 2.7 */
	{ RO_IPV4, 4, RO_NH_NUM_MULTICAST, { 224 } },                     /* RFC 1112 */
	{ RO_IPV4, 4, RO_NH_NUM_MARTIAN, { 240 } },                       /* RFC 1812 5.3.7 */
	{ RO_IPV4, 32, RO_NH_NUM_BROADCAST, { 255, 255, 255, 255 } },     /* RFC 1812 5.3.5.1 */
	{ RO_IPV6, 128, RO_NH_NUM_MARTIAN, { 0 } },                       /* RFC 4291 2.5.2 */
	{ RO_IPV6, 128, RO_NH_NUM_MARTIAN, { [15] = 1 } },                /* RFC 4291 2.5.3 */
	{ RO_IPV6, 96, RO_NH_NUM_MARTIAN, { [10] = 0xff, [11] = 0xff } }, /* RFC 6890 2.2.3 */
	{ RO_IPV6, 10, RO_NH_NUM_LINK_SCOPE, { 0xfe, 0x80 } },            /* RFC 4291 2.5.6 */
	{ RO_IPV6, 8, RO_NH_NUM_MULTICAST, { 0xff } },                    /* RFC 4291 2.7 */
};

static bool covers(const uint8_t *prefix, unsigned len, const uint8_t *addr)
{
	unsigned whole = len / 8, rest = len % 8;

	return !memcmp(prefix, addr, whole) &&
	       (!rest || !((prefix[whole] ^ addr[whole]) >> (8 - rest)));
}

bool ro_is_reserved(uint8_t family, const uint8_t *addr, unsigned len)
{
	for (unsigned i = 0; i < HO_ARRAY_LEN(reserved); i++) {
		const struct reserved *r = &reserved[i];

		if (r->family == family && len >= r->len && covers(r->addr, r->len, addr))
			return true;
	}
	return false;
}

bool ro_addr_eq(const struct ro_addr *a, const struct ro_addr *b)
{
	return a->family == b->family &&
	       !memcmp(a->byte, b->byte, a->family ? ro_addr_bytes(a->family) : 0);
}

const char *ro_addr_text(const struct ro_addr *addr, char *buf)
{
	if (!inet_ntop(addr->family == RO_IPV4 ? AF_INET : AF_INET6, addr->byte, buf, RO_ADDR_TEXT))
		buf[0] = 0;
	return buf;
}

int ro_prefix_check(const struct ro_prefix *prefix, struct ho_err *err)
{
	unsigned bits = ro_bits(prefix->addr.family);
	char text[RO_ADDR_TEXT];

	if (prefix->addr.family != RO_IPV4 && prefix->addr.family != RO_IPV6)
		return ho_err_set(err, -EINVAL, "address family %u: 4 or 6 is needed",
				  prefix->addr.family);
	if (prefix->len > bits)
		return ho_err_set(err, -EINVAL, "%s/%u: at most /%u",
				  ro_addr_text(&prefix->addr, text), prefix->len, bits);
	for (unsigned i = prefix->len; i < bits; i++) {
		if (prefix->addr.byte[i / 8] >> (7 - i % 8) & 1)
			return ho_err_set(err, -EINVAL, "%s/%u has bits behind its length",
					  ro_addr_text(&prefix->addr, text), prefix->len);
	}
	return 0;
}

/* --- grace periods -------------------------------------------------------------------------- */

void ro_retire(struct ro_tables *t, void *ptr, uint32_t nh)
{
	struct ro_retired *r;

	if (!ptr && !nh)
		return;
	r = malloc(sizeof(*r));
	if (!r) {
		/* Without memory to remember it by it is freed here, after waiting. */
		urcu_qsbr_synchronize_rcu();
		free(ptr);
		return;
	}
	*r = (struct ro_retired){ .next = t->retired, .ptr = ptr, .nh = nh };
	t->retired = r;
	t->pending++;
}

static void defer(void *ctx, struct fib_deferred *d)
{
	struct ro_tables *t = ctx;

	d->next = t->deferred;
	t->deferred = d;
	t->pending++;
}

static void free_number(struct ro_tables *t, uint32_t nh)
{
	free(t->view.nh[nh]);
	RO_RCU_SET(t->view.nh[nh], NULL);
	if (t->nh_spares == t->nh_room) {
		size_t room = t->nh_room ? 2 * t->nh_room : 64;
		uint32_t *grown = realloc(t->nh_spare, room * sizeof(*grown));

		if (!grown)
			return; /* the number is lost, not the packet */
		t->nh_spare = grown;
		t->nh_room = room;
	}
	t->nh_spare[t->nh_spares++] = nh;
}

void ro_reclaim_all(struct ro_tables *t)
{
	struct ro_retired *r = t->retired;
	struct fib_deferred *d = t->deferred;

	if (!r && !d)
		return;
	t->retired = NULL;
	t->deferred = NULL;
	t->pending = 0;
	urcu_qsbr_synchronize_rcu();
	while (r) {
		struct ro_retired *next = r->next;

		free(r->ptr);
		if (r->nh)
			free_number(t, r->nh);
		free(r);
		r = next;
	}
	while (d) {
		struct fib_deferred *next = d->next;

		d->done(d);
		d = next;
	}
}

static void barrier(void *ctx)
{
	struct ro_tables *t = ctx;

	/* done() may defer again. */
	while (t->retired || t->deferred)
		ro_reclaim_all(t);
}

void ro_reclaim_some(struct ro_tables *t)
{
	if (ho_unlikely(t->pending >= PENDING_MAX))
		ro_reclaim_all(t);
}

/* --- the whole ------------------------------------------------------------------------------ */

static int fixed_nexthops(struct ro_tables *t)
{
	static const uint8_t kind[RO_NH_NUM_FIRST] = {
		[RO_NH_NUM_NO_ROUTE] = RO_NH_NO_ROUTE,   [RO_NH_NUM_LOCAL] = RO_NH_LOCAL,
		[RO_NH_NUM_BROADCAST] = RO_NH_BROADCAST, [RO_NH_NUM_MARTIAN] = RO_NH_MARTIAN,
		[RO_NH_NUM_MULTICAST] = RO_NH_MULTICAST, [RO_NH_NUM_LINK_SCOPE] = RO_NH_LINK_SCOPE,
	};

	for (uint32_t i = 0; i < RO_NH_NUM_FIRST; i++) {
		struct ro_nh nh = { .kind = kind[i] };
		int rc = ro_nh_publish(t, i, &nh);

		if (rc < 0)
			return rc;
	}
	t->nh_next = RO_NH_NUM_FIRST;
	return 0;
}

static int reserved_prefixes(struct ro_tables *t, struct ho_err *err)
{
	for (unsigned i = 0; i < HO_ARRAY_LEN(reserved); i++) {
		const struct reserved *r = &reserved[i];
		uint32_t addr4;
		int rc;

		memcpy(&addr4, r->addr, 4);
		rc = r->family == RO_IPV4 ? fib4_set(t->view.fib4, ntohl(addr4), r->len, r->nh, err)
					  : fib6_set(t->view.fib6, r->addr, r->len, r->nh, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int ro_tables_create(unsigned ports, const struct ro_resolver *resolver, struct ro_tables **out,
		     struct ho_err *err)
{
	struct fib_config config;
	struct ro_tables *t = calloc(1, sizeof(*t));
	int rc = -ENOMEM;

	if (!t)
		return ho_err_set(err, -ENOMEM, "out of memory for the router's tables");
	t->reclaim = (struct fib_reclaim){ .defer = defer, .barrier = barrier, .ctx = t };
	config = (struct fib_config){ .reclaim = &t->reclaim };
	if (resolver)
		t->resolver = *resolver;
	t->view.ports = ports;
	t->buckets = 1024;
	t->set_buckets = 1024;
	t->bucket = calloc(t->buckets, sizeof(t->bucket[0]));
	t->sets = calloc(t->set_buckets, sizeof(t->sets[0]));
	t->view.by_vlan = calloc(ports ? ports : 1, sizeof(t->view.by_vlan[0]));
	t->view.own = calloc(1, sizeof(*t->view.own));
	t->view.nh = mmap(NULL, RO_NH_MAX * sizeof(t->view.nh[0]), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->view.nh == MAP_FAILED)
		t->view.nh = NULL;
	if (!t->bucket || !t->sets || !t->view.by_vlan || !t->view.own || !t->view.nh ||
	    fixed_nexthops(t) < 0) {
		ho_err_set(err, -ENOMEM, "out of memory for the router's tables");
		goto fail;
	}
	rc = fib4_create(&t->view.fib4, &config, err);
	if (rc == 0)
		rc = fib6_create(&t->view.fib6, &config, err);
	if (rc == 0)
		rc = reserved_prefixes(t, err);
	if (rc < 0)
		goto fail;
	*out = t;
	return 0;
fail:
	ro_tables_destroy(t);
	return rc;
}

void ro_tables_destroy(struct ro_tables *t)
{
	if (!t)
		return;
	/* Frees the writer's objects alone: with the FIBs gone nobody looks at them. */
	ro_entries_free(t);
	fib4_destroy(t->view.fib4);
	fib6_destroy(t->view.fib6);
	ro_hopsets_free(t);
	ro_neighs_free(t);
	ro_ifaces_free(t);
	barrier(t);
	if (t->view.nh) {
		for (uint32_t i = 0; i < HO_MAX(t->nh_next, (uint32_t)RO_NH_NUM_FIRST); i++)
			free(t->view.nh[i]);
		munmap(t->view.nh, RO_NH_MAX * sizeof(t->view.nh[0]));
	}
	for (unsigned i = 0; t->view.by_vlan && i < t->view.ports; i++)
		free(t->view.by_vlan[i]);
	free(t->view.by_vlan);
	free((void *)t->view.own);
	for (unsigned i = 0; i < t->queues; i++)
		free(t->queue[i]);
	free(t->nh_spare);
	free(t->bucket);
	free(t->sets);
	free(t);
}

void ro_tables_refresh(struct ro_tables *t)
{
	ro_hopsets_refresh(t);
	if (t->rescan) {
		t->rescan = false;
		ro_entries_refresh(t);
	}
	ro_neighs_refresh(t);
}

void ro_tables_resync_begin(struct ro_tables *t)
{
	t->seen++;
	t->resyncing = true;
}

void ro_tables_resync_end(struct ro_tables *t)
{
	if (!t->resyncing)
		return;
	t->resyncing = false;
	ro_neighs_sweep(t);
	ro_routes_sweep(t);
	ro_ifaces_sweep(t);
	ro_reclaim_all(t);
}

/* --- what workers say ----------------------------------------------------------------------- */

struct ro_view *ro_tables_view(struct ro_tables *t)
{
	return &t->view;
}

struct ro_wish_queue *ro_tables_queue(struct ro_tables *t, unsigned worker)
{
	while (t->queues <= worker && t->queues < RO_WORKERS_MAX) {
		struct ro_wish_queue *q = aligned_alloc(
			HO_CACHE_LINE, HO_ALIGN_UP(sizeof(*q), (size_t)HO_CACHE_LINE));

		if (!q)
			return NULL;
		port_spsc_init(&q->idx, RO_WISHES);
		t->queue[t->queues++] = q;
	}
	return worker < t->queues ? t->queue[worker] : NULL;
}

void ro_tables_hear(struct ro_tables *t, void (*hear)(void *arg, const struct ro_wish *wish),
		    void *arg)
{
	t->hear = hear;
	t->hear_arg = arg;
}

void ro_tables_resolver(struct ro_tables *t, const struct ro_resolver *resolver)
{
	t->resolver = *resolver;
}

#define ASK_NS 1000000000u /* a neighbour is asked for so often at most */

static void ask(struct ro_tables *t, const struct ro_wish *wish)
{
	struct ro_neigh *n = ro_neigh_get(t, wish->ifindex, &wish->addr);

	if (!n || n->state == RO_NEIGH_RESOLVED || !ro_if_find(t, wish->ifindex))
		return;
	if (n->asked_ns && t->now_ns - n->asked_ns < ASK_NS)
		return;
	n->asked_ns = t->now_ns ? t->now_ns : 1;
	if (t->resolver.resolve)
		t->resolver.resolve(t->resolver.arg, wish->ifindex, &wish->addr);
}

void ro_tables_poll(struct ro_tables *t, uint64_t now_ns)
{
	struct ro_wish wish;

	t->now_ns = now_ns;
	for (unsigned i = 0; i < t->queues; i++) {
		while (ro_wish_take(t->queue[i], &wish)) {
			if (wish.kind == RO_WISH_RESOLVE)
				ask(t, &wish);
			else if (t->hear)
				t->hear(t->hear_arg, &wish);
		}
	}
	ro_neighs_expire(t);
	ro_reclaim_all(t);
}
