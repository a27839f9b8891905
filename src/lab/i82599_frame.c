// SPDX-License-Identifier: BSD-2-Clause
/*
 * A frame from its descriptors (7.2.3): context descriptors are remembered, data is read into the
 * wire's buffer, checksums and the tag are put in, a large frame is cut into segments.
 */
#include "lab/i82599_impl.h"

static inline struct tx_desc *slot(struct tx_queue *q, uint32_t counter)
{
	return &q->cache[counter % CACHE_SLOTS];
}

static inline bool extended(const struct tx_desc *d, uint32_t type)
{
	return d->cmd & TXD_DEXT && (d->cmd >> TXD_TYPE_SHIFT & TXD_TYPE_MASK) == type;
}

static void mark_done(struct tx_queue *q, struct tx_desc *d, sim_ps at)
{
	if (at > q->last_done)
		q->last_done = at;
	d->done_at = q->last_done;
	q->c_issue++;
}

static void take_context(struct tx_queue *q, struct tx_desc *d)
{
	struct tx_context *context = &q->context[d->info >> TXD_IDX_SHIFT & 1];

	context->vlan_lengths = (uint32_t)d->addr;
	context->type = d->cmd;
	context->mss_l4len = d->info;
	mark_done(q, d, now_of(q->chip));
}

static void count_frame(struct tx_queue *q, const uint8_t *data, uint32_t bytes)
{
	struct i82599 *c = q->chip;
	uint32_t with_fcs = HO_MAX(bytes, LAB_FRAME_MIN_BYTES) + LAB_FCS_BYTES;
	uint32_t map = reg_of(c, R_TQSM + q->index / 4 * 4) >> (8 * (q->index % 4)) & 15;

	c->n.tx_frames++;
	count(c, R_GPTC, 1);
	count(c, R_TPT, 1);
	count(c, R_PTC64 + 4 * size_class(with_fcs), 1);
	if (data[0] & 1) {
		static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

		count(c, memcmp(data, broadcast, 6) ? R_MPTC : R_BPTC, 1);
	}
	c->good_tx_bytes += with_fcs;
	count(c, R_TXQ + map * QUEUE_STRIDE + TXQ_QPTC, 1);
	c->queue_tx_bytes[map] += with_fcs;
}

static uint32_t pad(const struct i82599 *c, uint8_t *data, uint32_t bytes)
{
	if (bytes >= LAB_FRAME_MIN_BYTES || !(reg_of(c, R_HLREG0) & HLREG0_TX_PAD))
		return bytes;
	memset(data + bytes, 0, LAB_FRAME_MIN_BYTES - bytes);
	return LAB_FRAME_MIN_BYTES;
}

/* Reads the data of n descriptors to `to`; NULL there only drops them. False: unmapped memory. */
static bool read_data(struct tx_queue *q, uint32_t n, uint8_t *to)
{
	struct lab_pci *pci = q->chip->chip.pci;
	bool good = to != NULL;

	while (n--) {
		struct tx_desc *d = slot(q, q->c_issue);
		uint32_t bytes = d->cmd & TXD_LENGTH;
		const uint8_t *from;

		if (!to) {
			mark_done(q, d, now_of(q->chip));
			continue;
		}
		from = lab_pci_memory(pci, d->addr, bytes, &q->data_hint);
		if (ho_likely(from))
			memcpy(to, from, bytes);
		else
			good = false;
		to += bytes;
		mark_done(q, d, lab_pci_read(pci, bytes));
	}
	return good;
}

/*
 * A frame to be segmented (7.2.4): headers and up to MSS bytes of payload, again and again. A
 * segment is complete when the descriptor that holds its last byte is.
 */
static bool segment(struct tx_queue *q, uint32_t n, uint32_t total)
{
	struct i82599 *c = q->chip;
	struct lab_wire *wire = c->chip.wire;
	const struct tx_desc *head = slot(q, q->c_issue);
	const struct tx_context *context = &q->context[head->info >> TXD_IDX_SHIFT & 1];
	uint32_t mac = context->vlan_lengths >> 9 & 0x7f, ip = context->vlan_lengths & 0x1ff;
	uint32_t l4 = context->mss_l4len >> 8 & 0xff, mss = context->mss_l4len >> 16;
	uint32_t headers = mac + ip + l4, payload = head->info >> TXD_PAYLOAD_SHIFT;
	bool tag = head->cmd & TXD_VLAN, ipv4 = context->type & TXC_IPV4;
	uint16_t vlan = (uint16_t)(context->vlan_lengths >> 16);
	uint32_t first = q->c_issue, desc = first, desc_end = 0, number = 0;

	if ((context->type >> TXC_L4_SHIFT & 3) != 1 || !mss || mac < 14 || l4 < 20 ||
	    ip < (ipv4 ? 20u : 40u) || headers + payload != total || !payload ||
	    total > TX_MAX_BYTES)
		return read_data(q, n, NULL);
	if (!read_data(q, n, c->tx_scratch))
		return false;
	for (uint32_t offset = 0; offset < payload; offset += mss, number++) {
		uint32_t part = HO_MIN(mss, payload - offset), bytes = headers + part;
		struct lab_frame *frame = lab_wire_begin(wire, c->chip.end, bytes + 4 + 60);

		while (desc - first < n && desc_end < headers + offset + part)
			desc_end += slot(q, desc++)->cmd & TXD_LENGTH;
		memcpy(frame->data, c->tx_scratch, headers);
		memcpy(frame->data + headers, c->tx_scratch + headers + offset, part);
		i82599_segment(frame->data, bytes, context, headers, number, offset, offset == 0,
			       offset + part == payload);
		if (tag)
			bytes = i82599_insert_vlan(frame->data, bytes, vlan);
		bytes = pad(c, frame->data, bytes);
		count_frame(q, frame->data, bytes);
		lab_wire_send(wire, c->chip.end, bytes, slot(q, desc - 1)->done_at);
	}
	return true;
}

