#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff forward xdp:...: reachability, traceroute, what stays with the kernel, and the end.
. "$(dirname "$0")/forward_kernel.lib"
needs ping traceroute iperf3
topology
start_router
for if in ra rb rc; do has_program $if || fail "no XDP program on $if"; done

for to in 10.2.0.2 10.2.0.3 10.3.0.2 fd02::2 fd02::3 fd03::2; do follows A $to; done
follows C 10.1.0.2
follows C fd01::2
follows B fd01::2
ok "all hosts reach one another"

# To the router itself, and from it: the kernel's.
for to in 10.1.0.1 10.2.0.1 10.3.0.1 fd01::1 fd03::1; do ping_ok A $to; done
ping_ok R 10.3.0.2
ping_ok R fd02::3
ok "the host's own addresses stay with the kernel"

# hops FROM TO: the addresses that traceroute names.
# Each is waited for, whenever the next one's came.
hops() { in_ns "$1" traceroute -n -w 20,0,0 -q 1 "${@:3}" "$2" 2>&1 | awk 'NR > 1 {printf "%s ", $2}'; }
for t in "A 10.2.0.2 10.1.0.1" "B 10.1.0.2 10.2.0.1" "A fd03::2 fd01::1" "C fd01::2 fd03::1"; do
	set -- $t
	for way in "" -I; do
		got=$(hops "$1" "$2" $way)
		[ "$got" = "$3 $2 " ] || fail "traceroute $way from $1 to $2 says '$got'"
	done
done
ok "traceroute names the router, both directions, UDP and ICMP"
if command -v mtr >/dev/null; then
	got=$(in_ns A mtr -n -r -c 2 -i 0.2 10.3.0.2 2>&1 | awk '/^ *[0-9]/ {printf "%s ", $2}')
	[ "$got" = "10.1.0.1 10.3.0.2 " ] && ok "mtr" || fail "mtr says '$got'"
fi

# Nobody is there, no route is there: ICMP says so.
in_ns A ping -c 1 -W 60 10.2.0.99 >"$tmp/ping" 2>&1
grep -q "From 10.1.0.1 .*Destination Host Unreachable" "$tmp/ping" ||
	fail "no host unreachable: $(cat "$tmp/ping")"
in_ns A ping -c 1 -W 60 10.9.0.1 >"$tmp/ping" 2>&1
grep -q "From 10.1.0.1 .*Unreachable" "$tmp/ping" || fail "no unreachable: $(cat "$tmp/ping")"
in_ns A ping -c 1 -W 60 fd09::1 >"$tmp/ping" 2>&1
grep -q "From fd01::1 .*No route" "$tmp/ping" || fail "no route is not said: $(cat "$tmp/ping")"
ok "unreachable hosts and networks are answered"

# TCP both ways, with the hosts' offloads as they come: all that is sent gets through.
in_ns C iperf3 -s -D -I "$tmp/iperf.pid" >/dev/null
until_true 60 in_ns C sh -c 'ss -tln | grep -q 5201' || fail "iperf3 does not start"
for opt in "" -R -6; do
	to=10.3.0.2
	[ "$opt" = -6 ] && to=fd03::2
	in_ns A timeout 200 iperf3 -J -c $to -n 50M $opt >"$tmp/iperf" 2>&1
	# What is still under way when the sender has sent all is not counted: buffers hold some 10 MB.
	jq -e '.end.sum_sent.bytes >= 50 * 1048576 and .end.sum_received.bytes > 25 * 1048576' "$tmp/iperf" >/dev/null &&
		ok "TCP $opt: $(jq '.end.sum_received.bits_per_second / 1e6 | floor' "$tmp/iperf") Mbit/s" ||
		fail "TCP $opt: $(tail -c 300 "$tmp/iperf")"
done
stop_router
until_true 60 sh -c "! ip -n ${id}R link show ra | grep -q xdp" || fail "a program is left"

# kill -9 leaves nothing, and the next one starts at once.
start_router
follows A 10.2.0.2
kill -9 $(pgrep -P $router) $router 2>/dev/null
wait $router 2>/dev/null
until_true 60 sh -c "! ip -n ${id}R link | grep -q xdp" || fail "kill -9 leaves a program"
until_true 60 sh -c "! ip -n ${id}R link | grep -q hxlive" || fail "kill -9 leaves a tap"
start_router
follows A fd02::2
ok "kill -9 leaves nothing"
finish
