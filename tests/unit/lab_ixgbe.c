/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ixgbe driver on the 82599 model: two hosts, a wire between them.
 *
 *   task "tx" -> driver -> PCI -> chip ==== wire ==== chip -> PCI -> driver -> task "rx"
 *
 * Neither side knows the other's header of registers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/bus.h"
#include "lab/chip.h"
#include "lab/exec.h"
#include "lab/i82599.h"
#include "lab/pci.h"
#include "nic/ixgbe.h"
#include "port/port.h"

#define FRAMES 3000

struct host {
	struct rt *rt;
	struct lab_pci *pci;
	struct lab_chip *chip;
	struct nic_bus *bus;
	struct pk_arena *arena;
	struct pk_cache *cache;
	struct port *port;
};

struct lab {
	struct sim *sim;
	struct lab_wire *wire;
	struct host host[2];
	unsigned sent, received;
	uint64_t idle;
};

static void make_host(struct lab *lab, unsigned i)
{
	static const char *const names[] = { "a/ixgbe0", "b/ixgbe0" };
	struct host *h = &lab->host[i];
	struct lab_machine machine;
	struct ho_err err = { 0 };

	lab_machine_defaults(&machine);
	machine.cpus = 1;
	for (unsigned cost = 0; cost < RT_COST_COUNT; cost++)
		machine.cost[cost] = 20 * SIM_PS_PER_NS;
	assert_int_equal(lab_exec_create(lab->sim, names[i], &machine, NULL, &h->rt, &err), 0);
	assert_int_equal(lab_pci_create(lab->sim, &(struct lab_pci_config){ 0 }, &h->pci, &err), 0);
	assert_int_equal(
		lab_i82599_create(lab->sim, h->pci,
				  &(struct lab_i82599_config){
					  .name = names[i], .mac = { 2, 0, 0, 0, 0, (uint8_t)i } },
				  &h->chip, &err),
		0);
	lab_chip_attach(h->chip, lab->wire, i);
	assert_int_equal(lab_bus_create(h->rt, h->chip, &h->bus, &err), 0);
	assert_int_equal(
		pk_arena_create(&(struct pk_arena_config){ .buffers = 8192, .no_huge = true },
				&h->arena, &err),
		0);
	assert_int_equal(pk_cache_create(h->arena, &h->cache, &err), 0);
}

/* In a task: opening waits for the chip's reset, which takes virtual time. */
static void open_port(struct host *h)
{
	struct ho_err err = { 0 };
	struct port_config config = {
		.rt = h->rt, .arena = h->arena, .queues = 1, .rx_ring = 512, .tx_ring = 512
	};

	if (nic_ixgbe_open(h->bus, &config,
			   &(struct nic_ixgbe_config){
				   .rx_usecs = 10, .promiscuous = true, .no_watchdog = true },
			   &h->port, &err))
		fail_msg("%s", err.text);
	port_bind_rx(h->port, 0, h->cache);
	port_bind_tx(h->port, 0, h->cache);
	if (port_start(h->port, &err))
		fail_msg("%s", err.text);
}

static void sender(void *arg)
{
	struct lab *lab = arg;
	struct host *h = &lab->host[0];

	open_port(h);
	rt_sleep_until(h->rt, rt_now_ns(h->rt) + 1000000); /* the other side opens too */
	while (lab->sent < FRAMES) {
		struct pk_slot s = { .off = PK_HEADROOM_BYTES,
				     .len = (uint16_t)(60 + lab->sent % 1400) };

		assert_int_equal(pk_alloc(h->cache, &s.buf, 1), 1);
		memset(pk_data(h->arena, &s), (int)lab->sent, s.len);
		pk_data(h->arena, &s)[0] = 2;
		while (!port_tx(h->port->txq[0], &s, 1)) {
			port_reap(h->port->txq[0]);
			rt_relax(h->rt);
		}
		lab->sent++;
	}
	while (port_reap(h->port->txq[0]) || h->port->txq[0]->ctr.packets < FRAMES)
		rt_relax(h->rt);
}

