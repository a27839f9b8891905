// SPDX-License-Identifier: BSD-2-Clause
#include "lab/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct direction {
	struct lab_wire *wire;
	struct lab_fifo frames;   /* on their way */
	struct sim_event arrival; /* of the first of them */
	sim_ps free_at;           /* the next frame may begin */
	struct lab_wire_user to;
	struct lab_wire_stats stats; /* busy includes frames that have yet to leave */
};

struct lab_wire {
	struct sim *sim;
	struct lab_wire_config config;
	struct lab_rate rate;
	bool up;
	struct direction dir[2]; /* from this end */
	void (*tap)(void *arg, unsigned end, sim_ps start, const struct lab_frame *frame);
	void *tap_arg;
};

static void arrive(void *arg)
{
	struct direction *dir = arg;
	struct sim *sim = dir->wire->sim;
	struct lab_frame *frame;

	while ((frame = lab_fifo_head(&dir->frames)) != NULL && frame->at <= sim_now(sim)) {
		/* Taken off first: the receiver may cut the link. The bytes stay, since only the
		 * other end puts frames into this direction. */
		lab_fifo_pop(&dir->frames);
		dir->stats.delivered++;
		if (dir->to.receive)
			dir->to.receive(dir->to.arg, frame);
	}
	frame = lab_fifo_head(&dir->frames);
	if (frame && !sim_scheduled(&dir->arrival))
		sim_schedule(sim, &dir->arrival, frame->at + dir->to.slack);
}

int lab_wire_create(struct sim *sim, const struct lab_wire_config *config, struct lab_wire **out,
		    struct ho_err *err)
{
	struct lab_wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		return ho_err_set(err, -ENOMEM, "no memory for a wire");
	wire->sim = sim;
	wire->config = *config;
	if (!wire->config.bps)
		wire->config.bps = 10000000000ull;
	wire->rate = lab_rate_of(wire->config.bps);
	wire->up = true;
	for (unsigned end = 0; end < 2; end++) {
		struct direction *dir = &wire->dir[end];

		dir->wire = wire;
		sim_event_init(&dir->arrival, arrive, dir);
		if (lab_fifo_init(&dir->frames, 65536)) {
			lab_wire_destroy(wire);
			return ho_err_set(err, -ENOMEM, "no memory for the frames on a wire");
		}
	}
	*out = wire;
	return 0;
}

void lab_wire_destroy(struct lab_wire *wire)
{
	if (!wire)
		return;
	for (unsigned end = 0; end < 2; end++) {
		sim_cancel(wire->sim, &wire->dir[end].arrival);
		lab_fifo_free(&wire->dir[end].frames);
	}
	free(wire);
}

void lab_wire_attach(struct lab_wire *wire, unsigned end, const struct lab_wire_user *user)
{
	wire->dir[!end].to = *user;
	wire->dir[!end].arrival.host = user->host;
	if (wire->up && user->link)
		user->link(user->arg, true);
}

struct lab_frame *lab_wire_begin(struct lab_wire *wire, unsigned end, uint32_t max_bytes)
{
	struct lab_frame *frame =
		lab_fifo_put(&wire->dir[end].frames, (uint32_t)sizeof(*frame) + max_bytes);

	frame->flags = 0;
	return frame;
}

sim_ps lab_wire_send(struct lab_wire *wire, unsigned end, uint32_t bytes, sim_ps ready)
{
	struct direction *dir = &wire->dir[end];
	struct lab_frame *frame =
		(struct lab_frame *)(lab_fifo_mark_at(&dir->frames, dir->frames.tail) + 1);
	sim_ps start = HO_MAX(HO_MAX(ready, dir->free_at), sim_now(wire->sim));
	sim_ps body = lab_rate_time(wire->rate, HO_MAX(bytes, LAB_FRAME_MIN_BYTES) + LAB_FCS_BYTES);
	sim_ps whole = body + lab_rate_time(wire->rate, LAB_WIRE_GAP_BYTES);

	dir->stats.frames++;
	dir->stats.bytes += bytes;
	if (ho_unlikely(!wire->up)) {
		dir->stats.lost_link_down++;
		return ready;
	}
	frame->bytes = bytes;
	/* The preamble goes first and the gap last; a frame has arrived with its last bit. */
	frame->at = start + body + lab_rate_time(wire->rate, 8) + wire->config.propagation;
	if (ho_unlikely(wire->tap))
		wire->tap(wire->tap_arg, end, start, frame);
	dir->free_at = start + whole;
	dir->stats.busy += whole;
	lab_fifo_keep(&dir->frames, (uint32_t)sizeof(*frame) + bytes);
	if (!sim_scheduled(&dir->arrival))
		sim_schedule(wire->sim, &dir->arrival, frame->at + dir->to.slack);
	return dir->free_at;
}

sim_ps lab_wire_free_at(const struct lab_wire *wire, unsigned end)
{
	return wire->dir[end].free_at;
}

struct lab_rate lab_wire_rate(const struct lab_wire *wire)
{
	return wire->rate;
}

uint64_t lab_wire_bps(const struct lab_wire *wire)
{
	return wire->config.bps;
}

bool lab_wire_link(const struct lab_wire *wire)
{
	return wire->up;
}

void lab_wire_set_link(struct lab_wire *wire, bool up)
{
	if (wire->up == up)
		return;
	wire->up = up;
	for (unsigned end = 0; end < 2; end++) {
		struct direction *dir = &wire->dir[end];

		if (up)
			continue;
		dir->stats.lost_link_down += dir->frames.records;
		lab_fifo_clear(&dir->frames);
		sim_cancel(wire->sim, &dir->arrival);
		if (dir->free_at > sim_now(wire->sim)) {
			dir->stats.busy -= dir->free_at - sim_now(wire->sim);
			dir->free_at = sim_now(wire->sim);
		}
	}
	for (unsigned end = 0; end < 2; end++)
		if (wire->dir[end].to.link)
			wire->dir[end].to.link(wire->dir[end].to.arg, up);
}

void lab_wire_tap(struct lab_wire *wire,
		  void (*fn)(void *arg, unsigned end, sim_ps start, const struct lab_frame *frame),
		  void *arg)
{
	wire->tap = fn;
	wire->tap_arg = arg;
}

void lab_wire_stats(const struct lab_wire *wire, unsigned end, struct lab_wire_stats *out)
{
	const struct direction *dir = &wire->dir[end];
	sim_ps now = sim_now(wire->sim);

	*out = dir->stats;
	/* Frames that wait to leave stand back to back up to free_at, but for gaps in front of
	 * those that are not ready. */
	if (dir->free_at > now)
		out->busy -= HO_MIN(out->busy, dir->free_at - now);
}

int lab_wire_check(const struct lab_wire *wire, struct ho_err *err)
{
	for (unsigned end = 0; end < 2; end++) {
		const struct direction *dir = &wire->dir[end];
		const struct lab_wire_stats *s = &dir->stats;

		if (s->frames != s->delivered + s->lost_link_down + dir->frames.records)
			return ho_err_set(err, -EPROTO,
					  "wire: end %u sent %" PRIu64 " frames, but %" PRIu64
					  " were delivered, %" PRIu64 " lost and %u are in flight",
					  end, s->frames, s->delivered, s->lost_link_down,
					  dir->frames.records);
	}
	return 0;
}
