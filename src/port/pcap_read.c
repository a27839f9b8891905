// SPDX-License-Identifier: BSD-2-Clause
/*
 * The receive queue of pcap: ports.
 *
 * One frame is always prepared ahead (q->next): its time says when it is due, and a burst that has
 * no room or no buffers for it leaves it there. Nothing is lost for want of buffers: a file waits.
 *
 * Timed replay (pcap_schedule.h) counts from the moment of the first receive call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/pcap_port.h"

#define FRAME_MIN_BYTES 14 /* an Ethernet header */
#define MEMORY_FRAMES   1000000u
#define SKIPS_PER_CALL  4096 /* records that are dropped before a call returns with nothing */
#define STREAM_POLL_NS  1000000u

struct pcap_memory_record {
	uint64_t time_ns;
	uint32_t len;
	uint32_t pad;
};

static void end_with(struct pcap_rxq *q)
{
	q->ended = true;
	q->have = false;
}

/* libpcap gave up on a record that began at byte `at`. */
static void broken_record(struct pcap_rxq *q, uint64_t at)
{
	end_with(q);
	if (q->in.stopped)
		return;
	if (q->in.error)
		ho_err_set(&q->late, -q->in.error, "reading record %llu at byte %llu failed: %s",
			   (unsigned long long)q->record, (unsigned long long)at,
			   ho_strerror(q->in.error));
	else
		ho_err_set(&q->late, -EINVAL,
			   "record %llu at byte %llu is broken: %s; the records before it were "
			   "read",
			   (unsigned long long)q->record, (unsigned long long)at,
			   pcap_geterr(q->in.pcap));
	port_drop(&q->base.ctr, PORT_DROP_RX_MALFORMED, 1);
}

/* Is the record a frame for the user? Counts it if not. */
static bool usable(struct pcap_rxq *q, const struct pcap_pkthdr *h, const uint8_t *data)
{
	struct port_counters *ctr = &q->base.ctr;

	if (h->len > PK_FRAME_MAX_BYTES || h->caplen > PK_FRAME_MAX_BYTES)
		port_drop(ctr, PORT_DROP_RX_TOO_LONG, 1);
	else if (h->caplen < h->len)
		port_drop(ctr, PORT_DROP_RX_TRUNCATED, 1);
	else if (h->caplen < FRAME_MIN_BYTES)
		port_drop(ctr, PORT_DROP_RX_MALFORMED, 1);
	else if (q->filter && !port_bpf_match(q->filter, data, h->len, h->caplen))
		port_drop(ctr, PORT_DROP_RX_FILTERED, 1);
	else
		return true;
	return false;
}

enum file_record { FILE_FRAME, FILE_SKIPPED, FILE_END };

static enum file_record read_record(struct pcap_rxq *q)
{
	struct pcap_pkthdr *h;
	const u_char *data;
	uint64_t at = pcap_in_byte(&q->in);
	int rc;

	if (q->opts->limit && q->record == q->opts->limit)
		return FILE_END;
	q->record++;
	rc = pcap_next_ex(q->in.pcap, &h, &data);
	if (rc == PCAP_ERROR_BREAK)
		return FILE_END;
	if (rc != 1) {
		broken_record(q, at);
		return FILE_END;
	}
	if (!usable(q, h, data))
		return FILE_SKIPPED;
	/* With nanosecond precision libpcap puts nanoseconds into tv_usec. */
	q->next = (struct pcap_frame){
		.data = data,
		.len = h->caplen,
		.time_ns = (uint64_t)h->ts.tv_sec * 1000000000u + (uint64_t)h->ts.tv_usec,
	};
	return FILE_FRAME;
}

static enum file_record memory_record(struct pcap_rxq *q)
{
	const struct pcap_memory_record *rec;

	if (q->mem.pos == q->mem.used)
		return FILE_END;
	rec = (const void *)(q->mem.bytes + q->mem.pos);
	q->next = (struct pcap_frame){ (const uint8_t *)(rec + 1), rec->len, rec->time_ns };
	q->mem.pos += sizeof(*rec) + HO_ALIGN_UP((size_t)rec->len, 8);
	ho_prefetch(q->mem.bytes + q->mem.pos);
	return FILE_FRAME;
}

/* When q->next is due. */
static void set_due(struct pcap_rxq *q)
{
	bool back;

	if (!q->start_ns)
		q->start_ns = rt_now_ns(q->base.port->rt);
	/* Both are far from where the sum would wrap. */
	q->due_ns = q->start_ns + pcap_schedule_frame(&q->schedule, q->next.time_ns, &back);
}

/* At the end of the file: begins the next pass, or ends. */
static bool next_pass(struct pcap_rxq *q)
{
	/* A pass without a single frame would be followed by others like it, for ever. */
	if (q->ended || ++q->pass == q->opts->loop || !q->delivered) {
		end_with(q);
		return false;
	}
	pcap_schedule_pass(&q->schedule);
	q->delivered = q->record = 0;
	q->mem.pos = 0;
	if (!q->opts->memory && pcap_in_rewind(&q->in, &q->late) < 0) {
		end_with(q);
		return false;
	}
	return true;
}

/* Makes q->next the next frame. False when there is none now, or never again (q->ended). */
static bool prepare(struct pcap_rxq *q)
{
	for (unsigned skipped = 0; skipped < SKIPS_PER_CALL; skipped++) {
		enum file_record got;

		if (q->ended || (!q->opts->memory && !pcap_in_ready(&q->in)))
			return false;
		got = q->opts->memory ? memory_record(q) : read_record(q);
		if (got == FILE_FRAME) {
			if (q->opts->speed > 0)
				set_due(q);
			q->delivered++;
			q->have = true;
			return true;
		}
		if (got == FILE_END && !next_pass(q))
			return false;
	}
	return false;
}

