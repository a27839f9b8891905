// SPDX-License-Identifier: BSD-2-Clause
/* The workloads of a run: Linux's pktgen, and the engine's own generator, receiver and
 * request/response. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/stage.h"
#include "traffic/tso.h"

#define RR_TIMEOUT_NS 100000000u /* an answer that is not there by then was lost */

/* Parameters of a workload that are no fields of a frame. */
static bool is_own_param(const char *name)
{
	static const char *const own[] = { "tso",         "mss",   "via",     "rcvbuf", "side",
					   "outstanding", "think", "timeout", "reply",  NULL };

	for (const char *const *p = own; *p; p++)
		if (!strcmp(*p, name))
			return true;
	return false;
}

static bool via_socket(const struct lab_workload_spec *spec)
{
	const struct lab_param *via = lab_params_get(&spec->params, "via");

	return via ? !strcmp(via->text, "socket") : spec->kind == LAB_WORK_RR;
}

static bool is_client(const struct lab_workload_spec *spec)
{
	const struct lab_param *side = lab_params_get(&spec->params, "side");

	return !side || strcmp(side->text, "server");
}

static int check_words(const struct lab_workload_spec *spec, struct ho_err *err)
{
	const struct lab_param *via = lab_params_get(&spec->params, "via");
	const struct lab_param *side = lab_params_get(&spec->params, "side");

	if (via && strcmp(via->text, "queue") && strcmp(via->text, "socket"))
		return ho_err_set(err, -EINVAL, "via '%s': queue and socket are possible",
				  via->text);
	if (side && strcmp(side->text, "client") && strcmp(side->text, "server"))
		return ho_err_set(err, -EINVAL, "side '%s': client and server are possible",
				  side->text);
	return 0;
}

/* The fields of a frame that a scenario may set are those of `gen`. */
static int read_frames(struct lab_stage_work *work, uint32_t *mss, struct ho_err *err)
{
	struct tr_stream_text stream = { .size = work->spec->sizes };
	struct tr_spec_text text = { .streams = &stream, .n_streams = 1 };
	struct tr_spec_info info;
	uint32_t tso, longest = work->chip->port->max_frame;
	int rc;

	if (lab_stage_param(&work->spec->params, "tso", 0, &tso, err) < 0 ||
	    lab_stage_param(&work->spec->params, "mss", 1460, mss, err) < 0)
		return -EINVAL;
	for (unsigned i = 0; i < work->spec->params.n; i++) {
		const struct lab_param *p = &work->spec->params.param[i];
		const struct tr_stream_field *field = tr_stream_fields;

		if (!strcmp(p->name, "stamp") || !strcmp(p->name, "seed")) {
			*(p->name[1] == 't' ? &text.stamp : &text.seed) = p->text;
			continue;
		}
		if (is_own_param(p->name))
			continue;
		while (field->key && strcmp(field->key, p->name))
			field++;
		if (!field->key)
			return ho_err_set(err, -EINVAL,
					  "there is no parameter '%s' here; the fields of a frame, "
					  "seed, stamp, tso and mss are parameters of a generator",
					  p->name);
		*(const char **)((char *)&stream + field->offset) = p->text;
	}
	if (!tso) {
		*mss = 0;
	} else if (!stream.proto || strcmp(stream.proto, "tcp")) {
		return ho_err_set(err, -EINVAL, "tso needs TCP frames: proto: tcp");
	} else {
		longest = PK_FRAME_MAX_BYTES; /* the chip cuts it */
	}
	rc = tr_spec_create(&text, &work->frames, err);
	if (rc < 0)
		return rc;
	tr_spec_info(work->frames, &info);
	work->frame_bytes = (uint32_t)lround(info.mean_bytes);
	work->stamps = info.stamped;
	return tr_spec_fits(work->frames, longest, 0, work->chip->port->name, err);
}

