// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/forward_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/yaml.h"
#include "base/document.h"

#define REPEAT_MAX   (1u << 24)

/* --- as the file has it --------------------------------------------------------------------- */

struct raw_port {
	const char *name, *open, *receive, *send;
};

struct raw_neigh {
	const char *address, *mac;
	uint32_t count;
};

struct raw_iface {
	const char *name, *port, *mac;
	uint32_t vlan, mtu;
	const char **address;
	uint32_t addresses;
	struct raw_neigh *neigh;
	uint32_t neighs;
};

struct raw_path {
	const char *via, *dev;
	uint32_t weight;
};

struct raw_route {
	const char *to, *via, *dev, *source;
	int kind;
	uint32_t metric, mtu, count, weight;
	struct raw_path *path;
	uint32_t paths;
};

struct raw_file {
	uint32_t icmp_rate, icmp_burst;
	bool announce;
	struct raw_port *port;
	struct raw_iface *iface;
	struct raw_route *route;
	uint32_t ports, ifaces, routes;
};

#define TEXT(key, type, member)                                                                \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, 0, \
			       CYAML_UNLIMITED)
#define NEEDED(key, type, member) \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, type, member, 0, CYAML_UNLIMITED)
#define NUMBER(key, type, member) CYAML_FIELD_UINT(key, CYAML_FLAG_OPTIONAL, type, member)
#define LIST(key, type, member, count, schema)                                                  \
	CYAML_FIELD_SEQUENCE_COUNT(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, \
				   count, schema, 0, CYAML_UNLIMITED)

static const cyaml_schema_value_t text_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED),
};

static const cyaml_schema_field_t port_fields[] = {
	NEEDED("name", struct raw_port, name),
	TEXT("open", struct raw_port, open),
	TEXT("receive", struct raw_port, receive),
	TEXT("send", struct raw_port, send),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t port_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_port, port_fields),
};

static const cyaml_schema_field_t neigh_fields[] = {
	NEEDED("address", struct raw_neigh, address),
	NEEDED("mac", struct raw_neigh, mac),
	NUMBER("count", struct raw_neigh, count),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t neigh_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_neigh, neigh_fields),
};

static const cyaml_schema_field_t iface_fields[] = {
	TEXT("name", struct raw_iface, name),
	NEEDED("port", struct raw_iface, port),
	TEXT("mac", struct raw_iface, mac),
	NUMBER("vlan", struct raw_iface, vlan),
	NUMBER("mtu", struct raw_iface, mtu),
	LIST("addresses", struct raw_iface, address, addresses, &text_schema),
	LIST("neighbours", struct raw_iface, neigh, neighs, &neigh_schema),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t iface_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_iface, iface_fields),
};

static const cyaml_schema_field_t path_fields[] = {
	TEXT("via", struct raw_path, via),
	TEXT("dev", struct raw_path, dev),
	NUMBER("weight", struct raw_path, weight),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t path_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_path, path_fields),
};

static const cyaml_strval_t kinds[] = {
	{ "unicast", RO_UNICAST },
	{ "blackhole", RO_BLACKHOLE },
	{ "unreachable", RO_UNREACHABLE },
	{ "prohibit", RO_PROHIBIT },
};

static const cyaml_schema_field_t route_fields[] = {
	NEEDED("to", struct raw_route, to),
	TEXT("via", struct raw_route, via),
	TEXT("dev", struct raw_route, dev),
	TEXT("source", struct raw_route, source),
	CYAML_FIELD_ENUM("kind", CYAML_FLAG_OPTIONAL, struct raw_route, kind, kinds,
			 CYAML_ARRAY_LEN(kinds)),
	NUMBER("metric", struct raw_route, metric),
	NUMBER("mtu", struct raw_route, mtu),
	NUMBER("count", struct raw_route, count),
	LIST("paths", struct raw_route, path, paths, &path_schema),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t route_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_route, route_fields),
};

static const cyaml_schema_field_t file_fields[] = {
	NUMBER("icmp-rate", struct raw_file, icmp_rate),
	NUMBER("icmp-burst", struct raw_file, icmp_burst),
	CYAML_FIELD_BOOL("announce", CYAML_FLAG_OPTIONAL, struct raw_file, announce),
	CYAML_FIELD_SEQUENCE_COUNT("ports", CYAML_FLAG_POINTER, struct raw_file, port, ports,
				   &port_schema, 1, RO_PORTS_MAX),
	CYAML_FIELD_SEQUENCE_COUNT("interfaces", CYAML_FLAG_POINTER, struct raw_file, iface, ifaces,
				   &iface_schema, 1, 4096),
	LIST("routes", struct raw_file, route, routes, &route_schema),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t file_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw_file, file_fields),
};

/* --- values --------------------------------------------------------------------------------- */

