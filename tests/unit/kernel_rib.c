// SPDX-License-Identifier: BSD-2-Clause
/* The mirror of the kernel's routes: which of several is in use, after what messages. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "route/kernel_rib.h"

static struct rib rib;

static int setup(void **state)
{
	return rib_init(&rib);
}

static int teardown(void **state)
{
	rib_fini(&rib);
	return 0;
}

static struct lx_ip ip(const char *text)
{
	struct lx_ip out = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };

	assert_int_equal(inet_pton(out.family, text, out.byte), 1);
	return out;
}

/* A route of one path by interface `index`, via NULL = on the link. */
static struct lx_route *route(const char *dst, uint8_t len, uint32_t metric, uint32_t index,
			      const char *via)
{
	static struct lx_route r;

	memset(&r, 0, sizeof(r));
	r.dst = ip(dst);
	r.kind = RTN_UNICAST;
	r.family = r.dst.family;
	r.len = len;
	r.table = LX_TABLE_MAIN;
	r.metric = metric;
	r.hops = 1;
	r.hop[0] = (struct lx_hop){ .index = index, .weight = 1 };
	if (via)
		r.hop[0].via = ip(via);
	return &r;
}

static struct lx_route *and_path(struct lx_route *r, uint32_t index, const char *via)
{
	r->hop[r->hops++] = (struct lx_hop){ .index = index, .weight = 1, .via = ip(via) };
	return r;
}

static const struct rib_route *first(const struct lx_route *r)
{
	return rib_first(&rib, r->family, r->dst.byte, r->len, r->metric);
}

/* The interface of the route in use; 0 = there is none. */
static uint32_t in_use(const char *dst, uint8_t len, uint32_t metric)
{
	const struct rib_route *r = first(route(dst, len, metric, 1, NULL));

	return r ? r->paths->hop[0].index : 0;
}

static void add(struct lx_route *r)
{
	assert_int_equal(rib_update(&rib, r, false, false), 0);
}

static void dumped(struct lx_route *r)
{
	assert_int_equal(rib_update(&rib, r, false, true), 0);
}

static void del(struct lx_route *r)
{
	assert_int_equal(rib_update(&rib, r, true, false), 0);
}

static void test_ipv4(void **state)
{
	struct lx_route *r;

	add(route("10.0.0.0", 8, 5, 1, NULL));
	assert_int_equal(in_use("10.0.0.0", 8, 5), 1);
	assert_int_equal(in_use("10.0.0.0", 8, 6), 0);
	assert_int_equal(in_use("10.0.0.0", 9, 5), 0);
	/* Appended: behind. Otherwise in front. Told twice: once. */
	r = route("10.0.0.0", 8, 5, 2, NULL);
	r->appended = true;
	add(r);
	assert_int_equal(in_use("10.0.0.0", 8, 5), 1);
	add(route("10.0.0.0", 8, 5, 3, NULL));
	add(route("10.0.0.0", 8, 5, 3, NULL));
	assert_int_equal(in_use("10.0.0.0", 8, 5), 3);
	assert_int_equal(rib.routes, 3);
	/* In place of the first. */
	r = route("10.0.0.0", 8, 5, 4, NULL);
	r->replaced = true;
	add(r);
	assert_int_equal(in_use("10.0.0.0", 8, 5), 4);
	assert_int_equal(rib.routes, 3);
	/* One goes, the next one is in use. */
	del(route("10.0.0.0", 8, 5, 4, NULL));
	assert_int_equal(in_use("10.0.0.0", 8, 5), 1);
	/* Which one is meant cannot be told. */
	assert_int_equal(rib_update(&rib, route("10.0.0.0", 8, 5, 9, NULL), true, false), -ESTALE);
	del(route("10.0.0.0", 8, 5, 1, NULL));
	assert_int_equal(in_use("10.0.0.0", 8, 5), 2);
	/* The last one is meant whatever its paths look like now. */
	del(route("10.0.0.0", 8, 5, 9, NULL));
	assert_int_equal(in_use("10.0.0.0", 8, 5), 0);
	assert_int_equal(rib_update(&rib, route("10.0.0.0", 8, 5, 2, NULL), true, false), -ENOENT);
	assert_int_equal(rib.routes + rib.n_paths, 0);
}

