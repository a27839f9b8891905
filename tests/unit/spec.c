// SPDX-License-Identifier: BSD-2-Clause
/* Frame specifications: each kind of field, what the headers hold, every complaint. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "packet/parse.h"
#include "traffic/spec.h"
#include "traffic/vary.h"

static struct tr_spec *make(const struct tr_stream_text *streams, unsigned n)
{
	struct tr_spec_text text = { .stamp = "no", .streams = streams, .n_streams = n };
	struct tr_spec *spec;
	struct ho_err err;

	if (tr_spec_create(&text, &spec, &err))
		fail_msg("%s", err.text);
	return spec;
}

static struct tr_spec *load(const char *yaml)
{
	struct tr_spec *spec;
	struct ho_err err;

	if (tr_spec_load_text("f.yaml", yaml, strlen(yaml), NULL, &spec, &err))
		fail_msg("%s", err.text);
	return spec;
}

/* --- values --------------------------------------------------------------------------------- */

/* The first values of a field, as text. */
static void expect_values(enum tr_value_kind kind, const char *text, const char *want)
{
	const struct tr_domain domain = { kind, 0, 65535 };
	char have[512] = "";
	struct tr_vary v;
	struct ho_err err;

	if (tr_vary_parse(text, &domain, &v, &err))
		fail_msg("%s", err.text);
	for (unsigned k = 0; k < 10; k++) {
		uint64_t index = tr_vary_index(&v, k);
		size_t used = strlen(have);

		assert_true(index <= v.span);
		snprintf(have + used, sizeof(have) - used, "%s%llx", k ? " " : "",
			 (unsigned long long)tr_vary_value(&v, index));
	}
	assert_string_equal(have, want);
	tr_vary_free(&v);
}

static void test_values(void **state)
{
	expect_values(TR_VALUE_NUMBER, "7", "7 7 7 7 7 7 7 7 7 7");
	expect_values(TR_VALUE_NUMBER, " 0xff ", "ff ff ff ff ff ff ff ff ff ff");
	expect_values(TR_VALUE_NUMBER, "1-3", "1 2 3 1 2 3 1 2 3 1");
	expect_values(TR_VALUE_NUMBER, "3-1", "3 2 1 3 2 1 3 2 1 3");
	expect_values(TR_VALUE_NUMBER, "0-8 step 3", "0 3 6 0 3 6 0 3 6 0");
	expect_values(TR_VALUE_NUMBER, "9 - 1 step 4 every 2", "9 9 5 5 1 1 9 9 5 5");
	expect_values(TR_VALUE_NUMBER, "5,1,5,2 every 2", "5 5 1 1 5 5 2 2 5 5");
	expect_values(TR_VALUE_NUMBER, "1, 2, 3", "1 2 3 1 2 3 1 2 3 1");
	expect_values(TR_VALUE_NUMBER, "010", "a a a a a a a a a a");
	expect_values(TR_VALUE_NUMBER, "random 6", "6 6 6 6 6 6 6 6 6 6");
	expect_values(TR_VALUE_IPV4, "10.0.0.254-10.0.1.1",
		      "a0000fe a0000ff a000100 a000101 a0000fe a0000ff a000100 a000101 a0000fe "
		      "a0000ff");
	expect_values(TR_VALUE_IPV4, "192.0.2.77/30 step 2",
		      "c000024c c000024e c000024c c000024e c000024c c000024e c000024c c000024e "
		      "c000024c c000024e");
	expect_values(TR_VALUE_MAC, "02:00:00:00:00:ff-02:00:00:00:01:00",
		      "200000000ff 20000000100 200000000ff 20000000100 200000000ff 20000000100 "
		      "200000000ff 20000000100 200000000ff 20000000100");
	expect_values(TR_VALUE_IPV6, "::/64", "0 1 2 3 4 5 6 7 8 9");
	expect_values(TR_VALUE_IPV6, "1::f-1::11", "f 10 11 f 10 11 f 10 11 f");
	expect_values(TR_VALUE_SIZE, "60:2,90:1", "3c 5a 3c 3c 5a 3c 3c 5a 3c 3c");
	expect_values(TR_VALUE_SIZE, "60:0,90:5", "5a 5a 5a 5a 5a 5a 5a 5a 5a 5a");
}