struct load {
	struct forward_file *file;
	struct raw_file *raw;
	struct ho_doc *doc;
	struct ho_err *err;
	char node[128]; /* which value is looked at */
};

/* A complaint about the node. */
#define COMPLAIN(l, ...)                                                                          \
	(ho_err_set((l)->err, -EINVAL, __VA_ARGS__), ho_doc_blame((l)->doc, (l)->node, (l)->err), \
	 -EINVAL)
#define NODE(l, ...) snprintf((l)->node, sizeof((l)->node), __VA_ARGS__)

static int parse_addr(struct load *l, const char *text, struct ro_addr *out)
{
	*out = (struct ro_addr){ .family = strchr(text, ':') ? RO_IPV6 : RO_IPV4 };
	if (inet_pton(out->family == RO_IPV4 ? AF_INET : AF_INET6, text, out->byte) != 1)
		return COMPLAIN(l, "'%s' is not an IPv4 or IPv6 address", text);
	return 0;
}

static int parse_prefix(struct load *l, const char *text, struct ro_addr *addr, uint8_t *len)
{
	const char *slash = strchr(text, '/');
	char copy[64], *end;
	unsigned long bits;
	int rc;

	if (!slash || (size_t)(slash - text) >= sizeof(copy))
		return COMPLAIN(l, "'%s': ADDRESS/BITS is needed, such as 192.0.2.0/24", text);
	memcpy(copy, text, (size_t)(slash - text));
	copy[slash - text] = 0;
	rc = parse_addr(l, copy, addr);
	if (rc < 0)
		return rc;
	bits = strtoul(slash + 1, &end, 10);
	if (end == slash + 1 || *end || slash[1] < '0' || slash[1] > '9' ||
	    bits > (addr->family == RO_IPV4 ? 32u : 128u))
		return COMPLAIN(l, "'%s': from /0 to /%u is possible", text,
				addr->family == RO_IPV4 ? 32u : 128u);
	*len = (uint8_t)bits;
	return 0;
}

static int parse_mac(struct load *l, const char *text, uint8_t mac[6])
{
	unsigned b[6];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		   &end) != 6 ||
	    text[end])
		return COMPLAIN(l, "'%s' is not an Ethernet address such as 02:00:00:00:00:01",
				text);
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
	if (mac[0] & 1)
		return COMPLAIN(l, "'%s' is a group's address", text);
	return 0;
}

static int find_port(const struct load *l, const char *name)
{
	for (unsigned i = 0; i < l->file->ports; i++) {
		if (!strcmp(l->file->port[i].name, name))
			return (int)i;
	}
	return -1;
}

static uint32_t find_iface(const struct load *l, const char *name)
{
	for (unsigned i = 0; i < l->file->ifaces; i++) {
		if (!strcmp(l->file->iface[i].config.name, name))
			return l->file->iface[i].config.ifindex;
	}
	return 0;
}

/* --- ports and interfaces ------------------------------------------------------------------- */

static int take_ports(struct load *l)
{
	for (unsigned i = 0; i < l->raw->ports; i++) {
		const struct raw_port *r = &l->raw->port[i];

		NODE(l, "ports/%u/name", i);
		if (find_port(l, r->name) >= 0)
			return COMPLAIN(l, "a second port '%s'", r->name);
		NODE(l, "ports/%u", i);
		if (r->open && (r->receive || r->send))
			return COMPLAIN(l, "port '%s': either 'open' or 'receive' and 'send'",
					r->name);
		l->file->port[l->file->ports++] = (struct forward_port){
			.name = r->name, .open = r->open, .receive = r->receive, .send = r->send
		};
	}
	return 0;
}

static int take_iface(struct load *l, unsigned i)
{
	const struct raw_iface *r = &l->raw->iface[i];
	struct ro_iface_config *c = &l->file->iface[i].config;
	int port = find_port(l, r->port), rc;

	NODE(l, "interfaces/%u/port", i);
	if (port < 0)
		return COMPLAIN(l, "no port '%s' above", r->port);
	c->port = (unsigned)port;
	c->ifindex = i + 1;
	c->up = true;
	NODE(l, "interfaces/%u/vlan", i);
	if (r->vlan > 4094)
		return COMPLAIN(l, "VLAN %u: from 1 to 4094 is possible, 0 is untagged", r->vlan);
	c->vlan = (uint16_t)r->vlan;
	NODE(l, "interfaces/%u/mtu", i);
	if (r->mtu && (r->mtu < RO_MTU4_MIN || r->mtu > 65535))
		return COMPLAIN(l, "MTU %u: from 68 to 65535 is possible", r->mtu);
	c->mtu = r->mtu;
	NODE(l, "interfaces/%u", i);
	for (unsigned k = 0; k < i; k++) {
		const struct ro_iface_config *o = &l->file->iface[k].config;

		if (o->port == c->port && o->vlan == c->vlan)
			return COMPLAIN(l, "port '%s', VLAN %u is interface '%s' already", r->port,
					c->vlan, o->name);
	}
	if (r->name)
		snprintf(c->name, sizeof(c->name), "%s", r->name);
	else if (c->vlan)
		snprintf(c->name, sizeof(c->name), "%.24s.%u", r->port, c->vlan);
	else
		snprintf(c->name, sizeof(c->name), "%.31s", r->port);
	if (find_iface(l, c->name) && find_iface(l, c->name) != c->ifindex)
		return COMPLAIN(l, "a second interface '%s'", c->name);
	NODE(l, "interfaces/%u/mac", i);
	rc = r->mac ? parse_mac(l, r->mac, c->mac) : 0;
	l->file->ifaces = i + 1;
	return rc;
}

