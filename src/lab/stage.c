// SPDX-License-Identifier: BSD-2-Clause
/* Building a scenario's hosts, chips, drivers and wires, and taking them down. */
#include "lab/stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/i82599.h"
#include "nic/ixgbe.h"

#define SPARE_BUFFERS 4096        /* of a host, beside what its rings hold */
#define LINK_WAIT_NS  10000000ull /* until a link must be up */
#define LINK_STEP_NS  20000ull
#define DRAIN_NS      100000ull /* a look at what is still in flight */
#define DRAIN_LOOKS   2000      /* without a change: nothing moves any more */

static const char *const chip_params[] = {
	"tx",
	"rx",
	"rx-usecs",
	"mtu",
	"bql",
	"weight",
	"tx-limit",
	"defer-hard-irqs",
	"gro-flush-timeout",
	"moderation",
	"watchdog",
	"buffer-bytes",
	"fault-lost-irq-ppm",
	"fault-late-ppm",
	"fault-late-for",
	"fault-flap-at",
	"fault-flap-for",
	"fault-flap-every",
	"fault-hang-at",
	NULL,
};

static int check_params(const struct lab_params *params, const char *const *known,
			struct ho_err *err)
{
	for (unsigned i = 0; i < params->n; i++) {
		unsigned k = 0;

		while (known[k] && strcmp(known[k], params->param[i].name))
			k++;
		if (known[k])
			continue;
		return ho_err_set(err, -EINVAL, "%s: a chip has no such parameter",
				  params->param[i].name);
	}
	return 0;
}

int lab_stage_param(const struct lab_params *params, const char *name, uint64_t otherwise,
		    uint32_t *out, struct ho_err *err)
{
	const struct lab_param *p = lab_params_get(params, name);

	*out = (uint32_t)otherwise;
	if (!p)
		return 0;
	if (!p->numeric || p->value > UINT32_MAX)
		return ho_err_set(err, -EINVAL, "%s: '%s' is not a number that is possible", name,
				  p->text);
	*out = (uint32_t)p->value;
	return 0;
}

int lab_stage_time(const struct lab_params *params, const char *name, uint64_t *ns,
		   struct ho_err *err)
{
	const struct lab_param *p = lab_params_get(params, name);

	*ns = 0;
	if (p && ho_parse_time_ns(p->text, ns, err) < 0)
		return ho_err_prefix(err, "%s", name);
	if (*ns > SIM_NEVER / SIM_PS_PER_NS / 4)
		return ho_err_set(err, -EINVAL, "%s: %s: longer than virtual time lasts (53 days)",
				  name, p->text);
	return 0;
}

/* A message about a parameter begins with its name: says where that is, else where the chip is. */
static int blame_chip(const struct lab_stage *stage, unsigned host, unsigned chip,
		      struct ho_err *err)
{
	const struct lab_params *params = &stage->scenario->hosts[host].chips[chip].params;
	size_t n = strcspn(err->text, ": ");

	for (unsigned i = 0; i < params->n; i++) {
		const char *name = params->param[i].name;

		if (strlen(name) == n && !strncmp(name, err->text, n))
			return lab_scenario_blame(stage->scenario, err,
						  "hosts/%u/chips/%u/params/%s", host, chip, name);
	}
	return lab_scenario_blame(stage->scenario, err, "hosts/%u/chips/%u", host, chip);
}

static void sink_consume(void *arg, struct pk_cache *cache, struct pk_slot *slots, unsigned n)
{
	struct lab_stage_sink *sink = arg;
	unsigned frames = 0;

	for (unsigned i = 0; i < n; i++) {
		sink->bytes += slots[i].len;
		frames += !(slots[i].flags & PK_MORE);
	}
	sink->frames += frames;
	if (sink->socket) {
		lab_socket_deliver(sink->socket, cache, slots, n);
		return;
	}
	rt_spend(sink->rt, RT_COST_RECV_FRAME, frames);
	pk_free_slots(cache, slots, n);
}