/* Every value comes, about equally often; another seed gives another order, the same seed the
 * same. */
static void test_random(void **state)
{
	const struct tr_stream_text stream = { .src_port = "random 1-100" };
	uint8_t a[64], b[64];
	unsigned seen[101] = { 0 }, differ = 0, same = 0;
	struct tr_spec_text text = { .seed = "1", .streams = &stream, .n_streams = 1 };
	struct tr_spec *one, *again, *other;

	assert_int_equal(tr_spec_create(&text, &one, NULL), 0);
	assert_int_equal(tr_spec_create(&text, &again, NULL), 0);
	text.seed = "2";
	assert_int_equal(tr_spec_create(&text, &other, NULL), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		tr_spec_frame(one, i, a);
		assert_in_range(pk_load16(a + 34), 1, 100);
		seen[pk_load16(a + 34)]++;
		tr_spec_frame(again, i, b);
		same += !memcmp(a, b, 60);
		tr_spec_frame(other, i, b);
		differ += memcmp(a, b, 60) != 0;
	}
	for (unsigned v = 1; v <= 100; v++)
		assert_in_range(seen[v], 800, 1200);
	assert_int_equal(same, 100000);
	assert_in_range(differ, 98000, 99900);
	tr_spec_destroy(one);
	tr_spec_destroy(again);
	tr_spec_destroy(other);
}

/* --- frames --------------------------------------------------------------------------------- */

static void expect_frame(const struct tr_stream_text *text, uint64_t i, const char *hex)
{
	struct tr_spec *spec = make(text, 1);
	char have[2 * 256 + 1];
	uint8_t frame[2048];
	uint32_t bytes = tr_spec_frame(spec, i, frame);

	for (uint32_t b = 0; b < HO_MIN(bytes, 256u); b++)
		sprintf(have + 2 * b, "%02x", frame[b]);
	if (strncmp(have, hex, strlen(hex)))
		fail_msg("%s\ninstead of\n%s", have, hex);
	tr_spec_destroy(spec);
}

/* Written down field by field; the checksums are those that scapy computes. */
static void test_layout(void **state)
{
	expect_frame(&(struct tr_stream_text){ .payload = "text:Hi" }, 0,
		     "020000000002"
		     "020000000001"
		     "0800"
		     "4500002e00000000"
		     "4011ee97"
		     "c6120001"
		     "c6120002"
		     "c000"
		     "0009"
		     "001a");
	expect_frame(&(struct tr_stream_text){ .vlan = "100",
					       .vlan_pcp = "5",
					       .vlan_dei = "1",
					       .vlan2 = "200",
					       .vlan2_pcp = "2",
					       .tos = "0x2e",
					       .ttl = "1",
					       .ip_id = "0x1234",
					       .df = "yes",
					       .udp_checksum = "no",
					       .payload = "hex:abcd" },
		     0,
		     "020000000002"
		     "020000000001"
		     "88a8"
		     "b064"
		     "8100"
		     "40c8"
		     "0800"
		     "452e0026"
		     "12344000"
		     "0111"
		     "db3d"
		     "c6120001"
		     "c6120002"
		     "c000"
		     "0009"
		     "0012"
		     "0000"
		     "abcdabcdabcd");
	expect_frame(&(struct tr_stream_text){ .ip_src = "2001:db8::5",
					       .ip_dst = "fe80::1",
					       .tos = "0xab",
					       .flow_label = "0x12345",
					       .ttl = "255",
					       .proto = "tcp",
					       .tcp_flags = "SA",
					       .tcp_seq = "1",
					       .tcp_ack = "2",
					       .tcp_window = "3",
					       .src_port = "80",
					       .dst_port = "81",
					       .payload = "counting" },
		     0,
		     "020000000002"
		     "020000000001"
		     "86dd"
		     "6ab12345"
		     "0014"
		     "06"
		     "ff"
		     "20010db8000000000000000000000005"
		     "fe800000000000000000000000000001"
		     "0050"
		     "0051"
		     "00000001"
		     "00000002"
		     "5012"
		     "0003"
		     "82ec"
		     "0000");
	expect_frame(
		&(struct tr_stream_text){ .proto = "icmp", .icmp_id = "7", .icmp_seq = "5-100" }, 3,
		"020000000002"
		"020000000001"
		"0800"
		"4500002e00000000"
		"4001eea7"
		"c6120001"
		"c6120002"
		"0800"
		"f7f0"
		"0007"
		"0008");
	expect_frame(&(struct tr_stream_text){ .ethertype = "0x88b5",
					       .eth_dst = "ff:ff:ff:ff:ff:ff",
					       .eth_src = "02:aa:bb:cc:dd:00-02:aa:bb:cc:de:00",
					       .size = "14" },
		     256,
		     "ffffffffffff"
		     "02aabbccde00"
		     "88b5");
}

