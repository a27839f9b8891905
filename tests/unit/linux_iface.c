// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel says of interfaces, and giving up capabilities. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "linux/caps.h"
#include "linux/iface.h"

static void test_loopback(void **state)
{
	struct rtnl_link_stats64 stats;
	struct lx_iface lo;
	struct ho_err err = { 0 };

	if (lx_iface_get("lo", &lo, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(lo.name, "lo");
	assert_true(lo.mtu >= 1500);
	assert_true(lo.rx_queues >= 1 && lo.tx_queues >= 1);
	assert_false(lo.default_route);
	assert_int_equal(lx_iface_claim("lo", false, &lo, &err), 0);
	assert_int_equal(lx_iface_stats(lo.index, &stats, &err), 0);
	assert_int_equal(stats.rx_packets, stats.tx_packets);
	assert_int_equal(lx_iface_stats(99999999, &stats, &err), -ENODEV);
}

static void test_bad_names(void **state)
{
	static const struct {
		const char *name;
		int rc;
		const char *says;
	} cases[] = {
		{ "", -EINVAL, "1 to 15" },
		{ "sixteen-letters-", -EINVAL, "1 to 15" },
		{ "ho-none", -ENODEV, "no such interface 'ho-none'" },
		{ "a b/c", -ENODEV, "no such interface" },
	};
	struct lx_iface iface;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ho_err err = { 0 };

		assert_int_equal(lx_iface_get(cases[i].name, &iface, &err), cases[i].rc);
		if (!strstr(err.text, cases[i].says))
			fail_msg("'%s' says: %s", cases[i].name, err.text);
	}
}

/* In a child with a network namespace of its own: the exit status says what failed. */
static int try_default_route(void)
{
	struct ho_err err = { 0 };
	struct lx_iface iface;
	int rc = 0;

	if (unshare(CLONE_NEWNET) < 0)
		return 77;
	if (system("ip link add hov0 type veth peer name hov1 && ip link set hov0 up && "
		   "ip link set hov1 up && ip link add hobr type bridge && "
		   "ip link set hov1 master hobr && ip link set hobr up && "
		   "ip addr add 192.0.2.1/24 dev hobr && "
		   "ip route add default via 192.0.2.9 dev hobr") != 0)
		return 77;
	if (lx_iface_claim("hobr", false, &iface, &err) != -EBUSY ||
	    !strstr(err.text, "hobr carries the default route"))
		return 1;
	/* The bridge's port carries what the bridge carries; the other end of the veth does not. */
	if (lx_iface_claim("hov1", false, &iface, &err) != -EBUSY)
		return 2;
	/* The kernel says that a link runs some time after both ends of it are up. */
	for (unsigned i = 0; i < 6000; i++) {
		rc = lx_iface_claim("hov0", false, &iface, &err);
		if (rc != 0 || iface.running)
			break;
		usleep(10000);
	}
	if (rc != 0 || strcmp(iface.kind, "veth") || !iface.up || !iface.running)
		return 3;
	if (lx_iface_claim("hov1", true, &iface, &err) != 0)
		return 4;
	return 0;
}

static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_default_route(void **state)
{
	int rc = in_child(try_default_route);

	if (rc == 77)
		skip();
	assert_int_equal(rc, 0);
}

static int try_caps(void)
{
	struct ho_err err = { 0 };

	if (lx_caps_keep(LX_CAP(CAP_NET_RAW), &err) < 0)
		return 1;
	if (lx_caps_require("nothing", 0, &err) != 0)
		return 2;
	if (geteuid() == 0 && lx_caps_require("raw", LX_CAP(CAP_NET_RAW), &err) != 0)
		return 3;
	if (lx_caps_require("an XDP program",
			    LX_CAP(CAP_NET_RAW) | LX_CAP(CAP_NET_ADMIN) | LX_CAP(CAP_BPF),
			    &err) != -EPERM)
		return 4;
	if (!strstr(err.text, "an XDP program needs cap_net_admin,") ||
	    !strstr(err.text, "'setcap cap_net_admin,cap_net_raw,cap_bpf+ep /"))
		return 5;
	if (unshare(CLONE_NEWNET) == 0)
		return 6;
	return 0;
}

static void test_caps(void **state)
{
	assert_int_equal(in_child(try_caps), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_default_route),
		cmocka_unit_test(test_caps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
