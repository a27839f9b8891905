// SPDX-License-Identifier: BSD-2-Clause
/* What became of a router's packets: a row a second like that of 'netstat -w 1', and the summary.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cmd/forward.h"
#include "port/shortcut.h"
#include "traffic/pacer.h"

/* What a receiver calls an error: frames and headers that are not sound. */
static bool is_error(enum ro_drop d)
{
	switch (d) {
	case RO_DROP_ETH_SHORT:
	case RO_DROP_IP4_SHORT:
	case RO_DROP_IP4_VERSION:
	case RO_DROP_IP4_HEADER_LEN:
	case RO_DROP_IP4_TOTAL_LEN:
	case RO_DROP_IP4_CHECKSUM:
	case RO_DROP_IP4_OPTION:
	case RO_DROP_IP6_SHORT:
	case RO_DROP_IP6_VERSION:
	case RO_DROP_IP6_PAYLOAD_LEN:
	case RO_DROP_IP6_EXT:
	case RO_DROP_ARP_BAD:
	case RO_DROP_ND_BAD:
	case RO_DROP_LOCAL_BAD:
		return true;
	default:
		return false;
	}
}

static bool is_port_error(enum port_drop d)
{
	return d == PORT_DROP_RX_MALFORMED || d == PORT_DROP_RX_TOO_LONG ||
	       d == PORT_DROP_RX_TRUNCATED || d == PORT_DROP_TX_TOO_LONG ||
	       d == PORT_DROP_TX_TOO_SHORT || d == PORT_DROP_TX_BAD_FRAME ||
	       d == PORT_DROP_TX_WRITE || d == PORT_DROP_TX_KERNEL;
}

static void add_queue(struct forward_side *s, const struct port_counters *c)
{
	s->packets += ho_ctr_read(&c->packets);
	s->bytes += ho_ctr_read(&c->bytes);
	for (unsigned d = 0; d < PORT_DROP_COUNT; d++)
		*(is_port_error((enum port_drop)d) ? &s->errors : &s->drops) +=
			ho_ctr_read(&c->drops[d]);
}

/* What passed by the router. */
static void add_shortcut(struct forward_side *in, struct forward_side *out, const struct port *port)
{
	struct port_shortcut_counts c;

	port_shortcut_read(port, &c);
	in->packets += c.in_packets;
	in->bytes += c.in_bytes;
	out->packets += c.out_packets;
	out->bytes += c.out_bytes;
}

static void take_sample(const struct forward *f, struct forward_sample *s)
{
	struct ro_counters c;

	*s = (struct forward_sample){ 0 };
	for (unsigned p = 0; p < f->ports; p++) {
		const struct port *rx = f->port[p].rx, *tx = f->port[p].tx;

		for (unsigned i = 0; rx && i < rx->n_rxq && i < f->workers; i++)
			add_queue(&s->in, &rx->rxq[i]->ctr);
		for (unsigned i = 0; tx && i < tx->n_txq && i < f->workers; i++)
			add_queue(&s->out, &tx->txq[i]->ctr);
		if (rx && rx == tx)
			add_shortcut(&s->in, &s->out, rx);
	}
	ro_router_counters(f->router, &c);
	for (unsigned d = 0; d < RO_DROP_COUNT; d++)
		*(is_error((enum ro_drop)d) ? &s->in.errors : &s->in.drops) += c.drops[d];
}

void forward_report_columns(struct forward *f)
{
	struct ho_table *t = &f->session.table;

	ho_table_column(t, "in packets", 12);
	ho_table_column(t, "in errs", 9);
	ho_table_column(t, "in drops", 9);
	ho_table_column(t, "in bytes", 13);
	ho_table_column(t, "out packets", 12);
	ho_table_column(t, "out errs", 9);
	ho_table_column(t, "out drops", 10);
	ho_table_column(t, "out bytes", 13);
}

static void cells(struct ho_table *t, const struct forward_side *now,
		  const struct forward_side *before)
{
	ho_table_cell(t, "%llu", (unsigned long long)(now->packets - before->packets));
	ho_table_cell(t, "%llu", (unsigned long long)(now->errors - before->errors));
	ho_table_cell(t, "%llu", (unsigned long long)(now->drops - before->drops));
	ho_table_cell(t, "%llu", (unsigned long long)(now->bytes - before->bytes));
}

