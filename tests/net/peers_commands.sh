#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# holdoff with holdoff, and with the kernel's own programs:
#
#    gen memif: ==== recv memif:          two processes, each in each role
#
#    namespace A                     namespace B
#    rr packet:pa, xdp:pa --- veth --- rr --serve packet:pb, xdp:pb
#    gen --search                     recv --write, read by capinfos and tshark
#
#    namespace A            here             namespace B
#    iperf3 -- ta ==== patch tap:ta tap:tb ==== tb -- iperf3 -s
#
# HOLDOFF_FRAMES (500000) frames over memif. The rest needs root.
set -u
cd "$(dirname "$0")/../.." || exit 1
holdoff=$(realpath "${HOLDOFF:-build/holdoff}")
frames=${HOLDOFF_FRAMES:-500000}
A=hp$$a B=hp$$b
failed=0 case=
# shellcheck source=tests/net/shared.bash
. tests/net/shared.bash
[ -x "$holdoff" ] || skip "$holdoff is not built"
needs jq

fail() {
	echo "FAILED: $case: $*"
	tail -n 3 "$tmp"/{one,two}{,.err} 2>/dev/null | sed 's/^/   /'
	failed=$((failed + 1))
	return 1
}
running() { has_tasks "$pid" 2; }
# holds FILE CONDITION
holds() { jq -e ".balanced and .missing == 0 and ($2)" "$tmp/$1" >/dev/null || fail "$1: not $2"; }
ok() { echo "ok: $case${1:+: $1}"; }

# --- memif: both roles, and a directory that only another user may write to ------------------------
mkdir "$tmp/theirs"
[ "$(id -u)" != 0 ] || { chown 65534 "$tmp/theirs" && chmod 755 "$tmp/theirs" && chmod 755 "$tmp"; }
for roles in server:client client:server; do
	case="memif, recv is ${roles%:*}, gen is ${roles#*:}"
	"$holdoff" recv "memif:$tmp/theirs/s,role=${roles%:*}" -c "$frames" --wait 20s -j \
		>"$tmp/one" 2>"$tmp/one.err" &
	pid=$!
	timeout 120 "$holdoff" gen "memif:$tmp/theirs/s,role=${roles#*:}" -c "$frames" --wait 20s -j \
		>"$tmp/two" 2>"$tmp/two.err" || fail "gen: status $?"
	until_true 5 has_ended $pid || kill -INT $pid
	wait $pid || fail "recv: status $?"
	holds two ".offered == $frames and .delivered == $frames" &&
		holds one ".offered == $frames and .delivered == $frames and .lost == 0 and .reordered == 0" &&
		ok "$(jq .rx_pps "$tmp/one") pps"
	[ -e "$tmp/theirs/s" ] && { fail "the socket is left"; rm -f "$tmp/theirs/s"; }
done

end() {
	[ $failed = 0 ] || { echo "$failed failed"; exit 1; }
	echo "all passed"
	exit 0
}
if [ "$(id -u)" != 0 ] || ! add_namespaces "$A" "$B"; then
	end
fi
ip link add pa netns "$A" type veth peer name pb netns "$B"
for i in "$A pa" "$B pb"; do
	set -- $i
	ip -n "$1" link set "$2" up
done

# --- rr ------------------------------------------------------------------------------------------
for kind in packet xdp; do
	case="rr over $kind:"
	ip netns exec "$B" "$holdoff" rr --serve $kind:pb -j >"$tmp/one" 2>"$tmp/one.err" &
	pid=$!
	until_true 10 running || fail "the server does not start"
	ip netns exec "$A" timeout 60 "$holdoff" rr $kind:pa -c 5000 --outstanding 8 -j \
		>"$tmp/two" 2>"$tmp/two.err" || fail "rr: status $?"
	kill -INT $pid
	wait $pid || fail "the server: status $?"
	holds two ".transactions == 5000 and .given_up == 0" && holds one ".served >= 5000" &&
		ok "$(jq -r '"\(.transactions_per_second) a second, median \(.latency.p50_ns) ns"' "$tmp/two")"
done

# --- a capture that Wireshark's tools read ---------------------------------------------------------
case="recv --write"
ip netns exec "$B" "$holdoff" recv packet:pb -c 20000 --write "$tmp/c.pcap" -j >"$tmp/one" 2>"$tmp/one.err" &
pid=$!
until_true 10 running
ip netns exec "$A" timeout 60 "$holdoff" gen packet:pa -c 20000 --rate 20kpps --size imix -j \
	>"$tmp/two" 2>"$tmp/two.err" || fail "gen: status $?"
