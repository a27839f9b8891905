#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Routing from veth to veth, 60-byte frames to 1024 destinations behind one gateway:
#
#   namespace A: sender          namespace R: the router            namespace C: the gateway's link
#   CPU 0                        CPU 1                              (counted, then dropped at once:
#                                                                   the MAC is another station's)
#      va ------------- veth ------- vb   198.18.0.1    vc ------ veth ------- vd
#                                   2001:db8:18::1   198.19.0.1, 2001:db8:19::1
#
#   kernel            its own forwarding; a veth runs it in the sender's softirq, on CPU 0
#   kernel, RPS       the same with receive packet steering: forwarding on CPU 1. The better one of
#                     the two is the peer.
#   testpmd af_xdp    mac mode: writes the addresses, looks nothing up, so DPDK at its cheapest
#   bpf_fib_lookup    a small XDP program (bench/xdp_fib.bpf.c) on the sender's CPU, for information
#   holdoff           holdoff forward xdp:vb xdp:vc; and with tx=live; both without the shortcut
#   shortcut          the same with --shortcut=yes: its XDP program forwards what needs no more than
#                     the kernel's table, on the sender's CPU, and counts it
#
# The rate is what arrives at vd by its own count. PERF=1 adds a profile of both CPUs. FAMILIES
# ("4 6") and STAGES ("kernel rps fib pmd socket live shortcut") choose. Needs root.
cd "$(dirname "$0")/.." || exit 1
. bench/lib.sh
bench_need ip ethtool
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
A=hfv$$a R=hfv$$r C=hfv$$c
s=$SECONDS_EACH

stop() {
	for ns in "$A" "$R" "$C"; do ip netns del "$ns" 2>/dev/null; done
	bench_cleanup
}
trap stop EXIT
for ns in "$A" "$R" "$C"; do
	ip netns add "$ns" || { echo "skipped: no network namespaces"; exit 77; }
	ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
done
ip link add va netns "$A" address 02:00:00:00:00:01 type veth peer name vb netns "$R" address 02:00:00:00:00:02 || exit 1
ip link add vc netns "$R" address 02:00:00:00:00:03 type veth peer name vd netns "$C" address 02:00:00:00:00:04 || exit 1
for at in "$A va" "$R vb" "$R vc" "$C vd"; do
	set -- $at
	ip -n "$1" link set "$2" up
	ip netns exec "$1" ethtool -K "$2" gro on
done
ip -n "$R" addr add 198.18.0.1/24 dev vb
ip -n "$R" addr add 198.19.0.1/24 dev vc
ip -n "$R" addr add 2001:db8:18::1/64 dev vb nodad
ip -n "$R" addr add 2001:db8:19::1/64 dev vc nodad
ip -n "$R" neigh add 198.19.0.2 lladdr 02:00:00:00:00:05 nud permanent dev vc
ip -n "$R" neigh add 2001:db8:19::2 lladdr 02:00:00:00:00:05 nud permanent dev vc
ip -n "$R" route add 198.20.0.0/16 via 198.19.0.2
ip -n "$R" route add 2001:db8:20::/48 via 2001:db8:19::2
ip netns exec "$R" sysctl -qw net.ipv6.conf.all.forwarding=1

arrived() { ip -n "$C" -s -j link show vd | sed 's/.*"rx":{[^}]*"packets":\([0-9]*\).*/\1/'; }
kernel_forwards() { ip netns exec "$R" sysctl -qw net.ipv4.ip_forward="$1" net.ipv6.conf.all.forwarding="$1"; }
steer() { ip netns exec "$R" sh -c "echo $1 >/sys/class/net/vb/queues/rx-0/rps_cpus"; }

send() {
	local ip="--ip-src=198.18.0.2 --ip-dst=198.20.0.0-198.20.3.255"
	[ "$family" = 6 ] && ip="--ip-src=2001:db8:18::2 --ip-dst=2001:db8:20::-2001:db8:20::3ff"
	ip netns exec "$A" taskset -c 0 "$HOLDOFF" gen xdp:va,tx=live --eth-dst=02:00:00:00:00:02 --stamp=no \
		$ip --duration "$1s" -j
}

# profile NAME: where both CPUs are, by the CPU clock.
profile() {
	perf record -q -a -e cpu-clock -o "$bench_tmp/perf" -- sleep 0.5 2>/dev/null || return
	for cpu in 0 1; do
		echo "-- CPU $cpu, IPv$family, $1"
		perf report -i "$bench_tmp/perf" --stdio --no-children -s comm,symbol -C $cpu 2>/dev/null |
			grep -v '^#' | grep . | head -n 14
	done >"$bench_tmp/profile.$1.$family"
}

# measure NAME: what arrives in s seconds in the middle of a run of the sender; the router runs.
measure() {
	local name=$1.$family from to t0 t1 pid i
	send $((s + 2)) >"$bench_tmp/gen" 2>&1 &
	pid=$!
	from=$(arrived)
	for ((i = 0; i < 30 && $(arrived) < from + 10000; i++)); do sleep 0.1; done
	from=$(arrived) t0=$(date +%s%N)
	sleep "$s"
	to=$(arrived) t1=$(date +%s%N)
	[ -n "${PERF:-}" ] && [ "$round" = 1 ] && profile "$1"
	wait $pid
	[ "$to" -gt "$from" ] || { echo "$name: nothing arrives:"; tail -n 3 "$bench_tmp/gen" "$bench_tmp/router" 2>/dev/null; }
	bench_record "$name" $(((to - from) * 1000000000 / (t1 - t0)))
	# The host may move the CPUs between two rounds: what was measured in the same one compares best.
	awk -v r="$round" -v n="$name" -v pps="$(tail -n 1 "$bench_tmp/$name")" \
		'BEGIN {printf "  round %d: %-20s %7.3f Mpps\n", r, n, pps / 1e6}'
}

