#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The commands gen and recv between two namespaces:
#
#    namespace A                          namespace B
#   +--------------------+               +--------------------+
#   | holdoff gen xdp:va |               | holdoff recv xdp:vb|
#   |           10.98.0.1|----- veth ----|10.98.0.2           |
#   | ping     fd98::1   |  1, 4 queues  |fd98::2             |
#   +--------------------+               +--------------------+
#
# What gen says was sent is what recv says was offered to it, to the packet, and everything else has
# a name. HOLDOFF_FRAMES (500000) frames a run. Needs root.
set -u
cd "$(dirname "$0")/../.." || exit 1
holdoff=$(realpath "${HOLDOFF:-build/holdoff}")
frames=${HOLDOFF_FRAMES:-500000}
A=hv$$a B=hv$$b
case=
# shellcheck source=tests/net/shared.bash
. tests/net/shared.bash
# shellcheck source=tests/net/gen_recv.bash
. tests/net/gen_recv.bash
needs_root
[ -x "$holdoff" ] || skip "$holdoff is not built"
needs jq bpftool ethtool ping
add_namespaces "$A" "$B" || skip "no network namespaces"

# link QUEUES: a new pair of interfaces.
link() {
	veth "$A" va "$B" vb "$1"
	ip -n "$A" addr add 10.98.0.1/24 dev va
	ip -n "$B" addr add 10.98.0.2/24 dev vb
}

for queues in 1 4; do
	link $queues
	for what in xdp:vb,mode=copy\ xdp:va xdp:vb,mode=generic\ xdp:va xdp:vb\ xdp:va,tx=live \
		packet:vb\ packet:va packet:vb\ packet:va,tx=ring; do
		set -- $what
		case="$queues queues, $2 to $1"
		recv_start "$1"
		gen "$2" --count "$frames"
		recv_end
		agree "$frames"
	done
done

# --- one process that sees both ends -------------------------------------------------------------
for queues in 1 4; do
	veth "$A" vc "$A" vd $queues
	for what in xdp:vc\ xdp:vd,mode=copy xdp:vc\ xdp:vd,mode=generic packet:vc\ packet:vd; do
		set -- $what
		case="one process, $queues queues, $1 to $2"
		one_process "$frames" "$1" "$2"
	done
	# What a filter leaves out is a named drop too, stamped or not.
	for port in xdp packet; do
		for stamp in yes no; do
			case="one process, $queues queues, $port:, filtered, stamp $stamp"
			gen $port:vc --recv $port:vd --stamp $stamp --dst-port 9,10 \
				--filter 'udp dst port 9' --count 2000 --rate 20kpps
			# Half of them, but for what the link has dropped of either half.
			jq -e '.balanced and .delivered <= 1000 and .drops.rx_filtered <= 1000 and
				.delivered + ([.drops[]] | add) == 2000 and .delivered > 10 and
				.drops.rx_filtered > 10' \
				"$tmp/gen.json" >/dev/null && echo "ok: $case" ||
				fail "not half of them: $(cat "$tmp/gen.json")"
		done
	done
	in_a ip link del vc
done

# --- a rate that can be kept: nothing is lost at all ---------------------------------------------
link 4
for what in xdp:vb\ xdp:va packet:vb\ packet:va; do
	set -- $what
	case="10 kpps, $2 to $1"
	recv_start "$1"
	waits $receiver >"$tmp/waits"
	gen "$2" --count 20000 --rate 10kpps
	waited=$(waited_ms "$tmp/waits" $receiver)
	recv_end
	agree 20000 || continue
	# veth holds 256 frames in each queue: 25 ms of this rate.
	if [ "$(jq .delivered "$tmp/recv.json")" != 20000 ]; then
		[ "$waited" -ge 20 ] && echo "skipped: $case: the receiver or the kernel had no CPU for $waited ms" ||
			fail "not all arrived"
	fi
done

case="stamped frames that are only counted"
recv_start xdp:vb --stamps=no
dropped=$(link_drops "$A" va "$B" vb)
gen xdp:va --count 10000 --rate 10kpps
recv_end
dropped=$(($(link_drops "$A" va "$B" vb) - dropped))
# All that was sent, but for what the link has dropped.
jq -es --argjson dropped $dropped '.[0] as $g | .[1] as $r | $g.balanced and $r.balanced and
	$g.offered == 10000 and $r.offered >= $g.delivered - $dropped and $r.offered <= 10000 and
	$r.delivered > 100 and $r.unstamped == null and $r.streams == null' \
	"$tmp/gen.json" "$tmp/recv.json" >/dev/null &&
	echo "ok: $case: $(jq .delivered "$tmp/recv.json") of 10000, the link dropped $dropped" ||
	fail "the link dropped $dropped: $(jq -c . "$tmp/gen.json" "$tmp/recv.json")"

