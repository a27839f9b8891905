// SPDX-License-Identifier: BSD-2-Clause
/* Ports mem: and null:, and the opening of ports by name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "port/port.h"

static struct rt *rt;
static struct pk_arena *arena;
static struct pk_cache *cache;

static int setup(void **state)
{
	struct pk_arena_config config = { .buffers = 8192, .no_huge = true };

	if (rt_os_create(&rt, NULL) || pk_arena_create(&config, &arena, NULL) ||
	    pk_cache_create(arena, &cache, NULL))
		return -1;
	return 0;
}

static int teardown(void **state)
{
	int missing = (int)pk_arena_missing(arena);

	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
	rt_destroy(rt);
	return missing;
}

static struct port *open_port(const char *spec, unsigned queues)
{
	struct port_config config = { .rt = rt, .arena = arena, .queues = queues };
	struct ho_err err = { 0 };
	struct port *port = NULL;

	if (port_open(spec, &config, &port, &err) < 0)
		print_message("%s\n", err.text);
	assert_non_null(port);
	for (unsigned i = 0; i < port->n_rxq; i++) {
		port_bind_rx(port, i, cache);
		port_bind_tx(port, i, cache);
	}
	assert_int_equal(port_start(port, &err), 0);
	return port;
}

/* A random burst of whole frames of 1 to 6 slots. */
static unsigned make_burst(struct pk_slot *slots, unsigned n, uint64_t *frames)
{
	unsigned used = 0;

	while (used < n) {
		unsigned want = HO_MIN(1u + (unsigned)rand() % 6, n - used);
		uint8_t bytes[6 * PK_ROOM_BYTES] = { 0 };

		assert_int_equal(pk_frame_from_bytes(cache, bytes, (want - 1) * PK_ROOM_BYTES + 60,
						     slots + used, want),
				 want);
		slots[used].meta = (uint32_t)(*frames)++;
		used += want;
	}
	return used;
}

