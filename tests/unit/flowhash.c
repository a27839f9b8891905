// SPDX-License-Identifier: BSD-2-Clause
/* The flow hash: Microsoft's verification suite, and the fast form against the definition. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "packet/flowhash.h"

struct vector {
	const char *src, *dst;
	uint16_t src_port, dst_port;
	uint32_t addresses, with_ports; /* the hash of each */
};

/* Printed in the 82599 datasheet, 7.1.2.8.3, too. */
static const struct vector vectors[] = {
	{ "66.9.149.187", "161.142.100.80", 2794, 1766, 0x323e8fc2, 0x51ccc178 },
	{ "199.92.111.2", "65.69.140.83", 14230, 4739, 0xd718262a, 0xc626b0ea },
	{ "24.19.198.95", "12.22.207.184", 12898, 38024, 0xd2d0a5de, 0x5c2b394a },
	{ "38.27.205.30", "209.142.163.6", 48228, 2217, 0x82989176, 0xafc7327f },
	{ "153.39.163.191", "202.188.127.2", 44251, 1303, 0x5d1809c5, 0x10e828a2 },
	{ "3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x2cc18cd5, 0x40207d3d },
};

static unsigned make_input(const struct vector *v, uint8_t *input)
{
	int family = strchr(v->src, ':') ? AF_INET6 : AF_INET;
	unsigned bytes = family == AF_INET ? 4 : 16;

	assert_int_equal(inet_pton(family, v->src, input), 1);
	assert_int_equal(inet_pton(family, v->dst, input + bytes), 1);
	pk_store16(input + 2 * bytes, v->src_port);
	pk_store16(input + 2 * bytes + 2, v->dst_port);
	return 2 * bytes;
}

static void test_vectors(void **state)
{
	struct pk_flowhash hash;

	pk_flowhash_init(&hash, pk_flowhash_default_key);
	for (unsigned i = 0; i < HO_ARRAY_LEN(vectors); i++) {
		const struct vector *v = &vectors[i];
		uint8_t input[PK_FLOWHASH_INPUT_BYTES];
		unsigned bytes = make_input(v, input);

		assert_int_equal(pk_flowhash(&hash, input, bytes), v->addresses);
		assert_int_equal(pk_flowhash(&hash, input, bytes + 4), v->with_ports);
		assert_int_equal(pk_flowhash_bitwise(pk_flowhash_default_key, input, bytes),
				 v->addresses);
		assert_int_equal(pk_flowhash_bitwise(pk_flowhash_default_key, input, bytes + 4),
				 v->with_ports);
	}
}

static void test_random(void **state)
{
	struct pk_flowhash hash;
	uint8_t key[PK_FLOWHASH_KEY_BYTES], input[PK_FLOWHASH_INPUT_BYTES];

	srand(1);
	for (unsigned i = 0; i < 20000; i++) {
		if (i % 100 == 0) {
			for (unsigned b = 0; b < sizeof(key); b++)
				key[b] = (uint8_t)(rand() >> 5);
			pk_flowhash_init(&hash, key);
		}
		for (unsigned b = 0; b < sizeof(input); b++)
			input[b] = (uint8_t)(rand() >> 5);
		for (unsigned bytes = 0; bytes <= sizeof(input); bytes += 4)
			assert_int_equal(pk_flowhash(&hash, input, bytes),
					 pk_flowhash_bitwise(key, input, bytes));
	}
}

/* From a frame: ports only where every packet of the flow shows them. */
static void test_frame(void **state)
{
	uint8_t frame[14 + 40 + 8] = { 0 };
	struct pk_flowhash hash;
	struct pk_headers h;

	pk_flowhash_init(&hash, pk_flowhash_default_key);
	for (unsigned i = 0; i < HO_ARRAY_LEN(vectors); i++) {
		const struct vector *v = &vectors[i];
		uint8_t input[PK_FLOWHASH_INPUT_BYTES], *ip = frame + 14;
		bool v6 = make_input(v, input) == 32;
		uint32_t bytes = 14 + (v6 ? 40 : 20) + 8;

		memset(frame, 0, sizeof(frame));
		pk_store16(frame + 12, v6 ? PK_ETH_IPV6 : PK_ETH_IPV4);
		ip[0] = v6 ? 0x60 : 0x45;
		pk_store16(ip + (v6 ? 4 : 2), v6 ? 8 : 28);
		ip[v6 ? 6 : 9] = PK_IP_UDP;
		memcpy(ip + (v6 ? 8 : 12), input, v6 ? 36 : 12);
		pk_store16(frame + bytes - 4, 8);
		assert_int_equal(pk_parse(frame, bytes, bytes, &h), PK_PARSE_OK);
		assert_int_equal(pk_flowhash_frame(&hash, frame, &h), v->with_ports);
		ip[v6 ? 6 : 9] = PK_IP_ESP;
		assert_int_equal(pk_parse(frame, bytes, bytes, &h), PK_PARSE_OK);
		assert_int_equal(pk_flowhash_frame(&hash, frame, &h), v->addresses);
		if (!v6) {
			/* The first fragment has ports, but the others have not. */
			ip[9] = PK_IP_UDP;
			ip[6] = 0x20;
			assert_int_equal(pk_parse(frame, bytes, bytes, &h), PK_PARSE_OK);
			assert_int_equal(pk_flowhash_frame(&hash, frame, &h), v->addresses);
		}
	}
	memset(frame, 0, sizeof(frame));
	assert_int_equal(pk_parse(frame, 60, 60, &h), PK_PARSE_OK);
	assert_int_equal(pk_flowhash_frame(&hash, frame, &h), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
