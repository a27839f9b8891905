// SPDX-License-Identifier: BSD-2-Clause
/* The header parser: every kind of frame, each cut at every byte, and every named error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "packet/parse.h"

#define MACS           \
	"020000000002" \
	"020000000001"
#define V4(len, frag, proto)                     \
	"4500" len "0001" frag "40" proto "0000" \
	"c6120001"                               \
	"c6120002"
#define V6(len, next)                      \
	"60000000" len next "40"           \
	"20010002000000000000000000000001" \
	"20010002000000000000000000000002"
#define UDP8   \
	"c000" \
	"0009" \
	"0008" \
	"0000"
#define UDP12  \
	"c000" \
	"0009" \
	"000c" \
	"0000" \
	"01020304"
#define TCP20      \
	"c000"     \
	"0050"     \
	"00000001" \
	"00000002" \
	"5010"     \
	"ffff"     \
	"0000"     \
	"0000"
#define ECHO   \
	"0800" \
	"0000" \
	"0001" \
	"0001"

struct sample {
	const char *name, *hex;
	enum pk_parse_result result;
	enum pk_l3 l3;
	enum pk_l4 l4;
	unsigned vlans, l3_off, l4_off, payload_off, end, dst_port;
	bool fragment, first;
};

#define BARE  .result = PK_PARSE_OK /* not IP */
#define PLAIN BARE, .first = true