void forward_report_row(struct forward *f)
{
	const struct forward_sample *before = &f->last;
	double seconds = cmd_session_row_seconds(&f->session);
	struct forward_sample now;

	take_sample(f, &now);
	ms_rates_add(&f->rates, (double)(now.out.packets - before->out.packets) / seconds);
	cells(&f->session.table, &now.in, &before->in);
	cells(&f->session.table, &now.out, &before->out);
	f->last = now;
	cmd_session_row(&f->session);
}

/* --- the summary ---------------------------------------------------------------------------- */

void forward_report_finish(struct forward *f)
{
	struct ms_report *r = &f->report;
	struct forward_side in = { 0 }, out = { 0 };
	uint64_t lost_after = 0;
	struct ro_counters c;

	ro_router_counters(f->router, &c);
	f->counters = c;
	f->full_turn_ticks = ro_router_full_turn_ticks(f->router);
	ro_router_check(f->router, &f->unbalanced);
	for (unsigned p = 0; p < f->ports; p++) {
		struct port *rx = f->port[p].rx, *tx = f->port[p].tx;

		for (unsigned i = 0; rx && i < rx->n_rxq && i < f->workers; i++) {
			ms_report_add_rx(r, rx->rxq[i]);
			r->offered += port_drops_sum(rx->rxq[i]->ctr.drops);
		}
		for (unsigned i = 0; tx && i < tx->n_txq && i < f->workers; i++)
			ms_report_add_tx(r, tx->txq[i]);
		if (rx)
			r->offered += ms_report_add_external(r, rx, true, false);
		if (tx)
			lost_after += ms_report_add_external(r, tx, false, true);
		if (rx && rx == tx)
			add_shortcut(&in, &out, rx);
	}
	f->shortcut_packets = in.packets;
	f->shortcut_bytes = out.bytes;
	r->rx_packets += in.packets;
	r->rx_bytes += in.bytes;
	r->tx_packets += out.packets;
	r->tx_bytes += out.bytes;
	/* Part of what was offered: nothing of the balance hangs on whose they were. */
	r->external = 0;
	/* The router's drops are named beside the ports'; what is left of what was offered must be
	 * explained by the ports. */
	r->offered +=
		r->rx_packets + c.generated + c.fragments - c.fragmented - ro_drops_sum(c.drops);
	/* What the kernel refused of that which it had taken. */
	r->delivered = r->tx_packets - HO_MIN(r->tx_packets, lost_after) + c.local;
	r->tx_seconds = r->rx_seconds = r->seconds;
}

int forward_report_check(struct forward *f, struct ho_err *err)
{
	if (f->unbalanced.code)
		return ho_err_set(err, f->unbalanced.code, "%s", f->unbalanced.text);
	return ms_report_check(&f->report, err);
}

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void publish_json(struct forward *f, const struct ro_counters *c, double cycles,
			 double cycles_full)
{
	json_t *object = ms_report_json(&f->report), *drops = json_object_get(object, "drops");

	set(object, "offered", f->report.offered + ro_drops_sum(c->drops));
	for (unsigned d = 0; d < RO_DROP_COUNT; d++) {
		if (c->drops[d])
			set(drops, ro_drop_name((enum ro_drop)d), c->drops[d]);
	}
	json_object_set_new(object, "balanced", json_boolean(forward_report_check(f, NULL) == 0));
	set(object, "received", c->received);
	set(object, "sent", c->sent);
	set(object, "local", c->local);
	set(object, "generated", c->generated);
	set(object, "fragmented", c->fragmented);
	set(object, "fragments", c->fragments);
	set(object, "held", c->held);
	set(object, "fast_path", c->fast);
	set(object, "shortcut_packets", f->shortcut_packets);
	set(object, "shortcut_bytes", f->shortcut_bytes);
	set(object, "icmp_limited", c->icmp_limited);
	set(object, "icmp_suppressed", c->icmp_suppressed);
	set(object, "workers", f->workers);
	json_object_set_new(object, "tsc_ticks_per_packet", json_real(cycles));
	if (cycles_full > 0)
		json_object_set_new(object, "tsc_ticks_per_packet_full_bursts",
				    json_real(cycles_full));
	set(object, "tsc_hz", f->tsc_hz);
	if (f->control->json)
		f->control->json(f, object);
	ho_json_print(f->session.out, object);
}

