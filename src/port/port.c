// SPDX-License-Identifier: BSD-2-Clause
/* Opening ports by name, their options, and what all kinds share. */
#include "port/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "port/kinds.h"

const struct port_kind *const port_kinds[] = {
	&port_kind_mem,  &port_kind_memif, &port_kind_null, &port_kind_packet,
	&port_kind_pcap, &port_kind_tap,   &port_kind_xdp,  NULL,
};

const char *port_drop_name(enum port_drop drop)
{
	static const char *const names[] = {
#define DROP_NAME(id, name, text) name,
		PORT_DROPS(DROP_NAME)
#undef DROP_NAME
	};
	return names[drop];
}

const char *port_drop_meaning(enum port_drop drop)
{
	static const char *const texts[] = {
#define DROP_TEXT(id, name, text) text,
		PORT_DROPS(DROP_TEXT)
#undef DROP_TEXT
	};
	return texts[drop];
}

uint64_t port_drops_sum(const uint64_t drops[PORT_DROP_COUNT])
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PORT_DROP_COUNT; i++)
		sum += ho_ctr_read(&drops[i]);
	return sum;
}

/* Index of `value` in "a|b|c", -1 if it is not there. */
static int choice_index(const char *choices, const char *value)
{
	size_t len = strlen(value);

	for (int i = 0;; i++) {
		size_t n = strcspn(choices, "|");

		if (n == len && !strncmp(choices, value, n))
			return i;
		if (!choices[n])
			return -1;
		choices += n + 1;
	}
}

static int check_range(const struct port_opt *opt, uint64_t value, const char *text,
		       struct ho_err *err)
{
	const bool small = value < opt->min, large = opt->max && value > opt->max;
	const uint64_t limit = small ? opt->min : opt->max;
	char limit_text[HO_UNIT_TEXT];

	if (!small && !large)
		return 0;
	if (opt->type == PORT_OPT_TIME)
		ho_format_ns((double)limit, limit_text);
	else
		snprintf(limit_text, sizeof(limit_text), "%llu", (unsigned long long)limit);
	return ho_err_set(err, -ERANGE, "%s=%s is too %s; at %s %s", opt->key, text,
			  small ? "small" : "large", small ? "least" : "most", limit_text);
}

/* Sets one option in the kind's struct. value is NULL when only the key was given. */
static int set_option(const struct port_opt *opt, char *value, void *opts, struct ho_err *err)
{
	char *field = (char *)opts + opt->offset;
	uint64_t number = 0;
	int rc = 0;

	if (opt->type == PORT_OPT_BOOL) {
		int yes = value ? choice_index("no|yes", value) : 1;

		if (yes < 0)
			return ho_err_set(err, -EINVAL, "%s=%s: write yes or no", opt->key, value);
		*(bool *)field = yes;
		return 0;
	}
	if (!value || !*value)
		return ho_err_set(err, -EINVAL, "option '%s' needs a value: %s", opt->key,
				  opt->help);
	switch (opt->type) {
	case PORT_OPT_COUNT:
	case PORT_OPT_TIME:
		rc = opt->type == PORT_OPT_TIME ? ho_parse_time_ns(value, &number, err)
						: ho_parse_count(value, &number, err);
		if (rc == 0)
			rc = check_range(opt, number, value, err);
		if (rc == 0)
			*(uint64_t *)field = number;
		break;
	case PORT_OPT_NUMBER: {
		char *end;
		double v = strtod(value, &end);

		if (*end || !(v >= 0) || v > 1e18)
			return ho_err_set(err, -EINVAL, "%s=%s is not a number", opt->key, value);
		*(double *)field = v;
		break;
	}
	case PORT_OPT_CHOICE:
		rc = choice_index(opt->choices, value);
		if (rc < 0)
			return ho_err_set(err, -EINVAL, "%s=%s: one of %s is needed", opt->key,
					  value, opt->choices);
		*(unsigned *)field = (unsigned)rc;
		rc = 0;
		break;
	case PORT_OPT_STRING:
		*(const char **)field = value;
		break;
	case PORT_OPT_BOOL:
		break;
	}
	return rc;
}

