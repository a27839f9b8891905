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
	"$holdoff" recv "memif:$tmp/theirs/s,role=${roles%:*}" -c "$frames" --wait 100s -j \
		>"$tmp/one" 2>"$tmp/one.err" &
	pid=$!
	timeout 120 "$holdoff" gen "memif:$tmp/theirs/s,role=${roles#*:}" -c "$frames" --wait 100s -j \
		>"$tmp/two" 2>"$tmp/two.err" || fail "gen: status $?"
	until_true 60 has_ended $pid || kill -INT $pid
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
until_true 60 has_carrier "$A" pa && until_true 60 has_carrier "$B" pb || exit 1

# --- rr ------------------------------------------------------------------------------------------
for kind in packet xdp; do
	case="rr over $kind:"
	ip netns exec "$B" "$holdoff" rr --serve $kind:pb -j >"$tmp/one" 2>"$tmp/one.err" &
	pid=$!
	until_true 60 running || fail "the server does not start"
	ip netns exec "$A" timeout 200 "$holdoff" rr $kind:pa -c 5000 --outstanding 8 --tries 100 -j \
		>"$tmp/two" 2>"$tmp/two.err" || fail "rr: status $?"
	kill -INT $pid
	wait $pid || fail "the server: status $?"
	holds two ".transactions == 5000 and .given_up == 0" && holds one ".served >= 5000" &&
		ok "$(jq -r '"\(.transactions_per_second) a second, median \(.latency.p50_ns) ns"' "$tmp/two")"
done

# --- a capture that Wireshark's tools read ---------------------------------------------------------
case="recv --write"
ip netns exec "$B" "$holdoff" recv packet:pb --write "$tmp/c.pcap" -j >"$tmp/one" 2>"$tmp/one.err" &
pid=$!
until_true 60 running || fail "recv does not start"
ip netns exec "$A" timeout 100 "$holdoff" gen packet:pa -c 20000 --rate 20kpps --size imix -j \
	>"$tmp/two" 2>"$tmp/two.err" || fail "gen: status $?"
kill -INT $pid
wait $pid || fail "recv: status $?"
# All that was sent is captured or has a name: on a busy machine the socket may have been full.
captured=$(jq .captured "$tmp/one")
holds two ".offered == 20000" && holds one ".captured == .delivered and .captured > 100 and
	.offered == $(jq .delivered "$tmp/two")" && ok "$captured of 20000 frames"
if command -v capinfos >/dev/null; then
	case="capinfos and tshark"
	capinfos -rTcd "$tmp/c.pcap" >"$tmp/info" 2>&1 || fail "capinfos: $(cat "$tmp/info")"
	cut -f 2,3 "$tmp/info" | grep -qxF "$captured	$(jq .rx_bytes "$tmp/one")" || fail "counts: $(cat "$tmp/info")"
	[ "$(tshark -o udp.check_checksum:TRUE -r "$tmp/c.pcap" -Y 'udp.checksum.status == 1' \
		2>/dev/null | wc -l)" = "$captured" ] && ok || fail "not $captured right checksums"
fi
case="a timed replay"
# No frame goes before its time.
span=$(/usr/bin/python3 - "$tmp/c.pcap" <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
order, unit = next((o, u) for o in "<>" for u, magic in ((1e-6, 0xa1b2c3d4), (1e-9, 0xa1b23c4d))
                   if struct.unpack(o + "I", data[:4])[0] == magic)
at, times = 24, []
while at < len(data):
    second, part, have, _ = struct.unpack(order + "IIII", data[at:at + 16])
    times.append(second + part * unit)
    at += 16 + have
print(times[-1] - times[0])
PY
)
timeout 100 "$holdoff" gen null: --replay "$tmp/c.pcap" -j >"$tmp/two" 2>"$tmp/two.err" || fail "status $?"
holds two ".tx_packets == $captured and .seconds > $span - 0.01" && ok "$(jq .seconds "$tmp/two") s for $span s"
case="a fast replay"
# Its cost, not its rate, so that others on this machine do not matter: 3 us a frame.
TIMEFORMAT='%U %S'
loops=$((1000000 / (captured > 0 ? captured : 1)))
{ time timeout 100 "$holdoff" gen null: --replay "$tmp/c.pcap" --rate max --loop $loops -j \
	>"$tmp/two" 2>"$tmp/two.err"; } 2>"$tmp/time"