static void test_tables(void **state)
{
	struct lx_route *r;

	add(route("192.0.2.1", 32, 0, 1, NULL));
	r = route("192.0.2.1", 32, 0, 2, NULL);
	r->table = LX_TABLE_LOCAL;
	r->kind = RTN_LOCAL;
	r->appended = true;
	add(r);
	assert_int_equal(first(r)->paths->kind, RTN_LOCAL);
	/* A new one of main does not come before it, however it was added. */
	add(route("192.0.2.1", 32, 0, 3, NULL));
	assert_int_equal(first(r)->paths->kind, RTN_LOCAL);
	r = route("192.0.2.1", 32, 0, 2, NULL);
	r->table = LX_TABLE_LOCAL;
	r->kind = RTN_LOCAL;
	del(r);
	assert_int_equal(in_use("192.0.2.1", 32, 0), 3);
}

static void test_ipv6_paths(void **state)
{
	struct lx_route *r;

	/* The second path is told with the first one in the same message. */
	add(route("2001:db8::", 32, 1024, 1, "fe80::1"));
	r = and_path(route("2001:db8::", 32, 1024, 2, "fe80::2"), 1, "fe80::1");
	r->appended = true;
	add(r);
	assert_int_equal(rib.routes, 1);
	assert_int_equal(first(r)->paths->hops, 2);
	add(and_path(and_path(route("2001:db8::", 32, 1024, 3, "fe80::3"), 1, "fe80::1"), 2,
		     "fe80::2"));
	assert_int_equal(rib.routes, 1);
	assert_int_equal(first(r)->paths->hops, 3);
	/* A deletion names one path; then two of them; then what is left. */
	del(route("2001:db8::", 32, 1024, 2, "fe80::2"));
	assert_int_equal(first(r)->paths->hops, 2);
	assert_int_equal(first(r)->paths->hop[0].index, 3);
	assert_int_equal(first(r)->paths->hop[1].index, 1);
	del(and_path(route("2001:db8::", 32, 1024, 1, "fe80::1"), 3, "fe80::3"));
	assert_int_equal(rib.routes, 0);
	/* Connected routes of two interfaces are two routes. */
	add(route("2001:db8::", 64, 256, 1, NULL));
	add(route("2001:db8::", 64, 256, 2, NULL));
	assert_int_equal(rib.routes, 2);
	assert_int_equal(in_use("2001:db8::", 64, 256), 1);
	del(route("2001:db8::", 64, 256, 1, NULL));
	assert_int_equal(in_use("2001:db8::", 64, 256), 2);
}

/* What several routers advertise is as many routes, by preference and then by age. */
static void test_advertised(void **state)
{
	static const struct {
		uint32_t index;
		uint8_t rank;
		uint32_t then;
	} come[] = { { 1, 2, 1 }, { 2, 1, 2 }, { 3, 1, 2 }, { 4, 0, 4 } }, go[] = {
		{ 4, 0, 2 },
		{ 2, 1, 3 },
		{ 3, 1, 1 },
		{ 1, 2, 0 },
	};

	for (unsigned round = 0; round < 2; round++) {
		rib_mark(&rib);
		for (unsigned i = 0; i < 4; i++) {
			struct lx_route *r = route("::", 0, 1024, come[i].index, "fe80::1");

			r->advertised = true;
			r->rank = come[i].rank;
			/* First as events, then as a dump shows them. */
			assert_int_equal(rib_update(&rib, r, false, round > 0), 0);
			assert_int_equal(in_use("::", 0, 1024), round ? 4 : come[i].then);
		}
		assert_int_equal(rib.routes, 4);
	}
	for (unsigned i = 0; i < 4; i++) {
		struct lx_route *r = route("::", 0, 1024, go[i].index, "fe80::1");

		r->advertised = true;
		r->rank = go[i].rank;
		del(r);
		assert_int_equal(in_use("::", 0, 1024), go[i].then);
	}
}

/* Routes that a program made of advertisements: the kernel makes them paths of one, and says what
 * it says of others (the order of these messages is that of Linux 6.18). Its own stay apart. */
