#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# packet: on veth and tap: against trafgen and against the plainest loops over the same system
# calls (socket_peer), 60-byte frames, one queue. Takes turns within a round; the last column is the
# ratio of medians to the row that it names.
#
#   send:     we | peer --> veth --> a stack that ignores the frames; rate by the interface's counter
#   receive:  sendmmsg --> veth --> we | peer
#   tap:      we | peer write --> stack;   sendmmsg on the tap --> we | peer read
#
# STAGES: of "tx rx tap_tx tap_rx" (all). PERF=1 adds where the time of both CPUs goes (perf record on
# the CPU clock), in the first round.
set -u
cd "$(dirname "$0")/.." || exit 1
. bench/lib.sh
peer=$(dirname "$HOLDOFF")/bench/socket_peer
ours=$(dirname "$HOLDOFF")/tests/net/port_peer
bench_need ip trafgen "$HOLDOFF" "$peer" "$ours"
[ "$(id -u)" = 0 ] || { echo "skipped: needs root for network namespaces"; exit 77; }
A=hobpa$$ B=hobpb$$
clean() {
	ip netns del $A 2>/dev/null
	ip netns del $B 2>/dev/null
	bench_cleanup
}
trap clean EXIT
ip netns add $A && ip netns add $B || exit 77
for ns in $A $B; do
	ip netns exec $ns sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
done
ip -n $A link add v0 type veth peer name v1 netns $B
ip -n $A link set v0 up
ip -n $B link set v1 up
inA() { ip netns exec $A "$@"; }
inB() { ip netns exec $B "$@"; }
# An ethertype that nobody listens to.
frame='{ 0x02,0,0,0,0,0x02, 0x02,0,0,0,0,0x01, 0x88,0xb5, fill(0,46) }'
echo "$frame" >"$bench_tmp/frame.cfg"
count() { ip -n "$1" -s -j link show "$2" | sed 's/.*"'"$3"'":{"bytes":[0-9]*,"packets":\([0-9]*\).*/\1/'; }

# sending NAME NAMESPACE INTERFACE rx|tx COMMAND...: runs it and records the counter's rate over
# SECONDS_EACH, beginning half a second after the start.
sending() {
	local name=$1 ns=$2 iface=$3 way=$4 before after t0 t1 pid
	shift 4
	ip netns exec "$ns" taskset -c 0 timeout $((SECONDS_EACH + 10)) "$@" >"$bench_tmp/out" 2>&1 &
	pid=$!
	sleep 0.7
	before=$(count "$ns" "$iface" "$way") t0=$(date +%s%N)
	sleep "$SECONDS_EACH"
	after=$(count "$ns" "$iface" "$way") t1=$(date +%s%N)
	[ -n "${PERF:-}" ] && [ "$round" = 0 ] && bench_profile "$name" 0 0.4
	kill $pid 2>/dev/null
	wait $pid
	bench_record "$name" "$(((after - before) * 1000000000 / (t1 - t0)))"
}

# receiving NAME NAMESPACE IFACE COMMAND...: records the rate that the last line says (Mpps, or
# mpps=), while socket_peer sends on IFACE of A.
receiving() {
	local name=$1 ns=$2 iface=$3 pid sender
	shift 3
	ip netns exec "$ns" taskset -c 1 timeout -s TERM $((SECONDS_EACH + 1)) "$@" >"$bench_tmp/out" 2>&1 &
	pid=$!
	sleep 0.4
	inA taskset -c 0 "$peer" sendmmsg "$iface" "$SECONDS_EACH" >/dev/null &
	sender=$!
	if [ -n "${PERF:-}" ] && [ "$round" = 0 ]; then
		sleep 0.2
		bench_profile "$name" 0 0.3 &
		bench_profile "$name" 1 0.3
		wait $!
	fi
	wait $sender $pid
	bench_record "$name" "$(sed -n 's/.*mpps=\([0-9.]*\).*/\1/p; s/^\([0-9.]*\)$/\1/p' "$bench_tmp/out" |
		tail -n 1 | awk '{printf "%.0f", $1 * 1e6}')"
}

bench_machine
# Longer than is measured: a sender that ends takes its tap with it.
long=$((SECONDS_EACH + 10))
gen() { sending "$1" $A "$2" "$3" "$HOLDOFF" gen "$4" --ethertype=0x88b5 --stamp=no --duration="${long}s"; }
take() {
	receiving "$1" "$2" "$3" "$ours" rx "$4" verify=no wait=no count=1000000000 seconds=$SECONDS_EACH
}
stage_tx() {
	gen tx_mmsg v0 tx packet:v0
	gen tx_ring v0 tx packet:v0,tx=ring
	sending tx_sendmmsg $A v0 tx "$peer" sendmmsg v0 "$long"
	sending tx_trafgen $A v0 tx trafgen -i "$bench_tmp/frame.cfg" -o v0 -P 1 -q
}
stage_rx() {
	take rx_v3 $B v0 packet:v1
	take rx_v2 $B v0 packet:v1,rx=v2
	receiving rx_recvmmsg $B v0 "$peer" recvmmsg v1 "$SECONDS_EACH"
}
stage_tap_tx() {
	gen tap_tx_off t0 rx tap:t0,offload=no
	sending tap_write $A t0 rx "$peer" write t0 "$long"
	gen tap_tx t0 rx tap:t0
	sending tap_write_vnet $A t0 rx "$peer" write-vnet t0 "$long"
}
stage_tap_rx() {
	take tap_rx_off $A t0 tap:t0,offload=no
	receiving tap_read $A t0 "$peer" read t0 "$SECONDS_EACH"
	take tap_rx $A t0 tap:t0
	receiving tap_read_vnet $A t0 "$peer" read-vnet t0 "$SECONDS_EACH"
}
rows_tx() {
	bench_row "veth, send: sendmmsg loop" tx_sendmmsg
	bench_row "veth, send: trafgen, one process (to sendmmsg)" tx_trafgen tx_sendmmsg
	bench_row "veth, send: packet:, tx=mmsg (to sendmmsg)" tx_mmsg tx_sendmmsg
	bench_row "veth, send: packet:, tx=mmsg (to trafgen)" tx_mmsg tx_trafgen
	bench_row "veth, send: packet:, tx=ring (to trafgen)" tx_ring tx_trafgen
}
rows_rx() {
	bench_row "veth, receive: recvmmsg loop" rx_recvmmsg
	bench_row "veth, receive: packet:, rx=v3 (to recvmmsg)" rx_v3 rx_recvmmsg
	bench_row "veth, receive: packet:, rx=v2 (to recvmmsg)" rx_v2 rx_recvmmsg
}
rows_tap_tx() {
	bench_row "tap, send: write loop" tap_write
	bench_row "tap, send: tap:, offload=no (to that)" tap_tx_off tap_write
	bench_row "tap, send: write loop, virtio header" tap_write_vnet
	bench_row "tap, send: tap:, offload=yes (to that)" tap_tx tap_write_vnet
}
rows_tap_rx() {
	bench_row "tap, receive: read loop" tap_read
	bench_row "tap, receive: tap:, offload=no (to that)" tap_rx_off tap_read
	bench_row "tap, receive: read loop, virtio header" tap_read_vnet
	bench_row "tap, receive: tap:, offload=yes (to that)" tap_rx tap_read_vnet
}
STAGES=${STAGES:-tx rx tap_tx tap_rx}
for ((round = 0; round < ROUNDS; round++)); do
	bench_distance
	for stage in $STAGES; do stage_$stage; done
done
for stage in $STAGES; do rows_$stage; done
bench_profiles
