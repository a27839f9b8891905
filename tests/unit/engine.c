// SPDX-License-Identifier: BSD-2-Clause
/*
 * The traffic tasks on the virtual clock, over mem: ports: nothing in them knows which clock they
 * run on, and the same run gives the same result. And what they do to single frames.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lab/exec.h"
#include "packet/csum.h"
#include "traffic/filter.h"
#include "traffic/forwarder.h"
#include "traffic/receiver.h"
#include "traffic/rr.h"
#include "traffic/sender.h"
#include "traffic/spec.h"

static struct sim *sim;
static struct rt *rt;
static struct pk_arena *arena;
static struct pk_cache *caches[8];

static int setup(void **state)
{
	struct pk_arena_config config = { .buffers = 8192, .no_huge = true };
	struct lab_machine machine;

	lab_machine_defaults(&machine);
	machine.cpus = 4;
	machine.cost[RT_COST_RELAX] = 10 * SIM_PS_PER_NS;
	machine.cost[RT_COST_GEN_FRAME] = 20 * SIM_PS_PER_NS;
	machine.cost[RT_COST_TX_FRAME] = 10 * SIM_PS_PER_NS;
	machine.cost[RT_COST_RECV_FRAME] = 25 * SIM_PS_PER_NS;
	machine.cost[RT_COST_POLL] = 15 * SIM_PS_PER_NS;
	machine.wakeup = 500 * SIM_PS_PER_NS;
	machine.context_switch = 1000 * SIM_PS_PER_NS;
	if (sim_create(&sim) || lab_exec_create(sim, "host", &machine, NULL, &rt, NULL) ||
	    pk_arena_create(&config, &arena, NULL))
		return -1;
	for (unsigned i = 0; i < HO_ARRAY_LEN(caches); i++) {
		if (pk_cache_create(arena, &caches[i], NULL))
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	int missing = (int)pk_arena_missing(arena);

	for (unsigned i = 0; i < HO_ARRAY_LEN(caches); i++)
		pk_cache_destroy(caches[i]);
	pk_arena_destroy(arena);
	rt_destroy(rt);
	sim_destroy(sim);
	return missing;
}

static struct port *open_port(const char *spec, unsigned first_cache)
{
	struct port_config config = { .rt = rt, .arena = arena, .queues = 1 };
	struct ho_err err = { 0 };
	struct port *port = NULL;

	if (port_open(spec, &config, &port, &err) < 0)
		fail_msg("%s", err.text);
	port_bind_tx(port, 0, caches[first_cache]);
	port_bind_rx(port, 0, caches[first_cache + 1]);
	assert_int_equal(port_start(port, &err), 0);
	return port;
}

/* Stamped frames. */
static struct tr_spec *make_spec(const char *size)
{
	struct tr_stream_text stream = { .size = (char *)size };
	struct tr_spec_text text = { .stamp = (char *)"yes", .streams = &stream, .n_streams = 1 };
	struct tr_spec *spec = NULL;
	struct ho_err err = { 0 };

	if (tr_spec_create(&text, &spec, &err) < 0)
		fail_msg("%s", err.text);
	return spec;
}

static struct tr_source *make_source(const struct tr_spec *spec)
{
	struct tr_source *source = NULL;

	assert_int_equal(tr_source_create(spec, 0, 1, &source, NULL), 0);
	return source;
}

static struct rt_task *spawn(int cpu, void (*fn)(void *), void *arg)
{
	struct rt_task_attr attr = { .name = "task", .cpu = cpu };
	struct rt_task *task = NULL;

	assert_int_equal(rt_spawn(rt, &attr, fn, arg, &task, NULL), 0);
	return task;
}

/* What a run gave, to be compared with another one. */
struct outcome {
	uint64_t sent, received, elapsed, ring_full, waits, p50, max;
};

/* A sender at `rate` for a millisecond, a receiver that is given `grace` to see the rest. */
static struct outcome send_and_receive(struct ho_rate rate, uint64_t count, const char *size)
{
	struct port *a = open_port("mem:v,ring=256", 0), *b = open_port("mem:v", 2);
	struct tr_spec *spec = make_spec(size);
	struct tr_source *source = make_source(spec);
	uint64_t begin = rt_now_ns(rt);
	struct tr_sender_config send = {
		.rt = rt,
		.txq = a->txq[0],
		.cache = caches[0],
		.source = source,
		.pace.rate = rate,
		.mean_bytes = 60,
		.count = count,
		.start_ns = begin + 10000,
		.duration_ns = count ? 0 : 1000000,
	};
	struct tr_receiver_config recv = {
		.rt = rt,
		.rxq = b->rxq[0],
		.cache = caches[3],
		.end_ns = RT_FOREVER,
	};
	struct tr_receiver *receiver;
	struct tr_sender *sender;
	struct rt_task *tasks[2];
	struct tr_track_sum sum;
	struct tr_tracks *view;
	struct outcome out;

