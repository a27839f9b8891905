// SPDX-License-Identifier: BSD-2-Clause
#include "route/discovery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "route/wish.h"

#define SECOND_NS    1000000000ull
#define ATTEMPTS     3                /* MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT */
#define RETRANS_NS   SECOND_NS        /* RETRANS_TIMER */
#define DELAY_NS     (5 * SECOND_NS)  /* DELAY_FIRST_PROBE_TIME */
#define ND_FRESH_NS  (30 * SECOND_NS) /* REACHABLE_TIME, RFC 4861 section 10 */
#define ARP_FRESH_NS (60 * SECOND_NS) /* RFC 1122 2.3.2.1: of the order of a minute */
#define DEFEND_NS    (10 * SECOND_NS) /* DEFEND_INTERVAL, RFC 5227 */
#define ENTRIES_MAX  16384
#define BUCKETS      4096

enum state { INCOMPLETE, REACHABLE, STALE, PROBE, STATIC };

struct entry {
	struct entry *next;
	uint32_t ifindex;
	struct ro_addr addr;
	uint8_t mac[6];
	uint8_t state;
	uint8_t asked; /* requests without an answer */
	uint64_t due_ns;
};

struct ro_discovery {
	struct ro_tables *tables;
	struct ro_router *router;
	uint64_t now_ns, defended_ns;
	uint64_t next_ns; /* nothing is due before */
	uint64_t random;
	unsigned entries;
	struct ro_discovery_stats stats;
	struct entry *bucket[BUCKETS];
};

static unsigned bucket_of(uint32_t ifindex, const struct ro_addr *addr)
{
	uint64_t a, b;

	memcpy(&a, addr->byte, 8);
	memcpy(&b, addr->byte + 8, 8);
	return (unsigned)(((a ^ b << 1 ^ ifindex) * 0x9e3779b97f4a7c15u) >> 52);
}

static struct entry *find(struct ro_discovery *d, uint32_t ifindex, const struct ro_addr *addr)
{
	struct entry *e = d->bucket[bucket_of(ifindex, addr)];

	while (e && (e->ifindex != ifindex || e->addr.family != addr->family ||
		     memcmp(e->addr.byte, addr->byte, 16) != 0))
		e = e->next;
	return e;
}

static struct entry *add(struct ro_discovery *d, uint32_t ifindex, const struct ro_addr *addr)
{
	struct entry *e, **bucket = &d->bucket[bucket_of(ifindex, addr)];

	if (d->entries == ENTRIES_MAX)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->ifindex = ifindex;
	e->addr = *addr;
	e->next = *bucket;
	*bucket = e;
	d->entries++;
	return e;
}

static void drop(struct ro_discovery *d, struct entry *e)
{
	struct entry **link = &d->bucket[bucket_of(e->ifindex, &e->addr)];

	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	free(e);
	d->entries--;
}

static void due(struct ro_discovery *d, struct entry *e, uint64_t in_ns)
{
	e->due_ns = d->now_ns + in_ns;
	d->next_ns = HO_MIN(d->next_ns, e->due_ns);
}

/* Half to one and a half times, so that neighbours found together are not asked together (RFC 4861
 * 6.3.2). */
static uint64_t spread(struct ro_discovery *d, uint64_t ns)
{
	d->random = d->random * 6364136223846793005u + 1442695040888963407u;
	return ns / 2 + (d->random >> 33) * ns / (1ull << 31);
}

static void ask(struct ro_discovery *d, struct entry *e)
{
	struct ro_order order = { .kind = RO_ORDER_ASK, .ifindex = e->ifindex, .addr = e->addr };

	/* One that was there is asked directly. */
	if (e->state == PROBE)
		memcpy(order.mac, e->mac, 6);
	ro_router_order(d->router, &order);
	e->asked++;
	d->stats.probes++;
	due(d, e, RETRANS_NS);
}

static void resolve(void *arg, uint32_t ifindex, const struct ro_addr *addr)
{
	struct ro_discovery *d = arg;
	struct entry *e = find(d, ifindex, addr);

	if (e)
		return; /* it is being asked */
	e = add(d, ifindex, addr);
	if (!e) {
		ro_neigh_fail(d->tables, ifindex, addr);
		return;
	}
	e->state = INCOMPLETE;
	ask(d, e);
}

/* Its link-layer address is this one. */
static void learn(struct ro_discovery *d, struct entry *e, const uint8_t *mac, enum state state)
{
	bool changed = e->state != INCOMPLETE && memcmp(e->mac, mac, 6) != 0;

	d->stats.resolved += e->state == INCOMPLETE;
	d->stats.changed += changed;
	memcpy(e->mac, mac, 6);
	e->state = (uint8_t)state;
	e->asked = 0;
	ro_neigh_set(d->tables, e->ifindex, &e->addr, mac, NULL);
	due(d, e,
	    state == REACHABLE ? spread(d, e->addr.family == RO_IPV4 ? ARP_FRESH_NS : ND_FRESH_NS)
			       : DELAY_NS);
}

static void reached(struct ro_discovery *d, struct entry *e)
{
	e->state = REACHABLE;
	e->asked = 0;
	due(d, e, spread(d, e->addr.family == RO_IPV4 ? ARP_FRESH_NS : ND_FRESH_NS));
}

