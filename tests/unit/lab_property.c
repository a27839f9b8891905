/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many short runs of random scenarios. What must hold in any run is checked by lab_run itself;
 * here is only the dice, and what a failure prints: a scenario that `holdoff lab run FILE` takes.
 *
 *   HOLDOFF_PROPERTY_RUNS   how many
 *   HOLDOFF_PROPERTY_FIRST  the first one's number; each run depends on its number alone
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "lab/run.h"
#include "packet/arena.h"

#if defined(__SANITIZE_ADDRESS__)
#define RUNS_DEFAULT 300
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RUNS_DEFAULT 300
#endif
#endif
#ifndef RUNS_DEFAULT
#define RUNS_DEFAULT 10000
#endif
#define HANG_SECONDS 60 /* of CPU time, for one run */

struct dice {
	uint64_t state;
};

/* splitmix64 (Steele, Lea, Flood, 2014) */
static uint64_t roll(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* From low to high, both included. */
static unsigned from(struct dice *d, unsigned low, unsigned high)
{
	return low + (unsigned)(roll(d) % (high - low + 1));
}

static bool chance(struct dice *d, unsigned percent)
{
	return from(d, 1, 100) <= percent;
}

/* As likely between 64 and 128 as between 2048 and 4096. */
static unsigned log_from(struct dice *d, unsigned low, unsigned high)
{
	unsigned top = from(d, 0, 31 - (unsigned)__builtin_clz(high / low)) + 1;
	unsigned most = low << top;

	return from(d, most / 2, most < high ? most : high);
}

#define PICK(d, list) ((list)[roll(d) % HO_ARRAY_LEN(list)])

/* --- a scenario --------------------------------------------------------------------------------
 */

#define TEXT_MAX 16384

struct text {
	char at[TEXT_MAX];
	size_t n;
};

static struct text text; /* of the run that is going on, for the handler below */
static uint64_t number;

static void __attribute__((format(printf, 1, 2))) put(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	text.n += (size_t)vsnprintf(text.at + text.n, TEXT_MAX - text.n, format, ap);
	va_end(ap);
	assert_true(text.n < TEXT_MAX);
}

/* What of one host matters to the other, and to its workloads. */
struct host {
	unsigned cpus, irq_cpus, queues, mtu;
	unsigned room; /* of a packet buffer */
	bool polls;    /* busy tasks of high priority: nothing else may be on their CPUs */
	bool receives[16];
};

static void put_moderation(struct dice *d)
{
	static const char *const kinds[] = { "fixed",      "adaptive-2.6", "adaptive-2017",
					     "dim-rx-eqe", "dim-rx-cqe",   "dim-tx-eqe",
					     "dim-tx-cqe" };
	static const unsigned usecs[] = { 0, 1, 1, 2, 3, 10, 20, 50, 100, 250, 900 };

	put("          rx-usecs: %u\n", PICK(d, usecs));
	if (chance(d, 40))
		put("          moderation: %s\n", PICK(d, kinds));
	if (chance(d, 10))
		put("          defer-hard-irqs: %u\n          gro-flush-timeout: %u\n",
		    from(d, 1, 5), from(d, 1000, 50000));
}

static void put_chip(struct dice *d, struct host *h)
{
	static const char *const modes[] = { "napi", "napi", "direct", "poll" };
	const char *mode = PICK(d, modes);
	unsigned most;

	h->queues = chance(d, 50) ? 1 : from(d, 1, 16);
	most = 8192 / h->queues < 4096 ? 8192 / h->queues : 4096;
	h->polls = !strcmp(mode, "poll");
	h->cpus = from(d, h->polls ? 2 : 1, 6);
	h->irq_cpus = from(d, 1, h->polls ? h->cpus - 1 : h->cpus);
	put("    cpus: %u\n    chips:\n      - name: eth0\n        model: \"82599\"\n"
	    "        rx-mode: %s\n        queues: %u\n        irq-cpus: [",
	    h->cpus, mode, h->queues);
	for (unsigned i = 0; i < h->irq_cpus; i++)
		put("%s%u", i ? ", " : "", i);
	put("]\n        params:\n");
	put("          tx: %u\n", log_from(d, 64, most) / 8 * 8);
	put("          rx: %u\n", log_from(d, 64, most) / 8 * 8);
	h->mtu = chance(d, 25) ? 9000 : 1500;
	put("          mtu: %u\n          bql: %s\n          watchdog: 25ms\n", h->mtu,
	    chance(d, 50) ? "on" : "off");
	if (chance(d, 25))
		put("          weight: %u\n", from(d, 1, 300));
	if (chance(d, 25))
		put("          tx-limit: %u\n", from(d, 1, 600));
	h->room = PK_ROOM_BYTES;
	if (chance(d, 20)) {
		h->room = from(d, 1100, 10000);
		put("          buffer-bytes: %u\n", h->room);
	}
	put_moderation(d);
}

/* A CPU for a workload: not one where a busy task of higher priority runs. */
static unsigned a_cpu(struct dice *d, const struct host *h)
{
	return h->polls ? from(d, h->irq_cpus, h->cpus - 1) : from(d, 0, h->cpus - 1);
}

static void put_sizes(struct dice *d, const struct host *h, bool one)
{
	unsigned most = h->mtu + 14;
	unsigned low = log_from(d, 60, most);

	if (one || chance(d, 50))
		put("        sizes: \"%u\"\n", one && low > h->room ? h->room : low);
	else
		put("        sizes: \"%u-%u\"\n", low, from(d, low, most));
}

static void put_sender(struct dice *d, const struct host *h, unsigned i, unsigned queue,
		       bool pktgen)
{
	static const char *const units[] = { "kpps", "mbps" };

	put("      - name: s%u\n        kind: %s\n        chip: eth0\n        queue: %u\n"
	    "        cpu: %u\n",
	    i, pktgen ? "pktgen" : "gen", queue, a_cpu(d, h));
	put_sizes(d, h, pktgen);
	if (pktgen)
		return;
	if (chance(d, 60))
		put("        rate: %u%s\n", log_from(d, 10, 9000), PICK(d, units));
	put("        params:\n          seed: %u\n", from(d, 1, 1000));
	if (chance(d, 40))
		put("          ip-src: 10.0.0.0/24\n          src-port: random 1024-65535\n");
	if (chance(d, 15))
		put("          vlan: %u\n", from(d, 1, 4094));
	if (chance(d, 15))
		put("          proto: tcp\n          tso: on\n          mss: %u\n",
		    from(d, 536, 1460));
}

static void put_workloads(struct dice *d, struct host *h, bool sends)
{
	unsigned senders = sends ? from(d, 1, 3) : chance(d, 30), receivers = from(d, 0, 2), n = 0;
	bool head = false;

	memset(h->receives, 0, sizeof(h->receives));
	for (unsigned i = 0; i < receivers && !(sends && chance(d, 50)); i++) {
		unsigned queue = from(d, 0, h->queues - 1);

		if (h->receives[queue])
			continue;
		h->receives[queue] = true;
		put("%s      - name: r%u\n        kind: recv\n        chip: eth0\n"
		    "        queue: %u\n        cpu: %u\n",
		    head ? "" : "    workloads:\n", i, queue, a_cpu(d, h));
		head = true;
	}
	for (unsigned i = 0; i < senders; i++) {
		unsigned queue = from(d, 0, h->queues - 1);
		bool pktgen = chance(d, 40) && !n && !h->receives[queue];

		if (!head)
			put("    workloads:\n");
		head = true;
		put_sender(d, h, i, queue, pktgen);
		n++;
		if (pktgen)
			break;
	}
}

static void make(uint64_t run)
{
	struct dice d = { .state = run * 0x9e3779b97f4a7c15ull };
	static const char *const rates[] = { "10gbps", "10gbps", "1gbps", "40gbps" };
	bool two;
	struct host a, b;

	text.n = 0;
	number = run;
	two = chance(&d, 60);
	put("name: property-%llu\ntitle: a random run\nseed: %llu\nwarmup: %uus\n"
	    "duration: %uus\nhosts:\n",
	    (unsigned long long)run, (unsigned long long)run, from(&d, 0, 30), from(&d, 20, 150));
	put("  - name: a\n    profile: e5-2630\n");
	put_chip(&d, &a);
	put_workloads(&d, &a, true);
	if (two) {
		put("  - name: b\n    profile: e5-2630\n");
		put_chip(&d, &b);
		put_workloads(&d, &b, chance(&d, 30));
	}
	put("wires:\n  - name: cable\n    from: a.eth0\n%s    rate: %s\n    propagation: %uns\n",
	    two ? "    to: b.eth0\n" : "", PICK(&d, rates), from(&d, 0, 500));
}

/* --- running -----------------------------------------------------------------------------------
 */

static void say(const char *what)
{
	fprintf(stderr, "# run %llu: %s\n%s# HOLDOFF_PROPERTY_FIRST=%llu repeats it\n",
		(unsigned long long)number, what, text.at, (unsigned long long)number);
}

/* A run that never ends, or crashes, must say which it was. */
static void died(int signal)
{
	say(strsignal(signal));
	_exit(99);
}

static uint64_t env(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

#define WORKERS_MAX 16

/* What a worker found; in memory that all of them share. */
struct found {
	uint64_t runs, frames, failed, idle;
};

/* Every `step`th run from `first` to before `end`. */
static void some_runs(uint64_t first, uint64_t end, uint64_t step, struct found *found)
{
	static const struct itimerval hang = { .it_value.tv_sec = HANG_SECONDS }, no_hang;
	static struct lab_result result;

	signal(SIGPROF, died);
	signal(SIGABRT, died);
	signal(SIGSEGV, died);
	for (uint64_t i = first; i < end; i += step) {
		struct lab_scenario *s;
		struct ho_err err = { 0 };

		make(i);
		found->runs++;
		if (getenv("HOLDOFF_PROPERTY_PRINT"))
			say("as asked");
		if (lab_scenario_parse("random.yaml", text.at, text.n, &s, &err)) {
			say(err.text);
			found->failed++;
			continue;
		}
		setitimer(ITIMER_PROF, &hang, NULL);
		if (lab_run(s, NULL, &result, &err)) {
			say(err.text);
			found->failed++;
		}
		setitimer(ITIMER_PROF, &no_hang, NULL);
		found->frames += result.sim_frames;
		found->idle += !result.sim_frames;
		lab_scenario_free(s);
	}
}

static void random_runs(void **state)
{
	uint64_t first = env("HOLDOFF_PROPERTY_FIRST", 1);
	uint64_t runs =
		env("HOLDOFF_PROPERTY_RUNS", getenv("HOLDOFF_PROPERTY_FIRST") ? 1 : RUNS_DEFAULT);
	unsigned workers = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	struct found *found = mmap(NULL, WORKERS_MAX * sizeof(*found), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct found sum = { 0 };

	assert_ptr_not_equal(found, MAP_FAILED);
	workers = runs < 2 ? 1 : workers > WORKERS_MAX ? WORKERS_MAX : workers;
	for (unsigned w = 0; w < workers; w++) {
		if (workers > 1 && fork())
			continue;
		some_runs(first + w, first + runs, workers, &found[w]);
		if (workers > 1)
			_exit(0);
	}
	for (unsigned w = 0; w < workers; w++) {
		int status = 0;

		if (workers > 1) {
			assert_true(wait(&status) > 0);
			assert_int_equal(status, 0);
		}
	}
	for (unsigned w = 0; w < workers; w++) {
		sum.runs += found[w].runs;
		sum.frames += found[w].frames;
		sum.failed += found[w].failed;
		sum.idle += found[w].idle;
	}
	munmap(found, WORKERS_MAX * sizeof(*found));
	print_message("%llu runs, %llu frames, %llu runs without a frame, %llu failed\n",
		      (unsigned long long)sum.runs, (unsigned long long)sum.frames,
		      (unsigned long long)sum.idle, (unsigned long long)sum.failed);
	assert_int_equal(sum.runs, runs);
	assert_int_equal(sum.failed, 0);
	/* A fault of the dice that leaves nothing to check must not pass. */
	if (runs >= 100)
		assert_in_range(sum.idle, 0, runs / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_runs) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
