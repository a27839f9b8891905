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

#define REPEAT_MAX (1u << 24)

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
	if (rc == 0 && r->mac && !memcmp(c->mac, "\0\0\0\0\0", 6))
		return COMPLAIN(l, "'%s' is no interface's address", r->mac);
	l->file->ifaces = i + 1;
	return rc;
}

/* Is it the highest address of an IPv4 prefix that has one for everybody (RFC 3021)? */
static bool is_broadcast(const struct ro_addr *a, unsigned len)
{
	const uint8_t *b = a->byte;
	uint32_t word = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];

	return a->family == RO_IPV4 && len > 0 && len < 31 && (word | 0xffffffffu >> len) == word;
}

/* What no interface can have for an address (RFC 1122 3.2.1.3, RFC 4291 2.5), or NULL. */
static const char *unusable(const struct forward_addr *a)
{
	static const uint8_t zero[16];
	const uint8_t *b = a->addr.byte;

	if (a->addr.family == RO_IPV6) {
		if (b[0] == 0xff)
			return "a group's address";
		return !memcmp(b, zero, 15) && b[15] <= 1 ? "no interface's address" : NULL;
	}
	if (b[0] == 0 || b[0] == 127 || b[0] >= 240)
		return "no interface's address";
	if (b[0] >= 224)
		return "a group's address";
	return is_broadcast(&a->addr, a->len) ? "the broadcast of its link" : NULL;
}

static bool is_own(const struct load *l, const struct ro_addr *addr)
{
	for (unsigned i = 0; i < l->file->addrs; i++) {
		if (!memcmp(&l->file->addr[i].addr, addr, sizeof(*addr)))
			return true;
	}
	return false;
}

static bool link_local(const struct ro_addr *a)
{
	return a->family == RO_IPV6 && a->byte[0] == 0xfe && (a->byte[1] & 0xc0) == 0x80;
}

static bool inside(const struct ro_addr *prefix, unsigned len, const struct ro_addr *addr)
{
	unsigned whole = len / 8, rest = len % 8;

	return prefix->family == addr->family && !memcmp(prefix->byte, addr->byte, whole) &&
	       (!rest || !((prefix->byte[whole] ^ addr->byte[whole]) >> (8 - rest)));
}

/* The address that was taken before for which there is something wrong with this one: the same, or
 * the same link on another interface (a route has one). NULL = nothing. Link-local ones are each
 * interface's own. */
static const struct forward_addr *in_the_way(const struct load *l, const struct forward_addr *a)
{
	for (unsigned i = 0; i < l->file->addrs; i++) {
		const struct forward_addr *o = &l->file->addr[i];

		if (link_local(&a->addr) && o->ifindex != a->ifindex)
			continue;
		if (!memcmp(&o->addr, &a->addr, sizeof(a->addr)) ||
		    (o->ifindex != a->ifindex && o->len == a->len &&
		     inside(&o->addr, o->len, &a->addr)))
			return o;
	}
	return NULL;
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
		const struct forward_addr *other;
		int rc;

		NODE(l, "interfaces/%u/addresses/%u", i, k);
		a->ifindex = i + 1;
		rc = parse_prefix(l, r->address[k], &a->addr, &a->len);
		if (rc < 0)
			return rc;
		if (unusable(a))
			return COMPLAIN(l, "'%s' is %s", r->address[k], unusable(a));
		other = in_the_way(l, a);
		if (other && !memcmp(&other->addr, &a->addr, sizeof(a->addr)))
			return COMPLAIN(l, "'%s' is used twice", r->address[k]);
		if (other)
			return COMPLAIN(l, "'%s': its link is that of interface '%s' already",
					r->address[k],
					l->file->iface[other->ifindex - 1].config.name);
		if (a->addr.family == RO_IPV6 && r->mtu && r->mtu < RO_MTU6_MIN)
			return COMPLAIN(l, "'%s': IPv6 needs an MTU of %d at least", r->address[k],
					RO_MTU6_MIN);
		l->file->addrs++;
	}
	return 0;
}

