// SPDX-License-Identifier: BSD-2-Clause
#include "lab/fifo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int lab_fifo_init(struct lab_fifo *fifo, uint32_t bytes)
{
	uint64_t size = 4096;

	while (size < bytes)
		size *= 2;
	*fifo = (struct lab_fifo){ .base = aligned_alloc(HO_CACHE_LINE, size), .size = size };
	return fifo->base ? 0 : -ENOMEM;
}

void lab_fifo_free(struct lab_fifo *fifo)
{
	free(fifo->base);
	fifo->base = NULL;
}

void lab_fifo_clear(struct lab_fifo *fifo)
{
	fifo->head = fifo->tail = 0;
	fifo->records = 0;
}

/* Copies the records, without the filler, to the front of a ring twice as large. Like the event
 * queue's heap it grows to what a scenario needs and stays; no caller could go on without it. */
static void grow(struct lab_fifo *fifo, uint32_t span)
{
	struct lab_fifo bigger = { .size = 2 * fifo->size };
	uint64_t cursor = fifo->head;
	void *record;

	while (bigger.size < 2ull * span)
		bigger.size *= 2;
	bigger.base = aligned_alloc(HO_CACHE_LINE, bigger.size);
	if (!bigger.base)
		abort();
	while ((record = lab_fifo_next(fifo, &cursor)) != NULL) {
		struct lab_fifo_mark *mark = (struct lab_fifo_mark *)record - 1;

		memcpy(bigger.base + bigger.tail, mark, mark->span);
		bigger.tail += mark->span;
		bigger.records++;
	}
	free(fifo->base);
	*fifo = bigger;
}

void lab_fifo_make_room(struct lab_fifo *fifo, uint32_t span)
{
	uint64_t place = fifo->tail & (fifo->size - 1);
	uint64_t filler = place + span > fifo->size ? fifo->size - place : 0;

	if (fifo->tail - fifo->head + filler + span > fifo->size) {
		grow(fifo, span);
		return;
	}
	*lab_fifo_mark_at(fifo, fifo->tail) =
		(struct lab_fifo_mark){ .span = (uint32_t)filler, .payload = 0 };
	fifo->tail += filler;
}
