/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the sampler: what its files share. Users see linux/sample.h. */
#ifndef HOLDOFF_LINUX_SAMPLER_H
#define HOLDOFF_LINUX_SAMPLER_H

#include "linux/devstat.h"
#include "linux/procfs.h"
#include "linux/sample.h"

#define SAMPLER_MISSING_MAX   16
#define SAMPLER_MISSING_BYTES 200

/* Where a vector may run. */
struct sampler_affinity {
	unsigned irq;
	char list[64];
};

/* An interface, and what is not read each time. */
struct sampler_if {
	char name[LX_IF_BYTES];
	unsigned index; /* of the last reading; 0: it was not there */
	uint64_t refreshed_ns;
	char virtio[32];    /* "virtio2", or "" */
	bool shared_device; /* other interfaces are on the same device */
	bool qstats;        /* the kernel counts its queues */
	uint32_t has;       /* LX_IF_* of the following */
	struct lx_facts facts;
	unsigned n_napis, n_queues, n_settings, n_msi, n_affinities;
	struct lx_napi *napi;
	struct lx_queue *queue; /* without counters */
	struct lx_setting *setting;
	unsigned *msi; /* vectors of its device, by number */
	struct sampler_affinity *affinity;
};

struct lx_sampler {
	char *root; /* NULL: this machine */
	uint64_t tick_ns, refresh_ns, refreshed_ns;
	struct lx_text text;
	struct lx_devstat devstat;
	struct lx_vectors vectors;
	struct lx_netcore netcore;
	struct lx_soaker *soaker;
	int pid[LX_PIDS_MAX];
	unsigned n_pids;
	bool all_tasks;
	bool refresh; /* at the next reading, whatever refresh_ns says */
	unsigned n_ifaces;
	struct sampler_if iface[LX_IFACES_MAX];
	unsigned n_missing;
	char missing[SAMPLER_MISSING_MAX][SAMPLER_MISSING_BYTES];
};

/* Adds a sentence to what is missing. */
void sampler_missing(struct lx_sampler *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The parts, into a sample. vectors are read by the first and used by the second. -ENOMEM. */
int sampler_read_host(struct lx_sampler *s, uint64_t now_ns, struct lx_host *host);
int sampler_read_iface(struct lx_sampler *s, uint64_t now_ns, struct sampler_if *of,
		       const struct lx_host *host, struct lx_ifdata *out);
void sampler_if_fini(struct sampler_if *of);

/* Makes *array n elements of that size long, keeping it when there is no memory (-ENOMEM). */
int sampler_fit(void *array, unsigned n, size_t size);

/* Makes the block that all on_cpu of an interface's n_irqs vectors point into, of `old`, the one of
 * before, or NULL; zeroed. -ENOMEM: it is freed, and there are no vectors. */
int sampler_fit_counts(struct lx_ifdata *data, uint32_t *old, unsigned n_cpus);

#endif