int lab_work_socket(struct lab_stage_chip *chip, const struct lab_workload_spec *spec,
		    struct lab_socket **out, struct ho_err *err)
{
	uint32_t limit;

	if (lab_stage_param(&spec->params, "rcvbuf", LAB_SOCKET_LIMIT, &limit, err) < 0)
		return -EINVAL;
	if (limit < 1 || limit > 65536)
		return ho_err_set(err, -EINVAL, "rcvbuf %u: 1 to 65536 frames are possible", limit);
	return lab_socket_create(chip->host->rt, chip->host->arena, chip->port,
				 &chip->share[spec->queue], false, limit, out, err);
}

/* Where the workload sends: a turn on the chip's queue, or a socket that has one. */
static int transmit_queue(struct lab_stage_work *work, struct port_txq **out, struct ho_err *err)
{
	struct lab_stage_chip *chip = work->chip;
	int rc;

	if (via_socket(work->spec)) {
		if (!work->socket) {
			rc = lab_work_socket(chip, work->spec, &work->socket, err);
			if (rc < 0)
				return rc;
			work->own_socket = true;
		}
		*out = lab_socket_txq(work->socket);
		return 0;
	}
	work->seat =
		mac_txshare_seat(&chip->share[work->spec->queue], !chip->rx[work->spec->queue]);
	if (!work->seat)
		return ho_err_set(err, -EINVAL, "more than %u senders on queue %u of %s",
				  MAC_TXSHARE_SEATS, work->spec->queue, work->spec->chip);
	work->drain_ns = calloc(1, sizeof(*work->drain_ns));
	if (!work->drain_ns)
		return ho_err_set(err, -ENOMEM, "out of memory for a sender's delays");
	mac_txseat_measure(work->seat, work->drain_ns);
	*out = &work->seat->q;
	return 0;
}

/* The task's cache; NULL with a sentence in err. */
static struct pk_cache *own_cache(struct lab_stage_work *work, struct ho_err *err)
{
	if (work->socket)
		return lab_socket_cache(work->socket);
	if (!work->cache && pk_cache_create(work->host->arena, &work->cache, err) < 0)
		return NULL;
	return work->cache;
}

static struct port_rxq *receive_queue(const struct lab_stage_work *work)
{
	return work->socket ? lab_socket_rxq(work->socket)
			    : work->chip->port->rxq[work->spec->queue];
}

/* Who receives from the chip's queue itself uses the cache that the queue is bound to. */
static struct pk_cache *receive_cache(const struct lab_stage_work *work)
{
	return work->socket ? lab_socket_cache(work->socket)
			    : work->chip->receiver_cache[work->spec->queue];
}

static int create_server(struct lab_stage_work *work, struct ho_err *err)
{
	struct tr_rr_server_config config = { .rt = work->host->rt, .block = work->socket };
	int rc = transmit_queue(work, &config.txq, err);

	if (rc < 0)
		return rc;
	config.rxq = receive_queue(work);
	config.cache = receive_cache(work);
	if (lab_stage_param(&work->spec->params, "reply", 0, &config.reply_bytes, err) < 0)
		return -EINVAL;
	return tr_rr_server_create(&config, &work->server, err);
}

static int create_client(struct lab_stage_work *work, struct ho_err *err)
{
	struct tr_rr_client_config config = {
		.rt = work->host->rt,
		.tries = 1,
		.end_ns = RT_FOREVER,
		.block = work->socket,
	};
	uint32_t mss;
	int rc;

	if (!work->spec->sizes)
		work->frame_bytes = 60;
	rc = read_frames(work, &mss, err);
	if (rc == 0)
		rc = transmit_queue(work, &config.txq, err);
	if (rc < 0)
		return rc;
	config.rxq = receive_queue(work);
	if (lab_stage_param(&work->spec->params, "outstanding", 1, &config.outstanding, err) < 0 ||
	    lab_stage_time(&work->spec->params, "think", &config.think_ns, err) < 0 ||
	    lab_stage_time(&work->spec->params, "timeout", &config.timeout_ns, err) < 0)
		return -EINVAL;
	if (config.outstanding < 1 || config.outstanding > TR_RR_OUTSTANDING_MAX)
		return ho_err_set(err, -EINVAL, "outstanding %u: 1 to %u are possible",
				  config.outstanding, TR_RR_OUTSTANDING_MAX);
	if (!config.timeout_ns)
		config.timeout_ns = RR_TIMEOUT_NS;
	rc = tr_source_create(work->frames, 0, 1, &work->source, err);
	if (rc < 0)
		return rc;
	config.source = work->source;
	return tr_rr_client_create(&config, &work->client, err);
}

