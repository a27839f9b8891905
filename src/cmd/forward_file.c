// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/yaml.h"
#include "cmd/forward_file_impl.h"

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

/* --- the whole ------------------------------------------------------------------------------ */

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
	rc = ff_take_ports(l);
	for (unsigned i = 0; rc == 0 && i < l->raw->ifaces; i++)
		rc = ff_take_iface(l, i);
	for (unsigned i = 0; rc == 0 && i < l->raw->ifaces; i++)
		rc = ff_take_addresses(l, i);
	for (unsigned i = 0; rc == 0 && i < l->raw->ifaces; i++)
		rc = ff_take_neighbours(l, i);
	for (unsigned i = 0; rc == 0 && i < l->raw->routes; i++)
		rc = ff_take_route(l, i);
	return rc == 0 ? ff_check_once(l) : rc;
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
