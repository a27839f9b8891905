// SPDX-License-Identifier: BSD-2-Clause
/*
 * The translation of libpcap expressions to XDP programs: for many expressions and random frames,
 * the kernel running the translation must say what libpcap's own interpreter says. Needs CAP_BPF.
 */
/* libpcap's instruction and program have the names of the kernel's and libbpf's. */
#define bpf_insn    classic
#define bpf_program classic_program
#include "port/bpf.h"
#undef bpf_insn
#undef bpf_program

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "linux/caps.h"
#include "port/xdp.h"
#include "port/xdp_shared.h"

#define FRAMES 300

static const char *const expressions[] = {
	"udp",
	"tcp",
	"ip",
	"ip6",
	"arp",
	"icmp",
	"icmp6",
	"vlan",
	"vlan 7",
	"vlan 7 and udp",
	"udp port 9",
	"udp dst port 9",
	"tcp src port 49152",
	"port 9 or port 49152",
	"host 198.18.0.1",
	"src net 198.18.0.0/15",
	"not ip",
	"ether host 02:00:00:00:00:01",
	"ether multicast",
	"ether broadcast",
	"less 100",
	"greater 64",
	"len > 70 and len < 90",
	"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
	"ip[8] < 5",
	"ip[2:2] > 100",
	"udp[8:4] = 0",
	"(ip[0] & 0xf) * 4 > 20",
	"ip[ip[0]:1] = 7",
	"ether[100] = 3",
	"ether[3900] = 1",
	"ether[60000] = 1",
	"ip and not (udp or tcp)",
	"ip proto 50 or ip proto 51",
	"portrange 5-2000",
	"ip6 host 2001:db8::1",
	"ip6 and tcp port 80",
	"mpls",
	"mpls 5 and ip",
	"ip[6:2] & 0x1fff != 0",
	"ether[0] + ether[1] * 3 - ether[2] > 40",
	"ether[14] / ether[15] = 2",
	"ether[14] % ether[15] = 1",
	"ether[14] << 2 = 0x114",
	"(ether[12:4] >> 4) ^ 0x800450 = 0",
	"(ether[0] | ether[6]) = 2",
	"ip[10:2] = ip[2:2]",
	"1 = 1",
	"icmp[icmptype] = icmp-echo",
	"udp and (port 1 or port 2 or port 3 or port 9) and host 198.18.0.2",
};

static int steps_fd = -1, step_fd[XDP_STEPS];

/* A program that says which step was taken: its return value. */
static int verdict_program(int verdict)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = verdict },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "test_verdict", "Dual BSD/GPL", insns, 2, NULL);
}

static int setup(void **state)
{
	static const int verdicts[] = { [XDP_STEP_TAKE] = XDP_TX, [XDP_STEP_UNMATCHED] = XDP_DROP };

	steps_fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "test_steps", 4, 4, XDP_STEPS, NULL);
	if (steps_fd < 0)
		return -1;
	for (uint32_t step = XDP_STEP_TAKE; step <= XDP_STEP_UNMATCHED; step++) {
		step_fd[step] = verdict_program(verdicts[step]);
		if (step_fd[step] < 0 ||
		    bpf_map_update_elem(steps_fd, &step, &step_fd[step], BPF_ANY) < 0)
			return -1;
	}
	return 0;
}