static int build_host(struct lab_stage *stage, unsigned index, struct ho_err *err)
{
	const struct lab_host_spec *spec = &stage->scenario->hosts[index];
	struct lab_stage_host *h = &stage->host[index];
	struct pk_arena_config arena = { .sparse = true };
	uint32_t rx, tx, bytes, longest = 0;
	int rc;

	h->spec = spec;
	h->index = index;
	stage->n_hosts++;
	arena.buffers = stage->take.spare_buffers ? stage->take.spare_buffers : SPARE_BUFFERS;
	for (unsigned c = 0; c < spec->chips_count; c++) {
		const struct lab_chip_spec *chip = &spec->chips[c];

		if (lab_stage_param(&chip->params, "rx", 512, &rx, err) < 0 ||
		    lab_stage_param(&chip->params, "tx", 512, &tx, err) < 0 ||
		    lab_stage_param(&chip->params, "buffer-bytes", 0, &bytes, err) < 0)
			return blame_chip(stage, index, c, err);
		longest = HO_MAX(longest, bytes);
		arena.buffers += (chip->queues ? chip->queues : 1) * (rx + tx);
	}
	if (longest > 65000)
		return ho_err_set(err, -EINVAL, "buffer-bytes %u: at most 65000", longest);
	if (longest) {
		/* An odd multiple of a cache line. */
		arena.stride_bytes = HO_ALIGN_UP(longest + PK_HEADROOM_BYTES, HO_CACHE_LINE);
		arena.stride_bytes |= HO_CACHE_LINE;
	}
	rc = lab_exec_create(stage->sim, spec->name, &spec->profile->machine, stage->trace, &h->rt,
			     err);
	if (rc < 0)
		return rc;
	h->memory_bytes = pk_arena_bytes(&arena);
	h->memory = lab_store_take(stage->store, LAB_STORE_BUFFERS, &h->memory_bytes);
	if (!h->memory)
		return ho_err_set(err, -ENOMEM, "%s: no memory for %u packet buffers", spec->name,
				  arena.buffers);
	arena.memory = h->memory;
	return pk_arena_create(&arena, &h->arena, err);
}

static bool is_end(const struct lab_wire_end *end, bool taken, const struct lab_stage_chip *c)
{
	return taken && end->host == c->host->index && end->chip == c->index;
}

static int build_rx_mode(struct lab_stage *stage, struct lab_stage_chip *c, unsigned queue,
			 struct ho_err *err)
{
	const struct lab_chip_spec *spec = c->spec;
	const struct lab_param *moderation = lab_params_get(&spec->params, "moderation");
	uint32_t weight, tx_limit, defer, flush;
	struct mac_rx_config config = {
		.mode = lab_rx_mode_name(spec->rx_mode),
		.port = c->port,
		.queue = queue,
		.cpu = (int)spec->irq_cpus[queue % spec->irq_cpus_count],
		.moderation = moderation ? moderation->text : NULL,
		.spacing_ns = c->rx_usecs * 1000,
		.consume = sink_consume,
		.arg = &c->sink[queue],
	};

	c->sink[queue].rt = c->host->rt;
	if (lab_stage_param(&spec->params, "weight", 0, &weight, err) < 0 ||
	    lab_stage_param(&spec->params, "tx-limit", 0, &tx_limit, err) < 0 ||
	    lab_stage_param(&spec->params, "defer-hard-irqs", 0, &defer, err) < 0 ||
	    lab_stage_param(&spec->params, "gro-flush-timeout", 0, &flush, err) < 0)
		return -EINVAL;
	config.weight = (int)weight;
	config.tx_limit = tx_limit;
	config.defer_hard_irqs = defer;
	config.gro_flush_timeout_ns = flush;
	config.bql = &c->bql[queue];
	if (is_end(&stage->take.rx_end, stage->take.rx, c) ||
	    lab_work_receives(stage->scenario, c->host->index, c->index, queue)) {
		/* The receiver polls or arms the queue itself; who sends there cleans. */
		int rc = pk_cache_create(c->host->arena, &c->receiver_cache[queue], err);

		if (rc == 0)
			rc = pk_cache_create(c->host->arena, &c->clean_cache[queue], err);
		if (rc == 0) {
			port_bind_rx(c->port, queue, c->receiver_cache[queue]);
			port_bind_tx(c->port, queue, c->clean_cache[queue]);
		}
		return rc;
	}
	if (c->socket)
		c->sink[queue].socket = c->socket;
	return mac_rx_open(&config, &c->rx[queue], err);
}

