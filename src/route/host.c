// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is for the host's own stack although it came to the router: gathered over a turn, because
 * giving it away is a system call.
 */
#include <string.h>

#include "route/worker.h"

void ro_host_flush(struct ro_worker *w)
{
	struct ro_host *h = &w->host;
	unsigned taken;

	if (!h->n)
		return;
	taken = w->to_host(w->to_host_arg, w->index, h->port, h->slot, h->n);
	ho_ctr_add(&w->ctr.local, taken);
	for (unsigned i = taken; i < h->frames; i++)
		ro_count_drop(w, RO_DROP_LOCAL_KERNEL);
	for (unsigned i = 0; i < h->n; i++)
		pk_free_slots(w->cache, &h->slot[i], 1);
	h->n = h->frames = 0;
}

void ro_to_host(struct ro_worker *w, struct ro_pkt *p)
{
	struct ro_host *h = &w->host;

	if (!w->to_host || !p->in) {
		ro_drop(w, p, RO_DROP_LOCAL_KERNEL);
		return;
	}
	if (h->n && (h->port != p->in->port || h->frames == RO_HOST_FRAMES ||
		     h->n + p->n > HO_ARRAY_LEN(h->slot)))
		ro_host_flush(w);
	h->port = p->in->port;
	memcpy(h->slot + h->n, p->slot, p->n * sizeof(p->slot[0]));
	h->n += p->n;
	h->frames++;
}
