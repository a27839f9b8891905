// SPDX-License-Identifier: BSD-2-Clause
/* An interface's part of a sample. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "linux/iface.h"
#include "linux/napi.h"
#include "linux/params.h"
#include "linux/sampler.h"
#include "linux/xdpdev.h"

void sampler_if_fini(struct sampler_if *of)
{
	free(of->napi);
	free(of->queue);
	free(of->setting);
	free(of->msi);
	free(of->affinity);
}

/* ---- Files of an interface ---- */

static bool if_u64(const struct lx_sampler *s, const struct sampler_if *of, const char *file,
		   uint64_t *out)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "sys/class/net/%s/%s", of->name, file);
	return lx_file_u64(s->root, path, out);
}

static bool if_line(const struct lx_sampler *s, const struct sampler_if *of, const char *file,
		    char *buf, size_t bytes)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "sys/class/net/%s/%s", of->name, file);
	return lx_file_line(s->root, path, buf, bytes);
}

/* The last part of where a link points to. */
static bool if_link(const struct lx_sampler *s, const struct sampler_if *of, const char *file,
		    char *buf, size_t bytes)
{
	char path[PATH_MAX], to[PATH_MAX];
	const char *last;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/%s", s->root ? s->root : "", of->name,
		 file);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return false;
	to[n] = '\0';
	last = strrchr(to, '/');
	last = last ? last + 1 : to;
	if (!*last || strlen(last) >= bytes)
		return false;
	memcpy(buf, last, strlen(last) + 1);
	return true;
}

/* Calls fn for each name in a directory below the interface's; false: it is not there. */
static bool if_each(const struct lx_sampler *s, const struct sampler_if *of, const char *dir_name,
		    void (*fn)(void *arg, const char *name), void *arg)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/%s", s->root ? s->root : "", of->name,
		 dir_name);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			fn(arg, entry->d_name);
	}
	closedir(dir);
	return true;
}

/* ---- What changes seldom ---- */

static void count_name(void *arg, const char *name)
{
	++*(unsigned *)arg;
}

static void add_msi(void *arg, const char *name)
{
	struct sampler_if *of = arg;

	if (!isdigit((unsigned char)*name) ||
	    sampler_fit(&of->msi, of->n_msi + 1, sizeof(*of->msi)) < 0)
		return;
	of->msi[of->n_msi++] = (unsigned)strtoul(name, NULL, 10);
}

static int compare_unsigned(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? -1 : x > y;
}

/* Its device's vectors. A virtio device is a child of the one that has them. */
static void refresh_vectors(const struct lx_sampler *s, struct sampler_if *of)
{
	unsigned interfaces = 0;
	uint64_t irq;
	char name[64];

	of->n_msi = 0;
	of->virtio[0] = '\0';
	if (if_link(s, of, "device", name, sizeof(name)) && !strncmp(name, "virtio", 6))
		snprintf(of->virtio, sizeof(of->virtio), "%.31s", name);
	if (!if_each(s, of, "device/msi_irqs", add_msi, of) && of->virtio[0])
		if_each(s, of, "device/../msi_irqs", add_msi, of);
	if (!of->n_msi && if_u64(s, of, "device/irq", &irq) && irq && irq <= INT_MAX &&
	    sampler_fit(&of->msi, 1, sizeof(*of->msi)) == 0)
		of->msi[of->n_msi++] = (unsigned)irq;
	if (of->n_msi)
		qsort(of->msi, of->n_msi, sizeof(*of->msi), compare_unsigned);
	if_each(s, of, "device/net", count_name, &interfaces);
	of->shared_device = interfaces > 1;
}

/* "8.0 GT/s PCIe" -> 8000 */
static uint32_t transfers(const char *text)
{
	double gt = strtod(text, NULL);

	return gt > 0 && gt < 1000 ? (uint32_t)(gt * 1000 + 0.5) : 0;
}

