// SPDX-License-Identifier: BSD-2-Clause
#include "lab/store.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT 256 /* mappings of a kind; what is more is unmapped */

struct kept {
	void *map;
	size_t bytes;
};

struct lab_store {
	struct kept kept[LAB_STORE_KINDS][KEPT];
	unsigned n[LAB_STORE_KINDS];
};

int lab_store_create(struct lab_store **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void lab_store_destroy(struct lab_store *store)
{
	if (!store)
		return;
	for (unsigned kind = 0; kind < LAB_STORE_KINDS; kind++)
		for (unsigned i = 0; i < store->n[kind]; i++)
			munmap(store->kept[kind][i].map, store->kept[kind][i].bytes);
	free(store);
}

static void *map_new(enum lab_store_kind kind, size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 flags | (kind == LAB_STORE_STACK ? MAP_STACK : 0), -1, 0);

	if (map == MAP_FAILED)
		return NULL;
	if (kind == LAB_STORE_BUFFERS) {
		madvise(map, bytes, MADV_HUGEPAGE);
	} else if (mprotect(map, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) < 0) {
		munmap(map, bytes);
		return NULL;
	}
	return map;
}

/* The shortest that is long enough; of equals, what was given last. */
void *lab_store_take(struct lab_store *store, enum lab_store_kind kind, size_t *bytes)
{
	struct kept *best = NULL;
	void *map;

	for (unsigned i = store ? store->n[kind] : 0; i--;) {
		struct kept *k = &store->kept[kind][i];

		if (k->bytes >= *bytes && (!best || k->bytes < best->bytes))
			best = k;
		if (best && best->bytes == *bytes)
			break;
	}
	if (best) {
		map = best->map;
		*bytes = best->bytes;
		*best = store->kept[kind][--store->n[kind]];
		return map;
	}
	/* All are too short: one makes room, so that there are never more than were needed at once.
	 */
	if (store && store->n[kind]) {
		struct kept *short_one = &store->kept[kind][--store->n[kind]];

		munmap(short_one->map, short_one->bytes);
	}
	return map_new(kind, *bytes);
}

void lab_store_give(struct lab_store *store, enum lab_store_kind kind, void *map, size_t bytes)
{
	if (!map)
		return;
	if (store && store->n[kind] < KEPT)
		store->kept[kind][store->n[kind]++] = (struct kept){ map, bytes };
	else
		munmap(map, bytes);
}
