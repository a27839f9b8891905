// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cmd/stat.h"
#include "linux/devstat.h"

#define MOVED_SHOWN 5

uint64_t stat_drops(const struct rtnl_link_stats64 *link, unsigned direction)
{
	uint64_t sum = 0;

	for (const struct lx_field *f = lx_link_fields; f->name; f++) {
		if ((f->flags & LX_FIELD_DROP) && (f->flags & direction) &&
		    !(f->flags & LX_FIELD_PART))
			sum += lx_field_get(link, f);
	}
	return sum;
}

uint64_t stat_errors(const struct rtnl_link_stats64 *link)
{
	return link->rx_errors + link->tx_errors;
}

void stat_mean_cpu(const struct lx_host *host, struct lx_cpu *out)
{
	*out = (struct lx_cpu){ 0 };
	for (unsigned i = 0; i < host->n_cpus; i++) {
		const struct lx_cpu *cpu = &host->cpu[i];

		for (unsigned t = 0; t < LX_TIMES; t++)
			out->time_ns[t] += cpu->time_ns[t];
		out->softnet.processed += cpu->softnet.processed;
		out->softnet.dropped += cpu->softnet.dropped;
		out->softnet.squeezed += cpu->softnet.squeezed;
		out->softnet.backlog += cpu->softnet.backlog;
		out->net_rx += cpu->net_rx;
		out->net_tx += cpu->net_tx;
		out->interrupts += cpu->interrupts;
		out->schedules += cpu->schedules;
		out->soaked_ns += cpu->soaked_ns;
	}
}

const struct lx_cpu *stat_hot_cpu(const struct lx_host *host)
{
	const struct lx_cpu *hot = NULL;

	for (unsigned i = 0; i < host->n_cpus; i++) {
		const struct lx_cpu *cpu = &host->cpu[i];

		if (cpu->online &&
		    (!hot || lx_cpu_share(cpu, LX_TIME_IDLE) < lx_cpu_share(hot, LX_TIME_IDLE)))
			hot = cpu;
	}
	return hot;
}

static int larger_first(const void *a, const void *b)
{
	const struct lx_counter *x = *(const struct lx_counter *const *)a;
	const struct lx_counter *y = *(const struct lx_counter *const *)b;

	return x->value > y->value ? -1 : x->value < y->value;
}

unsigned stat_moved(const struct lx_ifdata *iface, const struct lx_counter **out, unsigned room)
{
	const struct lx_counter **all = malloc((iface->n_counters + 1) * sizeof(*all));
	unsigned n = 0;

	if (!all)
		return 0;
	for (unsigned i = 0; i < iface->n_counters; i++) {
		const struct lx_counter *c = &iface->counter[i];
		enum lx_queue_counter what;
		enum lx_dir dir;
		unsigned queue;

		if (!c->value ||
		    (lx_devstat_queue(c->name, &dir, &queue, &what) && what < LX_Q_DROPS))
			continue;
		all[n++] = c;
	}
	qsort(all, n, sizeof(*all), larger_first);
	memcpy(out, all, HO_MIN(n, room) * sizeof(*all));
	free(all);
	return n;
}

struct words {
	char *buf;
	size_t used, bytes;
};

static void __attribute__((format(printf, 2, 3))) say(struct words *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (w->used >= w->bytes)
		return;
	if (w->used)
		w->used +=
			(size_t)snprintf(w->buf + w->used, w->bytes - w->used, "%s", STAT_BETWEEN);
	if (w->used >= w->bytes)
		return;
	va_start(ap, fmt);
	n = vsnprintf(w->buf + w->used, w->bytes - w->used, fmt, ap);
	va_end(ap);
	w->used += n > 0 ? (size_t)n : 0;
}

static void say_fields(struct words *w, const struct lx_field *field, const void *of,
		       const struct lx_delta *delta)
{
	for (; field->name; field++) {
		uint64_t value = lx_field_get(of, field);

		if (value && (field->flags & (LX_FIELD_DROP | LX_FIELD_ERROR)))
			say(w, "%s %.0f", field->name, stat_rate(delta, value));
	}
}

const char *stat_named(const struct lx_delta *delta, const struct lx_ifdata *iface, bool first,
		       char *buf, size_t bytes)
{
	struct words w = { buf, 0, bytes };
	const struct lx_counter *moved[MOVED_SHOWN];
	unsigned n;

	buf[0] = '\0';
	say_fields(&w, lx_link_fields, &iface->link, delta);
	if (first) {
		struct lx_cpu mean;

		stat_mean_cpu(&delta->host, &mean);
		if (mean.softnet.dropped)
			say(&w, "softnet_dropped %.0f", stat_rate(delta, mean.softnet.dropped));
		say_fields(&w, lx_proto_fields, &delta->host.proto, delta);
	}
	for (unsigned i = 0; i < iface->n_irqs; i++) {
		const struct lx_irq *irq = &iface->irq[i];

		if (irq->count)
			say(&w, "irq %s%d %.0f",
			    irq->queue < 0       ? "other "
			    : irq->rx && irq->tx ? "q"
			    : irq->rx            ? "rx"
						 : "tx",
			    irq->queue < 0 ? (int)irq->irq : irq->queue,
			    stat_rate(delta, irq->count));
	}
	n = stat_moved(iface, moved, MOVED_SHOWN);
	for (unsigned i = 0; i < HO_MIN(n, (unsigned)MOVED_SHOWN); i++)
		say(&w, "%s %.0f", moved[i]->name, stat_rate(delta, moved[i]->value));
	if (n > MOVED_SHOWN)
		say(&w, "%u more (--driver)", n - MOVED_SHOWN);
	/* Cut inside a word it would name another thing. */
	if (w.used >= bytes && bytes > 4)
		memcpy(buf + bytes - 4, "...", 4);
	return buf;
}
