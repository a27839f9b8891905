// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/bpf.h"

#define MAC_BYTES 12 /* both addresses */
#define TAG_BYTES 4

struct tr_filter {
	struct bpf_program program;
};

int tr_filter_create(const char *expression, struct tr_filter **out, struct ho_err *err)
{
	struct tr_filter *filter = calloc(1, sizeof(*filter));
	int rc;

	if (!filter)
		return ho_err_set(err, -ENOMEM, "out of memory for the filter");
	rc = port_bpf_compile(expression, &filter->program, err);
	if (rc < 0) {
		free(filter);
		return rc;
	}
	*out = filter;
	return 0;
}

void tr_filter_destroy(struct tr_filter *filter)
{
	if (!filter)
		return;
	pcap_freecode(&filter->program);
	free(filter);
}

void tr_vlan_into_frame(const struct pk_arena *arena, struct pk_slot *slot)
{
	uint8_t *data = pk_data(arena, slot);

	if (slot->off < TAG_BYTES || slot->len < MAC_BYTES)
		return;
	memmove(data - TAG_BYTES, data, MAC_BYTES);
	data += MAC_BYTES - TAG_BYTES;
	data[0] = 0x81; /* IEEE 802.1Q's type */
	data[1] = 0x00;
	data[2] = (uint8_t)(slot->vlan >> 8);
	data[3] = (uint8_t)slot->vlan;
	slot->off -= TAG_BYTES;
	slot->len += TAG_BYTES;
	slot->flags &= (uint16_t)~PK_VLAN;
}

bool tr_filter_match(const struct tr_filter *filter, const struct pk_arena *arena,
		     struct pk_slot *slot, uint32_t bytes)
{
	if (slot->flags & PK_VLAN) {
		tr_vlan_into_frame(arena, slot);
		bytes += TAG_BYTES;
	}
	return port_bpf_match(&filter->program, pk_data(arena, slot), bytes, slot->len);
}
