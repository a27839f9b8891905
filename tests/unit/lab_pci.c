/* SPDX-License-Identifier: BSD-2-Clause */
/* The PCI link and the wire by themselves: orders, times, bandwidth, faults. */
#include "lab_82599_rig.h"

#include "lab/bus.h"
#include "lab/exec.h"

static void smallest_frames_take_67_2_ns(void **state)
{
	struct rig *r = rig_new();
	struct lab_wire_stats s;
	uint8_t data[60] = { 2 };

	for (unsigned i = 0; i < 100; i++)
		send_frame(r, data, 60);
	lab_wire_attach(r->wire, 0, &(struct lab_wire_user){ .receive = rig_frame, .arg = r });
	rig_run(r, 100 * US);
	assert_int_equal(r->frames, 100);
	for (unsigned i = 1; i < 100; i++)
		assert_int_equal(r->frame[i].at - r->frame[i - 1].at, 67200);
	lab_wire_stats(r->wire, 1, &s);
	assert_int_equal(s.busy, 100 * 67200);
	assert_int_equal(s.delivered, 100);
	r->chip->wire = NULL; /* the test took its place at the wire */
	rig_free(r);
}

static void shorter_frames_take_as_long(void **state)
{
	struct rig *r = rig_new();
	uint8_t data[1514] = { 2 };
	sim_ps base;

	base = sim_now(r->sim);
	send_frame(r, data, 20);
	assert_int_equal(lab_wire_free_at(r->wire, 1) - base, 67200);
	send_frame(r, data, 1514);
	assert_int_equal(lab_wire_free_at(r->wire, 1) - base, 67200 + 1230400);
	rig_free(r);
}

static void a_dead_link_loses_frames_by_name(void **state)
{
	struct rig *r = rig_new();
	struct lab_wire_stats s;
	uint8_t data[60] = { 2 };

	for (unsigned i = 0; i < 10; i++)
		send_frame(r, data, 60);
	rig_run(r, 5 * 67200);
	lab_wire_set_link(r->wire, false);
	send_frame(r, data, 60);
	rig_run(r, 10 * US);
	lab_wire_stats(r->wire, 1, &s);
	assert_int_equal(s.frames, 11);
	assert_int_equal(s.delivered + s.lost_link_down, 11);
	assert_in_range(s.lost_link_down, 6, 7);
	assert_int_equal(rd(r, 0x42A4) & 1u << 30, 0);
	rig_free(r);
}

static void a_register_read_pushes_writes(void **state)
{
	struct rig *r = rig_new();
	struct lab_pci_register_read read;
	sim_ps start = sim_now(r->sim), at;

	for (uint32_t i = 1; i <= 20; i++)
		wr(r, 0x5200, i); /* one register again and again: the last one wins */
	at = lab_pci_register_read(r->pci, &read, 0x5200, 4);
	sim_run_until(r->sim, at);
	assert_true(read.arrived);
	assert_int_equal(read.value, 20);
	/* 20 writes of 28 bytes and a request of 24 at 250 ps a byte after 150 ns */
	assert_int_equal(at - start, 150 * NS + (20 * 28 + 24) * 250);
	assert_int_equal(read.back - at, (550 + 150) * NS);
	rig_free(r);
}

static void a_register_read_waits_for_memory_writes(void **state)
{
	struct rig *r = rig_new();
	struct lab_pci_register_read read;

	for (unsigned i = 0; i < 64; i++) {
		memset(lab_pci_write_begin(r->pci, r->iova + 4096 * i, 4096), 7, 4096);
		lab_pci_write_end(r->pci, true);
	}
	memset(lab_pci_write_begin(r->pci, r->iova, 1), 9, 1);
	lab_pci_write_end(r->pci, false);
	sim_run_until(r->sim, lab_pci_register_read(r->pci, &read, 0x5200, 4));
	sim_run_until(r->sim, read.back + 20 * NS);
	assert_int_equal(r->mem[0], 9);
	assert_int_equal(r->mem[63 * 4096], 7);
	rig_free(r);
}

static void messages_follow_data(void **state)
{
	struct rig *r = rig_new();
	sim_ps data_at, message_at;

	memset(lab_pci_write_begin(r->pci, r->iova, 4096), 5, 4096);
	data_at = lab_pci_write_end(r->pci, true);
	message_at = lab_pci_message(r->pci, 3);
	assert_true(message_at > data_at);
	sim_run_until(r->sim, data_at - 1);
	assert_int_equal(r->mem[4095], 0);
	sim_run_until(r->sim, message_at);
	assert_int_equal(r->mem[4095], 5);
	assert_int_equal(r->irqs, 1);
	assert_int_equal(r->irq[0].vector, 3);
	rig_free(r);
}

static void reads_reach_the_links_bandwidth(void **state)
{
	struct rig *r = rig_new();
	struct lab_pci_stats s;
	sim_ps start = sim_now(r->sim), end = 0;
	/* 512 bytes a request come as two packets of 256 + 24 */
	uint64_t least = 1000ull * 560 * 250;

	for (unsigned i = 0; i < 1000; i++)
		end = lab_pci_read(r->pci, 512);
	assert_in_range(end - start, least, least + 1 * US);
	rig_run(r, end - start);
	lab_pci_stats(r->pci, &s);
	assert_int_equal(s.read_bytes, 512000);
	assert_true(s.down_busy >= least && s.down_busy < least + least / 50);
	rig_free(r);
}