static void print_drops(const struct forward *f, const struct ro_counters *c)
{
	FILE *out = f->session.out;
	char text[HO_UNIT_TEXT];

	for (unsigned d = 0; d < RO_DROP_COUNT; d++) {
		if (c->drops[d])
			fprintf(out, "%-10s %s %s: %s\n", "dropped",
				ho_format_count(c->drops[d], text), ro_drop_name((enum ro_drop)d),
				ro_drop_meaning((enum ro_drop)d));
	}
	for (unsigned d = 0; d < PORT_DROP_COUNT; d++) {
		if (f->report.drops[d])
			fprintf(out, "%-10s %s %s: %s\n", "dropped",
				ho_format_count(f->report.drops[d], text),
				port_drop_name((enum port_drop)d),
				port_drop_meaning((enum port_drop)d));
	}
}

static void print_side(FILE *out, const char *name, uint64_t packets, uint64_t bytes,
		       double seconds)
{
	char count[HO_UNIT_TEXT], pps[HO_UNIT_TEXT], bps[HO_UNIT_TEXT];
	double bits = 8 * ((double)bytes + TR_FCS_BYTES * (double)packets);

	fprintf(out, "%-10s %s packets in %.3f s: %spps, %sbit/s\n", name,
		ho_format_count(packets, count), seconds,
		ho_format_si(seconds > 0 ? (double)packets / seconds : 0, pps),
		ho_format_si(seconds > 0 ? bits / seconds : 0, bps));
}

static void publish_text(struct forward *f, const struct ro_counters *c, double cycles,
			 double cycles_full)
{
	const struct ms_report *r = &f->report;
	FILE *out = f->session.out;
	uint64_t router = ro_drops_sum(c->drops), ports = port_drops_sum(r->drops);
	char a[HO_UNIT_TEXT], b[HO_UNIT_TEXT], d[HO_UNIT_TEXT];

	print_side(out, "received", r->rx_packets, r->rx_bytes, r->seconds);
	print_side(out, "sent", r->tx_packets, r->tx_bytes, r->seconds);
	if (f->shortcut_packets)
		fprintf(out, "%-10s %s of these, forwarded before they came to the router\n",
			"shortcut", ho_format_count(f->shortcut_packets, a));
	if (c->local || c->generated)
		fprintf(out, "%-10s %s for the router, %s made by it\n", "local",
			ho_format_count(c->local, a), ho_format_count(c->generated, b));
	if (c->fragmented)
		fprintf(out, "%-10s %s packets sent as %s\n", "fragments",
			ho_format_count(c->fragmented, a), ho_format_count(c->fragments, b));
	if (c->icmp_limited || c->icmp_suppressed)
		fprintf(out, "%-10s %s errors not sent for their rate, %s because none may be\n",
			"ICMP", ho_format_count(c->icmp_limited, a),
			ho_format_count(c->icmp_suppressed, b));
	if (f->control->print)
		f->control->print(f, out);
	print_drops(f, c);
	fprintf(out, "%-10s %s offered = %s delivered + %s dropped\n",
		forward_report_check(f, NULL) == 0 ? "balanced" : "BROKEN",
		ho_format_count(r->offered + router, a), ho_format_count(r->delivered, b),
		ho_format_count(router + ports, d));
	fprintf(out, "%-10s %.2f cycles a packet at %.3f GHz (time stamp counter), %u worker%s\n",
		"cost", cycles, (double)f->tsc_hz / 1e9, f->workers, f->workers == 1 ? "" : "s");
	if (cycles_full > 0)
		fprintf(out, "%-10s %.2f in the median of full bursts\n", "", cycles_full);
	if (r->list_counters)
		ms_counters_print(&r->counters, out);
	fflush(out);
}

void forward_report_publish(struct forward *f)
{
	const struct ro_counters *c = &f->counters;
	double cycles = c->received ? (double)c->busy_ticks / (double)c->received : 0;

	if (f->common.json)
		publish_json(f, c, cycles, f->full_turn_ticks);
	else
		publish_text(f, c, cycles, f->full_turn_ticks);
}