/* Copies q->next; the slots used, 0 without room or buffers for it. */
static unsigned deliver(struct pcap_rxq *q, struct pk_slot *slots, unsigned room)
{
	unsigned used = pk_frame_from_bytes(q->base.cache, q->next.data, q->next.len, slots, room);

	if (!used)
		return 0;
	memcpy(pk_data(q->base.arena, slots) - sizeof(uint64_t), &q->next.time_ns,
	       sizeof(uint64_t));
	slots[0].flags |= PK_TIME;
	q->have = false;
	return used;
}

static unsigned pcap_rx(struct port_rxq *base, struct pk_slot *slots, unsigned n)
{
	struct pcap_rxq *q = (struct pcap_rxq *)base;
	uint64_t now = q->opts->speed > 0 ? rt_now_ns(base->port->rt) : 0;
	uint64_t frames = 0, bytes = 0;
	unsigned used = 0;

	while (used < n && (q->have || prepare(q))) {
		uint32_t len = q->next.len;
		unsigned got;

		if (q->opts->speed > 0 && q->due_ns > now)
			break;
		got = deliver(q, slots + used, n - used);
		if (!got)
			break;
		used += got;
		frames++;
		bytes += len;
	}
	port_count(&base->ctr, frames, bytes);
	return used;
}

bool pcap_read_arm(struct port_rxq *base)
{
	struct pcap_rxq *q = (struct pcap_rxq *)base;
	uint64_t now = rt_now_ns(base->port->rt);

	if (q->have || prepare(q)) {
		if (q->opts->speed == 0 || q->due_ns <= now)
			return true;
		rt_event_arm(base->port->rt, q->event, q->due_ns);
		return false;
	}
	/* At the end the user must look at rx_ended; a run of skipped records goes on at once. */
	if (q->ended || !q->in.stream)
		return true;
	rt_event_arm(base->port->rt, q->event, now + STREAM_POLL_NS);
	return false;
}

void pcap_read_disarm(struct port_rxq *base)
{
	rt_event_arm(base->port->rt, ((struct pcap_rxq *)base)->event, RT_FOREVER);
}

static int memory_append(struct pcap_rxq *q, struct ho_err *err)
{
	struct pcap_memory *mem = &q->mem;
	struct pcap_memory_record rec = { .time_ns = q->next.time_ns, .len = q->next.len };
	size_t need = sizeof(rec) + HO_ALIGN_UP((size_t)q->next.len, 8);

	if (mem->room - mem->used < need) {
		size_t room = mem->room ? 2 * mem->room : 1u << 20;
		uint8_t *bytes = realloc(mem->bytes, room);

		if (!bytes)
			return ho_err_set(err, -ENOMEM,
					  "out of memory after %llu frames; limit=N reads fewer",
					  (unsigned long long)q->record);
		mem->bytes = bytes;
		mem->room = room;
	}
	memcpy(mem->bytes + mem->used, &rec, sizeof(rec));
	memcpy(mem->bytes + mem->used + sizeof(rec), q->next.data, q->next.len);
	mem->used += need;
	return 0;
}

/* memory=yes: the whole file, or its first `limit` records. */
static int load_memory(struct pcap_rxq *q, struct ho_err *err)
{
	enum file_record got;
	int rc = 0;

	while (rc == 0 && (got = read_record(q)) != FILE_END) {
		if (got == FILE_FRAME)
			rc = memory_append(q, err);
		if (!q->opts->limit && q->record > MEMORY_FRAMES)
			return ho_err_set(err, -EFBIG,
					  "has more than %u frames; limit=N says how many shall be "
					  "kept in memory",
					  MEMORY_FRAMES);
	}
	if (rc == 0 && q->late.code) {
		rc = q->late.code;
		ho_err_set(err, rc, "%s", q->late.text);
	}
	q->record = 0;
	return rc;
}

int pcap_read_open(struct pcap_rxq *q, int fd, const struct pcap_opts *opts, const char *filter,
		   struct ho_err *err)
{
	int rc = pcap_in_open(&q->in, q->base.port->rt, fd, err);

	if (rc < 0)
		return rc;
	q->opts = opts;
	q->schedule.speed = opts->speed;
	q->active = true;
	q->base.rx = pcap_rx;
	if (opts->loop != 1 && q->in.stream && !opts->memory) {
		rc = ho_err_set(err, -ESPIPE,
				"cannot be read twice because it is not a file; loop needs a file, "
				"or memory=yes");
		goto fail;
	}
	if (filter) {
		q->filter = calloc(1, sizeof(*q->filter));
		rc = q->filter ? port_bpf_compile(filter, q->filter, err)
			       : ho_err_set(err, -ENOMEM, "out of memory for the filter");
		if (rc < 0) {
			free(q->filter);
			q->filter = NULL;
			goto fail;
		}
	}
	rc = rt_event_create(q->base.port->rt, &q->event, err);
	if (rc == 0 && opts->memory)
		rc = load_memory(q, err);
	if (rc < 0)
		goto fail;
	return 0;
fail:
	pcap_read_close(q);
	return rc;
}

void pcap_read_close(struct pcap_rxq *q)
{
	if (!q->active)
		return;
	rt_event_destroy(q->base.port->rt, q->event);
	if (q->filter)
		pcap_freecode(q->filter);
	free(q->filter);
	free(q->mem.bytes);
	pcap_in_close(&q->in);
	q->active = false;
}
