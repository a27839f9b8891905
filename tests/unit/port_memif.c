// SPDX-License-Identifier: BSD-2-Clause
/*
 * Port memif: both roles in one process, random frames both ways, peers that come and go, and
 * peers that write nonsense into messages and shared memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "port/memif.h"
#include "port/memif_copy.h"
#include "port/port.h"

#define LIMIT_NS 120000000000ull /* for whatever a test waits for */

static struct rt *rt;
static struct pk_arena *arena;
static struct pk_cache *cache, *cache2;

static int setup(void **state)
{
	struct pk_arena_config config = { .buffers = 16384, .no_huge = true };

	ho_log_set_level(HO_LOG_QUIET);
	if (rt_os_create(&rt, NULL) || pk_arena_create(&config, &arena, NULL) ||
	    pk_cache_create(arena, &cache, NULL) || pk_cache_create(arena, &cache2, NULL))
		return -1;
	return 0;
}

static int teardown(void **state)
{
	int missing = (int)pk_arena_missing(arena);

	pk_cache_destroy(cache);
	pk_cache_destroy(cache2);
	pk_arena_destroy(arena);
	rt_destroy(rt);
	return missing;
}

/* "memif:@holdoff-test-PID-name,options" */
static const char *spec(const char *name, const char *options)
{
	static char text[200];

	snprintf(text, sizeof(text), "memif:@holdoff-test-%d-%s,wait=0%s%s", (int)getpid(), name,
		 *options ? "," : "", options);
	return text;
}

static struct port *open_port(const char *text, unsigned queues, struct pk_cache *with)
{
	struct port_config config = { .rt = rt, .arena = arena, .queues = queues };
	struct ho_err err = { 0 };
	struct port *port = NULL;

	if (port_open(text, &config, &port, &err) < 0)
		print_message("%s\n", err.text);
	assert_non_null(port);
	for (unsigned i = 0; i < port->n_rxq; i++) {
		port_bind_rx(port, i, with);
		port_bind_tx(port, i, with);
	}
	assert_int_equal(port_start(port, &err), 0);
	return port;
}

static void wait_link(struct port *port, bool up)
{
	uint64_t deadline = rt_now_ns(rt) + LIMIT_NS;

	while (port->ops->link_up(port) != up) {
		assert_true(rt_now_ns(rt) < deadline);
		rt_sleep_until(rt, rt_now_ns(rt) + 1000000);
	}
}

/* Waits until that is the reason why there is no link. */
static void wait_why(struct port *port, const char *why)
{
	uint64_t deadline = rt_now_ns(rt) + LIMIT_NS;
	char text[MEMIF_REASON_BYTES] = "";

	while (strcmp(text, why)) {
		if (rt_now_ns(rt) >= deadline)
			fail_msg("no link because of '%s', not '%s'", text, why);
		rt_sleep_until(rt, rt_now_ns(rt) + 1000000);
		memif_why(memif_port_of(port), text);
	}
}

/* Both ends, with the client's options, link up and rings filled. */
static void open_pair(const char *name, const char *options, unsigned queues, struct port **server,
		      struct port **client)
{
	struct pk_slot slots[PK_BURST];

	*server = open_port(spec(name, "role=server"), queues, cache);
	*client = open_port(spec(name, options), queues, cache);
	wait_link(*server, true);
	wait_link(*client, true);
	for (unsigned i = 0; i < queues; i++) {
		assert_int_equal(port_rx((*client)->rxq[i], slots, PK_BURST), 0);
		assert_int_equal(port_rx((*server)->rxq[i], slots, PK_BURST), 0);
	}
}

/* Byte i of frame `seq`. */
static uint8_t pattern(uint32_t seq, uint32_t i)
{
	return (uint8_t)(seq * 31 + i * 7);
}

/* A frame of a random length, mostly short, that is a function of its number. */
static unsigned make_frame(struct pk_slot *slots, unsigned max, uint32_t seq, uint32_t longest)
{
	static uint8_t bytes[PK_FRAME_MAX_BYTES];
	uint32_t len =
		rand() % 4 ? 60 + (uint32_t)rand() % 1400 : 14 + (uint32_t)rand() % (longest - 14);

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = pattern(seq, i);
	return pk_frame_from_bytes(cache, bytes, len, slots, max);
}

static void check_frame(const struct pk_slot *slots, unsigned n, uint32_t seq)
{
	static uint8_t bytes[PK_FRAME_MAX_BYTES];
	uint32_t len = pk_frame_to_bytes(arena, slots, n, bytes, sizeof(bytes));

	assert_true(len >= 14);
	for (uint32_t i = 0; i < len; i++) {
		if (bytes[i] != pattern(seq, i))
			fail_msg("frame %u: byte %u of %u is wrong", seq, i, len);
	}
}

