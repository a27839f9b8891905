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
tmp=$(mktemp -d) || exit 1
failed=0 case=

cleanup() {
	for pid in $(jobs -p); do kill -9 "$pid" 2>/dev/null; done
	ip netns del "$A" 2>/dev/null
	ip netns del "$B" 2>/dev/null
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
[ -x "$holdoff" ] || { echo "$holdoff is not built"; exit 77; }
for tool in jq bpftool ethtool ping; do
	command -v $tool >/dev/null || { echo "$tool is not installed"; exit 77; }
done
ip netns add "$A" && ip netns add "$B" || { echo "no network namespaces"; exit 77; }

in_a() { ip netns exec "$A" "$@"; }
in_b() { ip netns exec "$B" "$@"; }
fail() {
	echo "FAILED: $case: $*"
	tail -n 3 "$tmp"/*.json "$tmp"/*.err 2>/dev/null | sed 's/^/   /'
	failed=$((failed + 1))
	return 1
}

# until_true TENTHS COMMAND...
until_true() {
	local n=$1
	shift
	for ((; n > 0; n--)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

# link QUEUES: a new pair of interfaces. Without IPv6, whose multicast would be in the counts.
link() {
	ip -n "$A" link del va 2>/dev/null
	ip link add va netns "$A" numtxqueues 4 numrxqueues 4 type veth \
		peer name vb netns "$B" numtxqueues 4 numrxqueues 4 || exit 1
	in_a sysctl -qw net.ipv6.conf.va.disable_ipv6=1
	in_b sysctl -qw net.ipv6.conf.vb.disable_ipv6=1
	in_a ethtool -L va rx "$1" tx "$1" && in_b ethtool -L vb rx "$1" tx "$1" || exit 1
	ip -n "$A" link set va up
	ip -n "$B" link set vb up
	ip -n "$A" addr add 10.98.0.1/24 dev va
	ip -n "$B" addr add 10.98.0.2/24 dev vb
	until_true 50 carrier
}
carrier() { ip -n "$A" link show va | grep -q LOWER_UP && ip -n "$B" link show vb | grep -q LOWER_UP; }

# The task that receives is made when the ports are ready.
tasks_of() { [ "$(ls "/proc/$1/task" 2>/dev/null | wc -l)" -ge "$2" ]; }
# Is a program on vb (xdp:) or a packet socket in B?
receiving() { in_b ip link show vb | grep -q xdp || [ "$(in_b cat /proc/net/packet | wc -l)" -gt 1 ]; }

# recv_start ARGS...: in B, in the background; $receiver is the timeout that it is the child of.
recv_start() {
	rm -f "$tmp"/*.json "$tmp"/*.err
	ip netns exec "$B" timeout -k 5 300 "$holdoff" recv "$@" -j >"$tmp/recv.json" 2>"$tmp/recv.err" &
	receiver=$!
	until_true 100 receiving && until_true 100 tasks_of "$(pgrep -P $receiver)" 2 ||
		fail "the receiver does not start"
}

# recv_end: SIGINT, which drains it.
recv_end() {
	kill -INT "$(pgrep -P $receiver)" 2>/dev/null
	wait $receiver || fail "recv ends with status $?"
}

# gen ARGS...: in A.
gen() {
	in_a timeout -k 5 300 "$holdoff" gen "$@" -j >"$tmp/gen.json" 2>"$tmp/gen.err" ||
		fail "gen ends with status $?"
}

# agree FRAMES: both balance, both name what is lost, and one's delivered is the other's offered.
agree() {
	jq -es --argjson n "$1" '
		.[0] as $g | .[1] as $r | def sum: [.[]] | add // 0;
		$g.balanced and $r.balanced and $g.missing == 0 and $r.missing == 0 and
		$g.offered == $n and $g.delivered + ($g.drops | sum) == $n and
		$r.offered == $g.delivered and
		$r.delivered + ($r.drops | sum) - $r.drops_of_others == $r.offered and
		$r.drops_of_others == 0 and $r.unstamped == 0 and $r.duplicates == 0 and
		$r.reordered == 0 and $r.lost <= ($r.drops | sum) and
		$r.delivered > $n / 200' "$tmp/gen.json" "$tmp/recv.json" >/dev/null ||
		fail "gen and recv do not agree: $(jq -c '{offered, delivered, drops}' \
			"$tmp/gen.json" "$tmp/recv.json" | tr '\n' ' ')" || return
	echo "ok: $case: $(jq -rs '"\(.[0].offered) sent at \(.[0].tx_pps) pps, " +
		"\(.[1].delivered) received, drops \(.[1].drops | tojson)"' "$tmp"/{gen,recv}.json)"
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
case="one process"
for queues in 1 4; do
	in_a ip link add vc numtxqueues 4 numrxqueues 4 type veth \
		peer name vd numtxqueues 4 numrxqueues 4
	for i in vc vd; do
		in_a sysctl -qw net.ipv6.conf.$i.disable_ipv6=1
		in_a ethtool -L $i rx $queues tx $queues
		in_a ip link set $i up
	done
	for what in xdp:vc\ xdp:vd,mode=copy xdp:vc\ xdp:vd,mode=generic packet:vc\ packet:vd; do
		set -- $what
		case="one process, $queues queues, $1 to $2"
		rm -f "$tmp"/*.json "$tmp"/*.err
		gen "$1" --recv "$2" --count "$frames"
		jq -e --argjson n "$frames" '.balanced and .missing == 0 and .offered == $n and
			.delivered + ([.drops[]] | add // 0) - .drops_of_others == $n and
			.lost == $n - .delivered and .reordered == 0 and .duplicates == 0 and
			.drops_of_others == 0 and .delivered > $n / 200' "$tmp/gen.json" >/dev/null &&
			echo "ok: $case: $(jq -r '"\(.delivered) of \(.offered), drops \(.drops | tojson)"' \
				"$tmp/gen.json")" || fail "does not balance"
	done
	in_a ip link del vc
done

# --- a rate that can be kept: nothing is lost at all ---------------------------------------------
link 4
for what in xdp:vb\ xdp:va packet:vb\ packet:va; do
	set -- $what
	case="10 kpps, $2 to $1"
	recv_start "$1"
	gen "$2" --count 20000 --rate 10kpps
	recv_end
	agree 20000 && { [ "$(jq .delivered "$tmp/recv.json")" = 20000 ] || fail "not all arrived"; }
done

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
	gen xdp:va --rate 5kpps -d 3s &
	gen=$!
	until_true 50 sh -c "[ -n \"\$(ip netns pids $A)\" ]"
	in_a ping -q -i 0.05 -c 30 -W 2 $to >"$tmp/ping"
	wait $gen
	recv_end
	grep -q ' 0% packet loss' "$tmp/ping" && echo "ok: $case" || fail "$(cat "$tmp/ping")"
	[ "$(jq '.delivered >= 14900 and .balanced' "$tmp/recv.json")" = true ] || fail "frames are missing"
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
		ip netns exec "$A" timeout -k 5 60 "$holdoff" gen $port:va -j >"$tmp/gen.json" 2>"$tmp/gen.err" &
		sender=$!
		until_true 50 tasks_of "$(pgrep -P $sender)" 2
		sleep 0.5
		kill -$signal "$(pgrep -P $sender)"
		wait $sender || fail "gen ends with status $?"
		recv_end
		agree "$(jq .offered "$tmp/gen.json")"
	done
done

case="kill -9 of both in the middle"
for port in xdp:va xdp:va,tx=live; do
	recv_start xdp:vb,busy-poll=20us
	ip netns exec "$A" timeout -k 5 60 "$holdoff" gen $port -j >"$tmp/gen.json" 2>"$tmp/gen.err" &
	sender=$!
	until_true 50 tasks_of "$(pgrep -P $sender)" 2
	sleep 0.5
	in_b ip link show vb | grep -q xdp || fail "no program is there to be left behind"
	kill -9 "$(pgrep -P $receiver)" "$(pgrep -P $sender)"
	wait $receiver $sender 2>/dev/null
	until_true 20 no_program || fail "a program is left: $(in_b ip link show vb)"
	[ -z "$(in_b bpftool -j net show | jq -r '.[0].xdp[]')" ] || fail "bpftool net shows a program"
	until_true 20 sh -c "! ip netns exec $B bpftool -j link show |
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
	in_a timeout -k 5 30 "$holdoff" $args 2>"$tmp/gone.err" | head -n 2 >"$tmp/gone"
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
