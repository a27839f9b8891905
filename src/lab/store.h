/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that runs leave to the next run in the same process: stacks and packet buffers. Mapping
 * and unmapping them, and the page faults between, take longer than many a short run.
 *
 * What is in it does not change a run: a stack is written before it is read, and so is a buffer.
 * Not for several threads.
 */
#ifndef HOLDOFF_LAB_STORE_H
#define HOLDOFF_LAB_STORE_H

#include <stddef.h>

struct lab_store;

enum lab_store_kind {
	LAB_STORE_STACK,   /* with a guard page below it, that belongs to `bytes` */
	LAB_STORE_BUFFERS, /* on huge pages where the kernel can */
	LAB_STORE_KINDS,
};

/* -ENOMEM. */
int lab_store_create(struct lab_store **out);
/* Everything must have been given back. NULL is allowed. */
void lab_store_destroy(struct lab_store *store);

/* A mapping of at least *bytes, which becomes its length. store = NULL: a new one. NULL when there
 * is no memory. */
void *lab_store_take(struct lab_store *store, enum lab_store_kind kind, size_t *bytes);
/* Keeps it for the next taker, or unmaps it. map = NULL is allowed. */
void lab_store_give(struct lab_store *store, enum lab_store_kind kind, void *map, size_t bytes);

#endif