/* Something that the expressions may match, with a few bytes wrong. */
static uint32_t make_frame(uint8_t *frame)
{
	static const uint16_t types[] = { 0x0800, 0x0800, 0x0800, 0x86dd,
					  0x86dd, 0x8100, 0x0806, 0x8847 };
	static const uint8_t protos[] = { 17, 17, 6, 6, 1, 58, 50, 51, 44 };
	static const uint8_t ports[] = { 0, 9, 0xc0, 0, 0, 80, 0, 3 };
	uint32_t len = 14 + (uint32_t)rand() % (rand() % 8 ? 120 : 1400), at = 12;
	uint16_t type = htobe16(types[rand() % 8]);

	for (uint32_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(rand() % 4 ? 0 : rand());
	if (rand() % 2)
		memcpy(frame, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01", 12);
	else if (rand() % 3 == 0)
		memset(frame, 0xff, 6);
	memcpy(frame + at, &type, 2);
	if (type == htobe16(0x8100) && len >= 18) {
		memcpy(frame + 14, "\x00\x07\x08\x00", 4);
		at += 4;
	}
	at += 2;
	if (at + 44 > len)
		return len;
	if (type == htobe16(0x86dd)) {
		frame[at] = 0x60;
		frame[at + 6] = protos[rand() % 9];
		memcpy(frame + at + 8, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
		memcpy(frame + at + 40, ports + rand() % 4 * 2, 2);
		memcpy(frame + at + 42, ports + rand() % 4 * 2, 2);
		return len;
	}
	frame[at] = (uint8_t)(0x45 + rand() % 3 / 2);
	frame[at + 9] = protos[rand() % 9];
	memcpy(frame + at + 12, rand() % 2 ? "\xc6\x12\0\1\xc6\x12\0\2" : "\xc6\x13\0\1\x0a\0\0\2",
	       8);
	memcpy(frame + at + 20, ports + rand() % 4 * 2, 2);
	memcpy(frame + at + 22, ports + rand() % 4 * 2, 2);
	return len;
}

static void check(const char *expression, uint64_t *matches)
{
	static uint8_t frame[2048];
	struct classic_program program;
	struct bpf_insn *insns = NULL;
	struct ho_err err = { 0 };
	size_t n = 0;
	int fd;

	if (port_bpf_compile(expression, &program, &err) < 0)
		fail_msg("%s", err.text);
	if (xdp_filter_translate(expression, steps_fd, &insns, &n, &err) < 0)
		fail_msg("%s", err.text);
	fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "test_filter", "Dual BSD/GPL", insns, n, NULL);
	if (fd < 0) {
		static char log[1 << 18];
		LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log, .log_size = sizeof(log),
			    .log_level = 1);

		bpf_prog_load(BPF_PROG_TYPE_XDP, "test_filter", "Dual BSD/GPL", insns, n, &opts);
		fail_msg("'%s' is refused:\n%s", expression, log);
	}
	for (int i = 0; i < FRAMES; i++) {
		uint32_t len = make_frame(frame);
		bool match = port_bpf_match(&program, frame, len, len);
		LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = len);

		if (bpf_prog_test_run_opts(fd, &run) < 0)
			fail_msg("'%s', %u bytes: %s", expression, len, strerror(errno));
		if (run.retval != (match ? XDP_TX : XDP_DROP))
			fail_msg("'%s', frame %d: libpcap %d, XDP %u", expression, i, match,
				 run.retval);
		*matches += match;
	}
	close(fd);
	free(insns);
	pcap_freecode(&program);
}

static void test_translation(void **state)
{
	uint64_t matches = 0;

	srand(11);
	for (size_t i = 0; i < HO_ARRAY_LEN(expressions); i++)
		check(expressions[i], &matches);
	/* Frames that match everything or nothing would prove nothing. */
	assert_in_range(matches, FRAMES * HO_ARRAY_LEN(expressions) / 20,
			FRAMES * HO_ARRAY_LEN(expressions) / 2);
}

static void test_complaints(void **state)
{
	struct bpf_insn *insns = NULL;
	struct ho_err err = { 0 };
	size_t n = 0;

	assert_int_equal(xdp_filter_translate("udp prot 9", steps_fd, &insns, &n, &err), -EINVAL);
	assert_non_null(strstr(err.text, "udp prot 9"));
	assert_int_equal(xdp_filter_translate("ip protochain 17", steps_fd, &insns, &n, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "protochain"));
	assert_null(insns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_translation),
		cmocka_unit_test(test_complaints),
	};

	if (lx_caps_missing(LX_CAP(CAP_BPF) | LX_CAP(CAP_NET_ADMIN))) {
		print_message("needs cap_bpf and cap_net_admin\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, NULL);
}