static int check_ppm(const char *name, uint32_t ppm, struct ho_err *err)
{
	if (ppm <= 1000000)
		return 0;
	return ho_err_set(err, -EINVAL, "%s: %u: parts of a million, so at most 1000000", name,
			  ppm);
}

static int read_faults(struct lab_stage *stage, struct lab_stage_chip *c, struct ho_err *err)
{
	const struct lab_params *params = &c->spec->params;
	struct lab_fault_config *f = &c->fault_config;
	uint64_t late, flap_at, flap_for, flap_every, hang_at;

	if (lab_stage_param(params, "fault-lost-irq-ppm", 0, &f->lose_irq_ppm, err) < 0 ||
	    lab_stage_param(params, "fault-late-ppm", 0, &f->late_ppm, err) < 0 ||
	    lab_stage_time(params, "fault-late-for", &late, err) < 0 ||
	    lab_stage_time(params, "fault-flap-at", &flap_at, err) < 0 ||
	    lab_stage_time(params, "fault-flap-for", &flap_for, err) < 0 ||
	    lab_stage_time(params, "fault-flap-every", &flap_every, err) < 0 ||
	    lab_stage_time(params, "fault-hang-at", &hang_at, err) < 0)
		return -EINVAL;
	if (check_ppm("fault-lost-irq-ppm", f->lose_irq_ppm, err) < 0 ||
	    check_ppm("fault-late-ppm", f->late_ppm, err) < 0)
		return -EINVAL;
	if ((f->late_ppm != 0) != (late != 0))
		return ho_err_set(err, -EINVAL,
				  "fault-late-ppm and fault-late-for need each other");
	if (flap_every && !flap_at)
		return ho_err_set(err, -EINVAL, "fault-flap-every: needs fault-flap-at");
	if ((flap_at != 0) != (flap_for != 0))
		return ho_err_set(err, -EINVAL, "fault-flap-at and fault-flap-for need each other");
	if (flap_at && !c->wire)
		return ho_err_set(err, -EINVAL, "fault-flap-at: there is no wire that could fail");
	f->seed = stage->scenario->seed + stage->n_chips;
	f->late_ps = late * SIM_PS_PER_NS;
	f->flap_at = flap_at * SIM_PS_PER_NS;
	f->flap_for = flap_for * SIM_PS_PER_NS;
	f->flap_every = flap_every * SIM_PS_PER_NS;
	f->hang_at = hang_at * SIM_PS_PER_NS;
	c->faulty = f->lose_irq_ppm || f->late_ppm || f->flap_at || f->hang_at;
	return 0;
}

/* Times of faults count from the moment at which the workloads start. */
static void start_faults(struct lab_stage *stage)
{
	for (unsigned i = 0; i < stage->n_chips; i++) {
		struct lab_stage_chip *c = &stage->chip[i];
		sim_ps now = sim_now(stage->sim);

		if (!c->faulty)
			continue;
		if (c->fault_config.flap_at)
			c->fault_config.flap_at += now;
		if (c->fault_config.hang_at)
			c->fault_config.hang_at += now;
		lab_fault_start(&c->fault, &c->fault_config, c->chip);
	}
}

static void init_shares(struct lab_stage_chip *c)
{
	const struct lab_param *bql = lab_params_get(&c->spec->params, "bql");

	for (unsigned q = 0; q < c->queues; q++) {
		mac_bql_init(&c->bql[q], c->port->txq[q], bql && bql->value);
		mac_txshare_init(&c->share[q], &c->bql[q]);
	}
}

/* Before the rx-modes, which deliver into it. */
static int build_socket(struct lab_stage *stage, struct lab_stage_chip *c, struct ho_err *err)
{
	const struct lab_workload_spec *spec =
		lab_work_of_socket(stage->scenario, c->host->index, c->index);

	if (!spec || lab_work_taken(&stage->take, c->host->index, spec))
		return 0;
	if (spec->queue >= c->queues)
		return ho_err_set(err, -EINVAL, "queue %u of %s, which has %u", spec->queue,
				  c->spec->name, c->queues);
	return lab_work_socket(c, spec, &c->socket, err);
}

