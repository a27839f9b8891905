// SPDX-License-Identifier: BSD-2-Clause
/*
 * line CPU1 CPU2: what it costs to write cache lines that another CPU has just read, and to read
 * lines that it has just written: cycles of the time stamp counter a line, medians. On two cores
 * writing is dear, on two hyperthreads of one core both cost next to nothing.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "runtime/tsc.h"

#define LINES  256
#define ROUNDS 2001

static struct {
	uint64_t word[HO_CACHE_LINE / sizeof(uint64_t)];
} line[LINES] HO_CACHE_ALIGNED;
static unsigned turn HO_CACHE_ALIGNED; /* odd: the reader's */
static uint64_t cost[2][ROUNDS];

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void wait_for(unsigned value)
{
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != value)
		;
}

static void pass(uint64_t *cost_of, uint64_t begin, unsigned value)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*cost_of = rt_tsc_read() - begin;
	__atomic_store_n(&turn, value, __ATOMIC_RELEASE);
}

static void *reader(void *cpu)
{
	pin(*(int *)cpu);
	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t begin, sum = 0;

		wait_for(2 * r + 1);
		begin = rt_tsc_read();
		for (unsigned i = 0; i < LINES; i++)
			sum += line[i].word[0];
		__asm__ volatile("" : : "r"(sum));
		pass(&cost[1][r], begin, 2 * r + 2);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int cpu[2] = { argc > 1 ? atoi(argv[1]) : 0, argc > 2 ? atoi(argv[2]) : 1 };
	pthread_t thread;

	if (cpu[0] == cpu[1] || pthread_create(&thread, NULL, reader, &cpu[1])) {
		fprintf(stderr, "usage: line CPU1 CPU2\n");
		return 1;
	}
	pin(cpu[0]);
	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t begin;

		wait_for(2 * r);
		begin = rt_tsc_read();
		for (unsigned i = 0; i < LINES; i++)
			__atomic_store_n(&line[i].word[0], r, __ATOMIC_RELAXED);
		pass(&cost[0][r], begin, 2 * r + 1);
	}
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < 2; i++)
		qsort(cost[i], ROUNDS, sizeof(cost[i][0]), compare);
	printf("a line from CPU %d to CPU %d: %.1f cycles to write, %.1f to read\n", cpu[0], cpu[1],
	       (double)cost[0][ROUNDS / 2] / LINES, (double)cost[1][ROUNDS / 2] / LINES);
	return 0;
}
