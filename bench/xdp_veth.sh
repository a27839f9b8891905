#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Port xdp on veth against its peers: 60-byte frames; one CPU sends, one receives.
#
#    namespace A: sender, CPU 0            namespace B: receiver, CPU 1
#       va ---------------- veth --------------- vb
#
# Transmit, into the stack of the peer (which drops them there: nobody has the address):
#   holdoff gen xdp:va; holdoff gen xdp:va,tx=live; sendmmsg; trafgen; testpmd txonly by
#   net_af_packet and net_af_xdp. For live frames the peer must run XDP or GRO: the others are
#   measured both without and with GRO, and the better figure counts.
# Receive, from holdoff gen by live frames: holdoff recv xdp:vb; the same with --stamps=no, which as
#   testpmd's rxonly counts frames and reads none of their bytes; testpmd rxonly by net_af_xdp and
#   net_af_packet; and testpmd icmpecho, which reads each frame's headers and drops what is neither
#   ARP nor an echo request: a receiver that touches every frame, as recv does for the stamps.
#   All that was received, over the time that was sent. With the two CPUs on two
#   cores each frame that its receiver reads costs the sender's CPU, which copies the next one into
#   the same buffer, a transfer of a cache line: bench_line says how far apart they are.
# What a sender says it sent is checked against the peer's rx_packets. PERF=1 adds where the time
# goes (perf record on the CPU clock). STAGES: of "tx rx" (both); DRIVERS: the peer's ways to
# receive, of "af_packet af_xdp" (both). Needs root.
cd "$(dirname "$0")/.." || exit 1
. bench/lib.sh
bench_need ip trafgen ethtool
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
A=hxb$$a B=hxb$$b
sendmmsg=$(dirname "$HOLDOFF")/bench/bench_sendmmsg
s=$SECONDS_EACH

stop() {
	ip netns del "$A" 2>/dev/null
	ip netns del "$B" 2>/dev/null
	bench_cleanup
}
trap stop EXIT
ip netns add "$A" && ip netns add "$B" || { echo "skipped: no network namespaces"; exit 77; }
ip link add va netns "$A" type veth peer name vb netns "$B" || exit 1
for at in "$A va" "$B vb"; do
	set -- $at
	ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	ip -n "$1" link set "$2" up
done
in_a() { ip netns exec "$A" taskset -c 0 "$@"; }
in_b() { ip netns exec "$B" taskset -c 1 "$@"; }
number() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" | tail -n 1; }
arrived() { ip -n "$B" -s -j link show vb | sed 's/.*"rx":{[^}]*"packets":\([0-9]*\).*/\1/'; }

# measure NAME COMMAND...: by what arrives at the peer, in the middle of the run.
measure() {
	local name=$1 from to t0 t1 pid i
	shift
	"$@" >"$bench_tmp/out" 2>&1 &
	pid=$!
	from=$(arrived)
	for ((i = 0; i < 60 && $(arrived) < from + 10000; i++)); do sleep 0.1; done
	from=$(arrived) t0=$(date +%s%N)
	sleep "$s"
	to=$(arrived) t1=$(date +%s%N)
	[ -n "${PERF:-}" ] && [ "$round" = 1 ] && profile "$name"
	wait $pid
	bench_record "$name" $(((to - from) * 1000000000 / (t1 - t0)))
	[ "$to" -gt "$from" ] || { echo "$name: nothing arrives:"; tail -n 3 "$bench_tmp/out"; }
}

# Where both CPUs spend their time while a receiver runs.
profile_rx() {
	local cpu
	for cpu in 0 1; do
		perf record -q -C $cpu -e cpu-clock -o "$bench_tmp/perf" -- sleep 0.3 2>/dev/null &&
			perf report -i "$bench_tmp/perf" --stdio --no-children -s comm,symbol 2>/dev/null |
			grep -v '^#' | grep . | head -n 10 >"$bench_tmp/profile.$1, CPU $cpu"
	done
}

# Where the sender spends its time, softirqs on its back included.
profile() {
	perf record -q -C 0 -e cpu-clock -o "$bench_tmp/perf" -- sleep 0.4 2>/dev/null &&
		perf report -i "$bench_tmp/perf" --stdio --no-children -s symbol \
			--comm holdoff,gen,bench_sendmmsg,trafgen,rte-worker-0,ksoftirqd/0 2>/dev/null |
		grep -v '^#' | grep . | head -n 12 >"$bench_tmp/profile.$1"
}

gen() { in_a "$HOLDOFF" gen "$1" --duration "$((s + 2))s" -j; }
mmsg() { in_a "$sendmmsg" va $((s + 2)); }
trafgen_one() {
	in_a timeout -s INT $((s + 3)) trafgen -o va --cpus 1 -i - <<-'END'
		{ eth(da=02:00:00:00:00:02, sa=02:00:00:00:00:01, type=0x800), ipv4(sa=198.18.0.1, da=198.18.0.2),
		  udp(sp=5000, dp=9), fill(0, 18) }
	END
}
pmd_tx() { pmd "$A" 0 va "$1" "--forward-mode=txonly --txpkts=60"; }

# pmd NAMESPACE CPU IFACE DRIVER OPTIONS: the port is polled on CPU, the main thread sleeps.
pmd() {
	# libxdp's dispatcher, which it uses, needs a bpffs.
	ip netns exec "$1" sh -c 'mount -t bpf bpf /sys/fs/bpf; exec "$@"' sh \
		timeout -s INT -k 3 $((s + ${pmd_spare:-6})) "${TESTPMD%% *}" -l 0,1 --main-lcore $((1 - $2)) \
		--no-pci --no-telemetry -m 512 --no-huge --file-prefix "hxb$$" \
		--vdev "net_${4}0,iface=$3$( [ "$4" = af_packet ] && echo ,qdisc_bypass=1)" -- \
		--stats-period=1 --nb-cores=1 --total-num-mbufs=16384 $5 </dev/null
}

