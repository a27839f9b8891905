// SPDX-License-Identifier: BSD-2-Clause
/* Port pcap: what is written is read again, in every format; every broken file says why. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "port/port.h"

#define T0 1700000000u /* seconds, of the first record */

static struct rt *rt;
static struct pk_arena *arena;
static struct pk_cache *cache;
static char dir[] = "/tmp/holdoff-pcap-XXXXXX";

static int setup(void **state)
{
	struct pk_arena_config config = { .buffers = 8192, .no_huge = true };

	if (!mkdtemp(dir) || chdir(dir) < 0 || rt_os_create(&rt, NULL) ||
	    pk_arena_create(&config, &arena, NULL) || pk_cache_create(arena, &cache, NULL))
		return -1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return 0;
}

static int teardown(void **state)
{
	int missing = (int)pk_arena_missing(arena);
	char command[64];

	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
	rt_destroy(rt);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) | missing;
}

/* A file under construction, in either byte order. */
struct file {
	uint8_t bytes[512 << 10];
	size_t n;
	bool big;
};

static struct file f;

static void put(const void *bytes, size_t n)
{
	assert_true(f.n + n <= sizeof(f.bytes));
	memcpy(f.bytes + f.n, bytes, n);
	f.n += n;
}

static void put16(uint16_t v)
{
	v = f.big ? __builtin_bswap16(v) : v;
	put(&v, 2);
}

static void put32(uint32_t v)
{
	v = f.big ? __builtin_bswap32(v) : v;
	put(&v, 4);
}

static void begin(bool big, bool nano, uint32_t snaplen, uint32_t link)
{
	f.n = 0;
	f.big = big;
	put32(nano ? 0xa1b23c4d : 0xa1b2c3d4);
	put16(2);
	put16(4);
	put32(0);
	put32(0);
	put32(snaplen);
	put32(link);
}

static uint8_t pattern(unsigned seed, unsigned i)
{
	return (uint8_t)(seed * 37 + i * 11 + (i >> 8));
}

static void record(uint32_t sec, uint32_t fraction, uint32_t caplen, uint32_t len)
{
	put32(sec);
	put32(fraction);
	put32(caplen);
	put32(len);
	for (uint32_t i = 0; i < caplen; i++) {
		uint8_t byte = pattern(len, i);

		put(&byte, 1);
	}
}

/* pcapng: section, one interface, then blocks. */
static void begin_ng(bool big, uint16_t link, int tsresol)
{
	f.n = 0;
	f.big = big;
	put32(0x0a0d0d0a);
	put32(28);
	put32(0x1a2b3c4d);
	put16(1);
	put16(0);
	put32(0xffffffff);
	put32(0xffffffff);
	put32(28);
	put32(1);
	put32(32);
	put16(link);
	put16(0);
	put32(262144);
	put16(9); /* if_tsresol */
	put16(1);
	put((uint8_t[4]){ (uint8_t)tsresol }, 4);
	put32(0); /* end of options */
	put32(32);
}

static void block_ng(uint64_t ticks, uint32_t len)
{
	uint32_t padded = (len + 3) & ~3u, total = 32 + padded;

	put32(6);
	put32(total);
	put32(0);
	put32((uint32_t)(ticks >> 32));
	put32((uint32_t)ticks);
	put32(len);
	put32(len);
	for (uint32_t i = 0; i < padded; i++) {
		uint8_t byte = i < len ? pattern(len, i) : 0;

		put(&byte, 1);
	}
	put32(total);
}

static void save(const char *name)
{
	FILE *out = fopen(name, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(f.bytes, 1, f.n, out), f.n);
	assert_int_equal(fclose(out), 0);
}

static int try_open(const char *spec, bool rx, bool tx, const char *filter, struct port **out,
		    struct ho_err *err)
{
	struct port_config config = {
		.rt = rt, .arena = arena, .rx = rx, .tx = tx, .filter = filter
	};

	*out = NULL;
	return port_open(spec, &config, out, err);
}

static struct port *open_port(const char *spec, bool rx, bool tx, const char *filter)
{
	struct ho_err err = { 0 };
	struct port *port;

