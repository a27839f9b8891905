// SPDX-License-Identifier: BSD-2-Clause
/* The workloads of a run: Linux's pktgen, and the engine's own generator and receiver. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/stage.h"
#include "traffic/tso.h"

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
		if (!strcmp(p->name, "tso") || !strcmp(p->name, "mss"))
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

static int create_sender(struct lab_stage_work *work, struct ho_err *err)
{
	struct tr_sender_config config = { .rt = work->host->rt };
	struct lab_stage_chip *chip = work->chip;
	uint32_t mss;
	int rc = read_frames(work, &mss, err);

	if (rc < 0)
		return rc;
	work->seat =
		mac_txshare_seat(&chip->share[work->spec->queue], !chip->rx[work->spec->queue]);
	if (!work->seat)
		return ho_err_set(err, -EINVAL, "more than %u senders on queue %u of %s",
				  MAC_TXSHARE_SEATS, work->spec->queue, work->spec->chip);
	work->drain_ns = calloc(1, sizeof(*work->drain_ns));
	if (!work->drain_ns)
		return ho_err_set(err, -ENOMEM, "out of memory for a sender's delays");
	mac_txseat_measure(work->seat, work->drain_ns);
	config.txq = &work->seat->q;
	rc = tr_source_create(work->frames, 0, 1, &work->source, err);
	if (rc == 0 && mss)
		rc = tr_tso_create(work->source, mss, &work->source, err);
	if (rc < 0)
		return rc;
	rc = pk_cache_create(work->host->arena, &work->cache, err);
	if (rc < 0)
		return rc;
	config.cache = work->cache;
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
		.rxq = work->chip->port->rxq[work->spec->queue],
		.cache = work->chip->receiver_cache[work->spec->queue],
		.end_ns = RT_FOREVER,
	};

	if (work->spec->params.n)
		return ho_err_set(err, -EINVAL, "a receiver has no parameter '%s'",
				  work->spec->params.param[0].name);
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

/* pktgen goes past the senders' turns, and needs somebody who cleans what it sent; two receivers
 * would take each other's frames. */
static int check_alone(const struct lab_stage_work *work, struct ho_err *err)
{
	const struct lab_host_spec *host = work->host->spec;

	for (unsigned i = 0; i < host->workloads_count; i++) {
		const struct lab_workload_spec *other = &host->workloads[i];

		if (other == work->spec || other->chip_index != work->spec->chip_index ||
		    other->queue != work->spec->queue)
			continue;
		if (work->spec->kind == LAB_WORK_PKTGEN)
			return ho_err_set(err, -EINVAL,
					  "pktgen must be alone on queue %u of %s; %s uses it too",
					  other->queue, other->chip, other->name);
		if (work->spec->kind == LAB_WORK_RECV && other->kind == LAB_WORK_RECV)
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
	if (check_alone(work, err) < 0)
		return -EINVAL;
	switch (work->spec->kind) {
	case LAB_WORK_PKTGEN:
		return create_pktgen(work, err);
	case LAB_WORK_GEN:
		return create_sender(work, err);
	case LAB_WORK_RECV:
		return create_receiver(work, err);
	case LAB_WORK_RR:
		break;
	}
	return ho_err_set(err, -EINVAL, "workload '%s': runs have pktgen, gen and recv",
			  lab_workload_kind_name(work->spec->kind));
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
	work->sender->config.start_ns = rt_now_ns(rt);
	/* Known only now that there is a link. */
	work->sender->config.pace.link_bps = work->chip->port->link_bps;
	return rt_spawn(rt, &attr, tr_sender_run, work->sender, &work->task, err);
}

void lab_work_stop(struct lab_stage_work *work)
{
	if (work->pktgen)
		tr_pktgen_stop(work->pktgen);
	if (!work->task)
		return;
	if (work->sender)
		tr_stop_ask(&work->sender->stop);
	if (work->receiver)
		tr_stop_ask(&work->receiver->stop);
	rt_join(work->host->rt, work->task);
	work->task = NULL;
	if (work->seat)
		mac_txseat_leave(work->seat);
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
	tr_source_destroy(work->source);
	tr_spec_destroy(work->frames);
	pk_cache_destroy(work->cache);
	free(work->drain_ns);
}

bool lab_work_receives(const struct lab_scenario *scenario, unsigned host, unsigned chip,
		       unsigned queue)
{
	const struct lab_host_spec *h = &scenario->hosts[host];

	for (unsigned w = 0; w < h->workloads_count; w++) {
		const struct lab_workload_spec *work = &h->workloads[w];

		if (work->kind == LAB_WORK_RECV && work->chip_index == chip && work->queue == queue)
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
	}
	return counts;
}