static void refresh_facts(const struct lx_sampler *s, struct sampler_if *of,
			  const struct lx_iface *iface)
{
	struct lx_facts *facts = &of->facts;
	char line[64];
	uint64_t value;

	*facts = (struct lx_facts){ .numa_node = -1 };
	if (s->root) {
		if (!if_link(s, of, "device/driver", facts->driver, sizeof(facts->driver)))
			facts->driver[0] = '\0';
		if (if_line(s, of, "speed", line, sizeof(line)) && atol(line) > 0)
			facts->link_bps = (uint64_t)atol(line) * 1000000u;
		if (if_u64(s, of, "mtu", &value))
			facts->mtu = (uint32_t)value;
		if (if_u64(s, of, "flags", &value)) {
			facts->up = value & IFF_UP;
			facts->running = facts->up &&
					 if_line(s, of, "operstate", line, sizeof(line)) &&
					 strcmp(line, "down") != 0;
		}
	} else {
		lx_driver_name(of->name, facts->driver, sizeof(facts->driver));
		facts->link_bps = iface->link_bps;
		facts->mtu = iface->mtu;
		facts->up = iface->up;
		facts->running = iface->running;
		facts->rx_queues = iface->rx_queues;
		facts->tx_queues = iface->tx_queues;
	}
	if (!if_link(s, of, "device", facts->bus, sizeof(facts->bus)))
		facts->bus[0] = '\0';
	if (if_line(s, of, "device/numa_node", line, sizeof(line)))
		facts->numa_node = atoi(line);
	if (if_line(s, of, "device/current_link_speed", line, sizeof(line)))
		facts->pcie_mtps = transfers(line);
	if (if_u64(s, of, "device/current_link_width", &value) && value <= 64)
		facts->pcie_lanes = (uint32_t)value;
	of->has |= LX_IF_FACTS;
}

/* Queues by their directories or their numbers, where netlink does not list them. */
static void make_queues(struct sampler_if *of, unsigned rx, unsigned tx)
{
	of->n_queues = 0;
	if (rx > 4096 || tx > 4096 || sampler_fit(&of->queue, rx + tx, sizeof(*of->queue)) < 0)
		return;
	for (unsigned i = 0; i < rx + tx; i++)
		of->queue[i] = (struct lx_queue){
			.dir = i < rx ? LX_RX : LX_TX,
			.id = i < rx ? i : i - rx,
			.irq = -1,
		};
	of->n_queues = rx + tx;
}

struct queue_dirs {
	unsigned rx, tx;
};

static void count_queue(void *arg, const char *name)
{
	struct queue_dirs *dirs = arg;

	dirs->rx += !strncmp(name, "rx-", 3);
	dirs->tx += !strncmp(name, "tx-", 3);
}

static void refresh_steering(const struct lx_sampler *s, struct sampler_if *of)
{
	for (unsigned i = 0; i < of->n_queues; i++) {
		char file[40], line[512];

		of->queue[i].rps = false;
		if (of->queue[i].dir != LX_RX)
			continue;
		snprintf(file, sizeof(file), "queues/rx-%u/rps_cpus", of->queue[i].id);
		/* A mask in hexadecimal with commas. */
		if (if_line(s, of, file, line, sizeof(line)))
			of->queue[i].rps = line[strspn(line, "0,")] != '\0';
	}
}

static void refresh_queues(const struct lx_sampler *s, struct sampler_if *of)
{
	bool settings = false;
	uint64_t value;
	struct queue_dirs dirs = { 0 };

	of->n_napis = of->n_queues = 0;
	if (!s->root) {
		if (lx_napi_list(of->index, &of->napi, &of->n_napis, &settings) == 0 && of->n_napis)
			of->has |= LX_IF_NAPI;
		if (lx_napi_queues(of->index, &of->queue, &of->n_queues) < 0)
			of->n_queues = 0;
		if (!of->n_queues)
			make_queues(of, of->facts.rx_queues, of->facts.tx_queues);
	} else {
		if_each(s, of, "queues", count_queue, &dirs);
		of->facts.rx_queues = dirs.rx;
		of->facts.tx_queues = dirs.tx;
		make_queues(of, dirs.rx, dirs.tx);
	}
	/* Kernels before 6.13 have the settings by interface only. */
	for (unsigned i = 0; i < of->n_napis && !settings; i++) {
		if (if_u64(s, of, "napi_defer_hard_irqs", &value))
			of->napi[i].defer_hard_irqs = (uint32_t)value;
		if (if_u64(s, of, "gro_flush_timeout", &value))
			of->napi[i].gro_flush_timeout_ns = value;
	}
	for (unsigned i = 0; i < of->n_queues; i++) {
		for (unsigned j = 0; j < of->n_napis && of->queue[i].napi_id; j++) {
			if (of->napi[j].id == of->queue[i].napi_id)
				of->queue[i].irq = of->napi[j].irq;
		}
	}
	refresh_steering(s, of);
	of->qstats = true;
}