/* Random bursts from one queue to another; everything arrives, in order, unchanged. */
static void exchange(struct port_txq *tx, struct port_rxq *rx, unsigned steps, uint32_t longest)
{
	uint64_t before = tx->ctr.packets, rx_before = rx->ctr.packets;
	uint32_t made = 0, seen = 0;
	uint64_t deadline = rt_now_ns(rt) + LIMIT_NS;

	while (seen < made || steps) {
		struct pk_slot slots[2 * PK_BURST];
		unsigned n = 0, k, sent;

		assert_true(rt_now_ns(rt) < deadline);
		if (steps && rand() % 2) {
			uint32_t first = made;

			steps--;
			while (n < PK_BURST && rand() % 16 &&
			       (k = make_frame(slots + n, 2 * PK_BURST - n, made, longest))) {
				n += k;
				made++;
			}
			if (!n)
				continue;
			sent = port_tx(tx, slots, n);
			assert_true(sent == 0 || !(slots[sent - 1].flags & PK_MORE));
			pk_free_slots(cache, slots + sent, n - sent);
			made = first;
			for (unsigned i = 0; i < sent; i++)
				made += !(slots[i].flags & PK_MORE);
		} else {
			n = port_rx(rx, slots, PK_BURST);
			for (unsigned i = 0; i < n; i += k) {
				k = pk_frame_slots(slots + i, n - i);
				check_frame(slots + i, k, seen++);
			}
			pk_free_slots(cache, slots, n);
		}
	}
	port_reap(tx);
	assert_int_equal(port_tx_in_flight(tx), 0);
	assert_int_equal(tx->ctr.packets - before, made);
	assert_int_equal(rx->ctr.packets - rx_before, made);
	assert_int_equal(port_drops_sum(tx->ctr.drops), 0);
	assert_int_equal(port_drops_sum(rx->ctr.drops), 0);
}

static void run_pair(const char *name, const char *options, uint32_t longest)
{
	struct port *server, *client;

	srand(7);
	open_pair(name, options, 2, &server, &client);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 2; i++) {
			exchange(client->txq[i], server->rxq[i], 300, longest);
			exchange(server->txq[i], client->rxq[i], 300, longest);
		}
	}
	assert_true(client->txq[0]->ctr.bytes == server->rxq[0]->ctr.bytes);
	assert_true(server->txq[1]->ctr.bytes == client->rxq[1]->ctr.bytes);
	port_close(client);
	port_close(server);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_copy(void **state)
{
	run_pair("copy", "", PK_FRAME_MAX_BYTES);
}

static void test_small_ring(void **state)
{
	run_pair("small", "ring=64,bsize=256", 8000);
}

static void test_odd_buffers(void **state)
{
	run_pair("odd", "ring=256,bsize=1999", 30000);
}

static void test_zero_copy(void **state)
{
	run_pair("zc", "zero_copy=yes", PK_FRAME_MAX_BYTES);
}

/* --- link --------------------------------------------------------------------------------- */

static unsigned burst(struct pk_slot *slots, unsigned n)
{
	unsigned made = 0;

	while (made < n)
		made += pk_frame_from_bytes(cache, (uint8_t[60]){ 0 }, 60, slots + made, 1);
	return made;
}

static uint64_t drops(const struct port_counters *ctr, enum port_drop why)
{
	return ctr->drops[why];
}