static int create_rr(struct lab_stage_work *work, struct ho_err *err)
{
	if (work->spec->rate.unit != HO_RATE_MAX)
		return ho_err_set(err, -EINVAL,
				  "rr has no rate: outstanding and think say how much there is");
	return is_client(work->spec) ? create_client(work, err) : create_server(work, err);
}

static int create_sender(struct lab_stage_work *work, struct ho_err *err)
{
	struct tr_sender_config config = { .rt = work->host->rt };
	uint32_t mss;
	int rc = read_frames(work, &mss, err);

	if (rc < 0)
		return rc;
	rc = transmit_queue(work, &config.txq, err);
	if (rc < 0)
		return rc;
	rc = tr_source_create(work->frames, 0, 1, &work->source, err);
	if (rc == 0 && mss)
		rc = tr_tso_create(work->source, mss, &work->source, err);
	if (rc < 0)
		return rc;
	config.cache = own_cache(work, err);
	if (!config.cache)
		return -ENOMEM;
	config.source = work->source;
	config.mean_bytes = work->frame_bytes;
	config.pace = (struct tr_pacer_config){ .rate = work->spec->rate,
						.link_bps = work->chip->port->link_bps,
						.workers = 1 };
	return tr_sender_create(&config, &work->sender, err);
}

static int create_receiver(struct lab_stage_work *work, struct ho_err *err)
{
	struct tr_receiver_config config = {
		.rt = work->host->rt,
		.rxq = receive_queue(work),
		.cache = receive_cache(work),
		.block = work->socket,
		.end_ns = RT_FOREVER,
	};

	for (unsigned i = 0; i < work->spec->params.n; i++) {
		const char *name = work->spec->params.param[i].name;

		if (strcmp(name, "via") && strcmp(name, "rcvbuf"))
			return ho_err_set(err, -EINVAL, "a receiver has no parameter '%s'", name);
	}
	return tr_receiver_create(&config, &work->receiver, err);
}

static int create_pktgen(struct lab_stage_work *work, struct ho_err *err)
{
	struct tr_pktgen_config config = { .port = work->chip->port,
					   .queue = work->spec->queue,
					   .cpu = (int)work->spec->cpu };
	uint64_t bytes = 0;
	int rc;

	if (work->spec->sizes) {
		rc = ho_parse_count(work->spec->sizes, &bytes, err);
		if (rc < 0)
			return ho_err_prefix(err, "sizes of pktgen, which sends one frame");
	}
	if (work->spec->params.n)
		return ho_err_set(err, -EINVAL, "pktgen has no parameter '%s'",
				  work->spec->params.param[0].name);
	if (work->spec->rate.unit != HO_RATE_MAX)
		return ho_err_set(err, -EINVAL,
				  "pktgen sends as fast as it can and has no rate; "
				  "the kind gen has one");
	config.frame_bytes = (uint32_t)HO_MIN(bytes, (uint64_t)UINT32_MAX);
	work->frame_bytes = config.frame_bytes ? config.frame_bytes : 60;
	return tr_pktgen_create(&config, &work->pktgen, err);
}

static bool receives(const struct lab_workload_spec *spec)
{
	return spec->kind == LAB_WORK_RECV || spec->kind == LAB_WORK_RR;
}