static void refresh_settings(const struct lx_sampler *s, struct sampler_if *of)
{
	static const struct {
		const char *name, *file;
	} files[] = {
		{ "defer-hard-irqs", "napi_defer_hard_irqs" },
		{ "gro-flush-timeout", "gro_flush_timeout" },
		{ "threaded", "threaded" },
	};
	int n;

	of->n_settings = 0;
	if (sampler_fit(&of->setting, LX_PARAMS_MAX, sizeof(*of->setting)) < 0)
		return;
	if (!s->root) {
		n = lx_param_list(of->name, of->setting, LX_PARAMS_MAX, NULL);
		of->n_settings = n > 0 ? (unsigned)n : 0;
	}
	for (size_t i = 0; s->root && i < HO_ARRAY_LEN(files); i++) {
		struct lx_setting *setting = &of->setting[of->n_settings];

		*setting = (struct lx_setting){ .name = files[i].name, .max = UINT64_MAX };
		if (if_u64(s, of, files[i].file, &setting->value))
			of->n_settings++;
	}
	if (of->n_settings)
		of->has |= LX_IF_SETTINGS;
}

static void refresh(const struct lx_sampler *s, struct sampler_if *of, struct lx_iface *iface)
{
	of->has = 0;
	/* All affinities are asked for anew when the vectors are. */
	of->n_affinities = 0;
	if (!s->root)
		lx_iface_ask_ethtool(iface);
	refresh_facts(s, of, iface);
	refresh_vectors(s, of);
	refresh_queues(s, of);
	refresh_settings(s, of);
}

/* ---- What is read each time ---- */

static bool is_msi(const struct sampler_if *of, unsigned irq)
{
	return of->n_msi &&
	       bsearch(&irq, of->msi, of->n_msi, sizeof(irq), compare_unsigned) != NULL;
}

static bool is_napi_irq(const struct sampler_if *of, unsigned irq)
{
	for (unsigned i = 0; i < of->n_napis; i++) {
		if (of->napi[i].irq >= 0 && (unsigned)of->napi[i].irq == irq)
			return true;
	}
	return false;
}

static const char *affinity_of(const struct lx_sampler *s, struct sampler_if *of, unsigned irq)
{
	struct sampler_affinity *a;
	char path[64];

	for (unsigned i = 0; i < of->n_affinities; i++) {
		if (of->affinity[i].irq == irq)
			return of->affinity[i].list;
	}
	if (sampler_fit(&of->affinity, of->n_affinities + 1, sizeof(*of->affinity)) < 0)
		return "";
	a = &of->affinity[of->n_affinities++];
	a->irq = irq;
	snprintf(path, sizeof(path), "proc/irq/%u/effective_affinity_list", irq);
	/* Empty where no CPU is the one, and not there before 4.13. */
	if (!lx_file_line(s->root, path, a->list, sizeof(a->list)) || !a->list[0]) {
		snprintf(path, sizeof(path), "proc/irq/%u/smp_affinity_list", irq);
		lx_file_line(s->root, path, a->list, sizeof(a->list));
	}
	return a->list;
}

