// SPDX-License-Identifier: BSD-2-Clause
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/forward_file_impl.h"

int ff_parse_addr(struct load *l, const char *text, struct ro_addr *out)
{
	*out = (struct ro_addr){ .family = strchr(text, ':') ? RO_IPV6 : RO_IPV4 };
	if (inet_pton(out->family == RO_IPV4 ? AF_INET : AF_INET6, text, out->byte) != 1)
		return COMPLAIN(l, "'%s' is not an IPv4 or IPv6 address", text);
	return 0;
}

int ff_parse_prefix(struct load *l, const char *text, struct ro_addr *addr, uint8_t *len)
{
	const char *slash = strchr(text, '/');
	char copy[64], *end;
	unsigned long bits;
	int rc;

	if (!slash || (size_t)(slash - text) >= sizeof(copy))
		return COMPLAIN(l, "'%s': ADDRESS/BITS is needed, such as 192.0.2.0/24", text);
	memcpy(copy, text, (size_t)(slash - text));
	copy[slash - text] = 0;
	rc = ff_parse_addr(l, copy, addr);
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

int ff_parse_mac(struct load *l, const char *text, uint8_t mac[6])
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

int ff_find_port(const struct load *l, const char *name)
{
	for (unsigned i = 0; i < l->file->ports; i++) {
		if (!strcmp(l->file->port[i].name, name))
			return (int)i;
	}
	return -1;
}

uint32_t ff_find_iface(const struct load *l, const char *name)
{
	for (unsigned i = 0; i < l->file->ifaces; i++) {
		if (!strcmp(l->file->iface[i].config.name, name))
			return l->file->iface[i].config.ifindex;
	}
	return 0;
}

/* --- addresses ------------------------------------------------------------------------------ */

/* Is it the highest address of an IPv4 prefix that has one for everybody (RFC 3021)? */
bool ff_is_broadcast(const struct ro_addr *a, unsigned len)
{
	const uint8_t *b = a->byte;
	uint32_t word = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];

	return a->family == RO_IPV4 && len > 0 && len < 31 && (word | 0xffffffffu >> len) == word;
}

/* What no interface can have for an address (RFC 1122 3.2.1.3, RFC 4291 2.5), or NULL. */
const char *ff_unusable(const struct forward_addr *a)
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
	return ff_is_broadcast(&a->addr, a->len) ? "the broadcast of its link" : NULL;
}

bool ff_is_own(const struct load *l, const struct ro_addr *addr)
{
	for (unsigned i = 0; i < l->file->addrs; i++) {
		if (!memcmp(&l->file->addr[i].addr, addr, sizeof(*addr)))
			return true;
	}
	return false;
}

bool ff_link_local(const struct ro_addr *a)
{
	return a->family == RO_IPV6 && a->byte[0] == 0xfe && (a->byte[1] & 0xc0) == 0x80;
}

bool ff_inside(const struct ro_addr *prefix, unsigned len, const struct ro_addr *addr)
{
	unsigned whole = len / 8, rest = len % 8;

	return prefix->family == addr->family && !memcmp(prefix->byte, addr->byte, whole) &&
	       (!rest || !((prefix->byte[whole] ^ addr->byte[whole]) >> (8 - rest)));
}

/* What no neighbour can have for an address, or NULL: nobody's, everybody's. */
const char *ff_not_a_host(const struct load *l, const struct ro_addr *a)
{
	const struct forward_addr whole = { .addr = *a };

	if (ff_unusable(&whole))
		return ff_unusable(&whole);
	for (unsigned i = 0; i < l->file->addrs; i++) {
		const struct forward_addr *o = &l->file->addr[i];

		if (ff_is_broadcast(a, o->len) && ff_inside(&o->addr, o->len, a))
			return "the broadcast of a link";
	}
	return NULL;
}

/* The first bits of an address. */
wide ff_number_of(const struct ro_addr *addr, unsigned len)
{
	wide out = 0;

	for (unsigned b = 0; b < len; b++)
		out = out << 1 | (addr->byte[b / 8] >> (7 - b % 8) & 1);
	return out;
}

unsigned ff_bits_of(const struct ro_addr *addr)
{
	return addr->family == RO_IPV4 ? 32 : 128;
}
