// SPDX-License-Identifier: BSD-2-Clause
/* The machine's part of a sample. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "linux/sampler.h"
#include "linux/soaker.h"

static bool read_file(struct lx_sampler *s, const char *path)
{
	return lx_text_read(&s->text, s->root, "%s", path) == 0;
}

/* All threads of a process, or the one thread if its tasks cannot be listed. */
static bool read_process(struct lx_sampler *s, const char *pid, struct lx_tasks *tasks)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%s/task", s->root ? s->root : "", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (lx_text_read(&s->text, s->root, "proc/%s/task/%s/status", pid, entry->d_name) <
			    0 ||
		    !lx_parse_status(&s->text, tasks))
			continue;
		if (lx_text_read(&s->text, s->root, "proc/%s/task/%s/stat", pid, entry->d_name) ==
		    0)
			lx_parse_task_stat(&s->text, s->tick_ns, tasks);
		tasks->threads++;
		found = true;
	}
	closedir(dir);
	return found;
}

static bool read_all_tasks(struct lx_sampler *s, struct lx_tasks *tasks)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", s->root ? s->root : "");
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			found = read_process(s, entry->d_name, tasks) || found;
	}
	closedir(dir);
	return found;
}

static void read_tasks(struct lx_sampler *s, struct lx_host *host)
{
	bool found = s->all_tasks && read_all_tasks(s, &host->tasks);

	for (unsigned i = 0; i < s->n_pids && !s->all_tasks; i++) {
		char pid[16];

		snprintf(pid, sizeof(pid), "%d", s->pid[i]);
		if (read_process(s, pid, &host->tasks))
			found = true;
		else
			sampler_missing(s, "there is no process %d, or it is not to be looked at",
					s->pid[i]);
	}
	if (found)
		host->has |= LX_HOST_TASKS;
}

static void read_netcore(struct lx_sampler *s)
{
	static const struct {
		const char *path;
		size_t offset;
	} files[] = {
		{ "proc/sys/net/core/netdev_budget", offsetof(struct lx_netcore, budget) },
		{ "proc/sys/net/core/netdev_budget_usecs",
		  offsetof(struct lx_netcore, budget_usecs) },
		{ "proc/sys/net/core/netdev_max_backlog",
		  offsetof(struct lx_netcore, max_backlog) },
		{ "proc/sys/net/core/dev_weight", offsetof(struct lx_netcore, dev_weight) },
		{ "proc/sys/net/core/rmem_max", offsetof(struct lx_netcore, rmem_max) },
	};

	s->netcore = (struct lx_netcore){ 0 };
	for (size_t i = 0; i < HO_ARRAY_LEN(files); i++) {
		uint64_t value;

		if (lx_file_u64(s->root, files[i].path, &value))
			*(uint32_t *)((char *)&s->netcore + files[i].offset) =
				(uint32_t)HO_MIN(value, (uint64_t)UINT32_MAX);
	}
}

int sampler_read_host(struct lx_sampler *s, uint64_t now_ns, struct lx_host *host)
{
	struct lx_cpu *cpu = host->cpu;
	bool snmp;

	*host = (struct lx_host){ .cpu = cpu };
	if (!s->refreshed_ns || now_ns - s->refreshed_ns >= s->refresh_ns) {
		read_netcore(s);
		s->refreshed_ns = now_ns;
	}
	host->netcore = s->netcore;
	if (read_file(s, "proc/stat") && lx_parse_stat(&s->text, s->tick_ns, host))
		host->has |= LX_HOST_TIMES;
	else
		sampler_missing(s, "no CPU times: /proc/stat cannot be read");
	if (read_file(s, "proc/net/softnet_stat") && lx_parse_softnet(&s->text, host))
		host->has |= LX_HOST_SOFTNET;
	else
		sampler_missing(s, "no softnet counters: /proc/net/softnet_stat cannot be read");
	if (read_file(s, "proc/softirqs") && lx_parse_softirqs(&s->text, host))
		host->has |= LX_HOST_SOFTIRQS;
	if (read_file(s, "proc/schedstat") && lx_parse_schedstat(&s->text, host))
		host->has |= LX_HOST_SCHED;
	else
		sampler_missing(s, "no context switches by CPU: this kernel has no "
				   "/proc/schedstat (CONFIG_SCHEDSTATS)");
	if (read_file(s, "proc/interrupts") && lx_parse_interrupts(&s->text, &s->vectors, host)) {
		host->has |= LX_HOST_IRQS;
	} else {
		s->vectors.n = 0;
		sampler_missing(s, "no interrupts: /proc/interrupts cannot be read");
	}
	snmp = read_file(s, "proc/net/snmp") && lx_parse_snmp(&s->text, &host->proto);
	if (read_file(s, "proc/net/netstat"))
		lx_parse_snmp(&s->text, &host->proto);
	if (read_file(s, "proc/net/snmp6"))
		lx_parse_snmp6(&s->text, &host->proto);
	if (snmp)
		host->has |= LX_HOST_PROTO;
	else
		sampler_missing(s, "no losses of UDP and TCP: /proc/net/snmp cannot be read");
	if (s->all_tasks || s->n_pids)
		read_tasks(s, host);
	for (unsigned i = 0; s->soaker && i < host->n_cpus; i++) {
		if (lx_soaker_read(s->soaker, host->cpu[i].id, &host->cpu[i].soaked_ns,
				   &host->cpu[i].soaker_ns))
			host->has |= LX_HOST_SOAK;
	}
	return 0;
}
