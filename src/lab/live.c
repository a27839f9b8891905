// SPDX-License-Identifier: BSD-2-Clause
#include "lab/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/i82599.h"
#include "lab/stage.h"

#define DRAIN_LOOK_NS 20000u

struct lab_live {
	struct lab_scenario *scenario;
	struct lab_stage stage;
	struct lab_stage_take take;
	struct lab_stage_chip *tx, *rx; /* the caller's; NULL = none */
	struct mac_txseat *seat[LAB_STAGE_QUEUES];
	struct pk_cache *cache[LAB_STAGE_QUEUES];
	bool stopped;
};

/* --- which ports ---------------------------------------------------------------------------- */

static bool same_end(const struct lab_wire_end *a, const struct lab_wire_end *b)
{
	return a->host == b->host && a->chip == b->chip;
}

/* The first workload that sends, or receives. */
static bool first_of(const struct lab_scenario *s, bool sends, struct lab_wire_end *out)
{
	for (unsigned h = 0; h < s->hosts_count; h++) {
		for (unsigned w = 0; w < s->hosts[h].workloads_count; w++) {
			const struct lab_workload_spec *work = &s->hosts[h].workloads[w];

			if ((work->kind != LAB_WORK_RECV) != sends)
				continue;
			*out = (struct lab_wire_end){ h, work->chip_index };
			return true;
		}
	}
	return false;
}

static bool peer_of(const struct lab_scenario *s, const struct lab_wire_end *end,
		    struct lab_wire_end *out)
{
	for (unsigned w = 0; w < s->wires_count; w++) {
		for (unsigned e = 0; !s->wires[w].sink && e < 2; e++) {
			if (!same_end(&s->wires[w].end[e], end))
				continue;
			*out = s->wires[w].end[!e];
			return true;
		}
	}
	return false;
}

static int named(const struct lab_scenario *s, const char *name, struct lab_wire_end *out,
		 struct ho_err *err)
{
	for (unsigned h = 0; h < s->hosts_count; h++) {
		size_t n = strlen(s->hosts[h].name);

		if (strncmp(name, s->hosts[h].name, n) || name[n] != '.')
			continue;
		for (unsigned c = 0; c < s->hosts[h].chips_count; c++) {
			if (strcmp(name + n + 1, s->hosts[h].chips[c].name))
				continue;
			*out = (struct lab_wire_end){ h, c };
			return 0;
		}
	}
	return ho_err_set(err, -EINVAL, "port=%s: %s has no such HOST.CHIP", name, s->name);
}

static int choose_ports(struct lab_live *live, bool sends, const char *port, struct ho_err *err)
{
	const struct lab_scenario *s = live->scenario;
	struct lab_stage_take *take = &live->take;
	struct lab_wire_end sender;
	int rc = 0;

	if (sends) {
		rc = port ? named(s, port, &take->tx_end, err) : 0;
		take->tx = port || first_of(s, true, &take->tx_end);
		take->rx = take->tx && peer_of(s, &take->tx_end, &take->rx_end);
	} else {
		rc = port ? named(s, port, &take->rx_end, err) : 0;
		take->rx = port || first_of(s, false, &take->rx_end) ||
			   (first_of(s, true, &sender) && peer_of(s, &sender, &take->rx_end));
	}
	if (rc < 0)
		return rc;
	if (sends ? !take->tx : !take->rx)
		return ho_err_set(err, -EINVAL,
				  "%s says of no port that it %s; port=HOST.CHIP names one",
				  s->name, sends ? "sends" : "receives");
	return 0;
}

/* --- settings ------------------------------------------------------------------------------- */

/* Cuts "NAME,KEY=VALUE,..." up; `text` is changed. */
static int load(struct lab_live *live, char *text, const char **port, struct ho_err *err)
{
	char *rest = text, *name = strsep(&rest, ","), *option;
	int rc = lab_scenario_load(name, &live->scenario, err);

	while (rc == 0 && (option = strsep(&rest, ",")) != NULL) {
		char *value = strchr(option, '=');

		if (!value)
			return ho_err_set(err, -EINVAL,
					  "lab:%s: '%s' is not KEY=VALUE; 'holdoff lab show %s' "
					  "lists the axes",
					  name, option, name);
		*value++ = 0;
		if (!strcmp(option, "port"))
			*port = value;
		else if (!strcmp(option, "series"))
			rc = lab_scenario_set_series(live->scenario, value, err);
		else
			rc = lab_scenario_set(live->scenario, option, value, err);
	}
	return rc;
}

static int set_chip(struct lab_live *live, const struct lab_wire_end *end, const char *key,
		    unsigned value, struct ho_err *err)
{
	const struct lab_host_spec *host = &live->scenario->hosts[end->host];
	char path[256], text[16];

	if (!value)
		return 0;
	snprintf(path, sizeof(path), "hosts.%s.chips.%s.%s", host->name,
		 host->chips[end->chip].name, key);
	snprintf(text, sizeof(text), "%u", value);
	return lab_scenario_set(live->scenario, path, text, err);
}

static int set_chips(struct lab_live *live, const struct lab_live_config *config,
		     struct ho_err *err)
{
	const struct lab_stage_take *take = &live->take;
	int rc = 0;

	if (take->tx)
		rc = set_chip(live, &take->tx_end, "queues", config->queues, err);
	if (rc == 0 && take->tx)
		rc = set_chip(live, &take->tx_end, "tx", config->tx_ring, err);
	if (rc == 0 && take->rx)
		rc = set_chip(live, &take->rx_end, "queues", config->queues, err);
	if (rc == 0 && take->rx)
		rc = set_chip(live, &take->rx_end, "rx", config->rx_ring, err);
	return rc;
}

/* --- building ------------------------------------------------------------------------------- */