/* pktgen goes past the senders' turns, and needs somebody who cleans what it sent; two receivers
 * would take each other's frames. */
static int check_alone(const struct lab_stage_work *work, struct ho_err *err)
{
	const struct lab_host_spec *host = work->host->spec;

	for (unsigned i = 0; i < host->workloads_count; i++) {
		const struct lab_workload_spec *other = &host->workloads[i];

		if (other == work->spec || other->chip_index != work->spec->chip_index)
			continue;
		if (receives(work->spec) && receives(other) && via_socket(work->spec) &&
		    via_socket(other))
			return ho_err_set(err, -EINVAL, "%s receives from %s by a socket already",
					  other->name, other->chip);
		if (other->queue != work->spec->queue)
			continue;
		if (work->spec->kind == LAB_WORK_PKTGEN)
			return ho_err_set(err, -EINVAL,
					  "pktgen must be alone on queue %u of %s; %s uses it too",
					  other->queue, other->chip, other->name);
		if (receives(work->spec) && receives(other) &&
		    via_socket(work->spec) == via_socket(other))
			return ho_err_set(err, -EINVAL, "%s receives from queue %u of %s already",
					  other->name, other->queue, other->chip);
	}
	return 0;
}

int lab_work_create(struct lab_stage *stage, struct lab_stage_work *work, struct ho_err *err)
{
	unsigned i = 0;

	while (stage->chip[i].host != work->host || stage->chip[i].index != work->spec->chip_index)
		i++;
	work->chip = &stage->chip[i];
	work->chip_index = i;
	if (work->spec->queue >= work->chip->queues)
		return ho_err_set(err, -EINVAL, "queue %u of %s, which has %u", work->spec->queue,
				  work->spec->chip, work->chip->queues);
	if (check_alone(work, err) < 0 || check_words(work->spec, err) < 0)
		return -EINVAL;
	if (via_socket(work->spec) && work->spec->kind != LAB_WORK_GEN)
		work->socket = work->chip->socket;
	switch (work->spec->kind) {
	case LAB_WORK_PKTGEN:
		return create_pktgen(work, err);
	case LAB_WORK_GEN:
		return create_sender(work, err);
	case LAB_WORK_RECV:
		return create_receiver(work, err);
	case LAB_WORK_RR:
		return create_rr(work, err);
	}
	return -EINVAL;
}

int lab_work_start(struct lab_stage_work *work, struct ho_err *err)
{
	struct rt_task_attr attr = { .name = work->spec->name,
				     .cpu = (int)work->spec->cpu,
				     .prio = RT_PRIO_NORMAL };
	struct rt *rt = work->host->rt;

	if (work->pktgen)
		return tr_pktgen_start(work->pktgen, err);
	if (work->receiver)
		return rt_spawn(rt, &attr, tr_receiver_run, work->receiver, &work->task, err);
	if (work->server)
		return rt_spawn(rt, &attr, tr_rr_server_run, work->server, &work->task, err);
	if (work->client)
		return rt_spawn(rt, &attr, tr_rr_client_run, work->client, &work->task, err);
	work->sender->config.start_ns = rt_now_ns(rt);
	/* Known only now that there is a link. */
	work->sender->config.pace.link_bps = work->chip->port->link_bps;
	return rt_spawn(rt, &attr, tr_sender_run, work->sender, &work->task, err);
}

void lab_work_ask(struct lab_stage_work *work)
{
	if (work->pktgen)
		tr_pktgen_ask(work->pktgen);
	if (!work->task)
		return;
	if (work->sender)
		tr_stop_ask(&work->sender->stop);
	if (work->receiver)
		tr_stop_ask(&work->receiver->stop);
	if (work->server)
		tr_stop_ask(&work->server->stop);
	if (work->client)
		tr_rr_client_stop(work->client);
}

