// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cmd/forward_file_impl.h"

/* --- routes --------------------------------------------------------------------------------- */

/* The interface of a gateway, by the addresses that the router has. */
static uint32_t iface_of(const struct load *l, const struct ro_addr *via)
{
	for (unsigned i = 0; i < l->file->addrs; i++) {
		if (!ff_link_local(via) &&
		    ff_inside(&l->file->addr[i].addr, l->file->addr[i].len, via))
			return l->file->addr[i].ifindex;
	}
	return 0;
}

static int take_hop(struct load *l, const char *where, const char *via, const char *dev,
		    uint32_t weight, struct ro_hop *hop)
{
	int rc;

	*hop = (struct ro_hop){ .weight = (uint16_t)(weight ? weight : 1) };
	NODE(l, "%s/weight", where);
	if (weight > 256)
		return COMPLAIN(l, "weight %u: from 1 to 256 is possible", weight);
	if (via) {
		NODE(l, "%s/via", where);
		rc = ff_parse_addr(l, via, &hop->via);
		if (rc < 0)
			return rc;
		if (ff_is_own(l, &hop->via))
			return COMPLAIN(l, "'%s' is the router's own address", via);
		if (ff_not_a_host(l, &hop->via))
			return COMPLAIN(l, "'%s' is %s", via, ff_not_a_host(l, &hop->via));
		hop->ifindex = iface_of(l, &hop->via);
	}
	if (dev) {
		NODE(l, "%s/dev", where);
		hop->ifindex = ff_find_iface(l, dev);
		if (!hop->ifindex)
			return COMPLAIN(l, "no interface '%s' above", dev);
	}
	if (hop->ifindex)
		return 0;
	if (!via) {
		NODE(l, "%s", where);
		return COMPLAIN(l, "'via', 'dev' or both are needed");
	}
	return COMPLAIN(l, "'%s' is on none of the router's links; 'dev' says on which", via);
}

/* Are there `count` prefixes of this length from this one on? */
static bool fits(const struct ro_prefix *p, uint32_t count)
{
	uint64_t room = 0;

	/* How many there are behind it, as far as that matters. */
	for (unsigned b = 0; b < p->len && room <= UINT32_MAX; b++)
		room = 2 * room + !(p->addr.byte[b / 8] >> (7 - b % 8) & 1);
	return count <= room + 1;
}

int ff_take_route(struct load *l, unsigned i)
{
	const struct raw_route *r = &l->raw->route[i];
	struct ro_route *out = calloc(1, sizeof(*out));
	char where[64];
	int rc;

	if (!out)
		return ho_err_set(l->err, -ENOMEM, "out of memory");
	l->file->route[l->file->routes] = out;
	l->file->repeat[l->file->routes++] = r->count ? r->count : 1;
	out->kind = (enum ro_route_kind)r->kind;
	out->metric = r->metric;
	out->mtu = r->mtu;
	NODE(l, "routes/%u/to", i);
	rc = ff_parse_prefix(l, r->to, &out->dst.addr, &out->dst.len);
	if (rc < 0)
		return rc;
	for (unsigned b = out->dst.len; b < (out->dst.addr.family == RO_IPV4 ? 32u : 128u); b++) {
		if (out->dst.addr.byte[b / 8] >> (7 - b % 8) & 1)
			return COMPLAIN(l, "'%s' has bits behind its length", r->to);
	}
	NODE(l, "routes/%u/mtu", i);
	if (r->mtu && (r->mtu < ro_mtu_min(out->dst.addr.family) || r->mtu > 65535))
		return COMPLAIN(l, "MTU %u: from %u to 65535 is possible", r->mtu,
				ro_mtu_min(out->dst.addr.family));
	NODE(l, "routes/%u/count", i);
	if (r->count > REPEAT_MAX || !fits(&out->dst, r->count ? r->count : 1))
		return COMPLAIN(l, "%u routes from '%s' on are not possible", r->count, r->to);
	if (r->source) {
		NODE(l, "routes/%u/source", i);
		rc = ff_parse_addr(l, r->source, &out->prefsrc);
		if (rc < 0)
			return rc;
		if (out->prefsrc.family != out->dst.addr.family)
			return COMPLAIN(l, "'%s' is of the other family", r->source);
		if (!ff_is_own(l, &out->prefsrc))
			return COMPLAIN(l, "'%s' is no address of the router's", r->source);
	}
	NODE(l, "routes/%u", i);
	if (out->kind != RO_UNICAST) {
		if (r->via || r->dev || r->paths)
			return COMPLAIN(l, "a route of this kind leads nowhere: no 'via', 'dev' or "
					   "'paths'");
		return 0;
	}
	if (r->paths && (r->via || r->dev))
		return COMPLAIN(l, "either 'paths' or 'via' and 'dev'");
	if (r->paths > RO_HOPS_MAX)
		return COMPLAIN(l, "%u paths: at most %d", r->paths, RO_HOPS_MAX);
	out->hops = r->paths ? r->paths : 1;
	snprintf(where, sizeof(where), "routes/%u", i);
	if (!r->paths)
		rc = take_hop(l, where, r->via, r->dev, 1, &out->hop[0]);
	for (unsigned k = 0; rc == 0 && k < r->paths; k++) {
		snprintf(where, sizeof(where), "routes/%u/paths/%u", i, k);
		rc = take_hop(l, where, r->path[k].via, r->path[k].dev, r->path[k].weight,
			      &out->hop[k]);
	}
	for (unsigned k = 0; rc == 0 && k < out->hops; k++) {
		if (out->dst.addr.family == RO_IPV6 && out->hop[k].via.family == RO_IPV4)
			return COMPLAIN(l, "an IPv6 route cannot go via an IPv4 gateway");
	}
	return rc;
}