	assert_int_equal(tr_sender_create(&send, &sender, NULL), 0);
	assert_int_equal(tr_receiver_create(&recv, &receiver, NULL), 0);
	tasks[0] = spawn(0, tr_receiver_run, receiver);
	tasks[1] = spawn(1, tr_sender_run, sender);
	rt_join(rt, tasks[1]);
	rt_sleep_until(rt, rt_now_ns(rt) + 100000);
	tr_stop_ask(&receiver->stop);
	rt_join(rt, tasks[0]);
	view = &receiver->tracks;
	assert_int_equal(tr_tracks_sum(&view, 1, &sum), 0);
	tr_track_sum_fini(&sum);
	assert_int_equal(sum.lost + sum.duplicates + sum.reordered, 0);
	assert_int_equal(sum.received, sender->offered);
	assert_int_equal(receiver->frames, sender->offered);
	assert_int_equal(receiver->latency_ns.count, sender->offered);
	assert_int_equal(receiver->bytes, sender->bytes);
	assert_int_equal(a->txq[0]->ctr.packets, sender->offered);
	assert_int_equal(port_tx_in_flight(a->txq[0]), 0);
	out = (struct outcome){
		.sent = sender->offered,
		.received = receiver->frames,
		.elapsed = sender->last_ns - sender->config.start_ns,
		.ring_full = a->txq[0]->ctr.ring_full,
		.waits = receiver->waits,
		.p50 = ho_hist_quantile(&receiver->latency_ns, 0.5),
		.max = receiver->latency_ns.max,
	};
	tr_sender_destroy(sender);
	tr_receiver_destroy(receiver);
	tr_source_destroy(source);
	tr_spec_destroy(spec);
	port_close(a);
	port_close(b);
	assert_int_equal(pk_arena_missing(arena), 0);
	return out;
}

static void test_paced(void **state)
{
	struct outcome one = send_and_receive((struct ho_rate){ HO_RATE_PPS, 1e6 }, 0, "60"), two;

	assert_in_range(one.sent, 999, 1001);
	assert_int_equal(one.ring_full, 0);
	/* The receiver polls 1 us gaps: nobody waits for it. */
	assert_true(one.max < 2000);
	two = send_and_receive((struct ho_rate){ HO_RATE_PPS, 1e6 }, 0, "60");
	assert_memory_equal(&one, &two, sizeof(one));
}

static void test_flat_out(void **state)
{
	/* A frame costs the sender 30 ns and the receiver 25: 33 Mpps. */
	struct outcome out = send_and_receive((struct ho_rate){ HO_RATE_MAX, 0 }, 0, "60");

	assert_in_range(out.sent, 30000, 34000);
	/* Frames of six buffers each fill bursts and ring with whole frames only. */
	out = send_and_receive((struct ho_rate){ HO_RATE_MAX, 0 }, 5000, "60,9000,1900");
	assert_int_equal(out.sent, 5000);
}

static void test_sparse(void **state)
{
	/* 2 ms gaps: the receiver sleeps between frames and is woken for each. */
	struct outcome out = send_and_receive((struct ho_rate){ HO_RATE_GAP, 2e-3 }, 20, "100");

	assert_int_equal(out.sent, 20);
	assert_int_equal(out.elapsed / 1000000, 19 * 2);
	assert_true(out.waits >= 20);
	if (out.p50 < 1000 || out.p50 > 5000)
		fail_msg("a wake-up takes %llu ns", (unsigned long long)out.p50);
}

