#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Port xdp between two namespaces:
#
#    namespace A                          namespace B
#   +--------------------+               +--------------------+
#   | xdp_pump send      |               |      xdp_pump recv |
#   |   xdp:va  10.99.0.1|----- veth ----|10.99.0.2  xdp:vb   |
#   | ping, scapy        |  1, 4 queues  |      tcpdump       |
#   +--------------------+               +--------------------+
#
# HOLDOFF_FRAMES (500000) frames in each of the long runs; 10000000 is a thorough run. Needs root.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(dirname "${HOLDOFF:-build/holdoff}")
pump=$build/tests/net/xdp_pump
frames=${HOLDOFF_FRAMES:-500000}
A=hx$$a B=hx$$b
failed=0
# shellcheck source=tests/net/shared.bash
. tests/net/shared.bash
needs_root
[ -x "$pump" ] || skip "$pump is not built"
needs ethtool ping bpftool tcpdump
add_namespaces "$A" "$B" || skip "no network namespaces"

fail() {
	echo "FAILED: $case: $*"
	cat "$tmp"/send "$tmp"/recv "$tmp"/{send,recv}.err 2>/dev/null | sed 's/^/   /'
	failed=$((failed + 1))
	return 1
}

# link QUEUES MTU: a new pair of interfaces.
link() {
	veth "$A" va "$B" vb "$1" "$2"
	ip -n "$A" addr add 10.99.0.1/24 dev va
	ip -n "$B" addr add 10.99.0.2/24 dev vb
}
in_a() { ip netns exec "$A" "$@"; }
in_b() { ip netns exec "$B" "$@"; }
# The first and the last of the CPUs that we may use.
allowed=$(taskset -cp $$ | sed 's/.*: //')
first_cpu=${allowed%%[-,]*} last_cpu=${allowed##*[-,]}
# recv_start PORT [ARGS]: in the background in B; its process is $receiver.
recv_start() {
	rm -f "$tmp"/recv "$tmp"/recv.err
	ip netns exec "$B" taskset -c "$last_cpu" "$pump" recv "$@" >"$tmp/recv" 2>"$tmp/recv.err" &
	receiver=$!
	until_true 60 grep -q ready "$tmp/recv.err" || fail "the receiver does not start"
}

# send PORT ARGS...
send() {
	in_a taskset -c "$first_cpu" "$pump" send "$@" >"$tmp/send" 2>"$tmp/send.err"
}
# polled QUEUE...: how many frames the program has seen on these queues of vb.
polled() {
	local queue
	for queue in "$@"; do
		in_b ethtool -S vb | sed -n "s/^ *rx_queue_${queue}_xdp_packets: //p"
	done | awk '{ n += $1 } END { print n + 0 }'
}
# settled QUEUES FRAMES: the program has seen as many.
settled() { [ "$(polled $(seq 0 $(($1 - 1))))" -ge "$2" ]; }

# link_drops: what the two ends of the link have dropped so far.
link_drops() {
	local sum=0 name
	for name in rx_dropped tx_dropped; do
		sum=$((sum + $(statistic "$A" va $name) + $(statistic "$B" vb $name)))
	done
	echo $sum
}
# ping_beside TO N: N answers while others fill the link. What the link drops when nobody gets a CPU to
# take it from there is nothing that the port does to it.
ping_beside() {
	local dropped
	dropped=$(link_drops)
	pings "$A" "$1" "$2" "$tmp/ping" -i 0.05 || { fail "ping: $(tail -n 3 "$tmp/ping")"; return; }
	dropped=$(($(link_drops) - dropped))
	[ "$lost" -le $dropped ] || fail "ping loses $lost, the link dropped $dropped"
}

# value NAME FILE: NAME=VALUE in a file of words, 0 if it is not there.
value() { tr ' ' '\n' <"$tmp/$2" | sed -n "s/^$1=//p" | grep . || echo 0; }

# Every frame built is received or has a named drop; and those received are right and in order.
balanced() {
	local built got sent_drops recv_drops
	kill -USR1 "$receiver"
	wait "$receiver" || fail "the receiver fails" || return
	built=$(value built send) got=$(value got recv)
	sent_drops=$(value drops send) recv_drops=$(value drops recv)
	[ "$built" = $((got + sent_drops + recv_drops)) ] ||
		fail "built $built, received $got, dropped $sent_drops + $recv_drops" || return
	[ "$(value wrong recv)" = 0 ] || fail "wrong frames" || return
	[ "$(value late recv)" = 0 ] || fail "frames out of order" || return
	[ "$got" -gt $((built / 100)) ] || fail "received only $got of $built" || return
	echo "ok: $case: $built frames, $got received $(value mpps recv) Mpps, $((sent_drops + recv_drops)) named drops"
}

# Is none of $programs loaded any more?
no_prog_id() {
	local id
	for id in $programs; do ! bpftool prog show id "$id" >/dev/null 2>&1 || return; done
}
no_program() { ! in_b ip link show vb | grep -q xdp && ! in_a ip link show va | grep -q xdp; }

for queues in 1 4; do
	link $queues 1500
	for mode in copy generic; do
		case="$queues queues, $mode"
		recv_start "xdp:vb,mode=$mode" 1000
		send xdp:va "$frames" 60
		balanced
	done
	case="$queues queues, live frames"
	recv_start xdp:vb 1000
	send xdp:va,tx=live "$frames" 60
	balanced
done

case="all lengths, waiting for events, both ways of sending"
link 1 1500
for tx in socket live; do
	HOLDOFF_WAIT=1 recv_start xdp:vb 1000
	send xdp:va,tx=$tx 100000 0 1 100
	balanced
done

case="filter and ping"
recv_start "xdp:vb,keep=neighbour,filter=udp dst port 9" 3000
send xdp:va 100000 0 1 1000 &
sender=$!
ping_beside 10.99.0.2 40
wait $sender
balanced
[ "$(value rx_to_kernel_unmatched recv)" -ge 40 ] || fail "the kernel got nothing of the rest"

case="ping without a filter"
recv_start xdp:vb 2000
send xdp:va 50000 0 1 1000 &
sender=$!
ping_beside 10.99.0.2 20
wait $sender
balanced

case="IPv6 ping without a filter"
in_a sysctl -qw net.ipv6.conf.va.disable_ipv6=0
in_b sysctl -qw net.ipv6.conf.vb.disable_ipv6=0
ip -n "$A" addr add fd99::1/64 dev va nodad
ip -n "$B" addr add fd99::2/64 dev vb nodad
recv_start xdp:vb 60000
ping_beside fd99::2 20 && echo "ok: $case"
kill -TERM $receiver
wait $receiver

case="a filter that does not match"
recv_start "xdp:vb,filter=tcp" 1000
before=$(polled 0) dropped=$(link_drops)
send xdp:va 1000 60
# Seen by the program (as is a frame of the kernel's own), or dropped on the way to it.
arrived() { [ $(($(polled 0) - before + $(value drops send) + $(link_drops) - dropped)) -ge 1000 ]; }
until_true 60 arrived || fail "not all arrive"
kill -USR1 $receiver
wait $receiver || fail "the receiver fails"
filtered=$(value rx_filtered recv)
[ "$filtered" -gt 100 ] && [ "$(value got recv)" = 0 ] &&
	[ $(($(value drops send) + $(value drops recv))) = 1000 ] &&
	echo "ok: $case: all $filtered counted" || fail "not all are counted as filtered"

case="queues without a socket"
link 4 1500
recv_start "xdp:vb,queues=2" 1500
grep -q "ethtool -L vb rx 2" "$tmp/recv.err" || fail "no warning with the way out"
before=$(polled 2 3)
send xdp:va 4000 60
balanced
[ "$(value rx_no_queue recv)" = $(($(polled 2 3) - before)) ] && [ "$(value rx_no_queue recv)" -gt 100 ] ||
	fail "not all that came to them is counted"

case="jumbo frames"
link 1 9000
recv_start xdp:vb 1000
send xdp:va 100000 9000
balanced
[ "$(value bytes recv)" -gt 8000000 ] || fail "too few bytes"
case="jumbo frames without multi-buffer"
in_b "$pump" recv xdp:vb,multi-buffer=no 100 >"$tmp/recv" 2>"$tmp/recv.err" && fail "is accepted"
grep -q "MTU" "$tmp/recv.err" && echo "ok: $case: refused" || fail "does not name the MTU"

case="tcpdump"
link 1 1500
in_b timeout 100 tcpdump -U -i vb -c 200 -w "$tmp/cap" udp 2>"$tmp/dump.err" &
until_true 60 grep -q "listening on" "$tmp/dump.err" || fail "tcpdump does not start"
send xdp:va 1000 0 1 1000
until_true 60 sh -c "[ \$(tcpdump -r $tmp/cap 2>/dev/null | wc -l) = 200 ]"
n=$(tcpdump -nvvr "$tmp/cap" 2>/dev/null | grep -c '198.18.0.1.5000 > 198.18.0.2.9: \[udp sum ok\]')
[ "$n" = 200 ] && echo "ok: $case: 200 right frames" || fail "decodes $n right frames of 200"

case="two owners"
in_a ethtool -k va >"$tmp/before"
in_b ethtool -k vb >>"$tmp/before"
recv_start xdp:vb 60000
first=$receiver
in_b "$pump" recv xdp:vb 100 >"$tmp/second" 2>"$tmp/second.err" && fail "the second one starts"
grep -q "attached already" "$tmp/second.err" && echo "ok: $case: $(tail -n 1 "$tmp/second.err")" ||
	fail "unclear: $(cat "$tmp/second.err")"

case="kill -9"
in_b ip link show vb | grep -q xdp || fail "no program is there to be left behind"
in_a "$pump" send xdp:va,tx=live 1000000000 60 >"$tmp/other" 2>"$tmp/other.err" &
sender=$!
until_true 60 grep -q ready "$tmp/other.err" || fail "the sender does not start"
# Their programs' numbers.
programs=$(for pid in $first $sender; do
	cat "/proc/$(process_of $pid)"/fdinfo/* 2>/dev/null | sed -n 's/^prog_id:[ \t]*//p'
done | sort -un)
[ -n "$programs" ] || fail "no programs are known"
until_true 60 more_than "$B" vb rx_packets "$(statistic "$B" vb rx_packets)" || fail "nothing is sent"
kill -9 $first $sender $(pgrep -P $sender)
wait $first $sender 2>/dev/null
case="rebind at once after kill -9"
recv_start xdp:vb 1000
send xdp:va 50000 60
balanced
case="nothing is left"
until_true 60 no_program || fail "a program is left: $(in_b ip link show vb)"
{ in_a ethtool -k va; in_b ethtool -k vb; } | diff - "$tmp/before" >"$tmp/diff" && echo "ok: $case" ||
	fail "settings: $(cat "$tmp/diff")"
ip -n "$A" link | grep hxlive && fail "the live frames' tap is left"
until_true 60 no_prog_id || fail "bpftool shows a program"

[ $failed = 0 ] || { echo "$failed failed"; exit 1; }
echo "all passed"