static struct lab_stage_chip *chip_at(struct lab_live *live, const struct lab_wire_end *end)
{
	for (unsigned i = 0; i < live->stage.n_chips; i++) {
		struct lab_stage_chip *c = &live->stage.chip[i];

		if (c->host->index == end->host && c->index == end->chip)
			return c;
	}
	return NULL;
}

static int make_seats(struct lab_live *live, struct ho_err *err)
{
	for (unsigned q = 0; live->tx && q < live->tx->queues; q++) {
		int rc = pk_cache_create(live->tx->host->arena, &live->cache[q], err);

		if (rc < 0)
			return rc;
		live->seat[q] = mac_txshare_seat(&live->tx->share[q], !live->tx->rx[q]);
	}
	return 0;
}

int lab_live_open(const struct lab_live_config *config, struct lab_live **out, struct ho_err *err)
{
	struct lab_live *live = calloc(1, sizeof(*live));
	char *text = strdup(config->target);
	const char *port = NULL;
	int rc = 0;

	if (!live || !text)
		rc = ho_err_set(err, -ENOMEM, "out of memory for a scenario");
	if (rc == 0)
		rc = load(live, text, &port, err);
	if (rc == 0)
		rc = choose_ports(live, config->sends, port, err);
	if (rc == 0)
		rc = set_chips(live, config, err);
	free(text);
	if (rc == 0) {
		live->take.spare_buffers = (uint32_t)config->buffers;
		rc = lab_stage_build(&live->stage, live->scenario, &live->take, NULL, err);
	}
	if (rc == 0) {
		live->tx = live->take.tx ? chip_at(live, &live->take.tx_end) : NULL;
		live->rx = live->take.rx ? chip_at(live, &live->take.rx_end) : NULL;
		rc = make_seats(live, err);
	}
	if (rc < 0) {
		lab_live_free(live);
		return rc;
	}
	*out = live;
	return 0;
}

struct port *lab_live_tx(struct lab_live *live)
{
	return live->tx ? live->tx->port : NULL;
}

struct port *lab_live_rx(struct lab_live *live)
{
	return live->rx ? live->rx->port : NULL;
}

struct port_txq *lab_live_txq(struct lab_live *live, unsigned i)
{
	return &live->seat[i]->q;
}

struct pk_cache *lab_live_tx_cache(struct lab_live *live, unsigned i)
{
	return live->cache[i];
}

int lab_live_cpu(const struct lab_live *live, const struct port *port, unsigned i)
{
	const struct lab_stage_chip *c = live->tx && live->tx->port == port ? live->tx : live->rx;
	const struct lab_host_spec *host = c->host->spec;
	bool sends = c == live->tx;
	unsigned first = 0;
	bool found = false;

	for (unsigned w = 0; w < host->workloads_count; w++) {
		const struct lab_workload_spec *work = &host->workloads[w];

		if (work->chip_index != c->index || (work->kind != LAB_WORK_RECV) != sends)
			continue;
		if (work->queue == i)
			return (int)work->cpu;
		first = found ? first : work->cpu;
		found = true;
	}
	return (int)((first + i) % host->profile->machine.cpus);
}

uint64_t lab_live_duration_ns(const struct lab_live *live)
{
	return live->scenario->duration / SIM_PS_PER_NS;
}

const char *lab_live_name(const struct lab_live *live)
{
	return live->scenario->name;
}

/* --- ending --------------------------------------------------------------------------------- */

void lab_live_interrupt(struct lab_live *live)
{
	for (unsigned h = 0; h < live->stage.n_hosts; h++)
		rt_stop(live->stage.host[h].rt);
}

int lab_live_drain(struct lab_live *live, uint64_t timeout_ns)
{
	struct port *port = lab_live_tx(live);
	uint64_t deadline = rt_now_ns(port->rt) + timeout_ns;

	for (;;) {
		uint64_t in_flight = 0, now = rt_now_ns(port->rt);

		for (unsigned q = 0; q < port->n_txq; q++) {
			port_reap(&live->seat[q]->q);
			in_flight += port_tx_in_flight(port->txq[q]);
		}
		if (!in_flight)
			return 0;
		if (now >= deadline || rt_sleep_until(port->rt, now + DRAIN_LOOK_NS) < 0)
			return -ETIMEDOUT;
	}
}

void lab_live_quiesce(struct lab_live *live)
{
	lab_stage_quiesce(&live->stage);
}

void lab_live_stop(struct lab_live *live)
{
	if (!live->stopped)
		lab_stage_stop(&live->stage);
	live->stopped = true;
}

void lab_live_losses(struct lab_live *live, uint64_t *drops)
{
	if (live->tx)
		lab_stage_tx_losses(live->tx, drops);
	if (live->rx)
		lab_stage_rx_losses(live->rx, drops);
}

int lab_live_check(struct lab_live *live, struct ho_err *err)
{
	int rc = lab_stage_check_cpus(&live->stage, err);

	return rc < 0 ? rc : lab_stage_check(&live->stage, err);
}

uint64_t lab_live_digest(const struct lab_live *live)
{
	return sim_digest(live->stage.sim);
}

uint32_t lab_live_buffers_missing(const struct lab_live *live)
{
	uint32_t missing = 0;

	for (unsigned h = 0; h < live->stage.n_hosts; h++)
		missing += pk_arena_missing(live->stage.host[h].arena);
	return missing;
}

void lab_live_free(struct lab_live *live)
{
	if (!live)
		return;
	/* While their arenas are there. */
	for (unsigned q = 0; q < LAB_STAGE_QUEUES; q++)
		pk_cache_destroy(live->cache[q]);
	lab_stage_free(&live->stage);
	lab_scenario_free(live->scenario);
	free(live);
}
