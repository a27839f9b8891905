// SPDX-License-Identifier: BSD-2-Clause
/*
 * Readers beside a writer: each answer is one that was right at some time during the lookup.
 *
 * The writer gives each of some prefixes next hops that count up, in a cycle with "no such
 * prefix". Before a change it publishes which step comes next, after it which step is done. A
 * reader notes the step done before its lookup and the step begun after it; the answer must belong
 * to a step between the two. Other prefixes, that come and go around the watched ones, make blocks
 * move all the time.
 *
 *   HOLDOFF_FIB_STEPS   changes of the writer (200000)
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <urcu/urcu-qsbr.h>
#include <cmocka.h>

#include "fib_model.h"

#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#ifndef WITH_TSAN
#define WITH_TSAN 0
#endif

#define READERS 2
#define BULK    32u
#define WATCHED 6

/*
 * Grace periods by counters that ThreadSanitizer understands: a batch is done when each reader has
 * counted on since it was handed over.
 */
struct grace {
	uint64_t quiescent[READERS][8]; /* a line each */
	struct waiting {
		struct fib_deferred *d;
		uint64_t seen[READERS];
	} waiting[4096];
	unsigned first, n;
};

static void grace_defer(void *ctx, struct fib_deferred *d)
{
	struct grace *g = ctx;
	struct waiting *w = &g->waiting[(g->first + g->n++) % HO_ARRAY_LEN(g->waiting)];

	assert_true(g->n < HO_ARRAY_LEN(g->waiting));
	w->d = d;
	for (unsigned i = 0; i < READERS; i++)
		w->seen[i] = __atomic_load_n(&g->quiescent[i][0], __ATOMIC_SEQ_CST);
}

static void grace_poll(struct grace *g)
{
	while (g->n) {
		struct waiting *w = &g->waiting[g->first];

		for (unsigned i = 0; i < READERS; i++) {
			if (__atomic_load_n(&g->quiescent[i][0], __ATOMIC_ACQUIRE) < w->seen[i] + 2)
				return;
		}
		w->d->done(w->d);
		g->first = (g->first + 1) % HO_ARRAY_LEN(g->waiting);
		g->n--;
	}
}

/* Only when no reader is left. */
static void grace_barrier(void *ctx)
{
	struct grace *g = ctx;

	for (; g->n; g->n--, g->first = (g->first + 1) % HO_ARRAY_LEN(g->waiting))
		g->waiting[g->first].d->done(g->waiting[g->first].d);
}

struct watched {
	uint8_t key[16];
	unsigned len;
	uint8_t address[16];  /* inside, and not in any other watched prefix */
	uint64_t begun, done; /* steps */
	uint32_t cover;       /* answer while the prefix is not there */
} HO_CACHE_ALIGNED;

struct shared {
	struct table table;
	struct watched watched[WATCHED];
	struct grace grace;
	bool qsbr;
	bool stop;
	uint64_t lookups[READERS][8];
	char failure[READERS][128];
};

/* Of a step: two of three are a next hop that tells the step, one is the cover's. */
static uint32_t answer_of(const struct watched *w, uint64_t step)
{
	return step % 3 == 2 || step == 0 ? w->cover : 1000 + (uint32_t)step;
}

static bool answer_fits(const struct watched *w, uint32_t nh, uint64_t from, uint64_t to)
{
	for (uint64_t step = from; step <= to; step++) {
		if (answer_of(w, step) == nh)
			return true;
	}
	return false;
}

struct reader {
	struct shared *s;
	unsigned index;
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	struct shared *s = r->s;
	uint8_t key[BULK][16];
	uint32_t nh[BULK];
	uint64_t from[WATCHED], lookups = 0;

	if (s->qsbr)
		urcu_qsbr_register_thread();
	for (unsigned i = 0; i < BULK; i++)
		memcpy(key[i], s->watched[i % WATCHED].address, 16);
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE) && !s->failure[r->index][0]) {
		for (unsigned i = 0; i < WATCHED; i++)
			from[i] = __atomic_load_n(&s->watched[i].done, __ATOMIC_SEQ_CST);
		table_bulk(&s->table, key, nh, BULK);
		for (unsigned i = 0; i < BULK; i++) {
			struct watched *w = &s->watched[i % WATCHED];
			uint64_t to;

			if (i < WATCHED && lookups % 2)
				nh[i] = table_lookup(&s->table, key[i]);
			to = __atomic_load_n(&w->begun, __ATOMIC_SEQ_CST);
			if (!answer_fits(w, nh[i], from[i % WATCHED], to))
				snprintf(s->failure[r->index], sizeof(s->failure[0]),
					 "prefix %u: answer %u between steps %llu and %llu",
					 i % WATCHED, nh[i], (unsigned long long)from[i % WATCHED],
					 (unsigned long long)to);
		}
		lookups++;
		if (s->qsbr)
			urcu_qsbr_quiescent_state();
		else
			__atomic_store_n(&s->grace.quiescent[r->index][0], lookups,
					 __ATOMIC_RELEASE);
		ho_ctr_add(&s->lookups[r->index][0], 1);
	}
	if (s->qsbr)
		urcu_qsbr_unregister_thread();
	return NULL;
}

static uint64_t random_state;

static uint32_t rnd(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 32) * below >> 32);
}

/* A prefix that holds none of the watched addresses but lies as near as can be: below a watched
 * one beside its address, or anywhere near. */