/* A full ring and nobody who empties it: what was not taken is unsent. */
static void test_unsent(void **state)
{
	struct port *a = open_port("mem:u,ring=64", 0), *b = open_port("mem:u", 2);
	struct tr_spec *spec = make_spec("60");
	struct tr_source *source = make_source(spec);
	struct tr_sender_config send = {
		.rt = rt,
		.txq = a->txq[0],
		.cache = caches[0],
		.source = source,
		.mean_bytes = 60,
		.duration_ns = 100000,
		.pace = { .burst = 40 },
	};
	struct pk_slot slots[PK_BURST];
	struct tr_sender *sender;
	struct tr_stamp stamp;
	unsigned built;

	assert_int_equal(tr_sender_create(&send, &sender, NULL), 0);
	rt_join(rt, spawn(0, tr_sender_run, sender));
	assert_int_equal(sender->offered, 64);
	assert_true(sender->full_ns > 50000);
	/* The next frame has the number of the first one that was not taken. */
	assert_int_equal(tr_source_next(source, caches[0], 0, slots, PK_BURST, 1, &built), 1);
	assert_true(tr_stamp_read(pk_data(arena, slots) + 60 - TR_STAMP_BYTES, &stamp));
	assert_int_equal(stamp.sequence, 64);
	pk_free_slots(caches[0], slots, 1);
	tr_sender_destroy(sender);
	tr_source_destroy(source);
	tr_spec_destroy(spec);
	port_close(a);
	port_close(b);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_request_response(void **state)
{
	struct port *a = open_port("mem:r", 0), *b = open_port("mem:r", 2);
	struct tr_spec *spec = make_spec("100");
	struct tr_source *source = make_source(spec);
	struct tr_rr_client_config client_config = {
		.rt = rt,
		.rxq = a->rxq[0],
		.txq = a->txq[0],
		.source = source,
		.outstanding = 4,
		.timeout_ns = 1000000,
		.tries = 2,
		.count = 1000,
		.end_ns = RT_FOREVER,
	};
	struct tr_rr_server_config server_config = {
		.rt = rt,
		.rxq = b->rxq[0],
		.txq = b->txq[0],
		.cache = caches[3],
		.reply_bytes = 500,
	};
	struct tr_rr_client_stats stats;
	struct tr_rr_client *client;
	struct tr_rr_server *server;
	struct rt_task *tasks[2];

	assert_int_equal(tr_rr_client_create(&client_config, &client, NULL), 0);
	assert_int_equal(tr_rr_server_create(&server_config, &server, NULL), 0);
	tasks[0] = spawn(0, tr_rr_server_run, server);
	tasks[1] = spawn(1, tr_rr_client_run, client);
	while (!tr_rr_client_quiesced(client))
		rt_sleep_until(rt, rt_now_ns(rt) + 100000);
	tr_rr_client_stop(client);
	tr_stop_ask(&server->stop);
	rt_join(rt, tasks[0]);
	rt_join(rt, tasks[1]);
	tr_rr_client_stats(client, &stats);
	assert_int_equal(stats.transactions, 1000);
	assert_int_equal(stats.requests, 1000);
	assert_int_equal(stats.retries + stats.late + stats.failed + stats.others, 0);
	assert_int_equal(server->requests, 1000);
	assert_int_equal(server->replies, 1000);
	assert_int_equal(b->txq[0]->ctr.bytes, 1000 * 500);
	tr_rr_client_destroy(client);
	tr_rr_server_destroy(server);

	/* Nobody answers: each transaction is tried twice and given up. */
	client_config.count = 10;
	assert_int_equal(tr_rr_client_create(&client_config, &client, NULL), 0);
	tasks[1] = spawn(1, tr_rr_client_run, client);
	while (!tr_rr_client_quiesced(client))
		rt_sleep_until(rt, rt_now_ns(rt) + 100000);
	tr_rr_client_stop(client);
	rt_join(rt, tasks[1]);
	tr_rr_client_stats(client, &stats);
	assert_int_equal(stats.transactions, 0);
	assert_int_equal(stats.requests, 20);
	assert_int_equal(stats.retries, 10);
	assert_int_equal(stats.failed, 10);
	tr_rr_client_destroy(client);
	tr_source_destroy(source);
	tr_spec_destroy(spec);
	port_close(a);
	port_close(b);
	assert_int_equal(pk_arena_missing(arena), 0);
}

/* Both kinds of IP: the reply's checksums are right, and a reply to the reply is the request. */
static void test_reply(void **state)
{
	static const struct {
		const char *src, *dst;
		uint32_t bytes, reply;
	} cases[] = {
		{ "198.18.0.1", "198.18.0.2", 60, 0 },    { "198.18.0.1", "198.18.0.2", 60, 1501 },
		{ "198.18.0.1", "198.18.0.2", 1514, 61 }, { "2001:2::1", "2001:2::2", 78, 0 },
		{ "2001:2::1", "2001:2::2", 78, 1000 },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		char size[8], frame[2048], again[2048];
		struct tr_stream_text stream = { .size = size,
						 .ip_src = (char *)cases[i].src,
						 .ip_dst = (char *)cases[i].dst };
		struct tr_spec_text text = { .stamp = (char *)"yes",
					     .streams = &stream,
					     .n_streams = 1 };
		struct tr_stamp stamp, reply;
		struct tr_source *source;
		struct tr_spec *spec;
		struct pk_slot slots[PK_BURST];
		unsigned built;

		snprintf(size, sizeof(size), "%u", cases[i].bytes);
		assert_int_equal(tr_spec_create(&text, &spec, NULL), 0);
		source = make_source(spec);
		assert_int_equal(tr_source_next(source, caches[0], 77, slots, PK_BURST, 1, &built),
				 1);
		memcpy(frame, pk_data(arena, slots), slots->len);
		tr_stamp_read((uint8_t *)frame + slots->len - TR_STAMP_BYTES, &stamp);
		assert_int_equal(pk_csum_verify(arena, slots, 1), PK_CSUM_RESULT_OK);
		assert_int_equal(tr_rr_make_reply(arena, slots, cases[i].reply, &stamp), 0);
		assert_int_equal(slots->len, cases[i].reply ? cases[i].reply : cases[i].bytes);
		assert_int_equal(pk_csum_verify(arena, slots, 1), PK_CSUM_RESULT_OK);
		assert_memory_equal(pk_data(arena, slots), frame + 6, 6);
		tr_stamp_read(pk_data(arena, slots) + slots->len - TR_STAMP_BYTES, &reply);
		assert_int_equal(reply.stream, stamp.stream | TR_RR_REPLY);
		assert_int_equal(reply.sequence, stamp.sequence);
		assert_int_equal(reply.time_ns, stamp.time_ns);
		if (!cases[i].reply) {
			assert_int_equal(tr_rr_make_reply(arena, slots, 0, &stamp), 0);
			memcpy(again, pk_data(arena, slots), slots->len);
			/* All but the checksum and the stamp's mark. */
			assert_memory_equal(again, frame, 34);
		}
		assert_int_equal(tr_rr_make_reply(arena, slots, 40, &stamp), -EMSGSIZE);
		assert_int_equal(tr_rr_make_reply(arena, slots, 2000, &stamp), -EMSGSIZE);
		pk_data(arena, slots)[12] ^= 0xff;
		assert_int_equal(tr_rr_make_reply(arena, slots, 0, &stamp), -EBADMSG);
		pk_free_slots(caches[0], slots, 1);
		tr_source_destroy(source);
		tr_spec_destroy(spec);
	}
}

static void test_filter(void **state)
{
	struct tr_spec *spec = make_spec("80");
	struct tr_source *source = make_source(spec);
	static const struct {
		const char *expression;
		bool plain, tagged; /* matches without and with a tag beside the frame */
	} cases[] = {
		{ "udp port 9", true, false }, { "vlan 7", false, true },
		{ "vlan 8", false, false },    { "vlan 7 and udp port 9", false, true },
		{ "less 80", true, false },    { "greater 84", false, true },
		{ "tcp", false, false },
	};
	struct ho_err err = { 0 };
	struct tr_filter *filter;

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		assert_int_equal(tr_filter_create(cases[i].expression, &filter, &err), 0);
		for (unsigned tagged = 0; tagged < 2; tagged++) {
			struct pk_slot slots[PK_BURST];
			unsigned built;
			bool match;

			tr_source_next(source, caches[0], 0, slots, PK_BURST, 1, &built);
			if (tagged) {
				slots->flags |= PK_VLAN;
				slots->vlan = 7;
			}
			match = tr_filter_match(filter, arena, slots, slots->len);
			if (match != (tagged ? cases[i].tagged : cases[i].plain))
				fail_msg("'%s' is wrong for case %u", cases[i].expression, tagged);
			assert_int_equal(slots->len, tagged ? 84 : 80);
			assert_false(slots->flags & PK_VLAN);
			pk_free_slots(caches[0], slots, 1);
		}
		tr_filter_destroy(filter);
	}
	assert_int_equal(tr_filter_create("bogus bogus", &filter, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bogus bogus"));
	tr_source_destroy(source);
	tr_spec_destroy(spec);
}

/* Two wires joined by a forwarder; frames of several buffers among them. */
static void forward(enum tr_forward_mode mode)
{
	struct port *in = open_port("mem:f,peer=g", 0), *f0 = open_port("mem:g", 2);
	struct port *f1 = open_port("mem:h,peer=i,ring=128", 4), *out = open_port("mem:i", 6);
	struct tr_spec *spec = make_spec("60,4000,100");
	struct tr_source *source = make_source(spec);
	struct tr_forwarder_config config = {
		.rt = rt,
		.path = { { .rxq = f0->rxq[0],
			    .txq = f1->txq[0],
			    .dst = { 2, 9, 9, 9, 9, 9 },
			    .src = { 2, 8, 8, 8, 8, 8 } },
			  { .rxq = f1->rxq[0], .txq = f0->txq[0] } },
		.mode = mode,
		.end_ns = RT_FOREVER,
	};
	struct tr_forwarder *forwarder;
	struct pk_slot slots[PK_BURST];
	uint64_t sent = 0, seen = 0, next = 0;
	struct rt_task *task;
	unsigned n, built;

	port_bind_rx(f0, 0, caches[2]);
	port_bind_tx(f1, 0, caches[2]);
	port_bind_rx(f1, 0, caches[2]);
	assert_int_equal(tr_forwarder_create(&config, &forwarder, NULL), 0);
	task = spawn(0, tr_forwarder_run, forwarder);
	for (int round = 0; round < 300; round++) {
		n = tr_source_next(source, caches[0], 0, slots, PK_BURST, 20, &built);
		assert_int_equal(port_tx(in->txq[0], slots, n), n);
		sent += built;
		rt_sleep_until(rt, rt_now_ns(rt) + 5000);
		/* Sometimes nobody takes anything: the ring of 128 fills up. */
		if (round % 8 < 3)
			continue;
		while ((n = port_rx(out->rxq[0], slots, PK_BURST)) > 0) {
			for (unsigned i = 0, used; i < n; i += used, seen++) {
				static const uint8_t mac[] = { 2, 9, 9, 9, 9, 9, 2, 8, 8, 8, 8, 8 };
				static const uint8_t was[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };
				const uint8_t *data = pk_data(arena, &slots[i]);
				const struct pk_slot *last;
				struct tr_stamp stamp = { 0 };

				used = pk_frame_slots(slots + i, n - i);
				last = &slots[i + used - 1];
				if (mode == TR_FORWARD_MAC) {
					assert_memory_equal(data, mac, 12);
				} else if (mode == TR_FORWARD_IO) {
					assert_memory_equal(data, was, 12);
				} else {
					assert_memory_equal(data, was + 6, 6);
					assert_memory_equal(data + 6, was, 6);
				}
				/* The rest is untouched: addresses are not part of checksums. */
				assert_int_equal(pk_csum_verify(arena, slots + i, used),
						 PK_CSUM_RESULT_OK);
				assert_true(tr_stamp_read(
					pk_data(arena, last) + last->len - TR_STAMP_BYTES, &stamp));
				assert_true(stamp.sequence >= next);
				next = stamp.sequence + 1;
			}
			pk_free_slots(caches[7], slots, n);
		}
	}
	tr_stop_ask(&forwarder->stop);
	rt_join(rt, task);
	port_stop(in);
	port_stop(f0);
	port_stop(f1);
	port_stop(out);
	assert_true(f1->txq[0]->ctr.drops[PORT_DROP_TX_RING_FULL] > 0);
	assert_int_equal(sent, seen + port_drops_sum(f1->txq[0]->ctr.drops) +
				       port_drops_sum(f0->rxq[0]->ctr.drops) +
				       port_drops_sum(out->rxq[0]->ctr.drops));
	tr_forwarder_destroy(forwarder);
	tr_source_destroy(source);
	tr_spec_destroy(spec);
	port_close(in);
	port_close(f0);
	port_close(f1);
	port_close(out);
	assert_int_equal(pk_arena_missing(arena), 0);
}

static void test_forward(void **state)
{
	forward(TR_FORWARD_IO);
	forward(TR_FORWARD_MAC);
	forward(TR_FORWARD_MACSWAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_paced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flat_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sparse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_request_response, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reply, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forward, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