static void reconnect(const char *options)
{
	struct port *server = open_port(spec("re", "role=server"), 1, cache), *client;
	struct pk_slot slots[PK_BURST];

	/* No peer yet. */
	burst(slots, 10);
	assert_int_equal(port_tx(server->txq[0], slots, 10), 10);
	assert_int_equal(drops(&server->txq[0]->ctr, PORT_DROP_TX_LINK_DOWN), 10);
	for (int round = 1; round <= 3; round++) {
		client = open_port(spec("re", options), 1, cache);
		wait_link(server, true);
		wait_link(client, true);
		port_rx(client->rxq[0], slots, PK_BURST);
		port_rx(server->rxq[0], slots, PK_BURST);
		burst(slots, 40);
		assert_int_equal(port_tx(server->txq[0], slots, 40), 40);
		burst(slots, 40);
		assert_int_equal(port_tx(client->txq[0], slots, 40), 40);
		assert_int_equal(port_rx(server->rxq[0], slots, PK_BURST), 40);
		pk_free_slots(cache, slots, 40);
		burst(slots, 25);
		assert_int_equal(port_tx(client->txq[0], slots, 25), 25);
		/* The client goes with 40 frames unread, and 25 that nobody took from it. */
		port_stop(client);
		assert_int_equal(drops(&client->rxq[0]->ctr, PORT_DROP_RX_CLOSED), 40);
		assert_int_equal(drops(&client->txq[0]->ctr, PORT_DROP_TX_CLOSED), 25);
		assert_int_equal(client->txq[0]->ctr.packets, 40);
		assert_int_equal(port_tx_in_flight(client->txq[0]), 0);
		port_close(client);
		wait_link(server, false);
		/* What it had put into the ring before it went still arrives. */
		assert_int_equal(port_rx(server->rxq[0], slots, PK_BURST), 25);
		pk_free_slots(cache, slots, 25);
		assert_int_equal(port_rx(server->rxq[0], slots, PK_BURST), 0);
		assert_int_equal(server->rxq[0]->ctr.packets, 65 * round);
		assert_int_equal(server->txq[0]->ctr.packets, 40 * round);
	}
	/* The server goes; the client's frames are a named loss, and a new server is found. */
	client = open_port(spec("re", options), 1, cache);
	wait_link(client, true);
	burst(slots, 30);
	assert_int_equal(port_tx(client->txq[0], slots, 30), 30);
	assert_int_equal(port_tx_in_flight(client->txq[0]), 30);
	port_close(server);
	wait_link(client, false);
	burst(slots, 5);
	assert_int_equal(port_tx(client->txq[0], slots, 5), 5);
	assert_int_equal(drops(&client->txq[0]->ctr, PORT_DROP_TX_LINK_DOWN), 35);
	assert_int_equal(port_tx_in_flight(client->txq[0]), 0);
	server = open_port(spec("re", "role=server"), 1, cache);
	wait_link(client, true);
	/* The client hears that it is connected before the server's own thread goes on. */
	wait_link(server, true);
	exchange(server->txq[0], client->rxq[0], 0, 100);
	burst(slots, 30);
	assert_int_equal(port_tx(client->txq[0], slots, 30), 30);
	assert_int_equal(port_drain(client, 1000000), -ETIMEDOUT);
	assert_int_equal(port_rx(server->rxq[0], slots, PK_BURST), 30);
	pk_free_slots(cache, slots, 30);
	assert_int_equal(port_drain(client, 1000000), 0);
	port_close(client);
	port_close(server);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_reconnect(void **state)
{
	reconnect("");
	reconnect("zero_copy=yes");
}

static void test_events(void **state)
{
	struct port *server, *client;
	struct pk_slot slots[PK_BURST];

	open_pair("ev", "", 1, &server, &client);
	for (int round = 0; round < 4; round++) {
		struct port *from = round & 1 ? server : client, *to = round & 1 ? client : server;
		struct rt_event *ev = to->ops->rx_event(to->rxq[0]);
		uint64_t kicks = from->txq[0]->ctr.kicks;

		burst(slots, 2);
		assert_int_equal(port_tx(from->txq[0], slots, 1), 1);
		assert_int_equal(from->txq[0]->ctr.kicks, kicks);
		assert_true(to->ops->arm(to->rxq[0]));
		assert_int_equal(port_rx(to->rxq[0], slots, 1), 1);
		pk_free_slots(cache, slots, 1);
		assert_false(to->ops->arm(to->rxq[0]));
		assert_int_equal(rt_wait(rt, &ev, 1, 0), -ETIMEDOUT);
		assert_int_equal(port_tx(from->txq[0], slots + 1, 1), 1);
		assert_int_equal(from->txq[0]->ctr.kicks, kicks + 1);
		assert_int_equal(rt_wait(rt, &ev, 1, rt_now_ns(rt) + LIMIT_NS), 0);
		to->ops->disarm(to->rxq[0]);
		assert_int_equal(port_rx(to->rxq[0], slots, 1), 1);
		pk_free_slots(cache, slots, 1);
	}
	/* A peer that goes wakes who sleeps. */
	struct rt_event *ev = server->ops->rx_event(server->rxq[0]);
	assert_false(server->ops->arm(server->rxq[0]));
	port_close(client);
	assert_int_equal(rt_wait(rt, &ev, 1, rt_now_ns(rt) + LIMIT_NS), 0);
	wait_link(server, false);
	port_close(server);
}

static void test_ids_and_secrets(void **state)
{
	struct port *s0 = open_port(spec("id", "role=server,secret=abc"), 1, cache);
	struct port *s1 = open_port(spec("id", "role=server,id=7"), 3, cache);
	struct port *c0 = open_port(spec("id", "secret=abd"), 1, cache);
	struct port *c1 = open_port(spec("id", "id=7"), 2, cache);
	struct pk_slot slots[PK_BURST];
	struct port_config config = { .rt = rt, .arena = arena };
	struct ho_err err = { 0 };
	struct port *port;

	wait_link(c1, true);
	wait_link(s1, true);
	assert_false(c0->ops->link_up(c0));
	/* The queue that the client did not make has no link. */
	burst(slots, 3);
	assert_int_equal(port_tx(s1->txq[2], slots, 3), 3);
	assert_int_equal(drops(&s1->txq[2]->ctr, PORT_DROP_TX_LINK_DOWN), 3);
	assert_int_equal(port_open(spec("id", "role=server,id=7"), &config, &port, &err), -EBUSY);
	assert_non_null(strstr(err.text, "id 7 is in use"));
	wait_why(c0, "Incorrect secret");
	port_close(c0);
	c0 = open_port(spec("id", "secret=abc"), 1, cache);
	wait_link(c0, true);
	port_close(s0);
	port_close(c0);
	exchange(c1->txq[1], s1->rxq[1], 20, 100);
	port_close(c1);
	port_close(s1);
}

static void test_bad_options(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "memif:", "lacks" },
		{ "memif:@", "1 to" },
		{ "memif:@x,ring=100", "power of two" },
		{ "memif:@x,ring=1", "too small" },
		{ "memif:@x,ring=32768", "too large" },
		{ "memif:@x,bsize=65536", "too large" },
		{ "memif:@x,role=master", "client|server" },
		{ "memif:@x,role=server,zero_copy", "is for role=client" },
		{ "memif:@x,role=server,bsize=2048", "is for role=client" },
		{ "memif:@x,sealed", "is for role=server" },
		{ "memif:@x,secret=123456789012345678901234", "longer than 23" },
		{ "memif:@x,ring=16384,bsize=65535", "more than the 4 GB" },
		{ "memif:/nonexistent-holdoff/s,role=server", "cannot make the socket" },
		{ "memif:/dev/null,role=server", "is in use" },
	};
	struct port_config config = { .rt = rt, .arena = arena, .queues = 2 };

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct port *port = NULL;
		struct ho_err err = { 0 };

		assert_true(port_open(cases[i].text, &config, &port, &err) < 0);
		assert_null(port);
		if (!strstr(err.text, cases[i].says))
			fail_msg("'%s' says: %s", cases[i].text, err.text);
	}
}

