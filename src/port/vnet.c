// SPDX-License-Identifier: BSD-2-Clause
#include "port/vnet.h"

#include <errno.h>
#include <string.h>

#include "packet/csum.h"
#include "packet/parse.h"

#define TCP_FLAGS_OFFSET 13
#define TCP_CWR          0x80

/* Completes a checksum that begins at `start` and is stored `offset` behind it. */
static int complete_at(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
		       uint32_t start, uint32_t offset)
{
	uint32_t bytes = pk_frame_bytes(slots, n);
	uint16_t csum;

	if (start >= bytes || start + offset + 2 > slots[0].len)
		return -EBADMSG;
	csum = pk_csum_finish_udp(pk_csum_slots(arena, slots, n, start, bytes - start));
	memcpy(pk_data(arena, slots) + start + offset, &csum, sizeof(csum));
	return 0;
}

int port_vnet_to_slots(const struct virtio_net_hdr *header, const struct pk_arena *arena,
		       struct pk_slot *slots, unsigned n)
{
	uint8_t gso = header->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
	struct pk_headers h;

	if (header->flags & VIRTIO_NET_HDR_F_DATA_VALID)
		slots[0].flags |= PK_CSUM_OK;
	if (!(header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return gso == VIRTIO_NET_HDR_GSO_NONE ? 0 : -EBADMSG;
	if (pk_parse(pk_data(arena, slots), slots[0].len, pk_frame_bytes(slots, n), &h) !=
		    PK_PARSE_OK ||
	    pk_csum_field(&h) != (uint32_t)header->csum_start + header->csum_offset) {
		if (gso != VIRTIO_NET_HDR_GSO_NONE)
			return -EBADMSG;
		return complete_at(arena, slots, n, header->csum_start, header->csum_offset);
	}
	slots[0].flags |= PK_CSUM_PARTIAL;
	if (gso == VIRTIO_NET_HDR_GSO_NONE)
		return 0;
	if ((gso != VIRTIO_NET_HDR_GSO_TCPV4 && gso != VIRTIO_NET_HDR_GSO_TCPV6) ||
	    !header->gso_size)
		return -EBADMSG;
	slots[0].flags |= PK_TSO;
	slots[0].meta = header->gso_size;
	return 0;
}

int port_vnet_from_slots(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
			 struct virtio_net_hdr *header)
{
	uint32_t tag = slots[0].flags & PK_VLAN ? PORT_VLAN_TAG_BYTES : 0, field;
	const uint8_t *data = pk_data(arena, slots);
	struct pk_headers h;

	memset(header, 0, sizeof(*header));
	if (!(slots[0].flags & (PK_CSUM_PARTIAL | PK_TSO))) {
		if (slots[0].flags & PK_CSUM_OK)
			header->flags = VIRTIO_NET_HDR_F_DATA_VALID;
		return 0;
	}
	if (pk_parse(data, slots[0].len, pk_frame_bytes(slots, n), &h) != PK_PARSE_OK)
		return -EBADMSG;
	field = pk_csum_field(&h);
	if (!field)
		return -EBADMSG;
	header->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	header->csum_start = (uint16_t)(h.l4_off + tag);
	header->csum_offset = (uint16_t)(field - h.l4_off);
	if (!(slots[0].flags & PK_TSO))
		return 0;
	if (h.l4 != PK_L4_TCP || h.fragment || !slots[0].meta || slots[0].meta > UINT16_MAX)
		return -EBADMSG;
	header->gso_type = h.l3 == PK_L3_IPV4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
	if (data[h.l4_off + TCP_FLAGS_OFFSET] & TCP_CWR)
		header->gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	header->hdr_len = (uint16_t)(h.payload_off + tag);
	header->gso_size = (uint16_t)slots[0].meta;
	return 0;
}

void port_vlan_head(const struct pk_arena *arena, const struct pk_slot *slot, uint8_t head[16])
{
	memcpy(head, pk_data(arena, slot), 12);
	pk_store16(head + 12, PK_ETH_VLAN);
	pk_store16(head + 14, slot->vlan);
}
