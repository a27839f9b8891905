// SPDX-License-Identifier: BSD-2-Clause
#include "linux/sample.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "linux/sampler.h"

/* The tick of a tree of files: every architecture's USER_HZ but one's. */
#define FILES_TICK_NS 10000000u

void sampler_missing(struct lx_sampler *s, const char *fmt, ...)
{
	va_list ap;

	if (s->n_missing == SAMPLER_MISSING_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(s->missing[s->n_missing++], SAMPLER_MISSING_BYTES, fmt, ap);
	va_end(ap);
}

const char *lx_sampler_missing(const struct lx_sampler *s, unsigned i)
{
	return i < s->n_missing ? s->missing[i] : NULL;
}

int sampler_fit(void *array, unsigned n, size_t size)
{
	void **at = array, *grown;

	/* Not of size 0, which frees. */
	grown = realloc(*at, (n ? n : 1) * size);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	return 0;
}

int sampler_fit_counts(struct lx_ifdata *data, uint32_t *counts, unsigned n_cpus)
{
	size_t need = (size_t)data->n_irqs * n_cpus;

	if (!need) {
		free(counts);
		return 0;
	}
	if (sampler_fit(&counts, data->n_irqs * n_cpus, sizeof(*counts)) < 0) {
		free(counts);
		for (unsigned i = 0; i < data->n_irqs; i++)
			data->irq[i].on_cpu = NULL;
		data->n_irqs = 0;
		return -ENOMEM;
	}
	memset(counts, 0, need * sizeof(*counts));
	for (unsigned i = 0; i < data->n_irqs; i++)
		data->irq[i].on_cpu = counts + (size_t)i * n_cpus;
	return 0;
}

static bool name_possible(const char *name)
{
	size_t n = strlen(name);

	/* dev_valid_name: what would be a path, or a word of its own elsewhere, is none. */
	if (!n || n >= LX_IF_BYTES || !strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (const char *p = name; *p; p++) {
		if (*p == '/' || *p == ':' || (unsigned char)*p <= ' ')
			return false;
	}
	return true;
}

int lx_sampler_open(const struct lx_sampler_config *config, struct lx_sampler **out,
		    struct ho_err *err)
{
	struct lx_sampler *s;
	long hz = sysconf(_SC_CLK_TCK);

	if (config->n_ifaces > LX_IFACES_MAX)
		return ho_err_set(err, -EINVAL, "%u interfaces: at most %d at once are possible",
				  config->n_ifaces, LX_IFACES_MAX);
	if (config->n_pids > LX_PIDS_MAX)
		return ho_err_set(err, -EINVAL, "%u processes: at most %d at once are possible",
				  config->n_pids, LX_PIDS_MAX);
	for (unsigned i = 0; i < config->n_ifaces; i++) {
		if (!name_possible(config->iface[i]))
			return ho_err_set(err, -EINVAL,
					  "'%s' cannot be an interface: names have 1 to %d "
					  "characters, without blanks, slashes and colons",
					  config->iface[i], LX_IF_BYTES - 1);
	}
	s = calloc(1, sizeof(*s));
	if (s && config->root)
		s->root = strdup(config->root);
	if (!s || (config->root && !s->root)) {
		free(s);
		return ho_err_set(err, -ENOMEM, "out of memory for a sampler");
	}
	s->devstat.fd = -1;
	s->tick_ns = config->root || hz <= 0 ? FILES_TICK_NS : 1000000000u / (uint64_t)hz;
	s->refresh_ns = config->refresh_ns;
	s->soaker = config->soaker;
	s->n_pids = config->n_pids;
	for (unsigned i = 0; i < config->n_pids; i++)
		s->pid[i] = config->pid[i];
	s->all_tasks = config->all_tasks;
	s->n_ifaces = config->n_ifaces;
	for (unsigned i = 0; i < config->n_ifaces; i++)
		snprintf(s->iface[i].name, LX_IF_BYTES, "%s", config->iface[i]);
	*out = s;
	return 0;
}

void lx_sampler_close(struct lx_sampler *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n_ifaces; i++)
		sampler_if_fini(&s->iface[i]);
	lx_text_fini(&s->text);
	lx_devstat_fini(&s->devstat);
	lx_vectors_fini(&s->vectors);
	free(s->root);
	free(s);
}

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void free_ifdata(struct lx_ifdata *data)
{
	if (data->n_irqs)
		free(data->irq[0].on_cpu);
	free(data->irq);
	free(data->queue);
	free(data->napi);
	free(data->counter);
	free(data->setting);
	*data = (struct lx_ifdata){ 0 };
}

/* As many interfaces; new ones are zeroed. */
static int fit_ifaces(struct lx_ifdata **iface, unsigned *have, unsigned n)
{
	for (unsigned i = n; i < *have; i++)
		free_ifdata(&(*iface)[i]);
	*have = HO_MIN(*have, n);
	if (sampler_fit(iface, n, sizeof(**iface)) < 0)
		return -ENOMEM;
	memset(*iface + *have, 0, (n - *have) * sizeof(**iface));
	*have = n;
	return 0;
}

int lx_sampler_read(struct lx_sampler *s, struct lx_sample *out, struct ho_err *err)
{
	uint64_t begin = monotonic_ns();
	int rc = fit_ifaces(&out->iface, &out->n_ifaces, s->n_ifaces);

	s->n_missing = 0;
	/* The interfaces' counters are read next to each other: the machine's come first. */
	if (rc == 0)
		rc = sampler_read_host(s, begin, &out->host);
	for (unsigned i = 0; rc == 0 && i < s->n_ifaces; i++)
		rc = sampler_read_iface(s, begin, &s->iface[i], &out->host, &out->iface[i]);
	out->at_ns = begin + (monotonic_ns() - begin) / 2;
	s->refresh = false;
	return rc < 0 ? ho_err_set(err, rc, "out of memory for counters") : 0;
}

void lx_sampler_refresh(struct lx_sampler *s)
{
	s->refresh = true;
}

void lx_sample_fini(struct lx_sample *sample)
{
	for (unsigned i = 0; i < sample->n_ifaces; i++)
		free_ifdata(&sample->iface[i]);
	free(sample->iface);
	free(sample->host.cpu);
	*sample = (struct lx_sample){ 0 };
}

void lx_delta_fini(struct lx_delta *delta)
{
	for (unsigned i = 0; i < delta->n_ifaces; i++)
		free_ifdata(&delta->iface[i]);
	free(delta->iface);
	free(delta->host.cpu);
	*delta = (struct lx_delta){ 0 };
}

/* ---- Differences ---- */

/* A counter that fell was reset, or is the kernel's idle time, which may step back a little. */
static uint64_t diff(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

/* Of a counter that is 32 bits wide in the kernel: a fall by more than half of its range is taken
 * for an overflow, a smaller one for a reset. */
static uint64_t diff32(uint64_t from, uint64_t to)
{
	uint32_t by = (uint32_t)to - (uint32_t)from;

	if (to >= from)
		return to - from;
	return from - to > UINT32_MAX / 2 ? by : 0;
}

static void diff_fields(const struct lx_field *field, const void *from, const void *to, void *out,
			bool *backwards)
{
	for (; field->name; field++) {
		uint64_t a = lx_field_get(from, field), b = lx_field_get(to, field);

		if (b < a && backwards)
			*backwards = true;
		*(uint64_t *)((char *)out + field->offset) = diff(a, b);
	}
}

static const struct lx_cpu *find_cpu(const struct lx_host *host, unsigned id)
{
	for (unsigned i = 0; i < host->n_cpus; i++) {
		if (host->cpu[i].id == id)
			return &host->cpu[i];
	}
	return NULL;
}

static void diff_cpu(const struct lx_cpu *from, const struct lx_cpu *to, struct lx_cpu *out)
{
	*out = (struct lx_cpu){ .id = to->id, .online = from && from->online && to->online };
	out->softnet.backlog = to->softnet.backlog;
	if (!from)
		return;
	if (out->online) {
		for (unsigned i = 0; i < LX_TIMES; i++)
			out->time_ns[i] = diff(from->time_ns[i], to->time_ns[i]);
	}
	out->softnet.processed = diff32(from->softnet.processed, to->softnet.processed);
	out->softnet.dropped = diff32(from->softnet.dropped, to->softnet.dropped);
	out->softnet.squeezed = diff32(from->softnet.squeezed, to->softnet.squeezed);
	out->softnet.rps = diff32(from->softnet.rps, to->softnet.rps);
	out->softnet.flow_limit = diff32(from->softnet.flow_limit, to->softnet.flow_limit);
	out->net_rx = diff32(from->net_rx, to->net_rx);
	out->net_tx = diff32(from->net_tx, to->net_tx);
	/* A sum of 32-bit counters, one of which may have overflowed. */
	out->interrupts = to->interrupts >= from->interrupts ? to->interrupts - from->interrupts
							     : diff32(from->interrupts & UINT32_MAX,
								      to->interrupts & UINT32_MAX);
	out->local_timer = diff32(from->local_timer, to->local_timer);
	out->resched = diff32(from->resched, to->resched);
	out->schedules = diff32(from->schedules, to->schedules);
	out->soaked_ns = diff(from->soaked_ns, to->soaked_ns);
	out->soaker_ns = diff(from->soaker_ns, to->soaker_ns);
	/* Time is counted by ticks there, so this may be a little more. */
	out->soaker_ns = HO_MIN(out->soaker_ns, out->time_ns[LX_TIME_USER]);
	out->time_ns[LX_TIME_USER] -= out->soaker_ns;
	out->time_ns[LX_TIME_IDLE] += out->soaker_ns;
}

static int diff_host(const struct lx_host *from, const struct lx_host *to, struct lx_host *out)
{
	if (sampler_fit(&out->cpu, to->n_cpus, sizeof(*out->cpu)) < 0)
		return -ENOMEM;
	out->n_cpus = to->n_cpus;
	for (unsigned i = 0; i < to->n_cpus; i++)
		diff_cpu(find_cpu(from, to->cpu[i].id), &to->cpu[i], &out->cpu[i]);
	out->has = from->has & to->has;
	out->switches = diff(from->switches, to->switches);
	out->forks = diff(from->forks, to->forks);
	out->softirq_runs = diff(from->softirq_runs, to->softirq_runs);
	diff_fields(lx_proto_fields, &from->proto, &to->proto, &out->proto, NULL);
	out->tasks = (struct lx_tasks){
		.threads = to->tasks.threads,
		.voluntary = diff(from->tasks.voluntary, to->tasks.voluntary),
		.involuntary = diff(from->tasks.involuntary, to->tasks.involuntary),
		.user_ns = diff(from->tasks.user_ns, to->tasks.user_ns),
		.system_ns = diff(from->tasks.system_ns, to->tasks.system_ns),
	};
	out->netcore = to->netcore;
	return 0;
}

/* CPUs may have come in between, so columns are found by id. */
static int diff_irqs(const struct lx_ifdata *from, const struct lx_host *from_host,
		     const struct lx_ifdata *to, const struct lx_host *host, struct lx_ifdata *out)
{
	uint32_t *counts = out->n_irqs ? out->irq[0].on_cpu : NULL;

	out->n_irqs = 0;
	if (sampler_fit(&out->irq, to->n_irqs, sizeof(*out->irq)) < 0) {
		free(counts);
		return -ENOMEM;
	}
	if (to->n_irqs)
		memcpy(out->irq, to->irq, to->n_irqs * sizeof(*out->irq));
	out->n_irqs = to->n_irqs;
	if (sampler_fit_counts(out, counts, host->n_cpus) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < out->n_irqs; i++) {
		struct lx_irq *irq = &out->irq[i];
		const struct lx_irq *was = lx_irq_find(from, irq->irq);
		uint32_t most = 0;

		irq->count = 0;
		if (!was || strcmp(was->name, irq->name))
			continue;
		for (unsigned j = 0; j < host->n_cpus; j++) {
			const struct lx_cpu *cpu = find_cpu(from_host, host->cpu[j].id);
			uint32_t by;

			if (!cpu)
				continue;
			by = (uint32_t)diff32(was->on_cpu[cpu - from_host->cpu],
					      to->irq[i].on_cpu[j]);
			irq->on_cpu[j] = by;
			irq->count += by;
			if (by > most) {
				most = by;
				irq->busiest = host->cpu[j].id;
			}
		}
	}
	return 0;
}

static void diff_queue(const struct lx_queue *from, struct lx_queue *queue)
{
	if (!from || !from->counted)
		from = queue;
	queue->packets = diff(from->packets, queue->packets);
	queue->bytes = diff(from->bytes, queue->bytes);
	queue->drops = diff(from->drops, queue->drops);
	queue->errors = diff(from->errors, queue->errors);
	queue->stops = diff(from->stops, queue->stops);
}

static void diff_counters(const struct lx_ifdata *from, struct lx_ifdata *out)
{
	for (unsigned i = 0; i < out->n_counters; i++) {
		struct lx_counter *counter = &out->counter[i];
		const struct lx_counter *was =
			i < from->n_counters && !strcmp(from->counter[i].name, counter->name)
				? &from->counter[i]
				: lx_counter_find(from, counter->name);

		counter->backwards = was && counter->value < was->value;
		counter->value = was ? diff(was->value, counter->value) : 0;
	}
}

#define COPY(out, to, array, n)                                                \
	(sampler_fit(&(out)->array, (to)->n, sizeof(*(out)->array)) < 0        \
		 ? -ENOMEM                                                     \
		 : (memcpy((out)->array, (to)->n ? (to)->array : (out)->array, \
			   (to)->n * sizeof(*(out)->array)),                   \
		    (out)->n = (to)->n, 0))

static int diff_iface(const struct lx_ifdata *from, const struct lx_host *from_host,
		      const struct lx_ifdata *to, const struct lx_host *host, struct lx_ifdata *out)
{
	memcpy(out->name, to->name, sizeof(out->name));
	out->index = to->index;
	out->appeared = !from->index && to->index;
	out->vanished = from->index && !to->index;
	out->replaced = from->index && to->index && from->index != to->index;
	out->backwards = false;
	out->facts = to->facts;
	out->has = to->has & (LX_IF_NAPI | LX_IF_FACTS | LX_IF_SETTINGS);
	memset(&out->link, 0, sizeof(out->link));
	if (diff_irqs(from, from_host, to, host, out) < 0 || COPY(out, to, queue, n_queues) < 0 ||
	    COPY(out, to, napi, n_napis) < 0 || COPY(out, to, counter, n_counters) < 0 ||
	    COPY(out, to, setting, n_settings) < 0)
		return -ENOMEM;
	if (from->index != to->index) {
		/* Nothing of it can be compared. */
		from = to;
		diff_irqs(to, host, to, host, out);
	}
	out->has |= from->has & to->has;
	diff_fields(lx_link_fields, &from->link, &to->link, &out->link, &out->backwards);
	for (unsigned i = 0; i < out->n_queues; i++)
		diff_queue(lx_queue_find(from, out->queue[i].dir, out->queue[i].id),
			   &out->queue[i]);
	diff_counters(from, out);
	return 0;
}

int lx_delta_make(const struct lx_sample *from, const struct lx_sample *to, struct lx_delta *out)
{
	unsigned n = HO_MIN(from->n_ifaces, to->n_ifaces);
	int rc = fit_ifaces(&out->iface, &out->n_ifaces, n);

	out->interval_ns = diff(from->at_ns, to->at_ns);
	if (rc == 0)
		rc = diff_host(&from->host, &to->host, &out->host);
	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = diff_iface(&from->iface[i], &from->host, &to->iface[i], &to->host,
				&out->iface[i]);
	return rc;
}

static int copy_iface(const struct lx_ifdata *from, unsigned n_cpus, struct lx_ifdata *out)
{
	uint32_t *counts = out->n_irqs ? out->irq[0].on_cpu : NULL;
	struct lx_ifdata had = *out;

	*out = *from;
	out->irq = had.irq;
	out->queue = had.queue;
	out->napi = had.napi;
	out->counter = had.counter;
	out->setting = had.setting;
	out->n_irqs = 0;
	if (sampler_fit(&out->irq, from->n_irqs, sizeof(*out->irq)) < 0) {
		free(counts);
		return -ENOMEM;
	}
	if (from->n_irqs)
		memcpy(out->irq, from->irq, from->n_irqs * sizeof(*out->irq));
	out->n_irqs = from->n_irqs;
	if (sampler_fit_counts(out, counts, n_cpus) < 0)
		return -ENOMEM;
	if (out->n_irqs && n_cpus)
		memcpy(out->irq[0].on_cpu, from->irq[0].on_cpu,
		       (size_t)out->n_irqs * n_cpus * sizeof(uint32_t));
	return COPY(out, from, queue, n_queues) < 0 || COPY(out, from, napi, n_napis) < 0 ||
			       COPY(out, from, counter, n_counters) < 0 ||
			       COPY(out, from, setting, n_settings) < 0
		       ? -ENOMEM
		       : 0;
}

int lx_delta_copy(const struct lx_delta *delta, struct lx_delta *out)
{
	int rc = fit_ifaces(&out->iface, &out->n_ifaces, delta->n_ifaces);
	struct lx_cpu *cpu = out->host.cpu;

	if (rc == 0)
		rc = sampler_fit(&cpu, delta->host.n_cpus, sizeof(*cpu));
	out->host.cpu = cpu;
	if (rc < 0)
		return rc;
	if (delta->host.n_cpus)
		memcpy(cpu, delta->host.cpu, delta->host.n_cpus * sizeof(*cpu));
	out->host = delta->host;
	out->host.cpu = cpu;
	out->interval_ns = delta->interval_ns;
	for (unsigned i = 0; rc == 0 && i < delta->n_ifaces; i++)
		rc = copy_iface(&delta->iface[i], delta->host.n_cpus, &out->iface[i]);
	return rc;
}

/* ---- Looking things up ---- */

const struct lx_counter *lx_counter_find(const struct lx_ifdata *iface, const char *name)
{
	for (unsigned i = 0; i < iface->n_counters; i++) {
		if (!strcmp(iface->counter[i].name, name))
			return &iface->counter[i];
	}
	return NULL;
}

const struct lx_queue *lx_queue_find(const struct lx_ifdata *iface, enum lx_dir dir, unsigned id)
{
	for (unsigned i = 0; i < iface->n_queues; i++) {
		if (iface->queue[i].dir == dir && iface->queue[i].id == id)
			return &iface->queue[i];
	}
	return NULL;
}

const struct lx_setting *lx_setting_find(const struct lx_ifdata *iface, const char *name)
{
	for (unsigned i = 0; i < iface->n_settings; i++) {
		if (!strcmp(iface->setting[i].name, name))
			return &iface->setting[i];
	}
	return NULL;
}

const struct lx_irq *lx_irq_find(const struct lx_ifdata *iface, unsigned irq)
{
	for (unsigned i = 0; i < iface->n_irqs; i++) {
		if (iface->irq[i].irq == irq)
			return &iface->irq[i];
	}
	return NULL;
}

double lx_cpu_share(const struct lx_cpu *cpu, enum lx_time time)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < LX_TIMES; i++)
		all += cpu->time_ns[i];
	return all ? (double)cpu->time_ns[time] / (double)all : 0;
}

uint64_t lx_irqs_sum(const struct lx_ifdata *iface)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < iface->n_irqs; i++)
		sum += iface->irq[i].count;
	return sum;
}
