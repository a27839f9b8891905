// SPDX-License-Identifier: BSD-2-Clause
/* Next hops: their numbers, their records, and which path of several a bucket belongs to. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "route/tables_impl.h"

/* --- numbers -------------------------------------------------------------------------------- */

uint32_t ro_nh_alloc(struct ro_tables *t)
{
	if (!t->nh_spares && t->nh_next == RO_NH_MAX)
		ro_reclaim_all(t);
	if (t->nh_spares)
		return t->nh_spare[--t->nh_spares];
	return t->nh_next < RO_NH_MAX ? t->nh_next++ : 0;
}

int ro_nh_publish(struct ro_tables *t, uint32_t number, const struct ro_nh *nh)
{
	struct ro_nh *new = aligned_alloc(HO_CACHE_LINE, sizeof(*new)), *old = t->view.nh[number];

	if (!new)
		return -ENOMEM;
	*new = *nh;
	new->longest = (uint64_t)HO_MIN(nh->mtu + PK_ETH_BYTES, 0xffffu) << 48 | 0xffffffffffffu;
	RO_RCU_SET(t->view.nh[number], new);
	if (old && old->kind == RO_NH_ECMP)
		ro_retire(t, (void *)old->ecmp, 0);
	ro_retire(t, old, 0);
	return 0;
}

void ro_nh_release(struct ro_tables *t, uint32_t number)
{
	const struct ro_nh *nh = t->view.nh[number];

	if (nh && nh->kind == RO_NH_ECMP)
		ro_retire(t, (void *)nh->ecmp, 0);
	ro_retire(t, NULL, number);
}

/* --- records -------------------------------------------------------------------------------- */

/* SplitMix64's finisher. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t hop_identity(const struct ro_hop *hop)
{
	uint64_t a = 0, b = 0;

	memcpy(&a, hop->via.byte, 8);
	memcpy(&b, hop->via.byte + 8, 8);
	return mix(a ^ mix(b ^ mix(hop->ifindex)));
}

/* Weighted rendezvous: the path with the least -ln(u) / weight, u in (0, 1] by path and bucket. */
static void fill_buckets(const struct ro_hopset *set, struct ro_ecmp *ecmp)
{
	for (unsigned b = 0; b < RO_ECMP_BUCKETS; b++) {
		double best = INFINITY;

		for (unsigned i = 0; i < set->n; i++) {
			uint64_t h;
			double score;

			if (!set->path[i]->usable)
				continue;
			h = mix(hop_identity(&set->hop[i]) + b * 0x9e3779b97f4a7c15u);
			score = -log(((double)(h >> 11) + 1) / 0x1p53) / set->hop[i].weight;
			if (score < best) {
				best = score;
				ecmp->bucket[b] = (uint8_t)i;
			}
		}
	}
}

static int build_paths(struct ro_tables *t, struct ro_hopset *set)
{
	struct ro_nh nh = { .kind = RO_NH_ECMP, .mtu = set->mtu, .prefsrc = set->prefsrc };
	struct ro_ecmp *ecmp;
	int rc;

	set->usable = false;
	for (unsigned i = 0; i < set->n; i++)
		set->usable = set->usable || set->path[i]->usable;
	if (!set->usable)
		return 0;
	ecmp = calloc(1, sizeof(*ecmp));
	if (!ecmp)
		return -ENOMEM;
	for (unsigned i = 0; i < set->n; i++)
		ecmp->nh[i] = set->path[i]->nh;
	fill_buckets(set, ecmp);
	nh.ecmp = ecmp;
	rc = ro_nh_publish(t, set->nh, &nh);
	if (rc < 0)
		free(ecmp);
	return rc;
}

static void eth_header(struct ro_nh *nh, const struct ro_iface_config *iface, const uint8_t mac[6])
{
	uint8_t *p = nh->eth;

	/* The type is the packet's own: workers write it. */
	memcpy(p, mac, 6);
	memcpy(p + 6, iface->mac, 6);
	nh->eth_bytes = PK_ETH_BYTES;
	if (iface->vlan) {
		p[12] = PK_ETH_VLAN >> 8;
		p[13] = PK_ETH_VLAN & 0xff;
		p[14] = (uint8_t)(iface->vlan >> 8);
		p[15] = (uint8_t)iface->vlan;
		nh->eth_bytes = RO_ETH_MAX;
	}
}

