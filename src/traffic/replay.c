// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "packet/headers.h"
#include "port/pcap_in.h"
#include "port/pcap_schedule.h"
#include "traffic/source_kind.h"

/* Records kept in memory, so that frames that were not sent can be built again: at least those of
 * one call, and one that is read ahead for its time. */
#define KEEP 512

struct record {
	uint64_t due_ns;
	uint32_t bytes;
	uint32_t room; /* allocated */
	uint8_t *data;
};

struct replay {
	struct tr_source base;
	struct tr_replay_config config;
	struct tr_replay_counts counts;
	char *path;
	struct pcap_in in;
	unsigned worker, workers;
	struct record record[KEEP]; /* number i is in record[i % KEEP] */
	uint64_t read, built;       /* of this worker's frames */
	bool ended;
	int error;
	struct ho_err cause;

	/* Of the file. */
	uint64_t number; /* of the record, from 1, in this pass */
	uint64_t usable; /* frames in all passes: which worker's is the next? */
	struct pcap_schedule schedule;
};

static void replay_fail(struct replay *r, int code, uint64_t byte, const char *why)
{
	r->error = ho_err_set(&r->cause, code, "%s: record %llu at byte %llu: %s", r->path,
			      (unsigned long long)r->number + 1, (unsigned long long)byte, why);
	r->ended = true;
}

static int keep_record(struct replay *r, const uint8_t *data, uint32_t have, uint32_t bytes,
		       uint64_t due_ns)
{
	struct record *record = &r->record[r->read % KEEP];

	/* Grown to what a frame needs, never to what a file claims. */
	if (record->room < bytes) {
		uint8_t *larger = realloc(record->data, bytes);

		if (!larger)
			return -ENOMEM;
		record->data = larger;
		record->room = bytes;
	}
	memcpy(record->data, data, have);
	memset(record->data + have, 0, bytes - have);
	record->bytes = bytes;
	record->due_ns = due_ns;
	r->read++;
	return 0;
}

/* Can a record be sent? Counts it if not. */
static bool is_usable(struct replay *r, const struct pcap_pkthdr *h)
{
	/* One worker counts it. */
	bool mine = r->number % r->workers == r->worker;

	if (h->len > PK_FRAME_MAX_BYTES)
		r->counts.too_long += mine;
	else if (h->len < PK_ETH_BYTES)
		r->counts.too_short += mine;
	else if (h->caplen < h->len && r->config.truncated == TR_REPLAY_SKIP)
		r->counts.truncated += mine;
	else
		return true;
	return false;
}

/* The end of a pass: on to the next one, or the end of all. */
static void end_pass(struct replay *r)
{
	struct ho_err err;

	/* Not the file's end: the wait for more of it was ended. */
	if (r->in.stopped) {
		r->ended = true;
		return;
	}
	r->counts.loops++;
	if (!r->schedule.frames) {
		r->error = ho_err_set(&r->cause, -EINVAL, "%s: holds no frame that can be sent",
				      r->path);
		r->ended = true;
		return;
	}
	if (r->counts.loops == r->config.loops) {
		r->ended = true;
		return;
	}
	if (pcap_in_rewind(&r->in, &err)) {
		r->error = ho_err_set(&r->cause, err.code, "%s: %s", r->path, err.text);
		r->ended = true;
		return;
	}
	pcap_schedule_pass(&r->schedule);
	r->number = 0;
}

/* Reads on to this worker's next frame. false at the end. */
static bool read_next(struct replay *r)
{
	while (!r->ended) {
		struct pcap_pkthdr *h;
		uint64_t byte = pcap_in_byte(&r->in), due_ns;
		const uint8_t *data;
		uint32_t have;
		bool mine, back;
		int rc = pcap_next_ex(r->in.pcap, &h, &data);

		if (rc == PCAP_ERROR_BREAK) {
			end_pass(r);
			continue;
		}
		if (rc != 1) {
			if (r->in.stopped)
				r->ended = true; /* in the middle of a record */
			else
				replay_fail(r, r->in.error ? -r->in.error : -EINVAL, byte,
					    pcap_geterr(r->in.pcap));
			continue;
		}
		r->number++;
		if (!is_usable(r, h))
			continue;
		mine = r->usable % r->workers == r->worker;
		due_ns = pcap_schedule_frame(
			&r->schedule, (__int128)h->ts.tv_sec * 1000000000 + h->ts.tv_usec, &back);
		r->counts.time_back += mine && back;
		r->usable++;
		if (!mine)
			continue;
		have = HO_MIN(h->caplen, h->len);
		r->counts.padded += have < h->len;
		if (keep_record(r, data, have, h->len, r->config.speed > 0 ? due_ns : 0)) {
			replay_fail(r, -ENOMEM, byte, "out of memory");
			continue;
		}
		return true;
	}
	return false;
}

