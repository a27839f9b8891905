// SPDX-License-Identifier: BSD-2-Clause
/* The counters of Linux: texts of several kernels and drivers, odd ones, whole trees of files. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "linux/devstat.h"
#include "linux/params.h"
#include "linux/procfs.h"
#include "linux/sample.h"

#define TICK 10000000u

static struct lx_text text_of(const char *s)
{
	return (struct lx_text){ .at = (char *)(uintptr_t)s, .n = strlen(s) };
}

static void free_host(struct lx_host *host)
{
	free(host->cpu);
	*host = (struct lx_host){ 0 };
}

static void test_stat(void **state)
{
	/* CPU 1 is off; guest time is inside user; a 2.6 kernel has fewer columns. */
	struct lx_text text = text_of("cpu  100 0 50 1000 1 2 3 4 10 0\n"
				      "cpu0 60 5 30 500 1 1 2 4 10 2\n"
				      "cpu2 40 0 20 500\n"
				      "intr 12345 1 2 3\nctxt 777\nbtime 1\nprocesses 42\n"
				      "softirq 99 1 2\n");
	struct lx_host host = { 0 };

	assert_true(lx_parse_stat(&text, TICK, &host));
	assert_int_equal(host.n_cpus, 2);
	assert_int_equal(host.cpu[0].id, 0);
	assert_int_equal(host.cpu[1].id, 2);
	assert_int_equal(host.cpu[0].time_ns[LX_TIME_USER], 50ull * TICK);
	assert_int_equal(host.cpu[0].time_ns[LX_TIME_NICE], 3ull * TICK);
	assert_int_equal(host.cpu[0].time_ns[LX_TIME_GUEST], 12ull * TICK);
	assert_int_equal(host.cpu[0].time_ns[LX_TIME_SOFTIRQ], 2ull * TICK);
	assert_int_equal(host.cpu[1].time_ns[LX_TIME_IDLE], 500ull * TICK);
	assert_int_equal(host.cpu[1].time_ns[LX_TIME_STEAL], 0);
	assert_int_equal(host.switches, 777);
	assert_int_equal(host.forks, 42);
	free_host(&host);
}

static void test_softnet(void **state)
{
	struct lx_text stat = text_of("cpu0 1 1 1 1\ncpu3 1 1 1 1\n");
	/* 3.10: eleven columns, rows are the CPUs online. */
	struct lx_text old =
		text_of("0000000a 00000001 00000002 00000000 00000000 00000000 00000000 00000000 "
			"00000000 00000003 00000004\n"
			"0000000b 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
			"00000000 00000000 00000000\n");
	/* 6.x: fifteen, the CPU is the thirteenth. */
	struct lx_text new =
		text_of("ffffffff 00000001 00000002 00000000 00000000 00000000 00000000 00000000 "
			"00000000 00000003 00000004 00000005 00000003 00000005 00000000\n");
	struct lx_host host = { 0 };

	assert_true(lx_parse_stat(&stat, TICK, &host));
	assert_true(lx_parse_softnet(&old, &host));
	assert_int_equal(host.cpu[0].softnet.processed, 10);
	assert_int_equal(host.cpu[0].softnet.rps, 3);
	assert_int_equal(host.cpu[0].softnet.flow_limit, 4);
	assert_int_equal(host.cpu[1].softnet.processed, 11);
	assert_true(lx_parse_softnet(&new, &host));
	assert_int_equal(host.cpu[0].softnet.processed, 10);
	assert_int_equal(host.cpu[1].softnet.processed, 0xffffffff);
	assert_int_equal(host.cpu[1].softnet.backlog, 5);
	free_host(&host);
}

