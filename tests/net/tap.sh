#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Ports tap: against the kernel's stack, packet sockets and iperf3.
#
#   namespace C: frames to the packet           namespaces A and B: two stacks, one wire
#   +---------------------------+               A: t0 --- tap:t0 = patch = tap:t1 --- t1 :B
#   | packet:t0 -- t0 -- tap:t0 |
#   +---------------------------+
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
holdoff=${HOLDOFF:-$top/build/holdoff}
peer=$(dirname "$holdoff")/tests/net/port_peer
# shellcheck source=tests/net/shared.bash
. "$top/tests/net/shared.bash"
needs_root
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
[ -x "$peer" ] || skip "no $peer"
needs iperf3 setpriv nstat tcpdump
A=hofta$$ B=hoftb$$ C=hoftc$$
fail() { echo "tap: $*" >&2; cat "$tmp"/*.out >&2; exit 1; }
inC() { ip netns exec $C "$@"; }
value() { local v; v=$(grep -o "\b$1=[^ ]*" "$2" | tail -n 1); echo "${v#*=}" | grep . || echo 0; }
# start NAMESPACE NAME ARGS...: port_peer in the background, output in NAME.out, pid in $pid.
start() {
	local ns=$1 out=$tmp/$2.out
	shift 2
	: >"$out"
	ip netns exec "$ns" timeout 300 "$peer" "$@" >"$out" 2>&1 &
	pid=$!
	until_true 60 grep -q ready "$out" || fail "does not start: $*"
}
# Options of rx: it does not take a sender that comes to a halt for one that has ended.
patient=wait_for_end=yes
# end_rx: all was sent; it ends when nothing more comes.
end_rx() {
	pkill -USR1 -P $rx
	wait $rx
}

add_namespaces $A $B $C || skip "cannot make namespaces"
filter="udp port 9"

# sum FILE WORD...: of the drops with these prefixes.
sum() {
	local total=0 word file=$1
	shift
	for word in $(grep -o '\b[rt]x_[a-z_]*=[0-9]*' "$file"); do
		case " $* " in *" ${word%%=*} "*) continue ;; esac
		total=$((total + ${word#*=}))
	done
	echo $total
}

# balanced N WHAT [WORD]: N offered in tx.out = received in rx.out + drops, but for the receiver's
# WORD, which the sender counts as well.
balanced() {
	local drops=$(($(sum "$tmp/tx.out") + $(sum "$tmp/rx.out" "${3:-}")))
	[ "$(value accepted "$tmp/tx.out")" = "$1" ] || fail "$2: not all of $1 accepted"
	[ $(($(value frames "$tmp/rx.out") + drops)) = "$1" ] ||
		fail "$2: $1 offered, $(value frames "$tmp/rx.out") received, $drops dropped"
	[ "$(value bad_csum "$tmp/rx.out")" = 0 ] || fail "$2: wrong checksums"
	[ "$(value frames "$tmp/rx.out")" -gt $(($1 / 200)) ] || fail "$2: hardly a frame arrived"
}

# 1. Conservation, from the stack's side to us and back, one queue and three, these with a system call
# for each frame.
for offload in yes no; do
	for queues in 1 3; do
		count=$((queues == 1 ? 1000000 : 200000))
		uring=$([ $queues = 1 ] && echo yes || echo no)
		start $C rx rx tap:t0,offload=$offload,uring=$uring count=$count queues=$queues $patient
		rx=$pid
		inC timeout 300 "$peer" tx packet:t0 count=$count >"$tmp/tx.out" 2>&1 || fail "tx"
		end_rx || fail "rx: exit status $?"
		# What the interface could not give to a full tap is told to the sender too (tx_kernel).
		balanced $count "to tap, offload=$offload, $queues queues" rx_socket
	done
	# The sender makes the interface; it must last until the receiver is there: slowly at first.
	inC ip tuntap add t0 mode tap
	inC ip link set t0 up
	start $C rx rx packet:t0 count=1000000 filter="$filter" $patient
	rx=$pid
	inC ip link set t0 down
	inC timeout 300 "$peer" tx tap:t0,offload=$offload count=1000000 csum=partial >"$tmp/tx.out" 2>&1 ||
		fail "tx"
	end_rx || fail "rx: exit status $?"
	balanced 1000000 "from tap, offload=$offload"
	inC ip link del t0
done
echo "1 million frames each way: balanced"

# 2. The settings: made, set up, gone at the end; one that was there is as it was.
start $C rx rx tap:t0,mtu=4000,mac=02:00:00:00:07:08 count=1
inC ip link show t0 >"$tmp/link.out"
grep -q 'mtu 4000' "$tmp/link.out" || fail "the MTU is not set"
grep -q '02:00:00:00:07:08' "$tmp/link.out" || fail "the address is not set"
grep -q '<.*\bUP\b' "$tmp/link.out" || fail "it is not up"
kill $pid; wait $pid || fail "rx: exit status $?"
inC ip link show t0 >/dev/null 2>&1 && fail "the interface stays behind"
start $C rx rx tap:t0 count=1
kill -9 "$(pgrep -P $pid)"; wait $pid 2>/dev/null
gone() { ! inC ip link show t0 >/dev/null 2>&1; }
until_true 60 gone || fail "the interface stays behind after kill -9"
inC ip tuntap add t0 mode tap multi_queue
inC ip link set t0 address 02:00:00:00:01:01 mtu 1400
for queues in 1 2; do
	start $C rx rx tap:t0,mtu=3000,mac=02:00:00:00:07:08 count=1 queues=$queues
	inC ip link show t0 | grep -q 'mtu 3000' || fail "the MTU is not set"
	kill $pid; wait $pid || fail "rx: exit status $?"
	inC ip link show t0 >"$tmp/link.out" 2>&1 || fail "a persistent interface was removed"
	grep -q 'mtu 1400' "$tmp/link.out" || fail "the MTU is not put back"
	grep -q '02:00:00:00:01:01' "$tmp/link.out" || fail "the address is not put back"
	grep -q '<.*\bUP\b' "$tmp/link.out" && fail "it is left up"
done
inC ip link del t0
start $C rx rx tap:t0,persist count=1
kill $pid; wait $pid || fail "rx: exit status $?"
inC ip link show t0 >/dev/null 2>&1 || fail "persist=yes is not kept"
inC ip link del t0
echo "settings: made, restored"

# 3. What must be refused, and how.
says() {
	local want=$1
	shift
	inC "$@" >"$tmp/err.out" 2>&1 && fail "'$*' works"
	grep -qF -- "$want" "$tmp/err.out" || fail "'$*' does not say '$want'"
}
for queues in 1 2; do
	start $C rx rx tap:t0 count=1 queues=$queues
	says "another program has the interface's queues" "$peer" rx tap:t0
	says "another program has the interface's queues" "$peer" rx tap:t0 queues=2
	inC ip link set t0 down
	[ $queues = 2 ] || says "another program has the interface's queues" "$peer" rx tap:t0
	kill $pid; wait $pid || fail "rx: exit status $?"
done
inC ip link add v0 type veth peer name v1
says "exists but is not a tap" "$peer" rx tap:v0
says "exists but is not a tap with several queues" "$peer" rx tap:v0 queues=2
says "at most 15 letters" "$peer" rx tap:abcdefghijklmnopq
says "at most 64" "$peer" rx tap:t0 queues=65
says "too large" "$peer" rx tap:t0,mtu=70000
says "six hexadecimal numbers" "$peer" rx tap:t0,mac=02:00:00:00:01
says "is a group address" "$peer" rx tap:t0,mac=03:00:00:00:00:01
says "setcap" setpriv --bounding-set=-net_admin --inh-caps=-net_admin "$peer" rx tap:t0
inC ip link show t0 >/dev/null 2>&1 && fail "a refused port left an interface"
echo "refusals: clear"

# 4. Down and up in the middle; removed under us.
start $C tx tx tap:t0 count=100000000 gap=200000
inC ip link set t0 down
# Whatever a busy machine makes of it: the sender has had a CPU for 50 ms, some hundred bursts.
until_true 60 has_run $pid $(($(cpu_ms $pid) + 50)) || fail "the sender does not run"
before=$(statistic $C t0 rx_packets)
inC ip link set t0 up
until_true 60 more_than $C t0 rx_packets $((before + 1000)) || fail "it does not go on"
kill $pid
wait $pid || fail "down and up: exit status $?"
[ "$(value tx_link_down "$tmp/tx.out")" -gt 0 ] || fail "no tx_link_down"
[ $(($(value tx_link_down "$tmp/tx.out") + $(value tx "$tmp/tx.out"))) = "$(value accepted "$tmp/tx.out")" ] ||
	fail "down and up: not balanced"
start $C rx rx tap:t0 count=1000
inC ip link set t0 down
inC ip link set t0 up
until_true 60 has_carrier $C t0 || fail "the tap has no carrier"
inC "$peer" tx packet:t0 count=1000 gap=1000000 >"$tmp/tx.out" 2>&1
wait $pid || fail "nothing received after down and up: exit status $?"
start $C rx rx tap:t0 count=1000
inC ip link del t0
wait $pid && fail "the removed interface is no failure"
grep -q "late_error=tap:t0: the interface was removed" "$tmp/rx.out" ||
	fail "nothing is said about the removed interface"
echo "down, up, removed: named"

# 5. Two stacks joined by two taps: ping, and TCP with and without offloads.
for offload in yes no; do
	start $C rx patch tap:t0,offload=$offload tap:t1,offload=$offload
	patch=$pid
	for end in "t0 $A 1" "t1 $B 2"; do
		# shellcheck disable=SC2086
		set -- $end
		ip -n $C link set "$1" netns "$2"
		ip -n "$2" addr add 10.1.0.$3/24 dev "$1"
		ip -n "$2" link set "$1" up
	done
	ip netns exec $A ping -q -c 5 -i 0.05 -W 20 -s 1400 10.1.0.2 >"$tmp/ping.out" 2>&1 ||
		fail "ping does not pass, offload=$offload"
	ip netns exec $A ping -q -c 5 -i 0.05 -W 20 -s 9000 10.1.0.2 >"$tmp/ping.out" 2>&1 ||
		fail "fragments do not pass, offload=$offload"
	ip netns exec $B tcpdump -i t1 -nn -s 128 -w "$tmp/tcp.pcap" tcp 2>"$tmp/tcpdump.out" &
	dump=$!
	until_true 60 grep -q 'listening on' "$tmp/tcpdump.out" || fail "tcpdump does not listen"
	ip netns exec $B iperf3 -s -1 >"$tmp/server.out" 2>&1 &
	server=$!
	listening() { ip netns exec $B ss -Hltn | grep -q ':5201'; }
	until_true 60 listening || fail "iperf3 does not listen"
	ip netns exec $A timeout 100 iperf3 -c 10.1.0.2 -t 2 >"$tmp/iperf.out" 2>&1 ||
		fail "iperf3 fails, offload=$offload"
	wait $server
	kill $dump
	wait $dump
	errors=$(ip netns exec $B nstat -asz | awk '/InCsumErrors/ { n += $2 } END { print n }')
	[ "$errors" = 0 ] || fail "$errors wrong checksums, offload=$offload"
	longest=$(tcpdump -nn -r "$tmp/tcp.pcap" 2>/dev/null | sed -n 's/.*length \([0-9]*\)$/\1/p' |
		sort -n | tail -n 1)
	if [ $offload = yes ]; then
		# What does not fit into the MTU can have come as one with the offload only; how much larger it
		# is depends on the rate.
		[ "${longest:-0}" -gt 1500 ] || fail "no large segments: the longest has $longest bytes"
	fi
	kill $patch; wait $patch || fail "patch: exit status $?"
	a=$(grep 'port=tap:t0' "$tmp/rx.out") b=$(grep 'port=tap:t1' "$tmp/rx.out")
	echo "$a" >"$tmp/a.out"; echo "$b" >"$tmp/b.out"
	[ "$(value rx "$tmp/a.out")" = "$(value accepted "$tmp/b.out")" ] || fail "patch loses frames"
	[ "$(value rx "$tmp/b.out")" = "$(value accepted "$tmp/a.out")" ] || fail "patch loses frames"
	sed -n 's/.*Bytes *\([0-9.]* [GM]bits\/sec\).*receiver/offload='$offload': \1/p' "$tmp/iperf.out"
done
echo "two stacks: joined"