holds two ".tx_packets == $loops * $captured" &&
	{ awk '{ exit !($1 + $2 < 3) }' "$tmp/time" && ok "$(jq .tx_pps "$tmp/two") pps" ||
		fail "a million frames cost $(cat "$tmp/time") s"; }

# --- the highest rate with little loss -------------------------------------------------------------
case="--search loss=0.1%"
ip netns exec "$A" ip link add pc type veth peer name pd
ip -n "$A" link set pc up
ip -n "$A" link set pd up
until_true 60 has_carrier "$A" pc
ip netns exec "$A" timeout 100 "$holdoff" gen packet:pc --recv packet:pd --search loss=0.1% -d 200ms -j \
	>"$tmp/two" 2>"$tmp/two.err"
status=$?
case $status in
0) holds two ".search.found and .search.loss <= 0.001 and .search.pps > 0" &&
	ok "$(jq -c .search "$tmp/two")" ;;
3) holds two ".search.found == false" && ok "no rate found: $(jq -c .search "$tmp/two")" ;;
*) fail "status $status" ;;
esac

# --- patch -----------------------------------------------------------------------------------------
case="patch of veth to veth, packet: and xdp:"
ip -n "$B" link add pe type veth peer name pf
ip -n "$B" link set pe up
ip -n "$B" link set pf up
until_true 60 has_carrier "$B" pe
ip netns exec "$B" "$holdoff" patch packet:pb xdp:pe -j >"$tmp/one" 2>"$tmp/one.err" &
pid=$!
until_true 60 running || fail "patch does not start"
ip netns exec "$B" "$holdoff" recv packet:pf -j >"$tmp/three" 2>"$tmp/one.err" &
last=$!
until_true 60 has_tasks $last 2 || fail "recv does not start"
ip netns exec "$A" timeout 100 "$holdoff" gen packet:pa -c 20000 --rate 10kpps -j >"$tmp/two" 2>"$tmp/two.err"
kill -INT $pid
wait $pid || fail "patch: status $?"
kill -INT $last
wait $last || fail "recv: status $?"
# What one hands over the next one has or names: on a busy machine a ring may have been full.
holds two ".offered == 20000" && holds one ".offered >= $(jq .delivered "$tmp/two")" &&
	holds three ".offered == $(jq .delivered "$tmp/one") and .delivered > 100 and
		.lost <= ([.drops[]] | add // 0) + $(jq '[.drops[]] | add // 0' "$tmp/one")" &&
	ok "$(jq .delivered "$tmp/three") of 20000 frames"

if command -v iperf3 >/dev/null; then
	case="iperf3 through patch of tap to tap"
	"$holdoff" patch tap:hp$$x tap:hp$$y -j >"$tmp/one" 2>"$tmp/one.err" &
	pid=$!
	until_true 60 ip link show hp$$y >"$tmp/link" 2>&1 && until_true 60 running
	ip link set hp$$x netns "$A" && ip link set hp$$y netns "$B"
	ip -n "$A" addr add 10.96.0.1/24 dev hp$$x && ip -n "$A" link set hp$$x up
	ip -n "$B" addr add 10.96.0.2/24 dev hp$$y && ip -n "$B" link set hp$$y up
	ip netns exec "$B" iperf3 -s -1 >"$tmp/server" 2>&1 &
	until_true 60 sh -c "ip netns exec $B ss -ltn | grep -q :5201" || fail "iperf3 does not listen"
	ip netns exec "$A" timeout 100 iperf3 -c 10.96.0.2 -n 50M -J >"$tmp/iperf" 2>&1 ||
		fail "iperf3: $(jq -r .error "$tmp/iperf")"
	kill -INT $pid
	wait $pid || fail "patch: status $?"
	# What is still under way when the sender has sent all is not counted: buffers hold some 10 MB.
	holds one ".delivered > 400" && jq -e '.end.sum_sent.bytes >= 50 * 1048576 and
		.end.sum_received.bytes > 25 * 1048576' "$tmp/iperf" >/dev/null &&
		ok "$(jq '.end.sum_received.bits_per_second / 1e6 | floor' "$tmp/iperf") Mbit/s" ||
		fail "too little came through"
fi
end
