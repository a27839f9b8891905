// SPDX-License-Identifier: BSD-2-Clause
/* Files of routes: a prefix and a next hop a line, or what 'ip route' and 'ip -6 route' print. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "base/file.h"
#include "cmd/fib.h"
#include "packet/parse.h"

/* A route with hundreds of next hops fits. */
#define LINE_BYTES 65536

struct reader {
	struct cmd_fib_routes *out;
	const char *path;
	unsigned long line;
	const char *text; /* the line */
	struct ho_err *err;
	/* A prefix alone, whose next hops must come in the lines after it. */
	struct cmd_fib_route alone;
	unsigned long alone_line; /* 0: none */
	uint32_t *hash;           /* of next hops' texts: open, indexes into nexthop */
	size_t mask;
};

static int bad(const struct reader *r, const char *at, const char *word, const char *what)
{
	return ho_err_set(r->err, -EINVAL, "%s:%lu:%zu: '%s': %s", r->path, r->line,
			  (size_t)(at - r->text) + 1, word, what);
}

/* Cuts the next word out of *at; NULL at the end of the line. */
static char *next_word(char **at)
{
	char *word = *at;

	while (isspace((unsigned char)*word))
		word++;
	if (!*word)
		return NULL;
	*at = word + strcspn(word, " \t\r\n");
	if (**at)
		*(*at)++ = '\0';
	return word;
}

static uint64_t hash_text(const char *text)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	while (*text)
		h = (h ^ (uint8_t)*text++) * 0x100000001b3u;
	return h ^ h >> 32;
}

