// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/pktgen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/parse.h"

#define HEADER_BYTES  42 /* Ethernet, IPv4, UDP */
#define DEFAULT_BYTES 60
#define DISCARD_PORT  9

struct tr_pktgen {
	struct tr_pktgen_config config;
	struct rt *rt;
	struct port_txq *q;
	struct pk_cache *cache;
	struct pk_slot slot;
	struct rt_task *task;
	uint32_t quit; /* atomic */
	uint32_t done; /* atomic */
	/* written by the task */
	uint64_t sofar HO_CACHE_ALIGNED;
	uint64_t errors;
	uint64_t stops;
	uint64_t stopped_ns;
};

/* UDP to the discard port, from and to 198.18.0.0/15, which RFC 2544 keeps for such tests. */
static void build(const struct tr_pktgen *pg, uint8_t *frame, uint32_t bytes)
{
	static const uint8_t none[6];
	const uint8_t *dst = pg->config.dst;
	uint8_t *ip = frame + 14, *udp = frame + 34;
	uint32_t sum = 0;

	memset(frame, 0, bytes);
	if (memcmp(dst, none, 6))
		memcpy(frame, dst, 6);
	else
		memset(frame, 0xff, 6);
	memcpy(frame + 6, pg->config.port->mac, 6);
	pk_store16(frame + 12, 0x0800);
	ip[0] = 0x45;
	pk_store16(ip + 2, (uint16_t)(bytes - 14));
	ip[8] = 32;
	ip[9] = 17;
	pk_store32(ip + 12, 0xc6120001);
	pk_store32(ip + 16, 0xc6130001);
	for (unsigned i = 0; i < 20; i += 2)
		sum += pk_load16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	pk_store16(ip + 10, (uint16_t)~sum);
	pk_store16(udp, DISCARD_PORT);
	pk_store16(udp + 2, DISCARD_PORT);
	pk_store16(udp + 4, (uint16_t)(bytes - 34));
}

int tr_pktgen_create(const struct tr_pktgen_config *config, struct tr_pktgen **out,
		     struct ho_err *err)
{
	struct port *port = config->port;
	uint32_t bytes = config->frame_bytes ? config->frame_bytes : DEFAULT_BYTES;
	uint32_t room = port->arena->stride_bytes - PK_HEADROOM_BYTES;
	struct tr_pktgen *pg;
	int rc;

	if (!port->honours_keep)
		return ho_err_set(err, -ENOTSUP,
				  "%s cannot send one buffer many times; pktgen needs a port of a "
				  "driver",
				  port->name);
	if (config->queue >= port->n_txq)
		return ho_err_set(err, -EINVAL, "%s: there is no transmit queue %u, only %u",
				  port->name, config->queue, port->n_txq);
	if (bytes < HEADER_BYTES || bytes > port->max_frame || bytes > room)
		return ho_err_set(err, -EINVAL, "a frame of %u bytes: %u to %u are possible here",
				  bytes, HEADER_BYTES, HO_MIN(port->max_frame, room));
	pg = aligned_alloc(HO_CACHE_LINE, HO_ALIGN_UP(sizeof(*pg), (size_t)HO_CACHE_LINE));
	if (!pg)
		return ho_err_set(err, -ENOMEM, "out of memory for pktgen");
	memset(pg, 0, sizeof(*pg));
	pg->config = *config;
	pg->rt = port->rt;
	pg->q = port->txq[config->queue];
	rc = pk_cache_create(port->arena, &pg->cache, err);
	if (rc < 0)
		goto free_pg;
	pg->slot = (struct pk_slot){ .off = PK_HEADROOM_BYTES,
				     .len = (uint16_t)bytes,
				     .flags = PK_KEEP };
	if (!pk_alloc(pg->cache, &pg->slot.buf, 1)) {
		rc = ho_err_set(err, -ENOBUFS, "no packet buffer for pktgen's frame");
		goto destroy_cache;
	}
	build(pg, pk_data(port->arena, &pg->slot), bytes);
	*out = pg;
	return 0;
destroy_cache:
	pk_cache_destroy(pg->cache);
free_pg:
	free(pg);
	return rc;
}

/* Waits until the queue is no longer stopped. The loop itself does not look at the clock: the lab
 * may then skip turns that only spin. */
static void spin(struct tr_pktgen *pg)
{
	uint64_t since = rt_now_ns(pg->rt);

	while (port_tx_stopped(pg->q) && !__atomic_load_n(&pg->quit, __ATOMIC_RELAXED) &&
	       !rt_stopping(pg->rt))
		rt_relax(pg->rt);
	ho_ctr_add(&pg->stops, 1);
	ho_ctr_add(&pg->stopped_ns, rt_now_ns(pg->rt) - since);
}

static void run(void *arg)
{
	struct tr_pktgen *pg = arg;
	const uint64_t count = pg->config.count ? pg->config.count : UINT64_MAX;

	while (pg->sofar < count && !__atomic_load_n(&pg->quit, __ATOMIC_RELAXED) &&
	       !rt_stopping(pg->rt)) {
		struct pk_slot slot = pg->slot;

		if (port_tx_stopped(pg->q)) {
			spin(pg);
			continue;
		}
		rt_spend(pg->rt, RT_COST_GEN_FRAME, 1);
		if (ho_likely(port_tx(pg->q, &slot, 1))) {
			ho_ctr_add(&pg->sofar, 1);
		} else {
			/* Stopped since the look above, or no room for another reason. */
			ho_ctr_add(&pg->errors, 1);
			rt_relax(pg->rt);
		}
	}
	__atomic_store_n(&pg->done, 1, __ATOMIC_RELEASE);
}

int tr_pktgen_start(struct tr_pktgen *pg, struct ho_err *err)
{
	struct rt_task_attr attr = { .name = "pktgen",
				     .cpu = pg->config.cpu,
				     .prio = RT_PRIO_NORMAL };

	pg->quit = pg->done = 0;
	return rt_spawn(pg->rt, &attr, run, pg, &pg->task, err);
}

void tr_pktgen_ask(struct tr_pktgen *pg)
{
	__atomic_store_n(&pg->quit, 1, __ATOMIC_RELAXED);
}

void tr_pktgen_stop(struct tr_pktgen *pg)
{
	tr_pktgen_ask(pg);
	rt_join(pg->rt, pg->task);
	pg->task = NULL;
}

bool tr_pktgen_done(const struct tr_pktgen *pg)
{
	return __atomic_load_n(&pg->done, __ATOMIC_ACQUIRE);
}

void tr_pktgen_destroy(struct tr_pktgen *pg)
{
	if (!pg)
		return;
	pk_free(pg->cache, &pg->slot.buf, 1);
	pk_cache_destroy(pg->cache);
	free(pg);
}

struct tr_pktgen_counts tr_pktgen_counts(const struct tr_pktgen *pg)
{
	uint64_t sofar = ho_ctr_read(&pg->sofar);

	return (struct tr_pktgen_counts){ .sofar = sofar,
					  .errors = ho_ctr_read(&pg->errors),
					  .bytes = sofar * pg->slot.len,
					  .stops = ho_ctr_read(&pg->stops),
					  .stopped_ns = ho_ctr_read(&pg->stopped_ns),
					  .at_ns = rt_now_ns(pg->rt) };
}

uint64_t tr_pktgen_pps(const struct tr_pktgen_counts *from, const struct tr_pktgen_counts *to)
{
	uint64_t ns = to->at_ns - from->at_ns;

	if (!ns)
		return 0;
	return (uint64_t)((unsigned __int128)(to->sofar - from->sofar) * 1000000000u / ns);
}
