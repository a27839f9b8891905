// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/csum.h"
#include "packet/parse.h"
#include "traffic/rr.h"
#include "traffic/rxwait.h"

int tr_rr_server_create(const struct tr_rr_server_config *config, struct tr_rr_server **out,
			struct ho_err *err)
{
	struct tr_rr_server *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return ho_err_set(err, -ENOMEM, "out of memory for a server");
	s->config = *config;
	rc = tr_stop_init(&s->stop, config->rt, err);
	if (rc < 0) {
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void tr_rr_server_destroy(struct tr_rr_server *server)
{
	if (!server)
		return;
	tr_stop_fini(&server->stop);
	free(server);
}

static void exchange(uint8_t *a, uint8_t *b, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) {
		uint8_t keep = a[i];

		a[i] = b[i];
		b[i] = keep;
	}
}

int tr_rr_make_reply(const struct pk_arena *arena, struct pk_slot *slot, uint32_t bytes,
		     const struct tr_stamp *stamp)
{
	uint8_t *data = pk_data(arena, slot), *l3, *l4;
	struct pk_headers h;
	uint32_t udp_bytes, room = arena->stride_bytes - slot->off;
	uint64_t sum;
	bool had_csum;

	if (pk_parse(data, slot->len, slot->len, &h) != PK_PARSE_OK || h.l4 != PK_L4_UDP ||
	    h.fragment)
		return -EBADMSG;
	bytes = bytes ? bytes : slot->len;
	if (bytes > room || bytes > UINT16_MAX || bytes < h.payload_off + TR_STAMP_BYTES)
		return -EMSGSIZE;
	if (bytes > slot->len)
		memset(data + slot->len, 0, bytes - slot->len);
	l3 = data + h.l3_off;
	l4 = data + h.l4_off;
	udp_bytes = bytes - h.l4_off;
	had_csum = l4[6] || l4[7];
	exchange(data, data + 6, 6);
	exchange(l4, l4 + 2, 2);
	pk_store16(l4 + 4, (uint16_t)udp_bytes);
	tr_stamp_write(data + bytes - TR_STAMP_BYTES, stamp->stream | TR_RR_REPLY, stamp->sequence,
		       stamp->time_ns);
	if (h.l3 == PK_L3_IPV4) {
		struct pk_ipv4 *ip = (struct pk_ipv4 *)l3;
		uint32_t header = (l3[0] & 0xfu) * 4;
		uint16_t csum;

		exchange(l3 + 12, l3 + 16, 4);
		pk_store16(l3 + 2, (uint16_t)(bytes - h.l3_off));
		memset(l3 + 10, 0, 2);
		csum = pk_csum_finish(pk_csum(l3, header));
		memcpy(l3 + 10, &csum, 2);
		sum = pk_csum_pseudo4(ip->src, ip->dst, PK_IP_UDP, (uint16_t)udp_bytes);
	} else {
		exchange(l3 + 8, l3 + 24, 16);
		pk_store16(l3 + 4, (uint16_t)(bytes - h.l3_off - PK_IPV6_BYTES));
		sum = pk_csum_pseudo6(l3 + 8, l3 + 24, PK_IP_UDP, udp_bytes);
	}
	memset(l4 + 6, 0, 2);
	if (had_csum) {
		uint16_t csum = pk_csum_finish_udp(sum + pk_csum(l4, udp_bytes));

		memcpy(l4 + 6, &csum, 2);
	}
	slot->len = (uint16_t)bytes;
	slot->flags &= PK_VLAN;
	return 0;
}

/* One request more: is it still to be answered? */
static bool wanted(struct tr_rr_server *s)
{
	return !s->config.count ||
	       __atomic_fetch_add(s->config.shared_count, 1, __ATOMIC_RELAXED) < s->config.count;
}

/* Turns the requests among n slots into replies; the others are freed. Returns the replies. */
static unsigned answer(struct tr_rr_server *s, struct pk_slot *slots, unsigned n)
{
	const struct pk_arena *arena = s->config.rxq->arena;
	unsigned replies = 0, others = 0, refused = 0;

	for (unsigned i = 0; i < n; i++)
		ho_prefetchw(pk_data(arena, &slots[i]));
	for (unsigned i = 0, used; i < n; i += used) {
		struct tr_stamp stamp;

		used = pk_frame_slots(slots + i, n - i);
		if (used > 1 || slots[i].len < TR_STAMP_BYTES ||
		    !tr_stamp_read(pk_data(arena, &slots[i]) + slots[i].len - TR_STAMP_BYTES,
				   &stamp) ||
		    (stamp.stream & TR_RR_REPLY)) {
			pk_free_slots(s->config.cache, slots + i, used);
			others++;
			continue;
		}
		if (ho_unlikely(!wanted(s))) {
			pk_free_slots(s->config.cache, slots + i, 1);
			ho_ctr_add(&s->unwanted, 1);
			continue;
		}
		ho_ctr_add(&s->requests, 1);
		if (tr_rr_make_reply(arena, &slots[i], s->config.reply_bytes, &stamp) < 0) {
			pk_free_slots(s->config.cache, slots + i, 1);
			refused++;
			continue;
		}
		slots[replies++] = slots[i];
	}
	ho_ctr_add(&s->refused, refused);
	ho_ctr_add(&s->others, others);
	rt_spend(s->config.rt, RT_COST_RECV_FRAME, n);
	rt_spend(s->config.rt, RT_COST_GEN_FRAME, replies);
	return replies;
}

/* Sends the replies; waits while the ring is full. */
static void send_all(struct tr_rr_server *s, struct pk_slot *slots, unsigned n)
{
	unsigned at = 0;

	while (at < n) {
		unsigned sent = port_tx(s->config.txq, slots + at, n - at);

		at += sent;
		ho_ctr_add(&s->replies, sent);
		rt_spend(s->config.rt, RT_COST_TX_FRAME, sent);
		if (at == n)
			break;
		if (tr_stop_asked(&s->stop)) {
			port_tx_discard(s->config.txq, slots + at, n - at, PORT_DROP_TX_RING_FULL);
			ho_ctr_add(&s->replies, n - at);
			break;
		}
		if (port_reap(s->config.txq) == 0)
			rt_relax(s->config.rt);
	}
}

void tr_rr_server_run(void *arg)
{
	struct tr_rr_server *s = arg;
	struct rt *rt = s->config.rt;
	struct pk_slot slots[PK_BURST];
	uint64_t idle_since = 0;

	for (;;) {
		unsigned n = port_rx(s->config.rxq, slots, PK_BURST);
		uint64_t now;

		rt_spend(rt, RT_COST_POLL, 1);
		if (n) {
			send_all(s, slots, answer(s, slots, n));
			idle_since = 0;
			if (tr_stop_asked(&s->stop))
				break;
			continue;
		}
		port_reap(s->config.txq);
		if (tr_stop_asked(&s->stop) || tr_rx_ended(&s->config.rxq, 1))
			break;
		now = rt_now_ns(rt);
		idle_since = idle_since ? idle_since : now;
		if (!s->config.block && now - idle_since < TR_RX_SPIN_NS)
			rt_relax_until(rt, idle_since + TR_RX_SPIN_NS);
		else
			tr_rx_wait(&s->stop, &s->config.rxq, 1, RT_FOREVER);
	}
	__atomic_store_n(&s->done, true, __ATOMIC_RELEASE);
	if (s->config.done_event)
		rt_event_signal(rt, s->config.done_event);
}