static int open_driver(struct lab_stage *stage, struct lab_stage_chip *c, const char *name,
		       struct ho_err *err)
{
	const struct lab_chip_spec *spec = c->spec;
	struct port_config config = { .rt = c->host->rt, .arena = c->host->arena };
	struct nic_ixgbe_config nc = { .name = name, .promiscuous = true, .watchdog_cpu = -1 };
	int rc;

	if (lab_stage_param(&spec->params, "rx", 512, &c->rx_ring, err) < 0 ||
	    lab_stage_param(&spec->params, "tx", 512, &c->tx_ring, err) < 0 ||
	    lab_stage_param(&spec->params, "rx-usecs", 1, &c->rx_usecs, err) < 0 ||
	    lab_stage_param(&spec->params, "mtu", 1500, &nc.mtu, err) < 0 ||
	    lab_stage_time(&spec->params, "watchdog", &nc.watchdog_ns, err) < 0 ||
	    read_faults(stage, c, err) < 0)
		return -EINVAL;
	config.queues = c->queues = spec->queues ? spec->queues : 1;
	config.rx_ring = c->rx_ring;
	config.tx_ring = c->tx_ring;
	nc.rx_usecs = c->rx_usecs;
	nc.watchdog_cpu = (int)(c->host->spec->profile->machine.cpus - 1);
	if (c->queues > LAB_STAGE_QUEUES)
		return ho_err_set(err, -EINVAL, "%u queues: at most %u", c->queues,
				  LAB_STAGE_QUEUES);
	rc = nic_ixgbe_open(c->bus, &config, &nc, &c->port, err);
	if (rc < 0)
		return rc;
	init_shares(c);
	rc = build_socket(stage, c, err);
	for (unsigned q = 0; rc == 0 && q < c->queues; q++)
		rc = build_rx_mode(stage, c, q, err);
	return rc;
}

static int build_chip(struct lab_stage *stage, unsigned host, unsigned index, struct ho_err *err)
{
	struct lab_stage_host *h = &stage->host[host];
	const struct lab_chip_spec *spec = &h->spec->chips[index];
	struct lab_stage_chip *c = &stage->chip[stage->n_chips];
	struct lab_i82599_config config = { .name = spec->name,
					    .mac = { 2, 0, 0, 0, (uint8_t)host, (uint8_t)index } };
	struct lab_pci_config pci = h->spec->profile->pci;
	int rc;

	if (stage->n_chips == LAB_RUN_CHIPS)
		return ho_err_set(err, -EINVAL, "more than %u chips", LAB_RUN_CHIPS);
	stage->n_chips++;
	c->spec = spec;
	c->host = h;
	c->index = index;
	rc = check_params(&spec->params, chip_params, err);
	if (rc < 0)
		return rc;
	if (strcmp(spec->model, "82599"))
		return ho_err_set(err, -EINVAL, "there is no model of '%s'; 82599 is one",
				  spec->model);
	pci.host = lab_exec_host(h->rt);
	rc = lab_pci_create(stage->sim, &pci, &c->pci, err);
	if (rc < 0)
		return rc;
	rc = lab_i82599_create(stage->sim, c->pci, &config, &c->chip, err);
	if (rc < 0)
		return rc;
	lab_chip_set_trace(c->chip, stage->trace);
	for (unsigned w = 0; w < stage->n_wires; w++) {
		const struct lab_wire_spec *wire = &stage->scenario->wires[w];

		for (unsigned e = 0; e < (wire->sink ? 1u : 2u); e++) {
			if (wire->end[e].host == host && wire->end[e].chip == index) {
				c->wire = stage->wire[w];
				c->end = e;
				lab_chip_attach(c->chip, c->wire, e);
			}
		}
	}
	rc = lab_bus_create(h->rt, c->chip, &c->bus, err);
	if (rc < 0)
		return rc;
	return open_driver(stage, c, spec->name, err);
}

