/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The virtio network header (virtio 1.2, section 5.1.6) that tap and packet sockets put before a
 * frame, and what it means for a slot: PK_CSUM_PARTIAL, PK_CSUM_OK, PK_TSO.
 */
#ifndef HOLDOFF_PORT_VNET_H
#define HOLDOFF_PORT_VNET_H

#include <linux/virtio_net.h>

#include "packet/arena.h"

#define PORT_VNET_BYTES 10 /* of struct virtio_net_hdr, the form without num_buffers */
static_assert(sizeof(struct virtio_net_hdr) == PORT_VNET_BYTES, "as Linux has it by default");

/* Room for a tag, and the parts of a first slot around it: what port_vnet_iov needs beside one
 * entry a slot. */
#define PORT_VLAN_TAG_BYTES 4

/*
 * Sets the flags of a received frame of n slots. A checksum that is to be completed somewhere else
 * than in the outermost layer-4 header (inside a tunnel) is completed here, because a slot cannot
 * say where. -EBADMSG when the header does not fit the frame.
 */
int port_vnet_to_slots(const struct virtio_net_hdr *header, const struct pk_arena *arena,
		       struct pk_slot *slots, unsigned n);

/*
 * Fills the header for a frame to be sent. If it has a tag beside it (PK_VLAN), the offsets are
 * those with the tag put in. -EBADMSG when the flags ask for what the headers do not allow.
 */
int port_vnet_from_slots(const struct pk_arena *arena, const struct pk_slot *slots, unsigned n,
			 struct virtio_net_hdr *header);

/* The 16 bytes with which the frame begins once its tag is put in: both addresses and the tag. The
 * frame has at least 12 bytes in its first slot. */
void port_vlan_head(const struct pk_arena *arena, const struct pk_slot *slot, uint8_t head[16]);

#endif
