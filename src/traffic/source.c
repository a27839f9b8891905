// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/source.h"

#include "traffic/source_kind.h"

void tr_source_destroy(struct tr_source *source)
{
	if (source)
		source->ops->destroy(source);
}

unsigned tr_source_next(struct tr_source *source, struct pk_cache *cache, uint64_t now_ns,
			struct pk_slot *slots, unsigned n, unsigned frames, unsigned *built)
{
	return source->ops->next(source, cache, now_ns, slots, n, frames, built);
}

void tr_source_unsend(struct tr_source *source, unsigned frames)
{
	source->ops->unsend(source, frames);
}

uint64_t tr_source_due_ns(struct tr_source *source)
{
	return source->ops->due_ns ? source->ops->due_ns(source) : 0;
}