until_true 5 has_ended $pid || kill -INT $pid
wait $pid || fail "recv: status $?"
holds one ".captured == 20000 and .delivered == 20000" && ok
if command -v capinfos >/dev/null; then
	case="capinfos and tshark"
	capinfos -rTcd "$tmp/c.pcap" >"$tmp/info" 2>&1 || fail "capinfos: $(cat "$tmp/info")"
	cut -f 2,3 "$tmp/info" | grep -qxF "20000	$(jq .rx_bytes "$tmp/one")" || fail "counts: $(cat "$tmp/info")"
	[ "$(tshark -o udp.check_checksum:TRUE -r "$tmp/c.pcap" -Y 'udp.checksum.status == 1' \
		2>/dev/null | wc -l)" = 20000 ] && ok || fail "not 20000 right checksums"
fi
case="a timed replay"
# 20000 frames that came at 20000 a second.
timeout 60 "$holdoff" gen null: --replay "$tmp/c.pcap" -j >"$tmp/two" 2>"$tmp/two.err" || fail "status $?"
holds two ".tx_packets == 20000 and .seconds > 0.95 and .seconds < 3" && ok "$(jq .seconds "$tmp/two") s"
case="a fast replay"
# Its cost, not its rate, so that others on this machine do not matter: 4 us a frame.
TIMEFORMAT='%U %S'
{ time timeout 100 "$holdoff" gen null: --replay "$tmp/c.pcap" --rate max --loop 50 -j \
	>"$tmp/two" 2>"$tmp/two.err"; } 2>"$tmp/time"
holds two ".tx_packets == 1000000" &&
	{ awk '{ exit !($1 + $2 < 3) }' "$tmp/time" && ok "$(jq .tx_pps "$tmp/two") pps" ||
		fail "a million frames cost $(cat "$tmp/time") s"; }

# --- the highest rate with little loss -------------------------------------------------------------
case="--search loss=0.1%"
ip netns exec "$A" ip link add pc type veth peer name pd
ip -n "$A" link set pc up
ip -n "$A" link set pd up
ip netns exec "$A" timeout 100 "$holdoff" gen packet:pc --recv packet:pd --search loss=0.1% -d 200ms -j \
	>"$tmp/two" 2>"$tmp/two.err"
status=$?
case $status in
0) holds two ".search.found and .search.loss <= 0.001 and .search.pps > 10000 and .search.pps < 2e7" &&
	ok "$(jq -c .search "$tmp/two")" ;;
3) holds two ".search.found == false" && ok "no rate found: $(jq -c .search "$tmp/two")" ;;
*) fail "status $status" ;;
esac

# --- patch -----------------------------------------------------------------------------------------
case="patch of veth to veth, packet: and xdp:"
ip -n "$B" link add pe type veth peer name pf
ip -n "$B" link set pe up
ip -n "$B" link set pf up
ip netns exec "$B" "$holdoff" patch packet:pb xdp:pe -j >"$tmp/one" 2>"$tmp/one.err" &
pid=$!
until_true 10 running
ip netns exec "$B" "$holdoff" recv packet:pf -c 20000 -d 20s -j >"$tmp/three" 2>"$tmp/one.err" &
last=$!
until_true 10 has_tasks $last 2
ip netns exec "$A" timeout 60 "$holdoff" gen packet:pa -c 20000 --rate 10kpps -j >"$tmp/two" 2>"$tmp/two.err"
wait $last || fail "recv: status $?"
kill -INT $pid
wait $pid || fail "patch: status $?"
holds three ".delivered == 20000 and .lost == 0" && holds one ".delivered >= 20000" && ok

if command -v iperf3 >/dev/null; then
	case="iperf3 through patch of tap to tap"
	"$holdoff" patch tap:hp$$x tap:hp$$y -j >"$tmp/one" 2>"$tmp/one.err" &
	pid=$!
	until_true 10 ip link show hp$$y >"$tmp/link" 2>&1 && until_true 10 running
	ip link set hp$$x netns "$A" && ip link set hp$$y netns "$B"
	ip -n "$A" addr add 10.96.0.1/24 dev hp$$x && ip -n "$A" link set hp$$x up
	ip -n "$B" addr add 10.96.0.2/24 dev hp$$y && ip -n "$B" link set hp$$y up
	ip netns exec "$B" iperf3 -s -1 >"$tmp/server" 2>&1 &
	until_true 5 sh -c "ip netns exec $B ss -ltn | grep -q :5201"
	ip netns exec "$A" timeout 30 iperf3 -c 10.96.0.2 -t 2 -J >"$tmp/iperf" 2>&1 ||
		fail "iperf3: $(jq -r .error "$tmp/iperf")"
	kill -INT $pid
	wait $pid || fail "patch: status $?"
	holds one ".delivered > 1000" && jq -e '.end.sum_received.bits_per_second > 1e7' "$tmp/iperf" >/dev/null &&
		ok "$(jq '.end.sum_received.bits_per_second / 1e6 | floor' "$tmp/iperf") Mbit/s" ||
		fail "too little came through"
fi
end