static bool near_by(const struct shared *s, uint8_t *key, unsigned *len)
{
	const struct watched *w = &s->watched[rnd(WATCHED)];
	unsigned bits = s->table.bits;

	memcpy(key, w->address, 16);
	*len = 17 + rnd(bits - 16);
	key[(*len - 1) / 8] ^= (uint8_t)(1 << (7 - (*len - 1) % 8));
	for (unsigned i = 0; i < WATCHED; i++) {
		uint8_t a[16], b[16];

		model_mask(a, s->watched[i].address, *len);
		model_mask(b, key, *len);
		if (!memcmp(a, b, 16))
			return false;
		/* Nor one of the watched prefixes themselves. */
		if (s->watched[i].len == *len) {
			model_mask(a, s->watched[i].key, *len);
			if (!memcmp(a, b, 16))
				return false;
		}
	}
	return true;
}

static void step(struct shared *s, struct watched *w)
{
	uint64_t next = w->begun + 1;
	uint32_t nh = answer_of(w, next);

	__atomic_store_n(&w->begun, next, __ATOMIC_SEQ_CST);
	if (nh == w->cover)
		assert_int_equal(table_del(&s->table, w->key, w->len), 0);
	else
		assert_int_equal(table_set(&s->table, w->key, w->len, nh), 0);
	__atomic_store_n(&w->done, next, __ATOMIC_SEQ_CST);
}

/*
 * Nested prefixes: each watched address is in its own watched prefix and in a cover that stays.
 * The first one is short, so that its cover is pushed through everything below.
 */
static void prepare(struct shared *s)
{
	static const unsigned lens4[WATCHED] = { 9, 16, 20, 24, 28, 32 };
	static const unsigned lens6[WATCHED] = { 12, 20, 32, 48, 64, 128 };
	unsigned bits = s->table.bits;
	uint8_t all[16] = { 0 };

	assert_int_equal(table_set(&s->table, all, 0, 7), 0);
	for (unsigned i = 0; i < WATCHED; i++) {
		struct watched *w = &s->watched[i];

		memset(w, 0, sizeof(*w));
		w->len = bits == 32 ? lens4[i] : lens6[i];
		w->key[0] = (uint8_t)(0x20 + i * 0x10);
		for (unsigned k = 1; k < 4; k++)
			w->key[k] = (uint8_t)(0x40 + i);
		memcpy(w->address, w->key, 16);
		w->address[bits / 8 - 1] ^= w->len < bits;
		w->cover = 7;
		if (i % 2) {
			w->cover = 8 + i;
			assert_int_equal(table_set(&s->table, w->key, 8, w->cover), 0);
		}
	}
}

static void run(unsigned bits, bool qsbr)
{
	const char *env = getenv("HOLDOFF_FIB_STEPS");
	unsigned steps = env ? (unsigned)strtoul(env, NULL, 0) : WITH_TSAN ? 20000 : 200000;
	struct shared *s =
		aligned_alloc(HO_CACHE_LINE, HO_ALIGN_UP(sizeof(*s), (size_t)HO_CACHE_LINE));
	struct fib_reclaim own = { grace_defer, grace_barrier, NULL };
	struct reader reader[READERS];
	pthread_t thread[READERS];

	memset(s, 0, sizeof(*s));
	s->qsbr = qsbr;
	own.ctx = &s->grace;
	random_state = bits;
	if (qsbr)
		urcu_qsbr_register_thread();
	assert_int_equal(table_create(&s->table, bits, qsbr ? &fib_reclaim_qsbr : &own), 0);
	prepare(s);
	for (unsigned i = 0; i < READERS; i++) {
		reader[i] = (struct reader){ s, i };
		assert_int_equal(pthread_create(&thread[i], NULL, read_all, &reader[i]), 0);
	}
	for (unsigned i = 0; i < steps; i++) {
		uint8_t key[16];
		unsigned len;

		/* The first, through which all below is rebuilt, less often. */
		step(s, &s->watched[i % 64 ? 1 + rnd(WATCHED - 1) : 0]);
		if (near_by(s, key, &len)) {
			if (rnd(3))
				table_set(&s->table, key, len, 1 + rnd(5));
			else
				table_del(&s->table, key, len);
		}
		if (qsbr)
			urcu_qsbr_quiescent_state();
		else
			grace_poll(&s->grace);
	}
	/* At least some lookups of each, however busy the machine. */
	for (unsigned i = 0; i < READERS; i++) {
		while (ho_ctr_read(&s->lookups[i][0]) < 100 && !s->failure[i][0])
			step(s, &s->watched[1]);
	}
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	if (qsbr)
		urcu_qsbr_thread_offline();
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	if (qsbr)
		urcu_qsbr_thread_online();
	for (unsigned i = 0; i < READERS; i++) {
		if (s->failure[i][0])
			print_error("reader %u: %s\n", i, s->failure[i]);
		assert_string_equal(s->failure[i], "");
	}
	table_destroy(&s->table);
	if (qsbr)
		urcu_qsbr_unregister_thread();
	free(s);
}

static void test_readers4(void **state)
{
	run(32, false);
}

static void test_readers6(void **state)
{
	run(128, false);
}

/* liburcu's barriers are nothing that ThreadSanitizer knows. */
static void test_readers_qsbr(void **state)
{
	if (WITH_TSAN)
		skip();
	run(32, true);
	run(128, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers4),
		cmocka_unit_test(test_readers6),
		cmocka_unit_test(test_readers_qsbr),
	};

	/* Gathers are invisible to ThreadSanitizer. */
	if (WITH_TSAN)
		setenv("HOLDOFF_SIMD", "scalar", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