# routed NAME COMMAND...: the same with a router that runs on CPU 1 until it is told to end.
routed() {
	local name=$1 pid i
	shift
	ip netns exec "$R" "$@" >"$bench_tmp/router" 2>&1 </dev/null &
	pid=$!
	for ((i = 0; i < 50; i++)); do
		ip -n "$R" -d link show vc | grep -q 'prog/xdp' && break
		sleep 0.1
	done
	sleep 0.5
	measure "$name"
	kill -INT $pid 2>/dev/null
	wait $pid
}

holdoff() {
	routed "$1" timeout -s INT -k 5 30 taskset -c 1 "$HOLDOFF" forward "xdp:vb$2" "xdp:vc$2" -Q --shortcut="${3:-no}"
}
testpmd() {
	# libxdp's dispatcher, which it uses, needs a bpffs.
	routed "$1" sh -c 'mount -t bpf bpf /sys/fs/bpf; exec "$@"' sh timeout -s INT -k 3 30 \
		"${TESTPMD%% *}" -l 0,1 --main-lcore 0 --no-pci --no-telemetry -m 512 --no-huge \
		--file-prefix "hfv$$" --vdev "net_af_xdp0,iface=vb$2" --vdev "net_af_xdp1,iface=vc$2" -- \
		--stats-period=1 --nb-cores=1 --total-num-mbufs=32768 --forward-mode=mac \
		--eth-peer=1,02:00:00:00:00:05
}
fib_program() {
	ip -n "$R" link set dev vb xdpdrv obj "$bench_tmp/xdp_fib.o" sec xdp || return 1
	measure xdp_fib
	ip -n "$R" link set dev vb xdpdrv off
}

bench_machine
echo "load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
clang -target bpf -O2 -g -I"/usr/include/$(uname -m)-linux-gnu" -c bench/xdp_fib.bpf.c -o "$bench_tmp/xdp_fib.o" ||
	echo "no clang for BPF: the XDP program is left out"
# asked STAGE: is it one of those to be measured?
asked() { case " ${STAGES:-kernel rps fib pmd socket live shortcut} " in *" $1 "*) ;; *) return 1 ;; esac }
for ((round = 1; round <= ROUNDS; round++)); do
	bench_distance
	for family in ${FAMILIES:-4 6}; do
		kernel_forwards 1
		asked kernel && measure kernel
		asked rps && {
			steer 2
			measure kernel_rps
			steer 0
		}
		asked fib && [ -e "$bench_tmp/xdp_fib.o" ] && fib_program
		kernel_forwards 0
		asked pmd && command -v "${TESTPMD%% *}" >/dev/null && {
			testpmd pmd ""
			testpmd pmd_nobusy ",busy_budget=0"
		}
		asked socket && holdoff socket ""
		asked live && holdoff live ",tx=live"
		asked shortcut && {
			kernel_forwards 1
			holdoff shortcut "" yes
		}
	done
done

# best NAME...: the one with the highest median.
best() {
	local name top=
	for name; do
		[ -e "$bench_tmp/$name" ] || continue
		[ -z "$top" ] || awk -v a="$(bench_median "$name")" -v b="$(bench_median "$top")" 'BEGIN {exit !(a > b)}' || continue
		top=$name
	done
	echo "$top"
}
row() { [ -e "$bench_tmp/$2.$family" ] && bench_row "$1" "$2.$family"; }
for family in ${FAMILIES:-4 6}; do
	ours=$(best socket.$family live.$family shortcut.$family)
	kernel=$(best kernel.$family kernel_rps.$family)
	pmd=$(best pmd.$family pmd_nobusy.$family)
	echo "-- IPv$family"
	row "kernel, in the sender's softirq" kernel
	row "kernel, RPS: forwarding on the other CPU" kernel_rps
	row "XDP program, bpf_fib_lookup" xdp_fib
	row "testpmd mac, af_xdp, busy polling" pmd
	row "testpmd mac, af_xdp, busy_budget=0" pmd_nobusy
	row "holdoff forward, AF_XDP sockets" socket
	row "holdoff forward, tx=live" live
	row "holdoff forward, shortcut" shortcut
	[ -n "$ours" ] && [ -n "$kernel" ] &&
		bench_row "holdoff (${ours%.*}), to the kernel (${kernel%.*})" "$ours" "$kernel"
	[ -n "$ours" ] && [ -n "$pmd" ] &&
		bench_row "holdoff (${ours%.*}), to testpmd (${pmd%.*})" "$ours" "$pmd"
done
for p in "$bench_tmp"/profile.*; do
	[ -e "$p" ] && cat "$p"
done
echo "load after: $(cut -d ' ' -f 1-3 /proc/loadavg)"
