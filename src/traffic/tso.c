// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/tso.h"

#include <errno.h>
#include <stdlib.h>

#include "traffic/source_kind.h"

struct tso {
	struct tr_source base;
	struct tr_source *inner;
	uint32_t mss;
};

static unsigned next(struct tr_source *source, struct pk_cache *cache, uint64_t now_ns,
		     struct pk_slot *slots, unsigned n, unsigned frames, unsigned *built)
{
	struct tso *t = (struct tso *)source;
	unsigned used = tr_source_next(t->inner, cache, now_ns, slots, n, frames, built);

	for (unsigned i = 0; i < used; i += pk_frame_slots(slots + i, used - i)) {
		slots[i].flags |= PK_TSO | PK_CSUM_PARTIAL;
		slots[i].meta = t->mss;
	}
	return used;
}

static void unsend(struct tr_source *source, unsigned frames)
{
	tr_source_unsend(((struct tso *)source)->inner, frames);
}

static uint64_t due_ns(struct tr_source *source)
{
	return tr_source_due_ns(((struct tso *)source)->inner);
}

static void destroy(struct tr_source *source)
{
	tr_source_destroy(((struct tso *)source)->inner);
	free(source);
}

static const struct tr_source_ops ops = {
	.next = next,
	.unsend = unsend,
	.due_ns = due_ns,
	.destroy = destroy,
};

int tr_tso_create(struct tr_source *inner, uint32_t mss, struct tr_source **out, struct ho_err *err)
{
	struct tso *t;

	if (mss < 64 || mss > 9600)
		return ho_err_set(err, -EINVAL, "segments of %u bytes: 64 to 9600 are possible",
				  mss);
	t = calloc(1, sizeof(*t));
	if (!t)
		return ho_err_set(err, -ENOMEM, "out of memory for a source");
	*t = (struct tso){ .base.ops = &ops, .inner = inner, .mss = mss };
	*out = &t->base;
	return 0;
}