/* What no interface can have for an address (RFC 1122 3.2.1.3, RFC 4291 2.5), or NULL. */
static const char *unusable(const struct forward_addr *a)
{
	static const uint8_t zero[16];
	const uint8_t *b = a->addr.byte;
	unsigned host = 32 - a->len;
	uint32_t word;

	if (a->addr.family == RO_IPV6) {
		if (b[0] == 0xff)
			return "a group's address";
		return !memcmp(b, zero, 15) && b[15] <= 1 ? "no interface's address" : NULL;
	}
	if (b[0] == 0 || b[0] == 127 || b[0] >= 240)
		return "no interface's address";
	if (b[0] >= 224)
		return "a group's address";
	word = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	if (a->len >= 31 || a->len == 0)
		return NULL;
	return (word | (0xffffffffu >> (32 - host))) == word ? "the broadcast of its link" : NULL;
}

static bool is_own(const struct load *l, const struct ro_addr *addr)
{
	for (unsigned i = 0; i < l->file->addrs; i++) {
		if (!memcmp(&l->file->addr[i].addr, addr, sizeof(*addr)))
			return true;
	}
	return false;
}

static int take_addresses(struct load *l, unsigned i)
{
	const struct raw_iface *r = &l->raw->iface[i];
	struct forward_addr *grown = realloc(l->file->addr, (l->file->addrs + r->addresses + 1) *
								    sizeof(l->file->addr[0]));

	if (!grown)
		return ho_err_set(l->err, -ENOMEM, "out of memory");
	l->file->addr = grown;
	for (unsigned k = 0; k < r->addresses; k++) {
		struct forward_addr *a = &l->file->addr[l->file->addrs];
		int rc;

		NODE(l, "interfaces/%u/addresses/%u", i, k);
		a->ifindex = i + 1;
		rc = parse_prefix(l, r->address[k], &a->addr, &a->len);
		if (rc < 0)
			return rc;
		if (is_own(l, &a->addr))
			return COMPLAIN(l, "'%s' is used twice", r->address[k]);
		if (unusable(a))
			return COMPLAIN(l, "'%s' is %s", r->address[k], unusable(a));
		if (a->addr.family == RO_IPV6 && r->mtu && r->mtu < RO_MTU6_MIN)
			return COMPLAIN(l, "'%s': IPv6 needs an MTU of %d at least", r->address[k],
					RO_MTU6_MIN);
		l->file->addrs++;
	}
	return 0;
}

static int take_neighbours(struct load *l, unsigned i)
{
	const struct raw_iface *r = &l->raw->iface[i];
	struct forward_neigh *grown = realloc(l->file->neigh, (l->file->neighs + r->neighs + 1) *
								      sizeof(l->file->neigh[0]));

	if (!grown)
		return ho_err_set(l->err, -ENOMEM, "out of memory");
	l->file->neigh = grown;
	for (unsigned k = 0; k < r->neighs; k++) {
		struct forward_neigh *n = &l->file->neigh[l->file->neighs];
		int rc;

		n->ifindex = i + 1;
		NODE(l, "interfaces/%u/neighbours/%u/address", i, k);
		rc = parse_addr(l, r->neigh[k].address, &n->addr);
		if (rc == 0 && is_own(l, &n->addr))
			return COMPLAIN(l, "'%s' is the router's own address", r->neigh[k].address);
		NODE(l, "interfaces/%u/neighbours/%u/mac", i, k);
		if (rc == 0)
			rc = parse_mac(l, r->neigh[k].mac, n->mac);
		if (rc < 0)
			return rc;
		NODE(l, "interfaces/%u/neighbours/%u/count", i, k);
		n->count = r->neigh[k].count ? r->neigh[k].count : 1;
		if (n->count > 65536)
			return COMPLAIN(l, "%u neighbours: at most 65536", n->count);
		l->file->neighs++;
	}
	return 0;
}

/* --- routes --------------------------------------------------------------------------------- */