/* Vectors and queues know of each other by name, or by the NAPI context between them. */
static void join_irqs(struct lx_ifdata *out)
{
	for (unsigned i = 0; i < out->n_irqs; i++) {
		struct lx_irq *irq = &out->irq[i];

		for (unsigned j = 0; j < out->n_queues && irq->queue < 0; j++) {
			if (out->queue[j].irq < 0 || (unsigned)out->queue[j].irq != irq->irq)
				continue;
			irq->queue = (int)out->queue[j].id;
			for (unsigned k = 0; k < out->n_queues; k++) {
				if (out->queue[k].irq != out->queue[j].irq)
					continue;
				irq->rx = irq->rx || out->queue[k].dir == LX_RX;
				irq->tx = irq->tx || out->queue[k].dir == LX_TX;
			}
		}
		for (unsigned j = 0; j < out->n_queues && irq->queue >= 0; j++) {
			struct lx_queue *q = &out->queue[j];

			if (q->irq < 0 && (int)q->id == irq->queue &&
			    (q->dir == LX_RX ? irq->rx : irq->tx))
				q->irq = (int)irq->irq;
		}
	}
	/* The only vector serves all. */
	if (out->n_irqs == 1 && out->irq[0].queue < 0) {
		out->irq[0].queue = 0;
		out->irq[0].rx = out->irq[0].tx = true;
		for (unsigned j = 0; j < out->n_queues; j++)
			out->queue[j].irq = (int)out->irq[0].irq;
	}
}

static int read_irqs(const struct lx_sampler *s, struct sampler_if *of, const struct lx_host *host,
		     struct lx_ifdata *out)
{
	const struct lx_vectors *v = &s->vectors;
	uint32_t *counts = out->n_irqs ? out->irq[0].on_cpu : NULL;
	bool by_name = false;

	out->n_irqs = 0;
	if (sampler_fit(&out->irq, v->n, sizeof(*out->irq)) < 0) {
		free(counts);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < v->n && !by_name; i++)
		by_name = lx_irq_is_of(v->irq[i].name, of->name, of->virtio);
	for (unsigned i = 0; i < v->n; i++) {
		const struct lx_irq *irq = &v->irq[i];
		bool named = by_name && lx_irq_is_of(irq->name, of->name, of->virtio);

		if (!named && !is_napi_irq(of, irq->irq) &&
		    /* Of several interfaces on one device, only names tell whose they are. */
		    (!is_msi(of, irq->irq) || (of->shared_device && by_name)))
			continue;
		out->irq[out->n_irqs] = *irq;
		/* Where the copy came from. */
		out->irq[out->n_irqs].busiest = i;
		out->n_irqs++;
	}
	if (sampler_fit_counts(out, counts, host->n_cpus) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < out->n_irqs; i++) {
		struct lx_irq *irq = &out->irq[i];
		const uint32_t *from = v->irq[irq->busiest].on_cpu;
		uint32_t most = 0;

		irq->busiest = 0;
		for (unsigned c = 0, at = 0; c < v->n_columns; c++) {
			/* Both rise, so one pass finds the columns. */
			while (at < host->n_cpus && host->cpu[at].id < v->column[c])
				at++;
			if (at == host->n_cpus || host->cpu[at].id != v->column[c]) {
				at = 0;
				continue;
			}
			irq->on_cpu[at] = from[c];
			if (from[c] > most) {
				most = from[c];
				irq->busiest = host->cpu[at].id;
			}
		}
		lx_irq_queue(irq->name, of->name, &irq->queue, &irq->rx, &irq->tx);
		snprintf(irq->affinity, sizeof(irq->affinity), "%s", affinity_of(s, of, irq->irq));
	}
	if (out->n_irqs)
		out->has |= LX_IF_IRQS;
	return 0;
}

static int read_queues(const struct lx_sampler *s, struct sampler_if *of, struct lx_ifdata *out)
{
	int counted = 0;

	if (sampler_fit(&out->queue, of->n_queues, sizeof(*out->queue)) < 0)
		return -ENOMEM;
	if (of->n_queues)
		memcpy(out->queue, of->queue, of->n_queues * sizeof(*out->queue));
	out->n_queues = of->n_queues;
	if (!s->root && of->qstats) {
		counted = lx_napi_qstats(of->index, out->queue, out->n_queues);
		/* Drivers that do not count so are not asked again before the next refresh. */
		of->qstats = counted > 0;
	}
	if (counted <= 0)
		counted = lx_devstat_queues(out->counter, out->n_counters, &out->queue,
					    &out->n_queues);
	if (counted == -ENOMEM)
		return -ENOMEM;
	if (counted > 0)
		out->has |= LX_IF_QUEUES;
	return 0;
}

static int read_counters(struct lx_sampler *s, struct sampler_if *of, bool again,
			 struct lx_ifdata *out)
{
	int rc;