/* Numbers behind the names are offsets in bytes. */
static const struct sample samples[] = {
	{ "raw",
	  MACS "88b5"
	       "0102",
	  BARE, .l3_off = 14, .payload_off = 14, .end = 16 },
	{ "802.3",
	  MACS "0010"
	       "aaaa03",
	  BARE, .l3_off = 14, .payload_off = 14, .end = 17 },
	{ "udp4", MACS "0800" V4("0020", "0000", "11") UDP12, PLAIN, .l3 = PK_L3_IPV4,
	  .l4 = PK_L4_UDP, .l3_off = 14, .l4_off = 34, .payload_off = 42, .end = 46,
	  .dst_port = 9 },
	{ "udp4 and padding", MACS "0800" V4("001c", "4000", "11") UDP8 "000000000000", PLAIN,
	  .l3 = PK_L3_IPV4, .l4 = PK_L4_UDP, .l3_off = 14, .l4_off = 34, .payload_off = 42,
	  .end = 42, .dst_port = 9 },
	{ "options",
	  MACS "0800"
	       "46000020"
	       "00010000"
	       "40110000"
	       "c6120001"
	       "c6120002"
	       "01010101" UDP8,
	  PLAIN, .l3 = PK_L3_IPV4, .l4 = PK_L4_UDP, .l3_off = 14, .l4_off = 38, .payload_off = 46,
	  .end = 46, .dst_port = 9 },
	{ "tcp4", MACS "0800" V4("0028", "0000", "06") TCP20, PLAIN, .l3 = PK_L3_IPV4,
	  .l4 = PK_L4_TCP, .l3_off = 14, .l4_off = 34, .payload_off = 54, .end = 54,
	  .dst_port = 80 },
	{ "tcp4 with options",
	  MACS "0800" V4("002c", "0000", "06") "c000"
					       "0050"
					       "00000001"
					       "00000002"
					       "6002"
					       "ffff"
					       "0000"
					       "0000"
					       "020405b4",
	  PLAIN, .l3 = PK_L3_IPV4, .l4 = PK_L4_TCP, .l3_off = 14, .l4_off = 34, .payload_off = 58,
	  .end = 58, .dst_port = 80 },
	{ "icmp", MACS "0800" V4("001c", "0000", "01") ECHO, PLAIN, .l3 = PK_L3_IPV4,
	  .l4 = PK_L4_ICMP, .l3_off = 14, .l4_off = 34, .payload_off = 42, .end = 42 },
	{ "icmpv6 in ipv4 is nothing known", MACS "0800" V4("001c", "0000", "3a") ECHO, PLAIN,
	  .l3 = PK_L3_IPV4, .l3_off = 14, .l4_off = 34, .payload_off = 34, .end = 42 },
	{ "first fragment",
	  MACS "0800" V4("001c", "2000", "11") "c000"
					       "0009"
					       "0400"
					       "0000",
	  PLAIN, .l3 = PK_L3_IPV4, .l4 = PK_L4_UDP, .l3_off = 14, .l4_off = 34, .payload_off = 42,
	  .end = 42, .dst_port = 9, .fragment = true },
	{ "later fragment", MACS "0800" V4("001c", "0001", "11") "ffffffffffffffff",
	  .result = PK_PARSE_OK, .l3 = PK_L3_IPV4, .l3_off = 14, .l4_off = 34, .payload_off = 34,
	  .end = 42, .fragment = true },
	{ "one tag",
	  MACS "8100"
	       "6064"
	       "0800" V4("001c", "0000", "11") UDP8,
	  PLAIN, .l3 = PK_L3_IPV4, .l4 = PK_L4_UDP, .vlans = 1, .l3_off = 18, .l4_off = 38,
	  .payload_off = 46, .end = 46, .dst_port = 9 },
	{ "two tags",
	  MACS "88a8"
	       "0064"
	       "8100"
	       "00c8"
	       "86dd" V6("0008", "11") UDP8,
	  PLAIN, .l3 = PK_L3_IPV6, .l4 = PK_L4_UDP, .vlans = 2, .l3_off = 22, .l4_off = 62,
	  .payload_off = 70, .end = 70, .dst_port = 9 },
	{ "three tags: the third is not looked into",
	  MACS "8100"
	       "0001"
	       "8100"
	       "0002"
	       "8100"
	       "0003"
	       "0800",
	  BARE, .vlans = 2, .l3_off = 22, .payload_off = 22, .end = 26 },
	{ "arp",
	  MACS "0806"
	       "0001"
	       "0800"
	       "0604"
	       "0001"
	       "020000000001"
	       "c6120001"
	       "000000000000"
	       "c6120002"
	       "0000",
	  BARE, .l3 = PK_L3_ARP, .l3_off = 14, .payload_off = 42, .end = 42 },
	{ "tcp6", MACS "86dd" V6("0014", "06") TCP20, PLAIN, .l3 = PK_L3_IPV6, .l4 = PK_L4_TCP,
	  .l3_off = 14, .l4_off = 54, .payload_off = 74, .end = 74, .dst_port = 80 },
	{ "icmpv6",
	  MACS "86dd" V6("0008", "3a") "8000"
				       "0000"
				       "0001"
				       "0001",
	  PLAIN, .l3 = PK_L3_IPV6, .l4 = PK_L4_ICMPV6, .l3_off = 14, .l4_off = 54,
	  .payload_off = 62, .end = 62 },
	{ "extensions",
	  MACS "86dd" V6("0020", "00") "3c00010400000000"
				       "2b00010400000000"
				       "1100000000000000" UDP8,
	  PLAIN, .l3 = PK_L3_IPV6, .l4 = PK_L4_UDP, .l3_off = 14, .l4_off = 78, .payload_off = 86,
	  .end = 86, .dst_port = 9 },
	{ "ah",
	  MACS "86dd" V6("0020", "33") "1104000000000001"
				       "0000000100000000"
				       "0000000000000000" UDP8,
	  PLAIN, .l3 = PK_L3_IPV6, .l4 = PK_L4_UDP, .l3_off = 14, .l4_off = 78, .payload_off = 86,
	  .end = 86, .dst_port = 9 },
	{ "atomic fragment", MACS "86dd" V6("0010", "2c") "1100000000000001" UDP8, PLAIN,
	  .l3 = PK_L3_IPV6, .l4 = PK_L4_UDP, .l3_off = 14, .l4_off = 62, .payload_off = 70,
	  .end = 70, .dst_port = 9 },
	{ "first fragment 6",
	  MACS "86dd" V6("0010", "2c") "1100000100000001"
				       "c000"
				       "0009"
				       "0400"
				       "0000",
	  PLAIN, .l3 = PK_L3_IPV6, .l4 = PK_L4_UDP, .l3_off = 14, .l4_off = 62, .payload_off = 70,
	  .end = 70, .dst_port = 9, .fragment = true },
	{ "later fragment 6",
	  MACS "86dd" V6("0010", "2c") "0000000800000001"
				       "ffffffffffffffff",
	  .result = PK_PARSE_OK, .l3 = PK_L3_IPV6, .l3_off = 14, .l4_off = 62, .payload_off = 62,
	  .end = 70, .fragment = true },
	{ "no next header", MACS "86dd" V6("0000", "3b"), PLAIN, .l3 = PK_L3_IPV6, .l3_off = 14,
	  .l4_off = 54, .payload_off = 54, .end = 54 },
};