	if (try_open(spec, rx, tx, filter, &port, &err) < 0)
		fail_msg("%s", err.text);
	port_bind_rx(port, 0, cache);
	port_bind_tx(port, 0, cache);
	assert_int_equal(port_start(port, &err), 0);
	return port;
}

static uint64_t slot_time(const struct pk_slot *slot)
{
	uint64_t time;

	assert_true(slot->flags & PK_TIME);
	memcpy(&time, pk_data(arena, slot) - 8, 8);
	return time;
}

/* Receives one frame: its length, 0 when there is none. Checks its bytes. */
static uint32_t take(struct port *port, uint64_t *time)
{
	static uint8_t bytes[PK_FRAME_MAX_BYTES];
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	unsigned n = 0;
	uint32_t len;

	/* By ones: a burst of just the slots that a single frame needs. */
	static struct pk_slot queue[PK_BURST];
	static unsigned first, last;
	if (first == last) {
		first = 0;
		last = port_rx(port->rxq[0], queue, PK_BURST);
		if (!last)
			return 0;
	}
	n = pk_frame_slots(queue + first, last - first);
	memcpy(slots, queue + first, n * sizeof(slots[0]));
	first += n;
	len = pk_frame_to_bytes(arena, slots, n, bytes, sizeof(bytes));
	for (uint32_t i = 0; i < len; i++) {
		if (bytes[i] != pattern(len, i))
			fail_msg("byte %u of a frame of %u", i, len);
	}
	if (time)
		*time = slot_time(slots);
	pk_free_slots(cache, slots, n);
	return len;
}

static void expect_end(struct port *port)
{
	struct ho_err err = { 0 };

	assert_int_equal(take(port, NULL), 0);
	assert_true(port->ops->rx_ended(port->rxq[0]));
	if (port_late_error(port, &err) < 0)
		fail_msg("%s", err.text);
	port_close(port);
}

static void test_formats(void **state)
{
	for (int kind = 0; kind < 8; kind++) {
		bool big = kind & 1, nano = kind & 2, ng = kind & 4;
		struct port *port;
		uint64_t time;

		if (ng) {
			begin_ng(big, 1, nano ? 9 : 6);
			block_ng(nano ? T0 * 1000000000ull + 123456789 : T0 * 1000000ull + 123456,
				 61);
			block_ng(nano ? T0 * 1000000000ull + 999999999 : T0 * 1000000ull + 999999,
				 9018);
		} else {
			begin(big, nano, 262144, 1);
			record(T0, nano ? 123456789 : 123456, 61, 61);
			record(T0, nano ? 999999999 : 999999, 9018, 9018);
		}
		save("format");
		port = open_port("pcap:format", true, false, NULL);
		assert_int_equal(take(port, &time), 61);
		assert_int_equal(time, T0 * 1000000000ull + (nano ? 123456789 : 123456000));
		assert_int_equal(take(port, &time), 9018);
		assert_int_equal(time, T0 * 1000000000ull + (nano ? 999999999 : 999999000));
		expect_end(port);
	}
}

static unsigned make_frame(uint32_t len, struct pk_slot *slots)
{
	static uint8_t bytes[PK_FRAME_MAX_BYTES];

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = pattern(len, i);
	return pk_frame_from_bytes(cache, bytes, len, slots, PK_FRAME_MAX_SLOTS);
}