# --- ping goes on --------------------------------------------------------------------------------
link 1
in_a sysctl -qw net.ipv6.conf.va.disable_ipv6=0
in_b sysctl -qw net.ipv6.conf.vb.disable_ipv6=0
ip -n "$A" addr add fd98::1/64 dev va nodad
ip -n "$B" addr add fd98::2/64 dev vb nodad
for to in 10.98.0.2 fd98::2; do
	case="ping $to during xdp: at both ends"
	ip -n "$A" neigh flush dev va
	recv_start xdp:vb
	dropped=$(link_drops "$A" va "$B" vb)
	gen xdp:va --rate 5kpps --count 15000 &
	gen=$!
	until_true 60 more_than "$A" va tx_packets "$(statistic "$A" va tx_packets)"
	pings "$A" $to 30 "$tmp/ping" -i 0.05 || fail "$(cat "$tmp/ping")"
	wait $gen
	recv_end
	# What the link drops when nobody gets a CPU to take it from there is nothing that we do to it.
	dropped=$(($(link_drops "$A" va "$B" vb) - dropped))
	[ "$lost" -le $dropped ] && echo "ok: $case" || fail "$lost lost, the link dropped $dropped: $(cat "$tmp/ping")"
	# As agree, but for what the hosts themselves have to say here.
	jq -es '.[0] as $g | .[1] as $r | $g.balanced and $r.balanced and $g.missing == 0 and $r.missing == 0 and
		$g.offered == 15000 and $r.offered >= $g.delivered and $r.offered - $r.unstamped <= $g.delivered and
		$r.lost <= ([$r.drops[]] | add // 0) and $r.delivered > 75' \
		"$tmp/gen.json" "$tmp/recv.json" >/dev/null || fail "gen and recv do not agree"
done
in_a sysctl -qw net.ipv6.conf.va.disable_ipv6=1
in_b sysctl -qw net.ipv6.conf.vb.disable_ipv6=1

# --- ends ----------------------------------------------------------------------------------------
no_program() { ! in_b ip link show vb | grep -q xdp && ! in_a ip link show va | grep -q xdp; }
settings() {
	for i in va; do in_a ethtool -k $i; in_a ethtool -l $i; in_a ip -d link show $i; done
	for i in vb; do in_b ethtool -k $i; in_b ethtool -l $i; in_b ip -d link show $i; done
	in_a grep -r . /sys/class/net/va/{napi_defer_hard_irqs,gro_flush_timeout,threaded} 2>/dev/null
	in_b sysctl -a 2>/dev/null | grep -E '^net\.(core|ipv4.conf.vb)'
}
settings >"$tmp/before"

for signal in INT TERM; do
	for port in xdp packet; do
		case="SIG$signal in the middle, $port:"
		recv_start $port:vb
		ip netns exec "$A" timeout -k 5 300 "$holdoff" gen $port:va -j >"$tmp/gen.json" 2>"$tmp/gen.err" &
		sender=$!
		until_true 60 more_than "$A" va tx_packets $(($(statistic "$A" va tx_packets) + 1000)) ||
			fail "nothing is sent"
		kill -$signal "$(process_of $sender)"
		wait $sender || fail "gen ends with status $?"
		recv_end
		agree "$(jq .offered "$tmp/gen.json")"
	done
done

case="kill -9 of both in the middle"
for port in xdp:va xdp:va,tx=live; do
	recv_start xdp:vb,busy-poll=20us
	ip netns exec "$A" timeout -k 5 300 "$holdoff" gen $port -j >"$tmp/gen.json" 2>"$tmp/gen.err" &
	sender=$!
	until_true 60 more_than "$A" va tx_packets $(($(statistic "$A" va tx_packets) + 1000)) ||
		fail "nothing is sent"
	in_b ip link show vb | grep -q xdp || fail "no program is there to be left behind"
	kill -9 "$(process_of $receiver)" "$(process_of $sender)"
	wait $receiver $sender 2>/dev/null
	until_true 60 no_program || fail "a program is left: $(in_b ip link show vb)"
	[ -z "$(in_b bpftool -j net show | jq -r '.[0].xdp[]')" ] || fail "bpftool net shows a program"
	until_true 60 sh -c "! ip netns exec $B bpftool -j link show |
		jq -e --argjson i $(in_b cat /sys/class/net/vb/ifindex 2>/dev/null || echo 0) \
		'.[] | select(.type == \"xdp\" and .ifindex == \$i)' >/dev/null" ||
		fail "bpftool shows a link"
	settings | diff "$tmp/before" - >"$tmp/diff" && echo "ok: $case, $port: nothing is left" ||
		fail "a setting has changed: $(cat "$tmp/diff")"
	recv_start xdp:vb
	gen xdp:va --rate 10kpps --count 1000
	recv_end
	agree 1000
done

case="the reader of the output goes"
for args in "gen xdp:va" "gen packet:va" "recv xdp:va" "recv packet:va"; do
	in_a timeout -k 5 100 "$holdoff" $args 2>"$tmp/gone.err" | head -n 2 >"$tmp/gone"
	status=${PIPESTATUS[0]}
	[ "$status" = 0 ] && [ "$(wc -l <"$tmp/gone")" = 2 ] && echo "ok: $case: $args" ||
		fail "$args: status $status"
done
case="the settings at the end"
no_program || fail "a program is left"
settings | diff "$tmp/before" - >"$tmp/diff" && echo "ok: $case" ||
	fail "a setting has changed: $(cat "$tmp/diff")"

[ $failed = 0 ] || { echo "$failed failed"; exit 1; }
echo "all passed"