static void test_interrupts(void **state)
{
	struct lx_text text = text_of(
		"           CPU0       CPU2       \n"
		"  0:         40          0   IO-APIC   2-edge      timer\n"
		" 24:          7          5   PCI-MSI 524288-edge      eth0-TxRx-0\n"
		" 25:          1          2  IR-PCI-MSIX-0000:01:00.0    1-edge      eth0-TxRx-1\n"
		" 26:          0          3   PCI-MSI-edge      eth10-TxRx-0\n"
		" 27:          0          3     GICv3  25 Level     i40e-eth0-TxRx-2\n"
		" 28:          0          4   ITS-MSI 1572865 Edge      virtio2-output.1\n"
		"NMI:          0          0   Non-maskable interrupts\n"
		"LOC:        100        200   Local timer interrupts\n"
		"RES:          9          8   Rescheduling interrupts\n"
		"ERR:          0\n");
	struct lx_vectors v = { 0 };
	struct lx_host host = { 0 };

	assert_true(lx_parse_interrupts(&text, &v, &host));
	assert_int_equal(v.n, 6);
	assert_string_equal(v.irq[1].name, "eth0-TxRx-0");
	assert_string_equal(v.irq[2].name, "eth0-TxRx-1");
	assert_string_equal(v.irq[3].name, "eth10-TxRx-0");
	assert_string_equal(v.irq[4].name, "i40e-eth0-TxRx-2");
	assert_string_equal(v.irq[5].name, "virtio2-output.1");
	assert_int_equal(v.irq[1].count, 12);
	assert_int_equal(v.irq[1].on_cpu[1], 5);
	assert_int_equal(host.cpu[0].interrupts, 48);
	assert_int_equal(host.cpu[1].local_timer, 200);
	assert_int_equal(host.cpu[1].resched, 8);
	assert_true(lx_irq_is_of(v.irq[1].name, "eth0", ""));
	assert_true(lx_irq_is_of(v.irq[4].name, "eth0", ""));
	assert_false(lx_irq_is_of(v.irq[3].name, "eth1", ""));
	assert_false(lx_irq_is_of(v.irq[3].name, "eth0", ""));
	assert_true(lx_irq_is_of(v.irq[5].name, "eth9", "virtio2"));
	assert_false(lx_irq_is_of("virtio21-input.0", "eth9", "virtio2"));
	lx_vectors_fini(&v);
	free_host(&host);
}

static void test_irq_names(void **state)
{
	static const struct {
		const char *name, *ifname;
		int queue;
		bool rx, tx;
	} cases[] = {
		{ "eth0-TxRx-0", "eth0", 0, true, true },
		{ "enp1s0f0-TxRx-17", "enp1s0f0", 17, true, true },
		{ "i40e-eth0-TxRx-3", "eth0", 3, true, true },
		{ "eth0-rx-0", "eth0", 0, true, false },
		{ "eth0-tx-1", "eth0", 1, false, true },
		{ "ens5-Tx-Rx-2", "ens5", 2, true, true },
		{ "virtio0-input.3", "eth0", 3, true, false },
		{ "virtio0-output.0", "eth0", 0, false, true },
		{ "virtio0-config", "eth0", -1, false, false },
		{ "mlx5_comp5@pci:0000:01:00.0", "eth0", 5, true, true },
		{ "mlx5_async0@pci:0000:01:00.0", "eth0", -1, false, false },
		{ "eth0-fp-2", "eth0", 2, true, true },
		{ "eth0-4", "eth0", 4, true, true },
		{ "eth0-q7", "eth0", 7, true, true },
		{ "eth0", "eth0", -1, false, false },
		{ "", "eth0", -1, false, false },
		{ "rx99999999", "eth0", -1, false, false },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		bool rx, tx;
		int queue;

		lx_irq_queue(cases[i].name, cases[i].ifname, &queue, &rx, &tx);
		if (queue != cases[i].queue || rx != cases[i].rx || tx != cases[i].tx)
			fail_msg("%s: queue %d, rx %d, tx %d", cases[i].name, queue, rx, tx);
	}
}

