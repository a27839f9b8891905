/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue of records of different lengths in one ring of bytes: frames on a wire, frames in a
 * chip's packet buffer, writes on their way to memory. A record is contiguous, so its owner fills
 * it in place. The ring doubles when it is too small and never shrinks: after the first moments
 * of a run nothing is allocated any more.
 */
#ifndef HOLDOFF_LAB_FIFO_H
#define HOLDOFF_LAB_FIFO_H

#include <stdint.h>

#include "base/compiler.h"

struct lab_fifo {
	uint8_t *base;
	uint64_t size;       /* bytes; a power of two */
	uint64_t head, tail; /* bytes ever taken, ever put; the place is the value modulo size */
	uint32_t records;    /* how many are in it */
};

/* In front of each record; with it a record begins at a multiple of 8. */
struct lab_fifo_mark {
	uint32_t span;    /* bytes to the next mark */
	uint32_t payload; /* 0: only filler up to the ring's end */
};

/* -ENOMEM. lab_fifo_free takes what it made. */
int lab_fifo_init(struct lab_fifo *fifo, uint32_t bytes);
void lab_fifo_free(struct lab_fifo *fifo);
void lab_fifo_clear(struct lab_fifo *fifo);

/* Slow path of lab_fifo_put: makes room for `span` contiguous bytes. */
void lab_fifo_make_room(struct lab_fifo *fifo, uint32_t span);

static inline struct lab_fifo_mark *lab_fifo_mark_at(const struct lab_fifo *fifo, uint64_t at)
{
	return (struct lab_fifo_mark *)(fifo->base + (at & (fifo->size - 1)));
}

/*
 * Room for a record of up to `bytes` bytes at the tail, to be filled and then kept with
 * lab_fifo_keep; without that it is as if nothing had happened. May move earlier records: a
 * pointer to one is good only until the next call.
 */
static inline void *lab_fifo_put(struct lab_fifo *fifo, uint32_t bytes)
{
	uint32_t span = (uint32_t)sizeof(struct lab_fifo_mark) + ((bytes + 7) & ~7u);
	uint64_t place = fifo->tail & (fifo->size - 1);

	if (ho_unlikely(place + span > fifo->size ||
	                fifo->tail - fifo->head + span > fifo->size))
		lab_fifo_make_room(fifo, span);
	return lab_fifo_mark_at(fifo, fifo->tail) + 1;
}

/* Keeps the first `bytes` (not 0) of the record that lab_fifo_put gave last. */
static inline void lab_fifo_keep(struct lab_fifo *fifo, uint32_t bytes)
{
	struct lab_fifo_mark *mark = lab_fifo_mark_at(fifo, fifo->tail);

	mark->payload = bytes;
	mark->span = (uint32_t)sizeof(*mark) + ((bytes + 7) & ~7u);
	fifo->tail += mark->span;
	fifo->records++;
}

/* The record at *cursor or after it; NULL at the end. Start with *cursor = fifo->head; afterwards
 * *cursor is behind the record. */
static inline void *lab_fifo_next(const struct lab_fifo *fifo, uint64_t *cursor)
{
	while (*cursor != fifo->tail) {
		struct lab_fifo_mark *mark = lab_fifo_mark_at(fifo, *cursor);

		*cursor += mark->span;
		if (ho_likely(mark->payload))
			return mark + 1;
	}
	return NULL;
}

/* The oldest record; NULL if there is none. */
static inline void *lab_fifo_head(const struct lab_fifo *fifo)
{
	uint64_t cursor = fifo->head;

	return lab_fifo_next(fifo, &cursor);
}

/* Forgets the oldest record; there must be one. */
static inline void lab_fifo_pop(struct lab_fifo *fifo)
{
	lab_fifo_next(fifo, &fifo->head);
	fifo->records--;
}

#endif
