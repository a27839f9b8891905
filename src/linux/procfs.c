// SPDX-License-Identifier: BSD-2-Clause
#include "linux/procfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

const char *const lx_time_names[LX_TIMES] = {
	"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest",
};

struct lx_cpu *lx_host_cpu(struct lx_host *host, unsigned id)
{
	unsigned at = host->n_cpus;
	struct lx_cpu *grown;

	if (id >= LX_CPUS_MAX)
		return NULL;
	while (at > 0 && host->cpu[at - 1].id >= id)
		at--;
	if (at < host->n_cpus && host->cpu[at].id == id)
		return &host->cpu[at];
	grown = realloc(host->cpu, (host->n_cpus + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	host->cpu = grown;
	memmove(grown + at + 1, grown + at, (host->n_cpus - at) * sizeof(*grown));
	grown[at] = (struct lx_cpu){ .id = id };
	host->n_cpus++;
	return &grown[at];
}

/* "cpu12" -> 12; false for "cpu" and others. */
static bool cpu_word(const char *word, size_t n, unsigned *id)
{
	unsigned value = 0;

	if (n < 4 || n > 8 || memcmp(word, "cpu", 3))
		return false;
	for (size_t i = 3; i < n; i++) {
		if (word[i] < '0' || word[i] > '9')
			return false;
		value = 10 * value + (unsigned)(word[i] - '0');
	}
	*id = value;
	return true;
}

bool lx_parse_stat(const struct lx_text *text, uint64_t tick_ns, struct lx_host *host)
{
	struct lx_scan scan = lx_scan_text(text), line;
	bool found = false;

	while (lx_scan_line(&scan, &line)) {
		const char *word;
		unsigned id;
		uint64_t *one = NULL, guest_nice = 0;
		struct lx_cpu *cpu;
		size_t n;

		if (!lx_scan_word(&line, &word, &n))
			continue;
		if (lx_word_is(word, n, "ctxt"))
			one = &host->switches;
		else if (lx_word_is(word, n, "processes"))
			one = &host->forks;
		else if (lx_word_is(word, n, "softirq"))
			one = &host->softirq_runs;
		if (one)
			lx_scan_u64(&line, 10, one);
		if (!cpu_word(word, n, &id))
			continue;
		cpu = lx_host_cpu(host, id);
		if (!cpu)
			continue;
		found = true;
		cpu->online = true;
		for (unsigned i = 0; i < LX_TIMES && lx_scan_u64(&line, 10, &cpu->time_ns[i]); i++)
			cpu->time_ns[i] *= tick_ns;
		if (lx_scan_u64(&line, 10, &guest_nice))
			guest_nice *= tick_ns;
		/* account_guest_time adds guest time to user and nice as well. */
		cpu->time_ns[LX_TIME_USER] -=
			HO_MIN(cpu->time_ns[LX_TIME_USER], cpu->time_ns[LX_TIME_GUEST]);
		cpu->time_ns[LX_TIME_NICE] -= HO_MIN(cpu->time_ns[LX_TIME_NICE], guest_nice);
		cpu->time_ns[LX_TIME_GUEST] += guest_nice;
	}
	return found;
}

/* Column numbers, from 0. */
enum { NET_PROCESSED, NET_DROPPED, NET_SQUEEZED, NET_RPS = 9, NET_FLOW, NET_BACKLOG, NET_CPU };

bool lx_parse_softnet(const struct lx_text *text, struct lx_host *host)
{
	struct lx_scan scan = lx_scan_text(text), line;
	unsigned row = 0;
	bool found = false;

	while (lx_scan_line(&scan, &line)) {
		uint64_t column[NET_CPU + 1] = { 0 };
		unsigned n = 0;
		struct lx_cpu *cpu = NULL;

		while (n <= NET_CPU && lx_scan_u64(&line, 16, &column[n]))
			n++;
		if (n <= NET_SQUEEZED)
			continue;
		if (n > NET_CPU) {
			cpu = column[NET_CPU] < LX_CPUS_MAX
				      ? lx_host_cpu(host, (unsigned)column[NET_CPU])
				      : NULL;
		} else {
			for (unsigned i = 0, online = 0; i < host->n_cpus && !cpu; i++) {
				if (host->cpu[i].online && online++ == row)
					cpu = &host->cpu[i];
			}
		}
		row++;
		if (!cpu)
			continue;
		cpu->softnet = (struct lx_softnet){
			.processed = column[NET_PROCESSED],
			.dropped = column[NET_DROPPED],
			.squeezed = column[NET_SQUEEZED],
			.rps = column[NET_RPS],
			.flow_limit = column[NET_FLOW],
			.backlog = (uint32_t)HO_MIN(column[NET_BACKLOG], (uint64_t)UINT32_MAX),
		};
		found = true;
	}
	return found;
}

/* "CPU3" -> 3, of a heading. */
static bool heading_cpu(struct lx_scan *line, unsigned *id)
{
	const char *word;
	char lower[8];
	size_t n;

	if (!lx_scan_word(line, &word, &n) || n >= sizeof(lower) || memcmp(word, "CPU", 3))
		return false;
	memcpy(lower, word, n);
	memcpy(lower, "cpu", 3);
	return cpu_word(lower, n, id);
}

bool lx_parse_softirqs(const struct lx_text *text, struct lx_host *host)
{
	struct lx_scan scan = lx_scan_text(text), heading, line;
	bool found = false;

	if (!lx_scan_line(&scan, &heading))
		return false;
	while (lx_scan_line(&scan, &line)) {
		bool rx = lx_scan_take(&line, "NET_RX:");
		struct lx_scan columns = heading;
		uint64_t value;
		unsigned id;

		if (!rx && !lx_scan_take(&line, "NET_TX:"))
			continue;
		while (heading_cpu(&columns, &id) && lx_scan_u64(&line, 10, &value)) {
			struct lx_cpu *cpu = lx_host_cpu(host, id);

			if (cpu && rx)
				cpu->net_rx = value;
			else if (cpu)
				cpu->net_tx = value;
			found = found || cpu;
		}
	}
	return found;
}

bool lx_parse_schedstat(const struct lx_text *text, struct lx_host *host)
{
	struct lx_scan scan = lx_scan_text(text), line;
	bool found = false;

	while (lx_scan_line(&scan, &line)) {
		uint64_t yields, old, schedules;
		const char *word;
		unsigned id;
		size_t n;

		if (!lx_scan_word(&line, &word, &n) || !cpu_word(word, n, &id))
			continue;
		if (lx_scan_u64(&line, 10, &yields) && lx_scan_u64(&line, 10, &old) &&
		    lx_scan_u64(&line, 10, &schedules)) {
			struct lx_cpu *cpu = lx_host_cpu(host, id);

			if (cpu)
				cpu->schedules = schedules;
			found = found || cpu;
		}
	}
	return found;
}

bool lx_parse_status(const struct lx_text *text, struct lx_tasks *tasks)
{
	struct lx_scan scan = lx_scan_text(text), line;
	uint64_t value;
	bool found = false;

	while (lx_scan_line(&scan, &line)) {
		if (lx_scan_take(&line, "voluntary_ctxt_switches:")) {
			if (lx_scan_u64(&line, 10, &value)) {
				tasks->voluntary += value;
				found = true;
			}
		} else if (lx_scan_take(&line, "nonvoluntary_ctxt_switches:")) {
			if (lx_scan_u64(&line, 10, &value))
				tasks->involuntary += value;
		}
	}
	return found;
}

bool lx_parse_task_stat(const struct lx_text *text, uint64_t tick_ns, struct lx_tasks *tasks)
{
	struct lx_scan scan = lx_scan_text(text);
	uint64_t user, system;
	const char *word;
	size_t n;

	/* The command's name may have blanks and parentheses in it: the last one ends it. */
	for (const char *p = scan.end; p > scan.p; p--) {
		if (p[-1] == ')') {
			scan.p = p;
			break;
		}
	}
	/* utime is field 14; the first one after the name is field 3. */
	for (unsigned i = 3; i < 14; i++) {
		if (!lx_scan_word(&scan, &word, &n))
			return false;
	}
	if (!lx_scan_u64(&scan, 10, &user) || !lx_scan_u64(&scan, 10, &system))
		return false;
	tasks->user_ns += user * tick_ns;
	tasks->system_ns += system * tick_ns;
	return true;
}

bool lx_cpulist_has(const char *list, unsigned cpu)
{
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (end == list)
			return false;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (cpu >= first && cpu <= last)
			return true;
		if (*end != ',')
			return false;
		list = end + 1;
	}
	return false;
}