/* What is wrong with each is its result's name. */
static const struct {
	const char *hex;
	enum pk_parse_result result;
} broken[] = {
	{ "0200", PK_PARSE_ETH_SHORT },
	{ MACS "8100"
	       "0001",
	  PK_PARSE_VLAN_SHORT },
	{ MACS "8100"
	       "0001"
	       "8100"
	       "000108",
	  PK_PARSE_VLAN_SHORT },
	{ MACS "0806"
	       "0001"
	       "0800",
	  PK_PARSE_ARP_SHORT },
	{ MACS "0806"
	       "0006"
	       "0800"
	       "0604"
	       "0001"
	       "020000000001"
	       "c6120001"
	       "000000000000"
	       "c6120002",
	  PK_PARSE_ARP_BAD },
	{ MACS "0800"
	       "4500",
	  PK_PARSE_IPV4_SHORT },
	{ MACS "0800"
	       "46000018"
	       "00010000"
	       "40110000"
	       "c6120001"
	       "c6120002",
	  PK_PARSE_IPV4_SHORT },
	{ MACS "0800"
	       "65000014"
	       "00010000"
	       "40110000"
	       "c6120001"
	       "c6120002",
	  PK_PARSE_IPV4_VERSION },
	{ MACS "0800"
	       "44000014"
	       "00010000"
	       "40110000"
	       "c6120001"
	       "c6120002",
	  PK_PARSE_IPV4_HEADER_LEN },
	{ MACS "0800" V4("0013", "0000", "11") UDP8, PK_PARSE_IPV4_TOTAL_LEN },
	{ MACS "0800" V4("001d", "0000", "11") UDP8, PK_PARSE_IPV4_TOTAL_LEN },
	{ MACS "86dd"
	       "6000",
	  PK_PARSE_IPV6_SHORT },
	{ MACS "86dd"
	       "40" V6("0000", "3b"),
	  PK_PARSE_IPV6_VERSION },
	{ MACS "86dd" V6("0009", "11") UDP8, PK_PARSE_IPV6_PAYLOAD_LEN },
	{ MACS "86dd" V6("0008", "00") "1101000000000000", PK_PARSE_IPV6_EXT_SHORT },
	{ MACS "86dd" V6("0004", "2b") "11000000", PK_PARSE_IPV6_EXT_SHORT },
	{ MACS "0800" V4("001b", "0000", "11") UDP8, PK_PARSE_L4_SHORT },
	{ MACS "0800" V4("001c", "0000", "06") UDP8, PK_PARSE_L4_SHORT },
	{ MACS "0800" V4("001b", "0000", "01") ECHO, PK_PARSE_L4_SHORT },
	{ MACS "0800" V4("001c", "0000", "11") "c000"
					       "0009"
					       "0007"
					       "0000",
	  PK_PARSE_UDP_LEN },
	{ MACS "0800" V4("001c", "0000", "11") "c000"
					       "0009"
					       "0009"
					       "0000",
	  PK_PARSE_UDP_LEN },
	{ MACS "0800" V4("0028", "0000", "06") "c000"
					       "0050"
					       "00000001"
					       "00000002"
					       "4010"
					       "ffff"
					       "0000"
					       "0000",
	  PK_PARSE_TCP_HEADER_LEN },
	{ MACS "0800" V4("0028", "0000", "06") "c000"
					       "0050"
					       "00000001"
					       "00000002"
					       "6010"
					       "ffff"
					       "0000"
					       "0000",
	  PK_PARSE_TCP_HEADER_LEN },
};

/* Into memory of exactly that size, so that the sanitizer sees a byte too far. */
static uint8_t *from_hex(const char *hex, uint32_t *bytes)
{
	uint8_t *data;

	*bytes = (uint32_t)strlen(hex) / 2;
	data = malloc(*bytes);
	for (uint32_t i = 0; i < *bytes; i++) {
		unsigned byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		data[i] = (uint8_t)byte;
	}
	return data;
}

static void test_samples(void **state)
{
	for (unsigned i = 0; i < HO_ARRAY_LEN(samples); i++) {
		const struct sample *s = &samples[i];
		enum pk_parse_result result;
		struct pk_headers h;
		uint32_t bytes;
		uint8_t *data = from_hex(s->hex, &bytes);

		result = pk_parse(data, bytes, bytes, &h);
		if (result != s->result)
			fail_msg("%s: %s", s->name, pk_parse_name(result));
		if (h.l3 != s->l3 || h.l4 != s->l4 || h.vlans != s->vlans ||
		    h.l3_off != s->l3_off || h.l4_off != s->l4_off ||
		    h.payload_off != s->payload_off || h.end != s->end ||
		    h.dst_port != s->dst_port || h.fragment != s->fragment || h.first != s->first)
			fail_msg("%s: l3 %u l4 %u vlans %u at %u %u %u to %u, port %u, %d %d",
				 s->name, h.l3, h.l4, h.vlans, h.l3_off, h.l4_off, h.payload_off,
				 h.end, h.dst_port, h.fragment, h.first);
		free(data);
	}
}