static int grow_hash(struct reader *r)
{
	size_t slots = r->mask ? (r->mask + 1) * 2 : 256;
	uint32_t *fresh = calloc(slots, sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	for (size_t i = 1; i < r->out->nexthops; i++) {
		size_t at = hash_text(r->out->nexthop[i]);

		while (fresh[at & (slots - 1)])
			at++;
		fresh[at & (slots - 1)] = (uint32_t)i;
	}
	free(r->hash);
	r->hash = fresh;
	r->mask = slots - 1;
	return 0;
}

/* The number of a next hop, a new one for a text that was not there. */
static int intern(struct reader *r, const char *text, uint32_t *out)
{
	struct cmd_fib_routes *o = r->out;
	size_t at = hash_text(text);

	for (; r->hash[at & r->mask]; at++) {
		if (!strcmp(o->nexthop[r->hash[at & r->mask]], text)) {
			*out = r->hash[at & r->mask];
			return 0;
		}
	}
	if (o->nexthops > FIB_NH_MAX)
		return ho_err_set(r->err, -ENOSPC, "%s:%lu: more than %u different next hops",
				  r->path, r->line, FIB_NH_MAX);
	if (o->nexthops == o->nexthop_room) {
		size_t room = o->nexthop_room * 2;
		char **more = realloc(o->nexthop, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		o->nexthop = more;
		o->nexthop_room = room;
	}
	o->nexthop[o->nexthops] = strdup(text);
	if (!o->nexthop[o->nexthops])
		return -ENOMEM;
	r->hash[at & r->mask] = (uint32_t)o->nexthops;
	*out = (uint32_t)o->nexthops++;
	return o->nexthops * 2 > r->mask ? grow_hash(r) : 0;
}

/* "10.0.0.0/8", "2001:db8::/32", an address alone; nothing may be set beyond the length. */
static int parse_prefix(const struct reader *r, char *word, struct cmd_fib_route *out)
{
	char *slash = strchr(word, '/'), *end;
	unsigned bits;

	if (slash)
		*slash = '\0';
	out->v6 = strchr(word, ':') != NULL;
	bits = out->v6 ? 128 : 32;
	if (inet_pton(out->v6 ? AF_INET6 : AF_INET, word, out->addr.byte) != 1)
		return bad(r, word, word, "no IPv4 or IPv6 prefix");
	out->len = (uint8_t)bits;
	if (slash) {
		unsigned long len = strtoul(slash + 1, &end, 10);

		if (!isdigit((unsigned char)slash[1]) || *end || len > bits)
			return bad(r, slash + 1, slash + 1,
				   out->v6 ? "an IPv6 prefix has a length of 0 to 128"
					   : "an IPv4 prefix has a length of 0 to 32");
		out->len = (uint8_t)len;
	}
	for (unsigned i = out->len; i < bits; i++) {
		if (out->addr.byte[i / 8] >> (7 - i % 8) & 1)
			return bad(r, word, word, "bits beyond the prefix's length are set");
	}
	return 0;
}

static int add_route(struct reader *r, struct cmd_fib_route *route, const char *nexthop)
{
	struct cmd_fib_routes *o = r->out;
	uint32_t addr4 = pk_load32(route->addr.byte);
	int rc;

	if (route->v6 ? fib6_get(o->fib6, route->addr.byte, route->len)
		      : fib4_get(o->fib4, addr4, route->len)) {
		o->repeated++;
		return 0;
	}
	rc = intern(r, nexthop, &route->nh);
	if (rc)
		return rc;
	rc = route->v6 ? fib6_set(o->fib6, route->addr.byte, route->len, route->nh, r->err)
		       : fib4_set(o->fib4, addr4, route->len, route->nh, r->err);
	if (rc)
		return rc;
	if (o->n == o->room) {
		size_t room = o->room ? o->room * 2 : 1024;
		struct cmd_fib_route *more = realloc(o->route, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		o->route = more;
		o->room = room;
	}
	o->route[o->n++] = *route;
	return 0;
}

static bool is_kind(const char *word)
{
	static const char *const kinds[] = { "unicast",  "local",     "broadcast",
					     "anycast",  "blackhole", "unreachable",
					     "prohibit", "multicast", "throw" };

	for (size_t i = 0; i < HO_ARRAY_LEN(kinds); i++) {
		if (!strcmp(word, kinds[i]))
			return true;
	}
	return false;
}

/* "via A dev D", "dev D", "blackhole": what tells one next hop of 'ip route' from another. */
static int route_nexthop(struct reader *r, const char *kind, char *rest, char *text, size_t size,
			 bool *v6)
{
	size_t n = 0;
	char *word;

	text[0] = '\0';
	if (kind && strcmp(kind, "unicast"))
		n = (size_t)snprintf(text, size, "%s", kind);
	while ((word = next_word(&rest))) {
		char *value;

		/* A route of several next hops goes on in lines of its own. */
		if (strcmp(word, "via") && strcmp(word, "dev") && strcmp(word, "nhid"))
			continue;
		value = next_word(&rest);
		if (value && !strcmp(word, "via") &&
		    (!strcmp(value, "inet6") || !strcmp(value, "inet")))
			value = next_word(&rest);
		if (!value)
			return bad(r, word, word, "something must follow");
		if (!strcmp(word, "via"))
			*v6 = strchr(value, ':') != NULL;
		if (n < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s %s", n ? " " : "", word,
					      value);
	}
	if (!text[0])
		snprintf(text, size, "multipath");
	return 0;
}

static int no_nexthop(const struct reader *r)
{
	return ho_err_set(r->err, -EINVAL, "%s:%lu:1: a next hop must follow the prefix", r->path,
			  r->alone_line);
}

static int read_line(struct reader *r, char *line)
{
	struct cmd_fib_route route = { .nh = 0 };
	const char *kind = NULL;
	char text[256], *at = line, *word, *prefix, *nexthop;
	bool v6 = false;
	int rc;

	r->text = line;
	line[strcspn(line, "#\n")] = '\0';
	word = next_word(&at);
	if (word && !strcmp(word, "nexthop")) {
		/* The first ends a prefix that stood alone, the others say nothing new. */
		if (!r->alone_line)
			return 0;
		r->alone_line = 0;
		return add_route(r, &r->alone, "multipath");
	}
	if (r->alone_line)
		return no_nexthop(r);
	if (!word)
		return 0;
	if (is_kind(word)) {
		kind = word;
		word = next_word(&at);
		if (!word)
			return bad(r, kind, kind, "a prefix must follow");
	}
	prefix = word;
	while (isspace((unsigned char)*at))
		at++;
	nexthop = at;
	for (char *end = at + strlen(at); end > at && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	if (strcmp(prefix, "default")) {
		rc = parse_prefix(r, prefix, &route);
		if (rc)
			return rc;
	}
	/* One word: a next hop of any name. More, or a kind: as ip prints it. */
	if (!kind && *nexthop && !strpbrk(nexthop, " \t")) {
		snprintf(text, sizeof(text), "%s", nexthop);
		v6 = strchr(nexthop, ':') != NULL;
	} else {
		bool known = kind || !*nexthop || !strncmp(nexthop, "via ", 4) ||
			     !strncmp(nexthop, "dev ", 4) || !strncmp(nexthop, "proto ", 6) ||
			     !strncmp(nexthop, "nhid ", 5) || !strncmp(nexthop, "metric ", 7);

		if (!known)
			return bad(r, nexthop, nexthop,
				   "one next hop, or what 'ip route' prints, must follow");
		if (!kind && !*nexthop) {
			r->alone = route;
			r->alone_line = r->line;
			return 0;
		}
		rc = route_nexthop(r, kind, nexthop, text, sizeof(text), &v6);
		if (rc)
			return rc;
	}
	if (!strcmp(prefix, "default"))
		route.v6 = v6;
	return add_route(r, &route, text);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int cmd_fib_read(struct cmd_fib_routes *out, const char *path, struct ho_err *err)
{
	struct reader r = { .out = out, .path = path, .err = err };
	FILE *in = stdin;
	double start = now_ns();
	char *line;
	int rc = strcmp(path, "-") ? ho_file_open(path, &in, err) : 0;

	memset(out, 0, sizeof(*out));
	if (rc < 0)
		return rc;
	if (in == stdin)
		r.path = "standard input";
	out->nexthops = 1;
	out->nexthop_room = 64;
	out->nexthop = calloc(out->nexthop_room, sizeof(*out->nexthop));
	line = malloc(LINE_BYTES);
	rc = out->nexthop && line ? grow_hash(&r) : -ENOMEM;
	if (!rc)
		rc = fib4_create(&out->fib4, NULL, err);
	if (!rc)
		rc = fib6_create(&out->fib6, NULL, err);
	while (!rc && fgets(line, LINE_BYTES, in)) {
		size_t bytes = strlen(line);

		r.line++;
		if (bytes && (line[bytes - 1] == '\n' || feof(in)))
			rc = read_line(&r, line);
		else
			rc = ho_err_set(err, -EINVAL, "%s:%lu: %s: this is no list of routes",
					r.path, r.line,
					bytes < LINE_BYTES - 1 ? "a zero byte" : "an endless line");
	}
	if (!rc && r.alone_line)
		rc = no_nexthop(&r);
	if (!rc && ferror(in))
		rc = ho_err_set(err, -EIO, "%s: cannot be read", r.path);
	if (rc == -ENOMEM)
		ho_err_set(err, rc, "%s:%lu: no memory", r.path, r.line);
	out->load_ns = now_ns() - start;
	free(line);
	free(r.hash);
	if (in != stdin)
		fclose(in);
	return rc;
}

void cmd_fib_free(struct cmd_fib_routes *routes)
{
	for (size_t i = 1; i < routes->nexthops; i++)
		free(routes->nexthop[i]);
	free(routes->nexthop);
	free(routes->route);
	fib4_destroy(routes->fib4);
	fib6_destroy(routes->fib6);
}

uint32_t cmd_fib_match(const struct cmd_fib_routes *routes, const struct fib6_addr *addr, bool v6,
		       unsigned *len)
{
	uint32_t addr4 = pk_load32(addr->byte);
	uint32_t nh = v6 ? fib6_lookup(routes->fib6, addr->byte) : fib4_lookup(routes->fib4, addr4);

	if (!nh)
		return 0;
	*len = v6 ? 128 : 32;
	while (!(v6 ? fib6_get(routes->fib6, addr->byte, *len)
		    : fib4_get(routes->fib4, addr4, *len)))
		--*len;
	return nh;
}