static void test_queue_counters(void **state)
{
	static const struct {
		const char *name;
		int dir; /* -1: is none */
		unsigned queue;
		enum lx_queue_counter what;
	} cases[] = {
		{ "rx_queue_0_packets", LX_RX, 0, LX_Q_PACKETS }, /* ixgbe, igb, virtio */
		{ "tx_queue_12_bytes", LX_TX, 12, LX_Q_BYTES },
		{ "rx_queue_1_drops", LX_RX, 1, LX_Q_DROPS },
		{ "rx-3.packets", LX_RX, 3, LX_Q_PACKETS }, /* i40e */
		{ "tx-3.tx_bytes", LX_TX, 3, LX_Q_BYTES },
		{ "rx7_packets", LX_RX, 7, LX_Q_PACKETS }, /* mlx5 */
		{ "tx7_stopped", LX_TX, 7, LX_Q_STOPS },
		{ "queue_4_tx_cnt", LX_TX, 4, LX_Q_PACKETS }, /* ena */
		{ "queue_4_tx_queue_stop", LX_TX, 4, LX_Q_STOPS },
		{ "[2]: rx_ucast_packets", LX_RX, 2, LX_Q_PACKETS },      /* bnxt */
		{ "rx_packets[5]", LX_RX, 5, LX_Q_PACKETS },              /* gve */
		{ "rxq1: rx_pkts", LX_RX, 1, LX_Q_PACKETS },              /* be2net */
		{ "rvec_6_rx_pkts", LX_RX, 6, LX_Q_PACKETS },             /* nfp */
		{ "q0_tx_pkt_n", LX_TX, 0, LX_Q_PACKETS },                /* stmmac */
		{ "rx_queue_0_xdp_packets", LX_RX, 0, LX_Q_PACKETS_XDP }, /* veth */
		{ "rx_64_bytes", -1, 0, 0 },
		{ "rx_65_to_127_byte_packets", -1, 0, 0 },
		{ "rx_prio0_packets", -1, 0, 0 },
		{ "tx_pb_0_pxon", -1, 0, 0 },
		{ "rx_packets", -1, 0, 0 },
		{ "queue_0_packets", -1, 0, 0 },
		{ "rx_queue_0_tx_packets", -1, 0, 0 },
		{ "rx_queue_99999999_packets", -1, 0, 0 },
		{ "", -1, 0, 0 },
		{ "[", -1, 0, 0 },
		{ "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5", -1, 0, 0 },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		enum lx_queue_counter what = LX_Q_PACKETS;
		enum lx_dir dir = LX_RX;
		unsigned queue = 0;
		bool is = lx_devstat_queue(cases[i].name, &dir, &queue, &what);

		if (is != (cases[i].dir >= 0) ||
		    (is && ((int)dir != cases[i].dir || queue != cases[i].queue ||
			    what != cases[i].what)))
			fail_msg("'%s': %d, dir %d, queue %u, what %d", cases[i].name, is, dir,
				 queue, what);
	}
}

static void test_queue_sums(void **state)
{
	struct lx_text text = text_of("NIC statistics:\n"
				      "     rx_bytes: 5\n"
				      "     [0]: rx_ucast_packets: 10\n"
				      "     [0]: rx_mcast_packets: 1\n"
				      "     [1]: tx_ucast_packets: 7\n"
				      "     rx_queue_0_xdp_packets: 99\n"
				      "     rx_queue_2_xdp_packets: 4\n"
				      "     broken line\n     : 3\n     minus: -1\n");
	struct lx_counter *counter = NULL;
	struct lx_queue *queue = NULL;
	unsigned n = 0, n_queues = 0;

	assert_int_equal(lx_devstat_parse(&text, &counter, &n), 0);
	assert_int_equal(n, 6);
	assert_string_equal(counter[1].name, "[0]: rx_ucast_packets");
	assert_int_equal(lx_devstat_queues(counter, n, &queue, &n_queues), 3);
	assert_int_equal(n_queues, 3);
	assert_int_equal(queue[0].packets, 11);
	assert_int_equal(queue[1].id, 2);
	assert_int_equal(queue[1].packets, 4);
	assert_int_equal(queue[2].dir, LX_TX);
	assert_int_equal(queue[2].packets, 7);
	free(counter);
	free(queue);
}