/* What no neighbour can have for an address, or NULL: nobody's, everybody's. */
static const char *not_a_host(const struct load *l, const struct ro_addr *a)
{
	const struct forward_addr whole = { .addr = *a };

	if (unusable(&whole))
		return unusable(&whole);
	for (unsigned i = 0; i < l->file->addrs; i++) {
		const struct forward_addr *o = &l->file->addr[i];

		if (is_broadcast(a, o->len) && inside(&o->addr, o->len, a))
			return "the broadcast of a link";
	}
	return NULL;
}

typedef unsigned __int128 wide;

/* The first bits of an address. */
static wide number_of(const struct ro_addr *addr, unsigned len)
{
	wide out = 0;

	for (unsigned b = 0; b < len; b++)
		out = out << 1 | (addr->byte[b / 8] >> (7 - b % 8) & 1);
	return out;
}

static unsigned bits_of(const struct ro_addr *addr)
{
	return addr->family == RO_IPV4 ? 32 : 128;
}

/* Is it one of those that count up from the neighbour's? */
static bool is_among(const struct forward_neigh *n, const struct ro_addr *a)
{
	if (n->count == 1 || a->family != n->addr.family)
		return !memcmp(a, &n->addr, sizeof(*a));
	return number_of(a, bits_of(a)) - number_of(&n->addr, bits_of(a)) < n->count;
}

/* What neighbour k of interface i counts up to is nobody else's: the k before it are in front of
 * it. */
static int check_counted(struct load *l, const struct forward_neigh *n, unsigned k, unsigned i)
{
	const char *text = l->raw->iface[i].neigh[k].address;

	NODE(l, "interfaces/%u/neighbours/%u/address", i, k);
	for (unsigned j = 1; j <= k; j++) {
		if (is_among(n - j, &n->addr) || is_among(n, &(n - j)->addr))
			return COMPLAIN(l, "a second neighbour %s'%s'",
					n->count > 1 || (n - j)->count > 1 ? "from " : "", text);
	}
	for (unsigned j = 0; j < l->file->addrs; j++) {
		const struct forward_addr *o = &l->file->addr[j];
		struct ro_addr top = o->addr;

		if (is_among(n, &o->addr))
			return COMPLAIN(l, "'%s' counts up to the router's own address", text);
		for (unsigned b = o->len; b < bits_of(&top); b++)
			top.byte[b / 8] |= (uint8_t)(0x80 >> b % 8);
		if (is_broadcast(&top, o->len) && is_among(n, &top))
			return COMPLAIN(l, "'%s' counts up to the broadcast of a link", text);
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
		if (rc == 0 && not_a_host(l, &n->addr))
			return COMPLAIN(l, "'%s' is %s", r->neigh[k].address,
					not_a_host(l, &n->addr));
		NODE(l, "interfaces/%u/neighbours/%u/mac", i, k);
		if (rc == 0)
			rc = parse_mac(l, r->neigh[k].mac, n->mac);
		if (rc < 0)
			return rc;
		NODE(l, "interfaces/%u/neighbours/%u/count", i, k);
		n->count = r->neigh[k].count ? r->neigh[k].count : 1;
		if (n->count > 65536)
			return COMPLAIN(l, "%u neighbours: at most 65536", n->count);
		if (rc == 0)
			rc = check_counted(l, n, k, i);
		if (rc < 0)
			return rc;
		l->file->neighs++;
	}
	return 0;
}

/* --- routes --------------------------------------------------------------------------------- */

/* The interface of a gateway, by the addresses that the router has. */
static uint32_t iface_of(const struct load *l, const struct ro_addr *via)
{
	for (unsigned i = 0; i < l->file->addrs; i++) {
		if (!link_local(via) && inside(&l->file->addr[i].addr, l->file->addr[i].len, via))
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
		if (not_a_host(l, &hop->via))
			return COMPLAIN(l, "'%s' is %s", via, not_a_host(l, &hop->via));
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
		if (!is_own(l, &out->prefsrc))
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

/* --- the whole ------------------------------------------------------------------------------ */

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

	out.first = number_of(addr, len);
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
static int check_once(struct load *l)
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