static int build_wire(struct lab_stage *stage, unsigned index, struct ho_err *err)
{
	const struct lab_wire_spec *spec = &stage->scenario->wires[index];
	struct lab_wire_config config = { .bps = spec->bits_per_s,
					  .propagation = spec->propagation };
	/* A sink only counts: many frames at once are as good. */
	struct lab_wire_user sink = { .slack = 100 * SIM_PS_PER_US };
	int rc = lab_wire_create(stage->sim, &config, &stage->wire[index], err);

	if (rc < 0)
		return rc;
	stage->n_wires++;
	if (spec->sink)
		lab_wire_attach(stage->wire[index], 1, &sink);
	return 0;
}

/* Lets the clock of all hosts run for so long, from outside. */
static void pass(struct lab_stage *stage, uint64_t ns)
{
	sim_run_until(stage->sim, sim_now(stage->sim) + ns * SIM_PS_PER_NS);
}

static int start_ports(struct lab_stage *stage, struct ho_err *err)
{
	int rc;

	for (unsigned i = 0; i < stage->n_chips; i++) {
		struct lab_stage_chip *c = &stage->chip[i];

		rc = port_start(c->port, err);
		for (unsigned q = 0; rc == 0 && q < c->queues; q++)
			rc = c->rx[q] ? mac_rx_start(c->rx[q], err) : 0;
		if (rc < 0)
			return rc;
	}
	for (uint64_t ns = 0; ns < LINK_WAIT_NS; ns += LINK_STEP_NS) {
		unsigned up = 0;

		for (unsigned i = 0; i < stage->n_chips; i++)
			up += !stage->chip[i].wire ||
			      stage->chip[i].port->ops->link_up(stage->chip[i].port);
		if (up == stage->n_chips)
			return 0;
		pass(stage, LINK_STEP_NS);
	}
	return ho_err_set(err, -EPROTO, "a link did not come up within %llu ms",
			  LINK_WAIT_NS / 1000000);
}

int lab_stage_build(struct lab_stage *stage, const struct lab_scenario *scenario,
		    const struct lab_stage_take *take, struct lab_trace *trace, struct ho_err *err)
{
	struct lab_store *store = stage->store;
	int rc;

	memset(stage, 0, sizeof(*stage));
	stage->store = store;
	stage->scenario = scenario;
	stage->trace = trace;
	if (take)
		stage->take = *take;
	if (scenario->hosts_count > LAB_RUN_HOSTS || scenario->wires_count > LAB_RUN_CHIPS)
		return ho_err_set(err, -EINVAL, "%s: more than %u hosts or %u wires",
				  scenario->name, LAB_RUN_HOSTS, LAB_RUN_CHIPS);
	rc = sim_create(&stage->sim);
	if (rc < 0)
		return ho_err_set(err, rc, "out of memory for the event queue");
	stage->sim->store = store;
	for (unsigned w = 0; rc == 0 && w < scenario->wires_count; w++)
		rc = build_wire(stage, w, err);
	/* All hosts before the first chip, whose reset takes time: clocks that began at different
	 * moments would disagree, and delays from host to host be wrong by that. */
	for (unsigned h = 0; rc == 0 && h < scenario->hosts_count; h++)
		rc = build_host(stage, h, err);
	for (unsigned h = 0; rc == 0 && h < scenario->hosts_count; h++) {
		for (unsigned c = 0; rc == 0 && c < scenario->hosts[h].chips_count; c++) {
			rc = build_chip(stage, h, c, err);
			if (rc < 0)
				blame_chip(stage, h, c, err);
		}
	}
	for (unsigned h = 0; rc == 0 && h < scenario->hosts_count; h++) {
		for (unsigned w = 0; rc == 0 && w < scenario->hosts[h].workloads_count; w++) {
			struct lab_stage_work *work = &stage->work[stage->n_work];

			if (lab_work_taken(&stage->take, h, &scenario->hosts[h].workloads[w]))
				continue;
			if (stage->n_work == LAB_RUN_WORKLOADS)
				return ho_err_set(err, -EINVAL, "%s: more than %u workloads",
						  scenario->name, LAB_RUN_WORKLOADS);
			stage->n_work++;
			work->spec = &scenario->hosts[h].workloads[w];
			work->host = &stage->host[h];
			rc = lab_work_create(stage, work, err);
			if (rc < 0)
				lab_scenario_blame(scenario, err, "hosts/%u/workloads/%u", h, w);
		}
	}
	if (rc == 0)
		rc = start_ports(stage, err);
	for (unsigned w = 0; rc == 0 && w < stage->n_work; w++)
		rc = lab_work_start(&stage->work[w], err);
	if (rc == 0)
		start_faults(stage);
	return rc;
}