/* RFC 4861 7.2.5, but for the flag that says router. */
static void advertised(struct ro_discovery *d, struct entry *e, const struct ro_wish *wish)
{
	bool has_mac = !(wish->flags & RO_ND_NO_MAC), solicited = wish->flags & RO_ND_SOLICITED;
	bool other = has_mac && memcmp(wish->mac, e->mac, 6) != 0;

	if (e->state == INCOMPLETE) {
		if (has_mac)
			learn(d, e, wish->mac, solicited ? REACHABLE : STALE);
		return;
	}
	if (other && !(wish->flags & RO_ND_OVERRIDE)) {
		if (e->state == REACHABLE) {
			e->state = STALE;
			due(d, e, DELAY_NS);
		}
		return;
	}
	if (other)
		learn(d, e, wish->mac, solicited ? REACHABLE : STALE);
	else if (solicited)
		reached(d, e);
}

static void conflict(struct ro_discovery *d, const struct ro_wish *wish)
{
	struct ro_order order = { .kind = RO_ORDER_ANNOUNCE,
				  .ifindex = wish->ifindex,
				  .addr = wish->addr };

	d->stats.conflicts++;
	/* RFC 5227 2.4(b): defend it, but not in a quarrel without end. */
	if (d->defended_ns && d->now_ns - d->defended_ns < DEFEND_NS)
		return;
	d->defended_ns = d->now_ns ? d->now_ns : 1;
	ro_router_order(d->router, &order);
	ho_warn("another station uses an address of the router's: "
		"%02x:%02x:%02x:%02x:%02x:%02x",
		wish->mac[0], wish->mac[1], wish->mac[2], wish->mac[3], wish->mac[4], wish->mac[5]);
}

static void hear(void *arg, const struct ro_wish *wish)
{
	struct ro_discovery *d = arg;
	struct entry *e = find(d, wish->ifindex, &wish->addr);
	bool arp = wish->addr.family == RO_IPV4;

	if (wish->kind == RO_WISH_CONFLICT) {
		conflict(d, wish);
		return;
	}
	if (e && e->state == STATIC)
		return;
	switch (wish->kind) {
	case RO_WISH_SEEN:
		/* It talks to us, so we shall talk to it; but that it hears us is not known. */
		if (!e)
			e = add(d, wish->ifindex, &wish->addr);
		if (e && (e->state == INCOMPLETE || memcmp(e->mac, wish->mac, 6) != 0 ||
			  (arp && e->state == STALE)))
			learn(d, e, wish->mac, STALE);
		break;
	case RO_WISH_ANSWER:
		/* Not to a question of ours: nothing is made of it (RFC 4861 7.2.5). */
		if (e && arp)
			learn(d, e, wish->mac, REACHABLE);
		else if (e)
			advertised(d, e, wish);
		break;
	case RO_WISH_GRATUITOUS:
		if (e && (e->state == INCOMPLETE || memcmp(e->mac, wish->mac, 6) != 0))
			learn(d, e, wish->mac, STALE);
		break;
	}
}

int ro_discovery_create(struct ro_tables *tables, struct ro_router *router,
			struct ro_discovery **out, struct ho_err *err)
{
	struct ro_discovery *d = calloc(1, sizeof(*d));
	struct ro_resolver resolver = { .resolve = resolve, .arg = d };

	if (!d)
		return ho_err_set(err, -ENOMEM, "out of memory for neighbours");
	d->tables = tables;
	d->router = router;
	d->next_ns = UINT64_MAX;
	d->random = 1;
	ro_tables_resolver(tables, &resolver);
	ro_tables_hear(tables, hear, d);
	*out = d;
	return 0;
}

void ro_discovery_destroy(struct ro_discovery *d)
{
	if (!d)
		return;
	for (unsigned b = 0; b < BUCKETS; b++) {
		while (d->bucket[b])
			drop(d, d->bucket[b]);
	}
	free(d);
}

int ro_discovery_static(struct ro_discovery *d, uint32_t ifindex, const struct ro_addr *addr,
			const uint8_t mac[6], struct ho_err *err)
{
	struct entry *e = find(d, ifindex, addr);
	int rc = ro_neigh_set(d->tables, ifindex, addr, mac, err);

	if (rc < 0)
		return rc;
	if (!e)
		e = add(d, ifindex, addr);
	if (!e)
		return ho_err_set(err, -ENOMEM, "out of memory, or more than %d neighbours",
				  ENTRIES_MAX);
	e->state = STATIC;
	e->due_ns = UINT64_MAX;
	memcpy(e->mac, mac, 6);
	return 0;
}

/* The time of an entry is over. true: it is gone. */
static bool expire(struct ro_discovery *d, struct entry *e)
{
	switch (e->state) {
	case REACHABLE:
	case STALE:
		e->state = PROBE;
		e->asked = 0;
		break;
	case INCOMPLETE:
	case PROBE:
		if (e->asked < ATTEMPTS)
			break;
		if (e->state == INCOMPLETE)
			ro_neigh_fail(d->tables, e->ifindex, &e->addr);
		else
			ro_neigh_del(d->tables, e->ifindex, &e->addr);
		d->stats.failed++;
		drop(d, e);
		return true;
	default:
		return false;
	}
	ask(d, e);
	return false;
}

void ro_discovery_poll(struct ro_discovery *d, uint64_t now_ns)
{
	d->now_ns = now_ns;
	if (now_ns < d->next_ns)
		return;
	d->next_ns = UINT64_MAX;
	for (unsigned b = 0; b < BUCKETS; b++) {
		for (struct entry *e = d->bucket[b], *next; e; e = next) {
			next = e->next;
			if (e->due_ns <= now_ns && expire(d, e))
				continue;
			if (e->state != STATIC)
				d->next_ns = HO_MIN(d->next_ns, e->due_ns);
		}
	}
}

void ro_discovery_stats(const struct ro_discovery *d, struct ro_discovery_stats *out)
{
	*out = d->stats;
}