/* --- none twice ----------------------------------------------------------------------------- */

/* Prefixes of one length and metric, from `first` on to before `end`, counted in prefixes of that
 * length, and where they stand in the file. */
struct listed {
	uint8_t family, len;
	uint32_t metric;
	wide first, end;
	unsigned at; /* route; ON_LINK + i: what address i makes the route to its link */
};
#define ON_LINK 0x80000000u

static struct listed list_of(const struct ro_addr *addr, unsigned len, uint32_t metric,
			     uint32_t count, unsigned at)
{
	struct listed out = {
		.family = addr->family, .len = (uint8_t)len, .metric = metric, .at = at
	};

	out.first = ff_number_of(addr, len);
	out.end = out.first + count;
	return out;
}

static int by_destination(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->family != y->family)
		return x->family - y->family;
	if (x->len != y->len)
		return x->len - y->len;
	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Two that say where the same prefix leads. */
static int twice(struct load *l, const struct listed *x, const struct listed *y)
{
	const struct listed *link = x->at >= ON_LINK ? x : y->at >= ON_LINK ? y : NULL;
	unsigned at = link == x ? y->at : link == y ? x->at : HO_MAX(x->at, y->at);
	const struct raw_route *raw;
	const struct ro_route *r;

	/* Several addresses on one link; or a route to the link that says more of it. */
	if (at >= ON_LINK)
		return 0;
	r = l->file->route[at];
	raw = &l->raw->route[at];
	NODE(l, "routes/%u/to", at);
	if (!link)
		return COMPLAIN(l, "a second route to %s'%s' of metric %u",
				x->end - x->first > 1 || y->end - y->first > 1 ? "a prefix from "
									       : "",
				raw->to, r->metric);
	if (r->kind == RO_UNICAST && r->hops == 1 && !r->hop[0].via.family &&
	    r->hop[0].ifindex == l->file->addr[link->at - ON_LINK].ifindex)
		return 0;
	return COMPLAIN(l, "'%s' is the link of interface '%s'; a longer prefix can lead elsewhere",
			raw->to,
			l->file->iface[l->file->addr[link->at - ON_LINK].ifindex - 1].config.name);
}

/* No destination is there twice with the same metric. */
int ff_check_once(struct load *l)
{
	struct forward_file *f = l->file;
	struct listed *list = calloc(f->routes + f->addrs + 1, sizeof(*list));
	unsigned n = 0, widest = 0;
	int rc = 0;

	if (!list)
		return ho_err_set(l->err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < f->routes; i++)
		list[n++] = list_of(&f->route[i]->dst.addr, f->route[i]->dst.len,
				    f->route[i]->metric, f->repeat[i], i);
	for (unsigned i = 0; i < f->addrs; i++)
		list[n++] = list_of(&f->addr[i].addr, f->addr[i].len, 0, 1, ON_LINK + i);
	qsort(list, n, sizeof(*list), by_destination);
	for (unsigned i = 1; rc == 0 && i < n; i++) {
		const struct listed *x = &list[widest], *y = &list[i];
		bool together =
			x->family == y->family && x->len == y->len && x->metric == y->metric;

		if (together && y->first < x->end)
			rc = twice(l, x, y);
		if (!together || y->end > x->end)
			widest = i;
	}
	free(list);
	return rc;
}