static bool inside(const struct ro_addr *prefix, unsigned len, const struct ro_addr *addr)
{
	unsigned whole = len / 8, rest = len % 8;

	return prefix->family == addr->family && !memcmp(prefix->byte, addr->byte, whole) &&
	       (!rest || !((prefix->byte[whole] ^ addr->byte[whole]) >> (8 - rest)));
}

/* The interface of a gateway, by the addresses that the router has. */
static uint32_t iface_of(const struct load *l, const struct ro_addr *via)
{
	for (unsigned i = 0; i < l->file->addrs; i++) {
		if (inside(&l->file->addr[i].addr, l->file->addr[i].len, via))
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
		rc = parse_addr(l, via, &hop->via);
		if (rc < 0)
			return rc;
		if (is_own(l, &hop->via))
			return COMPLAIN(l, "'%s' is the router's own address", via);
		hop->ifindex = iface_of(l, &hop->via);
	}
	if (dev) {
		NODE(l, "%s/dev", where);
		hop->ifindex = find_iface(l, dev);
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

static int take_route(struct load *l, unsigned i)
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
	rc = parse_prefix(l, r->to, &out->dst.addr, &out->dst.len);
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
		rc = parse_addr(l, r->source, &out->prefsrc);
		if (rc < 0)
			return rc;
		if (out->prefsrc.family != out->dst.addr.family)
			return COMPLAIN(l, "'%s' is of the other family", r->source);
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

/* --- the whole ------------------------------------------------------------------------------ */

/* A route and where it stands in the file. */
struct listed {
	const struct ro_route *route;
	unsigned at;
};

static int by_destination(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = memcmp(&x->route->dst, &y->route->dst, sizeof(x->route->dst));

	if (order)
		return order;
	if (x->route->metric != y->route->metric)
		return x->route->metric < y->route->metric ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

/* No destination is there twice with the same metric. */
static int check_once(struct load *l)
{
	struct forward_file *f = l->file;
	struct listed *list = calloc(f->routes + 1, sizeof(*list));
	int rc = 0;

	if (!list)
		return ho_err_set(l->err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < f->routes; i++)
		list[i] = (struct listed){ f->route[i], i };
	qsort(list, f->routes, sizeof(*list), by_destination);
	for (unsigned i = 1; rc == 0 && i < f->routes; i++) {
		const struct ro_route *r = list[i].route, *o = list[i - 1].route;

		if (r->metric != o->metric || memcmp(&r->dst, &o->dst, sizeof(r->dst)) != 0)
			continue;
		NODE(l, "routes/%u/to", list[i].at);
		rc = COMPLAIN(l, "a second route to '%s' of metric %u",
			      l->raw->route[list[i].at].to, r->metric);
	}
	free(list);
	return rc;
}

static int take(struct load *l)
{
	struct forward_file *f = l->file;
	int rc;

	f->icmp_rate = l->raw->icmp_rate;
	f->icmp_burst = l->raw->icmp_burst;
	f->announce = l->raw->announce;
	f->port = calloc(l->raw->ports + 1, sizeof(f->port[0]));
	f->iface = calloc(l->raw->ifaces + 1, sizeof(f->iface[0]));
	f->route = calloc(l->raw->routes + 1, sizeof(f->route[0]));
	f->repeat = calloc(l->raw->routes + 1, sizeof(f->repeat[0]));
	if (!f->port || !f->iface || !f->route || !f->repeat)
		return ho_err_set(l->err, -ENOMEM, "out of memory");
	rc = take_ports(l);
	for (unsigned i = 0; rc == 0 && i < l->raw->ifaces; i++)
		rc = take_iface(l, i);
	for (unsigned i = 0; rc == 0 && i < l->raw->ifaces; i++)
		rc = take_addresses(l, i);
	for (unsigned i = 0; rc == 0 && i < l->raw->ifaces; i++)
		rc = take_neighbours(l, i);
	for (unsigned i = 0; rc == 0 && i < l->raw->routes; i++)
		rc = take_route(l, i);
	return rc == 0 ? check_once(l) : rc;
}

int forward_file_load(const char *path, struct forward_file *out, struct ho_err *err)
{
	struct load l = { .file = out, .err = err };
	int rc;

	*out = (struct forward_file){ 0 };
	rc = ho_doc_load(path, &file_schema, (void **)&l.raw, &l.doc, err);
	if (rc < 0)
		return rc;
	out->raw = l.raw;
	rc = take(&l);
	ho_doc_free(l.doc);
	if (rc < 0)
		forward_file_free(out);
	return rc;
}

void forward_file_free(struct forward_file *f)
{
	for (unsigned i = 0; i < f->routes; i++)
		free(f->route[i]);
	free(f->route);
	free(f->repeat);
	free(f->port);
	free(f->iface);
	free(f->addr);
	free(f->neigh);
	ho_yaml_free(&file_schema, f->raw);
	*f = (struct forward_file){ 0 };
}