static void few_tags_mean_less_bandwidth(void **state)
{
	struct sim *sim;
	struct lab_pci *pci;
	sim_ps one, end = 0;

	assert_int_equal(sim_create(&sim), 0);
	assert_int_equal(lab_pci_create(sim, &(struct lab_pci_config){ .tags = 2 }, &pci, NULL), 0);
	one = lab_pci_read(pci, 64);
	/* 24 up, 88 down at 250 ps; twice 150 ns, 230 ns of memory */
	assert_int_equal(one, (24 + 88) * 250 + 530 * NS);
	for (unsigned i = 1; i < 100; i++)
		end = lab_pci_read(pci, 64);
	/* two at a time, one latency for each pair */
	assert_in_range(end, 50 * one, 51 * one);
	lab_pci_destroy(pci);
	sim_destroy(sim);
}

static void memory_outside_is_a_fault(void **state)
{
	struct rig *r = rig_new();
	struct lab_pci_stats s;
	unsigned hint = 0;
	uint8_t other[64];
	uint64_t iova;

	assert_int_equal(lab_pci_map(r->pci, other, sizeof(other), &iova, NULL), 0);
	assert_ptr_equal(lab_pci_memory(r->pci, iova + 60, 4, &hint), other + 60);
	assert_null(lab_pci_memory(r->pci, iova + 60, 5, &hint));
	assert_null(lab_pci_memory(r->pci, iova - 1, 1, &hint));
	assert_null(lab_pci_memory(r->pci, r->iova + RIG_MEM, 1, &hint));
	assert_null(lab_pci_memory(r->pci, (uint64_t)(uintptr_t)r->mem, 1, &hint));
	assert_null(lab_pci_memory(r->pci, UINT64_MAX, 16, &hint));
	lab_pci_unmap(r->pci, other);
	assert_null(lab_pci_memory(r->pci, iova, 1, &hint));
	memset(lab_pci_write_begin(r->pci, iova, 64), 1, 64);
	lab_pci_write_end(r->pci, false);
	rig_run(r, 10 * US);
	lab_pci_stats(r->pci, &s);
	assert_int_equal(s.faults, 7);
	rig_free(r);
}

/* --- the bus that drivers see ------------------------------------------------------------- */

struct reader {
	struct rt *rt;
	struct nic_bus *bus;
	uint64_t before, after;
	uint32_t value;
	int woken;
};

static void read_on_cpu(void *arg)
{
	struct reader *rd_ = arg;
	struct rt_event *event;

	nic_write32(rd_->bus, 0x5200, 42);
	rd_->before = rt_now_ns(rd_->rt);
	rd_->value = nic_read32(rd_->bus, 0x5200);
	rd_->after = rt_now_ns(rd_->rt);
	assert_int_equal(rd_->bus->ops->irq_event(rd_->bus, 5, &event, NULL), 0);
	nic_write32(rd_->bus, 0x898, 1u << 4);
	nic_write32(rd_->bus, 0x880, 1u << 5);
	nic_write32(rd_->bus, 0x808, 1u << 5);
	rd_->woken = rt_wait(rd_->rt, &event, 1, RT_FOREVER);
}

static void a_read_stalls_the_cpu(void **state)
{
	struct rig *r = rig_new();
	struct lab_machine machine;
	struct reader reader = { 0 };
	struct rt_task *task;
	struct nic_dma dma;
	struct lab_cpu_stats cpu;

	lab_machine_defaults(&machine);
	machine.cpus = 1;
	assert_int_equal(lab_exec_create(r->sim, "h", &machine, NULL, &reader.rt, NULL), 0);
	assert_int_equal(lab_bus_create(reader.rt, r->chip, &reader.bus, NULL), 0);
	assert_int_equal(reader.bus->vendor_id, 0x8086);
	assert_int_equal(reader.bus->ops->config_read16(reader.bus, 2), 0x10fb);
	/* From outside at once. */
	nic_write32(reader.bus, 0x5204, 77);
	assert_int_equal(nic_read32(reader.bus, 0x5204), 77);
	assert_int_equal(nic_read16(reader.bus, 0x5204), 77);
	assert_int_equal(reader.bus->ops->dma_alloc(reader.bus, 100, &dma, NULL), 0);
	assert_int_equal((uintptr_t)dma.va % 4096, 0);
	reader.bus->ops->dma_free(reader.bus, &dma);
	assert_int_equal(rt_spawn(reader.rt, &(struct rt_task_attr){ .name = "t" }, read_on_cpu,
				  &reader, &task, NULL),
			 0);
	rt_join(reader.rt, task);
	assert_int_equal(reader.value, 42);
	/* write 7, request 6, 150 + 550 + 150 ns */
	assert_in_range(reader.after - reader.before, 862, 864);
	assert_int_equal(reader.woken, 0);
	lab_exec_cpu_stats(reader.rt, 0, &cpu);
	assert_true(cpu.user + cpu.system >= 862 * NS);
	reader.bus->ops->close(reader.bus);
	rt_destroy(reader.rt);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smallest_frames_take_67_2_ns),
		cmocka_unit_test(shorter_frames_take_as_long),
		cmocka_unit_test(a_dead_link_loses_frames_by_name),
		cmocka_unit_test(a_register_read_pushes_writes),
		cmocka_unit_test(a_register_read_waits_for_memory_writes),
		cmocka_unit_test(messages_follow_data),
		cmocka_unit_test(reads_reach_the_links_bandwidth),
		cmocka_unit_test(few_tags_mean_less_bandwidth),
		cmocka_unit_test(memory_outside_is_a_fault),
		cmocka_unit_test(a_read_stalls_the_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