static void test_protocols(void **state)
{
	struct lx_text snmp =
		text_of("Tcp: RtoAlgorithm MaxConn InSegs RetransSegs\n"
			"Tcp: 1 -1 2319 5\n"
			"Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n"
			"Udp: 145 2 30 147 28\n"
			"Future: One\nOther: 1\n"
			"Udp: InDatagrams\n");
	struct lx_text netstat = text_of("TcpExt: SyncookiesSent PruneCalled TCPBacklogDrop\n"
					 "TcpExt: 0 3 4\n");
	struct lx_text six = text_of("Ip6InReceives     \t10\nUdp6RcvbufErrors\t2\nOdd\n");
	struct lx_proto proto = { 0 };

	assert_true(lx_parse_snmp(&snmp, &proto));
	assert_true(lx_parse_snmp(&netstat, &proto));
	assert_true(lx_parse_snmp6(&six, &proto));
	assert_int_equal(proto.tcp_in, 2319);
	assert_int_equal(proto.tcp_retransmits, 5);
	assert_int_equal(proto.udp_in_errors, 30);
	assert_int_equal(proto.udp_rcvbuf_errors, 30);
	assert_int_equal(proto.tcp_pruned, 3);
	assert_int_equal(proto.tcp_backlog_drops, 4);
	assert_int_equal(proto.ip_in, 10);
}

static void test_netdev_and_tasks(void **state)
{
	struct lx_text dev = text_of("Inter-|   Receive  |  Transmit\n"
				     " face |bytes\n"
				     "    lo:  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
				     "eth0:100 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
				     "eth1: 1 2 3\n");
	struct lx_text status = text_of("Name:\tx\nvoluntary_ctxt_switches:\t12\n"
					"nonvoluntary_ctxt_switches:\t3\n");
	struct lx_text stat = text_of("1 (a) b (c)) S 1 1 1 0 -1 4 1 1 1 1 200 100 0 0");
	struct rtnl_link_stats64 link;
	struct lx_tasks tasks = { 0 };

	assert_true(lx_parse_netdev(&dev, "eth0", &link));
	assert_int_equal(link.rx_bytes, 100);
	assert_int_equal(link.rx_dropped, 4);
	assert_int_equal(link.tx_dropped, 12);
	assert_false(lx_parse_netdev(&dev, "eth", &link));
	assert_false(lx_parse_netdev(&dev, "eth1", &link));
	assert_false(lx_parse_netdev(&dev, "", &link));
	assert_true(lx_parse_status(&status, &tasks));
	assert_true(lx_parse_task_stat(&stat, TICK, &tasks));
	assert_int_equal(tasks.voluntary, 12);
	assert_int_equal(tasks.involuntary, 3);
	assert_int_equal(tasks.user_ns, 2000000000u);
	assert_int_equal(tasks.system_ns, 1000000000u);
	assert_true(lx_cpulist_has("0-3,8", 8));
	assert_true(lx_cpulist_has("0-3,8", 2));
	assert_false(lx_cpulist_has("0-3,8", 4));
	assert_false(lx_cpulist_has("x", 0));
}