/* The record of the next frame to build, NULL at the end. */
static const struct record *next_record(struct replay *r)
{
	if (r->built == r->read && !read_next(r))
		return NULL;
	return &r->record[r->built % KEEP];
}

static unsigned replay_next(struct tr_source *source, struct pk_cache *cache, uint64_t now_ns,
			    struct pk_slot *slots, unsigned n, unsigned frames, unsigned *built)
{
	struct replay *r = HO_CONTAINER_OF(source, struct replay, base);
	unsigned used = 0;

	frames = HO_MIN(frames, (unsigned)KEEP - 1);
	for (*built = 0; *built < frames; ++*built) {
		const struct record *record = next_record(r);
		unsigned some;

		if (!record)
			break;
		some = pk_frame_from_bytes(cache, record->data, record->bytes, slots + used,
					   n - used);
		if (!some)
			break;
		used += some;
		r->built++;
	}
	return used;
}

static void replay_unsend(struct tr_source *source, unsigned frames)
{
	HO_CONTAINER_OF(source, struct replay, base)->built -= frames;
}

static uint64_t replay_due_ns(struct tr_source *source)
{
	struct replay *r = HO_CONTAINER_OF(source, struct replay, base);
	const struct record *record = next_record(r);

	return record ? record->due_ns : RT_FOREVER;
}

static void replay_destroy(struct tr_source *source)
{
	struct replay *r = HO_CONTAINER_OF(source, struct replay, base);

	pcap_in_close(&r->in);
	for (unsigned i = 0; i < KEEP; i++)
		free(r->record[i].data);
	free(r->path);
	free(r);
}

static const struct tr_source_ops replay_ops = {
	.next = replay_next,
	.unsend = replay_unsend,
	.due_ns = replay_due_ns,
	.destroy = replay_destroy,
};

int tr_replay_create(const struct tr_replay_config *config, unsigned worker, unsigned workers,
		     struct tr_source **out, struct ho_err *err)
{
	struct replay *r;
	int rc, fd;

	if (!(config->speed >= 0))
		return ho_err_set(err, -EINVAL, "%s: a speed of %g is impossible", config->path,
				  config->speed);
	if (!workers || worker >= workers)
		return ho_err_set(err, -EINVAL, "worker %u of %u makes no frames", worker, workers);
	fd = pcap_in_open_path(config->path);
	if (fd == -EISDIR)
		return ho_err_set(err, fd, "%s: is a directory, not a capture file", config->path);
	if (fd < 0)
		return ho_err_set(err, fd, "%s: %s", config->path, ho_strerror(fd));
	r = calloc(1, sizeof(*r));
	if (r)
		r->path = strdup(config->path);
	if (!r || !r->path) {
		close(fd);
		free(r);
		return ho_err_set(err, -ENOMEM, "%s: out of memory", config->path);
	}
	r->base.ops = &replay_ops;
	r->config = *config;
	r->schedule.speed = config->speed > 0 ? config->speed : 1;
	r->worker = worker;
	r->workers = workers;
	rc = pcap_in_open(&r->in, config->rt, fd, err);
	if (rc) {
		ho_err_prefix(err, "%s", config->path);
		goto fail;
	}
	if (r->in.stream && (config->loops != 1 || workers > 1)) {
		rc = ho_err_set(err, -EINVAL,
				"%s: not a file: it can be read once only (one loop, one worker)",
				config->path);
		goto fail;
	}
	/* What is wrong from the start is the caller's to hear at once. */
	if (!next_record(r) && (r->error || r->in.stopped)) {
		rc = r->error ? ho_err_set(err, r->error, "%s", r->cause.text)
			      : ho_err_set(err, -EINTR, "%s: interrupted before its first frame",
					   config->path);
		goto fail;
	}
	*out = &r->base;
	return 0;
fail:
	replay_destroy(&r->base);
	return rc;
}

void tr_replay_ask_stop(struct tr_source *source)
{
	if (source->ops == &replay_ops)
		pcap_in_ask_stop(&HO_CONTAINER_OF(source, struct replay, base)->in);
}

int tr_replay_error(const struct tr_source *source, struct ho_err *err)
{
	const struct replay *r = HO_CONTAINER_OF(source, struct replay, base);

	if (source->ops != &replay_ops || !r->error)
		return 0;
	return ho_err_set(err, r->error, "%s", r->cause.text);
}

void tr_replay_counts(const struct tr_source *source, struct tr_replay_counts *out)
{
	const struct replay *r = HO_CONTAINER_OF(source, struct replay, base);

	memset(out, 0, sizeof(*out));
	if (source->ops != &replay_ops)
		return;
	*out = r->counts;
	out->frames = r->built;
}