static void test_advertised_to_a_program(void **state)
{
	struct lx_route *r = route("::", 0, 1024, 3, "fe80::3");

	r->rank = 2;
	r->advertised = true;
	add(r);
	r = route("::", 0, 1024, 1, "fe80::1");
	r->rank = 1;
	r->advertised = true;
	add(r);
	r = and_path(route("::", 0, 1024, 2, "fe80::2"), 1, "fe80::1");
	r->rank = 1;
	r->advertised = r->appended = true;
	add(r);
	assert_int_equal(rib.routes, 2);
	assert_int_equal(first(r)->paths->hops, 2);
	/* One of them is gone: nothing goes there any more. */
	r = route("::", 0, 1024, 1, "fe80::1");
	r->rank = 1;
	r->advertised = true;
	del(r);
	assert_int_equal(rib.routes, 2);
	assert_int_equal(first(r)->paths->hops, 1);
	assert_int_equal(in_use("::", 0, 1024), 2);
	r = route("::", 0, 1024, 2, "fe80::2");
	r->rank = 1;
	r->advertised = true;
	del(r);
	assert_int_equal(in_use("::", 0, 1024), 3);
}

static unsigned removed;
static void count(void *arg, const struct rib_route *gone)
{
	removed++;
	assert_int_equal(gone->len, 8);
}

static void test_dump(void **state)
{
	struct lx_route *r;

	removed = 0;
	rib_mark(&rib);
	dumped(route("10.0.0.0", 8, 0, 1, NULL));
	dumped(route("10.0.0.0", 8, 0, 2, NULL));
	assert_int_equal(in_use("10.0.0.0", 8, 0), 1);
	rib_sweep(&rib, count, NULL);
	assert_int_equal(removed, 0);
	/* Another order, one more, one less; an event between is not swept. */
	add(route("11.0.0.0", 8, 0, 1, NULL));
	rib_mark(&rib);
	dumped(route("10.0.0.0", 8, 0, 2, NULL));
	dumped(route("10.0.0.0", 8, 0, 3, NULL));
	dumped(route("10.0.0.0", 8, 0, 1, NULL));
	add(route("12.0.0.0", 8, 0, 1, NULL));
	rib_sweep(&rib, count, NULL);
	assert_int_equal(removed, 1);
	assert_int_equal(in_use("10.0.0.0", 8, 0), 2);
	assert_int_equal(in_use("11.0.0.0", 8, 0), 0);
	assert_int_equal(in_use("12.0.0.0", 8, 0), 1);
	del(route("10.0.0.0", 8, 0, 2, NULL));
	assert_int_equal(in_use("10.0.0.0", 8, 0), 3);
	/* Through a next hop object: with the object they go. */
	r = route("13.0.0.0", 8, 0, 1, NULL);
	r->nexthop = 7;
	add(r);
	assert_int_equal(first(r)->paths->hops, 0);
	removed = 0;
	rib_drop_nexthop(&rib, 8, count, NULL);
	assert_int_equal(removed, 0);
	rib_drop_nexthop(&rib, 7, count, NULL);
	assert_int_equal(removed, 1);
	assert_null(first(r));
}

/* Many, against a plain list of (prefix, metric) with one interface each. */
static void test_random(void **state)
{
	enum { KEYS = 4096, STEPS = 200000 };
	static uint32_t model[KEYS];
	unsigned there = 0;

	memset(model, 0, sizeof(model));
	srand(1);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned key = (unsigned)rand() % KEYS;
		struct lx_route *r =
			route("10.0.0.0", 24, key & 7, 1 + (unsigned)rand() % 50, NULL);

		r->dst.byte[1] = (uint8_t)(key >> 3);
		r->dst.byte[2] = (uint8_t)(key >> 11);
		if (rand() & 1) {
			r->replaced = true;
			add(r);
			there += !model[key];
			model[key] = r->hop[0].index;
		} else {
			assert_int_equal(rib_update(&rib, r, true, false),
					 model[key] ? 0 : -ENOENT);
			there -= model[key] != 0;
			model[key] = 0;
		}
		assert_int_equal(first(r) ? first(r)->paths->hop[0].index : 0, model[key]);
		assert_int_equal(rib.routes, there);
		assert_true(rib.n_paths <= 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ipv4, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ipv6_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_advertised, setup, teardown),
		cmocka_unit_test_setup_teardown(test_advertised_to_a_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dump, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