void lab_work_stop(struct lab_stage_work *work)
{
	lab_work_ask(work);
	if (work->pktgen)
		tr_pktgen_stop(work->pktgen);
	if (!work->task)
		return;
	rt_join(work->host->rt, work->task);
	work->task = NULL;
	if (work->seat)
		mac_txseat_leave(work->seat);
	if (work->socket)
		lab_socket_leave(work->socket);
}

void lab_work_finish(struct lab_stage_work *work)
{
	if (work->client && work->task)
		tr_rr_client_finish(work->client);
}

bool lab_work_finished(const struct lab_stage_work *work)
{
	return !work->client || !work->task || tr_rr_client_quiesced(work->client);
}

void lab_work_reap(struct lab_stage_work *work)
{
	if (work->seat && !work->task)
		port_reap(&work->seat->q);
}

void lab_work_free(struct lab_stage_work *work)
{
	tr_pktgen_destroy(work->pktgen);
	tr_sender_destroy(work->sender);
	tr_receiver_destroy(work->receiver);
	tr_rr_client_destroy(work->client);
	tr_rr_server_destroy(work->server);
	tr_source_destroy(work->source);
	tr_spec_destroy(work->frames);
	pk_cache_destroy(work->cache);
	free(work->drain_ns);
	if (work->own_socket)
		lab_socket_destroy(work->socket);
}

bool lab_work_receives(const struct lab_scenario *scenario, unsigned host, unsigned chip,
		       unsigned queue)
{
	const struct lab_host_spec *h = &scenario->hosts[host];

	for (unsigned w = 0; w < h->workloads_count; w++) {
		const struct lab_workload_spec *work = &h->workloads[w];

		if ((work->kind == LAB_WORK_RECV || work->kind == LAB_WORK_RR) &&
		    !via_socket(work) && work->chip_index == chip && work->queue == queue)
			return true;
	}
	return false;
}

bool lab_work_taken(const struct lab_stage_take *take, unsigned host,
		    const struct lab_workload_spec *work)
{
	bool receives = work->kind == LAB_WORK_RECV;
	const struct lab_wire_end *end = receives ? &take->rx_end : &take->tx_end;

	return (receives ? take->rx : take->tx) && end->host == host &&
	       end->chip == work->chip_index;
}

const struct lab_workload_spec *lab_work_of_socket(const struct lab_scenario *scenario,
						   unsigned host, unsigned chip)
{
	const struct lab_host_spec *h = &scenario->hosts[host];

	for (unsigned w = 0; w < h->workloads_count; w++) {
		const struct lab_workload_spec *work = &h->workloads[w];

		if ((work->kind == LAB_WORK_RECV || work->kind == LAB_WORK_RR) &&
		    via_socket(work) && work->chip_index == chip)
			return work;
	}
	return NULL;
}

struct lab_work_counts lab_work_counts(const struct lab_stage_work *work)
{
	struct lab_work_counts counts = { 0 };

	if (work->pktgen) {
		struct tr_pktgen_counts c = tr_pktgen_counts(work->pktgen);

		counts.packets = c.sofar;
		counts.bytes = c.bytes;
		counts.waiting_ns = c.stopped_ns;
	} else if (work->sender) {
		counts.packets = ho_ctr_read(&work->sender->offered);
		counts.bytes = ho_ctr_read(&work->sender->bytes);
		counts.waiting_ns = ho_ctr_read(&work->sender->full_ns);
	} else if (work->receiver) {
		counts.packets = ho_ctr_read(&work->receiver->frames);
		counts.bytes = ho_ctr_read(&work->receiver->bytes);
	} else if (work->client) {
		struct tr_rr_client_stats s;

		tr_rr_client_stats(work->client, &s);
		counts.packets = s.requests;
		counts.bytes = s.requests * work->frame_bytes;
		counts.transactions = s.transactions;
		counts.latency_sum_ns = s.latency_sum;
	} else if (work->server) {
		counts.packets = ho_ctr_read(&work->server->replies);
	}
	return counts;
}