static void test_sizes(void **state)
{
	static const struct {
		struct tr_stream_text text;
		const char *stamp;
		uint32_t bytes;
		bool stamped;
	} defaults[] = {
		{ { 0 }, "auto", 60, true },
		{ { .vlan = "1" }, "auto", 62, true },
		{ { .vlan = "1" }, "no", 60, false },
		{ { .ip_dst = "::1" }, NULL, 78, true },
		{ { .ip_dst = "::1" }, "no", 62, false },
		{ { .ip_dst = "::1", .size = "62" }, "auto", 62, false },
		{ { .proto = "tcp" }, "yes", 70, true },
		{ { .ethertype = "0x1234" }, "yes", 60, true },
	};
	struct tr_spec_info info;
	struct tr_spec *spec;

	for (unsigned i = 0; i < HO_ARRAY_LEN(defaults); i++) {
		struct tr_spec_text text = { .stamp = defaults[i].stamp,
					     .streams = &defaults[i].text,
					     .n_streams = 1 };

		assert_int_equal(tr_spec_create(&text, &spec, NULL), 0);
		tr_spec_info(spec, &info);
		assert_int_equal(info.min_bytes, defaults[i].bytes);
		assert_int_equal(info.max_bytes, defaults[i].bytes);
		assert_int_equal(info.stamped, defaults[i].stamped);
		tr_spec_destroy(spec);
	}
	spec = load("streams: [{size: imix}]");
	tr_spec_info(spec, &info);
	assert_int_equal(info.min_bytes, 60);
	assert_int_equal(info.max_bytes, 1514);
	assert_int_equal((int)(info.mean_bytes * 12 + 0.5), 7 * 60 + 4 * 590 + 1514);
	assert_int_equal(info.max_slots, 1);
	tr_spec_destroy(spec);
	/* As many of each as the weights say, in any round. */
	spec = load("streams: [{size: '100:3,200:1,64:6'}]");
	unsigned count[256] = { 0 };
	static uint8_t frame[2048];
	for (uint64_t i = 0; i < 1000; i++)
		count[tr_spec_frame(spec, i, frame)]++;
	assert_int_equal(count[100], 300);
	assert_int_equal(count[200], 100);
	assert_int_equal(count[64], 600);
	tr_spec_destroy(spec);
}

static void test_weights(void **state)
{
	struct tr_spec *spec = load("seed: 5\n"
				    "stamp: no\n"
				    "streams:\n"
				    "  - {name: a, weight: 30, dst-port: 1, src-port: 0-65535}\n"
				    "  - {name: b, weight: 10, dst-port: 2, src-port: 0-65535}\n"
				    "  - {name: c, weight: 0, dst-port: 3, size: 9000}\n"
				    "  - {name: d, weight: 10, dst-port: 4, size: 100-104}\n");
	unsigned count[5] = { 0 };
	struct tr_spec_info info;
	uint8_t frame[2048];
	char text[128];

	for (uint64_t i = 0; i < 500; i++) {
		unsigned port;

		tr_spec_frame(spec, i, frame);
		port = pk_load16(frame + 36);
		/* Each stream counts for itself, without gaps. */
		if (port != 4)
			assert_int_equal(pk_load16(frame + 34), count[port]);
		count[port]++;
	}
	assert_int_equal(count[1], 300);
	assert_int_equal(count[2], 100);
	assert_int_equal(count[3], 0);
	assert_int_equal(count[4], 100);
	tr_spec_info(spec, &info);
	assert_int_equal(info.streams, 4);
	assert_int_equal(info.max_bytes, 104);
	assert_int_equal((int)(info.mean_bytes * 10 + 0.5), 684);
	assert_string_equal(tr_spec_describe(spec, 3, text, sizeof(text)),
			    "d: IPv4 UDP, 100 to 104 bytes, 0 varying fields, 1 of 5 frames");
	tr_spec_destroy(spec);
}

