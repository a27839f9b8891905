// SPDX-License-Identifier: BSD-2-Clause
/* holdoff forward -f FILE: the file is the control plane, with ARP and Neighbour Discovery of our
 * own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/forward.h"
#include "cmd/forward_file.h"
#include "route/discovery.h"

struct own {
	struct forward_file file;
	struct ro_discovery *discovery;
};

static int setup(struct forward *f, struct ho_err *err)
{
	struct own *o = f->state;
	int rc = forward_file_apply(&o->file, f->port, f->tables, err);

	if (rc == 0)
		rc = ro_discovery_create(f->tables, f->router, &o->discovery, err);
	if (rc == 0)
		rc = forward_file_neighbours(&o->file, o->discovery, err);
	if (rc < 0)
		return ho_err_prefix(err, "%s", f->file);
	forward_file_announce(&o->file, f->router);
	return 0;
}

static void poll(struct forward *f, uint64_t now_ns)
{
	struct own *o = f->state;

	ro_tables_poll(f->tables, now_ns);
	ro_discovery_poll(o->discovery, now_ns);
}

static void teardown(struct forward *f)
{
	struct own *o = f->state;

	if (!o)
		return;
	ro_discovery_destroy(o->discovery);
	forward_file_free(&o->file);
	free(o);
	f->state = NULL;
}

static void stats_json(struct forward *f, json_t *object)
{
	struct own *o = f->state;
	struct ro_discovery_stats s;
	json_t *n = json_object();

	ro_discovery_stats(o->discovery, &s);
	json_object_set_new(n, "resolved", json_integer((json_int_t)s.resolved));
	json_object_set_new(n, "failed", json_integer((json_int_t)s.failed));
	json_object_set_new(n, "changed", json_integer((json_int_t)s.changed));
	json_object_set_new(n, "requests", json_integer((json_int_t)s.probes));
	json_object_set_new(n, "conflicts", json_integer((json_int_t)s.conflicts));
	json_object_set_new(object, "neighbours", n);
}

static const struct forward_control own_control = {
	.own_stack = true,
	.setup = setup,
	.poll = poll,
	.teardown = teardown,
	.json = stats_json,
};

int forward_own_open(struct forward *f, struct ho_err *err)
{
	struct own *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return ho_err_set(err, -ENOMEM, "out of memory");
	f->state = o;
	f->control = &own_control;
	rc = forward_file_load(f->file, &o->file, err);
	if (rc < 0)
		return rc;
	f->icmp_rate = o->file.icmp_rate;
	f->icmp_burst = o->file.icmp_burst;
	if (f->port_args > o->file.ports)
		return ho_err_set(err, -EINVAL, "%s: %u ports are named in it, %u are given",
				  f->file, o->file.ports, f->port_args);
	for (unsigned i = 0; rc == 0 && i < o->file.ports; i++) {
		const struct forward_port *p = &o->file.port[i];

		if (i < f->port_args)
			rc = forward_open(f, f->port_arg[i], NULL, NULL, err);
		else if (p->open || p->receive || p->send)
			rc = forward_open(f, p->open, p->receive, p->send, err);
		else
			rc = ho_err_set(err, -EINVAL,
					"%s: port '%s' has no 'open' and is not given on the "
					"command line",
					f->file, p->name);
	}
	return rc;
}
