// SPDX-License-Identifier: BSD-2-Clause
/*
 * IPv4 options (RFC 791 section 3.1, RFC 1812 sections 4.2.2.1 and 5.3.13). Source routes are not
 * followed (RFC 1812 5.3.13.4 lets a router refuse them, RFC 7126 4.3 advises it). Record route
 * and time stamp are filled in. Router alert (RFC 2113) and all that is unknown passes unchanged.
 */
#include <string.h>

#include "packet/csum.h"
#include "route/worker.h"

enum {
	END = 0,
	NOP = 1,
	RECORD_ROUTE = 7,
	TIMESTAMP = 68,
	LOOSE_SOURCE = 131,
	STRICT_SOURCE = 137,
};
enum { TS_ONLY = 0, TS_ADDR = 1, TS_PRESPECIFIED = 3 };

/* Bytes of the option at o, of which `left` are there; 0 if that is not sound. */
static unsigned option_bytes(const uint8_t *o, unsigned left)
{
	if (*o == END || *o == NOP)
		return 1;
	return left >= 2 && o[1] >= 2 && o[1] <= left ? o[1] : 0;
}

/* Index of the byte at fault in a record route or time stamp, or 0. */
static unsigned pointer_fault(const uint8_t *o)
{
	unsigned len = o[1], first = o[0] == TIMESTAMP ? 5 : 4, item = 4;

	if (len < first - 1 || len < 3)
		return 1;
	if (o[2] < first)
		return 2;
	if (o[0] == TIMESTAMP && (o[3] & 15) != TS_ONLY)
		item = 8;
	/* Full, or room for a whole one (RFC 791: "some room but not enough" is an error). */
	if (o[2] <= len && o[2] - 1u + item > len)
		return 2;
	/* RFC 791: the count of those that found no room would overflow. */
	if (o[0] == TIMESTAMP && o[2] > len && o[3] >> 4 == 15)
		return 3;
	return 0;
}

enum ro_option_verdict ro_ip4_options_check(const uint8_t *ip, unsigned *pointer)
{
	unsigned header = (ip[0] & 15u) * 4, seen_record = 0;

	for (unsigned i = PK_IPV4_BYTES; i < header && ip[i] != END;) {
		unsigned len = option_bytes(ip + i, header - i), fault = 0;

		*pointer = i + 1;
		if (!len)
			return RO_OPTIONS_BAD;
		switch (ip[i]) {
		case RECORD_ROUTE:
			/* RFC 791: at most once. */
			fault = pointer_fault(ip + i);
			*pointer = i + fault;
			if (fault || seen_record++)
				return RO_OPTIONS_BAD;
			break;
		case TIMESTAMP:
			fault = pointer_fault(ip + i);
			*pointer = i + fault;
			if (fault)
				return RO_OPTIONS_BAD;
			break;
		case LOOSE_SOURCE:
		case STRICT_SOURCE:
			if (len < 3 || ip[i + 2] < 4) {
				*pointer = i + (len < 3 ? 1 : 2);
				return RO_OPTIONS_BAD;
			}
			/* Used up: the packet is where it should be, or goes on as any other. */
			if (ip[i + 2] <= len)
				return RO_OPTIONS_SOURCE_ROUTE;
			break;
		default:
			break;
		}
		i += len;
	}
	return RO_OPTIONS_OK;
}

static void stamp(uint8_t *o, const uint8_t *addr, uint32_t ms)
{
	uint8_t *at = o + o[2] - 1;
	unsigned flag = o[3] & 15;

	if (o[2] > o[1]) {
		o[3] = (uint8_t)(o[3] + 0x10);
		return;
	}
	if (flag == TS_ADDR || flag == TS_PRESPECIFIED) {
		if (!addr || (flag == TS_PRESPECIFIED && memcmp(at, addr, 4) != 0))
			return;
		memcpy(at, addr, 4);
		at += 4;
		o[2] = (uint8_t)(o[2] + 4);
	}
	/* Not of universal time: RFC 791 wants the highest bit for that. */
	pk_store32(at, ms | 0x80000000u);
	o[2] = (uint8_t)(o[2] + 4);
}

void ro_ip4_options_forward(uint8_t *ip, const uint8_t *addr, uint32_t ms)
{
	unsigned header = (ip[0] & 15u) * 4;
	uint16_t csum;

	for (unsigned i = PK_IPV4_BYTES; i < header && ip[i] != END;) {
		uint8_t *o = ip + i;

		if (*o == RECORD_ROUTE && o[2] <= o[1] && addr) {
			memcpy(o + o[2] - 1, addr, 4);
			o[2] = (uint8_t)(o[2] + 4);
		} else if (*o == TIMESTAMP) {
			stamp(o, addr, ms);
		}
		i += option_bytes(o, header - i);
	}
	memset(ip + 10, 0, 2);
	csum = pk_csum_finish(pk_csum(ip, header));
	memcpy(ip + 10, &csum, 2);
}
