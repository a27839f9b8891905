// SPDX-License-Identifier: BSD-2-Clause
#include "measure/run_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "traffic/pacer.h"

void ms_report_init(struct ms_report *report, const char *command)
{
	memset(report, 0, sizeof(*report));
	report->command = command;
	ho_hist_init(&report->latency_ns);
}

void ms_report_fini(struct ms_report *report)
{
	free(report->tx_rates.rate);
	free(report->rx_rates.rate);
	report->tx_rates = report->rx_rates = (struct ms_rates){ 0 };
	ms_counters_fini(&report->counters);
	tr_track_sum_fini(&report->tracks);
}

static void add_drops(struct ms_report *report, const uint64_t *drops)
{
	for (unsigned i = 0; i < PORT_DROP_COUNT; i++)
		report->drops[i] += ho_ctr_read(&drops[i]);
}

void ms_report_add_tx(struct ms_report *report, const struct port_txq *q)
{
	report->tx = true;
	report->tx_packets += ho_ctr_read(&q->ctr.packets);
	report->tx_bytes += ho_ctr_read(&q->ctr.bytes);
	report->ring_full += ho_ctr_read(&q->ctr.ring_full);
	report->kicks += ho_ctr_read(&q->ctr.kicks);
	add_drops(report, q->ctr.drops);
	ms_counters_tx(&report->counters, q);
}

void ms_report_add_rx(struct ms_report *report, const struct port_rxq *q)
{
	report->rx = true;
	report->rx_packets += ho_ctr_read(&q->ctr.packets);
	report->rx_bytes += ho_ctr_read(&q->ctr.bytes);
	report->wakeups += ho_ctr_read(&q->ctr.wakeups);
	add_drops(report, q->ctr.drops);
	ms_counters_rx(&report->counters, q);
}

uint64_t ms_report_add_external(struct ms_report *report, struct port *port, bool rx, bool tx)
{
	uint64_t drops[PORT_DROP_COUNT] = { 0 }, sum;

	if (port->ops->external_drops)
		port->ops->external_drops(port, drops);
	for (unsigned i = 0; i < PORT_DROP_COUNT; i++) {
		bool is_rx = port_drop_name((enum port_drop)i)[0] == 'r';

		if (is_rx ? !rx : !tx)
			drops[i] = 0;
	}
	add_drops(report, drops);
	ms_counters_port(&report->counters, port, drops);
	sum = port_drops_sum(drops);
	report->external += sum;
	return sum;
}

void ms_rates_add(struct ms_rates *rates, double rate)
{
	if (rates->n == rates->room) {
		size_t room = rates->room ? 2 * rates->room : 64;
		double *grown = realloc(rates->rate, room * sizeof(*grown));

		/* A second less in the median is no reason to end a run. */
		if (!grown)
			return;
		rates->rate = grown;
		rates->room = room;
	}
	rates->rate[rates->n++] = rate;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double ms_rates_median(struct ms_rates *rates)
{
	if (!rates->n)
		return 0;
	qsort(rates->rate, rates->n, sizeof(rates->rate[0]), by_value);
	if (rates->n % 2)
		return rates->rate[rates->n / 2];
	return (rates->rate[rates->n / 2 - 1] + rates->rate[rates->n / 2]) / 2;
}

/* offered - delivered - all drops. */
static int64_t difference(const struct ms_report *report)
{
	return (int64_t)(report->offered - report->delivered - port_drops_sum(report->drops));
}

uint64_t ms_report_drops_of_others(const struct ms_report *report)
{
	int64_t missing = difference(report);

	return missing < 0 ? HO_MIN((uint64_t)-missing, report->external) : 0;
}

int64_t ms_report_missing(const struct ms_report *report)
{
	return difference(report) + (int64_t)ms_report_drops_of_others(report);
}

int ms_report_check(const struct ms_report *report, struct ho_err *err)
{
	int64_t missing = ms_report_missing(report);
	uint64_t drops = port_drops_sum(report->drops) - ms_report_drops_of_others(report);

	if (missing)
		return ho_err_set(
			err, -EBADE,
			"the packets do not balance: %" PRIu64 " offered, %" PRIu64
			" delivered, %" PRIu64 " dropped for a known reason: %" PRId64 " %s",
			report->offered, report->delivered, drops, missing > 0 ? missing : -missing,
			missing > 0 ? "are missing" : "too many");
	if (report->buffers_missing)
		return ho_err_set(err, -EBADE, "%u packet buffers did not come back",
				  report->buffers_missing);
	return 0;
}

/* Layer 2: with the FCS, as --rate counts. */
static double bits(uint64_t packets, uint64_t bytes)
{
	return 8.0 * (double)(bytes + TR_FCS_BYTES * packets);
}

static double per_second(double n, double seconds)
{
	return seconds > 0 ? n / seconds : 0;
}

/* Of a run shorter than a second: its mean. */
static double median(struct ms_rates *rates, uint64_t packets, double seconds)
{
	return rates->n ? ms_rates_median(rates) : per_second((double)packets, seconds);
}

static void set_int(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, json_integer((json_int_t)llround(value)));
}