static int build_single(struct ro_tables *t, struct ro_hopset *set)
{
	const struct ro_if *i = ro_if_find(t, set->hop[0].ifindex);
	struct ro_nh nh = { .prefsrc = set->prefsrc };

	set->usable = i && i->config.up;
	if (!i)
		return 0;
	nh.port = (uint16_t)i->config.port;
	nh.iface = i->slot;
	nh.mtu = set->mtu ? HO_MIN(set->mtu, i->config.mtu) : i->config.mtu;
	if (!set->neigh) {
		nh.kind = RO_NH_GLEAN;
	} else if (set->neigh->state == RO_NEIGH_RESOLVED) {
		nh.kind = RO_NH_ETHER;
		eth_header(&nh, &i->config, set->neigh->mac);
	} else {
		nh.kind = RO_NH_RESOLVE;
		nh.neigh = set->neigh;
	}
	return ro_nh_publish(t, set->nh, &nh);
}

void ro_neigh_build(struct ro_tables *t, struct ro_neigh *n)
{
	const struct ro_if *i = ro_if_find(t, n->ifindex);
	struct ro_nh nh = { .kind = RO_NH_RESOLVE, .neigh = n, .prefsrc = n->route_src };

	if (i) {
		nh.port = (uint16_t)i->config.port;
		nh.iface = i->slot;
		nh.mtu = n->route_mtu ? HO_MIN(n->route_mtu, i->config.mtu) : i->config.mtu;
		if (n->state == RO_NEIGH_RESOLVED) {
			nh.kind = RO_NH_ETHER;
			eth_header(&nh, &i->config, n->mac);
		}
	}
	ro_nh_publish(t, n->nh, &nh);
	for (struct ro_hopset *s = n->hopsets; s; s = s->next_of_neigh)
		ro_hopset_build(t, s);
}

void ro_hopset_build(struct ro_tables *t, struct ro_hopset *set)
{
	static const uint8_t kind[] = {
		[RO_LOCAL] = RO_NH_LOCAL,         [RO_BROADCAST] = RO_NH_BROADCAST,
		[RO_BLACKHOLE] = RO_NH_BLACKHOLE, [RO_UNREACHABLE] = RO_NH_UNREACHABLE,
		[RO_PROHIBIT] = RO_NH_PROHIBIT,   [RO_THROW] = RO_NH_NO_ROUTE,
		[RO_HOST] = RO_NH_HOST,
	};
	struct ro_nh nh = { 0 };

	if (set->kind == RO_UNICAST) {
		if (set->path)
			build_paths(t, set);
		else
			build_single(t, set);
		return;
	}
	nh.kind = kind[set->kind];
	set->usable = true;
	ro_nh_publish(t, set->nh, &nh);
}

void ro_hopsets_refresh(struct ro_tables *t)
{
	/* Singles first: the others are made of them. */
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t b = 0; b < t->set_buckets; b++) {
			for (struct ro_hopset *s = t->sets[b]; s; s = s->next) {
				bool was = s->usable;

				if ((s->path != NULL) != pass || s->kind != RO_UNICAST)
					continue;
				ro_hopset_build(t, s);
				t->rescan = t->rescan || was != s->usable;
			}
		}
	}
}

/* --- one for each content ------------------------------------------------------------------- */

static uint32_t content_hash(const struct ro_route *r)
{
	uint64_t h = mix(r->kind * 8u + r->hops) ^ r->mtu;

	for (unsigned i = 0; i < r->hops; i++)
		h = mix(h + hop_identity(&r->hop[i]) + r->hop[i].weight);
	return (uint32_t)(h >> 32);
}

static bool same_hop(const struct ro_hop *a, const struct ro_hop *b)
{
	return a->ifindex == b->ifindex && a->weight == b->weight && ro_addr_eq(&a->via, &b->via);
}

static bool same_content(const struct ro_hopset *s, const struct ro_route *r)
{
	if (s->kind != r->kind || s->mtu != r->mtu || s->n != r->hops ||
	    !ro_addr_eq(&s->prefsrc, &r->prefsrc))
		return false;
	for (unsigned i = 0; i < r->hops; i++) {
		if (!same_hop(&s->hop[i], &r->hop[i]))
			return false;
	}
	return true;
}

static void grow_sets(struct ro_tables *t)
{
	size_t n = 2 * t->set_buckets;
	struct ro_hopset **grown = calloc(n, sizeof(*grown));

	if (!grown)
		return; /* chains get longer instead */
	for (size_t b = 0; b < t->set_buckets; b++) {
		while (t->sets[b]) {
			struct ro_hopset *s = t->sets[b];

			t->sets[b] = s->next;
			s->next = grown[s->hash & (n - 1)];
			grown[s->hash & (n - 1)] = s;
		}
	}
	free(t->sets);
	t->sets = grown;
	t->set_buckets = n;
}

