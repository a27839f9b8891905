#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff forward xdp:...: HOLDOFF_ROUTES (100000) routes are added and removed by 'ip -batch' while
# packets flow; none of these is lost, and the router has followed when the batch is over. Then the
# router sleeps while the kernel's messages overrun its socket: it reads everything again.
. "$(dirname "$0")/forward_kernel.lib"
needs ping
topology
routes=${HOLDOFF_ROUTES:-100000}
# What the kernel takes alone, for comparison.
bare() {
	local t0=$(date +%s%N)
	ipn R -batch "$tmp/add" && ipn R -batch "$tmp/del" || fail "ip -batch"
	echo "without the router: $routes added and deleted in $((($(date +%s%N) - t0) / 1000000)) ms"
}
ipn B addr add 20.0.0.1/32 dev lo
batch() {
	awk -v n="$routes" -v op="$1" 'BEGIN {
		for (i = 0; i < n; i++)
			printf "route %s 20.%d.%d.%d/30 via 10.2.0.2\n", op, int(i / 16384), int(i / 64) % 256, i % 64 * 4
	}'
}
batch add >"$tmp/add"
batch del >"$tmp/del"
[ "${HOLDOFF_BARE:-1}" = 0 ] || bare
start_router
for to in 10.2.0.2 10.3.0.2 fd02::2; do follows A $to 3; done
in_ns A ping -n -i 0.005 -c 100000 10.3.0.2 >"$tmp/ping4" 2>&1 & p4=$!
in_ns A ping -n -i 0.005 -c 100000 fd02::2 >"$tmp/ping6" 2>&1 & p6=$!

# One of the batch's last routes leads to B; the answer comes from there.
last=20.$(((routes - 1) / 16384)).$(((routes - 1) / 64 % 256)).$(((routes - 1) % 64 * 4 + 1))
ipn B addr add "$last/32" dev lo
for round in add del add del; do
	t0=$(date +%s%N)
	ipn R -batch "$tmp/$round" || fail "ip -batch $round"
	t1=$(date +%s%N)
	known
	t2=$(date +%s%N)
	if [ $round = add ]; then until_true 60 answers A "$last"; else until_true 60 silent A "$last"; fi ||
		fail "the router has not followed: $round"
	ok "$round $routes routes: ip took $(((t1 - t0) / 1000000)) ms, the router was done $(((t2 - t1) / 1000000)) ms later"
done
kill -INT $(pgrep -P $p4) $(pgrep -P $p6) $p4 $p6 2>/dev/null
wait $p4 $p6
# Those behind the last one that was answered may be under way when it ends.
for f in 4 6; do
	read -r seen received < <(sed -n 's/.*bytes from.*icmp_seq=\([0-9]*\).*/\1/p' "$tmp/ping$f" | sort -un |
		awk '{ n++; last = $1 } END { print last + 0, n + 0 }')
	[ "$seen" -gt 100 ] && [ "$received" = "$seen" ] && ok "IPv$f: $received of $seen packets" ||
		fail "IPv$f: $received of $seen: $(tail -n 3 "$tmp/ping$f")"
done

# The router is stopped, and the routes come and go until the kernel has dropped messages for it.
dropped() {
	in_ns R awk -v pid="$router" '$3 == pid {n += $9} END {exit !(n > 0)}' /proc/net/netlink
}
ipn R route add 10.90.0.0/16 via 10.2.0.2
ipn R route add 10.91.0.0/16 via 10.2.0.2
for a in 10.90.0.1 10.91.0.1 10.92.0.1; do ipn B addr add $a/32 dev lo; done
follows A 10.91.0.1 3
kill -STOP $router
for ((i = 0; i < 20; i++)); do
	ipn R -batch "$tmp/add" || fail "ip -batch"
	dropped && break
	ipn R -batch "$tmp/del" || fail "ip -batch"
done
dropped || fail "no message was dropped"
# Those of the batch are to be there, also when the last thing that was done was to remove them.
[ $i -lt 20 ] || ipn R -batch "$tmp/add" || fail "ip -batch"
# What changes now nobody is told of.
ipn R route replace unreachable 10.90.0.0/16
ipn R route del 10.91.0.0/16
ipn R route add 10.92.0.0/16 via 10.2.0.2
kill -CONT $router
until_true 60 answers A "$last" || fail "the router has not read the routes again"
until_true 60 answers A 10.92.0.1 || fail "a new route is not used"
ping_ok A 10.92.0.1 3
denied 10.90.0.1 "Host Unreachable"
denied 10.91.0.1 "Net Unreachable"
have=$(for t in main local; do ipn R -4 route show table $t; done | wc -l)
stop_router
[ "$(value .kernel.overruns)" -ge 1 ] && [ "$(value .kernel.resyncs)" -ge 2 ] || fail "no overrun was noticed"
[ "$(value .kernel.routes4)" = "$have" ] || fail "$(value .kernel.routes4) routes, the kernel has $have"
ok "an overrun: all $have routes were read again"
finish