	out->n_counters = 0;
	if (s->root)
		rc = lx_text_read(&s->text, s->root, "ethtool/%s", of->name) < 0
			     ? -EOPNOTSUPP
			     : lx_devstat_parse(&s->text, &out->counter, &out->n_counters);
	else
		rc = lx_devstat_read(&s->devstat, of->name, again, &out->counter, &out->n_counters);
	if (rc == -ENOMEM)
		return rc;
	if (out->n_counters)
		out->has |= LX_IF_DRIVER;
	else if (rc == 0 || rc == -EOPNOTSUPP)
		sampler_missing(s, "%s: its driver has no counters of its own (ethtool -S)",
				of->name);
	else if (rc != -EAGAIN && rc != -ENODEV)
		sampler_missing(s, "%s: cannot read its driver's counters: %s", of->name,
				ho_strerror(rc));
	return 0;
}

/* /proc/net/dev of a tree of files, and what sysfs has beyond it. */
static bool read_link_files(struct lx_sampler *s, struct sampler_if *of, unsigned *index,
			    struct rtnl_link_stats64 *link)
{
	bool found = lx_text_read(&s->text, s->root, "proc/net/dev") == 0 &&
		     lx_parse_netdev(&s->text, of->name, link);
	uint64_t value;

	for (const struct lx_field *field = lx_link_fields; field->name; field++) {
		char file[64];

		snprintf(file, sizeof(file), "statistics/%s", field->name);
		if (if_u64(s, of, file, &value)) {
			*(uint64_t *)((char *)link + field->offset) = value;
			found = true;
		}
	}
	*index = if_u64(s, of, "ifindex", &value) ? (unsigned)value : found;
	return found;
}

int sampler_read_iface(struct lx_sampler *s, uint64_t now_ns, struct sampler_if *of,
		       const struct lx_host *host, struct lx_ifdata *out)
{
	struct lx_iface iface = { 0 };
	struct ho_err err = { 0 };
	unsigned index = 0;
	bool again, link;
	int rc = 0;

	memcpy(out->name, of->name, sizeof(out->name));
	out->has = 0;
	out->appeared = out->vanished = out->replaced = out->backwards = false;
	memset(&out->link, 0, sizeof(out->link));
	if (s->root) {
		link = read_link_files(s, of, &index, &out->link);
	} else {
		rc = lx_iface_look(of->name, &iface, &out->link, &err);
		link = rc == 0;
		index = rc == 0 ? iface.index : 0;
	}
	again = index != of->index || s->refresh || now_ns - of->refreshed_ns >= s->refresh_ns;
	of->index = out->index = index;
	if (!index) {
		if (rc < 0 && rc != -ENODEV)
			sampler_missing(s, "%s: cannot be read: %s", of->name,
					err.text[0] ? err.text : ho_strerror(rc));
		else
			sampler_missing(s, "%s: there is no such interface", of->name);
		if (out->n_irqs)
			free(out->irq[0].on_cpu);
		out->n_irqs = out->n_queues = out->n_napis = out->n_counters = 0;
		out->n_settings = 0;
		out->facts = (struct lx_facts){ .numa_node = -1 };
		return 0;
	}
	if (again) {
		refresh(s, of, &iface);
		of->refreshed_ns = now_ns;
	}
	out->has = of->has | (link ? LX_IF_LINK : 0);
	out->facts = of->facts;
	if (!s->root) {
		out->facts.up = iface.up;
		out->facts.running = iface.running;
		out->facts.mtu = iface.mtu;
	}
	if (sampler_fit(&out->napi, of->n_napis, sizeof(*out->napi)) < 0 ||
	    sampler_fit(&out->setting, of->n_settings, sizeof(*out->setting)) < 0)
		return -ENOMEM;
	if (of->n_napis)
		memcpy(out->napi, of->napi, of->n_napis * sizeof(*out->napi));
	out->n_napis = of->n_napis;
	if (of->n_settings)
		memcpy(out->setting, of->setting, of->n_settings * sizeof(*out->setting));
	out->n_settings = of->n_settings;
	rc = read_counters(s, of, again, out);
	if (rc == 0)
		rc = read_queues(s, of, out);
	if (rc == 0)
		rc = read_irqs(s, of, host, out);
	if (rc == 0)
		join_irqs(out);
	return rc;
}