/* Everything takes everything: cut anywhere, changed anywhere. The sanitizers watch. */
static void test_hostile(void **state)
{
	static const char *const seeds[] = {
		"cpu0 1 2 3 4 5 6 7 8 9 10\ncpu99999 1\ncpu4095 18446744073709551616\nctxt -1\n",
		"           CPU0       CPU4095\n 24: 1 2 x  y  eth0-TxRx-0\n4294967296: 1\nLOC: "
		"1\n",
		"                    CPU0  CPU1\nNET_RX: 1 2\nNET_TX: 99999999999999999999999 1\n",
		"00000001 00000002 00000003 0 0 0 0 0 0 0 0 0 ffffffff\nzz\n1 2 3\n",
		"Udp: InDatagrams InErrors\nUdp: 1\nTcp: A B\nTcp: 1 2 3 4\nTcpExt:\nTcpExt: 1\n",
		"eth0: 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7\neth0:eth0: 1\n",
		"     rx_queue_0_packets: 1\n     [1]: rx_x: 2\n     tx_packets[9]: 3\n",
		"1 (x) S 1 1 1 0 -1 4 1 1 1 1 200 100\nvoluntary_ctxt_switches: 5\n",
	};
	unsigned seed = 1;

	for (unsigned round = 0; round < 4000; round++) {
		const char *from = seeds[round % HO_ARRAY_LEN(seeds)];
		size_t n = strlen(from);
		char *copy = malloc(n + 1);
		struct lx_text text = { .at = copy, .n = n };
		struct lx_vectors v = { 0 };
		struct lx_host host = { 0 };
		struct lx_counter *counter = NULL;
		struct lx_queue *queue = NULL;
		struct rtnl_link_stats64 link;
		unsigned n_counters = 0, n_queues = 0;

		memcpy(copy, from, n + 1);
		for (unsigned i = 0; i < 1 + round % 5; i++)
			copy[(size_t)rand_r(&seed) % n] = (char)(1 + rand_r(&seed) % 255);
		text.n = (size_t)rand_r(&seed) % (n + 1);
		copy[text.n] = '\0';
		lx_parse_stat(&text, TICK, &host);
		lx_parse_interrupts(&text, &v, &host);
		lx_parse_softirqs(&text, &host);
		lx_parse_softnet(&text, &host);
		lx_parse_schedstat(&text, &host);
		lx_parse_snmp(&text, &host.proto);
		lx_parse_snmp6(&text, &host.proto);
		lx_parse_netdev(&text, "eth0", &link);
		lx_parse_status(&text, &host.tasks);
		lx_parse_task_stat(&text, TICK, &host.tasks);
		lx_devstat_parse(&text, &counter, &n_counters);
		lx_devstat_queues(counter, n_counters, &queue, &n_queues);
		for (unsigned i = 0; i < v.n; i++) {
			bool rx, tx;
			int q;

			lx_irq_queue(v.irq[i].name, "eth0", &q, &rx, &tx);
			assert_true(q >= -1);
		}
		lx_vectors_fini(&v);
		free_host(&host);
		free(counter);
		free(queue);
		free(copy);
	}
}

/* ---- A tree of files: an interface with 8 queues on 4 CPUs ---- */

#define QUEUES 8
#define CPUS   4

static void put_file(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "w");
	if (!f)
		fail_msg("cannot write %s", full);
	fputs(text, f);
	fclose(f);
}