/* "mode, queues and ring" for messages. */
static const char *option_list(const struct port_kind *kind, char *buf, size_t bytes)
{
	size_t used = 0;

	buf[0] = '\0';
	for (const struct port_opt *o = kind->opts; o && o->key && used < bytes; o++)
		used += (size_t)snprintf(buf + used, bytes - used, "%s%s", used ? ", " : "",
					 o->key);
	return buf[0] ? buf : "none";
}

static int set_options(const struct port_kind *kind, char *text, void *opts, struct ho_err *err)
{
	char *next, list[256];

	for (; text; text = next) {
		const struct port_opt *opt = kind->opts;
		char *value;

		next = strchr(text, ',');
		if (next)
			*next++ = '\0';
		value = strchr(text, '=');
		if (value)
			*value++ = '\0';
		while (opt && opt->key && strcmp(opt->key, text))
			opt++;
		if (!opt || !opt->key)
			return ho_err_set(err, -EINVAL,
					  "%s: ports have no option '%s'; options are: %s",
					  kind->name, text, option_list(kind, list, sizeof(list)));
		if (set_option(opt, value, opts, err) < 0)
			return err ? err->code : -EINVAL;
	}
	return 0;
}

/* Cuts "target,opts" at the first comma that no backslash precedes; removes the backslashes. */
static char *cut_target(char *target)
{
	char *to = target;

	for (char *from = target;; from++) {
		if (from[0] == '\\' && from[1] == ',')
			from++;
		else if (*from == ',') {
			*to = '\0';
			return from + 1;
		}
		*to++ = *from;
		if (!*from)
			return NULL;
	}
}

static const struct port_kind *find_kind(const char *spec, size_t len)
{
	for (const struct port_kind *const *k = port_kinds; *k; k++) {
		if (strlen((*k)->name) == len && !strncmp((*k)->name, spec, len))
			return *k;
	}
	return NULL;
}

static int unknown_kind(const char *spec, struct ho_err *err)
{
	char list[256] = "";

	for (const struct port_kind *const *k = port_kinds; *k; k++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%s:%s", used ? ", " : "", (*k)->name,
			 (*k)->target);
	}
	return ho_err_set(err, -EINVAL, "'%s' is not a port; ports are %s", spec, list);
}

int port_open(const char *spec, const struct port_config *config, struct port **out,
	      struct ho_err *err)
{
	size_t kind_len = strcspn(spec, ":");
	const struct port_kind *kind = spec[kind_len] ? find_kind(spec, kind_len) : NULL;
	struct ho_err local;
	void *opts = NULL;
	char *target, *options;
	int rc = -ENOMEM;

	if (!err)
		err = &local;
	if (!kind)
		return unknown_kind(spec, err);
	target = strdup(spec + kind_len + 1);
	if (!target)
		goto nomem;
	if (kind->opts_bytes) {
		opts = malloc(kind->opts_bytes);
		if (!opts)
			goto nomem;
		memcpy(opts, kind->opts_default, kind->opts_bytes);
	}
	options = cut_target(target);
	if (!*target && *kind->target) {
		rc = ho_err_set(err, -EINVAL, "'%s' lacks what should follow the colon: %s:%s",
				spec, kind->name, kind->target);
		goto out;
	}
	rc = set_options(kind, options, opts, err);
	if (rc == 0)
		rc = kind->open(target, opts, config, out, err);
	if (rc < 0)
		ho_err_prefix(err, "%s:%s", kind->name, target);
	goto out;
nomem:
	ho_err_set(err, rc, "out of memory for port '%s'", spec);
out:
	free(opts);
	free(target);
	return rc;
}

int port_interface(const char *spec, char *name, size_t bytes, struct ho_err *err)
{
	size_t kind_len = strcspn(spec, ":");
	const struct port_kind *kind = spec[kind_len] ? find_kind(spec, kind_len) : NULL;
	char *target;

	if (!kind)
		return unknown_kind(spec, err);
	if (!kind->on_interface)
		return ho_err_set(err, -EINVAL,
				  "%s: a port of this kind has no interface with a driver and "
				  "settings of its own; packet:IFACE and xdp:IFACE do",
				  spec);
	target = strdup(spec + kind_len + 1);
	if (!target)
		return ho_err_set(err, -ENOMEM, "out of memory for port '%s'", spec);
	cut_target(target);
	snprintf(name, bytes, "%s", target);
	free(target);
	return 0;
}