static void test_tags(void **state)
{
	uint32_t bytes;
	uint8_t *data = from_hex(MACS "88a8"
				      "e064"
				      "8100"
				      "1fff"
				      "88b5",
				 &bytes);
	struct pk_headers h;

	assert_int_equal(pk_parse(data, bytes, bytes, &h), PK_PARSE_OK);
	assert_int_equal(h.tpid[0], 0x88a8);
	assert_int_equal(h.vlan[0], 0xe064);
	assert_int_equal(h.tpid[1], 0x8100);
	assert_int_equal(h.vlan[1], 0x1fff);
	assert_int_equal(h.ethertype, 0x88b5);
	free(data);
}

static void test_broken(void **state)
{
	bool seen[PK_PARSE_COUNT] = {
		[PK_PARSE_OK] = true, [PK_PARSE_SPLIT] = true, [PK_PARSE_IPV6_EXT_MANY] = true
	};

	for (unsigned i = 0; i < HO_ARRAY_LEN(broken); i++) {
		enum pk_parse_result result;
		struct pk_headers h;
		uint32_t bytes;
		uint8_t *data = from_hex(broken[i].hex, &bytes);

		result = pk_parse(data, bytes, bytes, &h);
		if (result != broken[i].result)
			fail_msg("%s: %s instead of %s", broken[i].hex, pk_parse_name(result),
				 pk_parse_name(broken[i].result));
		seen[result] = true;
		free(data);
	}
	for (unsigned i = 0; i < PK_PARSE_COUNT; i++) {
		if (!seen[i])
			fail_msg("no frame for %s", pk_parse_name(i));
		assert_true(strlen(pk_parse_meaning(i)) > 10);
	}
}

/* Cut at each byte it is an error or (with the cut inside padding or payload) sound; the same
 * headers are found when the rest is in another buffer, or it is said so. */
static void test_truncated(void **state)
{
	for (unsigned i = 0; i < HO_ARRAY_LEN(samples); i++) {
		struct pk_headers whole, h;
		uint32_t bytes;
		uint8_t *data = from_hex(samples[i].hex, &bytes);

		assert_int_equal(pk_parse(data, bytes, bytes, &whole), PK_PARSE_OK);
		for (uint32_t have = 0; have < bytes; have++) {
			uint8_t *part = malloc(have ? have : 1);
			enum pk_parse_result result;

			memcpy(part, data, have);
			result = pk_parse(part, have, have, &h);
			if (whole.l3 && have < whole.end)
				assert_int_not_equal(result, PK_PARSE_OK);
			if (result)
				assert_int_not_equal(result, PK_PARSE_SPLIT);
			result = pk_parse(part, have, bytes, &h);
			if (have >= whole.payload_off) {
				assert_int_equal(result, PK_PARSE_OK);
				assert_memory_equal(&h, &whole, sizeof(h));
			} else {
				assert_int_equal(result, PK_PARSE_SPLIT);
			}
			free(part);
		}
		free(data);
	}
}

static void test_endless_extensions(void **state)
{
	static uint8_t frame[14 + 40 + 8 * 100];
	struct pk_headers h;

	pk_store16(frame + 12, PK_ETH_IPV6);
	frame[14] = 0x60;
	pk_store16(frame + 18, 8 * 100);
	frame[20] = PK_IP_DSTOPTS;
	for (unsigned i = 0; i < 100; i++)
		frame[54 + 8 * i] = PK_IP_DSTOPTS;
	assert_int_equal(pk_parse(frame, sizeof(frame), sizeof(frame), &h), PK_PARSE_IPV6_EXT_MANY);
}

/* Random damage to sound frames: whatever comes out, offsets are in order and inside. */
static void test_damage(void **state)
{
	srand(1);
	for (unsigned round = 0; round < 200000; round++) {
		struct pk_headers h;
		uint32_t bytes;
		uint8_t *data =
			from_hex(samples[(unsigned)rand() % HO_ARRAY_LEN(samples)].hex, &bytes);

		for (int edits = rand() % 4; edits >= 0; edits--)
			data[(uint32_t)rand() % bytes] = (uint8_t)(rand() >> 5);
		if (pk_parse(data, bytes, bytes, &h) == PK_PARSE_OK) {
			assert_true(h.l3_off <= h.payload_off && h.payload_off <= h.end &&
				    h.end <= bytes);
			assert_true(!h.l4_off ||
				    (h.l3_off < h.l4_off && h.l4_off <= h.payload_off));
		}
		free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_endless_extensions),
		cmocka_unit_test(test_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