static void make_tree(const char *root, unsigned step)
{
	char text[16384], path[128];
	size_t n = 0;

	n = (size_t)snprintf(text, sizeof(text), "cpu 1 1 1 1\n");
	for (unsigned c = 0; c < CPUS; c++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "cpu%u %u 0 20 %u 0 0 %u 0 0 0\n",
				      c, 100 + 10 * step, 1000 + 60 * step, 50 + 30 * step);
	snprintf(text + n, sizeof(text) - n, "ctxt %u\n", 1000 + 500 * step);
	put_file(root, "proc/stat", text);

	/* The first one overflows between step 0 and 1. */
	n = 0;
	for (unsigned c = 0; c < CPUS; c++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%08x %08x %08x 0 0 0 0 0 0 0 0 0 %08x 0 0\n",
				      0xfffffff0u + 100 * step + 0, step, 2 * step, c);
	put_file(root, "proc/net/softnet_stat", text);

	n = (size_t)snprintf(text, sizeof(text), "           CPU0 CPU1 CPU2 CPU3\n");
	for (unsigned q = 0; q < QUEUES; q++) {
		unsigned count[CPUS] = { 0 };

		count[q % CPUS] = 0xffffff00u + 1000 * step * (q + 1);
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      " %u: %u %u %u %u   PCI-MSI %u-edge      eth0-TxRx-%u\n",
				      50 + q, count[0], count[1], count[2], count[3], q, q);
	}
	snprintf(text + n, sizeof(text) - n, " 90: %u 0 0 0   PCI-MSI 9-edge      eth0\n", step);
	put_file(root, "proc/interrupts", text);

	snprintf(text, sizeof(text),
		 "Inter-|\n face |\n  eth0: %u %u 0 0 0 0 0 0 %u %u 0 0 0 0 0 0\n",
		 1000 + 64000 * step, 10 + 1000 * step, 500, 5);
	put_file(root, "proc/net/dev", text);
	put_file(root, "sys/class/net/eth0/ifindex", "7\n");
	put_file(root, "sys/class/net/eth0/speed", "10000\n");
	put_file(root, "sys/class/net/eth0/mtu", "9000\n");
	put_file(root, "sys/class/net/eth0/flags", "0x1003\n");
	put_file(root, "sys/class/net/eth0/operstate", "up\n");
	put_file(root, "sys/class/net/eth0/napi_defer_hard_irqs", "2\n");
	put_file(root, "sys/class/net/eth0/device/current_link_speed", "8.0 GT/s PCIe\n");
	put_file(root, "sys/class/net/eth0/device/current_link_width", "8\n");
	put_file(root, "sys/class/net/eth0/device/numa_node", "1\n");
	snprintf(text, sizeof(text), "%u\n", 7 * step);
	put_file(root, "sys/class/net/eth0/statistics/rx_missed_errors", text);
	for (unsigned q = 0; q < QUEUES; q++) {
		snprintf(path, sizeof(path), "sys/class/net/eth0/queues/rx-%u/rps_cpus", q);
		put_file(root, path, q == 3 ? "0000,0000000f\n" : "00000000,00000000\n");
		snprintf(path, sizeof(path), "sys/class/net/eth0/queues/tx-%u/tx_timeout", q);
		put_file(root, path, "0\n");
		snprintf(path, sizeof(path), "sys/class/net/eth0/device/msi_irqs/%u", 50 + q);
		put_file(root, path, "msix\n");
		snprintf(path, sizeof(path), "proc/irq/%u/smp_affinity_list", 50 + q);
		snprintf(text, sizeof(text), "%u\n", q % CPUS);
		put_file(root, path, text);
	}
	n = (size_t)snprintf(text, sizeof(text), "NIC statistics:\n     fell: %u\n", 9 - step);
	for (unsigned q = 0; q < QUEUES; q++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "     rx_queue_%u_packets: %u\n     rx_queue_%u_bytes: %u\n",
				      q, 1000 * step * (q + 1), q, 64000 * step * (q + 1));
	put_file(root, "ethtool/eth0", text);
}

static void remove_tree(const char *root)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command) != 0)
		print_message("%s was not removed\n", root);
}