struct port *port_new(size_t port_bytes, const struct port_kind *kind, const char *target,
		      const struct port_config *config, unsigned n_rxq, size_t rxq_bytes,
		      unsigned n_txq, size_t txq_bytes)
{
	struct port *port = calloc(1, port_bytes);

	if (!port)
		return NULL;
	port->kind = kind;
	snprintf(port->name, sizeof(port->name), "%s:%s", kind->name, target);
	port->rt = config->rt;
	port->arena = config->arena;
	port->max_frame = PK_FRAME_MAX_BYTES;
	port->rxq = calloc(n_rxq + 1, sizeof(port->rxq[0]));
	port->txq = calloc(n_txq + 1, sizeof(port->txq[0]));
	if (!port->rxq || !port->txq)
		goto fail;
	rxq_bytes = HO_ALIGN_UP(rxq_bytes, HO_CACHE_LINE);
	txq_bytes = HO_ALIGN_UP(txq_bytes, HO_CACHE_LINE);
	for (; port->n_rxq < n_rxq; port->n_rxq++) {
		struct port_rxq *q = aligned_alloc(HO_CACHE_LINE, rxq_bytes);

		if (!q)
			goto fail;
		memset(q, 0, rxq_bytes);
		q->port = port;
		q->arena = port->arena;
		q->index = (uint16_t)port->n_rxq;
		port->rxq[port->n_rxq] = q;
	}
	for (; port->n_txq < n_txq; port->n_txq++) {
		struct port_txq *q = aligned_alloc(HO_CACHE_LINE, txq_bytes);

		if (!q)
			goto fail;
		memset(q, 0, txq_bytes);
		q->port = port;
		q->arena = port->arena;
		q->index = (uint16_t)port->n_txq;
		port->txq[port->n_txq] = q;
	}
	return port;
fail:
	port_free(port);
	return NULL;
}

void port_free(struct port *port)
{
	if (!port)
		return;
	for (unsigned i = 0; port->rxq && i < port->n_rxq; i++)
		free(port->rxq[i]);
	for (unsigned i = 0; port->txq && i < port->n_txq; i++)
		free(port->txq[i]);
	free(port->rxq);
	free(port->txq);
	free(port);
}

void port_bind_rx(struct port *port, unsigned queue, struct pk_cache *cache)
{
	port->rxq[queue]->cache = cache;
}

void port_bind_tx(struct port *port, unsigned queue, struct pk_cache *cache)
{
	port->txq[queue]->cache = cache;
}

int port_start(struct port *port, struct ho_err *err)
{
	int rc = port->ops->start ? port->ops->start(port, err) : 0;

	if (rc < 0)
		ho_err_prefix(err, "%s", port->name);
	else
		port->started = true;
	return rc;
}

int port_drain(struct port *port, uint64_t timeout_ns)
{
	uint64_t deadline = rt_now_ns(port->rt) + timeout_ns;

	for (;;) {
		uint64_t in_flight = 0;

		for (unsigned i = 0; i < port->n_txq; i++) {
			struct port_txq *q = port->txq[i];

			if (!q->cache)
				continue;
			port_reap(q);
			in_flight += port_tx_in_flight(q);
		}
		if (!in_flight)
			return 0;
		if (rt_now_ns(port->rt) >= deadline)
			return -ETIMEDOUT;
		rt_relax(port->rt);
	}
}

void port_stop(struct port *port)
{
	if (port->stopped)
		return;
	port->stopped = true;
	if (port->started && port->ops->stop)
		port->ops->stop(port);
}

int port_late_error(struct port *port, struct ho_err *err)
{
	int rc = port->ops->late_error ? port->ops->late_error(port, err) : 0;

	if (rc < 0)
		ho_err_prefix(err, "%s", port->name);
	return rc;
}

void port_close(struct port *port)
{
	if (!port)
		return;
	port_stop(port);
	port->ops->close(port);
}

void port_tx_discard(struct port_txq *q, struct pk_slot *slots, unsigned n, enum port_drop why)
{
	unsigned frames = 0;

	for (unsigned i = 0; i < n; i++)
		frames += !(slots[i].flags & PK_MORE);
	for (unsigned i = 0; i < n; i += PK_CACHE_BULK)
		pk_free_slots(q->cache, slots + i, HO_MIN(n - i, (unsigned)PK_CACHE_BULK));
	q->accepted += frames;
	port_drop(&q->ctr, why, frames);
}