bench_machine
echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
STAGES=${STAGES:-tx rx}
DRIVERS=${DRIVERS:-af_packet af_xdp}
stage_tx() {
	echo "-- transmit on veth"
	for gro in off on; do
		ip netns exec "$B" ethtool -K vb gro $gro
		for ((round = 1; round <= ROUNDS; round++)); do
			measure tx_socket_$gro gen xdp:va
			[ $gro = on ] && measure tx_live gen xdp:va,tx=live
			measure tx_mmsg_$gro mmsg
			measure tx_trafgen_$gro trafgen_one
			measure tx_pmd_xdp_$gro pmd_tx af_xdp
			measure tx_pmd_packet_$gro pmd_tx af_packet
		done
	done
	# better NAME: the setting of the peer's GRO with which it is faster.
	better() {
		local off on
		off=$(bench_median "$1_off") on=$(bench_median "$1_on")
		awk -v a="$off" -v b="$on" 'BEGIN {exit !(a >= b)}' && echo "$1_off" || echo "$1_on"
	}
	socket=$(better tx_socket)
	best=
	for peer in tx_mmsg tx_trafgen tx_pmd_xdp tx_pmd_packet; do
		name=$(better $peer)
		[ "$(bench_median "$name")" = 0 ] && { echo "$peer: sends nothing here"; continue; }
		bench_row "$peer (peer, ${name##*_} GRO)" "$name"
		[ -z "$best" ] || awk -v a="$(bench_median "$name")" -v b="$(bench_median "$best")" \
			'BEGIN {exit !(a > b)}' && best=$name
	done
	bench_row "holdoff gen, AF_XDP socket, to the best peer" "$socket" "$best"
	bench_row "holdoff gen, live frames, to the best peer" tx_live "$best"
	[ "$(bench_median "$(better tx_pmd_xdp)")" = 0 ] ||
		bench_row "holdoff gen, AF_XDP socket, to testpmd af_xdp" "$socket" "$(better tx_pmd_xdp)"
	for p in "$bench_tmp"/profile.tx_*; do
		[ -e "$p" ] && { echo "-- the sender of ${p##*.}"; cat "$p"; }
	done
}

# feed NAME RECEIVER...: the receiver runs on CPU 1 and its own count is what counts.
feed() {
	local name=$1 pid sender_pid i pmd_spare=4
	shift
	: >"$bench_tmp/out"
	"$@" >"$bench_tmp/out" 2>&1 &
	pid=$!
	# What testpmd and recv say when they have started.
	for ((i = 0; i < 30; i++)); do
		grep -qE 'Port statistics|copy mode' "$bench_tmp/out" && break
		sleep 0.1
	done
	in_a "$HOLDOFF" gen "$sender" --duration "${s}s" -j >"$bench_tmp/gen" 2>&1 &
	sender_pid=$!
	[ -n "${PERF:-}" ] && [ "$round" = 1 ] && sleep 0.5 && profile_rx "$name"
	wait $sender_pid
	wait $pid
	bench_record "$name" "$(awk -v n="$(received)" -v t="$(sent_seconds)" 'BEGIN {printf "%.0f", t ? n / t : 0}')"
	awk -v r="$round" -v n="$name" -v pps="$(tail -n 1 "$bench_tmp/$name")" \
		'BEGIN {printf "  round %d: %-20s %7.3f Mpps\n", r, n, pps / 1e6}'
}
rx_holdoff() { in_b "$HOLDOFF" recv "$@" --duration "$((s + 2))s" -j; }
# What the receiver says that it received, in all: recv, or testpmd's last block.
received() {
	local n
	n=$(number rx_packets <"$bench_tmp/out")
	echo "${n:-$(sed -n 's/.*RX-packets: *\([0-9]*\) .*/\1/p' "$bench_tmp/out" | tail -n 1)}"
}
sent_seconds() { sed -n 's/.*"seconds":\([0-9.]*\).*/\1/p' "$bench_tmp/gen"; }
stage_rx() {
	echo "-- receive on veth, sent by holdoff gen with live frames"
	ip netns exec "$B" ethtool -K vb gro on
	sender=xdp:va,tx=live
	for ((round = 1; round <= ROUNDS; round++)); do
		bench_distance
		feed rx_stamps rx_holdoff xdp:vb
		feed rx_count rx_holdoff xdp:vb --stamps=no
		for driver in $DRIVERS; do
			feed rx_pmd_$driver pmd "$B" 1 vb $driver --forward-mode=rxonly
			feed rx_echo_$driver pmd "$B" 1 vb $driver --forward-mode=icmpecho
		done
	done
	for driver in $DRIVERS; do
		[ "$(bench_median rx_pmd_$driver)" = 0 ] && { echo "testpmd $driver: receives nothing here"; continue; }
		bench_row "testpmd rxonly, $driver (peer)" rx_pmd_$driver
		bench_row "holdoff recv --stamps=no, to testpmd rxonly, $driver" rx_count rx_pmd_$driver
		bench_row "holdoff recv, to testpmd rxonly, $driver" rx_stamps rx_pmd_$driver
		bench_row "testpmd icmpecho, $driver (peer): reads headers" rx_echo_$driver
		bench_row "holdoff recv, to testpmd icmpecho, $driver" rx_stamps rx_echo_$driver
	done
	for p in "$bench_tmp"/profile.rx_*; do
		[ -e "$p" ] && { echo "-- ${p##*profile.}"; cat "$p"; }
	done
}
for stage in $STAGES; do stage_$stage; done
echo "load after: $(cut -d ' ' -f 1-3 /proc/loadavg)"