static void test_tree(void **state)
{
	char root[] = "/tmp/holdoff-tree-XXXXXX";
	const char *names[] = { "eth0", "eth9" };
	struct lx_sampler_config config = { .iface = names, .n_ifaces = 2 };
	struct lx_sample from = { 0 }, to = { 0 };
	struct lx_delta delta = { 0 }, copy = { 0 };
	struct lx_sampler *sampler;
	struct ho_err err = { 0 };
	const struct lx_ifdata *iface;

	assert_non_null(mkdtemp(root));
	config.root = root;
	make_tree(root, 0);
	assert_int_equal(lx_sampler_open(&config, &sampler, &err), 0);
	assert_int_equal(lx_sampler_read(sampler, &from, &err), 0);
	make_tree(root, 1);
	assert_int_equal(lx_sampler_read(sampler, &to, &err), 0);
	assert_int_equal(lx_delta_make(&from, &to, &delta), 0);
	assert_int_equal(lx_delta_copy(&delta, &copy), 0);
	lx_delta_fini(&delta);
	delta = copy;

	assert_int_equal(delta.host.n_cpus, CPUS);
	assert_int_equal(delta.host.switches, 500);
	assert_int_equal(delta.host.cpu[2].time_ns[LX_TIME_IDLE], 600000000u);
	assert_float_equal(lx_cpu_share(&delta.host.cpu[2], LX_TIME_SOFTIRQ), 0.3, 1e-9);
	assert_int_equal(delta.host.cpu[1].softnet.processed, 100);
	assert_int_equal(delta.host.cpu[1].softnet.dropped, 1);

	iface = &delta.iface[0];
	assert_int_equal(iface->index, 7);
	assert_int_equal(iface->link.rx_packets, 1000);
	assert_int_equal(iface->link.rx_bytes, 64000);
	assert_int_equal(iface->link.rx_missed_errors, 7);
	assert_int_equal(iface->facts.link_bps, 10000000000u);
	assert_int_equal(iface->facts.mtu, 9000);
	assert_true(iface->facts.up && iface->facts.running);
	assert_int_equal(iface->facts.pcie_mtps, 8000);
	assert_int_equal(iface->facts.pcie_lanes, 8);
	assert_int_equal(iface->facts.numa_node, 1);
	assert_int_equal(iface->n_irqs, QUEUES + 1);
	for (unsigned q = 0; q < QUEUES; q++) {
		const struct lx_irq *irq = lx_irq_find(iface, 50 + q);
		const struct lx_queue *queue = lx_queue_find(iface, LX_RX, q);
		char cpu[8];

		assert_non_null(irq);
		assert_non_null(queue);
		assert_int_equal(irq->queue, q);
		/* Over the edge of 32 bits. */
		assert_int_equal(irq->count, 1000 * (q + 1));
		assert_int_equal(irq->busiest, q % CPUS);
		assert_int_equal(irq->on_cpu[q % CPUS], 1000 * (q + 1));
		snprintf(cpu, sizeof(cpu), "%u", q % CPUS);
		assert_string_equal(irq->affinity, cpu);
		assert_true(queue->counted);
		assert_int_equal(queue->packets, 1000 * (q + 1));
		assert_int_equal(queue->bytes, 64000 * (q + 1));
		assert_int_equal(queue->irq, 50 + q);
		assert_int_equal(queue->rps, q == 3);
		assert_int_equal(lx_queue_find(iface, LX_TX, q)->irq, 50 + q);
	}
	assert_int_equal(lx_irq_find(iface, 90)->queue, -1);
	assert_true(lx_counter_find(iface, "fell")->backwards);
	assert_int_equal(lx_counter_find(iface, "fell")->value, 0);
	assert_int_equal(lx_setting_find(iface, "defer-hard-irqs")->value, 2);

	assert_int_equal(delta.iface[1].index, 0);
	assert_int_equal(delta.iface[1].has, 0);
	/* It comes. */
	make_tree(root, 2);
	put_file(root, "sys/class/net/eth9/ifindex", "9\n");
	put_file(root, "sys/class/net/eth9/statistics/rx_packets", "55\n");
	assert_int_equal(lx_sampler_read(sampler, &from, &err), 0);
	assert_int_equal(lx_delta_make(&to, &from, &delta), 0);
	assert_true(delta.iface[1].appeared);
	assert_int_equal(delta.iface[1].link.rx_packets, 0);
	/* And is another one. */
	put_file(root, "sys/class/net/eth9/ifindex", "10\n");
	assert_int_equal(lx_sampler_read(sampler, &to, &err), 0);
	assert_int_equal(lx_delta_make(&from, &to, &delta), 0);
	assert_true(delta.iface[1].replaced);
	/* Both are gone. */
	remove_tree(root);
	assert_int_equal(lx_sampler_read(sampler, &from, &err), 0);
	assert_int_equal(from.host.has, 0);
	assert_int_equal(lx_delta_make(&to, &from, &delta), 0);
	assert_true(delta.iface[0].vanished && delta.iface[1].vanished);
	assert_int_equal(delta.host.has, 0);
	assert_non_null(lx_sampler_missing(sampler, 0));
	lx_sample_fini(&from);
	lx_sample_fini(&to);
	lx_delta_fini(&delta);
	lx_sampler_close(sampler);
}

