// SPDX-License-Identifier: BSD-2-Clause
#include "measure/counters.h"

#include <inttypes.h>
#include <string.h>

#define STATS_MAX 64

/* The port's counters; NULL without memory. A queue of no port, as tests have them, has none. */
static json_t *of_port(struct ms_counters *c, const struct port *port)
{
	json_t *entry, *counters;

	for (unsigned i = 0; i < c->n; i++) {
		if (c->port[i] == port)
			return json_object_get(json_array_get(c->list, i), "counters");
	}
	if (!port || c->n == MS_COUNTERS_PORTS)
		return NULL;
	if (!c->list)
		c->list = json_array();
	counters = json_object();
	entry = json_pack("{s:s, s:o}", "name", port->name, "counters", counters);
	if (json_array_append_new(c->list, entry) < 0)
		return NULL;
	c->port[c->n++] = port;
	return counters;
}

static void set(json_t *counters, const char *name, uint64_t value)
{
	json_object_set_new(counters, name, json_integer((json_int_t)value));
}

static void set_of_queue(json_t *counters, bool tx, unsigned index, const char *what,
			 uint64_t value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_queue_%u_%s", tx ? "tx" : "rx", index, what);
	set(counters, name, value);
}

static void add_queue(json_t *counters, bool tx, unsigned index, const struct port_counters *ctr)
{
	set_of_queue(counters, tx, index, "packets", ho_ctr_read(&ctr->packets));
	set_of_queue(counters, tx, index, "bytes", ho_ctr_read(&ctr->bytes));
	if (tx) {
		set_of_queue(counters, tx, index, "ring_full_events", ho_ctr_read(&ctr->ring_full));
		set_of_queue(counters, tx, index, "kicks", ho_ctr_read(&ctr->kicks));
	} else {
		set_of_queue(counters, tx, index, "wakeups", ho_ctr_read(&ctr->wakeups));
	}
	for (unsigned i = 0; i < PORT_DROP_COUNT; i++) {
		uint64_t drops = ho_ctr_read(&ctr->drops[i]);

		/* The names begin with rx_ or tx_, which is there already. */
		if (drops)
			set_of_queue(counters, tx, index, port_drop_name((enum port_drop)i) + 3,
				     drops);
	}
}

void ms_counters_rx(struct ms_counters *c, const struct port_rxq *q)
{
	json_t *counters = of_port(c, q->port);

	if (counters)
		add_queue(counters, false, q->index, &q->ctr);
}

void ms_counters_tx(struct ms_counters *c, const struct port_txq *q)
{
	json_t *counters = of_port(c, q->port);

	if (counters)
		add_queue(counters, true, q->index, &q->ctr);
}

void ms_counters_port(struct ms_counters *c, struct port *port, const uint64_t *drops)
{
	json_t *counters = of_port(c, port);
	struct port_stat stat[STATS_MAX];
	unsigned n = 0;

	if (!counters)
		return;
	for (unsigned i = 0; i < PORT_DROP_COUNT; i++) {
		if (drops[i])
			set(counters, port_drop_name((enum port_drop)i), drops[i]);
	}
	if (port->ops->stats)
		n = HO_MIN(port->ops->stats(port, stat, STATS_MAX), (unsigned)STATS_MAX);
	for (unsigned i = 0; i < n; i++)
		set(counters, stat[i].name, stat[i].value);
}

void ms_counters_print(const struct ms_counters *c, FILE *out)
{
	for (unsigned i = 0; i < c->n; i++) {
		json_t *entry = json_array_get(c->list, i), *value;
		const char *name;

		fprintf(out, "%-10s %s\n", "counters",
			json_string_value(json_object_get(entry, "name")));
		json_object_foreach (json_object_get(entry, "counters"), name, value)
			fprintf(out, "%-10s   %s: %" JSON_INTEGER_FORMAT "\n", "", name,
				json_integer_value(value));
	}
}

void ms_counters_fini(struct ms_counters *c)
{
	json_decref(c->list);
	*c = (struct ms_counters){ 0 };
}