static uint64_t in_flight_of(const struct lab_stage_chip *c)
{
	uint64_t n = 0;

	for (unsigned q = 0; q < c->queues; q++)
		n += port_tx_in_flight(c->port->txq[q]);
	return n;
}

static uint64_t received(const struct lab_stage_chip *c)
{
	uint64_t n = 0;

	for (unsigned q = 0; q < c->queues; q++)
		n += ho_ctr_read(&c->port->rxq[q]->ctr.packets);
	return n;
}

static void watch(void *arg)
{
	struct lab_stage *stage = arg;
	sim_ps now = sim_now(stage->sim);

	for (unsigned i = 0; i < stage->n_chips; i++) {
		struct lab_stage_chip *c = &stage->chip[i];
		uint64_t done = received(c);

		for (unsigned q = 0; q < c->queues; q++)
			done += ho_ctr_read(&c->port->txq[q]->ctr.packets);
		if (done != c->seen_done || !in_flight_of(c)) {
			c->seen_done = done;
			c->seen_at = now;
		}
		c->longest_stall = HO_MAX(c->longest_stall, now - c->seen_at);
	}
	sim_schedule(stage->sim, &stage->watch, now + LAB_STAGE_WATCH);
}

void lab_stage_watch(struct lab_stage *stage)
{
	sim_event_init(&stage->watch, watch, stage);
	for (unsigned i = 0; i < stage->n_chips; i++)
		stage->chip[i].seen_at = sim_now(stage->sim);
	sim_schedule(stage->sim, &stage->watch, sim_now(stage->sim) + LAB_STAGE_WATCH);
}

static uint64_t in_flight(const struct lab_stage *stage)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < stage->n_chips; i++)
		n += in_flight_of(&stage->chip[i]);
	for (unsigned w = 0; w < stage->n_wires; w++) {
		for (unsigned e = 0; e < 2; e++) {
			struct lab_wire_stats s;

			lab_wire_stats(stage->wire[w], e, &s);
			n += s.frames - s.delivered - s.lost_link_down;
		}
	}
	return n;
}

/* Frames that a chip has from its wire, and no user has yet. */
static uint64_t not_taken(const struct lab_stage *stage)
{
	uint64_t left = 0;

	for (unsigned i = 0; i < stage->n_chips; i++) {
		const struct lab_stage_chip *c = &stage->chip[i];
		struct lab_i82599_counters n;

		lab_i82599_counters(c->chip, &n);
		left += n.rx_frames - n.rx_off - n.rx_error - n.rx_filtered - n.rx_missed -
			n.rx_no_descriptor - n.rx_queue_off - n.rx_lost - received(c);
		for (unsigned q = 0; q < c->queues; q++)
			left -= port_drops_sum(c->port->rxq[q]->ctr.drops);
	}
	return left;
}

static bool all_finished(const struct lab_stage *stage)
{
	for (unsigned w = 0; w < stage->n_work; w++)
		if (!lab_work_finished(&stage->work[w]))
			return false;
	return true;
}

void lab_stage_tx_losses(const struct lab_stage_chip *c, uint64_t *drops)
{
	struct lab_i82599_counters n;
	struct lab_wire_stats s;
	uint64_t sent = 0;

	if (!c->wire)
		return;
	lab_wire_stats(c->wire, c->end, &s);
	drops[PORT_DROP_TX_LINK_DOWN] += s.lost_link_down;
	for (unsigned q = 0; q < c->queues; q++)
		sent += ho_ctr_read(&c->port->txq[q]->ctr.packets);
	lab_i82599_counters(c->chip, &n);
	if (n.tx_frames > sent)
		drops[PORT_DROP_TX_RESET] -= HO_MIN(n.tx_frames - sent, drops[PORT_DROP_TX_RESET]);
}

void lab_stage_rx_losses(const struct lab_stage_chip *c, uint64_t *drops)
{
	struct lab_i82599_counters n;

	lab_i82599_counters(c->chip, &n);
	drops[PORT_DROP_RX_LINK] += n.rx_off + n.rx_queue_off;
	drops[PORT_DROP_RX_RESET] += n.rx_lost;
}

