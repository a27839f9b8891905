// SPDX-License-Identifier: BSD-2-Clause
/* The virtio header: flags to header and back, tags, tunnels, and what must be refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "packet/csum.h"
#include "port/vnet.h"

#define TCP_OFFSET  34
#define FRAME_BYTES 3000

static struct pk_arena *arena;
static struct pk_cache *cache;

static int setup(void **state)
{
	struct pk_arena_config config = { .buffers = 64, .no_huge = true };

	return pk_arena_create(&config, &arena, NULL) || pk_cache_create(arena, &cache, NULL);
}

static int teardown(void **state)
{
	int missing = (int)pk_arena_missing(arena);

	pk_cache_destroy(cache);
	pk_arena_destroy(arena);
	return missing;
}

/* A TCP segment over IPv4 of two slots, with the pseudo-header sum in its checksum field. */
static unsigned make_tcp(struct pk_slot *slots)
{
	uint8_t f[FRAME_BYTES] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45 };
	uint32_t src, dst;
	uint16_t csum;

	pk_store16(f + 16, FRAME_BYTES - 14);
	f[22] = 64;
	f[23] = PK_IP_TCP;
	memcpy(f + 26, "\x0a\0\0\1\x0a\0\0\2", 8);
	csum = pk_csum_finish(pk_csum(f + 14, 20));
	memcpy(f + 24, &csum, 2);
	f[TCP_OFFSET + 12] = 5 << 4;
	memcpy(&src, f + 26, 4);
	memcpy(&dst, f + 30, 4);
	csum = pk_csum_fold(pk_csum_pseudo4(src, dst, PK_IP_TCP, FRAME_BYTES - TCP_OFFSET));
	memcpy(f + TCP_OFFSET + 16, &csum, 2);
	return pk_frame_from_bytes(cache, f, sizeof(f), slots, PK_FRAME_MAX_SLOTS);
}

static void test_round_trip(void **state)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	unsigned n = make_tcp(slots);
	struct virtio_net_hdr h;

	assert_int_equal(n, 2);
	assert_int_equal(port_vnet_from_slots(arena, slots, n, &h), 0);
	assert_int_equal(h.flags, 0);
	slots[0].flags |= PK_CSUM_PARTIAL;
	assert_int_equal(port_vnet_from_slots(arena, slots, n, &h), 0);
	assert_int_equal(h.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(h.gso_type, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(h.csum_start, TCP_OFFSET);
	assert_int_equal(h.csum_offset, 16);
	slots[0].flags |= PK_TSO | PK_VLAN;
	slots[0].meta = 1448;
	pk_data(arena, slots)[TCP_OFFSET + 13] = 0x80; /* CWR */
	assert_int_equal(port_vnet_from_slots(arena, slots, n, &h), 0);
	assert_int_equal(h.gso_type, VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN);
	assert_int_equal(h.gso_size, 1448);
	assert_int_equal(h.hdr_len, TCP_OFFSET + 20 + 4);
	assert_int_equal(h.csum_start, TCP_OFFSET + 4);
	/* And back, where the tag is not in between. */
	slots[0].flags = PK_MORE;
	slots[0].meta = 0;
	h.csum_start = TCP_OFFSET;
	assert_int_equal(port_vnet_to_slots(&h, arena, slots, n), 0);
	assert_int_equal(slots[0].flags, PK_MORE | PK_CSUM_PARTIAL | PK_TSO);
	assert_int_equal(slots[0].meta, 1448);
	slots[0].flags = PK_MORE;
	h = (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_DATA_VALID };
	assert_int_equal(port_vnet_to_slots(&h, arena, slots, n), 0);
	assert_int_equal(slots[0].flags, PK_MORE | PK_CSUM_OK);
	pk_free_slots(cache, slots, n);
}

/* A checksum somewhere else than in the outermost header is completed at once. */
static void test_inner_checksum(void **state)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	unsigned n = make_tcp(slots);
	struct virtio_net_hdr h = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
				    .csum_start = 101,
				    .csum_offset = 6 };
	uint8_t *data = pk_data(arena, slots);
	uint16_t csum;

	memset(data + 60, 0x5a, 200);
	assert_int_equal(port_vnet_to_slots(&h, arena, slots, n), 0);
	assert_int_equal(slots[0].flags & (PK_CSUM_PARTIAL | PK_CSUM_OK), 0);
	memcpy(&csum, data + 107, 2);
	assert_int_not_equal(csum, 0x5a5a);
	/* With the field filled in, the sum over all is that of the pseudo header's complement. */
	memset(data + 107, 0x5a, 2);
	assert_int_equal(
		csum, pk_csum_finish_udp(pk_csum_slots(arena, slots, n, 101, FRAME_BYTES - 101)));
	pk_free_slots(cache, slots, n);
}

static void test_refusals(void **state)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	unsigned n = make_tcp(slots);
	struct virtio_net_hdr h = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM };

	/* Outside of the frame, or of its first buffer. */
	h.csum_start = FRAME_BYTES;
	assert_int_equal(port_vnet_to_slots(&h, arena, slots, n), -EBADMSG);
	h.csum_start = 100;
	h.csum_offset = 60000;
	assert_int_equal(port_vnet_to_slots(&h, arena, slots, n), -EBADMSG);
	/* Segmentation without a checksum, without a size, of what is not TCP. */
	h = (struct virtio_net_hdr){ .gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 1448 };
	assert_int_equal(port_vnet_to_slots(&h, arena, slots, n), -EBADMSG);
	h.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	h.csum_start = TCP_OFFSET;
	h.csum_offset = 16;
	h.gso_size = 0;
	assert_int_equal(port_vnet_to_slots(&h, arena, slots, n), -EBADMSG);
	slots[0].flags = PK_MORE | PK_TSO | PK_CSUM_PARTIAL;
	slots[0].meta = 0;
	assert_int_equal(port_vnet_from_slots(arena, slots, n, &h), -EBADMSG);
	slots[0].meta = 70000;
	assert_int_equal(port_vnet_from_slots(arena, slots, n, &h), -EBADMSG);
	slots[0].meta = 1448;
	pk_data(arena, slots)[12] = 0x12; /* no IP */
	assert_int_equal(port_vnet_from_slots(arena, slots, n, &h), -EBADMSG);
	pk_free_slots(cache, slots, n);
}

static void test_tag(void **state)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	unsigned n = make_tcp(slots);
	uint8_t head[16];

	slots[0].vlan = 0x6123;
	port_vlan_head(arena, slots, head);
	assert_memory_equal(head, "\2\0\0\0\0\2\2\0\0\0\0\1\x81\0\x61\x23", 16);
	pk_free_slots(cache, slots, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_inner_checksum),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_tag),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