static void receiver(void *arg)
{
	struct lab *lab = arg;
	struct host *h = &lab->host[1];
	struct pk_slot slots[PK_BURST];

	open_port(h);
	while (lab->received < FRAMES && rt_now_ns(h->rt) < 100000000) {
		unsigned n = port_rx(h->port->rxq[0], slots, PK_BURST);

		if (!n)
			rt_relax(h->rt);
		for (unsigned i = 0; i < n; i++) {
			const uint8_t *data = pk_data(h->arena, &slots[i]);

			assert_int_equal(slots[i].len, 60 + lab->received % 1400);
			assert_int_equal(data[1], (uint8_t)lab->received);
			assert_int_equal(data[slots[i].len - 1], (uint8_t)lab->received);
			lab->received++;
		}
		pk_free_slots(h->cache, slots, n);
	}
}

static unsigned occurrences(const char *path, const char *what)
{
	static char line[4096];
	FILE *f = fopen(path, "r");
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, what) != NULL;
	fclose(f);
	return n;
}

static void the_driver_sends_and_receives(void **state)
{
	char path[] = "/tmp/holdoff-lab-ixgbe-XXXXXX";
	struct lab_trace *trace;
	struct lab lab = { 0 };
	struct rt_task *tx, *rx;
	struct ho_err err = { 0 };
	struct lab_i82599_counters n;
	struct lab_pci_stats pci;

	assert_int_equal(sim_create(&lab.sim), 0);
	assert_int_equal(lab_wire_create(lab.sim, &(struct lab_wire_config){ 0 }, &lab.wire, &err),
			 0);
	make_host(&lab, 0);
	make_host(&lab, 1);
	close(mkstemp(path));
	assert_int_equal(lab_trace_open(path, &trace, &err), 0);
	lab_chip_set_trace(lab.host[0].chip, trace);
	assert_int_equal(rt_spawn(lab.host[0].rt, &(struct rt_task_attr){ .name = "tx" }, sender,
				  &lab, &tx, &err),
			 0);
	assert_int_equal(rt_spawn(lab.host[1].rt, &(struct rt_task_attr){ .name = "rx" }, receiver,
				  &lab, &rx, &err),
			 0);
	rt_join(lab.host[1].rt, rx);
	rt_join(lab.host[0].rt, tx);
	assert_int_equal(lab.sent, FRAMES);
	assert_int_equal(lab.received, FRAMES);
	for (unsigned i = 0; i < 2; i++) {
		struct host *h = &lab.host[i];

		if (h->chip->ops->check(h->chip, &err) || lab_wire_check(lab.wire, &err))
			fail_msg("%s", err.text);
		lab_i82599_counters(h->chip, &n);
		assert_int_equal(n.tx_frames, i ? 0 : FRAMES);
		assert_int_equal(n.rx_delivered, i ? FRAMES : 0);
		assert_int_equal(n.tx_bad, 0);
		lab_pci_stats(h->pci, &pci);
		assert_int_equal(pci.faults, 0);
		port_close(h->port);
		h->bus->ops->close(h->bus);
		lab_chip_set_trace(h->chip, NULL);
		lab_chip_destroy(h->chip);
		lab_pci_destroy(h->pci);
		assert_int_equal(pk_arena_missing(h->arena), 0);
		pk_cache_destroy(h->cache);
		pk_arena_destroy(h->arena);
		rt_destroy(h->rt);
	}
	assert_int_equal(lab_trace_close(trace, &err), 0);
	/* A doorbell a frame, or the driver would be batching on its own account. */
	assert_in_range(occurrences(path, "\"tail\""), FRAMES, FRAMES + 8);
	assert_true(occurrences(path, "\"write-back\"") >= FRAMES / 8);
	unlink(path);
	lab_wire_destroy(lab.wire);
	sim_destroy(lab.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_driver_sends_and_receives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