static void test_mem_conserves(void **state)
{
	struct port *a = open_port("mem:w,ring=128", 2), *b = open_port("mem:w", 0);
	uint64_t made = 0, seen = 0, taken = 0;

	srand(5);
	assert_int_equal(b->n_rxq, 2);
	for (int step = 0; step < 20000; step++) {
		struct pk_slot slots[PK_BURST];
		unsigned n, sent;

		if (rand() % 2) {
			uint64_t first = made;

			n = make_burst(slots, 1 + (unsigned)rand() % PK_BURST, &made);
			sent = port_tx(a->txq[1], slots, n);
			assert_true(sent <= n);
			assert_true(sent == 0 || !(slots[sent - 1].flags & PK_MORE));
			for (unsigned i = 0; i < sent; i++)
				taken += !(slots[i].flags & PK_MORE);
			made = sent == n ? made : first;
			for (unsigned i = 0; i < sent && sent < n; i++)
				made += !(slots[i].flags & PK_MORE);
			pk_free_slots(cache, slots + sent, n - sent);
		} else {
			n = port_rx(b->rxq[1], slots, PK_BURST);
			for (unsigned i = 0; i < n; i += pk_frame_slots(slots + i, n - i))
				assert_int_equal(slots[i].meta, seen++);
			assert_true(n == 0 || !(slots[n - 1].flags & PK_MORE));
			pk_free_slots(cache, slots, n);
		}
	}
	assert_true(seen > 1000);
	assert_int_equal(a->txq[1]->ctr.packets, taken);
	assert_true(a->txq[1]->ctr.ring_full > 0);
	assert_int_equal(b->rxq[1]->ctr.packets, seen);
	port_stop(a);
	port_stop(b);
	assert_int_equal(b->rxq[1]->ctr.packets + b->rxq[1]->ctr.drops[PORT_DROP_RX_CLOSED], taken);
	port_close(a);
	port_close(b);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_mem_link(void **state)
{
	struct port *a = open_port("mem:x,peer=y", 1), *b;
	struct pk_slot slots[PK_BURST];
	uint64_t frames = 0;
	unsigned n = make_burst(slots, 40, &frames);

	assert_false(a->ops->link_up(a));
	assert_int_equal(port_tx(a->txq[0], slots, n), n);
	assert_int_equal(a->txq[0]->ctr.drops[PORT_DROP_TX_LINK_DOWN], frames);
	assert_int_equal(port_tx_in_flight(a->txq[0]), 0);
	b = open_port("mem:y", 1);
	assert_true(a->ops->link_up(a));
	assert_false(b->ops->arm(b->rxq[0]));
	n = make_burst(slots, 10, &frames);
	port_tx(a->txq[0], slots, n);
	struct rt_event *ev = b->ops->rx_event(b->rxq[0]);
	assert_int_equal(rt_wait(rt, &ev, 1, 0), 0);
	assert_true(b->ops->arm(b->rxq[0]));
	assert_false(b->ops->rx_ended(b->rxq[0]));
	port_close(a);
	assert_false(b->ops->rx_ended(b->rxq[0]));
	n = port_rx(b->rxq[0], slots, PK_BURST);
	assert_int_equal(n, 10);
	pk_free_slots(cache, slots, n);
	assert_true(b->ops->rx_ended(b->rxq[0]));
	port_close(b);
}

static void test_null(void **state)
{
	struct port *a = open_port("null:,set=256,size=100,count=1000", 1);
	struct port *sink = open_port("null:,set=64", 1);
	struct pk_slot slots[PK_BURST];
	uint64_t seen = 0;
	unsigned n;

	while ((n = port_rx(a->rxq[0], slots, PK_BURST)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(slots[i].len, 100);
			assert_int_equal(pk_data(arena, &slots[i])[12], 0x08);
		}
		seen += n;
		/* Half comes back, half goes elsewhere. */
		assert_int_equal(port_tx(seen % 3 ? a->txq[0] : sink->txq[0], slots, n), n);
	}
	assert_int_equal(seen, 1000);
	assert_true(a->ops->rx_ended(a->rxq[0]));
	assert_int_equal(a->rxq[0]->ctr.bytes, 100000);
	port_close(a);
	port_close(sink);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_bad_names(void **state)
{
	static const struct {
		const char *spec, *says;
	} cases[] = {
		{ "", "ports are" },
		{ "mem", "ports are" },
		{ "bogus:x", "'bogus:x' is not a port" },
		{ "mem:", "lacks" },
		{ "mem:a,bogus=1", "no option 'bogus'" },
		{ "mem:a,ring=100", "power of two" },
		{ "mem:a,ring=63", "too small" },
		{ "mem:a,ring=8g", "too large" },
		{ "mem:a,ring", "needs a value" },
		{ "mem:a,ring=x", "'x' is not a number" },
		{ "null:foo", "nothing may follow" },
		{ "null:,size=20", "too small" },
		{ "null:,set=100", "power of two" },
	};
	struct port_config config = { .rt = rt, .arena = arena };

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct port *port = NULL;
		struct ho_err err = { 0 };

		assert_true(port_open(cases[i].spec, &config, &port, &err) < 0);
		assert_null(port);
		if (!strstr(err.text, cases[i].says))
			fail_msg("'%s' says: %s", cases[i].spec, err.text);
	}
}

static void test_mem_names(void **state)
{
	struct port *a = open_port("mem:n\\,1", 1), *b = open_port("mem:n\\,1", 1), *c;
	struct port_config config = { .rt = rt, .arena = arena };
	struct ho_err err = { 0 };

	assert_string_equal(a->name, "mem:n,1");
	assert_int_equal(port_open("mem:n\\,1", &config, &c, &err), -EBUSY);
	config.queues = 3;
	port_close(b);
	port_close(a);
	a = open_port("mem:n\\,1", 2);
	assert_int_equal(port_open("mem:n\\,1", &config, &c, &err), -EINVAL);
	port_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mem_conserves), cmocka_unit_test(test_mem_link),
		cmocka_unit_test(test_null),          cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_mem_names),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