static void test_socket_file(void **state)
{
	char path[64], text[100];
	struct port_config config = { .rt = rt, .arena = arena };
	struct ho_err err = { 0 };
	struct port *a, *b;

	snprintf(path, sizeof(path), "/tmp/holdoff-test-%d.sock", (int)getpid());
	snprintf(text, sizeof(text), "memif:%s,role=server,wait=0", path);
	/* Left behind by a process that died. */
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	strcpy(un.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
	a = open_port(text, 1, cache);
	/* Another listener of the same machine, not of this executor: refused. */
	struct rt *other;
	assert_int_equal(rt_os_create(&other, NULL), 0);
	config.rt = other;
	assert_int_equal(port_open(text, &config, &b, &err), -EADDRINUSE);
	rt_destroy(other);
	port_close(a);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_wait(void **state)
{
	char text[200];
	uint64_t began = rt_now_ns(rt);
	struct port *port;

	snprintf(text, sizeof(text), "memif:@holdoff-test-%d-w,wait=80ms", (int)getpid());
	port = open_port(text, 1, cache);
	assert_true(rt_now_ns(rt) - began >= 80000000);
	assert_false(port->ops->link_up(port));
	wait_why(port, "no server listens there");
	port_close(port);
}

/* --- threads ------------------------------------------------------------------------------ */

#define THREAD_FRAMES 200000

static void sender(void *arg)
{
	struct port_txq *q = arg;
	uint32_t made = 0;

	while (made < THREAD_FRAMES && !rt_stopping(rt)) {
		struct pk_slot slots[32];
		uint32_t bufs[32];
		unsigned n = pk_alloc(cache2, bufs, HO_MIN(32u, THREAD_FRAMES - made)), sent;

		for (unsigned i = 0; i < n; i++) {
			slots[i] = (struct pk_slot){ .buf = bufs[i],
						     .off = PK_HEADROOM_BYTES,
						     .len = 60 };
			memset(pk_data(arena, &slots[i]), (int)(made + i), 60);
		}
		sent = port_tx(q, slots, n);
		pk_free_slots(cache2, slots + sent, n - sent);
		made += sent;
		if (!sent)
			sched_yield();
	}
}

static void run_threads(const char *options, bool to_server)
{
	struct port *server, *client, *from, *to;
	struct rt_task_attr attr = { .name = "sender", .cpu = -1 };
	struct rt_task *task;
	uint32_t seen = 0;
	uint64_t deadline = rt_now_ns(rt) + LIMIT_NS;

	open_pair("thr", options, 1, &server, &client);
	from = to_server ? client : server;
	to = to_server ? server : client;
	port_bind_tx(from, 0, cache2);
	assert_int_equal(rt_spawn(rt, &attr, sender, from->txq[0], &task, NULL), 0);
	while (seen < THREAD_FRAMES) {
		struct rt_event *ev = to->ops->rx_event(to->rxq[0]);
		struct pk_slot slots[PK_BURST];
		unsigned n = port_rx(to->rxq[0], slots, PK_BURST);

		assert_true(rt_now_ns(rt) < deadline);
		for (unsigned i = 0; i < n; i++, seen++) {
			const uint8_t *p = pk_data(arena, &slots[i]);

			if (slots[i].len != 60 || p[0] != (uint8_t)seen || p[59] != (uint8_t)seen)
				fail_msg("frame %u is wrong", seen);
		}
		pk_free_slots(cache, slots, n);
		/* Sometimes sleep, to have the wake-up raced. */
		if (!n && !to->ops->arm(to->rxq[0]))
			assert_int_equal(rt_wait(rt, &ev, 1, deadline), 0);
		if (!n)
			to->ops->disarm(to->rxq[0]);
	}
	rt_join(rt, task);
	assert_int_equal(port_drain(from, LIMIT_NS), 0);
	assert_int_equal(from->txq[0]->ctr.packets, THREAD_FRAMES);
	port_close(client);
	port_close(server);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_threads(void **state)
{
	run_threads("", true);
	run_threads("", false);
	run_threads("zero_copy=yes", true);
	run_threads("zero_copy=yes", false);
}

/* --- hostile peers ------------------------------------------------------------------------ */

/* The server's end; the client is ours, but its ring is written by hand. */
static struct memif_ring *raw_ring(struct port *client, bool tx)
{
	struct memif_conn *conn = memif_port_of(client)->conn;

	return tx ? conn->tx[0].ring : conn->rx[0].ring;
}

static void test_hostile_descriptors(void **state)
{
	static const struct {
		struct memif_desc d;
		bool bad;
	} cases[] = {
		{ { .region = 0, .length = 60, .offset = 0 }, false },
		{ { .region = 1, .length = 60, .offset = 0 }, true },
		{ { .region = 65535, .length = 60, .offset = 0 }, true },
		{ { .region = 0, .length = 0, .offset = 0 }, true },
		{ { .region = 0, .length = 60, .offset = UINT32_MAX }, true },
		{ { .region = 0, .length = UINT32_MAX, .offset = UINT32_MAX }, true },
		{ { .region = 0, .length = UINT32_MAX, .offset = 0 }, true },
		{ { .region = 0, .length = 100000, .offset = 0 }, true },
		{ { .region = 0, .length = 60000, .offset = 0 }, false },
	};
	struct port *server, *client;
	struct pk_slot slots[PK_BURST];
	struct memif_ring *ring;
	uint64_t lost = 0;
	unsigned n;

	open_pair("hd", "ring=64", 1, &server, &client);
	ring = raw_ring(client, true);
	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		uint16_t head = ring->head;

		ring->desc[head & 63] = cases[i].d;
		/* A good one behind it must not suffer. */
		ring->desc[(head + 1) & 63] = cases[0].d;
		__atomic_store_n(&ring->head, (uint16_t)(head + 2), __ATOMIC_RELEASE);
		n = port_rx(server->rxq[0], slots, PK_BURST);
		lost += cases[i].bad;
		assert_int_equal(n, cases[i].bad ? 1 : cases[i].d.length > 2000 ? 34 : 2);
		assert_int_equal(slots[n - 1].len, 60);
		pk_free_slots(cache, slots, n);
		assert_int_equal(port_drops_sum(server->rxq[0]->ctr.drops), lost);
		assert_int_equal(ring->tail, ring->head);
	}
	assert_int_equal(drops(&server->rxq[0]->ctr, PORT_DROP_RX_TOO_LONG), 1);
	/* A chain without an end fills the ring. */
	for (unsigned i = 0; i < 64; i++)
		ring->desc[i] = (struct memif_desc){ .flags = MEMIF_DESC_NEXT, .length = 10 };
	__atomic_store_n(&ring->head, (uint16_t)(ring->head + 64), __ATOMIC_RELEASE);
	assert_int_equal(port_rx(server->rxq[0], slots, PK_BURST), 0);
	assert_int_equal(port_drops_sum(server->rxq[0]->ctr.drops), lost + 1);
	/* Impossible indices end the connection. */
	__atomic_store_n(&ring->head, (uint16_t)(ring->head + 65), __ATOMIC_RELEASE);
	assert_int_equal(port_rx(server->rxq[0], slots, PK_BURST), 0);
	assert_int_equal(drops(&server->rxq[0]->ctr, PORT_DROP_RX_MALFORMED), lost + 1);
	wait_link(server, false);
	wait_why(server, "Ring indices are impossible");
	port_close(client);
	port_close(server);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_hostile_offers(void **state)
{
	struct port *server, *client;
	struct pk_slot slots[PK_BURST];
	struct memif_ring *ring;

	open_pair("ho", "ring=64", 1, &server, &client);
	ring = raw_ring(client, false);
	ring->desc[0].region = 9;
	ring->desc[1].offset = UINT32_MAX;
	ring->desc[2].length = UINT32_MAX;
	ring->desc[3].length = 0;
	burst(slots, 6);
	assert_int_equal(port_tx(server->txq[0], slots, 6), 6);
	assert_int_equal(drops(&server->txq[0]->ctr, PORT_DROP_TX_MALFORMED), 4);
	assert_int_equal(server->txq[0]->ctr.packets, 2);
	/* Our client is strict about the frames of no bytes that this gives. */
	assert_int_equal(port_rx(client->rxq[0], slots, PK_BURST), 2);
	assert_int_equal(drops(&client->rxq[0]->ctr, PORT_DROP_RX_MALFORMED), 4);
	pk_free_slots(cache, slots, 2);
	/* The server's index, as the client sees it. */
	__atomic_store_n(&ring->tail, (uint16_t)(ring->tail + 200), __ATOMIC_RELEASE);
	assert_int_equal(port_rx(client->rxq[0], slots, PK_BURST), 0);
	wait_link(client, false);
	port_close(client);
	port_close(server);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_hostile_tail(void **state)
{
	struct port *server, *client;
	struct pk_slot slots[PK_BURST];

	for (int zc = 0; zc < 2; zc++) {
		open_pair("ht", zc ? "ring=64,zero_copy" : "ring=64", 1, &server, &client);
		burst(slots, 10);
		assert_int_equal(port_tx(client->txq[0], slots, 10), 10);
		__atomic_store_n(&raw_ring(client, true)->tail, 11, __ATOMIC_RELEASE);
		assert_int_equal(port_reap(client->txq[0]), 0);
		wait_link(client, false);
		assert_int_equal(port_reap(client->txq[0]), 0);
		assert_int_equal(drops(&client->txq[0]->ctr, PORT_DROP_TX_LINK_DOWN), 10);
		port_close(server);
		port_close(client);
		assert_int_equal(pk_arena_missing(arena), 0);
	}
}

/* Messages to the state machine of a server whose offer is `offer`. */
static struct memif_offer offer;

static const struct memif_offer *find_offer(void *arg, uint32_t id, const char **why)
{
	return id == offer.id ? &offer : NULL;
}

static void begin(struct memif_chan *chan, struct memif_out *out)
{
	struct memif_msg msg = { .type = MEMIF_MSG_INIT };

	offer = (struct memif_offer){ .id = 3, .queues = 2, .log2_ring = 10 };
	memif_chan_server(chan, find_offer, NULL, 10, out);
	assert_true(out->pending);
	msg.init.version = MEMIF_VERSION;
	msg.init.id = 3;
	memif_chan_input(chan, &msg, -1, out);
	assert_int_equal(chan->state, MEMIF_WAIT_CONNECT);
	assert_int_equal(out->msg.type, MEMIF_MSG_ACK);
}

static void expect_closed(struct memif_chan *chan, struct memif_out *out, const char *why)
{
	assert_int_equal(chan->state, MEMIF_CLOSED);
	assert_string_equal(chan->why, why);
	assert_int_equal(out->msg.type, MEMIF_MSG_DISCONNECT);
	assert_string_equal((char *)out->msg.disconnect.reason, why);
	memif_conn_free(chan->conn);
}

static int memory(size_t bytes, bool seal)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (seal)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	return fd;
}

static void test_hostile_messages(void **state)
{
	struct memif_msg region = { .type = MEMIF_MSG_ADD_REGION },
			 ring = { .type = MEMIF_MSG_ADD_RING },
			 connect = { .type = MEMIF_MSG_CONNECT };
	struct memif_chan chan;
	struct memif_out out;

	region.add_region.bytes = 65536;
	ring.add_ring.log2_ring_size = 4;
	ring.add_ring.flags = MEMIF_ADD_RING_C2S;

	/* Out of sequence, and types that do not exist. */
	for (unsigned type = 0; type < 12; type++) {
		struct memif_msg msg = { .type = (uint16_t)type };

		if (type == MEMIF_MSG_INIT || type == MEMIF_MSG_DISCONNECT)
			continue;
		memif_chan_server(&chan, find_offer, NULL, 10, &out);
		memif_chan_input(&chan, &msg, eventfd(0, 0), &out);
		expect_closed(&chan, &out, "Unexpected message");
	}
	begin(&chan, &out);
	memif_chan_input(&chan, &region, -1, &out);
	expect_closed(&chan, &out, "Missing region fd");
	begin(&chan, &out);
	memif_chan_input(&chan, &region, eventfd(0, 0), &out);
	expect_closed(&chan, &out, "Region fd is not memory");
	begin(&chan, &out);
	memif_chan_input(&chan, &region, memory(65535, true), &out);
	expect_closed(&chan, &out, "Region is larger than its memory");
	begin(&chan, &out);
	offer.sealed = true;
	memif_chan_input(&chan, &region, memory(65536, false), &out);
	expect_closed(&chan, &out, "Region is not sealed against shrinking");
	begin(&chan, &out);
	region.add_region.index = 1;
	memif_chan_input(&chan, &region, memory(65536, true), &out);
	expect_closed(&chan, &out, "Invalid region index");
	region.add_region.index = 0;

	begin(&chan, &out);
	memif_chan_input(&chan, &ring, -1, &out);
	expect_closed(&chan, &out, "Missing interrupt fd");
	begin(&chan, &out);
	memif_chan_input(&chan, &ring, memory(8, false), &out);
	expect_closed(&chan, &out, "Interrupt fd is not an eventfd");
	begin(&chan, &out);
	ring.add_ring.index = 2;
	memif_chan_input(&chan, &ring, eventfd(0, 0), &out);
	expect_closed(&chan, &out, "Invalid ring index");
	begin(&chan, &out);
	ring.add_ring.index = 0;
	ring.add_ring.log2_ring_size = 11;
	memif_chan_input(&chan, &ring, eventfd(0, 0), &out);
	expect_closed(&chan, &out, "Invalid ring size");
	ring.add_ring.log2_ring_size = 4;

	begin(&chan, &out);
	memif_chan_input(&chan, &connect, -1, &out);
	expect_closed(&chan, &out, "Connect without a ring");
	static const struct {
		uint16_t region;
		uint32_t offset;
		const char *why;
	} places[] = {
		{ 1, 0, "Ring in a region that was not added" },
		{ 0, 65536 - 128 - 16 * 16 + 16, "Ring outside of its region" },
		{ 0, 65536, "Ring outside of its region" },
		{ 0, UINT32_MAX - 15, "Ring outside of its region" },
		{ 0, 3, "Ring outside of its region" },
		{ 0, 65536 - 128 - 16 * 16, "Wrong cookie" },
	};
	for (size_t i = 0; i < HO_ARRAY_LEN(places); i++) {
		begin(&chan, &out);
		memif_chan_input(&chan, &region, memory(65536, true), &out);
		assert_int_equal(out.msg.type, MEMIF_MSG_ACK);
		ring.add_ring.region = places[i].region;
		ring.add_ring.offset = places[i].offset;
		memif_chan_input(&chan, &ring, eventfd(0, 0), &out);
		assert_int_equal(out.msg.type, MEMIF_MSG_ACK);
		memif_chan_input(&chan, &connect, -1, &out);
		expect_closed(&chan, &out, places[i].why);
	}
}

static void test_hostile_hello(void **state)
{
	struct memif_msg hello = { .type = MEMIF_MSG_HELLO };
	struct memif_offer mine = { .client = true, .queues = 4, .log2_ring = 10, .bsize = 2048 };
	struct memif_chan chan;
	struct memif_out out;

	hello.hello.min_version = hello.hello.max_version = MEMIF_VERSION + 1;
	memif_chan_client(&chan, &mine);
	memif_chan_input(&chan, &hello, -1, &out);
	expect_closed(&chan, &out, "Incompatible memif version");
	hello.hello.min_version = hello.hello.max_version = MEMIF_VERSION;
	memif_chan_client(&chan, &mine);
	memif_chan_input(&chan, &hello, -1, &out);
	expect_closed(&chan, &out, "The server allows no ring");
	hello.hello.max_log2_ring_size = 255;
	hello.hello.max_s2c_ring = hello.hello.max_c2s_ring = 65535;
	memset(hello.hello.name, 0xff, sizeof(hello.hello.name));
	memif_chan_client(&chan, &mine);
	memif_chan_input(&chan, &hello, -1, &out);
	assert_int_equal(chan.state, MEMIF_WAIT_ACK);
	assert_int_equal(chan.conn->n_tx, 4);
	assert_int_equal(chan.conn->tx[0].size, 1024);
	assert_int_equal(strlen(chan.peer), MEMIF_NAME_BYTES);
	memif_chan_input(&chan, &hello, -1, &out);
	expect_closed(&chan, &out, "Unexpected message");
}

/* A raw socket that talks nonsense to a listening port: it survives and serves the next. */
static void test_hostile_socket(void **state)
{
	struct port *server = open_port(spec("hs", "role=server"), 1, cache), *client;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *name = memif_port_of(server)->address;
	static const size_t sizes[] = { 1, 127, 129, 4000 };
	uint8_t junk[4000] = { 3 };

	memcpy(un.sun_path + 1, name + 1, strlen(name) - 1);
	for (size_t i = 0; i < HO_ARRAY_LEN(sizes); i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		struct memif_msg msg;

		assert_int_equal(connect(fd, (struct sockaddr *)&un,
					 (socklen_t)(sizeof(sa_family_t) + strlen(name))),
				 0);
		assert_int_equal(recv(fd, &msg, sizeof(msg), 0), sizeof(msg));
		assert_int_equal(msg.type, MEMIF_MSG_HELLO);
		assert_int_equal(send(fd, junk, sizes[i], 0), (ssize_t)sizes[i]);
		assert_int_equal(recv(fd, &msg, sizeof(msg), 0), sizeof(msg));
		assert_int_equal(msg.type, MEMIF_MSG_DISCONNECT);
		assert_string_equal((char *)msg.disconnect.reason, "Invalid message size");
		assert_int_equal(recv(fd, &msg, sizeof(msg), 0), 0);
		close(fd);
	}
	client = open_port(spec("hs", ""), 1, cache);
	wait_link(server, true);
	port_close(client);
	port_close(server);
}

/* Every length: the bytes, zeroes to the end of the line, and nothing behind it. */
static void test_stream(void **state)
{
	static uint8_t to[4096] HO_CACHE_ALIGNED, from[4096];

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + 1) | 1;
	for (uint32_t len = 1; len < 2000; len++) {
		uint32_t end = HO_ALIGN_UP(len, HO_CACHE_LINE);

		memset(to, 0xee, sizeof(to));
		memif_stream(to, from + len % 16, len);
		memif_stream_end();
		assert_memory_equal(to, from + len % 16, len);
#ifdef __SSE2__
		for (uint32_t i = len; i < end; i++)
			assert_int_equal(to[i], 0);
#endif
		assert_int_equal(to[end], 0xee);
	}
}

static void burn(uint64_t ticks)
{
	uint64_t begin = rt_tsc_read();

	while (rt_tsc_read() - begin < ticks)
		;
}

/* Bursts until a comparison is through, streaming or plain ones being `dear`. */
static bool tune(struct memif_tune *t, bool stream_is_dear)
{
	bool compared = false;

	while (!compared || t->turn) {
		bool stream = memif_tune_begin(t, PK_BURST);

		compared |= t->turn != 0;
		if (t->turn)
			burn(stream == stream_is_dear ? 100000 : 1000);
		memif_tune_end(t, PK_BURST, PK_BURST);
	}
	return t->stream;
}

static void test_tune(void **state)
{
	struct memif_tune t;

	memif_tune_init(&t);
	assert_false(t.stream);
	assert_true(tune(&t, false));
	assert_true(memif_tune_begin(&t, PK_BURST));
	/* A few frames are not streamed: somebody waits for them. */
	assert_false(memif_tune_begin(&t, MEMIF_TUNE_SLOTS - 1));
	assert_false(tune(&t, true));
	assert_false(memif_tune_begin(&t, PK_BURST));
	assert_true(tune(&t, false));
	/* Bursts that the ring had no room for say nothing. */
	while (!t.turn)
		memif_tune_begin(&t, PK_BURST);
	for (unsigned i = 0; i < 100; i++) {
		assert_false(memif_tune_begin(&t, PK_BURST));
		memif_tune_end(&t, PK_BURST - 1, PK_BURST);
		assert_int_equal(t.turn, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_small_ring),
		cmocka_unit_test(test_odd_buffers),
		cmocka_unit_test(test_zero_copy),
		cmocka_unit_test(test_reconnect),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_ids_and_secrets),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_socket_file),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_hostile_descriptors),
		cmocka_unit_test(test_hostile_offers),
		cmocka_unit_test(test_hostile_tail),
		cmocka_unit_test(test_hostile_messages),
		cmocka_unit_test(test_hostile_hello),
		cmocka_unit_test(test_hostile_socket),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_tune),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