/* A reading and a difference on 8 queues: how much of a CPU at one a second. */
static void test_cost(void **state)
{
	char root[] = "/tmp/holdoff-tree-XXXXXX";
	const char *names[] = { "eth0" };
	struct lx_sampler_config config = { .iface = names,
					    .n_ifaces = 1,
					    .refresh_ns = 10000000000u };
	struct lx_sample sample[2] = { 0 };
	struct lx_delta delta = { 0 };
	struct lx_sampler *sampler;
	struct timespec begin, end;
	struct ho_err err;
	double each;
	const unsigned rounds = 200;

	assert_non_null(mkdtemp(root));
	config.root = root;
	make_tree(root, 0);
	assert_int_equal(lx_sampler_open(&config, &sampler, &err), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (unsigned i = 0; i < rounds; i++) {
		assert_int_equal(lx_sampler_read(sampler, &sample[i & 1], &err), 0);
		assert_int_equal(lx_delta_make(&sample[~i & 1], &sample[i & 1], &delta), 0);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	each = ((double)(end.tv_sec - begin.tv_sec) +
		1e-9 * (double)(end.tv_nsec - begin.tv_nsec)) /
	       rounds;
	print_message("a reading of 8 queues takes %.0f us of CPU: %.3f %% at one a second\n",
		      1e6 * each, 100 * each);
	assert_true(each < 0.01);
	lx_sample_fini(&sample[0]);
	lx_sample_fini(&sample[1]);
	lx_delta_fini(&delta);
	lx_sampler_close(sampler);
	remove_tree(root);
}

static void test_names(void **state)
{
	static const char *const bad[] = { "",          "..",  "a/b",
					   "../../etc", "a b", "sixteen-letters-",
					   "a:b" };
	struct lx_sampler *sampler;
	struct ho_err err;

	for (size_t i = 0; i < HO_ARRAY_LEN(bad); i++) {
		struct lx_sampler_config config = { .iface = &bad[i], .n_ifaces = 1 };

		assert_int_equal(lx_sampler_open(&config, &sampler, &err), -EINVAL);
		assert_non_null(strstr(err.text, "cannot be an interface"));
	}
}

static void test_params(void **state)
{
	struct lx_setting one, all[LX_PARAMS_MAX];
	struct ho_err err = { 0 };
	char text[200];
	int n;

	assert_int_equal(lx_param_get("lo", "bogus", &one, &err), -ENOENT);
	assert_int_equal(lx_param_get("ho-none", "rx", &one, &err), -ENODEV);
	assert_int_equal(lx_param_get("lo", "rx", &one, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "lo has no rx"));
	assert_int_equal(lx_param_set("lo", "rx", 5, NULL, &err), -EOPNOTSUPP);
	n = lx_param_list("lo", all, LX_PARAMS_MAX, &err);
	assert_true(n >= 0 && n <= LX_PARAMS_MAX);
	assert_string_equal(lx_param_command("eth0", lx_param_of("rx"), 512, text, sizeof(text)),
			    "ethtool -G eth0 rx 512");
	assert_string_equal(
		lx_param_command("eth0", lx_param_of("adaptive-rx"), 0, text, sizeof(text)),
		"ethtool -C eth0 adaptive-rx off");
	assert_string_equal(
		lx_param_command("eth0", lx_param_of("rx-queues"), 4, text, sizeof(text)),
		"ethtool -L eth0 rx 4");
	assert_string_equal(lx_param_command("eth0", lx_param_of("tso"), 0, text, sizeof(text)),
			    "ethtool -K eth0 tx-tcp-segmentation off tx-tcp6-segmentation off");
	assert_string_equal(
		lx_param_command("eth0", lx_param_of("defer-hard-irqs"), 2, text, sizeof(text)),
		"echo 2 > /sys/class/net/eth0/napi_defer_hard_irqs");
	/* A name means one thing. */
	for (const struct lx_param *p = lx_params; p->name; p++)
		assert_ptr_equal(lx_param_of(p->name), p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),           cmocka_unit_test(test_softnet),
		cmocka_unit_test(test_interrupts),     cmocka_unit_test(test_irq_names),
		cmocka_unit_test(test_queue_counters), cmocka_unit_test(test_queue_sums),
		cmocka_unit_test(test_protocols),      cmocka_unit_test(test_netdev_and_tasks),
		cmocka_unit_test(test_hostile),        cmocka_unit_test(test_tree),
		cmocka_unit_test(test_cost),           cmocka_unit_test(test_names),
		cmocka_unit_test(test_params),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
