// SPDX-License-Identifier: BSD-2-Clause
/* The balance of a run, its JSON words, medians. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "measure/run_report.h"

static void test_balance(void **state)
{
	static const struct {
		uint64_t offered, delivered, ring_full, external;
		int64_t missing;
		uint64_t of_others;
	} cases[] = {
		{ 0, 0, 0, 0, 0, 0 },
		{ 100, 100, 0, 0, 0, 0 },
		{ 100, 90, 10, 0, 0, 0 },
		{ 100, 90, 9, 0, 1, 0 },
		{ 100, 90, 11, 0, -1, 0 },
		/* The kernel counted 7 drops; 5 of ours are missing. */
		{ 100, 95, 0, 7, 0, 2 },
		{ 100, 95, 2, 7, 0, 4 },
		{ 100, 95, 0, 4, 1, 0 },
		/* More than the external drops can excuse. */
		{ 100, 95, 6, 3, -1, 3 },
		{ 100, 101, 0, 0, -1, 0 },
		{ UINT64_MAX / 2, UINT64_MAX / 2 - 5, 5, 0, 0, 0 },
	};

	for (size_t i = 0; i < HO_ARRAY_LEN(cases); i++) {
		struct ms_report r;
		struct ho_err err = { 0 };

		ms_report_init(&r, "gen");
		r.offered = cases[i].offered;
		r.delivered = cases[i].delivered;
		r.drops[PORT_DROP_TX_RING_FULL] = cases[i].ring_full;
		r.drops[PORT_DROP_RX_LINK] = cases[i].external;
		r.external = cases[i].external;
		if (ms_report_missing(&r) != cases[i].missing ||
		    ms_report_drops_of_others(&r) != cases[i].of_others)
			fail_msg("case %zu: %lld missing, %llu of others", i,
				 (long long)ms_report_missing(&r),
				 (unsigned long long)ms_report_drops_of_others(&r));
		assert_int_equal(ms_report_check(&r, &err) == 0, cases[i].missing == 0);
		if (cases[i].missing)
			assert_non_null(strstr(err.text, cases[i].missing > 0 ? "1 are missing"
									      : "1 too many"));
		ms_report_fini(&r);
	}
}

static void test_buffers(void **state)
{
	struct ho_err err = { 0 };
	struct ms_report r;

	ms_report_init(&r, "recv");
	r.buffers_missing = 3;
	assert_int_equal(ms_report_check(&r, &err), -EBADE);
	assert_non_null(strstr(err.text, "3 packet buffers"));
	ms_report_fini(&r);
}

static void test_medians(void **state)
{
	struct ms_rates rates = { 0 };

	assert_true(ms_rates_median(&rates) == 0);
	for (int i = 200; i > 0; i--)
		ms_rates_add(&rates, i);
	assert_true(ms_rates_median(&rates) == 100.5);
	ms_rates_add(&rates, 1000);
	assert_true(ms_rates_median(&rates) == 101);
	free(rates.rate);
}

static json_int_t get(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_msg("no integer '%s'", key);
	return json_integer_value(value);
}

static void test_json(void **state)
{
	struct port port = { .name = "mem:a" }, other = { .name = "mem:a" };
	struct port_txq txq = { .port = &port,
				.index = 2,
				.ctr = { .packets = 1000, .bytes = 60000, .ring_full = 4 } };
	struct port_rxq rxq = { .port = &other, .ctr = { .packets = 990, .bytes = 59400 } };
	struct ms_report r;
	json_t *object, *ports, *counters;

	rxq.ctr.drops[PORT_DROP_RX_RING_FULL] = 10;
	ms_report_init(&r, "gen");
	ms_report_add_tx(&r, &txq);
	ms_report_add_rx(&r, &rxq);
	r.offered = 1000;
	r.delivered = 990;
	r.seconds = r.tx_seconds = 2;
	r.rx_seconds = 1;
	r.stamps = true;
	ho_hist_add(&r.latency_ns, 1234);
	object = ms_report_json(&r);
	assert_int_equal(get(object, "schema"), 1);
	assert_string_equal(json_string_value(json_object_get(object, "command")), "gen");
	assert_true(json_real_value(json_object_get(object, "seconds")) == 2);
	assert_int_equal(get(object, "offered"), 1000);
	assert_int_equal(get(object, "delivered"), 990);
	assert_int_equal(get(json_object_get(object, "drops"), "rx_ring_full"), 10);
	assert_int_equal(json_object_size(json_object_get(object, "drops")), 1);
	assert_true(json_is_true(json_object_get(object, "balanced")));
	assert_int_equal(get(object, "tx_pps"), 500);
	/* 60 bytes and 4 of FCS. */
	assert_int_equal(get(object, "tx_bps"), 500 * 64 * 8);
	assert_int_equal(get(object, "rx_pps"), 990);
	assert_int_equal(get(object, "tx_ring_full_events"), 4);
	assert_int_equal(get(json_object_get(object, "latency"), "max_ns"), 1234);
	/* Two ends of a wire have one name, and are two ports. */
	ports = json_object_get(object, "ports");
	assert_int_equal(json_array_size(ports), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(ports, 0), "name")),
			    "mem:a");
	counters = json_object_get(json_array_get(ports, 0), "counters");
	assert_int_equal(get(counters, "tx_queue_2_packets"), 1000);
	assert_int_equal(get(counters, "tx_queue_2_ring_full_events"), 4);
	counters = json_object_get(json_array_get(ports, 1), "counters");
	assert_int_equal(get(counters, "rx_queue_0_bytes"), 59400);
	assert_int_equal(get(counters, "rx_queue_0_ring_full"), 10);
	json_decref(object);
	r.delivered = 989;
	object = ms_report_json(&r);
	assert_true(json_is_false(json_object_get(object, "balanced")));
	assert_int_equal(get(object, "missing"), 1);
	json_decref(object);
	ms_report_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_buffers),
		cmocka_unit_test(test_medians),
		cmocka_unit_test(test_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