static void set_count(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *json_of_streams(const struct tr_track_sum *tracks)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < tracks->n_each; i++) {
		const struct tr_stream_sum *s = &tracks->each[i];
		json_t *one = json_object();

		set_count(one, "stream", s->id);
		set_count(one, "received", s->received);
		set_count(one, "lost", s->lost);
		set_count(one, "reordered", s->reordered);
		set_count(one, "duplicates", s->duplicates);
		json_array_append_new(list, one);
	}
	return list;
}

json_t *ms_report_json(struct ms_report *report)
{
	json_t *object = ho_json_begin(report->command), *drops = json_object();

	for (unsigned i = 0; i < PORT_DROP_COUNT; i++) {
		if (report->drops[i])
			set_count(drops, port_drop_name((enum port_drop)i), report->drops[i]);
	}
	json_object_set_new(object, "seconds", json_real(round(report->seconds * 1e6) / 1e6));
	set_count(object, "offered", report->offered);
	set_count(object, "delivered", report->delivered);
	json_object_set_new(object, "drops", drops);
	set_count(object, "drops_of_others", ms_report_drops_of_others(report));
	json_object_set_new(object, "balanced", json_boolean(ms_report_check(report, NULL) == 0));
	json_object_set_new(object, "missing", json_integer(ms_report_missing(report)));
	if (report->tx) {
		set_count(object, "tx_packets", report->tx_packets);
		set_count(object, "tx_bytes", report->tx_bytes);
		set_int(object, "tx_pps",
			per_second((double)report->tx_packets, report->tx_seconds));
		set_int(object, "tx_pps_median",
			median(&report->tx_rates, report->tx_packets, report->tx_seconds));
		set_int(object, "tx_bps",
			per_second(bits(report->tx_packets, report->tx_bytes), report->tx_seconds));
		set_count(object, "tx_ring_full_events", report->ring_full);
		set_count(object, "tx_kicks", report->kicks);
	}
	if (report->rx) {
		set_count(object, "rx_packets", report->rx_packets);
		set_count(object, "rx_bytes", report->rx_bytes);
		set_int(object, "rx_pps",
			per_second((double)report->rx_packets, report->rx_seconds));
		set_int(object, "rx_pps_median",
			median(&report->rx_rates, report->rx_packets, report->rx_seconds));
		set_int(object, "rx_bps",
			per_second(bits(report->rx_packets, report->rx_bytes), report->rx_seconds));
		set_count(object, "rx_wakeups", report->wakeups);
	}
	if (report->stamps) {
		set_count(object, "streams", report->tracks.streams);
		set_count(object, "lost", report->tracks.lost);
		set_count(object, "reordered", report->tracks.reordered);
		set_count(object, "duplicates", report->tracks.duplicates);
		set_count(object, "unstamped", report->unstamped);
		json_object_set_new(object, "per_stream", json_of_streams(&report->tracks));
		json_object_set_new(object, "latency", ho_json_hist_ns(&report->latency_ns));
	}
	/* Shared with the report, which gives up its own hold on it later. */
	json_object_set(object, "ports", report->counters.list);
	return object;
}