static void test_round_trip(void **state)
{
	enum { FRAMES = 3000 };
	static uint32_t lens[FRAMES];

	srand(7);
	for (int nano = 0; nano < 2; nano++) {
		struct port *port =
			open_port(nano ? "pcap:rt" : "pcap:rt,nano=no", false, true, NULL);
		uint64_t bytes = 0;

		for (unsigned i = 0; i < FRAMES; i++) {
			struct pk_slot slots[PK_FRAME_MAX_SLOTS];
			uint64_t time =
				(T0 + i) * 1000000000ull + (uint64_t)rand() % 1000000 * 1000;
			unsigned n;

			lens[i] = i % 50 ? 14 + (uint32_t)rand() % 1500
					 : PK_FRAME_MAX_BYTES - (uint32_t)rand() % 60000;
			if (i == 50)
				lens[i] = PK_FRAME_MAX_BYTES;
			n = make_frame(lens[i], slots);
			assert_true(n > 0);
			memcpy(pk_data(arena, slots) - 8, &time, 8);
			slots[0].flags |= PK_TIME;
			assert_int_equal(port_tx(port->txq[0], slots, n), n);
			bytes += lens[i];
		}
		assert_int_equal(port_drain(port, 1000000000), 0);
		assert_int_equal(port->txq[0]->ctr.packets, FRAMES);
		assert_int_equal(port->txq[0]->ctr.bytes, bytes);
		port_close(port);
		srand(7);
		for (int memory = 0; memory < 2; memory++) {
			port = open_port(memory ? "pcap:rt,memory,loop=2" : "pcap:rt,loop=2", true,
					 false, NULL);
			for (unsigned i = 0; i < 2 * FRAMES; i++) {
				uint64_t time;

				assert_int_equal(take(port, &time), lens[i % FRAMES]);
				assert_int_equal(time / 1000000000u, T0 + i % FRAMES);
			}
			assert_int_equal(port->rxq[0]->ctr.bytes, 2 * bytes);
			expect_end(port);
		}
		srand(7);
	}
}

static void test_vlan_and_snaplen(void **state)
{
	struct port *port = open_port("pcap:vlan,snaplen=18", false, true, NULL);
	struct pk_slot slot;
	uint8_t bytes[128];
	uint32_t head[4];
	FILE *in;

	assert_int_equal(make_frame(60, &slot), 1);
	slot.flags |= PK_VLAN;
	slot.vlan = 0x2123;
	assert_int_equal(port_tx(port->txq[0], &slot, 1), 1);
	port_close(port);
	in = fopen("vlan", "r");
	assert_int_equal(fread(bytes, 1, sizeof(bytes), in), 24 + 16 + 18);
	fclose(in);
	memcpy(head, bytes + 24, sizeof(head));
	assert_int_equal(head[2], 18);
	assert_int_equal(head[3], 64);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(bytes[40 + i], pattern(60, i));
	assert_memory_equal(bytes + 52, "\x81\x00\x21\x23", 4);
	assert_int_equal(bytes[56], pattern(60, 12));
	assert_int_equal(bytes[57], pattern(60, 13));
}

