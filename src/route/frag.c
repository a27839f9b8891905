// SPDX-License-Identifier: BSD-2-Clause
/* IPv4 fragmentation (RFC 791 section 3.2, RFC 1812 section 4.2.2.7). */
#include <string.h>

#include "packet/csum.h"
#include "route/worker.h"

enum { OPT_END = 0, OPT_NOP = 1, OPT_COPIED = 0x80 };

/* The options that every fragment gets, padded to whole words: those with the copied bit. The
 * options have been checked. Returns bytes. */
static unsigned copied_options(const uint8_t *ip, uint8_t *out)
{
	unsigned header = (ip[0] & 15u) * 4, n = 0;

	for (unsigned i = PK_IPV4_BYTES; i < header && ip[i] != OPT_END;) {
		unsigned len = ip[i] == OPT_NOP || i + 1 >= header ? 1 : ip[i + 1];

		if (!len || i + len > header)
			break;
		if (ip[i] & OPT_COPIED) {
			memcpy(out + n, ip + i, len);
			n += len;
		}
		i += len;
	}
	while (n % 4)
		out[n++] = OPT_END;
	return n;
}

static void finish_header(uint8_t *ip, unsigned header, unsigned payload, unsigned frag)
{
	uint16_t csum;

	ip[0] = (uint8_t)(0x40 | header / 4);
	pk_store16(ip + 2, (uint16_t)(header + payload));
	pk_store16(ip + 6, (uint16_t)frag);
	memset(ip + 10, 0, 2);
	csum = pk_csum_finish(pk_csum(ip, header));
	memcpy(ip + 10, &csum, 2);
}

/* One fragment: header at out (with room for the payload behind it), payload from `data`. */
static bool send_one(struct ro_worker *w, const struct ro_nh *nh, const uint8_t *bytes,
		     uint32_t len)
{
	struct pk_slot slots[PK_FRAME_MAX_SLOTS];
	struct ro_pkt p = { .slot = slots, .family = RO_IPV4, .ip_bytes = len };

	p.n = pk_frame_from_bytes(w->cache, bytes, len, slots, PK_FRAME_MAX_SLOTS);
	if (!p.n)
		return false;
	p.l2 = p.ip = pk_data(w->arena, &slots[0]);
	p.have = slots[0].len;
	ro_put(w, &p, nh); /* fresh buffers have room in front */
	ho_ctr_add(&w->ctr.fragments, 1);
	return true;
}

void ro_fragment(struct ro_worker *w, struct ro_pkt *p, const struct ro_nh *nh, uint32_t mtu)
{
	uint32_t l2_bytes = (uint32_t)(p->ip - p->l2), done = 0, all, header;
	uint8_t options[PK_IPV4_MAX_BYTES], *ip;
	/* Fragments are built in front of their payload, in the scratch frame: a header's worth of
	 * it has been sent before. The first one is where it is. */
	uint8_t saved[PK_IPV4_MAX_BYTES];
	unsigned field, copied, more_after;

	if (!w->txq[nh->port]) {
		ro_drop(w, p, RO_DROP_INTERFACE_DOWN);
		return;
	}
	if (p->slot[0].flags & PK_CSUM_PARTIAL && pk_csum_complete(w->arena, p->slot, p->n) < 0) {
		ro_drop(w, p, RO_DROP_LOCAL_BAD);
		return;
	}
	pk_frame_to_bytes(w->arena, p->slot, p->n, w->scratch, sizeof(w->scratch));
	ip = w->scratch + l2_bytes;
	header = (ip[0] & 15u) * 4;
	all = p->ip_bytes - header;
	field = pk_load16(ip + 6);
	more_after = field & PK_IPV4_MF;
	memcpy(saved, ip, PK_IPV4_BYTES);
	copied = copied_options(ip, options);
	while (done < all) {
		uint32_t room = (mtu - header) & ~7u, len = HO_MIN(room, all - done);
		unsigned offset = (field & PK_IPV4_FRAG_OFFSET) + done / 8;
		uint8_t *at = w->scratch + l2_bytes + p->ip_bytes - all + done - header;

		if (done) {
			memcpy(at, saved, PK_IPV4_BYTES);
			memcpy(at + PK_IPV4_BYTES, options, copied);
		}
		finish_header(at, header, len,
			      offset | (done + len < all || more_after ? PK_IPV4_MF : 0));
		if (!send_one(w, nh, at, header + len)) {
			ro_drop(w, p, RO_DROP_NO_BUFFER);
			return;
		}
		done += len;
		header = PK_IPV4_BYTES + copied;
	}
	pk_free_slots(w->cache, p->slot, p->n);
	ho_ctr_add(&w->ctr.sent, 1);
	ho_ctr_add(&w->ctr.fragmented, 1);
}
