#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# holdoff forward xdp:...: path-MTU discovery through an MTU step, and TCP for 10 s without a stall,
# with the hosts' transmit offloads as they come.
. "$(dirname "$0")/forward_kernel.lib"
needs ping iperf3
topology
# The step: the subnet of C carries 1400 bytes. At first both ends of it know.
ipn R link set rc mtu 1400
ipn C link set eth0 mtu 1400
start_router
in_ns C iperf3 -s -D >/dev/null
in_ns B iperf3 -s -D >/dev/null
until_true 60 in_ns C sh -c 'ss -tln | grep -q 5201' || fail "iperf3 does not start"

# Too big and not to be fragmented: the router says how much fits.
in_ns A ping -M do -s 1472 -c 2 -W 20 10.3.0.2 >"$tmp/ping" 2>&1
grep -qi "From 10.1.0.1 .*Frag needed.*mtu = 1400\|mtu.*1400" "$tmp/ping" ||
	fail "fragmentation needed is not said: $(cat "$tmp/ping")"
in_ns A ping -M do -s 1452 -c 2 -W 20 fd03::2 >"$tmp/ping" 2>&1
grep -qi "From fd01::1 .*mtu=1400\|mtu.*1400" "$tmp/ping" || fail "packet too big: $(cat "$tmp/ping")"
# What may be fragmented is.
# (Two fragments of each: of what waits for a neighbour that is not known yet the router keeps three.)
until_true 60 answers A 10.3.0.2 || fail "C is not reached"
ipn A route flush cache
ping_all A "$tmp/ping" 3 -M dont -s 1472 -i 0.2 10.3.0.2 || fail "fragments: $(cat "$tmp/ping")"
ok "an MTU step is said, or fragmented over"

# stream SECONDS HOST OPTIONS: TCP from A; every interval of a second moves data. After 200 ms without a
# CPU (TCP's least time to wait for an answer) what it sent may have been lost, and the waits that
# follow double: then an empty second says nothing about the router.
stream() {
	local n waited
	waits "$router" >"$tmp/waits"
	in_ns A iperf3 -J -i 1 -t "$1" -c "${@:2}" >"$tmp/iperf" 2>&1
	waited=$(waited_ms "$tmp/waits" "$router")
	n=$(jq '[.intervals[]?.sum.bytes] | length' "$tmp/iperf")
	if [ "${n:-0}" -ge "$1" ] && jq -e '[.intervals[].sum.bytes] | min > 0' "$tmp/iperf" >/dev/null; then
		ok "TCP to ${*:2}: $(jq '.end.sum_received.bits_per_second / 1e6 | floor' "$tmp/iperf") Mbit/s in $1 s, least second $(jq '[.intervals[].sum.bits_per_second] | min / 1e6 | floor' "$tmp/iperf") Mbit/s"
	elif [ "$waited" -ge 200 ] && jq -e '.end.sum_received.bytes > 0' "$tmp/iperf" >/dev/null; then
		echo "skipped: TCP to ${*:2}: the router or the kernel had no CPU for $waited ms"
	else
		fail "TCP to ${*:2}: $(jq -c '.error, [.intervals[]?.sum.bytes]' "$tmp/iperf")"
	fi
}
# C takes more than the step lets through, and tells A so: A's full-sized segments meet the step, and
# discovery must find it, or nothing gets through.
ipn C link set eth0 mtu 1500
ipn A route flush cache
ipn A -6 route flush cache
stream 3 10.3.0.2
stream 3 fd03::2
ipn A route get 10.3.0.2 | grep -q "mtu 1400" || fail "A has not learned the path's MTU"
ipn A -6 route get fd03::2 | grep -q "mtu 1400" || fail "A has not learned the IPv6 path's MTU"
stream 10 10.2.0.2
stream 10 fd02::2
stream 4 10.2.0.2 -R
finish
