/* SPDX-License-Identifier: BSD-2-Clause */
/* Senders that share a queue: turns, and how long their frames stand behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lab/exec.h"
#include "mac/txshare.h"

/* A ring that takes `room` slots at a time and gives back what the test says. The lab's clock: it
 * stands still but for pass(). */
struct rig {
	struct sim *sim;
	struct rt *rt;
	struct port_ops ops;
	struct port port;
	struct port_txq q;
	unsigned room;
	struct mac_bql bql;
	struct mac_txshare share;
	struct mac_txseat *seat[2];
	struct ho_hist hist[2];
};

static unsigned ring_tx(struct port_txq *q, struct pk_slot *slots, unsigned n)
{
	struct rig *r = HO_CONTAINER_OF(q, struct rig, q);
	unsigned taken = port_whole_frames(slots, n, r->room);

	r->room -= taken;
	return taken;
}

static void pass(struct rig *r, uint64_t ns)
{
	sim_run_until(r->sim, sim_now(r->sim) + ns * SIM_PS_PER_NS);
}

static void rig_open(struct rig *r)
{
	struct lab_machine machine;
	struct ho_err err;

	memset(r, 0, sizeof(*r));
	lab_machine_defaults(&machine);
	assert_int_equal(sim_create(&r->sim), 0);
	assert_int_equal(lab_exec_create(r->sim, "host", &machine, NULL, &r->rt, &err), 0);
	r->port = (struct port){ .ops = &r->ops, .rt = r->rt };
	r->q = (struct port_txq){ .tx = ring_tx, .port = &r->port };
	mac_bql_init(&r->bql, &r->q, false);
	mac_txshare_init(&r->share, &r->bql);
	for (unsigned i = 0; i < 2; i++) {
		r->seat[i] = mac_txshare_seat(&r->share, false);
		mac_txseat_measure(r->seat[i], &r->hist[i]);
	}
}

static void rig_close(struct rig *r)
{
	rt_destroy(r->rt);
	sim_destroy(r->sim);
}

static unsigned offer(struct rig *r, unsigned seat, unsigned frames)
{
	struct pk_slot s[64] = { 0 };

	for (unsigned i = 0; i < frames; i++)
		s[i].len = 100;
	return port_tx(&r->seat[seat]->q, s, frames);
}

static void done(struct rig *r, unsigned frames)
{
	struct port_work work = { .packets = frames, .bytes = 100 * frames };

	mac_bql_completed(&r->bql, &work);
}

/* The clock begins when a frame is first offered, not when the ring takes it, and ends when all
 * before it and it are done. */
static void waiting_for_the_ring_counts(void **state)
{
	static struct rig r;

	rig_open(&r);
	r.room = 10;
	assert_int_equal(offer(&r, 0, 10), 10);
	assert_int_equal(offer(&r, 1, 1), 0);
	pass(&r, 700);
	assert_int_equal(offer(&r, 1, 1), 0);
	pass(&r, 300);
	done(&r, 4);
	r.room = 4;
	assert_int_equal(offer(&r, 1, 1), 1);
	pass(&r, 1000);
	done(&r, 6);
	assert_int_equal(r.hist[1].count, 0);
	assert_int_equal(r.hist[0].count, 1);
	assert_int_equal(r.hist[0].max, 2000);
	pass(&r, 50);
	done(&r, 1);
	assert_int_equal(r.hist[1].count, 1);
	assert_int_equal(r.hist[1].max, 2050);
	/* The next one begins anew. */
	assert_int_equal(offer(&r, 1, 1), 1);
	pass(&r, 5);
	done(&r, 1);
	assert_int_equal(r.hist[1].count, 2);
	assert_int_equal(r.hist[1].min, 5);
	rig_close(&r);
}

/* Of a burst that is taken in two parts each part's last frame is measured. */
static void parts_of_a_burst(void **state)
{
	static struct rig r;

	rig_open(&r);
	r.room = 3;
	assert_int_equal(offer(&r, 0, 8), 3);
	pass(&r, 100);
	done(&r, 2);
	assert_int_equal(r.hist[0].count, 0);
	done(&r, 1);
	assert_int_equal(r.hist[0].count, 1);
	assert_int_equal(r.hist[0].max, 100);
	r.room = 5;
	assert_int_equal(offer(&r, 0, 5), 5);
	pass(&r, 100);
	done(&r, 5);
	assert_int_equal(r.hist[0].count, 2);
	assert_int_equal(r.hist[0].max, 200);
	rig_close(&r);
}

/* A frame of several slots is one frame. */
static void chains_are_one_frame(void **state)
{
	static struct rig r;
	struct pk_slot s[3] = { { .len = 100, .flags = PK_MORE },
				{ .len = 100, .flags = PK_MORE },
				{ .len = 100 } };

	rig_open(&r);
	r.room = 3;
	assert_int_equal(port_tx(&r.seat[0]->q, s, 3), 3);
	pass(&r, 9);
	done(&r, 1);
	assert_int_equal(r.hist[0].count, 1);
	rig_close(&r);
}

/* More than are measured at a time: the others pass unmeasured, none is mixed up. */
static void too_many_to_measure(void **state)
{
	static struct rig r;
	const unsigned n = MAC_TXSEAT_MARKS + 10;

	rig_open(&r);
	r.room = n + 1;
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(offer(&r, 0, 1), 1);
		pass(&r, 1);
	}
	for (unsigned i = 0; i < n; i++) {
		done(&r, 1);
		pass(&r, 1);
	}
	assert_int_equal(r.hist[0].count, MAC_TXSEAT_MARKS);
	assert_int_equal(r.hist[0].min, n);
	assert_int_equal(r.hist[0].max, n);
	assert_int_equal(offer(&r, 0, 1), 1);
	pass(&r, 7);
	done(&r, 1);
	assert_int_equal(r.hist[0].count, MAC_TXSEAT_MARKS + 1);
	assert_int_equal(r.hist[0].min, 7);
	rig_close(&r);
}

/* Who was refused is served before who comes later, however often that one asks. */
static void turns_are_taken(void **state)
{
	static struct rig r;

	rig_open(&r);
	assert_int_equal(offer(&r, 1, 1), 0);
	r.room = 2;
	assert_int_equal(offer(&r, 0, 1), 0);
	assert_int_equal(offer(&r, 1, 1), 1);
	assert_int_equal(offer(&r, 0, 1), 1);
	/* Nobody waits for one that has left. */
	assert_int_equal(offer(&r, 0, 1), 0);
	mac_txseat_leave(r.seat[0]);
	r.room = 1;
	assert_int_equal(offer(&r, 1, 1), 1);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_for_the_ring_counts),
		cmocka_unit_test(parts_of_a_burst),
		cmocka_unit_test(chains_are_one_frame),
		cmocka_unit_test(too_many_to_measure),
		cmocka_unit_test(turns_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