void lab_stage_quiesce(struct lab_stage *stage)
{
	uint64_t left = 0;

	/* Senders first; then what they sent must arrive before anybody stops to receive. All are
	 * asked before one is waited for: the interrupts of one's frames may be what keeps another
	 * one from its CPU. */
	for (unsigned w = 0; w < stage->n_work; w++) {
		if (stage->work[w].spec->kind != LAB_WORK_RR &&
		    stage->work[w].spec->kind != LAB_WORK_RECV)
			lab_work_ask(&stage->work[w]);
	}
	for (unsigned w = 0; w < stage->n_work; w++) {
		if (stage->work[w].spec->kind == LAB_WORK_RR)
			lab_work_finish(&stage->work[w]);
		else if (stage->work[w].spec->kind != LAB_WORK_RECV)
			lab_work_stop(&stage->work[w]);
	}
	/* A slow machine may need longer for four rings of 4096 frames than any time that one would
	 * choose beforehand: what counts is whether there are fewer. */
	for (unsigned i = 0, still = 0; still < DRAIN_LOOKS; i++) {
		uint64_t now_left = in_flight(stage) + not_taken(stage);

		for (unsigned w = 0; w < stage->n_work; w++)
			lab_work_reap(&stage->work[w]);
		if (i && !now_left && all_finished(stage))
			break;
		still = i && now_left >= left ? still + 1 : 0;
		left = i ? HO_MIN(left, now_left) : now_left;
		pass(stage, DRAIN_NS);
	}
}

/* What works and what serves queues; those that have stopped already stay so. */
static void stop_tasks(struct lab_stage *stage)
{
	for (unsigned w = 0; w < stage->n_work; w++)
		lab_work_stop(&stage->work[w]);
	for (unsigned i = 0; i < stage->n_chips; i++) {
		for (unsigned q = 0; q < stage->chip[i].queues; q++) {
			if (stage->chip[i].rx[q])
				mac_rx_stop(stage->chip[i].rx[q]);
		}
	}
}

void lab_stage_stop(struct lab_stage *stage)
{
	/* Senders first; then what they sent must arrive before anybody stops to receive. */
	lab_stage_quiesce(stage);
	stop_tasks(stage);
	for (unsigned i = 0; i < stage->n_chips; i++) {
		if (stage->chip[i].socket)
			lab_socket_close(stage->chip[i].socket);
		port_stop(stage->chip[i].port);
	}
	sim_cancel(stage->sim, &stage->watch);
}

void lab_stage_free(struct lab_stage *stage)
{
	/* Only a run that failed half-way still has tasks here. */
	stop_tasks(stage);
	for (unsigned i = 0; i < stage->n_chips; i++) {
		if (stage->chip[i].port)
			port_stop(stage->chip[i].port);
	}
	for (unsigned w = 0; w < stage->n_work; w++)
		lab_work_free(&stage->work[w]);
	for (unsigned i = 0; i < stage->n_chips; i++) {
		struct lab_stage_chip *c = &stage->chip[i];

		/* Its buffers are the arena's, its turn the queue's. */
		lab_socket_destroy(c->socket);
		port_close(c->port);
		for (unsigned q = 0; q < LAB_STAGE_QUEUES; q++) {
			mac_rx_close(c->rx[q]);
			pk_cache_destroy(c->receiver_cache[q]);
			pk_cache_destroy(c->clean_cache[q]);
		}
		if (c->bus)
			c->bus->ops->close(c->bus);
		lab_fault_stop(&c->fault);
		lab_chip_destroy(c->chip);
		lab_pci_destroy(c->pci);
	}
	for (unsigned w = 0; w < stage->n_wires; w++)
		lab_wire_destroy(stage->wire[w]);
	for (unsigned h = 0; h < stage->n_hosts; h++) {
		pk_arena_destroy(stage->host[h].arena);
		lab_store_give(stage->store, LAB_STORE_BUFFERS, stage->host[h].memory,
			       stage->host[h].memory_bytes);
		rt_destroy(stage->host[h].rt);
	}
	sim_destroy(stage->sim);
}