static void print_rate(FILE *out, const char *name, uint64_t packets, uint64_t bytes,
		       double seconds, struct ms_rates *rates)
{
	char count[HO_UNIT_TEXT], pps[HO_UNIT_TEXT], bps[HO_UNIT_TEXT], median[HO_UNIT_TEXT];

	fprintf(out, "%-10s %s packets in %.3f s: %spps, %sbit/s", name,
		ho_format_count(packets, count), seconds,
		ho_format_si(per_second((double)packets, seconds), pps),
		ho_format_si(per_second(bits(packets, bytes), seconds), bps));
	if (rates->n)
		fprintf(out, "; median of %zu s %spps", rates->n,
			ho_format_si(ms_rates_median(rates), median));
	fputc('\n', out);
}

static void print_latency(FILE *out, const struct ho_hist *hist)
{
	static const struct {
		const char *name;
		double q;
	} column[] = { { "p50", 0.5 },
		       { "p90", 0.9 },
		       { "p99", 0.99 },
		       { "p99.9", 0.999 },
		       { "p99.99", 0.9999 } };
	char text[HO_UNIT_TEXT];

	fprintf(out, "%-10s min %s", "latency", ho_format_ns((double)hist->min, text));
	fprintf(out, ", mean %s", ho_format_ns(ho_hist_mean(hist), text));
	for (size_t i = 0; i < HO_ARRAY_LEN(column); i++)
		fprintf(out, ", %s %s", column[i].name,
			ho_format_ns((double)ho_hist_quantile(hist, column[i].q), text));
	fprintf(out, ", max %s\n", ho_format_ns((double)hist->max, text));
}

static void print_streams(const struct tr_track_sum *tracks, FILE *out)
{
	char a[HO_UNIT_TEXT], b[HO_UNIT_TEXT], c[HO_UNIT_TEXT], d[HO_UNIT_TEXT];

	for (unsigned i = 0; i < tracks->n_each; i++) {
		const struct tr_stream_sum *s = &tracks->each[i];

		fprintf(out,
			"%-10s   stream %u: %s received, %s lost, %s reordered, %s duplicates\n",
			"", s->id, ho_format_count(s->received, a), ho_format_count(s->lost, b),
			ho_format_count(s->reordered, c), ho_format_count(s->duplicates, d));
	}
}

int ms_report_print(struct ms_report *report, FILE *out)
{
	char a[HO_UNIT_TEXT], b[HO_UNIT_TEXT], c[HO_UNIT_TEXT];
	uint64_t others = ms_report_drops_of_others(report);

	errno = 0;
	if (report->tx) {
		print_rate(out, "sent", report->tx_packets, report->tx_bytes, report->tx_seconds,
			   &report->tx_rates);
		if (report->ring_full)
			fprintf(out, "%-10s %s times the transmit ring was full\n", "",
				ho_format_count(report->ring_full, a));
	}
	if (report->rx)
		print_rate(out, "received", report->rx_packets, report->rx_bytes,
			   report->rx_seconds, &report->rx_rates);
	if (report->stamps && report->tracks.received)
		fprintf(out, "%-10s %u: %s lost, %s reordered, %s duplicates\n", "streams",
			report->tracks.streams, ho_format_count(report->tracks.lost, a),
			ho_format_count(report->tracks.reordered, b),
			ho_format_count(report->tracks.duplicates, c));
	if (report->stamps && report->list_counters)
		print_streams(&report->tracks, out);
	if (report->stamps && report->unstamped)
		fprintf(out, "%-10s %s received frames carry no stamp\n", "",
			ho_format_count(report->unstamped, a));
	if (report->latency_ns.count)
		print_latency(out, &report->latency_ns);
	for (unsigned i = 0; i < PORT_DROP_COUNT; i++) {
		if (report->drops[i])
			fprintf(out, "%-10s %s %s: %s\n", "dropped",
				ho_format_count(report->drops[i], a),
				port_drop_name((enum port_drop)i),
				port_drop_meaning((enum port_drop)i));
	}
	if (others)
		fprintf(out, "%-10s %s of these are not of this run: others use the interface\n",
			"", ho_format_count(others, a));
	fprintf(out, "%-10s %s offered = %s delivered + %s dropped%s\n",
		ms_report_check(report, NULL) == 0 ? "balanced" : "BROKEN",
		ho_format_count(report->offered, a), ho_format_count(report->delivered, b),
		ho_format_count(port_drops_sum(report->drops) - others, c),
		ms_report_missing(report) ? ": does not add up" : "");
	if (report->list_counters)
		ms_counters_print(&report->counters, out);
	if (fflush(out) != 0 || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