/* --- YAML ----------------------------------------------------------------------------------- */

static void test_over(void **state)
{
	static const char yaml[] = "streams: [{dst-port: 1}, {dst-port: 2, size: 100}]";
	const struct tr_stream_text stream = { .size = "90", .ttl = "3" };
	const struct tr_spec_text over = { .stamp = "no", .streams = &stream, .n_streams = 1 };
	struct tr_spec_info info;
	struct tr_spec *spec;
	uint8_t frame[128];

	assert_int_equal(tr_spec_load_text("f", yaml, strlen(yaml), &over, &spec, NULL), 0);
	tr_spec_info(spec, &info);
	assert_false(info.stamped);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(tr_spec_frame(spec, i, frame), 90);
		assert_int_equal(frame[22], 3);
		assert_int_equal(pk_load16(frame + 36), i % 2 + 1);
	}
	tr_spec_destroy(spec);
}

static void test_file(void **state)
{
	char path[] = "/tmp/holdoff-spec-XXXXXX";
	int fd = mkstemp(path);
	struct tr_spec *spec;
	struct ho_err err;

	assert_true(fd >= 0);
	dprintf(fd, "streams:\n  - size: 100\n    vlna: 5\n");
	close(fd);
	assert_int_equal(tr_spec_load(path, NULL, &spec, &err), -EINVAL);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, ":3:"));
	assert_non_null(strstr(err.text, "vlna"));
	unlink(path);
	assert_int_equal(tr_spec_load(path, NULL, &spec, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
}

static const struct {
	const char *yaml, *words;
} bad_yaml[] = {
	{ "", "f.yaml" },
	{ "streams", "f.yaml" },
	{ "streams: []", "f.yaml" },
	{ "seed: 4", "streams" },
	{ "streams: [{size: 60}]\nrate: 4\n", "f.yaml:2:1: " },
	{ "streams: [{size: [60, 70]}]", "f.yaml:1:" },
	{ "streams: [{size: 60}", "f.yaml" },
	{ "streams: [{size: 60, size: 60, \t]", "f.yaml" },
	{ "seed: minus\nstreams: [{}]", "f.yaml:1:7: seed: 'minus' is not a number" },
	{ "stamp: maybe\nstreams: [{}]", "stamp: 'maybe' is none of yes, no, auto" },
	{ "streams: [{weight: 0}, {weight: 0}]", "weights sum to 0" },
	{ "streams: [{weight: 65537}, {weight: 1}]", "weights sum to 65538" },
	{ "streams: [{}, {name: second, ttl: 256}]",
	  "f.yaml:1:35: second: ttl: '256' is not a number from 0 to 255" },
	{ "streams: [{ttl: 1}, {ttl: 999}]", "f.yaml:1:27: stream 2: ttl: '999'" },
	{ "stamp: yes\nstreams: [{size: 57}]", "headers and stamp take 58" },
};

static const struct {
	struct tr_stream_text text;
	const char *words;
} bad_streams[] = {
	{ { .size = "41" }, "size: frames of 41 bytes: the headers alone take 42" },
	{ { .size = "30-100" }, "size: frames of 30 bytes" },
	{ { .size = "13", .ethertype = "0x88b5" }, "the headers alone take 14" },
	{ { .size = "65550" },
	  "size: frames of 65550 bytes: with these headers 65549 is the most" },
	{ { .size = "65558" }, "size: '65558' is not a number from 0 to 65557" },
	{ { .size = "60:0,70:0" }, "size: the weights sum to 0" },
	{ { .size = "60:100000,70:1" }, "size: the weights sum to 100001" },
	{ { .size = "60:x" }, "size: 'x' is not a weight" },
	{ { .size = "60:" }, "size: '' is not a weight" },
	{ { .size = "" }, "size: '' has no value" },
	{ { .size = "random" }, "size: 'random' has no value" },
	{ { .size = "60,,70" }, "size: '' is not a number" },
	{ { .size = "-60" }, "size: '-60' is not a number" },
	{ { .size = "60 step 4" }, "a single value has no step" },
	{ { .size = "60,70 step 4" }, "a list has no step" },
	{ { .size = "60-70 step 20" }, "the step leaves one value" },
	{ { .size = "60-70 step" }, "'step' needs a number from 1 on" },
	{ { .size = "60-70 every 0" }, "'every' needs a number from 1 on, not '0'" },
	{ { .size = "60-70 every 1 every 2" }, "'every' twice" },
	{ { .size = "60-70 every 1 or 2" }, "what is 'or' behind it?" },
	{ { .vlan = "4095" }, "vlan: '4095' is not a number from 0 to 4094" },
	{ { .vlan = "1", .vlan2 = "5000" }, "vlan2: '5000' is not a number from 0 to 4094" },
	{ { .vlan = "1", .vlan_pcp = "8" }, "vlan-pcp: '8' is not a number from 0 to 7" },
	{ { .vlan2 = "1" }, "vlan2: belongs to a VLAN tag" },
	{ { .vlan_pcp = "1" }, "vlan-pcp: belongs to a VLAN tag" },
	{ { .vlan = "1", .vlan2_dei = "1" }, "vlan2-dei: belongs to the inner VLAN tag" },
	{ { .vlan = "1", .vlan_tpid = "1,2" }, "vlan-tpid: '1,2': this field cannot vary" },
	{ { .eth_dst = "02:00:00:00:00" }, "eth-dst: '02:00:00:00:00' is not a MAC address" },
	{ { .eth_dst = "02:00:00:00:00:1g" }, "eth-dst" },
	{ { .eth_src = "02-00-00-00-00-01" }, "eth-src: '02' is not a MAC address" },
	{ { .ethertype = "1500" }, "ethertype: '1500' is below 0x600" },
	{ { .ethertype = "0x88b5", .ip_src = "1.2.3.4" },
	  "ip-src: a stream with ethertype has no IP" },
	{ { .ethertype = "0x88b5", .dst_port = "1" }, "dst-port: a stream with ethertype" },
	{ { .ip_src = "10.0.0.300" }, "ip-src: '10.0.0.300' is not an IPv4 address" },
	{ { .ip_src = "10.0.0" }, "ip-src: '10.0.0' is not an IPv4 address" },
	{ { .ip_src = "2001:db8::g" }, "ip-src: '2001:db8::g' is not an IPv6 address" },
	{ { .ip_src = "10.0.0.1", .ip_dst = "::1" }, "are not of the same IP version" },
	{ { .ip_dst = "10.0.0.0/33" }, "ip-dst: '10.0.0.0/33': a prefix of 0 to 32 bits" },
	{ { .ip_dst = "10.0.0.0/" }, "a prefix of 0 to 32 bits" },
	{ { .ip_dst = "10.0.0.0/24 step 256" }, "the step leaves one value" },
	{ { .ip_dst = "2001::/63" }, "a prefix of 64 to 128 bits" },
	{ { .ip_dst = "2001::1-2002::1" }, "must have the same first 64 bits" },
	{ { .ip_dst = "::0-::ffff:ffff:ffff:fffe" }, "more than 2^63 addresses" },
	{ { .ip_dst = "::1", .ip_id = "1" }, "ip-id: only IPv4 has this field" },
	{ { .ip_dst = "::1", .df = "yes" }, "df: only IPv4" },
	{ { .flow_label = "1" }, "flow-label: only IPv6 has this field" },
	{ { .df = "maybe" }, "df: 'maybe' is neither yes nor no" },
	{ { .ip_dst = "::1", .udp_checksum = "no" }, "udp-checksum: IPv6 requires one" },
	{ { .proto = "sctp" }, "proto: 'sctp' is not udp, tcp, icmp or a number to 255" },
	{ { .proto = "256" }, "proto: '256'" },
	{ { .proto = "6,17" }, "proto: '6,17'" },
	{ { .proto = "tcp", .udp_checksum = "yes" }, "udp-checksum: only proto udp" },
	{ { .proto = "icmp", .dst_port = "1" }, "dst-port: only proto udp and tcp" },
	{ { .tcp_flags = "s" }, "tcp-flags: only proto tcp" },
	{ { .icmp_type = "8" }, "icmp-type: only proto icmp" },
	{ { .proto = "tcp", .tcp_flags = "sx" }, "tcp-flags: 'sx': 'x' is none of the flags" },
	{ { .dst_port = "65536" }, "dst-port: '65536' is not a number from 0 to 65535" },
	{ { .dst_port = "0x" }, "dst-port: '0x'" },
	{ { .dst_port = "99999999999999999999" }, "dst-port" },
	{ { .payload = "ones" }, "payload: 'ones' is none of" },
	{ { .payload = "text:" }, "payload: 'text:' is none of" },
	{ { .payload = "hex:123" }, "payload: 'hex:123' is not pairs of hexadecimal digits" },
	{ { .weight = "x" }, "weight: 'x' is not a number" },
	{ { .weight = "1-2" }, "weight: '1-2': this field cannot vary" },
};

/* A value that cannot be is blamed where it stands, unless it is not the file's. */
static void test_places(void **state)
{
	static const struct {
		const char *yaml, *seed, *size, *says;
	} cases[] = {
		{ "seed: 1\nstreams:\n  - name: a\n  - {name: b, ttl: 1,\n     size: 70000x}\n",
		  NULL, NULL, "f.yaml:5:12: b: size: '70000x' is not a number from 0 to 65557" },
		{ "streams:\n  - proto: udp\n    size: 20\n", NULL, NULL,
		  "f.yaml:3:11: size: frames of 20 bytes: the headers alone take 42" },
		{ "streams:\n  - ip-id: 1\n    ip-src: 2001:2::3\n", NULL, NULL,
		  "f.yaml:2:12: ip-id: only IPv4 has this field" },
		{ "seed: x\nstreams:\n  - size: 60\n", NULL, NULL,
		  "f.yaml:1:7: seed: 'x' is not a number" },
		{ "streams:\n  - size: 60\nstamp: maybe\n", NULL, NULL,
		  "f.yaml:3:8: stamp: 'maybe' is none of" },
		{ "streams:\n  - weight: 0\n", NULL, NULL, "f.yaml:2:13: the weights sum to 0" },
		{ "seed: 1\nstreams:\n  - size: 60\n", "x", NULL, "f.yaml: seed: 'x' is not" },
		{ "streams:\n  - size: 60\n", NULL, "20", "f.yaml: size: frames of 20 bytes" },
		{ "streams:\n  - size: &a 60\n    ttl: &a 1\n", NULL, NULL,
		  "f.yaml:3:10: found duplicate anchor" },
	};

	for (unsigned i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct tr_stream_text stream = { .size = cases[i].size };
		struct tr_spec_text over = {
			.seed = cases[i].seed,
			.streams = &stream,
			.n_streams = 1,
		};
		struct tr_spec *spec;
		struct ho_err err = { 0 };
		int rc = tr_spec_load_text("f.yaml", cases[i].yaml, strlen(cases[i].yaml), &over,
					   &spec, &err);

		if (rc != -EINVAL || strncmp(err.text, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s: %d '%s' does not begin with '%s'", cases[i].yaml, rc,
				 err.text, cases[i].says);
	}
}

static void test_complaints(void **state)
{
	struct tr_spec *spec;

	for (unsigned i = 0; i < HO_ARRAY_LEN(bad_yaml); i++) {
		const char *yaml = bad_yaml[i].yaml;
		struct ho_err err = { 0 };
		int rc = tr_spec_load_text("f.yaml", yaml, strlen(yaml), NULL, &spec, &err);

		if (rc != -EINVAL || !strstr(err.text, bad_yaml[i].words))
			fail_msg("%s: %d '%s' does not say '%s'", yaml, rc, err.text,
				 bad_yaml[i].words);
	}
	for (unsigned i = 0; i < HO_ARRAY_LEN(bad_streams); i++) {
		struct tr_spec_text text = { .streams = &bad_streams[i].text, .n_streams = 1 };
		struct ho_err err = { 0 };
		int rc = tr_spec_create(&text, &spec, &err);

		if (rc != -EINVAL || !strstr(err.text, bad_streams[i].words))
			fail_msg("%d '%s' does not say '%s'", rc, err.text, bad_streams[i].words);
	}
}

static void test_fits(void **state)
{
	struct tr_spec *spec = make(&(struct tr_stream_text){ .size = "9014" }, 1);
	struct ho_err err;

	assert_int_equal(tr_spec_fits(spec, 9014, 0, "xdp:v0", &err), 0);
	assert_int_equal(tr_spec_fits(spec, 1514, 4, "xdp:v0", &err), -EMSGSIZE);
	assert_string_equal(err.text, "xdp:v0: frames of 9014 bytes (stream 1) are longer than it "
				      "can send (1514); a smaller size or a larger MTU fits");
	tr_spec_destroy(spec);
	/* A tag may have room of its own. */
	spec = make(&(struct tr_stream_text){ .size = "1518", .vlan = "5" }, 1);
	assert_int_equal(tr_spec_fits(spec, 1514, 4, "tap:t", &err), 0);
	assert_int_equal(tr_spec_fits(spec, 1514, 0, "tap:t", &err), -EMSGSIZE);
	tr_spec_destroy(spec);
	tr_spec_destroy(NULL);
}

/* The port's address is the source where none was given, in a file of some streams too. */
static void test_source(void **state)
{
	static const uint8_t own[6] = { 0x52, 0x54, 0, 1, 2, 3 }, none[6] = { 0 };
	static const uint8_t initial[6] = { 2, 0, 0, 0, 0, 1 }, given[6] = { 2, 0, 0, 0, 0, 9 };
	struct tr_spec *spec = load("streams:\n"
				    "  - eth-dst: 02:00:00:00:01:00-02:00:00:00:01:ff\n"
				    "  - eth-src: 02:00:00:00:00:09\n"
				    "  - eth-src: 02:00:00:00:00:01\n"
				    "  - weight: 0\n");
	uint8_t frame[2048];

	tr_spec_set_source(spec, none);
	tr_spec_frame(spec, 0, frame);
	assert_memory_equal(frame + 6, initial, 6);
	tr_spec_set_source(spec, own);
	tr_spec_frame(spec, 3, frame);
	assert_memory_equal(frame, "\x02\0\0\0\x01\x01", 6);
	assert_memory_equal(frame + 6, own, 6);
	tr_spec_frame(spec, 1, frame);
	assert_memory_equal(frame + 6, given, 6);
	tr_spec_frame(spec, 2, frame);
	assert_memory_equal(frame + 6, initial, 6);
	tr_spec_destroy(spec);
}

/* The longest lists and most streams there may be, and one more. */
static void test_limits(void **state)
{
	char *list = malloc(3 * TR_VARY_LIST_MAX + 16), *to = list;
	struct tr_stream_text *streams = calloc(257, sizeof(*streams));
	struct tr_spec_text text = { .streams = streams, .n_streams = 1 };
	struct tr_spec *spec;
	struct ho_err err;

	for (unsigned i = 0; i < TR_VARY_LIST_MAX; i++)
		to = stpcpy(to, i ? ",77" : "77");
	streams[0].src_port = list;
	assert_int_equal(tr_spec_create(&text, &spec, &err), 0);
	tr_spec_destroy(spec);
	stpcpy(to, ",8");
	assert_int_equal(tr_spec_create(&text, &spec, &err), -EINVAL);
	assert_non_null(strstr(err.text, "src-port: a list of 65537 values"));
	streams[0].src_port = NULL;
	text.n_streams = 256;
	assert_int_equal(tr_spec_create(&text, &spec, &err), 0);
	tr_spec_destroy(spec);
	text.n_streams = 257;
	assert_int_equal(tr_spec_create(&text, &spec, &err), -EINVAL);
	assert_non_null(strstr(err.text, "257 streams"));
	free(streams);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),  cmocka_unit_test(test_random),
		cmocka_unit_test(test_layout),  cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_weights), cmocka_unit_test(test_over),
		cmocka_unit_test(test_file),    cmocka_unit_test(test_complaints),
		cmocka_unit_test(test_places),  cmocka_unit_test(test_fits),
		cmocka_unit_test(test_limits),  cmocka_unit_test(test_source),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