static void test_drops(void **state)
{
	struct port *port;

	begin(false, true, 262144, 1);
	record(T0, 0, 60, 60);
	record(T0, 0, 60, 1500);     /* captured in part */
	record(T0, 0, 66000, 66000); /* too long */
	record(T0, 0, 13, 13);       /* no Ethernet header */
	record(T0, 0, 80, 80);
	record(T0, 0, 70, 70);
	save("drops");
	port = open_port("pcap:drops", true, false, "len <= 70");
	assert_int_equal(take(port, NULL), 60);
	assert_int_equal(take(port, NULL), 70);
	assert_int_equal(port->rxq[0]->ctr.drops[PORT_DROP_RX_TRUNCATED], 1);
	assert_int_equal(port->rxq[0]->ctr.drops[PORT_DROP_RX_TOO_LONG], 1);
	assert_int_equal(port->rxq[0]->ctr.drops[PORT_DROP_RX_MALFORMED], 1);
	assert_int_equal(port->rxq[0]->ctr.drops[PORT_DROP_RX_FILTERED], 1);
	expect_end(port);
	port = open_port("pcap:drops,limit=1,loop=3", true, false, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(take(port, NULL), 60);
	expect_end(port);
	/* Without end, but with nothing to show: it must end all the same. */
	port = open_port("pcap:drops,loop=0", true, false, "len > 100000");
	while (!port->ops->rx_ended(port->rxq[0]))
		assert_int_equal(take(port, NULL), 0);
	expect_end(port);
}

/* What an open must say. */
static void expect_open(const char *spec, const char *says)
{
	struct ho_err err = { 0 };
	struct port *port;

	if (try_open(spec, true, false, NULL, &port, &err) == 0)
		fail_msg("%s: opens", spec);
	assert_null(port);
	if (!strstr(err.text, says) || strncmp(err.text, "pcap:", 5))
		fail_msg("%s says: %s", spec, err.text);
}

/* A file that opens, gives `good` frames and then says this. */
static void expect_late(unsigned good, const char *says)
{
	for (int memory = 0; memory < 2; memory++) {
		struct ho_err err = { 0 };
		struct port *port;

		save("late");
		if (memory) {
			expect_open("pcap:late,memory", says);
			continue;
		}
		port = open_port("pcap:late,loop=0", true, false, NULL);
		for (unsigned i = 0; i < good; i++)
			assert_true(take(port, NULL) > 0);
		assert_int_equal(take(port, NULL), 0);
		assert_true(port->ops->rx_ended(port->rxq[0]));
		assert_int_equal(port_late_error(port, &err), -EINVAL);
		if (!strstr(err.text, says) || strncmp(err.text, "pcap:late: ", 11))
			fail_msg("says: %s", err.text);
		assert_int_equal(port->rxq[0]->ctr.drops[PORT_DROP_RX_MALFORMED], 1);
		port_close(port);
	}
}

static void test_broken_files(void **state)
{
	expect_open("pcap:nowhere", "cannot be opened: No such file");
	expect_open("pcap:.", "is a directory");
	f.n = 0;
	save("b");
	expect_open("pcap:b", "is empty");
	begin(false, true, 262144, 1);
	f.n = 13;
	save("b");
	expect_open("pcap:b", "truncated dump file");
	put("garbage garbage garbage garbage", 20);
	memcpy(f.bytes, "abcd", 4);
	save("b");
	expect_open("pcap:b", "is not a pcap or pcapng file");
	begin(false, true, 262144, 113);
	save("b");
	expect_open("pcap:b", "on a link of type LINUX_SLL; only Ethernet");
	begin(false, true, 262144, 101);
	save("b");
	expect_open("pcap:b", "on a link of type RAW; only Ethernet");
	begin_ng(false, 113, 9);
	block_ng(0, 60);
	save("b");
	expect_open("pcap:b", "on a link of type LINUX_SLL");
	begin(false, true, 262144, 1);
	f.bytes[4] = 9; /* version 9.4 */
	save("b");
	expect_open("pcap:b", "is not a pcap or pcapng file that can be read");
	begin_ng(false, 1, 9);
	f.n = 40; /* in the middle of the interface's block */
	save("b");
	expect_open("pcap:b", "truncated");

	/* From here on the header is right. */
	begin(false, true, 262144, 1);
	record(T0, 0, 60, 60);
	record(T0, 0, 60, 60);
	f.n -= 1;
	expect_late(1, "record 2 at byte 100 is broken: truncated dump file");
	f.n = 100 + 7; /* in the record's header */
	expect_late(1, "record 2 at byte 100 is broken: truncated dump file");
	begin(true, false, 262144, 1);
	record(T0, 0, 60, 60);
	put32(T0);
	put32(0);
	put32(0xffffffff);
	put32(0xffffffff);
	expect_late(1, "record 2 at byte 100 is broken: invalid packet capture length 4294967295");
	begin(true, false, 262144, 1);
	put32(T0);
	put32(0);
	put32(0x7fffffff);
	put32(60);
	expect_late(0, "record 1 at byte 24 is broken: invalid packet capture length 2147483647");
	begin_ng(false, 1, 9);
	block_ng(0, 60);
	block_ng(0, 60);
	f.n -= 5;
	expect_late(1, "record 2 at byte 152 is broken: truncated");
	begin_ng(false, 1, 9);
	block_ng(0, 60);
	put32(6);
	put32(0xfffffff0); /* block length */
	put("............", 12);
	expect_late(1, "record 2 at byte 152 is broken");
	begin_ng(false, 1, 9);
	block_ng(0, 60);
	block_ng(0, 60);
	f.bytes[152 + 20] = 200; /* captured length beyond the block */
	expect_late(1, "record 2 at byte 152 is broken");
	begin_ng(false, 1, 9);
	block_ng(0, 60);
	block_ng(0, 60);
	f.bytes[152 + 8] = 3; /* an interface that was not described */
	expect_late(1, "record 2 at byte 152 is broken");
}

static void test_options(void **state)
{
	struct port_config two = { .rt = rt, .arena = arena, .queues = 2 };
	struct ho_err err = { 0 };
	struct port *port;

	begin(false, true, 262144, 1);
	save("good");
	expect_open("pcap:good,speed=-1", "not a number");
	expect_open("pcap:good,snaplen=100", "would be read");
	expect_open("pcap:good,bogus", "no option 'bogus'");
	assert_int_equal(try_open("pcap:new,loop=2", false, true, NULL, &port, &err), -EINVAL);
	assert_non_null(strstr(err.text, "would be written"));
	assert_int_equal(access("new", F_OK), -1);
	assert_int_equal(port_open("pcap:good", &two, &port, &err), -EINVAL);
	assert_non_null(strstr(err.text, "a capture file has one"));
	assert_int_equal(try_open("pcap:good", true, false, "bogus ((", &port, &err), -EINVAL);
	assert_non_null(strstr(err.text, "filter 'bogus ((': "));
	assert_int_equal(try_open("pcap:no/where", false, true, NULL, &port, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot be written: No such file"));
}

static void test_direction(void **state)
{
	struct port *reader, *port;
	struct ho_err err = { 0 };
	struct pk_slot slot;

	/* Both directions of a file that is not there: written. */
	unlink("d");
	port = open_port("pcap:d", false, false, NULL);
	assert_true(port->ops->rx_ended(port->rxq[0]));
	assert_int_equal(make_frame(60, &slot), 1);
	assert_int_equal(port_tx(port->txq[0], &slot, 1), 1);
	/* Nobody may read it now, nor write it a second time. */
	assert_int_equal(try_open("pcap:d", true, false, NULL, &reader, &err), -EBUSY);
	assert_non_null(strstr(err.text, "is being written"));
	assert_int_equal(try_open("pcap:d", false, true, NULL, &reader, &err), -EBUSY);
	port_close(port);
	/* Of one that is there: read, and what is sent has nowhere to go. */
	reader = open_port("pcap:d", false, false, NULL);
	assert_int_equal(make_frame(60, &slot), 1);
	assert_int_equal(port_tx(reader->txq[0], &slot, 1), 1);
	assert_int_equal(reader->txq[0]->ctr.drops[PORT_DROP_TX_LINK_DOWN], 1);
	assert_int_equal(port_tx_in_flight(reader->txq[0]), 0);
	/* It is being read: never overwritten, under another name neither. */
	assert_int_equal(link("d", "d2"), 0);
	assert_int_equal(try_open("pcap:d2", false, true, NULL, &port, &err), -EBUSY);
	assert_non_null(strstr(err.text, "is being read or written"));
	assert_int_equal(take(reader, NULL), 60);
	expect_end(reader);
	port = open_port("pcap:d2", false, true, NULL);
	port_close(port);
	reader = open_port("pcap:d", true, false, NULL);
	expect_end(reader);
}

static void test_full_disk(void **state)
{
	struct rlimit old, limit;
	struct port *port = open_port("pcap:full", false, true, NULL), *again;
	uint64_t sent = 0, packets;
	struct ho_err err = { 0 };

	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 1000003;
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < 2000; i++, sent++) {
		struct pk_slot slot;

		assert_int_equal(make_frame(1000, &slot), 1);
		assert_int_equal(port_tx(port->txq[0], &slot, 1), 1);
	}
	port_stop(port);
	setrlimit(RLIMIT_FSIZE, &old);
	packets = port->txq[0]->ctr.packets;
	assert_int_equal(packets, (1000003 - 24) / 1016);
	assert_int_equal(port->txq[0]->ctr.drops[PORT_DROP_TX_WRITE], sent - packets);
	assert_int_equal(port_tx_in_flight(port->txq[0]), 0);
	assert_int_equal(port_late_error(port, &err), -EFBIG);
	assert_non_null(strstr(err.text, "pcap:full: writing failed after 984 records: File too"));
	port_close(port);
	/* What is there is a whole file. */
	again = open_port("pcap:full", true, false, NULL);
	for (uint64_t i = 0; i < packets; i++)
		assert_int_equal(take(again, NULL), 1000);
	expect_end(again);
	/* A device that is full from the start. */
	assert_int_equal(try_open("pcap:/dev/full", false, true, NULL, &port, &err), 0);
	assert_int_equal(port_start(port, &err), -ENOSPC);
	port_close(port);
	assert_non_null(strstr(err.text, "cannot write its header: No space left"));
}

static void test_timing(void **state)
{
	struct port *port;
	uint64_t start, end, due;

	begin(false, true, 262144, 1);
	record(T0, 0, 60, 60);
	record(T0, 40000000, 61, 61);
	record(T0, 20000000, 62, 62); /* its clock went back: at once */
	record(T0, 60000000, 63, 63);
	save("timed");
	/* 40 + 0 + 20 ms, a mean gap of 20 ms, and once more, twice as fast: 70 ms. */
	port = open_port("pcap:timed,speed=2,loop=2", true, false, NULL);
	start = rt_now_ns(rt);
	for (unsigned i = 0; i < 8;) {
		uint32_t len = take(port, NULL);
		struct rt_event *ev = port->ops->rx_event(port->rxq[0]);

		if (len)
			assert_int_equal(len, 60 + i++ % 4);
		else if (!port->ops->arm(port->rxq[0]))
			assert_int_equal(rt_wait(rt, &ev, 1, rt_now_ns(rt) + 1000000000u), 0);
		/* A frame that is due may only be early by nothing. */
		due = start + (uint64_t[]){ 0, 20, 20, 30 }[(i + 3) % 4] * 1000000u;
		if (len && i <= 4)
			assert_true(rt_now_ns(rt) >= due);
	}
	end = rt_now_ns(rt);
	assert_true(end - start >= 70000000u);
	assert_true(end - start < 1000000000u);
	expect_end(port);
}

static void test_stream(void **state)
{
	struct port *port;
	struct ho_err err = { 0 };
	int fds[2], saved = dup(STDIN_FILENO);

	assert_int_equal(pipe(fds), 0);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	begin(false, true, 262144, 1);
	record(T0, 0, 60, 60);
	assert_int_equal(write(fds[1], f.bytes, f.n), (ssize_t)f.n);
	port = open_port("pcap:-", true, false, NULL);
	assert_int_equal(take(port, NULL), 60);
	/* Nothing there now, but not the end. */
	assert_int_equal(take(port, NULL), 0);
	assert_false(port->ops->rx_ended(port->rxq[0]));
	assert_false(port->ops->arm(port->rxq[0]));
	f.n = 0;
	record(T0, 0, 77, 77);
	record(T0, 0, 78, 78);
	assert_int_equal(write(fds[1], f.bytes, f.n - 3), (ssize_t)f.n - 3);
	struct rt_event *ev = port->ops->rx_event(port->rxq[0]);
	assert_int_equal(rt_wait(rt, &ev, 1, rt_now_ns(rt) + 1000000000u), 0);
	close(fds[1]);
	assert_int_equal(take(port, NULL), 77);
	assert_int_equal(take(port, NULL), 0);
	assert_true(port->ops->rx_ended(port->rxq[0]));
	assert_true(port_late_error(port, &err) < 0);
	assert_non_null(strstr(err.text, "record 3 at byte 193 is broken: truncated"));
	port_close(port);

	/* A pipe cannot be read twice. */
	assert_int_equal(pipe(fds), 0);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	begin(false, true, 262144, 1);
	assert_int_equal(write(fds[1], f.bytes, f.n), (ssize_t)f.n);
	close(fds[1]);
	assert_int_equal(try_open("pcap:-,loop=2", true, false, NULL, &port, &err), -ESPIPE);
	assert_non_null(strstr(err.text, "loop needs a file"));
	dup2(saved, STDIN_FILENO);

	/* The reader of what we write goes away. */
	saved = dup(STDOUT_FILENO);
	fflush(stdout);
	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDOUT_FILENO);
	close(fds[1]);
	port = open_port("pcap:-", false, true, NULL);
	close(fds[0]);
	struct pk_slot slot;
	make_frame(60, &slot);
	port_tx(port->txq[0], &slot, 1);
	port_stop(port);
	dup2(saved, STDOUT_FILENO);
	assert_int_equal(port->txq[0]->ctr.drops[PORT_DROP_TX_WRITE], 1);
	assert_int_equal(port_late_error(port, &err), -EPIPE);
	port_close(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),          cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_vlan_and_snaplen), cmocka_unit_test(test_drops),
		cmocka_unit_test(test_broken_files),     cmocka_unit_test(test_options),
		cmocka_unit_test(test_direction),        cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_timing),           cmocka_unit_test(test_stream),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