/* Legacy descriptors (7.2.3.2.1) have checksum start and offset, and the tag, in themselves. */
static void legacy_checksum(const struct tx_desc *head, uint8_t *data, uint32_t bytes)
{
	uint32_t start = head->info >> 8 & 0xff, at = head->cmd >> 16 & 0xff;
	uint16_t sum;

	if (!(head->cmd & TXD_LEGACY_CHECKSUM) || at + 2 > bytes || start >= bytes)
		return;
	sum = (uint16_t)~i82599_fold(i82599_sum(data + start, bytes - start, 0));
	data[at] = (uint8_t)(sum >> 8);
	data[at + 1] = (uint8_t)sum;
}

static bool plain(struct tx_queue *q, uint32_t n, uint32_t total)
{
	struct i82599 *c = q->chip;
	struct tx_desc head = *slot(q, q->c_issue);
	const struct tx_context *context = &q->context[head.info >> TXD_IDX_SHIFT & 1];
	bool advanced = head.cmd & TXD_DEXT;
	struct lab_frame *frame = lab_wire_begin(c->chip.wire, c->chip.end, total + 4 + 60);
	uint32_t bytes = total;

	if (ho_unlikely(!read_data(q, n, frame->data)))
		return false;
	if (ho_unlikely(!(head.cmd & TXD_FCS))) {
		if (bytes <= 14 + LAB_FCS_BYTES)
			return false;
		bytes -= LAB_FCS_BYTES; /* software brought it */
	}
	if (ho_unlikely(!advanced))
		legacy_checksum(&head, frame->data, bytes);
	else if (head.info & (TXD_IP_SUM | TXD_L4_SUM) &&
		 !i82599_checksums(frame->data, bytes, context, head.info))
		return false;
	if (head.cmd & TXD_VLAN)
		bytes = i82599_insert_vlan(
			frame->data, bytes,
			(uint16_t)(advanced ? context->vlan_lengths >> 16 : head.info >> 16));
	bytes = pad(c, frame->data, bytes);
	count_frame(q, frame->data, bytes);
	lab_wire_send(c->chip.wire, c->chip.end, bytes, q->last_done);
	return true;
}

/*
 * Issues the descriptors of the queue's next frame. False if the cache does not hold all of it
 * yet. A frame that does not fit into the cache cannot be sent: it is dropped.
 */
bool i82599_tx_frame(struct tx_queue *q)
{
	struct i82599 *c = q->chip;
	uint32_t n = 0, total = 0;
	bool good, whole = false;
	struct tx_desc *head;

	while (q->c_issue != q->c_fetch && extended(slot(q, q->c_issue), TXD_TYPE_CONTEXT))
		take_context(q, slot(q, q->c_issue));
	while (q->c_issue + n != q->c_fetch && !whole) {
		const struct tx_desc *d = slot(q, q->c_issue + n++);

		total += d->cmd & TXD_LENGTH;
		whole = d->cmd & TXD_EOP;
	}
	if (!whole && n < TX_CACHE)
		return false;
	head = slot(q, q->c_issue);
	if (ho_unlikely(!whole || total < 14 ||
			(head->cmd & TXD_DEXT && !extended(head, TXD_TYPE_DATA)) ||
			(extended(head, TXD_TYPE_DATA) && !(head->cmd & TXD_TSO) &&
			 (head->info >> TXD_PAYLOAD_SHIFT != total || total > 16384))))
		good = read_data(q, n, NULL);
	else if (head->cmd & TXD_TSO && head->cmd & TXD_DEXT)
		good = segment(q, n, total);
	else
		good = plain(q, n, total);
	if (!good)
		c->n.tx_bad++;
	return true;
}