static void unlink_set(struct ro_tables *t, struct ro_hopset *set)
{
	struct ro_hopset **link = &t->sets[set->hash & (t->set_buckets - 1)];

	while (*link != set)
		link = &(*link)->next;
	*link = set->next;
	t->n_sets--;
}

static void drop_neigh(struct ro_tables *t, struct ro_hopset *set)
{
	struct ro_hopset **link;

	if (!set->neigh)
		return;
	link = &set->neigh->hopsets;
	while (*link != set)
		link = &(*link)->next_of_neigh;
	*link = set->next_of_neigh;
	set->neigh->refs--;
	ro_neigh_put(t, set->neigh);
	set->neigh = NULL;
}

void ro_hopset_put(struct ro_tables *t, struct ro_hopset *set)
{
	if (!set || --set->refs)
		return;
	unlink_set(t, set);
	/* The number and its record first: what they point to is retired behind them. */
	ro_nh_release(t, set->nh);
	for (unsigned i = 0; set->path && i < set->n; i++)
		ro_hopset_put(t, set->path[i]);
	drop_neigh(t, set);
	free(set->path);
	free(set);
}

/* The singles that a set of several paths is made of. */
static int get_paths(struct ro_tables *t, struct ro_hopset *set, struct ho_err *err)
{
	set->path = calloc(set->n, sizeof(struct ro_hopset *));
	if (!set->path)
		return ho_err_set(err, -ENOMEM, "out of memory for a route's paths");
	for (unsigned i = 0; i < set->n; i++) {
		struct ro_route single = {
			.kind = RO_UNICAST, .mtu = set->mtu, .prefsrc = set->prefsrc, .hops = 1
		};
		int rc;

		single.hop[0] = set->hop[i];
		single.hop[0].weight = 1;
		rc = ro_hopset_get(t, &single, &set->path[i], err);
		if (rc < 0) {
			while (i--)
				ro_hopset_put(t, set->path[i]);
			free(set->path);
			set->path = NULL;
			return rc;
		}
	}
	return 0;
}

int ro_hopset_get(struct ro_tables *t, const struct ro_route *r, struct ro_hopset **out,
		  struct ho_err *err)
{
	uint32_t hash = content_hash(r);
	struct ro_hopset *set = t->sets[hash & (t->set_buckets - 1)];
	int rc = -ENOMEM;

	while (set && (set->hash != hash || !same_content(set, r)))
		set = set->next;
	if (set) {
		set->refs++;
		*out = set;
		return 0;
	}
	if (t->n_sets > 2 * t->set_buckets)
		grow_sets(t);
	set = calloc(1, sizeof(*set) + r->hops * sizeof(set->hop[0]));
	if (!set)
		return ho_err_set(err, -ENOMEM, "out of memory for a next hop");
	set->nh = ro_nh_alloc(t);
	if (!set->nh) {
		rc = ho_err_set(err, -ENOSPC, "more than %u different next hops", RO_NH_MAX);
		goto fail;
	}
	set->kind = (uint8_t)r->kind;
	set->mtu = r->mtu;
	set->prefsrc = r->prefsrc;
	set->n = r->hops;
	set->hash = hash;
	set->refs = 1;
	memcpy(set->hop, r->hop, r->hops * sizeof(set->hop[0]));
	if (set->n > 1) {
		rc = get_paths(t, set, err);
		if (rc < 0)
			goto fail;
	} else if (set->n == 1 && set->hop[0].via.family) {
		set->neigh = ro_neigh_get(t, set->hop[0].ifindex, &set->hop[0].via);
		if (!set->neigh) {
			rc = ho_err_set(err, -ENOMEM, "out of memory for a gateway");
			goto fail;
		}
		set->neigh->refs++;
		set->next_of_neigh = set->neigh->hopsets;
		set->neigh->hopsets = set;
	}
	set->next = t->sets[hash & (t->set_buckets - 1)];
	t->sets[hash & (t->set_buckets - 1)] = set;
	t->n_sets++;
	ro_hopset_build(t, set);
	*out = set;
	return 0;
fail:
	if (set->nh)
		ro_nh_release(t, set->nh);
	free(set);
	return rc;
}

void ro_hopsets_free(struct ro_tables *t)
{
	for (size_t b = 0; t->sets && b < t->set_buckets; b++) {
		while (t->sets[b]) {
			struct ro_hopset *set = t->sets[b];
			struct ro_nh *nh = t->view.nh[set->nh];

			t->sets[b] = set->next;
			if (nh && nh->kind == RO_NH_ECMP)
				free((void *)nh->ecmp);
			free(set->path);
			free(set);
		}
	}
}
